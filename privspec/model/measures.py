"""Measures of privacy with their exact amounts: how each is written, and what it allows a Gaussian release."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from privspec.core.records import dataclass
from privspec.core.spans import Span
from privspec.language import syntax
from privspec.model.reports import Failure
from privspec.model.values import readable, show


@lru_cache(maxsize=1024)
def _mu_down(epsilon: Fraction, delta: Fraction) -> Fraction:
    from privspec.core.gaussian import mu_down

    return mu_down(epsilon, delta)


class Measure(ABC):
    """How far apart the laws of a release may be in two neighbouring worlds; every amount is exact."""

    __slots__ = ()

    name: ClassVar[str]
    """As it stands in plans, with the names of its figures: "(epsilon, delta)-DP"."""
    figures: ClassVar[tuple[str, ...]] = ()
    """The fields that hold its figures, by their names in the field."""
    follows_from_pure: ClassVar[bool] = False
    """Whether epsilon-DP with its own epsilon implies it."""
    local: ClassVar[bool] = False
    """Whether it is about one party's report, any value against any other."""

    @property
    def amounts(self) -> dict[str, Fraction]:
        """The figures by their names."""
        return {name: getattr(self, name) for name in self.figures}

    def describe(self) -> str:
        """With its figures: "(1, 1e-6)-DP"."""
        words = self.name
        for name, value in self.amounts.items():
            words = words.replace(name, readable(value))
        return words

    def gaussian_mu_down(self) -> Fraction | None:
        """The largest sensitivity in units of its own noise of a Gaussian release, rounded down.

        Returns: None if no Gaussian release satisfies the measure.
        """
        return None

    @property
    def pure_epsilon(self) -> Fraction | None:
        """The epsilon of the pure guarantee that implies this one and is the largest such; None if unknown."""
        return self.amounts["epsilon"] if self.follows_from_pure else None


@dataclass(frozen=True, slots=True)
class PureDP(Measure):
    """Probabilities differ by a factor of at most e^epsilon."""

    epsilon: Fraction
    name: ClassVar[str] = "epsilon-DP"
    figures: ClassVar[tuple[str, ...]] = ("epsilon",)
    follows_from_pure: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class EpsilonDelta(Measure):
    """Probabilities differ by a factor of at most e^epsilon, up to delta."""

    epsilon: Fraction
    delta: Fraction
    name: ClassVar[str] = "(epsilon, delta)-DP"
    figures: ClassVar[tuple[str, ...]] = ("epsilon", "delta")
    follows_from_pure: ClassVar[bool] = True

    def gaussian_mu_down(self) -> Fraction | None:
        """Exact, by Balle & Wang 2018; none for delta 0."""
        return _mu_down(self.epsilon, self.delta) if self.delta > 0 else None


@dataclass(frozen=True, slots=True)
class LDP(Measure):
    """(epsilon, delta)-DP of one party's report, any value of the input against any other."""

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    follows_from_pure: ClassVar[bool] = True
    local: ClassVar[bool] = True

    @property
    def name(self) -> str:  # type: ignore[override]
        return "(epsilon, delta)-LDP" if self.delta else "epsilon-LDP"

    @property
    def figures(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("epsilon", "delta") if self.delta else ("epsilon",)

    def gaussian_mu_down(self) -> Fraction | None:
        return _mu_down(self.epsilon, self.delta) if self.delta > 0 else None


@dataclass(frozen=True, slots=True)
class PerAtomLDP(Measure):
    """f_ay <= e^epsilon f_by + delta / |X| for any two inputs a, b and each single output y: Ramon & Basu 2020, 3.3.

    It bounds every output by itself. Sets of outputs get a delta of up to (|Y| - 1) / |X| times this one, so that it
    does not imply (epsilon, delta)-LDP once |Y| > |X| + 1; plans give the true delta. It counts inputs and outputs, so
    it says nothing of a Gaussian release.
    """

    epsilon: Fraction
    delta: Fraction
    name: ClassVar[str] = "(epsilon, delta)-per-atom-LDP"
    figures: ClassVar[tuple[str, ...]] = ("epsilon", "delta")
    follows_from_pure: ClassVar[bool] = True
    local: ClassVar[bool] = True

    def largest_delta(self, inputs: int, outputs: int) -> Fraction:
        """A bound on the delta of sets of outputs.

        Each output may exceed the ratio by delta over the number of inputs; one at least has no excess.
        """
        return min(self.delta / inputs * (outputs - 1), Fraction(1))


@dataclass(frozen=True, slots=True)
class ZCDP(Measure):
    """Zero-concentrated differential privacy (Bun & Steinke 2016)."""

    rho: Fraction
    name: ClassVar[str] = "rho-zCDP"
    figures: ClassVar[tuple[str, ...]] = ("rho",)

    def gaussian_mu_down(self) -> Fraction | None:
        from privspec.core.gaussian import mu_of_zcdp

        return mu_of_zcdp(self.rho)


@dataclass(frozen=True, slots=True)
class GDP(Measure):
    """Gaussian differential privacy (Dong, Roth & Su 2022)."""

    mu: Fraction
    name: ClassVar[str] = "mu-GDP"
    figures: ClassVar[tuple[str, ...]] = ("mu",)

    def gaussian_mu_down(self) -> Fraction | None:
        return self.mu


@dataclass(frozen=True, slots=True)
class RDP(Measure):
    """Renyi differential privacy of one order (Mironov 2017)."""

    order: Fraction
    epsilon: Fraction
    name: ClassVar[str] = "(order, epsilon)-RDP"
    figures: ClassVar[tuple[str, ...]] = ("order", "epsilon")

    def gaussian_mu_down(self) -> Fraction | None:
        from privspec.core.gaussian import mu_of_rdp

        return mu_of_rdp(self.order, self.epsilon)


@dataclass(frozen=True, slots=True)
class Metric:
    """A distance as a line names it: a name of `model.distances`, or the text of a matrix and its expression."""

    name: str
    matrix: syntax.Expr | None = None


@dataclass(frozen=True, slots=True)
class MetricDP(Measure):
    """d-privacy: probabilities differ by a factor of at most e^(epsilon d(x, x')), those of sets up to delta.

    `matrix` is the public expression of a distance of the user's own, whose text `metric` then is.
    """

    epsilon: Fraction
    metric: str
    matrix: syntax.Expr | None = None
    delta: Fraction = Fraction(0)

    @property
    def name(self) -> str:  # type: ignore[override]
        return "(epsilon, delta)-metric-DP" if self.delta else "epsilon-metric-DP"

    @property
    def figures(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("epsilon", "delta") if self.delta else ("epsilon",)

    def describe(self) -> str:
        return f"{Measure.describe(self)} ({self.metric} distance)"


@dataclass(frozen=True, slots=True)
class Lipschitz(Measure):
    """Individual fairness: laws of the output differ by at most `constant` times the distance of the inputs.

    Laws are compared in total variation; `metric` and `matrix` are as in `MetricDP`.
    """

    constant: Fraction
    metric: str
    matrix: syntax.Expr | None = None
    name: ClassVar[str] = "Lipschitz"
    figures: ClassVar[tuple[str, ...]] = ("constant",)

    def describe(self) -> str:
        return f"{readable(self.constant)}-Lipschitz ({self.metric} distance)"


@dataclass(frozen=True, slots=True)
class Personalised(Measure):
    """A measure of its own for each person of an index set (the amounts are public)."""

    party: str
    each: tuple[Measure, ...]

    @property
    def local(self) -> bool:  # type: ignore[override]
        return any(one.local for one in self.each)

    @property
    def name(self) -> str:  # type: ignore[override]
        """That of the first, by person."""
        return f"personalised {self.each[0].name}"

    @property
    def amounts(self) -> dict[str, Fraction]:
        """The strictest figures of any one person."""
        keys = self.each[0].amounts
        return {key: min(one.amounts[key] for one in self.each) for key in keys}

    def describe(self) -> str:
        figures = sorted(self.each, key=lambda one: tuple(one.amounts.values()))
        low, high = figures[0].describe(), figures[-1].describe()
        return low if low == high else f"{low} to {high}, by {self.party}"

    def gaussian_mu_down(self) -> Fraction | None:
        """That of the strictest person: satisfies everybody."""
        found = [one.gaussian_mu_down() for one in self.each]
        known = [mu for mu in found if mu is not None]
        return min(known) if len(known) == len(found) else None


@dataclass(frozen=True, slots=True)
class Chosen(Measure):
    """A measure whose amounts the solver picks: `amounts_as_written` in terms of `choose` variables."""

    kind: str
    amounts_as_written: tuple[syntax.Expr, ...]
    text: str

    @property
    def name(self) -> str:  # type: ignore[override]
        """That of the measure which it is at any value."""
        two = len(self.amounts_as_written) == 2 and not self.kind.startswith("(")
        return self.kind.replace("epsilon-", "(epsilon, delta)-") if two else self.kind

    @property
    def figures(self) -> tuple[str, ...]:  # type: ignore[override]
        """The words of its amounts, in order."""
        return (
            tuple(self.name.partition(")")[0].removeprefix("(").split(", "))
            if ")" in self.name
            else (self.name.partition("-")[0],)
        )

    @property
    def local(self) -> bool:  # type: ignore[override]
        """As at any value."""
        return "LDP" in self.kind

    @property
    def amounts(self) -> dict[str, Fraction]:
        """None is known."""
        return {}

    def describe(self) -> str:
        return f"{self.text} (chosen by the solver)"


SMALLEST, LARGEST = Fraction(1, 10**300), Fraction(10**300)
"""Amounts outside are taken for slips: no double could hold them."""


def _in_range(name: str, value: Fraction, span: Span, code: str) -> None:
    if not SMALLEST <= value <= LARGEST:
        word = "large" if value > LARGEST else "small"
        raise Failure(code, span, f"{name} is too {word} to compute with")


def _positive(name: str) -> Callable[[Fraction, Span], None]:
    def check(value: Fraction, span: Span) -> None:
        if value <= 0:
            hint = (
                "an epsilon of 0 allows no dependence on the data at all; a chosen range may include it"
                if value == 0 and name == "epsilon"
                else f"the smaller {name}, the more private; write a positive number, as in 0.5"
            )
            raise Failure("PS0304", span, f"{name} must be positive, not {show(value)}", help=hint)
        _in_range(name, value, span, "PS0304")

    return check


def _delta(value: Fraction, span: Span) -> None:
    if value < 0:
        raise Failure("PS0305", span, f"delta must not be negative, and is {show(value)}")
    if value >= 1:
        hint = "delta is a probability of failure: far below one over the number of people, as in 1e-6"
        raise Failure("PS0305", span, f"delta must be below 1, and is {show(value)}", help=hint)
    if value:
        _in_range("delta", value, span, "PS0305")


def _order(value: Fraction, span: Span) -> None:
    if value <= 1:
        raise Failure("PS0306", span, f"the order of a Renyi divergence must be above 1, and is {show(value)}")
    _in_range("the order", value, span, "PS0306")


@dataclass(frozen=True, slots=True)
class MeasureRule:
    """How one measure is written: the amounts it takes, each with its check, and the object it makes."""

    written: tuple[str, ...]
    checks: tuple[Callable[[Fraction, Span], None], ...]
    make: Callable[[tuple[Fraction, ...], Metric], Measure]
    optional: int = 0
    distance: bool = False
    kind: str = ""

    @property
    def arities(self) -> range:
        """How many amounts it may have."""
        return range(len(self.checks) - self.optional, len(self.checks) + 1)


def _dp(amounts: tuple[Fraction, ...], metric: Metric) -> Measure:  # noqa: ARG001 - one signature for all
    if len(amounts) == 2 and amounts[1] > 0:
        return EpsilonDelta(*amounts)
    return PureDP(amounts[0])


def _per_atom(amounts: tuple[Fraction, ...], metric: Metric) -> Measure:  # noqa: ARG001 - one signature for all
    """With a delta of 0 both conditions are one."""
    epsilon, delta = amounts
    return PerAtomLDP(epsilon, delta) if delta > 0 else LDP(epsilon)


EPSILON, RHO, MU = _positive("epsilon"), _positive("rho"), _positive("mu")
CONSTANT = _positive("the constant")

MEASURES: Mapping[str, MeasureRule] = {
    "DP": MeasureRule(("epsilon-DP", "(epsilon, delta)-DP"), (EPSILON, _delta), _dp, 1, kind="epsilon-DP"),
    "LDP": MeasureRule(
        ("epsilon-LDP", "(epsilon, delta)-LDP"), (EPSILON, _delta), lambda a, _: LDP(*a), 1, kind="epsilon-LDP"
    ),
    "per-atom-LDP": MeasureRule(
        ("(epsilon, delta)-per-atom-LDP",), (EPSILON, _delta), _per_atom, kind="(epsilon, delta)-per-atom-LDP"
    ),
    "zCDP": MeasureRule(("rho-zCDP",), (RHO,), lambda a, _: ZCDP(*a), kind="rho-zCDP"),
    "GDP": MeasureRule(("mu-GDP",), (MU,), lambda a, _: GDP(*a), kind="mu-GDP"),
    "RDP": MeasureRule(("(order, epsilon)-RDP",), (_order, EPSILON), lambda a, _: RDP(*a), kind="(order, epsilon)-RDP"),
    "metric-DP": MeasureRule(
        ("epsilon-metric-DP", "(epsilon, delta)-metric-DP"),
        (EPSILON, _delta),
        lambda a, metric: MetricDP(a[0], metric.name, metric.matrix, *a[1:]),
        optional=1,
        distance=True,
        kind="epsilon-metric-DP",
    ),
    "Lipschitz": MeasureRule(
        ("1-Lipschitz",),
        (CONSTANT,),
        lambda a, metric: Lipschitz(a[0], metric.name, metric.matrix),
        distance=True,
        kind="Lipschitz",
    ),
}
