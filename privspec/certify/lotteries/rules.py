"""The rules by the family that a plan names."""

from __future__ import annotations

from privspec.certify.lotteries.powers import Exponential, PermuteAndFlip
from privspec.certify.lotteries.rule import Change, Ratio, Rule
from privspec.certify.lotteries.shares import Dummies, Reports
from privspec.certify.lotteries.winner import Winner
from privspec.certify.reading import At, Malformed

RULES: tuple[type[Dummies | Exponential | PermuteAndFlip | Reports | Winner], ...] = (
    Dummies,
    Exponential,
    PermuteAndFlip,
    Reports,
    Winner,
)


def read_rule(mechanism: At) -> Rule:
    """The rule of a plan.

    Raises: Malformed.
    """
    family = mechanism["family"].text()
    for rule in RULES:
        if rule.family == family:
            return rule(mechanism[rule.key].exact())
    raise Malformed(f"{mechanism.place}.family is unknown")


__all__ = [
    "RULES",
    "Change",
    "Dummies",
    "Exponential",
    "PermuteAndFlip",
    "Ratio",
    "Reports",
    "Rule",
    "Winner",
    "read_rule",
]
