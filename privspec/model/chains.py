"""Laws of sequences: `x[1] ~ categorical(start)`, `x[i] ~ categorical(step[x[i-1]])`, each entry given the one before.

Few entries may be drawn each in its own way, given any earlier ones: `x[4] ~ categorical(t[x[1], x[3]])`, a Bayesian
network. A set in place of a name, `{calm, busy}[x[i-1]]` or `categorical({a, b})`, declares that each of its laws may
be the true one. Nothing counts on such laws but a line of privacy that says `given the model`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass, replace
from privspec.core.spans import Span
from privspec.kernel.changes import MOST_SEQUENCES
from privspec.language import syntax
from privspec.language.spelling import spell
from privspec.language.walk import items_of
from privspec.model.domains import Domain, Power
from privspec.model.evaluate import Environment, evaluate
from privspec.model.priors import Law, law_of, short
from privspec.model.reports import Failure, Report
from privspec.model.requirements import Chain, Conditional, DataModel
from privspec.model.scope import Scope, entry_of, running_index
from privspec.model.spaces import as_value
from privspec.model.values import Value

LONGEST = 20_000
"""Entries of the longest sequence."""
MOST_STATES = 64
SHORT = 10**6
"""Denominators up to which a double is read as the fraction that it stands for."""


@dataclass(slots=True)
class ChainReader:
    """Reads the laws of entries, input by input. `domains`: those of all variables; `environment`: public values."""

    scope: Scope
    report: Report
    environment: Environment
    domains: Mapping[str, Domain]

    def read(self, statements: Sequence[syntax.Relation]) -> dict[str, Chain]:
        """The chain of every input that has one; what does not fit is reported."""
        of: dict[str, list[syntax.Relation]] = {}
        for statement in statements:
            of.setdefault(entry_of(statement, self.scope) or "", []).append(statement)
        found = {name: self.report.told(lambda name=name, own=own: self._chain(name, own)) for name, own in of.items()}  # type: ignore[misc]
        return {name: chain for name, chain in found.items() if chain is not None}

    def _chain(self, name: str, statements: list[syntax.Relation]) -> Chain | None:
        domain = self.domains.get(name)
        if domain is None:
            return None
        length, base = self._sequence(name, domain, statements[0].left.span)
        values = [as_value(element) for element in base.elements()]
        lines = tuple(sorted(self.report.line(one.span) for one in statements))
        if self._is_network(name, statements):
            return Chain(name, length, (), (), lines, self._network(name, length, statements, len(values)))
        first, later = self._sorted(name, statements)
        laws = [self._steps(name, later, values)] if later is not None else []
        starts = self._starts(first, values) if first is not None else laws[0][1] if laws else ()
        if not starts:
            self._refuse(statements[0].span, f"nothing says how {name}[1] is drawn", f"add {name}[1] ~ categorical(w)")
        if not laws:
            hint = f"add {name}[i] ~ categorical(step[{name}[i-1]]), with a row of step for each value"
            self._refuse(statements[0].span, f"nothing says how {name}[2] is drawn, given {name}[1]", hint)
        return Chain(name, length, starts, laws[0][0], lines)

    def _is_network(self, name: str, statements: list[syntax.Relation]) -> bool:
        """Whether an entry but the first has a law of its own, or depends on another one than that before it."""
        for statement in statements:
            letter = next(iter(running_index(statement, self.scope)), None)
            (index,) = statement.left.indices if isinstance(statement.left, syntax.Index) else (None,)
            if letter is None and not (isinstance(index, syntax.Number) and index.value == 1):
                return True
            given = _given(statement)
            if letter is not None and given and [spell(one) for one in given] != [f"{name}[{letter} - 1]"]:
                return True
        return False

    def _network(self, name: str, length: int, statements: list[syntax.Relation], size: int) -> tuple[Conditional, ...]:
        """The law of every entry: its own, or that of the line with a letter."""
        if size**length > MOST_SEQUENCES:
            message = f"entries that are drawn each in its own way make up to {MOST_SEQUENCES:,} sequences"
            hint = f"of {size} values at most {int(np.log(MOST_SEQUENCES) / np.log(max(size, 2)))} entries"
            raise Failure("PS0225", statements[0].left.span, message, help=hint)
        own: dict[int | None, syntax.Relation] = {}
        for statement in statements:
            assert isinstance(statement.left, syntax.Index)
            place = None if running_index(statement, self.scope) else self._place(statement.left.indices[0], {})
            if place is not None and not 1 <= place <= length:
                self._refuse(statement.left.span, f"there is no entry {place}: {name} has {length}", "count from 1")
            if place in own:
                others = ((own[place].span, "the first one"),)
                raise Failure("PS0405", statement.span, "these entries have two laws", others=others)
            own[place] = statement
        found = []
        for place in range(1, length + 1):
            law = own.get(place, own.get(None))
            if law is None:
                hint = f"add {name}[{place}] ~ categorical(w)"
                self._refuse(statements[0].span, f"nothing says how {name}[{place}] is drawn", hint)
            found.append(self._conditional(name, law, place, size))
        return tuple(found)

    def _conditional(self, name: str, statement: syntax.Relation, place: int, size: int) -> Conditional:
        """The law of one entry, given those that it names."""
        bound = dict.fromkeys(running_index(statement, self.scope), Fraction(place))
        parents = [self._place(one.indices[0], bound) for one in _given(statement)]
        mistaken = len(set(parents)) < len(parents) or not all(1 <= parent < place for parent in parents)
        if mistaken or any(spell(one.base) != name or len(one.indices) != 1 for one in _given(statement)):
            message = f"{name}[{place}] is drawn given earlier entries, each of them once"
            hint = f"give {name}[{place}] a line of its own, or none before it"
            self._refuse(statement.right.span, message, hint)
        weights = _weights(statement)
        if weights is None:
            self._refuse(statement.right.span, "the law of an entry is stated in weights", "as in categorical(w)")
        table = self._numbers(weights.base if parents and isinstance(weights, syntax.Index) else weights)
        if table.shape != (size,) * (len(parents) + 1):
            wanted = " x ".join([str(size)] * (len(parents) + 1))
            raise Failure("PS0406", statement.right.span, f"{_extents(table)} weights, where {wanted} are expected")
        rows = table.reshape(-1, size).tolist()
        shares = tuple(_shares(row, statement.right.span) for row in rows)
        return Conditional(tuple(parent - 1 for parent in parents), shares)

    def _place(self, index: syntax.Expr, bound: Mapping[str, Value]) -> int:
        found = evaluate(index, replace(self.environment, values={**self.environment.values, **bound}))
        if not isinstance(found, Fraction) or found.denominator != 1:
            raise Failure("PS0440", index.span, "the number of an entry is expected here")
        return int(found)

    def _sequence(self, name: str, domain: Domain, span: Span) -> tuple[int, Domain]:
        """Length and values of a sequence."""
        match domain:
            case Power(base=base, exponents=(length,)) if base.size is not None and not base.shape:
                if length > LONGEST or base.size > MOST_STATES:
                    limits = f"up to {LONGEST:,} entries of up to {MOST_STATES} values"
                    raise Failure("PS0225", span, f"laws of entries are for {limits}")
                return length, base
        hint = f"declare it as in `input {name} in {{rest, walk}}^100`, or `(0..2)^100`"
        return self._refuse(span, f"{name} is no sequence of values of a finite set", hint)

    def _sorted(
        self, name: str, statements: list[syntax.Relation]
    ) -> tuple[syntax.Relation | None, syntax.Relation | None]:
        """The law of the first entry, and that of all others."""
        first: syntax.Relation | None = None
        later: syntax.Relation | None = None
        for statement in statements:
            assert isinstance(statement.left, syntax.Index)
            (index,) = statement.left.indices
            one = isinstance(index, syntax.Number) and index.value == 1
            if not one and not running_index(statement, self.scope):
                hint = f"write {name}[1] ~ categorical(w) and {name}[i] ~ categorical(step[{name}[i-1]])"
                self._refuse(index.span, "a law is for the first entry, or for each one given the one before", hint)
            before = first if one else later
            if before is not None:
                message = "these entries have two laws"
                hint = "laws of which each may be the true one stand in braces: {calm, busy}[x[i-1]]"
                raise Failure("PS0405", statement.span, message, others=((before.span, "the first one"),), help=hint)
            first, later = (statement, later) if one else (first, statement)
        return first, later

    def _starts(self, statement: syntax.Relation, values: Sequence[Value]) -> tuple[Law, ...]:
        weights = _weights(statement)
        if weights is not None:
            return tuple(self._law(item, len(values)) for item in items_of(weights))
        match statement.right:
            case syntax.Call(function=function) | syntax.Name(id=function):
                right = statement.right
                given = right.arguments if isinstance(right, syntax.Call) else ()
                model = DataModel("the first entry", function, given, right.span, 0)
                return (law_of(model, values, self.environment),)
        return self._refuse(statement.right.span, "a distribution is expected here", "as in categorical([0.5, 0.5])")

    def _steps(
        self, name: str, statement: syntax.Relation, values: Sequence[Value]
    ) -> tuple[tuple[tuple[Law, ...], ...], tuple[Law, ...]]:
        """The laws of a step; where entries are independent, also those of the first one."""
        assert isinstance(statement.left, syntax.Index)
        (index,) = statement.left.indices
        before = syntax.Binary("-", index, syntax.Number(Fraction(1), "1", span=index.span), span=index.span)
        own = spell(syntax.Index(syntax.Name(name, span=index.span), (before,), span=index.span))
        match _weights(statement):
            case syntax.Index(base=base, indices=(syntax.Index() as given,)):
                if spell(given) != own:
                    self._refuse(given.span, f"an entry is drawn given the one before, {own}", f"write {own}")
                return tuple(self._rows(table, len(values)) for table in items_of(base)), ()
            case None:
                pass
            case _:
                laws = self._starts(statement, values)
                return tuple((law,) * len(values) for law in laws), laws
        hint = f"write categorical(step[{own}]), with a row of step for each value of {name}"
        return self._refuse(
            statement.right.span, "the law of an entry, given the one before, is stated row by row", hint
        )

    def _law(self, expr: syntax.Expr, size: int) -> Law:
        weights = self._numbers(expr)
        if weights.shape != (size,):
            raise Failure("PS0406", expr.span, f"{_extents(weights)} weights for {size} values")
        return _shares(weights.tolist(), expr.span)

    def _rows(self, expr: syntax.Expr, size: int) -> tuple[Law, ...]:
        table = self._numbers(expr)
        if table.shape != (size, size):
            message = f"{_extents(table)} numbers for the steps between {size} values"
            hint = "a row for each value of the entry before, and in it a weight for each value of the entry"
            raise Failure("PS0406", expr.span, message, help=hint)
        return tuple(_shares(row, expr.span) for row in table.tolist())

    def _numbers(self, expr: syntax.Expr) -> NDArray[Any]:
        value = evaluate(expr, self.environment)
        entries = value.ravel() if isinstance(value, np.ndarray) else np.array([])
        if not len(entries) or any(isinstance(entry, str) for entry in entries):
            raise Failure("PS0406", expr.span, "a list of weights is expected here")
        assert isinstance(value, np.ndarray)
        if not all(isinstance(e, Fraction) or np.isfinite(e) for e in entries):
            raise Failure("PS0406", expr.span, "a number here is not finite")
        exact = np.empty(len(entries), dtype=object)
        exact[:] = [_exact(entry) for entry in entries]
        return exact.reshape(value.shape)

    def _refuse(self, span: Span, message: str, hint: str) -> NoReturn:
        raise Failure("PS0440", span, message, help=hint)


def _weights(statement: syntax.Relation) -> syntax.Expr | None:
    """The w of `x[1] ~ categorical(w)`; None for other laws."""
    match statement.right:
        case syntax.Call(function="categorical", arguments=(weights,)) if not isinstance(weights, syntax.NO_EXPRESSION):
            return weights
    return None


def _given(statement: syntax.Relation) -> tuple[syntax.Index, ...]:
    """The entries by which a law is chosen, as in `categorical(step[x[i-1]])`."""
    weights = _weights(statement)
    indices = weights.indices if isinstance(weights, syntax.Index) else ()
    found = tuple(one for one in indices if isinstance(one, syntax.Index))
    return found if len(found) == len(indices) else ()


def _extents(array: NDArray[Any]) -> str:
    return " x ".join(map(str, array.shape))


def _exact(value: object) -> Fraction:
    """The number that a double stands for: a short fraction where that is the nearest one."""
    if isinstance(value, Fraction):
        return value
    found = Fraction(float(value))  # type: ignore[arg-type]
    near = found.limit_denominator(SHORT)
    return near if float(near) == float(found) else found


def _shares(weights: list[Fraction], span: Span) -> Law:
    total = sum(weights, Fraction(0))
    if min(weights) < 0 or total <= 0:
        raise Failure("PS0406", span, "weights are not negative, and some are positive")
    return short(tuple(weight / total for weight in weights), span)
