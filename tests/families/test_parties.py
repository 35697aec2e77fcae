"""Numbers and vectors that parties hold, linear answers about all of them, at a curator."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from privspec.api import Problem
from privspec.core.diagnostics import DataError, SpecError
from privspec.kernel import judge
from privspec.kernel.changes import COUNTED
from privspec.kernel.core.linear import Difference
from privspec.plan import Plan
from privspec.problem.elaborate import elaborate
from privspec.problem.linear import Linear
from tests.plans import dense, mutate, resign, solved_text

from .specs import model_of, spec

UNITS = ["replacing one owner", "adding or removing one owner", "replacing up to 2 owners"]
JOINT = spec(
    "input x[owner] in [0, 1]^3; input w[owner] in [-1, 1]; intermediate z[owner]; intermediate m; output O; output Q",
    "z[owner] = 2 * x[owner] + owner; m = mean(z[owner] for owner)",
    "E[ ||O - m||^2 ] + E[ (Q - sum(w))^2 ]",
    "(O, Q) are {measure} wrt (x, w), {unit}",
)


def held(text: str, *, people: int = 4) -> str:
    return f"parties: owner in 1..{people}\n{text}"


def joint(measure: str = "1-GDP", unit: str = "replacing one owner") -> str:
    return held(JOINT.format(measure=measure, unit=unit))


def units(text: str) -> list[Difference]:
    (block,) = elaborate(model_of(text)).blocks
    assert isinstance(block, Linear)
    found = [one for one in block.differences[0] if one.parts[0].shape not in COUNTED]
    assert len(found) == len(block.differences[0])
    return found


def explained(plan: Plan) -> None:
    assert plan.verify().ok
    for reader in ("public", "auditor", "engineer"):
        assert plan.explain(reader)


@pytest.mark.parametrize("measure", ["(1, 1e-6)-DP", "1-DP", "1-GDP"])
@pytest.mark.parametrize("unit", UNITS)
def test_parties_cost_what_records_of_one_keeper_cost(measure: str, unit: str) -> None:
    loss = "E[ ||O - sum(x[owner] for owner)||^2 ]"
    privacy = f"O is {measure} wrt x, {unit}"
    ours = Problem(held(spec("input x[owner] in [0, 1]^3; output O", "", loss, privacy), people=20)).solve()
    loss = "E[ ||O - sum(x[i] for i in 1..20)||^2 ]"
    privacy = privacy.replace("owner", "record")
    theirs = Problem(spec("input x in [0, 1]^(20, 3); output O", "", loss, privacy)).solve()
    assert ours.document["loss"]["value"] == theirs.document["loss"]["value"]
    assert ours.document["loss"]["lower_bound"] == theirs.document["loss"]["lower_bound"]
    assert ours.guarantees[0].achieved == theirs.guarantees[0].achieved
    explained(ours)


@pytest.mark.parametrize("unit", UNITS)
def test_all_that_one_party_holds_moves_at_once(unit: str) -> None:
    (difference,) = units(joint(unit=unit))
    assert [(one.start, one.stop, one.length, one.shape) for one in difference.parts] == [
        (0, 12, 3, "box"),
        (12, 16, 1, "box"),
    ]
    assert difference.count == 1 + ("up to 2" in unit)
    # who comes or goes moves all numbers from 0 to 1 about their middle, which moves as one
    adding, half = "adding" in unit, 1 / 2
    assert [(one.amount, one.middle) for one in difference.parts] == (
        [(half, half), (1, None)] if adding else [(1, None), (2, None)]
    )
    explained(Problem(joint(unit=unit)).solve())


def test_one_party_costs_more_than_one_record_or_entry_of_it() -> None:
    costs = [Problem(joint(unit=f"replacing one {unit}")).solve().loss.value for unit in ("owner", "record", "entry")]
    # three numbers move by 1/2 and one by 2, jointly or each alone; a vector of parties has a number for each record
    assert costs == pytest.approx([12.25, 4.75, 4.75])
    assert {one.parts[0].length for one in units(joint(unit="replacing one record"))} == {1}


def test_parties_of_two_sets_are_units_of_their_own() -> None:
    text = spec(
        "input x[owner] in [0, 1]^2; input y[shop] in [0, 1]^2; output O",
        "",
        "E[ ||O - (sum(x[owner] for owner) + mean(y[shop] for shop))||^2 ]",
        "O is 1-GDP wrt (x, y)",
    )
    text = f"parties:\n  owner in 1..4\n  shop in 1..2\n{text}"
    assert [[one.length for one in difference.parts] for difference in units(text)] == [[2], [2]]
    explained(Problem(text).solve())


@pytest.mark.parametrize("domain", ["l2_ball(1, 3)", "l1_ball(1, 3)", "0..3", "[0, 1]"])
@pytest.mark.parametrize("measure", ["1-GDP", "1-DP"])
def test_parties_hold_vectors_of_balls_and_numbers(domain: str, measure: str) -> None:
    variables = f"input x[owner] in {domain}; intermediate y; output O"
    text = spec(variables, "y = mean(x[owner] for owner)", privacy=f"O is {measure} wrt x")
    explained(Problem(held(text)).solve())


def test_parties_hold_matrices() -> None:
    text = spec(
        "input x[owner] in [0, 1]^(2, 3); intermediate y; output O",
        "y = mean(x[owner] for owner)",
        "E[ ||O - y[2]||^2 ]",
        "O is 1-GDP wrt x",
    )
    assert units(held(text))[0].parts[0].length == 6
    explained(Problem(held(text)).solve())


def test_a_tidy_table_of_the_parties_is_read_in_their_order(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.random((4, 3)), rng.random(4)
    order = [2, 0, 3, 1]
    table = tmp_path / "owners.csv"
    rows = "\n".join(f"{','.join(map(str, x[i]))},{i + 1},{w[i]}" for i in order)
    table.write_text(f"x_1,x_2,x_3,owner,w\n{rows}\n", "utf-8")
    text = joint("1000-GDP").replace("m = mean(z[owner] for owner)", "m = z[1] - 3 * z[2] + z[4]")
    plan = Problem(text.replace("sum(w)", "(w[1] + 2 * w[3])")).solve()
    release = plan.run({"x": table, "w": table}, tmp_path / "owners.db", new_ledger=True)
    noise = 6 / 1000 * 5
    wanted = 2 * (x[0] - 3 * x[1] + x[3]) + (1 - 3 * 2 + 4)
    np.testing.assert_allclose(release.outputs["O"], wanted, atol=10 * noise)
    np.testing.assert_allclose(release.outputs["Q"], w[0] + 2 * w[2], atol=10 * noise)
    lacking = tmp_path / "lacking.csv"
    lacking.write_text("owner,x_1,x_2,x_3,w\n1,0,0,0,0\n2,0,0,0,0\n", "utf-8")
    with pytest.raises(DataError, match="PS0806"):
        plan.run({"x": lacking, "w": lacking}, tmp_path / "other.db", new_ledger=True)


@pytest.mark.parametrize(
    ("privacy", "options", "words"),
    [
        ("O is e[owner]-DP wrt x, replacing up to 2 owners", "", "each with a figure of its own"),
        ("O is 1-GDP wrt (x, w), replacing up to 2 records", "", "records of several inputs"),
    ],
)
def test_what_is_refused(privacy: str, options: str, words: str) -> None:
    text = spec(
        "input x[owner] in [0, 1]^2; input w[owner] in [0, 1]^2; output O",
        "",
        "E[ ||O - sum(x[owner] + w[owner] for owner)||^2 ]",
        privacy,
        options,
    )
    text = f"parameters: e[owner] = [1, 2, 1, 1]\n{held(text)}"
    with pytest.raises(SpecError) as caught:
        Problem(text).solve()
    assert {one.code for one in caught.value.diagnostics} == {"PS0501"}
    assert words in caught.value.diagnostics[0].message


@pytest.mark.parametrize("domain", ["[0, 1]", "[0, 1]^3", "l2_ball(1, 2)"])
def test_messages_of_parties(domain: str) -> None:
    """Under `trust nobody` every owner adds what the curator adds once: N times the variance, and no less."""
    loss = "E[ ||O - sum(x[owner] for owner)||^2 ]"
    text = held(spec(f"input x[owner] in {domain}; output O", "", loss, "O is 1-GDP wrt x", "trust nobody"), people=9)
    plan, once = Problem(text).solve(), Problem(text.replace("nobody", "curator")).solve()
    assert plan.document["loss"]["value"] == pytest.approx(9 * once.document["loss"]["value"], rel=1e-8)
    assert plan.document["status"] == "optimal"
    explained(plan)


PERSONAL = held(
    spec(
        "input x[owner] in [0, 1]; output O",
        "",
        "E[ (O - sum(w[owner] * x[owner] for owner))^2 ]",
        "O is {amount}-{measure} wrt x[owner], replacing one owner",
        "trust {trust}",
    ).replace("variables", "parameters:\n  e[owner] = [1, 2, 4, 1]\n  w[owner] = {w}\nvariables"),
)


@pytest.mark.parametrize(
    ("trust", "weights", "measure", "variance"),
    [
        # equal weights: the strictest figure binds; each party's noise by itself has its own scale
        ("curator", "[1, 1, 1, 1]", "GDP", 1.0),
        ("secure_sum", "[1, 1, 1, 1]", "GDP", 1.0),
        ("secure_sum(colluding = 2)", "[1, 1, 1, 1]", "GDP", 2.0),
        ("nobody", "[1, 1, 1, 1]", "GDP", 1 + 1 / 4 + 1 / 16 + 1),
        ("nobody", "[1, 1, 1, 1]", "DP", 2 * (1 + 1 / 4 + 1 / 16 + 1)),
        # who weighs four times as much may have four times the figure
        ("curator", "[1, 2, 4, 1]", "GDP", 1.0),
        ("curator", "[1, 2, 8, 1]", "GDP", 4.0),
    ],
)
def test_figures_of_their_own(trust: str, weights: str, measure: str, variance: float, tmp_path: Path) -> None:
    options = f"{trust}\n  noise family gaussian, laplace"
    plan = Problem(PERSONAL.format(amount="e[owner]", measure=measure, trust=options, w=weights)).solve()
    assert plan.document["loss"]["value"] == pytest.approx(variance, rel=1e-6)
    explained(plan)
    assert plan.run({"x": np.zeros(4)}, tmp_path / "l.db", new_ledger=True).outputs["O"].shape == ()


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (("problem", "obligations", 0, "measure", "each", 2, "amounts", 0, 1), "3", "more than some party's"),
        (("guarantees", 0, "achieved", "mu"), "1", "another is stated"),
        (("guarantees", 0, "achieved", "mu"), "5", "another is stated"),
        (("problem", "blocks", 0, "differences", 0, 0, "count"), 2, "not told apart"),
    ],
)
def test_forged_figures_of_their_own(path: tuple[str | int, ...], value: object, reason: str) -> None:
    plan = solved_text(PERSONAL.format(amount="e[owner]", measure="GDP", trust="nobody", w="[1, 1, 1, 1]"))
    assert judge(json.dumps(plan)).ok
    report = judge(json.dumps(mutate(plan, path, value)))
    assert not report.ok
    assert reason in " ".join(claim.text for claim in report.claims if not claim.holds)


TABLES = """parties: clinic in 1..3
variables:
  input visits[clinic] in table(age in {young, old}, sex in {F, M})
  intermediate each[clinic]
  intermediate counts
  output O
background:
  each[clinic] = histogram(visits[clinic])
  counts = COUNTS
loss: E[ ||O - counts||^2 ]
privacy: O is MEASURE wrt visits, adding or removing one record
options: trust TRUST
"""
WHOLE = "histogram(visits)"


def tables(counts: str = WHOLE, measure: str = "1-GDP", trust: str = "curator") -> str:
    return TABLES.replace("COUNTS", counts).replace("MEASURE", measure).replace("TRUST", trust)


@pytest.mark.parametrize("counts", [WHOLE, "sum(each[i] for i in 1..3)", "sum(histogram(visits[i]) for i in 1..3)"])
@pytest.mark.parametrize(
    ("trust", "variance"), [("curator", 4), ("nobody", 12), ("secure_sum", 4), ("secure_sum(colluding = 1)", 6)]
)
def test_a_table_at_each_party(counts: str, trust: str, variance: float) -> None:
    """Four cells of unit noise once, three times, or with the share of one clinic left out."""
    plan = Problem(tables(counts, trust=trust)).solve()
    assert plan.document["loss"]["value"] == pytest.approx(variance, rel=1e-6)
    assert plan.document["status"] == "optimal"
    explained(plan)


def test_weights_of_clinics(tmp_path: Path) -> None:
    """What is asked of single clinics; their records come in one file, with the clinic in a column."""
    plan = Problem(tables("each[1] + 3 * each[3]", "50-GDP")).solve()
    data = tmp_path / "visits.csv"
    data.write_text("clinic,age,sex\n1,young,F\n3,old,M\n3,old,M\n2,old,F\n7,old,F\n", "utf-8")
    release = plan.run({"visits": data}, tmp_path / "l.db", new_ledger=True)
    # clinic 7 is none, and becomes the nearest: the public rule for whole numbers
    np.testing.assert_allclose(release.outputs["O"], [1, 0, 3, 6], atol=1.5)


def test_what_a_whole_table_is() -> None:
    text = tables().replace("adding or removing one record", "replacing one clinic")
    with pytest.raises(SpecError, match="of a whole table"):
        Problem(text).solve()


@pytest.mark.parametrize(("measure", "variance"), [("1-GDP", 5.0), ("1-DP", 10.0)])
def test_messages_about_all_that_a_party_holds(measure: str, variance: float) -> None:
    """Each of five parties adds noise to the sum of its twenty numbers, not to each of the hundred."""
    text = held(
        spec(
            "input x[owner] in [0, 1]^20; output O",
            "",
            "E[ (O - sum(sum(x[owner]) for owner))^2 ]",
            f"O is {measure} wrt x, replacing one record",
            "trust nobody",
        ),
        people=5,
    )
    plan = Problem(text).solve()
    assert plan.document["loss"]["value"] == pytest.approx(variance, rel=1e-6)
    assert plan.document["status"] == ("optimal" if measure == "1-GDP" else "feasible")
    explained(plan)
    # one message more is about another party's number as well
    forged = json.loads(plan.to_json())
    rows = dense(forged)["rows"]
    rows[99] = rows[0]
    report = judge(json.dumps(resign(forged)))
    assert not report.ok
    assert "numbers of more than one party" in " ".join(claim.text for claim in report.claims)


def test_messages_of_different_parties() -> None:
    """Parties who count differently, in several outputs: each has noise of its own, and none can do with less alone."""
    text = held(
        spec(
            "input x[owner] in l2_ball(1, 2); intermediate y; output O",
            "y = sum([x[owner][1] + owner * x[owner][2], owner * x[owner][1]] for owner)",
            "E[ ||O - y||^2 ]",
            "O is 1-GDP wrt x, replacing one owner",
            "trust nobody",
        ),
        people=3,
    )
    plan = Problem(text).solve()
    alone = 0.0
    for one in range(1, 4):
        own = text.replace("owner in 1..3", "owner in 1..1").replace("nobody", "curator").replace("+ owner", f"+ {one}")
        alone += Problem(own.replace(", owner *", f", {one} *")).solve().document["loss"]["value"]
    assert plan.document["loss"]["value"] == pytest.approx(alone, rel=1e-6)
    assert plan.document["status"] == "optimal"
    assert plan.document["loss"]["among"] == "Gaussian noise that each party draws alone, unbiased"
    explained(plan)
    document = json.loads(plan.to_json())
    for path, value, reason in (
        # noise of any covariance may have less loss, and less still is what a weaker proof proves
        (("claims", "bound", "scope"), "errors", "not what the bound is about"),
        (("loss", "among"), "Gaussian noise of any covariance, unbiased", "not what the bound is about"),
        (("problem", "blocks", 0, "held", 0, "shape"), [2, 3], "several of them hold"),
        (("problem", "data", 0, "party"), None, "several of them hold"),
    ):
        report = judge(json.dumps(mutate(document, path, value)))
        assert not report.ok, path
        said = " ".join(claim.text for claim in report.claims if not claim.holds)
        assert any(part in said for part in reason.split("|")), (path, said)


@pytest.mark.parametrize(
    ("trust", "variance"), [("curator", 4), ("secure_sum", 4), ("nobody", 4 * (1 + 1 / 4 + 1)), ("nobody", None)]
)
def test_figures_of_clinics(trust: str, variance: float | None) -> None:
    """Each clinic adds the noise that its own figure asks for; a forged figure of the second one is told."""
    text = tables(measure="e[clinic]-GDP", trust=trust)
    text = f"parameters:\n  e[clinic] = [1, 2, 1]\n{text}"
    if variance is not None:
        plan = Problem(text).solve()
        assert plan.document["loss"]["value"] == pytest.approx(variance, rel=1e-6)
        explained(plan)
        return
    path = ("problem", "obligations", 0, "measure", "each", 1, "amounts", 0, 1)
    report = judge(json.dumps(mutate(solved_text(text), path, "3/2")))
    assert "more than some party's" in " ".join(claim.text for claim in report.claims if not claim.holds)
    with pytest.raises(SpecError, match="change in place"):
        Problem(text.replace("adding or removing", "replacing").replace("})\n", "})^50\n")).solve()


@pytest.mark.slow
def test_vectors_of_parties_who_trust_nobody() -> None:
    """Noise on each of many numbers is too much to compare; the best that each party can do alone is found."""
    text = "parties: owner in 1..10\nvariables:\n  input x[owner] in [0, 10]^16\n  output O\n"
    text += "loss: E[ ||O - mean(x[owner] for owner)||^2 ]\nprivacy: O is 1-GDP wrt x, replacing one owner\n"
    text += "options: trust nobody\n"
    plan = solved_text(text)
    # each hides 16 numbers of 10 at once
    assert plan["status"] == "optimal"
    assert plan["loss"]["value"] == pytest.approx(16 * 1600 / 10, rel=1e-5)


OWN_AMOUNTS = """parties: p in 1..4
parameters:
  rho[p] = [0.01, 0.02, 0.02, 2]
variables:
  input x[p] in [0, 1]
  output O
  output Q
loss: E[ (O - sum(x))^2 + 3 * (Q - x[4])^2 ]
privacy: (O, Q) is rho[p]-zCDP wrt x[p], replacing one p
options: trust {trust}
"""


@pytest.mark.parametrize("trust", ["curator", "nobody", "secure_sum"])
def test_amounts_of_each_party_bound_what_all_noise_loses(trust: str) -> None:
    """Each party's number hides behind 1 / (2 rho) alone; at a curator no noise that was drawn at random is better."""
    plan = Problem(OWN_AMOUNTS.format(trust=trust)).solve()
    found = plan.loss.lower_bound
    assert plan.verify().ok
    assert found is not None
    assert plan.loss.value == pytest.approx(found, rel=1e-6)
    if trust == "nobody":
        assert found == pytest.approx(sum(1 / (2 * rho) for rho in (0.01, 0.02, 0.02)) + 4 * 1 / 4, rel=1e-6)
        return
    rows, draw = np.array([[1, 1, 1, 1], [0, 0, 0, np.sqrt(3)]]), np.random.default_rng(4)
    for _ in range(300):
        root = draw.normal(size=(2, 2))
        inverse = np.linalg.inv(root @ root.T)
        most = max(rows[:, i] @ inverse @ rows[:, i] / (2 * rho) for i, rho in enumerate((0.01, 0.02, 0.02, 2)))
        assert found <= np.trace(root @ root.T) * most * (1 + 1e-9)


def test_a_bound_by_amounts_of_parties_is_about_what_one_of_them_changes() -> None:
    plan = Problem(OWN_AMOUNTS.format(trust="curator")).solve().document
    at = ("claims", "bound", "differences", 0)
    each = ("problem", "obligations", 0, "measure", "each")
    for path, value, words in (
        ((*at, "mu"), "1", "is not"),
        # two parties at once
        ((*at, "columns", "places", "rows"), [0, 1, 11], "no difference of neighbours"),
        ((*each, 3, "amounts", 0, 1), "1/100", ""),
        ((*each, 0, "amounts", 0, 1), "1/200", ""),
        (("loss", "lower_bound"), plan["loss"]["lower_bound"] * 1.01, ""),
    ):
        report = judge(json.dumps(mutate(plan, path, value)))
        assert not report.ok, path
        assert words in "; ".join(claim.text for claim in report.failed)
