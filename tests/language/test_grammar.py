"""The grammar that is compiled in, against its source and against the contract.

`contract_grammar.txt` is the grammar of the language's specification, word for word. The language has grown beyond
it (`BEYOND`, and any public expression after `distance`); it never refuses what the contract accepts.
"""

import random
import re
from functools import cache
from pathlib import Path

import pytest
from lark import Lark
from lark.exceptions import UnexpectedInput

from privspec.core.diagnostics import SpecError
from privspec.core.spans import Source
from privspec.kernel.measures import BY_WORD, EACH_OUTPUT, TOTAL_VARIATION
from privspec.language import grammar
from privspec.language.automaton import KINDS, STARTS, decode, parse_table
from privspec.language.build import ACTIONS
from privspec.language.layout import SECTIONS
from privspec.language.parser import parse

GOLDEN = Path(__file__).parents[1] / "golden"
BEYOND = {"language_finite", "language_given_the_model"}
"""Golden cases that show what the contract's grammar does not have."""
SPECS = [p.read_text("utf-8") for p in sorted(GOLDEN.glob("language_*/expected.priv")) if p.parent.name not in BEYOND]


@cache
def contract() -> Lark:
    """The specified grammar with "earlier terminals win" spelt out as priorities, headers before all."""
    text = (Path(__file__).with_name("contract_grammar.txt")).read_text("utf-8")
    headers = sorted(set(re.findall(r'"(\w+):"', text)))
    for i, name in enumerate(re.findall(r"^([A-Z_]+):", text, re.MULTILINE)):
        if name != "NAME":  # words in quotes must stay as strong as names
            text = re.sub(rf"^{name}:", f"{name}.{100 - i}:", text, flags=re.MULTILINE)
    for header in headers:
        text = text.replace(f'"{header}:"', f"HEADER_{header.upper()}")
        text += f'HEADER_{header.upper()}.200: "{header}:"\n'
    return Lark(text + "%ignore /[ \\t]+/\n", parser="lalr", lexer="contextual", start="start")


def accepted_by_contract(text: str) -> bool:
    try:
        contract().parse(text)
    except UnexpectedInput:
        return False
    return True


def accepted(text: str) -> bool:
    try:
        parse(Source("x", text))
    except SpecError:
        return False
    return True


def test_table_is_that_of_the_grammar() -> None:
    built = decode(grammar.encode(grammar.GRAMMAR.read_text("utf-8")))
    assert built == parse_table(), "run python -m privspec.language.grammar"


def test_no_conflict_is_resolved_silently(caplog: pytest.LogCaptureFixture) -> None:
    from lark import logger

    logger.propagate = True
    with caplog.at_level("DEBUG", logger="lark"):
        starts = list(STARTS)
        Lark(grammar.GRAMMAR.read_text("utf-8"), parser="lalr", start=starts, debug=True)
    assert "conflict" not in caplog.text.lower()


def test_every_rule_has_its_action() -> None:
    actions = {rule.action for rule in parse_table().rules if rule.action and not rule.action.startswith("_")}
    assert actions == set(ACTIONS)


def test_every_section_has_its_rule() -> None:
    assert set(SECTIONS.values()) == set(STARTS)
    assert set(SECTIONS) == set(re.findall(r'"(\w+):"', Path(__file__).with_name("contract_grammar.txt").read_text()))


def test_regular_expressions_are_those_of_the_contract() -> None:
    """Apart from line ends and descriptions, which the layout finds, measures, and words that are newer."""

    def terminals(text: str) -> dict[str, str]:
        return dict(re.findall(r"^([A-Z_]+): (/.*/)$", text, re.MULTILINE))

    ours = terminals(grammar.GRAMMAR.read_text("utf-8"))
    del ours["DAY"], ours["ADVANTAGE"]
    theirs = terminals(Path(__file__).with_name("contract_grammar.txt").read_text("utf-8"))
    assert ours == {k: v for k, v in theirs.items() if k not in {"_NL", "DOC"}} | {"MEASURE": ours["MEASURE"]}
    (measures,) = re.findall(r"\((.*)\)", theirs["MEASURE"])
    assert {*measures.split("|"), EACH_OUTPUT.word, TOTAL_VARIATION.word} == {*BY_WORD}
    assert all(re.fullmatch(ours["MEASURE"].strip("/"), f"-{word}") for word in BY_WORD)
    assert set(re.findall(r"\w+", ours["KIND"].removesuffix("\\b/"))) == KINDS


@pytest.mark.parametrize("text", SPECS)
def test_contract_accepts_canonical_specs(text: str) -> None:
    # Line ends inside brackets are dropped before the contract's grammar sees them; || that closes two
    # absolute values, and a power behind a domain's ², are more than it asks for.
    flat = re.sub(r"\(\n[^()]*\n  \)", lambda m: " ".join(m[0].split()), text)
    assert accepted_by_contract(flat)


def test_what_the_contract_accepts_is_accepted() -> None:
    dice = random.Random(7)
    words = sorted({w for text in SPECS for w in re.findall(r"\w+:?|\S", text)})
    agreed = 0
    for _ in range(600):
        pieces = re.findall(r"[^\S\n]+|\n|\w+:?|\S", dice.choice(SPECS))
        for _ in range(dice.randint(1, 2)):
            at = dice.choice([i for i, piece in enumerate(pieces) if not piece.isspace()])
            match dice.randrange(3):
                case 0:
                    del pieces[at]
                case 1:
                    pieces.insert(at, f" {dice.choice(words)} ")
                case 2:
                    pieces[at] = f" {dice.choice(words)} "
        text = "".join(pieces).rstrip("\n") + "\n"
        if accepted_by_contract(text):
            agreed += 1
            assert accepted(text), text
        elif accepted(text):
            several_lines = re.search(r"[(\[{][^)\]}\n]*\n", text)
            assert several_lines or re.search(r"\||²| :|distance", text), text
    assert agreed > 50


@pytest.mark.parametrize(
    ("text", "fine"),
    [
        ("variables: input x in 1..10^3", False),
        ("variables: input x in (1..10)^3", True),
        ("parameters: loss = 3", True),
        ("parameters:\n loss = 3\nloss: loss", True),
        ("background: y = f(1,\n 2)", True),
        ("background: y = |1 +\n 2|", False),
        ("background: y = ||1 +\n 2||", False),
        ("background: E[x] = worst[x]", True),
        ("parameters:", True),
        ("", False),
        ("spec a\n", False),
        ("loss:", False),
        ("loss: a\nloss: b", False),
        ('spec a\n"""doc"""\nvariables:', True),
        ('"""doc"""\nvariables:', False),
        ("privacy: O is 1-DP wrt x", True),
        ("privacy: O is 1‑DP wrt x", True),
        ("privacy: O is 1 -DP wrt x", True),
        ("privacy: O is 1 - DP wrt x", False),
        ("privacy: O is 1-DP with   respect to x", True),
        ("privacy: O is 1-DP w.r.t. x", True),
        ("privacy: O are 1-DP wrt x", True),
        ("fairness: O is 1-DP wrt x", True),
        ("privacy: O is 1-metric-DP wrt x, distance |x - x'|", True),
        ("privacy: O is 1-metric-DP wrt x, distance ‖x − x⊤‖, seen by me", True),
        ('privacy: O is 1-metric-DP wrt x, distance 0.001 * csv("roads.csv")', True),
        ("privacy: O is 1-metric-DP wrt x, distance", False),
        ("privacy: O is 1-metric-DP wrt x, distance euclidean seen by me", False),
        ("privacy: O is (1, 0.1)-per-atom-LDP wrt x", True),
        ("privacy: O is (1, 0.1)-per-atom-DP wrt x", False),
        ("privacy: O is independent of x", False),
        ("background: y = a-DP", True),
        ("background: y = 1e-6 * x1e", True),
        ("\ufeffloss: x\r\n", True),
        ("loss: x # no line end", True),
        ("loss :\tx", True),
    ],
)
def test_facts(text: str, fine: bool) -> None:
    assert accepted(text) is fine


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("loss: ε + ϵ + δ + μ + µ + ρ + α", "loss: epsilon + epsilon + delta + mu + mu + rho + alpha"),
        ("loss: 𝔼[ ‖x‖² ]", "loss: E[ ||x||^2 ]"),
        ("loss: A⊤ · x − y", "loss: A' * x - y"),
        ("variables: input x ∈ ℝ^3", "variables: input x in real^3"),
        ("background: x ∼ u", "background: x ~ u"),
        ("background: x ≤ u", "background: x <= u"),
        ("background: x ≥ u", "background: x >= u"),
        ("background: x = u‑v", "background: x = u-v"),
        (
            "variables: input x in 1..n·m + 2",
            "variables: input x in 1..(n * m) + 2".replace("(n * m)", "n * m"),
        ),
        ("loss: (((a)) + b)", "loss: a + b"),
        ("loss: x²", "loss: x^2"),
    ],
)
def test_same_tree(text: str, same: str) -> None:
    assert parse(Source("x", text)) == parse(Source("y", same))


def test_x_squared_is_not_the_name_x2() -> None:
    assert parse(Source("x", "loss: x²")) != parse(Source("x", "loss: x2"))
