"""The mechanism of a plan that draws a winner by lot: its figures and its words on every page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from privspec.explain.claims import Claim, claim
from privspec.explain.curves import Curve, EpsilonDeltaCurve
from privspec.explain.lotteries import pages
from privspec.explain.lotteries.comparison import Comparison, PropertyFact, compared_with, comparison, properties
from privspec.explain.lotteries.curve import lottery_curve
from privspec.explain.lotteries.examples import Example, examples
from privspec.explain.lotteries.paper import PaperFact, paper_fact
from privspec.explain.lotteries.questions import HowYouVoted, WhetherYouVoted
from privspec.explain.lotteries.rounds import Rounds, public_rounds, rounds_fact
from privspec.explain.lotteries.rule import Rule
from privspec.explain.lotteries.rules import RULES
from privspec.explain.lotteries.vote import Vote, read_vote
from privspec.explain.mechanism import MechanismFact, Rows
from privspec.explain.quantities import Quantity, Rounding, parse_exact, rounded
from privspec.explain.questions import Question
from privspec.explain.sentences import CertificateEntry, Note, Sentence, SpecLine

if TYPE_CHECKING:
    from privspec.explain.context import Context
    from privspec.explain.document import Block, Section
    from privspec.explain.fact_types import AlternativeFact, Facts
    from privspec.model.graph import Model
    from privspec.model.observers import Unit


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
    brief_label: ClassVar[str] = "Drawn"
    subject: ClassVar[str] = "The lottery"
    reached_label: ClassVar[str] = "Reached by the lottery"
    exact_curve: ClassVar[str] = "one draw (exact)"
    entry: ClassVar[CertificateEntry] = CertificateEntry("privacy")
    accuracy_heading: ClassVar[str] = "How is the winner drawn?"
    measure: ClassVar[str] = "the winner is drawn by lot from exact probabilities, as this report describes."

    @property
    def loss_note(self) -> Note:  # type: ignore[override]
        """The note that proves the lower bound."""
        return self.bound_note

    # --- facts

    def judged(self, claim: Claim) -> tuple[Claim, Question]:
        """The claim with the curve of the lottery, and what an observer tries to tell."""
        adds = claim.relation.adds
        reached = claim.achieved
        if isinstance(reached, EpsilonDeltaCurve) and reached.delta == 0 and self.released() <= set(claim.outputs):
            claim = replace(claim, achieved=self._curve(reached.epsilon, claim))
        several = self.rounds is not None and self.rounds.whole
        times = None if several else self.rule.times(self.vote, local=self.local)
        if times is None:
            epsilon = reached.epsilon if isinstance(reached, EpsilonDeltaCurve) else float(claim.epsilon or 0)
            times = rounded(math.exp(min(epsilon, 700.0)) * (1 + 1e-12), 3, Rounding.UP)
        if adds:
            return claim, WhetherYouVoted(self.vote.party, times, self.local)
        names = self.vote.names
        pair = ("one way", "another way") if self.vote.ranked else (f"for {names[0]}", f"for {names[1]}")
        return claim, HowYouVoted(self.vote.party, times, self.local, *pair)

    def _curve(self, epsilon: float, claim: Claim) -> Curve:
        """The curve of one draw, or of all rounds together where the claim is about these."""
        if self.rounds is not None and self.rounds.whole:
            return _draw(self.vote, self.rule, claim, float(self.rounds.epsilon), self.local).repeated(
                self.rounds.number
            )
        return _draw(self.vote, self.rule, claim, epsilon, self.local)

    def released(self) -> frozenset[str]:
        """The winner."""
        return frozenset({self.vote.output})

    def seen(
        self,
        _plan: Mapping[str, Any],
        _outputs: frozenset[str],
        claim: Claim,
        _unit: Unit | None,
        _model: Model | None,
    ) -> Curve | None:
        """There is one output, so a claim about it is about all that is seen; without one nothing is known."""
        return claim.curve

    # --- pages: words are in `pages`

    def drawn(self, facts: Facts) -> str:
        """The draw in a line."""
        return pages.drawn(self, facts)

    def summary_rows(self, facts: Facts) -> Rows:
        """What the rule keeps, and how many rounds fit."""
        return pages.summary_rows(self, facts)

    def error(self, facts: Facts) -> tuple[str, str]:
        """The loss in words."""
        return pages.error(self, facts)

    def compared(self, item: AlternativeFact, facts: Facts) -> str:
        """Its loss."""
        return f" {rounded(item.loss.value, 4)}"

    def public_accuracy(self, facts: Facts) -> tuple[Sentence, ...]:
        """What a lottery is, and an example."""
        return pages.public_accuracy(self)

    def public_sections(self, facts: Facts) -> tuple[Section, ...]:
        """What several votes on one budget mean."""
        return public_rounds(self.rounds, facts)

    def exactly(self, facts: Facts) -> str:
        """The rule."""
        return pages.exactly(self)

    def auditor_points(self, facts: Facts) -> tuple[Sentence, ...]:
        """The draw, and what it keeps."""
        return pages.auditor_points(self)

    def auditor_tables(self, facts: Facts) -> tuple[Block, ...]:
        """Chances at invented elections, all rules, and the paper."""
        return pages.auditor_tables(self)

    def data(self, facts: Facts) -> tuple[Sentence, ...]:
        """The ballots."""
        return pages.data(self)

    def engineer_sections(self, facts: Facts) -> tuple[Section, ...]:
        """Laws, epsilon against dummies, all rules, and the paper."""
        return pages.engineer_sections(self, facts)

    def execution(self, facts: Facts) -> tuple[Block, ...]:
        """How the winner is drawn."""
        return pages.execution(self, facts)

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
    mechanism = plan["mechanism"]
    family = str(mechanism["family"])
    vote, rule = read_vote(mechanism), RULES[family](mechanism)
    notes = [str(n) for g in plan.get("guarantees") or () for n in g.get("because") or ()]
    figures = mechanism.get("figures") or {}
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
        bound_note=Note("randomised-winner" if (plan.get("certificate") or {}).get("profile") else "lottery-bound"),
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
