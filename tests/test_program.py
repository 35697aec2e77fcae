"""The program of a spec: its optimum is the plan's loss, it may be changed, and what is found is verified."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import privspec
from privspec.core.diagnostics import SolveError, UsageError
from privspec.manual import help_text

SMALL: dict[str, dict[str, Any]] = {
    "counting_query": {},
    "fair_response": {},
    "frequency_survey": {},
    "histogram": {},
    "k_randomised_response": {},
    "metric_dp_line": {},
    "prefix_sums": {"n": 12},
    "range_queries": {"oldest": 7},
    "shared_budget": {},
    "work_study": {"N": 6},
}
"""Templates with the parameters at which a general solver takes a second or so."""
LARGE: dict[str, dict[str, Any]] = {
    "geo_indistinguishability": {"side": 5},
    "hospital_network": {},
    "linear_queries": {},
    "two_observers": {},
}
NONE = {
    "correlated_readings": "one size of noise",
    "median_hours": "chances follow from scores",
    "pages_read": "chances to show a key",
    "pay_study": "linear programs on several grids",
    "power_means": "not convex",
    "private_plurality": "the best of those of private voting",
    "rounded_answers": "not stated in cvxpy",
    "wang_algorithm_1": "simulated loss",
    "yearly_releases": "parts share lines",
}
"""Templates without a program, and what the refusal says."""
AGREE = 1e-5


def agreed(name: str, parameters: dict[str, Any]) -> None:
    """Check that the program's optimum is the loss of the plan, which is what its solution becomes."""
    problem = privspec.load(name, **parameters)
    program, plan = problem.program(), problem.solve()
    assert program.problem.is_dcp(dpp=True)
    value = program.problem.solve(solver=cp.CLARABEL)
    assert program.problem.status == cp.OPTIMAL
    assert value == pytest.approx(plan.loss.value, rel=AGREE)
    assert plan.loss.lower_bound is not None
    assert value >= plan.loss.lower_bound * (1 - AGREE)
    found = program.plan()
    assert found.verify().ok
    assert found.loss.value == pytest.approx(plan.loss.value, rel=AGREE)
    assert found.loss.lower_bound == pytest.approx(plan.loss.lower_bound, rel=AGREE)


@pytest.mark.parametrize("name", SMALL)
def test_the_optimum_of_the_program_is_the_loss_of_the_plan(name: str) -> None:
    agreed(name, SMALL[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_the_same_of_larger_programs(name: str) -> None:
    agreed(name, LARGE[name])


@pytest.mark.parametrize("name", NONE)
def test_what_has_no_convex_program_says_so(name: str) -> None:
    with pytest.raises(SolveError, match="PS0614") as refused:
        privspec.load(name).program()
    assert NONE[name] in str(refused.value)


@pytest.mark.parametrize("name", ["prefix_sums", "metric_dp_line", "fair_response", "marginals"])
def test_every_constraint_carries_the_name_of_its_line(name: str) -> None:
    program = privspec.load(name, **SMALL.get(name, {})).program()
    said = str(program)
    for label, constraints in program.constraints.items():
        assert f"  {label}\n" in said
        assert all(one.label.startswith(label) for one in constraints)
    for line in privspec.load(name, **SMALL.get(name, {})).check().requirements:
        assert f"line {line.line}: {line.text}" in program.constraints
    assert all(parameter in said for parameter in program.parameters)


@pytest.mark.parametrize("name", ["prefix_sums", "metric_dp_line", "two_observers"])
def test_a_sweep_solves_again_without_compiling(name: str) -> None:
    fixed = SMALL.get(name, {})
    program = privspec.load(name, **fixed).program()
    problem, amount = program.problem, "audit_mu" if name == "two_observers" else "epsilon"
    for value in (0.03, 0.06) if name == "metric_dp_line" else (0.5, 0.8):
        program.set(**{amount: value})
        assert program.problem is problem
        again = privspec.load(name, **fixed, **{amount: value}).solve()
        assert problem.solve(solver=cp.CLARABEL) == pytest.approx(again.loss.value, rel=AGREE)
    plan = program.plan()
    assert plan.verify().ok
    assert plan.loss.value == pytest.approx(again.loss.value, rel=AGREE)
    assert plan.guarantees[0].line == again.guarantees[0].line


def test_what_is_added_is_solved_for_and_the_bound_stays_that_of_the_spec() -> None:
    spec = privspec.load("prefix_sums", n=8)
    program, best = spec.program(), spec.solve()
    (covariance,) = program.expressions.values()
    variances = cp.diag(covariance)
    level = cp.Problem(program.problem.objective, [*program.problem.constraints, variances == variances[0]])
    level.solve(solver=cp.CLARABEL)
    plan = program.plan()
    assert plan.status == "feasible"
    assert plan.verify().ok
    assert plan.loss.value == pytest.approx(level.value, rel=AGREE)
    assert plan.loss.value > 1.01 * best.loss.value
    assert plan.loss.lower_bound == pytest.approx(best.loss.lower_bound, rel=1e-6)
    spread = np.diag(np.array(plan.document["mechanism"]["output_covariance"], dtype=float))
    assert spread == pytest.approx(spread[0], rel=1e-4)


@pytest.mark.parametrize(
    ("name", "variable", "wrong"),
    [
        ("prefix_sums", "Sigma", 1e-9 * np.eye(12)),
        ("linear_queries", "s", np.full(96, 1e-6)),
        ("histogram", "u", np.full(8, 1e6)),
        ("counting_query", "f", np.eye(11)),
        ("fair_response", "f", np.array([[1.0, 0.0], [0, 1], [1, 0], [0, 1]])),
    ],
)
def test_what_breaks_the_lines_is_repaired_before_it_is_a_plan(name: str, variable: str, wrong: Any) -> None:
    spec = privspec.load(name, **SMALL.get(name, {}))
    program, best = spec.program(), spec.solve()
    values = {key: np.zeros(one.shape) for key, one in program.variables.items()} | {variable: wrong}
    plan = program.plan(values)
    assert plan.verify().ok
    assert plan.loss.lower_bound is not None
    assert plan.loss.value >= plan.loss.lower_bound
    assert plan.loss.value >= best.loss.lower_bound * (1 - AGREE)  # type: ignore[operator]


def test_what_is_no_solution_is_refused() -> None:
    program = privspec.load("counting_query").program()
    with pytest.raises(UsageError, match=r"PS0724: f needs finite numbers of shape \(11, 11\)"):
        program.plan()
    with pytest.raises(UsageError, match="PS0724"):
        program.plan({"f": np.full((11, 11), np.nan)})
    with pytest.raises(UsageError, match="PS0723: n changes more of this program than its amounts"):
        program.set(n=4)


def test_the_words_need_no_cvxpy() -> None:
    code = (
        "import sys; from privspec.cli import main; sys.argv = ['privspec', *sys.argv[1:]]\n"
        "try:\n main()\nexcept SystemExit as end:\n print(end.code, 'cvxpy' in sys.modules)"
    )
    command = ["solve", "counting_query", "--dump", "program", "-o", "-"]
    done = subprocess.run([sys.executable, "-c", code, *command], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("unknown:\n  f (11 x 11) >= 0: f[x, y] = Pr(O = y | said_yes = x)\n")
    assert "line 21: O is epsilon-DP wrt answers, replacing one record\n" in done.stdout
    assert done.stdout.endswith("0 False\n")


def test_the_page_of_the_manual_runs() -> None:
    known: dict[str, Any] = {}
    printed = StringIO()
    with redirect_stdout(printed):
        for part in re.findall(r"```python\n(.*?)```", help_text("program"), re.S):
            exec(part, known)
    assert "feasible" in printed.getvalue() or "optimal" in printed.getvalue()
