"""What becomes of data that do not fit, and which way that moves what is released.

Noise is right on average about what is counted. A public rule decides what is: it leaves records out, moves numbers
into their range, or counts another value in place of one. So what is released is off by more than its noise, and which
way is known before any data are: a sum of counts is too low by what is left out, whoever is counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass
from privspec.kernel.core.linear import InputLayout, Linear
from privspec.kernel.core.reading import JsonNode, read
from privspec.kernel.keys import KeyBlock
from privspec.model.domains import Ball, Between, Cut, Domain, IntegerRange, Power, Table
from privspec.model.graph import Model
from privspec.problem.elaborate import cell_chances
from privspec.problem.linear import as_floats
from privspec.problem.systems import parts_of


class Done(Enum):
    """What a rule does with data that do not fit."""

    LEFT_OUT = "left out"
    CLIPPED = "clipped"
    NOT_LISTED = "not listed"


class Way(Enum):
    """Which way that moves what is released."""

    LOW = "too low"
    HIGH = "too high"
    EITHER = "either way"


@dataclass(frozen=True, slots=True)
class Rule:
    """What is done with data of some inputs, and the outputs that it moves, each with the way."""

    done: Done
    moves: tuple[tuple[str, Way], ...]

    def of(self, names: Iterable[str]) -> tuple[Way, ...]:
        """The ways in which it moves any of these outputs, each once."""
        wanted = set(names)
        return tuple(dict.fromkeys(way for name, way in self.moves if name in wanted))


def rules(problem: Mapping[str, Any], model: Model | None, *, strict: bool = False) -> tuple[Rule, ...]:
    """What is done with data that do not fit, over all inputs; nothing where it moves no output.

    Args: problem as it stands in a plan; its model, without which columns of any kind are taken to be there; strict,
        whether data that do not fit were refused, so that only people's records are left out, beyond so many of each.
    """
    found = dict[Done, dict[str, set[Way]]]()
    for leaf in _leaves(problem, model):
        for done, name, way in _moved(*leaf, strict):
            found.setdefault(done, {}).setdefault(name, set()).add(way)
    for one in problem.get("computed", ()):
        for moves in found.values():
            if any(source in moves for source in one["sources"]):
                moves[one["name"]] = {Way.EITHER}
    return tuple(
        Rule(done, tuple((name, ways.pop() if len(ways) == 1 else Way.EITHER) for name, ways in found[done].items()))
        for done in Done
        if done in found
    )


Part = Mapping[str, Any]
Sums = tuple[Linear, NDArray[np.float64]]


def _leaves(problem: Part, model: Model | None) -> Iterator[tuple[Part, Part, Model | None]]:
    """Each block that is of no others, with the problem that it stands in, and its model."""
    (block,) = problem["blocks"]
    while block["form"] == "priced":
        block = block["block"]
    if block["form"] != "system":
        yield problem, block, model
        return
    models = [None] * len(block["parts"]) if model is None else [part.model for part in parts_of(model)]
    for part, own in zip(block["parts"], models, strict=True):
        yield from _leaves(part["problem"], own)


def _moved(problem: Part, block: Part, model: Model | None, strict: bool) -> Iterator[tuple[Done, str, Way]]:
    """What is done with the inputs of a block, the outputs that this moves, and how."""
    sums = _sums(block)
    for data in problem["data"]:
        for done in _done(data, block, None if model is None else model.block(data["name"]).domain):
            if strict and not (done is Done.LEFT_OUT and data.get("kept")):
                continue
            if sums is not None:
                yield from ((done, name, way) for name, way in _of_sums(*sums, data, done))
                continue
            if block["form"] == KeyBlock.FORM:
                yield from _of_keys(read(KeyBlock, JsonNode(block, "block")), done)
                continue
            only_counts = done is Done.LEFT_OUT and block["form"] == "marginals"
            yield from ((done, name, Way.LOW if only_counts else Way.EITHER) for name in _outputs(block))


def _of_keys(block: KeyBlock, done: Done) -> Iterator[tuple[Done, str, Way]]:
    """What is left out is in no count and in no sum; only numbers that are added up are clipped."""
    if done is Done.LEFT_OUT:
        yield done, block.output, Way.LOW
    for one in block.added:
        lowers = Way.LOW if one.lower >= 0 else Way.HIGH if one.upper <= 0 else Way.EITHER
        if done is Done.LEFT_OUT or one.column is not None:
            yield from ((done, name, lowers if done is Done.LEFT_OUT else Way.EITHER) for name in one.outputs)


def _sums(block: Part) -> Sums | None:
    """A block of sums of coordinates as the kernel reads it, and their coefficients; None for others."""
    if block["form"] != Linear.FORM:
        return None
    found = read(Linear, JsonNode(block, "block"))
    return found, as_floats(found.target)


def _outputs(block: Mapping[str, Any]) -> list[str]:
    (found,) = (block[key] for key in ("released", "outputs", "output") if key in block)
    listed = [found] if isinstance(found, str | Mapping) else found
    return [one if isinstance(one, str) else one["name"] for one in listed]


def _done(data: Mapping[str, Any], block: Part, domain: Domain | None) -> Iterator[Done]:
    """What the rule of an input may do."""
    table = data["domain"].startswith("table(") if domain is None else isinstance(domain, Table)
    if data.get("kept") or data["rule"] == "drop":
        yield Done.LEFT_OUT
    if domain is None or any(_clipped(block, domain)):
        yield Done.CLIPPED
    if data["rule"] == "map" and (table or domain is None or (domain.bounds == (None, None) and domain.size)):
        yield Done.NOT_LISTED


Clipped = tuple[str | None, Domain]
"""The column of a table, or None, and where its numbers lie."""


def _clipped(block: Part, domain: Domain) -> Iterator[Clipped]:
    """What numbers move into, where they lie outside it; in a table, where a column lists them, others do not fit."""
    if isinstance(domain, Power):
        yield from _clipped(block, domain.base)
    elif isinstance(domain, Table):
        form, added = block["form"], {one["column"] for one in block.get("added", ())}
        for name, column in domain.columns.items():
            near = name in added or (form == "selection" and column.bounds != (None, None))
            if near or (form != KeyBlock.FORM and isinstance(column, IntegerRange | Between | Cut)):
                yield name, column
    elif isinstance(domain, Ball) or domain.bounds != (None, None):
        yield None, domain


def clipped(problem: Mapping[str, Any], model: Model) -> Iterator[tuple[str, Clipped]]:
    """For each input the ranges that its numbers are moved into."""
    for own, block, part in _leaves(problem, model):
        for data in own["data"]:
            domain = (part or model).block(data["name"]).domain
            yield from ((data["name"], one) for one in _clipped(block, domain))


# --- sums -----------------------------------------------------------------------------------------


Signs = NDArray[np.int8]
_SIGNS = {(1,): Way.HIGH, (-1,): Way.LOW}
_AGAINST = {Way.HIGH: Way.LOW, Way.LOW: Way.HIGH, Way.EITHER: Way.EITHER}


def _of_sums(
    block: Linear, target: NDArray[np.float64], data: Mapping[str, Any], done: Done
) -> Iterator[tuple[str, Way]]:
    """The ways of outputs that are sums of coordinates: what is left out is subtracted, with its coefficients."""
    held, rows = _held(block, target, data["name"])
    for one in block.released:
        own = rows[one.start : one.stop]
        if done is Done.LEFT_OUT:
            way = _way(np.sign(own))
            way = None if way is None else _AGAINST[way]
        elif held.cells:
            axes = _axes(held, data, done)
            shaped = own.reshape(len(own), *(one.size for one in held.columns))
            moved = any(np.any(np.diff(shaped, axis=axis + 1)) for axis in axes)
            way = Way.EITHER if moved else None
        else:
            ends = held.lower, held.upper
            way = Way.EITHER if np.any(own) else None
            # a number below its only limit is raised, one above it lowered
            if way and held.ball is None and None in ends:
                way = _way(np.sign(own) * (1 if ends[1] is None else -1))
        if way is not None:
            yield one.name, way


def _way(signs: Signs) -> Way | None:
    found = set(np.unique(signs).tolist()) - {0}
    return None if not found else _SIGNS.get(tuple(found), Way.EITHER)


def _held(block: Linear, target: NDArray[np.float64], name: str) -> tuple[InputLayout, NDArray[np.float64]]:
    """An input of a block of sums, and the coefficients that its coordinates have in every answer (m, k)."""
    held = next(one for one in block.held if one.name == name)
    at, units = block.places[held.start]  # those of a class have their coordinates together
    return held, target[:, at : at + len(units.numbers)]


def _axes(held: InputLayout, data: Mapping[str, Any], done: Done) -> list[int]:
    """The columns that a record may move along: of numbers where it is clipped; not that of the party."""
    found, computed = [], {one["name"] for one in data.get("derived", ()) if one.get("formula")}
    for axis, one in enumerate(held.columns):
        numbers = one.lower is not None or one.shared or bool(one.cuts) or one.name in computed
        if one.name != data["party"] and (numbers or done is Done.NOT_LISTED):
            found.append(axis)
    return found


# --- what a law lets expect -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Expected:
    """How many records are cut in a table, by the law of records a person that a spec declares, on line `line`.

    `lower`: by how much that is expected to lower the numbers of an output, the least and the most; for those outputs
    of which the spec says enough.
    """

    table: str
    line: int
    most: int
    records: float
    lower: tuple[tuple[str, float, float], ...]


def expected(problem: Mapping[str, Any], model: Model) -> Iterator[Expected]:
    """What is expected to be cut of people's records, where a law says how many they have.

    Raises: Failure for a law of cells that cannot be computed.
    """
    kept = {data["name"]: data["kept"] for data in problem["data"] if data.get("kept")}
    for law in model.records:
        if (limit := kept.get(law.table)) is None or limit["per_cell"] is not None:
            continue
        over = sum(max(n - limit["most"], 0) * chance for n, chance in enumerate(law.chances))
        records, lower = float(law.people * over), list[tuple[str, float, float]]()
        cells = cell_chances(model, model.block(law.table))
        for own, block, _ in _leaves(problem, model):
            sums = None if all(data["name"] != law.table for data in own["data"]) else _sums(block)
            if sums is None:
                continue
            _, rows = _held(*sums, law.table)
            for one in sums[0].released:
                some = rows[one.start : one.stop]
                if cells is None and np.any(np.ptp(some, axis=1)):
                    continue
                each = some[:, 0] if cells is None else some @ np.array(cells.values(), dtype=np.float64)
                lower.append((one.name, float(records * each.min()), float(records * each.max())))
        line = model.line(law)
        yield Expected(law.table, line, limit["most"], records, tuple(lower))
