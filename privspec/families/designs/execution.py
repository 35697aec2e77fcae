"""How data fit a spec that leaves choices open; plans are of what was chosen, and run by its family."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from privspec.execute.family import Circumstances
from privspec.execute.keeper import refuse
from privspec.registry import family_of

if TYPE_CHECKING:
    from privspec.model.graph import Model


def fit(model: Model, data: Mapping[str, Any], circumstances: Circumstances) -> None:
    """How data fit the spec, told to the keeper, where all alternatives hold the same data.

    Raises: DataError where their structure does not fit, or where what fits depends on what is chosen.
    """
    design = model.design
    assert design is not None
    models = [design.at(values) for values in design.alternatives()]
    held = {tuple((block.name, block.domain.describe(), block.index) for block in one.blocks) for one in models}
    if len(held) > 1:
        names = " or ".join(choice.name for choice in design.choices)
        refuse("PS0801", f"which data fit depends on {names}", help="solve the spec, and give its plan")
    first = models[0]
    family_of(first).fits(first, data, replace(circumstances, model=first))
