"""What clipping to limits costs, where a law says which numbers lie beyond them: the target is what is not clipped.

Laws of real numbers are those of finite reports of real numbers; here they are not cut off at the domain. What a law
says is asserted by the user, and no guarantee rests on it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from privspec.core.records import dataclass, replace
from privspec.kernel.core.reading import Grid, JsonNode, Refused
from privspec.kernel.writing import write
from privspec.language.walk import names_used
from privspec.model.domains import Ball, Between
from privspec.model.graph import Model
from privspec.model.neighbours import InputBlock
from privspec.model.reports import Failure
from privspec.model.requirements import DataModel

if TYPE_CHECKING:
    from privspec.kernel.designs import Clipped
    from privspec.problem.elaborate import Problem

BITS = 96
"""Binary digits of the moments that are stated."""


@dataclass(frozen=True, slots=True)
class Limited:
    """Numbers that are clipped: of an input, or a `column` of a table; `chosen`, whether an end of them is."""

    block: InputBlock
    column: str
    low: Fraction
    high: Fraction
    chosen: bool
    law: DataModel | None

    @property
    def name(self) -> str:
        """As the spec writes it."""
        return f"{self.block.name}.{self.column}" if self.column else self.block.name


def limited(model: Model) -> list[Limited]:
    """The real numbers of the inputs that have two ends."""
    found, chosen = list[Limited](), set(model.chosen)
    written = {one.target.name: one.domain for one in model.spec.variables}
    laws = {one.subject: one for one in model.models if not one.joint}
    for block in model.blocks:
        domain = written.get(block.name)
        open_ends = bool(domain and chosen & set(names_used(domain)))
        columns = [(name, own) for name, own in block.schema or () if isinstance(own, Between)]
        low, high = block.domain.bounds
        plain = block.schema is None and not isinstance(block.base_domain, Ball) and block.base_domain.spacing is None
        if plain and low is not None and high is not None:
            found.append(Limited(block, "", low, high, open_ends, laws.get(block.name)))
        for name, own in columns:
            found.append(Limited(block, name, own.low, own.high, open_ends, laws.get(f"{block.name}.{name}")))
    return found


def clipped_of(model: Model, problem: Problem) -> Clipped | None:
    """What moving numbers into their limits adds to the loss; None where no law says so, or laws of several numbers."""
    numbers = [one for one in limited(model) if one.law is not None]
    if len(numbers) != 1 or len(problem.blocks) > 1 or problem.blocks[0].FORM != "linear":
        return None
    from privspec.kernel.designs import Clipped  # reads every form of block

    (one,) = numbers
    try:
        mean, square = _moved(model, one)
    except Failure:
        return None  # a law of none but listed values
    if not square:
        return None
    found = Clipped(one.block.name, one.column, mean, square, _cells(model, one), Fraction(0))
    try:
        return replace(found, lost=found.derived(JsonNode(write(problem), "problem")))
    except Refused:
        return None


def _moved(model: Model, one: Limited) -> tuple[Fraction, Fraction]:
    """The mean, and the mean square, of how far a number is moved."""
    from privspec.problem.cells import shares_of_law

    assert one.law is not None
    below, _, above = shares_of_law(model, one.law, one.low, one.high)
    mean = one.low * below[0] - below[1] - (above[1] - one.high * above[0])
    sides = [(mass, first, second, end) for (mass, first, second), end in ((below, one.low), (above, one.high))]
    square = sum((second - 2 * end * first + end**2 * mass for mass, first, second, end in sides), Fraction(0))
    short = [Fraction(round(value * 2**BITS), 2**BITS) for value in (mean, square)]
    return short[0], max(short[1], short[0] ** 2)


def _cells(model: Model, one: Limited) -> Grid | None:
    """The chances of the cells of the other columns, where laws of all of them say so."""
    from privspec.problem.elaborate import chances_of

    others = [(name, domain) for name, domain in one.block.schema or () if name != one.column]
    if not others or any(isinstance(domain, Between) for _, domain in others):
        return None
    return chances_of(model, one.block, others)
