"""Tables of counts by some columns: in parts that no two sets of columns share, or each table by itself.

The part of a set T of columns, none of them in order, is the table by T and by the columns in order, centred in each
column of T: what it says that no table by fewer columns does. With B_T applied to the M cells of the columns in order,
and normal noise of deviation 1 on each of its numbers, centred as well, it is P_T (B_T x_T + N(0, 1)). Nothing of the
number of all cells is built. A record of cell m adds p_T |B_T e_m|^2 to mu^2, p_T = prod_T (1 - 1 / n_i)
(noise/notes/marginals.md); without columns in order M is 1, and B_T = 1 / sigma_T.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import comb, lcm, prod

from flint import fmpq, fmpq_mat

from privspec.kernel.changes import Change, Records
from privspec.kernel.core.numbers import ZERO, fraction, rational
from privspec.kernel.core.reading import Refused, frozen
from privspec.kernel.laws.law import Strategy

WORST_COLUMNS = 16
"""Columns up to which every set of them is looked at in which two cells may differ."""
MOST_SHAPES = 2**18
"""Sets of columns in which two cells may differ, sets that are alike as one, of which the worst is looked for."""
Subset = tuple[int, ...]


def share(sizes: tuple[int, ...], own: Subset) -> Fraction:
    """What a record adds to the part of a set of columns, squared: p_T."""
    return Fraction(prod(sizes[i] - 1 for i in own), prod(sizes[i] for i in own))


@frozen
class Residuals(Strategy):
    """The parts that are drawn: B_T of each set T of columns, or None where its part is shown without noise.

    `sizes`: how many values each column has; `told`: for each output, the sets of columns that it tells of.
    """

    sizes: tuple[int, ...]
    parts: Mapping[Subset, fmpq_mat | None]
    told: Mapping[str, tuple[Subset, ...]]

    def __post_init__(self) -> None:
        widths = {matrix.ncols() for matrix in self.parts.values() if matrix is not None}
        known = all(list(own) == sorted(set(own)) and set(own) <= set(range(len(self.sizes))) for own in self.parts)
        if len(widths) > 1 or not known or not all(set(sets) <= set(self.parts) for sets in self.told.values()):
            raise Refused("tells of parts that are not drawn, or of columns that there are not")

    @property
    def in_order(self) -> int:
        """How many cells the columns in order have."""
        return max((matrix.ncols() for matrix in self.parts.values() if matrix is not None), default=1)

    def quadratic_sensitivity(self, change: Change, seen: frozenset[str]) -> Fraction:
        """At least mu^2 of the parts that some outputs tell of."""
        if not isinstance(change, Records):
            raise Refused("is about other units than records of the table")
        if not change.adding and self.in_order > 1:
            raise Refused("is about records that move between columns in order")
        told = {own for name in seen for own in self.told[name]}
        lengths = dict[Subset, list[fmpq]]()
        for own, matrix in self.parts.items():
            # how many records there are does not change where they are replaced
            if own not in told or not (own or change.adding):
                continue
            if matrix is None:
                raise Refused("shows a part without noise that moves")
            lengths[own] = _lengths(matrix)
        if change.adding:
            return change.count**2 * self._added(lengths)
        return change.count**2 * worst_move(self.sizes, {own: fraction(each[0]) for own, each in lengths.items()})

    def _added(self, lengths: dict[Subset, list[fmpq]]) -> Fraction:
        """The largest over the cells in order of what one record adds."""
        total: list[fmpq] = []
        for own, each in lengths.items():
            worth = rational(share(self.sizes, own))
            total = [before + worth * one for before, one in zip(total or [fmpq(0)] * len(each), each, strict=True)]
        return fraction(max(total, default=fmpq(0)))


def _lengths(matrix: fmpq_mat) -> list[fmpq]:
    """The squared length of each column."""
    whole, below = matrix.numer_denom()
    return [fmpq(sum(int(v) * int(v) for v in column), below * below) for column in zip(*whole.tolist(), strict=True)]


@frozen
class Separate(Strategy):
    """Tables by some columns, each by itself, with noise of a scale on each of its counts; whoever sees some sees all.

    `tables`: the columns of each noisy one, and its scale.
    """

    sizes: tuple[int, ...]
    tables: tuple[tuple[Subset, Fraction], ...]

    def __post_init__(self) -> None:
        if any(scale <= 0 for _, scale in self.tables):
            raise Refused("has noise of no size")

    def absolute_sensitivity(self, change: Change, seen: frozenset[str]) -> Fraction:
        """In scales: a record counts in one number of each table, or moves from one to another."""
        if not isinstance(change, Records):
            raise Refused("is about other units than records of the table")
        total = ZERO
        for own, scale in self.tables:
            moves = 1 if change.adding else 2 * any(self.sizes[i] > 1 for i in own)
            total += moves / scale
        return change.count * total


# --- records that move -------------------------------------------------------------------------------------------


def worst_move(sizes: tuple[int, ...], inverse: dict[Subset, Fraction]) -> Fraction:
    """The largest over D of the sum over S of q_S(D) / sigma_S^2: 2 F(none) - 2 F(D), F a polynomial in the columns.

    F(D) = sum over S of u_S prod_(S) t_i, t_i = -1 for columns of D and n_i - 1 else, u_S = 1 / (sigma_S^2 prod n_i).
    Columns of one size that F has in the same way are exchanged: of those only how many differ counts.
    """
    below = lcm(*(value.denominator * prod(sizes[i] for i in own) for own, value in inverse.items()))
    whole = {
        own: value.numerator * (below // (value.denominator * prod(sizes[i] for i in own)))
        for own, value in inverse.items()
    }
    used = sorted({i for own in inverse for i in own})
    if len(used) <= WORST_COLUMNS:
        values = _transformed(sizes, used, whole)
    else:
        values = _by_classes(sizes, _classes(sizes, used, whole), whole)
    return Fraction(2 * (values[0] - min(values)), below)


def _transformed(sizes: tuple[int, ...], used: list[int], whole: dict[Subset, int]) -> list[int]:
    """F at every set of columns that may differ, none first."""
    places = {column: k for k, column in enumerate(used)}
    values = [0] * 2 ** len(used)
    for own, value in whole.items():
        values[sum(1 << places[i] for i in own)] += value
    for column, k in places.items():
        step, size = 1 << k, sizes[column] - 1
        for start in range(0, len(values), 2 * step):
            for at in range(start, start + step):
                bare, held = values[at], values[at + step]
                values[at], values[at + step] = bare + size * held, bare - held
    return values


def _classes(sizes: tuple[int, ...], used: list[int], whole: dict[Subset, int]) -> list[list[int]]:
    """Columns by size; refused where F is not the same for all sets with as many columns of each."""
    different = sorted({sizes[i] for i in used})
    classes = [[i for i in used if sizes[i] == size] for size in different]
    known: dict[tuple[int, ...], tuple[int, int]] = {}
    for own, value in whole.items():
        kind = tuple(sum(sizes[i] == size for i in own) for size in different)
        same, count = known.get(kind, (value, 0))
        if same != value:
            raise Refused("has too many columns whose parts differ, of records that move")
        known[kind] = same, count + 1
    for kind, (_, count) in known.items():
        if count != prod(comb(len(some), k) for some, k in zip(classes, kind, strict=True)):
            raise Refused("has too many columns that are asked for in different ways, of records that move")
    if prod(len(some) + 1 for some in classes) > MOST_SHAPES:
        raise Refused("has too many columns of different sizes, of records that move")
    return classes


def _by_classes(sizes: tuple[int, ...], classes: list[list[int]], whole: dict[Subset, int]) -> list[int]:
    """F by how many columns of each class differ, none first."""
    different = [sizes[some[0]] for some in classes]
    kinds = {tuple(sum(sizes[i] == size for i in own) for size in different): value for own, value in whole.items()}
    most = [max(kind[c] for kind in kinds) for c in range(len(classes))]
    tables = [
        [_elementary(len(some) - k, different[c] - 1, k, most[c]) for k in range(len(some) + 1)]
        for c, some in enumerate(classes)
    ]

    def below(c: int, left: dict[tuple[int, ...], int]) -> list[int]:
        if c == len(classes):
            return [left.get((), 0)]
        found = []
        for row in tables[c]:
            inner: dict[tuple[int, ...], int] = {}
            for kind, value in left.items():
                inner[kind[1:]] = inner.get(kind[1:], 0) + value * row[kind[0]]
            found += below(c + 1, inner)
        return found

    return below(0, kinds)


def _elementary(same: int, size: int, differing: int, most: int) -> list[int]:
    """Coefficients of (1 + size x)^same (1 - x)^differing up to x^most."""
    return [
        sum(
            comb(same, k - j) * size ** (k - j) * comb(differing, j) * (-1) ** j
            for j in range(max(0, k - same), min(k, differing) + 1)
        )
        for k in range(most + 1)
    ]
