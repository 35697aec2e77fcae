"""What an observer learns of an input from all that they see together, also where no line bounds that.

A guarantee speaks of the outputs that its line names. Guarantees of outputs that share noise do not add up (two
outputs with opposite noise reveal everything when averaged), so the bound is computed from the mechanism as executed:
everything that is released is computed from the noisy strategy answers (notes/post-processing.md), and whoever sees
some of the outputs sees a combination of these, on which Gaussian noise is measured. For each input and observer of
whom no line names all that they see of it, the bound is stated; an output that no line names for the input, and that
hides next to nothing of it, is called not protected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import singledispatch
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import SpecError
from privspec.core.matrices import DyadicMatrix
from privspec.explain.claims import Claim, relation
from privspec.explain.curves import Curve, EpsilonDeltaCurve, GaussianCurve
from privspec.explain.document import SpecLine
from privspec.explain.noise import executed
from privspec.explain.quantities import parse_exact
from privspec.mechanisms.sensitivity import l2_sensitivity_up
from privspec.model.neighbours import (
    BallDifferences,
    BoxDifferences,
    Differences,
    PairDifferences,
    UnboundedError,
    VectorDifferences,
)
from privspec.model.observers import Unit, units
from privspec.model.reports import Failure

if TYPE_CHECKING:
    from privspec.explain.context import Context
    from privspec.explain.facts import MechanismFact
    from privspec.model.graph import Model
    from privspec.model.observers import Unit


Array: TypeAlias = NDArray[np.float64]

_UP = 1 + 1e-9  # more than the rounding of float norms in any plan that fits in memory
_BITS = 52
_ZERO, _CLEAR = 1e-13, 1e-6
"""Shares of the largest singular value: below the first it is rounding, from the second on its direction is sharp."""


def covering(released: frozenset[str], claim: Claim, stated: Sequence[Claim]) -> Curve | None:
    """The curve of a claim for the same unit that names every output; None where there is none."""
    for other in (claim, *stated):
        same = other.wrt == claim.wrt and other.relation == claim.relation
        if same and released <= set(other.outputs) and other.curve is not None:
            return other.curve
    return None


def seen_together(
    plan: Mapping[str, Any], outputs: frozenset[str], claim: Claim, unit: Unit | None, model: Model | None
) -> Curve | None:
    """The curve of one who sees these outputs, for the unit of a claim, bounded from above; None where not known.

    `unit` says what moves where the model is known; without one it is read from the words of the claim.
    """
    run = executed(plan)
    changes = _differences(plan, claim, unit, model)
    if changes is None or "strategy" not in run:
        return None
    strategy = DyadicMatrix.from_json(run["strategy"])
    mixed = _mixtures(run, outputs)
    return _CURVES.get(str((run.get("noise") or {}).get("shape")), _unknown)(run, strategy, mixed, changes)


def _mixtures(run: Mapping[str, Any], outputs: frozenset[str]) -> Array | None:
    """What some outputs are of the strategy answers (m, k); None where they may be anything of all of them."""
    reconstruction = run.get("reconstruction") or {}
    places = [o for o in run.get("outputs") or () if str(o["name"]) in outputs]
    if reconstruction.get("of") != "outputs" or len(places) == len(run.get("outputs") or ()):
        return None
    matrix = DyadicMatrix.from_json(reconstruction["matrix"]).to_float()
    return np.concatenate([matrix[int(o["start"]) : int(o["stop"])] for o in places])


def _gaussian(
    run: Mapping[str, Any], strategy: DyadicMatrix, mixed: Array | None, changes: Sequence[Differences]
) -> Curve | None:
    """Mu of the answers, or of their projection to what is seen."""
    deviation = parse_exact(run["noise"].get("standard_deviation", "1"))
    if mixed is not None:
        used = np.flatnonzero(np.any(mixed != 0, axis=0))
        answers = strategy.to_float()[used]
        basis = _row_space(mixed[:, used])
        strategy = DyadicMatrix.rounded(answers if basis is None else basis @ answers, _BITS)
    longest = max((l2_sensitivity_up(strategy, d) for d in changes), default=Fraction(0))
    return GaussianCurve(float(longest / deviation) * _UP)


def _row_space(matrix: Array) -> Array | None:
    """Orthonormal rows (r, k) that span the rows of a matrix; None where doubles cannot tell what these are."""
    sizes = np.linalg.norm(matrix, axis=1, keepdims=True)
    scaled = np.divide(matrix, sizes, out=np.zeros_like(matrix), where=sizes > 0)
    _, values, rows = np.linalg.svd(scaled, full_matrices=False)
    share = values / max(values.max(initial=0.0), 1e-300)
    return None if np.any((share > _ZERO) & (share < _CLEAR)) else np.asarray(rows[share >= _CLEAR])


def _laplace(
    run: Mapping[str, Any], strategy: DyadicMatrix, mixed: Array | None, changes: Sequence[Differences]
) -> Curve | None:
    """Epsilon of the answers that are used at all."""
    used = slice(None) if mixed is None else np.any(mixed != 0, axis=0)
    scales = np.array([float(parse_exact(s)) for s in run["noise"]["scale"]])[used]
    rows = strategy.to_float()[used] / scales[:, None]
    grid = float(parse_exact(run.get("grid", "0")))
    moved = max((_widest(d, rows, grid / scales) for d in changes), default=0.0)
    return EpsilonDeltaCurve(moved * _UP)


def _knorm(
    run: Mapping[str, Any], strategy: DyadicMatrix, _: Array | None, changes: Sequence[Differences]
) -> Curve | None:
    """Epsilon of the whole vector, which bounds that of any part."""
    scale = parse_exact(run["noise"]["scale"])
    longest = max((l2_sensitivity_up(strategy, d) for d in changes), default=Fraction(0))
    rounding = float(parse_exact(run.get("grid", "0"))) * float(np.sqrt(strategy.shape[0])) if longest else 0.0
    return EpsilonDeltaCurve((float(longest) + rounding) / float(scale) * _UP)


def _unknown(*_: object) -> Curve | None:
    return None


_CURVES = {"gaussian": _gaussian, "laplace": _laplace, "knorm-l2": _knorm}


def _differences(
    plan: Mapping[str, Any], claim: Claim, unit: Unit | None, model: Model | None
) -> Sequence[Differences] | None:
    """Differences of neighbours: from the model, else from the executed inputs; None if not known or without limit."""
    if model is not None and unit is not None:
        blocks = [block for block in model.blocks if block.name in unit.wrt]
        try:
            return unit.relation.differences(blocks, model.size)
        except (UnboundedError, Failure, SpecError):
            return None
    found = [_from_block(b, claim) for b in executed(plan).get("inputs") or () if str(b["name"]) in claim.wrt]
    return None if None in found or not found else [d for d in found if d is not None]


def _from_block(block: Mapping[str, Any], claim: Claim) -> Differences | None:
    relation = claim.relation
    where = np.arange(int(block["start"]), int(block["stop"]), dtype=np.intp)
    if block.get("layout") == "cells" and relation.unit == "record":
        amount = Fraction(relation.group)
        return (
            VectorDifferences(where, _filled(amount, where.size)) if relation.adds else PairDifferences(where, amount)
        )
    bounds = block.get("lower"), block.get("upper")
    if relation.unit != "entry" or relation.adds or "ball" in block or None in bounds:
        return None
    if any(isinstance(b, list) for b in bounds):
        return None
    width = parse_exact(bounds[1]) - parse_exact(bounds[0])
    return VectorDifferences(where, _filled(width * relation.group, where.size))


def _filled(value: Fraction, size: int) -> NDArray[Any]:
    out = np.empty(size, dtype=object)
    out[:] = value
    return out


@singledispatch
def _widest(differences: object, _matrix: Array, _steps: Array) -> float:
    """An upper bound on sum over rows of (|matrix d| + step where the row moves) over the differences."""
    raise TypeError(type(differences).__name__)


@_widest.register
def _(differences: VectorDifferences, matrix: Array, steps: Array) -> float:
    columns = np.abs(matrix[:, differences.indices])
    sums = columns.sum(axis=0) * differences.amounts.astype(float) + steps @ (columns > 0)
    return float(np.max(sums, initial=0.0))


@_widest.register
def _(differences: PairDifferences, matrix: Array, steps: Array) -> float:
    columns = np.abs(matrix[:, differences.coordinates])
    sums = np.sort(columns.sum(axis=0) * float(differences.scale) + steps @ (columns > 0))
    return float(sums[-2:].sum())


@_widest.register
def _(differences: BallDifferences, matrix: Array, steps: Array) -> float:
    radius = float(differences.radius)
    norms = (np.linalg.norm(matrix[:, b], axis=1) for b in differences.blocks)
    return max((float(n.sum() * radius + steps @ (n > 0)) for n in norms), default=0.0)


@_widest.register
def _(differences: BoxDifferences, matrix: Array, steps: Array) -> float:
    reach = differences.reach.astype(float)
    moved = (np.abs(matrix[:, b]) @ reach[b] for b in differences.blocks)
    return max((float(m.sum() + steps @ (m > 0)) for m in moved), default=0.0)


_NOT_WORSE = 1e-6
"""By so much of itself a share of mistakes may be below that of a line that names all there is, by rounding."""


@dataclass(frozen=True, slots=True)
class Exposed:
    """One input, moved in one unit, as one observer sees it: a claim that no line makes.

    `claim` names all outputs that the observer sees; `curve` is what they allow together, None where no bound is
    known. `unprotected` are the outputs that hide next to nothing of the input and that no line names for it.
    """

    input: str
    claim: Claim
    curve: Curve | None
    unprotected: tuple[str, ...]


def exposed(
    plan: Mapping[str, Any], stated: Sequence[Claim], mechanism: MechanismFact, model: Model | None, where: Context
) -> tuple[Exposed, ...]:
    """What the plan states of views that no line covers, and the kernel derived, in order.

    Those are left out where lines that name all that depends on the input say no less. Of a table the exact curve is
    shown, which is within the bound.
    """
    found = []
    views = {_key(view): view for view in plan["problem"]["views"]} if plan.get("exposures") else {}
    for entry in plan.get("exposures") or ():
        view = views[_key(entry)]
        claim = _template(entry, stated, where)
        curve = _exact(plan, claim, entry, mechanism, model) or _curve(entry["bound"])
        joined = [c.curve for c in stated if c.requirement in view["lines"]]
        if not _said(curve, joined, view):
            item = Exposed(entry["input"], replace(claim, achieved=curve), curve, tuple(entry["not_protected"]))
            found.append(item)
    return tuple(found)


def _key(item: Mapping[str, Any]) -> tuple[Any, ...]:
    return item["input"], item["observer"], tuple(item["wrt"]), item["neighbours"]


def _curve(bound: Mapping[str, str] | None) -> Curve | None:
    if bound is None:
        return None
    amounts = {key: float(parse_exact(value)) for key, value in bound.items()}
    if "mu" in amounts:
        return GaussianCurve(amounts["mu"])
    return EpsilonDeltaCurve(amounts["epsilon"], amounts["delta"])


def _exact(
    plan: Mapping[str, Any], claim: Claim, entry: Mapping[str, Any], mechanism: MechanismFact, model: Model | None
) -> Curve | None:
    """The exact curve of the laws of a table."""
    if mechanism.family != "table" or model is None:
        return None
    known = (unit for unit in units(model, entry["input"]) if unit.relation.describe() == entry["neighbours"])
    unit = next((unit for unit in known if unit.wrt == tuple(entry["wrt"])), None)
    return mechanism.seen(plan, frozenset(claim.outputs), claim, unit, model)


def _said(curve: Curve | None, joined: Sequence[Curve | None], view: Mapping[str, Any]) -> bool:
    """Whether lines that name all that depends on an input say no less than is true of all that is seen."""
    if view["lines"]:
        best = max((known.equal_error() for known in joined if known is not None), default=None)
        return best is None or curve is None or curve.equal_error() >= best * (1 - _NOT_WORSE)
    return not view["unnamed"] and curve is not None and curve.equal_error() >= (1 - _NOT_WORSE) / 2


def _template(entry: Mapping[str, Any], stated: Sequence[Claim], where: Context) -> Claim:
    """A claim about what an observer sees that says nothing yet; of two values nearby any two remain."""
    outputs, wrt, moved = tuple(entry["outputs"]), tuple(entry["wrt"]), relation(entry["neighbours"])
    like = next((line for line in stated if entry["input"] in line.wrt and line.relation == moved), None)
    if like is None:
        line = where.input_lines.get(entry["input"]) or SpecLine(0)
        return Claim(outputs, wrt, moved, entry["observer"], line, local=where.trust == "nobody")
    return Claim(
        outputs,
        wrt,
        moved,
        entry["observer"],
        like.line,
        notes=like.notes,
        delta=like.delta,
        requirement=like.requirement,
        local=like.local or like.by_distance,
    )
