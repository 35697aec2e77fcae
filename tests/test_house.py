"""The size and the shape of the house: how many files, which import which, and how many a small spec walks through."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tokenize
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

TOP = Path(__file__).parents[1]
TOKENS = {
    "audit": 11_464,
    "core": 12_214,
    "editor": 6_426,
    "execute": 87_322,
    "explain": 82_250,
    "families": 234_654,
    "functions": 16_850,
    "kernel": 160_314,
    "language": 29_141,
    "model": 130_222,
    "noise": 10_769,
    "problem": 85_677,
    "solvers": 82_681,
    "top": 27_599,
}
"""What each room may hold, in tokens without comments, docstrings and imports: set by hand, and to be lowered."""
FILES = 376
ENTERED = 104
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
IMPORT = re.compile(r"^[ \t]*(?:from [\w.]+ import (?:\([^)]*\)|[\w*].*)|import \w.*)$", re.MULTILINE)
"""A statement that imports; to read whole files for theirs takes seconds."""
NAMED = re.compile(r"""import_module\(f?"(privspec[\w.]*)(\{)?""")
"""An import by name, of one module or of any below a folder."""
LOWER = ("core", "language", "model", "functions")
"""Rooms whose modules look each other up by name in no circle either; a registry above them names what it holds."""
COUNT = """
import json, sys
files = set()
def profile(frame, event, argument):
    if event == "call":
        files.add(frame.f_code.co_filename)
from pathlib import Path
sys.argv = ["privspec", "solve", "specs/counting_query.priv", "-q", "-o", sys.argv[1]]
sys.setprofile(profile)
from privspec.cli import main
try:
    main()
except SystemExit as end:
    code = end.code
sys.setprofile(None)
print(json.dumps([code, sorted(files)]))
"""


@cache
def modules() -> dict[str, Path]:
    """Every module of privspec under its name, solvers/ as privspec.solvers."""
    places = {"privspec": TOP / "privspec", "privspec.solvers": TOP / "solvers"}
    found = {}
    for name, place in places.items():
        for path in sorted(place.rglob("*.py")):
            inside = path.relative_to(place).with_suffix("").parts
            parts = inside[:-1] if inside[-1] == "__init__" else inside
            found[".".join((name, *parts))] = path
    return found


def imported(name: str, path: Path) -> set[str]:
    """The modules of ours that a module imports anywhere: at the top, inside functions, for typing, by name."""
    ours = modules()
    found: set[str] = set()
    text = path.read_text(encoding="utf-8")
    for prefix, open_ended in NAMED.findall(text) if room(name) in LOWER else ():
        found |= {other for other in ours if other == prefix or (open_ended and other.startswith(prefix))}
    lines = (found.group().strip() for found in IMPORT.finditer(text))
    for node in ast.parse("\n".join(lines)).body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            package = name if path.name == "__init__.py" else name.rpartition(".")[0]
            above = package.rsplit(".", node.level - 1)[0] if node.level > 0 else ""
            base = ".".join(filter(None, (above, node.module)))
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                found.add(inner if inner in ours else base)
    return (found & set(ours)) - {name}


def circles() -> list[set[str]]:
    """Groups of modules that import one another, round and round."""
    graph = nx.DiGraph((name, other) for name, path in modules().items() for other in imported(name, path))
    return [group for group in nx.strongly_connected_components(graph) if len(group) > 1]


def test_imports_run_in_no_circle() -> None:
    assert circles() == []


def tokens(path: Path) -> int:
    """Tokens of a module that neither layout nor comments, docstrings and imports can change."""
    left_out: set[int] = set()
    statement, kept = list[tokenize.TokenInfo](), list[tokenize.TokenInfo]()
    with path.open(encoding="utf-8") as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type not in LAYOUT:
                statement.append(token)
            elif token.type == tokenize.NEWLINE:
                words = all(one.type == tokenize.STRING for one in statement)
                if words or statement[0].string in ("import", "from"):
                    left_out.update(range(statement[0].start[0], token.end[0] + 1))
                kept += statement
                statement = []
    return sum(token.start[0] not in left_out for token in kept)


def room(name: str) -> str:
    """The room a module stands in: its folder under the package."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in TOKENS else "top"


def test_the_house_does_not_grow() -> None:
    held = dict.fromkeys(TOKENS, 0)
    for name, path in modules().items():
        held[room(name)] += tokens(path)
    print(f"{sum(held.values())} tokens in {len(modules())} files: {held}")
    assert {name: count for name, count in held.items() if count > TOKENS[name]} == {}
    assert len(modules()) <= FILES


def test_what_modules_remember_is_bounded() -> None:
    """A function that takes anything and remembers what it made says how many of them at most."""
    unbounded = []
    for name, path in modules().items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.args.args:
                marks = {ast.unparse(mark) for mark in node.decorator_list}
                if marks & {"cache", "functools.cache", "lru_cache", "lru_cache(maxsize=None)"}:
                    unbounded.append(f"{name}.{node.name}")
    assert unbounded == []


def test_a_small_spec_walks_through_few_files(tmp_path: Path) -> None:
    run = [sys.executable, "-c", COUNT, str(tmp_path / "plan.json")]
    done = subprocess.run(run, cwd=TOP, capture_output=True, text=True, timeout=120, check=True)
    code, entered = json.loads(done.stdout)
    assert code == 0
    ours = {str(path.resolve()) for path in modules().values()}
    count = len(ours & {str(Path(file).resolve()) for file in entered})
    print(f"{count} files entered")
    assert 0 < count <= ENTERED


LOADED = """
import json, sys
from privspec.cli import run_command_line
code = run_command_line(sys.argv[1:])
print(json.dumps([code, sorted(sys.modules)]))
"""
SLOW = {"cvxpy", "matplotlib", "networkx", "polars", "pyarrow", "scipy.interpolate", "scipy.optimize", "scipy.stats"}
"""Libraries that take long to load, and that small specs do without."""


@pytest.mark.parametrize(
    ("spec", "solving"),
    [("counting_query", SLOW), ("two_observers", SLOW), ("private_plurality", SLOW | {"scipy", "highspy"})],
)
def test_small_specs_load_no_large_library(spec: str, solving: set[str], tmp_path: Path) -> None:
    path = f"specs/{spec}.priv"
    never = SLOW | {"scipy", "flint", "highspy"}
    plan = str(tmp_path / "plan.json")
    # whoever checks a plan, as every run does, needs neither scipy nor a solver
    commands = (
        (["check", path], never),
        (["solve", path, "-q", "-o", plan], solving),
        (["verify", plan], never - {"flint"}),
    )
    for words, barred in commands:
        run = [sys.executable, "-c", LOADED, *words]
        done = subprocess.run(run, cwd=TOP, capture_output=True, text=True, timeout=120, check=True)
        code, loaded = json.loads(done.stdout.splitlines()[-1])
        assert code == 0
        assert not barred & set(loaded), words
