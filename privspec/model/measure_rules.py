"""Measures of privacy: how each is written, which amounts make sense, and the object they make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privspec.core.spans import Span
from privspec.language import syntax
from privspec.language.walk import names_used
from privspec.model.evaluate import Environment, evaluate
from privspec.model.measures import (
    GDP,
    LDP,
    RDP,
    ZCDP,
    Chosen,
    EpsilonDelta,
    Lipschitz,
    Measure,
    Metric,
    MetricDP,
    PerAtomLDP,
    Personalised,
    PureDP,
)
from privspec.model.reports import Failure, Report, listing, nearest
from privspec.model.scope import Scope
from privspec.model.values import Value, show

SMALLEST, LARGEST = Fraction(1, 10**300), Fraction(10**300)
"""Amounts outside are taken for slips: no double could hold them."""


def _in_range(name: str, value: Fraction, span: Span, code: str) -> None:
    if not SMALLEST <= value <= LARGEST:
        word = "large" if value > LARGEST else "small"
        raise Failure(code, span, f"{name} is too {word} to compute with")


def _positive(name: str) -> Callable[[Fraction, Span], None]:
    def check(value: Fraction, span: Span) -> None:
        if value <= 0:
            hint = (
                "an epsilon of 0 allows no dependence on the data at all; a chosen range may include it"
                if value == 0 and name == "epsilon"
                else f"the smaller {name}, the more private; write a positive number, as in 0.5"
            )
            raise Failure("PS0304", span, f"{name} must be positive, not {show(value)}", help=hint)
        _in_range(name, value, span, "PS0304")

    return check


def _delta(value: Fraction, span: Span) -> None:
    if value < 0:
        raise Failure("PS0305", span, f"delta must not be negative, and is {show(value)}")
    if value >= 1:
        raise Failure(
            "PS0305",
            span,
            f"delta must be below 1, and is {show(value)}",
            help="delta is a probability of failure: far below one over the number of people, as in 1e-6",
        )
    if value:
        _in_range("delta", value, span, "PS0305")


def _order(value: Fraction, span: Span) -> None:
    if value <= 1:
        raise Failure("PS0306", span, f"the order of a Renyi divergence must be above 1, and is {show(value)}")
    _in_range("the order", value, span, "PS0306")


@dataclass(frozen=True, slots=True)
class MeasureRule:
    """How one measure is written: the amounts it takes, each with its check, and the object it makes."""

    written: tuple[str, ...]
    checks: tuple[Callable[[Fraction, Span], None], ...]
    make: Callable[[tuple[Fraction, ...], Metric], Measure]
    optional: int = 0
    distance: bool = False
    kind: str = ""

    @property
    def arities(self) -> range:
        """How many amounts it may have."""
        return range(len(self.checks) - self.optional, len(self.checks) + 1)


def _dp(amounts: tuple[Fraction, ...], metric: Metric) -> Measure:  # noqa: ARG001 - one signature for all
    if len(amounts) == 2 and amounts[1] > 0:
        return EpsilonDelta(*amounts)
    return PureDP(amounts[0])


def _per_atom(amounts: tuple[Fraction, ...], metric: Metric) -> Measure:  # noqa: ARG001 - one signature for all
    """With a delta of 0 both conditions are one."""
    epsilon, delta = amounts
    return PerAtomLDP(epsilon, delta) if delta > 0 else LDP(epsilon)


EPSILON, RHO, MU = _positive("epsilon"), _positive("rho"), _positive("mu")
CONSTANT = _positive("the constant")

MEASURES: Mapping[str, MeasureRule] = {
    "DP": MeasureRule(("epsilon-DP", "(epsilon, delta)-DP"), (EPSILON, _delta), _dp, 1, kind="epsilon-DP"),
    "LDP": MeasureRule(
        ("epsilon-LDP", "(epsilon, delta)-LDP"),
        (EPSILON, _delta),
        lambda a, _: LDP(*a),
        1,
        kind="epsilon-LDP",
    ),
    "per-atom-LDP": MeasureRule(
        ("(epsilon, delta)-per-atom-LDP",),
        (EPSILON, _delta),
        _per_atom,
        kind="(epsilon, delta)-per-atom-LDP",
    ),
    "zCDP": MeasureRule(("rho-zCDP",), (RHO,), lambda a, _: ZCDP(*a), kind="rho-zCDP"),
    "GDP": MeasureRule(("mu-GDP",), (MU,), lambda a, _: GDP(*a), kind="mu-GDP"),
    "RDP": MeasureRule(("(order, epsilon)-RDP",), (_order, EPSILON), lambda a, _: RDP(*a), kind="(order, epsilon)-RDP"),
    "metric-DP": MeasureRule(
        ("epsilon-metric-DP",),
        (EPSILON,),
        lambda a, metric: MetricDP(a[0], metric.name, metric.matrix),
        distance=True,
        kind="epsilon-metric-DP",
    ),
    "Lipschitz": MeasureRule(
        ("1-Lipschitz",),
        (CONSTANT,),
        lambda a, metric: Lipschitz(a[0], metric.name, metric.matrix),
        distance=True,
        kind="Lipschitz",
    ),
}


@dataclass(frozen=True, slots=True)
class AmountReader:
    """Reads the figures before `-DP` and its like."""

    scope: Scope
    report: Report
    environment: Environment

    def measure(self, line: syntax.Requirement, metric: Metric) -> Measure | None:
        """The measure with its figures; None after a complaint."""
        rule = MEASURES[line.measure]
        items = line.amount.items
        if len(items) not in rule.arities:
            self.report.error(
                "PS0303",
                line.amount.span,
                f"{line.measure} takes {listing([str(n) for n in rule.arities], 'or')} "
                f"figure{'' if rule.arities[-1] == 1 else 's'}, not {len(items)}",
                help=f"it is written {listing(rule.written, 'or')}",
            )
            return None
        chosen = self.scope.of("choose")
        if any(name in chosen for item in items for name in names_used(item)):
            text = f"{self.report.source.slice(line.amount.span)}-{line.measure}"
            return Chosen(rule.kind, items, text)
        figures = [self._figure(item) for item in items]
        if any(figure is None for figure in figures):
            return None
        return self._assemble(rule, items, [f for f in figures if f is not None], metric)

    def _figure(self, item: syntax.Expr) -> tuple[Fraction, ...] | tuple[str, tuple[Fraction, ...]] | None:
        """One exact figure, or (index set, one figure a person)."""
        party: str | None = None
        expr = item
        match item:
            case syntax.Index(base=syntax.Name() as base, indices=(syntax.Name(id=name),)) if (
                name in self.environment.parties
            ):
                expr, party = base, name
        for name in names_used(expr):
            declared = self.scope.get(name)
            if declared is not None and declared.what != "parameter" and name != "inf":
                self.report.error(
                    "PS0307",
                    item.span,
                    f"an amount is public and known: {name} is {declared.with_article}",
                    others=((declared.span, "declared here"),),
                )
                return None
            if declared is None:
                near = nearest(name, self.scope.of("parameter", "choose"))
                self.report.error(
                    "PS0307" if name == "inf" else "PS0201",
                    item.span,
                    "an amount must be finite" if name == "inf" else f"nothing is called {name}",
                    help=None
                    if name == "inf"
                    else f"did you mean {near}?"
                    if near
                    else "give it a value under `parameters:`",
                )
                return None
            if name not in self.environment.values:
                return None  # its value failed, which has been reported
        try:
            value = evaluate(expr, self.environment)
        except Failure as failure:
            self.report.failure(failure)
            return None
        if isinstance(value, Fraction) and party is not None:
            self.report.error(
                "PS0317",
                item.span,
                f"{self.report.source.slice(expr.span)} is one number, not one for each {party}",
                help=f"write {self.report.source.slice(expr.span)}",
            )
            return None
        if isinstance(value, Fraction):
            return (value,)
        if party is not None and isinstance(value, np.ndarray) and value.ndim == 1:
            if len(value) != self.environment.parties[party]:
                self.report.error(
                    "PS0317",
                    item.span,
                    f"{len(value)} figures for {self.environment.parties[party]} {party}s",
                )
                return None
            return party, tuple(Fraction(entry) for entry in value)
        self.report.error("PS0307", item.span, "an amount is one number", label=_what(value))
        return None

    def _assemble(
        self,
        rule: MeasureRule,
        items: tuple[syntax.Expr, ...],
        figures: list[tuple[Fraction, ...] | tuple[str, tuple[Fraction, ...]]],
        metric: Metric,
    ) -> Measure | None:
        party: str | None = None
        columns: list[tuple[Fraction, ...]] = []
        for figure in figures:
            if isinstance(figure[0], str):
                party, column = figure
                columns.append(column)
            else:
                columns.append(figure)
        good = True
        for column, item, check in zip(columns, items, rule.checks, strict=False):
            for number in sorted(set(column)):
                try:
                    check(number, item.span)
                except Failure as failure:
                    given = [(self.scope[name].span, "given here") for name in names_used(item) if name in self.scope]
                    self.report.failure(failure, others=given)
                    good = False
                    break
        if not good:
            return None
        if party is None:
            return rule.make(tuple(column[0] for column in columns), metric)
        people = max(len(column) for column in columns)
        wide = [column * people if len(column) == 1 else column for column in columns]
        return Personalised(party, tuple(rule.make(figure, metric) for figure in zip(*wide, strict=True)))


def _what(value: Value) -> str:
    if isinstance(value, np.ndarray):
        return "a list of " + " x ".join(str(n) for n in value.shape)
    return "not a number"
