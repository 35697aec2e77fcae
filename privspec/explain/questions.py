"""What an observer tries to tell, and the words for it on every page.

A guarantee bounds how well two worlds can be distinguished; which two these are decides the question that a reader has:
did I take part; what did I answer, or where was I; how did I vote, or did I vote at all. Each question has a section of
messages/questions.toml, which says what its parts are; here stands which question it is, and with which figures.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from privspec.core.records import dataclass, field, replace
from privspec.explain.curves import EpsilonDeltaCurve
from privspec.explain.document import Block, IconArray, IconRow, Paragraph, Sentence, Table, table
from privspec.explain.messages import phrase, section, sentences
from privspec.explain.quantities import UP, rounded, unit_words
from privspec.model.reports import listing

if TYPE_CHECKING:
    from privspec.explain.claims import Claim, Relation
    from privspec.explain.curves import Consequences, CountedOdds, Odds
    from privspec.explain.quantities import Quantity

HARD = 0.25
"""From this share of mistakes on two values are called hard to distinguish."""
SURE = 0.05
"""Below this share of mistakes an observer is called almost sure."""
SEVERAL = (2, 10)
"""How many units of one person the public page gives odds for."""

Posteriors = Sequence[tuple["Quantity", "Quantity"]]
"""Probabilities before a release, and the largest they can be after it."""


@dataclass(frozen=True, slots=True)
class Step:
    """What an observer can tell of two values at most so far apart."""

    distance: Quantity
    epsilon: Quantity
    shown: Consequences


@dataclass(frozen=True, slots=True)
class Question:
    """One question: its section, and the values that its words name.

    `counted` is whether a ledger counts how often it is asked, `grouped` whether one person may have several units;
    `steps` are what distances allow.
    """

    kind: str
    values: Mapping[str, object]
    counted: bool = True
    grouped: bool = False
    steps: tuple[Step, ...] = field(default=())

    def text(self, name: str) -> str:
        """Its words of that name, or those of all questions."""
        own = f"questions.{self.kind}.{name}"
        known = any(one.key == own for one in section(f"questions.{self.kind}"))
        return phrase(own if known else f"questions.any.{name}", self.values)

    @property
    def heading(self) -> str:
        """The question as a heading."""
        return self.text("heading")

    @property
    def scope(self) -> str:
        """Which values the odds are about, where they are not about all."""
        return self.text("scope")

    @property
    def axes(self) -> tuple[str, str]:
        """The two kinds of mistakes."""
        return self.text("false_alarms"), self.text("misses")

    @property
    def unprotected(self) -> bool:
        """Whether something that is not protected may reveal the answer by itself."""
        return bool(self.values.get("same"))

    def in_units(self, unit: str) -> Question:
        """The same question with the distances of its steps in a unit that readers know."""
        if not self.steps or not unit:
            return self
        near, far = (f"{at.distance}{unit_words(unit, at.distance.text)}" for at in (self.steps[0], self.steps[-1]))
        return replace(self, values={**self.values, "near": near, "far": far, "unit": unit})

    def odds(self, odds: Odds, claim: Claim) -> tuple[Sentence, ...]:
        """Natural frequencies, true of every guesser that they speak of (note odds)."""
        accused, found = self.text("accused"), self.text("found")
        return sentences("questions.odds", odds=odds, claim=claim, accused=accused, found=found)

    def icons(self, odds: Odds) -> IconArray:
        """Two rows of 100 figures; a full one is somebody whom the guesser points at."""
        size = odds.of // 100
        caption = phrase("questions.icons.caption")
        return IconArray(
            caption if size == 1 else phrase("questions.icons.groups", size=size),
            (
                IconRow(phrase("questions.icons.accused", odds=odds), odds.without, odds.of),
                IconRow(phrase("questions.icons.found", odds=odds), odds.taking_part, odds.of),
            ),
        )

    def aim(self, claim: Claim) -> tuple[Sentence, ...]:
        """What the guesser tries to tell, and what is compared."""
        return sentences(f"questions.{self.kind}_aim", self.values, {"claim": claim})

    def means(self, claim: Claim) -> tuple[Sentence, ...]:
        """What its words mean, for auditors."""
        return sentences(f"questions.{self.kind}_means", self.values, {"claim": claim})

    def more(self, claim: Claim, posteriors: Posteriors) -> tuple[Block, ...]:
        """What the public page shows besides the odds."""
        before, after = posteriors[1] if posteriors else ("", "")
        given = {"claim": claim, "before": before, "after": after}
        found = sentences(f"questions.{self.kind}_more", self.values, given)
        rows = [(s.distance, s.shown.odds.without_words, s.shown.odds.taking_part_words) for s in self.steps]
        columns = phrase("questions.steps.columns", unit=self.values.get("unit", ""))
        near = table(phrase("questions.steps.near"), columns, rows, 0)
        return (*((near,) if rows else ()), *((Paragraph(found),) if found else ()))

    def details(self) -> tuple[Table, ...]:
        """What the pages of auditors and engineers show besides: epsilon, odds and advantage by distance."""
        rows = [
            (s.distance, s.epsilon, s.shown.odds.without_words, s.shown.odds.taking_part_words, s.shown.advantage)
            for s in self.steps
        ]
        if not rows:
            return ()
        caption = phrase("questions.steps.details", noun=self.values["noun"])
        return (table(caption, phrase("questions.steps.columns_of_details"), rows, 0, 1, 4),)

    def several(self, groups: Sequence[CountedOdds], claim: Claim) -> tuple[Sentence, ...]:
        """The odds of people who hold several units; none where nobody does."""
        found = [(k, odds.without_words) for k, odds in groups if k.value in SEVERAL]
        # where more units make no difference, the last says all
        alone = next((odds.without_words for k, odds in groups if k.value == 1), "")
        kept = [one for one, after in pairwise(found) if one[1] not in (after[1], alone)] + found[-1:]
        if not self.grouped or not kept:
            return ()
        (many, words), (more, words_of_more) = kept[0], kept[1] if len(kept) > 1 else ("", "")
        numbers = {"many": many, "words": words, "more": more, "words_of_more": words_of_more}
        whose = {"claim": claim, "units": self.text("units"), "held": self.text("held")}
        return sentences("questions.several", **numbers, **whose)

    def to_json(self) -> Mapping[str, object]:
        return {"heading": self.heading, **self.values, "steps": self.steps}


_MEANT = ("entry", "record", "voter", "everything")


def took_part(relation: Relation) -> Question:
    """Whether a person's data are among those that a result was computed from, or which data they are.

    Where units are replaced, everybody takes part, and what can be told is what somebody's data are.
    """
    unit = relation.unit
    meant = "other" if unit is None else "unit" if unit not in _MEANT else unit
    values = {
        "relation": relation,
        "yours": unit in ("entry", "record"),
        "meant": meant if relation.kept is None else "records",
    }
    return Question("took_part" if relation.adds else "answered", values, grouped=relation.single)


def which_answer(
    stays: bool, names: tuple[str, str], times: Quantity | None, same: tuple[str, ...] = (), of: str = "answer"
) -> Question:
    """Local privacy: any two answers.

    Args: stays, whether the answer itself never leaves its owner; times, the largest ratio of probabilities, None where
        there is no limit; same, the inputs that are not protected and the same in both worlds; they may reveal the
        answer by themselves; of, what the answer is called.
    """
    values = {
        "noun": "answer",
        "first": names[0],
        "second": names[1],
        "largest_ratio": times,
        "stays": stays,
        "same": listing(same),
        "of": of,
        "other": "" if of == "answer" else of,
    }
    return Question("one_answer", values, counted=not stays)


def of_report(claim: Claim, names: tuple[str, str], *, stays: bool) -> Question:
    """About any two answers of a report that a claim is about; about taking part, if it is about no report."""
    if not claim.local:
        return took_part(claim.relation)
    reached = claim.achieved if isinstance(claim.achieved, EpsilonDeltaCurve) else None
    times = largest_factor(reached.epsilon) if reached is not None and reached.delta == 0.0 else None
    return which_answer(stays, names, times)


def of_entry(source: str, names: tuple[str, ...]) -> Question:
    """Which of two values one entry of a sequence has, for an observer who knows by what law the entries are drawn."""
    values = {"noun": "value", "source": source, "first": names[0], "second": names[-1]}
    return Question("entry", values, counted=False)


def how_near(stays: bool, steps: tuple[Step, ...], *, plane: bool) -> Question:
    """Privacy by distance: two values at most so far apart; `steps` from near to far, the odds are of the first."""
    near, far = steps[0], steps[-1]
    values = {
        "noun": "place" if plane else "value",
        "plane": plane,
        "stays": stays,
        "near": near.distance,
        "far": far.distance,
        "hard": near.shown.odds.error.value >= 100 * HARD,
        "sure": far.shown.exact and far.shown.odds.error.value < 100 * SURE,
    }
    return Question("near", values, counted=not stays, steps=steps)


def about_vote(
    relation: Relation, who: str, times: Quantity, *, local: bool, names: tuple[str, str] = ("", "")
) -> Question:
    """How somebody voted, or where voters are added or removed whether somebody voted at all.

    Args: who, one person who votes; times, the largest factor between the chances of a winner in both worlds; names,
        two votes, the first is what the guesser says; empty where votes have no short names.
    """
    values = {
        "relation": relation,
        "who": who,
        "local": local,
        "first": names[0],
        "second": names[1],
        "largest_ratio": times,
    }
    return Question("voted" if relation.adds else "vote", values, grouped=relation.single and not local)


def largest_factor(epsilon: float) -> Quantity:
    """e^epsilon, rounded up: by how much a probability may change."""
    return rounded(math.exp(min(epsilon, 700.0)) * (1 + 1e-12), 3, UP)
