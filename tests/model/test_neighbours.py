"""Difference sets against brute force over pairs of neighbouring worlds."""

import itertools
from fractions import Fraction

import model_specs as specs
import numpy as np
import pytest
from privspec.solvers.programs import Balls, Boxes, Pairs, Vectors

from privspec.families.gaussian.differences import sets_of
from privspec.model import neighbours as nb
from privspec.problem.linear import moved
from privspec.problem.linear_affine import Layout


def block(domain, parties="", index="", question="x"):
    """An input; all columns of a table are read where a question is about all of them."""
    text = f"""{parties}
variables:
  input x{index} in {domain}
  output O in real
  intermediate asked = {question}
privacy:
  O is 1-metric-DP wrt x, distance euclidean
"""
    return specs.load(text).block("x")


def sets(blocks, relation):
    """Every set of differences of some inputs under a relation."""
    return [one for one, _ in covered(blocks, relation)]


def covered(blocks, relation):
    """The same, each with how many times larger it is than what units surely do."""
    layout = Layout.laid(blocks)
    everything = np.eye(layout.width)
    return [one for difference in moved(blocks, relation) for one in sets_of(difference, layout, everything)]


def reach(parts, direction):
    """The support function of a union of difference sets: its largest inner product with a direction."""
    found = []
    for part in parts:
        match part:
            case Vectors():
                found.append(np.abs(part.matrix.T @ direction).max())
            case Pairs():
                values = direction[part.coordinates]
                found.append(float(part.scale) * (values.max() - values.min()))
            case Balls():
                found.append(max(np.linalg.norm(direction[b]) for b in part.blocks) * float(part.radius))
            case Boxes():
                width = np.array([float(r) for r in part.reach])
                found.append(max((np.abs(direction[b]) * width[b]).sum() for b in part.blocks))
    return max(found)


DIRECTIONS = np.random.default_rng(1).normal(size=(20, 6))


def worlds_box(low, high, n):
    return [np.array(w, float) for w in itertools.product((low, high), repeat=n)]


@pytest.mark.parametrize(("domain", "shape", "low", "high"), [("[-1, 2]^6", 6, -1, 2), ("(-3..1)^6", 6, -3, 1)])
@pytest.mark.parametrize("group", [1, 2, 3])
def test_replacing_entries(domain, shape, low, high, group):
    parts = sets([block(domain)], nb.ReplacingEntry(group))
    base = worlds_box(low, high, shape)
    for direction in DIRECTIONS:
        best = 0.0
        for chosen in itertools.combinations(range(shape), group):
            best = max(best, sum((high - low) * abs(direction[i]) for i in chosen))
        assert reach(parts, direction) == pytest.approx(best)
    assert len(base) == 2**shape


def test_adding_or_removing_an_entry_compares_with_zero():
    (part,) = sets([block("[-1, 2]^6")], nb.ReplacingEntry(adding=True))
    assert isinstance(part, Vectors)
    assert set(part.matrix.data) == {2.0}


def test_a_record_of_several_entries_is_a_box():
    (part,) = sets([block("[0, 3]^(2, 3)")], nb.ReplacingRecord())
    assert isinstance(part, Boxes)
    assert [list(b) for b in part.blocks] == [[0, 1, 2], [3, 4, 5]]
    assert set(part.reach) == {3.0}


def test_everything_of_a_box():
    (part,) = sets([block("[0, 3]^6")], nb.ReplacingEverything())
    assert isinstance(part, Boxes)
    assert [len(b) for b in part.blocks] == [6]


def test_balls():
    ball = block("l2_ball(1/2, 3)^2")
    ((part, cover),) = covered([ball], nb.ReplacingRecord())
    assert isinstance(part, Balls)
    assert (part.radius, len(part.blocks), cover) == (1, 2, 1)
    (part,) = sets([ball], nb.ReplacingRecord(adding=True))
    assert part.radius == Fraction(1, 2)
    (part,) = sets([ball], nb.ReplacingEntry())
    assert isinstance(part, Vectors)
    (part,) = sets([block("l1_ball(1, 3)^2")], nb.ReplacingRecord())
    assert isinstance(part, Vectors)
    assert set(part.matrix.data) == {2.0}


def test_all_balls_of_one_person_are_covered():
    both = block("l2_ball(1, 3)^2", "parties: voter in 1..1", "[voter]")
    ((part, cover),) = covered([both], nb.ReplacingVoter(party="voter"))
    assert isinstance(part, Balls)
    assert cover > 1
    rng = np.random.default_rng(2)
    for _ in range(100):
        moves = [v / np.linalg.norm(v) * 2 for v in rng.normal(size=(2, 3))]
        assert np.linalg.norm(np.concatenate(moves)) <= float(part.radius) + 1e-12


@pytest.mark.parametrize("group", [1, 2])
def test_tables(group):
    table = block("table(a in 0..2, b in {F, M})", question="histogram(x)")
    adding = sets([table], nb.ReplacingRecord(group, adding=True))
    moving = sets([table], nb.ReplacingRecord(group))
    unit = np.eye(6)
    for direction in DIRECTIONS:
        steps = [s * unit[i] for i in range(6) for s in (1, -1)]
        sums = [sum(some) @ direction for some in itertools.combinations_with_replacement(steps, group)]
        assert reach(adding, direction) == pytest.approx(max(sums))
        swaps = [unit[i] - unit[j] for i in range(6) for j in range(6)]
        sums = [sum(some) @ direction for some in itertools.combinations_with_replacement(swaps, group)]
        assert reach(moving, direction) == pytest.approx(max(sums))


def test_groups_that_are_too_many_are_bounded():
    wide = block("[0, 1]^200")
    ((part, cover),) = covered([wide], nb.ReplacingEntry(4))
    assert isinstance(part, Vectors)
    assert cover > 1
    assert set(part.matrix.data) == {4.0}


def test_no_bounds_no_differences():
    with pytest.raises(nb.UnboundedError, match="no bounds"):
        sets([block("real^3")], nb.ReplacingEntry())
    with pytest.raises(nb.UnboundedError, match="any number of records"):
        sets([block("table(a in 0..2)")], nb.ReplacingEverything())


def test_several_inputs():
    text = specs.MEASURES
    model = specs.load(text)
    both = [model.block("x"), model.block("V")]
    (part,) = sets(both, nb.ReplacingEverything())
    assert isinstance(part, Boxes)
    assert [float(r) for r in part.reach] == [1.0] * 8 + [2.0] * 12
    parts = sets(both, nb.ReplacingRecord())
    assert len(parts) == 2
    parts = sets(both, model.requirements[10].neighbours)
    assert [type(p) for p in parts] == [Vectors, Boxes]
    assert [len(b) for b in parts[1].blocks] == [4, 4, 4]


@pytest.mark.parametrize(
    ("relation", "words"),
    [
        (nb.ReplacingEntry(), "replacing one entry"),
        (nb.ReplacingEntry(3), "replacing up to 3 entries"),
        (nb.ReplacingRecord(adding=True), "adding or removing one record"),
        (nb.ReplacingVoter(1, "voter"), "replacing one voter"),
        (nb.ReplacingVoter(2, "city", adding=True), "adding or removing up to 2 cities"),
        (nb.ReplacingEverything(), "replacing everything"),
    ],
)
def test_words(relation, words):
    assert relation.describe() == words
