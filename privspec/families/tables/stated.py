"""The program of a table in words, with its parameters, and what becomes of a table that was found for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

import numpy as np

from privspec.core.records import replace
from privspec.families.decision import Decision
from privspec.families.program import Form, Part, Stated, Values
from privspec.families.tables.decision import LinearTable, SolvedTable
from privspec.families.tables.system import COST, RANGES, ROWS, SCALARS, TABLE, Labels, LinearLine, amounts_of
from privspec.model.graph import Model
from privspec.problem.elaborate import elaborate
from privspec.solvers.programs import SolverError, Watch
from privspec.solvers.table_divergences import CurveRatio
from privspec.solvers.table_programs import (
    CompleteRatio,
    Privacy,
    TableProgram,
    seen,
)
from privspec.solvers.table_rows import RowsResult
from privspec.solvers.tables import exact_solution

SHARES = (*(0.5**k for k in range(24)), 0.0)
"""Shares of what is given that are tried in a mixture with the best table."""
LINES: Mapping[str, str] = {
    "condition": "what is expected at each input is what the line says: linear in f and w",
    "accuracy": "the error, which is linear in f and w, is at most what the line allows",
    "lie": "f[lie, S] - f[truth, S] <= gain, for sets S of best alternatives",
    "fairness": "what one group gets more often than another, summed over what is seen, is at most the tolerance",
    "law": "the chances that are chosen sum to one",
    "apart": "f[x, o] - p[x, o] <= w, the excess over the law that the loss compares f with",
    "worst": "sum over y of c[x, y] f[x, y] <= w, for each x",
}
"""What rows say, by the word that they come from."""


def table_form(found: SolvedTable, decide: Callable[[SolvedTable], Decision]) -> Form | str:
    """The program of a table, with what makes decisions of tables; or why there is none."""
    if not isinstance(found, LinearTable):
        return "the scale of the estimates and the table are sought together, which is not convex"
    system, lowered, model = found.system, found.lowered, found.model
    program, table = lowered.program, system.table
    labels = _labels(model, found)
    inputs, outputs = program.shape
    drawn, given = ", ".join(table.outputs), ", ".join(table.of)
    unknown = [f"{TABLE} ({inputs:,} x {outputs:,}) >= 0: {TABLE}[x, y] = Pr({drawn} = y | {given} = x)"]
    if len(program.extra):
        names = [name for name in program.extra.names if ":" not in name]
        beside = f", among them {', '.join(names)}" if names else ""
        unknown.append(f"{SCALARS} ({len(program.extra):,}): further numbers, each in its range{beside}")
    each = "c[x, y] f[x, y]"
    minimised = "t" if program.worst else f"sum over x and y of {each}"
    if any(program.extra.cost):
        minimised += f" + g' {SCALARS}"
    parts = [Part(ROWS, "sum over y of f[x, y] = 1, for each x", inputs)]
    for label, block in zip(labels.privacy, program.privacy, strict=True):
        parts.append(Part(label, *_formula(block, inputs, outputs)))
    rows = zip(lowered.lines, (*labels.equalities, *labels.inequalities), strict=True)
    said: dict[str, tuple[str, int]] = {}
    for line, label in rows:
        said[label] = LINES[str(line.key[0])], said.get(label, ("", 0))[1] + 1
    parts += [Part(label, *both) for label, both in said.items()]
    if len(program.extra):
        parts.append(Part(RANGES, "lowest[k] <= w[k] <= highest[k], for each k", len(program.extra)))
    if program.worst:
        parts.append(Part("loss", "sum over y of c[x, y] f[x, y] <= t, for each x", inputs))
        unknown.append("t: the loss")
    where = ["c[x, y]: what y costs at x" + ("" if program.worst else ", times how likely x is")]

    def state() -> Stated:
        from privspec.families.tables.reference import Levels, TableStated, optimum

        # of a measure at the levels that its optimum takes
        made = TableStated(program, optimum(program, Watch())[1] if _curved(program) else Levels(), labels)
        beside = {SCALARS: made.extra, "t": made.largest}
        variables = {TABLE: made.table} | {name: one for name, one in beside.items() if one is not None}
        return Stated(made.problem, variables, made.parameters, made.constraints)

    bounds = np.array([float(bound) for bound in program.inequalities.bounds])
    most = {
        f"{label}: bound": bounds[[one == label for one in labels.inequalities]]
        for label in dict.fromkeys(labels.inequalities)
    }

    def amounts(other: Model) -> Values:
        asked = system.asked(elaborate(other))
        known = {
            f"{label}: {name}": value
            for label, (_, block) in zip(labels.privacy, asked.privacy, strict=True)
            for name, value in amounts_of(block).items()
        }
        return known | {COST: program.cost} | most

    def same(other: Model) -> bool:
        return not _curved(program) and elaborate(other).blocks == system.problem.blocks

    def settle(values: Values) -> Decision:
        own = [values[TABLE], values.get(SCALARS, np.zeros(0))]
        best = [found.solution.table, np.array([float(one) for one in found.exact.extra])]
        for share in SHARES:
            # what is far from the lines is drawn towards the best table until it can be repaired
            given, scalars = (share * mine + (1 - share) * theirs for mine, theirs in zip(own, best, strict=True))
            rows = RowsResult(np.maximum(given, 0.0), scalars, 0.0, found.solution.dual, found.solution.rows)
            solution = exact_solution(program, rows, "values given, repaired", Watch(), lowered.cost)
            with suppress(SolverError):
                solution.exact  # noqa: B018 - it is found here
                break
        return decide(replace(found, solution=solution))

    return Form(model, tuple(unknown), minimised, tuple(parts), tuple(where), amounts, same, state, settle)


def _curved(program: TableProgram) -> bool:
    return any(isinstance(block, CurveRatio) for block in program.privacy)


def _labels(model: Model, found: LinearTable) -> Labels:
    def named(line: LinearLine) -> str:
        if not line.line:
            return {"law": "laws that are chosen", "apart": "loss: excess", "worst": "loss: worst case"}[
                str(line.key[0])
            ]
        return f"line {line.line}: {_text(model, line.line)}"

    lines = [model.requirements[index] for index in found.lowered.blocks]
    rows, equal = found.lowered.lines, len(found.lowered.program.equalities.bounds)
    every = [named(line) for line in rows]
    return Labels(tuple(f"line {line.line}: {line.text}" for line in lines), tuple(every[:equal]), tuple(every[equal:]))


def _text(model: Model, line: int) -> str:
    return model.source.line(line).split("#")[0].strip()


def _formula(block: Privacy, inputs: int, outputs: int) -> tuple[str, int]:
    """What a privacy block says, and of how many rows."""
    shown = seen(block, outputs)
    if isinstance(block, CompleteRatio):
        return "m[y] <= f[x, y] <= e^epsilon m[y], for each x and y, m the least law of all", 2 * inputs * shown
    if isinstance(block, CurveRatio):
        return "the divergence of f[a, .] from f[b, .] is at most what the measure allows, level by level", len(
            block.pairs
        )
    ratio = "e^epsilon" if len(set(block.log_ratios)) == 1 else "e^(epsilon distance(a, b))"
    if block.delta:
        return f"sum over y of max(f[a, y] - {ratio} f[b, y], 0) <= delta, for neighbours a and b", len(block.pairs)
    rest = " + delta" if block.slack else ""
    return f"f[a, y] <= {ratio} f[b, y]{rest}, for neighbours a and b and each y", len(block.pairs) * shown
