"""Tables Pr(column | row): the law that is executed, what an observer sees of it, and what that tells.

Probabilities are whole numbers over one denominator; e^q is rounded down wherever it limits a probability.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import lcm, log

from flint import ctx

from privspec.kernel.core.numbers import BITS, LARGEST_LOG, NONE, ball, end, exp_down, sqrt_down
from privspec.kernel.core.problem import Case, Guarantee, read_guarantees
from privspec.kernel.core.reading import Grid, Item, Refused
from privspec.kernel.divergences import Curved, HockeyStick

DIGITS = 2**31
"""Most binary digits of all numerators together; a denominator has at most 2^17."""
PAIRS = 2**22
"""Most pairs of rows of one obligation, both ways."""
ABSENT = -1e300
"""Stands for the logarithm of zero: comparisons with it are always made exactly."""


@dataclass(frozen=True, slots=True)
class Table:
    """What is executed: numerators (rows, columns) over `denominator`; for each output its value's number by column."""

    outputs: list[str]
    rows: list[object]
    columns: list[object]
    places: list[list[int]]
    numerators: list[list[int]]
    denominator: int

    def view(self, seen: list[str] | tuple[str, ...]) -> list[int]:
        """What whoever sees these outputs tells apart: a number for each column; the last output varies fastest."""
        view = [0] * len(self.columns)
        for name, places in zip(self.outputs, self.places, strict=True):
            if name in seen:
                view = [number * (max(places) + 1) + place for number, place in zip(view, places, strict=True)]
        return view

    def seen(self, view: list[int]) -> list[list[int]]:
        """The numerators of what is seen: columns that look alike are one."""
        found = [[0] * (max(view) + 1) for _ in self.numerators]
        for merged, row in zip(found, self.numerators, strict=True):
            for place, numerator in zip(view, row, strict=True):
                merged[place] += numerator
        return found


@dataclass(frozen=True, slots=True)
class Compared:
    """The rows that an obligation compares: cliques at distance one, and pairs (a, b, level) by squared distance."""

    cliques: tuple[tuple[int, ...], ...]
    pairs: Grid
    squares: tuple[Fraction, ...]
    inputs: int

    def every(self) -> list[tuple[int, int, int]]:
        """Each pair, those of cliques with level -1."""
        if sum(len(rows) ** 2 for rows in self.cliques) > PAIRS:
            raise Refused("the problem compares too many rows")
        inside = [(a, b, -1) for rows in self.cliques for i, a in enumerate(rows) for b in rows[:i]]
        return triples(self.pairs, len(self.squares)) + inside

    def exponent(self, level: int, epsilon: Fraction) -> Fraction:
        """At most epsilon times the distance of a level, by less than 2^-128 of it."""
        return epsilon if level < 0 else sqrt_down(self.squares[level] * epsilon**2, 2 * BITS)

    def ratio(self, level: int, epsilon: Fraction) -> int:
        """The ratio at a level times 2^BITS, rounded down."""
        return int(exp_down(self.exponent(level, epsilon)) * (1 << BITS))


def triples(grid: Grid, levels: int) -> list[tuple[int, int, int]]:
    """Pairs with a level, in any order of the two."""
    found = [(a, b, level) for a, b, level in grid.rows]
    if grid.unit != 1 or any(min(pair) < 0 or pair[0] == pair[1] or pair[2] >= levels for pair in found):
        raise Refused("the problem compares what are no pairs")
    return found


def read_law(item: Item, size: tuple[int, int]) -> tuple[list[list[int]], int]:
    """Numerators and common denominator of the executed law, whose rows sum to one."""
    table, whole = [[p.exact(0) for p in row.items(size[1])] for row in item.items(size[0])], 1
    for below in {p.denominator for row in table for p in row}:
        whole = lcm(whole, below)
        if whole.bit_length() * size[0] * size[1] > DIGITS or whole.bit_length() > DIGITS >> 14:
            raise item.wrong("have no common denominator of a reasonable size")
    for number, law in enumerate(laws := [[p.numerator * (whole // p.denominator) for p in row] for row in table]):
        if sum(law) != whole:
            raise item.wrong(f"have a row, {number}, that does not sum to one")
    return laws, whole


def broken(
    laws: list[list[int]], whole: int, asked: Compared, epsilon: Fraction, delta: Fraction, *, single: bool
) -> list[int]:
    """Two rows with f_a > e^(epsilon distance) f_b + delta in a `single` column, or in a set; none if there are none.

    Logarithms are off by less than `error`, however many digits there are: whatever is nearer is compared exactly.
    """
    room, error = int(delta * whole * (1 << BITS)), (log(whole) + LARGEST_LOG) * 2.0**-48
    for rows in asked.cliques if single else []:
        ratio = asked.ratio(-1, epsilon)
        for column in zip(*(laws[row] for row in rows), strict=True):
            if max(column) << BITS > min(column) * ratio + room:
                return [rows[column.index(max(column))], rows[column.index(min(column))]]
    logs = [[log(n) if n else ABSENT for n in row] for row in laws] if single else []
    for a, b, level in triples(asked.pairs, len(asked.squares)) if single else asked.every():
        if single:
            limit = float(asked.exponent(level, epsilon)) - error
            gaps = [x - y for x, y in zip(logs[a], logs[b], strict=True)]
            if -limit < min(gaps) and max(gaps) < limit:
                continue
        ratio = asked.ratio(level, epsilon)
        for one, other in ((a, b), (b, a)):
            over = [(x << BITS) - y * ratio for x, y in zip(laws[one], laws[other], strict=True)]
            if (max(over) if single else sum(part for part in over if part > 0)) > room:
                return [one, other]
    return []


def let_through(laws: list[list[int]], whole: int, asked: Compared) -> dict[str, Fraction]:
    """The largest logarithm of a ratio, rounded up; where a law has what another has not, the largest total variation.

    Whatever their distance is: a unit that no line is about may move from any of its rows to any other.
    """
    over, under, apart = 1, 1, 0
    for a, b, _ in asked.every():
        apart = max(apart, sum(x - y for x, y in zip(laws[a], laws[b], strict=True) if x > y))
        for pair in zip(laws[a], laws[b], strict=True):
            if max(pair) * under > min(pair) * over:
                over, under = max(pair), min(pair)
    if not under:
        return {"epsilon": NONE, "delta": Fraction(apart, whole)}
    with ctx.workprec(2 * BITS):
        return {"epsilon": end(ball(Fraction(over, under)).log().upper()), "delta": NONE}


def privacy(case: Case, table: Table, compared: list[Compared], chosen: dict[str, Fraction]) -> list[Guarantee]:
    """Judge every guarantee: what its observer sees, and what the rows that it compares tell of each other."""
    frame, guarantees, every = case.frame, read_guarantees(case.guarantees, case.frame, chosen), set(table.outputs)
    local = frame.trust.means.alone
    if frame.trust.means.shared or (local and any(one.party for one in frame.data)):
        raise Refused("a table is drawn by one keeper, or is one party's report")
    for guarantee, asked in zip(guarantees, compared, strict=True):
        line, limits, reached, number = guarantee.obligation, guarantee.asked, guarantee.achieved, guarantee.number
        seen, measure, name, found = set(line.seen), line.measure.of, line.measure.name, list[int]()
        holds = set(line.outputs) <= seen <= every and (seen == every or not local)
        case.says("view", holds, f"line {line.line} is about whoever sees {', '.join(line.seen)}", number)
        figures = ", ".join(f"{key} = {float(value):.9g}" for key, value in reached.items())
        text, within = f"line {line.line}, {line.neighbours}: {name} with {figures}", _within(guarantee, asked)
        if within:
            laws, whole = table.seen(table.view(list(line.seen))), table.denominator
            match measure.condition(reached):
                case HockeyStick(epsilon, delta):
                    found = broken(laws, whole, asked, epsilon, delta, single=not delta)
                case Curved() as curve:
                    pairs = ((laws[a], laws[b], [a, b]) for a, b, _ in asked.every())
                    found = next((at for p, q, at in pairs if not curve.holds(p, q, whole)), [])
                case _:
                    raise Refused(f"{name} is not known of tables")
            if measure.each_output and not found:
                found = broken(laws, whole, asked, limits["epsilon"], limits["delta"] / asked.inputs, single=True)
        if found:
            text = f"not true: {text}, as {' beside '.join(str(table.rows[row]) for row in found)} shows"
        text = text if within else f"line {line.line}: figures that are not within {name}"
        case.says("privacy", within and not found, text, number)
    return guarantees


def _within(guarantee: Guarantee, asked: Compared) -> bool:
    """Whether a plan's figures are those of the measure and at most what is asked; levels are people's own epsilons."""
    measure, limits, reached = guarantee.obligation.measure, guarantee.asked, guarantee.achieved
    own = {(one.figures({})["epsilon"] / limits["epsilon"]) ** 2 for one in measure.each if len(limits) == 1}
    fits = set(limits) - {"delta"} <= set(reached) <= set(limits) and (not measure.each or set(asked.squares) <= own)
    free = {"delta"} if measure.of.each_output else set[str]()
    fits = fits and limits.get("order") == reached.get("order")
    return fits and all(reached[k] <= limits[k] for k in {*reached} - free)
