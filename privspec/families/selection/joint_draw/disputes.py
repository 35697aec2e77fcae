"""Who is wrong when a party says that another one is: the keys of single layers convict one of the two."""

from __future__ import annotations

from collections.abc import Sequence

from privspec.families.selection.joint_draw.ballots import Content, mixed_length
from privspec.families.selection.joint_draw.primitives import KEY, shown
from privspec.families.selection.joint_draw.report import Finding
from privspec.families.selection.joint_draw.transcript import Body, Head

COMPLAINT = "complaint"
"""A voter does not find its ballot in the last list, and shows the keys of all layers of the mix."""
PROTEST = "protest"
"""Whoever made the drawn ballot shows the key of one layer that was not opened, or wrongly; without a name."""


def complaint(head: Head, voter: str, ballot: bytes, lists: Sequence[Sequence[bytes]], body: Body) -> Finding:
    """Convicts the mixer that left out or replaced the voter's ballot, or the voter."""
    terms = head.terms
    try:
        keys = [bytes.fromhex(key) for key in body["keys"]]
        for number, ((name, mixer), key) in enumerate(zip(head.mixers.items(), keys, strict=True)):
            found = shown(ballot, key, mixer.mix)
            if found is None or len(found) != mixed_length(terms, terms.mixers - 1 - number):
                return Finding((voter,), "complained of a ballot that is malformed")
            if found not in lists[number]:
                return Finding((name,), f"left out or replaced the ballot of {voter}")
            ballot = found
    except (KeyError, TypeError, ValueError):
        return Finding((voter,), "complained of a ballot and does not show it")
    return Finding((voter,), "complained of a ballot that stands in the list")


def protest(head: Head, opened: Sequence[bytes], refused: int | None, body: Body) -> Finding | None:
    """Convicts the mixer that opened that layer wrongly, or said that it does not open; None if it shows nothing.

    Args: opened, the drawn ballot and what mixers say is in it, layer by layer; refused, the mixer that opened none.
    """
    names = list(head.mixers)
    try:
        number, key = body["layer"], bytes.fromhex(body["key"])
        if type(number) is not int or not 0 <= number < min(len(names), len(opened)):
            return None
        found = shown(sealed(opened, number), key, head.mixers[names[number]].open)
    except (KeyError, TypeError, ValueError):
        return None
    if found is None:
        return None
    if number == refused and (number + 1 < len(names) or _well_formed(head, found, opened[0])):
        return Finding((names[number],), "refused to open a ballot that opens")
    if number + 1 < len(opened) and found != opened[number + 1]:
        return Finding((names[number],), "opened another ballot than the drawn one")
    return None


def sealed(opened: Sequence[bytes], number: int) -> bytes:
    """The drawn ballot as the mixer of that number has to open it."""
    return opened[0][KEY:] if number == 0 else opened[number]


def _well_formed(head: Head, found: bytes, ballot: bytes) -> bool:
    content = Content.from_bytes(head.terms, found)
    return content is not None and content.root(head.terms) == ballot[:KEY]
