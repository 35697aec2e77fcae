"""Lower bounds on the loss of systems: however parts share the lines that they have together, none is below.

What a part costs at least is a curve that falls with its share, an epsilon or a mu. A box of shares, from `low` to
`high`, is done with if its lowest corner breaks a line, or if what its parts cost at its highest is the bound. One part
is not split: a box is done with as well if all that leaves less than the bound gives that part so much that, beside the
lowest shares of the others, a line is broken. Boxes are halved, in an order that is fixed, until all are done with.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil, exp, floor, inf, sinh, sqrt
from typing import Generic, TypeVar

from privspec.kernel.core.numbers import ZERO, exp_down, exp_up, sqrt_down
from privspec.kernel.core.problem import Obligation, PlanUnderCheck
from privspec.kernel.core.reading import JsonNode, Refused, frozen, read
from privspec.kernel.measures import PURE, ZERO_CONCENTRATED, Measure
from privspec.kernel.selection import ByChances, Listed, Multipliers, Selected, Witness, read_witness
from privspec.kernel.selection import least as least_of
from privspec.kernel.tables import TableBound, contrasts, lagrangian
from privspec.kernel.tables_forms import Task
from privspec.kernel.voting import Total, VoteBound
from privspec.kernel.worth import LowerBound
from privspec.kernel.worth.duals import Dual
from privspec.kernel.worth.shifts import LawBound
from privspec.kernel.worth.traces import TraceBound, largest_mu_squared

BOXES = 2**12
"""Most boxes of one bound."""
WITNESSES = 32
LARGEST, STEPS, SPARE = Fraction(2**10), 40, 1e-7
"""Largest share that is looked at, and halvings in the search for one."""
FINE = 2**64
NEARBY = 2
"""Half records by which data are tried to be farther apart, or less."""
Kind = str
Amounts = dict[str, Fraction]
Witnesses = list[tuple[Fraction, JsonNode]]
"""Shares, and what proves a bound of a part that spends them."""
W = TypeVar("W", JsonNode, Multipliers)
Known = dict[tuple[Fraction, Fraction], "Piece"]


@frozen
class SharedLine:
    """A line that several parts share: its measure, what it asks, and their numbers."""

    measure: Measure
    asked: Amounts
    parts: tuple[int, ...]

    def broken(self, kinds: list[Kind], shares: list[Fraction]) -> bool:
        """Whether parts of these shares, or of larger ones, surely do not satisfy the line as they are composed."""
        own = [(kinds[k], shares[k]) for k in self.parts]
        mu_squared = sum((share**2 for kind, share in own if kind == "mu"), ZERO)
        pure = [share for kind, share in own if kind == "epsilon" and share]
        return self.measure.condition(self.asked).broken_by(mu_squared, pure)


# --- what a part costs at least, by its share ------------------------------------------------------------------


def _middle(low: float, high: float) -> float:
    """A number near the geometric mean."""
    near = sqrt(low * high)
    return near if low < near < high else (low + high) / 2


@frozen
class Sharing:
    """A part that was judged: what it executes, its share, and the obligations that stand for shared lines.

    `known`: what two witnesses prove between their shares, and one at a share that is not below its own, the share
    first: whoever builds curves of the same witnesses again need not read them again.
    """

    case: PlanUnderCheck
    executed: object
    kind: Kind
    share: Fraction
    shared: tuple[int, ...]
    known: Known

    def obligations(self, share: Fraction) -> tuple[Obligation, ...]:
        """Its obligations at another share."""
        found = list(self.case.frame.obligations)
        for number in self.shared:
            measure = found[number].measure
            amount = ("rho", share * share / 2) if measure.of is ZERO_CONCENTRATED else (self.kind, share)
            found[number] = replace(found[number], measure=replace(measure, amounts=(amount,)))
        return tuple(found)


class Curve:
    """What a part costs at least at a share, and at all smaller ones.

    Args: part; witnesses at other shares than its own; the largest share that is asked for.
    """

    each_share = False
    """Whether bounds are tight only at the shares of their witnesses."""

    def __init__(self, part: Sharing, witnesses: Witnesses, most: Fraction) -> None:
        self.part, self.kind, self.own, self.floors = part, part.kind, part.share, dict[float, int]()
        self.read(witnesses, most)

    def read(self, witnesses: Witnesses, most: Fraction) -> None:
        """Refused where the bound of the part says nothing of other shares."""
        raise NotImplementedError

    def at(self, share: Fraction) -> Fraction:
        """The bound."""
        raise NotImplementedError

    def near(self, share: float) -> float:
        """About the bound, in doubles."""
        return float(self.at(Fraction(share)))

    def floor(self, share: float) -> int:
        """The bound times FINE, rounded down."""
        if share not in self.floors:
            value = self.at(Fraction(share))
            self.floors[share] = value.numerator * FINE // value.denominator
        return self.floors[share]

    def largest(self, least: int, low: float, most: float) -> float:
        """A share at which the part costs `least` over FINE at least, close to the largest up to `most`; else `low`."""
        near, high, wanted, rose = low, most, least / FINE, False
        over, under = (self.near(low) - wanted if low else inf), self.near(most) - wanted
        if over < 0:
            return low
        for _ in range(STEPS):
            if high <= near * (1 + SPARE):
                break
            if over == inf:
                middle = sqrt(near * high) if near else high / 4
            else:  # where the chord crosses, but no nearer to an end than matters
                middle = near * (high / near) ** (over / (over - under))
                middle = min(max(middle, near * (1 + SPARE / 2)), high * (1 - SPARE / 2))
            off = self.near(middle) - wanted
            # an end that is kept twice counts half, so that the chord does not stay on one side
            if off >= 0:
                near, over, under = middle, off, under / 2 if rose else under
            else:
                high, under, over = middle, off, over if rose else over / 2
            rose = off >= 0
        found = near * (1 - SPARE)
        return found if found > low and self.floor(found) >= least else low


class LinearCurve(Curve):
    """The bound of additive noise falls with a sum, of what each line allows, squared, times a mass, or its root.

    What is allowed is mu, or the mu^2 = e^eps + e^-eps - 2 of a pure share (worth/traces.py).
    """

    def read(self, witnesses: Witnesses, most: Fraction) -> None:
        bound, lines = self.part.case.bounded, self.part.case.frame.obligations
        self.low = Fraction(stated(self.part.case).double())
        if (
            witnesses
            or not isinstance(bound, TraceBound)
            or bound.paid
            or bound.personal
            or not bound.worth.exponent
            or self.low < 0
        ):
            raise self.part.case.claims.wrong("say nothing of other shares")
        if bound.laws:
            # what is known of other shares is that of unbiased mechanisms, of which such noise has twice as much
            self.low = min(self.low, 2 * replace(bound, laws=()).at(lines))
        self.mass, self.rest, self.root = ZERO, ZERO, bound.worth.exponent != 1
        for line, size, mu in bound.masses:
            if line in self.part.shared:
                self.mass += size
            else:
                self.rest += size * largest_mu_squared(lines[line].measure, bound.pure, mu)
        if not self.rest:
            self.mass = Fraction(1)  # only the ratio of powers counts
        self.power = self.mass * self.square(self.own, up=False) + self.rest
        self.doubles = float(self.mass), float(self.rest), float(self.power)

    def square(self, share: Fraction, *, up: bool) -> Fraction:
        """The mu^2 that a share allows, rounded up or down."""
        power = exp_up if up else exp_down
        return share * share if self.kind == "mu" else max(ZERO, power(share) + power(-share) - 2)

    def at(self, share: Fraction) -> Fraction:
        power = self.mass * self.square(share, up=True) + self.rest
        ratio = self.power / power if power else Fraction(1)
        return self.low * (sqrt_down(ratio) if self.root else ratio)

    def near(self, share: float) -> float:
        mass, rest, own = self.doubles
        ratio = own / (mass * (share * share if self.kind == "mu" else 4 * sinh(share / 2) ** 2) + rest)
        return float(self.low) * (sqrt(ratio) if self.root else ratio)


class ClosedCurve(Curve):
    """Closed forms at any epsilon: of the noise in one number, and of sums that every rule of voting loses."""

    def read(self, witnesses: Witnesses, most: Fraction) -> None:
        bound, lines = self.part.case.bounded, self.part.case.frame.obligations
        of_votes = isinstance(bound, VoteBound) and isinstance(bound.vote.loss, Total)
        if witnesses or not (of_votes or isinstance(bound, LawBound)) or self.kind != "epsilon":
            raise self.part.case.claims.wrong("say nothing of other shares")
        assert isinstance(bound, LowerBound)
        self.falling, self.least, self.doubles = [bound], ZERO, 0.0
        if isinstance(bound, LawBound):
            # what one line shows, others of its measure about the same outputs and neighbours show at their amounts:
            # those that the part shares fall with its share, and those of its own do not

            def about(i: int) -> tuple[object, ...]:
                return lines[i].outputs, lines[i].wrt, lines[i].units, lines[i].measure.of

            alike = [i for i in range(len(lines)) if about(i) == about(bound.line)]
            shared = [i for i in self.part.shared if i in alike]
            self.falling = [replace(bound, line=i) for i in shared[:1]]
            kept = [replace(bound, line=i).at(lines) for i in alike if i not in shared]
            self.least = max([ZERO, *kept])
            self.doubles = float(self.least)

    def at(self, share: Fraction) -> Fraction:
        lines = self.part.obligations(share)
        return max([self.least, *(bound.at(lines) for bound in self.falling)])

    def near(self, share: float) -> float:
        law = self.falling[0] if self.falling else None
        if isinstance(law, LawBound) and 1e-9 < share < 100:
            return max(law.near(share), self.doubles)
        return super().near(share)


class SelectionCurve(Curve):
    """What witnesses prove of a value that is selected, at any epsilon; no cost is below 0, whatever the share is.

    Data that prove something are as much farther apart as the share is less.
    """

    def read(self, witnesses: Witnesses, most: Fraction) -> None:
        self.block, self.known = _proofs(self, witnesses)

    def at(self, share: Fraction) -> Fraction:
        lines, tried = self.part.obligations(share), list[Witness]()
        for own, witness in self.known if share else ():
            if isinstance(witness, Fraction):
                near = round(2 * witness * own / share)
                tried += [Fraction(max(near + step, 1), 2) for step in range(-NEARBY, NEARBY + 1)]
            tried.append(witness)
        kept = self.part.case.frame.data[0].kept
        return max((ZERO, *(least_of(self.block, lines, kept, one) for one in tried)))


def _proofs(curve: Curve, witnesses: Witnesses) -> tuple[Selected, list[tuple[Fraction, Witness]]]:
    """The block of a selection, and what is proved of it at epsilons, in their order."""
    found, drawn = list[tuple[Fraction, Witness]](), curve.part.executed
    assert isinstance(drawn, ByChances | Listed)
    for share, claims in sorted([(curve.own, curve.part.case.claims), *witnesses], key=lambda pair: pair[0]):
        (bound,) = claims.fields(optional=("bound",))
        if not bound.absent and curve.kind == "epsilon":
            found.append((share, read_witness(drawn.block, bound)))
    return drawn.block, found


@frozen
class Piece:
    """Between the shares of two witnesses: what is proved at both, by their mixtures, and by each up to the other.

    Bounds are whole numbers over FINE.
    """

    low: Fraction
    high: Fraction
    left: int
    inside: int
    right: int
    first: int
    second: int

    def at(self, t: int) -> int:
        """At so much of the way over FINE, in e^epsilon."""
        rest, left, right = FINE - t, self.left, self.right
        mixed = (rest * rest * left + 2 * t * rest * self.inside + t * t * right) // FINE
        return max(mixed, rest * left + t * self.first, rest * self.second + t * right, right * FINE) // FINE


class MixedCurve(Curve, Generic[W]):
    """What multipliers prove at their own epsilons, and they and mixtures of neighbouring ones at the epsilons between.

    Reduced costs c are affine in R = e^epsilon and in multipliers, and their least is concave. Between the R and R' of
    two witnesses, in the share t, the mixture of their multipliers has (1 - t)^2 c(R) + t (1 - t) (c(R') + c'(R)) +
    t^2 c'(R'): what is below the three coefficients, each by itself, gives a bound.
    """

    each_share, affine = True, True
    """`affine`: whether costs are; else it is known that a bound falls."""

    def dual(self, witness: W, share: Fraction) -> Dual:
        """What the multipliers of a witness add up to under the lines at a share."""
        raise NotImplementedError

    def value(self, witness: W, share: Fraction) -> Fraction:
        """What they prove there."""
        return self.dual(witness, share).value()

    def build(self, known: list[tuple[Fraction, W]], most: Fraction) -> None:
        """The pieces between witnesses, in order of their shares, and up to the largest share."""
        shares = [share for share, _ in known]
        if (
            not known
            or self.kind != "epsilon"
            or len(set(shares)) < len(shares)
            or not 0 < shares[0] <= shares[-1] < LARGEST
        ):
            raise self.part.case.claims.wrong("have two witnesses for a share, or one for none")
        self.start, self.end, last = shares[0], max(most, shares[-1]), known[-1]
        self.pieces = [self.between(known[n - 1], known[n]) for n in range(1, len(known))]
        self.first, self.last = self.proved(*known[0], shares[0]).right, self.proved(*last, self.end).right
        if shares[-1] < most:
            self.pieces.append(self.proved(*last, most))
        self.doubles = [(float(one.low), float(one.high)) for one in self.pieces]
        self.near_start = float(self.start)

    def proved(self, share: Fraction, witness: W, asked: Fraction) -> Piece:
        """What a witness proves at its share or at a larger one, and from one to the other."""
        found = self.part.known
        if (asked, share) not in found:
            found[asked, share] = Piece(share, asked, *[floor(self.value(witness, asked) * FINE)] * 5)
        return found[asked, share]

    def between(self, one: tuple[Fraction, W], other: tuple[Fraction, W]) -> Piece:
        """What two witnesses prove between their shares."""
        (low, lower), (high, higher), found = one, other, self.part.known
        left, right = self.proved(*one, low).right, self.proved(*other, high).right
        if not self.affine:
            return Piece(low, high, *[right] * 5)
        if (low, high) not in found:
            first, second = self.dual(lower, high), self.dual(higher, low)
            ends = [floor(each.value() * FINE) for each in (first, second)]
            first.join(second)
            found[low, high] = Piece(low, high, left, floor(first.value() / 2 * FINE), right, *ends)
        return found[low, high]

    def at(self, share: Fraction) -> Fraction:
        if share > self.end:
            raise Refused("a share is larger than any that a part may have")
        if share <= self.start:
            return Fraction(self.first, FINE)
        for one in self.pieces:
            if share < one.high:
                t = (exp_up(share) - exp_down(one.low)) / (exp_down(one.high) - exp_up(one.low))
                return Fraction(one.at(-(-t.numerator * FINE // t.denominator)), FINE)
        return Fraction(self.last, FINE)

    def near(self, share: float) -> float:
        if share <= self.near_start:
            return self.first / FINE
        for one, (low, high) in zip(self.pieces, self.doubles, strict=True):
            if share < high:
                t = (exp(share) - exp(low)) / (exp(high) - exp(low))
                return one.at(int(t * FINE)) / FINE
        return self.last / FINE


class TableCurve(MixedCurve[JsonNode]):
    """Of tables; where estimates choose a scale, costs are not affine."""

    def read(self, witnesses: Witnesses, most: Fraction) -> None:
        task = read(Task, self.part.case.block)
        self.task, self.affine = task, task.estimates is None
        self.build(sorted([(self.own, self.part.case.claims), *witnesses], key=lambda pair: pair[0]), most)

    def dual(self, witness: JsonNode, share: Fraction) -> Dual:
        return lagrangian(witness, self.task, contrasts(self.task, self.part.obligations(share)))

    def value(self, witness: JsonNode, share: Fraction) -> Fraction:
        return TableBound((), self.task, witness).at(self.part.obligations(share))


class ListedCurve(MixedCurve[Multipliers]):
    """Of laws of a selection at every table of counts."""

    def read(self, witnesses: Witnesses, most: Fraction) -> None:
        self.build([(share, one) for share, one in _proofs(self, witnesses)[1] if isinstance(one, Multipliers)], most)

    def dual(self, witness: Multipliers, share: Fraction) -> Dual:
        return witness.dual(share)

    def at(self, share: Fraction) -> Fraction:
        return max(ZERO, super().at(share))


def _of_noise(part: Sharing, witnesses: Witnesses, most: Fraction) -> Curve:
    """By what the bound of additive noise is about."""
    return (ClosedCurve if isinstance(part.case.bounded, LawBound) else LinearCurve)(part, witnesses, most)


def _of_selection(part: Sharing, witnesses: Witnesses, most: Fraction) -> Curve:
    """By whether laws are listed, and bounded, under a line about records that are replaced."""
    shared = [part.case.frame.obligations[line] for line in part.shared]
    replaced = any(
        one.measure.common is PURE and {(unit.kind, unit.adding) for unit in one.units} == {("record", False)}
        for one in shared
    )
    listed = isinstance(part.executed, Listed) and replaced and "bound" in dict(part.case.claims.entries())
    return (ListedCurve if listed else SelectionCurve)(part, witnesses, most)


CURVES = {"linear": _of_noise, "selection": _of_selection, "table": TableCurve, "votes": ClosedCurve}
"""By the form of a part's block. What stands under no name has no curve, and the system no bound."""
COSTS = ("selection",)
"""Forms whose losses are costs: none is below 0, even where nothing else is proved of them."""


def stated(case: PlanUnderCheck) -> JsonNode:
    """The bound that a plan states."""
    return dict(case.loss.entries())["lower_bound"]


# --- boxes ------------------------------------------------------------------------------------------------------


class Boxes:
    """The shares of parts; `whole`: no part may have more, whatever the others have."""

    def __init__(self, lines: list[SharedLine], kinds: list[Kind]) -> None:
        self.lines, self.kinds = lines, kinds
        self.whole = [self._alone(k) for k in range(len(kinds))]

    def _broken(self, shares: list[Fraction]) -> bool:
        return any(line.broken(self.kinds, shares) for line in self.lines)

    def _alone(self, k: int) -> Fraction:
        """A share that breaks a line by itself, close to the least."""

        def breaks(share: Fraction) -> bool:
            return self._broken([share if i == k else ZERO for i in range(len(self.kinds))])

        low, high = ZERO, Fraction(1, 2**10)
        while not breaks(high):
            low, high = high, 2 * high
            if high > LARGEST:
                raise Refused("a part is within its lines whatever its share is")
        for _ in range(STEPS // 2):
            middle = (low + high) / 2
            low, high = (low, middle) if breaks(middle) else (middle, high)
        return high

    def cost(self, curves: list[Curve], least: Fraction, most: int = BOXES) -> int:
        """How many boxes it takes to show that no shares cost less than `least`; refused if that are more than `most`.

        The first part with noise of a mu is not split, the last one if there is none.
        """
        count = len(curves)
        if not count and least > 0:
            raise Refused("the bound is more than what parts cost that share no line")
        if not count:
            return 0
        rest = self.kinds.index("mu") if "mu" in self.kinds else count - 1
        split, done, wanted = [k for k in range(count) if k != rest], 0, ceil(least * FINE)
        slopes = [8 * (c.near(float(c.own) * 0.9375) - c.near(float(c.own) * 1.0625)) / float(c.own) for c in curves]
        stack = [([0.0] * count, list(map(float, self.whole)))]
        while stack:
            low, high = stack.pop()  # with less of the part that is not split than `low`, the bound holds
            done += 1
            if done > most:
                raise Refused(f"the bound is not shown by {most} boxes of shares")
            left = wanted - sum(curves[k].floor(high[k]) for k in split)
            if left <= curves[rest].floor(high[rest]):
                continue
            low = [*low[:rest], curves[rest].largest(left, low[rest], high[rest]), *low[rest + 1 :]]
            if self._broken(list(map(Fraction, low))):
                continue
            # what a part may cost less in the box, or would at its own share if it had so much more there
            falls = [curves[k].floor(low[k] or high[k] / 4) - curves[k].floor(high[k]) for k in split]
            widths = [max(one / FINE, slopes[k] * (high[k] - low[k])) for k, one in zip(split, falls, strict=True)]
            if not widths:
                raise Refused("the bound is not shown by what one part may have")
            k = split[widths.index(max(widths))]
            middle = _middle(low[k], high[k]) if low[k] else high[k] / 4
            if not low[k] < middle < high[k]:
                raise Refused("the bound is not shown by boxes of shares, however small")
            stack += [(low, [*high[:k], middle, *high[k + 1 :]]), ([*low[:k], middle, *low[k + 1 :]], high)]
        return done
