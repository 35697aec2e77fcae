"""Lower bounds on the loss of additive noise, and of unbiased mechanisms, from witnesses; never factor, multiply.

For differences f of neighbours, what is seen moves by T f. Noise of covariance S that meets a requirement has
(T f)' S^+ (T f) <= mu^2, so for every z: mu^2 >= 2 z'T f - z'S z. With the error terms E (each of weight w) in place of
what is seen, and columns z, f of matrices Z, F:

    sum of w E[error^2] >= tr(Z' E T F)^2 / (kappa P)    wherever  Z Z' <= kappa diag(w).

P is the sum over columns of mu^2 times the squared gauge of f (f lies in that multiple of the convex hull of the
differences). A witness gives F and U with Z = diag(sqrt w) U, or X with Z = diag(w) E T X; the defect of U, or of
X'(E T)' w (E T) X, from orthonormal columns (or rows) in Frobenius norm bounds kappa. Noise confined to columns m_k of
cost c_k needs only sum (m_k'z)^2 <= kappa c_k for each k. Accuracy lines join the loss at their prices, which are paid
back at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from flint import arb, ctx, fmpz_mat

from privspec.kernel.core.linear import Cells, Matrix, Places, Units, read_matrix
from privspec.kernel.core.linear_privacy import Piece, Unit, units_of
from privspec.kernel.core.numbers import ball, exp_up, sqrt_down, sqrt_up
from privspec.kernel.core.reading import Item
from privspec.kernel.quality.linear_figures import error_rows, identity, minus, row_squares, turned, whole_numbers

ROOT_BITS = 60


@dataclass(frozen=True, slots=True)
class Aim:
    """What a bound is about: what is seen of the inputs, errors with their weights, and what prices of lines cost.

    `maps`: the columns to which noise is confined, None where any covariance is meant.
    """

    target: Matrix
    terms: tuple[dict[int, Fraction], ...]
    weights: list[Fraction]
    paid: Fraction
    maps: Matrix | None = None

    @property
    def image(self) -> Matrix:
        """How the error terms move with the inputs."""
        return error_rows(self.terms, self.target)

    def hidden(self, seen: list[bool]) -> list[int]:
        """The error terms that depend on something that is not seen."""
        return [] if all(seen) else [r for r, term in enumerate(self.terms) if not all(seen[i] for i in term)]


@dataclass(frozen=True, slots=True)
class Difference:
    """Units of which up to `count` change at once; `at`: the unit and the piece of it that move a coordinate."""

    units: list[Unit]
    count: int
    at: dict[int, tuple[int, int]]

    @classmethod
    def of(cls, difference: Units | Cells, places: Places) -> Difference:
        """Of units that move one coordinate the last stands for it, which gives a factor that is large enough."""
        units, count = units_of(difference, places)
        pairs = ((unit, number, p) for unit, (own, _) in enumerate(units) for number, p in enumerate(own))
        return cls(units, count, {i: (unit, number) for unit, number, piece in pairs for i in piece.at})

    def piece(self, place: tuple[int, int]) -> Piece:
        return self.units[place[0]][0][place[1]]

    def gauge(self, column: dict[int, Fraction]) -> Fraction | None:
        """The least factor by which the convex hull of the differences contains a column, rounded up, if one does.

        Units of a class stand for each other: the hull has each of them at most as often as there are.
        """
        powers: dict[tuple[int, int], Fraction] = {}
        for i, a in column.items():
            if i not in self.at or self.piece(self.at[i]).amount == 0:
                return None
            square = self.piece(self.at[i]).shape == "l2"
            powers[self.at[i]] = powers.get(self.at[i], Fraction(0)) + (a * a if square else abs(a))
        shares: dict[int, Fraction] = {}
        for (unit, number), power in powers.items():
            piece = self.piece((unit, number))
            size = (sqrt_up(power) if piece.shape == "l2" else power) / piece.amount
            if piece.shape == "swap":
                if sum(column.values()):
                    return None
                size /= 2
            shares[unit] = max(shares.get(unit, size), size)
        alone = [share / self.units[unit][1] for unit, share in shares.items()]
        return max([*alone, sum(shares.values(), Fraction(0)) / self.count], default=Fraction(0))


@dataclass(frozen=True, slots=True)
class View:
    """An obligation in a bound: which released numbers it sees, its differences, its measure with the amounts."""

    seen: list[bool]
    differences: list[Difference]
    measure: str
    amounts: dict[str, Fraction]


@dataclass(frozen=True, slots=True)
class Columns:
    """Differences, each times the root of its weight: sparse columns of whole numbers, or one dense factor.

    `visible`: for each column which outputs its obligation sees; `mass`: P of the text above.
    """

    sparse: list[list[tuple[int, int]]]
    dense: fmpz_mat | None
    unit: Fraction
    visible: list[list[bool]]
    mass: Fraction

    def inner(self, vectors: Matrix, image: Matrix) -> Fraction:
        """tr(vectors' image F), exactly."""
        left, unit = turned(vectors).rows, vectors.unit * image.unit * self.unit
        if self.dense is not None:
            right = turned(Matrix(image.whole * self.dense, unit)).rows
            return unit * sum(_dot(a, b) for a, b in zip(left, right, strict=True))
        right = turned(image).rows
        return unit * sum(a * _dot(z, right[i]) for z, f in zip(left, self.sparse, strict=True) for i, a in f)


def _dot(left: list[int], right: list[int]) -> int:
    return sum(a * b for a, b in zip(left, right, strict=True) if a)


def largest_mu_squared(view: View, pure: bool, stated: Item) -> Fraction:
    """At least the mu^2 of every Gaussian release (every unbiased mechanism, if `pure`) that satisfies a measure.

    Hammersley, Chapman and Robbins for pure epsilon: mu^2 = e^eps + e^-eps - 2. For (epsilon, delta) the mu that is
    stated is shown to be too large.
    Raises: Refused.
    """
    amounts, name = view.amounts, view.measure.replace("LDP", "DP")
    if pure and name in ("epsilon-DP", "(epsilon, delta)-DP"):
        stated.same(None)
        return exp_up(amounts["epsilon"]) + exp_up(-amounts["epsilon"]) - 2
    if name == "(epsilon, delta)-DP":
        mu = stated.exact(0)
        if mu == 0 or not exceeds(amounts["epsilon"], mu, amounts["delta"]):
            raise stated.wrong("is not shown to be more than the measure allows")
        return mu * mu
    stated.same(None)
    if name == "mu-GDP" and not pure:
        return amounts["mu"] ** 2
    if name == "rho-zCDP" and not pure:
        return 2 * amounts["rho"]
    if name == "(order, epsilon)-RDP" and not pure:
        return 2 * amounts["epsilon"] / amounts["order"]
    raise stated.wrong("goes with a measure for which no bound is known")


def exceeds(epsilon: Fraction, mu: Fraction, delta: Fraction) -> bool:
    """Whether Gaussian noise at distance mu surely has delta(epsilon) > delta; then so has every larger mu."""
    with ctx.workprec(512):
        eps, size, root = ball(epsilon), ball(mu), arb(2).sqrt()
        value = ((eps / size - size / 2) / root).erfc() - eps.exp() * ((eps / size + size / 2) / root).erfc()
        return bool(value / 2 > ball(delta))


def lower_bound(aim: Aim, views: list[View], pure: bool, witness: list[Item]) -> Fraction:
    """What a witness proves of the loss: no mechanism of the scope that meets the obligations has less.

    Args: witness, the unit of the differences, these, the vectors, and what they miss of being orthonormal.
    Raises: Refused for a witness that does not fit.
    """
    unit, differences, vectors, slack = witness
    columns = _columns(aim.target.whole.ncols(), views, pure, unit, differences)
    if aim.maps is None:
        trace, kappa = _full(aim, columns, vectors, slack)
    else:
        slack.same(None)
        trace, kappa = _confined(aim, aim.maps, columns, vectors)
    if trace < 0:
        raise vectors.wrong("points away from the differences")
    if kappa == 0 or columns.mass == 0:
        return -aim.paid
    return trace * trace / (kappa * columns.mass) - aim.paid


def _columns(n: int, views: list[View], pure: bool, unit_: Item, given: Item) -> Columns:
    """The differences of every obligation that the witness names, each obligation once."""
    unit, sparse = unit_.exact(), list[list[tuple[int, int]]]()
    if unit <= 0:
        raise unit_.wrong("is not positive")
    visible, named = list[list[bool]](), set[int]()
    dense, mass = None, Fraction(0)
    for one in given.items():
        number, mu, columns, pairs = one.fields("requirement", "mu", "columns", "pairs")
        o = number.integer(0, len(views) - 1)
        if o in named or dense is not None:
            raise number.wrong("stands twice, or beside pairs")
        named.add(o)
        if pairs.absent:
            listed, found = _sparse(columns, n, unit, views[o])
            sparse += listed
        else:
            columns.same(None)
            if sparse:
                raise pairs.wrong("stands beside others")
            dense, found = _pairs(pairs, n, unit, views[o])
        mass += found * largest_mu_squared(views[o], pure, mu)
        visible += [views[o].seen] * ((len(sparse) if dense is None else dense.ncols()) - len(visible))
    if not visible:
        raise given.wrong("names no difference")
    return Columns(sparse, dense, unit, visible, mass)


def _sparse(item: Item, n: int, unit: Fraction, view: View) -> tuple[list[list[tuple[int, int]]], Fraction]:
    """Columns [[input, whole number], ...], and the sum of their squared gauges."""
    found: list[list[tuple[int, int]]] = []
    total = Fraction(0)
    for column in item.items():
        pairs = [pair.items(2) for pair in column.items()]
        entries = {at.integer(0, n - 1): amount.integer(None) for at, amount in pairs}
        if len(entries) != len(pairs):
            raise column.wrong("names an input twice")
        moved = {i: a * unit for i, a in entries.items() if a}
        known = [g for g in (difference.gauge(moved) for difference in view.differences) if g is not None]
        if not known:
            raise column.wrong("is no difference of neighbours")
        total += min(known) ** 2
        found.append(list(entries.items()))
    return found, total


def _pairs(item: Item, n: int, unit: Fraction, view: View) -> tuple[fmpz_mat, Fraction]:
    """F with F F' = sum p (e_i - e_j)(e_i - e_j)': columns sum to zero, and nothing is positive off the diagonal.

    Only what F F' is enters a bound, so F stands for all these pairs at once.
    """
    found = read_matrix(item, n, item.extents(2)[1])
    factor, step = found.whole, found.unit
    if step != unit:
        raise item.wrong("is not in the unit of the differences")
    known = [piece for one in view.differences for unit, _ in one.units for piece in unit if piece.shape == "swap"]
    if len(known) != 1:
        raise item.wrong("lists pairs where no record moves from one cell to another")
    cells, size = known[0].at, known[0].amount
    moment = Matrix(factor * factor.transpose(), unit).rows
    rows = Matrix(factor, unit).rows
    outside = any(any(row) for i, row in enumerate(rows) if i not in cells) or any(map(sum, zip(*rows, strict=True)))
    if outside or any(v > 0 for i, row in enumerate(moment) for j, v in enumerate(row) if i != j):
        raise item.wrong("is no mixture of differences of two cells")
    return factor, sum(moment[i][i] for i in range(n)) * unit**2 / (2 * size**2)


def _full(aim: Aim, columns: Columns, vectors: Item, slack: Item) -> tuple[Fraction, Fraction]:
    """tr(Z'E T F), and kappa with Z Z' <= kappa diag(w)."""
    through, array = vectors.fields("through_target", "array")
    image, width = aim.image, len(columns.visible)
    rows = image.whole.ncols() if through.flag() else image.whole.nrows()
    given = read_matrix(array, rows, width)
    hidden = {id(seen): aim.hidden(seen) for seen in columns.visible}
    if through.flag():
        if any(hidden.values()):
            raise vectors.wrong("uses errors that an observer does not see")
        weights, unit = whole_numbers(aim.weights)
        scaled = fmpz_mat([[w * v for v in row] for w, row in zip(weights, image.rows, strict=True)])
        moved = Matrix(image.whole.transpose() * scaled, image.unit**2 * unit) @ given
        return columns.inner(moved, identity(rows)), 1 + _defect(turned(given) @ moved, slack)
    listed = given.rows
    if any(listed[r][c] for c, seen in enumerate(columns.visible) for r in hidden[id(seen)]):
        raise vectors.wrong("uses errors that an observer does not see")
    roots = [int(sqrt_down(w) * 2**ROOT_BITS) for w in aim.weights]
    rooted = fmpz_mat([[root * v for v in row] for root, row in zip(roots, listed, strict=True)])
    gram = given @ turned(given) if rows <= width else turned(given) @ given
    return columns.inner(Matrix(rooted, given.unit / 2**ROOT_BITS), image), 1 + _defect(gram, slack)


def _defect(gram: Matrix, slack: Item) -> Fraction:
    """At least the norm of gram + W W' - 1 (Frobenius): then gram <= 1 + defect."""
    size = gram.whole.nrows()
    off = minus(gram, identity(size))
    if not slack.absent:
        free = read_matrix(slack, size, slack.extents(2)[1])
        off = minus(off, Matrix(-(free.whole * free.whole.transpose()), free.unit**2))
    return (isqrt(sum(v * v for row in off.rows for v in row)) + 1) * off.unit


def _confined(aim: Aim, maps: Matrix, columns: Columns, vectors: Item) -> tuple[Fraction, Fraction]:
    """tr(Z'T F), and kappa with sum (m'z)^2 <= kappa c for every column m of the maps and its cost c."""
    found = read_matrix(vectors, aim.target.whole.nrows(), len(columns.visible))
    rows = found.rows
    if any(rows[i][c] for c, seen in enumerate(columns.visible) for i, fine in enumerate(seen) if not fine):
        raise vectors.wrong("uses outputs that an observer does not see")
    loads = row_squares(turned(maps) @ found, [Fraction(1)] * len(columns.visible))
    costs = row_squares(turned(error_rows(aim.terms, maps)), aim.weights)
    if any(load and not cost for load, cost in zip(loads, costs, strict=True)):
        raise vectors.wrong("rests on noise that costs nothing")
    kappa = max((load / cost for load, cost in zip(loads, costs, strict=True) if cost), default=Fraction(0))
    return columns.inner(found, aim.target), kappa
