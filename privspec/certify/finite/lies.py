"""What a lie can bring a voter, from the exact table: `manipulation(O, vote)`, and its bounds as rows of a certificate.

A voter ranks what its ballot names, best first, above all the rest: sets of best alternatives are the first k named,
and, where the ballot may not name more, all that are named with any part of the rest, whose order it does not say. A
ballot that might name more says that the rest are alike. A lie gains what it adds to the probability of such a set.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from privspec.certify.finite.lagrangian import LinearRow
from privspec.certify.finite.ratios import Entries
from privspec.certify.finite.subject import FiniteSubject
from privspec.certify.finite.worlds import plain
from privspec.certify.motion import NotUnderstood
from privspec.certify.reading import Malformed
from privspec.language import syntax
from privspec.model.domains import PartialRankingOf, RankingOf

FUNCTION = "manipulation"


def about_lies(expr: syntax.Node) -> bool:
    """Whether an expression is what a lie can bring."""
    return isinstance(expr, syntax.Call) and expr.function == FUNCTION


@dataclass(frozen=True, eq=False)
class Lies:
    """The lies that voters can tell in `manipulation(O, vote)` of a table of votes."""

    subject: FiniteSubject
    call: Any

    @cached_property
    def _facet(self) -> Any:
        """The votes, as counts of ballots that pick the row.

        Raises: NotUnderstood for anything else.
        """
        facets, outputs = self.subject.rows.worlds.facets, self.subject.outputs
        match self.call.arguments:
            case (syntax.Name(id=winner), syntax.Name(id=votes)):
                names = (winner, votes)
            case _:
                raise NotUnderstood("lies about something that is no vote")
        if len(facets) != 1 or len(outputs) != 1 or names != (outputs[0].name, facets[0].part.name):
            raise NotUnderstood("lies where votes are not all there is to see")
        facet = facets[0]
        known = facet.counted is not None and facet.part.index is not None and len(facet.part.extents) == 1
        if not known or self.subject.rows.of != (facet.part.name,) or outputs[0].extents:
            raise NotUnderstood("lies in a table whose rows are no counts of ballots")
        return facet

    @cached_property
    def _orders(self) -> tuple[tuple[Any, ...], ...]:
        """For each ballot what it names, best first."""
        ranked = isinstance(self.subject.model.nodes[self._facet.part.name].domain, RankingOf | PartialRankingOf)
        items = [plain(item) for item in self._facet.part.items]
        return tuple(tuple(item) if ranked else (item,) for item in items)

    @cached_property
    def _alternatives(self) -> tuple[Any, ...]:
        domain = self.subject.model.nodes[self._facet.part.name].domain
        if isinstance(domain, RankingOf | PartialRankingOf):
            return tuple(domain.alternatives)
        return tuple(order[0] for order in self._orders)

    @cached_property
    def _columns(self) -> list[int]:
        """The alternative that wins in each column.

        Raises: NotUnderstood if it is none.
        """
        drawn = self.subject.columns[self.subject.outputs[0].name]
        if not all(plain(value) in self._alternatives for value in drawn):
            raise NotUnderstood("a winner that is no alternative")
        return [self._alternatives.index(plain(value)) for value in drawn]

    @cached_property
    def _number(self) -> dict[tuple[int, ...], int]:
        return {counts: row for row, counts in enumerate(self._facet.counted.counts)}

    def _lied(self, row: int, ballot: int, lie: int) -> int:
        """The row in which one voter casts another ballot."""
        counts = list(self._facet.counted.counts[row])
        counts[ballot] -= 1
        counts[lie] += 1
        return self._number[tuple(counts)]

    def _moves(self) -> Iterator[tuple[int, int, int]]:
        """Every row, a ballot that is cast there, and another one."""
        kinds = range(len(self._orders))
        for row, counts in enumerate(self._facet.counted.counts):
            yield from ((row, ballot, lie) for ballot in kinds for lie in kinds if counts[ballot] and ballot != lie)

    # --- the table ---------------------------------------------------------------------------------------

    def gained(self) -> Fraction:
        """The most that any lie adds to the probability of a set of best alternatives."""
        masses = [[0] * len(self._alternatives) for _ in range(self.subject.table.shape[0])]
        for mass, numerators in zip(masses, self.subject.table.numerators, strict=True):
            for column, alternative in enumerate(self._columns):
                mass[alternative] += int(numerators[column])
        most = 0
        for row, ballot, lie in self._moves():
            change = [y - x for x, y in zip(masses[row], masses[self._lied(row, ballot, lie)], strict=True)]
            order = [self._alternatives.index(a) for a in self._orders[ballot]]
            sums = np.cumsum([change[a] for a in order], dtype=object).tolist()
            rest = sum(d for a, d in enumerate(change) if a not in order and d > 0)
            most = max(most, *sums, sums[-1] + (rest if len(order) == self._longest else 0))
        return Fraction(most, self.subject.table.denominator)

    # --- rows of a certificate -----------------------------------------------------------------------------

    def row(self, row: int, ballot: int, lie: int, chosen: int, bound: Fraction) -> LinearRow:
        """What a lie adds to the probability of a set (by bits) is at most the bound.

        An equality where nothing may be gained and the set is also one of best alternatives of who casts the lie: then
        the true ballot would be a lie of that voter.
        Raises: Malformed if there is no such lie or set.
        """
        kinds, rows = len(self._orders), self._facet.counted.counts
        if not (row < len(rows) and ballot < kinds and lie < kinds and ballot != lie and rows[row][ballot]):
            raise Malformed("the certificate names a lie that nobody can tell")
        if not self._best(ballot, chosen):
            raise Malformed("the certificate names a set that is none of best alternatives")
        mask: Entries = np.array([Fraction(chosen >> a & 1) for a in self._columns], dtype=object)
        equality = bound == 0 and self._best(lie, chosen)
        return LinearRow({row: -mask, self._lied(row, ballot, lie): mask}, {}, bound, equality)

    def _best(self, ballot: int, chosen: int) -> bool:
        """Whether a voter with this ballot may like everything in a set better than everything outside of it."""
        size = len(self._alternatives)
        inside = {a for k, a in enumerate(self._alternatives) if chosen >> k & 1}
        if not 0 < len(inside) < size or chosen >> size:
            return False
        named = self._orders[ballot]
        if len(inside) <= len(named):
            return inside == set(named[: len(inside)])
        return len(named) == self._longest and inside >= set(named)

    @cached_property
    def _longest(self) -> int:
        """How many alternatives a ballot may name."""
        return max(map(len, self._orders))
