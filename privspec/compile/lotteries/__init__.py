"""Private voting: a winner drawn by a lottery, from any number of ballots, by the best of the known rules."""
