"""Means, medians and counts of the Adult extract on one budget: releases are as far off as predicted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from privspec.api import load
from privspec.execute.family import Circumstances, mechanism_of
from privspec.execute.predicted import predicted
from privspec.model.targets import environment_of_computed
from privspec.noise.samplers import SimulationRandomness

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data" / "adult_discretised_privatepgm.csv.gz"
RELEASES, PREDICTIONS = 1000, 8000


@pytest.mark.slow
@pytest.mark.skipif(not DATA.exists(), reason=f"the Adult extract is not there: {DATA}")
def test_means_and_medians_share_a_budget() -> None:
    plan = load(ROOT / "examples" / "adult" / "medians.priv").solve()
    assert plan.verify().ok
    model, mechanism = plan.model(), mechanism_of(plan.document)
    people = pl.read_csv(DATA)
    sex, study, hours = (people[name].to_numpy() for name in ("sex", "education-num", "hours-per-week"))
    truth = {
        "hours.sum": np.bincount(sex, hours - 49.0, 2),
        "hours.count": np.bincount(sex, minlength=2).astype(float),
        "long": np.array(float((hours >= 49).sum())),
        "graduates": np.array(float(((hours >= 49) & (study >= 12)).sum())),
    }
    exact, public = dict(truth), environment_of_computed(model)
    for one in model.computed:
        exact[one.name] = one.value(exact, public)
    said = {one.name: one.errors**2 for one in predicted(mechanism, model, truth, PREDICTIONS, 4)}
    assert set(said) == {"hours", "gap"}
    secret, randomness = mechanism.read({"people": people}, Circumstances(model)), SimulationRandomness(9)
    said |= {name: np.asarray(v) ** 2 for name, v in secret.deviations().items() if name in truth}
    errors: dict[str, list[np.ndarray]] = {name: [] for name in said}
    medians: dict[str, list[float]] = {"median_women": [], "median_men": []}
    for _ in range(RELEASES):
        released = dict(secret.draw(randomness).outputs)
        for one in model.computed:
            released[one.name] = one.value(released, public)
        for name in said:
            errors[name].append(np.asarray(released[name], dtype=np.float64) - exact[name])
        for name, drawn in medians.items():
            drawn.append(float(np.ravel(released[name])[0]))
    for name, wanted in said.items():
        squares = np.array(errors[name]) ** 2
        spread = squares.std(axis=0) / np.sqrt(RELEASES)
        allowed = 5 * spread * np.sqrt(1 + RELEASES / PREDICTIONS)
        assert np.all(np.abs(squares.mean(axis=0) - wanted) <= allowed), name
    for name, code in (("median_women", 0), ("median_men", 1)):
        assert np.mean(np.abs(np.array(medians[name]) - np.median(hours[sex == code]))) < 1
