"""Checks of plans that draw a winner from votes: laws, ratios, losses and bounds derived here once more."""

from __future__ import annotations

from privspec.certify import optimality as common
from privspec.certify.lotteries import alternatives, bound, claims, privacy, properties, rounds
from privspec.certify.lotteries.subject import LotterySubject, read_lottery

CHECKS = (
    ("coverage", claims.coverage),
    ("privacy", privacy.privacy),
    ("rounds", rounds.rounds),
    ("loss", claims.loss),
    ("accuracy", claims.accuracy),
    ("figures", claims.figures),
    ("properties", properties.properties),
    ("paper", claims.paper),
    ("optimality", bound.optimality),
    ("alternatives", alternatives.alternatives),
    ("assumptions", common.assumptions),
)
"""The claims of such a plan, in the order in which they are checked."""
FAMILIES = ("dictator", "exponential", "permute_and_flip", "local_dictator", "randomised_winner")
"""Families of plans that are read here."""

__all__ = ["CHECKS", "FAMILIES", "LotterySubject", "read_lottery"]
