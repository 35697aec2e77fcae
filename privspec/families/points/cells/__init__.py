"""Finite reports of a real number, by the cells that it may lie in."""
