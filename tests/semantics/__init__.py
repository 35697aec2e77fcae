"""The naive meaning of the language, and whether problems agree with it."""
