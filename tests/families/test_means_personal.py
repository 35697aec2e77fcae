"""Reports of numbers where parties have epsilons of their own, or a line is of another measure: solved, run, told."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import exp, sinh

import cvxpy
import numpy as np
import pytest

from privspec.execute.family import mechanism_of, simulate
from privspec.execute.run import _combine as combine
from privspec.execute.run import _run as run
from privspec.kernel import judge
from privspec.kernel.core.reading import JsonNode
from privspec.kernel.means import by_two
from privspec.noise.samplers import SimulationRandomness
from privspec.plan import Plan
from tests.plans import executed_of, mutate, solved_text

SPEC = """spec people
parties: p in 1..4
parameters: e[p] = {amounts}
variables:
  input x[p] in {values}
  output O
{more}loss: {loss}
privacy:
  {line}
{options}"""
OWN = "O is e[p]-LDP wrt x[p]"


def spec(amounts="[0.5, 1, 0.5, 2]", values="{0, 1}", line=OWN, loss="E[ (O - mean(x))^2 ]", more="", options=""):
    return SPEC.format(amounts=amounts, values=values, line=line, loss=loss, more=more, options=options)


def of_two_values(*epsilons):
    """Randomised response: R / (R - 1)^2 of each person at worst."""
    return sum(exp(e) / (exp(e) - 1) ** 2 for e in epsilons) / len(epsilons) ** 2


def test_each_has_the_best_report_of_its_own_epsilon():
    plan = solved_text(spec())
    assert plan["status"] == "optimal"
    assert Plan(plan).verify().ok
    assert plan["loss"]["value"] == pytest.approx(of_two_values(0.5, 1, 0.5, 2), rel=1e-6)
    assert executed_of(plan).of == (0, 1, 0, 2)
    names = [one["name"] for one in plan["alternatives"]]
    assert set(names) == {
        "the strictest epsilon for everybody",
        "Laplace noise on every number",
        "the middle, whatever the data",
    }
    both = solved_text(spec(line=f"{OWN}\n  O is 1-LDP wrt x"))
    assert both["loss"]["value"] == pytest.approx(of_two_values(0.5, 1, 0.5, 1), rel=1e-6)
    alike = solved_text(spec(amounts="[1, 1, 1, 1]"))
    assert alike["loss"]["value"] == pytest.approx(of_two_values(1, 1, 1, 1), rel=1e-6)


def test_answers_that_may_be_biased_are_pulled_as_before():
    """With `worst[...]` what is strict for few is better answered by the middle than by reports that are right."""
    text = spec(amounts="[0.01, 1, 1, 1]", values="[0, 1]", loss="worst[ (O - mean(x))^2 ]")
    pulled, right = solved_text(text), solved_text(text.replace("worst[", "E["))
    assert pulled["mechanism"]["family"] == "laplace" and right["mechanism"]["family"] == "means"
    assert pulled["loss"]["value"] < right["loss"]["value"] / 100


@pytest.mark.parametrize(("values", "held"), [("0..3", [0, 3, 1, 3]), ("[0, 1]", [0.2, 1, 0.7, 0])])
def test_releases_are_right_on_average(values, held):
    plan = solved_text(spec(values=values))
    drawn = simulate(plan, 200, 8, base={"x": np.array(held)}, approximate=True)[:, 0]
    assert abs(drawn.mean() - np.mean(held)) < 5.5 * drawn.std() / np.sqrt(len(drawn))
    losses = (drawn - np.mean(held)) ** 2
    assert losses.mean() - 5.5 * losses.std() / np.sqrt(len(drawn)) < plan["loss"]["value"]


def test_parties_send_reports_of_their_own_kind():
    plan = solved_text(spec(values="0..3"))
    messages = [run(plan, {"x": [2]}, party=str(p), randomness=SimulationRandomness(p)).to_json() for p in range(1, 5)]
    release, found = combine(plan, messages), mechanism_of(plan).executed
    columns = [kind.columns() for kind in found.kinds]
    heard = [int(one["outputs"]["message"]["values"][0]) - 1 for one in messages]
    total = sum(columns[kind][place][0] for kind, place in zip(found.of, heard, strict=True))
    assert float(release.values["O"]) == pytest.approx(float(total) / 4)


def test_pages_tell_of_kinds():
    page = Plan(solved_text(spec())).explain("engineer", "md")
    assert "of one of 3 kinds by its own epsilon" in page
    assert "kind 1: sent by 2" in page and "kind 3: sent by 1" in page


# --- other measures --------------------------------------------------------------------------------------------------

OTHER = ["0.02-zCDP", "0.2-GDP", "(2, 0.04)-RDP"]


@pytest.mark.parametrize("measure", OTHER)
def test_a_line_of_another_measure_beside_a_local_one(measure):
    """Reports of a pure epsilon satisfy both; no estimate of two values is better than chi^2 lets it be."""
    line = f"O is 3-LDP wrt x\n  O is {measure} wrt x, replacing one p"
    plan = solved_text(spec(line=line))
    assert Plan(plan).verify().ok
    loss, low = plan["loss"]["value"], plan["loss"]["lower_bound"]
    assert 0.6 * loss < low <= loss
    # noise of a law of its own would have to satisfy the local line as well: Laplace noise has twice as much
    assert max(one["loss"] for one in plan["alternatives"]) > 1.8 * loss
    weak = solved_text(spec(line=line.replace("3-LDP", "0.1-LDP")))
    assert weak["loss"]["value"] == pytest.approx(of_two_values(*[0.1] * 4), rel=1e-6)
    assert weak["status"] == "optimal"


def best_channel(most):
    """The least error, at the worse of two values, of an unbiased estimate from reports of 9 kinds of a chi^2."""
    rng = np.random.default_rng(5)
    least = np.inf
    for _ in range(60):
        one, other = rng.dirichlet(np.ones(9)), rng.dirichlet(np.ones(9))
        for _ in range(60):
            if max(((one - other) ** 2 / own).sum() for own in (one, other)) <= most:
                break
            one, other = 0.9 * one + 0.1 * other, 0.1 * one + 0.9 * other
        estimate = cvxpy.Variable(9)
        errors = [one @ cvxpy.square(estimate), other @ cvxpy.square(estimate) - 1]
        program = cvxpy.Problem(cvxpy.Minimize(cvxpy.maximum(*errors)), [one @ estimate == 0, other @ estimate == 1])
        least = min(least, program.solve(solver="CLARABEL"))
    return least


def test_no_channel_is_below_the_bound_of_two_values():
    plan = solved_text(spec(line="O is 3-LDP wrt x\n  O is (2, 0.5)-RDP wrt x, replacing one p"))
    found, lines = executed_of(plan), plan["problem"]["obligations"]
    assert plan["claims"]["bound"] == {"requirement": 1} and "RDP" in lines[1]["measure"]["name"]
    most = exp(0.5) - 1
    each = 16 * plan["loss"]["lower_bound"] / 4
    assert each == pytest.approx(1 / most, rel=1e-9)
    assert best_channel(most) >= each * (1 - 1e-6)
    assert len(found.term.rows) == 2


def test_by_two_values_a_pure_line_shows_what_randomised_response_has():
    plan = solved_text(spec())
    found = executed_of(plan)
    from privspec.kernel.core.problem import AskedMeasure

    def asked(epsilon):
        return AskedMeasure("epsilon-LDP", (("epsilon", Fraction(epsilon)),), None, ())

    shown = by_two(found.block, asked("1"))
    assert float(shown) == pytest.approx(1 / (4 * sinh(0.5) ** 2) / 4, rel=1e-9)
    assert float(shown) == pytest.approx(of_two_values(1, 1, 1, 1), rel=1e-9)


# --- forgeries -------------------------------------------------------------------------------------------------------


def said(report):
    return " ".join(claim.text for claim in report.claims if not claim.holds)


def test_forged_kinds_are_refused():
    found = solved_text(spec(values="{0, 1, 3}"))
    more, table = ("mechanism", "more"), found["mechanism"]["table"]
    known = found["mechanism"]["more"][0]["estimates"]["rows"]
    assert judge(JsonNode(found, "plan")).ok
    each = ("problem", "obligations", 0, "measure", "each")
    for path, value, words in (
        (("mechanism", "of", "rows"), [1, 1, 0, 2], "own figure"),
        (("mechanism", "of", "rows"), [0, 1, 0, 1], "sent by none"),
        (("mechanism", "of", "rows"), [0, 1, 0, 3], "sent by none"),
        (("mechanism", "of"), {"shape": [3], "unit": "1", "rows": [0, 1, 0]}, "sent by none"),
        (("mechanism", "of", "rows"), [2, 1, 0, 0], "own figure"),
        (("mechanism", "of"), None, "not known"),
        (more, found["mechanism"]["more"][:1], "sent by none"),
        ((*more, 0, "table"), table, ""),
        (
            (*more, 0, "estimates", "rows"),
            [2 * n for n in known],
            "not of",
        ),
        ((*each, 1, "amounts"), [["epsilon", "3/4"]], "own figure"),
        (("guarantees", 0, "achieved", "epsilon"), "1.9", "own figure"),
        (("loss", "lower_bound"), found["loss"]["value"] * 1.0001, ""),
        (("claims", "bound"), {"requirement": 1}, ""),
        (("claims", "bound"), found["claims"]["bound"]["kinds"][2], ""),
        (("claims", "bound", "kinds"), found["claims"]["bound"]["kinds"][::-1], ""),
        (("claims", "bound", "kinds"), found["claims"]["bound"]["kinds"][:2], ""),
    ):
        report = judge(JsonNode(mutate(found, path, value), "plan"))
        assert not report.ok, path
        assert words in said(report), (path, said(report))


def test_forged_lines_of_other_measures_are_refused():
    found = solved_text(spec(line="O is 3-LDP wrt x\n  O is 0.02-zCDP wrt x, replacing one p"))
    assert judge(JsonNode(found, "plan")).ok
    line = ("problem", "obligations", 1, "measure", "amounts")
    for path, value, words in (
        (line, [["rho", "1/60"]], "not what the line asks"),
        (line, [["rho", "1/40"]], ""),
        (("claims", "bound"), {"requirement": 0}, ""),
        (("claims", "bound"), {"requirement": 2}, ""),
        (("loss", "lower_bound"), found["loss"]["lower_bound"] * 1.01, ""),
        (("guarantees", 1, "achieved", "epsilon"), "0.3", "more than the line allows"),
    ):
        report = judge(JsonNode(mutate(found, path, value), "plan"))
        assert not report.ok, path
        assert words in said(report), (path, said(report))


def test_more_figures_than_are_known_have_noise_as_before():
    """No report is found for each of very many epsilons, nor for lines of which none is pure."""
    many = SPEC.replace("1..4", "1..13").format(
        amounts=str([1 + k / 10 for k in range(13)]),
        values="[0, 1]",
        line=OWN,
        loss="E[ (O - mean(x))^2 ]",
        more="",
        options="",
    )
    assert solved_text(many)["mechanism"]["family"] == "laplace"
    normal = solved_text(
        spec(values="[0, 1]", line="O is 0.1-zCDP wrt x, replacing one p", options="options: trust nobody")
    )
    assert normal["mechanism"]["family"] == "gaussian"


@pytest.mark.parametrize("pairs", list(product(range(2), repeat=2)))
def test_two_people_exactly(pairs):
    """All pairs of reports of two kinds: the mean and the mean square of what is released."""
    text = spec(amounts="[0.5, 2]").replace("1..4", "1..2")
    found = executed_of(solved_text(text))
    laws = [
        [(Fraction(n, kind.term.whole), v) for n, (v,) in zip(kind.term.rows[own], kind.columns(), strict=True)]
        for own, kind in zip(pairs, found.kinds, strict=True)
    ]
    drawn = [(p * q, (v + w) / 2) for p, v in laws[0] for q, w in laws[1]]
    truth = Fraction(sum(pairs), 2)
    assert sum(p for p, _ in drawn) == 1
    assert sum(p * v for p, v in drawn) == truth
    assert sum(p * (v - truth) ** 2 for p, v in drawn) <= found.loss()
