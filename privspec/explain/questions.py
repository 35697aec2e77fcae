"""What an observer tries to tell, and the words for it on every page.

A guarantee bounds how well two worlds can be told apart; which two these are decides the question that a reader has:
did I take part; what did I answer, or where was I; how did I vote, or did I vote at all. A question is the words in
which it differs from the others; the sentences that it shares with them are methods.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from privspec.core.records import dataclass, field, replace
from privspec.explain.curves import EpsilonDeltaCurve
from privspec.explain.document import Block, IconArray, IconRow, Judged, Note, Paragraph, Table, proved, table
from privspec.explain.quantities import UP, rounded, unit_words
from privspec.model.reports import listing

if TYPE_CHECKING:
    from privspec.explain.claims import Claim, Relation
    from privspec.explain.curves import Consequences, CountedOdds, Odds
    from privspec.explain.quantities import Quantity

ODDS_NOTE = Note("odds")
LEDGER = "A ledger limits releases, unless the keeper deletes it."
HARD = 0.25
"""From this share of mistakes on two values are called hard to tell apart."""
SURE = 0.05
"""Below this share of mistakes an observer is called almost sure."""
SEVERAL = (2, 10)
"""How many units of one person the public page gives odds for."""
COUNTS = ("Wrongly accused", "Rightly found")
"""The two counts of the odds, as the headings of every table of them."""
_MEANS = "and have unlimited computing power."

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
    """The words for one question.

    A guesser points at people. `worlds` say whom, in words that follow "people": first those who are wrongly accused,
    then those who are rightly found; odds are always in this order. `of_label` is the question as a row of the label;
    `told` what an observer can tell, `sure` who can become sure of what;
    `further` what is done again, `repeated` how often. `pair` are the two values where there are many, `scope` which of
    them where the odds are not about all. `always` is said to the public under any guarantee, `pure` where ratios are
    bounded, `guess` begins a sentence on what a guess becomes; `steps` are what distances allow, and `reading` what
    they come to; `together` begins a sentence on so many units in
    one hand.
    """

    heading: str
    of_label: str
    aim: str
    compared: str
    worlds: tuple[str, str]
    told: str
    sure: str
    axes: tuple[str, str]
    further: str
    repeated: str
    counted: bool = True
    pair: str = ""
    scope: str = ""
    aside: str = ""
    whatever: str = ""
    always: str = ""
    guess: str = ""
    posterior_gap: str = ""
    """Why pure privacy says nothing here on how far a prior probability can move; empty where it does."""
    steps: tuple[Step, ...] = ()
    reading: str = ""
    together: str = ""
    form: Mapping[str, object] = field(default_factory=dict)

    def in_units(self, unit: str) -> Question:
        """The same question with the distances of its steps in a unit that readers know."""
        if not self.steps or not unit:
            return self

        def said(text: str) -> str:
            for far in (self.steps[0].distance, self.steps[-1].distance):
                for how in ("apart", "away"):
                    text = text.replace(f"{far} {how}", f"{far}{unit_words(unit, far.text)} {how}")
            return text

        first, second = self.worlds
        return replace(
            self, worlds=(said(first), said(second)), reading=said(self.reading), form={**self.form, "unit": unit}
        )

    def odds(self, odds: Odds) -> str:
        """The sentence of natural frequencies, true of every guesser that it speaks of (note odds)."""
        first, second = self.worlds
        accused = (
            f"A guesser who errs equally often both ways would on average accuse {odds.without_words} people {first}"
        )
        if self.steps:  # who is accused takes more words: how far away they are
            return f"{accused}. Of people {second}, they would find {odds.taking_part_words}."
        return f"{accused}, and find {odds.taking_part_words} {second}."

    def icons(self, odds: Odds) -> IconArray:
        """Two rows of 100 figures; a full one is somebody whom the guesser points at."""
        first, second = COUNTS
        mark = "person" if odds.of == 100 else f"group of {odds.of // 100:,} people"
        return IconArray(
            f"A full mark is a {mark} whom the guesser points at.",
            (
                IconRow(f"{first}: {odds.without_words}", odds.without, odds.of),
                IconRow(f"{second}: {odds.taking_part_words}", odds.taking_part, odds.of),
            ),
        )

    def label(self, at_worst: str) -> str:
        """The answer in the label."""
        return f"Only by the odds above{at_worst}."

    def again(self, times: str, odds: Odds) -> str:
        """What happens when it is done again so many times; what never leaves its owner is counted by nobody else."""
        ledger = f" {LEDGER}" if self.counted else ""
        few = f"as few as {odds.without:,} of {odds.of:,} might"
        few = "possibly hardly anybody would" if odds.tells_little else few
        after = f"after {times} {self.repeated}, {few} be wrongly accused."
        return f"Each {self.further} weakens the protection: {after}{ledger}"

    def for_auditors(self, odds: Odds) -> str:
        """Both odds in one sentence, and what they are about."""
        of = f" This holds for {self.pair}." if self.pair else ""
        return f"{self.odds(odds)}{of}{self.aside} No guesser does better on both counts{self.whatever}."

    def residual(self, advantage: str) -> str:
        """The residual risk, with the largest advantage."""
        return f"Residual risk: {self.told} with an advantage of at most {advantage}."

    @property
    def first_limit(self) -> str:
        """What the page does not say about others' knowledge."""
        return "It does not say what others know about you already."

    @property
    def posterior_caption(self) -> str:
        """What a table of probabilities before and after shows."""
        return f"How sure {self.sure} (pure ε; note odds)"

    def more(self, claim: Claim, posteriors: Posteriors) -> tuple[Block, ...]:
        """What the public page shows besides the odds."""
        found = [self.always, self.reading]
        if self.guess and posteriors:
            before, after = posteriors[1]
            found.append(f"{self.guess} {before} can, after one report, be at most {after} sure of it.")
        said = tuple(proved(text, ODDS_NOTE, *claim.notes, Judged("privacy")) for text in found if text)
        rows = [(s.distance, s.shown.odds.without_words, s.shown.odds.taking_part_words) for s in self.steps]
        apart = f"Apart, at most{f', in {unit}' if (unit := self.form.get('unit')) else ''}"
        near = table("The same odds, by how far apart two of them are", (apart, *COUNTS), rows, 0)
        return (*((near,) if rows else ()), *((Paragraph(said),) if said else ()))

    def details(self) -> tuple[Table, ...]:
        """What the pages of auditors and engineers show besides: epsilon, odds and advantage by distance."""
        rows = [
            (s.distance, s.epsilon, s.shown.odds.without_words, s.shown.odds.taking_part_words, s.shown.advantage)
            for s in self.steps
        ]
        caption = f"What two {self.form.get('noun')}s at most this far apart allow an observer (note odds)"
        header = ("Apart, at most", "ε", *COUNTS, "Advantage at most")
        return (table(caption, header, rows, 0, 1, 4),) if rows else ()

    def several(self, groups: Sequence[CountedOdds]) -> str:
        """The odds of people who hold several units; empty where nobody does."""
        found = [(int(k.value), odds.without_words) for k, odds in groups if k.value in SEVERAL]
        # where more units make no difference, the last says all
        alone = next((odds.without_words for k, odds in groups if k.value == 1), "")
        kept = [one for one, after in pairwise(found) if one[1] not in (after[1], alone)] + found[-1:]
        if not self.together or not kept:
            return ""
        said = [f"{self.together.format(k)}, {odds} would be wrongly accused" for k, odds in kept[:1]]
        return "; ".join(said + [f"if {k}, {odds}" for k, odds in kept[1:]]) + "."

    def to_json(self) -> Mapping[str, object]:
        return {"heading": self.heading, **self.form}


_ANSWER = {
    "entry": "one number in the data",
    "record": "the record about you",
    "voter": "everything that you sent in",
    "everything": "all data about you",
}


def took_part(relation: Relation) -> Question:
    """Whether a person's data are among those that a result was computed from, or which data they are.

    Where units are replaced, everybody takes part, and what can be told is what somebody's data are.
    """
    held = "are yours" if relation.unit in ("entry", "record") else "act as one, like a family"
    together = f"If {{}} {relation.plural} {held}" if relation.single else ""
    many = f" This holds for up to {relation.group} {relation.plural} at once." if relation.group > 1 else ""
    if relation.kept is not None:
        counted = "one of your records counts" if relation.kept == 1 else f"{relation.kept} of your records count"
        many = f" At most {counted}, drawn at random."
    know = f"They know everybody else's data {_MEANS}"
    if relation.adds:
        return Question(
            heading="Could someone tell that you took part?",
            of_label="Could the published result reveal that I took part?",
            aim=f"Suppose somebody studies the published result to tell whether you took part. {know}",
            compared=f"All of this is compared with not taking part.{many}",
            worlds=("who did not take part", "who did"),
            told="compared with not taking part, an observer can tell “took part” from “did not”",
            sure="one can become that a person took part, compared with not taking part",
            axes=("false alarms (accuses one who did not take part)", "misses (does not find one who did)"),
            further="release",
            repeated="such releases",
            together=together,
        )
    meant = _ANSWER.get(relation.unit or "", f"all data of one {relation.unit}")
    meant = meant if relation.kept is None else "all records about you"
    compared = f"Your answer means {meant}, compared with any other answer.{many}"
    if relation.unit is None:
        compared = f"The page compares the data with others that differ as the guarantee says ({relation.text})."
    return Question(
        heading="Could someone tell what you answered?",
        of_label="Could the published result reveal my answer?",
        aim=f"Suppose somebody studies the published result to tell whether you gave a certain answer. {know}",
        compared=compared,
        worlds=("who gave a different answer", "who gave that answer"),
        aside=""
        if relation.unit is None
        else f" An answer means {meant.replace('about you', 'about a person')}.".replace(
            "that you sent", "that one person sent"
        ),
        told="an observer can tell a given answer from a different one",
        sure="one can become that a person gave a given answer and not a different one",
        axes=("false alarms (accuses one who gave a different answer)", "misses (does not find one who gave that)"),
        further="release",
        repeated="such releases",
        together=together,
    )


def _one_report(
    heading: str, of_label: str, noun: str, stays: bool, pair: str, worlds: tuple[str, str], which: str
) -> Question:
    """Which of two values a report stands for; `stays` is whether the value itself never leaves its owner.

    Args: noun, the word for a value; pair, two of them in a clause; worlds, as in a question; which, what is told.
    """
    opening = f"Your {noun} never leaves you: you send a report drawn by chance. " if stays else ""
    return Question(
        heading=heading,
        of_label=of_label,
        aim=f"{opening}Suppose somebody studies your report to tell {which}. They know everybody else's data {_MEANS}",
        compared="",
        worlds=worlds,
        told=f"of {pair}, an observer tells which it is",
        sure=f"one report can make someone that the true {noun} is a given one",
        axes=(
            "false alarms (says the first of two, and it is the other)",
            "misses (does not say the first, and it is)",
        ),
        further="report",
        repeated=f"reports of the same {noun}",
        counted=not stays,
        pair=pair,
        form={"noun": noun},
    )


def which_answer(
    stays: bool, names: tuple[str, str], times: Quantity | None, same: tuple[str, ...] = (), of: str = "answer"
) -> Question:
    """Local privacy: any two answers.

    Args: times, the largest ratio of probabilities, None where there is no limit; same, the inputs that are not
        protected and the same in both worlds; they may tell of the answer by themselves; of, what is told.
    """
    first, second = names
    pair = f"any two {'answers' if of == 'answer' else f'values of {of}'}, say {first} and {second}"
    alike = f" with the same {listing(same)}" if same else ""
    question = _one_report(
        "Could someone tell what you answered?",
        "Could my report reveal my answer?",
        "answer",
        stays,
        pair,
        (f"whose {of} is {second}", f"whose {of} is {first}"),
        f"whether your {of} is {first} rather than {second}",
    )
    found = replace(
        question,
        compared=f"The same holds for any other two answers{alike}.",
        posterior_gap=f"{listing(same)} is not protected, and may tell of it by itself" if same else "",
        form={"noun": "answer", "first": first, "second": second, "largest_ratio": times},
    )
    if times is None:
        return found
    return replace(
        found,
        always=f"Any report could have come from another answer{alike}: none makes it more than {times} times as "
        "likely as another does.",
        guess=f"Someone who thought before that {first} is your {of} with probability",
    )


def of_report(claim: Claim, names: tuple[str, str], *, stays: bool) -> Question:
    """About any two answers of a report that a claim is about; about taking part, if it is about no report."""
    if not claim.local:
        return took_part(claim.relation)
    reached = claim.achieved if isinstance(claim.achieved, EpsilonDeltaCurve) else None
    times = largest_factor(reached.epsilon) if reached is not None and reached.delta == 0.0 else None
    return which_answer(stays, names, times)


def of_entry(source: str, names: tuple[str, ...]) -> Question:
    """Which of two values one entry of a sequence has, for an observer who knows by what law the entries are drawn."""
    first, second = names[0], names[-1]
    pair = f"any two values of any one entry, say {first} and {second}"
    return Question(
        heading=f"Could someone tell a single value of “{source}”?",
        of_label=f"Could the published result reveal a single value of “{source}”?",
        aim=f"Suppose somebody studies the published result to tell whether a single value of “{source}” is {first} "
        f"rather than {second}. They know the model that this release counts on, {_MEANS}",
        compared="The same holds for any other two values. All other entries follow the model.",
        worlds=(f"whose value is {second}", f"whose value is {first}"),
        told=f"of {pair}, an observer who knows the model tells which it is",
        sure="one result can make someone who knows the model that an entry has a given value",
        axes=(
            "false alarms (says the first of two, and it is the other)",
            "misses (does not say the first, and it is)",
        ),
        further="release",
        repeated="such releases",
        counted=False,
        pair=pair,
        form={"noun": "value"},
    )


def how_near(stays: bool, steps: tuple[Step, ...], *, plane: bool) -> Question:
    """Privacy by distance: two values at most so far apart; `steps` from near to far, the odds are of the first."""
    noun, near = "place" if plane else "value", steps[0].distance
    scope = f"two {noun}s at most {near} apart"
    question = _one_report(
        f"Could someone tell {'where you are' if plane else 'your value'}?",
        f"Could my report reveal my {noun}?",
        noun,
        stays,
        f"any {scope}",
        (f"whose true {noun} is another one, at most {near} away", f"whose {noun} it is"),
        f"which of two {noun}s is yours",
    )
    return replace(
        question,
        scope=scope,
        steps=steps,
        reading=_reading(noun, steps[0], steps[-1]),
        form={"noun": noun, "steps": steps},
    )


def _reading(noun: str, near: Step, far: Step) -> str:
    """What distances come to."""
    found = f"The farther apart two {noun}s are, the easier they are to tell from each other."
    if near.shown.odds.error.value >= 100 * HARD:
        found = f"{noun.capitalize()}s near each other are hard to tell apart; the farther, the easier."
    sure = far.shown.exact and far.shown.odds.error.value < 100 * SURE
    return f"{found} Where two are {far.distance} apart, a guesser can be almost sure." if sure else found


def about_vote(
    relation: Relation, who: str, times: Quantity, *, local: bool, names: tuple[str, str] = ("one way", "another way")
) -> Question:
    """How somebody voted, or where voters are added or removed whether somebody voted at all.

    Args: who, one person who votes; times, the largest factor between the chances of a winner in both worlds; names,
        two votes ("for north"), the first is what the guesser says.
    """
    seen = "the message with your vote" if local else "the winner"
    observed = "one message" if local else seen
    first, second = names
    named = f", say one {first} and one {second}" if first.startswith("for ") else ""
    pair = "" if relation.adds else f"any two votes{named}"
    if relation.adds:
        worlds, told = ("who did not vote", "who did"), f"an observer of {seen} tells “voted” from “did not”"
        tells, compared = "whether you voted", "All of this is compared with not voting, however many others vote."
    else:
        told = f"of {pair}, an observer of {observed} tells which it was"
        worlds, tells = (f"who voted {second}", f"who voted {first}"), f"whether you voted {first} rather than {second}"
        if not named:
            worlds, tells = ("who voted another way", "who voted that way"), "whether you voted in a certain way"
        compared = "The same holds for any other two votes."
    if relation.group > 1:
        compared += f" It holds for up to {relation.group} {'voters' if relation.adds else 'votes'} at once."
    return Question(
        heading=f"Could someone tell {'whether' if relation.adds else 'how'} you voted?",
        of_label=f"Could the result reveal {'that' if relation.adds else 'how'} I voted?",
        aim=f"Suppose somebody studies {seen} to tell {tells}. They know how everybody else voted {_MEANS}",
        compared=compared,
        worlds=worlds,
        told=told,
        sure=f"{seen} can make someone that a {who} voted"
        if relation.adds
        else f"{observed} can make someone that a vote was a given one",
        axes=(f"false alarms (accuses one {worlds[0]})", f"misses (does not find one {worlds[1]})"),
        further="vote",
        repeated="votes like this one",
        pair=pair,
        whatever=", whatever the number of voters" if relation.adds else "",
        together="If {} voters always vote as one, like a family" if relation.single and not local else "",
        form={"without": worlds[0], "with": worlds[1], "largest_ratio": times},
    )


def largest_factor(epsilon: float) -> Quantity:
    """e^epsilon, rounded up: by how much a probability may change."""
    return rounded(math.exp(min(epsilon, 700.0)) * (1 + 1e-12), 3, UP)
