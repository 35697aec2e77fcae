"""Fairness lines: independence of outputs and attributes."""

from __future__ import annotations

from fractions import Fraction

from privspec.language import syntax
from privspec.model.evaluate import evaluate
from privspec.model.reports import Failure, nearest
from privspec.model.requirement_rules import RequirementReader
from privspec.model.requirements import IndependenceRequirement


def read_independence(
    line: syntax.Independence, reader: RequirementReader, attributes: frozenset[str]
) -> IndependenceRequirement | None:
    """A fairness line; None after a complaint. `attributes` are those of the tables among the inputs."""
    report, scope = reader.report, reader.scope
    known = frozenset(scope.of("input", "output", "intermediate")) | attributes | reader.component_outputs
    good = True

    def check(ref: syntax.Ref) -> str:
        nonlocal good
        full = f"{ref.name}.{ref.attribute}" if ref.attribute else ref.name
        if full not in known:
            near = nearest(full, known)
            hint = f"did you mean {near}?" if near else "it must be a variable, or an attribute of a table"
            report.error("PS0320", ref.span, f"nothing that varies is called {full}", help=hint)
            good = False
        return full

    if isinstance(line.subjects, syntax.AllOf):
        subjects = reader.names(line.subjects, "output", "PS0301", reader.component_outputs)
    else:
        subjects = tuple(check(ref) for ref in line.subjects.items)
    of = check(line.of)
    given = None if line.given is None else check(line.given)
    if line.tolerance is not None:
        try:
            tolerance = evaluate(line.tolerance, reader.environment)
            if not isinstance(tolerance, Fraction) or not 0 <= tolerance < 1:
                raise Failure(
                    "PS0321",
                    line.tolerance.span,
                    "a tolerance in total variation is a number from 0 to below 1",
                )
        except Failure as failure:
            report.failure(failure)
            good = False
    if not good or not subjects:
        return None
    number, text = reader.line(line.span)
    return IndependenceRequirement(subjects, of, given, line.value, line.tolerance, line.span, number, text)
