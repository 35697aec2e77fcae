"""Pages as one HTML file that needs nothing else: styles, plots and figures are inside it."""

from __future__ import annotations

import re
from base64 import b64encode
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from privspec.explain.document import (
    Block,
    Document,
    IconArray,
    IconRow,
    Listing,
    Paragraph,
    Picture,
    Plot,
    Points,
    Table,
)
from privspec.explain.markdown import icons_drawn
from privspec.explain.sentences import Because, SpecLine

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

ICON_COLUMNS = 20
_STEP = 10
_MACROS = {
    Paragraph: "paragraph",
    Points: "points",
    Table: "table",
    Plot: "plot",
    Picture: "picture",
    IconArray: "icons",
    Listing: "listing",
}


def to_html(document: Document) -> str:
    """The page as a complete HTML document."""
    templates = environment()
    macros: Any = templates.get_template("blocks.html").module

    def render(block: Block) -> Markup:
        from markupsafe import Markup

        macro = getattr(macros, _MACROS[type(block)])
        takes_basis = isinstance(block, Paragraph | Points)
        return Markup(macro(block, document.shows_basis) if takes_basis else macro(block))

    page = templates.get_template("page.html")
    return page.render(document=document, render=render, style=_style())


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


def _style() -> Markup:
    from markupsafe import Markup

    return Markup(resources.files("privspec.explain").joinpath("templates/style.css").read_text("utf-8"))


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
