"""PrefLib's files of orders (Mattei and Walsh 2013): .soc, .soi, .toc and .toi, as they are now and as they were.

Now: lines `# ALTERNATIVE NAME 1: north`, then `count: 1,2,{3,4}`. Before: the number of alternatives, a line
`1,north` for each, a line of totals, then `count,1,2,{3,4}`. Braces hold what is tied.
"""

from __future__ import annotations

import gzip
import re
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from privspec.execute.ballots.form import Form
from privspec.execute.keeper import refuse, refuse_unreadable
from privspec.model.values import show

if TYPE_CHECKING:
    import polars as pl

SUFFIXES = tuple(kind + end for kind in (".soc", ".soi", ".toc", ".toi") for end in ("", ".gz"))
_NAME = re.compile(r"#\s*ALTERNATIVE NAME\s+(\d{1,9})\s*:\s*(.*?)\s*$", re.IGNORECASE)


def read_preflib(form: Form, path: Path) -> tuple[pl.LazyFrame, dict[str, int]]:
    """The orders of a file as it writes them (columns `ballot` and `count`), and what its alternatives' numbers mean.

    Returns: the second is from the file's numbers to the places of the spec's alternatives.
    Raises: DataError PS0803, PS0818.
    """
    import polars as pl

    lines = _lines(form, path)
    if lines and not lines[0].startswith("#"):
        names, body, separator = _old_head(form, lines)
    else:
        found = [match for line in lines if (match := _NAME.match(line))]
        names = {match[1]: match[2] for match in found}
        body, separator = [line for line in lines if not line.startswith("#")], ":"
    if not names:
        _refuse(form, "it does not name its alternatives")
    numbers = _numbers(form, names)
    orders = pl.Series("line", body, dtype=pl.String)
    parts = pl.DataFrame(orders).select(
        pl.col("line").str.splitn(separator, 2).struct.rename_fields(["count", "order"])
    )
    order = pl.col("order")
    for sign, spaced in (("{", " { "), ("}", " "), (",", " ")):
        order = order.str.replace_all(sign, spaced, literal=True)
    frame = parts.unnest("line").lazy().select(order.alias("ballot"), pl.col("count").str.strip_chars())
    return frame, numbers


def _lines(form: Form, path: Path) -> list[str]:
    opened = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", errors="replace") as file:
            text: str = file.read()
    except (OSError, EOFError, zlib.error):
        refuse_unreadable(form.name, "an election of PrefLib")
    return [line for raw in text.splitlines() if (line := raw.strip())]


def _old_head(form: Form, lines: list[str]) -> tuple[dict[str, str], list[str], str]:
    """Names by number, the lines of the orders, and what stands after their counts."""
    if not re.fullmatch(r"\d{1,9}", lines[0]) or int(lines[0]) >= len(lines):
        _refuse(form, "its first line is neither a comment nor the number of its alternatives")
    count = int(lines[0])
    names = {}
    for line in lines[1 : count + 1]:
        number, comma, name = line.partition(",")
        if not comma or not re.fullmatch(r"\d{1,9}", number.strip()):
            _refuse(form, "a line of its head is no number and name of an alternative")
        names[number.strip()] = name.strip()
    return names, lines[count + 2 :], ","


def _numbers(form: Form, names: dict[str, str]) -> dict[str, int]:
    """From the numbers of a file's alternatives to places in the spec, by name if all are known, else in order."""
    known = {_plain(show(item)): i for i, item in enumerate(form.alternatives)}
    by_name = {number: known[plain] for number, name in names.items() if (plain := _plain(name)) in known}
    if len(set(by_name.values())) == len(by_name) == len(names):
        return by_name
    if len(names) != len(form.alternatives):
        _refuse(form, f"it has {len(names)} alternatives, the spec {len(form.alternatives)}")
    if by_name:
        _refuse(form, f"{len(by_name)} of its {len(names)} alternatives have names of the spec's, the others have not")
    return {number: place for place, number in enumerate(sorted(names, key=int))}


def _plain(name: str) -> str:
    """A name as a word of a spec can be."""
    return re.sub(r"\W+", "_", name.casefold()).strip("_")


def _refuse(form: Form, why: str) -> NoReturn:
    refuse(
        "PS0818",
        f"the PrefLib file for {form.name} does not fit: {why}",
        "nothing was drawn and nothing was spent",
        help="name the spec's alternatives as the file does, or declare as many, in its order",
    )
