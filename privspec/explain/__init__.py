"""Facts from plan and graph, rendered for three readers. Never imports `compile` or `solvers`."""
