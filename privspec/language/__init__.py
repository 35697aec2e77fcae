"""From text to a checked syntax tree and back. May import `core` only."""
