"""The mechanism of a plan that draws a winner by lot: read into facts, and its words on every page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from privspec.explain.additive import randomness
from privspec.explain.claims import Claim, claim
from privspec.explain.curves import Curve, EpsilonDeltaCurve, lottery_curve
from privspec.explain.document import (
    Block,
    Judged,
    Note,
    Points,
    Section,
    Sentence,
    SpecLine,
    Table,
    asserted,
    proved,
    reported,
)
from privspec.explain.drawings import dummies_plot, laws_plot
from privspec.explain.facts import MechanismFact, Rows
from privspec.explain.paper import HEADING, PaperFact, paper_blocks, paper_fact, paper_section
from privspec.explain.quantities import Quantity, count, parse_exact, rounded
from privspec.explain.questions import Question, about_vote, largest_factor
from privspec.explain.rule_comparison import (
    Comparison,
    PropertyFact,
    Rounds,
    compared_with,
    comparison,
    described,
    properties,
    public_rounds,
    rounds_fact,
    rounds_points,
    rounds_rows,
    rounds_table,
)
from privspec.explain.voting_rules import MOST, Example, Rule, Vote, examples, read_rule, read_vote
from privspec.model.reports import listing

if TYPE_CHECKING:
    from privspec.explain.context import Context
    from privspec.explain.facts import AlternativeFact, Facts, LossFact


@dataclass(frozen=True, slots=True)
class Figures:
    """How far the winner's law is from that of `compared`; None where the plan states none."""

    worst: Quantity | None
    mean: Quantity | None
    welfare: Quantity | None
    compared: str


@dataclass(frozen=True, slots=True)
class LotteryFact(MechanismFact):
    """A winner drawn by lot; `local` is whether nobody is trusted, so that each ballot is protected by itself.

    `drum` is how many tickets it is drawn from, where the rule has tickets and the number of voters is public.
    """

    vote: Vote
    rule: Rule
    drum: Quantity | None
    note: Note
    local: bool
    properties: tuple[PropertyFact, ...]
    figures: Figures
    rounds: Rounds | None
    comparison: Comparison | None
    paper: PaperFact
    examples: tuple[Example, ...]
    input_line: SpecLine
    bound_note: Note

    drawn_label: ClassVar[str] = "How the winner is drawn"
    subject: ClassVar[str] = "The lottery"
    reached_label: ClassVar[str] = "Reached by the lottery"
    exact_curve: ClassVar[str] = "one draw (exact)"
    entry: ClassVar[Judged] = Judged("privacy")
    accuracy_heading: ClassVar[str] = "How is the winner drawn?"
    measure: ClassVar[str] = "the winner is drawn by lot from exact probabilities, as this report describes."

    @property
    def loss_note(self) -> Note:  # type: ignore[override]
        return self.bound_note

    # --- facts

    def judged(self, claim: Claim) -> tuple[Claim, Question]:
        """The claim with the curve of the lottery, and what an observer tries to tell."""
        reached = claim.achieved
        if isinstance(reached, EpsilonDeltaCurve) and reached.delta == 0 and self.released() <= set(claim.outputs):
            claim = replace(claim, achieved=self._curve(reached.epsilon, claim))
        several = self.rounds is not None and self.rounds.whole
        times = None if several else self.rule.times(self.vote, local=self.local)
        if times is None:
            epsilon = reached.epsilon if isinstance(reached, EpsilonDeltaCurve) else float(claim.epsilon or 0)
            times = largest_factor(epsilon)
        names = self.vote.names
        pair = ("one way", "another way") if self.vote.ranked else (f"for {names[0]}", f"for {names[1]}")
        return claim, about_vote(claim.relation, self.vote.party, times, local=self.local, names=pair)

    def _curve(self, epsilon: float, claim: Claim) -> Curve:
        """The curve of one draw, or of all rounds together where the claim is about these."""
        if self.rounds is not None and self.rounds.whole:
            return _draw(self.vote, self.rule, claim, float(self.rounds.epsilon), self.local).repeated(
                self.rounds.number
            )
        return _draw(self.vote, self.rule, claim, epsilon, self.local)

    def released(self) -> frozenset[str]:
        return frozenset({self.vote.output})

    # --- words

    def drawn(self, facts: Facts) -> str:
        words = facts.context.trust_words
        return f"{self.rule.brief(self.vote)}{f', {words.place}' if words and not self.local else ''}"

    def summary_rows(self, facts: Facts) -> Rows:
        found = []
        if facts.loss is not None and facts.status == "optimal":
            found.append(("Optimal among", facts.loss.among))
        if self.properties:
            found.append(("Keeps, gives up", " · ".join(p.short for p in self.properties)))
        figures = [
            f"{words} {figure}"
            for words, figure in (("at worst", self.figures.worst), ("on average", self.figures.mean))
            if figure is not None
        ]
        if figures:
            found.append(("Chances moved by noise", f"{' · '.join(figures)}  (total variation)"))
        if self.figures.welfare is not None:
            found.append(("Voted for the winner", f"{_percent(self.figures.welfare.value)} of voters, on average"))
        if self.rounds is not None:
            found += rounds_rows(self.rounds)
        if self.comparison is not None and self.comparison.considered:
            found.append(("Considered, ruled out", " · ".join(row.name for row in self.comparison.considered)))
        return found

    def error(self, facts: Facts) -> tuple[str, str]:
        loss = facts.loss
        if loss is None:
            return "Loss", ""
        if loss.expression.strip() == "epsilon":
            return "Privacy spent", f"ε = {loss.value}, the least that a rule compared here needs for the accuracy"
        if self.rounds is not None and _COUNTED.fullmatch(loss.expression.strip()):
            return "Votes that fit", f"{self.rounds.count}, the most of all rules compared{_no_more(loss)}"
        spread = f" ± {loss.standard_error}" if loss.standard_error is not None else ""
        return ("Loss at worst" if loss.worst else "Expected loss"), f"{loss.value}{spread}  ({loss.expression})"

    def compared(self, item: AlternativeFact, facts: Facts) -> str:
        return f" {rounded(item.loss.value, 4)}"

    def public_accuracy(self, facts: Facts) -> tuple[Sentence, ...]:
        found = [proved(text, self.note, _ENTRY) for text in self.rule.told(self.vote)]
        found += [proved(_example_words(self, example), self.note) for example in self.examples[:1]]
        keeps = {p.name: p for p in self.properties}
        if (item := keeps.get("strategy_proof")) is not None:
            true = (
                "rank the candidates as you like them"
                if self.vote.ranked
                else "vote for the candidate whom you want most"
            )
            yes = f"To {true} is the best that you can do: no other vote serves you better."
            no = "In some elections another vote than the true one can serve a voter better."
            found.append(reported(yes if item.holds else no, Note(item.note)))
        if (item := keeps.get("ex_post_efficient")) is not None and not item.holds and self.examples:
            found.append(proved(_unwanted(self.examples[-1]), self.note))
        return tuple(found)

    def public_sections(self, facts: Facts) -> tuple[Section, ...]:
        return public_rounds(self.rounds, facts)

    def exactly(self, facts: Facts) -> str:
        name, value = self.rule.named, self.rule.shown
        size = f"; how many may vote ({self.vote.voters:,})" if self.vote.voters is not None else ""
        hidden = " Not how many voted." if self.vote.voters is None else ""
        return f"The candidates and the rule of the lottery ({name}: {value}){size}.{hidden}"

    def auditor_points(self, facts: Facts) -> tuple[Sentence, ...]:
        found = [proved(self.rule.executed(self.vote), self.note, _ENTRY)]
        found.append(
            proved(
                "The draw is exact: a whole number below the common denominator of the probabilities decides, so that "
                "no floating-point number takes part.",
                self.note,
            )
        )
        found += _distortion(self)
        if self.rounds is not None:
            found += rounds_points(self.rounds)
        return (*found, *randomness(self.note))

    def auditor_tables(self, facts: Facts) -> tuple[Block, ...]:
        compared = self.comparison.blocks() if self.comparison is not None else ()
        laws = laws_plot(self.examples, self.rule, self.vote)
        said = paper_blocks(self.paper, self.note)
        head = (Points((proved(f"{HEADING}: the figures of Torra 2019 beside those of this plan.", self.note),)),)
        several = (rounds_table(self.rounds),) if self.rounds is not None else ()
        return (*several, *((laws,) if laws else ()), *compared, *((*head, *said) if said else ()))

    def data(self, facts: Facts) -> tuple[Sentence, ...]:
        vote = self.vote
        kind = {"first choice": "one candidate", "ranking": "all candidates, best first"}.get(
            vote.ballots, "some of the candidates, best first"
        )
        number = f"{vote.voters:,}" if vote.voters is not None else "a secret number of"
        text = f"Secret input {vote.input}: the ballots of {number} {vote.people}, each naming {kind}."
        found = [asserted(text, self.input_line)]
        if vote.ranked:
            words = "Of a ballot count its Borda points: m − 1 for the first of m candidates, one less for each next."
            found.append(proved(words, self.note))
        elif vote.ballots != "first choice":
            found.append(proved("Of a ballot only its first choice counts.", self.note))
        return tuple(found)

    def engineer_sections(self, facts: Facts) -> tuple[Section, ...]:
        name, value = self.rule.named, self.rule.shown
        words = [proved(f"How the winner is drawn: {self.drawn(facts)} ({name}: {value}).", self.note, _ENTRY)]
        words += _distortion(self)
        several = (rounds_table(self.rounds),) if self.rounds is not None else ()
        if self.rounds is not None:
            words += rounds_points(self.rounds)
        plots = [
            plot
            for plot in (laws_plot(self.examples, self.rule, self.vote), dummies_plot(self.rule, self.vote))
            if plot is not None
        ]
        sections = [Section("Lottery", (Points(tuple(words)), *several, *plots))]
        if self.comparison is not None:
            sections.append(Section("Rules compared", self.comparison.blocks()))
        return (*sections, *paper_section(self.paper, self.note))

    def execution(self, facts: Facts) -> tuple[Block, ...]:
        name, value = self.rule.named, self.rule.shown
        vote = self.vote
        listed = listing(list(vote.names[:MOST])) + (f" and {vote.size - MOST} more" if vote.size > MOST else "")
        rows = (
            ("Ballots", f"{vote.input}, one a {vote.party}: {vote.ballots}"),
            ("Number of ballots", f"{vote.voters:,}" if vote.voters is not None else "any; it is secret"),
            ("Candidates", listed),
            ("Points of a ballot", vote.points.name),
            ("Rule", self.rule.title),
            (name[0].upper() + name[1:], value.text),
            ("Released", vote.output),
            ("Claims of the kernel", ", ".join(sorted(facts.judgement.derived)) or "none"),
        )
        draw = proved(
            "A draw: the operating system gives whole numbers, each as likely as any other; exact fractions decide "
            "which candidate they stand for.",
            self.note,
        )
        return (Table("What `privspec run` executes", ("Item", "Value"), rows), Points((draw,)))

    def run_commands(self, facts: Facts, plan: str) -> tuple[str, ...]:
        """One command; where rounds share a budget, that of a round, and that which counts who takes part."""
        one = f"privspec run {plan} --input {self.vote.input}=ballots.csv"
        if self.rounds is None or self.vote.voters is not None:
            return (one,)
        return one, f"{one} --participation {self.vote.people}.db"


def lottery_fact(plan: Mapping[str, Any], context: Context) -> LotteryFact:
    """The mechanism of a plan of one of the families that draw a winner by lot.

    Raises: KeyError, ValueError if it is not of that form.
    """
    mechanism = described(plan)
    family = str(mechanism["family"])
    vote, rule = read_vote(mechanism), read_rule(mechanism)
    notes = [str(n) for g in plan.get("guarantees") or () for n in g.get("because") or ()]
    figures, witness = mechanism.get("figures") or {}, (plan.get("claims") or {}).get("bound") or {}
    return LotteryFact(
        family=family,
        vote=vote,
        rule=rule,
        drum=rule.total(vote),
        note=Note(notes[0] if notes else _NOTES[family]),
        local=context.trust == "nobody",
        properties=properties(mechanism.get("properties")),
        figures=Figures(
            _figure(figures.get("worst_distortion")),
            _figure(figures.get("mean_distortion")),
            _figure(figures.get("expected_welfare")),
            compared_with(mechanism),
        ),
        rounds=_rounds(plan, vote, rule, context.trust == "nobody"),
        comparison=comparison(plan, rule.title),
        paper=paper_fact(mechanism, vote, rule),
        examples=examples(vote, rule),
        input_line=context.input_lines.get(vote.input) or context.line(0),
        bound_note=Note("randomised-winner" if witness.get("profile") else "lottery-bound"),
    )


_NOTES = {
    "dictator": "dummy-votes",
    "exponential": "weighted-votes",
    "permute_and_flip": "weighted-votes",
    "local_dictator": "local-votes",
    "randomised_winner": "randomised-winner",
}


def _figure(value: object) -> Quantity | None:
    return None if value is None else rounded(float(parse_exact(value)), 4)


def _draw(vote: Vote, rule: Rule, claim: Claim, epsilon: float, local: bool) -> Curve:
    """The curve of one draw at an epsilon; where only epsilon is known of the rule, its bound."""
    adds, group = claim.relation.adds, claim.relation.group
    apart = rule.distance(vote, adds=adds, local=local)
    if apart is None:
        return EpsilonDeltaCurve(epsilon)
    times = group if rule.adds_up else 1
    attained = times == 1 and rule.attains(vote, adds=adds, local=local)
    return lottery_curve(epsilon, float(apart) * times, exact=attained, adds_up=rule.adds_up)


def _rounds(plan: Mapping[str, Any], vote: Vote, rule: Rule, local: bool) -> Rounds | None:
    item, guarantees = plan["mechanism"].get("rounds"), plan.get("guarantees") or ()
    if item is None or not guarantees:
        return None
    achieved = (guarantees[0].get("achieved") or {}).get("epsilon")
    each = item["each"]
    epsilon = float(parse_exact(each["epsilon"] if isinstance(each, Mapping) else each))
    stated = claim(guarantees[0])
    one = _draw(vote, rule, stated, epsilon, local)
    return rounds_fact(item, None if achieved is None else parse_exact(achieved), one, chosen=stated.relation.adds)


_ENTRY = Judged("privacy")
_COUNTED = re.compile(r"(-\s*|1\s*/\s*)\w+")
"""A loss that asks for as many rounds as possible."""
FEW = 3
"""Candidates of an example that a sentence names."""


# --- in a line ------------------------------------------------------------------------------------


def _percent(share: float) -> str:
    return f"{rounded(100 * share, 3)} %"


def _no_more(loss: LossFact) -> str:
    """The bound on rounds that holds for every rule, where the loss is minus their number."""
    bound = None if loss.lower_bound is None else loss.lower_bound.value
    if bound is None or bound >= 0 or not re.fullmatch(r"-\s*\w+", loss.expression.strip()):
        return ""
    return f"; no rule at all has more than {count(round(-bound))}"


# --- the public -----------------------------------------------------------------------------------


def _example_words(fact: LotteryFact, example: Example) -> str:
    """The first candidates of an example, their chances with and without noise."""
    shown = example.chances[:FEW]
    votes = listing([f"{c.votes} for {c.name}" for c in shown])
    chances = listing([f"{c.name} with probability {c.chance} ({c.without} in {fact.rule.without})" for c in shown[:2]])
    rest = ", the others for other candidates" if len(example.chances) > FEW else ""
    return f"An invented example: of {example.voters} voters, {votes}{rest}. Then the winner is {chances}."


def _unwanted(example: Example) -> str:
    last = example.chances[-1]
    return (
        f"The price of privacy: a candidate whom nobody wants can win. Where {example.title}, {last.name} still wins "
        f"{last.words}."
    )


# --- auditors -------------------------------------------------------------------------------------


def _distortion(fact: LotteryFact) -> list[Sentence]:
    worst = fact.figures.worst
    if worst is None:
        return []
    text = f"The law of the winner is at most {worst} from that of {fact.figures.compared}, in total variation."
    return [reported(text, fact.note)]


# --- engineers ------------------------------------------------------------------------------------
