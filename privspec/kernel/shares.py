"""Noise in shares: every party adds its own to a secure sum, and a coalition knows the shares of its members.

All see the sum z = B u + shares and nothing else; whoever knows the shares of `colluding` parties sees B u and what the
others add. Every B u of every party is a point of the lattice, so nothing is rounded (noise/notes/shares.md).
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from flint import fmpq

from privspec.kernel.core.problem import Frame
from privspec.kernel.core.reading import JsonNode, Refused
from privspec.kernel.participation import ExchangeableUnits


def coalition(
    frame: Frame, held: list[tuple[tuple[int, ...], int, bool, ExchangeableUnits | None]], stated: list[JsonNode]
) -> tuple[int, int]:
    """How many parties add shares, and how many of these no coalition knows; one and one without a secure sum.

    Args: held, of each input its shape, its size, whether it is the cells of a table for each entry of the shape, and
        the classes of its units; stated, what the mechanism says of both.
    """
    if not frame.trust.means.shared:
        return 1, 1
    sets = dict[str | None, set[int]]()
    for one, (shape, *_) in zip(frame.data, held, strict=True):
        sets.setdefault(one.party, set()).add(shape[0] if shape else 0)
    fits = all(prod(shape) == size or (cells and not size % prod(shape)) for shape, size, cells, _ in held)
    # without an index set each record of the one input is a person's
    plain = all(unit.kind != "party" for line in frame.obligations for unit in line.units)
    records = None not in sets or (len(held) == 1 and not held[0][2] and not frame.data[0].asserted and plain)
    parties = sum(max(sizes) for sizes in sets.values())
    if not fits or not records or any(len(sizes) != 1 or 0 in sizes for sizes in sets.values()):
        raise Refused("does not have the parties of a secure sum, who hold all of its inputs")
    if parties <= frame.trust.colluding:
        raise Refused("has no party that adds a share which no coalition knows")
    for item, count in zip(stated, found := (parties, parties - frame.trust.colluding), strict=True):
        item.same(count)
    return found


Owner = tuple[str, int]
"""A party; or a class of those who count alike, and how many they are."""


def owners(frame: Frame, held: list[tuple[tuple[int, ...], int, bool, ExchangeableUnits | None]]) -> list[Owner]:
    """Who holds each coordinate of the matrices: a member of an index set, or else a party of one number.

    A coordinate of a class is held by each of its parties: what it sends is told for one of them. An input of which a
    line is about any value against any other (LDP) is one party's. Args: held, as above, with the classes of units.
    """
    found, whole = list[Owner](), {name for one in frame.obligations if one.measure.of.local for name in one.wrt}
    sets = dict[str, set[ExchangeableUnits | None]]()
    for data, (shape, size, cells, alike) in zip(frame.data, held, strict=True):
        count = shape[0] if data.party and shape else size
        if count < 1 or size % count or not (cells or prod(shape) == size):
            raise Refused("has an input that the members of its index set do not hold in equal parts")
        name = f"{data.party} " if data.party and shape else f"{data.name}, entry "
        alone, each = data.name in whole and not data.party, size // count
        sets.setdefault(name, set()).add(alike and replace(alike, length=1))
        if alike and (alone or alike.length != each or len(sets[name]) > 1):
            raise Refused("has classes that are not those of its parties")
        kinds = [(f"{name}of class {k}", n) for k, n in enumerate(alike.copies)] if alike else []
        found += [one for one in kinds for _ in range(each)]
        found += [(data.name if alone else name + str(i // each), 1) for i in range(0 if alike else size)]
    if any(len(kinds) > 1 for kinds in sets.values()):
        raise Refused("has parties who are of a class in one input, and told apart in another")
    return found


def senders(owner: list[Owner], rows: list[list[fmpq]]) -> list[int]:
    """How many parties send the answer of each row of coefficients, each with noise of its own.

    Raises: Refused where a row depends on what several parties hold that do not count alike.
    """
    found = [{one for one, v in zip(owner, row, strict=True) if v} for row in rows]
    if any(len(some) > 1 for some in found):
        raise Refused("sends a message that depends on the numbers of more than one party")
    return [max((n for _, n in some), default=1) for some in found]


def check_one(count: int, parts: list[tuple[int, ExchangeableUnits]]) -> None:
    """A difference is one of a single party: what a class sends is told for one of its members.

    Args: count, how many units change at once; parts, how long their runs are in inputs of these classes.
    """
    if any(max(alike.copies) > 1 and (count > 1 or length > alike.length) for length, alike in parts):
        raise Refused("changes what several parties hold, of whom one stands for all of a class")
