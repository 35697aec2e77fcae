"""What a plan's privacy rests on: nothing that is left out of the list has a part in it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import privspec.kernel
from privspec.plan import Plan
from privspec.trusted import KERNEL, WORTH, trusted
from tests.plans import solved
from tests.test_house import tokens

SHORT = ("counting_query", "linear_queries")
LONG = ("city_report", "pages_read", "daily_counts", "two_observers")
ALONE = """
import json, sys
from types import FunctionType
from privspec.kernel import judge
text, listed, kernel = json.load(sys.stdin)
judge(text, worth=False)
listed = {tuple(one) for one in listed}
def broken(*given, **named):
    raise KeyError("a function that is not listed")
def functions(space):
    for value in list(vars(space).values()):
        value = getattr(value, "fget", value)
        value = getattr(value, "__func__", value)
        value = getattr(value, "__wrapped__", value)
        if isinstance(value, FunctionType):
            yield value
        elif isinstance(value, type) and value.__module__.startswith("privspec.kernel") and value is not space:
            yield from functions(value)
count = 0
for name, module in list(sys.modules.items()):
    if name.startswith("privspec.kernel"):
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()
        for one in functions(module):
            code = one.__code__
            if not code.co_filename.startswith(kernel) or code.co_freevars:
                continue
            if (code.co_filename[len(kernel) + 1:], code.co_firstlineno) not in listed:
                one.__code__, count = broken.__code__, count + 1
print(json.dumps([count, [[one.name, one.holds, one.text] for one in judge(text, worth=False).claims]]))
"""
"""A process whose kernel has no functions but those that are listed: all others break off."""


def alone(text: str, listed: list[tuple[str, int]]) -> tuple[int, list[list[object]]]:
    """How many functions were broken, and the claims that are derived nevertheless."""
    given = json.dumps([text, listed, str(KERNEL)])
    done = subprocess.run([sys.executable, "-c", ALONE], input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    count, claims = json.loads(done.stdout)
    return count, claims


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=pytest.mark.slow if one in LONG else ()) for one in (*SHORT, *LONG)]
)
def test_privacy_is_derived_by_what_is_listed_alone(name: str) -> None:
    plan = Plan.of(solved(name))
    found, text = plan.trusted(), json.dumps(dict(plan.document))
    listed = [(one.path.removeprefix("privspec/kernel/"), f.first) for one in found.files for f in one.entered]
    claims = [[one.name, one.holds, one.text] for one in privspec.kernel.judge(text, worth=False).claims]
    count, derived = alone(text, listed)
    assert count > 50
    last = max(place for place, (kind, *_) in enumerate(claims) if kind not in WORTH)
    assert derived[: last + 1] == claims[: last + 1]
    assert "privacy" in {kind for kind, *_ in claims}
    without = [one for one in listed if not one[0].startswith("judging")]
    for left_out in without[:: len(without) // 4]:
        _, derived = alone(text, [one for one in listed if one != left_out])
        assert derived[: last + 1] != claims[: last + 1], left_out


def test_tokens_are_those_of_the_house() -> None:
    """Of each file what is listed and what is not come to all of it."""
    from privspec import trusted as module

    for path in sorted(KERNEL.rglob("*.py")):
        source = path.read_text("utf-8")
        by_line = module._tokens_by_line(source, module.ast.parse(source))
        assert sum(by_line.values()) == tokens(path)
    found = Plan.of(solved("counting_query")).trusted()
    for one in found.files:
        path = KERNEL.parents[1] / one.path
        inside = sum(f.tokens for f in one.entered)
        assert 0 < one.tokens == one.outside + inside <= tokens(path)
        lines = path.read_text("utf-8").splitlines()
        assert all(any(lines[k].lstrip().startswith("def ") for k in range(f.first - 1, f.last)) for f in one.entered)


def test_the_list_does_not_hang_on_what_was_judged_before() -> None:
    text, other = (json.dumps(solved(name)) for name in ("counting_query", "linear_queries"))
    first = trusted(text, ("tables",))
    privspec.kernel.judge(other)
    assert trusted(text, ("tables",)) == first
    assert [one.path for one in first.files][:1] == ["privspec/kernel/judging.py"]
    assert not any("/noise/" in one.path for one in first.files)
    assert {name.partition(".")[0] for name in first.imports} <= {"flint", *sys.stdlib_module_names}


def test_what_is_printed_says_how_much_there_is_to_read() -> None:
    found = Plan.of(solved("counting_query")).trusted()
    text = found.text()
    assert f"1 proof, and {found.tokens:,} tokens of code" in text
    assert "tables.md" in text and "Finite mechanisms as tables" in text
    document = found.document()
    assert document["tokens"] == sum(one["tokens"] for one in document["files"])
    assert Path(document["files"][0]["path"]).name == "judging.py"
