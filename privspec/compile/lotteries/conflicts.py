"""Why no rule of private voting meets a spec."""

from __future__ import annotations

from privspec.compile.infeasible import ConflictLine, Infeasible, Relaxation, conflict_line
from privspec.compile.lotteries.candidates import Judged
from privspec.compile.lotteries.system import LotterySystem


def conflict(system: LotterySystem, every: list[Judged]) -> Infeasible:
    """Options that leave no rule."""
    model = system.model
    lines: list[ConflictLine] = [conflict_line(model, option.span) for option in model.spec.options]
    lines += [conflict_line(model, promise.requirement.span) for promise in system.promises]
    reasons = "; ".join(f"{one.rule.name}: {one.reason}" for one in every if one.reason)
    return Infeasible(
        f"no rule of private voting meets these lines: {reasons}",
        tuple(lines),
        (Relaxation("drop the options: the best rule is then found", None, None),),
    )
