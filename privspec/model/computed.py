"""Outputs that are computed from released ones, as in `output average = S / N`: they cost nothing.

They are set apart before anything else reads a spec. A line of privacy that names one is about the outputs that it is
computed from; whoever sees all of those is given it as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from privspec.core.spans import Span
from privspec.language import syntax
from privspec.language.spelling import spell
from privspec.language.walk import names_used, walk, with_children
from privspec.model.domains import Interval, Type
from privspec.model.evaluate import Environment, evaluate
from privspec.model.reports import Failure, Report
from privspec.model.scope import Scope
from privspec.model.values import Array, Value, as_float

COUNTS = ("count", "histogram", "marginals")
"""Functions whose noisy values may be zero or less where what they count is not."""


@dataclass(frozen=True, eq=False, slots=True)
class Computed:
    """An output with the expression that gives it, and the outputs that it is computed from, through others too.

    `domain`: it is moved into this interval.
    """

    name: str
    expr: syntax.Expr
    sources: tuple[str, ...]
    domain: Interval | None
    type: Type
    line: int

    @property
    def text(self) -> str:
        """What is computed, in the words of a spec."""
        within = "" if self.domain is None else f", moved into {self.domain.describe()}"
        return f"{spell(self.expr)}{within}"

    def value(self, released: Mapping[str, Any], public: Environment) -> Array:
        """Its value from released ones; not a number where there is none, as for a quotient by zero."""
        known = {name: _exact(value) for name, value in released.items()}
        try:
            with np.errstate(all="ignore"):
                found = as_float(evaluate(self.expr, replace(public, values={**public.values, **known})))
        except Failure:
            return np.full(self.type.shape, np.nan)
        if self.domain is not None:
            low, high = self.domain.low, self.domain.high
            found = np.clip(found, None if low is None else float(low), None if high is None else float(high))
        return np.asarray(found, dtype=np.float64)


def _exact(value: Any) -> Value:
    array = np.asarray(value, dtype=np.float64)
    return Fraction(float(array)) if array.ndim == 0 else array


Statements = dict[str, tuple[syntax.Expr, syntax.Domain | None, Span]]


def set_apart(
    spec: syntax.Spec, scope: Scope, report: Report
) -> tuple[syntax.Spec, Statements, dict[str, tuple[str, ...]]]:
    """The spec without outputs that are computed from others, these with what defines them, and their sources."""
    outputs, public = set(scope.of("output")), set(scope.of("parameter", "constant"))
    written: Statements = {
        one.target.name: (one.value, one.domain, one.span)
        for one in spec.variables
        if one.kind is syntax.VariableKind.OUTPUT and one.value is not None
    }
    bare = {one.target.name: one for one in spec.variables if one.kind is syntax.VariableKind.OUTPUT}
    for line in spec.background:
        name = _defined(line)
        if isinstance(line, syntax.Relation) and name in bare and name not in written:
            written[name] = (line.right, bare[name].domain, line.span)
    apart = {
        name: one
        for name, one in written.items()
        if set(names_used(one[0])) & outputs and set(names_used(one[0])) <= outputs | public
    }
    if not apart:
        return spec, {}, {}
    sources = {name: _sources(name, apart, outputs, (), report) for name in apart}
    for place, node in _uses(spec, apart):
        hint = (
            f"weigh {' and '.join(sources[node.id]) or 'what it is computed from'}: whoever has that computes {node.id}"
        )
        report.failure(
            Failure("PS0501", node.span, f"{place} is about {node.id}, which is computed from others", help=hint)
        )
    if any(not found for found in sources.values()):
        return spec, {}, {}
    kept = replace(
        spec,
        variables=tuple(one for one in spec.variables if one.target.name not in apart),
        background=tuple(one for one in spec.background if _defined(one) not in apart),
        privacy=tuple(replace(line, subjects=_named(line.subjects, sources)) for line in spec.privacy),
    )
    return kept, apart, sources


def _sources(
    name: str, apart: Statements, outputs: set[str], above: tuple[str, ...], report: Report
) -> tuple[str, ...]:
    """The released outputs that one is computed from; nothing after telling of one that needs itself."""
    if name in above:
        report.failure(
            Failure("PS0210", apart[name][2], f"{name} is computed from itself", help="leave one of them free")
        )
        return ()
    found: dict[str, None] = {}
    for used in names_used(apart[name][0]):
        if used in apart:
            found |= dict.fromkeys(_sources(used, apart, outputs, (*above, name), report))
        elif used in outputs:
            found[used] = None
    return tuple(found)


def _uses(spec: syntax.Spec, apart: Statements) -> list[tuple[str, syntax.Name]]:
    """Where such outputs stand in lines that would have to predict them."""
    places: list[tuple[str, syntax.Node]] = [] if spec.loss is None else [("the loss", spec.loss)]
    places += [("this line", line) for line in spec.accuracy]
    places += [("this line", line) for line in spec.background if _defined(line) not in apart]
    places += [("this option", option) for option in spec.options]
    found = [(place, node) for place, item in places for node in walk(item)]
    return [(place, node) for place, node in found if isinstance(node, syntax.Name) and node.id in apart]


def _defined(line: syntax.BackgroundStatement) -> str:
    """The variable that a line defines, if it does."""
    match line:
        case syntax.Relation(op="=", left=syntax.Name(id=name)):
            return name
        case _:
            return ""


def _named(subjects: syntax.Names, sources: Mapping[str, tuple[str, ...]]) -> syntax.Names:
    """The outputs that a line is about: those that a computed one comes from in its place."""
    if isinstance(subjects, syntax.AllOf):
        return subjects
    items: dict[str, syntax.Ref] = {}
    for item in subjects.items:
        for name in sources.get(item.name, (item.name,)):
            items.setdefault(
                name, item if name == item.name else syntax.Ref(name, name_span=item.name_span, span=item.span)
            )
    return replace(subjects, items=tuple(items.values()))


def guarded(expr: syntax.Expr, targets: Mapping[str, syntax.Expr]) -> syntax.Expr:
    """The expression with every quotient by a noisy count as one by the larger of it and 1."""

    def change(node: syntax.Node) -> syntax.Node:
        match node:
            case syntax.Binary(op="/", left=left, right=syntax.Name(id=name) as right) if _counts(targets.get(name)):
                one = syntax.Number(Fraction(1), "1", span=right.span)
                below = syntax.Call("max", (right, one), span=right.span)
                return syntax.Binary("/", change(left), below, span=node.span)  # type: ignore[arg-type]
            case _:
                return with_children(node, change)

    return change(expr)  # type: ignore[return-value]


def _counts(target: syntax.Expr | None) -> bool:
    return isinstance(target, syntax.Call) and target.function in COUNTS
