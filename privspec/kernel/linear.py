"""What additive noise is worth, from what is executed: averages, losses, covariances, places of noise; lower bounds.

The compiler states figures by these functions too; noise of irrational variance is known to 128 bits. Bounds are those
of worth/traces and worth/shifts, and one of Laplace noise at places that are named: whoever sees an output that shows
one noisy number alone knows that number. Independent noise of scales b keeps a line of pure epsilon only if the sum of
|v_j| / b_j is at most epsilon for how far v each difference moves the numbers, and so for mixtures s of them; sum c_j 2
b_j^2 is then at least 2 (sum (c_j s_j^2)^(1/3))^3 / epsilon^2 (Hölder), and of sizes of errors, each of one noise, sum
c_j b_j at least (sum (c_j s_j)^(1/2))^2 / epsilon.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from flint import fmpq

from privspec.kernel import rows as matrices
from privspec.kernel.core.linear import (
    Additive,
    InputLayout,
    Linear,
    Matrix,
    Measured,
    Release,
    read_release,
)
from privspec.kernel.core.linear_privacy import LinearPrivacy, judge_privacy, lattice_of
from privspec.kernel.core.numbers import ZERO, fraction, rational, sqrt_down
from privspec.kernel.core.problem import Frame, Obligation, PlanUnderCheck
from privspec.kernel.core.reading import JsonNode, Refused, frozen, read
from privspec.kernel.laws.laplace import Laplace
from privspec.kernel.measures import PURE
from privspec.kernel.moves import units_of
from privspec.kernel.rows import Rows, beside, identity, laid_out, moved_by, row_squares, weighed
from privspec.kernel.strategies.dense import Dense, chosen_rows
from privspec.kernel.worth import CLOSE, LowerBound, PriceableRules, judge_bounded, judge_lines, listed
from privspec.kernel.worth.shifts import LIMIT, limited, shifted
from privspec.kernel.worth.shifts import SCOPE as SHIFTS
from privspec.kernel.worth.sizes import expected_sizes, size_up
from privspec.kernel.worth.traces import cbrt_down, prove, proved

if TYPE_CHECKING:
    from privspec.kernel.worth.bias import Bias


@frozen
class Figures:
    """From independent noise of `variances` (k,) to the outputs: `noise` (m, k).

    `spread`: the variance of each output; `squares`: the expected square of the noise in each error term of the loss;
    `value`: the loss, at most where answers are pulled; `lines`: what each accuracy line bounds; `bias`: how far
    answers that are pulled are off on average.
    """

    noise: Rows
    variances: list[Fraction]
    spread: list[fmpq]
    squares: list[fmpq]
    value: Fraction
    lines: list[Fraction]
    bias: Bias | None = None

    @classmethod
    def of(cls, release: Release) -> Figures:
        """Exactly, from the matrices that are executed."""
        block, law = release.problem, release.noise
        noise = block.target * release.reconstruction if release.of_inputs else release.reconstruction
        each = law.variances(noise.ncols(), release.grid)
        variances = [v * release.excess * n for v, n in zip(each, release.senders, strict=True)]

        def squares(errors: Measured) -> tuple[list[fmpq], list[fmpq]]:
            moved = errors.of(noise)
            found = spread if errors.rows is None else row_squares(moved, variances)
            each = expected_sizes(release, laid_out(moved), found) if errors.sizes else found
            alike = all(weight == 1 for weight in errors.weights)
            return found, each if alike else [rational(w) * one for w, one in zip(errors.weights, each, strict=True)]

        spread = row_squares(noise, variances)
        own, terms = squares(block.errors)
        values = ((errors, fraction(sum(squares(errors)[1], fmpq(0))), chance) for errors, *_, chance in block.accuracy)
        lines = [
            value if chance is None else size_up(release, errors, laid_out(errors.of(noise)), value, chance)
            for errors, value, chance in values
        ]
        if release.shift is None:
            value = fraction(max(terms) if block.worst else sum(terms, fmpq(0)))
            return cls(noise, variances, spread, own, value, lines)
        from privspec.kernel.worth.bias import bias_of  # few plans pull what is released

        bias = bias_of(release, noise)
        return cls(noise, variances, spread, own, _with_bias(block, list(map(fraction, terms)), bias), lines, bias)


def _with_bias(block: Linear, terms: list[Fraction], bias: Bias) -> Fraction:
    """At most the loss for the worst data, or on average under a law of the data, of terms for the noise alone."""
    if bias.average is not None:
        trio = zip(terms, block.errors.weights, bias.average, strict=True)
        known = [term + weight * square for term, weight, square in trio]
        return max(known) if block.worst else sum(known, ZERO)
    if not block.worst and not block.errors.sizes:
        return sum(terms, bias.squares)
    power = 1 if block.errors.sizes else 2
    pairs = zip(terms, block.errors.weights, bias.terms, strict=True)
    each = [term + weight * size**power for term, weight, size in pairs]
    return max(each) if block.worst else sum(each, ZERO)


BIAS = Fraction(1, 10**6)
"""Share of a standard deviation by which an average may be off."""
ROUNDED = Fraction(1, 10**3)
"""Share of a standard deviation by which rounding to grids may move an output."""
COUNT = 1000
"""For inputs without bounds (counts): the size up to which a bias is judged."""
COVARIANCE_LIMIT = 128
"""Up to so many outputs a plan states their covariance."""
COMBINED = "combinations of the inputs"
SHORT = 10**6
"""Largest denominator of a size of which answers are whole numbers."""


class LinearRules(LinearPrivacy, PriceableRules):
    """Answers that are linear in the data, with additive noise: privacy first, then what the noise is worth."""

    claims = ("views", "bound")

    def read(self, frame: Frame, mechanism: JsonNode) -> Release:
        found = read_release(frame, mechanism)
        free = found.problem.biased and not (found.problem.accuracy or found.problem.vectors)
        if found.shift is not None and (not free or len(found.shift) != found.problem.size):
            raise Refused("has a shift of answers that must be right on average, or within limits, or of others")
        if found.domination is not None and found.shift is None:
            raise Refused("bounds biases of answers that are right on average")
        return found

    def free(self, executed: Release) -> bool:
        return not executed.problem.errors.weights

    def floor(self, executed: object) -> Fraction:
        return ZERO

    def proofs(self, frame: Frame, executed: Release, items: JsonNode) -> tuple[Sequence[LowerBound], tuple[str, ...]]:
        if executed.shift is not None:
            raise items.wrong("are about answers that are right on average")
        made = list[LowerBound]()
        for one in items.items():
            if dict(one.entries()).get("scope", one).value == LIMIT:
                made.append(limited(frame, executed, one))
                continue
            found = prove(frame, executed, one)
            if any(not mu.absent for *_, mu in found.masses):
                raise items.wrong("state a mu outside of a cell")
            made.append(found)
        if not made:
            return made, ("mechanisms of any kind",)
        if len({one.among for one in made}) != 1:
            raise items.wrong("are not about the same mechanisms")
        return made, made[0].among

    def judge(self, case: PlanUnderCheck) -> object:
        release, value, words = self.measured(case)
        bound = case.claims.fields("views", "bound")[1]
        shown: LowerBound | None = None
        if not bound.absent and release.shift is not None:
            from privspec.kernel.worth.affine import affine  # few plans pull what is released

            shown = affine(case.frame, release, bound)
        elif not bound.absent:
            scope = dict(bound.entries()).get("scope", bound)
            shown = BOUNDS.get(str(scope.value), proved)(case.frame, release, bound)
        judge_bounded(case, value, shown, "such mechanism", words)
        return release

    def measured(self, case: PlanUnderCheck) -> tuple[Release, Fraction, list[str]]:
        """What is executed, its loss, and how that is said; all but the bound is judged."""
        release = judge_privacy(case, self.read(case.frame, case.mechanism))
        if release.shift is not None and any(unit.adding for line in case.frame.obligations for unit in line.units):
            raise Refused("pulls answers about data of which nobody knows how many they are")
        block, found, stated = release.problem, Figures.of(release), read(Additive, case.mechanism)
        offsets(case, release, found)
        whole = matrices.covariance(found.noise, found.variances) if block.size <= COVARIANCE_LIMIT else None
        stated.output_covariance.same(None if whole is None else matrices.doubles(whole))
        stated.pulled.same(pulled(release, found))
        places(case, release, found, stated.sites)
        lines = [(one[2], one[3], one[1], value) for one, value in zip(block.accuracy, found.lines, strict=True)]
        judge_lines(case, lines, Fraction(1, CLOSE), stated=True)
        units = "squared " * (not block.errors.sizes) + "units of " + " and ".join(one.name for one in block.released)
        return release, found.value, [block.loss, units, "worst" if block.worst else "expected"]


def offsets(case: PlanUnderCheck, release: Release, found: Figures) -> None:
    """Over all inputs of the box averages are what is asked for, and grids move outputs by a share of their deviations.

    Numbers are rounded to the nearest point, vectors of a ball towards its centre; of a record each number that is
    added up, as shares of two cells. Constants enter as the problem says.
    """
    block, noise, reach, steps = release.problem, found.noise, list[Fraction](), list[Fraction]()
    held = list(zip(block.held, release.steps, strict=True))
    for one, grid in held:
        low, high = (-one.ball.radius, one.ball.radius) if one.ball else (one.lower, one.upper)
        most = Fraction(COUNT) if low is None or high is None else max(abs(low), abs(high))
        most = Fraction(one.records) if one.cells and one.records else most
        own = grid * one.width / (1 if one.ball else 2)
        if one.step is not None and (one.step / (grid * one.width)).denominator == 1:
            own = ZERO  # all values are points
        own *= 2 * sum(column.shared for column in one.columns) * (one.records or COUNT) if one.cells else 1
        reach += [most * copies for copies in block.places[one.start][1].numbers]
        steps += [own * copies for copies in block.places[one.start][1].numbers]
    if found.bias is None:
        known, off = [one for one in block.held if one.records], matrices.less(noise * release.strategy, block.target)
        share, errors = _share(_moved(block, off, reach, known), found.spread), block.errors.of(off)
        if errors is not off and errors.nrows():
            share = max(share, _share(_moved(block, errors, reach, known), found.squares))
        counts = f" (counts up to {COUNT})" if COUNT in reach else ""
        said = float(max(share, BIAS**2)) ** 0.5  # what is below hangs on the solver's processor
        text = f"averages are what the problem asks for, within {said:.2g} standard deviations{counts}"
        case.says("unbiased", share <= BIAS**2, text)
        image: Rows = block.target
    else:
        largest = float(max(found.bias.outputs))
        case.says("bias", True, f"answers are pulled towards public values: averages are off by {largest:.6g} at most")
        image = laid_out(noise * release.strategy)
    answers = Dense(release.strategy)
    whole = not any(steps) and not any(lattice_of(release).rounding(answers, list(range(answers.answers))))
    answer = ZERO if whole or release.round_outputs else release.grid / 2
    # points of the lattice, as they are combined, may be points of the grid of the outputs
    beyond = [release.grid / matrices.denominator(noise), *block.offset, *(release.shift or ())]
    kept = whole and all((one / release.output_grid).denominator == 1 for one in beyond)
    last = rational(ZERO if kept else release.output_grid / 2)
    tables = [one for one in block.held if one.cells]
    parts = _moved(block, image, steps, tables), moved_by(noise, [answer * n for n in release.senders])
    share = _share([last + a + b for a, b in zip(*parts, strict=True)], found.spread)
    counts = f" ({COUNT} records)" if any(h.cells and not h.records and g != 1 for h, g in held) else ""
    text = f"rounding to grids moves no output by more than {float(share) ** 0.5:.2g} of its standard deviation{counts}"
    case.says("rounding", share <= ROUNDED**2, text)


def pulled(release: Release, found: Figures) -> dict[str, object] | None:
    """Of each number: the share that is kept of what is asked for, what the rest is pulled to, the largest bias."""
    if release.shift is None or found.bias is None:
        return None
    image, target = laid_out(found.noise * release.strategy).tolist(), laid_out(release.problem.target).tolist()
    kept, towards = list[float](), list[float]()
    for own, asked, offset in zip(image, target, release.problem.offset, strict=True):
        size = sum((v * v for v in asked), fmpq(0))
        share = fraction(sum((a * b for a, b in zip(own, asked, strict=True)), fmpq(0)) / size) if size else Fraction(1)
        kept.append(float(share))
        towards.append(float(sum((fraction(v) * m for v, m in zip(asked, found.bias.middle, strict=True)), offset)))
    largest = list(map(float, found.bias.outputs))
    return {"kept": kept, "towards": towards, "largest_bias": largest, "by_law": found.bias.average is not None}


def _moved(block: Linear, matrix: Rows, sizes: list[Fraction], together: list[InputLayout]) -> list[fmpq]:
    """How far each row moves where columns move by at most so much, or one of some tables in place of all of them."""
    tables = [slice(at, at + len(one.numbers)) for at, one in (block.places[held.start] for held in together)]
    return moved_by(matrix, sizes, tuple(table for table in tables if any(sizes[table])))


def _share(moved: list[fmpq], squares: list[fmpq]) -> Fraction:
    """The largest square, as a share of that of its deviation; in its own units where that is 0."""
    return fraction(max(a * a / (b or 1) for a, b in zip(moved, squares, strict=True)))


def places(case: PlanUnderCheck, release: Release, found: Figures, sites: JsonNode) -> None:
    """Noise enters where the problem lets it, as stated: Laplace noise itself, Gaussian noise in its covariance."""
    stated, key = sites.items(), release.noise.entry
    if not key or not stated or not isinstance(stated[0].value, dict) or set(stated[0].value) != {"at", key}:
        sites.same(together(release, found))
        block = release.problem
        # the answer itself, where it is a single number, is a place like others
        alone = block.size == 1 and any(name == block.released[0].name for name, *_ in block.sites or ())
        case.says("sites", block.sites is None or alone, "one law of noise for all outputs together")
        return
    pairs = [site.fields("at", key) for site in stated]
    values = [one.double() for _, own in pairs for one in own.items()]
    names = [name for at, _ in pairs for name in at.text().split(" and ")]
    if len(set(names)) < len(names) or min(values) < 0:
        raise sites.wrong("are not places, each named once, with a variance or scale from 0 on for each number")
    text = f"independent noise at {listed(names)} is the {release.noise.title} that is executed"
    case.says("sites", enters(release, found, sites, names, values, case.frame.obligations), text)


def _idle(block: Linear, lines: Obligations) -> set[int]:
    """The numbers released that no line is about, or that depend on nothing that its units change."""
    coefficients = laid_out(block.target).tolist()
    busy = set[int]()
    for line in lines:
        places = [block.places[one.start] for one in block.held if one.name in line.wrt]
        moved = [i for at, one in places for i in range(at, at + len(one.numbers))]
        busy.update(row for row in block.rows_of(line.outputs) if any(coefficients[row][i] for i in moved))
    return set(range(block.size)) - busy


def together(release: Release, found: Figures) -> list[dict[str, object]]:
    """What a plan says of correlated Gaussian noise, a K-norm vector, laws of steps, and shares of Laplace noise."""
    outputs, spread = release.problem.released, [int(v.p) / int(v.q) for v in found.spread]
    if release.noise.normal:
        return [{"at": one.name, "covariance": "full", "variance": spread[one.start : one.stop]} for one in outputs]
    parameters = {"scale": str(release.noise.sizes(release.grid)[0]), "rows": found.noise.ncols()}
    names, shape = " and ".join(one.name for one in outputs), release.noise.FORM
    return [{"at": names, "shape": shape, "parameters": parameters, "grid": str(release.grid)}]


Obligations = tuple[Obligation, ...]
IDLE = Fraction(1, 10**6)
"""Most of the largest variance that noise in name only has."""


def enters(
    release: Release, found: Figures, item: JsonNode, names: list[str], values: list[float], lines: Obligations = ()
) -> bool:
    """Whether independent noise of these variances, or of these scales, at places is what is executed.

    Covariances differ by less than 1 / `CLOSE` of the deviations: of outputs, and of outputs with Laplace noise itself.
    What hides nothing for any of the `lines`, and no place reaches, may have noise in name only: every output is made
    of noisy answers. It is at most the share `IDLE` of the largest variance.
    """
    block, noise = release.problem, laid_out(found.noise)
    maps = {name: (one, copies) for name, one, copies in block.sites or ()}
    alone, inputs = max(release.senders) > 1, [(one.name, *block.places[one.start]) for one in block.held]
    # numbers that are added up have no place of their own, but with each party
    parts = [(own, block.target, at, tuple(one.numbers)) for own, at, one in inputs if alone or max(one.copies) == 1]
    parts += [(one.name, identity(block.size), one.start, (1,) * (one.stop - one.start)) for one in block.released]
    if block.sites is None:
        maps[COMBINED] = noise, release.senders
    for own, whole, at, copies in parts if block.sites is None else []:
        if own in names:
            maps[own] = chosen_rows(whole.transpose(), list(range(at, at + len(copies)))).transpose(), copies
    if not set(names) <= set(maps):
        raise item.wrong(f"are not right: the problem does not let noise enter at {listed(names)[:40]}")
    stated, scaled = beside([maps[name][0] for name in names]), release.noise.entry == "scale"
    counts = [n for name in names for n in maps[name][1]]
    if len(values) != len(counts) or (scaled and counts != list(release.senders)):
        return False
    if scaled:
        times, scales = _times(stated, noise), release.noise.sizes(release.grid)
        if values != [float(scale * size) for scale, size in zip(scales, times, strict=True)]:
            return False
        stated = weighed(times, stated.transpose()).transpose()
    variances = found.variances if scaled else [Fraction(v) * n for v, n in zip(values, counts, strict=True)]
    executed = matrices.covariance(noise, found.variances)
    there, numbers = matrices.covariance(stated, variances), range(executed.nrows())
    sizes = [executed[i, i] for i in numbers]
    nominal = {i for i in numbers if not there[i, i] and 0 < sizes[i] <= max(sizes) * rational(IDLE)}
    spared = nominal & _idle(block, lines) if nominal and lines else set()
    off, kept = (there - executed).tolist(), [i for i in numbers if i not in spared]
    close = all(off[i][j] ** 2 * CLOSE**2 <= sizes[i] * sizes[j] for i in kept for j in kept)
    if not scaled or not close:
        return close
    known, apart = [rational(v) for v in variances], zip(sizes, (stated - noise).tolist(), strict=True)
    return all(v * v * w * CLOSE**2 <= a for a, row in apart for w, v in zip(known, row, strict=True))


def _times(stated: Rows, noise: Rows) -> list[Fraction]:
    """How often each number of the noise is counted at its place: answers are whole numbers of a size."""
    found = list[Fraction]()
    for there, drawn in zip(zip(*stated.tolist(), strict=True), zip(*noise.tolist(), strict=True), strict=True):
        at = max(range(len(there)), key=lambda i: abs(there[i]))
        ratio = fraction(drawn[at] / there[at]) if there[at] and drawn[at] else Fraction(1)
        short = ratio.limit_denominator(SHORT)
        found.append(short if abs(short - ratio) * CLOSE <= abs(ratio) else ratio)
    return found


# --- Laplace noise at places that are named --------

SCOPE = Laplace.FORM


@frozen
class PlacedBound(LowerBound):
    """An amount over a power of the epsilon of one line."""

    line: int
    amount: Fraction
    power: int

    def at(self, lines: tuple[Obligation, ...]) -> Fraction:
        return self.amount / lines[self.line].measure.figures({})["epsilon"] ** self.power


def placed(frame: Frame, release: Release, item: JsonNode) -> PlacedBound:
    """What the weights of the units of a line prove of the loss."""
    _, number, weights = item.fields("scope", "requirement", "weights")
    line = number.integer(0, len(frame.obligations) - 1)
    costs, moves = loads(frame, release, line)
    shares = [one.exact(0) for one in weights.items(len(moves))]
    if sum(shares) > 1:
        raise weights.wrong("are more than one together")
    moved = [sum((share * move[j] for share, move in zip(shares, moves, strict=True)), ZERO) for j in range(len(costs))]
    words = (f"independent {Laplace.title} at {listed([name for name, *_ in release.problem.sites or ()])}, unbiased",)
    if release.problem.errors.sizes:
        sizes = [sqrt_down(cost * size) for cost, size in zip(costs, moved, strict=True)]
        return PlacedBound(words, line, sum(sizes, ZERO) ** 2, 1)
    squares = [cbrt_down(cost * size**2) for cost, size in zip(costs, moved, strict=True)]
    return PlacedBound(words, line, 2 * sum(squares, ZERO) ** 3, 2)


def loads(frame: Frame, release: Release, line: int) -> tuple[list[Fraction], list[list[Fraction]]]:
    """What the squared noise in each number costs, and how far each unit moves each number that shows by itself.

    Raises: Refused where a number that costs something does not show by itself, or units are not made of numbers.
    """
    block, asked = release.problem, frame.obligations[line]
    if not block.sites or block.worst or frame.trust.means.public or asked.measure.common is not PURE:
        raise Refused("the problem does not confine noise to places under one line of pure epsilon")
    if any(copies != 1 for *_, some in block.sites for copies in some):
        raise Refused("numbers that are added up have no place of their own")
    noise = beside([one for _, one, _ in block.sites])
    costs = _costs(block.errors, laid_out(block.errors.of(noise)))
    shows: dict[int, tuple[int, Fraction]] = {}
    for i in block.rows_of(asked.seen):
        used = [j for j in range(noise.ncols()) if noise[i, j]]
        if len(used) == 1:
            shows[used[0]] = i, abs(fraction(noise[i, used[0]]))
    if any(cost and j not in shows for j, cost in enumerate(costs)):
        raise Refused("some noise does not show by itself")
    units = [pieces for one in block.surely(line) for pieces, _ in units_of(one, block.places).units]
    if any(piece.shape != "box" for pieces in units for piece in pieces):
        raise Refused("units are not made of numbers that move by themselves")
    found, target = list[list[Fraction]](), laid_out(block.target)
    for pieces in units:
        step = [(k, piece.amount * share) for piece in pieces for edge in piece.edges for k, share in edge]
        own = {j: sum((fraction(target[i, k]) * v for k, v in step), ZERO) / a for j, (i, a) in shows.items()}
        found.append([abs(own.get(j, ZERO)) for j in range(len(costs))])
    return costs, found


def _costs(errors: Measured, moved: Matrix) -> list[Fraction]:
    """What the square of each noise costs; its size, where sizes of errors are added up."""
    if not errors.sizes:
        return list(map(fraction, row_squares(moved.transpose(), list(errors.weights))))
    rows = [[abs(fraction(v)) for v in row] for row in moved.tolist()]
    if any(sum(map(bool, row)) > 1 for row in rows):
        raise Refused("the size of an error of several noises is not a sum of theirs")
    pairs = zip(errors.weights, rows, strict=True)
    return [sum(column, ZERO) for column in zip(*([w * v for v in row] for w, row in pairs), strict=True)]


BOUNDS: dict[str, Callable[[Frame, Release, JsonNode], LowerBound]] = {SCOPE: placed, SHIFTS: shifted}
"""Bounds by their scope, beside those of quadratic forms."""
