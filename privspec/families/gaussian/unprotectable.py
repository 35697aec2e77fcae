"""Options that leave a difference bare: which lines conflict, and what each single change would cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction

from privspec.core.spans import Span
from privspec.families.decision import ConflictLine, Infeasible, Relaxation, conflict_line
from privspec.families.gaussian.problem import Problem
from privspec.kernel.measures import PURE
from privspec.kernel.trust import CURATOR
from privspec.language import syntax
from privspec.model.graph import Model
from privspec.model.measures import MeasureAt
from privspec.model.requirements import TrustIn
from privspec.problem.linear import spacing_of
from privspec.solvers.programs import Unprotectable

RELAXED_DELTA = Fraction(1, 10**6)
"""The delta offered where pure epsilon rules Gaussian noise out."""


def explain_unprotectable(problem: Problem, bare: Unprotectable, names: tuple[str, ...]) -> Infeasible:
    """No noise at the listed nodes hides some difference from a view (exit 4)."""
    model, view = problem.model, problem.system.views[bare.view]
    listed = " and ".join(names)
    requirement = view.requirement
    return Infeasible(
        f"noise at {listed} cannot hide every change of {', '.join(requirement.wrt)} from "
        f"{', '.join(requirement.outputs)}: part of it reaches the output by another way",
        (*_option_lines(model, syntax.NoiseAt), conflict_line(model, requirement.span)),
        tuple(_more_sites(problem, names)),
    )


def _more_sites(problem: Problem, names: tuple[str, ...]) -> Iterator[Relaxation]:
    line = _first_line(problem.model, syntax.NoiseAt)
    for extra in problem.system.candidates:
        if extra not in names:
            loss = _loss_if(problem, noise_at=(*names, extra))
            if loss is not None:
                yield Relaxation(f"noise at {', '.join((*names, extra))}", line, loss)
    loss = _loss_if(problem, noise_at=None)
    if loss is not None:
        yield Relaxation("drop the line: noise anywhere at the curator", line, loss)


def local_conflict(problem: Problem, names: tuple[str, ...]) -> Infeasible:
    """`trust nobody` with noise asked for where no party could add it (exit 4)."""
    model = problem.model
    inputs = tuple(node.name for node in model.inputs)
    wrong = ", ".join(name for name in names if name not in inputs)
    relaxations = []
    for change, kind, options in (
        (f"trust {CURATOR.name}", syntax.Trust, {"trust": TrustIn(CURATOR)}),
        (f"noise at {', '.join(inputs)}", syntax.NoiseAt, {"noise_at": inputs}),
    ):
        loss = _loss_if(problem, **options)
        if loss is not None:
            relaxations.append(Relaxation(change, _first_line(model, kind), loss))
    return Infeasible(
        f"with `trust nobody` each party adds noise to its own values; nobody could add it at {wrong}",
        (*_option_lines(model, syntax.Trust), *_option_lines(model, syntax.NoiseAt)),
        tuple(relaxations),
    )


def family_conflict(problem: Problem) -> Infeasible:
    """Every noise family that the spec allows breaks a requirement, or is not for such inputs (exit 4)."""
    model = problem.model
    if "geometric" in model.families and None not in problem.epsilons:
        return _between_points(problem)
    bare = [r for r in model.requirements if r.measure.gaussian_mu_down() is None]
    lines = [conflict_line(model, r.span) for r in bare[:1] or model.requirements[:1]]
    relaxations = []
    loss = _loss_if(problem, families=(), family_spans=())
    if loss is not None:
        relaxations.append(Relaxation("drop the line: any noise family", _first_line(model, syntax.NoiseFamily), loss))
    for requirement in bare:
        if isinstance(requirement.measure, MeasureAt) and requirement.measure.of is PURE:
            weaker = requirement.measure.with_delta(RELAXED_DELTA)
            others = tuple(replace(r, measure=weaker) if r is requirement else r for r in model.requirements)
            loss = _loss_if(problem, requirements=others)
            if loss is not None:
                relaxations.append(Relaxation(f"accept {weaker.describe()}", requirement.line, loss))
    return Infeasible(
        f"noise of family {', '.join(model.families)} never satisfies this requirement",
        (*_option_lines(model, syntax.NoiseFamily), *lines),
        tuple(relaxations),
    )


def _between_points(problem: Problem) -> Infeasible:
    """Noise in whole steps of a lattice is asked for, and answers lie between its points."""
    model = problem.model
    anywhere = [model.nodes[block.name] for block in model.blocks if not block.whole and spacing_of(block) is None]
    names = " and ".join(node.name for node in anywhere) or "the answers"
    loss = _loss_if(problem, families=("laplace",), family_spans=model.family_spans[:1])
    relaxed = Relaxation("noise family laplace", _first_line(model, syntax.NoiseFamily), loss) if loss else None
    return Infeasible(
        f"geometric noise is a whole number of steps of a lattice, and values of {names} lie between its points",
        (*_option_lines(model, syntax.NoiseFamily), *(conflict_line(model, node.span) for node in anywhere)),
        (relaxed,) if relaxed else (),
    )


def _loss_if(problem: Problem, **changes: object) -> float | None:
    """The loss of the same spec with one thing changed; None if that does not help."""
    if problem.best_loss is None:
        return None
    return problem.best_loss(replace(problem.model, **changes), problem.settings)  # type: ignore[arg-type]


def _option_lines(model: Model, kind: type) -> Iterable[ConflictLine]:
    return [conflict_line(model, option.span) for option in model.spec.options if isinstance(option, kind)]


def _first_line(model: Model, kind: type) -> int | None:
    spans: list[Span] = [option.span for option in model.spec.options if isinstance(option, kind)]
    return model.source.position(spans[0].start)[0] if spans else None
