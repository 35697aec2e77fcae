"""The convex program that a spec stands for: in words and formulas, as cvxpy has it, and back from numbers to a plan.

A family makes one from its system. What `--solver cvxpy` solves is stated by the same functions; cvxpy itself is loaded
only when a program is stated in it, so that the words can be read without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from privspec.core.records import dataclass, field, replace
from privspec.solvers.programs import Array

if TYPE_CHECKING:
    from privspec.model.graph import Model

Values: TypeAlias = Mapping[str, Array]
"""What a solver found, or what parameters are, by name."""


@dataclass(frozen=True, slots=True)
class Part:
    """The constraints that a line of the spec stands for: what they are called, a formula, and how many there are."""

    label: str
    formula: str
    count: int = 1

    def __str__(self) -> str:
        return f"{self.label}\n    {self.formula}" + (f"   [{self.count:,} of them]" if self.count > 1 else "")


@dataclass(eq=False, slots=True)
class Stated:
    """A program in cvxpy: its problem, and variables, parameters, constraints and affine expressions of it by name."""

    problem: Any
    variables: dict[str, Any]
    parameters: dict[str, Any] = field(default_factory=dict)
    constraints: dict[str, list[Any]] = field(default_factory=dict)
    expressions: dict[str, Any] = field(default_factory=dict)


class Settled(Protocol):
    """A decision for what was found."""

    def document(self) -> dict[str, Any]:
        """Its plan."""


@dataclass(frozen=True, eq=False, slots=True)
class Form:
    """What a family says of its program.

    `unknown`, `minimised`, `parts`, `where`: in words and formulas. `amounts`: its parameters at the amounts of a
    model; `same`: whether a model differs from its own in such amounts alone. `state`: it in cvxpy.
    `settle`: values of its variables, whatever found them, repaired to an exact mechanism that meets the spec, as a
    decision with the bound of the program as it stands here.
    """

    model: Model
    unknown: tuple[str, ...]
    minimised: str
    parts: tuple[Part, ...]
    where: tuple[str, ...]
    amounts: Callable[[Model], Values]
    same: Callable[[Model], bool]
    state: Callable[[], Stated]
    settle: Callable[[Values], Settled]

    def text(self) -> str:
        """The program in words and formulas."""
        held = [f"{name} = {_shown(value)}" for name, value in self.amounts(self.model).items()]
        sections = (
            ("unknown", self.unknown),
            ("minimise", (self.minimised,)),
            ("subject to", map(str, self.parts)),
            ("parameters", held),
            ("where", self.where),
        )
        return "\n".join(_section(head, lines) for head, lines in sections)


def valued(form: Form, why: str, factor: float = 1.0, paid: float = 0.0) -> Form:
    """The program with its loss so many times as large, and with what is paid besides."""

    def state() -> Stated:
        made = form.state()
        goal = made.problem.objective
        made.problem = type(made.problem)(type(goal)(factor * goal.expr + paid), made.problem.constraints)
        return made

    minimised = form.minimised if factor == 1 else f"{factor:.6g} ({form.minimised})"
    minimised += f" + {paid:.6g}" if paid else ""
    return replace(form, state=state, minimised=minimised, where=(*form.where, why))


def _section(head: str, lines: Iterable[str]) -> str:
    return "\n".join([f"{head}:", *(f"  {row}" for line in lines for row in line.splitlines())])


SHOWN = 6
"""Numbers of a parameter that are written out."""


def _shown(value: Array) -> str:
    numbers = [f"{one:.6g}" for one in np.ravel(value)[:SHOWN].tolist()]
    if value.ndim == 0:
        return numbers[0]
    rest = f", ... {value.size:,} numbers" if value.size > SHOWN else ""
    return f"[{', '.join(numbers)}{rest}]"


def labelled(parts: dict[str, list[Any]]) -> list[Any]:
    """All constraints, each with the label of its part; numbered where there are several."""
    for label, own in parts.items():
        for k, constraint in enumerate(own):
            constraint.set_label(label if len(own) == 1 else f"{label} [{k + 1} of {len(own)}]")
    return [constraint for own in parts.values() for constraint in own]
