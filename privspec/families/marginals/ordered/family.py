"""Tables of counts with columns in order: strategies that share one limit, and the bound that shows them."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from math import floor, log2, prod, sqrt
from time import perf_counter
from typing import Any

import numpy as np

from privspec.core.diagnostics import InternalError
from privspec.core.matrices import DyadicMatrix
from privspec.core.records import dataclass
from privspec.families.amounts import mu_up
from privspec.families.document import STEP, decimal_up, float_down, guarantee_head, plan_document, price, rated
from privspec.families.family import Settings
from privspec.kernel.core.numbers import sqrt_up
from privspec.kernel.core.problem import Frame, read_frame
from privspec.kernel.core.reading import Item, read
from privspec.kernel.marginals import AMONG, NOTES, unit_of
from privspec.kernel.ordered import Ordered, bound, read_strategies
from privspec.kernel.ordered import Strategies as Executed
from privspec.kernel.participation import notes_of
from privspec.model.graph import Model
from privspec.model.measures import LDP, EpsilonDelta
from privspec.problem.elaborate import elaborate
from privspec.problem.form import Numbers, document
from privspec.problem.ordered import block_of
from privspec.solvers.marginals import Array, Strategies, strategies

SPARE = 1e-11
"""By so much of itself a strategy is smaller than the solver says."""
BITS = 56
"""Binary digits of the largest entry of a matrix."""
OUTPUT_STEPS = 14


@dataclass(frozen=True, eq=False, slots=True)
class System:
    """A spec in numbers: its problem, the block as the kernel reads it, and the mu that each record may have."""

    model: Model
    problem: dict[str, Any]
    frame: Frame
    block: Ordered

    @property
    def allowed(self) -> tuple[Fraction, int]:
        """The least mu of one record that a line allows, and the number of that line."""
        found = []
        for number, (line, asked) in enumerate(zip(self.model.requirements, self.frame.obligations, strict=True)):
            mu = line.measure.gaussian_mu_down()
            assert mu is not None
            found.append((mu / unit_of(asked, self.block.source).count, number))
        return min(found)


class OrderedCounts:
    """Takes counts of one large table, some of them along columns in order."""

    def lower(self, model: Model) -> System:
        """The problem, and its one block."""
        block_of(model)
        whole = document(elaborate(model))
        block = read(Ordered, Item(whole["blocks"][0], "block"))
        assert isinstance(block, Ordered)
        return System(model, whole, read_frame(Item(whole, "problem")), block)

    def decide(self, model: Model, system: System, settings: Settings) -> OrderedDecision:
        """The strategies of least loss."""
        started, block = perf_counter(), system.block
        asked = [_floats(block, own) for own in block.subsets]
        found = strategies(asked, [float(block.share(own)) for own in block.subsets])
        others = _alternatives(system) if settings.alternatives else []
        return OrderedDecision(model, system, found, tuple(others), perf_counter() - started)

    def size(self, system: System) -> int:
        """Cells of the columns in order."""
        return system.block.cells


def _floats(block: Ordered, own: tuple[int, ...]) -> Array:
    whole, below = block.asked(own).numer_denom()
    entries = [int(value) / int(below) for value in whole.entries()]
    return np.array(entries).reshape(block.cells, block.cells)


def _alternatives(system: System) -> list[dict[str, Any]]:
    """What usual ways to add noise to these tables would cost."""
    block, mu = system.block, float(system.allowed[0])
    every = prod(map(float, block.sizes))
    # by table: its weight times its numbers, and how many of them a record counts in; cells that all of them add up
    weights, most, cells = list[float](), list[int](), 0.0
    for one in block.tables:
        weights.append(float(one.weight) * block.numbers(one))
        most.append(prod(_counted_in(block.sizes[i], i in one.running, i in one.ranges) for i in one.columns))
        added = prod(_added(block.sizes[i], i in one.running, i in one.ranges) for i in one.columns)
        cells += float(one.weight) * added * every / prod(block.sizes[i] for i in one.columns)
    reason = "meets every line of the spec"
    found = {
        "noise on each table, each of its own size": sum(sqrt(w * m) for w, m in zip(weights, most, strict=True)) ** 2,
        "equal noise on each answer": sum(most) * sum(weights),
        "equal noise on each cell of the whole table": cells,
    }
    return [
        {"name": name, "loss": loss / mu**2, "admissible": True, "reason": reason}
        for name, loss in sorted(found.items(), key=lambda one: one[1])
    ]


def _counted_in(n: int, running: bool, ranges: bool) -> int:
    """In how many numbers along a column a record counts at most."""
    return n if running else (n // 2 + 1) * (n - n // 2) if ranges else 1


def _added(n: int, running: bool, ranges: bool) -> int:
    """How many values all numbers along a column add up."""
    return n * (n + 1) // 2 if running else n * (n + 1) * (n + 2) // 6 if ranges else n


@dataclass(frozen=True, eq=False)
class OrderedDecision:
    """The strategies that were found, and what other ways to add noise would cost."""

    model: Model
    system: System
    found: Strategies
    considered: tuple[dict[str, Any], ...]
    seconds: float

    @property
    def name(self) -> str:
        return "correlated Gaussian noise in the residual spaces of sets of columns"

    @cached_property
    def mechanism(self) -> dict[str, Any]:
        """As it stands in the plan."""
        mu, spare = float(self.system.allowed[0]), SPARE
        for _ in range(40):
            size = mu * (1 - spare)
            parts = [
                {
                    "columns": list(own),
                    "strategy": DyadicMatrix.rounded(part.strategy * size, BITS).to_json(),
                    "reconstruction": DyadicMatrix.rounded(part.estimates / size, BITS).to_json(),
                }
                for own, part in zip(self.system.block.subsets, self.found.parts, strict=True)
            ]
            # no deviation is below 1 / mu
            grid = f"2^{min(floor(-log2(mu)) - OUTPUT_STEPS, -20)}"
            found = {"family": "ordered", "parts": parts, "grid": "2^-30", "output_grid": grid}
            executed = self._read(found)
            if sqrt_up(executed.mu_squared(set(executed.block.subsets)), 100) <= self.system.allowed[0] * (
                1 - Fraction(1, 10**14)
            ):
                return found
            spare *= 4
        raise InternalError("the strategies that were found do not meet the lines")

    def _read(self, mechanism: dict[str, Any]) -> Executed:
        return read_strategies(Item(self.system.problem["blocks"][0], "block"), Item(mechanism, "mechanism"))

    @cached_property
    def executed(self) -> Executed:
        """As the kernel reads it."""
        return self._read(self.mechanism)

    @cached_property
    def witness(self) -> dict[str, Any]:
        """The line that allows least, a scale for each ordered cell, and vectors of each set of columns."""
        number = self.system.allowed[1]
        measure, mu = self.model.requirements[number].measure, None
        if isinstance(measure, EpsilonDelta | LDP):
            mu = str(mu_up(measure, float(measure.gaussian_mu_down() or 0)))
        scales = np.rint(np.ldexp(np.sqrt(self.found.shares), BITS)).astype(np.int64)
        return {
            "line": number,
            "mu": mu,
            "scales": Numbers(scales.shape, Fraction(1, 2**BITS), tuple(scales.tolist())).to_json(),
            "parts": [DyadicMatrix.rounded(part.vectors, BITS).to_json() for part in self.found.parts],
        }

    @cached_property
    def loss(self) -> float:
        return float(self.executed.loss())

    @cached_property
    def lower_bound(self) -> float | None:
        """No Gaussian noise of any covariance has less."""
        exact = bound(self.system.frame.obligations, self.system.block, Item(self.witness, "bound"))
        return float_down(min(exact, Fraction(self.loss)))

    def document(self) -> dict[str, Any]:
        block = self.system.block
        units = f"squared units of {' and '.join(one.name for one in block.released)}"
        square = self.executed.mu_squared(set(block.subsets))
        lines = zip(self.model.requirements, self.system.frame.obligations, strict=True)
        guarantees = []
        for index, (requirement, asked) in enumerate(lines):
            count = unit_of(asked, block.source).count
            said = {"mu": decimal_up(sqrt_up(square * count**2, 100))}
            because = [*NOTES, *notes_of([(unit.kind, unit.count) for unit in asked.units])]
            guarantees.append(guarantee_head(requirement, index) | {"achieved": said, "because": because})
        return plan_document(
            self.model,
            {
                "problem": self.system.problem,
                **rated(self.model, self.loss, self.lower_bound, AMONG, units),
                "alternatives": list(self.considered),
                "mechanism": self.mechanism,
                "guarantees": guarantees,
                "accuracy": [],
                "claims": {"bound": self.witness},
                "remarks": {
                    "binding": self._prices(),
                    "solver": {
                        "name": "residual spaces",
                        "seconds": self.seconds,
                    },
                },
            },
        )

    def _prices(self) -> list[dict[str, Any]]:
        """What a tenth more of an amount in the line would bring, where it is the only one."""
        if len(self.model.requirements) > 1:
            return []
        (line,) = self.model.requirements
        found = []
        for amount in ("epsilon", "rho", "mu"):
            if (now := line.measure.amounts.get(amount)) is not None:
                more = type(line.measure)(**{**line.measure.amounts, amount: now * STEP})
                before, after = (float(one.gaussian_mu_down() or 0) for one in (line.measure, more))
                found.append(price(line, (before / after) ** 2 - 1, amount))
        return found
