"""Losses of debiased estimators: which part of a spec is Ramon & Basu 2020, section 3.3, with alpha left to the solver.

With conditions E[g_k(z) | x] = alpha t_k(x) + s_k, where alpha and the background moments s_k are chosen, the value
(g_k(z) - s_k) / alpha is an unbiased estimate of t_k(x). A loss that is a sum of weighted squared errors of such
estimates is not linear in (table, alpha, s): `solvers.table_search` finds its optimum.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np

from privspec.compile.finite.conditions import Affine, Conditions
from privspec.compile.finite.system import Costs, Debiased, Moment
from privspec.core.spans import Span
from privspec.language import syntax
from privspec.language.syntax import VariableKind
from privspec.model.domains import Law
from privspec.model.graph import Model
from privspec.model.reports import Failure
from privspec.model.requirements import MechanismConstraint
from privspec.model.values import Symbol, show
from privspec.model.walk import names_used, walk
from privspec.model.worlds import Worlds
from privspec.problem.terms import Chosen, Term, public_number, terms

_ALPHAS = (Fraction(3, 7), Fraction(5, 11), Fraction(13, 17))
"""Trial values: rational functions that agree at so many scattered points are taken to be equal."""


def chosen_in_loss(model: Model) -> tuple[str, ...]:
    """The `choose` variables that some average or worst case of the loss depends on."""
    if model.loss is None:
        return ()
    waiting = [name for node in _overs(model.loss) for name in names_used(node)]
    found: set[str] = set()
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        node = model.nodes.get(name)
        if node is None or name in seen:
            continue
        seen.add(name)
        if node.kind is VariableKind.CHOOSE:
            found.add(name)
        if node.definition is not None:
            waiting += names_used(node.definition)
    return tuple(node.name for node in model.choices if node.name in found)


def _overs(expr: syntax.Node) -> Iterator[syntax.Over]:
    return (node for node in walk(expr) if isinstance(node, syntax.Over))


def debiased(conditions: Conditions) -> Debiased:
    """The debiased estimators of a spec whose loss depends on what is chosen.

    Raises: Failure PS0502 if it is of another form.
    """
    model = conditions.worlds.model
    assert model.loss is not None
    numbers = [c for c in model.choices if not isinstance(c.domain, Law)]
    laws = [c for c in model.choices if isinstance(c.domain, Law)]
    if len(numbers) != 1 or len(laws) > 1 or not model.constraints:
        raise _other_form(model.loss.span)
    alpha = numbers[0]
    low, high = alpha.domain.bounds if alpha.domain is not None else (None, None)
    if low is None or high is None or low < 0 or high > 1:
        raise Failure("PS0502", alpha.span, f"solve takes {alpha.name} between 0 and 1", help=f"{alpha.name} in (0, 1]")
    law = laws[0].name if laws else None
    moments = [_moment(conditions, constraint, alpha.name) for constraint in model.constraints]
    for weight, error in _squares(conditions.worlds):
        k = _matching(error, moments, conditions.worlds, alpha.name, law)
        if k is None:
            raise _other_form(error.span)
        moments[k] = replace(moments[k], weight=moments[k].weight + weight)
    weighted = law is not None and conditions.weights.get(law) is not None
    return Debiased(alpha.name, low, high, law, weighted, tuple(moments))


def _other_form(span: Span) -> Failure:
    return Failure(
        "PS0502",
        span,
        "this loss depends on what is chosen, and is no squared error of an estimate that conditions make unbiased",
        help="E[z | x] = alpha * x + (1 - alpha) * E[B] goes with estimate = (z - (1 - alpha) * E[B]) / alpha",
    )


# --- conditions -----------------------------------------------------------------------------------


def _moment(conditions: Conditions, constraint: MechanismConstraint, alpha: str) -> Moment:
    relation = constraint.relation
    left, right = conditions.affine(relation.left), conditions.affine(relation.right)
    t = right.scalars.get(alpha)
    h = {name.partition(":")[2]: values for name, values in right.scalars.items() if name != alpha}
    fits = relation.op == "=" and left.table is not None and not left.scalars and right.table is None and t is not None
    if not fits or not _same_rows(left, h) or any(left.constant) or any(right.constant):
        raise Failure(
            "PS0502",
            relation.span,
            "where the loss depends on alpha, conditions read E[g(z) | x] = alpha * t(x) + (1 - alpha) * E[h(B)]",
        )
    assert left.table is not None and t is not None
    return Moment(constraint.line, left.table[0], t, {label: values[0] for label, values in h.items()})


def _same_rows(left: Affine, masses: Mapping[str, Costs]) -> bool:
    """Whether the function of the output, and that of the law, are the same for every input."""
    if left.table is None:
        return False
    parts = [left.table.T, *(values[None, :] for values in masses.values())]
    return all(bool(np.all(part == part[:, :1])) for part in parts)


# --- the loss -------------------------------------------------------------------------------------


def _squares(worlds: Worlds) -> Iterator[tuple[Fraction, syntax.Expr]]:
    """The loss as weights and errors that are squared."""
    assert worlds.model.loss is not None
    for term in terms(worlds.model.loss, worlds.model):
        match term:
            case Term(operator="E"):
                for weight, error in _inside(term.body, worlds, term.weight):
                    if weight <= 0:
                        raise _other_form(error.span)
                    yield weight, error
            case Chosen() | Term():
                raise _other_form(worlds.model.loss.span)


def constant_beside(worlds: Worlds) -> Fraction:
    """What is added to the errors of a loss whatever is chosen."""
    assert worlds.model.loss is not None
    return sum((term for term in terms(worlds.model.loss, worlds.model) if isinstance(term, Fraction)), Fraction(0))


def _inside(body: syntax.Expr, worlds: Worlds, weight: Fraction) -> Iterator[tuple[Fraction, syntax.Expr]]:
    """The squares that an average is a weighted sum of."""
    match body:
        case syntax.Binary(op="+"):
            yield from _inside(body.left, worlds, weight)
            yield from _inside(body.right, worlds, weight)
        case syntax.Binary(op="*", left=factor, right=other) if not _uses_variables(factor, worlds):
            yield from _inside(other, worlds, weight * public_number(factor, worlds.model))
        case syntax.Binary(op="^", left=error, right=power) if not _uses_variables(power, worlds):
            if public_number(power, worlds.model) != 2:
                raise _other_form(body.span)
            yield weight, error
        case _:
            raise _other_form(body.span)


def _uses_variables(expr: syntax.Expr, worlds: Worlds) -> bool:
    constant = VariableKind.CONSTANT
    return any(n in worlds.model.nodes and worlds.model.nodes[n].kind is not constant for n in names_used(expr))


def _matching(error: syntax.Expr, moments: list[Moment], worlds: Worlds, alpha: str, law: str | None) -> int | None:
    """The moment whose debiased estimate this is the error of, up to its sign."""
    left = set(range(len(moments)))
    for trial, value in enumerate(_ALPHAS):
        masses = _trial_masses(worlds, law, trial)
        grid = worlds.pointwise({alpha: value}, {law: masses} if law is not None else {}).grid(error)
        found = grid.spread(len(worlds.rows), len(worlds.columns))
        if found.ndim != 2:
            return None
        for k in tuple(left):
            shift = sum((1 - value) * p * moments[k].h.get(show(v), 0) for v, p in masses.items())
            expected = (moments[k].g[None, :] - shift) / value - moments[k].t[:, None]
            if not (np.all(found == expected) or np.all(found == -expected)):
                left.discard(k)
    return min(left, default=None)


def _trial_masses(worlds: Worlds, law: str | None, trial: int) -> dict[Symbol, Fraction]:
    """A law in general position."""
    domain = worlds.model.nodes[law].domain if law is not None else None
    if not isinstance(domain, Law):
        return {}
    weights = {value: Fraction(pow(3 + trial, i + 1, 101)) for i, value in enumerate(domain.over.elements())}
    total = sum(weights.values(), Fraction(0))
    return {value: weight / total for value, weight in weights.items()}
