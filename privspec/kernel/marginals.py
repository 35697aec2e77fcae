"""Tables of counts by some columns, released together: noise in the residual spaces of sets of columns, of any size.

Counts of n_1 x .. x n_d cells split into parts that no two sets S of columns share: what the table by S says that no
table by fewer of them does, P_S x, P_S the centring of every column of S and the mean over all others. The part of S is
drawn once, P_S (counts + sigma_S N(0, 1)), and the table by A is the sum over S within A of what its parts say, spread
evenly. Nothing of the number of cells is built. With p_S = prod_S (1 - 1 / n_i) (noise/notes/marginals.md):

    variance of a number of A = sum over S within A of sigma_S^2 p_S / prod_(A - S) n_i^2
    mu^2 = sum over S of q_S / sigma_S^2,  q_S = p_S where a record comes or goes

and where a record moves from one cell to another, which differ in the columns D, the same with q_S(D) = 2 p_S - 2
prod_(S - D) (1 - 1 / n_i) prod_(S and D) (-1 / n_i), for the worst D. No Gaussian noise of any covariance has a loss
below (sum over S of sqrt(c_S b_S))^2 / sum of lambda mu^2, for c the coefficients of the variances sigma_S^2 in any
mixture of the terms of the loss, and b = sum of lambda q: labels of a column may be exchanged.

Columns along which some table is added up in order are `ordered`, their cells together M; all other columns split
as above. With T a set of those, what is drawn is P_T (B_T x + N(0, 1)), x the counts by T and the ordered columns,
and tables are put together from estimates R_T of x in it (noise/notes/marginals.md, "Columns in order"):

    mu^2 = max over ordered cells m of sum_T p_T |B_T e_m|^2,      loss = sum_T tr(R_T' V_T R_T),
    V_T = sum over tables A that T is within of weight d_T / prod_(A - T) n_i  W_A' W_A,

d_T = prod_T (n_i - 1), W_A what A asks of the ordered cells. For every diagonal S and all Y_T with |V_T^(1/2) Y_T| <= 1
no Gaussian noise has a loss below (sum_T sqrt(p_T) tr(Y_T' V_T S))^2 / (mu^2 tr S^2).
"""

from __future__ import annotations

from dataclasses import field, replace
from fractions import Fraction
from math import prod
from typing import Any

from flint import arb, ctx, fmpq, fmpq_mat, fmpz_mat

from privspec.kernel.chains import FINEST
from privspec.kernel.changes import Records
from privspec.kernel.core.linear import Column, Matrix, read_matrix
from privspec.kernel.core.numbers import ZERO, ball, fraction, rational, sqrt_up
from privspec.kernel.core.problem import (
    Bound,
    Mechanism,
    Obligation,
    PlanUnderCheck,
    Rules,
    View,
    read_guarantees,
    wrong_person,
)
from privspec.kernel.core.reading import JsonNode, Refused, Size, frozen
from privspec.kernel.laws.gaussian import Gaussian
from privspec.kernel.laws.laplace import WholeLaplace, laplace_variance
from privspec.kernel.laws.law import Law, Strategy
from privspec.kernel.promises import Promise, judge_promises, of_one_figure
from privspec.kernel.rows import identity
from privspec.kernel.rules import derive
from privspec.kernel.strategies import residuals
from privspec.kernel.strategies.dense import products
from privspec.kernel.strategies.residuals import Subset
from privspec.kernel.terms import Structured
from privspec.kernel.worth import judge_worth
from privspec.kernel.worth.traces import largest_mu_squared, squared_trace

AMONG = "Gaussian noise of any covariance, unbiased"
PURE = "additive noise of the same pure epsilon, unbiased"
PRECISION = 160
MOST_COLUMNS, MOST_PAIRS = 1000, 2**19
"""Columns of a table, and pairs of a table that is asked for and a set of columns within it, that are looked at."""
MOST_CELLS, MOST_ENTRIES = 4096, 2**24
"""Cells of the columns in order together, and entries of all strategies."""


@frozen
class Along:
    """Columns of a table of an output, by its place, along which it has running totals, or all ranges."""

    table: int
    running: tuple[int, ...]
    ranges: tuple[int, ...]


@frozen
class Answers:
    """An output: the tables by these columns, one after another, the last column of each running fastest."""

    name: str
    shape: tuple[int, ...]
    tables: tuple[tuple[int, ...], ...]
    along: tuple[Along, ...] | None = None

    def asks(self) -> list[dict[int, str]]:
        """For each table its columns in order, "running" or "ranges"."""
        found: list[dict[int, str]] = [{} for _ in self.tables]
        for one in self.along or ():
            said = dict.fromkeys(one.running, "running") | dict.fromkeys(one.ranges, "ranges")
            known = one.table < len(found) and not found[one.table] and set(said) <= set(self.tables[one.table])
            if not known or not said or list(said) != [*sorted(set(one.running)), *sorted(set(one.ranges))]:
                raise Refused("asks for a table by columns that it has not, or not in their order")
            found[one.table] = said
        return found


@frozen
class Marginals:
    """The block of a problem: see `privspec.problem.marginals`; `ordered`: columns along which some table adds up.

    `asks`: for each table its own such columns; `numbers`: how many it has; `subsets`: of other columns, whose parts
    tables tell of.
    """

    FORM = "marginals"

    source: str
    columns: tuple[Column, ...]
    records: int | None
    released: tuple[Answers, ...]
    terms: tuple[tuple[Weighed, ...], ...]
    worst: bool
    loss: str
    families: tuple[str, ...]
    sizes: tuple[int, ...] = field(init=False, default=())
    tables: tuple[Subset, ...] = field(init=False, default=())
    asks: tuple[dict[int, str], ...] = field(init=False, default=())
    numbers: tuple[int, ...] = field(init=False, default=())
    ordered: tuple[int, ...] = field(init=False, default=())
    subsets: tuple[Subset, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        sizes = tuple(column.size for column in self.columns)
        tables = tuple(one for own in self.released for one in own.tables)
        asks = tuple(one for own in self.released for one in own.asks())
        if not 0 < len(sizes) <= MOST_COLUMNS or any(column.shared for column in self.columns):
            raise Refused("has no columns, too many, or some of numbers between two values")
        for columns in tables:
            if list(columns) != sorted(set(columns)) or (columns and columns[-1] >= len(sizes)):
                raise Refused("asks for a table by columns that it has not, or not in their order")
        numbers = tuple(
            prod(n * (n + 1) // 2 if asked.get(i) == "ranges" else n for i, n in ((i, sizes[i]) for i in columns))
            for columns, asked in zip(tables, asks, strict=True)
        )
        ordered = tuple(sorted({i for asked in asks for i in asked}))
        found = {"sizes": sizes, "tables": tables, "asks": asks, "numbers": numbers, "ordered": ordered}
        for name, value in found.items():
            object.__setattr__(self, name, value)
        if sum(2 ** len(self.plain(one)) for one in tables) > MOST_PAIRS or not tables:
            raise Refused("asks for no tables, or for too many")
        at = 0
        for one in self.released:
            at, start = at + len(one.tables), at
            if sum(numbers[start:at]) != prod(one.shape):
                raise Refused("has an output of a different length from its tables")
        if len({one.name for one in self.released}) < len(self.released):
            raise Refused("names an output twice")
        weighed = [[table for table, _ in term] for term in self.terms]
        if set().union(*weighed) != set(range(len(tables))) or any(len(set(one)) < len(one) for one in weighed):
            raise Refused("has a loss that does not weigh each table that is released")
        if any(weight <= 0 for term in self.terms for _, weight in term) or (len(weighed) > 1) > self.worst:
            raise Refused("has weights that are not positive, or a sum of several terms")
        object.__setattr__(self, "subsets", self.parts_of(tables))
        many = self.cells > MOST_CELLS or self.cells**2 * len(self.subsets) > MOST_ENTRIES
        if ordered and (self.worst or many):
            raise Refused("has too many cells of columns in order, or does not add up all errors")

    @property
    def cells(self) -> int:
        """Of the columns in order together."""
        return prod(self.sizes[i] for i in self.ordered)

    def plain(self, table: Subset) -> Subset:
        """The columns of a table that are not in order."""
        return tuple(i for i in table if i not in self.ordered) if self.ordered else table

    def within(self, table: Subset) -> list[Subset]:
        """The sets of columns, none in order, whose parts are in a table: those of one value have none."""
        found: list[Subset] = [()]
        for i in self.plain(table):
            found += [(*own, i) for own in found if self.sizes[i] > 1]
        return found

    def parts_of(self, tables: tuple[Subset, ...]) -> tuple[Subset, ...]:
        """The sets of columns that some tables tell of, small ones first."""
        return tuple(sorted({own for table in tables for own in self.within(table)}, key=lambda own: (len(own), own)))

    @property
    def told(self) -> dict[str, tuple[Subset, ...]]:
        """The sets of columns that each output tells of."""
        return {one.name: self.parts_of(one.tables) for one in self.released}

    @property
    def units(self) -> str:
        """Of the loss."""
        return f"squared units of {' and '.join(one.name for one in self.released)}"

    def share(self, own: Subset) -> Fraction:
        """What a record adds to the part of a set of columns, squared."""
        return residuals.share(self.sizes, own)

    def coefficients(self, weights: list[tuple[int, Fraction]]) -> dict[Subset, Fraction]:
        """How the variances sigma_S^2 enter a sum of squared errors, those of table A with a weight each."""
        found: dict[Subset, fmpq] = {}
        for table, weight in weights:
            columns = self.tables[table]
            each = rational(weight / prod(self.sizes[i] for i in columns))
            for own in self.within(columns):
                found[own] = found.get(own, fmpq()) + each
        return {
            own: fraction(total * prod(self.sizes[i] * (self.sizes[i] - 1) for i in own))
            for own, total in found.items()
        }

    def moved(self, own: Subset, differing: frozenset[int]) -> Fraction:
        """What a record that moves to a cell that differs in these columns changes in the part of a set, squared."""
        overlap = prod(-1 if i in differing else self.sizes[i] - 1 for i in own)
        whole = prod(self.sizes[i] for i in own)
        return 2 * (self.share(own) - Fraction(overlap, whole))


Weighed = tuple[int, Fraction]
READERS = {"Weighed": {"table": "int", "weight": "Fraction"}, "Matrix": read_matrix}


class Released(Mechanism):
    """What is executed, in deviations of normal noise or in scales of Laplace noise; and what it rests on."""

    block: Marginals
    law: Law = Gaussian(Fraction(1))
    notes: tuple[str, ...] = ("gaussian-exact", "rounded-gaussian", "post-processing", "marginals")

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.block.released)

    @property
    def sees(self) -> str:
        """What whoever sees the outputs sees, in words."""
        return f"the noisy parts of {len(self.block.subsets)} sets of columns and nothing else"

    @property
    def strategy(self) -> Strategy:
        """What is drawn."""
        raise NotImplementedError

    @property
    def term(self) -> Structured:
        return Structured(self.strategy, self.law, frozenset(self.outputs))


@frozen
class Residuals(Released):
    """What is executed: for each set of columns the deviation of its noise, in records; rounded in units of that.

    `variances`: of the numbers of each part, times the squared number of its cells. The part of a set is rounded to
    multiples of `grid` deviations, what is released to `output_grid`.
    """

    FORM = "marginals"

    block: Marginals
    deviations: tuple[Size, ...]
    grid: Fraction
    output_grid: Fraction
    each: dict[Subset, Fraction] = field(init=False)
    variances: dict[Subset, fmpq] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "each", _by_set(self, self.deviations, ordered=False))
        for own, deviation in self.each.items():
            scale = prod(self.block.sizes[i] * (self.block.sizes[i] - 1) for i in own)
            self.variances[own] = rational(deviation) ** 2 * scale

    def variance(self, table: Subset) -> Fraction:
        """Of one number of a table."""
        total = sum((self.variances[own] for own in self.block.within(table)), fmpq())
        return fraction(total) / prod(self.block.sizes[i] for i in table) ** 2

    @property
    def strategy(self) -> residuals.Residuals:
        """What is drawn, in deviations of the noise."""
        parts = {own: fmpq_mat(1, 1, [1 / rational(one)]) if one else None for own, one in self.each.items()}
        return residuals.Residuals(self.block.sizes, parts, self.block.told)

    def losses(self) -> list[Fraction]:
        """Every term of the loss; the loss is the largest."""
        squares = {own: rational(deviation) ** 2 for own, deviation in self.each.items()}
        every = (self.block.coefficients(list(term)) for term in self.block.terms)
        return [fraction(sum((rational(c) * squares[own] for own, c in one.items()), fmpq())) for one in every]

    def rounding_squared(self) -> Fraction:
        """The square of the largest share of its deviation by which rounding moves a number, one without by units."""
        return max(self.moves(table) ** 2 / (self.variance(table) or 1) for table in self.block.tables)

    def moves(self, table: Subset) -> Fraction:
        """At least what rounding moves a number of a table by."""
        block, found = self.block, fmpq()
        for own in block.within(table):
            found += prod(2 * block.sizes[i] for i in own) * rational(self.each[own])
        cells = prod(block.sizes[i] for i in table)
        return self.output_grid / 2 + fraction(found) * self.grid / 2 / cells


def _by_set(found: Residuals | Strategies, listed: tuple[Any, ...], *, ordered: bool) -> dict[Subset, Any]:
    """What a mechanism states of each set of columns of its block, in their order."""
    subsets, families = found.block.subsets, found.block.families
    if bool(found.block.ordered) != ordered or (families and "gaussian" not in families):
        raise Refused("is not a family of noise that the problem allows")
    if len(listed) != len(subsets):
        raise Refused(f"is about {len(listed)} sets of columns in place of {len(subsets)}")
    if min(found.grid, found.output_grid) <= 0:
        raise Refused("has a grid that is not positive")
    return dict(zip(subsets, listed, strict=True))


@frozen
class Separate(Released):
    """What is executed instead: tables by themselves, with discrete Laplace noise of a scale on each count.

    One without a scale is added up from that noisy table by more columns whose squared scales then add up to least.
    """

    FORM = "laplace"
    law = WholeLaplace(Fraction(1))
    notes = (*law.notes, "post-processing")

    block: Marginals
    scales: tuple[Fraction | None, ...]
    sources: tuple[int, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        families, tables = self.block.families, self.block.tables
        if self.block.ordered or (families and not {"laplace", "geometric"} & set(families)):
            raise Refused("is not a family of noise that the problem allows")
        if len(self.scales) != len(tables):
            raise Refused(f"has {len(self.scales)} scales in place of {len(tables)}")
        if min((scale for scale in self.scales if scale is not None), default=FINEST) < FINEST:
            raise Refused("has scales that are not those of noise")
        object.__setattr__(self, "sources", tuple(self._source(t) for t in range(len(self.scales))))

    def _source(self, table: int) -> int:
        own = set(self.block.tables[table])
        if self.scales[table] is not None:
            return table
        known = [t for t, scale in enumerate(self.scales) if scale is not None and own <= set(self.block.tables[t])]
        if not known:
            raise Refused("adds up a table from none that is noisy")
        return min(known, key=lambda t: (self._added(table, t) * (self.scales[t] or FINEST) ** 2, t))

    def _added(self, table: int, source: int) -> int:
        """How many numbers of a noisy table each number of another adds up."""
        return prod(self.block.sizes[i] for i in self.block.tables[source] if i not in self.block.tables[table])

    def variance(self, table: int) -> Fraction:
        """Of one number of a table, by its place."""
        source = self.sources[table]
        return self._added(table, source) * laplace_variance(self.scales[source] or FINEST, Fraction(1))

    @property
    def sees(self) -> str:
        return "noisy counts, each by itself"

    @property
    def strategy(self) -> residuals.Separate:
        """What is drawn, in scales of the noise."""
        listed = zip(self.block.tables, self.scales, strict=True)
        return residuals.Separate(self.block.sizes, tuple((own, scale) for own, scale in listed if scale is not None))

    def losses(self) -> list[Fraction]:
        """Every term of the loss; the loss is the largest."""
        tables = self.block.tables
        each = [self.variance(t) * prod(self.block.sizes[i] for i in own) for t, own in enumerate(tables)]
        return [sum((w * each[t] for t, w in term), ZERO) for term in self.block.terms]


# --- what a record tells ---------------------------------------------------------------------------------


def unit_of(obligation: Obligation | View, block: Marginals) -> Records:
    """What the unit of a line changes: records of the table, or all that are kept of one person.

    No more records are replaced than everybody knows that there are.
    """
    (unit, *more) = obligation.units
    plain = (
        (unit.kind == "record" or (unit.kind == "person" and unit.adding))
        and unit.inputs == (block.source,)
        and unit.party is None
        and unit.apart is None
    )
    if more or not plain:
        raise Refused("is about other units than records of the table")
    known = unit.count if unit.adding else block.records
    count = min(unit.count, known or unit.count)
    return Records(count, unit.adding, count)


def held_by(case: PlanUnderCheck, source: str) -> None:
    """One keeper holds the table; where records of each person are kept, every line is about one person."""
    data, trust = case.frame.data, case.frame.trust
    if [(one.name, one.party) for one in data] != [(source, None)] or not trust.means.central:
        raise case.block.wrong("is about other data, or other trust, than the problem")
    kept = data[0].kept
    for asked in case.frame.obligations:
        wrong = wrong_person(asked.units, [kept])
        if wrong or (kept and kept.per_cell is not None):
            raise case.block.wrong(wrong or "keeps records cell by cell")


def seen_unit(case: PlanUnderCheck, view: View, block: Marginals) -> Records:
    """That of a view; refused for single records where which are kept depends on others."""
    found = unit_of(view, block)
    if wrong_person([replace(unit, count=found.count) for unit in view.units], [case.frame.data[0].kept]):
        raise Refused("is about other units than records of the table")
    return found


# --- the bound ------------------------------------------------------------------------------------------


def bound(obligations: tuple[Obligation, ...], block: Marginals, witness: JsonNode, *, pure: bool = False) -> Fraction:
    """At most the loss of all Gaussian noise, or of all that is `pure` as the epsilon of the lines.

    The witness: shares of the terms of the loss and of what a record may do. A line has one mass where records come and
    go, else a mass for each set of columns that two cells differ in.
    """
    shares, lines = witness.fields("terms", "lines")
    weights = [one.exact(0) for one in shares.items(len(block.terms))]
    if sum(weights) != 1:
        raise shares.wrong("are not shares that add up to one")
    mixed: dict[int, Fraction] = {}
    for share, term in zip(weights, block.terms, strict=True):
        for table, weight in term:
            mixed[table] = mixed.get(table, ZERO) + share * weight
    costs = block.coefficients(list(mixed.items()))
    known: dict[Subset, Fraction] = dict.fromkeys(block.subsets, ZERO)
    total = ZERO
    for item, asked in zip(lines.items(len(obligations)), obligations, strict=True):
        mu, masses = item.fields("mu", "masses")
        unit, listed = unit_of(asked, block), masses.items()
        for one in listed:
            differing, mass = one.fields("differing", "mass")
            size = mass.exact(0)
            moved = frozenset() if unit.adding else _columns(differing, block)
            if unit.adding:
                differing.same(None)
            for own in block.subsets:
                q = block.share(own) if unit.adding else block.moved(own, moved)
                known[own] += size * unit.count**2 * q
            total += size * largest_mu_squared(asked.measure, pure, JsonNode(mu.value, mu.place))
        if not listed:
            mu.same(None)
    if not total:
        raise lines.wrong("have no mass")
    with ctx.workprec(PRECISION):
        roots = sum(((ball(costs.get(own, ZERO)) * ball(b)).sqrt() for own, b in known.items()), arb(0))
        return squared_trace(roots, total)


def _columns(item: JsonNode, block: Marginals) -> frozenset[int]:
    found = [one.integer(0, len(block.sizes) - 1) for one in item.items()]
    if not found or found != sorted(set(found)):
        raise item.wrong("is no set of columns in which two cells differ")
    return frozenset(found)


# --- columns in order ----------------------------------------------------------------------------------------

ROUNDED = Fraction(1, 10**4)
"""Share of its deviation by which rounding may move a number."""
BIAS, COUNT = Fraction(1, 10**6), 1000
"""Share of its deviation by which the average of a number may be off, for counts up to so many in a cell."""
Ways = tuple[str, ...]
"""What a table asks of each ordered column: "all" (added up), "each", "running" or "ranges"."""


def ways_of(block: Marginals, table: int) -> Ways:
    """What a table, by its place, asks of the ordered columns."""
    asked, columns = block.asks[table], block.tables[table]
    return tuple(asked.get(i, "each" if i in columns else "all") for i in block.ordered)


@frozen
class Kinds:
    """The matrices V_T up to a factor: the weights of the ways to ask that each is made of, and each V_T by these."""

    weights: tuple[dict[Ways, Fraction], ...]
    places: dict[Subset, tuple[int, Fraction]]


def kinds_of(block: Marginals) -> Kinds:
    """In the order of the sets of columns."""
    every: dict[Subset, dict[Ways, Fraction]] = {own: {} for own in block.subsets}
    for table, weight in block.terms[0]:
        columns, ways = block.tables[table], ways_of(block, table)
        for own in block.within(columns):
            spread, found = prod(block.sizes[i] for i in block.plain(columns) if i not in own), every[own]
            worth = weight * Fraction(prod(block.sizes[i] - 1 for i in own), spread)
            found[ways] = found.get(ways, ZERO) + worth
    known, places = dict[frozenset[tuple[Ways, Fraction]], int](), dict[Subset, tuple[int, Fraction]]()
    for own, weights in every.items():
        factor = sum(weights.values(), ZERO)
        kind = frozenset((ways, worth / factor) for ways, worth in weights.items())
        places[own] = known.setdefault(kind, len(known)), factor
    return Kinds(tuple(map(dict, known)), places)


def gram_of(block: Marginals, ways: Ways) -> fmpz_mat:
    """W'W for one way to ask of the ordered cells: a Kronecker product."""
    found = [[1]]
    for i, way in zip(block.ordered, ways, strict=True):
        own = _gram(block.sizes[i], way)
        found = [[a * b for a in left for b in right] for left in found for right in own]
    return fmpz_mat(found)


def asked_of(block: Marginals, weights: dict[Ways, Fraction]) -> Matrix:
    """V_T, of the weights that it is made of."""
    found = fmpq_mat(block.cells, block.cells)
    for ways, worth in weights.items():
        found += fmpq_mat(gram_of(block, ways)) * rational(worth)
    return found


def _gram(n: int, way: str) -> list[list[int]]:
    """In how many numbers along a column both of two values are counted."""
    before = [[min(i, j) + 1 for j in range(n)] for i in range(n)]
    after = [[n - max(i, j) for j in range(n)] for i in range(n)]
    if way == "ranges":
        return [[a * b for a, b in zip(*rows, strict=True)] for rows in zip(before, after, strict=True)]
    return after if way == "running" else [[int(i == j or way == "all") for j in range(n)] for i in range(n)]


@frozen
class Part:
    """Of a set of columns: what is made noisy, and what estimates the counts of the ordered cells from it."""

    strategy: Matrix
    reconstruction: Matrix


@frozen
class Strategies(Released):
    """What is executed: noise of deviation one on each answer of every strategy, rounded to multiples of `grid`."""

    FORM = "ordered"

    block: Marginals
    parts: tuple[Part, ...]
    grid: Fraction
    output_grid: Fraction
    each: dict[Subset, Part] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "each", _by_set(self, self.parts, ordered=True))
        cells = self.block.cells
        for part in self.parts:
            rows = part.strategy.nrows()
            if not 0 < rows <= cells or part.strategy.ncols() != cells:
                raise Refused("has a strategy of no rows, of more than there are cells, or of other cells")
            if (part.reconstruction.nrows(), part.reconstruction.ncols()) != (cells, rows):
                raise Refused("has a reconstruction of other answers or cells")

    @property
    def strategy(self) -> residuals.Residuals:
        """What is drawn, in deviations of the noise."""
        parts = {own: part.strategy for own, part in self.each.items()}
        return residuals.Residuals(self.block.sizes, parts, self.block.told)

    @property
    def of_one(self) -> Fraction:
        """At least mu^2 of one record that comes or goes."""
        return self.strategy.quadratic_sensitivity(Records(1, True, 1), frozenset(self.outputs))

    def losses(self) -> list[Fraction]:
        """The weighted sum of the variances of all tables."""
        kinds, found = kinds_of(self.block), ZERO
        asked = [asked_of(self.block, weights) for weights in kinds.weights]
        for own, part in self.each.items():
            kind, factor = kinds.places[own]
            found += factor * sum(products(asked[kind] * part.reconstruction, part.reconstruction), ZERO)
        return [found]

    def bias_squared(self) -> Fraction:
        """At least the square of what the average of a number may be off, for `COUNT` records in each ordered cell."""
        block, kinds, found = self.block, kinds_of(self.block), ZERO
        one, added = identity(block.cells), fmpq_mat(1, block.cells, [1] * block.cells)
        grams = {ways: fmpq_mat(gram_of(block, ways)) for weights in kinds.weights for ways in weights}
        for own, part in self.each.items():
            for ways in kinds.weights[kinds.places[own][0]]:
                if set(ways) == {"all"}:
                    off = added * part.reconstruction * part.strategy - added
                    moved = sum(products(off, off), ZERO)
                else:
                    off = part.reconstruction * part.strategy - one
                    moved = sum(products(grams[ways] * off, off), ZERO)
                found = max(found, moved * 4 ** len(own))
        together = max(len(block.within(table)) for table in block.tables)
        return found * block.cells * (COUNT * together) ** 2

    def rounding_squared(self) -> Fraction:
        """At least the square of the share of its deviation by which rounding moves a number.

        A record moves some number by one, so that no deviation is below 1 / mu.
        """
        parts = sum(
            (
                (self.grid / 2 * 2 ** len(own)) ** 2 * part.strategy.nrows() / (self.block.share(own) or 1)
                for own, part in self.each.items()
            ),
            ZERO,
        )
        return 4 * parts + self.output_grid**2 * self.of_one


Executed = Residuals | Separate | Strategies


class MarginalRules(Rules):
    """How plans about tables of counts are judged."""

    mechanisms = Residuals, Separate, Strategies

    def privacy(self, case: PlanUnderCheck) -> Executed:
        executed: Executed = self.read(case.frame, case.mechanism)
        promises = list[Promise]()
        block = executed.block
        held_by(case, block.source)
        for guarantee in read_guarantees(case.guarantees, case.frame):
            asked, change = guarantee.obligation, unit_of(guarantee.obligation, block)
            if set(asked.seen) != set(executed.outputs) or asked.wrt != (block.source,):
                raise case.block.wrong(f"hides, line {asked.line}, what an observer sees")
            if case.frame.data[0].rule == "drop" and not change.adding:
                raise case.block.wrong("replaces records of a table whose rule leaves records out")
            promises.append(of_one_figure(case, executed.term, guarantee, change, executed.notes, executed.sees))
        judge_promises(case, executed.term, promises)
        return executed

    def judge(self, case: PlanUnderCheck) -> Executed:
        executed = self.privacy(case)
        block = executed.block
        self.averages(case, executed)
        (witness,) = case.claims.fields("bound")
        low, pure = None, isinstance(executed, Separate)
        if not witness.absent and block.ordered:
            low = ordered_bound(case.frame.obligations, block, witness)
        elif not witness.absent:
            low = bound(case.frame.obligations, block, witness, pure=pure)
        words = [block.loss, block.units, "worst" if block.worst else "expected"]
        among = "" if low is None else PURE if pure else AMONG
        judge_worth(case, max(executed.losses()), low, (among,), "such noise", words)
        return executed

    def averages(self, case: PlanUnderCheck, executed: Executed) -> None:
        """Noise averages to 0, and rounding moves no number by more than a share of its deviation."""
        if isinstance(executed, Separate):
            case.says("rounding", True, "counts and their noise are whole numbers: nothing is rounded")
            case.says("unbiased", True, "each count has noise that averages to 0")
            return
        rounded = executed.rounding_squared()
        text = f"rounding to grids moves no output by more than {float(rounded) ** 0.5:.2g} of its standard deviation"
        case.says("rounding", rounded <= ROUNDED**2, text)
        if isinstance(executed, Residuals):
            text = "each table is the sum of its parts, each of which averages to what the records say"
            case.says("unbiased", True, text)
            return
        off = executed.bias_squared() * executed.of_one
        said = float(max(off, BIAS**2)) ** 0.5
        text = f"averages are what the problem asks for, within {said:.2g} standard deviations"
        case.says("unbiased", off <= BIAS**2, f"{text} (counts up to {COUNT})")

    def reach(
        self, case: PlanUnderCheck, executed: Executed, view: View, outputs: tuple[str, ...], witness: JsonNode
    ) -> Bound:
        witness.same(None)
        try:
            change = seen_unit(case, view, executed.block)
            loss = derive(executed.term, frozenset(outputs), change).loss
        except Refused:
            return None
        figures = ("epsilon", "delta") if isinstance(executed, Separate) else ("mu",)
        return {name: loss.figure(name) for name in figures}


def ordered_bound(obligations: tuple[Obligation, ...], block: Marginals, witness: JsonNode) -> Fraction:
    """At most the loss of all Gaussian noise that satisfies one line, by a nuclear norm for each V_T up to a factor."""
    line, mu, scales, parts = witness.fields("line", "mu", "scales", "parts")
    asked = obligations[line.integer(0, len(obligations) - 1)]
    sizes = [rational(value) for value in scales.array(block.cells).values()]
    if min(sizes) < 0 or not any(sizes):
        raise scales.wrong("are not numbers from 0 on")
    total = largest_mu_squared(asked.measure, False, mu) / unit_of(asked, block).count ** 2
    total *= sum((fraction(value) ** 2 for value in sizes), ZERO)
    kinds = kinds_of(block)
    with ctx.workprec(PRECISION):
        shares, found = [arb(0) for _ in kinds.weights], arb(0)
        for own, (kind, factor) in kinds.places.items():
            shares[kind] += (ball(block.share(own)) * ball(factor)).sqrt()
        for weights, share, item in zip(kinds.weights, shares, parts.items(len(shares)), strict=True):
            vectors = read_matrix(item, block.cells, block.cells)
            image = asked_of(block, weights) * vectors
            gram = vectors.transpose() * image
            # a symmetric matrix with |G^2 - G| <= d has no eigenvalue above 1 + d
            off = gram * gram - gram
            trace = sum((image[m, m] * size for m, size in enumerate(sizes)), fmpq_mat(1, 1)[0, 0])
            found += share * ball(fraction(trace)) / ball(1 + sqrt_up(sum(products(off, off), ZERO))).sqrt()
        return squared_trace(found, total)
