"""Keys that nobody has listed: which are shown, and with what counts."""
