"""Noise that each party draws alone, of any covariance in all that it holds: what bounds such noise from below."""

from __future__ import annotations

from privspec.kernel.core.linear import Difference, Linear, Matrix, Places, chosen_rows
from privspec.kernel.core.linear_privacy import Moves, pieces, units_of
from privspec.kernel.core.problem import Frame
from privspec.kernel.core.reading import Refused
from privspec.kernel.shares import owners

APART = "Gaussian noise that each party draws alone, unbiased"


def among(scope: str, frame: Frame, words: tuple[str, ...], pure: bool) -> tuple[str, ...]:
    """What a bound is about: `words`, shares of such noise (noise/notes/shares.md), or what each party draws alone."""
    if scope == "parties":
        return (APART,)
    return (f"shares of {words[-1 if pure else 0]}",) if frame.trust.means.shared else words


def hulls(differences: tuple[Difference, ...], places: Places) -> list[Moves]:
    """Sets of differences with the hull of each: units, or every choice of units that are held apart by itself."""
    plain = [units_of(one, places) for one in differences if one.apart is None]
    apart = [pieces(one, places)[0] for one in differences if one.apart is not None]
    return plain + [([unit], 1) for units in apart for unit in units]


def grams(scope: str, frame: Frame, block: Linear, columns: Matrix, found: Matrix, moved: Matrix) -> list[Matrix]:
    """The Gram matrices of the vectors, columns of `found`, none of which may be more than kappa: one, or each party's.

    Where parties draw noise alone, what party i sends hides its differences by noise of a covariance S_i, and the noise
    in the answers is the sum: 2 z'T f - z'S_i z <= mu^2 for the columns of that party, and Z_i Z_i' <= kappa is enough.
    Raises: Refused where messages are not seen by all, or a difference is in what several parties hold.
    """
    left = found.transpose()
    if scope != "parties":
        inner = found * left if found.nrows() <= columns.nrows() else left * found
        return [left * (moved * found) if scope == "inputs" else inner]
    if not frame.trust.means.alone or any(one.units for one in block.held) or not columns.nrows():
        raise Refused("bounds noise of single parties, and nobody adds any alone")
    owner = owners(frame, [(one.shape, one.stop - one.start, one.cells) for one in block.held])
    own = dict[str, list[int]]()
    for row, column in enumerate(columns.tolist()):
        names = {owner[i] for i, v in enumerate(column) if v}
        if len(names) != 1:
            raise Refused("bounds noise of single parties by a difference in what several of them hold")
        own.setdefault(min(names), []).append(row)
    parts = [chosen_rows(left, rows) for rows in own.values()]
    return [one * one.transpose() if one.nrows() <= one.ncols() else one.transpose() * one for one in parts]
