"""Plans that draw a winner by lot: their facts, words, tables and drawings."""
