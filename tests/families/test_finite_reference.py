"""The reference path and the special solvers agree on every kind of program, down to exact tables and bounds."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from privspec.solvers.table_programs import (
    CompleteRatio,
    Extra,
    InfeasibleTable,
    LinearRows,
    PairRatio,
    TableProgram,
    TableSolution,
    violations,
)
from privspec.solvers.tables import solve_table

from privspec.api import Problem
from privspec.core.spans import Source
from privspec.families.family import Settings
from privspec.families.tables.reference import solve_with_cvxpy
from privspec.pipeline import Request, solve
from tests.solvers.exact_bounds import bound_of, relative_gap

ONE = Fraction(1)


def every_pair(n: int) -> np.ndarray:
    return np.array([(a, b) for a in range(n) for b in range(n) if a != b])


def chain(n: int) -> np.ndarray:
    return np.array([(a, b) for a in range(n) for b in (a - 1, a + 1) if 0 <= b < n])


def apart(n: int) -> np.ndarray:
    return np.abs(np.subtract.outer(np.arange(n), np.arange(n))).astype(float)


def prior(n: int) -> np.ndarray:
    return np.random.default_rng(n).dirichlet(np.full(n, 2.0))[:, None]


def rows(*lines: tuple[dict[int, int], Fraction]) -> LinearRows:
    cells = [(k, c, Fraction(v)) for k, (line, _) in enumerate(lines) for c, v in line.items()]
    return LinearRows(
        np.array([c[0] for c in cells], dtype=np.intp),
        np.array([c[1] for c in cells], dtype=np.intp),
        tuple(c[2] for c in cells),
        tuple(bound for _, bound in lines),
    )


def means(n: int, scale: Fraction) -> LinearRows:
    """E[z | x] = scale x + (1 - scale) * centre, values 1..n."""
    centre = Fraction(n + 1, 2)
    lines = [({x * n + y: y + 1 for y in range(n)}, scale * (x + 1) + (1 - scale) * centre) for x in range(n)]
    return rows(*lines)


def metric(n: int) -> PairRatio:
    pairs = every_pair(n)
    return PairRatio(pairs, tuple(Fraction(7, 10) * abs(int(a) - int(b)) for a, b in pairs))


def two_observers(n: int) -> TableProgram:
    """The first of two outputs is seen by one, both by another."""
    first = np.repeat(np.arange(n), n)
    cost = (apart(n)[:, :, None] + apart(n)[:, None, :]).reshape(n, n * n)
    strict = CompleteRatio(Fraction(1, 2), first)
    return TableProgram(cost * prior(n), (strict, CompleteRatio(ONE)))


def free_scale(n: int) -> TableProgram:
    """E[z | x] = a x + b with scalars a and b; b costs something."""
    lines = [({x * n + y: y + 1 for y in range(n)} | {n * n: -(x + 1), n * n + 1: -1}, Fraction(0)) for x in range(n)]
    extra = Extra((Fraction(1, 3), Fraction(-9)), (ONE, Fraction(9)), (Fraction(0), Fraction(1, 5)), ("a", "b"))
    return TableProgram(apart(n) * prior(n), (CompleteRatio(ONE),), equalities=rows(*lines), extra=extra)


PROGRAMS = {
    "local": TableProgram(apart(6) * prior(6), (CompleteRatio(ONE),)),
    "chain": TableProgram(apart(8) * prior(8), (PairRatio(chain(8), (Fraction(1, 2),)),)),
    "metric": TableProgram(apart(6) ** 2 * prior(6), (metric(6),)),
    "delta": TableProgram(apart(5) * prior(5), (PairRatio(every_pair(5), (ONE,), Fraction(1, 50)),)),
    "delta on a chain": TableProgram(apart(6) * prior(6), (PairRatio(chain(6), (ONE,), Fraction(1, 20)),)),
    "each output by itself": TableProgram(
        apart(5) * prior(5), (PairRatio(every_pair(5), (ONE,), slack=Fraction(1, 100)),)
    ),
    "worst case": TableProgram(apart(6) ** 2, (CompleteRatio(ONE),), worst=True),
    "worst case on a chain": TableProgram(apart(6), (PairRatio(chain(6), (ONE,)),), worst=True),
    "equalities": TableProgram(apart(6) ** 2 * prior(6), (CompleteRatio(ONE),), equalities=means(6, Fraction(2, 5))),
    "inequalities": TableProgram(
        (1 - np.eye(5)) * prior(5),
        (CompleteRatio(ONE),),
        inequalities=rows(({x * 5 + y: abs(x - y) for x in range(5) for y in range(5)}, Fraction(6))),
    ),
    "two observers": two_observers(3),
    "scalars": free_scale(5),
    "two requirements": TableProgram(apart(6) * prior(6), (PairRatio(chain(6), (Fraction(1, 3),)), CompleteRatio(ONE))),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_both_paths_find_the_optimum(name: str) -> None:
    program = PROGRAMS[name]
    ours, plain = solve_table(program), solve_with_cvxpy(program)
    assert isinstance(ours, TableSolution)
    assert isinstance(plain, TableSolution)
    assert plain.method == "cvxpy"
    for found in (ours, plain):
        assert violations(program, found.exact) == []
        bound = bound_of(program, found)
        assert bound <= found.value
        assert relative_gap(found.value, bound) < 1e-6
    assert float(plain.value) == pytest.approx(float(ours.value), rel=1e-6)


def test_both_paths_find_the_same_conflict() -> None:
    program = replace(PROGRAMS["equalities"], equalities=means(6, Fraction(9, 10)))
    ours, plain = solve_table(program), solve_with_cvxpy(program)
    assert isinstance(ours, InfeasibleTable)
    assert isinstance(plain, InfeasibleTable)
    assert ours.privacy == plain.privacy == (0,)


def test_the_command_takes_it() -> None:
    text = """
variables:
  input x in 1..5
  output z in 1..5
background:
  x ~ uniform
loss:
  E[ |z - x| ]
privacy:
  z is 1-LDP wrt x
"""
    plain = solve(Request(Source("x.priv", text)), Settings(solver="cvxpy"))
    assert plain.document["remarks"]["solver"]["name"] == "tables (cvxpy)"
    assert plain.loss.value == pytest.approx(Problem(text).solve().loss.value, rel=1e-7)
