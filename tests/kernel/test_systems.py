"""Plans of systems that were tampered with, and the composition beside a numeric integral of the product law."""

from __future__ import annotations

import copy
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from privspec.families.systems import bracket
from privspec.kernel import judge
from privspec.kernel.core.reading import JsonNode, Refused
from privspec.kernel.divergences import delta_up, pure_mu_up
from privspec.kernel.measures import APPROXIMATE, BY_DISTANCE, GAUSSIAN, PURE, ZERO_CONCENTRATED, Measure
from privspec.kernel.splits import MixedCurve
from privspec.kernel.systems import composed_proves, shares_of
from privspec.plan import verify
from tests.plans import Document, components, resign, solved_text

SPEC = """\
spec two
parties: person in 1..4
variables:
  input pay[person] in l2_ball(1, 20)
  input works[person] in {0, 1}
  intermediate said
  output mean_pay
  output working in 0..4
background:
  said = sum(works)
  said ~ uniform
loss: E[ ||mean_pay - mean(pay)||^2 ] + E[ |working - said| ]
privacy:
  (mean_pay, working) is (1, 1e-6)-DP wrt (pay, works), replacing one person
  mean_pay is 2-GDP wrt pay, replacing one person
"""


@pytest.fixture(scope="module")
def plan() -> Document:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bracket, "BOXES", 64)
        return solved_text(SPEC)


def verdict(plan: Document) -> str:
    """All that does not hold, or "" where everything does."""
    found = judge(JsonNode(plan, "plan"))
    return "; ".join(f"{claim.name}: {claim.text}" for claim in found.failed)


def test_the_plan_holds(plan: Document) -> None:
    assert verdict(plan) == ""
    assert [part["shares"][0]["name"] for part in components(plan)] == ["mu-GDP", "epsilon-DP"]


def part(plan: Document, number: int) -> Any:
    """A part of the mechanism."""
    return components(plan)[number]


def larger_share(plan: Document) -> None:
    """A part asks for more than its law spends: its guarantee follows, the composition does not."""
    part(plan, 0)["shares"][0]["amounts"][0][1] = "2"
    part(plan, 0)["guarantees"][0]["mu"] = "2"


def smaller_share(plan: Document) -> None:
    part(plan, 1)["shares"][0]["amounts"][0][1] = "1/100"
    part(plan, 1)["guarantees"][0]["epsilon"] = "1/100"


def other_measure(plan: Document) -> None:
    part(plan, 1)["shares"][0] = {"name": "rho-zCDP", "amounts": [["rho", "1"]], "distance": None, "each": []}


def one_part_left_out(plan: Document) -> None:
    plan["mechanism"]["components"].popitem()


def parts_in_other_places(plan: Document) -> None:
    made = plan["mechanism"]["components"]
    first, second = made
    made[first], made[second] = made[second], made[first]


def a_part_twice(plan: Document) -> None:
    plan["problem"]["blocks"][0]["parts"].append(copy.deepcopy(plan["problem"]["blocks"][0]["parts"][0]))
    plan["mechanism"]["components"]["more"] = copy.deepcopy(part(plan, 0))


def no_share_of_a_line(plan: Document) -> None:
    """The count is said to be under no line of the system."""
    block = plan["problem"]["blocks"][0]["parts"][1]
    block["problem"]["obligations"], block["lines"] = [], []
    part(plan, 1)["shares"], part(plan, 1)["guarantees"] = [], []


def lines_exchanged(plan: Document) -> None:
    """The count counts towards the line about the mean, the mean alone towards the line about both."""
    plan["problem"]["blocks"][0]["parts"][1]["lines"] = [1]


def a_line_that_is_not_there(plan: Document) -> None:
    plan["problem"]["blocks"][0]["parts"][1]["lines"] = [7]


def one_line_twice(plan: Document) -> None:
    plan["problem"]["blocks"][0]["parts"][0]["lines"] = [0, 0]


def another_unit(plan: Document) -> None:
    """A part protects one entry where the line moves a person."""
    for unit in plan["problem"]["blocks"][0]["parts"][0]["problem"]["obligations"][0]["units"]:
        unit["kind"], unit["party"] = "entry", None


def other_data(plan: Document) -> None:
    plan["problem"]["blocks"][0]["parts"][0]["problem"]["data"][0]["rule"] = "drop"


def other_trust(plan: Document) -> None:
    plan["problem"]["blocks"][0]["parts"][0]["problem"]["trust"]["kind"] = "nobody"


def reached_more_than_asked(plan: Document) -> None:
    plan["guarantees"][0]["achieved"]["delta"] = "1e-3"


def reached_less_than_true(plan: Document) -> None:
    plan["guarantees"][0]["achieved"]["delta"] = "1e-9"


def another_reason(plan: Document) -> None:
    plan["guarantees"][0]["because"] = ["post-processing"]


def exact_said_to_be_a_bound(plan: Document) -> None:
    plan["guarantees"][0]["because"] = ["composition"]


def spare_delta(plan: Document) -> None:
    """A delta that holds, and that is said to be exact though less is let through."""
    plan["guarantees"][0]["achieved"]["delta"] = str(Fraction(plan["guarantees"][0]["achieved"]["delta"]) * 101 / 100)


def another_law(plan: Document) -> None:
    """The rows of the table in another order: it answers the count of those who do not work."""
    part(plan, 1)["mechanism"]["probabilities"].reverse()


def said_to_be_optimal(plan: Document) -> None:
    plan["status"] = "feasible" if plan["status"] == "optimal" else "optimal"


def with_a_bound(plan: Document) -> None:
    plan["loss"]["lower_bound"] = plan["loss"]["value"]
    plan["loss"]["relative_gap"] = 0.0


def another_loss(plan: Document) -> None:
    plan["loss"]["value"] *= 0.9


def a_loss_of_a_part(plan: Document) -> None:
    part(plan, 0)["loss"]["value"] *= 0.9


def a_system_within(plan: Document) -> None:
    """A part that is a system of its own."""
    inner = plan["problem"]["blocks"][0]["parts"][0]["problem"]
    inner["blocks"] = [{"form": "system", "outputs": ["mean_pay"], "expression": "", "parts": []}]


def words_of_its_own(plan: Document) -> None:
    part(plan, 0)["format"] = "privspec-plan/3.0"


def an_unknown_key(plan: Document) -> None:
    part(plan, 0)["proved"] = True


def shares_of_another_number(plan: Document) -> None:
    part(plan, 0)["shares"] = part(plan, 0)["shares"][:1]


def less_noise(plan: Document) -> None:
    noise = part(plan, 0)["mechanism"]["executed"]["noise"]
    noise["scale"] = str(Fraction(noise["scale"]) / 2)


def a_claim_of_its_own(plan: Document) -> None:
    plan["claims"]["bound"] = None


def exposures_of_a_part(plan: Document) -> None:
    part(plan, 0)["exposures"] = []


def raised_bound(plan: Document) -> None:
    """A bound a tenth of the bracket above the one that is proved."""
    loss = plan["loss"]
    loss["lower_bound"] += (loss["value"] - loss["lower_bound"]) / 2
    loss["relative_gap"] = (loss["value"] - loss["lower_bound"]) / loss["value"]


def witnesses_left_out(plan: Document) -> None:
    plan["claims"]["split"][1] = []


def witness_of_another_share(plan: Document) -> None:
    """Each witness is said to be for twice the share that it is for: weaker there, or none."""
    for one in plan["claims"]["split"][1]:
        one["share"] = str(2 * Fraction(one["share"]))


def witnesses_of_another_part(plan: Document) -> None:
    plan["claims"]["split"].reverse()


def better_witness(plan: Document) -> None:
    """Multipliers three times as large as those that were found."""
    for one in plan["claims"]["split"][1]:
        one["claims"]["pairs"] = [[*at, 3 * z] for *at, z in one["claims"]["pairs"]]


def a_share_twice(plan: Document) -> None:
    split = plan["claims"]["split"][1]
    split.append(split[0])


def no_witness_at_all(plan: Document) -> None:
    plan["claims"] = {}


def larger_class(plan: Document) -> None:
    plan["loss"]["among"] = "all mechanisms"


FORGED: list[Callable[[Document], None]] = [
    larger_share, smaller_share, other_measure, one_part_left_out, parts_in_other_places, a_part_twice,
    no_share_of_a_line, lines_exchanged, a_line_that_is_not_there, one_line_twice, another_unit, other_data,
    other_trust, reached_more_than_asked, reached_less_than_true, another_reason, said_to_be_optimal,
    with_a_bound, another_loss, a_loss_of_a_part, a_system_within, words_of_its_own, an_unknown_key,
    shares_of_another_number, less_noise, a_claim_of_its_own, exposures_of_a_part,
    raised_bound, witnesses_left_out, witness_of_another_share, witnesses_of_another_part, better_witness,
    a_share_twice, no_witness_at_all, larger_class,
]  # fmt: skip


@pytest.mark.parametrize("forge", FORGED, ids=lambda forge: forge.__name__)
def test_what_is_forged_is_refused_by_the_kernel_alone(plan: Document, forge: Callable[[Document], None]) -> None:
    forged = copy.deepcopy(plan)
    forge(forged)
    assert verdict(resign(forged)) != ""


def test_another_problem_is_refused_beside_the_kernel(plan: Document) -> None:
    """A problem whose second part lost its line: consistent in itself, and not what the spec means."""
    import json

    forged = copy.deepcopy(plan)
    block = forged["problem"]["blocks"][0]["parts"][1]["problem"]
    block["data"][0]["line"] += 1
    found = verify(json.dumps(resign(forged)))
    assert any(claim.name == "problem" for claim in found.failed)


SAME_INPUT = """\
spec same
parties: person in 1..3
variables:
  input works[person] in {0, 1}
  intermediate said
  output mean_working
  output working in 0..3
background:
  said = sum(works)
  said ~ uniform
loss: E[ (mean_working - mean(works))^2 ] + E[ |working - said| ]
privacy: (mean_working, working) is (1, 1e-3)-DP wrt works, replacing one person
"""


def test_an_upper_bound_is_named_so_and_cannot_be_named_exact() -> None:
    """Both parts read the same input: what moves one of them most may move the other one less."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bracket, "BOXES", 64)
        plan = solved_text(SAME_INPUT)
    assert verdict(plan) == ""
    assert plan["guarantees"][0]["because"] == ["composition"]
    plan["guarantees"][0]["because"] = ["composition-exact"]
    assert "a different composition" in verdict(resign(plan))


def test_a_pair_left_out_of_a_part_is_another_problem(plan: Document) -> None:
    """A table that compares fewer rows than one person can move between: the spec means more."""
    import json

    forged = copy.deepcopy(plan)
    pairs = forged["problem"]["blocks"][0]["parts"][1]["problem"]["blocks"][0]["compared"][0]["pairs"]
    assert pairs["rows"][-3:] == [3, 4, 0]
    pairs["rows"] = pairs["rows"][:-3]
    pairs["shape"][0] -= 1
    found = verify(json.dumps(resign(forged)))
    assert any(claim.name == "problem" for claim in found.failed)


# --- the composition ------------------------------------------------------------------------------------


def product_delta(epsilon: float, mu: float, pure: list[float]) -> float:
    """Hockey-stick divergence of randomised responses and one Gaussian, by quadrature over the Gaussian's answer."""
    found = 0.0
    for signs in product((1, -1), repeat=len(pure)):
        p = np.prod([1 / (1 + np.exp(-s * q)) for s, q in zip(signs, pure, strict=True)])
        q_ = np.prod([1 / (1 + np.exp(s * q)) for s, q in zip(signs, pure, strict=True)])
        if mu == 0:
            found += max(0.0, p - np.exp(epsilon) * q_)
            continue
        edge = (epsilon + np.log(q_ / p)) / mu + mu / 2  # where p phi(x - mu) = e^epsilon q phi(x)
        weighted = lambda x: p * norm.pdf(x - mu) - np.exp(epsilon) * q_ * norm.pdf(x)  # noqa: B023, E731
        found += quad(weighted, max(edge, -12), 12 + mu, limit=200, epsabs=1e-13)[0] if edge < 12 + mu else 0.0
    return found


@pytest.mark.parametrize("mu", ["0", "1/10", "1/2", "2"])
@pytest.mark.parametrize("pure", [[], ["1/10"], ["3/10", "7/10"], ["1/5", "1/5", "2"]])
@pytest.mark.parametrize("epsilon", ["0", "1/2", "2"])
def test_the_sum_is_the_divergence_of_the_product(mu: str, pure: list[str], epsilon: str) -> None:
    amounts = [Fraction(q) for q in pure]
    found = delta_up(Fraction(epsilon), Fraction(mu) ** 2, amounts)
    expected = product_delta(float(Fraction(epsilon)), float(Fraction(mu)), [float(q) for q in amounts])
    assert float(found) >= expected - 1e-10
    assert float(found) == pytest.approx(expected, abs=2e-9)


@pytest.mark.parametrize("epsilon", ["1/100", "1/2", "3", "20"])
def test_the_mu_of_a_pure_law_touches_its_curve(epsilon: str) -> None:
    found = pure_mu_up(Fraction(epsilon))
    assert norm.sf(float(found) / 2) == pytest.approx(1 / (1 + np.exp(float(Fraction(epsilon)))), rel=1e-9)


PURE_HALF, GAUSS_HALF = (PURE, {"epsilon": Fraction(1, 2)}), (GAUSSIAN, {"mu": Fraction(1, 2)})
RHO_QUARTER = (ZERO_CONCENTRATED, {"rho": Fraction(1, 4)})
PAIR = (APPROXIMATE, {"epsilon": Fraction(1, 2), "delta": Fraction(1, 10**6)})


@pytest.mark.parametrize(
    ("measure", "asked", "shares", "holds"),
    [
        (PURE, {"epsilon": Fraction(1)}, [PURE_HALF, PURE_HALF], True),
        (PURE, {"epsilon": Fraction(99, 100)}, [PURE_HALF, PURE_HALF], False),
        (PURE, {"epsilon": Fraction(9)}, [PURE_HALF, GAUSS_HALF], False),
        (PURE, {"epsilon": Fraction(9)}, [PURE_HALF, PAIR], False),
        (ZERO_CONCENTRATED, {"rho": Fraction(1, 4)}, [PURE_HALF, GAUSS_HALF], True),
        (ZERO_CONCENTRATED, {"rho": Fraction(24, 100)}, [PURE_HALF, GAUSS_HALF], False),
        (ZERO_CONCENTRATED, {"rho": Fraction(9)}, [PURE_HALF, PAIR], False),
        (GAUSSIAN, {"mu": Fraction(9)}, [PURE_HALF, PAIR], False),
        (GAUSSIAN, {"mu": Fraction(81, 100)}, [PURE_HALF, GAUSS_HALF], True),
        (GAUSSIAN, {"mu": Fraction(7, 10)}, [PURE_HALF, GAUSS_HALF], False),
        (ZERO_CONCENTRATED, {"rho": Fraction(1, 2)}, [RHO_QUARTER, RHO_QUARTER], True),
        (ZERO_CONCENTRATED, {"rho": Fraction(49, 100)}, [RHO_QUARTER, RHO_QUARTER], False),
        (ZERO_CONCENTRATED, {"rho": Fraction(1, 2)}, [RHO_QUARTER, PURE_HALF, GAUSS_HALF], True),
        (ZERO_CONCENTRATED, {"rho": Fraction(49, 100)}, [RHO_QUARTER, PURE_HALF, GAUSS_HALF], False),
        (APPROXIMATE, {"epsilon": Fraction(1), "delta": Fraction(2, 10**6)}, [PAIR, PAIR], True),
        (APPROXIMATE, {"epsilon": Fraction(1), "delta": Fraction(1, 10**6)}, [PAIR, PAIR], False),
    ],
)
def test_what_parts_prove_together(
    measure: Measure, asked: dict[str, Fraction], shares: list[Any], holds: bool
) -> None:
    assert composed_proves(measure, asked, shares) is holds


def test_too_many_parts_and_unknown_measures_are_refused() -> None:
    with pytest.raises(Refused):
        composed_proves(APPROXIMATE, {"epsilon": Fraction(1), "delta": Fraction(0)}, [PURE_HALF] * 13)
    with pytest.raises(Refused):
        composed_proves(BY_DISTANCE, {"epsilon": Fraction(1)}, [PURE_HALF])
    for measure, asked in (
        (PURE, {"epsilon": Fraction(99)}),
        (GAUSSIAN, {"mu": Fraction(99)}),
        (APPROXIMATE, {"epsilon": Fraction(99), "delta": Fraction(9, 10)}),
    ):
        with pytest.raises(Refused):
            composed_proves(measure, asked, [RHO_QUARTER])
        assert not measure.proved_by(asked, RHO_QUARTER[1])


# --- what surely does not hold: the other end of the same figures ----------------------------------------


@given(
    mu=st.fractions(0, 1, max_denominator=1000),
    pure=st.lists(st.fractions(Fraction(1, 100), 1, max_denominator=100), max_size=3),
    scale=st.sampled_from([Fraction(99, 100), Fraction(1), Fraction(101, 100)]),
)
@settings(deadline=None, max_examples=60)
def test_a_split_never_holds_and_is_broken_at_once(mu: Fraction, pure: list[Fraction], scale: Fraction) -> None:
    """Near the delta that shares have: one of both figures decides, unless they are within rounding of each other."""
    epsilon, parts = Fraction(1), [{"epsilon": q} for q in pure] + [{"mu": mu}]
    delta = delta_up(epsilon, mu * mu, pure)
    asked = {"epsilon": epsilon, "delta": delta * scale}
    holds = APPROXIMATE.proved_by(asked, *parts)
    fails = APPROXIMATE.condition(asked).broken_by(mu * mu, pure)
    assert not (holds and fails)
    assert holds or fails or scale == 1
    for measure, own in (
        (ZERO_CONCENTRATED, {"rho": scale / 2}),
        (GAUSSIAN, {"mu": scale}),
        (PURE, {"epsilon": scale}),
    ):
        assert measure.proved_by(own, *parts) + measure.condition(own).broken_by(mu * mu, pure) <= 1


def accounted(epsilon: float, mu: float, pure: list[float], step: float, *, up: bool) -> float:
    """Delta of the product by a discretised privacy loss: losses rounded up or down to multiples of a step."""
    edges = np.arange(-40, 40, step)
    spread = mu * mu / 2
    mass = np.diff(norm.cdf(edges, spread, mu)) if mu else np.zeros(len(edges) - 1)
    losses = {0.0: 1.0}
    for q in pure:
        p = 1 / (1 + np.exp(-q))
        before, losses = losses, {}
        for loss, chance in before.items():
            for other, own in ((loss + q, p), (loss - q, 1 - p)):
                losses[other] = losses.get(other, 0.0) + chance * own
    found, ends = 0.0, edges[1:] if up else edges[:-1]
    for loss, chance in losses.items():
        if mu:
            found += chance * float(mass @ np.maximum(0.0, 1 - np.exp(np.minimum(epsilon - loss - ends, 0.0))))
        else:
            found += chance * max(0.0, 1 - np.exp(min(epsilon - loss, 0.0)))
    return found


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_delta_is_between_the_ends_of_an_accountant(seed: int) -> None:
    """Fifty systems of Gaussian noise and randomised responses: not below the optimistic end, not above the other."""
    random = np.random.default_rng(seed)
    for _ in range(50):
        mu, epsilon = float(random.uniform(0, 1)), float(random.uniform(0, 3))
        pure = [float(q) for q in random.uniform(0.01, 1, random.integers(0, 4))]
        exact = [Fraction(q).limit_denominator(10**6) for q in (epsilon, mu, *pure)]
        found = float(delta_up(exact[0], exact[1] ** 2, exact[2:]))
        low, high = (
            accounted(float(exact[0]), float(exact[1]), [float(q) for q in exact[2:]], 1e-3, up=up)
            for up in (False, True)
        )
        assert low - 1e-12 <= found <= high + 1e-12


SIZES = """\
parties: person in 1..4
variables:
  input pay[person] in [0, 2]
  input works[person] in {0, 1}
  intermediate said
  output mean_pay
  output working in 0..4
background:
  said = sum(works)
  said ~ uniform
loss: E[ |mean_pay - mean(pay)| ] + E[ |working - said| ]
privacy: (mean_pay, working) is 0.5-zCDP wrt (pay, works), replacing one person
"""


def test_no_curve_of_a_part_is_above_what_a_mechanism_at_that_share_costs() -> None:
    """Sizes of errors fall with mu, and not with its square: a bound of squares would be too high below its share."""
    plan = solved_text(SIZES)
    assert verdict(plan) == ""
    case, parts = bracket.judged(plan)
    noise = shares_of(case, parts).curves[0]
    assert noise.kind == "mu"
    value, own = Fraction(components(plan)[0]["loss"]["value"]), noise.own
    for times in (Fraction(1, 8), Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(8)):
        shown, least = noise.at(own * times), value / times
        assert least * (1 - Fraction(1, 10**6)) <= shown <= least * (1 + Fraction(1, 10**9))
        assert noise.near(float(own * times)) == pytest.approx(float(shown), rel=1e-9)


def test_a_share_that_a_witness_is_for_is_worth_no_more_than_smaller_ones() -> None:
    """Where two pieces of a curve meet, as beside them: a witness more raises no bound."""
    plan = solved_text(SPEC)
    curve = shares_of(*bracket.judged(plan)).curves[1]
    assert isinstance(curve, MixedCurve) and len(curve.pieces) > 1
    met = [one.high for one in curve.pieces]
    shares = sorted([*met, *(share * times for share in met for times in (Fraction(1, 2), Fraction(99, 100)))])
    bounds = [curve.at(share) for share in shares]
    assert all(later <= one * (1 + Fraction(1, 10**6)) for one, later in pairwise(bounds))
    near = [curve.near(float(share)) for share in shares]
    assert near == pytest.approx([float(one) for one in bounds], rel=1e-6)
