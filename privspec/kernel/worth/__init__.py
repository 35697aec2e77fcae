"""Losses and their bounds: what a plan says of its errors, derived again."""
