"""Designs: specs that leave choices open, as one complete problem and an exact cost for each alternative."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from privspec.core.diagnostics import DataError, PrivspecError, SpecError
from privspec.core.rounding import show
from privspec.kernel.designs import Alternative, Design, OpenChoice
from privspec.language.spelling import spell
from privspec.model.graph import Model, described, once, value_text
from privspec.model.reports import Failure
from privspec.problem.elaborate import cut_of

KEY = "design"
"""Where a plan says what else its spec leaves open."""


def words(design: Design) -> Iterator[str]:
    """What is chosen from what, and what each alternative asks for."""
    from privspec.problem.words import words

    chosen = " and ".join(f"{one.name} is one of {_listed(one.values)}" for one in design.choices)
    yield f"The solver chooses: {chosen}."
    for one in design.alternatives:
        yield f"Alternative {design.name(one)}, at a cost of {show(one.cost)}:"
        if one.cut is not None:
            text = f"{one.cut.people} people have so many records in {one.cut.input} as the law of the spec says: what"
            yield f"{text} is cut of them adds {show(one.cut.lost)} to the loss."
        if one.clipped is not None:
            name = ".".join(filter(None, (one.clipped.input, one.clipped.column)))
            text = f"By the law of the spec, what is clipped of {name} adds {float(one.clipped.lost):.6g} to the loss."
            yield text
        yield from [one.refused] if one.problem is None else words(one.problem)


def _listed(values: tuple[str, ...]) -> str:
    return (" · " if any("," in one for one in values) else ", ").join(values)


def reads(model: Model) -> bool:
    """Whether the spec leaves something open that makes it another spec."""
    return model.open


@once
def block_of(model: Model) -> Design:
    """The design of a spec.

    Raises: SpecError for an alternative that is no spec.
    """
    design = model.design
    assert design is not None
    first = design.at(next(design.alternatives()))
    return Design(
        tuple(node.name for node in first.outputs),
        "" if design.loss is None else spell(design.loss),
        tuple(OpenChoice(one.name, tuple(map(value_text, one.values)), first.line(one)) for one in design.choices),
        tuple(_alternative(design.at(values)) for values in design.alternatives()),
    )


def _alternative(model: Model) -> Alternative:
    from privspec.problem.elaborate import elaborate

    values = tuple(map(value_text, model.chosen.values()))
    try:
        problem = elaborate(model)
    except SpecError as error:
        return Alternative(values, model.cost, None, reason(error))
    try:
        from privspec.problem.clipping import clipped_of, limited  # few designs are of limits

        clipped = clipped_of(model, problem) if any(one.chosen for one in limited(model)) else None
        return Alternative(values, model.cost, problem, "", cut_of(model, problem), clipped)
    except Failure as failure:
        raise failure.of_spec(model.source) from failure


def reason(error: PrivspecError) -> str:
    """Why an alternative cannot be computed, in a line."""
    return "; ".join(f"{found.code}: {found.message}" for found in error.diagnostics)


def inner(model: Model) -> Model:
    """A spec that holds the same data: the first alternative, as others hold the same.

    Raises: DataError PS0801 where which data fit depends on what is chosen.
    """
    design = model.design
    assert design is not None
    models = [design.at(values) for values in design.alternatives()]
    held = {tuple((block.name, block.domain.describe(), block.index) for block in one.blocks) for one in models}
    if len(held) > 1:
        text = f"which data fit depends on {' or '.join(choice.name for choice in design.choices)}"
        raise DataError.of("PS0801", text, help="solve the spec, and give its plan")
    found: Model = models[0]
    return found


def with_picked(mechanism: Mapping[str, Any], picked: Mapping[str, str]) -> dict[str, Any]:
    """A mechanism whose choices hold what was picked of a design as well; of a composite one only, others have none."""
    if mechanism["family"] != "composite":
        return dict(mechanism)
    return {**mechanism, "choices": {**mechanism.get("choices", {}), **picked}}


def _without(mechanism: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    """The mechanism as if nothing had been open."""
    kept = {name: value for name, value in mechanism.get("choices", {}).items() if name not in names}
    rest = {key: value for key, value in mechanism.items() if key != "choices"}
    return rest | ({"choices": kept} if kept else {})


def inside(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The plan of the alternative that was chosen, as if nothing else had been open; any other plan as it is."""
    if KEY not in document:
        return document
    chosen = document[KEY]["outcomes"][document[KEY]["chosen"]]
    own = {key: chosen[key] for key in ("status", "loss", "alternatives")}
    own["mechanism"] = _without(document["mechanism"], {one["name"] for one in document[KEY]["problem"]["choices"]})
    return {key: value for key, value in document.items() if key != KEY} | own


def name_of(model: Model) -> str:
    """An alternative by its values, as in "protocol = nobody"."""
    return described(model.chosen)
