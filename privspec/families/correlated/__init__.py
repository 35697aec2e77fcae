"""Answers about sequences whose entries tell of one another: lines that count on the declared law of the data."""
