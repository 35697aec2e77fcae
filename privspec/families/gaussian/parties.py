"""Parties without a curator: noise of their own, or shares of a sum's.

Under `trust nobody` parties add noise to each of their numbers, or to answers of their own, drawn together. What a
party sends may depend on all that it holds. The loss is a sum over parties, and so each party's noise is that of a
curator who sees this party alone. In a secure sum what a curator would execute has its noise in shares: every party
computes its own part of the strategy answers and adds a share of the noise; the sum is what is released
(noise/notes/shares.md).
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy

from privspec.core.records import dataclass, replace
from privspec.core.rounding import common
from privspec.families.decision import Decision, Infeasible
from privspec.families.gaussian.accuracy import within_limits
from privspec.families.gaussian.dense import described, offered, solved
from privspec.families.gaussian.problem import Problem, Verdict
from privspec.families.gaussian.release import Candidate, Decide, Dual, LinearRelease, exact_gaussian, input_grid_bits
from privspec.problem.linear import grid_of, held_of
from privspec.problem.refusals import parties_of
from privspec.solvers.bounds import PINNED, lower_bound
from privspec.solvers.programs import (
    Array,
    Balls,
    Boxes,
    Differences,
    DualPoint,
    ExpectedLoss,
    GaussianProgram,
    GaussianSolution,
    Indices,
    Pairs,
    Site,
    Streams,
    Vectors,
    View,
)

if TYPE_CHECKING:
    from privspec.families.program import Form

MOST = 1024
"""Numbers of all parties up to which their answers are solved for."""
NAME = "noise by each party on answers of its own"
AMONG = "Gaussian noise that each party draws alone"


def numbers_by_party(problem: Problem) -> list[Indices] | None:
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


# --- noise on each number ---------------------------------------------------------------------------


def own_numbers(problem: Problem, budgets: tuple[float, ...], rule: Verdict) -> Candidate:
    """The noisy inputs themselves are seen, so privacy is asked of them."""
    system = problem.system
    n = system.inputs_count
    identity = np.eye(n)
    places = system.lowered.layout.places.items()
    sites = tuple(Site(name, identity[:, at : at + share.width]) for name, (at, share) in places)
    views = tuple(replace(view, rows=None) for view in problem.views(budgets))
    # noise on a number is added by every party of its class
    senders = problem.senders(identity)
    program = GaussianProgram(identity, problem.loss(problem.errors * np.sqrt(senders)), views, sites)
    plain = problem.settings.solver == "cvxpy"
    found = None if plain else _by_number(program, tuple(site.map.shape[1] for site in sites))
    solution = found or solved(problem, program)
    assert solution.variances is not None
    deviations = np.sqrt(np.concatenate(solution.variances))
    # inputs that no line protects carry noise in name only
    deviations = np.maximum(deviations, PINNED * deviations.max(initial=0.0))
    strategy = identity / deviations[:, None]
    dual = _without_unused(solution.dual, np.asarray(~problem.errors.any(axis=0), dtype=np.float64))
    bound = solution.lower_bound if solution.method == EXACT else lower_bound(program, dual, np.diag(deviations))
    blocks = (n,) * len(system.views)
    release = exact_gaussian(strategy, None, np.diag(deviations), blocks, system.views, senders=senders)
    words = (
        "noise by each party on its own values",
        "the least loss of Gaussian noise that each party adds alone",
        "independent Gaussian noise on each party's own values",
    )
    point = Dual(_of_one(dual, senders), budgets, "messages")
    return offered(problem, rule, solution, release, point, words, described(sites, solution), bound)


def _without_unused(dual: DualPoint, unused: Array) -> DualPoint:
    """Without weight on differences of inputs that no error depends on: noise there is free and proves nothing."""
    weights = tuple(
        np.where(np.asarray(abs(part).T @ unused) > 0, 0.0, w)
        for part, w in zip(dual.differences, dual.weights, strict=True)
    )
    return replace(dual, weights=weights)


def _of_one(dual: DualPoint, senders: Array) -> DualPoint:
    """With the weights of one party each: those of a class have its weight in equal shares."""
    shared = tuple(
        w / senders[scipy.sparse.csc_array(part).indices[scipy.sparse.csc_array(part).indptr[:-1]]]
        for part, w in zip(dual.differences, dual.weights, strict=True)
    )
    return replace(dual, weights=shared)


EXACT = "closed form"


def _by_number(program: GaussianProgram, sizes: tuple[int, ...]) -> GaussianSolution | None:
    """Noise on each number, where each moves in one vector or box alone; None elsewhere, and where some cost nothing.

    A box of reach a, where the variance v costs c, takes v = a sum(a sqrt(c)) / sqrt(c); that of a ball of radius r is
    r^2. One corner of a box, and the axes of a ball, show it: each difference d weighs c v^2 / d^2.
    """
    if not isinstance(program.loss, ExpectedLoss):
        return None
    costs = np.sum(np.asarray(program.loss.error_map) ** 2, axis=0)
    moved = _dominant([_blocks_of(view.differences, len(costs)) for view in program.views])
    owned = np.concatenate([block for one in moved if one for block in one.blocks] or [np.zeros(0, dtype=np.intp)])
    if None in moved or len(owned) != len(np.unique(owned)) or len(owned) < len(costs) or not np.all(costs > 0):
        return None
    started, variances, differences, weights = time.perf_counter(), np.zeros(len(costs)), [], []
    for one in moved:
        assert one is not None
        columns: list[tuple[Indices, Array]] = []
        for block in one.blocks:
            reach = one.reach[block]
            variances[block] = reach**2 if one.ball else reach * (reach @ np.sqrt(costs[block])) / np.sqrt(costs[block])
            parts = [block[[i]] for i in range(len(block))] if one.ball else [block]
            columns += [(part, one.reach[part] * one.signs[part]) for part in parts]
        entries = [(k, j, v) for j, (part, own) in enumerate(columns) for k, v in zip(part, own, strict=True)]
        rows, at, values = (np.array(some) for some in zip(*entries, strict=True)) if entries else np.zeros((3, 0))
        shape = (len(costs), len(columns))
        differences.append(scipy.sparse.csc_array((values, (rows.astype(np.intp), at.astype(np.intp))), shape=shape))
        first = [(part[0], own[0]) for part, own in columns]
        weights.append(np.array([costs[k] * (variances[k] / v) ** 2 for k, v in first]))
    value, deviations = float(costs @ variances), np.sqrt(variances)
    found = tuple(np.split(variances, np.cumsum(sizes)[:-1]))
    dual, blocks = DualPoint(tuple(differences), tuple(weights)), (len(costs),) * len(program.views)
    seconds, bound = time.perf_counter() - started, value * (1 - 1e-12)
    strategy = np.diag(1 / deviations)
    return GaussianSolution(value, bound, strategy, np.diag(deviations), None, blocks, found, dual, EXACT, 0, seconds)


class _Moved(NamedTuple):
    """What moves by itself: the numbers of a block at once, each by its reach, or as a vector of that length.

    `signs` (n,): of numbers that surely move as far at once.
    """

    blocks: tuple[Indices, ...]
    reach: Array
    ball: bool
    signs: Array


def _blocks_of(differences: Differences, size: int) -> _Moved | None:
    reach, signs = np.zeros(size), np.ones(size)
    match differences:
        case Vectors(matrix) if np.all(np.diff(matrix.indptr) == 1):
            np.maximum.at(reach, matrix.indices, np.abs(matrix.data))
            return _Moved(tuple(np.array([i]) for i in np.flatnonzero(reach)), reach, False, signs)
        case Boxes(blocks, lines=lines):
            for block, own in zip(blocks, lines, strict=False):
                signs[block] = np.where(own.sum(axis=1) < 0, -1.0, 1.0)
            return _Moved(blocks, differences.reaches(), False, signs)
        case Balls(blocks, radius):
            for block in blocks:
                reach[block] = radius
            return _Moved(blocks, reach, True, signs)
    return None


def _dominant(moved: list[_Moved | None]) -> list[_Moved | None]:
    """Without the blocks of those that others of the same blocks move as far as, or farther."""
    found = list(moved)
    for i, one in enumerate(found):
        for other in found[:i] + found[i + 1 :]:
            if one is None or other is None or not one.blocks or one.ball != other.ball:
                continue
            same = [block.tolist() for block in one.blocks] == [block.tolist() for block in other.blocks]
            if same and np.all(one.reach <= other.reach):
                found[i] = one._replace(blocks=())
                break
    return found


# --- answers of a party's own -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class Alone:
    """What a party does alone: `inverse` (n, k) gives its numbers back from its `strategy` (k, n).

    `differences` and `weights` are those behind the bound of its loss, by the view that they are of; `nuclear` is the
    norm, `mass` the sum of weights.
    """

    strategy: Array
    inverse: Array
    differences: dict[int, scipy.sparse.csc_array]
    weights: dict[int, Array]
    nuclear: float
    mass: float
    solution: GaussianSolution


def own_answers(problem: Problem, budgets: tuple[float, ...]) -> Candidate | None:
    """The least loss of Gaussian noise that each party draws by itself; None where nothing is known of it."""
    parties = numbers_by_party(problem)
    if parties is None or problem.system.worst or problem.system.limits:
        return None
    known: dict[bytes, Alone] = {}
    alone, system = list[Alone](), problem.system
    for own in parties:
        try:
            moved = {i: _within(view, own) for i, view in enumerate(problem.views(budgets))}
        except _JoinedError:
            return None
        seen = {i: view for i, view in moved.items() if view is not None}
        if not seen:
            return None
        alone.append(_solved(problem, own, seen, known))
    strategy = np.zeros((sum(len(one.strategy) for one in alone), system.inputs_count))
    strategy[:, np.concatenate(parties)] = scipy.linalg.block_diag(*(one.strategy for one in alone))
    outputs = np.hstack([system.target[:, own] @ one.inverse for own, one in zip(parties, alone, strict=True)])
    senders, blocks = problem.senders(strategy), (len(strategy),) * len(system.views)
    release = exact_gaussian(strategy, outputs, None, blocks, system.views, senders=senders)
    rule = problem.verdict(("gaussian",), None, curator=False)
    words = (NAME, "the least loss of Gaussian noise that each party draws alone", AMONG)
    owner = np.empty(system.inputs_count, dtype=np.intp)
    for number, own in enumerate(parties):
        owner[own] = number
    point = _together(parties, alone, system.inputs_count, len(system.views))
    copies = system.lowered.layout.copies
    bound = sum(copies[own[0]] * one.nuclear**2 / one.mass for own, one in zip(parties, alone, strict=True))
    dual = Dual(point, budgets, "parties", owners=owner)
    return offered(problem, rule, alone[0].solution, release, dual, words, bound=bound * (1 - 1e-9))


def _together(parties: list[Indices], alone: list[Alone], size: int, views: int) -> DualPoint:
    """The dual points of all parties as one: each weighs as much as makes the sum of their bounds the bound."""
    differences, weights = [], []
    for view in range(views):
        blocks, shares = [scipy.sparse.csc_array((size, 0))], [np.zeros(0)]
        for own, one in zip(parties, alone, strict=True):
            if view not in one.differences:
                continue
            part = scipy.sparse.coo_array(one.differences[view])
            shape = (size, part.shape[1])
            blocks.append(scipy.sparse.csc_array((part.data, (own[part.row], part.col)), shape=shape))
            shares.append(one.weights[view] * (one.nuclear / one.mass) ** 2)
        differences.append(scipy.sparse.csc_array(scipy.sparse.hstack(blocks)))
        weights.append(np.concatenate(shares))
    return DualPoint(tuple(differences), tuple(weights), None)


def _solved(problem: Problem, own: Indices, views: dict[int, View], known: dict[bytes, Alone]) -> Alone:
    """The best noise of a party under the views that it is moved in; parties who are alike have the same."""
    errors = problem.errors[:, own]
    if errors.shape[0] > errors.shape[1]:
        errors = np.asarray(np.linalg.qr(errors, mode="r"), dtype=np.float64)
    key = errors.tobytes() + b"".join(str(i).encode() + _bytes(view) for i, view in views.items())
    if key not in known:
        program = GaussianProgram(errors, ExpectedLoss(np.eye(len(errors))), tuple(views.values()))
        solution = solved(problem, program)
        dual, inverse = solution.dual, np.asarray(np.linalg.pinv(solution.strategy), dtype=np.float64)
        pairs = zip(dual.differences, dual.weights, strict=True)
        image = np.hstack([errors @ (part @ scipy.sparse.diags_array(np.sqrt(w))).toarray() for part, w in pairs])
        nuclear = float(np.linalg.svd(image, compute_uv=False).sum())
        mass = float(sum(w.sum() for w in dual.weights))
        parts, weights = dict(zip(views, dual.differences, strict=True)), dict(zip(views, dual.weights, strict=True))
        known[key] = Alone(solution.strategy, inverse, parts, weights, nuclear, mass, solution)
    return known[key]


class _JoinedError(Exception):
    """What one party holds moves together with what others hold."""


def _within(view: View, own: Indices) -> View | None:
    """What moves in the numbers of one party; None where nothing does.

    Raises: _JoinedError.
    """
    found = _differences(view.differences, own)
    return None if found is None else replace(view, rows=None, differences=found)


def _differences(differences: Differences, own: Indices) -> Differences | None:
    match differences:
        case Vectors(matrix):
            part = scipy.sparse.csc_array(scipy.sparse.csr_array(matrix)[own])
            moved, whole = np.diff(part.indptr), np.diff(matrix.indptr)
            if np.any((moved > 0) & (moved != whole)):
                raise _JoinedError
            return Vectors(scipy.sparse.csc_array(part[:, moved > 0])) if moved.any() else None
        case Balls(blocks, radius):
            some = _blocks(blocks, own)
            return Balls(some, radius) if some else None
        case Boxes(blocks, reach, lines):
            some = _blocks(blocks, own)
            inside = [k for k, block in enumerate(blocks) if np.isin(block, own).all()]
            return Boxes(some, reach[own], tuple(lines[k] for k in inside if lines)) if some else None
        case Pairs() | Streams():
            raise _JoinedError


def _blocks(blocks: tuple[Indices, ...], own: Indices) -> tuple[Indices, ...]:
    """The blocks that lie within some coordinates, by their places there."""
    found = []
    for block in blocks:
        inside = np.isin(block, own)
        if inside.all():
            found.append(np.searchsorted(own, block))
        elif inside.any():
            raise _JoinedError
    return tuple(found)


def _bytes(view: View) -> bytes:
    match view.differences:
        case Vectors(matrix):
            return repr(matrix.toarray().tolist()).encode()
        case Balls(blocks, radius):
            return repr(([block.tolist() for block in blocks], radius)).encode()
        case Boxes(blocks, reach, lines):
            listed = [[one.tolist() for one in some] for some in (blocks, lines)]
            return repr((listed, reach.tolist())).encode()
        case Pairs(coordinates, scale):
            return repr((coordinates.tolist(), scale)).encode()
        case Streams():
            return repr(view.differences).encode()


# --- a secure sum -------------------------------------------------------------------------------


AT_THE_CURATOR = ", at the curator"


def in_shares(problem: Problem, candidate: Candidate) -> Candidate | None:
    """The same in shares, of which those of a coalition do not count; None for noise that has no shares."""
    trust, model = problem.model.trust, problem.model
    parties = parties_of(model)
    honest = parties - trust.colluding
    mechanism, factor = candidate.mechanism, parties / honest
    if mechanism is not None:
        unknown = problem.sizes and honest < parties and not mechanism.release.noise.normal
        release = None if unknown else _shared(problem, mechanism.release, parties, honest)
        if release is None:
            return None
        mechanism = replace(mechanism, release=release)
    return replace(
        candidate,
        name=candidate.name.removesuffix(AT_THE_CURATOR) + ", in shares",
        loss=problem.scaled(candidate.loss, factor),
        lower_bound=None if candidate.lower_bound is None else candidate.lower_bound * factor,
        among=candidate.among and f"shares of {candidate.among}",
        mechanism=mechanism,
        program=partial(_program_in_shares, problem, candidate, factor),
    )


def _program_in_shares(problem: Problem, candidate: Candidate, factor: float, decide: Decide) -> Form | str:
    """That of a curator, whose noise is what the parties whom nobody knows add."""
    from privspec.families.program import valued

    def shared(own: Candidate) -> Decision:
        found = in_shares(problem, own)
        assert found is not None
        return decide(found)

    form = candidate.program(shared)
    why = f"{factor:.6g}: all parties over those whose shares a coalition does not know"
    return form if isinstance(form, str) else valued(form, why, factor)


def within_limits_in_shares(problem: Problem, budgets: tuple[float, ...]) -> Candidate | Infeasible | None:
    """The least loss of Gaussian shares that meet every accuracy line: without a coalition they meet narrower ones."""
    trust, model = problem.model.trust, problem.model
    parties = parties_of(model)
    left = (parties - trust.colluding) / parties
    limits = tuple(replace(limit, bound=limit.bound * left) for limit in problem.system.limits)
    narrow = Problem(model, replace(problem.system, limits=limits), problem.settings, problem.best_loss)
    found = within_limits(narrow, budgets)
    if isinstance(found, Infeasible):
        # what would be accepted is said of the noise that is left
        return found if not trust.colluding else replace(found, relaxations=())
    return in_shares(problem, found)


def _shared(problem: Problem, release: LinearRelease, parties: int, honest: int) -> LinearRelease | None:
    """On a lattice that every answer of every party is a point of."""
    grid = release.strategy.unit * common(_points(problem, release))
    law = release.noise.divided(honest, grid)
    return None if law is None else replace(release, noise=law, grid=str(grid), parties=parties)


def _points(problem: Problem, release: LinearRelease) -> Iterable[Fraction]:
    """What all values of the inputs are whole multiples of."""
    bits = input_grid_bits(problem, release)
    for block, held in zip(problem.model.blocks, map(held_of, problem.model.blocks), strict=True):
        low, high = held.lower, held.upper
        width = Fraction(1) if low is None or high is None else high - low
        yield grid_of(block, bits) * (held.ball.radius if held.ball else width)
        if low and held.ball is None:
            yield abs(low)
