"""All rules of private voting, in the order in which they are compared."""

from __future__ import annotations

from privspec.mechanisms.lotteries.dictator import Dictator
from privspec.mechanisms.lotteries.exponential import ExponentialRule
from privspec.mechanisms.lotteries.flips import PermuteAndFlipRule
from privspec.mechanisms.lotteries.local import LocalDictator
from privspec.mechanisms.lotteries.rule import Rule
from privspec.mechanisms.lotteries.undisguised import NoDummies
from privspec.mechanisms.lotteries.winner import RandomisedWinner

RULES: tuple[Rule, ...] = (
    Dictator(),
    PermuteAndFlipRule(),
    ExponentialRule(),
    LocalDictator(),
    RandomisedWinner(),
    NoDummies(),
)
