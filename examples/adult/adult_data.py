"""The Adult extract as rows that a spec can read, and the exact answers that only the keeper could compute.

    python examples/adult/adult_data.py /tmp/people.csv    # for `privspec run ... --input people=/tmp/people.csv`

Names in a spec are words; the file has names such as `income>50K`, and its values are codes. This step renames both.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "adult_discretised_privatepgm.csv.gz"
ROWS = 48_842

WORDS: Mapping[str, tuple[str, ...]] = {
    "sex": ("female", "male"),
    "race": ("white", "asian", "indigenous", "other", "black"),
    "income": ("up_to_50k", "over_50k"),
}
"""What the codes 0, 1, ... of a column stand for: their counts are those of the raw file."""
AGES = 85


def read_people(path: Path = DATA) -> pl.DataFrame:
    """One row a person: age (years after the 16th birthday), sex, race and income, as `marginals.priv` names them.

    Raises: FileNotFoundError; polars.exceptions.ColumnNotFoundError if the file is another one.
    """
    table = pl.read_csv(path).rename({"income>50K": "income"}).select("age", *WORDS)
    return table.with_columns(pl.col(name).replace_strict(range(len(words)), words) for name, words in WORDS.items())


def _codes(people: pl.DataFrame) -> dict[str, tuple[NDArray[np.int64], int]]:
    """Every column as numbers from 0, and how many values it may take."""
    coded = {name: (people[name].replace_strict(w, range(len(w))).to_numpy(), len(w)) for name, w in WORDS.items()}
    return {"age": (people["age"].to_numpy(), AGES), **coded}


def true_ranges(people: pl.DataFrame) -> NDArray[np.float64]:
    """How many people are in each range of ages, ordered by its first age, then by its last: (3655,)."""
    counts = np.bincount(people["age"].to_numpy(), minlength=AGES)
    return np.array([counts[low : high + 1].sum() for low in range(AGES) for high in range(low, AGES)], dtype=float)


def true_marginals(people: pl.DataFrame) -> NDArray[np.float64]:
    """Every table of one column, then of two, each row by row: (883,)."""
    columns = _codes(people)
    tables = []
    for ways in (1, 2):
        for names in combinations(columns, ways):
            counts = np.zeros([columns[name][1] for name in names])
            np.add.at(counts, tuple(columns[name][0] for name in names), 1)
            tables.append(counts.reshape(-1))
    return np.concatenate(tables)


EXACT: Mapping[str, Callable[[pl.DataFrame], NDArray[np.float64]]] = {
    "age_ranges": true_ranges,
    "marginals": true_marginals,
}
"""The exact answers to each spec of this folder, written without privspec: what its releases are compared with."""


def main() -> int:
    """Write the prepared rows to the file named on the command line."""
    if len(sys.argv) != 2:
        print("usage: python adult_data.py PEOPLE.csv", file=sys.stderr)
        return 2
    if not DATA.is_file():
        print(f"skipped: the Adult extract is not at {DATA}", file=sys.stderr)
        return 0
    people = read_people()
    people.write_csv(sys.argv[1])
    print(f"{people.height:,} rows written to {sys.argv[1]}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
