"""Plans with noise at statistics of bounded records, as the pages describe them."""
