"""From reports back to shares: estimators, their choice, intervals, reading reports.

Simulated figures are compared within 3 standard errors; seeds are fixed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from math import e
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize

from privspec.core.diagnostics import DataError, UsageError, VerificationError
from privspec.execute.drawing import TableLaw
from privspec.execute.run import _run as run
from privspec.families.tables.aggregate import (
    ESTIMATORS,
    FINE,
    Channel,
    Limits,
    bayesian_update,
    choose_estimator,
    count_reports,
    estimate,
    prior_of,
    project,
    total_variation,
)
from privspec.noise.samplers import SimulationRandomness

from .tables import k_rr, make_table_plan

Array = NDArray[np.float64]


def k_rr_channel(size: int, epsilon: float) -> Channel:
    table = np.ones((size, size)) + (np.exp(epsilon) - 1) * np.eye(size)
    return Channel.of(table / table.sum(axis=1, keepdims=True))


def zipf(size: int, exponent: float = 1.2) -> Array:
    law = np.arange(1, size + 1) ** -exponent
    law /= law.sum()
    return law


def random_channel(values: int, reports: int, seed: int) -> Channel:
    return Channel.of(np.random.default_rng(seed).dirichlet(np.ones(reports), size=values))


# --- estimators -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("shares", "yes"), [((0.6, 0.4), 0.7), ((0.8, 0.2), 1.1)])
def test_the_examples_of_the_lecture(shares: tuple[float, float], yes: float) -> None:
    channel = Channel.of([[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]], ("yes", "no"))
    counts = np.array([shares]) * 1000
    assert ESTIMATORS["inverse"].shares(channel, counts)[0] == pytest.approx([yes, 1 - yes])
    for name in ("clip", "simplex", "ibu"):
        kept = min(yes, 1.0)
        assert ESTIMATORS[name].shares(channel, counts)[0] == pytest.approx([kept, 1 - kept], abs=1e-4)


@pytest.mark.parametrize("name", list(ESTIMATORS))
@pytest.mark.parametrize("shape", [(4, 4), (3, 7), (1, 3)])
def test_exact_shares_of_reports_give_the_law_back(name: str, shape: tuple[int, int]) -> None:
    channel = random_channel(*shape, seed=3)
    law = np.random.default_rng(4).dirichlet(np.ones(shape[0]))
    counts = law @ channel.matrix * 1e9
    assert ESTIMATORS[name].shares(channel, counts[None, :])[0] == pytest.approx(law, abs=1e-3)


def test_the_inverse_is_unbiased_and_sums_to_one_with_more_reports_than_values() -> None:
    channel, law = random_channel(3, 8, seed=1), np.array([0.2, 0.3, 0.5])
    counts = channel.reports(law, 500, 4000, np.random.default_rng(1))
    found = ESTIMATORS["inverse"].shares(channel, counts)
    assert np.allclose(found.sum(axis=1), 1)
    error = found.std(axis=0) / len(found) ** 0.5
    assert np.all(abs(found.mean(axis=0) - law) < 4 * error)
    # nearest in least squares among vectors that sum to one
    q = counts[0] / counts[0].sum()
    nearest = optimize.minimize(
        lambda r: ((r @ channel.matrix - q) ** 2).sum(),
        np.full(3, 1 / 3),
        constraints={"type": "eq", "fun": lambda r: r.sum() - 1},
        tol=1e-14,
    )
    assert found[0] == pytest.approx(nearest.x, abs=1e-5)


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=8))
def test_the_projection_is_the_nearest_law(values: list[float]) -> None:
    point = np.array(values)
    found = project(point[None, :])[0]
    assert found.sum() == pytest.approx(1) and found.min() >= 0
    # the angle to every corner is at least a right one, which characterises a projection on a convex set
    for corner in np.eye(len(point)):
        assert (point - found) @ (corner - found) <= 1e-9


@given(st.integers(0, 10**6))
def test_the_update_reaches_the_greatest_likelihood(seed: int) -> None:
    generator = np.random.default_rng(seed)
    values, reports = generator.integers(2, 6, size=2)
    channel = random_channel(int(values), int(reports), seed)
    counts = generator.multinomial(200, generator.dirichlet(np.ones(reports)), size=3).astype(float)
    found = bayesian_update(channel.matrix, counts)
    assert found.converged.all() and np.allclose(found.shares.sum(axis=1), 1) and found.shares.min() >= 0
    for row, shares in zip(counts, found.shares, strict=True):
        # (p C) of a law of greatest likelihood, found by another method: Frank and Wolfe's linear program at each step
        best = bayesian_update(channel.matrix, row[None, :], Limits(1e-7, 10**6)).shares[0]
        assert _likelihood(row, best @ channel.matrix) - _likelihood(row, shares @ channel.matrix) <= FINE.gap


def _likelihood(counts: Array, law: Array) -> float:
    return float((counts[counts > 0] * np.log(law[counts > 0])).sum())


@pytest.mark.parametrize("people", [20, 400, 100_000])
def test_an_inversion_that_is_a_law_is_what_the_update_finds(people: int) -> None:
    """It leads to the reports as they are, so that none is likelier; 7 of 10 is not .699."""
    channel = Channel.of([[0.6, 0.4], [0.4, 0.6]])
    counts = np.array([[0.54 * people, 0.46 * people]])
    assert ESTIMATORS["ibu"].shares(channel, counts) == pytest.approx(np.array([[0.7, 0.3]]), abs=1e-9)


def test_the_update_agrees_with_a_general_solver() -> None:
    channel = random_channel(4, 6, seed=2)
    counts = np.array([30.0, 5, 0, 12, 40, 13])
    found = bayesian_update(channel.matrix, counts[None, :], Limits(1e-8, 10**6)).shares[0]
    free = optimize.minimize(
        lambda p: -_likelihood(counts, p @ channel.matrix),
        np.full(4, 0.25),
        bounds=[(0, 1)] * 4,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
        tol=1e-12,
    )
    assert _likelihood(counts, found @ channel.matrix) >= -free.fun - 1e-6
    assert found == pytest.approx(free.x, abs=1e-3)


def test_the_gap_is_a_bound_and_the_likelihood_never_falls() -> None:
    channel = k_rr_channel(20, 0.5)
    counts = channel.reports(zipf(20), 2000, 1, np.random.default_rng(1))
    best = _likelihood(
        counts[0], bayesian_update(channel.matrix, counts, Limits(1e-6, 10**6)).shares[0] @ channel.matrix
    )
    last = -np.inf
    for steps in (0, 1, 2, 5, 10, 20, 40):
        found = bayesian_update(channel.matrix, counts, Limits(0.0, steps))
        likelihood = _likelihood(counts[0], found.shares[0] @ channel.matrix)
        assert last <= likelihood <= best + 1e-9
        assert best - likelihood <= found.gap[0] + 1e-9
        assert found.steps == steps and not found.converged[0]
        last = likelihood


def test_many_samples_at_once_are_as_each_alone() -> None:
    channel = k_rr_channel(10, 1)
    counts = channel.reports(zipf(10), 300, 6, np.random.default_rng(2))
    together = bayesian_update(channel.matrix, counts, Limits(1e-6, 10**6)).shares
    for row, shares in zip(counts, together, strict=True):
        alone = bayesian_update(channel.matrix, row[None, :], Limits(1e-6, 10**6)).shares[0]
        assert shares == pytest.approx(alone, abs=1e-4)


def test_the_greatest_likelihood_need_not_be_unique_though_the_table_is_invertible() -> None:
    """The lecture says otherwise (MATH.md, section 8): only the reports that occurred count."""
    channel = Channel.of([[0.5, 0.25, 0.25], [0.5, 0.4, 0.1], [0.2, 0.4, 0.4]])
    counts = np.array([10.0, 0, 0])
    assert channel.identified and not channel.unique_maximum(counts)
    notes = ESTIMATORS["ibu"].notes(channel, counts)
    assert len(notes) == 1 and "equally likely" in notes[0]
    assert channel.unique_maximum(np.array([10.0, 1, 0])) and not ESTIMATORS["ibu"].notes(
        channel, np.array([5.0, 3, 2])
    )


def test_shares_that_no_number_of_reports_tells_apart() -> None:
    channel = Channel.of([[0.5, 0.5], [0.5, 0.5], [0.2, 0.8]])
    assert not channel.identified and channel.rank == 2
    for estimator in ESTIMATORS.values():
        shares = estimator.shares(channel, np.array([[40.0, 60.0]]))[0]
        assert shares.sum() == pytest.approx(1) and shares[0] == pytest.approx(shares[1])
        assert "2 of 3" in estimator.notes(channel, np.array([40.0, 60.0]))[0]


def test_an_unfinished_update_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from privspec.families.tables import aggregate

    channel, counts = k_rr_channel(10, 0.5), np.arange(1.0, 11)
    assert not ESTIMATORS["ibu"].notes(channel, counts)
    monkeypatch.setattr(
        aggregate, "bayesian_update", lambda *_: bayesian_update(channel.matrix, counts[None], Limits(0, 2))
    )
    assert "stopped after 2 steps" in ESTIMATORS["ibu"].notes(channel, counts)[0]


def test_tables_that_are_none() -> None:
    for table in ([[0.5, 0.6]], [[-0.1, 1.1]], []):
        with pytest.raises(ValueError, match=r"law"):
            Channel.of(table)


# --- the figures of TABLES.md ---------------------------------------------------------------------

RUNS = 50
"""TABLES.md does not say how many samples its figures are means of; as many as here are assumed, so that the difference
of two such means has the standard error sqrt(2 / RUNS) times the spread."""


@pytest.mark.parametrize(
    ("people", "epsilon", "name", "figure"),
    [
        (10_000, 1.0, "ibu", 0.382),
        (10_000, 1.0, "inverse", 0.839),
        (1_000, 0.5, "clip", 0.718),
        (1_000, 0.5, "ibu", 0.840),
    ],
)
def test_mean_total_variation_of_zipf_frequencies(people: int, epsilon: float, name: str, figure: float) -> None:
    channel, law = k_rr_channel(50, epsilon), zipf(50)
    counts = channel.reports(law, people, RUNS, np.random.default_rng(1))
    errors = total_variation(ESTIMATORS[name].shares(channel, counts), law)
    assert abs(errors.mean() - figure) < 3 * errors.std(ddof=1) * (2 / RUNS) ** 0.5


# --- the choice -----------------------------------------------------------------------------------


def test_the_choice_follows_the_signal() -> None:
    strong = choose_estimator(k_rr_channel(50, 1.0), zipf(50), 10_000, seed=1)
    weak = choose_estimator(k_rr_channel(50, 0.5), zipf(50), 1_000, seed=1)
    assert strong.estimator in ("ibu", "simplex") and weak.estimator == "clip"
    assert weak.clear and weak.runs < 400
    assert weak.score("clip").mean == min(s.mean for s in weak.scores)
    assert weak.score("inverse").mean > 5 * weak.score("clip").mean
    assert weak.score("clip").behind == 0


def test_the_choice_repeats_and_ends() -> None:
    channel = k_rr_channel(3, 3.0)
    first, second = (choose_estimator(channel, None, 1000, seed=7, runs=60) for _ in range(2))
    assert first == second
    assert first.runs <= 60 and first.under == "laws drawn at random"
    # far from the edge all estimators agree, and no number of samples makes one clearly better
    inner = choose_estimator(channel, np.full(3, 1 / 3), 10**6, seed=1, runs=50)
    assert not inner.clear and inner.runs == 50


# --- intervals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(ESTIMATORS))
@pytest.mark.parametrize(("size", "people", "epsilon"), [(4, 3000, 1.0), (50, 1000, 0.5)])
def test_intervals_cover_the_truth_as_often_as_they_say(name: str, size: int, people: int, epsilon: float) -> None:
    channel, law = k_rr_channel(size, epsilon), zipf(size)
    trials, level = 100, 0.9
    covered = np.zeros(size)
    for trial, counts in enumerate(channel.reports(law, people, trials, np.random.default_rng(5))):
        found = estimate(channel, counts, None, estimator=name, level=level, seed=trial, resamples=200)
        covered += (found.low <= law) & (law <= found.high)
    error = (level * (1 - level) / trials) ** 0.5
    # 200 resamples put the ends a little too near; holding the estimate as well can only add
    assert covered[0] / trials > level - 3 * error
    assert covered.mean() / trials > level - error - 0.01


@pytest.mark.parametrize("name", list(ESTIMATORS))
def test_an_estimate_lies_in_its_interval_and_repeats(name: str) -> None:
    channel = k_rr_channel(4, 1.0)
    counts = np.array([300, 250, 240, 210])
    first, second = (estimate(channel, counts, None, estimator=name, seed=3) for _ in range(2))
    assert np.all((first.low <= first.shares) & (first.shares <= first.high))
    assert first.low.tolist() == second.low.tolist()
    wide, narrow = (estimate(channel, counts, None, estimator=name, level=v) for v in (0.99, 0.5))
    assert np.all(wide.high - wide.low > narrow.high - narrow.low)
    other = estimate(channel, counts, None, estimator=name, seed=4)
    assert other.shares.tolist() == first.shares.tolist() and other.low.tolist() != first.low.tolist()


def test_intervals_of_shares_that_are_not_identified_claim_no_coverage() -> None:
    channel = Channel.of([[0.5, 0.5], [0.5, 0.5], [0.2, 0.8]])
    found = estimate(channel, np.array([40, 60]), None, estimator="ibu")
    assert np.all((found.low <= found.shares) & (found.shares <= found.high))
    assert "claim no coverage" in found.notes[-1]


def test_intervals_shrink_with_more_reports() -> None:
    channel = k_rr_channel(4, 1.0)
    few, many = (estimate(channel, np.array([28, 26, 24, 22]) * k, None, estimator="inverse") for k in (10, 1000))
    assert (few.high - few.low) / (many.high - many.low) == pytest.approx(np.full(4, 10), rel=0.15)


def test_the_json_says_what_was_chosen_and_why() -> None:
    found = estimate(k_rr_channel(4, 1.0), np.array([40, 30, 20, 10]), zipf(4), ("colour",), seed=2)
    data = json.loads(json.dumps(found.to_json()))
    assert data["format"] == "privspec-aggregate/1.0" and data["of"] == ["colour"] and data["reports"] == 100
    assert set(data["chosen"]["mean_total_variation"]) == set(ESTIMATORS)
    assert data["estimator"] in ESTIMATORS and [s["value"] for s in data["shares"]] == ["1", "2", "3", "4"]
    assert estimate(k_rr_channel(4, 1.0), np.array([4, 3, 2, 1]), None, estimator="clip").to_json()["chosen"] is None


def test_what_cannot_be_asked_for() -> None:
    channel, counts = k_rr_channel(4, 1.0), np.array([4, 3, 2, 1])
    with pytest.raises(UsageError, match="PS0721") as caught:
        estimate(channel, counts, None, estimator="simplx")
    assert caught.value.diagnostics[0].help == "did you mean simplex?"
    for level in (0.0, 1.0, 95.0):
        with pytest.raises(UsageError, match="PS0721"):
            estimate(channel, counts, None, level=level)


# --- reading reports ------------------------------------------------------------------------------

COLOURS = ["red", "green", "blue"]


def plan_of(**more: Any) -> dict[str, Any]:
    return make_table_plan(k_rr(3, Fraction(20)), inputs=COLOURS, outputs=COLOURS, **more)


def reports_file(path: Path, plan: dict[str, Any], people: int = 300) -> NDArray[Any]:
    data = {"x": [COLOURS[i % 3] for i in range(people)]}
    return run(plan, data, path.with_name(f"{path.name}.db"), path, new_ledger=True).outputs["z"]


@pytest.mark.parametrize("suffix", ["json", "csv", "parquet", "npy"])
def test_reports_are_counted_from_every_file_that_run_writes(tmp_path: Path, suffix: str) -> None:
    plan = plan_of()
    law = TableLaw.of_plan(plan)
    path = tmp_path / f"o.{suffix}"
    values = reports_file(path, plan).tolist()
    found = count_reports(law, [path], plan["digest"])
    assert found.tolist() == [values.count(c) for c in COLOURS]
    twice = count_reports(law, [path, {"z": ["red", "red"]}], plan["digest"])
    assert (twice - found).tolist() == [2, 0, 0]
    with pytest.raises(VerificationError, match="PS0843"):
        count_reports(law, [path], "another")


def test_files_put_together_are_read_row_by_row(tmp_path: Path) -> None:
    """Rows of a release name their plan: those of another are not counted, wherever they stand."""
    plan, other = plan_of(), make_table_plan(k_rr(3, Fraction(10)), inputs=COLOURS, outputs=COLOURS)
    law = TableLaw.of_plan(plan)
    for name, made in (("a.csv", plan), ("b.csv", plan), ("c.csv", other)):
        run(made, {"x": COLOURS}, output=tmp_path / name, randomness=SimulationRandomness(1))
    assert count_reports(law, [tmp_path / "a.csv", tmp_path / "b.csv"], plan["digest"]).sum() == 6
    together = tmp_path / "all.csv"
    together.write_text((tmp_path / "a.csv").read_text() + (tmp_path / "b.csv").read_text().partition("\n")[2])
    assert count_reports(law, [together], plan["digest"]).sum() == 6
    together.write_text((tmp_path / "a.csv").read_text() + (tmp_path / "c.csv").read_text().partition("\n")[2])
    with pytest.raises(VerificationError, match="PS0843"):
        count_reports(law, [together], plan["digest"])


def test_a_column_that_happens_to_be_called_plan_says_nothing(tmp_path: Path) -> None:
    law, digest = TableLaw.of_plan(plan_of()), plan_of()["digest"]
    (tmp_path / "o.csv").write_text("z,plan\nred,basic\nblue,gold\n")
    assert count_reports(law, [tmp_path / "o.csv"], digest).sum() == 2


def test_reports_of_an_older_format_are_refused(tmp_path: Path) -> None:
    plan = plan_of()
    (tmp_path / "o.json").write_text('{"format": "privspec-release/1.0", "outputs": {"z": ["red"]}}')
    with pytest.raises(DataError, match="PS0842"):
        count_reports(TableLaw.of_plan(plan), [tmp_path / "o.json"], plan["digest"])


def test_reports_in_memory() -> None:
    import polars as pl

    plan = plan_of()
    law, digest = TableLaw.of_plan(plan), plan["digest"]
    release = run(plan, {"x": COLOURS * 50}, randomness=SimulationRandomness(1))
    assert count_reports(law, [release], digest).sum() == 150
    for source in (
        ["red", "blue", "red"],
        pl.DataFrame({"z": ["red", "blue", "red"]}),
        np.array(["red", "blue", "red"]),
    ):
        assert count_reports(law, [source], digest).tolist() == [2, 0, 1]


def test_points_are_counted() -> None:
    places = [[str(a), str(b)] for a in (1, 2) for b in (1, 2, 3)]
    plan = make_table_plan(k_rr(6), of=("place",), releases=("report",), inputs=places, outputs=places)
    law = TableLaw.of_plan(plan)
    release = run(plan, {"place": [[1, 2], [2, 3]] * 40}, randomness=SimulationRandomness(1))
    counts = count_reports(law, [release], plan["digest"])
    assert counts.sum() == 80
    shown = [sum(row == [a, b] for row in release.outputs["report"].tolist()) for a in (1, 2) for b in (1, 2, 3)]
    assert counts.tolist() == shown
    assert law.rows.texts[1] == "1, 2"


def test_two_outputs_are_one_report() -> None:
    joint = [[a, b] for a in ("yes", "no") for b in ("1", "2")]
    plan = make_table_plan(k_rr(4), releases=("p", "q"), outputs=joint)
    counts = count_reports(TableLaw.of_plan(plan), [{"p": ["yes", "no", "no"], "q": [2, 1, 1]}], plan["digest"])
    assert counts.tolist() == [0, 1, 2, 0]


@pytest.mark.parametrize("bad", ["violet", "", "Red"])
def test_reports_that_the_plan_cannot_make(bad: str) -> None:
    plan = plan_of()
    with pytest.raises(DataError, match="PS0842") as caught:
        count_reports(TableLaw.of_plan(plan), [["red", "red", bad]], plan["digest"])
    assert "report 3" in caught.value.diagnostics[0].message


def test_numbers_of_reports_are_not_moved() -> None:
    plan = make_table_plan(k_rr(3))
    with pytest.raises(DataError, match="PS0842"):
        count_reports(TableLaw.of_plan(plan), [[1, 2, 2.4]], plan["digest"])


def test_a_report_of_probability_zero_and_no_reports() -> None:
    table = [[Fraction(1, 2), Fraction(1, 2), Fraction(0)]] * 2
    plan = make_table_plan(table)
    for reports in ([1, 3], []):
        with pytest.raises(DataError, match=r"PS0842|PS0808"):
            count_reports(TableLaw.of_plan(plan), [reports], plan["digest"])


def test_the_whole_way_back() -> None:
    law = [Fraction(1, 2), Fraction(3, 10), Fraction(1, 5)]
    plan = make_table_plan(k_rr(3, Fraction(round(e * 10**6), 10**6)), inputs=COLOURS, outputs=COLOURS, prior=law)
    data = {"x": ["red"] * 10_000 + ["green"] * 6_000 + ["blue"] * 4_000}
    release = run(plan, data, randomness=SimulationRandomness(3))
    table = TableLaw.of_plan(plan)
    prior = prior_of(table)
    assert prior is not None and prior.tolist() == [0.5, 0.3, 0.2]
    found = estimate(
        Channel.of(table.matrix(), table.rows.texts), count_reports(table, [release], plan["digest"]), prior
    )
    assert found.shares == pytest.approx([0.5, 0.3, 0.2], abs=0.03)
    assert np.all((found.low < [0.5, 0.3, 0.2]) & (found.high > [0.5, 0.3, 0.2]))


def test_progress_is_told() -> None:
    told: list[str] = []
    watch: Callable[[str, int, int | None], None] = lambda what, done, total: told.append(what)  # noqa: E731
    estimate(k_rr_channel(3, 1.0), np.array([4, 3, 2]), None, progress=watch)
    assert set(told) == {"samples simulated", "resamples of the reports"}
