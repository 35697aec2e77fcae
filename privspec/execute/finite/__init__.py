"""Mechanisms that are a table Pr(outputs | row): reading data, exact draws, what a run costs."""
