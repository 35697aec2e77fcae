"""Proof notes (Markdown), shipped with the package and named by plans."""
