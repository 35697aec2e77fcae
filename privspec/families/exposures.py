"""What observers learn where no line names all that they see: the bounds that the kernel derives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from privspec.kernel.core.case import PLAN, Case
from privspec.kernel.core.exposure import derived
from privspec.kernel.core.linear import Release
from privspec.kernel.core.reading import Item, read
from privspec.kernel.forms import FORMS
from privspec.problem.form import Numbers

DIGITS = Context(prec=9, rounding=ROUND_CEILING)
BITS = 40
"""Binary digits of a witness."""


def exposures_of(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One entry for each view of the problem, with amounts rounded up.

    Raises: Refused if the plan is not one that the kernel can read.
    """
    parts = {one.name: None for one in fields(Case) if one.init and one.default is MISSING}
    case = read(Case, Item(parts | {"format": PLAN, "digest": "", **document}, "plan"))
    assert isinstance(case, Case)
    if not case.frame.views:
        return []
    rules = FORMS[case.block.form(*FORMS)]
    executed = rules.judge(case)
    found = []
    for view in case.frame.views:
        witness = [_witness(executed, outputs) for outputs in (view.outputs, *((name,) for name in view.unnamed))]
        bound, bare = derived(case, rules, executed, view, Item(witness, "witness"))
        amounts = None if bound is None else {key: _up(value) for key, value in bound.items()}
        found.append(view.head() | {"not_protected": bare, "bound": amounts, "witness": witness})
    return found


def _up(value: Fraction) -> str:
    return format(DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize(), "f")


def _witness(executed: object, outputs: tuple[str, ...]) -> dict[str, Any] | None:
    """An inverse of what is seen of a release of rounded outputs; of other mechanisms nothing helps."""
    if not isinstance(executed, Release):
        return None
    seen, size = executed.problem.rows_of(outputs), executed.problem.size
    if executed.of_inputs or not executed.round_outputs or len(seen) == size:
        return {"inverse": None, "scaling": None}
    rows = executed.reconstruction.rows
    mixed = np.array([[float(v) for v in rows[i]] for i in seen]) * float(executed.reconstruction.unit)
    back = np.linalg.pinv(mixed)
    if np.linalg.norm(np.eye(len(seen)) - mixed @ back) > 0.5:
        return {"inverse": None, "scaling": None}
    entries = tuple(round(v * 2**BITS) for v in back.ravel().tolist())
    return {"inverse": Numbers(back.shape, Fraction(1, 2**BITS), entries).to_json(), "scaling": None}
