"""Records by party: every record is bounded by itself, exactly; tables, arrays and published files are understood."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privspec.core.diagnostics import DataError
from privspec.execute.family import RunContext
from privspec.families.statistics.execution import Pool, StatisticMechanism, executed_of
from privspec.families.statistics.tables import (
    LARGEST,
    MORAL_CHARACTERS,
    MORAL_SITUATION,
    Gatherer,
    Wanted,
    rows_of,
    to_steps,
)
from privspec.model.library import GRID, GRID_BITS

from .societies import SPEC, SUM_POOL, documents

NUMBERS = st.floats(allow_nan=True, allow_infinity=True, width=64)


@given(
    st.lists(NUMBERS, min_size=1, max_size=5), st.fractions(min_value="1/1000", max_value=1000, max_denominator=1000)
)
@settings(max_examples=4 * settings().max_examples, deadline=None)
def test_a_record_lies_in_its_ball_exactly(record: list[float], radius: Fraction) -> None:
    steps, _ = to_steps(np.array([record]), radius)
    found = [GRID * int(step) for step in steps[0]]
    assert sum((x * x for x in found), Fraction(0)) <= radius**2
    if not np.isfinite(record).all():
        assert not any(found)
    elif sum((Fraction(x) ** 2 for x in record), Fraction(0)) <= radius**2 * Fraction(99, 100):
        # inside it stays where it is, but for the grid, towards zero
        for exact, gridded in zip(map(Fraction, record), found, strict=True):
            assert abs(gridded) <= abs(exact) < abs(gridded) + GRID


@given(st.lists(NUMBERS, min_size=1, max_size=5))
def test_unbounded_records_fit_into_steps(record: list[float]) -> None:
    steps, fits = to_steps(np.array([record]), None)
    assert np.all(np.abs(steps) <= LARGEST * 2**GRID_BITS)
    assert fits[0] == all(np.isfinite(x) and abs(x) <= LARGEST for x in record)


@given(st.integers(0, 1000), st.integers(1, 7))
@settings(max_examples=50, deadline=None)
def test_what_becomes_of_a_record_depends_on_it_alone(seed: int, dimension: int) -> None:
    random = np.random.default_rng(seed)
    records = random.normal(size=(20, dimension)) * 10.0 ** random.integers(-3, 4, size=(20, 1))
    together, _ = to_steps(records, Fraction(3, 2))
    for i in range(20):
        alone, _ = to_steps(records[i : i + 1], Fraction(3, 2))
        assert np.array_equal(alone[0], together[i])


@given(st.lists(st.integers(0, 6), min_size=1, max_size=12), st.integers(1, 5), st.integers(1, 30))
@settings(max_examples=2 * settings().max_examples, deadline=None)
def test_parties_do_not_depend_on_where_batches_end(counts: list[int], kept: int, batch: int) -> None:
    keys = [f"p{i}" for i, count in enumerate(counts) for _ in range(count)]
    rows = np.arange(1, len(keys) + 1, dtype=np.int64)[:, None]
    parts = [(pl.Series(keys[i : i + batch]), rows[i : i + batch]) for i in range(0, len(keys), batch)]
    blocks = list(Gatherer("voter", kept, 1).blocks(parts))
    found = {name: records[i, :, 0].tolist() for names, records in blocks for i, name in enumerate(names.to_list())}
    wanted, next_row = {}, 1
    for i, count in enumerate(counts):
        if count:
            own = list(range(next_row, next_row + count))[:kept]
            wanted[f"p{i}"] = own + [0] * (kept - len(own))
        next_row += count
    assert found == wanted


def test_a_party_that_comes_back_is_refused_without_its_name() -> None:
    parts = [
        (pl.Series(["ann", "bob"]), np.ones((2, 1), dtype=np.int64)),
        (pl.Series(["ann"]), np.ones((1, 1), dtype=np.int64)),
    ]
    with pytest.raises(DataError) as caught:
        list(Gatherer("voter", 1, 1).blocks(parts))
    assert caught.value.diagnostics[0].code == "PS0812"
    assert "ann" not in str(caught.value)


# --- sums against fractions -----------------------------------------------------------------------

RECORDS = np.random.default_rng(5).normal(size=(6, 4, 3))


def total_of(source: Any, spec: str = SPEC, **parameters: object) -> list[int]:
    mechanism = StatisticMechanism(executed_of(documents(spec, **parameters)[SUM_POOL]))
    secret = mechanism.read({"V": source}, RunContext())
    assert isinstance(secret, Pool)
    return list(secret.total)


def as_table(records: np.ndarray, form: str = "V_{}") -> pl.DataFrame:
    parties, count, dimension = records.shape
    flat = records.reshape(-1, dimension)
    columns = {form.format(j + 1): flat[:, j] for j in range(dimension)}
    return pl.DataFrame({"voter": np.repeat(np.arange(1, parties + 1), count), **columns})


def exact_total(records: np.ndarray) -> list[int]:
    """The sum of all records, by rational numbers: those outside the unit ball drawn in to it, then the grid."""
    total = [0, 0, 0]
    for record in records.reshape(-1, 3):
        steps, _ = to_steps(record[None], Fraction(1))
        length = float(np.linalg.norm(record))
        nearest = [Fraction(float(x)) / Fraction(max(length, 1.0)) for x in record]
        for j in range(3):
            assert abs(GRID * int(steps[0, j]) - nearest[j]) <= 2 * GRID
            total[j] += int(steps[0, j])
    return total


def test_sums_are_exact_and_the_same_from_every_source(tmp_path: Path) -> None:
    table = as_table(RECORDS)
    table.write_csv(tmp_path / "V.csv")
    table.write_parquet(tmp_path / "V.parquet")
    (tmp_path / "V.csv.gz").write_bytes(gzip.compress((tmp_path / "V.csv").read_bytes()))
    np.save(tmp_path / "V.npy", RECORDS)
    (tmp_path / "V.json").write_text(json.dumps({"V": RECORDS.tolist()}))
    (tmp_path / "rows.json").write_text(json.dumps(table.to_dicts()))
    wanted = exact_total(RECORDS)
    paths = [tmp_path / n for n in ("V.csv", "V.csv.gz", "V.parquet", "V.npy", "V.json", "rows.json")]
    for source in [RECORDS, table, table.lazy(), table.to_arrow(), table.to_dict(as_series=False), *paths]:
        assert total_of(source) == wanted


def test_pandas_too() -> None:
    pytest.importorskip("pandas")
    assert total_of(as_table(RECORDS).to_pandas()) == exact_total(RECORDS)


def test_order_of_parties_and_of_columns_does_not_matter() -> None:
    table = as_table(RECORDS)
    turned = pl.concat([table.filter(pl.col("voter") == i) for i in (4, 2, 6, 1, 5, 3)])
    assert total_of(turned.select("V_3", "voter", "V_1", "V_2")) == exact_total(RECORDS)
    assert total_of(as_table(RECORDS, "V[{}]")) == exact_total(RECORDS)


def test_pairs_of_alternatives_in_the_order_of_their_columns() -> None:
    table = as_table(RECORDS).rename({"V_1": "x_age", "V_2": "x_drinks", "V_3": "x_children"})
    zero = [pl.lit(0).alias(f"z_{n}") for n in ("children", "age", "drinks")]
    assert total_of(table.with_columns(zero)) == exact_total(RECORDS)
    swapped = table.rename({f"x_{n}": f"z_{n}" for n in ("age", "drinks", "children")})
    chosen = [pl.lit(0).alias(f"x_{n}") for n in ("age", "drinks", "children")]
    assert total_of(swapped.with_columns(chosen)) == [-step for step in exact_total(RECORDS)]


def test_only_the_first_records_count_and_missing_ones_are_zero() -> None:
    longer = np.concatenate([RECORDS, np.full((6, 2, 3), 0.5)], axis=1)
    assert total_of(longer) == total_of(as_table(longer)) == exact_total(RECORDS)
    assert total_of(RECORDS[:, :2]) == total_of(as_table(RECORDS[:, :2])) == exact_total(RECORDS[:, :2])


@pytest.mark.parametrize("bad", [None, float("nan"), float("inf"), "12 apples", ""])
def test_a_bad_record_becomes_zero_and_no_other(bad: Any) -> None:
    table = as_table(RECORDS).cast({"V_2": pl.String})
    values = table["V_2"].to_list()
    values[5] = bad if bad is None or isinstance(bad, str) else str(bad)
    wanted = RECORDS.copy()
    wanted[1, 1] = 0.0
    damaged = table.with_columns(pl.Series("V_2", values, dtype=pl.String))
    assert total_of(damaged) == exact_total(wanted)
    with pytest.raises(DataError) as caught:
        StatisticMechanism(executed_of(documents()[SUM_POOL])).read({"V": damaged}, RunContext(strict=True))
    assert caught.value.diagnostics[0].code == "PS0809"


def test_rows_without_a_party_are_left_out() -> None:
    table = as_table(RECORDS).cast({"voter": pl.String})
    stray = pl.DataFrame({"voter": [None, " "], "V_1": [1.0, 1.0], "V_2": [0.0, 0.0], "V_3": [0.0, 0.0]})
    assert total_of(pl.concat([table, stray])) == exact_total(RECORDS)


@pytest.mark.parametrize(
    ("source", "code"),
    [
        (RECORDS[:5], "PS0811"),
        (as_table(RECORDS[:3]), "PS0811"),
        (RECORDS[:, :, :2], "PS0805"),
        (as_table(RECORDS).drop("voter"), "PS0804"),
        (as_table(RECORDS).drop("V_2"), "PS0804"),
        (as_table(RECORDS).rename({"V_1": "x_a", "V_2": "x_b", "V_3": "z_a"}), "PS0804"),
        (as_table(RECORDS).rename({"V_1": "x_a", "V_2": "z_a"}), "PS0805"),
        (pl.concat([as_table(RECORDS), as_table(RECORDS[:1])]), "PS0812"),
        # how long a record of a list is, is its own affair: another one is read as it was
        ([[["a"]]], "PS0811"),
        ([["a"]], "PS0811"),
        (np.array([[["a", "b", "c"]]]), "PS0805"),
    ],
)
def test_data_of_another_form_are_refused(source: Any, code: str) -> None:
    with pytest.raises(DataError) as caught:
        total_of(source)
    assert caught.value.diagnostics[0].code == code


def test_an_input_is_named() -> None:
    mechanism = StatisticMechanism(executed_of(documents()[SUM_POOL]))
    for data in ({}, {"V": RECORDS, "W": RECORDS}):
        with pytest.raises(DataError) as caught:
            mechanism.read(data, RunContext())
        assert caught.value.diagnostics[0].code == "PS0801"


# --- the Moral Machine ----------------------------------------------------------------------------


def moral_machine() -> pl.DataFrame:
    """Three users: u2 answers twice, one response of u1 lacks its other side, one of u3 is saved on both."""
    head = [
        ("r1", "u2", 1), ("r2", "u1", 1), ("r1", "u2", 0), ("r3", "u2", 0), ("r2", "u1", 0), ("r3", "u2", 1),
        ("r4", "u1", 1), ("r5", "u3", 1), ("r5", "u3", 1), ("r6", "u3", 0), ("r6", "u3", 1),
    ]  # fmt: skip
    random = np.random.default_rng(3)
    numbers = {name: random.integers(0, 3, size=len(head)) for name in (*MORAL_SITUATION, *MORAL_CHARACTERS)}
    keys = dict(zip(("ResponseID", "UserID", "Saved"), map(list, zip(*head, strict=True)), strict=True))
    return pl.DataFrame({**keys, "Template": ["Desktop"] * len(head), **numbers})


@pytest.mark.parametrize(
    ("dimension", "features"), [(20, MORAL_CHARACTERS), (23, (*MORAL_SITUATION, *MORAL_CHARACTERS))]
)
def test_published_responses_of_the_moral_machine(tmp_path: Path, dimension: int, features: tuple[str, ...]) -> None:
    table = moral_machine()
    table.write_csv(tmp_path / "SharedResponsesFullFirstSessions.csv")
    table.write_parquet(tmp_path / "responses.parquet")
    numbers = table.select(features).to_numpy().astype(float)
    wanted = [
        ("u1", numbers[1] - numbers[4]),
        ("u2", numbers[0] - numbers[2]),
        ("u2", numbers[5] - numbers[3]),
        ("u3", numbers[10] - numbers[9]),
    ]
    for source in (table, tmp_path / "SharedResponsesFullFirstSessions.csv", tmp_path / "responses.parquet"):
        batches = list(rows_of(Wanted("V", "voter", dimension, 13), source))
        assert [key for keys, _ in batches for key in keys.to_list()] == [key for key, _ in wanted]
        assert np.array_equal(np.concatenate([records for _, records in batches]), [record for _, record in wanted])


def test_the_moral_machine_has_a_certain_width() -> None:
    with pytest.raises(DataError) as caught:
        list(rows_of(Wanted("V", "voter", 9, 13), moral_machine()))
    assert caught.value.diagnostics[0].code == "PS0805"


STREAM = """
import resource, sys
from privspec.execute.family import Circumstances
from privspec.families.statistics.execution import executed_of
from privspec.families.statistics.execution import StatisticMechanism
import json
mechanism = StatisticMechanism(executed_of(json.load(open(sys.argv[1]))))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
secret = mechanism.read({"V": sys.argv[2]}, Circumstances())
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, *secret.total)
"""


@pytest.mark.slow
def test_many_voters_in_bounded_memory(tmp_path: Path) -> None:
    parties, count, dimension = 200_000, 10, 23
    plan = documents(N=parties, n=count, d=dimension)[SUM_POOL]
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    columns = {f"V_{j + 1}": np.full(parties * count, 2.0**-5 * (j % 3 - 1)) for j in range(dimension)}
    voters = np.repeat(np.arange(parties), count)
    pl.DataFrame({"voter": voters, **columns}).write_parquet(tmp_path / "V.parquet")
    words = [sys.executable, "-c", STREAM, str(tmp_path / "plan.json"), str(tmp_path / "V.parquet")]
    kilobytes, *total = map(int, subprocess.run(words, capture_output=True, text=True, check=True).stdout.split())
    assert total == [parties * count * 2**15 * (j % 3 - 1) for j in range(dimension)]
    assert kilobytes < 2_000_000  # all records in doubles are 370 MB; what is held does not grow with the voters
