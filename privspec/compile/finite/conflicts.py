"""Tables that cannot exist: the lines that conflict."""

from __future__ import annotations

from privspec.compile.finite.program import Lowered
from privspec.compile.infeasible import Infeasible, conflict_line
from privspec.model.graph import Model
from privspec.solvers.table_programs import InfeasibleTable


def explain_infeasible(model: Model, lowered: Lowered, found: InfeasibleTable) -> Infeasible:
    """The lines behind the rows of a proof of infeasibility."""
    spans = [lowered.equalities[k].span for k in found.equalities]
    spans += [lowered.inequalities[k].span for k in found.inequalities]
    spans += [model.requirements[lowered.blocks[k]].span for k in found.privacy]
    lines = {line.line: line for line in (conflict_line(model, span) for span in spans)}
    return Infeasible(
        "no law of the outputs meets these lines together", tuple(lines[number] for number in sorted(lines)), ()
    )
