"""Every code in the tree has its long form, and every long form its code."""

import re
from pathlib import Path

import pytest

from privspec.core.catalogue import FAMILIES, Entry, entries, explain_code
from privspec.core.diagnostics import UsageError
from privspec.core.spans import Source
from privspec.language.parser import parse

ROOT = Path(__file__).parents[2]
CATALOGUE = ROOT / "privspec" / "core" / "catalogue"
CODE = re.compile(r"\bPS\d{4}\b")


def used() -> dict[str, list[str]]:
    """The codes of the code, and where they stand."""
    found: dict[str, list[str]] = {}
    for folder in ("privspec", "solvers"):
        for path in (ROOT / folder).rglob("*.py"):
            if path.parent == CATALOGUE and path.name != "__init__.py":
                continue
            for code in CODE.findall(path.read_text("utf-8")):
                found.setdefault(code, []).append(str(path.relative_to(ROOT)))
    return found


def test_every_code_has_an_entry() -> None:
    missing = {code: places for code, places in used().items() if code not in entries() and code != "PS0000"}
    assert not missing, f"add entries to privspec/core/catalogue: {missing}"


def test_every_entry_is_used() -> None:
    unused = sorted(set(entries()) - set(used()))
    assert not unused


def test_entries_stand_in_their_family_and_in_order() -> None:
    from importlib import import_module

    for prefix, family in FAMILIES.items():
        codes = [e.code for e in import_module(f"privspec.core.catalogue.{family}").ENTRIES]
        assert codes == sorted(codes)
        assert all(code.startswith(prefix) for code in codes)


@pytest.mark.parametrize("code", sorted(entries()))
def test_text(code: str) -> None:
    text = explain_code(code)
    assert text.startswith(f"{code}: ")
    assert text.endswith("\n")
    assert max(len(line) for line in text.splitlines()) <= 120
    title = entries()[code].title
    assert not title.endswith(".")
    assert "anonym" not in text.lower()


def test_lookup_is_lenient_and_helps() -> None:
    assert explain_code(" ps0103 ") == explain_code("PS0103")
    with pytest.raises(UsageError) as caught:
        explain_code("PS0199")
    assert caught.value.diagnostics[0].code == "PS0703"
    with pytest.raises(UsageError):
        explain_code("nonsense")


def test_entry_refuses_nonsense() -> None:
    with pytest.raises(ValueError, match="not a code"):
        Entry("PS1", "title", "text")
    with pytest.raises(ValueError, match="no text"):
        Entry("PS0101", "title", " ")


def test_right_forms_of_the_syntax_examples_parse() -> None:
    """In `PS0106` and others the line marked right is a statement of the background."""
    for code in ("PS0105", "PS0106", "PS0103"):
        line = next(x for x in entries()[code].example.splitlines() if "# right" in x)
        parse(Source(code, f"background:\n{line}\n"))
