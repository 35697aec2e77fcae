"""The table of a plan as figures: rows, columns, what an observer sees of it, and which rows are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.explain.quantities import parse_exact

Array: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.intp]
Part: TypeAlias = tuple[str, ...]
"""The value of one node, as its scalars: one for a number or word, several for a vector."""
Label: TypeAlias = tuple[Part, ...]
"""A row or column: one part for each node."""


@dataclass(frozen=True, eq=False)
class Table:
    """Pr(column | row) as doubles (rows, columns), each the nearest to its exact fraction.

    `of` and `releases` name the nodes of rows and of columns; `counted` those nodes whose values are held as counts;
    `prior` (rows,) is None where expected losses use no law.
    """

    of: tuple[str, ...]
    releases: tuple[str, ...]
    counted: frozenset[str]
    rows: tuple[Label, ...]
    columns: tuple[Label, ...]
    shares: Array
    prior: Array | None

    def seen(self, outputs: Sequence[str]) -> Table:
        """What one learns who sees only these outputs: columns that look the same are added up."""
        kept = [i for i, name in enumerate(self.releases) if name in outputs]
        if len(kept) == len(self.releases):
            return self
        shown = [tuple(column[i] for i in kept) for column in self.columns]
        names = tuple(dict.fromkeys(shown))
        number = {name: k for k, name in enumerate(names)}
        shares = np.zeros((len(self.rows), len(names)))
        np.add.at(shares.T, [number[s] for s in shown], self.shares.T)
        releases = tuple(self.releases[i] for i in kept)
        return Table(self.of, releases, self.counted, self.rows, names, shares, self.prior)

    def pairs(self, wrt: Sequence[str]) -> Indices:
        """Unordered pairs of rows (K, 2) that differ in nothing but these nodes."""
        fixed = [i for i, name in enumerate(self.of) if name not in wrt]
        groups: dict[Label, list[int]] = {}
        for r, row in enumerate(self.rows):
            groups.setdefault(tuple(row[i] for i in fixed), []).append(r)
        found = []
        for group in groups.values():
            members = np.array(group, dtype=np.intp)
            first, second = np.triu_indices(len(members), k=1)
            found.append(np.column_stack([members[first], members[second]]))
        return np.concatenate(found) if found else np.zeros((0, 2), dtype=np.intp)

    def truths(self, output: str, node: str) -> Array | None:
        """The probability in each row (rows,) that an output is the value of a node; None if it cannot always be."""
        if output not in self.releases or node not in self.of:
            return None
        out, at = self.releases.index(output), self.of.index(node)
        columns: dict[Part, list[int]] = {}
        for c, column in enumerate(self.columns):
            columns.setdefault(column[out], []).append(c)
        if any(row[at] not in columns for row in self.rows):
            return None
        return np.array([self.shares[r, columns[row[at]]].sum() for r, row in enumerate(self.rows)])

    def mean(self, values: Array) -> float | None:
        """The mean over the rows by the prior; None without one."""
        return None if self.prior is None else float(values @ self.prior)

    @cached_property
    def row_points(self) -> Array | None:
        """The rows as points (rows, d) where all their scalars are numbers."""
        return points(self.rows)

    @cached_property
    def column_points(self) -> Array | None:
        """The columns as points (columns, d) where all their scalars are numbers."""
        return points(self.columns)


def points(labels: Sequence[Label]) -> Array | None:
    """Labels as points; None where one is no number, or they differ in length."""
    try:
        listed = [[float(parse_exact(scalar)) for part in label for scalar in part] for label in labels]
    except ValueError:
        return None
    if not listed or len({len(point) for point in listed}) != 1:
        return None
    return np.array(listed)


def spoken(label: Label) -> str:
    """A label as an author would write it: "red", "(1, 2)", "F, low"."""
    parts = [part[0] if len(part) == 1 else f"({', '.join(part)})" for part in label]
    return ", ".join(parts)


def read_table(mechanism: Mapping[str, Any]) -> Table:
    """The table of a plan of the family "table".

    Raises: KeyError, ValueError if the mechanism is not of that form.
    """
    of, releases = (tuple(str(name) for name in mechanism.get(key) or ()) for key in ("of", "releases"))
    rows = tuple(_label(item, len(of)) for item in mechanism["inputs"])
    columns = tuple(_label(item, len(releases)) for item in mechanism["outputs"])
    listed = [[_share(text) for text in row] for row in mechanism["probabilities"]]
    shares = np.array(listed, dtype=np.float64).reshape(len(listed), -1 if listed else len(columns))
    if shares.shape != (len(rows), len(columns)):
        raise ValueError("the table has not one row for each input and one column for each output")
    prior = mechanism.get("prior")
    weights = None if prior is None else np.array([_share(text) for text in prior], dtype=np.float64)
    if weights is not None and weights.shape != (len(rows),):
        raise ValueError("the prior has not one weight for each input")
    counted = frozenset(str(name) for name in mechanism.get("counted") or ())
    return Table(of, releases, counted, rows, columns, shares, weights)


def _label(item: Any, nodes: int) -> Label:
    return tuple(_part(part) for part in item) if nodes > 1 else (_part(item),)


def _part(item: Any) -> Part:
    if not isinstance(item, list):
        return (str(item),)
    return tuple(scalar for inner in item for scalar in _part(inner))


def _share(text: object) -> float:
    """The double nearest to a fraction: division of whole numbers rounds once."""
    top, _, bottom = str(text).partition("/")
    try:
        return int(top) / int(bottom or "1")
    except (ValueError, ZeroDivisionError):
        return float(parse_exact(text))


def common_bits(mechanism: Mapping[str, Any]) -> int:
    """How long the whole numbers are that a draw takes: bits of the largest common denominator of a row."""
    longest = 1
    for row in mechanism["probabilities"]:
        common = 1
        for bottom in {int(str(text).partition("/")[2] or "1") for text in row}:
            common = common * bottom // gcd(common, bottom)
        longest = max(longest, common)
    return longest.bit_length()
