"""Means, medians and counts of the Adult extract on one budget: releases are as far off as predicted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from privspec.api import Plan, load
from privspec.execute.family import RunContext, mechanism_of
from privspec.execute.predicted import predicted
from privspec.kernel.selection import Drawn
from privspec.model.targets import environment_of_computed
from privspec.noise.samplers import SimulationRandomness

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data" / "adult_discretised_privatepgm.csv.gz"
RELEASES, PREDICTIONS, TABLES = 1000, 8000, 100
needs_data = pytest.mark.skipif(not DATA.exists(), reason=f"the Adult extract is not there: {DATA}")


def truths(people: pl.DataFrame) -> dict[str, np.ndarray]:
    """What the outputs of both specs stand for, by another way than through their cells."""
    sex, study, hours = (people[name].to_numpy() for name in ("sex", "education-num", "hours-per-week"))
    group = study * 2 + sex  # groups lie in the order of the columns of the table
    found = {
        "hours.sum": np.bincount(group, hours - 49.0, 32),
        "hours.count": np.bincount(group, minlength=32).astype(float),
        "long": np.array(float((hours >= 49).sum())),
        "graduates": np.array(float(((people["income>50K"].to_numpy() == 1) & (study >= 12)).sum())),
        "everybody": np.array(float(len(people))),
        "middle": np.array([np.sort(own)[(len(own) - 1) // 2] for own in (hours[group == g] for g in range(32))]),
    }
    for name, code in (("women", 0), ("men", 1)):
        found[f"{name}.sum"] = np.array((hours[sex == code] - 49.0).sum())
        found[f"{name}.count"] = np.array(float((sex == code).sum()))
    return found


def agrees(plan: Plan, computed: set[str], others: Mapping[str, Any]) -> None:
    """Mean squared errors of releases are those that are predicted: by the noise, or by simulating what is computed.

    Args: computed, the outputs that are; others, of outputs whose noise depends on the data, the mean sizes of errors
    and of their squares.
    """
    model, mechanism, people = plan.model(), mechanism_of(plan.document), pl.read_csv(DATA)
    truth = truths(people)
    secret = mechanism.read({"people": people}, RunContext(model))
    randomness, public = SimulationRandomness(9), environment_of_computed(model)
    noisy = {name: value for name, value in truth.items() if name not in others}
    exact = dict(truth)
    for one in model.computed:
        exact[one.name] = one.value(noisy, public)
        noisy[one.name] = exact[one.name]
    errors: dict[str, list[np.ndarray]] = {}
    for _ in range(RELEASES):
        released = dict(secret.draw(randomness).outputs)
        for one in model.computed:
            released[one.name] = one.value(released, public)
        for name, value in released.items():
            errors.setdefault(name, []).append(np.asarray(value, dtype=np.float64) - exact[name])
    noise = mechanism.errors(PREDICTIONS, 4)
    said = {one.name: one.errors**2 for one in predicted(mechanism, model, truth, PREDICTIONS, 4)}
    deviations = secret.deviations()
    assert set(said) == computed
    for name, drawn in errors.items():
        found = np.abs(drawn) if name in others else np.array(drawn) ** 2
        spread, more = found.std(axis=0) / np.sqrt(RELEASES), 0.0
        if name in said:
            wanted, more = said[name], spread * np.sqrt(RELEASES / PREDICTIONS)
        elif name in others:
            wanted, squares = others[name](secret)  # what hardly ever happens need not be among the releases
            spread = np.sqrt(np.maximum(squares - wanted**2, 0) / RELEASES) + 1e-9
        else:
            wanted = deviations[name] ** 2
            assert np.all(np.abs(np.mean(noise[name], axis=0)) < 6 * deviations[name] / np.sqrt(PREDICTIONS))
        assert np.all(np.abs(found.mean(axis=0) - wanted) <= 5 * np.hypot(spread, more)), name


@pytest.mark.slow
@needs_data
def test_releases_of_means_are_as_far_off_as_predicted() -> None:
    plan = load(ROOT / "examples" / "adult" / "hours.priv").solve()
    assert plan.verify().ok
    agrees(plan, {"hours", "women", "men", "gap", "share"}, {})


# --- medians --------------------------------------------------------------------------------------

NODES, WEIGHTS = np.polynomial.legendre.leggauss(64)
TIMES, WEIGHTS = (NODES + 1) / 2, WEIGHTS / 2


def law(drawn: Drawn, counts: list[int]) -> np.ndarray:
    """The chance of every answer: each comes up at an even time, and is taken with its chance if none before was.

    One integral of a polynomial for each; the mechanism itself goes through a random order.
    """
    taken = float(drawn.base) ** -np.array(drawn.scores(counts), dtype=float)
    left = 1 - np.outer(TIMES, taken)  # (times, answers)
    return taken * (WEIGHTS @ (left.prod(axis=1)[:, None] / left))


def mean_errors(drawn: Drawn, tables: np.ndarray, power: int = 1) -> np.ndarray:
    """How far the answer of each group is off on average, to a power; tables (groups, answers)."""
    answers = np.arange(tables.shape[1])
    middles = [int(np.searchsorted(np.cumsum(own), (own.sum() + 1) // 2)) for own in tables]
    laws = [law(drawn, own.tolist()) for own in tables]
    return np.array([own @ np.abs(answers - m) ** power for own, m in zip(laws, middles, strict=True)])


@pytest.mark.slow
@needs_data
def test_means_and_medians_share_a_budget() -> None:
    plan = load(ROOT / "examples" / "adult" / "medians.priv").solve()
    assert plan.verify().ok
    mechanism = mechanism_of(plan.document)
    (drawn,) = (part.executed for part in mechanism.parts if part.outputs == ("middle",))
    assert drawn.family == "permute_and_flip"

    def of_medians(secret: Any) -> tuple[np.ndarray, np.ndarray]:
        (counts,) = (part.content for part in secret.parts if part.mechanism.outputs == ("middle",))
        return mean_errors(drawn, np.array(counts)), mean_errors(drawn, np.array(counts), 2)

    agrees(plan, {"hours", "share"}, {"middle": of_medians})
    # the error that the plan states is about people as the spec's law has them, not about these
    groups = np.outer([1, 1, 1, 2, 2, 3, 4, 1, 32, 22, 4, 3, 16, 5, 2, 1], [1, 2]).ravel()
    hours = np.exp(-(((np.arange(99) - 39) / 12) ** 2) / 2)
    cells, generator = np.outer(groups, hours).ravel(), np.random.default_rng(5)
    tables = generator.multinomial(48842, cells / cells.sum(), TABLES).reshape(TABLES, 32, 99)
    sums = np.array([mean_errors(drawn, one).sum() for one in tables])
    (loss,) = (
        part["loss"]["value"] for name, part in plan.document["mechanism"]["components"].items() if name == "middle"
    )
    assert abs(sums.mean() - loss / 0.1) <= 5 * sums.std() / np.sqrt(TABLES) + 0.011
