"""Damaged specs through the command line: a diagnostic with a code and a place, never a traceback.

The default run damages 160 specs; `pytest -m slow tests/test_fuzz.py` several thousand.
"""

from __future__ import annotations

import random
import re
import signal
import string
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

from privspec.cli import run_command_line
from privspec.core.catalogue import entries
from privspec.manual import list_templates
from tests.plans import small_text

GOLDEN = Path(__file__).parent / "golden"
SOLVABLE = [
    *(small_text(template.name) for template in list_templates()),
    *(path.read_text("utf-8") for path in sorted(GOLDEN.glob("solve_*/spec.priv"))),
]
EXAMPLES = [path.read_text("utf-8") for path in sorted(GOLDEN.glob("language_*/spec.priv"))]
"""The examples of the language; most of them are checked only."""
TOKEN = re.compile(r"[^\W\d]\w*|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\.|\|\||\S")
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
BAD_NUMBERS = ["NaN", "inf", "-1", "0", "1e308", "1e-320", "100000000", "10^8", "1e999", "2.5", "1", "9" * 40, "1/0"]
NUMBERS = ["1", "2", "3", "7", "0.5", "0.01", "1e-6", "30", "200"]
PLACE = re.compile(r"^ *--> .+:\d+:\d+$", re.MULTILINE)
CODE = re.compile(r"(?:error|infeasible)\[(PS\d{4})\]")
LONGEST = 60
"""Seconds that one damaged spec may take."""

Mutation = Callable[[random.Random, str], str]


def drop(dice: random.Random, text: str) -> str:
    """Some characters are lost."""
    at = dice.randrange(len(text))
    return text[:at] + text[at + dice.choice([1, 1, 2, 8]) :]


def insert(dice: random.Random, text: str) -> str:
    """A character too many."""
    at = dice.randrange(len(text) + 1)
    return text[:at] + dice.choice(string.printable + "²‖∈ε\x00\ufeff") + text[at:]


def swap(dice: random.Random, text: str) -> str:
    """Two characters change places."""
    at = dice.randrange(max(len(text) - 1, 1))
    return text[:at] + text[at + 1 : at + 2] + text[at : at + 1] + text[at + 2 :]


def swap_tokens(dice: random.Random, text: str) -> str:
    """Two words or signs of the file change places."""
    found = list(TOKEN.finditer(text))
    if len(found) < 2:
        return text
    first, second = sorted(dice.sample(found, 2), key=lambda m: m.start())
    return (
        text[: first.start()]
        + second.group()
        + text[first.end() : second.start()]
        + first.group()
        + text[second.end() :]
    )


def copy_token(dice: random.Random, text: str) -> str:
    """A word or sign is written over another."""
    found = list(TOKEN.finditer(text))
    if not found:
        return text
    source, target = dice.choice(found), dice.choice(found)
    return text[: target.start()] + source.group() + text[target.end() :]


def drop_line(dice: random.Random, text: str) -> str:
    """A line is lost."""
    lines = text.split("\n")
    del lines[dice.randrange(len(lines))]
    return "\n".join(lines)


def double_line(dice: random.Random, text: str) -> str:
    """A line stands twice, perhaps elsewhere."""
    lines = text.split("\n")
    lines.insert(dice.randrange(len(lines) + 1), dice.choice(lines))
    return "\n".join(lines)


def bad_number(dice: random.Random, text: str) -> str:
    """A number becomes another, or none at all."""
    found = list(NUMBER.finditer(text))
    if not found:
        return text
    place = dice.choice(found)
    return text[: place.start()] + dice.choice(BAD_NUMBERS) + text[place.end() :]


def other_number(dice: random.Random, text: str) -> str:
    """A number becomes another that makes sense somewhere."""
    found = list(NUMBER.finditer(text))
    if not found:
        return text
    place = dice.choice(found)
    return text[: place.start()] + dice.choice(NUMBERS) + text[place.end() :]


def other_name(dice: random.Random, text: str) -> str:
    """A name becomes another of the file."""
    names = [m for m in TOKEN.finditer(text) if m.group()[0].isalpha()]
    if not names:
        return text
    place = dice.choice(names)
    return text[: place.start()] + dice.choice(names).group() + text[place.end() :]


SLIPS: list[Mutation] = [drop, insert, swap, swap_tokens, copy_token, drop_line, double_line]
MEANT: list[Mutation] = [bad_number, other_number, other_number, other_name, double_line, drop_line]
"""Changes that often leave a spec that can be parsed."""


def damaged(dice: random.Random) -> str:
    text = dice.choice(dice.choice([SOLVABLE, SOLVABLE, EXAMPLES]))
    mutations = dice.choice([SLIPS, MEANT])
    for _ in range(dice.choice([1, 1, 1, 2, 3])):
        text = dice.choice(mutations)(dice, text or " ")
    return text


@contextmanager
def hurried(seconds: int) -> Iterator[None]:
    """Fail what takes longer."""

    def late(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"no answer in {seconds} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def judge(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> int:
    """Run a command; whatever it says must be a diagnostic of the catalogue, in its place if the spec is wrong."""
    with hurried(LONGEST):
        code = run_command_line(arguments)
    shown = capsys.readouterr()
    assert code in (0, 3, 4, 5), shown.err
    assert "Traceback" not in shown.err
    assert code == 0 or shown.out == ""
    codes = CODE.findall(shown.err)
    assert (code == 0) == (not codes), shown.err
    assert set(codes) <= set(entries())
    if code == 3:
        assert len(PLACE.findall(shown.err)) >= len(codes), shown.err
    return code


def run_cases(seed: int, count: int, folder: Path, capsys: pytest.CaptureFixture[str]) -> Counter[str]:
    dice = random.Random(seed)
    (folder / "linear_queries.csv").write_text("1,1,1,1\n1,0,0,0\n" if seed % 2 else ",".join(["1"] * 64), "utf-8")
    outcomes: Counter[str] = Counter()
    path = folder / "damaged.priv"
    for case in range(count):
        text = damaged(dice)
        path.write_text(text, "utf-8", newline="")
        try:
            code = judge(["check", str(path), "--quiet"], capsys)
            outcomes[f"check {code}"] += 1
            if code == 0:
                code = judge(["solve", str(path), "--quiet", "--time-limit", "2"], capsys)
                outcomes[f"solve {code}"] += 1
        except BaseException:
            (folder / "found.priv").write_text(text, "utf-8", newline="")
            print(f"seed {seed}, case {case}:\n{text}")
            raise
    return outcomes


@pytest.mark.parametrize("seed", range(4))
def test_damaged_specs(seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = run_cases(seed, 40, tmp_path, capsys)
    assert outcomes["check 3"] > 10
    assert outcomes["check 0"] > 5
    assert {p.name for p in tmp_path.iterdir()} <= {"linear_queries.csv", "damaged.priv", "damaged.plan.json"}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 112))
def test_many_damaged_specs(seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = run_cases(seed, 250, tmp_path, capsys)
    with capsys.disabled():
        print(f"\nseed {seed}: {dict(outcomes)}")
