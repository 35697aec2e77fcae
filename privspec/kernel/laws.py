"""Parts of systems by the laws that they execute, and the delta of their product on one difference.

Finite laws count by pairs of laws: of each answer its log ratio and its chance, both rounded up, and both rounded down
for what is surely let through. Of every part one pair is picked, and the picks that let through most are what counts
(noise/notes/composition-exact.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, expm1, floor, inf, lcm, log, prod

from flint import arb, ctx, fmpq, fmpq_mat

from privspec.kernel.core.linear import Release
from privspec.kernel.core.numbers import ball, end, sqrt_down
from privspec.kernel.core.problem import Case
from privspec.kernel.core.reading import Refused
from privspec.kernel.lemmas.votes import Executed as Winner
from privspec.kernel.lemmas.votes_rules import MIXTURES
from privspec.kernel.lengths import image
from privspec.kernel.moves import Piece, pieces
from privspec.kernel.quality.tables import Executed as Drawn
from privspec.kernel.rows import laid_out

BITS, GRID, CHANCES = 320, 2**40, 2**60
"""Working precision; log ratios are whole multiples of 1 / GRID, chances of 1 / CHANCES."""
NEAR = 4
"""Log ratios that are no farther apart, in steps of the grid, count as the larger one."""
SPARE = 40
"""A pair counts for another that lets through up to 2^-SPARE of it more; its chances are raised by as much."""
LOOKED_AT, LISTED, ANSWERS, PICKS, ROWS = 2**18, 2**8, 2**10, 2**9, 2**7
"""Most log ratios of one part, pairs of it, answers of all parts together, picks of pairs, and rows of a strategy."""
LARGEST = 16
"""Largest log ratio of a finite law that is looked at."""
TIGHT, NONE = Fraction(1, 10**6), Fraction(0)
"""What is exact is not larger than what is surely let through by more than this share, of epsilon and of delta."""
Law = dict[int, int]
"""Of each log ratio, over GRID, its chance, over CHANCES."""
Pair = tuple[Law, Law]
"""What one law lets through beside another: rounded up, and rounded down."""
Ends = tuple[Fraction, Fraction]
"""At least a number, and at most."""


@dataclass(frozen=True, slots=True)
class Counted:
    """What a part lets through of one unit: mu^2 of Gaussian noise, or one of several pairs of laws, or Laplace noise.

    Of Laplace noise on one answer the epsilon, and the `step` of its lattice in scales. `own`: this is what the part
    executes, and not a law that lets through at least as much. `delta` comes on top.
    """

    own: bool
    mu_squared: Ends = (NONE, NONE)
    pairs: tuple[Pair, ...] = ()
    laplace: Ends = (NONE, NONE)
    step: Fraction = NONE
    delta: Fraction = NONE

    @property
    def epsilon_down(self) -> Fraction:
        """At most the largest log ratio of a law that is not Gaussian."""
        finite = Fraction(max((max(down, default=0) for _, down in self.pairs), default=0), GRID)
        return max(finite, self.laplace[1])


def counted(case: Case, executed: object, number: int, figures: dict[str, Fraction]) -> Counted:
    """How a part counts in its line of that number, of which it spends mu, rho, or epsilon and maybe a delta."""
    rules = LAWS.get(str(dict(case.block.entries())["form"].value))
    found = None if rules is None or "delta" in figures else rules(case, executed, number, figures)
    if found is not None:
        return found
    if "mu" in figures:
        return Counted(own=False, mu_squared=(figures["mu"] ** 2, NONE))
    if "rho" in figures:
        return Counted(own=False)  # of no known law; parts of a rho are only ever added up
    with ctx.workprec(BITS):
        chances = [
            ceil(end((1 / (1 + ball(q).exp())).upper()) * CHANCES) for q in (-figures["epsilon"], figures["epsilon"])
        ]
    response = dict(zip((ceil(q * GRID) for q in (figures["epsilon"], -figures["epsilon"])), chances, strict=True))
    return Counted(own=False, pairs=((response, {}),), delta=figures.get("delta", NONE))


# --- what is executed --------------------------------------------------------------------------------------------


def _of_noise(case: Case, executed: object, number: int, figures: dict[str, Fraction]) -> Counted | None:
    """Gaussian noise, and Laplace noise on one answer, where the noisy answers can be told from what is seen."""
    assert isinstance(executed, Release)
    block, noise, rows = executed.problem, executed.noise, executed.strategy.nrows()
    shows = executed.reconstruction
    if rows > ROWS or noise.shape not in ("gaussian", "laplace") or (noise.shape == "laplace" and rows > 1):
        return None
    if executed.of_inputs:
        shows = laid_out(block.target * shows)
    seen, listed = block.rows_of(case.frame.obligations[number].seen), shows.tolist()
    if case.frame.trust.means.public or fmpq_mat([listed[row] for row in seen]).rank() < rows:
        return None
    columns = executed.strategy.transpose().tolist()
    try:
        units = [unit for one in block.surely(number) for unit, _ in pieces(one, block.places)[0]]
    except Refused:
        return None
    square = max((_moved(columns, unit) for unit in units), default=NONE) / noise.scales[0] ** 2
    if "epsilon" not in figures:
        most = figures["mu"] ** 2 if "mu" in figures else 2 * figures["rho"]
        return Counted(own=True, mu_squared=(most, square)) if noise.gaussian else None
    if noise.gaussian:
        return None
    step = executed.grid / noise.scales[0]  # by one such an answer between points of the lattice may move less
    return Counted(own=True, laplace=(figures["epsilon"], max(NONE, sqrt_down(square) - step)), step=step)


def _moved(columns: list[list[fmpq]], unit: tuple[Piece, ...]) -> Fraction:
    """A squared length that a unit surely moves answers by: its pieces one by one, each the way that leads farthest."""
    at = [fmpq(0)] * len(columns[0])
    for piece in unit:
        most = Fraction(piece.most or piece.amount)
        ways = [image(columns, edge, most) for edge in piece.edges]
        if piece.shape == "swap":
            pairs = ((one, other) for i, one in enumerate(ways) for other in ways[:i])
            ways = [[a - b for a, b in zip(*pair, strict=True)] for pair in pairs]
        if piece.shape not in ("cell", "kept"):
            ways += [[-v for v in way] for way in ways]
        ends = ([a + b for a, b in zip(at, way, strict=True)] for way in ways)
        at = max(ends, key=lambda end: sum(v * v for v in end), default=at)
    square = sum((v * v for v in at), fmpq(0))
    return Fraction(int(square.p), int(square.q))


def _of_table(case: Case, executed: object, number: int, _: dict[str, Fraction]) -> Counted | None:
    """The laws of every two rows that a line compares, of what its observers see."""
    assert isinstance(executed, Drawn)
    table, line = executed.table, case.frame.obligations[number]
    every, seen = executed.task.compared[number].every(), table.seen(table.view(list(line.seen)))
    if 2 * len(every) * len(seen[0]) > LOOKED_AT or executed.task.rounds is not None:
        return None
    return _kept([(seen[a], seen[b]) for i, j, *_ in every for a, b in ((i, j), (j, i))], table.denominator)


def _of_votes(case: Case, executed: object, number: int, _: dict[str, Fraction]) -> Counted | None:
    """Of first choices and one voter who votes otherwise, where all others agree: others let through no more.

    The laws are affine in the counts of the others' votes, and what is let through is convex in both laws together.
    """
    assert isinstance(executed, Winner)
    vote, rule = executed.vote, executed.rule
    adding, votes, voters = vote.change(case.frame.obligations[number])
    choices, plain = range(vote.ballots.size), rule.family in MIXTURES and not rule.seen and executed.rounds is None
    if not plain or vote.ballots.borda or adding or votes != 1 or not voters or len(choices) < 2:
        return None
    found, whole = list[tuple[list[Fraction], list[Fraction]]](), 1
    for others in choices[:3]:
        rest = [Fraction((voters - 1) * (a == others)) for a in choices]
        one, other = (rule.law(tuple(n + (a == to) for a, n in enumerate(rest))) for to in (0, 1))
        found += [(one, other), (other, one)]
        whole = lcm(whole, *(p.denominator for p in (*one, *other)))
    return _kept([([int(p * whole) for p in one], [int(p * whole) for p in other]) for one, other in found], whole)


LAWS = {
    "linear": _of_noise,
    "table": _of_table,
    "votes": _of_votes,
}
"""By the form of a part's block; of all other parts only what they spend is known."""


# --- pairs of laws -----------------------------------------------------------------------------------------------


def _kept(listed: list[tuple[list[int], list[int]]], whole: int) -> Counted | None:
    """Pairs of laws, as shares of a whole, without those that let through no more than another; None if too many."""
    found: dict[tuple[tuple[int, int], ...], Pair] = {}
    for one, other in listed:
        pair = _pair(one, other, whole)
        if pair is None:
            return None
        found[tuple(sorted(pair[0].items()))] = pair
    if len(found) > LISTED:
        return None
    kept = list[Pair]()
    for pair in sorted(found.values(), key=lambda pair: -_apart(pair[0], 0)):
        if not any(_covers(other[0], pair[0]) for other in kept):
            kept = [other for other in kept if not _covers(pair[0], other[0])] + [pair]
    raised = ({log: chance + (chance >> SPARE) + 1 for log, chance in up.items()} for up, _ in kept)
    return Counted(own=True, pairs=tuple((up, down) for up, (_, down) in zip(raised, kept, strict=True)))


def _pair(one: list[int], other: list[int], whole: int) -> Pair | None:
    """What one law lets through beside another, neighbouring log ratios together; None where one has no limit."""
    if any(a and not b for a, b in zip(one, other, strict=True)):
        return None
    off = (2 + log(whole)) * 2.0**-48
    ratios = sorted(((log(a) - log(b), a) for a, b in zip(one, other, strict=True) if a), reverse=True)
    up, down, first = Law(), Law(), inf
    groups = list[list[tuple[float, int]]]()
    for ratio, chance in ratios:
        if abs(ratio) > LARGEST:
            return None
        if first - ratio > NEAR / GRID:
            groups.append([])
            first = ratio
        groups[-1].append((ratio, chance))
    for group in groups:
        high, low = ceil((group[0][0] + off) * GRID), floor((group[-1][0] - off) * GRID)
        chance = sum(chance for _, chance in group) * CHANCES
        up[high] = up.get(high, 0) - (-chance // whole)
        down[low] = down.get(low, 0) + chance // whole
    return up, down


def _apart(law: Law, at: int) -> float:
    """The sum of what chances have above e^at times the other law's, by e^at over GRID."""
    return -sum(chance * expm1((at - log) / GRID) for log, chance in law.items() if log > at)


def _covers(one: Law, other: Law) -> bool:
    """Whether one pair lets through as much as another at every ratio, but for 2^-SPARE of it.

    What is let through is convex and linear between the ratios of its own answers: these are looked at, and ratio 0.
    """
    if sum(other.values()) > sum(one.values()) * (1 + 2.0 ** -(SPARE + 1)):
        return False
    return all(_apart(other, at) <= _apart(one, at) * (1 + 2.0 ** -(SPARE + 1)) for at in {*one, *other})


# --- together ----------------------------------------------------------------------------------------------------


def delta_of(epsilon: Fraction, parts: list[tuple[Counted, int]]) -> Ends | None:
    """What independent parts, each drawn so many times, let through; None if that is too much work.

    Returns: at least delta at an epsilon, and at most delta at one that is smaller by `TIGHT` of it.
    """
    noise = [one for one, times in parts for _ in range(times) if one.laplace[0]]
    finite = [(one.pairs, times) for one, times in parts if one.pairs]
    if prod(len(pairs) for pairs, _ in finite) > PICKS or len(noise) > 1:
        return None
    found = list[Ends]()
    with ctx.workprec(BITS):
        for picked in _picks([pairs for pairs, _ in finite]):
            ends = []
            for side in (0, 1):
                square = sum((one.mu_squared[side] * times for one, times in parts), NONE)
                laws = [pair[side] for pair, (_, times) in zip(picked, finite, strict=True) for _ in range(times)]
                ends.append(_together(epsilon * (1 - side * TIGHT), square, _product(laws, up=not side), noise, side))
            found.append((end(ends[0].upper()), max(end(ends[1].lower()), NONE)))
    spared = sum((one.delta * times for one, times in parts), NONE)
    return max(up for up, _ in found) + spared, max(down for _, down in found)


def _picks(listed: list[tuple[Pair, ...]]) -> list[list[Pair]]:
    """Every choice of one from each."""
    found: list[list[Pair]] = [[]]
    for pairs in listed:
        found = [[*picked, one] for picked in found for one in pairs]
    return found


def _product(laws: list[Law], *, up: bool) -> dict[Fraction, Fraction]:
    """Log ratios of independent laws add up; where there are too many, they are rounded to coarser ones."""
    found, unit, scale = {0: 1}, 1, 1
    for law in laws:
        before, found, scale = found, {}, scale * CHANCES
        for known, chance in before.items():
            for more, own in law.items():
                found[known + more] = found.get(known + more, 0) + chance * own
        while len(found) > ANSWERS:
            before, found, unit = found, {}, 2 * unit
            for known, chance in before.items():
                rounded = unit * (-(-known // unit) if up else known // unit)
                found[rounded] = found.get(rounded, 0) + chance
    return {Fraction(known, GRID): Fraction(chance, scale) for known, chance in found.items()}


def _together(
    epsilon: Fraction, square: Fraction, law: dict[Fraction, Fraction], noise: list[Counted], side: int
) -> arb:
    """The sum over the answers of finite laws of what all others let through beyond what is left of epsilon."""
    found = arb(0)
    for ratio, chance in law.items():
        rest = epsilon - ratio
        if not noise:
            own = _gaussian(rest, square)
        elif side:
            own = (1 - ball(noise[0].step)) * _with_laplace(rest + 2 * noise[0].step, square, noise[0].laplace[1], NONE)
        else:
            own = _with_laplace(rest, square, noise[0].laplace[0], noise[0].step)
        found += ball(chance) * own
    return found


def _gaussian(epsilon: Fraction, square: Fraction) -> arb:
    """Delta of Gaussian noise of a squared mu at any sign of epsilon; without noise max(0, 1 - e^epsilon)."""
    if not square:
        return 1 - ball(epsilon).exp() if epsilon < 0 else arb(0)
    mu, rest = ball(square).sqrt(), ball(epsilon)
    return _normal(mu / 2 - rest / mu) - rest.exp() * _normal(-mu / 2 - rest / mu)


def _normal(x: arb) -> arb:
    """The standard normal law up to x."""
    return (-x / arb(2).sqrt()).erfc() / 2


def _with_laplace(epsilon: Fraction, square: Fraction, own: Fraction, step: Fraction) -> arb:
    """The same beside Laplace noise of an epsilon of its own, on a lattice of such a step: no less.

    The largest log ratio, own, has chance 1 / (1 + e^-step), the least e^-own of that, and those in between at most the
    density e^((l - own) / 2) / 4, each moved up by two steps at most.
    """
    low, high, rest = ball(-own), ball(own), ball(epsilon)
    ends = _gaussian(epsilon - own, square) + low.exp() * _gaussian(epsilon + own, square)
    if square:
        mu = ball(square).sqrt()

        def primitive(c: arb, b: arb, at: arb) -> arb:
            """Of e^(c l) Phi(l / mu + b)."""
            power = (c * c * mu * mu / 2 - c * mu * b).exp()
            return ((c * at).exp() * _normal(at / mu + b) - power * _normal(at / mu + b - c * mu)) / c

        half, near, far = arb(1) / 2, mu / 2 - rest / mu, -mu / 2 - rest / mu
        between = primitive(half, near, high) - primitive(half, near, low)
        between -= rest.exp() * (primitive(-half, far, high) - primitive(-half, far, low))
    elif epsilon < own:
        start = ball(max(epsilon, -own))
        between = 2 * ((high / 2).exp() - (start / 2).exp() + (rest - high / 2).exp() - (rest - start / 2).exp())
    else:
        between = arb(0)
    return ends / (1 + ball(-step).exp()) + (low / 2).exp() * between / 4
