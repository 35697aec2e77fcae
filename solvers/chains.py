"""Noise for answers about a Markov chain: what it tells of one entry, by the laws of the answer or by quilts.

Everything is in logarithms, so that answers as rare as the product of all chances count. Entries are numbered from 0;
`log_start` (S,), `log_step` (S, S) from row to column.
Sources: Song, Wang & Chaudhuri 2017 (SIGMOD), definitions 4.1 to 4.3 and algorithm 3 for quilts, section 3.2 for the
Wasserstein mechanism.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Whole: TypeAlias = NDArray[np.int64]
NEVER = -np.inf


@dataclass(frozen=True, slots=True)
class Worst:
    """The largest log ratio of noisy answers, and the entry, two values and answer that have it."""

    epsilon: float
    place: tuple[int, int, int, int]


def log_of(values: Array) -> Array:
    """Logarithms, minus infinity for 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(values))


def told(laws: Array, scale: float) -> Worst:
    """What discrete Laplace noise of a scale lets through, given the laws (T, S, K + 1) of the answer."""
    down, up = laws.copy(), laws.copy()
    width, loss = laws.shape[2], 1.0 / scale
    for w in range(1, width):
        down[:, :, w] = np.logaddexp(down[:, :, w], down[:, :, w - 1] - loss)
    beyond = np.full_like(laws, NEVER)
    for w in range(width - 2, -1, -1):
        beyond[:, :, w] = np.logaddexp(up[:, :, w + 1], beyond[:, :, w + 1]) - loss
    noisy = np.logaddexp(down, beyond)
    known = np.isfinite(laws.max(axis=2, keepdims=True))
    most, least = np.where(known, noisy, NEVER), np.where(known, noisy, np.inf)
    gap = most.max(axis=1) - least.min(axis=1)
    t, w = divmod(int(np.argmax(gap)), gap.shape[1])
    pair = int(np.argmax(most[t, :, w])), int(np.argmin(least[t, :, w]))
    return Worst(float(gap[t, w]), (t, *pair, w))


def told_beyond(log_start: Array, log_step: Array, gains: Array, scale: float) -> Worst:
    """What an answer beyond all others lets through: the mean of e^(gain / scale) given each value of each entry.

    gains (T, S): what entry t adds in the direction of that answer. Such answers tell no more than the worst one does.
    """
    length, size = gains.shape
    weights = gains / scale
    ahead, bare = (_chances(log_start, log_step, own) for own in (weights, np.zeros_like(weights)))
    behind = np.zeros((length, size))
    for t in range(length - 2, -1, -1):
        behind[t] = np.logaddexp.reduce(log_step + (weights[t + 1] + behind[t + 1])[None, :], axis=1)
    known = np.isfinite(bare)
    means = np.where(known, ahead + behind - np.where(known, bare, 0.0), np.nan)
    most, least = np.where(known, means, NEVER), np.where(known, means, np.inf)
    gap = most.max(axis=1) - least.min(axis=1)
    t = int(np.argmax(gap))
    return Worst(float(gap[t]), (t, int(np.argmax(most[t])), int(np.argmin(least[t])), 0))


def wasserstein(laws: Array) -> int:
    """The largest distance, over entries and pairs of values, of the answers' quantiles given the one and the other."""
    chances = np.exp(laws)
    worst = 0
    for t in range(laws.shape[0]):
        known = np.flatnonzero(np.isfinite(laws[t]).any(axis=1))
        heads = [np.cumsum(chances[t, s]) for s in known]
        tails = [np.cumsum(chances[t, s][::-1])[::-1] for s in known]
        for i in range(len(known)):
            for j in range(len(known)):
                worst = max(worst, _quantiles_apart(heads[i], heads[j], tails[i], tails[j]))
    return worst


def _quantiles_apart(one: Array, other: Array, one_tail: Array, other_tail: Array) -> int:
    """How far the quantile of `other` may lie above that of `one`: least d with other's law up to k + d above one's.

    Small chances are compared from the end at which they are small.
    """
    width = len(one)
    for d in range(width):
        low, above = one[: width - d], other[d:]
        head = low <= above * (1 + 1e-12)
        rest = np.append(other_tail, 0.0)[d + 1 : width + 1] <= np.append(one_tail, 0.0)[1 : width - d + 1] * (
            1 + 1e-12
        )
        if np.all(np.where(low < 0.5, head, rest)):
            return d
    return width - 1


# --- quilts ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class Quilts:
    """The size of the noise that quilts need, and for every entry and ordered pair of values the one they take.

    `chosen` (T, S, S, 2): distances back and ahead, 0 for none on that side.
    """

    scale: float
    chosen: Whole


def quilts(
    log_start: Array,
    log_step: Array,
    reaches: Array,
    moved: Array,
    epsilon: float,
    *,
    most: int = 400,
    joint: bool = False,
) -> Quilts:
    """The least noise for which each pair of values has a quilt whose score reaches epsilon.

    Args: reaches (T,), how far the answers move if an entry changes; moved (T, S, S), the same for two values of it;
        most, the longest distance of a quilt;
        joint, one quilt for all pairs of values of an entry, and `reaches` for all entries: as in the paper.
    """
    length, size = moved.shape[:2]
    most = min(length - 1, most)
    powers = _powers(log_step, most)
    chances = _chances(log_start, log_step, np.zeros((length, size)))
    after = np.array([_largest(power[:, None, :], power[None, :, :], 2) for power in powers])
    sums = np.concatenate([[0.0], np.cumsum(reaches)])
    chosen, worst = np.zeros((length, size, size, 2), dtype=np.int64), 0.0
    backward: dict[tuple[int, bytes], Array] = {}
    distances = np.arange(most + 1)
    for t in range(length):
        possible = np.isfinite(chances[t])
        back = np.full((most + 1, size, size), np.inf)
        back[0] = 0.0
        for d in range(1, min(t, most) + 1):
            seen = np.isfinite(chances[t - d])
            key = d, seen.tobytes()
            if key not in backward:
                power = powers[d][seen]
                backward[key] = _largest(power[:, :, None], power[:, None, :], 0)
            with np.errstate(invalid="ignore"):
                shift = np.where(np.outer(possible, possible), chances[t][None, :] - chances[t][:, None], 0.0)
            back[d] = backward[key] + shift
        ahead = np.full((most + 1, size, size), np.inf)
        ahead[0] = 0.0
        reach = min(length - 1 - t, most)
        ahead[1 : reach + 1] = after[1 : reach + 1]
        left = np.where(distances == 0, 0.0, sums[np.maximum(t - distances + 1, 0)])
        right = np.where(distances == 0, sums[-1], sums[np.minimum(t + distances, length)])
        near = right[None, :] - left[:, None]
        pairs = [(a, b) for a in range(size) for b in range(size) if a != b and possible[a] and possible[b]]
        if not pairs:
            continue
        if joint:
            influence = np.max([back[:, None, a, b] + ahead[None, :, a, b] for a, b in pairs], axis=0)
            worst = max(worst, _best(near, influence, epsilon)[0])
            continue
        for a, b in pairs:
            influence = back[:, None, a, b] + ahead[None, :, a, b]
            score, place = _best(near - reaches[t] + moved[t, a, b], influence, epsilon)
            chosen[t, a, b] = place
            worst = max(worst, score)
    return Quilts(worst, chosen)


def _best(near: Array, influence: Array, epsilon: float) -> tuple[float, tuple[int, int]]:
    """The least score near / (epsilon - influence), and its quilt."""
    room = epsilon - influence
    scores = np.where(room > 0, near / np.where(room > 0, room, 1.0), np.inf)
    at = int(np.argmin(scores))
    place = np.unravel_index(at, scores.shape)
    return float(scores.flat[at]), (int(place[0]), int(place[1]))


def _largest(one: Array, other: Array, axis: int) -> Array:
    """The largest log ratio along an axis; 0 / 0 counts for nothing, and something over nothing has no limit."""
    with np.errstate(invalid="ignore"):
        ratio = np.where(np.isneginf(one), NEVER, np.where(np.isneginf(other), np.inf, one - other))
    return np.asarray(ratio.max(axis=axis, initial=NEVER))


def _powers(log_step: Array, most: int) -> list[Array]:
    found = [np.where(np.eye(len(log_step), dtype=bool), 0.0, NEVER)]
    for _ in range(most):
        found.append(np.logaddexp.reduce(found[-1][:, :, None] + log_step[None, :, :], axis=1))
    return found


def _chances(log_start: Array, log_step: Array, weights: Array) -> Array:
    """Log chances (T, S) of every value of each entry, with weights (T, S) of the entries up to it in logarithms."""
    found = [log_start + weights[0]]
    for own in weights[1:]:
        found.append(np.logaddexp.reduce(found[-1][:, None] + log_step, axis=0) + own)
    return np.array(found)
