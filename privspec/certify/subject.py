"""A plan that could be read, beside the model of its spec, with what several claims need, derived once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod

import numpy as np

from privspec.certify.loss import Errors, read_loss
from privspec.certify.motion import ENTRY_LIMIT, Array, NotUnderstood, System, extents
from privspec.certify.opened import Opened
from privspec.certify.reading import Executed, Gaussian, Malformed, Proof

SOLVE_LIMIT = 4096
"""Outputs that a loss compares entry by entry with different things: up to so many."""


@dataclass(frozen=True, eq=False)
class Subject(Opened):
    """What is verified: the plan as it stands, its exact mechanism, its guarantees and its certificate."""

    executed: Executed
    proof: Proof | None

    @property
    def gaussian(self) -> bool:
        """Whether Gaussian noise is executed."""
        return isinstance(self.executed.noise, Gaussian)

    @cached_property
    def system(self) -> System:
        """The spec as a linear system."""
        widest = max(self.executed.size, *(prod(extents(node.type)) for node in self.model.nodes.values()))
        if widest * self.model.size > ENTRY_LIMIT:
            raise NotUnderstood("the system is too large to lay out")
        return System(self.model)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Outputs in the order of the released numbers."""
        return tuple(output.name for output in self.executed.outputs)

    # --- how outputs and error terms move ------------------------------------------------------------

    def split(self, moves: Array) -> dict[str, Array]:
        """Rows of the released numbers (m, k) by output, in the shape of each."""
        return {
            o.name: moves[o.start : o.stop].reshape(*self.system.node_shape(o.name), moves.shape[1])
            for o in self.executed.outputs
        }

    def errors(self, moves: Array, seeds: Mapping[str, Array] | None = None) -> Errors:
        """The error terms of the loss when the released numbers move by `moves` (m, k), and nodes as seeded."""
        if self.model.loss is None:
            raise NotUnderstood("the spec has no loss")
        outputs = self.split(moves)
        return read_loss(self.model.loss, self.system.response({**(seeds or {}), **outputs}, outputs))

    def respond(self, seeds: Mapping[str, Array]) -> Array:
        """How the aims of all outputs (m, k) move with the nodes that are seeded.

        The aim of an output is its definition, or what the loss compares it with. Where the loss compares
        entries with different things, the aim is the value that makes every error term vanish.
        """
        scene = self.system.response(seeds)
        width = scene.width
        moves = np.zeros((self.executed.size, width))
        open_rows: list[int] = []
        for o in self.executed.outputs:
            if self.system.has_aim(o.name):
                moves[o.start : o.stop] = self.system.target((o.name,), scene)
            else:
                open_rows.extend(range(o.start, o.stop))
        if open_rows:
            moves[open_rows] = self._solved(open_rows, self.errors(moves, seeds).rows)
        return moves

    def _solved(self, rows: list[int], right: Array) -> Array:
        if len(rows) > SOLVE_LIMIT:
            raise NotUnderstood("too many outputs without one aim")
        unit = np.zeros((self.executed.size, len(rows)))
        unit[rows] = np.eye(len(rows))
        solution, _, rank, _ = np.linalg.lstsq(self.errors(unit).rows, -right, rcond=None)
        if rank < len(rows):
            raise NotUnderstood("the loss does not say what every output estimates")
        return np.asarray(solution, dtype=np.float64)

    @cached_property
    def target(self) -> Array:
        """The map (m, n) from the base vector to what the outputs estimate."""
        return self.respond(self.system.input_seeds())

    def site_map(self, name: str) -> Array:
        """From the coordinates of a noise site to the outputs (m, K).

        Raises: Malformed if there is no such variable.
        """
        if name not in self.model.nodes:
            raise Malformed(f"the spec has no {name} for noise to enter at")
        shape = self.system.node_shape(name)
        if name not in self.names:
            return self.respond({name: np.eye(prod(shape)).reshape(*shape, -1)})
        output = next(o for o in self.executed.outputs if o.name == name)
        columns = np.zeros((self.executed.size, output.stop - output.start))
        columns[output.start : output.stop] = np.eye(output.stop - output.start)
        return columns

    # --- what is executed, in doubles ----------------------------------------------------------------

    @cached_property
    def noise_map(self) -> Array:
        """From independent unit noise to the outputs (m, k)."""
        reconstruction = self.executed.reconstruction.to_float()
        left = self.target @ reconstruction if self.executed.of_inputs else reconstruction
        deviations = self.executed.noise.deviations(reconstruction.shape[1], float(self.executed.grid))
        result: Array = left * deviations
        return result

    @cached_property
    def released(self) -> Array:
        """The map (m, n) from the base vector to the average of the released numbers."""
        mean = self.executed.reconstruction.to_float() @ self.executed.strategy.to_float()
        result: Array = self.target @ mean if self.executed.of_inputs else mean
        return result

    @cached_property
    def deviation(self) -> Array:
        """Standard deviation (m,) of the released numbers."""
        result: Array = np.sqrt(np.einsum("mk,mk->m", self.noise_map, self.noise_map))
        return result

    @cached_property
    def noise_errors(self) -> Errors:
        """The error terms under the noise of the plan."""
        return self.errors(self.noise_map)

    def width(self, index: int) -> Fraction:
        """Distance of the ends of an input, one unit where it has none."""
        data = self.executed.inputs[index]
        low, high = data.lower[0], data.upper[0]
        return Fraction(1) if low is None or high is None else high - low
