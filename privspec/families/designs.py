"""Designs from graph to plan: each alternative is solved as a spec of its own; the least loss with its cost is taken.

No alternative is relaxed: what is compared are complete plans, each with its own bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.linalg import LinAlgError

from privspec.core.diagnostics import Diagnostic, Label, SolveError, SpecError
from privspec.core.records import dataclass, replace
from privspec.families.decision import (
    ABOUT_BETTER_ONES,
    Infeasible,
    float_down,
    rated,
    sealed,
    without_bound,
)
from privspec.families.family import Settings, compiler_of
from privspec.kernel.core.problem import HOMES, PlanUnderCheck, rules_of
from privspec.kernel.core.reading import JsonNode, Refused, read
from privspec.kernel.designs import Design, floor_of, gap_of
from privspec.kernel.writing import write
from privspec.model.graph import Design as OpenChoices
from privspec.model.graph import Model, described
from privspec.problem.assumptions import assumptions
from privspec.problem.designs import KEY, block_of, name_of, reason, with_picked
from privspec.solvers.programs import SolverError
from privspec.solvers.selection import select

if TYPE_CHECKING:
    from privspec.families.program import Form, Values

OUTSIDE = ("format", "spec", "problem", "assumptions", "exposures", "digest")
"""What an alternative that was not chosen does not say again."""


@dataclass(frozen=True, eq=False, slots=True)
class Solved:
    """The plan of an alternative, and its loss with what it costs."""

    model: Model
    name: str
    plan: Mapping[str, Any]
    paid: Fraction
    program: Callable[[], Form | str]

    @property
    def total(self) -> Fraction:
        """The loss as the plan states it, and the cost."""
        return Fraction(self.plan["loss"]["value"]) + self.paid

    @property
    def least(self) -> Fraction | None:
        """No mechanism of this alternative has less; None where nothing is proved."""
        bound = self.plan["loss"]["lower_bound"]
        return None if bound is None else Fraction(bound) + self.paid


@dataclass(frozen=True, slots=True)
class Unsolved:
    """Why an alternative has no plan; `infeasible`: its lines cannot hold together, as far as the compiler knows.

    `least`: what no mechanism of it can be below with its cost, where that is known all the same.
    """

    why: str
    infeasible: bool
    least: Fraction | None = None


Outcome = Solved | Unsolved


@dataclass(frozen=True, eq=False, slots=True)
class DesignDecision:
    """Every alternative with what came of it, in order, and which of them is chosen."""

    model: Model
    block: Design
    outcomes: tuple[Outcome, ...]
    chosen: Solved
    seconds: float

    @property
    def name(self) -> str:
        """The values that are chosen, and the mechanism."""
        return f"{name_of(self.chosen.model)}: {self.chosen.name}"

    @property
    def loss(self) -> float:
        """The loss of what is chosen, with its cost."""
        return float(self.chosen.total)

    @property
    def lower_bound(self) -> float | None:
        """The least that any alternative may reach; None where that of one is not known."""
        bounds = [one.least for one in self.outcomes]
        known = [one for one in bounds if one is not None]
        return float_down(min(known)) if len(known) == len(bounds) else None

    def program(self) -> Form | str:
        """That of what is chosen, with its cost."""
        from privspec.families.program import valued  # few look at the program itself

        chosen, form = self.chosen, self.chosen.program()
        if isinstance(form, str):
            return form

        def settle(values: Values) -> DesignDecision:
            own = replace(chosen, plan=_confirmed(form.settle(values).document()))
            outcomes = tuple(own if one is chosen else one for one in self.outcomes)
            return replace(self, outcomes=outcomes, chosen=own)

        found = valued(form, f"what is open is {name_of(chosen.model)} here", paid=float(chosen.paid))
        amounts = form.amounts(chosen.model)
        return replace(found, model=self.model, same=lambda _: False, amounts=lambda _: amounts, settle=settle)

    def document(self) -> dict[str, Any]:
        """The plan of what is chosen, and beside it what came of all alternatives."""
        plan, bound, design = self.chosen.plan, self.lower_bound, self.model.design
        assert design is not None
        value, own = self.loss, plan["loss"]
        apart = None if bound is None else gap_of(Fraction(value), Fraction(bound), self.chosen.paid)
        solved = [one for one in self.outcomes if isinstance(one, Solved)]
        among = "" if bound is None else " or ".join(dict.fromkeys(one.plan["loss"]["among"] for one in solved))
        others = [
            {
                "name": described(values),
                "loss": float(one.total) if isinstance(one, Solved) else None,
                "admissible": isinstance(one, Solved),
                "reason": "" if isinstance(one, Solved) else one.why,
            }
            for values, one in zip(design.alternatives(), self.outcomes, strict=True)
            if one is not self.chosen
        ]
        losses = [one.plan["loss"]["value"] if isinstance(one, Solved) else None for one in self.outcomes]
        relaxed = relaxation(design, losses, [one.paid for one in self.block.alternatives])
        found = {
            **plan,
            "mechanism": with_picked(plan["mechanism"], self._picked()),
            "remarks": {
                **plan["remarks"],
                "solver": plan["remarks"]["solver"] | {"seconds": self.seconds},
                **({} if relaxed is None else {"relaxation": relaxed}),
            },
            **rated(value, bound, apart, self.block.expression, among, own["units"], own["kind"], {}),
            "alternatives": others,
            KEY: {
                "problem": write(self.block),
                "chosen": self.outcomes.index(self.chosen),
                "outcomes": [self._outcome(one) for one in self.outcomes],
            },
        }
        # what the optimum is relative to may be more than for what is chosen alone
        return sealed(found | {"assumptions": assumptions(self.chosen.model, found)})

    def _picked(self) -> dict[str, str]:
        """The values of what is chosen, by name."""
        one = self.block.alternatives[self.outcomes.index(self.chosen)]
        return {choice.name: value for choice, value in zip(self.block.choices, one.values, strict=True)}

    def _outcome(self, one: Outcome) -> dict[str, Any]:
        if isinstance(one, Unsolved):
            least = None if one.least is None else str(one.least)
            return {"form": "none", "reason": one.why, "infeasible": one.infeasible, "least": least}
        if one is self.chosen:
            return {"form": "chosen", **{key: one.plan[key] for key in ("status", "loss", "alternatives")}}
        return {"form": "solved", **{key: value for key, value in one.plan.items() if key not in OUTSIDE}}


class Designs:
    """Takes specs that leave choices open."""

    def lower(self, model: Model) -> Design:
        """Every alternative as a problem with its cost.

        Raises: SpecError for one that is no spec, PS05xx if none of them can be computed.
        """
        block = block_of(model)
        if all(one.problem is None for one in block.alternatives):
            assert model.design is not None
            for values in model.design.alternatives():
                one = model.design.at(values)
                compiler_of(one).lower(one)
        return block

    def decide(self, model: Model, system: Design, settings: Settings) -> DesignDecision | Infeasible:
        """The alternative of least loss and cost.

        Raises: SpecError, SolveError where none of them can be computed.
        """
        design, outcomes, infeasible, failed = model.design, list[Outcome](), list[Infeasible](), list[Exception]()
        assert design is not None
        begun = perf_counter()
        for values, stated in zip(design.alternatives(), system.alternatives, strict=True):
            if stated.problem is None:
                outcomes.append(Unsolved(stated.refused, infeasible=False))
                infeasible += _conflicts(design.at(values))
                continue
            found = self._solved(design.at(values), stated.paid, settings)
            least = (
                None if isinstance(found, Solved) else floor_of(JsonNode(write(stated.problem), "problem"), stated.paid)
            )
            if isinstance(found, Infeasible):
                infeasible.append(found)
                outcomes.append(Unsolved(found.reason, infeasible=True, least=least))
            elif isinstance(found, Exception):
                failed.append(found)
                outcomes.append(Unsolved(_why(found), infeasible=False, least=least))
            else:
                outcomes.append(found)
        solved = [one for one in outcomes if isinstance(one, Solved)]
        if solved:
            best = min(solved, key=lambda one: one.total)
            return DesignDecision(model, system, tuple(outcomes), best, perf_counter() - begun)
        if failed and len(failed) == len(outcomes) and len({str(error) for error in failed}) == 1:
            raise failed[0]
        if len(infeasible) == len(outcomes):
            return infeasible[0]
        raise SpecError(_none(model, outcomes))

    def size(self, system: Design) -> int:
        """That of the largest alternative is found when it is solved."""
        return len(system.alternatives)

    def _solved(self, model: Model, paid: Fraction, settings: Settings) -> Solved | Infeasible | Exception:
        """The plan of an alternative, or why there is none."""
        compiler = compiler_of(model)
        try:
            if settings.deadline is not None and settings.deadline <= 0:
                raise SolverError("there was no time left for this alternative")
            lowered = compiler.lower(model)
            found = lowered if isinstance(lowered, Infeasible) else compiler.decide(model, lowered, settings)
            if isinstance(found, Infeasible):
                return found
            return Solved(model, found.name, _confirmed(found.document()), paid, found.program)
        except (SpecError, SolveError, SolverError, LinAlgError, ArithmeticError) as error:
            return error


def _confirmed(document: dict[str, Any]) -> dict[str, Any]:
    """The plan, without its bound where the kernel does not derive that."""
    try:
        case = read(PlanUnderCheck, JsonNode(document, "plan"))
        rules_of(case.block.form(*HOMES)).judge(case)
        failed = {claim.name for claim in case.found if not claim.holds}
    except Refused:
        return document
    return without_bound(document) if failed and failed <= ABOUT_BETTER_ONES else document


def _conflicts(model: Model) -> list[Infeasible]:
    """Why the lines of an alternative without a problem cannot hold together, where that is known."""
    try:
        found = compiler_of(model).lower(model)
    except SpecError:
        return []
    return [found] if isinstance(found, Infeasible) else []


def _why(error: Exception) -> str:
    return reason(error) if isinstance(error, SpecError | SolveError) else str(error)


def _none(model: Model, outcomes: list[Outcome]) -> Diagnostic:
    assert model.design is not None
    said = [
        f"{described(values)}: {one.why}"
        for values, one in zip(model.design.alternatives(), outcomes, strict=True)
        if isinstance(one, Unsolved)
    ]
    labels = tuple(Label(choice.span) for choice in model.design.choices)
    return Diagnostic("PS0529", "none of these alternatives can be computed", labels, tuple(said), source=model.source)


# --- choices made in part -------------------------------------------------------------------------


CLOSE = 1e-6
"""Relative difference up to which losses are those of a shared budget."""


def relaxation(design: OpenChoices, losses: Sequence[float | None], costs: Sequence[Fraction]) -> dict[str, Any] | None:
    """The value of the relaxation and its choices; None where what is open is no selection on one budget.

    Args: the loss (None without a plan) and the cost of each alternative, in order.
    """
    if len(design.choices) != 1 or not isinstance(design.choices[0].values[0], tuple):
        return None
    values = [value for value in design.choices[0].values if isinstance(value, tuple)]
    kept, size = [tuple(map(int, value)) for value in values], len(values[0])
    if len(kept) != 2**size or any(set(value) - {0, 1} for value in values):
        return None
    loss, cost = dict(zip(kept, losses, strict=True)), dict(zip(kept, costs, strict=True))
    nothing = (0,) * size
    single = [tuple(int(i == j) for j in range(size)) for i in range(size)]
    prices = [cost[nothing] - cost[one] for one in single]
    affine = all(
        cost[one] == cost[nothing] - sum(p for p, take in zip(prices, one, strict=True) if take) for one in kept
    )
    alone = np.array([loss[one] or 0.0 for one in single])
    if not affine or min(prices) < 0 or alone.min() <= 0:
        return None
    for one in kept:
        shared, known = float(np.cbrt(alone) @ one) ** 3, loss[one]
        if one != nothing and (known is None or abs(known - shared) > CLOSE * shared):
            return None
    try:
        whole, relaxed = select(alone, np.array(list(map(float, prices))))
    except SolverError:
        return None
    rest = float(cost[(1,) * size])
    choices = [round(float(share), 6) for share in relaxed.chosen]
    return {"value": relaxed.value + rest, "choices": choices, "whole": whole.value + rest, "nodes": whole.nodes}
