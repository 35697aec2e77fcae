"""Design choices: what a spec leaves open among finitely many values, each of which makes it another spec.

`choose protocol in {nobody, curator}` or `choose k in 1..20` may stand wherever a parameter may, in `trust`, and as the
component that is used. An alternative is the spec with every such name bound; the terms of its loss that are about
public values only are its cost, an exact number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, TypeAlias

from privspec.core.diagnostics import Diagnostic, Label, SpecError
from privspec.core.spans import Source, Span
from privspec.language import syntax
from privspec.language.syntax import VariableKind
from privspec.language.walk import every, names_used, summands, walk, with_children
from privspec.model.domain_rules import read_domain
from privspec.model.domains import Domain, FiniteSet, Grid, IntegerRange, Power
from privspec.model.evaluate import Environment, Reader, evaluate
from privspec.model.graph import Choice, Component, OpenChoice, Values, value_text
from privspec.model.parameters import read_parameters
from privspec.model.reports import Failure, Report
from privspec.model.scope import collect
from privspec.model.values import Symbol

Terms: TypeAlias = tuple[tuple[int, syntax.Expr], ...]
"""Terms of a sum with their signs."""
MOST = 1024
"""Alternatives that are compared, each solved as a spec of its own."""


def open_choices(
    spec: syntax.Spec, source: Source, parameters: Mapping[str, object], base: Path | None
) -> tuple[OpenChoice, ...]:
    """The names that stand for one of finitely many values; those whose domain cannot be read are left to the checks.

    A number that is all that the loss is about, such as a number of rounds, is no design: a family finds it at once.
    Raises: SpecError PS0527 for more combinations than can be listed.
    """
    declared = dict(_declared(spec))
    if not declared or _alone(spec, declared):
        return ()
    known = known_of(spec, source, parameters, base)
    found, combinations = [], 1
    for name, (written, span) in declared.items():
        try:
            domain = read_domain(written, known)
        except Failure:
            continue
        if _of_values(domain):
            found.append((name, domain, span))
            combinations *= domain.size or 0
    if combinations > MOST:
        message = f"these choices have {combinations:,} combinations, and at most {MOST:,} are compared"
        labels = tuple(Label(span) for *_, span in found)
        raise SpecError(Diagnostic("PS0527", message, labels, help="give fewer values to choose from", source=source))
    return tuple(OpenChoice(name, tuple(_values(domain)), span) for name, domain, span in found)


def known_of(spec: syntax.Spec, source: Source, parameters: Mapping[str, object], base: Path | None) -> Environment:
    """The public values of a spec as far as they can be read; what is wrong of them is left to the checks."""
    report, known = Report(source), Environment(files=Reader(base))
    scope = collect(spec, report)
    values, parties = read_parameters(scope, known, {k: v for k, v in parameters.items() if k in scope}, report)
    return replace(known, values=values, parties={name: party.size for name, party in parties.items()})


def _declared(spec: syntax.Spec) -> Iterator[tuple[str, tuple[syntax.Domain, Span]]]:
    """What is chosen, with its domain; `k in 1..20` under background declares it as well."""
    names = {variable.target.name for variable in spec.variables} | {line.target.name for line in spec.parameters}
    for variable in spec.variables:
        if variable.kind is VariableKind.CHOOSE and variable.domain is not None and not variable.target.indices:
            yield variable.target.name, (variable.domain, variable.target.span)
    for statement in spec.background:
        match statement:
            case syntax.Membership(left=syntax.Name(id=name), domain=domain) if name not in names:
                yield name, (domain, statement.left.span)


def _alone(spec: syntax.Spec, declared: Mapping[str, object]) -> bool:
    """Whether the loss is about one number that is chosen and that lines of privacy share, and about nothing else."""
    shared = {name for line in spec.privacy for name in names_used(line.amount)}
    return spec.loss is not None and len(declared) == 1 and set(names_used(spec.loss)) == set(declared) <= shared


def _of_values(domain: Domain) -> bool:
    """Whether a domain is finite, of words or numbers, or of vectors of them."""
    inner = domain.base if isinstance(domain, Power) and len(domain.exponents) == 1 else domain
    return isinstance(inner, FiniteSet | IntegerRange | Grid)


def _values(domain: Domain) -> Iterator[Choice]:
    if isinstance(domain, Power):
        return product(tuple(domain.base.elements()), repeat=prod(domain.exponents))
    return domain.elements()


# --- binding --------------------------------------------------------------------------------------


def picks(spec: syntax.Spec) -> tuple[str, ...]:
    """The choices between components of a spec."""
    parts = {component.name for component in spec.components}
    words = {name: {one.id for one in every(domain, syntax.Name)} for name, (domain, _) in _declared(spec)}
    return tuple(name for name, some in words.items() if some and some <= parts)


def bound(spec: syntax.Spec, values: Values) -> tuple[syntax.Spec, Terms]:
    """The spec with choices bound, and the terms of its loss that are a cost."""
    parts = {component.name for component in spec.components}
    picked = {name: value for name, value in values.items() if isinstance(value, str) and value in parts}
    plain = {name: value for name, value in values.items() if name not in picked}
    public = {line.target.name for line in spec.parameters} | set(values)
    kept, costs = _split(spec.loss, public)
    found = replace(
        spec,
        parameters=(*spec.parameters, *_parameters(spec, plain)),
        components=tuple(_component(part, values) for part in spec.components),
        variables=tuple(v for v in spec.variables if v.target.name not in values),
        background=tuple(
            s
            for s in spec.background
            if not (isinstance(s, syntax.Membership) and isinstance(s.left, syntax.Name) and s.left.id in values)
        ),
        loss=kept,
        options=tuple(_trust(option, values) for option in spec.options),
    )
    if not picked:
        return found, costs

    def word(node: syntax.Node) -> Any:
        match node:
            case syntax.Name(id=name) if name in picked:
                return syntax.String(picked[name], span=node.span)
        return with_children(node, word)

    return _with_parts(found, spec, picked), tuple((sign, word(term)) for sign, term in costs)


def bound_as_written(spec: syntax.Spec, words: Mapping[str, str]) -> syntax.Spec:
    """The spec with those of its choices bound that have a value, as it is written.

    Raises: SpecError if a value cannot be read.
    """
    from privspec.language.parser import parse_expression

    known, values = {name for name, _ in _declared(spec)}, dict[str, Choice]()
    for name, text in words.items():
        match parse_expression(Source(name, text)):
            case syntax.Name(id=word):
                values[name] = word
            case syntax.Vector(items=items):
                values[name] = tuple(_word_or_number(item) for item in items)
            case expr:
                values[name] = _word_or_number(expr)
    return bound(spec, {name: value for name, value in values.items() if name in known})[0]


def picked_as_written(spec: syntax.Spec, words: Mapping[str, str]) -> syntax.Spec:
    """The same of a spec that chooses between components, before those are put together; any other as it is."""
    return bound_as_written(spec, words) if picks(spec) else spec


def _word_or_number(expr: syntax.Expr) -> Symbol:
    if isinstance(expr, syntax.Name):
        return expr.id
    value = evaluate(expr, Environment())
    return value if isinstance(value, Fraction) else str(value)


def _split(loss: syntax.Expr | None, public: set[str]) -> tuple[syntax.Expr | None, Terms]:
    """The terms that are about data, and those about public values only."""
    kept: syntax.Expr | None = None
    costs = []
    for sign, term in () if loss is None else summands(loss):
        averaged = any(every(term, syntax.Over, syntax.Attribute))
        if not averaged and set(names_used(term)) <= public:
            costs.append((sign, term))
        elif kept is None:
            kept = term if sign > 0 else syntax.Negate(term, span=term.span)
        else:
            kept = syntax.Binary("+" if sign > 0 else "-", kept, term, span=kept.span.to(term.span))
    if kept is None and loss is not None:
        kept = syntax.Number(Fraction(0), span=loss.span)
    return (kept, tuple(costs)) if costs else (loss, ())


def _parameters(spec: syntax.Spec, values: Values) -> Iterator[syntax.Parameter]:
    places = dict(_declared(spec))
    for name, value in values.items():
        _, span = places[name]
        yield syntax.Parameter(syntax.Ref(name, span=span, name_span=span), _literal(value, span), span=span)


def _literal(value: Choice, span: Span) -> syntax.Expr:
    match value:
        case tuple():
            return syntax.Vector(tuple(_literal(item, span) for item in value), span=span)
        case str():
            return syntax.String(value, span=span)
    return syntax.Number(value, span=span)


def _component(part: syntax.Component, values: Values) -> syntax.Component:
    """A part whose trust is a choice has the trust that is chosen."""

    def argument(given: syntax.Argument) -> syntax.Argument:
        match given:
            case syntax.Keyword(name="trust", value=syntax.Name(id=name) as word) if name in values:
                return replace(given, value=replace(word, id=value_text(values[name])))
        return given

    return replace(part, call=replace(part.call, arguments=tuple(map(argument, part.call.arguments))))


def _trust(option: syntax.Option, values: Values) -> syntax.Option:
    match option:
        case syntax.Trust(model=syntax.Name(id=name) as word) if name in values:
            return replace(option, model=replace(word, id=value_text(values[name])))
    return option


def trusting(part: Component, values: Values) -> Component:
    """A part whose trust is a choice, in its own file, has the trust that is chosen."""
    stated = part.stated and _trust(part.stated, values)
    return replace(part, stated=stated) if isinstance(stated, syntax.Trust) else part


def _with_parts(found: syntax.Spec, spec: syntax.Spec, picked: Mapping[str, str]) -> syntax.Spec:
    """The component that is chosen stands for the choice; those that could have been and are not used are left out."""

    def change(node: syntax.Node) -> Any:
        match node:
            case syntax.Attribute(base=syntax.Name(id=name) as base) if name in picked:
                return replace(node, base=replace(base, id=picked[name]))
            case syntax.Ref(name=name) if name in picked:
                return replace(node, name=picked[name])
        return with_children(node, change)

    changed = change(found)
    others = {
        word
        for name in picked
        for node in walk(next(domain for choice, (domain, _) in _declared(spec) if choice == name))
        if isinstance(node, syntax.Name) and (word := node.id) != picked[name]
    }
    used = {node.id for node in every(changed, syntax.Name)}
    used |= {node.name for node in every(changed, syntax.Ref) if node.attribute is not None}
    parts = tuple(part for part in changed.components if part.name not in others - used)
    return replace(changed, components=parts)  # type: ignore[no-any-return]


def cost_of(costs: Terms, environment: Environment) -> Fraction:
    """What an alternative costs, exactly.

    Raises: Failure PS0528 for a term without an exact value, and as `evaluate` does.
    """
    total = Fraction(0)
    for sign, term in costs:
        for node in walk(term):
            rounded = isinstance(node, syntax.Norm) or (isinstance(node, syntax.Call) and node.function not in EXACT)
            whole = isinstance(node, syntax.Binary) and node.op == "^"
            power = evaluate(node.right, environment) if whole and isinstance(node, syntax.Binary) else Fraction(1)
            if rounded or not isinstance(power, Fraction) or power.denominator != 1:
                hint = "a cost is made of numbers by + - * /, whole powers and cost(...)"
                raise Failure("PS0528", node.span, "this has no exact value, and a cost must have one", help=hint)
        value = evaluate(term, environment)
        if not isinstance(value, Fraction):
            raise Failure("PS0528", term.span, "a cost is one number")
        total += sign * value
    return total


EXACT = ("cost", "max", "min", "abs", "floor", "ceil", "sum", "total")
"""Functions whose values at exact numbers are exact."""
