"""Mechanisms that add noise: what each site adds, how far each released number may be off, how the loss scales.

And their words on every page: Gaussian, Laplace, K-norm and mixed noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass
from privspec.core.rounding import step_text
from privspec.explain import drawing
from privspec.explain.curves import GaussianCurve, RenyiCurve
from privspec.explain.document import Accuracy, Block, Note, Plot, Sentence, SpecLine
from privspec.explain.facts import (
    ChosenNumber,
    Frontier,
    FrontierPoint,
    LossFact,
    MechanismFact,
    Moved,
    chosen_numbers,
    given,
    randomness,
)
from privspec.explain.messages import phrase, plotted, tabled
from privspec.explain.quantities import LOSS_DIGITS, UP, Quantity, count, exact, rounded, ungrouped
from privspec.kernel.core.linear import InputLayout, Release
from privspec.kernel.laws.gaussian import Gaussian
from privspec.kernel.laws.law import Law, by_shape, laws
from privspec.kernel.trust import NOBODY
from privspec.model.reports import listing
from privspec.problem.linear import as_floats
from privspec.stated import Pulled, Site, Stated

if TYPE_CHECKING:
    from privspec.explain.claims import Claim
    from privspec.explain.context import Context
    from privspec.explain.curves import Curve
    from privspec.explain.facts import Facts
    from privspec.model.graph import Model
    from privspec.model.observers import Unit

Array: TypeAlias = NDArray[np.float64]
NEXT_TO_NONE = 0.01
"""The share of the largest deviation below which a deviation is called next to none."""


@dataclass(frozen=True, slots=True)
class InputFact:
    """An input as it is executed."""

    name: str
    size: Quantity
    layout: str
    limits: str
    clipped: bool
    line: SpecLine

    @property
    def within(self) -> str:
        """Its limits, after a comma."""
        return f", {self.limits}" if self.limits else ""


@dataclass(frozen=True, slots=True)
class OutputFact:
    """How far the numbers of one output may be off (root mean square, least and largest deviation)."""

    name: str
    size: Quantity
    typical: Quantity
    least: Quantity
    largest: Quantity
    without_noise: Quantity
    deviations: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class PulledFact:
    """An output whose numbers are pulled towards public values: which share is kept, and the largest bias."""

    name: str
    many: bool
    kept: str
    towards: str
    most: str
    by_law: bool

    @classmethod
    def of(cls, name: str, at: slice, stated: Pulled) -> PulledFact:
        """Those of an output, whose numbers stand there."""
        kept, towards = stated.kept[at], stated.towards[at]
        most = rounded(max(stated.largest_bias[at]), 3, UP)
        shares = _between([100 * one for one in kept])
        return cls(name, len(kept) > 1, shares, _between(towards), most.text, stated.by_law)

    @property
    def words(self) -> str:
        """Where it is pulled to, how much is kept, and the largest bias."""
        return phrase("additive.pulled.words", self)


def _between(values: Sequence[float]) -> str:
    """From the least to the largest."""
    low, high = rounded(min(values), 3).text, rounded(max(values), 3).text
    return low if low == high else phrase("additive.pulled.between", low=low, high=high)


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

    @property
    def words(self) -> str:
        """Its law, and whether its coordinates are drawn together."""
        return phrase("additive.drawn_at.law", self)


@dataclass(frozen=True, slots=True)
class AdditiveNoise(MechanismFact):
    """Noise at sites."""

    released: frozenset[str]
    inputs: tuple[InputFact, ...]
    outputs: tuple[OutputFact, ...]
    sites: tuple[SiteFact, ...]
    shape: str
    grid: str
    output_grid: str
    rounding: str
    strategy: tuple[Quantity, ...]
    pulled: tuple[PulledFact, ...]
    shares: tuple[int, int, Quantity] | None
    """Of a secure sum: its parties, those that no coalition knows, and the deviation of a share, the largest."""
    numbers: tuple[ChosenNumber, ...]

    page = "additive"
    kin = "additive"

    def seen(self, outputs: frozenset[str], claim: Claim, model: Model | None, unit: Unit | None) -> Curve | None:
        """That of Gaussian noise where a line states its ρ: its shift is sqrt(2 ρ)."""
        reached = claim.achieved
        if not self.normal or outputs != set(claim.outputs) or not isinstance(reached, RenyiCurve):
            return None
        return GaussianCurve(math.sqrt(2 * reached.amount) * (1 + 1e-12)) if reached.order is None else None

    def frontier(self, plan: Stated, claims: tuple[Claim, ...]) -> Frontier | None:
        """As the law of its noise scales."""
        if self.pulled or "mechanism" not in plan.document:
            return None
        release = _release(plan)
        return _frontier(plan, claims, type(release.noise), release)

    def why_wide(self, facts: Facts, loss: LossFact) -> str:
        if loss.lower_bound is None or not (self.normal or facts.context.trust == NOBODY.name):
            return MechanismFact.why_wide(self, facts, loss)
        return phrase("additive.wide.normal") if self.normal else phrase("additive.wide.alone")

    @property
    def normal(self) -> bool:
        """Whether its noise is Gaussian."""
        return self.shape == "gaussian"

    @property
    def known_family(self) -> bool:
        """Whether these pages can describe it."""
        return any(self.family == law.family for law in laws())

    def variance_behind(self, plan: Stated, where: Context) -> tuple[float | None, str]:
        """The error variance behind the loss, if that is the sum, the mean or the largest of the outputs'."""
        known = plan.loss is not None and not self.numbers and not _of_sizes(plan)
        value, kind = (plan.loss.value, plan.loss.kind) if plan.loss and known else (math.nan, "")
        if not self.outputs:
            sizes = {o.name: o.stop - o.start for o in _release(plan).problem.released}
            # too many outputs for a covariance in the plan, but the loss is their plain sum of squared errors
            plain = list(sizes) == [where.squared_error_of]
            return (value / sizes[where.squared_error_of], "an answer") if plain else (None, "")
        squares = np.array([d for o in self.outputs for d in o.deviations]) ** 2
        return behind(value, kind, float(squares.sum()), float(squares.max()), squares.size)

    # --- the short table

    def error(self, facts: Facts) -> tuple[str, str]:
        """A label and the expected error; of answers that are pulled the loss at the worst data."""
        if not self.pulled or facts.loss is None:
            return MechanismFact.error(self, facts)
        alone = " · ".join(f"{o.name} ± {o.typical}" for o in self.outputs)
        found = phrase("additive.pulled.error", facts, alone=alone, by_law=any(one.by_law for one in self.pulled))
        return phrase("additive.pulled.label"), found

    def drawn(self, facts: Facts) -> str:
        joint = [site for site in self.sites if site.correlated]
        asked = () if facts.model is None else facts.model.families
        apart = [site for site in self.sites if not site.correlated]
        if asked == ("geometric",):
            apart = [replace(site, law="geometric noise") for site in apart]
        words = list(map(_site, apart))
        if joint:
            together = "drawn together, correlated across all" if len(joint) > 1 else "correlated across the"
            answers = count(sum(int(site.coordinates.value) for site in joint))
            words.insert(0, f"{together} {answers} answers of {listing([site.at for site in joint])}")
        return f"{' · '.join(words)}{facts.context.place}" if words else "not stated in the plan"

    # --- the pages

    def moved_by(self, facts: Facts) -> tuple[Moved, ...]:
        shown = [(o.name, o.typical, o.size.value > 1) for o in self.outputs if o.typical.value > 0]
        if not shown and facts.loss is not None and facts.loss.error is not None and len(self.released) == 1:
            shown = [(name, facts.loss.error, True) for name in self.released]
        return tuple(Moved(name, size, facts.unit(name, size.text), many) for name, size, many in shown)

    @property
    def shape_words(self) -> str:
        """Its law in words."""
        law = by_shape().get(self.shape)
        return law.title if law else f"noise of the shape “{self.shape}”"

    @property
    def run_note(self) -> Note:
        law = by_shape().get(self.shape)
        return Note(law.notes[-1] if law else "post-processing")

    @property
    def shares_words(self) -> str:
        """What each party adds; empty where no party does."""
        return _shares_words(self.shares) if self.shares else ""

    def values(self, facts: Facts) -> Mapping[str, object]:
        told = facts.loss is not None and self.moved_by(facts)
        names = [o.name for o in self.outputs if o.name not in facts.unprotected]
        through = {} if facts.model is None else facts.model.through
        # the plan itself may say, with its own status, that an input is clipped
        said = [line for s in facts.assumptions if "clipped" in s.text for line in s.because]
        return {
            "picked": " · ".join(map(str, self.numbers)),
            "fixed": [one for one in self.pulled if not one.by_law],
            "weighed": [one for one in self.pulled if one.by_law],
            "off_by": " · ".join(one.words for one in self.pulled),
            "each_off": " · ".join(f"{o.name} ± {o.typical}" for o in self.outputs),
            "several": len(self.outputs) > 1,
            "protected": names if told else (),
            "in_outputs": f" in the published {listing(names)}" if facts.unprotected else "",
            "too_little": told and not names,
            "bare": [o for o in self.outputs if o.without_noise.value > 0],
            "adding": bool(facts.claims) and all(c.claim.relation.adds for c in facts.claims),
            "lattice": _LATTICES[self.rounding].format(grid=self.grid or "that the plan does not state"),
            "step": self.grid or "not stated",
            "output_step": self.output_grid or "not stated",
            "strategy_size": " × ".join(map(str, self.strategy)) or "not stated",
            "whole": [i for i in self.inputs if i.name not in through],
            "read": [replace(i, layout=f"{i.layout} of {through[i.name]}") for i in self.inputs if i.name in through],
            "clipped": [i for i in self.inputs if i.clipped and i.name not in through and i.line not in said],
            "files": given(through.get(i.name, i.name) for i in self.inputs),
        }

    def accuracies(self, facts: Facts) -> Mapping[str, Accuracy]:
        names = (o.name for o in self.outputs if o.name not in facts.unprotected)
        return dict.fromkeys(("noise", "little"), Accuracy("mean", tuple((name, 0.0, 0.0) for name in names)))

    def auditor_points(self, facts: Facts) -> tuple[Sentence, ...]:
        numbers = (number.sentence() for number in self.numbers)
        more = self._sentences("auditor_more", facts)
        return *self._sentences("auditor", facts), *numbers, *randomness(self.run_note), *more

    def auditor_tables(self, facts: Facts) -> tuple[Block, ...]:
        return (tabled("additive.released", self.outputs),)

    def engineer_points(self, facts: Facts) -> list[Sentence]:
        return [*MechanismFact.engineer_points(self, facts), *(number.sentence() for number in self.numbers)]

    def engineer_blocks(self, facts: Facts) -> list[Block]:
        plot = noise_plot(self.sites)
        return [tabled("additive.drawn_at", self.sites), *((plot,) if plot else ())]


@dataclass(frozen=True, slots=True)
class CompactNoise(AdditiveNoise):
    """Additive noise of which a plan states what is drawn, and no covariance of the outputs."""

    def frontier(self, plan: Stated, claims: tuple[Claim, ...]) -> Frontier | None:
        if self.shape == "laplace":
            return None
        return _frontier(plan, claims, Gaussian, None)


_LATTICES = {
    "strategy": "the noisy values are lattice points of step {grid}",
    "outputs": "each released number is the point of the output grid nearest to an exact real number",
}


def behind(value: float, kind: str, total: float, largest: float, numbers: int) -> tuple[float | None, str]:
    """The error variance behind a loss that is the sum, the mean or the largest of variances, and what it is of."""
    if kind == "worst":
        return (largest, "the worst answer") if math.isclose(value, largest, rel_tol=1e-6) else (None, "")
    if any(math.isclose(value, known, rel_tol=1e-6) for known in (total, total / numbers)):
        return total / numbers, "an answer" if numbers > 1 else "the answer"
    return None, ""


def _shares_words(shares: tuple[int, int, Quantity]) -> str:
    parties, honest, size = shares
    found = f"each of {count(parties)} parties adds noise of its own, at most ± {size} in a released number"
    if honest == parties:
        return found
    return f"{found}; the guarantee holds for whoever knows the shares of any {count(parties - honest)} of them"


def _site(site: SiteFact) -> str:
    if not site.deviations:
        return f"{site.law} at {site.at}"
    if site.largest.value == 0:
        return f"none at {site.at}"
    if site.least.text == site.largest.text:
        return f"{site.law} at {site.at} (± {site.typical})"
    none = site.least.value < NEXT_TO_NONE * site.largest.value
    size = f"next to none to ± {site.largest}" if none else f"± {site.least} to {site.largest}"
    return f"{site.law} at {site.at} ({size})"


# --- the picture of its sites ---------------------------------------------------------------------


MOST_BARS = 64
MOST_PANELS = 6


def noise_plot(known: Sequence[SiteFact]) -> Plot | None:
    """The standard deviation of the noise at every site by position (in groups where there are many).

    Nothing where there is one number alone: the table says it.
    """
    sites = [s for s in known if s.deviations][:MOST_PANELS]
    if sum(len(s.deviations) for s in sites) < 2:
        return None
    panels, rows, notes = [], [], []
    for site in sites:
        labels, values = grouped(site.deviations)
        # a range is too wide for an axis, where the first of it says enough
        starts = [label.partition("–")[0] for label in labels]
        panels.append(drawing.Bars(phrase("plots.noise.title", site=site), values, starts))
        rows += [(site.at, label, rounded(value)) for label, value in zip(labels, values, strict=True)]
        size = bar_size(len(site.deviations))
        if size > 1:
            rest = len(site.deviations) % size
            last = phrase("plots.noise.last", rest=rest) if rest else ""
            notes.append(phrase("plots.noise.grouped", site=site, size=size, last=last))
    words = phrase("plots.noise.up"), phrase("plots.noise.along", several=bool(notes))
    return plotted(
        "plots.noise",
        lambda: drawing.bar_chart(panels, *words),
        rows,
        sites=[s.at for s in sites],
        widest=max(sites, key=lambda s: s.largest.value),
        grouped="".join(notes),
    )


def bar_size(count: int, most: int = MOST_BARS) -> int:
    """How many values share a bar."""
    return -(-count // most)


def grouped(values: Sequence[float], most: int = MOST_BARS) -> tuple[list[str], list[float]]:
    """At most `most` bars with labels: single values, or root mean squares of runs of neighbours."""
    size = bar_size(len(values), most)
    labels, heights = [], []
    for start in range(0, len(values), size):
        part = values[start : start + size]
        last = start + len(part)
        labels.append(f"{start + 1:,}" if len(part) == 1 else f"{start + 1:,}–{last:,}")
        heights.append((sum(v * v for v in part) / len(part)) ** 0.5)
    return labels, heights


# --- reading --------------------------------------------------------------------------------------


def additive_noise(plan: Stated, where: Context) -> AdditiveNoise:
    """The mechanism of a plan that adds noise; or none, where no noise meets the lines."""
    if "mechanism" not in plan.document:
        return AdditiveNoise(
            family="unknown",
            released=frozenset(),
            inputs=(),
            outputs=(),
            sites=(),
            shape="unknown",
            grid="",
            output_grid="",
            rounding="strategy",
            strategy=(),
            pulled=(),
            shares=None,
            numbers=(),
        )
    release = _release(plan)
    block, variances = release.problem, _output_variances(plan, release)
    spread = {
        o.name: np.sqrt(np.maximum(variances[o.start : o.stop], 0.0)) for o in block.released if variances is not None
    }
    outputs = tuple(
        OutputFact(name, count(d.size), *_spread(d), count(int(np.count_nonzero(d == 0.0))), tuple(d.tolist()))
        for name, d in spread.items()
    )
    return AdditiveNoise(
        family=release.noise.family,
        released=frozenset(o.name for o in block.released),
        inputs=tuple(_input(held, where) for held in block.held),
        outputs=outputs,
        sites=tuple(_site_fact(site, spread, release) for site in plan.mechanism.sites),
        shape=release.noise.FORM,
        grid=step_text(release.grid),
        output_grid=step_text(release.output_grid),
        rounding="outputs" if release.round_outputs else "strategy",
        strategy=(count(release.strategy.nrows()), count(release.strategy.ncols())),
        pulled=_pulled(plan, release),
        shares=_shares(release, spread),
        numbers=chosen_numbers(plan, where),
    )


def _pulled(plan: Stated, release: Release) -> tuple[PulledFact, ...]:
    stated = plan.mechanism.pulled
    if stated is None:
        return ()
    parts = ((o.name, slice(o.start, o.stop)) for o in release.problem.released)
    return tuple(PulledFact.of(name, at, stated) for name, at in parts if any(stated.largest_bias[at]))


def _release(plan: Stated) -> Release:
    """What is executed of additive noise."""
    found = plan.executed
    assert isinstance(found, Release)
    return found


def _shares(release: Release, spread: Mapping[str, Array]) -> tuple[int, int, Quantity] | None:
    if release.parties == 1 or release.noise.honest is None:
        return None
    most = max((float(d.max(initial=0.0)) for d in spread.values()), default=0.0)
    return release.parties, release.noise.honest, rounded(most / math.sqrt(release.parties))


def _spread(deviations: Array) -> tuple[Quantity, Quantity, Quantity]:
    if deviations.size == 0:
        return rounded(0), rounded(0), rounded(0)
    rms = math.sqrt(float(np.mean(deviations**2)))
    return rounded(rms), rounded(float(deviations.min())), rounded(float(deviations.max()))


def _input(held: InputLayout, where: Context) -> InputFact:
    cells, limits = held.layout == "cells", ""
    if cells:
        limits = " × ".join(one.name for one in held.columns)
    elif held.ball is not None:
        ball = held.ball
        limits = f"in runs of {ball.dimension} inside the l{ball.norm} ball of radius {ball.radius}"
    elif held.lower is not None and held.upper is not None:
        limits = f"{held.lower} to {held.upper}"
    words = limits or ("" if cells else "no limits")
    # a coordinate may stand for a whole vector of a ball
    numbers = math.prod(held.shape) if held.ball is not None and held.shape else held.stop - held.start
    size, layout = count(numbers), "counts of cells" if cells else "values"
    return InputFact(held.name, size, layout, words, bool(limits) and not cells, where.line_of(held.name))


SHAPES = {
    "knorm-l2": "K-norm noise (l2)",
    "knorm-blocks": "K-norm noise of the shape that moves",
    "knorm-hulls": "K-norm noise of the hull of what moves",
    "knorm-swaps": "K-norm noise of the hull of what moves",
    "laplace-shares": "Laplace",
    "stepped": "noise in steps",
}


def _site_fact(site: Site, spread: Mapping[str, Array], release: Release) -> SiteFact:
    """A full covariance shows the deviations of its outputs, as does a shape of noise on the values themselves."""
    known, size, correlated = np.zeros(0), None, bool(site.covariance)
    if site.covariance:
        law, sizes = "Gaussian", {o.name: o.stop - o.start for o in release.problem.released}
        named = [name.strip(" ()") for name in site.at.split(",")]
        names = [name for name in named if name in sizes] or list(sizes)
        known = np.concatenate([known, *(spread[name] for name in names if name in spread)])
        size = sum(sizes[name] for name in names)
    elif site.variance is not None:
        law, known = "Gaussian", np.sqrt(np.array(site.variance, dtype=float))
    elif site.scale is not None:
        law = release.noise.title.removesuffix(" noise")
        # where answers are counted in whole numbers of something, so is the lattice at the place that is named
        times = np.array(site.scale, dtype=float) / np.array(release.noise.sizes(release.grid), dtype=float)
        known = times * np.sqrt(strategy_variances(release))
    else:
        law = SHAPES.get(site.shape, site.shape)
        known = spread.get(site.at, known) if site.shape else known
    size = known.size if size is None else size
    return SiteFact(site.at, law, correlated, count(size), *_spread(known), tuple(known.tolist()))


def _output_variances(plan: Stated, release: Release) -> Array | None:
    """The variance of each released number: as stated, by the reconstruction, or by sites that are the outputs."""
    covariance = plan.mechanism.output_covariance
    if covariance is not None:
        return np.array([row[i] for i, row in enumerate(covariance)], dtype=float)
    if not release.of_inputs:
        return np.asarray(as_floats(release.reconstruction) ** 2 @ strategy_variances(release))
    sizes = {o.name: o.stop - o.start for o in release.problem.released}
    stated = {s.at: np.array(s.variance, dtype=float) for s in plan.mechanism.sites if s.variance is not None}
    if not sizes or {name: len(found) for name, found in stated.items()} != sizes:
        return None
    return np.concatenate([stated[name] for name in sizes])


def strategy_variances(release: Release, shrink: Fraction = Fraction(1)) -> Array:
    """The variance of the noise on each strategy row (rows,), of all shares together; scales are divided."""
    variances = release.noise.times(1 / shrink).variances(release.strategy.nrows(), release.grid)
    return np.array([float(one * release.excess) for one in variances])


# --- privacy against loss -------------------------------------------------------------------------

FACTORS = tuple(Fraction(n, d) for n, d in ((1, 8), (1, 4), (1, 2), (3, 4), (1, 1), (3, 2), (2, 1), (4, 1), (8, 1)))


def _frontier(plan: Stated, claims: tuple[Claim, ...], noise: type[Law], release: Release | None) -> Frontier | None:
    """By exact scaling of this plan.

    Gaussian noise: the loss goes as 1/mu^2 when every mu is scaled together. Laplace and K-norm noise: as the
    variance at scales divided by the factor, 1/epsilon^2 away from the lattice.
    """
    law = _scaling(noise)
    if plan.loss is None or law is None or not claims or plan.mechanism.scalars:
        return None
    if len(claims) == 1:
        found = law(claims[0], release)
    elif law is _gaussian:
        axis = "factor on every guarantee at once (1 = this plan)"
        scales = [(f, 1 / float(f) ** 2) for f in FACTORS]
        found = axis, "the loss is inversely proportional to the square of the factor", Fraction(1), scales
    else:
        found = None
    if found is None:
        return None
    axis, words, chosen, values = found
    loss = plan.loss.value
    if _of_sizes(plan):
        words = _ROOTS[words]
        values = [(value, math.sqrt(scale)) for value, scale in values]
    points = (FrontierPoint(rounded(v, 4), rounded(loss * scale, LOSS_DIGITS), v == chosen) for v, scale in values)
    return Frontier(axis, words, tuple(points))


def _of_sizes(plan: Stated) -> bool:
    """Whether the loss adds up sizes of errors: it goes with deviations, and not with variances."""
    units = "" if plan.loss is None else plan.loss.units
    return units.startswith("units of ") and not units.endswith("the loss expression")


_BY = "the loss is inversely proportional to"
_WIDE = "while the noise is wide compared with its grid"
_ROOTS = {
    f"{_BY} {square}": f"{_BY} {root}"
    for square, root in (
        ("the square of the factor", "the factor"),
        ("μ(ε, δ) squared", "μ(ε, δ)"),
        ("mu squared", "mu"),
        ("rho", "the root of rho"),
        ("epsilon", "the root of epsilon"),
        (f"ε squared {_WIDE}", f"ε {_WIDE}"),
    )
}
"""How a loss of sizes depends on a parameter, by how one of squares does."""


Scaling: TypeAlias = tuple[str, str, Fraction, list[tuple[Fraction, float]]]
"""The name of the parameter, how the loss depends on it, its value in this plan, and factors of the loss by value."""


def _gaussian(claim: Claim, _release: Release | None) -> Scaling | None:
    if claim.epsilon and claim.delta:
        from privspec.kernel.gaussian import mu_down

        delta, chosen = claim.delta, claim.epsilon
        base = float(mu_down(chosen, delta))
        values = [(chosen * f, (base / float(mu_down(chosen * f, delta))) ** 2) for f in FACTORS]
        return f"ε, at δ = {exact(delta)}", "the loss is inversely proportional to μ(ε, δ) squared", chosen, values
    name, amount = claim.parameters[-1] if claim.parameters else ("", None)
    power = {"mu": 2, "rho": 1, "epsilon": 1}.get(name)
    if power is None or amount is None:
        return None
    chosen = Fraction(ungrouped(amount.text))
    words = f"the loss is inversely proportional to {name}{' squared' if power == 2 else ''}"
    return name, words, chosen, [(chosen * f, float(f) ** -power) for f in FACTORS]


def _pure(claim: Claim, release: Release | None) -> Scaling | None:
    asked = claim.achieved_parameter is not None and claim.achieved_parameter[0] == "ε"
    if release is None or not asked or claim.epsilon is None:
        return None
    matrix, chosen = as_floats(release.reconstruction), claim.epsilon

    def total(shrink: Fraction) -> float:
        """The variance of all outputs together with every scale of the noise divided by `shrink`."""
        return float(((matrix**2) @ strategy_variances(release, shrink)).sum())

    values = [(chosen * f, total(f) / total(Fraction(1))) for f in FACTORS]
    return (
        "ε",
        "the loss is inversely proportional to ε squared while the noise is wide compared with its grid",
        chosen,
        values,
    )


def _scaling(law: type[Law]) -> Callable[[Claim, Release | None], Scaling | None] | None:
    """How a loss goes with the guarantees, under noise of a law; None where that is not known."""
    if law.figures not in (("mu",), ("epsilon",)):
        return None
    return _gaussian if law.normal else _pure
