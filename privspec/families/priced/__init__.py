"""Privacy at least cost: an amount that solving picks."""
