"""A plan about a sequence as a mechanism that can be run: exact whole numbers, exact noise, one grid for both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privspec.execute.data import located
from privspec.execute.drawing import Atom, atom_of, read_places, symbol
from privspec.execute.family import (
    Circumstances,
    Drawn,
    Exposure,
    FamilyMechanism,
    Plan,
    Secret,
    Simulation,
    readable_plan,
    refuse_long_simulation,
    refuse_unknown,
)
from privspec.execute.keeper import STRICT_RULE, given_for
from privspec.execute.reading import Declared
from privspec.kernel.chains import Chain, read_chain, variance
from privspec.kernel.core.reading import Item
from privspec.model.neighbours import ReplacingEntry
from privspec.noise.samplers import Randomness, SimulationRandomness, discrete_laplace

if TYPE_CHECKING:
    from privspec.model.graph import Model

RULE = (
    "each entry by itself: a number moves to the nearest value of its domain (halfway, to the larger), one that is "
    "missing or unreadable to the value nearest to zero; a word that is missing or not in its set becomes the set's "
    "first"
)


def chain_of_plan(plan: Plan) -> Chain:
    """Raises: UsageError PS0820 if the plan is not one that this version can execute."""
    with readable_plan():
        (block,) = plan["problem"]["blocks"]
        return read_chain(Item(block, "block"), Item(plan["mechanism"], "mechanism"))


@dataclass(frozen=True, eq=False)
class ChainMechanism(FamilyMechanism):
    """What entries add is summed up in whole steps; noise in whole steps is added to each number."""

    chain: Chain

    @classmethod
    def of_plan(cls, plan: Plan) -> ChainMechanism:
        return cls(chain_of_plan(plan))

    @staticmethod
    def fit(model: Model, data: Mapping[str, Any], circumstances: Circumstances) -> None:
        from privspec.problem.chains import chain_of

        chain = chain_of(model)
        atom = atom_of(tuple(model.block(chain.subject).base_domain.elements()))
        _places(chain.subject, chain.length, atom, data, circumstances)

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.chain.outputs

    @cached_property
    def atom(self) -> Atom:
        """The values of an entry, as data write them."""
        return atom_of([symbol(text) for text in self.chain.block.states])

    def read(self, data: Mapping[str, Any], circumstances: Circumstances) -> Secret:
        """The steps of every number.

        Raises: DataError PS0801 to PS0809.
        """
        name = self.chain.block.source
        refuse_unknown(data, (name,))
        places = _places(name, self.chain.length, self.atom, data, circumstances)
        steps = [0] * len(self.chain.offset)
        for rows, place in zip(self.chain.counts, places.tolist(), strict=True):
            for j, row in enumerate(rows):
                steps[j] += row[place]
        return ChainSecret(self.chain, tuple(steps), circumstances.strict)

    def simulate(self, asked: Simulation) -> NDArray[np.float64]:
        """Draws at the given data; at entries of the first value otherwise."""
        data, count = asked.data, asked.repetitions * len(self.chain.offset)
        refuse_long_simulation(count, f"{count} exact draws", "take fewer")
        first = [sum(rows[j][0] for rows in self.chain.counts) for j in range(len(self.chain.offset))]
        none = ChainSecret(self.chain, tuple(first), strict=False)
        secret = none if data is None else self.read(data, Circumstances())
        assert isinstance(secret, ChainSecret)
        randomness = SimulationRandomness(asked.seed)
        return np.array([secret.numbers(randomness) for _ in range(asked.repetitions)])


def _places(
    name: str, length: int, atom: Atom, data: Mapping[str, Any], circumstances: Circumstances
) -> NDArray[np.intp]:
    """The place of every entry among its values.

    Raises: DataError PS0801 to PS0809.
    """
    return read_places(atom, Declared(name, (length,)), located(name, given_for(name, data)), circumstances)


@dataclass(frozen=True, eq=False, slots=True)
class ChainSecret(Secret):
    """The exact answers in steps (m,)."""

    chain: Chain
    steps: tuple[int, ...]
    strict: bool

    @property
    def rules(self) -> tuple[str, ...]:
        return (STRICT_RULE,) if self.strict else (RULE,)

    def numbers(self, randomness: Randomness) -> list[float]:
        """The noisy answers, exact until they are written as doubles."""
        drawn = [steps + discrete_laplace(self.chain.scale, randomness) for steps in self.steps]
        return [float(at + self.chain.unit * one) for at, one in zip(self.chain.offset, drawn, strict=True)]

    def draw(self, randomness: Randomness) -> Drawn:
        values = np.array(self.numbers(randomness))
        return Drawn(
            {one.name: values[one.start : one.stop].reshape(one.shape) for one in self.chain.block.released},
            str(self.chain.unit),
        )

    def deviations(self) -> Mapping[str, NDArray[np.float64]]:
        size = float(self.chain.unit) * sqrt(float(variance(self.chain.scale)))
        return {one.name: np.full(one.shape, size) for one in self.chain.block.released}


class ChainExposure(Exposure):
    """All outputs are released together.

    Guarantees given a model do not add up over releases. What does is what holds whatever the model: the epsilon of one
    entry, which the ledger is charged for a line that counts on the model.
    """

    def charged(self, guarantee: Mapping[str, Any]) -> Mapping[str, Any]:
        """For a line that counts on the model, what holds of one entry without it."""
        if int(guarantee["requirement"]) not in self.plan["problem"]["blocks"][0]["lines"]:
            return guarantee
        epsilon = self.plan["claims"]["without_model"]["entry"]
        kept = {key: value for key, value in guarantee.items() if key != "delta"}
        unit = {"neighbours": ReplacingEntry().describe(), "epsilon": epsilon, "achieved": {"epsilon": epsilon}}
        return kept | unit
