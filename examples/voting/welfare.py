"""Expected welfare of the private rules, E[first choices of the winner] / T, when every vote is equally likely."""

from __future__ import annotations

from fractions import Fraction

import privspec
from privspec.families.voting.rules import RULES, VotingTask
from privspec.kernel.voting import totals
from privspec.model.voting import FirstChoice

CASES = ((3, 2, "1"), (10, 3, "1"), (20, 3, "0.5"), (8, 4, "1"))
"""Voters, alternatives, epsilon."""
FAMILIES = ("permute_and_flip", "exponential", "dictator", "local_dictator")
SPEC = """\
spec welfare
parties: voter in 1..{voters}
variables:
  input vote[voter] in {{{alternatives}}}
  output O in {{{alternatives}}}
background: vote ~ uniform
loss: E[ mean(mismatch(O, vote[voter]) for voter) ]
privacy: O is {epsilon}-DP wrt vote, replacing one voter
"""


def best(voters: int, alternatives: int, epsilon: str) -> float:
    """The welfare of the best table of all, by a verified plan."""
    words = ", ".join(f"a{i}" for i in range(1, alternatives + 1))
    text = SPEC.format(voters=voters, alternatives=words, epsilon=epsilon)
    plan = privspec.Problem(text).solve()
    return 1 - plan.loss.value


def of_rules(voters: int, alternatives: int, epsilon: str) -> list[float]:
    """The welfare of every rule with that epsilon."""
    words = tuple(f"a{i}" for i in range(1, alternatives + 1))
    task = VotingTask(FirstChoice(words), voters)
    uniform = [(task.points.of(word), Fraction(1, alternatives)) for word in words]
    found = totals(task.ballots, voters, uniform)
    result = []
    for family in FAMILIES:
        rule = next(rule for rule in RULES if rule.family == family)
        drawn = rule.calibrate(task, Fraction(epsilon))
        assert not isinstance(drawn, str)
        shares = ((mass, zip(drawn.lottery.law(counts), counts, strict=True)) for counts, mass in found)
        result.append(float(sum(mass * sum(p * n for p, n in pairs) for mass, pairs in shares)) / voters)
    return result


def table() -> str:
    """One line a case, as Markdown."""
    lines = ["| voters, alternatives, epsilon | best table | permute-and-flip | exponential | dummy votes | k-RR |"]
    lines.append("|---|---|---|---|---|---|")
    for case in CASES:
        values = [best(*case), *of_rules(*case)]
        lines.append(f"| {case[0]}, {case[1]}, {case[2]} | " + " | ".join(f"{v:.4f}" for v in values) + " |")
    return "\n".join(lines)
