"""What `elaborate` makes of a spec is what the spec means: over thousands of tiny specs, exactly."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

from privspec.core.diagnostics import SpecError
from privspec.core.spans import Source
from privspec.kernel.changes import COUNTED
from privspec.kernel.core.linear import Difference, Matrix, Part
from privspec.kernel.core.numbers import fraction
from privspec.kernel.core.reading import Grid
from privspec.kernel.core.tables import Compared
from privspec.kernel.systems import System
from privspec.kernel.tables_forms import Amount, Variation
from privspec.kernel.voting import Vote
from privspec.language import syntax
from privspec.language.walk import every
from privspec.model.build import load_model
from privspec.problem import linear_affine
from privspec.problem.elaborate import Problem, elaborate
from privspec.problem.linear import Linear
from privspec.problem.table_forms import Table

from . import specs
from .meaning import ZERO, Law, Meaning, World, flat, gathered, shaped, variation

WORLDS = 100
Rows = list[list[Fraction]]


def agree(text: str) -> None:
    """A spec that is accepted and small means what its problem says."""
    meaning = Meaning(text)
    assume(len(meaning.worlds("adding" in text)) <= WORLDS)
    try:
        problem = elaborate(load_model(Source("spec.priv", text)))
    except SpecError:
        reject()
    for line, obligation in zip(meaning.spec.privacy, problem.obligations, strict=True):
        assert set(obligation.seen) == meaning.seen(line)
        assert obligation.outputs == meaning.names(line.subjects)
        assert obligation.wrt == meaning.names(line.wrt) or not set(meaning.names(line.wrt)) <= {*meaning.inputs}
    (block,) = problem.blocks
    if isinstance(block, System):
        reject()  # its parts are problems of specs of their own
    {Table: table, Linear: linear, Vote: votes}[type(block)](meaning, problem, block)


@pytest.mark.parametrize("kind", [specs.finite, specs.linear, specs.votes, specs.modelled])
@pytest.mark.parametrize("count", [20, pytest.param(3000, marks=pytest.mark.slow)])
def test_specs_mean_what_problems_say(kind: Callable[[random.Random], str], count: int) -> None:
    settings(max_examples=count)(given(st.randoms(use_true_random=False).map(kind))(agree))()


@pytest.mark.parametrize("count", [20, pytest.param(3000, marks=pytest.mark.slow)])
def test_specs_mean_the_same_in_classes(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Where units that count alike are added up, however few there are."""
    monkeypatch.setattr(linear_affine, "FROM", 2)
    settings(max_examples=count)(given(st.randoms(use_true_random=False).map(specs.linear))(agree))()


def table(meaning: Meaning, problem: Problem, block: Table) -> None:
    """Rows compared, prior, loss and lines of a table are those of the worlds behind its rows."""
    numbers = {plain(label): number for number, label in enumerate(block.rows)}
    worlds = [(world, numbers[row_of(meaning, block, world)]) for world in meaning.worlds()]
    assert {row for _, row in worlds} == set(range(len(block.rows)))
    dice, width = random.Random(len(worlds)), len(block.columns)
    raw = [[dice.choice((0, 1, 2, 5)) + (c == r % width) for c in range(width)] for r in range(len(block.rows))]
    drawn = [[Fraction(entry, sum(row)) for entry in row] for row in raw]
    places = dict(zip(block.outputs, block.places, strict=True))
    values = {name: meaning.values(meaning.variables[name].domain) for name in meaning.outputs}
    columns = [tuple(values[name][places[name][c]] for name in meaning.outputs) for c in range(width)]
    laws = {tuple(world.values()): gathered(columns, drawn[row]) for world, row in worlds}

    def law(world: World) -> Law:
        return laws[tuple(world.values())]

    if block.prior is not None:
        prior = gathered([row for _, row in worlds], [meaning.chance(world) for world, _ in worlds])
        assert prior == dict(enumerate(block.prior.values()))
    assert amount(block, block.loss, drawn) == meaning.loss(law)
    for line, compared in zip(meaning.spec.privacy, block.compared, strict=True):
        if any(isinstance(clause, syntax.GivenTheModel) for clause in line.clauses):
            given_the_model(meaning, line, compared, worlds)
            continue
        expected: dict[tuple[int, int], Fraction] = {}
        for a, b, square in meaning.compared(line):
            pair = numbers[row_of(meaning, block, a)], numbers[row_of(meaning, block, b)]
            if pair[0] != pair[1]:
                expected[pair] = min(expected.get(pair, square), square)
        found = {(a, b): Fraction(1) for clique in compared.cliques for a in clique for b in clique if a != b}
        for a, b, level in triples(compared.pairs):
            found[a, b] = found[b, a] = compared.squares[level]
        assert found == expected, line
    conditions = [line for line in meaning.spec.background if any(every(line.left, syntax.Over))]
    for line, condition in zip(conditions, block.conditions, strict=True):
        if condition.joint is not None:
            flat_law = [p for row in drawn for p in row]
            sums = [sum(a * p for a, p in zip(row, flat_law, strict=True)) for row in condition.joint.rows]
            pairs = zip(sums, condition.constant.values(), strict=True)
            sign = -1 if line.op == ">=" else 1
            totals = [sign * (total * condition.joint.unit + constant) for total, constant in pairs]
            assert sorted(totals) == sorted(meaning.averages(line, law))
            continue
        said = plus(by_row(condition.average, (), drawn), condition.constant.values())
        assert condition.equality == (line.op == "=")
        for world, row in worlds:
            means = (meaning.mean(side, world, law(world)) for side in (line.left.body, line.right))
            assert abs(operator.sub(*means)) == abs(said[row])
    for line, target in zip(meaning.spec.accuracy, block.accuracy, strict=True):
        excess = meaning.loss(law, line.left) - meaning.value(line.right, {})
        assert amount(block, target.amount, drawn) - target.limit == excess
    for i, fair in enumerate(meaning.spec.fairness):
        assert unfairness(block, i, drawn) == meaning.unfairness(fair, law), fair


def given_the_model(
    meaning: Meaning, line: syntax.Requirement, compared: Compared, worlds: list[tuple[World, int]]
) -> None:
    """Laws of rows, given any two values of positive probability of what a line hides, are what is compared."""
    expected: set[tuple[Any, Any]] = set()
    for hidden in meaning.hidden(line):
        laws: dict[Any, dict[int, Fraction]] = {}
        for world, row in worlds:
            law, chance = laws.setdefault(hidden(world), {}), meaning.chance(world)
            law.update({row: law.get(row, ZERO) + chance} if chance else {})
        listed = [{row: p / sum(law.values()) for row, p in law.items()} for law in laws.values() if law]
        frozen = [tuple(sorted(law.items())) for law in listed]
        expected |= {(a, b) for a in frozen for b in frozen if a != b}
    found = [tuple(sorted(one.items())) for one in compared.mixtures(len(worlds))]
    assert {(found[a], found[b]) for some in compared.cliques for a in some for b in some if a != b} == expected


def plain(value: Any) -> Any:
    """A value, or its label, so that the two can be compared however numbers are spelled."""
    if isinstance(value, list | tuple):
        return tuple(plain(part) for part in value)
    try:
        return Fraction(value)
    except ValueError:
        return value


def row_of(meaning: Meaning, block: Table, world: World) -> Any:
    parts = []
    for name in block.of:
        value, domain = meaning.named(name, world), meaning.variables[name].domain
        if name in block.counted:
            one = domain.base if isinstance(domain, syntax.Power) and not meaning.party(name) else domain
            value = tuple(value.count(each) for each in meaning.values(one))
        parts.append(value)
    return plain(parts[0] if len(parts) == 1 else parts)


def triples(numbers: Grid) -> list[tuple[int, int, int]]:
    entries = [int(entry) for entry in numbers.values()]
    return [*zip(entries[::3], entries[1::3], entries[2::3], strict=True)]


def rows_of(numbers: Grid, count: int) -> Rows:
    entries = numbers.values()
    width = len(entries) // count
    return [entries[i * width : (i + 1) * width] for i in range(count)]


def amount(block: Table, found: Amount, drawn: Rows) -> Fraction:
    """What an amount of a problem comes to."""
    prior = block.prior.values() if block.prior is not None else []
    total = sum((w.weight * max(by_row(w.costs, w.variations, drawn)) for w in found.worst), found.constant)
    return total + sum(map(operator.mul, prior, by_row(found.average, found.variations, drawn)), ZERO)


def by_row(costs: Grid | None, far: Sequence[Variation], drawn: Rows) -> list[Fraction]:
    pairs = zip(rows_of(costs, len(drawn)), drawn, strict=True) if costs else [([], [])] * len(drawn)
    means = [sum(map(operator.mul, *pair), ZERO) for pair in pairs]
    return [sum(each, ZERO) for each in zip(means, *(variations(one, drawn) for one in far), strict=True)]


def variations(one: Variation, drawn: Rows) -> list[Fraction]:
    each = zip((law.values() for law in one.laws), drawn, strict=True)
    return [one.weight * variation(gathered(one.values, law), dict(enumerate(other))) for other, law in each]


def unfairness(block: Table, number: int, drawn: Rows) -> Fraction:
    """By how much a problem says that a line of fairness is broken, squared."""
    line = block.fairness[number]
    prior = block.prior.values() if block.prior is not None else [Fraction(1)] * len(drawn)
    seen = list(zip(*(block.places[block.outputs.index(name)] for name in line.outputs), strict=True))
    laws = []
    for group in line.groups:
        shares = [prior[r] if len(group) > 1 else Fraction(1) for r in group]
        mixed = [sum((w * drawn[r][c] for w, r in zip(shares, group, strict=True)), ZERO) for c in range(len(seen))]
        laws.append(gathered(seen, [p / sum(shares) for p in mixed]))
    gaps = (variation(laws[a], laws[b]) ** 2 - line.squares[level] for a, b, level in triples(line.pairs))
    return max((ZERO, *gaps))


def linear(meaning: Meaning, problem: Problem, block: Linear) -> None:
    """What one unit can change, what each answer is and what errors cost are those of the worlds."""
    size = block.held[-1].stop
    for line, differences in zip(meaning.spec.privacy, block.differences, strict=True):
        pairs = meaning.compared(line)
        changes = {tuple(plus(base(meaning, block, a), base(meaning, block, b), -1)) for a, b, _ in pairs}
        for change in changes:
            assert any(holds(difference, change) for difference in differences), (line, change)
        for difference in differences:
            if difference.cover is None:
                # what a bound rests on: nothing that no two worlds differ by
                assert extreme(difference, size) <= changes, (line, difference)
    outputs = {one.name: one for one in block.released}

    def cost(world: World, values: Sequence[Fraction]) -> Fraction:
        parts = (outputs[name] for name in meaning.outputs)
        law = {tuple(shaped(values[one.start : one.stop], one.shape) for one in parts): Fraction(1)}
        return meaning.loss(lambda _: law, only=world)

    for world in meaning.worlds()[:12]:
        aims = plus(times(block.target, added_up(block, base(meaning, block, world))), block.offset)
        for error in (*eye(len(aims)), [Fraction(i) for i in range(len(aims))]):
            moved = error if block.errors.rows is None else times(block.errors.rows, error)
            terms = zip(block.errors.weights, moved, strict=True)
            assert cost(world, plus(aims, error)) == sum((w * r**2 for w, r in terms), ZERO)
        for name, reached, _ in block.sites or ():
            true = meaning.named(name, world)
            for noise in eye(len(flat(true))):
                noisy = {**world, name: shaped(plus(flat(true), noise), extents(true))}
                assert cost(noisy, plus(aims, times(reached, noise))) == 0


def extents(value: Any) -> tuple[int, ...]:
    return (len(value), *extents(value[0])) if isinstance(value, tuple) else ()


def plus(a: Sequence[Fraction], b: Sequence[Fraction], sign: int = 1) -> list[Fraction]:
    return [x + sign * y for x, y in zip(a, b, strict=True)]


def eye(size: int) -> list[list[Fraction]]:
    return [[Fraction(i == j) for j in range(size)] for i in range(size)]


def base(meaning: Meaning, block: Linear, world: World) -> list[Fraction]:
    found: list[Fraction] = []
    for held in block.held:
        columns, read = meaning.columns(meaning.variables[held.name].domain), [one.name for one in held.columns]
        if held.cells and not columns:
            values = meaning.values(meaning.variables[held.name].domain)
            found += [Fraction(world[held.name].count(value)) for value in values]
            continue
        if not columns:
            found += flat(meaning.named(held.name, world))
            continue
        cells = product(*(meaning.listed(held.name, name) for name in read))
        rows = [tuple(meaning.column(held.name, name, record) for name in read) for record in world[held.name]]
        found += [Fraction(rows.count(cell)) for cell in cells]
    return found


def times(matrix: Matrix, vector: Sequence[Fraction]) -> list[Fraction]:
    return [sum(map(operator.mul, map(fraction, row), vector), ZERO) for row in matrix.tolist()]


def added_up(block: Linear, vector: Sequence[Fraction]) -> list[Fraction]:
    """The sums of the units of each class."""
    found: list[Fraction] = []
    entries = iter(vector)
    for held in block.held:
        units = held.units
        if units is None:
            found += [next(entries) for _ in range(held.start, held.stop)]
            continue
        sums: dict[int, list[Fraction]] = {}
        for count, kind in zip(units.counts, units.classes, strict=True):
            for _ in range(count):
                unit = [next(entries) for _ in range(units.length)]
                sums[kind] = plus(sums.get(kind, [ZERO] * units.length), unit)
        found += [entry for kind in sorted(sums) for entry in sums[kind]]
    assert not list(entries)
    return found


def units_of(difference: Difference) -> list[list[tuple[Part, range]]]:
    runs = ([(p, range(i, i + p.length)) for i in range(p.start, p.stop, p.length)] for p in difference.parts)
    return [list(unit) for unit in zip(*runs, strict=True)]


def holds(difference: Difference, change: Sequence[Fraction]) -> bool:
    changed = {i for i, entry in enumerate(change) if entry}
    if all(part.shape in COUNTED for part in difference.parts):
        places = {i for part in difference.parts for i in range(part.start, part.stop)}
        return changed <= places and all(counted(part, change) for part in difference.parts)
    units = [unit for unit in units_of(difference) if changed & {i for _, run in unit for i in run}]
    inside = changed <= {i for unit in units for _, run in unit for i in run} and len(units) <= difference.count
    # all that a unit holds comes, or all of it goes
    return inside and all(any(all(fits(part, change, run, s) for part, run in unit) for s in (1, -1)) for unit in units)


def counted(part: Part, change: Sequence[Fraction]) -> bool:
    own = change[part.start : part.stop]
    moving = part.shape in ("swap", "replaced")
    return sum(map(abs, own)) <= (1 + moving) * part.amount and not (moving and sum(own))


def fits(part: Part, change: Sequence[Fraction], run: range, sign: int) -> bool:
    middle = sign * (part.middle or ZERO)
    vectors = [[abs(change[i + j] - middle) for j in range(part.dimension)] for i in run[:: part.dimension]]
    if part.shape == "l2":
        return all(sum(entry**2 for entry in vector) <= part.amount**2 for vector in vectors)
    return all((max if part.shape == "box" else sum)(vector) <= part.amount for vector in vectors)


def extreme(difference: Difference, size: int) -> set[tuple[Fraction, ...]]:
    """Differences of a set that no others of it lie around; of balls only those along an axis."""
    if all(part.shape in COUNTED for part in difference.parts):
        each = product(*map(records, difference.parts))
        ways = [{i: x for piece in some for i, x in piece.items()} for some in each]
    else:
        ways = []
        for chosen in combinations(units_of(difference), difference.count):
            for signs in product((1, -1), repeat=len(chosen)):
                each = [(part, run, sign) for unit, sign in zip(chosen, signs, strict=True) for part, run in unit]
                pieces = product(*(vertices(*one) for one in each))
                ways += [{i: x for piece in some for i, x in piece.items()} for some in pieces]
    return {tuple(way.get(i, ZERO) for i in range(size)) for way in ways}


def records(part: Part) -> list[dict[int, Fraction]]:
    cells, k = range(part.start, part.stop), part.amount
    if part.shape in ("swap", "replaced"):
        return [{b: k, a: -k} for a in cells for b in cells if a != b]
    return [{a: k} for a in cells]


def vertices(part: Part, run: range, way: int) -> list[dict[int, Fraction]]:
    vectors, middle = [run[i : i + part.dimension] for i in range(0, len(run), part.dimension)], part.middle or ZERO
    along = [[{i: way * middle + sign * part.amount} for i in vector for sign in (1, -1)] for vector in vectors]
    return [{i: x for one in some for i, x in one.items()} for some in product(*along)]


def votes(meaning: Meaning, problem: Problem, block: Vote) -> None:
    """Ballots give their points, one unit changes sums of points, and a law of the winner costs what it should."""
    rule = "borda_lottery" if block.ballots.borda else "random_dictator"
    ballots = meaning.values(meaning.variables[block.source].domain)
    points = {vote: tuple(meaning.points(rule, block.source, vote).values()) for vote in ballots}
    none = points[None] = (ZERO,) * len(block.ballots.alternatives)
    assert set(block.ballots.kinds()) == set(points.values()) - {none}
    moves = {tuple(sign * x for x in kind) for kind in block.ballots.kinds() for sign in (1, -1)}
    for line, obligation in zip(meaning.spec.privacy, problem.obligations, strict=True):
        changes = {tuple(plus(total(points, a), total(points, b), -1)) for a, b, _ in meaning.compared(line)}
        (unit,) = obligation.units
        assert unit.adding and block.secret
        twice = {tuple(plus(a, b)) for a in moves for b in moves}
        assert changes == (moves if unit.count == 1 else moves | twice)
    if block.law is not None:
        shares = [meaning.likelihood(meaning.spec.background[1], {block.source: (vote,)}) for vote in ballots]
        assert gathered(*zip(*block.law, strict=True)) == gathered([points[vote] for vote in ballots], shares)
    for world in meaning.worlds():
        law = [Fraction(i + 1, 2**i + 5) for i in range(1, len(block.ballots.alternatives))]
        law = [1 - sum(law), *law]
        parts = [cost for term in block.loss.terms for cost in term.parts]
        costs = [cost.at(law, total(points, world)) for cost in parts]
        drawn = {(a,): p for a, p in zip(block.ballots.alternatives, law, strict=True)}
        assert meaning.loss(lambda _, drawn=drawn: drawn, only=world) == sum(costs, block.loss.offset)


def total(points: dict[Any, tuple[Fraction, ...]], world: World) -> tuple[Fraction, ...]:
    (cast,) = world.values()
    return tuple(sum(column) for column in zip(*(points[vote] for vote in cast), strict=True))
