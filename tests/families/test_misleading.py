"""Messages that once were false or led nowhere: what they say now, and that what they advise does solve."""

from __future__ import annotations

from pathlib import Path

import pytest

from privspec.api import Problem
from privspec.core.diagnostics import SolveError, SpecError
from privspec.families.gaussian import reference

GATE = """\
components:
  few = spec("gate.priv", x = x, e = 0.5)
  all = spec("gate.priv", x = x, e = 0.5, only_if = few.big)
variables:
  input x in [0, 1]^4
loss: few.loss + all.loss
privacy: (few.O, few.big, all.O, all.big) is 1-DP wrt x, replacing one entry
"""
GATED = """\
parameters: e = 1
variables:
  input x in [0, 1]^4
  output O
  output big in 0..1 = O - 2
loss: E[ (O - sum(x))^2 ]
privacy: O is e-DP wrt x, replacing one entry
"""
SPENT = """\
components:
  part = spec("part.priv", x = x, r = r1)
variables:
  input x in [0, 1]^4
  choose r1 in [0, inf)
loss: part.loss
privacy: part.O is (1, 1e-6)-DP wrt x, replacing one entry
"""
SPENDS = """\
parameters: r = 1
variables:
  input x in [0, 1]^4
  output O
loss: E[ ||O - x||^2 ]
privacy: O is r-zCDP wrt x, replacing one entry
"""
CUT = """\
parties: person in 1..100
variables:
  input visits in table(person in id, district in {n, s}, spent in [0, 10])
  choose k in 1..3
  output O
background:
  count(visits, by = {person}) ~ poisson(2)
  visits.district ~ uniform
loss: E[ ||O - sum(visits.spent, by = {district})||^2 ]
privacy: O is (1, 1e-6)-DP wrt visits, adding or removing one person with at most k records
"""
TOTAL = """\
variables:
  input people in table(age in {y, m, o})
  output total = count(people)
  output H
loss: E[ ||H - histogram(people)||^2 ]
privacy: H is 1-DP wrt people, replacing one record
"""
MEAN = """\
variables:
  input people in table(pay in [0, 10])^100
  output m
loss: E[ (m - mean(people.pay))^2 ]
accuracy: |m - mean(people.pay)| <= 1 with probability 0.95
privacy: m is 1-DP wrt people, adding or removing one record
"""


BITS = """\
parties: voter in 1..60
variables:
  input a[voter] in {0, 1}^3
  output O
loss: E[ ||O - histogram(a)||^2 ]
privacy: O is 1-LDP wrt a
"""
PARITY = """\
variables:
  input x in [0, 1]
  input s in [0, 1]
  output w
loss: E[ (w - x - s)^2 ]
privacy: w is 1-GDP wrt x
fairness: w is independent of s, up to 0.1
"""
COLUMN = """\
variables:
  input people in table(sex in {F, M}, pay in [0, 100])^1000
  output w
loss: E[ (w - sum(people.pay, sex = F))^2 ]
privacy: w is 1-DP wrt people, replacing one record
fairness: w is independent of sex, up to 0.1
"""
PRODUCT = """\
parties: p in 1..20
variables:
  input a[p] in [0, 1]
  input b[p] in [0, 2]
  output O
loss: E[ (O - sum(a[p] * b[p] for p))^2 ]
privacy: O is 1-DP wrt (a, b), replacing one p
"""
SHARE = """\
variables:
  input x in grid(0, 1, 0.5)
  output z in {0, 1}
  choose a in (0, 1]
  intermediate guess
background:
  E[z | x] = a * x + (1 - a) / 2
  guess = (z - (1 - a) / 2) / a
loss: worst[ (guess - x)^2 ]
privacy: z is 1-LDP wrt x
"""
PARTIAL = """\
parties: voter in 1..9
variables:
  input ballot[voter] in partial_ranking of {a, b, c}
  intermediate winner
  output O
background: winner = borda_lottery(ballot)
loss: worst[ total_variation(O, winner) ]
privacy: O is 1-DP wrt ballot, replacing one voter
"""
ROUNDED = """\
variables:
  input h in (0..20)^30
  output z in 0..20
loss: worst[ |z - floor(mean(h) + 0.5)| ]
privacy: z is 1-DP wrt h, replacing one record
"""
WEIGHTS = """\
parties: voter in 1..6
variables:
  input V[voter] in l2_ball(1, 2)^3
  intermediate beta[voter]
  intermediate society
  output O
background:
  beta[voter] = probit_mle(V[voter], within = l1_ball(2, 2))
  society = mean(beta[voter] for voter)
  V ~ thurstone_mosteller(2, 3)
loss: E[ ||O - society||^2 ]
privacy: O is 1-DP wrt V, replacing one voter
"""
COMING = WEIGHTS.replace("replacing", "adding or removing")
MEDIANS = WEIGHTS.replace("mean(", "median(")
SHARES = """\
parties: site in 1..3
variables:
  input people[site] in table(age in 0..9)
  output m
loss: worst[ rank_error(m, median(people.age)) ]
privacy: m is 1-DP wrt people, adding or removing one record
options: trust secure_sum
"""
APPROVALS = """\
parties: p in 1..30
variables:
  input likes[p] in {0, 1}^3
  output O
loss: worst[ rank_error(O, argmax(sum(likes[p] for p))) ]
privacy: O is 1-DP wrt likes, replacing one p
"""
UNSEEN = """\
variables:
  input people in table(age in {young, old})
  intermediate f in real^2
  output O
  output n
background: f has l2 sensitivity at most 2 wrt people, adding or removing one record
loss: E[ ||O - f||^2 ] + E[ (n - count(people))^2 ]
privacy: all outputs are (1, 1e-6)-DP wrt people, adding or removing one record
"""


def of_table(loss: str, held: str = "x in table(age in 0..99)", more: str = "", unit: str = "one record") -> str:
    return f"variables:\n  input {held}\n  output O\n{more}loss: {loss}\nprivacy: O is 1-DP wrt x, replacing {unit}\n"


@pytest.mark.parametrize(
    ("text", "files", "said", "hint", "change"),
    [
        pytest.param(
            BITS,
            {},
            "histogram takes a table, and this is a 60 x 3 matrix",
            "`input row[p] in table(v1 in {0, 1}, v2 in {0, 1}, v3 in {0, 1})^1`",
            [("{0, 1}^3", "table(v1 in {0, 1}, v2 in {0, 1}, v3 in {0, 1})^1")],
            id="a histogram of bits",
        ),
        pytest.param(
            PARITY,
            {},
            "fairness requirements",
            "`w is (0.1)-tv-DP wrt s, replacing everything`",
            [
                ("privacy: w is 1-GDP wrt x\nfairness: ", "privacy:\n  w is 1-GDP wrt x\n  "),
                ("w is independent of s, up to 0.1", "w is (0.1)-tv-DP wrt s, replacing everything"),
            ],
            id="parity of noise",
        ),
        pytest.param(
            COLUMN, {}, "of sex, which differs from record to record", "of one record: 0.1-tv-DP", [], id="a column"
        ),
        pytest.param(
            GATE,
            {"gate.priv": GATED},
            "few.big is computed from what is released, and compares no single number",
            "only_if = (first.O > 20)",
            [],
            id="gate",
        ),
        pytest.param(
            CUT,
            {},
            "the plan does not say where records lie",
            "a law of each column: visits.spent ~ uniform",
            [("visits.district ~ uniform\n", "visits.district ~ uniform\n  visits.spent ~ uniform\n")],
            id="a law of records",
        ),
        pytest.param(
            TOTAL,
            {},
            "the loss does not mention total",
            "released exactly: add E[ (total - count(people))^2 ] to the loss, and total to a line of privacy",
            [("loss: ", "loss: E[ (total - count(people))^2 ] + "), ("H is 1-DP", "(total, H) is 1-DP")],
            id="an exact total",
        ),
        pytest.param(
            MEAN,
            {},
            "a mean is linear where the number of records is public",
            "`replacing one record`",
            [("adding or removing", "replacing")],
            id="a mean",
        ),
        pytest.param(
            of_table("E[ (O - sum(x[i]^2 for i in 1..20))^2 ]", "x in [-2, 1]^20", unit="one entry"),
            {},
            "`^` of a secret value is not linear",
            "`input x in table(v in [-2, 1])^20`, sum(x.v^2), `one record`",
            [
                ("x in [-2, 1]^20", "x in table(v in [-2, 1])^20"),
                ("sum(x[i]^2 for i in 1..20)", "sum(x.v^2)"),
                ("one entry", "one record"),
            ],
            id="squares of entries",
        ),
        pytest.param(
            PRODUCT,
            {},
            "a product of two secret values",
            "`input row[p] in table(a in [0, 1], b in [0, 2])^1`, sum(row.a * row.b)",
            [
                (
                    "  input a[p] in [0, 1]\n  input b[p] in [0, 2]\n",
                    "  input row[p] in table(a in [0, 1], b in [0, 2])^1\n",
                ),
                ("sum(a[p] * b[p] for p)", "sum(row.a * row.b)"),
                ("(a, b)", "row"),
            ],
            id="products of what one holds",
        ),
        pytest.param(
            of_table("worst[ rank_error(O, argmax([count(x, age in 0..9), count(x, age in 10..99)])) ]"),
            {},
            "about a column of a table",
            "people.group = cut(people.age, [0, 10, 20])",
            [
                ("loss", "background: x.group = cut(x.age, [0, 10, 100])\nloss"),
                ("[count(x, age in 0..9), count(x, age in 10..99)]", "histogram(x, by = {group})"),
            ],
            id="the largest of counts",
        ),
        pytest.param(
            of_table("worst[ (O - count(x, age > 9))^2 / (count(x, age > 9) + 1)^2 ]"),
            {},
            "by the data, no noise of one size is best",
            "`input c in 0..60`, `output n in 0..60`, under metric privacy (`privspec help metric privacy`)",
            [
                ("x in table(age in 0..99)", "x in 0..9"),
                ("output O", "output O in 0..9"),
                ("(O - count(x, age > 9))^2 / (count(x, age > 9) + 1)^2", "(O - x)^2 / (x + 1)^2"),
                ("1-DP wrt x, replacing one record", "1-metric-DP wrt x, distance |x - x'|"),
            ],
            id="relative errors",
        ),
        pytest.param(
            of_table("E[ ||O - prefix_sums(histogram(x))||^2 ]", more="  output M = monotone(O)\n"),
            {},
            "no function monotone",
            "write consistent(O)",
            [("monotone", "consistent")],
            id="totals that never fall",
        ),
        pytest.param(
            of_table("E[ ||O - sum(x.paid, by = {page})||^2 ]", "x in table(page in unknown, paid in [0, 1])"),
            {},
            "solve takes one error of O",
            "list the keys: page in {a, b, c}",
            [("page in unknown", "page in {a, b, c}")],
            id="sums by unknown keys",
        ),
        pytest.param(
            SHARE,
            {},
            "a loss that depends on what is chosen is averaged",
            "under background x ~ uniform",
            [("worst[", "E["), ("background:\n", "background:\n  x ~ uniform\n")],
            id="the worst of a chosen share",
        ),
        pytest.param(
            PARTIAL,
            {},
            "orders of some alternatives are written as a call",
            "write partial_ranking({a, b, c}, 2)",
            [("partial_ranking of {a, b, c}", "partial_ranking({a, b, c}, 2)")],
            id="partial rankings",
        ),
        pytest.param(
            ROUNDED,
            {},
            "tables are found for up to",
            "leave rounding to whoever has the result, where it is free: write `output z`, without a domain",
            [("output z in 0..20", "output z"), ("floor(mean(h) + 0.5)", "mean(h)")],
            id="a rounded mean",
        ),
        pytest.param(
            COMING,
            {},
            "a crowd of one may become one of two",
            "replacing one voter",
            [],
            id="a crowd of one",
        ),
        pytest.param(
            MEDIANS,
            {},
            "may move the median of each number from one end of its range to the other",
            "mean(...) is moved by a share",
            [],
            id="a median of weights",
        ),
        pytest.param(
            SHARES,
            {},
            "a value that is selected is no sum",
            "release histogram(t, by = {column})",
            [
                ("output m", "output H"),
                ("m is", "H is"),
                ("worst[ rank_error(m, median(people.age)) ]", "E[ ||H - histogram(people, by = {age})||^2 ]"),
            ],
            id="a median in shares",
        ),
        pytest.param(
            APPROVALS,
            {},
            "argmax is about a column of a table",
            "of sums over parties, release the sums, of which whoever has them takes the largest",
            [
                ("worst[ rank_error(O, argmax(sum(likes[p] for p))) ]", "E[ ||O - sum(likes[p] for p)||^2 ]"),
            ],
            id="the largest of sums over parties",
        ),
        pytest.param(
            UNSEEN,
            {},
            "people is read through f alone, and n is computed from it as well",
            "release what is about n by another spec, on the same ledger",
            [(" + E[ (n - count(people))^2 ]", ""), ("  output n\n", ""), ("all outputs are", "O is")],
            id="a function beside a count",
        ),
    ],
)
def test_what_is_said_is_true_and_what_is_advised_solves(
    text: str, files: dict[str, str], said: str, hint: str, change: list[tuple[str, str]], tmp_path: Path
) -> None:
    for name, inside in files.items():
        (tmp_path / name).write_text(inside, "utf-8")
    with pytest.raises(SpecError) as caught:
        Problem(text, {}, base=tmp_path).solve()
    (found,) = caught.value.diagnostics
    assert said in found.message
    assert hint in (found.help or "")
    for old, new in change:
        assert old in text
        text = text.replace(old, new)
    if change:
        assert Problem(text, {}, base=tmp_path).solve().verify().ok


def test_a_line_that_is_too_large_for_the_general_solver_is_said_to_fit_the_loss(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Beside the largest of several errors no other solver takes lines; weights of these errors it does."""
    text = """\
parameters: w = [1, 1, 1, 1, 1, 1]
variables:
  input x in [0, 1]^6
  output O in real^6
loss: max(w[j] * E[ (O[j] - prefix_sums(x)[j])^2 ] for j in 1..6)
accuracy: E[ (O[2] - x[1] - x[2])^2 ] <= 1.5
privacy: O is 1-GDP wrt x, replacing one entry
"""
    monkeypatch.setattr(reference, "LARGEST_CONES", 1.0)
    with pytest.raises(SolveError) as caught:
        Problem(text).solve()
    (found,) = caught.value.diagnostics
    assert "too many for the general convex solver" in found.message
    assert (found.help or "").startswith("ask for the accuracy in the loss")
    weighed = text.replace("accuracy: E[ (O[2] - x[1] - x[2])^2 ] <= 1.5\n", "").replace("[1, 1,", "[1, 2,")
    assert Problem(weighed).solve().status == "optimal"


@pytest.mark.parametrize(
    ("answers", "line"),
    [
        ("prefix_sums(x)", "(O[6] - sum(x))^2"),
        ("prefix_sums(x)", "(O[6] - O[5] - x[6])^2"),
        ("range_sums(x)", "(O[1] - x[1])^2"),
        ("A @ x", "(O[2] - 2 * sum(x))^2"),
    ],
)
def test_an_accuracy_line_says_what_an_answer_is_in_any_words(answers: str, line: str) -> None:
    """`sum(x)` is what the last of the prefix sums is: only noise is left, and no data model is asked for."""
    text = f"""\
parameters: A = [[1, 0, 0, 0, 0, 0], [2, 2, 2, 2, 2, 2]]
variables:
  input x in [0, 1]^6
  output O
loss: E[ ||O - {answers}||^2 ]
accuracy: E[ {line} ] <= {{bound}}
privacy: O is 1-GDP wrt x, replacing one entry
"""
    loose, tight = (Problem(text.format(bound=bound)).solve() for bound in (1000, 8))
    assert loose.status == tight.status == "optimal"
    assert loose.loss.value <= tight.loss.value
    assert tight.document["accuracy"][0]["value"] <= 8 * (1 + 1e-6)
    with pytest.raises(SpecError, match="PS0401"):
        Problem(text.format(bound=8).replace(" ] <= 8", " + x[2] ] <= 8")).solve()


def test_a_number_is_picked_for_a_part_that_is_alone(tmp_path: Path) -> None:
    """It was said to be picked only where parts share a line."""
    (tmp_path / "part.priv").write_text(SPENDS, "utf-8")
    assert Problem(SPENT, {}, base=tmp_path).solve().verify().ok
