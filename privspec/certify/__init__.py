"""The independent checker. Imports `core`, `language`, `model` and `functions`; never `compile` or `solvers`."""
