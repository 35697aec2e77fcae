"""What observers learn where no line names all that they see: the bounds that the kernel derives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.kernel.core.linear import Release
from privspec.kernel.core.problem import PLAN, Case, View
from privspec.kernel.core.reading import Item, read
from privspec.kernel.forms import HOMES, rules_of
from privspec.kernel.rows import chosen_rows, doubles
from privspec.problem.designs import inside
from privspec.problem.form import Numbers

Array: TypeAlias = NDArray[np.float64]
DIGITS = Context(prec=9, rounding=ROUND_CEILING)
BITS = 56
"""Binary digits of the largest entry of a witness."""
NEARLY_SINGULAR = 1e-10


def exposures_of(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One entry for each view of the problem, with amounts rounded up.

    Raises: Refused if the plan is not one that the kernel can read.
    """
    parts = {one.name: None for one in fields(Case) if one.init and one.default is MISSING}
    case = read(Case, Item(parts | {"format": PLAN, "digest": "", **inside(document)}, "plan"))
    assert isinstance(case, Case)
    if not case.frame.views:
        return []
    rules = rules_of(case.block.form(*HOMES))
    executed = rules.judge(case)
    found = []
    for view in case.frame.views:
        witness = [_witness(executed, view, outputs) for outputs in (view.outputs, *((name,) for name in view.unnamed))]
        bound, bare = rules.exposed(case, executed, view, Item(witness, "witness"))
        amounts = None if bound is None else {key: _up(value) for key, value in bound.items()}
        found.append(view.head() | {"not_protected": bare, "bound": amounts, "witness": witness})
    return found


def _up(value: Fraction) -> str:
    return format(DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize(), "f")


def _witness(executed: object, view: View, outputs: tuple[str, ...]) -> dict[str, Any] | None:
    """An inverse of what is seen of a release of rounded outputs; of other mechanisms nothing helps."""
    if not isinstance(executed, Release):
        return None
    seen = executed.problem.rows_of(outputs)
    if view.difference.absent or executed.of_inputs or not executed.round_outputs or len(seen) == executed.problem.size:
        return {"inverse": None, "scaling": None}
    inverse, _ = inverse_root(np.array(doubles(chosen_rows(executed.reconstruction, seen))))
    return {"inverse": inverse, "scaling": None}


def inverse_root(mixed: Array) -> tuple[dict[str, Any] | None, Array]:
    """K of orthonormal rows K L where rows L (s, k) are independent, as a plan states it, and K L; else None, and L.

    Rows are put on one level first by powers of two, which stay exact.
    """
    tops = np.frexp(np.abs(mixed).max(axis=1, initial=0.0))[1]
    shifts = tops.max(initial=0) - tops
    left, sizes, right = np.linalg.svd(np.ldexp(mixed, shifts[:, None]), full_matrices=False)
    if len(sizes) < len(mixed) or sizes.min(initial=1.0) <= NEARLY_SINGULAR * sizes.max(initial=1.0):
        return None, mixed
    root = left.T / sizes[:, None]
    digits = BITS - int(np.frexp(np.abs(root).max())[1])
    whole = np.rint(np.ldexp(root, digits))
    entries = tuple(int(v) << int(shift) for row in whole.tolist() for v, shift in zip(row, shifts, strict=True))
    return Numbers(root.shape, Fraction(2) ** -digits, entries).to_json(), right
