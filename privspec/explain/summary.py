"""A plan in a dozen lines: the table that `privspec solve` prints, the same for notebooks, and what conflicts."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from privspec.explain.document import Because, Note, SpecLine, Status
from privspec.explain.facts import Facts
from privspec.explain.quantities import LOSS_DIGITS, rounded
from privspec.explain.reading import facts
from privspec.explain.words import (
    accuracy_words,
    alternatives_words,
    binding_words,
    claim_words,
    exposure_rows,
    fairness_words,
    overridden_words,
    status_words,
)
from privspec.explain.writers import environment, icon_svg

if TYPE_CHECKING:
    from privspec.model.graph import Model


NARROW = 64
_WIDEST = 120
_TIE = "\u00a0"


def summary(
    plan: Mapping[str, Any], *, width: int | None = None, path: str | None = None, model: Model | None = None
) -> str:
    """The plan in brief: where the noise goes, the error, the guarantee, what binds and what is assumed.

    Args: width in characters (the terminal's if None); path the plan was written to, named in the last line; the plan's
        model where the caller has it, for bounds that need it.
    Raises: ValueError, KeyError if the plan is not of the form `privspec-plan/2.0`.
    """
    columns = width if width is not None else shutil.get_terminal_size((100, 24)).columns
    columns = max(30, min(columns, _WIDEST))
    found = facts(plan, model)
    parts = [
        _wrap(f"{found.name} · {found.title}" if found.title != found.name else found.name, columns),
        _wrap(status_words(found), columns),
        "",
        *_rows(_noise_rows(found), columns),
        "",
        *_rows(_claim_rows(found), columns),
        "",
        _wrap(_next(path, found), columns),
    ]
    return "\n".join(parts) + "\n"


def _noise_rows(found: Facts) -> list[tuple[str, str]]:
    rows = [(found.mechanism.drawn_label, found.mechanism.drawn(found)), *found.mechanism.summary_rows(found)]
    label, text = found.mechanism.error(found)
    if text:
        rows.append((label, text))
        rows += [("Ties", f"{name} takes, among equals, {taken}") for name, taken in found.context.ties.items()]
    accuracy = accuracy_words(found)
    if accuracy:
        rows.append(("Accuracy met", accuracy))
    compared = alternatives_words(found)
    if compared:
        rows.append(("Compared, same guarantee", compared))
    return rows


def _claim_rows(found: Facts) -> list[tuple[str, str]]:
    rows = [("As solved", words)] if (words := overridden_words(found)) else []
    rows += exposure_rows(found)
    rows += [("Guarantee", claim_words(fact)) for fact in found.claims]
    if not found.claims:
        rows.append(("Guarantee", "none: no line asks for privacy, and the outputs may reveal the inputs"))
    rows += [("Fairness", fairness_words(item)) for item in found.fairness]
    rows += [("What binds", binding_words(item)) for item in found.binding]
    rows += [
        ("Assumed", f"{s.text.removesuffix('.')}{_where(s.because)}")
        for s in found.assumptions
        if s.status in (Status.ASSUMED, Status.ASSERTED) and any(map(_in_spec, s.because))
    ]
    return rows


def _in_spec(because: Because) -> bool:
    """Whether an assumption is the author's to make: a line, or the default that stands for a missing one."""
    return isinstance(because, SpecLine) or because == Note("trust-by-default")


def _where(because: tuple[Because, ...]) -> str:
    lines = [b for b in because if isinstance(b, SpecLine) and b.number > 0]
    if not lines:
        return " (the default)" if Note("trust-by-default") in because else ""
    first = lines[0]
    short = f"{first.text}, " if 0 < len(first.text) <= 30 else ""
    return f" ({short}line {first.number})"


def _rows(rows: list[tuple[str, str]], columns: int) -> list[str]:
    if not rows:
        return []
    indent = max(len(label) for label, _ in rows) + 3
    lines, previous = [], ""
    for label, text in rows:
        shown = label if label != previous else ""
        previous = label
        if columns < NARROW:
            lines += [shown] if shown else []
            lines.append(_wrap(text, columns, "  ", "  "))
        else:
            lines.append(_wrap(text, columns, shown.ljust(indent), " " * indent))
    return lines


def _wrap(text: str, columns: int, first: str = "", rest: str = "  ") -> str:
    if len(first) + len(text) <= columns:
        return first + text
    # numbers stay with their signs and units
    tied = re.sub(r"(?<=[±≤→]) | (?=[→≤%])", _TIE, text)
    return textwrap.fill(
        tied,
        columns,
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
        break_long_words=False,
    ).replace(_TIE, " ")


def _next(path: str | None, found: Facts) -> str:
    commands = f"next: {' · '.join(f'privspec {name}' for name in found.mechanism.next_commands(found))}"
    return f"plan written to {path} · {commands}" if path else commands


def plan_html(plan: Mapping[str, Any], model: Model | None = None) -> str:
    """The plan in brief as HTML: status, error, noise, guarantees, and the odds as two rows of figures.

    Raises: ValueError, KeyError if the plan is not of the form `privspec-plan/2.0`.
    """
    found = facts(plan, model)
    weakest = found.weakest
    rows = weakest.question.icons(weakest.shown.odds).rows if weakest is not None and weakest.shown is not None else ()
    figures = [(row.label, icon_svg(row)) for row in rows]
    return (
        environment()
        .get_template("fragment.html")
        .render(facts=found, status=status_words(found), rows=_fragment_rows(found), figures=figures)
    )


def _fragment_rows(found: Facts) -> list[tuple[str, str]]:
    rows = [(found.mechanism.brief_label, found.mechanism.drawn(found)), *found.mechanism.summary_rows(found)]
    label, error = found.mechanism.error(found)
    rows += [(label, error)] if error else []
    rows += [("Accuracy met", words)] if (words := accuracy_words(found)) else []
    rows += [("Compared", words)] if (words := alternatives_words(found)) else []
    rows += [("As solved", words)] if (words := overridden_words(found)) else []
    rows += exposure_rows(found)
    rows += [("Guarantee", claim_words(fact)) for fact in found.claims]
    rows += [("Fairness", fairness_words(item)) for item in found.fairness]
    rows += [("What binds", binding_words(item)) for item in found.binding]
    return rows


def infeasible_text(document: Mapping[str, Any]) -> str:
    """Which lines conflict, why, and which single changes work, each with its price where it is known."""
    lines = ["infeasible[PS0601]: these lines cannot all hold"]
    lines += [f"  {c['line']:>4} | {c['text']}" for c in document["conflicts"]]
    lines.append(f"Why: {document['reason']}.")
    works = [r for r in document["relaxations"] if r.get("works", True)]
    if works:
        lines.append("Smallest single changes that work:")
    else:
        lines.append("No single change that is known would make it feasible.")
    in_vain = [r for r in document["relaxations"] if r not in works]
    lines += [f"  {_relaxation(r)}" for r in (*works, *(r for r in in_vain if r["line"]))]
    known = [r for r in in_vain if not r["line"]]
    if known:
        lines.append("What is true nevertheless:")
        lines += [f"  {_relaxation(r)}" for r in known]
    return "\n".join(lines) + "\n"


def _relaxation(relaxation: Mapping[str, Any]) -> str:
    where = f"  (line {relaxation['line']})" if relaxation["line"] else ""
    price = f": loss {rounded(float(relaxation['loss']), LOSS_DIGITS)}" if relaxation["loss"] is not None else ""
    return f"{relaxation['change']}{price}{where}"
