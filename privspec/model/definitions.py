"""What each variable is computed from.

Every variable is defined once, not in a circle, and no output is left without a meaning. Of functions that the
compiler cannot see into, a spec asserts the sensitivity, and an input is then read through one: `run` is given the
values of the function and nothing of the input; what one unit moves them by is the author's word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from privspec.core.diagnostics import SpecError
from privspec.core.records import dataclass, field
from privspec.core.spans import Span
from privspec.kernel.trust import CURATOR
from privspec.language import syntax
from privspec.language.walk import Comparison, comparisons, every, names_used, reached, reference, starts_after, uses
from privspec.model.domains import Domain, Interval, Power, Real
from privspec.model.evaluate import evaluate
from privspec.model.graph import Model, lay_out
from privspec.model.library import function_of
from privspec.model.neighbours import Asserted
from privspec.model.parameters import circle, walked
from privspec.model.reports import Report
from privspec.model.requirements import AssertedSensitivity
from privspec.model.scope import Declaration, Scope, undeclared
from privspec.model.targets import Degree, degree_of, environment

if TYPE_CHECKING:
    from privspec.model.requirements import Requirement


@dataclass(frozen=True, slots=True)
class Definition:
    """`name = expr`; `span` is where the name stands on the left."""

    name: str
    expr: syntax.Expr
    span: Span
    index: str | None = None


@dataclass(slots=True)
class Definitions:
    """The statements of the file sorted by what they do."""

    of: dict[str, Definition] = field(default_factory=dict)
    domains: dict[str, syntax.Domain] = field(default_factory=dict)
    models: list[syntax.Relation] = field(default_factory=list)
    constraints: list[syntax.Relation] = field(default_factory=list)
    claims: list[syntax.SensitivityClaim] = field(default_factory=list)
    targets: dict[str, syntax.Expr] = field(default_factory=dict)
    dependencies: dict[str, tuple[str, ...]] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    circular: frozenset[str] = frozenset()
    without: set[str] = field(default_factory=set)
    """Inputs and choices that were given a value, which is told."""


VARIABLES = ("input", "constant", "intermediate", "output", "choose")

REFUSED: Mapping[str, str] = {
    "input": "it is data, which a spec cannot compute",
    "choose": "the solver picks its value",
    "parameter": "its value is given under `parameters:`",
    "constant": "its value is given under `variables:`",
    "party": "it is an index set",
    "component": "it is another spec",
}


def collect_definitions(spec: syntax.Spec, scope: Scope, report: Report) -> Definitions:
    """Sort the statements, find what each output stands for, and an order to compute everything in."""
    found = Definitions()
    for name, declaration in scope.of(*VARIABLES).items():
        variable = declaration.node
        if not isinstance(variable, syntax.Variable):
            continue
        if variable.domain is not None:
            found.domains[name] = variable.domain
        if variable.value is not None:
            if declaration.what in ("input", "choose"):
                message = f"{name} cannot have a value here: {REFUSED[declaration.what]}"
                others, hint = (
                    ((declaration.span, declaration.with_article),),
                    _without_value(declaration, variable, report),
                )
                report.error("PS0214", variable.value.span, message, others=others, help=hint)
                # the one cause is told: an input without a domain is so because its value stands in place of it
                found.without.add(name)
            else:
                found.of[name] = Definition(name, variable.value, declaration.span, declaration.index)
    for statement in spec.background:
        match statement:
            case syntax.Relation(op="="):
                _define(statement, scope, found, report)
            case syntax.Relation(op="~"):
                found.models.append(statement)
            case syntax.Relation():
                found.constraints.append(statement)
            case syntax.SensitivityClaim():
                found.claims.append(statement)
            case syntax.Membership():
                _member(statement, scope, found, report)
    if not undeclared(spec, scope):
        _check_defined(scope, found, report)
    _depend(spec, scope, found, report)
    return found


def _without_value(declaration: Declaration, variable: syntax.Variable, report: Report) -> str:
    """How an input or a choice is declared in place of `name = value`."""
    name, value = declaration.name, variable.value
    if declaration.what == "choose":
        return f"write choose {name} in [0, 10]; a value that is fixed stands under `parameters:`"
    domain = "" if variable.domain is None else report.source.slice(variable.domain.span)
    if isinstance(value, syntax.Call) and value.function in ("csv", "npy") and value.arguments:
        file = report.source.slice(value.arguments[0].span).strip('"')
        domain = domain or "table(age in 0..120, sex in {F, M})"
        return f"write for instance input {name} in {domain}; then run with --input {name}={file}"
    return f"write input {name} in {domain or '[0, 1]^64'}; public values are constants: constant {name} = ..."


def _member(statement: syntax.Membership, scope: Scope, found: Definitions, report: Report) -> None:
    left = statement.left
    if not isinstance(left, syntax.Name):
        report.error("PS0215", left.span, "only a name can be given a domain")
        return
    declaration = scope.get(left.id)
    if declaration is None or declaration.span == left.span:
        return
    if left.id in found.domains or declaration.what not in VARIABLES:
        known = found.domains.get(left.id)
        message = f"{left.id} cannot have a domain" if known is None else f"{left.id} already has a domain"
        place = declaration.span if known is None else known.span
        report.error("PS0211", left.span, message, others=((place, "given here"),))
        return
    found.domains[left.id] = statement.domain


def _define(statement: syntax.Relation, scope: Scope, found: Definitions, report: Report) -> None:
    left = statement.left
    match left:
        case syntax.Name(id=name):
            index: str | None = None
        case syntax.Index(base=syntax.Name(id=name), indices=(syntax.Name(id=index),)) if index in scope.of("party"):
            pass
        case syntax.Index(base=syntax.Name(id=name), indices=indices) if name in scope.of("intermediate", "output"):
            found.without.add(name)
            letters = [index.id if isinstance(index, syntax.Name) else "i" for index in indices]
            hint = f"write {name}[{', '.join(letters)}] = ... for {', '.join(f'{one} in 1..8' for one in letters)}"
            message = f"say what {' and '.join(letters)} run{'s' * (len(letters) == 1)} through, one range lo..hi each"
            report.error("PS0215", left.span, message, help=hint)
            return
        case _ if any(every(left, syntax.Over)) or _is_of_data(statement, scope):
            found.constraints.append(statement)
            return
        case _:
            hint = "write name = expression"
            if isinstance(statement.right, syntax.Name):
                found.without.add(statement.right.id)
                hint = f"write {statement.right.id} = {report.source.slice(left.span)}, with the name on the left"
            report.error("PS0215", left.span, "the left side must be a name, or an average E[...]", help=hint)
            return
    declaration = scope.get(name)
    if declaration is None:
        return
    if declaration.what not in ("intermediate", "output"):
        message = f"{name} cannot be defined here: {REFUSED[declaration.what]}"
        report.error("PS0215", left.span, message, others=((declaration.span, f"{declaration.with_article}"),))
        return
    if index != declaration.index:
        wanted = f"{name}[{declaration.index}]" if declaration.index else name
        message = f"{name} was declared as {wanted}"
        report.error("PS0228", left.span, message, others=declaration.here, help=f"write {wanted} = ...")
    if name in found.of:
        message, others = f"{name} is defined twice", ((found.of[name].span, "first defined here"),)
        report.error("PS0211", left.span, message, label="defined again here", others=others)
        return
    found.of[name] = Definition(name, statement.right, left.span, index)


def _is_of_data(statement: syntax.Relation, scope: Scope) -> bool:
    """Whether it says something about data, as in `sum(x) = 10`; a single name on the left is what is defined."""
    left, right = statement.left, statement.right
    if isinstance(right, syntax.Name) and right.id in scope.of("intermediate", "output"):
        return False  # a definition that is turned round
    base = left.base if isinstance(left, syntax.Index) else None
    entry = isinstance(base, syntax.Name) and base.id not in scope.of("input")
    return any(name in scope.of("input") for name in names_used(left)) and not entry


def _check_defined(scope: Scope, found: Definitions, report: Report) -> None:
    claimed = {name for claim in found.claims for name in names_used(claim.subject)}
    for name, declaration in scope.of("intermediate").items():
        if name not in found.of and name not in claimed and name not in found.without:
            written = f"{name}[{declaration.index}]" if declaration.index else name
            message = f"nothing says what {name} is computed from"
            report.error("PS0212", declaration.span, message, help=f"add `{written} = ...` under background")
    for name, declaration in scope.of("input").items():
        if name not in found.domains and name not in found.without and not report.marred(declaration.span):
            hint = f"as in `input {name} in [0, 1]^64`; values outside are clipped"
            report.error("PS0214", declaration.span, f"the input {name} needs a domain", help=hint)
    for name, declaration in scope.of("choose").items():
        if name not in found.domains and name not in found.without:
            report.error(
                "PS0216", declaration.span, f"say what {name} is chosen from", help=f"as in `choose {name} in [0, 10]`"
            )


# --- dependencies ---------------------------------------------------------------------------------


def _depend(spec: syntax.Spec, scope: Scope, found: Definitions, report: Report) -> None:
    variables = scope.of(*VARIABLES)
    graph = {
        name: tuple(n for n in names_used(found.of[name].expr) if n in variables) if name in found.of else ()
        for name in variables
    }
    circular: set[str] = set()
    for cycle in walked(graph)[1]:
        circular.update(cycle)
        spans = [found.of[name].span for name in cycle if name in found.of]
        others = tuple((span, "part of the circle") for span in spans[1:])
        hint = "an output that must obey an equation is written E[z | x] = ..."
        report.error("PS0210", spans[0], circle(cycle), others=others, help=hint)
    found.circular = frozenset(circular)
    for name in scope.of("output"):
        if name in found.of:
            continue
        for expr in _meanings(spec, name, scope, found):
            needs = tuple(n for n in names_used(expr) if n in variables)
            if name not in reached(needs, lambda n: graph.get(n, ())):
                found.targets[name] = expr
                graph[name] = needs
                break
    found.dependencies = graph
    found.order = walked(graph)[0]
    _check_outputs(spec, scope, found, report)


def _meanings(spec: syntax.Spec, name: str, scope: Scope, found: Definitions) -> Iterator[syntax.Expr]:
    """What an output without a definition may stand for: what loss and accuracy compare it with, or its mean."""
    places: list[syntax.Expr] = [] if spec.loss is None else [spec.loss]
    places += [target.left for target in spec.accuracy]
    outputs = scope.of("output")
    later: list[syntax.Expr] = []
    spoken = [c for place in places for c in comparisons(place, outputs, lambda call: function_of(call).same_type)]
    spoken = [c for c in spoken if reference(c.mine) == name]
    entries = [whole_of(c) for c in spoken if not isinstance(c.mine, syntax.Name)]
    # a term of a `for` differs from term to term, so it is not what the output stands for
    fixed = _symbols(spec, scope).union(scope.names).difference(scope.of("party"))
    for comparison in spoken:
        meaning = whole_of(comparison)
        if not isinstance(comparison.mine, syntax.Name) and any(other != meaning for other in entries):
            continue  # its entries stand for different things
        used = () if meaning is None else names_used(meaning)
        sets = {each.domain.id for each in every(meaning, syntax.Comprehension) if isinstance(each.domain, syntax.Name)}
        if meaning is not None and fixed.union(sets).issuperset(used):
            if any(name in outputs for name in used):
                later.append(meaning)
            else:
                yield meaning
    # what is said of the output together with others counts where nothing is said of it alone
    yield from later
    for constraint in found.constraints:
        match constraint:
            case syntax.Relation(op="=", left=syntax.Over(operator="E", body=syntax.Name(id=body))) if body == name:
                yield constraint.right


def _symbols(spec: syntax.Spec, scope: Scope) -> frozenset[str]:
    """Bare words of sets in loss and accuracy, as the columns in `marginals(people, {sex})`: they name nothing else."""
    places = (spec.loss, *(target.left for target in spec.accuracy))
    items = (item for place in places for listed in every(place, syntax.SetOf) for item in listed.items)
    words = {item.id for item in items if isinstance(item, syntax.Name)}
    running = {each.variable for place in places for each in every(place, syntax.Comprehension)}
    return frozenset(words - running - {target.variable for target in spec.accuracy} - set(scope.names))


def whole_of(comparison: Comparison) -> syntax.Expr | None:
    """`y` from `O - y`, and from `O[j] - y[j]`; what the terms are from `O[j] - e for j in 1..8`, else None."""
    match comparison.mine, comparison.other:
        case syntax.Index(indices=left), syntax.Index(base=base, indices=right) if left == right:
            return base
        case syntax.Slice(places=left), syntax.Slice(base=base, places=right) if left == right:
            return base
        case syntax.Index(indices=left), other if comparison.loops:
            loops = comparison.loops[-len(left) :]
            if [getattr(place, "id", "") for place in left] != [loop.variable for loop in loops]:
                return None
            for loop in reversed(loops):
                if isinstance(loop.domain, syntax.SetOf) or starts_after(loop.domain):
                    return None
                terms = syntax.Comprehension(other, loop.variable, loop.domain, span=other.span)
                other = syntax.Each(terms, span=other.span)
            return other
        case syntax.Name(), _:
            return comparison.other
        case _:
            return None


def _check_outputs(spec: syntax.Spec, scope: Scope, found: Definitions, report: Report) -> None:
    """An output that no loss, target or relation speaks of could be anything."""
    places: list[syntax.Node] = [] if spec.loss is None else [spec.loss]
    places += [*spec.accuracy, *found.constraints]
    spoken = reached((n for place in places for n in names_used(place)), lambda n: found.dependencies.get(n, ()))
    if any(name not in scope for name in spoken):
        return  # one of them may be meant
    for name, declaration in scope.of("output").items():
        if name in found.of or name in found.targets or name in spoken:
            continue
        if any(uses(claim.subject, name) for claim in found.claims) or (spec.loss is None and name in found.domains):
            continue
        hint = f"compare it in the loss, as in E[ ||{name} - y||^2 ], or define it with `=`"
        report.error("PS0213", declaration.span, f"nothing says what {name} should be", help=hint)


# --- functions that the compiler cannot see into --------------------------------------------------


def read_through(model: Model) -> Model:
    """The same with every input of which an asserted function is released read through that function alone.

    Raises: SpecError PS0501 where a line of the spec asks for more than the function says.
    """
    claims: dict[str, list[AssertedSensitivity]] = {}
    for one in model.asserted:
        claims.setdefault(one.wrt, []).append(one)
    used = {claim.subject for some in claims.values() for claim in some} & set(compared(model))
    for name, some in claims.items():
        own = [claim for claim in some if claim.subject in used]
        if own:
            model = _through(model, name, own)
    return model


def compared(model: Model) -> dict[str, None]:
    """All that what is released is computed from or compared with."""

    def behind(name: str) -> Iterator[str]:
        yield from model.sources.get(name, ())
        yield from names_used(model.targets[name]) if name in model.targets else ()

    return reached((node.name for node in model.outputs), behind)


def _through(model: Model, name: str, claims: list[AssertedSensitivity]) -> Model:
    functions = list(dict.fromkeys(claim.subject for claim in claims))
    claim, node, source = claims[0], model.nodes[functions[0]], model.nodes[name]

    def refused(what: str, help_: str) -> SpecError:
        return SpecError.at(model.source, claim.claim.span, "PS0501", what, help=help_)

    others = [other for other, before in model.sources.items() if name in before and other not in functions]
    if len(functions) > 1 or others:
        known = ", ".join([*functions[1:], *others])
        hint = (
            f"release what is about {known} by another spec, on the same ledger, or join the functions into one vector"
        )
        raise refused(f"{name} is read through {functions[0]} alone, and {known} is computed from it as well", hint)
    if not node.type.numeric or not node.type.known:
        raise refused(
            f"the shape of {node.name} does not follow from anything", f"write intermediate {node.name} in real^4"
        )
    if node.definition is not None and degree_of(model, node.name) is Degree.AFFINE:
        hint = "leave this line out: the sensitivity that follows is used"
        raise refused(f"{node.name} is linear in {name}: the compiler sees how far one unit moves it", hint)
    if not model.trust.central:
        raise refused("a function that is asserted is computed by one keeper", f"write `{CURATOR.written}`")
    domain = node.domain if node.domain is not None else Power(Real(), node.type.shape) if node.type.shape else Real()
    nodes = dict(model.nodes)
    nodes[name] = replace(source, type=node.type, domain=_anywhere(domain), index=None)
    nodes[node.name] = replace(node, definition=syntax.Name(name, span=node.span), secret=True)
    lines = tuple(_line(model, line, name, claims) if name in line.wrt else line for line in model.requirements)
    return replace(
        model,
        nodes=nodes,
        blocks=lay_out(nodes, model.source),
        edges=(*model.edges, *(() if (name, node.name) in model.edges else ((name, node.name),))),
        requirements=lines,
        through={**model.through, name: node.name},
    )


def _anywhere(domain: Domain) -> Domain:
    """With all numbers between the ends: what is asserted is about values as they are, between steps too."""
    if isinstance(domain, Power):
        return replace(domain, base=_anywhere(domain.base))
    return domain if domain.spacing is None else Interval(*domain.bounds)


def _line(model: Model, line: Requirement, name: str, claims: list[AssertedSensitivity]) -> Requirement:
    """A line about an input, whose unit is one that the spec asserts of its function."""
    claim = next((one for one in claims if one.neighbours == line.neighbours), None)
    if claim is None or line.wrt != (name,):
        told = " and ".join(one.neighbours.describe() for one in claims)
        message = f"the sensitivity of {claims[0].subject} is asserted for {told} of {name}, and of nothing else"
        hint = f"write this line wrt {name}, {claims[0].neighbours.describe()}, or assert what holds for its own unit"
        raise SpecError.at(model.source, line.span, "PS0501", message, help=hint)
    amount = evaluate(claim.claim.amount, environment(model))
    assert isinstance(amount, Fraction)
    found = Asserted(
        line.neighbours.group,
        adding=line.neighbours.adding,
        inner=line.neighbours,
        function=claim.subject,
        norm=claim.claim.norm,
        amount=amount,
        line=claim.line,
    )
    return replace(line, neighbours=found)
