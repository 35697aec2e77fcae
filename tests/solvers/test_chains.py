"""Noise for chains, in doubles: against sums over all sequences and the definitions of the paper."""

from __future__ import annotations

from itertools import pairwise, product
from math import exp, log

import numpy as np
import pytest
from privspec.solvers.chains import log_of, quilts, told, told_beyond, wasserstein


def chain(seed: int, size: int, length: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict]:
    dice = np.random.default_rng(seed)
    start = dice.dirichlet(np.ones(size))
    step = dice.dirichlet(np.ones(size), size=size)
    gains = dice.integers(0, 3, size=(length, size))
    gains -= gains.min(axis=1, keepdims=True)
    chances = {
        x: start[x[0]] * np.prod([step[a, b] for a, b in pairwise(x)]) for x in product(range(size), repeat=length)
    }
    return start, step, gains, chances


@pytest.mark.parametrize(("seed", "size", "length"), [(0, 2, 6), (1, 3, 4), (2, 3, 5)])
def test_laws_and_what_noise_tells(seed: int, size: int, length: int) -> None:
    start, step, gains, chances = chain(seed, size, length)
    width = gains.max(axis=1).sum() + 1
    expected = np.zeros((length, size, width))
    for x, p in chances.items():
        answer = sum(gains[t, s] for t, s in enumerate(x))
        for t, s in enumerate(x):
            expected[t, s, answer] += p
    expected /= expected.sum(axis=2, keepdims=True)
    laws = log_of(expected)
    for scale in (0.5, 3.0):
        fade = np.array([[exp(-abs(w - k) / scale) for k in range(width)] for w in range(-2, width + 2)])
        noisy = np.einsum("wk,tsk->tsw", fade, expected)
        worst = log((noisy.max(axis=1) / noisy.min(axis=1)).max())
        assert told(laws, scale).epsilon == pytest.approx(worst, rel=1e-9)
        ends = [told_beyond(log_of(start), log_of(step), sign * gains, scale).epsilon for sign in (1.0, -1.0)]
        sides = noisy[:, :, [0, -1]]
        assert max(ends) == pytest.approx(log((sides.max(axis=1) / sides.min(axis=1)).max()), rel=1e-9)
        assert max(ends) <= worst * (1 + 1e-9)
    apart = wasserstein(laws)
    assert told(laws, apart / 0.7).epsilon <= 0.7 * (1 + 1e-9)


def paper(start: np.ndarray, step: np.ndarray, chances: dict, length: int, epsilon: float) -> float:
    """The largest score of an entry, each by its best quilt: card(N) / (epsilon - max-influence) (algorithm 2)."""
    size, worst = len(start), 0.0
    for t in range(length):
        scores = []
        for back, ahead in product(range(t + 1), range(length - t)):
            seen: dict = {}
            for x, p in chances.items():
                key = x[t], x[t - back] if back else None, x[t + ahead] if ahead else None
                seen[key] = seen.get(key, 0.0) + p
            own = [sum(p for key, p in seen.items() if key[0] == s) for s in range(size)]
            influence = max(
                log((p / own[a]) / (seen[b, *rest] / own[b])) for (a, *rest), p in seen.items() for b in range(size)
            )
            near = (t + ahead if ahead else length) - (t - back + 1 if back else 0)
            if influence < epsilon:
                scores.append(near / (epsilon - influence))
        worst = max(worst, min(scores))
    return worst


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
@pytest.mark.parametrize("seed", [3, 4])
def test_quilts_are_those_of_the_paper(seed: int, epsilon: float) -> None:
    start, step, _, chances = chain(seed, 2, 6)
    ones, moved = np.ones(6), np.broadcast_to(1.0 - np.eye(2), (6, 2, 2))
    found = quilts(log_of(start), log_of(step), ones, moved, epsilon, joint=True)
    assert found.scale == pytest.approx(paper(start, step, chances, 6, epsilon), rel=1e-9)
    each = quilts(log_of(start), log_of(step), ones, moved, epsilon)
    assert each.scale <= found.scale * (1 + 1e-12)
