"""Measures of privacy with their exact amounts, and what each allows a Gaussian release."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

from privspec.language import syntax
from privspec.model.values import readable


@lru_cache(maxsize=1024)
def _mu_down(epsilon: Fraction, delta: Fraction) -> Fraction:
    from privspec.core.gaussian import mu_down

    return mu_down(epsilon, delta)


class Measure(ABC):
    """How far apart the laws of a release may be in two neighbouring worlds; every amount is exact."""

    __slots__ = ()

    name: ClassVar[str]
    """As it stands in plans: "(epsilon, delta)-DP"."""

    @property
    @abstractmethod
    def amounts(self) -> dict[str, Fraction]:
        """The figures by their name in the field."""

    @abstractmethod
    def describe(self) -> str:
        """With its figures: "(1, 1e-6)-DP"."""

    @abstractmethod
    def gaussian_mu_down(self) -> Fraction | None:
        """The largest sensitivity in units of its own noise of a Gaussian release, rounded down.

        Returns: None if no Gaussian release satisfies the measure.
        """

    @property
    def pure_epsilon(self) -> Fraction | None:
        """The epsilon of the pure guarantee that implies this one and is the largest such; None if unknown."""
        return None

    @property
    def local(self) -> bool:
        """Whether it is about one party's report, any value against any other."""
        return False

    def to_json(self) -> dict[str, Any]:
        """Name and exact figures, as strings."""
        return {"measure": self.name, **{key: str(value) for key, value in self.amounts.items()}}


@dataclass(frozen=True, slots=True)
class PureDP(Measure):
    """Probabilities differ by a factor of at most e^epsilon."""

    epsilon: Fraction
    name: ClassVar[str] = "epsilon-DP"

    @property
    def amounts(self) -> dict[str, Fraction]:
        """Epsilon."""
        return {"epsilon": self.epsilon}

    def describe(self) -> str:
        """With its figure."""
        return f"{readable(self.epsilon)}-DP"

    def gaussian_mu_down(self) -> Fraction | None:
        """No Gaussian release satisfies it."""
        return None

    @property
    def pure_epsilon(self) -> Fraction | None:
        """Itself."""
        return self.epsilon


@dataclass(frozen=True, slots=True)
class EpsilonDelta(Measure):
    """Probabilities differ by a factor of at most e^epsilon, up to delta."""

    epsilon: Fraction
    delta: Fraction
    name: ClassVar[str] = "(epsilon, delta)-DP"

    @property
    def amounts(self) -> dict[str, Fraction]:
        """Epsilon and delta."""
        return {"epsilon": self.epsilon, "delta": self.delta}

    def describe(self) -> str:
        """With its figures."""
        return f"({readable(self.epsilon)}, {readable(self.delta)})-DP"

    def gaussian_mu_down(self) -> Fraction | None:
        """Exact, by Balle & Wang 2018; none for delta 0."""
        return _mu_down(self.epsilon, self.delta) if self.delta > 0 else None

    @property
    def pure_epsilon(self) -> Fraction | None:
        """Its epsilon (pure privacy at the same epsilon implies it)."""
        return self.epsilon


@dataclass(frozen=True, slots=True)
class LDP(Measure):
    """(epsilon, delta)-DP of one party's report, any value of the input against any other."""

    epsilon: Fraction
    delta: Fraction = Fraction(0)

    @property
    def name(self) -> str:  # type: ignore[override]
        """With delta or without."""
        return "(epsilon, delta)-LDP" if self.delta else "epsilon-LDP"

    @property
    def amounts(self) -> dict[str, Fraction]:
        """Epsilon, and delta unless it is 0."""
        return {"epsilon": self.epsilon} | ({"delta": self.delta} if self.delta else {})

    def describe(self) -> str:
        """With its figures."""
        if self.delta:
            return f"({readable(self.epsilon)}, {readable(self.delta)})-LDP"
        return f"{readable(self.epsilon)}-LDP"

    def gaussian_mu_down(self) -> Fraction | None:
        """As for (epsilon, delta)-DP."""
        return _mu_down(self.epsilon, self.delta) if self.delta > 0 else None

    @property
    def pure_epsilon(self) -> Fraction | None:
        """Its epsilon."""
        return self.epsilon

    @property
    def local(self) -> bool:
        """It is."""
        return True


@dataclass(frozen=True, slots=True)
class PerAtomLDP(Measure):
    """f_ay <= e^epsilon f_by + delta / |X| for any two inputs a, b and each single output y: Ramon & Basu 2020, 3.3.

    It bounds every output by itself. Sets of outputs get a delta of up to (|Y| - 1) / |X| times this one, so that it
    does not imply (epsilon, delta)-LDP once |Y| > |X| + 1; plans give the true delta.
    """

    epsilon: Fraction
    delta: Fraction
    name: ClassVar[str] = "(epsilon, delta)-per-atom-LDP"

    @property
    def amounts(self) -> dict[str, Fraction]:
        """Epsilon and delta."""
        return {"epsilon": self.epsilon, "delta": self.delta}

    def describe(self) -> str:
        """With its figures."""
        return f"({readable(self.epsilon)}, {readable(self.delta)})-per-atom-LDP"

    def gaussian_mu_down(self) -> Fraction | None:
        """It counts inputs and outputs, so it says nothing of a real release."""
        return None

    @property
    def pure_epsilon(self) -> Fraction | None:
        """Its epsilon."""
        return self.epsilon

    @property
    def local(self) -> bool:
        """It is."""
        return True

    def slack(self, inputs: int) -> Fraction:
        """What each single output may exceed the ratio by, for so many inputs."""
        return self.delta / inputs

    def largest_delta(self, inputs: int, outputs: int) -> Fraction:
        """A bound on the delta of sets of outputs: one output at least has no excess."""
        return min(self.slack(inputs) * (outputs - 1), Fraction(1))


@dataclass(frozen=True, slots=True)
class ZCDP(Measure):
    """Zero-concentrated differential privacy (Bun & Steinke 2016)."""

    rho: Fraction
    name: ClassVar[str] = "rho-zCDP"

    @property
    def amounts(self) -> dict[str, Fraction]:
        """Rho."""
        return {"rho": self.rho}

    def describe(self) -> str:
        """With its figure."""
        return f"{readable(self.rho)}-zCDP"

    def gaussian_mu_down(self) -> Fraction | None:
        """sqrt(2 rho)."""
        from privspec.core.gaussian import mu_of_zcdp

        return mu_of_zcdp(self.rho)


@dataclass(frozen=True, slots=True)
class GDP(Measure):
    """Gaussian differential privacy (Dong, Roth & Su 2022)."""

    mu: Fraction
    name: ClassVar[str] = "mu-GDP"

    @property
    def amounts(self) -> dict[str, Fraction]:
        """Mu."""
        return {"mu": self.mu}

    def describe(self) -> str:
        """With its figure."""
        return f"{readable(self.mu)}-GDP"

    def gaussian_mu_down(self) -> Fraction | None:
        """Mu itself."""
        return self.mu


@dataclass(frozen=True, slots=True)
class RDP(Measure):
    """Renyi differential privacy of one order (Mironov 2017)."""

    order: Fraction
    epsilon: Fraction
    name: ClassVar[str] = "(order, epsilon)-RDP"

    @property
    def amounts(self) -> dict[str, Fraction]:
        """Order and epsilon."""
        return {"order": self.order, "epsilon": self.epsilon}

    def describe(self) -> str:
        """With its figures."""
        return f"({readable(self.order)}, {readable(self.epsilon)})-RDP"

    def gaussian_mu_down(self) -> Fraction | None:
        """sqrt(2 epsilon / order)."""
        from privspec.core.gaussian import mu_of_rdp

        return mu_of_rdp(self.order, self.epsilon)


@dataclass(frozen=True, slots=True)
class Metric:
    """A distance as a line names it: a name of `model.distances`, or the text of a matrix and its expression."""

    name: str
    matrix: syntax.Expr | None = None


@dataclass(frozen=True, slots=True)
class MetricDP(Measure):
    """d-privacy: probabilities differ by a factor of at most e^(epsilon d(x, x')).

    `matrix` is the public expression of a distance of the user's own, whose text `metric` then is.
    """

    epsilon: Fraction
    metric: str
    matrix: syntax.Expr | None = None
    name: ClassVar[str] = "epsilon-metric-DP"

    @property
    def amounts(self) -> dict[str, Fraction]:
        """Epsilon, per unit of distance."""
        return {"epsilon": self.epsilon}

    def describe(self) -> str:
        """With its figure and distance."""
        return f"{readable(self.epsilon)}-metric-DP ({self.metric} distance)"

    def gaussian_mu_down(self) -> Fraction | None:
        """No Gaussian release satisfies it at every distance."""
        return None

    def to_json(self) -> dict[str, Any]:
        """With the distance."""
        return {"measure": self.name, "epsilon": str(self.epsilon), "distance": self.metric}


@dataclass(frozen=True, slots=True)
class Lipschitz(Measure):
    """Individual fairness: laws of the output differ by at most `constant` times the distance of the inputs.

    Laws are compared in total variation; `metric` and `matrix` are as in `MetricDP`.
    """

    constant: Fraction
    metric: str
    matrix: syntax.Expr | None = None
    name: ClassVar[str] = "Lipschitz"

    @property
    def amounts(self) -> dict[str, Fraction]:
        """The constant."""
        return {"constant": self.constant}

    def describe(self) -> str:
        """With its figure and distance."""
        return f"{readable(self.constant)}-Lipschitz ({self.metric} distance)"

    def gaussian_mu_down(self) -> Fraction | None:
        """Not a measure of privacy."""
        return None

    def to_json(self) -> dict[str, Any]:
        """With the distance."""
        return {"measure": self.name, "constant": str(self.constant), "distance": self.metric}


@dataclass(frozen=True, slots=True)
class Personalised(Measure):
    """A measure of its own for each person of an index set (the amounts are public)."""

    party: str
    each: tuple[Measure, ...]

    @property
    def local(self) -> bool:
        """Whether those of its people are."""
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
        """The range of figures."""
        figures = sorted(self.each, key=lambda one: tuple(one.amounts.values()))
        low, high = figures[0].describe(), figures[-1].describe()
        return low if low == high else f"{low} to {high}, by {self.party}"

    def gaussian_mu_down(self) -> Fraction | None:
        """That of the strictest person: satisfies everybody."""
        found = [one.gaussian_mu_down() for one in self.each]
        known = [mu for mu in found if mu is not None]
        return min(known) if len(known) == len(found) else None

    def to_json(self) -> dict[str, Any]:
        """All of them."""
        return {"measure": self.name, "party": self.party, "each": [one.to_json() for one in self.each]}


@dataclass(frozen=True, slots=True)
class Chosen(Measure):
    """A measure whose amounts the solver picks: `amounts_as_written` in terms of `choose` variables."""

    kind: str
    amounts_as_written: tuple[syntax.Expr, ...]
    text: str

    @property
    def name(self) -> str:  # type: ignore[override]
        """The kind."""
        return self.kind

    @property
    def amounts(self) -> dict[str, Fraction]:
        """Not known before solving."""
        return {}

    def describe(self) -> str:
        """As written."""
        return f"{self.text} (chosen by the solver)"

    def gaussian_mu_down(self) -> Fraction | None:
        """Not known before solving."""
        return None
