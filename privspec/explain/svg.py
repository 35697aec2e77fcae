"""Pictures drawn by hand: elements of SVG as text, numbers to two decimals, what people wrote escaped."""

from __future__ import annotations

from html import escape


def tag(name: str, *inside: str, **attributes: object) -> str:
    """One element with others inside; `stroke_width` is the attribute stroke-width, None leaves one out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{number(value) if isinstance(value, float) else escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{given}>{''.join(inside)}</{name}>" if inside else f"<{name}{given}/>"


def number(value: float) -> str:
    """To two decimals, without zeros at the end."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def way(*steps: str | float) -> str:
    """A path: commands and numbers, one after the other."""
    return " ".join(step if isinstance(step, str) else number(step) for step in steps)


def text(x: float, y: float, words: str, **attributes: object) -> str:
    """A line of text."""
    return tag("text", escape(words, quote=False), x=float(x), y=float(y), **attributes)
