"""Who sees which outputs, and what of an input no line bounds for them.

A line speaks of the outputs that it names, together. Whoever sees more than any one line names learns more than any
line says: for each input and observer this module finds these gaps, and in which units the input may move there.

What no line says: for each input and observer, outputs that no line names together or at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Protocol

from privspec.core.records import dataclass
from privspec.kernel.trust import NOBODY
from privspec.language.syntax import VariableKind
from privspec.language.walk import reached
from privspec.model.graph import Model
from privspec.model.neighbours import (
    NeighbourRelation,
    ReplacingEverything,
    ReplacingOneOf,
    ReplacingVoter,
    WholePerson,
    default_relation,
)
from privspec.model.reports import Report, listing
from privspec.model.requirements import Requirement
from privspec.model.spaces import looked_at
from privspec.model.worlds import finite

ANYONE = "anyone"


@dataclass(frozen=True, slots=True)
class Observer:
    """Somebody (or a coalition), and all outputs that they see, in order of declaration."""

    name: str
    outputs: tuple[str, ...]


class HasRequirement(Protocol):
    """A claim about inputs, by the number of its line; -1 for none."""

    @property
    def requirement(self) -> int: ...

    @property
    def wrt(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True)
class Unit:
    """What may move: one unit of these inputs. `requirement` is the first line that says so, -1 for the default."""

    wrt: tuple[str, ...]
    relation: NeighbourRelation
    requirement: int = -1


@dataclass(frozen=True, slots=True)
class Look:
    """An input and an observer: the outputs that they see and that depend on it.

    `unnamed` are those that no line names for this input, `joined` the lines that name all of them for it.
    """

    input: str
    observer: Observer
    outputs: tuple[str, ...]
    unnamed: tuple[str, ...]
    joined: tuple[int, ...]


def observers(model: Model) -> tuple[Observer, ...]:
    """All who see something: what anyone sees, everybody sees.

    Outputs of lines without an observer, and outputs that no line names, are seen by anyone. Under `trust nobody` all
    messages are seen by all, under `trust secure_sum` all sums. Observers who see the same are one.
    """
    order = [node.name for node in model.outputs]
    named: dict[tuple[str, ...], set[str]] = {}
    for requirement in model.requirements:
        named.setdefault(requirement.observers, set()).update(requirement.outputs)
    everywhere = named.pop((ANYONE,), set()) | set(order).difference(*(r.outputs for r in model.requirements))
    everywhere |= {name for name in order if model.trust.of(name).public}
    found: dict[tuple[str, ...], list[str]] = {}
    if everywhere:
        found[_sorted(everywhere, order)] = [ANYONE]
    for who, outputs in named.items():
        members = [held for other, held in named.items() if set(other) <= set(who)]
        seen = _sorted(everywhere.union(outputs, *members), order)
        found.setdefault(seen, []).append(listing(who))
    return tuple(Observer(ANYONE if ANYONE in who else listing(who), seen) for seen, who in found.items())


def _sorted(names: Iterable[str], order: Sequence[str]) -> tuple[str, ...]:
    held = set(names)
    return tuple(name for name in order if name in held)


def looks(model: Model) -> tuple[Look, ...]:
    """Every input and observer."""
    seen = observers(model)
    behind = {name: inputs_behind(model, name) for observer in seen for name in observer.outputs}
    found = []
    for block in model.blocks:
        lines = {i: r for i, r in enumerate(model.requirements) if block.name in r.bounded}
        for observer in seen:
            outputs = tuple(name for name in observer.outputs if block.name in behind[name])
            named = {name for line in lines.values() for name in outputs if names_all(model, line, (name,))}
            unnamed = tuple(name for name in outputs if name not in named)
            joined = tuple(i for i, line in lines.items() if names_all(model, line, outputs))
            found.append(Look(block.name, observer, outputs, unnamed, joined))
    return tuple(found)


def exposures(model: Model) -> tuple[Look, ...]:
    """For each input and observer: the outputs that depend on it, where no line names all that they see of it."""
    return tuple(look for look in looks(model) if look.outputs and not look.joined)


def units(model: Model, name: str) -> tuple[Unit, ...]:
    """The units in which an input may move: those of the lines that name it, else the default of the language.

    What one person holds in several inputs, and everything, moves in all inputs of the line; an entry or a record is
    one of this input.
    """
    found: dict[tuple[tuple[str, ...], str], Unit] = {}
    for index, line in enumerate(model.requirements):
        if name in line.bounded:
            wrt = line.wrt if _is_joint(line) else (name,)
            own = line.neighbours
            relation = own.of(model.block(name)) if isinstance(own, ReplacingOneOf) else own
            found.setdefault((wrt, relation.describe()), Unit(wrt, relation, index))
    return tuple(found.values()) or (Unit((name,), _default(model, name)),)


@dataclass(frozen=True, slots=True)
class Together:
    """Inputs that one person may be in, and an observer of outputs from several of them that no line joins.

    `units`: what may move of that person, all at once: one unit for inputs that a line could name together.
    """

    observer: Observer
    inputs: tuple[str, ...]
    units: tuple[Unit, ...]
    lines: tuple[int, ...]

    @property
    def neighbours(self) -> str:
        """In the words of a line, or of several of them."""
        if len(self.units) == 1:
            return self.units[0].relation.describe()
        verbs = dict.fromkeys("adding or removing" if one.relation.adding else "replacing" for one in self.units)
        names = dict.fromkeys(one.relation.unit_name for one in self.units)
        return f"{' or '.join(verbs)} one {' or '.join(names)} in {listing(self.inputs)} at once"


def together(model: Model) -> tuple[Together, ...]:
    """What one person may have in several inputs of people, wherever no line hides all of it from an observer.

    Any two inputs may be of the same people unless a line says otherwise: people are told apart within one input only.
    """
    found = list[Together]()
    of_people = {block.name: own for block in model.blocks if (own := _of_one_person(model, block.name)) is not None}
    sets = {frozenset(of_people)}
    for a, b in (pair for one in model.different for pair in combinations(one.names, 2)):
        split = {one - {name} for one in sets for name in ((a, b) if {a, b} <= one else ("",))}
        sets = {one for one in split if not any(one < other for other in split)}
    for names in sorted([name for name in of_people if name in one] for one in sets):
        for observer in observers(model):
            behind = {name: inputs_behind(model, name) for name in observer.outputs}
            inputs = tuple(name for name in names if any(name in some for some in behind.values()))
            seen = tuple(name for name, some in behind.items() if some & {*inputs})
            joint = (line for line in model.requirements if _is_joint(line) and {*inputs} <= {*line.wrt})
            if len(inputs) > 1 and not any(names_all(model, line, seen) for line in joint):
                units_of_inputs = [of_people[name] for name in inputs]
                alike = dict.fromkeys(unit.relation for unit in units_of_inputs)
                moved = tuple(Unit(tuple(n for n in inputs if of_people[n].relation == r), r) for r in alike)
                found.append(Together(observer, inputs, moved, tuple(unit.requirement for unit in units_of_inputs)))
    return tuple(dict.fromkeys(found))


def _is_joint(line: Requirement) -> bool:
    """Whether all that one person has in the inputs of a line moves at once."""
    return isinstance(line.neighbours, ReplacingVoter | ReplacingEverything) or line.neighbours.by_id


def _of_one_person(model: Model, name: str) -> Unit | None:
    """What one person has in an input, as the first line about people says; None where none does."""
    some = (one for one in units(model, name) if one.requirement >= 0)
    return next(
        (one for one in some if isinstance(one.relation, ReplacingVoter | WholePerson) or one.relation.by_id), None
    )


def unit_of(claim: HasRequirement, model: Model | None) -> Unit | None:
    """The unit of the line that a claim is for; the default of an input that no line names; None without a model."""
    if model is None:
        return None
    if 0 <= claim.requirement < len(model.requirements):
        line = model.requirements[claim.requirement]
        return Unit(line.wrt, line.neighbours, claim.requirement)
    known = {block.name for block in model.blocks}
    return Unit(claim.wrt, _default(model, claim.wrt[0])) if set(claim.wrt) <= known and claim.wrt else None


def how_many(model: Model, unit: Unit | None) -> int | None:
    """How many units there are of these inputs; None where their number is secret or has no limit."""
    if unit is None or unit.relation.adding:
        return None
    blocks = [block for block in model.blocks if block.name in unit.wrt]
    if any(block.layout == "cells" for block in blocks):
        return None
    return max((block.size // max(unit.relation.length(block), 1) for block in blocks), default=None)


def _default(model: Model, name: str) -> NeighbourRelation:
    block = model.block(name)
    return default_relation(block, block.index)


def inputs_behind(model: Model, output: str) -> frozenset[str]:
    """The inputs that an output depends on; all of them where nothing says which.

    Where all is finite, outputs are drawn together from all that any line looks at, fairness lines too.
    """
    inputs = frozenset(block.name for block in model.blocks)
    node = model.nodes[output]
    found = inputs.intersection(_before(model, (output,)))
    if node.definition is None and finite(model):
        found |= inputs.intersection(_before(model, looked_at(model)))
    free = node.definition is None and output not in model.targets
    return inputs if free and not found else found


def _before(model: Model, names: Iterable[str]) -> dict[str, None]:
    """Values, and all that they are computed from."""
    return reached(names, lambda name: model.sources.get(name, ()))


def names_all(model: Model, line: Requirement, outputs: Iterable[str]) -> bool:
    """Whether a line is about these outputs, or all that they are computed from: where all see all, it is about all."""
    exposed = model.exposed(line)
    return all(_named(model, exposed, name) for name in outputs)


def _named(model: Model, named: tuple[str, ...], name: str) -> bool:
    node = model.nodes.get(name)
    if name in named:
        return True
    if node is None or node.definition is None or node.kind is VariableKind.INPUT:
        return False
    return all(_named(model, named, source) for source in _drawn(model, model.sources.get(name, ())))


def _drawn(model: Model, names: Iterable[str]) -> Iterator[str]:
    """Those that are not public."""
    public = (VariableKind.CONSTANT, VariableKind.CHOOSE)
    return (name for name in names if name in model.nodes and model.nodes[name].kind not in public)


def warn_about_gaps(model: Model, report: Report) -> None:
    """Inputs that no line names, outputs that no line names for an input, and outputs that no line joins."""
    named = {name for line in model.requirements for name in line.outputs}
    for node in model.outputs:
        if node.name not in named and not inputs_behind(model, node.name):
            hint = f"add a line under privacy, or declare {node.name} as a constant: it depends on no input"
            report.warn("PS0315", node.span, f"no requirement names {node.name}", help=hint)
    for found in exposures(model):
        if not any(found.input in line.bounded for line in model.requirements):
            _no_line(model, found, report)
        elif found.unnamed:
            _unnamed(model, found, report)
        else:
            _not_joined(model, found, report)


def warn_about_people(model: Model, report: Report) -> None:
    """Somebody may be in several inputs, of which each line hides one."""
    for one in together(model):
        if any({*one.inputs} <= {*said.names} for said in model.same):
            continue
        *others, last = dict.fromkeys(model.requirements[line].span for line in one.lines)
        listed, sets = ", ".join(one.inputs), [model.block(name).index for name in one.inputs]
        message = (
            f"the same person may be in {listing(one.inputs)}, and no line hides all that {one.observer.name} may see"
        )
        hint = f"hide all of it by one line: ({', '.join(one.observer.outputs)}) wrt ({listed})"
        if not any(own and own in sets[:k] for k, own in enumerate(sets)):
            hint += f"; or say under options what is so: `same people: {listed}`, or `different people: {listed}`"
        report.warn("PS0344", last, message, others=tuple((span, "hides one of them") for span in others), help=hint)


def warn_about_whole_tables(model: Model, report: Report) -> None:
    """Tables of many people that belong to no party, where nobody is trusted: somebody holds all of them."""
    for node in model.inputs:
        block = model.block(node.name)
        lines = (line.neighbours for line in model.requirements if node.name in line.wrt)
        of_people = any(one.by_id or one.unit == "record" for one in lines)
        if block.layout == "cells" and node.index is None and of_people and model.trust.alone:
            columns = [(name, domain.describe()) for name, domain in block.schema or ()]
            message = f"{node.name} belongs to no party: whoever holds all of it sees every record, and adds the noise"
            hint = f"leave `{NOBODY.written}` out, or where each person reports alone write "
            hint += "`parties: person in 1..100`, "
            hint += f"`input {columns[0][0]}[person] in {columns[0][1]}` and histogram({columns[0][0]})"
            report.warn("PS0343", node.span, message, label="held by one", help=hint)


def _see(found: Look) -> str:
    verb = "sees" if found.observer.name == ANYONE else "see"
    return f"{found.observer.name} {verb}"


def _no_line(model: Model, found: Look, report: Report) -> None:
    span = model.block(found.input).span
    message = f"no requirement protects the input {found.input}, and {_see(found)} {listing(found.outputs)}"
    hint = f"add `wrt {found.input}` to a line, or declare it as a constant if it is public"
    report.warn("PS0314", span, message, help=hint)


def _unnamed(model: Model, found: Look, report: Report) -> None:
    for name in found.unnamed:
        span = model.nodes[name].span
        message = f"no requirement protects {found.input} in {name}, which {_see(found)}: it may reveal anything"
        hint = f"add a line under privacy: {_together(found)} is ... wrt {found.input}"
        report.warn("PS0315", span, message, help=hint)


def _not_joined(model: Model, found: Look, report: Report) -> None:
    about = [line for line in model.requirements if found.input in line.bounded]
    lines = [line for line in about if set(found.outputs) & set(model.exposed(line))]
    spans = list(dict.fromkeys(line.span for line in lines))
    report.warn(
        "PS0313",
        spans[-1],
        f"{_see(found)} {listing(found.outputs)} together, and no line names them all wrt {found.input}",
        others=tuple((span, "also seen") for span in spans[:-1]),
        help=f"add a line: {_together(found)} is ... wrt {found.input}",
        notes=("each line holds for its own outputs; the plan states what they reveal together",),
    )


def _together(found: Look) -> str:
    return found.outputs[0] if len(found.outputs) == 1 else f"({', '.join(found.outputs)})"
