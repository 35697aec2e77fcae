"""Tables: exact draws, one report per row, central draws, files, and what a run costs."""

from __future__ import annotations

import csv
import gzip
import json
import os
import time
from bisect import bisect_left, bisect_right
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from privspec.core.diagnostics import BudgetError, DataError, PrivspecError, UsageError
from privspec.core.rounding import log_up
from privspec.core.spans import Source
from privspec.execute import ledger
from privspec.execute.budget import parse_limit
from privspec.execute.drawing import Labels, RowLaw, TableLaw
from privspec.execute.family import simulate
from privspec.execute.keeper import DataOwnerReport
from privspec.execute.ledger import spends_of_plan
from privspec.kernel.writing import plan_digest
from privspec.model.build import load_model
from privspec.model.graph import Model
from privspec.noise.samplers import Randomness, SimulationRandomness, SystemRandomness
from tests.execute.begun import execute_plan, run

from .tables import ALARM, chi_square, k_rr, make_table_plan

COLOURS = ["red", "green", "blue", "yellow"]


def words_plan(**more: Any) -> dict[str, Any]:
    return make_table_plan(k_rr(4), inputs=COLOURS, outputs=COLOURS, **more)


def point_plan(side: int = 3) -> dict[str, Any]:
    places = [[str(a), str(b)] for a in range(1, side + 1) for b in range(1, side + 1)]
    table = k_rr(side * side, Fraction(10**6))
    return make_table_plan(
        table, of=("place",), releases=("report",), inputs=places, outputs=places, measure="epsilon-metric-DP"
    )


class Fixed(Randomness):
    """Words that were written down."""

    private = False

    def __init__(self, words: list[int]) -> None:
        super().__init__()
        self._words = words

    def word(self) -> int:
        return self._words.pop(0)

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.array([self.word() for _ in range(count)], dtype=np.uint64)

    def _fresh(self, count: int) -> bytes:
        raise AssertionError


# --- the sampler ----------------------------------------------------------------------------------


@pytest.mark.parametrize("row", [0, 2])
def test_draws_follow_the_row_exactly(row: int) -> None:
    law = TableLaw.of_plan(make_table_plan(k_rr(5, Fraction(7, 3))))
    drawn = law.draw(np.full(100_000, row), SimulationRandomness(row))
    exact = [w / law.laws[row].total for w in law.laws[row].weights]
    assert chi_square(np.bincount(drawn, minlength=5), exact) > ALARM


def test_the_test_finds_a_wrong_law() -> None:
    law = TableLaw.of_plan(make_table_plan(k_rr(5, Fraction(7, 3))))
    drawn = law.draw(np.full(100_000, 1), SimulationRandomness(1))
    wrong = [
        w / law.laws[1].total + shift for w, shift in zip(law.laws[1].weights, (0.01, -0.01, 0, 0, 0), strict=True)
    ]
    assert chi_square(np.bincount(drawn, minlength=5), wrong) < ALARM


@given(st.lists(st.integers(0, 40), min_size=1, max_size=6).filter(any))
def test_every_share_begins_where_it_should(weights: list[int]) -> None:
    """At each share of the denominator, and by 2^-192 below it: as many digits are looked at as it takes."""
    law, found = RowLaw.of(weights, sum(weights)), [0] * len(weights)
    for value in range(law.total):
        above = -(-(value << 192) // law.total)
        at, under = (
            law.draw(Fixed([digits >> 128, digits >> 64 & 2**64 - 1, digits & 2**64 - 1, 0]))
            for digits in (above, above - 1 if value else above)
        )
        assert at == bisect_right(law.cumulative, value) and under == bisect_left(law.cumulative, value or 1)
        found[at] += 1
    assert [Fraction(f, law.total) for f in found] == [Fraction(w, sum(weights)) for w in weights]


def test_denominators_beyond_a_word() -> None:
    law = RowLaw.of([1, 3**200 - 1], 3**200)
    assert law.total == 3**200
    assert law.weights == (1, 3**200 - 1)
    assert law.draw(SimulationRandomness(1)) == 1


@pytest.mark.parametrize("row", [["1/2", "1/3"], ["3/2", "-1/2"], ["1/0", "1"], ["1/2", "x"]])
def test_what_is_no_law_is_not_run(row: list[str]) -> None:
    plan = make_table_plan([[Fraction(1, 2)] * 2] * 2)
    plan["mechanism"]["probabilities"][1] = row
    plan["digest"] = plan_digest(plan)
    with pytest.raises(UsageError, match="PS0820"):
        execute_plan(plan, {"x": [1]})


@pytest.mark.parametrize("part", ["inputs", "outputs", "probabilities"])
def test_tables_that_do_not_fit_are_not_run(part: str) -> None:
    for change in (lambda old: old[:-1], lambda old: [*old, old[0]]):
        plan = words_plan()
        plan["mechanism"][part] = change(plan["mechanism"][part])
        plan["digest"] = plan_digest(plan)
        with pytest.raises(UsageError, match="PS0820"):
            execute_plan(plan, {"x": ["red"]})


def test_a_draw_is_fast_enough() -> None:
    law = TableLaw.of_plan(make_table_plan(k_rr(100)))
    begin = time.perf_counter()
    law.draw(np.zeros(20_000, dtype=np.uint8), SystemRandomness())
    assert (time.perf_counter() - begin) / 20_000 < 25e-6  # 1.3 microseconds on an idle machine


def test_randomness_is_the_systems_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    real = os.urandom

    def watched(size: int) -> bytes:
        asked.append(size)
        return real(size)

    monkeypatch.setattr(os, "urandom", watched)
    release = execute_plan(words_plan(), {"x": ["red"] * 10})
    assert release.private and asked


def test_simulate_draws_at_one_row() -> None:
    sample = simulate(point_plan(), 2000, seed=1, base={"place": [[2, 3]]})
    assert sample.shape == (2000, 2)
    assert (sample == [2, 3]).all(axis=1).mean() > 0.99
    codes = simulate(words_plan(), 100, seed=1)
    assert codes.shape == (100, 1) and set(codes[:, 0]) <= {0.0, 1.0, 2.0, 3.0}
    with pytest.raises(UsageError, match="PS0822"):
        simulate(words_plan(), 10**8, seed=1)


# --- reading reports ------------------------------------------------------------------------------


def truthful(size: int, **more: Any) -> dict[str, Any]:
    """A plan that says the truth: its release shows what was read."""
    eye = [[Fraction(int(i == j)) for j in range(size)] for i in range(size)]
    return make_table_plan(eye, **more)


def seen(plan: dict[str, Any], data: Any, **more: Any) -> list[Any]:
    release = run(plan, data, randomness=SimulationRandomness(1), **more)
    values: list[Any] = next(iter(release.values.values())).tolist()
    return values


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    import polars as pl

    frame = pl.DataFrame(rows)
    match path.suffix:
        case ".csv":
            frame.write_csv(path)
        case ".tsv":
            frame.write_csv(path, separator="\t")
        case ".gz":
            path.write_bytes(gzip.compress(frame.write_csv().encode()))
        case ".parquet":
            frame.write_parquet(path)
        case ".npy":
            array = frame.to_numpy()
            np.save(path, array[:, 0] if array.shape[1] == 1 else array)
        case ".json":
            path.write_text(json.dumps(frame.to_dict(as_series=False)))
    return path


SUFFIXES = ["csv", "csv.gz", "tsv", "parquet", "npy", "json"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_numbers_from_files(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"x.{suffix}", [{"x": i} for i in (3, 1, 2, 3)])
    assert seen(truthful(3), {"x": path}) == [3, 1, 2, 3]


@pytest.mark.parametrize("suffix", [s for s in SUFFIXES if s != "npy"])
def test_words_from_files(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"x.{suffix}", [{"other": 1, "x": w} for w in ("blue", "red")])
    assert seen(truthful(4, inputs=COLOURS, outputs=COLOURS), {"x": path}) == ["blue", "red"]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("names", [("place_1", "place_2"), ("place.1", "place.2"), ("place[1]", "place[2]")])
def test_points_from_files(tmp_path: Path, suffix: str, names: tuple[str, str]) -> None:
    places = [[str(a), str(b)] for a in (1, 2, 3) for b in (1, 2)]
    plan = truthful(6, of=("place",), inputs=places, outputs=places)
    path = write(tmp_path / f"p.{suffix}", [dict(zip(names, v, strict=True)) for v in ((3, 2), (1, 1))])
    assert seen(plan, {"place": path}) == [[3, 2], [1, 1]]


def test_objects_in_memory() -> None:
    import polars as pl
    import pyarrow as pa

    plan, words = truthful(3), truthful(4, inputs=COLOURS, outputs=COLOURS)
    for source in (
        [3, 1, 2],
        (3.0, 1.0, 2.0),
        ["3", "1", "2"],
        np.array([3, 1, 2]),
        np.array([[3], [1], [2]]),
        pl.Series([3, 1, 2]),
        pl.DataFrame({"x": [3, 1, 2], "y": ["a", "b", "c"]}),
        pl.LazyFrame({"x": [3, 1, 2]}),
        pa.table({"x": [3, 1, 2]}),
        {"x": [3, 1, 2]},
        [{"x": 3}, {"x": 1}, {"x": 2}],
    ):
        assert seen(plan, {"x": source}) == [3, 1, 2]
    for text in (
        ["blue", " red "],
        np.array(["blue", "red"]),
        pl.Series(["blue", "red"]),
        pl.DataFrame({"x": ["blue", "red"]}),
        pa.table({"x": ["blue", "red"]}),
    ):
        assert seen(words, {"x": text}) == ["blue", "red"]


def test_pandas() -> None:
    pd = pytest.importorskip("pandas")
    assert seen(truthful(3), {"x": pd.DataFrame({"x": [3, 1]})}) == [3, 1]
    assert seen(truthful(3), {"x": pd.Series([3, 1])}) == [3, 1]


def test_several_inputs_come_from_one_file_or_from_several(tmp_path: Path) -> None:
    joint = [[sex, income] for sex in ("F", "M") for income in ("low", "high")]
    plan = truthful(4, of=("sex", "income"), inputs=joint, outputs=["1", "2", "3", "4"])
    people = write(tmp_path / "people.csv", [{"income": "high", "sex": "F"}, {"income": "low", "sex": "M"}])
    assert seen(plan, {"sex": people}) == [2, 3]
    assert seen(plan, {"sex": people, "income": people}) == [2, 3]
    assert seen(plan, {"sex": ["F", "M"], "income": ["high", "low"]}) == [2, 3]
    with pytest.raises(DataError, match="PS0808"):
        seen(plan, {"sex": ["F", "M"], "income": ["high"]})
    with pytest.raises(DataError, match="PS0801"):
        seen(plan, {"sex": people, "age": people})


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (2.4, 2), (2.5, 3), (-7, 1), (1e300, 3), ("inf", 3), ("-inf", 1), ("", 1), ("what", 1), (None, 1), ("nan", 1),
        ("2.49", 2), (True, 1),
    ],
)  # fmt: skip
def test_numbers_move_to_the_nearest_value_each_by_itself(value: Any, place: int) -> None:
    assert seen(truthful(3), {"x": [3, value, 2]}) == [3, place, 2]
    if value != 2.4:
        return
    assert seen(truthful(3, inputs=["-1", "1/3", "0.1"], outputs=["7", "8", "9"]), {"x": [-0.2, None, 0.3]}) == [
        9,
        9,
        8,
    ]


def test_a_word_that_is_not_in_its_set_becomes_the_first_without_showing_it(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("x\nred\nblue\nsecret-value\nred\n")
    with pytest.raises(DataError) as caught:
        run(words_plan(), {"x": path}, tmp_path / "l.db", tmp_path / "o.json", strict=True)
    diagnostic = caught.value.diagnostics[0]
    assert diagnostic.code == "PS0809"
    assert "record 3" in diagnostic.message
    assert "secret" not in str(caught.value) + repr(diagnostic)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.csv"]
    keeper = DataOwnerReport()
    release = run(words_plan(), {"x": path}, randomness=SimulationRandomness(1), keeper=keeper)
    assert len(release.outputs["z"]) == 4
    assert keeper.brief() == ["x: 1 of 4 not one of the declared values; each counts as red"]
    assert "secret-value" in keeper.report()[1]
    assert "secret" not in json.dumps(release.to_json())


def test_strict_refuses_numbers_that_would_move() -> None:
    with pytest.raises(DataError, match="PS0809"):
        run(truthful(3), {"x": [1, 2, 2.5]}, randomness=SimulationRandomness(1), strict=True)
    release = run(truthful(3), {"x": [1, 2, 3]}, randomness=SimulationRandomness(1), strict=True)
    assert [w.code for w in release.warnings] == ["PS0810"]


def test_columns_are_found_by_name_only(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("1\n2\n3\n")
    with pytest.raises(DataError, match="PS0804") as caught:
        seen(truthful(3), {"x": path})
    assert caught.value.diagnostics[0].help == "the first line of a file names its columns: x"
    with pytest.raises(DataError, match="PS0804"):
        seen(point_plan(), {"place": {"place_1": [1], "y": [1]}})


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_damaged_files(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x.{suffix}"
    path.write_bytes(b"\x80secret\x00")
    with pytest.raises(DataError) as caught:
        seen(truthful(3), {"x": path})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "x\n"])
def test_no_records(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=r"PS0804|PS0808"):
        seen(truthful(3), {"x": path})


def test_lines_of_a_text_file(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text('\ufeffname, x\r\n"a,b",3\r\n\r\nc\r\nd,2,extra\r\n\r\n\r\n', encoding="utf-8", newline="")
    # an empty line and a short one hold a missing value, and every line is a record
    assert seen(truthful(3), {"x": path}) == [3, 1, 1, 2, 1, 1]


def test_data_for_an_input_that_is_none() -> None:
    with pytest.raises(DataError, match="PS0801"):
        seen(truthful(3), {"y": [1]})
    with pytest.raises(DataError, match="PS0801"):
        seen(truthful(3), {})
    with pytest.raises(DataError, match="PS0802"):
        seen(truthful(3), {"x": Path("nowhere.csv")})
    with pytest.raises(DataError, match="PS0805"):
        seen(truthful(3), {"x": np.ones((2, 2))})


@pytest.mark.slow
def test_a_million_records_in_bounded_memory_with_progress(tmp_path: Path) -> None:
    import tracemalloc

    path = tmp_path / "x.csv"
    with path.open("w") as file:
        file.write("x\n")
        for _ in range(100):
            file.write("1\n2\n" * 2_000)
    told: list[tuple[str, int, int | None]] = []
    tracemalloc.start()
    release = run(
        truthful(2), {"x": path}, randomness=SimulationRandomness(1), progress=lambda *state: told.append(state)
    )
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert release.outputs["z"].tolist() == [1, 2] * 200_000
    assert peak < 60e6  # the texts of all records would take more
    assert told[0] == ("records read", 65_536, None)
    assert told[-1] == ("reports drawn", 400_000, 400_000)


# --- releases -------------------------------------------------------------------------------------


def test_json_of_local_reports(tmp_path: Path) -> None:
    out = tmp_path / "o.json"
    release = run(words_plan(), {"x": ["red", "blue"]}, tmp_path / "l.db", out)
    data = json.loads(out.read_text())
    assert list(data["outputs"]) == ["z"] and len(data["outputs"]["z"]["values"]) == 2
    assert set(data["outputs"]["z"]["values"]) <= set(COLOURS)
    assert data["private"] is True and data["guarantees"] == list(release.guarantees)
    assert "grid" not in data and data["data_rules"]


def test_whole_numbers_stay_whole_and_fractions_become_doubles() -> None:
    values = Labels.read(["z"], ["1", "2"]).values()["z"]
    assert values.dtype.kind == "i" and values.tolist() == [1, 2]
    assert Labels.read(["z"], ["1/3", "0.5"]).values()["z"].tolist() == [1 / 3, 0.5]
    assert Labels.read(["z"], ["1", "low"]).values()["z"].tolist() == ["1", "low"]


@pytest.mark.parametrize("suffix", ["csv", "parquet", "json"])
def test_points_in_files(tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"o.{suffix}"
    points = [[1, 1], [3, 2], [2, 3]] * 20
    release = run(point_plan(), {"place": points}, tmp_path / "l.db", out)
    again = seen(
        truthful(
            9, of=("report",), inputs=point_plan()["mechanism"]["inputs"], outputs=point_plan()["mechanism"]["inputs"]
        ),
        {"report": out},
    )
    assert again == release.outputs["report"].tolist()
    if suffix == "csv":
        with out.open() as file:
            lines = list(csv.DictReader(file))
        assert len(lines) == 60 and list(lines[0]) == ["report_1", "report_2", "private", "ledger", "plan"]


def test_reports_in_arrays(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="PS0831"):
        run(words_plan(), {"x": ["red"]}, tmp_path / "l.db", tmp_path / "o.npz")
    assert not (tmp_path / "l.db").exists()
    run(words_plan(), {"x": ["red"]}, tmp_path / "l.db", tmp_path / "o.npy")
    found = np.load(tmp_path / "o.npy")
    assert found.dtype.names == ("z", "private", "ledger", "plan") and found["z"][0] in COLOURS
    run(truthful(3), {"x": [1, 3]}, tmp_path / "whole.db", tmp_path / "whole.npy")
    found = np.load(tmp_path / "whole.npy")
    assert found[found.dtype.names[0]].tolist() == [1, 3] and found["private"].all()


def test_outputs_in_the_library_of_the_data() -> None:
    import polars as pl

    release = execute_plan(words_plan(), {"x": pl.DataFrame({"x": ["red", "blue"]})})
    assert isinstance(release["z"], pl.Series) and release["z"].dtype == pl.String
    assert isinstance(execute_plan(words_plan(), {"x": ["red"]})["z"], np.ndarray)


def test_a_simulation_says_so_and_repeats() -> None:
    first, second = (run(words_plan(), {"x": COLOURS * 9}, randomness=SimulationRandomness(5)) for _ in range(2))
    assert first.outputs["z"].tolist() == second.outputs["z"].tolist()
    assert not first.private and not first.guarantees


# --- the ledger -----------------------------------------------------------------------------------


def test_a_run_of_any_number_of_reports_is_one_debit(tmp_path: Path) -> None:
    book = tmp_path / "l.db"
    run(words_plan(), {"x": ["red"] * 500}, book)
    state = ledger.show(book)
    assert state.debits == 1
    assert "epsilon=1" in state.accounts[0].describe()
    with pytest.raises(BudgetError, match="PS1001"):
        run(words_plan(), {"x": ["red"]}, book)


@pytest.mark.parametrize(
    ("text", "metric"),
    [
        ("report is 1-metric-DP wrt place, distance euclidean", " euclidean"),
        ("report is 1-metric-DP wrt place, distance |x - x'|, seen by A and B", " |x - x'|"),
        ("report is 1-metric-DP wrt place", ""),
    ],
)
def test_an_amount_for_each_unit_of_distance_is_for_a_unit_of_its_own(text: str, metric: str) -> None:
    guarantee = {**point_plan()["guarantees"][0], "text": text}
    (unit,) = spends_of_plan({**point_plan(), "guarantees": [guarantee]})
    assert unit.neighbours == f"replacing everything, for each unit of distance{metric}"
    limit, read = parse_limit(f"epsilon=2 {unit.describe()}")
    assert read == unit and limit.describe() == "epsilon=2"


def test_logarithms_round_up() -> None:
    from flint import arb, ctx

    before = ctx.prec
    try:
        ctx.prec = 1024
        for ratio in (Fraction(3), Fraction(10**9 + 1, 10**9), Fraction(10**30, 7)):
            up = log_up(ratio)
            assert (arb(up.numerator) / arb(up.denominator)).exp() > arb(ratio.numerator) / arb(ratio.denominator)
            assert float(up) == pytest.approx(np.log(float(ratio)), rel=1e-7)
    finally:
        ctx.prec = before
    assert 0 <= log_up(Fraction(1)) < Fraction(1, 2**200)


# --- with the spec --------------------------------------------------------------------------------


def model_of(text: str) -> Model:
    return load_model(Source("demo.priv", text))


COUNT = """
spec demo
variables:
  input answers in {0, 1}^4
  intermediate count
  output O in 0..4
background:
  count = sum(answers)
  count ~ uniform
loss:
  E[ |O - count| ]
privacy:
  O is 1-DP wrt answers, replacing one record
"""


def central_plan(size: int, **more: Any) -> dict[str, Any]:
    return truthful(size, releases=("O",), outputs=[str(i) for i in range(size)], measure="epsilon-DP", **more)


def test_a_count_is_computed_and_drawn_once() -> None:
    plan = central_plan(5, of=("count",), data=("answers",), inputs=["0", "1", "2", "3", "4"])
    model = model_of(COUNT)
    for data, count in (([1, 0, 1, 1], 3), ([0, 0, 0, 0], 0), ([7, 0.2, -3, None], 1)):
        release = run(plan, {"answers": data}, model=model, randomness=SimulationRandomness(1))
        assert release.outputs["O"].shape == () and release.outputs["O"] == count
    with pytest.raises(DataError, match="PS0805"):
        run(plan, {"answers": [1, 0]}, model=model, randomness=SimulationRandomness(1))
    with pytest.raises(DataError, match="PS0809") as caught:
        run(plan, {"answers": [1, 0, 2, 0]}, model=model, randomness=SimulationRandomness(1), strict=True)
    assert "record" not in caught.value.diagnostics[0].message


def test_records_in_any_order_are_counted() -> None:
    text = COUNT.replace("  count ~ uniform\n", "  answers ~ uniform\n")
    labels = [[str(4 - k), str(k)] for k in range(5)]
    plan = central_plan(5, of=("answers",), inputs=labels)
    release = run(plan, {"answers": [1, 0, 1, 1]}, model=model_of(text), randomness=SimulationRandomness(1))
    assert release.outputs["O"] == 3


VOTES = """
spec votes
parties:
  voter in 1..3
variables:
  input vote[voter] in {north, east}
  intermediate norths
  output O in 0..3
background:
  norths = count(vote, north)
loss:
  worst[ (O - norths)^2 ]
privacy:
  O is 1-DP wrt vote, replacing one voter
"""


def test_a_release_of_two_outputs_costs_what_they_show_together(tmp_path: Path) -> None:
    text = COUNT.replace("output O in 0..4", "output O in 0..4\n  output P in 0..1").replace(
        "  E[ |O - count| ]", "  E[ |O - count| ] + E[ |P - count| ]"
    )
    text += "  P is 1-DP wrt answers, replacing one record\n"
    table = [[Fraction(1, 10)] * 10 for _ in range(5)]
    table[2] = [Fraction(3, 20), Fraction(1, 20), *[Fraction(1, 10)] * 8]
    guarantee = make_table_plan(table)["guarantees"][0] | {"wrt": "answers", "neighbours": "replacing one record"}
    plan = make_table_plan(
        table,
        of=("count",),
        data=("answers",),
        releases=("O", "P"),
        inputs=[str(i) for i in range(5)],
        outputs=[[str(o), str(p)] for o in range(5) for p in range(2)],
        guarantees=[guarantee | {"outputs": ["O"]}, guarantee | {"outputs": ["P"], "requirement": 1}],
    )
    with pytest.raises(UsageError, match="PS1006"):
        spends_of_plan(plan)
    ((_, spend),) = spends_of_plan(plan, model_of(text)).items()
    assert spend.pure == log_up(Fraction(2))
    release = run(plan, {"answers": [1, 1, 0, 0]}, tmp_path / "l.db", tmp_path / "o.csv", model=model_of(text))
    assert set(release.outputs) == {"O", "P"}
    assert (tmp_path / "o.csv").read_text().startswith("O,P,private,ledger,plan\n")


def test_what_is_not_local_takes_one_record_only() -> None:
    plan = central_plan(3)
    assert run(plan, {"x": [2]}, randomness=SimulationRandomness(1)).outputs["O"] == 1
    with pytest.raises(DataError, match="PS0805"):
        run(plan, {"x": [2, 3]}, randomness=SimulationRandomness(1))


def test_no_message_shows_a_value(tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text('{"x": ["topsecret", {"a": "topsecret"}]}')
    sources: list[Any] = [
        bad,
        ["topsecret"],
        {"x": ["topsecret"]},
        {"topsecret": [1]},
        [{"topsecret": 1}],
        "topsecret.csv",
    ]
    for source in sources[:-1]:
        try:
            said = json.dumps(run(words_plan(), {"x": source}, randomness=SimulationRandomness(1)).to_json())
        except PrivspecError as error:
            said = repr(error.diagnostics)
        assert "topsecret" not in said
