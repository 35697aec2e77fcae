import pytest

from privspec.core.spans import Source
from privspec.language import syntax as s
from privspec.language.parser import parse, parse_expression
from privspec.language.walk import children, depth, names_used, walk


def expression(text: str) -> s.Expr:
    return parse_expression(Source("x", text))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a + b * c", "a b c"),
        ("f(a, k = b)", "a b"),
        ("x.weights[i]'", "x i"),
        ("sum(x[i] + n for i in 1..n)", "x n"),
        ("sum(x[i] for i in 1..i)", "x i"),
        ("mean(V[voter].weights for voter)", "V"),
        ("E[z | x] + worst[ ||v||_1 + |w| ]", "z x v w"),
        ("{a, b} + (c, d) + [e, 1]", "a b c d e"),
        ('csv("a") + 1', ""),
        ("table(age in 0..m, sex in {F, M})", "m F M"),
    ],
)
def test_names_that_are_used(text: str, names: str) -> None:
    assert set(names_used(expression(text))) == set(names.split())


def test_walk_goes_down_left_to_right() -> None:
    tree = expression("a + f(b, -c)")
    assert [type(n).__name__ for n in walk(tree)] == ["Binary", "Name", "Call", "Name", "Negate", "Name"]
    assert [n.id for n in walk(tree) if isinstance(n, s.Name)] == ["a", "b", "c"]
    assert list(children(tree)) == [tree.left, tree.right]  # type: ignore[union-attr]
    assert depth(tree) == 4


def test_spans() -> None:
    source = Source("x", "background:\n  y = (a + b) * f(ε[1])²\n")
    relation = parse(source).background[0]
    shown = [(type(n).__name__, source.slice(n.span)) for n in walk(relation)]
    assert shown == [
        ("Relation", "y = (a + b) * f(ε[1])²"),
        ("Name", "y"),
        ("Binary", "(a + b) * f(ε[1])²"),
        ("Binary", "(a + b)"),
        ("Name", "a"),
        ("Name", "b"),
        ("Binary", "f(ε[1])²"),
        ("Call", "f(ε[1])"),
        ("Index", "ε[1]"),
        ("Name", "ε"),
        ("Number", "1"),
        ("Number", "²"),
    ]


def test_name_span_of_a_reference() -> None:
    source = Source("x", "privacy: O is ε[voter]-DP wrt V[voter]")
    (requirement,) = parse(source).privacy
    assert isinstance(requirement.wrt, s.Refs)
    assert source.slice(requirement.wrt.items[0].name_span) == "V"
    assert source.slice(requirement.amount.span) == "ε[voter]"
