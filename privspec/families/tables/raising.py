"""From an exact table back to the spec: the plan."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from privspec.core import OPTIMAL_GAP
from privspec.core.rounding import log_up
from privspec.families.document import decimal_up, guarantee_head, plan_document, versions
from privspec.families.tables.beside import beside
from privspec.families.tables.prices import binding_prices
from privspec.families.tables.system import Requested
from privspec.kernel.core.reading import Item, read
from privspec.kernel.core.tables import Table
from privspec.kernel.quality.tables_forms import Fairness
from privspec.language.spelling import spell
from privspec.model.values import show
from privspec.problem.form import document
from privspec.solvers.table_programs import CompleteRatio, ExactTable, PairRatio, merged, true_delta

if TYPE_CHECKING:
    from privspec.families.tables.decision import TableDecision


def raise_table(decision: TableDecision) -> dict[str, Any]:
    """The plan of a table."""
    model, system = decision.model, decision.system
    value, bound = decision.loss, decision.lower_bound
    # of the stated doubles, as the kernel derives it again
    gap = float((Fraction(value) - Fraction(bound)) / (Fraction(abs(value)) or 1))
    others, named = beside(decision)
    notes = list(decision.solver()["notes"])
    document = {
        "status": "optimal" if gap <= OPTIMAL_GAP else "feasible",
        "loss": {
            "value": value,
            "lower_bound": bound,
            "relative_gap": gap,
            "expression": spell(model.loss) if model.loss is not None else "",
            "units": "units of the loss expression",
            "among": _among(decision),
            "kind": "worst" if system.loss.only_worst else "expected",
        },
        "alternatives": others,
        "mechanism": _mechanism(decision),
        "guarantees": [_guarantee(decision, r) for r in system.requested],
        "accuracy": [],
        "fairness": _fairness(decision),
        "claims": decision.certificate(),
        "remarks": {
            "recognised": named,
            **_of_votes(decision),
            "binding": binding_prices(decision, notes),
            "solver": {
                **decision.solver(),
                "notes": notes,
                "tolerance": decision.settings.tolerance,
                "versions": versions(),
            },
        },
    }
    return plan_document(model, document)


def _of_votes(decision: TableDecision) -> dict[str, Any]:
    """What a table of votes keeps and does, where it is one."""
    if not decision.model.parties:
        return {}
    from privspec.families.tables.votes import kept_properties, table_figures  # a vote may be many modules away

    return {"properties": kept_properties(decision), **table_figures(decision)}


def _among(decision: TableDecision) -> str:
    worlds = decision.system.worlds
    drawn, rows = ", ".join(worlds.releases), ", ".join(worlds.of)
    counted = " (its order is not looked at)" if worlds.counted else ""
    return f"all tables Pr({drawn} | {rows}){counted}"


# --- the mechanism --------------------------------------------------------------------------------


def _mechanism(decision: TableDecision) -> dict[str, Any]:
    worlds, exact = decision.system.worlds, decision.exact
    out: dict[str, Any] = {
        "family": "table",
        "of": list(worlds.of),
        "counted": list(worlds.counted),
        "releases": list(worlds.releases),
        "inputs": list(worlds.labels),
        "outputs": list(worlds.column_labels),
        "prior": None if worlds.prior is None else [str(p) for p in worlds.prior],
        "probabilities": [[str(Fraction(n, exact.denominator)) for n in row] for row in exact.numerators],
    }
    rounds = decision.system.table.rounds
    if rounds is not None:
        each = str(rounds.budget / rounds.count)
        out["rounds"] = {"count": rounds.count, "budget": show(rounds.budget), "each": each, "fit": rounds.count}
    return out | _chosen(decision)


def _chosen(decision: TableDecision) -> dict[str, Any]:
    """What the solver picked besides the table."""
    system = decision.system
    values = decision.scalars
    numbers = {c.name for c in decision.model.choices}
    laws = {}
    for law in system.table.laws:
        masses = [values[f"{law.name}:{label}"] for label in law.labels]
        total = sum(masses, Fraction(0))
        even = Fraction(1, len(law.labels))
        shares = (str(m / total if total else even) for m in masses)
        laws[law.name] = dict(zip(law.labels, shares, strict=True))
    return {"scalars": {name: str(v) for name, v in values.items() if name in numbers}, "laws": laws}


# --- guarantees -----------------------------------------------------------------------------------


def _guarantee(decision: TableDecision, requested: Requested) -> dict[str, Any]:
    notes = ["tables"]
    if requested.requirement.neighbours.group > 1:
        notes.append("group-privacy")
    if decision.system.table.rounds is not None:
        notes.append("repeated-votes")
    return guarantee_head(requested.requirement, requested.index) | {
        "achieved": achieved(decision.exact, requested),
        "because": notes,
    }


def achieved(exact: ExactTable, requested: Requested) -> dict[str, str]:
    """What the table spends: the least epsilon (per unit of distance), or the requirement's with its true delta."""
    amounts = requested.requirement.measure.amounts
    pairs = requested.neighbours.pairs
    if not len(pairs):
        return {"epsilon": "0"}
    if amounts.get("delta"):
        block = PairRatio(pairs, (amounts["epsilon"],), amounts["delta"], requested.view)
        return {"epsilon": show(amounts["epsilon"]), "delta": decimal_up(true_delta(exact, block))}
    table = merged(CompleteRatio(amounts["epsilon"], requested.view), np.array(exact.numerators, dtype=object))
    if requested.neighbours.distances is None:
        return {"epsilon": _at_most(log_up(_largest_ratio(table, requested)), amounts["epsilon"])}
    each = zip(pairs, requested.neighbours.distances, strict=True)
    rates = [log_up(_ratio(table[a], table[b])) / distance for (a, b), distance in each if distance]
    return {"epsilon": _at_most(max(rates), amounts["epsilon"])}


def _at_most(epsilon: Fraction, allowed: Fraction) -> str:
    """A figure rounded up, but not above what the exact ratios were held to."""
    text = decimal_up(epsilon)
    return text if Fraction(text) < allowed else show(allowed)


def _largest_ratio(table: np.ndarray[Any, Any], requested: Requested) -> Fraction:
    if requested.neighbours.complete:
        return max(
            Fraction(int(high), int(low))
            for high, low in zip(table.max(axis=0), table.min(axis=0), strict=True)
            if high
        )
    return max(_ratio(table[a], table[b]) for a, b in requested.neighbours.pairs)


def _ratio(a: Any, b: Any) -> Fraction:
    """The largest ratio of the entries of two rows."""
    best = Fraction(1)
    for top, bottom in zip(a, b, strict=True):
        if top * best.denominator > best.numerator * bottom:
            best = Fraction(int(top), int(bottom))
    return best


def _fairness(decision: TableDecision) -> list[dict[str, Any]]:
    """What each fairness line asks for and what the table reaches, as the kernel evaluates it: the largest distance."""
    table, exact, found = decision.system.table, decision.exact, []
    prior = [] if table.prior is None else table.prior.values()
    places = [list(one) for one in table.places]
    numerators = [list(row) for row in exact.numerators]
    executed = Table(list(table.outputs), list(table.rows), list(table.columns), places, numerators, exact.denominator)
    for line in table.fairness:
        judged = read(Fairness, Item(document(line), "fairness"))
        assert isinstance(judged, Fairness)
        reached, level = max(judged.gaps(executed, prior), key=lambda gap: gap[0], default=(Fraction(0), 0))
        entry = {"line": line.line, "text": line.text, "tolerance": show([*line.tolerances, Fraction(0)][level])}
        found.append(entry | {"achieved": decimal_up(reached)})
    return found
