"""What Torra 2019 says of a rule beside what holds."""

from __future__ import annotations

from math import log
from typing import Any

from privspec.families.selection.rules import DummyVotes
from privspec.families.selection.system import LotterySystem
from privspec.families.selection.task import Draw
from privspec.model.lotteries import FirstChoice
from privspec.model.values import show


def remarks(system: LotterySystem, draw: Draw) -> list[dict[str, Any]]:
    """Lemma 1 (voters may stay away) and Lemma 2 (everybody votes) at this number of dummy votes; else nothing."""
    if not isinstance(draw, DummyVotes) or not isinstance(system.points, FirstChoice):
        return []
    dummies, m, voters = draw.dummies, len(system.alternatives), system.voters
    every = 1 + 1 / dummies
    if not system.adding:
        if dummies != 1:
            return []
        return [_remark("epsilon of Lemma 2", log(2), log(2), "One dummy vote for each alternative: log 2, exactly.")]
    total = voters + m * dummies
    here = every * total / (total + 1)
    more = "" if dummies == 1 else ", by the argument of the lemma, which is for one"
    text = (
        f"This is what one voter more does to {voters} voters and {show(dummies)} dummy votes for each "
        f"alternative{more}. "
        "But the number of voters is the secret, so that the figure which holds is the one for every number: "
        "log(1 + 1 / dummy votes), from below which the first one grows."
    )
    return [_remark(f"epsilon of Lemma 1 at T = {voters}", log(here) if here > 1 else 0.0, log(every), text)]


def _remark(quantity: str, says: float, holds: float, text: str) -> dict[str, Any]:
    return {"quantity": quantity, "says": says, "holds": holds, "text": text}
