"""What no table can beat: weak duality, and a tree of boxes where scale and background of estimates are chosen.

For multipliers z >= 0 of what every table that meets the lines satisfies, the sum over rows of the least reduced cost,
less what slacks pay, bounds the loss from below, whatever the multipliers are. They are read as whole numbers over
2^GRID; every rounding lowers the bound.
"""

from __future__ import annotations

from fractions import Fraction
from math import isfinite, lcm

from privspec.kernel.core.numbers import BITS, exp_up, sqrt_up
from privspec.kernel.core.problem import Guarantee
from privspec.kernel.core.reading import Item, Refused
from privspec.kernel.core.tables import Compared, triples
from privspec.kernel.quality.tables_forms import NONE, Amount, Task

GRID = 160
"""Binary places of multipliers and reduced costs."""
ONE = 1 << GRID
TERMS = ("privacy", "conditions", "accuracy", "manipulation", "fairness")
Asked = tuple[Compared, Guarantee, list[int]]
"""The rows that an obligation compares, its figures, and the number that is seen of each column."""


def entries(item: Item, *extents: int, signed: bool = False) -> list[list[int]]:
    """Places [i, j, ..., z]: whole numbers below the extents, each place once, then a multiplier on the grid.

    Were one split into several, what is paid once for the largest of a pair would be paid for a part of it.
    """
    found, known = [], set()
    for entry in item.value if isinstance(item.value, list) else [None]:
        if not isinstance(entry, list) or len(entry) != len(extents) + 1:
            raise item.wrong("has an entry of another form")
        *at, z = entry
        if any(type(i) is not int or not 0 <= i < extent for i, extent in zip(at, extents, strict=True)):
            raise item.wrong("has an entry for what is not there")
        if type(z) not in (int, float) or not isfinite(z) or abs(z) > 1e300 or (z < 0 and not signed):
            raise item.wrong("has a multiplier that is no number from 0 on")
        top, bottom = z.as_integer_ratio()
        found.append([*at, (top << GRID) // bottom])
        known.add(tuple(at))
    if len(known) < len(found):
        raise item.wrong("has two multipliers for one place")
    return found


def up(amount: int, ratio: int) -> int:
    """An amount times a ratio over 2^BITS, rounded up."""
    return -(-amount * ratio >> BITS)


class Lagrangian:
    """What multipliers add up to: reduced costs (rows, columns) over 2^GRID, prices of scalars, and a constant."""

    def __init__(self, task: Task, asked: list[Asked]) -> None:
        """Nothing yet."""
        self.task, self.asked, self.prior = task, asked, task.weights()
        self.rows, self.columns = len(task.rows), len(task.columns)
        self.reduced = [[0] * self.columns for _ in task.rows]
        self.prices: dict[str, Fraction] = {}
        self.constant = NONE

    def costs(self, row: int, numbers: list[int], unit: Fraction) -> None:
        """Costs of a row, rounded down."""
        top, bottom = unit.numerator << GRID, unit.denominator
        own = self.reduced[row]
        own[:] = [old + number * top // bottom for old, number in zip(own, numbers, strict=True)]

    def price(self, name: str, amount: Fraction) -> None:
        """A share of a scalar."""
        self.prices[name] = self.prices.get(name, NONE) + amount

    def amount(self, amount: Amount, factor: Fraction, tangent: Item) -> None:
        """A factor >= 0 times an affine function that is nowhere above an amount.

        Of a worst case, rows weighed by numbers that sum to one; of a total variation, shares from 0 to 1 of what each
        value is drawn too often.
        """
        self.constant += factor * amount.constant
        for price in amount.prices:
            self.price(price.name, factor * price.weight)
        if amount.average is not None:
            for row, (p, own) in enumerate(zip(self.prior, amount.average.rows, strict=True)):
                self.costs(row, own, amount.average.unit * p * factor)
        listed, shares = tangent.fields("worst", "shares")
        parts = [(amount.variations, [p * factor for p in self.prior])]
        for worst, item in zip(amount.worst, listed.items(len(amount.worst)), strict=True):
            found = [Fraction(w.double()) for w in item.items(self.rows)]
            if min(found) < 0 or not any(found) or worst.weight < 0:
                raise item.wrong("are no weights")
            weights = [w / sum(found) * worst.weight * factor for w in found]
            parts.append((worst.variations, weights))
            for row, w in enumerate(weights):
                if w:
                    self.costs(row, worst.costs.rows[row], worst.costs.unit * w)
        most = max(len(variations) for variations, _ in parts)
        for k, j, row, value, share in entries(shares, len(parts), most, self.rows, self.columns):
            one, weights = parts[k][0][j], parts[k][1]
            scale = weights[row] * one.weight * Fraction(share, ONE)
            if share > ONE or scale < 0:
                raise shares.wrong("has an entry above one")
            self.costs(row, [int(shown == value) for shown in one.values], scale)
            self.constant -= scale * one.law.rows[row][value] * one.law.unit

    # --- what every table satisfies -----------------------------------------------------------------

    def add(self, terms: list[Item]) -> None:
        """Multipliers of all that the problem asks of tables.

        Raises: Refused.
        """
        privacy, conditions, accuracy, manipulation, fairness = terms
        if len(privacy.items()) > len(self.asked):
            raise privacy.wrong("has more blocks than there are obligations")
        for block in privacy.items():
            (self._pairs if block.form("pairs", "clique") == "pairs" else self._clique)(block)
        for k, row, z in entries(conditions, len(self.task.conditions), self.rows, signed=True):
            one, factor = self.task.conditions[k], Fraction(z, ONE)
            if z < 0 and not one.equality:
                raise conditions.wrong("has a negative multiplier of a bound")
            if one.average is not None:
                self.costs(row, one.average.rows[row], one.average.unit * factor)
            for scaled in one.scalars:
                self.price(scaled.name, scaled.values.values()[row] * factor)
            self.constant += one.constant.values()[row] * factor
        for item in accuracy.items():
            number, multiplier, tangent = item.fields("line", "multiplier", "tangent")
            line, factor = self.task.accuracy[number.integer()], Fraction(multiplier.double())
            if factor < 0:
                raise multiplier.wrong("is negative")
            self.amount(line.amount, factor, tangent)
            self.constant -= factor * line.limit
        self._manipulation(manipulation)
        self._fairness(fairness)

    def _members(self, view: list[int]) -> list[list[int]]:
        """The columns behind each number that is seen."""
        found: list[list[int]] = [[] for _ in range(max(view) + 1)]
        for column, seen in enumerate(view):
            found[seen].append(column)
        return found

    def _about(self, number: Item) -> tuple[Compared, Guarantee, Fraction, Fraction, list[list[int]]]:
        """The rows that an obligation compares, its guarantee, epsilon and delta, and the columns seen as one."""
        compared, guarantee, view = self.asked[number.integer()]
        limits = guarantee.asked
        if set(limits) - {"epsilon", "delta"}:
            raise number.wrong("bounds nothing under such a measure")
        return compared, guarantee, limits["epsilon"], limits.get("delta", NONE), self._members(view)

    def _clique(self, block: Item) -> None:
        """One free least law m of all rows: m_s <= f_rs <= R m_s, and m sums to at most one."""
        _, number, clique, below, above = block.fields("form", "requirement", "clique", "below", "above")
        compared, _, epsilon, delta, members = self._about(number)
        rows = set(compared.cliques[clique.integer()])
        ratio, least = int(exp_up(epsilon) * (1 << BITS)), [0] * len(members)
        for item, sign in ((below, -1), (above, 1)):
            for row, seen, z in entries(item, self.rows, len(members)):
                if row not in rows or delta:
                    raise item.wrong("names a row that is not compared, or not by a pure epsilon")
                for column in members[seen]:
                    self.reduced[row][column] += sign * z
                least[seen] += z if sign < 0 else -up(z, ratio)
        self.constant += Fraction(min(0, *least), ONE)

    def _pairs(self, block: Item) -> None:
        _, number, pairs = block.fields("form", "requirement", "entries")
        compared, guarantee, epsilon, delta, members = self._about(number)
        levels = {(a, b): level for x, y, level in compared.every() for a, b in ((x, y), (y, x))}
        ratios = {}
        for level in set(levels.values()):
            exponent = epsilon if level < 0 else sqrt_up(compared.squares[level] * epsilon**2, 2 * BITS)
            ratios[level] = int(exp_up(exponent) * (1 << BITS))
        heaviest: dict[tuple[int, int], int] = {}
        total = 0
        for a, b, seen, z in entries(pairs, self.rows, self.rows, len(members)):
            if (a, b) not in levels:
                raise pairs.wrong("names rows that are not compared")
            down = up(z, ratios[levels[a, b]])
            for column in members[seen]:
                self.reduced[a][column] += z
                self.reduced[b][column] -= down
            heaviest[a, b] = max(heaviest.get((a, b), 0), z)
            total += z
        atoms = "per-atom" in guarantee.obligation.measure.name
        self.constant -= (delta / compared.inputs * total if atoms else delta * sum(heaviest.values())) / ONE

    def _manipulation(self, item: Item) -> None:
        """What a lie adds to the probability of a set of best alternatives (as bits) is at most the limit."""
        bounds = self.task.manipulation
        kinds = max((len(votes.ballots) for votes in bounds), default=0)
        moves = [votes.moves() for votes in bounds]
        for k, row, ballot, lie, chosen, z in entries(item, len(bounds), self.rows, kinds, kinds, 1 << 30):
            votes, named = bounds[k], bounds[k].ballots[ballot]
            inside = {a for a in range(votes.alternatives) if chosen >> a & 1}
            best = inside == set(named[: len(inside)]) or (inside >= set(named) and votes.free(ballot))
            if (row, ballot, lie) not in moves[k] or not best or not inside:
                raise item.wrong("names a lie that nobody can tell, or a set that is none of best alternatives")
            mask = [chosen >> winner & 1 for winner in votes.winners]
            self.costs(row, mask, -Fraction(z, ONE))
            self.costs(moves[k][row, ballot, lie], mask, Fraction(z, ONE))
            self.constant -= Fraction(z, ONE) * votes.limit

    def _fairness(self, item: Item) -> None:
        """For z_s of the difference of two laws: their sum is at most the total variation times max z - min z."""
        lines = [(line, triples(line.pairs, len(line.squares))) for line in self.task.fairness]
        found: dict[tuple[int, int], dict[int, int]] = {}
        most = max((len(pairs) for _, pairs in lines), default=0)
        for k, pair, seen, z in entries(item, len(lines), most, self.columns, signed=True):
            found.setdefault((k, pair), {})[seen] = z
        for (k, pair), own in found.items():
            line, (a, b, level) = lines[k][0], lines[k][1][pair]
            view = self.task.table_view(line.outputs)
            for group, sign in ((a, 1), (b, -1)):
                for row, weight in line.mixture(group, self.prior).items():
                    self.costs(row, [own.get(seen, 0) for seen in view], sign * weight / ONE)
            apart = Fraction(max(0, *own.values()) - min(0, *own.values()), ONE)
            exact = line.tolerances[level] ** 2 == line.squares[level]
            self.constant -= apart * (line.tolerances[level] if exact else sqrt_up(line.squares[level]))

    # --- the least over all tables ------------------------------------------------------------------

    def value(self, free: tuple[str, ...] = ()) -> Fraction:
        """The least over all laws, masses of chosen laws, and numbers (but those left out) in their ranges."""
        for law in self.task.laws:
            least = min(self.prices.pop(name, NONE) for name in law.masses())
            self.constant += least
            if law.weight is not None:
                self.price(law.weight, -least)
        total = self.constant + Fraction(sum(map(min, self.reduced)), ONE)
        choices = {choice.name: choice for choice in self.task.choices}
        for name, price in self.prices.items():
            if name not in free:
                total += min(price * choices[name].low, price * choices[name].high)
        return total


def lower_bound(witness: Item, task: Task, asked: list[Asked]) -> Fraction:
    """What a witness proves of every table that meets the problem, and every number that is chosen.

    Raises: Refused.
    """
    ends = {choice.name: (choice.low, choice.high) for choice in task.choices}
    if any(law.weight is not None and not 0 <= ends[law.weight][0] <= ends[law.weight][1] <= 1 for law in task.laws):
        raise Refused("a law has a share of less than nothing")
    if task.estimates is None:
        tangent, *terms = witness.fields("loss", *TERMS)
        found = Lagrangian(task, asked)
        found.amount(task.loss, Fraction(1), tangent)
        found.add(terms)
        return found.value()
    return Boxes(task, asked).bound(witness)


# --- the loss of debiased estimates ---------------------------------------------------------------


class Boxes:
    """The loss of estimates, for every scale alpha and every background law at once.

    With m_k = alpha T_k + s_k the mean of g_k over rows and draws (T_k that of t_k), the loss is
    (sum f cost - sum_k w_k m_k^2) / alpha^2 - sum_k w_k Var(t_k) with cost = Pr(row) sum_k w_k g_k^2: the variance
    within rows is that of everything less that between rows. A cut is a bound on sum f cost that is affine in alpha
    and the means, or what is affine and at most zero wherever there is a table. In a box the numerator is concave in
    each mean and affine in alpha, so its quotient is least at an end, or where its derivative vanishes. Where the law
    has one value, or there is none, the means are known, and g is measured from there. Without a cut: g takes values
    at least `gap` apart, so Var(g) >= (gap / 2) E|g - m| >= (gap / 2) alpha E|t - T|.
    """

    def __init__(self, task: Task, asked: list[Asked]) -> None:
        """The moments of conditions E[g_k] - alpha t_k - s_k = 0."""
        self.task, self.asked, self.prior = task, asked, task.weights()
        assert task.estimates is not None
        self.alpha, self.weights = task.estimates.alpha, task.estimates.weights
        self.masses = [name for law in task.laws for name in law.masses()]
        (self.choice,) = (choice for choice in task.choices if choice.name == self.alpha)
        others = any(law.weight != self.alpha for law in task.laws) or len(task.laws) > 1
        if others or min(self.weights) < 0 or self.choice.low < 0:
            raise Refused("the background law has another share than 1 - alpha")
        found = [one.moment(self.alpha) for one in task.conditions]
        self.moments = [(g, t, {name: h.get(name, NONE) for name in self.masses}) for g, t, h in found]
        self.free = [k for k, weight in enumerate(self.weights) if weight and len(self.masses) > 1]
        self.names = (self.alpha, *(f"mean {k}" for k in self.free))

    def mean(self, values: list[Fraction]) -> Fraction:
        """The average over rows."""
        return sum((p * v for p, v in zip(self.prior, values, strict=True)), NONE)

    def origin(self, k: int) -> Fraction:
        """Where g is measured from: a law of one value v has the known share h(v) (1 - alpha)."""
        h = self.moments[k][2]
        return next(iter(h.values())) if len(h) == 1 else NONE

    def bound(self, witness: Item) -> Fraction:
        """The least over all boxes; never below the constant, as squares are not negative."""
        cuts, tree = witness.fields("cuts", "tree")
        found = [self.cut(item) for item in cuts.items()]
        stack = [
            [
                (self.choice.low, self.choice.high),
                *((min(self.moments[k][0]), max(self.moments[k][0])) for k in self.free),
            ]
        ]
        leaves = []
        for node in tree.items():
            if not stack:
                raise node.wrong("is more than the boxes need")
            box = stack.pop()
            if isinstance(node.value, dict):
                coordinate, at = node.fields("coordinate", "at")
                k, where = coordinate.integer(0, len(box) - 1), Fraction(at.double())
                low, high = box[k]
                if not low <= where <= high:
                    raise at.wrong("splits outside its box")
                stack += [[*box[:k], (where, high), *box[k + 1 :]], [*box[:k], (low, where), *box[k + 1 :]]]
            elif node.integer(-1, len(found) - 1) < 0:
                # alpha is above zero: there is none in a box that ends there
                leaves += [self.least_variance() / box[0][1]] if box[0][1] else []
            else:
                leaves += self.in_box(*found[node.integer()], box)
        if stack or not leaves:
            raise tree.wrong("leaves boxes open, or no table at all")
        spread = NONE
        for k, weight in enumerate(self.weights):
            t = self.moments[k][1]
            middle = self.mean(t) if k in self.free else self.origin(k)
            spread += weight * self.mean([(v - middle) ** 2 for v in t])
        return max(NONE, min(leaves) - spread) + self.task.loss.constant

    def least_variance(self) -> Fraction:
        """A number c with sum_k w_k Var(g_k) >= c alpha for every table."""
        total = NONE
        for weight, (g, t, _) in zip(self.weights, self.moments, strict=True):
            values = sorted(set(g))
            gap = min((values[i + 1] - values[i] for i in range(len(values) - 1)), default=NONE)
            total += weight * gap / 2 * self.mean([abs(v - self.mean(t)) for v in t])
        return total

    def cut(self, item: Item) -> tuple[Fraction, list[Fraction], bool]:
        """Constant and slopes in alpha and the free means; whether it says that there is no table."""
        empty, means, *terms = item.fields("empty", "means", *TERMS)
        found = Lagrangian(self.task, self.asked)
        for k, (weight, (g, _, _)) in enumerate(zip(self.weights, self.moments, strict=True)):
            squares = [(value - self.origin(k)) ** 2 for value in g]
            whole = lcm(*(square.denominator for square in squares))
            for row, p in enumerate(self.prior if not empty.flag() else ()):
                found.costs(row, [int(square * whole) for square in squares], weight * p / whole)
        found.add(terms)
        for k, z in entries(means, len(self.moments), signed=True):
            if k not in self.free:
                raise means.wrong("has an entry for what is not there")
            _, t, h = self.moments[k]
            for name, value in ((self.alpha, self.mean(t)), *h.items(), (f"mean {k}", Fraction(-1))):
                found.price(name, value * Fraction(z, ONE))
        constant = found.value(self.names)
        return constant, [found.prices.get(name, NONE) for name in self.names], empty.flag()

    def in_box(
        self, constant: Fraction, slopes: list[Fraction], empty: bool, box: list[tuple[Fraction, Fraction]]
    ) -> list[Fraction]:
        """The least quotient in a box; nothing where there is no table."""
        if empty:
            least = sum((min(s * low, s * high) for s, (low, high) in zip(slopes, box, strict=True)), constant)
            return [] if least > 0 else [NONE]
        for k, slope, (low, high) in zip(self.free, slopes[1:], box[1:], strict=True):
            constant += min(slope * end - self.weights[k] * end * end for end in (low, high))
        return [least_quotient(constant, slopes[0], *box[0])]


def least_quotient(constant: Fraction, slope: Fraction, low: Fraction, high: Fraction) -> Fraction:
    """The least of (constant + slope a) / a^2 over 0 < a in [low, high], and never below zero.

    With t = 1 / a it is constant t^2 + slope t for t in [1 / high, 1 / low], to infinity where low is 0.
    """
    if not high or (not low and (constant < 0 or (constant == 0 and slope < 0))):
        return NONE
    points = [1 / high, *([1 / low] if low else [])]
    if constant > 0:
        turn = -slope / (2 * constant)
        points += [turn] if turn > points[0] and (not low or turn < 1 / low) else []
    return max(NONE, min(constant * t * t + slope * t for t in points))
