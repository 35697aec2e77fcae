"""What an observer tries to tell, and the words for it on every page.

A guarantee bounds how well two worlds can be told apart; which two these are decides the question that a reader has:
did I take part, what did I answer, where was I. Each question is one object; pages ask it for its words.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from privspec.explain.document import Block, IconArray, IconRow, Table
from privspec.explain.sentences import Note
from privspec.explain.words import joined

if TYPE_CHECKING:
    from privspec.explain.claims import Relation
    from privspec.explain.fact_types import ClaimFact, Facts, OddsFact

ODDS_NOTE = Note("odds")
LEDGER = (
    "A ledger counts the releases and refuses those over its limit. It cannot stop a keeper who deletes it, or who "
    "publishes the data in another way."
)


@dataclass(frozen=True, slots=True)
class Question(ABC):
    """The words for one question; odds are always those of the first world (`without`) and of the second."""

    heading: ClassVar[str]
    """The heading of the public page's section."""
    result: ClassVar[str]
    """What the observer sees, one of many possible ones: "result"."""
    of_label: ClassVar[str]
    """The question as a row of the label."""

    @abstractmethod
    def aim(self) -> str:
        """What the observer tries, knows and can do."""

    @abstractmethod
    def compared(self, fact: ClaimFact) -> str:
        """Which two worlds are compared, in a sentence; empty where the aim says so."""

    @abstractmethod
    def odds(self, odds: OddsFact) -> tuple[str, str]:
        """The two sentences of natural frequencies."""

    @abstractmethod
    def icons(self, odds: OddsFact) -> IconArray:
        """Two rows of 100 figures."""

    @abstractmethod
    def headers(self) -> tuple[str, str]:
        """The two worlds as headings of columns for the public."""

    @abstractmethod
    def short_headers(self) -> tuple[str, str]:
        """The two worlds as headings of columns for auditors."""

    @abstractmethod
    def label(self, odds: OddsFact, at_worst: str) -> str:
        """The answer in the label."""

    @abstractmethod
    def again(self, times: str, odds: OddsFact) -> str:
        """What happens when it is done again so many times."""

    @abstractmethod
    def for_auditors(self, odds: OddsFact, relation: Relation) -> str:
        """Both odds in one sentence."""

    @abstractmethod
    def residual(self, advantage: str) -> str:
        """The residual risk, with the largest advantage."""

    @abstractmethod
    def axes(self) -> tuple[str, str]:
        """What false alarms and misses are, for the axes of a trade-off plot."""

    @abstractmethod
    def first_limit(self) -> str:
        """What the page does not say about others' knowledge."""

    @property
    def scope(self) -> str:
        """Which worlds the odds are about where they are not all that a guarantee compares; else empty."""
        return ""

    @property
    def posterior_gap(self) -> str:
        """Why pure privacy says nothing here on how far a prior probability can move; empty where it does."""
        return ""

    def posterior_caption(self) -> str:
        """What a table of probabilities before and after shows."""
        return "How sure one can become that a person took part, compared with not taking part (pure ε; note odds)"

    def more(self, _fact: ClaimFact) -> tuple[Block, ...]:
        """What the public page shows besides the odds."""
        return ()

    def details(self, _fact: ClaimFact) -> tuple[Block, ...]:
        """What the pages of auditors and engineers show besides."""
        return ()

    def several(self, _facts: Facts, _fact: ClaimFact) -> Table | None:
        """The odds of people who hold several units; None where nobody does."""
        return None

    def to_json(self) -> Mapping[str, object]:
        """The question itself."""
        return {"heading": self.heading}


@dataclass(frozen=True, slots=True)
class TookPart(Question):
    """Whether a person's data are among those that a result was computed from."""

    heading: ClassVar[str] = "Could someone tell that you took part?"
    result: ClassVar[str] = "result"
    of_label: ClassVar[str] = "Could the published result reveal that I took part?"

    def aim(self) -> str:
        """Taking part, from the published result."""
        return (
            "Someone tries to tell from the published result whether you took part. They may know everything about "
            "everybody else, have all the computers there are, and make both kinds of mistakes equally often."
        )

    def compared(self, fact: ClaimFact) -> str:
        """What not taking part means here."""
        relation = fact.claim.relation
        if relation.unit is None:
            return f"This compares the result with the one there would be if {relation.absence}."
        together = ""
        if relation.group > 1:
            together = f" It holds for up to {relation.group} {relation.plural} at once."
        if relation.absence:
            means = f"which here means that {relation.absence}"
            return f"All of this is compared with not taking part, {means}.{together}"
        return f"All of this is compared with not taking part.{together}"

    def odds(self, odds: OddsFact) -> tuple[str, str]:
        """If not, and if so."""
        return (
            f"If you did not take part, {odds.without_words} possible results would still make them say that you did.",
            f"If you did, {odds.taking_part_words}.",
        )

    def icons(self, odds: OddsFact) -> IconArray:
        """A full mark says "took part"."""
        plain = odds.plain
        return IconArray(
            caption="Each mark is a possible result; a full one would make them say that you took part.",
            rows=(
                IconRow(f"You did not take part: {odds.without_words}", plain.without, plain.of),
                IconRow(f"You took part: {odds.taking_part_words}", plain.taking_part, plain.of),
            ),
        )

    def headers(self) -> tuple[str, str]:
        """If not, and if so."""
        return "If you did not take part", "If you did"

    def short_headers(self) -> tuple[str, str]:
        """Not, and so."""
        return "Did not take part", "Took part"

    def label(self, odds: OddsFact, at_worst: str) -> str:
        """Both odds."""
        return (
            f"Only by the odds above{at_worst}: {odds.without_words} possible results say so if you did not, "
            f"{odds.taking_part_words} if you did."
        )

    def again(self, times: str, odds: OddsFact) -> str:
        """Further releases, which a ledger counts."""
        return (
            f"Every further release weakens the protection. After {times} releases like this one the odds would be "
            f"{odds.pair}. {LEDGER}"
        )

    def for_auditors(self, odds: OddsFact, relation: Relation) -> str:
        """Both odds and what absence means."""
        absence = f" (“not taking part” means that {relation.absence})" if relation.absence else ""
        return (
            "Of an observer whose two kinds of mistakes are equally frequent: if a person did not take "
            f"part, {odds.without_words} possible results would still make them say that the person did; "
            f"if the person did, {odds.taking_part_words}{absence}. No observer does better on both counts."
        )

    def residual(self, advantage: str) -> str:
        """The advantage in telling the two apart."""
        return (
            "Residual risk: compared with not taking part, an observer can tell “took part” from “did "
            f"not” with an advantage of at most {advantage}."
        )

    def axes(self) -> tuple[str, str]:
        """Mistakes about taking part."""
        return (
            "false alarms (says “took part” of one who did not)",
            "misses (does not say so of one who did)",
        )

    def first_limit(self) -> str:
        """Compared with not taking part."""
        return "It compares with not taking part; it does not say what others know about you already."

    def several(self, _facts: Facts, fact: ClaimFact) -> Table | None:
        """People who hold several units."""
        relation = fact.claim.relation
        if relation.unit in (None, "everything"):
            return None
        return Table(
            caption="The same odds for people who hold several together, or a family that acts as one",
            header=(
                f"How many of the {relation.plural} are yours"
                if relation.unit in ("entry", "record")
                else f"How many {relation.plural} act as one",
                *self.headers(),
            ),
            rows=tuple((k.text, odds.without_words, odds.taking_part_words) for k, odds in fact.groups),
        )


def who(fact: ClaimFact, about: str = "") -> str:
    """Who sees what: "For press, who see press_release:", "About x, for anyone, who sees O:"."""
    outputs = joined(fact.claim.outputs)
    observer = fact.claim.observer
    start = f"About {about}for" if about else "For"
    return f"{start} {observer}, who {'sees' if observer == 'anyone' else 'see'} {outputs}:"
