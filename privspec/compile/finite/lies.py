"""Bounds on what a lie can bring a voter: `accuracy: manipulation(O, vote) <= c`, as linear rows of a table of votes.

Whatever a voter thinks best, second best and so on, no other ballot may raise the probability of its k best
alternatives by more than c, for any k (strong-SD strategy-proofness where c is 0). A ballot that names
as many alternatives as it may says nothing of the order of the others, so that every set with all that it names and
some of them is one of best alternatives; one that might name more says that the others are equally good.

Names of rows: `lie:<line>:<row>:<ballot>:<lie>:<set>`, the ballots by their place in the domain of one vote, the set by
the bits of its alternatives (in the order of the domain). Where c is 0 and a set is one of best alternatives of both
ballots, either could be the lie: one equality.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

from privspec.compile.finite.system import LinearLine
from privspec.language import syntax
from privspec.model.domains import FiniteSet, PartialRankingOf, RankingOf
from privspec.model.reports import Failure
from privspec.model.requirements import AccuracyTarget
from privspec.model.spaces import Counted, key
from privspec.model.values import Symbol
from privspec.model.worlds import Worlds

FUNCTION = "manipulation"
MOST = 200_000
"""Rows of the program that one line may need."""
FEW = 100_000
"""Lies that are tried of every rule that a table is compared with."""


def is_manipulation(expr: syntax.Node) -> bool:
    """Whether it is what a lie can bring."""
    return isinstance(expr, syntax.Call) and expr.function == FUNCTION


@dataclass(frozen=True, eq=False, slots=True)
class Electorate:
    """Votes held as counts: `ballots` what each names, by number, best first; `columns` the number of the winner."""

    space: Counted
    alternatives: tuple[Symbol, ...]
    ballots: tuple[tuple[int, ...], ...]
    columns: tuple[int, ...]

    def uppers(self, ballot: int) -> Iterator[int]:
        """Sets of best alternatives, but for the set of all of them."""
        named, rest = self.ballots[ballot], self.unordered(ballot)
        yield from (_bits(named[:k]) for k in range(1, min(len(named) + 1, len(self.alternatives))))
        for k in range(1, len(rest)):
            yield from (_bits(named) | _bits(chosen) for chosen in combinations(rest, k))

    def unordered(self, ballot: int) -> tuple[int, ...]:
        """Alternatives of whose order a ballot cannot say anything."""
        named = self.ballots[ballot]
        full = len(named) == max(map(len, self.ballots))
        return tuple(a for a in range(len(self.alternatives)) if full and a not in named)

    def sharpest(self, ballot: int) -> Iterator[int]:
        """Those that imply all others where nothing at all may be gained: all alternatives but one, of the rest."""
        named, rest, m = self.ballots[ballot], self.unordered(ballot), len(self.alternatives)
        yield from (_bits(named[:k]) for k in range(1, len(named) if rest else min(len(named) + 1, m)))
        yield from ((1 << m) - 1 - (1 << a) for a in rest)


def _bits(chosen: tuple[int, ...]) -> int:
    return sum(1 << a for a in chosen)


def electorate(worlds: Worlds, votes: str) -> Electorate | None:
    """The votes of a table whose rows are counts of one input's ballots; None for other tables."""
    if worlds.computed or len(worlds.spaces) != 1 or len(worlds.releases) != 1:
        return None
    (space,) = worlds.spaces
    domain = space.node.domain
    if not isinstance(space, Counted) or space.node.index is None or space.node.name != votes:
        return None
    match domain:
        case FiniteSet(items=items):
            alternatives, orders = items, [(item,) for item in items]
        case RankingOf(alternatives=alternatives) | PartialRankingOf(alternatives=alternatives):
            orders = [tuple(key(item)) for item in space.items]
        case _:
            return None
    number = {alternative: a for a, alternative in enumerate(alternatives)}
    drawn: list[Any] = [column[0] for column in worlds.columns]
    if not all(isinstance(value, str | Fraction) and value in number for value in drawn):
        return None
    ballots = tuple(tuple(number[a] for a in order) for order in orders)
    return Electorate(space, tuple(alternatives), ballots, tuple(number[value] for value in drawn))


def bounded(target: AccuracyTarget, worlds: Worlds) -> Electorate | None:
    """The votes that a line bounds lies in; None where there are too many lies to try them one by one."""
    assert isinstance(target.target.left, syntax.Call)
    found = _named(target.target.left, worlds)
    return found if len(worlds.rows) * len(found.ballots) ** 2 <= FEW else None


def lies(target: AccuracyTarget, bound: Fraction, worlds: Worlds) -> Iterator[LinearLine]:
    """The rows of one line.

    Raises: Failure PS0501 for tables of anything but votes, PS0515 if there are too many rows.
    """
    written = target.target.left
    assert isinstance(written, syntax.Call)
    found = _named(written, worlds)
    number = {counts: r for r, counts in enumerate(found.space.counts)}
    lines = 0
    for r, counts in enumerate(found.space.counts):
        for i, count in enumerate(counts):
            for j in range(len(counts)) if count else ():
                if i == j:
                    continue
                lied = number[tuple(n - (k == i) + (k == j) for k, n in enumerate(counts))]
                theirs = set(found.uppers(j))
                for chosen in found.uppers(i) if bound else found.sharpest(i):
                    both = not bound and chosen in theirs
                    if both and j < i:
                        continue  # stated from the other side
                    lines += 1
                    if lines > MOST:
                        raise Failure("PS0515", target.target.span, "there are too many ballots that could be a lie")
                    table = {(lied, c): Fraction(1) for c, a in enumerate(found.columns) if chosen >> a & 1}
                    table |= {(r, c): Fraction(-1) for c, a in enumerate(found.columns) if chosen >> a & 1}
                    name = f"lie:{target.line}:{r}:{i}:{j}:{chosen}"
                    yield LinearLine(name, target.target.span, table, {}, bound, both)


def gained(found: Electorate, laws: Sequence[Sequence[Fraction]]) -> Fraction:
    """The most that a lie brings a voter under any rule; `laws` (rows, alternatives) are those of the winner."""
    number = {counts: r for r, counts in enumerate(found.space.counts)}
    most = Fraction(0)
    for r, counts in enumerate(found.space.counts):
        for i, named in enumerate(found.ballots):
            for j in range(len(counts)) if counts[i] else ():
                lied = number[tuple(n - (k == i) + (k == j) for k, n in enumerate(counts))]
                change = [after - before for before, after in zip(laws[r], laws[lied], strict=True)]
                total = Fraction(0)
                for a in named:
                    total += change[a]
                    most = max(most, total)
                rest = (change[a] for a in found.unordered(i) if change[a] > 0)
                most = max(most, total + sum(rest, Fraction(0)))
    return most


def _named(written: syntax.Call, worlds: Worlds) -> Electorate:
    """The votes that a call names, for the one output.

    Raises: Failure PS0501.
    """
    winner, votes = written.arguments
    found = None
    if isinstance(votes, syntax.Name) and winner == syntax.Name(worlds.releases[0]):
        found = electorate(worlds, votes.id)
    if found is None:
        raise Failure(
            "PS0501",
            written.span,
            "solve bounds manipulation for tables whose rows are counts of ballots only",
            help="as in manipulation(O, vote) with the output O in the alternatives of vote[voter]",
        )
    return found
