"""The typed graph of a spec: variables, relations and requirements, ready for the compiler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from privspec.core.diagnostics import Diagnostic, Label, SpecError
from privspec.core.spans import Source, Span
from privspec.language import syntax
from privspec.language.syntax import VariableKind
from privspec.model.domains import ENUMERATION_LIMIT, Ball, Domain, Power, Table, is_numeric
from privspec.model.neighbours import BallGeometry, BoxGeometry, CellGeometry, Geometry, Indices, NoGeometry
from privspec.model.requirements import (
    AccuracyTarget,
    AssertedSensitivity,
    DataModel,
    IndependenceRequirement,
    MechanismConstraint,
    Nobody,
    Requirement,
    Trust,
)
from privspec.model.types import Tables, Type
from privspec.model.values import Array, Value, approximate

if TYPE_CHECKING:
    import networkx  # type: ignore[import-untyped]


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One variable. `type` is that of the whole collection when it has an `index` (the index set's name).

    `secret`: an input, or computed from one without passing through an output.
    """

    name: str
    kind: VariableKind
    type: Type
    span: Span
    domain: Domain | None = None
    definition: syntax.Expr | None = None
    definition_span: Span | None = None
    index: str | None = None
    secret: bool = False


@dataclass(frozen=True)
class InputBlock:
    """The coordinates `start:stop` of the base vector that one input fills.

    `layout` "entries": row-major entries of the value (of the whole collection if it is indexed); "cells": counts
    of the cells of a table. Arrays are laid out when asked for.
    """

    name: str
    start: int
    stop: int
    layout: str
    domain: Domain
    type: Type
    span: Span
    source: Source
    index: str | None = None

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return self.stop - self.start

    def check_size(self) -> None:
        """Refuse to lay out too many coordinates.

        Raises: SpecError PS0225.
        """
        if self.size > ENUMERATION_LIMIT:
            what = "cells" if self.layout == "cells" else "numbers"
            raise SpecError(
                Diagnostic(
                    "PS0225",
                    f"{self.name} has {self.size:,} {what}; at most {ENUMERATION_LIMIT:,} can be laid out in memory",
                    (Label(self.span, f"{self.size:,} {what}"),),
                    help="use fewer attributes, or coarser ones" if self.layout == "cells" else None,
                    source=self.source,
                )
            )

    @cached_property
    def lower(self) -> Array:
        """Least value of each coordinate (k,), -inf where there is none."""
        self.check_size()
        low = self.domain.bounds[0]
        return np.full(self.size, -np.inf if low is None else approximate(low))

    @cached_property
    def upper(self) -> Array:
        """Largest value of each coordinate (k,), inf where there is none."""
        self.check_size()
        high = self.domain.bounds[1]
        return np.full(self.size, np.inf if high is None else approximate(high))

    @cached_property
    def record(self) -> tuple[Indices, ...]:
        """Coordinates of each record: one factor of the outermost power, for each person."""
        self.check_size()
        shape = self.domain.shape
        inner = self._count(shape[1:]) if isinstance(self.domain, Power) else self._count(shape)
        return self._runs(1 if self.layout == "cells" else inner)

    @cached_property
    def party_units(self) -> tuple[Indices, ...]:
        """Coordinates of each person of the index set; all of them if there is none."""
        self.check_size()
        return self._runs(self._count(self.domain.shape) if self.index else self.size)

    @staticmethod
    def _count(shape: tuple[int, ...]) -> int:
        count = 1
        for extent in shape:
            count *= extent
        return count

    def _runs(self, length: int) -> tuple[Indices, ...]:
        every = np.arange(self.start, self.stop, dtype=np.intp)
        return tuple(every.reshape(-1, max(length, 1)))

    @property
    def base_domain(self) -> Domain:
        """The domain without its powers."""
        domain = self.domain
        while isinstance(domain, Power):
            domain = domain.base
        return domain

    @property
    def ball(self) -> Any:
        """Radius (Fraction) of the Euclidean ball each vector lies in, None for other domains."""
        geometry = self.geometry
        return geometry.radius if isinstance(geometry, BallGeometry) and geometry.norm == 2 else None

    @property
    def schema(self) -> tuple[tuple[str, Domain], ...] | None:
        """Attributes of a table, None for other domains."""
        base = self.base_domain
        return base.attributes if isinstance(base, Table) else None

    @property
    def records(self) -> int | None:
        """How many records a table has, where the spec says so."""
        base = self.base_domain
        return base.records if isinstance(base, Table) else None

    @property
    def geometry(self) -> Geometry:
        """How one unit can move."""
        from privspec.model.domains import L1Ball

        base = self.base_domain
        if isinstance(base, Table):
            return CellGeometry(base.records)
        if isinstance(base, Ball):
            return BallGeometry(base.radius, base.dimension, 1 if isinstance(base, L1Ball) else 2)
        return BoxGeometry(*base.bounds) if is_numeric(base) else NoGeometry()


@dataclass(frozen=True, slots=True)
class PartySet:
    """People 1..size who each hold data."""

    name: str
    size: int
    span: Span


@dataclass(frozen=True)
class ComponentModel:
    """Another spec used as a part; `links` maps its inputs to names of this one."""

    name: str
    model: Model
    links: Mapping[str, str]
    overrides: Mapping[str, syntax.Expr]
    span: Span


@dataclass(frozen=True)
class Model:
    """A spec whose names, shapes, domains and units make sense."""

    source: Source
    spec: syntax.Spec
    name: str
    parameters: Mapping[str, Value]
    values: Mapping[str, Value]
    nodes: Mapping[str, GraphNode]
    edges: tuple[tuple[str, str], ...]
    order: tuple[str, ...]
    blocks: tuple[InputBlock, ...]
    targets: Mapping[str, syntax.Expr]
    loss: syntax.Expr | None
    requirements: tuple[Requirement, ...]
    trust: Trust
    base: Path | None = None
    parties: Mapping[str, PartySet] = field(default_factory=dict)
    components: tuple[ComponentModel, ...] = ()
    models: tuple[DataModel, ...] = ()
    constraints: tuple[MechanismConstraint, ...] = ()
    asserted: tuple[AssertedSensitivity, ...] = ()
    accuracy: tuple[AccuracyTarget, ...] = ()
    fairness: tuple[IndependenceRequirement | Requirement, ...] = ()
    noise_at: tuple[str, ...] | None = None
    noise_at_spans: tuple[Span, ...] = ()
    families: tuple[str, ...] = ()
    family_spans: tuple[Span, ...] = ()
    files: Mapping[str, Array] = field(default_factory=dict)
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def size(self) -> int:
        """Number of coordinates of the base vector."""
        return self.blocks[-1].stop if self.blocks else 0

    def _kind(self, kind: VariableKind) -> tuple[GraphNode, ...]:
        return tuple(node for node in self.nodes.values() if node.kind is kind)

    @property
    def inputs(self) -> tuple[GraphNode, ...]:
        """The secret inputs, in order of declaration."""
        return self._kind(VariableKind.INPUT)

    @property
    def outputs(self) -> tuple[GraphNode, ...]:
        """What is released."""
        return self._kind(VariableKind.OUTPUT)

    @property
    def intermediates(self) -> tuple[GraphNode, ...]:
        """What is computed on the way."""
        return self._kind(VariableKind.INTERMEDIATE)

    @property
    def constants(self) -> tuple[GraphNode, ...]:
        """Public values."""
        return self._kind(VariableKind.CONSTANT)

    @property
    def choices(self) -> tuple[GraphNode, ...]:
        """What the solver picks."""
        return self._kind(VariableKind.CHOOSE)

    def exposed(self, requirement: Requirement) -> tuple[str, ...]:
        """The outputs whose joint law a line is about: under `trust nobody` every message is seen by all."""
        return tuple(node.name for node in self.outputs) if isinstance(self.trust, Nobody) else requirement.outputs

    def block(self, name: str) -> InputBlock:
        """The block of an input.

        Raises: KeyError if there is no such input.
        """
        for block in self.blocks:
            if block.name == name:
                return block
        raise KeyError(name)

    @cached_property
    def graph(self) -> networkx.DiGraph[str]:
        """Variables as nodes (attribute "node"), `a -> b` where b is computed from, or released for, a."""
        import networkx

        graph: networkx.DiGraph[str] = networkx.DiGraph()
        for name, node in self.nodes.items():
            graph.add_node(name, node=node)
        graph.add_edges_from(self.edges)
        return graph


def lay_out(nodes: Mapping[str, GraphNode], source: Source) -> tuple[InputBlock, ...]:
    """Give each input its coordinates, in order of declaration."""
    blocks: list[InputBlock] = []
    start = 0
    for node in nodes.values():
        if node.kind is not VariableKind.INPUT or node.domain is None:
            continue
        element = node.type.element
        cells = isinstance(element, Tables)
        size = element.table.cell_count if isinstance(element, Tables) else node.type.size
        blocks.append(
            InputBlock(
                node.name,
                start,
                start + size,
                "cells" if cells else "entries",
                node.domain,
                node.type,
                node.span,
                source,
                node.index,
            )
        )
        start += size
    return tuple(blocks)
