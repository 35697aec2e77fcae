"""Compile privacy requirements into optimal, certified and explained mechanisms."""

__version__ = "0.1.0"
