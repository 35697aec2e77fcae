"""The forgeries by meaning that tests/kernel makes by hand, collected while those tests run: whatever they have judged.

    python -m tests.corpus forgeries FOLDER

runs them with this module as a plugin of pytest: every plan that a test gives to the kernel is kept with what the
kernel said of it, as (name, text, must be refused). A test that is added joins by itself. So does a plan that holds: a
kernel that refuses it proves less.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PLACE = "PRIVSPEC_FORGERIES"
"""The environment variable with the file that forgeries are added to."""
LONGEST = 300_000
"""Characters of a plan that is kept; longer ones are hostile by their length, and tests/kernel/test_hostile.py's."""
LEFT_OUT = ("test_mutations.py", "test_hostile.py")
"""Tests that change leaves at random, or that judge in processes of their own."""


@dataclass(frozen=True, slots=True)
class Forgery:
    """The text of a plan that some test of the kernel judges, and whether it must be refused."""

    name: str
    text: str
    refused: bool


def collect(place: Path, *more: str) -> int:
    """Runs the tests of the kernel and keeps what they judge; the exit status of pytest.

    Args: more, options of pytest, such as `-m slow`.
    """
    place.unlink(missing_ok=True)
    tests = Path(__file__).parents[1] / "kernel"
    ignored = [f"--ignore={tests / name}" for name in LEFT_OUT]
    call = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "0",
        "-p",
        "tests.corpus.forgeries",
        str(tests),
        *ignored,
        *more,
    ]
    return subprocess.run(call, cwd=tests.parents[1], env={**os.environ, PLACE: str(place)}, check=False).returncode


def collected(place: Path) -> Iterator[Forgery]:
    """What was kept, each text once."""
    with place.open(encoding="utf-8") as lines:
        for line in lines:
            yield Forgery(**json.loads(line))


# --- the plugin -----------------------------------------------------------------------------------


class Recorder:
    """Stands for the kernel's `judge` wherever a test has it, and keeps what it is given."""

    def __init__(self, judge: Callable[[Any], Any], place: Path) -> None:
        self.judge, self.place = judge, place
        self.test, self.count, self.known = "", 0, set[str]()

    def __call__(self, plan: Any) -> Any:
        report = self.judge(plan)
        text = plan if isinstance(plan, str) else json.dumps(plan.value)
        digest = hashlib.sha256(text.encode()).hexdigest()
        if self.test and len(text) <= LONGEST and digest not in self.known:
            self.known.add(digest)
            self.count += 1
            kept = {"name": f"{self.test} {self.count}", "text": text, "refused": not report.ok}
            with self.place.open("a", encoding="utf-8") as lines:
                print(json.dumps(kept), file=lines)
        return report


_RECORDERS: list[Recorder] = []


def pytest_configure() -> None:
    """Before any test is imported: tests have `judge` from where it is replaced."""
    from privspec.kernel import judge

    recorder = Recorder(judge, Path(os.environ[PLACE]))
    _RECORDERS.append(recorder)
    for name, module in list(sys.modules.items()):
        if name.startswith("privspec") and getattr(module, "judge", None) is judge:
            module.judge = recorder  # type: ignore[attr-defined]


def pytest_runtest_logstart(nodeid: str) -> None:
    """What is judged from now on is this test's."""
    for recorder in _RECORDERS:
        recorder.test, recorder.count = nodeid.removeprefix("tests/kernel/"), 0


def pytest_runtest_logfinish() -> None:
    """What is judged between tests is nobody's."""
    for recorder in _RECORDERS:
        recorder.test = ""
