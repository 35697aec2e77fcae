"""One draw about all of the data: the inputs as the spec lays them out, then the values that pick the row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from privspec.core.diagnostics import Diagnostic, UsageError
from privspec.execute.arrays import Declared, read_entries
from privspec.execute.data import located
from privspec.execute.family import Circumstances, Drawn, Secret
from privspec.execute.finite.atoms import atom_of, base_of
from privspec.execute.finite.rows import ModelRows
from privspec.execute.finite.table import TableLaw
from privspec.execute.problems import STRICT_RULE, refuse, refuse_strictly
from privspec.execute.randomness import Randomness

if TYPE_CHECKING:
    from privspec.model.graph import InputBlock
    from privspec.model.values import Value

CENTRAL_RULE = (
    "each entry by itself: a number moves to the nearest value of its domain (halfway, to the larger), a missing or "
    "unreadable number to the value nearest to zero; a word that is missing or not in its set becomes the set's first"
)


@dataclass(frozen=True, eq=False, slots=True)
class OneRow(Secret):
    """The row that the data pick."""

    law: TableLaw
    row: int
    strict: bool

    @property
    def rules(self) -> tuple[str, ...]:
        """What was done with values outside their domains."""
        return (STRICT_RULE,) if self.strict else (CENTRAL_RULE,)

    def draw(self, randomness: Randomness) -> Drawn:
        """One joint output."""
        drawn = self.law.laws[self.row].draw(randomness)
        return Drawn({name: np.asarray(values[drawn]) for name, values in self.law.columns.values().items()})


def read_central(law: TableLaw, rows: ModelRows, data: Mapping[str, Any], circumstances: Circumstances) -> OneRow:
    """Reads every input in its declared shape.

    Raises: DataError (PS0802 to PS0809); UsageError (PS0820) if the table has no row for what the data amount to.
    """
    values = {}
    for block in rows.blocks:
        if block.name not in data:
            refuse("PS0801", f"no data for the input {block.name}", help=f"give --input {block.name}=FILE")
        source = located(block.name, data[block.name])
        values[block.name] = _read_value(rows, block, source, strict=circumstances.strict)
    row = rows.row_of(values)
    if row is None:
        raise UsageError(
            Diagnostic(
                "PS0820",
                f"the plan has no row for a value of {', '.join(rows.of)} that the spec allows",
                help="solve the spec again with this version of privspec",
            )
        )
    return OneRow(law, row, circumstances.strict)


def _read_value(rows: ModelRows, block: InputBlock, source: Any, *, strict: bool) -> Value:
    """The value of an input, each entry put into its domain by itself."""
    atom = atom_of(tuple(base_of(block.domain).elements()))
    found = read_entries(Declared(block.name, block.type.shape, block.index, atom.read), source)
    if strict and not atom.fits(found).all():
        refuse_strictly(block.name)
    return rows.value(block, [atom.elements[place] for place in atom.places(found)])
