"""Noise at the places of a statistic that the language knows by name."""
