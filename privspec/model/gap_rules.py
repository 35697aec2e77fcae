"""What no line says: outputs without protection, and observers whose outputs no line joins."""

from __future__ import annotations

from collections.abc import Iterable

from privspec.model.reports import Report, listing
from privspec.model.requirements import Requirement
from privspec.model.scope import Scope


def warn_about_gaps(
    requirements: tuple[Requirement, ...], scope: Scope, outputs: Iterable[str], report: Report
) -> None:
    """Outputs that no line protects, inputs that no line names, and observers whose outputs no line joins."""
    seen: dict[tuple[str, ...], dict[str, Requirement]] = {}
    for requirement in requirements:
        for output in requirement.outputs:
            seen.setdefault(requirement.observers, {}).setdefault(output, requirement)
    for observers, held in seen.items():
        joined = any(set(held) <= set(r.outputs) for r in requirements if r.observers == observers)
        inputs = [set(r.wrt) for r in held.values()]
        share = any(a & b for i, a in enumerate(inputs) for b in inputs[i + 1 :])
        if len(held) > 1 and not joined and share:
            lines = list(dict.fromkeys(r.span for r in held.values()))
            report.warn(
                "PS0313",
                lines[-1],
                f"{listing(observers)} sees {listing(held)} together, and no line names both",
                others=tuple((span, "also seen") for span in lines[:-1]),
                help=f"add a line: ({', '.join(held)}) is ...",
                notes=("each line holds for its own outputs; what they reveal together is the composed bound",),
            )
    named = {output for requirement in requirements for output in requirement.outputs}
    for output in outputs:
        if output not in named:
            declared = scope.get(output.partition(".")[0])
            if declared is not None:
                report.warn(
                    "PS0315",
                    declared.span,
                    f"no requirement protects {output}: it may reveal anything",
                    help=f"add a line under privacy: {output} is ...",
                )
    protected = {name for requirement in requirements for name in requirement.wrt}
    for name, declared in scope.of("input").items():
        if requirements and name not in protected:
            report.warn(
                "PS0314",
                declared.span,
                f"no requirement protects the input {name}",
                help=f"add `wrt {name}` to a line, or declare it as a constant if it is public",
            )
