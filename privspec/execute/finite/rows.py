"""Which row of a table the values of the inputs pick: directly, as counts, or through values computed from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, singledispatch
from itertools import product
from typing import TYPE_CHECKING, Any

from privspec.core.diagnostics import Diagnostic, UsageError
from privspec.execute.finite.atoms import Atom, atom_of, base_of
from privspec.execute.finite.labels import Labels
from privspec.execute.records import Fields
from privspec.model.pointwise import Pointwise
from privspec.model.reports import Failure
from privspec.model.values import Value
from privspec.model.worlds import Counted, Listed, as_value, key, label, space_of

if TYPE_CHECKING:
    from privspec.model.graph import Model
    from privspec.model.neighbours import InputBlock


@dataclass(frozen=True, eq=False, slots=True)
class Variable:
    """An input as one record holds it: its columns, and the values that each of them can take."""

    fields: Fields
    atoms: tuple[Atom, ...]


class Rows(ABC):
    """From the values of the inputs to the number of a row."""

    @property
    @abstractmethod
    def variables(self) -> tuple[Variable, ...]:
        """The inputs that pick the row."""

    @abstractmethod
    def row(self, codes: tuple[int, ...]) -> int | None:
        """The row of one record, given by the place of each value in its atom, one input after another."""


@dataclass(frozen=True, eq=False)
class LabelledRows(Rows):
    """Rows whose labels are the inputs' own values: all that a plan without its spec can tell."""

    labels: Labels

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """As the labels have them."""
        found, start = [], 0
        for fields in self.labels.fields:
            found.append(Variable(fields, self.labels.atoms[start : start + fields.count]))
            start += fields.count
        return tuple(found)

    def row(self, codes: tuple[int, ...]) -> int | None:
        """The label that says so, None if there is none."""
        return self.labels.places.get(codes)


@dataclass(frozen=True, eq=False)
class ModelRows(Rows):
    """Rows as the spec defines them: of inputs, of counts of an input's records, or of computed values."""

    model: Model
    of: tuple[str, ...]
    labels: tuple[Any, ...]

    @cached_property
    def blocks(self) -> tuple[InputBlock, ...]:
        """The inputs behind the rows."""
        waiting, found = list(self.of), set()
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += [a for a, b in self.model.edges if b == name and self.model.nodes[a].secret]
        return tuple(b for b in self.model.blocks if b.name in found)

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """With the values of their domains; what has no shape is one value a record."""
        return tuple(_variable(block) for block in self.blocks)

    @property
    def texts(self) -> tuple[str, ...]:
        """One text for each row: "3", "3, 4", "F, high"; for counts of an input's values "yes: 2, no: 1"."""
        parts = [label if len(self.of) > 1 else [label] for label in self.labels]
        shown = [[_text(own) for own in column] for column in zip(*parts, strict=True)]
        for at, name in enumerate(self.of):
            node = self.model.nodes[name]
            space = None if node.definition is not None else space_of(self.model, node)
            if isinstance(space, Counted):
                shown[at] = [_count_text(space, part[at]) for part in parts]
        return tuple(", ".join(row) for row in zip(*shown, strict=True))

    @cached_property
    def _places(self) -> dict[Any, int]:
        return {_frozen(text): i for i, text in enumerate(self.labels)}

    def row(self, codes: tuple[int, ...]) -> int | None:
        """The row of the record's values."""
        values: dict[str, Value] = {}
        start = 0
        for block, variable in zip(self.blocks, self.variables, strict=True):
            part = codes[start : start + variable.fields.count]
            start += variable.fields.count
            items = [atom.elements[code] for atom, code in zip(variable.atoms, part, strict=True)]
            values[block.name] = self.value(block, items)
        return self.row_of(values)

    @staticmethod
    def value(block: InputBlock, items: list[Any]) -> Value:
        """The value of an input from its entries, row-major."""
        return as_value(_nested(items, block.type.shape))

    def row_of(self, values: Mapping[str, Value]) -> int | None:
        """The row of values by input name.

        Raises: UsageError PS0820 if the row's own values cannot be computed.
        """
        scene = Pointwise(self.model, {name: [value] for name, value in values.items()})
        try:
            found = [self._forms(name, scene) for name in self.of]
        except Failure as error:
            # the words of the error may hold what was computed from data
            raise UsageError(
                Diagnostic("PS0820", f"{', '.join(self.of)} cannot be computed from these data", notes=(error.code,))
            ) from None
        for joint in product(*found):
            place = self._places.get(joint[0] if len(joint) == 1 else tuple(joint))
            if place is not None:
                return place
        return None

    def _forms(self, name: str, scene: Pointwise) -> list[Any]:
        """How a label may write the value of a node: as it is, or, for records in any order, by their counts."""
        node = self.model.nodes[name]
        value = scene.node(name, node.span).value(0, 0)
        plain = [_frozen(label(value))]
        return plain if node.definition is not None else _own_labels(space_of(self.model, node), value) + plain


@singledispatch
def _own_labels(space: object, value: Any) -> list[Any]:  # noqa: ARG001
    """How plans write the value of an input that is held in a space of its own, other than as it is."""
    raise TypeError(type(space).__name__)


@_own_labels.register(Listed)
def _(space: Listed, value: Any) -> list[Any]:  # noqa: ARG001
    return []


@_own_labels.register(Counted)
def _(space: Counted, value: Any) -> list[Any]:
    """Counts, and the member of the class that stands for it."""
    held = Counter(key(item) for item in value)
    counts = [held[key(item)] for item in space.items]
    member = [item for item, count in zip(space.items, counts, strict=True) for _ in range(count)]
    return [tuple(str(count) for count in counts), tuple(_frozen(label(item)) for item in member)]


def _variable(block: InputBlock) -> Variable:
    atom = atom_of(tuple(base_of(block.domain).elements()))
    size = block.type.size if block.type.shape else None
    return Variable(Fields(block.name, size), (atom,) * block.type.size)


def _nested(items: list[Any], shape: tuple[int, ...]) -> Any:
    """Items in tuples of the given shape, row-major."""
    if not shape:
        return items[0]
    step = len(items) // shape[0] if shape[0] else 0
    return tuple(_nested(items[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0]))


def _text(own: Any) -> str:
    return ", ".join(_text(item) for item in own) if isinstance(own, list) else str(own)


def _count_text(space: Counted, own: list[str]) -> str:
    """Counts with the values they are of; a label that is a member of the class stays as it is."""
    if len(own) != len(space.items) or sum(int(count) for count in own if count.isdigit()) != space.records:
        return _text(own)
    items = [_text(label(item)) for item in space.items]
    return ", ".join(f"{item}: {count}" for item, count in zip(items, own, strict=True))


def _frozen(text: Any) -> Any:
    """A label that can be looked up."""
    return tuple(_frozen(item) for item in text) if isinstance(text, list | tuple) else text
