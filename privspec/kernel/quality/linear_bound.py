"""Lower bounds on the loss of additive noise, and of unbiased mechanisms, from witnesses; never factor, multiply.

For differences f of neighbours, what is seen moves by T f. Noise of covariance S that meets a requirement has
(T f)' S^+ (T f) <= mu^2, so for every z: mu^2 >= 2 z'T f - z'S z. With the error terms E (each of weight w) in place of
what is seen, and columns z, f of matrices Z, F:

    sum of w E[error^2] >= tr(Z' E T F)^2 / (kappa P)    wherever  Z Z' <= kappa diag(w).

P is the sum over columns of mu^2 times the squared gauge of f (f lies in that multiple of the convex hull of the
differences). The witness is Z = diag(sqrt w) U, or Z = diag(w) E T X; the defect of U, or of X'(E T)' w (E T) X, from
orthonormal columns (or rows) in Frobenius norm bounds kappa. Noise confined to columns m_k of cost c_k needs only
sum (m_k'z)^2 <= kappa c_k for each k. Accuracy lines join the loss at their prices, which are paid back at the end.
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

from flint import arb, ctx

from privspec.kernel.core.linear import Linear, Matrix, Release, Units, read_matrix
from privspec.kernel.core.linear_privacy import Moves, Piece, units_of
from privspec.kernel.core.numbers import ball, exp_up, sqrt_down, sqrt_up
from privspec.kernel.core.problem import Frame, Measure
from privspec.kernel.core.reading import Item
from privspec.kernel.quality.linear_figures import beside, error_rows, identity, minus, row_squares, turned, weighed

BEST = "Gaussian noise of any covariance, unbiased"
MEETING = "Gaussian noise of any covariance that meets the accuracy lines, unbiased"


def largest_mu_squared(measure: Measure, pure: bool, stated: Item) -> Fraction:
    """At least the mu^2 of every Gaussian release (every unbiased mechanism, if `pure`) that satisfies a measure.

    Hammersley, Chapman and Robbins for pure epsilon: mu^2 = e^eps + e^-eps - 2. For (epsilon, delta) the mu that is
    stated is shown to be too large.
    """
    amounts, name = measure.figures({}), measure.name.replace("LDP", "DP")
    epsilon, order = amounts.get("epsilon", Fraction(0)), amounts.get("order", Fraction(1))
    squares = {"mu-GDP": amounts.get("mu", 0) ** 2, "rho-zCDP": 2 * amounts.get("rho", 0)}
    squares |= {"(order, epsilon)-RDP": 2 * epsilon / order}
    if name == "(epsilon, delta)-DP" and not pure:
        mu = stated.exact(0)
        if mu == 0 or not exceeds(epsilon, mu, amounts["delta"]):
            raise stated.wrong("is not shown to be more than the measure allows")
        return mu * mu
    stated.same(None)
    if pure and name in ("epsilon-DP", "(epsilon, delta)-DP"):
        return exp_up(epsilon) + exp_up(-epsilon) - 2
    if pure or name not in squares:
        raise stated.wrong("goes with a measure for which no bound is known")
    return Fraction(squares[name])


def exceeds(epsilon: Fraction, mu: Fraction, delta: Fraction) -> bool:
    """Whether Gaussian noise at distance mu surely has delta(epsilon) > delta; then so has every larger mu."""
    with ctx.workprec(512):
        eps, size, root = ball(epsilon), ball(mu), arb(2).sqrt()
        value = ((eps / size - size / 2) / root).erfc() - eps.exp() * ((eps / size + size / 2) / root).erfc()
        return bool(value / 2 > ball(delta))


def gauge(moves: Moves, owners: dict[int, tuple[int, Piece]], column: dict[int, Fraction]) -> Fraction | None:
    """The least factor by which the convex hull of the differences contains a column, rounded up; None if none does.

    Units of a class stand for each other: the hull has each of them at most as often as there are. `owners`: the unit
    and the piece that move a coordinate; of several units the last, which gives a factor that is large enough.
    """
    units, count = moves
    moved: dict[tuple[int, Piece], list[Fraction]] = {}
    for i, a in column.items():
        if i not in owners or not owners[i][1].amount:
            return None
        moved.setdefault(owners[i], []).append(a)
    shares: dict[int, Fraction] = {}
    for (unit, piece), own in moved.items():
        if piece.shape == "swap" and sum(own) != 0:
            return None
        square, size = sum((a * a for a in own), Fraction(0)), sum((abs(a) for a in own), Fraction(0))
        share = (sqrt_up(square) if piece.shape == "l2" else size) / piece.amount / (1 + (piece.shape == "swap"))
        shares[unit] = max(shares.get(unit, share), share)
    alone = [share / units[unit][1] for unit, share in shares.items()]
    return max([*alone, sum(shares.values(), Fraction(0)) / count], default=Fraction(0))


def mass(found: list[Moves], columns: Matrix, given: Item) -> Fraction:
    """The sum of squared gauges of columns, which are the rows of a matrix.

    Of records that move from one cell to another only F F' matters: F stands for all pairs at once, F F' =
    sum p (e_i - e_j)(e_i - e_j)', if columns sum to zero and nothing is positive off the diagonal.
    """
    rows, unit, total = columns.rows, columns.unit, Fraction(0)
    swaps = [piece for units, _ in found for own, _ in units for piece in own if piece.shape == "swap"]
    if len(found) == len(swaps) == 1:
        cells, moment = swaps[0].at, (turned(columns) @ columns).rows
        outside = any(any(row[: cells.start]) or any(row[cells.stop :]) or sum(row) for row in rows)
        if outside or any(v > 0 for i, row in enumerate(moment) for j, v in enumerate(row) if i != j):
            raise given.wrong("is no mixture of differences of two cells")
        return sum(row[i] for i, row in enumerate(moment)) * unit**2 / (2 * swaps[0].amount ** 2)
    owners = [
        {i: (u, piece) for u, (own, _) in enumerate(units) for piece in own for i in piece.at} for units, _ in found
    ]
    for row in rows:
        column = {i: v * unit for i, v in enumerate(row) if v}
        sizes = [gauge(*pair, column) for pair in zip(found, owners, strict=True)]
        known = [size for size in sizes if size is not None]
        if not known:
            raise given.wrong("is no difference of neighbours")
        total += min(known) ** 2
    return total


def proved(frame: Frame, release: Release, item: Item) -> tuple[Fraction, tuple[str, ...]]:
    """What a witness proves of the loss, and the words for the mechanisms of which none has less.

    Raises: Refused for a witness that does not fit.
    """
    block, pure = release.problem, release.noise.shape != "gaussian"
    scope, shares, prices, differences, vectors, slack = item.fields(
        "scope", "loss_weights", "prices", "differences", "vectors", "slack"
    )
    terms, weights, paid = _priced(block, shares, prices)
    image, places = error_rows(terms, block.target), block.sites or ()
    words = _pure_words(block) if pure else (BEST, MEETING)[0 if prices.absent else 1 :]
    # what the rows of Z rest on, and how what they stand for moves; how noise reaches it, and the errors
    needs, confined = [set(term) for term in terms], None
    if scope.text() == "errors":
        moved = weighed([sqrt_down(weight) for weight in weights], image)
    elif scope.text() == "inputs":
        needs, moved = [set().union(*needs)] * block.inputs, turned(image) @ weighed(weights, image)
    elif scope.text() == "sites" and places and not pure:
        words = (f"independent Gaussian noise at {listed([name for name, _ in places])}, unbiased",)
        maps = beside([map_ for _, map_ in places])
        needs, moved, confined = [{i} for i in range(block.size)], block.target, (maps, error_rows(terms, maps))
    elif scope.text() == "messages" and frame.trust == "nobody" and not pure:
        words, moved = ("independent Gaussian noise on each party's own values, unbiased",), identity(block.inputs)
        needs, confined = [set() for _ in range(block.inputs)], (moved, image)
    else:
        raise scope.wrong("is not what the problem confines noise to")
    if not prices.absent and MEETING not in words:
        raise prices.wrong("are for Gaussian noise of any covariance")
    columns, power, spans = list[dict[int, Fraction]](), Fraction(0), dict[int, range]()
    for one in differences.items():
        number, mu, given = one.fields("requirement", "mu", "columns")
        o = number.integer(0, len(frame.obligations) - 1)
        if o in spans:
            raise number.wrong("stands twice")
        part = read_matrix(given, given.extents(2)[0], block.inputs)
        moves = [units_of(one, block.places) for one in block.differences[o]]
        power += mass(moves, part, given) * largest_mu_squared(frame.obligations[o].measure, pure, mu)
        spans[o] = range(len(columns), len(columns) + part.whole.nrows())
        columns += [{i: v * part.unit for i, v in enumerate(row) if v} for row in part.rows]
    found = read_matrix(vectors, len(needs), len(columns))
    rows = found.rows
    for o, span in spans.items():
        visible = set(block.rows_of(frame.obligations[o].seen))
        blind = (row for row, need in zip(rows, needs, strict=True) if not need <= visible)
        if any(any(row[span.start : span.stop]) for row in blind):
            raise vectors.wrong("uses what an observer does not see")
    left, right = turned(found), error_rows(tuple(columns), turned(moved))
    pairs = zip(left.rows, right.rows, strict=True)
    trace = left.unit * right.unit * sum(sum(a * b for a, b in zip(*pair, strict=True)) for pair in pairs)
    if trace < 0:
        raise vectors.wrong("points away from the differences")
    if confined is not None:
        slack.same(None)
        loads = row_squares(turned(confined[0]) @ found, [Fraction(1)] * len(columns))
        costs = row_squares(turned(confined[1]), weights)
        if any(load and not cost for load, cost in zip(loads, costs, strict=True)):
            raise vectors.wrong("rests on noise that costs nothing")
        kappa = max((load / cost for load, cost in zip(loads, costs, strict=True) if cost), default=Fraction(0))
    elif scope.text() == "inputs":
        kappa = 1 + _defect(left @ (moved @ found), slack)
    else:
        kappa = 1 + _defect(found @ left if len(needs) <= len(columns) else left @ found, slack)
    return (trace * trace / (kappa * power) if kappa * power else Fraction(0)) - paid, words


def listed(names: list[str]) -> str:
    """In words."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _priced(
    block: Linear, shares: Item, prices: Item
) -> tuple[tuple[dict[int, Fraction], ...], list[Fraction], Fraction]:
    """The error terms of the loss and of the accuracy lines, their weights, and what prices cost.

    Of a worst case the terms share their weights; a line joins at its price.
    """
    terms, weights, paid = block.errors.terms, list(block.errors.weights), Fraction(0)
    if block.worst:
        given = [share.exact(0) for share in shares.items(len(weights))]
        if sum(given) != 1:
            raise shares.wrong("do not sum to one")
        weights = [share * w for share, w in zip(given, weights, strict=True)]
    else:
        shares.same(None)
    for price, (errors, bound, *_) in zip(
        [] if prices.absent else prices.items(len(block.accuracy)), block.accuracy, strict=not prices.absent
    ):
        terms += errors.terms
        weights += [price.exact(0) * w for w in errors.weights]
        paid += price.exact() * bound
    return terms, weights, paid


def _defect(gram: Matrix, slack: Item) -> Fraction:
    """At least the norm of gram + W W' - 1 (Frobenius): then gram <= 1 + defect."""
    size = gram.whole.nrows()
    off = minus(gram, identity(size))
    if not slack.absent:
        free = read_matrix(slack, size, slack.extents(2)[1])
        off = minus(off, Matrix(-(free.whole * free.whole.transpose()), free.unit**2))
    return (isqrt(sum(v * v for row in off.rows for v in row)) + 1) * off.unit


def _pure_words(block: Linear) -> tuple[str, ...]:
    """What a bound for pure epsilon is about: where all differences start from one world, every unbiased mechanism.

    Single numbers all rise from their lower ends, and records come to, or move between, cells that hold some.
    """
    units = [one for some in block.differences for one in some if isinstance(one, Units)]
    single = all(one.count == len(one.parts) == one.parts[0].length == 1 for one in units)
    records = all(one.records is None for one in block.held)
    every = ("all unbiased mechanisms of the same pure epsilon",) if single and records else ()
    return (*every, "additive noise of the same pure epsilon, unbiased")
