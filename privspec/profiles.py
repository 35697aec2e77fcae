"""For the keeper of the data alone: how they fit a spec or plan, and a report on a real profile of votes beside a plan.

Nothing of it is for publication; nothing is debited, nothing written, nothing spent.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privspec.core.diagnostics import UsageError
from privspec.execute.family import Circumstances, mechanism_of
from privspec.execute.keeper import Keeper, refuse
from privspec.registry import family_of

if TYPE_CHECKING:
    from privspec.model.graph import Model
    from privspec.plan import Plan


def profile_text(plan: Plan, data: Mapping[str, Any]) -> str:
    """The report as Markdown; every figure in it depends on private data.

    Args: data, the ballots by the name of the plan's input: a path, or an object in memory.
    Raises: UsageError PS0721 if the plan draws no winner by lot; DataError for ballots that cannot be read;
        VerificationError PS0910.
    """
    from privspec.execute.family import Circumstances
    from privspec.explain.paper import profile_report
    from privspec.explain.reports import to_markdown
    from privspec.explain.voting_rules import RULES
    from privspec.families.selection.execution import LotteryMechanism

    plan = plan.verified()
    if plan.stated.mechanism.family not in RULES:
        raise UsageError.of(
            "PS0721",
            "this plan draws no winner by lot: there is nothing to say of a profile of votes",
            help="leave --profile out",
        )
    try:
        mechanism = LotteryMechanism.of_plan(plan.document)
        ballots = mechanism.ballots(data, Circumstances(plan.model()))
        document = profile_report(plan.stated, ballots.each())
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError.of("PS0711", f"this plan cannot be read: {error}") from error
    return to_markdown(document)


# --- how data fit ---------------------------------------------------------------------------------


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
    names = [model.through.get(block.name, block.name) for block in model.blocks]
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
