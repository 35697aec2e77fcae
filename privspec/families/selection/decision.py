"""What the family of lotteries found: the rule that is taken, beside all others, and the plan that says so."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from privspec.core import OPTIMAL_GAP
from privspec.core.diagnostics import InternalError
from privspec.core.records import dataclass
from privspec.families.document import decimal_up, float_down, float_up, guarantee_head, plan_document
from privspec.families.family import Settings
from privspec.families.selection.choices import LotteryBound, rounds_json
from privspec.families.selection.papers import remarks
from privspec.families.selection.plans import Figures, Judged, spent
from privspec.families.selection.profiles import Estimate
from privspec.families.selection.rules import Draw
from privspec.families.selection.system import LotterySystem, Promise
from privspec.language.spelling import spell
from privspec.model.graph import Model
from privspec.model.values import show
from privspec.problem.vote_forms import Limit
from privspec.problem.votes import LISTED


@dataclass(frozen=True, eq=False, slots=True)
class LotteryDecision:
    """All rules with their losses; `chosen` is the best that the spec allows, `bound` holds for rules of any kind."""

    model: Model
    system: LotterySystem
    settings: Settings
    chosen: Judged
    ranking: tuple[Judged, ...]
    bound: LotteryBound | None
    seconds: float

    @property
    def epsilon(self) -> Fraction | None:
        """The one that the solver picks; of one round where it picks their number."""
        system, loss = self.system, self._found.value
        if system.counting and system.votes.rounds is not None:
            return system.votes.rounds.budget / system.count_of(loss)
        return None if system.chosen is None else loss

    @property
    def name(self) -> str:
        return self.chosen.rule.name

    @property
    def loss(self) -> float:
        """Its loss, to the nearest double."""
        return float(self._found.value)

    @property
    def lower_bound(self) -> float | None:
        """No rule of any kind has less; None where nothing is proved."""
        return None if self.bound is None else float_down(self.bound.value)

    def document(self) -> dict[str, Any]:
        loss = self._loss()
        gap = loss["relative_gap"]
        document = {
            "status": "optimal" if gap is not None and gap <= OPTIMAL_GAP else "feasible",
            "loss": loss,
            "alternatives": [self._alternative(one) for one in self._others if one.loss is not None],
            "mechanism": self._mechanism(),
            "guarantees": [self._guarantee(promise) for promise in self.system.promises],
            "accuracy": [self._accuracy(limit, found) for limit, found in zip(*self._limits, strict=True)],
            "claims": {} if self.bound is None else {"bound": self.bound.witness},
            "remarks": {
                "compared": self.system.votes.compared_name,
                "properties": [p.to_json() for p in self._taken.properties(self.system.promises[0].task)],
                "figures": {} if self.chosen.figures is None else figures_json(self.chosen.figures),
                "paper": remarks(self.system, self._taken),
                "considered": [self._considered(one) for one in self._others if one.loss is None],
                "binding": [],
                "solver": {
                    "name": "comparison of the rules of private voting",
                    "iterations": max(one.loss.profiles for one in self.ranking if one.loss is not None),
                    "seconds": self.seconds,
                    "tolerance": self.settings.tolerance,
                },
            },
        }
        return plan_document(self.model, document)

    def _loss(self) -> dict[str, Any]:
        found, bound, value = self._found, self.lower_bound, self.loss
        gap = (
            None
            if bound is None
            else float((Fraction(value) - Fraction(bound)) / abs(Fraction(value)))
            if value
            else 0.0
        )
        out: dict[str, Any] = {
            "value": value,
            "lower_bound": bound,
            "relative_gap": gap,
            "expression": "" if self.model.loss is None else spell(self.model.loss),
            "units": "units of the loss expression",
            "among": LISTED if self.bound is None else self.bound.scope,
            "kind": "expected" if any(t.operator == "E" for t in self.system.loss.terms) else "worst",
        }
        if found.standard_error:
            out |= {"standard_error": found.standard_error, "profiles": found.profiles}
        return out

    # -- rules

    @property
    def _found(self) -> Estimate:
        if self.chosen.loss is None:
            raise InternalError("a rule was chosen that has no loss")
        return self.chosen.loss

    @property
    def _taken(self) -> Draw:
        if self.chosen.calibrated is None:
            raise InternalError("a rule was chosen that was not calibrated")
        return self.chosen.calibrated

    def _mechanism(self) -> dict[str, Any]:
        votes = self.system.votes
        return self._taken.to_json() | {
            "input": votes.source,
            "party": votes.party,
            "output": votes.output,
            "ballots": votes.ballots.kind,
            "places": votes.ballots.places,
            "points": votes.ballots.counted,
            "alternatives": list(votes.alternatives),
            "voters": None if votes.secret else votes.voters,
            "leaves_out": all(promise.task.adding for promise in self.system.promises),
            "rounds": rounds_json(votes.rounds, self._count),
            "scalars": self._scalars,
        }

    @property
    def _count(self) -> int | None:
        """How many rounds share a budget."""
        system = self.system
        if system.counting:
            return system.count_of(self._found.value)
        return None if system.votes.rounds is None else system.votes.rounds.count

    @property
    def _scalars(self) -> dict[str, str]:
        """The numbers that the spec leaves open."""
        system, loss = self.system, self._found.value
        if system.counting and system.votes.rounds is not None:
            return {system.counted.name: str(system.count_of(loss))}
        return {} if system.chosen is None else {system.chosen.name: str(loss)}

    @property
    def _others(self) -> list[Judged]:
        return [one for one in self.ranking if one is not self.chosen]

    def _considered(self, one: Judged) -> dict[str, Any]:
        """A rule without a loss: no such lottery, or none that meets the lines; `rule` is what was tried last."""
        task = self.system.promises[0].task
        return {
            "name": one.rule.name,
            "reason": one.reason,
            "rule": None if one.draw is None else one.draw.to_json(),
            "properties": {} if one.draw is None else {p.name: p.holds for p in one.draw.properties(task)},
        }

    def _alternative(self, one: Judged) -> dict[str, Any]:
        found = alternative_json(self.system, one, one.reason or _meets(one.loss), admissible=one.admissible)
        return found | _told(one.loss) | {"rule": None if one.draw is None else one.draw.to_json()}

    @property
    def _limits(self) -> tuple[tuple[Limit, ...], tuple[Estimate, ...]]:
        return self.system.votes.limits, self.chosen.limits

    @staticmethod
    def _accuracy(limit: Limit, found: Estimate) -> dict[str, Any]:
        line, text = limit.line, limit.text
        return {"line": line, "text": text, "value": float(found.value), "bound": float(limit.bound)}

    # -- guarantees and assumptions

    def _guarantee(self, promise: Promise) -> dict[str, Any]:
        taken = self._taken
        allowed = self.epsilon if promise.epsilon is None else promise.epsilon
        figure = decimal_up(spent(self.system, promise, taken))
        if allowed is not None and Fraction(figure) > allowed:
            figure = show(allowed)  # what the exact ratio was held to
        head = guarantee_head(promise.requirement, promise.index)
        if promise.epsilon is None and allowed is not None:
            head |= {"epsilon": show(allowed)}
        further = ["group-privacy"] if promise.task.group > 1 else []
        further += ["repeated-votes"] if self.system.votes.rounds is not None else []
        return head | {"achieved": {"epsilon": figure}, "because": [*taken.notes, *further]}


def alternative_json(system: LotterySystem, one: Judged, reason: str, *, admissible: bool) -> dict[str, Any]:
    """A rule beside the one that is taken: what it spends and keeps, and how far it is from the votes."""
    epsilon = None
    if one.calibrated is not None:
        epsilon = decimal_up(max(spent(system, p, one.calibrated) for p in system.promises))
    kept = {} if one.draw is None else {p.name: p.holds for p in one.draw.properties(system.promises[0].task)}
    figures = {} if one.figures is None else figures_json(one.figures)
    return {
        "name": one.rule.name,
        "admissible": admissible,
        "reason": reason,
        "figures": {"epsilon": epsilon, **figures, "properties": kept},
    }


def figures_json(figures: Figures) -> dict[str, Any]:
    """As plans list them: a worst case is given where it is known, and rounded up; averages to the nearest double."""
    worst = figures.worst_distortion
    return {
        "worst_distortion": None if worst.at_least else float_up(worst.value),
        "mean_distortion": _mean(figures.mean_distortion),
        "expected_welfare": _mean(figures.expected_welfare),
    }


def _mean(found: Estimate | None) -> float | None:
    return None if found is None else float(found.value)


def _told(loss: Estimate | None) -> dict[str, Any]:
    """The loss of a rule and how it is known: bounds rounded down, values up."""
    if loss is None:
        raise InternalError("a rule without a loss is no alternative")
    if loss.at_least:
        return {"loss": float_down(loss.value), "at_least": True}
    found: dict[str, Any] = {"loss": float_up(loss.value)}
    return found | ({"standard_error": loss.standard_error} if loss.standard_error else {})


def _meets(loss: Estimate | None) -> str:
    if loss is not None and loss.at_least:
        return "meets every line of the spec; its loss is at least the figure given"
    return "meets every line of the spec"
