"""Lines that the mechanism must obey: `E[g(z) | x] = e`, `E[loss] <= c`, as exact linear rows.

The right side may use `choose` numbers and averages E[g(B)] of a law that is chosen. (1 - alpha) * E[g(B)] is linear
in the masses (1 - alpha) Pr(B = b), which together are 1 - alpha (Ramon & Basu 2020, section 3.3).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from privspec.compile.finite.apart import Apart
from privspec.compile.finite.lies import is_manipulation, lies
from privspec.compile.finite.losses import Body, averaged, body, costs, spread, weighed
from privspec.compile.finite.system import Costs, LinearLine, Scalar
from privspec.core.spans import Span
from privspec.language import syntax
from privspec.language.syntax import VariableKind
from privspec.model.domains import Law
from privspec.model.pointwise import Pointwise
from privspec.model.reports import Failure
from privspec.model.requirements import AccuracyTarget, MechanismConstraint
from privspec.model.values import Symbol, show
from privspec.model.walk import names_used
from privspec.model.worlds import Worlds
from privspec.problem.terms import Chosen, Term, public_number, terms

Row: TypeAlias = tuple[dict[tuple[int, int], Fraction], dict[str, Fraction], Fraction]
"""Coefficients of the table and of scalars, and the bound."""


@dataclass(frozen=True, eq=False)
class Affine:
    """At each row: sum table f + sum scalars[name] w_name + constant; scalars and constant are (rows,) of fractions."""

    constant: Costs
    scalars: Mapping[str, Costs] = field(default_factory=dict)
    table: Costs | None = None

    @property
    def certain(self) -> bool:
        """Whether nothing unknown stands in it."""
        return self.table is None and not self.scalars

    def plus(self, other: Affine, sign: int = 1) -> Affine:
        """The sum, or the difference for sign -1."""
        scalars = dict(self.scalars)
        for name, values in other.scalars.items():
            scalars[name] = scalars[name] + sign * values if name in scalars else sign * values
        table = self.table
        if other.table is not None:
            table = sign * other.table if table is None else table + sign * other.table
        return Affine(self.constant + sign * other.constant, scalars, table)

    def times(self, factor: Costs) -> Affine:
        """Each row times a certain number."""
        scalars = {name: values * factor for name, values in self.scalars.items()}
        table = None if self.table is None else self.table * factor[:, None]
        return Affine(self.constant * factor, scalars, table)


@dataclass(frozen=True, eq=False)
class Conditions:
    """Lowers the lines of one spec; `weights[B]` is the alpha of a law met as (1 - alpha) * E[g(B)], None without."""

    worlds: Worlds
    scene: Pointwise
    weights: dict[str, str | None] = field(default_factory=dict)

    # -- lines

    def constraint(self, constraint: MechanismConstraint) -> Iterator[LinearLine]:
        """One row of the program for each row of the table (one in all, for lines without `| x`)."""
        relation = constraint.relation
        found = self.affine(relation.left).plus(self.affine(relation.right), -1)
        sign = -1 if relation.op in (">=", "≥") else 1
        equality = relation.op == "="
        for r, row in self._rows(found):
            yield self._line(f"condition:{constraint.line}:{r}", relation.span, row, sign, equality)

    def accuracy(self, target: AccuracyTarget) -> Iterator[LinearLine | Scalar]:
        """E[e] <= c, or worst[e] <= c: one row for each row of the table.

        Raises: Failure PS0501 for other forms and for more than one worst case.
        """
        written = target.target
        if written.variable is not None or written.probability is not None:
            raise Failure("PS0501", written.span, "solve cannot compute this form of accuracy line for tables yet")
        bound = public_number(written.right, self.worlds.model)
        if is_manipulation(written.left):
            yield from lies(target, bound, self.worlds)
            return
        scalars: dict[str, Fraction] = {}
        mean = np.full((len(self.worlds.rows), len(self.worlds.columns)), Fraction(0), dtype=object)
        worst: tuple[Term, Body] | None = None
        apart = list[Apart]()
        for term in terms(written.left, self.worlds.model):
            if isinstance(term, Fraction):
                bound -= term
            elif isinstance(term, Chosen):
                scalars[term.name] = scalars.get(term.name, Fraction(0)) + term.weight
            else:
                if term.operator == "worst" and worst is not None:
                    raise Failure("PS0501", term.span, "solve takes one worst case in an accuracy line of tables")
                found = body(term, self.scene, self.worlds, f"{target.line}:{len(apart)}")
                apart += (replace(weighed(gap, term.weight), span=written.span) for gap in found.apart)
                if term.operator == "worst":
                    worst = term, replace(found, apart=tuple(apart[len(apart) - len(found.apart) :]))
                    continue
                mean = mean + averaged(found.costs, self.worlds, term.span) * term.weight
        for gap in apart:
            yield from gap.scalars(None)
            yield from gap.lines()
        average = dict(np.ndenumerate(mean))
        of_worst = () if worst is None else worst[1].apart
        for gap in (gap for gap in apart if gap not in of_worst):
            for r, share in enumerate(self.worlds.prior or ()):
                scalars |= {name: weight * share for name, weight in gap.slacks(r).items()}
        if worst is None:
            yield LinearLine(f"accuracy:{target.line}", written.span, average, scalars, bound, False)
            return
        for r, costs_ in enumerate(worst[1].costs):
            table = average | {(r, c): average[r, c] + worst[0].weight * cost for c, cost in enumerate(costs_)}
            slacks = {name: weight for gap in of_worst for name, weight in gap.slacks(r).items()}
            yield LinearLine(f"accuracy:{target.line}:{r}", written.span, table, scalars | slacks, bound, False)

    def _rows(self, found: Affine) -> Iterator[tuple[int, Row]]:
        for r in range(len(self.worlds.rows)):
            line = {} if found.table is None else {(r, c): v for c, v in enumerate(found.table[r]) if v}
            yield r, (line, {name: v[r] for name, v in found.scalars.items() if v[r]}, -found.constant[r])

    @staticmethod
    def _line(
        name: str,
        span: Span,
        row: Row,
        sign: int,
        equality: bool,
    ) -> LinearLine:
        table, scalars, bound = row
        return LinearLine(
            name,
            span,
            {k: sign * v for k, v in table.items()},
            {k: sign * v for k, v in scalars.items()},
            sign * bound,
            equality,
        )

    # -- scalars

    def choices(self, prices: Mapping[str, Fraction]) -> Iterator[Scalar | LinearLine]:
        """The `choose` numbers with their prices, the masses of laws that were met, and that these add up."""
        for node in self.worlds.model.choices:
            if isinstance(node.domain, Law):
                if node.name not in self.weights:
                    continue
                masses = [mass_name(node.name, value) for value in node.domain.over.elements()]
                yield from (Scalar(name, Fraction(0), Fraction(1)) for name in masses)
                alpha = self.weights[node.name]
                ones = dict.fromkeys(masses, Fraction(1))
                total = ones if alpha is None else {**ones, alpha: Fraction(1)}
                yield LinearLine(f"law:{node.name}", node.span, {}, total, Fraction(1), True)
            else:
                low, high = node.domain.bounds if node.domain is not None else (None, None)
                if low is None or high is None:
                    raise Failure("PS0501", node.span, f"solve needs two ends for {node.name}", help="as in [0, 1]")
                yield Scalar(node.name, low, high, prices.get(node.name, Fraction(0)))

    # -- expressions

    def affine(self, expr: syntax.Expr) -> Affine:
        """An expression that is linear in the table and in what is chosen.

        Raises: Failure PS0502 if it is not.
        """
        if not self._unknown(expr):
            return Affine(self._certain(expr))
        match expr:
            case syntax.Name(id=name) if self._chosen_number(name):
                ones = self._ones()
                return Affine(ones * 0, {name: ones})
            case syntax.Name(id=name) if self.worlds.model.nodes[name].definition is not None:
                return self.affine(self.worlds.model.nodes[name].definition)  # type: ignore[arg-type]
            case syntax.Over(operator="E"):
                return self._average(expr)
            case syntax.Binary(op="+" | "-"):
                return self.affine(expr.left).plus(self.affine(expr.right), 1 if expr.op == "+" else -1)
            case syntax.Negate():
                return self.affine(expr.operand).times(self._ones() * Fraction(-1))
            case syntax.Binary(op="*"):
                return self._product(expr)
            case syntax.Binary(op="/") if not self._unknown(expr.right):
                return self.affine(expr.left).times(np.array([1 / v for v in self._certain(expr.right)], dtype=object))
        raise self._nonlinear(expr)

    def _product(self, expr: syntax.Binary) -> Affine:
        for factor, other in ((expr.left, expr.right), (expr.right, expr.left)):
            if not self._unknown(factor):
                return self.affine(other).times(self._certain(factor))
        for factor, other in ((expr.left, expr.right), (expr.right, expr.left)):
            law = self._law_average(other)
            if law is not None:
                alpha = self._one_less(factor)
                if alpha is None:
                    break
                return self._masses(law, other, alpha)  # type: ignore[arg-type]
        raise self._nonlinear(expr)

    def _one_less(self, expr: syntax.Expr) -> str | None:
        """The name alpha of `1 - alpha`."""
        found = self.affine(expr)
        if found.table is not None or len(found.scalars) != 1 or any(c != 1 for c in found.constant):
            return None
        ((name, values),) = found.scalars.items()
        return name if all(v == -1 for v in values) and ":" not in name else None

    def _law_average(self, expr: syntax.Expr) -> str | None:
        """The law B of E[g(B)]."""
        if not isinstance(expr, syntax.Over) or expr.given is not None:
            return None
        nodes = self.worlds.model.nodes
        laws = [n for n in names_used(expr.body) if n in nodes and isinstance(nodes[n].domain, Law)]
        return laws[0] if len(laws) == 1 else None

    def _masses(self, law: str, expr: syntax.Over, alpha: str | None) -> Affine:
        if self.weights.setdefault(law, alpha) != alpha:
            raise Failure("PS0502", expr.span, f"{law} is used both with and without the factor 1 - alpha")
        domain = self.worlds.model.nodes[law].domain
        assert isinstance(domain, Law)
        scalars = {}
        for value in domain.over.elements():
            grid = self.scene.bind(law, value).grid(expr.body)
            scalars[mass_name(law, value)] = spread(grid, self.worlds)[:, 0]
        return Affine(self._ones() * 0, scalars)

    def _average(self, expr: syntax.Over) -> Affine:
        law = self._law_average(expr)
        if law is not None:
            return self._masses(law, expr, None)
        if expr.given is None and set(names_used(expr.body)) & set(self.worlds.of):
            raise Failure("PS0501", expr.span, "solve takes conditions for each input: E[ ... | x ]")
        found = costs(expr.body, self.scene, self.worlds)
        return Affine(self._ones() * 0, {}, found)

    def _certain(self, expr: syntax.Expr) -> Costs:
        return spread(self.scene.grid(expr), self.worlds)[:, 0]

    def _ones(self) -> Costs:
        ones = np.empty(len(self.worlds.rows), dtype=object)
        ones[:] = Fraction(1)
        return ones

    def _chosen_number(self, name: str) -> bool:
        node = self.worlds.model.nodes.get(name)
        return node is not None and node.kind is VariableKind.CHOOSE and not isinstance(node.domain, Law)

    def _unknown(self, expr: syntax.Node) -> bool:
        """Whether an output or a choice stands in it, or in what it is computed from."""
        waiting, seen = list(names_used(expr)), set()
        while waiting:
            name = waiting.pop()
            node = self.worlds.model.nodes.get(name)
            if node is None or name in seen:
                continue
            seen.add(name)
            if node.kind in (VariableKind.OUTPUT, VariableKind.CHOOSE):
                return True
            if node.definition is not None:
                waiting += names_used(node.definition)
        return False

    def _nonlinear(self, expr: syntax.Expr) -> Failure:
        return Failure(
            "PS0502",
            expr.span,
            "this line is not linear in the table and in what is chosen",
            help="as in E[z | x] = alpha * x + (1 - alpha) * E[B]",
        )


def mass_name(law: str, value: Symbol) -> str:
    """The scalar that holds the mass of a value of a law."""
    return f"{law}:{show(value)}"
