"""What Torra 2019 proves and claims, beside what holds (notes/no-dummies.md, notes/dummy-votes.md)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import log
from typing import Any, TypeAlias

from privspec.core.records import dataclass
from privspec.families.voting.rules import DICTATOR, Draw, VotingSystem, log_up
from privspec.model.values import show

# --- What Torra 2019 proves of random dictatorship without dummy votes (notes/no-dummies.md): bounds on the ratios
# between neighbours that both lie in a restricted set of profiles


@dataclass(frozen=True, slots=True)
class EachSupported:
    """Theorem 1 (ii) and the second statement of theorem 2: somebody supports each alternative."""

    adding: bool

    @property
    def name(self) -> str:
        """As the paper numbers it."""
        return "theorem 1 (ii)" if self.adding else "theorem 2, every alternative supported"

    @property
    def scope(self) -> str:
        """For adding, the smaller electorate decides: the larger one then has supporters of each as well."""
        if self.adding:
            return (
                "an electorate of T >= 3 voters in which every alternative has a supporter, against the same "
                "electorate with one voter more"
            )
        return (
            "two electorates of T voters that differ in one vote, both with a supporter of every alternative: not if "
            "the vote that changes is the only one for an alternative"
        )

    @property
    def text(self) -> str:
        """What it says."""
        bound = "2T / (T + 1)" if self.adding else "2"
        return f"between such electorates no probability changes by a factor of more than {bound}"

    def holds_on(self, counts: Sequence[int]) -> bool:
        """Every count is positive, and T >= 3 where a voter is added."""
        return min(counts) >= 1 and (not self.adding or sum(counts) >= 3)

    def ratio(self, voters: int) -> Fraction:
        """2T / (T + 1), or 2."""
        return Fraction(2 * voters, voters + 1) if self.adding else Fraction(2)

    def sound(self, voters: int) -> bool:
        """From T = 3 on where a voter is added: with T = 2 the other alternatives lose 3/2, more than 4/3."""
        return not self.adding or voters >= 3


@dataclass(frozen=True, slots=True)
class LeastShare:
    """Theorem 1 (iii) and the third statement of theorem 2: each alternative has at least `percent` % of the voters."""

    percent: Fraction
    adding: bool

    @property
    def name(self) -> str:
        """As the paper numbers it."""
        return "theorem 1 (iii)" if self.adding else "theorem 2, least represented share"

    @property
    def scope(self) -> str:
        """For adding, the smaller electorate decides."""
        share = f"every alternative has at least {show(self.percent)} % of the votes"
        if self.adding:
            return (
                f"an electorate of T voters in which {share}, against the same electorate with one voter more; "
                "only where the share is at most 100 T / (2T + 1) %"
            )
        return f"two electorates of T voters that differ in one vote, in both of which {share}"

    @property
    def text(self) -> str:
        """What it says."""
        below = "(T + 1)" if self.adding else "T"
        alpha = show(self.percent)
        return f"between such electorates no probability changes by a factor of more than (T + 100/{alpha}) / {below}"

    def holds_on(self, counts: Sequence[int]) -> bool:
        """The least share is large enough."""
        return sum(counts) > 0 and least_share(counts) >= self.percent

    def ratio(self, voters: int) -> Fraction:
        """(alpha T + 100) / (alpha (T + 1)), or (alpha T + 100) / (alpha T)."""
        whole = self.percent * voters + 100
        return whole / (self.percent * (voters + (1 if self.adding else 0)))

    def sound(self, voters: int) -> bool:
        """The paper's condition on alpha, where a voter is added."""
        return not self.adding or self.percent <= largest_percent(voters)

    def size(self, epsilon_ratio: Fraction) -> Fraction:
        """From how many voters on the bound is at most a given e^epsilon > 1 (iii.b, and expression 8)."""
        r = epsilon_ratio
        return (100 - self.percent * r if self.adding else Fraction(100)) / (self.percent * (r - 1))


def least_share(counts: Sequence[int]) -> Fraction:
    """The share of the least represented alternative, in percent; of some voters."""
    return Fraction(100 * min(counts), sum(counts))


def largest_percent(voters: int) -> Fraction:
    """100 T / (2T + 1): up to this percentage theorem 1 (iii) holds (figure 2 of the paper)."""
    return Fraction(100 * voters, 2 * voters + 1)


def of_one_profile(counts: Sequence[int], *, adding: bool) -> Fraction | None:
    """The exact largest ratio between this electorate and any with one voter more, or one vote changed.

    Returns: None where it is infinite, as for every electorate in which an alternative has no supporter, and for a
        changed vote also where it has one only.
    """
    voters, least = sum(counts), min(counts)
    if not voters or len(counts) < 2:
        return Fraction(1)
    if adding:
        return (
            max(Fraction((least + 1) * voters, least * (voters + 1)), Fraction(voters + 1, voters)) if least else None
        )
    return Fraction(least, least - 1) if least > 1 else None


Condition: TypeAlias = EachSupported | LeastShare
"""`name` as the paper numbers it; `adding`: neighbours have one voter more, else one voter with another vote; `scope`,
the pairs of electorates for which it is `sound`; `ratio`, the bound of the paper for so many voters: e^epsilon."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A condition beside a profile: whether it applies, and the epsilon that it would give; never to be published."""

    condition: Condition
    applies: bool
    epsilon: Fraction | None


def readings(counts: Sequence[int], *, adding: bool) -> tuple[Reading, ...]:
    """Both conditions at a profile, with its own least share; for those who may see the votes."""
    voters = sum(counts)
    found: list[Condition] = [EachSupported(adding)]
    if voters and min(counts):
        found.append(LeastShare(least_share(counts), adding))
    return tuple(_reading(condition, counts) for condition in found)


def _reading(condition: Condition, counts: Sequence[int]) -> Reading:
    voters = sum(counts)
    applies = condition.holds_on(counts) and condition.sound(voters)
    return Reading(condition, applies, log_up(condition.ratio(voters)) if applies else None)


# --- What the plan of a rule says beside it -----------------------------------------------------------------


def remarks(system: VotingSystem, draw: Draw) -> list[dict[str, Any]]:
    """Lemma 1 (voters may stay away) and Lemma 2 (everybody votes) at this number of dummy votes; else nothing.

    Where it is a fact that each alternative has a supporter: theorem 1 (ii).
    """
    if draw.family != DICTATOR.family or system.votes.ballots.borda:
        return []
    dummies, m, voters = draw.number, system.votes.ballots.size, system.votes.voters
    if system.votes.ballots.supporters:
        if system.votes.ballots.supporters > 1 or not system.votes.secret:
            return []
        says = log(EachSupported(adding=True).ratio(voters))
        text = (
            "Without dummy votes; the fact makes it a guarantee. But the number of voters is the secret, so that the "
            "figure which holds is the one for every number, log 2, which the first one grows to: dummy votes make up "
            "for what the requirement asks beyond it."
        )
        return [_remark(f"epsilon of Theorem 1 (ii) at T = {voters}", says, log(2), text)]
    every = 1 + 1 / dummies
    if not system.votes.secret:
        if dummies != 1:
            return []
        return [_remark("epsilon of Lemma 2", log(2), log(2), "One dummy vote for each alternative: log 2, exactly.")]
    total = voters + m * dummies
    here = every * total / (total + 1)
    more = "" if dummies == 1 else ", by the argument of the lemma, which is for one"
    text = (
        f"This is what one voter more does to {voters} voters and {show(dummies)} dummy votes for each "
        f"alternative{more}. "
        "But the number of voters is the secret, so that the figure which holds is the one for every number: "
        "log(1 + 1 / dummy votes), from below which the first one grows."
    )
    return [_remark(f"epsilon of Lemma 1 at T = {voters}", log(here) if here > 1 else 0.0, log(every), text)]


def _remark(quantity: str, says: float, holds: float, text: str) -> dict[str, Any]:
    return {"quantity": quantity, "says": says, "holds": holds, "text": text}
