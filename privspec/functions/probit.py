"""Learning weights from pairwise choices (Wang et al. 2019): `probit_mle` and its routes.

A route says what of a voter's choices can be made noisy, and how far one unit moves it. The objective is expanded
about 0 to second order, ln Phi(u) = ln(1/2) + c1 u - c2 u^2 with c1 = sqrt(2 / pi) and c2 = 1 / pi (Wang et al. 2019,
Algorithm 3; Zhang et al. 2012). Records are gridded inside their ball before anything else, and the coefficients of
every record are rounded towards zero by themselves: sums are exact.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from importlib import import_module
from math import isqrt
from typing import Any, ClassVar

import numpy as np

from privspec.core.records import dataclass
from privspec.model.domains import Ball, Domain, L1Ball, Numbers, Type
from privspec.model.library import (
    GRID,
    GRID_BITS,
    Arguments,
    Bound,
    Bounds,
    Function,
    FunctionError,
    NormName,
    Records,
    Route,
    Steps,
    Unit,
    by_name,
    without_value,
)
from privspec.model.values import Array, show

SLOPE = Fraction(836_642, 2**GRID_BITS)
"""c1 = sqrt(2 / pi) to 20 binary places, below it."""
CURVE = Fraction(333_772, 2**GRID_BITS)
"""c2 = 1 / pi to 20 binary places, below it."""
PAIR = Fraction(1_482_910, 2**GRID_BITS)
"""sqrt 2 to 20 binary places, below it: the weight of a product of two features, which stands for two entries."""
WIDER = 10
"""Signs and directions are those of an estimate in a ball that many times wider: their spreads do not depend on it, and
a bound that binds, as it does where records were drawn in to a small ball, would set many weights to zero."""


def root_up(value: Fraction) -> Fraction:
    """A rational number not below the square root of one that is not negative, within 2^-40."""
    return Fraction(isqrt(value.numerator * 2**80 // value.denominator + 1) + 1, 2**40)


def _solver() -> Any:
    # Looked up when it runs: whoever only reads what the routes promise must not load a solver.
    return import_module("privspec.solvers.probit")


def probit_routes(records: Records, within: Domain | None) -> tuple[Route, ...]:
    """Every route that records of that kind allow."""
    if not isinstance(within, Ball):
        return ()
    result = Result(records, within)
    wide = Result(records, type(within)(within.radius * WIDER, within.dimension))
    found: list[Route] = [result, Direction(records, within, wide), Signs(records, within, wide)]
    if records.radius is not None:
        sums = Sums(records, within, records.radius)
        found += [Objective(records, within, records.radius), sums, Direction(records, within, sums)]
    return tuple(found)


def logit_routes(records: Records, within: Domain | None) -> tuple[Route, ...]:
    """The same of choices by odds, but its objective, whose expansion is another."""
    if not isinstance(within, Ball):
        return ()
    wide = ByOdds(records, type(within)(within.radius * WIDER, within.dimension))
    found: list[Route] = [ByOdds(records, within), Direction(records, within, wide), Signs(records, within, wide)]
    if records.radius is not None:
        sums = Sums(records, within, records.radius)
        found += [sums, Direction(records, within, sums)]
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Common(ABC):
    """What the routes share: a party's records and the ball of the weights."""

    records: Records
    within: Ball
    note: ClassVar[str] = "probit-routes"
    linear: ClassVar[bool] = True

    @property
    def based_on(self) -> Route | None:
        """None: its statistics are worked out of the records."""
        return None

    @property
    def size(self) -> int:
        """The numbers of a statistic: as many as weights, if nothing else is said."""
        return self.within.dimension

    def statistic(self, records: Array) -> Array:
        """By way of the route that it is derived from."""
        assert self.based_on is not None
        return self.derived(self.based_on.statistic(records))

    def derived(self, statistic: Array) -> Array:
        """The statistic itself."""
        return statistic

    @abstractmethod
    def bound(self) -> Bounds:
        """How large a statistic is."""

    def spread(self, unit: Unit) -> Bounds:
        """Any two statistics, whatever the unit: one record can turn an estimate round."""
        return {norm: 2 * size for norm, size in self.bound().items()}

    def finish(self, statistic: Array) -> Array:
        """Nothing is left to do; a scale that is not known, a loss that needs one will tell."""
        return statistic

    link: ClassVar[str] = "PROBIT"

    def weights(self, records: Array) -> Array:
        """The most probable weights (N, d) of records (N, n, d)."""
        solver, radius = _solver(), float(self.within.radius)
        found: Array = solver.probit_mle(
            records, radius, norm=_norm(self.within), link=getattr(solver, self.link)
        ).weights
        return found

    @property
    def times(self) -> dict[Unit, int]:
        """Records that one unit holds."""
        return {Unit.RECORD: 1, Unit.PARTY: self.records.count}

    def to_json(self) -> dict[str, Any]:
        """The ball of the weights."""
        return {"within": ball_json(self.within)}


def ball_json(ball: Ball) -> dict[str, str]:
    """Norm and radius, exactly."""
    return {"norm": _norm(ball), "radius": str(ball.radius)}


def _norm(ball: Ball) -> str:
    return "l1" if isinstance(ball, L1Ball) else "l2"


def estimated_in(ball: Ball) -> str:
    """Weights that were looked for in a ball of their own, in words."""
    norm = "l1 ball" if isinstance(ball, L1Ball) else "ball"
    return f"weights estimated in the {norm} of radius {show(ball.radius)}"


@dataclass(frozen=True, slots=True)
class Result(_Common):
    """The estimated weights themselves (Wang et al., Algorithms 1 and 2): two points of one ball."""

    name = "estimated weights"
    at = "result"

    def statistic(self, records: Array) -> Array:
        return self.weights(records)

    def exact(self, records: Steps) -> Steps:
        """The weights, rounded towards zero and kept in the ball in whole steps, whatever a solver returns."""
        return kept_inside(self.weights(records.astype(np.float64) / 2**GRID_BITS), self.within)

    def bound(self) -> Bounds:
        """The radius; in the Euclidean ball the l1 norm is sqrt(d) times it at most."""
        radius = self.within.radius
        l1 = radius if isinstance(self.within, L1Ball) else radius * root_up(Fraction(self.within.dimension))
        return {NormName.L1: l1, NormName.L2: radius, NormName.LINF: radius}


@dataclass(frozen=True, slots=True)
class ByOdds(Result):
    """The estimated weights of choices by odds: two points of one ball, whatever the estimate is."""

    link: ClassVar[str] = "LOGIT"


@dataclass(frozen=True, slots=True)
class Signs(_Common):
    """The signs of the estimated weights: they keep the direction, roughly, and none of the size."""

    of: Result
    at = "signs"

    @property
    def name(self) -> str:
        """With the ball of the estimate, which is not that of the weights."""
        return f"signs of the {estimated_in(self.of.within)}"

    def to_json(self) -> dict[str, Any]:
        return {**_Common.to_json(self), "estimated_within": ball_json(self.of.within)}

    @property
    def based_on(self) -> Route:
        return self.of

    def derived(self, statistic: Array) -> Array:
        return np.sign(statistic)

    def exact(self, records: Steps) -> Steps:
        """-1, 0 or 1, in steps."""
        weights = self.of.weights(records.astype(np.float64) / 2**GRID_BITS)
        signs: Steps = ((weights > 0).astype(np.int64) - (weights < 0)) << GRID_BITS
        return signs

    def bound(self) -> Bounds:
        d = Fraction(self.within.dimension)
        return {NormName.L1: d, NormName.L2: root_up(d), NormName.LINF: Fraction(1)}


@dataclass(frozen=True, slots=True)
class Sums(_Common):
    """The sum of a voter's records: the first-order statistics, whose direction estimates that of the weights."""

    radius: Fraction
    name = "sum of the records"
    at = "records"

    @property
    def size(self) -> int:
        return self.records.dimension

    def statistic(self, records: Array) -> Array:
        """The sum over the records."""
        total: Array = records.sum(axis=1)
        return total

    def exact(self, records: Steps) -> Steps:
        """The sum over the records."""
        total: Steps = records.sum(axis=1)
        return total

    def spread(self, unit: Unit) -> Bounds:
        """Twice the ball, for each record of the unit."""
        return {norm: 2 * size * self.times[unit] for norm, size in self._ball().items()}

    def bound(self) -> Bounds:
        """The ball, for every record."""
        return {norm: size * self.records.count for norm, size in self._ball().items()}

    def _ball(self) -> dict[NormName, Fraction]:
        wide = root_up(Fraction(self.records.dimension))
        return {NormName.L1: self.radius * wide, NormName.L2: self.radius, NormName.LINF: self.radius}


@dataclass(frozen=True, slots=True)
class Direction(_Common):
    """A vector of the voter at length one: a loss that compares directions sees nothing else of it."""

    of: Result | Sums

    @property
    def name(self) -> str:
        """Of what it is the direction."""
        whole = isinstance(self.of, Result)
        return f"direction of the {estimated_in(self.of.within) if whole else self.of.name}"

    def to_json(self) -> dict[str, Any]:
        """The ball of the weights, and that of the estimate where it is taken of one."""
        of = {"estimated_within": ball_json(self.of.within)} if isinstance(self.of, Result) else {}
        return {**_Common.to_json(self), **of}

    @property
    def at(self) -> str:
        """The word "direction" for the weights, "direction_of_records" for their sum."""
        return "direction" if isinstance(self.of, Result) else "direction_of_records"

    @property
    def size(self) -> int:
        return self.of.size

    @property
    def based_on(self) -> Route:
        return self.of

    def derived(self, statistic: Array) -> Array:
        """The vector over its length; zero stays zero."""
        return _unit(statistic)

    def exact(self, records: Steps) -> Steps:
        """Rounded towards zero: they stay in the unit ball."""
        units = _unit(self.of.exact(records).astype(np.float64))
        # 2^-40 off first: a double of length one may be longer than one by its rounding.
        found: Steps = np.trunc(units * (1 - 2.0**-40) * 2**GRID_BITS).astype(np.int64)
        return found

    def bound(self) -> Bounds:
        return {NormName.L1: root_up(Fraction(self.size)), NormName.L2: Fraction(1), NormName.LINF: Fraction(1)}


def _unit(weights: Array) -> Array:
    squares = np.zeros(weights.shape[:-1])
    for column in np.moveaxis(weights, -1, 0):  # in one order of summation: no other row may touch a row's last bit
        squares += column * column
    lengths = np.sqrt(squares)[..., None]
    units: Array = weights / np.where(lengths > 0, lengths, 1.0)
    return units


def kept_inside(points: Array, ball: Ball) -> Steps:
    """Points (N, d) in steps, rounded towards zero; one that is not in the ball, in exact arithmetic, becomes zero.

    The noise relies on the ball. A solver that keeps its promise leaves the ball by the rounding of doubles at most,
    which rounding towards zero undoes unless the radius lies just below a step.
    """
    limit = ball.radius * 2**GRID_BITS
    sizes = np.abs(points)
    fits: np.ndarray[Any, Any] = np.where(np.isfinite(sizes), sizes, np.inf).max(axis=-1) <= 2 * float(ball.radius)
    steps: Steps = np.trunc(np.where(fits[:, None], points, 0.0) * 2**GRID_BITS).astype(np.int64)
    if isinstance(ball, L1Ball):
        outside = np.abs(steps).sum(axis=1) > int(limit)
    else:
        outside = np.zeros(len(steps), dtype=bool)
        squares = (steps.astype(np.float64) ** 2).sum(axis=1)
        for i in np.flatnonzero(squares > float(limit) ** 2 * (1 - 1e-9)):
            outside[i] = sum(int(step) ** 2 for step in steps[i]) > limit**2
    return np.where(outside[:, None], 0, steps)


@dataclass(frozen=True, slots=True)
class Objective(_Common):
    """The coefficients of the second-order objective (Wang et al., Algorithm 3: the functional mechanism).

    Statistic: c1 times the sum of the records, then c2 times the sum of their products, one number for each pair of
    features, off the diagonal times sqrt 2: its l2 norm is that of (c1 sum V, c2 sum V V').
    """

    radius: Fraction
    name = "coefficients of the objective"
    at = "objective"
    linear = False

    @property
    def size(self) -> int:
        """D + d (d + 1) / 2."""
        d = self.records.dimension
        return d + d * (d + 1) // 2

    def _factors(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], Array]:
        rows, columns = np.triu_indices(self.records.dimension)
        return rows, columns, np.where(rows == columns, float(CURVE), float(CURVE * PAIR))

    def statistic(self, records: Array) -> Array:
        rows, columns, factor = self._factors()
        products = np.einsum("vni,vnj->vij", records, records)[:, rows, columns]
        return np.concatenate([float(SLOPE) * records.sum(axis=1), products * factor], axis=1)

    def exact(self, records: Steps) -> Steps:
        """The coefficients of every record rounded towards zero, then added up."""
        rows, columns = np.triu_indices(self.records.dimension)
        slope = _towards_zero(records * int(SLOPE * 2**GRID_BITS), GRID_BITS).sum(axis=1)
        products = _towards_zero(records[:, :, rows] * records[:, :, columns], GRID_BITS)
        weight = np.where(rows == columns, int(CURVE * 2**GRID_BITS), int(CURVE * PAIR * 2**GRID_BITS))
        curve = _towards_zero(products * weight, GRID_BITS).sum(axis=1)
        found: Steps = np.concatenate([slope, curve], axis=1)
        return found

    def spread(self, unit: Unit) -> Bounds:
        """The largest over all pairs of records, by the angle between them; rounding is below three steps each."""
        d, times = self.records.dimension, self.times[unit]
        rounding = 6 * GRID
        r = self.radius
        l1, l2 = _spreads(r, d)
        linf = max(2 * SLOPE * r, CURVE * PAIR * r * r)
        size = Fraction(self.size)
        return {
            NormName.L1: times * (l1 + size * rounding),
            NormName.L2: times * (l2 + root_up(size) * rounding),
            NormName.LINF: times * (linf + rounding),
        }

    def bound(self) -> Bounds:
        d, n, r = Fraction(self.records.dimension), self.records.count, self.radius
        l1 = SLOPE * r * root_up(d) + CURVE * r * r * d
        l2 = root_up((SLOPE * r) ** 2 + (CURVE * r * r) ** 2)
        return {NormName.L1: n * l1, NormName.L2: n * l2, NormName.LINF: n * max(SLOPE * r, CURVE * r * r)}

    def finish(self, statistic: Array) -> Array:
        """The largest of the noisy objective in the ball, once its curvature is made positive semi-definite."""
        d = self.records.dimension
        rows, columns = np.triu_indices(d)
        flat = statistic.reshape(-1, self.size)
        curve = np.zeros((len(flat), d, d))
        curve[:, rows, columns] = flat[:, d:] * np.where(rows == columns, 1.0, 1.0 / float(PAIR))
        curve = curve + curve.swapaxes(1, 2)
        curve[:, np.arange(d), np.arange(d)] /= 2
        found = largest_quadratic(flat[:, :d], curve, self.within)
        weights: Array = found.reshape(*statistic.shape[:-1], d)
        return weights


def _towards_zero(values: Steps, bits: int) -> Steps:
    found: Steps = np.where(values < 0, -((-values) >> bits), values >> bits)
    return found


def _l1(cosine: Fraction, radius: Fraction, d: int) -> Fraction:
    """Both parts by Cauchy-Schwarz, over d and d (d + 1) / 2 numbers; two records of full length are the worst."""
    linear, quadratic = root_up(d * (2 - 2 * cosine)), root_up(d * (d + 1) * (1 - cosine**2))
    return SLOPE * radius * linear + CURVE * radius**2 * quadratic


def _l2(cosine: Fraction, radius: Fraction) -> Fraction:
    return root_up((SLOPE * radius) ** 2 * (2 - 2 * cosine) + (CURVE * radius**2) ** 2 * (2 - 2 * cosine**2))


CELLS = 2048
STILL = 1e-12
"""The largest move of a weight, in units of the radius, that ends the ascent."""


@lru_cache(maxsize=256)
def _spreads(radius: Fraction, d: int) -> tuple[Fraction, Fraction]:
    """The largest l1 and l2 distances of the coefficients of two records of d features in the ball."""
    l1 = _largest(lambda cosine: _l1(cosine, radius, d))
    return l1, max(2 * SLOPE * radius, _largest(lambda cosine: _l2(cosine, radius)))


def _largest(value: Callable[[Fraction], Fraction]) -> Fraction:
    """An upper bound on the largest value over cosines from -1 to 1, of a function that is concave there.

    A concave function lies below the chords of its neighbours, carried on: the bound over a cell is the larger of the
    two lines at its far ends.
    """
    ends = [Fraction(2 * i, CELLS) - 1 for i in range(CELLS + 1)]
    values = [value(cosine) for cosine in ends]
    best = max(values)
    for i in range(CELLS):
        before = 2 * values[i] - values[i - 1] if i > 0 else None
        after = 2 * values[i + 1] - values[i + 2] if i + 2 <= CELLS else None
        limits = [limit for limit in (before, after) if limit is not None]
        best = max(best, min(max(limit, values[i], values[i + 1]) for limit in limits))
    return best


def largest_quadratic(slope: Array, curve: Array, within: Ball, steps: int = 300) -> Array:
    """Argmax of slope' b - b' curve b over the ball, batched (M, d): negative curvature is cut off at zero first.

    Source: accelerated projected gradient ascent (Beck & Teboulle 2009), restarted for each of them where a step turns
    back (O'Donoghue & Candes 2015); post-processing, so its accuracy is no matter of privacy.
    """
    values, vectors = np.linalg.eigh(curve)
    kept = np.einsum("mij,mj,mkj->mik", vectors, np.maximum(values, 0.0), vectors)
    step = 1.0 / np.maximum(2 * values[:, -1:], 1e-9)
    radius, ball = float(within.radius), _solver().BALLS[_norm(within)]
    found = np.zeros_like(slope)
    point = ahead = found
    left, momentum = np.arange(len(slope)), np.ones((len(slope), 1))
    for _ in range(steps):
        gradient = slope - 2 * (kept @ ahead[:, :, None])[:, :, 0]
        moved: Array = ball.project((ahead + step * gradient) / radius) * radius
        move = moved - point
        momentum[np.einsum("mj,mj->m", ahead - moved, move) > 0] = 1.0
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = moved + (momentum - 1) / following * move
        found[left] = point = moved
        momentum = following
        going = np.abs(move).max(axis=1, initial=0.0) >= STILL * radius
        if not going.any():
            break
        if not going.all():
            left, point, ahead, momentum = left[going], point[going], ahead[going], momentum[going]
            slope, kept, step = slope[going], kept[going], step[going]
    return found


def _of_choices(arguments: Arguments, name: str) -> Bound:
    kind = arguments[0].type
    if not isinstance(kind.element, Numbers) or len(kind.shape) != 2:
        message = f"{name} takes one row per choice (n x d: chosen minus rejected), and this is {kind.describe()}"
        raise FunctionError(message, 0, code="PS0207")
    dimension = kind.shape[1]
    within = arguments.keywords.get("within")
    domain = None
    if within is not None:
        domain = within.domain
        if not isinstance(domain, Ball):
            raise FunctionError("within must be a ball: l1_ball(r, d) or l2_ball(r, d)", "within")
        if domain.dimension != dimension:
            message = f"the ball has {domain.dimension} dimensions and the choices have {dimension} features"
            raise FunctionError(message, "within", code="PS0207")
    by_routes = without_value("the estimate is computed by its routes only")
    return Bound(Type((dimension,)), by_routes, domain=domain)


FUNCTIONS: Mapping[str, Function] = by_name(
    Function("probit_mle(V, within = l1_ball(B, d))", _of_choices, keywords=("within",), routes=probit_routes),
    Function("logit_mle(V, within = l1_ball(B, d))", _of_choices, keywords=("within",), routes=logit_routes),
)
