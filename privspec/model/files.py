"""Public tables of numbers beside a spec: CSV and NPY, read exactly and refused with a position."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspec.core.spans import Span
from privspec.model.reports import Failure, nearest
from privspec.model.values import Array, as_float, exact_array

BYTES_LIMIT = 2**30
EXACT_LIMIT = 2**17
"""Files of at most this many numbers are also kept as exact decimals."""


@dataclass(frozen=True, eq=False, slots=True)
class Reader:
    """Reads files named in a spec, relative to `base`.

    `fixed` overrides the disk by key ("csv:queries.csv"); `seen` collects what was read, by the same keys.
    """

    base: Path | None = None
    fixed: dict[str, Array] | None = None
    seen: dict[str, Array] | None = None

    def read(self, kind: str, name: str, span: Span, *, exact: bool = False) -> NDArray[Any]:
        """The numbers of a file: (rows, columns), or (rows,) for a CSV of one column.

        Raises: Failure PS0240-PS0246 naming file, row and column.
        """
        key = f"{kind}:{name}"
        array: NDArray[Any]
        if self.seen is not None and key in self.seen and not exact:
            return self.seen[key]
        if self.fixed is not None and key in self.fixed:
            array = _as_written(self.fixed[key]) if exact else self.fixed[key]
        else:
            path = self._path(name, span)
            array = read_npy(path, name, span) if kind == "npy" else read_csv(path, name, span, exact=exact)
        if self.seen is not None:
            self.seen[key] = as_float(array)
        return array

    def _path(self, name: str, span: Span) -> Path:
        if not name or "\0" in name:
            raise Failure("PS0240", span, "a file name is wanted here")
        path = Path(name) if self.base is None else self.base / name
        if not path.is_file():
            near = None
            if path.parent.is_dir():
                near = nearest(path.name, (p.name for p in path.parent.iterdir() if p.is_file()))
            what = "is a folder" if path.is_dir() else "does not exist"
            hint = f"did you mean {near}?" if near else f"files are looked up beside the spec, in {path.parent}"
            raise Failure("PS0240", span, f"the file {name} {what}", help=hint)
        if path.stat().st_size > BYTES_LIMIT:
            raise Failure("PS0244", span, f"the file {name} is larger than 1 GB")
        return path


def _as_written(array: Array) -> NDArray[Any]:
    """The shortest decimals that give these doubles, exactly: what a file of figures most likely said."""
    if array.size > EXACT_LIMIT:
        return array
    return exact_array([Fraction(repr(float(entry))) for entry in array.ravel()], array.shape)


def _cell(text: str) -> float | None:
    """A decimal number; None if the text is none (underscores and other Python spellings are no numbers)."""
    if "_" in text:
        return None
    try:
        return float(text)
    except ValueError:
        return None


def read_csv(path: Path, name: str, span: Span, *, exact: bool = False) -> NDArray[Any]:
    """A rectangle of decimals with commas between; one row of headings is skipped if it holds no number.

    Returns: (rows, columns) float64, or (rows,) for one column; fractions instead if `exact` and small.
    Raises: Failure with file, row and column of the first cell that is wrong; never with its text.
    """
    rows: list[list[str]] = []
    numbers: list[list[float]] = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            for line, row in enumerate(csv.reader(stream), start=1):
                if not any(cell.strip() for cell in row):
                    continue
                cells = [_cell(cell.strip()) for cell in row]
                if not numbers and all(value is None for value in cells) and line == 1:
                    continue
                for column, value in enumerate(cells, start=1):
                    where = f"{name}, row {line}, column {column}"
                    if value is None:
                        raise Failure("PS0241", span, f"{where}: a number is wanted", label="read here")
                    if not np.isfinite(value):
                        raise Failure("PS0242", span, f"{where}: the number is not finite", label="read here")
                if numbers and len(cells) != len(numbers[0]):
                    raise Failure(
                        "PS0243",
                        span,
                        f"{name}, row {line}: {len(cells)} cells, but {len(numbers[0])} in the rows above",
                        label="read here",
                    )
                numbers.append([value for value in cells if value is not None])
                if exact:
                    rows.append([cell.strip() for cell in row])
    except UnicodeDecodeError as error:
        raise Failure("PS0246", span, f"{name} is not text in UTF-8") from error
    except csv.Error as error:
        raise Failure("PS0246", span, f"{name} is no CSV file: {error}") from error
    except OSError as error:
        raise Failure("PS0240", span, f"the file {name} cannot be read: {error.strerror}") from error
    if not numbers:
        raise Failure("PS0245", span, f"{name} holds no numbers", label="read here")
    array: NDArray[Any] = np.array(numbers, dtype=np.float64)
    if exact and array.size <= EXACT_LIMIT:
        # 1e400-like cells were refused above, so every text here is a short decimal
        flat = np.empty(array.size, dtype=object)
        flat[:] = [Fraction(cell) for row in rows for cell in row]
        array = flat.reshape(array.shape)
    return array[:, 0] if array.shape[1] == 1 else array


def read_npy(path: Path, name: str, span: Span) -> Array:
    """An array of finite numbers in NumPy's own format (no pickled objects).

    Raises: Failure naming the file and the place of the first number that is wrong.
    """
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise Failure("PS0246", span, f"{name} is no NPY file of numbers") from error
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
        raise Failure("PS0246", span, f"{name} is no NPY file of numbers")
    if array.size == 0:
        raise Failure("PS0245", span, f"{name} holds no numbers", label="read here")
    values = array.astype(np.float64)
    wrong = np.argwhere(~np.isfinite(values))
    if len(wrong):
        place = ", ".join(str(int(i) + 1) for i in wrong[0])
        raise Failure("PS0242", span, f"{name}, entry [{place}]: the number is not finite", label="read here")
    return values
