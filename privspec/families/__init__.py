"""The families of mechanisms, a folder each; no family imports another. What they share of plans stands here."""
