"""The graph of a model, drawn and in words: what is secret, what is computed, what is released, and to whom."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from itertools import islice
from statistics import fmean
from typing import TYPE_CHECKING, TypeAlias

from privspec.core.records import dataclass
from privspec.explain.drawing import cut, number, tag, text, way
from privspec.language.syntax import VariableKind
from privspec.model.domains import Laws, Tables
from privspec.model.graph import GraphNode, Model, condition_words, once, value_text
from privspec.model.parameters import parameter_words
from privspec.model.reports import listing
from privspec.model.requirements import Requirement
from privspec.model.targets import Degree, degree_of, linear_map
from privspec.model.values import Array, show

if TYPE_CHECKING:
    import networkx  # type: ignore[import-untyped]


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
        _section(
            "Declared of entries (for lines that say `given the model` only)",
            (f"line {line}: {text}" for chain in model.chains for line, text in chain.lines),
        ),
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
    if (drawn := model.drawn) is not None:
        words = f"{listing([show(value) for value in drawn.values], 'or')}; the rest of this is for the last"
        rows.append((drawn.name, f"drawn from the data first, which spends {show(drawn.epsilon)}: {words}"))
    yield from _columns(rows)


def _components(model: Model) -> Iterator[str]:
    for part in model.components:
        links = ", ".join(f"its {own} is {name} here" for own, name in part.links.items())
        often = f", {part.times} times" if part.times > 1 else ""
        when = f", if {condition_words(part)}" if part.only_if is not None else ""
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


def _models(model: Model) -> Iterator[str]:
    for line, span in dict.fromkeys((found.line, found.span) for found in model.models):
        text = next((model.text(one) for one in model.spec.background if one.span == span), "")
        yield f"line {line}: {text}"


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
    from privspec.families.gaussian.differences import sensitivity  # the front end does without the kernel

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


# --- drawn ----------------------------------------------------------------------------------------


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
    dashes: str | None = None


STYLES = {
    "secret input": Style("secret input", "folded", "#fde7e2", "#a5281b"),
    "secret": Style("secret, computed", "box", "#fff5f2", "#a5281b"),
    "public": Style("public", "box", "#eef2f5", "#5b6b78", "5 4"),
    "choice": Style("chosen by the solver", "cut", "#f3effa", "#6a4c9c"),
    "output": Style("released", "pill", "#e2f2ea", "#1d7146"),
    "part": Style("another spec", "double", "#eef2f5", "#5b6b78"),
}

INK, LINES, NOISE = "#1c2a35", "#44525e", "#b86e00"
_DASHED = "6 4"


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
    def released(self) -> bool:
        """Whether it is an output."""
        return self.style.shape == "pill"

    @property
    def middle(self) -> float:
        """Vertical centre."""
        return self.y + self.height / 2


_ROLES = {VariableKind.INPUT: "secret input", VariableKind.OUTPUT: "output", VariableKind.CHOOSE: "choice"}


def role(node: GraphNode) -> str:
    """The key of STYLES that a variable is drawn by."""
    computed = "secret" if node.kind is VariableKind.INTERMEDIATE and node.secret else "public"
    return _ROLES.get(node.kind, computed)


def _boxes(model: Model, graph: Graph) -> dict[str, Box]:
    sites, layers = _sites(model), _layers(model, graph)
    found: dict[str, Box] = {}
    for name, node in model.nodes.items():
        style = STYLES[role(node)]
        title = f"{name}[{node.index}]" if node.index else name
        lines = [cut(title, LONGEST), style.word, *_what(node)]
        if node.definition is not None and node.kind is not VariableKind.CONSTANT:
            lines.insert(1, cut("= " + model.text(node.definition), LONGEST))
        found[name] = Box(name, tuple(lines), style, name in sites, layers[name])
    return found


def _what(node: GraphNode) -> tuple[str, ...]:
    text = extent(node)
    shape, _, domain = text.partition(" in ")
    if text.startswith("a table by "):
        names, _, cells = text.removeprefix("a table by ").rpartition(": ")
        return cut(f"table: {cells}", LONGEST), cut(f"by {names}", LONGEST)
    found = (shape, f"in {domain}") if domain else (shape,)
    return tuple(cut(line, LONGEST) for line in found)


def _sites(model: Model) -> frozenset[str]:
    """Where noise may enter, if the options say so; else at what is released."""
    if model.noise_at is None:
        return frozenset(node.name for node in model.outputs if node.definition is None)
    return frozenset(site.removeprefix("objective(").removesuffix(")") for site in model.noise_at)


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
    x, y, w, h, style = box.x, box.y, box.width, box.height, box.style
    paint = {"fill": style.fill, "stroke": style.stroke, "stroke_width": 1.6}
    place = {"x": x, "y": y, "width": w, "height": h}
    match style.shape:
        case "folded":
            c = 14.0
            ring = [(x, y), (x + w - c, y), (x + w, y + c), (x + w, y + h), (x, y + h)]
            fold = tag(
                "path", d=way("M", x + w - c, y, "v", c, "h", c), fill="none", stroke=style.stroke, stroke_width=1.2
            )
            return _polygon(ring, **paint) + fold
        case "cut":
            c, half = 12.0, y + h / 2
            ring = [(x + c, y), (x + w - c, y), (x + w, half), (x + w - c, y + h), (x + c, y + h), (x, half)]
            return _polygon(ring, **paint)
        case "pill":
            return tag("rect", **place, rx=min(h / 2, 26.0), **paint)
        case "double":
            inside = {"x": x + 4, "y": y + 4, "width": w - 8, "height": h - 8, "stroke": style.stroke}
            return tag("rect", **place, **paint) + tag("rect", **inside, fill="none")
    return tag("rect", **place, rx=3, **paint, stroke_dasharray=style.dashes)


def _polygon(ring: Iterable[tuple[float, float]], **paint: object) -> str:
    return tag("polygon", points=" ".join(f"{number(x)},{number(y)}" for x, y in ring), **paint)


def _node(box: Box) -> str:
    description = ", ".join(box.lines) + (", noise may enter here" if box.noise else "")
    parts, centre = [tag("title", escape(description, quote=False)), _outline(box)], box.x + box.width / 2
    for row, line in enumerate(box.lines):
        weight = {"font_weight": 700, "font_size": 14} if row == 0 else {}
        parts.append(text(centre, box.y + 24 + row * LINE, line, text_anchor="middle", **weight))
    badge = _badge(box.x + box.width - 34, box.y + box.height) if box.noise else ""
    return tag("g", *parts, badge, role="img")


def _badge(x: float, y: float) -> str:
    """A star-edged mark with the word, astride the lower edge of a node."""
    place = {"x": x - 34, "y": y - 10, "width": 68, "height": 20, "rx": 10}
    wave = f"{way('M', x - 27, y)} l3,-5 l4,9 l4,-8 l3,4"
    return (
        tag("rect", **place, fill="#fff8ea", stroke=NOISE, stroke_width=1.6)
        + tag("path", d=wave, fill="none", stroke=NOISE, stroke_width=1.5)
        + text(x + 10, y + 4, "noise", text_anchor="middle", font_size=12)
    )


def _edge(start: Box, end: Box) -> str:
    """An arrow; to a node further left it leaves and enters from below. Dashed where the node is released."""
    x1, y1, x2, y2 = start.x + start.width, start.middle, end.x - 3, end.middle
    if x2 > x1:
        bend = max(24.0, (x2 - x1) / 2)
        return _arrow(way("M", x1, y1, "C", x1 + bend, y1, x2 - bend, y2, x2, y2), end.released)
    x1, y1 = start.x + start.width / 2, start.y + start.height
    x2, y2 = end.x + end.width / 2, end.y + end.height
    return _arrow(way("M", x1, y1, "C", x1, y1 + 60, x2, y2 + 60, x2, y2 + 3), end.released)


def _arrow(path: str, dashed: bool) -> str:
    return tag("path", d=path, class_="edge", marker_end="url(#tip)", stroke_dasharray=_DASHED if dashed else None)


LEGEND_WIDTH = 760
"""The least width at which the legend breaks into a further row."""

LEGEND_ROW = 28
_ARROWS = {False: "is used in", True: "is released through"}
"""What the arrows mean, by whether they are dashed."""


def _legend(
    roles: Iterable[Style], noise: bool, arrows: Iterable[bool], top: float, width: float
) -> tuple[list[str], float, float]:
    """Samples of the outlines, of the mark of noise and of the arrows (dashed or not), in rows of `width`.

    Returns: the drawing, the width it needs, and the top of its last row.
    """
    samples: list[tuple[str, float, Style | bool | None]] = [(style.word, 38, style) for style in roles]
    samples += [("noise may enter here", 76, None)] if noise else []
    samples += [(_ARROWS[dashed], 42, dashed) for dashed in arrows]
    parts: list[str] = []
    x, y, widest = float(MARGIN), top, 0.0
    for words, indent, sample in samples:
        size = indent + len(words) * 6.6
        if x > MARGIN and x + size + MARGIN > max(width, LEGEND_WIDTH):
            x, y = float(MARGIN), y + LEGEND_ROW
        if isinstance(sample, Style):
            parts.append(_outline(Box("", (), sample, False, 0, x, y + 1)))
        else:
            parts.append(_badge(x + 34, y + 10) if sample is None else _arrow(way("M", x, y + 10, "h", 34.0), sample))
        parts.append(text(x + indent, y + 14, words, font_size=12))
        x += size + 24
        widest = max(widest, x - 24 + MARGIN)
    return parts, widest, y


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
    graph = model.graph
    boxes = dict(islice(_boxes(model, graph).items(), NODES_LIMIT))
    edges = [(boxes[a], boxes[b]) for a, b in graph.subgraph(boxes).edges]
    width, bottom = _arrange(boxes, graph)
    used = [style for style in STYLES.values() if any(box.style is style for box in boxes.values())]
    arrows, noise = sorted({end.released for _, end in edges}), any(box.noise for box in boxes.values())
    legend, needed, last = _legend(used, noise, arrows, bottom + 24, width)
    footer = [f"seen by {name}: {listing(outputs)}" for name, outputs in observers(model).items()]
    footer.append(f"trust {model.trust.name}: {model.trust.describe()}")
    width = round(max(width, needed, 2 * MARGIN + max(len(line) for line in footer) * 6.6))
    height = round(last + 34 + len(footer) * LINE + 14)
    style = (
        f"text{{font-family:system-ui,'Segoe UI','DejaVu Sans',sans-serif;font-size:13px;fill:{INK}}}"
        f".edge{{fill:none;stroke:{LINES};stroke-width:1.4}}"
    )
    tip = {"viewBox": "0 0 8 8", "refX": 7, "refY": 4, "markerWidth": 8, "markerHeight": 8, "orient": "auto"}
    head = tag("marker", tag("path", d="M0,0 L8,4 L0,8 z", fill=LINES), id="tip", **tip)
    parts = [
        tag("title", f"The graph of {escape(model.name, quote=False)}", id="graph-title"),
        tag("desc", escape(_description(model), quote=False), id="graph-description"),
        tag("style", style),
        tag("defs", head),
        tag("rect", width=width, height=height, fill="#ffffff"),
        text(MARGIN, MARGIN + 8, model.name, font_size=17, font_weight=700),
        *(_edge(*ends) for ends in edges),
        *map(_node, boxes.values()),
        *legend,
        *(text(MARGIN, last + 34 + row * LINE, line, font_size=12) for row, line in enumerate(footer, start=1)),
    ]
    whole = {"width": width, "height": height, "viewBox": f"0 0 {width} {height}", "role": "img"}
    labels = "graph-title graph-description"
    inside = "\n".join(("", *parts, ""))
    return tag("svg", inside, xmlns="http://www.w3.org/2000/svg", **whole, aria_labelledby=labels) + "\n"
