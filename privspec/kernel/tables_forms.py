"""The forms of a table's block (see privspec.problem.table_forms), and what each says of a law, evaluated exactly."""

from __future__ import annotations

from dataclasses import field
from fractions import Fraction

from privspec.kernel.core.numbers import BITS, ZERO
from privspec.kernel.core.reading import Grid, Refused, frozen
from privspec.kernel.core.tables import Compared, Table, triples
from privspec.kernel.divergences import Curved
from privspec.kernel.rules import PAIRS

Pair = tuple[int, int]
Range = tuple[Fraction, Fraction]
Price = tuple[str, Fraction]
Variation = tuple[Fraction, list[int], list[Grid]]
Worst = tuple[Fraction, Grid, list[Variation]]
Scaled = tuple[str, Grid]
Accuracy = tuple[int, str, "Amount", Fraction]
Choice = tuple[str, Fraction, Fraction, bool, bool]
ChosenLaw = tuple[str, list[str], str | None]
Rounds = tuple[int, Fraction]
Estimates = tuple[str, list[Fraction]]
Moment = tuple[list[Fraction], list[Fraction], dict[str, Fraction]]
READERS = {
    "Price": {"name": "str", "weight": "Fraction"},
    "Variation": {"weight": "Size", "values": "list[int]", "laws": "list[Grid]"},
    "Worst": {"weight": "Fraction", "costs": "Grid", "variations": "list[Variation]"},
    "Scaled": {"name": "str", "values": "Grid"},
    "Accuracy": {"line": "int", "text": "str", "amount": "Amount", "limit": "Fraction"},
    "Choice": {"name": "str", "low": "Fraction", "high": "Fraction"} | {"low_open": "bool", "high_open": "bool"},
    "ChosenLaw": {"name": "str", "labels": "list[str]", "weight": "str | None"},
    "Rounds": {"count": "int", "budget": "Fraction"},
    "Estimates": {"alpha": "str", "weights": "list[Fraction]"},
}


@frozen
class Contrast:
    """Mixtures (a, b) of rows with a(S) <= ratio b(S) + slack for every set S of what is seen of columns.

    `mixtures`: shares by row; `pairs`: ratios times 2^BITS, rounded up, and slacks. `atoms`: S is
    a single value. `above`: S holds a value of a pair only with another, which stands before it. `bends`: a
    measure that the pairs satisfy both ways, with its amounts.
    """

    view: list[int]
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
            found[a, b] = Fraction(most, table.denominator)
        return found

    def fits(self, pair: Pair, multipliers: dict[int, int]) -> bool:
        """Whether multipliers >= 0 add up sets S of a pair."""
        above = self.above.get(pair, dict.fromkeys(multipliers))
        firsts = ((above.get(v, v), z) for v, z in multipliers.items())
        return set(multipliers) <= set(above) and all(v is None or z <= multipliers.get(v, 0) for v, z in firsts)


def by_row(table: Table, costs: Grid | None, variations: list[Variation] | None = None) -> list[Fraction]:
    """The average cost of a draw, row by row, and total variations between the value drawn and a law of the row."""
    found, whole = [ZERO] * len(table.rows), table.denominator
    if costs is not None:
        pairs = zip(table.numerators, costs.rows, strict=True)
        found = [costs.unit / whole * sum(n * cost for n, cost in zip(*pair, strict=True)) for pair in pairs]
    for weight, values, laws in variations or []:
        for row, (mass, law) in enumerate(zip(table.seen(values), laws, strict=True)):
            chances = law.values()
            every = zip(mass + [0] * (len(chances) - len(mass)), chances, strict=True)
            gaps = (Fraction(n, whole) - chance for n, chance in every)
            found[row] += weight * sum((gap for gap in gaps if gap > 0), ZERO)
    return found


@frozen
class Amount:
    """Averages over rows and draws, worst cases, prices of chosen numbers, and a constant."""

    average: Grid | None
    variations: list[Variation]
    worst: list[Worst]
    prices: list[Price]
    constant: Fraction

    @property
    def bare(self) -> bool:
        """Whether it is the constant alone."""
        return self.average is None and not (self.worst or self.variations or self.prices)

    def value(self, table: Table, prior: list[Fraction], chosen: dict[str, Fraction]) -> Fraction:
        total = self.constant + sum((weight * chosen[name] for name, weight in self.prices), ZERO)
        total += sum((w * max(by_row(table, costs, apart)) for w, costs, apart in self.worst), ZERO)
        if self.average is None and not self.variations:
            return total
        mean = by_row(table, self.average, self.variations)
        return total + sum((p * own for p, own in zip(prior, mean, strict=True)), ZERO)


@frozen
class Condition:
    """At every row, what is together 0, or at most 0."""

    line: int
    text: str
    equality: bool
    average: Grid | None
    scalars: list[Scaled]
    constant: Grid

    def totals(self, table: Table, chosen: dict[str, Fraction]) -> list[Fraction]:
        parts = [[value * chosen[name] for value in grid.values()] for name, grid in self.scalars]
        return [sum(row, ZERO) for row in zip(*parts, self.constant.values(), by_row(table, self.average), strict=True)]


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
        return Contrast(list(self.winners), mixtures, dict.fromkeys(orders, (1 << BITS, self.limit)), above=orders)


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

    def contrast(self, view: list[int], prior: list[Fraction], slacks: list[Fraction]) -> Contrast:
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
        found = self.contrast(table.view(self.outputs), prior, list(self.tolerances))
        gaps = [(gap, found.pairs[pair][1]) for pair, gap in found.gaps(table).items()]
        holds = all(gap <= most for gap, most in gaps)
        return *max(gaps, key=lambda gap: gap[0], default=(ZERO, ZERO)), holds


@frozen
class Task:
    """The block of a table; masses of a law that is chosen are (1 - weight) times its probabilities, or just these."""

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

    def ends(self) -> dict[str, Range]:
        """Of every number that is chosen."""
        return {name: (low, high) for name, low, high, *_ in self.choices}

    def masses(self) -> list[str]:
        return [f"{name}:{label}" for name, labels, _ in self.laws for label in labels]

    def moments(self, alpha: str) -> list[Moment]:
        """The g, t and masses' h of each condition E[g | row] - alpha t(row) - sum h mass = 0.

        A single mass is 1 - alpha: g and t are measured from its h then, and h is nothing.
        """
        found, single = [], self.masses()[0] if len(self.masses()) == 1 else ""
        for one in self.conditions:
            others = {name: grid.values() for name, grid in one.scalars}
            t, average = [-value for value in others.pop(alpha)], one.average
            if average is None or len(set(map(tuple, average.rows))) > 1 or not one.equality:
                raise Refused(f"line {one.line} makes no estimate unbiased")
            if any(len(set(values)) > 1 for values in others.values()) or any(one.constant.values()):
                raise Refused(f"line {one.line} has another background for each row")
            h = {name: -values[0] for name, values in others.items()}
            origin = h.pop(single, ZERO)
            found.append(([cost * average.unit - origin for cost in average.rows[0]], [v - origin for v in t], h))
        return found

    def errors(self, table: Table, chosen: dict[str, Fraction]) -> Fraction:
        """The average of sum_k w_k ((g_k - s_k) / alpha - t_k)^2."""
        total, (alpha, weights) = ZERO, self.estimates or ("", [])
        for weight, (g, t, h) in zip(weights, self.moments(alpha) if alpha else [], strict=True):
            share = sum((value * chosen[name] for name, value in h.items()), ZERO)
            for p, row, truth in zip(self.weights(), table.numerators, t, strict=True):
                squares = ((value - share - chosen[alpha] * truth) ** 2 for value in g)
                total += weight * p * sum((n * square for n, square in zip(row, squares, strict=True)), ZERO)
        return total / (chosen[alpha] ** 2 * table.denominator) if alpha else ZERO
