"""Units that count alike, in the kernel: against the same units laid out, and plans that say other classes."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from flint import fmpq_mat

from privspec.kernel import judge
from privspec.kernel.core.linear import Difference, ExchangeableUnits, Matrix, Part, Places
from privspec.kernel.core.numbers import rational
from privspec.kernel.core.reading import Refused
from privspec.kernel.moves import units_of
from privspec.kernel.strategies.dense import Dense
from privspec.kernel.worth.traces import gauge
from privspec.plan import Plan
from tests import plans
from tests.families.specs import spec
from tests.families.test_alike import PARTY, X, alike_from
from tests.plans import dense

F = Fraction


# --- against units that are laid out --------------------------------------------------------------------


def box(start: int, stop: int, length: int = 1, amount: int = 1) -> Part:
    return Part(start, stop, length, "box", 1, F(amount))


TWO = ExchangeableUnits(1, (2, 1, 3), (0, 1, 0))
"""Six numbers of two classes, of 5 and 1."""
PAIRS = ExchangeableUnits(2, (1, 2), (0, 1))
"""Three pairs of two classes."""
ONE = ExchangeableUnits(6, (1,), (0,))
LAYOUTS: dict[str, tuple[Places, Difference]] = {
    "entries": ({0: (0, TWO)}, Difference((box(0, 6, amount=2),), 1)),
    "two entries": ({0: (0, TWO)}, Difference((box(0, 6),), 2)),
    "three entries": ({0: (0, TWO)}, Difference((box(0, 6),), 3)),
    "more entries than there are": ({0: (0, TWO)}, Difference((box(0, 6),), 9)),
    "pairs": ({0: (0, PAIRS)}, Difference((box(0, 6, 2),), 1)),
    "entries of pairs": ({0: (0, PAIRS)}, Difference((box(0, 6),), 1)),
    "two pairs": ({0: (0, PAIRS)}, Difference((box(0, 6, 2),), 2)),
    "everything": ({0: (0, TWO)}, Difference((box(0, 6, 6),), 1)),
    "one voter": (
        {0: (0, TWO), 6: (2, ExchangeableUnits(1, (3, 3), (0, 1)))},
        Difference((box(0, 6), box(6, 12, amount=3)), 1),
    ),
    "two voters": (
        {0: (0, TWO), 6: (2, ExchangeableUnits(1, (3, 3), (0, 1)))},
        Difference((box(0, 6), box(6, 12, amount=3)), 2),
    ),
    "a voter beside what is laid out": ({0: (0, TWO), 6: (2, ONE)}, Difference((box(0, 6), box(6, 12, amount=3)), 1)),
    "everything of two inputs": ({0: (0, TWO), 6: (2, ONE)}, Difference((box(0, 6, 6), box(6, 12, 6, amount=3)), 1)),
    "vectors": ({0: (0, PAIRS)}, Difference((Part(0, 6, 2, "l1", 2, F(3)),), 1)),
    "two vectors": ({0: (0, PAIRS)}, Difference((Part(0, 6, 2, "l1", 2, F(3)),), 2)),
}
EXACT = set(LAYOUTS) - {"two vectors"}


def both(places: Places, seed: int, rows: int = 3) -> tuple[Matrix, Matrix]:
    """A strategy in classes, and with a column for every number."""
    classes: list[list[int]] = []
    columns: list[list[int]] = []
    dice = np.random.default_rng(seed)
    for _, one in places.values():
        own = dice.integers(-5, 6, (len(one.copies), one.length, rows))
        classes += own.reshape(-1, rows).tolist()
        for count, kind in zip(one.counts, one.classes, strict=True):
            columns += count * own[kind].tolist()
    return tuple(fmpq_mat(np.array(some).T.tolist()) / 3 for some in (classes, columns))  # type: ignore[return-value]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", LAYOUTS)
def test_classes_move_as_far_as_their_units(name: str, seed: int) -> None:
    places, difference = LAYOUTS[name]
    added, plain = both(places, seed)
    scales, steps = [F(1), F(2), F(3, 7)], [F(0)] * 3
    moves, laid_out = units_of(difference, places), units_of(difference)
    pairs = [
        (Dense(added).quadratic_sensitivity(moves), Dense(plain).quadratic_sensitivity(laid_out)),
        (
            Dense(added).absolute_sensitivity(scales, steps, moves, {}),
            Dense(plain).absolute_sensitivity(scales, steps, laid_out, {}),
        ),
    ]
    for found, expected in pairs:
        assert found <= expected * (1 + F(1, 10**15))
        assert name not in EXACT or found >= expected * (1 - F(1, 10**15))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", ["entries", "two entries", "three entries", "pairs", "everything", "vectors"])
def test_gauges_are_those_of_equal_shares(name: str, seed: int) -> None:
    """What is asked of a class is asked of its units in equal shares, which no other way beats."""
    places, difference = LAYOUTS[name]
    dice, column, wide, at = np.random.default_rng(seed), dict[int, F](), dict[int, F](), 0
    for first, one in places.values():
        chosen = {first + i: F(int(v)) for i, v in enumerate(dice.integers(-3, 4, len(one.numbers)))}
        column |= chosen
        for count, kind in zip(one.counts, one.classes, strict=True):
            for _ in range(count):
                for i in range(one.length):
                    wide[at] = chosen[first + kind * one.length + i] / one.copies[kind]
                    at += 1
    sizes = []
    for moves, asked in ((units_of(difference, places), column), (units_of(difference), wide)):
        owners = {i: (unit, piece) for unit, (own, _) in enumerate(moves.units) for piece in own for i in piece.at}
        sizes.append(gauge(moves, owners, {i: rational(v) for i, v in asked.items() if v}))
    assert sizes[0] == sizes[1] is not None


@pytest.mark.parametrize(
    ("places", "difference"),
    [
        ({0: (0, PAIRS)}, Difference((Part(0, 6, 3, "box", 1, F(1)),), 1)),
        ({0: (0, TWO)}, Difference((Part(0, 6, 2, "l1", 2, F(1)),), 1)),
        ({0: (0, PAIRS), 6: (4, ONE)}, Difference((box(0, 6), box(6, 12)), 1)),
    ],
)
def test_units_that_do_not_lie_in_classes_are_refused(places: Places, difference: Difference) -> None:
    with pytest.raises(Refused, match="count alike"):
        units_of(difference, places)


def test_cells_move_to_their_coordinates() -> None:
    moved = units_of(Difference((Part(6, 12, 6, "swap", 6, F(2)),), 1), {0: (0, TWO), 6: (2, ONE)})
    ((((piece,), copies),), count) = moved.units, moved.count
    assert (piece.at, piece.shape, piece.amount, copies, count) == (range(2, 8), "swap", 2, 1, 1)


# --- forgeries ------------------------------------------------------------------------------------------

SUMS = "y = [sum(x), sum(x[i] for i in 1..4)]"
SPECS = {
    "entry": spec(X, SUMS),
    "group": spec(X, SUMS, privacy="O is 1-GDP wrt x, replacing up to 3 entries"),
    "pure": spec(X, SUMS, privacy="O is 1-DP wrt x, replacing up to 3 entries"),
    "everything": spec(X, SUMS, privacy="O is 1-GDP wrt x, replacing everything"),
    "vectors": spec("input x in [0, 1]^(12, 2); intermediate y; output O", "y = sum(x)",
                    privacy="O is 1-GDP wrt x, replacing one record"),
    "parties": PARTY.format(domain="[0, 1]", first="", y="[sum(v), sum(z[p] for p in 1..4)]"),
    "alone": PARTY.format(domain="[0, 1]", first="", y="[sum(v), sum(z[p] for p in 1..4)]") + "options: trust nobody",
    "one number each": spec(X, SUMS, options="trust nobody"),
    "one number each, pure": spec(
        X, "y = sum(x)", privacy="O is 1-DP wrt x, replacing one entry", options="trust nobody"
    ),
    "sites": spec(X, SUMS, options="noise at x"),
    "table": spec("input x in [0, 1]^12; input t in table(a in 0..2); intermediate y; intermediate h; "
                  "output O; output H",
                  "y = sum(x); h = histogram(t)", "E[ (O - y)^2 ] + E[ ||H - h||^2 ]",
                  "O is 1-GDP wrt x, replacing one entry; H is 1-GDP wrt t, replacing one record"),
}  # fmt: skip


@cache
def solved(name: str) -> str:
    with alike_from(2):
        return json.dumps(plans.solved_text(SPECS[name]))


def verified(plan: dict[str, Any]) -> bool:
    """By the kernel, and by its spec, which is read again."""
    with alike_from(2):
        return Plan(plans.resign(plan)).verify().ok


@pytest.mark.parametrize("name", SPECS)
def test_plans_hold(name: str) -> None:
    plan = json.loads(solved(name))
    assert not judge(json.dumps(plan)).failed
    assert verified(plan)


def units(*path: str | int, input_: int = 0) -> Callable[[Any], Callable[[dict[str, Any]], None]]:
    """Sets what a plan says of the units of an input."""

    def setting(value: Any) -> Callable[[dict[str, Any]], None]:
        def change(plan: dict[str, Any]) -> None:
            found: Any = plan["problem"]["blocks"][0]["held"][input_]["units"]
            for key in path[:-1]:
                found = found[key]
            found[path[-1]] = value

        return change

    return setting


def numbers(*rows: int) -> dict[str, Any]:
    return {"shape": [len(rows)], "unit": "1", "rows": list(rows)}


def classes(counts: tuple[int, ...], kinds: tuple[int, ...], length: int = 1) -> Callable[[dict[str, Any]], None]:
    def change(plan: dict[str, Any]) -> None:
        told = {"length": length, "counts": numbers(*counts), "classes": numbers(*kinds)}
        plan["problem"]["blocks"][0]["held"][0]["units"] = told

    return change


def no_units(plan: dict[str, Any]) -> None:
    plan["problem"]["blocks"][0]["held"][0]["units"] = None


def in_target(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(plan: dict[str, Any]) -> None:
        plan["problem"]["blocks"][0]["target"][key] = value

    return change


def fewer_columns(plan: dict[str, Any]) -> None:
    """One class of all units, with the columns of the first."""
    target, strategy = plan["problem"]["blocks"][0]["target"], dense(plan)
    classes((12,), (0,))(plan)
    target |= {"shape": [2, 1], "rows": target["rows"][::2]}
    strategy |= {"shape": [strategy["shape"][0], 1], "rows": strategy["rows"][::2]}


def wide_strategy(plan: dict[str, Any]) -> None:
    """A column for every unit, as if nothing were added up."""
    found = dense(plan)
    rows = [found["rows"][2 * i : 2 * i + 2] for i in range(found["shape"][0])]
    plan["mechanism"]["executed"]["strategy"] = found | {
        "shape": [len(rows), 12], "rows": [v for a, b in rows for v in [a] * 4 + [b] * 8]
    }  # fmt: skip


def site(*counts: int) -> Callable[[dict[str, Any]], None]:
    """Of each class of the place where noise enters, how many numbers have noise."""

    def change(plan: dict[str, Any]) -> None:
        plan["problem"]["blocks"][0]["sites"][0]["copies"] = numbers(*counts)

    return change


def nobody(plan: dict[str, Any]) -> None:
    plan["problem"]["trust"]["kind"] = "nobody"


def alone(plan: dict[str, Any]) -> None:
    """The table's cells in classes."""
    plan["problem"]["blocks"][0]["held"][1]["units"] = {
        "length": 1,
        "counts": numbers(1, 1, 1),
        "classes": numbers(0, 1, 2),
    }


def one_message_of_two_classes(plan: dict[str, Any]) -> None:
    """An answer that is the sum of those of two classes."""
    found = dense(plan)
    rows, (_, width) = found["rows"], found["shape"]
    first = next(i for i in range(0, len(rows), width) if rows[i])
    rows[first + 1] = rows[first]


def in_difference(*path: str | int) -> Callable[[Any], Callable[[dict[str, Any]], None]]:
    def setting(value: Any) -> Callable[[dict[str, Any]], None]:
        def change(plan: dict[str, Any]) -> None:
            found: Any = plan["problem"]["blocks"][0]["differences"][0][0]
            for key in path[:-1]:
                found = found[key]
            found[path[-1]] = value

        return change

    return setting


def other_classes_of_one_input(plan: dict[str, Any]) -> None:
    """The first input of the parties has its classes where the second has others, as many and as large."""
    plan["problem"]["blocks"][0]["held"][1]["units"] |= {"counts": numbers(2, 8, 2), "classes": numbers(0, 1, 0)}


def one_sender(plan: dict[str, Any]) -> None:
    """The loss of noise that one of each class draws."""
    plan["loss"]["value"] /= 12


def any_value(plan: dict[str, Any]) -> None:
    """All numbers are one party's, of which any value may be another."""
    plan["problem"]["obligations"][0]["measure"]["name"] = "epsilon-LDP"


ATTACKS: dict[str, tuple[str, Callable[[dict[str, Any]], None], str]] = {
    "a count lowered": ("entry", classes((3, 8), (0, 1)), "not of all units"),
    "a count raised": ("entry", classes((5, 8), (0, 1)), "not of all units"),
    "a count of nothing": ("entry", classes((4, 8, 0), (0, 1, 0)), "in order"),
    "a count below zero": ("entry", classes((4, 9, -1), (0, 1, 0)), "in order"),
    "a count in halves": ("entry", units("counts", "unit")("1/2"), "whole numbers"),
    "a class dropped": ("entry", classes((4, 8), (0, 0)), "of the size of its inputs"),
    "a class more": ("entry", classes((4, 4, 4), (0, 1, 2)), "of the size of its inputs"),
    "a class without a count": ("entry", classes((12,), (0, 1)), "in order"),
    "classes exchanged": ("entry", classes((4, 8), (1, 0)), "in order"),
    "units of two numbers": ("entry", classes((2, 4), (0, 1), 2), "of the size of its inputs"),
    "units of no numbers": ("entry", classes((4, 8), (0, 1), 0), "length"),
    "no units": ("entry", no_units, "of the size of its inputs"),
    "a form that nobody knows": ("entry", in_target("form", "repeat"), "not known|does not have"),
    "a shape": ("entry", in_target("shape", [2, 12]), "in place of|of the size"),
    "a strategy of every number": ("entry", wide_strategy, "matrices of other inputs"),
    "fewer copies under everything": ("everything", classes((1, 8), (0, 1)), "not of all units"),
    "units added up that each party sends": ("entry", nobody, "more than one party|hides"),
    "a message of two classes": ("alone", one_message_of_two_classes, "more than one party"),
    "a message of two numbers": ("one number each", one_message_of_two_classes, "more than one party"),
    "two who trust nobody": ("alone", in_difference("count")(2), "what several parties hold"),
    "all who trust nobody": ("one number each", in_difference("parts", 0, "length")(12), "what several parties hold"),
    "classes of one input of theirs": ("alone", other_classes_of_one_input, "not those of its parties"),
    "noise that one of each class draws": ("alone", one_sender, "loss"),
    "numbers of one party in classes": ("one number each, pure", any_value, "not those of its parties"),
    "less noise at fewer places": ("sites", site(4, 7), "sites: "),
    "a place without a class": ("sites", site(12), "of the size of its inputs"),
    "a place of no numbers": ("sites", site(0, 12), "of the size of its inputs"),
    "cells in classes": ("table", alone, "or of cells"),
    "a voter whose vectors do not lie in classes": ("parties", classes((4, 4), (0, 1), 3), "not of all units|size"),
    "halves of records": ("vectors", classes((24,), (0,)), "of the size|alike"),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_forged_classes_are_refused(name: str) -> None:
    key, change, reason = ATTACKS[name]
    plan = copy.deepcopy(json.loads(solved(key)))
    change(plan)
    said = "; ".join(f"{claim.name}: {claim.text}" for claim in judge(json.dumps(plans.resign(plan))).failed)
    assert said, "the forged plan is confirmed"
    assert any(part in said for part in reason.split("|")), said
    assert not verified(plan)


@pytest.mark.parametrize("key", ["entry", "group", "pure", "everything"])
@pytest.mark.parametrize(
    "change", [classes((5, 7), (0, 1)), classes((2, 8, 2), (0, 1, 0)), classes((1, 11), (0, 1)), fewer_columns]
)
def test_classes_of_another_spec_are_not_those_of_this_one(key: str, change: Callable[[dict[str, Any]], None]) -> None:
    """What the kernel may hold of another problem: its spec, read again, has other classes."""
    plan = copy.deepcopy(json.loads(solved(key)))
    change(plan)
    assert not verified(plan)


@pytest.mark.parametrize("key", ["group", "pure"])
def test_the_kernel_counts_how_many_of_a_class_move_at_once(key: str) -> None:
    """Where one unit alone is a class, three at once move the other class at least twice; guarantees follow."""
    plan = json.loads(solved(key))
    strategy = dense(plan)
    places: Places = {0: (0, ExchangeableUnits(1, (4, 8), (0, 1)))}
    rows, step = strategy["shape"][0], F(strategy["unit"])
    whole = [strategy["rows"][2 * i : 2 * i + 2] for i in range(rows)]
    moves = units_of(Difference((box(0, 12),), 3), places)
    largest = max(float(Dense(fmpq_mat([row]) * rational(step)).quadratic_sensitivity(moves)) for row in whole) ** 0.5
    assert largest == pytest.approx(3 * max(abs(v) * float(step) for row in whole for v in row))
