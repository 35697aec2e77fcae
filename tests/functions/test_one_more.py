"""One more function of the language: a file of its own, its name among the homes, its entry in the reference."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).parents[2]
FILE = '''
"""Sums in which signs alternate."""

import numpy as np

from privspec.functions.numeric import vector_map
from privspec.model.library import Function, by_name


def _alternating(values):
    signs = (-1.0) ** np.arange(len(values))
    return np.cumsum(values * signs.reshape(-1, *(1,) * (values.ndim - 1)), axis=0)


FUNCTIONS = by_name(Function("alternating_sums(v)", vector_map(_alternating, lambda size: size), linear=True))
'''
SPEC = """
variables:
  input x in [0, 1]^4
  output O "totals in turn"
loss: E[ ||O - alternating_sums(x)||^2 ]
privacy: O is (1, 1e-6)-DP wrt x, replacing one entry
"""


def tree(folder: Path) -> Path:
    """A copy of the package with the function, as it is installed."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(TOP / "privspec", folder / "privspec", ignore=ignored)
    shutil.copytree(TOP / "solvers", folder / "privspec" / "solvers", ignore=ignored, dirs_exist_ok=True)
    shutil.copytree(TOP / "specs", folder / "privspec" / "specs", ignore=ignored, dirs_exist_ok=True)
    functions = folder / "privspec" / "functions"
    (functions / "alternating.py").write_text(FILE, encoding="utf-8")
    homes = functions / "__init__.py"
    text = homes.read_text(encoding="utf-8")
    homes.write_text(text.replace("HOMES: dict[str, str] = {", 'HOMES = {\n    "alternating_sums": "alternating",', 1))
    reference = functions / "reference.md"
    text = reference.read_text(encoding="utf-8")
    entry = f"\n## alternating_sums(v)\n\nSums of v in which signs alternate.\n\n```priv{SPEC}```\n"
    reference.write_text(text.rstrip() + "\n" + entry, encoding="utf-8")
    return folder


def test_a_function_of_three_files_works_from_spec_to_page(tmp_path: Path) -> None:
    package = tree(tmp_path / "tree")
    (tmp_path / "sums.priv").write_text(SPEC, encoding="utf-8")
    (tmp_path / "x.csv").write_text("0\n1\n0.5\n1\n", encoding="utf-8")

    def privspec(*words: str) -> str:
        run = [sys.executable, "-c", "from privspec.cli import main; main()", *words]
        known = {**os.environ, "PYTHONPATH": str(package)}
        done = subprocess.run(run, cwd=tmp_path, env=known, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert "well formed" in privspec("check", "sums.priv")
    assert "alternating_sums(v)" in privspec("help", "functions")
    privspec("solve", "sums.priv", "-q", "-o", "plan.json")
    assert "what this plan has to keep" in privspec("verify", "plan.json")
    privspec("run", "plan.json", "--input", "x=x.csv", "--no-header", "-o", "release.json", "--new-ledger")
    released = json.loads((tmp_path / "release.json").read_text(encoding="utf-8"))
    assert "totals in turn" in json.dumps(released)
    assert "alternating_sums(x)" in privspec("explain", "plan.json", "--for", "engineer")
