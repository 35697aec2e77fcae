"""How data fit a spec or a plan, for the keeper of the data: before any debit, nothing written, nothing spent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from privspec.execute.family import Circumstances, mechanism_of
from privspec.execute.keeper import Keeper
from privspec.execute.problems import refuse

if TYPE_CHECKING:
    from privspec.model.graph import Model
    from privspec.plan import Plan

Reader: TypeAlias = "Callable[[Model, Mapping[str, Any], Circumstances], None]"


def fit_of_plan(plan: Plan, data: Mapping[str, Any], *, header: bool = True) -> Keeper:
    """How data fit, read as a run of the plan reads them.

    Raises: DataError where their structure does not fit, as a run does; VerificationError PS0910.
    """
    plan = plan.verified()
    circumstances = Circumstances(plan.model(), header=header)
    mechanism_of(plan.document).read(data, circumstances)
    return circumstances.keeper


def fit_of_spec(model: Model, data: Mapping[str, Any], *, header: bool = True) -> Keeper:
    """How data fit, read as a run of the spec's plan will read them; nothing is solved.

    Raises: DataError where their structure does not fit, as a run does.
    """
    from privspec.compile.families import family_of

    circumstances = Circumstances(model, header=header)
    names = [block.name for block in model.blocks]
    for name in data:
        if name not in names:
            refuse("PS0801", f"the spec has no input {name}", help=f"its inputs are {', '.join(names)}")
    READERS[type(family_of(model)).__name__](model, data, circumstances)
    return circumstances.keeper


def report_text(keeper: Keeper, paths: Mapping[str, Path]) -> str:
    """The report as people read it: a line for each column, and what does not fit below it."""
    files = ", ".join(dict.fromkeys(path.name for path in paths.values()))
    lines = [f"{files}, for their keeper only", *(f"  {line}" for line in keeper.report())]
    return "\n".join([*lines, "nothing was read for release, and nothing was spent"]) + "\n"


def _linear(model: Model, data: Mapping[str, Any], circumstances: Circumstances) -> None:
    from privspec.compile.raising import INPUT_GRID_BITS
    from privspec.execute.data import read_blocks
    from privspec.execute.executed import input_of
    from privspec.execute.layout import declared_shapes
    from privspec.kernel.core.linear import read_held
    from privspec.kernel.core.problem import Data
    from privspec.kernel.core.reading import Item
    from privspec.problem.elaborate import data_of
    from privspec.problem.form import document
    from privspec.problem.linear import held_of

    found = []
    for block in model.blocks:
        data_ = data_of(model, model.nodes[block.name])
        held = read_held(Item(document(held_of(block)), block.name), Data(data_.name, data_.rule, data_.party))
        found.append(input_of(held, Fraction(1, 1 if held.cells else 2**INPUT_GRID_BITS)))
    inputs = tuple(found)
    read_blocks(inputs, data, declared=declared_shapes(model), header=circumstances.header, keeper=circumstances.keeper)


def _finite(model: Model, data: Mapping[str, Any], circumstances: Circumstances) -> None:
    from privspec.execute.finite.mechanism import is_local, read_values
    from privspec.execute.finite.rows import ModelRows, encode

    rows = ModelRows(model, tuple(block.name for block in model.blocks), ())
    if is_local(model, rows, [requirement.measure.name for requirement in model.requirements]):
        encode(rows, data, circumstances)
    else:
        read_values(rows, data, circumstances)


def _statistics(model: Model, data: Mapping[str, Any], circumstances: Circumstances) -> None:
    from privspec.execute.statistics.mechanism import bounded
    from privspec.problem.statistics import records_of, routed_call

    call = routed_call(model)
    assert call is not None
    source = model.nodes[call.source]
    for _ in bounded(source.name, source.index, records_of(source), _given(source.name, data), circumstances):
        pass


def _lotteries(model: Model, data: Mapping[str, Any], circumstances: Circumstances) -> None:
    from privspec.execute.ballots.form import Form
    from privspec.execute.ballots.reading import read_ballots, refuse_number
    from privspec.problem.elaborate import data_of

    (block,) = model.blocks
    form = Form.of_block(block, drops=data_of(model, model.nodes[block.name]).rule == "drop")
    assert form is not None
    source = _given(form.name, data)
    found = read_ballots(form, source, header=circumstances.header, keeper=circumstances.keeper)
    secret = any(requirement.neighbours.adding for requirement in model.requirements)
    if not secret and found.number != block.type.size:
        refuse_number(form, block.type.size, found.number)


def _given(name: str, data: Mapping[str, Any]) -> Any:
    if name not in data:
        refuse("PS0801", f"no data for the input {name}", help=f"give --input {name}=FILE")
    return data[name]


READERS: Mapping[str, Reader] = {
    "Lotteries": _lotteries,
    "Finite": _finite,
    "Statistics": _statistics,
    "Linear": _linear,
}
"""How the data of a spec are read, by the family that compiles it."""
