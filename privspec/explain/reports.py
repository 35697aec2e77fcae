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
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privspec.core.diagnostics import UsageError
from privspec.explain.auditor import auditor_page
from privspec.explain.designs import with_design
from privspec.explain.document import (
    Because,
    Block,
    Document,
    IconArray,
    IconRow,
    Listing,
    Note,
    Notes,
    Paragraph,
    Picture,
    Plot,
    Points,
    Sentence,
    SpecLine,
    Table,
    note_text,
    reported,
)
from privspec.explain.engineer import engineer_page, register_text
from privspec.explain.facts import Facts, Judgement
from privspec.explain.graphs import describe_graph
from privspec.explain.messages import phrase, sentences, tabled, titled
from privspec.explain.paper import drawn_by_lot, theorems
from privspec.explain.public import public_page
from privspec.explain.quantities import LOSS_DIGITS, known
from privspec.explain.reading import facts
from privspec.explain.summary import brief_rows, status_words
from privspec.stated import Stated

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
        case Notes(names):
            head = (
                "*In full in the HTML form of this page, and in the folder `privspec/noise/notes` of the package*\n\n"
            )
            return head + "\n".join(f"- note {name}: {escape(note_text(name)[0])}" for name in names)
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
    made.globals.update(note=_note, prose=_prose, source=_source, svg=_svg, data_uri=_data_uri, icon_svg=icon_svg)
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


_INLINE = re.compile(r"\*\*(.+?)\*\*|`([^`]+)`", re.DOTALL)


def _note(name: str) -> tuple[str, Markup]:
    """The title of a note, and its text: paragraphs, lists and formulas, as they are written."""
    from markupsafe import Markup, escape

    def inline(text: str) -> Markup:
        found, at = Markup(""), 0
        for match in _INLINE.finditer(text):
            tag = "strong" if match[1] else "code"
            found += escape(text[at : match.start()]) + Markup(f"<{tag}>{{}}</{tag}>").format(match[1] or match[2])
            at = match.end()
        return found + escape(text[at:])

    title, rest = note_text(name)
    made = Markup("")
    for part in re.split(r"\n\s*\n", rest):
        if part.startswith(("    ", "|", "```")):
            made += Markup("<pre>{}</pre>\n").format(part)
        elif part.startswith(("- ", "1. ")):
            items = re.split(r"\n(?=- |\d+\. )", part)
            made += Markup("<ul>{}</ul>\n").format(
                Markup("").join(
                    Markup("<li>{}</li>").format(inline(re.sub(r"^(- |\d+\. )", "", item))) for item in items
                )
            )
        else:
            made += Markup("<p>{}</p>\n").format(inline(part.removeprefix("## ")))
    return title, made


def _source(because: Because) -> Markup:
    """A source in words; a spec line shows its text to who hovers or listens, a note is a step away where it stands."""
    from markupsafe import Markup, escape

    if isinstance(because, Note):
        return Markup('<a href="#note-{}">{}</a>').format(because.name, str(because))
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
    if callable(known := getattr(value, "to_json", None)):
        return plain(known())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value) if f.repr}
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
    """The block but for its drawings and its looks."""
    names = ("sentences", "name", "alt", "caption", "header", "rows", "text", "notes")
    found = {name: plain(getattr(block, name)) for name in names if hasattr(block, name)}
    return {"kind": block.kind, **found, **({"table": _block_json(block.twin)} if isinstance(block, Plot) else {})}


def infeasible_page(plan: Stated, facts: Facts, reader: str) -> Document:
    """Which lines conflict, why, and which single changes would work, each with its loss where it is known."""
    where = facts.context
    because = tuple(where.line(c.line) for c in plan.conflicts) or (where.trust_because,)
    reason = sentences("infeasible.reason", because=because, reason=plan.reason.removesuffix("."))
    conflicts = tabled("infeasible.lines", plan.conflicts)
    works = [(r.change, r.line or None, known(r.loss, LOSS_DIGITS) or "unknown") for r in plan.relaxations if r.works]
    none = [(phrase("infeasible.page.unknown"), None, None)]
    in_vain = [r for r in plan.relaxations if not r.works]
    # what one might try first, and why no amount of it is enough
    tried = tuple(reported(_upper(r.change), where.line(r.line)) for r in in_vain if r.line)
    true = tuple(reported(_upper(r.change), where.trust_because) for r in in_vain if not r.line)
    lot = drawn_by_lot(where.formulas)
    found = titled(
        "infeasible.headings",
        conflict=(Paragraph(reason), conflicts),
        works=(tabled("infeasible.changes", works or none), Points(tried) if tried else None),
        # no guarantee, but true: of random dictatorship, the theorems of Torra 2019
        without_noise=(Points(theorems()),) if lot else (),
        nevertheless=(Points(true),) if true and not lot else (),
    )
    return Document(
        title=phrase("infeasible.page.title", name=facts.name),
        subtitle=facts.title,
        reader=reader,
        shows_basis=reader != "public",
        sections=tuple(found),
        footer=facts.footer,
    )


def _upper(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


FORMAT = "privspec-explanation/1.0"

REGISTER = "register"
"""Not a reader but the register of deployments, for which there is one form, JSON."""
READERS: Mapping[str, Callable[[Facts], Document]] = {
    "public": public_page,
    "auditor": auditor_page,
    "engineer": engineer_page,
}


def _explain(
    plan: Mapping[str, Any],
    reader: str = "public",
    format: str = "md",  # noqa: A002 - the word of the interface
    model: Model | None = None,
    judgement: Judgement | None = None,
) -> str:
    """The explanation of a plan.

    Args: reader "public", "auditor" or "engineer", or "register" for an entry of the register of deployments, always
        JSON; format "md", "html" or "json"; the plan's model if any; what the kernel derived again in this run.
    Raises: UsageError for another reader or format, or a plan that is not of the form `privspec-plan/3.0`.
    """
    if reader == REGISTER:
        return register_text(facts(plan, model, judgement))
    page = READERS.get(reader)
    writer = _WRITERS.get(format)
    if page is None:
        raise UsageError.of("PS0721", f"there is no reader {reader!r}", help=f"choose {', '.join(READERS)}")
    if writer is None:
        raise UsageError.of("PS0721", f"there is no format {format!r}", help=f"choose {', '.join(_WRITERS)}")
    try:
        found = facts(plan, model, judgement)
        document = page(found) if found.status != "infeasible" else infeasible_page(Stated.of(plan), found, reader)
        document = with_design(document, found.design)
        document = document.judged(found.judgement.derived).with_notes()
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError.of("PS0711", f"this plan cannot be read: {error}") from error
    return writer(document, found)


def _explain_release(
    plan: Mapping[str, Any],
    path: Path,
    form: str = "md",
    model: Model | None = None,
    judgement: Judgement | None = None,
) -> str:
    """The page of a release of this plan: its figures with limits, and what is said of their errors.

    Raises: UsageError PS0735 for what is no release, or one of another plan; PS0721 for another format.
    """
    from privspec.explain.published import no_release, read_release, release_page

    release = read_release(path)
    if release.get("plan_sha256") != plan.get("digest"):
        raise UsageError.of("PS0735", f"{path} is a release of another plan", help="give the plan that made it")
    try:
        found = facts(plan, model, judgement)
        return _WRITERS[form](release_page(found, plan, release).judged(found.judgement.derived), found)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        raise no_release(path) from None


_WRITERS: Mapping[str, Callable[[Document, Facts], str]] = {
    "md": lambda document, _: to_markdown(document),
    "html": lambda document, _: to_html(document),
    "json": lambda document, found: to_json(document, found),
}


def _plan_html(plan: Mapping[str, Any], model: Model | None = None, judgement: Judgement | None = None) -> str:
    """The plan in brief as HTML: status, error, noise, guarantees, and the odds as two rows of figures.

    Raises: ValueError, KeyError if the plan is not of the form `privspec-plan/3.0`.
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
