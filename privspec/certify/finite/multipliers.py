"""The multipliers of privacy requirements that a plan lists, added to a Lagrangian."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from privspec.certify.finite.lagrangian import GRID, Lagrangian, ceil_product, multiplier
from privspec.certify.finite.privacy import Limit, Ratios, asked_by
from privspec.certify.finite.ratios import Indices
from privspec.certify.finite.subject import FiniteSubject
from privspec.certify.reading import At, Malformed
from privspec.certify.relations import exposed


def add_privacy(lagrangian: Lagrangian, subject: FiniteSubject, item: At) -> None:
    """One block of multipliers.

    Raises: Malformed if they are not about what the requirement compares, NotUnderstood.
    """
    number = item["requirement"].integer()
    if not 0 <= number < len(subject.requirements):
        raise Malformed(f"{item.place}: there is no requirement {number}")
    requirement = subject.requirements[number]
    asked = asked_by(subject, requirement)
    view = subject.view(exposed(subject.model, requirement))
    form = item["form"].text()
    if form == "complete":
        _complete(lagrangian, asked, view, item)
    elif form == "pairs":
        _pairs(lagrangian, asked, view, item)
    else:
        raise Malformed(f"{item.place}.form is unknown")


def _members(view: Indices) -> list[list[int]]:
    """The columns behind each number that is seen."""
    found: list[list[int]] = [[] for _ in range(int(view.max()) + 1)]
    for column, shown in enumerate(view.tolist()):
        found[shown].append(column)
    return found


def _numbers(data: At, extents: Sequence[int]) -> Iterator[tuple[list[int], int]]:
    """Entries [i, j, ..., value]: whole numbers below the extents, each place once, then a multiplier.

    Were one split into several, what is paid once for the largest of a pair would be paid for a part of it.
    """
    known: set[tuple[int, ...]] = set()
    for entry in data.list():
        if not isinstance(entry, list) or len(entry) != len(extents) + 1:
            raise Malformed(f"{data.place} has an entry of another form")
        *at, value = entry
        if any(type(i) is not int or not 0 <= i < extent for i, extent in zip(at, extents, strict=True)):
            raise Malformed(f"{data.place} has an entry for what is not there")
        if tuple(at) in known:
            raise Malformed(f"{data.place} has two multipliers of one pair of rows and one column")
        known.add(tuple(at))
        yield at, multiplier(value, data.place)


# --- every two rows are neighbours: m_s <= f_rs <= R m_s ------------------------------------------------


def _complete(lagrangian: Lagrangian, asked: Limit, view: Indices, item: At) -> None:
    """Sound for any set of rows whose every two are neighbours, with one free m_s >= 0; these sum to at most one."""
    if not isinstance(asked, Ratios):
        raise Malformed(f"{item.place}: this form is for one pure epsilon")
    ratio = asked.ratio.up
    members = _members(view)
    extents = (len(lagrangian.reduced), len(members))
    least = [0] * len(members)
    rows: set[int] = set()
    for key, sign in (("below", -1), ("above", 1)):
        for (row, seen), z in _numbers(item[key], extents):
            rows.add(row)
            for column in members[seen]:
                lagrangian.reduced[row][column] += sign * z
            least[seen] += z if sign < 0 else -ceil_product(z, ratio)
    if not asked.neighbours.mutual(np.array(sorted(rows), dtype=np.int64)):
        raise Malformed(f"{item.place}: not every two of these rows are neighbours")
    lagrangian.spend(Fraction(-min(0, *least), 1 << GRID))


# --- pairs of neighbours -------------------------------------------------------------------------------


def _pairs(lagrangian: Lagrangian, asked: Limit, view: Indices, item: At) -> None:
    members = _members(view)
    count = len(lagrangian.reduced)
    entries = list(_numbers(item["entries"], (count, count, len(members))))
    a, b = (np.array([at[side] for at, _ in entries], dtype=np.int64) for side in (0, 1))
    ratios = asked.ratios_up(a, b)
    if ratios is None:
        raise Malformed(f"{item.place} has a pair of rows that the requirement does not compare")
    heaviest: dict[tuple[int, int], int] = {}
    for ((first, second, seen), z), ratio in zip(entries, ratios, strict=True):
        down = ceil_product(z, ratio)
        mine, other = lagrangian.reduced[first], lagrangian.reduced[second]
        for column in members[seen]:
            mine[column] += z
            other[column] -= down
        heaviest[first, second] = max(heaviest.get((first, second), 0), z)
    spent = asked.spent(sum(heaviest.values()), sum(z for _, z in entries))
    lagrangian.spend(spent / (1 << GRID))
