"""Lines of finite results that count on the law of all data: by hand, forged, from the command line, refused."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import permutations, product
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from privspec.api import Problem
from privspec.cli import run_command_line
from privspec.core.diagnostics import SpecError
from tests.plans import resign, solved_text

CHAIN = """parameters: step = [[0.9, 0.1], [0.2, 0.8]]
variables:
  input x in {0, 1}^3
  intermediate total
  output z in 0..3
background:
  x[1] ~ categorical([0.5, 0.5])
  x[i] ~ categorical(step[x[i-1]])
  total = sum(x)
loss: E[ (z - total)^2 ]
privacy: z is 0.7-DP wrt HIDDEN, given the model
"""
NETWORK = """parameters: t = [[0.9, 0.1], [0.3, 0.7]]
variables:
  input group in {a, b}
  input answer in {yes, no}
  output z in {yes, no}
background:
  group ~ categorical([2, 1])
  answer ~ categorical(t[group])
loss: E[ mismatch(z, answer) ]
privacy: z is 0.5-MEASURE wrt group, given the model
"""
STEP = [[0.9, 0.1], [0.2, 0.8]]


def of_chain(x: tuple[int, ...]) -> float:
    return 0.5 * STEP[x[0]][x[1]] * STEP[x[1]][x[2]]


def least(worlds: list[Any], chance: Any, cost: Any, hidden: list[Any], width: int, epsilon: float) -> float:
    """The least loss of a table, as a linear program that is written from the definition."""
    shape, rows = (len(worlds), width), []
    for what in hidden:
        laws = {}
        for value in {what(world) for world in worlds}:
            inside = np.array([chance(world) * (what(world) == value) for world in worlds])
            laws[value] = inside / inside.sum()
        for (one, other), z in product(permutations(laws, 2), range(width)):
            row = np.zeros(shape)
            row[:, z] = laws[one] - exp(epsilon) * laws[other]
            rows.append(row.ravel())
    costs = np.array([[chance(world) * cost(world, z) for z in range(width)] for world in worlds])
    sums = np.kron(np.eye(len(worlds)), np.ones(width))
    found = linprog(costs.ravel(), np.array(rows), np.zeros(len(rows)), sums, np.ones(len(worlds)))
    return float(found.fun)


ENTRIES = [lambda x, i=i: x[i] for i in range(3)]


@pytest.mark.parametrize(
    ("hidden", "of"), [("x, replacing one entry", ENTRIES), ("total", [sum]), ("x, replacing everything", [tuple])]
)
def test_the_best_table_is_that_of_the_definition(hidden: str, of: list[Any]) -> None:
    found = solved_text(CHAIN.replace("HIDDEN", hidden))
    worlds = list(product((0, 1), repeat=3))
    expected = least(worlds, of_chain, lambda x, z: (z - sum(x)) ** 2, of, 4, 0.7)
    assert found["loss"]["value"] == pytest.approx(expected, rel=1e-6)
    assert found["status"] == "optimal"
    law = [[Fraction(p) for p in row] for row in found["mechanism"]["probabilities"]]
    for what in of:
        given: dict[Any, list[Any]] = {}
        for x, row in zip(worlds, law, strict=True):
            given.setdefault(what(x), []).append((Fraction(of_chain(x)).limit_denominator(10**6), row))
        mixed = []
        for some in given.values():
            whole = sum(weight for weight, _ in some)
            mixed.append([float(sum(weight * row[z] for weight, row in some) / whole) for z in range(4)])
        pairs = [pair for one, other in permutations(mixed, 2) for pair in zip(one, other, strict=True)]
        assert all(p <= exp(0.7) * q * (1 + 1e-12) for p, q in pairs)


def test_correlates_are_used_and_hidden() -> None:
    found = solved_text(NETWORK.replace("MEASURE", "DP"))
    worlds = list(product((0, 1), repeat=2))
    chances = dict(zip(worlds, [0.6, 0.2 / 3, 0.1, 0.7 / 3], strict=True))
    expected = least(worlds, chances.__getitem__, lambda w, z: z != w[1], [lambda w: w[0]], 2, 0.5)
    assert found["loss"]["value"] == pytest.approx(expected, rel=1e-6)
    assert found["loss"]["value"] < 0.3  # the best answer that does not look at the data
    (view,) = found["problem"]["views"]
    assert (view["input"], view["unnamed"]) == ("answer", ["z"])


def test_a_report_that_tells_nothing_of_a_secret_needs_no_noise() -> None:
    text = NETWORK.replace("MEASURE", "LDP").replace("[0.3, 0.7]", "[0.9, 0.1]")
    assert solved_text(text)["loss"]["value"] == 0


def forged(document: dict[str, Any], change: str) -> dict[str, Any]:
    (block,) = document["problem"]["blocks"]
    laws, rows = block["compared"][0]["laws"], document["mechanism"]["probabilities"]
    if change == "sharper":
        document["guarantees"][0]["achieved"]["epsilon"] = "0.6"
    elif change == "other laws":
        width = laws["shape"][1]
        laws["rows"][width:] = laws["rows"][:width] * (laws["shape"][0] - 1)
    elif change == "no laws":
        del block["compared"][0]["laws"]
    elif change == "no law":
        laws["rows"][0] += 1
    else:
        rows[0] = ["1", "0", "0", "0"]
    return document


@pytest.mark.parametrize(
    ("change", "claim"),
    [
        ("sharper", "privacy"),
        ("other table", "privacy"),
        ("other laws", "problem"),
        ("no laws", "problem"),
        ("no law", "problem"),
    ],
)
def test_what_is_untrue_is_refused(tmp_path: Path, change: str, claim: str, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(json.dumps(solved_text(CHAIN.replace("HIDDEN", "total"))))
    path = tmp_path / "forged.json"
    path.write_text(json.dumps(resign(forged(document, change))), "utf-8")
    assert run_command_line(["verify", str(path)]) == 7
    assert f"failed  {claim} " in capsys.readouterr().out


def test_a_field_of_potentials() -> None:
    """A sequence that depends on its neighbours, for finite results and for numbers with noise."""
    text = """variables:
  input x in {0, 1}^3
  output O DOMAIN
background: x ~ proportional(exp(x[1] * x[2]) * (1 + x[3]) / (1 + x[2]))
loss: E[ (O - sum(x))^2 ]
privacy: O is 1-DP wrt x, replacing one entry, given the model
"""
    worlds = list(product((0, 1), repeat=3))

    def chance(x: tuple[int, ...]) -> float:
        return exp(x[0] * x[1]) * (1 + x[2]) / (1 + x[1])

    whole = sum(map(chance, worlds))
    finite = solved_text(text.replace("DOMAIN", "in 0..3"))
    expected = least(worlds, lambda x: chance(x) / whole, lambda x, z: (z - sum(x)) ** 2, ENTRIES, 4, 1)
    assert finite["loss"]["value"] == pytest.approx(expected, rel=1e-6)
    noisy = solved_text(text.replace("DOMAIN", ""))
    assert noisy["mechanism"]["family"] == "chain"
    scale = float(Fraction(noisy["mechanism"]["scale"]))
    laws = [dict.fromkeys(range(4), 0.0) for _ in range(6)]
    for x in worlds:
        for i in range(3):
            laws[2 * i + x[i]][sum(x)] += chance(x)
    decay = [[exp(-abs(o - s) / scale) for s in range(4)] for o in range(-9, 13)]
    shown = [[sum(law[s] * p[s] for s in law) / sum(law.values()) for p in decay] for law in laws]
    pairs = [pair for i in (0, 2, 4) for pair in permutations(shown[i : i + 2])]
    worst = max(p / q for one, other in pairs for p, q in zip(one, other, strict=True))
    assert worst == pytest.approx(exp(1), rel=1e-6)


def test_the_whole_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec, plan, data = (tmp_path / name for name in ("s.priv", "s.plan.json", "x.csv"))
    spec.write_text(CHAIN.replace("HIDDEN", "x, replacing one entry"), "utf-8")
    data.write_text("x\n1\n0\n1\n", "utf-8")
    assert run_command_line(["check", str(spec), "--problem"]) == 0
    assert "all other entries drawn from the model given that one" in capsys.readouterr().out
    assert run_command_line(["solve", str(spec), "-o", str(plan)]) == 0
    assert "Nothing checks it against data" in " ".join(capsys.readouterr().out.split())
    assert run_command_line(["verify", str(plan)]) == 0
    run = ["run", str(plan), "--input", f"x={data}", "--ledger", str(tmp_path / "l.db"), "--new-ledger"]
    assert run_command_line([*run, "-o", str(tmp_path / "out.json")]) == 0
    capsys.readouterr()
    assert run_command_line(["ledger", "show", str(tmp_path / "l.db")]) == 0
    shown = capsys.readouterr().out
    assert "wrt x, replacing everything" in shown
    assert "given the model" not in shown
    for reader in ("public", "auditor", "engineer"):
        assert run_command_line(["explain", str(plan), "--for", reader, "-o", str(tmp_path / f"{reader}.md")]) == 0
        assert "declared and not checked" in " ".join((tmp_path / f"{reader}.md").read_text("utf-8").split())
    assert "They know the model" in (tmp_path / "public.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("group ~ categorical([2, 1])", "answer ~ uniform", "PS0405"),
        ("group ~ categorical([2, 1])", "group ~ categorical(t[answer])", "PS0406"),
        ("  group ~ categorical([2, 1])\n", "", "PS0340"),
        ("0.5-DP", "0.5-zCDP", "PS0501"),
        ("wrt group,", "wrt group, replacing up to 2 records,", "PS0340"),
        ("categorical(t[group])", "proportional(exp(0.5 + group))", "PS0208"),
    ],
)
def test_what_the_model_does_not_say_is_refused(old: str, new: str, code: str) -> None:
    text = NETWORK.replace("MEASURE", "DP")
    with pytest.raises(SpecError) as error:
        Problem(text.replace(old, new)).solve()
    assert code in [one.code for one in error.value.diagnostics]


# --- facts about data ----------------------------------------------------------------------------

SEATS = """variables:
  input x in (0..2)^3
  output z in 0..2
background:
  sum(x) = 3
  x[1] <= x[2]
loss: worst[ |z - x[2]| ]
privacy: z is 1-DP wrt x, replacing up to 2 entries
"""


def test_only_data_that_exist_are_compared() -> None:
    found = solved_text(SEATS)
    worlds = [x for x in product(range(3), repeat=3) if sum(x) == 3 and x[0] <= x[1]]
    pairs = [(a, b) for a, b in permutations(worlds, 2) if sum(p != q for p, q in zip(a, b, strict=True)) <= 2]
    assert [[int(n) for n in row] for row in found["mechanism"]["inputs"]] == [list(x) for x in worlds]
    # variables: the table, and the worst case
    size = len(worlds) * 3 + 1
    rows = []
    for a, b in pairs:
        for z in range(3):
            row = np.zeros(size)
            row[worlds.index(a) * 3 + z], row[worlds.index(b) * 3 + z] = 1, -exp(1)
            rows.append(row)
    for k, x in enumerate(worlds):
        row = np.zeros(size)
        row[k * 3 : k * 3 + 3], row[-1] = [abs(z - x[1]) for z in range(3)], -1
        rows.append(row)
    sums = np.hstack([np.kron(np.eye(len(worlds)), np.ones(3)), np.zeros((len(worlds), 1))])
    least_worst = linprog(np.eye(size)[-1], np.array(rows), np.zeros(len(rows)), sums, np.ones(len(worlds))).fun
    assert found["loss"]["value"] == pytest.approx(least_worst, rel=1e-6)
    everywhere = solved_text(SEATS.replace("  sum(x) = 3\n  x[1] <= x[2]\n", "  x ~ uniform\n"))
    assert found["loss"]["value"] < everywhere["loss"]["value"]


def test_a_law_is_that_of_data_that_exist() -> None:
    text = """variables:
  input low in 0..2
  input high in 0..2
  output z in 0..2
background:
  low <= high
  (low, high) ~ categorical([[1, 2, 3], [9, 4, 1], [9, 9, 1]])
loss: E[ (z - high)^2 ]
privacy: z is 2-DP wrt low, given the model
"""
    found = solved_text(text)
    assert found["problem"]["blocks"][0]["prior"] == {"shape": [6], "unit": "1/12", "rows": [1, 2, 3, 4, 1, 1]}
    chances = dict(zip([(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)], [1, 2, 3, 4, 1, 1], strict=True))
    expected = least(list(chances), lambda w: chances[w] / 12, lambda w, z: (z - w[1]) ** 2, [lambda w: w[0]], 3, 2)
    assert found["loss"]["value"] == pytest.approx(expected, rel=1e-6)


def test_a_fact_that_the_spec_does_not_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A plan whose rows are fewer than the data that the spec allows."""
    honest, fewer = (
        json.loads(json.dumps(solved_text(text))) for text in (SEATS.replace("  x[1] <= x[2]\n", ""), SEATS)
    )
    assert len(honest["problem"]["facts"]) == 1
    for forged_one in (fewer | {"spec": honest["spec"]}, honest | {"problem": fewer["problem"]}):
        path = tmp_path / "forged.json"
        path.write_text(json.dumps(resign(forged_one)), "utf-8")
        assert run_command_line(["verify", str(path)]) == 7
        assert "failed  problem" in capsys.readouterr().out


def test_facts_the_whole_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec, plan, data = (tmp_path / name for name in ("s.priv", "s.plan.json", "x.csv"))
    spec.write_text(SEATS, "utf-8")
    assert run_command_line(["check", str(spec), "--problem"]) == 0
    assert "no line compares others: `sum(x) = 3`" in capsys.readouterr().out
    assert run_command_line(["solve", str(spec), "-o", str(plan)]) == 0
    assert "Nothing is promised of data of which it is not" in " ".join(capsys.readouterr().out.split())
    run = ["run", str(plan), "--input", f"x={data}", "--ledger", str(tmp_path / "l.db"), "--new-ledger", "-o"]
    for name, values, code in (("a", "2\n1\n1", 2), ("b", "0\n1\n2", 0)):
        data.write_text(f"x\n{values}\n", "utf-8")
        done = run_command_line([*run, str(tmp_path / f"{name}.json")])
        assert (done == 0) == (code == 0)
    assert "PS0821" in capsys.readouterr().err
    for reader in ("public", "auditor", "engineer"):
        assert run_command_line(["explain", str(plan), "--for", reader, "-o", str(tmp_path / f"{reader}.md")]) == 0
        assert "sum(x) = 3" in (tmp_path / f"{reader}.md").read_text("utf-8"), reader


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("sum(x) = 3", "sum(x) = 7", "PS0345"),
        (", replacing up to 2 entries", ", replacing one entry", "PS0346"),
        ("z in 0..2", "z", "PS0501"),
    ],
)
def test_facts_that_do_not_fit(old: str, new: str, code: str) -> None:
    text = SEATS.replace(old, new)
    with pytest.raises(SpecError) as error:
        Problem(text).solve()
    assert code in [one.code for one in error.value.diagnostics]


# --- values that a graph joins --------------------------------------------------------------------

BANDS = """variables:
  input band in 1..5
  output z in 1..5
background: band ~ categorical([4, 3, 2, 2, 1])
loss: E[ |z - band| ]
privacy: z is 1-DP wrt band, replacing band by a neighbour in GRAPH
"""
PATH = "[[1, 2], [2, 3], [4, 5]]"


def of_graph(edges: list[tuple[int, int]]) -> float:
    rows, prior = [], np.array([4, 3, 2, 2, 1]) / 12
    for a, b in [pair for edge in edges for pair in permutations(edge)]:
        for z in range(5):
            row = np.zeros((5, 5))
            row[a - 1, z], row[b - 1, z] = 1, -exp(1)
            rows.append(row.ravel())
    costs = prior[:, None] * np.abs(np.subtract.outer(range(5), range(5)))
    found = linprog(costs.ravel(), rows, np.zeros(len(rows)), np.kron(np.eye(5), np.ones(5)), np.ones(5))
    return float(found.fun)


@pytest.mark.parametrize(
    ("graph", "edges"),
    [(PATH, [(1, 2), (2, 3), (4, 5)]), ("[[1, 2, 3]]", [(1, 2), (2, 3), (1, 3)]), ("[{5, 1}]", [(1, 5)])],
)
def test_values_are_hidden_among_their_neighbours(graph: str, edges: list[tuple[int, int]]) -> None:
    found = solved_text(BANDS.replace("GRAPH", graph))
    assert found["loss"]["value"] == pytest.approx(of_graph(edges), rel=1e-6)
    assert found["status"] == "optimal"


def test_a_graph_of_a_file_is_that_graph(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("from,to\n1,2\n2,3\n4,5\n", "utf-8")
    text = BANDS.replace("GRAPH", 'csv("edges.csv")')
    assert Problem(text, base=tmp_path).solve().loss.value == pytest.approx(
        of_graph([(1, 2), (2, 3), (4, 5)]), rel=1e-6
    )


def test_a_graph_the_whole_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec, plan, data = (tmp_path / name for name in ("s.priv", "s.plan.json", "band.csv"))
    spec.write_text(BANDS.replace("GRAPH", PATH), "utf-8")
    data.write_text("band\n4\n", "utf-8")
    assert run_command_line(["check", str(spec), "--problem"]) == 0
    assert f"If band becomes a neighbour of what it is in `{PATH}`" in capsys.readouterr().out
    assert run_command_line(["solve", str(spec), "-o", str(plan)]) == 0
    run = ["run", str(plan), "--input", f"band={data}", "--ledger", str(tmp_path / "l.db"), "--new-ledger", "-o"]
    assert run_command_line([*run, str(tmp_path / "out.json")]) == 0
    for reader in ("public", "auditor", "engineer"):
        assert run_command_line(["explain", str(plan), "--for", reader, "-o", str(tmp_path / f"{reader}.md")]) == 0
        page = " ".join((tmp_path / f"{reader}.md").read_text("utf-8").split())
        assert "hidden less" in page or "as often as there are steps" in page
    document = json.loads(plan.read_text("utf-8"))
    pairs = document["problem"]["blocks"][0]["compared"][0]["pairs"]
    pairs["rows"], pairs["shape"] = pairs["rows"][3:], [2, 3]
    plan.write_text(json.dumps(resign(document)), "utf-8")
    assert run_command_line(["verify", str(plan)]) == 7
    assert "failed  problem" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("GRAPH", "[[1, 6]]", "PS0347"),
        ("GRAPH", "[1, 2]", "PS0347"),
        ("replacing band", "replacing one entry of", "PS0101"),
        ("replacing band", "replacing other", "PS0347"),
        ("replacing band", "adding or removing band", "PS0347"),
        ("z in 1..5", "z", "PS0501"),
    ],
)
def test_graphs_that_do_not_fit(old: str, new: str, code: str) -> None:
    with pytest.raises(SpecError) as error:
        Problem(BANDS.replace(old, new).replace("GRAPH", PATH)).solve()
    assert code in [one.code for one in error.value.diagnostics]


# --- averages given several values ----------------------------------------------------------------

LOAN = """parameters: joint = [[[10, 2], [6, 12]], [[25, 5], [10, 30]]]
variables:
  input A in {0, 1}
  input X in {lo, hi}
  input Y in {0, 1}
  output D in {0, 1}
background:
  (A, X, Y) ~ categorical(joint)
  LINE
loss: E[ mismatch(D, Y) ]
privacy: D is 2-DP wrt A
FAIR
"""
JOINT = np.array([[[10, 2], [6, 12]], [[25, 5], [10, 30]]]) / 100


def of_loan(equal: list[np.ndarray], below: list[np.ndarray]) -> float:
    """The least loss over Pr(D = 1 | A, X, Y), with sums that are zero, or at most zero."""
    for x, y, a in product((0, 1), repeat=3):
        for factor in ((1, -exp(2)), (-exp(2), 1)):
            row = np.zeros((2, 2, 2))
            row[:, x, y] = factor
            below = [*below, row] if not a else below
    signs = np.array([1, -1])  # y = 0: D = 1 is wrong
    costs = JOINT * signs
    bounds = [row.ravel() for row in below]
    # also of D = 0
    flipped = [(-row.ravel(), -row.sum()) for row in below[-8:]]
    rows, limits = [*bounds, *(row for row, _ in flipped)], [0.0] * len(bounds) + [limit for _, limit in flipped]
    equalities = np.array([row.ravel() for row in equal]) if equal else None
    found = linprog(costs.ravel(), rows, limits, equalities, np.zeros(len(equal)) if equal else None, (0, 1))
    return float(found.fun) + float(JOINT[:, :, 1].sum())


def rate(of: np.ndarray) -> np.ndarray:
    """The average of D over some people."""
    shares = JOINT * of
    return shares / shares.sum()


def test_a_predictor_that_may_not_look() -> None:
    found = solved_text(LOAN.replace("LINE", "E[D | A, X, Y] = E[D | A, X]").replace("FAIR", ""))
    equal = []
    for a, x, y in product((0, 1), repeat=3):
        one, both = np.zeros((2, 2, 2)), np.zeros((2, 2, 2))
        one[a, x, y], both[a, x, :] = 1, 1
        equal.append(rate(one) - rate(both))
    assert found["loss"]["value"] == pytest.approx(of_loan(equal, []), rel=1e-6)
    assert found["status"] == "optimal"
    law = [float(Fraction(row[1])) for row in found["mechanism"]["probabilities"]]
    assert law[::2] == law[1::2]


def test_a_rule_between_two_values() -> None:
    found = solved_text(LOAN.replace("LINE", "E[D | X = hi, Y = 1] <= 1.2 * E[D | X = lo]").replace("FAIR", ""))
    one, other = np.zeros((2, 2, 2)), np.zeros((2, 2, 2))
    one[:, 1, 1], other[:, 0, :] = 1, 1
    assert found["loss"]["value"] == pytest.approx(of_loan([], [rate(one) - 1.2 * rate(other)]), rel=1e-6)
    (condition,) = found["problem"]["blocks"][0]["conditions"]
    assert condition["joint"]["shape"] == [1, 16]


def test_independence_given_several() -> None:
    text = LOAN.replace("  LINE\n", "").replace("FAIR", "fairness: D is independent of A given (X, Y)")
    equal = []
    for x, y in product((0, 1), repeat=2):
        row = np.zeros((2, 2, 2))
        row[0, x, y], row[1, x, y] = 1, -1
        equal.append(row)
    assert solved_text(text)["loss"]["value"] == pytest.approx(of_loan(equal, []), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("change", ["table", "line"])
def test_a_line_that_does_not_hold(tmp_path: Path, change: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = solved_text(LOAN.replace("LINE", "E[D | A, X, Y] = E[D | A, X]").replace("FAIR", ""))
    document = json.loads(json.dumps(found))
    if change == "table":
        rows = document["mechanism"]["probabilities"]
        rows[0] = [str(Fraction(rows[0][0]) * Fraction(99, 100)), str(1 - Fraction(rows[0][0]) * Fraction(99, 100))]
    else:
        grid = document["problem"]["blocks"][0]["conditions"][0]["joint"]
        grid["rows"] = [0] * len(grid["rows"])
    path = tmp_path / "forged.json"
    path.write_text(json.dumps(resign(document)), "utf-8")
    assert run_command_line(["verify", str(path)]) == 7
    assert f"failed  {'conditions' if change == 'table' else 'problem'} " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("E[D | X = nowhere] <= E[D | A = 1]", "PS0323"),
        ("E[D | A + Y, X] <= 1", "PS0502"),
        ("E[D | A, X] * E[D | A, Y] <= 1", "PS0502"),
        ("E[D | A, X] <= Y", "PS0502"),
        ("E[D | A, B] <= 1", "PS0201"),
    ],
)
def test_averages_that_do_not_fit(line: str, code: str) -> None:
    with pytest.raises(SpecError) as error:
        Problem(LOAN.replace("LINE", line).replace("FAIR", "")).solve()
    assert code in [one.code for one in error.value.diagnostics]


# --- parts that run by what is released -----------------------------------------------------------

STAGES = """components:
  first = spec(howmany, x = x)
  second = spec(meanof, x = x, only_if = CONDITION)
variables:
  input x in [0, 1]^8
loss: first.loss + second.loss
privacy: (first.s, second.O) is 60-DP wrt x, replacing one entry

spec howmany
variables:
  input x in [0, 1]^8
  output s
  output go in {0, 1} = at_least(s, 4)
  output twice in 0..20 = 2 * s
loss: E[ (s - sum(x))^2 ]
privacy: s is 30-DP wrt x, replacing one entry

spec meanof
variables:
  input x in [0, 1]^8
  output O
loss: E[ (O - mean(x))^2 ]
privacy: O is 30-DP wrt x, replacing one entry
"""


@pytest.mark.parametrize(
    ("condition", "words", "runs"),
    [
        ("first.go", "first.s >= 4", (False, True)),
        ("(first.s > 4)", "first.s > 4", (False, True)),
        ("(first.s <= 4)", "first.s <= 4", (True, False)),
        ("first.s", "first.s is not 0", (True, True)),
    ],
)
def test_a_part_that_runs_by_a_released_number(
    condition: str, words: str, runs: tuple[bool, bool], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec, plan, data = (tmp_path / name for name in ("s.priv", "s.plan.json", "x.csv"))
    spec.write_text(STAGES.replace("CONDITION", condition), "utf-8")
    assert run_command_line(["solve", str(spec), "-o", str(plan)]) == 0
    assert run_command_line(["verify", str(plan)]) == 0
    assert f"second.O: drawn only if {words};" in capsys.readouterr().out
    assert run_command_line(["explain", str(plan), "--for", "auditor", "-o", str(tmp_path / "a.md")]) == 0
    assert "is drawn only if, as released, first.s" in (tmp_path / "a.md").read_text("utf-8")
    for number, (value, drawn) in enumerate(zip(("0", "1"), runs, strict=True)):  # the sum is about 0, or about 8
        data.write_text("x\n" + f"{value}\n" * 8, "utf-8")
        ledger, out = tmp_path / f"l{number}.db", tmp_path / f"out{number}.json"
        run = ["run", str(plan), "--input", f"x={data}", "--ledger", str(ledger), "--new-ledger", "-o", str(out)]
        assert run_command_line(run) == 0
        assert ("second.O" in json.loads(out.read_text("utf-8"))["outputs"]) == drawn


def test_another_condition_than_that_of_the_spec(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(json.dumps(solved_text(STAGES.replace("CONDITION", "first.go"))))
    path = tmp_path / "forged.json"
    for key, value, claim in (("sign", "<", "problem"), ("sign", "~", ""), ("only_if", "second.O", "")):
        other = json.loads(json.dumps(document))
        (one,) = (part for part in other["problem"]["blocks"][0]["parts"] if part["only_if"])
        one[key] = value
        path.write_text(json.dumps(resign(other)), "utf-8")
        assert run_command_line(["verify", str(path)]) != 0
        assert claim in capsys.readouterr().out


@pytest.mark.parametrize("condition", ["first.twice", "(first.s > first.twice)", "(2 > 1)", "second.O"])
def test_conditions_that_compare_no_released_number(condition: str) -> None:
    with pytest.raises(SpecError) as error:
        Problem(STAGES.replace("CONDITION", condition)).solve()
    assert {one.code for one in error.value.diagnostics} & {"PS0425", "PS0201"}
