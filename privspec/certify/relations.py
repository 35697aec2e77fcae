"""From the words of a requirement to sets of differences: read here from domains, not from the model's own lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import combinations
from math import comb, prod

import numpy as np

from privspec.certify.exact import Integers
from privspec.certify.neighbourhoods import VERTEX_LIMIT, Balls, Boxes, Cells, Entries, Neighbourhood
from privspec.model import neighbours as words
from privspec.model.domains import Ball, Domain, L1Ball, L2Ball, Power, Table
from privspec.model.graph import Model
from privspec.model.neighbours import InputBlock
from privspec.model.requirements import Nobody, Requirement

COMBINATION_LIMIT = 4096
"""Groups of units are enumerated up to so many."""


class Unbounded(ValueError):  # noqa: N818 - a finding about the spec
    """One unit can change an input without limit, or in a way that has no numbers."""


def neighbourhoods(model: Model, requirement: Requirement) -> tuple[Neighbourhood, ...]:
    """Sets whose union holds every difference of the base vector between two neighbours.

    Raises: Unbounded.
    """
    blocks = [block for block in model.blocks if block.name in requirement.wrt]
    if {block.name for block in blocks} != set(requirement.wrt):
        raise Unbounded("a guarantee is for something that is no input")
    relation = requirement.neighbours
    if isinstance(relation, words.ReplacingOneOf):
        by_name = {block.name: block for block in blocks}
        parts = together(relation, tuple(by_name))
        found = [_of_blocks([by_name[name] for name in names], own) for own, names in parts]
        return tuple(one for some in found for one in some)
    return _of_blocks(blocks, relation)


def together(
    relation: words.ReplacingOneOf, names: tuple[str, ...]
) -> list[tuple[words.NeighbourRelation, tuple[str, ...]]]:
    """The relations of some inputs, each with those it moves at once: all that one person holds moves together."""
    found: list[tuple[words.NeighbourRelation, tuple[str, ...]]] = []
    for name, own in relation.parts:
        if name not in names:
            continue
        at = next((i for i, (other, _) in enumerate(found) if other == own), None)
        if at is None or not isinstance(own, words.ReplacingVoter):
            found.append((own, (name,)))
        else:
            found[at] = (own, (*found[at][1], name))
    if {name for _, some in found for name in some} != set(names):
        raise Unbounded("an input whose neighbours the requirement does not tell")
    return found


def _of_blocks(blocks: list[InputBlock], relation: words.NeighbourRelation) -> tuple[Neighbourhood, ...]:
    """One unit of one of the inputs; all that one person holds in all of them."""
    if isinstance(relation, words.ReplacingEverything):
        return (_everything(blocks),)
    if isinstance(relation, words.ReplacingVoter) and len(blocks) > 1:
        return (_of_person(blocks, relation),)
    return tuple(_of_block(block, relation) for block in blocks)


def _of_person(blocks: list[InputBlock], relation: words.ReplacingVoter) -> Neighbourhood:
    """What each person holds in several inputs moves together; balls that are not alike are covered by boxes."""
    bases = [base_domain(block.domain) for block in blocks]
    if any(isinstance(base, Table) for base in bases):
        raise Unbounded("a table without a limit to its records")
    if any(block.index != relation.party for block in blocks):
        raise Unbounded(f"an input does not belong to one {relation.party}")
    runs = [_runs(block, _unit_length(relation, block)) for block in blocks]
    if len({len(run) for run in runs}) != 1:
        raise Unbounded(f"inputs of different numbers of {relation.party}s")
    units = [np.concatenate(parts) for parts in zip(*runs, strict=True)]
    group = min(relation.group, len(units))
    ranges = {
        int(i): _change(base, relation.adding)
        for block, base in zip(blocks, bases, strict=True)
        for i in range(block.start, block.stop)
    }
    first = bases[0]
    alike = isinstance(first, Ball) and all(base == first for base in bases)
    if alike and isinstance(first, L2Ball):
        return Balls(tuple(units), first.dimension, first.radius * (1 if relation.adding else 2), group)
    if alike and isinstance(first, L1Ball):
        return Entries(ranges, 1, group * (len(units[0]) // first.dimension), tuple(units), group)
    if group > 1 and comb(len(units), group) <= COMBINATION_LIMIT and group * len(units[0]) <= VERTEX_LIMIT:
        units, group = [np.concatenate(some) for some in combinations(units, group)], 1
    return Boxes(tuple(units), ranges, group, whole=not any(isinstance(base, Ball) for base in bases))


def exposed(model: Model, requirement: Requirement) -> tuple[str, ...]:
    """The outputs that a line has to protect: where nobody is trusted, every message is seen by all."""
    if isinstance(model.trust, Nobody) or requirement.measure.local:
        return tuple(node.name for node in model.outputs)
    return requirement.outputs


def base_domain(domain: Domain) -> Domain:
    """A domain without its powers."""
    while isinstance(domain, Power):
        domain = domain.base
    return domain


def _runs(block: InputBlock, length: int) -> list[Integers]:
    every = np.arange(block.start, block.stop, dtype=np.int64)
    return list(every.reshape(-1, max(length, 1)))


def _unit_length(relation: words.NeighbourRelation, block: InputBlock) -> int:
    """Coordinates of one unit: an entry, one factor of the outermost power, or all that one person holds."""
    shape = block.domain.shape
    lengths: Mapping[type[words.NeighbourRelation], Callable[[], int]] = {
        words.ReplacingEntry: lambda: 1,
        words.ReplacingRecord: lambda: prod(shape[1:]) if isinstance(block.domain, Power) else prod(shape),
        words.ReplacingVoter: lambda: prod(shape) if block.index else block.size,
    }
    for kind, length in lengths.items():
        if isinstance(relation, kind):
            return length()
    raise Unbounded(f"the relation {relation.describe()!r} is not understood")


def _change(domain: Domain, adding: bool) -> Fraction:
    """The most by which a coordinate changes; what is absent counts as 0."""
    low, high = domain.bounds
    if low is None or high is None:
        raise Unbounded("an input without bounds")
    return max(abs(low), abs(high)) if adding else high - low


def _of_block(block: InputBlock, relation: words.NeighbourRelation) -> Neighbourhood:
    base, adding, group = base_domain(block.domain), relation.adding, relation.group
    if isinstance(base, Table):
        if not isinstance(relation, words.ReplacingRecord):
            raise Unbounded("a table without a limit to its records")
        return _cells(block, base, group, adding=adding)
    units = _runs(block, _unit_length(relation, block))
    group = min(group, len(units))
    change = _change(base, adding)
    single = all(len(unit) == 1 for unit in units)
    if isinstance(base, L2Ball) and not single:
        return Balls(tuple(units), base.dimension, base.radius if adding else 2 * base.radius, group)
    ranges = {int(i): change for unit in units for i in unit}
    if isinstance(base, L1Ball) and not single:
        return Entries(ranges, 1, group * max(len(unit) for unit in units) // base.dimension, tuple(units), group)
    if group > 1 and comb(len(units), group) <= COMBINATION_LIMIT and group * len(units[0]) <= VERTEX_LIMIT:
        units, group, single = [np.concatenate(some) for some in combinations(units, group)], 1, False
    if single:
        return Entries(ranges, group)
    return Boxes(tuple(units), ranges, group)


def _cells(block: InputBlock, table: Table, group: int | None, *, adding: bool) -> Cells:
    """Records of a table that move, come or go: `group` of them, all of them (None)."""
    cells = np.arange(block.start, block.stop, dtype=np.int64)
    if adding or table.records is None:
        if group is None:
            raise Unbounded("a table without a limit to its records")
        return Cells(cells, not adding, group)
    return Cells(cells, moving=True, group=table.records if group is None else min(group, table.records))


def _everything(blocks: list[InputBlock]) -> Neighbourhood:
    """All inputs named at once; balls are covered by boxes unless there is one ball only."""
    bases = [base_domain(block.domain) for block in blocks]
    if len(blocks) == 1 and isinstance(bases[0], Table):
        return _cells(blocks[0], bases[0], None, adding=False)
    if any(isinstance(base, Table) for base in bases):
        raise Unbounded("several inputs at once, one of them a table")
    everything = np.concatenate([np.arange(b.start, b.stop, dtype=np.int64) for b in blocks])
    if len(blocks) == 1 and isinstance(bases[0], L2Ball):
        return Balls((everything,), bases[0].dimension, 2 * bases[0].radius)
    ranges = {
        int(i): _change(base, False)
        for block, base in zip(blocks, bases, strict=True)
        for i in range(block.start, block.stop)
    }
    if len(blocks) == 1 and isinstance(bases[0], L1Ball):
        return Entries(ranges, 1, blocks[0].size // bases[0].dimension, (everything,))
    return Boxes((everything,), ranges, whole=not any(isinstance(base, L1Ball | L2Ball) for base in bases))
