"""The guarantees of a plan, read into words, parameters and trade-off curves."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from privspec.core.records import dataclass, replace
from privspec.explain.curves import Curve, EpsilonDeltaCurve, GaussianCurve, RenyiCurve, curve_of
from privspec.explain.document import Note, SpecLine
from privspec.explain.quantities import EXACT, UP, Quantity, exact, rounded
from privspec.kernel.divergences import HockeyStick
from privspec.kernel.measures import BY_PERSON, Measure
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
        return self.relation.text.endswith("given the model")

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
