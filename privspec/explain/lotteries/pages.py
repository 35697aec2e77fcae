"""What the pages say of a lottery: in a line, to the public, to auditors and to engineers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from privspec.explain.additive import randomness
from privspec.explain.document import Block, Points, Section, Table
from privspec.explain.lotteries import drawings, rounds
from privspec.explain.lotteries.examples import MOST
from privspec.explain.lotteries.paper import HEADING, paper_blocks, paper_section
from privspec.explain.quantities import count, rounded
from privspec.explain.sentences import CertificateEntry, Note, Sentence, asserted, proved
from privspec.explain.words import joined

if TYPE_CHECKING:
    from privspec.explain.fact_types import Facts, LossFact
    from privspec.explain.lotteries.examples import Example
    from privspec.explain.lotteries.facts import LotteryFact

_ENTRY, _FIGURES = CertificateEntry("privacy"), CertificateEntry("figures")
_COUNTED = re.compile(r"(-\s*|1\s*/\s*)\w+")
"""A loss that asks for as many rounds as possible."""
FEW = 3
"""Candidates of an example that a sentence names."""


# --- in a line ------------------------------------------------------------------------------------


def drawn(fact: LotteryFact, facts: Facts) -> str:
    """The draw, and where."""
    words = facts.context.trust_words
    return f"{fact.rule.brief(fact.vote)}{f', {words.place}' if words and not fact.local else ''}"


def summary_rows(fact: LotteryFact, facts: Facts) -> list[tuple[str, str]]:
    """Among what it is optimal, what it keeps, how far the chances are from the votes, and how many rounds fit."""
    found = []
    if facts.loss is not None and facts.status == "optimal":
        found.append(("Optimal among", facts.loss.among))
    if fact.properties:
        found.append(("Keeps, gives up", " · ".join(p.short for p in fact.properties)))
    figures = [
        f"{words} {figure}"
        for words, figure in (("at worst", fact.figures.worst), ("on average", fact.figures.mean))
        if figure is not None
    ]
    if figures:
        found.append(("Chances moved by noise", f"{' · '.join(figures)}  (total variation)"))
    if fact.figures.welfare is not None:
        found.append(("Voted for the winner", f"{_percent(fact.figures.welfare.value)} of voters, on average"))
    if fact.rounds is not None:
        found += rounds.summary_rows(fact.rounds)
    if fact.comparison is not None and fact.comparison.considered:
        found.append(("Considered, ruled out", " · ".join(row.name for row in fact.comparison.considered)))
    return found


def _percent(share: float) -> str:
    return f"{rounded(100 * share, 3)} %"


def error(fact: LotteryFact, facts: Facts) -> tuple[str, str]:
    """The loss; where the loss is epsilon itself, that."""
    loss = facts.loss
    if loss is None:
        return "Loss", ""
    if loss.expression.strip() == "epsilon":
        return "Privacy spent", f"ε = {loss.value}, the least that a rule compared here needs for the accuracy"
    if fact.rounds is not None and _COUNTED.fullmatch(loss.expression.strip()):
        return "Votes that fit", f"{fact.rounds.count}, the most of all rules compared{_no_more(loss)}"
    spread = f" ± {loss.standard_error}" if loss.standard_error is not None else ""
    return ("Loss at worst" if loss.worst else "Expected loss"), f"{loss.value}{spread}  ({loss.expression})"


def _no_more(loss: LossFact) -> str:
    """The bound on rounds that holds for every rule, where the loss is minus their number."""
    bound = None if loss.lower_bound is None else loss.lower_bound.value
    if bound is None or bound >= 0 or not re.fullmatch(r"-\s*\w+", loss.expression.strip()):
        return ""
    return f"; no rule at all has more than {count(round(-bound))}"


# --- the public -----------------------------------------------------------------------------------


def public_accuracy(fact: LotteryFact) -> tuple[Sentence, ...]:
    """What a lottery is, what it does at an invented election, and what it means for how to vote."""
    found = [proved(text, fact.note, _ENTRY) for text in fact.rule.told(fact.vote)]
    found += [proved(_example_words(fact, example), fact.note) for example in fact.examples[:1]]
    keeps = {p.name: p for p in fact.properties}
    if (item := keeps.get("strategy_proof")) is not None:
        true = (
            "rank the candidates as you like them" if fact.vote.ranked else "vote for the candidate whom you want most"
        )
        yes = f"To {true} is the best that you can do: no other vote serves you better."
        no = "In some elections another vote than the true one can serve a voter better."
        found.append(proved(yes if item.holds else no, Note(item.note)))
    if (item := keeps.get("ex_post_efficient")) is not None and not item.holds and fact.examples:
        found.append(proved(_unwanted(fact.examples[-1]), fact.note))
    return tuple(found)


def _example_words(fact: LotteryFact, example: Example) -> str:
    """The first candidates of an example, their chances with and without noise."""
    shown = example.chances[:FEW]
    votes = joined([f"{c.votes} for {c.name}" for c in shown])
    chances = joined([f"{c.name} with probability {c.chance} ({c.without} in {fact.rule.without})" for c in shown[:2]])
    rest = ", the others for other candidates" if len(example.chances) > FEW else ""
    return f"An invented example: of {example.voters} voters, {votes}{rest}. Then the winner is {chances}."


def _unwanted(example: Example) -> str:
    last = example.chances[-1]
    return (
        f"The price of privacy: a candidate whom nobody wants can win. Where {example.title}, {last.name} still wins "
        f"{last.words}."
    )


def exactly(fact: LotteryFact) -> str:
    """Rules and candidates, and the number of voters where that is public."""
    name, value = fact.rule.parameter()
    size = f"; how many may vote ({fact.vote.voters:,})" if fact.vote.voters is not None else ""
    hidden = " Not how many voted." if fact.vote.voters is None else ""
    return f"The candidates and the rule of the lottery ({name}: {value}){size}.{hidden}"


# --- auditors -------------------------------------------------------------------------------------


def auditor_points(fact: LotteryFact) -> tuple[Sentence, ...]:
    """The draw, what it keeps, and the rounds."""
    found = [proved(text, fact.note, _ENTRY) for text in fact.rule.executed(fact.vote)]
    found.append(
        proved(
            "The draw is exact: a whole number below the common denominator of the probabilities decides, so that no "
            "floating-point number takes part.",
            fact.note,
        )
    )
    found += _distortion(fact)
    if fact.rounds is not None:
        found += rounds.points(fact.rounds)
    return (*found, *randomness(fact.note))


def _distortion(fact: LotteryFact) -> list[Sentence]:
    worst = fact.figures.worst
    if worst is None:
        return []
    text = f"The law of the winner is at most {worst} from that of {fact.figures.compared}, in total variation."
    return [proved(text, fact.note, _FIGURES)]


def auditor_tables(fact: LotteryFact) -> tuple[Block, ...]:
    """Chances, rules, and the paper."""
    compared = fact.comparison.blocks() if fact.comparison is not None else ()
    laws = drawings.laws_plot(fact)
    said = paper_blocks(fact.paper, fact.note)
    head = (Points((proved(f"{HEADING}: the figures of Torra 2019 beside those of this plan.", fact.note),)),)
    several = (rounds.rounds_table(fact.rounds),) if fact.rounds is not None else ()
    return (*several, *((laws,) if laws else ()), *compared, *((*head, *said) if said else ()))


def data(fact: LotteryFact) -> tuple[Sentence, ...]:
    """The ballots and who casts them."""
    vote = fact.vote
    kind = {"first choice": "one candidate", "ranking": "all candidates, best first"}.get(
        vote.ballots, "some of the candidates, best first"
    )
    number = f"{vote.voters:,}" if vote.voters is not None else "a secret number of"
    text = f"Secret input {vote.input}: the ballots of {number} {vote.people}, each naming {kind}."
    found = [asserted(text, fact.input_line)]
    if vote.ranked:
        words = "Of a ballot count its Borda points: m − 1 for the first of m candidates, one less for each next."
        found.append(proved(words, fact.note))
    elif vote.ballots != "first choice":
        found.append(proved("Of a ballot only its first choice counts.", fact.note))
    return tuple(found)


# --- engineers ------------------------------------------------------------------------------------


def engineer_sections(fact: LotteryFact, facts: Facts) -> tuple[Section, ...]:
    """The lottery in drawings, all rules, and the paper."""
    name, value = fact.rule.parameter()
    words = [proved(f"How the winner is drawn: {drawn(fact, facts)} ({name}: {value}).", fact.note, _ENTRY)]
    words += _distortion(fact)
    several = (rounds.rounds_table(fact.rounds),) if fact.rounds is not None else ()
    if fact.rounds is not None:
        words += rounds.points(fact.rounds)
    plots = [plot for plot in (drawings.laws_plot(fact), drawings.dummies_plot(fact)) if plot is not None]
    sections = [Section("Lottery", (Points(tuple(words)), *several, *plots))]
    if fact.comparison is not None:
        sections.append(Section("Rules compared", fact.comparison.blocks()))
    return (*sections, *paper_section(fact.paper, fact.note))


def execution(fact: LotteryFact, facts: Facts) -> tuple[Block, ...]:
    """The steps of a run."""
    name, value = fact.rule.parameter()
    vote = fact.vote
    listed = joined(list(vote.names[:MOST])) + (f" and {vote.size - MOST} more" if vote.size > MOST else "")
    rows = (
        ("Ballots", f"{vote.input}, one a {vote.party}: {vote.ballots}"),
        ("Number of ballots", f"{vote.voters:,}" if vote.voters is not None else "any; it is secret"),
        ("Candidates", listed),
        ("Points of a ballot", vote.points.name),
        ("Rule", fact.rule.title),
        (name[0].upper() + name[1:], value.text),
        ("Released", vote.output),
        ("Certificate entries", ", ".join(facts.certificate_entries) or "none"),
    )
    draw = proved(
        "A draw: the operating system gives whole numbers, each as likely as any other; exact fractions decide which "
        "candidate they stand for.",
        fact.note,
    )
    return (Table("What `privspec run` executes", ("Item", "Value"), rows), Points((draw,)))
