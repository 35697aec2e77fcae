"""Coverage and privacy: the guarantees are those of the spec, and the exact strategy and noise keep them.

Outputs are functions of `z = B u + noise`, so a guarantee holds if the noise hides `B d` for every
difference d of neighbours: nothing about the reconstruction matters beyond which rows of z it uses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privspec.certify.exact import Integers, sqrt_up
from privspec.certify.measures import Finding, gaussian_proves, pure_proves
from privspec.certify.neighbourhoods import LaplaceCost, Neighbourhood, Quadratic, StrategyForm
from privspec.certify.projection import projected_form
from privspec.certify.reading import Gaussian, Guarantee, KNorm, Laplace, Malformed
from privspec.certify.relations import base_domain, exposed, neighbourhoods
from privspec.certify.report import Claim
from privspec.certify.subject import Subject
from privspec.model.domains import Ball, L1Ball, Table
from privspec.model.measures import Measure
from privspec.model.requirements import Curator, Nobody, Requirement
from privspec.model.values import show

FAMILIES = {Gaussian: "gaussian", Laplace: "laplace", KNorm: "mixed"}
"""What a plan calls its family."""
NOISE_FAMILIES = {Gaussian: ("gaussian",), Laplace: ("laplace", "geometric"), KNorm: ("knorm",)}
"""Words of `noise family` that allow a noise."""


def with_figures(measure: Measure, figures: Mapping[str, Fraction | None]) -> Measure:
    """The same measure with other amounts."""
    if not is_dataclass(measure):
        return measure
    known = {field.name for field in fields(measure)}
    return replace(measure, **{key: value for key, value in figures.items() if key in known and value is not None})


def claim(name: str, finding: Finding) -> Claim:
    """A finding as a claim."""
    return Claim(name, "ok" if finding.holds else "failed", finding.text, finding.margin if finding.holds else None)


# --- coverage ----------------------------------------------------------------------------------------


def coverage(subject: Subject) -> Iterator[Claim]:
    """Inputs, outputs and guarantees of the plan are those of the spec, one for one."""
    wrong = [*_layout(subject), *_trust(subject), *_unanswered(subject)]
    listed = [g.requirement for g in subject.guarantees]
    if sorted(listed) != list(range(len(subject.requirements))):
        wrong.append("the guarantees of the plan are not the requirements of the spec, one for one")
    else:
        wrong.extend(w for g in subject.guarantees for w in mismatches(g, subject.requirements[g.requirement]))
    seen = [set(view.outputs) for view in subject.executed.views]
    if seen != [set(r.outputs) for r in subject.requirements]:
        wrong.append("the plan does not list one view for each requirement")
    for text in wrong:
        yield Claim("coverage", "failed", text)
    if not wrong:
        count = len(listed)
        what = "requirement of the spec has its" if count == 1 else "requirements of the spec have their"
        yield Claim("coverage", "ok", f"{count} {what} guarantee, with the same figures")


def _layout(subject: Subject) -> Iterator[str]:
    model, executed = subject.model, subject.executed
    if subject.names != tuple(node.name for node in model.outputs):
        yield "the plan releases other outputs than the spec names"
        return
    for output in executed.outputs:
        if output.shape != subject.system.node_shape(output.name):
            yield f"{output.name} has another shape in the spec"
    if len(executed.inputs) != len(model.blocks):
        yield "the plan reads other inputs than the spec names"
    for data, block in zip(executed.inputs, model.blocks, strict=False):
        low, high = block.domain.bounds
        place = (block.name, block.start, block.stop, block.layout)
        if (data.name, data.start, data.stop, data.layout) != place:
            yield f"{data.name} stands elsewhere in the spec"
        elif not (set(data.lower) <= {low} and set(data.upper) <= {high}):
            yield f"{data.name} is not clipped to the domain that the spec declares"
        base = base_domain(block.domain)
        ball = (base.radius, base.dimension, 1 if isinstance(base, L1Ball) else 2) if isinstance(base, Ball) else None
        if isinstance(base, Table) and data.attributes != _columns(base):
            yield f"records of {data.name} are counted into other cells than the spec declares"
        if data.records != (base.records if isinstance(base, Table) else None):
            yield f"{data.name} has another number of records in the spec"
        if data.ball != ball:
            yield f"{data.name} is not kept inside its ball"


def _unanswered(subject: Subject) -> Iterator[str]:
    """Lines of the spec that no plan of additive noise answers, and a noise that its options rule out."""
    model = subject.model
    for line in (*model.fairness, *model.constraints):
        yield f"line {line.line} asks for what such a plan does not answer: {line.text}"
    if model.components or model.asserted:
        yield "the spec rests on components, or on functions that nobody can see into"
    known = NOISE_FAMILIES[type(subject.executed.noise)]
    if model.families and not set(known) & set(model.families):
        yield f"the spec does not allow noise of the family {' or '.join(known)}"


def _columns(table: Table) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Names and values of the columns as the plan writes them."""
    return tuple((name, tuple(show(item) for item in domain.elements())) for name, domain in table.attributes)


def _trust(subject: Subject) -> Iterator[str]:
    trust = subject.model.trust
    if isinstance(trust, Curator):
        return
    if not isinstance(trust, Nobody):
        yield f"trust {trust.name} is not covered by this checker"
    elif not subject.executed.of_inputs:
        yield "with trust nobody, outputs are computed from messages that everybody sees"
    elif np.any(np.count_nonzero(subject.executed.strategy.integers, axis=1) > 1):
        yield "with trust nobody, every message must depend on one number of one party only"


def mismatches(guarantee: Guarantee, requirement: Requirement) -> Iterator[str]:
    """What a guarantee says otherwise than the requirement it is for."""
    amounts, figures = requirement.measure.amounts, guarantee.figures
    pairs = (
        ("outputs", set(guarantee.outputs), set(requirement.outputs)),
        ("inputs", set(guarantee.wrt), set(requirement.wrt)),
        ("neighbours", guarantee.neighbours, requirement.neighbours.describe()),
        ("observer", guarantee.observer, " and ".join(requirement.observers)),
        ("measure", guarantee.measure, requirement.measure.name),
        ("line", guarantee.line, requirement.line),
        ("text", guarantee.text, requirement.text),
    )
    for what, said, required in pairs:
        if said != required:
            yield f"{guarantee.place}: {what} not as on line {requirement.line}"
    if set(figures) != set(amounts) or any(not _as_strong(figures[key], amounts[key]) for key in amounts):
        yield f"{guarantee.place}: the figures are not those of line {requirement.line}"


def _as_strong(said: Fraction, required: Fraction) -> bool:
    """Equal; a JSON number may fall short of a fraction by its last digit, never exceed it."""
    return said == required or 0 <= required - said <= required / 10**15


# --- privacy -----------------------------------------------------------------------------------------


def privacy(subject: Subject) -> Iterator[Claim]:
    """Each guarantee from the exact strategy and the law of the noise."""
    expected = FAMILIES[type(subject.executed.noise)]
    if subject.plan["mechanism"]["family"].text() != expected:
        yield Claim("privacy", "failed", f"the noise that is executed is not of the family the plan names: {expected}")
    for guarantee in subject.guarantees:
        yield from _guarantee(subject, guarantee, subject.requirements[guarantee.requirement])


def _guarantee(subject: Subject, guarantee: Guarantee, requirement: Requirement) -> Iterator[Claim]:
    executed = subject.executed
    sets = neighbourhoods(subject.model, requirement)
    rows = executed.strategy.shape[0] if executed.of_inputs else executed.views[guarantee.requirement].rows
    if not 0 <= rows <= executed.strategy.shape[0]:
        raise Malformed(f"{guarantee.place}: a view has {rows} strategy rows")
    if executed.of_inputs and executed.views[guarantee.requirement].rows != rows:
        raise Malformed(f"{guarantee.place}: outputs that are computed from noisy inputs use all strategy rows")
    seen = executed.rows_of(exposed(subject.model, requirement))
    used = np.ones(executed.strategy.shape[0], dtype=bool)
    if not executed.of_inputs and not isinstance(subject.model.trust, Nobody):
        used = np.any(executed.reconstruction.integers[seen] != 0, axis=0)
    projected = executed.round_outputs and len(seen) < executed.size and not isinstance(subject.model.trust, Nobody)
    if np.any(used[rows:]) and not projected:
        raise Malformed(f"{', '.join(requirement.outputs)}: more strategy rows are used than the plan says")
    measure = with_figures(requirement.measure, dict(guarantee.figures))
    head = f"{', '.join(requirement.outputs)}, {requirement.neighbours.describe()}: "
    tail = "" if all(s.exact for s in sets) else " (a bound)"
    noise = executed.noise
    if isinstance(noise, Laplace | KNorm):
        epsilon = max(_pure_epsilon(subject, noise, used, s, guarantee) for s in sets)
        yield from _pure(guarantee, measure, epsilon, head, tail)
    elif isinstance(noise, Gaussian):
        unit = executed.strategy.unit / noise.standard_deviation
        form: Quadratic = StrategyForm(executed.strategy.integers[:rows], unit * unit)
        if projected:
            form = projected_form(executed.strategy, executed.reconstruction, seen, noise.standard_deviation)
        square = max(s.reach(form) for s in sets)
        yield from _gaussian(guarantee, measure, square, head, tail)


def _gaussian(guarantee: Guarantee, measure: Measure, square: Fraction, head: str, tail: str) -> Iterator[Claim]:
    mu = guarantee.achieved.get("mu")
    if mu is None or mu < 0 or set(guarantee.achieved) != {"mu"}:
        raise Malformed(f"{guarantee.place}.achieved does not give mu")
    holds = square <= mu * mu
    text = f"{head}max ‖B d‖² = {float(square):.8g}{tail} {'≤' if holds else '>'} μ² = {float(mu * mu):.8g}"
    yield claim("privacy", Finding(holds, text, float(1 - square / (mu * mu)) if mu else None))
    yield claim("epsilon" if "epsilon" in measure.amounts else "figure", gaussian_proves(measure, mu))


def _pure(guarantee: Guarantee, measure: Measure, epsilon: Fraction, head: str, tail: str) -> Iterator[Claim]:
    said = guarantee.achieved.get("epsilon")
    if said is None or set(guarantee.achieved) != {"epsilon"}:
        raise Malformed(f"{guarantee.place}.achieved does not give epsilon")
    holds = epsilon <= said
    text = f"{head}largest log-ratio {float(epsilon):.8g}{tail} {'≤' if holds else '>'} {float(said):.8g}"
    yield claim("privacy", Finding(holds, text, float(1 - epsilon / said) if said else None))
    yield claim("epsilon" if "epsilon" in measure.amounts else "figure", pure_proves(measure, said))


def _pure_epsilon(
    subject: Subject, noise: Laplace | KNorm, used: NDArray[np.bool_], differences: Neighbourhood, guarantee: Guarantee
) -> Fraction:
    """The pure epsilon of the executed release under one set of differences, not below the truth.

    Of Laplace noise, which is independent, an observer sees only the answers that its outputs are made of.
    """
    executed = subject.executed
    if isinstance(noise, Laplace):
        integers = np.ascontiguousarray(executed.strategy.integers[used])
        scales = tuple(scale for scale, seen in zip(noise.scales, used, strict=True) if seen)
        rounded = _off_lattice(subject, integers)
        cost = LaplaceCost(integers, executed.strategy.unit, scales, executed.grid, rounded)
        return differences.cost(cost)
    square = differences.reach(StrategyForm(executed.strategy.integers, executed.strategy.unit**2))
    rounded = _off_lattice(subject, executed.strategy.integers)
    step = executed.grid * sqrt_up(Fraction(int(rounded.sum()))) if np.any(rounded) else Fraction(0)
    said = guarantee.achieved.get("epsilon", Fraction(0))
    room = said * noise.scale - step
    if room >= 0 and room * room >= square:
        # squares compare exactly where the root would have to be rounded up
        return min(said, (sqrt_up(square) + step) / noise.scale)
    return (sqrt_up(square) + step) / noise.scale


def _off_lattice(subject: Subject, integers: Integers) -> Integers:
    """Rows (k,) whose exact answers may lie between the points of the lattice: 1, else 0."""
    unit, off = subject.executed.strategy.unit, np.zeros(len(integers), dtype=np.int64)
    for index, data in enumerate(subject.executed.inputs):
        steps = {unit}
        if data.ball is not None:
            steps = {unit * data.grid * data.ball[0]}  # `run` places balls on shares of their radius, around zero
        elif data.layout == "entries":
            steps = {unit * data.grid * subject.width(index), unit * (data.lower[0] or 0)}
        for step in steps:
            whole = (step / subject.executed.grid).denominator
            off |= np.any(integers[:, data.start : data.stop] % min(whole, 2**62) != 0, axis=1)
    return off
