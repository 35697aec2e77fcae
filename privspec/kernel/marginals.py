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
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import comb, lcm, prod

from flint import arb, ctx, fmpq

from privspec.kernel.allowed import largest_mu_squared
from privspec.kernel.chains import FINEST, variance
from privspec.kernel.core.linear import READERS as LINEAR
from privspec.kernel.core.linear import size_of
from privspec.kernel.core.numbers import ball, end, fraction, rational
from privspec.kernel.core.problem import Case, Obligation, Unit, View
from privspec.kernel.core.reading import Item, Refused
from privspec.kernel.participation import wrong_person
from privspec.kernel.trust import CURATOR

AMONG = "Gaussian noise of any covariance, unbiased"
PURE = "additive noise of the same pure epsilon, unbiased"
LAPLACE = ("laplace", "discrete-laplace", "post-processing")
NOTES = ("gaussian-exact", "rounded-gaussian", "post-processing", "marginals")
PRECISION = 160
MOST_COLUMNS, MOST_PAIRS = 1000, 2**19
"""Columns of a table, and pairs of a table that is asked for and a set of columns within it, that are looked at."""
WORST_COLUMNS = 16
"""Columns up to which every set of them is looked at in which two cells may differ."""
MOST_SHAPES = 2**18
"""Sets of columns in which two cells may differ, sets that are alike as one, of which the worst is looked for."""
MOST_CELLS, MOST_ENTRIES = 4096, 2**24
"""Cells of the columns in order together, and entries of all strategies."""
NONE = fmpq(0)
Subset = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Along:
    """Columns of a table of an output, by its place, along which it has running totals, or all ranges."""

    table: int
    running: tuple[int, ...]
    ranges: tuple[int, ...]


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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
        sizes = tuple(map(size_of, self.columns))
        tables = tuple(one for own in self.released for one in own.tables)
        asks = tuple(one for own in self.released for one in own.asks())
        if not 0 < len(sizes) <= MOST_COLUMNS or any(shared for *_, shared in self.columns):
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

    def seen(self, outputs: tuple[str, ...]) -> tuple[Subset, ...]:
        """The sets of columns that some outputs tell of."""
        return self.parts_of(tuple(one for own in self.released if own.name in outputs for one in own.tables))

    @property
    def units(self) -> str:
        """Of the loss."""
        return f"squared units of {' and '.join(one.name for one in self.released)}"

    def share(self, own: Subset) -> Fraction:
        """What a record adds to the part of a set of columns, squared."""
        return Fraction(prod(self.sizes[i] - 1 for i in own), prod(self.sizes[i] for i in own))

    def coefficients(self, weights: list[tuple[int, Fraction]]) -> dict[Subset, Fraction]:
        """How the variances sigma_S^2 enter a sum of squared errors, those of table A with a weight each."""
        found: dict[Subset, fmpq] = {}
        for table, weight in weights:
            columns = self.tables[table]
            each = rational(weight / prod(self.sizes[i] for i in columns))
            for own in self.within(columns):
                found[own] = found.get(own, NONE) + each
        return {
            own: fraction(total * prod(self.sizes[i] * (self.sizes[i] - 1) for i in own))
            for own, total in found.items()
        }

    def moved(self, own: Subset, differing: frozenset[int]) -> Fraction:
        """What a record that moves to a cell that differs in these columns changes in the part of a set, squared."""
        overlap = prod(-1 if i in differing else self.sizes[i] - 1 for i in own)
        whole = prod(self.sizes[i] for i in own)
        return 2 * (self.share(own) - Fraction(overlap, whole))


Column = tuple[str, tuple[str, ...], int | None, int | None, tuple[str, ...], bool]
Weighed = tuple[int, Fraction]
READERS = {"Column": LINEAR["Column"], "Weighed": {"table": "int", "weight": "Fraction"}}


@dataclass(frozen=True, slots=True)
class Residuals:
    """What is executed: for each set of columns the deviation of its noise, in records; rounded in units of that.

    `variances`: of the numbers of each part, times the squared number of its cells. The part of a set is rounded to
    multiples of `grid` deviations, what is released to `output_grid`.
    """

    block: Marginals
    deviations: dict[Subset, Fraction]
    grid: Fraction
    output_grid: Fraction
    variances: dict[Subset, fmpq] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for own, deviation in self.deviations.items():
            scale = prod(self.block.sizes[i] * (self.block.sizes[i] - 1) for i in own)
            self.variances[own] = rational(deviation) ** 2 * scale

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.block.released)

    def variance(self, table: Subset) -> Fraction:
        """Of one number of a table."""
        total = sum((self.variances[own] for own in self.block.within(table)), NONE)
        return fraction(total) / prod(self.block.sizes[i] for i in table) ** 2

    def mu_squared(self, seen: tuple[Subset, ...], unit: Unit) -> Fraction | None:
        """At least mu^2 of the parts of some sets of columns; None where a part that moves has no noise."""
        moving = [own for own in seen if own or unit.adding]
        if any(not self.deviations[own] for own in moving):
            return None
        inverse = {own: 1 / self.deviations[own] ** 2 for own in moving}
        if unit.adding:
            return unit.count**2 * sum((self.block.share(own) * value for own, value in inverse.items()), Fraction(0))
        return unit.count**2 * worst_move(self.block, inverse)

    def losses(self) -> list[Fraction]:
        """Every term of the loss; the loss is the largest."""
        squares = {own: rational(deviation) ** 2 for own, deviation in self.deviations.items()}
        every = (self.block.coefficients(list(term)) for term in self.block.terms)
        return [fraction(sum((rational(c) * squares[own] for own, c in one.items()), NONE)) for one in every]

    def rounding_squared(self) -> Fraction:
        """The square of the largest share of its deviation by which rounding moves a number, one without by units."""
        return max(self.moves(table) ** 2 / (self.variance(table) or 1) for table in self.block.tables)

    def moves(self, table: Subset) -> Fraction:
        """At least what rounding moves a number of a table by."""
        block, found = self.block, NONE
        for own in block.within(table):
            found += prod(2 * block.sizes[i] for i in own) * rational(self.deviations[own])
        cells = prod(block.sizes[i] for i in table)
        return self.output_grid / 2 + fraction(found) * self.grid / 2 / cells


def read_residuals(block: Marginals, mechanism: Item) -> Residuals:
    """What a plan executes for a block without columns in order."""
    subsets, deviations, grid, output_grid = mechanism.stating(
        {"family": "marginals"}, "subsets", "deviations", "grid", "output_grid"
    )
    subsets.same([list(own) for own in block.subsets])
    sizes = tuple(one.exact(0) for one in deviations.items(len(block.subsets)))
    steps = grid.exact(), output_grid.exact()
    if min(steps) <= 0:
        raise mechanism.wrong("has a grid that is not positive")
    return Residuals(block, dict(zip(block.subsets, sizes, strict=True)), *steps)


@dataclass(frozen=True, slots=True)
class Separate:
    """What is executed instead: tables by themselves, with discrete Laplace noise of a scale on each count.

    One without a scale is added up from that noisy table by more columns whose squared scales then add up to least.
    """

    block: Marginals
    scales: tuple[Fraction | None, ...]
    sources: tuple[int, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
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
        return self._added(table, source) * variance(self.scales[source] or FINEST)

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.block.released)

    def epsilon(self, unit: Unit) -> Fraction:
        """What all noisy tables let through: a record counts in one number of each, or moves to another."""
        found = Fraction(0)
        for own, scale in zip(self.block.tables, self.scales, strict=True):
            moves = 1 if unit.adding else 2 * any(self.block.sizes[i] > 1 for i in own)
            found += Fraction(0) if scale is None else moves * unit.count / scale
        return found

    def losses(self) -> list[Fraction]:
        """Every term of the loss; the loss is the largest."""
        tables = self.block.tables
        each = [self.variance(t) * prod(self.block.sizes[i] for i in own) for t, own in enumerate(tables)]
        return [sum((w * each[t] for t, w in term), Fraction(0)) for term in self.block.terms]


def read_separate(block: Marginals, mechanism: Item) -> Separate:
    """What a plan executes, of noise on each table by itself."""
    (listed,) = mechanism.stating({"family": "laplace"}, "scales")
    scales = tuple(None if one.absent else one.exact() for one in listed.items(len(block.tables)))
    if min((scale for scale in scales if scale is not None), default=FINEST) < FINEST:
        raise listed.wrong("are not scales of noise")
    return Separate(block, scales)


# --- what a record tells ---------------------------------------------------------------------------------


def unit_of(obligation: Obligation | View, block: Marginals) -> Unit:
    """The unit that a line is about: records of the table, or all that are kept of one person.

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
    return replace(unit, count=min(unit.count, known or unit.count))


def held_by(case: Case, source: str) -> None:
    """One keeper holds the table; where records of each person are kept, every line is about one person."""
    data, trust = case.frame.data, case.frame.trust
    if [(one.name, one.party) for one in data] != [(source, None)] or trust.kind != CURATOR.name:
        raise case.block.wrong("is about other data, or other trust, than the problem")
    kept = data[0].kept
    for asked in case.frame.obligations:
        wrong = wrong_person([(unit.kind, unit.count) for unit in asked.units], [kept])
        if wrong or (kept and kept.per_cell is not None):
            raise case.block.wrong(wrong or "keeps records cell by cell")


def seen_unit(case: Case, view: View, block: Marginals) -> Unit:
    """The unit of a view; refused for single records where which are kept depends on others."""
    unit = unit_of(view, block)
    if wrong_person([(unit.kind, unit.count)], [case.frame.data[0].kept]):
        raise Refused("is about other units than records of the table")
    return unit


def worst_move(block: Marginals, inverse: dict[Subset, Fraction]) -> Fraction:
    """The largest over D of the sum over S of q_S(D) / sigma_S^2: 2 F(none) - 2 F(D), F a polynomial in the columns.

    F(D) = sum over S of u_S prod_(S) t_i, t_i = -1 for columns of D and n_i - 1 else, u_S = 1 / (sigma_S^2 prod n_i).
    Columns of one size that F has in the same way are exchanged: of those only how many differ counts.
    """
    below = lcm(*(value.denominator * prod(block.sizes[i] for i in own) for own, value in inverse.items()))
    whole = {
        own: value.numerator * (below // (value.denominator * prod(block.sizes[i] for i in own)))
        for own, value in inverse.items()
    }
    used = sorted({i for own in inverse for i in own})
    if len(used) <= WORST_COLUMNS:
        values = _transformed(block, used, whole)
    else:
        values = _by_classes(block, _classes(block, used, whole), whole)
    return Fraction(2 * (values[0] - min(values)), below)


def _transformed(block: Marginals, used: list[int], whole: dict[Subset, int]) -> list[int]:
    """F at every set of columns that may differ, none first."""
    places = {column: k for k, column in enumerate(used)}
    values = [0] * 2 ** len(used)
    for own, value in whole.items():
        values[sum(1 << places[i] for i in own)] += value
    for column, k in places.items():
        step, size = 1 << k, block.sizes[column] - 1
        for start in range(0, len(values), 2 * step):
            for at in range(start, start + step):
                bare, held = values[at], values[at + step]
                values[at], values[at + step] = bare + size * held, bare - held
    return values


def _classes(block: Marginals, used: list[int], whole: dict[Subset, int]) -> list[list[int]]:
    """Columns by size; refused where F is not the same for all sets with as many columns of each."""
    sizes = sorted({block.sizes[i] for i in used})
    classes = [[i for i in used if block.sizes[i] == size] for size in sizes]
    known: dict[tuple[int, ...], tuple[int, int]] = {}
    for own, value in whole.items():
        kind = tuple(sum(block.sizes[i] == size for i in own) for size in sizes)
        same, count = known.get(kind, (value, 0))
        if same != value:
            raise Refused("has too many columns whose parts differ, of records that move")
        known[kind] = same, count + 1
    for kind, (_, count) in known.items():
        if count != prod(comb(len(some), k) for some, k in zip(classes, kind, strict=True)):
            raise Refused("has too many columns that are asked for in different ways, of records that move")
    if prod(len(some) + 1 for some in classes) > MOST_SHAPES:
        raise Refused("has too many columns of different sizes, of records that move")
    return classes


def _by_classes(block: Marginals, classes: list[list[int]], whole: dict[Subset, int]) -> list[int]:
    """F by how many columns of each class differ, none first."""
    sizes = [block.sizes[some[0]] for some in classes]
    kinds = {tuple(sum(block.sizes[i] == size for i in own) for size in sizes): value for own, value in whole.items()}
    most = [max(kind[c] for kind in kinds) for c in range(len(sizes))]
    tables = [
        [_elementary(len(some) - k, sizes[c] - 1, k, most[c]) for k in range(len(some) + 1)]
        for c, some in enumerate(classes)
    ]

    def below(c: int, left: dict[tuple[int, ...], int]) -> list[int]:
        if c == len(classes):
            return [left.get((), 0)]
        found = []
        for row in tables[c]:
            inner: dict[tuple[int, ...], int] = {}
            for kind, value in left.items():
                inner[kind[1:]] = inner.get(kind[1:], 0) + value * row[kind[0]]
            found += below(c + 1, inner)
        return found

    return below(0, kinds)


def _elementary(same: int, size: int, differing: int, most: int) -> list[int]:
    """Coefficients of (1 + size x)^same (1 - x)^differing up to x^most."""
    return [
        sum(
            comb(same, k - j) * size ** (k - j) * comb(differing, j) * (-1) ** j
            for j in range(max(0, k - same), min(k, differing) + 1)
        )
        for k in range(most + 1)
    ]


# --- the bound ------------------------------------------------------------------------------------------


def bound(obligations: tuple[Obligation, ...], block: Marginals, witness: Item, *, pure: bool = False) -> Fraction:
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
            mixed[table] = mixed.get(table, Fraction(0)) + share * weight
    costs = block.coefficients(list(mixed.items()))
    known: dict[Subset, Fraction] = dict.fromkeys(block.subsets, Fraction(0))
    total = Fraction(0)
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
            total += size * largest_mu_squared(asked.measure, pure, Item(mu.value, mu.place))
        if not listed:
            mu.same(None)
    if not total:
        raise lines.wrong("have no mass")
    with ctx.workprec(PRECISION):
        roots = sum(((ball(costs.get(own, Fraction(0))) * ball(b)).sqrt() for own, b in known.items()), arb(0))
        return max(end((roots * roots / ball(total)).lower()), Fraction(0))


def _columns(item: Item, block: Marginals) -> frozenset[int]:
    found = [one.integer(0, len(block.sizes) - 1) for one in item.items()]
    if not found or found != sorted(set(found)):
        raise item.wrong("is no set of columns in which two cells differ")
    return frozenset(found)
