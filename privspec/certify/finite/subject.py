"""A plan that draws from a table, beside the model of its spec, with what several claims need, derived once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

import numpy as np

from privspec.certify.finite.distances import Apart, apart
from privspec.certify.finite.laws import row_law
from privspec.certify.finite.ratios import Comparison, Entries, Indices
from privspec.certify.finite.relations import Neighbours, neighbours
from privspec.certify.finite.table import Table, read_table
from privspec.certify.finite.worlds import ENTRY_LIMIT, Part, Rows, derive_rows, part_of, written
from privspec.certify.motion import NotUnderstood
from privspec.certify.opened import Opened
from privspec.certify.reading import At, Malformed, read_guarantee
from privspec.language import syntax
from privspec.language.walk import names_used
from privspec.model.domains import Law
from privspec.model.graph import GraphNode, Model
from privspec.model.pointwise import Pointwise
from privspec.model.requirements import Requirement
from privspec.model.values import Symbol, Value, show


@dataclass(frozen=True, eq=False)
class FiniteSubject(Opened):
    """What is verified: the plan as it stands and its exact table."""

    table: Table

    @cached_property
    def rows(self) -> Rows:
        """The rows that the spec implies.

        Raises: Malformed if they are not those of the plan.
        """
        rows = derive_rows(self.model, self.table.of, self.table.inputs)
        if rows.labels != self.table.inputs:
            raise Malformed("the rows of the table are not the values of " + " and ".join(self.table.of))
        return rows

    @cached_property
    def outputs(self) -> tuple[Part, ...]:
        """The outputs that are drawn, in order of declaration."""
        return tuple(part_of(self.model, node) for node in self.model.outputs)

    @cached_property
    def columns(self) -> Mapping[str, Sequence[Value]]:
        """For each output its value in every column.

        Raises: Malformed if the columns of the plan are others.
        """
        count = prod(part.count for part in self.outputs)
        if count != len(self.table.outputs) or count > ENTRY_LIMIT:
            raise Malformed(f"the table has {len(self.table.outputs)} columns, and the outputs take {count} values")
        joint = list(product(*([part.boxed(flat) for flat in part.values()] for part in self.outputs)))
        labels = [written(column[0]) if len(column) == 1 else tuple(map(written, column)) for column in joint]
        if tuple(labels) != self.table.outputs:
            raise Malformed("the columns of the table are not the values of the outputs, in order")
        return {part.name: [column[i] for column in joint] for i, part in enumerate(self.outputs)}

    def view(self, names: Sequence[str]) -> Indices:
        """For each column the number of the value of some outputs (row-major over those, in order of declaration)."""
        sizes = [part.count for part in self.outputs]
        places = np.unravel_index(np.arange(prod(sizes)), sizes)
        seen = np.zeros(prod(sizes), dtype=np.int64)
        for part, place in zip(self.outputs, places, strict=True):
            if part.name in names:
                seen = seen * part.count + place
        return seen

    @cached_property
    def _views(self) -> dict[tuple[str, ...], Comparison]:
        return {}

    def seen(self, names: Sequence[str]) -> Comparison:
        """The laws of some outputs."""
        key = tuple(part.name for part in self.outputs if part.name in names)
        if key not in self._views:
            self._views[key] = self.table.seen(self.view(key))
        return self._views[key]

    @cached_property
    def _compared(self) -> dict[tuple[Any, ...], Any]:
        return {}

    def neighbours(self, requirement: Requirement) -> Neighbours:
        """The rows that a requirement compares."""
        key = (requirement.neighbours, requirement.wrt)
        if key not in self._compared:
            self._compared[key] = neighbours(self.model, self.rows, requirement)
        found: Neighbours = self._compared[key]
        return found

    def apart(self, requirement: Requirement) -> Apart:
        """The same with their distances."""
        key = (requirement.neighbours, requirement.wrt, requirement.line)
        if key not in self._compared:
            self._compared[key] = apart(self.model, self.rows, requirement)
        found: Apart = self._compared[key]
        return found

    @cached_property
    def prior(self) -> tuple[Fraction, ...] | None:
        """The law of the rows that the data models imply."""
        return row_law(self.model, self.rows)

    # --- what is chosen ----------------------------------------------------------------------------------

    @cached_property
    def chosen_numbers(self) -> tuple[GraphNode, ...]:
        """`choose` numbers of the spec."""
        return tuple(node for node in self.model.choices if not isinstance(node.domain, Law))

    @cached_property
    def chosen_laws(self) -> Mapping[str, tuple[Symbol, ...]]:
        """Laws that the spec leaves to the solver, with their values in order."""
        found: dict[str, tuple[Symbol, ...]] = {}
        for node in self.model.choices:
            if isinstance(node.domain, Law):
                if node.domain.over.size is None:
                    raise NotUnderstood(f"{node.name} is a law over infinitely many values")
                found[node.name] = tuple(node.domain.over.elements())
        return found

    @cached_property
    def laws(self) -> Mapping[str, Mapping[Symbol, Fraction]]:
        """The masses that the plan gives to the values of these laws.

        Raises: Malformed if they are no laws.
        """
        found: dict[str, Mapping[Symbol, Fraction]] = {}
        for name, stated in self.table.laws.items():
            values = self.chosen_laws.get(name)
            if values is None or [show(v) for v in values] != list(stated):
                raise Malformed(f"the law {name} of the plan is not one that the spec leaves open")
            if any(mass < 0 for mass in stated.values()) or sum(stated.values()) != 1:
                raise Malformed(f"the masses of {name} are not probabilities that sum to one")
            found[name] = dict(zip(values, stated.values(), strict=True))
        return found

    def uses(self, name: str) -> bool:
        """Whether the loss, an accuracy line or a condition of the spec depends on a variable."""
        model = self.model
        trees: list[syntax.Node] = [] if model.loss is None else [model.loss]
        trees += [line.target for line in model.accuracy]
        trees += [line.relation for line in model.constraints]
        waiting, seen = [used for tree in trees for used in names_used(tree)], set[str]()
        while waiting:
            current = waiting.pop()
            if current in seen:
                continue
            seen.add(current)
            node = model.nodes.get(current)
            if node is not None and node.definition is not None:
                waiting.extend(names_used(node.definition))
        return name in seen

    @cached_property
    def known_costs(self) -> dict[syntax.Expr, Any]:
        """Costs of draws that were evaluated before, by their expression."""
        return {}

    @cached_property
    def scene(self) -> Pointwise:
        """Every expression at every row and column, with what is chosen as the plan says."""
        return Pointwise(self.model, self.rows.values, self.columns, self.table.scalars, self.laws)

    @cached_property
    def open_scene(self) -> Pointwise:
        """The same where nothing that is chosen has a value."""
        return Pointwise(self.model, self.rows.values, self.columns)

    def spread(self, data: Entries) -> Entries:
        """Values of all pairs (rows, columns) from those that are held once."""
        every: Entries = np.broadcast_to(data, self.table.shape)
        return every


def read_finite(plan: At, model: Model) -> FiniteSubject:
    """The table of a plan with its guarantees.

    Raises: Malformed.
    """
    guarantees = tuple(read_guarantee(item) for item in plan["guarantees"].items())
    return FiniteSubject(plan, model, guarantees, read_table(plan["mechanism"]))


def label_text(label: Any) -> str:
    """A label in a sentence."""
    return label if isinstance(label, str) else "(" + ", ".join(map(label_text, label)) + ")"
