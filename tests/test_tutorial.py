"""The tutorial that ships: each of its commands, pasted in order, does what the page says that it printed.

`pytest tests/test_tutorial.py --accept` writes what is printed now into the page, where that differs in more than the
numbers that chance draws.
"""

from __future__ import annotations

from pathlib import Path

from privspec.manual import TUTORIAL, page
from tests.pasting import command_line, pasted


def test_every_command_works_as_printed(tmp_path: Path, request: object) -> None:
    text = page(*TUTORIAL)
    folder = tmp_path / "work"
    folder.mkdir()
    with command_line(tmp_path) as environment:
        now, steps = pasted(text, folder, environment)
    if request.config.getoption("--accept"):  # type: ignore[attr-defined]
        Path(__file__).parents[1].joinpath("privspec", *TUTORIAL[0].split("."), TUTORIAL[1]).write_text(now, "utf-8")
        return
    assert now.splitlines() == text.splitlines()
    assert steps >= 20
