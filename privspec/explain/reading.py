"""Every number and every fact that an explanation may use, recomputed from the plan.

`facts` is the only place where numbers are made; the readers' pages put them into sentences and tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from privspec.explain.additive import additive_noise
from privspec.explain.claims import Claim, calibration, claim
from privspec.explain.context import Context, context
from privspec.explain.curves import (
    Consequences,
    CountedOdds,
    Curve,
    OddsFact,
    consequences,
    odds_fact,
    posterior,
)
from privspec.explain.document import Because, Judged, Note, Sentence, SpecLine, Status
from privspec.explain.exposures import Exposed, covering, exposed, stated_together
from privspec.explain.facts import (
    AccuracyFact,
    AlternativeFact,
    BindingFact,
    ClaimFact,
    ExposureFact,
    Facts,
    FairnessFact,
    InputFact,
    Judgement,
    LossFact,
    MechanismFact,
    OutputFact,
    SiteFact,
    SolverFact,
)
from privspec.explain.noise import Array, OutputNoise, Site, executed, frontier, output_noise, output_sizes, sites
from privspec.explain.quantities import (
    LOSS_DIGITS,
    Quantity,
    Rounding,
    count,
    exact,
    parse_exact,
    percent,
    rounded,
)
from privspec.explain.questions import Question
from privspec.explain.statistics import statistic_fact
from privspec.explain.system import system_fact
from privspec.explain.tables import table_fact
from privspec.explain.voting import lottery_fact
from privspec.explain.voting_rules import RULES
from privspec.model.observers import how_many, unit_of
from privspec.model.parameters import overrides, parameter_words
from privspec.problem.systems import System

if TYPE_CHECKING:
    from privspec.model.graph import Model


_READERS: Mapping[str, Callable[[Mapping[str, Any], Context], MechanismFact]] = {
    "table": table_fact,
    "statistic": statistic_fact,
    **dict.fromkeys(RULES, lottery_fact),
}


def mechanism_fact(
    plan: Mapping[str, Any], context: Context, model: Model | None = None, judgement: Judgement | None = None
) -> MechanismFact:
    """The mechanism of a plan; of a family that is not known, an object that says so.

    Raises: ValueError, KeyError if the mechanism is not of the form of its family.
    """
    family = str((plan.get("mechanism") or {}).get("family", ""))
    if family == System.FORM:
        return system_fact(plan, model, facts, judgement or Judgement())
    reader = _READERS.get(family)
    return additive_noise(plan) if reader is None else reader(plan, context)


REPEATS = (1, 2, 5, 10)
GROUPS = (1, 2, 5, 10)
PRIORS = (Fraction(1, 100), Fraction(10, 100), Fraction(50, 100))


def _is_number(model: Model, name: str) -> bool:
    return isinstance(model.parameters.get(name), Fraction)


def facts(plan: Mapping[str, Any], model: Model | None = None, judgement: Judgement | None = None) -> Facts:
    """Everything an explanation may say about a plan.

    Args: a plan of the form `privspec-plan/2.0`; its model where the caller has it; what the kernel derived again of
        it in this run, without which nothing is called proved.
    Raises: ValueError, KeyError if the plan is not of that form.
    """
    where = context(plan)
    spec = plan.get("spec") or {}
    run = executed(plan)
    outputs = output_noise(plan)
    mechanism = mechanism_fact(plan, where, model, judgement)
    judged = tuple(mechanism.judged(claim(g)) for g in plan.get("guarantees") or ())
    stated = tuple(item for item, _ in judged)
    claims = tuple(
        _claim_fact(item, question, mechanism, _everything(plan, item, stated, mechanism, model), model)
        for item, question in judged
    )
    shown = exposed(plan, stated, mechanism, model, where)
    loss = _loss_fact(plan, where, outputs) if plan.get("loss") else None
    return Facts(
        name=str(spec.get("name") or "plan"),
        title=where.title,
        digest=str(plan.get("digest", "")),
        spec_file=PurePath(str(spec.get("path") or f"{spec.get('name') or 'plan'}.priv")).name,
        spec_sha256=str(spec.get("sha256", "")),
        status=str(plan.get("status", "unknown")),
        family=mechanism.family,
        mechanism=mechanism,
        parameters=tuple((k, str(v)) for k, v in (spec.get("parameters") or {}).items()),
        parameter_words=tuple(
            (k, parameter_words(model.spec, k, model.parameters) if model and _is_number(model, k) else str(v))
            for k, v in (spec.get("parameters") or {}).items()
        ),
        overridden=() if model is None else overrides(model),
        context=where,
        claims=claims,
        exposures=tuple(_exposure(item, stated, mechanism, model) for item in shown),
        inputs=tuple(_input_fact(b, where) for b in run.get("inputs") or ()),
        outputs=tuple(_output_fact(o) for o in outputs),
        loss=loss,
        sites=tuple(_site_fact(s) for s in sites(plan, outputs)),
        noise_shape=_noise_shape(run.get("noise")),
        noise_grid=str(run.get("grid", "")),
        rounding=str(run.get("rounding", "strategy")),
        output_grid=str(run.get("output_grid", "")),
        strategy_shape=_shape(run.get("strategy")),
        alternatives=tuple(
            # a design that could not be calibrated has no loss
            _alternative(a, loss)
            for a in plan.get("alternatives") or ()
            if a.get("loss") is not None
        ),
        accuracy=_accuracy(plan.get("accuracy") or (), where),
        fairness=tuple(_fairness(f, where) for f in plan.get("fairness") or ()),
        binding=tuple(_binding(b, where, loss) for b in plan.get("remarks", {}).get("binding") or ()),
        assumptions=tuple(_assumption(a, where) for a in plan.get("assumptions") or ()),
        frontier=frontier(plan, tuple(c.claim for c in claims)),
        solver=_solver(plan.get("remarks", {}).get("solver") or {}),
        judgement=judgement or Judgement(),
        model=model,
        gaps=_gaps(mechanism, claims, model),
    )


def _noise_shape(noise: Any) -> str:
    """The one shape of the noise; "unknown" where each site has its own."""
    return str(noise.get("shape", "unknown")) if isinstance(noise, Mapping) else "unknown"


def _everything(
    plan: Mapping[str, Any], item: Claim, stated: Sequence[Claim], mechanism: MechanismFact, model: Model | None
) -> Curve | None:
    """The curve of one who sees all outputs, for the unit of a claim; None where it is not known."""
    known = covering(mechanism.released(), item, stated)
    exact = known or mechanism.seen(plan, mechanism.released(), item, unit_of(item, model), model)
    return exact or stated_together(plan, mechanism.released(), item)


def _exposure(item: Exposed, stated: Sequence[Claim], mechanism: MechanismFact, model: Model | None) -> ExposureFact:
    claim, question = mechanism.judged(item.claim)
    delta = min((c.delta for c in stated if c.delta), default=None)
    return ExposureFact(
        item.input,
        _claim_fact(claim, question, mechanism, item.curve, model),
        item.unprotected,
        "" if item.curve is None else item.curve.bound(delta),
    )


def _claim_fact(
    item: Claim, question: Question, mechanism: MechanismFact, everything: Curve | None, model: Model | None
) -> ClaimFact:
    curve = item.curve
    most = None if model is None else how_many(model, unit_of(item, model))
    pure = item.epsilon if item.delta == 0 else None
    return ClaimFact(
        claim=item,
        question=question,
        shown=None if curve is None else consequences(curve),
        promised=consequences(item.promised) if item.achieved and item.promised else None,
        repeats=tuple((count(k), odds_fact(curve.repeated(k))) for k in REPEATS) if curve else (),
        groups=tuple((count(k), odds_fact(curve.for_group(_steps(k, item)))) for k in _groups(most)) if curve else (),
        posteriors=()
        if pure is None or question.posterior_gap
        else tuple((percent(p), percent(posterior(float(p), float(pure)), 3, Rounding.UP)) for p in PRIORS),
        everything=None if everything is None else consequences(everything),
        everything_words="" if everything is None else everything.bound(item.delta),
        covers_everything=mechanism.released() <= set(item.outputs),
        calibration=calibration(item),
    )


def _groups(most: int | None) -> tuple[int, ...]:
    """How many units are shown to change together: none that do not exist."""
    return GROUPS if most is None else tuple(k for k in GROUPS if k <= most)


def _steps(units: int, item: Claim) -> int:
    """How many neighbour steps join data sets that differ in so many units."""
    return -(-units // item.relation.group)


def _input_fact(block: Mapping[str, Any], where: Context) -> InputFact:
    name = str(block["name"])
    size = count(int(block["stop"]) - int(block["start"]))
    limits = next((words(block) for key, words in _LIMITS.items() if block.get(key) is not None), "")
    cells = block.get("layout") == "cells"
    return InputFact(
        name=name,
        size=size,
        layout="counts of cells" if cells else "values",
        limits=limits or ("" if cells else "no limits"),
        clipped=bool(limits) and not cells,
        because=where.input_lines.get(name, where.trust_because),
    )


def _attributes(block: Mapping[str, Any]) -> str:
    return " × ".join(str(a["name"]) for a in block["attributes"])


def _ball(block: Mapping[str, Any]) -> str:
    ball = block["ball"]
    return f"in runs of {ball['size']} inside the l{ball['norm']} ball of radius {ball['radius']}"


def _interval(block: Mapping[str, Any]) -> str:
    low, high = _range(block.get("lower")), _range(block.get("upper"))
    return f"{low} to {high}" if low and high and (low, high) != ("0", "inf") else ""


_LIMITS = {"attributes": _attributes, "ball": _ball, "lower": _interval}
"""Words for the limits of an input, by the key of the plan that holds them; the first one present counts."""


def _range(values: Any) -> str:
    if not isinstance(values, list):
        return "" if values is None else str(values)
    distinct = sorted({str(v) for v in values}, key=parse_exact)
    return distinct[0] if len(distinct) == 1 else f"{distinct[0]}..{distinct[-1]}"


def _spread(deviations: Array) -> tuple[Quantity, Quantity, Quantity]:
    if deviations.size == 0:
        return rounded(0), rounded(0), rounded(0)
    rms = math.sqrt(float(np.mean(deviations**2)))
    return rounded(rms), rounded(float(deviations.min())), rounded(float(deviations.max()))


def _output_fact(output: OutputNoise) -> OutputFact:
    typical, least, largest = _spread(output.deviations)
    return OutputFact(
        output.name,
        output.shape,
        count(output.size),
        typical,
        least,
        largest,
        count(output.without_noise),
        tuple(float(d) for d in output.deviations),
    )


def _site_fact(site: Site) -> SiteFact:
    typical, least, largest = _spread(site.deviations)
    return SiteFact(
        site.at,
        site.law,
        site.correlated,
        count(site.size),
        typical,
        least,
        largest,
        tuple(float(d) for d in site.deviations),
    )


_OWN_UNITS = "units of the loss expression"
"""What a plan says of a loss whose units have no name; the expression stands beside the figure."""


def _loss_fact(plan: Mapping[str, Any], where: Context, outputs: tuple[OutputNoise, ...]) -> LossFact:
    loss = plan["loss"]
    value = float(loss["value"])
    bound, gap, spread = (loss.get(k) for k in ("lower_bound", "relative_gap", "standard_error"))
    variance, of = _variance_behind(value, str(loss.get("kind", "")), outputs)
    sizes = output_sizes(plan)
    if not outputs and list(sizes) == [where.squared_error_of]:
        # too many outputs for a covariance in the plan, but the loss is their plain sum of squared errors
        variance, of = value / sizes[where.squared_error_of], "an answer"
    units = str(loss.get("units", "")).removeprefix(_OWN_UNITS)
    return LossFact(
        value=rounded(value, LOSS_DIGITS),
        lower_bound=None if bound is None else rounded(float(bound), LOSS_DIGITS, Rounding.DOWN),
        gap=None if gap is None else _gap(max(Fraction(0), parse_exact(gap))),
        standard_error=None if spread is None else rounded(float(spread), 2, Rounding.UP),
        expression=str(loss.get("expression", "")),
        units=units,
        among=str(loss.get("among", "")),
        error=None if variance is None else rounded(math.sqrt(variance)),
        variance=None if variance is None else rounded(variance),
        error_of=of,
        error_units=units.removeprefix("squared ") if units.startswith("squared ") else "",
        worst=str(loss.get("kind", "")) == "worst",
    )


def _gap(gap: Fraction) -> Quantity:
    """Rounded up; as a percentage from a thousandth on."""
    return percent(gap, 2, Rounding.UP) if gap >= Fraction(1, 1000) else rounded(gap, 1, Rounding.UP)


def _variance_behind(value: float, kind: str, outputs: tuple[OutputNoise, ...]) -> tuple[float | None, str]:
    """The error variance behind the loss, if that is the sum, the mean or the largest of the outputs'."""
    if not outputs:
        return None, ""
    squares = np.concatenate([o.deviations for o in outputs]) ** 2
    total, largest = float(squares.sum()), float(squares.max())
    if kind == "worst":
        return (largest, "the worst answer") if math.isclose(value, largest, rel_tol=1e-6) else (None, "")
    mean = total / squares.size
    if any(math.isclose(value, known, rel_tol=1e-6) for known in (total, mean)):
        return mean, "an answer" if squares.size > 1 else "the answer"
    return None, ""


def _alternative(item: Mapping[str, Any], loss: LossFact | None) -> AlternativeFact:
    value = float(item["loss"])
    chosen = loss.value.value if loss else math.nan
    ratio = value / chosen if loss and chosen > 0 else math.nan
    error = None
    if loss is not None and loss.variance is not None and math.isfinite(ratio):
        error = rounded(math.sqrt(loss.variance.value * ratio))
    return AlternativeFact(
        str(item["name"]),
        rounded(value, LOSS_DIGITS),
        _times(ratio),
        error,
        bool(item.get("admissible", False)),
        str(item.get("reason", "")),
    )


def _accuracy(items: Sequence[Mapping[str, Any]], where: Context) -> tuple[AccuracyFact, ...]:
    """One fact for each accuracy line, taken at the instance that uses up most of its bound."""
    lines: dict[tuple[int, str], list[tuple[float, float]]] = {}
    for item in items:
        key = int(item.get("line") or 0), str(item.get("text", ""))
        lines.setdefault(key, []).append((float(item["value"]), float(item["bound"])))
    found = []
    for (number, text), values in lines.items():
        value, bound = max(values, key=lambda pair: _share(*pair))
        share = _share(value, bound)
        found.append(
            AccuracyFact(
                SpecLine(number, text or where.line(number).text),
                count(len(values)),
                rounded(bound, LOSS_DIGITS),
                rounded(value, LOSS_DIGITS),
                percent(share, 3),
            )
        )
    return tuple(found)


def _fairness(item: Mapping[str, Any], where: Context) -> FairnessFact:
    number = int(item.get("line") or 0)
    tolerance, achieved = parse_exact(item["tolerance"]), parse_exact(item["achieved"])
    return FairnessFact(
        SpecLine(number, str(item.get("text", "")) or where.line(number).text),
        exact(tolerance),
        rounded(achieved, 3, Rounding.UP),
        rounded(max(Fraction(0), tolerance - achieved), 3, Rounding.DOWN),
        achieved <= tolerance,
    )


def _share(value: float, bound: float) -> float:
    """The share of a bound that a value uses up."""
    return value / bound if bound > 0 else 1.0


def _times(ratio: float) -> Quantity:
    """A ratio of losses, with more digits where it would read 1."""
    short = rounded(ratio, 3)
    return rounded(ratio, LOSS_DIGITS) if short.text == "1" else short


def _binding(item: Mapping[str, Any], where: Context, loss: LossFact | None) -> BindingFact:
    change = float(item["loss_change"])
    squared = loss is not None and loss.units.startswith("squared ")
    return BindingFact(
        where.line(int(item.get("line") or 0)),
        str(item.get("change", "")),
        change <= 0,
        bool(item.get("first_order", False)),
        percent(abs(change)),
        percent(abs(1 - math.sqrt(1 + change))) if squared and change >= -1 else None,
    )


def _assumption(item: Any, where: Context) -> Sentence:
    if isinstance(item, str):
        return Sentence(item, Status.ASSUMED, (where.trust_because,))
    because = item.get("because") or {}
    listed = because if isinstance(because, list) else [because]
    return Sentence(
        str(item["text"]),
        Status(str(item.get("status", "assumed"))),
        tuple(_because(b, where) for b in listed),
    )


def _because(item: Any, where: Context) -> Because:
    if isinstance(item, Mapping) and "line" in item:
        return where.line(int(item["line"] or 0))
    if isinstance(item, Mapping) and "claim" in item:
        return Judged(str(item["claim"]))
    name = item.get("note", "placement") if isinstance(item, Mapping) else item
    return Note(str(name))


def _solver(item: Mapping[str, Any]) -> SolverFact:
    return SolverFact(
        str(item.get("name", "unknown")),
        count(int(item["iterations"])) if item.get("iterations") is not None else None,
        rounded(max(float(item["seconds"]), 0.01), 2) if item.get("seconds") is not None else None,
        tuple(sorted((str(k), str(v)) for k, v in (item.get("versions") or {}).items())),
    )


def _shape(matrix: Mapping[str, Any] | None) -> tuple[Quantity, Quantity] | None:
    if not matrix or "shape" not in matrix:
        return None
    rows, columns = matrix["shape"]
    return count(int(rows)), count(int(columns))


def _gaps(mechanism: MechanismFact, claims: tuple[ClaimFact, ...], model: Model | None) -> tuple[str, ...]:
    """What this plan holds that these pages cannot explain, in plain words."""
    found = list(mechanism.gaps())
    for fact in claims:
        if fact.shown is None:
            found.append(
                f"The guarantee {fact.claim.statement!r} is of a kind for which no odds can be given here; "
                "it is quoted as the plan states it."
            )
        elif model is None and fact.everything is None and not fact.covers_everything:
            found.append(
                f"What someone learns who sees every output, and not only {', '.join(fact.claim.outputs)}, "
                "could not be computed for this plan."
            )
    return tuple(found)


__all__ = [
    "AccuracyFact",
    "AlternativeFact",
    "BindingFact",
    "ClaimFact",
    "Consequences",
    "CountedOdds",
    "ExposureFact",
    "Facts",
    "LossFact",
    "OddsFact",
    "OutputFact",
    "SiteFact",
    "facts",
    "odds_fact",
]
