"""Linear answers with additive noise: where it goes, of what law and strategy, and how it is executed."""
