"""The least Gaussian noise on tables of counts, a variance for each set of columns, and the bound that shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import floor, log2, prod, sinh
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse

from privspec.core.diagnostics import InternalError
from privspec.core.records import dataclass
from privspec.core.rounding import graded, short_up
from privspec.families.amounts import shares_of, stated_mu
from privspec.families.decision import (
    STEP,
    Alternative,
    Decided,
    Decision,
    gaussian_prices,
    increased,
    price,
    ranked,
)
from privspec.families.document import decimal_up, guarantee_head
from privspec.families.family import Settings
from privspec.families.marginals.ordered import alternatives, rounded, solved, witness_of
from privspec.kernel import marginals
from privspec.kernel.chains import FINEST
from privspec.kernel.core.numbers import sqrt_up
from privspec.kernel.core.problem import Frame, Obligation, read_frame
from privspec.kernel.core.reading import Item
from privspec.kernel.measures import GAUSSIAN
from privspec.kernel.ordered import Strategies, ordered_bound
from privspec.kernel.participation import notes_of
from privspec.model.graph import Model
from privspec.model.requirements import Requirement
from privspec.problem.elaborate import elaborate
from privspec.problem.form import document
from privspec.problem.marginals import block_of, gaussian, separate
from privspec.solvers.marginals import Array, Shares, least_worst

SPARE = 1e-12
"""By so much of itself a variance is larger than the solver says."""
BITS = 43
"""Binary digits of a deviation."""
GRID = "2^-30"
"""Of the noisy parts, in deviations."""
OUTPUT_STEPS = 14
"""What is released lies on a grid of at least 2^14 steps in its deviation."""
CLOSE = 1e-9
"""By so much of itself a difference of records may exceed the limit before it is looked at by itself."""
ROUNDS = 60
FEW = 500
"""Tables up to which Laplace noise is looked at beside Gaussian noise: one record counts in each of them."""


@dataclass(frozen=True, eq=False, slots=True)
class System:
    """A spec in numbers: its problem, and the block as the kernel reads it."""

    model: Model
    problem: dict[str, Any]
    frame: Frame
    block: marginals.Marginals

    @property
    def lines(self) -> list[tuple[Requirement, Obligation]]:
        """What is asked, as the spec and as the problem say it."""
        return list(zip(self.model.requirements, self.frame.obligations, strict=True))

    @property
    def allowed(self) -> tuple[Fraction, int]:
        """The least mu of one record that a line allows, and the number of that line."""
        lines = enumerate(self.lines)
        units = ((line, marginals.unit_of(asked, self.block), number) for number, (line, asked) in lines)
        return min(
            ((line.measure.gaussian_mu_down() or Fraction(0)) / unit.count, number) for line, unit, number in units
        )

    @property
    def moving(self) -> tuple[marginals.Subset, ...]:
        """The sets of columns whose parts some line hides: the number of records only where they come and go."""
        counted = any(marginals.unit_of(one, self.block).adding for one in self.frame.obligations)
        return tuple(own for own in self.block.subsets if own or counted)


@dataclass(frozen=True, slots=True)
class Limit:
    """A row of the program: a line, and the columns in which two cells differ (None: a record comes or goes)."""

    line: int
    differing: frozenset[int] | None


class TableCounts:
    """Takes counts of one large table by some of its columns; `spends`: its noise is Gaussian, also as a part."""

    spends = (GAUSSIAN,)

    def lower(self, model: Model) -> System:
        """The problem, and its one block."""
        whole = document(elaborate(model))
        return System(model, whole, read_frame(Item(whole, "problem")), block_of(model))

    def decide(self, model: Model, system: System, settings: Settings) -> Decision:
        """The noise of least loss."""
        started = perf_counter()
        if system.block.ordered:
            found = [_in_order(system, settings)]
        else:
            found = [*_residual(system, settings), *_on_each_table(system)]
        best, *rest = sorted(found, key=lambda one: graded(one.loss))
        others = (*(Alternative(one.name, one.loss) for one in rest), *found[0].others)
        solver = {**best.solver, "seconds": perf_counter() - started}
        return replace(best, others=ranked(others) if settings.alternatives else (), solver=solver)

    def size(self, system: System) -> int:
        """Sets of columns, or cells of those in order."""
        return max(len(system.block.subsets), system.block.cells)


def _in_order(system: System, settings: Settings) -> Decided:
    """Strategies of least loss, at the least that a line allows."""
    block, (allowed, line) = system.block, system.allowed
    found = solved(block)
    executed, mechanism = rounded(block, found, allowed)
    witness = witness_of(found, line, _mu_of(system.model.requirements[line]))
    others = tuple(alternatives(block, float(allowed))) if settings.alternatives else ()
    name = "correlated Gaussian noise in the residual spaces of sets of columns"
    plan = Written(executed, mechanism, witness, partial(ordered_bound, system.frame.obligations, block))
    return plan.decided(system, name, partial(_of_mu, system.model), {}, others)


def _residual(system: System, settings: Settings) -> Iterator[Decided]:
    """A variance for each set of columns, where Gaussian noise is enough for every line."""
    model, block = system.model, system.block
    if not gaussian(model):
        return
    mus = [float(line.measure.gaussian_mu_down() or 0) for line in model.requirements]
    limits, shares = _solved(system, mus)
    executed, witness = _executed(system, shares), _witness(system, limits, shares, mus)
    subsets = block.subsets
    mechanism = {
        "family": "marginals",
        "subsets": [list(own) for own in subsets],
        "deviations": [str(executed.deviations[own]) for own in subsets],
        "grid": GRID,
        "output_grid": str(executed.output_grid),
    }
    plan = Written(executed, mechanism, witness, partial(marginals.bound, system.frame.obligations, block))
    others = tuple(_alternatives(system, mus)) if settings.alternatives else ()
    name, prices = "Gaussian noise in the residual spaces of sets of columns", partial(_prices, system, shares, mus)
    yield plan.decided(system, name, prices, {"iterations": shares.steps}, others)


def _on_each_table(system: System) -> Iterator[Decided]:
    """Laplace noise, where lines ask for pure epsilon; what no noise of it is below (Hammersley, Chapman, Robbins)."""
    model, block = system.model, system.block
    if not separate(model) or (gaussian(model) and len(block.tables) > FEW):
        return
    mus = [2 * sinh(float(line.measure.pure_epsilon or 0) / 2) for line in model.requirements]
    limits, shares = _solved(system, mus)
    witness, executed = _witness(system, limits, shares, mus, pure=True), _separate(system)
    mechanism = {"family": "laplace", "scales": [None if one is None else str(one) for one in executed.scales]}
    bound = partial(marginals.bound, system.frame.obligations, block, pure=True)
    plan = Written(executed, mechanism, witness, bound)
    yield plan.decided(system, "Laplace noise on each table", partial(_of_epsilon, model), {"iterations": shares.steps})


@dataclass(frozen=True, eq=False, slots=True)
class Written:
    """Noise that is executed, as it stands in the plan, and what bounds all other noise, as the kernel derives it."""

    executed: marginals.Residuals | marginals.Separate | Strategies
    mechanism: dict[str, Any]
    witness: dict[str, Any]
    bound: Callable[[Item], Fraction]

    def decided(
        self,
        system: System,
        name: str,
        prices: Callable[[], Iterable[dict[str, Any]]],
        steps: Mapping[str, int],
        others: tuple[Alternative, ...] = (),
    ) -> Decided:
        """It as a decision; `steps`: how it was found."""
        block = system.block
        return Decided(
            system.model,
            name,
            float(max(self.executed.losses())),
            partial(self._stated, system),
            lambda: self.bound(Item(self.witness, "bound")),
            marginals.PURE if isinstance(self.executed, marginals.Separate) else marginals.AMONG,
            block.units,
            "worst" if block.worst else "expected",
            others,
            prices,
            {"name": "residual spaces", **steps},
        )

    def _stated(self, system: System) -> dict[str, Any]:
        guarantees = [self._guarantee(number, *line) for number, line in enumerate(system.lines)]
        own = {"problem": system.problem, "mechanism": self.mechanism, "guarantees": guarantees}
        return own | {"claims": {"bound": self.witness}}

    def _guarantee(self, index: int, requirement: Requirement, asked: Obligation) -> dict[str, Any]:
        group = notes_of([(unit.kind, unit.count) for unit in asked.units])
        if isinstance(self.executed, marginals.Separate):
            said, notes = {"epsilon": str(_pure(self.executed, asked))}, [*marginals.LAPLACE, *group]
        else:
            said, notes = {"mu": decimal_up(_reached(self.executed, asked))}, [*marginals.NOTES, *group]
        return guarantee_head(requirement, index) | {"achieved": said, "because": notes}


# --- the program -----------------------------------------------------------------------------------------


def _costs(block: marginals.Marginals, moving: tuple[marginals.Subset, ...]) -> Any:
    """How the variances enter each term of the loss (terms, parts)."""
    places = {own: s for s, own in enumerate(moving)}
    rows, columns, values = list[int](), list[int](), list[float]()
    for row, term in enumerate(block.terms):
        for own, value in block.coefficients(list(term)).items():
            if own in places:
                rows.append(row)
                columns.append(places[own])
                values.append(float(value))
    return sparse.csr_array((values, (rows, columns)), shape=(len(block.terms), len(moving)))


def _row(system: System, limit: Limit, mu: float) -> Array:
    """What 1 / sigma_S^2 adds to a limit, of which 1 is allowed."""
    block, count = system.block, marginals.unit_of(system.frame.obligations[limit.line], system.block).count
    moved = limit.differing
    found = [block.share(own) if moved is None else block.moved(own, moved) for own in system.moving]
    return np.array([float(value) for value in found]) * (count / mu) ** 2


def _solved(system: System, mus: list[float]) -> tuple[list[Limit], Shares]:
    """The rows that were looked at, and the variances: rows are added until no move of a record exceeds them."""
    block, moving = system.block, system.moving
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
        if len(used) > marginals.WORST_COLUMNS or all(one.differing is None for one in limits):
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
    for own, variance in zip(system.moving, shares.variances.tolist(), strict=True):
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
    spare, block = SPARE, system.block
    for _ in range(40):
        own = zip(system.moving, shares.variances.tolist(), strict=True)
        sizes = dict.fromkeys(block.subsets, Fraction(0))
        sizes |= {one: short_up(Fraction(float(np.sqrt(variance * (1 + spare)))), BITS) for one, variance in own}
        found = marginals.Residuals(block, sizes, Fraction(2) ** -30, Fraction(1))
        if all(_meets(found, *line) for line in system.lines):
            return replace(found, output_grid=_output_grid(found))
        spare *= 4
    raise InternalError("the variances that were found do not meet the lines")


def _meets(found: marginals.Residuals, requirement: Requirement, asked: Obligation) -> bool:
    allowed, reached = requirement.measure.gaussian_mu_down(), _reached(found, asked)
    return allowed is not None and Fraction(decimal_up(reached)) <= allowed


def _reached(found: marginals.Residuals | Strategies, asked: Obligation) -> Fraction:
    """The mu of a line, rounded up."""
    square = found.mu_squared(found.block.subsets, marginals.unit_of(asked, found.block))
    if square is None:
        raise InternalError("a part that moves has no noise")
    return sqrt_up(square, 100)


def _output_grid(found: marginals.Residuals) -> Fraction:
    """A power of two fine enough for the least noisy number."""
    least = min((v for table in found.block.tables if (v := float(found.variance(table))) > 0), default=1.0)
    return Fraction(2) ** min(floor(log2(least) / 2) - OUTPUT_STEPS, -20)


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
    lines = []
    for some, requirement in zip(masses, system.model.requirements, strict=True):
        lines.append({"mu": _mu_of(requirement) if some and not pure else None, "masses": some})
    return {"terms": [str(share) for share in shares_of(shares.terms)], "lines": lines}


def _mu_of(requirement: Requirement) -> str | None:
    """At least the mu that a line of two amounts allows, in a bound."""
    measure = requirement.measure
    return stated_mu(measure, measure.gaussian_mu_down())


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
    bare, spare = marginals.Separate(block, tuple(shares.get(t) for t in range(len(costs)))), SPARE
    times = max(
        bare.epsilon(marginals.unit_of(asked, block)) / (line.measure.pure_epsilon or Fraction(1))
        for line, asked in system.lines
    )
    for _ in range(40):
        scales = {
            t: max(short_up(Fraction(float(scale * times) * (1 + spare)), BITS), FINEST) for t, scale in shares.items()
        }
        found = marginals.Separate(block, tuple(scales.get(t) for t in range(len(costs))))
        if all(_pure(found, asked) <= (line.measure.pure_epsilon or 0) for line, asked in system.lines):
            return found
        spare *= 4
    raise InternalError("the scales that were found do not meet the lines")


def _pure(found: marginals.Separate, asked: Obligation) -> Fraction:
    """The epsilon of a line, rounded up."""
    return Fraction(decimal_up(found.epsilon(marginals.unit_of(asked, found.block))))


# --- what a tenth more of an amount in a line would bring -----------------------------------------------


def _of_epsilon(model: Model) -> Iterator[dict[str, Any]]:
    """More pure epsilon, where one line asks for it."""
    if len(model.requirements) == 1:
        yield price(model.requirements[0], float(1 / STEP**2) - 1)


def _of_mu(model: Model) -> Iterator[dict[str, Any]]:
    """Where one line says what Gaussian noise may be."""
    if len(model.requirements) == 1:
        yield from gaussian_prices(model.requirements[0])


def _prices(system: System, shares: Shares, mus: list[float]) -> Iterator[dict[str, Any]]:
    """Where several lines do."""
    if len(mus) == 1:
        yield from _of_mu(system.model)
        return
    for index, requirement in enumerate(system.model.requirements):
        for amount, more in increased(requirement):
            eased = [*mus[:index], float(more.measure.gaussian_mu_down() or 0), *mus[index + 1 :]]
            after = _solved(system, eased)[1].upper / shares.upper
            if after < 1 - CLOSE:
                yield price(requirement, after - 1, amount)
