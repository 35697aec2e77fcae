"""The forms of a table's block, and what each says of a law that is executed: evaluated exactly."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from privspec.kernel.core.reading import Grid, Refused
from privspec.kernel.core.tables import PAIRS, Compared, Table, triples

NONE = Fraction(0)


@dataclass(frozen=True, slots=True)
class Variation:
    """`weight` times the total variation, row by row, between the value drawn (by column) and a law of the row."""

    weight: Fraction
    values: list[int]
    law: Grid

    def at(self, table: Table, row: int) -> Fraction:
        """Its share of the total at a row."""
        mass = [NONE] * len(self.law.rows[row])
        for value, numerator in zip(self.values, table.numerators[row], strict=True):
            mass[value] += Fraction(numerator, table.denominator)
        gaps = (n - chance * self.law.unit for n, chance in zip(mass, self.law.rows[row], strict=True))
        return self.weight * sum((gap for gap in gaps if gap > 0), NONE)


@dataclass(frozen=True, slots=True)
class Worst:
    """`weight` times the largest, over rows, of average costs and total variations."""

    weight: Fraction
    costs: Grid
    variations: list[Variation]


@dataclass(frozen=True, slots=True)
class Price:
    """`weight` times a number that is chosen."""

    name: str
    weight: Fraction


@dataclass(frozen=True, slots=True)
class Amount:
    """Averages over rows and draws, worst cases, prices of chosen numbers, and a constant."""

    average: Grid | None
    variations: list[Variation]
    worst: list[Worst]
    prices: list[Price]
    constant: Fraction

    def value(self, table: Table, prior: list[Fraction], chosen: dict[str, Fraction]) -> Fraction:
        """Under a table and the numbers that are chosen."""
        total = self.constant + sum((price.weight * chosen[price.name] for price in self.prices), NONE)
        if self.average is not None:
            total += sum((p * mean for p, mean in zip(prior, row_means(table, self.average), strict=True)), NONE)
        for one in self.variations:
            total += sum((p * one.at(table, row) for row, p in zip(range(len(table.rows)), prior, strict=True)), NONE)
        for worst in self.worst:
            means = enumerate(row_means(table, worst.costs))
            total += worst.weight * max(sum((v.at(table, r) for v in worst.variations), mean) for r, mean in means)
        return total


def row_means(table: Table, costs: Grid) -> list[Fraction]:
    """The average cost of a draw, row by row."""
    each = zip(table.numerators, costs.rows, strict=True)
    unit = costs.unit / table.denominator
    return [unit * sum(n * cost for n, cost in zip(row, own, strict=True)) for row, own in each]


@dataclass(frozen=True, slots=True)
class Scaled:
    """A number by row times a scalar."""

    name: str
    values: Grid


@dataclass(frozen=True, slots=True)
class Condition:
    """At every row, what is together 0, or at most 0."""

    line: int
    text: str
    equality: bool
    average: Grid | None
    scalars: list[Scaled]
    constant: Grid

    def totals(self, table: Table, chosen: dict[str, Fraction]) -> list[Fraction]:
        """The sums, row by row."""
        parts = [self.constant.values(), *([] if self.average is None else [row_means(table, self.average)])]
        parts += [[value * chosen[one.name] for value in one.values.values()] for one in self.scalars]
        return [sum(row, NONE) for row in zip(*parts, strict=True)]

    def moment(self, alpha: str) -> tuple[list[Fraction], list[Fraction], dict[str, Fraction]]:
        """The g, t and masses' h of E[g | row] - alpha t(row) - sum h mass = 0.

        Raises: Refused if it is of another form.
        """
        others = {one.name: one.values.values() for one in self.scalars}
        t = [-value for value in others.pop(alpha)]
        alike = self.average is not None and all(row == self.average.rows[0] for row in self.average.rows)
        if self.average is None or not alike or not self.equality or any(self.constant.values()):
            raise Refused(f"line {self.line} makes no estimate unbiased")
        if any(len(set(values)) > 1 for values in others.values()):
            raise Refused(f"line {self.line} has another background for each row")
        g = [cost * self.average.unit for cost in self.average.rows[0]]
        return g, t, {name: -values[0] for name, values in others.items()}


@dataclass(frozen=True, slots=True)
class Accuracy:
    """An amount that is at most `limit`."""

    line: int
    text: str
    amount: Amount
    limit: Fraction


@dataclass(frozen=True, slots=True)
class Votes:
    """A bound on what another ballot than the true one adds to the probability of a set of best alternatives."""

    line: int
    text: str
    limit: Fraction
    alternatives: int
    ballots: list[list[int]]
    counts: Grid
    winners: list[int]

    def free(self, ballot: int) -> list[int]:
        """The alternatives of whose order a ballot says nothing: the others, where it names as many as it may."""
        full = len(self.ballots[ballot]) == max(map(len, self.ballots))
        return [a for a in range(self.alternatives) if full and a not in self.ballots[ballot]]

    def moves(self) -> dict[tuple[int, int, int], int]:
        """By row, ballot that is cast there and lie: the row where that is cast instead."""
        if len(self.counts.rows) * len(self.ballots) ** 2 > PAIRS:
            raise Refused("there are too many lies to try")
        place, kinds = {tuple(counts): row for row, counts in enumerate(self.counts.rows)}, range(len(self.ballots))
        return {
            (row, i, j): place[tuple(n - (k == i) + (k == j) for k, n in enumerate(counts))]
            for row, counts in enumerate(self.counts.rows) for i in kinds for j in kinds if i != j and counts[i]
        }  # fmt: skip

    def gained(self, table: Table) -> Fraction:
        """The most that any lie brings."""
        most = 0
        for (row, ballot, _), lied in self.moves().items():
            change = [0] * self.alternatives
            for winner, old, new in zip(self.winners, table.numerators[row], table.numerators[lied], strict=True):
                change[winner] += new - old
            total = 0
            for a in self.ballots[ballot]:
                total += change[a]
                most = max(most, total)
            most = max(most, total + sum(max(0, change[a]) for a in self.free(ballot)))
        return Fraction(most, table.denominator)


@dataclass(frozen=True, slots=True)
class Fairness:
    """Laws of `outputs` in groups of rows, compared in total variation: a pair of groups and a level."""

    line: int
    text: str
    outputs: list[str]
    groups: list[list[int]]
    pairs: Grid
    squares: list[Fraction]
    tolerances: list[Fraction]

    def mixture(self, group: int, prior: list[Fraction]) -> dict[int, Fraction]:
        """The weights of the rows of a group."""
        rows = self.groups[group]
        mass = sum((prior[row] for row in rows), NONE) if len(rows) > 1 else NONE
        return {row: prior[row] / mass for row in rows} if len(rows) > 1 else {rows[0]: Fraction(1)}

    def gaps(self, table: Table, prior: list[Fraction]) -> list[tuple[Fraction, int]]:
        """The total variation of every pair, with its level."""
        laws, seen = [], table.seen(table.view(self.outputs))
        mixtures = [self.mixture(group, prior) for group in range(len(self.groups))]
        whole = lcm(*(weight.denominator for mix in mixtures for weight in mix.values()))
        for mix in mixtures:
            parts = [[int(weight * whole) * n for n in seen[row]] for row, weight in mix.items()]
            laws.append(list(map(sum, zip(*parts, strict=True))))
        found = []
        for a, b, level in triples(self.pairs, len(self.squares)):
            apart = sum(x - y for x, y in zip(laws[a], laws[b], strict=True) if x > y)
            found.append((Fraction(apart, whole * table.denominator), level))
        return found


@dataclass(frozen=True, slots=True)
class Choice:
    """A number that is chosen."""

    name: str
    low: Fraction
    high: Fraction
    low_open: bool
    high_open: bool
    values: list[Fraction] | None

    def holds(self, value: Fraction) -> bool:
        """Whether it may be this."""
        ends = (self.low_open and value == self.low) or (self.high_open and value == self.high)
        return self.low <= value <= self.high and not ends and (self.values is None or value in self.values)


@dataclass(frozen=True, slots=True)
class ChosenLaw:
    """A law that is chosen: masses are (1 - weight) times its probabilities, or these themselves."""

    name: str
    labels: list[str]
    weight: str | None

    def masses(self) -> list[str]:
        """The names of its masses."""
        return [f"{self.name}:{label}" for label in self.labels]


@dataclass(frozen=True, slots=True)
class Rounds:
    """So many rounds share a budget."""

    count: int
    budget: Fraction


@dataclass(frozen=True, slots=True)
class Estimates:
    """The scale alpha, and the weight of the squared error of each condition's estimate."""

    alpha: str
    weights: list[Fraction]


@dataclass(frozen=True, slots=True)
class Task:
    """The block of a table."""

    FORM = "table"

    outputs: list[str]
    of: list[str]
    counted: list[str]
    rows: list[object]
    columns: list[object]
    places: list[list[int]]
    prior: Grid | None
    compared: list[Compared]
    expression: str
    loss: Amount
    estimates: Estimates | None
    conditions: list[Condition]
    accuracy: list[Accuracy]
    manipulation: list[Votes]
    fairness: list[Fairness]
    choices: list[Choice]
    laws: list[ChosenLaw]
    rounds: Rounds | None

    def table_view(self, outputs: list[str]) -> list[int]:
        """What whoever sees these outputs tells apart."""
        return Table(self.outputs, self.rows, self.columns, self.places, [], 1).view(outputs)

    def weights(self) -> list[Fraction]:
        """The law of rows; empty without one."""
        return [] if self.prior is None else self.prior.values()

    def errors(self, table: Table, chosen: dict[str, Fraction]) -> Fraction:
        """The average of sum_k w_k ((g_k - s_k) / alpha - t_k)^2."""
        if self.estimates is None:
            return NONE
        alpha, total = chosen[self.estimates.alpha], NONE
        for weight, one in zip(self.estimates.weights, self.conditions, strict=True):
            g, t, h = one.moment(self.estimates.alpha)
            share = sum((value * chosen[name] for name, value in h.items()), NONE)
            for p, row, truth in zip(self.weights(), table.numerators, t, strict=True):
                squares = ((value - share - alpha * truth) ** 2 for value in g)
                total += weight * p * sum((n * square for n, square in zip(row, squares, strict=True)), NONE)
        return total / (alpha**2 * table.denominator)
