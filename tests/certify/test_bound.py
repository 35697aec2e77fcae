"""The lower bound: true, tight at optima that are known, and never above what a feasible mechanism achieves."""

import numpy as np
import pytest

from privspec.certify.bound import Images, Moment, full_bound, moment_bound, sites_bound


def fixed_point(V: np.ndarray, rounds: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Weights and strategy Gram matrix of the optimum for replaced entries (MATH.md, section 2)."""
    weights = np.ones(len(V))
    for _ in range(rounds):
        root = np.sqrt(weights)
        values, vectors = np.linalg.eigh(root[:, None] * V * root[None, :])
        R = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
        weights = np.diag(R).copy()
    return weights, R / root[:, None] / root[None, :]


def everything(n: int, weights: np.ndarray, rows: int) -> Images:
    return Images(np.eye(n), np.sqrt(weights), np.ones(rows, dtype=bool), np.arange(rows))


@pytest.mark.parametrize(("n", "value"), [(4, None), (64, 282.201421)])
def test_prefix_sums(n: int, value: float | None) -> None:
    A = np.tril(np.ones((n, n)))
    weights, X = fixed_point(A.T @ A)
    achieved = float(np.trace(A @ np.linalg.solve(X, A.T)) * np.max(np.diag(X)))
    bound = full_bound(A, np.eye(n), [everything(n, weights, n)])
    assert bound <= achieved
    assert bound == pytest.approx(achieved, rel=1e-8)
    if value is not None:
        assert bound == pytest.approx(value, rel=1e-8)


def test_more_rows_than_columns_and_rank_deficient() -> None:
    generator = np.random.default_rng(0)
    A = generator.standard_normal((40, 6)) @ generator.standard_normal((6, 12))
    weights = np.ones(12)
    nuclear = np.linalg.norm(A, "nuc") ** 2 / 12
    bound = full_bound(A, A, [everything(12, weights, 40)])
    assert nuclear * (1 - 1e-10) <= bound <= nuclear * (1 + 1e-12)


def test_any_weights_give_a_true_bound() -> None:
    generator = np.random.default_rng(1)
    A = generator.standard_normal((5, 4))
    best = 0.0
    for _ in range(50):
        best = max(best, full_bound(A, A, [everything(4, generator.random(4) ** 3, 5)]))
    B = np.eye(4)
    achieved = float(np.trace(A @ np.linalg.inv(B) @ A.T))
    assert best <= achieved


def test_two_views_of_separate_outputs_add_up() -> None:
    n = 6
    A = np.tril(np.ones((n, n)))
    weights, X = fixed_point(A.T @ A)
    both = np.vstack([A, A])
    first = Images(np.eye(n), np.sqrt(weights), np.arange(2 * n) < n, np.arange(n))
    second = Images(np.eye(n), np.sqrt(weights), np.arange(2 * n) >= n, np.arange(n, 2 * n))
    L = A @ np.linalg.inv(np.linalg.cholesky(X).T) * np.sqrt(np.max(np.diag(X)))
    noise = np.block([[L, np.zeros_like(L)], [np.zeros_like(L), L]])
    bound = full_bound(both, noise, [first, second])
    single = full_bound(A, L, [everything(n, weights, n)])
    assert bound == pytest.approx(2 * single, rel=1e-6)
    assert bound <= 2 * single * (1 + 1e-9)


@pytest.mark.parametrize("rows", [3, 30])
def test_all_pairs_by_their_second_moment(rows: int) -> None:
    n = 6
    A = np.random.default_rng(4).standard_normal((rows, n))
    pairs = [(i, j) for i in range(n) for j in range(i)]
    weights = np.random.default_rng(5).integers(1, 2**40, len(pairs))
    moves = np.zeros((n, len(pairs)))
    matrix = np.zeros((n, n), dtype=np.int64)
    for column, ((i, j), weight) in enumerate(zip(pairs, weights, strict=True)):
        moves[[i, j], column] = 1.0, -1.0
        matrix[i, i] += weight
        matrix[j, j] += weight
        matrix[i, j] -= weight
        matrix[j, i] -= weight
    moment = Moment(matrix, int(weights.sum()), 0.25)
    one_by_one = full_bound(
        A, A, [Images(moves / 2, np.sqrt(weights.astype(float)), np.ones(rows, bool), np.arange(rows))]
    )
    bound = moment_bound(A, moment)
    assert bound == pytest.approx(one_by_one, rel=1e-9)
    nuclear = np.linalg.norm(A @ (moves / 2) * np.sqrt(weights), "nuc") ** 2 / weights.sum()
    assert bound <= nuclear * (1 + 1e-13)


def test_sites_on_inputs_and_outputs() -> None:
    """Noise at the inputs only costs ||A||_F^2, and no placement at x and y does better than the bound says."""
    n = 4
    A = np.tril(np.ones((n, n)))
    maps = np.hstack([A, np.eye(n)])
    costs = (maps**2).sum(axis=0)
    view = everything(n, np.ones(n), n)
    bound = sites_bound(A, A, maps, costs, [view])
    assert 0 < bound <= np.sum(A**2)
    only_inputs = sites_bound(A, A, A, (A**2).sum(axis=0), [everything(n, (A**2).sum(axis=0), n)])
    assert only_inputs == pytest.approx(np.sum(A**2), rel=1e-9)


def test_a_free_site_gives_no_bound() -> None:
    n = 3
    view = everything(n, np.ones(n), n)
    assert sites_bound(np.eye(n), np.eye(n), np.eye(n), np.array([1.0, 1.0, 0.0]), [view]) == 0.0
