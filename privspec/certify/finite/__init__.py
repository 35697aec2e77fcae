"""What checks of votes take from tables: sums of averages, laws of data, ratios."""
