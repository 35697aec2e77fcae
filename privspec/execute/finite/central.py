"""One draw about all of the data: the inputs as the spec lays them out, then the values that pick the row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from privspec.core.diagnostics import Diagnostic, UsageError
from privspec.execute.arrays import Declared, read_entries
from privspec.execute.ballots.form import Form
from privspec.execute.ballots.reading import read_ballots, refuse_number
from privspec.execute.ballots.sources import holds_ballots
from privspec.execute.data import located
from privspec.execute.family import Circumstances, Drawn, Secret
from privspec.execute.finite.atoms import atom_of, base_of
from privspec.execute.finite.rows import ModelRows
from privspec.execute.finite.table import TableLaw
from privspec.execute.problems import STRICT_RULE, refuse, refuse_strictly
from privspec.execute.randomness import Randomness
from privspec.model.domains import Rankings
from privspec.model.spaces import order_matters

if TYPE_CHECKING:
    from privspec.model.neighbours import InputBlock
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
    applied: tuple[str, ...] = (CENTRAL_RULE,)

    @property
    def rules(self) -> tuple[str, ...]:
        """What was done with values outside their domains."""
        return (STRICT_RULE,) if self.strict else self.applied

    def draw(self, randomness: Randomness) -> Drawn:
        """One joint output."""
        drawn = self.law.laws[self.row].draw(randomness)
        return Drawn({name: np.asarray(values[drawn]) for name, values in self.law.columns.values().items()})


def read_central(law: TableLaw, rows: ModelRows, data: Mapping[str, Any], circumstances: Circumstances) -> OneRow:
    """Reads every input in its declared shape.

    Raises: DataError (PS0802 to PS0809); UsageError (PS0820) if the table has no row for what the data amount to.
    """
    values, applied = read_values(rows, data, circumstances)
    row = rows.row_of(values)
    if row is None:
        raise UsageError(
            Diagnostic(
                "PS0820",
                f"the plan has no row for a value of {', '.join(rows.of)} that the spec allows",
                help="solve the spec again with this version of privspec",
            )
        )
    return OneRow(law, row, circumstances.strict, applied)


def read_values(
    rows: ModelRows, data: Mapping[str, Any], circumstances: Circumstances
) -> tuple[dict[str, Value], tuple[str, ...]]:
    """The values of all inputs, and the rules that were applied to them.

    Raises: DataError (PS0801 to PS0809).
    """
    values: dict[str, Value] = {}
    applied: dict[str, None] = {}
    for block in rows.blocks:
        if block.name not in data:
            refuse("PS0801", f"no data for the input {block.name}", help=f"give --input {block.name}=FILE")
        source = data[block.name]
        form = _ballots(rows, block, source, header=circumstances.header)
        if form is None:
            values[block.name] = _read_value(rows, block, located(block.name, source), circumstances)
            applied[CENTRAL_RULE] = None
        else:
            values[block.name] = _read_ballots(rows, block, form, source, circumstances)
            applied |= dict.fromkeys(form.rules(strict=circumstances.strict))
    return values, tuple(applied)


def _ballots(rows: ModelRows, block: InputBlock, source: Any, *, header: bool) -> Form | None:
    """The ballots that a source holds, for an input of one value a party whose order nothing looks at."""
    if block.index is None or order_matters(rows.model, block.name):
        return None
    form = Form.of_block(block)
    return form if form is not None and header and holds_ballots(form, source) else None


def _read_ballots(rows: ModelRows, block: InputBlock, form: Form, source: Any, circumstances: Circumstances) -> Value:
    """The value of an input from its ballots, in any order."""
    strict, header, keeper = circumstances.strict, circumstances.header, circumstances.keeper
    found = read_ballots(form, source, strict=strict, header=header, keeper=keeper)
    if found.number != block.type.size:
        refuse_number(form, block.type.size, found.number)
    ranked = isinstance(block.type.element, Rankings)
    each = ((ballot if ranked else ballot[0], count) for ballot, count in found.each())
    return rows.value(block, [value for value, count in each for _ in range(count)])


def _read_value(rows: ModelRows, block: InputBlock, source: Any, circumstances: Circumstances) -> Value:
    """The value of an input, each entry put into its domain by itself."""
    atom = atom_of(tuple(base_of(block.domain).elements()))
    fit = atom.fit(circumstances.keeper, block.name)
    declared = Declared(block.name, block.type.shape, block.index, atom.read, fit.cell)
    found = read_entries(declared, source, header=circumstances.header)
    atom.tell(found, fit)
    if circumstances.strict and not atom.fits(found).all():
        refuse_strictly(block.name)
    return rows.value(block, [atom.elements[place] for place in atom.places(found)])
