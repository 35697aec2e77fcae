"""Specs used as parts of another one."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

from privspec.core.diagnostics import SpecError
from privspec.core.spans import Source
from privspec.language import syntax
from privspec.model.evaluate import Environment, evaluate
from privspec.model.graph import ComponentModel, Model
from privspec.model.reports import Failure, Report, nearest
from privspec.model.scope import TRUST_WORDS, Scope
from privspec.model.values import Value

Loader = Callable[[Source, dict[str, object], Path, str | None], Model]
"""Loads a spec with overrides of its parameters, the folder of its files, and an override of its trust."""


def read_components(
    spec: syntax.Spec,
    scope: Scope,
    environment: Environment,
    base: Path | None,
    open_files: frozenset[Path],
    load: Callable[[Path, dict[str, object], str | None], Model],
    report: Report,
) -> tuple[ComponentModel, ...]:
    """Load every component that is declared once."""
    found = []
    for component in spec.components:
        declared = scope.get(component.name)
        if declared is None or declared.node is not component:
            continue
        try:
            loaded = _component(component, scope, environment, base, open_files, load, report)
        except Failure as failure:
            report.failure(failure)
            continue
        if loaded is not None:
            found.append(loaded)
    return tuple(found)


def _path(component: syntax.Component, base: Path | None, open_files: frozenset[Path]) -> Path:
    call = component.call
    if call.function != "spec":
        raise Failure("PS0420", call.span, 'a component is written name = spec("file.priv", ...)')
    match call.arguments:
        case (syntax.String(value=name, span=span), *_):
            pass
        case _:
            raise Failure("PS0420", call.span, "the first argument of spec(...) is a file name in quotes")
    path = Path(name) if base is None else base / name
    if not name or "\0" in name or not path.is_file():
        near = None
        if "\0" not in name and path.parent.is_dir():
            near = nearest(path.name, (p.name for p in path.parent.iterdir() if p.suffix == ".priv"))
        raise Failure("PS0420", span, f"the spec {name} does not exist", help=f"did you mean {near}?" if near else None)
    if path.resolve() in open_files:
        raise Failure("PS0420", span, f"{name} uses itself as a component")
    return path


def _component(
    component: syntax.Component,
    scope: Scope,
    environment: Environment,
    base: Path | None,
    open_files: frozenset[Path],
    load: Callable[[Path, dict[str, object], str | None], Model],
    report: Report,
) -> ComponentModel | None:
    path = _path(component, base, open_files)
    keywords: dict[str, syntax.Keyword] = {}
    for argument in component.call.arguments[1:]:
        if not isinstance(argument, syntax.Keyword):
            report.error("PS0421", argument.span, "after the file name, write name = expression")
        elif argument.name in keywords:
            report.error("PS0421", argument.span, f"{argument.name} is set twice")
        else:
            keywords[argument.name] = argument
    trust = _trust(keywords.get("trust"), scope, report)
    try:
        model = load(path, {}, trust)
        overrides = _overrides(keywords, model, scope, environment, report)
        if overrides:
            model = load(path, dict(overrides), trust)
    except SpecError as error:
        first = error.diagnostics[0]
        report.error(
            "PS0422",
            component.call.span,
            f"the spec of {component.name} has errors: {first.message}",
            help=f"`privspec check {path}` shows them",
        )
        report.diagnostics.extend(found for found in error.diagnostics if found.source is not None)
        return None
    links = _links(component, keywords, model, scope, report)
    kept = {name: keyword.value for name, keyword in keywords.items()}
    return ComponentModel(component.name, model, links, kept, component.span)


def _trust(keyword: syntax.Keyword | None, scope: Scope, report: Report) -> str | None:
    if keyword is None:
        return None
    match keyword.value:
        case syntax.Name(id=name) if name in TRUST_WORDS:
            return name
        case syntax.Name(id=name) if name in scope.of("choose", "parameter"):
            return None
        case _:
            near = (
                nearest(keyword.value.id, (*TRUST_WORDS, *scope.of("choose")))
                if isinstance(keyword.value, syntax.Name)
                else None
            )
            report.error(
                "PS0270",
                keyword.value.span,
                "a trust model is wanted here",
                help=f"did you mean {near}?" if near else f"these exist: {', '.join(TRUST_WORDS)}",
            )
            return None


def _overrides(
    keywords: dict[str, syntax.Keyword], model: Model, scope: Scope, environment: Environment, report: Report
) -> dict[str, Value]:
    """Parameters of the part whose values are known now; what the solver chooses is left open."""
    found: dict[str, Value] = {}
    inputs = {node.name for node in model.inputs}
    known = (*model.parameters, *inputs, *(node.name for node in model.constants))
    for name, keyword in keywords.items():
        if name == "trust":
            continue
        if name not in known:
            near = nearest(name, (*known, "trust"))
            report.error(
                "PS0421",
                keyword.span,
                f"the part has no parameter or input {name}",
                help=f"did you mean {near}?" if near else f"it has {', '.join(known)}" if known else None,
            )
            continue
        if name not in model.parameters:
            continue
        used = keyword.value
        if isinstance(used, syntax.Name) and used.id in scope.of("choose"):
            continue
        try:
            value = evaluate(used, environment)
        except Failure as failure:
            report.failure(failure)
            continue
        if isinstance(value, Fraction | str | tuple) or hasattr(value, "shape"):
            found[name] = value
    return found


def _links(
    component: syntax.Component,
    keywords: dict[str, syntax.Keyword],
    model: Model,
    scope: Scope,
    report: Report,
) -> dict[str, str]:
    """Which input of the whole each input of the part is; one that is not passed is the one of its own name."""
    links: dict[str, str] = {}
    inputs = scope.of("input")
    for node in model.inputs:
        keyword = keywords.get(node.name)
        if keyword is None:
            if node.name in inputs:
                links[node.name] = node.name
                report.warn(
                    "PS0423",
                    component.span,
                    f"the input {node.name} of {component.name} is taken to be the {node.name} declared here",
                    others=((inputs[node.name].span, "this one"),),
                    help=f"write {node.name} = {node.name} to say so",
                )
            continue
        match keyword.value:
            case syntax.Name(id=name) if name in inputs:
                links[node.name] = name
            case _:
                report.error(
                    "PS0421",
                    keyword.value.span,
                    f"{node.name} is an input of {component.name}; it takes one of the inputs declared here",
                    help=f"these are {', '.join(inputs)}" if inputs else None,
                )
    return links
