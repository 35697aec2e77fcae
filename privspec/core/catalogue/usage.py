"""Diagnostics of files, options and constants (PS07xx). Append an `Entry(...)` in order of codes."""

from __future__ import annotations

from privspec.core.catalogue.entry import Entry

ENTRIES: tuple[Entry, ...] = (
    Entry(
        "PS0701",
        "a spec file does not exist",
        """
        No file has this name. Names are relative to the folder in which the command runs; files
        named inside a spec are relative to the spec.
        """,
        "privspec check specs/linear_queries.priv\nprivspec templates            # lists the built-in specs",
    ),
    Entry(
        "PS0702",
        "a spec file cannot be read",
        """
        The file is there but the system refuses to read it: it is a folder, or you have no
        permission, or the disk failed. The message gives the system's reason.
        """,
        "ls -l shop_queries.priv",
    ),
    Entry(
        "PS0703",
        "no diagnostic has this code",
        """
        Codes are PS and four digits, as every error prints them in brackets.
        """,
        "privspec explain-error PS0103",
    ),
)
