"""Functions that the compiler cannot see into, whose sensitivity a spec asserts: an input is then read through one.

`run` is given the values of the function and nothing of the input; what one unit moves them by is the author's word.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from privspec.core.diagnostics import SpecError
from privspec.language import syntax
from privspec.model.domains import Power, Real
from privspec.model.evaluate import evaluate
from privspec.model.graph import Model, lay_out
from privspec.model.neighbours import Asserted
from privspec.model.requirements import AssertedSensitivity, Curator
from privspec.model.targets import Degree, degree_of, environment

if TYPE_CHECKING:
    from privspec.model.requirements import Requirement


def read_through(model: Model) -> Model:
    """The same with every input of which an asserted function is released read through that function alone.

    Raises: SpecError PS0501 where a line of the spec asks for more than the function says.
    """
    claims: dict[str, list[AssertedSensitivity]] = {}
    for one in model.asserted:
        claims.setdefault(one.wrt, []).append(one)
    used = {claim.subject for some in claims.values() for claim in some} & set(_compared(model))
    for name, some in claims.items():
        own = [claim for claim in some if claim.subject in used]
        if own:
            model = _through(model, name, own)
    return model


def _compared(model: Model) -> Iterator[str]:
    """All that what is released is computed from or compared with."""
    waiting, seen = [node.name for node in model.outputs], set[str]()
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            yield name
            waiting += model.sources.get(name, ())
            waiting += [other for other in model.nodes if other in _names(model, name)]


def _names(model: Model, name: str) -> set[str]:
    from privspec.language.walk import names_used

    return set(names_used(model.targets[name])) if name in model.targets else set()


def _through(model: Model, name: str, claims: list[AssertedSensitivity]) -> Model:
    functions = list(dict.fromkeys(claim.subject for claim in claims))
    claim, node, source = claims[0], model.nodes[functions[0]], model.nodes[name]

    def refused(what: str, help_: str) -> SpecError:
        return SpecError.at(model.source, claim.claim.span, "PS0501", what, help=help_)

    others = [other for other, before in model.sources.items() if name in before and other not in functions]
    if len(functions) > 1 or others:
        known = ", ".join([*functions[1:], *others])
        hint = f"release what is about {known} by another spec, or join the functions into one vector"
        raise refused(f"{name} is read through {functions[0]} alone, and {known} is computed from it as well", hint)
    if not node.type.numeric or not node.type.known:
        raise refused(
            f"the shape of {node.name} does not follow from anything", f"write intermediate {node.name} in real^4"
        )
    if node.definition is not None and degree_of(model, node.name) is Degree.AFFINE:
        hint = "leave this line out: the sensitivity that follows is used"
        raise refused(f"{node.name} is linear in {name}: the compiler sees how far one unit moves it", hint)
    if not isinstance(model.trust, Curator):
        raise refused("a function that is asserted is computed by one keeper", "write `trust curator`")
    domain = node.domain if node.domain is not None else Power(Real(), node.type.shape) if node.type.shape else Real()
    nodes = dict(model.nodes)
    nodes[name] = replace(source, type=node.type, domain=domain, index=None)
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
