"""Made-up records that agree with released tables of counts: worked out from the release alone, so at no cost.

Whatever follows from what was released tells no more of the data than that did. What the tables do not say is left as
near to independent as the search for records leaves it: such records are good for what the tables are good for, and
no error that is worked out from them says how far off they are.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import UsageError
from privspec.core.files import PRIVATE, STANDARD, StandardOutput, write_atomically
from privspec.core.records import dataclass
from privspec.execute.family import Progress
from privspec.execute.keeper import refuse
from privspec.execute.release import document_of
from privspec.execute.run import check_digest
from privspec.model.domains import Table, Tables
from privspec.model.graph import Model
from privspec.model.targets import cell_values, meaning, tallies_of
from privspec.solvers.records import Counts, Rows, agreeing

MOST = 1_000_000
"""Records that are made up at most."""
Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True)
class Kept:
    """How near made-up records come to a released table: root mean squares over its cells, in records of the data.

    `noise`: of what was added to it; None where the plan alone does not fix that.
    """

    columns: tuple[str, ...]
    cells: int
    off: float
    noise: float | None

    @property
    def within(self) -> bool:
        """Whether the records are no further off than the noise is."""
        return self.noise is not None and self.off <= self.noise


@dataclass(frozen=True, eq=False)
class Synthetic:
    """Made-up records: for each column its values, and the place of that of each record (records, columns).

    `tables`: how well they keep each table that they are made from; `left`: columns and outputs that they say nothing
    of; `private`: whether the release that they follow from is.
    """

    values: Mapping[str, NDArray[Any]]
    places: Rows
    tables: tuple[Kept, ...]
    left: tuple[str, ...]
    private: bool

    @cached_property
    def columns(self) -> dict[str, NDArray[Any]]:
        """The records, column by column."""
        return {name: values[self.places[:, k]] for k, (name, values) in enumerate(self.values.items())}

    def text(self) -> str:
        """What they keep of the release, as a table."""
        kept = sum(one.within for one in self.tables)
        title = (
            f"{len(self.places):,} made-up records · {kept} of {len(self.tables)} tables are kept within their noise"
        )
        width = max(len(" x ".join(one.columns)) for one in self.tables)
        lines = [title, "", f"  {'table':<{width}}   cells   off by    noise"]
        for one in self.tables:
            noise = "not known" if one.noise is None else f"{one.noise:.3g}"
            lines.append(f"  {' x '.join(one.columns):<{width}}  {one.cells:>6,}   {one.off:<8.3g}  {noise}")
        lines += ["", "  in records of the data, root mean square over the cells of a table"]
        lines += [f"  {one}" for one in self.left]
        if not self.private:
            lines.append("  the release is not private, and neither are these records")
        return "\n".join(lines) + "\n"

    def write(self, path: Path, mode: int = PRIVATE) -> None:
        """A .csv file, or a .parquet one."""
        if str(path) == STANDARD:
            with StandardOutput() as out:
                out.commit(self._csv().encode("utf-8"))
        elif path.suffix.lower() == ".parquet":
            import polars as pl

            held = io.BytesIO()
            pl.DataFrame({name: values.tolist() for name, values in self.columns.items()}).write_parquet(held)
            write_atomically(path, held.getvalue(), mode)
        else:
            write_atomically(path, self._csv().encode("utf-8"), mode)

    def _csv(self) -> str:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(zip(*(values.tolist() for values in self.columns.values()), strict=True))
        return text.getvalue()


@dataclass(frozen=True, eq=False, slots=True)
class _Released:
    """A table of counts that was released: by which columns, and the deviation of the noise of its numbers."""

    by: tuple[int, ...]
    counts: Array
    noise: float | None

    def weight(self, share: float) -> float:
        """Of its errors, where records stand for `share` of one of the data each: whole ones are off by a part."""
        return 1 / max(1.0, ((self.noise or 0) * share) ** 2)


def synthetic(plan: Mapping[str, Any], release: Any, model: Model, records: int, progress: Progress) -> Synthetic:
    """Records that agree best with the tables of a release of a plan.

    Args: release, a file of it (.json), or the release; records, how many.
    Raises: UsageError, DataError (PS0845), VerificationError.
    """
    if not 1 <= records <= MOST:
        raise UsageError.of("PS0845", f"from 1 to {MOST:,} records are made up, and {records:,} were asked for")
    digest, message = check_digest(plan), document_of(release)
    if message is None:
        _refuse("this is no release", "a release is what `privspec run PLAN -o RELEASE.json` writes")
    if message.get("plan_sha256") != digest:
        _refuse("the release was made under another plan", "take the plan that it was run with")
    if (drawn := model.drawn) is not None:
        model = drawn.at(_numbers(message["outputs"].get(drawn.name, {}), 1)[0])
        if model is None:
            _refuse(f"the release says no value that {drawn.name} may have", "take the file as it was written")
    table, found, left = _tables(model, message)
    used = sorted({column for one in found for column in one.by})
    place = {column: k for k, column in enumerate(used)}
    absent = [name for i, name in enumerate(table.names) if i not in used]
    left += [f"{name} is in no table of counts: the records have no such column" for name in absent]
    total = _records(found)
    if total <= 0:
        _refuse("the tables count no records at all", "run the plan on more data")
    share = records / total
    aims = [Counts(tuple(place[i] for i in one.by), one.counts * share, one.weight(share)) for one in found]
    values = cell_values(table, used)
    sizes = [len(one) for one in values.values()]
    rows = agreeing(sizes, aims, records, lambda sweep: progress("times over all records", sweep, None))
    kept = tuple(_kept(one, aim, rows, table, share) for one, aim in zip(found, aims, strict=True))
    return Synthetic(values, rows, kept, tuple(left), message.get("private") is True)


def _refuse(message: str, hint: str) -> NoReturn:
    refuse("PS0845", message, help=hint)


def _tables(model: Model, message: Mapping[str, Any]) -> tuple[Table, list[_Released], list[str]]:
    """The tables of counts among what was released, of one table of records, and words on what is none."""
    found, left, tables = list[_Released](), list[str](), dict[str, Table]()
    for output in model.outputs:
        own = message["outputs"].get(output.name)
        counted = tallies_of(model, meaning(model, output.name))
        if own is None or not counted or any(not name or one.running or one.ranges for name, one in counted):
            left.append(f"{output.name} gives no plain tables of counts: the records were made without it")
            continue
        numbers = _numbers(own, output.type.size)
        deviations, start = own.get("standard_deviation"), 0
        for name, tally in counted:
            tables[name] = _table_of(model, name)
            shape = tuple(tables[name].cell_shape[i] for i in tally.by)
            stop = start + int(np.prod(shape))
            found.append(_Released(tally.by, numbers[start:stop].reshape(shape), _noise(deviations, start, stop)))
            start = stop
    if not found:
        _refuse("the plan releases no tables of counts", "as in marginals(people, up_to = 2)")
    if len(tables) > 1:
        _refuse(f"the plan releases tables of {' and '.join(tables)}", "records are made up for one table")
    return next(iter(tables.values())), found, left


def _table_of(model: Model, name: str) -> Table:
    element = model.nodes[name].type.element
    assert isinstance(element, Tables)  # nothing else is tallied by columns
    return element.table


def _numbers(document: Mapping[str, Any], size: int) -> Array:
    """The released numbers of an output."""
    values = document.get("values")
    if not isinstance(values, list) or len(values) != size:
        _refuse("the release does not hold as many numbers as the plan gives", "take the file as it was written")
    if not all(isinstance(one, int | float) and isfinite(one) for one in values):
        _refuse("the release holds something else than numbers", "take the file as it was written")
    return np.array(values, dtype=np.float64)


def _noise(deviations: Any, start: int, stop: int) -> float | None:
    """The root mean square of the deviations of these numbers, where all are known."""
    own = deviations[start:stop] if isinstance(deviations, list) else []
    if len(own) < stop - start or not all(isinstance(one, int | float) for one in own):
        return None
    return float(np.sqrt(np.mean(np.square(own))))


def _records(tables: list[_Released]) -> float:
    """How many records the tables count: the best average of what each adds up to."""
    weights = [1 / (one.counts.size * (one.noise or 1.0) ** 2) for one in tables]
    sums = (weight * float(one.counts.sum()) for weight, one in zip(weights, tables, strict=True))
    return sum(sums) / sum(weights)


def _kept(one: _Released, aim: Counts, rows: Rows, table: Table, share: float) -> Kept:
    places = np.ravel_multi_index(tuple(rows[:, column] for column in aim.by), aim.aims.shape)
    have = np.bincount(places, minlength=aim.aims.size).reshape(aim.aims.shape)
    off = float(np.sqrt(np.mean(np.square(have - aim.aims)))) / share
    return Kept(tuple(table.names[i] for i in one.by), aim.aims.size, off, one.noise)
