"""What an observer of a single report tries to tell: which answer it stands for, or which of two places nearby."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from privspec.explain.document import Block, IconArray, IconRow, Paragraph, Table
from privspec.explain.questions import LEDGER, ODDS_NOTE, Question
from privspec.explain.sentences import Because, CertificateEntry, proved
from privspec.explain.words import joined

if TYPE_CHECKING:
    from privspec.explain.claims import Relation
    from privspec.explain.fact_types import ClaimFact, Consequences, OddsFact
    from privspec.explain.quantities import Quantity

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
        """A value from its report."""
        opening = ""
        if self.stays:
            opening = f"Your {self.noun} itself never leaves you; what leaves you is a report drawn by chance. "
        return (
            f"{opening}Someone who sees the report tries to tell which of two {self.noun}s it stands for. They may "
            f"know everything about everybody else, {_EQUALLY}"
        )

    def compared(self, _fact: ClaimFact) -> str:
        """Which two values."""
        return f"Take {self._pair}."

    def odds(self, odds: OddsFact) -> tuple[str, str]:
        """If it is the second, and if it is the first."""
        return (
            f"If yours is {self.second}, {odds.without_words} possible reports would still make them say {self.first}.",
            f"If yours is {self.first}, {odds.taking_part_words}.",
        )

    def icons(self, odds: OddsFact) -> IconArray:
        """A full mark says the first."""
        plain = odds.plain
        return IconArray(
            caption=f"Each mark is a possible report; a full one would make them say {self.first}.",
            rows=(
                IconRow(f"Yours is {self.second}: {odds.without_words}", plain.without, plain.of),
                IconRow(f"Yours is {self.first}: {odds.taking_part_words}", plain.taking_part, plain.of),
            ),
        )

    def headers(self) -> tuple[str, str]:
        """The second, and the first."""
        return f"If yours is {self.second}", f"If yours is {self.first}"

    def short_headers(self) -> tuple[str, str]:
        """The second, and the first."""
        return f"Is {self.second}", f"Is {self.first}"

    def label(self, odds: OddsFact, at_worst: str) -> str:
        """Both odds."""
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
        """Both odds in one sentence."""
        return (
            f"Of an observer of one report whose two kinds of mistakes are equally frequent, for {self._pair}: if the "
            f"true {self.noun} is the second, {odds.without_words} possible reports would still make them say the "
            f"first; if it is the first, {odds.taking_part_words}. No observer does better on both counts."
        )

    def residual(self, advantage: str) -> str:
        """The advantage in telling two values apart."""
        words = f"an observer tells which it is with an advantage of at most {advantage}"
        return f"Residual risk: of {self._pair}, {words}."

    def axes(self) -> tuple[str, str]:
        """Mistakes about the first of two values."""
        return "false alarms (says the first of two, and it is the other)", "misses (does not say the first, and it is)"

    def first_limit(self) -> str:
        """Compared with another value."""
        compared = f"It compares with another {self.noun} instead of yours"
        return f"{compared}; it does not say what others know about you already."

    def posterior_caption(self) -> str:
        """About one value, from one report."""
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
        """Which two answers, and what stays the same."""
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
        """With the two answers that are told apart best."""
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
        """Where, or what."""
        return "Could someone tell where you are?" if self.plane else "Could someone tell your value?"

    @property
    def of_label(self) -> str:  # type: ignore[override]
        """Where, or what."""
        return f"Could my report reveal my {self.noun}?"

    @property
    def _near(self) -> Quantity:
        return self.steps[0].distance

    @property
    def _pair(self) -> str:
        return f"any two {self.noun}s at most {self._near} apart"

    @property
    def scope(self) -> str:
        """The least distance that is shown."""
        return f"two {self.noun}s at most {self._near} apart"

    def compared(self, _fact: ClaimFact) -> str:
        """Two values nearby."""
        return f"Take {self._pair}, the first and the second."

    def more(self, fact: ClaimFact) -> tuple[Block, ...]:
        """The odds by distance, and what they come to."""
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
        """Epsilon, odds and advantage by distance."""
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
        """With all distances."""
        from privspec.explain.jsonform import plain

        steps = [
            {"distance": plain(s.distance), "epsilon": plain(s.epsilon), "shown": plain(s.shown)} for s in self.steps
        ]
        return {"heading": self.heading, "noun": self.noun, "steps": steps}
