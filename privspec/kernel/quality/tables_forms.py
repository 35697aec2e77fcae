"""The forms of a table's block (see privspec.problem.table_forms), and what each says of a law, evaluated exactly."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from privspec.kernel.core.numbers import BITS
from privspec.kernel.core.reading import Grid, Refused
from privspec.kernel.core.tables import PAIRS, Compared, Table, triples

NONE = Fraction(0)
Limit = tuple[int, Fraction]
"""A ratio times 2^BITS, rounded up, and a slack."""


def both_ways(listed: list[tuple[int, int, int]], limits: list[Limit]) -> dict[tuple[int, int], Limit]:
    """Pairs with the limit of their level, and turned round."""
    return {pair: limits[level] for a, b, level in listed for pair in ((a, b), (b, a))}


@dataclass(frozen=True, slots=True)
class Contrast:
    """Mixtures (a, b) of rows with a(S) <= ratio b(S) + slack for every set S of what is seen of columns.

    `mixtures`: whole numbers by row, over `whole`. `atoms`: S is a single value. `ranks`: S holds the first of these
    values of a pair, and if all of them, any others of these.
    """

    view: list[int]
    mixtures: list[dict[int, int]]
    whole: int
    pairs: dict[tuple[int, int], Limit]
    atoms: bool = False
    ranks: dict[tuple[int, int], tuple[list[int], list[int]]] | None = None

    def gaps(self, table: Table) -> dict[tuple[int, int], Fraction]:
        """The largest a(S) - b(S) of each pair."""
        seen, laws, found = table.seen(self.view), [], {}
        for mixture in self.mixtures:
            parts = [[weight * n for n in seen[row]] for row, weight in mixture.items()]
            laws.append(list(map(sum, zip(*parts, strict=True))))
        for a, b in self.pairs:
            apart = [x - y for x, y in zip(laws[a], laws[b], strict=True)]
            first, others = ([], range(len(apart))) if self.ranks is None else self.ranks[a, b]
            most = total = 0
            for v in first:
                total += apart[v]
                most = max(most, total)
            most = max(most, total + sum(apart[v] for v in others if apart[v] > 0))
            found[a, b] = Fraction(most, self.whole * table.denominator)
        return found

    def fits(self, a: int, b: int, multipliers: dict[int, int]) -> bool:
        """Whether multipliers >= 0 add up sets S of a pair."""
        if self.ranks is None:
            return True
        first, others = self.ranks[a, b]
        steps = [multipliers.get(v, 0) for v in first]
        rest = [multipliers.get(v, 0) for v in others]
        falling = steps == sorted(steps, reverse=True) and max(rest, default=0) <= min(steps, default=0)
        return falling and set(multipliers) <= {*first, *others}


@dataclass(frozen=True, slots=True)
class Variation:
    """`weight` times the total variation, row by row, between the value drawn (by column) and a law of the row."""

    weight: Fraction
    values: list[int]
    law: Grid

    def by_row(self, table: Table) -> list[Fraction]:
        drawn, found = table.seen(self.values), []
        for mass, law in zip(drawn, self.law.rows, strict=True):
            every = [Fraction(n, table.denominator) for n in mass] + [NONE] * (len(law) - len(mass))
            gaps = (p - chance * self.law.unit for p, chance in zip(every, law, strict=True))
            found.append(self.weight * sum((gap for gap in gaps if gap > 0), NONE))
        return found


@dataclass(frozen=True, slots=True)
class Worst:
    """`weight` times the largest, over rows, of average costs and total variations."""

    weight: Fraction
    costs: Grid | None
    variations: list[Variation]

    def by_row(self, table: Table) -> list[Fraction]:
        """But for the weight."""
        parts = [means(table, self.costs), *(one.by_row(table) for one in self.variations)]
        return [sum(row, NONE) for row in zip(*parts, strict=True)]


def means(table: Table, costs: Grid | None) -> list[Fraction]:
    """The average cost of a draw, row by row."""
    if costs is None:
        return [NONE] * len(table.rows)
    each, unit = zip(table.numerators, costs.rows, strict=True), costs.unit / table.denominator
    return [unit * sum(n * cost for n, cost in zip(row, own, strict=True)) for row, own in each]


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

    @property
    def parts(self) -> list[Worst]:
        """What is averaged over rows, and then all that is largest over rows."""
        return [Worst(Fraction(1), self.average, self.variations), *self.worst]

    def value(self, table: Table, prior: list[Fraction], chosen: dict[str, Fraction]) -> Fraction:
        mean, *others = [part.by_row(table) for part in self.parts]
        total = self.constant + sum((price.weight * chosen[price.name] for price in self.prices), NONE)
        if self.average is not None or self.variations:
            total += sum((p * own for p, own in zip(prior, mean, strict=True)), NONE)
        return total + sum((part.weight * max(rows) for part, rows in zip(self.worst, others, strict=True)), NONE)


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
        parts = [[value * chosen[one.name] for value in one.values.values()] for one in self.scalars]
        parts += [self.constant.values(), means(table, self.average)]
        return [sum(row, NONE) for row in zip(*parts, strict=True)]

    def moment(self, alpha: str, known: str) -> tuple[list[Fraction], list[Fraction], dict[str, Fraction]]:
        """The g, t and masses' h of E[g | row] - alpha t(row) - sum h mass = 0.

        The mass `known` is 1 - alpha: g and t are measured from its h then, and h is nothing.
        Raises: Refused if it is of another form.
        """
        others = {one.name: one.values.values() for one in self.scalars}
        t = [-value for value in others.pop(alpha)]
        alike = self.average is not None and all(row == self.average.rows[0] for row in self.average.rows)
        if self.average is None or not alike or not self.equality or any(self.constant.values()):
            raise Refused(f"line {self.line} makes no estimate unbiased")
        if any(len(set(values)) > 1 for values in others.values()):
            raise Refused(f"line {self.line} has another background for each row")
        h = {name: -values[0] for name, values in others.items()}
        origin = h.pop(known, NONE)
        return [cost * self.average.unit - origin for cost in self.average.rows[0]], [v - origin for v in t], h


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

    def contrast(self) -> Contrast:
        """The row with a lie and the true one; a ballot that names as many as it may says nothing of the others."""
        kinds, full, winners = range(len(self.ballots)), max(map(len, self.ballots)), sorted(set(self.winners))
        place, ranks = {tuple(counts): row for row, counts in enumerate(self.counts.rows)}, {}
        if len(place) < len(self.counts.rows) or len(place) * len(kinds) ** 2 > PAIRS:
            raise Refused("there are too many lies to try")
        for counts, true in place.items():
            for i, ballot in enumerate(self.ballots):
                others = [a for a in winners if len(ballot) == full and a not in ballot]
                for j in kinds if counts[i] else ():
                    if i != j:
                        lied = place[tuple(n - (k == i) + (k == j) for k, n in enumerate(counts))]
                        ranks[lied, true] = ([a for a in ballot if a in winners], others)
        pairs = dict.fromkeys(ranks, (1 << BITS, self.limit))
        return Contrast(self.winners, [{row: 1} for row in range(len(place))], 1, pairs, ranks=ranks)


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

    def listed(self) -> list[tuple[int, int, int]]:
        return triples(self.pairs, len(self.squares))

    def contrast(self, view: list[int], prior: list[Fraction], slacks: list[Fraction]) -> Contrast:
        """With the slack of each level."""
        laws = []
        for rows in self.groups:
            shares = [prior[row] for row in rows] if len(rows) > 1 else [Fraction(1)]
            laws.append({row: share / sum(shares) for row, share in zip(rows, shares, strict=True)})
        whole = lcm(*(share.denominator for law in laws for share in law.values()))
        mixtures = [{row: int(share * whole) for row, share in law.items()} for law in laws]
        return Contrast(view, mixtures, whole, both_ways(self.listed(), [(1 << BITS, slack) for slack in slacks]))

    def gaps(self, table: Table, prior: list[Fraction]) -> list[tuple[Fraction, int]]:
        """The total variation of every pair, with its level."""
        found = self.contrast(table.view(self.outputs), prior, self.tolerances).gaps(table)
        return [(found[a, b], level) for a, b, level in self.listed()]


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
        ends = (self.low_open and value == self.low) or (self.high_open and value == self.high)
        return self.low <= value <= self.high and not ends and (self.values is None or value in self.values)


@dataclass(frozen=True, slots=True)
class ChosenLaw:
    """A law that is chosen: masses are (1 - weight) times its probabilities, or these themselves."""

    name: str
    labels: list[str]
    weight: str | None

    def masses(self) -> list[str]:
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

    def weights(self) -> list[Fraction]:
        """The law of rows; empty without one."""
        return [] if self.prior is None else self.prior.values()

    def moments(self) -> list[tuple[list[Fraction], list[Fraction], dict[str, Fraction]]]:
        """Of each condition, with the masses of the law that is chosen where it has several values."""
        assert self.estimates is not None
        masses = [name for law in self.laws for name in law.masses()]
        known = masses[0] if len(masses) == 1 else ""
        return [one.moment(self.estimates.alpha, known) for one in self.conditions]

    def errors(self, table: Table, chosen: dict[str, Fraction]) -> Fraction:
        """The average of sum_k w_k ((g_k - s_k) / alpha - t_k)^2."""
        if self.estimates is None:
            return NONE
        alpha, total = chosen[self.estimates.alpha], NONE
        for weight, (g, t, h) in zip(self.estimates.weights, self.moments(), strict=True):
            share = sum((value * chosen[name] for name, value in h.items()), NONE)
            for p, row, truth in zip(self.weights(), table.numerators, t, strict=True):
                squares = ((value - share - alpha * truth) ** 2 for value in g)
                total += weight * p * sum((n * square for n, square in zip(row, squares, strict=True)), NONE)
        return total / (alpha**2 * table.denominator)
