"""The least Gaussian noise on tables of counts, a variance for each set of columns, and the bound that shows it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import prod, sinh, sqrt
from typing import Any

import numpy as np
import scipy

from privspec.core.matrices import DyadicMatrix
from privspec.core.records import dataclass
from privspec.core.rounding import short_up
from privspec.families.decision import STEP, Alternative, decimal_up, gaussian_prices, price, shares_of
from privspec.families.family import Settings
from privspec.families.gaussian.release import exact
from privspec.families.gaussian.structured import Offer, Structured, System, finest, grown, prices
from privspec.kernel import marginals
from privspec.kernel.chains import FINEST
from privspec.kernel.core.numbers import sqrt_up
from privspec.kernel.core.problem import Obligation
from privspec.kernel.core.reading import Grid
from privspec.kernel.marginals import Kinds, Strategies, asked_of, kinds_of, ordered_bound
from privspec.kernel.measures import GAUSSIAN
from privspec.kernel.strategies.residuals import WORST_COLUMNS, Subset
from privspec.kernel.writing import array, write
from privspec.model.graph import Model
from privspec.model.requirements import Requirement
from privspec.problem import marginals as reading
from privspec.solvers.marginals import Array, Shares, least_worst, strategies
from privspec.solvers.marginals import Strategies as Found

SPARE = 1e-12
"""By so much of itself a variance is larger than the solver says."""
BITS = 43
"""Binary digits of a deviation."""
GRID = Fraction(1, 2**30)
"""Of the noisy parts, in deviations."""
SOLVER = "residual spaces"
ORDERED_SPARE, MATRIX_BITS = 1e-11, 56
"""By so much of itself a strategy is smaller than the solver says; binary digits of the largest entry of a matrix."""
CLOSE = 1e-9
"""By so much of itself a difference of records may exceed the limit before it is looked at by itself."""
ROUNDS = 60
FEW = 500
"""Tables up to which Laplace noise is looked at beside Gaussian noise: one record counts in each of them."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A row of the program: a line, and the columns in which two cells differ (None: a record comes or goes)."""

    line: int
    differing: frozenset[int] | None


class TableCounts(Structured):
    """Takes counts of one large table by some of its columns; `spends`: its noise is Gaussian, also as a part."""

    spends = (GAUSSIAN,)

    def offers(self, system: System, settings: Settings) -> Iterator[Offer]:
        """The noise of least loss of each kind."""
        if system.block.ordered:
            yield _in_order(system, settings)
        else:
            yield from _residual(system, settings)
            yield from _on_each_table(system)

    def size(self, system: System) -> int:
        """Sets of columns, or cells of those in order."""
        found: int = max(len(system.block.subsets), system.block.cells)
        return found


def _residual(system: System, settings: Settings) -> Iterator[Offer]:
    """A variance for each set of columns, where Gaussian noise is enough for every line."""
    model, block, mus = system.model, system.block, system.mus
    if not reading.gaussian(model):
        return
    limits, shares = _solved(system, mus)
    executed = _executed(system, shares)
    yield Offer(
        "Gaussian noise in the residual spaces of sets of columns",
        float(max(executed.losses())),
        write(executed),
        [{"mu": decimal_up(_reached(executed, asked))} for asked in system.frame.obligations],
        executed.notes,
        _witness(system, limits, shares, mus),
        partial(marginals.bound, system.frame.obligations, block),
        marginals.AMONG,
        lambda: prices(model, lambda eased: _solved(system, eased)[1].upper, shares.upper),
        {"name": SOLVER, "iterations": shares.steps},
        tuple(_alternatives(system, mus)) if settings.alternatives else (),
    )


def _on_each_table(system: System) -> Iterator[Offer]:
    """Laplace noise, where lines ask for pure epsilon; what no noise of it is below (Hammersley, Chapman, Robbins)."""
    model, block = system.model, system.block
    if not reading.separate(model) or (reading.gaussian(model) and len(block.tables) > FEW):
        return
    mus = [2 * sinh(float(line.measure.pure_epsilon or 0) / 2) for line in model.requirements]
    limits, shares = _solved(system, mus)
    executed = _separate(system)
    yield Offer(
        "Laplace noise on each table",
        float(max(executed.losses())),
        write(executed),
        [{"epsilon": str(_pure(executed, asked))} for asked in system.frame.obligations],
        marginals.Separate.notes,
        _witness(system, limits, shares, mus, pure=True),
        partial(marginals.bound, system.frame.obligations, block, pure=True),
        marginals.PURE,
        partial(_of_epsilon, model),
        {"name": SOLVER, "iterations": shares.steps},
    )


def _moving(system: System) -> tuple[Subset, ...]:
    """The sets of columns whose parts some line hides: the number of records only where they come and go."""
    counted = any(marginals.unit_of(one, system.block).adding for one in system.frame.obligations)
    return tuple(own for own in system.block.subsets if own or counted)


# --- the program -----------------------------------------------------------------------------------------


def _costs(block: marginals.Marginals, moving: tuple[Subset, ...]) -> Any:
    """How the variances enter each term of the loss (terms, parts)."""
    places = {own: s for s, own in enumerate(moving)}
    rows, columns, values = list[int](), list[int](), list[float]()
    for row, term in enumerate(block.terms):
        for own, value in block.coefficients(list(term)).items():
            if own in places:
                rows.append(row)
                columns.append(places[own])
                values.append(float(value))
    return scipy.sparse.csr_array((values, (rows, columns)), shape=(len(block.terms), len(moving)))


def _row(system: System, limit: Limit, mu: float) -> Array:
    """What 1 / sigma_S^2 adds to a limit, of which 1 is allowed."""
    block, count = system.block, marginals.unit_of(system.frame.obligations[limit.line], system.block).count
    moved = limit.differing
    found = [block.share(own) if moved is None else block.moved(own, moved) for own in _moving(system)]
    return np.array([float(value) for value in found]) * (count / mu) ** 2


def _solved(system: System, mus: list[float]) -> tuple[list[Limit], Shares]:
    """The rows that were looked at, and the variances: rows are added until no move of a record exceeds them."""
    block, moving = system.block, _moving(system)
    costs = _costs(block, moving)
    used = sorted({i for own in moving for i in own})
    limits = list[Limit]()
    for line, asked in enumerate(system.frame.obligations):
        if marginals.unit_of(asked, block).adding:
            limits.append(Limit(line, None))
        else:
            some = [frozenset(used), *(frozenset((i,)) for i in used)]
            limits += [Limit(line, one) for one in dict.fromkeys(some)]
    for _ in range(ROUNDS):
        rows = np.array([_row(system, one, mus[one.line]) for one in limits])
        shares = least_worst(costs, rows)
        if len(used) > WORST_COLUMNS or all(one.differing is None for one in limits):
            break
        found = [one for one in _worst_moves(system, used, shares, mus) if one not in limits]
        if not found:
            break
        limits += found
    return limits, shares


def _worst_moves(system: System, used: list[int], shares: Shares, mus: list[float]) -> Iterator[Limit]:
    """For each line about records that move, the columns that make the largest difference, if that is too large."""
    block, places = system.block, {column: k for k, column in enumerate(used)}
    values = np.zeros(2 ** len(used))
    for own, variance in zip(_moving(system), shares.variances.tolist(), strict=True):
        values[sum(1 << places[i] for i in own)] += 1 / (variance * prod(block.sizes[i] for i in own))
    table = values.reshape((2,) * len(used))
    for column, k in places.items():
        bare, held = np.moveaxis(table, len(used) - 1 - k, 0)
        table = np.moveaxis(np.stack([bare + (block.sizes[column] - 1) * held, bare - held]), 0, len(used) - 1 - k)
    flat = table.reshape(-1)
    worst = int(flat.argmin())
    most = 2 * float(flat[0] - flat[worst])
    for line, asked in enumerate(system.frame.obligations):
        unit = marginals.unit_of(asked, block)
        if not unit.adding and most * (unit.count / mus[line]) ** 2 > 1 + CLOSE:
            yield Limit(line, frozenset(i for i, k in places.items() if worst >> k & 1))


# --- in exact numbers ------------------------------------------------------------------------------------


def _executed(system: System, shares: Shares) -> marginals.Residuals:
    """The deviations, rounded up until each line is met exactly."""
    block, moving = system.block, _moving(system)

    def built(spare: float) -> marginals.Residuals:
        variances = zip(moving, shares.variances.tolist(), strict=True)
        sizes = dict.fromkeys(block.subsets, Fraction(0))
        sizes |= {one: short_up(Fraction(float(np.sqrt(variance * (1 + spare)))), BITS) for one, variance in variances}
        return marginals.Residuals(block, tuple(sizes[own] for own in block.subsets), GRID, Fraction(1))

    found = grown(SPARE, built, lambda one: all(_meets(one, *line) for line in system.lines))
    least = min((v for table in block.tables if (v := float(found.variance(table))) > 0), default=1.0)
    return replace(found, output_grid=Fraction(2) ** finest(least))


def _meets(found: marginals.Residuals, requirement: Requirement, asked: Obligation) -> bool:
    allowed, reached = requirement.measure.gaussian_mu_down(), _reached(found, asked)
    return allowed is not None and Fraction(decimal_up(reached)) <= allowed


def _reached(found: marginals.Residuals | Strategies, asked: Obligation) -> Fraction:
    """The mu of a line, rounded up."""
    change = marginals.unit_of(asked, found.block)
    return sqrt_up(found.strategy.quadratic_sensitivity(change, frozenset(found.outputs)), 100)


def _witness(
    system: System, limits: list[Limit], shares: Shares, mus: list[float], *, pure: bool = False
) -> dict[str, Any]:
    """The shares as the kernel takes them: masses of the lines are shares of the limits over mu^2."""
    masses: list[list[dict[str, Any]]] = [[] for _ in mus]
    for limit, share in zip(limits, shares_of(shares.limits), strict=True):
        if share:
            mass = Fraction(float(share) / mus[limit.line] ** 2)
            differing = None if limit.differing is None else sorted(limit.differing)
            masses[limit.line].append({"differing": differing, "mass": str(mass)})
    lines = [
        {"mu": system.mu_of(number) if some and not pure else None, "masses": some}
        for number, some in enumerate(masses)
    ]
    return {"terms": [str(share) for share in shares_of(shares.terms)], "lines": lines}


# --- others ----------------------------------------------------------------------------------------------


def _alternatives(system: System, mus: list[float]) -> Iterator[Alternative]:
    """What usual ways to add noise to these tables would cost, each at its least."""
    block, tables = system.block, system.block.tables
    cells = [prod(block.sizes[i] for i in own) for own in tables]
    weights = np.zeros((len(block.terms), len(tables)))
    if weights.size > 2**24:
        return
    for row, term in enumerate(block.terms):
        for table, weight in term:
            weights[row, table] = float(weight) * cells[table]
    units = [marginals.unit_of(asked, block) for asked in system.frame.obligations]
    factor = max((u.count / mu) ** 2 * (1 if u.adding else 2) for u, mu in zip(units, mus, strict=True))
    every = float(prod(block.sizes))
    found = [
        ("equal noise on each answer", len(tables) * weights.sum(axis=1).max()),
        ("noise on each table, each of its own size", least_worst(weights, np.ones((1, len(tables)))).upper),
        ("equal noise on each cell of the whole table", float(max(weights @ (every / np.array(cells, dtype=float))))),
    ]
    for name, loss in sorted(found, key=lambda one: one[1]):
        if np.isfinite(loss * factor):
            yield Alternative(name, float(loss * factor))


def _separate(system: System) -> marginals.Separate:
    """Laplace noise on every table, or on those only that are within no other: the better of the two."""
    block = system.block
    every = list(range(len(block.tables)))
    sets = [set(own) for own in block.tables]
    whole = [t for t in every if not any(sets[t] < other for other in sets)] if len(every) <= FEW else every
    found = [_scaled(system, every)] + ([] if whole == every else [_scaled(system, whole)])
    return min(found, key=lambda one: max(one.losses()))


def _scaled(system: System, noisy: list[int]) -> marginals.Separate:
    """Scales of the noisy tables: the least sum of c b^2 for a sum of 1 / b, where one sum counts, else equal ones."""
    block = system.block
    costs = np.zeros(len(block.tables))
    bare = marginals.Separate(block, tuple(Fraction(1) if t in set(noisy) else None for t in range(len(costs))))
    for table, weight in block.terms[0]:
        source = bare.sources[table]
        costs[source] += float(weight) * prod(block.sizes[i] for i in block.tables[source])
    roots = costs ** (1 / 3) if len(block.terms) == 1 else (costs > -1).astype(float)
    shares = {t: short_up(Fraction(float(sum(roots[s] for s in noisy) / roots[t])), BITS) for t in noisy}
    bare = marginals.Separate(block, tuple(shares.get(t) for t in range(len(costs))))
    times = max(_epsilon(bare, asked) / (line.measure.pure_epsilon or Fraction(1)) for line, asked in system.lines)

    def built(spare: float) -> marginals.Separate:
        scales = {
            t: max(short_up(Fraction(float(scale * times) * (1 + spare)), BITS), FINEST) for t, scale in shares.items()
        }
        return marginals.Separate(block, tuple(scales.get(t) for t in range(len(costs))))

    def meets(found: marginals.Separate) -> bool:
        return all(_pure(found, asked) <= (line.measure.pure_epsilon or 0) for line, asked in system.lines)

    return grown(SPARE, built, meets)


def _pure(found: marginals.Separate, asked: Obligation) -> Fraction:
    """The epsilon of a line, rounded up."""
    return Fraction(decimal_up(_epsilon(found, asked)))


def _epsilon(found: marginals.Separate, asked: Obligation) -> Fraction:
    change = marginals.unit_of(asked, found.block)
    return found.strategy.absolute_sensitivity(change, frozenset(found.outputs))


# --- what a tenth more of an amount in a line would bring -----------------------------------------------


def _of_epsilon(model: Model) -> Iterator[dict[str, Any]]:
    """More pure epsilon, where one line asks for it."""
    if len(model.requirements) == 1:
        yield price(model.requirements[0], float(1 / STEP**2) - 1)


# --- columns in order: strategies that share one limit ---------------------------------------------------


def _in_order(system: System, settings: Settings) -> Offer:
    """Strategies of least loss, at the least that a line allows one record."""
    block, model = system.block, system.model
    allowed, line = min(
        ((requirement.measure.gaussian_mu_down() or Fraction(0)) / marginals.unit_of(asked, block).count, number)
        for number, (requirement, asked) in enumerate(system.lines)
    )
    found = _strategies(block)
    executed = _rounded(block, found, allowed)
    return Offer(
        "correlated Gaussian noise in the residual spaces of sets of columns",
        float(max(executed.losses())),
        write(executed),
        [{"mu": decimal_up(_reached(executed, asked))} for asked in system.frame.obligations],
        executed.notes,
        _ordered_witness(found, line, system.mu_of(line)),
        partial(ordered_bound, system.frame.obligations, block),
        marginals.AMONG,
        lambda: gaussian_prices(model.requirements[0]) if len(model.requirements) == 1 else (),
        {"name": SOLVER},
        tuple(_ordered_alternatives(block, float(allowed))) if settings.alternatives else (),
    )


def _strategies(block: marginals.Marginals) -> Found:
    """The strategies of least loss, at a limit of 1, one for all sets of columns whose V_T are alike up to a factor."""
    from privspec.families.gaussian.drawing import floats  # few tables have columns in order

    kinds = kinds_of(block)
    asked = [floats(asked_of(block, weights)) for weights in kinds.weights]
    return strategies(asked, _kind_prices(block, kinds).tolist())


def _kind_prices(block: marginals.Marginals, kinds: Kinds) -> Array:
    """Of each kind: sets T of one kind, V_T = a_T V, are as one whose price has the root of the sum of all p_T a_T."""
    found = np.zeros(len(kinds.weights))
    for own, (kind, factor) in kinds.places.items():
        found[kind] += sqrt(block.share(own) * factor)
    return found**2


def _rounded(block: marginals.Marginals, found: Found, allowed: Fraction) -> Strategies:
    """What is executed at the mu that one record may have."""
    mu, kinds = float(allowed), kinds_of(block)
    priced = _kind_prices(block, kinds)

    def built(spare: float) -> Strategies:
        parts = list[marginals.Part]()
        for own, (kind, factor) in kinds.places.items():
            part, size = found.parts[kind], mu * (1 - spare) * (priced[kind] * factor / block.share(own)) ** 0.25
            rounded = (DyadicMatrix.rounded(one, MATRIX_BITS) for one in (part.strategy * size, part.estimates / size))
            parts.append(marginals.Part(*(exact(one) for one in rounded)))
        # no deviation is below 1 / mu
        return Strategies(block, tuple(parts), GRID, Fraction(2) ** finest(mu**-2))

    def meets(one: Strategies) -> bool:
        return sqrt_up(one.of_one, 100) <= allowed * (1 - Fraction(1, 10**14))

    return grown(ORDERED_SPARE, built, meets)


def _ordered_witness(found: Found, line: int, mu: str | None) -> dict[str, Any]:
    """The line that allows least, a scale for each ordered cell, and vectors of each kind of V_T."""
    scales = np.rint(np.ldexp(np.sqrt(found.shares), MATRIX_BITS)).astype(np.int64)
    return {
        "line": line,
        "mu": mu,
        "scales": array(Grid(scales.shape, Fraction(1, 2**MATRIX_BITS), tuple(scales.tolist()))),
        "parts": [write(exact(DyadicMatrix.rounded(part.vectors, MATRIX_BITS))) for part in found.parts],
    }


def _ordered_alternatives(block: marginals.Marginals, mu: float) -> list[Alternative]:
    """What usual ways to add noise to these tables would cost."""
    every = prod(map(float, block.sizes))
    # by table: its weight times its numbers, and how many of them a record counts in; cells that all of them add up
    weights, most, cells = list[float](), list[int](), 0.0
    for place, weight in block.terms[0]:
        columns, asked = block.tables[place], block.asks[place]
        weights.append(float(weight) * block.numbers[place])
        most.append(prod(_counted_in(block.sizes[i], asked.get(i)) for i in columns))
        added = prod(_added(block.sizes[i], asked.get(i)) for i in columns)
        cells += float(weight) * added * every / prod(block.sizes[i] for i in columns)
    found = {
        "noise on each table, each of its own size": sum(sqrt(w * m) for w, m in zip(weights, most, strict=True)) ** 2,
        "equal noise on each answer": sum(most) * sum(weights),
        "equal noise on each cell of the whole table": cells,
    }
    return [Alternative(name, loss / mu**2) for name, loss in sorted(found.items(), key=lambda one: one[1])]


def _counted_in(n: int, way: str | None) -> int:
    """In how many numbers along a column a record counts at most."""
    return n if way == "running" else (n // 2 + 1) * (n - n // 2) if way == "ranges" else 1


def _added(n: int, way: str | None) -> int:
    """How many values all numbers along a column add up."""
    return n * (n + 1) // 2 if way == "running" else n * (n + 1) * (n + 2) // 6 if way == "ranges" else n
