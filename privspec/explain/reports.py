"""A plan explained: a reader's page as Markdown, as one HTML file that needs nothing else, or as JSON values.

Also the page of lines that cannot all hold, and the fragment that a notebook shows.
"""

from __future__ import annotations

import dataclasses
import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from privspec.core.diagnostics import Diagnostic, UsageError
from privspec.explain.auditor import auditor_page
from privspec.explain.document import (
    Because,
    Block,
    Document,
    IconArray,
    IconRow,
    Listing,
    Paragraph,
    Picture,
    Plot,
    Points,
    Section,
    Sentence,
    SpecLine,
    Table,
    reported,
)
from privspec.explain.engineer import engineer_page
from privspec.explain.facts import Facts, Judgement
from privspec.explain.graph_words import describe_graph
from privspec.explain.paper import NO_DUMMIES, drawn_by_lot, theorems
from privspec.explain.public import public_page
from privspec.explain.quantities import LOSS_DIGITS, rounded
from privspec.explain.reading import facts
from privspec.explain.summary import brief_rows, status_words

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from privspec.model.graph import Model


ICONS_IN_A_LINE = 50
_FILLED, _EMPTY = "●", "○"


def to_markdown(document: Document) -> str:
    """The page as CommonMark with pipe tables; ends with a newline."""
    parts = [f"# {escape(document.title)}", escape(document.subtitle)]
    for section in document.sections:
        parts.append(f"## {escape(section.heading)}")
        parts.extend(_block_markdown(block, document.shows_basis) for block in section.blocks)
    if document.footer:
        parts.append(f"---\n\n{escape(document.footer)}")
    return "\n\n".join(part for part in parts if part) + "\n"


def escape(text: str) -> str:
    """Text whose marks are taken literally; backquoted code is kept."""
    pieces = text.split("`")
    for i in range(0, len(pieces), 2):
        for mark in ("\\", "*", "_", "<", "[", "]"):
            pieces[i] = pieces[i].replace(mark, f"\\{mark}")
    return "`".join(pieces)


def icon_lines(row: IconRow, figures: int = 100) -> tuple[str, ...]:
    """The figures of a row, 50 a line."""
    drawn = icons_drawn(row, figures)
    text = _FILLED * drawn + _EMPTY * (figures - drawn)
    return tuple(text[i : i + ICONS_IN_A_LINE] for i in range(0, figures, ICONS_IN_A_LINE))


def icons_drawn(row: IconRow, figures: int = 100) -> int:
    """How many of the figures are filled."""
    return row.filled * figures // row.of if row.filled * 2 < row.of else -(-row.filled * figures // row.of)


def _block_markdown(block: Block, shows_basis: bool) -> str:
    match block:
        case Paragraph(sentences, strong):
            text = " ".join(_sentences(sentences, shows_basis))
            return f"**{text}**" if strong and not shows_basis else text
        case Points(sentences):
            return "\n".join(f"- {text}" for text in _sentences(sentences, shows_basis))
        case Table():
            return _markdown_table(block)
        case Plot(twin=twin):
            return _markdown_table(twin)
        case Picture():
            return ""
        case IconArray(caption, rows):
            drawn = "\n\n".join("\n".join((row.label, *icon_lines(row))) for row in rows)
            return f"```text\n{drawn}\n```\n\n*{escape(caption)}*"
        case Listing(caption, text):
            fence = "```" if "```" not in text else "````"
            head = f"*{escape(caption)}*\n\n" if caption else ""
            return f"{head}{fence}text\n{text}\n{fence}"


def _markdown_table(table: Table) -> str:
    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(escape(c).replace("|", "\\|").replace("\n", " ") for c in cells) + " |"

    rule = "| " + " | ".join("---:" if i in table.numeric else "---" for i in range(len(table.header))) + " |"
    return "\n".join((f"*{escape(table.caption)}*", "", line(table.header), rule, *map(line, table.rows)))


def _sentences(sentences: Iterable[Sentence], shows_basis: bool) -> list[str]:
    if not shows_basis:
        return [escape(s.text) for s in sentences]
    return [f"{escape(s.text)} *({escape(s.basis)})*" for s in sentences]


ICON_COLUMNS = 20
_STEP = 10


def to_html(document: Document) -> str:
    """The page as a complete HTML document."""
    return environment().get_template("page.html").render(document=document)


@lru_cache(maxsize=1)
def environment() -> Environment:
    """The templates, with escaping on and undefined names refused."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("privspec.explain", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.globals.update(prose=_prose, source=_source, svg=_svg, data_uri=_data_uri, icon_svg=icon_svg)
    return made


def _prose(text: str) -> Markup:
    """Escaped text; what stands between backquotes becomes code."""
    from markupsafe import Markup, escape

    # numbers stay on one line with their signs and units
    tied = re.sub(r"(?<=[±≤≥→]) | (?=[→%])", "\u00a0", str(text))
    pieces = tied.split("`")
    if len(pieces) % 2 == 0:
        return escape(tied)
    marked = [Markup("<code>{}</code>").format(piece) if i % 2 else escape(piece) for i, piece in enumerate(pieces)]
    return Markup("").join(marked)


def _source(because: Because) -> Markup:
    """A source in words; a spec line shows its text to who hovers or listens."""
    from markupsafe import Markup, escape

    if isinstance(because, SpecLine) and because.text:
        return Markup('<span title="{}">{}</span>').format(because.text, str(because))
    return escape(str(because))


def _svg(text: str) -> Markup:
    """A drawing of our own, which holds no text of a user unescaped (matplotlib escapes what it writes)."""
    from markupsafe import Markup

    return Markup(text)


def _data_uri(svg: str) -> str:
    """An SVG file as the address of an image: its ids and styles stay out of the page."""
    return f"data:image/svg+xml;base64,{b64encode(svg.encode('utf-8')).decode('ascii')}"


def icon_svg(row: IconRow, figures: int = 100) -> Markup:
    """The 100 figures of a row, 20 a line, the first `filled` of them full."""
    from markupsafe import Markup

    drawn = icons_drawn(row, figures)
    lines = -(-figures // ICON_COLUMNS)
    marks = []
    for i in range(figures):
        x, y = (i % ICON_COLUMNS + 0.5) * _STEP, (i // ICON_COLUMNS + 0.5) * _STEP
        kind = "icon-full" if i < drawn else "icon-empty"
        marks.append(f'<circle class="{kind}" cx="{x:g}" cy="{y:g}" r="3.6"/>')
    return Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" '
        f'viewBox="0 0 {ICON_COLUMNS * _STEP} {lines * _STEP}" role="img" '
        'stroke-width="1" aria-label="{}">{}</svg>'
    ).format(row.label, Markup("".join(marks)))


def to_json(document: Document, found: Facts) -> str:
    """The page (sentences with status and sources, tables, plots as numbers) and all facts behind it."""
    values = {
        "format": FORMAT,
        "reader": document.reader,
        "title": document.title,
        "subtitle": document.subtitle,
        "plan_digest": found.digest,
        "spec_sha256": found.spec_sha256,
        "sections": [
            {"heading": section.heading, "blocks": [_block_json(block) for block in section.blocks]}
            for section in document.sections
        ],
        "facts": plain(found) | {"graph_words": "" if found.model is None else describe_graph(found.model)},
    }
    return json.dumps(values, ensure_ascii=False, indent=2) + "\n"


def plain(value: Any) -> Any:
    """Frozen data as dicts, lists, strings and numbers; objects that know their JSON form use it."""
    known = getattr(value, "to_json", None)
    if callable(known):
        return plain(known())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [f.name for f in dataclasses.fields(value) if f.name != "model"]
        return {name: plain(getattr(value, name)) for name in fields}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [plain(v) for v in value]
    if isinstance(value, frozenset):
        return sorted(plain(v) for v in value)
    if isinstance(value, Enum):
        return value.value
    return str(value) if isinstance(value, Fraction) else value


def _block_json(block: Block) -> dict[str, Any]:
    match block:
        case Paragraph(sentences) | Points(sentences):
            found: dict[str, Any] = {"sentences": [s.to_json() for s in sentences]}
        case Table(caption, header, rows):
            found = {"caption": caption, "header": list(header), "rows": [list(row) for row in rows]}
        case Plot(name=name, alt=alt, caption=caption, twin=twin):
            found = {"name": name, "alt": alt, "caption": caption, "table": _block_json(twin)}
        case Picture(alt=alt):
            found = {"alt": alt}
        case IconArray(caption, icons):
            drawn = [{"label": r.label, "filled": r.filled, "of": r.of} for r in icons]
            found = {"caption": caption, "rows": drawn}
        case Listing(caption, text):
            found = {"caption": caption, "text": text}
    return {"kind": block.kind, **found}


def infeasible_page(plan: Mapping[str, Any], facts: Facts, reader: str) -> Document:
    """Which lines conflict, why, and which single changes would work, each with its loss where it is known.

    Raises: KeyError if the plan is no infeasible plan.
    """
    lines = [facts.context.line(int(c["line"])) for c in plan["conflicts"]]
    because = tuple(lines) or (facts.context.trust_because,)
    reason = f"No mechanism can satisfy all of these lines: {str(plan['reason']).removesuffix('.')}."
    conflicts = Table(
        "Lines that cannot all hold",
        ("Line", "Text"),
        tuple((str(c["line"]), str(c["text"])) for c in plan["conflicts"]),
        numeric=frozenset({0}),
    )
    blocks: tuple[Block, ...] = (Paragraph((reported(reason, *because),)), conflicts)
    out: tuple[Block, ...] = (_changes(plan), *_in_vain(plan, facts))
    return Document(
        title=f"No plan for {facts.name}",
        subtitle=facts.title,
        reader=reader,
        shows_basis=reader != "public",
        sections=(
            Section("What conflicts", blocks),
            Section("What would work", out),
            *_without_noise(plan, facts),
        ),
        footer=f"Plan fingerprint (SHA-256) {facts.digest}; spec fingerprint {facts.spec_sha256}.",
    )


def _without_noise(plan: Mapping[str, Any], facts: Facts) -> tuple[Section, ...]:
    """What is true although no change makes it a guarantee: of random dictatorship, the theorems of Torra 2019."""
    if drawn_by_lot(facts.context.formulas):
        return (Section("What is true without noise", (Points(theorems(NO_DUMMIES)),)),)
    known = [r for r in plan["relaxations"] if not r.get("works", True) and not r.get("line")]
    found = tuple(
        reported(f"{str(r['change'])[0].upper()}{str(r['change'])[1:]}.", facts.context.trust_because) for r in known
    )
    return (Section("What is true nevertheless", (Points(found),)),) if found else ()


def _changes(plan: Mapping[str, Any]) -> Table:
    rows = tuple(
        (
            str(r["change"]),
            str(r["line"]) if r.get("line") else "",
            rounded(float(r["loss"]), LOSS_DIGITS).text if r.get("loss") is not None else "unknown",
        )
        for r in plan["relaxations"]
        if r.get("works", True)
    )
    return Table(
        "Smallest single changes that work",
        ("Change", "Line", "Loss then"),
        rows or (("no single change is known to work", "", ""),),
        numeric=frozenset({1, 2}),
    )


def _in_vain(plan: Mapping[str, Any], facts: Facts) -> tuple[Block, ...]:
    """What one might try first, and why no amount of it is enough."""
    found = tuple(
        reported(f"{str(r['change'])[0].upper()}{str(r['change'])[1:]}.", facts.context.line(int(r["line"])))
        for r in plan["relaxations"]
        if not r.get("works", True) and r.get("line")
    )
    return (Points(found),) if found else ()


FORMAT = "privspec-explanation/1.0"

READERS: Mapping[str, Callable[[Facts], Document]] = {
    "public": public_page,
    "auditor": auditor_page,
    "engineer": engineer_page,
}


def explain(
    plan: Mapping[str, Any],
    reader: str = "public",
    format: str = "md",  # noqa: A002 - the word of the interface
    model: Model | None = None,
    judgement: Judgement | None = None,
) -> str:
    """The explanation of a plan.

    Args: reader "public", "auditor" or "engineer"; format "md", "html" or "json"; the plan's model if any; what the
        kernel derived again in this run.
    Raises: UsageError for another reader or format, or a plan that is not of the form `privspec-plan/2.0`.
    """
    page = READERS.get(reader)
    writer = _WRITERS.get(format)
    if page is None:
        raise UsageError(Diagnostic("PS0721", f"there is no reader {reader!r}", help=f"choose {', '.join(READERS)}"))
    if writer is None:
        raise UsageError(Diagnostic("PS0721", f"there is no format {format!r}", help=f"choose {', '.join(_WRITERS)}"))
    try:
        found = facts(plan, model, judgement)
        document = page(found) if found.status != "infeasible" else infeasible_page(plan, found, reader)
        document = document.judged(found.judgement.derived)
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(Diagnostic("PS0711", f"this plan cannot be read: {error}")) from error
    return writer(document, found)


_WRITERS: Mapping[str, Callable[[Document, Facts], str]] = {
    "md": lambda document, _: to_markdown(document),
    "html": lambda document, _: to_html(document),
    "json": lambda document, found: to_json(document, found),
}


def plan_html(plan: Mapping[str, Any], model: Model | None = None, judgement: Judgement | None = None) -> str:
    """The plan in brief as HTML: status, error, noise, guarantees, and the odds as two rows of figures.

    Raises: ValueError, KeyError if the plan is not of the form `privspec-plan/2.0`.
    """
    found = facts(plan, model, judgement)
    weakest = found.weakest
    rows = weakest.question.icons(weakest.shown.odds).rows if weakest is not None and weakest.shown is not None else ()
    figures = [(row.label, icon_svg(row)) for row in rows]
    return (
        environment()
        .get_template("fragment.html")
        .render(facts=found, status=status_words(found), rows=brief_rows(found), figures=figures)
    )
