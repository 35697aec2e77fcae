"""A public value that is drawn from the data first, as in `choose hi in {10, 100} from median(t.pay), spends 1`.

It is an output, and what follows is another spec for each of its values, of which the one is carried out whose value
was drawn. So whoever writes it could have written as many specs, and a selection that is paid for first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeGuard

from privspec.core.diagnostics import SpecError
from privspec.core.records import replace
from privspec.core.spans import Source
from privspec.language import syntax
from privspec.language.syntax import VariableKind
from privspec.language.walk import names_used, reached, with_children
from privspec.model.designs import known_of, open_choices
from privspec.model.evaluate import evaluate
from privspec.model.graph import Drawn, Model
from privspec.model.reports import Failure, listing
from privspec.model.values import show

MOST = 32
"""Values to draw from: each has a plan of its own."""
SOUGHT = ("quantile", "median")
"""What is sought by its rank, as a bound that records do not exceed."""
HINT = "as in choose hi in {1000, 10000} from quantile(people.pay, 0.95), spends 0.1"


def drawn_model(
    spec: syntax.Spec,
    source: Source,
    parameters: Mapping[str, object],
    base: Path | None,
    make: Callable[[syntax.Spec], Model],
) -> Model:
    """The spec at the largest value, which takes the widest data, with those at all others.

    Raises: SpecError with what is wrong of the spec at a value, saying of which; PS0501 for more than one such value.
    """
    first, *others = (variable for variable in spec.variables if variable.drawn is not None)
    drawn, name = first.drawn, first.target.name
    assert drawn is not None
    plain = replace(
        spec, variables=tuple(replace(variable, drawn=None) for variable in spec.variables if variable not in others)
    )
    choices = {} if others else {one.name: one for one in open_choices(plain, source, parameters, base)}
    values = tuple(sorted(one for one in choices[name].values if isinstance(one, Fraction))) if name in choices else ()
    try:
        if name in parameters:
            text = f"{name} is drawn from the data, and nobody sets it"
            raise Failure(
                "PS0250", first.span, text, help=f"give {name} a value under `parameters:` to leave out the draw"
            )
        if others or set(choices) > {name}:
            span = others[0].span if others else next(one.span for one in choices.values() if one.name != name)
            text = "solve cannot draw a value from the data where other values are open"
            raise Failure("PS0501", span, text, help="give the others a value under `parameters:`")
        if first.kind is not VariableKind.CHOOSE or first.target.indices or first.value is not None:
            raise Failure("PS0216", first.span, f"{name} is no value that is chosen", help=HINT)
        apart = len({float(value) for value in values}) == len(choices[name].values) if values else False
        if not apart or not 2 <= len(values) <= MOST:
            raise Failure("PS0216", first.span, f"{name} is one of 2 to {MOST} numbers", help=HINT)
        if not _of_column(drawn.sought):
            text = f"{name} is drawn near a {listing(SOUGHT, 'or')} of a column"
            raise Failure("PS0216", drawn.sought.span, text, help=HINT)
        epsilon = evaluate(drawn.epsilon, known_of(plain, source, parameters, base))
        if not isinstance(epsilon, Fraction) or epsilon <= 0:
            raise Failure("PS0216", drawn.epsilon.span, f"what {name} spends is an epsilon above 0", help=HINT)
    except Failure as failure:
        raise failure.of_spec(source) from failure
    models = tuple(_said_of(name, value, make, bound(spec, first, values, value)) for value in values)
    for lines in zip(*(model.requirements for model in models), strict=True):
        if len({line.neighbours.describe() for line in lines}) > 1:
            text = f"solve draws no {name} on which it depends what one person may change"
            hint = f"count by person, as in person.few = min(person.visits, {name}) with person = persons(visits)"
            raise SpecError.at(source, lines[0].span, "PS0501", text, help=hint)
    return replace(models[-1], drawn=Drawn(name, values, epsilon, models, spec.loss, first.target.span))


def _of_column(sought: syntax.Expr) -> bool:
    """Whether it is about the values of a column, by their rank or by how many records have each."""
    match sought:
        case syntax.Call(function=name, arguments=(syntax.Attribute(), *_)):
            return name in SOUGHT
    return False


def _said_of(name: str, value: Fraction, make: Callable[[syntax.Spec], Model], spec: syntax.Spec) -> Model:
    try:
        return make(spec)
    except SpecError as error:
        note = f"said of the spec where {name} is {show(value)}"
        raise SpecError([replace(one, notes=(*one.notes, note)) for one in error.diagnostics]) from error


def bound(spec: syntax.Spec, variable: syntax.Variable, values: tuple[Fraction, ...], value: Fraction) -> syntax.Spec:
    """The spec in which what is drawn is an output among others, and `value` wherever it is used."""
    name, drawn, span = variable.target.name, variable.drawn, variable.span
    assert drawn is not None
    made = {one.left.id: one.right for one in spec.background if _defines(one)}
    tables = set(reached(names_used(drawn.sought), lambda one: names_used(made[one]) if one in made else ()))

    def change(node: syntax.Node) -> Any:
        if node is variable:
            numbers = tuple(syntax.Number(one, span=span) for one in values)
            domain = syntax.SetOf(numbers, span=span)
            return replace(variable, kind=VariableKind.OUTPUT, domain=domain, drawn=None)
        match node:
            case syntax.Name(id=word) if word == name:
                return syntax.Number(value, span=node.span)
        found: Any = with_children(node, change)
        return _seen(found, variable.target, tables) if isinstance(node, syntax.Requirement) else found

    found = change(spec)
    asked = (syntax.Name(name, span=span), drawn.sought)
    error = syntax.Over("worst", syntax.Call("bound_error", asked, span=span), span=span)
    loss = error if found.loss is None else syntax.Binary("+", found.loss, error, span=found.loss.span)
    whole: syntax.Spec = replace(found, loss=loss)
    return whole


def _defines(line: syntax.BackgroundStatement) -> TypeGuard[Any]:
    """Whether it says what a name stands for, such as a table of persons."""
    return isinstance(line, syntax.Relation) and line.op == "=" and isinstance(line.left, syntax.Name)


def _seen(line: syntax.Requirement, drawn: syntax.Ref, tables: set[str]) -> syntax.Requirement:
    """A line about the data that a value is drawn from is about that value too: whoever sees what follows sees it."""
    about = isinstance(line.wrt, syntax.AllOf) or bool(tables & {*_names(line.wrt)})
    if not about or not isinstance(line.subjects, syntax.Refs) or drawn.name in _names(line.subjects):
        return line
    return replace(line, subjects=replace(line.subjects, items=(drawn, *line.subjects.items)))


def _names(names: syntax.Names) -> Iterator[str]:
    if isinstance(names, syntax.Refs):
        yield from (one.name for one in names.items)
