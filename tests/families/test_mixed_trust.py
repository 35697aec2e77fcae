"""Systems whose parts trust each their own: who sees what, how shares add up, what is executed, plans that lie."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privspec.api import load
from privspec.core.diagnostics import SpecError
from privspec.execute.family import Simulation, mechanism_of
from privspec.kernel import judge
from privspec.plan import Plan, verify
from privspec.problem.systems import parts_of
from tests.plans import Document, components, resign, solved

SUM = """parameters: epsilon = 3
parties: person in 1..5
variables:
  input x[person] in [0, 1]
  output O
loss: E[ (O - sum(x))^2 ]
privacy: O is epsilon-DP wrt x, replacing one person
"""
LOCAL = SUM.replace("O is epsilon-DP wrt x, replacing one person", "O is epsilon-LDP wrt x")
VOTE = """parties: voter in 1..5
variables:
  input vote[voter] in {north, south}
  intermediate winner
  output O
background: winner = random_dictator(vote)
loss: worst[ total_variation(O, winner) ]
privacy: O is 1-DP wrt vote, replacing one voter
"""
WHOLE = """parties: person in 1..5
components:
  a = spec("sum.priv", x = x, trust = nobody)
  b = spec("sum.priv", x = y, trust = secure_sum(colluding = 2))
  c = spec("sum.priv", x = z)
variables:
  input x[person] in [0, 1]
  input y[person] in [0, 1]
  input z[person] in [0, 1]
loss: LOSS
privacy:
  (a.O, b.O, c.O) is 3-DP wrt (x, y, z), replacing one person
LINES
"""
FILES = {"sum.priv": SUM, "local.priv": LOCAL, "vote.priv": VOTE}


def whole(folder: Path, loss: str = "a.loss + b.loss + c.loss", lines: str = "", **changed: str) -> Path:
    """The spec of three parts beside the files of parts; `changed`: old text to new, once each."""
    for name, text in FILES.items():
        (folder / name).write_text(text, "utf-8")
    text = WHOLE.replace("LOSS", loss).replace("LINES", lines)
    for old, new in changed.items():
        assert old in text
        text = text.replace(old, new, 1)
    path = folder / "whole.priv"
    path.write_text(text, "utf-8")
    return path


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return load(whole(tmp_path_factory.mktemp("spec"))).solve()


def test_each_part_is_under_its_own_trust(plan: Plan) -> None:
    """Where nobody is trusted all messages are seen, in the secure sum shares of two are left out, the rest is kept."""
    problem = plan.document["problem"]
    assert problem["trust"] == {"kind": "parts", "colluding": 0}
    trusts = [part["problem"]["trust"] for part in problem["blocks"][0]["parts"]]
    assert trusts == [
        {"kind": "nobody", "colluding": 0},
        {"kind": "secure_sum", "colluding": 2},
        {"kind": "curator", "colluding": 0},
    ]
    assert [part.outputs for part in parts_of(plan.model())] == [("a.O",), ("b.O",), ("c.O",)]
    report = verify(plan.to_json())
    assert report.ok
    seen = [claim.text for claim in report.claims if claim.name == "view"]
    assert any("all 5 messages" in text for text in seen)
    assert any("and 2 shares of each" in text for text in seen)
    assert any("1 of 1 noisy answers" in text for text in seen)


def test_all_spend_one_budget_and_losses_weigh_as_trusts_cost(plan: Plan) -> None:
    """Variances are 5 * 2 / e^2, (5 / 3) * 2 / e^2 and 2 / e^2: the split is by cube roots of what they cost."""
    shares = [part["shares"][0]["amounts"][0][1] for part in components(plan.document)]
    assert sum(map(Fraction, shares)) <= 3
    costs = np.cbrt([5, 5 / 3, 1])
    # for a sum of pure shares another share of noise may be a little better than Laplace's
    assert np.asarray([float(Fraction(share)) for share in shares]) == pytest.approx(3 * costs / costs.sum(), rel=0.05)


def test_what_is_executed_has_the_variance_of_each_trust(plan: Plan) -> None:
    """The mean of 4,000 squares, within six of its standard deviations; Laplace's fourth moment is six squares."""
    drawn = mechanism_of(plan.document).simulate(Simulation(4000, 7, approximate=True))
    assert drawn.shape == (4000, 3)
    parts = components(plan.document)
    expected = [part["loss"]["value"] for part in parts]
    found = ((drawn - 0.0) ** 2).mean(axis=0)
    assert found == pytest.approx(expected, rel=6 * (5 / 4000) ** 0.5)


def test_pages_say_whom_each_part_trusts(plan: Plan) -> None:
    public, auditor, engineer = (plan.explain(reader) for reader in ("public", "auditor", "engineer"))
    assert "For result a: nobody but you" in public
    assert "For result c: the keeper, who makes the release" in public
    assert "It relies on the keeper to run it as planned." in public
    assert "The trust model of a.O is “nobody”; it is stated in the spec." in auditor
    assert "The trust model of b.O is “secure\\_sum”; it is stated in the spec." in auditor
    assert "in shares at the parties" in engineer
    assert (
        "for b.O, parties add shares of noise, and everybody sees only the sum, even if 2 of them collude" in engineer
    )
    for page in (public, auditor, engineer):
        assert "parts”" not in page


def test_messages_of_all_count_in_every_line(tmp_path: Path) -> None:
    """Whoever sees c.O sees the messages and sums as well: the line of the press holds of what depends on its input."""
    path = whole(
        tmp_path, lines="  c.O is 0.5-DP wrt y, replacing one person, seen by press", **{"x = z)": "x = y)"}
    )  # fmt: skip
    found = load(path).solve()
    line = found.document["problem"]["obligations"][1]
    assert line["outputs"] == ["c.O"]
    assert line["seen"] == ["a.O", "b.O", "c.O"]
    parts = found.document["problem"]["blocks"][0]["parts"]
    about = [1 in part["lines"] for part in parts]
    assert about == [False, True, True]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "trusts"),
    [
        ({'"sum.priv", x = x, trust = nobody': '"local.priv", x = x'}, ["nobody", "secure_sum", "curator"]),
        ({"trust = secure_sum(colluding = 2)": "trust = nobody"}, ["nobody", "nobody", "curator"]),
        ({'"sum.priv", x = z': '"sum.priv", x = z, trust = secure_sum(colluding = 1)'},
         ["nobody", "secure_sum", "secure_sum"]),
    ],
    ids=["a local report", "two under one", "two coalitions"],
)  # fmt: skip
def test_trusts_in_other_ways(tmp_path: Path, changed: dict[str, str], trusts: list[str]) -> None:
    found = load(whole(tmp_path, **changed)).solve()
    assert [part["problem"]["trust"]["kind"] for part in found.document["problem"]["blocks"][0]["parts"]] == trusts
    assert verify(found.to_json()).ok


def test_a_vote_beside_messages(tmp_path: Path) -> None:
    """Outputs of other kinds have their own trust as well."""
    changed = {
        '"sum.priv", x = z)': '"vote.priv", voter = person, vote = z)',
        "input z[person] in [0, 1]": "input z[person] in {north, south}",
    }
    found = load(whole(tmp_path, **changed)).solve()
    assert verify(found.to_json()).ok


def test_nobody_is_trusted_with_a_sum_and_a_vote(tmp_path: Path) -> None:
    """Each message of a part is private by itself: reports of votes beside noisy numbers, on one budget."""
    (tmp_path / "local.priv").write_text(SUM, "utf-8")
    (tmp_path / "vote.priv").write_text(VOTE, "utf-8")
    text = """parties: person in 1..5
components:
  a = spec("local.priv")
  v = spec("vote.priv", voter = person)
loss: a.loss + v.loss
privacy: (a.O, v.O) is 1-DP wrt (x, vote), replacing one person
options: trust nobody
"""
    (tmp_path / "both.priv").write_text(text, "utf-8")
    found = load(tmp_path / "both.priv").solve()
    assert found.model().trust.name == "nobody"
    assert [part["mechanism"]["family"] for part in components(found.document)] == [
        "laplace",
        "local_dictator",
    ]
    assert verify(found.to_json()).ok


def test_one_trust_for_all_is_said_of_all(tmp_path: Path) -> None:
    path = whole(tmp_path, lines="options: trust nobody", **{"trust = secure_sum(colluding = 2)": "trust = nobody"})
    found = load(path).solve()
    assert found.model().trust.name == "nobody"


def test_what_is_weighed_together_is_under_one_trust(tmp_path: Path) -> None:
    path = whole(tmp_path, loss="E[ (a.O - sum(x))^2 + (b.O - sum(y))^2 ] + c.loss")
    with pytest.raises(SpecError) as caught:
        load(path).solve()
    (found,) = caught.value.diagnostics
    assert found.code == "PS0501"
    assert "under several trusts, a.O (`trust nobody`) and b.O (`trust secure_sum`)" in found.message


def test_a_local_report_is_under_no_other_trust(tmp_path: Path) -> None:
    path = whole(tmp_path, **{'"sum.priv", x = x, trust = nobody': '"local.priv", x = x, trust = curator'})
    with pytest.raises(SpecError) as caught:
        load(path).solve()
    assert [one.code for one in caught.value.diagnostics] == ["PS0308"]


# --- plans that lie ---------------------------------------------------------------------------------


def part(document: Document, number: int) -> tuple[Any, Any]:
    return document["problem"]["blocks"][0]["parts"][number]["problem"], components(document)[number]


def swapped(number: int, kind: str, colluding: int = 0) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        part(document, number)[0]["trust"] = {"kind": kind, "colluding": colluding}

    return change


def of_the_whole(document: Document) -> None:
    document["problem"]["trust"]["kind"] = "curator"


def colluders_left_in(document: Document) -> None:
    part(document, 1)[1]["mechanism"]["executed"]["noise"]["honest"] = 5


def fewer_shares(document: Document) -> None:
    part(document, 1)[1]["mechanism"]["executed"]["noise"]["parties"] = 4


def fewer_seen(document: Document) -> None:
    for line in part(document, 1)[0]["obligations"]:
        line["seen"] = []


def a_part_of_parts(document: Document) -> None:
    part(document, 2)[0]["trust"]["kind"] = "parts"


@pytest.mark.parametrize(
    ("lie", "words"),
    [
        (of_the_whole, "about other data, or other trust"),
        (swapped(1, "secure_sum", 0), "output_covariance"),
        (swapped(1, "curator"), "."),
        (swapped(2, "nobody"), "is not a mechanism for this trust"),
        (swapped(2, "secure_sum"), "."),
        (swapped(0, "nobody", 1), "collude about no shares"),
        (swapped(1, "secure_sum", -1), "not a whole number in its range"),
        (swapped(1, "secure_sum", 5), "no party that adds a share"),
        (colluders_left_in, "honest"),
        (fewer_shares, "parties"),
        (fewer_seen, "."),
        (a_part_of_parts, "only parts of a system do"),
    ],
)
def test_the_kernel_refuses(plan: Plan, lie: Callable[[Document], None], words: str) -> None:
    document: Document = copy.deepcopy(json.loads(plan.to_json()))
    lie(document)
    report = judge(json.dumps(resign(document)))
    assert not report.ok
    assert any(words in claim.text for claim in report.claims if not claim.holds)


def test_less_trust_than_the_spec_says_is_another_problem(plan: Plan) -> None:
    """Messages that a keeper draws would be private as well: it is the spec inside that says nobody draws them."""
    document: Document = copy.deepcopy(json.loads(plan.to_json()))
    swapped(0, "curator")(document)
    report = verify(json.dumps(resign(document)))
    assert not report.ok
    assert any(claim.name == "problem" and not claim.holds for claim in report.claims)


@pytest.mark.parametrize("template", ["histogram", "counting_query", "private_plurality", "correlated_readings"])
def test_only_systems_leave_trust_to_their_parts(template: str) -> None:
    """A plan of one problem whose trust is said nowhere is refused, whatever its form."""
    document = copy.deepcopy(solved(template))
    assert judge(json.dumps(document)).ok
    document["problem"]["trust"]["kind"] = "parts"
    report = judge(json.dumps(resign(document)))
    assert not report.ok
    assert any("only parts of a system do" in claim.text for claim in report.claims if not claim.holds)


def test_a_part_that_trusts_less_is_told_by_diff(tmp_path: Path) -> None:
    from privspec.diff import Side, differences

    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    one = Side(load(whole(tmp_path / "one")).check())
    other = Side(
        load(whole(tmp_path / "two", **{'"sum.priv", x = z': '"sum.priv", x = z, trust = secure_sum'})).check()
    )
    found = [(c.about, c.verdict, c.old, c.new) for c in differences(one, other)]
    assert found == [("trust", "stronger", "c.O: trust curator", "c.O: trust secure_sum")]


def test_the_template_of_three_trusts() -> None:
    """Meters add shares, homes add noise to what they feel, the landlord knows the rents: a bracket of all splits."""
    document = solved("street_report", N=4)
    parts = [part["problem"] for part in document["problem"]["blocks"][0]["parts"]]
    assert [part["trust"]["kind"] for part in parts] == ["secure_sum", "nobody", "curator"]
    assert judge(json.dumps(document)).ok
    assert document["loss"]["relative_gap"] < 0.05
