"""Rules of private voting: one object each, which calibrates a lottery to epsilon and says what it keeps."""
