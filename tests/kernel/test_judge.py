"""The kernel by itself: what it may import, and what it refuses before it looks at a mechanism."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from dataclasses import fields
from importlib import import_module
from pathlib import Path

import pytest

import privspec.kernel
from privspec.kernel import judge
from privspec.kernel.core.reading import JsonNode, Refused, parse
from tests.plans import SMALL, mutate, resign, solved, without
from tests.test_house import tokens

ROOT = Path(privspec.kernel.__file__).parent
ALLOWED = {
    "__future__",
    "abc",
    "base64",
    "collections.abc",
    "dataclasses",
    "flint",
    "fractions",
    "functools",
    "hashlib",
}
ALLOWED |= {"itertools", "json", "math", "operator", "struct", "sys", "types", "typing"}
LIMITS = {
    "core": 15_900,
    "worth": 21_639,
}
"""Tokens without comments, docstrings and imports, which may only be lowered."""
ALONE = """
import sys
class Nothing:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if name.startswith("privspec.") and not name.startswith(("privspec.kernel", "privspec.moved")):
            raise ImportError(name)
        if top in ("numpy", "scipy", "cvxpy", "lark", "click", "polars", "networkx", "jinja2", "matplotlib"):
            raise ImportError(name)
sys.meta_path.insert(0, Nothing())
import runpy
runpy.run_module("privspec.kernel", run_name="__main__")
"""


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_and_lines(path: Path) -> None:
    text = path.read_text()
    for node in ast.walk(ast.parse(text)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            names = [node.module or ""]
        for name in names:
            assert name.startswith("privspec.kernel") or name in ALLOWED, name
            if path.parent.name == "core":
                assert not name.startswith(
                    ("privspec.kernel.worth", "privspec.kernel.statistics", "privspec.kernel.voting")
                ), name
    assert max(map(len, text.splitlines()), default=0) <= 120


def test_words_are_about_fields_of_their_module() -> None:
    """Words and readers are those of the module whose annotations name them; none is about anything else."""
    for path in modules():
        names = (path.parent if path.name == "__init__.py" else path.with_suffix("")).relative_to(ROOT.parents[1]).parts
        if path.name != "__main__.py":
            module = vars(import_module(".".join(names)))
            for key in module.get("WORDS", {}):
                name, _, field = key.partition(".")
                assert field in {one.name for one in fields(module[name])}, key
            for key in module.get("READERS", {}):
                assert key in path.read_text().replace(f'"{key}": ', ""), key


@pytest.mark.parametrize("folder", LIMITS)
def test_size(folder: str) -> None:
    assert sum(map(tokens, (ROOT / folder).glob("*.py"))) <= LIMITS[folder]


@pytest.mark.parametrize(
    "template",
    [
        name if name in ("prefix_sums", "counting_query", "private_plurality", "crowd_rlcp")
        else pytest.param(name, marks=pytest.mark.slow)
        for name in SMALL
    ],
)  # fmt: skip
def test_alone(template: str, tmp_path: Path) -> None:
    """The kernel needs python-flint and nothing else of ours or of others."""
    place = tmp_path / "plan.json"
    place.write_text(json.dumps(solved(template)))
    done = subprocess.run([sys.executable, "-c", ALONE, str(place)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "failed" not in done.stdout


def test_the_frame_is_closed() -> None:
    plan = solved("counting_query")
    assert judge(json.dumps(plan)).ok
    for text in (
        json.dumps(plan).replace('"format"', '"format": "privspec-plan/3.0", "format"', 1),
        json.dumps(plan | {"digest": "0" * 64}),
        json.dumps(mutate(plan, ("format",), "privspec-plan/1.0")),
        json.dumps(mutate(plan, ("more",), 1)),
        json.dumps(mutate(plan, ("status",), "perfect")),
        json.dumps(without(plan, ("assumptions",))),
        json.dumps(resign(plan | {"remarks": {"deep": json.loads("[" * 60 + "]" * 60)}})),
        json.dumps(plan).replace('"remarks": {', '"remarks": {"x": NaN, ', 1),
        json.dumps(plan).replace('"remarks": {', '"remarks": {"x": 1e999, ', 1),
        json.dumps(plan).replace('"remarks": {', '"remarks": {"x": ' + "9" * 5000 + ", ", 1),
        "[]", "", "{", "null", '"plan"',
    ):  # fmt: skip
        report = judge(text)
        assert not report.ok and report.failed and report.mechanism is None


ODD = ["1/0", "1e9999", "nan", "inf", "١", "0x10", " 1", "1 ", "2^99999", "1_000", "--1", "1e", True, 1.5, None]


@pytest.mark.parametrize("value", ODD)
def test_what_is_no_exact_number(value: object) -> None:
    with pytest.raises(Refused):
        JsonNode(value, "here").exact()


@pytest.mark.parametrize(
    "data",
    [
        {"shape": [2], "unit": "1", "rows": [1]},
        {"shape": [2], "unit": "0", "rows": [1, 2]},
        {"shape": [2], "unit": "1", "rows": [1, True]},
        {"shape": [2], "unit": "1", "rows": [1, 2], "more": 0},
        {"shape": [3], "unit": "1", "rows": [1, 2, 3]},
        {"shape": [2], "unit": "1", "data": "AAAAAAAAAAAAAAAAAAAAAA==", "sha256": "0" * 64},
        {"shape": [2], "unit": "1", "data": "AAAA", "sha256": "0" * 64},
    ],
)
def test_what_is_no_array(data: object) -> None:
    with pytest.raises(Refused):
        JsonNode(data, "here").array(2)


def test_texts_hold_no_structure() -> None:
    assert parse('{"a": "[[[[{{{{\\\\"}').value == {"a": "[[[[{{{{\\"}
