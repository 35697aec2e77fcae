"""How statements and their parts are spelt; expressions and domains are in `spelling.py`."""

from __future__ import annotations

from collections.abc import Sequence

from privspec.language import syntax as s
from privspec.language.spelling import listed, spell, within

__all__ = ["spell"]

# --- statements --------------------------------------------------------------------------------


@spell.register
def _(node: s.Ref) -> str:
    attribute = "" if node.attribute is None else f".{node.attribute}"
    indices = f"[{listed(node.indices)}]" if node.indices else ""
    return f"{node.name}{attribute}{indices}"


@spell.register
def _(node: s.Parameter) -> str:
    return f"{spell(node.target)} = {spell(node.value)}"


@spell.register
def _(node: s.Party) -> str:
    return f"{node.name}{within(node.domain)}"


@spell.register
def _(node: s.Component) -> str:
    return f"{node.name} = {spell(node.call)}"


@spell.register
def _(node: s.Variable) -> str:
    value = "" if node.value is None else f" = {spell(node.value)}"
    return f"{node.kind.value} {spell(node.target)}{within(node.domain)}{value}"


@spell.register
def _(node: s.Relation) -> str:
    return f"{spell(node.left)} {node.op} {spell(node.right)}"


@spell.register
def _(node: s.Membership) -> str:
    return f"{spell(node.left)}{within(node.domain)}"


@spell.register
def _(node: s.SensitivityClaim) -> str:
    claim = f"has {node.norm} sensitivity at most {spell(node.amount)} wrt {spell(node.wrt)}"
    return f"{spell(node.subject)} {claim}{_clauses(node.clauses)}"


def _clauses(clauses: Sequence[s.Clause]) -> str:
    return "".join(f", {spell(clause)}" for clause in clauses)


@spell.register
def _(_node: s.Everything) -> str:
    return "everything"


@spell.register
def _(node: s.OneUnit) -> str:
    return f"one {node.name}"


@spell.register
def _(node: s.UpToUnits) -> str:
    return f"up to {spell(node.amount)} {node.name}"


@spell.register
def _(node: s.Replacing) -> str:
    return f"replacing {spell(node.unit)}"


@spell.register
def _(node: s.AddingOrRemoving) -> str:
    return f"adding or removing {spell(node.unit)}"


@spell.register
def _(node: s.Distance) -> str:
    return f"distance {spell(node.metric)}"


@spell.register
def _(node: s.SeenBy) -> str:
    return "seen by " + " and ".join(spell(name) for name in node.observers)


@spell.register
def _(node: s.Refs) -> str:
    return listed(node.items) if len(node.items) == 1 else f"({listed(node.items)})"


@spell.register
def _(node: s.AllOf) -> str:
    return f"all {node.what}"


@spell.register
def _(node: s.Amount) -> str:
    if len(node.items) == 1 and _is_bare(node.items[0]):
        item = node.items[0]
        if isinstance(item, s.Index):  # no operator can begin here, so E[voter] is a name
            return f"{spell(item.base)}[{listed(item.indices)}]"
        return spell(item)
    return f"({listed(node.items)})"


def _is_bare(node: s.Expr) -> bool:
    match node:
        case s.Number() | s.Name() | s.Attribute(base=s.Name()):
            return True
        case s.Index(base=s.Name() | s.Attribute(base=s.Name())):
            return True
        case _:
            return False


@spell.register
def _(node: s.Target) -> str:
    over = "" if node.variable is None else f" for {node.variable}{within(node.domain)}"
    chance = "" if node.probability is None else f" with probability {spell(node.probability)}"
    return f"{spell(node.left)} <= {spell(node.right)}{over}{chance}"


@spell.register
def _(node: s.Requirement) -> str:
    measure = f"{spell(node.amount)}-{node.measure} wrt {spell(node.wrt)}"
    return f"{spell(node.subjects)} {_verb(node.subjects)} {measure}{_clauses(node.clauses)}"


def _verb(subjects: s.Names) -> str:
    return "are" if isinstance(subjects, s.AllOf) else "is"


@spell.register
def _(node: s.Independence) -> str:
    given = "" if node.given is None else f" given {spell(node.given)}"
    value = "" if node.value is None else f" = {spell(node.value)}"
    tolerance = "" if node.tolerance is None else f", up to {spell(node.tolerance)}"
    subjects = f"{spell(node.subjects)} {_verb(node.subjects)}"
    return f"{subjects} independent of {spell(node.of)}{given}{value}{tolerance}"


@spell.register
def _(node: s.Trust) -> str:
    return f"trust {spell(node.model)}"


@spell.register
def _(node: s.NoiseAt) -> str:
    return f"noise at {listed(node.sites)}"


@spell.register
def _(node: s.NoiseFamily) -> str:
    return f"noise family {listed(node.names)}"
