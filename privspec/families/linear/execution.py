"""Plans that add noise to linear answers, as a mechanism that can be run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import Diagnostic, UsageError
from privspec.execute.data import data_rules, read_blocks, read_inputs
from privspec.execute.exact import ExactVector
from privspec.execute.executed import Executed, input_of, read_executed
from privspec.execute.family import Circumstances, Drawn, Exposure, Mechanism, Plan, Secret, Target
from privspec.execute.layout import declared_shapes
from privspec.execute.randomness import Randomness
from privspec.families.linear.strategy import draw, output_deviations, simulate_linear

if TYPE_CHECKING:
    from privspec.execute.budget import Spend
    from privspec.model.graph import Model


def given_constants(executed: Executed, given: Mapping[str, Any]) -> dict[str, NDArray[np.float64]]:
    """The public values that a plan leaves open, each in its shape.

    Raises: UsageError PS0824 if one is missing, of another shape or not finite.
    """
    wanted = {constant.name: constant for constant in executed.constants}
    found: dict[str, NDArray[np.float64]] = {}
    for name in wanted:
        why = None
        if name not in given:
            why = f"{name} has no value in this plan, and none was given"
        else:
            value = np.asarray(given[name], dtype=np.float64)
            shape = wanted[name].shape
            if value.size == prod(shape) and np.squeeze(value).shape == tuple(e for e in shape if e != 1):
                found[name] = value.reshape(shape)
            else:
                why = f"{name} has the shape {value.shape}, and {shape} is wanted"
            if why is None and not np.all(np.isfinite(found[name])):
                why = f"{name} is not finite"
        if why is not None:
            listed = ", ".join(f"--constant {name}=FILE" for name in wanted)
            raise UsageError(Diagnostic("PS0824", why, help=f"give {listed}"))
    return found


@dataclass(frozen=True, eq=False, slots=True)
class LinearMechanism(Mechanism):
    """Exact strategy answers, exact noise, then post-processing."""

    executed: Executed
    grid: str

    @classmethod
    def of_plan(cls, plan: Plan) -> LinearMechanism:
        """Raises: UsageError PS0820."""
        return cls(read_executed(plan), str(plan["mechanism"]["executed"]["output_grid"]))

    @property
    def outputs(self) -> tuple[str, ...]:
        """What it releases."""
        return tuple(o.name for o in self.executed.outputs)

    def read(self, data: Mapping[str, Any], circumstances: Circumstances) -> Secret:
        """The base vector of the data, and the function that computes outputs from estimated inputs."""
        model, target = circumstances.model, circumstances.target
        constants = given_constants(self.executed, circumstances.constants)
        declared = None if model is None else declared_shapes(model)
        base = read_inputs(
            self.executed,
            data,
            declared=declared,
            strict=circumstances.strict,
            header=circumstances.header,
            keeper=circumstances.keeper,
        )
        ready = replace(self, executed=self.executed.given(constants))
        return _BaseVector(ready, base, target, circumstances.strict, tuple(constants))

    def simulate(
        self,
        repetitions: int,
        seed: int,
        base: ExactVector | Mapping[str, Any] | None,
        target: Target | None,
        *,
        approximate: bool,
    ) -> NDArray[np.float64]:
        """Draws at a base vector, by default that of data that are all zero."""
        if isinstance(base, Mapping):
            base = read_inputs(self.executed, base)
        return simulate_linear(self.executed, repetitions, seed, base, target, approximate=approximate)


@dataclass(frozen=True, eq=False, slots=True)
class _BaseVector(Secret):
    mechanism: LinearMechanism
    base: ExactVector
    target: Target | None
    strict: bool
    constants: tuple[str, ...] = ()

    @property
    def rules(self) -> tuple[str, ...]:
        added = tuple(f"{name}: a public value given at this run, added after the noise" for name in self.constants)
        return (*data_rules(self.mechanism.executed, self.strict), *added)

    def draw(self, randomness: Randomness) -> Drawn:
        executed = self.mechanism.executed
        return Drawn(executed.split(draw(executed, self.base, randomness, self.target)), self.mechanism.grid)

    def deviations(self) -> Mapping[str, NDArray[np.float64]]:
        executed = self.mechanism.executed
        found = output_deviations(executed)
        return {} if found is None else executed.split(found)


@dataclass(frozen=True, eq=False)
class LinearExposure(Exposure):
    """All outputs are functions of the noisy strategy answers (notes/post-processing.md)."""

    plan: Plan

    @cached_property
    def _executed(self) -> Executed:
        return read_executed(self.plan)

    @property
    def outputs(self) -> frozenset[str]:
        """All that is released."""
        return frozenset(o.name for o in self._executed.outputs)

    def covers(self, requirement: int, outputs: frozenset[str]) -> bool:
        """These are all outputs or, where answers are rounded, outputs that every strategy answer goes into."""
        if self.outputs <= outputs:
            return True
        executed = self._executed
        if executed.of_inputs or executed.round_outputs:
            return executed.of_inputs
        rows = [np.arange(o.start, o.stop) for o in executed.outputs if o.name in outputs]
        return bool(rows) and bool(executed.reconstruction.integers[np.concatenate(rows)].any(axis=0).all())

    def joint_spend(self, model: Model, requirement: int) -> Spend | None:
        """The cost of all strategy answers."""
        from privspec.families.linear.joint import joint_spend

        return joint_spend(self._executed, model, requirement)


def fit(model: Model, data: Mapping[str, Any], circumstances: Circumstances) -> None:
    """How data fit the spec, told to the keeper; nothing is solved and nothing released.

    Raises: DataError where their structure does not fit, as a run does.
    """
    from privspec.families.linear.raising import INPUT_GRID_BITS
    from privspec.kernel.core.linear import Held
    from privspec.kernel.core.reading import Item, read
    from privspec.problem.elaborate import data_of
    from privspec.problem.form import document
    from privspec.problem.linear import held_of

    found = []
    for block in model.blocks:
        data_ = data_of(model, model.nodes[block.name])
        held = read(Held, Item(document(held_of(block)), block.name))
        assert isinstance(held, Held)
        grid = Fraction(1, 1 if held.cells else 2**INPUT_GRID_BITS)
        found.append(input_of(held, grid, data_.rule, data_.party))
    inputs = tuple(found)
    read_blocks(inputs, data, declared=declared_shapes(model), header=circumstances.header, keeper=circumstances.keeper)
