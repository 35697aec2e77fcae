"""Every number and every fact that an explanation may use, recomputed from the plan.

`facts` is the only place where numbers are made; the readers' pages put them into sentences and tables.

A guarantee speaks of the outputs that its line names. Guarantees of outputs that share noise do not add up (two outputs
with opposite noise reveal everything when averaged), so the kernel bounds what whoever sees some of the outputs sees of
the noise as executed. For each input and observer of whom no line names all that they see of it, the plan states that
bound, and the outputs that hide next to nothing of the input and that no line names for it: they are not protected.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from operator import attrgetter
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from privspec.explain.claims import Claim, Question, calibration, claim, relation
from privspec.explain.context import Context, Fitting, context, fitting
from privspec.explain.curves import Curve, EpsilonDeltaCurve, GaussianCurve, RenyiCurve, consequences, odds, posterior
from privspec.explain.designs import design_of
from privspec.explain.document import Because, Judged, Note, Sentence, SpecLine, Status, assumed
from privspec.explain.facts import (
    OWN_UNITS,
    AccuracyFact,
    AlternativeFact,
    BindingFact,
    ClaimFact,
    ExposureFact,
    Facts,
    FairnessFact,
    Judgement,
    LossFact,
    MechanismFact,
    SolverFact,
)
from privspec.explain.messages import say
from privspec.explain.quantities import (
    DOWN,
    LOSS_DIGITS,
    UP,
    count,
    exact,
    gap_words,
    known,
    percent,
    rounded,
    simulated,
    told,
)
from privspec.kernel.core.problem import View
from privspec.model.observers import how_many, unit_of, units
from privspec.model.parameters import overrides, parameter_words
from privspec.problem.designs import inside
from privspec.registry import block_of
from privspec.stated import Alternative, Line, Seen, Source, Stated

if TYPE_CHECKING:
    from privspec.language.syntax import Expr
    from privspec.model.graph import Model

_NOTHING = "nothing"
_READERS = {
    _NOTHING: ("additive", "additive_noise"),  # no mechanism satisfies the lines: there is no noise to read either
    "linear": ("additive", "additive_noise"),
    "priced": ("additive", "additive_noise"),
    "system": ("system", "system_fact"),
    "table": ("tables", "table_fact"),
    "chain": ("strategies", "sequence_fact"),
    "points": ("values", "PointFact.of"),
    "frequencies": ("values", "FrequencyFact.of"),
    "cells": ("values", "CellFact.of"),
    "means": ("values", "MeanFact.of"),
    "keys": ("values", "KeyFact.of"),
    "selection": ("values", "SelectionFact.of"),
    "marginals": ("strategies", "table_noise"),
    "stream": ("strategies", "stream_noise"),
    "statistics": ("strategies", "statistic_fact"),
    "votes": ("voting", "voting_fact"),
}
"""Who reads the mechanism of a plan, by the form of its problem: no form is read as another.

Named, not imported: only the pages at hand are loaded."""

REPEATS = GROUPS = (1, 2, 5, 10)
PRIORS = (Fraction(1, 100), Fraction(10, 100), Fraction(50, 100))


def facts(
    document: Mapping[str, Any],
    model: Model | None = None,
    judgement: Judgement | None = None,
    of_part: Expr | None = None,
) -> Facts:
    """Everything an explanation may say about a plan.

    Args: a plan of the form `privspec-plan/3.0`; its model where the caller has it; what the kernel derived again of
        it in this run, without which nothing is called proved; `of_part`, the loss of a part of a system.
    Raises: ValueError, TypeError, KeyError if the plan is not of that form.
    """
    design = design_of(document)
    document = inside(document)
    plan = Stated.of(document)
    spec, solver, where = plan.spec, plan.remarks.solver, context(plan, of_part, model)
    form = _NOTHING if plan.frame is None else block_of(document)["form"]
    module, name = _READERS[form]
    reader = attrgetter(name)(import_module(f"privspec.explain.{module}"))
    whole = (document, plan, model, facts, judgement)
    mechanism: MechanismFact = reader(*whole) if form == "system" else reader(plan, where)
    judged = [mechanism.judged(_drawn(claim(plan.seen(g)), mechanism, model)) for g in plan.guarantees]
    stated = tuple(item for item, _ in judged)
    claims = tuple(
        _claim_fact(item, question, mechanism, _everything(plan, item, stated, mechanism, model), model)
        for item, question in judged
    )
    loss = _loss_fact(plan, mechanism, where)
    delta = min((c.delta for c in stated if c.delta), default=None)
    exposures = []
    for entry, bare in _exposed(plan, stated, mechanism, model, where):
        words = "" if bare.curve is None else bare.curve.bound(delta)
        fact = _claim_fact(*mechanism.judged(bare), mechanism, bare.curve, model)
        exposures.append(ExposureFact(entry.input, fact, entry.not_protected, words))
    numbers = {k for k, v in model.parameters.items() if isinstance(v, Fraction)} if model is not None else set()
    return Facts(
        name=spec.name or "plan",
        title=where.title,
        digest=plan.digest,
        spec_file=PurePath(spec.path or f"{spec.name or 'plan'}.priv").name,
        spec_sha256=spec.sha256,
        status=plan.status,
        family=mechanism.family,
        mechanism=mechanism,
        parameters=tuple(spec.parameters.items()),
        parameter_words=tuple(
            (k, parameter_words(model.spec, k, model.parameters) if model is not None and k in numbers else v)
            for k, v in spec.parameters.items()
        ),
        overridden=() if model is None else overrides(model),
        context=where,
        claims=claims,
        exposures=tuple(exposures),
        loss=loss,
        # a design that could not be calibrated has no loss
        alternatives=tuple(_alternative(a, a.loss, loss) for a in plan.alternatives if a.loss is not None),
        accuracy=_accuracy(plan.accuracy, where),
        fairness=tuple(_fairness(line, where) for line in plan.fairness),
        binding=tuple(_binding(line, where, loss) for line in plan.remarks.binding),
        assumptions=tuple(
            Sentence(a.text, Status(a.status), tuple(_because(b, where) for b in a.because)) for a in plan.assumptions
        ),
        frontier=mechanism.frontier(plan, stated),
        computed_errors=tuple(
            (
                one.name,
                simulated(min(one.errors or (one.error,)), one.draws),
                simulated(max(one.errors or (one.error,)), one.draws),
                one.at,
            )
            for one in plan.remarks.computed
        ),
        solver=SolverFact(
            solver.name,
            None if solver.seconds is None else rounded(max(solver.seconds, 0.01), 2),
            tuple(sorted(solver.versions.items())),
        ),
        judgement=judgement or Judgement(),
        gaps=tuple(_gaps(mechanism, claims, model, where)),
        fitting=Fitting() if plan.frame is None else fitting(document["problem"], model, where),
        model=model,
        design=design,
    )


def _drawn(item: Claim, mechanism: MechanismFact, model: Model | None) -> Claim:
    """A claim without the curve of what is drawn, with that curve where it is known; distances have one each."""
    rough = item.curve is None or isinstance(item.curve, RenyiCurve)
    if not rough or item.by_distance or item.per_distance is not None:
        return item
    drawn = mechanism.seen(frozenset(item.outputs), item, model, unit_of(item, model))
    return item if drawn is None else replace(item, achieved=drawn)


def _claim_fact(
    item: Claim, question: Question, mechanism: MechanismFact, together: Curve | None, model: Model | None
) -> ClaimFact:
    curve, group = item.curve, item.relation.group
    most = None if model is None else how_many(model, unit_of(item, model))
    pure = item.epsilon if item.delta == 0 and not question.unprotected else None
    # groups of units that do not exist are not shown; data sets apart by k units are so many neighbour steps apart
    groups = [k for k in GROUPS if most is None or k <= most]
    repeated = None if item.conditional else curve
    return ClaimFact(
        claim=item,
        question=question,
        shown=None if curve is None else consequences(curve),
        promised=consequences(item.promised) if item.achieved and item.promised else None,
        repeats=tuple((count(k), odds(repeated.repeated(k))) for k in REPEATS) if repeated else (),
        groups=tuple((count(k), odds(repeated.for_group(-(-k // group)))) for k in groups) if repeated else (),
        posteriors=()
        if pure is None
        else tuple((percent(p), percent(posterior(float(p), float(pure)), 3, UP)) for p in PRIORS),
        everything=None if together is None else consequences(together),
        everything_words="" if together is None else together.bound(item.delta),
        covers_everything=mechanism.released <= set(item.outputs),
        calibration=calibration(item),
    )


def _loss_fact(plan: Stated, mechanism: MechanismFact, where: Context) -> LossFact | None:
    loss = plan.loss
    if loss is None:
        return None
    variance, of = mechanism.variance_behind(plan, where)
    return LossFact(
        value=told(loss.value, loss.standard_error),
        lower_bound=known(loss.lower_bound, LOSS_DIGITS, DOWN),
        gap=gap_words(loss.relative_gap),
        standard_error=known(loss.standard_error, 2, UP),
        expression=loss.expression,
        units=loss.units.removeprefix(OWN_UNITS),
        among=loss.among,
        error=None if variance is None else rounded(math.sqrt(variance)),
        variance=known(variance),
        error_of=of,
        worst=loss.kind == "worst",
    )


def _alternative(item: Alternative, value: float, loss: LossFact | None) -> AlternativeFact:
    chosen = loss.value.value if loss else math.nan
    ratio = value / chosen if chosen > 0 else math.nan
    error = None
    if loss is not None and loss.variance is not None and math.isfinite(ratio):
        error = rounded(math.sqrt(loss.variance.value * ratio))
    times = rounded(ratio, 3)
    if times.text == "1":  # more digits where it would read 1
        times = rounded(ratio, LOSS_DIGITS)
    return AlternativeFact(item.name, told(value, item.standard_error), times, error, item.admissible, item.reason)


def _accuracy(items: tuple[Line, ...], where: Context) -> tuple[AccuracyFact, ...]:
    """One fact for each accuracy line, taken at the instance that uses up most of its bound."""
    lines: dict[SpecLine, list[tuple[float, Line]]] = {}
    for item in items:
        used = item.value / item.bound if item.bound > 0 else 1.0
        lines.setdefault(_line(item, where), []).append((used, item))
    found = []
    for line, instances in lines.items():
        used, item = max(instances, key=lambda pair: pair[0])
        asked, expected = (rounded(figure, LOSS_DIGITS) for figure in (item.bound, item.value))
        found.append(AccuracyFact(line, count(len(instances)), asked, expected, percent(used, 3)))
    return tuple(found)


def _line(item: Line, where: Context) -> SpecLine:
    return SpecLine(item.line, item.text or where.line(item.line).text)


def _fairness(item: Line, where: Context) -> FairnessFact:
    left = rounded(max(Fraction(0), item.tolerance - item.achieved), 3, DOWN)
    reached = rounded(item.achieved, 3, UP)
    return FairnessFact(_line(item, where), exact(item.tolerance), reached, left, item.achieved <= item.tolerance)


def _binding(item: Line, where: Context, loss: LossFact | None) -> BindingFact:
    change, error = item.loss_change, None
    if loss is not None and loss.squared and change >= -1:
        error = percent(abs(1 - math.sqrt(1 + change)))
    line = where.line(item.line)
    return BindingFact(line, item.change, change <= 0, item.first_order, percent(abs(change)), error)


def _because(item: Source, where: Context) -> Because:
    if item.line is not None:
        return where.line(item.line)
    return Judged(item.claim) if item.claim is not None else Note(item.note)


def _gaps(
    mechanism: MechanismFact, claims: tuple[ClaimFact, ...], model: Model | None, where: Context
) -> Iterator[Sentence]:
    """What this plan holds that these pages cannot explain."""
    for text in mechanism.gaps:
        yield assumed(text, where.trust_because)
    for fact in claims:
        if fact.shown is None:
            yield say("shared.gaps.no_odds", fact, context=where)
        elif model is None and fact.everything is None and not fact.covers_everything:
            yield say("shared.gaps.together", fact, context=where)


# --- what no line bounds --------------------------------------------------------------------------


def _everything(
    plan: Stated, claim: Claim, stated: Sequence[Claim], mechanism: MechanismFact, model: Model | None
) -> Curve | None:
    """The curve of one who sees all outputs, for the unit of a claim; None where it is not known.

    That of a line for the same unit that names every output, the exact one of a table, or else the weakest of the
    bounds that the plan states for the inputs of the claim.
    """
    released = mechanism.released
    for other in (claim, *stated):
        same = other.wrt == claim.wrt and other.relation == claim.relation
        if same and released <= set(other.outputs) and other.curve is not None:
            return other.curve
    if (exactly := mechanism.seen(released, claim, model, unit_of(claim, model))) is not None:
        return exactly
    found = {
        entry.input: _bound(entry)
        for entry in plan.exposures
        if entry.neighbours == claim.relation.text and released <= set(entry.outputs)
    }
    curves = [curve for name in claim.wrt if (curve := found.get(name)) is not None]
    return min(curves, key=lambda curve: curve.equal_error()) if len(curves) == len(claim.wrt) else None


_NOT_WORSE = 1e-6
"""By so much of itself a share of mistakes may be below that of a line that names all there is, by rounding."""


def _exposed(
    plan: Stated, stated: Sequence[Claim], mechanism: MechanismFact, model: Model | None, where: Context
) -> Iterator[tuple[Seen, Claim]]:
    """What the plan states of views that no line covers, and the kernel derived, as claims that no line makes.

    Those are left out where lines that name all that depends on the input say no less. Of a table the exact curve is
    shown, which is within the bound.
    """
    # a part of a system states nothing of its views, which are those of the whole
    for entry, view in zip(plan.exposures, () if plan.frame is None else plan.frame.views, strict=False):
        claim = _template(entry, stated, where)
        curve = _exactly(claim, entry, mechanism, model) or _bound(entry)
        if not _said(curve, [c.curve for c in stated if c.requirement in view.lines], view):
            yield entry, replace(claim, achieved=curve)


def _bound(entry: Seen) -> Curve | None:
    if entry.bound is None:
        return None
    amounts = {key: float(value) for key, value in entry.bound.items()}
    return GaussianCurve(amounts["mu"]) if "mu" in amounts else EpsilonDeltaCurve(amounts["epsilon"], amounts["delta"])


def _exactly(claim: Claim, entry: Seen, mechanism: MechanismFact, model: Model | None) -> Curve | None:
    """The exact curve of the laws of a table."""
    if mechanism.family != "table" or model is None:
        return None
    known = (unit for unit in units(model, entry.input) if unit.relation.describe() == entry.neighbours)
    unit = next((unit for unit in known if unit.wrt == entry.wrt), None)
    return mechanism.seen(frozenset(claim.outputs), claim, model, unit)


def _said(curve: Curve | None, joined: Sequence[Curve | None], view: View) -> bool:
    """Whether lines that name all that depends on an input say no less than is true of all that is seen."""
    if view.lines:
        best = max((known.equal_error() for known in joined if known is not None), default=None)
        return best is None or curve is None or curve.equal_error() >= best * (1 - _NOT_WORSE)
    return not view.unnamed and curve is not None and curve.equal_error() >= (1 - _NOT_WORSE) / 2


def _template(entry: Seen, stated: Sequence[Claim], where: Context) -> Claim:
    """A claim about what an observer sees that says nothing yet; of two values nearby any two remain."""
    moved = relation(entry.neighbours)
    bare = Claim(entry.outputs, entry.wrt, moved, entry.observer, where.line_of(entry.input))
    like = next((line for line in stated if entry.input in line.wrt and line.relation.text == moved.text), None)
    if like is None:
        return replace(bare, local=where.alone)
    local = like.local or like.by_distance
    kept = replace(bare, relation=like.relation, line=like.line, notes=like.notes, delta=like.delta)
    return replace(kept, requirement=like.requirement, local=local)
