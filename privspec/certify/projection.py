"""The sensitivity of an observer who sees a mixture of strategy answers, in ball arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from privspec.certify.exact import Integers
from privspec.certify.neighbourhoods import EnclosedForm
from privspec.core.matrices import DyadicMatrix

SIZE_LIMIT = 128
PRECISION = 512
MOVES_LIMIT = 512
"""Coordinates up to which the form of every pair of them is enclosed by itself."""


def projected_form(
    strategy: DyadicMatrix, reconstruction: DyadicMatrix, seen: Integers, deviation: Fraction
) -> EnclosedForm:
    """G = (L B)' (L L')^-1 (L B) / deviation^2 for the rows L of the reconstruction that are seen, enclosed.

    Raises: ValueError if there are too many rows; ZeroDivisionError if L L' cannot be shown to be invertible.
    """
    from flint import arb, arb_mat, ctx, fmpz_mat

    if len(seen) > SIZE_LIMIT:
        raise ValueError(f"more than {SIZE_LIMIT} outputs mix strategy rows of another observer")
    left = fmpz_mat(reconstruction.integers[seen].tolist())
    rows = left * fmpz_mat(strategy.integers.tolist())
    with ctx.workprec(PRECISION):
        # the unit of L cancels, that of B does not
        solved = arb_mat(left * left.transpose()).solve(arb_mat(rows))
        gram = arb_mat(rows.transpose()) * solved
        unit = (strategy.unit / deviation) ** 2
        factor = arb(unit.numerator) / arb(unit.denominator)
        n = gram.nrows()
        entries: list[Any] = [gram[i, j] * factor for i in range(n) for j in range(n)]
        middle = np.array([float(e.mid()) for e in entries]).reshape(n, n)
        radius = np.array([float((e - arb(float(e.mid()))).abs_upper()) for e in entries]).reshape(n, n)
        moves = None
        if n <= MOVES_LIMIT:
            # what is common to two coordinates cancels here, not in doubles
            own = [entries[i * n + i] for i in range(n)]
            apart = [own[i] + own[j] - 2 * entries[i * n + j] for i in range(n) for j in range(n)]
            moves = np.array([float(e.abs_upper()) for e in apart]).reshape(n, n) * (1 + 1e-12) + 1e-300
    return EnclosedForm(middle, radius * (1 + 1e-12) + 1e-300, moves)
