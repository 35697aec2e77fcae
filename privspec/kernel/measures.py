"""Measures of privacy: one object each, and what the rest of the house asks of it.

A measure at its amounts says how close the laws of a release have to be in any two neighbouring worlds; what that is
mathematically stands in `kernel.divergences`. Whoever needs to know something of a measure asks its object: no other
module names one. To add a measure is to write its entry here, and its words in language/words.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from privspec.kernel.core.records import dataclass
from privspec.kernel.gaussian import mu_down, sqrt_down

if TYPE_CHECKING:
    from privspec.kernel.divergences import Condition

Amounts = Mapping[str, Fraction]


@dataclass(frozen=True, slots=True)
class Amount:
    """A figure of a measure: above `least`, or from it on where it is a `probability`, which is below 1."""

    name: str
    least: int = 0
    probability: bool = False
    words: str = ""
    """As messages call it, where that is not its name."""


EPSILON, DELTA = Amount("epsilon"), Amount("delta", probability=True)
RHO, MU = Amount("rho"), Amount("mu")
ORDER = Amount("order", least=1, words="the order of a Renyi divergence")
CONSTANT = Amount("constant", words="the constant")


@dataclass(frozen=True, eq=False, slots=True)
class Measure:
    """A measure of privacy.

    `word` stands behind the amounts in a spec, `title` is the field's name for it; `condition` gives, at some amounts,
    what is asked of two laws. `variant` is what the register of deployments calls it.
    """

    word: str
    amounts: tuple[Amount, ...]
    title: str
    condition: Callable[[Amounts], Condition]
    gaussian_mu_down: Callable[[Amounts], Fraction | None] = lambda asked: None  # noqa: ARG005 - one signature for all
    """The largest mu, rounded down, of a Gaussian release that satisfies it: its sensitivity in units of its noise.

    None where no such release does.
    """
    variant: str = "Custom"
    local: bool = False
    """Whether it is about one party's report, any value against any other."""
    takes_distance: bool = False
    """Whether its first amount is for each unit of a distance between the values."""
    fairness: bool = False
    """Whether it is one of fairness: no guarantee of a plan is in it."""
    each_output: bool = False
    """Whether it bounds every single output by itself; its delta is shared by as many as the inputs have values."""
    follows_from_pure: bool = False
    """Whether a law of its own epsilon satisfies it."""
    shared: bool = False
    """Whether independent parts may share a line of it, and a part may spend some of it."""
    bounds_others: bool = True
    """Whether what a part spends in it bounds, together with others, what is spent in another measure."""
    summable: bool = True
    """Whether what several releases cost in it is added up."""
    without_delta: Measure | None = None
    """The measure that it is at a delta of 0."""

    @property
    def name(self) -> str:
        """As it stands in plans: "(epsilon, delta)-DP"."""
        return self.at(self.figures)

    @property
    def figures(self) -> tuple[str, ...]:
        """The names of its amounts, in order."""
        return tuple(amount.name for amount in self.amounts)

    @property
    def by_distance(self) -> bool:
        """Whether it protects values by their distance."""
        return self.takes_distance and not self.fairness

    @property
    def any_values(self) -> bool:
        """Whether it compares any value of its inputs with any other, so that a line of it names no unit."""
        return self.local or self.takes_distance

    @property
    def with_delta(self) -> Measure | None:
        """The measure of its word that has a delta: itself, or the one that it is at a delta of 0."""
        known = (one for one in BY_WORD[self.word] if DELTA in one.amounts)
        return next((one for one in known if self in (one, one.without_delta)), None)

    @property
    def main(self) -> Amount:
        """The amount that says how strong it is: what it allows beside that, or of which order, apart."""
        return next((one for one in self.amounts if not one.probability and not one.least), self.amounts[0])

    @property
    def figure(self) -> str:
        """The name of its first amount."""
        return self.amounts[0].name

    @staticmethod
    def written(amounts: tuple[str, ...]) -> str:
        """Amounts as a spec writes them: one alone, several in brackets."""
        return amounts[0] if len(amounts) == 1 else f"({', '.join(amounts)})"

    def at(self, figures: tuple[str, ...]) -> str:
        """With its figures: "(1, 1e-6)-DP"."""
        return f"{self.written(figures)}-{self.word}"

    def proved_by(self, asked: Amounts, *parts: Amounts) -> bool:
        """Whether independent laws, each of an epsilon (but for a delta), of a mu or of a rho, satisfy it.

        Raises: Refused where there are too many.
        """
        from privspec.kernel.divergences import Composed

        return self.of_laws and self.condition(asked).satisfied_by(Composed.of(*parts))

    @property
    def shared_with_all(self) -> bool:
        """Whether a part may spend some of it, whatever the measure of the line that it shares."""
        return self.shared and self.bounds_others

    def shared_by(self, spent: Measure) -> bool:
        """Whether a part of a line in this measure may spend another one."""
        return self.shared and (spent.shared_with_all or spent is self)

    @property
    def of_laws(self) -> bool:
        """Whether it is about laws of outputs as they are: not by distance, nor output by output."""
        return not self.takes_distance and not self.each_output


# --- what is asked of two laws; to check a spec needs no arithmetic of balls, so it is loaded when it is asked for


def hockey_stick(epsilon: Fraction, delta: Fraction) -> Condition:
    """No set of outputs is more than e^epsilon times as likely under one law as under the other, up to delta."""
    from privspec.kernel.divergences import HockeyStick

    return HockeyStick(epsilon, delta)


def renyi(order: Fraction | None, amount: Fraction) -> Condition:
    """The Rényi divergence of an order is at most an amount; without an order, of every order that times the amount."""
    from privspec.kernel.divergences import Renyi

    return Renyi(order, amount)


def trade_off(mu: Fraction) -> Condition:
    """No test does better than the best one of two normal laws of deviation 1 whose means are mu apart."""
    from privspec.kernel.divergences import TradeOff

    return TradeOff(mu)


def _ratio(asked: Amounts) -> Condition:
    return hockey_stick(asked["epsilon"], asked.get("delta", Fraction(0)))


# --- the largest Gaussian mu --------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def _mu_of_pair(epsilon: Fraction, delta: Fraction) -> Fraction:
    return mu_down(epsilon, delta)


def _by_curve(asked: Amounts) -> Fraction | None:
    """Exact, by Balle & Wang 2018; none for delta 0."""
    return _mu_of_pair(asked["epsilon"], asked["delta"]) if asked["delta"] > 0 else None


# --- the registry -------------------------------------------------------------------------------------

PURE = Measure(
    "DP", (EPSILON,), "pure differential privacy", _ratio, variant="Pure DP", follows_from_pure=True, shared=True
)
APPROXIMATE = Measure(
    "DP",
    (EPSILON, DELTA),
    "approximate differential privacy",
    _ratio,
    _by_curve,
    "Approximate DP",
    follows_from_pure=True,
    shared=True,
    without_delta=PURE,
)
LOCAL_PURE = Measure(
    "LDP",
    (EPSILON,),
    "local differential privacy",
    _ratio,
    variant="Pure DP",
    local=True,
    follows_from_pure=True,
    shared=True,
    bounds_others=False,
)
LOCAL_APPROXIMATE = Measure(
    "LDP",
    (EPSILON, DELTA),
    "approximate local differential privacy",
    _ratio,
    _by_curve,
    "Approximate DP",
    local=True,
    follows_from_pure=True,
    without_delta=LOCAL_PURE,
)
EACH_OUTPUT = Measure(
    "per-atom-LDP",
    (EPSILON, DELTA),
    "local differential privacy, output by output",
    _ratio,
    local=True,
    each_output=True,
    follows_from_pure=True,
    without_delta=LOCAL_PURE,
)
"""f_ay <= e^epsilon f_by + delta / |X| for any two inputs a, b and each single output y: Ramon & Basu 2020, 3.3.

Sets of outputs get a delta of up to (|Y| - 1) / |X| times this one, so that it does not imply (epsilon, delta)-LDP once
|Y| > |X| + 1; plans give the true delta. It counts inputs and outputs, so it says nothing of a Gaussian release.
"""


def delta_of_sets(delta: Fraction, inputs: int, outputs: int) -> Fraction:
    """What a delta of single outputs allows sets of them at most: one output at least exceeds no ratio."""
    return min(delta / inputs * (outputs - 1), Fraction(1))


ZERO_CONCENTRATED = Measure(
    "zCDP",
    (RHO,),
    "zero-concentrated differential privacy",
    lambda asked: renyi(None, asked["rho"]),
    lambda asked: sqrt_down(2 * asked["rho"]),
    "Zero-concentrated DP",
    shared=True,
    bounds_others=False,
)
"""Bun & Steinke 2016."""
GAUSSIAN = Measure(
    "GDP",
    (MU,),
    "Gaussian differential privacy",
    lambda asked: trade_off(asked["mu"]),
    lambda asked: asked["mu"],
    shared=True,
)
"""Dong, Roth & Su 2022."""
RENYI = Measure(
    "RDP",
    (ORDER, EPSILON),
    "Rényi differential privacy",
    lambda asked: renyi(asked["order"], asked["epsilon"]),
    lambda asked: sqrt_down(2 * asked["epsilon"] / asked["order"]),
    "Renyi DP",
    summable=False,
)
"""Mironov 2017."""
TOTAL_VARIATION = Measure(
    "tv-DP",
    (Amount("advantage", probability=True, words="the advantage of a guesser"),),
    "bounded total variation",
    lambda asked: hockey_stick(Fraction(0), asked["advantage"]),
    lambda asked: _mu_of_pair(Fraction(0), asked["advantage"]),
)
"""No set of results is by more than so much likelier: how far a guesser of one unit is right above wrong, at best."""
BY_DISTANCE = Measure("metric-DP", (EPSILON,), "metric differential privacy", _ratio, takes_distance=True)
"""d-privacy: probabilities differ by a factor of at most e^(epsilon d(x, x')) (Chatzikokolakis et al. 2013)."""
BY_DISTANCE_APPROXIMATE = Measure(
    "metric-DP", (EPSILON, DELTA), "metric differential privacy", _ratio, takes_distance=True, without_delta=BY_DISTANCE
)
LIPSCHITZ = Measure(
    "Lipschitz",
    (CONSTANT,),
    "individual fairness",
    lambda asked: hockey_stick(Fraction(0), asked["constant"]),
    takes_distance=True,
    fairness=True,
)
"""Laws of the output differ in total variation by at most a constant times the distance of the inputs.

A measure of fairness (Dwork et al. 2012): no guarantee of a plan is in it.
"""

MEASURES = (
    PURE,
    APPROXIMATE,
    ZERO_CONCENTRATED,
    GAUSSIAN,
    LOCAL_PURE,
    LOCAL_APPROXIMATE,
    RENYI,
    TOTAL_VARIATION,
    BY_DISTANCE,
    BY_DISTANCE_APPROXIMATE,
    EACH_OUTPUT,
)
"""Those in which a plan may give guarantees."""
PURE_MEASURES = (PURE, LOCAL_PURE)
"""Those of an epsilon alone, for any two neighbours."""
_BY_NAME = {measure.name: measure for measure in MEASURES}
_WRITTEN = (*MEASURES, LIPSCHITZ)
BY_WORD = {one.word: tuple(measure for measure in _WRITTEN if measure.word == one.word) for one in _WRITTEN}
"""By its word in a spec, the measures that it stands for, that of fewest amounts first."""
BY_PERSON = "personalised "
"""What the name of a measure begins with where each person has amounts of their own."""
FIGURES = frozenset(figure for measure in MEASURES for figure in measure.figures)
"""The names of all amounts that a plan may state."""


def named(name: str) -> Measure | None:
    """The measure of a name in a plan, by person or not; None for a name that is not known."""
    return _BY_NAME.get(name.removeprefix(BY_PERSON))


PATTERN = "|".join(sorted(BY_WORD, key=len, reverse=True))
"""The words of all measures, for expressions that look for one; longer ones first."""
