"""Conditions as linear rows in the unknown table and what is chosen, for a bound on the loss of every table.

A side of a condition becomes a polynomial in chosen numbers and in probabilities Pr(B = b) of chosen laws, and a
linear form in the entries of its own row of the table. The products that specs contain, (1 - alpha) Pr(B = b), are one
unknown each: the mass of b, written `B:b`. The masses of a law sum to its weight 1 - alpha, or to one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from privspec.certify.finite.averages import certain, check_given, depends, drawn, pointlike
from privspec.certify.finite.draws import averaged_over_draws
from privspec.certify.finite.lagrangian import LinearRow
from privspec.certify.finite.ratios import Entries
from privspec.certify.finite.subject import FiniteSubject
from privspec.certify.motion import NotUnderstood
from privspec.certify.reading import Malformed
from privspec.language import syntax
from privspec.language.syntax import VariableKind
from privspec.language.walk import names_used
from privspec.model.values import show

Monomial: TypeAlias = tuple[str, ...]
"""Names of unknown scalars, sorted; the probability of a value of a law is written `B:b`."""


@dataclass(frozen=True, eq=False, slots=True)
class Polynomial:
    """At each row: sum of terms[m] (rows,) times the unknowns of m, and sum over columns of table (rows, columns) f."""

    terms: Mapping[Monomial, Entries]
    table: Entries | None = None

    def plus(self, other: Polynomial, sign: int = 1) -> Polynomial:
        """The sum, or the difference for sign -1."""
        terms = dict(self.terms)
        for key, values in other.terms.items():
            terms[key] = terms[key] + sign * values if key in terms else sign * values
        table = self.table
        if other.table is not None:
            table = sign * other.table if table is None else table + sign * other.table
        return Polynomial(terms, table)

    def times(self, other: Polynomial) -> Polynomial:
        """The product, of which one factor is certain where the other has entries of the table.

        Raises: NotUnderstood.
        """
        for one, two in ((self, other), (other, self)):
            if two.table is None and set(two.terms) <= {()}:
                factor = two.terms.get((), np.array([Fraction(0)], dtype=object))
                table = None if one.table is None else one.table * np.reshape(factor, (-1, 1))
                return Polynomial({key: values * factor for key, values in one.terms.items()}, table)
        if self.table is not None or other.table is not None:
            raise NotUnderstood("a condition that is not linear in the table")
        terms: dict[Monomial, Entries] = {}
        for first, a in self.terms.items():
            for second, b in other.terms.items():
                key = tuple(sorted((*first, *second)))
                terms[key] = terms[key] + a * b if key in terms else a * b
        return Polynomial(terms)


@dataclass(frozen=True, eq=False)
class Conditions:
    """The background lines of a spec as linear rows; `weights`: for each law met, the alpha of 1 - alpha, or None."""

    subject: FiniteSubject
    weights: dict[str, str | None] = field(default_factory=dict)
    _sides: dict[int, tuple[Polynomial, Mapping[str, Entries]]] = field(default_factory=dict)

    def row(self, number: int, row: int) -> LinearRow:
        """One row of a constraint of the model, as left - right <= 0 or = 0.

        Raises: NotUnderstood, Malformed.
        """
        constraint = self.subject.model.constraints[number]
        found, scalars = self.side(number)
        if not 0 <= row < self.subject.rows.size:
            raise Malformed(f"line {constraint.line} has no row {row}")
        sign = -1 if constraint.relation.op in (">=", "≥") else 1
        table = {} if found.table is None else {row: sign * found.table[row]}
        constant = found.terms.get(())
        return LinearRow(
            table,
            {name: sign * values[row] for name, values in scalars.items()},
            Fraction(0) if constant is None else -sign * constant[row],
            constraint.relation.op == "=",
        )

    def side(self, number: int) -> tuple[Polynomial, Mapping[str, Entries]]:
        """Left - right of a constraint, and the coefficients of its unknown scalars.

        Raises: NotUnderstood.
        """
        if number not in self._sides:
            relation = self.subject.model.constraints[number].relation
            found = self.polynomial(relation.left).plus(self.polynomial(relation.right), -1)
            self._sides[number] = found, self._unknowns(found)
        return self._sides[number]

    def names(self, law: str) -> tuple[str, ...]:
        """The masses of a law."""
        return tuple(f"{law}:{show(value)}" for value in self.subject.chosen_laws[law])

    def law_row(self, law: str) -> LinearRow:
        """That the masses of a law sum to its weight; every condition is read first, to find it."""
        for number in range(len(self.subject.model.constraints)):
            self.side(number)
        if law not in self.weights:
            raise Malformed(f"no condition of the spec is about the law {law}")
        scalars = dict.fromkeys(self.names(law), Fraction(1))
        alpha = self.weights[law]
        return LinearRow({}, scalars if alpha is None else {**scalars, alpha: Fraction(1)}, Fraction(1), True)

    # --- expressions -----------------------------------------------------------------------------------

    def polynomial(self, expr: syntax.Expr) -> Polynomial:
        """A side of a condition.

        Raises: NotUnderstood.
        """
        model = self.subject.model
        if certain(model, expr):
            return Polynomial({(): self._column(self.subject.open_scene.grid(expr).data)})
        match expr:
            case syntax.Name(id=name) if name in {node.name for node in self.subject.chosen_numbers}:
                return Polynomial({(name,): self._ones()})
            case syntax.Name(id=name) if (inner := model.nodes[name].definition) is not None:
                return self.polynomial(inner)
            case syntax.Over(operator="E"):
                return self._average(expr)
            case syntax.Binary(op="+" | "-"):
                return self.polynomial(expr.left).plus(self.polynomial(expr.right), 1 if expr.op == "+" else -1)
            case syntax.Negate():
                return Polynomial({}).plus(self.polynomial(expr.operand), -1)
            case syntax.Binary(op="*"):
                return self.polynomial(expr.left).times(self.polynomial(expr.right))
            case syntax.Binary(op="/") if certain(model, expr.right):
                below = self.polynomial(expr.right).terms[()]
                return self.polynomial(expr.left).times(Polynomial({(): 1 / below}))
        raise NotUnderstood("a condition that is not linear in the table and in what is chosen")

    def _average(self, expr: syntax.Over) -> Polynomial:
        laws = [name for name in names_used(expr.body) if name in self.subject.chosen_laws]
        if len(laws) == 1 and expr.given is None and not drawn(self.subject.model, expr.body):
            (law,) = laws
            each = {value: self.subject.open_scene.bind(law, value) for value in self.subject.chosen_laws[law]}
            return Polynomial(
                {(f"{law}:{show(value)}",): self._column(scene.grid(expr.body).data) for value, scene in each.items()}
            )
        check_given(self.subject, expr)
        if VariableKind.CHOOSE in depends(self.subject.model, expr.body):
            raise NotUnderstood("an average of something that is chosen")
        scene = self.subject.open_scene
        found = averaged_over_draws(scene, pointlike(scene, expr.body), self.subject.rows.size)
        return Polynomial({}, self.subject.spread(found))

    def _column(self, data: Entries) -> Entries:
        if data.ndim != 2:
            raise Malformed("a condition is about single numbers")
        column: Entries = np.broadcast_to(data, (self.subject.rows.size, data.shape[1]))[:, 0]
        return column

    def _ones(self) -> Entries:
        ones = np.empty(self.subject.rows.size, dtype=object)
        ones[:] = Fraction(1)
        return ones

    # --- products of chosen numbers and laws -----------------------------------------------------------

    def _unknowns(self, found: Polynomial) -> Mapping[str, Entries]:
        """Coefficients of chosen numbers and of masses: of each law all terms have the weight 1 - alpha, or one."""
        scalars: dict[str, Entries] = {}
        products: dict[str, dict[str, Entries]] = {}
        for key, values in found.terms.items():
            if len(key) == 1:
                scalars[key[0]] = values
            elif key:
                alpha, mass = (key[1], key[0]) if ":" in key[0] else key
                if len(key) != 2 or ":" in alpha or ":" not in mass:
                    raise NotUnderstood("a condition with a product of several things that are chosen")
                products.setdefault(mass, {})[alpha] = values
        for mass in [name for name in scalars if ":" in name] + [m for m in products if m not in scalars]:
            self._check_weight(mass, scalars.get(mass), products.get(mass, {}))
        return scalars

    def _check_weight(self, mass: str, plain: Entries | None, by_number: Mapping[str, Entries]) -> None:
        law = mass.partition(":")[0]
        alphas = [alpha for alpha, values in by_number.items() if np.any(values != 0)]
        if (plain is None or not np.any(plain != 0)) and not alphas:
            return
        if len(alphas) > 1 or plain is None or (alphas and np.any(by_number[alphas[0]] != -plain)):
            raise NotUnderstood("a law that is multiplied by something else than 1 less a chosen number")
        alpha = alphas[0] if alphas else None
        if self.weights.setdefault(law, alpha) != alpha:
            raise NotUnderstood(f"the law {law} with and without a factor")
