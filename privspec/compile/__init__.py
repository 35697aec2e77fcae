"""From the graph to a convex program and from its solution to a plan. The only place that holds cvxpy objects."""
