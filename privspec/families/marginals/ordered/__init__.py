"""Tables of counts with columns in order."""
