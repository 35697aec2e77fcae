"""Any law on finite sets, as a table of probabilities: the best one is found, recognised and executed."""
