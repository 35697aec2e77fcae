"""From local reports back to the law of what was reported on."""
