"""Counts of one table by some of its columns, at any size: noise in the residual spaces of sets of columns."""
