"""What the author of a spec says of a function that nobody here can see into: how far a unit moves its values."""

from __future__ import annotations

from dataclasses import dataclass

from privspec.kernel.core.reading import Size


@dataclass(frozen=True, slots=True)
class Asserted:
    """That a unit, `neighbours` in words, moves the values of a function of an input by at most `amount` in a norm."""

    function: str
    norm: str
    amount: Size
    neighbours: str
    line: int


WORDS = {"Asserted.norm": ("l1", "l2", "linf")}
NORMS = {"l1": "sum of absolute values", "l2": "Euclidean length", "linf": "largest entry"}
