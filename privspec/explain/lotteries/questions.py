"""What an observer of a winner tries to tell: how somebody voted, or whether somebody voted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from privspec.explain.document import Block, IconArray, IconRow, Paragraph, Table
from privspec.explain.questions import LEDGER, ODDS_NOTE, Question
from privspec.explain.sentences import Because, CertificateEntry, proved

if TYPE_CHECKING:
    from privspec.explain.claims import Relation
    from privspec.explain.fact_types import ClaimFact, Facts, OddsFact
    from privspec.explain.quantities import Quantity

_ABLE = (
    "They may know how everybody else voted, have all the computers there are, and make both kinds of mistakes equally "
    "often."
)


@dataclass(frozen=True, slots=True)
class AboutVote(Question):
    """Two worlds that differ in your vote; `times` is the largest factor between the chances of a winner in them.

    `result` is what the observer sees, `who` one person who votes, for auditors.
    """

    who: str
    times: Quantity
    local: bool

    @property
    def result(self) -> str:  # type: ignore[override]
        """What is seen."""
        return "message" if self.local else "result"

    # the two worlds, in clauses that begin with "if"

    @property
    def _without(self) -> str:
        raise NotImplementedError

    @property
    def _with(self) -> str:
        raise NotImplementedError

    @property
    def _say(self) -> str:
        """What the observer says in the second: "that you voted for north"."""
        raise NotImplementedError

    @property
    def _short(self) -> tuple[str, str]:
        """Both worlds as headings."""
        raise NotImplementedError

    @property
    def _seen(self) -> str:
        return "the message with your vote" if self.local else "the winner"

    def odds(self, odds: OddsFact) -> tuple[str, str]:
        """In the first world, and in the second."""
        return (
            f"{self._without}, {odds.without_words} possible {self.result}s would still make them say {self._say}.",
            f"{self._with}, {odds.taking_part_words}.",
        )

    def icons(self, odds: OddsFact) -> IconArray:
        """A full mark says the second."""
        plain, (first, second) = odds.plain, self._short
        return IconArray(
            caption=f"Each mark is a possible {self.result}; a full one would make them say {self._say}.",
            rows=(
                IconRow(f"{first}: {odds.without_words}", plain.without, plain.of),
                IconRow(f"{second}: {odds.taking_part_words}", plain.taking_part, plain.of),
            ),
        )

    def headers(self) -> tuple[str, str]:
        """As clauses."""
        return self._without, self._with

    def short_headers(self) -> tuple[str, str]:
        """In short."""
        return self._short

    def label(self, odds: OddsFact, at_worst: str) -> str:
        """Both odds."""
        first, second = (clause[0].lower() + clause[1:] for clause in (self._without, self._with))
        return (
            f"Only by the odds above{at_worst}: {odds.without_words} possible {self.result}s say so {first}, "
            f"{odds.taking_part_words} {second}."
        )

    def again(self, times: str, odds: OddsFact) -> str:
        """Further votes."""
        return (
            f"Every further vote of the same people weakens the protection. After {times} votes like this one the odds "
            f"would be {odds.pair}. {LEDGER}"
        )

    def axes(self) -> tuple[str, str]:
        """Mistakes."""
        first, second = self._short
        return f"false alarms ({first.lower()})", f"misses ({second.lower()})"

    def more(self, fact: ClaimFact) -> tuple[Block, ...]:
        """What pure privacy says besides: how much one vote changes the chances of any winner."""
        if not fact.posteriors:
            return ()
        because: tuple[Because, ...] = (ODDS_NOTE, *fact.claim.notes, CertificateEntry("privacy"))
        text = (
            f"Whatever the {self.result}, it had a chance in both cases too: your vote makes no {self.result} more "
            f"than {self.times} times as likely as it was."
        )
        return (Paragraph((proved(text, *because),)),)

    def several(self, _facts: Facts, fact: ClaimFact) -> Table | None:
        """People who vote as one."""
        if self.local or fact.claim.relation.unit in (None, "everything"):
            return None
        return Table(
            caption="The same odds for people who always vote as one, like a family",
            header=("How many you are", *self.headers()),
            rows=tuple((k.text, odds.without_words, odds.taking_part_words) for k, odds in fact.groups),
        )

    def to_json(self) -> Mapping[str, object]:
        """The question with its two worlds."""
        return {
            "heading": self.heading,
            "without": self._without,
            "with": self._with,
            "largest_ratio": self.times.to_json(),
        }


@dataclass(frozen=True, slots=True)
class HowYouVoted(AboutVote):
    """Replacing a vote: `first` is what the observer says, `second` how you voted instead ("for north")."""

    first: str
    second: str

    heading: ClassVar[str] = "Could someone tell how you voted?"
    of_label: ClassVar[str] = "Could the result reveal how I voted?"

    @property
    def _without(self) -> str:
        return f"If you voted {self.second}"

    @property
    def _with(self) -> str:
        return f"If you voted {self.first}"

    @property
    def _say(self) -> str:
        return f"that you voted {self.first}"

    @property
    def _short(self) -> tuple[str, str]:
        return f"Voted {self.second}", f"Voted {self.first}"

    @property
    def _pair(self) -> str:
        named = self.first.startswith("for ")
        return f"any two votes, say one {self.first} and one {self.second}" if named else "any two votes"

    def aim(self) -> str:
        """A vote from the winner."""
        return f"Someone tries to tell from {self._seen} which of two votes was yours. {_ABLE}"

    def compared(self, fact: ClaimFact) -> str:
        """Which two votes."""
        group = fact.claim.relation.group
        more = f" It holds for up to {group} votes at once." if group > 1 else ""
        return f"Take {self._pair}.{more}"

    def for_auditors(self, odds: OddsFact, _relation: Relation) -> str:
        """Both odds in one sentence."""
        return (
            f"Of an observer of {self._observed} whose two kinds of mistakes are equally frequent, for {self._pair}: "
            f"if the {self.who} voted {self.second}, {odds.without_words} possible {self.result}s would still make "
            f"them say “{self.first}”; if {self.first}, {odds.taking_part_words}. No observer does better on both "
            "counts."
        )

    @property
    def _observed(self) -> str:
        return "one message" if self.local else "the winner"

    def residual(self, advantage: str) -> str:
        """The advantage in telling two votes apart."""
        return (
            f"Residual risk: of {self._pair}, an observer of {self._observed} tells which it was with an advantage of "
            f"at most {advantage}."
        )

    def first_limit(self) -> str:
        """Compared with another vote."""
        return "It compares with another vote instead of yours; it does not say what others know about you already."

    def posterior_caption(self) -> str:
        """About one vote."""
        return f"How sure {self._observed} can make someone that a vote was a given one (pure ε; note odds)"


@dataclass(frozen=True, slots=True)
class WhetherYouVoted(AboutVote):
    """Adding or removing a voter."""

    heading: ClassVar[str] = "Could someone tell whether you voted?"
    of_label: ClassVar[str] = "Could the result reveal that I voted?"
    _without: ClassVar[str] = "If you did not vote"
    _with: ClassVar[str] = "If you did"
    _say: ClassVar[str] = "that you did"
    _short: ClassVar[tuple[str, str]] = ("Did not vote", "Voted")

    def aim(self) -> str:
        """Taking part, from the winner."""
        return f"Someone tries to tell from {self._seen} whether you voted, and how. {_ABLE}"

    def compared(self, fact: ClaimFact) -> str:
        """With staying at home."""
        group = fact.claim.relation.group
        more = f" It holds for up to {group} voters at once." if group > 1 else ""
        return f"All of this is compared with not voting at all, however many others vote.{more}"

    def for_auditors(self, odds: OddsFact, _relation: Relation) -> str:
        """Both odds in one sentence."""
        return (
            f"Of an observer of {self._seen} whose two kinds of mistakes are equally frequent: if the {self.who} did "
            f"not vote, {odds.without_words} possible {self.result}s would still make them say that the {self.who} "
            f"did; if the {self.who} did, {odds.taking_part_words}. No observer does better on both counts, whatever "
            "the number of voters."
        )

    def residual(self, advantage: str) -> str:
        """The advantage in telling whether somebody voted."""
        return (
            f"Residual risk: an observer of {self._seen} tells “voted” from “did not” with an advantage of at most "
            f"{advantage}."
        )

    def first_limit(self) -> str:
        """Compared with not voting."""
        return "It compares with not voting; it does not say what others know about you already."

    def posterior_caption(self) -> str:
        """About taking part."""
        return f"How sure {self._seen} can make someone that a {self.who} voted (pure ε; note odds)"
