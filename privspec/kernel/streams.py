"""Running totals of a long series: noise of a few sizes on a banded root of the totals, and a bound in closed form.

n numbers (or vectors of d numbers) stand in a row, one unit changes up to k of them, b apart, each by at most a. A are
the running totals, A = R R for R with the coefficients r_m of (1 - x)^(-1/2), and C is banded with c_m = r_m (1 + e m /
w), m < w, cut to whole numbers of 2^-40. What is drawn is C x + s_i N(0, 1), and totals are A C^-1
of that. Nothing of size n is in a plan, nothing of size n^2 is computed. Columns of C that move at once are orthogonal
where w <= b, as in what follows, else mu^2 is up to k times as large (noise/notes/streams.md, "Long series"):

    mu^2 = a^2 max over what one unit changes of sum_j u_j,      u_j = sum_m c_m^2 / s_(j+m)^2
    loss = d sum_i s_i^2 sum_(m <= n-i) g_m^2,                   g = 1 / ((1 - x) C(x))

and no Gaussian noise has a loss below d a^2 / mu^2 times the sum over classes of entries b apart of tr(H F)^2, H the
class in (A'A)^(1/2), F unit vectors whose products are those of vectors of d numbers, or means of products of signs.
"""

from __future__ import annotations

from dataclasses import field
from fractions import Fraction
from math import prod

from flint import arb, ctx, fmpz, fmpz_poly

from privspec.kernel.changes import InARow
from privspec.kernel.core.linear import InputLayout, Released
from privspec.kernel.core.numbers import ZERO, ball, end
from privspec.kernel.core.problem import Mechanism, Obligation, PlanUnderCheck, Rules, Unit, read_guarantees
from privspec.kernel.core.reading import JsonNode, Positive, Refused, Size, frozen
from privspec.kernel.laws.gaussian import Gaussian
from privspec.kernel.promises import Promise, judge_promises, of_one_figure
from privspec.kernel.rules import derive
from privspec.kernel.strategies import banded
from privspec.kernel.strategies.banded import BITS, roots
from privspec.kernel.terms import Structured
from privspec.kernel.worth import judge_worth
from privspec.kernel.worth.traces import largest_mu_squared

AMONG = "Gaussian noise of any covariance, unbiased"
NOTES = ("gaussian-exact", "rounded-gaussian", "post-processing", "streams")
SEES = "noisy answers and nothing else"
MOST_STEPS, MOST_TIMES, MOST_SIZES = 2**22, 1024, 4096
"""Numbers in a row, how many of them one unit changes, and different sizes of noise."""
MOST_RAMP = 2**10
"""Share by which the last coefficient of a band may be larger than that of the root."""
FINE = 56
"""Binary digits of its inverse."""
NEAR = 1000
"""Classes are looked at together whose last is no more than a thousandth farther from the start than the first, or a
little more where each has many numbers."""
MOST_ALIGNED = 32
"""Numbers that one unit changes up to which each has a direction of its own in the bound."""
ROUNDED = Fraction(1, 10**4)
"""Share of its deviation by which rounding may move a number."""


@frozen
class Stream:
    """The block of a problem: see `privspec.problem.streams`; a squared error costs `weight`."""

    FORM = "stream"

    held: InputLayout
    released: Released
    weight: Size
    loss: str
    families: tuple[str, ...]
    steps: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        held, size, each = self.held, prod(self.held.shape), self.each
        plain = held.layout == "entries" and held.units is None and not held.columns and held.records is None
        if not plain or held.start or held.stop != size or size % each or self.weight <= 0:
            raise Refused("is not a row of numbers or vectors, or its errors cost nothing")
        ends = held.lower, held.upper
        if held.ball is None and (None in ends or len(held.shape) != 1 or not self.amount > 0):
            raise Refused("has numbers without two ends")
        if held.ball is not None and (held.ball.norm != 2 or held.shape[1:] != (each,) or held.ball.radius <= 0):
            raise Refused("has vectors that are not of a Euclidean ball each")
        if (self.released.start, self.released.stop, self.released.shape) != (0, size, held.shape):
            raise Refused("releases another number of totals")
        object.__setattr__(self, "steps", size // each)
        if not 0 < self.steps <= MOST_STEPS:
            raise Refused("is longer than is looked at")

    @property
    def source(self) -> str:
        return self.held.name

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self.released.name,)

    @property
    def each(self) -> int:
        """How many numbers a vector has."""
        return 1 if self.held.ball is None else self.held.ball.dimension

    @property
    def amount(self) -> Fraction:
        """How far one vector can move."""
        if self.held.ball is not None:
            return 2 * self.held.ball.radius
        return (self.held.upper or ZERO) - (self.held.lower or ZERO)

    @property
    def units(self) -> str:
        """Of the loss."""
        return f"squared units of {self.released.name}"


@frozen
class Pattern:
    """What one unit changes: up to `times` numbers, `apart` or, unless `exactly`, more."""

    times: int
    apart: int
    exactly: bool


def pattern_of(asked: Obligation, block: Stream) -> Pattern:
    """The unit that a line is about: as many changes as fit into the row."""
    (unit, *more) = asked.units
    kinds = ("record",) if block.each > 1 else ("record", "entry")
    known = unit.kind in kinds and unit.inputs == (block.source,) and unit.party is None and not unit.adding
    if more or not known or (unit.apart is None and unit.count > 1):
        raise Refused("is about other units than numbers of the row that are replaced, apart from each other")
    return _fitting(unit, block.steps)


def _fitting(unit: Unit, steps: int) -> Pattern:
    apart = min(unit.apart or steps, steps)
    times = min(unit.count, -(-steps // apart))
    if times > MOST_TIMES:
        raise Refused("changes more numbers at once than are looked at")
    return Pattern(times, apart if times > 1 else steps, unit.exactly or times == 1)


@frozen
class Banded(Mechanism):
    """What is executed: `band` coefficients with a `ramp`, and for `lengths` numbers in turn the deviation of noise.

    Inputs are put on a grid of `input_grid` (a share of their width), noisy answers on `grid`, what is released on
    `output_grid`.
    """

    FORM = "stream"

    block: Stream
    ramp: Size
    band: Positive
    lengths: tuple[Positive, ...]
    deviations: tuple[Fraction, ...]
    input_grid: Fraction
    grid: Fraction
    output_grid: Fraction

    def __post_init__(self) -> None:
        block, steps = self.block, (self.input_grid, self.grid, self.output_grid)
        if sum(self.lengths) != block.steps or not len(self.lengths) == len(self.deviations) <= MOST_SIZES:
            raise Refused("has lengths that do not add up to the numbers in the row, or are too many")
        if min(*self.deviations, *steps) <= 0 or (block.families and "gaussian" not in block.families):
            raise Refused("has a size that is not positive, or is of a family that the problem does not allow")
        if self.ramp > MOST_RAMP or self.band > block.steps:
            raise Refused("has coefficients that are steeper, or more, than are looked at")

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.block.outputs

    @property
    def term(self) -> Structured:
        """What is drawn; whoever sees some total may see all noisy answers."""
        strategy = banded.Banded(self.ramp, self.band, self.lengths, self.deviations)
        return Structured(strategy, Gaussian(Fraction(1)), frozenset(self.outputs))

    def change(self, pattern: Pattern) -> InARow:
        """What one unit changes."""
        return InARow(self.block.steps, self.block.amount, pattern.times, pattern.apart, pattern.exactly)

    def mu_squared(self, pattern: Pattern) -> Fraction:
        """At least mu^2 of what one unit changes."""
        return derive(self.term, self.term.outputs, self.change(pattern)).loss.mu_squared

    def loss(self) -> tuple[Fraction, Fraction]:
        """At least the loss; and at least the sum of |g_m|, by which rounding of noisy answers may add up."""
        spread, added = inverse_up(self.ramp, self.band, self.block.steps)
        below, at, found = _sums(spread, 2), self.block.steps, ZERO
        del spread
        for count, size in zip(self.lengths, self.deviations, strict=True):
            found += size**2 * sum(below[at - count : at])
            at -= count
        return self.block.weight * self.block.each * found / 4**FINE, added

    def moves(self, added: Fraction) -> Fraction:
        """At least what rounding moves a number by."""
        width = self.block.held.width
        return added * self.grid / 2 + self.block.steps * self.input_grid * width + self.output_grid / 2


def _sums(values: list[int], power: int = 1) -> list[int]:
    """Running totals of powers."""
    total, found = 0, []
    for value in values:
        total += value**power
        found.append(total)
    return found


def inverse_up(ramp: Fraction, band: int, size: int) -> tuple[list[int], Fraction]:
    """At least |g_m|, in units of 2^-FINE; and their sum: Newton's steps, and what is left over, exactly."""
    root, one, known = fmpz_poly(roots(ramp, band)), 1 << FINE, [1 << FINE]
    for m in range(1, 1 if ramp else band):
        known.append(-(-known[-1] * (2 * m - 3) // (2 * m)))
    found, at, scale = fmpz_poly(known), len(known), fmpz(1 << BITS)
    while at < size:
        at = min(2 * at, size)
        left = fmpz_poly([one]) - root.mul_low(found, at) // scale
        found += left.mul_low(found, at) // fmpz(one)
    left = fmpz_poly([one << BITS]) - root.mul_low(found, size)
    off = [abs(int(value)) for value in left.coeffs()]
    most, all_ = Fraction(max(off, default=0), one << BITS), Fraction(sum(off), one << BITS)
    del off, left
    if 2 * all_ >= 1:
        raise Refused("has an inverse that is not found")
    series = [int(value) for value in found.coeffs()]
    spread = [abs(value) for value in _sums(series + [0] * (size - len(series)))]
    more = int(most * sum(spread) / (1 - all_)) + 1
    return [value + more for value in spread], Fraction(sum(spread) + more * size, one)


# --- the bound ------------------------------------------------------------------------------------------


class Totals:
    """Entries of (A'A)^(1/2) for n running totals: G(|i - j|) + G(i + j - 1), i and j from 1.

    G(m) = (sum_(u < n) csc a_u - sum_(u < m) (csc a_u - (-1)^u)) / (2n + 1), a_u = (u + 1/2) pi / (2n + 1): sums of
    1 / a_u are of the digamma function, those of csc a - 1 / a, which is convex, their integral but for h / 16.
    """

    def __init__(self, size: int) -> None:
        self.size, self.width = size, 2 * size + 1
        self.step = arb.pi() / self.width
        self.start, self.known = arb(1, 0) / 2, dict[int, arb]()
        self.first = self.start.digamma()
        self.half = self._cosecants(size)

    def _cosecants(self, count: int) -> arb:
        """The sum of the first so many, up to half of all."""
        if not count:
            return arb(0)
        at = self.step * count
        smooth = ((at / 2).tan() / (at / 2)).log()
        error = self.step / 32
        return ((count + self.start).digamma() - self.first + smooth) / self.step - error + arb(0, error.upper())

    def kernel(self, place: int) -> arb:
        """G."""
        if place not in self.known:
            some = place if place <= self.size else self.width - place
            total = self._cosecants(some)
            if place > self.size:
                total = 2 * self.half + 1 - total
            self.known[place] = (self.half - total + place % 2) / self.width
        return self.known[place]

    def entry(self, lag: int, total: int) -> arb:
        """Of places so far apart, that add up to a total."""
        return self.kernel(lag) + self.kernel(total - 1)


class Directions:
    """For the units of a class that starts at a place, a unit vector each, with entries of 0 or more.

    Their products are those of unit vectors of no more than `each` numbers, or means of products of signs. `lags` and
    `sums`: what vectors have in entries of equal difference, or equal sum, of their places.
    """

    def __init__(self, totals: Totals, first: int, apart: int, count: int, each: int) -> None:
        self.totals, self.first, self.apart, self.count = totals, first, apart, count
        rows = self._rows() if 1 < count <= MOST_ALIGNED else []
        if rows and (each >= count or _of_signs(rows)):
            self.lags, self.sums = [arb(0)] * count, [arb(0)] * (2 * count - 1)
            for i, row in enumerate(rows):
                for j, value in enumerate(row):
                    self.lags[abs(i - j)] += value
                    self.sums[i + j] += value
        else:
            self.lags, self.sums = self._equal()
        self.known = sum((w * totals.kernel(lag * apart) for lag, w in enumerate(self.lags)), arb(0))

    def _rows(self) -> list[list[arb]]:
        """Along the rows of the class in (A'A)^(1/2)."""
        found = []
        for i in range(self.count):
            entries = [self.totals.entry(abs(i - j) * self.apart, self._sum(i + j)) for j in range(self.count)]
            row = [entry.mid() if entry > 0 else arb(0) for entry in entries]
            length = sum((value * value for value in row), arb(0)).sqrt()
            found.append([value / length for value in row])
        return found

    def _equal(self) -> tuple[list[arb], list[arb]]:
        """Those of which every two have the same product, the best of them."""
        count, kernel = self.count, self.totals.kernel
        ways = [min(total, 2 * count - 2 - total) + 1 for total in range(2 * count - 1)]
        late = [kernel(self._sum(total) - 1) for total in range(2 * count - 1)]
        trace = sum(late[::2], count * kernel(0))
        whole = sum((2 * (count - lag) * kernel(lag * self.apart) for lag in range(1, count)), count * kernel(0))
        whole += sum((way * value for way, value in zip(ways, late, strict=True)), arb(0))
        own, other = arb(1), arb(0)
        same, apart = whole / count, trace - whole / count
        if count > 1 and apart > 0 and same > apart / (count - 1):
            scale = (count / (apart * apart / (count - 1) + same * same)).sqrt()
            own, other = apart / (count - 1) * scale, (same - apart / (count - 1)) * scale / count
        lags = [count * (own + other), *(2 * (count - lag) * other for lag in range(1, count))]
        return lags, [way * other + (own if total % 2 == 0 else 0) for total, way in enumerate(ways)]

    def _sum(self, turns: int, first: int | None = None) -> int:
        return 2 * (first or self.first) + turns * self.apart

    def along(self, first: int) -> arb:
        """The products of these vectors with the rows of a class that starts elsewhere, added up."""
        late = (w * self.totals.kernel(self._sum(turns, first) - 1) for turns, w in enumerate(self.sums))
        return sum(late, self.known)


def _of_signs(rows: list[list[arb]]) -> bool:
    """Whether products of unit vectors are surely means of products of signs: sin(pi / 2 E) is positive definite."""
    size, right = len(rows), arb.pi() / 2
    products = [[sum((a * b for a, b in zip(one, other, strict=True)), arb(0)) for other in rows] for one in rows]
    sines = [[arb(1) if i == j else (right * products[i][j]).sin() for j in range(size)] for i in range(size)]
    for k in range(size):
        if not sines[k][k] > 0:
            return False
        for i in range(k + 1, size):
            share = sines[i][k] / sines[k][k]
            sines[i] = [a - share * b if j > k else a for j, (a, b) in enumerate(zip(sines[i], sines[k], strict=True))]
    return True


def bound(block: Stream, pattern: Pattern, largest: Fraction) -> Fraction:
    """At most the loss of all Gaussian noise whose mu^2 is at most `largest`."""
    with ctx.workprec(128):
        found = classes(block.steps, pattern, block.each) * ball(block.weight * block.each * block.amount**2 / largest)
        return max(end(found.lower()), ZERO)


def classes(size: int, pattern: Pattern, each: int) -> arb:
    """The sum over classes of tr(H F)^2, each no more than that of the last of a few in a row.

    Entries of H = (A'A)^(1/2) fall with their places, and so does what each class adds.
    """
    totals, found, known = Totals(size), arb(0), None
    for number, first, count in _groups(size, pattern):
        if known is None or known.count != count or 2 * first > 3 * known.first:
            known = Directions(totals, first, pattern.apart, count, each)
        value = known.along(first)
        found += number * value * value if value > 0 else 0
    return found


def _groups(size: int, pattern: Pattern) -> list[tuple[int, int, int]]:
    """Classes that follow on each other: how many, where the last starts, from 1, and how many numbers each has."""
    times, apart, at = pattern.times, pattern.apart, 0
    turn, near = times * apart, max(min(NEAR, 16 * NEAR // times), NEAR // 20)
    whole, found = size // turn * turn, list[tuple[int, int, int]]()

    def starts(place: int) -> int:
        return place // turn * apart + min(place % turn, apart)

    while at < whole:
        last = min(at + max(at // near, 1), whole)
        if starts(last) > starts(at):
            first = (last - 1) // turn * turn + min((last - 1) % turn + 1, apart)
            found.append((starts(last) - starts(at), first, times))
        at = last
    while at < min(whole + apart, size):
        count = (size - at - 1) // apart + 1
        last = min(at + max(at // near, 1), whole + apart, size - (count - 1) * apart)
        found.append((last - at, last, count))
        at = last
    return found


# --- the rules ------------------------------------------------------------------------------------------


class StreamRules(Rules):
    """How plans about running totals of a long series are judged."""

    mechanisms = (Banded,)

    def privacy(self, case: PlanUnderCheck) -> Banded:
        executed: Banded = self.read(case.frame, case.mechanism)
        block, frame, promises = executed.block, case.frame, list[Promise]()
        if [(one.name, one.party, one.kept) for one in frame.data] != [(block.source, None, None)]:
            raise case.block.wrong("is about other data than the problem")
        if not frame.trust.means.central or frame.data[0].rule != "clip":
            raise case.block.wrong("is about other trust than the problem, or leaves out what does not fit")
        for asked in frame.obligations:
            if asked.seen != executed.outputs or asked.wrt != (block.source,):
                raise case.block.wrong(f"hides, line {asked.line}, what an observer sees")
        for guarantee in read_guarantees(case.guarantees, frame):
            change = executed.change(pattern_of(guarantee.obligation, block))
            promises.append(of_one_figure(case, executed.term, guarantee, change, NOTES, SEES))
        judge_promises(case, executed.term, promises)
        return executed

    def judge(self, case: PlanUnderCheck) -> Banded:
        executed = self.privacy(case)
        block, frame = executed.block, case.frame
        loss, added = executed.loss()
        moved = executed.moves(added) / min(executed.deviations)
        text = f"rounding to grids moves no output by more than {float(moved):.2g} of its standard deviation"
        case.says("rounding", moved <= ROUNDED, text)
        case.says("unbiased", True, "totals are those of what the noisy answers say, whose noise averages to 0")
        (witness,) = case.claims.fields("bound")
        low = None if witness.absent else least(frame.obligations, block, witness)
        judge_worth(
            case, loss, low, ("" if low is None else AMONG,), "such noise", [block.loss, block.units, "expected"]
        )
        return executed


def least(obligations: tuple[Obligation, ...], block: Stream, witness: JsonNode) -> Fraction:
    """At most the loss of all Gaussian noise that satisfies one line."""
    line, mu = witness.fields("line", "mu")
    asked = obligations[line.integer(0, len(obligations) - 1)]
    return bound(block, pattern_of(asked, block), largest_mu_squared(asked.measure, False, mu))
