"""Means by groups and counts by conditions of the Adult extract on one budget: releases are as far off as predicted."""

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


def truths(people: pl.DataFrame) -> dict[str, np.ndarray]:
    """What the outputs of the spec stand for, by another way than through its cells."""
    sex, study, hours = (people[name].to_numpy() for name in ("sex", "education-num", "hours-per-week"))
    group = study * 2 + sex  # groups lie in the order of the columns of the table
    found = {
        "hours.sum": np.bincount(group, hours - 49.0, 32),
        "hours.count": np.bincount(group, minlength=32).astype(float),
        "long": np.array(float((hours >= 49).sum())),
        "graduates": np.array(float(((people["income>50K"].to_numpy() == 1) & (study >= 12)).sum())),
        "everybody": np.array(float(len(people))),
    }
    for name, code in (("women", 0), ("men", 1)):
        found[f"{name}.sum"] = np.array((hours[sex == code] - 49.0).sum())
        found[f"{name}.count"] = np.array(float((sex == code).sum()))
    return found


@pytest.mark.slow
@pytest.mark.skipif(not DATA.exists(), reason=f"the Adult extract is not there: {DATA}")
def test_releases_are_as_far_off_as_predicted() -> None:
    plan = load(ROOT / "examples" / "adult" / "hours.priv").solve()
    assert plan.verify().ok
    model, mechanism = plan.model(), mechanism_of(plan.document)
    people = pl.read_csv(DATA)
    truth = truths(people)
    secret = mechanism.read({"people": people}, Circumstances(model))
    randomness, public = SimulationRandomness(9), environment_of_computed(model)
    errors: dict[str, list[np.ndarray]] = {}
    exact = {name: np.asarray(value) for name, value in truth.items()}
    for one in model.computed:
        exact[one.name] = one.value(exact, public)
    for _ in range(RELEASES):
        released = dict(secret.draw(randomness).outputs)
        for one in model.computed:
            released[one.name] = one.value(released, public)
        for name, value in released.items():
            errors.setdefault(name, []).append(np.asarray(value, dtype=np.float64) - exact[name])
    noise = mechanism.errors(PREDICTIONS, 4)
    said = {one.name: one.errors**2 for one in predicted(mechanism, model, truth, PREDICTIONS, 4)}
    deviations = secret.deviations()
    assert set(said) == {"hours", "women", "men", "gap", "share"}
    for name, drawn in errors.items():
        squares = np.array(drawn) ** 2
        spread = squares.std(axis=0) / np.sqrt(RELEASES)
        if name in said:
            wanted, more = said[name], spread * np.sqrt(RELEASES / PREDICTIONS)
        else:
            wanted, more = deviations[name] ** 2, 0.0 * spread
            assert np.all(np.abs(np.mean(noise[name], axis=0)) < 6 * deviations[name] / np.sqrt(PREDICTIONS))
        assert np.all(np.abs(squares.mean(axis=0) - wanted) <= 5 * np.hypot(spread, more)), name
