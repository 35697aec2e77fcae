"""Systems in one picture: parts, data, observers and shares, with a table of the same, and a sentence for each line."""

from __future__ import annotations

from fractions import Fraction
from xml.etree import ElementTree

import pytest

from privspec.explain.quantities import rounded
from privspec.explain.system import PartOfPicture, curve_of, draw, system_plot
from privspec.kernel.core.problem import AskedMeasure
from privspec.kernel.measures import TOTAL_VARIATION
from privspec.plan import Plan
from tests.plans import solved

SVG = "{http://www.w3.org/2000/svg}"
PARTS = (
    PartOfPicture("mean", ("income",), "Gaussian <noise> & more", ("anyone",), "0.5-GDP", rounded(0.2)),
    PartOfPicture("votes", ("ballots", "income"), "a lottery", ("press", "auditors"), "1-DP", rounded(0.4)),
    PartOfPicture("a name that is much too long for its box " * 3, (), "", ("anyone",), "", None),
)


def test_the_picture_is_well_formed_and_shows_every_part() -> None:
    root = ElementTree.fromstring(draw(PARTS))
    words = ["".join(item.itertext()) for item in root.iter(f"{SVG}text")]
    for name in ("income", "ballots", "anyone", "press", "auditors", "mean", "votes", "spends 1-DP"):
        assert name in words
    assert "Gaussian <noise> & more" in words
    assert all(len(one) < 50 for one in words)
    assert len(list(root.iter(f"{SVG}path"))) == 3 + 4
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    for box in root.iter(f"{SVG}rect"):
        x, y, wide, high = (float(box.attrib[key]) for key in ("x", "y", "width", "height"))
        assert x >= 0
        assert y >= 0
        assert x + wide <= width
        assert y + high <= height
    bars = [float(box.attrib["width"]) for box in root.iter(f"{SVG}rect") if "accent" in box.attrib["fill"]]
    assert bars[1] == pytest.approx(2 * bars[0])
    assert bars[2] == 0
    ElementTree.fromstring(draw(()))


def test_the_table_says_what_the_picture_shows() -> None:
    twin = system_plot(PARTS).twin
    assert [row[0] for row in twin.rows] == [part.names for part in PARTS]
    assert twin.rows[1][1:] == ("ballots and income", "a lottery", "press and auditors", "1-DP", "0.4")
    assert system_plot(PARTS).alt.endswith("the longest bar is that of votes.")


@pytest.mark.parametrize(
    ("name", "amounts", "advantage"),
    [
        ("epsilon-DP", (("epsilon", "1"),), 0.46211716),
        ("(epsilon, delta)-DP", (("epsilon", "0"), ("delta", "1/4")), 0.25),
        ("mu-GDP", (("mu", "1"),), 0.38292492),
        ("rho-zCDP", (("rho", "1/2"),), 0.38292492),
    ],
)
def test_shares_in_one_currency(name: str, amounts: tuple[tuple[str, str], ...], advantage: float) -> None:
    curve = curve_of(AskedMeasure(name, tuple((key, Fraction(value)) for key, value in amounts), None, ()))
    assert curve is not None
    assert 1 - 2 * curve.equal_error() == pytest.approx(advantage, rel=1e-6)
    assert curve_of(AskedMeasure(TOTAL_VARIATION.name, (("advantage", Fraction(1, 4)),), None, ())) is None


def test_pages_of_a_system_show_it_and_say_what_each_part_spends_of_each_line() -> None:
    plan = Plan(solved("city_report"))
    for reader in ("auditor", "engineer"):
        page = " ".join(plan.explain(reader).split())
        assert "What each part is computed from, where its noise goes, who sees it, and its share" in page
        assert "Together they reach" in page
        for name in ("census and mean\\_income spend", "working\\_at\\_home spends", "project spends"):
            assert name in page
        html = plan.explain(reader, "html")
        assert "Parts, with noise" in html
        assert "Secret data" in html
