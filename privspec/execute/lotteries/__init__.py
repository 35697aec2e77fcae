"""Lotteries: ballots, exact totals of points, one exact draw of the winner."""
