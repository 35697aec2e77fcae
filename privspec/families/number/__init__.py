"""Laws of one number: reports of points, cells and values, thresholds of keys, noise on sums of a sequence."""
