"""A value among candidates that is drawn by scores, which depend on the records of a table."""
