"""What every layer may use: positions, diagnostics, exact numbers. Imports nothing else of privspec."""

OPTIMAL_GAP = 1e-6
"""Largest relative gap between loss and lower bound of a plan that is called optimal."""
