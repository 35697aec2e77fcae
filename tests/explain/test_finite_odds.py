"""The wording of pages about tables, proved: every figure recomputed from exact fractions, for every observer."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from itertools import chain, combinations, pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privspec.explain.claims import SURE
from privspec.explain.curves import EpsilonDeltaCurve, PairsCurve, dominating, odds
from privspec.explain.probabilities import curve_of, read_table
from tests.execute.tables import make_table_plan
from tests.plans import executed_of

from .plans import Plan, explain, facts, page, plan, table_of

Law = list[Fraction]


def laws(found: Plan) -> list[Law]:
    """The rows of a plan, exactly."""
    return [[Fraction(p) for p in row] for row in found["mechanism"]["probabilities"]]


def least_error(p: Law, q: Law) -> Fraction:
    """The share of mistakes of the best test that errs equally often: max over s of sum min(s p, (1 - s) q)."""
    places = {b / (a + b) for a, b in zip(p, q, strict=True) if a + b}
    return max(sum(min(s * a, (1 - s) * b) for a, b in zip(p, q, strict=True)) for s in places)


def events(count: int) -> Any:
    """Every set of columns."""
    return chain.from_iterable(combinations(range(count), n) for n in range(count + 1))


def printed(text: str) -> tuple[Fraction, Fraction]:
    """The two shares in the sentences of natural frequencies."""
    found = re.search(
        r"accuse at least ([\d,]+) of ([\d,]+) people .*? find at most ([\d,]+) of ([\d,]+)(?: who|\.)", text
    )
    assert found is not None
    a, b, c, d = (int(g.replace(",", "")) for g in found.groups())
    return Fraction(a, b), Fraction(c, d)


def curve_over(rows: list[Law]) -> PairsCurve:
    """The curve of all pairs of rows."""
    first, second = (np.array(x) for x in zip(*combinations([[float(p) for p in row] for row in rows], 2), strict=True))
    return PairsCurve(first, second, (math.inf, 0.0))


# --- one report -----------------------------------------------------------------------------------


def test_no_observer_of_a_report_beats_the_odds() -> None:
    at_least, at_most = printed(page("commuting", "public"))
    rows = laws(plan("commuting"))
    for p, q in combinations(rows, 2):
        assert least_error(p, q) >= at_least
        for event in events(4):
            alarms, hits = (sum(law[c] for c in event) for law in (p, q))
            assert not (alarms < at_least and hits > at_most)
    best = min(least_error(p, q) for p, q in combinations(rows, 2))
    assert at_least <= best < at_least + Fraction(1, 100)  # as sharp as whole numbers allow
    assert at_most == 1 - at_least


def test_the_two_answers_that_are_named_are_told_apart_best() -> None:
    low, high = ["1/20"] * 20, ["0"] * 10 + ["1/10"] * 10
    found = table_of("single_outputs", [low, high, ["1/30"] * 10 + ["2/30"] * 10], ["5", "15", "25"])
    question = facts(found).claims[0].question.to_json()
    assert {question["first"], question["second"]} == {"5", "15"}


SHARES = st.lists(st.lists(st.integers(0, 9), min_size=4, max_size=4).filter(any), min_size=2, max_size=4)


@given(SHARES)
def test_exact_curves_of_any_table(weights: list[list[int]]) -> None:
    rows = [[Fraction(w, sum(row)) for w in row] for row in weights]
    curve = curve_over(rows)
    best = min(least_error(p, q) for p, q in combinations(rows, 2))
    assert curve.equal_error() == pytest.approx(float(best), abs=1e-12)
    apart = max(sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2 for p, q in combinations(rows, 2))
    assert curve.advantage() == pytest.approx(float(apart), abs=1e-12)
    corners: list[tuple[Fraction, Fraction]] = []
    for p, q in combinations(rows, 2):
        for event in events(4):
            alarms, hits = (sum((law[c] for c in event), Fraction(0)) for law in (p, q))
            corners += [(alarms, 1 - hits), (1 - hits, alarms)]
    for alarms, misses in corners:
        assert float(misses) >= curve.misses(float(alarms)) - 1e-9
    for place in (0.0, 0.1, 0.25, 0.5, 0.9, 1.0):  # attained by a mixture of two sets
        least = min(_mixed(corners, Fraction(place)))
        assert curve.misses(place) <= float(least) + 1e-9
    found = odds(curve)
    assert found.without / found.of <= best


def _mixed(corners: list[tuple[Fraction, Fraction]], place: Fraction) -> list[Fraction]:
    return [misses for alarms, misses in corners if alarms <= place] or [Fraction(1)]


@given(SHARES)
def test_seeing_less_never_tells_more(weights: list[list[int]]) -> None:
    rows = [[Fraction(w, sum(row)) for w in row] for row in weights]
    labels = [["0", "0"], ["0", "1"], ["1", "0"], ["1", "1"]]
    table = read_table(executed_of(make_table_plan(rows, releases=["a", "b"], outputs=labels)))
    alone, both = table.seen(["a"]), table
    assert alone.columns == ((("0",),), (("1",),))
    assert np.allclose(alone.shares[:, 0], [float(row[0] + row[1]) for row in rows])
    pairs = table.pairs(["x"])
    one, all_ = curve_of(alone, pairs, (1.0, 0.0)), curve_of(both, pairs, (1.0, 0.0))
    assert one is not None
    assert all_ is not None
    assert one.equal_error() >= all_.equal_error() - 1e-12


def test_the_largest_ratio_holds_for_every_report() -> None:
    text = page("commuting", "public")
    found = re.search(r"No answer makes it more than ([\d.]+) times as likely", text)
    assert found is not None
    times = Fraction(found[1])
    for p, q in product(laws(plan("commuting")), repeat=2):
        assert all(a <= times * b for a, b in zip(p, q, strict=True))


def test_one_report_moves_no_guess_further_than_it_says() -> None:
    sure = r"probability (\d+) % that your .* can be at most ([\d.]+) % sure"
    found = re.search(sure, page("commuting", "public"))
    assert found is not None
    before, after = Fraction(found[1]) / 100, Fraction(found[2]) / 100
    rows = laws(plan("commuting"))
    for own in range(4):
        others = [r for r in range(4) if r != own]
        # the rest of the probability on one other answer, or spread over all of them
        for rest in ([(r, Fraction(1))] for r in others):
            _check_posterior(rows, own, rest, before, after)
        _check_posterior(rows, own, [(r, Fraction(1, 3)) for r in others], before, after)


def _check_posterior(
    rows: list[Law], own: int, rest: list[tuple[int, Fraction]], before: Fraction, after: Fraction
) -> None:
    for report in range(4):
        mine = before * rows[own][report]
        theirs = (1 - before) * sum(share * rows[r][report] for r, share in rest)
        assert mine <= after * (mine + theirs)


def test_inputs_that_are_not_protected_take_the_posterior_away() -> None:
    """Knowing nothing of the group, one report may say more of the outcome than e^epsilon: no bound is printed."""
    document = plan("fair_report")
    assert facts(document).claims[0].posteriors == ()
    text = page("fair_report", "auditor")
    assert "group is not protected" in text
    assert "How sure one report" not in text
    assert "with the same group" in page("fair_report", "public")
    rows = dict(zip([tuple(row) for row in document["mechanism"]["inputs"]], laws(document), strict=True))
    odds_ = facts(document).claims[0].shown.odds  # type: ignore[union-attr]
    at_least = Fraction(odds_.without, odds_.of)
    for group in ("F", "M"):
        assert least_error(rows[group, "well"], rows[group, "ill"]) >= at_least


# --- several reports ------------------------------------------------------------------------------


def test_two_reports_by_the_whole_product() -> None:
    rows = laws(plan("commuting"))
    curve = curve_over(rows)
    twice = [[a * b for a, b in product(row, row)] for row in rows]
    exact = float(min(least_error(p, q) for p, q in combinations(twice, 2)))
    bound = curve.repeated(2).equal_error()
    assert bound <= exact < bound + 1e-3
    whole = curve_over(twice)
    assert curve.repeated(2).advantage() >= whole.advantage() - 1e-12
    for place in (0.05, 0.2, 0.4):
        assert curve.repeated(2).misses(place) <= whole.misses(place) + 1e-12


@pytest.mark.parametrize("times", [3, 5, 10])
def test_many_reports_by_the_binomial_law(times: int) -> None:
    r = Fraction(3)
    rows = [[r / (r + 1), 1 / (r + 1)], [1 / (r + 1), r / (r + 1)]]
    binomial = [[math.comb(times, k) * p**k * q ** (times - k) for k in range(times + 1)] for p, q in rows]
    exact = float(least_error(*binomial))
    bound = curve_over(rows).repeated(times).equal_error()
    assert bound <= exact < bound + 1e-3


def test_reports_that_give_something_away_for_certain() -> None:
    rows = [[Fraction(1, 20)] * 20, [Fraction(0)] * 10 + [Fraction(1, 10)] * 10]
    twice = [[a * b for a, b in product(row, row)] for row in rows]
    bound = curve_over(rows).repeated(2).equal_error()
    exact = float(least_error(*twice))
    assert bound <= exact < bound + 1e-3


@given(st.floats(0.05, 4.0), st.sampled_from([0.0, 0.01, 0.2]))
def test_two_laws_that_dominate(epsilon: float, delta: float) -> None:
    curve = dominating(epsilon, delta)
    plain = EpsilonDeltaCurve(epsilon, delta)
    assert curve.equal_error() == pytest.approx(plain.equal_error(), abs=1e-9)
    for place in (0.0, 0.01, 0.2, 0.5, 0.8, 1.0):
        assert curve.misses(place) == pytest.approx(plain.misses(place), abs=1e-9)
    assert curve.repeated(3).equal_error() >= plain.repeated(3).equal_error() - 1e-6


def test_tables_too_large_for_every_pair_fall_back_to_the_guarantee() -> None:
    size, r = 200, Fraction(2)
    words = [f"w{i}" for i in range(size)]
    rows = [[(r if a == b else 1) / (r + size - 1) for b in range(size)] for a in range(size)]
    found = table_of("commuting", rows, words)
    found["mechanism"]["outputs"] = words
    found["problem"]["blocks"][0] |= {"columns": words, "places": [list(range(size))]}
    shown = facts(found).claims[0].shown
    assert shown is not None
    assert not shown.exact
    assert shown.odds.without == 26
    assert explain(found, "engineer", "html")


# --- distances ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["kilometres", "places"])
def test_odds_by_distance(name: str) -> None:
    document = plan(name)
    labels = document["mechanism"]["inputs"]
    points = [[float(v) for v in (label if isinstance(label, list) else [label])] for label in labels]
    rows = laws(document)
    text = page(name, "public")
    steps = re.findall(r"\| ([\d.]+) \| at least ([\d,]+) of ([\d,]+) \| at most ([\d,]+) of ([\d,]+) \|", text)
    assert [Fraction(s[0]) for s in steps][:2] == [1, 2]
    pairs = [(a, b, math.dist(points[a], points[b])) for a, b in combinations(range(len(rows)), 2)]
    errors = {(a, b): least_error(rows[a], rows[b]) for a, b, _ in pairs}
    for step in steps:
        distance, (low, of, high, _) = float(step[0]), (int(s.replace(",", "")) for s in step[1:])
        near = [errors[a, b] for a, b, apart in pairs if apart <= distance + 1e-9]
        assert Fraction(low, of) <= min(near) < Fraction(low + 1, of)
        assert high == of - low
    assert max(apart for _, _, apart in pairs) <= float(steps[-1][0])
    sure = min(errors.values()) < Fraction(SURE)
    assert ("a guesser can be almost sure" in text) == sure
    at_least, at_most = printed(text)
    assert (at_least, at_most) == (Fraction(int(steps[0][1]), 100), Fraction(int(steps[0][3]), 100))


# --- central tables -------------------------------------------------------------------------------


def test_no_observer_of_a_count_beats_the_odds() -> None:
    at_least, at_most = printed(page("counting", "public"))
    rows = laws(plan("counting"))
    for p, q in pairwise(rows):
        assert least_error(p, q) >= at_least
        assert 1 - least_error(p, q) <= at_most


def test_two_observers_see_what_is_theirs() -> None:
    document = plan("two_counts")
    rows = laws(document)
    rough = [[sum(row[5 * k : 5 * k + 5], Fraction(0)) for k in range(5)] for row in rows]
    first, second = (fact.shown for fact in facts(document).claims)
    assert first is not None
    assert second is not None
    for shown, seen in ((first, rough), (second, rows)):
        plain = shown.odds
        for p, q in pairwise(seen):
            assert least_error(p, q) >= Fraction(plain.without, plain.of)


def test_what_all_outputs_say_together_is_computed_and_not_added_up() -> None:
    document = plan("two_counts")
    del document["guarantees"][1]
    claim = facts(document).claims[0]
    assert not claim.covers_everything
    assert claim.everything is not None
    assert re.fullmatch(r"ε ≤ 1(\.001)?", claim.everything_words)
    best = min(least_error(p, q) for p, q in pairwise(laws(document)))
    assert claim.everything.odds.error.value <= 100 * best < claim.everything.odds.error.value + 0.1


def test_outputs_that_betray_the_count_together() -> None:
    """Each output is fine by itself; both of them are one count with its own noise taken off."""
    size = 5
    shared = [
        [Fraction(1, 5) if (b - a - c) % size == 0 else Fraction(0) for a in range(5) for b in range(5)]
        for c in range(5)
    ]
    document = table_of("two_counts", shared)
    del document["guarantees"][1]
    assert facts(document).claims[0].everything_words == "no finite ε, an advantage of up to 1"


# --- further figures ------------------------------------------------------------------------------


def test_the_papers_condition_is_reported_with_its_true_delta() -> None:
    document = plan("single_outputs")
    low, high = laws(document)
    r = Fraction(math.e)
    true = max(
        sum(max(Fraction(0), a - r * b) for a, b in zip(*pair, strict=True)) for pair in ((low, high), (high, low))
    )
    assert float(true) == pytest.approx(0.6)
    remark = facts(document).claims[0].claim.remark
    assert remark is not None
    assert remark.unsound
    assert "δ of 0.6, more than 0.1" in explain(document, "auditor")
    document["guarantees"][0]["delta"] = "0.7"
    remark = facts(document).claims[0].claim.remark
    assert remark is not None
    assert not remark.unsound
    assert "holds what it says" in explain(document, "auditor")


def test_fairness_is_the_difference_of_the_rows() -> None:
    document = plan("fair_report")
    rows = dict(zip([tuple(row) for row in document["mechanism"]["inputs"]], laws(document), strict=True))
    apart = max(sum(abs(a - b) for a, b in zip(rows["F", y], rows["M", y], strict=True)) / 2 for y in ("well", "ill"))
    found = facts(document).fairness[0]
    assert Fraction(found.achieved.text) >= apart
    assert Fraction(found.margin.text) <= Fraction(found.tolerance.text) - apart
    assert found.met
    document["fairness"][0]["achieved"] = "0.06"
    assert "none: not met" in explain(document, "auditor")


def test_errors_are_those_of_the_table() -> None:
    document = plan("two_counts")
    rows = laws(document)
    columns = [tuple(int(v) for v in label) for label in document["mechanism"]["outputs"]]
    errors = facts(document).mechanism.errors  # type: ignore[attr-defined]
    assert len(errors) == 2
    for position, term in enumerate(errors):
        exact = (
            sum(p * abs(c[position] - i) for i, row in enumerate(rows) for p, c in zip(row, columns, strict=True)) / 5
        )
        assert float(term.figure.text) == pytest.approx(float(exact), rel=5e-3)
    truth = facts(plan("commuting")).mechanism.truths[0]  # type: ignore[attr-defined]
    diagonal = [row[i] for i, row in enumerate(laws(plan("commuting")))]
    assert Fraction(truth.least.text) <= min(diagonal)
    assert Fraction(truth.largest.text) >= max(diagonal)
