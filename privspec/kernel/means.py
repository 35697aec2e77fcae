"""Sums of functions of what parties hold, from one report of each: a table, and unbiased estimates for its columns.

Each party draws a column of a table by the row of what it holds, and sends it. Every column has an estimate of each
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
from privspec.kernel.core.problem import Mechanism, PlanUnderCheck
from privspec.kernel.core.reading import Grid, JsonNode, Positive, Refused, Size, Whole, frozen
from privspec.kernel.core.tables import table_of
from privspec.kernel.measures import APPROXIMATE, LOCAL_APPROXIMATE, PURE_MEASURES
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
MEASURES = (*PURE_MEASURES, APPROXIMATE, LOCAL_APPROXIMATE)
"""What reports of pure epsilon are judged by; those with a delta ask for less."""
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
class Means(Mechanism):
    """What is executed: the table of a report, and the estimates of its columns (columns, numbers)."""

    FORM = "means"

    block: MeanBlock
    table: Grid
    estimates: Grid
    term: Table = field(init=False)

    def __post_init__(self) -> None:
        block, columns = self.block, self.estimates.shape[0]
        shapes = (len(block.held.points()), columns), (columns, len(block.numbers))
        if (self.table.shape, self.estimates.shape) != shapes:
            raise Refused("has a table or estimates of other values, reports or numbers")
        law = table_of(self.table, block.outputs[0].name)
        # whoever sees an output sees all reports
        places = tuple((one.name, tuple(range(columns))) for one in block.outputs)
        object.__setattr__(self, "term", Table(law.rows, law.whole, places))

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.block.outputs)

    @property
    def change(self) -> Rows:
        """A party may hold anything in place of anything else."""
        return Rows((), (tuple(range(len(self.term.rows))),))

    def epsilon(self) -> Fraction | None:
        """The logarithm of the largest ratio of two chances of one report, rounded up; None where it has no limit."""
        return epsilon_of(self.term, self.change)

    def columns(self) -> list[Point]:
        """The estimates of every column."""
        return [[entry * self.estimates.unit for entry in row] for row in self.estimates.rows]

    def biased(self) -> list[int]:
        """The rows whose mean estimates are not what they stand for."""
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


class MeanRules(ReportRules):
    """How plans about means of reports are judged."""

    mechanisms = (Means,)

    by_keeper = False

    def privacy(self, case: PlanUnderCheck) -> Means:
        found: Means = self.read(case.frame, case.mechanism)
        block = found.block
        self.view(case, block)
        rows, columns = len(found.term.rows), len(found.term.rows[0])
        case.says("law", True, f"{rows} rows of {columns} chances, each of exactly one in all")
        if isinstance(block.held, Curve):
            text = "a number draws one of the rows of its piece by a law of that number alone: it costs no privacy"
            case.says("rounding", True, text)
        words = "epsilon {:.8g}, the logarithm of the largest ratio of chances"
        promises = [
            Promise(one, (Question(found.change, one.asked, one.achieved),), (NOTE,), words)
            for one in guarantees_of(case, block, MEASURES, outputs=found.outputs)
        ]
        judge_promises(case, found.term, promises)
        return found

    def judge(self, case: PlanUnderCheck) -> Means:
        found = self.privacy(case)
        block, biased = found.block, found.biased()
        text = "the mean estimate of every row is exactly what it stands for"
        case.says("unbiased", not biased, f"not of row {biased[0]}: {text}" if biased else text)
        (bound,) = case.claims.fields(optional=("bound",))
        strictest = min(one.measure.figures({})["epsilon"] for one in case.frame.obligations)
        pure = all(one.measure.common in PURE_MEASURES for one in case.frame.obligations)
        if not bound.absent and (block.rooted or not pure):
            raise bound.wrong("is about sums themselves, under pure epsilon")
        if block.rooted or isinstance(block.held, Curve):
            case.says("loss", True, "what is stated is the most that the loss can be, at the worst numbers")
        derived = None if bound.absent else lower_bound(block, strictest, bound)
        words = [block.expression, units_of(block), block.kind]
        judge_worth(case, found.loss(), derived, AMONG[derived is not None :], "such estimate", words)
        return found
