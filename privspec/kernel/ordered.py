"""Tables of counts with running totals or ranges along some columns: a strategy for each set of the other columns.

Columns along which some table is added up in order are `ordered`, their cells together M; all other columns split as in
`marginals`. With T a set of those, what is drawn is P_T (B_T x + N(0, 1)), x the counts by T and the ordered columns,
and tables are put together from estimates R_T of x in it (noise/notes/marginals.md, "Columns in order"):

    mu^2 = max over ordered cells m of sum_T p_T |B_T e_m|^2,      loss = sum_T tr(R_T' V_T R_T),
    V_T = sum over tables A that T is within of weight d_T / prod_(A - T) n_i  W_A' W_A,

d_T = prod_T (n_i - 1), W_A what A asks of the ordered cells. For every diagonal S and all Y_T with |V_T^(1/2) Y_T| <= 1
no Gaussian noise has a loss below (sum_T sqrt(p_T) tr(Y_T' V_T S))^2 / (mu^2 tr S^2).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import prod

from flint import arb, ctx, fmpq_mat, fmpz_mat

from privspec.kernel.allowed import largest_mu_squared
from privspec.kernel.core.case import Bound, Case, Rules
from privspec.kernel.core.linear import READERS as LINEAR
from privspec.kernel.core.linear import Matrix, dot, read_matrix, size_of
from privspec.kernel.core.numbers import ball, end, fraction, rational, sqrt_up
from privspec.kernel.core.problem import Obligation, View, read_guarantees
from privspec.kernel.core.reading import Item, Refused, read
from privspec.kernel.marginals import AMONG, PRECISION, ROUNDED, Subset, conclude, held_by, seen_unit, unit_of
from privspec.kernel.quality.stated import judge_loss

MOST_CELLS, MOST_ENTRIES = 4096, 2**24
"""Cells of the ordered columns together, and entries of all strategies."""
BIAS, COUNT = Fraction(1, 10**6), 1000
"""Share of its deviation by which the average of a number may be off, for counts up to so many in a cell."""
Ways = tuple[str, ...]
"""What a table asks of each ordered column: "all" (added up), "each", "running" or "ranges"."""


@dataclass(frozen=True, slots=True)
class Table:
    """Counts by some columns, along some of them running totals or all ranges; the last column runs fastest."""

    columns: tuple[int, ...]
    running: tuple[int, ...]
    ranges: tuple[int, ...]
    weight: Fraction


@dataclass(frozen=True, slots=True)
class Answers:
    """An output: tables, one after another."""

    name: str
    shape: tuple[int, ...]
    tables: tuple[Table, ...]


@dataclass(frozen=True, slots=True)
class Ordered:
    """The block of a problem: see `privspec.problem.ordered`."""

    FORM = "ordered"

    source: str
    columns: tuple[Column, ...]
    records: int | None
    released: tuple[Answers, ...]
    loss: str
    families: tuple[str, ...]
    sizes: tuple[int, ...] = field(init=False, default=())
    ordered: tuple[int, ...] = field(init=False, default=())
    tables: tuple[Table, ...] = field(init=False, default=())
    subsets: tuple[Subset, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        sizes = tuple(map(size_of, self.columns))
        tables = tuple(one for own in self.released for one in own.tables)
        if any(shared for *_, shared in self.columns) or not tables:
            raise Refused("has columns of numbers between two values, or asks for no tables")
        for one in tables:
            inside = set(one.columns) >= {*one.running, *one.ranges} and not set(one.running) & set(one.ranges)
            for own in (one.columns, one.running, one.ranges):
                inside = inside and list(own) == sorted(set(own)) and max(own, default=0) < len(sizes)
            if not inside or one.weight <= 0 or len(one.columns) > 19:
                raise Refused("asks for a table by columns that it has not, not in their order, or of no weight")
        object.__setattr__(self, "sizes", sizes)
        object.__setattr__(self, "tables", tables)
        object.__setattr__(self, "ordered", tuple(sorted({i for one in tables for i in (*one.running, *one.ranges)})))
        found = {own for one in tables for own in self.within(one)}
        object.__setattr__(self, "subsets", tuple(sorted(found, key=lambda own: (len(own), own))))
        if self.cells > MOST_CELLS or self.cells**2 * len(found) > MOST_ENTRIES or not self.ordered:
            raise Refused("has no columns in order, or too many of their cells")
        if any(sum(map(self.numbers, one.tables)) != prod(one.shape) for one in self.released):
            raise Refused("has an output of a different length from its tables")
        if len({one.name for one in self.released}) < len(self.released):
            raise Refused("names an output twice")

    @property
    def cells(self) -> int:
        """Of the ordered columns together."""
        return prod(self.sizes[i] for i in self.ordered)

    def numbers(self, one: Table) -> int:
        """How many a table has."""
        return prod(n * (n + 1) // 2 if i in one.ranges else n for i, n in ((i, self.sizes[i]) for i in one.columns))

    def plain(self, one: Table) -> Subset:
        """The columns of a table that are not ordered."""
        return tuple(i for i in one.columns if i not in self.ordered)

    def within(self, one: Table) -> list[Subset]:
        """The sets of columns, none of them ordered, whose parts are in a table."""
        found: list[Subset] = [()]
        for i in self.plain(one):
            found += [(*own, i) for own in found if self.sizes[i] > 1]
        return found

    def share(self, own: Subset) -> Fraction:
        """What a record adds to the part of a set of columns, squared."""
        return Fraction(prod(self.sizes[i] - 1 for i in own), prod(self.sizes[i] for i in own))

    def ways(self, one: Table) -> Ways:
        """What a table asks of the ordered columns."""
        kinds = (("running", one.running), ("ranges", one.ranges), ("each", one.columns))
        return tuple(next((kind for kind, some in kinds if i in some), "all") for i in self.ordered)

    def weights(self, own: Subset) -> dict[Ways, Fraction]:
        """What V_T is made of: the factor of the Gram matrix of each way to ask."""
        found: dict[Ways, Fraction] = {}
        for one in self.tables:
            if own in self.within(one):
                spread = prod(self.sizes[i] for i in self.plain(one) if i not in own)
                worth = one.weight * Fraction(prod(self.sizes[i] - 1 for i in own), spread)
                found[self.ways(one)] = found.get(self.ways(one), Fraction(0)) + worth
        return found

    def gram(self, ways: Ways) -> fmpz_mat:
        """W'W for one way to ask of the ordered cells: a Kronecker product."""
        found = [[1]]
        for i, way in zip(self.ordered, ways, strict=True):
            own = _gram(self.sizes[i], way)
            found = [[a * b for a in left for b in right] for left in found for right in own]
        return fmpz_mat(found)

    def asked(self, own: Subset) -> Matrix:
        """V_T."""
        found = fmpq_mat(self.cells, self.cells)
        for ways, worth in self.weights(own).items():
            found += fmpq_mat(self.gram(ways)) * rational(worth)
        return found


def _gram(n: int, way: str) -> list[list[int]]:
    """In how many numbers along a column both of two values are counted."""
    before = [[min(i, j) + 1 for j in range(n)] for i in range(n)]
    after = [[n - max(i, j) for j in range(n)] for i in range(n)]
    if way == "ranges":
        return [[a * b for a, b in zip(*rows, strict=True)] for rows in zip(before, after, strict=True)]
    return after if way == "running" else [[int(i == j or way == "all") for j in range(n)] for i in range(n)]


Column = tuple[str, tuple[str, ...], int | None, int | None, tuple[str, ...], bool]
READERS = {"Column": LINEAR["Column"]}


@dataclass(frozen=True, slots=True)
class Part:
    """Of a set of columns: what is made noisy, and what estimates the counts of the ordered cells from it."""

    strategy: Matrix
    reconstruction: Matrix


@dataclass(frozen=True, slots=True)
class Strategies:
    """What is executed: noise of deviation one on each answer of every strategy, rounded to multiples of `grid`."""

    block: Ordered
    parts: dict[Subset, Part]
    grid: Fraction
    output_grid: Fraction

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.block.released)

    def mu_squared(self, seen: set[Subset]) -> Fraction:
        """The largest over the ordered cells of what one record in it adds to the parts of some sets of columns."""
        total = [Fraction(0)] * self.block.cells
        for own, part in self.parts.items():
            if own in seen:
                columns = part.strategy.transpose().tolist()
                share = self.block.share(own)
                total = [value + share * dot(column, column) for value, column in zip(total, columns, strict=True)]
        return max(total)

    def loss(self) -> Fraction:
        """The weighted sum of the variances of all tables."""
        found = Fraction(0)
        for own, part in self.parts.items():
            found += dot((self.block.asked(own) * part.reconstruction).entries(), part.reconstruction.entries())
        return found

    def bias_squared(self) -> Fraction:
        """At least the square of what the average of a number may be off, for `COUNT` records in each ordered cell."""
        found, one = (
            Fraction(0),
            fmpq_mat(fmpz_mat([[int(i == j) for j in range(self.block.cells)] for i in range(self.block.cells)])),
        )
        for own, part in self.parts.items():
            off = part.reconstruction * part.strategy - one
            for ways in self.block.weights(own):
                moved = dot((fmpq_mat(self.block.gram(ways)) * off).entries(), off.entries())
                found = max(found, moved * 4 ** len(own))
        return found * self.block.cells * (COUNT * len(self.parts)) ** 2

    def rounding_squared(self) -> Fraction:
        """At least the square of the share of its deviation by which rounding the noisy parts moves a number."""
        return sum(
            (
                (self.grid / 2 * 2 ** len(own)) ** 2 * part.strategy.nrows() / (self.block.share(own) or 1)
                for own, part in self.parts.items()
            ),
            Fraction(0),
        )


def read_strategies(block: Item, mechanism: Item) -> Strategies:
    """What a plan executes for a block."""
    found = read(Ordered, block)
    assert isinstance(found, Ordered)
    family, parts, grid, output_grid = mechanism.fields("family", "parts", "grid", "output_grid")
    family.same("ordered")
    if found.families and "gaussian" not in found.families:
        raise family.wrong("is not a family of noise that the problem allows")
    listed = {}
    for own, item in zip(found.subsets, parts.items(len(found.subsets)), strict=True):
        columns, strategy, reconstruction = item.fields("columns", "strategy", "reconstruction")
        columns.same(list(own))
        rows = strategy.extents(2)[0]
        if not 0 < rows <= found.cells:
            raise strategy.wrong("has no rows, or more than there are cells")
        listed[own] = Part(read_matrix(strategy, rows, found.cells), read_matrix(reconstruction, found.cells, rows))
    steps = grid.exact(), output_grid.exact()
    if min(steps) <= 0:
        raise mechanism.wrong("has a grid that is not positive")
    return Strategies(found, listed, *steps)


class OrderedRules(Rules):
    """How plans about tables with columns in order are judged."""

    def judge(self, case: Case) -> Strategies:
        executed = read_strategies(case.block, case.mechanism)
        block = executed.block
        held_by(case, block.source)
        square = executed.mu_squared(set(block.subsets))
        for guarantee in read_guarantees(case.guarantees, case.frame):
            asked = guarantee.obligation
            if set(asked.seen) != set(executed.outputs) or not unit_of(asked, block.source).adding:
                raise case.block.wrong(
                    f"hides, line {asked.line}, what an observer sees, or is about records that move"
                )
            conclude(case, guarantee, square * unit_of(asked, block.source).count ** 2, len(block.subsets))
        # a record moves some number by one, so that no deviation is below 1 / mu
        rounded = 4 * executed.rounding_squared() + executed.output_grid**2 * square
        text = f"rounding to grids moves no output by more than {float(rounded) ** 0.5:.2g} of its standard deviation"
        case.says("rounding", rounded <= ROUNDED**2, text)
        off = executed.bias_squared() * square
        text = f"averages are what the problem asks for, within {float(off) ** 0.5:.2g} standard deviations"
        case.says("unbiased", off <= BIAS**2, f"{text} (counts up to {COUNT})")
        (witness,) = case.claims.fields("bound")
        low = None if witness.absent else bound(case.frame.obligations, block, witness)
        units = f"squared units of {' and '.join(one.name for one in block.released)}"
        classes = (AMONG,) if low is not None else ("",)
        judge_loss(case, executed.loss(), low, classes, "such noise", [block.loss, units, "expected"])
        case.accuracy.same([])
        case.fairness.same(None)
        return executed

    def reach(self, case: Case, executed: object, view: View, outputs: tuple[str, ...], witness: Item) -> Bound:
        witness.same(None)
        assert isinstance(executed, Strategies)
        try:
            unit = seen_unit(case, view, executed.block.source)
        except Refused:
            return None
        if not unit.adding:
            return None
        tables = [one for own in executed.block.released if own.name in outputs for one in own.tables]
        seen = {own for one in tables for own in executed.block.within(one)}
        return {"mu": sqrt_up(executed.mu_squared(seen) * unit.count**2, 100)}


def bound(obligations: tuple[Obligation, ...], block: Ordered, witness: Item) -> Fraction:
    """At most the loss of all Gaussian noise that satisfies one line, by a nuclear norm for each set of columns."""
    line, mu, scales, parts = witness.fields("line", "mu", "scales", "parts")
    asked = obligations[line.integer(0, len(obligations) - 1)]
    flat, unit = scales.array(block.cells)
    if min(flat) < 0 or not any(flat):
        raise scales.wrong("are not numbers from 0 on")
    sizes = [rational(unit * value) for value in flat]
    total = largest_mu_squared(asked.measure, False, mu) / unit_of(asked, block.source).count ** 2
    total *= sum((fraction(value) ** 2 for value in sizes), Fraction(0))
    with ctx.workprec(PRECISION):
        found = arb(0)
        for own, item in zip(block.subsets, parts.items(len(block.subsets)), strict=True):
            vectors, moved = read_matrix(item, block.cells, block.cells), block.asked(own)
            image = moved * vectors
            gram = vectors.transpose() * image
            # a symmetric matrix with |G^2 - G| <= d has no eigenvalue above 1 + d
            off = (gram * gram - gram).entries()
            trace = sum((image[m, m] * size for m, size in enumerate(sizes)), fmpq_mat(1, 1)[0, 0])
            norm = ball(1 + sqrt_up(dot(off, off))).sqrt()
            found += ball(block.share(own)).sqrt() * ball(fraction(trace)) / norm
        return max(end((found * found / ball(total)).lower()), Fraction(0)) if found > 0 else Fraction(0)
