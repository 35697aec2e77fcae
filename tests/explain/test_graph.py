"""The graph in words and as a picture."""

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from privspec.api import load
from privspec.explain.graphs import describe_graph, graph_svg
from privspec.manual import list_templates

sys.path.insert(0, str(Path(__file__).parent.parent / "model"))
import model_specs as specs

NAMES = ("SHOPS", "SHAPING", "CROWD", "DICTATOR", "ACCURACY", "WHOLE", "FAIR", "MEASURES", "TABLE")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", NAMES)
def test_all_examples(name, tmp_path):
    model = specs.load(getattr(specs, name), specs.folder(tmp_path))
    words = describe_graph(model)
    picture = ET.fromstring(graph_svg(model))
    for node in model.nodes.values():
        assert node.name in words
    texts = "\n".join("".join(t.itertext()) for t in picture.iter(f"{SVG}text"))
    assert all(node.name in texts for node in model.nodes.values())
    assert picture.find(f"{SVG}title") is not None
    assert picture.find(f"{SVG}desc") is not None
    width, height = float(picture.get("width")), float(picture.get("height"))
    for rect in picture.iter(f"{SVG}rect"):
        assert 0 <= float(rect.get("x", 0)) <= width
        assert float(rect.get("y", 0)) + float(rect.get("height")) <= height + 1


def test_words_of_the_first_example(tmp_path):
    model = specs.load(specs.SHOPS, specs.folder(tmp_path))
    words = describe_graph(model)
    longest = np.linalg.norm(specs.queries(), axis=0).max()
    assert f"y   {longest:.6g}" in words
    assert "x   a vector of 64 in [0, 1]^64" in words
    assert "y = A @ x + b   a vector of 32; secret, a linear map of the data" in words
    assert "anyone: O" in words
    assert "trust curator: one keeper sees all raw data" in words
    assert "compares worlds that differ by replacing one entry in x" in words
    assert "only at x and y (line 20)" in words


def test_sensitivities_of_tables():
    words = describe_graph(specs.load(specs.TABLE))
    # a record that moves changes at most two cells in each of four marginals
    assert f"counts   {np.sqrt(8):.6g}" in words


def test_boxes_do_not_overlap(tmp_path):
    from privspec.explain import graphs as module

    model = specs.load(specs.MEASURES, specs.folder(tmp_path))
    graph = model.graph
    boxes = module._boxes(model, graph)
    module._arrange(boxes, graph)
    placed = list(boxes.values())
    for i, a in enumerate(placed):
        for b in placed[i + 1 :]:
            apart = a.x + a.width <= b.x or b.x + b.width <= a.x or a.y + a.height <= b.y or b.y + b.height <= a.y
            assert apart, (a.name, b.name)


@pytest.mark.parametrize("name", [one.name for one in list_templates()])
def test_every_template_has_a_graph_in_words(name):
    """Also those of which nobody knows how many keys, and so how many cells, there are."""
    model = load(name).check()
    words = describe_graph(model)
    assert all(node.name in words for node in model.nodes.values() if "." not in node.name)
