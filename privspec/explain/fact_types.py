"""The facts of a plan as data: quantities with their rounding, ready to be put into sentences and tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import TypeAlias

from privspec.explain.claims import Claim
from privspec.explain.context import Context
from privspec.explain.curves import Odds
from privspec.explain.frontier import Calibration, Frontier
from privspec.explain.mechanism import MechanismFact
from privspec.explain.quantities import Quantity
from privspec.explain.questions import Question
from privspec.explain.sentences import Because, Sentence, SpecLine


@dataclass(frozen=True, slots=True)
class OddsFact:
    """The odds of one curve; `coin` is what a coin toss gives, `error` the share of mistakes in per cent."""

    without: Quantity
    taking_part: Quantity
    of: Quantity
    coin: Quantity
    error: Quantity
    plain: Odds

    @property
    def without_words(self) -> str:
        """How many results say "took part" of one who did not: "at least 26 of 100"."""
        if self.plain.tells_little:
            return f"possibly fewer than 1 of {self.of}"
        return f"at least {self.without} of {self.of}"

    @property
    def taking_part_words(self) -> str:
        """How many results say "took part" of one who did: "at most 74 of 100"."""
        if self.plain.tells_little:
            return f"possibly more than {self.plain.of - 1:,} of {self.of}"
        return f"at most {self.taking_part} of {self.of}"

    @property
    def pair(self) -> str:
        """Both numbers in short: "26 and 74 of 100"."""
        if self.plain.tells_little:
            return f"possibly fewer than 1 and more than {self.plain.of - 1:,} of {self.of}"
        return f"{self.without} and {self.taking_part} of {self.of}"


CountedOdds: TypeAlias = tuple[Quantity, OddsFact]
"""A number of releases or of units, and the odds at it."""


@dataclass(frozen=True, slots=True)
class Consequences:
    """What a curve means: odds, the largest advantage, and the least misses at given false alarms."""

    words: str
    exact: bool
    odds: OddsFact
    advantage: Quantity
    misses: tuple[tuple[Quantity, Quantity], ...]


@dataclass(frozen=True, slots=True)
class ClaimFact:
    """One guarantee with all that follows from it; what cannot be said is None or empty.

    `everything_words` is the bound for one who sees all outputs, "μ ≤ 0.45, that is (2, 1e-6)-DP".
    """

    claim: Claim
    question: Question
    shown: Consequences | None
    promised: Consequences | None
    repeats: tuple[CountedOdds, ...]
    groups: tuple[CountedOdds, ...]
    posteriors: tuple[tuple[Quantity, Quantity], ...]
    everything: Consequences | None
    everything_words: str
    covers_everything: bool
    calibration: Calibration | None


@dataclass(frozen=True, slots=True)
class ExposureFact:
    """What an observer learns of one input that no line bounds for all that they see.

    `fact` is about all that the observer sees together (nothing is shown where no bound is known), `unprotected` are
    the outputs among them that hide next to nothing of the input, `words` the bound: "μ ≤ 5.01, that is ..".
    """

    input: str
    fact: ClaimFact
    unprotected: tuple[str, ...]
    words: str


@dataclass(frozen=True, slots=True)
class InputFact:
    """An input as it is executed."""

    name: str
    size: Quantity
    layout: str
    limits: str
    clipped: bool
    because: Because


@dataclass(frozen=True, slots=True)
class OutputFact:
    """How far the numbers of one output may be off (root mean square, least and largest deviation)."""

    name: str
    shape: tuple[int, ...]
    size: Quantity
    typical: Quantity
    least: Quantity
    largest: Quantity
    without_noise: Quantity
    deviations: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class SiteFact:
    """One noise site in words and numbers."""

    at: str
    law: str
    correlated: bool
    coordinates: Quantity
    typical: Quantity
    least: Quantity
    largest: Quantity
    deviations: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class LossFact:
    """The loss, its bound, and the error of an answer where the loss is a plain squared error.

    `worst` is whether it is the largest over the inputs and not an average over them.
    """

    value: Quantity
    lower_bound: Quantity | None
    gap: Quantity | None
    standard_error: Quantity | None
    expression: str
    units: str
    among: str
    error: Quantity | None
    variance: Quantity | None
    error_of: str
    error_units: str
    worst: bool


@dataclass(frozen=True, slots=True)
class AlternativeFact:
    """A design that was considered and not chosen."""

    name: str
    loss: Quantity
    times: Quantity
    error: Quantity | None
    admissible: bool
    reason: str


@dataclass(frozen=True, slots=True)
class BindingFact:
    """A line that limits the loss, and what relaxing it would give; `about` where only the slope is known."""

    line: SpecLine
    change: str
    lowers: bool
    about: bool
    loss_change: Quantity
    error_change: Quantity | None


@dataclass(frozen=True, slots=True)
class AccuracyFact:
    """An accuracy line at the instance of it that is nearest to its bound; `instances` is how many there are."""

    line: SpecLine
    instances: Quantity
    asked: Quantity
    expected: Quantity
    used: Quantity


@dataclass(frozen=True, slots=True)
class FairnessFact:
    """A fairness line: the difference that it allows, the one that was reached, and what is left between them."""

    line: SpecLine
    tolerance: Quantity
    achieved: Quantity
    margin: Quantity
    met: bool


@dataclass(frozen=True, slots=True)
class SolverFact:
    """How the plan was found."""

    name: str
    iterations: Quantity | None
    seconds: Quantity | None
    versions: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """All that the three readers' pages draw on."""

    name: str
    title: str
    digest: str
    spec_file: str
    spec_sha256: str
    status: str
    family: str
    mechanism: MechanismFact
    parameters: tuple[tuple[str, str], ...]
    parameter_words: tuple[tuple[str, str], ...]
    overridden: tuple[str, ...]
    context: Context
    claims: tuple[ClaimFact, ...]
    exposures: tuple[ExposureFact, ...]
    inputs: tuple[InputFact, ...]
    outputs: tuple[OutputFact, ...]
    loss: LossFact | None
    sites: tuple[SiteFact, ...]
    noise_shape: str
    noise_grid: str
    rounding: str
    output_grid: str
    strategy_shape: tuple[Quantity, Quantity] | None
    alternatives: tuple[AlternativeFact, ...]
    accuracy: tuple[AccuracyFact, ...]
    fairness: tuple[FairnessFact, ...]
    binding: tuple[BindingFact, ...]
    assumptions: tuple[Sentence, ...]
    frontier: Frontier | None
    solver: SolverFact
    certificate_entries: tuple[str, ...]
    graph_words: str
    graph_svg: str
    gaps: tuple[str, ...]

    @property
    def stem(self) -> str:
        """The name of the spec's file without its ending."""
        return PurePath(self.spec_file).stem

    @property
    def plan_file(self) -> str:
        """The name that `privspec solve` gives the plan of this spec."""
        return f"{self.stem}.plan.json"

    @property
    def unprotected(self) -> tuple[str, ...]:
        """The outputs that are not protected against somebody, for some input."""
        return tuple(dict.fromkeys(name for e in self.exposures for name in e.unprotected))

    @property
    def several_inputs(self) -> bool:
        """Whether guarantees and exposures are about different inputs, so that pages have to say which."""
        return len({f.claim.wrt for f in (*self.claims, *(e.fact for e in self.exposures))}) > 1

    @property
    def weakest(self) -> ClaimFact | None:
        """That under which an observer can tell the most, of guarantees and of what none covers; None without odds."""
        every = (*self.claims, *(e.fact for e in self.exposures))
        known = [c for c in every if c.shown is not None]
        return min(known, key=lambda c: c.shown.odds.error.value if c.shown else 1.0) if known else None
