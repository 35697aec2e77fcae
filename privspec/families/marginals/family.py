"""The least Gaussian noise on tables of counts, a variance for each set of columns, and the bound that shows it."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from math import floor, log2, prod, sinh
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse

from privspec.core.diagnostics import InternalError
from privspec.core.records import dataclass, replace
from privspec.families.amounts import mu_up, shares_of
from privspec.families.document import STEP, decimal_up, float_down, guarantee_head, plan_document, price, rated
from privspec.families.family import Settings
from privspec.kernel.chains import FINEST
from privspec.kernel.core.numbers import sqrt_up
from privspec.kernel.core.problem import Frame, Obligation, read_frame
from privspec.kernel.core.reading import Item, read
from privspec.kernel.marginals import (
    AMONG,
    LAPLACE,
    NOTES,
    PURE,
    WORST_COLUMNS,
    Marginals,
    Residuals,
    Separate,
    Subset,
    bound,
    losses,
    mu_squared,
    unit_of,
    units_words,
)
from privspec.kernel.participation import notes_of
from privspec.model.graph import Model
from privspec.model.measures import LDP, EpsilonDelta
from privspec.model.requirements import Requirement
from privspec.problem.elaborate import elaborate
from privspec.problem.form import document
from privspec.problem.marginals import block_of, gaussian, separate
from privspec.solvers.marginals import Array, Shares, least_worst

SPARE = 1e-12
"""By so much of itself a variance is larger than the solver says."""
BITS = 44
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
PRICED = ("epsilon", "rho", "mu")


@dataclass(frozen=True, eq=False, slots=True)
class System:
    """A spec in numbers: its problem, and the block as the kernel reads it."""

    model: Model
    problem: dict[str, Any]
    frame: Frame
    block: Marginals

    @property
    def lines(self) -> list[tuple[Requirement, Obligation]]:
        """What is asked, as the spec and as the problem say it."""
        return list(zip(self.model.requirements, self.frame.obligations, strict=True))

    @property
    def moving(self) -> tuple[Subset, ...]:
        """The sets of columns whose parts some line hides: the number of records only where they come and go."""
        counted = any(unit_of(one, self.block.source).adding for one in self.frame.obligations)
        return tuple(own for own in self.block.subsets if own or counted)


@dataclass(frozen=True, slots=True)
class Limit:
    """A row of the program: a line, and the columns in which two cells differ (None: a record comes or goes)."""

    line: int
    differing: frozenset[int] | None


class TableCounts:
    """Takes counts of one large table by some of its columns; `spends`: its noise is Gaussian, also as a part."""

    spends = ("GDP",)

    def lower(self, model: Model) -> System:
        """The problem, and its one block."""
        block_of(model)
        whole = document(elaborate(model))
        block = read(Marginals, Item(whole["blocks"][0], "block"))
        assert isinstance(block, Marginals)
        return System(model, whole, read_frame(Item(whole, "problem")), block)

    def decide(self, model: Model, system: System, settings: Settings) -> Decided:
        """The variances of least loss."""
        started = perf_counter()
        found = list[Decided]()
        if gaussian(model):
            mus = [float(line.measure.gaussian_mu_down() or 0) for line in model.requirements]
            limits, shares = _solved(system, mus)
            executed = _executed(system, shares)
            witness = _witness(system, limits, shares, mus)
            others = tuple(_alternatives(system, mus)) if settings.alternatives else ()
            found.append(Decided(model, system, executed, witness, shares, others, mus, perf_counter() - started))
        if separate(model) and (not found or len(system.block.tables) <= FEW):
            # Hammersley, Chapman and Robbins
            mus = [2 * sinh(float(line.measure.pure_epsilon or 0) / 2) for line in model.requirements]
            limits, shares = _solved(system, mus)
            witness = _witness(system, limits, shares, mus, pure=True)
            laplace = _separate(system)
            found.append(Decided(model, system, laplace, witness, shares, (), mus, perf_counter() - started))
        best, *rest = sorted(found, key=lambda one: one.loss)
        reason = "meets every line of the spec"
        beside = [{"name": one.name, "loss": one.loss, "admissible": True, "reason": reason} for one in rest]
        known = found[0].considered if settings.alternatives else ()
        listed = sorted([*beside, *known], key=lambda one: float(one["loss"]))
        return replace(best, considered=tuple(listed) if settings.alternatives else ())

    def size(self, system: System) -> int:
        """Sets of columns."""
        return len(system.block.subsets)


# --- the program -----------------------------------------------------------------------------------------


def _costs(block: Marginals, moving: tuple[Subset, ...]) -> Any:
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
    block, count = system.block, unit_of(system.frame.obligations[limit.line], system.block.source).count
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
        if unit_of(asked, block.source).adding:
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
        unit = unit_of(asked, block.source)
        if not unit.adding and most * (unit.count / mus[line]) ** 2 > 1 + CLOSE:
            yield Limit(line, frozenset(i for i, k in places.items() if worst >> k & 1))


# --- in exact numbers ------------------------------------------------------------------------------------


def _short_up(value: float) -> Fraction:
    """A short binary fraction at or above."""
    shift = BITS - int(np.frexp(value)[1])
    whole = -(-(Fraction(value) * Fraction(2) ** shift) // 1)
    return whole / Fraction(2) ** shift


def _executed(system: System, shares: Shares) -> Residuals:
    """The deviations, rounded up until each line is met exactly."""
    spare, block = SPARE, system.block
    for _ in range(40):
        own = zip(system.moving, shares.variances.tolist(), strict=True)
        sizes = dict.fromkeys(block.subsets, Fraction(0))
        sizes |= {one: _short_up(float(np.sqrt(variance * (1 + spare)))) for one, variance in own}
        found = Residuals(block, sizes, Fraction(2) ** -30, Fraction(1))
        if all(_meets(found, *line) for line in system.lines):
            return replace(found, output_grid=_output_grid(found))
        spare *= 4
    raise InternalError("the variances that were found do not meet the lines")


def _meets(found: Residuals, requirement: Requirement, asked: Obligation) -> bool:
    allowed, reached = requirement.measure.gaussian_mu_down(), _reached(found, asked)
    return allowed is not None and Fraction(decimal_up(reached)) <= allowed


def _reached(found: Residuals, asked: Obligation) -> Fraction:
    """The mu of a line, rounded up."""
    square = mu_squared(found, found.block.subsets, unit_of(asked, found.block.source))
    if square is None:
        raise InternalError("a part that moves has no noise")
    return sqrt_up(square, 100)


def _output_grid(found: Residuals) -> Fraction:
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
        measure, mu = requirement.measure, None
        if some and not pure and isinstance(measure, EpsilonDelta | LDP):
            mu = str(mu_up(measure, float(measure.gaussian_mu_down() or 0)))
        lines.append({"mu": mu, "masses": some})
    return {"terms": [str(share) for share in shares_of(shares.terms)], "lines": lines}


# --- others ----------------------------------------------------------------------------------------------


def _alternatives(system: System, mus: list[float]) -> Iterator[dict[str, Any]]:
    """What usual ways to add noise to these tables would cost, each at its least."""
    block, tables = system.block, system.block.tables
    cells = [prod(block.sizes[i] for i in own) for own in tables]
    weights = np.zeros((len(block.terms), len(tables)))
    if weights.size > 2**24:
        return
    for row, term in enumerate(block.terms):
        for table, weight in term:
            weights[row, table] = float(weight) * cells[table]
    units = [unit_of(asked, block.source) for asked in system.frame.obligations]
    factor = max((u.count / mu) ** 2 * (1 if u.adding else 2) for u, mu in zip(units, mus, strict=True))
    every = float(prod(block.sizes))
    reason = "meets every line of the spec"
    found = [
        ("equal noise on each answer", len(tables) * weights.sum(axis=1).max()),
        ("noise on each table, each of its own size", least_worst(weights, np.ones((1, len(tables)))).upper),
        ("equal noise on each cell of the whole table", float(max(weights @ (every / np.array(cells, dtype=float))))),
    ]
    for name, loss in sorted(found, key=lambda one: one[1]):
        if np.isfinite(loss * factor):
            yield {"name": name, "loss": float(loss * factor), "admissible": True, "reason": reason}


def _separate(system: System) -> Separate:
    """Laplace noise on every table, or on those only that are within no other: the better of the two."""
    block = system.block
    every = list(range(len(block.tables)))
    sets = [set(own) for own in block.tables]
    whole = [t for t in every if not any(sets[t] < other for other in sets)] if len(every) <= FEW else every
    found = [_scaled(system, every)] + ([] if whole == every else [_scaled(system, whole)])
    return min(found, key=lambda one: max(one.losses()))


def _scaled(system: System, noisy: list[int]) -> Separate:
    """Scales of the noisy tables: the least sum of c b^2 for a sum of 1 / b, where one sum counts, else equal ones."""
    block = system.block
    costs = np.zeros(len(block.tables))
    bare = Separate(block, tuple(Fraction(1) if t in set(noisy) else None for t in range(len(costs))))
    for table, weight in block.terms[0]:
        source = bare.sources[table]
        costs[source] += float(weight) * prod(block.sizes[i] for i in block.tables[source])
    roots = costs ** (1 / 3) if len(block.terms) == 1 else (costs > -1).astype(float)
    shares = {t: _short_up(float(sum(roots[s] for s in noisy) / roots[t])) for t in noisy}
    bare, spare = Separate(block, tuple(shares.get(t) for t in range(len(costs)))), SPARE
    times = max(
        bare.epsilon(unit_of(asked, block.source)) / (line.measure.pure_epsilon or Fraction(1))
        for line, asked in system.lines
    )
    for _ in range(40):
        scales = {t: max(_short_up(float(scale * times) * (1 + spare)), FINEST) for t, scale in shares.items()}
        found = Separate(block, tuple(scales.get(t) for t in range(len(costs))))
        if all(_pure(found, asked) <= (line.measure.pure_epsilon or 0) for line, asked in system.lines):
            return found
        spare *= 4
    raise InternalError("the scales that were found do not meet the lines")


def _pure(found: Separate, asked: Obligation) -> Fraction:
    """The epsilon of a line, rounded up."""
    return Fraction(decimal_up(found.epsilon(unit_of(asked, found.block.source))))


@dataclass(frozen=True, eq=False)
class Decided:
    """The noise that was found, and what other ways to add noise would cost."""

    model: Model
    system: System
    executed: Residuals | Separate
    witness: dict[str, Any]
    shares: Shares
    considered: tuple[dict[str, Any], ...]
    mus: list[float]
    seconds: float

    @property
    def name(self) -> str:
        if isinstance(self.executed, Separate):
            return "Laplace noise on each table"
        return "Gaussian noise in the residual spaces of sets of columns"

    @cached_property
    def loss(self) -> float:
        executed = self.executed
        return float(max(executed.losses() if isinstance(executed, Separate) else losses(executed)))

    @cached_property
    def lower_bound(self) -> float | None:
        """No Gaussian noise of any covariance has less."""
        pure, asked = isinstance(self.executed, Separate), self.system.frame.obligations
        exact = bound(asked, self.system.block, Item(self.witness, "bound"), pure=pure)
        return float_down(min(exact, Fraction(self.loss)))

    def document(self) -> dict[str, Any]:
        executed, block, lines = self.executed, self.system.block, self.system.lines
        kind, among = "worst" if block.worst else "expected", AMONG
        if isinstance(executed, Separate):
            among = PURE
            scales = [None if scale is None else str(scale) for scale in executed.scales]
            mechanism: dict[str, Any] = {"family": "laplace", "scales": scales}
        else:
            mechanism = {
                "family": "marginals",
                "subsets": [list(own) for own in block.subsets],
                "deviations": [str(executed.deviations[own]) for own in block.subsets],
                "grid": GRID,
                "output_grid": str(executed.output_grid),
            }
        return plan_document(
            self.model,
            {
                "problem": self.system.problem,
                **rated(self.model, self.loss, self.lower_bound, among, units_words(block), kind),
                "alternatives": list(self.considered),
                "mechanism": mechanism,
                "guarantees": [self._guarantee(i, *line) for i, line in enumerate(lines)],
                "accuracy": [],
                "claims": {"bound": self.witness},
                "remarks": {
                    "binding": list(self._prices()),
                    "solver": {
                        "name": "residual spaces",
                        "iterations": self.shares.steps,
                        "seconds": self.seconds,
                    },
                },
            },
        )

    def _guarantee(self, index: int, requirement: Requirement, asked: Obligation) -> dict[str, Any]:
        group = notes_of([(unit.kind, unit.count) for unit in asked.units])
        if isinstance(self.executed, Separate):
            said, notes = {"epsilon": str(_pure(self.executed, asked))}, [*LAPLACE, *group]
        else:
            said, notes = {"mu": decimal_up(_reached(self.executed, asked))}, [*NOTES, *group]
        return guarantee_head(requirement, index) | {"achieved": said, "because": notes}

    def _prices(self) -> Iterator[dict[str, Any]]:
        """What a tenth more of an amount in a line that binds would bring."""
        lines = self.model.requirements
        if isinstance(self.executed, Separate):
            if len(lines) == 1:
                yield price(lines[0], float(1 / STEP**2) - 1)
            return
        for index, requirement in enumerate(lines):
            for amount in PRICED:
                now = requirement.measure.amounts.get(amount)
                if now is None:
                    continue
                more = replace(requirement.measure, **{amount: now * STEP})  # type: ignore[type-var]
                mus = [*self.mus[:index], float(more.gaussian_mu_down() or 0), *self.mus[index + 1 :]]
                if len(lines) == 1:
                    after = (self.mus[0] / mus[0]) ** 2
                else:
                    after = _solved(self.system, mus)[1].upper / self.shares.upper
                if after < 1 - CLOSE:
                    yield price(requirement, after - 1, amount)
