"""Reports of real points under privacy by distance."""
