import math
from fractions import Fraction
from typing import Any

import pytest

from privspec.execute.ledger import spends_of_plan
from privspec.explain.curves import EpsilonDeltaCurve, GaussianCurve
from privspec.explain.document import Note, SpecLine, Status
from privspec.explain.quantities import Rounding
from tests.plans import solved_text

from .plans import explain, facts, gaussian_mu, model_of, plan


def test_error_is_the_root_of_the_mean_variance() -> None:
    document = plan("prefix_sums")
    found = facts(document)
    assert found.loss is not None
    assert found.loss.error is not None
    assert found.loss.error.value == pytest.approx(math.sqrt(document["loss"]["value"] / 64))
    assert found.loss.error_of == "an answer"
    assert {"24.1", "33.8", "30.2"} <= {a.error.text for a in found.alternatives if a.error}


def test_variances_come_from_what_is_executed_when_there_is_no_covariance() -> None:
    document = plan("prefix_sums")
    with_covariance = facts(document).mechanism.outputs[0]
    del document["mechanism"]["output_covariance"]
    without = facts(document).mechanism.outputs[0]
    assert without.deviations == pytest.approx(with_covariance.deviations, rel=1e-9)


def test_discrete_laplace_has_the_variance_of_its_lattice() -> None:
    document = plan("histogram")
    del document["mechanism"]["output_covariance"]
    p = math.exp(-1)
    assert facts(document).mechanism.outputs[0].deviations[0] ** 2 == pytest.approx(2 * p / (1 - p) ** 2)
    document["mechanism"]["executed"]["grid"] = "2^-30"
    assert facts(document).mechanism.outputs[0].deviations[0] ** 2 == pytest.approx(2.0)


def test_gaussian_claims_use_the_exact_curve_and_others_the_bound() -> None:
    gaussian, pure = facts(plan("prefix_sums")).claims[0], facts(plan("histogram")).claims[0]
    assert isinstance(gaussian.claim.curve, GaussianCurve)
    assert gaussian.claim.curve.mu == pytest.approx(gaussian_mu(1.0, 1e-6), rel=1e-9)
    assert gaussian.promised is not None
    assert gaussian.promised.odds.without == 26
    assert isinstance(pure.claim.curve, EpsilonDeltaCurve)
    assert pure.posteriors
    assert not gaussian.posteriors


def test_rounding_of_claims_is_towards_privacy() -> None:
    found = facts(plan("prefix_sums")).claims[0]
    name, value = found.claim.achieved_parameter or ("", None)
    assert name == "μ"
    assert value is not None
    assert Fraction(value.text) >= Fraction(repr(value.value))
    assert found.shown is not None
    assert found.shown.advantage.rounding is Rounding.UP
    assert found.shown.odds.error.rounding is Rounding.DOWN


def test_composed_bound_is_not_a_sum_of_claims() -> None:
    """The press and the auditors together see what the auditors see, no more."""
    first, second = facts(plan("two_observers")).claims
    assert not first.covers_everything
    assert second.covers_everything
    assert first.everything is not None
    assert second.shown is not None
    assert first.everything.odds.pair == second.shown.odds.pair


def test_nothing_is_composed_that_the_plan_does_not_state() -> None:
    document = plan("two_observers")
    del document["guarantees"][1]
    assert facts(document).claims[0].everything is None


TABLES = """variables:
  input visits in table(person in id, district in {north, south})
  input patients in table(person in id, ill in {no, yes})
  output V
  output P
loss: E[ ||V - histogram(visits)||^2 ] + E[ ||P - histogram(patients)||^2 ]
privacy:
  V is 0.5-DP wrt visits, adding or removing one person with at most 2 records
  P is 0.5-DP wrt patients, adding or removing one person with at most 1 record
"""


def test_pages_and_ledger_say_what_both_lines_let_through_of_one_person() -> None:
    """Somebody in both tables has epsilon 1: a guesser accuses 26.9 of 100 at least, not 37.7."""
    document = solved_text(TABLES)
    for reader in ("public", "auditor"):
        text = explain(document, reader)
        assert "at least 26 of 100 people who did not take part" in text, reader
    assert "37 of 100" not in explain(document)
    spends = {unit.wrt: spend.pure for unit, spend in spends_of_plan(document, model_of(document)).items()}
    assert spends == {("patients",): Fraction(1, 2), ("visits",): Fraction(1, 2), ("patients", "visits"): 1}
    apart = solved_text(f"{TABLES}options: different people: visits, patients\n")
    assert "at least 37 of 100 people who did not take part" in explain(apart)
    assert "Nobody is in two of visits and patients" in explain(apart, "auditor")
    assert len(spends_of_plan(apart, model_of(apart))) == 2


def test_calibrations_side_by_side() -> None:
    found = facts(plan("prefix_sums")).claims[0].calibration
    assert found is not None
    assert (found.classic.text, found.needed.text, found.ratio.text) == ("5.299", "4.225", "1.57")
    assert found.enough
    assert not found.proved


def test_calibration_that_falls_short() -> None:
    document = plan("prefix_sums")
    mu = gaussian_mu(8.0, 1e-2)
    document["guarantees"][0] |= {"epsilon": "8", "delta": "1e-2", "achieved": {"mu": f"{mu + 1e-12:.15f}"}}
    found = facts(document).claims[0].calibration
    assert found is not None
    assert not found.enough
    assert math.sqrt(found.ratio.value) == pytest.approx(0.951, abs=5e-4)
    assert found.true_delta.text == "0.0179"


def test_frontier_follows_mu() -> None:
    found = facts(plan("prefix_sums")).frontier
    assert found is not None
    chosen = [p for p in found.points if p.chosen]
    assert [p.parameter.text for p in chosen] == ["1"]
    for point in found.points:
        expected = chosen[0].loss.value * (gaussian_mu(1.0, 1e-6) / gaussian_mu(point.parameter.value, 1e-6)) ** 2
        assert point.loss.value == pytest.approx(expected, rel=1e-6)


def test_frontier_of_laplace_noise_knows_its_lattice() -> None:
    document = plan("histogram")
    del document["mechanism"]["output_covariance"]
    coarse = facts(document).frontier
    document["mechanism"]["executed"]["grid"] = "2^-30"
    fine = facts(document).frontier
    assert coarse is not None
    assert fine is not None
    variance = 2 / 64
    ratio = math.exp(-1)
    assert fine.points[-1].loss.value == pytest.approx(10 * variance * ratio / (1 - ratio) ** 2, rel=1e-6)
    assert coarse.points[-1].loss.value < 0.05 * fine.points[-1].loss.value


@pytest.mark.parametrize(
    ("measure", "figures", "statement"),
    [
        ("rho-zCDP", {"rho": "1/8"}, "0.125-zCDP"),
        ("mu-GDP", {"mu": "1"}, "1-GDP"),
        ("(order, epsilon)-RDP", {"order": "8", "epsilon": "2"}, "(8, 2)-RDP"),
        ("epsilon-LDP", {"epsilon": "1"}, "1-LDP"),
        ("(epsilon, delta)-LDP", {"epsilon": "1", "delta": "1e-3"}, "(1, 0.001)-LDP"),
        ("epsilon-metric-DP", {"epsilon": "2"}, "2-metric-DP"),
        ("personalised epsilon-DP", {"epsilon": "0.5"}, "0.5-DP (for the strictest person)"),
    ],
)
def test_measures(measure: str, figures: dict[str, str], statement: str) -> None:
    document = plan("histogram")
    guarantee = document["guarantees"][0]
    for key in ("epsilon", "achieved"):
        del guarantee[key]
    guarantee |= {"measure": measure, **figures}
    found = facts(document).claims[0]
    assert found.claim.statement == statement
    known = measure not in ("epsilon-metric-DP", "personalised epsilon-DP")
    assert (found.shown is not None) == known
    guarantee["achieved"] = {"mu": "0.5"}
    assert facts(document).claims[0].shown is not None


@pytest.mark.parametrize(
    ("text", "unit", "adds", "group"),
    [
        ("replacing one entry", "entry", False, 1),
        ("adding or removing one record", "record", True, 1),
        ("replacing up to 3 entries", "entry", False, 3),
        ("adding or removing up to 2 voters", "voter", True, 2),
        ("replacing everything", "everything", False, 1),
        ("something else", None, False, 1),
    ],
)
def test_relations(text: str, unit: str | None, adds: bool, group: int) -> None:
    document = plan("histogram")
    document["guarantees"][0]["neighbours"] = text
    found = facts(document).claims[0].claim.relation
    assert (found.unit, found.adds, found.group) == (unit, adds, group)


def test_groups_count_steps_of_a_group_requirement() -> None:
    document = plan("prefix_sums")
    document["guarantees"][0]["neighbours"] = "replacing up to 5 entries"
    found = {k.text: o for k, o in facts(document).claims[0].groups}
    assert found["1"] == found["2"] == found["5"]
    assert found["10"] != found["5"]


def test_assumptions_keep_status_and_source() -> None:
    found = facts(plan("prefix_sums")).assumptions
    assert {s.status for s in found} >= {Status.ASSUMED, Status.PROVED}
    assert SpecLine(17, "trust curator") in found[0].because
    assert any(isinstance(source, Note) for sentence in found for source in sentence.because)


def test_trust_by_default() -> None:
    found = facts(plan("histogram")).context
    assert (found.trust, found.trust_stated) == ("curator", False)
    assert found.trust_because == Note("trust-by-default")
    document = plan("histogram")
    document["problem"]["trust"]["kind"] = "nobody"
    assert facts(document).context.trust == "nobody"


def test_a_source_that_does_not_parse_still_gives_facts() -> None:
    document = plan("prefix_sums")
    document["spec"]["source"] = "variables: ((("
    assert facts(document).title == "prefix_sums"


@pytest.mark.parametrize("change", [{"guarantees": [{"measure": "epsilon-DP"}]}, {"loss": {"value": "much"}}])
def test_what_is_no_plan(change: dict[str, Any]) -> None:
    with pytest.raises((KeyError, ValueError)):
        facts(plan("histogram") | change)
