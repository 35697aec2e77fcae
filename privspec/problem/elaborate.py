"""From the typed graph to the problem: deterministic and exact."""

from __future__ import annotations

import hashlib
from typing import Any, Protocol

import numpy as np

from privspec.core.diagnostics import InternalError
from privspec.model.graph import GraphNode, Model
from privspec.model.measures import Measure as ModelMeasure
from privspec.model.measures import MetricDP, Personalised
from privspec.model.neighbours import NeighbourRelation, ReplacingOneOf, ReplacingVoter
from privspec.model.requirements import Requirement
from privspec.model.trust import SecureSum
from privspec.problem.types import (
    ELABORATOR,
    FORMAT,
    Block,
    Data,
    Measure,
    Obligation,
    Problem,
    PublicValue,
    Trust,
    Unit,
)


def elaborate(model: Model) -> Problem:
    """The problem of a spec.

    Raises: SpecError PS05xx for what no block can say.
    """
    return Problem(
        format=FORMAT,
        elaborator=ELABORATOR,
        name=model.name,
        trust=trust_of(model),
        data=tuple(data_of(model, node) for node in model.inputs),
        public=tuple(public_values(model)),
        obligations=tuple(obligation_of(model, requirement) for requirement in model.requirements),
        blocks=blocks_of(model),
    )


class Reading(Protocol):
    """A module that says some specs in its forms."""

    def reads(self, model: Model) -> bool:
        """Whether these forms can say what the spec says."""

    def blocks(self, model: Model) -> tuple[Block, ...]:
        """The blocks of a spec that `reads` takes.

        Raises: SpecError PS05xx.
        """


def blocks_of(model: Model) -> tuple[Block, ...]:
    """The numbers of a spec, in the forms of the first reading that takes it.

    Raises: SpecError PS05xx.
    """
    from privspec.problem import linear, statistics, tables, votes

    readings: tuple[Reading, ...] = (votes, tables, statistics, linear)
    for reading in readings:
        if reading.reads(model):
            return reading.blocks(model)
    raise InternalError("a spec that no reading takes")


def trust_of(model: Model) -> Trust:
    """Who is trusted."""
    trust = model.trust
    return Trust(trust.name, trust.colluding if isinstance(trust, SecureSum) else 0)


def data_of(model: Model, node: GraphNode) -> Data:
    """An input as it is held."""
    from privspec.problem.words import domain_words

    block = model.block(node.name)
    rule = "drop" if block.layout == "cells" else "clip" if block.domain.bounds != (None, None) else "map"
    return Data(node.name, domain_words(block.domain), rule, node.index, model.source.position(node.span.start)[0])


def public_values(model: Model) -> list[PublicValue]:
    """Files and given constants that the numbers rest on."""
    found = []
    for name, array in sorted(model.files.items()):
        raw = np.ascontiguousarray(array, dtype="<f8")
        digest = hashlib.sha256(raw.tobytes()).hexdigest()
        where = f"the file {name.split(':', 1)[1]}" if ":" in name else "asserted: not computed from the data"
        found.append(PublicValue(name, tuple(int(n) for n in raw.shape), digest, where))
    return found


def obligation_of(model: Model, requirement: Requirement) -> Obligation:
    """A line of privacy."""
    return Obligation(
        outputs=requirement.outputs,
        seen=model.exposed(requirement),
        wrt=requirement.wrt,
        neighbours=requirement.neighbours.describe(),
        units=units_of(requirement.neighbours, requirement.wrt),
        observers=requirement.observers,
        measure=measure_of(requirement.measure),
        line=requirement.line,
        text=requirement.text,
    )


def units_of(relation: NeighbourRelation, inputs: tuple[str, ...]) -> tuple[Unit, ...]:
    """What one difference may change: one of these units."""
    if isinstance(relation, ReplacingOneOf):
        return tuple(unit for own, names in relation.joined for unit in units_of(own, names))
    party = relation.party if isinstance(relation, ReplacingVoter) else None
    kind = "party" if party is not None else relation.unit
    return (Unit(kind, inputs, relation.adding, relation.group, party),)


def measure_of(measure: ModelMeasure) -> Measure:
    """Its name and exact amounts."""
    amounts: Any = tuple(measure.amounts.items())
    each = tuple(measure_of(one) for one in measure.each) if isinstance(measure, Personalised) else ()
    return Measure(measure.name, amounts, measure.metric if isinstance(measure, MetricDP) else None, each)
