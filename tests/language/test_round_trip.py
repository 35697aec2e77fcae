"""Printing then parsing gives the same tree, for any tree."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privspec.core.spans import Source
from privspec.language import syntax as s
from privspec.language.formatter import format_source
from privspec.language.layout import SECTIONS
from privspec.language.parser import parse, parse_expression, parse_statement
from privspec.language.spelling import print_spec, spell

NAMES = ["x", "y", "A", "O", "voter", "epsilon", "E", "worst", "inf", "Größe", "x1", "the_sum", "N"]
names = st.sampled_from(NAMES)
numbers = st.one_of(
    st.integers(0, 1000).map(lambda n: s.Number(Fraction(n), str(n))),
    st.sampled_from(["0.5", "1e-6", "2.50", "1E3", "0.05e+2"]).map(lambda t: s.Number(Fraction(t), t)),
    st.decimals(0, 100, places=3).map(lambda d: s.Number(Fraction(d))),
    st.sampled_from([Fraction(1, 1024), Fraction(3, 10**20), Fraction(10**30), Fraction(7)]).map(s.Number),
)
name_nodes = names.map(s.Name)
strings = st.text(
    st.characters(exclude_characters='"', exclude_categories=("Cc", "Cs", "Cf", "Zl", "Zp")), max_size=8
).map(s.String)


def several(items, least=1, most=3):
    return st.lists(items, min_size=least, max_size=most).map(tuple)


def arguments(expr):
    return st.one_of(
        expr,
        ranges(expr),
        st.builds(s.Keyword, names, expr),
        st.builds(s.Member, names, domains(expr)),
        st.builds(s.Comprehension, expr, names, st.none() | domains(expr)),
    )


def calls(expr):
    return st.builds(s.Call, names, several(arguments(expr), 0))


def sets(expr):
    return st.builds(s.SetOf, several(expr))


def compound(expr):
    return st.one_of(
        calls(expr),
        sets(expr),
        st.builds(s.TupleOf, several(expr, 2)),
        st.builds(s.Vector, several(expr)),
        st.builds(s.Negate, expr),
        st.builds(s.Binary, st.sampled_from("+-*/@^"), expr, expr),
        st.builds(s.Binary, st.sampled_from("+-*/@^"), expr, expr),
        st.builds(s.Transpose, expr),
        st.builds(s.Index, expr, several(expr, 1, 2)),
        st.builds(lambda base, one, run: s.Slice(base, (*one, run)), expr, several(expr, 0, 1), ranges(expr)),
        st.builds(s.Each, st.builds(s.Comprehension, expr, names, st.none() | domains(expr))),
        st.builds(s.Attribute, expr, names),
        st.builds(s.Norm, expr, st.sampled_from(["1", "2", "inf"])),
        st.builds(s.Absolute, expr),
        st.builds(s.Over, st.sampled_from(["E", "worst"]), expr, st.none() | expr | several_given(expr)),
    )


def several_given(expr):
    known = st.builds(s.Known, name_nodes, st.builds(lambda one: s.SetOf((one,)), expr))
    return st.builds(lambda one, others: s.TupleOf((one, *others)), known, several(name_nodes | known, 0, 2))


simple = numbers | name_nodes
signed = simple | simple.map(s.Negate)


def ranges(expr):
    return st.builds(s.RangeOf, signed, expr)


def intervals(expr):
    return st.one_of(
        st.builds(s.Interval, expr, expr, st.just(False), st.booleans()),
        st.builds(s.Interval, signed, expr, st.just(True), st.booleans()),
    )


def domains(expr):
    base = st.one_of(
        name_nodes,
        ranges(expr),
        st.builds(s.Call, names, several(expr, 0)),
        sets(expr),
        intervals(expr),
        st.builds(s.RankingOf, name_nodes | sets(expr)),
    )
    power = st.builds(s.Power, base, several(expr))
    return st.one_of(base, base, power, st.builds(s.Power, power, several(expr)))


expressions = st.recursive(numbers | name_nodes | strings, compound, max_leaves=12)
small = st.recursive(numbers | name_nodes, compound, max_leaves=4)
all_domains = domains(small)
refs = st.builds(s.Ref, names, st.none() | names, several(small, 0, 2))
subjects = st.builds(s.Refs, several(refs)) | st.sampled_from(["outputs", "inputs"]).map(s.AllOf)
amounts = st.builds(s.Amount, several(expressions, 1, 2))
neighbours = st.builds(s.ByNeighbour, names, st.booleans(), expressions)
units = st.one_of(
    st.just(s.Everything()), st.builds(s.OneUnit, names), st.builds(s.UpToUnits, amounts, names), neighbours
)
clauses = st.one_of(
    st.builds(s.Replacing, units),
    st.builds(s.AddingOrRemoving, units),
    st.builds(s.Distance, name_nodes | small),
    st.builds(s.SeenBy, several(name_nodes)),
)
MEASURES = ["DP", "zCDP", "GDP", "LDP", "RDP", "tv-DP", "metric-DP", "per-atom-LDP", "Lipschitz"]
requirements = st.builds(s.Requirement, subjects, amounts, st.sampled_from(MEASURES), subjects, several(clauses, 0))


@st.composite
def independences(draw):
    given_ref = draw(st.none() | st.builds(s.Refs, several(refs)))
    value = draw(st.none() | expressions) if given_ref is not None else None
    return s.Independence(draw(subjects), draw(refs), given_ref, value, draw(st.none() | expressions))


@st.composite
def targets(draw):
    variable = draw(st.none() | names)
    domain = draw(st.none() | all_domains) if variable is not None else None
    return s.Target(draw(expressions), draw(expressions), variable, domain, draw(st.none() | expressions))


STATEMENTS = {
    "parameters": st.builds(s.Parameter, refs, expressions),
    "parties": st.builds(s.Party, names, all_domains),
    "components": st.builds(s.Component, names, calls(small)),
    "variables": st.builds(
        s.Variable, st.sampled_from(s.VariableKind), refs, st.none() | all_domains, st.none() | expressions
    ),
    "background": st.one_of(
        st.builds(s.Relation, st.sampled_from(["=", "~", "<=", ">="]), expressions, expressions),
        st.builds(s.Indexed, st.just("="), expressions, expressions, several(st.builds(s.Member, names, all_domains))),
        st.builds(s.Membership, expressions, all_domains),
        st.builds(s.SensitivityClaim, expressions, names, expressions, refs, several(clauses, 0)),
    ),
    "loss": expressions,
    "accuracy": targets(),
    "privacy": requirements,
    "fairness": requirements | independences(),
    "options": st.one_of(
        st.builds(s.Trust, name_nodes | calls(small)),
        st.builds(s.NoiseAt, several(expressions)),
        st.builds(s.NoiseFamily, several(name_nodes)),
    ),
}
docs = st.text(st.characters(exclude_categories=("Cc", "Cs", "Cf", "Zl", "Zp")), max_size=20).map(str.strip)


@st.composite
def specs(draw):
    parts = {k: draw(several(v, 0, 2)) for k, v in STATEMENTS.items() if k != "loss" and draw(st.booleans())}
    name = draw(st.none() | names)
    doc = draw(st.none() | docs.filter(lambda d: '"""' not in d)) if name is not None else None
    order = draw(st.permutations(list(SECTIONS)))
    return s.Spec(name, doc, loss=draw(st.none() | expressions), sections=tuple(order[:5]), **parts)


@given(expressions)
def test_expressions(tree):
    assert parse_expression(Source("x", spell(tree))) == tree


@pytest.mark.parametrize("section", STATEMENTS)
@given(st.data())
def test_statements(section, data):
    tree = data.draw(STATEMENTS[section])
    assert parse_statement(section, Source("x", spell(tree))) == tree


@given(specs())
def test_specs(tree):
    text = print_spec(tree)
    assert parse(Source("x", text)) == tree
    formatted = format_source(Source("x", text))
    assert parse(Source("x", formatted)) == tree
    assert format_source(Source("x", formatted)) == formatted


@given(specs())
def test_spans_cover_what_was_written(tree):
    """Every expression parses again from the text under its span."""
    from privspec.language.walk import walk

    source = Source("x", print_spec(tree))
    every = [*walk(parse(source))]
    given = [node.given for node in every if isinstance(node, s.Over)]
    for node in every:
        listed = isinstance(node, s.SetOf | s.Known) or any(node is one for one in given)
        if isinstance(node, s.Expr.__args__) and not listed:
            text = source.slice(node.span)
            assert text == text.strip()
            if not isinstance(node, s.Name):
                assert parse_expression(Source("y", text)) == node


@given(expressions)
def test_brackets_are_needed(tree):
    """Leaving out any pair of round brackets around one expression changes the tree or breaks the text."""
    from privspec.core.diagnostics import SpecError

    text = spell(tree)
    stack = []
    for i, char in enumerate(text):
        if char == '"':
            return
        if char == "(":
            stack.append(i)
        elif char == ")" and stack:
            start = stack.pop()
            if start and (text[start - 1].isalnum() or text[start - 1] in "_^"):
                continue  # a call, or the exponent of a domain
            without = text[:start] + " " + text[start + 1 : i] + " " + text[i + 1 :]
            try:
                assert parse_expression(Source("x", without)) != tree, (text, without)
            except SpecError:
                continue


def test_a_column_called_by_a_letter_that_stands_for_a_name_keeps_its_quotes() -> None:
    text = (
        'variables:\n  input t in table("ε" in 0..9, epsilon in 0..9)\n  output O\n\nloss:\n  E[ (O - sum(t."ε"))^2 ]\n'
    )
    assert format_source(Source("s.priv", text)) == text
