"""Histograms of what parties hold, from a report of each."""
