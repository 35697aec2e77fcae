"""The rules: what makes theorems, what has to be believed for them, and that all lines of plans hold by them."""

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
from privspec.kernel.core.problem import HOMES, rules_of
from privspec.kernel.core.reading import JsonNode
from privspec.kernel.designs import chosen_case
from privspec.kernel.judging import judge, read_case
from privspec.kernel.measures import BY_DISTANCE, BY_DISTANCE_APPROXIMATE
from privspec.kernel.promises import promised, verdict
from tests.corpus.mutants import sampled
from tests.plans import SMALL, Document, mutate, solved, solved_text
from tests.test_language_forms import FORMS as SPECS

KERNEL = Path(privspec.kernel.__file__).parent
CLOSURE = 43_798
"""Most tokens of all that rules and laws import, directly or not."""
ENTERED = {"linear_queries": 8_993, "counting_query": 6_693, "city_report": 16_671}
"""Most tokens of the functions that the verdict on the privacy of a plan enters, with the words of its report.

Asked are 10,000, 9,000 and 14,000: a plan of a system still states its changes by runs of coordinates and tables of
rows, and its parts as problems that are read by the rules of their forms.
"""
ROOTS = ("rules", "terms", "changes", "losses", "laws", "strategies")
PRIVACY = {"integrity", "privacy", "view", "law", "choices", "rounds"}
"""Claims that privacy rests on."""
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
        found = judge(text, worth=False)
    finally:
        sys.setprofile(None)
    assert found.ok
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
    text = json.dumps(solved(name))
    assert judge(text, worth=False).ok  # the first verdict of a process compiles classes as well
    held = entered(text)
    print(sum(held.values()), len(held), sorted(held.items(), key=lambda pair: -pair[1]))
    assert sum(held.values()) <= ENTERED[name]


# --- what every line of a plan promises --------------------------------------------------------------------------


def holds_by_theorems(document: Document) -> None:
    """What is executed is a term, and each of its lines is kept by theorems about it, whatever it is worth."""
    text = json.dumps(document)
    whole, alone = (judge(text, worth=worth) for worth in (True, False))
    assert whole.ok and alone.ok
    kept = [[claim.text for claim in one.claims if claim.name == "privacy"] for one in (whole, alone)]
    assert set(kept[1]) <= set(kept[0])
    case, design = read_case(JsonNode(document, "plan"))
    own = case if design is None else chosen_case(case, design)
    rules_of(own.block.form(*HOMES)).privacy(own)
    term, lines = promised(own)
    assert len(lines) == len(own.frame.obligations)
    assert all(verdict(term, line).holds for line in lines)


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in COMPARED else pytest.mark.slow) for n in SMALL])
def test_plans_hold_by_the_rules(name: str) -> None:
    holds_by_theorems(solved(name))


@pytest.mark.slow
@pytest.mark.parametrize("spec", [pytest.param(spec, id=name) for name, becomes, spec in SPECS if becomes == "solves"])
def test_every_form_of_the_language_holds_by_the_rules(spec: str) -> None:
    holds_by_theorems(solved_text(spec))


@pytest.mark.parametrize("name", ["prefix_sums", "counting_query", "city_report"])
def test_what_is_refused_for_its_privacy_is_refused_without_its_worth(name: str) -> None:
    """And what is refused without it is refused with it."""
    for _, _, text in sampled(solved(name), 40, seed=3):
        whole, alone = judge(text), judge(text, worth=False)
        broken = any(claim.name in PRIVACY for claim in whole.failed)
        assert not broken or not alone.ok
        assert alone.ok or not whole.ok


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
    assert not judge(json.dumps(forged), worth=False).ok


KEYS = """variables:
  input people in table(district in unknown)
  output shown
loss: worst[ missed(shown, keys(people, by = {district}, at_least = 5)) ]
privacy: shown is (1, 1e-3)-DP wrt people, adding or removing one record
"""
