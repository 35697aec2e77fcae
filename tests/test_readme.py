"""The README: short, every command works, and what is shown below one is what it prints.

`pytest tests/test_readme.py --accept` writes what is printed now into the README and the page of capabilities.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from math import ceil, e
from pathlib import Path

import pytest
from privspec.solvers import programs

from privspec.kernel.strategies import dense
from privspec.kernel.worth import OPTIMAL_GAP
from privspec.manual import CAPABILITIES, LIMITS, WORDS, page
from privspec.model import designs, worlds
from privspec.problem import marginals
from tests.pasting import command_line, pasted

TOP = Path(__file__).parents[1]
README = TOP / "README.md"
CHANGELOG = TOP / "CHANGELOG.md"
LINES = 250
"""What a newcomer reads."""
TOUR = "## A one-minute tour\n"
ELSEWHERE = {
    "privspec data people.priv --input people=warehouse.duckdb::people --sql": "databases have tests of their own",
}


def commands() -> list[str]:
    """The commands that the README names for what it can do."""
    listed = README.read_text("utf-8").partition("## What it can do\n")[2].partition("\n## ")[0]
    return re.findall(r"`(privspec (?:solve|audit|sweep|data|help|diff) [^`]+)`", listed)


def compare(text: str, place: Path, folder: Path, accept: bool) -> None:
    """What its commands print now is what the page shows; `accept`: it is written there."""
    (folder / "work").mkdir()
    with command_line(folder) as environment:
        now, steps = pasted(text, folder / "work", environment)
    if accept:
        place.write_text(place.read_text("utf-8").replace(text, now), "utf-8")
        return
    assert now.splitlines() == text.splitlines()
    assert steps > 2


def test_the_readme_is_short() -> None:
    assert len(README.read_text("utf-8").splitlines()) <= LINES


def test_the_tour_prints_what_is_shown(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    text = README.read_text("utf-8").partition(TOUR)[2]
    compare(text, README, tmp_path, pytestconfig.getoption("--accept"))


def test_capabilities_print_what_is_shown(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    place = TOP.joinpath("privspec", *CAPABILITIES[0].split("."), CAPABILITIES[1])
    compare(page(*CAPABILITIES), place, tmp_path, pytestconfig.getoption("--accept"))


@pytest.mark.slow
def test_every_command_of_the_readme_works(tmp_path: Path) -> None:
    assert len(commands()) > 20
    with command_line(tmp_path) as environment:
        for line in ("privspec solve linear_queries -q", *commands()):
            if line not in ELSEWHERE:
                words = shlex.split(line)
                done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
                assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


SIZES = (
    ("limits", "every combination is solved as a spec of its own, at most\n  {} of them", designs.MOST),
    ("language", "Every combination ({} at most) is solved", designs.MOST),
    ("limits", "where a person can be in at most {} states", dense.LISTED),
    ("limits", "A table has up to {} rows that are inputs", worlds.ROW_LIMIT),
    ("limits", "in a box of more than {} entries rests on an upper bound", programs.VERTEX_LIMIT),
    ("functions", "any number of cells: from {} on", marginals.FROM),
    ("functions", "up to {} cells together are", marginals.MOST_ORDERED),
    ("words", "right in at most {}\nof 100 cases", ceil(100 * e / (1 + e))),
)
"""Numbers that the manual names, and what they are in the code or by their formula."""


@pytest.mark.parametrize(("part", "words", "size"), SIZES)
def test_numbers_that_the_manual_names_are_those_of_the_code(part: str, words: str, size: int) -> None:
    places = {"limits": LIMITS, "words": WORDS, "language": ("language",), "functions": ("functions",)}
    assert words.format(f"{size:,}") in page(*places[part])


def test_optimal_is_what_the_limits_say() -> None:
    assert f"a relative gap of at most {float(OPTIMAL_GAP):g}".replace("e-06", "e-6") in page(*LIMITS)


MEASURED = re.compile(r"\d\.\d|\b\d+ (?:s|ms|MB|GB|kB|seconds|minutes|times)\b|\d %")
"""How figures look that somebody measured."""


def test_the_changelog_quotes_no_measurement() -> None:
    text = CHANGELOG.read_text("utf-8")
    assert MEASURED.findall(re.sub(r"^## .*$|`[^`]*`|format \d\.\d", "", text, flags=re.M)) == []
