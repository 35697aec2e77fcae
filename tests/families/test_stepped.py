"""One number end to end: the law of its noise against what is usual, at many amounts, and drawn exactly."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import exp, sqrt

import numpy as np
import pytest
from privspec.solvers.stepped import solve, stairs

from privspec.api import Problem
from privspec.core.diagnostics import SolveError
from privspec.execute.family import simulate
from privspec.families.gaussian.stepped import law_of
from privspec.kernel import judge
from privspec.kernel.laws.staircase import Staircase, Stepped
from privspec.kernel.worth.shifts import ADDITIVE, ALONE, EVERY
from privspec.noise.samplers import SimulationRandomness
from privspec.noise.staircase import SteppedNoise, stepped
from tests.kernel.test_shifts import NUMBER, SIZE, SQUARE, plan_text
from tests.plans import mutate, solved_text

PAIRS = [("0.5", "1e-5"), ("1", "0.05"), pytest.param("3", "1e-3", marks=pytest.mark.slow)]


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
@pytest.mark.parametrize("loss", [SQUARE, SIZE])
def test_never_worse_than_usual_noise(epsilon: str, delta: str, loss: str) -> None:
    amount = f"({epsilon}, {delta})"
    plan = solved_text(
        NUMBER.format(domain="[0, 2]^80", loss=loss, amount=amount, neighbours="adding or removing one record")
    )
    assert judge(plan_text(plan)).ok
    usual = [one["loss"] for one in plan["alternatives"] if one["admissible"]]
    assert len(usual) > 3
    assert plan["loss"]["value"] <= min(usual) * (1 + 1e-9)
    assert plan["loss"]["relative_gap"] <= 2e-3
    power = 2 if loss == SQUARE else 1
    law, steps = law_of(Fraction(epsilon), Fraction(0), power, None)
    staircase = float(law.square) / steps**2 * 4 if power == 2 else float(law.size) / steps * 2
    assert plan["loss"]["value"] <= staircase * (1 + 1e-9)


@pytest.mark.parametrize("power", [1, 2])
def test_staircases_are_the_best_of_all_on_their_grid(power: int) -> None:
    """The closed form against every stair, summed plainly."""
    for epsilon, cells in ((0.3, 7), (1.0, 12), (4.0, 30)):
        k = np.arange(cells * int(60 / epsilon + 2))
        copies = np.where(k == 0, 1.0, 2.0)
        losses = []
        for r in range(1, cells + 1):
            chance = copies * np.exp(-epsilon * np.ceil((k - r + 1) / cells))
            losses.append(float(chance @ k**power) / float(chance.sum()))
        upper, loss = stairs(epsilon, cells, power)
        assert upper == 1 + int(np.argmin(losses))
        assert loss == pytest.approx(min(losses) / cells**power)


def test_the_program_finds_the_staircase() -> None:
    """On the points of a lattice, or halfway between them: then with none at no error."""
    for moved in (12, 13):
        losses = []
        for cells in (moved, 2 * moved):
            solved = solve(1.0, 0.0, cells, range(cells // moved, cells + 1, cells // moved), np.square)
            assert solved is not None
            losses.append(solved.loss)
        law, steps = law_of(Fraction(1), Fraction(0), 2, moved)
        assert min(losses) == pytest.approx(float(law.square) / steps**2, rel=1e-4)
        assert (steps == 2 * moved) == (losses[1] < losses[0] * (1 - 1e-5))


LAWS = [
    Stepped(Fraction(1), 3, 1, Fraction(0), 4, (6, 3, 0, 1)),
    Stepped(Fraction(1), 1, 2, Fraction(3, 8), 0, (5, 3, 2)),
    Stepped(Fraction(1), 5, 3, Fraction(1, 2), 2, (2, 2, 1)),
]


@pytest.mark.parametrize("law", LAWS)
def test_noise_is_drawn_from_its_law(law: Stepped) -> None:
    _agrees(law, 20_000)


@pytest.mark.slow
def test_noise_of_plans_is_drawn_from_its_law() -> None:
    for epsilon, delta in ((1, 0), (1, Fraction(1, 20)), (5, Fraction(1, 4))):
        law, _ = law_of(Fraction(epsilon), Fraction(delta), 2, None)
        _agrees(Stepped(law.epsilon, 1, law.period, law.ratio, law.point, law.weights), 1_000_000)


def _agrees(law: Stepped, draws: int) -> None:
    """Chi-square over the places that are expected often enough, all others together."""
    randomness = SimulationRandomness(7)
    found = Counter(stepped(law, randomness) for _ in range(draws))
    total, reach = float(law.total), len(law.weights) + 20 * law.period
    chances = {0: float(law.point) / total}
    for cell in range(-reach, reach + 1):
        for inside in range(law.width):
            at = cell * law.width + inside - law.width // 2
            chances[at] = chances.get(at, 0.0) + float(law.weight(cell)) / total / law.width
    kept = {at: p for at, p in chances.items() if p * draws >= 10}
    squares = sum((found[at] - p * draws) ** 2 / (p * draws) for at, p in kept.items())
    rest = 1 - sum(kept.values())
    if rest * draws >= 10:
        squares += (draws - sum(found[at] for at in kept) - rest * draws) ** 2 / (rest * draws)
    assert abs(squares - len(kept)) <= 5 * sqrt(2 * len(kept))
    assert all(law.weight(-(-abs(at) // law.width)) or abs(at) % law.width for at in found if at)


AMOUNTS = (
    ("0.1", "1e-6"),
    ("0.1", "1e-3"),
    ("0.25", "1e-5"),
    ("0.5", "1e-6"),
    ("0.5", "1e-2"),
    ("1", "1e-6"),
    ("1", "1e-3"),
    ("1", "0.05"),
    ("2", "1e-5"),
    ("2", "0.1"),
    ("5", "1e-4"),
    ("5", "0.25"),
)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "delta"), AMOUNTS)
@pytest.mark.parametrize(
    ("domain", "value"), [("table(pay in [0, 9])", "sum(x.pay)"), ("table(age in 0..9)", "count(x, age >= 5)")]
)
@pytest.mark.parametrize("loss", ["(O - {})^2", "|O - {}|"])
def test_no_mechanism_is_better_by_a_thousandth(epsilon: str, delta: str, domain: str, value: str, loss: str) -> None:
    text = NUMBER.format(
        domain=domain,
        loss=f"E[{loss.format(value)}]",
        amount=f"({epsilon}, {delta})",
        neighbours="adding or removing one record",
    )
    plan = solved_text(text)
    assert judge(plan_text(plan)).ok
    assert plan["loss"]["among"] == EVERY
    assert plan["loss"]["relative_gap"] <= 1e-3


@pytest.mark.parametrize(("epsilon", "delta"), [("0.02", "0.25"), ("5", "0.25")])
def test_laws_that_rise_and_laws_with_a_point_keep_to_delta(epsilon: str, delta: str) -> None:
    """A law may have more chance farther out; beside a point of no error it may go on as a staircase."""
    law, steps = law_of(Fraction(epsilon), Fraction(delta), 1, None)
    assert law.delta_up(steps) <= Fraction(delta)
    staircase, cells = law_of(Fraction(epsilon), Fraction(0), 1, None)
    assert law.size / steps <= (1 - Fraction(delta)) * staircase.size / cells * (1 + Fraction(1, 1000))


def test_approximate_noise_has_the_same_figures() -> None:
    law = LAWS[2]
    noise = SteppedNoise(Staircase((law,)), Fraction(1, 10)).approximate(2, 200_000, np.random.default_rng(5))
    assert noise.shape == (200_000, 2)
    assert float((noise**2).mean()) == pytest.approx(float(law.square) / 100, rel=0.02)


WHOLE = [
    ("{0, 1}^10", "1", SQUARE, 2 * exp(1) / (exp(1) - 1) ** 2),
    ("{0, 1}^10", "3", SQUARE, 2 * exp(3) / (exp(3) - 1) ** 2),
    ("{0, 1}^10", "1", SIZE, 2 * exp(1) / (exp(2) - 1)),
    ("{0, 1}^10", "3", SIZE, 2 * exp(3) / (exp(6) - 1)),
    ("{-1, 2}^10", "1", SQUARE, 18 * exp(1) / (exp(1) - 1) ** 2),
    ("grid(1, 3, 1/2)^10", "1", SQUARE, None),
    ("(0..20)^10", "1", SQUARE, None),
    ("(0..20)^10", "2", SIZE, None),
]


@pytest.mark.parametrize(("domain", "epsilon", "loss", "value"), WHOLE)
def test_whole_numbers_are_counts(domain: str, epsilon: str, loss: str, value: float | None) -> None:
    """Their sums have noise on the lattice that they move on, and no additive noise of any law is better."""
    plan = solved_text(NUMBER.format(domain=domain, loss=loss, amount=epsilon, neighbours="replacing one record"))
    assert judge(plan_text(plan)).ok
    assert (plan["status"], plan["loss"]["among"]) == ("optimal", ADDITIVE)
    if value is not None:
        assert plan["loss"]["value"] == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize(
    ("domain", "status"),
    [
        ("grid(2, 6, 2)^10", "feasible"),
        ("grid(0, 6, 2)^10", "optimal"),
        ("(-1..2)^10", "optimal"),
        ("(1..3)^10", "feasible"),
    ],
)
def test_whole_numbers_that_come_and_go_are_counts(domain: str, status: str) -> None:
    """Their lattice is that of what they are: values that are never small have no bound of shifts."""
    neighbours = "adding or removing one record"
    plan = solved_text(NUMBER.format(domain=domain, loss=SQUARE, amount="1", neighbours=neighbours))
    assert judge(plan_text(plan)).ok
    assert plan["status"] == status


SUM = """
parties: person in 1..10
variables:
  input x[person] in {domain}
  output O
loss: {loss}
privacy: O is {amount} wrt x{neighbours}
options:
  trust {trust}
"""
SQUARED, SIZED = "E[(O - sum(x[person] for person))^2]", "E[|O - sum(x[person] for person)|]"


@pytest.mark.parametrize(
    ("trust", "loss", "amount", "value", "among"),
    [
        ("nobody\n  noise at x", SQUARED, "1-LDP", 18.413472, ALONE),
        ("nobody", SQUARED, "1-LDP", 9.206736, "all unbiased estimates from one report of each party"),
        ("secure_sum", SQUARED, "1-DP", 1.8413472, ADDITIVE),
        ("secure_sum(colluding = 2)", SQUARED, "1-DP", 1.8413472 * 10 / 8, f"shares of {ADDITIVE}"),
        ("nobody", SIZED, "1-LDP", None, ADDITIVE),
    ],
)
def test_whole_numbers_of_parties_are_counts(
    trust: str, loss: str, amount: str, value: float | None, among: str
) -> None:
    neighbours = "" if "LDP" in amount else ", replacing one person"
    plan = solved_text(SUM.format(trust=trust, loss=loss, amount=amount, neighbours=neighbours, domain="{0, 1}"))
    assert judge(plan_text(plan)).ok
    assert plan["loss"]["among"] == among
    assert (plan["status"] == "optimal") == (value is not None)
    if value is not None:
        assert plan["loss"]["value"] == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize(("values", "epsilon"), [((0, 1, 10), 3), ((0, 1, 5), 3), ((0, 5, 6), 3), ((0, 1, 10), 1)])
def test_no_bound_is_about_values_that_are_not_there(values: tuple[int, ...], epsilon: int) -> None:
    """Values with gaps stand on a lattice, but do not move by every step of it: no law for their own moves is below."""
    domain = f"{{{', '.join(map(str, values))}}}^10"
    plan = solved_text(NUMBER.format(domain=domain, loss=SQUARE, amount=epsilon, neighbours="replacing one record"))
    assert judge(plan_text(plan)).ok
    apart = sorted({2 * (b - a) for a in values for b in values if b > a})
    best = solve(float(epsilon), 0.0, apart[-1], apart, np.square)
    assert best is not None
    assert plan["loss"]["lower_bound"] <= best.loss * values[-1] ** 2 * (1 + 1e-9)


def test_sums_of_whole_numbers_are_released_whole() -> None:
    """By the geometric law: seven counts within six deviations, a false alarm below 1e-6."""
    text = NUMBER.format(domain="{0, 1}^10", loss=SQUARE, amount="1", neighbours="replacing one record")
    draws = 4000
    found = simulate(solved_text(text), draws, 11, base={"x": [1, 0] * 5})[:, 0] - 5
    assert np.array_equal(found, np.rint(found))
    counts = Counter(found.astype(int).tolist())
    fall = exp(-1)
    for k in range(-3, 4):
        chance = (1 - fall) / (1 + fall) * fall ** abs(k)
        assert abs(counts[k] - draws * chance) <= 6 * sqrt(draws * chance * (1 - chance))


EXECUTED = ("mechanism", "executed")
GEOMETRIC = NUMBER + "options: noise family geometric\n"


@pytest.mark.parametrize(
    ("domain", "loss"),
    [
        ("{0, 1}^10", SQUARE),
        ("{0, 1}^10", SIZE),
        ("{0, 1}^10", "E[(O - mean(x))^2]"),
        ("(0..5)^4", "E[||O - prefix_sums(x)||^2]"),
        ("table(age in 0..3)", "E[||O - histogram(x)||^2]"),
    ],
)
def test_geometric_noise_is_on_points_that_answers_are(domain: str, loss: str) -> None:
    text = GEOMETRIC.format(domain=domain, loss=loss, amount="1", neighbours="replacing one record")
    plan = solved_text(text)
    assert judge(plan_text(plan)).ok
    executed = plan["mechanism"]["executed"]
    assert executed["noise"]["shape"] == "laplace"
    assert executed["grid"] == "1"
    assert all(Fraction(step) >= Fraction(1, 5) for step in executed["steps"])
    assert "is not geometric" in " ".join(
        claim.text for claim in judge(plan_text(mutate(plan, (*EXECUTED, "grid"), "2"))).claims if not claim.holds
    )


@pytest.mark.parametrize("domain", ["[0, 1]^10", "table(pay in [0, 9])"])
def test_geometric_noise_is_not_for_answers_between_points(domain: str) -> None:
    value = "sum(x)" if domain.startswith("[") else "sum(x.pay)"
    loss = f"E[(O - {value})^2]"
    plan = Problem(GEOMETRIC.format(domain=domain, loss=loss, amount="1", neighbours="replacing one record")).solve()
    assert plan.status == "infeasible"
    assert "lie between its points" in str(plan.document)


def test_counts_keep_whole_noise() -> None:
    plan = solved_text(
        """
        variables:
          input people in table(age in 0..9)
          output O
        loss: E[(O - count(people, age >= 5))^2]
        privacy: O is (1, 0.01)-DP wrt people, adding or removing one record
        """
    )
    assert judge(plan_text(plan)).ok
    assert plan["mechanism"]["executed"]["grid"] == "1"
    assert plan["loss"]["relative_gap"] <= 1e-3
    assert plan["loss"]["value"] < 1.8414  # the geometric law


@pytest.mark.slow
@pytest.mark.parametrize(
    ("domain", "value", "neighbours", "among"),
    [
        ("table(age in {a, b, c}, pay in [0, 9])", "sum(x.pay, age = b)", "replacing one record", EVERY),
        ("table(pay in [-2, 9])", "sum(x.pay)", "adding or removing one record", EVERY),
        ("[-3, 1]^20", "mean(x)", "replacing up to 3 records", ADDITIVE),
    ],
)
def test_sums_of_records_are_bounded_closely(domain: str, value: str, neighbours: str, among: str) -> None:
    """Numbers that stand in two cells by their shares move a sum by any part; groups pay a step of the lattice each."""
    text = NUMBER.format(domain=domain, loss=f"E[(O - {value})^2]", amount="1", neighbours=neighbours)
    plan = solved_text(text)
    assert judge(plan_text(plan)).ok
    assert plan["mechanism"]["family"] == "stepped"
    assert plan["loss"]["among"] == among
    assert plan["loss"]["relative_gap"] <= 1e-3


def test_numbers_that_records_cannot_hold_in_part_are_bounded_as_wholes() -> None:
    text = NUMBER.format(
        domain="table(pay in [5, 9])",
        loss="E[(O - sum(x.pay))^2]",
        amount="1",
        neighbours="adding or removing one record",
    )
    plan = solved_text(text)
    assert judge(plan_text(plan)).ok
    assert plan["claims"]["bound"].get("shifts", [17]) == [plan["claims"]["bound"].get("cells", 17)]


def test_inputs_that_no_line_protects_are_told() -> None:
    text = """
    variables:
      input x in [0, 1]^4
      input z in [0, 2]^3
      output O
    loss: E[(O - sum(x) - sum(z))^2]
    privacy: O is (1, 0.05)-DP wrt x, replacing one record
    """
    plan = solved_text(text)
    assert judge(plan_text(plan)).ok
    (exposure,) = plan["exposures"]
    assert 0.05 < float(exposure["bound"]["delta"]) <= 1


LIMITED = """\
variables:
  input x in [0, 1]^9
  output m
loss: E[ (m - sum(x))^2 ]
accuracy: E[ (m - sum(x))^2 ] <= LIMIT
privacy: m is EPSILON-DP wrt x, replacing one entry
"""


def test_a_line_about_the_error_is_met_by_the_best_law_of_one_number() -> None:
    """At epsilon 1/2 it has 7.917 where Laplace noise has 8; what a plan advises is the least that does."""
    text = LIMITED.replace("EPSILON", "0.5")
    plan = Problem(text.replace("LIMIT", "7.95")).solve()
    assert plan.status == "optimal"
    assert plan.document["mechanism"]["family"] == "stepped"
    assert judge(plan.to_json()).ok
    forged = mutate(dict(plan.document), ("accuracy", 0, "bound"), 7.9)
    assert not judge(plan_text(forged)).ok
    tight = Problem(text.replace("LIMIT", "0.5")).solve()
    assert tight.status == "infeasible"
    error, epsilon = (one["change"] for one in tight.document["relaxations"])
    assert error == "accept 7.9171 in place of 0.5"
    assert epsilon == "accept 1.86-DP"
    for amount, met in (("1.86", True), ("1.855", False)):
        again = LIMITED.replace("EPSILON", amount).replace("LIMIT", "0.5")
        if met:
            assert Problem(again).solve().verify().ok
        else:
            with pytest.raises(SolveError, match="PS0612"):
                Problem(again).solve()
