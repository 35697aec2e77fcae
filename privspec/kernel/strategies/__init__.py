"""Linear maps with structure: one file for each."""
