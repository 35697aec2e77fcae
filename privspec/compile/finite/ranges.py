"""Wider ranges of the outputs: the smallest that let a spec be met."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from math import prod

from privspec.core.spans import Span
from privspec.model.domains import Domain, FiniteSet, Grid, IntegerRange, Power
from privspec.model.graph import GraphNode, Model

MOST_ENTRIES = 10_000
"""Entries of the largest table that is tried."""
MOST_TIMES = 32
"""Widest range that is tried, in widths of the range as written."""
_FEW = 4


@dataclass(frozen=True, eq=False, slots=True)
class RangeLine:
    """The line that says where a numeric output lies."""

    node: GraphNode
    rows: int

    @property
    def span(self) -> Span:
        """Where the output is declared."""
        return self.node.span

    def wider(self, model: Model, below: int, above: int) -> Model | None:
        """The spec with further values of the output; None where the table would be too large."""
        assert self.node.domain is not None
        domain = extended(self.node.domain, below, above)
        if domain is None:
            return None
        sizes = [o.domain.size or 0 for o in model.outputs if o.domain is not None and o.name != self.node.name]
        if prod(sizes) * (domain.size or 0) * self.rows > MOST_ENTRIES:
            return None
        return self._with(model, domain)

    def direction(self, model: Model, possible: Callable[[Model], bool]) -> tuple[int, int] | None:
        """Which ends must move, as (1, 1), (0, 1) or (1, 0), if a much wider range is enough; None if it is not.

        Of the wide range a few values are tried: others need not be used.
        """
        assert self.node.domain is not None
        for below, above in ((1, 1), (0, 1), (1, 0)):
            most = self._most(model, below, above)
            few = sparse_range(self.node.domain, below * most, above * most)
            if most and few is not None and possible(self._with(model, few)):
                return below, above
        return None

    def _with(self, model: Model, domain: Domain) -> Model:
        return replace(model, nodes={**model.nodes, self.node.name: replace(self.node, domain=domain)})

    def _most(self, model: Model, below: int, above: int) -> int:
        """How often the range can be widened by so much."""
        size = getattr(self.node.domain, "size", None) or 0
        most = size * MOST_TIMES // max(below + above, 1)
        while most and self.wider(model, below * most, above * most) is None:
            most //= 2
        return most

    def smallest(self, model: Model, possible: Callable[[Model], bool]) -> tuple[int, int] | None:
        """How many values to add below and above, neither of which can be made smaller by itself; None if none help."""

        def works(below: int, above: int) -> bool:
            changed = self.wider(model, below, above)
            return changed is not None and possible(changed)

        found = self.direction(model, possible)
        if found is None:
            return None
        below, above = found
        both = _least(lambda k: works(below * k, above * k), self._most(model, below, above))
        low = _fewer(lambda k: works(k, above * both), below * both)
        return low, _fewer(lambda k: works(low, k), above * both)

    def words(self, below: int, above: int) -> str:
        """The range to ask for."""
        assert self.node.domain is not None
        domain = extended(self.node.domain, below, above)
        assert domain is not None
        return f"widen {self.node.name} to at least {domain.describe()}"


def _least(works: Callable[[int], bool], high: int) -> int:
    """The least number from 0 that works, where `high` does and more never harms."""
    low, step = -1, 1
    while low + step < high and not works(low + step):
        low, step = low + step, 2 * step
    high = min(high, low + step)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if works(middle) else (middle, high)
    return high


def _fewer(works: Callable[[int], bool], high: int) -> int:
    """As `_least`, where it is likely that `high` is it."""
    return _least(works, high) if high and works(high - 1) else high


def extended(domain: Domain, below: int, above: int) -> Domain | None:
    """With so many values more at both ends, spaced as they are; None for words and uneven sets."""
    match domain:
        case IntegerRange():
            return IntegerRange(domain.low - below, domain.high + above)
        case Grid():
            last = domain.low + ((domain.size or 1) - 1) * domain.step
            return Grid(domain.low - below * domain.step, last + above * domain.step, domain.step)
        case FiniteSet(items=items):
            return _extended_set(items, below, above)
        case Power():
            base = extended(domain.base, below, above)
            return None if base is None else Power(base, domain.exponents)
    return None


def sparse_range(domain: Domain, below: int, above: int) -> Domain | None:
    """The domain with a few of the values that `extended` would add."""
    if isinstance(domain, Power):
        base = sparse_range(domain.base, below, above)
        return None if base is None else Power(base, domain.exponents)
    wide = extended(domain, below, above)
    if wide is None:
        return None
    every = tuple(wide.elements())
    ends = [k * below // _FEW for k in range(_FEW)], [len(every) - 1 - k * above // _FEW for k in range(_FEW)]
    own = range(below, len(every) - above)
    return FiniteSet(tuple(every[k] for k in sorted({*ends[0], *own, *ends[1]})))


def _extended_set(items: tuple[object, ...], below: int, above: int) -> FiniteSet | None:
    numbers = sorted(item for item in items if isinstance(item, Fraction))
    steps = {b - a for a, b in pairwise(numbers)}
    if len(numbers) != len(items) or len(steps) != 1:
        return None
    (step,) = steps
    lower = [numbers[0] - k * step for k in range(below, 0, -1)]
    return FiniteSet((*lower, *numbers, *(numbers[-1] + k * step for k in range(1, above + 1))))
