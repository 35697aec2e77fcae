"""Values that are public from the start: parameters, overrides, index sets, constants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from privspec.core.diagnostics import Diagnostic, SpecError
from privspec.core.spans import Source, Span
from privspec.language import syntax
from privspec.language.automaton import REFUSED
from privspec.language.spelling import spell
from privspec.language.walk import names_used, walk
from privspec.model.domains import Domain
from privspec.model.evaluate import Environment, evaluate
from privspec.model.graph import Model, PartySet
from privspec.model.reports import Failure, Report, suggestion
from privspec.model.scope import Scope
from privspec.model.targets import environment
from privspec.model.values import Value, as_fraction, exact_array, readable, show

PARTY_LIMIT = 2**40


def walked(graph: Mapping[str, tuple[str, ...]]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Names so that each comes after those it depends on, and each cycle that one depth-first walk finds.

    The order among the names of a cycle is arbitrary; a cycle is the names along it, and no name is in two of them.
    """
    done: dict[str, None] = {}
    begun: set[str] = set()
    found: list[tuple[str, ...]] = []
    for start in graph:
        path, stack = [start], [iter(graph[start])]
        if start in begun:
            continue
        begun.add(start)
        while stack:
            step = next(stack[-1], None)
            if step is None:
                done[path.pop()] = None
                stack.pop()
            elif step in graph and step not in begun:
                begun.add(step)
                path.append(step)
                stack.append(iter(graph[step]))
            elif step in begun and step not in done:
                found.append(tuple(path[path.index(step) :]))
    return tuple(done), found


def circle(cycle: tuple[str, ...]) -> str:
    """The message for a cycle."""
    if len(cycle) == 1:
        return f"{cycle[0]} is defined in terms of itself"
    return f"{' needs '.join((*cycle, cycle[0]))}: none of them can be computed first"


def parse_override(name: str, given: object, environment: Environment) -> Value:
    """The value of `--set name=text` (an expression), or of a Python number, list or array.

    Raises: SpecError PS0251 if it is none.
    """
    if isinstance(given, str):
        return _parse_text(name, given, environment)
    try:
        return to_value(given)
    except (TypeError, ValueError) as error:
        raise SpecError.of("PS0251", f"the value given for {name} is no finite number, list or set") from error


def _parse_text(name: str, text: str, environment: Environment) -> Value:
    from privspec.language.parser import parse_expression

    shown = Source(f"--set {name}", text)
    try:
        value = evaluate(parse_expression(shown), environment)
    except SpecError as error:
        found = error.diagnostics[0]
        message = f"the value given for {name} cannot be read: {found.message}"
        hint = found.help or f"write a number, a list or a set, as in --set {name}=0.5"
        raise SpecError(Diagnostic("PS0251", message, help=hint, source=shown)) from error
    except Failure as error:
        message = f"the value given for {name} cannot be computed: {error.message}"
        raise SpecError(Diagnostic("PS0251", message, help=error.help, source=shown)) from error
    return value


def to_value(given: object) -> Value:
    """A Python number, string, list, set or array as a value of the language.

    Raises: TypeError, ValueError if it is none or not finite.
    """
    if isinstance(given, set | frozenset):
        return tuple(sorted((_member(item) for item in given), key=str))
    if isinstance(given, list | tuple):
        if given and all(isinstance(item, str) for item in given):
            return tuple(_member(item) for item in given)
        if all(isinstance(item, int | Fraction) and not isinstance(item, bool) for item in given):
            return exact_array([Fraction(item) for item in given], (len(given),))
        given = np.asarray(given)
    if isinstance(given, np.ndarray):
        if given.dtype != object:
            array = given.astype(np.float64)
            if not np.all(np.isfinite(array)):
                raise ValueError("not finite")
            return array if array.shape else Fraction(array.item())
        return exact_array([as_fraction(item) for item in given.ravel()], given.shape)
    if isinstance(given, float):
        # the decimal an author would have written, as in Fraction("0.1")
        return Fraction(repr(given)) if np.isfinite(given) else as_fraction(given)
    return as_fraction(given)


def _member(item: object) -> str | Fraction:
    if not isinstance(item, str):
        return as_fraction(item)
    if '"' in item or REFUSED.search(item) or "\n" in item:
        raise ValueError("a text that no spec can hold")
    return item


def read_parameters(
    scope: Scope, environment: Environment, overrides: Mapping[str, object], report: Report
) -> tuple[dict[str, Value], dict[str, PartySet]]:
    """Evaluate parameters (in any order) and the index sets, with `--set` values in place of written ones.

    Returns: values by name; index sets by name. Those with errors are left out.
    """
    declared = {
        name: found.node for name, found in scope.of("parameter").items() if isinstance(found.node, syntax.Parameter)
    }
    party_nodes = {
        name: found.node for name, found in scope.of("party").items() if isinstance(found.node, syntax.Party)
    }
    _check_overrides(overrides, declared, scope, report)
    values: dict[str, Value] = {}
    parties: dict[str, PartySet] = {}
    graph = {name: names_used(node.value) for name, node in declared.items()}
    graph |= {name: names_used(node.domain) for name, node in party_nodes.items()}
    for name, node in declared.items():
        if node.target.indices:
            graph[name] += tuple(n for n in names_used(node.target) if n in party_nodes and n not in graph[name])
    looped: set[str] = set()
    for cycle in walked(
        {name: tuple(n for n in used if n != name or name in declared) for name, used in graph.items()}
    )[1]:
        looped.update(cycle)
        first = scope[cycle[0]]
        report.error(
            "PS0210",
            first.span,
            circle(cycle),
            others=tuple((scope[name].span, "part of the circle") for name in cycle[1:]),
        )
    for name in walked(graph)[0]:
        if name in looped:
            continue
        now = replace(environment, values=values, parties={n: p.size for n, p in parties.items()}, exact_files=True)
        try:
            if name in party_nodes:
                parties[name] = _party(party_nodes[name], now)
            elif name in overrides:
                values[name] = _indexed(declared[name], parse_override(name, overrides[name], now), parties)
                if (files := set(_files(declared[name].value))) and files <= set(now.files.fixed or ()):
                    _parameter(declared[name], now, parties)  # read as it was when it had no other value
            else:
                values[name] = _parameter(declared[name], now, parties)
        except Failure as failure:
            # a name that is undefined, or that failed before, has been reported where it stands
            unknown = any(needed not in values and needed not in parties for needed in graph[name])
            if failure.code in ("PS0261", "PS0220", "PS0205") and unknown:
                report.hold(failure, scope.declarations)
            else:
                report.failure(failure)
        except SpecError as error:
            report.diagnostics.extend(error.diagnostics)
    return values, parties


def _files(expr: syntax.Expr) -> Iterator[str]:
    """The files that an expression reads, as a reader calls them."""
    for node in walk(expr):
        match node:
            case syntax.Call(function="csv" | "npy" as kind, arguments=(syntax.String(value=name),)):
                yield f"{kind}:{name}"


def parameter_words(spec: syntax.Spec, name: str, values: Mapping[str, Value]) -> str:
    """A number for people: as it is written beside its decimal, where that is not the whole of it."""
    value = values[name]
    words = readable(value)
    if not isinstance(value, Fraction) or words == show(value):
        return words
    for node in spec.parameters:
        if node.target.name == name and not node.target.indices:
            try:
                same = evaluate(node.value, Environment(values)) == value
            except Failure:
                same = False
            # a value that was given from outside is not what the spec writes
            return f"{spell(node.value)} = {words}" if same else words
    return words


def _check_overrides(
    overrides: Mapping[str, object], declared: Mapping[str, object], scope: Scope, report: Report
) -> None:
    for name in overrides:
        if name in declared:
            continue
        found, known = scope.get(name), f"the parameters are {', '.join(declared)}"
        hint = suggestion(name, declared) or (known if declared else "this spec has no parameters")
        what = f"{name} is {found.with_article}, not a parameter" if found else f"there is no parameter {name}"
        report.diagnostics.append(Diagnostic("PS0250", what, help=hint, source=report.source))


def _parameter(node: syntax.Parameter, environment: Environment, parties: Mapping[str, PartySet]) -> Value:
    """Its value; an indexed one is written for all its people at once: `epsilon[voter] = csv("f")` or one number."""
    for one in node.target.indices:
        if isinstance(one, syntax.Name) and one.id in parties and one.id in names_used(node.value):
            message = f"give {node.target.name} as one list or file with a figure for each {one.id}"
            raise Failure("PS0228", one.span, message)
    return _indexed(node, evaluate(node.value, environment), parties)


def _indexed(node: syntax.Parameter, value: Value, parties: Mapping[str, PartySet]) -> Value:
    """Check that an indexed parameter has a figure for each person; one number stands for all."""
    if not node.target.indices:
        if isinstance(value, np.ndarray) and value.size == 0:
            raise Failure("PS0224", node.value.span, f"{node.target.name} is empty")
        return value
    match node.target.indices[0]:
        case syntax.Name(id=name) if name in parties:
            size = parties[name].size
        case _:
            return value
    if isinstance(value, Fraction):
        if size > PARTY_LIMIT:
            raise Failure("PS0225", node.span, "too many people to list")
        return exact_array([value] * size, (size,))
    if isinstance(value, np.ndarray) and value.size == size and max(value.shape) == size:
        return value.reshape(size)
    message = f"{node.target.name} needs a figure for each of {size} {name}s"
    extent = " x ".join(map(str, value.shape)) if isinstance(value, np.ndarray) else "one value"
    raise Failure("PS0207", node.value.span, message, label=extent)


def _party(node: syntax.Party, environment: Environment) -> PartySet:
    match node.domain:
        case syntax.RangeOf(low=low, high=high):
            ends = []
            for expr in (low, high):
                value = evaluate(expr, environment)
                if not isinstance(value, Fraction) or value.denominator != 1:
                    raise Failure("PS0227", expr.span, "an index set has a whole number of people")
                ends.append(value)
            if ends[0] != 1:
                raise Failure("PS0227", low.span, f"people are numbered from 1: write {node.name} in 1..N")
            if ends[1] < 1:
                raise Failure("PS0227", high.span, f"an index set has at least one person, not {show(ends[1])}")
            if ends[1] > PARTY_LIMIT:
                raise Failure("PS0225", high.span, f"{show(ends[1])} people are too many; at most 2^40")
            return PartySet(node.name, int(ends[1]), node.span)
        case _:
            raise Failure("PS0227", node.domain.span, f"an index set is written {node.name} in 1..N")


# --- constants ------------------------------------------------------------------------------------


def fit_constant(name: str, value: Any, domain: Domain | None, span: Span, shown: Span | None = None) -> Value:
    """A constant's value at the shape of its domain: a single column or row may stand for a vector.

    Raises: Failure PS0253 if it has another shape, or an entry outside the domain.
    """
    if domain is None:
        return value  # type: ignore[no-any-return]
    wants_vector = len(domain.shape) == 1 and isinstance(value, np.ndarray) and value.ndim == 2
    if wants_vector and 1 in value.shape and value.size == domain.shape[0]:
        value = value.reshape(domain.shape)
    if isinstance(value, np.ndarray) and value.shape == (1,) and domain.shape == ():
        value = as_fraction(value[0])
    actual = value.shape if isinstance(value, np.ndarray) else ()
    if actual != domain.shape:
        message = f"{name} is {_shape(actual)} here, but {_shape(domain.shape)} was declared: {domain.describe()}"
        raise Failure("PS0253", shown or span, message, help=f"declare it {_extents(actual)}, or leave its domain out")
    low, high = domain.bounds
    if isinstance(value, np.ndarray) and value.dtype != object:
        outside = (low is not None and bool(np.any(value < float(low)))) or (
            high is not None and bool(np.any(value > float(high)))
        )
    else:
        outside = not domain.contains(value)
    if outside:
        raise Failure("PS0253", shown or span, f"{name} has an entry outside {domain.describe()}")
    return value  # type: ignore[no-any-return]


def _extents(shape: tuple[int, ...]) -> str:
    """The power of a domain that has this shape."""
    if not shape:
        return "without a power"
    return f"with the power ^{shape[0]}" if len(shape) == 1 else f"with the power ^({', '.join(map(str, shape))})"


def _shape(shape: tuple[int, ...]) -> str:
    match shape:
        case ():
            return "one number"
        case (n,):
            return f"a vector of {n}"
        case _:
            return " x ".join(str(n) for n in shape)


def given_constants(
    constants: Mapping[str, object], scope: Scope, domains: Mapping[str, Domain], report: Report
) -> dict[str, Value]:
    """Values of constants given from outside (`--constant b=FILE`), checked against their domains."""
    known = scope.of("constant")
    values: dict[str, Value] = {}
    for name, given in constants.items():
        found = known.get(name)
        if found is None:
            hint = suggestion(name, known) or "this spec declares no such constant"
            report.diagnostics.append(
                Diagnostic("PS0252", f"there is no constant {name}", help=hint, source=report.source)
            )
            continue
        try:
            values[name] = fit_constant(name, to_value(given), domains.get(name), found.span)
        except Failure as failure:
            report.failure(failure)
        except (TypeError, ValueError):
            report.error("PS0253", found.span, f"the value given for {name} is not an array of finite numbers")
    return values


# --- given from outside --------------------------------------------------------------------------------

SHOWN = 8
"""Entries of a list that are written out."""


def overrides(model: Model) -> tuple[str, ...]:
    """One sentence for each, in order of the text: "epsilon = 1 (the spec's text says epsilon = 0.5)".

    A parameter that the text computes from others is compared with what those give, as they were solved.
    """
    found = []
    for line in model.spec.parameters:
        name = line.target.name
        solved = model.parameters.get(name)
        try:
            written: Value | None = _parameter(line, environment(model), model.parties)
        except Failure:
            written = None
        if solved is not None and not _same(solved, written):
            found.append(f"{name} = {_text(solved)} (the spec's text says {name} = {spell(line.value)})")
    fixed = {} if model.design is None else model.design.fixed
    return (*found, *(f"{name} = {words} (the spec's text leaves it open)" for name, words in fixed.items()))


def _same(solved: Value, written: Value | None) -> bool:
    if isinstance(solved, np.ndarray) or isinstance(written, np.ndarray):
        return written is not None and np.array_equal(np.asarray(solved), np.asarray(written))
    return solved == written


def _text(value: Value) -> str:
    if isinstance(value, np.ndarray):
        flat = value.ravel().tolist()
        shown = ", ".join(show(item) for item in flat[:SHOWN])
        return f"[{shown}]" if len(flat) <= SHOWN else f"[{shown}, ... {len(flat)} numbers]"
    if isinstance(value, tuple):
        return "{" + ", ".join(show(item) for item in value) + "}"
    return show(value)
