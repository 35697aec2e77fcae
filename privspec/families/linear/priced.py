"""The least privacy cost of linear answers whose errors are limited: the least amount at which all lines are met.

At an amount, the mechanism that comes nearest to the lines is that of least worst ratio of an error to its limit, a
worst-case loss. The ratio falls as the amount grows; where it is 1 lies the least amount. Its dual point, with the
weights of the ratios over their limits as prices of the lines, shows that no smaller amount meets them all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import exp, log, sqrt
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse

from privspec.core import OPTIMAL_GAP
from privspec.core.diagnostics import Diagnostic, Label, SolveError, SpecError
from privspec.families.document import decimal_up, float_down, plan_document
from privspec.families.family import Settings
from privspec.families.infeasible import Infeasible, Relaxation, conflict_line
from privspec.families.linear.accuracy import conflict_at, pure_conflict
from privspec.families.linear.choose import Choice, choose
from privspec.families.linear.exact import bound_witness, mu_up, read_back, shares_of
from privspec.families.linear.gaussian import PAPER, gaussian_budgets
from privspec.families.linear.problem import Problem
from privspec.families.linear.program import LinearSystem, lower
from privspec.families.linear.raising import raise_plan
from privspec.families.linear.release import Candidate, Dual, Mechanism
from privspec.kernel.core.numbers import nearest_double
from privspec.kernel.core.problem import read_frame
from privspec.kernel.core.reading import Item, Refused, read
from privspec.kernel.priced import Priced, least
from privspec.kernel.priced import at as frame_at
from privspec.kernel.quality.linear import prove, shown
from privspec.language.spelling import spell
from privspec.model.graph import Model
from privspec.model.measures import LDP, Chosen, EpsilonDelta, Measure
from privspec.model.values import show
from privspec.problem.elaborate import elaborate
from privspec.problem.form import document as problem_document
from privspec.problem.priced import Parsed, inner, lines_at, parsed, reference

FARTHEST_STEP = 8.0
"""The largest change of the logarithm of what is allowed in one step."""
SHOWN = 6
"""Decimal digits of what other designs would cost."""
DIGITS = 12
"""Decimal digits of an amount that is picked, rounded up."""
MET = 8e-10
"""Share by which an error may pass its limit: below what the kernel spares a line (1e-9)."""
TIGHT = 1e-7
"""Share of its limit by which the nearest error may stay below it."""
ROUNDS = 40
"""Amounts that are tried at most."""
FARTHEST = Fraction(250)
"""The largest amount that is tried where the range has no end."""


@dataclass(frozen=True, eq=False, slots=True)
class Tried:
    """The mechanism nearest to the lines at an amount, and the worst ratio of an error to its limit."""

    value: Fraction
    problem: Problem
    choice: Choice

    @property
    def ratio(self) -> float:
        """At most 1 where every line is met."""
        return self.choice.chosen.loss


@dataclass(eq=False)
class Search:
    """A spec whose amount is picked, with its linear system."""

    model: Model
    settings: Settings
    found: Parsed
    system: LinearSystem
    started: float

    def problem(self, value: Fraction, system: LinearSystem, settings: Settings) -> Problem:
        """The problem at an amount, about the system or one with other losses and limits."""
        lines = lines_at(self.model, value)
        views = tuple(replace(view, requirement=lines[view.index]) for view in system.views)
        return Problem(replace(inner(self.model), requirements=lines), replace(system, views=views), settings)

    def nearest(self, value: Fraction, *, alternatives: bool = False) -> Tried | Infeasible:
        """The mechanism that comes nearest to the lines at an amount."""
        settings = replace(self.settings, alternatives=alternatives, progress=None)
        problem = self.problem(value, ratios(self.system), settings)
        choice = choose(problem)
        return choice if isinstance(choice, Infeasible) else Tried(value, problem, choice)

    def measured(self, value: Fraction) -> Measure:
        """The first line with the amount, at a value of it."""
        line = next(i for i, one in enumerate(self.model.requirements) if isinstance(one.measure, Chosen))
        return lines_at(self.model, value)[line].measure

    def strength(self, value: Fraction) -> Fraction:
        """What the first line with the amount allows at a value of it: a Gaussian release its mu, others an epsilon."""
        measure = self.measured(value)
        mu = measure.gaussian_mu_down()
        return mu if mu is not None else measure.pure_epsilon or Fraction(0)

    def at_strength(self, wanted: float, digits: int = DIGITS) -> Fraction:
        """The least amount, to some digits, that allows so much; the end of the range where none does."""
        low, high = self.found.low, self.end
        if self.strength(high) < wanted:
            return high
        if low > 0 and self.strength(low) >= wanted:
            return low
        top = max(min(high, Fraction(1)), low)
        while self.strength(top) < wanted:
            top = min(2 * top, high)
        least = max(low, top / 2)
        while least > low and self.strength(least) >= wanted:
            top, least = least, max(low, least / 2)
        while top - least > top / 10**digits:
            middle = (least + top) / 2
            least, top = (least, middle) if self.strength(middle) >= wanted else (middle, top)
        return min(Fraction(decimal_up(top, digits)), high)

    def following(self, tried: Tried, before: Tried | None, off: float) -> Fraction:
        """Where the ratio, larger by the factor e^off than it may be, is likely to be right: noise of one law scales.

        Where other lines hold it back it is a secant, of two amounts at which the law is the same.
        """
        gaussian = tried.choice.chosen.family == "gaussian"
        here, slope = float(self.strength(tried.value) if gaussian else tried.value), -2.0
        if before is not None and before.choice.chosen.family == tried.choice.chosen.family:
            there = float(self.strength(before.value) if gaussian else before.value)
            if log(tried.ratio / before.ratio) * log(here / there) < 0:
                slope = max(log(tried.ratio / before.ratio) / log(here / there), -2.0)
        wanted = here * exp(min(-off / slope, FARTHEST_STEP))
        found = self.at_strength(wanted) if gaussian else Fraction(decimal_up(Fraction(wanted), DIGITS))
        return min(max(found, self.found.low), self.end)

    def between(self, low: Fraction, high: Fraction) -> Fraction:
        """Between two amounts, in proportion where the lower one is known."""
        middle = Fraction(sqrt(low * high)) if low else max(high / 8, self.found.low)
        return Fraction(decimal_up(middle, DIGITS))

    @property
    def end(self) -> Fraction:
        """The end of the range, or the largest amount that is tried."""
        return FARTHEST if self.found.high is None else self.found.high


def ratios(system: LinearSystem) -> LinearSystem:
    """The same of which the loss is the worst ratio of an error to its limit."""
    rows = [limit.error_map / np.sqrt(limit.bound) for limit in system.limits]
    several = len(rows) > 1 or system.limits[0].error_map.shape[0] == 1
    lowered = replace(system.lowered, worst=several)
    return replace(system, lowered=lowered, error_map=sparse.csr_array(sparse.vstack(rows)), limits=())


def priced(model: Model, settings: Settings) -> PricedDecision | Infeasible:
    """The least cost of the amount that a spec leaves open."""
    system = lower(inner(model))
    if isinstance(system, Infeasible):
        return system
    search = Search(model, settings, parsed(model), system, perf_counter())
    if search.found.rest is not None:
        raise _unknown(search, f"a loss that adds errors to {search.found.node.name}")
    if any(limit.error_map.shape[0] > 1 for limit in system.limits) and len(system.limits) > 1:
        raise _unknown(search, "several limits of sums of squares")
    return _least(search)


def _unknown(search: Search, what: str) -> SpecError:
    label = Label(search.found.node.span)
    return SpecError(Diagnostic("PS0501", f"solve cannot compute {what} yet", (label,), source=search.model.source))


# --- the least amount -----------------------------------------------------------------------------


def _least(search: Search) -> PricedDecision | Infeasible:
    """The least amount at which the worst ratio is 1, with its mechanism.

    Raises: SolveError PS0610 where rounds run out.
    """
    value, room, before = reference(search.model), MET / 4, None
    short_of, enough = Fraction(0), search.end
    for _ in range(ROUNDS):
        tried = search.nearest(value)
        if isinstance(tried, Infeasible):
            return tried
        off = log(tried.ratio)
        if off > MET and value >= search.end:
            return _out_of_range(search, tried)
        if off <= MET and (off >= -TIGHT or value <= search.found.low):
            return _decided(search, value)
        short_of, enough = (value, enough) if off > MET else (short_of, min(value, enough))
        following = search.following(tried, before, off + room)
        if not short_of < following < enough:
            following = enough if following >= enough > value else search.between(short_of, enough)
        value, before, room = following, tried, 2 * room
    label = Label(search.found.node.span)
    text = f"the least {search.found.node.name} was not found within {ROUNDS} tries"
    raise SolveError(Diagnostic("PS0610", text, (label,), source=search.model.source))


def _decided(search: Search, value: Fraction) -> PricedDecision | Infeasible:
    tried = search.nearest(value, alternatives=search.settings.alternatives)
    if isinstance(tried, Infeasible):
        return tried
    return PricedDecision(search, value, tried.problem, tried.choice, perf_counter() - search.started)


def _out_of_range(search: Search, tried: Tried) -> Infeasible:
    """The lines that conflict at the end of the range, and how far it would have to go.

    Raises: SolveError PS0612 where no mechanism is known, and none is proved not to exist.
    """
    model, node = search.model, search.found.node
    problem = search.problem(tried.value, search.system, replace(search.settings, alternatives=False))
    budgets = gaussian_budgets(problem)
    if budgets is not None and problem.family_allowed("gaussian"):
        found = conflict_at(problem, budgets, tried.ratio)
    else:
        epsilons = [epsilon for epsilon in problem.epsilons if epsilon is not None]
        found = pure_conflict(problem, epsilons, [tried.choice.chosen])
    lines = {line.line for line in found.conflicts}
    ways = [way for way in found.relaxations if way.line not in {one.line for one in model.requirements}]
    beyond = replace(search, found=replace(search.found, high=None))
    needed = beyond.at_strength(float(search.strength(tried.value)) * sqrt(tried.ratio))
    own = conflict_line(model, node.span)
    if search.found.high is not None and needed < FARTHEST:
        ways.append(Relaxation(f"let {node.name} go up to {float(needed) * (1 + 1e-4):.4g}", own.line))
    reason = f"even at {node.name} = {show(tried.value)} {found.reason}"
    own_lines = () if own.line in lines else (own,)
    return replace(found, reason=reason, conflicts=(*found.conflicts, *own_lines), relaxations=tuple(ways))


@dataclass(frozen=True, eq=False, slots=True)
class PricedDecision:
    """An amount that is picked, and the mechanism at it."""

    search: Search
    value: Fraction
    problem: Problem
    choice: Choice
    seconds: float

    @property
    def name(self) -> str:
        """The mechanism in a few words."""
        return self.choice.chosen.name

    @property
    def loss(self) -> float:
        """What the amount costs."""
        return float(self.search.found.cost(self.value))

    @property
    def lower_bound(self) -> float | None:
        """Shown when the plan is written."""
        return None

    def document(self) -> dict[str, Any]:
        """The plan."""
        search, found = self.search, self.search.found
        chosen = self.choice.chosen
        assert chosen.mechanism is not None
        quiet = replace(search.settings, alternatives=False)
        plain = search.problem(self.value, search.system, quiet)
        unproved = replace(chosen, mechanism=replace(chosen.mechanism, dual=None, seconds=self.seconds))
        inside = raise_plan(plain, unproved, self._others())
        whole = problem_document(elaborate(search.model))
        loss = nearest_double(found.cost(self.value))
        bound = self._bound(whole, inside)
        gap = (
            None
            if bound is None
            else nearest_double((Fraction(loss) - Fraction(bound[1])) / (Fraction(abs(loss)) or 1))
        )
        model_loss = search.model.loss
        assert model_loss is not None
        return plan_document(
            search.model,
            {key: inside[key] for key in ("alternatives", "guarantees", "accuracy", "remarks")}
            | {
                "problem": whole,
                "status": "optimal" if gap is not None and gap <= OPTIMAL_GAP else "feasible",
                "loss": inside["loss"]
                | {
                    "value": loss,
                    "lower_bound": None if bound is None else bound[1],
                    "relative_gap": gap,
                    "expression": spell(model_loss),
                    "units": "units of the loss expression",
                    "among": "" if bound is None else bound[2],
                },
                "mechanism": inside["mechanism"] | {"scalars": {found.node.name: show(self.value)}},
                "claims": inside["claims"] | {"bound": None if bound is None else bound[0]},
            },
        )

    def _others(self) -> tuple[Candidate, ...]:
        """Designs with what the amount costs at which they meet the lines; without those that meet them nowhere."""
        search, found, end = self.search, [], float(self.search.strength(self.search.end))
        here, pure = float(search.strength(self.value)), search.measured(self.value).pure_epsilon is not None
        for one in self.choice.others:
            wanted, value = here * sqrt(one.loss), self.value * Fraction(sqrt(one.loss))
            if one.family == "gaussian" and wanted <= end:
                value = search.at_strength(wanted, SHOWN)
            elif one.family == "gaussian" or not pure or search.found.node.name == "delta":
                continue
            if value <= search.end and not one.name.endswith(PAPER):
                cost = search.found.cost(max(value, search.found.low))
                found.append(replace(one, loss=float(cost), mechanism=None, lower_bound=None))
        return tuple(found)

    def _bound(self, whole: dict[str, Any], inside: dict[str, Any]) -> tuple[dict[str, Any], float, str] | None:
        """The witness that no smaller amount will do, the cost that it proves, and the words for the mechanisms."""
        mechanism, found = self.choice.chosen.mechanism, self.search.found
        assert mechanism is not None
        if mechanism.dual is None:
            return None
        frame = read_frame(Item(whole, "problem"))
        asked, own = read(Priced, frame.blocks[0]), inside["mechanism"]
        assert isinstance(asked, Priced)
        _, release = read_back(inside["problem"], own["family"], own["executed"])
        pure, proof = not release.noise.gaussian, self._proof(mechanism, mechanism.dual)
        try:
            proved = prove(frame, release, Item(proof, "claims.bound"))

            def excluded(value: Fraction) -> bool:
                """Whether no mechanism meets the lines at an amount."""
                stated = Item(self._stated(proof, value, pure=pure), "mu")
                return shown(frame_at(frame, asked.name, value), release, proved, stated.items()) > 0

            low = _largest(excluded, found.low, self.value)
            last: dict[str, Any] = {"upto": None, "proof": None, "mu": []}
            first = {"upto": str(low), "proof": 0, "mu": self._stated(proof, low, pure=pure)}
            witness = {"proofs": [proof], "cells": [first, last] if low > found.low else [last]}
            derived, words = least(frame, asked, release, Item(witness, "claims.bound"))
        except Refused:
            return None
        return witness, min(max(float_down(derived), 0.0), nearest_double(found.cost(self.value))), words[0]

    def _stated(self, proof: dict[str, Any], value: Fraction, *, pure: bool) -> list[str | None]:
        """For each line that is charged, a mu that no Gaussian release at an amount reaches, where that is needed."""
        lines, stated = lines_at(self.search.model, value), list[str | None]()
        for one in proof["differences"]:
            measure = lines[one["requirement"]].measure
            budget = measure.gaussian_mu_down()
            needed = not pure and isinstance(measure, EpsilonDelta | LDP) and budget is not None
            stated.append(str(mu_up(measure, float(budget))) if needed else None)
        return stated

    def _proof(self, mechanism: Mechanism, dual: Dual) -> dict[str, Any]:
        """The dual point of the worst ratio, with prices for the lines in place of its weights."""
        limits = self.search.system.lowered.limits
        shares = shares_of(dual.point.loss_weights) if self.problem.system.worst else [Fraction(1)]
        prices = [share / limit.bound for share, limit in zip(shares, limits, strict=True)]
        found = bound_witness(self.problem, mechanism, dual, prices)
        return found | {"differences": [one | {"mu": None} for one in found["differences"]]}


def _largest(shown: Callable[[Fraction], bool], low: Fraction, high: Fraction) -> Fraction:
    """The largest amount below `high`, to some digits, at which something is shown; `low` where it is nowhere."""
    steps = [1 - Fraction(4**k, 10**9) for k in range(15)] + [Fraction(1, 2**k) for k in range(1, 60)]
    found = next((at for at in (_down(high * step) for step in steps) if at <= low or shown(at)), low)
    if found <= low:
        return low
    beyond = high
    while beyond - found > high / 10**DIGITS:
        middle = _down((found + beyond) / 2)
        found, beyond = (middle, beyond) if shown(middle) else (found, middle)
    return found


def _down(value: Fraction) -> Fraction:
    """Rounded down to a short decimal."""
    context = Context(prec=DIGITS + 3, rounding=ROUND_FLOOR)
    return Fraction(str(context.divide(Decimal(value.numerator), Decimal(value.denominator))))
