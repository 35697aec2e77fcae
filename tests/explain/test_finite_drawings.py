"""Heat maps and maps: every cell is there, as dark as it should be, and the tables beside them tell the same."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from fractions import Fraction

import pytest

from privspec.explain.document import Plot
from privspec.explain.drawing import MOST_CELLS, SHADES
from privspec.explain.tables import TableFact, table_plots

from .plans import Plan, facts, plan

SVG = "{http://www.w3.org/2000/svg}"


def drawn(found: Plan) -> dict[str, Plot]:
    mechanism = facts(found).mechanism
    assert isinstance(mechanism, TableFact)
    return {plot.name: plot for plot in table_plots(mechanism.table)}


def cells(svg: str) -> dict[tuple[float, float], int]:
    """The shade of each cell by its corner."""
    found = {}
    for path in ET.fromstring(svg).iter(f"{SVG}path"):
        shade = round(float(path.get("fill-opacity", "0")) * SHADES)
        for x, y in re.findall(r"M([\d.]+) ([\d.]+)h", path.get("d", "")):
            assert (float(x), float(y)) not in found
            found[float(x), float(y)] = shade
    return found


@pytest.mark.parametrize("name", ["commuting", "counting"])
def test_every_probability_is_a_cell(name: str) -> None:
    found = plan(name)
    shades = cells(drawn(found)["table"].draw())
    rows = [[Fraction(p) for p in row] for row in found["mechanism"]["probabilities"]]
    assert len(shades) == sum(p > 0 for row in rows for p in row)
    xs, ys = (sorted({place[i] for place in shades}) for i in (0, 1))
    largest = max(map(max, rows))
    for (x, y), shade in shades.items():
        share = rows[ys.index(y)][xs.index(x)]
        assert share / largest <= Fraction(shade, SHADES) + Fraction(1, 10**9)
        assert Fraction(shade - 1, SHADES) <= share / largest


def test_zeros_stay_empty() -> None:
    found = plan("commuting")
    found["mechanism"]["probabilities"][0] = ["1", "0", "0", "0"]
    assert len(cells(drawn(found)["table"].draw())) == 13


def test_small_tables_have_numbers_and_large_ones_none() -> None:
    small = drawn(plan("counting"))["table"]
    texts = [t.text for t in ET.fromstring(small.draw()).iter(f"{SVG}text")]
    assert texts.count(".46") == 9
    assert "·" in texts  # less than a hundredth, and not 0
    assert len(small.twin.rows) == 11
    assert len(small.twin.header) == 12
    large = drawn(plan("kilometres"))["table"]
    assert not [t.text for t in ET.fromstring(large.draw()).iter(f"{SVG}text") if (t.text or "").startswith(".")]
    assert large.twin.header == ("x", "Likeliest", "With probability", "The true value with")


def test_numbers_beside_the_drawing_are_those_of_the_plan() -> None:
    found = plan("counting")
    for row, shares in zip(drawn(found)["table"].twin.rows, found["mechanism"]["probabilities"], strict=True):
        for cell, share in zip(row[1:], shares, strict=True):
            assert float(cell) == pytest.approx(float(Fraction(share)), rel=5e-3)


def test_large_tables_are_drawn_as_blocks() -> None:
    found = plan("commuting")
    size = 250
    words = [str(i) for i in range(size)]
    rows = [["1" if a == b else "0" for b in range(size)] for a in range(size)]
    found["mechanism"] |= {"inputs": words, "outputs": words, "probabilities": rows}
    prior = {"shape": [size], "unit": f"1/{size}", "rows": [1] * size}
    (block,) = found["problem"]["blocks"]
    block |= {"rows": words, "columns": words, "places": [list(range(size))], "prior": prior}
    plot = drawn(found)["table"]
    assert "means of blocks" in plot.caption
    assert len(plot.draw()) < 100_000
    assert len(cells(plot.draw())) <= MOST_CELLS
    assert "84 of 250 rows" in plot.twin.caption


def test_each_output_has_its_own_heat_map() -> None:
    found = drawn(plan("two_counts"))
    assert list(found) == ["table", "table2", "table3"]
    assert [len(cells(plot.draw())) for plot in found.values()] == [15, 25, 75]
    assert "rough" in found["table"].alt
    assert "rough and fine" in found["table3"].alt


def test_maps_of_places() -> None:
    found = drawn(plan("places"))
    root = ET.fromstring(found["maps"].draw())
    rings = [(float(c.get("cx", "0")), float(c.get("cy", "0"))) for c in root.iter(f"{SVG}circle")]
    assert len(rings) == 4
    assert [row[0] for row in found["maps"].twin.rows] == ["(2, 2)", "(4, 4)", "(1, 4)", "(4, 1)"]
    assert len(cells(found["maps"].draw())) == 64
    # the second coordinate grows upwards: (4, 4) lies above (4, 1) within its map
    tops = [(float(r.get("y", "0")), float(r.get("height", "0"))) for r in root.iter(f"{SVG}rect") if r.get("stroke")]
    inside = [(y - top) / height for (_, y), (top, height) in zip(rings, tops, strict=True)]
    assert inside == pytest.approx([0.625, 0.125, 0.125, 0.875], abs=0.01)
    assert "maps" not in drawn(plan("kilometres"))


def test_drawings_are_deterministic_and_escaped() -> None:
    found = plan("commuting")
    found["mechanism"]["inputs"][0] = found["problem"]["blocks"][0]["rows"][0] = "<b>&"
    svg = drawn(found)["table"].draw()
    assert svg == drawn(found)["table"].draw()
    assert "&lt;b&gt;&amp;" in svg
    assert "id=" not in svg
    long = plan("commuting")
    answers = long["mechanism"]["outputs"], long["problem"]["blocks"][0]["columns"]
    answers[0][2] = answers[1][2] = "a very long name of an answer"
    assert "a very long n…" in drawn(long)["table"].draw()
