"""Random dictatorship with dummy votes by a joint draw: no party alone knows or sets it (note joint-draw)."""
