"""What the spec, and not the plan, says about a run: shapes of inputs, and how outputs are computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.execute.arrays import Declared

if TYPE_CHECKING:
    from privspec.model.graph import Model

Array: TypeAlias = NDArray[np.float64]


def declared_shapes(model: Model) -> dict[str, Declared]:
    """The declared shape of every input, and the index set that its first axis runs over."""
    return {block.name: Declared(block.name, block.type.shape, block.index) for block in model.blocks}
