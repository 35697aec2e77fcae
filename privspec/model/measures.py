"""Lines of privacy at their exact amounts: a measure of the kernel's registry, alike for all, by person, or chosen."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction

from privspec.core.records import dataclass
from privspec.core.spans import Span
from privspec.kernel.measures import BY_PERSON, DELTA, Amount, Measure
from privspec.language import syntax
from privspec.model.reports import Failure
from privspec.model.values import readable, show


class AskedMeasure(ABC):
    """How far apart the laws of a release may be in two neighbouring worlds; every amount is exact."""

    __slots__ = ()

    of: Measure
    """The measure, whoever has which amounts of it."""
    metric: str
    """The distance of a line that names one, as `Metric` has it."""

    @property
    def common(self) -> Measure | None:
        """The measure, where its amounts are known and everybody's."""
        return None

    @property
    def name(self) -> str:
        """As it stands in plans, with the names of its figures: "(epsilon, delta)-DP"."""
        return self.of.name

    @property
    def figures(self) -> tuple[str, ...]:
        """The names of its amounts, in order."""
        return self.of.figures

    @property
    @abstractmethod
    def amounts(self) -> dict[str, Fraction]:
        """The figures by their names."""

    @property
    def local(self) -> bool:
        """Whether it is about one party's report, any value against any other."""
        return self.of.local

    @property
    def by_person(self) -> tuple[AskedMeasure, ...]:
        """What is asked for each person in turn; itself, where that is the same for all."""
        return (self,)

    @abstractmethod
    def describe(self) -> str:
        """With its figures: "(1, 1e-6)-DP"."""

    def gaussian_mu_down(self) -> Fraction | None:
        """The largest sensitivity in units of its own noise of a Gaussian release, rounded down.

        Returns: None if no Gaussian release satisfies the measure.
        """
        return None

    @property
    def pure_epsilon(self) -> Fraction | None:
        """The epsilon of the pure guarantee that implies this one and is the largest such; None if unknown."""
        return None

    @property
    def ratio(self) -> tuple[Fraction, Fraction] | None:
        """The epsilon and the delta of laws as they are, where that is what is asked; None for else."""
        return None

    def implied_by_pure(self) -> Fraction | None:
        """At most the largest epsilon for which all laws of that pure epsilon satisfy it, whatever its kind."""
        return self.pure_epsilon


LEAST_SHARE = 2.0**-30
"""Least epsilon that is looked for where it implies another measure, and one over the largest."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A distance as a line names it: a name of `model.distances`, or the text of a matrix and its expression."""

    name: str
    matrix: syntax.Expr | None = None


@dataclass(frozen=True, slots=True)
class MeasureAt(AskedMeasure):
    """A measure at amounts that are everybody's.

    `matrix` is the public expression of a distance of the user's own, whose text `metric` then is.
    """

    of: Measure
    values: tuple[Fraction, ...]
    metric: str = ""
    matrix: syntax.Expr | None = None

    @property
    def common(self) -> Measure:
        return self.of

    @property
    def amounts(self) -> dict[str, Fraction]:
        return dict(zip(self.of.figures, self.values, strict=True))

    def describe(self) -> str:
        words = self.of.at(tuple(map(readable, self.values)))
        return f"{words} ({self.metric} distance)" if self.of.takes_distance else words

    def gaussian_mu_down(self) -> Fraction | None:
        return self.of.gaussian_mu_down(self.amounts)

    @property
    def pure_epsilon(self) -> Fraction | None:
        return self.amounts["epsilon"] if self.of.follows_from_pure else None

    @property
    def ratio(self) -> tuple[Fraction, Fraction] | None:
        from privspec.kernel.divergences import HockeyStick  # specs are checked without arithmetic of balls

        asked = self.of.condition(self.amounts) if self.of.of_laws else None
        return (asked.epsilon, asked.delta) if isinstance(asked, HockeyStick) else None

    def implied_by_pure(self) -> Fraction | None:
        low, high = LEAST_SHARE, 1 / LEAST_SHARE
        if self.pure_epsilon is not None or not self.of.proved_by(self.amounts, {"epsilon": Fraction(low)}):
            return self.pure_epsilon
        while low < (middle := (low * high) ** 0.5) < high:
            enough = self.of.proved_by(self.amounts, {"epsilon": Fraction(middle)})
            low, high = (middle, high) if enough else (low, middle)
        return Fraction(low)

    def changed(self, **amounts: Fraction) -> MeasureAt:
        """The same at other amounts of these names."""
        return measure_at(self.of, self.amounts | amounts, Metric(self.metric, self.matrix))

    def with_delta(self, delta: Fraction) -> MeasureAt:
        """The measure of its word that has a delta, at this one and the amounts that there are."""
        assert self.of.with_delta is not None
        return measure_at(self.of.with_delta, self.amounts | {"delta": delta}, Metric(self.metric, self.matrix))


def measure_at(measure: Measure, amounts: dict[str, Fraction], metric: Metric | None = None) -> MeasureAt:
    """A measure at amounts by their names; at a delta of 0 it is the one without."""
    if measure.without_delta is not None and not amounts["delta"]:
        measure = measure.without_delta
    values = tuple(amounts[name] for name in measure.figures)
    return MeasureAt(measure, values) if metric is None else MeasureAt(measure, values, metric.name, metric.matrix)


@dataclass(frozen=True, slots=True)
class Personalised(AskedMeasure):
    """A measure of its own for each person of an index set (the amounts are public)."""

    party: str
    each: tuple[AskedMeasure, ...]

    @property
    def of(self) -> Measure:  # type: ignore[override]
        return self.each[0].of

    @property
    def metric(self) -> str:  # type: ignore[override]
        return self.each[0].metric

    @property
    def by_person(self) -> tuple[AskedMeasure, ...]:
        return self.each

    @property
    def name(self) -> str:
        """That of the first, by person."""
        return BY_PERSON + self.each[0].name

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
class Chosen(AskedMeasure):
    """A measure whose amounts the solver picks: `amounts_as_written` in terms of `choose` variables."""

    of: Measure
    amounts_as_written: tuple[syntax.Expr, ...]
    text: str

    @property
    def metric(self) -> str:  # type: ignore[override]
        return ""

    @property
    def amounts(self) -> dict[str, Fraction]:
        """None is known."""
        return {}

    def describe(self) -> str:
        return f"{self.text} (chosen by the solver)"


SMALLEST, LARGEST = Fraction(1, 10**300), Fraction(10**300)
"""Amounts outside are taken for slips: no double could hold them."""


def check_amount(amount: Amount, value: Fraction, span: Span) -> None:
    """Whether an amount may have a value.

    Raises: Failure.
    """
    name, code = amount.words or amount.name, "PS0304"
    if amount.probability:
        code = "PS0305"
        if value < 0:
            raise Failure(code, span, f"{name} must not be negative, and is {show(value)}")
        if value >= 1:
            hint = f"{name} is a probability of failure: far below one over the number of people, as in 1e-6"
            help_ = hint if amount is DELTA else None
            raise Failure(code, span, f"{name} must be below 1, and is {show(value)}", help=help_)
        if not value and amount is DELTA:
            return
        if not value:
            raise Failure(code, span, f"{name} must be positive: at 0 nothing may depend on the data")
    elif amount.least:
        code = "PS0306"
        if value <= amount.least:
            raise Failure(code, span, f"{name} must be above {amount.least}, and is {show(value)}")
    elif value <= 0:
        hint = (
            "an epsilon of 0 allows no dependence on the data at all; a chosen range may include it"
            if value == 0 and name == "epsilon"
            else f"the smaller {name}, the more private; write a positive number, as in 0.5"
        )
        raise Failure(code, span, f"{name} must be positive, not {show(value)}", help=hint)
    if not SMALLEST <= value <= LARGEST:
        word = "large" if value > LARGEST else "small"
        raise Failure(code, span, f"{name} is too {word} to compute with")
