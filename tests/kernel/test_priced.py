"""Plans whose amount of privacy was picked, forged: each is refused for what was changed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from privspec.kernel import judge
from privspec.kernel.core.reading import JsonNode
from tests.plans import Document, resign, solved_text

SPEC = """\
variables:
  input x in [0, 1]^4
  intermediate y
  output O
  choose epsilon in [0.1, 20]
background:
  y = [x[1], x[1] + x[2], x[1] + x[2] + x[3], x[4] - x[1]]
accuracy: E[ (O[j] - y[j])^2 ] <= 4 for j in 1..4
loss: 2 * epsilon
privacy: O is (epsilon, 1e-6)-DP wrt x, replacing one entry
options:
  noise family gaussian
"""


@pytest.fixture(scope="module")
def plan() -> Document:
    return solved_text(SPEC)


def verdict(plan: Document) -> str:
    """All that does not hold, or "" where everything does."""
    return "; ".join(f"{claim.name}: {claim.text}" for claim in judge(JsonNode(plan, "plan")).failed)


def test_the_plan_holds(plan: Document) -> None:
    assert verdict(plan) == ""
    assert plan["status"] == "optimal"
    claims = {claim.name for claim in judge(JsonNode(plan, "plan")).claims}
    assert {"choices", "privacy", "accuracy", "loss", "bound"} <= claims


def block(plan: Document) -> Any:
    """The block that is priced."""
    return plan["problem"]["blocks"][0]


def picked(plan: Document, factor: Fraction, *, everywhere: bool = True) -> None:
    """Another number, and with it what the plan says of its cost and of what the line asks."""
    value = Fraction(plan["mechanism"]["scalars"]["epsilon"]) * factor
    plan["mechanism"]["scalars"]["epsilon"] = str(value)
    if everywhere:
        plan["guarantees"][0]["epsilon"] = str(value)
        plan["loss"]["value"] = float(2 * value)


def cells(plan: Document) -> Any:
    return plan["claims"]["bound"]["cells"]


def lower(plan: Document) -> None:
    picked(plan, Fraction(9, 10))


def alone(plan: Document) -> None:
    picked(plan, Fraction(9, 10), everywhere=False)


def outside(plan: Document) -> None:
    block(plan)["high"] = "1"


def looser(plan: Document) -> None:
    block(plan)["block"]["accuracy"][0]["bound"] = "5"


def raised(plan: Document) -> None:
    plan["loss"]["lower_bound"] = plan["loss"]["value"]
    plan["loss"]["relative_gap"] = 0.0


def farther(plan: Document) -> None:
    cells(plan)[0]["upto"] = str(Fraction(cells(plan)[0]["upto"]) * Fraction(101, 100))


def weaker(plan: Document) -> None:
    cells(plan)[0]["mu"] = [str(Fraction(cells(plan)[0]["mu"][0]) * Fraction(9, 10))]


def unproved(plan: Document) -> None:
    cells(plan)[0].update(proof=None, mu=[])


def gap(plan: Document) -> None:
    cells(plan).pop()


def backwards(plan: Document) -> None:
    cells(plan).insert(1, cells(plan)[0] | {"upto": "0.2"})


def below(plan: Document) -> None:
    cells(plan)[0]["upto"] = "0.01"


def inverse(plan: Document) -> None:
    plan["problem"]["obligations"][0]["measure"]["amounts"][0][1]["inverse"] = True


def cheaper(plan: Document) -> None:
    block(plan)["prices"][0]["weight"] = "1"


def reward(plan: Document) -> None:
    block(plan)["prices"][0]["weight"] = "-2"


def unread(plan: Document) -> None:
    plan["mechanism"]["scalars"]["delta"] = "1"


def missing(plan: Document) -> None:
    del plan["mechanism"]["scalars"]


def prices(plan: Document) -> None:
    proof = plan["claims"]["bound"]["proofs"][0]
    most = max(proof["prices"], key=Fraction)
    proof["prices"] = [str(Fraction(price) * (2 if price == most else 1)) for price in proof["prices"]]


def other_mu(plan: Document) -> None:
    plan["claims"]["bound"]["proofs"][0]["differences"][0]["mu"] = "1/100"


FORGERIES: tuple[tuple[Callable[[Document], None], str], ...] = (
    (lower, "privacy"),
    (alone, "is not what the line asks"),
    (outside, "choices"),
    (looser, "is not what the problem and the mechanism say"),
    (raised, "bound"),
    (farther, "is not shown to be more"),
    (weaker, "is not shown to be more"),
    (unproved, "bound"),
    (gap, "does not cut the range"),
    (backwards, "does not cut the range"),
    (below, "does not cut the range"),
    (inverse, "does not grow with epsilon"),
    (cheaper, "is not what the problem and the mechanism say"),
    (reward, "is less than 0"),
    (unread, "picks more than epsilon"),
    (missing, "scalars"),
    (prices, "bound"),
    (other_mu, "state a mu outside of a cell"),
)


@pytest.mark.parametrize(("forge", "reason"), FORGERIES, ids=lambda one: getattr(one, "__name__", ""))
def test_a_forged_plan_is_refused(plan: Document, forge: Callable[[Document], None], reason: str) -> None:
    forged = copy.deepcopy(plan)
    forge(forged)
    assert reason in verdict(resign(forged))


def test_one_number_in_two_lines() -> None:
    """Both lines are judged at the number: a plan that states another one for the second is refused."""
    text = SPEC.replace("privacy: O is", "privacy:\n  O is (3 * epsilon, 1e-9)-DP wrt x, replacing one entry\n  O is")
    plan = solved_text(text)
    assert verdict(plan) == ""
    value = Fraction(plan["mechanism"]["scalars"]["epsilon"])
    assert [Fraction(one["epsilon"]) for one in plan["guarantees"]] == [3 * value, value]
    for number, one in enumerate(plan["guarantees"]):
        forged = copy.deepcopy(plan)
        forged["guarantees"][number]["epsilon"] = str(Fraction(one["epsilon"]) * 2)
        assert "is not what the line asks" in verdict(resign(forged))
