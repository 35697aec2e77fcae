"""From the graph of a finite spec to its program in exact numbers."""

from __future__ import annotations

from collections.abc import Iterator

from privspec.compile.finite.conditions import Conditions
from privspec.compile.finite.debiased import chosen_in_loss, constant_beside, debiased
from privspec.compile.finite.fairness import gaps
from privspec.compile.finite.losses import losses, no_losses
from privspec.compile.finite.system import FiniteSystem, LinearLine, Requested, Scalar
from privspec.core.diagnostics import Diagnostic, Label, SpecError
from privspec.core.spans import Span
from privspec.model.graph import Model
from privspec.model.measures import MetricDP
from privspec.model.reports import Failure
from privspec.model.requirements import Requirement
from privspec.model.trust import Curator, Nobody
from privspec.model.values import show
from privspec.model.worlds import Worlds, inputs_compared, worlds

LARGEST_EPSILON = 30
"""Ratios beyond e^30 leave nothing for double precision to tell apart."""


def lower(model: Model, *, priced: bool = True) -> FiniteSystem:
    """The program of a finite spec; without its loss where it is not `priced`.

    Raises: SpecError PS05xx with a construct that cannot be computed yet, PS04xx for an average without a data model.
    """
    try:
        return _lower(model, priced)
    except Failure as failure:
        label = Label(failure.span, failure.label)
        raise SpecError(
            Diagnostic(failure.code, failure.message, (label,), help=failure.help, source=model.source)
        ) from failure


def _lower(model: Model, priced: bool) -> FiniteSystem:
    _refuse_unsupported(model)
    if model.loss is None:
        raise Failure("PS0504", model.spec.span, "there is no loss to minimise", help="add a loss: section")
    space = worlds(model)
    scene = space.pointwise()
    conditions = Conditions(space, scene)
    lines: list[LinearLine] = []
    scalars: list[Scalar] = []
    for constraint in model.constraints:
        lines += conditions.constraint(constraint)
    estimates = debiased(conditions) if priced and chosen_in_loss(model) else None
    if estimates is not None:
        found = no_losses(constant_beside(space))
    else:
        found = losses(space, scene) if priced else no_losses()
    further = (
        *(item for target in model.accuracy for item in conditions.accuracy(target)),
        *conditions.choices(found.prices),
        *(item for gap in gaps(space, scene) for item in gap.rows()),
    )
    for item in further:
        lines += [item] if isinstance(item, LinearLine) else []
        scalars += [item] if isinstance(item, Scalar) else []
    laws = {law: _labels(model, law) for law in conditions.weights}
    return FiniteSystem(
        space,
        found.expected,
        found.worst,
        found.offset,
        tuple(_requested(space)),
        tuple(lines),
        tuple(scalars),
        estimates,
        laws,
        found.apart,
    )


def _labels(model: Model, law: str) -> tuple[str, ...]:
    domain = model.nodes[law].domain
    over = getattr(domain, "over", None)
    return tuple(show(value) for value in over.elements()) if over is not None else ()


def _requested(space: Worlds) -> Iterator[Requested]:
    for index, requirement in enumerate(space.model.requirements):
        neighbours, view = space.neighbours(requirement), space.view(space.model.exposed(requirement))
        nearest = min((d for d in neighbours.distances or () if d), default=None)
        if nearest is not None and requirement.measure.amounts["epsilon"] * nearest > LARGEST_EPSILON:
            raise Failure("PS0501", requirement.span, f"solve cannot compute {_as_weak(requirement)} yet")
        yield Requested(index, requirement, neighbours, view, inputs_compared(space.model, requirement))


def _refuse_unsupported(model: Model) -> None:
    """Constructs that tables do not know yet.

    Raises: SpecError with one PS0501 for each.
    """
    found = [
        Diagnostic("PS0501", f"solve cannot compute {what} yet", (Label(span),), help=help_, source=model.source)
        for span, what, help_ in _unsupported(model)
    ]
    if found:
        raise SpecError(found)


def _unsupported(model: Model) -> Iterator[tuple[Span, str, str | None]]:
    for component in model.components:
        yield component.span, "whole systems of components", None
    for claim in model.asserted:
        yield claim.claim.span, "with functions it cannot see into", None
    if not isinstance(model.trust, Curator | Nobody):
        yield getattr(model.trust, "span", None) or model.spec.span, f"`trust {model.trust.name}`", None
    if isinstance(model.trust, Nobody) and model.parties:
        party = next(iter(model.parties.values()))
        yield party.span, "tables at each party", "write the spec of one party's report"
    for name, span in zip(model.families, model.family_spans, strict=True):
        if name != "table":
            yield span, f"the noise family {name} on finite domains", "tables can be computed: noise family table"
    if model.noise_at is not None:
        for span in model.noise_at_spans:
            yield span, "places for noise on finite domains", "the table says how outputs are drawn: leave the line out"
    read = {requirement.line for requirement in model.requirements}
    for written in model.spec.privacy:
        if model.source.position(written.span.start)[0] not in read:
            yield written.span, "this requirement: its amounts have no value", None
    for requirement in model.requirements:
        epsilon = requirement.measure.amounts.get("epsilon")
        if epsilon is not None and epsilon > LARGEST_EPSILON and not isinstance(requirement.measure, MetricDP):
            yield requirement.span, _as_weak(requirement), None


def _as_weak(requirement: Requirement) -> str:
    return f"requirements as weak as {requirement.measure.describe()}"
