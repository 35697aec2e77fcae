"""The report on a real profile of votes beside a plan: for the keeper of the data, never for publication."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from privspec.core.diagnostics import Diagnostic, UsageError

if TYPE_CHECKING:
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
        raise UsageError(
            Diagnostic(
                "PS0721",
                "this plan draws no winner by lot: there is nothing to say of a profile of votes",
                help="leave --profile out",
            )
        )
    try:
        mechanism = LotteryMechanism.of_plan(plan.document)
        ballots = mechanism.ballots(data, Circumstances(plan.model()))
        document = profile_report(plan.stated, ballots.each())
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(Diagnostic("PS0711", f"this plan cannot be read: {error}")) from error
    return to_markdown(document)
