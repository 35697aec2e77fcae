"""Specs that leave choices open: every alternative is solved as it would be alone, and the least sum wins."""

from __future__ import annotations

import copy
import json
import re
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path

import pytest

from privspec.api import Problem
from privspec.cli import run_command_line
from privspec.core.diagnostics import SolveError, SpecError
from privspec.manual import template_text
from privspec.pipeline import Request
from privspec.plan import Plan
from privspec.sweep import sweep_spec
from tests.plans import resign, solved_text

REPORTS = """\
spec reports
parameters:
  price = 0.05
variables:
  input x in 1..4
  choose k in 2..4
  output O in 1..k
background: x ~ categorical([4, 3, 2, 1])
loss: E[ |O - x| ] + price * k
privacy: O is 1.5-DP wrt x
"""

VOTE = """\
spec vote
parameters:
  price = 0.1
parties: voter in 1..3
variables:
  input vote[voter] in {a, b}
  choose protocol in {nobody, curator}
  intermediate winner
  output O
background: winner = random_dictator(vote)
loss: worst[ total_variation(O, winner) ] + price * cost(protocol, nobody = 0, curator = 1)
privacy: O is 1-DP wrt vote, replacing one voter
options: trust protocol
"""


def alone(text: str, **values: str) -> float:
    """The loss of an alternative that is written as a spec of its own, without its cost."""
    for name, value in values.items():
        text = re.sub(rf"  choose {name} .*\n", "", text)
        text = re.sub(rf"\.\.{name}\b", f"..{value}", text).replace(f"trust {name}", f"trust {value}")
    text = re.sub(r" \+ price .*", "", text).replace("parameters:\n  price = 0.1\n", "")
    return Problem(text.replace("parameters:\n  price = 0.05\n", "")).solve().loss.value


@pytest.mark.parametrize("price", ["0.001", "0.05", "0.5"])
def test_the_best_number_is_that_of_enumeration(price: str) -> None:
    plan = Problem(REPORTS).solve(price=price)
    totals = {k: alone(REPORTS, k=str(k)) + float(price) * k for k in (2, 3, 4)}
    assert plan.loss.value == pytest.approx(min(totals.values()), abs=1e-12)
    assert totals[int(plan.document["spec"]["choices"]["k"])] == pytest.approx(plan.loss.value)
    assert plan.status == "optimal"
    assert [a.loss for a in plan.stated.alternatives] == pytest.approx(
        [total for k, total in totals.items() if str(k) != plan.document["spec"]["choices"]["k"]]
    )


def test_a_protocol_flips_where_enumeration_says() -> None:
    """Who is trusted changes where the price passes the difference of the losses, and nowhere else."""
    losses = {word: alone(VOTE, protocol=word) for word in ("nobody", "curator")}
    flip = losses["nobody"] - losses["curator"]
    prices = [f"{flip * share:.9f}" for share in (0.0, 0.5, 0.999, 1.001, 2.0)]
    rows = sweep_spec(Request(Problem(VOTE).source), "price", prices)
    chosen = [re.search(r"protocol = (\w+)", row.mechanism).group(1) for row in rows]  # type: ignore[union-attr]
    assert chosen == ["curator"] * 3 + ["nobody"] * 2
    for row, price in zip(rows, prices, strict=True):
        least = min(losses["nobody"], losses["curator"] + float(price))
        assert row.loss == pytest.approx(least, abs=1e-9)
    assert all(one.loss <= other.loss for one, other in pairwise(rows) if one.loss and other.loss)


def test_a_secure_sum_is_worth_its_messages_up_to_a_price() -> None:
    """100 homes: variance 1 / (2 rho N) of single noise, 100 times less of shared noise, for 4950 messages more."""
    own, shared = Fraction(5), Fraction(5, 100)
    flip = (own - shared) / 4950
    for share, word in ((Fraction(999, 1000), "secure_sum"), (Fraction(1001, 1000), "nobody")):
        plan = Problem(template_text("secure_sum_or_noise")).solve(message=str(flip * share))
        assert plan.document["spec"]["choices"] == {"protocol": word}
        assert plan.status == "optimal"
        total = own + 100 * flip * share if word == "nobody" else shared + 5050 * flip * share
        assert plan.loss.value == pytest.approx(float(total), rel=1e-9)


def test_the_plan_is_that_of_the_alternative() -> None:
    plan = solved_text(REPORTS)
    assert plan["spec"]["choices"] == {"k": "3"}
    assert "k" not in plan["spec"]["parameters"]
    assert plan["design"]["outcomes"][1]["form"] == "chosen"
    assert len(plan["mechanism"]["probabilities"][0]) == 3
    assert Plan(plan).verify().ok


def test_what_cannot_be_computed_is_named_and_nothing_is_called_optimal() -> None:
    text = """\
variables:
  input x in [0, 1]
  choose budget in {1, 2}
  output O
loss: E[ (O - x)^2 ] + 0.5 * budget
accuracy: E[ (O - x)^2 ] <= 1
privacy: O is budget-DP wrt x
"""
    plan = Problem(text).solve()
    assert plan.status == "feasible"
    assert plan.loss.lower_bound == 0.5  # what the other one costs: no squared error is below 0
    assert plan.document["spec"]["choices"] == {"budget": "2"}
    none = plan.document["design"]["outcomes"][0]
    assert none["form"] == "none"
    assert none["reason"].startswith("PS0612")
    assert not none["infeasible"]
    for reader in ("public", "auditor", "engineer"):
        page = plan.explain(reader)
        assert ("budget = 1" in page) == (reader != "public")  # whom it tells nothing: no choice of theirs
        assert "optimal among" not in page
    assert "the best of the 1 of 2 alternatives that could be computed" in plan.summary(200)
    assert plan.model().requirements[0].measure.amounts == {"epsilon": Fraction(2)}


def test_a_shared_budget_is_a_knapsack() -> None:
    """Each figure is released at its cost, or left out at a price: all 32 alternatives beside their closed form."""
    plan = Plan(solved_text(template_text("shared_budget")))
    costs, prices = range(1, 6), (40, 40, 60, 60, 100)
    totals = {
        kept: sum(c ** (1 / 3) for c, take in zip(costs, kept, strict=True) if take) ** 3
        + sum(price for price, take in zip(prices, kept, strict=True) if not take)
        for kept in product((0, 1), repeat=5)
    }
    best = min(totals, key=lambda kept: totals[kept])
    assert plan.document["spec"]["choices"] == {"keep": str(list(best))}
    assert plan.loss.value == pytest.approx(totals[best], rel=1e-8)
    assert round(plan.loss.value, 3) == 171.322
    assert plan.status == "optimal"
    relaxed = plan.stated.remarks.relaxation
    assert relaxed is not None
    assert round(relaxed.value, 3) == 168.716
    assert "168.716 if choices could be made in part" in plan.summary(400)
    assert "that is no plan" in plan.explain("auditor")
    outcomes = plan.document["design"]["outcomes"]
    for total, one, stated in zip(
        totals.values(), outcomes, plan.document["design"]["problem"]["alternatives"], strict=True
    ):
        if one["form"] == "none":
            assert Fraction(one["least"]) == total == 300
        else:
            assert one["loss"]["value"] + float(Fraction(stated["cost"])) == pytest.approx(total, rel=1e-8)
    none = copy.deepcopy(plan.document)
    none["design"]["outcomes"][0]["least"] = "400"
    assert not Plan(resign(none)).verify().ok


def test_what_is_chosen_is_never_split() -> None:
    """The relaxation, in which a figure may be released in part, is no plan."""
    text = template_text("shared_budget").replace("{0, 1}^5", "[0, 1]^5")
    with pytest.raises(SpecError) as caught:
        Problem(text).solve()
    assert caught.value.diagnostics[0].code.startswith("PS05")


def test_a_run_takes_the_chosen_alternative(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("x\n4\n", "utf-8")
    plan = Problem(REPORTS).solve()
    release = plan.run({"x": tmp_path / "x.csv"}, tmp_path / "ledger.db", new_ledger=True)
    assert release.values["O"] in (1, 2, 3)
    assert release.guarantees


def test_a_price_that_all_pay_makes_nothing_optimal() -> None:
    """Laplace noise on several numbers is not proved the best: no cost that is added makes its gap small."""
    text = """\
variables:
  input x in [0, 1]^4
  choose k in {1, 2}
  output O
loss: E[ ||O - x||^2 ] + 10^9 + k
privacy: O is 1-DP wrt x, replacing everything
"""
    plan = Problem(text).solve()
    assert plan.status == "feasible"
    assert plan.loss.relative_gap is not None
    assert plan.loss.relative_gap > 0.1


def test_lines_that_no_alternative_can_meet() -> None:
    text = "variables:\n  input x in real\n  choose k in {1, 2}\n  output O\n"
    plan = Problem(text + "loss: E[ (O - x)^2 ] + k\nprivacy: O is k-DP wrt x").solve()
    assert plan.status == "infeasible"
    assert plan.document["relaxations"]


def test_a_choice_may_be_made_from_outside() -> None:
    """`--set k=2`, and a sweep over k: each as the alternative is alone; the plan says that the text leaves it open."""
    rows = sweep_spec(Request(Problem(REPORTS).source), "k", ["2", "3", "4"])
    assert [row.loss for row in rows] == pytest.approx([alone(REPORTS, k=str(k)) + 0.05 * k for k in (2, 3, 4)])
    plan = Problem(REPORTS).solve(k=4)
    assert plan.document["spec"]["choices"] == {"k": "4"}
    assert plan.document["spec"]["parameters"]["k"] == "4"
    found = plan.verify()
    assert found.ok
    assert "Parameter as solved: k = 4 (the spec's text leaves it open)." in found.told
    assert "k = 4 (the spec's text leaves it open)" in plan.summary(200)
    for k in ("5", "5/2", "{2}"):
        with pytest.raises(SpecError, match="PS0251"):
            Problem(REPORTS).solve(k=k)
    forged = copy.deepcopy(plan.document)
    del forged["spec"]["parameters"]["k"]
    assert not Plan(resign(forged)).verify().ok


def test_a_time_limit_is_for_all_alternatives() -> None:
    with pytest.raises(SolveError, match="no time left"):
        Problem(REPORTS).solve(time_limit=1e-9)


def test_vectors_are_chosen_entry_by_entry() -> None:
    """Each sum is taken at its share of one budget, or paid for: a knapsack, here by enumeration."""
    text = """\
variables:
  input x in 1..3
  choose keep in {0, 1}^2
  output O in 1..3
background: x ~ uniform
loss: E[ |O - x| ] + 0.2 * keep[1] + 0.3 * keep[1] * keep[2]
privacy: O is (0.5 + keep[1] + keep[2])-DP wrt x
"""
    plan = Problem(text).solve()
    assert plan.document["spec"]["choices"] == {"keep": "[0, 1]"}
    assert len(plan.document["design"]["outcomes"]) == 4


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("price * k", "price * sqrt(k)"), "PS0528"),
        (("k in 2..4", "k in 1..100000"), "PS0527"),
        (("output O in 1..k", "output O in k..1"), "PS0221"),
        (("+ price * k", "+ price * cost(k, a = 1)"), "PS0206"),
    ],
)
def test_what_is_wrong_has_a_code(change: tuple[str, str], code: str) -> None:
    with pytest.raises(SpecError) as caught:
        Problem(REPORTS.replace(*change)).solve()
    assert code in {found.code for found in caught.value.diagnostics}


# --- parts ----------------------------------------------------------------------------------------

PART = """\
parameters:
  budget = 1
variables:
  input x in 1..4
  output O in {ANSWERS}
background: x ~ uniform
loss: E[ |O - x| ]
privacy: O is budget-DP wrt x
"""

PICK = """\
components:
  fine = spec("fine.priv", x = x)
  coarse = spec("coarse.priv", x = x, budget = 2)
variables:
  input x in 1..4
  choose method in {fine, coarse}
loss: method.loss + 0.3 * cost(method, fine = 1, coarse = 0)
privacy: method.O is 3-DP wrt x
"""


def test_a_part_is_chosen_and_the_others_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "fine.priv").write_text(PART.replace("{ANSWERS}", "1..4"), "utf-8")
    (tmp_path / "coarse.priv").write_text(PART.replace("{ANSWERS}", "{1, 4}"), "utf-8")
    plan = Problem(PICK, base=tmp_path).solve()
    assert plan.document["spec"]["choices"] == {"method": "coarse"}
    assert set(plan.document["spec"]["components"]) == {"fine.priv", "coarse.priv"}
    assert [node.name for node in plan.model().outputs] == ["coarse.O"]
    other = Problem(PICK.replace("fine = 1", "fine = -1"), base=tmp_path).solve()
    assert [node.name for node in other.model().outputs] == ["fine.O"]
    assert {plan.status, other.status} == {"optimal"}
    assert "method = coarse" in plan.explain("engineer")


def test_parts_between_which_is_chosen_leave_nothing_open(tmp_path: Path) -> None:
    (tmp_path / "fine.priv").write_text(PART.replace("{ANSWERS}", "1..4"), "utf-8")
    opened = PART.replace("{ANSWERS}", "1..k").replace("  output", "  choose k in {2, 4}\n  output")
    (tmp_path / "coarse.priv").write_text(opened, "utf-8")
    with pytest.raises(SpecError, match="PS0501"):
        Problem(PICK, base=tmp_path).solve()


def test_what_a_part_leaves_open_is_chosen(tmp_path: Path) -> None:
    opened = PART.replace("{ANSWERS}", "1..k").replace("  output", "  choose k in {2, 4}\n  output")
    (tmp_path / "open.priv").write_text(opened, "utf-8")
    text = 'components:\n  a = spec("open.priv", x = x)\nvariables:\n  input x in 1..4\nloss: a.loss'
    plan = Problem(text, base=tmp_path).solve()
    assert list(plan.document["spec"]["choices"]) == ["a.k"]
    assert plan.status == "optimal"


def test_data_fit_a_spec_whose_alternatives_hold_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec, data = tmp_path / "reports.priv", tmp_path / "x.csv"
    spec.write_text(REPORTS, "utf-8")
    data.write_text("x\n4\n", "utf-8")
    assert run_command_line(["check", str(spec)]) == 0
    assert "left open: k is one of 2, 3, 4; the lines above are those of 2" in capsys.readouterr().out
    assert run_command_line(["check", str(spec), "--graph"]) == 0
    assert "one of 2, 3, 4; here 2" in capsys.readouterr().out
    assert run_command_line(["data", str(spec), "--input", f"x={data}"]) == 0
    capsys.readouterr()
    spec.write_text(REPORTS.replace("x in 1..4", "x in 1..k").replace("[4, 3, 2, 1]", "ones(k)"), "utf-8")
    assert run_command_line(["data", str(spec), "--input", f"x={data}"]) == 1
    assert "PS0801" in capsys.readouterr().err
    assert run_command_line(["check", str(spec), "--problem"]) == 0
    assert "Alternative k = 3, at a cost of 0.15:" in capsys.readouterr().out


def test_parties_send_what_the_chosen_protocol_asks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = Problem(template_text("secure_sum_or_noise")).solve(N=2, rho=10)
    assert plan.document["spec"]["choices"] == {"protocol": "secure_sum"}
    plan.write("p.json")
    for number in ("1", "2"):
        assert run_command_line(["keys", "--party", number, "-o", f"{number}.key"]) == 0
        Path(f"{number}.pub").write_text(capsys.readouterr().out, "utf-8")
        Path(f"{number}.csv").write_text(f"home,use\n{number},4\n", "utf-8")
    for number in ("1", "2"):
        said = ["--party", number, "--key", f"{number}.key", "--roster", "1.pub", "--roster", "2.pub", "--new-ledger"]
        assert run_command_line(["run", "p.json", "--input", f"use={number}.csv", *said, "-o", f"m{number}.json"]) == 0
    assert run_command_line(["aggregate", "p.json", "m1.json", "m2.json", "-o", "o.json"]) == 0
    value = json.loads(Path("o.json").read_text("utf-8"))["outputs"]["O"]["values"]
    assert float(value[0] if isinstance(value, list) else value) == pytest.approx(4, abs=8)


def test_halves_of_figures_are_no_selection_of_some() -> None:
    """A choice between 0 and one half is compared as it is: no relaxation to shares between 0 and 1 is of it."""
    text = template_text("shared_budget").replace("{0, 1}", "{0, 0.5}")
    plan = Problem(text).solve()
    assert plan.verify().ok
    assert plan.stated.remarks.relaxation is None
