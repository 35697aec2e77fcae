"""The graph of a model in words: what is secret, what is computed, what is released, and to whom."""

from __future__ import annotations

from collections.abc import Iterator

from privspec.language.syntax import VariableKind
from privspec.model.alternatives import value_text
from privspec.model.domains import Laws, Tables
from privspec.model.graph import GraphNode, Model, once
from privspec.model.parameters import parameter_words
from privspec.model.reports import listing
from privspec.model.requirements import Requirement
from privspec.model.targets import Degree, degree_of, linear_map
from privspec.model.values import Array, show


def describe_graph(model: Model) -> str:
    """Inputs, relations, outputs, who sees what, units of privacy, sensitivities and trust; ends with a newline."""
    parts = [
        _title(model),
        _section("Secret inputs", _inputs(model)),
        _section("Public values", _public(model)),
        _section("Chosen by the solver", _choices(model)),
        _section("Parts", _components(model)),
        _section("Computed", _computed(model)),
        _section("Released", _outputs(model)),
        _section("Believed of the data (for the expected loss only)", _models(model)),
        _section("Declared of entries (for lines that say `given the model` only)", _chains(model)),
        _section("The mechanism must obey", (c.text for c in model.constraints)),
        _section("Asserted by the author, not checked", (c.text for c in model.asserted)),
        _section("Who sees what", _observers(model)),
        _section("Requirements", _requirements(model)),
        _section("Fairness", (f"line {line.line}: {line.text}" for line in model.fairness)),
        _section("How far one unit can move each value (Euclidean length)", _sensitivities(model)),
        _section("Noise", _noise(model)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _title(model: Model) -> str:
    doc = f"\n{' '.join(model.spec.doc.split())}" if model.spec.doc else ""
    return f"{model.name}{doc}"


def _section(title: str, lines: Iterator[str]) -> str:
    found = list(lines)
    return "\n".join([title, *(f"  {line}" for line in found)]) if found else ""


def _columns(rows: list[tuple[str, str]]) -> Iterator[str]:
    width = max((len(left) for left, _ in rows), default=0)
    for left, right in rows:
        yield f"{left.ljust(width)}   {right}"


def _written(node: GraphNode) -> str:
    return f"{node.name}[{node.index}]" if node.index else node.name


def _label(node: GraphNode) -> str:
    return f'; called "{node.label}" on pages and in files' if node.label else ""


def extent(node: GraphNode) -> str:
    """What a value is, in words: "64 numbers, each in [0, 1]"."""
    element = node.type.element
    if isinstance(element, Tables):
        names = listing(element.table.names)
        cells = element.table.cell_count
        return f"a table by {names}: {f'{cells:,}' if cells else 'unknown'} cells"
    if isinstance(element, Laws):
        return node.domain.describe() if node.domain else "a probability law"
    kind = node.type.describe()
    return f"{kind} in {node.domain.describe()}" if node.domain is not None else kind


def _inputs(model: Model) -> Iterator[str]:
    rows = []
    for node in model.inputs:
        people = f", one for each of {model.parties[node.index].size:,} {node.index}s" if node.index else ""
        if node.name in model.through:
            people += f"; read through {model.through[node.name]} alone, whose values are what is given to run"
        people += _label(node)
        own = extent(node)
        if node.index and node.domain is not None:
            own = f"{node.domain.describe()}"
        rows.append((_written(node), own + people))
    yield from _columns(rows)


def _public(model: Model) -> Iterator[str]:
    rows = []
    for name, value in model.parameters.items():
        shape = getattr(value, "shape", None)
        if isinstance(value, tuple):
            words = "{" + ", ".join(show(item) for item in value) + "}"
        else:
            words = (
                parameter_words(model.spec, name, model.parameters)
                if not shape
                else f"{' x '.join(map(str, shape))} figures"
            )
        rows.append((name, f"{words} (parameter)"))
    for node in model.constants:
        known = "" if node.name in model.values else "; its value is given when the plan is made or run"
        written = "" if node.definition is None else f" = {model.text(node.definition)}"
        rows.append((node.name, f"{node.type.describe()}{written}{known}"))
    yield from _columns(rows)


def _choices(model: Model) -> Iterator[str]:
    rows = [(node.name, f"from {node.domain.describe()}") for node in model.choices if node.domain is not None]
    for choice in () if model.design is None else model.design.choices:
        now = model.chosen.get(choice.name, choice.values[0])
        rows.append((choice.name, f"one of {', '.join(map(value_text, choice.values))}; here {value_text(now)}"))
    yield from _columns(rows)


def _components(model: Model) -> Iterator[str]:
    for part in model.components:
        links = ", ".join(f"its {own} is {name} here" for own, name in part.links.items())
        often = f", {part.times} times" if part.times > 1 else ""
        when = f", if {part.only_if} is not 0" if part.only_if is not None else ""
        yield f"{part.name}: the spec {part.file}{often}{when}" + (f"; {links}" if links else "")


def _computed(model: Model) -> Iterator[str]:
    rows = []
    for name in model.order:
        node = model.nodes[name]
        if node.kind is not VariableKind.INTERMEDIATE:
            continue
        text = "" if node.definition is None else model.text(node.definition)
        left = f"{_written(node)} = {text}" if text else _written(node)
        rows.append((left, f"{node.type.describe()}; {'secret' if node.secret else 'public'}{_map_word(model, node)}"))
    yield from _columns(rows)


def _map_word(model: Model, node: GraphNode) -> str:
    return ", a linear map of the data" if node.secret and degree_of(model, node.name) is Degree.AFFINE else ""


def _outputs(model: Model) -> Iterator[str]:
    rows = []
    for node in model.outputs:
        if node.definition is not None:
            how = f"computed from noisy values: {model.text(node.definition)}"
        elif node.name in model.targets:
            how = f"drawn by the mechanism so as to stand for {model.text(model.targets[node.name])}"
        else:
            how = "drawn by the mechanism from the data"
        rows.append((_written(node), f"{extent(node)}; {how}{_label(node)}"))
    yield from _columns(rows)


def _chains(model: Model) -> Iterator[str]:
    return (f"line {line}: {text}" for chain in model.chains for line, text in chain.lines)


def _models(model: Model) -> Iterator[str]:
    for found in model.models:
        text = next((model.text(one) for one in model.spec.background if one.span == found.span), "")
        yield f"line {found.line}: {text}"


def observers(model: Model) -> dict[str, tuple[str, ...]]:
    """What each observer, or coalition, sees: outputs by the name of who sees them."""
    seen: dict[str, dict[str, None]] = {}
    named = {output for requirement in model.requirements for output in requirement.outputs}
    for requirement in model.requirements:
        who = listing(requirement.observers)
        seen.setdefault(who, {}).update(dict.fromkeys(requirement.outputs))
    rest = [node.name for node in model.outputs if node.name not in named]
    if rest:
        seen.setdefault("anyone", {}).update(dict.fromkeys(rest))
    return {who: tuple(outputs) for who, outputs in seen.items()}


def _observers(model: Model) -> Iterator[str]:
    for who, outputs in observers(model).items():
        yield f"{who}: {listing(outputs)}"
    yield f"trust {model.trust.name}: {model.trust.describe()}"


def unit_words(requirement: Requirement) -> str:
    """The neighbour relation and its inputs, and whether the line says so or the default does."""
    described = requirement.neighbours.describe()
    inputs = "" if " of " in described else f" in {listing(requirement.wrt)}"
    tail = "; the line names no unit, so this is the default" if requirement.unit_by_default else ""
    return f"{described}{inputs}{tail}"


def _requirements(model: Model) -> Iterator[str]:
    for requirement in model.requirements:
        yield f"line {requirement.line}: {requirement.text}"
        yield f"    {requirement.measure.describe()} for {listing(requirement.outputs)}, seen by " + listing(
            requirement.observers
        )
        yield f"    compares worlds that differ by {unit_words(requirement)}"


@once
def sensitivities(model: Model) -> list[tuple[Requirement, list[tuple[str, str]]]]:
    """For each distinct neighbour relation, the sensitivity of every value that is linear in the data."""
    maps: dict[str, Array] = {}
    for name in model.order:
        node = model.nodes[name]
        free_output = node.kind is VariableKind.OUTPUT and node.definition is None
        if node.secret and not free_output and degree_of(model, name) is Degree.AFFINE:
            matrix = linear_map(model, name)
            if matrix is not None and matrix.size:  # of unknown keys nobody knows how many there are
                maps[name] = matrix
    from privspec.problem.linear_differences import sensitivity  # the front end does without the kernel

    done: set[tuple[str, tuple[str, ...]]] = set()
    told = []
    for requirement in model.requirements:
        key = (requirement.neighbours.describe(), requirement.wrt)
        if key in done:
            continue
        done.add(key)
        rows = []
        for name, matrix in maps.items():
            found = sensitivity(model, requirement, matrix)
            if found is not None and found.l2 > 0:
                rows.append((name, f"{'' if found.exact else 'at most '}{found.l2:.6g}"))
        if rows:
            told.append((requirement, rows))
    return told


def _sensitivities(model: Model) -> Iterator[str]:
    for requirement, rows in sensitivities(model):
        yield f"{requirement.neighbours.describe()} in {listing(requirement.wrt)}"
        for line in _columns(rows):
            yield f"  {line}"


def _noise(model: Model) -> Iterator[str]:
    if model.noise_at is None:
        yield "may enter wherever the trust model allows"
    else:
        number, _ = model.source.position(model.noise_at_spans[0].start) if model.noise_at_spans else (0, 0)
        yield f"only at {listing(model.noise_at)} (line {number})"
    if model.families:
        yield f"of the family {listing(model.families, 'or')}"
