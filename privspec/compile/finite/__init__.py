"""Finite specs: the whole table Pr(output | input) as one linear program, its exact solution, and the plan."""
