"""Single numbers: the noise itself is the unknown (Ramon & Basu 2020, section 3.3), and so is what bounds it.

Where one sum, mean or count is released, or several of which no unit moves two, laws of noise in steps are solved for:
staircases for pure epsilon, laws that end for (epsilon, delta). Multipliers of the same programs show that no other law
is much better (notes/stepped.md, notes/shift-bound.md).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, frexp, inf, sqrt
from typing import Any

import numpy as np

from privspec.core.matrices import DyadicMatrix
from privspec.core.records import replace
from privspec.core.rounding import common, graded
from privspec.families.decision import decimal_up, float_down
from privspec.families.gaussian.dense import full_dual
from privspec.families.gaussian.places import Place, bound_of_any, move_costs, offered, on_inputs, places, view_rows
from privspec.families.gaussian.problem import Problem
from privspec.families.gaussian.release import (
    FINE_BITS,
    Candidate,
    LinearRelease,
    common_step,
    exact,
    in_whole_numbers,
    output_grid,
    reached,
    rounded_reconstruction,
    rounded_strategy,
)
from privspec.families.gaussian.sizes import size_of
from privspec.kernel.changes import COUNTED
from privspec.kernel.core.linear import Linear
from privspec.kernel.core.linear_privacy import shared_among
from privspec.kernel.core.numbers import exp_up
from privspec.kernel.core.problem import Frame
from privspec.kernel.core.reading import Grid, JsonNode, Refused
from privspec.kernel.laws.laplace import Laplace
from privspec.kernel.laws.staircase import LARGEST as LARGEST_LAW
from privspec.kernel.laws.staircase import Staircase, Stepped
from privspec.kernel.measures import APPROXIMATE
from privspec.kernel.moves import units_of
from privspec.kernel.strategies.dense import Dense
from privspec.kernel.worth.shifts import SCOPE, by_any_part, reach, shown, single_errors
from privspec.kernel.writing import sparse
from privspec.model.measures import Personalised
from privspec.problem.elaborate import elaborate
from privspec.solvers.programs import Array, Balls
from privspec.solvers.stepped import BEYOND, FREE, end_of_law, solve, stairs

NUMBERS, MOST_TIMES = 64, 2**20
"""Most numbers of a place, and by how many times they may move apart."""
STEPS = 2**30
"""Steps of the lattice in a sensitivity, about: they take up the rounding of the answer."""
WEIGHT_BITS = 60
"""Bits of all weights together; those of a law of doubles are not known any better."""
RATIO_BITS = 40
STAIRS = 200
"""Most cells in a sensitivity for counts, and about as many for staircases."""
EVEN, ROOM = 64, Fraction(1, 10**12)
"""Cells in a sensitivity of a law whose cells are alike, and what is left of a delta that is no decimal number."""
BETWEEN, WORTH, FEW_STEPS = 128, 5e-4, 12
"""Cells between whole numbers where noise that is not whole has a loss that is smaller by more than that share; steps
that neighbours move answers by, up to which laws of a delta are solved for with points halfway between them."""
SHARES = {1: 6e-3, 2: 2e-3}
"""Square of a cell, as a share of the loss (of its square, for sizes): spreading squares over cells costs a twelfth."""
ROOMS = (1e-6, 1e-4, 1e-2)
"""Shares of delta that are left for rounding, until it suffices."""
ROWS = 12_000
"""Rows of the largest programs, about."""
SHIFTS = 24
"""Shifts of which a bound is made, at most, but for those of all of a grid."""
GRIDS, NEAREST = 70, 2e-4
"""Grids that are looked at for sizes, and the share by which staircases on them may miss the best of these grids."""
ZOOM, REGION = 0.6, 1e-9
"""Cells of a grid that shows which rows of a finer one matter, and the share of the largest price of those that do."""
LOOSE, FINER, WIDER = 0.005, {False: 1.0, True: 1.6}, 2
"""From this delta on bounds take finer grids; so many times finer, and programs so many times larger."""
PARTS, LEAST_PARTS = 12, 6
"""Parts of a sensitivity that a bound looks at, at most; and shifts that are enough."""
BESIDE, LEAST = {False: 1.0, True: 3.0}, 36
"""The same of bounds of whole moves, and cells that are enough for sizes."""
COARSE = 8
"""Cells in a sensitivity for a first look."""
COARSER, UNUSED, TINY = 40, 2e-3, 1e-300
"""Cells of such a grid at most, and the share of what all shifts are worth that small ones together are not worth."""
NONE = Fraction(0)
Kept = Callable[[Array, Array], Array]
LOSSES: dict[int, Callable[[Array], Array]] = {1: np.abs, 2: np.square}
SMALLEST, LARGEST = 0.02, 12.0
"""Epsilons for which laws in steps are looked for."""
LEAST_DELTA = 1e-12
FAR = 2
"""Laws with a small delta are looked for where staircases lose less than so many times what other noise does."""
MULTIPLIER_BITS = 44
NEGLIGIBLE = 1e-12
PACKED = 4
"""Multipliers of more cells are packed."""


def stepped_candidates(problem: Problem, *, bounded: bool = True, least: float = inf) -> Iterator[Candidate]:
    """The best law in steps for each number of a place, under lines of (epsilon, delta) at a curator.

    Of several numbers no unit moves two. `bounded`: with a bound. `least`: the loss of other noise, which laws with a
    delta for several numbers are not looked for if they come nowhere near.
    """
    system = problem.system
    measures = [view.requirement.measure for view in system.views]
    if not measures or not problem.model.trust.central:
        return
    if not all(limit.stated.of_squares for limit in system.limits):
        return  # of the best law for squares neither sizes nor tails are known to be small
    if any(isinstance(view.differences, Balls) for view in system.views) or not system.target.any():
        return
    if any(isinstance(line.measure, Personalised) for line in problem.model.requirements):
        return  # a law is for one epsilon, and each person has their own
    ratios = [one.ratio for one in measures]
    epsilon = min((one[0] for one in ratios if one is not None), default=Fraction(0))
    delta = min((one[1] for one in ratios if one is not None), default=Fraction(0))
    near = SMALLEST <= epsilon <= LARGEST or (not epsilon and delta)
    if None in ratios or not near or 0 < delta < LEAST_DELTA:
        return
    if delta and not problem.settings.alternatives:  # staircases alone are found at once
        return
    own = [_of_numbers(problem, place, epsilon, delta, least) for place in _places(problem)]
    found = min((one for one in own if one is not None), key=lambda one: graded(one.loss), default=None)
    if found is not None and found.mechanism is not None and system.outputs_count > 1 and not problem.sizes:
        # what is priced is bounded by the dual point of all unbiased mechanisms, over a range of amounts
        known = bound_of_any(problem, (float(epsilon),) * len(system.views))
        if known is not None:
            dual = full_dual(problem, known.solution, known.budgets)
            found = replace(found, mechanism=replace(found.mechanism, dual=dual))
    if found is not None and bounded and problem.settings.alternatives:
        value, among = _bound(problem)
        found = replace(found, lower_bound=value, among=among)
    yield from () if found is None else (found,)


def _places(problem: Problem) -> Iterator[Place]:
    """Where noise in steps may enter, if it may at all."""
    system = problem.system
    if system.outputs_count == 1:
        (output,) = system.outputs
        rule = problem.verdict(Staircase.words, {output.name})
        yield Place(Laplace, f"on {output.name}", system.target, np.eye(1), rule)
        return
    rule = problem.verdict(Staircase.words, None)
    if not rule.admissible:
        return  # where noise may not enter Laplace noise is compared as well, and is found sooner
    inputs = on_inputs(problem, Laplace)
    for place in (*(() if inputs is None else (inputs,)), *places(problem, Laplace, None)):
        if len(place.strategy) <= NUMBERS:
            yield replace(place, rule=rule)


def _of_numbers(problem: Problem, place: Place, epsilon: Fraction, delta: Fraction, least: float) -> Candidate | None:
    """The best law for the numbers that are measured, all of which it suits; None where there is no such law."""
    measured, outputs = place.strategy, place.outputs
    started, system, several = time.perf_counter(), problem.system, len(measured) > 1
    plain, points = in_whole_numbers(measured), system.views[0].points
    if several:
        alike = (Fraction(1),) * len(system.views)
        costs = move_costs(problem, measured, outputs != 0, alike)
        if plain is None or costs is None or (costs > 0).sum(axis=1).max() > 1:
            return None
        if epsilon and 0 < delta < LOOSE and not system.lowered.errors.sizes:
            # a small delta makes a staircase little better
            law, steps = law_of(epsilon, Fraction(0), 2, None)
            pure = problem.loss_of_output_noise(outputs * costs.max(axis=0) * sqrt(law.square) / steps)
            if pure > FAR * least:
                return None
    rough, sizes = plain or (rounded_strategy(measured, system.views, FINE_BITS), [Fraction(1)])
    spread = [held for held in problem.block.held if any(column.shared for column in held.columns)]
    shared = shared_among(problem.block, spread)
    changes = [units_of(view.exact, problem.block.places) for view in system.views]
    counted = any(piece.shape in COUNTED for one in changes for unit, _ in one.units for piece in unit)
    if several and delta and counted:
        return None  # noise of pure epsilon is nearly as good for records, and promises more

    def furthest(answers: Dense, row: int, step: int) -> Fraction:
        answer = answers.chosen([row])
        return max(answer.absolute_sensitivity([Fraction(1)], [Fraction(step)], one, shared) for one in changes)

    # each number in units of which neighbours move all of them as many
    answers = Dense(exact(rough))
    moves = [furthest(answers, row, 0) for row in range(len(measured))]
    if not all(moves):
        return None
    moved = 1 / common(1 / own for own in moves)  # the least that is a multiple of each
    times = [moved / own for own in moves]
    if max(times) > MOST_TIMES:
        return None
    strategy = replace(rough, integers=rough.integers * np.array([int(own) for own in times])[:, None])
    sizes = [size / own for size, own in zip(sizes, times, strict=True)]
    lattice, *aparts = (
        (common_step(part, points, moves=own) or NONE) if plain else NONE
        for part, own in [(strategy, False), *((_row(strategy, row), True) for row in range(len(moves)))]
    )
    in_units = Dense(exact(strategy))
    kinds = {(apart, furthest(in_units, row, 1) - moved) for row, apart in enumerate(aparts)}
    if len(kinds) > 1:
        return None
    (apart, rounding), errors = kinds.pop(), system.lowered.errors
    whole = int(moved / apart) if lattice and moved <= STAIRS * apart else None
    if several and counted and whole == 1:
        return None  # of what moves by single steps it is Laplace noise in whole numbers
    law, steps = law_of(epsilon, delta, 1 if errors.sizes else 2, whole)
    between = int(apart / lattice) if whole else 1  # points of the lattice to the next one that neighbours have
    grid = moved / (steps * between if whole else steps - rounding)
    if between * len(law.weights) > LARGEST_LAW:
        return None
    outputs = outputs * np.array(list(map(float, sizes)))
    deviations = np.linalg.norm(outputs, axis=1) * sqrt(law.square) * float(grid * between)
    integer = whole and grid.denominator == 1 and np.array_equal(np.rint(outputs), outputs)
    release = LinearRelease(
        strategy,
        Staircase((law.spread(between),)),
        rounded_reconstruction(outputs),
        None,
        view_rows(problem, outputs != 0),
        str(grid),
        "2^0" if integer else output_grid(deviations),
    )
    try:
        if any(amount > delta for amount in reached(problem, release)):
            return None
    except Refused:
        return None
    name = f"noise in steps {place.where}, {'a staircase' if law.ratio else 'a law that ends'}"
    words = (name, "the best law of noise in steps for one number", "law in steps, HiGHS")
    found = offered(problem, release, words, place.rule, None, started)
    loss = size_of(problem, release) if errors.sizes else found.loss
    if loss is None:
        return None
    why = "the law in steps is the best of linear programs on several grids, which are not stated in cvxpy"
    return replace(found, family="staircase", loss=loss, program=lambda _: why)


def _row(strategy: DyadicMatrix, row: int) -> DyadicMatrix:
    return replace(strategy, integers=strategy.integers[[row]])


def _bound(problem: Problem) -> tuple[float | None, str]:
    """The largest bound of shifts, and what it is about."""
    frame = elaborate(problem.model)
    (block,) = frame.blocks
    best: tuple[float | None, str] = None, ""
    for witness in shift_witnesses(frame, block):
        try:
            bound = shown(frame, block, JsonNode(witness, "bound"))
            found = float_down(bound.at(frame.obligations))
        except Refused:
            continue
        if best[0] is None or found > best[0]:
            best = found, bound.among[0]
    return best


@lru_cache(maxsize=128)
def law_of(epsilon: Fraction, delta: Fraction, power: int, whole: int | None) -> tuple[Stepped, int]:
    """A law for (epsilon, delta), and how many lattice steps neighbours may be apart under it.

    Args: power of the error that the loss is about, 1 or 2; whole, by how many steps neighbours move answers that move
        in steps, each of which is a cell; else cells are finer. Where neighbours move by one step alone, noise between
        steps may be better.
    """
    if not epsilon:
        cells = whole or max(1, min(EVEN, int(LARGEST_LAW * delta)))
        ways = (False, True) if whole else (False,)
        even = [_uniform(delta, cells, 1 if whole else STEPS // cells | 1, halfway=way) for way in ways]
        return min(even, key=lambda one: _loss(one, power))
    cells = whole or _fitting(float(epsilon), power, range(STAIRS, 2 * STAIRS))
    found = [_staircase(epsilon, cells, 1 if whole else STEPS // cells | 1, power)]
    if delta:
        cells = whole or _cells(float(epsilon), float(delta), power)
        width = 1 if whole else STEPS // cells | 1
        found += _solved(epsilon, delta, power, range(1, cells + 1), width, bool(whole))
    best = min(found, key=lambda one: _loss(one, power))
    for one in _between(epsilon, delta, whole) if whole and power == 2 else ():
        best = one if _loss(one, power) < (1 - WORTH) * _loss(best, power) else best
    return best


def _between(epsilon: Fraction, delta: Fraction, whole: int) -> Iterator[tuple[Stepped, int]]:
    """Laws for squares with chances between the steps of answers: halfway, or with a delta at more places."""
    yield _staircase(epsilon, whole, 1, 2, halfway=True)
    if delta and whole <= FEW_STEPS:
        yield from _solved(epsilon, delta, 2, range(2, 2 * whole + 1, 2), 1, whole=True)
    if delta >= LOOSE and whole == 1:
        cells = min(BETWEEN, int(LARGEST_LAW / (_rows(float(epsilon), float(delta)) + 1)))
        yield from _solved(epsilon, delta, 2, [cells], 1, whole=True)


def _loss(found: tuple[Stepped, int], power: int) -> float:
    """In sensitivities."""
    law, steps = found
    return float(law.square / steps**2 if power == 2 else law.size / steps)


def _solved(
    epsilon: Fraction, delta: Fraction, power: int, shifts: Sequence[int], width: int, whole: bool
) -> Iterator[tuple[Stepped, int]]:
    """The best law of a grid of as many cells as the last shift has, in whole numbers; none where none is found."""
    cells = shifts[-1]

    def smear(d: Array) -> Array:
        return np.full_like(d, 1 / cells**2 / 12) if power == 2 else np.where(d == 0, 1 / cells / 4, 0.0)

    ratio = Fraction(ceil(exp_up(-epsilon) * 2**RATIO_BITS), 2**RATIO_BITS)
    for room in ROOMS:
        spread, asked = None if whole else smear, float(delta) * (1 - room)
        found = solve(float(epsilon), asked, cells, shifts, LOSSES[power], smear=spread, tails=True)
        if found is None:
            return
        weights = tuple(floor(chance * 2**WEIGHT_BITS) for chance in found.chances.tolist())
        last = max((k for k, weight in enumerate(weights) if weight), default=0)
        point = floor(found.point * 2**WEIGHT_BITS)
        for law in (
            Stepped(epsilon, width, 1, Fraction(0), point, weights[: last + 1]),
            Stepped(epsilon, width, cells, ratio, point, weights),
        ):
            if law.delta_up(cells * width, shifts[0] * width) <= delta:
                yield law, cells * width
                return


def _staircase(epsilon: Fraction, cells: int, width: int, power: int, *, halfway: bool = False) -> tuple[Stepped, int]:
    """The best staircase on cells, or on points halfway between whole numbers; its ratio is e^-epsilon, rounded up."""
    ratio = Fraction(ceil(exp_up(-epsilon) * 2**RATIO_BITS), 2**RATIO_BITS)
    upper, _ = stairs(float(epsilon), cells, power, halfway=halfway)
    up, down = ratio.as_integer_ratio()
    weights = (down,) * upper + (up,) * (cells - upper)
    if halfway:
        return Stepped(epsilon, width, 2 * cells, ratio, 0, tuple(w for one in weights for w in (0, one))), 2 * cells
    return Stepped(epsilon, width, cells, ratio, 0, weights), cells * width


def _uniform(delta: Fraction, cells: int, width: int, *, halfway: bool) -> tuple[Stepped, int]:
    """The law of cells alike, of which those of a sensitivity have delta together; what is left stands at both ends.

    It falls from its middle, so that no set of answers tells neighbours apart better than the half of the line beyond
    it: by what lies between their middles. `halfway`: the cells are points between those of answers.
    """
    stated = Fraction(decimal_up(delta))
    total = cells / (delta if stated == delta else delta * (1 - ROOM))
    inside = max(ceil(total / 2) - 1, 0) if halfway else max(ceil((total - 1) / 2) - 1, 0)
    end = total / 2 - inside if halfway else (total - 1) / 2 - inside
    weights = *(2**RATIO_BITS,) * (inside + (not halfway)), ceil(end * 2**RATIO_BITS)
    if halfway:
        return Stepped(Fraction(0), width, 2, Fraction(0), 0, tuple(w for one in weights for w in (0, one))), 2 * cells
    return Stepped(Fraction(0), width, 1, Fraction(0), 0, weights), cells * width


def _fitting(epsilon: float, power: int, grids: Sequence[int]) -> int:
    """The coarsest of some grids whose best staircase, spread over its cells, has no more loss than on others."""
    losses = [stairs(epsilon, cells, power, spread=True)[1] for cells in grids]
    return next(n for n, loss in zip(grids, losses, strict=True) if loss <= min(losses) * (1 + NEAREST))


def _least(epsilon: float, delta: float) -> int:
    """Least cells for sizes: with a large delta laws are no staircases."""
    return min(LEAST, ceil(FINER[True] * _finest(epsilon, delta, 1))) if delta >= LOOSE else 1


def _cells(epsilon: float, delta: float, power: int) -> int:
    """Cells in a sensitivity, as the loss and the size of the program ask for."""
    most = max(1, int(sqrt(ROWS / _rows(epsilon, delta))))
    if power == 1:
        return _fitting(epsilon, power, range(min(_least(epsilon, delta), most), min(GRIDS, most + 1)))
    return min(ceil(FINER[delta >= LOOSE] * _finest(epsilon, delta, power)), most)


def _finest(epsilon: float, delta: float, power: int, shifts: Sequence[int] = tuple(range(1, COARSE + 1))) -> float:
    """Cells in a sensitivity of which the square is a small share of the loss (of a squared size where that counts)."""
    coarse = solve(epsilon, delta, shifts[-1], shifts, LOSSES[power])
    loss = epsilon**-power if coarse is None else coarse.loss
    return float(1 / sqrt(SHARES[power] * loss ** (2 / power)))


# --- what no law is below -------------------------------------------------------------------------


def shift_witnesses(frame: Frame, block: Linear) -> Iterator[dict[str, Any]]:
    """For each line about one number, multipliers of shifts in whole numbers; pure epsilon takes none.

    Of several numbers the lines of pure epsilon have one witness; under one with a delta, neighbours move them alike.
    """
    if block.size > 1:
        yield {"scope": SCOPE, "requirement": None}
    for line in range(len(frame.obligations)):
        try:
            errors = [own for _, own in single_errors(frame, block, line).values()] if block.size > 1 else []
            found = max(errors, key=lambda own: own.sensitivity) if errors else reach(frame, block, line)
        except Refused:
            continue
        epsilon, delta = float(found.epsilon), float(found.delta)
        if not delta:
            yield from [] if block.size > 1 else [{"scope": SCOPE, "requirement": line}]
        elif (SMALLEST <= epsilon <= LARGEST or not epsilon) and delta >= LEAST_DELTA:
            own = _multipliers(epsilon, delta, found.parts, 1 if block.errors.sizes else 2)
            yield from [] if own is None else [{"scope": SCOPE, "requirement": line} | own]


def along_directions(frame: Frame, block: Linear, witness: dict[str, Any]) -> dict[str, Any] | None:
    """A witness of a dual point with what lines with a delta ask of errors in one direction; None where none has one.

    None as well where no multipliers are found for some line.
    """
    stated, found = list[dict[str, Any]](), False
    for one in witness["differences"]:
        asked = frame.obligations[one["requirement"]].measure
        if asked.common is not APPROXIMATE:
            stated.append(one)
            continue
        epsilon, delta = map(float, asked.figures({}).values())
        try:
            parts = None if by_any_part(frame, block, one["requirement"]) else 1
        except Refused:
            return None  # of changes that are larger than what neighbours surely do
        known = SMALLEST <= epsilon <= LARGEST and delta >= LEAST_DELTA
        law = _multipliers(epsilon, delta, parts, 2) if known else None
        if law is None:
            return None
        found = True
        stated.append({**one, "law": law})
    return {**witness, "differences": stated} if found else None


@lru_cache(maxsize=128)
def _multipliers(epsilon: float, delta: float, parts: int | None, power: int) -> dict[str, Any] | None:
    """A chain of data, a grid of errors, and multipliers on it in whole numbers; None where none were found.

    Args: parts, into how many the sensitivity is divided, as neighbours move the answer by whole numbers of them; None
        where they move it by every part.
    """
    kept: Kept | None = None
    most = WIDER * ROWS / (_rows(epsilon, delta) + FREE / (epsilon or 2 * delta))
    if not epsilon and parts is None:
        cells, between = min(PARTS, max(1, int(sqrt(most)))), 1
        shifts = list(range(1, cells + 1))
    elif parts is not None:
        cells, between, shifts = _of_parts(epsilon, delta, parts, power, most)
    else:
        if power == 1:  # staircases on grids lose least to those between them where steps fit worst into cells
            losses = {n: stairs(epsilon, n, power)[1] for n in range(_least(epsilon, delta), GRIDS)}
            cells = next(n for n, loss in losses.items() if loss >= max(losses.values()) * (1 - NEAREST))
        else:
            cells = ceil(FINER[delta >= LOOSE] * _finest(epsilon, delta, power))
        cells = max(1, min(cells, int(most / (sqrt(most) if power == 1 else min(SHIFTS, cells)))))
        between, (shifts, kept) = 1, _zoomed(epsilon, delta, cells, power)
    spare = 0.0 if between == 1 else cells**-2  # between points that carry chances, squares are less than linear

    def lowered(d: Array) -> Array:
        return np.asarray(LOSSES[power](d) - spare * (np.rint(d * cells) % between != 0))

    solved = solve(epsilon, delta, cells, shifts, lowered, kept=kept)
    if solved is None:
        return None
    whole = np.array([values for _, values in solved.multipliers]) * cells**power
    start, used = -(whole.shape[1] // 2), np.flatnonzero(whole.any(axis=0))
    if len(used):
        start, whole = start + int(used[0]), whole[:, used[0] : used[-1] + 1]
    exponent = frexp(float(whole.max()) or 1.0)[1] - MULTIPLIER_BITS
    rounded = np.rint(np.ldexp(np.where(whole > NEGLIGIBLE * whole.max(), whole, 0.0), -exponent)).astype(np.int64)
    places = np.flatnonzero(rounded)
    entries = Grid((len(places),), Fraction(2) ** exponent, tuple(rounded.ravel()[places].tolist()))
    matrix = sparse(rounded.shape, places.tolist(), entries, PACKED)
    return {"cells": cells, "shifts": shifts, "start": start, "multipliers": matrix}


def _of_parts(epsilon: float, delta: float, parts: int, power: int, most: float) -> tuple[int, int, list[int]]:
    """Cells, how many of them are between points that carry chances, and shifts, all whole numbers of so many parts.

    Of many parts those of a divisor, or some of all.
    """
    whole = max(n for n in range(1, PARTS + 1) if parts % n == 0)
    if whole < LEAST_PARTS < parts <= most / LEAST_PARTS:
        many = min(PARTS, int(most / parts))
        return parts, 1, sorted({-(-parts * k // many) for k in range(1, many + 1)})
    if power == 1:
        return whole, 1, list(range(1, whole + 1))
    finest = BESIDE[delta >= LOOSE] * _finest(epsilon, delta, power, [1])
    # laws have chances halfway between whole numbers too, and there are cells between these points
    between = max(2, 2 * min(ceil(finest / whole / 2), int(most / whole**2 / 4)))
    return whole * between, between // 2, list(range(between, whole * between + 1, between))


def _zoomed(epsilon: float, delta: float, cells: int, power: int) -> tuple[list[int], Kept | None]:
    """Shifts of a fine grid, and the rows of which some are worth something by a coarser grid.

    All shifts for sizes; else shifts that stand for equal parts of what shifts are worth, and of those worth anything.
    """
    if cells <= SHIFTS:
        return list(range(1, cells + 1)), None
    coarse = min(ceil(ZOOM * cells), COARSER)
    found = solve(epsilon, delta, coarse, range(1, coarse + 1), LOSSES[power])
    if found is None:
        return [*range(cells % SHIFTS or 1, cells, -(-cells // SHIFTS)), cells], None
    prices = np.array([values for _, values in found.multipliers])
    worth_it = np.pad(prices > REGION * prices.max(), 1)
    near = np.asarray(np.lib.stride_tricks.sliding_window_view(worth_it, (3, 3)).any(axis=(2, 3)))

    def kept(shift: Array, cell: Array) -> Array:
        at = np.rint(cell * coarse).astype(int) + near.shape[1] // 2
        return np.asarray(
            near[np.maximum(np.rint(shift * coarse).astype(int), 1) - 1, np.clip(at, 0, near.shape[1] - 1)]
        )

    if power == 1:
        return list(range(1, cells + 1)), kept
    worth, ends = prices.max(axis=1), np.arange(coarse + 1) / coarse
    used = np.cumsum(worth) > UNUSED * worth.sum()
    worth[-1] = 0.0
    shares = np.cumsum(worth / max(worth.sum(), TINY) + used / max(used.sum(), 1))
    places = np.interp((np.arange(SHIFTS - 1) + 0.5) / (SHIFTS - 1) * shares[-1], np.append(0.0, shares), ends)
    return [*np.unique(np.clip(np.rint(places * cells), 1, cells - 1).astype(int)).tolist(), cells], kept


def _rows(epsilon: float, delta: float) -> float:
    """Rows of a program, in squared cells of a sensitivity."""
    return end_of_law(epsilon, delta) + BEYOND + 0.25
