"""Finite mechanisms explained: a table of probabilities as facts, words and drawings."""
