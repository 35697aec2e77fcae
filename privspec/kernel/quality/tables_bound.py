"""What no table can beat: weak duality, and a tree of boxes where scale and background of estimates are chosen.

For multipliers z >= 0 of what every table that meets the lines satisfies, the sum over rows of the least reduced cost,
less what slacks pay, bounds the loss from below, whatever the multipliers are. They are read as whole numbers over
2^GRID; every rounding lowers the bound.
"""

from __future__ import annotations

from fractions import Fraction

from privspec.kernel.core.numbers import BITS, exp_up, sqrt_up
from privspec.kernel.core.problem import Guarantee
from privspec.kernel.core.reading import Item, Refused
from privspec.kernel.core.tables import Table
from privspec.kernel.quality.stated import whole_numbers
from privspec.kernel.quality.tables_forms import NONE, Amount, Contrast, Task

GRID = 160
ONE = 1 << GRID
TERMS = ("pairs", "conditions", "accuracy")


def entries(item: Item, *extents: int, signed: bool = False) -> list[list[int]]:
    """Places [i, j, ..., z]: whole numbers below the extents, each place once, then a multiplier on the grid.

    Were one split into several, what is paid once for the largest of a pair would be paid for a part of it.
    """
    rows, low = item.value if isinstance(item.value, list) else [None], -1e300 if signed else 0
    if any(not isinstance(row, list) or len(row) != len(extents) + 1 for row in rows):
        raise item.wrong("has an entry of another form")
    *places, multipliers = list(zip(*rows, strict=True)) or [()] * (len(extents) + 1)
    for place, extent in zip(places, extents, strict=True):
        if set(map(type, place)) - {int} or (place and not 0 <= min(place) <= max(place) < extent):
            raise item.wrong("has an entry for what is not there")
    if set(map(type, multipliers)) - {int, float} or not all(low <= z < 1e300 for z in multipliers):
        raise item.wrong("has a multiplier that is no number from 0 on")
    if len(set(zip(*places, strict=True))) < len(rows):
        raise item.wrong("has two multipliers for one place")
    exact = (z.as_integer_ratio() for z in multipliers)
    return [[*at, (top << GRID) // bottom] for *at, (top, bottom) in zip(*places, exact, strict=True)]


def contrasts(task: Task, table: Table, guarantees: list[Guarantee]) -> list[Contrast]:
    """What obligations, bounds on lies and lines of fairness say of pairs of laws: every table that meets them does."""
    found, rows = [], [{row: 1} for row in range(len(task.rows))]
    for compared, one in zip(task.compared, guarantees, strict=True):
        known, atoms = not set(one.asked) - {"epsilon", "delta"}, "per-atom" in one.obligation.measure.name
        epsilon, slack = (
            one.asked.get("epsilon", NONE),
            one.asked.get("delta", NONE) / (compared.inputs if atoms else 1),
        )
        exponents = [sqrt_up(square * epsilon**2, 2 * BITS) for square in compared.squares] + [epsilon]
        limits, listed = [(int(exp_up(q) * (1 << BITS)), slack) for q in exponents], compared.every() if known else []
        pairs = {pair: limits[level] for a, b, level in listed for pair in ((a, b), (b, a))}
        found.append(Contrast(table.view(list(one.obligation.seen)), rows, 1, pairs, atoms))
    found += [votes.contrast() for votes in task.manipulation]
    for line in task.fairness:
        found.append(line.contrast(table.view(line.outputs), task.weights(), list(map(sqrt_up, line.squares))))
    return found


class Lagrangian:
    """What multipliers add up to: reduced costs (rows, columns) over 2^GRID, prices of scalars, and a constant."""

    def __init__(self, task: Task, asked: list[Contrast]) -> None:
        self.task, self.asked, self.prior, self.constant = task, asked, task.weights(), NONE
        self.reduced, self.prices = [[0] * len(task.columns) for _ in task.rows], dict[str, Fraction]()

    def costs(self, row: int, numbers: list[int], unit: Fraction) -> None:
        """Costs of a row, rounded down."""
        top, bottom = unit.numerator << GRID, unit.denominator
        self.reduced[row] = [old + n * top // bottom for old, n in zip(self.reduced[row], numbers, strict=True)]

    def price(self, name: str, amount: Fraction) -> None:
        self.prices[name] = self.prices.get(name, NONE) + amount

    def amount(self, amount: Amount, factor: Fraction, tangent: Item) -> None:
        """A factor >= 0 times an affine function that is nowhere above an amount.

        Of a worst case, rows weighed by numbers that sum to one; of a total variation, shares from 0 to 1 of what each
        value is drawn too often.
        """
        self.constant += factor * amount.constant
        for name, price in amount.prices:
            self.price(name, factor * price)
        listed, shares = tangent.fields("worst", "shares")
        weights, parts = [[p * factor for p in self.prior]], amount.parts
        for worst, item in zip(amount.worst, listed.items(len(amount.worst)), strict=True):
            found = [Fraction(w.double()) for w in item.items(len(self.reduced))]
            if min(found) < 0 or not any(found) or worst.weight < 0:
                raise item.wrong("are no weights")
            whole = factor * worst.weight / sum(found)
            weights.append([w * whole for w in found])
        for part, own in zip(parts, weights, strict=True):
            if part.costs is not None:
                for row, (w, numbers) in enumerate(zip(own, part.costs.rows, strict=True)):
                    self.costs(row, numbers, part.costs.unit * w)
        sizes = len(parts), max(len(part.variations) for part in parts), len(self.reduced), len(self.reduced[0])
        for k, j, row, value, share in entries(shares, *sizes):
            one = parts[k].variations[j]
            scale = weights[k][row] * one.weight * Fraction(share, ONE)
            if share > ONE or scale < 0:
                raise shares.wrong("has an entry above one")
            self.costs(row, [int(shown == value) for shown in one.values], scale)
            self.constant -= scale * one.law.rows[row][value] * one.law.unit

    def add(self, pairs: Item, conditions: Item, accuracy: Item) -> None:
        """Multipliers of all that the problem asks of tables.

        For multipliers of what is seen of two laws, the slack of their pair is paid for the largest of them.
        """
        most = max((len(one.mixtures) for one in self.asked), default=0)
        members = [
            [[c for c, v in enumerate(o.view) if v == seen] for seen in range(max(o.view) + 1)] for o in self.asked
        ]
        found: dict[tuple[int, int, int], dict[int, int]] = {}
        for k, a, b, seen, z in entries(pairs, len(self.asked), most, most, len(self.reduced[0])):
            one = self.asked[k]
            if (a, b) not in one.pairs or seen >= len(members[k]):
                raise pairs.wrong("names rows that are not compared, or a lie that nobody can tell")
            ratio, slack = one.pairs[a, b]
            if slack or one.above:
                found.setdefault((k, a, b), {})[seen] = z
            below = one.whole << BITS
            for mixture, factor in ((one.mixtures[a], z << BITS), (one.mixtures[b], -z * ratio)):
                for row, weight in mixture.items():
                    change, own = factor * weight // below, self.reduced[row]
                    for column in members[k][seen]:
                        own[column] += change
        for (k, *pair), paid in found.items():
            one, at = self.asked[k], (pair[0], pair[1])
            if not one.fits(at, paid):
                raise pairs.wrong("uses a set that is none of best alternatives")
            self.constant -= one.pairs[at][1] * Fraction(sum(paid.values()) if one.atoms else max(paid.values()), ONE)
        for k, row, z in entries(conditions, len(self.task.conditions), len(self.reduced), signed=True):
            line, share = self.task.conditions[k], Fraction(z, ONE)
            if z < 0 and not line.equality:
                raise conditions.wrong("has a negative multiplier of an inequality")
            if line.average is not None:
                self.costs(row, line.average.rows[row], line.average.unit * share)
            for name, grid in line.scalars:
                self.price(name, grid.values()[row] * share)
            self.constant += line.constant.values()[row] * share
        for item in accuracy.items():
            number, multiplier, tangent = item.fields("line", "multiplier", "tangent")
            (_, _, amount, limit), scale = self.task.accuracy[number.integer()], Fraction(multiplier.double())
            if scale < 0:
                raise multiplier.wrong("is negative")
            self.amount(amount, scale, tangent)
            self.constant -= scale * limit

    def value(self, free: tuple[str, ...] = ()) -> Fraction:
        """The least over all tables, masses of chosen laws, and numbers (but those left out) in their ranges."""
        for law, labels, weight in self.task.laws:
            least = min(self.prices.pop(f"{law}:{label}", NONE) for label in labels)
            self.constant += least
            if weight is not None:
                self.price(weight, -least)
        ends = self.task.ends()
        scalars = (min(p * end for end in ends[name]) for name, p in self.prices.items() if name not in free)
        return sum(scalars, self.constant + Fraction(sum(map(min, self.reduced)), ONE))


def lower_bound(witness: Item, task: Task, asked: list[Contrast]) -> Fraction:
    """What a witness proves of every table that meets the problem, and every number that is chosen."""
    shares = [task.ends()[weight] for *_, weight in task.laws if weight is not None]
    if any(not 0 <= low <= high <= 1 for low, high in shares):
        raise Refused("a law has a share of less than nothing")
    if task.estimates is not None:
        return Boxes(task, asked).bound(witness)
    tangent, *terms = witness.fields("loss", *TERMS)
    found = Lagrangian(task, asked)
    found.amount(task.loss, Fraction(1), tangent)
    found.add(*terms)
    return found.value()


class Boxes:
    """The loss of debiased estimates, for every scale alpha and every background law at once.

    With m_k = alpha T_k + s_k the mean of g_k over rows and draws (T_k that of t_k), the loss is
    (sum f cost - sum_k w_k m_k^2) / alpha^2 - sum_k w_k Var(t_k) with cost = Pr(row) sum_k w_k g_k^2: the variance
    within rows is that of everything less that between rows. A cut is a bound on sum f cost that is affine in alpha
    and the means. In a box the numerator is concave in each mean and affine in alpha, so its quotient is least at an
    end, or where its derivative vanishes. Where the law has one value, or there is none, s_k is 0, and nothing is said
    of m_k. Without a cut: g takes values at least `gap` apart, so Var(g) >= (gap / 2) E|g - m| >=
    (gap / 2) alpha E|t - T|.
    """

    def __init__(self, task: Task, asked: list[Contrast]) -> None:
        assert task.estimates is not None
        self.task, self.asked, self.prior = task, asked, task.weights()
        self.alpha, self.weights = task.estimates
        self.moments, self.range = task.moments(self.alpha), task.ends()[self.alpha]
        several = task.masses() if len(task.masses()) > 1 else []
        known = all(set(h) <= set(several) for _, _, h in self.moments) and len(task.laws) < 2
        if not known or any(w != self.alpha for *_, w in task.laws) or min(self.weights) < 0 or min(self.range) < 0:
            raise Refused("the background law has another share than 1 - alpha")
        self.free = [k for k, weight in enumerate(self.weights) if weight and several]
        self.names = (self.alpha, *(f"mean {k}" for k in self.free))

    def mean(self, values: list[Fraction]) -> Fraction:
        """The average over rows."""
        return sum((p * v for p, v in zip(self.prior, values, strict=True)), NONE)

    def bound(self, witness: Item) -> Fraction:
        """The least over all boxes; never below the constant, as squares are not negative."""
        cuts, tree = witness.fields("cuts", "tree")
        found = [self.cut(item) for item in cuts.items()]
        ends = [(min(self.moments[k][0]), max(self.moments[k][0])) for k in self.free]
        stack, leaves, spread, least = [[self.range, *ends]], list[Fraction](), NONE, NONE
        for weight, k, (g, t, _) in zip(self.weights, range(len(self.weights)), self.moments, strict=True):
            middle = self.mean(t)
            spread += weight * self.mean([(v - (middle if k in self.free else 0)) ** 2 for v in t])
            gap = min((a - b for a in g for b in g if a > b), default=NONE)
            least += weight * gap / 2 * self.mean([abs(v - middle) for v in t])
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
            elif node.integer(-1, len(found) - 1) >= 0:
                constant, slope, *slopes = found[node.integer()]
                for k, own, side in zip(self.free, slopes, box[1:], strict=True):
                    constant += min(own * end - self.weights[k] * end * end for end in side)
                leaves.append(least_quotient(constant, slope, *box[0]))
            elif box[0][1]:  # alpha is above zero: there is none in a box that ends there
                leaves.append(least / box[0][1])
        if stack or not leaves:
            raise tree.wrong("leaves boxes open, or no table at all")
        return max(NONE, min(leaves) - spread) + self.task.loss.constant

    def cut(self, item: Item) -> list[Fraction]:
        """Constant and slopes in alpha and the free means of a bound on sum f cost."""
        means, *terms = item.fields("means", *TERMS)
        found = Lagrangian(self.task, self.asked)
        for weight, (g, _, _) in zip(self.weights, self.moments, strict=True):
            squares, unit = whole_numbers([value * value for value in g])
            for row, p in enumerate(self.prior):
                found.costs(row, squares, weight * p * unit)
        found.add(*terms)
        for k, z in entries(means, len(self.moments), signed=True):
            if k not in self.free:
                raise means.wrong("has an entry for what is not there")
            _, t, h = self.moments[k]
            for name, value in ((self.alpha, self.mean(t)), *h.items(), (f"mean {k}", Fraction(-1))):
                found.price(name, value * Fraction(z, ONE))
        return [found.value(self.names), *(found.prices.get(name, NONE) for name in self.names)]


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
