"""Mechanisms that people use on finite domains, as tables; which of them an optimal table is. Plain data in and out."""
