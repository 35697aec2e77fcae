"""Designs: every alternative of a spec that leaves choices open is solved by its own family; the least one wins."""
