"""What no rule whose averages are affine in the data is below, at the worst data (noise/notes/pulled.md).

A bound L on the loss of unbiased noise for a target T that rests on a linear functional G, so that noise around a map M
loses at least L (<G, M> / <G, T>)^2, bounds such noise around M u + shift as well. Draw the data at random, with the
middle of what is possible as their mean and the covariance C: squared biases are at least <G, M - T>^2 / K on average,
K = tr(G C^-1 G'). The sum is least, over <G, M>, at L Q / (L + Q) for Q = <G, T>^2 / K.

Bounds of worth/traces are of that form; so are those of worth/shifts, for each error by itself: noise that hides what
moves an answer by d has at least the share (d / D)^2 of what a move by D asks for.

The data may be any mixture: each input by itself, at either end of an interval, on an axis of a ball, or in one cell;
or, for a share of the time, all intervals, and balls of one dimension along the same axis, at ends by the signs of
normal numbers. Those of correlation r have the covariance 2 / pi arcsin(r) (Sheppard).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from flint import arb, arb_mat, ctx, fmpq, fmpq_mat

from privspec.kernel.core.linear import Linear, Matrix, Release, read_matrix
from privspec.kernel.core.numbers import BITS, ZERO, end, fraction, rational, sqrt_down
from privspec.kernel.core.problem import Frame, Obligation
from privspec.kernel.core.reading import JsonNode, Refused, frozen
from privspec.kernel.moves import units_of
from privspec.kernel.rows import gram, identity, laid_out, stacked, weighed
from privspec.kernel.strategies.dense import products
from privspec.kernel.worth import LowerBound
from privspec.kernel.worth.bias import CORNERS, middle_and_sets, moments
from privspec.kernel.worth.shifts import SCOPE as SHIFTS
from privspec.kernel.worth.shifts import reach, shown, single_errors
from privspec.kernel.worth.traces import PARTIES, priced_terms, proved, sent

SCOPE = "affine"
UNBIASED, AFFINE = ", unbiased", ", averages affine in the data"


@frozen
class AffineBound(LowerBound):
    """The sum, or the largest, of L Q / (L + Q) over some bounds L of unbiased noise, with their Q."""

    parts: tuple[tuple[LowerBound, Fraction], ...]
    worst: bool

    def at(self, lines: tuple[Obligation, ...]) -> Fraction:
        known = [(max(bound.at(lines), ZERO), bias) for bound, bias in self.parts]
        each = [loss * bias / (loss + bias) if loss else ZERO for loss, bias in known]
        return max(each) if self.worst else sum(each, ZERO)


@frozen
class End:
    """A coordinate that lies in a set of so many axes, on that of a number how far out, by a sign of numbers `root`."""

    place: int
    axis: tuple[int, int]
    amount: Fraction
    root: tuple[fmpq, ...]


@frozen
class Spread:
    """The covariance of random data around their middle.

    `own`: inverse variances, by coordinate, of data that are drawn apart; `counts`: what adds up; `alone`: the share of
    the time that intervals and balls are drawn apart too; `ends`: what their signs are those of otherwise.
    """

    own: dict[int, Fraction]
    counts: tuple[range, ...]
    alone: Fraction = Fraction(1)
    ends: tuple[End, ...] = ()

    @classmethod
    def of(cls, frame: Frame, block: Linear, needed: set[int], alone: Fraction, signs: JsonNode) -> Spread:
        """For the coordinates that are needed; `signs` (n, k): rows of which the numbers of the signs are products.

        Raises: Refused where data cannot be so.
        """
        if not 0 < alone <= 1 or block.vectors or any(unit.adding for line in frame.obligations for unit in line.units):
            raise Refused("bounds answers about data that cannot be drawn so")
        if any(data.kept or data.rule == "drop" for data in frame.data):
            raise Refused("bounds answers about records that may be left out")
        if block.law is not None:
            if alone < 1:
                raise Refused("bounds averages over a law by other data")
            return cls.of_law(block, needed)
        own, counts, ends = dict[int, Fraction](), list[range](), list[End]()
        cells = [(block.places[one.start], one.records) for one in block.held if one.cells]
        spans = {at: (range(at, at + len(alike.numbers)), records) for (at, alike), records in cells}
        rows = None if alone == 1 else read_matrix(signs, block.inputs, signs.extents(2)[1]).tolist()
        _, sets = middle_and_sets(block, needed)
        for one in sets:
            at, _ = one.corners[0][0]
            if one.kind == CORNERS and any(len(moves) > 1 for moves in one.corners):
                span, records = spans[at]
                counts.append(span)
                own |= {i: Fraction(len(span), (records or 1) ** 2) for i in span}
                continue
            size = len(one.corners)
            for axis, ((i, amount),) in enumerate(one.corners):
                if rows is not None and i in needed and any(rows[i]):
                    ends.append(End(i, (size, axis), amount, tuple(rows[i])))
                else:
                    own[i] = size / amount**2
        return cls(own, tuple(counts), alone, tuple(ends))

    @classmethod
    def of_law(cls, block: Linear, needed: set[int]) -> Spread:
        """That of the law over which the loss is an average: no other draw of the data is what is lost.

        Raises: Refused where some of what is needed does not vary.
        """
        own, counts = dict[int, Fraction](), list[range]()
        _, variance = moments(block)
        for held, law in zip(block.held, block.law or (), strict=True):
            at, one = block.places[held.start]
            span = range(at, at + len(one.numbers))
            if law.chances is not None:
                counts.append(span)
            for i in needed & set(span):
                # of counts that add up, n (diag p - p p') has the inverse 1 / (n p) where rows add up to 0
                known = variance([Fraction(int(j == i)) for j in range(block.inputs)])
                if law.chances is not None:
                    known = (held.records or 0) * law.chances[i - at]
                if not known:
                    raise Refused("bounds answers about data that do not vary")
                own[i] = 1 / known
        return cls(own, tuple(counts))

    def needs(self, rows: Matrix, weights: Sequence[Fraction]) -> Fraction:
        """At least the weighted sum of g C^-1 g' over rows g.

        Raises: Refused where the data do not vary so.
        """
        total = ZERO
        for entries, weight in zip(rows.tolist(), weights, strict=True):
            if any(sum((entries[i] for i in span), fmpq(0)) for span in self.counts):
                raise Refused("bounds answers about how many records there are, which everybody knows")
            total += weight * sum((fraction(entries[i]) ** 2 * own for i, own in self.own.items()), ZERO)
        return total + self._of_signs(rows, weights) if self.ends else total

    def _of_signs(self, rows: Matrix, weights: Sequence[Fraction]) -> Fraction:
        """The same of what lies at ends: its covariance is that of signs along one axis, and 0 along different ones."""
        entries = rows.tolist()
        with ctx.workprec(2 * BITS):
            lengths = [arb(sum((v * v for v in last.root), fmpq(0))).sqrt() for last in self.ends]
            found, share = arb_mat(identity(len(self.ends))), arb(rational(1 - self.alone)) * 2 / arb.pi()
            for i, one in enumerate(self.ends):
                for j, other in enumerate(self.ends[:i]):
                    if one.axis == other.axis:
                        product = sum((v * w for v, w in zip(one.root, other.root, strict=True)), fmpq(0))
                        found[i, j] = found[j, i] = share * _arcsin(arb(product) / (lengths[i] * lengths[j]))
            # in units of how far out each lies, of which it does so one time in as many as there are axes
            scaled = [[row[last.place] / rational(last.amount) for row in entries] for last in self.ends]
            right = arb_mat(fmpq_mat(scaled))
            try:
                solved = found.solve(right)
            except ZeroDivisionError as error:
                raise Refused("bounds answers by data of which some combination may not vary") from error
            total = arb(0)
            for row, own, weight in zip(*(m.transpose().tolist() for m in (solved, right)), weights, strict=True):
                each = zip(row, own, self.ends, strict=True)
                total += rational(weight) * sum((a * b * last.axis[0] for a, b, last in each), arb(0))
            return end(total.upper())


def _arcsin(value: arb) -> arb:
    """Of a correlation, of which the end of the ball may be beyond 1."""
    low, high = max(value.lower(), arb(-1)), min(value.upper(), arb(1))
    return low.asin().union(high.asin())


def affine(frame: Frame, release: Release, item: JsonNode) -> AffineBound:
    """What a witness for unbiased noise proves of answers that are pulled."""
    _, inner, alone, signs = item.fields("scope", "of", "alone", "signs")
    data = alone.exact(0), signs
    scope = dict(inner.entries()).get("scope", inner)
    if scope.value == SHIFTS:
        return _by_shifts(frame, release, inner, data)
    return _by_trace(frame, release, inner, data)


Data = tuple[Fraction, JsonNode]
"""The share of the time that all are drawn apart, and what the signs are otherwise."""


def _by_trace(frame: Frame, release: Release, item: JsonNode, data: Data) -> AffineBound:
    block, pure = release.problem, not release.noise.normal
    if block.errors.sizes or block.accuracy:
        raise item.wrong("is not about squares")
    found = proved(frame, release, item)
    scope, shares, prices, differences, vectors, _ = item.fields(
        "scope", "loss_weights", "prices", "differences", "vectors", "slack"
    )
    if scope.value not in ("errors", "inputs", PARTIES):
        raise scope.wrong("is not what answers that are pulled are bounded in")
    terms = priced_terms(block, shares, prices, pure)
    given = [dict(one.entries())["columns"] for one in differences.items()]
    columns = stacked([Matrix(0, block.inputs), *(read_matrix(one, one.extents(2)[0], block.inputs) for one in given)])
    image, inputs = laid_out(terms.errors.of(block.target)), scope.value == "inputs"
    moved = gram(image, terms.weights) if inputs else weighed([sqrt_down(weight) for weight in terms.weights], image)
    times = sent(str(scope.value), frame, block, columns)
    functional = read_matrix(vectors, moved.nrows(), columns.nrows()) * weighed(times, columns)
    trace, weights = sum(products(functional, moved), ZERO), [Fraction(1)] * moved.nrows()
    if inputs:
        functional, weights = image * functional, terms.weights
    needed = {j for row in functional.tolist() for j, v in enumerate(row) if v}
    needs = Spread.of(frame, block, needed, *data).needs(functional, weights)
    return AffineBound(_words(found.among), ((found, trace**2 / needs),), worst=False)


def _words(among: tuple[str, ...]) -> tuple[str, ...]:
    """For the classes of unbiased noise, those whose averages are affine in the data."""
    plain = (word.replace("unbiased mechanisms", "mechanisms").removesuffix(UNBIASED) for word in among)
    return tuple(f"{word}{AFFINE}" for word in plain)


def _by_shifts(frame: Frame, release: Release, item: JsonNode, data: Data) -> AffineBound:
    block, found = release.problem, list[tuple[LowerBound, Fraction]]()
    if block.errors.sizes or frame.trust.means.alone or release.excess != 1:
        raise item.wrong("is not about squares of noise at a curator")
    line = dict(item.entries())["requirement"].integer(0, len(frame.obligations) - 1)
    known = single_errors(frame, block, line) if block.size > 1 else {0: (block, reach(frame, block, line))}
    for one, own in known.values():
        if own.parts not in (None, 1):
            raise item.wrong("is about answers in steps")
        functional = _furthest(one, line, own.sensitivity)
        needed = {j for j, v in enumerate(functional.entries()) if v}
        needs = Spread.of(frame, block, needed, *data).needs(functional, [one.errors.weights[0]])
        reached = sum(products(functional, laid_out(one.target)), ZERO)
        if reached != own.sensitivity or one.errors.rows is not None:
            raise item.wrong("is about answers that single numbers do not move")
        found.append((shown(frame, one, item), (one.errors.weights[0] * reached) ** 2 / needs))
    if not found:
        raise item.wrong("is about no answer")
    return AffineBound(_words(tuple(one.among[0] for one, _ in found)[:1]), tuple(found), worst=block.worst)


def _furthest(one: Linear, line: int, most: Fraction) -> Matrix:
    """A mean of the differences that move an answer the most: no map moves as far, on average, as at its worst.

    Raises: Refused where units are not made of numbers, or several change at once.
    """
    row, total, count = [fraction(v) for v in laid_out(one.target).tolist()[0]], [ZERO] * one.inputs, 0
    for difference in one.surely(line):
        change = units_of(difference, one.places)
        if change.count > 1 or difference.apart is not None:
            raise Refused("is about several units at once")
        for unit, copies in change.units:
            if any(piece.shape != "box" or piece.along for piece in unit):
                raise Refused("is about units that are not made of numbers")
            moves = [(i, piece.amount * (1 if row[i] >= 0 else -1)) for piece in unit for i in piece.at]
            if sum((row[i] * amount for i, amount in moves), ZERO) == most:
                count += copies
                for i, amount in moves:
                    total[i] += copies * amount
    if not count:
        raise Refused("is about units that are not made of numbers")
    return fmpq_mat(1, one.inputs, [rational(value / count) for value in total])
