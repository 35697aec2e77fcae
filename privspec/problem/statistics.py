"""Specs of statistics as blocks of numbers."""

from __future__ import annotations

from privspec.model.graph import Model
from privspec.problem.types import Block


def reads(model: Model) -> bool:
    """Whether these forms can say what the spec says."""
    return model.name == ""


def blocks(model: Model) -> tuple[Block, ...]:
    """The blocks of a spec that `reads` takes.

    Raises: SpecError PS05xx.
    """
    raise NotImplementedError(model.name)
