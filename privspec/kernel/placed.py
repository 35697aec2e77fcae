"""What Laplace noise at places that are named is worth at least.

Whoever sees an output that shows one noisy number alone knows that number. Independent noise of scales b keeps a line
of pure epsilon only if the sum of |v_j| / b_j is at most epsilon for how far v each difference moves the numbers, and
so for mixtures s of them; sum c_j 2 b_j^2 is then at least 2 (sum (c_j s_j^2)^(1/3))^3 / epsilon^2 (Hölder), and of
sizes of errors, each of one noise, sum c_j b_j at least (sum (c_j s_j)^(1/2))^2 / epsilon.
"""

from __future__ import annotations

from fractions import Fraction

from privspec.kernel.core.linear import Matrix, Measured, Release
from privspec.kernel.core.numbers import ZERO, fraction, sqrt_down
from privspec.kernel.core.problem import Frame, PlanUnderCheck
from privspec.kernel.core.reading import JsonNode, Refused
from privspec.kernel.measures import PURE
from privspec.kernel.moves import units_of
from privspec.kernel.quality.linear import LinearRules, listed
from privspec.kernel.quality.stated import judge_loss
from privspec.kernel.rows import beside, laid_out, row_squares
from privspec.kernel.shifts import SCOPE as SHIFTS
from privspec.kernel.shifts import shifted
from privspec.kernel.sizes import cbrt_down

SCOPE = "laplace"


class PlacedRules(LinearRules):
    """The rules of linear answers, this bound on what noise at their places can be worth, and that of one number."""

    def judge(self, case: PlanUnderCheck) -> object:
        bound = case.claims.fields("views", "bound")[1]
        shown = BOUNDS.get(str(bound.value.get("scope"))) if isinstance(bound.value, dict) else None
        if shown is None:
            return super().judge(case)
        release, value, words = self.measured(case)
        derived, names = shown(case.frame, release, bound)
        judge_loss(case, value, derived, names, "such mechanism", words)
        return release


def placed(frame: Frame, release: Release, item: JsonNode) -> tuple[Fraction, tuple[str, ...]]:
    """What the weights of the units of a line prove of the loss, and the words for the mechanisms that it is about."""
    _, number, weights = item.fields("scope", "requirement", "weights")
    line = number.integer(0, len(frame.obligations) - 1)
    costs, moves = loads(frame, release, line)
    shares = [one.exact(0) for one in weights.items(len(moves))]
    if sum(shares) > 1:
        raise weights.wrong("are more than one together")
    moved = [sum((share * move[j] for share, move in zip(shares, moves, strict=True)), ZERO) for j in range(len(costs))]
    epsilon, pairs = frame.obligations[line].measure.figures({})["epsilon"], list(zip(costs, moved, strict=True))
    words = (f"independent Laplace noise at {listed([name for name, *_ in release.problem.sites or ()])}, unbiased",)
    if release.problem.errors.sizes:
        return sum((sqrt_down(cost * size) for cost, size in pairs), ZERO) ** 2 / epsilon, words
    return 2 * sum((cbrt_down(cost * size**2) for cost, size in pairs), ZERO) ** 3 / epsilon**2, words


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


BOUNDS = {SCOPE: placed, SHIFTS: shifted}
"""Bounds by their scope, beside those of quadratic forms."""
