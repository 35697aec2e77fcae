"""The least privacy cost of linear answers whose errors are limited: the least amount at which all lines are met.

At an amount, the mechanism that comes nearest to the lines is that of least worst ratio of an error to its limit, a
worst-case loss. The ratio falls as the amount grows; where it is 1 lies the least amount. Its dual point, with the
weights of the ratios over their limits as prices of the lines, shows that no smaller amount meets them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from functools import cached_property, partial
from itertools import product
from math import exp, inf, log, sinh, sqrt
from time import perf_counter
from typing import Any, ClassVar, cast

import numpy as np
import scipy

from privspec.core.diagnostics import Diagnostic, Label, SolveError
from privspec.core.records import dataclass, replace
from privspec.families import amounts
from privspec.families.amounts import Bound, bound_stated, cell, down
from privspec.families.decision import Decided, Infeasible, decimal_up, float_down, shares_of, stated_mu
from privspec.families.family import Settings
from privspec.families.gaussian.accuracy import conflict_at, pure_conflict
from privspec.families.gaussian.dense import PAPER, gaussian_budgets
from privspec.families.gaussian.exact import Stated, bound_witness
from privspec.families.gaussian.family import Choice, choose, kind_of, parts_of
from privspec.families.gaussian.problem import LinearSystem, Problem, lower
from privspec.families.gaussian.release import Candidate, Dual, Mechanism
from privspec.families.gaussian.stepped import stepped_candidates
from privspec.kernel.core.linear import Release
from privspec.kernel.core.problem import Frame
from privspec.kernel.core.reading import JsonNode, Refused
from privspec.kernel.linear import LinearRules
from privspec.kernel.measures import DELTA
from privspec.kernel.priced import at as frame_at
from privspec.kernel.priced import least
from privspec.kernel.worth import LowerBound
from privspec.kernel.worth.shifts import LIMIT, limited
from privspec.kernel.worth.traces import TraceBound, prove
from privspec.kernel.writing import write
from privspec.model.graph import Model
from privspec.model.measures import AskedMeasure, Chosen
from privspec.problem.elaborate import elaborate
from privspec.problem.priced import inner, lines_at, parsed, reference
from privspec.solvers.programs import ReferenceFailedError

FARTHEST_STEP = 8.0
"""The largest change of the logarithm of what is allowed in one step."""
SHOWN = 6
"""Decimal digits of what other designs would cost."""
GAPS = (7e-7, 5e-6, 3e-5, 2e-4, 1e-3, 1e-2)
"""How far below the least sum cells may be, as shares of it, in turn."""
CELLS, GRID, SPLINE = 2048, 256, 1e-9
"""Most cells; places at which what lines allow is worked out, and the share that is added to it between them."""
DIGITS = 12
"""Decimal digits of an amount that is picked, rounded up."""
MET = 8e-10
"""Share by which an error may pass its limit: below what the kernel spares a line (1e-9)."""
SLACK = 1e-3
"""Share of its limit by which noise of another law than the one sought has to stay below it to be sought itself."""
TIGHT = 1e-7
"""Share of its limit by which the nearest error may stay below it."""
ROUNDS = 40
"""Amounts that are tried at most."""
LEAST_KNOWN, LEAST_TRIED = Fraction(1, 10**6), Fraction(1, 10**9)
"""Relative width at which halving ends, and the least amount that it tries."""
NEAR_DELTA = Fraction(1, 1000)
"""The width for a delta, at each of which laws in steps are searched."""


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
class Search(amounts.Search):
    """A spec whose amount is picked, with its linear system."""

    system: LinearSystem
    farthest: ClassVar[Fraction] = Fraction(250)

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

    def measured(self, value: Fraction) -> AskedMeasure:
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


def ratios(system: LinearSystem) -> LinearSystem:
    """The same of which the loss is the worst ratio of an error to its limit."""
    rows = [limit.error_map / np.sqrt(limit.bound) for limit in system.limits]
    sizes = [limit.error_map.shape[0] for limit in system.limits]
    errors = replace(system.lowered.errors, sizes=False)
    lowered, groups = replace(system.lowered, errors=errors, worst=len(sizes) > 1 or sizes == [1]), None
    if len(sizes) > 1 and max(sizes) > 1:
        groups = np.repeat(np.arange(len(sizes)), sizes)
    rows_of_all = scipy.sparse.csr_array(scipy.sparse.vstack(rows))
    plain = all(line.of_squares for line in system.lowered.limits)
    return replace(system, lowered=lowered, error_map=rows_of_all, limits=(), groups=groups, normal=not plain)


def priced(model: Model, settings: Settings) -> Decided | Infeasible:
    """The least cost of the amount that a spec leaves open."""
    system = lower(inner(model))
    if isinstance(system, Infeasible):
        return system
    search = Search(model, settings, parsed(model), perf_counter(), system)
    pure = any(line.measure.gaussian_mu_down() is None for line in lines_at(model, reference(model)))
    plain = all(line.of_squares for line in system.lowered.limits)
    least = _least if plain or not pure else _least_known
    found = least(search) if search.found.rest is None else _weighed(search, least)
    return found.decided() if isinstance(found, Picked) else found


# --- the least amount -----------------------------------------------------------------------------


def _least(search: Search) -> Picked | Infeasible:
    """The least amount at which the worst ratio is 1, with its mechanism.

    Raises: SolveError PS0610 where rounds run out.
    """
    if not search.found.low and search.found.node.name == DELTA.name and (found := _without_delta(search)) is not None:
        return found
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
    name, label = search.found.node.name, Label(search.found.node.span)
    text = f"the least {name} was not found within {ROUNDS} tries"
    hint = None
    if not short_of:
        text = f"every {name} that was tried, down to {float(enough):.0e}, meets the accuracy lines"
        hint = f"leave {name} out of the line, or ask for more accuracy"
    raise SolveError(Diagnostic("PS0610", text, (label,), help=hint, source=search.model.source))


def _least_known(search: Search) -> Picked | Infeasible:
    """The least amount at which noise that is known meets the lines, by halving: no error of it scales as squares do.

    Raises: SolveError PS0612 where none does at the end of the range.
    """
    low, value = search.found.low, max(reference(search.model), search.found.low)
    while not _enough(search, value):
        if value >= search.end:
            search.check_end()
            _, found = _known(search, value)  # or says why there is none
            assert isinstance(found, Infeasible)
            return search.out_of_range(found, value, None)
        low, value = value, min(2 * value, search.end)
    return _halved(search, low, value)


def _halved(search: Search, low: Fraction, value: Fraction) -> Picked:
    """The least amount of a range, whose end is enough, at which noise that is known meets the lines."""
    if low > 0 and _enough(search, low):
        value = low
    near = LEAST_KNOWN if search.found.node.name != DELTA.name else NEAR_DELTA
    while value > low * (1 + near) and value > LEAST_TRIED:
        middle = search.between(low, value)
        low, value = (low, middle) if _enough(search, middle) else (middle, value)
    problem, chosen = _known(search, value, alternatives=search.settings.alternatives)
    assert not isinstance(chosen, Infeasible)
    return Picked(search, value, problem, chosen, perf_counter() - search.started)


def _known(search: Search, value: Fraction, *, alternatives: bool = False) -> tuple[Problem, Choice | Infeasible]:
    """Noise that is known to meet the lines at an amount, with the problem there."""
    system = replace(ratios(search.system), limits=search.system.limits, normal=False)
    settings = replace(search.settings, alternatives=alternatives, progress=None)
    problem = search.problem(value, system, settings)
    return problem, choose(problem)


def _enough(search: Search, value: Fraction) -> bool:
    """Whether noise is known that meets the lines at an amount."""
    try:
        return not isinstance(_known(search, value, alternatives=search.found.node.name == DELTA.name)[1], Infeasible)
    except SolveError:
        return False


def _without_delta(search: Search) -> Picked | None:
    """Noise of pure epsilon where it meets the lines: no delta is below 0, which no Gaussian release reaches."""
    try:
        problem, chosen = _known(search, Fraction(0), alternatives=search.settings.alternatives)
    except SolveError:
        return None
    if isinstance(chosen, Infeasible):
        return None
    return Picked(search, Fraction(0), problem, chosen, perf_counter() - search.started)


def _decided(search: Search, value: Fraction) -> Picked | Infeasible:
    tried = search.nearest(value, alternatives=search.settings.alternatives)
    if isinstance(tried, Infeasible):
        return tried
    if tried.ratio < 1 - SLACK and search.found.node.name == DELTA.name:
        # noise of another law than the one that was sought has less error: less delta is enough for it
        return _halved(search, search.found.low, value)
    return Picked(search, value, tried.problem, tried.choice, perf_counter() - search.started)


# --- errors beside the amount ---------------------------------------------------------------------


def _weighed(search: Search, least: Callable[[Search], Picked | Infeasible]) -> Picked | Infeasible:
    """The amount at which it costs least together with the errors at it: the best of those tried.

    Raises: SolveError where errors at an amount are not known.
    """
    low, known = search.found.low, dict[Fraction, Choice | Infeasible]()
    if search.system.limits:
        first = least(search)
        if isinstance(first, Infeasible):
            return first
        low = first.value

    def chosen(value: Fraction) -> Choice | Infeasible:
        if value not in known:
            settings = replace(search.settings, alternatives=False, progress=None)
            try:
                known[value] = choose(search.problem(value, search.system, settings))
            except ReferenceFailedError:
                # at an amount that hardly meets the lines; others are tried
                known[value] = Infeasible("no answer came", (), ())
        return known[value]

    def errors(value: Fraction) -> float | None:
        found = chosen(value)
        return None if isinstance(found, Infeasible) else found.chosen.loss

    value = search.weighed(low, errors)
    problem = search.problem(value, search.system, replace(search.settings, progress=None))
    choice = choose(problem)
    if isinstance(choice, Infeasible):
        return choice
    return Picked(search, value, problem, choice, perf_counter() - search.started)


# --- no amount of the range -----------------------------------------------------------------------


def _out_of_range(search: Search, tried: Tried) -> Infeasible:
    """The lines that conflict at the end of the range, and how far it would have to go.

    Raises: SolveError PS0612 where no mechanism is known, and none is proved not to exist.
    """
    search.check_end()
    problem = search.problem(tried.value, search.system, replace(search.settings, alternatives=False))
    budgets = gaussian_budgets(problem)
    if budgets is not None and problem.family_allowed("gaussian"):
        found = conflict_at(problem, budgets, tried.ratio)
    else:
        epsilons = [epsilon for epsilon in problem.epsilons if epsilon is not None]
        found = pure_conflict(problem, epsilons, [tried.choice.chosen], partial(stepped_candidates, bounded=False))
    longer = replace(search, found=replace(search.found, high=None))
    needed = longer.at_strength(float(search.strength(tried.value)) * sqrt(tried.ratio))
    near = float(needed) * (1 + 1e-4) if needed < search.most else None
    return search.out_of_range(found, tried.value, near)


@dataclass(frozen=True, eq=False)
class Picked:
    """An amount that is picked, and the mechanism at it."""

    search: Search
    value: Fraction
    problem: Problem
    choice: Choice
    seconds: float

    def decided(self) -> Decided:
        """As a decision, which loses what the amount costs, and the errors where they are in the loss."""
        search, chosen = self.search, self.choice.chosen
        rest = 0.0 if search.found.rest is None else chosen.loss
        loss, kind = float(search.found.cost(self.value)) + rest, kind_of(self._plain)
        return search.decided(self.value, chosen.name, loss, kind, self._stated)

    @cached_property
    def _plain(self) -> Problem:
        """The problem at the amount."""
        return self.search.problem(self.value, self.search.system, replace(self.search.settings, alternatives=False))

    def _stated(self) -> dict[str, Any]:
        """The mechanism as it stands in the plan, and the bound."""
        chosen = self.choice.chosen
        assert chosen.mechanism is not None
        stated = Stated(self._plain, replace(chosen.mechanism, dual=None, seconds=self.seconds))
        inside, frame = parts_of(stated), elaborate(self.search.model)
        loss = float(self.search.found.cost(self.value) + stated.figures.value)
        return {
            **inside,
            "problem": write(frame),
            "value": loss,
            "alternatives": [one.compared.to_json() for one in self._others()],
            **bound_stated(self._bound(frame, stated.release, loss), views=inside["claims"]["views"]),
        }

    def _others(self) -> tuple[Candidate, ...]:
        """Designs with what the amount costs at which they meet the lines; without those that meet them nowhere."""
        search, found, end = self.search, [], float(self.search.strength(self.search.end))
        if search.found.rest is not None:
            own = float(search.found.cost(self.value))
            return tuple(replace(one, loss=one.loss + own) for one in self.choice.others)
        if self.problem.system.limits:  # found by halving: at which amount others meet the lines is not known
            return ()
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

    def _bound(self, frame: Frame, release: Release, loss: float) -> Bound | None:
        """The witness that nothing costs less, what it proves, and the words for the mechanisms that it is about."""
        best: Bound | None = None
        for witness in self._witnesses(frame, release, loss):
            item, asked = JsonNode(witness, "claims.bound"), cast("Any", frame.blocks[0])
            derived, words = least(frame, asked, LinearRules(), release, item)
            found = min(max(float_down(derived), 0.0), loss)
            if best is None or found > best[1]:
                best = witness, found, words[0]
        return best

    def _witnesses(self, frame: Frame, release: Release, loss: float) -> Iterator[dict[str, Any]]:
        """By the dual point, and by each accuracy line about one number under pure epsilon."""
        mechanism, alone = self.choice.chosen.mechanism, self.search.found.rest is None
        if alone and self.value <= self.search.found.low:
            yield {"proofs": [], "cells": [cell()]}
            return
        proofs = list[dict[str, Any]]()
        if mechanism is not None and mechanism.dual is not None:
            with suppress(Refused):
                proofs.append(self._proof(mechanism, mechanism.dual))
        if alone:
            lines, limits = range(len(frame.obligations)), range(len(release.problem.accuracy))
            proofs += [{"scope": LIMIT, "requirement": o, "limit": limit} for o, limit in product(lines, limits)]
        for proof in proofs:
            with suppress(Refused):
                made = limited if proof["scope"] == LIMIT else prove
                shows = Shows(self, frame, release, proof, made(frame, release, JsonNode(proof, "claims.bound")))
                yield {"proofs": [proof], "cells": shows.excluded() if alone else shows.cells(loss)}

    def _proof(self, mechanism: Mechanism, dual: Dual) -> dict[str, Any]:
        """The dual point; of the worst ratio with prices for the lines in place of its weights."""
        if self.search.found.rest is not None:
            found = bound_witness(self.problem, mechanism, dual)
            return found | {"differences": [one | {"mu": None} for one in found["differences"]]}
        limits = self.search.system.lowered.limits
        shares = shares_of(dual.point.loss_weights) if self.problem.system.worst else [Fraction(1)]
        prices = [share / limit.square for share, limit in zip(shares, limits, strict=True)]
        found = bound_witness(self.problem, mechanism, dual, prices)
        return found | {"differences": [one | {"mu": None} for one in found["differences"]]}


@dataclass(frozen=True, eq=False, slots=True)
class Shows:
    """A proof of a decision, with what it shows at any amount."""

    decision: Picked
    frame: Frame
    release: Release
    witness: dict[str, Any]
    proof: LowerBound

    def stated(self, value: Fraction) -> list[str | None]:
        """For each line that is charged, a mu that no Gaussian release at an amount reaches, where that is needed."""
        lines, stated = lines_at(self.decision.search.model, value), list[str | None]()
        for one in self.witness.get("differences", ()):
            measure = lines[one["requirement"]].measure
            budget = measure.gaussian_mu_down()
            stated.append(stated_mu(measure, budget) if self.release.noise.normal else None)
        return stated

    def excluded(self) -> list[dict[str, Any]]:
        """A cell of amounts at which no mechanism meets the lines, and all larger ones."""
        search = self.decision.search

        def out(value: Fraction) -> bool:
            """Whether no mechanism meets the lines at an amount."""
            lines = frame_at(self.frame, search.found.node.name, value).obligations
            return self.proof.restated(JsonNode(self.stated(value), "mu")).at(lines) > 0

        low = _largest(out, search.found.low, self.decision.value)
        return [cell(low, 0, self.stated(low)), cell()] if low > search.found.low else [cell()]

    def cells(self, loss: float) -> list[dict[str, Any]]:
        """Cells in which nothing costs less than the least of what is proved at their ends, as nearly as so many allow.

        Raises: Refused where they do not.
        """
        curve = Curve(self, loss)
        for gap in GAPS:
            ends = curve.ends(gap)
            if ends is not None:
                break
        else:
            raise Refused("the range is not cut into few cells")
        *inside, last = [cell(end, 0, curve.stated(end)) for end in ends]
        if ends[-1] == self.decision.search.found.high:
            return [*inside, last | {"upto": None}]
        return [*inside, last, cell()]


class Curve:
    """What a proof shows along the range, in doubles: a spline on a grid where the sum may be least."""

    def __init__(self, shows: Shows, loss: float) -> None:
        self.shows, self.search = shows, shows.decision.search
        proof = shows.proof
        if not isinstance(proof, TraceBound) or (exponent := proof.worth.exponent) is None:
            raise Refused("what is proved is no power of what is allowed")
        self.share, self.exponent, self.paid = float(proof.worth.at(Fraction(1))), float(exponent), float(proof.paid)
        self.masses = masses = proof.masses
        low, high = self.search.found.low, self.search.end
        if not self.share or not masses:
            raise Refused("nothing is proved")
        first = last = shows.decision.value
        while first > low and self._rest(self._squares(first)) < loss:
            first = max(first / 2, low)
        while last < high and float(self.search.found.cost(last)) < loss:
            last = min(last * 2, high)
        first, self.last = first or last / 2**40, last
        self.at = np.linspace(log(first), log(last), GRID if last > first else 1)
        squares = np.array([self._squares(Fraction(exp(at))) for at in self.at])
        self.logs = (
            [scipy.interpolate.CubicSpline(self.at, np.log(column)) for column in squares.T] if len(self.at) > 1 else []
        )
        self.power = np.log(squares @ [float(m) for _, m, _ in masses])
        if not self.logs or np.any(np.diff(self.power) <= 0):
            raise Refused("the range is a point, or what is proved does not depend on it")
        self.inverse = scipy.interpolate.CubicSpline(self.power, self.at)
        rest = np.maximum(self.share / np.exp(self.power * self.exponent) - self.paid, 0.0)
        self.least = float(np.min([self._cost(at) for at in self.at] + rest))

    def _cost(self, at: float) -> float:
        return float(sum(float(price.weight) * exp(at * price.power) for price in self.search.found.prices))

    def _squares(self, value: Fraction) -> list[float]:
        """mu^2 of each line that is charged."""
        lines = lines_at(self.search.model, value)
        measures = [lines[o].measure for o, _, _ in self.masses]
        if self.shows.release.noise.normal:
            return [float(one.gaussian_mu_down() or 0) ** 2 for one in measures]
        return [4 * sinh(float(one.pure_epsilon or 0) / 2) ** 2 for one in measures]

    def _rest(self, squares: list[float]) -> float:
        power = sum(float(m) * square for (_, m, _), square in zip(self.masses, squares, strict=True))
        return self.share / power**self.exponent - self.paid if power else inf

    def ends(self, gap: float) -> list[Fraction] | None:
        """Ends of cells in which the sum is at most a share below the least; None where they are too many."""
        aim, low, found = self.least * (1 - gap), self.search.found.low, list[Fraction]()
        while len(found) < CELLS:
            need = aim - float(self.search.found.cost(low))
            if need <= 0:
                return found or None
            power = log(self.share / (need + self.paid)) / self.exponent if need + self.paid > 0 else inf
            if power < self.power[-1]:
                value = down(Fraction(exp(float(self.inverse(power)))))
            else:
                value = self.last if low < self.last else self.search.end
            if value <= low:
                return None
            found.append(min(value, self.search.end))
            if value >= self.search.end:
                return found
            low = value
        return None

    def stated(self, value: Fraction) -> list[str | None]:
        """As `Shows.stated`, by the spline."""
        lines, found = lines_at(self.search.model, value), list[str | None]()
        for (o, _, _), logs in zip(self.masses, self.logs, strict=True):
            measure = lines[o].measure
            mu = exp(float(logs(log(value))) / 2) * (1 + SPLINE)
            found.append(stated_mu(measure, mu) if self.shows.release.noise.normal else None)
        return found


def _largest(shown: Callable[[Fraction], bool], low: Fraction, high: Fraction) -> Fraction:
    """The largest amount below `high`, to some digits, at which something is shown; `low` where it is nowhere."""
    steps = [1 - Fraction(4**k, 10**9) for k in range(15)] + [Fraction(1, 2**k) for k in range(1, 60)]
    found = next((at for at in (down(high * step) for step in steps) if at <= low or shown(at)), low)
    if found <= low:
        return low
    beyond = high
    while beyond - found > high / 10**DIGITS:
        middle = down((found + beyond) / 2)
        found, beyond = (middle, beyond) if shown(middle) else (found, middle)
    return found
