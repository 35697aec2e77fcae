"""What the lines of a spec look at: which secret values, and whether at the order of the records of an input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from privspec.language import syntax
from privspec.language.walk import children, names_used
from privspec.model.distances import takes_distance
from privspec.model.graph import Model
from privspec.model.library import library
from privspec.model.neighbours import ReplacingOneOf, ReplacingVoter
from privspec.model.requirements import Requirement


def expressions(model: Model) -> Iterator[syntax.Node]:
    """Everything that the mechanism is judged by: loss, accuracy, conditions."""
    if model.loss is not None:
        yield model.loss
    for target in model.accuracy:
        yield target.target
    for constraint in model.constraints:
        yield constraint.relation


def looked_at(model: Model) -> tuple[str, ...]:
    """Secret values that these lines refer to, also by way of values computed from outputs, in graph order."""
    waiting = [name for expr in expressions(model) for name in names_used(expr)]
    for line in model.fairness:
        names = line.wrt if isinstance(line, Requirement) else (line.of, line.given)
        waiting += [name for name in names if name is not None]
    found: set[str] = set()
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        node = model.nodes.get(name)
        if node is None or name in seen:
            continue
        seen.add(name)
        if node.secret and not _drawn(model, name):
            found.add(name)
        elif node.definition is not None:
            waiting += names_used(node.definition)
    return tuple(name for name in model.order if name in found)


def _drawn(model: Model, name: str) -> bool:
    """Whether a value depends on an output or a choice."""
    kinds = (syntax.VariableKind.OUTPUT, syntax.VariableKind.CHOOSE)
    waiting, seen = [name], set()
    while waiting:
        current = waiting.pop()
        node = model.nodes.get(current)
        if node is None or current in seen:
            continue
        seen.add(current)
        if node.kind in kinds:
            return True
        if node.definition is not None:
            waiting += names_used(node.definition)
    return False


# --- the order of records -------------------------------------------------------------------------

_NONE: frozenset[str] = frozenset()


def order_matters(model: Model, name: str) -> bool:
    """Whether anything looks at the order of the records of an input.

    `f(name)` and `f(e for voter)` do not where f is symmetric and e uses only `name[voter]` of what belongs to the
    voter. Distances look at it, and so do joint laws and a line about all that one person holds in several inputs.
    """
    if any(getattr(line, "of", None) == name or getattr(line, "given", None) == name for line in model.fairness):
        return True
    if any(name in data.joint for data in model.models):
        return True
    for line in (*model.requirements, *model.fairness):
        if isinstance(line, Requirement) and name in line.wrt:
            joined = isinstance(line.neighbours, ReplacingVoter | ReplacingOneOf) and len(line.wrt) > 1
            if joined or takes_distance(line):
                return True
    definitions = [node.definition for node in model.nodes.values() if node.definition is not None]
    looks = _Looks(name, model.nodes[name].index)
    return any(looks.inside(expr) for expr in (*expressions(model), *definitions))


@dataclass(frozen=True, slots=True)
class _Looks:
    """Looks for uses of an input that tell its records apart; `party` its index set."""

    name: str
    party: str | None

    def inside(self, node: syntax.Node, members: frozenset[str] = _NONE) -> bool:
        """Whether there is one; `members` are variables that run through the whole index set around the node."""
        match node:
            case syntax.Name(id=found):
                return found == self.name or found in members
            case syntax.Index(base=syntax.Name(id=base), indices=(syntax.Name(id=member), *others)) if (
                base == self.name and member in members
            ):
                return any(self.inside(other, members) for other in others)
            case syntax.Call(function=function, arguments=(first, *others)) if _symmetric(function):
                whole = [a for a in (first, *others) if isinstance(a, syntax.Name) and a.id == self.name]
                if whole:
                    return any(self.inside(a, members) for a in (first, *others) if a not in whole)
                if isinstance(first, syntax.Comprehension) and self._whole(first) and not others:
                    return self.inside(first.body, members | {first.variable})
        return any(self.inside(child, members) for child in children(node))

    def _whole(self, each: syntax.Comprehension) -> bool:
        """Whether its variable runs through the whole index set of the input."""
        if self.party is None:
            return False
        match each.domain:
            case None:
                return each.variable == self.party
            case syntax.Name(id=domain):
                return domain == self.party
        return False


def _symmetric(function: str) -> bool:
    known = library().get(function)
    return known is not None and known.symmetric
