"""Multipliers that prove a lower bound, in the places of the problem: what the kernel adds up again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from privspec.compile.finite.system import Electorate, FiniteSystem, Key, LinearLine
from privspec.problem.table_forms import Amount
from privspec.solvers.programs import Array
from privspec.solvers.table_programs import CompleteDual, CompleteRatio, Privacy, TableDual
from privspec.solvers.table_search_programs import DebiasedSolution, SearchSplit

Values = Mapping[Key, tuple[float, bool]]
"""Multipliers of lines by where these come from, and whether the line is an equality."""


def multipliers(
    system: FiniteSystem, dual: TableDual, blocks: Sequence[int], privacy: Sequence[Privacy], lines: Sequence[Key]
) -> dict[str, Any]:
    """The witness of one dual point; `lines` are the keys of its rows, equalities first."""
    values = _values(dual, lines)
    return {"loss": _tangent(system, ("loss",), system.loss, values, 1.0, dual.loss_weights)} | _terms(
        system, dual, blocks, privacy, values
    )


def boxes(
    system: FiniteSystem,
    found: DebiasedSolution,
    blocks: Sequence[int],
    privacy: Sequence[Privacy],
    lines: Sequence[Key],
) -> dict[str, Any]:
    """The witness of a search: cuts, and the tree of boxes that says where each is used."""
    cuts = []
    for cut in found.cuts:
        values = _values(cut.dual, lines)
        means = [[key[1], -value] for key, (value, _) in values.items() if key[0] == "mean" and value]
        head = {"empty": cut.empty, "means": means}
        cuts.append(head | _terms(system, cut.dual, blocks, privacy, values))
    tree = [
        {"coordinate": item.coordinate, "at": item.at} if isinstance(item, SearchSplit) else item for item in found.tree
    ]
    return {"cuts": cuts, "tree": tree}


def _values(dual: TableDual, lines: Sequence[Key]) -> Values:
    equal = dual.equalities.tolist()
    every = [(value, True) for value in equal] + [(value, False) for value in dual.inequalities.tolist()]
    return dict(zip(lines, every, strict=True))


def _of(values: Values, word: str) -> Iterable[tuple[tuple[Any, ...], float]]:
    """The places of some lines with what their differences are multiplied with: those of equalities are subtracted."""
    for key, (value, equality) in values.items():
        if key[0] == word and value:
            yield key[1:], -value if equality else value


def _terms(
    system: FiniteSystem, dual: TableDual, blocks: Sequence[int], privacy: Sequence[Privacy], values: Values
) -> dict[str, Any]:
    table = system.table
    lies = []
    for (k, row, ballot, lie, chosen), value in _of(values, "lie"):
        if value > 0:
            lies.append([k, row, ballot, lie, chosen, value])
        else:
            lies.append([k, Electorate(table.manipulation[k]).lied(row, ballot, lie), lie, ballot, chosen, -value])
    accuracy = []
    for k, line in enumerate(table.accuracy):
        rows = {at[1:]: value for at, value in _of(values, "accuracy") if at[0] == k}
        total = sum(rows.values())
        if total:
            weights = np.array([rows.get((r,), 0.0) for r in range(system.shape[0])])
            tangent = _tangent(system, ("accuracy", k), line.amount, values, total, weights)
            accuracy.append({"line": k, "multiplier": total, "tangent": tangent})
    return {
        "privacy": [
            {"requirement": index} | _block(part, block)
            for index, part, block in zip(blocks, dual.privacy, privacy, strict=True)
        ],
        "conditions": [[*at, value] for at, value in _of(values, "condition")],
        "accuracy": accuracy,
        "manipulation": lies,
        "fairness": [[*at, value] for at, value in _of(values, "fairness") if at[-1] != "total"],
    }


def _tangent(
    system: FiniteSystem, where: Key, amount: Amount, values: Values, factor: float, weights: Array | None
) -> dict[str, Any]:
    """An affine function below an amount: weights of rows, and shares of what is drawn too often."""
    rows = system.shape[0]
    worst: list[list[float]] = []
    for k in range(len(amount.worst)):
        found = weights if weights is not None else np.array([values[("worst", k, r)][0] for r in range(rows)])
        positive = np.maximum(np.asarray(found, dtype=float), 0.0)
        worst.append((positive if positive.any() else np.ones(rows)).tolist())
    shares = []
    for key, (value, _) in values.items():
        if key[0] != "apart" or key[1 : 1 + len(where)] != where or not value > 0:
            continue
        place: Any = key[1 + len(where) :]
        kind, j, row, o = place
        if kind == "mean":
            prior = system.prior
            whole = 0.0 if prior is None else float(prior[row]) * float(amount.variations[j].weight)
            number = 0
        else:
            part = worst[kind][row] / sum(worst[kind])
            whole = part * float(amount.worst[kind].weight * amount.worst[kind].variations[j].weight)
            number = kind + 1
        if whole:
            shares.append([number, j, row, o, min(1.0, value / (whole * factor))])
    return {"worst": worst, "shares": shares}


def _block(part: Any, block: Privacy) -> dict[str, Any]:
    if isinstance(part, CompleteDual):
        return {"form": "clique", "clique": 0, "below": _sparse(part.below), "above": _sparse(part.above)}
    assert not isinstance(block, CompleteRatio)
    entries = zip(block.pairs[part.pairs].tolist(), part.columns.tolist(), part.values.tolist(), strict=True)
    return {"form": "pairs", "entries": [[a, b, s, v] for (a, b), s, v in entries if v > 0]}


def _sparse(matrix: Array) -> list[list[Any]]:
    return [[int(r), int(s), float(matrix[r, s])] for r, s in np.argwhere(matrix > 0)]


def keys(lines: Iterable[LinearLine]) -> list[Key]:
    """Where lines come from."""
    return [line.key for line in lines]
