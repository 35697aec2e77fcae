"""`trust nobody`, and parties who hold several numbers: each adds noise to answers of its own, drawn together.

What a party sends may depend on all that it holds. The loss is a sum over parties, and so each party's noise is that of
a curator who sees this party alone.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.linalg import block_diag

from privspec.core.records import dataclass, replace
from privspec.families.linear.gaussian import correlated_program, offered, solved
from privspec.families.linear.problem import Problem
from privspec.families.linear.release import Candidate, Dual, exact_gaussian
from privspec.solvers.programs import (
    Array,
    Balls,
    Boxes,
    Differences,
    DualPoint,
    ExpectedLoss,
    GaussianProgram,
    Indices,
    Pairs,
    Streams,
    Vectors,
    View,
)

MOST = 1024
"""Numbers of all parties up to which their answers are solved for."""
NAME = "noise by each party on answers of its own"
AMONG = "Gaussian noise that each party draws alone"


def parties_of(problem: Problem) -> list[Indices] | None:
    """The coordinates that each party holds, or the parties of a class; None where none holds several.

    Nor where inputs are whole, or they are too many.
    """
    layout, sets = problem.system.lowered.layout, dict[str, list[list[Indices]]]()
    for node in problem.model.inputs:
        if node.index is None:
            return None
        at, share = layout.places[node.name]
        count = problem.model.parties[node.index].size if share.partition is None else share.partition.number
        own = np.arange(at, at + share.width, dtype=np.intp).reshape(count, -1)
        sets.setdefault(node.index, []).append(list(own))
    joined = [np.concatenate(parts) for found in sets.values() for parts in zip(*found, strict=True)]
    several = max(map(len, joined)) > 1 and problem.system.inputs_count <= MOST
    return joined if several else None


@dataclass(frozen=True, eq=False, slots=True)
class Alone:
    """What a party does alone: `inverse` (n, k) gives its numbers back from its `strategy` (k, n).

    `dual`: the differences and weights behind the bound of its loss, `nuclear` the norm, `mass` the sum of weights.
    """

    strategy: Array
    inverse: Array
    dual: DualPoint
    nuclear: float
    mass: float


def own_answers(problem: Problem, budgets: tuple[float, ...]) -> Candidate | None:
    """The least loss of Gaussian noise that each party draws by itself; None where nothing is known of it."""
    parties = parties_of(problem)
    if parties is None or problem.system.worst or problem.system.limits:
        return None
    known: dict[bytes, Alone] = {}
    alone, system = list[Alone](), problem.system
    for own in parties:
        moved = [_within(view, own) for view in problem.views(budgets)]
        if not moved or any(view is None for view in moved):
            return None
        alone.append(_solved(problem, own, tuple(view for view in moved if view is not None), known))
    strategy = np.zeros((sum(len(one.strategy) for one in alone), system.inputs_count))
    strategy[:, np.concatenate(parties)] = block_diag(*(one.strategy for one in alone))
    outputs = np.hstack([system.target[:, own] @ one.inverse for own, one in zip(parties, alone, strict=True)])
    senders, blocks = problem.senders(strategy), (len(strategy),) * len(system.views)
    release = exact_gaussian(strategy, outputs, None, blocks, system.views, senders=senders)
    rule = problem.verdict(("gaussian",), None, curator=False)
    words = (NAME, "the least loss of Gaussian noise that each party draws alone", AMONG)
    owner = np.empty(system.inputs_count, dtype=np.intp)
    for number, own in enumerate(parties):
        owner[own] = number
    point = _together(parties, alone, system.inputs_count)
    copies = system.lowered.layout.copies
    bound = sum(copies[own[0]] * one.nuclear**2 / one.mass for own, one in zip(parties, alone, strict=True))
    whole = solved(problem, correlated_program(problem, budgets))
    dual = Dual(point, budgets, "parties", owners=owner)
    return offered(problem, rule, whole, release, dual, words, bound=bound * (1 - 1e-9))


def _together(parties: list[Indices], alone: list[Alone], size: int) -> DualPoint:
    """The dual points of all parties as one: each weighs as much as makes the sum of their bounds the bound."""
    views = range(len(alone[0].dual.differences))
    differences, weights = [], []
    for view in views:
        blocks = []
        for own, one in zip(parties, alone, strict=True):
            part = sparse.coo_array(one.dual.differences[view])
            shape = (size, part.shape[1])
            blocks.append(sparse.csc_array((part.data, (own[part.row], part.col)), shape=shape))
        differences.append(sparse.csc_array(sparse.hstack(blocks)))
        weights.append(np.concatenate([one.dual.weights[view] * (one.nuclear / one.mass) ** 2 for one in alone]))
    return DualPoint(tuple(differences), tuple(weights), None)


def _solved(problem: Problem, own: Indices, views: tuple[View, ...], known: dict[bytes, Alone]) -> Alone:
    """The best noise of a party; parties who are alike have the same."""
    errors = problem.errors[:, own]
    if errors.shape[0] > errors.shape[1]:
        errors = np.asarray(np.linalg.qr(errors, mode="r"), dtype=np.float64)
    key = errors.tobytes() + b"".join(map(_bytes, views))
    if key not in known:
        program = GaussianProgram(errors, ExpectedLoss(np.eye(len(errors))), views)
        solution = solved(problem, program)
        dual, inverse = solution.dual, np.asarray(np.linalg.pinv(solution.strategy), dtype=np.float64)
        pairs = zip(dual.differences, dual.weights, strict=True)
        image = np.hstack([errors @ (part @ sparse.diags_array(np.sqrt(w))).toarray() for part, w in pairs])
        nuclear = float(np.linalg.svd(image, compute_uv=False).sum())
        mass = float(sum(w.sum() for w in dual.weights))
        known[key] = Alone(solution.strategy, inverse, dual, nuclear, mass)
    return known[key]


def _within(view: View, own: Indices) -> View | None:
    """What moves in the numbers of one party; None where it moves with those of others, or nothing does."""
    found = _differences(view.differences, own)
    return None if found is None else replace(view, rows=None, differences=found)


def _differences(differences: Differences, own: Indices) -> Differences | None:
    match differences:
        case Vectors(matrix):
            part = sparse.csc_array(sparse.csr_array(matrix)[own])
            moved = np.diff(part.indptr) > 0
            whole = np.diff(matrix.indptr)
            if not moved.any() or np.any(np.diff(part.indptr)[moved] != whole[moved]):
                return None
            return Vectors(sparse.csc_array(part[:, moved]))
        case Balls(blocks, radius):
            some = _blocks(blocks, own)
            return Balls(some, radius) if some else None
        case Boxes(blocks, reach):
            some = _blocks(blocks, own)
            return Boxes(some, reach[own]) if some else None
        case Pairs() | Streams():
            return None


def _blocks(blocks: tuple[Indices, ...], own: Indices) -> tuple[Indices, ...]:
    """The blocks that lie within some coordinates, by their places there; none if one lies half outside."""
    found = []
    for block in blocks:
        inside = np.isin(block, own)
        if inside.all():
            found.append(np.searchsorted(own, block))
        elif inside.any():
            return ()
    return tuple(found)


def _bytes(view: View) -> bytes:
    match view.differences:
        case Vectors(matrix):
            return repr(matrix.toarray().tolist()).encode()
        case Balls(blocks, radius):
            return repr(([block.tolist() for block in blocks], radius)).encode()
        case Boxes(blocks, reach):
            return repr(([block.tolist() for block in blocks], reach.tolist())).encode()
        case Pairs(coordinates, scale):
            return repr((coordinates.tolist(), scale)).encode()
        case Streams():
            return repr(view.differences).encode()
