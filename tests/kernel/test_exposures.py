"""What observers see together where no line says so: the kernel composes it, and no plan may state less."""

import copy
import json
from fractions import Fraction
from functools import cache

import pytest

from privspec import Problem
from privspec.kernel import judge
from privspec.kernel.core.problem import SPARED, hides_nothing
from privspec.kernel.writing import plan_digest
from privspec.plan import Plan

SPEC = """spec shared
variables:
  input x in [0, 1]^4
  input w in [0, 2]^2
  output A
  output B
  output C
loss: E[ (A - sum(x))^2 ] + E[ ||B - [x[1] + w[1], x[2] + w[2]]||^2 ] + 4 * E[ (C - sum(w))^2 ]
privacy:
  {lines}
"""
LINES = {
    "two observers": "A is 0.5-GDP wrt x, replacing one entry\n"
    "  (B, C) is 2-GDP wrt all inputs, replacing one entry, seen by press",
    "one line of three": "A is 1-GDP wrt x, replacing one entry",
    "pure": "(A, C) is 1-DP wrt all inputs, replacing one entry",
}


TABLE = """spec drawn
variables:
  input x in {{red, blue, green}}
  input y in {{high, low}}
  output z in {{red, blue, green}}
  output q in {{high, low}}
loss: worst[ mismatch(z, x) ] + worst[ mismatch(q, y) ]
privacy:
  {lines}
"""


@cache
def _text(lines):
    return json.dumps(dict(Problem(SPEC.format(lines=lines)).solve().document))


def solved(name):
    return json.loads(_text(LINES[name]))


def changed(document, change):
    found = copy.deepcopy(document)
    change(found)
    body = {key: value for key, value in found.items() if key != "digest"}
    return json.dumps(body | {"digest": plan_digest(body)})


@pytest.mark.parametrize("name", LINES)
def test_there_is_an_entry_for_each_view(name):
    document = solved(name)
    views = document["problem"]["views"]
    assert len(views) == len(document["exposures"]) > 0
    report = judge(json.dumps(document))
    assert report.ok, [str(claim) for claim in report.failed]
    assert sum(claim.name == "exposure" for claim in report.claims) == len(views)


def test_squares_add_up_for_one_difference():
    """An observer of both lines: no sum of the two figures, and no less than the larger of them."""
    (x,) = (entry for entry in solved("two observers")["exposures"] if entry["input"] == "x")
    mu = Fraction(x["bound"]["mu"])
    assert 2 < mu <= Fraction(5, 2)
    assert mu**2 <= Fraction(1, 4) + 4 + Fraction(1, 10**6)


def test_an_output_without_noise_is_not_protected():
    entries = solved("one line of three")["exposures"]
    assert {entry["input"]: entry["not_protected"] for entry in entries} == {"x": ["B"], "w": ["B", "C"]}


def _lower(entry):
    for key, value in entry["bound"].items():
        entry["bound"][key] = str(Fraction(value) * (1 - Fraction(1, 10**6)))


FORGED = {
    "a lower bound": lambda plan: _lower(plan["exposures"][0]),
    "no bound": lambda plan: plan["exposures"][0].update(bound=None),
    "another kind of bound": lambda plan: plan["exposures"][0].update(bound={"rho": "1"}),
    "an entry is gone": lambda plan: plan["exposures"].pop(),
    "all of them are": lambda plan: plan.pop("exposures"),
    "an entry twice": lambda plan: plan["exposures"].append(plan["exposures"][0]),
    "an output is hidden": lambda plan: plan["exposures"][0]["outputs"].pop(),
    "another input": lambda plan: plan["exposures"][0].update(input="y"),
    "another unit": lambda plan: plan["exposures"][0].update(neighbours="replacing one number"),
    "another observer": lambda plan: plan["exposures"][0].update(observer="nobody"),
    "not protected is not said": lambda plan: plan["exposures"][0].update(not_protected=[]),
    "not protected is said of another": lambda plan: plan["exposures"][0].update(not_protected=["A"]),
    "help that is not needed": lambda plan: plan["exposures"][0]["witness"][0].update(inverse={"shape": [1]}),
    "free text": lambda plan: plan["exposures"][0].update(note="harmless"),
}


@pytest.mark.parametrize("forgery", FORGED)
def test_forged_exposures_are_refused(forgery):
    report = judge(changed(solved("one line of three"), FORGED[forgery]))
    assert not report.ok
    assert {claim.name for claim in report.failed} <= {"exposure", "reading"}


def test_a_larger_bound_may_be_stated():
    def larger(plan):
        (entry,) = [entry for entry in plan["exposures"] if entry["input"] == "x"]
        entry["bound"] = {key: str(2 * Fraction(value)) for key, value in entry["bound"].items()}

    assert judge(changed(solved("two observers"), larger)).ok


def test_a_view_may_not_be_left_out_of_the_problem():
    def hidden(plan):
        del plan["problem"]["views"][0], plan["exposures"][0]

    document = json.loads(changed(solved("two observers"), hidden))
    report = Plan(document).verify()
    assert [claim.name for claim in report.failed] == ["problem"]


def test_what_hides_nothing():
    assert hides_nothing(None)
    assert hides_nothing({"mu": Fraction(11)})
    assert not hides_nothing({"mu": Fraction(10)})
    assert hides_nothing({"epsilon": Fraction(17), "delta": Fraction(0)})
    assert not hides_nothing({"epsilon": Fraction(16), "delta": Fraction(0)})
    assert hides_nothing({"epsilon": Fraction(0), "delta": Fraction(1)})
    assert hides_nothing({"epsilon": Fraction(0), "delta": 1 - SPARED})


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("z is 1-DP wrt x, replacing everything", {"y": ["q"]}),
        ("(z, q) is 2-DP wrt x, replacing everything", {"y": ["q"]}),
        (
            "z is 1-DP wrt x, replacing everything\n  q is 0.5-DP wrt y, replacing everything, seen by press",
            {"x": [], "y": []},
        ),
    ],
)
def test_columns_of_a_table_that_look_alike_are_one(line, expected):
    document = dict(Problem(TABLE.format(lines=line)).solve().document)
    assert judge(json.dumps(document)).ok
    entries = document["exposures"]
    for entry in entries:
        assert entry["not_protected"] == expected.get(entry["input"], [])
        if entry["not_protected"]:
            assert hides_nothing({key: Fraction(value) for key, value in entry["bound"].items()})
    for change in ("delta", "epsilon"):
        for i, entry in enumerate(entries):
            if Fraction(entry["bound"][change]):
                text = changed(document, lambda plan, i=i: _lower(plan["exposures"][i]))
                assert [claim.name for claim in judge(text).failed] == ["exposure"]


# --- one person in several inputs ---------------------------------------------------------------------

PEOPLE = """variables:
  input visits in table(person in id, district in {north, south})
  input patients in table(person in id, ill in {no, yes})
  output V
  output P
loss: {loss}
privacy:
  V is 0.5-{measure} wrt visits, adding or removing one person with at most 2 records
  P is 0.5-{measure} wrt patients, adding or removing one person with at most 1 record
"""
APART = "E[ ||V - histogram(visits)||^2 ] + E[ ||P - histogram(patients)||^2 ]"
MEDIAN = "E[ ||V - histogram(visits)||^2 ] + worst[ rank_error(P, median(patients.age)) ]"
DIFFERENT = "options: different people: visits, patients\n"


@cache
def _of_people(measure, loss=APART, more=""):
    text = PEOPLE.replace("{loss}", loss).replace("{measure}", measure) + more
    text = text if loss is not MEDIAN else text.replace("ill in {no, yes}", "age in 0..9")
    return json.dumps(dict(Problem(text).solve().document))


def of_people(*given):
    return json.loads(_of_people(*given))


@pytest.mark.parametrize(
    ("measure", "loss", "bound"),
    [
        ("DP", APART, {"epsilon": 1, "delta": 0}),
        ("DP", MEDIAN, {"epsilon": 1, "delta": 0}),
        ("GDP", APART, {"mu": 0.5**0.5}),
    ],
    ids=["pure", "parts", "squares"],
)
def test_somebody_who_is_in_both_tables_is_let_through_by_both_lines(measure, loss, bound):
    """Two lines of 0.5-DP: epsilon 1, not 0.5. Squared lengths of different answers add up."""
    document = of_people(measure, loss)
    assert judge(json.dumps(document)).ok
    *_, joint = document["exposures"]
    assert joint["wrt"] == ["visits", "patients"]
    assert {key: float(value) for key, value in joint["bound"].items()} == pytest.approx(bound, rel=1e-6)
    lowered = judge(changed(document, lambda plan: _lower(plan["exposures"][-1])))
    assert {claim.name for claim in lowered.failed} == {"exposure"}


def test_lengths_in_one_answer_add_up():
    """One answer of both tables: a person moves it in both, the same way."""
    text = PEOPLE.replace("  output P\n", "").replace("P is", "V is").replace("{measure}", "GDP")
    document = dict(Problem(text.replace("{loss}", "E[ (V - count(visits) - count(patients))^2 ]")).solve().document)
    assert judge(json.dumps(document)).ok
    (joint,) = document["exposures"]
    # two records and one, where two alone reach 0.5
    assert float(joint["bound"]["mu"]) == pytest.approx(0.75, rel=1e-6)


def test_people_who_differ_are_not_joined_and_the_plan_says_that_this_is_assumed():
    document = of_people("DP", APART, DIFFERENT)
    assert judge(json.dumps(document)).ok
    assert all(len(entry["wrt"]) == 1 for entry in document["exposures"])
    (said,) = (one for one in document["assumptions"] if "Nobody is in two of visits and patients" in one["text"])
    assert said["status"] == "asserted by the user"


def test_a_plan_says_of_people_what_its_spec_means():
    def unsaid(plan):
        del plan["problem"]["views"][-1], plan["exposures"][-1]

    def of_one_table(plan):
        for some in (plan["problem"]["views"][-1]["units"], plan["problem"]["views"][-1]["difference"]):
            del some[-1]

    for change in (unsaid, of_one_table):
        report = Plan(json.loads(changed(of_people("DP"), change))).verify()
        assert [claim.name for claim in report.failed] == ["problem"]

    def one_by_one(plan):
        plan["problem"]["views"][-1].update(together=False)

    assert [claim.name for claim in judge(changed(of_people("DP"), one_by_one)).failed] == ["reading"]
