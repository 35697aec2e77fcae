"""Vectors in a row, to all numbers of which the same is done: a spec of them is read as one of numbers.

Where every input is a row of vectors of one ball and all that is asked of them acts on each of their numbers alike, the
map on one number of each vector says everything: nothing of the size of all numbers is built (noise/notes/streams.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privspec.core.records import dataclass, replace
from privspec.kernel.core.linear import Difference
from privspec.language import syntax
from privspec.language.walk import names_used
from privspec.model.domains import L2Ball
from privspec.model.evaluate import evaluate
from privspec.model.graph import Model, once
from privspec.model.library import function_of
from privspec.model.neighbours import ReplacingRecord, Spaced
from privspec.model.reports import Failure
from privspec.model.targets import environment
from privspec.problem.terms import multiples


@dataclass(frozen=True, eq=False, slots=True)
class Scalars:
    """A spec about vectors of `dimension` numbers as one about numbers, `model`: one of each vector."""

    dimension: int
    model: Model


class _ApartError(Exception):
    """An expression tells the numbers of a vector apart, or may do so."""


@once
def scalars_of(model: Model) -> Scalars | None:
    """The spec as one about numbers; None where numbers of vectors are told apart, or no line is about distances."""
    dimension = _dimension(model)
    if not dimension:
        return None
    moving = [node for node in (*model.inputs, *model.intermediates, *model.outputs) if node.name not in model.values]
    rows = frozenset(node.name for node in moving)
    try:
        for node in moving:
            if node.type.shape[1:] != (dimension,) or node.index:
                return None
            if node.definition is not None:
                _check_rows(model, node.definition, rows)
        _check_loss(model, model.loss, rows)
    except (_ApartError, Failure):
        return None
    nodes = {
        name: replace(node, type=node.type.with_shape(node.type.shape[:1])) if name in rows else node
        for name, node in model.nodes.items()
    }
    blocks = tuple(
        replace(block, start=block.start // dimension, stop=block.stop // dimension, type=nodes[block.name].type)
        for block in model.blocks
    )
    return Scalars(dimension, replace(model, nodes=nodes, blocks=blocks))


def _dimension(model: Model) -> int:
    """How many numbers the vectors have; 0 where inputs are others, or lines are not about vectors at distances."""
    known, lines = {block.base_domain for block in model.blocks}, model.requirements
    ball, relation = next(iter(known), None), lines[0].neighbours if len(lines) == 1 else None
    told_apart = (
        not model.trust.central,
        model.accuracy,
        model.fairness,
        model.parties,
        model.components,
        model.computed,
        model.asserted,
        model.models,
        model.design,
        model.noise_at is not None,
        model.families and "gaussian" not in model.families,
    )
    if not isinstance(ball, L2Ball) or len(known) > 1 or any(told_apart):
        return 0
    spaced = isinstance(relation, Spaced) and isinstance(relation.inner, ReplacingRecord)
    if len(model.exposed(lines[0]) if spaced else ()) < len(model.outputs):
        return 0
    if lines[0].measure.gaussian_mu_down() is None:
        return 0
    return ball.dimension if ball.dimension > 1 else 0


def _public(model: Model, expr: syntax.Node) -> bool:
    return all(name in model.values for name in names_used(expr))


def _check_rows(model: Model, expr: syntax.Node, rows: frozenset[str]) -> None:
    """An expression is rows of vectors, each number of them by one linear map of such numbers.

    Raises: _ApartError.
    """
    match expr:
        case syntax.Name() if expr.id in rows:
            return None
        case syntax.Negate():
            return _check_rows(model, expr.operand, rows)
        case syntax.Binary(op="+" | "-"):
            _check_rows(model, expr.left, rows)
            return _check_rows(model, expr.right, rows)
        case syntax.Binary(op="@" | "*") if _public(model, expr.left):
            _check_factor(model, expr.left, rank=2 if expr.op == "@" else 0)
            return _check_rows(model, expr.right, rows)
        case syntax.Binary(op="*" | "/") if _public(model, expr.right):
            _check_factor(model, expr.right, rank=0)
            return _check_rows(model, expr.left, rows)
        case syntax.Call(arguments=(inner, *more)) if function_of(expr).by_column:
            if all(_public(model, one) for one in more):
                return _check_rows(model, inner, rows)
    raise _ApartError


def _check_factor(model: Model, expr: syntax.Expr, *, rank: int) -> None:
    """A public number, or matrix."""
    if np.ndim(evaluate(expr, environment(model))) != rank:  # type: ignore[arg-type]
        raise _ApartError


def _check_loss(model: Model, expr: syntax.Expr | None, rows: frozenset[str]) -> None:
    """A loss is a sum of squared lengths of rows of vectors, each with a public weight.

    Raises: _ApartError.
    """
    if expr is None:
        raise _ApartError
    for _, term in multiples(expr, model):
        match term:
            case syntax.Over(body=body, given=None):
                _check_loss(model, body, rows)
            case syntax.Binary(
                op="^", left=syntax.Norm(operand=inner, order="2"), right=syntax.Number(value=power)
            ) if power == 2:
                _check_rows(model, inner, rows)
            case _:
                raise _ApartError


def reduced(some: Sequence[Difference], dimension: int) -> tuple[Difference, ...]:
    """Differences of numbers as those of vectors: a unit moves each of its vectors by one of its amount."""
    return tuple(
        replace(
            one,
            parts=tuple(
                replace(
                    part,
                    start=part.start // dimension,
                    stop=part.stop // dimension,
                    length=max(part.length // dimension, 1),
                    shape="l2",
                    dimension=1,
                )
                for part in one.parts
            ),
        )
        for one in some
    )
