"""The forms of a table: rows, columns, the rows compared, and what the loss and the lines say of Pr(column | row).

Losses become numbers here: averages and worst cases of what draws cost, and total variations from drawn winners, which
may stand in sums with weights that are not negative.

All forms are the kernel's own. `Compared`: the rows that an obligation compares, both ways: every two
of a clique, and `pairs` (n, 3) as a < b and a level; by level `squares` is the square of the distance, exactly; pairs
of cliques are at distance one; `inputs`: how many values the inputs of the line take (for conditions on single
outputs). `Manipulation`: no ballot but the true one raises the probability of any set of best alternatives by
more than `limit`; a ballot names alternatives, best first: one that names as many as it may does not say in which order
the others come, one that names fewer says that they are alike; `counts` (rows, ballots): how often each is cast.
`Fairness`: laws of `outputs` in groups of rows (each by the prior of its rows); `pairs` (n, 3): two groups and a level;
by level the square of what they may be apart, exactly, and that number itself, rounded down where it is irrational.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import replace
from privspec.core.spans import Span
from privspec.kernel.core.reading import Grid as Numbers
from privspec.kernel.tables_forms import Amount, Price, Task, Variation, Worst
from privspec.kernel.writing import exact_grid
from privspec.language import syntax
from privspec.language.walk import names_used, walk
from privspec.model.pointwise import Chances, Grid, Pointwise, RowLaws
from privspec.model.reports import Failure
from privspec.model.values import readable
from privspec.model.worlds import Worlds, key
from privspec.problem.terms import Chosen, multiples, public, terms


class Table(Task):
    """Outputs that are drawn from a table Pr(column | row)."""

    __slots__ = ()

    def words(self) -> tuple[str, ...]:
        return tuple(_words(self))


def _words(table: Table) -> Iterator[str]:
    rows, columns = table.shape
    drawn, of = " and ".join(table.outputs), " and ".join(table.of)
    yield f"{drawn}: drawn from a table with {rows} rows (values of {of}) and {columns} columns."
    for name in table.counted:
        yield f"Of {name} it counts how often each value stands in it, and not where."
    if table.prior is not None:
        rests = "" if any(one.laws is not None for one in table.compared) else ", which no guarantee rests on"
        yield f"Losses average over a law of the {rows} rows{rests}."
    for number, one in enumerate(table.compared, 1):
        pairs = sum(len(clique) * (len(clique) - 1) // 2 for clique in one.cliques) + one.pairs.shape[0]
        apart = f", at {len(one.squares)} different distances" if len(one.squares) > 1 else ""
        what = "rows" if one.laws is None else f"{len(one.laws.rows)} laws of rows, given what it hides"
        yield f"Requirement {number} compares {pairs} pairs of {what}{apart}."
    yield f"The loss is {_amount_words(table.loss, estimated=table.estimates is not None)}."
    for condition in table.conditions:
        yield f"Line {condition.line} holds at every row: {condition.text}."
    bounds = [(one.line, one.limit, one.text) for one in table.accuracy]
    bounds += [(one.line, one.limit, one.text) for one in table.manipulation]
    for number, limit, text in bounds:
        yield f"Line {number} holds with the limit {readable(limit)}: {text}."
    for fair in table.fairness:
        yield f"Line {fair.line} compares the laws of {len(fair.groups)} groups of rows: {fair.text}."
    for choice in table.choices:
        left, right = "(" if choice.low_open else "[", ")" if choice.high_open else "]"
        yield f"{choice.name} is chosen from {left}{readable(choice.low)}, {readable(choice.high)}{right}."
    for law in table.laws:
        yield f"{law.name} is a law over {', '.join(law.labels)} that is chosen."
    if table.rounds is not None:
        yield f"{table.rounds.count} rounds share a budget of {readable(table.rounds.budget)}."


def _amount_words(amount: Amount, *, estimated: bool) -> str:
    parts = ["the average cost of a draw"] if amount.average is not None else []
    parts += [f"{readable(one.weight)} times an average total variation" for one in amount.variations]
    parts += [f"{readable(worst.weight)} times the average cost in the worst row" for worst in amount.worst]
    parts += [f"{readable(price.weight)} times {price.name}" for price in amount.prices]
    parts += ["the squared errors of estimates that conditions make unbiased"] if estimated else []
    parts += [readable(amount.constant)] if amount.constant or not parts else []
    return " plus ".join(parts)


Costs: TypeAlias = NDArray[np.object_]
"""Exact costs (rows, columns)."""
COMPARES = "total_variation"


def numbers(values: Costs) -> Numbers:
    """An array of fractions."""
    return exact_grid(values.ravel().tolist(), values.shape)


def fractions(found: Numbers) -> Costs:
    """The array of fractions that `numbers` was given."""
    top, bottom = found.unit.numerator, found.unit.denominator
    values: Costs = np.empty(len(found.entries), dtype=object)
    values[:] = [Fraction(entry * top, bottom) for entry in found.entries]
    return values.reshape(found.shape)


def laws_of(variation: Variation) -> Costs:
    """The laws that a total variation compares with, (rows, values)."""
    return np.array([fractions(law) for law in variation.laws], dtype=object)


# --- sums of averages and worst cases -------------------------------------------------------------


def amount(expr: syntax.Expr, scene: Pointwise, worlds: Worlds, *, worst_cases: int | None = None) -> Amount:
    """A loss, or the left side of an accuracy line with at most so many worst cases.

    Raises: Failure PS0502, PS0501, PS0401 (an average without a data model).
    """
    average: Costs | None = None
    variations: list[Variation] = []
    worst: list[Worst] = []
    prices: dict[str, Fraction] = {}
    constant = Fraction(0)
    for term in terms(expr, worlds.model):
        if isinstance(term, Fraction):
            constant += term
        elif isinstance(term, Chosen):
            prices[term.name] = prices.get(term.name, Fraction(0)) + term.weight
        elif term.operator == "worst":
            if len(worst) == worst_cases:
                raise Failure("PS0501", term.span, "solve takes one worst case in an accuracy line of tables")
            cost, apart = _body(term.body, scene, worlds)
            worst.append(Worst(term.weight, numbers(cost), apart))
        else:
            cost, apart = _body(term.body, scene, worlds)
            if worlds.prior is None:
                text = "this average is over data without a model"
                raise Failure("PS0401", term.span, text, help="write worst[ ... ], or add a model such as x ~ uniform")
            average = _added(average, cost, term.weight)
            for one in apart:
                if one.weight * term.weight < 0:
                    raise _rewarded(term.span)
                variations.append(replace(one, weight=one.weight * term.weight))
    found = None if average is None else numbers(average)
    return Amount(
        found, tuple(variations), tuple(worst), tuple(Price(*item) for item in sorted(prices.items())), constant
    )


def _rewarded(span: Span) -> Failure:
    return Failure("PS0502", span, "solve cannot reward a large total variation: its weight is negative")


def costs(body: syntax.Expr, scene: Pointwise, worlds: Worlds) -> Costs:
    """What each draw costs at each row (rows, columns), averaged over winners that are drawn from the data.

    Raises: Failure PS0402 if it is not one number, PS0502 if it compares laws, and what evaluation raises.
    """
    return _costs(body, Chances(scene, len(worlds.rows)), worlds)


def _costs(body: syntax.Expr, chances: Chances, worlds: Worlds) -> Costs:
    grid = chances.mean(_point_laws(body, chances, worlds))
    if grid.shape:
        raise Failure("PS0402", body.span, "one number is expected here")
    return spread(grid, worlds)


def spread(grid: Grid, worlds: Worlds) -> Costs:
    """At all pairs."""
    found: Costs = grid.spread(len(worlds.rows), len(worlds.columns))
    return found


def _body(expr: syntax.Expr, scene: Pointwise, worlds: Worlds) -> tuple[Costs, tuple[Variation, ...]]:
    """The inside of an average or a worst case: what draws cost, and total variations.

    Raises: as `costs`.
    """
    chances = Chances(scene, len(worlds.rows))
    cost: Costs | None = None
    found: list[Variation] = []
    compared = any(_compared(node, chances, worlds) is not None for node in walk(expr))
    for weight, part in multiples(expr, worlds.model) if compared else ((Fraction(1), expr),):
        variation = _variation(part, chances, worlds, weight)
        if variation is not None:
            found.append(variation)
        else:
            cost = _added(cost, _costs(part, chances, worlds), weight)
    if cost is None:
        cost = np.full((len(worlds.rows), len(worlds.columns)), Fraction(0), dtype=object)
    return cost, tuple(found)


def _added(first: Costs | None, second: Costs, weight: Fraction) -> Costs:
    """The first, if any, and a weight times the second: few sums have other weights than one."""
    found: Costs = second if weight == 1 else second * weight
    return found if first is None else first + found


# --- total variations -----------------------------------------------------------------------------


def _point_laws(expr: Any, chances: Chances, worlds: Worlds) -> Any:
    """With `total_variation(O, t)` as `mismatch(O, t)` where t is certain given the input: the two are equal.

    The law of t is then one point, and the distance of a law from a point is its probability of missing it.
    Raises: Failure PS0502 where t is drawn: that is no average over draws.
    """
    model = worlds.model
    match expr:
        case syntax.Call(function=function, arguments=(a, b)) if function == COMPARES:
            drawn = [bool(set(names_used(side)) & set(worlds.releases)) for side in (a, b)]
            if _compared(expr, chances, worlds) is not None or any(_spread_out(side, chances) for side in (a, b)):
                text = "solve takes the total variation from a winner that is drawn in sums with public weights only"
                hint = "as in worst[ total_variation(O, winner) ]"
                raise Failure("PS0502", expr.span, text, help=hint)
            if sorted(drawn) == [False, True]:
                return replace(expr, function="mismatch")
        case syntax.Binary(op="+" | "-"):
            left, right = (_point_laws(side, chances, worlds) for side in (expr.left, expr.right))
            return replace(expr, left=left, right=right)
        case syntax.Binary(op="*") if public(expr.left, model):
            return replace(expr, right=_point_laws(expr.right, chances, worlds))
        case syntax.Binary(op="*" | "/") if public(expr.right, model):
            return replace(expr, left=_point_laws(expr.left, chances, worlds))
        case syntax.Negate():
            return replace(expr, operand=_point_laws(expr.operand, chances, worlds))
    return expr


def _spread_out(expr: syntax.Node, chances: Chances) -> bool:
    """Whether something is computed from a winner that is drawn, or is one whose law is no point at some row."""
    law = chances.law(expr)
    return chances.random(expr) if law is None else any(max(one.values()) < 1 for one in law)


def _compared(node: syntax.Node, chances: Chances, worlds: Worlds) -> tuple[syntax.Expr, RowLaws] | None:
    """The output and the winner's laws of `total_variation(O, winner)`; None for anything else, or certain winners."""
    match node:
        case syntax.Call(function=function, arguments=(a, b)) if function == COMPARES:
            for mine, other in ((a, b), (b, a)):
                law = chances.law(other)
                if law is not None and set(names_used(mine)) & set(worlds.releases):
                    return None if all(max(one.values()) == 1 for one in law) else (mine, law)  # type: ignore[return-value]
    return None


def _variation(node: syntax.Expr, chances: Chances, worlds: Worlds, weight: Fraction) -> Variation | None:
    """A term that is a total variation from a drawn winner; None for others.

    Raises: Failure PS0502 if it is rewarded for being large.
    """
    found = _compared(node, chances, worlds)
    if found is None:
        return None
    mine, laws = found
    if weight < 0:
        raise _rewarded(node.span)
    grid = chances.scene.of(mine)
    if grid.data.shape[0] > 1:
        raise Failure("PS0502", mine.span, "solve compares the law of an output with that of a winner")
    values = [key(grid.value(0, c)) for c in range(len(worlds.columns))]
    number = {value: o for o, value in enumerate(dict.fromkeys(values))}
    each = tuple(exact_grid([one.get(value, Fraction(0)) for value in number], (len(number),)) for one in laws)
    return Variation(weight, tuple(number[v] for v in values), each)
