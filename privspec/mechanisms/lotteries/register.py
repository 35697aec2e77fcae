"""All rules of private voting, in the order in which they are compared."""

from __future__ import annotations

from privspec.mechanisms.lotteries.dictator import Dictator
from privspec.mechanisms.lotteries.rule import Rule

RULES: tuple[Rule, ...] = (Dictator(),)
