"""What no line says: for each input and observer, outputs that no line names together or at all."""

from __future__ import annotations

from privspec.model.graph import Model
from privspec.model.observers import ANYONE, Look, exposures, inputs_behind
from privspec.model.reports import Report, listing


def warn_about_gaps(model: Model, report: Report) -> None:
    """Inputs that no line names, outputs that no line names for an input, and outputs that no line joins."""
    named = {name for line in model.requirements for name in line.outputs}
    for node in model.outputs:
        if node.name not in named and not inputs_behind(model, node.name):
            report.warn(
                "PS0315",
                node.span,
                f"no requirement names {node.name}",
                help=f"add a line under privacy, or declare {node.name} as a constant: it depends on no input",
            )
    for found in exposures(model):
        if not any(found.input in line.wrt for line in model.requirements):
            _no_line(model, found, report)
        elif found.unnamed:
            _unnamed(model, found, report)
        else:
            _not_joined(model, found, report)


def _see(found: Look) -> str:
    verb = "sees" if found.observer.name == ANYONE else "see"
    return f"{found.observer.name} {verb}"


def _no_line(model: Model, found: Look, report: Report) -> None:
    span = model.block(found.input).span
    report.warn(
        "PS0314",
        span,
        f"no requirement protects the input {found.input}, and {_see(found)} {listing(found.outputs)}",
        help=f"add `wrt {found.input}` to a line, or declare it as a constant if it is public",
    )


def _unnamed(model: Model, found: Look, report: Report) -> None:
    for name in found.unnamed:
        node = model.nodes.get(name.partition(".")[0])
        span = model.block(found.input).span if node is None else node.span
        report.warn(
            "PS0315",
            span,
            f"no requirement protects {found.input} in {name}, which {_see(found)}: it may reveal anything",
            help=f"add a line under privacy: {_together(found)} is ... wrt {found.input}",
        )


def _not_joined(model: Model, found: Look, report: Report) -> None:
    lines = [line for line in model.requirements if found.input in line.wrt and set(found.outputs) & set(line.outputs)]
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
