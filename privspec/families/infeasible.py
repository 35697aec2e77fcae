"""Requirements that cannot hold together: which lines conflict, and what the smallest changes would be."""

from __future__ import annotations

from typing import Any

from privspec.core.records import dataclass
from privspec.core.spans import Span
from privspec.model.graph import Model
from privspec.model.neighbours import UnboundedError
from privspec.model.requirements import Requirement


@dataclass(frozen=True, slots=True)
class ConflictLine:
    """One of the lines that cannot all hold; without any one of them the others can."""

    line: int
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Relaxation:
    """A single change that makes the spec feasible, on `line`, with the loss it would have if that is known.

    `works` is False for what one might try in vain: `change` then says why no amount of it is enough.
    """

    change: str
    line: int | None = None
    loss: float | None = None
    works: bool = True


@dataclass(frozen=True, slots=True)
class Infeasible:
    """Proof that no mechanism meets the spec, as the smallest set of lines, and priced ways out."""

    reason: str
    conflicts: tuple[ConflictLine, ...]
    relaxations: tuple[Relaxation, ...]

    def to_json(self) -> dict[str, Any]:
        """The keys `conflicts` and `relaxations` of an infeasible plan."""
        return {
            "reason": self.reason,
            "conflicts": [{"line": c.line, "text": c.text} for c in self.conflicts],
            "relaxations": [
                {"change": r.change, "line": r.line, "loss": r.loss} | ({} if r.works else {"works": False})
                for r in self.relaxations
            ],
        }


def conflict_line(model: Model, span: Span) -> ConflictLine:
    """The line of the spec that a span begins on, without its comment."""
    line, _ = model.source.position(span.start)
    return ConflictLine(line, model.source.line(line).split("#")[0].strip(), span)


@dataclass(frozen=True, slots=True)
class Unbounded(Infeasible):
    """One unit can move `input` without limit; its one relaxation, to bound it, has no price yet."""

    input: str = ""


def unbounded(model: Model, requirement: Requirement, error: UnboundedError) -> Unbounded:
    """One unit can move an input without limit."""
    line = conflict_line(model, error.block.span)
    return Unbounded(
        f"{error.why}: no finite noise hides it",
        (line, conflict_line(model, requirement.span)),
        (Relaxation(error.suggestion, line.line),),
        error.block.name,
    )
