"""A plan of sums of what parties hold as a mechanism that can be run: exact reports, and sums of their estimates.

A report is the place of a column. It is drawn by exact chances: first, for a number of an interval, the row by the law
of that number, then the column by the row. Sums of estimates are exact, and written as the nearest doubles.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import accumulate
from math import lcm
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import replace
from privspec.execute.data import located
from privspec.execute.drawing import Numbers, RowLaw, draw_each, read_places
from privspec.execute.family import Drawn, RunContext
from privspec.execute.keeper import given_for
from privspec.execute.reading import Declared
from privspec.families.number.report_execution import Interval, OfPlaces, PlacesSecret, read_points_of, within
from privspec.kernel.core.problem import Data
from privspec.kernel.means import Listed, MeanBlock, Means, Number
from privspec.noise.samplers import Randomness

RULE = (
    "each number by itself: one outside its domain moves to the nearest number of it (halfway, to the larger), and "
    "what is missing or cannot be read becomes the number of the domain that is nearest to zero"
)
Columns = NDArray[np.int64]


class MeanMechanism(OfPlaces[Means, list[Fraction]]):
    """Each party sends a report; what is released is computed from how many reports of each kind there are."""

    BLOCK = MeanBlock

    @staticmethod
    def content(block: Any, _source: Data, data: Mapping[str, Any], circumstances: RunContext) -> list[Fraction]:
        if isinstance(block.held, Listed):
            declared = Declared(block.source, (block.count,), block.party)
            source = located(block.source, given_for(block.source, data))
            places = read_places(Numbers(block.held.values), declared, source, circumstances)
            return [block.held.values[place] for place in places.tolist()]
        low, *_, high = block.held.ends
        domain = Interval(block.source, block.party, (block.count,), 1, low, high)
        return [number for (number,) in read_points_of(domain, data, circumstances)]

    @property
    def nothing(self) -> list[Fraction]:
        """Everybody has the first number."""
        block: MeanBlock = self.executed.block
        first = block.held.values[0] if isinstance(block.held, Listed) else block.held.ends[0]
        return [first] * block.count

    def by_party(self, number: int) -> Self:
        executed: Any = self.executed
        return self if executed.of is None else replace(self, executed=executed.kinds[executed.of[number]])

    def said(self, own: Any, randomness: Randomness) -> NDArray[Any]:
        return np.array([str(place + 1) for place in own.reports(randomness).tolist()], dtype=object)

    def heard(self, said: Sequence[Any]) -> int:
        """The place of a report, from 0."""
        (one,) = said
        return int(str(one)) - 1

    def possible(self, report: int) -> bool:
        """Whether there is such a report."""
        return 0 <= report < len(self.executed.term.rows[0])

    def combined(self, reports: Sequence[int] | NDArray[Any]) -> Drawn:
        starts = self.starts
        of = self.executed.of or (0,) * len(reports)
        return self.released(Counter(starts[kind] + int(one) for kind, one in zip(of, reports, strict=True)))

    @property
    def starts(self) -> list[int]:
        """The first column of every kind, among those of all."""
        return [0, *accumulate(estimates.shape[0] for _, estimates in self.executed.each)]

    def released(self, counts: Mapping[int, int]) -> Drawn:
        """The estimates, from how many reports of each column there are."""
        values, block, found, start = self.estimated(counts), self.executed.block, dict[str, NDArray[Any]](), 0
        for output in block.outputs:
            size = int(np.prod(output.shape, dtype=int))
            found[output.name] = np.array(values[start : start + size]).reshape(output.shape)
            start += size
        return Drawn(found)

    def estimated(self, counts: Mapping[int, int]) -> list[float]:
        """All numbers, the nearest doubles of what is exact."""
        executed = self.executed
        rows = [(row, estimates.unit) for _, estimates in executed.each for row in estimates.rows]
        sums = [Fraction(0)] * executed.numbers
        for column, many in counts.items():
            row, unit = rows[column]
            sums = [one + many * entry * unit for one, entry in zip(sums, row, strict=True)]
        parts = zip(executed.block.numbers, sums, executed.block.ranges, strict=True)
        return [_released(number, number.scale * one + number.shift, ends) for number, one, ends in parts]


def _released(number: Number, value: Fraction, ends: tuple[Fraction, Fraction]) -> float:
    """A sum, or the root of it once it is moved to where it may lie."""
    return float(value) if number.root == 1 else float(within(value, *ends)) ** (1 / number.root)


class MeanSecret(PlacesSecret[MeanMechanism, list[Fraction]]):
    """The number of each party."""

    RULE = RULE

    @property
    def size(self) -> int:
        return len(self.content)

    def reports(self, randomness: Randomness) -> Columns:
        """The column that each party reports, among those of all kinds."""
        executed, rows = self.mechanism.executed, self.rows(randomness)
        of = np.zeros(len(rows), dtype=np.int64) if executed.of is None else np.array(executed.of)
        found = np.empty(len(rows), dtype=np.int64)
        for number, (kind, start) in enumerate(zip(executed.kinds, self.mechanism.starts, strict=False)):
            laws = [RowLaw.of(row, kind.term.whole) for row in kind.term.rows]
            found[of == number] = draw_each(laws, rows[of == number], randomness).astype(np.int64) + start
        return found

    def rows(self, randomness: Randomness) -> Columns:
        """The row that each party draws by; numbers that are alike are drawn together."""
        held = self.mechanism.executed.block.held
        kept = np.empty(len(self.content), dtype=np.int64)
        places: dict[Fraction, list[int]] = {}
        for place, value in enumerate(self.content):
            places.setdefault(value, []).append(place)
        for value, alike in places.items():
            rows, chances = zip(*held.drawn(value), strict=True)
            if len(rows) == 1:
                kept[alike] = rows[0]
                continue
            whole = lcm(*(chance.denominator for chance in chances))
            law = RowLaw.of([int(chance * whole) for chance in chances], whole)
            kept[alike] = np.array(rows)[law.draws(len(alike), randomness)]
        return kept

    def numbers(self, randomness: Randomness) -> NDArray[np.float64]:
        """The estimates of one release."""
        return np.array(self.mechanism.estimated(Counter(self.reports(randomness).tolist())))

    def draw(self, randomness: Randomness) -> Drawn:
        return self.mechanism.released(Counter(self.reports(randomness).tolist()))


MeanMechanism.SECRET = MeanSecret
