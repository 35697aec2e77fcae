"""Laws of noise and of choice: one file for each, with what has to be believed of it and nothing else."""
