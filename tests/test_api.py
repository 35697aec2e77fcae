"""The Python face: specs from files, text and trees; plans that verify, explain and run."""

from __future__ import annotations

import doctest
import re
from fractions import Fraction
from importlib import import_module
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import privspec
import privspec.api
from privspec.core.diagnostics import SpecError, UsageError
from privspec.core.render import render_all
from privspec.core.spans import Source
from privspec.execute.release import Release
from privspec.language.parser import parse
from privspec.manual import copy_template, template_text
from privspec.noise.samplers import SimulationRandomness

TOTALS = """\
parameters:
  epsilon = 1
  delta = 1e-6
variables:
  input x in [0, 1]^4
  constant A in real^(2, 4)
  constant b = [10, 20]
  intermediate y
  output O
background: y = A @ x + b
loss: E[ ||O - y||^2 ]
privacy: O is (epsilon, delta)-DP wrt x, replacing one entry
options: noise family gaussian
"""
A = np.array([[1.0, 1, 1, 1], [1, 1, 0, 0]])


def problem(**parameters: object) -> privspec.Problem:
    return privspec.Problem(TOTALS, parameters, {"A": A})


@pytest.mark.parametrize("module", ["privspec", "privspec.api", "privspec.plan", "privspec.execute.release"])
def test_the_examples_in_the_documentation(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tried = doctest.testmod(import_module(module), optionflags=doctest.ELLIPSIS)
    assert tried.failed == 0
    assert tried.attempted


def test_each_public_name_has_an_example() -> None:
    public = (privspec, privspec.load, privspec.Problem, privspec.Problem.check, privspec.Problem.solve)
    for one in (
        *public,
        privspec.Problem.program,
        privspec.Plan,
        privspec.Plan.verify,
        privspec.Plan.run,
        Release.table,
    ):
        assert ">>> " in (one.__doc__ or ""), one


def test_the_names_of_the_package() -> None:
    assert set(privspec.__all__) == {"Plan", "Problem", "__version__", "load"}
    for name in privspec.__all__:
        assert getattr(privspec, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        privspec.nothing  # noqa: B018


BARE = "noothigattu_baseline"
"""The template that asks for no privacy."""


def test_a_template_without_privacy_is_no_plan(tmp_path: Path) -> None:
    path, *_ = copy_template(BARE, tmp_path / "mine.priv")
    with pytest.raises(SpecError) as caught:
        privspec.load(path).solve()
    assert [d.code for d in caught.value.diagnostics] == ["PS0518"]


# one of each family: tests/test_cli.py takes every template the whole way, through the same pipeline
@pytest.mark.parametrize("name", ["linear_queries", "histogram", "counting_query", "borda_lottery", "crowd_rldp"])
def test_templates_from_files(name: str, tmp_path: Path) -> None:
    path, *_ = copy_template(name, tmp_path / "mine.priv")
    plan = privspec.load(path).solve()
    assert isinstance(plan, privspec.Plan)
    assert plan.verify().ok
    assert plan.path is None


def test_parameters_given_to_solve_win() -> None:
    one, half = problem(), problem(epsilon="1/2")
    assert half.solve().loss.value == pytest.approx(one.solve(epsilon=0.5).loss.value)
    assert half.solve(epsilon=1).loss.value == pytest.approx(one.solve().loss.value)
    assert problem().solve(epsilon=Fraction(1, 3)).guarantees[0].figures["epsilon"] == "1/3"


def test_a_float_is_read_as_it_is_written() -> None:
    """0.1 is one tenth, not the nearest double."""
    assert problem().solve(epsilon=0.1).guarantees[0].figures["epsilon"] == "0.1"


def test_constants_are_public_arrays() -> None:
    plan = problem().solve()
    assert plan.document["problem"]["blocks"][0]["offset"]["rows"] == [10, 20]
    again = privspec.Problem(TOTALS).solve(constants={"A": A})
    assert again.loss.value == plan.loss.value
    moved = privspec.Problem(TOTALS, {}, {"A": A}).solve(constants={"A": 2 * A})
    assert moved.loss.value == pytest.approx(4 * plan.loss.value, rel=1e-6)


def test_a_constant_without_a_value() -> None:
    with pytest.raises(SpecError) as caught:
        privspec.Problem(TOTALS).solve()
    assert all(d.labels for d in caught.value.diagnostics)


def test_a_tree_is_as_good_as_text() -> None:
    tree = parse(Source("t", template_text("two_observers")))
    assert privspec.Problem(tree).solve().loss.value == pytest.approx(
        privspec.Problem(template_text("two_observers")).solve().loss.value
    )


def test_check_gives_the_graph() -> None:
    model = problem().check(epsilon=2)
    assert [node.name for node in model.outputs] == ["O"]
    assert model.parameters["epsilon"] == 2


def test_the_reference_solver_and_limits() -> None:
    plan = problem().solve(solver="cvxpy", time_limit=60)
    assert plan.document["remarks"]["solver"]["name"].startswith("cvxpy")
    assert plan.loss.value == pytest.approx(problem().solve().loss.value, rel=1e-5)


def test_errors_of_a_spec_are_all_told() -> None:
    with pytest.raises(SpecError) as caught:
        privspec.Problem("variables: input x in [0, 1]^3\nloss: E[ ||P - x||^2 ]\nprivacy: Q is 1-DP wrt z").solve()
    assert len(caught.value.diagnostics) >= 3


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        privspec.load(tmp_path / "nothing.priv")
    assert caught.value.diagnostics[0].code == "PS0701"


def test_files_are_found_beside_the_spec(tmp_path: Path) -> None:
    np.savetxt(tmp_path / "a.csv", A, delimiter=",")
    path = tmp_path / "a.priv"
    path.write_text(TOTALS.replace("constant A in real^(2, 4)", 'constant A = csv("a.csv")'), "utf-8")
    plan = privspec.load(path, epsilon=2).solve()
    assert plan.loss.value == pytest.approx(problem(epsilon=2).solve().loss.value)
    (tmp_path / "a.csv").unlink()
    assert plan.verify().ok, "a plan stands by itself"
    assert plan.model().name == "a"


DATA = np.array([0.25, 0.5, 0.75, 1.0])


@pytest.mark.parametrize(
    "data",
    [DATA, DATA.tolist(), pl.Series(DATA), pl.DataFrame({"x": DATA}), pa.table({"x": DATA})],
    ids=["numpy", "list", "series", "frame", "arrow"],
)
def test_a_plan_runs_on_data_of_any_kind(data: object, tmp_path: Path) -> None:
    plan = problem(epsilon=50).solve()
    release = plan.run({"x": data}, ledger=tmp_path / "ledger.db", new_ledger=True)
    values = np.asarray(release.outputs["O"])
    np.testing.assert_allclose(values, A @ DATA + [10, 20], atol=10 * np.sqrt(plan.loss.value))
    assert release.plan_sha256 == plan.digest
    assert (tmp_path / "ledger.db").is_file()
    if not isinstance(data, list):
        assert type(release["O"]).__module__.split(".")[0] == type(data).__module__.split(".")[0]


def test_outputs_are_written_with_their_guarantee(tmp_path: Path) -> None:
    plan = problem().solve()
    plan.run({"x": DATA}, ledger=tmp_path / "ledger.db", output=tmp_path / "out.json", new_ledger=True)
    text = (tmp_path / "out.json").read_text("utf-8")
    assert plan.digest in text
    assert "guarantees" in text


def test_notebooks_show_specs_and_releases_escaped() -> None:
    problem = privspec.Problem(
        """variables:
  input people in table(sex in {"<b>F</b>", M})
  output O
loss: E[ ||O - histogram(people, by = {sex})||^2 ]
privacy: O is 1-DP wrt people, adding or removing one record
"""
    )
    assert repr(problem) == "<Problem <python>: a spec of 6 lines>"
    assert "&lt;b&gt;F&lt;/b&gt;" in problem._repr_html_()
    release = problem.solve().run({"people": {"sex": ["M"]}}, randomness=SimulationRandomness(1))
    assert repr(release).startswith("<Release of plan ")
    assert "O (2); " in repr(release)
    shown = release._repr_html_()
    assert "<td>&lt;b&gt;F&lt;/b&gt;</td>" in shown
    assert "<b>" not in problem._repr_html_() + shown
    assert shown.count("<tr>") == 3


def test_a_notebook_shows_the_excerpt_and_the_help_of_an_error() -> None:
    """In place of a traceback through this package, whose last line alone says what is wrong."""
    with pytest.raises(SpecError) as caught:
        privspec.Problem(TOTALS.replace("A @ x", "A' @ x"), {}, {"A": A}).check()
    shown = "\n".join(caught.value._render_traceback_())
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert plain == render_all(caught.value.diagnostics).rstrip("\n")
    assert "10 | background: y = A' @ x + b" in plain and "^^" in plain and "= help: " in plain
    assert "\x1b[" in shown
    html = caught.value._repr_html_()
    assert html.startswith("<pre>") and "A&#x27; @ x" in html and "<script" not in html


def test_a_seed_makes_a_run_a_simulation(tmp_path: Path) -> None:
    plan, data = problem().solve(), {"x": [0.5, 0.25, 1, 0]}
    once, again = (plan.run(data, output=tmp_path / f"{i}.csv", seed=7) for i in range(2))
    assert np.array_equal(once["O"], again["O"])
    assert not np.array_equal(once["O"], plan.run(data, seed=8)["O"])
    assert np.array_equal(once["O"], plan.run(data, randomness=SimulationRandomness(7))["O"])
    assert not once.private and once.guarantees == () and once.ledger is None
    assert "false" in (tmp_path / "0.csv").read_text("utf-8").splitlines()[1].lower()
    for more in ({"new_ledger": True}, {"randomness": SimulationRandomness(1)}):
        with pytest.raises(UsageError, match="simulation"):
            plan.run(data, seed=7, **more)
