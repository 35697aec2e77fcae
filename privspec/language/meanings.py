"""What to write for words that authors bring from the field and from other languages.

Each table says, for a word that the language does not have, what it has instead, or that nothing does the same.
A word that is listed is never taken for the misspelling of another: the median is not the mean. The tables are those of
`meanings.json`, in which words with one meaning stand together.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_TABLES: Mapping[str, Mapping[str, Any]] = {
    name: {word: meaning for words, meaning in table.items() for word in words.split()}
    for name, table in json.loads(Path(__file__).with_suffix(".json").read_text("utf-8")).items()
}

FUNCTIONS: Mapping[str, str] = _TABLES["functions"]
"""Advice in which $1, $2 and $3 stand for the arguments as written and $* for all of them."""
NAMES: Mapping[str, str] = _TABLES["names"]
DOMAINS: Mapping[str, str] = _TABLES["domains"]
SECTIONS: Mapping[str, str] = _TABLES["sections"]
"""The section that another header means."""
MEASURES: Mapping[str, tuple[str, str]] = _TABLES["measures"]
"""The measure that another name means, and what its amount is where that is not the amount written."""
DISTRIBUTIONS: Mapping[str, str] = _TABLES["distributions"]
FAMILIES: Mapping[str, str] = _TABLES["families"]
TRUST: Mapping[str, str] = _TABLES["trust"]
UNITS: Mapping[str, str] = _TABLES["units"]
"""The unit that another word means, where the spec declares no index set of that name."""

PEOPLE = frozenset(_TABLES["people"])
"""Units that are one record where each holds one, and an index set where each holds several."""


def written(sense: str, arguments: Sequence[str], *, averaged: bool = False) -> str:
    """An advice of `FUNCTIONS` with the arguments in it; inside an average, without the average that it proposes."""
    if averaged and sense.startswith("write E[ ||$1 - $2||"):
        sense = sense.replace("E[ ", "").replace(" ]", "")
    for place in ("$2", "$3"):
        if place in sense and len(arguments) < int(place[1]):
            arguments = (*arguments, "y")
    sense = sense.replace("$*", ", ".join(arguments) or "...")
    for number, argument in enumerate(arguments, 1):
        sense = sense.replace(f"${number}", argument)
    return sense.replace("$1", "...")
