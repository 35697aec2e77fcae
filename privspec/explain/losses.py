"""The loss of a spec as a sum of errors that have a name: wrong answers, absolute errors, distances, squares."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from privspec.explain.quantities import Quantity, rounded
from privspec.language import syntax

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Shape(ABC):
    """How an error is measured, and how its average reads."""

    name: ClassVar[str]
    """What is averaged, after a figure in brackets."""
    of_words: ClassVar[bool] = False
    """Whether it asks only if two values are the same, so that they may be words."""

    def figure(self, average: float) -> Quantity:
        """The average as a reader has it."""
        return rounded(average)

    def to_json(self) -> dict[str, object]:
        """What is averaged."""
        return {"name": self.name}

    @abstractmethod
    def brief(self, average: float) -> str:
        """The average in a table: "off by 1.3"."""

    def words(self, average: float) -> str:
        """The average in a sentence: "off by 1.3 on average"."""
        return f"{self.brief(average)} on average"

    @abstractmethod
    def of(self, drawn: Array, true: Array) -> Array:
        """The errors (columns, rows) of points drawn (columns, d) for true points (rows, d)."""


@dataclass(frozen=True, slots=True)
class Wrong(Shape):
    """1 where the answer differs."""

    name: ClassVar[str] = "probability of a wrong answer"
    of_words: ClassVar[bool] = True

    def brief(self, average: float) -> str:
        """As a probability."""
        return f"wrong with probability {self.figure(average)}"

    def words(self, average: float) -> str:
        """Likewise."""
        return self.brief(average)

    def of(self, drawn: Array, true: Array) -> Array:
        """Whether any coordinate differs."""
        return np.asarray((drawn[:, None, :] != true[None, :, :]).any(axis=2), dtype=float)


@dataclass(frozen=True, slots=True)
class Off(Shape):
    """The absolute difference of two numbers."""

    name: ClassVar[str] = "mean absolute error"

    def brief(self, average: float) -> str:
        """As a deviation."""
        return f"off by {self.figure(average)}"

    def of(self, drawn: Array, true: Array) -> Array:
        """Sums of absolute differences."""
        return np.asarray(np.abs(drawn[:, None, :] - true[None, :, :]).sum(axis=2))


@dataclass(frozen=True, slots=True)
class Away(Shape):
    """The distance of two points in a norm of this order."""

    order: str
    name: ClassVar[str] = "mean distance"

    def brief(self, average: float) -> str:
        """As a distance."""
        return f"{self.figure(average)} away"

    def of(self, drawn: Array, true: Array) -> Array:
        """Norms of the differences."""
        return np.asarray(np.linalg.norm(drawn[:, None, :] - true[None, :, :], ord=_ORDERS[self.order], axis=2))


@dataclass(frozen=True, slots=True)
class Squared(Shape):
    """The squared distance, read as its root."""

    name: ClassVar[str] = "root mean square"

    def figure(self, average: float) -> Quantity:
        """The root."""
        return rounded(math.sqrt(max(average, 0.0)))

    def brief(self, average: float) -> str:
        """As a deviation to either side."""
        return f"± {self.figure(average)}"

    def words(self, average: float) -> str:
        """As a typical deviation."""
        return f"typically off by {self.figure(average)}"

    def of(self, drawn: Array, true: Array) -> Array:
        """Sums of squared differences."""
        return np.asarray(((drawn[:, None, :] - true[None, :, :]) ** 2).sum(axis=2))


_ORDERS = {"1": 1.0, "2": 2.0, "inf": np.inf}


@dataclass(frozen=True, slots=True)
class LossTerm:
    """weight * E[error of `left` against `right`], or its largest value over the inputs where `worst`."""

    weight: Fraction
    worst: bool
    shape: Shape
    left: str
    right: str


def loss_terms(loss: syntax.Expr | None, parameters: Mapping[str, Fraction]) -> tuple[LossTerm, ...]:
    """The terms of a loss, weights by `parameters`; empty where one of them is of no known shape."""
    if loss is None:
        return ()
    found = tuple(_terms(loss, Fraction(1), parameters))
    return () if None in found else tuple(t for t in found if t is not None)


def _terms(expr: syntax.Expr, weight: Fraction, parameters: Mapping[str, Fraction]) -> Iterator[LossTerm | None]:
    match expr:
        case syntax.Binary(op="+", left=left, right=right):
            yield from _terms(left, weight, parameters)
            yield from _terms(right, weight, parameters)
        case syntax.Binary(op="*", left=syntax.Number(value=factor), right=inner):
            yield from _terms(inner, weight * factor, parameters)
        case syntax.Binary(op="*", left=syntax.Name(id=name), right=inner) if name in parameters:
            yield from _terms(inner, weight * parameters[name], parameters)
        case syntax.Over(operator=operator, body=body, given=None):
            yield _error(body, weight, operator == "worst")
        case _:
            yield None


def _error(body: syntax.Expr, weight: Fraction, worst: bool) -> LossTerm | None:
    shape: Shape
    match body:
        case syntax.Call(function="mismatch", arguments=(syntax.Name(id=left), syntax.Name(id=right))):
            shape = Wrong()
        case syntax.Absolute(operand=syntax.Binary(op="-", left=syntax.Name(id=left), right=syntax.Name(id=right))):
            shape = Off()
        case syntax.Norm(
            operand=syntax.Binary(op="-", left=syntax.Name(id=left), right=syntax.Name(id=right)), order=order
        ):
            shape = Away(order)
        case syntax.Binary(op="^", left=inner, right=syntax.Number(value=power)) if power == 2:
            match inner:
                case syntax.Binary(op="-", left=syntax.Name(id=left), right=syntax.Name(id=right)):
                    shape = Squared()
                case syntax.Norm(
                    operand=syntax.Binary(op="-", left=syntax.Name(id=left), right=syntax.Name(id=right)), order="2"
                ):
                    shape = Squared()
                case _:
                    return None
        case _:
            return None
    return LossTerm(weight, worst, shape, left, right)
