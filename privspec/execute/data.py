"""Reads the data of a run into the exact base vector.

The rule for what does not fit is public, looks at one entry or record at a time, and never stops a run
(unless `strict` is asked for): see the rules in `problems`. A run stops only for what is public anyway: a
missing file or column, or another size than the declared one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspec.execute.arrays import Declared, read_entries
from privspec.execute.base import place_counts, place_entries
from privspec.execute.exact import ExactVector
from privspec.execute.executed import Attribute, Executed, ExecutedInput
from privspec.execute.problems import CLIP_RULE, DROP_RULE, FIRST_RULE, STRICT_RULE, refuse, refuse_strictly

SUFFIXES = (".csv", ".csv.gz", ".tsv", ".parquet", ".npy", ".json")


def read_inputs(
    executed: Executed,
    data: Mapping[str, Any],
    *,
    declared: Mapping[str, Declared] | None = None,
    schemas: Mapping[str, tuple[Attribute, ...]] | None = None,
    strict: bool = False,
) -> ExactVector:
    """The base vector (n,) of data by input name: paths, numpy, polars, pandas, pyarrow objects, lists.

    Args: declared, the shape of each input of entries (by default a vector); schemas, the attributes of
        tables where the plan itself does not list them.
    Raises: DataError (PS0801 to PS0809), whose messages hold no value of the data.
    """
    names = [i.name for i in executed.inputs]
    for name in data:
        if name not in names:
            refuse("PS0801", f"the plan has no input {name}", help=f"its inputs are {', '.join(names)}")
    for name in names:
        if name not in data:
            refuse("PS0801", f"no data for the input {name}", help=f"give --input {name}=FILE")
    parts = []
    for entry in executed.inputs:
        source = located(entry.name, data[entry.name])
        if entry.layout == "cells":
            from privspec.execute.tables import count_cells

            attributes = entry.attributes or (schemas or {}).get(entry.name, ())
            parts.append(place_counts(count_cells(entry, attributes, source, strict=strict)))
        else:
            form = (declared or {}).get(entry.name) or Declared(entry.name, entry.shape or (entry.size,), entry.index)
            values = read_entries(form, source)
            if strict and not _all_fit(entry, values):
                refuse_strictly(entry.name)
            parts.append(place_entries(entry, values))
    return ExactVector.joined(parts)


def data_rules(executed: Executed, strict: bool) -> tuple[str, ...]:
    """What is done with data that do not fit, in words: part of every release."""
    if strict:
        return (STRICT_RULE,)
    rules = []
    if any(i.layout == "entries" for i in executed.inputs):
        rules.append(CLIP_RULE)
    rules += [
        f"{i.name}: {DROP_RULE if i.drops else FIRST_RULE}; numbers move into their range"
        for i in executed.inputs
        if i.layout == "cells"
    ]
    return tuple(rules)


def located(name: str, source: Any, suffixes: Sequence[str] = SUFFIXES) -> Any:
    """A path that exists and has a known suffix, or the object itself.

    Raises: DataError (PS0802).
    """
    if not isinstance(source, str | Path):
        return source
    path = Path(source)
    if not path.is_file():
        refuse("PS0802", f"the file for {name} does not exist: {path}")
    if not path.name.lower().endswith(tuple(suffixes)):
        refuse("PS0802", f"no reader for the file of {name}: {path.name}", help=f"use {', '.join(suffixes)}")
    return path


def _all_fit(entry: ExecutedInput, values: NDArray[np.float64]) -> bool:
    lower = np.array([-np.inf if b is None else float(b) for b in entry.lower])
    upper = np.array([np.inf if b is None else float(b) for b in entry.upper])
    fit = bool(np.all(np.isfinite(values) & (values >= lower) & (values <= upper)))
    if fit and entry.ball is not None:
        lengths = np.linalg.norm(values.reshape(-1, entry.ball.size), ord=entry.ball.norm, axis=1)
        return bool(np.all(lengths <= float(entry.ball.radius) * (1 + 1e-12)))
    return fit
