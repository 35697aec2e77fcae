"""How many people hold each of k values, where nobody is trusted: each reports a set of values, drawn by itself.

The own value is in the set with one exact chance, the other values of the set are a uniform choice of all others. What
is released is the only estimate that is linear in how many sets hold each value, and unbiased. No unbiased estimate
from a report of each person has less error than the best size of set (noise/notes/local-histograms.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from privspec.kernel.changes import Anything
from privspec.kernel.core.numbers import LARGEST_LOG, exp_up
from privspec.kernel.core.problem import AskedMeasure, Guarantee, PlanUnderCheck
from privspec.kernel.core.reading import JsonNode, Positive, Refused, Size, Whole, read
from privspec.kernel.laws.subsets import SetOfValues
from privspec.kernel.measures import PURE_MEASURES
from privspec.kernel.points import ReportRules, guarantees_of
from privspec.kernel.promises import OneOutput, Promise, Question, epsilon_of, judge_promises
from privspec.kernel.terms import Pick
from privspec.kernel.trust import NOBODY
from privspec.kernel.worth import judge_worth

NOTE = "local-histograms"
AMONG = "all unbiased estimates from one report of each party"
KINDS = ("expected", "worst")
WORDS = {"FrequencyBlock.kind": KINDS}
MOST_VALUES = 1_000_000
MOST_PARTIES = 100_000_000


@dataclass(frozen=True, slots=True)
class Accuracy:
    """A line that asks for `weight` times the sum of the squared errors of all counts to be `bound` at most."""

    weight: Size
    bound: Fraction
    line: Whole
    text: str


@dataclass(frozen=True, slots=True)
class FrequencyBlock:
    """As the problem states it: the values that each of `count` parties may hold, and what errors of counts cost.

    Values are `listed`, or the numbers from `lower` on, each `step` above the one before. The output is `scale` times
    the counts; the loss is `weight` times the sum of its squared errors. With a `group` of values, by their places, the
    output is how many hold one of these, and all that a report is about is whether the value is one.
    """

    FORM = "frequencies"

    source: str
    output: str
    party: str
    count: Positive
    values: Positive
    listed: tuple[str, ...]
    lower: Fraction | None
    step: Fraction | None
    group: tuple[int, ...] | None
    scale: Size
    weight: Size
    expression: str
    kind: str
    accuracy: tuple[Accuracy, ...]

    def __post_init__(self) -> None:
        words = self.lower is None and self.step is None and len(set(self.listed)) == len(self.listed) == self.values
        if not words and (self.listed or self.lower is None or self.step is None or self.step <= 0):
            raise Refused("has values that are neither words nor numbers")
        if not 2 <= self.values <= MOST_VALUES or self.count > MOST_PARTIES:
            raise Refused("has one value only, or too many values or parties")
        group = (0,) if self.group is None else self.group
        if list(group) != sorted(set(group)) or not 0 < len(group) < self.values or group[-1] >= self.values:
            raise Refused("counts no values together, or all of them")
        if not self.scale or not self.weight or not all(one.weight for one in self.accuracy):
            raise Refused("weighs errors by nothing")

    @property
    def told(self) -> int:
        """How many values reports tell apart."""
        return self.values if self.group is None else 2

    def value(self, place: int) -> Fraction | str:
        """The value of a place, from 0."""
        return self.listed[place] if self.lower is None or self.step is None else self.lower + place * self.step

    def summed(self, each: Fraction) -> Fraction:
        """The loss, where the counts of all values told apart have this sum of squared errors of one report each.

        Those of a group and of the rest add up to all, so that they err alike.
        """
        return self.weight * self.scale**2 * self.count * each / (1 if self.group is None else 2)


@dataclass(frozen=True, slots=True)
class Sets:
    """What so many parties as the block counts send: `subset` values, with the own one among them by this `chance`."""

    block: FrequencyBlock
    subset: int
    chance: Fraction

    @property
    def others(self) -> Fraction:
        """The chance that a set holds one given value other than the own."""
        return (self.subset - self.chance) / (self.block.told - 1)

    @property
    def ratio(self) -> Fraction:
        """By how much a set is likelier at a value that it holds than at one that it does not."""
        return self.chance / (1 - self.chance) * Fraction(self.block.told - self.subset, self.subset)

    def variances(self) -> tuple[Fraction, Fraction]:
        """Of the estimate of one person's share in a count: that of the own value, and that of any other."""
        apart = (self.chance - self.others) ** 2
        return self.chance * (1 - self.chance) / apart, self.others * (1 - self.others) / apart

    def error(self, weight: Fraction) -> Fraction:
        """The expected sum of the squared errors of what is released, times a weight; whatever people hold."""
        own, other = self.variances()
        return replace(self.block, weight=weight).summed(own + (self.block.told - 1) * other)


@dataclass(frozen=True, slots=True)
class Frequencies(OneOutput):
    """What is executed: a kind of sets for each epsilon, and `of` each party which of these it sends (None: the one).

    What is released is the sum of the estimates from all kinds.
    """

    block: FrequencyBlock
    kinds: tuple[Sets, ...]
    of: tuple[int, ...] | None

    def error(self, weight: Fraction) -> Fraction:
        """The expected sum of the squared errors of what is released, times a weight: reports are independent."""
        return sum((kind.error(weight) for kind in self.kinds), Fraction(0))

    @property
    def term(self) -> Pick:
        """Reports that all may see."""
        law = SetOfValues(self.block.told, tuple((kind.subset, kind.chance) for kind in self.kinds))
        return Pick(self.block.output, law, public=True)

    def epsilon(self, kind: int | None = None) -> Fraction:
        """That of a kind, or the largest of any party, rounded up."""
        found = epsilon_of(self.term, Anything(kind))
        assert found is not None
        return found


def read_frequencies(block: JsonNode, mechanism: JsonNode) -> Frequencies:
    """What a plan executes for a block."""
    found = read(FrequencyBlock, block)
    family, kinds, of = mechanism.fields("family", "kinds", "of")
    family.same("frequencies")
    laws = [_law(found, kind) for kind in kinds.items()]
    if of.absent and len(laws) == 1:
        which, sizes = None, [found.count]
    else:
        which = of.array(found.count).entries
        if set(which) != set(range(len(laws))):
            raise of.wrong("does not say of each party what it sends, or some kind is sent by none")
        sizes = [0] * len(laws)
        for kind in which:
            sizes[kind] += 1
    own = (replace(found, count=size) for size in sizes)
    return Frequencies(found, tuple(Sets(one, *law) for one, law in zip(own, laws, strict=True)), which)


def _law(block: FrequencyBlock, kind: JsonNode) -> tuple[int, Fraction]:
    subset, chance = kind.fields("subset", "chance")
    size, own = subset.integer(1, block.told - 1), chance.exact(0)
    if not Fraction(size, block.told) < own < 1:
        raise chance.wrong("is no chance, or none that tells the own value from any other")
    return size, own


def information(values: int, subset: int, ratio: Fraction) -> Fraction:
    """What a set of `subset` likelier values tells: the part of its column across the ones, squared, by its mean."""
    return values * subset * (values - subset) * (ratio - 1) ** 2 / (subset * ratio + values - subset) ** 2


def best_subset(values: int, ratio: Fraction) -> int:
    """The size of set that tells most: d (k - d) / (k + d (R - 1))^2 grows up to d = k / (R + 1), and then falls."""
    near = min(max(int(values / (ratio + 1)), 1), values - 1)
    return max((near, min(near + 1, values - 1)), key=lambda size: information(values, size, ratio))


def least_of_all(block: FrequencyBlock, limits: list[Fraction]) -> Fraction:
    """The same where each party has an epsilon of its own."""
    counted = dict[Fraction, int]()
    for one in limits:
        counted[one] = counted.get(one, 0) + 1
    return sum((least_loss(replace(block, count=count), one) for one, count in counted.items()), Fraction(0))


def least_loss(block: FrequencyBlock, epsilon: Fraction) -> Fraction:
    """At most the loss of any unbiased estimate from reports, each epsilon-DP and drawn by one party alone."""
    if epsilon > LARGEST_LOG:
        return Fraction(0)
    k, ratio = block.told, exp_up(epsilon)
    if ratio <= 1:
        raise Refused("asks for reports that tell nothing")
    each = Fraction((k - 1) ** 2) / information(k, best_subset(k, ratio), ratio) - Fraction(k - 1, k)
    return max(block.summed(each), Fraction(0))


def _limits(asked: AskedMeasure) -> list[Fraction]:
    """The epsilon that a line allows, or those of all parties in order."""
    return [own.figures({})["epsilon"] for own in asked.each or (asked,)]


def _promised(found: Frequencies, one: Guarantee) -> Promise:
    """What a line asks of every report; where each party has a figure of its own, the plan states the largest."""
    limits = _limits(one.obligation.measure)
    if not one.obligation.measure.each:
        question = Question(Anything(), one.asked, one.achieved)
        return Promise(one, (question,), (NOTE,), "epsilon {:.8g}, the logarithm of the largest ratio of chances")
    pairs = dict.fromkeys(zip(found.of or (0,) * found.block.count, limits, strict=True))
    reached = [float(found.epsilon(kind)) for kind in range(len(found.kinds))]
    questions = tuple(Question(Anything(kind), {"epsilon": limit}, one.achieved) for kind, limit in pairs)
    figure = f"epsilon from {min(reached):.8g} to {max(reached):.8g}, which"
    otherwise = f"{figure} is more than some own figure allows, or another is stated"
    return Promise(one, questions, (NOTE,), f"{figure} each own figure allows", otherwise=otherwise)


def units_of(block: FrequencyBlock) -> str:
    """The units of the loss."""
    return f"squared {block.party}s" if block.scale == 1 else "squared units of the output"


class FrequencyRules(ReportRules):
    """How plans about histograms of reports are judged."""

    trusts = (NOBODY.name,)

    def privacy(self, case: PlanUnderCheck) -> Frequencies:
        found = read_frequencies(case.block, case.mechanism)
        block = found.block
        self.view(case, block)
        for kind in found.kinds:
            law = f"sets of {kind.subset} of {block.told} values: the own one with chance {float(kind.chance):.8g}"
            case.says("law", True, f"{law}, all other choices alike; the estimate of every count is unbiased")
        guarantees = guarantees_of(case, block, PURE_MEASURES, block.count)
        judge_promises(case, found.term, [_promised(found, one) for one in guarantees])
        return found

    def judge(self, case: PlanUnderCheck) -> Frequencies:
        found = self.privacy(case)
        block = found.block
        case.claims.fields()
        limits = [_limits(one.measure) for one in case.frame.obligations]
        if all(len(some) == 1 for some in limits):
            derived = least_loss(block, min(some[0] for some in limits))
        else:
            whole = [some * block.count if len(some) == 1 else some for some in limits]
            derived = least_of_all(block, [min(own) for own in zip(*whole, strict=True)])
        words = [block.expression, units_of(block), block.kind]
        lines = ((one.line, one.text, one.bound, found.error(one.weight)) for one in block.accuracy)
        judge_worth(case, found.error(block.weight), derived, (AMONG,), "such estimate", words, lines)
        return found
