"""A plan about a sequence as a mechanism that can be run: exact whole numbers, exact noise, one grid for both."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspec.execute.data import located
from privspec.execute.drawing import atom_of, read_places, symbol
from privspec.execute.family import BlockMechanism, BlockSecret, Drawn, Exposure, RunContext
from privspec.execute.keeper import given_for
from privspec.execute.reading import Declared
from privspec.kernel.chains import Chain, ChainBlock, read_chain, variance
from privspec.kernel.core.problem import Data
from privspec.model.neighbours import ReplacingEntry
from privspec.noise.samplers import Randomness, discrete_laplace

RULE = (
    "each entry by itself: a number moves to the nearest value of its domain (halfway, to the larger), one that is "
    "missing or unreadable to the value nearest to zero; a word that is missing or not in its set becomes the set's "
    "first"
)


class ChainMechanism(BlockMechanism[Chain, list[int]]):
    """What entries add is summed up in whole steps; noise in whole steps is added to each number."""

    BLOCK = ChainBlock
    READ = read_chain

    @staticmethod
    def content(block: Any, _source: Data, data: Mapping[str, Any], circumstances: RunContext) -> list[int]:
        """The place of every entry among its values."""
        declared = Declared(block.source, (len(block.added.rows) // len(block.offset.values()),))
        given = located(block.source, given_for(block.source, data))
        found: list[int] = read_places(atom_of([*map(symbol, block.states)]), declared, given, circumstances).tolist()
        return found

    @property
    def nothing(self) -> list[int]:
        """Entries of the first value."""
        return [0] * self.executed.length


class ChainSecret(BlockSecret[ChainMechanism, list[int]]):
    """The place of every entry among its values."""

    RULE = RULE

    @property
    def size(self) -> int:
        return len(self.mechanism.executed.offset)

    @cached_property
    def steps(self) -> list[int]:
        """The exact answers in steps (m,)."""
        counts = zip(self.mechanism.executed.counts, self.content, strict=True)
        return [sum(column) for column in zip(*([row[place] for row in rows] for rows, place in counts), strict=True)]

    def numbers(self, randomness: Randomness) -> list[float]:
        """The noisy answers, exact until they are written as doubles."""
        chain = self.mechanism.executed
        drawn = [steps + discrete_laplace(chain.scale, randomness) for steps in self.steps]
        return [float(at + chain.unit * one) for at, one in zip(chain.offset, drawn, strict=True)]

    def draw(self, randomness: Randomness) -> Drawn:
        chain, values = self.mechanism.executed, np.array(self.numbers(randomness))
        released = {one.name: values[one.start : one.stop].reshape(one.shape) for one in chain.block.released}
        return Drawn(released, str(chain.unit))

    def deviations(self) -> Mapping[str, NDArray[np.float64]]:
        chain = self.mechanism.executed
        size = float(chain.unit) * sqrt(float(variance(chain.scale)))
        return {one.name: np.full(one.shape, size) for one in chain.block.released}


ChainMechanism.SECRET = ChainSecret


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
