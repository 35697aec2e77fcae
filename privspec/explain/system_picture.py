"""A system in one picture: what each part is computed from, where its noise goes, who sees it, its share of lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

from privspec.explain import drawing
from privspec.explain.curves import Curve, EpsilonDeltaCurve, GaussianCurve, consequences
from privspec.explain.document import Judged, Note, Plot, Sentence, proved, table
from privspec.explain.drawing import themed
from privspec.explain.facts import Facts
from privspec.explain.graph_words import observers
from privspec.explain.quantities import Quantity
from privspec.explain.svg import number, tag, text, way
from privspec.model.reports import listing
from privspec.stated import Share

WIDTH = 374.0
LEFT, MIDDLE, RIGHT = (4.0, 76.0), (112.0, 170.0), (318.0, 52.0)
"""Where the columns of inputs, parts and observers begin, and how wide they are."""
BOX, GAP, TOP = 50.0, 10.0, 22.0
SMALL, LETTER = 7.5, 3.9
_INK, _PAGE, _MUTED, _LINE = map(themed, (drawing.INK, drawing.PAGE, drawing.MUTED, drawing.GRID))
_FILL = themed(drawing.ACCENT)
_COMPOSED = Note("composition")


@dataclass(frozen=True, slots=True)
class PartOfPicture:
    """One part; `alone`: by how much one who sees nothing else beats a guess at most, from its largest share."""

    names: str
    inputs: tuple[str, ...]
    noise: str
    seen_by: tuple[str, ...]
    spends: str
    alone: Quantity | None


def curve_of(share: Share) -> Curve | None:
    """What a share lets through; None for a measure without a curve of its own."""
    amounts = {name: float(Fraction(value)) for name, value in share.amounts}
    if "mu" in amounts or "rho" in amounts:
        return GaussianCurve(amounts.get("mu", sqrt(2 * amounts.get("rho", 0.0))))
    return EpsilonDeltaCurve(amounts["epsilon"], amounts.get("delta", 0.0)) if "epsilon" in amounts else None


def parts_of_picture(
    parts: Sequence[Facts], spent: Sequence[str], shares: Sequence[Sequence[Share]], whole: Facts
) -> tuple[PartOfPicture, ...]:
    """The parts in order, with who sees them by the lines of the whole spec."""
    seen = {"anyone": tuple(sorted(whole.mechanism.released))} if whole.model is None else observers(whole.model)
    found = []
    for part, words, own in zip(parts, spent, shares, strict=True):
        released = part.mechanism.released
        curves = [curve for share in own if (curve := curve_of(share)) is not None]
        alone = max((consequences(curve).advantage for curve in curves), key=lambda one: one.value, default=None)
        inputs = () if part.model is None else tuple(node.name for node in part.model.inputs)
        who = tuple(name for name, outputs in seen.items() if released & set(outputs))
        found.append(PartOfPicture(listing(sorted(released)), inputs, part.mechanism.drawn(part), who, words, alone))
    return tuple(found)


def system_plot(parts: Sequence[PartOfPicture]) -> Plot:
    """The picture, with a table of what it shows."""
    rows = [(one.names, listing(one.inputs), one.noise, listing(one.seen_by), one.spends, one.alone) for one in parts]
    header = "Released | Computed from | Noise | Seen by | Spends | Advantage by itself, at most"
    caption = "What each part is computed from, where its noise goes, who sees it, and its share (claim privacy)"
    longest = f"the longest bar is that of {max(parts, key=_bar).names}" if parts else "there are no parts"
    return Plot(
        name="system",
        draw=lambda: draw(parts),
        alt=f"Inputs on the left, {len(parts)} parts in the middle, those who see them on the right; {longest}.",
        caption="Where the noise goes, who sees what, how the budget splits: the longer the bar, the more one who sees "
        "that part alone can beat a guess.",
        twin=table(caption, header, rows, 5),
    )


def line_sentences(facts: Facts, by_line: Mapping[int, Sequence[tuple[str, str]]]) -> Iterator[Sentence]:
    """A sentence for each line: what it asks of what is released together, and what every part spends of it.

    Args: by_line, for the number of a line, the outputs of each part that shares it, and its share in words.
    """
    for fact in facts.claims:
        claim = fact.claim
        shares = by_line.get(claim.requirement, ())
        spent = "; ".join(f"{names} {'spend' if ' and ' in names else 'spends'} {share}" for names, share in shares)
        if len(shares) > 1:
            yield proved(
                f"{claim.sentence}: {spent}. Together they keep to it.", claim.line, _COMPOSED, Judged("privacy")
            )
        elif shares:
            yield proved(f"{claim.sentence}: {spent}, and nothing else does.", claim.line, Judged("privacy"))


# --- drawing ---------------------------------------------------------------------------------------------


def _bar(part: PartOfPicture) -> float:
    return 0.0 if part.alone is None else min(max(part.alone.value, 0.0), 1.0)


def _fitted(words: str, wide: float) -> str:
    most = int(wide / LETTER)
    return words if len(words) <= most else f"{words[: most - 1].rstrip()}…"


def _words(x: float, y: float, words: str, wide: float, colour: str = _INK, **more: object) -> str:
    return text(x, y, _fitted(words, wide), font_size=SMALL, fill=colour, **more)


def _boxes(names: Sequence[str], column: tuple[float, float], height: float) -> tuple[dict[str, float], list[str]]:
    """Named boxes spread over a column: the middle of each, and their drawings."""
    left, wide = column
    step = height / max(len(names), 1)
    middles = {name: TOP + step * (i + 0.5) for i, name in enumerate(names)}
    drawn = [
        part
        for name, y in middles.items()
        for part in (
            tag("rect", x=left, y=y - 9, width=wide, height=18.0, rx=3.0, fill=_PAGE, stroke=_LINE, stroke_width=0.8),
            _words(left + wide / 2, y + 2.6, name, wide - 4, text_anchor="middle"),
        )
    ]
    return middles, drawn


def _link(start: tuple[float, float], stop: tuple[float, float]) -> str:
    (x, y), (to_x, to_y) = start, stop
    middle = (x + to_x) / 2
    path = way("M", x, y, "C", middle, y, middle, to_y, to_x, to_y)
    return tag("path", d=path, fill="none", stroke=_MUTED, stroke_width=0.7)


def draw(parts: Sequence[PartOfPicture]) -> str:
    """The picture as SVG text."""
    height = max(len(parts), 1) * (BOX + GAP)
    inputs = list(dict.fromkeys(name for part in parts for name in part.inputs))
    seeing = list(dict.fromkeys(name for part in parts for name in part.seen_by))
    sources, left = _boxes(inputs, LEFT, height)
    watchers, right = _boxes(seeing, RIGHT, height)
    x, wide = MIDDLE
    links, middle = [], []
    for i, part in enumerate(parts):
        y = TOP + i * (BOX + GAP) + GAP / 2
        centre, bar = y + BOX / 2, (wide - 12) * _bar(part)
        links += [_link((sum(LEFT), sources[name]), (x, centre)) for name in part.inputs]
        links += [_link((x + wide, centre), (RIGHT[0], watchers[name])) for name in part.seen_by]
        middle += [
            tag("rect", x=x, y=y, width=wide, height=BOX, rx=4.0, fill=_PAGE, stroke=_INK, stroke_width=0.8),
            _words(x + 6, y + 11, part.names, wide - 10, font_weight="bold"),
            _words(x + 6, y + 22, part.noise, wide - 10, _MUTED),
            _words(x + 6, y + 33, f"spends {part.spends}", wide - 10),
            tag("rect", x=x + 6, y=y + 39, width=wide - 12, height=5.0, fill=_LINE),
            tag("rect", x=x + 6, y=y + 39, width=bar, height=5.0, fill=_FILL),
        ]
    heads = (("Secret data", *LEFT), ("Parts, with noise", *MIDDLE), ("Seen by", *RIGHT))
    titles = [_words(at + size / 2, 12.0, name, size, _MUTED, text_anchor="middle") for name, at, size in heads]
    return tag(
        "svg",
        *titles,
        *links,
        *left,
        *middle,
        *right,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(WIDTH)} {number(TOP + height + 4)}",
        aria_hidden="true",
        focusable="false",
        font_family="system-ui, sans-serif",
    )
