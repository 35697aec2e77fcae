"""What a library function of the language is, and its routes; the functions live in `privspec.functions`.

A library function that is not linear offers routes (`probit_mle`: its result, the coefficients of its objective, the
sum of the records): which statistic is made noisy, how far a unit moves it, how to finish. Noise may enter at each
party's statistic or, where somebody is trusted with the pool, at its mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass, field
from privspec.core.spans import NOWHERE, Span
from privspec.language import syntax
from privspec.model.domains import Between, Domain, Type
from privspec.model.values import Array, Value

if TYPE_CHECKING:
    from privspec.core.columns import Cells
    from privspec.model.voting import Drawn


class Unit(Enum):
    """What a neighbour may replace: all that one party holds, or one of its records."""

    PARTY = "party"
    RECORD = "record"


class NormName(Enum):
    """The norm that a spread is measured in."""

    L1 = "l1"
    L2 = "l2"
    LINF = "linf"


@dataclass(frozen=True, slots=True)
class Records:
    """What one party holds: `count` vectors of `dimension` numbers of Euclidean norm at most `radius` (None: any)."""

    count: int
    dimension: int
    radius: Fraction | None


GRID_BITS = 20
GRID = Fraction(1, 2**GRID_BITS)
"""Step of the numbers that records and statistics are put on before noise is added."""
Steps: TypeAlias = NDArray[np.int64]
"""Numbers in steps of `GRID`."""
Bounds: TypeAlias = Mapping[NormName, Fraction]
"""Proven upper bounds, rounded up, by norm; a norm that is missing has none."""


class Route(Protocol):
    """One statistic of a party's records from which the function's value can be found."""

    @property
    def name(self) -> str:
        """In a few words, as rankings list it."""

    @property
    def at(self) -> str:
        """What is made noisy, in terms of the call: "result", "objective", "records"."""

    @property
    def note(self) -> str:
        """The stem of the note that proves the spreads."""

    @property
    def size(self) -> int:
        """Numbers in the statistic."""

    @property
    def linear(self) -> bool:
        """Whether finishing is linear, so that pooling before or after it comes to the same."""

    @property
    def based_on(self) -> Route | None:
        """The route whose statistics are all that those of this one are worked out of, if there is one."""

    def statistic(self, records: Array) -> Array:
        """The statistics (N, k) of parties with records (N, n, d), in doubles: for simulation only."""

    def derived(self, statistic: Array) -> Array:
        """The statistics (N, k), from those of the route it is based on."""

    def exact(self, records: Steps) -> Steps:
        """The statistics (N, k) in steps of `GRID`, of records (N, n, d) in the same steps that lie in their ball."""

    def spread(self, unit: Unit) -> Bounds:
        """How far a party's exact statistic moves when one unit is replaced, its rounding included."""

    def bound(self) -> Bounds:
        """How large a party's exact statistic is."""

    def finish(self, statistic: Array) -> Array:
        """The function's value (..., d) from noisy statistics (..., k): uses public numbers only."""

    def to_json(self) -> dict[str, Any]:
        """The public numbers that whoever executes or checks the route needs."""


class FunctionError(Exception):
    """A call that a function cannot take; `argument` is the position (from 0) or keyword at fault."""

    def __init__(
        self,
        message: str,
        argument: int | str | None = None,
        help: str | None = None,  # noqa: A002 - the word of the diagnostic
        code: str = "PS0206",
    ) -> None:
        self.message, self.argument, self.help, self.code = message, argument, help, code
        super().__init__(message)


class NotComputableError(Exception):
    """The value of a call cannot be computed yet (its type is known)."""


def without_value(why: str) -> Callable[..., Any]:
    """What a function makes of data that it is bound to, where nothing computes that.

    It raises NotComputableError, always.
    """

    def apply(*_: Any) -> Any:
        raise NotComputableError(why)

    return apply


@dataclass(frozen=True, eq=False, slots=True)
class Argument:
    """One argument: its type always, its value where it is public, its domain where one is declared.

    `iterated`: it is a comprehension, so its first axis is what the comprehension ran over.
    """

    type: Type
    value: Value | None = None
    domain: Domain | None = None
    span: Span = NOWHERE
    iterated: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Arguments:
    """All arguments of a call."""

    positional: tuple[Argument, ...] = ()
    keywords: Mapping[str, Argument] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.positional)

    def __getitem__(self, index: int) -> Argument:
        return self.positional[index]


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of all records of a table by some of its columns: along some as `running` totals, or as all `ranges`."""

    by: tuple[int, ...]
    running: frozenset[int] = frozenset()
    ranges: frozenset[int] = frozenset()


@dataclass(frozen=True, eq=False, slots=True)
class Bound:
    """A function with its public arguments fixed.

    `apply` takes the values of the positional arguments listed in `data`. For a linear function that is one
    array (k, *batch) and the result has shape (*type.shape, *batch), so it can be applied to Jacobians; the
    data of a table are its cell counts. `domain` is where the result lies, if that is known. `drawn` says how the
    result is drawn where it is not computed but drawn from the values of the first argument, one ballot each.
    `of_values`: it tells how many entries of its argument have each of these values, and `apply` is not for it.
    `labels` says what each entry of the result is about (`privspec.model.targets`), where the function knows.
    `tallies`: the result is these counts, one after another, where it is nothing else. `matrix`: a linear function of
    tables as a sparse matrix, where it knows one.
    """

    type: Type
    apply: Callable[..., Any]
    linear: bool = False
    data: tuple[int, ...] = (0,)
    domain: Domain | None = None
    drawn: Drawn | None = None
    labels: Callable[[], Mapping[str, Cells]] | None = None
    of_values: NDArray[Any] | None = None
    tallies: tuple[Tally, ...] = ()
    matrix: Callable[[], Any] | None = None


def number(value: Fraction | int, span: Span) -> syntax.Number:
    """A number of the tree."""
    exact = Fraction(value)
    return syntax.Number(exact, str(exact), span=span)


@dataclass(frozen=True, eq=False, slots=True)
class Question:
    """A statistic of the records of a table that meet some conditions: of each group, where there are groups.

    `columns`: those named in the call, first the one that it is about; `records` declared, None for any number.
    """

    call: syntax.Call
    table: syntax.Name
    domains: Mapping[str, Domain]
    columns: tuple[str, ...]
    conditions: tuple[syntax.Argument, ...]
    groups: int
    records: int | None

    def sum_of(self, *columns: str) -> syntax.Expr:
        """How many records there are; with columns, the sum of their product."""
        span = self.call.span
        if not columns:
            return syntax.Call("count", (self.table, *self.conditions), span=span)
        product: syntax.Expr = syntax.Attribute(self.table, columns[0], span=span)
        for name in columns[1:]:
            product = syntax.Binary("*", product, syntax.Attribute(self.table, name, span=span), span=span)
        return syntax.Call("sum", (product, *self.conditions), span=span)

    def deviations(self, *columns: tuple[str, Fraction]) -> syntax.Expr:
        """The sum of the product of some columns, each less a number."""
        span, factors = self.call.span, list[syntax.Expr]()
        for name, middle in columns:
            column = syntax.Attribute(self.table, name, span=span)
            factors.append(syntax.Binary("-", column, number(middle, span), span=span) if middle else column)
        product = factors[0]
        if factors[1:] == factors[:1]:
            product = syntax.Binary("^", product, number(2, span), span=span)  # which is never below 0
        else:
            for factor in factors[1:]:
                product = syntax.Binary("*", product, factor, span=span)
        return syntax.Call("sum", (product, *self.conditions), span=span)

    def measured(self, *columns: str) -> bool:
        """Whether several of these factors are numbers between two ends: then their product is a column of its own."""
        return sum(isinstance(self.domains.get(name), Between) for name in columns) > 1

    def ends(self, column: str) -> tuple[Fraction, Fraction]:
        """The least and the largest value of a column of numbers.

        Raises: FunctionError for a column of words, or one that is not there.
        """
        domain = self.domains.get(column)
        if domain is None:
            hint = f"it has {', '.join(self.domains)}"
            raise FunctionError(f"the table has no column {column}", 0, help=hint)
        low, high = domain.bounds
        if low is None or high is None or not domain.type.numeric:
            hint = f"how many records have each value is histogram({self.table.id}, by = {{{column}}})"
            raise FunctionError(f"the values of {column} are words, which do not add up", 0, help=hint)
        return low, high

    def plus(self, *terms: tuple[Fraction, syntax.Expr]) -> syntax.Expr:
        """A sum of multiples, those of 0 left out."""
        span, found = self.call.span, None
        for factor, term in terms:
            if not factor:
                continue
            part = term if abs(factor) == 1 else syntax.Binary("*", number(abs(factor), span), term, span=span)
            if found is None:
                found = part if factor > 0 else syntax.Negate(part, span=span)
            else:
                found = syntax.Binary("+" if factor > 0 else "-", found, part, span=span)
        return number(0, span) if found is None else found


@dataclass(frozen=True, eq=False, slots=True)
class Sum:
    """Something to release for a statistic: what it stands for, and what a squared error of it costs, times n^2.

    `called`: what it is, for readers, where its name does not say so: "centred sum of pay".
    """

    stands_for: syntax.Expr
    cost: Fraction
    called: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class Statistic:
    """How a statistic is worked out from sums: `value` of their names; it lies in `domain`, if that is known.

    `labels`: what each entry is about, in a column of release files.
    """

    sums: Mapping[str, Sum]
    value: Callable[[Mapping[str, syntax.Expr]], syntax.Expr]
    domain: syntax.Domain | None = None
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, slots=True)
class FromSums:
    """How a statistic of a column is worked out from sums that are released (`privspec.model.released`).

    `linear_in`: the expression that it is where it is about all records, and their number is public.
    """

    of: Callable[[Question], Statistic]
    linear_in: Callable[[syntax.Call, int], syntax.Expr] | None = None


Binder: TypeAlias = Callable[[Arguments, str], Bound]
"""Fixes the public arguments of a call of the function with a name."""


@dataclass(frozen=True, eq=False, slots=True)
class Function:
    """A library function: `signature` says how it is written, PS0205 of the catalogue what it gives.

    Any keyword argument outside `keywords` is refused, unless `keywords` is None.
    """

    signature: str
    binder: Binder
    arity: tuple[int, int | None] = (1, 1)
    keywords: tuple[str, ...] | None = ()
    linear: bool = False
    same_type: bool = False
    """Whether it compares its first two arguments, which then have one type (and an output gets the other's)."""
    symmetric: bool = False
    """Whether the order of the entries of any argument does not matter."""
    by_column: bool = False
    """Whether it is a linear map along the first axis, the same for every column of a matrix."""
    of_laws: bool = False
    """Whether its value is a number about laws, one for all data and draws, so that it stands outside averages."""
    ties: str = ""
    """What it takes among equals, as in "plurality takes, among equals, ..."; empty where it has no equals."""
    of_sums: FromSums | None = None
    """How it is worked out from sums, of a column of a table."""
    additive: bool = False
    """Whether it is the sum, over all votes, of what it is of each alone."""
    of_day: Callable[[date], str] | None = None
    """What it makes of a day, in a column that follows from one of days."""
    of_answers: bool = False
    """Whether it takes released answers, and has to know how these add up the cells of a table."""
    routes: Callable[[Records, Domain | None], tuple[Route, ...]] | None = None
    """Ways to release its value with noise, given what one party holds and the domain of the value."""

    @property
    def name(self) -> str:
        return self.signature.partition("(")[0]

    def bind(self, arguments: Arguments) -> Bound:
        """Check a call and fix its public arguments.

        Raises: FunctionError if the arguments do not fit.
        """
        (least, most), count, hint = self.arity, len(arguments), f"it is written {self.signature}"
        if count < least or (most is not None and count > most):
            wanted = str(least) if most == least else f"{least} or more" if most is None else f"{least} to {most}"
            message = f"{self.name} takes {wanted} argument{'' if wanted == '1' else 's'}, not {count}"
            raise FunctionError(message, help=hint)
        for word in arguments.keywords:
            if self.keywords is not None and word not in self.keywords:
                known = f"; it has {', '.join(self.keywords)}" if self.keywords else ""
                raise FunctionError(f"{self.name} has no setting {word}{known}", word, help=hint)
        return self.binder(arguments, self.name)


def by_name(*functions: Function) -> Mapping[str, Function]:
    """Functions as a module of `privspec.functions` gives them."""
    return {function.name: function for function in functions}


_PROVIDED: list[Mapping[str, Function]] = []


def provide(functions: Mapping[str, Function]) -> None:
    """Make these the functions of the language.

    Functions are written in terms of the model, so the model imports none: `privspec.functions` provides them when it
    is imported, as whatever builds models does.
    """
    _PROVIDED[:] = [functions]


def library() -> Mapping[str, Function]:
    """Every function of the language by name."""
    (functions,) = _PROVIDED
    return functions


def function_of(node: object) -> Function:
    """The function that a node calls; one without any properties for other nodes, and for words that are none."""
    return library().get(node.function, NONE) if isinstance(node, syntax.Call) else NONE


def _refusing(_: Arguments, name: str) -> Bound:
    raise FunctionError(f"there is no function {name}", code="PS0205")


NONE = Function("", _refusing)
