"""How far one unit moves what an observer sees of noisy linear answers, and what that proves. Bounds are never below.

Gaussian noise: the largest |B d| over the differences d, in deviations. Laplace noise: the largest sum of |(B d)_r| in
scales, over the answers that are seen, with a step of the lattice for each answer that is rounded onto it and moves.
K-norm noise, which is rounded together with the answers: the largest |B d|, in the scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import gcd

from flint import fmpq

from privspec.kernel import lengths, shares
from privspec.kernel.changes import Units, boxed
from privspec.kernel.core.linear import COUNTED, Difference, Matrix, Release, read_linear, read_matrix, read_release
from privspec.kernel.core.numbers import rational, sqrt_up
from privspec.kernel.core.problem import NOTHING, Bound, Case, Frame, View, read_guarantees
from privspec.kernel.core.reading import Item, Refused
from privspec.kernel.moves import Moves, pieces
from privspec.kernel.participation import in_turn, notes_of
from privspec.kernel.rows import chosen_rows, dot
from privspec.kernel.strategies import dense


def largest_square(strategy: Matrix, moves: Moves, scaling: Item = NOTHING) -> Fraction:
    """At least the largest squared length of strategy d over the differences d.

    `scaling`: positive numbers, one for each piece of each unit, that only help to bound units of many numbers.
    """
    listed, count = moves
    each = [NOTHING] * len(listed) if scaling.absent else scaling.items(len(listed))
    given = [
        None if own.absent else [c.exact(0) for c in own.items(len(boxed(unit)))]
        for (unit, _), own in zip(listed, each, strict=True)
    ]
    return dense.largest_square(strategy, Units(tuple(listed), count), given)


def largest_cost(
    answers: Matrix, scales: list[Fraction], steps: list[Fraction], moves: Moves, shared: dense.Shared | None = None
) -> Fraction:
    """At least the largest cost over the differences, as `dense.largest_cost` has it."""
    listed, count = moves
    return dense.largest_cost(answers, scales, steps, Units(tuple(listed), count), shared or {})


@dataclass(frozen=True, slots=True)
class Seen:
    """What an observer of a release sees: the answers `used`, or else Gaussian noise on a `mixture` of them.

    The covariance of a mixture is at least 1 / `slack`, in squared deviations of the noise.
    """

    used: list[int]
    mixture: Matrix | None = None
    slack: Fraction = Fraction(1)


def seen_by(release: Release, outputs: tuple[str, ...], *, public: bool, inverse: Item) -> Seen:
    """What whoever sees some outputs learns of the noisy answers; `public`: every answer is a message to all.

    Outputs that are rounded, and not their answers, are a mixture L (B u + noise) and nothing else. With an inverse K
    near a root of L L', whoever sees K L (B u + noise) sees as much, and that noise has a covariance K L L'K' that is
    at least 1 - e if |1 - K L L'K'| <= e < 1.
    """
    seen, everything = release.problem.rows_of(outputs), public or release.of_inputs
    if not inverse.absent and (everything or not release.round_outputs or len(seen) == release.problem.size):
        raise inverse.wrong("is given for a view that is no mixture")
    if everything:
        return Seen(list(range(release.strategy.nrows())))
    left = chosen_rows(release.reconstruction, seen)
    used = [r for r, column in enumerate(left.transpose().tolist()) if any(column)]
    if inverse.absent:
        return Seen(used)
    mixed = read_matrix(inverse, len(seen), len(seen)) * left
    gram = (mixed * mixed.transpose()).tolist()
    off = [v - (i == j) for i, row in enumerate(gram) for j, v in enumerate(row)]
    defect = sqrt_up(dot(off, off))
    if defect >= 1:
        raise inverse.wrong("is not near an inverse of what is seen")
    return Seen(used, mixed * release.strategy, 1 / (1 - defect))


def off_lattice(release: Release, used: list[int], difference: Difference) -> tuple[list[Fraction], int]:
    """The step of the lattice for each answer that may be no point of it, else 0; what a difference moves it in.

    Numbers of an input move by whole steps of its grid; those that come or go by what they are.
    """
    answers, moduli = release.strategy * rational(1 / release.grid), list[tuple[slice, fmpq]]()
    moved = list[tuple[slice, fmpq]]()
    for held, step in zip(release.problem.held, release.steps, strict=True):
        start, one = release.problem.places[held.start]
        at = slice(start, start + len(one.numbers))
        points = {step * held.width} | ({held.lower} if held.lower and not held.ball else set())
        moduli += [(at, rational(point)) for point in points]
        own = [part for part in difference.parts if held.start <= part.start < held.stop]
        apart = {step * held.width} | {p.amount + abs(p.middle or Fraction(0)) for p in own if p.shape not in COUNTED}
        moved += [(at, rational(point)) for point in apart]
    rows, whole = answers.tolist(), all((answers * point).numer_denom()[1] == 1 for point in {p for _, p in moduli})
    off = (not whole and any((v * point).q != 1 for at, point in moduli for v in rows[r][at]) for r in used)
    steps = [release.grid if one else Fraction(0) for one in off]
    if any(steps) or release.noise.law is None:
        return steps, 1
    multiples = [v * point for at, point in moved for row in rows for v in row[at] if v]
    return steps, 1 if any(one.q != 1 for one in multiples) else gcd(*(int(one.p) for one in multiples))


def reached(
    release: Release, seen: Seen, difference: Difference, scaling: Item = NOTHING, some: Moves | None = None
) -> Fraction:
    """At least mu^2 of Gaussian noise, delta of a law of steps, epsilon of others, for what is seen and differences."""
    strategy, noise, places = release.strategy, release.noise, release.problem.places
    if max(release.senders) > 1:
        shares.check_one(difference.count, [(part.length, places[part.start][1]) for part in difference.parts])
    answers = chosen_rows(strategy, seen.used) if seen.mixture is None else seen.mixture
    if noise.shape == "gaussian" and lengths.crowded(difference, places):
        return lengths.spread(answers, difference, places) * seen.slack / noise.scales[0] ** 2
    moves = some or pieces(difference, places)
    if noise.shape == "gaussian":
        return largest_square(answers, moves, scaling) * seen.slack / noise.scales[0] ** 2
    steps, apart = off_lattice(release, seen.used, difference)
    asked = release.problem.families
    if "geometric" in asked and "laplace" not in asked and any(steps):
        raise Refused("is not geometric noise: answers lie between the points of its lattice")
    if noise.shape in shares.SHAPES and any(steps):
        raise Refused("does not have all messages on the lattice of the shares")
    if noise.shape.startswith("laplace") or noise.law:
        shared = lengths.shared_among(release.problem, release.steps)
        cost = largest_cost(answers, [noise.scales[r] for r in seen.used], steps, moves, shared)
        return noise.law.delta_up(int(cost), apart) if noise.law else cost
    square = largest_square(strategy, moves, scaling)
    if noise.shape == "gaussian-shares":
        return shares.reached(square, noise.scales[0], noise.honest, release.grid)
    return sqrt_up(square, 100) / noise.scales[0]


def bound(
    release: Release, frame: Frame, outputs: tuple[str, ...], differences: tuple[Difference, ...], witness: Item
) -> tuple[Seen, Fraction]:
    """What whoever sees some outputs sees, and what is `reached`; no `witness` is believed."""
    inverse, scaling = witness.fields("inverse", "scaling")
    seen = seen_by(release, outputs, public=frame.trust.means.public, inverse=inverse)
    listed = [NOTHING] * len(differences) if scaling.absent else scaling.items(len(differences))
    each = (reached(release, seen, *pair) for pair in zip(differences, listed, strict=True))
    return seen, max(each, default=Fraction(0))


def bounds(release: Release, frame: Frame, views: Item) -> list[tuple[Seen, Fraction]]:
    """The same for every obligation."""
    helped = zip(frame.obligations, release.problem.differences, views.items(len(frame.obligations)), strict=True)
    return [bound(release, frame, asked.seen, differences, witness) for asked, differences, witness in helped]


def judge(case: Case, family: Item, executed: Item, views: Item) -> Release:
    """Every guarantee, from what is executed; the mechanism as it was read."""
    release = read_release(family, executed, read_linear(case.block, case.frame), case.frame)
    guarantees, answers = read_guarantees(case.guarantees, case.frame), sum(release.senders)
    for guarantee, (seen, found) in zip(guarantees, bounds(release, case.frame, views), strict=True):
        asked = guarantee.obligation
        group = notes_of([(unit.kind, unit.count) for unit in asked.units])
        if guarantee.because != (*release.noise.notes, *group):
            raise case.guarantees.wrong("rests on notes that do not fit the noise")
        mixed = "" if seen.mixture is None else ", mixed"
        shown = case.frame.trust.shown(seen=len(seen.used), answers=answers, mixed=mixed)
        case.says("view", True, f"whoever sees {' and '.join(asked.seen)} sees {shown}", guarantee.number)
        if asked.measure.each:
            continue
        least, limits = release.noise.figures(found), guarantee.asked.items()
        holds, figures = guarantee.holds(least), ", ".join(f"{key} = {float(value):.8g}" for key, value in limits)
        reach = " and ".join(f"{key} is {float(value):.8g} at most" for key, value in least.items())
        stated = " and ".join(f"{float(figure):.8g}" for figure in guarantee.achieved.values())
        tail = f"within the {stated} that is stated. This gives"
        tail = tail if holds else f"and {stated} is stated. This does not give"
        text = f"{', '.join(asked.outputs)}, {asked.neighbours}: {reach}, {tail} {asked.measure.name} with {figures}"
        case.says("privacy", holds, text, guarantee.number)
    return release


def let_through(case: Case, release: Release, view: View, outputs: tuple[str, ...], witness: Item) -> Bound:
    """What some outputs tell of a unit that no line is about, rounded up; None where it has no limit."""
    if view.difference.absent:
        witness.same({"inverse": None, "scaling": None})
        return None
    differences = release.problem.moved(view.difference, case.frame, view)
    _, found = bound(release, case.frame, outputs, differences, witness)
    return _figures(release, found)


def let_through_together(case: Case, release: Release, view: View, outputs: tuple[str, ...], witness: Item) -> Bound:
    """The same of several units at once: lengths add up in answers that several move, and squares in others."""
    known, alone = list[tuple[set[int], Fraction]](), list[Bound]()
    for one in view.each():
        alone.append(let_through(case, release, one, outputs, witness))
        if alone[-1] is None or not release.noise.gaussian:
            continue
        differences = release.problem.moved(one.difference, case.frame, one)
        seen, found = bound(release, case.frame, outputs, differences, witness)
        answers = chosen_rows(release.strategy, seen.used) if seen.mixture is None else seen.mixture
        places = [release.problem.places[held.start] for held in release.problem.held if held.name in one.wrt]
        at = [i for start, alike in places for i in range(start, start + len(alike.numbers))]
        rows, length = {r for r, row in enumerate(answers.tolist()) if any(row[i] for i in at)}, sqrt_up(found)
        for own, other in [pair for pair in known if pair[0] & rows]:
            known.remove((own, other))
            rows, length = rows | own, length + other
        known.append((rows, length))
    if None in alone or not release.noise.gaussian:
        return in_turn(alone)
    return _figures(release, sum((length**2 for _, length in known), Fraction(0)))


def _figures(release: Release, found: Fraction) -> Bound:
    least = release.noise.figures(found)
    return least if "mu" in least else {"delta": Fraction(0), **least}
