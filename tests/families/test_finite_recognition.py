"""What is said of an optimal table is true of it, and optimal tables that have a name are named."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from privspec.families.tables.noise import Neighbours, StaircaseNoise, TableContext, staircase_table
from privspec.families.tables.recognition import RECOGNISERS, Recognition, comparisons, recognise, subset_table

from .finite_contexts import apart, count, fractions, local, numbers, optimum, plane, words


def found(context: TableContext) -> Recognition:
    """The name of the exact optimum."""
    recognised = recognise(context, fractions(optimum(context)))
    assert recognised is not None
    assert recognised.deviation <= 1e-6
    return recognised


@pytest.mark.parametrize(
    ("epsilon", "name", "text"),
    [
        (
            "1/10",
            "truncated geometric, remapped",
            "e^(-0.1 |k|), truncated at both ends. Then 0 to 3 → 4 · 4 to 6 → 5 ·",
        ),
        ("1/2", "truncated geometric, remapped", "truncated at both ends. Then 0 and 1 → 1 · 9 and 10 → 9"),
        ("1", "truncated geometric", "noise of k steps with probability proportional to e^(-|k|), truncated"),
        ("2", "truncated geometric", "e^(-2 |k|)"),
    ],
)
def test_counting_query(epsilon: str, name: str, text: str) -> None:
    recognised = found(count(10, epsilon))
    assert recognised.name == name
    assert text in recognised.text
    assert recognised.note == "truncated-geometric"


def test_counting_query_in_the_worst_case_has_a_random_remap() -> None:
    recognised = found(count(10, "1", worst=True))
    assert recognised.name == "truncated geometric, remapped"
    assert "0 → 0 or 1 with probabilities 0.5932 and 0.4068" in recognised.text
    assert recognised.text.endswith("more")


@pytest.mark.parametrize("seed", range(5))
def test_every_prior_of_a_counting_query(seed: int) -> None:
    prior = np.random.default_rng(seed).dirichlet(np.ones(9))
    assert found(count(8, "1/2", prior)).name.startswith("truncated geometric")


@pytest.mark.parametrize(("k", "epsilon"), [(2, "1"), (2, "1/10"), (6, "1/2"), (9, "3")])
def test_k_randomised_response(k: int, epsilon: str) -> None:
    recognised = found(local(k, epsilon))
    truth = math.exp(Fraction(epsilon)) / (math.exp(Fraction(epsilon)) + k - 1)
    assert recognised.name == ("randomised response" if k == 2 else "k-randomised response")
    assert recognised.text.startswith(f"the truth with probability {truth:.4g}, ")
    assert recognised.note == "k-randomised-response"


def test_k_randomised_response_with_a_delta() -> None:
    context = local(4, "1", delta="1/20")
    table = next(c for c in comparisons(context) if c.name == "k-randomised response").table
    recognised = recognise(context, table)
    assert recognised is not None and recognised.name == "k-randomised response"


def test_a_likely_value_among_many_makes_answers_merge_inputs_or_ignore_them() -> None:
    prior = np.array([40, 30, 15, 10, 4, 1]) / 100
    recognised = found(local(6, "1/2", prior))
    assert recognised.name == "randomised response after merging inputs"
    assert "a → a" in recognised.text and "Then the truth with probability 0.6225" in recognised.text
    recognised = found(local(6, "1/20", prior))
    assert recognised.name == "constant output"
    assert recognised.text == "always a, whatever the input"


def test_numbers_under_local_privacy_are_split_at_a_threshold() -> None:
    context = replace(count(10, "1"), neighbours=Neighbours.complete(11))
    recognised = found(context)
    assert recognised.name == "randomised response after merging inputs"
    assert "→ 3 · " in recognised.text and "→ 7. Then the truth with probability 0.7311" in recognised.text


def test_one_law_for_every_input() -> None:
    context = local(3, "1")
    recognised = recognise(context, [[Fraction(1, 4), Fraction(3, 4), Fraction(0)]] * 3)
    assert recognised is not None
    assert recognised.name == "constant output"
    assert recognised.text == "one law for every input: b with probability 0.75 and a with probability 0.25"


@pytest.mark.parametrize(("k", "size"), [(4, 2), (5, 3), (6, 2)])
def test_subset_selection(k: int, size: int) -> None:
    _, law = subset_table(k, size, 1.0)
    columns = numbers(*range(law.shape[1]))
    context = TableContext(
        words("abcdefgh"[:k]), columns, Fraction(1), Neighbours.complete(k), np.zeros(law.shape), np.ones(k) / k
    )
    recognised = recognise(context, law)
    assert recognised is not None
    assert recognised.name == f"subset selection of size {size}"
    assert recognised.text == (
        f"one of the {math.comb(k, size)} sets of {size} of the {k} values; a set that holds the truth is 2.718 "
        "times as likely"
    )


def test_subset_selection_on_some_of_the_sets() -> None:
    """The lines of the Fano plane: every two values lie in one of seven sets."""
    lines = [(0, 1, 2), (0, 3, 4), (0, 5, 6), (1, 3, 5), (1, 4, 6), (2, 3, 6), (2, 4, 5)]
    table = np.ones((7, 7))
    for column, line in enumerate(lines):
        table[list(line), column] = math.exp(2)
    table /= table.sum(axis=1, keepdims=True)
    recognised = recognise(replace(local(7, "2")), table)
    assert recognised is not None and recognised.name == "subset selection of size 3"
    assert recognised.text.startswith("one of 7 of the 35 sets of 3 of the 7 values")


def test_extremal_tables_of_unequal_sizes() -> None:
    """Patterns (r, 1, 1, 1), (1, r, r, r): two levels of ratio e^epsilon, sets of one and of three values."""
    r = math.e
    patterns = np.array([[r, 1], [1, r], [1, r], [1, r]])
    table = np.zeros((4, 4))
    table[:, :2] = patterns / (1 + r)
    context = replace(local(4, "1"), columns=words("wxyz"))
    recognised = recognise(context, table)
    assert recognised is not None
    assert recognised.name == "extremal (staircase) mechanism"
    assert recognised.text.startswith("each of the 2 answers in use is 2.718 times as likely")
    assert recognise(replace(context, epsilon=Fraction(3, 2)), table) is None


def test_remapped_randomised_response() -> None:
    context = local(4, "1")
    base = next(c for c in comparisons(context) if c.name == "k-randomised response").table
    remap = np.eye(4)[[0, 1, 2, 2]]
    recognised = recognise(context, base @ remap)
    assert recognised is not None
    assert recognised.name == "k-randomised response, remapped"
    assert recognised.text.endswith("Then c and d → c")


def test_exponential_mechanism() -> None:
    for context in (count(6, "1", cost=apart(7) ** 2), plane(3, "1/2")):
        table = next(c for c in comparisons(context) if c.name.startswith("exponential")).table
        recognised = recognise(context, table)
        assert recognised is not None and recognised.name == "exponential mechanism"
    assert recognised.text == "an answer with probability proportional to e^(-0.25 loss)"


def test_staircase_and_several_coordinates() -> None:
    rows = numbers(*range(13))
    pairs = np.argwhere((apart(13) > 0) & (apart(13) <= 3))
    context = TableContext(
        rows, rows, Fraction(1), Neighbours.adjacent(13, pairs), apart(13), np.where(np.arange(13) == 6, 1.0, 0.0)
    )
    best = next(c for c in comparisons(context) if c.name == "staircase mechanism")
    recognised = recognise(context, best.table)
    assert recognised is not None and recognised.name == "staircase mechanism"
    values = [row[0] for row in rows]
    np.testing.assert_allclose(
        best.table,
        min((staircase_table(values, values, StaircaseNoise(3, r, 1.0)) for r in (1, 2, 3)), key=context.loss),
    )
    grid = plane(3, "1")
    table = next(c for c in comparisons(grid) if c.name == "truncated geometric").table
    recognised = recognise(grid, table)
    assert recognised is not None and "on each coordinate" in recognised.text


def test_what_has_no_name_is_not_named() -> None:
    for context in (plane(3, "1", np.arange(1, 10) / 45), count(5, "1"), local(5, "1")):
        table = np.random.default_rng(0).dirichlet(np.ones(len(context.rows)), len(context.rows))
        assert recognise(context, table) is None
    assert recognise(plane(3, "1"), fractions(optimum(plane(3, "1")))) is None


@pytest.mark.parametrize("amount", [1e-3, 1e-5])
def test_a_table_that_is_only_near_is_not_named(amount: float) -> None:
    for context in (count(6, "1"), local(4, "1"), local(2, "1")):
        table = optimum(context).exact.to_array()
        shift = np.zeros_like(table)
        shift[0, :2] = amount, -amount
        assert recognise(context, table) is not None
        assert recognise(context, table + shift) is None
        near = recognise(context, table + shift, tolerance=3 * amount)
        assert near is not None and amount / 3 <= near.deviation <= 3 * amount


def test_recognisers_say_what_they_do() -> None:
    assert all(recogniser.__doc__ for recogniser in RECOGNISERS)
