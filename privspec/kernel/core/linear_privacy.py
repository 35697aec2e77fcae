"""How far one unit moves what an observer sees of noisy linear answers, and what that proves. Bounds are never below.

Gaussian noise: the largest |B d| over the differences d, in deviations. Laplace noise: the largest sum of |(B d)_r| in
scales, over the answers that are seen, with a step of the lattice for each answer that is rounded onto it and moves.
K-norm noise: the largest |B d|, and the length of a vector of such steps, in the scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb, lcm

from flint import fmpz_mat

from privspec.kernel.core.case import Case
from privspec.kernel.core.implies import gaussian_proves, pure_proves
from privspec.kernel.core.linear import Cells, Matrix, Part, Release, Units, read_difference, read_linear, read_release
from privspec.kernel.core.numbers import sqrt_up
from privspec.kernel.core.problem import Frame, Guarantee, Unit, read_guarantees
from privspec.kernel.core.reading import Item, Refused

Scaling = list[list[Fraction]] | None
VERTICES = 16
"""Boxes of at most so many numbers are enumerated."""
GROUPS = 4096
"""Groups of units are listed up to so many."""
SQUARINGS, DIGITS = 40, 66
"""Powers by which a largest eigenvalue is bounded, and the binary digits of the first: one less after each."""
NOTES = {
    "gaussian": ["gaussian-exact", "rounded-gaussian", "post-processing"],
    "laplace": ["laplace", "discrete-laplace", "post-processing"],
    "knorm-l2": ["laplace", "knorm-l2", "post-processing"],
}
"""The proofs that a guarantee of each noise rests on."""


# --- what moves ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Piece:
    """What moves by itself in a unit: a number by at most `amount`, or a vector of that norm."""

    at: tuple[int, ...]
    shape: str
    amount: Fraction


def pieces(units: Units) -> tuple[list[list[Piece]], int]:
    """The pieces of every unit, and how many units change at once.

    Groups of units stand for units where there are few of them, and all their pieces are numbers.
    """
    runs = max(((part.stop - part.start) // part.length for part in units.parts), default=0)
    found = [[piece for part in units.parts for piece in _pieces(part, unit)] for unit in range(runs)]
    count = min(units.count, runs)
    if count > 1 and comb(runs, count) <= GROUPS and all(part.shape == "box" for part in units.parts):
        return [[piece for unit in some for piece in found[unit]] for some in _groups(runs, count)], 1
    return found, count


def _pieces(part: Part, unit: int) -> list[Piece]:
    start, size = part.start + unit * part.length, 1 if part.shape == "box" else part.dimension
    at = range(start, min(start + part.length, part.stop))
    return [Piece(tuple(at[i : i + size]), part.shape, part.amount) for i in range(0, len(at), size)]


def _groups(size: int, count: int) -> list[list[int]]:
    """Every choice of `count` of so many."""
    found: list[list[int]] = [[]]
    for _ in range(count):
        found = [[*some, i] for some in found for i in range(some[-1] + 1 if some else 0, size)]
    return found


# --- squared lengths ----------------------------------------------------------------------------------


def largest_square(strategy: Matrix, difference: Units | Cells, scaling: Scaling = None) -> Fraction:
    """At least the largest squared length of strategy d over the differences d.

    `scaling`: positive numbers, one for each piece of each unit, that only help to bound units of many numbers.
    """
    square, rows = strategy.unit**2, strategy.rows
    if isinstance(difference, Cells):
        cells = range(difference.start, difference.stop)
        if not difference.moving:
            return max(_squares(rows, cells), default=0) * square * difference.count**2
        gram = _gram(rows, list(cells))
        own = [row[i] for i, row in enumerate(gram)]
        moves = (own[i] + own[j] - 2 * row[j] for i, row in enumerate(gram) for j in range(i))
        return max(moves, default=0) * square * difference.count**2
    listed, count = pieces(difference)
    if all(len(unit) == 1 and len(unit[0].at) == 1 for unit in listed):
        sizes = _squares(rows, range(strategy.whole.ncols()))
        found = [sizes[piece.at[0]] * square * piece.amount**2 for (piece,) in listed]
    else:
        weights = scaling or [[piece.amount for piece in unit] for unit in listed]
        found = [_unit(rows, unit, own) * square for unit, own in zip(listed, weights, strict=True)]
    if count == 1:
        return max(found, default=Fraction(0))
    return sum(map(sqrt_up, sorted(found)[-count:]), Fraction(0)) ** 2


def _squares(rows: list[list[int]], at: range) -> list[int]:
    """Squared lengths of some columns, in whole numbers."""
    lengths = [0] * len(at)
    for row in rows:
        lengths = [length + v * v for length, v in zip(lengths, row[at.start : at.stop], strict=True)]
    return lengths


def _gram(rows: list[list[int]], at: list[int]) -> list[list[int]]:
    columns = fmpz_mat([[row[i] for i in at] for row in rows])
    return [[int(v) for v in row] for row in (columns.transpose() * columns).tolist()]


def _unit(rows: list[list[int]], unit: list[Piece], weights: list[Fraction]) -> Fraction:
    """The largest squared length of one unit, in squared whole numbers.

    With y = d / c, c positive and one number for each piece, |B d|^2 <= lambda |y|^2 <= lambda sum (amount / c)^2 for
    the largest eigenvalue lambda of c B'B c. Boxes of few numbers are enumerated, l1 balls are moved to their vertices.
    """
    unit, weights = [p for p in unit if p.amount], [w for p, w in zip(unit, weights, strict=True) if p.amount]
    gram = _gram(rows, [i for piece in unit for i in piece.at])
    if any(piece.shape == "l1" for piece in unit):
        own = iter([row[i] for i, row in enumerate(gram)])
        longest = [max(next(own) for _ in piece.at) * piece.amount**2 for piece in unit]
        return longest[0] if len(longest) == 1 else sum(map(sqrt_up, longest), Fraction(0)) ** 2
    few = sum(len(piece.at) for piece in unit) == len(unit) <= VERTICES
    scales = [p.amount if few else w for p, w in zip(unit, weights, strict=True) for _ in p.at]
    below = lcm(*(scale.denominator for scale in scales))
    whole = [int(scale * below) for scale in scales]
    if min(whole, default=1) <= 0:
        raise ValueError("a scaling that is not positive")
    scaled = [[a * v * b for v, b in zip(row, whole, strict=True)] for a, row in zip(whole, gram, strict=True)]
    if few:
        return Fraction(_vertex(scaled), below**2)
    reach = sum(((piece.amount / weight) ** 2 for piece, weight in zip(unit, weights, strict=True)), Fraction(0))
    return _eigenvalue(scaled) * reach / below**2


def _vertex(gram: list[list[int]]) -> int:
    """The largest s'Gs over vectors s of signs, one flipped after another (Gray's order)."""
    pulls, signs = [sum(row) for row in gram], [1] * len(gram)
    value = best = sum(pulls)
    for step in range(1, 2 ** max(len(gram) - 1, 0)):
        i = (step & -step).bit_length() - 1
        value -= 4 * (signs[i] * pulls[i] - gram[i][i])
        signs[i] = -signs[i]
        pulls = [pull + 2 * signs[i] * v for pull, v in zip(pulls, gram[i], strict=True)]
        best = max(best, value)
    return best


def _eigenvalue(gram: list[list[int]]) -> Fraction:
    """At least the largest eigenvalue of a positive semidefinite matrix G: a norm of G^(2^k), and its 2^k-th root.

    The digits that are dropped are less than one in each entry, and so at most the size in the spectral norm; what
    that does to a power is divided by its exponent in the end.
    """
    size, power = len(gram), fmpz_mat(gram)
    shifts: list[int] = []
    for _ in range(SQUARINGS):
        top = max(int(power[i, i]).bit_length() for i in range(size))
        shifts.append(max(0, top - DIGITS + len(shifts)))
        power = fmpz_mat(size, size, [int(v) >> shifts[-1] for v in power.entries()])
        power = power * power
    found = sqrt_up(Fraction(sum(int(v) ** 2 for v in power.entries())))
    for shift in reversed(shifts):
        found = (sqrt_up(found, DIGITS) + (size if shift else 0)) * 2**shift
    return found


# --- costs of Laplace noise ---------------------------------------------------------------------------


def largest_cost(answers: Matrix, scales: list[Fraction], steps: list[Fraction], difference: Units | Cells) -> Fraction:
    """At least the largest cost over the differences: the sum over answers of |move| in the scale of each.

    `steps`: that of the lattice where an answer may lie between its points and be rounded, else 0; it is paid where the
    answer moves.
    """
    below = lcm(*(scale.numerator for scale in scales))
    weights = [below // scale.numerator * scale.denominator for scale in scales]
    unit, rows = answers.unit / below, answers.rows
    columns, rounded = list(zip(*rows, strict=True)), any(steps)

    def length(move: tuple[int, ...], amount: Fraction) -> Fraction:
        return unit * amount * sum(abs(v) * w for v, w in zip(move, weights, strict=True))

    def step(moved: tuple[int, ...]) -> Fraction:
        paid = (s * w for v, s, w in zip(moved, steps, weights, strict=True) if v and s)
        return sum(paid, Fraction(0)) / below if rounded else Fraction(0)

    if isinstance(difference, Cells):
        some = columns[difference.start : difference.stop]
        if difference.moving:
            some = [tuple(x - y for x, y in zip(a, b, strict=True)) for i, a in enumerate(some) for b in some[:i]]
        return max((length(m, Fraction(1)) + step(m) for m in some), default=Fraction(0)) * difference.count
    totals, (listed, count) = [], pieces(difference)
    for unit_ in listed:
        total = Fraction(0)
        for piece in unit_:
            each = [length(columns[i], piece.amount) for i in piece.at]
            total += max(each) if piece.shape == "l1" else sum(each)
        at = [i for piece in unit_ for i in piece.at]
        totals.append(total + step(columns[at[0]] if len(at) == 1 else tuple(any(row[i] for i in at) for row in rows)))
    return sum(sorted(totals)[-count:], Fraction(0))


# --- what an observer sees ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class View:
    """What an observer of a release sees: the answers `used`, or Gaussian noise on `mixture` of standard deviation one.

    `slack`: a mixture is as good as `near`, times so much, is small: see `seen_by`.
    """

    used: list[int]
    mixture: Matrix | None = None
    near: Matrix | None = None
    slack: Fraction = Fraction(0)


def seen_by(release: Release, outputs: tuple[str, ...], *, public: bool, inverse: Item) -> View:
    """What whoever sees some outputs learns of the noisy answers; `public`: every answer is a message to all.

    Outputs that are rounded, and not their answers, are a mixture L (B u + noise) and nothing else. With X near a right
    inverse of L, |1 - L X| <= e < 1, the noise that moves as L B d is L' (L L')^-1 L B d at the least, which is not
    longer than X (L X)^-1 L B d, nor than |X L B d| + |X| e / (1 - e) |L B d|.
    """
    count = release.strategy.whole.nrows()
    seen = release.problem.rows_of(outputs)
    whole = len(seen) == release.problem.size or not release.round_outputs
    if (public or release.of_inputs or whole) and not inverse.absent:
        raise inverse.wrong("is given for a view that is no mixture")
    if public or release.of_inputs:
        return View(list(range(count)))
    rows = release.reconstruction.rows
    used = [r for r in range(count) if any(rows[i][r] for i in seen)]
    if inverse.absent:
        return View(used)
    back = Matrix(*inverse.matrix(count, len(seen)))
    # outputs times powers of two are the same view, and their inverse is easier to write
    digits = [max(map(abs, rows[i])).bit_length() for i in seen]
    shifted = [[v << max(digits) - own for v in rows[i]] for i, own in zip(seen, digits, strict=True)]
    left = Matrix(fmpz_mat(shifted), release.reconstruction.unit)
    product = left @ back
    off = [
        [(i == j) - int(v) * product.unit for j, v in enumerate(row)] for i, row in enumerate(product.whole.tolist())
    ]
    defect = sqrt_up(sum((v * v for row in off for v in row), Fraction(0)))
    if defect >= 1:
        raise inverse.wrong("is not near an inverse of what is seen")
    size = sqrt_up(Fraction(sum(int(v) ** 2 for v in back.whole.entries()))) * back.unit
    answers = left @ release.strategy
    return View(used, back @ answers, answers, size * defect / (1 - defect))


def off_lattice(release: Release, used: list[int]) -> list[Fraction]:
    """The step of the lattice for each answer that may lie between its points; 0 where all answers are points of it."""
    rows, found = release.strategy.rows, []
    moduli = []
    for held, step in zip(release.problem.held, release.steps, strict=True):
        points = {step * held.width} | ({held.lower} if held.lower and not held.ball else set())
        at = slice(held.start, held.stop)
        moduli += [(at, (release.strategy.unit * point / release.grid).denominator) for point in points]
    for r in used:
        off = any(v % whole for at, whole in moduli if whole > 1 for v in rows[r][at])
        found.append(release.grid if off else Fraction(0))
    return found


def reached(release: Release, view: View, difference: Units | Cells, scaling: Scaling) -> Fraction:
    """At least mu^2 of Gaussian noise, or epsilon of the others, for a view and a set of differences."""
    strategy, noise = release.strategy, release.noise
    if noise.shape == "laplace":
        scales, steps = [noise.scales[r] for r in view.used], off_lattice(release, view.used)
        return largest_cost(strategy.some(view.used), scales, steps, difference)
    if noise.shape == "knorm-l2":
        rounded = sum(map(bool, off_lattice(release, view.used)))
        square = largest_square(strategy, difference, scaling)
        return (_root(square) + release.grid * _root(Fraction(rounded))) / noise.scales[0]
    if noise.shape != "gaussian":
        raise Refused(f"nothing is known of noise of the shape {noise.shape}")
    if view.mixture is None or view.near is None:
        some = strategy if len(view.used) == strategy.whole.nrows() else strategy.some(view.used)
        return largest_square(some, difference, scaling) / noise.scales[0] ** 2
    length = _root(largest_square(view.mixture, difference, scaling))
    blur = view.slack * _root(largest_square(view.near, difference, scaling))
    return ((length + blur) / noise.scales[0]) ** 2


def _root(square: Fraction) -> Fraction:
    return sqrt_up(square, 100)


def bounds(release: Release, frame: Frame, views: Item) -> list[tuple[View, Fraction]]:
    """For each obligation what its observer sees, and the figure reached: mu^2 of Gaussian noise, epsilon of others.

    `views`: for each obligation what helps to bound it, which is not believed.
    Raises: Refused.
    """
    public, found = frame.trust == "nobody", []
    names = {one.name for one in release.problem.released}
    for number, item in enumerate(views.items(len(frame.obligations))):
        asked, differences = frame.obligations[number], release.problem.differences[number]
        if not set(asked.outputs) <= set(asked.seen) <= names or (public and set(asked.seen) != names):
            raise views.wrong(f"are of a problem that hides, line {asked.line}, what an observer sees")
        inverse, scaling = item.fields("inverse", "scaling")
        view = seen_by(release, asked.seen, public=public, inverse=inverse)
        listed = [None] * len(differences) if scaling.absent else scaling.items(len(differences))
        each = [reached(release, view, d, _scaling(one, d)) for d, one in zip(differences, listed, strict=True)]
        found.append((view, max(each, default=Fraction(0))))
    return found


def judge(case: Case, family: Item, executed: Item, views: Item) -> Release:
    """Every guarantee, from what is executed; the mechanism as it was read.

    Raises: Refused.
    """
    release = read_release(family, executed, read_linear(case.block, case.frame), case.frame)
    guarantees, answers = read_guarantees(case.guarantees, case.frame), release.strategy.whole.nrows()
    for guarantee, (view, found) in zip(guarantees, bounds(release, case.frame, views), strict=True):
        asked = guarantee.obligation
        if guarantee.because != (*NOTES[release.noise.shape], *_group(asked.units)):
            raise case.guarantees.wrong("rests on notes that do not fit the noise")
        shown = f"{len(view.used)} of {answers} noisy answers" + (", mixed" if view.mixture else "")
        shown = f"all {answers} messages" if case.frame.trust == "nobody" else shown
        case.says("view", True, f"whoever sees {' and '.join(asked.seen)} sees {shown}", guarantee.number)
        _conclude(case, guarantee, release.noise.shape == "gaussian", found)
    return release


def let_through(
    case: Case, release: Release, outputs: tuple[str, ...], wrt: tuple[str, ...], difference: Item, witness: Item
) -> dict[str, Fraction] | None:
    """What some outputs tell of a unit that no line is about, rounded up; None where it has no limit."""
    inverse, scaling = witness.fields("inverse", "scaling")
    if difference.absent:
        return None
    view = seen_by(release, outputs, public=case.frame.trust == "nobody", inverse=inverse)
    held = [one for one in release.problem.held if one.name in wrt]
    differences = [read_difference(one, held) for one in difference.items()]
    listed = [None] * len(differences) if scaling.absent else scaling.items(len(differences))
    pairs = zip(differences, listed, strict=True)
    found = max((reached(release, view, one, _scaling(help_, one)) for one, help_ in pairs), default=Fraction(0))
    return {"mu": _root(found)} if release.noise.shape == "gaussian" else {"epsilon": found, "delta": Fraction(0)}


def _group(units: tuple[Unit, ...]) -> tuple[str, ...]:
    return ("group-privacy",) if any(unit.count > 1 for unit in units) else ()


def _scaling(item: Item | None, difference: Units | Cells) -> Scaling:
    if item is None or item.absent:
        return None
    if isinstance(difference, Cells):
        raise item.wrong("scales what has no scale")
    listed, _ = pieces(difference)
    return [
        [one.exact(0) for one in own.items(len(unit))]
        for own, unit in zip(item.items(len(listed)), listed, strict=True)
    ]


def _conclude(case: Case, guarantee: Guarantee, gaussian: bool, found: Fraction) -> None:
    """The figure that a plan states covers what was found, and proves what is asked."""
    key = "mu" if gaussian else "epsilon"
    if set(guarantee.achieved) != {key}:
        raise case.guarantees.wrong(f"does not give {key} alone")
    said, measure = guarantee.achieved[key], guarantee.obligation.measure
    covered = found <= (said * said if gaussian else said)
    proves = gaussian_proves if gaussian else pure_proves
    holds = not measure.each and proves(measure.name, guarantee.asked, said * said if gaussian else said)
    figures = ", ".join(f"{name} = {float(value):.8g}" for name, value in guarantee.asked.items())
    reach = f"{key} is {float(found) ** (0.5 if gaussian else 1):.8g} at most"
    text = f"{', '.join(guarantee.obligation.outputs)}, {guarantee.obligation.neighbours}: {reach}"
    text += f", within the {float(said):.8g} that is stated" if covered else f", and {float(said):.8g} is stated"
    text += f", which gives {measure.name} with {figures}" if holds else f", which does not give {measure.name}"
    case.says("privacy", covered and holds, text, guarantee.number)
