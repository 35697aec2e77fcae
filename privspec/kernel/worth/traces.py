"""The trace inequality: what no Gaussian noise is below, nor any unbiased mechanism of pure epsilon.

Bounds come from witnesses; never factor, multiply. For differences f of neighbours, what is seen moves by T f. Noise of
covariance S that meets a requirement has (T f)' S^+ (T f) <= mu^2, so for every z: mu^2 >= 2 z'T f - z'S z. With the
error terms E (each of weight w) in place of what is seen, and columns z, f of matrices Z, F:

    sum of w E[error^2] >= tr(Z' E T F)^2 / (kappa P)    wherever  Z Z' <= kappa diag(w).

P is the sum over columns of mu^2 times the squared gauge of f (f lies in that multiple of the convex hull of the
differences). The witness is Z = diag(sqrt w) U, or Z = diag(w) E T X; the defect of U, or of X'(E T)' w (E T) X, from
orthonormal columns (or rows) in Frobenius norm bounds kappa. Noise confined to columns m_k of cost c_k needs only
sum (m_k'z)^2 <= kappa c_k for each k. Accuracy lines join the loss at their prices, which are paid back at the end.

Sizes of errors: a proof for squares, Z with Z Z' <= kappa diag(u), proves sum C_j^2 / (u_j S_j) <= kappa P for the
trace C_j of each error term (scale the rows of Z one by one); so sum w_j sqrt(S_j) >= (sum (w_j C_j / sqrt(u_j))^(2/3)
)^(3/2) / sqrt(kappa P) by Hölder. With lines at prices beside it, the same by a multiplier (noise/notes/sizes.md).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from flint import arb, ctx, fmpq, fmpq_mat

from privspec.kernel.changes import COUNTED, PERSON, Piece, Room, Units
from privspec.kernel.core.linear import (
    Difference,
    Linear,
    Matrix,
    Measured,
    Owner,
    Places,
    Release,
    check_one,
    owners,
    read_matrix,
)
from privspec.kernel.core.numbers import BITS, ZERO, ball, end, fraction, sqrt_down, sqrt_up
from privspec.kernel.core.problem import AskedMeasure, Frame, Obligation
from privspec.kernel.core.reading import JsonNode, Refused, frozen
from privspec.kernel.moves import units_by_measure, units_of
from privspec.kernel.rows import beside, gram, identity, laid_out, row_squares, stacked, weighed
from privspec.kernel.strategies.dense import chosen_rows, products
from privspec.kernel.worth import LowerBound, listed
from privspec.kernel.worth.shifts import DirectionLaw, along, words_of_any_law


def largest_mu_squared(measure: AskedMeasure, pure: bool, stated: JsonNode) -> Fraction:
    """At least the mu^2 of every Gaussian release (every unbiased mechanism, if `pure`) that satisfies a measure.

    `stated`: a mu that is shown to be too large, where there is no closed form.
    """
    condition = measure.of.condition(measure.figures({}))
    if pure:
        stated.same(None)
    found = condition.largest_unbiased() if pure else condition.largest_mu_squared(stated)
    if found is None or measure.common is None or not measure.of.of_laws:
        raise stated.wrong("goes with a measure for which no bound is known")
    return found


def squared_trace(trace: arb, total: Fraction) -> Fraction:
    """At most a trace, squared, over what all differences cost; 0 of one that may be below 0."""
    return max(end((trace * trace / ball(total)).lower()), ZERO) if trace > 0 else ZERO


def variance_up(size: Fraction, probability: Fraction) -> Fraction:
    """At least the variance of all normal noise that does not pass a size, with a probability."""
    with ctx.workprec(256):
        return end(((ball(size) / ball(probability).erfinv()) ** 2 / 2).upper())


def variance_of_size_up(size: Fraction) -> Fraction:
    """At least the variance of all normal noise of which the size is no larger on average."""
    with ctx.workprec(256):
        return end((ball(size) ** 2 * arb.pi() / 2).upper())


# --- noise that each party draws alone, of any covariance in all that it holds ---------------------------

PARTIES, MESSAGES = "parties", "messages"
"""Scopes of bounds: what each party draws is of any covariance, or noise on each of its numbers."""
APART = "Gaussian noise that each party draws alone, unbiased"


def among(scope: str, frame: Frame, words: tuple[str, ...], pure: bool) -> tuple[str, ...]:
    """What a bound is about: `words`, shares of such noise (noise/notes/shares.md), or what each party draws alone."""
    if scope == PARTIES:
        return (APART,)
    return (f"shares of {words[-1 if pure else 0]}",) if frame.trust.means.shared else words


def hulls(differences: tuple[Difference, ...], places: Places) -> list[Units]:
    """Sets of differences with the hull of each: units, or every choice of units that are held apart by itself."""
    plain = [units_of(one, places) for one in differences if one.apart is None]
    apart = [units_of(one, places).grouped() for one in differences if one.apart is not None]
    return plain + [Units((unit,), 1) for some in apart for unit in some.units]


def owners_of(moves: Units) -> dict[int, tuple[int, Piece]]:
    """The unit and the piece that move each coordinate; of several units the last."""
    return {i: (u, one) for u, (unit, _) in enumerate(moves.units) for one in unit if one.along is None for i in one.at}


def gauge(moves: Units, owners: dict[int, tuple[int, Piece]], column: dict[int, fmpq]) -> Fraction | None:
    """The least factor by which the convex hull of the differences contains a column, rounded up; None if none does.

    Units of a class stand for each other: the hull has each of them at most as often as there are. `owners`: as
    `owners_of` has them; where several units have a coordinate, the last gives a factor that is large enough.
    """
    units, count = moves.units, moves.count
    moved: dict[tuple[int, int], tuple[Piece, dict[int, Fraction]]] = {}
    for i, a in column.items():
        if i not in owners:
            return None
        unit, piece = owners[i]
        moved.setdefault((unit, id(piece)), (piece, {}))[1][i] = fraction(a)
    shares: dict[int, Fraction] = {}
    kept: dict[int, list[tuple[dict[int, Fraction], Room, str]]] = {}
    joined = {u: as_one(units[u][0], column) for u, _ in moved if any(one.along for one in units[u][0])}
    if None in joined.values():
        return None
    for (unit, _), (piece, own) in moved.items():
        if piece.shape == "box" and unit in joined:
            share = joined[unit] or ZERO
        elif not piece.amount or (piece.shape == "swap" and sum(own.values(), ZERO)):
            return None
        elif piece.shape in PERSON:
            places = {i - piece.at[0]: a for i, a in own.items()}
            kept.setdefault(unit, []).append((places, piece.room, piece.shape))
            continue
        else:
            square = piece.shape == "l2"
            size = sqrt_up(sum((a * a for a in own.values()), ZERO)) if square else sum(map(abs, own.values()), ZERO)
            share = size / piece.amount / (1 + (piece.shape == "swap"))
        shares[unit] = max(shares.get(unit, share), share)
    for unit, records in kept.items():
        shares[unit] = max(shares.get(unit, ZERO), of_kept(records))
    alone = [share / units[unit][1] for unit, share in shares.items()]
    return max([*alone, sum(shares.values(), ZERO) / count], default=ZERO)


def as_one(unit: tuple[Piece, ...], column: dict[int, fmpq]) -> Fraction | None:
    """The least t for which numbers of a unit are s c_i + d_i with |s| <= t and |d_i| <= t h_i; None if there is none.

    c is what moves as one, h how far each number moves besides. Two intervals of s, (v_i - t h_i) / c_i to
    (v_i + t h_i) / c_i or -t to t, meet from a t on; all of them meet where every two do. Of those of one width the
    outer ones count.
    """
    reach = {piece.at[0]: piece.amount for piece in unit if piece.shape == "box" and piece.along is None}
    middles = {i: a for piece in unit if piece.along for i, a in zip(piece.at, piece.along, strict=True)}
    found, ends = ZERO, {Fraction(1): [ZERO, ZERO]}
    for i, most in reach.items():
        value, middle = fraction(column.get(i, fmpq(0))), middles.get(i, ZERO)
        if middle:
            place, width = value / middle, most / abs(middle)
            low, high = ends.get(width, [place, place])
            ends[width] = [min(low, place), max(high, place)]
        elif value and not most:
            return None
        elif value:
            found = max(found, abs(value) / most)
    for width, (low, _) in ends.items():
        for other, (_, high) in ends.items():
            if high > low and not width + other:
                return None
            if high > low:
                found = max(found, (high - low) / (width + other))
    return found


def mass(
    block: Linear, some: tuple[Difference, ...], columns: Matrix, given: JsonNode, times: list[Fraction] | None = None
) -> Fraction:
    """The sum of squared gauges of columns, which are the rows of a matrix, for the differences of a line.

    `times`: how often each counts.

    Of records that move from one cell to another only F F' matters: F stands for all pairs at once, F F' =
    sum p (e_i - e_j)(e_i - e_j)', if columns sum to zero and nothing is positive off the diagonal.
    """
    spaced = in_a_row(block, some, columns, given)
    if spaced is not None:
        return spaced
    found, rows, total = hulls(some, block.places), columns.tolist(), ZERO
    swaps = [piece for change in found for own, _ in change.units for piece in own if piece.shape == "swap"]
    if len(found) == len(swaps) == 1 and any(sum(map(bool, row)) > 2 for row in rows):
        cells, moment = swaps[0].at, (columns.transpose() * columns).tolist()
        outside = any(any(row[: cells[0]]) or any(row[cells[-1] + 1 :]) or sum(row) for row in rows)
        if outside or any(v > 0 for i, row in enumerate(moment) for j, v in enumerate(row) if i != j):
            raise given.wrong("is no mixture of differences of two cells")
        return fraction(sum(row[i] for i, row in enumerate(moment))) / (2 * swaps[0].amount ** 2)
    pairs = [(moves, owners_of(moves)) for moves in found]
    for row, often in zip(rows, times or [Fraction(1)] * len(rows), strict=True):
        column = {i: v for i, v in enumerate(row) if v}
        sizes = [gauge(*pair, column) for pair in pairs]
        known = [size for size in sizes if size is not None]
        if not known:
            raise given.wrong("is no difference of neighbours")
        total += often * min(known) ** 2
    return total


def mass_of_persons(
    block: Linear,
    each: tuple[AskedMeasure, ...],
    line: int,
    columns: Matrix,
    given: JsonNode,
    times: list[Fraction],
    *,
    pure: bool,
) -> Fraction:
    """The same times mu^2, for a line with figures for each party, whose own changes a column is one of.

    Raises: Refused where columns are no changes of one party, or figures have no largest mu in closed form.
    """
    (difference, *more) = block.surely(line)
    if more or difference.apart is not None:
        raise given.wrong("is about units of parties that are not told apart")
    known = {f"{one.name} {one.amounts}": one for one in each}
    kinds = [f"{one.name} {one.amounts}" for one in each]
    changes = units_by_measure(units_of(difference, block.places), block.places[difference.parts[0].start], kinds)
    squares = {kind: largest_mu_squared(known[kind], pure, JsonNode(None, given.place)) for kind in changes}
    pairs, total = {kind: (own, owners_of(own)) for kind, own in changes.items()}, ZERO
    for row, often in zip(columns.tolist(), times, strict=True):
        column = {i: v for i, v in enumerate(row) if v}
        sizes = {kind: gauge(*pair, column) for kind, pair in pairs.items()}
        costs = [size**2 * squares[kind] for kind, size in sizes.items() if size is not None]
        if not costs:
            raise given.wrong("is no difference of neighbours")
        total += often * min(costs)
    return total


def of_kept(moved: list[tuple[dict[int, Fraction], Room, str]]) -> Fraction:
    """The least factor by which the hull of what a person changes, and of its opposite, contains numbers in tables.

    What goes up and what goes down are within so many times what a person may have; where records are replaced both
    happen at once, else one or the other, and the factors add up.
    """
    up, down = (
        max(room.holds({i: sign * v for i, v in own.items() if sign * v > 0}) for own, room, _ in moved)
        for sign in (1, -1)
    )
    return max(up, down) if moved[0][2] == PERSON[1] else up + down


def grams(scope: str, frame: Frame, block: Linear, columns: Matrix, found: Matrix, moved: Matrix) -> list[Matrix]:
    """The Gram matrices of the vectors, columns of `found`, none of which may be more than kappa: one, or each party's.

    Where parties draw noise alone, what party i sends hides its differences by noise of a covariance S_i, and the noise
    in the answers is the sum: 2 z'T f - z'S_i z <= mu^2 for the columns of that party, and Z_i Z_i' <= kappa is enough.
    Raises: Refused where messages are not seen by all, or a difference is in what several parties hold.
    """
    left = found.transpose()
    if scope != PARTIES:
        inner = found * left if found.nrows() <= columns.nrows() else left * found
        return [left * (moved * found) if scope == "inputs" else inner]
    if not frame.trust.means.alone or not columns.nrows():
        raise Refused("bounds noise of single parties, and nobody adds any alone")
    own = dict[Owner, list[int]]()
    for row, name in enumerate(_whose(frame, block, columns)):
        own.setdefault(name, []).append(row)
    parts = [chosen_rows(left, rows) for rows in own.values()]
    return [one * one.transpose() if one.nrows() <= one.ncols() else one.transpose() * one for one in parts]


def _whose(frame: Frame, block: Linear, columns: Matrix) -> list[Owner]:
    """The party whose numbers each column, a row of a matrix, is a difference in; or the class whose members' it is."""
    owner = owners(frame, block)
    found = [{owner[i] for i, v in enumerate(row) if v} for row in columns.tolist()]
    if any(len(names) != 1 for names in found):
        raise Refused("bounds noise of single parties by a difference in what several of them hold")
    return [min(names) for names in found]


def sent(scope: str, frame: Frame, block: Linear, columns: Matrix, found: Matrix | None = None) -> list[Fraction]:
    """How many parties each column, a row of a matrix, stands for in a bound of noise that they draw alone.

    The members of a class have the same columns and vectors, one set each, and so traces and masses of them add up. A
    vector of theirs, a column of `found`, is about what one of them holds. Elsewhere each column counts once.
    """
    if scope not in (PARTIES, MESSAGES) or all(max(one.copies) == 1 for _, one in block.places.values()):
        return [Fraction(1)] * columns.nrows()
    for one in (one for line in range(len(block.differences)) for one in block.surely(line)):
        check_one(one.count, [(part.length, block.places[part.start][1]) for part in one.parts])
    whose = _whose(frame, block, columns)
    if found is not None and scope == MESSAGES and _whose(frame, block, found.transpose()) != whose:
        raise Refused("bounds noise of single parties by vectors in what others hold")
    return [Fraction(n) for _, n in whose]


# --- units of one input that lie apart: columns stand in a row for the vectors of units (noise/notes/streams.md) ---


def charged(rows: list[dict[int, Fraction]], moved: Difference, amount: Fraction, dimension: int) -> Fraction | None:
    """The sum of squared gauges of differences that columns, `rows` of numbers by place, make up; None if they do not.

    Up to `dimension` columns in turn are one difference, in which a unit moves by the vector of its numbers: as many
    as fit into one choice of units that change at once.
    """
    total, sizes, taken = ZERO, dict[int, Fraction](), 0
    for row in rows:
        if taken == dimension or not together({*sizes, *row}, moved):
            total, sizes, taken = total + max(sizes.values(), default=ZERO), {}, 0
        if not amount or not together(set(row), moved):
            return None
        sizes, taken = sizes | {i: sizes.get(i, ZERO) + v * v for i, v in row.items()}, taken + 1
    return (total + max(sizes.values(), default=ZERO)) / amount**2 if rows else total


def together(places: set[int], moved: Difference) -> bool:
    """Whether units at these places may change at once."""
    row, count, apart = sorted(places), moved.count, moved.apart or 1
    steps = [row[i + 1] - row[i] for i in range(len(row) - 1)]
    if moved.exactly:
        return not any(step % apart for step in steps) and sum(steps) < count * apart
    return len(row) <= count and min(steps, default=apart) >= apart


def in_a_row(block: Linear, some: tuple[Difference, ...], columns: Matrix, given: JsonNode) -> Fraction | None:
    """The sum of squared gauges of columns, the rows of a matrix, for a line about units that lie apart in one input.

    None for other lines, and where units have several numbers or count alike.
    """
    if len(some) != 1 or len(some[0].parts) > 1 or some[0].apart is None:
        return None
    (one,), (part,) = some, some[0].parts
    at, alike = block.places[part.start]
    if part.length > 1 or alike.counts != (1,):
        return None
    rows = [{i: fraction(v) for i, v in enumerate(row) if v} for row in columns.tolist()]
    inside = all(min(row, default=at) >= at and max(row, default=at) < at + alike.length for row in rows)
    found = charged(list(filter(None, rows)), one, part.amount, block.vectors or 1)
    if found is None or not inside:
        raise given.wrong("is no difference of neighbours")
    return found


def of_squares(errors: Measured, most: Fraction, chance: Fraction | None) -> tuple[list[Fraction], Fraction]:
    """An accuracy line of normal errors as one of squares: weights, and what their sum may be at most, rounded up."""
    if errors.sizes:
        return [w * w for w in errors.weights], variance_of_size_up(most)
    return list(errors.weights), most if chance is None else variance_up(most, chance)


def normal_size() -> Fraction:
    """At most the size of a standard normal error."""
    with ctx.workprec(2 * BITS):
        return end((2 / arb.pi()).sqrt().lower())


@frozen
class Terms:
    """The error terms of a proof: those of the loss, then those of lines at prices, which cost `paid` together.

    `weights`, in place of those of `errors`: of the squares that the proof is about; `sizes`: w^2 for every term of
    which sizes w |e| are added up, in normal sizes; `root`: whether the loss is the root of what the proof shows.
    """

    errors: Measured
    weights: list[Fraction]
    paid: Fraction
    sizes: list[Fraction]
    root: bool


def priced_terms(block: Linear, shares: JsonNode, prices: JsonNode, pure: bool) -> Terms:
    """The error terms of the loss and of the accuracy lines, their weights, and what prices cost.

    Of a worst case the terms share their weights; of a sum of sizes they have those that are given.
    """
    errors, sizes = block.errors, list[Fraction]()
    more, weights, paid = list[Measured](), list(errors.weights), ZERO
    if errors.sizes and pure:
        raise shares.wrong("are of a loss for which no bound is known")
    root = bool(errors.sizes and (block.worst or len(weights) == 1))
    if errors.sizes:
        sizes = [w * w * normal_size() ** 2 for w in weights]
    if root:
        weights, sizes = sizes, []
    if block.worst or sizes:
        given = [share.exact(0) for share in shares.items(len(weights))]
        if sum(given) != 1 if block.worst else min(given) <= 0:
            raise shares.wrong("do not sum to one" if block.worst else "are not positive")
        weights = [share * w for share, w in zip(given, weights, strict=True)] if block.worst else given
    else:
        shares.same(None)
    for price, (line, most, *_, chance) in (
        [] if prices.absent else zip(prices.items(len(block.accuracy)), block.accuracy, strict=True)
    ):
        cost, (own, square) = price.exact(0), of_squares(line, most, chance)
        if cost and (root or (pure and (line.sizes or chance is not None)) or (line.sizes and len(own) > 1)):
            raise price.wrong("is of a line for which no bound is known")
        more, weights, paid = [*more, line], weights + [cost * w for w in own], paid + cost * square
    if more:
        each = fmpq_mat([[int(i == j) for j in range(block.size)] for i in range(block.size)])
        rows = [v for one in (errors, *more) for v in laid_out(one.of(each)).entries()]
        errors = Measured(fmpq_mat(len(weights), block.size, rows), (Fraction(1),) * len(weights))
    return Terms(errors, weights, paid, sizes, root)


@frozen
class Worth:
    """What a proof shows at a power, the sum of masses times mu^2, which is times `kappa`.

    `trace`: of the terms whose squares count; `sizes`: the sum of (w C)^(2/3) / u^(1/3) over those whose sizes do.
    """

    trace: Fraction
    sizes: Fraction
    kappa: Fraction
    root: bool

    @property
    def exponent(self) -> Fraction | None:
        """Of the power that it falls with, which it is `amount` at the power 1 of; None for no power law."""
        if self.sizes and self.trace:
            return None
        return Fraction(1, 2) if self.root or self.sizes else Fraction(1)

    def at(self, power: Fraction) -> Fraction:
        """At least what is proved."""
        if not power or not self.kappa:
            return ZERO
        total = power * self.kappa
        if self.sizes and self.trace:
            return self._weighed(total)
        if self.sizes:
            return sqrt_down(self.sizes**3 / total, BITS)
        return sqrt_down(self.trace**2 / total, BITS) if self.root else self.trace**2 / total

    def _weighed(self, total: Fraction) -> Fraction:
        """Max over t of 1.5 (2 t)^(1/3) sizes + 2 sqrt(t) trace - t total, where a few steps of Newton's lead."""
        a, b, c = float(self.sizes), float(self.trace), float(total)
        root = ((a / c) ** 0.75 + b / c) / 2**0.5 + b / c
        for _ in range(60):
            # the slope by s = sqrt(t): 2^(1/3) a s^(-1/3) + 2 b - 2 c s
            slope, bend = 2 ** (1 / 3) * a * root ** (-1 / 3) + 2 * b - 2 * c * root, 2 * c
            bend += 2 ** (1 / 3) * a * root ** (-4 / 3) / 3
            root = max(root + slope / bend, root / 8)
        t = Fraction(root) ** 2
        return 3 * cbrt_down(2 * t) * self.sizes / 2 + 2 * Fraction(root) * self.trace - t * total


def cbrt_down(value: Fraction) -> Fraction:
    """At most the cube root of a number from 0 on, within about 2^-70 of it relatively."""
    if not value:
        return ZERO
    shift = max(0, 72 + (value.denominator.bit_length() - value.numerator.bit_length()) // 3 + 2)
    whole = (value.numerator << 3 * shift) // value.denominator
    root = 1 << -(-whole.bit_length() // 3)
    while (step := (2 * root + whole // root**2) // 3) < root:
        root = step
    return Fraction(root, 1 << shift)


@frozen
class TraceBound(LowerBound):
    """The loss is at least `times` what the worth is at the sum of masses times mu^2, less what is `paid`.

    `masses`: the number of a line, its mass, and the mu stated beside it; `personal`: the sum for lines with figures
    for each party. `pure`: about every unbiased mechanism of pure epsilon; with `laws`, one for each line, about noise
    of any law, whose square along a direction is what the law says.
    """

    worth: Worth
    paid: Fraction
    masses: tuple[tuple[int, Fraction, JsonNode], ...]
    pure: bool
    personal: Fraction = ZERO
    laws: tuple[DirectionLaw, ...] = ()

    def at(self, lines: tuple[Obligation, ...]) -> Fraction:
        power = self.personal
        for number, (line, size, mu) in enumerate(self.masses):
            least = self.laws[number].at(lines[line]) if self.laws else None
            if least == 0:
                return ZERO
            power += size * (1 / least if least else largest_mu_squared(lines[line].measure, self.pure, mu))
        return self.worth.at(power) - self.paid

    def restated(self, mus: JsonNode) -> TraceBound:
        given = zip(self.masses, mus.items(len(self.masses)), strict=True)
        return replace(self, masses=tuple((line, size, mu) for (line, size, _), mu in given))


def proved(frame: Frame, release: Release, item: JsonNode) -> TraceBound:
    """What a witness proves of the loss: of noise of any law, where it is one for unbiased mechanisms."""
    found, block = prove(frame, release, item), release.problem
    given = dict(item.entries())
    entries = [one.fields(*CHARGED, optional=("law",)) for one in given["differences"].items()]
    plain = given["prices"].absent and not block.errors.sizes and found.pure and not found.personal
    if not plain:
        if not all(one[-1].absent for one in entries):
            raise item.wrong("has laws where it is not about noise of any law")
        return found
    laws = {line: along(frame, block, line, one[-1]) for (line, *_), one in zip(found.masses, entries, strict=True)}
    words = words_of_any_law(frame, block, laws, release.excess)
    return found if words is None else replace(found, among=(words,), laws=tuple(laws.values()))


CHARGED = ("requirement", "mu", "columns")


def prove(frame: Frame, release: Release, item: JsonNode) -> TraceBound:
    """That the loss of noise like that of a release is at least worth.at(sum of masses times mu^2) - paid."""
    block, pure = release.problem, not release.noise.normal
    scope, shares, prices, *others = item.fields("scope", "loss_weights", "prices", "differences", "vectors", "slack")
    differences, vectors, slack = others
    asked = priced_terms(block, shares, prices, pure)
    errors, weights = asked.errors, asked.weights
    image, sites = errors.of(block.target), block.sites or ()
    words = _pure_words(block) if pure else ("Gaussian noise of any covariance, unbiased",)
    # what the rows of Z rest on, and how what they stand for moves; how confined noise reaches it, and the errors
    own, confined = [] if errors.rows is None else errors.rows.tolist(), None
    needs = [{i for i, v in enumerate(row) if v} for row in own] or [{i} for i in range(block.size)]
    if scope.value in ("errors", "parties")[: 1 if pure else 2]:
        moved = weighed([sqrt_down(weight) for weight in weights], image)
    elif scope.value == "inputs":
        needs, moved = [set().union(*needs)] * block.inputs, gram(image, weights)
    elif asked.sizes:
        raise scope.wrong("is not what a sum of sizes is bounded in")
    elif scope.value == "sites" and sites and not pure:
        words = (f"independent Gaussian noise at {listed([name for name, *_ in sites])}, unbiased",)
        maps = beside([one for _, one, _ in sites])
        needs, moved = [{i} for i in range(block.size)], laid_out(block.target)
        confined = maps, laid_out(errors.of(maps))
    elif scope.value == "messages" and frame.trust.means.alone and not pure:
        words, moved = ("independent Gaussian noise on each party's own values, unbiased",), identity(block.inputs)
        needs, confined = [set() for _ in range(block.inputs)], (moved, laid_out(image))
    else:
        raise scope.wrong("is not what the problem confines noise to")
    if not prices.absent:
        words = tuple(f"{word}, within the accuracy lines" for word in words)
    parts, masses, spans = list[Matrix](), list[tuple[int, Fraction, JsonNode]](), dict[int, range]()
    personal = ZERO
    for one in differences.items():
        number, mu, given, _ = one.fields(*CHARGED, optional=("law",))
        o = number.integer(0, len(frame.obligations) - 1)
        if o in spans:
            raise number.wrong("stands twice")
        part = read_matrix(given, given.extents(2)[0], block.inputs)
        figures, often = frame.obligations[o].measure.each, sent(scope.value, frame, block, part)
        if figures:
            mu.same(None)
            personal += mass_of_persons(block, figures, o, part, given, often, pure=pure)
        else:
            masses.append((o, mass(block, block.surely(o), part, given, often), mu))
        size = sum(one.nrows() for one in parts)
        spans[o] = range(size, size + part.nrows())
        parts.append(part)
    columns = stacked([Matrix(0, block.inputs), *parts])
    found = read_matrix(vectors, len(needs), columns.nrows())
    for o, span in spans.items():
        visible, rows = set(block.rows_of(frame.obligations[o].seen)), zip(found.tolist(), map(id, needs), strict=True)
        hidden = {key for key, need in dict(zip(map(id, needs), needs, strict=True)).items() if not need <= visible}
        if any(any(row[span.start : span.stop]) for row, key in rows if key in hidden):
            raise vectors.wrong("uses what an observer does not see")
    through, times = asked.sizes and scope.value == "inputs", sent(scope.value, frame, block, columns, found)
    left, right = (weighed(weights, image) * found, image) if through else (found, moved)
    traces = products(left, laid_out(right * weighed(times, columns).transpose()))
    if sum(traces) < 0:
        raise vectors.wrong("points away from the differences")
    if confined is None:
        kappa = 1 + max(_defect(one, slack) for one in grams(scope.value, frame, block, columns, found, moved))
    else:
        slack.same(None)
        loads = row_squares(confined[0].transpose() * found, [Fraction(1)] * columns.nrows())
        costly = list(zip(loads, row_squares(confined[1].transpose(), weights), strict=True))
        if any(load and not cost for load, cost in costly):
            raise vectors.wrong("rests on noise that costs nothing")
        kappa = fraction(max((load / cost for load, cost in costly if cost), default=fmpq(0)))
    if pure and not all(frame.obligations[line].measure.of.follows_from_pure for line in spans):
        words = tuple(word.replace(SAME_PURE, "under the same lines") for word in words)
    words = among(scope.value, frame, words, pure)
    triples = zip(asked.sizes, traces, weights, strict=False)
    sizes = sum((cbrt_down(size * trace**2 / weight) for size, trace, weight in triples), ZERO)
    squares = max(sum(traces[len(asked.sizes) :], ZERO), ZERO)
    found_worth = Worth(squares, sizes, kappa / release.excess, asked.root)
    return TraceBound(words, found_worth, asked.paid, tuple(masses), pure, personal=personal)


def _defect(gram: Matrix, slack: JsonNode) -> Fraction:
    """At least the norm of gram + W W' - 1 (Frobenius): then gram <= 1 + defect."""
    off = gram - identity(gram.nrows())
    if not slack.absent:
        free = read_matrix(slack, gram.nrows(), slack.extents(2)[1])
        off += free * free.transpose()
    return sqrt_up(sum(products(off, off), ZERO))


SAME_PURE = "of the same pure epsilon"


def _pure_words(block: Linear) -> tuple[str, ...]:
    """What a bound for pure epsilon is about: where all differences start from one world, every unbiased mechanism.

    Single numbers all rise from their lower ends, and records come to, or move between, cells that hold some.
    """
    units = [one for some in block.differences for one in some if one.parts[0].shape not in COUNTED]
    single = all(one.count == len(one.parts) == one.parts[0].length == 1 for one in units)
    records = all(one.records is None for one in block.held)
    every = (f"all unbiased mechanisms {SAME_PURE}",) if single and records else ()
    return (*every, f"additive noise {SAME_PURE}, unbiased")
