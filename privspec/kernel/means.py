"""Sums of functions of what parties hold, from one report of each: a table, and unbiased estimates for its columns.

Each party draws a column of a table by the row of what it holds, and sends it; where parties have epsilons of their
own, of the table of its own epsilon. Every column has an estimate of each
number; what is released of a number is `scale` times the sum of the estimates of all reports, and a public shift. The
mean of a row's estimates is exactly what the row stands for, so that what is released is unbiased whatever people hold.

A party may hold one of a few values, each with a row of its own; or any number of an interval, of which powers are
wanted. Then rows stand for control points of pieces of the curve of these powers, and a number draws one of those of
its piece by an exact law whose mean is the point of the curve (`Curve.drawn`): no report is less private by that.

No unbiased estimate of any form, from one report of each party that is drawn by itself, has less loss than
`lower_bound` says (noise/notes/local-means.md).

A mean of powers may be released as a power mean, its root: the estimate is moved to where such a mean lies, and then
its root is taken. Errors grow by no more than the steepest slope of the root there; nothing is proved to be better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from fractions import Fraction
from math import comb, lcm, prod

from privspec.kernel.changes import Rows
from privspec.kernel.core.numbers import ZERO, ball, end, exp_up
from privspec.kernel.core.problem import AskedMeasure, Guarantee, Mechanism, Obligation, PlanUnderCheck
from privspec.kernel.core.reading import Grid, JsonNode, Positive, Refused, Size, Whole, Wholes, frozen
from privspec.kernel.core.tables import table_of
from privspec.kernel.divergences import HockeyStick
from privspec.kernel.measures import (
    APPROXIMATE,
    GAUSSIAN,
    LOCAL_APPROXIMATE,
    PURE_MEASURES,
    RENYI,
    ZERO_CONCENTRATED,
)
from privspec.kernel.promises import Promise, Question, are_chances, epsilon_of, judge_promises
from privspec.kernel.reports import MOST_PARTIES, ReportRules, guarantees_of
from privspec.kernel.tables_forms import means
from privspec.kernel.terms import Table
from privspec.kernel.worth import judge_worth

NOTE = "local-means"
AMONG = ("", "all unbiased estimates from one report of each party")
MOST_ROWS = 16
"""Rows of a table, and values of which a bound is: all sets of them are gone through."""
MOST_POWER = 8
WEAKER = (ZERO_CONCENTRATED, GAUSSIAN, RENYI)
MEASURES = (*PURE_MEASURES, APPROXIMATE, LOCAL_APPROXIMATE, *WEAKER)
"""What reports of pure epsilon are judged by; others ask for less."""
Point = list[Fraction]


@frozen
class Number:
    """A number that is released: `scale` times a sum over all, and `shift`; a squared error of it costs `weight`.

    `root`: what is released is the root of that, s^(1 / root).
    """

    scale: Fraction
    shift: Fraction
    weight: Size
    root: Whole = 1

    def steepest(self, low: Fraction, high: Fraction) -> Fraction:
        """At least the slope of s^(1 / root) between two ends above 0, where it is steepest; exact where it is 1."""
        if self.root == 1:
            return Fraction(1)
        return max(end((ball(s) ** (ball(Fraction(1, self.root)) - 1) / self.root).abs_upper()) for s in (low, high))


@frozen
class Output:
    """An output by name, and its shape."""

    name: str
    shape: tuple[int, ...]


@frozen
class Listed:
    """A party holds one of `values`; `functions` (values, numbers) of each are summed."""

    FORM = "listed"

    values: tuple[Fraction, ...]
    functions: Grid

    def __post_init__(self) -> None:
        if list(self.values) != sorted(set(self.values)) or not 2 <= len(self.values) <= MOST_ROWS:
            raise Refused("has values that are not in order, or too many or too few")
        if len(self.functions.shape) != 2 or self.functions.shape[0] != len(self.values):
            raise Refused("has functions of other values")

    @property
    def numbers(self) -> int:
        return self.functions.shape[1]

    def points(self) -> list[Point]:
        """What each row stands for."""
        return [[entry * self.functions.unit for entry in row] for row in self.functions.rows]

    def asked(self, place: JsonNode) -> list[Point]:
        """The values that a bound is about: all."""
        place.same(None)
        return self.points()

    def groups(self) -> list[tuple[int, Point]]:
        """Rows, each with a point: at most the error of a row about its point is what any value errs by."""
        return list(enumerate(self.points()))

    def drawn(self, value: Fraction) -> list[tuple[int, Fraction]]:
        """The rows that a value draws by, each with its chance."""
        return [(self.values.index(value), Fraction(1))]


@frozen
class Curve:
    """A party holds a number from the first to the last of `ends`; its `powers`, whole numbers, are summed.

    Between two ends x^q times every power is a polynomial of degree d, and so is x^q: q, d the least that make it so.
    A polynomial is the mean of its Bernstein coefficients under a binomial law. So the curve is a mean of d + 1 control
    points, by the law whose weights are those of x^q over x^q itself.
    """

    FORM = "curve"

    ends: tuple[Fraction, ...]
    powers: tuple[Whole, ...]

    def __post_init__(self) -> None:
        if list(self.ends) != sorted(set(self.ends)) or len(self.ends) < 2 or not self.powers:
            raise Refused("has ends of pieces that are not in order, or no powers")
        if self.lift and self.ends[0] <= 0:
            raise Refused("takes a negative power of numbers that are not all above 0")
        if not all(0 < abs(power) <= MOST_POWER for power in self.powers) or len(self.points()) > MOST_ROWS:
            raise Refused("has powers, or pieces, that are not known")

    @property
    def numbers(self) -> int:
        return len(self.powers)

    @property
    def lift(self) -> int:
        """The q."""
        return max(0, -min(self.powers))

    @property
    def degree(self) -> int:
        """The d."""
        return self.lift + max(0, *self.powers)

    @property
    def extremes(self) -> list[Fraction]:
        """Numbers that powers are least and largest at."""
        low, high = self.ends[0], self.ends[-1]
        return [low, high, ZERO] if low < 0 < high else [low, high]

    def at(self, value: Fraction) -> Point:
        """The powers of a number."""
        return [value**power for power in self.powers]

    def _coefficients(self, low: Fraction, high: Fraction, power: int) -> list[Fraction]:
        """Of x^power between two ends, in the Bernstein basis: the polar form at r times the high end."""
        d, found = self.degree, []
        for r in range(d + 1):
            terms = (
                comb(r, i) * comb(d - r, power - i) * high**i * low ** (power - i)
                for i in range(max(0, power - d + r), min(r, power) + 1)
            )
            found.append(Fraction(sum(terms), comb(d, power)))
        return found

    def pieces(self) -> list[list[Point]]:
        """The control points of each piece."""
        found = []
        for low, high in zip(self.ends, self.ends[1:], strict=False):
            below = self._coefficients(low, high, self.lift)
            above = [self._coefficients(low, high, power + self.lift) for power in self.powers]
            found.append([[one[r] / under for one in above] for r, under in enumerate(below)])
        return found

    def points(self) -> list[Point]:
        """What each row stands for: the last of a piece is the first of the next."""
        pieces = self.pieces()
        return pieces[0][:1] + [point for piece in pieces for point in piece[1:]]

    def asked(self, place: JsonNode) -> list[Point]:
        """The numbers that a bound is about."""
        chosen = [item.exact() for item in place.items()]
        if not 2 <= len(chosen) <= MOST_ROWS or not all(self.ends[0] <= one <= self.ends[-1] for one in chosen):
            raise place.wrong("is about numbers that nobody holds, or too many or too few")
        return [self.at(one) for one in chosen]

    def groups(self) -> list[tuple[int, Point]]:
        """The rows of every piece about the middle of its numbers: the law of a number is a mean of these rows."""
        return [
            (self.degree * number + r, self.at((low + high) / 2))
            for number, (low, high) in enumerate(zip(self.ends, self.ends[1:], strict=False))
            for r in range(self.degree + 1)
        ]

    def drawn(self, value: Fraction) -> list[tuple[int, Fraction]]:
        """The rows that a number draws by, each with its chance."""
        number = max(sum(end <= value for end in self.ends[:-1]) - 1, 0)
        low, high = self.ends[number : number + 2]
        share, d, under = (value - low) / (high - low), self.degree, value**self.lift
        below = self._coefficients(low, high, self.lift)
        laws = (comb(d, r) * share**r * (1 - share) ** (d - r) * below[r] / under for r in range(d + 1))
        return [(d * number + r, chance) for r, chance in enumerate(laws) if chance]


@frozen
class MeanBlock:
    """`count` parties, what each holds, and the numbers that are released, one after another in the outputs.

    `law`: the chance of each of the values, of which the loss is the mean; None where it is that at the worst values.
    """

    FORM = "means"

    source: str
    party: str
    count: Positive
    held: Listed | Curve
    outputs: tuple[Output, ...]
    numbers: tuple[Number, ...]
    law: tuple[Size, ...] | None
    expression: str
    kind: str

    def __post_init__(self) -> None:
        sizes = sum(prod(one.shape) for one in self.outputs)
        if not sizes == len(self.numbers) == self.held.numbers or self.count > MOST_PARTIES:
            raise Refused("has other outputs than numbers, or too many parties")
        if not all(one.scale for one in self.numbers):
            raise Refused("releases what does not depend on anybody")
        if self.law is not None and (len(self.law) != len(self.held.points()) or not are_chances(self.law)):
            raise Refused("has a law of other values")
        if isinstance(self.held, Curve) and self.law is not None:
            raise Refused("has a law of numbers of an interval")
        for (low, _), one in zip(self.ranges, self.numbers, strict=True):
            if one.root != 1 and (low <= 0 or one.shift or one.scale != Fraction(1, self.count) or not one.root):
                raise Refused("takes a root of what is no mean of numbers above 0")
        if len({one.name for one in self.outputs}) < len(self.outputs) or not any(self.costs):
            raise Refused("names an output twice, or weighs errors by nothing")

    @property
    def ranges(self) -> list[tuple[Fraction, Fraction]]:
        """The least and the largest of each function of what a party holds."""
        held = self.held
        points = held.points() if isinstance(held, Listed) else [held.at(one) for one in held.extremes]
        return [(min(some), max(some)) for some in zip(*points, strict=True)]

    @property
    def rooted(self) -> bool:
        """Whether a root of some sum is released."""
        return any(one.root != 1 for one in self.numbers)

    @property
    def costs(self) -> list[Fraction]:
        """What a squared error of each sum costs, at most where its root is released."""
        pairs = zip(self.numbers, self.ranges, strict=True)
        return [one.weight * (one.scale * one.steepest(*ends)) ** 2 for one, ends in pairs]

    def square(self, one: Sequence[Fraction | int], other: Sequence[Fraction | int]) -> Fraction:
        """The product of two points, by these costs."""
        return sum((cost * a * b for cost, a, b in zip(self.costs, one, other, strict=True)), ZERO)


WORDS = {"MeanBlock.kind": ("expected", "worst")}


@frozen
class Report:
    """A further kind of report."""

    table: Grid
    estimates: Grid


@frozen
class Means(Mechanism):
    """What is executed: the table of a report, and the estimates of its columns (columns, numbers).

    Where parties have figures of their own: `more` kinds of reports, and `of` each party which of all it sends. What is
    shown is then a place among the columns of all kinds, one kind after another.
    """

    FORM = "means"

    block: MeanBlock
    table: Grid
    estimates: Grid
    of: Wholes | None = None
    more: tuple[Report, ...] = ()
    term: Table = field(init=False)

    def __post_init__(self) -> None:
        block, name, every = self.block, self.block.outputs[0].name, self.each
        kinds = {0} if self.of is None else set(self.of)
        if kinds != set(range(len(every))) or (self.of is not None and len(self.of) != block.count):
            raise Refused("does not say of each party what it sends, or some kind is sent by none")
        for table, estimates in every:
            columns = estimates.shape[0]
            shapes = (len(block.held.points()), columns), (columns, len(block.numbers))
            if (table.shape, estimates.shape) != shapes:
                raise Refused("has a table or estimates of other values, reports or numbers")
        laws = [table_of(table, name) for table, _ in every]
        whole, widths = lcm(*(law.whole for law in laws)), [len(law.rows[0]) for law in laws]
        rows = [
            (*[0] * sum(widths[:kind]), *(n * (whole // law.whole) for n in row), *[0] * sum(widths[kind + 1 :]))
            for kind, law in enumerate(laws)
            for row in law.rows
        ]
        # whoever sees an output sees all reports
        places = tuple((one.name, tuple(range(sum(widths)))) for one in block.outputs)
        object.__setattr__(self, "term", Table(tuple(rows), whole, places))

    @property
    def each(self) -> list[tuple[Grid, Grid]]:
        """The table and the estimates of every kind."""
        return [(self.table, self.estimates), *((one.table, one.estimates) for one in self.more)]

    @property
    def kinds(self) -> list[Means]:
        """What the parties execute that send a kind, one kind after another."""
        if self.of is None:
            return [self]
        sent = [0] * len(self.each)
        for kind in self.of:
            sent[kind] += 1
        return [Means(replace(self.block, count=n), *one) for n, one in zip(sent, self.each, strict=True)]

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.block.outputs)

    def change(self, kind: int | None = None) -> Rows:
        """A party may hold anything in place of anything else: one that sends a kind of report, or any."""
        each = len(self.block.held.points())
        kinds = range(len(self.each)) if kind is None else (kind,)
        return Rows((), tuple(tuple(range(each * k, each * (k + 1))) for k in kinds))

    def epsilon(self, kind: int | None = None) -> Fraction | None:
        """The logarithm of the largest ratio of two chances of one report, rounded up; None where it has no limit."""
        return epsilon_of(self.term, self.change(kind))

    def columns(self) -> list[Point]:
        """The estimates of every column."""
        return [[entry * self.estimates.unit for entry in row] for row in self.estimates.rows]

    def biased(self) -> list[int]:
        """The rows whose mean estimates are not what they stand for, of a kind that has some."""
        if self.of is not None:
            return next((found for kind in self.kinds if (found := kind.biased())), [])
        sums = [
            [sum(n * row[j] for n, row in zip(chances, self.estimates.rows, strict=True)) for j in range(self.numbers)]
            for chances in self.term.rows
        ]
        whole = self.estimates.unit / self.term.whole
        points = self.block.held.points()
        return [r for r, one in enumerate(sums) if [part * whole for part in one] != points[r]]

    @property
    def numbers(self) -> int:
        return len(self.block.numbers)

    def squares(self) -> list[Fraction]:
        """For each row the mean square of the estimates, by the costs."""
        each = [self.block.square(one, one) for one in self.columns()]
        return means(self.term, [each] * len(self.term.rows))

    def loss(self) -> Fraction:
        """By the law of the values, or at most that at the worst: errors of independent reports add up.

        A square about any point g is at least that about the mean: E|v|^2 - |f|^2 <= E|v|^2 - 2 f'g + |g|^2, which is
        linear in the law of a number, and so at most its largest at a row.
        """
        if self.of is not None:
            return sum((kind.loss() for kind in self.kinds), ZERO)
        block, squares, points = self.block, self.squares(), self.block.held.points()
        errors = [
            squares[row] - 2 * block.square(points[row], point) + block.square(point, point)
            for row, point in block.held.groups()
        ]
        if block.law is None:
            return block.count * max(errors)
        return block.count * sum((chance * error for chance, error in zip(block.law, errors, strict=True)), ZERO)

    def loss_of(self, number: int) -> Fraction:
        """The same of one number alone, whatever its errors cost."""
        numbers = [replace(one, weight=Fraction(j == number)) for j, one in enumerate(self.block.numbers)]
        return replace(self, block=replace(self.block, numbers=tuple(numbers))).loss()


def proved(found: Means, lines: Sequence[Obligation], witness: JsonNode) -> Fraction:
    """What a witness proves of every unbiased estimate from one report of each party.

    `requirement`: by two values, under one line. Else by the pure lines, for each kind of report that is executed: at
    the largest epsilon of any party that sends it.
    """
    if "requirement" in dict(witness.entries()):
        (number,) = witness.fields("requirement")
        return by_two(found.block, lines[number.integer(0, len(lines) - 1)].measure)
    pure = [one.measure.each or (one.measure,) for one in lines if _pure(one)]
    if found.block.rooted or not pure:
        raise witness.wrong("is about sums themselves, under pure epsilon")
    limits = strictest([[one.figures({})["epsilon"] for one in own] for own in pure], found.block.count)
    if found.of is None:
        return lower_bound(found.block, max(limits), witness)
    (items,) = witness.fields("kinds")
    most = [max(e for e, own in zip(limits, found.of, strict=True) if own == k) for k in range(len(found.each))]
    each = zip(found.kinds, most, items.items(len(most)), strict=True)
    return sum((lower_bound(kind.block, epsilon, item) for kind, epsilon, item in each), ZERO)


def strictest(lines: list[list[Fraction]], count: int) -> list[Fraction]:
    """The least epsilon of each party, by lines of one for all or one for each; of all, where no line has each."""
    if all(len(line) == 1 for line in lines):
        return [min(line[0] for line in lines)]
    return [min(own) for own in zip(*(line * count if len(line) == 1 else line for line in lines), strict=True)]


def _pure(line: Obligation) -> bool:
    return all(one.common in PURE_MEASURES for one in line.measure.each or (line.measure,))


def by_two(block: MeanBlock, asked: AskedMeasure) -> Fraction:
    """What no unbiased estimate is below, by Hammersley, Chapman and Robbins between two values of a party.

    Where one holds x, an estimate of f(x) errs by |f(x) - f(y)|^2 / chi^2 at least, chi^2 that of reports at x and y.
    """
    if block.rooted:
        raise Refused("is about sums themselves")
    held = block.held
    points = held.points() if isinstance(held, Listed) else [held.at(one) for one in held.extremes]
    apart = [[[a - b for a, b in zip(one, other, strict=True)] for other in points] for one in points]
    far = [max(block.square(off, off) for off in some) for some in apart]
    error = max(far) if block.law is None else sum((p * own for p, own in zip(block.law, far, strict=True)), ZERO)
    total, known = ZERO, dict[AskedMeasure, Fraction]()
    for one in asked.each or (asked,) * block.count:
        if one not in known:
            condition = one.of.condition(one.figures({}))
            most = None if isinstance(condition, HockeyStick) and condition.delta else condition.largest_unbiased()
            if not most or not one.of.of_laws:
                raise Refused("is of a line for which no bound is known")
            known[one] = error / most
        total += known[one]
    return total


def lower_bound(block: MeanBlock, epsilon: Fraction, witness: JsonNode) -> Fraction:
    """What a witness proves of every unbiased estimate from one report of each party of pure epsilon.

    With a prior p over some values, f (values, numbers) less its mean, c the costs, and any y (values, numbers) and l:
    if sum_j c_j (y_j'u)^2 <= k (l'u) (p'u) for all u in {1, R}^values, R = e^epsilon, then the mean squared error of
    one party by p is at least (sum_j c_j y_j'f_j)^2 / (k l'1) - sum_j c_j p'f_j^2.
    """
    values, prior, directions, multipliers = witness.fields("values", "prior", "directions", "multipliers")
    points = block.held.asked(values)
    many, size = len(points), len(block.numbers)
    if block.law is not None:
        prior.same(None)
        law = list(block.law)
    else:
        given = prior.array(many).entries
        law = [Fraction(one, sum(given) or 1) for one in given]
        if not are_chances(law):
            raise prior.wrong("is no law of values")
    y, weights = directions.array(many, size), multipliers.array(many).entries
    mean = [sum((p * point[j] for p, point in zip(law, points, strict=True)), ZERO) for j in range(size)]
    apart = [[one - at for one, at in zip(point, mean, strict=True)] for point in points]
    worst = _largest(block.costs, y.rows, list(weights), law, exp_up(epsilon))
    along = sum((block.square(row, point) for row, point in zip(y.rows, apart, strict=True)), ZERO)
    spread = sum((p * block.square(point, point) for p, point in zip(law, apart, strict=True)), ZERO)
    return max(block.count * (along**2 / (worst * sum(weights)) - spread), ZERO) if along > 0 else ZERO


def _largest(
    costs: list[Fraction], directions: list[list[int]], weights: list[int], law: list[Fraction], ratio: Fraction
) -> Fraction:
    """The largest of sum_j c_j (y_j'u)^2 / ((l'u) (p'u)) over u in {1, ratio}^values.

    One entry of u changes from each to the next (Gray): sums are kept.
    """
    high, low = ratio.as_integer_ratio()
    if sum(min(one * low, one * high) for one in weights) <= 0 or ratio <= 1:
        raise Refused("has multipliers that are not above 0 at every column, or asks for reports that tell nothing")
    below = lcm(*(one.denominator for one in law))
    rows = [(*row, weight, int(chance * below)) for row, weight, chance in zip(directions, weights, law, strict=True)]
    unit = lcm(*(one.denominator for one in costs))
    factors = [int(cost * unit) for cost in costs]
    sums = [low * sum(column) for column in zip(*rows, strict=True)]
    steps = [[(high - low) * entry for entry in row] for row in rows]
    top, under, raised = 0, 1, [False] * len(rows)
    for number in range(2 ** len(rows)):
        if number:
            place = (number & -number).bit_length() - 1
            sign = -1 if raised[place] else 1
            raised[place] = not raised[place]
            sums = [one + sign * step for one, step in zip(sums, steps[place], strict=True)]
        *along, weighed, chance = sums
        size, scale = sum(factor * one * one for factor, one in zip(factors, along, strict=True)), weighed * chance
        if size * under > top * scale:
            top, under = size, scale
    return Fraction(top * below, under * unit)


def units_of(block: MeanBlock) -> str:
    """The units of the loss."""
    return f"squared units of {' and '.join(one.name for one in block.outputs)}"


def _promised(found: Means, one: Guarantee) -> Promise:
    """What a line asks of every report; where each party has a figure of its own, the plan states the largest."""
    own, words = one.obligation.measure.each, "epsilon {:.8g}, the logarithm of the largest ratio of chances"
    if not own:
        otherwise = "" if "epsilon" in one.asked else f"{words}, is more than the line allows, or another is stated"
        question = Question(found.change(), one.asked, one.achieved)
        return Promise(one, (question,), (NOTE,), words, otherwise=otherwise)
    pairs = dict.fromkeys(zip(found.of or (0,) * found.block.count, own, strict=True))
    questions = tuple(Question(found.change(kind), asked.figures({}), one.achieved) for kind, asked in pairs)
    reached = [float(found.epsilon(kind) or 0) for kind in range(len(found.each))]
    figure = f"epsilon from {min(reached):.8g} to {max(reached):.8g}, which"
    otherwise = f"{figure} is more than some own figure allows, or another is stated"
    return Promise(one, questions, (NOTE,), f"{figure} each own figure allows", otherwise=otherwise)


class MeanRules(ReportRules):
    """How plans about means of reports are judged."""

    mechanisms = (Means,)

    by_keeper = False

    def privacy(self, case: PlanUnderCheck) -> Means:
        found: Means = self.read(case.frame, case.mechanism)
        block = found.block
        self.view(case, block)
        for kind in found.kinds:
            rows, columns = len(kind.term.rows), len(kind.term.rows[0])
            case.says("law", True, f"{rows} rows of {columns} chances, each of exactly one in all")
        if isinstance(block.held, Curve):
            text = "a number draws one of the rows of its piece by a law of that number alone: it costs no privacy"
            case.says("rounding", True, text)
        guarantees = guarantees_of(case, block, MEASURES, block.count, outputs=found.outputs)
        promises = [_promised(found, one) for one in guarantees]
        judge_promises(case, found.term, promises)
        return found

    def judge(self, case: PlanUnderCheck) -> Means:
        found = self.privacy(case)
        block, biased = found.block, found.biased()
        text = "the mean estimate of every row is exactly what it stands for"
        case.says("unbiased", not biased, f"not of row {biased[0]}: {text}" if biased else text)
        (bound,) = case.claims.fields(optional=("bound",))
        if block.rooted or isinstance(block.held, Curve):
            case.says("loss", True, "what is stated is the most that the loss can be, at the worst numbers")
        derived = None if bound.absent else proved(found, case.frame.obligations, bound)
        words = [block.expression, units_of(block), block.kind]
        judge_worth(case, found.loss(), derived, AMONG[derived is not None :], "such estimate", words)
        return found
