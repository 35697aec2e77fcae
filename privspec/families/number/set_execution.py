"""A plan of histograms of what parties hold as a mechanism that can be run: exact sets of values, counted.

The own value is in a set by an exact coin; the other values are a uniform choice of so many of all others. Sets of many
people are drawn together: where they are small, as places that are drawn until all differ, else as the places of the
least of as many random words, drawn again where the last that is taken and the next are equal. Neither looks at what
anybody holds, and both are exactly uniform, as no word or place is before another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import replace
from privspec.execute.data import Grid, count_cells, located
from privspec.execute.drawing import Atom, Numbers, RowLaw, Words, read_places, symbol
from privspec.execute.family import Drawn, RunContext
from privspec.execute.keeper import given_for
from privspec.execute.reading import Declared
from privspec.execute.sources import is_frame, looked_up
from privspec.families.number.report_execution import OfPlaces, PlacesSecret
from privspec.kernel.core.linear import Column, InputLayout
from privspec.kernel.core.numbers import ZERO
from privspec.kernel.core.problem import Data
from privspec.kernel.reports import Frequencies, FrequencyBlock, Sets
from privspec.model.values import show
from privspec.noise.samplers import Randomness

RULE = (
    "each value by itself: a number moves to the nearest value of its domain (halfway, to the larger), a missing or "
    "unreadable number to the value nearest to zero; a word that is missing or not in its set becomes the set's first"
)
Places = NDArray[np.int64]
AT_ONCE = 2**22
"""Words or places that are laid out at a time."""
HALF = 2**32


def atom_of(block: FrequencyBlock) -> Atom:
    """How the values of a block are read."""
    if block.lower is None:
        return Words(tuple(map(symbol, block.listed)))
    return Numbers(tuple(Fraction(block.value(place)) for place in range(block.values)))


def _of_records(block: FrequencyBlock, said: Data, source: Any, circumstances: RunContext) -> Places:
    """Of each party the place of the values of its record; the first ones where it has none."""
    parties = (Column(block.party, (), 1, block.count, shared=False, cuts=()),) if block.count > 1 else ()
    size = block.count * block.values
    held = InputLayout(
        block.source, 0, size, "cells", (block.count,), ZERO, None, None, (*parties, *block.columns), block.count, None
    )
    if not is_frame(source) and not isinstance(source, Path):
        derived = {one.name: [own.name for own in one.columns] for one in said.derived}
        names = [name for column in held.columns for name in derived.get(column.name, [column.name])]
        source = looked_up(source, names)  # objects, one a record
    counts = count_cells(Grid(held, Fraction(1), index=block.party, derived=said.derived), source, circumstances)
    places = counts.reshape(block.count, block.values).argmax(axis=1)
    return places.astype(np.int64) if block.group is None else (~np.isin(places, block.group)).astype(np.int64)


# --- sets of values ------------------------------------------------------------------------------------


def choices(many: int, size: int, count: int, randomness: Randomness) -> Iterator[Places]:
    """Uniform choices (m, size) of so many of the places 0 .. many - 1, for `count` people in all, some at a time."""
    if size in (0, many):
        yield np.tile(np.arange(size), (count, 1))
        return
    few = size * size <= many
    step = max(AT_ONCE // (size if few else many), 1)
    for start in range(0, count, step):
        yield (_distinct if few else _least)(many, size, min(step, count - start), randomness)


def _distinct(many: int, size: int, count: int, randomness: Randomness) -> Places:
    """Independent places, all of a person's drawn again until they differ."""
    found = np.empty((count, size), dtype=np.int64)
    open_ = np.arange(count)
    while len(open_):
        drawn = _below(many, len(open_) * size, randomness).reshape(-1, size)
        drawn.sort(axis=1)
        found[open_] = drawn
        open_ = open_[(drawn[:, 1:] == drawn[:, :-1]).any(axis=1)]
    return found


def _below(many: int, count: int, randomness: Randomness) -> Places:
    """Uniform places below a bound of at most 2^32, by rejection (Lemire 2019)."""
    found = np.empty(count, dtype=np.int64)
    open_, least = np.arange(count), np.uint64(HALF % many)
    while len(open_):
        product = _halves(len(open_), randomness).astype(np.uint64) * np.uint64(many)
        found[open_] = (product >> np.uint64(32)).astype(np.int64)
        open_ = open_[(product & np.uint64(HALF - 1)) < least]
    return found


def _halves(count: int, randomness: Randomness) -> NDArray[np.uint32]:
    """Uniform words of 32 bits."""
    return randomness.words(-(-count // 2)).view(np.uint32)[:count]


def _least(many: int, size: int, count: int, randomness: Randomness) -> Places:
    """The places of the least of as many random words as there are places."""
    found = np.empty((count, size), dtype=np.int64)
    open_ = np.arange(count)
    while len(open_):
        drawn = _halves(len(open_) * many, randomness).reshape(-1, many)
        order = np.argpartition(drawn, size, axis=1)[:, : size + 1]
        sorted_ = np.take_along_axis(drawn, order, axis=1)
        found[open_] = order[:, :size]
        # what comes next is at its place: as small as the largest that is taken, and either might have been
        open_ = open_[sorted_[:, :size].max(axis=1) == sorted_[:, size]]
    return found


def supports(found: Sets, places: Places, randomness: Randomness) -> Places:
    """How many sets hold each value (k,), of one set of each person."""
    k, chance = found.block.told, found.chance
    coin = RowLaw.of((chance.numerator, chance.denominator - chance.numerator), chance.denominator)
    kept = coin.draws(len(places), randomness) == 0
    total: Places = np.bincount(places[kept], minlength=k)
    for with_own in (True, False):
        own, start = places[kept == with_own], 0
        for others in choices(k - 1, found.subset - with_own, len(own), randomness):
            mine = own[start : start + len(others), None]
            total += np.bincount((others + (others >= mine)).reshape(-1), minlength=k)
            start += len(others)
    return total


def estimates(found: Sets, total: Places) -> NDArray[np.float64]:
    """The unbiased estimates of what is released, from how many of all sets of a kind hold each value."""
    # whole numbers throughout: their quotient is the nearest double
    factor, others = found.block.scale / (found.chance - found.others), found.others
    below = factor.denominator * others.denominator
    shift = found.block.count * others.numerator
    return np.array(
        [(one * others.denominator - shift) * factor.numerator / below for one in total.tolist()], dtype=np.float64
    )


def released(found: Frequencies, values: NDArray[np.float64]) -> Drawn:
    """The estimates with the value that each is of, and its standard error at these estimates themselves."""
    block, name = found.block, found.block.output
    if block.group is not None:
        values = values[:1]
    share = np.clip(values / float(block.scale * block.count), 0, 1)
    variance = np.zeros(len(values))
    for kind in found.kinds:
        own, other = map(float, kind.variances())
        variance += kind.block.count * (share * own + (1 - share) * other)
    errors = float(block.scale) * np.sqrt(variance)
    if block.group is not None:
        return Drawn({name: values[0]}, deviations={name: errors[0]})
    return Drawn({name: values}, labels={name: {block.source: labels(block)}}, deviations={name: errors})


def labels(block: FrequencyBlock) -> NDArray[Any]:
    """The values as they are written beside their counts."""
    if block.lower is not None and block.step is not None and block.lower.denominator == block.step.denominator == 1:
        return int(block.lower) + int(block.step) * np.arange(block.values)
    return np.array([show(block.value(place)) for place in range(block.values)], dtype=object)


# --- the mechanism -------------------------------------------------------------------------------------


class HistogramMechanism(OfPlaces[Frequencies, Places]):
    """Each party sends a set of values; what is released is computed from all of them."""

    BLOCK = FrequencyBlock

    @staticmethod
    def content(block: Any, said: Data, data: Mapping[str, Any], circumstances: RunContext) -> Places:
        source = located(block.source, given_for(block.source, data))
        if block.columns:
            return _of_records(block, said, source, circumstances)
        declared = Declared(block.source, (block.count,), block.party)
        places = read_places(atom_of(block), declared, source, circumstances)
        if block.group is None:
            return places.astype(np.int64)
        return (~np.isin(places, block.group)).astype(np.int64)  # those of the group first

    @property
    def nothing(self) -> Places:
        """Everybody has the first value."""
        return np.zeros(self.executed.block.count, dtype=np.int64)

    def by_party(self, number: int) -> Self:
        executed: Any = self.executed
        if executed.of is None:
            return self
        return replace(self, executed=replace(executed, sets=(executed.sets[executed.of[number]],), of=None))

    # --- messages: the places of a set, or the bits of all values where these are shorter

    @property
    def _packed(self) -> bool:
        block, (kind,) = self.executed.block, self.executed.kinds
        return 2 * -(-block.told // 8) < kind.subset * (len(str(block.told)) + 1)

    def said(self, own: Any, randomness: Randomness) -> NDArray[Any]:
        held = supports(self.executed.kinds[0], own.content, randomness)
        if self._packed:
            return np.array([np.packbits(held.astype(np.bool_)).tobytes().hex()], dtype=object)
        return np.array([str(place + 1) for place in np.flatnonzero(held).tolist()], dtype=object)

    def heard(self, said: Sequence[Any]) -> Places:
        """The places of a set, from 0."""
        values = self.executed.block.told
        if not self._packed:
            return np.array([int(str(one)) - 1 for one in said], dtype=np.int64)
        (text,) = said
        bits = np.unpackbits(np.frombuffer(bytes.fromhex(str(text)), dtype=np.uint8))
        if len(bits) != 8 * -(-values // 8) or bits[values:].any():
            raise ValueError("bits of no values")
        return np.flatnonzero(bits).astype(np.int64)

    def possible(self, report: Places) -> bool:
        """Whether these are the places of a set of the size of all."""
        fits = len(set(report.tolist())) == len(report) == self.executed.kinds[0].subset
        return bool(fits and report.min() >= 0 and report.max() < self.executed.block.told)

    def combined(self, reports: Sequence[Places] | NDArray[Any]) -> Drawn:
        found = self.executed
        totals = np.zeros((len(found.kinds), found.block.told), dtype=np.int64)
        for kind, report in zip(found.of or (0,) * len(reports), reports, strict=True):
            totals[kind, report] += 1
        values = sum(estimates(kind, total) for kind, total in zip(found.kinds, totals, strict=True))
        return released(found, np.asarray(values))


class HistogramSecret(PlacesSecret[HistogramMechanism, Places]):
    """The place of the value of each party."""

    RULE = RULE

    @property
    def size(self) -> int:
        """In draws of single noise numbers, which take a thousand times as long as a place of many sets."""
        block = self.mechanism.executed.block
        return max(block.told, block.told * len(self.content) // 1000)

    def numbers(self, randomness: Randomness) -> NDArray[np.float64]:
        """The estimates of one release."""
        values = self._estimated(randomness)
        return values if self.mechanism.executed.block.group is None else values[:1]

    def _estimated(self, randomness: Randomness) -> NDArray[np.float64]:
        found = self.mechanism.executed
        of = np.zeros(len(self.content)) if found.of is None else np.array(found.of)
        each = (supports(kind, self.content[of == number], randomness) for number, kind in enumerate(found.kinds))
        values: NDArray[np.float64] = np.sum([estimates(*pair) for pair in zip(found.kinds, each, strict=True)], axis=0)
        return values

    def draw(self, randomness: Randomness) -> Drawn:
        return released(self.mechanism.executed, self._estimated(randomness))


HistogramMechanism.SECRET = HistogramSecret
