"""How many voters the winner has on its side under the rules of private voting, against the figures of the field."""

from __future__ import annotations

from fractions import Fraction

import pytest

from privspec.families.voting.profiles import Averages
from privspec.families.voting.rules import RULES
from privspec.kernel.laws.voting import DUMMY_VOTES
from privspec.model.voting import Lottery
from privspec.problem.voting import beside
from tests.families.voting import VOTES_MISSED, system_of, vote


@pytest.mark.parametrize(
    ("voters", "m", "epsilon", "welfare"),
    [
        (3, 2, "1", (0.6463, 0.6322, 0.6201, 0.5770)),
        (10, 3, "1", (0.4449, 0.4281, 0.3901, 0.3576)),
        (20, 3, "0.5", (0.3975, 0.3845, 0.3604, 0.3393)),
        (8, 4, "1", (0.3626, 0.3446, 0.3226, 0.2782)),
        # weighted rules that spend what they may at four voters, and not at every number of voters
        (4, 3, "0.8", (0.4567, 0.4434, 0.4367, 0.3817)),
    ],
)
def test_expected_welfare_of_the_table(voters: int, m: int, epsilon: str, welfare: tuple[float, ...]) -> None:
    line = f"O is {epsilon}-DP wrt vote, replacing one voter"
    text = vote(f"E[ {VOTES_MISSED} ]", voters=voters, ballots=f"{{{', '.join('abcd'[:m])}}}", privacy=line,
                background="vote ~ uniform", extra="options:\n  noise family dictator")  # fmt: skip
    system, missed = system_of(text), (beside("votes missed", Lottery(DUMMY_VOTES)),)
    shown = []
    for family in ("permute_and_flip", "exponential", "dictator", "local_dictator"):
        (rule,) = (r for r in RULES if r.family == family)
        found = rule.calibrate(system.promises[0].task, Fraction(epsilon))
        assert not isinstance(found, str)
        ((estimate,),) = Averages(system).of([found.lottery], [missed])
        assert estimate.exact
        shown.append(round(1 - float(estimate.value), 4))
    assert shown == list(welfare)
