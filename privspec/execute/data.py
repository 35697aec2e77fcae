"""Reads the data of a run into the exact base vector.

The rule for what does not fit is public, looks at one entry or record at a time, and never stops a run
(unless `strict` is asked for): see the rules in `problems`. A run stops only for what is public anyway: a
missing file or column, or another size than the declared one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspec.execute.arrays import Declared, read_entries
from privspec.execute.base import place_counts, place_entries
from privspec.execute.exact import ExactVector
from privspec.execute.executed import Attribute, Executed, ExecutedInput
from privspec.execute.keeper import Fit, Keeper
from privspec.execute.problems import CLIP_RULE, DROP_RULE, FIRST_RULE, STRICT_RULE, given_for, refuse, refuse_strictly

SUFFIXES = (".csv", ".csv.gz", ".tsv", ".parquet", ".npy", ".json")


def read_inputs(
    executed: Executed,
    data: Mapping[str, Any],
    *,
    declared: Mapping[str, Declared] | None = None,
    schemas: Mapping[str, tuple[Attribute, ...]] | None = None,
    strict: bool = False,
    header: bool = True,
    keeper: Keeper | None = None,
) -> ExactVector:
    """The base vector of a plan's data by input name, numbers that count alike added up; see `read_blocks`."""
    return read_blocks(
        executed.inputs, data, declared=declared, schemas=schemas, strict=strict, header=header, keeper=keeper
    )


def read_blocks(
    inputs: Sequence[ExecutedInput],
    data: Mapping[str, Any],
    *,
    declared: Mapping[str, Declared] | None = None,
    schemas: Mapping[str, tuple[Attribute, ...]] | None = None,
    strict: bool = False,
    header: bool = True,
    keeper: Keeper | None = None,
) -> ExactVector:
    """The base vector of data by input name: paths, numpy, polars, pandas, pyarrow objects, lists.

    Args: declared, the shape of each input of entries (by default a vector); schemas, the attributes of
        tables where the plan itself does not list them; header, whether text files have one; keeper, told how
        data fit.
    Raises: DataError (PS0801 to PS0809), whose messages hold no value of the data.
    """
    names = [i.name for i in inputs]
    for name in data:
        if name not in names:
            refuse("PS0801", f"the plan has no input {name}", help=f"its inputs are {', '.join(names)}")
    for name in names:
        given_for(name, data)
    keeper = keeper or Keeper()
    parts = []
    for entry in inputs:
        source = located(entry.name, data[entry.name])
        if entry.layout == "cells":
            from privspec.execute.tables import count_cells

            attributes = entry.attributes or (schemas or {}).get(entry.name, ())
            counts = count_cells(entry, attributes, source, strict=strict, header=header, keeper=keeper)
            parts.append(place_counts(counts))
        else:
            form = (declared or {}).get(entry.name) or Declared(entry.name, entry.shape or (entry.size,), entry.index)
            fit = fit_of(entry, keeper)
            values = read_entries(replace(form, told=fit.cell), source, header=header)
            count_entries(entry, fit, values)
            if strict and not _all_fit(entry, values):
                refuse_strictly(entry.name)
            parts.append(place_entries(entry, values))
    return ExactVector.joined(parts)


def fit_of(entry: ExecutedInput, keeper: Keeper) -> Fit:
    """Where to count how the entries of an input fit."""
    lower, upper = _ends(entry)
    return keeper.fit(
        entry.name,
        fate=f"each becomes {'zero' if entry.ball else 'the number nearest to zero'}",
        what="in records outside the ball" if entry.ball else "",
        lower=float(lower.min()),
        upper=float(upper.max()),
    )


def count_entries(entry: ExecutedInput, fit: Fit, values: NDArray[np.float64]) -> None:
    """Tell the keeper how many entries move."""
    lower, upper = _ends(entry)
    fit.rows += len(values)
    if entry.ball is None:
        fit.numbers(values, lower, upper)
    else:
        with np.errstate(over="ignore"):
            known = np.nan_to_num(values).reshape(-1, entry.ball.size)
            lengths = np.linalg.norm(known, ord=entry.ball.norm, axis=1)
        fit.outside += int((lengths > float(entry.ball.radius) * (1 + 1e-12)).sum()) * entry.ball.size


def _ends(entry: ExecutedInput) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return (
        np.array([-np.inf if b is None else float(b) for b in entry.lower]),
        np.array([np.inf if b is None else float(b) for b in entry.upper]),
    )


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
    lower, upper = _ends(entry)
    fit = bool(np.all(np.isfinite(values) & (values >= lower) & (values <= upper)))
    if fit and entry.ball is not None:
        lengths = np.linalg.norm(values.reshape(-1, entry.ball.size), ord=entry.ball.norm, axis=1)
        return bool(np.all(lengths <= float(entry.ball.radius) * (1 + 1e-12)))
    return fit
