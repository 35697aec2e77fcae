"""What each observer learns of each input beyond what any one line says, against the truth by other means."""

from __future__ import annotations

import copy
import math
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from privspec import Problem
from privspec.explain.facts import Facts
from privspec.explain.reports import READERS
from privspec.families.decision import sealed
from privspec.plan import Plan
from tests.plans import matrix_of

from .plans import facts

GAUSSIAN = """spec shared
variables:
  input x in [0, 1]^4
  input w in [0, 2]^2
  output A
  output B
  output C
background:
  A_of = sum(x)
loss: E[ (A - sum(x))^2 ] + E[ ||B - [x[1] + w[1], x[2] + w[2]]||^2 ] + 4 * E[ (C - sum(w))^2 ]
privacy:
{lines}
""".replace("background:\n  A_of = sum(x)\n", "")


def solved(text: str) -> Plan:
    return Problem(text).solve()


TARGET = {
    "A": np.array([[1, 1, 1, 1, 0, 0]]),
    "B": np.array([[1, 0, 0, 0, 1, 0], [0, 1, 0, 0, 0, 1]]),
    "C": np.array([[0, 0, 0, 0, 1, 1]]),
}
WIDTHS = {"x": {0: 1.0, 1: 1.0, 2: 1.0, 3: 1.0}, "w": {4: 2.0, 5: 2.0}}

LINEAR = [
    # lines, then what is said: (input, observer): (seen, not protected)
    (["all outputs are 1-GDP wrt all inputs, replacing one entry"], {}),
    (
        ["A is 1-GDP wrt x, replacing one entry"],
        {("x", "anyone"): ("ABC", "B"), ("w", "anyone"): ("ABC", "BC")},
    ),
    (
        ["(A, C) is 1-GDP wrt all inputs, replacing one entry"],
        {("x", "anyone"): ("ABC", "B"), ("w", "anyone"): ("ABC", "B")},
    ),
    (
        ["all outputs are 5-GDP wrt x, replacing one entry", "C is 0.1-GDP wrt w, replacing one entry"],
        # B is made of three noisy answers, and nothing better than what these tell together is proved of it
        {("w", "anyone"): ("ABC", "B")},
    ),
    (
        ["(A, B) is 0.5-GDP wrt all inputs, replacing one entry", "C is 0.2-GDP wrt w, replacing one entry"],
        {("w", "anyone"): ("ABC", "")},
    ),
    (
        [
            "A is 0.5-GDP wrt x, replacing one entry",
            "(B, C) is 2-GDP wrt all inputs, replacing one entry, seen by press",
        ],
        {("x", "press"): ("ABC", "")},
    ),
    (
        [
            "(A, C) is 0.5-GDP wrt all inputs, replacing one entry, seen by press",
            "(B, C) is 2-GDP wrt all inputs, replacing one entry, seen by auditors",
            "C is 0.1-GDP wrt all inputs, replacing one entry",
        ],
        {},
    ),
]


def mu_of(plan: Plan, seen: str, name: str) -> float:
    """The largest mu over one entry, from the covariance and the questions alone; infinite where noise is missing."""
    covariance = np.array(plan.document["mechanism"]["output_covariance"], dtype=float)
    places = {o["name"]: range(o["start"], o["stop"]) for o in plan.document["problem"]["blocks"][0]["released"]}
    rows = [r for output in seen for r in places[output]]
    asked = np.concatenate([TARGET[output] for output in seen])
    sigma = covariance[np.ix_(rows, rows)]
    scale = np.sqrt(np.diag(sigma))
    inverse = np.linalg.pinv(sigma / np.outer(scale, scale), rcond=1e-13)
    moved = [width * asked[:, column] / scale for column, width in WIDTHS[name].items()]
    return max(math.sqrt(v @ inverse @ v) for v in moved)


def said(found: Facts) -> dict[tuple[str, str], tuple[str, str]]:
    return {
        (e.input, e.fact.claim.observer): ("".join(e.fact.claim.outputs), "".join(e.unprotected))
        for e in found.exposures
    }


@pytest.mark.parametrize(("lines", "expected"), LINEAR)
def test_gaussian_noise(lines: list[str], expected: dict[tuple[str, str], tuple[str, str]]) -> None:
    plan = solved(GAUSSIAN.format(lines="\n".join(f"  {line}" for line in lines)))
    found = facts(dict(plan.document))
    assert said(found) == expected
    assert {name for name, _ in expected} <= {e["input"] for e in plan.document.get("exposures", [])}
    for e in found.exposures:
        truth = mu_of(plan, "".join(e.fact.claim.outputs), e.input)
        curve = e.fact.claim.curve
        assert curve is not None
        assert truth * (1 - 1e-6) <= curve.mu <= truth * (1 + 1e-6)  # type: ignore[attr-defined]
        assert e.fact.shown is not None
        error = 0.5 * math.erfc(truth / 2 / math.sqrt(2))
        assert e.fact.shown.odds.without <= error * e.fact.shown.odds.of
        for name in "ABC":
            hidden = 0.5 * math.erfc(mu_of(plan, name, e.input) / 2 / math.sqrt(2)) >= 1e-7
            named = any(name in g["outputs"] and e.input in (g["wrt"], *g["wrt"]) for g in plan.document["guarantees"])
            behind = any(np.any(TARGET[name][:, k]) for k in WIDTHS[e.input])
            if behind and not hidden and not named:
                assert name in e.unprotected
            assert name not in e.unprotected or (behind and not named)


PURE = """spec pure
variables:
  input x in [0, 1]^3
  output A
  output B
loss: E[ (A - sum(x))^2 ] + E[ ||B - x||^2 ]
privacy:
  A is 1-DP wrt x, replacing one entry
"""


@pytest.mark.parametrize("more", ["", "  B is 2-DP wrt x, replacing one entry\n"])
def test_laplace_noise(more: str) -> None:
    plan = solved(PURE + more)
    (exposure,) = facts(dict(plan.document)).exposures
    run = plan.document["mechanism"]["executed"]
    scales = [Fraction(s) for s in run["noise"]["scales"]]

    rows = matrix_of(run["strategy"])
    # all answers together, each by itself: what an observer of everything can tell at most
    truth = max(sum(abs(rows[r, i]) / float(b) for r, b in enumerate(scales)) for i in range(3))
    assert exposure.fact.claim.outputs == ("A", "B")
    assert truth <= exposure.fact.claim.curve.epsilon <= truth * (1 + 1e-6) + 1e-6  # type: ignore[union-attr]


TABLE = """spec drawn
parties:
  voter in 1..3
variables:
  input x in {{red, blue, green}}
  input y in {{high, low}}
  output z in {{red, blue, green}}
  output q in {{high, low}}
loss: worst[ mismatch(z, x) ] + worst[ mismatch(q, y) ]
privacy:
{lines}
""".replace("parties:\n  voter in 1..3\n", "")
TABLES: list[tuple[list[str], dict[tuple[str, str], tuple[str, str]]]] = [
    (["(z, q) is 1-DP wrt all inputs, replacing everything"], {}),
    (["z is 1-DP wrt x, replacing everything"], {("y", "anyone"): ("zq", "q")}),
    (["z is 1-DP wrt x, replacing everything", "q is 0.5-DP wrt y, replacing everything, seen by press"], {}),
    (["(z, q) is 2-DP wrt x, replacing everything"], {("y", "anyone"): ("zq", "q")}),
]


def laws(plan: Plan, seen: tuple[str, ...], name: str) -> list[tuple[list[Fraction], list[Fraction]]]:
    """Pairs of laws of what is seen, of rows that differ in one input."""
    mechanism: dict[str, Any] = plan.document["mechanism"]
    (block,) = plan.document["problem"]["blocks"]
    kept = [block["outputs"].index(output) for output in seen]
    keys = [tuple(column[i] for i in kept) for column in mechanism["outputs"]]
    found = []
    for row in mechanism["probabilities"]:
        law: dict[tuple[str, ...], Fraction] = {}
        for key, share in zip(keys, row, strict=True):
            law[key] = law.get(key, Fraction(0)) + Fraction(share)
        found.append([law[key] for key in sorted(law)])
    at = block["of"].index(name)
    rows = mechanism["inputs"]
    return [
        (found[a], found[b])
        for a, b in product(range(len(rows)), repeat=2)
        if rows[a][at] != rows[b][at] and all(rows[a][i] == rows[b][i] for i in range(len(rows[a])) if i != at)
    ]


def least_error(p: list[Fraction], q: list[Fraction]) -> Fraction:
    """The share of mistakes of the best test with equal errors (Neyman & Pearson)."""
    order = sorted(range(len(p)), key=lambda i: (p[i] == 0, -q[i] / p[i] if p[i] else 0))
    order = sorted(
        order, key=lambda i: Fraction(-1) if p[i] == 0 and q[i] else p[i] / (p[i] + q[i]) if p[i] + q[i] else 2
    )
    corners = [(Fraction(0), Fraction(1))]
    for i in order:
        alarms, misses = corners[-1]
        corners.append((alarms + p[i], misses - q[i]))
    for (a, b), (c, d) in pairwise(corners):
        if c >= d:
            share = (b - a) / ((b - a) + (c - d)) if c - d + b - a else Fraction(0)
            return a + share * (c - a)
    raise AssertionError


@pytest.mark.parametrize(("lines", "expected"), TABLES)
def test_tables(lines: list[str], expected: dict[tuple[str, str], tuple[str, str]]) -> None:
    plan = solved(TABLE.format(lines="\n".join(f"  {line}" for line in lines)))
    found = facts(dict(plan.document))
    for key, value in expected.items():
        assert said(found)[key] == value
    for e in found.exposures:
        truth = min(least_error(p, q) for p, q in laws(plan, e.fact.claim.outputs, e.input))
        assert e.fact.shown is not None
        odds = e.fact.shown.odds
        assert odds.without <= truth * odds.of
        assert e.fact.shown.odds.error.value <= 100 * truth <= e.fact.shown.odds.error.value + 0.01
        who = e.fact.claim.observer
        bounds = [b["bound"] for b in plan.document["exposures"] if (b["input"], b["observer"]) == (e.input, who)]
        (bound,) = bounds
        factor, delta = math.exp(float(bound["epsilon"])), float(bound["delta"])
        for p, q in laws(plan, e.fact.claim.outputs, e.input):
            assert sum(max(0.0, float(a) - factor * float(b)) for a, b in zip(p, q, strict=True)) <= delta + 1e-12
    # whoever is not named for some input is exposed, or hides the input as well as its line says
    for name, seen in (("x", ("z", "q")), ("y", ("z", "q"))):
        covered = [
            g for g in plan.document["guarantees"] if name in (g["wrt"], *g["wrt"]) and set(g["outputs"]) == set(seen)
        ]
        if not covered and not any(e.input == name for e in found.exposures):
            ratio = max(
                float(a / b) if b else math.inf
                for p, q in laws(plan, seen, name)
                for a, b in zip(p, q, strict=True)
                if a
            )
            limit = max(
                (float(Fraction(g["epsilon"])) for g in plan.document["guarantees"] if name in (g["wrt"], *g["wrt"])),
                default=0.0,
            )
            assert ratio <= math.exp(limit) * (1 + 1e-9)


VOTES = """spec two_winners
parties: voter in 1..3
variables:
  input vote[voter] in {north, south}
  output O in {north, south}
  output P in {north, south}
loss: worst[ mismatch(O, plurality(vote)) ] + worst[ mismatch(P, plurality(vote)) ]
privacy: O is 1-DP wrt vote, replacing one voter
"""


def test_votes() -> None:
    plan = solved(VOTES)
    (exposure,) = facts(dict(plan.document)).exposures
    assert exposure.unprotected == ("P",)
    assert exposure.fact.claim.relation.text == "replacing one voter"
    assert "Not protected: the published result P." in plan.explain("public")


@pytest.mark.parametrize("reader", READERS)
def test_pages_say_so_first_and_by_name(reader: str) -> None:
    plan = solved(GAUSSIAN.format(lines="  (A, C) is 1-GDP wrt all inputs, replacing one entry"))
    page = plan.explain(reader)
    assert f"Not protected: {'the published result B' if reader == 'public' else 'B'}" in page
    if reader == "public":
        first = page.split("##")[1]
        assert first.startswith(" What is not protected")
        assert "**Not protected: the published result B. Anyone may learn from it what is in x" in first
        assert "Yes: the published result B is not protected." in page
        assert "Only by the odds above" not in page
        assert "is what protects you" not in page.replace(
            "The noise in the published result A and result C is what protects you", ""
        )
    else:
        assert "μ ≤" in page.split("What no guarantee covers")[1]
    words = " ".join(plan.summary(100).split())
    assert "Not protected B: no line limits what anyone may learn of x from it" in words
    assert "No line covers x, replacing one entry: anyone sees A, B and C; μ ≤" in words


def test_an_advantage_is_at_most_one() -> None:
    lines = "  z is 1-DP wrt x, replacing everything"
    plan = solved(TABLE.format(lines=lines))
    for text in (*(plan.explain(reader) for reader in READERS), plan.summary(100)):
        assert "1.01" not in text


def test_a_plan_that_states_less_is_not_verified() -> None:
    plan = solved(GAUSSIAN.format(lines="  (A, C) is 1-GDP wrt all inputs, replacing one entry"))
    assert any(c.name == "exposure" and c.status == "ok" for c in plan.verify().claims)
    for change in ("bound", "not_protected", "gone"):
        document: dict[str, Any] = copy.deepcopy(dict(plan.document))
        del document["digest"]
        if change == "gone":
            del document["exposures"]
        elif change == "bound":
            document["exposures"][0]["bound"]["mu"] = "0.1"
        else:
            document["exposures"][0]["not_protected"] = []
        report = Plan.of(sealed(document)).verify()
        assert not report.ok
        assert {c.name for c in report.failed} <= {"exposure", "reading"}


@pytest.mark.parametrize("reader", READERS)
def test_parameters_that_override_the_text_stand_on_every_page(reader: str) -> None:
    text = """parameters: epsilon = 0.5
  delta = 1e-6
variables:
  input x in [0, 1]^4
  output O
loss: E[ ||O - x||^2 ]
privacy: O is (epsilon, delta)-DP wrt x, replacing one entry
"""
    said = "epsilon = 1 (the spec's text says epsilon = 0.5)"
    plan = Problem(text).solve(epsilon=1)
    public = "Some numbers of this release are not those in its description"
    assert (public if reader == "public" else said) in plan.explain(reader)
    assert "delta = " not in plan.explain("public")
    assert f"As solved {said}" in " ".join(plan.summary(100).split())
    assert "says epsilon" not in Problem(text).solve().explain(reader)


def test_whoever_sees_everything_is_bounded_by_what_the_plan_states() -> None:
    """Two outputs with opposite noise, say: each is private, together they tell more, and the facts say how much."""
    lines = (
        "  A is 0.5-GDP wrt x, replacing one entry\n"
        "  (B, C) is 2-GDP wrt all inputs, replacing one entry, seen by press"
    )
    plan = solved(GAUSSIAN.format(lines=lines))
    (x,) = [entry for entry in plan.document["exposures"] if entry["input"] == "x"]
    alone, press = facts(dict(plan.document)).claims
    assert alone.everything_words.startswith("μ ≤ ")
    truth = mu_of(plan, "ABC", "x")
    assert truth * (1 - 1e-6) <= float(x["bound"]["mu"]) <= truth * (1 + 1e-6)
    assert alone.everything is not None
    assert alone.everything == press.everything
    assert alone.everything.odds.error.value == pytest.approx(50 * math.erfc(truth / 2 / math.sqrt(2)), rel=1e-5)
