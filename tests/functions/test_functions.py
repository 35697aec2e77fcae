"""Library functions: types, values, linearity along axis 0."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from privspec.functions import HOMES, REGISTRY
from privspec.model.domains import (
    NUMBER,
    FiniteSet,
    IntegerRange,
    L1Ball,
    RankingOf,
    Rankings,
    Symbols,
    Table,
    Tables,
    Type,
)
from privspec.model.library import Argument, Arguments, FunctionError, NotComputableError

SCHEMA = Table((("age", IntegerRange(0, 2)), ("sex", FiniteSet(("F", "M"))), ("ok", IntegerRange(0, 1))))
TABLE = Argument(Type((), Tables(SCHEMA)))


def vector(n):
    return Argument(Type((n,)))


def public(value):
    return Argument(NUMBER, Fraction(value))


def bind(name, *arguments, **keywords):
    return REGISTRY[name].bind(Arguments(tuple(arguments), keywords))


def test_every_function_has_its_name():
    for name in REGISTRY:
        function = REGISTRY[name]
        assert function.name == name
        assert function.signature.startswith(name + "(")
    assert len(REGISTRY) == len(HOMES)


LINEAR = [
    ("prefix_sums", (vector(5),)),
    ("suffix_sums", (vector(5),)),
    ("range_sums", (vector(5),)),
    ("total", (vector(5),)),
    ("differences", (vector(5),)),
    ("diagonal", (vector(5),)),
    ("sum", (vector(5),)),
    ("mean", (vector(5),)),
    ("histogram", (TABLE,)),
    ("count", (TABLE,)),
    ("marginals", (TABLE, public(1), public(2))),
    ("marginals", (TABLE, public(0), public(3))),
]


@pytest.mark.parametrize(("name", "arguments"), LINEAR)
def test_linear_functions_act_along_axis_0(name, arguments):
    bound = bind(name, *arguments)
    assert bound.linear
    assert REGISTRY[name].linear
    k = 12 if arguments[0] is TABLE else 5
    values = np.random.default_rng(0).normal(size=(k, 3, 2))
    batch = bound.apply(values)
    assert batch.shape == (*bound.type.shape, 3, 2)
    for i, j in itertools.product(range(3), range(2)):
        np.testing.assert_allclose(batch[..., i, j], bound.apply(values[:, i, j]))
    columns = bound.apply(np.eye(k))
    np.testing.assert_allclose((columns.reshape(-1, k) @ values[:, 0, 0]).reshape(bound.type.shape), batch[..., 0, 0])


def test_matrices_are_those_of_the_maps():
    for size in (1, 2, 7):
        np.testing.assert_array_equal(
            bind("prefix_matrix", public(size)).apply(), bind("prefix_sums", vector(size)).apply(np.eye(size))
        )
        np.testing.assert_array_equal(
            bind("range_matrix", public(size)).apply(), bind("range_sums", vector(size)).apply(np.eye(size))
        )
        np.testing.assert_array_equal(bind("identity", public(size)).apply(), np.eye(size))
    assert bind("ones", public(2), public(3)).apply().shape == (2, 3)


def test_ranges_are_ordered_by_lo_then_hi():
    v = np.array([1.0, 10.0, 100.0])
    np.testing.assert_array_equal(bind("range_sums", vector(3)).apply(v), [1, 11, 111, 10, 110, 100])


def test_marginals_against_counting():
    rng = np.random.default_rng(3)
    records = [tuple(int(rng.integers(n)) for n in SCHEMA.cell_shape) for _ in range(50)]
    counts = np.zeros(SCHEMA.cell_shape)
    for record in records:
        counts[record] += 1
    found = bind("marginals", TABLE, public(1), public(2)).apply(counts.ravel())
    expected = []
    for keep in [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]:
        cells = itertools.product(*(range(SCHEMA.cell_shape[i]) for i in keep))
        expected.extend(sum(tuple(r[i] for i in keep) == cell for r in records) for cell in cells)
    np.testing.assert_array_equal(found, expected)
    named = bind("marginals", TABLE, Argument(NUMBER, ("ok", "age"))).apply(counts.ravel())
    np.testing.assert_array_equal(named, expected[7 + 6 : 7 + 6 + 6])


def test_marginals_of_a_huge_table_have_a_type():
    wide = Table(tuple((f"a{i}", IntegerRange(1, 10)) for i in range(10)))
    bound = bind("marginals", Argument(Type((), Tables(wide))), public(3))
    assert bound.type.shape == (120 * 1000,)


REFUSED = [
    ("prefix_sums", (Argument(Type()),), "a number"),
    ("decayed_sums", (vector(2), public(2)), "from 0 to 1"),
    ("prefix_sums", (), "takes 1 argument"),
    ("differences", (vector(1),), "at least 2"),
    ("identity", (public(-1),), "positive|whole number"),
    ("identity", (Argument(NUMBER),), "public whole number"),
    ("identity", (public(10**6),), "entries"),
    ("marginals", (TABLE,), "write how many attributes"),
    ("marginals", (TABLE, public(4)), "no such marginals"),
    ("marginals", (TABLE, public(1), public(1)), "twice"),
    ("marginals", (vector(3), public(1)), "takes a table"),
    ("histogram", (vector(3),), "takes a table"),
    ("sum", (Argument(NUMBER),), "one number"),
    ("angle", (vector(2), vector(3)), "one kind"),
    ("plurality", (vector(3),), "votes"),
    ("borda_lottery", (Argument(Type((3,), Symbols(("a", "b")))),), "rankings"),
    ("cost", (Argument(Type((), Symbols(("a",)))),), "price"),
    ("sqrt", (Argument(Type((), Symbols(("a",)))),), "numbers"),
    ("probit_mle", (vector(3),), "one row per choice"),
]


@pytest.mark.parametrize(("name", "arguments", "words"), REFUSED)
def test_wrong_arguments(name, arguments, words):
    with pytest.raises(FunctionError, match=words):
        bind(name, *arguments)


def test_settings():
    rows = Argument(Type((4, 3)))
    bound = bind("probit_mle", rows, within=Argument(Type((3,)), None, L1Ball(Fraction(2), 3)))
    assert bound.domain == L1Ball(Fraction(2), 3)
    assert bound.type.shape == (3,)
    with pytest.raises(FunctionError, match="no setting withn"):
        bind("probit_mle", rows, withn=Argument(Type((3,)), None, L1Ball(Fraction(2), 3)))
    with pytest.raises(FunctionError, match="dimensions"):
        bind("probit_mle", rows, within=Argument(Type((2,)), None, L1Ball(Fraction(2), 2)))
    with pytest.raises(NotComputableError):
        bound.apply(np.zeros((4, 3)))


def test_votes():
    words = Argument(Type((4,), Symbols(("a", "b"))))
    bound = bind("plurality", words)
    assert bound.apply(np.array(["b", "b", "a", "a"], dtype=object)) == "a"
    assert bound.apply(np.array(["b", "b", "b", "a"], dtype=object)) == "b"
    assert bind("random_dictator", words).domain == FiniteSet(("a", "b"))
    rankings = Argument(Type((2,), Rankings(RankingOf(("a", "b", "c")))))
    assert list(bind("borda_scores", rankings).apply([("a", "b", "c"), ("b", "a", "c")])) == [3, 3, 0]
    partial = [("a", "b", "c"), ("b",)]
    assert bind("pairwise", rankings).apply(partial).tolist() == [[0, 1, 1], [1, 0, 2], [0, 0, 0]]
    assert bind("borda_lottery", rankings).type.element == Symbols(("a", "b", "c"))


def test_angles():
    bound = bind("angle", vector(2), vector(2))
    assert float(bound.apply(np.array([1.0, 0.0]), np.array([0.0, 2.0]))) == pytest.approx(np.pi / 2)
    half = bind("disagreement", vector(2), vector(2))
    assert float(half.apply(np.array([1.0, 0.0]), np.array([-1.0, 0.0]))) == pytest.approx(1.0)


def test_marginals_up_to_a_number_of_attributes():
    """Without the grand total; `ways` takes each of its numbers, 0 being the total."""
    counts = np.arange(float(np.prod(SCHEMA.cell_shape)))

    def asked(**words):
        return bind("marginals", TABLE, **{name: Argument(NUMBER, value) for name, value in words.items()}).apply(
            counts
        )

    none, one, two = (bind("marginals", TABLE, public(k)).apply(counts) for k in (0, 1, 2))
    assert np.array_equal(asked(up_to=Fraction(2)), np.concatenate([one, two]))
    assert np.array_equal(asked(ways=(Fraction(2), Fraction(0))), np.concatenate([two, none]))
    for wrong in (Fraction(-1), Fraction(1, 2), Fraction(9)):
        with pytest.raises(FunctionError, match="has no such marginals"):
            asked(up_to=wrong)
