"""Plans of designs that were tampered with: each is refused, by the kernel or because its spec says something else."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from privspec.kernel import judge
from privspec.kernel.core.reading import JsonNode
from privspec.plan import verify
from tests.families.test_designs import REPORTS
from tests.plans import Document, resign, solved_text


@pytest.fixture(scope="module")
def plan() -> Document:
    return solved_text(REPORTS)


def failures(plan: Document) -> tuple[str, str]:
    """What the kernel finds wrong, and what whoever reads the spec again finds wrong."""
    found = judge(JsonNode(resign(plan), "plan"))
    again = verify(json.dumps(resign(plan)))
    return tuple("; ".join(f"{c.name}: {c.text}" for c in report.failed) for report in (found, again))  # type: ignore[return-value]


def test_the_plan_holds(plan: Document) -> None:
    assert failures(plan) == ("", "")
    assert plan["status"] == "optimal"


def _leave_out(plan: Any) -> None:
    design = plan["design"]
    del design["problem"]["alternatives"][2], design["outcomes"][2], plan["alternatives"][1]


def _leave_out_with_its_value(plan: Any) -> None:
    _leave_out(plan)
    plan["design"]["problem"]["choices"][0]["values"].remove("4")


def _cheaper(plan: Any) -> None:
    plan["design"]["problem"]["alternatives"][1]["cost"] = "0"
    cost = Fraction("3/20")
    plan["loss"]["value"] = float(Fraction(plan["loss"]["value"]) - cost)
    plan["loss"]["lower_bound"] = float(Fraction(plan["loss"]["lower_bound"]) - cost)
    low, value = Fraction(plan["loss"]["lower_bound"]), Fraction(plan["loss"]["value"])
    plan["loss"]["relative_gap"] = float((value - low) / value)


def _other_cost(plan: Any) -> None:
    plan["design"]["problem"]["alternatives"][0]["cost"] = "9/100"


def _not_the_least(plan: Any) -> None:
    """The third alternative in place of the second, said of itself in full and truly."""
    design = plan["design"]
    other, mine = design["outcomes"][2], design["outcomes"][1]
    body = {key: value for key, value in other.items() if key != "form"}
    design["outcomes"][1] = {
        "form": "solved",
        **mine,
        **{key: plan[key] for key in body if key not in ("status", "loss", "alternatives")},
    } | {"form": "solved"}
    design["outcomes"][2] = {"form": "chosen", **{key: body.pop(key) for key in ("status", "loss", "alternatives")}}
    plan.update(body)
    plan["problem"] = design["problem"]["alternatives"][2]["problem"]
    plan["spec"]["choices"] = {"k": "4"}
    design["chosen"] = 2
    total = Fraction(design["outcomes"][2]["loss"]["value"]) + Fraction("1/5")
    plan["loss"]["value"] = float(total)
    low = Fraction(plan["loss"]["lower_bound"])
    plan["loss"]["relative_gap"] = float((total - low) / total)
    plan["status"] = "feasible"
    first = Fraction(design["outcomes"][0]["loss"]["value"]) + Fraction("1/10")
    second = Fraction(design["outcomes"][1]["loss"]["value"]) + Fraction("3/20")
    plan["alternatives"] = [
        {"name": name, "loss": float(loss), "admissible": True, "reason": ""}
        for name, loss in (("k = 2", first), ("k = 3", second))
    ]


def _raised_bound(plan: Any) -> None:
    plan["design"]["outcomes"][0]["loss"]["lower_bound"] = 0.9


def _forgotten_bound(plan: Any) -> None:
    plan["design"]["outcomes"][0]["loss"]["lower_bound"] = None


def _other_mechanism(plan: Any) -> None:
    plan["mechanism"] = plan["design"]["outcomes"][0]["mechanism"]


def _other_choice(plan: Any) -> None:
    plan["spec"]["choices"] = {"k": "2"}


def _no_choice(plan: Any) -> None:
    del plan["spec"]["choices"]


def _no_design(plan: Any) -> None:
    """The chosen alternative as if nothing had been open: its own loss, without its cost."""
    plan.update({key: plan["design"]["outcomes"][1][key] for key in ("status", "loss", "alternatives")})
    del plan["design"]


def _dropped_plan(plan: Any) -> None:
    plan["design"]["outcomes"][0] = {"form": "none", "reason": "too hard", "infeasible": False, "least": "1"}
    plan["alternatives"][0] |= {"loss": None, "admissible": False}


def _two_chosen(plan: Any) -> None:
    plan["design"]["outcomes"][0] = plan["design"]["outcomes"][1]


def _bound_above_another(plan: Any) -> None:
    plan["loss"]["lower_bound"] = plan["loss"]["value"] * 1.0
    plan["design"]["outcomes"][0]["loss"]["value"] = 0.1


def _another_word(plan: Any) -> None:
    plan["alternatives"][0]["name"] = "k = 17"


FORGERIES: dict[str, tuple[Callable[[Any], None], str, str]] = {
    "an alternative is left out": (_leave_out, "each alternative once", "another problem"),
    "and its value with it": (_leave_out_with_its_value, "", "another problem"),
    "the chosen one is said to cost less": (_cheaper, "", "another problem"),
    "another cost": (_other_cost, "is not what the problem and the mechanism say", "another problem"),
    "not the least is chosen": (_not_the_least, "another alternative costs less", "another alternative costs less"),
    "the bound of an alternative is raised": (_raised_bound, "", ""),
    "the bound of an alternative is forgotten": (_forgotten_bound, "", ""),
    "the mechanism of another alternative": (_other_mechanism, "", ""),
    "the spec chooses something else": (_other_choice, "", "another problem"),
    "the spec chooses nothing": (_no_choice, "", "another problem"),
    "no other alternatives are told": (_no_design, "", "another problem"),
    "an alternative is not solved": (_dropped_plan, "cannot be below", "cannot be below"),
    "two are chosen": (_two_chosen, "is not what came of its alternative", "is not what came of its alternative"),
    "a loss of an alternative is lowered": (_bound_above_another, "is not what", "is not what"),
    "an alternative has another name": (_another_word, "is not what", "is not what"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forgeries(plan: Document, name: str) -> None:
    """Whoever verifies refuses each of them; the kernel alone, all that it can know without the spec."""
    forge, by_kernel, by_all = FORGERIES[name]
    forged = copy.deepcopy(plan)
    forge(forged)
    kernel, whole = failures(forged)
    assert whole
    assert by_kernel in kernel
    assert by_all in whole
