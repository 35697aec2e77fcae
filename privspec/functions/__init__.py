"""The library functions of the language, one file per field. May import `core`, `language`, `model`."""
