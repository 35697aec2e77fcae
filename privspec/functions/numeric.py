"""Linear maps of vectors and tables, the matrices of these maps, folds, comparisons, prices, elementary functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from math import acos, ceil, comb, floor, pi, prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass
from privspec.model import domains
from privspec.model.conditions import LEAST
from privspec.model.library import (
    Argument,
    Arguments,
    Binder,
    Bound,
    Function,
    FunctionError,
    Tally,
    by_name,
    without_value,
)
from privspec.model.reports import suggestion
from privspec.model.targets import Labels, cell_values, joined
from privspec.model.values import Array, Value, as_float

if TYPE_CHECKING:
    from privspec.core.sparse import SparseMatrix

HISTOGRAM_LIMIT = 2**12
"""Values of an entry that are counted one by one."""
SHOWN = 2**8
"""Values together up to which a suggestion lists columns for them."""
HISTOGRAM_OF_PARTIES = 10**6
"""Values of the word of each party that are counted one by one."""
ENTRIES_LIMIT = 2**26
"""Largest matrix that a constructor lays out."""
MOST_TABLES = 100_000
"""Marginals of so many attributes each that one call may ask for."""


def vector(arguments: Arguments, position: int, function: str) -> int:
    """The extent of an argument that must be a vector of numbers.

    Raises: FunctionError PS0207.
    """
    kind = arguments[position].type
    if not isinstance(kind.element, domains.Numbers | domains.Anything) or len(kind.shape) != 1:
        raise FunctionError(f"{function} takes a vector, and this is {kind.describe()}", position, code="PS0207")
    return kind.shape[0]


def numbers(arguments: Arguments, position: int, function: str) -> domains.Type:
    """The type of an argument that must be made of numbers.

    Raises: FunctionError PS0208.
    """
    kind = arguments[position].type
    if not isinstance(kind.element, domains.Numbers | domains.Anything):
        raise FunctionError(f"{function} takes numbers, and this is {kind.describe()}", position, code="PS0208")
    return kind


def _size(argument: Argument, position: int, what: str) -> int:
    """The value of an argument that must be a public whole number.

    Raises: FunctionError PS0206.
    """
    value = argument.value
    if isinstance(value, Fraction) and value.denominator == 1 and 1 <= value <= 2**31:
        return int(value)
    raise FunctionError(f"{what} must be a public whole number from 1 on", position)


# --- maps of vectors ------------------------------------------------------------------------------


def _range_sums(values: Array) -> Array:
    """Totals of every range lo..hi of axis 0, ordered by lo then hi, (k, *batch) -> (k (k + 1) / 2, *batch)."""
    array = as_float(values)
    k = array.shape[0]
    before = np.concatenate([np.zeros((1, *array.shape[1:])), np.cumsum(array, axis=0)])
    totals: Array = np.empty((k * (k + 1) // 2, *array.shape[1:]))
    at = 0
    for low in range(k):
        np.subtract(before[low + 1 :], before[low], out=totals[at : at + k - low])
        at += k - low
    return totals


def _range_labels(extent: int) -> Labels:
    """The first and the last entry of every range, counted from 1, in the order of `range_sums`."""
    low, high = np.triu_indices(extent)
    return {"from": low + 1, "to": high + 1}


def _range_matrix(n: int) -> Array:
    """The 0/1 matrix of `range_sums`, (n (n + 1) / 2, n)."""
    low, high = np.triu_indices(n)
    columns = np.arange(n)
    inside: Array = ((columns >= low[:, None]) & (columns <= high[:, None])).astype(np.float64)
    return inside


def vector_map(
    apply: Callable[[Array], Array],
    size: Callable[[int], int],
    least: int = 1,
    labels: Callable[[int], Labels] | None = None,
) -> Binder:
    """Bind a linear map of one vector, or of the rows of a matrix, which acts along axis 0."""

    def bind(arguments: Arguments, name: str) -> Bound:
        kind = numbers(arguments, 0, name)
        extent, *rest = kind.shape if len(kind.shape) > 1 else (vector(arguments, 0, name),)
        if extent < least:
            raise FunctionError(f"{name} needs at least {least} entries", 0)
        told = None if labels is None or rest else lambda: labels(extent)
        return Bound(domains.Type((size(extent), *rest)), lambda v: apply(as_float(v)), linear=True, labels=told)

    return bind


def _decayed(arguments: Arguments, name: str) -> Bound:
    """Each entry plus a share of what came out for the one before it: momentum, or an average that forgets."""
    share = arguments[1].value
    if not isinstance(share, Fraction) or not 0 <= share <= 1:
        raise FunctionError("the share that is kept is a public number from 0 to 1", 1)
    kept = float(share)

    def apply(values: Array) -> Array:
        found = values.copy()
        for row in range(1, len(found)):
            found[row] += kept * found[row - 1]
        return found

    return vector_map(apply, _square)(Arguments((arguments[0],)), name)


def _total(arguments: Arguments, name: str) -> Bound:
    """Any shape is added up to one number; the compiler sees the flat vector of entries."""
    rank = len(numbers(arguments, 0, name).shape)
    if not rank:
        raise FunctionError("total takes a vector or an array, and this is one number", 0, code="PS0207")
    return Bound(domains.Type(), lambda values: np.sum(as_float(values), axis=tuple(range(rank))), linear=True)


def _matrix(make: Callable[[int], Array], rows: Callable[[int], int]) -> Binder:
    """Bind a public matrix given by its number of columns."""

    def bind(arguments: Arguments, name: str) -> Bound:
        n = _size(arguments[0], 0, f"the size of {name}")
        if rows(n) * n > ENTRIES_LIMIT:
            raise FunctionError(f"{name}({n}) would have {rows(n) * n:,} entries", 0, code="PS0225")
        return Bound(domains.Type((rows(n), n)), lambda: make(n), data=())

    return bind


def _filled(value: float) -> Binder:
    """Bind a public array full of one number."""

    def bind(arguments: Arguments, _: str) -> Bound:
        shape = tuple(_size(a, i, "a size") for i, a in enumerate(arguments.positional))
        if prod(shape) > ENTRIES_LIMIT:
            raise FunctionError(f"this array would have {prod(shape):,} entries", 0, code="PS0225")
        return Bound(domains.Type(shape), lambda: np.full(shape, value), data=())

    return bind


def _diagonal(arguments: Arguments, name: str) -> Bound:
    n = vector(arguments, 0, name)
    if n * n > ENTRIES_LIMIT:
        raise FunctionError(f"this matrix would have {n * n:,} entries", 0, code="PS0225")

    def apply(values: Any) -> Array:
        array = as_float(values)
        result = np.zeros((n, *array.shape))
        result[np.arange(n), np.arange(n)] = array
        return result

    return Bound(domains.Type((n, n)), apply, linear=True)


# --- entry by entry -------------------------------------------------------------------------------


def _entrywise(apply: Callable[[Any], Any], exact: Callable[[Fraction], Fraction] | None = None) -> Binder:
    def bind(arguments: Arguments, name: str) -> Bound:
        def checked(value: Any) -> Any:
            if isinstance(value, Fraction) and exact is not None:
                return exact(value)
            with np.errstate(all="ignore"):
                result = apply(as_float(value))
            if not np.all(np.isfinite(result)):
                raise FunctionError(f"{name} has no finite value here", 0)
            return Fraction(float(result)) if np.shape(result) == () else result

        return Bound(numbers(arguments, 0, name), checked)

    return bind


# --- folds ----------------------------------------------------------------------------------------


def folded(apply: Callable[[Any], Any], *, linear: bool) -> Binder:
    """Bind a fold along the first axis: of the entries of a vector, the rows of an array, the terms of a `for`."""

    def bind(arguments: Arguments, name: str) -> Bound:
        kind = numbers(arguments, 0, name)
        if not kind.shape:
            message = f"{name} takes a vector or `... for j in ...`, and this is one number"
            raise FunctionError(message, 0, code="PS0207")
        if kind.shape[0] == 0 and arguments[0].value is not None:
            raise FunctionError(f"{name} of nothing", 0)
        return Bound(domains.Type(kind.shape[1:]), apply, linear=linear)

    return bind


def common_shape(arguments: Arguments, name: str) -> tuple[int, ...]:
    """The shape of what a function makes of several arguments entry by entry; a number goes with every entry.

    Raises: FunctionError PS0207, PS0208.
    """
    kinds = [numbers(arguments, i, name) for i in range(len(arguments))]
    shape = max((kind.shape for kind in kinds), key=len)
    for i, kind in enumerate(kinds):
        if kind.shape not in ((), shape):
            raise FunctionError(f"{name} compares values of one shape", i, code="PS0207")
    return shape


def extreme(fold: Callable[..., Any]) -> Binder:
    """Bind max or min: of several numbers, or along the first axis of one argument."""
    one = folded(lambda values: fold(as_float(values), axis=0), linear=False)

    def bind(arguments: Arguments, name: str) -> Bound:
        if len(arguments) == 1:
            return one(arguments, name)
        shape = common_shape(arguments, name)

        def apply(*values: Any) -> Any:
            return fold(np.stack([np.broadcast_to(as_float(v), shape) for v in values]), axis=0)

        return Bound(domains.Type(shape), apply, data=tuple(range(len(arguments))))

    return bind


# --- tables ---------------------------------------------------------------------------------------


def _table(arguments: Arguments, name: str) -> domains.Tables:
    element = arguments[0].type.element
    if not isinstance(element, domains.Tables):
        message = f"{name} takes a table, and this is {arguments[0].type.describe()}"
        hint = "a table is declared as in `input people in table(age in 0..120, sex in {F, M})`"
        if name in ("histogram", "count") and len(arguments[0].type.shape) < 2:
            hint += "; how many parties hold each value of `word[p] in {a, b, c}` is histogram(word), without an index"
        elif (
            name == "histogram"
            and isinstance(each := arguments[0].domain, domains.Power)
            and 0 < (each.size or 0) <= SHOWN
        ):
            held = ", ".join(f"v{i + 1} in {each.base.describe()}" for i in range(prod(each.exponents)))
            hint = f"values that count together are columns of one record: `input row[p] in table({held})^1`"
        raise FunctionError(message, 0, help=hint, code="PS0208")
    return element


@dataclass(frozen=True, eq=False, slots=True)
class _Selected:
    """Cells of a table whose columns have some of their values (`kept`, by places), added up but for some columns.

    `weights`: what each record counts, by the places of its values in some columns: their product, where that is added
    up. Along the columns of `running` every number counts the values before it, too; along those of `ranges` there is
    one for all values from each one to each that is not before it.
    """

    table: domains.Table
    kept: tuple[Sequence[int], ...]
    by: tuple[int, ...]
    weights: tuple[tuple[int, Array], ...] = ()
    running: frozenset[int] = frozenset()
    ranges: frozenset[int] = frozenset()

    @property
    def size(self) -> int:
        """How many numbers there are: one for each group."""
        sizes = {i: len(self.kept[i]) for i in self.by}
        return prod(_ranges(n) if i in self.ranges else n for i, n in sizes.items())

    def apply(self, counts: Any) -> Array:
        """(cells, *batch) -> (groups, *batch), the last column running fastest."""
        array = as_float(counts)
        batch = array.shape[1:]
        summed: Array = self.matrix() @ array.reshape(len(array), prod(batch))
        summed = summed.reshape((*(len(self.kept[i]) for i in self.by), *batch))
        for axis, column in enumerate(self.by):
            if column in self.running:
                summed = summed.cumsum(axis=axis)
            if column in self.ranges:
                summed = np.moveaxis(_range_sums(np.moveaxis(summed, axis, 0)), 0, axis)
        return summed.reshape((self.size, *batch))

    def matrix(self) -> SparseMatrix:
        """The same as a sparse matrix (groups, cells), before running totals and ranges."""
        from privspec.core.sparse import SparseMatrix, kron  # few specs have tables

        found = SparseMatrix.diagonal(np.ones(1))
        for i, (size, places) in enumerate(zip(self.table.cell_shape, self.kept, strict=True)):
            at = np.asarray(places, dtype=np.intp)
            entries = prod((values[at] for column, values in self.weights if column == i), start=np.ones(len(at)))
            rows, count = (np.arange(len(at)), len(at)) if i in self.by else (np.zeros(len(at)), 1)
            found = kron(found, SparseMatrix.of((count, size), rows, at, entries))
        return found

    def tallies(self) -> tuple[Tally, ...]:
        """As counts of all records, where it is no more than that."""
        whole = not self.weights and all(map(_equal_length, self.kept, self.table.cell_shape))
        return (Tally(self.by, self.running & set(self.by)),) if whole else ()

    def labels(self) -> Labels:
        """The values of the columns that stay apart; of those that are counted in ranges both ends: "3..5"."""
        from privspec.core.columns import crossed

        found = cell_values(self.table, self.by, self.kept)
        for i in self.by if found else ():
            name = self.table.names[i]
            if i in self.ranges:
                ends = zip(*(found[name][at] for at in np.triu_indices(len(found[name]))), strict=True)
                found[name] = np.array([f"{low}..{high}" for low, high in ends], dtype=object)
            elif i in self.running:
                found[name] = np.array([f"<= {value}" for value in found[name]], dtype=object)
        return dict(zip(found, crossed(list(found.values())), strict=True))


def _equal_length(places: Sequence[int], size: int) -> bool:
    return len(places) == size


def selected(arguments: Arguments, name: str, by: tuple[int, ...], factors: tuple[int, ...] = ()) -> _Selected:
    """What a call asks for: the values allowed of each column, the groups, and the columns that are multiplied."""
    table = _table(arguments, name).table
    kept: list[Sequence[int]] = [range(size) for size in table.cell_shape]
    for word, argument in arguments.keywords.items():
        if not isinstance(argument.value, tuple):
            raise FunctionError(f"{word} is compared with values in braces", word)
        for column_name in argument.value if word == "by" else (word,):
            if column_name not in table.names:
                message = f"the table has no column {column_name}"
                raise FunctionError(message, word, help=f"it has {', '.join(table.names)}")
        if word == "by":
            by = tuple(table.names.index(str(one)) for one in argument.value)
            continue
        place = table.names.index(word)
        if isinstance(table.attributes[place][1], domains.Between):
            raise FunctionError(f"{word} is measured, not counted: no condition tells its values apart", word)
        kept[place] = [i for i, one in enumerate(table.attributes[place][1].elements()) if one in argument.value]
    unlisted = [table.names[i] for i in by if domains.measured(table.attributes[i][1])]
    if unlisted:
        raise FunctionError(f"{unlisted[0]} is measured, not counted: there are no groups by it", "by")
    weights = tuple(_values(table, column) for column in factors)
    return _Selected(table, tuple(kept), tuple(sorted(by)), weights)


def _values(table: domains.Table, column: int) -> tuple[int, Array]:
    values = list(table.attributes[column][1].elements())
    if any(isinstance(one, str) for one in values):
        raise FunctionError(f"the values of {table.names[column]} are words, which do not add up", 0)
    return column, np.array([float(one) for one in values])


def _counted_columns(table: domains.Table) -> tuple[int, ...]:
    """The places of the columns that have values to count."""
    return tuple(i for i, (_, domain) in enumerate(table.attributes) if not domains.measured(domain))


def _histogram(arguments: Arguments, name: str) -> Bound:
    values = _values_of_entries(arguments[0])
    if values is not None:
        for word in arguments.keywords:
            raise FunctionError(f"{name} of a sequence has no setting {word}", word)
        return Bound(
            domains.Type((len(values),)), _TALLY, linear=True, of_values=values, labels=lambda: {"value": values}
        )
    table = _table(arguments, name).table
    counted = _counted_columns(table)
    left = [column for i, column in enumerate(table.names) if i not in counted]
    if left and "by" not in arguments.keywords:
        groups = ", ".join(table.names[i] for i in counted) or "age"
        message = f"{left[0]} is measured, not counted: {name} has no cells for it"
        raise FunctionError(message, 0, help=f"write `, by = {{{groups}}}` after it, or declare {left[0]} in steps")
    return _by_group(selected(arguments, name, counted))


def _counted(found: _Selected) -> Bound:
    """One number, or one for each group."""
    if found.by:
        return _by_group(found)
    return Bound(
        domains.Type(), lambda counts: found.apply(counts)[0], linear=True, tallies=found.tallies(), matrix=found.matrix
    )


def _by_group(found: _Selected) -> Bound:
    kind, tallies = domains.Type((found.size,)), found.tallies()
    return Bound(kind, found.apply, linear=True, labels=found.labels, tallies=tallies, matrix=found.matrix)


def _values_of_entries(argument: Argument) -> NDArray[Any] | None:
    """The values that every entry of a sequence may have, in order; None for what is no such sequence."""
    if len(argument.type.shape) != 1:  # of vectors, one for each party, say
        return None
    match argument.domain:
        case domains.Power(base=base, exponents=(_,)) if base.size is not None and base.size <= HISTOGRAM_LIMIT:
            return None if base.shape else np.array(list(base.elements()), dtype=object)
        case domains.FiniteSet() | domains.IntegerRange() | domains.Grid() as each if each.size is not None:
            # a value of each party: its own domain
            return np.array(list(each.elements()), dtype=object) if each.size <= HISTOGRAM_OF_PARTIES else None
    return None


_TALLY = without_value("it counts the values of secret entries")
UNKNOWN_KEYS = without_value("its keys are known to no spec")


def _count(arguments: Arguments, name: str) -> Bound:
    return _counted(selected(arguments, name, ()))


def _keys(arguments: Arguments, name: str) -> Bound:
    """The keys that occur, where nobody has listed them."""
    least = arguments.keywords.get(LEAST)
    if least is not None and not (
        isinstance(least.value, Fraction) and least.value.denominator == 1 and least.value >= 1
    ):
        raise FunctionError("a key has a whole number of records, from 1 on", LEAST)
    asked = Arguments(arguments.positional, {word: one for word, one in arguments.keywords.items() if word != LEAST})
    found = selected(asked, name, _counted_columns(_table(arguments, name).table))
    if found.size:
        hint = f"there are {found.size}; how many records each has is histogram(...)"
        raise FunctionError("these keys are all listed in the spec: none is unknown", 0, help=hint)
    return Bound(domains.Type((0,), domains.Symbols()), UNKNOWN_KEYS)


def _missed(arguments: Arguments, name: str) -> Bound:
    _same(arguments, name)
    for position in (0, 1):
        if arguments[position].type != domains.Type((0,), domains.Symbols()):
            message = f"{name} compares keys, and this is {arguments[position].type.describe()}"
            raise FunctionError(message, position, help="as in missed(shown, keys(people, by = {district}))")
    return Bound(domains.Type(), UNKNOWN_KEYS, data=(0, 1))


def _others(arguments: Arguments, name: str) -> Bound:
    if arguments[1].type.shape != (0,) or not arguments[1].type.numeric:
        message = (
            f"{name} takes counts or sums by keys that nobody has listed, and this is {arguments[1].type.describe()}"
        )
        raise FunctionError(message, 1, help="as in others(shown, count(people, by = {district}))")
    return Bound(domains.Type(), UNKNOWN_KEYS, data=(0, 1))


def _sum(arguments: Arguments, name: str) -> Bound:
    """Of a column of a table where that stands first, in braces; else of a vector."""
    if len(arguments) == 1:
        for word in arguments.keywords:
            raise FunctionError(f"{name} of a vector has no setting {word}", word)
        return folded(lambda values: np.sum(values, axis=0), linear=True)(arguments, name)
    table, asked = _table(arguments, name).table, arguments[1].value
    if not isinstance(asked, tuple) or not asked or any(one not in table.names for one in asked):
        raise FunctionError("sum adds up a column of a table, as in sum(people.age), or a product of columns", 1)
    factors = tuple(table.names.index(str(one)) for one in asked)
    # a number is held as shares of two ends, which say what it is, but neither its square nor its product with another
    added = [table.attributes[i] for i in factors if domains.measured(table.attributes[i][1])]
    if len(added) > 1:
        (first, _), *_, (word, held) = added
        message = f"{word} is measured, not counted: no product with {first} adds up"
        raise FunctionError(message, 0, help=domains.in_steps(word, held))
    return _counted(selected(arguments, name, (), factors))


def _marginal_sets(names: tuple[str, ...], arguments: Arguments) -> tuple[tuple[int, ...], ...]:
    """The sets of attributes asked for: a number k means every set of k, in lexicographic order of attributes.

    A set {age, sex} means that one; its cells run in the order of the attributes in the table. `up_to = k` means every
    set of 1 to k, `ways = {2, 3}` those of so many.
    Raises: FunctionError if a number or an attribute does not exist.
    """
    found: list[tuple[int, ...]] = []

    def every(value: Value | None, place: int | str) -> Iterator[tuple[int, ...]]:
        """The sets of so many attributes."""
        if not isinstance(value, Fraction) or value.denominator != 1 or not 0 <= value <= len(names):
            raise FunctionError(f"a table of {len(names)} attributes has no such marginals", place)
        if comb(len(names), int(value)) > MOST_TABLES:
            raise FunctionError(f"these are more than {MOST_TABLES:,} tables", place)
        yield from combinations(range(len(names)), int(value))

    for position, argument in enumerate(arguments.positional[1:], start=1):
        value = argument.value
        if isinstance(value, Fraction):
            found.extend(every(value, position))
        elif isinstance(value, tuple):
            for word in value:
                if word not in names:
                    hint = suggestion(str(word), names) or f"it has {', '.join(names)}"
                    raise FunctionError(f"the table has no attribute {word}", position, help=hint)
            found.append(tuple(sorted(names.index(str(word)) for word in value)))
        else:
            raise FunctionError("write how many attributes at once, or which: marginals(t, 1, {age, sex})", position)
    if (most := arguments.keywords.get("up_to")) is not None:
        last = next(every(most.value, "up_to"), ())
        found.extend(one for ways in range(1, len(last) + 1) for one in every(Fraction(ways), "up_to"))
    if (listed := arguments.keywords.get("ways")) is not None:
        several = listed.value if isinstance(listed.value, tuple) else (listed.value,)
        found.extend(one for ways in several for one in every(ways, "ways"))
    if not found:
        raise FunctionError("write how many attributes at once, or which: marginals(t, up_to = 2)", None)
    twice = next((one for one, count in Counter(found).items() if count > 1), None)
    if twice is not None:
        words = ", ".join(names[j] for j in twice) or "none"
        raise FunctionError(f"the marginal over {words} is asked for twice", None)
    return tuple(found)


def _running(table: domains.Table, counted: tuple[int, ...], arguments: Arguments, setting: str) -> frozenset[int]:
    """The columns along which marginals are running totals, or all ranges: `cumulative = {age}`."""
    asked = arguments.keywords.get(setting)
    found = set()
    for word in () if asked is None else asked.value if isinstance(asked.value, tuple) else (asked.value,):
        place = table.names.index(str(word)) if word in table.names else -1
        if place not in counted:
            hint = suggestion(str(word), table.names) or f"it has {', '.join(table.names[i] for i in counted)}"
            raise FunctionError(f"the table has no attribute {word} with values to count", setting, help=hint)
        if any(isinstance(one, str) for one in table.attributes[place][1].elements()):
            raise FunctionError(f"the words of {word} have no order to run along", setting)
        found.add(place)
    return frozenset(found)


def _marginals(arguments: Arguments, name: str) -> Bound:
    table = _table(arguments, name).table
    counted = _counted_columns(table)
    asked = _marginal_sets(tuple(table.names[i] for i in counted), arguments)
    running, ranges = (_running(table, counted, arguments, setting) for setting in ("cumulative", "ranges"))
    if running & ranges:
        raise FunctionError("a column is counted as running totals or in ranges, not both", "ranges")
    whole = tuple(map(range, table.cell_shape))
    every = [_Selected(table, whole, tuple(counted[i] for i in one), (), running, ranges) for one in asked]

    def apply(counts: Any) -> Array:
        return np.concatenate([one.apply(counts) for one in every])

    def labels() -> Labels:
        return joined((one.labels(), one.size) for one in every)

    tallies = tuple(Tally(one.by, running & set(one.by), ranges & set(one.by)) for one in every)
    return Bound(domains.Type((sum(one.size for one in every),)), apply, linear=True, labels=labels, tallies=tallies)


# --- comparisons and prices -----------------------------------------------------------------------


def _same(arguments: Arguments, name: str) -> None:
    first, second = arguments[0].type, arguments[1].type
    if not domains.fits(first, second):
        message = f"{name} compares values of one kind: {first.describe()} and {second.describe()}"
        raise FunctionError(message, 1, code="PS0207")


def _mismatch(arguments: Arguments, name: str) -> Bound:
    _same(arguments, name)

    def apply(left: Any, right: Any) -> Fraction:
        return Fraction(int(not np.array_equal(np.asarray(left), np.asarray(right))))

    return Bound(domains.Type(), apply, data=(0, 1))


def _at_least(arguments: Arguments, name: str) -> Bound:
    def apply(left: Any, right: Any) -> Any:
        found = np.asarray(left >= right)
        return found.astype(np.float64) if found.shape else Fraction(int(found))

    return Bound(domains.Type(common_shape(arguments, name)), apply, data=(0, 1))


def _total_variation(arguments: Arguments, name: str) -> Bound:
    _same(arguments, name)
    return Bound(domains.Type(), without_value("it compares laws, not values"), data=(0, 1))


def angle_between(left: Any, right: Any) -> float:
    """The angle between two vectors in radians; a right angle if one of them is zero."""
    a, b = as_float(left).ravel(), as_float(right).ravel()
    length = float(np.linalg.norm(a) * np.linalg.norm(b))
    return pi / 2 if length == 0 else acos(min(1.0, max(-1.0, float(a @ b) / length)))


def _angle(scale: float) -> Binder:
    def bind(arguments: Arguments, name: str) -> Bound:
        _same(arguments, name)
        for position in (0, 1):
            kind = numbers(arguments, position, name)
            if kind.known and len(kind.shape) != 1:
                message = f"{name} compares two vectors, and this is {kind.describe()}"
                raise FunctionError(message, position, code="PS0207")
        return Bound(domains.Type(), lambda a, b: Fraction(angle_between(a, b) * scale), data=(0, 1))

    return bind


def _cost(arguments: Arguments, _: str) -> Bound:
    choice, prices = arguments[0].type, {word: argument.value for word, argument in arguments.keywords.items()}
    if not isinstance(choice.element, domains.Symbols | domains.Texts | domains.Anything) or choice.shape:
        raise FunctionError(f"cost prices a choice among words, and this is {choice.describe()}", 0)
    if not prices:
        raise FunctionError("cost needs a price for each choice", None)
    for word, price in prices.items():
        if not isinstance(price, Fraction):
            raise FunctionError("a price is a public number", word)
    items = choice.element.items if isinstance(choice.element, domains.Symbols) else None
    missing = [str(item) for item in items or () if item not in prices]
    if missing:
        raise FunctionError(f"cost has no price for {', '.join(missing)}", None)
    extra = next((word for word in prices if items is not None and word not in items), None)
    if extra is not None:
        raise FunctionError(f"{extra} is not among the choices", extra)

    def apply(word: Any) -> Any:
        if str(word) not in prices:
            raise FunctionError(f"cost has no price for {word}", 0)
        return prices[str(word)]

    return Bound(domains.Type(), apply)


def _square(n: int) -> int:
    return n


def _ranges(n: int) -> int:
    return n * (n + 1) // 2


def _backwards(values: Array) -> Array:
    return np.cumsum(values[::-1], axis=0)[::-1]


FUNCTIONS: Mapping[str, Function] = by_name(
    Function("prefix_sums(v)", vector_map(lambda v: np.cumsum(v, axis=0), _square), linear=True, by_column=True),
    Function("suffix_sums(v)", vector_map(_backwards, _square), linear=True, by_column=True),
    Function("range_sums(v)", vector_map(_range_sums, _ranges, labels=_range_labels), linear=True, by_column=True),
    Function("decayed_sums(v, share)", _decayed, arity=(2, 2), linear=True, by_column=True),
    Function("total(v)", _total, linear=True, symmetric=True),
    Function(
        "differences(v)",
        vector_map(lambda v: np.diff(v, axis=0), lambda k: k - 1, least=2),
        linear=True,
        by_column=True,
    ),
    Function("identity(n)", _matrix(lambda n: np.eye(n), _square)),
    Function("prefix_matrix(n)", _matrix(lambda n: np.tril(np.ones((n, n))), _square)),
    Function("range_matrix(n)", _matrix(_range_matrix, _ranges)),
    Function("ones(n), ones(m, n)", _filled(1.0), arity=(1, 4)),
    Function("zeros(n), zeros(m, n)", _filled(0.0), arity=(1, 4)),
    Function("diagonal(v)", _diagonal, linear=True),
    Function("sqrt(e)", _entrywise(np.sqrt)),
    Function("exp(e)", _entrywise(np.exp)),
    Function("log(e)", _entrywise(np.log)),
    Function("abs(e)", _entrywise(np.abs, abs)),
    Function("floor(e)", _entrywise(np.floor, lambda v: Fraction(floor(v)))),
    Function("ceil(e)", _entrywise(np.ceil, lambda v: Fraction(ceil(v)))),
    Function("sign(e)", _entrywise(np.sign, lambda v: Fraction((v > 0) - (v < 0)))),
    Function(
        "sum(e for i in 1..N), sum(v), sum(t.column, conditions)",
        _sum,
        arity=(1, 2),
        keywords=None,
        linear=True,
        symmetric=True,
    ),
    Function(
        "histogram(t, by = {columns}, conditions), histogram(v)", _histogram, keywords=None, linear=True, symmetric=True
    ),
    Function(
        "marginals(t, up_to = 2), marginals(t, {age, sex}, cumulative = {age}, ranges = {pay})",
        _marginals,
        arity=(1, None),
        keywords=("up_to", "ways", "cumulative", "ranges"),
        linear=True,
    ),
    Function("count(t, conditions)", _count, keywords=None, linear=True),
    Function("keys(t, by = {columns}, at_least = n, conditions)", _keys, keywords=None),
    Function("missed(shown, keys)", _missed, arity=(2, 2), same_type=True),
    Function("others(shown, counts)", _others, arity=(2, 2)),
    Function("mismatch(a, b)", _mismatch, arity=(2, 2), same_type=True),
    Function("at_least(a, b)", _at_least, arity=(2, 2)),
    Function("total_variation(a, b)", _total_variation, arity=(2, 2), same_type=True),
    Function("angle(a, b)", _angle(1.0), arity=(2, 2), same_type=True),
    Function("disagreement(a, b)", _angle(1 / pi), arity=(2, 2), same_type=True),
    Function("cost(choice, word = price, ...)", _cost, keywords=None),
)
