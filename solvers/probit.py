"""Probit estimates of many voters at once: maximum likelihood in a ball, certified by the Frank-Wolfe gap.

A voter's loss is f(b) = -sum_j ln Phi(b' V_j) over a ball of radius B, the l1 ball (Wang et al. 2019, section 4) or the
l2 ball. Each voter goes through rounds of accelerated projected gradient (it finds the face) and Newton steps on the
face (they finish), until its own gap is small. Nothing of one voter's computation looks at another voter: step sizes,
restarts and stopping are each voter's own, so the same records give the same bits in every batch, in every place.

Voters are worked out a batch at once: all sums run within a voter, and a round's length depends on its number only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np
import scipy
from numpy.polynomial import chebyshev
from numpy.typing import NDArray
from privspec.solvers.programs import Array, Indices


class Ball(Protocol):
    """The unit ball of a norm; all methods treat rows (N, d) independently."""

    def norm(self, points: Array) -> Array:
        """The norm of each row, within (d + 8) 2^-52 relative."""

    def dual(self, gradients: Array) -> Array:
        """The dual norm of each row: the largest g'b over the ball."""

    def project(self, points: Array) -> Array:
        """The nearest point of the ball to each row."""

    def face(self, points: Array, gradients: Array, careful: bool) -> tuple[NDArray[np.bool_], Array, Array]:
        """What a Newton step at boundary points keeps: free entries, outward normal, curvature of the boundary.

        A careful step takes up no entries that are zero.
        """

    def settle(self, points: Array, steps: Array, normals: Array, careful: bool) -> Array:
        """The points of the ball that Newton steps from boundary points stand for; a careful one stays on the face."""


class L1:
    """The l1 ball."""

    def norm(self, points: Array) -> Array:
        return np.asarray(np.abs(points).sum(axis=1))

    def dual(self, gradients: Array) -> Array:
        return np.asarray(np.abs(gradients).max(axis=1))

    def project(self, points: Array) -> Array:
        # soft threshold at the largest (S_k - 1)/k, S_k the sum of the k largest magnitudes (Duchi et al. 2008)
        sizes = np.abs(points)
        sums = np.cumsum(np.sort(sizes, axis=1)[:, ::-1], axis=1)
        sums -= 1.0
        sums /= np.arange(1, points.shape[1] + 1)
        threshold = np.maximum(sums.max(axis=1), 0.0)
        sizes -= threshold[:, None]
        np.maximum(sizes, 0.0, out=sizes)
        return np.copysign(sizes, points)

    def face(self, points: Array, gradients: Array, careful: bool) -> tuple[NDArray[np.bool_], Array, Array]:
        # entries that are not zero, and zeros whose slope exceeds the multiplier of the face
        used = points != 0
        multiplier = -(gradients * points).sum(axis=1)
        free = used if careful else used | (np.abs(gradients) > multiplier[:, None])
        normals = np.where(used, np.sign(points), -np.sign(gradients)) * free
        return free, normals, np.zeros(len(points))

    def settle(self, points: Array, steps: Array, normals: Array, careful: bool) -> Array:
        # entries that would change sign become zero; a careful step ends where the first one does
        if careful:
            falling = steps * normals < 0
            shares = np.where(falling, -points / np.where(falling, steps, 1.0), np.inf)
            share = np.minimum(shares.min(axis=1), 1.0)[:, None]
            moved = np.where(falling & (shares <= share) & (share < 1.0), 0.0, points + share * steps)
        else:
            moved = points + steps
        return self.project(np.where(moved * normals > 0, moved, 0.0))


class L2:
    """The l2 ball."""

    def norm(self, points: Array) -> Array:
        largest = np.abs(points).max(axis=1)
        safe = np.where(largest > 0, largest, 1.0)
        return np.asarray(np.sqrt(np.square(points / safe[:, None]).sum(axis=1)) * largest)

    def dual(self, gradients: Array) -> Array:
        return self.norm(gradients)

    def project(self, points: Array) -> Array:
        return points / np.maximum(self.norm(points), 1.0)[:, None]

    def face(self, points: Array, gradients: Array, careful: bool) -> tuple[NDArray[np.bool_], Array, Array]:
        # the sphere bends as much as the multiplier says
        multiplier = np.maximum(-(gradients * points).sum(axis=1), 0.0)
        return np.ones(points.shape, dtype=bool), points, multiplier

    def settle(self, points: Array, steps: Array, normals: Array, careful: bool) -> Array:
        return self.project(points + steps)


BALLS: dict[str, Ball] = {"l1": L1(), "l2": L2()}


def inside(points: Array, radius: float, ball: Ball) -> Array:
    """The points, moved towards zero where needed so that their norm is at most `radius` in exact arithmetic.

    The computed norm times (1 + (2d + 16) 2^-52) is an upper bound on the exact one (d - 1 additions, or d squares,
    quotients and additions and a root, each within 2^-53). The factor t <= radius / bound is rounded down and every
    product is moved one double towards zero, so |result_k| <= t |b_k| holds exactly, also for subnormal numbers.
    """
    features = points.shape[1]
    above = np.nextafter(ball.norm(points) * (1.0 + (2 * features + 16) * 2.0**-52), np.inf)
    scale = np.nextafter(radius / np.maximum(above, np.finfo(float).smallest_subnormal), 0.0)
    return np.where((above <= radius)[:, None], points, np.nextafter(points * scale[:, None], 0.0))


# --- rounds ---------------------------------------------------------------------------------------

ROOT_HALF = 0.7071067811865476
ROOT_TWO_OVER_PI = 0.7978845608028654
GRADIENT_STEPS = (40, 20, 20, 40)
"""Projected gradient steps of the rounds; the last number repeats."""
SETTLED = 6
"""Steps of the first round after which a voter's face is looked at."""
NEWTON_STEPS = 6
PATIENCE, BOLD = 3, 1e-9
"""After so many rounds steps may become this much longer than the curvature says, as long as losses fall: where all
choices are explained the loss falls like exp(-z^2/2), and steps by its curvature would be short for ever."""
SHARES = (1.0, 0.25, 0.0625)
"""Shares of a Newton step that are tried until one lowers the loss."""
ALIKE = max(len(GRADIENT_STEPS) - 1, PATIENCE)
"""The first round after which rounds are alike: one that changes nothing of a voter would change nothing again."""
CAUTION = 1.0
"""The least inverse step, in units of the largest curvature where a round starts."""
RIDGE = 1e-11
"""Added to the Hessian in units of its trace: directions that no record sees stay put."""
TOGETHER = 4
"""Voters whose numbers of free entries are the same in units of this take their Newton steps together."""
FLAT = 1e-290
"""Curvature below which a loss counts as flat: its quotients would overflow."""
CHUNK = 2**21
"""Bytes of records that are worked on together; they stay in the cache of a core."""


def _scaled(place: Array) -> Array:
    x = 3.75 * (1.0 + place) / (1.0 - place)
    return np.asarray((1.0 + 2.0 * x) * scipy.special.erfcx(x))


SERIES = chebyshev.cheb2poly(chebyshev.chebinterpolate(_scaled, 20)).tolist()  # type: ignore[arg-type, type-var]
"""Of (1 + 2x) erfcx(x) in (x - 3.75) / (x + 3.75), x >= 0 (Shepherd & Laframboise 1981): within 1e-14 relative."""


def slope(values: Array) -> Array:
    """The derivative phi/Phi of ln Phi; accurate for every sign (0 once it underflows)."""
    sizes = np.abs(values)
    sizes *= ROOT_HALF
    place = (sizes - 3.75) / (sizes + 3.75)
    scaled = place * SERIES[-1]
    for coefficient in SERIES[-2:0:-1]:
        scaled += coefficient
        scaled *= place
    scaled += SERIES[0]
    scaled /= 1.0 + 2.0 * sizes
    shrunk = np.exp(-sizes * sizes)
    above = values > 0
    found: Array = np.where(above, shrunk, 1.0)
    found *= ROOT_TWO_OVER_PI
    found /= np.where(above, 2.0 - shrunk * scaled, scaled)
    return found


def bend(values: Array, slopes: Array) -> Array:
    """The curvature -(ln Phi)'' in [0, 1], from the slope; 1 far below zero, where the difference cancels."""
    return np.where(values < -1e4, 1.0, np.minimum(np.maximum(slopes * (values + slopes), 0.0), 1.0))


class Link(NamedTuple):
    """How likely a choice is at its utility: the slope and the bend of minus its log, and that itself, by entry."""

    slope: Callable[[Array], Array]
    bend: Callable[[Array, Array], Array]
    loss: Callable[[Array], Array]

    def losses(self, values: Array) -> Array:
        """The loss of each voter."""
        return np.asarray(self.loss(values).sum(axis=1))


def _odds(values: Array) -> Array:
    """The derivative of -ln(1 + e^-u)."""
    return np.asarray(scipy.special.expit(-values))


PROBIT = Link(slope, bend, lambda values: -scipy.special.log_ndtr(values))
LOGIT = Link(_odds, lambda _, slopes: slopes * (1.0 - slopes), lambda values: -scipy.special.log_expit(values))
"""Of Bradley and Terry: a choice is made by the odds e^u."""


def each(left: Array, right: Array) -> Array:
    """Matrix products, one a voter, with the same bits in every batch (numpy treats a batch of one in another way)."""
    if len(left) == 1:
        return np.asarray(np.matmul(np.repeat(left, 2, axis=0), np.repeat(right, 2, axis=0))[:1])
    return np.asarray(np.matmul(left, right))


def seen_by(data: Array, points: Array) -> Array:
    """The utilities V_ij' b_i, (N, n)."""
    return each(data, points[..., None])[..., 0]


def pulled_by(data: Array, weights: Array) -> Array:
    """The sums over records of w_ij V_ij, (N, d)."""
    return each(weights[:, None, :], data)[:, 0, :]


def rounds(unit: Array, tolerance: float, ball: Ball, limit: int, link: Link = PROBIT) -> tuple[Array, int]:
    """Points (N, d) of the unit ball, and the largest number of steps of a voter; `unit` (N, n, d)."""
    voters, count, features = unit.shape
    points, caution = np.zeros((voters, features)), np.full(voters, CAUTION)
    size = max(1, CHUNK // (8 * count * features))
    left = np.arange(voters)
    steps = number = 0
    while left.size and steps < limit:
        descents = GRADIENT_STEPS[min(number, len(GRADIENT_STEPS) - 1)]
        floor = CAUTION if number < PATIENCE else BOLD
        open_ = []
        for start in range(0, left.size, size):
            part = left[start : start + size]
            data, point = unit[part], points[part]
            values = seen_by(data, point)
            curvature = caution[part] * largest_curvature(data, link.bend(values, link.slope(values)))
            curvature = np.where(curvature > FLAT, curvature, 1.0)
            lower = descend(data, point, curvature, ball, descents, SETTLED if number == 0 else descents, link)
            # Far from the start the curvature may be larger than it was there: then the next steps are shorter.
            failed = link.losses(seen_by(data, lower)) > link.losses(values)
            before = caution[part]
            caution[part] = np.where(failed, 4.0 * before, np.maximum(floor, 0.3 * before))
            points[part], unsolved = polish(data, np.where(failed[:, None], point, lower), ball, tolerance, link)
            moving = (points[part] != point).any(axis=1) | (caution[part] != before) | (number < ALIKE)
            open_.append(part[unsolved & moving])
        left = np.concatenate(open_)
        steps += descents + NEWTON_STEPS
        number += 1
    return points, steps


def largest_curvature(data: Array, bends: Array) -> Array:
    """About the largest eigenvalue of each voter's Hessian, seldom below it: power iteration."""
    vectors = np.cos(np.tile(np.arange(data.shape[2], dtype=float), (len(data), 1)))
    size = np.zeros(len(data))
    for _ in range(5):
        length = L2().norm(vectors)
        vectors = vectors / np.where(length > 0, length, 1.0)[:, None]
        vectors = pulled_by(data, bends * seen_by(data, vectors))
        size = L2().norm(vectors)
    return size


def descend(
    data: Array, start: Array, curvature: Array, ball: Ball, steps: int, settled: int, link: Link = PROBIT
) -> Array:
    """Accelerated projected gradient, restarted for each voter where it points uphill; at most so many steps.

    A voter whose entries have been zero, or not, for `settled` steps has found its face, and takes no more of them.
    """
    found, here = start.copy(), np.arange(len(start))
    point = ahead = start
    momentum = np.ones(len(start))
    rate = (1.0 / curvature)[:, None]
    face = start != 0
    for step in range(1, steps + 1):
        values = seen_by(data, ahead)
        uphill = pulled_by(data, link.slope(values))
        uphill *= rate
        uphill += ahead
        target = ball.project(uphill)
        move = target - point
        keep = np.einsum("ik,ik->i", ahead - target, move) <= 0
        following = 0.5 + np.sqrt(0.25 + momentum * momentum)
        move *= np.where(keep, (momentum - 1.0) / following, 0.0)[:, None]
        ahead = move + target
        momentum = np.where(keep, following, 1.0)
        point = target
        if step % settled == 0 and step < steps:
            before, face = face, point != 0
            going = (face != before).any(axis=1)
            found[here[~going]] = point[~going]
            if not going.any():
                return found
            if not going.all():
                data, point, ahead, face = data[going], point[going], ahead[going], face[going]
                momentum, rate, here = momentum[going], rate[going], here[going]
    found[here] = point
    return found


def polish(data: Array, start: Array, ball: Ball, tolerance: float, link: Link = PROBIT) -> tuple[Array, Array]:
    """Newton steps on the face of each voter, as long as they lower its loss; and who is not solved yet, (N,) bool."""
    points = start.copy()
    unsolved = np.ones(len(start), dtype=bool)
    here, turned = np.arange(len(start)), np.ascontiguousarray(data.transpose(0, 2, 1))
    point, values = start, seen_by(data, start)
    losses = link.losses(values)
    for step in range(NEWTON_STEPS + 1):
        slopes = link.slope(values)
        gradients = -pulled_by(data, slopes)
        height = ball.dual(gradients)
        gap = (gradients * point).sum(axis=1) + height
        solved = gap <= 0.5 * tolerance * losses
        unsolved[here[solved]] = False
        if step == NEWTON_STEPS or solved.all():
            break
        going = ~solved
        data, point, values, losses = data[going], point[going], values[going], losses[going]
        here, slopes, gradients = here[going], slopes[going], gradients[going]
        best, seen, lower = point.copy(), values.copy(), losses.copy()
        for careful in (False, True):
            waiting = np.flatnonzero(lower >= losses)
            if not waiting.size:
                break
            now = (point[waiting], values[waiting], slopes[waiting], gradients[waiting])
            moved = newton(turned, here[waiting], *now, ball, careful, link)
            for share in SHARES:
                if not waiting.size:
                    break
                aim = moved if share == 1.0 else point[waiting] + share * (moved - point[waiting])
                reached = seen_by(data[waiting], aim)
                best[waiting], seen[waiting], lower[waiting] = aim, reached, link.losses(reached)
                still = lower[waiting] >= losses[waiting]
                waiting, moved = waiting[still], moved[still]
        better = lower < losses
        if not better.any():
            break
        data, point, values, losses, here = data[better], best[better], seen[better], lower[better], here[better]
        points[here] = point
    return points, unsolved


def newton(
    turned: Array,
    who: Indices,
    point: Array,
    values: Array,
    slopes: Array,
    gradients: Array,
    ball: Ball,
    careful: bool,
    link: Link = PROBIT,
) -> Array:
    """One Newton step in the ball: on the face where the loss presses against the boundary, free inside.

    Args: turned (.., d, n), the records of more voters, by features, of whom `who` (N,) take the step.
    """
    features = point.shape[1]
    edge = (ball.norm(point) >= 1.0 - 1e-9) & ((gradients * point).sum(axis=1) < 0)
    free, normals, bending = ball.face(point, gradients, careful)
    free = free | ~edge[:, None]
    normals = normals * edge[:, None]
    weighted = np.sqrt(link.bend(values, slopes))
    step = np.zeros(point.shape)
    # Voters go with those that have about as many free entries, so that nothing is worked out for the others.
    widths = np.minimum(-(-free.sum(axis=1) // TOGETHER) * TOGETHER, features)
    for width in np.unique(widths):
        some = np.flatnonzero(widths == width)
        if width < features:
            places = np.argsort(~free[some], axis=1, kind="stable")[:, :width]
        else:
            places = np.broadcast_to(np.arange(features), (len(some), features))
        here = (some[:, None], places)
        root = turned[who[some][:, None], places]
        root *= weighted[some][:, None, :]
        moved = tangent(root, free[here], -gradients[here], normals[here], (bending * edge)[some])
        step[here] = moved
    return np.where(edge[:, None], ball.settle(point, step, normals, careful), ball.project(point + step))


def tangent(root: Array, free: NDArray[np.bool_], downhill: Array, normals: Array, bending: Array) -> Array:
    """The step (N, d) of free entries to the least of the second-order loss, at the normal's value where there is one.

    Args: root (N, d, n), whose products are the Hessians; bending (N,), what the boundary adds to them.
    """
    if len(root) == 1:
        root = np.repeat(root, 2, axis=0)  # as in `each`; the two factors stay one array, which numpy sees
    hessian = np.matmul(root, root.transpose(0, 2, 1))[: len(free)]
    diagonal = np.arange(free.shape[1])
    trace = np.ascontiguousarray(hessian[:, diagonal, diagonal] * free).sum(axis=1)  # one order in every layout
    trace = np.where(trace > FLAT, trace, 1.0)
    hessian *= (free[:, :, None] & free[:, None, :]) / trace[:, None, None]
    hessian[:, diagonal, diagonal] += np.where(free, RIDGE + (bending / trace)[:, None], 1.0)
    answer = np.linalg.solve(hessian, np.stack([downhill * free / trace[:, None], normals], axis=2))
    along, across = answer[..., 0], answer[..., 1]
    # On a face the step keeps the normal's value: the multiplier that does so.
    crossing = (normals * across).sum(axis=1)
    multiplier = (normals * along).sum(axis=1) / np.where(crossing > 0, crossing, 1.0)
    return np.asarray(along - multiplier[:, None] * across)


LARGEST = 1e100
"""Differences of records (in units of 1/radius) beyond this count as this, so that no square overflows."""


@dataclass(frozen=True, eq=False, slots=True)
class ProbitSolution:
    """Estimates of N voters.

    `weights` (N, d) lie in the ball in exact arithmetic on the doubles; `gaps` (N,) bound (f(b) - f*) / f(b), computed
    at these weights in double arithmetic with its rounding added (a voter whose gap exceeds the tolerance did not
    converge); `iterations` is the largest number of gradient and Newton steps that a voter took.
    """

    weights: Array
    gaps: Array
    iterations: int

    def converged(self, tolerance: float = 1e-6) -> bool:
        """Whether every voter's relative gap is at most `tolerance`."""
        return bool(np.all(self.gaps <= tolerance))


def probit_mle(
    records: Array,
    radius: float,
    tolerance: float = 1e-6,
    norm: Literal["l1", "l2"] = "l1",
    *,
    limit: int = 20_000,
    link: Link = PROBIT,
) -> ProbitSolution:
    """Each voter's maximum likelihood in a ball: b_i = argmax over ||b|| <= radius of sum_j ln Phi(b' V_ij).

    With the link of Bradley and Terry it is that of -sum_j ln(1 + e^(-b' V_ij)).

    Args: records (N, n, d), finite, chosen minus rejected; radius > 0 of the ball of `norm`; tolerance of the relative
        gap; limit on the steps of a voter.
    Returns: the weights, inside the ball in exact arithmetic whatever the records, with their gaps. A voter that
        reaches `limit` keeps its point and its (larger) gap; no error is raised: it would tell about records.
    Raises: ValueError if the shapes or the radius make no sense, or records are not finite.
    Source: Frank-Wolfe gap f(b) - f* <= g'b + B ||g||_dual (Jaggi 2013); restarts O'Donoghue & Candes 2015.
    """
    data = np.ascontiguousarray(records, dtype=np.float64)
    if data.ndim != 3 or not np.isfinite(data).all():
        raise ValueError("records are a finite array (voters, records, features)")
    if not (np.isfinite(radius) and radius > 0):
        raise ValueError("the radius is a positive number")
    if norm not in BALLS:
        raise ValueError(f"the norm is one of {', '.join(BALLS)}")
    ball = BALLS[norm]
    voters, _, features = data.shape
    if data.size == 0:
        return ProbitSolution(np.zeros((voters, features)), np.zeros(voters), 0)
    with np.errstate(over="ignore", under="ignore"):
        # In units of the radius every ball is the unit ball.
        unit = np.minimum(np.maximum(data * radius, -LARGEST), LARGEST)
        points, iterations = rounds(unit, tolerance, ball, limit, link)
        weights = inside(points * radius, radius, ball)
        return ProbitSolution(weights, relative_gaps(unit, weights / radius, ball, link), iterations)


def relative_gaps(unit: Array, points: Array, ball: Ball, link: Link = PROBIT) -> Array:
    """Bounds on (f - f*) / f over the unit ball at points (N, d), with the rounding of the sums added."""
    count, features = unit.shape[1:]
    gaps = np.empty(len(points))
    size = max(1, 2**20 // (8 * count * features))
    for start in range(0, len(points), size):
        part = slice(start, start + size)
        values = seen_by(unit[part], points[part])
        hazards = link.slope(values)
        gradients = pulled_by(unit[part], hazards)
        height = ball.dual(gradients)
        raw = height - (gradients * points[part]).sum(axis=1) + (count + features + 8) * 2.0**-52 * height
        losses = link.losses(values)
        gaps[part] = np.where(height > 0, np.maximum(raw, 0.0) / np.maximum(losses, np.finfo(float).tiny), 0.0)
    return gaps
