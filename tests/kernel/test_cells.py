"""Finite reports of a real number, before the kernel: against finer cells, other mechanisms, and forged plans."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import exp

import numpy as np
import pytest
from privspec.solvers.listed import cell_reports
from scipy import integrate, stats

from privspec.kernel import judge
from privspec.kernel.core.reading import JsonNode, Refused, read
from privspec.kernel.reports import CellBlock, lower_bound
from tests.plans import executed_of, mutate, solved, solved_text

SPEC = """spec cells
variables:
  input x in {domain}
  output z in {values}
{model}loss: {loss}
privacy:
  z is {epsilon}-LDP wrt x
"""


def plan(values="{0, 0.25, 0.5, 0.75, 1}", loss="worst[ (z - x)^2 ]", epsilon="2", domain="[0, 1]", law=""):
    model = f"background:\n  x ~ {law}\n" if law else ""
    return solved_text(SPEC.format(values=values, loss=loss, epsilon=epsilon, domain=domain, model=model))


def block_of(document):
    found = read(CellBlock, JsonNode(document["problem"]["blocks"][0], "block"))
    assert isinstance(found, CellBlock)
    return found


CASES = [
    ({"loss": "worst[ (z - x)^2 ]"}, None),
    ({"loss": "worst[ |z - x| ]", "values": "{0, 0.1, 0.5, 0.9}", "epsilon": "3"}, None),
    ({"loss": "E[ (z - x)^2 ]", "law": "uniform", "epsilon": "4"}, lambda x: 1.0),
    ({"loss": "E[ |z - x| ]", "law": "beta(2, 5)", "values": "{0.1, 0.3, 0.8}"}, stats.beta(2, 5).pdf),
    ({"loss": "2 * E[ (z - x)^2 ]", "law": "normal(0.3, 0.2)", "values": "0..1"}, stats.norm(0.3, 0.2).pdf),
    ({"loss": "E[ |z - x| ]", "law": "laplace(0.4, 0.3)"}, stats.laplace(0.4, 0.3).pdf),
    ({"loss": "E[ (z - x)^2 ]", "law": "exponential(3)"}, stats.expon(scale=1 / 3).pdf),
    ({"loss": "E[ |z - x| ]", "law": "gamma(2, 3)"}, stats.gamma(2, scale=1 / 3).pdf),
    ({"loss": "E[ (z - x)^2 ]", "law": "lognormal(-1, 0.5)"}, stats.lognorm(0.5, scale=np.exp(-1)).pdf),
    ({"loss": "E[ (z - x)^2 ]", "law": "uniform(0.2, 0.7)"}, lambda x: float(0.2 <= x <= 0.7)),
]


@pytest.mark.parametrize(("case", "density"), CASES, ids=[" ".join(case.values()) for case, _ in CASES])
def test_finer_cells_bring_nothing(case, density):
    """The program over ten times as many cells, with costs by quadrature, has the same optimum."""
    found = plan(**case)
    assert found["status"] == "optimal"
    block = block_of(found)
    power, values = block.power, np.array([float(value) for value in block.values])
    finer = [np.linspace(float(a), float(b), 11)[:-1] for a, b in pairwise(block.ends)]
    ends = np.append(np.concatenate(finer), float(block.ends[-1]))
    if density is None:
        errors = np.abs(values[None, :] - ends[:, None]) ** power
        costs = np.stack([errors[:-1], errors[1:]], axis=1)
    else:
        whole = integrate.quad(density, 0, 1, points=[0.2, 0.4, 0.7])[0]
        costs = np.array(
            [
                [integrate.quad(lambda x, y=y: abs(y - x) ** power * density(x), a, b)[0] / whole for y in values]
                for a, b in pairwise(ends)
            ]
        )
    best = cell_reports(costs, exp(float(found["guarantees"][0]["epsilon"])))
    # the sum of the multipliers is the optimum, by duality
    assert float(best.rows.sum()) * float(block.weight) == pytest.approx(found["loss"]["value"], rel=1e-6)


def test_random_mechanisms_of_the_number_itself_are_no_better():
    """Random tables over 60 points of the line that satisfy the line cost no less than the bound."""
    found = plan(loss="worst[ |z - x| ]", epsilon="1")
    bound, values = found["loss"]["lower_bound"], np.array([0, 0.25, 0.5, 0.75, 1])
    rng, points, ratio = np.random.default_rng(4), np.linspace(0, 1, 61), np.exp(1)
    for _ in range(300):
        least = rng.dirichlet(np.full(5, rng.uniform(0.2, 3))) * rng.uniform(1 / ratio, 1)
        table = np.tile(least, (61, 1))
        for row, x in zip(table, points, strict=True):
            left = 1 - row.sum()
            order = np.argsort(np.abs(values - x) + rng.normal(0, 0.2))
            for y in order:
                more = min(left, (ratio - 1) * least[y])
                row[y] += more
                left -= more
        assert (table.max(axis=0) <= table.min(axis=0) * ratio + 1e-12).all()
        assert np.max((table * np.abs(values - points[:, None])).sum(axis=1)) >= bound - 1e-12


def test_any_multipliers_are_a_bound():
    found = plan(loss="worst[ (z - x)^2 ]")
    block, rng = block_of(found), np.random.default_rng(9)
    for _ in range(50):
        witness = {
            "rows": rng.normal(0, 0.05, block.cells).tolist(),
            "ends": rng.uniform(0, 1, (block.cells, 2)).tolist(),
        }
        assert float(lower_bound(block, Fraction(2), JsonNode(witness, "bound"))) <= found["loss"]["value"]


def test_rows_are_exact_and_spend_the_epsilon():
    found = plan(epsilon="0.7", loss="worst[ |z - x| ]")
    cells = executed_of(found)
    assert all(sum(row) == cells.term.whole for row in cells.term.rows)
    assert 0.7 - 1e-9 < cells.epsilon() <= Fraction(7, 10)
    assert cells.block.cell(Fraction(1, 8)) == 1
    assert (cells.block.cell(Fraction(-1)), cells.block.cell(Fraction(2))) == (0, cells.block.cells - 1)


def said(report):
    return " ".join(claim.text for claim in report.claims if not claim.holds)


def test_forged_plans_are_refused():
    found = plan()
    assert judge(JsonNode(found, "plan")).ok
    rows, wide = found["mechanism"]["table"]["rows"], 5
    at = ("mechanism", "table", "rows")
    moved = list(rows)
    moved[0], moved[1] = moved[0] + moved[1] // 2, moved[1] - moved[1] // 2
    swapped = rows[-wide:] + rows[wide:-wide] + rows[:wide]
    never = [rows[0] + rows[4], *rows[1:4], 0, *rows[wide:]]
    ends = found["problem"]["blocks"][0]["ends"]
    for path, value, words in (
        (at, moved, "where 2 is asked for"),
        (at, swapped, "is not what the problem and the mechanism say"),
        (at, never, "a ratio without limit"),
        (at, [rows[0] + 1, *rows[1:]], "is no law"),
        (at, [-rows[0], *rows[1:]], "is no law"),
        (("problem", "blocks", 0, "ends"), [ends[0], *ends[2:]], "one value becomes nearer than another"),
        (("problem", "blocks", 0, "ends"), ends[::-1], "not in order"),
        (("problem", "blocks", 0, "ends"), [ends[0], "0.01", *ends[1:]], "is not of"),
        (("guarantees", 0, "achieved", "epsilon"), "1.9", "the plan states 1.9"),
        (("loss", "value"), 0.1, "is not what"),
        (("loss", "among"), "all tables", "is not what the bound is about"),
        (("claims", "bound", "ends"), [[-1.0, 1.0]] * (len(ends) - 1), "are no weights"),
        (("claims", "bound", "rows"), [9.0] * (len(ends) - 1), "no such mechanism has a loss below"),
        (("problem", "blocks", 0, "source"), "y", "about other data"),
    ):
        report = judge(JsonNode(mutate(found, path, value), "plan"))
        assert not report.ok, path
        if words != "is not of":
            assert words in said(report), (path, said(report))


def test_a_bound_that_is_not_proved_is_left_out():
    found = plan()
    bare = mutate(mutate(found, ("claims",), {}), ("status",), "feasible")
    bare = mutate(mutate(bare, ("loss", "lower_bound"), None), ("loss", "relative_gap"), None)
    assert judge(JsonNode(bare, "plan")).ok
    assert not judge(JsonNode(mutate(bare, ("status",), "optimal"), "plan")).ok


def test_blocks_that_are_none_are_refused():
    block = solved("rounded_answers")["problem"]["blocks"][0]
    for key, value in (("values", ["2", "0"]), ("values", ["0"]), ("power", 3), ("weight", "0"), ("count", 2)):
        with pytest.raises(Refused):
            read(CellBlock, JsonNode(block | {key: value}, "block"))
