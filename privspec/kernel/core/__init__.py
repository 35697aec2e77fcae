"""Privacy: what a plan promises to the people in the data, derived again from its problem and its mechanism."""
