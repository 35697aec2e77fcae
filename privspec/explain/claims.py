"""The guarantees of a plan, read into words, parameters and trade-off curves."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

from privspec.explain.curves import Curve, EpsilonDeltaCurve, GaussianCurve
from privspec.explain.document import Note, SpecLine
from privspec.explain.quantities import Quantity, Rounding, exact, parse_exact, rounded


@dataclass(frozen=True, slots=True)
class Relation:
    """Which two data sets must look alike, as the plan words it ("replacing one entry")."""

    text: str
    adds: bool
    unit: str | None
    group: int

    @property
    def absence(self) -> str:
        """What "not taking part" means under this relation, as a clause; empty where it means just that."""
        if self.unit is None:
            return f"the data differ as the guarantee says ({self.text})"
        if self.unit == "everything":
            return "other data stand in the place of all of yours"
        if self.adds:
            return ""
        return _STAND_INS.get(self.unit, f"another {self.unit} stands in the place of yours")

    @property
    def yours(self) -> str:
        """The unit as a possession: "your record"."""
        if self.unit in (None, "everything"):
            return "your data"
        return _POSSESSIONS.get(self.unit or "", f"your {self.unit}")

    @property
    def plural(self) -> str:
        """The unit in the plural: "records"."""
        if self.unit in (None, "everything"):
            return "data sets"
        return _PLURALS.get(self.unit or "", f"{self.unit}s")

    def to_json(self) -> dict[str, object]:
        return {"text": self.text, "adds": self.adds, "unit": self.unit, "group": self.group}


_STAND_INS = {
    "entry": "another number stands in the place of yours",
    "record": "another person's record stands in the place of yours",
    "voter": "another person's answers stand in the place of yours",
}
_POSSESSIONS = {"entry": "your number", "record": "your record", "voter": "all your answers"}
_PLURALS = {"entry": "entries"}
_RELATION = re.compile(
    r"(?P<how>replacing|adding or removing) "
    r"(?:(?P<all>everything)|one (?P<one>\w+)|up to (?P<k>\d+) (?P<many>\w+))"
)
_SINGULARS = {"entries": "entry"}


def relation(text: str) -> Relation:
    """The relation behind the words of a plan; unknown words are kept and explained as they stand."""
    match = _RELATION.fullmatch(text.strip())
    if match is None:
        return Relation(text, adds=False, unit=None, group=1)
    many = match["many"]
    unit = match["one"] or match["all"] or _SINGULARS.get(many, many.removesuffix("s"))
    return Relation(text, match["how"] != "replacing", unit, int(match["k"] or 1))


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
    measure: str = ""
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
    def curve(self) -> Curve | None:
        """The sharper of the two: what the executed noise allows, else what the statement allows."""
        return self.achieved if self.achieved is not None else self.promised

    @property
    def unit(self) -> str:
        """What one unit of privacy is: "record, up to 3 at once"."""
        if self.local or self.by_distance:
            return "one report" if self.local else "one value"
        many = f", up to {self.relation.group} at once" if self.relation.group > 1 else ""
        return f"{self.relation.unit or self.relation.text}{many}"

    @property
    def neighbours(self) -> str:
        """Which two worlds must look alike."""
        if self.by_distance:
            return f"any two values of {', '.join(self.wrt)}, by their distance"
        return f"any two values of {', '.join(self.wrt)}" if self.local else self.relation.text

    @property
    def sentence(self) -> str:
        """The guarantee with its numbers: "O is (1, 1e-6)-DP wrt x, replacing one entry"."""
        names = self.outputs[0] if len(self.outputs) == 1 else f"({', '.join(self.outputs)})"
        seen = "" if self.observer == "anyone" else f", seen by {self.observer}"
        # measures of one report compare any value with any other: to name a unit would say no more
        unit = "" if self.local or self.by_distance else f", {self.relation.text}"
        return f"{names} is {self.statement} wrt {', '.join(self.wrt)}{unit}{seen}"


@dataclass(frozen=True, slots=True)
class _Read:
    variant: str
    statement: str
    parameters: tuple[tuple[str, Quantity], ...]
    curve: Curve | None
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    local: bool = False
    distances: bool = False
    remark: Remark | None = None


def _amount(guarantee: Mapping[str, Any], key: str) -> Fraction:
    """A parameter; where each party has its own, the largest (the weakest protection)."""
    value = guarantee[key]
    return max(parse_exact(v) for v in value) if isinstance(value, list) else parse_exact(value)


def _stated(value: Fraction) -> Quantity:
    """An amount of privacy as it is promised: where it has too many digits, the next larger number of six."""
    found = exact(value)
    return found if found.rounding is Rounding.EXACT else rounded(value, 6, Rounding.UP)


def _shown(guarantee: Mapping[str, Any], key: str) -> Quantity:
    value = guarantee[key]
    if not isinstance(value, list):
        return _stated(parse_exact(value))
    low, high = (_stated(bound(parse_exact(v) for v in value)) for bound in (min, max))
    text = low.text if low.text == high.text else f"{low.text} to {high.text}"
    return Quantity(high.value, text, Rounding.EXACT)


def _plain(suffix: str, pure: str, approximate: str) -> Callable[[Mapping[str, Any]], _Read]:
    def read(guarantee: Mapping[str, Any]) -> _Read:
        epsilon, shown = _amount(guarantee, "epsilon"), _shown(guarantee, "epsilon")
        delta = _amount(guarantee, "delta") if guarantee.get("delta") is not None else Fraction(0)
        curve = EpsilonDeltaCurve(float(epsilon), float(delta))
        if delta == 0:
            return _Read(pure, f"{shown}-{suffix}", (("epsilon", shown),), curve, epsilon, delta)
        spent = _stated(delta)
        parameters = (("epsilon", shown), ("delta", spent))
        return _Read(approximate, f"({shown}, {spent})-{suffix}", parameters, curve, epsilon, delta)

    return read


def _ldp(guarantee: Mapping[str, Any]) -> _Read:
    return replace(_LOCAL(guarantee), local=True)


_LOCAL = _plain("LDP", "local differential privacy", "approximate local differential privacy")


def _per_atom(guarantee: Mapping[str, Any]) -> _Read:
    """A condition on every single output; what it allows for sets of outputs is only what was reached."""
    epsilon, delta = _shown(guarantee, "epsilon"), _amount(guarantee, "delta")
    true = _amount(guarantee.get("achieved") or {"delta": 1}, "delta")
    reached = rounded(true, 3, Rounding.UP)
    asks = "This line asks for the condition of Ramon & Basu 2020, section 3.3, output by output"
    if true > delta:
        more = f"sets of outputs have a δ of {reached}, more than {exact(delta)}"
        text = f"{asks}; that is less than it says: {more}. The condition is unsound here."
        remark = Remark(text, f"unsound: the true δ is {reached}, not {exact(delta)}", unsound=True)
    else:
        text = f"{asks}; here the true δ, over sets of outputs, is {reached}, so that it holds what it says."
        remark = Remark(text, "", unsound=False)
    return _Read(
        variant="local differential privacy, output by output",
        statement=f"({epsilon}, {exact(delta)})-per-atom-LDP",
        parameters=(("epsilon", epsilon), ("delta for each output by itself", exact(delta))),
        curve=None,
        local=True,
        remark=remark,
    )


def _zcdp(guarantee: Mapping[str, Any]) -> _Read:
    rho = _shown(guarantee, "rho")
    return _Read("zero-concentrated differential privacy", f"{rho}-zCDP", (("rho", rho),), None)


def _gdp(guarantee: Mapping[str, Any]) -> _Read:
    mu = _shown(guarantee, "mu")
    return _Read("Gaussian differential privacy", f"{mu}-GDP", (("mu", mu),), GaussianCurve(mu.value))


def _rdp(guarantee: Mapping[str, Any]) -> _Read:
    order, epsilon = _shown(guarantee, "order"), _shown(guarantee, "epsilon")
    parameters = (("order", order), ("epsilon", epsilon))
    return _Read("Rényi differential privacy", f"({order}, {epsilon})-RDP", parameters, None)


def _metric(guarantee: Mapping[str, Any]) -> _Read:
    epsilon = _shown(guarantee, "epsilon")
    parameters = (("epsilon for each unit", epsilon),)
    return _Read("metric differential privacy", f"{epsilon}-metric-DP", parameters, None, distances=True)


_READERS: Mapping[str, Callable[[Mapping[str, Any]], _Read]] = {
    "DP": _plain("DP", "pure differential privacy", "approximate differential privacy"),
    "LDP": _ldp,
    "per-atom-LDP": _per_atom,
    "zCDP": _zcdp,
    "GDP": _gdp,
    "RDP": _rdp,
    "metric-DP": _metric,
}
_PERSONALISED = "personalised"
_SUFFIX = re.compile(r"(metric-DP|per-atom-LDP|zCDP|GDP|LDP|RDP|DP)$")


def claim(guarantee: Mapping[str, Any]) -> Claim:
    """One guarantee of a plan.

    A measure that is not known here gets no curve; the texts then say that they cannot explain it.
    Raises: KeyError, ValueError if the plan lacks what the measure needs.
    """
    measure = str(guarantee["measure"])
    match = _SUFFIX.search(measure)
    reader = _READERS.get(match[1]) if match else None
    read = reader(guarantee) if reader else _Read(measure, measure, (), None)
    if measure.startswith(_PERSONALISED):
        # the amounts are those of the strictest person, so the statement gives no curve for the others
        read = replace(read, variant=f"{_PERSONALISED} {read.variant}", curve=None, epsilon=None, delta=None)
        read = replace(read, statement=f"{read.statement} (for the strictest person)")
    reached = guarantee.get("achieved") or {}
    achieved, parameter = _per_unit(reached) if read.distances else _achieved(reached)
    wrt = guarantee["wrt"]
    return Claim(
        outputs=tuple(str(o) for o in guarantee["outputs"]),
        wrt=(wrt,) if isinstance(wrt, str) else tuple(str(w) for w in wrt),
        relation=relation(str(guarantee["neighbours"])),
        observer=str(guarantee.get("observer", "anyone")),
        measure=measure,
        variant=read.variant,
        statement=read.statement,
        parameters=read.parameters,
        promised=read.curve,
        achieved=achieved,
        achieved_parameter=parameter,
        notes=tuple(Note(str(n)) for n in guarantee.get("because", ())),
        line=SpecLine(int(guarantee.get("line") or 0), str(guarantee.get("text", ""))),
        epsilon=read.epsilon,
        delta=read.delta,
        requirement=int(guarantee.get("requirement", -1)),
        local=read.local,
        by_distance=read.distances,
        per_distance=_amount(reached, "epsilon") if read.distances and "epsilon" in reached else None,
        remark=read.remark,
    )


_Achieved: TypeAlias = tuple[Curve | None, tuple[str, Quantity] | None]


def _achieved(achieved: Mapping[str, Any]) -> _Achieved:
    if "mu" in achieved:
        mu = parse_exact(achieved["mu"])
        return GaussianCurve(float(mu)), ("μ", rounded(mu, 4, Rounding.UP))
    if "epsilon" in achieved:
        epsilon = _amount(achieved, "epsilon")
        delta = _amount(achieved, "delta") if achieved.get("delta") is not None else Fraction(0)
        curve = EpsilonDeltaCurve(float(epsilon), float(delta))
        return curve, ("δ", rounded(delta, 3, Rounding.UP)) if delta else ("ε", rounded(epsilon, 6, Rounding.UP))
    return None, None


def _per_unit(achieved: Mapping[str, Any]) -> _Achieved:
    """Epsilon for each unit of distance gives no curve by itself."""
    if "epsilon" not in achieved:
        return _achieved(achieved)
    return None, ("ε a unit of distance", rounded(_amount(achieved, "epsilon"), 6, Rounding.UP))


@dataclass(frozen=True, slots=True)
class Calibration:
    """The classic Gaussian calibration beside the exact one, for one (epsilon, delta) claim.

    `classic` and `needed` are noise deviations for each unit of sensitivity, `ratio` that of their variances
    (classic over needed); `delta` is what the classic noise really gives at that epsilon.
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
    from privspec.core.gaussian import delta_bounds, mu_down

    exact_mu = mu_down(epsilon, delta)
    classic_mu = float(epsilon) / math.sqrt(2 * math.log(1.25 / float(delta)))
    _, true_delta = delta_bounds(epsilon, Fraction(classic_mu))
    return Calibration(
        exact(epsilon),
        exact(delta),
        rounded(1 / classic_mu, 4),
        rounded(1 / exact_mu, 4, Rounding.UP),
        rounded((float(exact_mu) / classic_mu) ** 2, 3),
        rounded(true_delta, 3, Rounding.UP),
        proved=epsilon < 1,
        enough=true_delta <= delta,
    )
