"""Runs plans with noise at the statistics of bounded records: read by party, clip, pool exactly, draw, finish."""
