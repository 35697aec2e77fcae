"""The real command line: what it prints where, exit codes, and that nothing is left half-written.

Most tests call the command in this process; those that need a process of their own (start, signals, colours)
are few, as each costs a second.
"""

from __future__ import annotations

import copy
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

import privspec
from privspec.cli import run_command_line
from privspec.core.catalogue import entries
from privspec.execute.family import mechanism_of
from privspec.kernel.writing import plan_digest
from privspec.manual import copy_template, list_templates, template_text
from privspec.model.values import show
from privspec.plan import Plan
from tests.plans import dense, keep, small_text

COMMAND = [sys.executable, "-c", "from privspec.cli import main; main()"]
CODE = re.compile(r"(?:error|infeasible)\[(PS\d{4})\]")
NAMES = [template.name for template in list_templates()]


@dataclass(frozen=True)
class Done:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def codes(self) -> list[str]:
        return CODE.findall(self.err)


Call = Callable[..., Done]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Run a command in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> Done:
        code = run_command_line(list(words))
        shown = capsys.readouterr()
        assert "Traceback" not in shown.err
        return Done(code, shown.out, shown.err)

    return run


def refused(done: Done, code: int, *diagnostics: str) -> None:
    """Exit code, diagnostics on standard error only, each with a long form."""
    assert (done.code, done.out) == (code, ""), done.err
    assert done.codes == list(diagnostics)
    assert set(done.codes) <= set(entries())


SMALL = """\
spec small
parameters:
  epsilon = 1
  delta = 1e-6
variables:
  input x in [0, 1]^4
  intermediate y
  output O
background: y = prefix_sums(x)
loss: E[ ||O - y||^2 ]
privacy: O is (epsilon, delta)-DP wrt x, replacing one entry
options: noise family gaussian
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.priv"
    path.write_text(SMALL, "utf-8")
    (tmp_path / "x.csv").write_text("x\n0\n0.5\n1\n0.25\n", "utf-8")
    return path


# --- every template, the whole way --------------------------------------------------------------


def data_for(plan: dict[str, Any], folder: Path) -> list[str]:
    """A data file for each input, as options of `run`."""
    dice = np.random.default_rng(3)
    options = []
    if "components" in plan["mechanism"]:
        return columns_for(plan, folder)
    if "states" in (block := plan["problem"]["blocks"][0]):
        path = folder / f"{block['source']}.csv"
        path.write_text("\n".join([block["source"], *dice.choice(block["states"], 100)]) + "\n", "utf-8")
        return ["--input", f"{block['source']}={path}"]
    if "probabilities" in plan["mechanism"]:
        return people_for(plan, folder)
    if block["form"] in ("points", "cells"):
        size = block.get("size", 1)
        path = folder / f"{block['source']}.csv"
        columns = [block["source"]] if size == 1 else [f"{block['source']}_{i + 1}" for i in range(size)]
        rows = [",".join(f"{v:.3f}" for v in dice.uniform(0, 10, size)) for _ in range(20 if size == 1 else 1)]
        path.write_text("\n".join([",".join(columns), *rows]) + "\n", "utf-8")
        return ["--input", f"{block['source']}={path}"]
    if plan["mechanism"]["family"] == "statistic":
        return records_for(plan, folder)
    if block["form"] == "means":
        return columns_for(plan, folder)
    if block["form"] == "frequencies":
        path = folder / f"{block['source']}.csv"
        rows = dice.integers(1, block["values"] + 1, block["count"])
        path.write_text("\n".join([block["source"], *map(str, rows)]) + "\n", "utf-8")
        return ["--input", f"{block['source']}={path}"]
    if block["form"] == "keys":
        path = folder / f"{block['source']}.csv"
        rows = [f"p{i},{key}" for i in range(200) for key in ("news", "weather")]
        path.write_text("\n".join([f"person,{block['columns'][0]['name']}", *rows]) + "\n", "utf-8")
        return ["--input", f"{block['source']}={path}"]
    if block["form"] in ("selection", "marginals"):
        columns = block.get("columns") or [{"name": block["column"], "values": ["30", "40"]}] + [
            {"name": one["column"], "values": one["values"]} for one in block["by"]
        ]
        drawn = [
            (one["name"], one["values"] or [str(v) for v in range(one["lower"], one["upper"] + 1)]) for one in columns
        ]
        rows = zip(*(dice.choice(values, 50) for _, values in drawn), strict=True)
        path = folder / f"{block['source']}.csv"
        path.write_text("\n".join(",".join(row) for row in ([name for name, _ in drawn], *rows)) + "\n", "utf-8")
        return ["--input", f"{block['source']}={path}"]
    if plan["problem"]["blocks"][0]["form"] == "votes":
        return ballots_for(plan, folder)
    for entry in block.get("block", block)["held"]:  # of a priced block, what it is a price of
        path = folder / f"{entry['name']}.csv"
        if columns := entry["columns"]:
            rows = [",".join(a["name"] for a in columns)]
            rows += [",".join(str(one_of(dice, a)) for a in columns) for _ in range(50)]
        else:
            # of vectors to which the same is done one number stands for all
            size, width = entry["stop"] - entry["start"], block.get("vectors", 1)
            values = dice.uniform(float(Fraction(entry["lower"])), float(Fraction(entry["upper"])), (size, width))
            rows = [",".join([entry["name"]] if width == 1 else [f"{entry['name']}_{j + 1}" for j in range(width)])]
            rows += [",".join(repr(float(v)) for v in row) for row in values]
        path.write_text("\n".join(rows) + "\n", "utf-8")
        options += ["--input", f"{entry['name']}={path}"]
    return options


def records_for(plan: dict[str, Any], folder: Path) -> list[str]:
    """A table of records, all that every party is declared to hold."""
    (block,) = plan["problem"]["blocks"]
    name, party, dimension = block["source"], block["party"], block["dimension"]
    numbers = np.random.default_rng(3).normal(size=(block["parties"], block["count"], dimension))
    rows = [",".join([party, *(f"{name}_{j + 1}" for j in range(dimension))])]
    rows += [",".join([str(i + 1), *map(str, record)]) for i, held in enumerate(numbers) for record in held]
    path = folder / f"{name}.csv"
    path.write_text("\n".join(rows) + "\n", "utf-8")
    return ["--input", f"{name}={path}"]


def columns_for(plan: dict[str, Any], folder: Path) -> list[str]:
    """A column for each input of a system: numbers between their ends, or values of a finite domain."""
    options, dice = [], np.random.default_rng(3)
    for block in Plan.of(plan).model().blocks:
        path, size = folder / f"{block.name}.csv", block.type.size
        if block.schema:
            drawn = [[str(one_value(dice, domain)) for _, domain in block.schema] for _ in range(block.records or 50)]
            if block.index:  # one record per party
                drawn = [[str(i + 1), *row[1:]] for i, row in enumerate(drawn)]
            path.write_text("\n".join(map(",".join, [[name for name, _ in block.schema], *drawn])) + "\n", "utf-8")
            options += ["--input", f"{block.name}={path}"]
            continue
        if block.domain.size is None:
            rows = [str(v) for v in dice.uniform(*map(float, block.domain.bounds), size)]
        else:
            rows = list(dice.choice([show(e) for e in block.domain.innermost.elements()], size))
        path.write_text("\n".join([block.name, *rows]) + "\n", "utf-8")
        options += ["--input", f"{block.name}={path}"]
    return options


def one_value(dice: np.random.Generator, domain: Any) -> object:
    """A value of a column: a number between its ends, or one of its values."""
    if domain.size is None:
        return dice.uniform(*map(float, domain.bounds))
    return dice.choice([show(value) for value in domain.elements()])


def people_for(plan: dict[str, Any], folder: Path) -> list[str]:
    """Data for a table: one record per row where people report themselves, else each input as it is declared."""
    model = Plan.of(plan).model()
    local = mechanism_of(plan).local_reports(model) is not None
    dice = np.random.default_rng(3)
    options = []
    for block in model.blocks:
        values = [show(e) for e in block.domain.innermost.elements()]
        columns = [f"{block.name}_{j + 1}" for j in range(block.size)] if local and block.size > 1 else [block.name]
        people = 50 if local else block.size
        path = folder / f"{block.name}.csv"
        rows = [",".join(dice.choice(values, len(columns))) for _ in range(people)]
        path.write_text("\n".join([",".join(columns), *rows]) + "\n", "utf-8")
        options += ["--input", f"{block.name}={path}"]
    return options


def ballots_for(plan: dict[str, Any], folder: Path) -> list[str]:
    """As many ballots as the spec has voters: words, or rankings with the best first."""
    block, dice = plan["problem"]["blocks"][0], np.random.default_rng(3)
    size = Plan.of(plan).model().parties[block["party"]].size
    ranked = block["ballots"]["kind"] != "first choice"
    orders = [list(dice.permutation(block["ballots"]["alternatives"])) for _ in range(20)]
    rows = [" ".join(order) if ranked else order[0] for order in orders]
    counts = [size - 19, *[1] * 19]
    path = folder / "ballots.csv"
    head = f"{'ranking' if ranked else 'choice'},count"
    path.write_text("\n".join([head, *(f"{row},{n}" for row, n in zip(rows, counts, strict=True))]) + "\n", "utf-8")
    return ["--input", f"{block['source']}={path}"]


def one_of(dice: np.random.Generator, attribute: dict[str, Any]) -> Any:
    if attribute["values"]:
        return attribute["values"][int(dice.integers(len(attribute["values"])))]
    return int(dice.integers(attribute["lower"], attribute["upper"] + 1))


BARE = "noothigattu_baseline"
"""The template that asks for no privacy."""


def test_the_template_without_privacy_says_so(call: Call) -> None:
    assert call("templates", BARE, "-o", "mine.priv").code == 0
    assert call("check", "mine.priv").code == 0
    solved = call("solve", "mine.priv")
    assert solved.code == 3
    assert "PS0518" in solved.err and "without any noise" in solved.err


LARGE = (
    "city_report",
    "crowd_vldp",
    "geo_indistinguishability",
    "momentum_training",
    "press_and_auditors",
    "street_report",
    "wang_algorithm_3",
)
"""Templates that take long as they are: every run goes the way with small ones, a slow run with these as well."""
SIBLINGS = ("crowd_vldp", "wang_algorithm_3")
"""Of those, what stays long: crowd_vlcp and wang_algorithm_2 go the same way."""


def test_large_templates_are_templates() -> None:
    assert set(LARGE) <= set(NAMES)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in (BARE, *LARGE)])
def test_a_template_goes_the_whole_way(name: str, call: Call, tmp_path: Path) -> None:
    assert call("templates", name, "-o", "mine.priv").code == 0
    goes_the_whole_way(name, template_text(name), call, tmp_path)


@pytest.mark.parametrize("name", [name for name in LARGE if name not in SIBLINGS])
def test_a_large_template_goes_the_whole_way_when_it_is_small(name: str, call: Call, tmp_path: Path) -> None:
    (tmp_path / "mine.priv").write_text(small_text(name), "utf-8")
    goes_the_whole_way(name, small_text(name), call, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_a_large_template_goes_the_whole_way(name: str, call: Call, tmp_path: Path) -> None:
    assert call("templates", name, "-o", "mine.priv").code == 0
    goes_the_whole_way(name, template_text(name), call, tmp_path)


def goes_the_whole_way(name: str, text: str, call: Call, tmp_path: Path) -> None:
    """Checked, solved, verified, explained, run: mine.priv, which holds this text."""
    assert call("check", "mine.priv").out.startswith(f"mine.priv: {name} is well formed")
    solved = call("solve", "mine.priv")
    assert (solved.code, solved.err) == (0, "")
    assert solved.out.startswith(name)
    plan = json.loads((tmp_path / "mine.plan.json").read_text("utf-8"))
    verified = call("verify", "mine.plan.json")
    assert verified.code == 0
    assert "failed" not in verified.out
    keep(text, plan)
    for reader in ("public", "auditor", "engineer"):
        for form in ("md", "html", "json"):
            done = call("explain", "mine.plan.json", "--for", reader, "-o", f"{reader}.{form}")
            assert (done.code, done.out) == (0, "")
            text = (tmp_path / f"{reader}.{form}").read_text("utf-8")
            assert len(text) > 500
            if form == "json":
                json.loads(text)
            if form == "html":
                assert "<html" in text
                assert "http://" not in text.replace("http://www.w3.org", "")
    run = call("run", "mine.plan.json", *data_for(plan, tmp_path), "-o", "release.json", "--new-ledger")
    assert (run.code, run.out) == (0, "")
    releases = [json.loads(path.read_text("utf-8")) for path in sorted(tmp_path.glob("release*.json"))]
    assert {name for release in releases for name in release["outputs"]} == set(mechanism_of(plan).outputs)
    for release in releases:
        assert release["plan_sha256"] == plan["digest"]
        assert release["private"] is True and release["guarantees"]
        assert release["ledger"] == releases[0]["ledger"]
    again = call("run", "mine.plan.json", *data_for(plan, tmp_path))
    refused(again, 6, "PS1001")


# --- where things are printed --------------------------------------------------------------------


def test_json_goes_to_standard_output_and_the_file(call: Call, small: Path, tmp_path: Path) -> None:
    done = call("solve", "small.priv", "--json")
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out) == json.loads((tmp_path / "small.plan.json").read_text("utf-8"))
    assert json.loads(call("verify", "small.plan.json", "--json").out)["verified"] is True
    assert json.loads(call("check", "small.priv", "--json").out)["outputs"] == ["O"]
    assert [t["name"] for t in json.loads(call("templates", "--json").out)] == NAMES
    rows = json.loads(call("sweep", "small.priv", "--over", "epsilon=1,2", "--json").out)["rows"]
    assert [row["value"] for row in rows] == ["1", "2"]


def test_quiet_prints_nothing(call: Call, small: Path, tmp_path: Path) -> None:
    for words in (
        ("check", "small.priv", "--quiet"),
        ("solve", "small.priv", "--quiet"),
        ("solve", "small.priv", "-q", "--solver", "cvxpy"),
        ("verify", "small.plan.json", "--quiet"),
        ("run", "small.plan.json", "--input", "x=x.csv", "--new-ledger", "-o", "out.json", "--quiet"),
        ("sweep", "small.priv", "--over", "epsilon=1,2", "-o", "sweep.csv", "--quiet"),
    ):
        assert call(*words) == Done(0, "", ""), words
    assert {p.name for p in tmp_path.iterdir()} >= {"small.plan.json", "out.json", "sweep.csv", "sweep.svg"}


def test_warnings_go_to_standard_error(call: Call, tmp_path: Path) -> None:
    text = SMALL.replace("  output O\n", "  output O\n  output P\n").replace("loss:", "loss: E[ ||P - x||^2 ] +")
    (tmp_path / "w.priv").write_text(text, "utf-8")
    done = call("check", "w.priv", "--json")
    json.loads(done.out)
    assert "warning[PS0315]" in done.err
    assert call("check", "w.priv", "--quiet") == Done(0, "", "")


def test_outputs_go_where_they_are_asked_for(call: Call, small: Path, tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    assert call("solve", "small.priv", "-o", "results/a.json", "--set", "epsilon=2").code == 0
    assert json.loads((tmp_path / "results/a.json").read_text("utf-8"))["spec"]["parameters"]["epsilon"] == "2"
    assert not (tmp_path / "small.plan.json").exists()
    assert call("explain", "results/a.json").out.startswith("#")
    assert call("check", "small.priv", "--graph", "graph.svg").code == 0
    assert (tmp_path / "graph.svg").read_text("utf-8").lstrip().startswith("<")
    assert "x" in call("check", "small.priv", "--graph").out
    assert [p.name for p in (tmp_path / "results").iterdir()] == ["a.json"]


@pytest.mark.parametrize("stage", ["tree", "graph", "system", "candidates", "plan"])
def test_stages_are_dumped(stage: str, call: Call, small: Path) -> None:
    done = call("solve", "small.priv", "--dump", stage)
    assert done.code == 0
    assert len(done.out) > 100


def test_constants_and_parameters_from_outside(call: Call, tmp_path: Path) -> None:
    text = SMALL.replace("  intermediate y\n", "  constant b in real^4\n  intermediate y\n").replace("(x)", "(x) + b")
    (tmp_path / "b.priv").write_text(text, "utf-8")
    np.save(tmp_path / "b.npy", np.array([1.0, 2, 3, 4]))
    (tmp_path / "b.csv").write_text("1\n2\n3\n4\n", "utf-8")
    for file in ("b.npy", "b.csv"):
        done = call("solve", "b.priv", "--constant", f"b={file}", "--json")
        assert done.code == 0, done.err
        assert json.loads(done.out)["problem"]["blocks"][0]["offset"]["rows"] == [1, 2, 3, 4]
    # what is only added to the result may wait until the run
    later = call("solve", "b.priv", "--json")
    assert later.code == 0, later.err
    assert [c["name"] for c in json.loads(later.out)["problem"]["blocks"][0]["constants"]] == ["b"]
    refused(call("run", "b.plan.json", "--input", "x=b.csv", "--seed", "1"), 2, "PS0824")


def test_templates_are_listed_and_shown(call: Call) -> None:
    listed = call("templates").out
    for name in NAMES:
        assert name in listed
        assert call("templates", name).out.startswith(f"spec {name}\n")


def test_a_spec_is_a_file_a_template_or_piped(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A template's name is enough, its parts and files too; what is piped writes its plan here."""
    assert call("solve", "yearly_releases", "-q").code == 0
    assert Plan.read(tmp_path / "yearly_releases.plan.json").name == "yearly_releases"
    (tmp_path / "counting_query").write_text("variables:\n  input x\n", "utf-8")
    assert call("check", "counting_query").code == 3  # a file goes before a template
    missing = call("check", "linear_querys")
    assert (missing.code, missing.codes) == (2, ["PS0701"])
    assert "did you mean linear_queries?" in missing.err
    assert call("check", "linear_queries.priv").codes == ["PS0701"]
    text = template_text("counting_query")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    solved = call("solve", "-", "-o", "-")
    assert solved.code == 0
    assert json.loads(solved.out)["spec"]["source"] == text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["counting_query", "yearly_releases.plan.json"]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(solved.out.encode())))
    assert call("verify", "-", "-q").code == 0
    changed = solved.out.replace('"curator"', '"nobody"', 1)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(changed.encode())))
    assert call("explain", "-", "-o", "-").code == 7
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert call("solve", "-", "-q").code == 0
    assert (tmp_path / "counting_query.plan.json").is_file()


def test_the_version_and_the_exit_codes(call: Call) -> None:
    assert call("--version").out == f"privspec {version('privspec')}\n"
    assert "4 requirements proven infeasible" in call("--help").out


def test_formatting(call: Call, small: Path) -> None:
    assert call("fmt", "small.priv", "--check").code == 1
    assert small.read_text("utf-8") == SMALL
    assert call("fmt", "small.priv").code == 0
    assert call("fmt", "small.priv", "--check").code == 0
    assert call("fmt", "small.priv").code == 0
    assert call("solve", "small.priv", "--quiet").code == 0


def test_every_error_has_a_long_form(call: Call) -> None:
    for code in entries():
        assert call("explain-error", code).out.startswith(code)


def test_every_command_explains_itself(call: Call) -> None:
    for words in ((), *((name,) for name in COMMANDS), *(("ledger", name) for name in ("init", "show", "verify"))):
        done = call(*words, "--help")
        assert (done.code, done.err) == (0, "")
        assert "Usage: privspec" in done.out


COMMANDS = (
    "check",
    "solve",
    "explain",
    "verify",
    "audit",
    "run",
    "sweep",
    "templates",
    "fmt",
    "explain-error",
    "ledger",
)


# --- exit codes ----------------------------------------------------------------------------------


def test_exit_1_data_that_do_not_fit(call: Call, small: Path, tmp_path: Path) -> None:
    call("solve", "small.priv", "-q")
    refused(call("run", "small.plan.json"), 1, "PS0801")
    refused(call("run", "small.plan.json", "--input", "x=nothing.csv"), 1, "PS0802")
    (tmp_path / "short.csv").write_text("x\n1\n", "utf-8")
    refused(call("run", "small.plan.json", "--input", "x=short.csv"), 1, "PS0805")
    assert call("run", "small.plan.json", "--input", "x=x.csv", "--new-ledger").code == 0, (
        "nothing was spent on what was refused"
    )


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("", "PS0700"),
        ("ledger", "PS0700"),
        ("frobnicate", "PS0700"),
        ("solve", "PS0700"),
        ("solve small.priv --frob", "PS0700"),
        ("solve small.priv more.priv", "PS0700"),
        ("solve small.priv --set", "PS0700"),
        ("solve small.priv --time-limit soon", "PS0700"),
        ("solve nothing.priv", "PS0701"),
        ("check .", "PS0702"),
        ("explain-error PS9999", "PS0703"),
        ("verify nothing.json", "PS0710"),
        ("solve small.priv --constant b=nothing.csv", "PS0710"),
        ("verify small.priv", "PS0711"),
        ("run x.csv --input x=x.csv", "PS0711"),
        ("solve small.priv -o nowhere/plan.json", "PS0713"),
        ("solve small.priv --set epsilon", "PS0720"),
        ("solve small.priv --set =1", "PS0720"),
        ("solve small.priv --constant b", "PS0720"),
        ("solve small.priv --solver magic", "PS0721"),
        ("solve small.priv --dump soul", "PS0721"),
        ("solve small.priv --time-limit 0", "PS0721"),
        ("solve small.priv --time-limit -1", "PS0721"),
        ("solve small.priv --time-limit nan", "PS0721"),
        ("sweep small.priv --over epsilon", "PS0722"),
        ("sweep small.priv", "PS0700"),
        ("templates nothing", "PS0730"),
        ("templates prefix_sums -o x.csv", "PS0731"),
    ],
)
def test_exit_2_a_call_that_cannot_be_understood(words: str, code: str, call: Call, small: Path) -> None:
    refused(call(*words.split()), 2, code)


def test_exit_2_a_plan_that_holds_no_mechanism(call: Call, small: Path) -> None:
    small.write_text(SMALL.replace("[0, 1]", "real"), "utf-8")
    done = call("solve", "small.priv", "--json")
    assert done.code == 4
    Path("small.plan.json").write_text(done.out, "utf-8")
    refused(call("explain", "small.plan.json"), 2, "PS0714")
    refused(call("run", "small.plan.json", "--input", "x=x.csv"), 2, "PS0714")


def test_exit_3_every_error_of_a_spec_at_once(call: Call, small: Path) -> None:
    small.write_text(SMALL.replace("prefix_sums(x)", "prefix_sum(z)").replace("wrt x", "wrt w"), "utf-8")
    for command in ("check", "solve"):
        done = call(command, "small.priv")
        assert (done.code, done.out) == (3, "")
        assert len(done.codes) >= 3
        assert len(re.findall(r"--> small\.priv:\d+:\d+", done.err)) == len(done.codes)
        assert "did you mean prefix_sums?" in done.err


def test_exit_4_what_cannot_hold_together(call: Call, small: Path, tmp_path: Path) -> None:
    small.write_text(SMALL.replace("(epsilon, delta)-DP", "epsilon-DP"), "utf-8")
    done = call("solve", "small.priv")
    refused(done, 4, "PS0601")
    assert "noise family gaussian" in done.err
    assert "Smallest single changes that work" in done.err
    assert not (tmp_path / "small.plan.json").exists()
    document = json.loads(call("solve", "small.priv", "--json").out)
    assert set(document) >= {"format", "spec", "status", "conflicts", "relaxations"}
    assert document["status"] == "infeasible"
    assert "mechanism" not in document


def test_exit_5_no_time(call: Call, small: Path) -> None:
    small.write_text(SMALL.replace("^4", "^60"), "utf-8")
    refused(call("solve", "small.priv", "--time-limit", "1e-9"), 5, "PS0610")
    assert not Path("small.plan.json").exists()


def test_exit_6_the_budget_is_spent(call: Call, small: Path, tmp_path: Path) -> None:
    call("solve", "small.priv", "-q")
    refused(call("run", "small.plan.json", "--input", "x=x.csv"), 6, "PS1010")
    assert call("run", "small.plan.json", "--input", "x=x.csv", "--new-ledger").code == 0
    done = call("run", "small.plan.json", "--input", "x=x.csv", "-o", "out.json")
    refused(done, 6, "PS1001")
    assert "privspec ledger init" in done.err
    assert not (tmp_path / "out.json").exists()
    assert "spent" in call("ledger", "show", "x.ledger.db").out
    assert call("ledger", "verify", "x.ledger.db").code == 0
    limit = "epsilon=10 delta=1e-4 wrt x, replacing one entry"
    raised = call("ledger", "init", "x.ledger.db", "--raise", "--limit", limit)
    assert raised.code == 0, raised.err
    assert call("run", "small.plan.json", "--input", "x=x.csv").code == 0


def test_other_people_are_stated_on_record(call: Call, small: Path, tmp_path: Path) -> None:
    call("solve", "small.priv", "-q")
    assert call("run", "small.plan.json", "--input", "x=x.csv", "--new-ledger").code == 0
    (tmp_path / "june.csv").write_bytes((tmp_path / "x.csv").read_bytes())
    done = call("run", "small.plan.json", "--input", "x=june.csv", "--new-ledger")
    refused(done, 6, "PS1012")
    assert "if they are other people's, say so on record:  --other-people 'why'" in done.err
    how = ("run", "small.plan.json", "--input", "x=june.csv", "--new-ledger", "--other-people")
    refused(call(*how, ""), 2, "PS0721")
    refused(call(*how, "the class of June", "--seed", "1"), 2, "PS0721")
    assert not (tmp_path / "june.ledger.db").exists()
    assert call(*how, "the class of June").code == 0
    assert "these are other people's data: the class of June" in call("ledger", "show", "june.ledger.db").out
    assert call("ledger", "verify", "june.ledger.db").code == 0


@pytest.mark.parametrize(("terminal", "answer", "code"), [(False, True, 0), (True, True, 0), (True, False, 6)])
def test_who_gives_data_a_ledger_that_are_nearly_known_is_asked(
    call: Call, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, terminal: bool, answer: bool, code: int
) -> None:
    small.write_text(SMALL.replace("^4", "^40"), "utf-8")
    call("solve", "small.priv", "-q")
    values = [f"{(k * k * 37 % 1009) / 1009:.4f}" for k in range(40)]
    (tmp_path / "x.csv").write_text("x\n" + "\n".join(values) + "\n", "utf-8")
    assert call("run", "small.plan.json", "--input", "x=x.csv", "--new-ledger").code == 0
    (tmp_path / "y.csv").write_text("x\n" + "\n".join(["0.5", *values[1:]]) + "\n", "utf-8")
    asked = list[str]()

    def confirm(text: str, **_: Any) -> bool:
        asked.append(text)
        return answer

    monkeypatch.setattr("sys.stdin.isatty", lambda: terminal, raising=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal, raising=False)
    monkeypatch.setattr("click.confirm", confirm)
    done = call("run", "small.plan.json", "--input", "x=y.csv", "--new-ledger")
    assert done.code == code and "PS1017" in done.err and len(asked) == terminal
    assert (tmp_path / "y.ledger.db").exists() is (code == 0)
    assert not any(value in done.err for value in values)


def test_exit_7_a_plan_that_was_changed(call: Call, small: Path, tmp_path: Path) -> None:
    call("solve", "small.priv", "-q")
    plan = json.loads((tmp_path / "small.plan.json").read_text("utf-8"))
    changed = copy.deepcopy(plan)
    changed["loss"]["value"] *= 1.001
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(changed), "utf-8")
    done = call("verify", "changed.json")
    assert (done.code, done.codes) == (7, ["PS0910"])
    assert "failed" in done.out
    refused(call("run", "changed.json", "--input", "x=x.csv"), 7, "PS0910")
    refused(call("explain", "changed.json"), 7, "PS0910")
    # even where the digest is made to fit
    dense(changed)["rows"][0] *= 2
    path.write_text(json.dumps({**changed, "digest": plan_digest(changed)}), "utf-8")
    refused(call("verify", "changed.json", "--quiet"), 7, "PS0910")
    refused(call("run", "changed.json", "--input", "x=x.csv"), 7, "PS0910")
    assert not list(tmp_path.glob("*.db"))


# --- bad numbers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["check", "solve"])
@pytest.mark.parametrize(
    "setting",
    [
        "epsilon=0",
        "epsilon=-1",
        "epsilon=nan",
        "epsilon=inf",
        "epsilon=1e999999999",
        "epsilon=1/0",
        "epsilon=[1, 2]",
        "epsilon={1, 2}",
        "epsilon=zebra",
        "epsilon=(",
        "delta=-1e-6",
        "delta=1",
        "delta=2",
        "delta=nan",
        "nothing=1",
    ],
)
def test_bad_parameters(command: str, setting: str, call: Call, small: Path) -> None:
    done = call(command, "small.priv", "--set", setting)
    assert (done.code, done.out) == (3, ""), done.err
    assert done.codes
    assert set(done.codes) <= set(entries())
    assert setting.split("=")[0] in done.err


BAD_SPECS = {
    "an empty input": ("[0, 1]^4", "[0, 1]^0"),
    "a negative size": ("[0, 1]^4", "[0, 1]^(-3)"),
    "a broken size": ("[0, 1]^4", "[0, 1]^2.5"),
    "an infinite size": ("[0, 1]^4", "[0, 1]^(1 / 0)"),
    "a domain the wrong way round": ("[0, 1]^4", "[1, 0]^4"),
    "a domain of no number": ("[0, 1]^4", "[nan, 1]^4"),
    "a domain beyond doubles": ("[0, 1]^4", "[0, 1e400]^4"),
    "not a number": ("prefix_sums(x)", "nan * prefix_sums(x)"),
    "an infinite factor": ("prefix_sums(x)", "inf * prefix_sums(x)"),
    "a factor beyond doubles": ("prefix_sums(x)", "1e999 * prefix_sums(x)"),
    "division by zero": ("prefix_sums(x)", "prefix_sums(x) / 0"),
    "an epsilon of 0": ("(epsilon, delta)-DP", "(0, delta)-DP"),
    "a negative epsilon": ("(epsilon, delta)-DP", "(-1, delta)-DP"),
    "a delta of 1": ("(epsilon, delta)-DP", "(1, 1)-DP"),
    "a negative delta": ("(epsilon, delta)-DP", "(1, -0.1)-DP"),
    "no positive weight": ("E[ ||O", "-2 * E[ ||O"),
    "a matrix of the wrong shape": ("prefix_sums(x)", "[[1, 2], [3, 4]] @ x"),
    "rows of different length": ("prefix_sums(x)", "[[1, 2, 3, 4], [1, 2]] @ x"),
    "an empty list": ("prefix_sums(x)", "[] @ x"),
    "an empty sum": ("prefix_sums(x)", "sum(x[i] for i in 1..0) * x"),
    "an entry that is not there": ("prefix_sums(x)", "x[5] * [1, 1, 1, 1]"),
    "entry 0": ("prefix_sums(x)", "x[0] * [1, 1, 1, 1]"),
    "a file that is not there": ("prefix_sums(x)", 'csv("nothing.csv") @ x'),
    "a file that is empty": ("prefix_sums(x)", 'csv("empty.csv") @ x'),
    "a file of words": ("prefix_sums(x)", 'csv("words.csv") @ x'),
    "a file with NaN": ("prefix_sums(x)", 'csv("nan.csv") @ x'),
    "a file with a hole": ("prefix_sums(x)", 'csv("hole.csv") @ x'),
    "a file of another shape": ("prefix_sums(x)", 'csv("shape.csv") @ x'),
    "an array with infinity": ("prefix_sums(x)", 'npy("inf.npy") @ x'),
    "an array of objects": ("prefix_sums(x)", 'npy("objects.npy") @ x'),
    "a matrix of 10^16 entries": ("prefix_sums(x)", "ones(100000000, 100000000) @ x"),
}


def bad_files(folder: Path) -> None:
    for name, text in (("empty", ""), ("words", "a,b,c,d\n"), ("nan", "1,nan,3,4\n"), ("hole", "1,,3,4\n")):
        (folder / f"{name}.csv").write_text(text, "utf-8")
    (folder / "shape.csv").write_text("1,2\n3,4\n", "utf-8")
    np.save(folder / "inf.npy", np.array([[1.0, np.inf, 1, 1]]))
    np.save(folder / "objects.npy", np.array([["a", None, 1, 1]], dtype=object), allow_pickle=True)


@pytest.mark.parametrize("name", BAD_SPECS)
def test_bad_numbers_in_a_spec(name: str, call: Call, small: Path, tmp_path: Path) -> None:
    bad_files(tmp_path)
    old, new = BAD_SPECS[name]
    assert old in SMALL
    small.write_text(SMALL.replace(old, new), "utf-8")
    done = call("solve", "small.priv")
    assert (done.code, done.out) == (3, ""), done.err
    assert done.codes
    assert set(done.codes) <= set(entries())
    assert len(re.findall(r"--> small\.priv:\d+:\d+", done.err)) == len(done.codes)
    assert not (tmp_path / "small.plan.json").exists()


@pytest.mark.parametrize("domain", ["[0, 1]^100000000", "[0, 1]^(10000, 10000)", "real^100000000"])
def test_a_domain_of_100_million_entries(domain: str, call: Call, small: Path) -> None:
    small.write_text(SMALL.replace("[0, 1]^4", domain).replace("prefix_sums(x)", "2 * x"), "utf-8")
    started = time.monotonic()
    assert call("check", "small.priv", "-q").code in (0, 3)
    done = call("solve", "small.priv", "-q")
    assert (done.code, set(done.codes)) == (3, {"PS0512"}), done.err
    assert time.monotonic() - started < 20


def test_a_table_of_100_million_cells(call: Call, tmp_path: Path) -> None:
    for table in ("a in 1..100000000", "a in 1..10000, b in 1..10000", "a in 0..9, b in 0..9, c in 0..999999"):
        text = SMALL.replace("[0, 1]^4", f"table({table})").replace("prefix_sums", "histogram")
        (tmp_path / "t.priv").write_text(text.replace("one entry", "one record"), "utf-8")
        done = call("solve", "t.priv", "-q")
        assert done.code == 3, done.err
        assert done.codes


@pytest.mark.parametrize("file", ["empty.csv", "words.csv", "nan.csv", "hole.csv", "inf.npy", "objects.npy", "."])
def test_bad_constants(file: str, call: Call, tmp_path: Path) -> None:
    bad_files(tmp_path)
    text = SMALL.replace("  intermediate y\n", "  constant b in real^4\n  intermediate y\n").replace("(x)", "(x) + b")
    (tmp_path / "b.priv").write_text(text, "utf-8")
    done = call("solve", "b.priv", "--constant", f"b={file}")
    assert done.code in (2, 3)
    assert done.codes
    assert done.out == ""


# --- processes of their own ----------------------------------------------------------------------


def process(words: list[str], folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **more}
    return subprocess.run(
        [*COMMAND, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


HEAVY = ("cvxpy", "matplotlib", "scipy", "flint", "opendp", "polars", "pyarrow", "jinja2", "networkx")
WATCHED = f"""
import sys
from privspec.cli import run_command_line
assert run_command_line(["check", sys.argv[1]]) == 0
print([name for name in {HEAVY!r} if name in sys.modules])
"""


@pytest.mark.parametrize("name", ["prefix_sums", "marginals"])
def test_check_imports_nothing_heavy(name: str, tmp_path: Path) -> None:
    path, *_ = copy_template(name, tmp_path / "mine.priv")
    done = subprocess.run([sys.executable, "-c", WATCHED, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[-2] == "[]"


def test_the_command_in_a_process_of_its_own(small: Path, tmp_path: Path) -> None:
    done = process(["solve", "small.priv"], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("small\n")
    assert "\x1b" not in done.stdout
    small.write_text(SMALL.replace("wrt x", "wrt z"), "utf-8")
    done = process(["solve", "small.priv"], tmp_path, NO_COLOR="1", FORCE_COLOR="1")
    assert done.returncode == 3
    assert "PS0" in done.stderr
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize("no_color", [True, False])
def test_colours_only_on_a_terminal(no_color: bool, small: Path, tmp_path: Path) -> None:
    pty = pytest.importorskip("pty")
    small.write_text(SMALL.replace("wrt x", "wrt z"), "utf-8")
    main, other = pty.openpty()
    environment = {**os.environ, "TERM": "xterm"}
    environment.pop("NO_COLOR", None)
    if no_color:
        environment["NO_COLOR"] = ""
    child = subprocess.Popen(
        [*COMMAND, "check", "small.priv"], cwd=tmp_path, env=environment, stderr=other, stdout=subprocess.PIPE
    )
    os.close(other)
    shown = b""
    try:
        while chunk := os.read(main, 4096):
            shown += chunk
    except OSError:
        pass  # the other end is closed
    finally:
        os.close(main)
        child.communicate(timeout=60)
    assert child.returncode == 3
    assert (b"\x1b[" in shown) is not no_color


def test_interrupted_leaves_nothing_behind(small: Path, tmp_path: Path) -> None:
    small.write_text(SMALL.replace("^4", "^700") + "  noise at x, y\n", "utf-8")
    child = subprocess.Popen(
        [*COMMAND, "solve", "small.priv", "--dump", "graph"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline()
    time.sleep(0.5)
    assert child.poll() is None
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "interrupted" in errors
    assert "Traceback" not in errors
    assert sorted(p.name for p in tmp_path.iterdir()) == ["small.priv", "x.csv"]


def test_a_reader_that_stops_reading(small: Path, tmp_path: Path) -> None:
    child = subprocess.Popen(
        [*COMMAND, "templates", "prefix_sums"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    child.stdout.close()
    assert child.stderr is not None
    errors = child.stderr.read()
    child.wait(timeout=60)
    assert "Traceback" not in errors


def test_runs_of_parquet_say_no_more_than_they_release(tmp_path: Path) -> None:
    """The file is opened beside the check of the plan: libraries, and what is wrong with the file, add no lines."""
    (tmp_path / "count.priv").write_text(
        "variables:\n  input people in table(sex in {F, M})\n  output N\nloss: E[ (N - count(people, sex = F))^2 ]\n"
        "privacy: N is 1-DP wrt people, adding or removing one record\n"
    )
    polars.DataFrame({"sex": ["F", "M", "F"]}).write_parquet(tmp_path / "people.parquet")
    (tmp_path / "other.parquet").write_text("no table")
    assert process(["solve", "count.priv", "-q", "-o", "plan.json"], tmp_path).returncode == 0
    words = ["run", "plan.json", "-o", "out.csv", "--ledger", "ledger", "--new-ledger", "--input"]
    bad = process([*words, "people=other.parquet"], tmp_path)
    assert bad.returncode == 1 and bad.stderr.startswith("error[PS0803]") and "Traceback" not in bad.stderr
    good = process([*words, "people=people.parquet"], tmp_path)
    assert good.returncode == 0 and "leaked" not in good.stderr


RUN = ["run", "prefix_sums.plan.json", "--input", "x=x.csv", "--new-ledger"]


@pytest.fixture
def four(tmp_path: Path) -> Path:
    """A folder with a plan and its data."""
    (tmp_path / "prefix_sums.plan.json").write_text(privspec.load("prefix_sums").solve(n=4).to_json())
    (tmp_path / "x.csv").write_text("x\n0.5\n0.25\n1\n0\n")
    return tmp_path


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_standard_output_that_takes_nothing_costs_nothing(four: Path) -> None:
    """A full device, a pipe that nobody reads, a file that has no room, and none at all."""
    nobody, end = os.pipe()
    os.close(nobody)
    least = "import resource, signal; resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)); "
    with Path("/dev/full").open("w") as full, os.fdopen(end, "w") as pipe, (four / "out.json").open("w") as small:
        for out, before in ((full, ""), (pipe, ""), (small, least), (None, "import sys; sys.stdout = None; ")):
            words = [sys.executable, "-c", before + COMMAND[2], *RUN]
            done = subprocess.run(
                words, cwd=four, stdout=out or subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False
            )
            assert done.returncode == 2 and "the standard output cannot be written" in done.stderr, done.stderr
            assert "nothing was spent" in done.stderr
    assert sorted(one.name for one in four.iterdir()) == ["out.json", "prefix_sums.plan.json", "x.csv"]
    assert (four / "out.json").read_text() == ""


@pytest.mark.parametrize("way", ["w", "a"])
def test_a_release_on_standard_output_takes_the_place_it_needs(four: Path, way: str) -> None:
    with (four / "out.json").open(way) as file:
        file.write("before\n")
        file.flush()
        done = subprocess.run([*COMMAND, *RUN], cwd=four, stdout=file, stderr=subprocess.PIPE, text=True, check=False)
        assert done.returncode == 0, done.stderr
        os.write(file.fileno(), b"after")
    text = (four / "out.json").read_text()
    assert text.startswith("before\n") and text.endswith("}\nafter")
    assert len(json.loads(text[len("before\n") : -len("after")])["outputs"]["O"]["values"]) == 4


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("words", [["check", "small.priv"], ["solve", "small.priv", "-o", "-"], ["help", "language"]])
def test_a_full_disk_behind_a_pipe_is_said(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "small.priv").write_text(template_text("histogram"))
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, *words], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2 and done.stderr.startswith("error[PS0713]: the standard output cannot be written")


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (["solve", "counting_query", "--epsilon", "0.5"], "a parameter of the spec is set by --set epsilon=VALUE"),
        (["solve", "counting_query", "--jsn"], "did you mean --json?"),
        (["explain", "p.json", "--epsilon", "1"], "privspec explain --help shows how it is used"),
    ],
)
def test_an_option_that_is_not_there(words: list[str], advice: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(words) == 2
    said = capsys.readouterr().err
    assert f"there is no option {words[2]}" in said and f"= help: {advice}" in said
