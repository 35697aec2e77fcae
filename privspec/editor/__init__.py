"""Editors: what an editor shows of a `.priv` file while it is typed, and the grammar that colours it."""
