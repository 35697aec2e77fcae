"""Skeletons of specs: all names of a file's columns, places to fill in, and nothing of what its cells hold."""

from __future__ import annotations

import gzip
from datetime import date
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privspec.api import Problem
from privspec.cli import run_command_line
from privspec.core.diagnostics import SpecError, UsageError
from privspec.core.spans import Source
from privspec.execute.skeleton import skeleton, table_name
from privspec.language import syntax
from privspec.language.formatter import format_source
from privspec.language.parser import parse
from privspec.language.syntax import FILL_IN
from privspec.language.walk import every

CANARY = "kanarienvogel"


def written(folder: Path, text: str, name: str = "people.csv") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def names(text: str) -> list[str]:
    return [one.name for one in every(parse(Source("s.priv", text)), syntax.Member)]


def filled(text: str, *domains: str) -> str:
    for domain in domains:
        text = text.replace(f"in {FILL_IN}", f"in {domain}", 1)
    return text


def test_a_skeleton_says_in_one_message_what_to_fill_in_and_is_then_a_spec(tmp_path: Path) -> None:
    rows = "".join(f"{age},{1.5 * age},{'FM'[age % 2]},2025-01-{1 + age % 9:02}\n" for age in range(20, 60))
    path = written(tmp_path, f"age,Pay in EUR,sex,day\n{rows}")
    text = skeleton(path)
    assert names(text) == ["age", "Pay in EUR", "sex", "day"]
    for line in (
        "# age: whole numbers: ",
        "# Pay in EUR: numbers: ",
        "# sex: words: ",
        "# day: days: ",
        "# capital letters count",
    ):
        assert line in text
    with pytest.raises(SpecError) as caught:
        Problem(text).check()
    (problem,) = caught.value.diagnostics
    assert (problem.code, problem.message) == ("PS0276", "fill in what age, Pay in EUR, sex and day may be")
    assert len(problem.labels) == 4
    spec = filled(text, "0..120", "[0, 10000]", "{F, M}", "2025-01-01..2025-12-31")
    plan = Problem(spec).solve()
    assert abs(float(plan.run({"people": path}, seed=1)["total"]) - 40) < 20


def test_what_is_left_open_is_named_alone(tmp_path: Path) -> None:
    text = filled(skeleton(written(tmp_path, "age,sex\n1,F\n")), "0..9")
    with pytest.raises(SpecError, match="PS0276: fill in what sex may be"):
        Problem(text).check()


def test_semicolons_decimal_commas_and_other_days_are_seen_and_said(tmp_path: Path) -> None:
    text = skeleton(written(tmp_path, "Alter;Lohn;geboren\n" + "31;1.234,50;01.02.1994\n" * 3))
    assert names(text) == ["Alter", "Lohn", "geboren"]
    for said in ("semicolons between its columns", "capital letters count", "# Lohn: numbers with decimal commas"):
        assert said in text
    assert "# geboren: days in a form that is not read" in text
    assert "# a: numbers with decimal commas" in skeleton(written(tmp_path, 'a,b\n"1,5",2\n3,4\n'))


def test_names_that_no_spec_can_write_are_counted_and_left_out(tmp_path: Path) -> None:
    text = skeleton(written(tmp_path, ',age,"a""b"\n1,2,3\n'))
    assert names(text) == ["age"]
    assert "# column 1 has no name" in text and "# column 3 has no name" in text


# --- nothing of the data --------------------------------------------------------------------------

CELLS = st.lists(st.tuples(st.integers(0, 99), st.floats(0, 99), st.sampled_from("FM")), min_size=1, max_size=8)


@given(CELLS)
def test_files_with_columns_of_one_kind_have_one_skeleton(rows: list[tuple[int, float, str]]) -> None:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        place = Path(folder)
        usual = skeleton(written(place, "age,pay,sex\n1,2.5,F\n"))
        cells = "".join(f"{age},{pay + 0.5:.3f},{sex}\n" for age, pay, sex in rows)
        assert skeleton(written(place, f"age,pay,sex\n{cells}")) == usual


def test_a_single_cell_changes_no_skeleton(tmp_path: Path) -> None:
    usual = skeleton(written(tmp_path, "age,sex\n" + "1,F\n" * 30))
    for odd in (f"{CANARY},{CANARY}\n", "1\n", ",\n", f'"{CANARY}\n', f"1,F,{CANARY}\n", "1,5,F\n"):
        assert skeleton(written(tmp_path, "age,sex\n" + "1,F\n" * 20 + odd + "1,F\n" * 9)) == usual


def frame(sign: str) -> pl.DataFrame:
    many = {"word": [sign], "number": [len(sign)], "day": [date(2025, 1, len(sign))], "nested": [[sign]], "Ja": [True]}
    listed = {"listed": pl.Series([sign], dtype=pl.Enum([sign])), "category": pl.Series([sign], dtype=pl.Categorical)}
    return pl.DataFrame(many | listed)


def test_a_parquet_file_tells_its_schema_alone(tmp_path: Path) -> None:
    texts = []
    for sign in (CANARY, "a"):
        frame(sign).write_parquet(tmp_path / "people.parquet")
        texts.append(skeleton(tmp_path / "people.parquet"))
    assert texts[0] == texts[1]
    assert names(texts[0]) == ["word", "number", "day", "nested", "Ja", "listed", "category"]
    assert "# number: whole numbers" in texts[0] and "# day: days" in texts[0] and "# Ja: yes or no" in texts[0]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("first_line.csv", f"34,{CANARY}\n".encode()),
        ("twice.csv", f"{CANARY},{CANARY}\n".encode()),
        ("mail.csv", f"{CANARY},2025-01-01T12:00\n".encode()),
        ("long.csv", f"{CANARY * 20},b\n".encode()),
        ("no.parquet", CANARY.encode()),
        ("cut.parquet", b"PAR1" + CANARY.encode() + b"PAR1"),
        ("no.csv.gz", CANARY.encode()),
        ("cut.csv.gz", gzip.compress(f"a,b\n{CANARY},1\n".encode() * 999, mtime=0)[:40]),
        ("other.xlsx", CANARY.encode()),
        ("empty.csv", b""),
        ("signs.csv", f'"{CANARY}""a"\n'.encode()),
    ],
)
def test_no_message_quotes_a_file(
    name: str, data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(data)
    assert run_command_line(["init", name]) != 0
    shown = capsys.readouterr()
    assert "error[PS" in shown.err
    assert CANARY not in shown.out + shown.err
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_file_without_names_gets_some(tmp_path: Path) -> None:
    text = skeleton(written(tmp_path, f"34,{CANARY}\n"), header=False)
    assert names(text) == ["column_1", "column_2"]
    assert "--no-header" in text and CANARY not in text


# --- names ----------------------------------------------------------------------------------------

NAMES = st.lists(
    st.one_of(
        st.sampled_from(["in", "for", "ε", "loss", "E", "65+", "spec", "Größe", "x²"]), st.text(min_size=1, max_size=9)
    ),
    min_size=1,
    max_size=5,
    unique=True,
)


@given(NAMES)
def test_every_name_stands_in_the_skeleton_as_it_is(header: list[str]) -> None:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        path = Path(folder) / "people.csv"
        path.write_text(",".join('"' + name.replace('"', '""') + '"' for name in header) + "\n", "utf-8")
        try:
            text = skeleton(path)
        except UsageError as refused:
            assert refused.diagnostics[0].code == "PS0734"
            return
    assert set(names(text)) <= set(header)
    assert {name for name in header if name.isprintable() and '"' not in name and name.strip()} <= {*names(text)}
    assert format_source(Source("people.priv", text)) == text


@pytest.mark.parametrize(("file", "name"), [("2025 people.csv", "table_2025_people"), ("loss.csv", "table_loss")])
def test_a_file_gives_its_table_a_name(file: str, name: str) -> None:
    assert table_name(Path(file)) == name
    assert [one.target.name for one in parse(Source("s.priv", f"variables: input {name} in real\n")).variables] == [
        name
    ]


def test_no_file_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "age\n1\n")
    assert run_command_line(["init", "people.csv"]) == 0
    before = Path("people.priv").read_text("utf-8")
    assert run_command_line(["init", "people.csv"]) == 2
    assert Path("people.priv").read_text("utf-8") == before
