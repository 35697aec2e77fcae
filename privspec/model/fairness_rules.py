"""Lines of fairness: names that vary, an output among them, a tolerance, a value that the condition can take."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from privspec.language import syntax
from privspec.model.domains import Domain
from privspec.model.evaluate import evaluate
from privspec.model.reports import Failure, suggestion
from privspec.model.requirement_rules import RequirementReader
from privspec.model.requirements import IndependenceRequirement
from privspec.model.values import Value


def read_independence(
    line: syntax.Independence, reader: RequirementReader, attributes: Mapping[str, Domain]
) -> IndependenceRequirement | None:
    """A fairness line; None after a complaint. `attributes` are those of the tables among the inputs."""
    if isinstance(line.subjects, syntax.AllOf):
        subjects: tuple[str | None, ...] = reader.names(line.subjects, "output", "PS0301")
    else:
        subjects = tuple(_known(ref, reader, attributes) for ref in line.subjects.items)
    of = _known(line.of, reader, attributes)
    given = None if line.given is None else _known(line.given, reader, attributes)
    named = [name for name in (*subjects, of, given) if name is not None]
    if not subjects or len(named) < len(subjects) + 1 + (line.given is not None):
        return None
    domain = {**attributes, **reader.domains}.get(given or "")
    try:
        _check(line, named, reader)
        equals = None if line.value is None or given is None else _value(line.value, given, domain, reader)
    except Failure as failure:
        reader.report.failure(failure)
        return None
    number, text = reader.report.line(line.span)
    whole = tuple(name for name in subjects if name is not None)
    return IndependenceRequirement(whole, of or "", given, line.value, line.tolerance, line.span, number, text, equals)


def _known(ref: syntax.Ref, reader: RequirementReader, attributes: Mapping[str, Domain]) -> str | None:
    """The name of something that varies; None after a complaint."""
    known = {*reader.scope.of("input", "output", "intermediate"), *attributes}
    full = f"{ref.name}.{ref.attribute}" if ref.attribute else ref.name
    if full in known:
        reader.check_index(ref)
        return full
    hint = suggestion(full, known) or "it must be a variable, or an attribute of a table"
    reader.report.error("PS0320", ref.span, f"nothing that varies is called {full}", help=hint)
    return None


def _check(line: syntax.Independence, named: list[str], reader: RequirementReader) -> None:
    """Whether the line speaks of an output, of nothing twice, and of a tolerance that is one.

    Raises: Failure.
    """
    twice = next((name for i, name in enumerate(named) if name in named[:i]), None)
    if twice is not None:
        raise Failure("PS0320", line.span, f"{twice} is named twice in this line")
    if not reader.scope.of("output").keys() & set(named):
        raise Failure(
            "PS0322",
            line.span,
            "this line names no output, so that no mechanism could obey it",
            label="nothing here is drawn by the mechanism",
            help="what is believed of the data is written under background, as in (sex, y) ~ categorical(...)",
        )
    if line.tolerance is not None:
        tolerance = evaluate(line.tolerance, reader.public)
        if not isinstance(tolerance, Fraction) or not 0 <= tolerance < 1:
            raise Failure("PS0321", line.tolerance.span, "a tolerance in total variation is a number from 0 to below 1")


def _value(expr: syntax.Expr, name: str, domain: Domain | None, reader: RequirementReader) -> Value:
    """The value in `given y = 1`, `given sex = F`: a public one, or a bare word of the domain.

    Raises: Failure PS0323 if the attribute never takes it, and what evaluation raises.
    """
    word = isinstance(expr, syntax.Name) and expr.id not in reader.public.values
    text = reader.report.source.slice(expr.span)
    found: Value = text if word else evaluate(expr, reader.public)
    if word and domain is not None and domain.contains(found):
        return found
    if not word and (domain is None or (np.shape(found) == domain.shape and domain.contains(found))):  # type: ignore[arg-type]
        return found
    hint = None
    if word and domain is not None and 0 < (domain.size or 0) <= 1000:
        hint = suggestion(text, [item for item in domain.elements() if isinstance(item, str)])
    where = "" if domain is None else f"; it lies in {domain.describe()}"
    raise Failure("PS0323", expr.span, f"{name} never takes the value {text}{where}", help=hint)
