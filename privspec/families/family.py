"""What the compiler of every family can do, from graph to plan; and programs that were solved before.

A program whose budgets all changed by one factor has the same solution, scaled: the optimal covariance is homogeneous
of degree -1 in the squared budgets (notes/placement.md), so a sweep over epsilon costs one solve.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from privspec.core.machine import free_memory, refuse_without_memory, size_words
from privspec.core.records import dataclass, field
from privspec.families.decision import Decision, Infeasible
from privspec.model.graph import Model
from privspec.registry import family_of
from privspec.solvers import programs

SAME_FACTOR = 1e-12
"""Relative difference up to which two factors count as one."""


@dataclass(eq=False)
class SolutionCache:
    """Remembers solved programs for the length of one command."""

    _solved: list[tuple[str, programs.GaussianProgram, programs.GaussianSolution]] = field(default_factory=list)
    hits: int = 0

    def find(self, solver: str, program: programs.GaussianProgram) -> programs.GaussianSolution | None:
        """A solution of this program by this solver, if one that differs by a common factor was solved."""
        for name, known, solution in self._solved:
            if name != solver:
                continue
            factor = _common_factor(known, program)
            if factor is not None:
                from privspec.solvers.gaussian import rescale  # every spec has a cache, few need this solver

                self.hits += 1
                # differences times f are budgets divided by f
                return rescale(solution, 1.0 / factor)
        return None

    def add(self, solver: str, program: programs.GaussianProgram, solution: programs.GaussianSolution) -> None:
        """Remember a solution."""
        self._solved.append((solver, program, solution))


def _common_factor(known: programs.GaussianProgram, program: programs.GaussianProgram) -> float | None:
    """F such that every difference of `program` is f times that of `known`, all else equal; else None."""
    if type(known.loss) is not type(program.loss) or len(known.views) != len(program.views):
        return None
    if (known.sites is None) != (program.sites is None) or known.limits or program.limits:
        return None
    if not _same_groups(known.loss, program.loss):
        return None
    if not _same(known.target, program.target) or not _same(known.loss.error_map, program.loss.error_map):
        return None
    if known.sites is not None and program.sites is not None:
        if len(known.sites) != len(program.sites):
            return None
        if not all(_same(a.map, b.map) for a, b in zip(known.sites, program.sites, strict=True)):
            return None
    factors = [_view_factor(a, b) for a, b in zip(known.views, program.views, strict=True)]
    first = factors[0] if factors else None
    if first is None or any(f is None or abs(f / first - 1) > SAME_FACTOR for f in factors):
        return None
    return first


def _same_groups(one: programs.Loss, other: programs.Loss) -> bool:
    """Whether two losses are the largest of the same sums; true of losses that are sums."""
    if not isinstance(one, programs.WorstLoss) or not isinstance(other, programs.WorstLoss):
        return True
    if one.groups is None or other.groups is None:
        return one.groups is other.groups
    return bool(np.array_equal(one.groups, other.groups))


def _same(a: programs.Array, b: programs.Array) -> bool:
    return a is b or (a.shape == b.shape and bool(np.array_equal(a, b)))


def _view_factor(a: programs.View, b: programs.View) -> float | None:
    if (a.rows is None) != (b.rows is None):
        return None
    if a.rows is not None and b.rows is not None and not np.array_equal(a.rows, b.rows):
        return None
    return _factor(a.differences, b.differences)


def _factor(a: programs.Differences, b: programs.Differences) -> float | None:
    match a, b:
        case programs.Vectors(m), programs.Vectors(k) if m.shape == k.shape and m.nnz == k.nnz and m.nnz:
            alike = a.count == b.count and np.array_equal(m.indptr, k.indptr)
            if alike and np.array_equal(m.indices, k.indices):
                return _ratio(m.data, k.data)
        case programs.Pairs(p, s), programs.Pairs(q, t) if np.array_equal(p, q):
            return t / s
        case programs.Balls(p, r), programs.Balls(q, t) if _same_blocks(p, q):
            return t / r
        case programs.Boxes(p, r, k), programs.Boxes(q, t, l) if _same_blocks(p, q) and len(k) == len(l):
            both = (np.concatenate([reach, *(own.ravel() for own in lines)]) for reach, lines in ((r, k), (t, l)))
            return _ratio(*both)
    return None


def _same_blocks(a: tuple[NDArray[np.intp], ...], b: tuple[NDArray[np.intp], ...]) -> bool:
    return len(a) == len(b) and all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def _ratio(a: programs.Array, b: programs.Array) -> float | None:
    """B / a if it is one number."""
    moved = a != 0
    if not moved.any() or np.any(b[~moved] != 0):
        return None
    ratios = b[moved] / a[moved]
    first = float(ratios[0])
    return first if first > 0 and np.all(np.abs(ratios / first - 1) <= SAME_FACTOR) else None


@dataclass(frozen=True, slots=True)
class Settings:
    """How to solve. `solver` "default" or "cvxpy"; `progress` as in `solvers.results`.

    `until`: when solvers stop, as perf_counter tells it. `exact` False: only losses in doubles and
    witnesses are asked for, no plan.
    """

    solver: str = "default"
    tolerance: float = 2e-7
    until: float | None = None
    progress: Callable[[int, float, float], None] | None = None
    alternatives: bool = True
    exact: bool = True
    cache: SolutionCache = field(default_factory=SolutionCache)

    @property
    def deadline(self) -> float | None:
        """Seconds that are left for all that is still to be solved; None without a limit."""
        return None if self.until is None else self.until - perf_counter()


SOLVERS_SHARE = 0.8
"""Of a time limit, for solvers that can stop with what they have: the rest is for exact figures and the check."""


def stops_after(limit: float | None) -> float | None:
    """When solvers stop so that a whole command keeps a limit in seconds, as perf_counter tells it."""
    return None if limit is None else perf_counter() + SOLVERS_SHARE * limit


class Family(Protocol):
    """One way to compile: reductions from the graph to a program of its own, and back."""

    def lower(self, model: Model) -> Any:
        """The spec as numbers, or `Infeasible`.

        Raises: SpecError PS05xx with every construct that cannot be computed yet.
        """

    def decide(self, model: Model, system: Any, settings: Settings) -> Decision | Infeasible:
        """Solve it.

        Raises: SpecError, and the solvers' errors.
        """

    def size(self, system: Any) -> int:
        """Extent of the matrices at hand, for the number of threads."""


LONG = 30
"""Seconds of work from which it is announced."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a program will take, by its size alone: at least about so many bytes and seconds; `smaller` takes less."""

    what: str
    size: float
    seconds: float
    smaller: str

    def announced(self) -> str | None:
        """What is said before long work; None of other work.

        Raises: SolveError PS0705 if the memory for it is not free.
        """
        if self.seconds < LONG:
            return None
        refuse_without_memory(self.size, free_memory(), self.what, self.smaller)
        size, minutes = (float(f"{figure:.1g}") for figure in (self.size, max(self.seconds / 60, 1)))
        time = "a minute" if minutes == 1 else f"{minutes:,.0f} minutes"
        return f"{self.what} take about {size_words(size)} of memory and {time} or more; {self.smaller}"


@runtime_checkable
class Weighed(Protocol):
    """A family whose programs may be long work."""

    def work(self, system: Any) -> Work | None:
        """What a system will take, at least; None where that is little or not known."""


def compiler_of(model: Model) -> Family:
    """What compiles a spec."""
    found: Family = family_of(model).compiles()
    return found
