"""What every layer may use: positions, diagnostics, exact numbers. Imports nothing else of privspec."""
