"""tests/golden/<case>/spec.priv against the tree, the canonical text, or the diagnostics expected of it."""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest

from privspec.core.diagnostics import SpecError
from privspec.core.render import render_all
from privspec.core.spans import Source
from privspec.language import syntax
from privspec.language.formatter import format_source
from privspec.language.layout import SECTIONS
from privspec.language.parser import parse
from privspec.language.spelling import print_spec

GOLDEN = Path(__file__).parents[1] / "golden"
GOOD = sorted(p.parent.name for p in GOLDEN.glob("language_*/spec.priv"))
BAD = sorted(p.parent.name for p in GOLDEN.glob("syntax_*/spec.priv"))

Golden = Callable[[Path, str], None]


def source_of(case: str) -> Source:
    data = (GOLDEN / case / "spec.priv").read_bytes()
    return Source("spec.priv", data.decode())


def test_there_are_cases() -> None:
    assert len(GOOD) >= 12
    assert len(BAD) >= 12


@pytest.mark.parametrize("case", GOOD)
def test_tree(case: str, golden: Golden) -> None:
    golden(GOLDEN / case / "expected.tree", dump(parse(source_of(case))))


@pytest.mark.parametrize("case", GOOD)
def test_format(case: str, golden: Golden) -> None:
    source = source_of(case)
    text = format_source(source)
    golden(GOLDEN / case / "expected.priv", text)
    assert parse(Source("again", text)) == parse(source)
    assert format_source(Source("again", text)) == text
    assert parse(Source("printed", print_spec(parse(source)))) == parse(source)


@pytest.mark.parametrize("case", BAD)
def test_diagnostics(case: str, golden: Golden) -> None:
    with pytest.raises(SpecError) as caught:
        parse(source_of(case))
    golden(GOLDEN / case / "expected.err", render_all(caught.value.diagnostics))


@pytest.mark.parametrize("case", GOOD)
def test_line_ends_tabs_and_marks_mean_nothing(case: str) -> None:
    source = source_of(case)
    text = "\ufeff" + source.text.replace("\n", "\r\n").replace("  ", "\t")
    windows = Source("windows", text)
    if parse(source).doc is None:
        assert parse(windows) == parse(source)
    formatted = format_source(windows)
    assert parse(Source("again", formatted)) == parse(windows)
    assert format_source(Source("again", formatted)) == formatted


def _names(kind: type[syntax.Node]) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind) if f.name not in {"span", "name_span"})


def dump(tree: syntax.Spec) -> str:
    """The tree as text for people who look for a fault: one statement a line, `(Kind field field ...)`."""
    lines = [f"spec {tree.name}" if tree.name else "spec"]
    if tree.doc is not None:
        lines.append(f"doc {tree.doc!r}")
    for section in SECTIONS:
        value = getattr(tree, section)
        items = value if isinstance(value, tuple) else (value,) if value is not None else ()
        lines.extend(f"{section} {_shown(item)}" for item in items)
    return "\n".join(lines) + "\n" + "".join(map(dump, tree.within))


def _shown(value: object) -> str:
    match value:
        case syntax.Name(id=name):
            return name
        case syntax.Number(value=number):
            return str(number)
        case syntax.String(value=text):
            return f'"{text}"'
        case syntax.Node():
            # few variables are drawn from data
            names = (n for n in _names(type(value)) if n != "text" and (n != "drawn" or getattr(value, n)))
            parts = [type(value).__name__, *(_shown(getattr(value, n)) for n in names)]
            return f"({' '.join(parts)})"
        case tuple():
            return f"[{' '.join(_shown(item) for item in value)}]"
        case syntax.VariableKind():
            return str(value.value)
        case None:
            return "-"
        case _:
            return str(value)


def test_dump() -> None:
    tree = parse(Source("x", 'spec a\n"""d"""\nvariables: input x in [0, 1)^2\nloss: E[x | y]\n'))
    assert dump(tree) == (
        "spec a\ndoc 'd'\nvariables (Variable input (Ref x - []) (Power (Interval 0 1 False True) [2]) - -)\n"
        "loss (Over E x y)\n"
    )
