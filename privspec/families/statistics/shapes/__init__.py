"""Shapes of noise on a bounded statistic: one object each, calibrated by the statistic's spread or bound."""
