"""Plans with noise at statistics, from data to a paid release."""

from __future__ import annotations

import copy
import csv
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from privspec.solvers.probit import probit_mle

from privspec.cli import run_command_line
from privspec.core.diagnostics import BudgetError, DataError, UsageError
from privspec.execute import ledger
from privspec.execute.budget import Unit
from privspec.execute.family import RunContext, mechanism_of, simulate
from privspec.execute.ledger import spends_of_plan
from privspec.execute.run import _combine as combine
from privspec.families.statistics.execution import EachParty, StatisticMechanism, executed_of
from privspec.families.statistics.tables import to_steps
from privspec.kernel.writing import plan_digest
from privspec.model.library import GRID_BITS
from privspec.noise.samplers import SimulationRandomness
from tests.execute.begun import execute_plan, run
from tests.functions.estimates import each_estimate_once

from .societies import RECORDS, SPEC, SUM_POOL, UNBOUNDED, documents, without_noise

DATA = np.random.default_rng(11).normal(size=(6, 4, 3)) / 3
KIDNEYS = Path("/work/shared/data/kidney_indecision_study2_strict_d3.csv.gz")


def released(plan: dict[str, Any], data: Any = DATA, seed: int = 1) -> np.ndarray:
    return execute_plan(plan, {"V": data}, randomness=SimulationRandomness(seed)).outputs["O"]


def bounded(records: np.ndarray) -> np.ndarray:
    steps, _ = to_steps(records.reshape(-1, 3), Fraction(1))
    return steps.reshape(records.shape) / 2**GRID_BITS


@pytest.mark.parametrize("measure", ["epsilon-DP", "(epsilon, 1e-6)-DP", "0.5-zCDP"])
@pytest.mark.parametrize("spec", [SPEC, RECORDS, UNBOUNDED])
def test_every_plan_of_the_compiler_runs(spec: str, measure: str) -> None:
    plans = documents(spec.replace("epsilon-DP", measure))
    assert plans
    for plan in plans.values():
        found = released(plan)
        assert found.shape == (3,) and np.isfinite(found).all()


def test_without_noise_each_route_gives_its_value() -> None:
    inside = bounded(DATA)
    for name, plan in documents().items():
        if name.startswith("Laplace") and not name.endswith("solved one by one"):
            route = executed_of(plan).route
            value = route.finish(route.statistic(inside).mean(axis=0)[None])[0]
            assert np.allclose(released(without_noise(plan)), value, atol=2e-3), name
    assert np.allclose(released(without_noise(documents()[SUM_POOL])), inside.sum(axis=1).mean(axis=0), atol=2e-6)
    weights = probit_mle(inside, 2.0).weights.mean(axis=0)
    estimated = without_noise(documents()["Laplace noise on the estimated weights at the pool"])
    assert np.allclose(released(estimated), weights, atol=2e-6)


def test_finishing_before_and_after_the_pool() -> None:
    plans = documents()
    name = "Laplace noise on the coefficients of the objective at each voter"
    after, before = without_noise(plans[name]), without_noise(plans[f"{name}, solved one by one"])
    route = executed_of(after).route
    statistics = route.statistic(bounded(DATA))
    assert np.allclose(released(after), route.finish(statistics.mean(axis=0)[None])[0], atol=1e-3)
    assert np.allclose(released(before), route.finish(statistics).mean(axis=0), atol=1e-3)
    assert not np.allclose(released(before), released(after), atol=1e-3)


def test_a_sum_is_not_divided() -> None:
    plan = without_noise(documents(SPEC.replace("mean(beta[voter] for", "sum(beta[voter] for"))[SUM_POOL])
    assert np.allclose(released(plan), 6 * released(without_noise(documents()[SUM_POOL])))


@pytest.mark.parametrize("name", [n for n in documents() if n.startswith("Laplace") and n.endswith("at each voter")])
def test_a_party_changes_no_other_partys_statistic(name: str) -> None:
    mechanism = StatisticMechanism(executed_of(documents()[name]))
    one = mechanism.read({"V": DATA}, RunContext())
    changed = DATA.copy()
    changed[2] = np.random.default_rng(1).normal(size=(4, 3)) * 100
    other = mechanism.read({"V": changed}, RunContext())
    assert isinstance(one, EachParty) and isinstance(other, EachParty)
    same = np.delete(np.arange(6), 2)
    assert np.array_equal(one.statistics[same], other.statistics[same])
    assert not np.array_equal(one.statistics[2], other.statistics[2])
    # the parties in another order, and one of them in a batch of its own
    turned = mechanism.read({"V": DATA[::-1]}, RunContext())
    assert isinstance(turned, EachParty) and np.array_equal(turned.statistics[::-1], one.statistics)
    records = np.round(bounded(DATA) * 2**GRID_BITS).astype(np.int64)
    alone = [mechanism.executed.route.exact(records[i : i + 1])[0] for i in range(6)]
    assert np.array_equal(alone, one.statistics)


def test_statistics_stay_within_their_bounds() -> None:
    random = np.random.default_rng(2)
    extreme = random.choice([-1e3, -1.0, 0.0, 1e-9, 1.0, 1e200], size=(6, 4, 3))
    with each_estimate_once():  # of the same records, whichever noise is added
        for name, plan in documents().items():
            if name.startswith("Laplace") and "at each voter" in name:
                mechanism = StatisticMechanism(executed_of(plan))
                secret = mechanism.read({"V": extreme}, RunContext())
                assert isinstance(secret, EachParty)
                for norm, bound in mechanism.executed.route.bound().items():
                    limit = bound * 2**GRID_BITS
                    for row in secret.statistics.tolist():
                        sizes = {"l1": sum(map(abs, row)), "linf": max(map(abs, row))}
                        size = sizes.get(norm.value)
                        assert sum(s * s for s in row) <= limit**2 if size is None else size <= limit, name


# --- personal budgets -----------------------------------------------------------------------------

PERSONAL = SPEC.replace("epsilon = 1", "epsilon[voter] = (1/4, 1, 1, 2, 1, 3)").replace(
    "epsilon-DP", "epsilon[voter]-DP"
)


def personal() -> dict[str, dict[str, Any]]:
    return documents(PERSONAL.replace("wrt V,", "wrt V[voter],"))


def test_each_party_has_noise_of_its_own() -> None:
    plan = personal()["Laplace noise on the sum of the records at each voter"]
    executed = executed_of(plan)
    assert executed.personal and executed.weights is not None
    scales = [Fraction(site["parameters"]["scale"]) for site in plan["mechanism"]["sites"]]
    assert [scales[1] / scale for scale in scales] == [Fraction(1, 4), 1, 1, 2, 1, 3]
    # parties are told apart by their keys, wherever their rows stand
    order = [3, 1, 6, 2, 5, 4]
    flat = np.concatenate([DATA[i - 1] for i in order])
    table = pl.DataFrame({"voter": np.repeat(order, 4), **{f"V_{j + 1}": flat[:, j] for j in range(3)}})
    assert np.array_equal(released(plan, table), released(plan, DATA))


def test_the_largest_personal_amount_is_debited() -> None:
    plan = personal()["Laplace noise on the sum of the records at each voter"]
    (spend,) = spends_of_plan(plan).values()
    assert spend.pure == Fraction(3)
    pool = personal()[SUM_POOL]
    (spend,) = spends_of_plan(pool).values()
    assert spend.pure == Fraction(1, 4)


def test_sphere_reports_of_parties_with_budgets_of_their_own() -> None:
    found = released(personal()["Duchi's sphere noise on the sum of the records at each voter"])
    assert np.isfinite(found).all()


# --- releases, files and budgets ------------------------------------------------------------------


def test_a_release_is_paid_for_and_written(tmp_path: Path) -> None:
    plan = documents()[SUM_POOL]
    book = tmp_path / "budget.db"
    release = run(plan, {"V": DATA}, book, tmp_path / "O.json")
    document = json.loads((tmp_path / "O.json").read_text())
    assert document["outputs"]["O"]["values"] == release.outputs["O"].tolist()
    assert document["private"] and document["guarantees"] == plan["guarantees"]
    assert any("first 4 records of each voter" in rule for rule in document["data_rules"])
    (account,) = ledger.show(book).accounts
    assert account.unit == Unit(("V",), "replacing one voter") and account.spends[0].pure == 1
    with pytest.raises(BudgetError):
        run(plan, {"V": DATA}, book)
    with pytest.raises(BudgetError):
        # a record is another unit: its amounts have a limit of their own
        run(documents(RECORDS)[SUM_POOL], {"V": DATA}, book)


@pytest.mark.parametrize("name", ["O.csv", "O.npy", "O.parquet"])
def test_other_formats(tmp_path: Path, name: str) -> None:
    release = run(documents()[SUM_POOL], {"V": DATA}, tmp_path / "budget.db", tmp_path / name)
    path = tmp_path / name
    if name.endswith("csv"):
        with path.open() as file:
            found = [float(row["value"]) for row in csv.DictReader(file)]
    else:
        found = (np.load(path) if name.endswith("npy") else pl.read_parquet(path))["value"]
    assert np.array_equal(found, release.outputs["O"])


def test_gaussian_noise_is_debited_as_such(tmp_path: Path) -> None:
    plan = documents(SPEC.replace("epsilon-DP", "(epsilon, 1e-6)-DP"))[
        "Gaussian noise on the coefficients of the objective at the pool"
    ]
    run(plan, {"V": DATA}, tmp_path / "budget.db")
    (account,) = ledger.show(tmp_path / "budget.db").accounts
    assert account.spends[0].mu is not None


def test_records_and_voters_are_protected_together() -> None:
    both = SPEC.replace("privacy: O", "privacy:\n  O is (2 * epsilon)-DP wrt V, replacing one record\n  O")
    spends = spends_of_plan(documents(both)[SUM_POOL])
    assert {unit.neighbours for unit in spends} == {"replacing one voter", "replacing one record"}


def test_simulations_are_seeded_draws() -> None:
    plan = documents()[SUM_POOL]
    drawn = simulate(plan, 400, seed=3)
    assert drawn.shape == (400, 3) and np.array_equal(drawn, simulate(plan, 400, seed=3))
    # the K-norm noise of a sum of four records in the unit ball: scale 8, over six voters
    assert np.allclose(drawn.std(axis=0), (3 + 1) ** 0.5 * 8 / 6, rtol=0.3)


# --- messages -------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", [documents, personal])
def test_messages_of_all_parties_make_the_release(tmp_path: Path, which: Any) -> None:
    plan = without_noise(which()["Laplace noise on the sum of the records at each voter"])
    table = pl.DataFrame(
        {"voter": np.repeat(np.arange(1, 7), 4), **{f"V_{j + 1}": DATA.reshape(-1, 3)[:, j] for j in range(3)}}
    )
    messages = []
    for i in (3, 1, 2, 6, 5, 4):
        # its own rows out of a table of all, a table without a column of parties, an array
        own = (table, table.filter(pl.col("voter") == i).drop("voter"), DATA[i - 1])[i % 3]
        place = tmp_path / f"{i}.json"
        run(plan, {"V": own}, tmp_path / f"{i}.db", place, party=str(i))
        messages.append(place)
        assert json.loads(place.read_text())["outputs"]["voter"]["values"] == [str(i)]
        with pytest.raises(BudgetError):
            run(plan, {"V": own}, tmp_path / f"{i}.db", party=str(i))
    release = combine(plan, messages, tmp_path / "O.json")
    assert np.allclose(release.outputs["O"], released(plan), atol=1e-9) and release.private
    for wrong, code in (
        (messages[:5], "PS0811"),
        ([*messages[:5], messages[0]], "PS0842"),
        ([tmp_path / "O.json"], "PS0842"),
    ):
        with pytest.raises(DataError) as caught:
            combine(plan, wrong)
        assert caught.value.diagnostics[0].code == code


def test_messages_of_another_plan_and_of_a_seed() -> None:
    plans = documents(N=1)
    plan = plans["Duchi's sphere noise on the sum of the records at each voter"]
    message = run(plan, {"V": DATA[0]}, party="ann", randomness=SimulationRandomness(1))
    release = combine(plan, [message])
    assert not release.private and not release.guarantees
    with pytest.raises(DataError) as caught:
        combine(plans["Laplace noise on the sum of the records at each voter"], [message])
    assert caught.value.diagnostics[0].code == "PS0843"


def test_parties_make_no_messages_where_noise_enters_at_the_pool() -> None:
    for attempt in (lambda plan: run(plan, {"V": DATA[0]}, party="1"), lambda plan: combine(plan, [{}])):
        with pytest.raises(UsageError) as caught:
            attempt(documents()[SUM_POOL])
        assert caught.value.diagnostics[0].code == "PS0844"
    with pytest.raises(UsageError):
        run(personal()["Laplace noise on the sum of the records at each voter"], {"V": DATA[0]}, party="7")


def test_progress_is_told() -> None:
    told: list[tuple[str, int, int | None]] = []
    plan = documents()["Laplace noise on the sum of the records at each voter"]
    run(plan, {"V": DATA}, randomness=SimulationRandomness(1), progress=lambda *what: told.append(what))
    assert told[-1] == ("draws", 6, 6) and ("voters read", 6, 6) in told


@pytest.mark.parametrize(
    "change",
    [
        {"grid": "1/1024"},
        {"parties": 0},
        {"radius": "2000"},
        {"dimension": 4},
        {"version": 2},
        {"sites": []},
        {"weights": ["1"]},
        {"route": "something"},
        {"where": "nowhere"},
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(change: dict[str, Any]) -> None:
    plan = copy.deepcopy(documents()[SUM_POOL])
    part = plan["problem"]["blocks"][0]
    (part if set(change) <= {*part} - {"sites"} else plan["mechanism"]).update(change)
    with pytest.raises(UsageError) as caught:
        mechanism_of(plan | {"digest": plan_digest(plan)})
    assert caught.value.diagnostics[0].code == "PS0820"


@pytest.mark.skipif(not KIDNEYS.exists(), reason="the kidney data are not here")
def test_kidney_allocation(tmp_path: Path) -> None:
    plans = documents(N=132, n=40)
    exact = released(without_noise(plans[SUM_POOL]), KIDNEYS)
    assert exact[0] < 0 and exact[2] > 0  # the younger are chosen, and those with dependents
    noisy = run(plans[SUM_POOL], {"V": KIDNEYS}, tmp_path / "budget.db").outputs["O"]
    assert np.linalg.norm(noisy - exact) < 20 * 80 / 132


def test_messages_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = documents(N=2)["Duchi's sphere noise on the sum of the records at each voter"]
    (tmp_path / "society.plan.json").write_text(json.dumps(plan))
    flat = DATA[:2].reshape(-1, 3)
    columns = {f"V_{j + 1}": flat[:, j] for j in range(3)}
    pl.DataFrame({"voter": np.repeat(["ann", "bob"], 4), **columns}).write_csv(tmp_path / "V.csv")
    head = [str(tmp_path / "society.plan.json")]
    for who in ("ann", "bob"):
        made = [
            "--party",
            who,
            "--input",
            f"V={tmp_path / 'V.csv'}",
            "--ledger",
            str(tmp_path / f"{who}.db"),
            "--new-ledger",
        ]
        assert run_command_line(["run", *head, *made, "-o", str(tmp_path / f"{who}.json"), "--quiet"]) == 0
    messages = [str(tmp_path / "ann.json"), str(tmp_path / "bob.json")]
    assert run_command_line(["aggregate", *head, *messages, "-o", str(tmp_path / "O.csv"), "--quiet"]) == 0
    assert (tmp_path / "O.csv").read_text().startswith("output,index,value,")
    # a message was paid for: it is not written over, and neither is the plan
    for needed in (messages[1], head[0]):
        before = Path(needed).read_bytes()
        assert run_command_line(["aggregate", *head, *messages, "-o", needed]) == UsageError.exit_code
        assert Path(needed).read_bytes() == before and "PS0832" in capsys.readouterr().err
    capsys.readouterr()
    assert run_command_line(["aggregate", *head, *messages]) == 0
    assert len(json.loads(capsys.readouterr().out)["outputs"]["O"]["values"]) == 3
    assert run_command_line(["aggregate", *head, messages[0]]) == DataError.exit_code
    assert "PS0811" in capsys.readouterr().err
