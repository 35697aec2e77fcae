"""Gowalla check-ins in San Francisco as cells of a grid: one half of the users makes the prior, the other reports."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "gowalla_san_francisco.csv.gz"
WEST, EAST, SOUTH, NORTH = -122.53, -122.35, 37.70, 37.83
"""The map, fixed before looking at the check-ins."""
WIDE, HIGH = 15.8, 14.5
"""Of the map, in km."""


@dataclass(frozen=True, eq=False, slots=True)
class CheckIns:
    """Cells (columns, rows) from 1 as `san_francisco.priv` has them, for both halves of the users.

    Users with an even number have given their check-ins to the public: the prior. Those with an odd number report.
    """

    side: int
    public: NDArray[np.intp]
    reporting: NDArray[np.intp]
    public_users: int
    reporting_users: int

    @property
    def visits(self) -> NDArray[np.float64]:
        """Public check-ins a cell, and one more, so that no cell is impossible: (cells,), the row fastest."""
        return self.counts(self.public) + 1

    @property
    def prior(self) -> NDArray[np.float64]:
        """The law that the public check-ins give (cells,)."""
        return np.asarray(self.visits / self.visits.sum())

    @property
    def truth(self) -> NDArray[np.float64]:
        """The shares of the cells among the check-ins that are reported (cells,): what is to be recovered."""
        return self.counts(self.reporting) / len(self.reporting)

    @property
    def step(self) -> float:
        """A step between neighbouring cells in km, on average over both directions."""
        return (WIDE + HIGH) / 2 / self.side

    def number(self, cells: NDArray[np.intp]) -> NDArray[np.intp]:
        """The number of each cell (n,) in the order of the domain: the row fastest."""
        return np.asarray((cells[:, 0] - 1) * self.side + cells[:, 1] - 1)

    def counts(self, cells: NDArray[np.intp]) -> NDArray[np.float64]:
        """How many there are in each cell (cells,)."""
        return np.bincount(self.number(cells), minlength=self.side**2).astype(float)


def read_check_ins(path: Path = DATA, side: int = 10) -> CheckIns:
    """The check-ins of a file with columns user, lat and lon; places beyond the map count as its border.

    Raises: FileNotFoundError; polars.exceptions.ColumnNotFoundError if the file is another one.
    """
    table = pl.read_csv(path).select("user", "lat", "lon")
    column = np.floor((table["lon"].to_numpy() - WEST) / (EAST - WEST) * side)
    row = np.floor((table["lat"].to_numpy() - SOUTH) / (NORTH - SOUTH) * side)
    cells = np.clip(np.stack((column, row), axis=1), 0, side - 1).astype(np.intp) + 1
    users = table["user"].to_numpy()
    even = users % 2 == 0
    return CheckIns(side, cells[even], cells[~even], len(set(users[even])), len(set(users[~even])))
