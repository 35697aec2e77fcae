"""Named theorems with exact parameters: votes, the routes of statistics, samplers' laws."""
