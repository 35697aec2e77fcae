"""Outputs that are computed from released ones: what they come from, what a run gives, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privspec.core.diagnostics import SpecError
from privspec.core.spans import Source
from privspec.families.decision import sealed
from privspec.model.build import load_model
from privspec.model.graph import Model
from privspec.noise.samplers import SimulationRandomness
from privspec.pipeline import Request, solve
from privspec.plan import Plan
from privspec.problem.elaborate import elaborate
from privspec.problem.words import words

LOSS = "E[ ||N - count(people, by = {sex})||^2 ] + E[ ||S - sum(people.age, by = {sex})||^2 ]"
LINE = "all outputs are (1, 1e-6)-DP wrt people, adding or removing one record"


def spec(outputs: str, line: str = LINE, loss: str = LOSS, background: str = "") -> str:
    return (
        "parameters:\n  scale = 9\n"
        "variables:\n  input people in table(age in 0..9, sex in {F, M})\n  output N\n  output S\n"
        + "".join(f"  output {one}\n" for one in outputs.split("; "))
        + (f"background: {background}\n" if background else "")
        + f"loss: {loss}\nprivacy:\n  {line}\n"
    )


def load(text: str) -> Model:
    return load_model(Source("means.priv", text))


@pytest.fixture(scope="module")
def plan() -> Plan:
    return solve(Request(Source("means.priv", spec("mean_age in [0, 9] = S / N; share = mean_age / scale"))))


def test_a_quotient_by_a_noisy_count_is_one_by_at_least_one() -> None:
    model = load(spec("mean_age in [0, 9] = S / N; share = mean_age / scale; odd = N / S"))
    assert [(one.name, one.sources, one.text) for one in model.computed] == [
        ("mean_age", ("S", "N"), "S / max(N, 1), moved into [0, 9]"),
        ("share", ("S", "N"), "mean_age / scale"),
        ("odd", ("N", "S"), "N / S"),
    ]
    assert [node.name for node in model.outputs] == ["N", "S"]
    assert any("mean_age is computed from S and N" in line for line in words(elaborate(model)))


def test_lines_are_about_what_it_comes_from() -> None:
    text = spec("share = S / N", "share is (1, 1e-6)-DP wrt people, adding or removing one record")
    (line,) = elaborate(load(text)).obligations
    assert set(line.outputs) == {"N", "S"}
    text = spec("share = S / N", "(N, share) is (1, 1e-6)-DP wrt people, adding or removing one record")
    assert elaborate(load(text)).obligations[0].outputs == ("N", "S")


def test_a_definition_in_the_background_is_the_same() -> None:
    there = load(spec("share", background="share = S / N"))
    assert [one.text for one in there.computed] == ["S / max(N, 1), moved into [0, 9]"]
    assert elaborate(there).blocks == elaborate(load(spec("share = S / N"))).blocks


def people(count: int = 400) -> dict[str, Any]:
    generator = np.random.default_rng(1)
    rows = [(int(generator.integers(10)), "FM"[int(generator.integers(2))]) for _ in range(count)]
    return {"people": {"age": [age for age, _ in rows], "sex": [sex for _, sex in rows]}}


def test_a_run_computes_it_from_what_is_released(plan: Plan, tmp_path: Path) -> None:
    assert plan.verify().ok
    assert [claim.text for claim in plan.verify().claims if claim.name == "computed"] == [
        "mean_age is computed from S, N alone: it tells nothing more",
        "share is computed from S, N alone: it tells nothing more",
    ]
    path = tmp_path / "people.csv"
    rows = people()["people"]
    path.write_text("age,sex\n" + "".join(f"{a},{s}\n" for a, s in zip(rows["age"], rows["sex"], strict=True)))
    release = plan.run({"people": path}, randomness=SimulationRandomness(3), output=tmp_path / "out.csv")
    counts, sums = np.asarray(release["N"]), np.asarray(release["S"])
    means = np.clip(sums / np.maximum(counts, 1), 0, 9)
    assert np.asarray(release["mean_age"]) == pytest.approx(means)
    assert np.asarray(release["share"]) == pytest.approx(means / 9)
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert sum(line.startswith("mean_age,F,") for line in lines) == 1
    nobody = tmp_path / "nobody.csv"
    nobody.write_text("age,sex\n")
    empty = plan.run({"people": nobody}, randomness=SimulationRandomness(5))
    assert np.all((np.asarray(empty["mean_age"]) >= 0) & (np.asarray(empty["mean_age"]) <= 9))


def test_only_those_who_see_all_it_comes_from_are_given_it() -> None:
    lines = (
        "(N, S) is (1, 1e-6)-DP wrt people, adding or removing one record, seen by auditors\n"
        "  N is (1, 1e-6)-DP wrt people, adding or removing one record, seen by press"
    )
    found = solve(Request(Source("means.priv", spec("share = S / N; more = N + N", lines))))
    table = {"age": np.zeros(10), "sex": np.zeros(10)}
    assert set(table) == {"age", "sex"}
    release = found.run({"people": np.full((10, 2), 5)}, randomness=SimulationRandomness(1))
    assert set(release.observers["auditors"]) == {"N", "S", "share", "more"}
    assert set(release.observers["press"]) == {"N", "more"}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (spec("a = b + N; b = a + S"), "PS0210"),
        (spec("share = S / N", loss=f"{LOSS} + E[ (share[1] - 3)^2 ]"), "PS0501"),
        (spec("share in {a, b} = S / N"), "PS0218"),
        (spec("share = S / nothing"), "PS0201"),
        (spec("share = S @ N @ N"), "PS0207"),
    ],
)
def test_what_cannot_be_computed_is_refused(text: str, code: str) -> None:
    with pytest.raises(SpecError) as caught:
        load(text)
    assert code in {d.code for d in caught.value.diagnostics}


@pytest.mark.parametrize(
    "change",
    [
        {"sources": ["S", "people"]},
        {"sources": []},
        {"sources": ["S"]},
        {"name": "N"},
        {"name": "people"},
        {"text": "S"},
        {"line": 99},
    ],
)
def test_forged_plans_are_refused(plan: Plan, change: dict[str, Any]) -> None:
    body = {k: v for k, v in json.loads(plan.to_json()).items() if k != "digest"}
    body["problem"]["computed"][0] |= change
    assert not Plan(sealed(body)).verify().ok
    left = {k: v for k, v in json.loads(plan.to_json()).items() if k != "digest"}
    del left["problem"]["computed"]
    assert not Plan(sealed(left)).verify().ok


def test_pages_say_what_is_computed(plan: Plan) -> None:
    assert "“mean age” and “share” are worked out afterwards" in plan.explain("public")
