"""Fairness lines: independence of outputs and attributes."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from privspec.language import syntax
from privspec.model.domains import Domain
from privspec.model.evaluate import evaluate
from privspec.model.reports import Failure, nearest
from privspec.model.requirement_rules import RequirementReader
from privspec.model.requirements import IndependenceRequirement
from privspec.model.values import Value


def read_independence(
    line: syntax.Independence, reader: RequirementReader, attributes: Mapping[str, Domain]
) -> IndependenceRequirement | None:
    """A fairness line; None after a complaint. `attributes` are those of the tables among the inputs."""
    if isinstance(line.subjects, syntax.AllOf):
        subjects: tuple[str | None, ...] = reader.names(line.subjects, "output", "PS0301", reader.component_outputs)
    else:
        subjects = tuple(_known(ref, reader, attributes) for ref in line.subjects.items)
    of = _known(line.of, reader, attributes)
    given = None if line.given is None else _known(line.given, reader, attributes)
    named = [name for name in (*subjects, of, given) if name is not None]
    if not subjects or len(named) < len(subjects) + 1 + (line.given is not None):
        return None
    if not _says_something(line, named, reader) or not _tolerable(line, reader):
        return None
    equals = None
    if line.value is not None and given is not None:
        try:
            equals = _value(line.value, given, {**attributes, **reader.domains}.get(given), reader)
        except Failure as failure:
            reader.report.failure(failure)
            return None
    number, text = reader.line(line.span)
    whole = tuple(name for name in subjects if name is not None)
    return IndependenceRequirement(whole, of or "", given, line.value, line.tolerance, line.span, number, text, equals)


def _known(ref: syntax.Ref, reader: RequirementReader, attributes: Mapping[str, Domain]) -> str | None:
    """The name of something that varies; None after a complaint."""
    known = {*reader.scope.of("input", "output", "intermediate"), *attributes, *reader.component_outputs}
    full = f"{ref.name}.{ref.attribute}" if ref.attribute else ref.name
    if full in known:
        reader.check_index(ref)
        return full
    near = nearest(full, known)
    hint = f"did you mean {near}?" if near else "it must be a variable, or an attribute of a table"
    reader.report.error("PS0320", ref.span, f"nothing that varies is called {full}", help=hint)
    return None


def _says_something(line: syntax.Independence, named: list[str], reader: RequirementReader) -> bool:
    """Whether the line speaks of an output and of nothing twice."""
    twice = next((name for i, name in enumerate(named) if name in named[:i]), None)
    if twice is not None:
        reader.report.error("PS0320", line.span, f"{twice} is named twice in this line")
        return False
    outputs = {*reader.scope.of("output"), *reader.component_outputs}
    if not outputs & set(named):
        reader.report.error(
            "PS0322",
            line.span,
            "this line names no output, so that no mechanism could obey it",
            label="nothing here is drawn by the mechanism",
            help="what is believed of the data is written under background, as in (sex, y) ~ categorical(...)",
        )
        return False
    return True


def _tolerable(line: syntax.Independence, reader: RequirementReader) -> bool:
    if line.tolerance is None:
        return True
    try:
        tolerance = evaluate(line.tolerance, reader.public or reader.environment)
        if not isinstance(tolerance, Fraction) or not 0 <= tolerance < 1:
            raise Failure(
                "PS0321",
                line.tolerance.span,
                "a tolerance in total variation is a number from 0 to below 1",
            )
    except Failure as failure:
        reader.report.failure(failure)
        return False
    return True


def _value(expr: syntax.Expr, name: str, domain: Domain | None, reader: RequirementReader) -> Value:
    """The value in `given y = 1`, `given sex = F`: a public one, or a bare word of the domain.

    Raises: Failure PS0323 if the attribute never takes it, and what evaluation raises.
    """
    public = reader.public or reader.environment
    if isinstance(expr, syntax.Name) and expr.id not in public.values:
        found: Value = expr.id
        if domain is None or not domain.contains(found):
            near = None if domain is None or domain.size is None else nearest(expr.id, _words(domain))
            hint = f"did you mean {near}?" if near else None
            raise Failure("PS0323", expr.span, _never(name, expr.id, domain), help=hint)
        return found
    found = evaluate(expr, public)
    if domain is not None and (np.shape(found) != domain.shape or not domain.contains(found)):  # type: ignore[arg-type]
        raise Failure("PS0323", expr.span, _never(name, reader.report.source.slice(expr.span), domain))
    return found


def _words(domain: Domain) -> list[str]:
    return [item for item in domain.elements() if isinstance(item, str)] if (domain.size or 0) <= 1000 else []


def _never(name: str, text: str, domain: Domain | None) -> str:
    where = "" if domain is None else f"; it lies in {domain.describe()}"
    return f"{name} never takes the value {text}{where}"
