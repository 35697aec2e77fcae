"""Requirements, lowered: what each one's observers see, and the input differences that they must not tell apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from privspec.compile.infeasible import Infeasible, unbounded
from privspec.compile.program import ProtectedView
from privspec.core.diagnostics import Diagnostic, Label, SpecError
from privspec.model.graph import Model
from privspec.model.neighbours import (
    BallDifferences,
    BoxDifferences,
    Differences,
    PairDifferences,
    UnboundedError,
    VectorDifferences,
)
from privspec.model.requirements import Requirement
from privspec.problem.linear_interpreter import unsupported
from privspec.problem.linear_lowering import OutputSlice
from privspec.solvers import programs
from privspec.solvers.programs import Array

LARGEST_NUMBER = 1e100
"""Size up to which the squares and cubes of a number and of its inverse are doubles."""


def protected_views(model: Model, outputs: Sequence[OutputSlice]) -> list[ProtectedView] | Infeasible:
    """One view for each set of differences of each requirement, in order; or why no finite noise protects it."""
    total = outputs[-1].stop if outputs else 0
    views = []
    for index, requirement in enumerate(model.requirements):
        exposed = model.exposed(requirement)
        seen = [o for o in outputs if o.name in exposed]
        rows = np.concatenate([np.arange(o.start, o.stop, dtype=np.intp) for o in seen])
        blocks = [model.block(name) for name in requirement.wrt]
        try:
            sets = requirement.neighbours.differences(blocks, model.size)
        except UnboundedError as error:
            return unbounded(model, requirement, error)
        counts = all(block.layout == "cells" for block in model.blocks)
        seen_rows = None if len(rows) == total else rows
        views += [
            ProtectedView(
                requirement,
                index,
                seen_rows,
                plain_differences(d, model.size),
                d,
                counts,
                _cover(model, requirement, d),
            )
            for d in sets
        ]
    return views


def moves(view: ProtectedView, target: Array) -> bool:
    """Whether some difference changes what the view sees."""
    seen = target if view.rows is None else target[view.rows]
    match view.differences:
        case programs.Vectors(matrix):
            return bool(np.any(seen @ matrix))
        case programs.Pairs(coordinates, _):
            return bool(np.any(seen[:, coordinates] != seen[:, coordinates[:1]]))
        case programs.Balls(blocks, radius):
            return radius > 0 and any(np.any(seen[:, block]) for block in blocks)
        case programs.Boxes(blocks, reach):
            return any(np.any(seen[:, block] * reach[block]) for block in blocks)


def check_sizes(model: Model, views: Sequence[ProtectedView], target: Array, error_map: sparse.csr_array) -> None:
    """Squares and inverses of every number must be doubles."""
    span = model.loss.span if model.loss else model.spec.span
    found = [(span, target), (span, error_map.data)]
    found += [(view.requirement.span, amounts(view.differences)) for view in views]
    for place, values in found:
        sizes = np.abs(values[values != 0])
        if sizes.size and not (sizes.min() >= 1 / LARGEST_NUMBER and sizes.max() <= LARGEST_NUMBER):
            raise unsupported(
                model.source,
                place,
                f"a number here is beyond {LARGEST_NUMBER:.0e} or below {1 / LARGEST_NUMBER:.0e}",
                "PS0513",
                "choose other units for the inputs, the outputs or the loss",
            )


def amounts(differences: programs.Differences) -> Array:
    """The sizes of changes of single coordinates."""
    match differences:
        case programs.Vectors(matrix):
            return np.asarray(matrix.data)
        case programs.Pairs(_, scale):
            return np.array([scale])
        case programs.Balls(_, radius):
            return np.array([radius])
        case programs.Boxes(_, reach):
            return reach


def nothing_secret(model: Model) -> SpecError:
    """The error for a spec whose outputs no neighbour changes."""
    labels = tuple(Label(r.span, "holds without any noise") for r in model.requirements)
    return SpecError(
        Diagnostic(
            "PS0511",
            "no output changes when one unit of the inputs does, so there is nothing to protect",
            labels,
            help="check the domains of the inputs and what the outputs are compared with",
            source=model.source,
        )
    )


def _cover(model: Model, requirement: Requirement, differences: Differences) -> float:
    """The factor between these differences and what one unit can surely do to one coordinate."""
    if differences.exact:
        return 1.0
    match differences:
        case VectorDifferences(indices, amounts, _):
            at, size = int(indices[0]), max(amounts)
        case PairDifferences(_, scale, _):
            return float(scale)
        case BallDifferences(blocks, radius, _):
            at, size = int(blocks[0][0]), radius
        case BoxDifferences(blocks, reach, _):
            at = int(blocks[0][0])
            size = reach[at]
    block = next(b for b in model.blocks if b.start <= at < b.stop)
    return float(size / block.geometry.reach(block, adding=requirement.neighbours.adding))


def plain_differences(differences: Differences, n: int) -> programs.Differences:
    """The same set as plain matrices of doubles."""
    match differences:
        case VectorDifferences(indices, amounts, _):
            values = np.array([float(a) for a in amounts])
            kept = values > 0
            count = int(kept.sum())
            return programs.Vectors(
                sparse.csc_array((values[kept], (indices[kept], np.arange(count))), shape=(n, count))
            )
        case PairDifferences(coordinates, scale, _):
            return programs.Pairs(coordinates, float(scale))
        case BallDifferences(blocks, radius, _):
            return programs.Balls(blocks, float(radius))
        case BoxDifferences(blocks, reach, _):
            return programs.Boxes(blocks, np.array([float(r) for r in reach]))


def scaled_differences(differences: programs.Differences, factor: float) -> programs.Differences:
    """Every difference times a factor."""
    match differences:
        case programs.Vectors(matrix):
            return programs.Vectors(sparse.csc_array(matrix * factor))
        case programs.Pairs(coordinates, scale):
            return programs.Pairs(coordinates, scale * factor)
        case programs.Balls(blocks, radius):
            return programs.Balls(blocks, radius * factor)
        case programs.Boxes(blocks, reach):
            return programs.Boxes(blocks, reach * factor)
