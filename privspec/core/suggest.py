"""The word a reader probably meant."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate closest to `word`, or None when none is close.

    Distance counts insertions, deletions, substitutions and swaps of neighbours; case counts for nothing.
    A word may differ in a third of its letters (at least one, and not all); the first of equals wins.
    """
    limit = max(1, min(len(word) - 1, (len(word) + 1) // 3)) if len(word) > 1 else 0
    best: str | None = None
    for candidate in candidates:
        if abs(len(candidate) - len(word)) > limit:
            continue
        distance = _distance(word.lower(), candidate.lower(), limit)
        if distance <= limit:
            best = candidate
            limit = distance - 1
            if limit < 0:
                break
    return best


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
