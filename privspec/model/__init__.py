"""The typed graph: domains, neighbour relations, measures. May import `core` and `language`."""
