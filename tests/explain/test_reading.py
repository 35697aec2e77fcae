"""What a reader found: noise stated by sites, one format of numbers, equal losses, accuracy lines, commands."""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ET
from itertools import product

import pytest

from privspec.core.spans import Source
from privspec.explain.additive import bar_size, noise_plot
from privspec.explain.curves import EpsilonDeltaCurve, GaussianCurve, odds
from privspec.explain.drawing import Line, line_chart
from privspec.explain.graphs import graph_svg
from privspec.explain.reports import READERS
from privspec.model.build import load_model
from tests.plans import solved

from .plans import PREFIX_SUMS, TWO_OBSERVERS, Plan, explain, facts, page, plan, words

ANSWERS = 210


def estimating_inputs() -> Plan:
    """A plan whose outputs are computed from estimates of the inputs: its sites alone state the variances."""
    document = solved("range_queries", oldest=19)
    mechanism = document["mechanism"]
    assert mechanism["executed"].get("of_inputs")
    assert "output_covariance" not in mechanism
    mechanism["sites"] = [{"at": "O", "covariance": "full", "variance": [4.0] * (ANSWERS - 1) + [9.0]}]
    return document


@pytest.mark.parametrize("reader", READERS)
def test_variances_of_sites_are_used_where_inputs_are_estimated(reader: str) -> None:
    document = estimating_inputs()
    assert [o.largest.text for o in facts(document).mechanism.outputs] == ["3"]
    assert "does not say how large the noise" not in explain(document, reader)


@pytest.mark.parametrize("change", [{"at": "x"}, {"variance": [1.0]}])
def test_variances_of_sites_must_cover_the_outputs(change: dict[str, object]) -> None:
    document = estimating_inputs()
    document["mechanism"]["sites"][0] |= change
    assert facts(document).mechanism.outputs == ()


def test_bars_that_stand_for_several_numbers_say_so() -> None:
    plot = noise_plot(facts(estimating_inputs()).mechanism.sites)
    assert plot is not None
    assert bar_size(ANSWERS) == 4
    assert "each bar is the root mean square of 4 numbers in a row" in plot.caption
    single = noise_plot(facts(plan("prefix_sums")).mechanism.sites)
    assert single is not None
    assert "root mean square" not in single.caption
    assert "coordinate by coordinate" not in plot.caption + single.caption


def test_joint_noise_is_one_draw() -> None:
    document = plan("two_observers")
    document["mechanism"]["sites"] = [{"at": name, "covariance": "full"} for name in ("press_release", "audit_file")]
    assert "drawn together, correlated across all 8 answers of press_release and audit_file" in words(document)


def test_what_is_next_to_none_is_called_so() -> None:
    document = plan("histogram")
    document["mechanism"]["sites"] = [{"at": "counts", "variance": [1e-6, 4.0]}]
    assert "Gaussian at counts (next to none to ± 2)" in words(document)


def test_designs_of_the_same_loss_say_so() -> None:
    document = plan("prefix_sums")
    document["alternatives"] = [document["alternatives"][0] | {"loss": document["loss"]["value"] * (1 + 1e-12)}]
    assert f"{document['alternatives'][0]['name']}: the same loss" in words(document)
    assert "| the same loss |" in explain(document, "engineer")


def test_errors_that_read_the_same_are_told_apart_by_the_loss() -> None:
    document = plan("prefix_sums")
    document["alternatives"] = [document["alternatives"][0] | {"loss": document["loss"]["value"] * 1.0001}]
    assert f"{document['alternatives'][0]['name']} 1.0001 × the loss" in words(document)


@pytest.mark.parametrize("mu", [10.0, 60.0])
def test_odds_of_hopeless_groups_stay_true(mu: float) -> None:
    curve = GaussianCurve(mu)
    words = odds(curve)
    match = re.fullmatch(r"at least ([\d,]+) of ([\d,]+)", words.without_words)
    if match:
        share = int(match[1].replace(",", "")) / int(match[2].replace(",", ""))
        assert 0 < share <= curve.equal_error()
    else:
        assert words.without_words == "possibly fewer than 1 of 10,000,000"
        assert words.taking_part_words == "possibly more than 9,999,999 of 10,000,000"
        assert curve.equal_error() < 1e-7


def test_no_page_promises_nothing_of_a_hundred() -> None:
    document = plan("histogram")
    document["guarantees"][0] |= {"epsilon": "40", "achieved": {"epsilon": "40"}}
    for reader in READERS:
        text = explain(document, reader)
        assert "0 of 100 " not in text.replace("50 of 100 ", "")
        assert "possibly fewer than 1 of 10,000,000" in text or reader == "engineer"
    assert odds(EpsilonDeltaCurve(40.0)).tells_little


def test_a_loss_reads_the_same_everywhere() -> None:
    document = plan("prefix_sums")
    document["loss"] |= {"value": 382929.5786, "lower_bound": 382929.1}
    document["alternatives"][0]["loss"] = 120617882.94
    text = explain(document, "engineer")
    assert text.count("382,930") >= 3
    assert "120,618,000" in text
    assert not re.search(r"(?<![\d.])\d{4,}", text.split("## Reproduce")[0].replace(document["spec"]["sha256"], ""))
    assert not re.search(r"\de\d", text.split("---\n\nPlan fingerprint")[0])


def _label_boxes(share: float) -> dict[str, tuple[float, float, float]]:
    """Left, right and height of the labels of a trade-off plot, the width of a character guessed high."""
    blind, mark = Line("a coin toss", ((0, 1), (1, 0))), (share, share, f"equal mistakes: {100 * share:.2f} %")
    svg = line_chart([blind], [mark], "x", "y", title="t", shares=True)
    found = {}
    for style, label in re.findall(r"<text ([^>]*)>([^<]*)</text>", svg):
        place = re.search(r"translate\(([\d.]+) ([\d.]+)\)", style) or re.search(r'x="([\d.]+)" y="([\d.]+)"', style)
        if place:
            left = float(place[1])
            found[label] = (left, left + 5.5 * len(label), float(place[2]))
    return found


@pytest.mark.parametrize("share", [0.26894, 0.30853])
def test_labels_of_the_tradeoff_plot_keep_apart(share: float) -> None:
    boxes = _label_boxes(share)
    coin = boxes["a coin toss"]
    mistakes = next(box for words, box in boxes.items() if words.startswith("equal"))
    assert abs(coin[2] - mistakes[2]) > 12 or coin[1] < mistakes[0] or mistakes[1] < coin[0]


def test_each_tradeoff_plot_names_its_guarantee() -> None:
    text = page("two_observers", "engineer", "html")
    assert text.count("Guarantee 1 of 2: press, who see press_release") >= 2
    assert text.count("Guarantee 2 of 2: auditors, who see press_release") >= 2
    assert "Guarantee 1 of 1" not in page("prefix_sums", "engineer", "html")


def test_post_processing_has_one_status() -> None:
    document = plan("prefix_sums")
    document["assumptions"].append(
        {
            "text": "Outputs are computed from noisy estimates of the inputs, which costs no privacy.",
            "status": "proved",
            "because": {"note": "post-processing"},
        }
    )
    for reader in ("engineer", "auditor"):
        page = json.loads(explain(document, reader, "json"))["sections"]
        found = {
            s["status"]
            for section, block in ((section, b) for section in page for b in section["blocks"])
            for s in block.get("sentences", ())
            if {"note": "post-processing"} in s["because"] and len(s["because"]) == 1
        }
        assert found == {"follows"}, reader


def test_clipping_has_one_status() -> None:
    text = page("prefix_sums", "auditor")
    assert text.count("clipped") == 1
    document = plan("prefix_sums")
    document["assumptions"] = document["assumptions"][:1]
    assert explain(document, "auditor").count("are clipped to them") == 1


@pytest.mark.parametrize(
    ("path", "spec", "plan_name"),
    [
        ("/home/me/work/totals.priv", "totals.priv", "totals.plan.json"),
        ("my totals.priv", "'my totals.priv'", "'my totals.plan.json'"),
    ],
)
def test_commands_name_the_files_that_solve_uses(path: str, spec: str, plan_name: str) -> None:
    document = plan("prefix_sums")
    document["spec"]["path"] = path
    engineer, auditor = explain(document, "engineer"), explain(document, "auditor")
    assert f"privspec check {spec}\n" in engineer
    assert f"-o {plan_name}\n" in engineer
    assert f"privspec verify {plan_name}\n" in engineer
    assert f"privspec verify {plan_name}\n" in auditor
    assert "/home/me" not in engineer + auditor


def _accurate() -> Plan:
    document = plan("prefix_sums")
    text = "E[ (O[j] - y[j])^2 ] <= 100 for j in 1..3"
    document["accuracy"] = [{"line": 13, "text": text, "value": v, "bound": 100.0} for v in (61.2, 99.2, 66.3)]
    document["accuracy"].append({"line": 14, "text": "E[ ||O - y||^2 ] <= 20000", "value": 5036.71, "bound": 20000.0})
    return document


def test_accuracy_lines() -> None:
    document = _accurate()
    for reader in ("engineer", "auditor"):
        text = explain(document, reader)
        assert "for j in 1..3 | 3 | 100 | 99.2 | 99.2 %" in text
        assert "| 1 | 20,000 | 5,036.71 | 25.2 % |" in text
    assert "Accuracy met 99.2 expected of chance alone, at most 100 asked for (line 13, the tightest of 4)" in words(
        document
    )
    document["accuracy"] = []
    assert "ccuracy line" not in explain(document, "engineer") + explain(document, "auditor")
    assert "Accuracy met" not in words(document)


def test_code_wraps_and_first_columns_stand_left() -> None:
    text = page("prefix_sums", "engineer", "html")
    assert re.search(r"^pre \{[^}]*white-space: pre-wrap", text, re.MULTILINE)
    assert ".number:first-child { text-align: left; }" in text
    assert '<table class="figures">' in text


@pytest.mark.parametrize("source", [PREFIX_SUMS, TWO_OBSERVERS])
def test_the_legend_of_the_graph_has_every_arrow(source: str) -> None:
    picture = graph_svg(load_model(Source("spec.priv", source)))
    root = ET.fromstring(picture)
    texts = {"".join(t.itertext()) for t in root.iter("{http://www.w3.org/2000/svg}text")}
    edges = [e for e in root.iter("{http://www.w3.org/2000/svg}path") if e.get("class") == "edge"]
    for dashed, label in ((False, "is used in"), (True, "is released through")):
        drawn = any((e.get("stroke-dasharray") is not None) == dashed for e in edges)
        assert drawn == (label in texts)
    assert "is released through" in texts


def test_numbers_of_facts_are_grouped() -> None:
    found = facts(estimating_inputs())
    assert math.isclose(sum(o.size.value for o in found.mechanism.outputs), ANSWERS)
    for reader, form in product(READERS, ("md", "html")):
        assert not re.search(r">\d{5,}<", page("prefix_sums", reader, form).replace("0" * 64, ""))
