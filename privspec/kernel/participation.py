"""How often, and how far apart, one person takes part: which units may change at once, as their places in turn."""

from __future__ import annotations

from math import comb


def groups(copies: list[int], count: int) -> list[list[tuple[int, int]]]:
    """Every choice of `count` units, as the places of those that move the same and how many of them."""
    if not copies or not count:
        return [] if count else [[]]
    *rest, most = copies
    some = [(k, group) for k in range(min(most, count) + 1) for group in groups(rest, count - k)]
    return [[*group, (len(rest), k)] if k else group for k, group in some]


def spaced(size: int, count: int, apart: int, *, exactly: bool, most: int) -> list[list[int]] | None:
    """The largest choices of up to `count` of `size` places, `apart` from each other or more; None for too many.

    Those that are within another choice are left out: what changes less often changes no more.
    """
    if exactly:
        starts = range(max(size - (count - 1) * apart, min(apart, size)))
        found = [list(range(start, size, apart))[:count] for start in starts]
        return found if len(found) <= most else None
    free = size - (count - 1) * (apart - 1)
    if free >= count and comb(free, count) > most:
        return None
    found, open_ = list[list[int]](), [[i] for i in range(size)]
    while open_:
        chosen = open_.pop()
        after = size - chosen[-1] > apart
        steps = [chosen[i + 1] - chosen[i] for i in range(len(chosen) - 1)]
        tight = chosen[0] < apart and not after and max(steps, default=0) < 2 * apart
        if len(chosen) == count or tight:
            found.append(chosen)
        elif after:
            open_ += [[*chosen, i] for i in range(chosen[-1] + apart, size)]
        if len(found) + len(open_) > 2 * most:
            return None
    return found
