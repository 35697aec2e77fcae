"""Specs in a few words, and what they mean by direct evaluation."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspec.core.spans import Source
from privspec.families.decision import Infeasible
from privspec.families.family import Settings
from privspec.families.gaussian.family import Choice, choose
from privspec.families.gaussian.problem import LinearSystem, Problem, lower
from privspec.language import syntax
from privspec.model.build import load_model
from privspec.model.evaluate import evaluate
from privspec.model.graph import Model
from privspec.model.targets import environment, input_value, target

Array = NDArray[np.float64]
TEMPLATES = Path(__file__).parents[2] / "specs"


def spec(
    variables: str,
    background: str = "",
    loss: str = "E[ ||O - y||^2 ]",
    privacy: str = "O is 1-GDP wrt x, replacing one entry",
    options: str = "",
) -> str:
    """A spec from its sections; `;` separates lines."""
    sections = {
        "variables": variables,
        "background": background,
        "loss": loss,
        "privacy": privacy,
        "options": options,
    }
    return "\n".join(
        f"{name}:\n" + "\n".join(f"  {line.strip()}" for line in text.split(";"))
        for name, text in sections.items()
        if text
    )


def model_of(text: str, **parameters: Any) -> Model:
    return load_model(Source("test.priv", text), parameters=parameters, base=TEMPLATES)


def lowered(model: Model) -> LinearSystem:
    system = lower(model)
    assert isinstance(system, LinearSystem)
    return system


def problem_of(text: str, settings: Settings | None = None, **parameters: Any) -> Problem:
    model = model_of(text, **parameters)
    return Problem(model, lowered(model), settings or Settings())


def chosen(text: str, settings: Settings | None = None, **parameters: Any) -> Choice:
    """The choice among mechanisms that the compiler makes for a spec."""
    choice = choose(problem_of(text, settings, **parameters))
    assert not isinstance(choice, Infeasible), choice
    return choice


def targets(model: Model, u: Array, values: Mapping[str, Any] | None = None) -> Array:
    """All outputs without noise, one after another, by evaluating the definitions at u."""
    return np.concatenate([target(model, out.name, u, values).reshape(-1) for out in model.outputs])


def loss_at(model: Model, u: Array, outputs: Array) -> float:
    """The loss expression with averages left out, at inputs u and these outputs (joint, flat)."""
    values: dict[str, Any] = {block.name: input_value(block, u) for block in model.blocks}
    for node in model.intermediates:
        values[node.name] = value_of(target(model, node.name, u))
    start = 0
    for node in model.outputs:
        size = int(np.prod(node.type.shape, dtype=int))
        values[node.name] = value_of(outputs[start : start + size].reshape(node.type.shape))
        start += size
    assert model.loss is not None
    found = evaluate(_without_averages(model.loss), environment(model, values))
    return float(np.asarray(found, dtype=float))


def value_of(array: Array) -> Any:
    return Fraction(float(array)) if array.shape == () else array


def _without_averages(node: Any) -> Any:
    if isinstance(node, syntax.Over):
        return _without_averages(node.body)
    if isinstance(node, tuple):
        return tuple(_without_averages(item) for item in node)
    if isinstance(node, syntax.Node):
        parts = {f.name: _without_averages(getattr(node, f.name)) for f in dataclasses.fields(node)}
        return dataclasses.replace(node, **parts)
    return node
