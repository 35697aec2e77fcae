"""What a rule keeps of random dictatorship, and the smallest case where it does not (notes/keeping.md)."""

from __future__ import annotations

from privspec.mechanisms.lotteries.manipulations import manipulation, spoken
from privspec.mechanisms.lotteries.rule import Property, VotingTask
from privspec.model.lotteries import Lottery
from privspec.model.values import show

NOTE = "keeping"


TREATS_ALIKE = Property(
    "treats_voters_alike", True, NOTE, "the winner's law depends on the ballots through their sum, whoever cast them"
)
"""For every lottery of sums of points."""
TRUTHFUL = Property(
    "strategy_proof",
    True,
    NOTE,
    "the law is a mixture of one law for each ballot; whatever the others do, the true ballot gives the alternatives "
    "from the best down to any other one the largest probability",
)
"""For laws that are affine in every ballot."""


def inefficient(task: VotingTask, lottery: Lottery) -> Property:
    """Ex-post efficiency, which no epsilon leaves: every alternative keeps a chance, also one that all find worse."""
    if len(task.alternatives) < 2:
        return Property("ex_post_efficient", True, NOTE, "there is one alternative only")
    ballot = task.alternatives
    lost = lottery.law(task.points.of(ballot))[1]
    first, second = show(ballot[0]), show(ballot[1])
    case = f"one voter who likes {first} better than {second}: {second} wins with probability {spoken(lost)}"
    why = "for a finite epsilon every alternative wins with some probability, also one that everybody likes less"
    return Property("ex_post_efficient", False, NOTE, why, case)


def undominated(task: VotingTask, lottery: Lottery) -> Property:
    """Ex-post efficiency of a lottery without noise: kept where points go to first choices only."""
    if task.points.highest == task.points.per_ballot:
        why = "only alternatives that somebody puts first can win"
        return Property("ex_post_efficient", True, NOTE, why)
    lost = inefficient(task, lottery)
    why = "alternatives that everybody likes less than another one have points too"
    return Property("ex_post_efficient", False, NOTE, why, lost.counterexample)


def swayed(task: VotingTask, lottery: Lottery) -> Property:
    """Strategy-proofness of weights that are powers, and of plurality's winner: for two alternatives only."""
    if len(task.alternatives) < 3:
        why = "with two alternatives a vote for the better one can only help it"
        return Property("strategy_proof", True, NOTE, why)
    found = manipulation(lottery, task.points, most=3)
    assert found is not None
    why = "a vote counts for more where two alternatives are close, so that it pays to leave a hopeless first choice"
    return Property("strategy_proof", False, NOTE, why, found.describe())
