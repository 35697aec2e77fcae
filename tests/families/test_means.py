"""Sums and means of functions of what parties hold, where nobody is trusted: solved, run, told; and what is refused."""

from __future__ import annotations

import json
from fractions import Fraction
from math import exp
from pathlib import Path

import numpy as np
import pytest

from privspec.api import Problem
from privspec.cli import run_command_line
from privspec.core.diagnostics import PrivspecError
from privspec.execute.family import mechanism_of, simulate
from privspec.execute.run import _combine as combine
from privspec.execute.run import _run as run
from privspec.noise.samplers import SimulationRandomness
from privspec.plan import Plan
from tests.plans import solved_text

SPEC = """spec means
parties: p in 1..{count}
variables:
  input x[p] in {values}
{inner}{outputs}
{background}loss: {loss}
privacy:
  {line}
{options}"""
TWO = "  output A\n  output B"
BOTH = "E[ (A - mean(x[p] for p))^2 ] + 16 * E[ (B - mean(1 / x[p] for p))^2 ]"


def spec(count=50, values="1..10", loss="E[ (O - mean(x[p] for p))^2 ]", **rest):
    given = {"inner": "", "background": "", "outputs": "  output O", "line": "all outputs are 1-LDP wrt x"}
    given |= {"options": ""} | rest
    return SPEC.format(count=count, values=values, loss=loss, **given)


def two(**rest):
    return spec(loss=rest.pop("loss", BOTH), outputs=TWO, **rest)


W = {"inner": "  intermediate w[p]\n", "background": "background: w[p] = x[p]^2 - x[p]\n"}
M = {
    "inner": "  intermediate m\n",
    "background": "background: m = [mean(x[p] for p), mean(1 / x[p] for p)]\n",
}
SAME = [
    (spec(), spec(loss="worst[ (O - mean(x))^2 ]")),
    (
        spec(),
        spec(loss="E[ (mean(x) - O)^2 ]", line="O is 1-DP wrt x, replacing one p", options="options: trust nobody"),
    ),
    (spec(), spec(loss="E[ |O - sum(x) / 50|^2 ]")),
    (spec(), spec(loss="0.0004 * E[ (O - sum(x[p] for p))^2 ]")),
    (spec(), spec(loss="E[ (O - mean(x[p] + 3 for p))^2 ]")),
    (spec(), spec(loss="E[ (O - mean(-x[p] for p))^2 ]")),
    (spec(), spec(loss="E[ (O - mean(x) - 5)^2 ]")),
    (spec(), spec(options="options: noise family table\n")),
    (spec(), spec(line="O is 1-LDP wrt x\n  O is 3-LDP wrt x")),
    (spec(loss="E[ (O - mean(x^2 - x))^2 ]"), spec(loss="E[ (O - mean(w[p] for p))^2 ]", **W)),
    (spec(loss="E[ (O - mean(x^2 - x))^2 ]"), spec(loss="E[ (O - mean(w))^2 ]", **W)),
    (two(), two(loss="E[ (A - mean(x))^2 + 16 * (B - mean(1 / x))^2 ]")),
    (two(), two(loss="worst[ (A - mean(x))^2 + 16 * (B - mean(x^-1))^2 ]")),
    (
        two(loss=BOTH.replace("16 * ", "")),
        spec(loss="E[ ||O - m||^2 ]", **M),
    ),
    (two(loss=BOTH.replace("16 * ", "")), spec(loss="2 * E[ mean((O - m)^2) ]", **M)),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_other_words_give_the_same(one, other):
    first, second = (solved_text(text) for text in (one, other))
    for plan in (first, second):
        assert plan["mechanism"]["family"] == "means"
        assert plan["status"] == "optimal"
        assert Plan(plan).verify().ok
    assert second["loss"]["value"] == pytest.approx(first["loss"]["value"], rel=2e-6)


def test_two_values_have_a_closed_form():
    """A yes or no of each: randomised response, R / (R - 1)^2 of each person at the worst."""
    for epsilon in (0.2, 1, 3):
        plan = solved_text(spec(values="{0, 1}", line=f"O is {epsilon}-LDP wrt x"))
        assert plan["loss"]["value"] == pytest.approx(exp(epsilon) / (exp(epsilon) - 1) ** 2 / 50, rel=1e-6)


def test_a_mean_of_a_hundred_people():
    """Laplace noise has variance .02 and two-valued reports at most .0117; what is found has less, near a bound."""
    plan = solved_text(spec(count=100, values="[0, 1]"))
    two_valued = ((exp(1) + 1) / (exp(1) - 1)) ** 2 / 400
    assert two_valued < 0.0117 + 1e-5
    assert plan["loss"]["value"] < 0.01 < two_valued
    assert plan["loss"]["lower_bound"] > plan["loss"]["value"] * 0.998
    assert plan["loss"]["among"] == "all unbiased estimates from one report of each party"
    (laplace,) = plan["alternatives"]
    assert laplace["loss"] == pytest.approx(0.02)


def test_both_options_of_ramon_and_basu():
    """One report for all means has less loss than one for each, and than what a plan has today (TABLES.md)."""
    law = "background: x ~ uniform\n"
    plan = solved_text(two(count=1, background=law))
    assert plan["loss"]["kind"] == "expected"
    assert plan["loss"]["value"] == pytest.approx(101.777, abs=0.01)
    found = {one["name"]: one["loss"] for one in plan["alternatives"]}
    separate = found["a report for each number by itself, sharing the epsilon"]
    assert separate > 2 * plan["loss"]["value"]
    assert found["Laplace noise on every number, sharing the epsilon"] == pytest.approx(595.0, abs=0.1)
    tenth = solved_text(two(count=10, background=law))
    assert tenth["loss"]["value"] == pytest.approx(plan["loss"]["value"] / 10, rel=1e-6)
    worst = solved_text(two(count=1, background=law, loss=f"worst[{BOTH[2:].replace(' ] + 16 * E[', ' + 16 *')}"))
    assert worst["loss"]["kind"] == "worst"
    assert worst["loss"]["value"] == pytest.approx(105.146, abs=0.01)


@pytest.mark.parametrize(
    ("values", "epsilon", "gap"),
    [("1..10", 0.01, 1e-6), ("1..10", 12, 1e-4), ("[0.1, 1]", 0.01, 0.01), ("{0, 1, 1000}", 1, 1e-6)],
)
def test_very_strict_and_very_weak_lines(values, epsilon, gap):
    """Chances are nearly alike at the one, and of all sizes at the other."""
    body = BOTH if values[1] != "0" or "." in values else BOTH.replace("1 / x[p]", "x[p]^2 / 1000")
    plan = solved_text(two(values=values, loss=body, line=f"all outputs are {epsilon}-LDP wrt x"))
    assert plan["loss"]["relative_gap"] <= gap
    assert Plan(plan).verify().ok


README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
LOSSES = ("E[ (A - mean(x))^2 ]", "16 * E[ (B - mean(1 / x))^2 ]", "0.01 * E[ (C - mean(x^2))^2 ]")
SHAPED = """spec shaped
variables:
  input x in 1..10
  choose alpha in (0, 1]
  choose B in law(1..10)
  output z in 1..10
{names}background:
  x ~ uniform
{conditions}loss: {loss}
privacy: z is 1-LDP wrt x
"""
POWERS = (("a", "z", "x"), ("b", "1 / z", "1 / x"), ("c", "z^2", "x^2"))


def shaped(k):
    """The paper's program for one noisy version of x, debiased: its loss is that of one person."""
    used = POWERS[:k]
    free = [of_z.replace("z", "B") for _, of_z, _ in used]
    names = "".join(f"  intermediate {name}\n" for name, _, _ in used)
    lines = [f"E[{z} | x] = alpha * ({x}) + (1 - alpha) * E[{b}]" for (_, z, x), b in zip(used, free, strict=True)]
    lines += [f"{name} = ({z} - (1 - alpha) * E[{b}]) / alpha" for (name, z, _), b in zip(used, free, strict=True)]
    loss = " + ".join(f"{w} * E[ ({name} - {x})^2 ]" for w, (name, _, x) in zip((1, 16, 0.01), used, strict=False))
    return SHAPED.format(names=names, conditions="".join(f"  {line}\n" for line in lines), loss=loss)


@pytest.mark.slow
def test_the_figures_of_the_readme():
    """Of 10, 100 and 1,000 people; and what one noisy version of each number gives, by the paper's program."""
    best, one_version = [], []
    for k in (1, 2, 3):
        outputs = "\n".join(f"  output {name}" for name in "ABC"[:k])
        values = []
        for count in (10, 100, 1000):
            text = spec(count, loss=" + ".join(LOSSES[:k]), outputs=outputs, background="background: x ~ uniform\n")
            plan = solved_text(text)
            assert plan["status"] == "optimal"
            values.append(plan["loss"]["value"] * count)
        assert values == pytest.approx([values[0]] * 3, rel=1e-6)
        best.append(f"{values[0] / 10:.3g}")
        one_version.append(f"{solved_text(shaped(k))['loss']['value'] / 10:.3g}")
    assert f"{', '.join(best)}, which no unbiased estimate beats" in README
    assert f"(one noisy version of each x: {', '.join(one_version)})" in README


REFUSED = [
    (two(inner="  input y[p] in 0..3\n"), "PS0501", ""),
    (two(line="all outputs are (1, 0.01)-per-atom-LDP wrt x"), "PS0501", "per-atom-LDP of functions"),
    (two(values="1..100"), "PS0501", "which has 100 values"),
    (two(values="[0, 1]"), "PS0501", "powers x^p that have a value there"),
    (two(values="[0.1, 1]", background="background: x ~ uniform\n"), "PS0501", "a data model of x"),
    (two(values="[0.1, 1]", line="all outputs are 12-LDP wrt x"), "PS0501", "protects nothing"),
    (two(line="all outputs are 50-LDP wrt x"), "PS0501", "protects nothing"),
    (two(options="options: noise family laplace\n"), "PS0501", "noise family laplace"),
    (two(options="options: noise at x\n"), "PS0501", "such a place for noise"),
]


@pytest.mark.parametrize(("text", "code", "words"), REFUSED)
def test_what_is_not_known_is_refused_by_a_line(text, code, words):
    with pytest.raises(PrivspecError) as caught:
        Problem(text).solve()
    found = caught.value.diagnostics
    assert any(one.code == code and words in one.message for one in found), [one.message for one in found]
    assert all(one.labels for one in found)


def test_sums_that_reports_cannot_say_have_noise_as_before():
    for text in (spec(options="options: noise family laplace\n"), spec(values="[0, 1]", line="O is 12-LDP wrt x")):
        assert solved_text(text)["mechanism"]["family"] != "means"


ROOTS = """spec roots
parameters:
  p = [2, -1]
parties: i in 1..{count}
variables:
  input x[i] in {values}
  intermediate m
  output O
background: m = [mean(x[i]^p[1] for i)^(1 / p[1]), mean(x[i]^p[2] for i)^(1 / p[2])]
loss: E[ ||O - m||^2 ]
privacy: O is (1, 1e-3)-LDP wrt x
"""


@pytest.mark.parametrize("values", ["grid(0.1, 1, 0.1)", "[0.1, 1]"])
def test_power_means_themselves(values):
    """Ramon & Basu 3.3 as they pose it: the loss at any data is at most what is stated, and released means are such."""
    plan = solved_text(ROOTS.format(count=400, values=values))
    assert plan["status"] == "feasible"
    assert plan["loss"]["lower_bound"] is None
    assert plan["loss"]["among"] == ""
    assert Plan(plan).verify().ok
    for held in (np.full(400, 0.1), np.full(400, 1.0), np.arange(400) % 10 / 10 + 0.1):
        drawn = simulate(plan, 500, 8, base={"x": held}, approximate=True)
        assert drawn.min() > 0.1 - 1e-9
        assert drawn.max() < 1 + 1e-9
        losses = ((drawn - [np.sqrt((held**2).mean()), 1 / (1 / held).mean()]) ** 2).sum(axis=1)
        assert losses.mean() < plan["loss"]["value"]
    page = Plan(plan).explain("public", "md")
    assert "typically off by at most" in page
    assert "It may come out beyond" not in page
    assert "steepest slope of the root" in Plan(plan).explain("auditor", "md")
    with pytest.raises(PrivspecError, match="need not be above 0"):
        Problem(ROOTS.format(count=4, values="0..3").replace("-1]", "2]")).solve()


# --- draws -----------------------------------------------------------------------------------------------------------


def test_errors_are_those_that_are_stated():
    """Released numbers are right on average; at the worst values, the mean loss is the one of the plan."""
    plan = solved_text(two(count=40))
    for held in (np.ones(40), np.full(40, 10), np.arange(40) % 10 + 1):
        drawn = simulate(plan, 3000, 8, base={"x": held}, approximate=True)
        off = drawn - np.array([held.mean(), (1 / held).mean()])
        assert (np.abs(off.mean(axis=0)) < 5.5 * off.std(axis=0) / np.sqrt(len(off))).all()
        losses = off**2 @ np.array([1, 16])
        assert losses.mean() - 5.5 * losses.std() / np.sqrt(len(off)) < plan["loss"]["value"]


def test_numbers_of_an_interval_are_not_rounded():
    """At a number between two rows, the mean of released numbers is that of the number itself."""
    plan = solved_text(two(values="[0.125, 1]", count=400))
    held = np.full(400, 0.1534567)
    drawn = simulate(plan, 2000, 8, base={"x": held}, approximate=True)
    off = drawn - np.array([held.mean(), (1 / held).mean()])
    assert (np.abs(off.mean(axis=0)) < 5.5 * off.std(axis=0) / np.sqrt(len(off))).all()
    losses = off**2 @ np.array([1, 16])
    assert losses.mean() - 5.5 * losses.std() / np.sqrt(len(off)) < plan["loss"]["value"]
    outside = simulate(plan, 1, 8, base={"x": np.array([-1.0, 7.0] * 200)}, approximate=True)
    assert np.array_equal(outside, simulate(plan, 1, 8, base={"x": np.array([0.125, 1.0] * 200)}, approximate=True))


def test_parties_send_their_own_reports():
    """Messages add up to a release; those that are none are refused."""
    for values in ("1..10", "[0.1, 1]"):
        plan = solved_text(two(count=3, values=values))
        messages = [
            run(plan, {"x": [0.7]}, party=str(p), randomness=SimulationRandomness(p)).to_json() for p in (1, 2, 3)
        ]
        release = combine(plan, messages)
        mechanism = mechanism_of(plan)
        heard = [int(one["outputs"]["message"]["values"][0]) - 1 for one in messages]
        sums = sum(np.array([[float(v) for v in mechanism.executed.columns()[z]] for z in heard]))
        assert [float(release.values["A"]), float(release.values["B"])] == pytest.approx((sums / 3).tolist())
        for said in (["0"], ["1", "1"], ["x"], [], ["1000"]):
            try:
                one = mechanism.heard(said)
            except (TypeError, ValueError):
                continue
            assert not mechanism.possible(one), said
        with pytest.raises(PrivspecError, match="missing"):
            combine(plan, messages[:2])


def test_exact_laws_of_two_people():
    """All pairs of reports: mean and mean square of the release, from the table, beside what is stated."""
    plan = solved_text(spec(values="{0, 1, 4}", count=2))
    found = mechanism_of(plan).executed
    chances = [[Fraction(n, found.term.whole) for n in row] for row in found.term.rows]
    values = [one for (one,) in found.columns()]
    errors = []
    for a, first in enumerate((0, 1, 4)):
        for b, second in enumerate((0, 1, 4)):
            pairs = [
                (p * q, (v + w) / 2)
                for p, v in zip(chances[a], values, strict=True)
                for q, w in zip(chances[b], values, strict=True)
            ]
            truth = Fraction(first + second, 2)
            assert sum(p for p, _ in pairs) == 1
            assert sum(p * v for p, v in pairs) == truth
            errors.append(sum(p * (v - truth) ** 2 for p, v in pairs))
    assert max(errors) == found.loss()


def test_the_whole_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, plan, out = (tmp_path / name for name in ("means.priv", "means.plan.json", "means.csv"))
    path.write_text(two(), "utf-8")
    (tmp_path / "x.csv").write_text("p,x\n" + "".join(f"{p},{p % 10 + 1}\n" for p in range(1, 51)), "utf-8")
    assert run_command_line(["check", str(path), "--problem"]) == 0
    assert "x of each p is one of 10 values, from 1 to 10; there are 50" in capsys.readouterr().out
    assert run_command_line(["solve", str(path), "-o", str(plan)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    for words in ("optimal", "Largest expected error of B ± 0.169", "for each number by itself"):
        assert words in said
    assert run_command_line(["verify", str(plan)]) == 0
    assert "all unbiased estimates from one report of each party" in capsys.readouterr().out
    command = ["run", str(plan), "--input", f"x={tmp_path / 'x.csv'}", "--new-ledger", "-o", str(out)]
    assert run_command_line(command) == 0
    assert [line.partition(",")[0] for line in out.read_text("utf-8").splitlines()[1:3]] == ["A", "B"]
    found = Plan(json.loads(plan.read_text("utf-8")))
    for reader, words in (
        ("public", "The published result B is typically off by"),
        ("auditor", "drawn by chances that depend on the x of that p alone"),
        ("engineer", "Chances of each report"),
    ):
        assert words in found.explain(reader, "md")
    assert "drawn from those around x" in Plan(solved_text(two(values="[0.1, 1]"))).explain("engineer", "md")
    assert run_command_line(["audit", str(plan)]) == 0
