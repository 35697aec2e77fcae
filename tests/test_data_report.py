"""`privspec data`, and what a run tells the keeper: words in the report alone, nothing written, nothing spent."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from privspec.cli import run_command_line
from privspec.core.diagnostics import MisfitError
from privspec.manual import template_text
from privspec.plan import Plan

SECRET = "zq8675309"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("keeper")
    for name in ("histogram", "prefix_sums", "frequency_survey", "private_plurality", "borda_lottery"):
        (path / f"{name}.priv").write_text(template_text(name))
    for name in ("histogram", "prefix_sums", "frequency_survey", "private_plurality"):
        assert run_command_line(["solve", str(path / f"{name}.priv"), "--quiet"]) == 0
    return path


def written(path: Path, head: str, cells: list[str]) -> str:
    path.write_text("\n".join([head, *cells]) + "\n")
    return str(path)


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = run_command_line(list(arguments))
    captured = capsys.readouterr()
    assert captured.out == "" or arguments[0] != "data"
    return code, captured.err


PEOPLE = ["adult,F", "Adult,M", "child,f", f"{SECRET},M", "old, M ", ",F", "yuong,F"]


@pytest.mark.parametrize("document", ["histogram.priv", "histogram.plan.json"])
def test_unknown_words_are_shown_with_what_may_be_meant(
    folder: Path, capsys: pytest.CaptureFixture[str], document: str
) -> None:
    file = written(folder / "people.csv", "age_group,sex", PEOPLE)
    before = sorted(folder.iterdir())
    code, text = said(capsys, "data", str(folder / document), "--input", f"people={file}")
    assert code == 0
    assert '1 of 7 say "Adult": not one of child, young, adult, old (did you mean adult?)' in text
    assert '1 of 7 say "yuong": not one of child, young, adult, old (did you mean young?)' in text
    assert '1 of 7 say "f": not one of F, M (did you mean F?)' in text
    assert f'1 of 7 say "{SECRET}"' in text
    assert "people: 5 of 7 records fit no cell and are left out" in text
    assert text.endswith("nothing was read for release, and nothing was spent\n")
    assert sorted(folder.iterdir()) == before


def test_units_and_signs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells = ["€ 20500", "20,5", "12 %", "1 000", "3 kg", '"5', f"{SECRET}", "", "7", *["0.5"] * 55]
    file = written(folder / "x.csv", "x", [f'"{c}"' if "," in c else c for c in cells])
    code, text = said(capsys, "data", str(folder / "prefix_sums.priv"), "--input", f"x={file}")
    assert code == 0
    for reason in ("currency", "comma", "per cent", "thousands", "unit", "quote"):
        assert reason in text
    assert SECRET not in text
    assert "20500" not in text
    (folder / "pay.priv").write_text(
        "spec pay\nvariables:\n  input pay in [0, 100000]^40\n  intermediate y\n  output O\n"
        "background:\n  y = mean(pay)\nloss:\n  E[ ||O - y||^2 ]\n"
        "privacy:\n  O is (1, 1e-6)-DP wrt pay, replacing one entry\n"
    )
    for pay, asked in (("20.5", "is this in thousands?"), ("20500000", "is the spec in another unit"), ("20500", "")):
        file = written(folder / "pay.csv", "pay", [pay] * 40)
        code, text = said(capsys, "data", str(folder / "pay.priv"), "--input", f"pay={file}")
        assert (code, asked in text) == (0, True)
        assert ("?" in text) == bool(asked)


def test_ballots_in_another_form(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = ["pool > park > library > theatre", "pool,park,theatre,library", "pool park theatre library"] * 200
    file = written(folder / "votes.csv", "ranking", [f'"{row}"' for row in rows[:500]])
    code, text = said(capsys, "data", str(folder / "borda_lottery.priv"), "--input", f"vote={file}")
    assert code == 0
    assert '167 of 500 say "pool > park > library > theatre"' in text
    assert "(write `pool park library theatre`)" in text
    assert "(write `pool park theatre library`)" in text
    file = written(folder / "votes.csv", "choice", ["lake > hills", "Lake", "lake>hills", *["hills"] * 47])
    code, text = said(capsys, "data", str(folder / "private_plurality.plan.json"), "--input", f"vote={file}")
    assert code == 0
    assert '"Lake": not one of lake, hills, city (did you mean lake?)' in text
    assert '"lake>hills": not one of lake, hills, city (write `lake hills`)' in text


def test_structure_is_refused_as_in_a_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, head, rows, code in (
        ("prefix_sums", "x", ["1"] * 63, "PS0805"),
        ("prefix_sums", "salary", ["1"] * 64, "PS0804"),
        ("private_plurality", "choice", ["lake"] * 49, "PS0811"),
        ("frequency_survey", "said", ["car"], "PS0804"),
    ):
        file = written(folder / "odd.csv", head, rows)
        variable = {"prefix_sums": "x", "private_plurality": "vote", "frequency_survey": "answer"}[name]
        data = ["--input", f"{variable}={file}"]
        for arguments in (["data", f"{name}.priv"], ["data", f"{name}.plan.json"], ["run", f"{name}.plan.json"]):
            found, text = said(capsys, arguments[0], str(folder / arguments[1]), *data)
            assert (found, code in text) == (1, True)
    assert said(capsys, "data", str(folder / "prefix_sums.priv"), "--input", "y=x.csv")[0] == 1
    file = written(folder / "bare.csv", "0.5", ["0.5"] * 63)
    assert said(capsys, "data", str(folder / "prefix_sums.priv"), "--input", f"x={file}")[0] == 1
    assert said(capsys, "data", str(folder / "prefix_sums.priv"), "--no-header", "--input", f"x={file}")[0] == 0


CASES = {
    "prefix_sums": ("x", "x", ["0.5"] * 64),
    "histogram": ("people", "age_group,sex", ["adult,F"] * 9),
    "frequency_survey": ("answer", "answer", ["car"] * 9),
    "private_plurality": ("vote", "choice", ["lake"] * 50),
}
ODD = [
    SECRET,
    f'"{SECRET}',
    f'"{SECRET}\n"',
    f'"{SECRET},{SECRET}"',
    "",
    '""',
    "9" * 200_000,
    "8675309",
    "\x00",
    "North",
]


@pytest.mark.parametrize("name", CASES)
def test_no_cell_shows_in_what_a_run_says_or_writes(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    variable, head, rows = CASES[name]
    for number, odd in enumerate(ODD):
        # another user each time: to one of them some of these are the same data
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / str(number)))
        cell = odd if "," not in rows[0] else f"{odd},F"
        file = written(tmp_path / "data.csv", head, [cell, *rows[1:]])
        out, book = tmp_path / f"{number}.json", tmp_path / f"{number}.db"
        arguments = ["run", str(folder / f"{name}.plan.json"), "--input", f"{variable}={file}", "-o", str(out)]
        # a cell over two lines is one where its keeper says so; else it would be one more row
        arguments += ["--quoted-newlines"] if "\n" in odd else []
        code, err = said(capsys, *arguments, "--seed", "1")
        assert code == 0
        lines = [line for line in err.splitlines() if not line.startswith(("  ", "for the keeper"))]
        assert lines == [f"released to {out} (simulation: not private)"]
        assert "8675309" not in err + out.read_text()
        code, err = said(capsys, *arguments, "--ledger", str(book), "--new-ledger", "--quiet")
        assert (code, err) == (0, "")
        assert "8675309" not in out.read_text()
        assert b"8675309" not in book.read_bytes()


QUOTED = """
spec quoted
variables:
  input people in table("hours-paid" in 0..3, level in {"65+", "under 65", no})
  intermediate c
  output O
background:
  c = marginals(people, {"hours-paid"}, {level})
loss:
  E[ ||O - c||^2 ]
privacy:
  O is (1, 1e-6)-DP wrt people, adding or removing one record
"""


def test_names_in_quotes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Columns and labels with signs and spaces, in the spec and in files."""
    spec = tmp_path / "quoted.priv"
    spec.write_text(QUOTED)
    assert said(capsys, "fmt", str(spec))[0] == 0
    assert '"hours-paid" in 0..3' in spec.read_text()
    assert said(capsys, "fmt", str(spec), "--check")[0] == 0
    file = written(tmp_path / "people.csv", '"hours-paid","level"', ['1,"65+"', '"2"," under 65"', "3,no", "3,65"])
    code, text = said(capsys, "data", str(spec), "--input", f"people={file}")
    assert (code, "1 of 4 records fit no cell" in text) == (0, True)
    assert '"65": not one of 65+, under 65, no (did you mean 65+?)' in text


def test_two_inputs_from_two_columns_of_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "two.priv"
    spec.write_text(
        "spec two\nvariables:\n  input a in [0, 1]^3\n  input b in [0, 9]^3\n  intermediate y\n  output O\n"
        "background:\n  y = sum(a) + sum(b)\nloss:\n  E[ (O - y)^2 ]\n"
        "privacy:\n  O is (1, 1e-6)-DP wrt a, replacing one entry\n  O is (1, 1e-6)-DP wrt b, replacing one entry\n"
    )
    file = written(tmp_path / "both.csv", "b,a", ["7,0.5", "8,2", "9,0.5"])
    code, text = said(capsys, "data", str(spec), "--input", f"a={file}", "--input", f"b={file}")
    assert code == 0
    assert "a: 3 values, 1 does not fit\n    33 % above 1: moved to it" in text
    assert "b: 3 values, all fit" in text


# --- before anything is spent ---------------------------------------------------------------------


NOBODY = ["grown-up,F"] * 20_000
EVERYBODY = ["adult,F"] * 20_000


def run_words(folder: Path, name: str, rows: list[str], *more: str) -> list[str]:
    file = written(folder / f"{name}.csv", "age_group,sex", rows)
    out = str(folder / f"{name}.release.csv")
    given = ["run", str(folder / "histogram.plan.json"), "--input", f"people={file}", "--new-ledger", "-o", out]
    return [*given, *more]


@pytest.mark.parametrize(
    ("cells", "share", "code"),
    [(NOBODY, "0.5", 8), (NOBODY, "0", 0), (EVERYBODY, "1", 0), ([*EVERYBODY, "child,f"], "1", 8)],
    ids=["none of them fit", "any share is enough", "all of them fit", "all but one fit"],
)
def test_who_asks_is_told_before_anything_is_spent(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], cells: list[str], share: str, code: int
) -> None:
    words = run_words(folder, f"{tmp_path.name}", cells, "--check-fit", share)
    found, text = said(capsys, *words)
    assert found == code
    assert ("error[PS0813]" in text) == (code == 8)
    assert (folder / f"{tmp_path.name}.ledger.db").exists() == (code == 0)
    assert Path(words[-3]).exists() == (code == 0)


def test_who_does_not_ask_is_told_nothing_by_the_exit_code(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a script a run of data that fit nothing ends as any other does."""
    for name, rows in (("nobody", NOBODY), ("everybody", EVERYBODY)):
        code, text = said(capsys, *run_words(folder, f"{tmp_path.name}.{name}", rows, "--quiet"))
        assert (code, text) == (0, "")


@pytest.mark.parametrize(("answer", "code"), [("n", 8), ("y", 0), ("\x04", 8)], ids=["no", "yes", "no answer"])
def test_at_a_terminal_the_keeper_is_asked(folder: Path, tmp_path: Path, answer: str, code: int) -> None:
    """How the data fit is shown, and the budget is spent only on a yes."""
    pty = pytest.importorskip("pty")
    words = [sys.executable, "-m", "privspec", *run_words(folder, f"{tmp_path.name}.asked", NOBODY)]
    child, terminal = pty.fork()
    if child == 0:
        os.execv(words[0], words)
    shown, asked = b"", False
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:
            break
        if not part:
            break
        shown += part
        if b"[y/N]" in shown and not asked:
            asked = True
            os.write(terminal, f"{answer}\n".encode() if answer != "\x04" else b"\x04")
    _, status = os.waitpid(child, 0)
    text = shown.decode()
    assert text.index("20,000 of 20,000 records fit no cell and are left out") < text.index("[y/N]")
    assert os.waitstatus_to_exitcode(status) == code
    assert (folder / f"{tmp_path.name}.asked.ledger.db").exists() == (code == 0)


def test_a_run_whose_data_fit_asks_nobody(folder: Path, tmp_path: Path) -> None:
    pty = pytest.importorskip("pty")
    words = [sys.executable, "-m", "privspec", *run_words(folder, f"{tmp_path.name}.fit", EVERYBODY)]
    code = os.waitstatus_to_exitcode(pty.spawn(words, lambda terminal: os.read(terminal, 4096)))
    assert code == 0


def test_in_python(folder: Path, tmp_path: Path) -> None:
    plan = Plan.read(folder / "histogram.plan.json")
    data = {"people": written(tmp_path / "people.csv", "age_group,sex", [*NOBODY[:9], "adult,F"])}
    ledger = tmp_path / "people.ledger.db"
    with pytest.raises(MisfitError, match="PS0813"):
        plan.run(data, ledger, new_ledger=True, check_fit=0.11)
    assert not ledger.exists()
    assert plan.run(data, ledger, new_ledger=True, check_fit=0.1).private
