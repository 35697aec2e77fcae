"""Noise laws: what each guarantees, with the note that proves it."""
