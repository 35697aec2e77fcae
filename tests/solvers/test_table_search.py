"""Debiased tables: known figures, oracles on small problems, and bounds that no tampering raises."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from privspec.solvers.programs import OutOfTimeError
from privspec.solvers.table_programs import (
    CompleteDual,
    CompleteRatio,
    InfeasibleTable,
    LinearRows,
    PairRatio,
    Privacy,
    TableSolution,
    violations,
)
from privspec.solvers.table_search import search_debiased, simplest
from privspec.solvers.table_search_programs import (
    DebiasedProgram,
    DebiasedSolution,
    SearchCut,
    SearchSplit,
    debiased_loss,
    slope,
)
from privspec.solvers.tables import solve_table

from tests.solvers.exact_bounds import (
    affine_minorants,
    bound_of,
    certified_search_bound,
    largest_extra,
    relative_gap,
    search_bound_of,
)

SAME = tuple(Fraction(k) for k in range(1, 11))
WEIGHTS = {(1,): (1,), (1, -1): (1, 16), (1, -1, 2): (1, 16, Fraction(1, 100))}


def every_pair(n: int) -> np.ndarray:
    return np.array([(a, b) for a in range(n) for b in range(n) if a != b])


def power_means(
    epsilon: str,
    powers: tuple[int, ...] = (1, -1),
    delta: str = "0",
    values: tuple[Fraction, ...] = SAME,
    outputs: tuple[Fraction, ...] | None = None,
) -> DebiasedProgram:
    """Ramon & Basu 3.3: a uniform value, its powers from one draw, and a background law over the outputs."""
    moments = tuple(tuple(y**power for y in outputs or values) for power in powers)
    targets = tuple(tuple(x**power for x in values) for power in powers)
    ratio: Privacy = CompleteRatio(Fraction(epsilon))
    if Fraction(delta):
        ratio = PairRatio(every_pair(len(values)), (Fraction(epsilon),), Fraction(delta))
    prior = (Fraction(1, len(values)),) * len(values)
    weights = tuple(Fraction(w) for w in WEIGHTS[powers])
    return DebiasedProgram(prior, moments, targets, weights, (ratio,), law=moments)


def solved(problem: DebiasedProgram, tolerance: float = 1e-4) -> DebiasedSolution:
    """The solution, checked: every condition exact, its loss recomputed, its bound proved again and near."""
    found = search_debiased(problem, tolerance)
    assert isinstance(found, DebiasedSolution)
    assert violations(problem.program(), found.exact) == []
    rows = [[Fraction(n, found.exact.denominator) for n in row] for row in found.exact.numerators]
    assert found.value == debiased_loss(problem, rows, found.alpha)
    assert sum(found.masses) == (problem.mass[0] + problem.mass[1] * found.alpha if problem.values else 0)
    for moment, target, shift in zip(problem.moments, problem.targets, found.shifts, strict=True):
        for row, t in zip(rows, target, strict=True):
            assert sum(f * g for f, g in zip(row, moment, strict=True)) == found.alpha * t + shift
    bound = search_bound_of(problem, found)
    assert bound <= found.value
    assert relative_gap(found.value, bound) <= tolerance
    assert found.notes == ()
    return found


@pytest.mark.parametrize(
    # The table of reference values has 608.5 and 135.6 for the first column, found on a grid of alpha and the means.
    ("epsilon", "shaped", "randomised", "laplaces"),
    [("1/2", 608.0579, 2511.9, 2380.0), ("1", 135.5790, 425.8, 595.0)],
)
def test_two_power_means(epsilon: str, shaped: float, randomised: float, laplaces: float) -> None:
    problem = power_means(epsilon)
    found = solved(problem, 1e-6)
    assert float(found.value) == pytest.approx(shaped, abs=1e-3)
    # k-randomised response meets every power mean with a uniform background law.
    ratio = math.exp(Fraction(epsilon))
    table = [[Fraction(ratio if x == y else 1.0) / Fraction(ratio + 9.0) for y in range(10)] for x in range(10)]
    scale = Fraction((ratio - 1) / (ratio + 9))
    assert float(debiased_loss(problem, table, scale)) == pytest.approx(randomised, abs=0.05)
    # Laplace noise on x and on 1/x: variance 2 (range / share of epsilon)^2 each, cube roots for the best split.
    split = sum((2 * w * r**2) ** (1 / 3) for w, r in ((1, 9.0), (16, 0.9))) ** 3 / float(Fraction(epsilon)) ** 2
    assert split == pytest.approx(laplaces, rel=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("powers", "delta", "loss"),
    [((1,), "0", 80.1904), ((1, -1, 2), "0", 381.1261), ((1, -1), "1/1000", 134.8340)],
)
def test_other_moments_and_requirements(powers: tuple[int, ...], delta: str, loss: float) -> None:
    assert float(solved(power_means("1", powers, delta)).value) == pytest.approx(loss, rel=2e-6)


@pytest.mark.slow
def test_one_mean_with_delta_and_more_outputs() -> None:
    assert float(solved(power_means("1", (1,), "1/1000")).value) == pytest.approx(79.7334, abs=1e-3)
    finer = tuple(Fraction(k, 2) for k in range(1, 31))
    assert float(solved(power_means("1/2", outputs=finer)).value) == pytest.approx(469.5583, abs=1e-3)


@pytest.mark.parametrize(("powers", "largest"), [((1,), 0.4621), ((1, -1), 0.3307), ((1, -1, 2), 0.2515)])
def test_largest_alpha(powers: tuple[int, ...], largest: float) -> None:
    program = largest_extra(power_means("1", powers).program(), 0)
    found = solve_table(program)
    assert isinstance(found, TableSolution)
    assert float(found.exact.extra[0]) == pytest.approx(largest, abs=5e-5)
    assert -bound_of(program, found) >= found.exact.extra[0]
    # k-randomised response meets every condition with less.
    assert (math.e - 1) / (math.e + 9) < largest


def least_distortion(problem: DebiasedProgram, cost: np.ndarray) -> TableSolution | InfeasibleTable:
    """The objective as printed in Ramon & Basu 2020, section 3.3: the squared distance of the draw from the value."""
    return solve_table(replace(problem.program(), cost=cost.astype(float)), cost=cost)


def test_the_printed_objective_drives_alpha_to_zero() -> None:
    problem = power_means("1/2")
    cost = np.array([[Fraction((x - y) ** 2, 10) for y in range(10)] for x in range(10)], dtype=object)
    found = least_distortion(problem, cost)
    assert isinstance(found, TableSolution)
    assert float(found.exact.extra[0]) == pytest.approx(0, abs=1e-6)
    fixed = least_distortion(replace(problem, alpha=(Fraction(1, 8), Fraction(1))), cost)
    assert isinstance(fixed, TableSolution)
    assert fixed.value > found.value * Fraction(11, 10)


@pytest.mark.parametrize("epsilon", ["1/10", "1", "3"])
def test_two_values_give_randomised_response(epsilon: str) -> None:
    found = solved(power_means(epsilon, (1,), values=(Fraction(1), Fraction(2))), 1e-6)
    ratio = math.exp(Fraction(epsilon))
    assert float(found.value) == pytest.approx(ratio / (ratio - 1) ** 2, rel=2e-6)
    assert float(found.alpha) == pytest.approx(math.tanh(Fraction(epsilon) / 2), rel=1e-3)


def small(epsilon: str, seed: int) -> DebiasedProgram:
    """Three values, four outputs, two moments, a prior and numbers without structure."""
    rng = np.random.default_rng(seed)
    outputs = [Fraction(int(v), 7) for v in rng.choice(40, 4, replace=False)]
    moments = (tuple(outputs), tuple(y**2 / 3 for y in outputs))
    targets = tuple(row[:3] for row in moments)
    prior = tuple(Fraction(int(v)) for v in rng.integers(1, 6, 3))
    weights = (Fraction(1), Fraction(int(rng.integers(0, 3)), 2))
    prior = tuple(p / sum(prior) for p in prior)
    return DebiasedProgram(prior, moments, targets, weights, (CompleteRatio(Fraction(epsilon)),), law=moments)


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.sampled_from(["1/2", "2"]), st.integers(0, 10**6), st.floats(0.05, 0.98))
def test_no_alpha_beats_the_bound(epsilon: str, seed: int, share: float) -> None:
    """The bound over all alpha holds for the best table of each alpha, and so does the bound for small alpha."""
    problem = small(epsilon, seed)
    found = solved(problem)
    most = solve_table(largest_extra(problem.program(), 0))
    assert isinstance(most, TableSolution)
    alpha = most.exact.extra[0] * Fraction(share)
    other = solved(replace(problem, alpha=(alpha, alpha)))
    assert other.alpha == alpha
    assert other.value >= search_bound_of(problem, found)
    assert other.value + problem.spread >= slope(problem) / alpha
    wider = replace(problem, alpha=(alpha, Fraction(1)))
    again = search_debiased(wider)
    assert isinstance(again, DebiasedSolution)
    assert search_bound_of(wider, again) <= other.value


@pytest.mark.slow
def test_agrees_with_a_grid() -> None:
    """One mean: the loss at fixed alpha and fixed background mean is a linear program."""
    problem = power_means("1", (1,), values=SAME[:4])
    found = solved(problem)
    best = np.inf
    for scale in np.linspace(0.06, 0.46, 9):
        for mean in np.linspace(1, 4, 7):
            pinned = LinearRows(np.zeros(4, dtype=np.intp), 17 + np.arange(4), SAME[:4], (Fraction(mean),))
            alpha = Fraction(scale)
            bound = replace(pinned, values=tuple(v / (1 - alpha) for v in pinned.values))
            at = search_debiased(replace(problem, alpha=(alpha, alpha), equalities=bound))
            if isinstance(at, DebiasedSolution):
                assert at.value >= search_bound_of(problem, found)
                best = min(best, float(at.value))
    assert best == pytest.approx(float(found.value), rel=0.02)


def test_every_cut_is_below_every_table() -> None:
    problem = power_means("1", values=SAME[:5])
    found = solved(problem)
    rng = np.random.default_rng(1)
    dual = found.cuts[0].dual
    part = dual.privacy[0]
    assert isinstance(part, CompleteDual)
    noise = [rng.normal(size=a.shape) for a in (part.below, part.above, dual.equalities, dual.inequalities)]
    wild = replace(
        dual, privacy=(CompleteDual(noise[0], noise[1]),), equalities=noise[2], inequalities=np.abs(noise[3])
    )
    cuts = [*found.cuts, SearchCut(wild), SearchCut(wild, empty=True)]
    cost = problem.cost()
    others = [
        search_debiased(replace(problem, weights=w)) for w in ((Fraction(1), Fraction(9)), (Fraction(3), Fraction(1)))
    ]
    for table in (found, *others):
        assert isinstance(table, DebiasedSolution)
        exact = table.exact
        point = (exact.extra[0], *exact.extra[-2:])
        spent = sum(
            Fraction(n, exact.denominator) * c
            for row, prices in zip(exact.numerators, cost, strict=True)
            for n, c in zip(row, prices, strict=True)
        )
        for minorant in affine_minorants(problem, cuts):
            value = minorant.constant + sum(s * p for s, p in zip(minorant.slopes, point, strict=True))
            assert value <= (0 if minorant.empty else spent)


def test_tampering_never_raises_the_bound() -> None:
    problem = power_means("1", values=SAME[:5])
    found = solved(problem)
    swapped = tuple(node if isinstance(node, SearchSplit) or node < 0 else 0 for node in found.tree)
    assert certified_search_bound(problem, found.cuts, swapped) <= found.value
    assert certified_search_bound(problem, found.cuts, (-1,)) <= found.value
    assert certified_search_bound(problem, found.cuts, (0,)) <= found.value
    doubled = tuple(replace(cut, dual=replace(cut.dual, equalities=2 * cut.dual.equalities)) for cut in found.cuts)
    assert certified_search_bound(problem, doubled, found.tree) <= found.value
    for tree in ((), (*found.tree, 0), found.tree[:-1], (SearchSplit(0, 2.0), 0, 0)):
        with pytest.raises(ValueError, match=r"box|split"):
            certified_search_bound(problem, found.cuts, tree)


def test_background_laws() -> None:
    problem = power_means("1")
    free = solved(problem)
    uniform = tuple((sum(row) / 10,) for row in problem.moments)
    fixed = solved(replace(problem, law=uniform))
    assert fixed.masses == (1 - fixed.alpha,)
    assert float(fixed.value) == pytest.approx(168.2826, abs=0.02)
    assert free.value < fixed.value
    # Without a law the draws must be unbiased themselves, here with outputs on either side.
    wide = power_means("1", (1,), values=SAME[:3], outputs=tuple(Fraction(k) for k in range(-4, 9)))
    none = solved(replace(wide, law=None, alpha=(Fraction(1), Fraction(1))))
    assert none.alpha == 1
    assert none.shifts == (0,)
    assert none.value >= search_bound_of(wide, solved(wide))
    # The loss does not depend on how the masses are written.
    whole = solved(replace(problem, mass=(Fraction(1), Fraction(0))))
    assert sum(whole.masses) == 1
    assert float(whole.value) == pytest.approx(float(free.value), rel=2e-4)


def test_a_condition_without_weight_costs() -> None:
    problem = power_means("1")
    condition = solved(replace(problem, weights=(Fraction(1), Fraction(0))))
    assert condition.value > solved(power_means("1", (1,))).value * Fraction(6, 5)
    assert len(condition.exact.extra) == 1 + 10 + 1


@pytest.mark.parametrize("kind", ["pairs", "atoms", "metric"])
def test_other_requirements(kind: str) -> None:
    problem = power_means("1", values=SAME[:5])
    pairs = every_pair(5)
    block = {
        "pairs": PairRatio(pairs, (Fraction(1),)),
        "atoms": PairRatio(pairs, (Fraction(1),), slack=Fraction(1, 1000)),
        "metric": PairRatio(pairs, tuple(Fraction(abs(int(a) - int(b)), 4) for a, b in pairs)),
    }[kind]
    loss, plain = solved(replace(problem, privacy=(block,))).value, solved(problem).value
    if kind == "pairs":
        assert float(loss) == pytest.approx(float(plain), rel=2e-4)
    else:
        assert (loss < plain) == (kind == "atoms")


def test_ranges_and_rows() -> None:
    problem = power_means("1")
    cap = Fraction(1, 5)
    ranged = solved(replace(problem, alpha=(Fraction(1, 100), cap)))
    assert ranged.alpha == cap
    row = LinearRows(np.zeros(1, dtype=np.intp), np.array([100]), (Fraction(1),), (cap,))
    rowed = solved(replace(problem, inequalities=row))
    assert rowed.alpha <= cap
    assert float(rowed.value) == pytest.approx(float(ranged.value), rel=2e-4)


def test_infeasible() -> None:
    problem = power_means("1")
    for other in (
        replace(problem, alpha=(Fraction(1, 2), Fraction(1))),
        replace(problem, privacy=(CompleteRatio(Fraction(0)),)),
        replace(problem, law=None),
    ):
        found = search_debiased(other)
        assert isinstance(found, InfeasibleTable)
        assert found.privacy == (0,)
        assert found.equalities
        assert found.shortfall > 0.01


def test_problems_that_make_no_sense_are_refused() -> None:
    problem = power_means("1")
    for change in (
        {"prior": (Fraction(1, 2),) * 10},
        {"weights": (Fraction(0), Fraction(0))},
        {"weights": (Fraction(1),)},
        {"alpha": (Fraction(1, 2), Fraction(1, 4))},
        {"alpha": (Fraction(0), Fraction(2))},
        {"moments": (problem.moments[0], problem.moments[1][:3])},
    ):
        with pytest.raises(ValueError, match=r"agree|every|prior|weights|alpha"):
            replace(problem, **change)
    point = (Fraction(1), *[Fraction(0)] * 9)
    with pytest.raises(ValueError, match="positive lower end"):
        search_debiased(replace(problem, prior=point))


def test_deadline_and_progress() -> None:
    problem = power_means("1", (1,))
    seen: list[tuple[int, float, float]] = []
    found = search_debiased(problem, 1e-3, progress=lambda *state: seen.append(state))
    assert isinstance(found, DebiasedSolution)
    assert [count for count, _, _ in seen] == list(range(1, len(seen) + 1))
    assert all(low <= value for _, value, low in seen)
    assert all(later[1] <= earlier[1] for earlier, later in pairwise(seen))
    assert seen[-1][2] >= 0.999 * seen[-1][1]
    with pytest.raises(OutOfTimeError):
        search_debiased(power_means("1", (1,), "1/1000"), deadline=-1.0)
    late = search_debiased(problem, 1e-9, deadline=0.4)
    assert isinstance(late, DebiasedSolution)
    assert late.notes == ("the deadline passed",)
    assert search_bound_of(problem, late) <= late.value
    assert violations(problem.program(), late.exact) == []


@given(st.fractions(Fraction(1, 1000), 1), st.fractions(0, Fraction(1, 10)))
def test_simplest_fraction(low: Fraction, width: Fraction) -> None:
    found = simplest(low, low + width)
    assert low <= found <= low + width
    assert found.denominator <= low.denominator
    for denominator in range(1, min(found.denominator, 60)):
        assert math.ceil(low * denominator) > (low + width) * denominator
