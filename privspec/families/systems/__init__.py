"""Systems: parts of several families under shared lines; their budgets are found, and what they spend is composed."""
