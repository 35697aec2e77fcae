"""A budget for many votes: how many fit, what one spends, and what a voter who takes part in several has spent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from privspec.explain.consequences import odds_fact
from privspec.explain.curves import Curve
from privspec.explain.document import Paragraph, Section, Table
from privspec.explain.quantities import Quantity, count, exact, parse_exact, rounded
from privspec.explain.sentences import Note, Sentence, assumed, proved

if TYPE_CHECKING:
    from privspec.explain.fact_types import Facts, OddsFact

NOTE = Note("repeated-votes")
SHOWN = (1, 2, 5)
"""Rounds of one voter that tables show, besides all of them."""
_TRACE = Fraction(1, 10**6)
"""Roundings of an epsilon."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A voter who took part in so many rounds: epsilon in all, and the odds of one who sees all their winners."""

    number: int
    count: Quantity
    epsilon: Quantity
    odds: OddsFact


@dataclass(frozen=True, slots=True)
class Rounds:
    """A budget for several votes: how many, what each spends, how many fit, and in how many one person takes part.

    `whole` is whether the guarantee of the plan is about all of them, else about one; `chosen` whether it hides who
    takes part, so that voters may stay away; `taken` ends with all rounds.
    """

    number: int
    count: Quantity
    each: Quantity
    epsilon: Fraction
    budget: Quantity | None
    fit: Quantity | None
    participation: Quantity | None
    whole: bool
    chosen: bool
    taken: tuple[Taken, ...]

    @property
    def together(self) -> OddsFact:
        """The odds of one who sees all winners."""
        return self.taken[-1].odds


def rounds_fact(item: Mapping[str, Any], reached: Fraction | None, one: Curve, *, chosen: bool) -> Rounds:
    """`mechanism.rounds` of a plan, with the epsilon of its guarantee and the curve of one round."""
    each = item["each"]
    epsilon = parse_exact(each["epsilon"] if isinstance(each, Mapping) else each)
    number = int(item["count"])
    fit, participation = (None if item.get(k) is None else count(int(item[k])) for k in ("fit", "participation"))
    return Rounds(
        number,
        count(number),
        rounded(epsilon, 6),
        epsilon,
        None if item.get("budget") is None else exact(parse_exact(item["budget"])),
        fit,
        participation,
        whole=number > 1 and reached is not None and reached > epsilon * (1 + _TRACE),
        chosen=chosen,
        taken=tuple(
            Taken(k, count(k), rounded(k * epsilon, 6), odds_fact(one.repeated(k)))
            for k in (*(k for k in SHOWN if k < number), number)
        ),
    )


def rounds_words(rounds: Rounds) -> str:
    """The budget in a line."""
    budget = f"; together ε {rounds.budget}" if rounds.budget is not None else ""
    fit = f"; {rounds.fit} of them fit the budget" if rounds.fit is not None else ""
    part = f"; each voter takes part in at most {rounds.participation}" if rounds.participation is not None else ""
    return f"{rounds.count}, each at ε {rounds.each}{budget}{fit}{part}"


def summary_rows(rounds: Rounds) -> list[tuple[str, str]]:
    """The budget, and what a voter has spent."""
    spent = " · ".join(f"{t.epsilon} in {t.count}" for t in rounds.taken)
    return [("Rounds", rounds_words(rounds)), ("Spent by a voter", f"ε {spent} rounds")]


def public_rounds(rounds: Rounds | None, facts: Facts) -> tuple[Section, ...]:
    """What it means to take part again and again."""
    weakest = facts.weakest
    if rounds is None or weakest is None or rounds.number < 2:
        return ()
    n, chosen = rounds.count, rounds.chosen
    one = "Each vote in which you take part" if chosen else "Each"
    words = [
        proved(
            f"There are {n} votes like this one; the odds above are for "
            f"{'all of them together' if rounds.whole else 'one of them'}. {one} spends "
            f"one of the {n} parts of your budget of privacy.",
            NOTE,
        ),
        *(_by_choice(rounds) if chosen else _by_all(rounds)),
    ]
    first = "Votes in which you take part" if chosen else "Votes held"
    table = Table(
        caption="The odds of somebody who sees the winners of all votes",
        header=(first, "Parts spent", *weakest.question.headers()),
        rows=tuple(
            (t.count.text, f"{t.count} of {n}", t.odds.without_words, t.odds.taking_part_words) for t in rounds.taken
        ),
    )
    return (Section("What if you vote again and again?", (Paragraph(tuple(words)), table)),)


def _by_choice(rounds: Rounds) -> list[Sentence]:
    return [
        proved(
            "The others cost you nothing, and you may decide by earlier winners whether to take part.",
            NOTE,
        ),
        assumed(
            f"After {rounds.count} votes the keeper stops, or keeps a list, as secret as the votes, and leaves out "
            f"whoever took part {rounds.count} times. Nobody is told who is left out, nor how many.",
            NOTE,
        ),
    ]


def _by_all(rounds: Rounds) -> list[Sentence]:
    return [proved(f"Everybody takes part in every vote; after {rounds.count} of them the ledger ends it.", NOTE)]


def rounds_table(rounds: Rounds) -> Table:
    """For auditors and engineers: epsilon of a voter, by rounds with them."""
    return Table(
        caption="What a voter who takes part in k rounds has spent",
        header=("k", "ε spent", "Odds of one who sees all winners"),
        rows=tuple((t.count.text, t.epsilon.text, t.odds.pair) for t in rounds.taken),
    )


def points(rounds: Rounds) -> list[Sentence]:
    """How rounds add up, and who counts them."""
    counted = " With `--participation` rounds are counted for each voter, and the first pays in full."
    limit = f"The ledger's limit is the budget: while it is kept, round {rounds.number + 1} is refused."
    return [
        proved(
            f"Several rounds: {rounds_words(rounds)}. Epsilons add up, also where earlier winners decide "
            f"{'who takes part in' if rounds.chosen else 'how people vote in'} later rounds; the odds of one who sees "
            f"all winners are {rounds.together.pair}.",
            NOTE,
        ),
        proved(f"{limit}{counted if rounds.chosen else ''}", NOTE),
    ]
