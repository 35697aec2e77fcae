"""The forms of a table's block, and what each says of a law Pr(column | row), evaluated exactly.

Rows, columns, scalars and lines are numbered from 0. Given the row, the total variation of the laws f of an output and
t of a winner that is drawn from the data is the sum over values of what f exceeds t by.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from fractions import Fraction
from typing import ClassVar

from privspec.kernel.core.numbers import BITS, ZERO
from privspec.kernel.core.reading import Grid, Refused, Size, frozen
from privspec.kernel.core.tables import Compared, triples
from privspec.kernel.divergences import Curved
from privspec.kernel.rules import PAIRS
from privspec.kernel.terms import Table

Pair = tuple[int, int]
Range = tuple[Fraction, Fraction]


def means(table: Table, costs: Iterable[Sequence[Fraction | int]]) -> list[Fraction]:
    """The average cost of a draw, row by row, of the costs of the columns."""
    pairs = zip(table.rows, costs, strict=True)
    return [Fraction(sum(n * cost for n, cost in zip(*pair, strict=True))) / table.whole for pair in pairs]


@frozen
class Moment:
    """A condition E[g | row] - alpha t(row) - sum h mass = 0: g by column, t by row, h by the names of masses."""

    g: list[Fraction]
    t: list[Fraction]
    h: dict[str, Fraction]


@frozen
class Contrast:
    """Mixtures (a, b) of rows with a(S) <= ratio b(S) + slack for every set S of what is seen of columns.

    `mixtures`: shares by row; `pairs`: ratios times 2^BITS, rounded up, and slacks. `atoms`: S is
    a single value. `above`: S holds a value of a pair only with another, which stands before it. `bends`: a
    measure that the pairs satisfy both ways, with its amounts.
    """

    view: Sequence[int]
    mixtures: list[dict[int, Fraction]]
    pairs: dict[Pair, tuple[int, Fraction]]
    atoms: bool = False
    above: dict[Pair, dict[int, int | None]] = field(default_factory=dict)
    bends: Curved | None = None

    def gaps(self, table: Table) -> dict[Pair, Fraction]:
        """The largest a(S) - b(S) of each pair."""
        seen, laws, found = table.seen(self.view), [], {}
        for mixture in self.mixtures:
            parts = [[weight * n for n in seen[row]] for row, weight in mixture.items()]
            laws.append(list(map(sum, zip(*parts, strict=True))))
        for a, b in self.pairs:
            gains, most = [x - y for x, y in zip(laws[a], laws[b], strict=True)], ZERO
            for v, first in reversed(self.above.get((a, b), dict.fromkeys(range(len(gains)))).items()):
                if first is None:
                    most += max(0, gains[v])
                else:
                    gains[first] += max(0, gains[v])
            found[a, b] = Fraction(most, table.whole)
        return found

    def fits(self, pair: Pair, multipliers: dict[int, int]) -> bool:
        """Whether multipliers >= 0 add up sets S of a pair."""
        above = self.above.get(pair, dict.fromkeys(multipliers))
        firsts = ((above.get(v, v), z) for v, z in multipliers.items())
        return set(multipliers) <= set(above) and all(v is None or z <= multipliers.get(v, 0) for v, z in firsts)


def by_row(table: Table, costs: Grid | None, variations: tuple[Variation, ...] = ()) -> list[Fraction]:
    """The average cost of a draw, row by row, and total variations between the value drawn and a law of the row."""
    found = [ZERO] * len(table.rows)
    if costs is not None:
        found = [costs.unit * mean for mean in means(table, costs.rows)]
    for one in variations:
        for row, (mass, law) in enumerate(zip(table.seen(one.values), one.laws, strict=True)):
            chances = law.values()
            every = zip(mass + [0] * (len(chances) - len(mass)), chances, strict=True)
            gaps = (Fraction(n, table.whole) - chance for n, chance in every)
            found[row] += one.weight * sum((gap for gap in gaps if gap > 0), ZERO)
    return found


@frozen
class Variation:
    """`weight` times the total variation, row by row, between the value drawn and a law of the row.

    `values`: the number of the value drawn, by column; `laws`: of each row, the chances of the values.
    """

    weight: Size
    values: tuple[int, ...]
    laws: tuple[Grid, ...]


@frozen
class Worst:
    """`weight` times the largest, over rows, of the average of `costs` (rows, columns) and of total variations."""

    weight: Fraction
    costs: Grid
    variations: tuple[Variation, ...]


@frozen
class Price:
    """`weight` times a chosen number."""

    name: str
    weight: Fraction


@frozen
class Amount:
    """Averages over rows (by their prior) and draws, worst cases, prices of chosen numbers, and a constant.

    The averages are of `average` (rows, columns), and of total variations.
    """

    average: Grid | None
    variations: tuple[Variation, ...]
    worst: tuple[Worst, ...]
    prices: tuple[Price, ...]
    constant: Fraction

    @property
    def only_worst(self) -> bool:
        """Whether it is one worst case, and perhaps a constant."""
        return self.average is None and not self.variations and not self.prices and len(self.worst) == 1

    @property
    def bare(self) -> bool:
        """Whether it is the constant alone."""
        return self.average is None and not (self.worst or self.variations or self.prices)

    def value(self, table: Table, prior: list[Fraction], chosen: dict[str, Fraction]) -> Fraction:
        total = self.constant + sum((one.weight * chosen[one.name] for one in self.prices), ZERO)
        total += sum((one.weight * max(by_row(table, one.costs, one.variations)) for one in self.worst), ZERO)
        if self.average is None and not self.variations:
            return total
        mean = by_row(table, self.average, self.variations)
        return total + sum((p * own for p, own in zip(prior, mean, strict=True)), ZERO)


@frozen
class Scaled:
    """A chosen number, or the mass of a chosen law, times a number by row."""

    name: str
    values: Grid


@frozen
class Condition:
    """What is together 0 at every row, or at most 0.

    The average of `average` (rows, columns), the sum of `scalars`, and `constant` (rows,). Or each of several sums over
    all of the table: of its entries times `joint` (sums, rows times columns), and `constant` (sums,).
    """

    line: int
    text: str
    equality: bool
    average: Grid | None
    scalars: tuple[Scaled, ...]
    constant: Grid
    joint: Grid | None = None

    def totals(self, table: Table, chosen: dict[str, Fraction]) -> list[Fraction]:
        if self.joint is not None:
            if self.scalars or self.average is not None:
                raise Refused("has a condition of two forms")
            law = [n for row in table.rows for n in row]
            sums = (sum(a * n for a, n in zip(row, law, strict=True)) for row in self.joint.rows)
            pairs = zip(sums, self.constant.values(), strict=True)
            return [total * self.joint.unit / table.whole + constant for total, constant in pairs]
        parts = [[value * chosen[one.name] for value in one.values.values()] for one in self.scalars]
        return [sum(row, ZERO) for row in zip(*parts, self.constant.values(), by_row(table, self.average), strict=True)]

    def moment(self, alpha: str) -> Moment | None:
        """What it says of the mean of an estimate at the scale alpha; None where it makes no estimate unbiased."""
        average, others = self.average, {one.name: one.values.values() for one in self.scalars}
        if not self.equality or average is None or alpha not in others or any(self.constant.entries):
            return None
        t = [-value for value in others.pop(alpha)]
        if len(set(map(tuple, average.rows))) > 1 or any(len(set(values)) > 1 for values in others.values()):
            return None  # costs, or the background, differ from row to row
        h = {name: -values[0] for name, values in others.items()}
        return Moment([cost * average.unit for cost in average.rows[0]], t, h)


@frozen
class Limit:
    """An amount that is at most `limit`."""

    line: int
    text: str
    amount: Amount
    limit: Fraction


@frozen
class Votes:
    """A bound on what another ballot than the true one adds to the probability of a set of best alternatives."""

    line: int
    text: str
    limit: Fraction
    alternatives: int
    ballots: tuple[tuple[int, ...], ...]
    counts: Grid
    winners: tuple[int, ...]

    def contrast(self) -> Contrast:
        """The row with a lie and the true one; a ballot that names as many as it may says nothing of the others."""
        kinds, full, above = range(len(self.ballots)), max(map(len, self.ballots)), list[dict[int, int | None]]()
        for ballot in self.ballots:
            named = [a for a in ballot if a in self.winners]
            last, others = named[-1] if named else None, self.winners if len(ballot) == full else []
            chain: dict[int, int | None] = dict(zip(named, [None, *named], strict=False))
            above.append(chain | {a: last for a in others if a not in chain})
        place, orders = {tuple(counts): row for row, counts in enumerate(self.counts.rows)}, {}
        if len(place) < len(self.counts.rows) or len(place) * len(kinds) ** 2 > PAIRS:
            raise Refused("there are too many lies to try")
        for counts, true in place.items():
            for i, j in ((i, j) for i in kinds for j in kinds if counts[i] and i != j):
                orders[place[tuple(n - (k == i) + (k == j) for k, n in enumerate(counts))], true] = above[i]
        mixtures = [{row: Fraction(1)} for row in range(len(place))]
        return Contrast(self.winners, mixtures, dict.fromkeys(orders, (1 << BITS, self.limit)), above=orders)


@frozen
class Fairness:
    """Laws of `outputs` in groups of rows, compared in total variation: a pair of groups and a level."""

    line: int
    text: str
    outputs: tuple[str, ...]
    groups: tuple[tuple[int, ...], ...]
    pairs: Grid
    squares: tuple[Fraction, ...]
    tolerances: tuple[Fraction, ...]

    def contrast(self, view: Sequence[int], prior: list[Fraction], slacks: Sequence[Fraction]) -> Contrast:
        """With the slack of each level."""
        laws = []
        for rows in self.groups:
            shares = [prior[row] for row in rows] if len(rows) > 1 else [Fraction(1)]
            laws.append({row: share / sum(shares) for row, share in zip(rows, shares, strict=True)})
        pairs = {(a, b): (1 << BITS, slacks[level]) for a, b, level in triples(self.pairs, len(slacks))}
        if len(pairs) < len(self.pairs.rows):
            raise Refused(f"line {self.line} compares two groups twice")
        return Contrast(view, laws, pairs)

    def largest(self, table: Table, prior: list[Fraction]) -> tuple[Fraction, Fraction, bool]:
        """The largest total variation, what is asked of its pair, and whether all pairs are within what is asked."""
        found = self.contrast(table.view(self.outputs), prior, self.tolerances)
        gaps = [(gap, found.pairs[pair][1]) for pair, gap in found.gaps(table).items()]
        holds = all(gap <= most for gap, most in gaps)
        return *max(gaps, key=lambda gap: gap[0], default=(ZERO, ZERO)), holds


@frozen
class Estimates:
    """A further loss: the average of sum_k weights_k ((g_k - s_k) / alpha - t_k)^2.

    Condition k reads E[g_k | row] - alpha t_k(row) - s_k = 0, where s_k is the sum of its masses (Ramon & Basu 3.3).
    """

    alpha: str
    weights: tuple[Fraction, ...]


@frozen
class Choice:
    """A number that is chosen between two ends."""

    name: str
    low: Fraction
    high: Fraction
    low_open: bool
    high_open: bool


@frozen
class ChosenLaw:
    """A law that is chosen, over values by their labels; `weight` the chosen number alpha that it stands next to.

    Its masses are scalars named `B:<label>`: (1 - alpha) Pr(B = label), or just Pr(B = label) without a weight.
    """

    name: str
    labels: tuple[str, ...]
    weight: str | None

    @property
    def masses(self) -> list[str]:
        return [f"{self.name}:{label}" for label in self.labels]


@frozen
class Rounds:
    """So many rounds share a budget: each may spend one part of it."""

    count: int
    budget: Fraction


@frozen
class Task:
    """The block of a table: outputs that are drawn from Pr(column | row).

    `of`: what picks the row; `counted`: inputs that are held as counts of their values; `rows`, `columns`: labels;
    `places`: for each output the number of its value, by column; `prior` (rows,) the law of rows, None without one.
    `compared`: one for each obligation, in order. `expression`: the loss as it is written.
    """

    FORM: ClassVar[str] = "table"

    outputs: tuple[str, ...]
    of: tuple[str, ...]
    counted: tuple[str, ...]
    rows: tuple[object, ...]
    columns: tuple[object, ...]
    places: tuple[tuple[int, ...], ...]
    prior: Grid | None
    compared: tuple[Compared, ...]
    expression: str
    loss: Amount
    estimates: Estimates | None
    conditions: tuple[Condition, ...]
    accuracy: tuple[Limit, ...]
    manipulation: tuple[Votes, ...]
    fairness: tuple[Fairness, ...]
    choices: tuple[Choice, ...]
    laws: tuple[ChosenLaw, ...]
    rounds: Rounds | None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.rows), len(self.columns)

    def table(self, rows: tuple[tuple[int, ...], ...], whole: int) -> Table:
        """What is drawn by these laws."""
        return Table(rows, whole, tuple(zip(self.outputs, self.places, strict=True)))

    def weights(self) -> list[Fraction]:
        """The law of rows; empty without one."""
        return [] if self.prior is None else self.prior.values()

    def ends(self) -> dict[str, Range]:
        """Of every number that is chosen."""
        return {one.name: (one.low, one.high) for one in self.choices}

    def masses(self) -> list[str]:
        return [name for law in self.laws for name in law.masses]

    def moments(self, alpha: str) -> list[Moment]:
        """Those of all conditions.

        A single mass is 1 - alpha: g and t are measured from its h then, and h is nothing.
        """
        found, single = [], self.masses()[0] if len(self.masses()) == 1 else ""
        for one in self.conditions:
            plain = one.moment(alpha)
            if plain is None:
                raise Refused(f"line {one.line} makes no estimate unbiased")
            h = dict(plain.h)
            origin = h.pop(single, ZERO)
            found.append(Moment([v - origin for v in plain.g], [v - origin for v in plain.t], h))
        return found

    def errors(self, table: Table, chosen: dict[str, Fraction]) -> Fraction:
        """The average of sum_k w_k ((g_k - s_k) / alpha - t_k)^2."""
        total = ZERO
        if self.estimates is None:
            return total
        alpha = self.estimates.alpha
        for weight, one in zip(self.estimates.weights, self.moments(alpha), strict=True):
            share = sum((value * chosen[name] for name, value in one.h.items()), ZERO)
            squares = ([(value - share - chosen[alpha] * truth) ** 2 for value in one.g] for truth in one.t)
            errors = zip(self.weights(), means(table, squares), strict=True)
            total += weight * sum((p * error for p, error in errors), ZERO)
        return total / chosen[alpha] ** 2
