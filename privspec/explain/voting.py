"""The mechanism of a plan that draws a winner by lot: read into facts, and its words on every page."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from privspec.core.records import dataclass, replace
from privspec.explain import drawing
from privspec.explain.claims import Claim, Question, about_vote, claim, largest_factor
from privspec.explain.curves import Curve, EpsilonDeltaCurve, lottery_curve
from privspec.explain.document import (
    Accuracy,
    Block,
    Judged,
    Note,
    Plot,
    Points,
    Section,
    Sentence,
    SpecLine,
    proved,
)
from privspec.explain.facts import MechanismFact, Rows, randomness
from privspec.explain.messages import phrase, plotted
from privspec.explain.paper import HEADING, PaperFact, paper_blocks, paper_fact
from privspec.explain.quantities import EXACT, UP, Quantity, count, known, rounded
from privspec.explain.rule_comparison import Rounds, comparison, property_in_short, rounds_fact, without_noise
from privspec.explain.voting_rules import (
    MOST,
    SHORT,
    Dictator,
    Example,
    ExponentialRule,
    Response,
    Rule,
    Vote,
    examples,
    read_rule,
    read_vote,
)
from privspec.kernel.laws.voting import BY_NAME
from privspec.kernel.promises import SharedBudget
from privspec.kernel.voting import Executed
from privspec.model.reports import listing
from privspec.stated import Property, Stated

if TYPE_CHECKING:
    from privspec.explain.context import Context
    from privspec.explain.facts import AlternativeFact, Facts, LossFact

_ENTRY = Judged("privacy")
_NEVER = 1e-6
"""Up to this probability that an unwanted candidate wins, people are not told of it."""
_COUNTED = re.compile(r"(-\s*|1\s*/\s*)\w+")
"""A loss that asks for as many rounds as possible."""


@dataclass(frozen=True, slots=True)
class Figures:
    """How far the winner's law is from that of `compared`; None where the plan states none."""

    worst: Quantity | None
    mean: Quantity | None
    welfare: Quantity | None
    compared: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VotingFact(MechanismFact):
    """A winner drawn by lot, from a drum of so many tickets; `local` is whether each ballot is protected by itself."""

    vote: Vote
    rule: Rule
    drum: Quantity | None
    note: Note
    local: bool
    properties: tuple[Property, ...]
    figures: Figures
    paper: PaperFact
    examples: tuple[Example, ...]
    input_line: SpecLine
    loss_note: Note

    page = "voting"
    by_chance = False

    # --- facts

    def judged(self, claim: Claim) -> tuple[Claim, Question]:
        """The claim with the curve of one draw, and what an observer tries to tell."""
        reached = claim.achieved
        epsilon = reached.epsilon if isinstance(reached, EpsilonDeltaCurve) else float(claim.epsilon or 0)
        if isinstance(reached, EpsilonDeltaCurve) and reached.delta == 0 and self.released <= set(claim.outputs):
            claim = replace(claim, achieved=_draw(self.vote, self.rule, claim, epsilon, self.local))
        times = self.rule.times(self.vote, local=self.local) or largest_factor(epsilon)
        names = self.vote.names
        pair = ("", "") if self.vote.ranked else (names[0], names[1])
        return claim, about_vote(claim.relation, self.vote.party, times, local=self.local, names=pair)

    # --- the short table

    def summary_rows(self, facts: Facts) -> Rows:
        return [*MechanismFact.summary_rows(self, facts), *self._phrases("rows_more", facts)]

    def _asked(self, loss: LossFact | None) -> str:
        """What the loss asks for: the least "epsilon", the most "rounds", or the least "loss" of the winner."""
        expression = "" if loss is None else loss.expression.strip()
        if expression == "epsilon":
            return expression
        return "rounds" if self.rounds is not None and _COUNTED.fullmatch(expression) else "loss"

    def compared(self, item: AlternativeFact, facts: Facts) -> str:
        return f" {rounded(item.loss.value, 4)}"

    # --- the pages

    def values(self, facts: Facts) -> Mapping[str, object]:
        vote, rule = self.vote, self.rule
        more = f" and {vote.size - MOST} more" if vote.size > MOST else ""
        fraction, rough = str(rule.amount), rule.shown.rounding is not EXACT
        keeps = {p.name: p for p in self.properties}
        strategy, efficient = keeps.get("strategy_proof"), keeps.get("ex_post_efficient")
        considered = self.comparison.considered if self.comparison is not None else ()
        welfare, example = self.figures.welfare, self.examples[0] if self.examples else None
        unanimous = self.examples[-1] if self.examples else None
        last = None if unanimous is None else unanimous.chances[-1]
        return {
            "asked": self._asked(facts.loss),
            "fewest": _no_more(facts.loss),
            "kept": " · ".join(map(property_in_short, self.properties)),
            "considered": " · ".join(row.name for row in considered),
            "voted": None if welfare is None else rounded(100 * welfare.value, 3),
            "example": example,
            "leader": None if example is None else example.chances[0],
            "unanimous": unanimous,
            "last": last,
            "price": last is not None and efficient is not None and not efficient.holds and last.chance.value > _NEVER,
            "strategy": "" if strategy is None else "kept" if strategy.holds else "lost",
            "strategy_note": None if strategy is None else Note(strategy.note),
            "truth": rule.truth(vote) if isinstance(rule, Response) else None,
            "pair": vote.size == 2,
            "others": vote.size - 1,
            "public": vote.voters is not None,
            "favours_most": isinstance(rule, ExponentialRule),
            "exact_dummies": not rough,
            "dummies_exactly": f" (exactly {fraction})" if rough and len(fraction) <= SHORT else "",
            "in_parts": rule.amount.denominator > 1,
            "number": "a secret number of" if vote.voters is None else count(vote.voters),
            "named_on_a_ballot": phrase(f"voting.ballots.{vote.ballots}"),
            "one": 1,
            "parameter": f"{rule.named[0].upper()}{rule.named[1:]}",
            "candidates": f"{listing(list(vote.names[:MOST]))}{more}",
        }

    def accuracies(self, facts: Facts) -> Mapping[str, Accuracy]:
        """How often a candidate wins in an example."""
        found = {}
        for key, example, place in (("example", 0, 0), ("price", -1, -1)):
            if self.examples:
                title, one = self.examples[example].title, self.examples[example].chances[place]
                sizes = (self.vote.output, one.chance.value, one.chance.value)
                found[key] = Accuracy(f"{one.name} wins where {title}", (sizes,))
        return found

    def auditor_points(self, facts: Facts) -> tuple[Sentence, ...]:
        return *self._sentences("auditor", facts), *self._moved(facts), *randomness(self.note)

    def _moved(self, facts: Facts) -> tuple[Sentence, ...]:
        """How far the law of the winner is moved, and what rounds add up to."""
        return *self._sentences("moved", facts), *(() if self.rounds is None else self.rounds.points())

    def auditor_tables(self, facts: Facts) -> tuple[Block, ...]:
        compared = self.comparison.blocks() if self.comparison is not None else ()
        laws = laws_plot(self.examples, self.rule, self.vote)
        said = paper_blocks(self.paper, self.note)
        head = (Points((proved(f"{HEADING}: the figures of Torra 2019 beside those of this plan.", self.note),)),)
        several = (self.rounds.table(),) if self.rounds is not None else ()
        return (*several, *((laws,) if laws else ()), *compared, *((*head, *said) if said else ()))

    def engineer_points(self, facts: Facts) -> list[Sentence]:
        return [*MechanismFact.engineer_points(self, facts), *self._moved(facts)]

    def engineer_blocks(self, facts: Facts) -> list[Block]:
        several = [self.rounds.table()] if self.rounds is not None else []
        plots = laws_plot(self.examples, self.rule, self.vote), dummies_plot(self.rule, self.vote)
        return [*several, *(plot for plot in plots if plot is not None)]

    def engineer_sections(self, facts: Facts) -> tuple[Section, ...]:
        said = paper_blocks(self.paper, self.note)
        return (*MechanismFact.engineer_sections(self, facts), *((Section(HEADING, said),) if said else ()))


# --- pictures -------------------------------------------------------------------------------------


def laws_plot(found: Sequence[Example], rule: Rule, vote: Vote) -> Plot | None:
    """Bars of the chances at two invented elections, next to those without noise."""
    if not found:
        return None
    drawn, rows, firsts = list[drawing.Row](), [], ""
    for example in found:
        drawn.append(drawing.Row(phrase("plots.laws.title", example)))
        for one in example.chances[:MOST]:
            drawn.append(drawing.Row(one.name, one.chance.value, one.chance.text, other=one.without.value))
            rows.append((example.title, one.name, one.votes, one.chance, one.without))
        firsts += phrase("plots.laws.first", example, one=example.chances[0], without=rule.without)
    return plotted(
        "plots.laws",
        lambda: drawing.row_chart(drawn, phrase("plots.laws.along")),
        rows,
        first=firsts,
        without=rule.without,
        cut=phrase("plots.laws.cut", most=MOST, many=vote.size) if vote.size > MOST else "",
    )


FACTORS = tuple(Fraction(n, d) for n, d in ((1, 8), (1, 4), (1, 2), (1, 1), (2, 1), (4, 1), (8, 1)))
"""Multiples of this plan's dummy votes that are drawn."""


def dummies_plot(rule: Rule, vote: Vote) -> Plot | None:
    """Epsilon against the number of dummy votes, with this plan's; of votes without a supporter, where those exist."""
    if not isinstance(rule, Dictator) or not rule.amount or vote.supporters:
        return None
    kappas = [rule.amount * f for f in FACTORS]
    spent = [math.log1p(float(vote.points.highest / k)) for k in kappas]
    line = drawing.Line("ε", list(zip(map(float, kappas), spent, strict=True)), dots=True)
    own = phrase("plots.any.chosen")
    chosen = float(rule.amount), spent[FACTORS.index(Fraction(1))], own
    rows = (
        (rounded(k, 4), rounded(e * (1 + 1e-12), 4, UP), rounded(k * vote.size, 4), own * (k == rule.amount))
        for k, e in zip(kappas, spent, strict=True)
    )
    words = phrase("plots.dummies.along"), phrase("plots.dummies.up")
    return plotted(
        "plots.dummies",
        lambda: drawing.line_chart([line], [chosen], *words),
        rows,
        first=rounded(spent[0]),
        last=rounded(spent[-1]),
        fewest=rounded(kappas[0]),
        most=rounded(kappas[-1]),
        own=rounded(rule.amount),
        one=1,
    )


# --- reading --------------------------------------------------------------------------------------


def voting_fact(plan: Stated, context: Context) -> VotingFact:
    """The mechanism of a plan of one of the families that draw a winner by lot.

    Raises: KeyError, ValueError if it is not of that form.
    """
    family, remarks, local = plan.mechanism.family, plan.remarks, context.alone
    found: Executed = plan.executed
    vote, rule = read_vote(found), read_rule(found)
    notes = [note for guarantee in plan.guarantees for note in guarantee.because]
    by_profile = (plan.claims.get("bound") or {}).get("profile")
    return VotingFact(
        family=family,
        released=frozenset({vote.output}),
        comparison=comparison(plan, rule.title),
        rounds=_rounds(plan, vote, rule, local),
        vote=vote,
        rule=rule,
        drum=rule.total(vote),
        note=Note(notes[0] if notes else BY_NAME[family].note),
        local=local,
        properties=remarks.properties,
        figures=Figures(
            known(remarks.figures.worst_distortion, 4),
            known(remarks.figures.mean_distortion, 4),
            known(remarks.figures.expected_welfare, 4),
            without_noise(remarks.compared),
        ),
        paper=paper_fact(remarks.paper, vote, rule),
        examples=examples(vote, rule),
        input_line=context.line_of(vote.input),
        loss_note=Note("randomised-winner" if by_profile else "lottery-bound"),
    )


def _draw(vote: Vote, rule: Rule, claim: Claim, epsilon: float, local: bool) -> Curve:
    """The curve of one draw at an epsilon; where only epsilon is known of the rule, its bound."""
    adds, group = claim.relation.adds, claim.relation.group
    apart = rule.distance(vote, adds=adds, local=local)
    if apart is None:
        return EpsilonDeltaCurve(epsilon)
    times = group if rule.adds_up else 1
    attained = times == 1 and rule.attains(vote, adds=adds, local=local)
    return lottery_curve(epsilon, float(apart) * times, exact=attained, adds_up=rule.adds_up)


def _rounds(plan: Stated, vote: Vote, rule: Rule, local: bool) -> Rounds | None:
    item: SharedBudget | None = plan.executed.rounds
    if item is None or not plan.guarantees:
        return None
    stated = claim(plan.guarantees[0])
    one = _draw(vote, rule, stated, float(item.each), local)
    return rounds_fact(item, one, chosen=stated.relation.adds)


def _no_more(loss: LossFact | None) -> Quantity | None:
    """The bound on rounds that holds for every rule, where the loss is minus their number."""
    bound = None if loss is None or loss.lower_bound is None else loss.lower_bound.value
    if loss is None or bound is None or bound >= 0 or not re.fullmatch(r"-\s*\w+", loss.expression.strip()):
        return None
    return count(round(-bound))
