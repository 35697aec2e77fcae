"""A value that is drawn first, and one of several cases after it: brute force, and plans that lie about them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations_with_replacement
from math import exp, inf
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from privspec.families.selection.family import law_of_draw
from privspec.families.systems.bracket import judged
from privspec.kernel import judge
from privspec.kernel.changes import Rows
from privspec.kernel.core.reading import JsonNode, Refused
from privspec.kernel.losses import Loss, Response
from privspec.kernel.measures import APPROXIMATE, GAUSSIAN, ZERO_CONCENTRATED
from privspec.kernel.rules import Hint, derive
from privspec.kernel.terms import Chosen, Independent, Table, Term, Times
from tests.kernel.test_rules_brute import EXAMPLES, tried
from tests.plans import Document, components, resign, solved_text

F = Fraction

# --- the rule --------------------------------------------------------------------------------------------------------


def rows(size: int) -> st.SearchStrategy[list[int]]:
    """A law over `size` values, none impossible, in whole numbers."""
    return st.lists(st.integers(1, 8), min_size=size, max_size=size)


def table(name: str, laws: list[list[int]]) -> Table:
    """Laws as a table of one whole."""
    whole = int(np.lcm.reduce([sum(law) for law in laws]))
    scaled = tuple(tuple(n * whole // sum(law) for n in law) for law in laws)
    return Table(scaled, whole, ((name, tuple(range(len(laws[0])))),))


@st.composite
def two_stages(draw: st.DrawFn) -> tuple[list[list[int]], list[list[list[int]]], Fraction]:
    """The law of what is drawn first in two worlds, that of every case in two worlds of its own, and an epsilon."""
    size = draw(st.integers(2, 3))
    first = [draw(rows(size)) for _ in range(2)]
    cases = [[draw(rows(2)) for _ in range(2)] for _ in range(size)]
    return first, cases, F(draw(st.integers(0, 12)), 8)


def delta_of(first: list[list[int]], cases: list[list[list[int]]], epsilon: Fraction) -> float:
    """The largest hockey-stick divergence of what is drawn first together with the case that follows it."""
    joint = [
        [p / sum(law) * q / sum(case[world]) for p, case in zip(law, cases, strict=True) for q in case[world]]
        for world, law in enumerate(first)
    ]
    both = [joint, joint[::-1]]
    return max(sum(max(0.0, p - exp(epsilon) * q) for p, q in zip(*pair, strict=True)) for pair in both)


@EXAMPLES
def test_a_case_that_follows_what_is_drawn_first_lets_through_no_more(examples: int) -> None:
    def holds(instance: tuple[list[list[int]], list[list[list[int]]], Fraction]) -> None:
        first, cases, epsilon = instance
        after = Times(Chosen(tuple(table("o", case) for case in cases)), 1, "v")
        term = Independent((table("v", first), after))
        change = (Rows(((0, 1),)), ((Rows(((0, 1),)),),) * len(cases))
        hint = Hint(parts=(Hint(), Hint(parts=(Hint(parts=(Hint(),)),) * len(cases))))
        loss = derive(term, frozenset({"v", "o"}), change, hint).loss
        assert delta_of(first, cases, epsilon) <= float(loss.delta_up(epsilon)) + 1e-12

    tried(examples, holds, two_stages())


def test_the_worst_of_all_compositions_would_be_too_little() -> None:
    """Why cases are dominated together: one may let through most where the draw says much, another elsewhere."""
    first, cases, epsilon = [[3, 1], [1, 3]], [[[18, 2], [5, 15]], [[13, 7], [1, 19]]], F(3, 8)
    alone = max(delta_of(first, [case, case], epsilon) for case in cases)
    assert delta_of(first, cases, epsilon) > alone + 0.08


def test_cases_have_the_same_outputs_and_a_condition_that_is_seen() -> None:
    one, other = table("o", [[1, 1], [1, 2]]), table("p", [[1, 1], [1, 2]])
    with pytest.raises(Refused, match="same outputs"):
        Chosen((one, other))
    first = table("v", [[1, 1], [1, 2]])
    term = Independent((first, Times(Chosen((one, one)), 1, "v")))
    moved: tuple[Any, ...] = (Rows(((0, 1),)), ((Rows(((0, 1),)),),) * 2)
    hint = Hint(parts=(Hint(), Hint(parts=(Hint(parts=(Hint(),)),) * 2)))
    with pytest.raises(Refused, match="shows by running"):
        derive(term, frozenset({"o"}), moved, hint)
    certain: Term = Chosen((one, table("o", [[1, 0], [0, 1]])))
    with pytest.raises(Refused, match="without limit"):
        derive(certain, frozenset({"o"}), moved[1], hint.parts[1])


# --- the whole, on tiny tables ---------------------------------------------------------------------------------------

SPEC = """variables:
  choose hi in {1, 2, 4} from quantile(people.pay, 0.6), spends 0.3
  input people in table(pay in 0..hi)
  output middle
loss: worst[ rank_error(middle, median(people.pay)) ]
privacy: middle is LINE wrt people, adding or removing one record
"""


def laws_of(document: Document) -> Callable[[tuple[int, ...]], np.ndarray]:
    """The joint law of what is drawn first and of what follows, of the pays of all records, from the plan's numbers."""
    _, ((_, first, _), *cases) = judged(document)
    limits = [int(part.limit) for *_, part in cases]

    def law(pays: tuple[int, ...]) -> np.ndarray:
        read = [next((v for v in limits if pay <= v), limits[-1]) for pay in pays]
        drawn = law_of_draw(first, np.array([read.count(v) for v in limits]))
        found = []
        for chance, limit, (_, executed, _) in zip(drawn, limits, cases, strict=True):
            clipped = np.minimum(pays, limit).astype(int)
            found.append(chance * law_of_draw(executed, np.bincount(clipped, minlength=limit + 1)))
        return np.concatenate(found)

    return law


def neighbours() -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Every table of up to three records, and every one with a record more."""
    for size in range(4):
        for pays in combinations_with_replacement(range(5), size):
            yield from ((pays, (*pays, more)) for more in range(5))


@pytest.mark.parametrize(("line", "epsilon", "delta"), [("1-DP", 1.0, 0.0), ("(1, 0.01)-DP", 1.0, 0.01)])
def test_all_neighbours_of_tiny_tables(line: str, epsilon: float, delta: float) -> None:
    """Both stages together, world by world: within what is asked, and near to it."""
    law, largest = laws_of(solved_text(SPEC.replace("LINE", line))), -inf
    known = {pays: law(pays) for pair in neighbours() for pays in pair}
    assert all(abs(one.sum() - 1) < 1e-9 for one in known.values())
    for one, other in neighbours():
        for p, q in ((known[one], known[other]), (known[other], known[one])):
            if delta:
                largest = max(largest, float(np.maximum(0, p - exp(epsilon) * q).sum()) / delta)
            else:
                largest = max(largest, float(np.log(p / q).max()) / epsilon)
    assert largest <= 1 + 1e-9
    assert delta or largest > 0.9


@pytest.mark.parametrize("line", ["0.5-zCDP", "1-GDP", "(1, 1e-6)-DP"])
def test_cases_spend_what_the_draw_leaves(line: str) -> None:
    """A sum of many records: what noise may spend beside 0.3-DP, and a thousandth more is not allowed."""
    found = components(solved_text(SUM.replace("LINE", line)))
    amounts = [[dict(one["amounts"]) for one in part["shares"]] for part in found]
    assert amounts[0] == [{"epsilon": "3/10"}] and amounts[1] == amounts[2] == amounts[3]
    ((name, amount),) = amounts[1][0].items()
    response = Response(F(3, 10))

    def kept(share: Fraction) -> bool:
        loss = Loss(share**2, (response,)) if name == "mu" else Loss(factors=(response, Response(share)))
        return loss.satisfies(read_measure(line))

    assert kept(F(amount)) and not kept(F(amount) * F(1001, 1000))


def read_measure(line: str) -> Any:
    """The condition of a line in a test."""
    conditions = {
        "0.5-zCDP": ZERO_CONCENTRATED.condition({"rho": F(1, 2)}),
        "1-GDP": GAUSSIAN.condition({"mu": F(1)}),
        "(1, 1e-6)-DP": APPROXIMATE.condition({"epsilon": F(1), "delta": F(1, 10**6)}),
    }
    return conditions[line]


# --- plans that lie --------------------------------------------------------------------------------------------------


def parts(document: Document) -> list[Document]:
    found: list[Document] = document["problem"]["blocks"][0]["parts"]
    return found


def case_of(document: Document, name: str) -> Document:
    found: Document = document["mechanism"]["components"][name]
    return found


def drop(document: Document) -> None:
    del parts(document)[2], document["mechanism"]["components"]["hi = 2"]


def lower_share(document: Document) -> None:
    """The draw is said to spend less than it does, and all that follows as much more."""
    first = case_of(document, "hi")
    first["shares"][0]["amounts"][0][1] = "1/5"
    first["guarantees"][0] |= {"epsilon": "0.2", "achieved": {"epsilon": "0.2"}}


def larger_share(document: Document) -> None:
    """A case that keeps to a larger share than the draw leaves it."""
    other = json.loads(json.dumps(solved_text(SUM.replace("LINE", "1-DP").replace("0.3", "0.1"))))
    document["mechanism"]["components"]["hi = 2"] = case_of(other, "hi = 2")


def sharper(document: Document) -> None:
    """A draw by steps that are larger than what one record moves a score allows."""
    mechanism = case_of(document, "hi")["mechanism"]
    mechanism["base"] = str(F(mechanism["base"]) * F(11, 10))


def swapped(document: Document) -> None:
    """What follows 1 is what was made to follow 4."""
    made = document["mechanism"]["components"]
    made["hi = 1"], made["hi = 4"] = made["hi = 4"], made["hi = 1"]


def unseen(document: Document) -> None:
    (line,) = document["problem"]["obligations"]
    line["seen"] = line["outputs"] = ["total"]


SUM = SPEC.replace("worst[ rank_error(middle, median(people.pay)) ]", "E[ (total - sum(people.pay))^2 ]").replace(
    "middle", "total"
)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda _: None, ""),
        (drop, "one case for each number"),
        (lower_share, "privacy"),
        (larger_share, "privacy"),
        (sharper, "not what the problem and the mechanism say"),
        (swapped, "matrices of other inputs"),
        (unseen, "condition"),
        (lambda document: parts(document)[2].update(limit="3"), "parts or choices"),
        (lambda document: parts(document)[2].update(sign=">="), "other parts beside them"),
        (lambda document: parts(document)[2].update(only_if="total"), "other parts beside them"),
        (lambda document: parts(document)[2].update(times=2), "several times"),
        (lambda document: parts(document)[0].update(only_if="hi", sign="=", limit="1"), "beside them"),
        (lambda document: document["loss"].update(lower_bound=document["loss"]["value"] * 2), "bound"),
        (lambda document: document["loss"].update(value=document["loss"]["value"] / 2), "loss"),
    ],
)
def test_plans_that_lie_about_cases_are_refused(change: Callable[[Document], None], words: str) -> None:
    forged = copy.deepcopy(solved_text(SUM.replace("LINE", "1-DP")))
    change(forged)
    found = judge(JsonNode(resign(forged), "plan"))
    said = "; ".join(f"{claim.name}: {claim.text}" for claim in found.failed)
    assert found.ok == (not words), said
    assert words in said
