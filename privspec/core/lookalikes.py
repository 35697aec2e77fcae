"""Letters of different alphabets that look the same, so that two names that differ may read as one."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

_SAME = (
    "а a,е e,о o,р p,с c,у y,х x,і i,ј j,ѕ s,ԁ d,һ h,ԛ q,ԝ w,ӏ l,ё ë,ї ï,"  # Cyrillic
    "А A,В B,Е E,К K,М M,Н H,О O,Р P,С C,Т T,Х X,І I,Ј J,Ѕ S,Ԛ Q,Ԝ W,У Y,"
    "ο o,ϲ c,ϳ j,Α A,Β B,Ε E,Ζ Z,Η H,Ι I,Κ K,Μ M,Ν N,Ο O,Ρ P,Τ T,Υ Y,Χ X,"  # Greek
    "օ o,ս u,ո n,հ h,ց g,զ q,յ j,Օ O,Տ S,Լ L"  # Armenian
)
_LATIN = {pair.split()[0]: pair.split()[1] for pair in _SAME.split(",")}
"""Letters that no reader tells from a Latin one."""

_ALIKE = {"α": "a", "ν": "v", "ι": "i", "ρ": "p", "υ": "u", "κ": "k", "к": "k", "l": "I", "1": "I", "0": "O"}
"""Letters and digits that are told apart by a careful reader, or in another font."""

_FOLD = str.maketrans({letter: _ALIKE.get(latin, latin) for letter, latin in _LATIN.items()} | _ALIKE)


def fold(name: str) -> str:
    """What a name looks like: the same text for names that a reader may take for each other."""
    return unicodedata.normalize("NFKC", name).translate(_FOLD)


def disguised(name: str) -> tuple[str, str] | None:
    """A letter of a name that only looks like those around it, and the name in Latin letters alone.

    None for names in the letters of one language, whatever they look like, and for Greek letters beside Latin ones
    that nobody takes for Latin, as in `Δx` and `α_max`.
    """
    plain = "".join(_LATIN.get(letter, letter) for letter in unicodedata.normalize("NFKC", name))
    odd = next((letter for letter, other in zip(name, plain, strict=False) if letter != other), None)
    if odd is None or not any("LATIN" in unicodedata.name(letter, "") for letter in name):
        return None
    others = [letter for letter in name if letter.isalpha() and "LATIN" not in unicodedata.name(letter, "")]
    return (odd, plain) if all(letter in _LATIN or len(plain) != len(name) for letter in others) else None


def alike(names: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs of names that differ and look the same: each later name with the first that it looks like."""
    first: dict[str, str] = {}
    found = []
    for name in names:
        before = first.setdefault(fold(name), name)
        if before != name:
            found.append((before, name))
    return found


def letter_name(letter: str) -> str:
    """A letter in words: `the Cyrillic letter a`, U+0430."""
    words = unicodedata.name(letter, "a letter").lower().split()
    return f"{words[0].capitalize()} {' '.join(words[1:])} (U+{ord(letter):04X})"
