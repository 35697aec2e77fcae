"""Columns of a table that no question is about are not read: the plan says so, and is as good as without them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from privspec.core.spans import Source
from privspec.model import conditions
from privspec.model.build import load_model
from privspec.model.domains import Between
from privspec.noise.samplers import SimulationRandomness
from privspec.pipeline import Request, solve

HEAD = "variables:\n  input people in table(age in 0..9, sex in {F, M}, region in {a, b, c})\n  output O\n"


def columns(question: str) -> tuple[str, ...]:
    text = f"{HEAD}loss: E[ ||O - {question}||^2 ]\nprivacy: O is 1-DP wrt people, adding or removing one record\n"
    return tuple(name for name, _ in load_model(Source("a.priv", text)).blocks[0].schema or ())


@pytest.mark.parametrize(
    ("question", "read"),
    [
        ("count(people)", ("age",)),
        ("count(people, sex = F)", ("sex",)),
        ("count(people, by = {region}, age > 3)", ("age", "region")),
        ("sum(people.age)", ("age",)),
        ("sum(people.age, by = {sex})", ("age", "sex")),
        ("histogram(people)", ("age", "sex", "region")),
        ("histogram(people, by = {sex})", ("sex",)),
        ("marginals(people, {sex}, {region})", ("sex", "region")),
        ("marginals(people, 1)", ("age", "sex", "region")),
        ("marginals(people, {age, sex}, 1)", ("age", "sex", "region")),
        ("marginals(people, up_to = 1)", ("age", "sex", "region")),
    ],
)
def test_what_is_read(question: str, read: tuple[str, ...]) -> None:
    assert columns(question) == read


def test_a_plan_is_as_good_as_without_them_and_says_what_is_left_out(tmp_path: Path) -> None:
    loss = (
        "loss: E[ ||O - count(people, by = {sex})||^2 ]\nprivacy: O is 1-DP wrt people, adding or removing one record\n"
    )
    wide = solve(Request(Source("a.priv", HEAD + loss)))
    narrow = solve(
        Request(Source("a.priv", HEAD.replace("age in 0..9, ", "").replace(", region in {a, b, c}", "") + loss))
    )
    assert wide.document["loss"] == narrow.document["loss"]
    assert wide.document["problem"]["blocks"] == narrow.document["problem"]["blocks"]
    said = [one["text"] for one in wide.document["assumptions"]]
    assert any("No question is about age and region, which are not read." in text for text in said)
    path = tmp_path / "people.csv"
    path.write_text("sex,age,region\nF,1,a\nF,what,b\nM,3,\n")
    release = wide.run({"people": path}, randomness=SimulationRandomness(1))
    assert np.asarray(release["O"]) == pytest.approx([2, 1], abs=30)


def test_a_parameter_may_be_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,0,0.5\n0,1,1\n")
    text = (
        'parameters:\n  A = csv("a.csv")\nvariables:\n  input x in [0, 1]^3\n  output O\n'
        "loss: E[ ||O - A @ x||^2 ]\nprivacy: O is (1, 1e-6)-DP wrt x, replacing one entry\n"
    )
    plan = solve(Request(Source("a.priv", text), base=tmp_path))
    (tmp_path / "a.csv").unlink()
    assert plan.verify().ok


@pytest.mark.parametrize(
    ("question", "ends"),
    [
        ("sum(people.a * people.b)", {"b"}),
        ("sum(people.a * people.a)", set()),
        ("regression(people.b, on = {a})", {"b"}),
    ],
)
def test_of_many_cells_a_column_that_products_have_once_is_held_by_its_ends(
    question: str, ends: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is linear in a number moves most at one of its ends: the noise is the same, the table far smaller."""
    text = f"""variables:
  input people in table(a in 0..4, b in 0..6)^50
  output O
loss: E[ ||O - {question}||^2 ]
privacy: O is (1, 1e-6)-DP wrt people, replacing one record
"""
    whole = solve(Request(Source("a.priv", text)))
    monkeypatch.setattr(conditions, "MANY", 0)
    few = solve(Request(Source("a.priv", text)))
    assert few.verify().ok
    (block,) = few.model().blocks
    assert {name for name, domain in block.schema or () if isinstance(domain, Between)} == ends
    # of fewer cells the hull of what moves may be known, and its noise is less
    assert few.loss.value <= whole.loss.value * (1 + 1e-4)
    data = {"a": [1, 2, 3, 4, 0] * 10, "b": [6, 5, 0, 1, 2] * 10}
    drawn = [p.run({"people": data}, randomness=SimulationRandomness(5)) for p in (whole, few)]
    spread = np.sqrt(whole.loss.value) if ends != {"b"} else 5
    assert np.abs(np.asarray(drawn[0]["O"]) - np.asarray(drawn[1]["O"])).max() < 12 * spread
