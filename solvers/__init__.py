"""Special solvers over plain matrices. They know nothing of the language."""
