"""Reports of real points under privacy by distance: solved, run, told; and what is refused."""

from __future__ import annotations

import json
from fractions import Fraction
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from privspec.api import Problem
from privspec.cli import run_command_line
from privspec.core.diagnostics import PrivspecError
from privspec.core.matrices import ExactVector, integers
from privspec.core.spans import Source
from privspec.execute.family import simulate
from privspec.execute.run import _run as run
from privspec.families.number.report_execution import PointMechanism, inside
from privspec.kernel.core.reading import Refused
from privspec.manual import template_text
from privspec.model.build import load_model
from privspec.noise.samplers import SimulationRandomness
from privspec.noise.vectors import VECTORS
from privspec.plan import Plan
from privspec.problem import points
from privspec.problem.elaborate import block_of
from tests.plans import mutate, solved, solved_text

ALARM = 1e-6
SPEC = """spec point
{parties}variables:
  input x{index} in {domain}
  output z{index}
{more}loss: {loss}
privacy:
  z is {epsilon}-metric-DP wrt x, distance {distance}
{options}"""


def spec(domain="[0, 10]^2", loss="E[ ||z - x|| ]", epsilon="1", distance="euclidean", **rest):
    given = {"parties": "", "index": "", "more": "", "options": ""} | rest
    return SPEC.format(domain=domain, loss=loss, epsilon=epsilon, distance=distance, **given)


@pytest.mark.parametrize(
    ("text", "value", "bound"),
    [
        (spec(), 2, 2),
        (spec(loss="E[ ||z - x||^2 ]"), 6, 6),
        (spec(epsilon="0.5", loss="3 * E[ ||z - x||^2 ]"), 72, 72),
        (spec("[0, 1]", "E[ |z - x| ]", "2", "|x - x'|"), 0.5, 0.5),
        (spec("[0, 1]", "E[ (z - x)^2 ]", "2"), 0.5, 0.5),
        (spec("[0, inf)", "worst[ (z - x)^2 ]", "1"), 2, 2),
        (spec("real^3", "E[ ||z - x||^2 ]", "1", "||x - x'||"), 12, 12),
        (spec("[0, 1]^8", "E[ ||z - x|| ]"), 8, 8),
        (spec("[0, 1]^3", "E[ ||z - x||_1 ]", "1", "manhattan"), 3, 3),
        (spec("[0, 1]^3", "E[ ||z - x||^2 ]", "1", "||x - x'||_1"), 6, 6),
        (spec("[0, 1]^3", "worst[ ||z - x||_inf ]", "1", "chebyshev"), 3, 3),
        (spec("[0, 1]^3", "E[ ||z - x||^2 ]", "1", "chebyshev"), 20, 12),
        (spec("l2_ball(2, 3)", "E[ ||z - x||^2 ]"), 12, 12),
        (spec("l1_ball(2, 3)", "E[ ||z - x||^2 ]"), 12, 12),
        (spec(loss="E[ ||z - y|| ]", more="  intermediate y\nbackground:\n  y = x\n  x ~ uniform\n"), 2, 2),
        (spec(parties="parties: p in 1..4\n", index="[p]", loss="E[ sum(||z[p] - x[p]|| for p) ]"), 8, 8),
        (spec(parties="parties: p in 1..4\n", index="[p]", loss="E[ mean(||z[p] - x[p]||^2 for p) ]"), 6, 6),
        (spec(parties="parties: p in 1..4\n", index="[p]", loss="E[ ||z - x||^2 ]"), 24, 24),
    ],
)
def test_the_noise_is_the_best_of_its_kind(text, value, bound):
    plan = solved_text(text)
    assert plan["loss"]["value"] == pytest.approx(value, rel=1e-9)
    assert plan["loss"]["lower_bound"] == pytest.approx(bound, rel=1e-9)
    assert plan["status"] == ("optimal" if value == bound else "feasible")
    assert plan["guarantees"][0]["achieved"] == {"epsilon": plan["guarantees"][0]["epsilon"]}


def test_several_lines_hold_together():
    lines = "z is 1-metric-DP wrt x, distance euclidean\n  z is 0.8-metric-DP wrt x, distance manhattan\n"
    lines += "  z is 20-LDP wrt x"
    text = spec().replace("z is 1-metric-DP wrt x, distance euclidean", lines)
    plan = solved_text(text)
    # scale 1.25 for the sum of differences, 1 for the length, sqrt(2) / 2 for any two points
    assert plan["mechanism"]["scale"] == "5/4"
    assert plan["remarks"]["binding"][0]["line"] == 8
    assert [float(Fraction(one["achieved"]["epsilon"])) for one in plan["guarantees"]] == pytest.approx(
        [0.8, 0.8, 0.8 * 10 * sqrt(2)]
    )
    strict = solved_text(text.replace("20-LDP", "5-LDP"))
    assert float(Fraction(strict["mechanism"]["scale"])) == pytest.approx(10 * sqrt(2) / 5)
    infeasible = solved_text(text.replace("[0, 10]^2", "real^2"))
    assert infeasible["status"] == "infeasible"
    assert "any distance apart" in json.dumps(infeasible)


def test_lines_of_accuracy():
    text = spec(more="accuracy:\n  E[ ||z - x||^2 ] <= 7\n")
    assert solved_text(text)["accuracy"][0]["value"] == pytest.approx(6)
    infeasible = solved_text(text.replace("<= 7", "<= 5"))
    assert infeasible["status"] == "infeasible"
    assert "1.2 times as large" in json.dumps(infeasible)


def test_reports_that_stay_within_ends():
    """Moving a report to the box takes it no farther from a point in it; no bound is known for that."""
    plan = solved_text(spec().replace("output z", "output z in [0, 12]^2"))
    assert plan["status"] == "feasible"
    assert plan["loss"] | {"value": 2} == plan["loss"] | {"value": 2, "lower_bound": None, "among": ""}
    assert Plan(plan).verify().ok
    drawn = simulate(plan, 2000, 3, base={"x": [[0.1, 10.0]]})
    assert (drawn.min(), drawn.max()) == (0, 12)
    off = np.linalg.norm(drawn - [0.1, 10.0], axis=1)
    assert off.mean() < 1.8
    found = Plan(plan)
    assert "on average at most 2 away from the truth" in found.explain("public")
    assert "moved into" in found.explain("engineer")
    inner = mutate(plan, ("problem", "blocks", 0, "most"), "9")
    assert not Plan(inner).verify().ok
    fast = simulate(plan, 2000, 3, base={"x": [[0.1, 10.0]]}, approximate=True)
    assert (fast.min(), fast.max()) == (0, 12)


def test_errors_are_small_so_often():
    text = spec(more="accuracy:\n  ||z - x|| <= 5 with probability 0.95\n", epsilon="2")
    plan = solved_text(text)
    assert plan["accuracy"][0]["value"] == pytest.approx(stats.gamma(2).ppf(0.95) / 2, rel=1e-8)
    infeasible = solved_text(text.replace("<= 5", "<= 2.3"))
    assert infeasible["status"] == "infeasible"
    assert solved_text(text.replace("<= 5", "<= 2.3").replace("0.95", "0.94"))["status"] == "optimal"
    drawn = simulate(plan, 4000, 6, base={"x": [[5.0, 5.0]]})
    near = np.linalg.norm(drawn - 5, axis=1) <= plan["accuracy"][0]["value"]
    assert stats.binomtest(int(near.sum()), 4000, 0.95).pvalue > ALARM
    line = spec("[0, 1]", "E[ |z - x| ]", more="accuracy:\n  |z - x| <= 3 with probability 0.9\n")
    assert solved_text(line)["accuracy"][0]["value"] == pytest.approx(np.log(10), rel=1e-8)


REFUSED = [
    (spec(distance="hamming"), "PS0501", "hamming distance of real points"),
    (spec(epsilon="(1, 0.01)"), "PS0501", "with a delta"),
    (spec(loss="E[ ||z - 2 * x|| ]"), "PS0502", "the size of one error"),
    (spec(loss="E[ ||z - x||_1 ] + E[ ||z - x|| ]"), "PS0502", "the size of one error"),
    (spec(more="  intermediate y\nbackground:\n  y = [1, 2] @ x\n", loss="E[ (z - y)^2 ]"), "PS0501", "no report of x"),
    (spec(options="options: trust secure_sum\n"), "PS0501", "trust secure_sum"),
    (spec(options="options: noise family gaussian\n"), "PS0501", "noise family gaussian"),
    (spec(domain="[0, 1]^65"), "PS0501", "up to 64 numbers"),
    (spec(domain="[1, 1]^2"), "PS0501", "one value only"),
    (spec(more="accuracy:\n  ||z - x||^2 <= 4 with probability 0.9\n"), "PS0502", "size of one error"),
    (
        spec().replace("euclidean", "euclidean\n  z is 1-DP wrt x, replacing one record"),
        "PS0501",
        "replacing one record",
    ),
    (spec(parties="parties: p in 1..4\n", index="[p]", loss="E[ ||z - x||_inf ]"), "PS0502", "size of one error"),
    (spec(parties="parties: p in 1..4\n", index="[p]"), "PS0502", "size of one error"),
    (spec().replace("output z", "output z in [0, 9]^2"), "PS0501", "cannot be every point"),
    (
        spec(loss="worst[ ||z - x|| ]").replace("output z", "output z in (0..10)^2"),
        "PS0501",
        "a report of a point in",
    ),
]


@pytest.mark.parametrize(("text", "code", "words"), REFUSED)
def test_what_is_not_known_is_refused_by_a_line(text, code, words):
    with pytest.raises(PrivspecError) as caught:
        Problem(text).solve()
    first = caught.value.diagnostics[0]
    assert (first.code, words in first.message) == (code, True), first.message
    assert first.labels


# --- running --------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_exact_vectors_have_their_law(norm):
    """Radius Gamma(3) in the norm, and a direction whose sign and place are fair. False alarms below 1e-6 each."""
    source = SimulationRandomness(11)
    step, scale = Fraction(1, 2**20), Fraction(3, 2)
    drawn = VECTORS[norm](2500, 3, scale, source).nearest(ExactVector(integers([1, 0, -2] * 2500), 1), step)
    noise = (drawn.astype(float) * float(step) - np.array([1, 0, -2])) / float(scale)
    lengths = np.linalg.norm(noise, ord={"l1": 1, "l2": 2, "linf": np.inf}[norm], axis=1)
    assert stats.kstest(lengths, stats.gamma(3).cdf).pvalue > ALARM
    shares = noise / lengths[:, None]
    assert all(stats.binomtest(int((column > 0).sum()), len(column), 0.5).pvalue > ALARM for column in noise.T)
    if norm == "l2":  # a number of a uniform direction in space is uniform
        assert stats.kstest(shares[:, 0], stats.uniform(-1, 2).cdf).pvalue > ALARM
    if norm == "l1":
        assert stats.kstest(noise[:, 1], "laplace").pvalue > ALARM
    if norm == "linf":  # given that another number is the largest
        free = shares[np.abs(shares[:, 0]) < 1, 0]
        assert stats.kstest(free, stats.uniform(-1, 2).cdf).pvalue > ALARM
    assert abs(np.corrcoef(lengths, shares[:, 0])[0, 1]) < 0.1


def test_a_coarse_step_rounds_the_real_sum():
    """At a step of two scales the law is that of the rounded Laplace number, at a point between two multiples."""
    source, at, step = SimulationRandomness(5), Fraction(7, 10), Fraction(2)
    points = ExactVector.of([at] * 4000)
    drawn = VECTORS["l2"](4000, 1, Fraction(1), source).nearest(points, step)[:, 0].astype(int)
    cells = np.arange(-4, 5)
    ends = (cells * 2 + 1).astype(float)
    law = np.diff(np.concatenate([[0], stats.laplace(float(at)).cdf(ends[:-1]), [1]]))
    counts = np.array([(np.clip(drawn, -4, 4) == cell).sum() for cell in cells])
    keep = law * len(drawn) > 10
    expected = np.append(law[keep], law[~keep].sum()) * len(drawn)
    assert stats.chisquare(np.append(counts[keep], counts[~keep].sum()), expected).pvalue > ALARM


def test_points_are_taken_as_they_are_or_moved_into_the_domain():
    box = PointMechanism.of_plan(solved_text(spec())).executed.block
    assert inside(box, [0.1, 10.0]) == [Fraction(0.1), 10]
    assert inside(box, [float("nan"), float("inf")]) == [0, 10]
    assert inside(box, [-3.0, 11.0]) == [0, 10]
    shifted = PointMechanism.of_plan(solved_text(spec(domain="[2, inf)^2"))).executed.block
    assert inside(shifted, [float("nan"), float("inf")]) == [2, 2]
    ball = PointMechanism.of_plan(solved_text(spec(domain="l2_ball(2, 2)"))).executed.block
    placed = inside(ball, [3.0, 4.0])
    assert sum(value**2 for value in placed) <= 4
    assert [float(value) for value in placed] == pytest.approx([1.2, 1.6], rel=1e-15)
    assert inside(ball, [0.1, -1.9]) == [Fraction(0.1), Fraction(-1.9)]
    cross = PointMechanism.of_plan(solved_text(spec(domain="l1_ball(2, 2)"))).executed.block
    assert sum(map(abs, inside(cross, [3.0, -4.0]))) <= 2


def test_runs_of_many_points_and_of_parties(tmp_path):
    plan = json.loads(json.dumps(solved_text(spec())))
    rng = np.random.default_rng(3)
    points = rng.uniform(0, 10, size=(400, 2))
    release = run(plan, {"x": points}, randomness=SimulationRandomness(8))
    off = np.linalg.norm(release.values["z"] - points, axis=1)
    assert release.values["z"].shape == (400, 2)
    assert stats.kstest(off, stats.gamma(2).cdf).pvalue > ALARM
    parties = solved_text(spec(parties="parties: p in 1..4\n", index="[p]", loss="E[ ||z - x||^2 ]"))
    release = run(parties, {"x": points[:4]}, randomness=SimulationRandomness(8))
    assert release.values["z"].shape == (4, 2)
    assert not release.reports
    drawn = simulate(plan, 300, 4, base={"x": [[2.0, 3.0]]})
    assert drawn.shape == (300, 2)
    fast = simulate(plan, 20_000, 4, base={"x": [[2.0, 3.0]]}, approximate=True)
    assert fast.mean(axis=0) == pytest.approx([2, 3], abs=0.1)


def test_the_whole_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, plan = tmp_path / "location.priv", tmp_path / "location.plan.json"
    path.write_text(template_text("location_reports"), "utf-8")
    (tmp_path / "place.csv").write_text("who,place_1,place_2\n1,3,4\n2,5.5,13\n3,,2\n", "utf-8")
    assert run_command_line(["check", str(path), "--problem"]) == 0
    assert "place is a point of 2 numbers, each between 0 and 12" in capsys.readouterr().out
    assert run_command_line(["solve", str(path), "-o", str(plan)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "optimal" in said
    assert "K-norm noise of the Euclidean distance at place (scale 0.5), at each party" in said
    assert run_command_line(["verify", str(plan)]) == 0
    assert "epsilon 2 per unit of euclidean distance" in capsys.readouterr().out
    data = f"place={tmp_path / 'place.csv'}"
    assert run_command_line(["data", str(plan), "--input", data]) == 0
    assert "1 of 3 are missing" in capsys.readouterr().err
    out = tmp_path / "reports.csv"
    assert run_command_line(["run", str(plan), "--input", data, "--new-ledger", "-o", str(out)]) == 0
    lines = out.read_text("utf-8").splitlines()
    assert lines[0].startswith("report_1,report_2")
    assert len(lines) == 4
    assert run_command_line(["run", str(plan), "--input", data, "-o", str(tmp_path / "more.csv")]) == 6
    capsys.readouterr()
    for reader, words in (
        ("public", "A report is on average 1 kilometre away from the truth"),
        ("auditor", "rounding comes last, and costs no privacy"),
        ("engineer", "exp(-"),
    ):
        assert run_command_line(["explain", str(plan), "--for", reader]) == 0
        assert words in " ".join(capsys.readouterr().out.split())
    assert run_command_line(["sweep", str(path), "--over", "epsilon=1:4:lin:2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["loss"] for row in found["rows"] if row] == pytest.approx([2, 0.5], rel=1e-8)


CHECK_INS = Path(__file__).resolve().parents[3] / "shared" / "data" / "gowalla_san_francisco.csv.gz"


@pytest.mark.skipif(not CHECK_INS.is_file(), reason=f"the check-ins are not at {CHECK_INS}")
def test_reports_of_real_check_ins(tmp_path: Path) -> None:
    """Two thousand places in San Francisco in kilometres: reports are off by Gamma(2) / epsilon, wherever they are."""
    import polars as pl

    table = pl.read_csv(CHECK_INS).head(2000)
    east = (table["lon"] + 122.53) * 88.0
    north = (table["lat"] - 37.70) * 111.2
    path = tmp_path / "places.csv"
    pl.DataFrame({"place_1": east, "place_2": north}).write_csv(path)
    plan = solved("location_reports", side=16)
    release = run(plan, {"place": path}, randomness=SimulationRandomness(21))
    off = np.linalg.norm(release.values["report"] - np.column_stack([east, north]), axis=1)
    assert stats.kstest(2 * off, stats.gamma(2).cdf).pvalue > ALARM
    assert off.mean() == pytest.approx(plan["loss"]["value"], abs=0.1)


def test_plans_verify_by_their_spec() -> None:
    plan = solved("location_reports")
    assert Plan(plan).verify().ok


def test_parties_send_their_own_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`run --party` for each of three, `aggregate` of all; forged, doubled and missing messages are refused."""
    text = spec(parties="parties: p in 1..3\n", index="[p]", loss="E[ ||z - x||^2 ]", options="options: trust nobody\n")
    path, plan = tmp_path / "own.priv", tmp_path / "own.plan.json"
    path.write_text(text, "utf-8")
    assert run_command_line(["solve", str(path), "-o", str(plan)]) == 0
    messages = []
    for number in (1, 2, 3):
        data, out = tmp_path / f"x{number}.csv", tmp_path / f"m{number}.json"
        data.write_text(f"x_1,x_2\n{number},{2 * number}\n", "utf-8")
        asked = ["run", str(plan), "--input", f"x={data}", "--party", str(number), "--new-ledger", "-o", str(out)]
        assert run_command_line(asked) == 0
        messages.append(out)
    whole = tmp_path / "whole.json"
    listed = [str(one) for one in messages]
    assert run_command_line(["aggregate", str(plan), *listed, "-o", str(whole)]) == 0
    found = json.loads(whole.read_text("utf-8"))["outputs"]["z"]["values"]
    sent = [json.loads(one.read_text("utf-8"))["outputs"]["message"]["values"] for one in messages]
    assert found == [float(value) for one in sent for value in one]
    assert run_command_line(["aggregate", str(plan), *listed[:2]]) != 0
    assert run_command_line(["aggregate", str(plan), *listed[:2], listed[0]]) != 0
    forged = json.loads(messages[0].read_text("utf-8"))
    forged["outputs"]["message"]["values"][0] = "0.1"
    messages[0].write_text(json.dumps(forged), "utf-8")
    assert run_command_line(["aggregate", str(plan), *listed]) != 0
    assert "is no report of p 1" in capsys.readouterr().err
    asked = ["run", str(plan), "--input", f"x={tmp_path / 'x1.csv'}", "--party", "4"]
    assert run_command_line(asked) != 0
    assert "numbered from 1 to 3" in capsys.readouterr().err


def test_a_block_that_the_kernel_would_refuse_is_told_when_it_is_built(monkeypatch):
    def refuse(_):
        raise Refused("has points that cannot move")

    model = load_model(Source("points.priv", spec()))
    assert block_of(model).FORM == "points"
    monkeypatch.setattr(points, "block_of", refuse)
    with pytest.raises(PrivspecError, match="what this spec asks for has points that cannot move") as found:
        block_of(model)
    assert found.value.diagnostics[0].code == "PS0501"
