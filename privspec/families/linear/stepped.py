"""One number: the noise itself is the unknown (Ramon & Basu 2020, section 3.3), and so is what bounds it.

Where one sum, mean or count is released, laws of noise in steps are solved for: staircases for pure epsilon, laws that
end for (epsilon, delta). Multipliers of the same programs show that no other law is much better (notes/stepped.md,
notes/shift-bound.md).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, frexp, sqrt
from typing import Any

import numpy as np

from privspec.core.matrices import DyadicMatrix
from privspec.families.document import float_down
from privspec.families.linear.problem import Problem
from privspec.families.linear.release import (
    FINE_BITS,
    RECONSTRUCTION_BITS,
    Candidate,
    LinearRelease,
    Mechanism,
    achieved_amount,
    output_grid,
    plain_strategy,
    rounded_strategy,
)
from privspec.families.linear.sizes import size_of
from privspec.kernel.core.linear import Linear, read_linear
from privspec.kernel.core.numbers import exp_up
from privspec.kernel.core.problem import Frame, read_frame
from privspec.kernel.core.reading import Item, Refused
from privspec.kernel.shifts import SCOPE, reach, shown
from privspec.kernel.stepped import Stepped
from privspec.model.measures import EpsilonDelta, Personalised, PureDP
from privspec.model.requirements import Curator
from privspec.noise.laplace import scaled_l1_sensitivity
from privspec.noise.stepped import SteppedNoise
from privspec.problem.elaborate import elaborate
from privspec.problem.form import Numbers, document
from privspec.problem.linear_differences import BallDifferences
from privspec.solvers.programs import Array
from privspec.solvers.stepped import BEYOND, FREE, end_of_law, solve, stairs

STEPS = 2**30
"""Steps of the lattice in a sensitivity, about: they take up the rounding of the answer."""
WEIGHT_BITS = 60
"""Bits of all weights together; those of a law of doubles are not known any better."""
RATIO_BITS = 40
STAIRS = 200
"""Cells in a sensitivity for staircases: the best step is met to within 1 / 400."""
SHARES = {1: 6e-3, 2: 2e-3}
"""Square of a cell, as a share of the loss (of its square, for sizes): spreading squares over cells costs a twelfth."""
ROOMS = (1e-6, 1e-4, 1e-2)
"""Shares of delta that are left for rounding, until it suffices."""
ROWS = 12_000
"""Rows of the largest programs, about."""
SHIFTS = 24
"""Shifts of which a bound is made, at most."""
LOOSE, FINER, WIDER = 0.005, {False: 1.0, True: 1.6}, 2
"""From this delta on bounds take finer grids; so many times finer, and programs so many times larger."""
COARSE = 8
"""Cells in a sensitivity for a first look."""
LOSSES: dict[int, Callable[[Array], Array]] = {1: np.abs, 2: np.square}
SMALLEST, LARGEST = 0.02, 12.0
"""Epsilons for which laws in steps are looked for."""
LEAST_DELTA = 1e-12
KNOWN = (PureDP, EpsilonDelta)
"""Measures of epsilon, and of a delta."""
MULTIPLIER_BITS = 44
NEGLIGIBLE = 1e-12
PACKED = 4
"""Multipliers of more cells are packed."""


def stepped_candidates(problem: Problem, *, bounded: bool = True) -> Iterator[Candidate]:
    """The best law in steps for one number under lines of (epsilon, delta) at a curator; `bounded`: with a bound."""
    system, started = problem.system, time.perf_counter()
    measures = [view.requirement.measure for view in system.views]
    wanted = problem.settings.alone and problem.settings.alternatives and not system.limits
    if not wanted or not measures or system.outputs_count != 1 or not isinstance(problem.model.trust, Curator):
        return
    if any(isinstance(view.exact, BallDifferences) for view in system.views) or not system.target.any():
        return
    if any(isinstance(line.measure, Personalised) for line in problem.model.requirements):
        return  # a law is for one epsilon, and each person has their own
    known = [one for one in measures if isinstance(one, KNOWN)]
    epsilon = min((one.epsilon for one in known), default=Fraction(0))
    delta = min((one.amounts.get("delta", Fraction(0)) for one in known), default=Fraction(0))
    if len(known) < len(measures) or not SMALLEST <= epsilon <= LARGEST or 0 < delta < LEAST_DELTA:
        return
    (output,) = system.outputs
    rule = problem.verdict(("staircase",), {output.name})
    strategy = plain_strategy(system.target) or rounded_strategy(system.target, system.views, FINE_BITS)
    whole = all(block.whole for block in problem.model.blocks) and strategy.unit.denominator == 1
    moved, rounded = (
        max(scaled_l1_sensitivity(strategy, (Fraction(1),), view.exact, Fraction(step)) for view in system.views)
        for step in (0, 1)
    )
    errors = system.lowered.errors
    if not moved or (whole and not 1 <= moved <= STAIRS):
        return
    law, steps = law_of(epsilon, delta, 1 if errors.sizes else 2, int(moved) if whole else None)
    grid = Fraction(1) if whole else moved / (steps - (rounded - moved))
    release = LinearRelease(
        strategy,
        SteppedNoise(law, grid),
        DyadicMatrix.rounded(np.eye(1), RECONSTRUCTION_BITS),
        None,
        (1,) * len(system.views),
        str(grid),
        "2^0" if whole else output_grid(np.array([sqrt(law.square * grid**2)])),
    )
    if any(achieved_amount(release, view, 1) > delta for view in system.views):
        return
    root = release.output_map(system.target) * np.sqrt(release.row_variances())
    loss = size_of(problem, release) if errors.sizes else problem.loss_of_output_noise(root)
    kind = "a staircase" if law.ratio else "a law that ends"
    yield Candidate(
        f"noise in steps on {output.name}, {kind}",
        "staircase",
        loss or 0.0,
        rule.reason or "the best law of noise in steps for one number",
        rule.admissible,
        *(_bound(problem) if bounded else (None, "")),
        Mechanism(release, ({"at": output.name},), None, "law in steps, HiGHS", 0, time.perf_counter() - started),
    )


def _bound(problem: Problem) -> tuple[float | None, str]:
    """The largest bound of shifts, and what it is about."""
    whole = document(elaborate(problem.model))
    frame = read_frame(Item(whole, "problem"))
    block = read_linear(Item(whole["blocks"][0], "block"), frame)
    found = [shown(frame, block, Item(one, "bound")) for one in shift_witnesses(frame, block)]
    value, words = max(found, default=(None, ("",)))
    return None if value is None else float_down(value), words[0]


def law_of(epsilon: Fraction, delta: Fraction, power: int, whole: int | None) -> tuple[Stepped, int]:
    """A law for (epsilon, delta), and how many lattice steps neighbours may be apart under it.

    Args: power of the error that the loss is about, 1 or 2; whole, how far neighbours of counts are apart, each count a
        cell; else cells are finer.
    """
    plain = _staircase(epsilon, whole or STAIRS, 1 if whole else STEPS // STAIRS | 1, power)
    found = _ending(epsilon, delta, power, whole) if delta else None
    if found is None:
        return plain
    (law, steps), (other, width) = found, plain
    ratio = law.square / other.square if power == 2 else (law.size / other.size) ** 2
    return plain if ratio * width**2 >= steps**2 else found


def _ending(epsilon: Fraction, delta: Fraction, power: int, whole: int | None) -> tuple[Stepped, int] | None:
    """The same of laws that end."""
    cells = whole or _cells(float(epsilon), float(delta), power)
    width = 1 if whole else STEPS // cells | 1

    def smear(d: Array) -> Array:
        return np.full_like(d, 1 / cells**2 / 12) if power == 2 else np.where(d == 0, 1 / cells / 4, 0.0)

    for room in ROOMS:
        spread = None if whole else smear
        found = solve(
            float(epsilon),
            float(delta) * (1 - room),
            cells,
            range(1, cells + 1),
            LOSSES[power],
            smear=spread,
            ends=True,
        )
        if found is None:
            return None
        weights = tuple(floor(chance * 2**WEIGHT_BITS) for chance in found.chances.tolist())
        last = max((k for k, weight in enumerate(weights) if weight), default=0)
        law = Stepped(epsilon, width, 1, Fraction(0), floor(found.point * 2**WEIGHT_BITS), weights[: last + 1])
        if law.delta_up(cells * width) <= delta:
            return law, cells * width
    return None


def _staircase(epsilon: Fraction, cells: int, width: int, power: int) -> tuple[Stepped, int]:
    """The best staircase on cells; its ratio is e^-epsilon, rounded up."""
    ratio = Fraction(ceil(exp_up(-epsilon) * 2**RATIO_BITS), 2**RATIO_BITS)
    upper = stairs(float(epsilon), cells, power)
    up, down = ratio.as_integer_ratio()
    return Stepped(epsilon, width, cells, ratio, 0, (down,) * upper + (up,) * (cells - upper)), cells * width


def _cells(epsilon: float, delta: float, power: int) -> int:
    """Cells in a sensitivity, as the loss and the size of the program ask for."""
    most = sqrt(ROWS / _rows(epsilon, delta))
    return max(1, min(ceil(FINER[delta >= LOOSE] * _finest(epsilon, delta, power)), int(most)))


def _finest(epsilon: float, delta: float, power: int, shifts: Sequence[int] = tuple(range(1, COARSE + 1))) -> float:
    """Cells in a sensitivity of which the square is a small share of the loss (of a squared size where that counts)."""
    coarse = solve(epsilon, delta, shifts[-1], shifts, LOSSES[power])
    loss = epsilon**-power if coarse is None else coarse.loss
    return float(1 / sqrt(SHARES[power] * loss ** (2 / power)))


def _shifts(cells: int) -> list[int]:
    """All shifts of few cells; of many, some that no coarser grid has all of, so that no law profits from one."""
    if cells <= SHIFTS:
        return list(range(1, cells + 1))
    spread = np.linspace(cells / SHIFTS, cells, SHIFTS)
    moved = spread + np.random.default_rng(0).uniform(-2, 2, SHIFTS) * (spread < cells)
    return [int(shift) for shift in np.unique(np.clip(np.rint(moved), 1, cells))]


# --- what no law is below -------------------------------------------------------------------------


def shift_witnesses(frame: Frame, block: Linear) -> Iterator[dict[str, Any]]:
    """For each line about one number, multipliers of shifts in whole numbers."""
    for line in range(len(frame.obligations)):
        try:
            found = reach(frame, block, line)
        except Refused:
            continue
        epsilon, delta = float(found.epsilon), float(found.delta)
        if SMALLEST <= epsilon <= LARGEST and (not delta or delta >= LEAST_DELTA):
            own = _multipliers(epsilon, delta, found.divided, 1 if block.errors.sizes else 2)
            yield from [] if own is None else [{"scope": SCOPE, "requirement": line} | own]


@lru_cache
def _multipliers(epsilon: float, delta: float, divided: bool, power: int) -> dict[str, Any] | None:
    """A chain of data, a grid of errors, and multipliers on it in whole numbers; None where none were found.

    Args: divided, whether neighbours move the answer by every part of its sensitivity, and not as a whole only.
    """
    shifts = [1] if not divided else list(range(1, COARSE + 1))
    cells = ceil(FINER[delta >= LOOSE] * _finest(epsilon, delta, power, shifts)) if divided or power == 2 else 1
    rows = _rows(epsilon, delta) + FREE / epsilon
    cells = max(1, min(cells, int(WIDER * ROWS / rows / (min(SHIFTS, cells) if divided else 1))))
    shifts = _shifts(cells) if divided else [cells]
    spare = 0.0 if divided else cells**-2  # between points that carry chances, squares are less than linear

    def lowered(d: Array) -> Array:
        return np.asarray(LOSSES[power](d) - spare * (np.rint(d * cells) % cells != 0))

    solved = solve(epsilon, delta, cells, shifts, lowered)
    if solved is None:
        return None
    start = min(first for _, first, _ in solved.multipliers)
    size = max(first + len(values) for _, first, values in solved.multipliers) - start
    whole = np.zeros((len(shifts), size))
    for number, (_, first, values) in enumerate(solved.multipliers):
        whole[number, first - start : first - start + len(values)] = values * cells**power
    exponent = frexp(float(whole.max()) or 1.0)[1] - MULTIPLIER_BITS
    rounded = np.rint(np.ldexp(np.where(whole > NEGLIGIBLE * whole.max(), whole, 0.0), -exponent)).astype(np.int64)
    places = np.flatnonzero(rounded)
    entries = Numbers((len(places),), Fraction(2) ** exponent, tuple(rounded.ravel()[places].tolist()))
    at = Numbers((len(places),), Fraction(1), tuple(places.tolist()))
    packed = {"places": at.to_json(PACKED), "values": entries.to_json(PACKED)}
    matrix = {"form": "sparse", "shape": list(rounded.shape), **packed}
    return {"cells": cells, "shifts": shifts, "start": start, "multipliers": matrix}


def _rows(epsilon: float, delta: float) -> float:
    """Rows of a program, in squared cells of a sensitivity."""
    return end_of_law(epsilon, delta) + BEYOND + 0.25
