"""Exact samplers, data readers, the budget ledger. Never imports `compile` or `solvers`."""
