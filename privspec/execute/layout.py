"""What the spec, and not the plan, says about a run: shapes of inputs, and how outputs are computed."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.execute.arrays import Declared

if TYPE_CHECKING:
    from privspec.execute.executed import Executed
    from privspec.execute.mechanism import Target
    from privspec.model.graph import Model

Array: TypeAlias = NDArray[np.float64]


def declared_shapes(model: Model) -> dict[str, Declared]:
    """The declared shape of every input, and the index set that its first axis runs over."""
    return {block.name: Declared(block.name, block.type.shape, block.index) for block in model.blocks}


def target_of(model: Model, executed: Executed, constants: Mapping[str, Array] | None = None) -> Target:
    """The spec's definitions, from a base vector (n,) to the outputs by name: post-processing.

    Args: constants, the public values that have none in the spec.
    """
    from privspec.model.targets import target

    values = {name: Fraction(float(value)) if not value.shape else value for name, value in (constants or {}).items()}
    return lambda u: {output.name: target(model, output.name, u, values) for output in executed.outputs}
