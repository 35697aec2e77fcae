"""Elementary functions, entry by entry: for parameters and for public arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import ceil, floor
from typing import Any

import numpy as np

from privspec.functions.arguments import numbers
from privspec.model.library import Arguments, Bound, Function, FunctionError
from privspec.model.values import as_float


def _entrywise(
    name: str, apply: Callable[[Any], Any], exact: Callable[[Fraction], Fraction] | None = None
) -> Callable[[Arguments], Bound]:
    def bind(arguments: Arguments) -> Bound:
        kind = numbers(arguments, 0, name)

        def checked(value: Any) -> Any:
            if isinstance(value, Fraction) and exact is not None:
                return exact(value)
            with np.errstate(all="ignore"):
                result = apply(as_float(value))
            if not np.all(np.isfinite(result)):
                raise FunctionError(f"{name} has no finite value here", 0)
            return Fraction(float(result)) if np.shape(result) == () else result

        return Bound(kind, checked)

    return bind


def _sign(value: Fraction) -> Fraction:
    return Fraction((value > 0) - (value < 0))


FUNCTIONS: Mapping[str, Function] = {
    f.name: f
    for f in (
        Function(
            "sqrt",
            "sqrt(e)",
            "The square root, entry by entry (nearest double).",
            _entrywise("sqrt", np.sqrt),
        ),
        Function("exp", "exp(e)", "The exponential, entry by entry (nearest double).", _entrywise("exp", np.exp)),
        Function(
            "log",
            "log(e)",
            "The natural logarithm, entry by entry (nearest double).",
            _entrywise("log", np.log),
        ),
        Function("abs", "abs(e)", "The absolute value; also written |e|.", _entrywise("abs", np.abs, abs)),
        Function(
            "floor",
            "floor(e)",
            "The largest whole number not above, entry by entry.",
            _entrywise("floor", np.floor, lambda v: Fraction(floor(v))),
        ),
        Function(
            "ceil",
            "ceil(e)",
            "The least whole number not below, entry by entry.",
            _entrywise("ceil", np.ceil, lambda v: Fraction(ceil(v))),
        ),
        Function("sign", "sign(e)", "-1, 0 or 1, entry by entry.", _entrywise("sign", np.sign, _sign)),
    )
}
