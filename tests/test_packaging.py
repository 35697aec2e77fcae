"""What is installed: the packages that pyproject lists are those of the tree, with their data."""

from __future__ import annotations

import importlib
import subprocess
import sys
import tomllib
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import pytest

import privspec

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
LISTED = PROJECT["tool"]["setuptools"]["packages"]
PLACES = PROJECT["tool"]["setuptools"]["package-dir"]


def test_the_list_of_packages_is_the_tree() -> None:
    folders = {p.parent.relative_to(ROOT) for p in (ROOT / "privspec").rglob("__init__.py")}
    found = {".".join(folder.parts) for folder in folders} | set(PLACES)
    assert sorted(LISTED) == sorted(found)
    for package, folder in PLACES.items():
        assert (ROOT / folder / "__init__.py").is_file(), package
    with_modules = {p.parent.relative_to(ROOT) for p in (ROOT / "privspec").rglob("*.py")}
    assert with_modules == folders, "a folder of modules has no __init__.py"


@pytest.mark.parametrize("package", LISTED)
def test_every_package_is_imported(package: str) -> None:
    assert importlib.import_module(package).__doc__, f"{package} says nothing of itself"


ALONE = """
import importlib.metadata, importlib.util, pathlib
print([name for name in ("solvers", "specs", "tests") if importlib.util.find_spec(name)])
print({pathlib.PurePath(str(f)).parts[0] for f in importlib.metadata.files("privspec") or ()} & {"solvers", "specs"})
"""


def test_nothing_else_is_installed_at_the_top() -> None:
    """No module `solvers` or `specs` outside the package, wherever Python is started."""
    done = subprocess.run([sys.executable, "-I", "-c", ALONE], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["[]", "set()"]


@pytest.mark.parametrize(
    ("package", "suffix", "least"),
    [
        ("privspec.core", "catalogue.md", 1),
        ("privspec.language", ".lark", 1),
        ("privspec.noise", "notes", 1),
        ("privspec.specs", ".priv", 6),
        ("privspec.specs", ".csv", 1),
        ("privspec.explain", "templates", 1),
        ("privspec", "py.typed", 1),
    ],
)
def test_data_are_in_the_package(package: str, suffix: str, least: int) -> None:
    found = [entry for entry in files(package).iterdir() if entry.name.endswith(suffix)]
    assert len(found) >= least
    for entry in found:
        assert entry.is_dir() or suffix == "py.typed" or entry.read_text("utf-8").strip()


MADE = (".plan.json", ".ledger.db")
"""What commands leave beside a spec; git ignores it."""


def test_data_are_listed_for_the_wheel() -> None:
    """Every file beside the modules matches a pattern of package-data."""
    patterns = PROJECT["tool"]["setuptools"]["package-data"]
    for package in LISTED:
        folder = ROOT / PLACES.get(package, package.replace(".", "/"))
        for path in sorted(folder.iterdir()):
            inside = path.iterdir() if path.is_dir() and not (path / "__init__.py").exists() else [path]
            for item in inside:
                if item.is_dir() or item.suffix == ".py" or "__pycache__" in item.parts:
                    continue
                if item.name.endswith(MADE):
                    continue
                relative = item.relative_to(folder)
                assert any(relative.match(pattern) for pattern in patterns.get(package, ())), f"{item} is not shipped"


def test_explanations_have_their_templates() -> None:
    assert any(entry.name.endswith(".html") for entry in files("privspec.explain").joinpath("templates").iterdir())


def test_one_version() -> None:
    assert version("privspec") == PROJECT["project"]["version"]
    assert getattr(privspec, "__version__", PROJECT["project"]["version"]) == PROJECT["project"]["version"]


def test_the_command_is_installed() -> None:
    assert PROJECT["project"]["scripts"] == {"privspec": "privspec.cli:main"}
    assert find_spec("privspec.cli") is not None


def test_every_requirement_is_used() -> None:
    """No dependency without an import somewhere."""
    modules = {"python-flint": "flint", "pyarrow": "pyarrow"}
    text = "\n".join(
        p.read_text("utf-8") for folder in ("privspec", "solvers") for p in sorted((ROOT / folder).rglob("*.py"))
    )
    for line in PROJECT["project"]["dependencies"]:
        name = line.split(">")[0].split("=")[0].strip()
        module = modules.get(name, name)
        assert f"import {module}" in text or f"from {module}" in text or name == "pyarrow", name
