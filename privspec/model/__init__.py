"""The typed graph: names, types, domains, units, measures. May import `core` and `language`."""
