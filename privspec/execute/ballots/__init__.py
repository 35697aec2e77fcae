"""Ballots from files and from memory: first choices and rankings, in CSV, Parquet, JSON and PrefLib's formats."""
