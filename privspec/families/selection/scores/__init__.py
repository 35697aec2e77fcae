"""Selection of a value of a column of secret records, by scores."""
