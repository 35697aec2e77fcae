"""Additive noise on linear answers: the problem, and the mechanism that is executed, as they are read.

z = B u + noise is drawn for the base vector u, in which every input stands on its grid; what is released is
R z + offset, or T (R z) + offset where R gives estimates of u, rounded to a grid. All matrices are exact.
"""

from __future__ import annotations

from dataclasses import field, fields, replace
from fractions import Fraction
from math import prod
from typing import Any, TypeVar, cast

from flint import fmpq, fmpq_mat

from privspec.kernel.changes import COUNTED, PERSON
from privspec.kernel.core.problem import Frame, Mechanism, Obligation, View, of_person, wrong_person
from privspec.kernel.core.reading import (
    ENTRIES,
    Grid,
    JsonNode,
    Positive,
    Refused,
    Size,
    Whole,
    Wholes,
    frozen,
    read,
    typed,
    wholes,
)
from privspec.kernel.laws.law import Law, law_of
from privspec.kernel.rows import Rows, intervals, matrix_of

BITS = 16
"""Binary digits of a unit of the largest array; smaller ones may be finer."""

Matrix = fmpq_mat
ABSENT = JsonNode(None, "mechanism")


@frozen
class Ball:
    """Every `dimension` numbers in turn are a vector of norm `norm` (1 or 2) at most `radius`."""

    radius: Size
    dimension: Positive
    norm: Norm


Norm = int


@frozen
class ExchangeableUnits:
    """Units of an input, `length` numbers each: `counts[i]` in turn are of class `classes[i]`, numbered as they appear.

    What is released depends on the units of a class through their sum alone, whose numbers are coordinates.
    """

    length: Positive
    counts: Wholes
    classes: Wholes

    def __post_init__(self) -> None:
        first = list(dict.fromkeys(self.classes))
        if len(self.counts) != len(self.classes) or min(self.counts, default=0) < 1 or first != list(range(len(first))):
            raise Refused("does not put every unit into one class, in order")

    @property
    def copies(self) -> list[int]:
        """How many units each class has."""
        found = [0] * (max(self.classes) + 1)
        for count, own in zip(self.counts, self.classes, strict=True):
            found[own] += count
        return found

    @property
    def numbers(self) -> list[int]:
        """How many numbers each coordinate adds up."""
        return [copies for copies in self.copies for _ in range(self.length)]


Places = dict[int, tuple[int, ExchangeableUnits]]
"""By the start of an input in the base vector: its first coordinate, and which units are added up."""


def read_matrix(item: JsonNode, *shape: int) -> Matrix:
    """A matrix, of a known shape or any: all entries, or the ascending row-major places of some and their values."""
    rows, columns = shape or item.extents(2)
    if rows * columns > ENTRIES:
        raise item.wrong("is too large")
    whole = _sparse(item, rows, columns) if "form" in dict(item.entries()) else item.array(rows, columns)
    if rows * columns * whole.unit.denominator.bit_length() > BITS * ENTRIES:
        raise item.wrong("has a unit that is too fine for its size")
    return matrix_of(whole)


def _sparse(item: JsonNode, rows: int, columns: int) -> Grid:
    """The entries of a matrix that is 0 but at some places."""
    places, values = item.stating({"form": "sparse", "shape": [rows, columns]}, "places", "values")
    at, flat = wholes(places), [0] * (rows * columns)
    if any(a >= b for a, b in zip((-1, *at), (*at, rows * columns), strict=True)):
        raise places.wrong("are not places in order")
    found = values.array(len(at))
    for place, value in zip(at, found.entries, strict=True):
        flat[place] = value
    return Grid((rows, columns), found.unit, tuple(flat))


@frozen
class Column:
    """An attribute of a table with its values in order: `values`, or the whole numbers `lower` to `upper`.

    `shared`: the numbers between two values, a record standing in the cells of both by its share of each. `cuts`, as in
    "< 18": of whole numbers, or of numbers between two values, there is a cell for those before each and one more.
    """

    name: str
    values: tuple[str, ...]
    lower: Whole | None
    upper: Whole | None
    cuts: tuple[str, ...]
    shared: bool

    @property
    def size(self) -> int:
        """How many cells it has."""
        if self.cuts:
            return len(self.cuts) + 1
        return len(self.values) if self.lower is None or self.upper is None else self.upper - self.lower + 1


@frozen
class InputLayout:
    """The coordinates `start` to `stop` of the base vector: the entries of an input, or the counts of a table's cells.

    `layout`: "entries" (row-major, `shape` of the whole) or "cells" (of `columns`, the last fastest; `records` in all
    where that is public). Entries are clipped to `lower` and `upper` where they have ends, vectors drawn into `ball`.
    A number between ends is placed on shares of their distance, a vector of a ball on shares of its radius. `units`:
    those of a class have one coordinate for each of their numbers, together. `step`: what entries are whole multiples
    of, beyond `lower`; `gaps`: not all of these are values.
    """

    name: str
    start: int
    stop: int
    layout: str
    shape: tuple[int, ...]
    lower: Fraction | None
    upper: Fraction | None
    ball: Ball | None
    columns: tuple[Column, ...]
    records: int | None
    units: ExchangeableUnits | None
    step: Size | None = None
    gaps: bool | None = None

    def __post_init__(self) -> None:
        ends = self.lower is not None and self.upper is not None and not self.cells and not self.ball
        if self.step is not None and (not ends or not self.step or self.width % self.step):
            raise Refused("has values in steps that do not reach from one end to the other")

    @property
    def cells(self) -> bool:
        return self.layout == "cells"

    @property
    def width(self) -> Fraction:
        """What a share of the grid is taken of: the radius, the distance of the ends, or one."""
        if self.ball:
            return self.ball.radius
        return Fraction(1) if self.lower is None or self.upper is None else self.upper - self.lower


@frozen
class Part:
    """In runs of `length` coordinates from `start` to `stop`, one a unit, a unit moves numbers or vectors.

    `shape` "box": each coordinate by at most `amount`; "l1", "l2": every `dimension` coordinates in turn by a vector
    of that norm at most `amount`; "cell", "swap" (records of a table): one of its coordinates up or down, or another
    down by as much; "kept", "replaced" (one person's): `amount` records in all, at most `most` in one cell, of which
    each coordinate is an end (`cells`; None: of one of its own). `middle`: all numbers of a unit, in all parts, move
    besides by their middles at once, up or down: those of a box are within `amount` of it, if the unit is there.
    """

    start: int
    stop: int
    length: Positive
    shape: str
    dimension: Positive
    amount: Size
    most: Positive | None = None
    cells: tuple[int, ...] | None = None
    middle: Fraction | None = None

    def __post_init__(self) -> None:
        if (self.stop - self.start) % self.length or self.length % self.dimension:
            raise Refused("is not made of whole runs")
        wrong = self.cells is not None and (self.shape not in PERSON or len(self.cells) != self.length)
        if wrong or (self.middle is not None and self.shape != "box"):
            raise Refused("has cells, or a middle, of what has none")


@frozen
class Difference:
    """Up to `count` units change at once, in all `parts`, at least or `exactly` `apart`; parts have as many runs.

    `cover`: amounts are up to so many times what neighbours surely have, which bounds are about; 0: nothing is known of
    that. Without it every difference is one of neighbours, or between theirs.
    """

    parts: tuple[Part, ...]
    count: Positive
    apart: Positive | None = None
    exactly: bool | None = None
    cover: Size | None = None

    def surely(self) -> Difference:
        """What neighbours surely have of it."""
        if self.cover is None:
            return self
        if self.cover < 1:
            raise Refused("rests on differences that no neighbours may have")
        return replace(
            self, parts=tuple(replace(one, amount=one.amount / self.cover) for one in self.parts), cover=None
        )


@frozen
class InputLaw:
    """Of each number of an input its mean and variance, all independent; or where each record of a table lies."""

    mean: Fraction
    variance: Size
    chances: Numbers | None = None

    def __post_init__(self) -> None:
        if self.chances is not None and (min(self.chances, default=-1) < 0 or sum(self.chances) != 1):
            raise Refused("has chances of cells that do not add up to one")


@frozen
class Released:
    """The numbers `start` to `stop` of what is released; `defined`: they estimate what their definition says."""

    name: str
    start: int
    stop: int
    shape: tuple[int, ...]
    defined: bool


@frozen
class Measured:
    """Error terms, rows of coefficients of the outputs, and the weights of their squares, or of their `sizes`.

    No rows stand for those of the identity: each output's own error.
    """

    rows: Matrix | None
    weights: Numbers
    sizes: bool | None = None

    def __post_init__(self) -> None:
        terms = len(self.weights) if self.rows is None else self.rows.nrows()
        if len(self.weights) != terms or not all(one.numerator > 0 for one in self.weights):
            raise Refused("has weights that are not positive, or not one for each term")

    def of(self, outputs: Rows) -> Rows:
        """The terms of what moves the outputs."""
        return outputs if self.rows is None else self.rows * outputs


@frozen
class LinearLayout:
    """What privacy rests on of a block: who holds which coordinates, what is released, and what neighbours differ in.

    `vectors`: a coordinate, an answer, an error stands for so many numbers, on each of which all maps act alike.
    """

    FORM = "linear"

    held: tuple[InputLayout, ...]
    released: tuple[Released, ...]
    differences: tuple[tuple[Difference, ...], ...]
    families: tuple[str, ...]
    vectors: Positive | None = field(default=None, kw_only=True)
    places: Places = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for row in (self.held, self.released):
            if [one.start for one in row] != [0, *(one.stop for one in row)][: len(row)] or not row:
                raise Refused("does not put each of its parts where the one before ends, or has none")
        if len({one.name for one in self.released}) < len(self.released):
            raise Refused("names an output twice")
        at = 0
        for held in self.held:
            one = held.units or ExchangeableUnits(held.stop - held.start, (1,), (0,))
            if sum(one.counts) * one.length != held.stop - held.start or (held.cells and held.units):
                raise Refused("has classes that are not of all units of an input, or of cells")
            self.places[held.start] = at, one
            at += len(one.numbers)
        if self.vectors and self._tells_apart(self.vectors):
            raise Refused(NO_VECTORS)

    def _tells_apart(self, dimension: int) -> bool:
        """Whether an input or an output is not made of vectors of so many numbers."""
        for one in self.held:
            ball = None if one.units else one.ball
            size = (one.stop - one.start) * dimension
            if ball is None or (ball.dimension, ball.norm) != (dimension, 2) or prod(one.shape) != size:
                return True
        shapes = [one.shape for one in self.held] + [one.shape for one in self.released]
        return dimension == 1 or any(shape[-1:] != (dimension,) for shape in shapes)

    @property
    def size(self) -> int:
        return self.released[-1].stop

    @property
    def inputs(self) -> int:
        return sum(len(one.numbers) for _, one in self.places.values())

    def rows_of(self, names: tuple[str, ...]) -> list[int]:
        return [i for one in self.released if one.name in names for i in range(one.start, one.stop)]

    def surely(self, line: int) -> tuple[Difference, ...]:
        """The differences of a line that bounds may rest on; refused where none are known."""
        return tuple(one.surely() for one in self.differences[line])

    def moved(self, item: JsonNode, frame: Frame, line: Obligation | View) -> tuple[Difference, ...]:
        """What one unit can change in some inputs, where no line says so."""
        found: Any = typed("tuple[Difference, ...]", item, __name__)
        self.check(item, found, frame, line)
        return tuple(found)

    def check(self, item: JsonNode, some: tuple[Difference, ...], frame: Frame, line: Obligation | View) -> None:
        """Differences change inputs of their line, each as a whole; records are dropped only where they come and go."""
        held = [(one, data) for one, data in zip(self.held, frame.data, strict=True) if one.name in line.wrt]
        for one in some:
            shapes = {(part.start, part.stop): part.shape for part in one.parts}
            moved = [(own, data.rule, shape) for own, data in held if (shape := shapes.get((own.start, own.stop)))]
            if not moved or len(moved) != len(one.parts) or any(s in COUNTED and not own.cells for own, _, s in moved):
                raise item.wrong("does not change inputs of its line, each of them as a whole")
            if self.vectors and any((part.shape, part.dimension) != ("l2", 1) for part in one.parts):
                raise item.wrong("changes single numbers of vectors")
            if any(rule == "drop" and shape not in ("cell", "kept") for _, rule, shape in moved):
                raise item.wrong("replaces records of a table whose rule leaves records out")
        if any(data.kept for _, data in held) or any(unit.kind == "person" for unit in line.units):
            _check_person(item, some, held, line)


def _check_person(item: JsonNode, some: tuple[Difference, ...], held: list[Any], line: Obligation | View) -> None:
    """What one person changes follows from what is kept of their records; bounds look at whether it surely does."""
    if wrong := wrong_person(line.units, [data.kept for _, data in held]):
        raise item.wrong(wrong)
    kept = [(own.start, own.stop, data.kept, first_cells(own.columns)) for own, data in held if data.kept]
    if [replace(one, cover=None) for one in some] != [
        Difference(tuple(Part(*part) for part in parts), 1) for parts in of_person(kept, adding=line.units[0].adding)
    ]:
        raise item.wrong("is not what a person of whom so many records are kept can change")


NO_VECTORS = "is of a shape that does not fit, or tells the numbers of its vectors apart"


@frozen
class Linear(LinearLayout):
    """The block of a problem: see `privspec.problem.linear`.

    Of vectors the weight of an error is that of the mean of its squares. `biased`: averages may be off, and the loss is
    that at the worst data, or on average over the `law` of each input.
    """

    target: Rows
    offset: Numbers
    constants: tuple[Given, ...]
    errors: Measured
    worst: bool
    loss: str
    accuracy: tuple[Limit, ...]
    sites: tuple[Site, ...] | None
    biased: bool | None = None
    law: tuple[InputLaw, ...] | None = None

    def __post_init__(self) -> None:
        LinearLayout.__post_init__(self)
        measured = [self.errors, *(errors for errors, *_ in self.accuracy)]
        terms = {len(one.weights) if one.rows is None else one.rows.ncols() for one in measured}
        maps = [(self.target, self.inputs), *((one, prod(shape)) for _, shape, one in self.constants)]
        maps += [(one, len(copies) * (min(copies, default=1) > 0)) for _, one, copies in self.sites or ()]
        fits = all((one.nrows(), one.ncols()) == (self.size, width) for one, width in maps)
        if not fits or len(self.offset) != self.size or terms != {self.size}:
            raise Refused("has arrays that are not of the size of its inputs and outputs")
        if self.law is not None and (not self.biased or len(self.law) != len(self.held)):
            raise Refused("has a law of the data that nothing is about, or not one of each input")
        more = self.constants, self.accuracy, self.sites, self.worst, self.errors.sizes, any(self.offset)
        sizes = [(prod(one.shape), (one.stop - one.start) * (self.vectors or 1)) for one in self.released]
        if any(size != whole for size, whole in sizes) or (self.vectors and any(more)):
            raise Refused(NO_VECTORS)


def first_cells(columns: tuple[Column, ...]) -> Wholes:
    """For each cell of a table the first that a record in it may have a share in: where it is between two values."""
    found = [0]
    for column in columns:
        size = column.size
        found = [first * size + (0 if column.shared else i) for first in found for i in range(size)]
    return tuple(found)


Given = tuple[str, tuple[int, ...], Matrix]
Limit = tuple[Measured, Fraction, int, str, Fraction | None]
Numbers = tuple[Fraction, ...]
Site = tuple[str, Matrix, Wholes]
READERS = {
    "Law": lambda item: item,  # until it is known which parties draw it
    "Matrix": read_matrix,
    "Rows": lambda item: intervals(item) or read_matrix(item),
    "Numbers": lambda item: tuple(item.array(*item.extents()).values()),
    "Norm": lambda item: item.integer(1, 2),
    "Given": {"name": "str", "shape": "tuple[Positive, ...]", "map": "Matrix"},
    "Limit": {"errors": "Measured", "bound": "Size", "line": "int", "text": "str", "probability": "Size | None"},
    "Site": {"name": "str", "map": "Matrix", "copies": "Wholes"},
}
WORDS = {"InputLayout.layout": ("entries", "cells"), "Part.shape": ("box", "l1", "l2", *COUNTED)}


Block = TypeVar("Block", bound=LinearLayout)


def read_linear(item: JsonNode, frame: Frame, kind: type[Block]) -> Block:
    """The block of a problem: its inputs are those of the frame, and every line moves those that it names.

    Args: kind, `Linear`; or its layout, and what the answers are worth is not read.
    """
    later = {one.name for one in fields(Linear)} - {one.name for one in fields(kind)}
    found, lines = read(kind, JsonNode(item.without(*later), item.place)), frame.obligations
    if [one.name for one in found.held] != [one.name for one in frame.data]:
        raise item.wrong("does not have the inputs of its problem")
    if len(found.differences) != len(lines):
        raise item.wrong(f"has {len(found.differences)} entries in place of {len(lines)} under differences")
    names = {one.name for one in found.released}
    for asked, some in zip(lines, found.differences, strict=True):
        found.check(item, some, frame, asked)
        seen = set(asked.seen)
        if not set(asked.outputs) <= seen <= names or (frame.trust.means.public and seen != names):
            raise item.wrong(f"hides, line {asked.line}, what an observer sees")
    return found


@frozen
class Release(Mechanism):
    """z = strategy u + noise, on the lattice `grid` unless `round_outputs`; then `reconstruction` of outputs or inputs.

    `steps`: the grid of each input, as a share of its width (counts: 1). `senders`: how many parties send each answer,
    of what they hold themselves and with noise of their own; z is the sum. `parties`: how many add shares of the noise.
    `shift`: public numbers that are added as well, where averages need not be what is asked for. `domination`: a
    witness of how large biases are together (worth/bias); nothing of what is executed.
    """

    GIVEN = "problem", "senders", "parties"

    problem: Linear
    steps: tuple[Fraction, ...]
    strategy: Matrix
    noise: Law
    grid: Fraction
    reconstruction: Matrix
    output_grid: Fraction
    of_inputs: bool = False
    round_outputs: bool = False
    senders: Wholes = ()
    parties: int = 1
    shift: Numbers | None = None
    domination: Numbers | None = None

    def __post_init__(self) -> None:
        problem, rows, found = self.problem, self.strategy.nrows(), self.reconstruction
        shape = problem.inputs if self.of_inputs else problem.size, rows
        if self.strategy.ncols() != problem.inputs or (found.nrows(), found.ncols()) != shape:
            raise Refused("has matrices of other inputs, answers or outputs")
        if min(self.grid, self.output_grid) <= 0 or rows < 1 or len(self.steps) != len(problem.held):
            raise Refused("has a grid that is not positive, or not one for each input, or no answers")
        for step, held in zip(self.steps, problem.held, strict=True):
            # both ends of an interval lie on the grid of an input; counts are whole
            counted = held.cells and not any(one.shared for one in held.columns)
            if step <= 0 or step.numerator != 1 or (counted and step != 1):
                raise Refused(f"has a grid of {held.name} that is not one over a whole number, or not that of counts")

    @property
    def excess(self) -> Fraction:
        """How much more shares of the noise there are than those that no coalition knows."""
        return Fraction(self.parties, self.noise.honest or self.parties)


@frozen
class Additive(Mechanism):
    """What a plan says of additive noise: its family and what is `executed`; where it enters, and how outputs move."""

    family: JsonNode
    sites: JsonNode
    executed: JsonNode
    output_covariance: JsonNode = ABSENT
    pulled: JsonNode = ABSENT


def read_release(frame: Frame, mechanism: JsonNode, kind: type[LinearLayout] = Linear) -> Release:
    """What is executed, of a family that the problem allows; where noise enters is read with what it is worth.

    Args: kind, what of the problem is read: to judge privacy alone its layout will do.
    """
    stated = read(Additive, mechanism)
    problem, trust = read_linear(frame.blocks[0], frame, kind), frame.trust.means
    law, allowed = law_of(stated.family, shared=trust.shared), set(problem.families)
    parties, honest = coalition(frame, problem) if law.in_shares else (1, 1)
    if allowed and not allowed & set(law.words):
        raise stated.family.wrong("is not a family of noise that the problem allows")
    if problem.vectors and (trust.alone or not law.spherical):
        raise stated.family.wrong("is not a mechanism for vectors whose numbers are treated alike")
    found = read(Release, stated.executed, problem=problem, parties=parties)
    asked = allowed & set(law.words)
    given = {"honest": honest, "whole": bool(asked) and asked <= set(law.in_steps)}
    noise = read(law, cast("JsonNode", found.noise), **{name: given[name] for name in law.GIVEN})
    if found.round_outputs and (found.of_inputs or trust.public or not law.spherical):
        raise stated.executed.wrong("rounds outputs, which is for Gaussian noise on outputs at a curator")
    sent = _senders(frame, found, law) if trust.alone else (1,) * found.strategy.nrows()
    return replace(found, noise=noise, senders=sent)


# --- who holds what, and adds which noise ---------------------------------------------------------------------------


def coalition(frame: Frame, problem: LinearLayout) -> tuple[int, int]:
    """How many parties of a secure sum add shares, and how many of these no coalition knows.

    In a secure sum every party adds its own share, and a coalition knows those of its members. All see the sum
    z = B u + shares and nothing else; whoever knows the shares of `colluding` parties sees B u and what the others add.
    Every B u of every party is a point of the lattice, so nothing is rounded (noise/notes/shares.md).
    """
    sets = dict[str | None, set[int]]()
    for one, own in zip(frame.data, problem.held, strict=True):
        sets.setdefault(one.party, set()).add(own.shape[0] if own.shape else 0)
    sizes = [(prod(own.shape), own.stop - own.start, own.cells) for own in problem.held]
    # a table at each party, or one of a record of each
    one_each = [own.cells and own.records == prod(own.shape) for own in problem.held]
    pairs = zip(sizes, one_each, strict=True)
    fits = all(each == size or (cells and (own or not size % each)) for (each, size, cells), own in pairs)
    # without an index set each record of the one input is a person's
    plain = all(unit.kind != "party" for line in frame.obligations for unit in line.units)
    alone = len(frame.data) == 1 and not problem.held[0].cells and not frame.data[0].asserted
    records = None not in sets or (alone and plain)
    parties = sum(max(sizes) for sizes in sets.values())
    if not fits or not records or any(len(sizes) != 1 or 0 in sizes for sizes in sets.values()):
        raise Refused("does not have the parties of a secure sum, who hold all of its inputs")
    if parties <= frame.trust.colluding:
        raise Refused("has no party that adds a share which no coalition knows")
    return parties, parties - frame.trust.colluding


Owner = tuple[str, int]
"""A party; or a class of those who count alike, and how many they are."""


def owners(frame: Frame, problem: LinearLayout) -> list[Owner]:
    """Who holds each coordinate of the matrices: a member of an index set, or else a party of one number.

    A coordinate of a class is held by each of its parties: what it sends is told for one of them. An input of which a
    line is about any value against any other (LDP) is one party's.
    """
    found, whole = list[Owner](), {name for one in frame.obligations if one.measure.of.local for name in one.wrt}
    sets = dict[str, set[ExchangeableUnits | None]]()
    for data, own in zip(frame.data, problem.held, strict=True):
        shape, size, alike = own.shape, own.stop - own.start, own.units
        count = shape[0] if data.party and shape else size
        if count < 1 or size % count or not (own.cells or prod(shape) == size):
            raise Refused("has an input that the members of its index set do not hold in equal parts")
        name = f"{data.party} " if data.party and shape else f"{data.name}, entry "
        alone, each = data.name in whole and not data.party, size // count
        sets.setdefault(name, set()).add(alike and replace(alike, length=1))
        if alike and (alone or alike.length != each or len(sets[name]) > 1):
            raise Refused("has classes that are not those of its parties")
        kinds = [(f"{name}of class {k}", n) for k, n in enumerate(alike.copies)] if alike else []
        found += [one for one in kinds for _ in range(each)]
        found += [(data.name if alone else name + str(i // each), 1) for i in range(0 if alike else size)]
    if any(len(kinds) > 1 for kinds in sets.values()):
        raise Refused("has parties who are of a class in one input, and told apart in another")
    return found


def _senders(frame: Frame, release: Release, law: type[Law]) -> Wholes:
    """How many parties send each answer, where nobody is trusted."""
    owner = owners(frame, release.problem)
    if law.joint and sum(n for _, n in set(owner)) > 1:
        raise Refused("is not a mechanism for this trust")
    return tuple(senders(owner, release.strategy.tolist()))


def senders(owner: list[Owner], rows: list[list[fmpq]]) -> list[int]:
    """How many parties send the answer of each row of coefficients, each with noise of its own.

    Raises: Refused where a row depends on what several parties hold that do not count alike.
    """
    found = [{one for one, v in zip(owner, row, strict=True) if v} for row in rows]
    if any(len(some) > 1 for some in found):
        raise Refused("sends a message that depends on the numbers of more than one party")
    return [max((n for _, n in some), default=1) for some in found]


def check_one(count: int, parts: list[tuple[int, ExchangeableUnits]]) -> None:
    """A difference is one of a single party: what a class sends is told for one of its members.

    Args: count, how many units change at once; parts, how long their runs are in inputs of these classes.
    """
    if any(max(alike.copies) > 1 and (count > 1 or length > alike.length) for length, alike in parts):
        raise Refused("changes what several parties hold, of whom one stands for all of a class")
