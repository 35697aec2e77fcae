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
from privspec.explain.document import Block, Document, Note, Paragraph, Points, Section, Sentence, table
from privspec.explain.messages import phrase, say, sentences, tabled
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
    if not isinstance(rule, Dictator) or not rule.amount or vote.supporters:
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
        texts = (r.text.removesuffix(".") for r in fact.remarks if r.text)
        blocks.append(tabled("paper.remarks", rows))
        blocks.append(Points(tuple(say("paper.remark.text", text=text, note=note) for text in texts)))
    if fact.one is not None:
        given: dict[str, object] = {"note": note, "one_ratio": fact.one[0], "one_epsilon": fact.one[1]}
        # the dummies of this plan, where they are not those of the paper
        own = ("", "") if fact.own is None or fact.own == fact.one else fact.own
        given |= {"own_ratio": own[0], "own_epsilon": own[1]}
        if fact.lemma and fact.false_at is not None:
            lemma = [(r.voters, r.says, r.holds, r.enough) for r in fact.lemma]
            every = phrase("paper.lemma.any"), phrase("paper.lemma.none"), fact.one[0], None
            blocks.append(tabled("paper.lemma", (*lemma, every)))
            given |= {"says": fact.false_at[0], "holds": fact.false_at[1]}
            blocks.append(Points(sentences("paper.method_2", given)))
        else:
            blocks.append(Points(sentences("paper.method_3", given)))
    if fact.future_work:
        return (*blocks, Points(sentences("paper.future", note=note)))
    return (*blocks, Points(theorems())) if blocks else ()


def theorems() -> tuple[Sentence, ...]:
    """Theorems 1 and 2 as what they are: statements about the elections that they name, and no guarantee."""
    return (*sentences("paper.theorems"), *sentences("paper.no_guarantee"))


def drawn_by_lot(formulas: Formulas) -> bool:
    """Whether a spec has random dictatorship among its definitions."""
    found = formulas.definitions.values()
    return any(isinstance(d, syntax.Call) and d.function == "random_dictator" for d in found)


LABEL = "depends on private data"
"""Stands beside every figure."""
READER = "keeper of the data"


def profile_report(plan: Plan, counted: Iterable[tuple[Ballot, int]]) -> Document:
    """The report on ballots, each with how often it was cast.

    Raises: ValueError if the plan draws no winner by lot, or a ballot names what is no alternative.
    """
    if plan.mechanism.family not in RULES:
        raise ValueError("it draws no winner by lot")
    vote, rule = read_vote(plan.executed), read_rule(plan.executed)
    ballots = list(counted)
    firsts, scores = vote.firsts(ballots), vote.totals(ballots)
    return Document(
        title=phrase("paper.profile.title"),
        subtitle=plan.spec.name or "plan",
        reader=READER,
        shows_basis=True,
        sections=(
            Section(phrase("paper.profile.warning"), (Paragraph(sentences("paper.warning"), strong=True),)),
            Section(phrase("paper.profile.votes"), _votes(vote, firsts)),
            Section(phrase("paper.profile.conditions"), _conditions(firsts)),
            Section(phrase("paper.profile.chances"), _chances(vote, rule, firsts, scores)),
        ),
        footer=phrase("paper.profile.footer", digest=plan.digest),
    )


def _labelled(key: str, **given: object) -> Sentence:
    """A sentence of this report, which says of itself that it depends on private data."""
    return say(f"paper.private.{key}", {"label": LABEL, **given})


# --- the votes ------------------------------------------------------------------------------------


def _votes(vote: Vote, firsts: tuple[int, ...]) -> tuple[Block, ...]:
    voters, least = sum(firsts), min(firsts)
    found = [_labelled("ballots", voters=voters)]
    if voters:
        name, share = vote.names[firsts.index(least)], rounded(least_share(firsts), 4)
        found.append(_labelled("least", name=name, least=least, share=share))
    if vote.voters is not None and vote.voters != voters:
        found.append(_labelled("other_number", voters=vote.voters))
    return (Points(tuple(found)),)


def _conditions(firsts: tuple[int, ...]) -> tuple[Block, ...]:
    found = [(adding, r) for adding in (True, False) for r in readings(firsts, adding=adding)]
    rows = (
        (
            _upper(reading.condition.name),
            phrase("paper.profile.more" if adding else "paper.profile.another"),
            reading.applies,
            "none" if reading.epsilon is None else rounded(reading.epsilon, 5, UP),
            LABEL,
        )
        for adding, reading in found
    )
    scopes = (_labelled("scope", name=_upper(r.condition.name), scope=_scope(r)) for _, r in found)
    exactly = (_exact(firsts, adding=adding) for adding in (True, False))
    points = Points((*scopes, *exactly))
    return (tabled("paper.statements", rows), points, Points(sentences("paper.no_guarantee")))


def _scope(reading: Reading) -> str:
    """In words, the share to a few digits."""
    condition = reading.condition
    if not isinstance(condition, LeastShare):
        return condition.scope
    return condition.scope.replace(f"{show(condition.percent)} %", f"{rounded(condition.percent, 4)} %")


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _exact(firsts: tuple[int, ...], *, adding: bool) -> Sentence:
    """The largest ratio of exactly these votes to their neighbours."""
    ratio = of_one_profile(firsts, adding=adding)
    others = phrase("paper.others.more" if adding else "paper.others.another")
    if ratio is None:
        return _labelled("no_bound", others=others)
    return _labelled("exact", others=others, figure=rounded(log_up(ratio), 5, UP) if ratio > 1 else 0)


def _chances(vote: Vote, rule: Rule, firsts: tuple[int, ...], scores: tuple[Fraction, ...]) -> tuple[Block, ...]:
    """This plan's law beside random dictatorship, and beside its own lottery without noise where that is another."""
    law = rule.law(scores)
    plain = tuple(float(p) for p in Lottery(DUMMY_VOTES).law([Fraction(n) for n in firsts]))
    laws = {phrase("paper.profile.random_dictator"): plain, _upper(rule.without): rule.noiseless(scores)}
    if plain == laws[_upper(rule.without)]:
        del laws[_upper(rule.without)]
    rows = (
        (name, count(n), *(rounded(chances[i], 5) for chances in (*laws.values(), law)), LABEL)
        for i, (name, n) in enumerate(zip(vote.names, firsts, strict=True))
    )
    header = ("Candidate", "First choices", *laws, "This plan", "Status")
    chances = table(phrase("paper.winner.caption"), header, rows, *range(1, len(laws) + 3))
    apart = [_labelled("apart", apart=_apart(law, plain))]
    apart += [_labelled("apart_from", apart=_apart(law, bare), other=rule.without) for bare in [*laws.values()][1:]]
    share = sum(p * n for p, n in zip(law, firsts, strict=True)) / max(1, sum(firsts))
    return (chances, Points((*apart, _labelled("welfare", welfare=percent(share, 3)))))


def _apart(one: tuple[float, ...], other: tuple[float, ...]) -> Quantity:
    """Their total variation."""
    return rounded(sum(abs(a - b) for a, b in zip(one, other, strict=True)) / 2, 4)
