"""What Torra 2019 says of random dictatorship, and what holds: kindly, and with every figure computed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from privspec.explain.document import Block, Points, Section, Table
from privspec.explain.losses import Formulas
from privspec.explain.lotteries.rule import Rule
from privspec.explain.lotteries.rules import Dictator
from privspec.explain.lotteries.vote import Vote
from privspec.explain.quantities import Quantity, Rounding, count, exact, parse_exact, rounded
from privspec.explain.sentences import Because, Note, Sentence, proved
from privspec.language import syntax
from privspec.mechanisms.lotteries.rounding import log_up

SIZES = (0, 1, 2, 5, 10, 100, 1000)
"""Numbers of voters at which Lemma 1 is evaluated."""
HEADING = "What the paper says, and what holds"
NO_DUMMIES = Note("no-dummies")


@dataclass(frozen=True, slots=True)
class Remark:
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

    remarks: tuple[Remark, ...]
    lemma: tuple[LemmaRow, ...]
    one: tuple[Quantity, Quantity] | None
    own: tuple[Quantity, Quantity] | None
    false_at: tuple[Quantity, Quantity] | None
    future_work: bool = False


def paper_fact(mechanism: Mapping[str, Any], vote: Vote, rule: Rule) -> PaperFact:
    """What there is to say of the paper for this plan."""
    remarks = tuple(_remark(item) for item in mechanism.get("paper") or ())
    if not isinstance(rule, Dictator) or not rule.dummies:
        return PaperFact(remarks, (), None, None, None)
    if vote.ranked:
        return PaperFact(remarks, (), None, None, None, future_work=True)
    one, own = (_every(k) for k in (Fraction(1), rule.dummies))
    if vote.voters is not None:
        return PaperFact(remarks, (), one, own, None)
    lemma = tuple(_row(vote.size, voters) for voters in SIZES)
    return PaperFact(remarks, lemma, one, own, (exact(lemma_one(2, 0)), exact(ratio_at(2, 0, Fraction(1)))))


def _every(dummies: Fraction) -> tuple[Quantity, Quantity]:
    """e^epsilon that holds for every number of voters, and epsilon."""
    ratio = 1 + 1 / dummies
    return rounded(ratio, 5, Rounding.UP), rounded(log_up(ratio), 5, Rounding.UP)


def lemma_one(alternatives: int, voters: int) -> Fraction:
    """e^epsilon of Lemma 1: 2 n / (n + 1) with n voters and dummies together."""
    n = voters + alternatives
    return Fraction(2 * n, n + 1)


def ratio_at(alternatives: int, voters: int, dummies: Fraction) -> Fraction:
    """The largest ratio of probabilities between so many voters and one more (MATH.md, section 6; note dummy-votes)."""
    n = voters + alternatives * dummies
    return max((dummies + 1) / dummies * n / (n + 1), (n + 1) / n)


def _row(alternatives: int, voters: int) -> LemmaRow:
    says, holds = lemma_one(alternatives, voters), ratio_at(alternatives, voters, Fraction(1))
    return LemmaRow(count(voters), rounded(says, 5), rounded(holds, 5), holds <= says)


def _remark(item: Mapping[str, Any]) -> Remark:
    return Remark(
        str(item["quantity"]), _figure(item.get("says")), _figure(item.get("holds")), str(item.get("text") or "")
    )


def _figure(value: object) -> Quantity | None:
    if value is None:
        return None
    try:
        return rounded(parse_exact(value), 5)
    except ValueError:
        return Quantity(math.nan, str(value), Rounding.EXACT)


def paper_section(fact: PaperFact, note: Note) -> tuple[Section, ...]:
    """The section for engineers and auditors; nothing where the paper says nothing of such a plan."""
    blocks = paper_blocks(fact, note)
    return (Section(HEADING, blocks),) if blocks else ()


def paper_blocks(fact: PaperFact, note: Note) -> tuple[Block, ...]:
    """Tables and sentences."""
    blocks: list[Block] = []
    if fact.remarks:
        rows = tuple((r.quantity, *(f.text if f else "none" for f in (r.says, r.holds))) for r in fact.remarks)
        table = Table("Torra 2019 beside what holds", ("Quantity", "The paper", "What holds"), rows, frozenset({1, 2}))
        blocks += [table, Points(tuple(proved(f"{r.text.removesuffix('.')}.", note) for r in fact.remarks if r.text))]
    if fact.lemma:
        rows = tuple((r.voters.text, r.says.text, r.holds.text, "yes" if r.enough else "no") for r in fact.lemma)
        every = ("any number", "none", fact.one[0].text if fact.one else "", "")
        header = ("Voters", "Lemma 1", "What holds", "Lemma 1 enough")
        caption = (
            "e^ε of one dummy vote for each candidate, by the number of voters (the larger electorate has one more)"
        )
        blocks += [Table(caption, header, (*rows, every), frozenset({0, 1, 2})), Points(_lemma(fact, note))]
    elif fact.one is not None:
        blocks.append(Points((_second_lemma(fact, note),)))
    if fact.future_work:
        words = (
            "The paper leaves lotteries in proportion to Borda scores to future work. This plan is one, with dummy "
            "votes "
            "so that a guarantee holds whatever the rankings."
        )
        return (*blocks, Points((proved(words, note),)))
    if not blocks:
        return ()
    return (*blocks, Points(theorems(NO_DUMMIES)))


def _lemma(fact: PaperFact, note: Note) -> tuple[Sentence, ...]:
    if fact.one is None or fact.false_at is None:
        return ()
    ratio, epsilon = fact.one
    says, holds = fact.false_at
    return (
        proved(
            "Method 2 of the paper is sound. Its Lemma 1 states an ε that depends on the actual number of voters, "
            "which is secret here, and a guarantee must hold for every number. For one dummy vote for each candidate "
            f"the least such ε is log {ratio}, at most {epsilon}.{_own(fact)}",
            note,
        ),
        proved(
            "In one case Lemma 1 is a little too small: with two candidates and nobody who voted yet, the first voter "
            f"changes a probability by a factor of {holds}, and the lemma allows {says}. The proof refers to Theorem "
            "1, which asks for three voters or more.",
            note,
        ),
    )


def _second_lemma(fact: PaperFact, note: Note) -> Sentence:
    ratio, epsilon = fact.one or (None, None)
    return proved(
        "Method 3 of the paper is sound, and its Lemma 2 is true: where everybody votes, one dummy vote for each "
        f"candidate gives log {ratio}, at most {epsilon}.{_own(fact)}",
        note,
    )


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
            "Theorem 1 (iii) is a conditional statement: between T voters, of whom a share of at least α is for each "
            "candidate, and one more voter, no probability changes by more than the factor (α T + 1) / (α (T + 1)), "
            "for α up to T / (2 T + 1).",
            *because,
        ),
        proved(
            "Theorem 2 is a conditional statement: between two elections of T voters who differ in one vote, if every "
            "candidate has a vote in both, no probability changes by more than the factor 2; if every candidate has a "
            "share of at least α in both, by no more than (α T + 1) / (α T).",
            *because,
        ),
        proved(
            "None of these conditional statements is a privacy guarantee: whether the conditions hold, and with which "
            "α, depends on the votes, so that to act on them or to publish them reveals something about the votes.",
            *because,
        ),
    )


def drawn_by_lot(formulas: Formulas) -> bool:
    """Whether a spec has random dictatorship among its definitions."""
    found = formulas.definitions.values()
    return any(isinstance(d, syntax.Call) and d.function == "random_dictator" for d in found)
