"""Reports of real points: noise of one law at the point, and what it lets through by how far apart two points are.

The noise has density ~ e^(-||v|| / scale) in a norm, and the point with its noise is rounded afterwards to the nearest
multiple of a step: the guarantee is that of real numbers, with no term for the rounding (noise/notes/real-points.md).
"""

from __future__ import annotations

from fractions import Fraction
from math import prod

from flint import arb, ctx

from privspec.kernel.changes import Anything, ByDistance, Change
from privspec.kernel.core.numbers import ZERO, ball, end
from privspec.kernel.core.problem import AskedMeasure, Guarantee, PlanUnderCheck
from privspec.kernel.core.reading import Positive, Refused, Size, Whole, frozen
from privspec.kernel.laws.knorm import NORMS, NoisyPoint, ratio_squared
from privspec.kernel.measures import BY_DISTANCE, PURE_MEASURES
from privspec.kernel.promises import OneOutput, Promise, Question, epsilon_of, judge_promises
from privspec.kernel.reports import ReportRules, guarantees_of
from privspec.kernel.terms import Pick
from privspec.kernel.worth import judge_worth

NORM_OF = {"euclidean": "l2", "manhattan": "l1", "chebyshev": "linf"}
WORDS = {"Points.norm": NORMS}
NOTE = "real-points"
CLASSES = ("", "noise of one law, whatever the point")
PRECISION = 256
LARGEST_SIZE = 64
QUANTILE_BITS = 60


@frozen
class Error:
    """`weight` times the mean of a norm of the error of one point, to a power."""

    norm: str
    power: Positive
    weight: Size

    def __post_init__(self) -> None:
        if not self.weight or (self.power, self.norm) not in {(2, "l2"), *((1, norm) for norm in NORMS)}:
            raise Refused("is no error that is known")


@frozen
class Accuracy:
    """What a mean error may be at most; with a `probability`, what the error itself is at most so often."""

    error: Error
    bound: Fraction
    line: Whole
    text: str
    probability: Fraction | None

    def __post_init__(self) -> None:
        chance = self.probability
        if chance is not None and not (0 < chance < 1 and self.error.power == self.error.weight == 1):
            raise Refused("is no line about how often an error is small")


@frozen
class PointBlock:
    """As the problem states it: where a point lies, what is a report of it, and what an error costs."""

    FORM = "points"

    source: str
    output: str
    party: str | None
    count: Positive
    size: Positive
    shape: tuple[int, ...]
    lower: Fraction | None
    upper: Fraction | None
    radius: Fraction | None
    ball: str | None
    least: Fraction | None
    most: Fraction | None
    error: Error
    expression: str
    kind: str
    accuracy: tuple[Accuracy, ...]

    def __post_init__(self) -> None:
        if self.size > LARGEST_SIZE or prod(self.shape) != self.count * self.size:
            raise Refused("has points of too many numbers, or a report of another size")
        if self.count > 1 and self.party is None:
            raise Refused("has several points, and nobody whose they are")
        inside = self.lower is None or self.upper is None or self.lower < self.upper
        round_ = self.ball in NORMS[:2] and self.lower is None and self.upper is None
        if not inside or (self.ball is not None and not round_) or (self.radius is None) != (self.ball is None):
            raise Refused("has points that lie in no box, and in no ball")
        if self.radius is not None and self.radius <= 0:
            raise Refused("has points that cannot move")

        low, high = (self.lower, self.upper) if self.radius is None else (-self.radius, self.radius)
        if self.least is not None and (low is None or self.least > low):
            raise Refused("has reports that cannot be every point")
        if self.most is not None and (high is None or self.most < high):
            raise Refused("has reports that cannot be every point")

    @property
    def moved(self) -> bool:
        """Whether reports are moved to ends within which all points lie: that takes none farther from its point."""
        return self.least is not None or self.most is not None

    def diameter_squared(self, norm: str) -> Fraction | None:
        """The largest distance of two points, squared; None where there is none."""
        if self.radius is not None and self.ball is not None:
            return 4 * self.radius**2 * ratio_squared(norm, self.ball, self.size)
        if self.lower is None or self.upper is None:
            return None
        return (self.upper - self.lower) ** 2 * ratio_squared(norm, "linf", self.size)


@frozen
class Points(OneOutput):
    """What is executed: every point with noise of density ~ e^(-||v|| / scale), rounded to multiples of `step`."""

    FORM = "points"

    block: PointBlock
    norm: str
    scale: Size
    step: Size

    def __post_init__(self) -> None:
        if not self.scale or not self.step:
            raise Refused("has noise of no size, or no step to round to")

    @property
    def term(self) -> Pick:
        """A report that all may see."""
        block = self.block
        law = NoisyPoint(self.norm, block.size, self.scale, block.diameter_squared(self.norm))
        return Pick(block.output, law, public=True)

    def epsilon(self, metric: str | None = None) -> Fraction | None:
        """For any two points, or for each unit of their distance, rounded up; None where points may be anywhere."""
        if metric is None and self.block.diameter_squared(self.norm) is None:
            return None
        return epsilon_of(self.term, Anything() if metric is None else ByDistance(NORM_OF[metric]))


# --- losses ----------------------------------------------------------------------------------------------


def moment(norm: str, size: int, error: Error) -> arb | None:
    """The mean of the error under noise of scale 1; None where no formula is known here."""
    d, pair = size, (norm, error.norm, error.power)
    plain: dict[tuple[str, str, int], Fraction] = {
        ("l2", "l2", 2): Fraction(d * (d + 1)),
        ("l1", "l2", 2): Fraction(2 * d),
        ("linf", "l2", 2): Fraction(d * (d + 1) * (d + 2), 3),
        ("linf", "l1", 1): Fraction(d * (d + 1), 2),
        ("l1", "linf", 1): sum((Fraction(1, k) for k in range(1, d + 1)), ZERO),
    }
    if error.power == 1 and (norm == error.norm or d == 1):
        return arb(d)
    if pair == ("l2", "l1", 1):  # d times the radius, d, times the mean of one number of a direction
        return d * d * (arb(d) / 2).gamma() / (arb.pi().sqrt() * ((arb(d) + 1) / 2).gamma())
    return ball(plain[pair]) if pair in plain else None


def loss_of(points: Points, error: Error) -> Fraction | None:
    """At least the mean error of what is executed: rounding moves each number by half a step (Minkowski)."""
    size = points.block.size
    with ctx.workprec(PRECISION):
        found = moment(points.norm, size, error)
        if found is None:
            return None
        rounding = ball(points.step) / 2 * ball(ratio_squared(error.norm, "linf", size)).sqrt()
        if error.power == 1:
            total = found * ball(points.scale) + rounding
        else:
            total = (found.sqrt() * ball(points.scale) + rounding) ** 2
        return end((ball(error.weight) * total).upper())


def reach_of(points: Points, norm: str, probability: Fraction) -> Fraction | None:
    """At least what an error in a norm stays within with a probability: that of Gamma(size), and half a step.

    Gamma(d) is above r with probability e^-r times the sum over k < d of r^k / k!.
    """
    size = points.block.size
    if norm != points.norm and size > 1:
        return None
    with ctx.workprec(PRECISION):
        low, high = ZERO, Fraction(1)
        while not ball(high).gamma_upper(arb(size), 1) <= ball(1 - probability):
            low, high = high, 2 * high
        for _ in range(QUANTILE_BITS):
            middle = (low + high) / 2
            low, high = (
                (low, middle) if ball(middle).gamma_upper(arb(size), 1) <= ball(1 - probability) else (middle, high)
            )
        half = ball(points.step) / 2 * ball(ratio_squared(norm, "linf", size)).sqrt()
        return end((ball(high * points.scale) + half).upper())


def reached(points: Points, line: Accuracy) -> Fraction | None:
    """What a line of accuracy is about, rounded up; None where no formula is known for this noise."""
    if line.probability is None:
        return loss_of(points, line.error)
    return reach_of(points, line.error.norm, line.probability)


def least_loss(block: PointBlock, metric: str, epsilon: Fraction) -> Fraction:
    """At most the mean error of any noise of one law that satisfies a line, whatever the point.

    Along every ray the density times e^(epsilon t) grows, so that ||v|| in the norm of the distance is at least Gamma
    of `size` in distribution; and each number of the noise alone is at least as large as Laplace noise.
    """
    d, error = block.size, block.error
    with ctx.workprec(PRECISION):
        far = ball(ratio_squared(NORM_OF[metric], error.norm, d)).sqrt()
        radius = d / far if error.power == 1 else d * (d + 1) / far**2
        alone = {("l2", 2): 2 * d, ("l1", 1): d}.get((error.norm, error.power), 0)
        found = radius.max(arb(alone)) / ball(epsilon) ** error.power
        return max(end((ball(error.weight) * found).lower()), ZERO)


def units_of(block: PointBlock) -> str:
    """The units of the loss."""
    return f"{'squared ' * (block.error.power == 2)}units of {block.source}"


# --- plans -----------------------------------------------------------------------------------------------


class PointRules(ReportRules):
    """How plans about reports of points are judged."""

    mechanisms = (Points,)

    of = "point"

    def privacy(self, case: PlanUnderCheck) -> Points:
        points: Points = self.read(case.frame, case.mechanism)
        self.view(case, points.block)
        guarantees = guarantees_of(case, points.block, (BY_DISTANCE, *PURE_MEASURES))
        judge_promises(case, points.term, [_promised(points, one) for one in guarantees])
        return points

    def judge(self, case: PlanUnderCheck) -> Points:
        points = self.privacy(case)
        block = points.block
        text = f"points are taken as they are, and rounded to {points.step} once they have noise: nothing is added"
        case.says("rounding", True, text)
        if block.moved:
            text = "reports beyond their ends are moved to them, and no point lies there"
            case.says("moved", True, f"{text}: errors are at most those stated")
        bounds = [_least(block, one.measure) for one in case.frame.obligations]
        case.claims.fields()
        derived = None if block.moved else max((one for one in bounds if one is not None), default=None)
        exact, found = loss_of(points, block.error), [reached(points, one) for one in block.accuracy]
        if exact is None or None in found:
            raise case.block.wrong("has a loss, or a line of accuracy, that is not known for this noise")
        words = [block.expression, units_of(block), block.kind]
        lines = (
            (one.line, one.text, one.bound, f) for one, f in zip(block.accuracy, found, strict=True) if f is not None
        )
        judge_worth(case, exact, derived, CLASSES[derived is not None :], "such noise", words, lines)
        return points


def _promised(points: Points, guarantee: Guarantee) -> Promise:
    """What a line asks of any two points, or of two for each unit of their distance."""
    measure, unit = guarantee.obligation.measure, ""
    change: Change = Anything()
    if measure.of.by_distance:
        if measure.distance not in NORM_OF:
            raise Refused("is about a distance that is not known")
        change, unit = ByDistance(NORM_OF[str(measure.distance)]), f" per unit of {measure.distance} distance"
    words = f"epsilon {{:.8g}}{unit}, from {points.norm} noise of scale {points.scale}"
    return Promise(guarantee, (Question(change, guarantee.asked, guarantee.achieved),), (NOTE,), words)


def _least(block: PointBlock, asked: AskedMeasure) -> Fraction | None:
    """The least loss under a line, where it is one by distance."""
    epsilon = asked.figures({})["epsilon"]
    return least_loss(block, str(asked.distance), epsilon) if asked.of.by_distance and epsilon else None
