"""What the spec, and not the plan, says about a run: shapes of inputs, and how outputs are computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privspec.execute.arrays import Declared

if TYPE_CHECKING:
    from privspec.execute.executed import Executed
    from privspec.execute.mechanism import Target
    from privspec.model.graph import Model


def declared_shapes(model: Model) -> dict[str, Declared]:
    """The declared shape of every input, and the index set that its first axis runs over."""
    return {block.name: Declared(block.name, block.type.shape, block.index) for block in model.blocks}


def target_of(model: Model, executed: Executed) -> Target:
    """The spec's definitions, from a base vector (n,) to the outputs by name: post-processing."""
    from privspec.model.targets import target

    return lambda u: {output.name: target(model, output.name, u) for output in executed.outputs}
