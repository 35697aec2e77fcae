"""A plan of the family "table" read into facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from privspec.explain.curves import EpsilonDeltaCurve
from privspec.explain.finite.facts import ChosenLaw, ChosenNumber, ErrorTerm, Recognised, TableFact, Truth
from privspec.explain.finite.rows import row_facts
from privspec.explain.finite.table import Table, common_bits, read_table
from privspec.explain.finite.values import Scene, numeric_law
from privspec.explain.losses import LossTerm
from privspec.explain.lotteries.comparison import comparison
from privspec.explain.lotteries.rounds import Rounds, rounds_fact
from privspec.explain.quantities import Rounding, count, parse_exact, rounded

if TYPE_CHECKING:
    from privspec.explain.context import Context


TRACE = Fraction(1, 10**6)
"""Masses below are traces of exact repairs: they are summed up."""


def table_fact(plan: Mapping[str, Any], context: Context) -> TableFact:
    """The mechanism of a plan of the family "table".

    Raises: KeyError, ValueError if it is not of that form.
    """
    mechanism = plan["mechanism"]
    table = read_table(mechanism)
    found = mechanism.get("recognised")
    known = None if not found else Recognised(str(found["name"]), str(found["text"]), str(found.get("note", "tables")))
    scalars, laws = mechanism.get("scalars") or {}, mechanism.get("laws") or {}
    return TableFact(
        family=str(mechanism["family"]),
        table=table,
        rows=count(len(table.rows)),
        columns=count(len(table.columns)),
        entries=count(table.shares.size),
        zeros=count(int(np.count_nonzero(table.shares == 0))),
        bits=count(common_bits(mechanism)),
        local=context.trust == "nobody",
        recognised=known,
        numbers=tuple(_number(name, value, context) for name, value in scalars.items()),
        laws=tuple(_law(name, masses, context) for name, masses in laws.items()),
        truths=tuple(_truths(table, context)),
        errors=tuple(_errors(plan, table, context)),
        listed=row_facts(table),
        metrics=context.distances,
        inputs=frozenset(context.input_domains),
        comparison=comparison(plan),
        rounds=_rounds(plan["mechanism"].get("rounds")),
    )


def _number(name: str, value: Any, context: Context) -> ChosenNumber:
    number = parse_exact(value)
    return ChosenNumber(name, rounded(number, 6), str(value), context.choices.get(name, ()))


def _law(name: str, masses: Mapping[str, Any], context: Context) -> ChosenLaw:
    shares = {str(label): parse_exact(mass) for label, mass in masses.items()}
    mean = None
    try:
        mean = rounded(sum((parse_exact(label) * mass for label, mass in shares.items()), Fraction(0)), 4)
    except ValueError:
        mean = None
    return ChosenLaw(
        name,
        tuple((label, rounded(mass, 4)) for label, mass in shares.items() if mass >= TRACE),
        rounded(rest, 2, Rounding.UP) if (rest := sum(mass for mass in shares.values() if mass < TRACE)) else None,
        count(len(shares)),
        mean,
        context.choices.get(name, ()),
    )


def _truths(table: Table, context: Context) -> Sequence[Truth]:
    """For each output and the value that the loss compares it with; without such a loss, where there is but one."""
    pairs = dict.fromkeys((t.left, t.right) for t in context.loss_terms)
    if not pairs and len(table.releases) == len(table.of) == 1:
        pairs = {(table.releases[0], table.of[0]): None}
    found = []
    for output, node in pairs:
        shares = table.truths(output, node)
        if shares is not None and len(shares):
            mean = table.mean(shares)
            found.append(
                Truth(
                    output,
                    node,
                    rounded(float(shares.min()), 3, Rounding.DOWN),
                    rounded(float(shares.max()), 3, Rounding.UP),
                    None if mean is None else rounded(mean),
                )
            )
    return found


def _errors(plan: Mapping[str, Any], table: Table, context: Context) -> Sequence[ErrorTerm]:
    """Each error of the loss with its average; none where one of them cannot be computed."""
    terms = context.loss_terms
    scene = _scene(plan["mechanism"], table, context)
    if len(terms) == 1 and terms[0].weight > 0 and (plan.get("loss") or {}).get("value") is not None:
        return (_term(terms[0], float(plan["loss"]["value"]) / float(terms[0].weight)),)
    found = [(term, scene.average(term)) for term in terms]
    known = [(term, average) for term, average in found if average is not None]
    return tuple(_term(term, average) for term, average in known) if len(known) == len(found) else ()


def _term(term: LossTerm, average: float) -> ErrorTerm:
    shape = term.shape
    return ErrorTerm(
        term.left, term.right, shape, term.worst, shape.figure(average), shape.brief(average), shape.words(average)
    )


def _scene(mechanism: Mapping[str, Any], table: Table, context: Context) -> Scene:
    """The values that errors are computed from."""
    scalars = {str(name): float(parse_exact(value)) for name, value in (mechanism.get("scalars") or {}).items()}
    laws = {
        str(name): numeric_law({str(label): float(parse_exact(mass)) for label, mass in masses.items()})
        for name, masses in (mechanism.get("laws") or {}).items()
    }
    public = {name: float(value) for name, value in context.formulas.parameters.items()}
    return Scene(table, {**public, **scalars}, laws, context.formulas)


def _rounds(item: Mapping[str, Any] | None) -> Rounds | None:
    if item is None:
        return None
    return rounds_fact(item, None, EpsilonDeltaCurve(float(parse_exact(item["each"]))), chosen=False)
