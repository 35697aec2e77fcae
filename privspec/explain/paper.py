"""What Torra 2019 says of random dictatorship, and what holds: kindly, and with every figure computed.

Also the report on a real profile of votes, for the keeper of the data only, nothing of which may be published: which
conditional statements of the paper apply to these votes, and how far this plan's lottery is from random dictatorship
without noise. Every figure of it is computed from the votes and labelled so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from privspec.core.records import dataclass
from privspec.explain.context import Formulas
from privspec.explain.document import (
    Because,
    Block,
    Document,
    Note,
    Paragraph,
    Points,
    Section,
    Sentence,
    assumed,
    proved,
    reported,
    table,
)
from privspec.explain.quantities import EXACT, UP, Quantity, count, exact, percent, rounded
from privspec.explain.voting_rules import RULES, Dictator, Rule, Vote, read_rule, read_vote
from privspec.families.voting.papers import LeastShare, Reading, least_share, of_one_profile, readings
from privspec.families.voting.rules import log_up
from privspec.kernel.laws.voting import DUMMY_VOTES
from privspec.language import syntax
from privspec.model.values import show
from privspec.model.voting import Ballot, Lottery
from privspec.stated import PaperRemark as Stated
from privspec.stated import Stated as Plan
from privspec.stated import parse_exact

SIZES = (0, 1, 2, 5, 10, 100, 1000)
"""Numbers of voters at which Lemma 1 is evaluated."""
HEADING = "What the paper says, and what holds"
NO_DUMMIES = Note("no-dummies")


@dataclass(frozen=True, slots=True)
class PaperRemark:
    """A quantity where the plan says that the paper's figure is another one; figures are None where none is given."""

    quantity: str
    says: Quantity | None
    holds: Quantity | None
    text: str


@dataclass(frozen=True, slots=True)
class LemmaRow:
    """Lemma 1 at a number of voters: e^epsilon as the paper has it, and as it is there."""

    voters: Quantity
    says: Quantity
    holds: Quantity
    enough: bool


@dataclass(frozen=True, slots=True)
class PaperFact:
    """The plan's own remarks, and for dummy votes the lemmas: e^epsilon for every number of voters, and epsilon.

    `lemma` are Lemma 1's figures by the number of voters, empty where everybody votes; `one` is what holds for one
    dummy vote for each alternative as in the paper, `own` for this plan's; `false_at` Lemma 1 where it is too small.
    `future_work`: whether the paper leaves this kind of lottery for later.
    """

    remarks: tuple[PaperRemark, ...]
    lemma: tuple[LemmaRow, ...] = ()
    one: tuple[Quantity, Quantity] | None = None
    own: tuple[Quantity, Quantity] | None = None
    false_at: tuple[Quantity, Quantity] | None = None
    future_work: bool = False


def paper_fact(stated: Iterable[Stated], vote: Vote, rule: Rule) -> PaperFact:
    """What there is to say of the paper for this plan."""
    remarks = tuple(PaperRemark(r.quantity, _figure(r.says), _figure(r.holds), r.text) for r in stated)
    if not isinstance(rule, Dictator) or not rule.amount:
        return PaperFact(remarks)
    if vote.ranked:
        return PaperFact(remarks, future_work=True)
    ratios = 2, 1 + 1 / rule.amount
    one, own = ((rounded(r, 5, UP), rounded(log_up(Fraction(r)), 5, UP)) for r in ratios)
    if vote.voters is not None:
        return PaperFact(remarks, (), one, own)
    lemma = []
    for voters in SIZES:
        says, holds = lemma_one(vote.size, voters), ratio_at(vote.size, voters, Fraction(1))
        lemma.append(LemmaRow(count(voters), rounded(says, 5), rounded(holds, 5), holds <= says))
    return PaperFact(remarks, tuple(lemma), one, own, (exact(lemma_one(2, 0)), exact(ratio_at(2, 0, Fraction(1)))))


def lemma_one(alternatives: int, voters: int) -> Fraction:
    """e^epsilon of Lemma 1: 2 n / (n + 1) with n voters and dummies together."""
    n = voters + alternatives
    return Fraction(2 * n, n + 1)


def ratio_at(alternatives: int, voters: int, dummies: Fraction) -> Fraction:
    """The largest ratio of probabilities between so many voters and one more (MATH.md, section 6; note dummy-votes)."""
    n = voters + alternatives * dummies
    return max((dummies + 1) / dummies * n / (n + 1), (n + 1) / n)


def _figure(value: object) -> Quantity | None:
    if value is None:
        return None
    try:
        return rounded(parse_exact(value), 5)
    except ValueError:
        return Quantity(math.nan, str(value), EXACT)


def paper_blocks(fact: PaperFact, note: Note) -> tuple[Block, ...]:
    """Tables and sentences for engineers and auditors; nothing where the paper says nothing of such a plan."""
    blocks: list[Block] = []
    if fact.remarks:
        rows = [(r.quantity, r.says or "none", r.holds or "none") for r in fact.remarks]
        blocks.append(table("Torra 2019 beside what holds", "Quantity | The paper | What holds", rows, 1, 2))
        said = (reported(f"{r.text.removesuffix('.')}.", note) for r in fact.remarks if r.text)
        blocks.append(Points(tuple(said)))
    if fact.lemma and fact.one is not None and fact.false_at is not None:
        lemma = ((r.voters, r.says, r.holds, r.enough) for r in fact.lemma)
        caption = "e^ε of one dummy vote for each candidate, by the number of voters (the larger electorate has one"
        every = "any number", "none", fact.one[0], None
        header = "Voters | Lemma 1 | What holds | Lemma 1 enough"
        least = (
            "Method 2 of the paper is sound. Its Lemma 1 states an ε that depends on the actual number of voters, "
            "which is secret here, and a guarantee must hold for every number. For one dummy vote for each candidate "
            f"the least such ε is log {fact.one[0]}, at most {fact.one[1]}.{_own(fact)}"
        )
        says, holds = fact.false_at
        small = (
            "In one case Lemma 1 is a little too small: with two candidates and nobody who voted yet, the first voter "
            f"changes a probability by a factor of {holds}, and the lemma allows {says}. The proof refers to Theorem "
            "1, which asks for three voters or more."
        )
        blocks.append(table(f"{caption} more)", header, (*lemma, every), 0, 1, 2))
        blocks.append(Points((proved(least, note), proved(small, note))))
    elif fact.one is not None:
        words = (
            "Method 3 of the paper is sound, and its Lemma 2 is true: where everybody votes, one dummy vote for each "
            f"candidate gives log {fact.one[0]}, at most {fact.one[1]}.{_own(fact)}"
        )
        blocks.append(Points((proved(words, note),)))
    if fact.future_work:
        words = (
            "The paper leaves lotteries in proportion to Borda scores to future work. This plan is one, with dummy "
            "votes so that a guarantee holds whatever the rankings."
        )
        return (*blocks, Points((proved(words, note),)))
    return (*blocks, Points(theorems(NO_DUMMIES))) if blocks else ()


def _own(fact: PaperFact) -> str:
    """What the dummies of this plan give, where they are not those of the paper."""
    if fact.own is None or fact.own == fact.one:
        return ""
    return f" The dummy votes of this plan give log {fact.own[0]}, at most {fact.own[1]}."


def theorems(*because: Because) -> tuple[Sentence, ...]:
    """Theorems 1 and 2 as what they are: statements about the elections that they name, and no guarantee."""
    return (
        proved(
            "Theorem 1 (i), Theorem 2 (i): without noise no ε holds. A vote for a candidate whom nobody else chose "
            "makes possible what was impossible, and may reveal its voter.",
            *because,
        ),
        proved(
            "Theorem 1 (ii) is a conditional statement: between T ≥ 3 voters and one more, if every candidate has a "
            "vote in both elections, no probability changes by more than the factor 2 T / (T + 1).",
            *because,
        ),
        proved(
            "Theorem 1 (iii) is a conditional statement, for α up to T / (2 T + 1), between T voters and one more. If "
            "a share of at least α of the T is for each candidate, no probability changes by more than the factor "
            "(α T + 1) / (α (T + 1)).",
            *because,
        ),
        proved(
            "Theorem 2 is a conditional statement, between two elections of T voters who differ in one vote. If every "
            "candidate has a vote in both, no probability changes by more than the factor 2. If every candidate has a "
            "share of at least α in both, it changes by no more than (α T + 1) / (α T).",
            *because,
        ),
        proved(
            "None of these conditional statements is a privacy guarantee. Whether the conditions hold, and with which "
            "α, depends on the votes, so that to act on them or to publish them reveals something about the votes.",
            *because,
        ),
    )


def drawn_by_lot(formulas: Formulas) -> bool:
    """Whether a spec has random dictatorship among its definitions."""
    found = formulas.definitions.values()
    return any(isinstance(d, syntax.Call) and d.function == "random_dictator" for d in found)


LABEL = "depends on private data"
"""Stands beside every figure."""
READER = "keeper of the data"
_NOTE = NO_DUMMIES


def profile_report(plan: Plan, counted: Iterable[tuple[Ballot, int]]) -> Document:
    """The report on ballots, each with how often it was cast.

    Raises: ValueError if the plan draws no winner by lot, or a ballot names what is no alternative.
    """
    if plan.mechanism.family not in RULES:
        raise ValueError("it draws no winner by lot")
    vote, rule = read_vote(plan.mechanism), read_rule(plan.mechanism)
    ballots = list(counted)
    firsts, scores = vote.firsts(ballots), vote.totals(ballots)
    return Document(
        title="Private: a report on the votes themselves",
        subtitle=plan.spec.name or "plan",
        reader=READER,
        shows_basis=True,
        sections=(
            Section("Do not publish this report", (Paragraph(_warning(), strong=True),)),
            Section("The votes", _votes(vote, firsts)),
            Section("Conditional statements of Torra 2019 on these votes", _conditions(firsts)),
            Section("The winner's chances on these votes", _chances(vote, rule, firsts, scores)),
        ),
        footer=f"Computed from the votes and from the plan with the fingerprint (SHA-256) {plan.digest}. "
        "For the keeper of the data only.",
    )


def _warning() -> tuple[Sentence, ...]:
    return (
        assumed(
            "This report is computed from the votes, without any noise. Do not publish it, nor any line of it.", _NOTE
        ),
        proved(
            "None of it is differential privacy, whatever ε stands in it. The number of voters, the least represented "
            "share α, and whether a condition holds reveal votes by themselves: α = 0 says that nobody voted for some "
            "candidate, and the next α may say whether one more voter did.",
            _NOTE,
        ),
        proved("What may be published is the winner that `privspec run` draws, and the plan's own guarantee.", _NOTE),
    )


def _labelled(text: str) -> Sentence:
    return proved(f"{text} [{LABEL}]", _NOTE)


# --- the votes ------------------------------------------------------------------------------------


def _votes(vote: Vote, firsts: tuple[int, ...]) -> tuple[Block, ...]:
    voters, least = sum(firsts), min(firsts)
    found = [_labelled(f"{count(voters)} ballots were read.")]
    if voters:
        name, share = vote.names[firsts.index(least)], rounded(least_share(firsts), 4)
        words = f"The least represented candidate is {name}, the first choice of {count(least)}: the share α is"
        found.append(_labelled(f"{words} {share} %."))
    if vote.voters is not None and vote.voters != voters:
        found.append(_labelled(f"The plan is for {vote.voters:,} voters, and its guarantee for that number only."))
    return (Points(tuple(found)),)


def _conditions(firsts: tuple[int, ...]) -> tuple[Block, ...]:
    found = [(adding, r) for adding in (True, False) for r in readings(firsts, adding=adding)]
    rows = (
        (
            _upper(reading.condition.name),
            "one voter more" if adding else "another vote",
            reading.applies,
            "none" if reading.epsilon is None else rounded(reading.epsilon, 5, UP),
            LABEL,
        )
        for adding, reading in found
    )
    caption = "Statements about random dictatorship without noise, between these votes and others in their scope"
    statements = table(caption, "Statement | Compared with | Applies here | ε at most, in its scope | Status", rows, 3)
    scopes = [_labelled(f"{_upper(r.condition.name)} speaks of {_scope(r)}.") for _, r in found]
    exactly = [_labelled(_exact(firsts, adding=adding)) for adding in (True, False)]
    return (statements, Points((*scopes, *exactly)), Points(theorems(_NOTE)[-1:]))


def _scope(reading: Reading) -> str:
    """In words, the share to a few digits."""
    condition = reading.condition
    if not isinstance(condition, LeastShare):
        return condition.scope
    return condition.scope.replace(f"{show(condition.percent)} %", f"{rounded(condition.percent, 4)} %")


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _exact(firsts: tuple[int, ...], *, adding: bool) -> str:
    """The largest ratio of exactly these votes to their neighbours."""
    ratio = of_one_profile(firsts, adding=adding)
    others = "one voter more" if adding else "one other vote"
    if ratio is None:
        return f"Between exactly these votes and any with {others}, the ratio of probabilities has no bound."
    figure = rounded(log_up(ratio), 5, UP) if ratio > 1 else "0"
    return f"Between exactly these votes and any with {others}, the exact figure is {figure}; it is no guarantee."


def _chances(vote: Vote, rule: Rule, firsts: tuple[int, ...], scores: tuple[Fraction, ...]) -> tuple[Block, ...]:
    """This plan's law beside random dictatorship, and beside its own lottery without noise where that is another."""
    law = rule.law(scores)
    plain = tuple(float(p) for p in Lottery(DUMMY_VOTES).law([Fraction(n) for n in firsts]))
    laws = {"Random dictatorship": plain, _upper(rule.without): rule.noiseless(scores)}
    if plain == laws[_upper(rule.without)]:
        del laws[_upper(rule.without)]
    rows = (
        (name, count(n), *(rounded(chances[i], 5) for chances in (*laws.values(), law)), LABEL)
        for i, (name, n) in enumerate(zip(vote.names, firsts, strict=True))
    )
    header = ("Candidate", "First choices", *laws, "This plan", "Status")
    chances = table("Probability to win, exactly these votes", header, rows, *range(1, len(laws) + 3))
    found = [f"This plan is {_apart(law, plain)} from random dictatorship without noise, in total variation."]
    found += [f"It is {_apart(law, bare)} from {rule.without}." for bare in [*laws.values()][1:]]
    welfare = percent(sum(p * n for p, n in zip(law, firsts, strict=True)) / max(1, sum(firsts)), 3)
    found.append(f"The winner is expected to be the first choice of {welfare} of the voters.")
    return (chances, Points(tuple(map(_labelled, found))))


def _apart(one: tuple[float, ...], other: tuple[float, ...]) -> Quantity:
    """Their total variation."""
    return rounded(sum(abs(a - b) for a, b in zip(one, other, strict=True)) / 2, 4)
