"""Whole systems of components: the reference values, splits that are seen, what is executed, plans that lie."""

from __future__ import annotations

import copy
import csv
import json
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from math import exp
from pathlib import Path
from statistics import NormalDist, mean, stdev
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from scipy.optimize import minimize

from privspec.api import Problem, load
from privspec.core.diagnostics import SpecError
from privspec.core.spans import Source
from privspec.families.systems import bracket
from privspec.kernel import judge
from privspec.kernel.core.numbers import gaussian_delta_up
from privspec.kernel.core.reading import JsonNode
from privspec.kernel.gaussian import mu_down
from privspec.noise.samplers import SimulationRandomness
from privspec.pipeline import Request, solve
from privspec.plan import Plan, verify
from privspec.problem.systems import chosen_shares, parts_of
from tests.plans import Document, better_ones, components, resign

ONE = """parameters: {amount} = {value}
variables:
  input v in [0, 1]
  output O
loss: E[ (O - v)^2 ]
privacy: O is {amount}-{measure} wrt v
"""
THREE = """components:
  a = spec("one.priv", v = x, {amount} = {first})
  b = spec("one.priv", v = y, {amount} = {second})
  c = spec("one.priv", v = z, {amount} = {third})
variables:
  input x in [0, 1]
  input y in [0, 1]
  input z in [0, 1]
{choices}
loss: {loss}
privacy: (a.O, b.O, c.O) is {line} wrt (x, y, z), replacing everything
"""
STAIRS = "0.5 * a.loss + 2 * b.loss + 4.5 * c.loss"
"""Of staircases, whose variances are nearly 2 / epsilon^2: c / epsilon^2 with c = 1, 4, 9."""
GAUSS = "a.loss + 4 * b.loss + 9 * c.loss"


def stairs_of(epsilons: list[float]) -> float:
    """What STAIRS costs with the best staircases (Geng & Viswanath 2014)."""
    b = [exp(-epsilon) for epsilon in epsilons]
    least = [((r * (1 + r) / 2) ** (2 / 3) + r) / (1 - r) ** 2 for r in b]
    return sum(weight * one for weight, one in zip((0.5, 2, 4.5), least, strict=True))


def three(folder: Path, line: str, loss: str, part: tuple[str, str], given: str = "", within: str = "[0, inf)") -> Path:
    """Three numbers of which one unit moves all, each released by a part; amounts are chosen where none is given."""
    amount, measure = part
    (folder / "one.priv").write_text(ONE.format(amount=amount, measure=measure, value=1), "utf-8")
    names = dict(zip(("first", "second", "third"), [given] * 3 if given else ["e1", "e2", "e3"], strict=True))
    choices = "" if given else "\n".join(f"  choose {name} in {within}" for name in names.values())
    path = folder / "three.priv"
    path.write_text(THREE.format(amount=amount, line=line, loss=loss, choices=choices, **names), "utf-8")
    return path


PURE, GAUSSIAN = ("epsilon", "DP"), ("rho", "zCDP")


@cache
def three_solved(line: str, loss: str, part: tuple[str, str], given: str = "") -> Plan:
    """Solved once for all tests; the plan needs none of the files."""
    with TemporaryDirectory() as folder:
        return load(three(Path(folder), line, loss, part, given)).solve()


@pytest.mark.parametrize(
    ("line", "loss", "part", "given", "value"),
    [
        ("1-DP", STAIRS, PURE, "", 101.0843),  # less than Laplace noise by shares c^(1/3): 101.6831
        ("0.5-zCDP", GAUSS, GAUSSIAN, "100", 36),  # (sum c^(1/2))^2 / (2 rho)
        ("0.5-zCDP", GAUSS, GAUSSIAN, "", 36),
        ("(1, 1e-5)-DP", GAUSS, GAUSSIAN, "100", 501.034),
        pytest.param("(1, 1e-5)-DP", GAUSS, GAUSSIAN, "", 501.034, marks=pytest.mark.slow),
    ],
)
def test_the_reference_values(line: str, loss: str, part: tuple[str, str], given: str, value: float) -> None:
    """Losses of staircases, and c / mu^2 with c = 1, 4, 9, under one budget."""
    plan = three_solved(line, loss, part, given)
    if part == PURE:
        found = minimize(lambda e: stairs_of([*e, 1 - sum(e)]), [0.25, 0.35], method="Nelder-Mead", tol=1e-10)
        assert plan.loss.value == pytest.approx(found.fun, rel=3e-4)  # as near as a grid of stairs is to the best
    else:
        assert plan.loss.value == pytest.approx(value, rel=2e-6)
    assert verify(plan.to_json()).ok
    if given:
        assert plan.status == "optimal"
    else:
        picked = {name: Fraction(text) for name, text in plan.document["mechanism"]["choices"].items()}
        power = Fraction(1, 3) if part == PURE else Fraction(1, 2)
        shares = [c ** float(power) for c in (1, 4, 9)]
        total = 1 if part == PURE else sum(map(float, picked.values()))
        expected = [share / sum(shares) * total for share in shares]
        assert [float(picked[name]) for name in ("e1", "e2", "e3")] == pytest.approx(expected, rel=2e-3)


@pytest.fixture(scope="module")
def plan() -> Plan:
    return three_solved("1-DP", STAIRS, PURE)


def test_a_plan_with_its_parts_stands_by_itself(plan: Plan) -> None:
    """The specs of the parts are inside: they are read from nowhere else, and no other text passes for them."""
    document: Document = json.loads(plan.to_json())
    assert list(document["spec"]["components"]) == ["one.priv"]
    assert [part.outputs for part in parts_of(plan.model())] == [("a.O",), ("b.O",), ("c.O",)]
    assert dict(chosen_shares(plan.model())) == {1: "e1", 2: "e2", 3: "e3"}
    for reader in ("public", "auditor", "engineer"):
        assert ("published result a" if reader == "public" else "a.O") in plan.explain(reader)
    assert "e1 was left to be chosen and is 0.214" in plan.explain("auditor")
    document["spec"]["components"]["one.priv"] = document["spec"]["components"]["one.priv"].replace("[0, 1]", "[0, 2]")
    assert not verify(json.dumps(resign(document))).ok
    del document["spec"]["components"]
    assert not verify(json.dumps(resign(document))).ok


def test_more_files_than_parts_are_refused(plan: Plan) -> None:
    document: Document = json.loads(plan.to_json())
    document["spec"]["components"]["two.priv"] = "variables: output O\n"
    assert not verify(json.dumps(resign(document))).ok


def lower(plan: Document) -> None:
    """The chosen number says less than the part spends."""
    plan["mechanism"]["choices"]["e3"] = "0.3"
    plan["guarantees"][3]["epsilon"] = plan["guarantees"][3]["achieved"]["epsilon"] = "0.3"


def lower_everywhere(plan: Document) -> None:
    """So does the share of its own line."""
    lower(plan)
    own = components(plan)[2]
    own["shares"][1]["amounts"][0][1] = "3/10"
    own["guarantees"][1]["epsilon"] = own["guarantees"][1]["achieved"]["epsilon"] = "0.3"


def another(plan: Document) -> None:
    """The line says another number than the one that is chosen."""
    plan["guarantees"][3]["epsilon"] = plan["guarantees"][3]["achieved"]["epsilon"] = "0.3"


def unsaid(plan: Document) -> None:
    del plan["mechanism"]["choices"]


def unknown(plan: Document) -> None:
    plan["mechanism"]["choices"]["e4"] = "1"


def nothing(plan: Document) -> None:
    plan["mechanism"]["choices"]["e3"] = "0"


def more_of_the_line(plan: Document) -> None:
    """A part says that it spends more of the line that all share than is left of it; its noise spends what it did."""
    own = components(plan)[0]
    own["shares"][0]["amounts"][0][1] = "1/2"
    own["guarantees"][0]["epsilon"] = "0.5"


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lower, "privacy"),
        (lower_everywhere, "privacy"),
        (another, "not what the line asks"),
        (unsaid, "choices"),
        (unknown, "e4"),
        (nothing, "outside its range"),
        (more_of_the_line, "it spends no one amount"),
    ],
)
def test_plans_that_lie_about_a_share_are_refused(plan: Plan, change: Callable[[Document], None], word: str) -> None:
    forged = copy.deepcopy(json.loads(plan.to_json()))
    change(forged)
    found = judge(JsonNode(resign(forged), "plan"))
    assert not found.ok
    assert word in "; ".join(f"{claim.name}: {claim.text}" for claim in found.failed)


def test_a_range_caps_a_share_and_is_kept(tmp_path: Path) -> None:
    path = three(tmp_path, "1-DP", STAIRS, PURE, within="[0, 0.3]")
    plan = load(path).solve()
    picked = [Fraction(text) for text in plan.document["mechanism"]["choices"].values()]
    assert max(picked) == Fraction(3, 10)
    forged = copy.deepcopy(json.loads(plan.to_json()))
    forged["problem"]["blocks"][0]["choices"][2]["high"] = "1"
    assert not verify(json.dumps(resign(forged))).ok
    with pytest.raises(SpecError, match="less than its range"):
        load(three(tmp_path, "1-DP", STAIRS, PURE, within="[0.3, inf)")).solve()


def test_a_stricter_line_of_a_part_holds(tmp_path: Path) -> None:
    """What a part asks for itself is kept even where the line of the whole leaves more."""
    plan = load(three(tmp_path, "4-zCDP", GAUSS, GAUSSIAN, "0.5")).solve()
    assert plan.loss.value == pytest.approx(14, rel=1e-4)  # variances 1 / (2 rho)


WORKED = """components:
  average = spec("average.priv", x = x, epsilon = e1, trust = protocol)
  counts  = spec("counts.priv", x = x, epsilon = e2, trust = protocol)
parameters: protocol = "curator"
variables:
  input x in [0, 1]^1000
  choose e1 in [0, inf)
  choose e2 in [0, inf)
loss: average.loss + 4 * counts.loss
privacy: (average.O, counts.O) is (1, 1e-6)-DP wrt x, replacing one record
"""
PART = """parameters: epsilon = 1
variables:
  input x in [0, 1]^1000
  output O
background: {background}
loss: {loss}
privacy: O is epsilon-DP wrt x, replacing one record
"""


def run(arguments: list[str]) -> int:
    from privspec.cli import run_command_line

    return int(run_command_line(arguments) or 0)


def test_the_worked_example_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "whole.priv").write_text(WORKED, "utf-8")
    average = PART.format(background="", loss="1e6 * E[ (O - mean(x))^2 ]")
    (tmp_path / "average.priv").write_text(average, "utf-8")
    (tmp_path / "counts.priv").write_text(PART.format(background="", loss="E[ (O - sum(x))^2 ]"), "utf-8")
    (tmp_path / "x.csv").write_text("x\n" + "1\n" * 1000, "utf-8")
    plan, out = tmp_path / "whole.plan.json", tmp_path / "out.csv"
    assert run(["solve", str(tmp_path / "whole.priv"), "-o", str(plan), "-q"]) == 0
    for name in ("whole.priv", "average.priv", "counts.priv"):
        (tmp_path / name).unlink()  # the plan needs none of them
    assert run(["verify", str(plan)]) == 0
    data = ["--input", f"x={tmp_path / 'x.csv'}", "--ledger", str(tmp_path / "budget.db"), "--new-ledger"]
    assert run(["run", str(plan), *data, "-o", str(out), "-q"]) == 0
    rows: list[dict[str, Any]] = list(csv.DictReader(out.open()))
    assert [row["output"] for row in rows] == ["average.O", "counts.O"]
    assert abs(float(rows[1]["value"]) - 1000) < 200
    capsys.readouterr()
    assert run(["explain", str(plan), "--for", "public"]) == 0
    assert "published “average”" in capsys.readouterr().out


def test_one_input_by_name_or_two_inputs(tmp_path: Path) -> None:
    """The same data cost twice; different data that no unit moves together do not."""
    (tmp_path / "one.priv").write_text(ONE.format(amount="rho", measure="zCDP", value=1), "utf-8")
    whole = """components:
  a = spec("one.priv"{first})
  b = spec("one.priv"{second})
{variables}
loss: a.loss + b.loss
privacy: {privacy}
"""

    def plan_of(first: str, second: str, variables: str, privacy: str) -> Plan:
        text = whole.format(first=first, second=second, variables=variables, privacy=privacy)
        (tmp_path / "whole.priv").write_text(text, "utf-8")
        return load(tmp_path / "whole.priv").solve()

    same = plan_of("", "", "", "(a.O, b.O) is 1-zCDP wrt v")
    assert [one["name"] for one in same.document["problem"]["data"]] == ["v"]
    assert any("v of b is taken to be v" in one["text"] for one in same.document["assumptions"])
    two = "variables:\n  input x in [0, 1]\n  input y in [0, 1]"
    apart = plan_of(", v = x", ", v = y", two, "(a.O, b.O) is 1-zCDP wrt x\n  (a.O, b.O) is 1-zCDP wrt y")
    assert not any("is taken to be" in one["text"] for one in apart.document["assumptions"])
    assert apart.loss.value == pytest.approx(1, rel=1e-4)
    joint = plan_of(", v = x", ", v = y", two, "(a.O, b.O) is 1-zCDP wrt (x, y), replacing everything")
    assert joint.loss.value == pytest.approx(2, rel=1e-4)
    # one number twice: what is told twice is told once, with the same noise
    assert same.loss.value == pytest.approx(1, rel=1e-4)


def test_a_line_of_a_part_for_one_observer(tmp_path: Path) -> None:
    """`seen by press` in a part: anyone sees nothing of it, and what press sees is composed."""
    path = three(tmp_path, "1-zCDP", GAUSS, GAUSSIAN, "0.25")
    (tmp_path / "one.priv").write_text(ONE.format(amount="rho", measure="zCDP", value=1).rstrip() + ", seen by press")
    plan = load(path).solve()
    assert {guarantee.observer for guarantee in plan.guarantees} == {"anyone", "press"}


@pytest.mark.parametrize("within", ["[0, inf)", "[0, 0.4]"])
def test_a_share_beside_a_delta_may_be_gaussian(tmp_path: Path, within: str) -> None:
    """The chosen epsilon is the least that the Gaussian noise of the part satisfies at the delta of its line."""
    path = three(tmp_path, "0.02-zCDP", STAIRS, PURE, within=within)
    part = (tmp_path / "one.priv").read_text("utf-8")
    (tmp_path / "one.priv").write_text(part.replace("epsilon-DP", "(epsilon, 1e-6)-DP"), "utf-8")
    plan = load(path).solve()
    assert verify(plan.to_json()).ok
    picked = [Fraction(text) for text in plan.document["mechanism"]["choices"].values()]
    assert max(picked) <= Fraction(2, 5) or within == "[0, inf)"
    if within != "[0, inf)":
        return
    assert [part["shares"][0]["name"] for part in components(plan.document)] == ["mu-GDP"] * 3
    for epsilon, own in zip(picked, components(plan.document), strict=True):
        mu = Fraction(own["shares"][0]["amounts"][0][1])
        assert gaussian_delta_up(epsilon, mu * mu) <= Fraction(1, 10**6)
        assert gaussian_delta_up(epsilon - Fraction(1, 10**7), mu * mu) > Fraction(1, 10**6)
    assert plan.loss.value == pytest.approx(450, rel=1e-5)  # (sum of square roots of 0.5, 2, 4.5)^2 / (2 rho)
    forged = copy.deepcopy(json.loads(plan.to_json()))
    forged["mechanism"]["choices"]["e3"] = forged["guarantees"][3]["epsilon"] = "0.3"
    forged["guarantees"][3]["achieved"]["epsilon"] = "0.3"
    components(forged)[2]["shares"][1]["amounts"][0][1] = "3/10"
    assert not judge(JsonNode(resign(forged), "plan")).ok


def test_two_lines_of_one_number_and_numbers_in_the_loss_are_refused(tmp_path: Path) -> None:
    path = three(tmp_path, "1-DP", STAIRS, PURE)
    text = path.read_text("utf-8")
    for changed, said in (
        (text.replace("epsilon = e2", "epsilon = e1"), "e2"),
        (text.replace("epsilon = e2", "epsilon = 1 / e2"), "e2"),
        (text.replace("loss: ", "loss: e1 + "), "e1"),
        (
            text.replace("  choose e1", "  choose e4 in [0, 1]\n  choose e1").replace(
                "epsilon = e1", "epsilon = 2 * e4"
            ),
            "e1",
        ),
    ):
        path.write_text(changed, "utf-8")
        with pytest.raises(SpecError) as caught:
            load(path).solve()
        assert all(found.code.startswith("PS05") for found in caught.value.diagnostics if found.is_error)
        assert said in str(caught.value)


# --- runs ----------------------------------------------------------------------------------------------------------


def runs(
    folder: Path, setting: str, line: str, part: tuple[str, str] = PURE, more: str = "", value: str = "10"
) -> Path:
    """A number P, and the same from a part that is run several times or on a condition."""
    amount, measure = part
    (folder / "one.priv").write_text(ONE.format(amount=amount, measure=measure, value=value), "utf-8")
    path = folder / "runs.priv"
    path.write_text(
        f"""components:
  again = spec("one.priv", v = x{setting})
variables:
  input x in [0, 1]
{more}
  output P
loss: again.loss + E[ (P - x)^2 ]
privacy:
  {line}
""",
        "utf-8",
    )
    return path


def test_a_part_that_is_run_several_times(tmp_path: Path) -> None:
    """Every run has its share: what k runs and P spend together is what the line asks for, composed exactly."""
    plan = load(runs(tmp_path, ", times = 4", "(P, again.O) is 0.5-zCDP wrt x", GAUSSIAN)).solve()
    parts = components(plan.document)
    mine, each = (Fraction(part["shares"][0]["amounts"][0][1]) for part in parts)
    assert 0.999999 <= float(mine**2 + 4 * each**2) <= 1
    # losses 1 / mu^2 and 1 / nu^2 with mu^2 + 4 nu^2 = 1: mu^2 = 1 / 3, nu^2 = 1 / 6
    assert plan.loss.value == pytest.approx(9, rel=1e-4)
    assert verify(plan.to_json()).ok
    assert "again.O is drawn 4 times" in plan.explain("auditor")
    (tmp_path / "x.csv").write_text("x\n1\n", "utf-8")
    release = plan.run({"x": tmp_path / "x.csv"}, tmp_path / "budget.db", new_ledger=True)
    assert release.values["again.O"].shape == (4,)
    assert len(set(release.values["again.O"].tolist())) == 4
    assert list(release.rows()["output"]) == ["P"] + ["again.O"] * 4


@pytest.mark.slow
def test_runs_beside_pure_noise_are_composed_as_copies(tmp_path: Path) -> None:
    """Four runs of pure epsilon and Gaussian noise under (1, 1e-3), by the exact composition of the copies."""
    path = runs(
        tmp_path, ", epsilon = e1, times = 4", "(P, again.O) is (1, 1e-3)-DP wrt x", more="  choose e1 in [0, inf)"
    )
    plan = load(path).solve()
    mine, own = (part["shares"] for part in components(plan.document))
    each = Fraction(own[0]["amounts"][0][1])
    assert Fraction(plan.document["mechanism"]["choices"]["e1"]) == 4 * each
    assert (mine[0]["name"], own[0]["name"]) == ("mu-GDP", "epsilon-DP")
    assert plan.loss.value < 83.83  # what it takes with pure noise for P, whose share is what four runs leave of 1


def staircase(epsilon: float) -> float:
    """The variance of the best one for one number of [0, 1]."""
    r = exp(-epsilon)
    return ((r * (1 + r) / 2) ** (2 / 3) + r) / (1 - r) ** 2


def test_one_part_by_itself_may_be_run_several_times(tmp_path: Path) -> None:
    (tmp_path / "one.priv").write_text(ONE.format(amount="epsilon", measure="DP", value=2), "utf-8")
    text = 'components: year = spec("one.priv", times = 5)\nloss: year.loss\nprivacy: year.O is 1-DP wrt v\n'
    (tmp_path / "runs.priv").write_text(text, "utf-8")
    plan = load(tmp_path / "runs.priv").solve()
    assert plan.loss.value == pytest.approx(staircase(0.2), rel=3e-4)  # less than the 50 of Laplace noise


@pytest.mark.parametrize(
    ("part", "line", "value"),
    [
        (PURE, "year.O is 1-DP wrt x", staircase(0.2)),
        (GAUSSIAN, "year.O is 0.5-zCDP wrt x", 5),
        (("mu", "GDP"), "year.O is 1-GDP wrt x", 5),
    ],
)
def test_runs_of_one_part_share_a_line_by_a_number_that_is_chosen(
    tmp_path: Path, part: tuple[str, str], line: str, value: float
) -> None:
    """The amount of the part's own line is that of all of its five runs."""
    amount, measure = part
    (tmp_path / "one.priv").write_text(ONE.format(amount=amount, measure=measure, value=10), "utf-8")
    text = f"""components: year = spec("one.priv", v = x, {amount} = e, times = 5)
variables:
  input x in [0, 1]
  choose e in [0, inf)
loss: year.loss
privacy: {line}
"""
    plan = Problem(text, base=tmp_path).solve()
    assert plan.loss.value == pytest.approx(value, rel=3e-4)
    chosen = float(Fraction(plan.document["mechanism"]["choices"]["e"]))
    assert chosen == pytest.approx(0.5 if part is GAUSSIAN else 1, rel=1e-4)
    assert verify(plan.to_json()).ok


def test_runs_of_parts_whose_own_lines_are_of_rho(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under one line of (epsilon, delta): what the runs of a part spend of their own line adds up."""
    monkeypatch.setattr(bracket, "BOXES", 64)
    (tmp_path / "one.priv").write_text(ONE.format(amount="rho", measure="zCDP", value=10), "utf-8")
    text = """components:
  often = spec("one.priv", v = x, rho = r, times = 4)
  single = spec("one.priv", v = x, rho = s)
variables:
  input x in [0, 1]
  choose r in [0, inf)
  choose s in [0, inf)
loss: often.loss + single.loss
privacy: (often.O, single.O) is (1, 1e-6)-DP wrt x
"""
    plan = Problem(text, base=tmp_path).solve()
    mechanism = plan.document["mechanism"]
    each = Fraction(mechanism["components"]["often"]["shares"][1]["amounts"][0][1])
    assert Fraction(mechanism["choices"]["r"]) == 4 * each
    assert verify(plan.to_json()).ok
    forged = json.loads(plan.to_json())
    forged["mechanism"]["choices"]["r"] = str(3 * each)
    assert not judge(JsonNode(resign(forged), "plan")).ok


def test_a_chosen_amount_beside_outputs_of_other_kinds_is_refused_by_its_name() -> None:
    """What `check` takes has no unknown names: the choice is what cannot be computed."""
    text = """variables:
  input people in table(age in 0..100)
  choose epsilon in [0, 10]
  output A
  output M = median(people.age)
accuracy: E[ (A - count(people))^2 ] <= 4
loss: epsilon
privacy: (A, M) is epsilon-DP wrt people, adding or removing one record
"""
    with pytest.raises(SpecError) as caught:
        Problem(text).solve()
    assert {found.code for found in caught.value.diagnostics} == {"PS0501"}
    assert "a value for epsilon" in str(caught.value)


def test_what_is_computed_from_several_runs_is_refused(tmp_path: Path) -> None:
    path = runs(tmp_path, ", times = 2", "(P, again.O) is 0.5-zCDP wrt x", GAUSSIAN, more="  output Q = again.O / 2")
    with pytest.raises(SpecError, match="Q from a part that runs several times"):
        load(path).solve()


def test_plans_that_lie_about_runs_are_refused(tmp_path: Path) -> None:
    plan = load(runs(tmp_path, ", times = 4", "(P, again.O) is 0.5-zCDP wrt x", GAUSSIAN)).solve()

    def verdict(change: Callable[[Document], None]) -> str:
        forged = copy.deepcopy(json.loads(plan.to_json()))
        change(forged)
        found = judge(JsonNode(resign(forged), "plan"))
        return "; ".join(f"{claim.name}: {claim.text}" for claim in found.failed)

    def parts(document: Document) -> Any:
        return document["problem"]["blocks"][0]["parts"]

    assert verdict(lambda _: None) == ""
    assert "privacy" in verdict(lambda document: parts(document)[1].update(times=5))
    assert "too often" in verdict(lambda document: parts(document)[1].update(times=10**9))
    assert "condition" in verdict(lambda document: parts(document)[1].update(only_if="Q"))
    assert "condition" in verdict(lambda document: parts(document)[1].update(only_if="again.O"))
    # a line of its own that does not name P: whether it runs would show P
    assert "condition" in verdict(lambda document: parts(document)[1].update(only_if="P"))
    fewer = copy.deepcopy(json.loads(plan.to_json()))
    parts(fewer)[1]["times"] = 3
    assert not verify(json.dumps(resign(fewer))).ok  # the spec says four


CONDITION = """components:
  more = spec("one.priv", v = x, only_if = go)
variables:
  input s in {0, 1}
  input x in [0, 1]
  output go in {0, 1}
loss: more.loss + worst[ |go - s| ]
privacy:
  LINES
"""
BOTH = "(go, more.O) is (4, 1e-6)-DP wrt (s, x), replacing everything"


def conditional(folder: Path, lines: str = BOTH) -> Path:
    (folder / "one.priv").write_text(ONE.format(amount="epsilon", measure="DP", value=3), "utf-8")
    (folder / "one.plan.priv").write_text(CONDITION.replace("LINES", lines), "utf-8")
    return folder / "one.plan.priv"


def test_a_part_that_is_run_on_a_condition(tmp_path: Path) -> None:
    """Its own line names the condition as well, and it is drawn if what is released is not 0."""
    plan = load(conditional(tmp_path)).solve()
    assert verify(plan.to_json()).ok
    assert [guarantee.outputs for guarantee in plan.guarantees] == [("go", "more.O")] * 2
    assert "more.O is drawn only if, as released, go is not 0" in plan.explain("auditor")
    drawn = {0: 0, 1: 0}
    for seed in range(20):
        data = {"s": seed % 2, "x": 0.5}
        release = plan.run(data, randomness=SimulationRandomness(seed))
        go = int(release.values["go"].reshape(-1)[0])
        drawn[go] += 1
        assert ("more.O" in release.values) == (go == 1)
        assert release.statement().get("not_drawn") == (None if go else ["more.O"])
    assert min(drawn.values()) > 2


@pytest.mark.parametrize("lines", ["more.O is 2-DP wrt (s, x), replacing everything", "more.O is 2-GDP wrt s"])
def test_a_line_about_a_part_and_not_about_its_condition_is_refused(tmp_path: Path, lines: str) -> None:
    with pytest.raises(SpecError) as caught:
        load(conditional(tmp_path, f"{BOTH}\n  {lines}")).solve()
    assert [found.code for found in caught.value.diagnostics if found.is_error] == ["PS0425"]


def test_a_line_about_data_that_the_condition_does_not_depend_on_may_leave_it_out(tmp_path: Path) -> None:
    plan = load(conditional(tmp_path, f"{BOTH}\n  more.O is 2-DP wrt x, replacing everything")).solve()
    assert verify(plan.to_json()).ok
    # the loss of one part bends at the 2 of its own line, which a search for the best shares came near to only
    assert not better_ones(json.loads(plan.to_json()))


# --- trust ---------------------------------------------------------------------------------------------------------

HELD = """parameters: epsilon = 1
parties: person in 1..20
variables:
  input x[person] in [0, 1]
  output O
loss: {loss}
privacy: O is epsilon-DP wrt x, replacing one person
"""
DESIGN = """components:
  average = spec("average.priv", x = x, epsilon = e1, trust = protocol)
  counts  = spec("counts.priv", x = x, epsilon = e2, trust = protocol)
parties: person in 1..20
{parameters}
variables:
  input x[person] in [0, 1]
  choose e1 in [0, inf)
  choose e2 in [0, inf)
{choices}
loss: average.loss + 4 * counts.loss{cost}
privacy:
  (average.O, counts.O) is (1, 1e-6)-DP wrt x, replacing one person
{more}
"""


def design(folder: Path, parameters: str = "", choices: str = "", cost: str = "", more: str = "") -> Path:
    (folder / "average.priv").write_text(HELD.format(loss="400 * E[ (O - mean(x))^2 ]"), "utf-8")
    (folder / "counts.priv").write_text(HELD.format(loss="E[ (O - sum(x))^2 ]"), "utf-8")
    text = DESIGN.format(parameters=parameters, choices=choices, cost=cost, more=more)
    (folder / "whole.priv").write_text(text, "utf-8")
    return folder / "whole.priv"


@pytest.mark.parametrize(("price", "word"), [("0.001", "secure_sum"), ("1000", "nobody")])
def test_the_worked_example_with_a_protocol_that_is_chosen(tmp_path: Path, price: str, word: str) -> None:
    """Sums of shares of noise, or every person's own: the cheaper one with its price."""
    cost = f" + {price} * cost(protocol, nobody = 0, secure_sum = 25)"
    plan = load(design(tmp_path, choices="  choose protocol in {nobody, secure_sum}", cost=cost)).solve()
    assert verify(plan.to_json()).ok
    assert plan.document["problem"]["trust"]["kind"] == word
    assert plan.document["mechanism"]["family"] == "composite"
    assert list(plan.document["mechanism"]["components"]) == ["average", "counts"]
    assert plan.document["mechanism"]["choices"]["protocol"] == word
    assert set(plan.document["mechanism"]["choices"]) == {"protocol", "e1", "e2"}
    forged = copy.deepcopy(json.loads(plan.to_json()))
    forged["mechanism"]["choices"]["protocol"] = "curator"
    assert not judge(JsonNode(resign(forged), "plan")).ok
    assert "published “average”" in plan.explain("public")
    data = {"x": [1.0] * 20}
    release = plan.run(data, randomness=SimulationRandomness(1))
    assert list(release.values) == ["average.O", "counts.O"]


def test_every_message_of_every_part_is_seen_where_nobody_is_trusted(tmp_path: Path) -> None:
    """A line of the whole is about all messages, whichever it names; a line of a part is about those of the part."""
    nobody = 'parameters: protocol = "nobody"'
    plan = load(design(tmp_path, nobody)).solve()
    seen = [tuple(one["seen"]) for one in plan.document["problem"]["obligations"]]
    assert seen == [("average.O", "counts.O"), ("average.O",), ("counts.O",)]
    # twenty people's noise in place of one keeper's: (sum of cube roots of 2 * 1 and 2 * 4)^3 * 20
    assert plan.loss.value == pytest.approx(20 * (2 ** (1 / 3) + 8 ** (1 / 3)) ** 3, rel=1e-3)
    stricter = load(design(tmp_path, nobody, more="  average.O is 0.5-DP wrt x, replacing one person")).solve()
    assert stricter.document["problem"]["obligations"][1]["seen"] == ["average.O", "counts.O"]
    assert stricter.loss.value == pytest.approx(4 * plan.loss.value, rel=1e-3)


# --- what no line names together -----------------------------------------------------------------------------------

APART = """parties: person in 1..3
variables:
  input pay[person] in [0, 2]
  input works[person] in {{0, 1}}
  intermediate said
  output mean_pay
  output working in 0..3
background:
  said = sum(works)
  said ~ uniform
loss: E[ (mean_pay - mean(pay))^2 ] + E[ |working - said| ]
privacy:
  mean_pay is {first} wrt (pay, works), replacing one person
  working is {second} wrt (pay, works), replacing one person
"""


@pytest.mark.parametrize(
    ("first", "second", "bound"),
    [
        ("0.5-DP", "0.25-DP", {"epsilon": Fraction(3, 4), "delta": Fraction(0)}),
        # Phi(-mu / 2) = 1 / (1 + e^epsilon) for randomised response
        ("0.5-GDP", "0.25-DP", {"mu": Fraction(math.hypot(0.5, 2 * NormalDist().inv_cdf(1 / (1 + math.exp(-0.25)))))}),
    ],
)
def test_parts_without_a_common_line_have_a_composed_bound(first: str, second: str, bound: dict[str, Fraction]) -> None:
    """Whoever sees both learns more than either line says: the plan states how much, and no less."""
    plan = solve(Request(Source("apart.priv", APART.format(first=first, second=second))))
    assert verify(plan.to_json()).ok
    (one, other) = plan.document["exposures"]
    assert one["bound"] == other["bound"]
    found = {key: float(Fraction(text)) for key, text in one["bound"].items()}
    assert found == pytest.approx({key: float(value) for key, value in bound.items()}, rel=1e-8)
    forged = copy.deepcopy(json.loads(plan.to_json()))
    forged["exposures"][0]["bound"][next(iter(bound))] = "0.3"
    assert not judge(JsonNode(resign(forged), "plan")).ok  # less than what is derived


# --- what does not compose -------------------------------------------------------------------------------------

CHAIN = """variables:
  input hour in {{rest, walk}}^6
  intermediate active
  output O
background:
  active = [0, 1] @ histogram(hour)
  hour[1] ~ categorical([0.5, 0.5])
  hour[i] ~ categorical([[0.8, 0.2], [0.3, 0.7]][hour[i - 1]])
loss: E[ (O - active)^2 ]
privacy: O is {epsilon}-DP wrt hour, replacing one entry, given the model
"""


def test_guarantees_given_a_model_are_not_added_up(tmp_path: Path) -> None:
    """Runs on the same data tell of each other's entries: their epsilons given the model do not add up."""
    (tmp_path / "chain.priv").write_text(CHAIN.format(epsilon=1), "utf-8")
    whole = """components: a = spec("chain.priv"{})
loss: a.loss
privacy: a.O is 1-DP wrt hour, replacing one entry, given the model
"""
    (tmp_path / "whole.priv").write_text(whole.format(", times = 2"), "utf-8")
    with pytest.raises(SpecError, match="given the model that several outputs or runs share"):
        load(tmp_path / "whole.priv").solve()
    (tmp_path / "whole.priv").write_text(whole.format(""), "utf-8")
    assert verify(load(tmp_path / "whole.priv").solve().to_json()).ok


def test_fairness_of_several_runs_is_refused(tmp_path: Path) -> None:
    """Each run may tell a little of sex: all of them together tell more than the line of one allows."""
    (tmp_path / "fair.priv").write_text(
        """variables:
  input sex in {F, M}
  input x in {0, 1}
  output O in {0, 1}
loss: worst[ |O - x| ]
fairness: O is independent of sex, up to 0.05
""",
        "utf-8",
    )
    text = 'components: a = spec("fair.priv"{})\nloss: a.loss\nprivacy: a.O is 1-DP wrt (sex, x)\n'
    (tmp_path / "whole.priv").write_text(text.format(", times = 2"), "utf-8")
    with pytest.raises(SpecError) as caught:
        load(tmp_path / "whole.priv").solve()
    assert "fairness of a, which runs several times" in str(caught.value)


# --- records of persons ----------------------------------------------------------------------------

SHARED = """\
spec visits
variables:
  input visits in table(person in id, spend in 0..4)
  output many
  output middle
loss:
  0.01 * E[ (many - count(visits))^2 ] + worst[ rank_error(middle, median(visits.spend)) ]
privacy:
  all outputs are (1, 1e-6)-DP wrt visits, adding or removing one person with at most 3 records
"""


@pytest.fixture(scope="module")
def shared() -> Plan:
    return solve(Request(Source("visits.priv", SHARED)))


def test_parts_share_a_line_about_people(shared: Plan, tmp_path: Path) -> None:
    assert shared.verify().ok
    assert shared.document["mechanism"]["family"] == "composite"
    rows = ["person,spend", *(f"a,{i % 5}" for i in range(40)), *(f"b{i},3" for i in range(20))]
    (tmp_path / "visits.csv").write_text("\n".join(rows), "utf-8")
    release = shared.run({"visits": tmp_path / "visits.csv"}, randomness=SimulationRandomness(1))
    assert set(release.values) == {"many", "middle"}
    # 3 records of a are kept, so that 23 are counted, not 60
    drawn = [
        shared.run({"visits": tmp_path / "visits.csv"}, randomness=SimulationRandomness(seed)).values["many"]
        for seed in range(20)
    ]
    values = [float(one) for one in drawn]
    assert abs(mean(values) - 23) < 5 * stdev(values) / 20**0.5


def of_part(number: int, *path: Any) -> tuple[Any, ...]:
    return ("problem", "blocks", 0, "parts", number, "problem", *path)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (of_part(0, "data", 0, "kept", "most"), 2, "other data"),
        (of_part(1, "data", 0, "kept", "most"), 4, "other data"),
        (of_part(1, "data", 0, "kept"), None, "has a key 'kept'"),
        (of_part(0, "obligations", 0, "units", 0, "count"), 1, "another number of them"),
        (of_part(1, "obligations", 0, "units", 0, "kind"), "record", "which of them are kept"),
        (("problem", "obligations", 0, "units", 0, "count"), 6, "many has no share of line"),
        (("problem", "data", 0, "kept", "most"), 4, "other data"),
    ],
)
def test_parts_keep_the_records_that_the_line_says(shared: Plan, path: tuple[Any, ...], value: Any, words: str) -> None:
    forged = copy.deepcopy(shared.document)
    at: Any = forged
    for key in path[:-1]:
        at = at[key]
    assert at[path[-1]] != value
    at[path[-1]] = value
    found = judge(JsonNode(resign(forged), "plan"))
    assert not found.ok
    assert words in " ".join(claim.text for claim in found.claims)


def test_a_number_is_picked_for_the_one_part_of_a_line() -> None:
    """It spends all that the other line allows, and says so; a plan that says less, or spends more, is refused."""
    text = """variables:
  input x in [0, 1]^5
  choose r in [0, 3]
  output O
loss: E[ ||O - x||^2 ]
privacy:
  O is (1, 1e-6)-DP wrt x, replacing one entry
  O is r-zCDP wrt x, replacing one entry
"""
    plan = Problem(text).solve()
    mu = float(mu_down(Fraction(1), Fraction(1, 10**6)))
    assert plan.loss.value == pytest.approx(5 / mu**2, rel=1e-5)
    assert plan.loss.lower_bound == pytest.approx(5 / mu**2, rel=1e-4)
    rho = Fraction(plan.document["mechanism"]["choices"]["r"])
    assert float(rho) == pytest.approx(mu**2 / 2, rel=1e-5)
    (name,) = plan.document["mechanism"]["components"]
    for forge in (
        lambda one: one["mechanism"]["choices"].update(r=str(rho * Fraction(99, 100))),
        lambda one: one["mechanism"]["components"][name]["shares"][0]["amounts"][0].__setitem__(1, "1/2"),
    ):
        forged = copy.deepcopy(plan.document)
        forge(forged)
        assert not Plan(resign(forged)).verify().ok


def test_a_part_with_a_line_of_its_own_costs_what_that_line_asks(tmp_path: Path) -> None:
    """Whatever the others leave it of a line that is shared: a count at 0.2-DP beside one that takes the rest of 1."""
    (tmp_path / "one.priv").write_text(ONE.format(amount="epsilon", measure="DP", value=1), "utf-8")
    text = """components:
  first = spec("one.priv", v = x, epsilon = 0.2)
  second = spec("one.priv", v = x, epsilon = 5)
variables: input x in [0, 1]
loss: first.loss + second.loss
privacy: (first.O, second.O) is 1-DP wrt x
"""
    plan = Problem(text, base=tmp_path).solve()
    assert plan.loss.lower_bound == pytest.approx(staircase(0.2) + staircase(1), rel=1e-3)
    assert plan.loss.lower_bound <= staircase(0.2) + staircase(0.8) <= plan.loss.value * (1 + 1e-9)
    assert verify(plan.to_json()).ok
    forged = json.loads(plan.to_json())
    forged["loss"]["lower_bound"] = forged["loss"]["value"] * (1 + 1e-9)
    assert not judge(JsonNode(resign(forged), "plan")).ok


def staircase(epsilon: float) -> float:
    """The variance of the best staircase for a number that moves by 1 (Geng & Viswanath 2014)."""
    b = exp(-epsilon)
    return float(((b * (1 + b) / 2) ** (2 / 3) + b) / (1 - b) ** 2)
