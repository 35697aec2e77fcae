"""Expressions: one walk for all their meanings, and the first of these, values; files of numbers beside a spec.

A value is exact on numbers, float64 on arrays that come from files. Other meanings (`Algebra`) are types
(`model.shapes`), values at all pairs of a secret and a draw (`model.pointwise`), and affine maps of the inputs
(`problem.linear_interpreter`).
"""

from __future__ import annotations

import csv
import json
import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass, field, replace
from privspec.core.spans import Span
from privspec.core.suggest import advice
from privspec.language import syntax
from privspec.language.spelling import spell
from privspec.language.walk import sliced
from privspec.model.domains import ENUMERATION_LIMIT, NUMBER, Sets, Symbol, Symbols, Tables, Texts, Type
from privspec.model.library import Argument, Arguments, Bound, FunctionError, NotComputableError, library
from privspec.model.reports import Failure, nearest, suggestion
from privspec.model.values import Array, CellCounts, Value, as_float, exact_array, joined_length

BYTES_LIMIT = 2**30
EXACT_LIMIT = 2**17
"""Files of at most this many numbers are also kept as exact decimals."""


@dataclass(frozen=True, eq=False, slots=True)
class Reader:
    """Reads files named in a spec, relative to `base`.

    `fixed` overrides the disk by key ("csv:queries.csv"); `seen` collects what was read, by the same keys.
    """

    base: Path | None = None
    fixed: dict[str, Array] | None = None
    seen: dict[str, Array] | None = None

    def read(self, kind: str, name: str, span: Span, *, exact: bool = False) -> NDArray[Any]:
        """The numbers of a file: (rows, columns), or (rows,) for a CSV of one column.

        Raises: Failure PS0240-PS0246 naming file, row and column.
        """
        key = f"{kind}:{name}"
        array: NDArray[Any]
        if self.seen is not None and key in self.seen and not exact:
            return self.seen[key]
        if self.fixed is not None and key in self.fixed:
            array = _as_written(self.fixed[key]) if exact else self.fixed[key]
        else:
            path = self._path(name, span)
            array = read_npy(path, name, span) if kind == "npy" else read_csv(path, name, span, exact=exact)
        if self.seen is not None:
            self.seen[key] = as_float(array)
        return array

    def words(self, name: str, span: Span) -> NDArray[Any]:
        """The words of a file with two columns (rows, 2).

        Raises: Failure PS0240, PS0243, PS0245, PS0246.
        """
        key = f"{WORDS}:{name}"
        found = (self.fixed or {}).get(key)
        if found is None:
            found = read_words(self._path(name, span), name, span)
        if self.seen is not None:
            self.seen[key] = found
        return found

    def _path(self, name: str, span: Span) -> Path:
        if not name or "\0" in name:
            raise Failure("PS0240", span, "a file name is expected here")
        path = Path(name) if self.base is None else self.base / name
        if not path.is_file():
            near = None
            if path.parent.is_dir():
                near = nearest(path.name, (p.name for p in path.parent.iterdir() if p.is_file()))
            what = "is a folder" if path.is_dir() else "does not exist"
            hint = f"did you mean {near}?" if near else f"files are looked up beside the spec, in {path.parent}"
            raise Failure("PS0240", span, f"the file {name} {what}", help=hint)
        if path.stat().st_size > BYTES_LIMIT:
            raise Failure("PS0244", span, f"the file {name} is larger than 1 GB")
        return path


def _as_written(array: Array) -> NDArray[Any]:
    """The shortest decimals that give these doubles, exactly: what a file of figures most likely said."""
    if array.size > EXACT_LIMIT:
        return array
    return exact_array([Fraction(repr(float(entry))) for entry in array.ravel()], array.shape)


def _cell(text: str) -> float | None:
    """A decimal number; None if the text is none (underscores and other Python spellings are no numbers)."""
    if "_" in text:
        return None
    try:
        return float(text)
    except ValueError:
        return None


def read_csv(path: Path, name: str, span: Span, *, exact: bool = False) -> NDArray[Any]:
    """A rectangle of decimals with commas between; one row of headings is skipped if it holds no number.

    Returns: (rows, columns) float64, or (rows,) for one column; fractions instead if `exact` and small.
    Raises: Failure with file, row and column of the first cell that is wrong; never with its text.
    """
    rows: list[list[str]] = []
    numbers: list[list[float]] = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            for line, row in enumerate(csv.reader(stream), start=1):
                if not any(cell.strip() for cell in row):
                    continue
                cells = [_cell(cell.strip()) for cell in row]
                if not numbers and all(value is None for value in cells) and line == 1:
                    continue
                for column, value in enumerate(cells, start=1):
                    where = f"{name}, row {line}, column {column}"
                    if value is None:
                        raise Failure("PS0241", span, f"{where}: a number is expected", label="read here")
                    if not np.isfinite(value):
                        raise Failure("PS0242", span, f"{where}: the number is not finite", label="read here")
                if numbers and len(cells) != len(numbers[0]):
                    message = f"{name}, row {line}: {len(cells)} cells, but {len(numbers[0])} in the rows above"
                    raise Failure("PS0243", span, message, label="read here")
                numbers.append([value for value in cells if value is not None])
                if exact:
                    rows.append([cell.strip() for cell in row])
    except UnicodeDecodeError as error:
        raise Failure("PS0246", span, f"{name} is not text in UTF-8") from error
    except csv.Error as error:
        raise Failure("PS0246", span, f"{name} is no CSV file: {error}") from error
    except OSError as error:
        raise Failure("PS0240", span, f"the file {name} cannot be read: {error.strerror}") from error
    if not numbers:
        raise Failure("PS0245", span, f"{name} holds no numbers", label="read here")
    array: NDArray[Any] = np.array(numbers, dtype=np.float64)
    if exact and array.size <= EXACT_LIMIT:
        # 1e400-like cells were refused above, so every text here is a short decimal
        flat = np.empty(array.size, dtype=object)
        flat[:] = [Fraction(cell) for row in rows for cell in row]
        array = flat.reshape(array.shape)
    return array[:, 0] if array.shape[1] == 1 else array


WORDS = "words"
"""Of what files of words are known by, beside those of numbers."""


def read_words(path: Path, name: str, span: Span) -> NDArray[Any]:
    """Two columns of words with a comma between: (rows, 2); blank lines are skipped.

    Raises: Failure with file and row, never with its text.
    """
    rows: list[list[str]] = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            for line, row in enumerate(csv.reader(stream), start=1):
                cells = [cell.strip() for cell in row]
                if any(cells) and (len(cells) != 2 or not all(cells)):
                    raise Failure("PS0243", span, f"{name}, row {line}: two words are expected", label="read here")
                rows += [cells] if any(cells) else []
    except (UnicodeDecodeError, csv.Error) as error:
        raise Failure("PS0246", span, f"{name} is no CSV file in UTF-8") from error
    except OSError as error:
        raise Failure("PS0240", span, f"the file {name} cannot be read: {error.strerror}") from error
    if not rows:
        raise Failure("PS0245", span, f"{name} holds no words", label="read here")
    return np.array(rows, dtype=str)


def written(array: NDArray[Any]) -> bytes:
    """What the digest of a public file is of: its numbers as doubles, or its words."""
    if array.dtype.kind == "U":
        return json.dumps(array.tolist()).encode("ascii")
    return np.ascontiguousarray(array, dtype="<f8").tobytes()


def read_npy(path: Path, name: str, span: Span) -> Array:
    """An array of finite numbers in NumPy's own format (no pickled objects).

    Raises: Failure naming the file and the place of the first number that is wrong.
    """
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise Failure("PS0246", span, f"{name} is no NPY file of numbers") from error
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
        raise Failure("PS0246", span, f"{name} is no NPY file of numbers")
    if array.size == 0:
        raise Failure("PS0245", span, f"{name} holds no numbers", label="read here")
    values = array.astype(np.float64)
    wrong = np.argwhere(~np.isfinite(values))
    if len(wrong):
        place = ", ".join(str(int(i) + 1) for i in wrong[0])
        raise Failure("PS0242", span, f"{name}, entry [{place}]: the number is not finite", label="read here")
    return values


DOMAIN_CALLS = ("grid", "l1_ball", "l2_ball", "law", "partial_ranking", "table")
"""Domains that are written like calls; `within = l1_ball(...)` takes one as an argument."""

BITS_LIMIT = 2**16
"""Exact results of a power may have at most this many bits."""


@dataclass(frozen=True, eq=False, slots=True)
class Environment:
    """What names stand for: values, the sizes of the index sets, and where files are read."""

    values: Mapping[str, Value] = field(default_factory=dict)
    parties: Mapping[str, int] = field(default_factory=dict)
    files: Reader = field(default_factory=Reader)
    exact_files: bool = False

    def bind(self, name: str, value: Value) -> Environment:
        """The same with one more name."""
        return replace(self, values={**self.values, name: value})


V = TypeVar("V")
Unary: TypeAlias = syntax.Negate | syntax.Transpose | syntax.Absolute | syntax.Norm


class Algebra(Generic[V]):
    """One meaning of expressions: what each form becomes, once its parts have become something.

    `of` is the walk that all meanings share. What a method is given are the expression and what its parts are; forms
    that a meaning does not have are `refused`. Of a call the function itself says what it is (`library.Bound`): a
    meaning says what its arguments are, `described`, and what comes of them, `applied`.
    """

    @property
    def known(self) -> Environment:
        """What names stand for that are public here."""
        raise NotImplementedError

    def bind(self, variable: str, place: Value) -> Algebra[V]:
        """The same meaning where a variable of a comprehension has a value."""
        raise NotImplementedError

    def of(self, expr: syntax.Expr) -> V:
        """What an expression means.

        Raises: Failure, at the place of what has no meaning of this kind.
        """
        match expr:
            case syntax.Name():
                return self.name(expr)
            case syntax.Number() | syntax.String():
                return self.constant(expr.value)
            case syntax.Binary():
                return self.binary(expr, self.of(expr.left), self.of(expr.right))
            case syntax.Call(function="csv" | "npy"):
                return self.constant(read_file(expr, self.known))
            case syntax.Call():
                return self.call(expr)
            case syntax.Index():
                return self.index(expr)
            case syntax.Slice():
                return self.of(sliced(expr))
            case syntax.Each():
                return self.terms(expr.terms)[1]
            case syntax.Negate() | syntax.Transpose() | syntax.Absolute() | syntax.Norm():
                return self.unary(expr, self.of(expr.operand))
            case syntax.Vector() | syntax.TupleOf():
                return self.vector(expr, [self.of(item) for item in expr.items])
            case syntax.SetOf():
                return self.listed(expr)
            case syntax.Attribute():
                return self.attribute(expr)
            case syntax.Over():
                return self.over(expr)
            case syntax.Holds() | syntax.Known():
                return self.refused(expr)

    def refused(self, expr: syntax.Expr) -> V:
        """Raises: Failure, always."""
        raise Failure("PS0262", expr.span, "this has no value here")

    def constant(self, value: Value) -> V:
        """What is public."""
        raise NotImplementedError

    def name(self, expr: syntax.Name) -> V:
        raise NotImplementedError

    def listed(self, expr: syntax.SetOf) -> V:
        """A set; a bare word in it is itself unless it names a value."""
        if isinstance(expr, syntax.Numbers):
            return self.constant(tuple(item.value for item in expr.items if isinstance(item, syntax.Number)))
        return self.constant(members(expr, self.known))

    def vector(self, expr: syntax.Vector | syntax.TupleOf, items: list[V]) -> V:
        return self.stacked(items, expr.span)

    def stacked(self, items: list[V], span: Span) -> V:
        """Values of one shape, one under another."""
        raise NotImplementedError

    def unary(self, expr: Unary, value: V) -> V:
        return self.refused(expr)

    def binary(self, expr: syntax.Binary, left: V, right: V) -> V:
        return self.refused(expr)

    def index(self, expr: syntax.Index) -> V:
        """Entries; meanings that need not know what the places are leave `entry` out."""
        return self.entry(expr, self.of(expr.base), [self.of(place) for place in expr.indices])

    def entry(self, expr: syntax.Index, base: V, places: list[V]) -> V:
        return self.refused(expr)

    def attribute(self, expr: syntax.Attribute) -> V:
        return self.constant(Values(self.known).attribute(expr))

    def over(self, expr: syntax.Over) -> V:
        return self.refused(expr)

    # -- calls

    def call(self, expr: syntax.Call) -> V:
        arguments, values = self.arguments(expr)
        bound = bind_call(expr, arguments)
        return self.applied(expr, bound, [values[place] for place in bound.data if place < len(values)])

    def arguments(self, expr: syntax.Call) -> tuple[Arguments, list[V]]:
        """The arguments of a call as its function sees them, and what the positional ones are here."""
        positional: list[tuple[Argument, V]] = []
        keywords: dict[str, Argument] = {}
        for item in expr.arguments:
            if isinstance(item, syntax.Keyword):
                keywords[item.name], _ = self.argument(item.value)
            else:
                positional.append(self.argument(item))
        told = tuple(argument for argument, _ in positional)
        return Arguments(told, keywords), [value for _, value in positional]

    def argument(self, item: syntax.Argument) -> tuple[Argument, V]:
        """An argument as a function sees it, and what it is here."""
        match item:
            case syntax.Comprehension():
                return self.terms(item)
            case syntax.RangeOf() | syntax.Member() | syntax.Condition() | syntax.Keyword():
                raise Failure("PS0206", item.span, "this argument belongs to a domain, not to a function")
        value = self.of(item)
        return self.described(item, value), value

    def terms(self, item: syntax.Comprehension) -> tuple[Argument, V]:
        """The values that a comprehension runs through, along a first axis."""
        values = [self.bind(item.variable, place).of(item.body) for place in places(item, self.known)]
        if not values:
            raise Failure("PS0208", item.span, "there is nothing here to collect")
        value = self.stacked(values, item.span)
        return replace(self.described(item, value), iterated=True), value

    def described(self, item: syntax.Argument, value: V) -> Argument:
        """What a function is told of an argument."""
        raise NotImplementedError

    def applied(self, expr: syntax.Call, bound: Bound, data: list[V]) -> V:
        """What a function makes of its data."""
        return self.refused(expr)


@dataclass(frozen=True, eq=False, slots=True)
class Values(Algebra[Value]):
    """The values of expressions whose names all have one: what the other meanings are about."""

    environment: Environment

    @property
    def known(self) -> Environment:
        return self.environment

    def bind(self, variable: str, place: Value) -> Values:
        return Values(self.environment.bind(variable, place))

    def constant(self, value: Value) -> Value:
        return value

    def name(self, expr: syntax.Name) -> Value:
        values = self.environment.values
        if expr.id in values:
            return values[expr.id]
        label, near = "only public numbers can stand here", suggestion(expr.id, values)
        raise Failure("PS0261", expr.span, f"{expr.id} has no value here", label=label, help=near)

    def vector(self, expr: syntax.Vector | syntax.TupleOf, items: list[Value]) -> Value:
        rows = any(isinstance(item, syntax.Vector) for item in expr.items)
        return stack(items, expr.span) if rows else _joined(items, expr.span)

    def stacked(self, items: list[Value], span: Span) -> Value:
        return stack(items, span)

    def unary(self, expr: Unary, value: Value) -> Value:
        match expr:
            case syntax.Negate():
                return arithmetic("-", Fraction(0), value, expr.span)
            case syntax.Transpose():
                return value.swapaxes(0, 1) if isinstance(value, np.ndarray) and value.ndim > 1 else value
            case syntax.Absolute():
                return abs(value) if isinstance(value, Fraction) else np.abs(_numbers(value, expr.span))
            case syntax.Norm(order=order):
                entries = floats(value, expr.span).ravel()
                return Fraction(float(np.linalg.norm(entries, {"1": 1, "2": None, "inf": np.inf}[order])))

    def binary(self, expr: syntax.Binary, left: Value, right: Value) -> Value:
        return arithmetic(expr.op, left, right, expr.span)

    def entry(self, expr: syntax.Index, base: Value, places: list[Value]) -> Value:
        if not isinstance(base, np.ndarray):
            raise Failure("PS0209", expr.span, "only vectors and arrays have entries")
        if len(places) > base.ndim:
            raise Failure("PS0209", expr.span, f"{len(places)} indices, but {base.ndim} axes")
        at = []
        for place, size, written in zip(places, base.shape, expr.indices, strict=False):
            if not isinstance(place, Fraction) or place.denominator != 1 or not 1 <= place <= size:
                raise Failure("PS0209", written.span, f"a whole number from 1 to {size} is expected here")
            at.append(int(place) - 1)
        return exact_value(base[tuple(at)])

    def attribute(self, expr: syntax.Attribute) -> Value:
        match expr.base:
            case syntax.Index(base=syntax.Name() as base):
                return self.of(replace(expr.base, base=syntax.Attribute(base, expr.name, span=expr.span)))
            case syntax.Name(id=name) if (found := self.environment.values.get(f"{name}.{expr.name}")) is not None:
                return found
        raise Failure("PS0262", expr.span, f".{expr.name} has no value here")

    def over(self, expr: syntax.Over) -> Value:
        word = "an average" if expr.operator == "E" else "a worst case"
        raise Failure("PS0262", expr.span, f"{word} over the noise has no value here")

    def described(self, item: syntax.Argument, value: Value) -> Argument:
        return Argument(value_type(value), value, None, item.span)

    def applied(self, expr: syntax.Call, bound: Bound, data: list[Value]) -> Value:
        with computing(expr):
            return exact_value(bound.apply(*[one.counts if isinstance(one, CellCounts) else one for one in data]))


def evaluate(expr: syntax.Expr, environment: Environment) -> Value:
    """The value of an expression whose names all have values.

    Returns: a Fraction for a number (exact as far as + - * / and whole powers go), an array, a word, a set.
    Raises: Failure (PS0201 no value, PS0260 arithmetic, PS0262 not computable yet, and what files raise).
    """
    return Values(environment).of(expr)


def members(expr: syntax.SetOf, environment: Environment) -> tuple[Symbol, ...]:
    """What a set holds: a bare word is itself unless it names a value, or is `beside_words`."""
    words = {item.id for item in beside_words(expr, environment)}
    found = list[Symbol]()
    for item in expr.items:
        if isinstance(item, syntax.Name) and (item.id not in environment.values or item.id in words):
            found.append(item.id.rpartition(".")[2])
            continue
        value = evaluate(item, environment)
        if not isinstance(value, str | Fraction):
            raise Failure("PS0208", item.span, "a set holds words or numbers")
        found.append(value)
    return tuple(found)


def beside_words(expr: syntax.SetOf, environment: Environment) -> list[syntax.Name]:
    """Names of values that are no words among words: each is read as a word, as a set holds words or numbers."""
    named = [item for item in expr.items if isinstance(item, syntax.Name)]
    values = [item for item in named if item.id in environment.values]
    if len(values) == len(named) and not any(isinstance(item, syntax.String) for item in expr.items):
        return []
    return [item for item in values if not isinstance(environment.values[item.id], str)]


def _numbers(value: Value, span: Span) -> NDArray[Any]:
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, Fraction):
        return exact_array([value], ())
    raise Failure("PS0208", span, "numbers are expected here")


def floats(value: Value, span: Span) -> NDArray[np.float64]:
    """As float64.

    Raises: Failure PS0208 for words, PS0260 for numbers that no double can hold.
    """
    try:
        return as_float(value)
    except TypeError as error:
        raise Failure("PS0208", span, "numbers are expected here") from error
    except OverflowError as error:
        raise Failure("PS0260", span, "a number here is too large to compute with") from error


def _joined(items: list[Value], span: Span) -> Value:
    """Values of one shape under each other; numbers and vectors of several lengths as one vector."""
    arrays = [item if isinstance(item, np.ndarray) else np.array(item, dtype=object) for item in items]
    try:
        joined = joined_length([array.shape for array in arrays]) is not None
    except ValueError:
        joined = False
    if not joined:
        return stack(items, span)
    parts = [_numbers(item, span).reshape(-1) for item in items]
    exact = all(part.dtype == object for part in parts)
    return np.concatenate(parts if exact else [floats(part, span) for part in parts])


def stack(items: list[Value], span: Span) -> Value:
    """Values of one shape as an array with one more axis in front."""
    fractions = [item for item in items if isinstance(item, Fraction)]
    if len(fractions) == len(items):
        return exact_array(fractions, (len(items),))
    words = [item for item in items if isinstance(item, str)]
    if len(words) == len(items):
        return np.array(words, dtype=object)
    arrays = [_numbers(item, span) for item in items]
    if len({array.shape for array in arrays}) > 1:
        lengths = [array.shape[0] for array in arrays if array.ndim == 1]
        if len(lengths) == len(arrays):
            other = next(i for i, length in enumerate(lengths) if length != lengths[0])
            message = f"row {other + 1} has {lengths[other]} entries, and row 1 has {lengths[0]}"
            raise Failure("PS0207", span, message, help="the rows of a matrix have one length")
        raise Failure("PS0207", span, "the rows have different shapes")
    if any(array.dtype != object for array in arrays):
        return np.stack([floats(array, span) for array in arrays])
    return np.stack(arrays)


def _power(left: Fraction, right: Fraction, span: Span) -> Fraction:
    if left == 0 and right < 0:
        raise Failure("PS0260", span, "division by zero")
    if right.denominator == 1:
        bits = max(left.numerator.bit_length(), left.denominator.bit_length())
        if left in (0, 1, -1):
            return left ** (int(right) % 2 or (2 if right else 0))
        if abs(right) * bits > BITS_LIMIT:
            raise Failure("PS0260", span, "this power is too large to compute")
        return left ** int(right)
    if left < 0:
        raise Failure("PS0260", span, "a negative number has no such power")
    result = float(floats(left, span)) ** float(floats(right, span))
    if not np.isfinite(result):
        raise Failure("PS0260", span, "this power is too large to compute")
    return Fraction(result)


OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "@": operator.matmul,
    "^": operator.pow,
}
"""What each sign does to arrays of fitting shapes."""


def arithmetic(op: str, left: Value, right: Value, span: Span) -> Value:
    """`left op right`, entry by entry; `@` is the matrix product.

    Raises: Failure PS0207 if shapes do not fit, PS0260 if the result is not finite.
    """
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        if op == "/" and right == 0:
            raise Failure("PS0260", span, "division by zero")
        scalar: Fraction = _power(left, right, span) if op == "^" else OPERATORS[op.replace("@", "*")](left, right)
        return scalar
    a, b = _numbers(left, span), _numbers(right, span)
    if op != "@" and a.shape and b.shape and a.shape != b.shape:
        raise Failure("PS0207", span, f"shapes {a.shape} and {b.shape} do not fit")
    exact = a.dtype == object and b.dtype == object and op in "+-*" and max(a.size, b.size) <= ENUMERATION_LIMIT
    if not exact:
        a, b = floats(a, span), floats(b, span)
    try:
        with np.errstate(divide="raise", invalid="raise", over="raise"):
            result = OPERATORS[op if a.ndim and b.ndim else op.replace("@", "*")](a, b)
    except FloatingPointError as error:
        raise Failure("PS0260", span, "the result is not a finite number") from error
    except ValueError as error:
        raise Failure("PS0207", span, f"shapes {a.shape} and {b.shape} do not fit") from error
    return Fraction(float(result)) if np.shape(result) == () and not exact else exact_value(result)


def exact_value(result: Any) -> Value:
    """What a computation gave, a number as a fraction."""
    if isinstance(result, Fraction | str | tuple | CellCounts):
        return result
    array = np.asarray(result)
    if array.shape == ():
        inner = array.item()
        return inner if isinstance(inner, Fraction | str) else Fraction(inner)
    return array


# --- calls ----------------------------------------------------------------------------------------


def places(argument: syntax.Comprehension, environment: Environment) -> Iterator[Value]:
    """What the variable of a comprehension runs through."""
    domain = argument.domain
    if isinstance(domain, syntax.SetOf):
        return iter(members(domain, environment))
    run = places_in_turn(argument, environment) or range(0)
    if len(run) > ENUMERATION_LIMIT + 1:
        raise Failure("PS0225", argument.span if domain is None else domain.span, "too many terms to compute")
    return (Fraction(i) for i in run)


def places_in_turn(argument: syntax.Comprehension, environment: Environment) -> range | None:
    """The whole numbers that the variable of a comprehension runs through; None where it runs through something else.

    Raises: Failure PS0228 for what it cannot run through.
    """
    domain = argument.domain
    if domain is None:
        size = environment.parties.get(argument.variable)
        if size is None:
            raise Failure("PS0228", argument.span, f"{argument.variable} is not an index set")
        return range(1, size + 1)
    if isinstance(domain, syntax.SetOf):
        return None
    if isinstance(domain, syntax.RangeOf):
        low, high = evaluate(domain.low, environment), evaluate(domain.high, environment)
        if isinstance(low, Fraction) and isinstance(high, Fraction) and low.denominator == high.denominator == 1:
            return range(int(low), int(high) + 1)
    if isinstance(domain, syntax.Name) and domain.id in environment.parties:
        return range(1, environment.parties[domain.id] + 1)
    raise Failure("PS0228", domain.span, "a range lo..hi, a set or an index set is expected here")


def value_type(value: Value) -> Type:
    """The type of a value."""
    if isinstance(value, Fraction):
        return NUMBER
    if isinstance(value, str):
        return Type((), Texts())
    if isinstance(value, tuple):
        return Type((), Sets(value))
    if isinstance(value, CellCounts):
        return Type((), Tables(value.table))
    if value.dtype == object and any(isinstance(item, str) for item in value.ravel()[:1]):
        return Type(value.shape, Symbols())
    return Type(value.shape)


def known_function(name: str, arguments: list[str], *, averaged: bool = False) -> str:
    """What to write for a call of a function that does not exist."""
    from privspec.language.meanings import FUNCTIONS, written

    found = advice(name, (*library(), "csv", "npy", *DOMAIN_CALLS), FUNCTIONS)
    if found is None:
        return "`privspec help functions` lists the functions"
    return written(found, arguments, averaged=averaged)


def bind_call(expr: syntax.Call, arguments: Arguments) -> Bound:
    """Bind a library function, with its complaints placed in the text.

    Raises: Failure PS0205 for an unknown function, PS0206 (or the function's code) for arguments that do not fit.
    """
    function = library().get(expr.function)
    if function is None:
        raise Failure(
            "PS0205",
            expr.span,
            f"there is no function {expr.function}",
            help=known_function(expr.function, [spell(argument) for argument in expr.arguments]),
        )
    try:
        return function.bind(arguments)
    except FunctionError as error:
        span = expr.span
        if isinstance(error.argument, int) and error.argument < len(arguments):
            span = arguments[error.argument].span
        elif isinstance(error.argument, str) and error.argument in arguments.keywords:
            span = arguments.keywords[error.argument].span
        raise Failure(
            error.code, span, error.message, help=error.help or f"it is written {function.signature}"
        ) from error


@contextmanager
def computing(expr: syntax.Call) -> Iterator[None]:
    """What a function cannot compute is told at its place in the text.

    Raises: Failure PS0262, PS0260.
    """
    try:
        yield
    except NotComputableError as error:
        raise Failure("PS0262", expr.span, f"{expr.function} cannot be computed here: {error}") from error
    except FunctionError as error:
        raise Failure("PS0260", expr.span, error.message, help=error.help) from error
    except (FloatingPointError, OverflowError, ZeroDivisionError) as error:
        raise Failure("PS0260", expr.span, "the result is not a finite number") from error


def read_file(expr: syntax.Call, environment: Environment) -> NDArray[Any]:
    """The numbers that `csv("f")` or `npy("f")` names.

    Raises: Failure PS0206 if that is not how it is called, PS0240-PS0246 if the file is wrong.
    """
    match expr.arguments:
        case (syntax.String(value=name),):
            return environment.files.read(expr.function, name, expr.span, exact=environment.exact_files)
        case _:
            raise Failure("PS0206", expr.span, f'{expr.function} takes one file name: {expr.function}("file")')
