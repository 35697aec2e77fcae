"""A table of the problem as the solvers' numbers: linear lines with slacks, further scalars, and the program of all.

A slack stands for what one probability has beyond another, or beyond a law, wherever a total variation or a delta
costs something; a scalar `worst:k` for the k-th worst case.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass, replace
from privspec.core.rounding import as_float
from privspec.kernel.core.problem import AskedMeasure, Obligation
from privspec.kernel.core.reading import Refused
from privspec.kernel.divergences import Condition as AskedOfLaws
from privspec.kernel.divergences import Curved, HockeyStick
from privspec.kernel.tables_forms import Amount, Condition, Fairness, Limit, Variation, Votes
from privspec.model.worlds import Neighbours
from privspec.problem.elaborate import Problem
from privspec.problem.table_forms import Costs, Table, fractions, laws_of
from privspec.solvers.programs import Array
from privspec.solvers.table_divergences import CurveRatio
from privspec.solvers.table_programs import (
    CompleteRatio,
    Extra,
    LinearRows,
    PairRatio,
    Privacy,
    TableProgram,
    float_ratio,
    float_ratios,
)

Key: TypeAlias = tuple[str | int, ...]
"""Where a line comes from: a word and numbers of the problem's items."""
MOST_LIES = 200_000
"""Rows of the program that one bound on lies may need."""
NONE = Fraction(0)
TABLE, SCALARS = "f", "w"
"""What the table and further scalars of a program are called."""
ROWS, RANGES, COST = "each row of f is a law", "ranges of w", "c"
RATIO, DELTA = "e^epsilon", "delta"


class TooManyError(Exception):
    """A line of the spec, by its number, needs more rows of the program than are stated."""

    def __init__(self, line: int) -> None:
        """Carry the line."""
        super().__init__(f"line {line} needs too many rows")
        self.line = line


@dataclass(frozen=True, eq=False, slots=True)
class LinearLine:
    """sum table[r, c] f_rc + sum scalars[name] w_name = bound, or <= bound; `line` of the spec, 0 for the loss."""

    key: Key
    line: int
    table: Mapping[tuple[int, int], Fraction]
    scalars: Mapping[str, Fraction]
    bound: Fraction
    equality: bool = False


@dataclass(frozen=True, slots=True)
class Scalar:
    """A further unknown number with its range and its share in the loss."""

    name: str
    low: Fraction
    high: Fraction
    cost: Fraction = NONE


Stated: TypeAlias = LinearLine | Scalar


@dataclass(frozen=True, eq=False, slots=True)
class Requested:
    """An obligation with the rows it compares and what its observer tells apart (None: all outputs).

    `inputs`: how many values the inputs that it names take, the |X| of per-atom-LDP.
    """

    index: int
    obligation: Obligation
    neighbours: Neighbours
    view: NDArray[np.intp] | None
    inputs: int
    first: int = 0
    """The row of the program where what is compared begins: rows of the table, or further ones for laws of rows."""

    @property
    def amounts(self) -> dict[str, Fraction]:
        """The figures of its measure."""
        return figures(self.obligation.measure)

    @property
    def condition(self) -> AskedOfLaws:
        """What is asked of any two rows that are compared."""
        return self.obligation.measure.of.condition(self.amounts)

    @property
    def block(self) -> Privacy | None:
        """Its rows of the program; None where it compares no two rows."""
        pairs, distances, condition = self.neighbours.pairs, self.neighbours.distances, self.condition
        if not len(pairs):
            return None
        pairs = pairs + self.first
        if isinstance(condition, Curved):
            return CurveRatio(pairs, condition, self.view)
        assert isinstance(condition, HockeyStick)
        epsilon, delta = condition.epsilon, condition.delta
        if distances is not None:
            return PairRatio(pairs, tuple(epsilon * distance for distance in distances), delta, self.view)
        if self.obligation.measure.of.each_output:
            # the condition of Ramon & Basu 3.3: each single output by itself
            return PairRatio(pairs, (epsilon,), view=self.view, slack=delta / self.inputs)
        if self.neighbours.complete and not delta and not self.first:
            return CompleteRatio(epsilon, self.view)
        return PairRatio(pairs, (epsilon,), delta, self.view)


def figures(measure: AskedMeasure) -> dict[str, Fraction]:
    """The amounts of a measure that are known numbers, by name."""
    return {name: amount for name, amount in measure.amounts if isinstance(amount, Fraction)}


Unasked: TypeAlias = tuple[Costs, Array, LinearRows, LinearRows, Extra, tuple[LinearLine, ...]]
"""Exact and rounded costs, equalities and inequalities, scalars, and the lines that rows come from."""


@dataclass(frozen=True, eq=False)
class TableSystem:
    """The one table of a problem in the solvers' numbers."""

    problem: Problem

    def asked(self, problem: Problem) -> TableSystem:
        """That of a problem of the same table whose obligations ask for other amounts: what depends on none is kept."""
        kept = {key: value for key, value in vars(self).items() if key not in ("problem", "requested", "privacy")}
        found = TableSystem(problem)
        vars(found).update(kept)
        return found

    @property
    def table(self) -> Table:
        """The block."""
        return table_of(self.problem)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.table.shape

    @property
    def loss(self) -> Amount:
        """What is minimised, beside the errors of estimates."""
        return self.table.loss

    @property
    def only_worst(self) -> bool:
        """Whether the loss is one worst case of costs and nothing else."""
        return self.loss.only_worst and not self.loss.worst[0].variations

    @cached_property
    def prior(self) -> Costs | None:
        """The law of rows."""
        return None if self.table.prior is None else fractions(self.table.prior)

    @cached_property
    def expected(self) -> Costs | None:
        """What draws cost on average, the prior included."""
        if self.loss.average is None or self.prior is None:
            return None
        found: Costs = fractions(self.loss.average) * self.prior[:, None]
        return found

    @cached_property
    def worst(self) -> tuple[tuple[Fraction, Costs], ...]:
        """Worst cases with their weights."""
        return tuple((worst.weight, fractions(worst.costs)) for worst in self.loss.worst)

    @cached_property
    def requested(self) -> tuple[Requested, ...]:
        """What each obligation asks of the table."""
        found, rows = [], self.shape[0]
        for index, (one, compared) in enumerate(zip(self.problem.obligations, self.table.compared, strict=True)):
            laws = len(compared.drawn)
            neighbours = Neighbours(
                laws or self.shape[0],
                compared.cliques,
                np.array(compared.pairs.entries, dtype=np.intp).reshape(-1, 3),
                compared.squares if one.measure.distance is not None or one.measure.each else (),
            )
            view, first = view_of(self.table, one.seen), rows if laws else 0
            found.append(Requested(index, one, neighbours, view, compared.inputs, first))
            rows += laws
        return tuple(found)

    @cached_property
    def mixtures(self) -> tuple[Mapping[int, Fraction], ...]:
        """The laws of rows that are compared, each of which is a further row of the program."""
        every = (one.mixtures(self.shape[0]) for one in self.table.compared if one.laws is not None)
        return tuple(law for laws in every for law in laws)

    @cached_property
    def privacy(self) -> tuple[tuple[int, Privacy], ...]:
        """The blocks of the obligations that compare rows, with their numbers."""
        return tuple((r.index, block) for r in self.requested for block in (r.block,) if block is not None)

    @cached_property
    def stated(self) -> tuple[Stated, ...]:
        """Conditions, accuracy, bounds on lies, fairness, numbers and laws that are chosen, with their slacks.

        Raises: TooManyError.
        """
        table = self.table
        found: list[Stated] = []
        for k, condition in enumerate(table.conditions):
            found += _condition(k, condition, self.shape[0])
        for k, line in enumerate(table.accuracy):
            found += _accuracy(k, line, self)
        for k, bound in enumerate(table.manipulation):
            found += _lies(k, bound)
        prices = {price.name: price.weight for price in table.loss.prices}
        found += [Scalar(one.name, one.low, one.high, prices.get(one.name, NONE)) for one in table.choices]
        for law in table.laws:
            found += [Scalar(name, NONE, Fraction(1)) for name in law.masses]
            total = dict.fromkeys(law.masses, Fraction(1)) | ({} if law.weight is None else {law.weight: Fraction(1)})
            found.append(LinearLine(("law", law.name), 0, {}, total, Fraction(1), True))
        for k, fair in enumerate(table.fairness):
            found += _fairness(k, fair, self)
        return tuple(found)

    @cached_property
    def unasked(self) -> Unasked:
        """What the program has beside privacy.

        Raises: TooManyError.
        """
        rows, columns = self.shape
        if self.only_worst:
            weight, worst = self.worst[0]
            cost: Costs = worst * weight
        else:
            cost = np.full(self.shape, NONE, dtype=object) if self.expected is None else self.expected
        if self.mixtures:
            # free, so that a further row costs less than the worst of those of which it is a mixture
            free = np.full((len(self.mixtures), columns), min(NONE, cost.min()) - 1 if self.only_worst else NONE)
            cost, rows = np.concatenate([cost, free]), rows + len(self.mixtures)
        every = [*self.stated, *_mixed(self), *(() if self.only_worst else _loss_lines(self))]
        extra = [one for one in every if isinstance(one, Scalar)]
        lines = [one for one in every if isinstance(one, LinearLine)]
        names = {one.name: rows * columns + k for k, one in enumerate(extra)}
        equal, less = ([line for line in lines if line.equality is kind] for kind in (True, False))
        ranges = zip(*((one.low, one.high, one.cost, one.name) for one in extra), strict=True)
        stated = linear_rows(equal, columns, names), linear_rows(less, columns, names)
        return cost, as_float(cost), *stated, Extra(*ranges) if extra else Extra(), (*equal, *less)

    def beside(self, *words: str) -> tuple[LinearLine, ...]:
        """The lines but for those that come from these words."""
        return tuple(one for one in self.stated if isinstance(one, LinearLine) and one.key[0] not in words)

    @property
    def plain(self) -> bool:
        """Whether privacy of rows and the loss are all there is."""
        return not self.stated and not self.mixtures and self.table.estimates is None


def view_of(table: Table, outputs: Sequence[str]) -> NDArray[np.intp] | None:
    """What whoever sees these outputs tells apart: a number for each column; None if everything."""
    if set(table.outputs) <= set(outputs):
        return None
    return np.array(table.table((), 1).view(outputs), dtype=np.intp)


# --- the program ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class Lowered:
    """A program with what its parts came from.

    `blocks[k]` the number of the obligation of the k-th privacy block; `lines` those of the rows, equalities first;
    `cost` the exact loss that the program rounds.
    """

    program: TableProgram
    cost: Costs
    blocks: tuple[int, ...]
    lines: tuple[LinearLine, ...]


def to_program(system: TableSystem) -> Lowered:
    """The linear program of a finite system.

    Raises: TooManyError.
    """
    cost, rounded, equal, less, extra, lines = system.unasked
    privacy = tuple(block for _, block in system.privacy)
    program = TableProgram(rounded, privacy, system.only_worst, equal, less, extra)
    return Lowered(program, cost, tuple(index for index, _ in system.privacy), lines)


@dataclass(frozen=True, slots=True)
class Labels:
    """What the privacy blocks, the equalities and the inequalities of a program are called, one for each."""

    privacy: tuple[str, ...]
    equalities: tuple[str, ...]
    inequalities: tuple[str, ...]

    @classmethod
    def numbered(cls, program: TableProgram) -> Labels:
        """By their kinds and numbers."""
        equal, less = (len(rows.bounds) for rows in (program.equalities, program.inequalities))
        return cls(tuple(f"privacy {k}" for k in range(len(program.privacy))), ("equal",) * equal, ("less",) * less)


def amounts_of(block: Privacy) -> dict[str, Array]:
    """The amounts of a privacy block that stand in its rows, by name; each ratio once."""
    if isinstance(block, CurveRatio):
        return {}  # bounds at levels, which are found as it is solved
    if isinstance(block, CompleteRatio):
        return {RATIO: np.array(float_ratio(block.log_ratio))}
    ratios = np.unique(float_ratios(block))
    found = {RATIO: ratios if len(ratios) > 1 else ratios[0]}
    return found if block.pure else found | {DELTA: np.array(float(block.delta or block.slack))}


def linear_rows(lines: Sequence[LinearLine], columns: int, names: Mapping[str, int]) -> LinearRows:
    """Lines in the solver's form; `names` the columns of scalars."""
    found = []
    for line in lines:
        table = {r * columns + c: value for (r, c), value in line.table.items()}
        found.append((table | {names[name]: value for name, value in line.scalars.items()}, line.bound))
    return LinearRows.of(found)


def _mixed(system: TableSystem) -> Iterator[LinearLine]:
    """Each further row is a mixture of rows; that it sums to one follows, so that one column need not be said."""
    rows, columns = system.shape
    for k, law in enumerate(system.mixtures):
        for c in range(columns - 1):
            table = {(rows + k, c): Fraction(-1)} | {(r, c): share for r, share in law.items()}
            yield LinearLine(("mixture", k, c), 0, table, {}, NONE, True)


def _loss_lines(system: TableSystem) -> Iterator[Stated]:
    """Total variations in the loss, and worst cases as scalars that no row may exceed."""
    for j, variation in enumerate(system.loss.variations):
        yield from _variation(("loss", "mean", j), 0, variation, system.prior)
    for k, worst in enumerate(system.loss.worst):
        costs, laws = system.worst[k][1], [laws_of(one) for one in worst.variations]
        for j, variation in enumerate(worst.variations):
            yield from _variation(("loss", k, j), 0, variation, None)
        # above the largest cost, so that rows which always cost it keep their room
        most = costs.max() + sum((one.weight for one in worst.variations), NONE) + 1
        yield Scalar(f"worst:{k}", costs.min(), most, worst.weight)
        for r, row in enumerate(costs):
            scalars = {f"worst:{k}": Fraction(-1)}
            for j, (variation, law) in enumerate(zip(worst.variations, laws, strict=True)):
                scalars |= dict.fromkeys(_slacks(("loss", k, j), law, r).values(), variation.weight)
            table = {(r, c): value for c, value in enumerate(row) if value}
            yield LinearLine(("worst", k, r), 0, table, scalars, NONE)


# --- lines ----------------------------------------------------------------------------------------


def _condition(k: int, condition: Condition, rows: int) -> Iterator[LinearLine]:
    if condition.joint is not None:
        columns = condition.joint.shape[1] // rows
        pairs = zip(fractions(condition.joint), fractions(condition.constant), strict=True)
        for place, (sums, constant) in enumerate(pairs):
            entries = {divmod(at, columns): value for at, value in enumerate(sums.tolist()) if value}
            yield LinearLine(("condition", k, place), condition.line, entries, {}, -constant, condition.equality)
        return
    table = None if condition.average is None else fractions(condition.average)
    scalars = {one.name: fractions(one.values) for one in condition.scalars}
    for r, constant in enumerate(fractions(condition.constant)):
        row = {} if table is None else {(r, c): v for c, v in enumerate(table[r]) if v}
        named = {name: values[r] for name, values in scalars.items() if values[r]}
        yield LinearLine(("condition", k, r), condition.line, row, named, -constant, condition.equality)


def _slacks(where: Key, law: Costs, row: int) -> dict[int, str]:
    """By the values that may be drawn too often at a row, the names of their slacks."""
    head = ":".join(map(str, where))
    return {o: f"slack:{head}:{row}:{o}" for o, chance in enumerate(law[row]) if chance < 1}


def _variation(where: Key, line: int, variation: Variation, shares: Costs | None) -> Iterator[Stated]:
    """Slacks (each costs the loss the share of its row times the weight), and that none is less than its excess."""
    law, values = laws_of(variation), np.array(variation.values)
    for r in range(len(law)):
        cost = NONE if shares is None else shares[r] * variation.weight
        for o, name in _slacks(where, law, r).items():
            yield Scalar(name, NONE, Fraction(1), cost)
            table = {(r, int(c)): Fraction(1) for c in np.flatnonzero(values == o)}
            yield LinearLine(("apart", *where, r, o), line, table, {name: Fraction(-1)}, law[r, o])


def _accuracy(k: int, line: Limit, system: TableSystem) -> Iterator[Stated]:
    """One row, or one for each row of the table where a worst case stands in it."""
    amount, prior = line.amount, system.prior
    average: Costs = np.full(system.shape, NONE, dtype=object)
    if amount.average is not None and prior is not None:
        average = fractions(amount.average) * prior[:, None]
    entries = dict(np.ndenumerate(average))
    scalars, limit = {price.name: price.weight for price in amount.prices}, line.limit - amount.constant
    for j, variation in enumerate(amount.variations):
        where: Key = ("accuracy", k, "mean", j)
        yield from _variation(where, line.line, variation, None)
        law = laws_of(variation)
        for r, share in enumerate(prior if prior is not None else ()):
            scalars |= dict.fromkeys(_slacks(where, law, r).values(), variation.weight * share)
    if not amount.worst:
        yield LinearLine(("accuracy", k), line.line, entries, scalars, limit)
        return
    (worst,) = amount.worst
    for j, variation in enumerate(worst.variations):
        yield from _variation(("accuracy", k, 0, j), line.line, variation, None)
    costs, laws = fractions(worst.costs), [laws_of(one) for one in worst.variations]
    for r, row in enumerate(costs):
        table = entries | {(r, c): entries[r, c] + worst.weight * cost for c, cost in enumerate(row)}
        named = dict(scalars)
        for j, (variation, law) in enumerate(zip(worst.variations, laws, strict=True)):
            names = _slacks(("accuracy", k, 0, j), law, r).values()
            named |= dict.fromkeys(names, worst.weight * variation.weight)
        yield LinearLine(("accuracy", k, r), line.line, table, named, limit)


def _fairness(k: int, line: Fairness, system: TableSystem) -> Iterator[Stated]:
    """Equalities for tolerance 0; else slacks for what one group gets more often, that sum to the tolerance."""
    table = system.table
    view = table.table((), 1).view(line.outputs)
    seen, count = np.array(view), max(view) + 1
    mixtures = line.contrast(view, table.weights(), line.tolerances).mixtures
    triples = np.array(line.pairs.entries, dtype=np.intp).reshape(-1, 3)
    firsts: dict[int, int] = {}
    for number, (a, b, level) in enumerate(triples.tolist()):
        tolerance = line.tolerances[level]
        if tolerance >= 1:
            continue  # nothing is farther apart
        if not tolerance and firsts.setdefault(b, a) != a:
            continue  # equal to the first group of its stratum already
        rows = [_difference(mixtures[a], mixtures[b], np.flatnonzero(seen == s)) for s in range(count)]
        if not tolerance:
            for s in range(count - 1):
                yield LinearLine(("fairness", k, number, s), line.line, rows[s], {}, NONE, True)
            continue
        names = [f"slack:fairness:{k}:{number}:{s}" for s in range(count)]
        for s, name in enumerate(names):
            yield Scalar(name, NONE, Fraction(1))
            yield LinearLine(("fairness", k, number, s), line.line, rows[s], {name: Fraction(-1)}, NONE)
        total = dict.fromkeys(names, Fraction(1))
        yield LinearLine(("fairness", k, number, "total"), line.line, {}, total, tolerance)


def _difference(
    left: Mapping[int, Fraction], right: Mapping[int, Fraction], columns: NDArray[np.intp]
) -> dict[tuple[int, int], Fraction]:
    weights = {r: left.get(r, NONE) - right.get(r, NONE) for r in (*left, *right)}
    return {(r, c): weight for r, weight in weights.items() if weight for c in columns.tolist()}


# --- what a lie can bring a voter -----------------------------------------------------------------


def _ranked(above: Mapping[int, int | None]) -> tuple[list[int], list[int]]:
    """The values that stand one before the other, and those of which none is before another."""
    named: list[int] = []
    for value, before in above.items():
        if before != (named[-1] if named else None):
            return named[:-1], [value for value in above if value not in named[:-1]]
        named.append(value)
    return named, []


def _uppers(named: Sequence[int], rest: Sequence[int], count: int, sharpest: bool) -> Iterator[int]:
    """Sets of best alternatives, as bits, but for the set of all of them: the first of `named`, or all and some others.

    `sharpest`: only those that imply all others where nothing at all may be gained.
    """
    if sharpest and rest:
        yield from (_bits(named[:k]) for k in range(1, len(named)))
        yield from (_bits([*named, *rest]) - (1 << a) for a in rest)
        return
    yield from (_bits(named[:k]) for k in range(1, min(len(named) + 1, count)))
    yield from (_bits([*named, *chosen]) for k in range(1, len(rest)) for chosen in combinations(rest, k))


def _bits(chosen: Sequence[int]) -> int:
    return sum(1 << a for a in chosen)


def _lies(k: int, line: Votes) -> Iterator[LinearLine]:
    """No lie raises the probability of a set of best alternatives by more than the limit.

    Where that is 0 and a set is one of best alternatives of both ballots, either could be the lie: one equality.
    """
    try:
        ranks = {pair: _ranked(above) for pair, above in line.contrast().above.items()}
    except Refused:
        raise TooManyError(line.line) from None
    lines, count = 0, len(set(line.winners))
    for (lied, row), best in ranks.items():
        theirs = set() if line.limit else set(_uppers(*ranks[row, lied], count, False))
        for chosen in _uppers(*best, count, not line.limit):
            if chosen in theirs and lied < row:
                continue  # stated from the other side
            lines += 1
            if lines > MOST_LIES:
                raise TooManyError(line.line)
            table = {(lied, c): Fraction(1) for c, a in enumerate(line.winners) if chosen >> a & 1}
            table |= {(row, c): Fraction(-1) for c, a in enumerate(line.winners) if chosen >> a & 1}
            yield LinearLine(("lie", k, lied, row, chosen), line.line, table, {}, line.limit, chosen in theirs)


def table_of(problem: Problem) -> Table:
    """The one block of a finite spec."""
    (table,) = problem.blocks
    assert isinstance(table, Table)
    return table


def edited(problem: Problem, **parts: Any) -> Problem:
    """The problem with other parts of its table."""
    return replace(problem, blocks=(replace(table_of(problem), **parts),))
