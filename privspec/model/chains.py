"""Laws of sequences: `x[1] ~ categorical(start)`, `x[i] ~ categorical(step[x[i-1]])`, each entry given the one before.

A set in place of a name, `{calm, busy}[x[i-1]]` or `categorical({a, b})`, declares that each of its laws may be the
true one. Nothing counts on such laws but a line of privacy that says `given the model`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn

import numpy as np

from privspec.core.spans import Span
from privspec.language import syntax
from privspec.language.spelling import spell
from privspec.model.domains import Domain, Power
from privspec.model.evaluate import Environment, evaluate
from privspec.model.priors import Law, law_of, short
from privspec.model.reports import Failure, Report
from privspec.model.requirements import Chain, DataModel
from privspec.model.scope import Scope, entry_of, running_index
from privspec.model.spaces import as_value
from privspec.model.values import Array, Value

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
        first, later = self._sorted(name, statements)
        laws = [self._steps(name, later, values)] if later is not None else []
        starts = self._starts(first, values) if first is not None else laws[0][1] if laws else ()
        if not starts:
            self._refuse(statements[0].span, f"nothing says how {name}[1] is drawn", f"add {name}[1] ~ categorical(w)")
        if not laws:
            hint = f"add {name}[i] ~ categorical(step[{name}[i-1]]), with a row of step for each value"
            self._refuse(statements[0].span, f"nothing says how {name}[2] is drawn, given {name}[1]", hint)
        lines = sorted(self.report.line(one.span) for one in statements)
        return Chain(name, length, starts, laws[0][0], tuple(lines))

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
        match statement.right:
            case syntax.Call(function="categorical", arguments=(syntax.SetOf(items=items),)):
                return tuple(self._law(item, len(values)) for item in items)
            case syntax.Call(function="categorical", arguments=(argument,)) if not isinstance(
                argument, syntax.NO_EXPRESSION
            ):
                return (self._law(argument, len(values)),)
            case syntax.Call(function=function) | syntax.Name(id=function):
                right = statement.right
                given = right.arguments if isinstance(right, syntax.Call) else ()
                model = DataModel("the first entry", function, given, right.span, 0)
                return (law_of(model, values, self.environment),)
        return self._refuse(statement.right.span, "a distribution is wanted here", "as in categorical([0.5, 0.5])")

    def _steps(
        self, name: str, statement: syntax.Relation, values: Sequence[Value]
    ) -> tuple[tuple[tuple[Law, ...], ...], tuple[Law, ...]]:
        """The laws of a step; where entries are independent, also those of the first one."""
        assert isinstance(statement.left, syntax.Index)
        (index,) = statement.left.indices
        before = syntax.Binary("-", index, syntax.Number(Fraction(1), "1", span=index.span), span=index.span)
        own = spell(syntax.Index(syntax.Name(name, span=index.span), (before,), span=index.span))
        match statement.right:
            case syntax.Call(
                function="categorical", arguments=(syntax.Index(base=base, indices=(syntax.Index() as given,)),)
            ):
                if spell(given) != own:
                    self._refuse(given.span, f"an entry is drawn given the one before, {own}", f"write {own}")
                tables = base.items if isinstance(base, syntax.SetOf) else (base,)
                return tuple(self._rows(table, len(values)) for table in tables), ()
            case syntax.Call(function="categorical", arguments=(argument,)) if not isinstance(
                argument, syntax.NO_EXPRESSION
            ):
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

    def _numbers(self, expr: syntax.Expr) -> Array:
        value = evaluate(expr, self.environment)
        entries = value.ravel() if isinstance(value, np.ndarray) else np.array([])
        if not len(entries) or any(isinstance(entry, str) for entry in entries):
            raise Failure("PS0406", expr.span, "a list of weights is wanted here")
        assert isinstance(value, np.ndarray)
        if not all(isinstance(e, Fraction) or np.isfinite(e) for e in entries):
            raise Failure("PS0406", expr.span, "a number here is not finite")
        exact = np.empty(len(entries), dtype=object)
        exact[:] = [_exact(entry) for entry in entries]
        return exact.reshape(value.shape)

    def _refuse(self, span: Span, message: str, hint: str) -> NoReturn:
        raise Failure("PS0440", span, message, help=hint)


def _extents(array: Array) -> str:
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
