"""The word a reader probably meant: by its meaning where it is a known word of the field, else by its spelling."""

from __future__ import annotations

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
