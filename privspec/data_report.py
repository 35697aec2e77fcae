"""How data fit a spec or a plan, for the keeper of the data: before any debit, nothing written, nothing spent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privspec.execute.family import Circumstances, mechanism_of
from privspec.execute.keeper import Keeper, refuse
from privspec.registry import family_of

if TYPE_CHECKING:
    from privspec.model.graph import Model
    from privspec.plan import Plan


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
    circumstances = Circumstances(model, header=header)
    names = [block.name for block in model.blocks]
    for name in data:
        if name not in names:
            refuse("PS0801", f"the spec has no input {name}", help=f"its inputs are {', '.join(names)}")
    family_of(model).fits(model, data, circumstances)
    return circumstances.keeper


def report_text(keeper: Keeper, paths: Mapping[str, Path]) -> str:
    """The report as people read it: a line for each column, and what does not fit below it."""
    files = ", ".join(dict.fromkeys(path.name for path in paths.values()))
    lines = [f"{files}, for their keeper only", *(f"  {line}" for line in keeper.report())]
    return "\n".join([*lines, "nothing was read for release, and nothing was spent"]) + "\n"
