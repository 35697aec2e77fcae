"""Tables of votes beside the rules of private voting, and what such a table keeps of random dictatorship."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING, Any

from privspec.core.diagnostics import SpecError
from privspec.core.records import dataclass, replace
from privspec.families.decision import MEETS, Alternative, float_up
from privspec.families.voting.family import beside_others, ranked
from privspec.families.voting.plans import calibrated, judge
from privspec.families.voting.profiles import Averages
from privspec.families.voting.rules import NOTE, RULES, Property, gains, lower, spoken
from privspec.kernel.terms import Table as Drawn
from privspec.model.domains import FiniteSet, PartialRankingOf, RankingOf
from privspec.model.requirements import AccuracyTarget
from privspec.model.spaces import Counted, key
from privspec.model.values import Symbol, show
from privspec.model.voting import Ballot, FirstChoice, Law, Lottery, Points, scores
from privspec.problem.table_lines import is_manipulation
from privspec.problem.voting import beside, compared, compared_name, points_of, voting

if TYPE_CHECKING:
    from privspec.families.tables.decision import SolvedTable


def rules_beside(decision: SolvedTable) -> list[Alternative]:
    """The rules of private voting, the least loss first; none where the spec is no vote that they know."""
    model, least = decision.model, Fraction(decision.proof[0] or 0)
    if voting(model) is None or model.constraints or model.fairness:
        return []
    limits = [target for target in model.accuracy if is_manipulation(target.target.left)]
    rest = tuple(target for target in model.accuracy if target not in limits)
    try:
        system = lower(replace(model, accuracy=rest))
        averages = Averages(system)
    except SpecError:
        return []
    epsilons = [promise.epsilon for promise in system.promises]
    known = tuple(epsilon for epsilon in epsilons if epsilon is not None)
    if len(known) < len(epsilons):
        return []
    found = []
    for one in ranked(judge(system, [calibrated(system, rule, known) for rule in RULES], averages)):
        if one.loss is None or one.draw is None or one.loss.at_least:
            continue
        reason = one.reason
        for target in limits if one.admissible else ():
            reason = reason or _misses(decision, target, one.draw.lottery, points_of(system.votes.ballots))
        admissible = one.admissible and not reason
        loss = max(one.loss.value, least) if admissible else one.loss.value
        said = beside_others(system, one)
        found.append(Alternative(one.rule.name, float_up(loss), reason or MEETS, admissible, said))
    return found


def _misses(decision: SolvedTable, target: AccuracyTarget, lottery: Lottery, points: Points) -> str:
    """Why a rule does not meet a bound on lies; empty if it does."""
    (votes,) = [one for one in decision.system.table.manipulation if one.line == target.line]
    space = decision.worlds.spaces[0]
    if len(space.values) * len(votes.ballots) ** 2 > FEW:
        return f"it is not known to meet line {target.line}: there are too many lies to try"
    domain = space.node.domain
    assert isinstance(domain, FiniteSet | RankingOf | PartialRankingOf)
    items = domain.items if isinstance(domain, FiniteSet) else domain.alternatives
    bound, order = votes.limit, [points.alternatives.index(item) for item in items]
    every = [lottery.law(scores(points, _ballots(value))) for value in space.values]
    whole = lcm(*(chance.denominator for law in every for chance in law))
    rows = tuple(tuple(int(law[order[a]] * whole) for a in votes.winners) for law in every)
    most = max([Fraction(0), *votes.contrast().gaps(Drawn(rows, whole, (("", votes.winners),))).values()])
    return f"it misses line {target.line}: {float(most):.4g} > {show(bound)}" if most > bound else ""


def _ballots(votes: Any) -> list[Ballot]:
    return [key(vote) for vote in votes]


FEW = 100_000
"""Lies that are tried of every rule that a table is compared with."""


# --- what a table does, and what it keeps ---------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class CountedVotes:
    """A table of first choices of so many voters: `rows` the law by the number of votes for each."""

    alternatives: tuple[Symbol, ...]
    voters: int
    rows: Mapping[tuple[int, ...], Sequence[int]]
    denominator: int

    def law(self, scores: Sequence[Fraction]) -> Law:
        """The row of these counts."""
        return tuple(Fraction(n, self.denominator) for n in self.rows[tuple(map(int, scores))])


def counted_votes(decision: SolvedTable) -> CountedVotes | None:
    """The table as a lottery of first choices; None where its rows or columns are anything else."""
    worlds = decision.worlds
    if worlds.computed or len(worlds.spaces) != 1 or len(decision.model.outputs) != 1:
        return None
    (space,), (output,) = worlds.spaces, decision.model.outputs
    domain = space.node.domain
    if not isinstance(space, Counted) or space.node.index is None or not isinstance(domain, FiniteSet):
        return None
    order = [column[0] for column in worlds.columns]
    if set(order) != set(domain.items) or not isinstance(output.domain, FiniteSet):
        return None
    places = [order.index(item) for item in domain.items]
    exact = decision.exact
    rows = {counts: [row[c] for c in places] for counts, row in zip(space.counts, exact.numerators, strict=True)}
    return CountedVotes(domain.items, space.records, rows, exact.denominator)


def table_figures(decision: SolvedTable) -> dict[str, Any]:
    """Distortion and welfare of the table, and the lottery without noise that it is compared with.

    Returns: nothing where its rows are no counts of first choices, or its spec is no vote that the rules know.
    """
    table = counted_votes(decision)
    if table is None or voting(decision.model) is None:
        return {}
    try:
        system = lower(replace(decision.model, accuracy=()))
    except SpecError:
        return {}
    rows = [tuple(map(Fraction, counts)) for counts in table.rows]
    apart_from = beside("distance", compared(system.votes))
    apart = [apart_from.at(list(table.law(row)), row) for row in rows]
    welfare = [sum((p * n for p, n in zip(table.law(row), row, strict=True)), Fraction(0)) for row in rows]
    prior = decision.system.prior

    def mean(values: Sequence[Fraction]) -> float | None:
        return None if prior is None else float(sum((p * v for p, v in zip(prior, values, strict=True)), Fraction(0)))

    figures = {
        "worst_distortion": float_up(max(apart)),
        "mean_distortion": mean(apart),
        "expected_welfare": mean([value / table.voters for value in welfare]),
    }
    return {"compared": compared_name(system.votes), "figures": figures}


def kept_properties(decision: SolvedTable) -> list[dict[str, Any]]:
    """What the table keeps, decided row by row; nothing where its rows are no counts of first choices."""
    table = counted_votes(decision)
    if table is None:
        return []
    alike = Property(
        "treats_voters_alike", True, "tables", "a row says how often each alternative is named, and not by whom"
    )
    return [p.to_json() for p in (alike, _efficient(table), _truthful(table))]


def _efficient(table: CountedVotes) -> Property:
    """Ex-post efficiency: an alternative that nobody names may be worse than another one for everybody."""
    name, m = "ex_post_efficient", len(table.alternatives)
    rows = sorted(table.rows.items(), key=lambda item: sum(1 for count in item[0] if count))
    for counts, row in rows:
        for a, count in enumerate(counts):
            if m > 1 and not count and row[a]:
                chance = spoken(Fraction(row[a], table.denominator))
                case = f"{_votes(table, counts)}: {show(table.alternatives[a])} wins with probability {chance}"
                why = "an alternative that nobody puts first may win, also one that everybody likes less than another"
                return Property(name, False, NOTE, why, case)
    return Property(name, True, NOTE, "only alternatives that somebody puts first can win")


def _truthful(table: CountedVotes) -> Property:
    """Strategy-proofness: no vote but that for one's first choice makes any set of best alternatives more likely.

    Of sets with the first choice a in them, a vote for b instead serves that best which holds a and whatever it makes
    more likely: it pays if and only if that set becomes more likely.
    """
    name, m = "strategy_proof", len(table.alternatives)
    most, worst = 0, None
    for counts in table.rows:
        for a in range(m) if m > 1 else ():
            if not counts[a]:
                continue
            for b in range(m):
                lied = tuple(n - (k == a) + (k == b) for k, n in enumerate(counts))
                change = [y - x for x, y in zip(table.rows[counts], table.rows[lied], strict=True)]
                gain = change[a] + sum(d for c, d in enumerate(change) if c != a and d > 0)
                if gain > most:
                    most, worst = gain, (counts, a, b, change)
    if worst is None:
        why = "in no row does a vote for another alternative make any set of best alternatives more likely"
        return Property(name, True, NOTE, why)
    why = "a vote counts for more where two alternatives are close, so that it pays to leave a hopeless first choice"
    return Property(name, False, NOTE, why, _lie(table, *worst))


def _lie(table: CountedVotes, counts: tuple[int, ...], a: int, b: int, change: list[int]) -> str:
    """The lie that pays most, in words."""
    rest = sorted((c for c in range(len(counts)) if c != a), key=lambda c: -change[c])
    truth = tuple(table.alternatives[c] for c in (a, *rest))
    others = tuple(n - (k == a) for k, n in enumerate(counts))
    ballots = tuple(item for item, n in zip(table.alternatives, others, strict=True) for _ in range(n))
    points = FirstChoice(table.alternatives)
    found = max(
        gains(table.law, points, ballots, truth, (table.alternatives[b],)), key=lambda one: one.lying - one.honest
    )
    return found.describe(_votes(table, others) if ballots else "", "vote")


def _votes(table: CountedVotes, counts: Sequence[int]) -> str:
    """How often each alternative is named: 3 x north, 1 x east."""
    return ", ".join(f"{n} x {show(item)}" for item, n in zip(table.alternatives, counts, strict=True) if n)
