"""Terminals of the grammar in plain words."""

from __future__ import annotations

from collections.abc import Set
from typing import Final

from privspec.language.tables import END

_GROUPS: Final[tuple[tuple[frozenset[str], frozenset[str], str], ...]] = (
    # if all of the first are expected, say the words once for all of the second
    (
        frozenset({"NAME", "NUMBER", "OVER"}),
        frozenset({"NAME", "NUMBER", "OVER", "STRING", "(", "[", "{", "|", "NORM", "-"}),
        "an expression",
    ),
    (
        frozenset({"+", "-", "*", "/"}),
        frozenset({"+", "-", "*", "/", "@", "^", "²", "'", "[", "(", "."}),
        "an operator",
    ),
    (frozenset({"ranking"}), frozenset({"ranking", "NAME", "NUMBER", "(", "[", "{", "-"}), "a domain"),
    (
        frozenset({"replacing", "adding"}),
        frozenset({"replacing", "adding", "distance", "seen"}),
        "replacing, adding or removing, distance, or seen by",
    ),
)

_POSTFIX: Final = frozenset({".", "["})

_WORDS: Final = {
    "NAME": "a name",
    "NUMBER": "a number",
    "STRING": "a text in quotes",
    "KIND": "input, constant, intermediate, output or choose",
    "MEASURE": "a measure such as -DP",
    "WRT": "wrt",
    "OVER": "E[ or worst[",
    "NORM": "||",
    "NORM_P": "||_1",
    "IN": "in",
    ",": "a comma",
    END: "the end of the line",
}


def plain(terminal: str) -> str:
    """A terminal as a reader would call it."""
    return _WORDS.get(terminal, terminal)


def plain_list(expected: Set[str], most: int = 5) -> str:
    """What may stand somewhere: `a, b or c`; groups are named as one."""
    left = set(expected)
    found: list[str] = []
    for key, members, words in _GROUPS:
        if key <= left:
            found.append(words)
            left -= members
    if "NORM" in left:
        left.discard("NORM_P")
    if left > _POSTFIX:
        left -= _POSTFIX  # true behind every name, and hardly ever what is missing
    rest = sorted(plain(t) for t in left if t != END)
    found = [w for w in found if w != "an operator"] + rest + (["an operator"] if "an operator" in found else [])
    if END in left:
        found.append(plain(END))
    if len(found) > most:
        found = [*found[: most - 1], "something else"]
    if len(found) <= 1:
        return "".join(found) or "nothing more"
    return ", ".join(found[:-1]) + " or " + found[-1]
