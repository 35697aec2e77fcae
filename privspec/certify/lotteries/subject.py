"""A plan that draws a winner from votes, beside what its spec says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from privspec.certify.finite.laws import RULES as LAWS
from privspec.certify.lotteries.meaning import BALLOT_LIMIT, FIRST, Ballots, Meaning, Scores, meaning_of
from privspec.certify.lotteries.rules import Change, Reports, Rule, read_rule
from privspec.certify.motion import NotUnderstood
from privspec.certify.opened import Opened
from privspec.certify.reading import At, Malformed, read_guarantee
from privspec.language import syntax
from privspec.model.evaluate import evaluate
from privspec.model.graph import Model
from privspec.model.measures import LDP, Chosen, Measure, Personalised, PureDP
from privspec.model.neighbours import ReplacingEverything, ReplacingRecord, ReplacingVoter
from privspec.model.requirements import Curator, Nobody, Requirement
from privspec.model.targets import environment


@dataclass(frozen=True, eq=False)
class LotterySubject(Opened):
    """What is verified: the rule that is executed."""

    rule: Rule

    @cached_property
    def meaning(self) -> Meaning:
        """Of the spec.

        Raises: Malformed, NotUnderstood.
        """
        return meaning_of(self.model)

    @property
    def ballots(self) -> Ballots:
        """Of the spec, with the points that count."""
        return self.meaning.ballots

    def change(self, requirement: Requirement) -> Change:
        """What a requirement compares.

        Raises: NotUnderstood for other units than a voter, or that what the voter holds.
        """
        relation, meaning = requirement.neighbours, self.meaning
        match relation:
            case ReplacingVoter(party=party) if party == meaning.party:
                return Change(relation.adding, relation.group, meaning.voters)
            # One ballot is one record of one voter; all that a report is computed from is that ballot.
            case ReplacingRecord() if not relation.adding:
                return Change(False, relation.group, meaning.voters)
            case ReplacingEverything():
                return Change(False, 1 if self.measure(requirement).local else meaning.voters, meaning.voters)
        raise NotUnderstood(f"{relation.describe()} where a winner is drawn")

    @property
    def reports_seen(self) -> bool:
        """Whether others than a trusted keeper see what each voter sends."""
        local = any(requirement.measure.local for requirement in self.model.requirements)
        return local or not isinstance(self.model.trust, Curator)

    @property
    def local(self) -> bool:
        """Whether a requirement is about what one voter sends."""
        measures = [self.measure(requirement) for requirement in self.requirements]
        return any(o.local for m in measures for o in (m.each if isinstance(m, Personalised) else (m,)))

    def forbidden(self, rule: Rule) -> list[str]:
        """Why the options and the measures of the spec rule a rule out."""
        model, reports, found = self.model, isinstance(rule, Reports), []
        if isinstance(model.trust, Nobody) and not reports:
            found.append(
                "with trust nobody, every report has to be protected by itself; here a winner is drawn from votes"
            )
        elif not isinstance(model.trust, Curator | Nobody):
            found.append(f"trust {model.trust.name} is not covered by this checker")
        if model.families and rule.family not in model.families:
            found.append(f"noise of family {rule.family} is not what the spec allows")
        if model.noise_at is not None:
            found.append("the spec says where noise enters, and a winner is drawn from points")
        if self.local and not reports:
            found.append("a requirement on each voter's own report, and a winner is drawn from votes")
        return found

    @cached_property
    def chosen(self) -> Mapping[str, Fraction]:
        """The numbers that the spec leaves open, as the plan picks them.

        Raises: Malformed if they are others, or outside their domains.
        """
        stated = self.plan["mechanism"].get("scalars")
        found = {} if stated is None else {str(key): stated[str(key)].exact() for key in _keys(stated)}
        if set(found) != {node.name for node in self.model.choices}:
            raise Malformed("the plan picks other numbers than the spec leaves open")
        for node in self.model.choices:
            if node.domain is not None and not node.domain.contains(found[node.name]):
                raise Malformed(f"{node.name} is chosen outside its domain")
        return found

    def measure(self, requirement: Requirement) -> Measure:
        """What a requirement asks, with the epsilon that was chosen.

        Raises: NotUnderstood.
        """
        match requirement.measure:
            case Chosen(kind=kind, amounts_as_written=(amount,)) if kind in KINDS:
                epsilon = evaluate(amount, environment(self.model, self.chosen))
                if not isinstance(epsilon, Fraction) or epsilon < 0:
                    raise Malformed(f"line {requirement.line}: epsilon is no amount")
                return KINDS[kind](epsilon)
            case Chosen() as measure:
                raise NotUnderstood(measure.describe())
        return requirement.measure

    @cached_property
    def secret_size(self) -> bool:
        """Whether no requirement takes the number of voters as known."""
        return all(requirement.neighbours.adding for requirement in self.requirements)

    @cached_property
    def ballot_law(self) -> Mapping[Scores, Fraction] | None:
        """Probabilities of the points of one ballot, where ballots are drawn independently from one law.

        Raises: NotUnderstood for a law that is not understood.
        """
        meaning = self.meaning
        found = [data for data in self.model.models if meaning.source in data.subjects]
        if not found:
            return None
        (data,) = found
        if data.joint or data.distribution not in LAWS:
            raise NotUnderstood(f"the law {data.distribution} of {data.subject}")
        ballots = self.ballots
        if data.distribution == "uniform" and not data.arguments and ballots.points == FIRST:
            # every alternative stands first as often as every other one
            return {ballots.scores((a,)): Fraction(1, ballots.size) for a in range(ballots.size)}
        if ballots.count > BALLOT_LIMIT:
            raise NotUnderstood(f"a law of {ballots.count:,} different ballots")
        special = (syntax.Keyword, syntax.Member, syntax.Comprehension, syntax.RangeOf)
        if any(isinstance(a, special) for a in data.arguments):
            raise NotUnderstood(f"the law {data.distribution} of {data.subject}")
        public = environment(self.model)
        arguments = [evaluate(a, public) for a in data.arguments if not isinstance(a, special)]
        orders = list(ballots.orders())
        names = meaning.alternatives
        values = [names[o[0]] if ballots.kind == FIRST else tuple(names[a] for a in o) for o in orders]
        weights = LAWS[data.distribution](values, arguments)
        if weights is None or sum(weights) <= 0 or min(weights) < 0:
            raise NotUnderstood(f"the law {data.distribution} of {data.subject}")
        whole = sum(weights, Fraction(0))
        law: dict[Scores, Fraction] = {}
        for order, weight in zip(orders, weights, strict=True):
            scores = ballots.scores(order)
            law[scores] = law.get(scores, Fraction(0)) + weight / whole
        return law


KINDS: Mapping[str, Callable[[Fraction], Measure]] = {"epsilon-DP": PureDP, "epsilon-LDP": LDP}
"""Measures whose epsilon may be chosen."""


def _keys(data: At) -> list[str]:
    if not isinstance(data.value, Mapping):
        raise Malformed(f"{data.place} is not an object")
    return [str(key) for key in data.value]


def read_lottery(plan: At, model: Model) -> LotterySubject:
    """A plan that draws a winner from votes.

    Raises: Malformed.
    """
    rule = read_rule(plan["mechanism"])
    subject = LotterySubject(plan, model, tuple(read_guarantee(item) for item in plan["guarantees"].items()), rule)
    if isinstance(rule, Reports):
        subject = replace(subject, rule=replace(rule, seen=subject.reports_seen))
    if any(not 0 <= g.requirement < len(model.requirements) for g in subject.guarantees):
        raise Malformed("a guarantee is for a requirement that the spec does not have")
    return subject
