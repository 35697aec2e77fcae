"""The first time: from a plain install to a page about one's own data, each step as README and tutorial print it.

`pytest -m slow -s tests/test_first_time.py` prints how long each step took.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import venv
from pathlib import Path

import pytest

from privspec.manual import TUTORIAL, page

TOP = Path(__file__).parents[1]
OWN = page(*TUTORIAL).partition("## A spec of your own\n")[2]
SECONDS = 60.0
"""What the way from the first command to the page may take, without the install."""


def readme_block() -> list[str]:
    """The lines of the README's first block of commands."""
    found = re.search(r"^```sh\n(.*?)^```", TOP.joinpath("README.md").read_text("utf-8"), re.M | re.S)
    assert found is not None
    return found[1].splitlines()


def test_the_readme_begins_with_a_plain_install() -> None:
    *_, install, first = readme_block()
    assert install.startswith("pip install") and first == "privspec solve linear_queries"


@pytest.mark.slow
def test_the_first_time(tmp_path: Path) -> None:
    """In an environment of its own, outside the repository, with nothing but what a plain install brings."""
    home = tmp_path / "env"
    venv.create(home, with_pip=True)
    path = f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}"
    state = {"XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path), "NO_COLOR": "1", "COLUMNS": "100"}
    environment = {**os.environ, "PATH": path, **state}
    for name in ("PYTHONPATH", "VIRTUAL_ENV"):
        environment.pop(name, None)
    folder = tmp_path / "work"
    folder.mkdir()
    tree = tmp_path / "checkout"  # building leaves files behind
    for part in ("privspec", "solvers", "specs"):
        shutil.copytree(TOP / part, tree / part, ignore=shutil.ignore_patterns("__pycache__", "*.plan.json"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(TOP / name, tree / name)
    steps = {
        "install": f"pip install -q {tree}",
        "readme": readme_block()[-1],
        "help": "privspec help tutorial | grep -c '^## '",
        **{f"own spec, {i}": found for i, found in enumerate(re.findall(r"^```sh\n(.*?)^```", OWN, re.M | re.S), 1)},
        "page": "privspec explain town.plan.json --for public -o town.html",
    }
    took = {}
    for name, command in steps.items():
        begun = time.monotonic()
        done = subprocess.run(
            ["bash", "-e", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        took[name] = time.monotonic() - begun
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    assert "What this release can reveal about you" in folder.joinpath("town.html").read_text("utf-8")
    assert folder.joinpath("town.csv").is_file()
    for name, seconds in took.items():
        print(f"{name:<12} {seconds:6.1f} s", file=sys.stderr)
    assert sum(seconds for name, seconds in took.items() if name != "install") < SECONDS
