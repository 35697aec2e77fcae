"""Plans about tables of counts; running totals or ranges along some columns: a strategy for each set of the others.

Columns along which some table is added up in order are `ordered`, their cells together M; all other columns split as in
`marginals`. With T a set of those, what is drawn is P_T (B_T x + N(0, 1)), x the counts by T and the ordered columns,
and tables are put together from estimates R_T of x in it (noise/notes/marginals.md, "Columns in order"):

    mu^2 = max over ordered cells m of sum_T p_T |B_T e_m|^2,      loss = sum_T tr(R_T' V_T R_T),
    V_T = sum over tables A that T is within of weight d_T / prod_(A - T) n_i  W_A' W_A,

d_T = prod_T (n_i - 1), W_A what A asks of the ordered cells. For every diagonal S and all Y_T with |V_T^(1/2) Y_T| <= 1
no Gaussian noise has a loss below (sum_T sqrt(p_T) tr(Y_T' V_T S))^2 / (mu^2 tr S^2).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import prod

from flint import arb, ctx, fmpq_mat, fmpz_mat

from privspec.kernel.allowed import largest_mu_squared
from privspec.kernel.core.linear import Matrix, read_matrix
from privspec.kernel.core.numbers import ball, end, fraction, rational, sqrt_up
from privspec.kernel.core.problem import Bound, Case, Guarantee, Obligation, Rules, Unit, View, read_guarantees
from privspec.kernel.core.reading import Item, Refused, read
from privspec.kernel.marginals import (
    AMONG,
    LAPLACE,
    NONE,
    NOTES,
    PRECISION,
    PURE,
    Marginals,
    Residuals,
    Separate,
    Subset,
    bound,
    held_by,
    read_residuals,
    read_separate,
    seen_unit,
    unit_of,
)
from privspec.kernel.participation import notes_of
from privspec.kernel.quality.stated import judge_loss
from privspec.kernel.rows import identity, products, row_squares

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


@dataclass(frozen=True, slots=True)
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
            found[ways] = found.get(ways, Fraction(0)) + worth
    known, places = dict[frozenset[tuple[Ways, Fraction]], int](), dict[Subset, tuple[int, Fraction]]()
    for own, weights in every.items():
        factor = sum(weights.values(), Fraction(0))
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


@dataclass(frozen=True, slots=True)
class Part:
    """Of a set of columns: what is made noisy, and what estimates the counts of the ordered cells from it."""

    strategy: Matrix
    reconstruction: Matrix


@dataclass(frozen=True, slots=True)
class Strategies:
    """What is executed: noise of deviation one on each answer of every strategy, rounded to multiples of `grid`."""

    block: Marginals
    parts: dict[Subset, Part]
    grid: Fraction
    output_grid: Fraction

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.block.released)

    def most(self, seen: tuple[Subset, ...]) -> Fraction:
        """The largest over the ordered cells of what one record in it adds to the parts of some sets of columns."""
        total = [NONE] * self.block.cells
        for own, part in self.parts.items():
            if own in seen:
                moved, share = part.strategy.transpose(), rational(self.block.share(own))
                squares = row_squares(moved, [Fraction(1)] * moved.ncols())
                total = [value + share * one for value, one in zip(total, squares, strict=True)]
        return fraction(max(total))

    def mu_squared(self, seen: tuple[Subset, ...], unit: Unit) -> Fraction:
        """The same of a unit; refused for records that move."""
        if not unit.adding:
            raise Refused("is about records that move between columns in order")
        return self.most(seen) * unit.count**2

    def losses(self) -> list[Fraction]:
        """The weighted sum of the variances of all tables."""
        kinds, found = kinds_of(self.block), Fraction(0)
        asked = [asked_of(self.block, weights) for weights in kinds.weights]
        for own, part in self.parts.items():
            kind, factor = kinds.places[own]
            found += factor * sum(products(asked[kind] * part.reconstruction, part.reconstruction), Fraction(0))
        return [found]

    def bias_squared(self) -> Fraction:
        """At least the square of what the average of a number may be off, for `COUNT` records in each ordered cell."""
        block, kinds, found = self.block, kinds_of(self.block), Fraction(0)
        one, added = identity(block.cells), fmpq_mat(1, block.cells, [1] * block.cells)
        grams = {ways: fmpq_mat(gram_of(block, ways)) for weights in kinds.weights for ways in weights}
        for own, part in self.parts.items():
            for ways in kinds.weights[kinds.places[own][0]]:
                if set(ways) == {"all"}:
                    off = added * part.reconstruction * part.strategy - added
                    moved = sum(products(off, off), Fraction(0))
                else:
                    off = part.reconstruction * part.strategy - one
                    moved = sum(products(grams[ways] * off, off), Fraction(0))
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
                for own, part in self.parts.items()
            ),
            Fraction(0),
        )
        return 4 * parts + self.output_grid**2 * self.most(self.block.subsets)


def read_strategies(block: Marginals, mechanism: Item) -> Strategies:
    """What a plan executes for a block with columns in order."""
    parts, grid, output_grid = mechanism.stating({"family": "ordered"}, "parts", "grid", "output_grid")
    listed = {}
    for own, item in zip(block.subsets, parts.items(len(block.subsets)), strict=True):
        strategy, reconstruction = item.stating({"columns": list(own)}, "strategy", "reconstruction")
        rows = strategy.extents(2)[0]
        if not 0 < rows <= block.cells:
            raise strategy.wrong("has no rows, or more than there are cells")
        listed[own] = Part(read_matrix(strategy, rows, block.cells), read_matrix(reconstruction, block.cells, rows))
    steps = grid.exact(), output_grid.exact()
    if min(steps) <= 0:
        raise mechanism.wrong("has a grid that is not positive")
    return Strategies(block, listed, *steps)


def read_executed(block: Item, mechanism: Item) -> Residuals | Separate | Strategies:
    """What a plan executes for a block: one family where columns are in order, one of two where none is."""
    found = read(Marginals, block)
    assert isinstance(found, Marginals)
    pure = not found.ordered and isinstance(mechanism.value, dict) and mechanism.value.get("family") == "laplace"
    if found.families and not ({"laplace", "geometric"} if pure else {"gaussian"}) & set(found.families):
        raise mechanism.wrong("is not a family of noise that the problem allows")
    return (read_strategies if found.ordered else read_separate if pure else read_residuals)(found, mechanism)


class MarginalRules(Rules):
    """How plans about tables of counts are judged."""

    def judge(self, case: Case) -> Residuals | Separate | Strategies:
        executed = read_executed(case.block, case.mechanism)
        block = executed.block
        held_by(case, block.source)
        for asked in case.frame.obligations:
            if set(asked.seen) != set(executed.outputs) or asked.wrt != (block.source,):
                raise case.block.wrong(f"hides, line {asked.line}, what an observer sees")
            if case.frame.data[0].rule == "drop" and not unit_of(asked, block).adding:
                raise case.block.wrong("replaces records of a table whose rule leaves records out")
        for guarantee in read_guarantees(case.guarantees, case.frame):
            conclude(case, guarantee, executed)
        self.averages(case, executed)
        (witness,) = case.claims.fields("bound")
        low, pure = None, isinstance(executed, Separate)
        if not witness.absent and block.ordered:
            low = ordered_bound(case.frame.obligations, block, witness)
        elif not witness.absent:
            low = bound(case.frame.obligations, block, witness, pure=pure)
        words = [block.loss, block.units, "worst" if block.worst else "expected"]
        among = "" if low is None else PURE if pure else AMONG
        judge_loss(case, max(executed.losses()), low, (among,), "such noise", words)
        case.accuracy.same([])
        case.fairness.same(None)
        return executed

    def averages(self, case: Case, executed: Residuals | Separate | Strategies) -> None:
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
        off = executed.bias_squared() * executed.most(executed.block.subsets)
        said = float(max(off, BIAS**2)) ** 0.5
        text = f"averages are what the problem asks for, within {said:.2g} standard deviations"
        case.says("unbiased", off <= BIAS**2, f"{text} (counts up to {COUNT})")

    def reach(self, case: Case, executed: object, view: View, outputs: tuple[str, ...], witness: Item) -> Bound:
        witness.same(None)
        assert isinstance(executed, Residuals | Separate | Strategies)
        try:
            unit = seen_unit(case, view, executed.block)
            if isinstance(executed, Separate):
                return {"epsilon": executed.epsilon(unit), "delta": Fraction(0)}
            found = executed.mu_squared(executed.block.seen(outputs), unit)
        except Refused:
            return None
        return None if found is None else {"mu": sqrt_up(found, 100)}


def conclude(case: Case, guarantee: Guarantee, executed: Residuals | Separate | Strategies) -> None:
    """What a plan states of a line covers what was found, and proves what is asked."""
    asked, said, block = guarantee.obligation, guarantee.achieved, executed.block
    unit = unit_of(asked, block)
    pure = isinstance(executed, Separate)
    name, power, sees = "mu", 2, f"the noisy parts of {len(block.subsets)} sets of columns and nothing else"
    if pure:
        name, power, sees = "epsilon", 1, "noisy counts, each by itself"
    found = executed.epsilon(unit) if isinstance(executed, Separate) else executed.mu_squared(block.subsets, unit)
    group = notes_of([(one.kind, one.count) for one in asked.units])
    if guarantee.because != (*(LAPLACE if pure else NOTES), *group) or set(said) != {name} or asked.measure.each:
        raise case.guarantees.wrong("rests on notes, or gives figures, that do not fit the noise")
    case.says("view", True, f"whoever sees {' and '.join(asked.seen)} sees {sees}", guarantee.number)
    stated, measure = said[name], asked.measure
    holds = found is not None and found <= stated**power and measure.proved_by(guarantee.asked, said)
    figures = ", ".join(f"{key} = {float(value):.8g}" for key, value in guarantee.asked.items())
    reach = "a part without noise moves" if found is None else f"{name} is {float(found) ** (1 / power):.8g} at most"
    tail = "gives" if holds else f"does not give, with the {float(stated):.8g} that is stated,"
    text = f"{', '.join(asked.outputs)}, {asked.neighbours}: {reach}, which {tail} {measure.name} with {figures}"
    case.says("privacy", holds, text, guarantee.number)


def ordered_bound(obligations: tuple[Obligation, ...], block: Marginals, witness: Item) -> Fraction:
    """At most the loss of all Gaussian noise that satisfies one line, by a nuclear norm for each V_T up to a factor."""
    line, mu, scales, parts = witness.fields("line", "mu", "scales", "parts")
    asked = obligations[line.integer(0, len(obligations) - 1)]
    sizes = [rational(value) for value in scales.array(block.cells).values()]
    if min(sizes) < 0 or not any(sizes):
        raise scales.wrong("are not numbers from 0 on")
    total = largest_mu_squared(asked.measure, False, mu) / unit_of(asked, block).count ** 2
    total *= sum((fraction(value) ** 2 for value in sizes), Fraction(0))
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
            found += share * ball(fraction(trace)) / ball(1 + sqrt_up(sum(products(off, off), Fraction(0)))).sqrt()
        return max(end((found * found / ball(total)).lower()), Fraction(0)) if found > 0 else Fraction(0)
