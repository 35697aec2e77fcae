"""The table of a plan, read strictly: exact probabilities over one denominator, and what else `run` draws from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import gcd, lcm
from typing import Any

import numpy as np

from privspec.certify.finite.ratios import Comparison, Entries, Indices
from privspec.certify.reading import At, Malformed

DENOMINATOR_BITS = 2**17
"""Longest common denominator of the probabilities."""
WORK_LIMIT = 2**33
"""Most bits of all numerators together."""


@dataclass(frozen=True, eq=False)
class Table:
    """Pr(column | row) = numerators[row, column] / denominator; labels as the plan writes them."""

    of: tuple[str, ...]
    releases: tuple[str, ...]
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    numerators: Entries
    denominator: int
    prior: tuple[Fraction, ...] | None
    scalars: Mapping[str, Fraction]
    laws: Mapping[str, Mapping[str, Fraction]]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.numerators.shape[0], self.numerators.shape[1]

    @cached_property
    def plain(self) -> Comparison:
        """What someone sees who sees everything."""
        return Comparison.of(self.numerators, self.denominator)

    def seen(self, view: Indices) -> Comparison:
        """What someone sees who takes columns of one number for one; they are numbered from 0 without gaps."""
        count = int(view.max()) + 1
        if count == len(view) and bool(np.all(view == np.arange(count))):
            return self.plain
        merged: Entries = np.zeros((len(self.numerators), count), dtype=object)
        for column, shown in enumerate(view):
            merged[:, shown] += self.numerators[:, column]
        return Comparison.of(merged, self.denominator)

    def mean(self, row: int, weights: Entries) -> Fraction:
        """The average of `weights` (columns,) under one row."""
        total = sum((w * int(n) for w, n in zip(weights, self.numerators[row], strict=True) if n), Fraction(0))
        return Fraction(total) / self.denominator


def read_table(data: At) -> Table:
    """The `mechanism` of a plan of the family "table".

    Raises: Malformed.
    """
    of, releases = (tuple(item.text() for item in data[key].items()) for key in ("of", "releases"))
    rows = [_row(row) for row in data["probabilities"].items()]
    inputs, outputs = (tuple(_label(item) for item in data[key].items()) for key in ("inputs", "outputs"))
    if not inputs or not outputs or len(rows) != len(inputs) or any(len(row) != len(outputs) for row in rows):
        raise Malformed(f"{data.place}: the table does not have {len(inputs)} rows and {len(outputs)} columns")
    denominator = 1
    for entry in {d for row in rows for _, d in row}:
        denominator = lcm(denominator, entry)
        if denominator.bit_length() > DENOMINATOR_BITS:
            raise Malformed(f"{data.place}.probabilities have no common denominator of moderate size")
    if denominator.bit_length() * len(inputs) * len(outputs) > WORK_LIMIT:
        raise Malformed(f"{data.place}.probabilities are too many and too long")
    numerators: Entries = np.empty((len(inputs), len(outputs)), dtype=object)
    for x, row in enumerate(rows):
        numerators[x] = [n * (denominator // d) for n, d in row]
    prior = data.get("prior")
    return Table(
        of,
        releases,
        inputs,
        outputs,
        numerators,
        denominator,
        None if prior is None else tuple(item.exact() for item in prior.items()),
        _numbers(data.get("scalars")),
        {} if (laws := data.get("laws")) is None else {key: _numbers(laws[key]) for key in _keys(laws)},
    )


def _keys(data: At) -> list[str]:
    if not isinstance(data.value, Mapping):
        raise Malformed(f"{data.place} is not an object")
    return [str(key) for key in data.value]


def _numbers(data: At | None) -> dict[str, Fraction]:
    return {} if data is None else {key: data[key].exact() for key in _keys(data)}


def _row(data: At) -> list[tuple[int, int]]:
    """Numerators and denominators of one row: whole numbers or fractions in lowest terms, written as text."""
    found: list[tuple[int, int]] = []
    for place, text in enumerate(data.list()):
        if not isinstance(text, str):
            raise Malformed(f"{data.place}[{place}] is not a text")
        top, slash, bottom = text.partition("/")
        if not (_digits(top) and (not slash or _digits(bottom))):
            raise Malformed(f"{data.place}[{place}] is not a probability in lowest terms")
        numerator, denominator = _integer(top), _integer(bottom) if slash else 1
        if denominator == 0 or (slash and denominator == 1) or gcd(numerator, denominator) != 1:
            raise Malformed(f"{data.place}[{place}] is not a probability in lowest terms")
        found.append((numerator, denominator))
    return found


PIECE = 4096
"""Digits that are read at once: longer texts are read in pieces, as Python limits what it converts."""


def _integer(text: str) -> int:
    if len(text) > DENOMINATOR_BITS:
        raise Malformed("a probability has too many digits")
    total = 0
    for start in range(0, len(text), PIECE):
        piece = text[start : start + PIECE]
        total = total * 10 ** len(piece) + int(piece)
    return total


def _digits(text: str) -> bool:
    return text.isascii() and text.isdigit() and (text == "0" or text[0] != "0")


def _label(data: At) -> Any:
    """A text, or a list of labels."""
    if isinstance(data.value, list):
        return tuple(_label(item) for item in data.items())
    return data.text()
