"""The solver's form of a finite system: floats for the objective, exact numbers for all that promises rest on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privspec.families.tables.system import (
    FiniteSystem,
    LinearLine,
    Requested,
    Scalar,
    slacks,
    variation_lines,
)
from privspec.model.measures import LDP, Chosen, EpsilonDelta, Measure, MetricDP, PerAtomLDP, PureDP
from privspec.model.reports import Failure
from privspec.model.values import as_float
from privspec.problem.table_losses import Costs, fractions
from privspec.solvers.table_programs import (
    AtomRatio,
    CompleteRatio,
    Extra,
    LinearRows,
    PairRatio,
    Privacy,
    TableProgram,
)


@dataclass(frozen=True, eq=False, slots=True)
class Lowered:
    """A program with what its parts came from.

    `blocks[k]` the number of the requirement of the k-th privacy block; `equalities` and `inequalities` the lines of
    the rows; `cost` the exact loss that the program rounds.
    """

    program: TableProgram
    cost: Costs
    blocks: tuple[int, ...]
    equalities: tuple[LinearLine, ...]
    inequalities: tuple[LinearLine, ...]


def to_program(system: FiniteSystem) -> Lowered:
    """The linear program of a finite system.

    Raises: Failure PS0501 for a measure that tables do not know.
    """
    rows, columns = system.shape
    cost = _cost(system)
    lines = list(system.lines)
    extra = list(system.scalars)
    for item in () if system.only_worst else _loss_lines(system):
        lines += [item] if isinstance(item, LinearLine) else []
        extra += [item] if isinstance(item, Scalar) else []
    names = {s.name: rows * columns + k for k, s in enumerate(extra)}
    equalities = tuple(line for line in lines if line.equality)
    inequalities = tuple(line for line in lines if not line.equality)
    blocks = privacy_blocks(system)
    program = TableProgram(
        as_float(cost),
        tuple(block for _, block in blocks),
        system.only_worst,
        linear_rows(equalities, columns, names),
        linear_rows(inequalities, columns, names),
        Extra(
            tuple(s.low for s in extra),
            tuple(s.high for s in extra),
            tuple(s.cost for s in extra),
            tuple(s.name for s in extra),
        ),
    )
    return Lowered(program, cost, tuple(index for index, _ in blocks), equalities, inequalities)


def _cost(system: FiniteSystem) -> Costs:
    if system.only_worst:
        weight, worst = system.worst[0]
        scaled: Costs = worst * weight
        return scaled
    if system.expected is not None:
        return system.expected
    none = np.empty(system.shape, dtype=object)
    none[:] = Fraction(0)
    return none


def _loss_lines(system: FiniteSystem) -> Iterator[LinearLine | Scalar]:
    """Total variations in the loss, and worst cases as scalars that no row may exceed."""
    model = system.model
    span = model.loss.span if model.loss is not None else model.spec.span
    for j, variation in enumerate(system.loss.variations):
        yield from variation_lines(("loss", "mean", j), variation, span, system.prior)
    for k, worst in enumerate(system.loss.worst):
        costs, laws = system.worst[k][1], [fractions(one.law) for one in worst.variations]
        for j, variation in enumerate(worst.variations):
            yield from variation_lines(("loss", k, j), variation, span, None)
        # above the largest cost, so that rows which always cost it keep their room
        most = costs.max() + sum((one.weight for one in worst.variations), Fraction(0)) + 1
        yield Scalar(f"worst:{k}", costs.min(), most, worst.weight)
        for r, row in enumerate(costs):
            scalars = {f"worst:{k}": Fraction(-1)}
            for j, (variation, law) in enumerate(zip(worst.variations, laws, strict=True)):
                names = slacks(("loss", k, j), law, r).values()
                scalars |= dict.fromkeys(names, variation.weight)
            table = {(r, c): value for c, value in enumerate(row) if value}
            yield LinearLine(("worst", k, r), span, table, scalars, Fraction(0), False)


def linear_rows(lines: tuple[LinearLine, ...], columns: int, names: Mapping[str, int]) -> LinearRows:
    """Lines in the solver's form; `names` the columns of scalars."""
    at, where, values = [], [], []
    for number, line in enumerate(lines):
        for (r, c), value in line.table.items():
            at.append(number)
            where.append(r * columns + c)
            values.append(value)
        for name, value in line.scalars.items():
            at.append(number)
            where.append(names[name])
            values.append(value)
    return LinearRows(
        np.array(at, dtype=np.intp), np.array(where, dtype=np.intp), tuple(values), tuple(line.bound for line in lines)
    )


# --- privacy --------------------------------------------------------------------------------------


def privacy_blocks(system: FiniteSystem) -> tuple[tuple[int, Privacy], ...]:
    """The block of each requirement that compares rows, with the requirement's number.

    Raises: Failure PS0501 for a measure that tables do not know.
    """
    return tuple((r.index, block) for r in system.requested for block in (_block(r),) if block is not None)


def _block(requested: Requested) -> Privacy | None:
    """The block of a requirement; None where it compares no rows."""
    if not len(requested.neighbours.pairs):
        return None
    measure = requested.requirement.measure
    make = _BLOCKS.get(type(measure))
    if make is None:
        if isinstance(measure, Chosen):
            raise Failure(
                "PS0501",
                requested.requirement.span,
                f"solve cannot choose the amount of {measure.text} for tables yet",
                help="give it a value under `parameters:`; privspec sweep SPEC --over compares many",
            )
        raise Failure(
            "PS0501",
            requested.requirement.span,
            f"solve cannot compute {measure.name} requirements for tables yet",
            help="write epsilon-DP, (epsilon, delta)-DP, LDP, per-atom-LDP or metric-DP, with one figure for everybody",
        )
    return make(requested)


def _ratio(requested: Requested) -> Privacy:
    amounts = requested.requirement.measure.amounts
    epsilon, delta = amounts["epsilon"], amounts.get("delta", Fraction(0))
    if requested.neighbours.complete and delta == 0:
        return CompleteRatio(epsilon, requested.view)
    return PairRatio(requested.neighbours.pairs, (epsilon,), delta, requested.view)


def _atoms(requested: Requested) -> Privacy:
    """The condition of Ramon & Basu 3.3: each single output by itself."""
    measure = requested.requirement.measure
    assert isinstance(measure, PerAtomLDP)
    return AtomRatio(requested.neighbours.pairs, (measure.epsilon,), measure.slack(requested.inputs), requested.view)


def _metric(requested: Requested) -> Privacy:
    epsilon = requested.requirement.measure.amounts["epsilon"]
    distances = requested.neighbours.distances or ()
    logs = tuple(epsilon * distance for distance in distances)
    return PairRatio(requested.neighbours.pairs, logs, Fraction(0), requested.view)


_BLOCKS: Mapping[type[Measure], Callable[[Requested], Privacy]] = {
    PureDP: _ratio,
    EpsilonDelta: _ratio,
    LDP: _ratio,
    PerAtomLDP: _atoms,
    MetricDP: _metric,
}
