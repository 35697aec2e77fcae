"""The guarantees of a plan, read into words, parameters and trade-off curves, and the question that each answers.

A guarantee bounds how well two worlds can be distinguished; which two these are decides the question that a reader has:
did I take part; what did I answer, or where was I; how did I vote, or did I vote at all. Each question has a section of
messages/questions.toml, which says what its parts are; here stands which question it is, and with which figures.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias

from privspec.core.records import dataclass, field, replace
from privspec.explain.curves import (
    Consequences,
    CountedOdds,
    Curve,
    EpsilonDeltaCurve,
    GaussianCurve,
    Odds,
    RenyiCurve,
    consequences,
    curve_of,
)
from privspec.explain.document import Block, IconArray, IconRow, Note, Paragraph, Sentence, SpecLine, Table, table
from privspec.explain.messages import known, phrase, sentences
from privspec.explain.quantities import EXACT, UP, Quantity, exact, rounded, ungrouped, unit_words
from privspec.kernel.divergences import HockeyStick
from privspec.kernel.measures import BY_PERSON, Measure
from privspec.model.neighbours import AGAINST, GIVEN
from privspec.model.reports import listing
from privspec.stated import Guarantee, parse_exact


@dataclass(frozen=True, slots=True)
class Relation:
    """Which two data sets must look alike, as the plan words it ("replacing one entry").

    `kept`: of one person who may have any number of records, so many are counted.
    """

    text: str
    adds: bool
    unit: str | None
    group: int
    kept: int | None = None

    @property
    def single(self) -> bool:
        """Whether what differs is one of many, with a name."""
        return self.unit not in (None, "everything")

    @property
    def plural(self) -> str:
        """The unit in the plural: "records"."""
        return _PLURALS.get(self.unit or "", f"{self.unit}s") if self.single else "data sets"


_PLURALS = {"entry": "entries", "person": "people"}
_RELATION = re.compile(
    r"(?P<how>replacing|adding or removing) "
    r"(?:(?P<all>everything)|one (?P<one>\w+)(?: in .+ at once)?"
    r"|up to (?P<k>\d+) (?P<many>\w+)(?:, (?:at least|exactly) \d+ apart)?"
    r"|one (?P<whose>\w+) with at most (?P<own>\d+) (?P<held>\w+)(?:, at most \d+ in one cell)?)"
)


def relation(text: str, *, counted: bool = False) -> Relation:
    """The relation behind the words of a plan; unknown words are kept and explained as they stand.

    `counted`: where they are about one person with so many records, no more of that person's are counted.
    """
    match = _RELATION.fullmatch(text.strip())
    if match is None:
        return Relation(text, adds=False, unit=None, group=1)
    if counted and match["own"]:
        return Relation(text, match["how"] != "replacing", match["whose"], 1, int(match["own"]))
    held = match["many"] or match["held"] or ""
    many, group = "entry" if held == "entries" else held.removesuffix("s"), int(match["k"] or match["own"] or 1)
    return Relation(text, match["how"] != "replacing", match["one"] or match["all"] or many, group)


@dataclass(frozen=True, slots=True)
class Remark:
    """What has to be said about a condition that is asked for by name; `unsound` if it does not hold what it says."""

    text: str
    short: str
    unsound: bool


@dataclass(frozen=True, slots=True)
class Claim:
    """One guarantee: who is protected from whom, by what statement, and what it lets an observer achieve.

    `promised` follows from the statement alone, `achieved` from the mechanism as it is executed; either is None
    where no curve is known. `local` is whether it is about one party's report, any value against any other;
    `by_distance` whether it is about values by their distance, `per_distance` the epsilon reached for each unit of it.
    """

    outputs: tuple[str, ...]
    wrt: tuple[str, ...]
    relation: Relation
    observer: str
    line: SpecLine
    variant: str = ""
    statement: str = ""
    parameters: tuple[tuple[str, Quantity], ...] = ()
    promised: Curve | None = None
    achieved: Curve | None = None
    achieved_parameter: tuple[str, Quantity] | None = None
    notes: tuple[Note, ...] = ()
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    requirement: int = -1
    local: bool = False
    by_distance: bool = False
    per_distance: Fraction | None = None
    remark: Remark | None = None

    @property
    def conditional(self) -> bool:
        """Whether it counts on a model of the data: such guarantees do not add up over releases or units."""
        return self.relation.text.endswith(GIVEN)

    @property
    def curve(self) -> Curve | None:
        """The sharper of the two: what the executed noise allows, else what the statement allows."""
        return self.achieved if self.achieved is not None else self.promised

    @property
    def unit(self) -> str:
        """What one unit of privacy is: "record, up to 3 at once"."""
        if self.local or self.by_distance:
            return "one report" if self.local else "one value"
        many = f", up to {self.relation.group} at once" if self.relation.group > 1 else ""
        if self.relation.kept is not None:
            many = f", of whom at most {self.relation.kept} record{'s' * (self.relation.kept > 1)} count"
        return f"{self.relation.unit or self.relation.text}{many}"

    @property
    def neighbours(self) -> str:
        """Which two worlds must look alike."""
        any_two = f"any two values of {', '.join(self.wrt)}"
        return f"{any_two}, by their distance" if self.by_distance else any_two if self.local else self.relation.text

    @property
    def sentence(self) -> str:
        """The guarantee with its numbers: "O is (1, 1e-6)-DP wrt x, replacing one entry"."""
        names = self.outputs[0] if len(self.outputs) == 1 else f"({', '.join(self.outputs)})"
        seen = "" if self.observer == "anyone" else f", seen by {self.observer}"
        # measures of one report compare any value with any other: to name a unit would say no more
        unit = "" if self.local or self.by_distance else f", {self.relation.text}"
        unit = ", given the model" if self.local and self.conditional else unit
        return f"{names} is {self.statement} wrt {', '.join(self.wrt)}{unit}{seen}"

    @property
    def reached(self) -> str:
        """What the mechanism reaches, "μ ≤ 0.2368"; empty where the plan states no such figure."""
        return "" if self.achieved_parameter is None else "{} ≤ {}".format(*self.achieved_parameter)


def _stated(value: Fraction) -> Quantity:
    """An amount of privacy as it is promised: where it has too many digits, the next larger number of six."""
    found = exact(value)
    return found if found.rounding is EXACT else rounded(value, 6, UP)


def _asked(claim: Claim, guarantee: Guarantee, measure: Measure) -> Claim:
    """What a line asks for: the statement with its amounts, and what that allows, where it is about all pairs alike."""
    exactly = {name: parse_exact(guarantee.figures.get(name) or 0) for name in measure.figures}
    shown = {name: _stated(value) for name, value in exactly.items()}
    found = replace(
        claim,
        variant=measure.title,
        statement=measure.at(tuple(map(str, shown.values()))),
        parameters=tuple(shown.items()),
        local=measure.local,
        by_distance=measure.by_distance,
    )
    if measure.each_output:
        return _each_output(found, guarantee)
    if measure.by_distance:
        return _by_distance(found, guarantee)
    match measure.condition(exactly):
        case HockeyStick(epsilon, delta):
            return replace(
                found, epsilon=epsilon, delta=delta, promised=EpsilonDeltaCurve(float(epsilon), float(delta))
            )
    values = {name: Fraction(amount.value) for name, amount in shown.items()}
    return replace(found, promised=curve_of(measure.condition(values)))


def _each_output(claim: Claim, guarantee: Guarantee) -> Claim:
    """A condition on every single output; what it allows for sets of outputs is only what was reached."""
    epsilon, asked = claim.parameters[0][1], parse_exact(guarantee.figures["delta"])
    true, delta = parse_exact(guarantee.achieved.get("delta", 1)), exact(asked)
    reached = rounded(true, 3, UP)
    text = "This line asks for the condition of Ramon & Basu 2020, section 3.3, output by output"
    if true > asked:
        text += f"; that is less than it says: sets of outputs have a δ of {reached}, more than {delta}. "
        remark = Remark(f"{text}The condition is unsound here.", f"unsound: the true δ is {reached}, not {delta}", True)
    else:
        text += f"; here the true δ, over sets of outputs, is {reached}, so that it holds what it says."
        remark = Remark(text, "", unsound=False)
    return replace(claim, parameters=(("epsilon", epsilon), ("delta for each output by itself", delta)), remark=remark)


def _by_distance(claim: Claim, guarantee: Guarantee) -> Claim:
    """Epsilon for each unit of distance gives no curve by itself."""
    (_, epsilon), *more = claim.parameters
    found = replace(claim, parameters=(("epsilon for each unit", epsilon), *more))
    if "delta" in guarantee.figures:
        delta = rounded(parse_exact(guarantee.achieved["delta"]), 3, UP)
        return replace(found, achieved=None, achieved_parameter=("δ", delta))
    if "epsilon" not in guarantee.achieved:
        return found
    rate = parse_exact(guarantee.achieved["epsilon"])
    reached = "ε per unit of distance", rounded(rate, 6, UP)
    return replace(found, per_distance=rate, achieved=None, achieved_parameter=reached)


def claim(guarantee: Guarantee) -> Claim:
    """One guarantee of a plan.

    A measure that is not known here gets no curve; the texts then say that they cannot explain it.
    Raises: ValueError, KeyError if the plan lacks what the measure needs.
    """
    measure = guarantee.measure
    achieved, reached = _achieved(guarantee.achieved)
    bare = Claim(
        outputs=guarantee.outputs,
        wrt=guarantee.wrt,
        relation=relation(guarantee.neighbours, counted="people" in guarantee.because),
        observer=guarantee.observer,
        line=SpecLine(guarantee.line, guarantee.text),
        variant=measure,
        statement=measure,
        achieved=achieved,
        achieved_parameter=reached,
        notes=tuple(map(Note, guarantee.because)),
        requirement=guarantee.requirement,
    )
    found = bare if guarantee.asked is None else _asked(bare, guarantee, guarantee.asked)
    if not guarantee.by_person:
        return found
    # the amounts are those of the strictest person, so the statement gives no curve for the others
    statement = f"{found.statement} (for the strictest person)"
    found = replace(
        found, variant=f"{BY_PERSON}{found.variant}", statement=statement, promised=None, epsilon=None, delta=None
    )
    # what a table reaches for the strictest person is not what it reaches for everybody
    return replace(found, achieved=None, achieved_parameter=None) if "tables" in guarantee.because else found


def _achieved(achieved: Mapping[str, Any]) -> tuple[Curve | None, tuple[str, Quantity] | None]:
    if "mu" in achieved:
        mu = parse_exact(achieved["mu"])
        return GaussianCurve(float(mu)), ("μ", rounded(mu, 4, UP))
    if "rho" in achieved:
        rho = parse_exact(achieved["rho"])
        return RenyiCurve(float(rho)), ("ρ", rounded(rho, 4, UP))
    if "epsilon" not in achieved or "order" in achieved:
        return None, None
    epsilon, delta = parse_exact(achieved["epsilon"]), parse_exact(achieved.get("delta") or 0)
    curve = EpsilonDeltaCurve(float(epsilon), float(delta))
    return curve, ("δ", rounded(delta, 3, UP)) if delta else ("ε", rounded(epsilon, 6, UP))


@dataclass(frozen=True, slots=True)
class Calibration:
    """The classic Gaussian calibration beside the exact one, for one (epsilon, delta) claim.

    `classic` and `needed` are noise deviations for each unit of sensitivity, `ratio` that of their variances
    (classic over needed); `true_delta` is what the classic noise really gives at that epsilon.
    """

    epsilon: Quantity
    delta: Quantity
    classic: Quantity
    needed: Quantity
    ratio: Quantity
    true_delta: Quantity
    proved: bool
    enough: bool


def calibration(claim: Claim) -> Calibration | None:
    """The comparison for a claim with delta > 0 that Gaussian noise meets; None for all others.

    Source: Ramon & Basu 2020, section 3.2, for the classic formula; Balle & Wang 2018 for the exact one.
    """
    epsilon, delta = claim.epsilon, claim.delta
    if not epsilon or not delta or claim.achieved_parameter is None or claim.achieved_parameter[0] != "μ":
        return None
    from privspec.kernel.gaussian import delta_bounds, mu_down

    exact_mu = mu_down(epsilon, delta)
    classic_mu = float(epsilon) / math.sqrt(2 * math.log(1.25 / float(delta)))
    _, true_delta = delta_bounds(epsilon, Fraction(classic_mu))
    return Calibration(
        exact(epsilon),
        exact(delta),
        rounded(1 / classic_mu, 4),
        rounded(1 / exact_mu, 4, UP),
        rounded((float(exact_mu) / classic_mu) ** 2, 3),
        rounded(true_delta, 3, UP),
        proved=epsilon < 1,
        enough=true_delta <= delta,
    )


# --- what an observer tries to tell ---------------------------------------------------------------


HARD = 0.25
"""From this share of mistakes on two values are called hard to distinguish."""
SURE = 0.05
"""Below this share of mistakes an observer is called almost sure."""
SEVERAL = (2, 10)
"""How many units of one person the public page gives odds for."""

Posteriors: TypeAlias = Sequence[tuple[Quantity, Quantity]]
"""Probabilities before a release, and the largest they can be after it."""


@dataclass(frozen=True, slots=True)
class Step:
    """What an observer can tell of two values at most so far apart."""

    distance: Quantity
    epsilon: Quantity
    shown: Consequences


@dataclass(frozen=True, slots=True)
class Question:
    """One question: its section, and the values that its words name.

    `counted` is whether a ledger counts how often it is asked, `grouped` whether one person may have several units;
    `steps` are what distances allow.
    """

    kind: str
    values: Mapping[str, object]
    counted: bool = True
    grouped: bool = False
    steps: tuple[Step, ...] = field(default=())

    def text(self, name: str) -> str:
        """Its words of that name, or those of all questions."""
        own = f"questions.{self.kind}.{name}"
        return phrase(own if known(own) else f"questions.any.{name}", self.values)

    @property
    def heading(self) -> str:
        """The question as a heading."""
        return self.text("heading")

    @property
    def scope(self) -> str:
        """Which values the odds are about, where they are not about all."""
        return self.text("scope")

    @property
    def axes(self) -> tuple[str, str]:
        """The two kinds of mistakes."""
        return self.text("false_alarms"), self.text("misses")

    @property
    def unprotected(self) -> bool:
        """Whether something that is not protected may reveal the answer by itself."""
        return bool(self.values.get("same"))

    def in_units(self, unit: str) -> Question:
        """The same question with the distances of its steps in a unit that readers know."""
        if not self.steps or not unit:
            return self
        near, far = (f"{at.distance}{unit_words(unit, at.distance.text)}" for at in (self.steps[0], self.steps[-1]))
        return replace(self, values={**self.values, "near": near, "far": far, "unit": unit})

    def odds(self, odds: Odds, claim: Claim) -> tuple[Sentence, ...]:
        """Natural frequencies, true of every guesser that they speak of (note odds)."""
        accused, found = self.text("accused"), self.text("found")
        return sentences("questions.odds", odds=odds, claim=claim, accused=accused, found=found)

    def icons(self, odds: Odds) -> IconArray:
        """Two rows of 100 figures; a full one is somebody whom the guesser points at."""
        size = odds.of // 100
        caption = phrase("questions.icons.caption")
        return IconArray(
            caption if size == 1 else phrase("questions.icons.groups", size=size),
            (
                IconRow(phrase("questions.icons.accused", odds=odds), odds.without, odds.of),
                IconRow(phrase("questions.icons.found", odds=odds), odds.taking_part, odds.of),
            ),
        )

    def aim(self, claim: Claim) -> tuple[Sentence, ...]:
        """What the guesser tries to tell, and what is compared."""
        return sentences(f"questions.{self.kind}_aim", self.values, {"claim": claim})

    def means(self, claim: Claim) -> tuple[Sentence, ...]:
        """What its words mean, for auditors."""
        return sentences(f"questions.{self.kind}_means", self.values, {"claim": claim})

    def more(self, claim: Claim, posteriors: Posteriors) -> tuple[Block, ...]:
        """What the public page shows besides the odds."""
        before, after = posteriors[1] if posteriors else ("", "")
        given = {"claim": claim, "before": before, "after": after}
        found = sentences(f"questions.{self.kind}_more", self.values, given)
        rows = [(s.distance, s.shown.odds.without_words, s.shown.odds.taking_part_words) for s in self.steps]
        columns = phrase("questions.steps.columns", unit=self.values.get("unit", ""))
        near = table(phrase("questions.steps.near"), columns, rows, 0)
        return (*((near,) if rows else ()), *((Paragraph(found),) if found else ()))

    def details(self) -> tuple[Table, ...]:
        """What the pages of auditors and engineers show besides: epsilon, odds and advantage by distance."""
        rows = [
            (s.distance, s.epsilon, s.shown.odds.without_words, s.shown.odds.taking_part_words, s.shown.advantage)
            for s in self.steps
        ]
        if not rows:
            return ()
        caption = phrase("questions.steps.details", noun=self.values["noun"])
        return (table(caption, phrase("questions.steps.columns_of_details"), rows, 0, 1, 4),)

    def several(self, groups: Sequence[CountedOdds], claim: Claim) -> tuple[Sentence, ...]:
        """The odds of people who hold several units; none where nobody does."""
        found = [(k, odds.without_words) for k, odds in groups if k.value in SEVERAL]
        # where more units make no difference, the last says all
        alone = next((odds.without_words for k, odds in groups if k.value == 1), "")
        kept = [one for one, after in pairwise(found) if one[1] not in (after[1], alone)] + found[-1:]
        if not self.grouped or not kept:
            return ()
        (many, words), (more, words_of_more) = kept[0], kept[1] if len(kept) > 1 else ("", "")
        numbers = {"many": many, "words": words, "more": more, "words_of_more": words_of_more}
        whose = {"claim": claim, "units": self.text("units"), "held": self.text("held")}
        return sentences("questions.several", **numbers, **whose)

    def to_json(self) -> Mapping[str, object]:
        return {"heading": self.heading, **self.values, "steps": self.steps}


_MEANT = ("entry", "record", "voter", "everything")


def took_part(relation: Relation) -> Question:
    """Whether a person's data are among those that a result was computed from, or which data they are.

    Where units are replaced, everybody takes part, and what can be told is what somebody's data are.
    """
    unit = relation.unit
    meant = "other" if unit is None else "unit" if unit not in _MEANT else unit
    values = {
        "relation": relation,
        "yours": unit in ("entry", "record"),
        "meant": meant if relation.kept is None else "records",
    }
    return Question("took_part" if relation.adds else "answered", values, grouped=relation.single)


def which_answer(
    stays: bool, names: tuple[str, str], times: Quantity | None, same: tuple[str, ...] = (), of: str = "answer"
) -> Question:
    """Local privacy: any two answers.

    Args: stays, whether the answer itself never leaves its owner; times, the largest ratio of probabilities, None where
        there is no limit; same, the inputs that are not protected and the same in both worlds; they may reveal the
        answer by themselves; of, what the answer is called.
    """
    values = {
        "noun": "answer",
        "first": names[0],
        "second": names[1],
        "largest_ratio": times,
        "stays": stays,
        "same": listing(same),
        "of": of,
        "other": "" if of == "answer" else of,
    }
    return Question("one_answer", values, counted=not stays)


def of_report(claim: Claim, names: tuple[str, str], *, stays: bool) -> Question:
    """About any two answers of a report that a claim is about; about taking part, if it is about no report."""
    if not claim.local:
        return took_part(claim.relation)
    return which_answer(stays, names, times_of(claim))


def times_of(claim: Claim) -> Quantity | None:
    """The factor between what is as likely in two cases as a claim's ratio says; None where it has a delta, or none."""
    reached = claim.achieved if isinstance(claim.achieved, EpsilonDeltaCurve) else None
    return largest_factor(reached.epsilon) if reached is not None and reached.delta == 0.0 else None


def of_entry(source: str, names: tuple[str, ...]) -> Question:
    """Which of two values one entry of a sequence has, for an observer who knows by what law the entries are drawn."""
    values = {"noun": "value", "source": source, "first": names[0], "second": names[-1]}
    return Question("entry", values, counted=False)


def of_hidden(claim: Claim, *, stays: bool) -> Question:
    """Which of two values a thing has that a line hides from those who know the model; `stays`: of one report."""
    what, source = claim.relation.text.partition(AGAINST)[0], listing(claim.wrt)
    unit = what.removeprefix("one ")
    source = source if what == "all of it" else f"one {unit} of {source}" if unit != what else what
    return Question("hidden", {"noun": "value", "source": source, "stays": stays}, counted=False)


MOST_STEPS = 3
"""Round distances that are shown, besides the largest."""
NOT_WORSE = 1 + 1e-9
"""Two values count as at most so far apart up to this factor, so that roots in doubles leave none out."""
Reach: TypeAlias = tuple[Fraction, Fraction, Curve]
"""A distance, the epsilon that holds for two values at most so far apart, and what an observer can tell of them."""


def round_distances(least: float, largest: float | None) -> list[Fraction]:
    """The first few of 1, 2, 5 times a power of ten from the least on, and the largest, if it is known, rounded up."""
    ten = Fraction(10) ** math.floor(math.log10(least))
    steps = (digit * ten * 10**power for power in range(40) for digit in (1, 2, 5))
    most = math.inf if largest is None else largest / NOT_WORSE
    found = [step for step in steps if least <= float(step) * NOT_WORSE and float(step) < most][:MOST_STEPS]
    return found if largest is None else [*found, Fraction(ungrouped(rounded(largest, 3, UP).text))]


def how_near(stays: bool, reaches: Sequence[Reach], *, plane: bool) -> Question:
    """Privacy by distance: two values at most so far apart; from near to far, the odds are of the first."""
    steps = tuple(Step(exact(far), rounded(epsilon, 4, UP), consequences(curve)) for far, epsilon, curve in reaches)
    near, far = steps[0], steps[-1]
    values = {
        "noun": "place" if plane else "value",
        "plane": plane,
        "stays": stays,
        "near": near.distance,
        "far": far.distance,
        "hard": near.shown.odds.error.value >= 100 * HARD,
        "sure": far.shown.exact and far.shown.odds.error.value < 100 * SURE,
    }
    return Question("near", values, counted=not stays, steps=steps)


def about_vote(
    relation: Relation, who: str, times: Quantity, *, local: bool, names: tuple[str, str] = ("", "")
) -> Question:
    """How somebody voted, or where voters are added or removed whether somebody voted at all.

    Args: who, one person who votes; times, the largest factor between the chances of a winner in both worlds; names,
        two votes, the first is what the guesser says; empty where votes have no short names.
    """
    values = {
        "relation": relation,
        "who": who,
        "local": local,
        "first": names[0],
        "second": names[1],
        "largest_ratio": times,
    }
    return Question("voted" if relation.adds else "vote", values, grouped=relation.single and not local)


def largest_factor(epsilon: float) -> Quantity:
    """e^epsilon, rounded up: by how much a probability may change."""
    return rounded(math.exp(min(epsilon, 700.0)) * (1 + 1e-12), 3, UP)
