"""Words and signs: which token begins at a place, given what the parser can accept there."""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from typing import NamedTuple

from privspec.core.spans import Span

NAMES = {
    "ε": "epsilon", "ϵ": "epsilon", "δ": "delta", "μ": "mu", "µ": "mu", "ρ": "rho", "α": "alpha",
    "ℝ": "real", "𝔼": "E",
}  # fmt: skip
"""Letters that are a name by themselves; a letter inside a longer name stays as it is."""

SIGNS = {"∈": "IN", "≤": "<=", "≥": ">=", "∼": "~", "·": "*", "⊤": "'", "‑": "-", "‐": "-", "−": "-"}
"""Unicode signs and the tokens they stand for."""

KINDS = frozenset({"input", "constant", "intermediate", "output", "choose"})

MAX_EXPONENT = 400
MAX_DIGITS = 400

REFUSED = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]|\r(?!\n)"
)
"""Characters that may stand nowhere: controls, changes of direction, halves of characters, lone carriage returns."""

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)+")
_WORD = re.compile(r"[^\W\d_²³¹][^\W²³¹]*")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_STRING = re.compile(r'"[^"\n]*"')
_MEASURE = re.compile(r"[-‐‑](metric-DP|per-atom-LDP|zCDP|GDP|LDP|RDP|DP|Lipschitz)\b")
_WRT = re.compile(r"wrt\b|w\.r\.t\.|with +respect +to\b")
_OVER = re.compile(r"([E𝔼]|worst)(?= *\[)")
_NORM_P = re.compile(r"(?:\|\||‖)_(1|2|inf)\b")
_SIGN = re.compile(r"==|\*\*|!=|<>|=<|=>|<-|->|:=|&&|\.\.|<=|>=|[-+*/@^²'=~,.()\[\]{}<>:;!]")


class Token(NamedTuple):
    """A terminal with the text it stands for and its place.

    `type` is a key of the parse table, "STRANGE" for a character that begins no token, "TOO_LONG" for a
    number beyond any use, or a sign that no rule knows (`==`), which every state refuses.
    """

    type: str
    value: str
    start: int
    end: int

    @property
    def span(self) -> Span:
        """Where it stands."""
        return Span(self.start, self.end)


def is_name(text: str) -> bool:
    """Whether a text is one name."""
    return _WORD.fullmatch(text) is not None


def skip_blank(text: str, position: int, end: int) -> int:
    """The next position that is neither white space nor comment."""
    match = _BLANK.match(text, position, end)
    return match.end() if match else position


def next_token(
    text: str, position: int, end: int, accepted: Container[str], truly: Callable[[str], bool]
) -> Token | None:
    """The token at or after `position`, None at the end.

    `accepted` holds the terminals of the parser's state, `truly` tells whether a terminal would survive the
    reductions it triggers; only `||` needs to know, which closes either one norm or two absolute values.
    """
    start = skip_blank(text, position, end)
    if start >= end:
        return None
    first = text[start]
    if first == "|" or first == "‖":
        return _bar(text, start, end, accepted, truly)
    if first in "-‐‑" and "MEASURE" in accepted and (match := _MEASURE.match(text, start, end)):
        return Token("MEASURE", match[1], start, match.end())
    if first in "0123456789":
        return _number(text, start, end)
    if match := _WORD.match(text, start, end):
        return _word(text, start, end, match[0], accepted)
    if first in SIGNS:
        return Token(SIGNS[first], first, start, start + 1)
    if match := _STRING.match(text, start, end):
        return Token("STRING", match[0][1:-1], start, match.end())
    if match := _SIGN.match(text, start, end):
        return Token(match[0], match[0], start, match.end())
    return Token("STRANGE", first, start, start + 1)


def _word(text: str, start: int, end: int, word: str, accepted: Container[str]) -> Token:
    if "WRT" in accepted and (match := _WRT.match(text, start, end)):
        return Token("WRT", "wrt", start, match.end())
    if "OVER" in accepted and (match := _OVER.match(text, start, end)):
        return Token("OVER", NAMES.get(match[1], match[1]), start, match.end())
    stop = start + len(word)
    if word in KINDS and "KIND" in accepted:
        return Token("KIND", word, start, stop)
    if word == "in" and "IN" in accepted:
        return Token("IN", word, start, stop)
    if word in accepted and word.islower():
        return Token(word, word, start, stop)
    return Token("NAME", NAMES.get(word, word), start, stop)


def _number(text: str, start: int, end: int) -> Token:
    match = _NUMBER.match(text, start, end)
    assert match is not None
    digits = match[0]
    _, _, exponent = digits.lower().partition("e")
    size = abs(int(exponent)) if 0 < len(exponent) < 6 else len(exponent)
    far = len(exponent) >= 6 or size > MAX_EXPONENT or len(digits) > MAX_DIGITS
    return Token("TOO_LONG" if far else "NUMBER", digits, start, match.end())


def _bar(text: str, start: int, end: int, accepted: Container[str], truly: Callable[[str], bool]) -> Token:
    if "NORM_P" in accepted and (match := _NORM_P.match(text, start, end)) and truly("NORM_P"):
        return Token("NORM_P", match[1], start, match.end())
    if text[start] == "‖":
        return Token("NORM", "||", start, start + 1)
    if text.startswith("||", start, end) and (truly("NORM") or not truly("|")):
        return Token("NORM", "||", start, start + 2)
    return Token("|", "|", start, start + 1)
