import re

import pytest

from privspec.explain.additive import grouped, noise_plot
from privspec.explain.auditor import TRADEOFF_MARKS, tradeoff_plot
from privspec.explain.curves import EpsilonDeltaCurve, GaussianCurve
from privspec.explain.document import Plot
from privspec.explain.drawing import WIDTH, Scale
from privspec.explain.engineer import alternatives_plot, frontier_plot
from privspec.sweep import Row, frontier_svg

from .plans import LINEAR, facts, plan


def _all(name: str) -> list[Plot]:
    found = facts(plan(name))
    plots = [noise_plot(found.mechanism.sites), alternatives_plot(found)]
    plots += [tradeoff_plot(found, c, i) for i, c in enumerate(found.claims)]
    plots += [frontier_plot(found.frontier) if found.frontier else None]
    return [p for p in plots if p is not None]


@pytest.mark.parametrize("name", LINEAR)
def test_drawings_are_deterministic_and_labelled(name: str) -> None:
    plots = _all(name)
    for plot in plots:
        assert plot.alt.endswith(".")
        assert plot.twin.rows
        assert all(len(row) == len(plot.twin.header) for row in plot.twin.rows)
        first = plot.draw()
        assert plot is not plots[0] or first == plot.draw()
        assert first.startswith("<svg")
        assert "<metadata" not in first
        assert "<style" not in first


def test_chosen_points_are_drawn_with_their_numbers() -> None:
    found = facts(plan("prefix_sums"))
    assert found.frontier is not None
    svg = frontier_plot(found.frontier).draw()
    assert "this plan: 5,036.71" in svg
    dots = alternatives_plot(found)
    assert dots is not None
    assert all(a.loss.text in dots.draw() for a in found.alternatives)
    assert "5,036.71" in dots.draw()


def test_twin_of_the_tradeoff_plot_is_the_curve_rounded_down() -> None:
    whole = facts(plan("prefix_sums"))
    found = whole.claims[0]
    plot = tradeoff_plot(whole, found, 1)
    assert plot is not None
    curves = [c for c in (found.claim.achieved, found.claim.promised) if c is not None]
    assert [type(c) for c in curves] == [GaussianCurve, EpsilonDeltaCurve]
    for share, row in zip(TRADEOFF_MARKS, plot.twin.rows, strict=True):
        for curve, cell in zip(curves, row[1:], strict=True):
            printed = float(cell.removesuffix(" %")) / 100
            assert 0 <= curve.misses(float(share)) - printed < 2e-3


def test_twin_of_the_noise_plot_is_complete() -> None:
    found = facts(plan("prefix_sums"))
    plot = noise_plot(found.mechanism.sites)
    assert plot is not None
    assert len(plot.twin.rows) == 64
    assert [float(row[2]) for row in plot.twin.rows] == pytest.approx(found.mechanism.outputs[0].deviations, rel=5e-3)


def test_bars_of_all_panels_have_one_scale() -> None:
    """The tallest bar of each panel is as tall as its number says, in the same units."""
    found = facts(plan("two_observers")).mechanism.sites
    plot = noise_plot(found)
    assert plot is not None
    svg = plot.draw()
    heights = [float(height) for height in re.findall(r'<rect [^>]*height="([\d.]+)"', svg)]
    sizes = [size for site in found for size in site.deviations]
    assert len(heights) == len(sizes)
    assert [h / heights[0] for h in heights] == pytest.approx([s / sizes[0] for s in sizes], rel=0.01)


@pytest.mark.parametrize("name", LINEAR)
def test_labels_stand_inside_their_drawing(name: str) -> None:
    """By the width that letters have on average."""
    said = re.compile(
        r'<text x="([-\d.]+)" y="[\d.]+" font-size="9" text-anchor="(\w+)" fill="[^"]+"(?! transform)[^>]*>([^<]+)'
    )
    for plot in _all(name):
        for x, anchor, words in said.findall(plot.draw()):
            wide = 4.6 * len(words)
            left = float(x) - {"start": 0, "middle": wide / 2, "end": wide}[anchor]
            assert left >= 0, (plot.name, words)
            assert left + wide <= WIDTH + 6, (plot.name, words)


@pytest.mark.parametrize(("low", "high"), [(0.96, 1.04), (171, 218), (5, 5e8), (1e-9, 3e-9), (0.002, 40)])
def test_ticks_are_round_few_and_inside(low: float, high: float) -> None:
    for scale in (Scale(low, high, 50, 350, logarithmic=True), Scale(low, high, 170, 10), Scale(0, high, 50, 350)):
        found = scale.ticks()
        assert 1 <= len(found) <= 12
        assert all(scale.low * (1 - 1e-9) <= one <= scale.high * (1 + 1e-9) for one in found)
        assert all(float(f"{one:.3g}") == pytest.approx(one, rel=1e-9) for one in found)
        places = [scale(one) for one in found]
        assert places == sorted(places, reverse=scale.start > scale.stop)


def test_many_coordinates_are_grouped() -> None:
    labels, heights = grouped([3.0] * 999 + [30.0])
    assert len(labels) <= 64
    assert labels[0] == "1–16"
    assert labels[-1].endswith("1,000")
    assert heights[0] == pytest.approx(3.0)
    assert heights[-1] > 3.0


def test_sweep() -> None:
    rows = [Row(str(e), 100 / e**2, 98 / e**2, None, "") for e in (0.1, 0.5, 1.0, 10.0)]
    rows.append(Row("20", None, None, None, ""))
    svg = frontier_svg("epsilon", rows)
    assert svg is not None
    assert svg == frontier_svg("epsilon", rows)
    assert svg.lstrip().startswith("<?xml")
    assert "certified lower bound" in svg
    assert "epsilon" in svg
    assert not re.search(r"var\(", svg)
    assert frontier_svg("epsilon", [Row("1", None, None, None, "")]) is None
    assert frontier_svg("epsilon", []) is None
