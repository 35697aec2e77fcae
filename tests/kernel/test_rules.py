"""The rules: what makes theorems, what has to be believed for them, and the same verdicts as the kernel of today."""

from __future__ import annotations

import ast
import io
import json
import sys
import tokenize
from pathlib import Path
from typing import Any

import pytest

import privspec.kernel
from privspec.kernel.from_plans import FORMS, judge_privacy
from privspec.kernel.judging import judge
from privspec.kernel.measures import BY_DISTANCE, BY_DISTANCE_APPROXIMATE
from tests.corpus.mutants import sampled
from tests.plans import SMALL, Document, mutate, solved, solved_text
from tests.test_language_forms import FORMS as SPECS

KERNEL = Path(privspec.kernel.__file__).parent
CLOSURE = 38_000
"""Most tokens of all that rules and laws import, directly or not."""
ENTERED = {"linear_queries": 12_500, "counting_query": 9_000, "city_report": 19_000}
"""Most tokens of the functions that the privacy verdict of a plan enters.

Half of them read plans of format 2; at 10,000, 9,000 and 14,000 when a plan states terms and changes itself.
"""
ROOTS = ("rules", "terms", "changes", "losses", "laws", "strategies")
WORTH = {"claims", "loss", "accuracy", "fairness", "alternatives", "status", "outcomes", "exposures"}
"""What a plan, or a part of one, says of its worth: the rules judge privacy, and today's kernel all of it at once."""
COMPARED = ("prefix_sums", "linear_queries", "histogram", "counting_query", "city_report", "secure_sum_or_noise")


def tokens(text: str) -> int:
    """As tests/test_house.py counts them, of a module or of a function."""
    layout = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    left_out: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        value = node.value if isinstance(node, ast.Expr) else None
        words = isinstance(value, ast.Constant) and isinstance(value.value, str)
        if words or isinstance(node, (ast.Import, ast.ImportFrom)):
            left_out.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    found = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(token.type not in layout and token.start[0] not in left_out for token in found)


def imported(path: Path) -> set[Path]:
    """The modules of the kernel that a module imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("privspec.kernel"):
            base = KERNEL.joinpath(*str(node.module).split(".")[2:])
            places = [base, *(base / alias.name for alias in node.names)]
            found |= {place.with_suffix(".py") for place in places if place.with_suffix(".py").exists()}
    return found


def test_theorems_are_made_by_rules_alone() -> None:
    for path in KERNEL.rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        names = {
            node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        if path.name != "rules.py":
            assert not {"Theorem"} & (names | attributes), path
            assert "_RULE" not in path.read_text("utf-8"), path
    tree = ast.parse((KERNEL / "rules.py").read_text("utf-8"))
    makers = {
        function.name
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Theorem"
    }
    print(sorted(makers))
    assert len(makers) <= 20


def test_what_rules_and_laws_rest_on_is_small() -> None:
    todo = [path for root in ROOTS for path in [KERNEL / f"{root}.py", *(KERNEL / root).glob("*.py")] if path.exists()]
    known: set[Path] = set()
    while todo:
        path = todo.pop()
        if path not in known:
            known.add(path)
            todo += imported(path)
    held = {str(path.relative_to(KERNEL)): tokens(path.read_text("utf-8")) for path in known}
    print(sum(held.values()), dict(sorted(held.items())))
    assert sum(held.values()) <= CLOSURE


def entered(text: str) -> dict[tuple[str, str], int]:
    """The functions of ours that a verdict enters, with their tokens."""
    codes = set()

    def profile(frame: Any, event: str, _: object) -> None:
        if event == "call" and str(KERNEL) in frame.f_code.co_filename:
            codes.add((frame.f_code.co_filename, frame.f_code.co_firstlineno, frame.f_code.co_name))

    sys.setprofile(profile)
    try:
        found = judge_privacy(text)
    finally:
        sys.setprofile(None)
    assert all(one.holds for one in found)
    places: dict[str, set[int]] = {}
    for path, line, _ in codes:
        places.setdefault(path, set()).add(line)
    held = {}
    for path, lines in places.items():
        source = Path(path).read_text("utf-8")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef):
                first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
                if {first, node.lineno} & lines:
                    body = "\n".join(
                        line[node.col_offset :] for line in source.split("\n")[first - 1 : node.end_lineno]
                    )
                    held[Path(path).name, node.name] = tokens(body)
    return held


@pytest.mark.parametrize("name", ENTERED)
def test_the_verdict_on_a_plan_enters_little(name: str) -> None:
    held = entered(json.dumps(solved(name)))
    print(sum(held.values()), len(held), sorted(held.items(), key=lambda pair: -pair[1]))
    assert sum(held.values()) <= ENTERED[name]


# --- the same verdicts as today's kernel -------------------------------------------------------------------------


def form_of(document: Document) -> str:
    return str(document["problem"]["blocks"][0]["form"])


def accepts_privacy(text: str, lines: int) -> bool:
    """Whether today's kernel derives every line of a plan, whatever it then says of its worth."""
    claims = judge(text).claims
    about = [claim for claim in claims if claim.name in ("integrity", "privacy", "view", "law", "choices", "rounds")]
    derived = [claim for claim in about if claim.name == "privacy" and claim.item is not None]
    return all(claim.holds for claim in about) and len({claim.item for claim in derived}) == lines


def agrees(document: Document) -> None:
    """The new core holds every line; of forms that have not come over none."""
    found = judge_privacy(json.dumps(document))
    known = all(part in FORMS for part in forms_of(document))
    assert judge(json.dumps(document)).ok
    assert all(one.holds for one in found) == known, found


def forms_of(document: Document) -> list[str]:
    block = document["problem"]["blocks"][0]
    parts = [form_of(part) for part in block["parts"]] if block["form"] == "system" else []
    return [block["form"], *parts]


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in COMPARED else pytest.mark.slow) for n in SMALL])
def test_plans_hold_by_the_rules(name: str) -> None:
    agrees(solved(name))


@pytest.mark.slow
@pytest.mark.parametrize("spec", [pytest.param(spec, id=name) for name, becomes, spec in SPECS if becomes == "solves"])
def test_every_form_of_the_language_holds_by_the_rules(spec: str) -> None:
    agrees(solved_text(spec))


def accepted_anew(document: Document, most: int, seed: int) -> list[str]:
    """Changed plans of which the rules hold every line, and today's kernel does not."""
    found = []
    for done, path, text in sampled(document, most, seed):
        if WORTH & set(path):
            continue
        new = judge_privacy(text)
        if new and all(one.holds for one in new) and not accepts_privacy(text, len(new)):
            found.append(f"{'.'.join(map(str, path))}: {done}")
    return found


@pytest.mark.parametrize("name", ["prefix_sums", "counting_query", "city_report"])
def test_what_today_is_refused_is_not_accepted(name: str) -> None:
    assert not accepted_anew(solved(name), 40, seed=3)


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_thousands_of_changed_plans_are_not_accepted_anew(name: str) -> None:
    assert not accepted_anew(solved(name), 400, seed=4)


OTHER = {one.figures: one.name for one in (BY_DISTANCE, BY_DISTANCE_APPROXIMATE)}
"""Measures by distance, by their amounts."""


@pytest.mark.parametrize("name", ["census_tables", "correlated_readings", "prefix_sums", "unlisted_keys"])
def test_a_measure_by_distance_is_proved_by_no_noise_of_a_curator(name: str) -> None:
    """Its amounts are those of a measure of laws, and a theorem for these says nothing of it."""
    document = solved_text(KEYS) if name == "unlisted_keys" else solved(name)
    asked = document["problem"]["obligations"][0]["measure"]
    other = OTHER[tuple(entry[0] for entry in asked["amounts"])]
    forged = mutate(document, ("problem", "obligations", 0, "measure", "name"), other)
    forged = mutate(forged, ("guarantees", 0, "measure"), other)
    assert judge(json.dumps(document)).ok
    assert not judge(json.dumps(forged)).ok
    assert not all(one.holds for one in judge_privacy(json.dumps(forged)))


KEYS = """variables:
  input people in table(district in unknown)
  output shown
loss: worst[ missed(shown, keys(people, by = {district}, at_least = 5)) ]
privacy: shown is (1, 1e-3)-DP wrt people, adding or removing one record
"""
