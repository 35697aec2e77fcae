"""`--help`: every command says what it does, and its examples work when they are pasted."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from privspec.cli import app, run_command_line

ELSEWHERE = {
    "privspec verify-draw transcript.json --plan vote.plan.json": "a joint draw takes voters; tests/families has one",
    "privspec data people.priv --input people=warehouse.duckdb::people --sql": "databases have tests of their own",
}
FIRST = (
    "privspec templates prefix_sums -o mine.priv",
    "privspec solve prefix_sums",
    "privspec solve mine.priv --set epsilon=0.5 -o half.plan.json",
    "privspec run prefix_sums.plan.json --input x=series.csv --new-ledger -o release.csv",
    "privspec ledger init people.ledger.db --limit 'epsilon=2 delta=1e-6'",
)
"""What others build on."""


def commands(group: click.Group = app, above: str = "privspec") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, f"{above} {name}")
        else:
            yield f"{above} {name}", command


def examples(command: click.Command) -> list[str]:
    return [line.strip() for line in (command.epilog or "").splitlines() if line.startswith("  ")]


@pytest.mark.parametrize(("name", "command"), [pytest.param(*one, id=one[0]) for one in commands()])
def test_every_command_says_what_it_does_and_shows_it(name: str, command: click.Command) -> None:
    assert command.help and command.help[0].isupper()
    assert examples(command), name
    assert all(one.startswith(f"{name} ") or one == name for one in examples(command)), name
    for option in command.params:
        assert not isinstance(option, click.Option) or option.help, f"{name} {option.name}"


def test_the_examples_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("series.csv").write_text("x\n" + "0.5\n" * 64, "utf-8")
    Path("answers.csv").write_text("answer\n" + "car\nbus\nfoot\n" * 20, "utf-8")
    assert run_command_line(["solve", "frequency_survey", "-q"]) == 0
    survey = "run frequency_survey.plan.json --input answer=answers.csv --new-ledger -o reports.csv"
    assert run_command_line(shlex.split(survey)) == 0
    Path("census.csv").write_text("age,sex,region\n" + "3,F,north\n8,M,west\n" * 40, "utf-8")
    assert run_command_line(["solve", "marginals", "-q"]) == 0
    census = "run marginals.plan.json --input people=census.csv --new-ledger -o tables.json"
    assert run_command_line(shlex.split(census)) == 0
    every = [line for _, command in commands() for line in examples(command)]
    assert set(ELSEWHERE) <= set(every) and set(FIRST) <= set(every)
    for line in (*FIRST, *(one for one in every if one not in FIRST and one not in ELSEWHERE)):
        words = shlex.split(line.partition(" > ")[0])[1:]
        capsys.readouterr()
        code = run_command_line(words)
        assert code == (1 if words[0] == "diff" else 0), f"{line}\n{capsys.readouterr().err}"
