"""Plans of noise at a statistic of bounded records (laws/statistics): what is executed, and who sees it.

What follows the noise uses public numbers only (lemma post-processing): pooling, weights and solving cost nothing.
"""

from __future__ import annotations

from dataclasses import field
from fractions import Fraction

from flint import arb, ctx

from privspec.kernel.changes import OfParty
from privspec.kernel.core.numbers import ZERO, ball, end
from privspec.kernel.core.problem import Guarantee, PlanUnderCheck, Rules, read_guarantees
from privspec.kernel.core.reading import Positive, Refused, Size, frozen
from privspec.kernel.laws.statistics import (
    LARGEST_RADIUS,
    SHAPES,
    STEP,
    HeldRecords,
    Noise,
    NoisyStatistic,
    Statistic,
    statistics_of,
)
from privspec.kernel.promises import Line, OneOutput, Question, verdict
from privspec.kernel.terms import Pick
from privspec.kernel.worth import judge_lines

PLACES = ("each party", "pool")
AMONG = "the ways that this plan lists, by simulation under the data model"
VERSION = 1
OF_ANY = ("result", "direction", "signs", "records", "direction_of_records")
"""Statistics whose moves hang on no likelihood: points of a ball, and sums of records."""
ESTIMATES = {"probit_mle": (*OF_ANY, "objective"), "logit_mle": OF_ANY}
"""What each function of choices offers: the coefficients of an objective are those of the probit model."""
"""The function whose statistics are known here, and the version of them."""


# --- what the problem asks ---------------------------------------------------------------------------------------


@frozen
class Ball:
    """All vectors of norm at most `radius`; `norm`: "l1" or "l2"."""

    norm: str
    radius: Size


@frozen
class NoisyRoute:
    """A statistic of a party's records that noise may enter at: where, in terms of the call, and how many numbers.

    `estimated_within`: the ball of the estimate that it is taken of, where that is not the function's own.
    """

    at: str
    name: str
    size: Positive
    estimated_within: Ball | None


@frozen
class SimulatedLoss:
    """A loss that is only ever simulated: data are drawn from a model, in at most so many crowds, from one seed.

    `expression` and `definitions` are its words: no figure of privacy rests on them.
    """

    model: str
    seed: int
    crowds: Positive
    expression: str
    definitions: tuple[str, ...]


@frozen
class ErrorLimit:
    """No number of the output is farther than `most` from the pool's, with so much probability."""

    line: int
    text: str
    most: Size
    probability: Size

    def __post_init__(self) -> None:
        if not 0 < self.probability < 1:
            raise Refused("asks for what is no probability below 1")


@frozen
class StatisticBlock:
    """`output` is released for the mean or sum (`mean`) of a function's values for each party's records.

    `count` records of `dimension` numbers for each of `parties` parties, each record in the Euclidean ball of radius
    `radius` (None: of any size); values are looked for in the ball `within`; records and statistics are whole multiples
    of `grid`. `each` names the value of one party, `pool` that of all; `sites` and `families`: where noise may enter
    and of which families it may be, None where the compiler may choose.
    """

    FORM = "statistics"

    function: str
    version: int
    source: str
    party: str | None
    parties: Positive
    count: Positive
    dimension: Positive
    radius: Size | None
    within: Ball
    grid: Fraction
    each: str
    pool: str
    mean: bool
    output: str
    routes: tuple[NoisyRoute, ...]
    sites: tuple[str, ...] | None
    families: tuple[str, ...] | None
    loss: SimulatedLoss
    limits: tuple[ErrorLimit, ...] = ()

    def __post_init__(self) -> None:
        if self.function not in ESTIMATES or (self.version, self.grid) != (VERSION, STEP):
            raise Refused("is of a function, a version of it, or a grid that is not known")
        radius, known = self.radius, self.statistics
        if not self.within.radius or (radius is not None and not 0 < radius <= LARGEST_RADIUS):
            raise Refused("has a ball that is empty, too large or not known")
        balls = (None if one.estimated is None else Ball(self.within.norm, one.estimated) for one in known.values())
        stated = [(one.at, one.size, one.estimated_within) for one in self.routes]
        if stated != [(at, one.size, ball) for (at, one), ball in zip(known.items(), balls, strict=True)]:
            raise Refused("offers other statistics than such records have")

    @property
    def share(self) -> Fraction:
        """What one party's value counts in the pool."""
        return Fraction(1, self.parties) if self.mean else Fraction(1)

    @property
    def records(self) -> HeldRecords:
        """What one party holds."""
        return HeldRecords(self.count, self.dimension, self.radius, self.within.norm, self.within.radius)

    @property
    def statistics(self) -> dict[str, Statistic]:
        """What noise may enter at, by its place in the call."""
        found = statistics_of(self.records)
        return {at: one for at, one in found.items() if at in ESTIMATES[self.function]}


WORDS = {"Ball.norm": ("l1", "l2"), "Executed.where": PLACES}


# --- plans -------------------------------------------------------------------------------------------------------


@frozen
class Site:
    """Noise of a shape at a place in the call, on the grid of statistics, by its parameters."""

    at: str
    shape: str
    parameters: dict[str, Size]
    grid: Fraction


@frozen
class Executed(OneOutput):
    """Records to the statistic `route` to noise to output; one law for all, or one for each party in order.

    `where`: at each party, or at the pool; `finish_first`: each party's noisy statistic is finished and the results are
    pooled, else once for all.
    """

    FORM = "statistic"

    block: StatisticBlock
    route: str
    where: str
    finish_first: bool
    sites: tuple[Site, ...]
    weights: tuple[Size, ...] | None = None
    noises: tuple[Noise, ...] = field(init=False)

    def __post_init__(self) -> None:
        block, each = self.block, self.each_party
        if self.route not in block.statistics:
            raise Refused("is not about a statistic that the problem offers")
        node = block.each if each else block.pool
        at = node if self.route == "result" else f"{self.route}({node})"
        if block.sites is not None and at not in block.sites:
            raise Refused(f"is not where the spec allows noise: {', '.join(block.sites)}")
        object.__setattr__(self, "noises", tuple(_noise(site, at, block.families) for site in self.sites))
        if len(self.noises) not in {1, block.parties if each else 1}:
            raise Refused("does not list the noise of all, or that of each party")
        if self.weights is not None and len(self.weights) != block.parties:
            raise Refused("does not weigh each party")
        if not each and (self.finish_first or self.weights is not None or self.noises[0].bound is not None):
            raise Refused("is at the pool: weights, reports and solving one by one are for noise at each party")

    @property
    def each_party(self) -> bool:
        return self.where == PLACES[0]

    @property
    def statistic(self) -> Statistic:
        """What noise enters at."""
        return self.block.statistics[self.route]

    def error(self, probability: Fraction) -> Fraction:
        """What no number of the output is farther than from the pool's, with so much probability.

        Raises: Refused where the noise is not at the pool's own numbers, each with its own.
        """
        if self.each_party or self.route != "result":
            raise Refused("has noise elsewhere than at the pool: how far it leads is not known")
        return self.block.share * largest_noise(self.noises[0], self.statistic.size, probability)

    @property
    def figure(self) -> str:
        """What a plan states of its noise."""
        return "mu" if self.noises[0].law.normal else "epsilon"

    @property
    def term(self) -> Pick:
        """What is executed; all see the messages of parties where nobody is trusted."""
        return Pick(self.block.output, NoisyStatistic(self.statistic, self.noises))


def largest_noise(noise: Noise, size: int, probability: Fraction) -> Fraction:
    """What none of so many independent draws is beyond, with so much probability: one misses with 1 - p^(1 / size).

    Of Laplace noise of scale b on the grid, 2 q^k / (1 + q) <= q^(k - 1) for q = e^(-step / b); a rounded Gaussian draw
    is half a step off. A step covers both, another one what is rounded to doubles (Wang et al. 2019, theorem 2, with
    p^(1 / size) in place of a sum of misses).
    Raises: Refused for noise whose numbers are drawn together.
    """
    if noise.shape not in ("laplace", "gaussian"):
        raise Refused("has noise of which it is not known how large a single number is")
    with ctx.workprec(256):
        within = (ball(probability).log() / size).exp()
        tail = within.erfinv() * arb(2).sqrt() if noise.law.normal else -(1 - within).log()
        return noise.size * end(tail.upper()) + 2 * STEP


def _noise(site: Site, at: str, families: tuple[str, ...] | None) -> Noise:
    known = SHAPES.get(site.shape)
    if known is None or (site.at, site.grid) != (at, STEP):
        raise Refused("has noise of a shape, at a place or on a grid that is not known")
    if families is not None and known.family not in families:
        raise Refused(f"is of a family that the spec does not allow: {', '.join(families)}")
    if set(site.parameters) != {known.size, *(("bound",) if known.norm is None else ())}:
        raise Refused("has noise of other parameters than those of its shape")
    return Noise(site.shape, site.parameters[known.size], site.parameters.get("bound"))


class Statistics(Rules):
    """Privacy by the lemmas; the loss is simulated, and nothing is proved of it."""

    mechanisms = (Executed,)

    def judge(self, case: PlanUnderCheck) -> Executed:
        """What is promised, and the loss, which is for the record."""
        run = self.privacy(case)
        self._loss(case, run.block)
        found = [(one.line, one.text, one.most, run.error(one.probability)) for one in run.block.limits]
        judge_lines(case, found, ZERO, stated=True)
        return run

    def privacy(self, case: PlanUnderCheck) -> Executed:
        """Who sees what, then every line by its theorems."""
        run: Executed = self.read(case.frame, case.mechanism)
        trust = case.frame.trust
        held = {data.name: data.party for data in case.frame.data}
        if held.get(run.block.source, "") != run.block.party or trust.means.shared:
            raise case.block.wrong("reads records that nobody holds so, or trusts whom no lemma is about")
        text = "each party's message is its own noisy statistic" if run.each_party else "only the sum is made noisy"
        case.says("view", run.each_party or not trust.means.public, f"{text}, under {trust.means.written}")
        case.says("rounding", True, f"{run.statistic.size} numbers ({run.route}), like the noise on the grid 2^-20")
        lines = list[Line]()
        for one in read_guarantees(case.guarantees, case.frame):
            lines.append(_promised(run, one))
            found, figure = verdict(run.term, lines[-1]), run.figure
            most, said = found.largest((figure,))[figure], one.achieved.get(figure, ZERO)
            tail = "" if found.holds else f"; the plan states {figure} {float(said):.8g}, or other lemmas"
            text = f"{run.block.output}, {one.obligation.neighbours}: {figure} {float(most):.8g} by the lemmas "
            lemmas = ", ".join(run.term.law.notes[1:-1])
            case.says("privacy", found.holds, f"{text}{lemmas}{tail}", one.number)
        case.promised = run.term, lines
        return run

    def _loss(self, case: PlanUnderCheck, block: StatisticBlock) -> None:
        """What is stated comes from a simulation that is not done again; no bound is claimed."""
        known: dict[str, object] = {"lower_bound": None, "relative_gap": None, "expression": block.loss.expression}
        known |= {"among": AMONG, "units": "units of the loss expression", "kind": "expected"}
        told = case.loss.stating(known, "value", "without_noise", "standard_error", "crowds", "parties")
        _ = told[0].double(), told[1].double(), told[3].integer(1, block.loss.crowds), told[4].integer(1, block.parties)
        if told[2].double() < 0 or case.status != "feasible":
            raise case.loss.wrong("claims more than a simulation shows")
        for item, nothing in ((case.fairness, None), (case.claims, {})):
            item.same(nothing)
        case.says(
            "loss", True, "by simulation only: see the problem's words for data model, seed and count", derived=False
        )


def _promised(run: Executed, guarantee: Guarantee) -> Line:
    """What one unit changes: records of one party, of which the sum over parties moves by as much.

    Of a local guarantee any two values of all that a party holds are compared, in its own report. Where each party has
    amounts of its own, every different pair of a noise and amounts is asked.
    """
    asked, each, parties = guarantee.obligation, guarantee.obligation.measure.each, run.block.parties
    (unit, *more), local = asked.units, asked.measure.of.local
    about = (asked.outputs, asked.seen, asked.wrt) == ((run.block.output,), (run.block.output,), (run.block.source,))
    fits = not more and (unit.count, unit.adding, unit.apart) == (1, False, None) and (run.each_party or not local)
    whole = (unit.kind, unit.party) == ("party", run.block.party) or (unit.kind, parties) == ("everything", 1)
    if not about or not fits or not (unit.kind == "record" or whole):
        raise Refused(f"line {asked.line} is about outputs, inputs or units that no lemma covers")
    if each and len(each) != parties:
        raise Refused(f"line {asked.line} has another number of parties")
    many = 1 if unit.kind == "record" and not local else run.block.count
    questions = [Question(OfParty(many), guarantee.asked, guarantee.achieved)]
    if each:
        alike = len(run.noises) == 1
        pairs = {(run.noises[0 if alike else k], one): k for k, one in enumerate(each)}
        questions = [
            Question(OfParty(many, 0 if alike else k), one.figures({}), guarantee.achieved)
            for (_, one), k in pairs.items()
        ]
    fits = guarantee.because == run.term.law.notes and set(guarantee.achieved) == {run.figure}
    return Line(asked.line, frozenset(asked.seen), asked.measure.of, tuple(questions), fits)
