"""What an observer tries to tell, and the words for it on every page.

Did I take part; what did I answer, or where was I; how did I vote, or did I vote at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from privspec.explain.document import (
    Because,
    Block,
    CertificateEntry,
    IconArray,
    IconRow,
    Paragraph,
    Table,
    proved,
)
from privspec.explain.facts import LEDGER, ODDS_NOTE, Question
from privspec.explain.words import joined

if TYPE_CHECKING:
    from privspec.explain.claims import Relation
    from privspec.explain.curves import Consequences, OddsFact
    from privspec.explain.facts import ClaimFact, Facts
    from privspec.explain.quantities import Quantity


@dataclass(frozen=True, slots=True)
class TookPart(Question):
    """Whether a person's data are among those that a result was computed from."""

    heading: ClassVar[str] = "Could someone tell that you took part?"
    result: ClassVar[str] = "result"
    of_label: ClassVar[str] = "Could the published result reveal that I took part?"

    def aim(self) -> str:
        return (
            "Someone tries to tell from the published result whether you took part. They may know everything about "
            "everybody else, have all the computers there are, and make both kinds of mistakes equally often."
        )

    def compared(self, fact: ClaimFact) -> str:
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
        return (
            f"If you did not take part, {odds.without_words} possible results would still make them say that you did.",
            f"If you did, {odds.taking_part_words}.",
        )

    def icons(self, odds: OddsFact) -> IconArray:
        plain = odds.plain
        return IconArray(
            caption="Each mark is a possible result; a full one would make them say that you took part.",
            rows=(
                IconRow(f"You did not take part: {odds.without_words}", plain.without, plain.of),
                IconRow(f"You took part: {odds.taking_part_words}", plain.taking_part, plain.of),
            ),
        )

    def headers(self) -> tuple[str, str]:
        return "If you did not take part", "If you did"

    def short_headers(self) -> tuple[str, str]:
        return "Did not take part", "Took part"

    def label(self, odds: OddsFact, at_worst: str) -> str:
        return (
            f"Only by the odds above{at_worst}: {odds.without_words} possible results say so if you did not, "
            f"{odds.taking_part_words} if you did."
        )

    def again(self, times: str, odds: OddsFact) -> str:
        return (
            f"Every further release weakens the protection. After {times} releases like this one the odds would be "
            f"{odds.pair}. {LEDGER}"
        )

    def for_auditors(self, odds: OddsFact, relation: Relation) -> str:
        absence = f" (“not taking part” means that {relation.absence})" if relation.absence else ""
        return (
            "Of an observer whose two kinds of mistakes are equally frequent: if a person did not take "
            f"part, {odds.without_words} possible results would still make them say that the person did; "
            f"if the person did, {odds.taking_part_words}{absence}. No observer does better on both counts."
        )

    def residual(self, advantage: str) -> str:
        return (
            "Residual risk: compared with not taking part, an observer can tell “took part” from “did "
            f"not” with an advantage of at most {advantage}."
        )

    def axes(self) -> tuple[str, str]:
        return (
            "false alarms (says “took part” of one who did not)",
            "misses (does not say so of one who did)",
        )

    def first_limit(self) -> str:
        return "It compares with not taking part; it does not say what others know about you already."

    def several(self, _facts: Facts, fact: ClaimFact) -> Table | None:
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


HARD = 0.25
"""From this share of mistakes on two values are called hard to tell apart."""
SURE = 0.05
"""Below this share of mistakes an observer is called almost sure."""
_EQUALLY = "have all the computers there are, and make both kinds of mistakes equally often."


@dataclass(frozen=True, slots=True)
class OneReport(Question):
    """Which of two values a report stands for; `stays` is whether the value itself never leaves its owner.

    `noun` is the word for a value, `first` and `second` name two of them.
    """

    noun: str
    stays: bool
    first: str
    second: str

    result: ClassVar[str] = "report"

    @property
    def _pair(self) -> str:
        """Two values, in a clause: "any two answers, say red and blue"."""
        raise NotImplementedError

    def aim(self) -> str:
        opening = ""
        if self.stays:
            opening = f"Your {self.noun} itself never leaves you; what leaves you is a report drawn by chance. "
        return (
            f"{opening}Someone who sees the report tries to tell which of two {self.noun}s it stands for. They may "
            f"know everything about everybody else, {_EQUALLY}"
        )

    def compared(self, _fact: ClaimFact) -> str:
        return f"Take {self._pair}."

    def odds(self, odds: OddsFact) -> tuple[str, str]:
        """If it is the second, and if it is the first."""
        return (
            f"If yours is {self.second}, {odds.without_words} possible reports would still make them say {self.first}.",
            f"If yours is {self.first}, {odds.taking_part_words}.",
        )

    def icons(self, odds: OddsFact) -> IconArray:
        plain = odds.plain
        return IconArray(
            caption=f"Each mark is a possible report; a full one would make them say {self.first}.",
            rows=(
                IconRow(f"Yours is {self.second}: {odds.without_words}", plain.without, plain.of),
                IconRow(f"Yours is {self.first}: {odds.taking_part_words}", plain.taking_part, plain.of),
            ),
        )

    def headers(self) -> tuple[str, str]:
        return f"If yours is {self.second}", f"If yours is {self.first}"

    def short_headers(self) -> tuple[str, str]:
        return f"Is {self.second}", f"Is {self.first}"

    def label(self, odds: OddsFact, at_worst: str) -> str:
        return (
            f"Only by the odds above{at_worst}: of {self._pair}, {odds.without_words} possible reports say the first "
            f"if yours is the second, {odds.taking_part_words} if it is the first."
        )

    def again(self, times: str, odds: OddsFact) -> str:
        """Further reports of one value; what never leaves its owner is counted by nobody else."""
        counted = "" if self.stays else f" {LEDGER}"
        scope = f" for {self.scope}" if self.scope else ""
        after = f"After {times} reports of the same {self.noun} the odds{scope} would be {odds.pair}."
        return f"Every further report weakens the protection. {after}{counted}"

    def for_auditors(self, odds: OddsFact, _relation: Relation) -> str:
        return (
            f"Of an observer of one report whose two kinds of mistakes are equally frequent, for {self._pair}: if the "
            f"true {self.noun} is the second, {odds.without_words} possible reports would still make them say the "
            f"first; if it is the first, {odds.taking_part_words}. No observer does better on both counts."
        )

    def residual(self, advantage: str) -> str:
        words = f"an observer tells which it is with an advantage of at most {advantage}"
        return f"Residual risk: of {self._pair}, {words}."

    def axes(self) -> tuple[str, str]:
        return "false alarms (says the first of two, and it is the other)", "misses (does not say the first, and it is)"

    def first_limit(self) -> str:
        compared = f"It compares with another {self.noun} instead of yours"
        return f"{compared}; it does not say what others know about you already."

    def posterior_caption(self) -> str:
        return f"How sure one report can make someone that the true {self.noun} is a given one (pure ε; note odds)"


@dataclass(frozen=True, slots=True)
class WhichAnswer(OneReport):
    """Local privacy: any two answers. `times` is the largest ratio of probabilities, None where there is no limit.

    `same` are the inputs that are not protected and the same in both worlds; they may tell of the answer by themselves.
    """

    times: Quantity | None
    same: tuple[str, ...] = ()

    heading: ClassVar[str] = "Could someone tell what you answered?"
    of_label: ClassVar[str] = "Could my report reveal my answer?"

    @property
    def _pair(self) -> str:
        return f"any two {self.noun}s, say {self.first} and {self.second}"

    def compared(self, _fact: ClaimFact) -> str:
        same = f", with the same {joined(self.same)}" if self.same else ""
        return f"Take {self._pair}{same}."

    @property
    def posterior_gap(self) -> str:
        """A ratio for each value of other inputs is none for all of them together."""
        return f"{joined(self.same)} is not protected, and may tell of it by itself" if self.same else ""

    def more(self, fact: ClaimFact) -> tuple[Block, ...]:
        """What pure privacy says besides: a ratio, and what one report adds to a guess."""
        if self.times is None:
            return ()
        because: tuple[Because, ...] = (ODDS_NOTE, *fact.claim.notes, CertificateEntry("privacy"))
        same = f" with the same {joined(self.same)}" if self.same else ""
        sentences = [
            proved(
                f"Whatever report is sent, another {self.noun}{same} could have led to it too: none makes it more "
                f"than {self.times} times as likely as another does.",
                *because,
            )
        ]
        if fact.posteriors:
            before, after = fact.posteriors[1]
            sentences.append(
                proved(
                    f"Someone who thought before that {self.first} is your {self.noun} with probability {before} can, "
                    f"after one report, be at most {after} sure of it.",
                    *because,
                )
            )
        return (Paragraph(tuple(sentences)),)

    def to_json(self) -> Mapping[str, object]:
        times = None if self.times is None else self.times.to_json()
        return {
            "heading": self.heading,
            "noun": self.noun,
            "first": self.first,
            "second": self.second,
            "largest_ratio": times,
        }


@dataclass(frozen=True, slots=True)
class Step:
    """What an observer can tell of two values at most so far apart."""

    distance: Quantity
    epsilon: Quantity
    shown: Consequences


@dataclass(frozen=True, slots=True)
class HowNear(OneReport):
    """Privacy by distance: two values at most so far apart; `steps` from near to far, the first is that of the odds."""

    steps: tuple[Step, ...]
    plane: bool

    @property
    def heading(self) -> str:  # type: ignore[override]
        return "Could someone tell where you are?" if self.plane else "Could someone tell your value?"

    @property
    def of_label(self) -> str:  # type: ignore[override]
        return f"Could my report reveal my {self.noun}?"

    @property
    def _near(self) -> Quantity:
        return self.steps[0].distance

    @property
    def _pair(self) -> str:
        return f"any two {self.noun}s at most {self._near} apart"

    @property
    def scope(self) -> str:
        return f"two {self.noun}s at most {self._near} apart"

    def compared(self, _fact: ClaimFact) -> str:
        return f"Take {self._pair}, the first and the second."

    def more(self, fact: ClaimFact) -> tuple[Block, ...]:
        rows = tuple((s.distance.text, s.shown.odds.without_words, s.shown.odds.taking_part_words) for s in self.steps)
        table = Table(
            f"How many possible reports make an observer say the first of two {self.noun}s, by how far they are apart",
            ("Apart, at most", *self.headers()),
            rows,
            numeric=frozenset({0}),
        )
        because: tuple[Because, ...] = (ODDS_NOTE, *fact.claim.notes, CertificateEntry("privacy"))
        return (table, Paragraph((proved(self._reading(), *because),)))

    def _reading(self) -> str:
        near, far = self.steps[0], self.steps[-1]
        found = f"The farther apart two {self.noun}s are, the easier they are to tell from each other"
        hard = near.shown.odds.error.value >= 100 * HARD
        sure = far.shown.exact and far.shown.odds.error.value < 100 * SURE
        if hard:
            found = f"{self.noun.capitalize()}s near each other are hard to tell apart; the farther, the easier"
        if sure:
            return f"{found}. Of {self.noun}s up to {far.distance} apart an observer can be almost sure."
        return f"{found}."

    def details(self, _fact: ClaimFact) -> tuple[Block, ...]:
        return (
            Table(
                f"What two {self.noun}s at most so far apart allow an observer (note odds)",
                ("Apart, at most", "ε", *self.short_headers(), "Advantage at most"),
                tuple(
                    (
                        s.distance.text,
                        s.epsilon.text,
                        s.shown.odds.without_words,
                        s.shown.odds.taking_part_words,
                        s.shown.advantage.text,
                    )
                    for s in self.steps
                ),
                numeric=frozenset({0, 1, 4}),
            ),
        )

    def to_json(self) -> Mapping[str, object]:
        from privspec.explain.writers import plain

        steps = [
            {"distance": plain(s.distance), "epsilon": plain(s.epsilon), "shown": plain(s.shown)} for s in self.steps
        ]
        return {"heading": self.heading, "noun": self.noun, "steps": steps}


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
        return (
            f"{self._without}, {odds.without_words} possible {self.result}s would still make them say {self._say}.",
            f"{self._with}, {odds.taking_part_words}.",
        )

    def icons(self, odds: OddsFact) -> IconArray:
        plain, (first, second) = odds.plain, self._short
        return IconArray(
            caption=f"Each mark is a possible {self.result}; a full one would make them say {self._say}.",
            rows=(
                IconRow(f"{first}: {odds.without_words}", plain.without, plain.of),
                IconRow(f"{second}: {odds.taking_part_words}", plain.taking_part, plain.of),
            ),
        )

    def headers(self) -> tuple[str, str]:
        return self._without, self._with

    def short_headers(self) -> tuple[str, str]:
        return self._short

    def label(self, odds: OddsFact, at_worst: str) -> str:
        first, second = (clause[0].lower() + clause[1:] for clause in (self._without, self._with))
        return (
            f"Only by the odds above{at_worst}: {odds.without_words} possible {self.result}s say so {first}, "
            f"{odds.taking_part_words} {second}."
        )

    def again(self, times: str, odds: OddsFact) -> str:
        return (
            f"Every further vote of the same people weakens the protection. After {times} votes like this one the odds "
            f"would be {odds.pair}. {LEDGER}"
        )

    def axes(self) -> tuple[str, str]:
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
        if self.local or fact.claim.relation.unit in (None, "everything"):
            return None
        return Table(
            caption="The same odds for people who always vote as one, like a family",
            header=("How many you are", *self.headers()),
            rows=tuple((k.text, odds.without_words, odds.taking_part_words) for k, odds in fact.groups),
        )

    def to_json(self) -> Mapping[str, object]:
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
        return f"Someone tries to tell from {self._seen} which of two votes was yours. {_ABLE}"

    def compared(self, fact: ClaimFact) -> str:
        group = fact.claim.relation.group
        more = f" It holds for up to {group} votes at once." if group > 1 else ""
        return f"Take {self._pair}.{more}"

    def for_auditors(self, odds: OddsFact, _relation: Relation) -> str:
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
        return (
            f"Residual risk: of {self._pair}, an observer of {self._observed} tells which it was with an advantage of "
            f"at most {advantage}."
        )

    def first_limit(self) -> str:
        return "It compares with another vote instead of yours; it does not say what others know about you already."

    def posterior_caption(self) -> str:
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
        return f"Someone tries to tell from {self._seen} whether you voted, and how. {_ABLE}"

    def compared(self, fact: ClaimFact) -> str:
        group = fact.claim.relation.group
        more = f" It holds for up to {group} voters at once." if group > 1 else ""
        return f"All of this is compared with not voting at all, however many others vote.{more}"

    def for_auditors(self, odds: OddsFact, _relation: Relation) -> str:
        return (
            f"Of an observer of {self._seen} whose two kinds of mistakes are equally frequent: if the {self.who} did "
            f"not vote, {odds.without_words} possible {self.result}s would still make them say that the {self.who} "
            f"did; if the {self.who} did, {odds.taking_part_words}. No observer does better on both counts, whatever "
            "the number of voters."
        )

    def residual(self, advantage: str) -> str:
        return (
            f"Residual risk: an observer of {self._seen} tells “voted” from “did not” with an advantage of at most "
            f"{advantage}."
        )

    def first_limit(self) -> str:
        return "It compares with not voting; it does not say what others know about you already."

    def posterior_caption(self) -> str:
        return f"How sure {self._seen} can make someone that a {self.who} voted (pure ε; note odds)"
