"""The word a reader probably meant, by its meaning or its spelling; and names that differ but look the same."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate closest to `word`, or None when none is close; the first of equals wins."""
    found = misspelt(word, candidates)
    return found[0] if found else None


def misspelt(word: str, candidates: Iterable[str]) -> tuple[str, ...]:
    """The candidates closest to `word`, of which it may be a slip of the finger; none when none is close.

    Distance counts insertions, deletions, substitutions and swaps of neighbours; case counts for nothing.
    The shorter of both words may differ in a third of its letters (at least one, and not in all of them).
    """
    best: list[str] = []
    least = len(word)
    for candidate in dict.fromkeys(candidates):
        limit = min(least, max(1, (min(len(word), len(candidate)) + 1) // 3), len(word) - 1 if len(word) > 1 else 0)
        if abs(len(candidate) - len(word)) > limit:
            continue
        distance = _distance(word.lower(), candidate.lower(), limit)
        if distance > limit:
            continue
        if distance < least:
            best.clear()
        least = distance
        best.append(candidate)
    return tuple(best)


def advice(word: str, known: Iterable[str], senses: Mapping[str, str]) -> str | None:
    """What to write for a word that does not exist: its sense if it is a known word, else what it is a slip of.

    `senses` says what to write for words that others use. They take part when the spelling is compared, so that a
    misspelt "median" is never taken for "mean".
    """
    sense = senses.get(word) or senses.get(word.lower())
    if sense is not None:
        return sense
    known = tuple(known)
    words = {name.lower() for name in known}
    others = {name.lower(): name for name in senses if len(name) > 3 and name.lower() not in words}
    close = misspelt(word, (*known, *others.values()))
    if not close:
        return None
    asked = f"did you mean {' or '.join(close)}?"
    sense = senses[close[0]] if len(close) == 1 and close[0] not in known else None
    return f"{asked} {sense[0].upper()}{sense[1:]}" if sense else asked


def _distance(a: str, b: str, limit: int) -> int:
    """Optimal string alignment distance; may stop early with any number above `limit`."""
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, last, row = row, before, [i]
        for j, y in enumerate(b, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
    return row[-1]


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
