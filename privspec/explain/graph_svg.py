"""The graph of a model as a picture: self-contained SVG, read by shape and words as well as by colour."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from statistics import fmean
from typing import TYPE_CHECKING, TypeAlias
from xml.sax.saxutils import escape

from privspec.explain.graph_words import extent, observers
from privspec.language.syntax import VariableKind
from privspec.language.walk import names_used
from privspec.model.graph import GraphNode, Model
from privspec.model.reports import listing

if TYPE_CHECKING:
    import networkx  # type: ignore[import-untyped]

Graph: TypeAlias = "networkx.DiGraph[str]"
CHARACTER = 7.0
"""Width of a character of the node text, in pixels; the font's own figures are not known here."""

LINE = 17
MARGIN = 28
COLUMN_GAP = 76
ROW_GAP = 30
LONGEST = 30
NODES_LIMIT = 400


@dataclass(frozen=True, slots=True)
class Style:
    """How one role is drawn: `shape` is the outline, `word` stands in the node."""

    word: str
    shape: str
    fill: str
    stroke: str
    dashes: str = ""


STYLES = {
    "secret input": Style("secret input", "folded", "#fde7e2", "#a5281b"),
    "secret": Style("secret, computed", "box", "#fff5f2", "#a5281b"),
    "public": Style("public", "box", "#eef2f5", "#5b6b78", "5 4"),
    "choice": Style("chosen by the solver", "cut", "#f3effa", "#6a4c9c"),
    "output": Style("released", "pill", "#e2f2ea", "#1d7146"),
    "part": Style("another spec", "double", "#eef2f5", "#5b6b78"),
}

INK = "#1c2a35"
NOISE = "#b86e00"
_DASHES = ' stroke-dasharray="6 4"'


@dataclass(slots=True)
class Box:
    """A node with its place."""

    name: str
    lines: tuple[str, ...]
    style: Style
    noise: bool
    layer: int
    x: float = 0.0
    y: float = 0.0

    @property
    def width(self) -> float:
        """By its longest line; a sample of the legend has none."""
        return max(96.0, max(len(line) for line in self.lines) * CHARACTER + 32) if self.lines else 28.0

    @property
    def height(self) -> float:
        """By its number of lines, with room for the mark of noise."""
        return len(self.lines) * LINE + (28 if self.noise else 18)

    @property
    def middle(self) -> float:
        """Vertical centre."""
        return self.y + self.height / 2


def role(node: GraphNode) -> str:
    """The key of STYLES that a variable is drawn by."""
    match node.kind:
        case VariableKind.INPUT:
            return "secret input"
        case VariableKind.OUTPUT:
            return "output"
        case VariableKind.CHOOSE:
            return "choice"
        case VariableKind.INTERMEDIATE if node.secret:
            return "secret"
        case _:
            return "public"


def short(text: str, limit: int = LONGEST) -> str:
    """At most `limit` characters."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def _boxes(model: Model, graph: Graph) -> dict[str, Box]:
    sites, layers = _sites(model), _layers(model, graph)
    found: dict[str, Box] = {}
    for name, node in model.nodes.items():
        style = STYLES[role(node)]
        title = f"{name}[{node.index}]" if node.index else name
        lines = [short(title), style.word, *_what(node)]
        if node.definition is not None and node.kind is not VariableKind.CONSTANT:
            lines.insert(1, short("= " + " ".join(model.source.slice(node.definition.span).split())))
        found[name] = Box(name, tuple(lines), style, name in sites, layers[name])
    deepest = max((box.layer for box in found.values()), default=0)
    for part in model.components:
        words = (part.name, "another spec", short(part.model.name))
        found[part.name] = Box(part.name, words, STYLES["part"], False, deepest + 1)
    return found


def _what(node: GraphNode) -> tuple[str, ...]:
    text = extent(node)
    shape, _, domain = text.partition(" in ")
    if text.startswith("a table by "):
        names, _, cells = text.removeprefix("a table by ").rpartition(": ")
        return short(f"table: {cells}"), short(f"by {names}")
    return (short(shape), short(f"in {domain}")) if domain else (short(shape),)


def _sites(model: Model) -> frozenset[str]:
    """Where noise may enter, if the options say so; else at what is released."""
    if model.noise_at is None:
        return frozenset(node.name for node in model.outputs if node.definition is None)
    return frozenset(site.removeprefix("objective(").removesuffix(")") for site in model.noise_at)


def _whole(model: Model) -> Graph:
    """The graph of the model with the specs that are its parts."""
    graph = model.graph.copy()
    for part in model.components:
        chosen = [name for expr in part.overrides.values() for name in names_used(expr)]
        graph.add_edges_from((name, part.name) for name in (*part.links.values(), *chosen))
    return graph


def _layers(model: Model, graph: Graph) -> dict[str, int]:
    """The longest way from a source; a public value stands just before what first uses it."""
    import networkx

    graph = graph.subgraph(model.nodes)
    layers = {n: number for number, names in enumerate(networkx.topological_generations(graph)) for n in names}
    for name, node in model.nodes.items():
        if not graph.pred[name] and graph.succ[name] and not node.secret:
            layers[name] = max(0, min(layers[end] for end in graph.succ[name]) - 1)
    return layers


def _arrange(boxes: dict[str, Box], graph: Graph) -> tuple[float, float]:
    """Give every box its place; neighbours in consecutive layers are brought to similar heights."""
    columns: list[list[Box]] = [[] for _ in range(1 + max((b.layer for b in boxes.values()), default=0))]
    for box in boxes.values():
        columns[box.layer].append(box)
    columns = [column for column in columns if column]
    near = graph.subgraph(boxes).to_undirected()
    for _ in range(4):
        for column in columns:
            for row, box in enumerate(column):
                box.y = float(row) if box.y == 0 else box.y
            column.sort(key=lambda box: fmean([boxes[n].y for n in near[box.name]] or [box.y]))
            for row, box in enumerate(column):
                box.y = (row + 1) / (len(column) + 1) * len(boxes)
    tallest = max((sum(b.height + ROW_GAP for b in column) for column in columns), default=0.0)
    x, top = float(MARGIN), float(MARGIN + 34)
    for column in columns:
        width = max(box.width for box in column)
        y = top + (tallest - sum(b.height + ROW_GAP for b in column)) / 2
        for box in column:
            box.x, box.y = x + (width - box.width) / 2, y
            y += box.height + ROW_GAP
        x += width + COLUMN_GAP
    return x - COLUMN_GAP + MARGIN, top + tallest


# --- drawing --------------------------------------------------------------------------------------


def _outline(box: Box) -> str:
    x, y, w, h = box.x, box.y, box.width, box.height
    paint = f'fill="{box.style.fill}" stroke="{box.style.stroke}" stroke-width="1.6"'
    rect = f'<rect x="{x}" y="{y}" width="{w}" height="{h}"'
    match box.style.shape:
        case "folded":
            corner = 14
            points = f"{x},{y} {x + w - corner},{y} {x + w},{y + corner} {x + w},{y + h} {x},{y + h}"
            fold = f"M{x + w - corner},{y} v{corner} h{corner}"
            line = f'<path d="{fold}" fill="none" stroke="{box.style.stroke}" stroke-width="1.2"/>'
            return f'<polygon points="{points}" {paint}/>{line}'
        case "cut":
            c, half = 12, y + h / 2
            ring = ((x + c, y), (x + w - c, y), (x + w, half), (x + w - c, y + h), (x + c, y + h), (x, half))
            return f'<polygon points="{" ".join(f"{across},{down}" for across, down in ring)}" {paint}/>'
        case "pill":
            return f'{rect} rx="{min(h / 2, 26)}" {paint}/>'
        case "double":
            inner = f'<rect x="{x + 4}" y="{y + 4}" width="{w - 8}" height="{h - 8}" fill="none"'
            return f'{rect} {paint}/>{inner} stroke="{box.style.stroke}"/>'
    dashes = f' stroke-dasharray="{box.style.dashes}"' if box.style.dashes else ""
    return f'{rect} rx="3" {paint}{dashes}/>'


def _node(box: Box) -> Iterator[str]:
    description = ", ".join(box.lines) + (", noise may enter here" if box.noise else "")
    yield f'<g role="img"><title>{escape(description)}</title>'
    yield _outline(box)
    centre = box.x + box.width / 2
    for row, line in enumerate(box.lines):
        weight = ' font-weight="700" font-size="14"' if row == 0 else ""
        y = box.y + 24 + row * LINE
        yield f'<text x="{centre:.1f}" y="{y:.1f}" text-anchor="middle"{weight}>{escape(line)}</text>'
    if box.noise:
        yield from _badge(box.x + box.width - 34, box.y + box.height)
    yield "</g>"


def _badge(x: float, y: float) -> Iterator[str]:
    """A star-edged mark with the word, astride the lower edge of a node."""
    yield (
        f'<rect x="{x - 34:.1f}" y="{y - 10:.1f}" width="68" height="20" rx="10" fill="#fff8ea" '
        f'stroke="{NOISE}" stroke-width="1.6"/>'
    )
    yield f'<path d="M{x - 27:.1f},{y:.1f} l3,-5 l4,9 l4,-8 l3,4" fill="none" stroke="{NOISE}" stroke-width="1.5"/>'
    yield f'<text x="{x + 10:.1f}" y="{y + 4:.1f}" text-anchor="middle" font-size="12">noise</text>'


def _edge(start: Box, end: Box, released: bool) -> str:
    x1, y1, x2, y2 = start.x + start.width, start.middle, end.x - 3, end.middle
    if x2 <= x1:
        # a node further left: leave and enter from below
        x1, y1 = start.x + start.width / 2, start.y + start.height
        x2, y2 = end.x + end.width / 2, end.y + end.height
        way = f"M{x1:.1f},{y1:.1f} C{x1:.1f},{y1 + 60:.1f} {x2:.1f},{y2 + 60:.1f} {x2:.1f},{y2 + 3:.1f}"
    else:
        bend = max(24.0, (x2 - x1) / 2)
        way = f"M{x1:.1f},{y1:.1f} C{x1 + bend:.1f},{y1:.1f} {x2 - bend:.1f},{y2:.1f} {x2:.1f},{y2:.1f}"
    return f'<path d="{way}" class="edge" marker-end="url(#tip)"{_DASHES if released else ""}/>'


LEGEND_WIDTH = 760
"""The least width at which the legend breaks into a further row."""

LEGEND_ROW = 28


def _legend(
    roles: Iterable[Style], noise: bool, arrows: Iterable[bool], top: float, width: float
) -> tuple[list[str], float, float]:
    """Samples of the outlines, of the mark of noise and of the arrows (dashed or not), in rows of `width`.

    Returns: the drawing, the width it needs, and the top of its last row.
    """
    entries: list[tuple[float, Callable[[float, float], Iterator[str]]]] = []
    entries += [(38 + len(style.word) * 6.6, partial(_style_sample, style)) for style in roles]
    entries += [(76 + 20 * 6.6, _noise_sample)] if noise else []
    entries += [(42 + len(_ARROWS[dashed]) * 6.6, partial(_arrow_sample, dashed)) for dashed in arrows]
    parts: list[str] = []
    x, y, widest = float(MARGIN), top, 0.0
    for size, draw in entries:
        if x > MARGIN and x + size + MARGIN > max(width, LEGEND_WIDTH):
            x, y = float(MARGIN), y + LEGEND_ROW
        parts.extend(draw(x, y))
        x += size + 24
        widest = max(widest, x - 24 + MARGIN)
    return parts, widest, y


_ARROWS = {False: "is used in", True: "is released through"}
"""What the arrows mean, by whether they are dashed."""


def _style_sample(style: Style, x: float, y: float) -> Iterator[str]:
    yield _outline(Box("", (), style, False, 0, x, y + 1))
    yield f'<text x="{x + 38:.1f}" y="{y + 14:.1f}" font-size="12">{escape(style.word)}</text>'


def _noise_sample(x: float, y: float) -> Iterator[str]:
    yield from _badge(x + 34, y + 10)
    yield f'<text x="{x + 76:.1f}" y="{y + 14:.1f}" font-size="12">noise may enter here</text>'


def _arrow_sample(dashed: bool, x: float, y: float) -> Iterator[str]:
    dashes = _DASHES if dashed else ""
    yield f'<path d="M{x:.1f},{y + 10:.1f} h34" class="edge" marker-end="url(#tip)"{dashes}/>'
    yield f'<text x="{x + 42:.1f}" y="{y + 14:.1f}" font-size="12">{_ARROWS[dashed]}</text>'


def _description(model: Model) -> str:
    secret = listing(node.name for node in model.inputs) or "nothing"
    released = listing(node.name for node in model.outputs) or "what its parts release"
    who = "; ".join(f"{name}: {listing(outputs)}" for name, outputs in observers(model).items())
    return f"{secret} is secret; {released} is released. Who sees what: {who}. Trust: {model.trust.describe()}."


def graph_svg(model: Model) -> str:
    """The graph as SVG: time runs from left to right, from secret inputs to what is released.

    Secret, public and released values, and places where noise may enter, differ in outline and wording, not
    only in colour. The file needs no fonts, scripts or other files.
    """
    graph = _whole(model)
    boxes = dict(islice(_boxes(model, graph).items(), NODES_LIMIT))
    edges = list(graph.subgraph(boxes).edges)
    width, bottom = _arrange(boxes, graph)
    used = [style for style in STYLES.values() if any(box.style is style for box in boxes.values())]
    arrows = sorted({boxes[b].style.shape == "pill" for _, b in edges})
    legend, needed, last = _legend(used, any(box.noise for box in boxes.values()), arrows, bottom + 24, width)
    footer = [f"seen by {name}: {listing(outputs)}" for name, outputs in observers(model).items()]
    footer.append(f"trust {model.trust.name}: {model.trust.describe()}")
    width = max(width, needed, 2 * MARGIN + max(len(line) for line in footer) * 6.6)
    height = last + 34 + len(footer) * LINE + 14
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-labelledby="graph-title graph-description">',
        f'<title id="graph-title">The graph of {escape(model.name)}</title>',
        f'<desc id="graph-description">{escape(_description(model))}</desc>',
        f"<style>text{{font-family:system-ui,'Segoe UI','DejaVu Sans',sans-serif;font-size:13px;fill:{INK}}}"
        ".edge{fill:none;stroke:#44525e;stroke-width:1.4}</style>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
        'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#44525e"/></marker></defs>',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        f'<text x="{MARGIN}" y="{MARGIN + 8}" font-size="17" font-weight="700">{escape(model.name)}</text>',
    ]
    parts.extend(_edge(boxes[a], boxes[b], boxes[b].style.shape == "pill") for a, b in edges)
    for box in boxes.values():
        parts.extend(_node(box))
    parts.extend(legend)
    for row, line in enumerate(footer):
        y = last + 34 + (row + 1) * LINE
        parts.append(f'<text x="{MARGIN}" y="{y:.1f}" font-size="12">{escape(line)}</text>')
    parts.append("</svg>")
    return "\n".join(parts) + "\n"
