"""What an observer tries to tell, and the words for it on every page.

A guarantee bounds how well two worlds can be told apart; which two these are decides the question that a reader has:
did I take part; what did I answer, or where was I; how did I vote, or did I vote at all. A question is the words in
which it differs from the others; the sentences that it shares with them are methods.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from privspec.explain.document import Block, IconArray, IconRow, Judged, Note, Paragraph, Table, proved, table
from privspec.explain.quantities import UP, rounded
from privspec.model.reports import listing

if TYPE_CHECKING:
    from privspec.explain.claims import Claim, Relation
    from privspec.explain.curves import Consequences, CountedOdds, Odds
    from privspec.explain.quantities import Quantity

ODDS_NOTE = Note("odds")
LEDGER = (
    "A ledger counts the releases and refuses those over its limit. It cannot stop a keeper who deletes it, or who "
    "publishes the data in another way."
)
HARD = 0.25
"""From this share of mistakes on two values are called hard to tell apart."""
SURE = 0.05
"""Below this share of mistakes an observer is called almost sure."""
_EQUALLY = "have all the computers there are, and make both kinds of mistakes equally often."

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

    Odds are always those of the first world, where the observer is wrong, and of the second, where the observer is
    right to say `says`. `result` is what the observer sees, one of many possible ones; `of_label` the question as a row
    of the label, and `answer` of which values the label gives the odds, what is said, and each world; `headers` and
    `short` the worlds as headings for the public and for auditors, `marks` above figures; `audited` whose observer, the
    first world, what they say, and the second world; `told` what an observer can tell, `against` what the page compares
    with, `sure` who can become sure of what; `further` what is done again, `repeated` how often. `pair` are the two
    values where there are many, `scope` which of them where the odds are not about all. `always` is said to the public
    under any guarantee, `pure` where ratios are bounded, `guess` begins a sentence on what a guess becomes; `steps` are
    what distances allow, and `reading` what they come to; `together` heads the table for people who hold several units.
    """

    heading: str
    result: str
    of_label: str
    aim: str
    compared: str
    headers: tuple[str, str]
    short: tuple[str, str]
    marks: tuple[str, str]
    says: str
    says_alone: str
    answer: tuple[str, str, str, str]
    audited: tuple[str, str, str, str]
    told: str
    against: str
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
    pure: str = ""
    guess: str = ""
    posterior_gap: str = ""
    """Why pure privacy says nothing here on how far a prior probability can move; empty where it does."""
    steps: tuple[Step, ...] = ()
    reading: str = ""
    together: tuple[str, str] | None = None
    form: Mapping[str, object] = field(default_factory=dict)

    def odds(self, odds: Odds) -> tuple[str, str]:
        """The two sentences of natural frequencies."""
        first, second = self.headers
        still = f"possible {self.result}s would still make them say {self.says}."
        return f"{first}, {odds.without_words} {still}", f"{second}, {odds.taking_part_words}."

    def icons(self, odds: Odds) -> IconArray:
        """Two rows of 100 figures; a full one says the second world."""
        first, second = self.marks
        return IconArray(
            f"Each mark is a possible {self.result}; a full one would make them say {self.says_alone}.",
            (
                IconRow(f"{first}: {odds.without_words}", odds.without, odds.of),
                IconRow(f"{second}: {odds.taking_part_words}", odds.taking_part, odds.of),
            ),
        )

    def label(self, odds: Odds, at_worst: str) -> str:
        """The answer in the label."""
        of, says, first, second = self.answer
        return (
            f"Only by the odds above{at_worst}: {of}{odds.without_words} possible {self.result}s say {says} {first}, "
            f"{odds.taking_part_words} {second}."
        )

    def again(self, times: str, odds: Odds) -> str:
        """What happens when it is done again so many times; what never leaves its owner is counted by nobody else."""
        scope, ledger = f" for {self.scope}" if self.scope else "", f" {LEDGER}" if self.counted else ""
        after = f"After {times} {self.repeated} the odds{scope} would be {odds.pair}.{ledger}"
        return f"Every further {self.further} weakens the protection. {after}"

    def for_auditors(self, odds: Odds) -> str:
        """Both odds in one sentence."""
        (whose, first, says, second), of = self.audited, f", for {self.pair}" if self.pair else ""
        return (
            f"Of an observer{whose} whose two kinds of mistakes are equally frequent{of}: if {first}, "
            f"{odds.without_words} possible {self.result}s would still make them say {says}; if {second}, "
            f"{odds.taking_part_words}{self.aside}. No observer does better on both counts{self.whatever}."
        )

    def residual(self, advantage: str) -> str:
        """The residual risk, with the largest advantage."""
        return f"Residual risk: {self.told} with an advantage of at most {advantage}."

    @property
    def first_limit(self) -> str:
        """What the page does not say about others' knowledge."""
        return f"It compares with {self.against}; it does not say what others know about you already."

    @property
    def posterior_caption(self) -> str:
        """What a table of probabilities before and after shows."""
        return f"How sure {self.sure} (pure ε; note odds)"

    def more(self, claim: Claim, posteriors: Posteriors) -> tuple[Block, ...]:
        """What the public page shows besides the odds."""
        found = [self.always, self.pure if posteriors else "", self.reading]
        if self.guess and posteriors:
            before, after = posteriors[1]
            found.append(f"{self.guess} {before} can, after one report, be at most {after} sure of it.")
        said = tuple(proved(text, ODDS_NOTE, *claim.notes, Judged("privacy")) for text in found if text)
        words = f"How many possible reports make an observer say the first of two {self.form.get('noun')}s"
        rows = [(s.distance, s.shown.odds.without_words, s.shown.odds.taking_part_words) for s in self.steps]
        near = table(f"{words}, by how far they are apart", ("Apart, at most", *self.headers), rows, 0)
        return (*((near,) if rows else ()), *((Paragraph(said),) if said else ()))

    def details(self) -> tuple[Table, ...]:
        """What the pages of auditors and engineers show besides: epsilon, odds and advantage by distance."""
        rows = [
            (s.distance, s.epsilon, s.shown.odds.without_words, s.shown.odds.taking_part_words, s.shown.advantage)
            for s in self.steps
        ]
        caption = f"What two {self.form.get('noun')}s at most so far apart allow an observer (note odds)"
        header = ("Apart, at most", "ε", *self.short, "Advantage at most")
        return (table(caption, header, rows, 0, 1, 4),) if rows else ()

    def several(self, groups: Sequence[CountedOdds]) -> Table | None:
        """The odds of people who hold several units; None where nobody does."""
        if self.together is None:
            return None
        caption, first = self.together
        rows = ((k, odds.without_words, odds.taking_part_words) for k, odds in groups)
        return table(caption, (first, *self.headers), rows)

    def to_json(self) -> Mapping[str, object]:
        return {"heading": self.heading, **self.form}


def took_part(relation: Relation) -> Question:
    """Whether a person's data are among those that a result was computed from."""
    compared = "All of this is compared with not taking part"
    if relation.unit is None:
        compared = f"This compares the result with the one there would be if {relation.absence}."
    else:
        compared += f", which here means that {relation.absence}." if relation.absence else "."
        if relation.group > 1:
            compared += f" It holds for up to {relation.group} {relation.plural} at once."
    mine = f"How many of the {relation.plural} are yours"
    first = mine if relation.unit in ("entry", "record") else f"How many {relation.plural} act as one"
    caption = "The same odds for people who hold several together, or a family that acts as one"
    return Question(
        heading="Could someone tell that you took part?",
        result="result",
        of_label="Could the published result reveal that I took part?",
        aim="Someone tries to tell from the published result whether you took part. They may know everything about "
        f"everybody else, {_EQUALLY}",
        compared=compared,
        headers=("If you did not take part", "If you did"),
        short=("Did not take part", "Took part"),
        marks=("You did not take part", "You took part"),
        says="that you did",
        says_alone="that you took part",
        answer=("", "so", "if you did not", "if you did"),
        audited=("", "a person did not take part", "that the person did", "the person did"),
        aside=f" (“not taking part” means that {relation.absence})" if relation.absence else "",
        told="compared with not taking part, an observer can tell “took part” from “did not”",
        against="not taking part",
        sure="one can become that a person took part, compared with not taking part",
        axes=("false alarms (says “took part” of one who did not)", "misses (does not say so of one who did)"),
        further="release",
        repeated="releases like this one",
        together=(caption, first) if relation.single else None,
    )


def _one_report(heading: str, of_label: str, noun: str, stays: bool, pair: str, names: tuple[str, str]) -> Question:
    """Which of two values a report stands for; `stays` is whether the value itself never leaves its owner.

    Args: noun, the word for a value; pair, two of them in a clause; names, what the first and the second are called.
    """
    first, second = names
    opening = f"Your {noun} itself never leaves you; what leaves you is a report drawn by chance. " if stays else ""
    return Question(
        heading=heading,
        result="report",
        of_label=of_label,
        aim=f"{opening}Someone who sees the report tries to tell which of two {noun}s it stands for. They may know "
        f"everything about everybody else, {_EQUALLY}",
        compared=f"Take {pair}.",
        headers=(f"If yours is {second}", f"If yours is {first}"),
        short=(f"Is {second}", f"Is {first}"),
        marks=(f"Yours is {second}", f"Yours is {first}"),
        says=first,
        says_alone=first,
        answer=(f"of {pair}, ", "the first", "if yours is the second", "if it is the first"),
        audited=(" of one report", f"the true {noun} is the second", "the first", "it is the first"),
        told=f"of {pair}, an observer tells which it is",
        against=f"another {noun} instead of yours",
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


def which_answer(stays: bool, names: tuple[str, str], times: Quantity | None, same: tuple[str, ...] = ()) -> Question:
    """Local privacy: any two answers.

    Args: times, the largest ratio of probabilities, None where there is no limit; same, the inputs that are not
        protected and the same in both worlds; they may tell of the answer by themselves.
    """
    first, second = names
    pair, alike = f"any two answers, say {first} and {second}", f" with the same {listing(same)}" if same else ""
    question = _one_report(
        "Could someone tell what you answered?", "Could my report reveal my answer?", "answer", stays, pair, names
    )
    found = replace(
        question,
        compared=f"Take {pair}{f',{alike}' if same else ''}.",
        posterior_gap=f"{listing(same)} is not protected, and may tell of it by itself" if same else "",
        form={"noun": "answer", "first": first, "second": second, "largest_ratio": times},
    )
    if times is None:
        return found
    return replace(
        found,
        always=f"Whatever report is sent, another answer{alike} could have led to it too: none makes it more than "
        f"{times} times as likely as another does.",
        guess=f"Someone who thought before that {first} is your answer with probability",
    )


def of_entry(source: str, names: tuple[str, ...]) -> Question:
    """Which of two values one entry of a sequence has, for an observer who knows by what law the entries are drawn."""
    first, second = names[0], names[-1]
    pair = f"any two values of any one entry, say {first} and {second}"
    return Question(
        heading=f"Could someone tell one entry of {source}?",
        result="result",
        of_label=f"Could the published result reveal one entry of {source}?",
        aim=f"Someone tries to tell from the published result which of two values one entry of {source} has. They know "
        f"the model that this release counts on, {_EQUALLY}",
        compared=f"Take {pair}. All other entries are drawn as the model says, given that one.",
        headers=(f"If it is {second}", f"If it is {first}"),
        short=(f"Is {second}", f"Is {first}"),
        marks=(f"It is {second}", f"It is {first}"),
        says=f"that it is {first}",
        says_alone=first,
        answer=(f"of {pair}, ", "the first", "if it is the second", "if it is the first"),
        audited=(" who knows the model", "the entry is the second value", "the first", "it is the first"),
        told=f"of {pair}, an observer who knows the model tells which it is",
        against="another value instead of yours, if the model is right",
        sure="one result can make someone who knows the model that an entry has a given value",
        axes=(
            "false alarms (says the first of two, and it is the other)",
            "misses (does not say the first, and it is)",
        ),
        further="release",
        repeated="releases like this one",
        counted=False,
        pair=pair,
        form={"noun": "value"},
    )


def how_near(stays: bool, steps: tuple[Step, ...], *, plane: bool) -> Question:
    """Privacy by distance: two values at most so far apart; `steps` from near to far, the odds are of the first."""
    noun, near = "place" if plane else "value", steps[0].distance
    scope = f"two {noun}s at most {near} apart"
    pair = f"any {scope}"
    question = _one_report(
        f"Could someone tell {'where you are' if plane else 'your value'}?",
        f"Could my report reveal my {noun}?",
        noun,
        stays,
        pair,
        ("the first", "the second"),
    )
    return replace(
        question,
        compared=f"Take {pair}, the first and the second.",
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
    return f"{found} Of {noun}s up to {far.distance} apart an observer can be almost sure." if sure else found


def about_vote(
    relation: Relation, who: str, times: Quantity, *, local: bool, names: tuple[str, str] = ("one way", "another way")
) -> Question:
    """How somebody voted, or where voters are added or removed whether somebody voted at all.

    Args: who, one person who votes; times, the largest factor between the chances of a winner in both worlds; names,
        two votes ("for north"), the first is what the observer says.
    """
    result, seen = ("message", "the message with your vote") if local else ("result", "the winner")
    observed = "one message" if local else seen
    first, second = names
    named = f", say one {first} and one {second}" if first.startswith("for ") else ""
    pair = "" if relation.adds else f"any two votes{named}"
    if relation.adds:
        headers, short, says = ("If you did not vote", "If you did"), ("Did not vote", "Voted"), "that you did"
        audited = f" of {seen}", f"the {who} did not vote", f"that the {who} did", f"the {who} did"
        told = f"an observer of {seen} tells “voted” from “did not”"
        compared = "All of this is compared with not voting at all, however many others vote."
    else:
        headers, short = (f"If you voted {second}", f"If you voted {first}"), (f"Voted {second}", f"Voted {first}")
        says, compared = f"that you voted {first}", f"Take {pair}."
        audited = f" of {observed}", f"the {who} voted {second}", f"“{first}”", first
        told = f"of {pair}, an observer of {observed} tells which it was"
    if relation.group > 1:
        compared += f" It holds for up to {relation.group} {'voters' if relation.adds else 'votes'} at once."
    caption = "The same odds for people who always vote as one, like a family"
    worlds = [clause[0].lower() + clause[1:] for clause in headers]
    return Question(
        heading=f"Could someone tell {'whether' if relation.adds else 'how'} you voted?",
        result=result,
        of_label=f"Could the result reveal {'that' if relation.adds else 'how'} I voted?",
        aim=f"Someone tries to tell from {seen} "
        f"{'whether you voted, and how' if relation.adds else 'which of two votes was yours'}. They may know how "
        f"everybody else voted, {_EQUALLY}",
        compared=compared,
        headers=headers,
        short=short,
        marks=short,
        says=says,
        says_alone=says,
        answer=("", "so", worlds[0], worlds[1]),
        audited=audited,
        told=told,
        against="not voting" if relation.adds else "another vote instead of yours",
        sure=f"{seen} can make someone that a {who} voted"
        if relation.adds
        else f"{observed} can make someone that a vote was a given one",
        axes=(f"false alarms ({short[0].lower()})", f"misses ({short[1].lower()})"),
        further="vote of the same people",
        repeated="votes like this one",
        pair=pair,
        whatever=", whatever the number of voters" if relation.adds else "",
        pure=f"Whatever the {result}, it had a chance in both cases too: your vote makes no {result} more than {times} "
        "times as likely as it was.",
        together=(caption, "How many you are") if relation.single and not local else None,
        form={"without": headers[0], "with": headers[1], "largest_ratio": times},
    )


def largest_factor(epsilon: float) -> Quantity:
    """e^epsilon, rounded up: by how much a probability may change."""
    return rounded(math.exp(min(epsilon, 700.0)) * (1 + 1e-12), 3, UP)
