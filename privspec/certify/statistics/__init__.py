"""Checks of plans that make statistics of bounded records noisy: every sensitivity is derived here once more."""

from __future__ import annotations

from privspec.certify import optimality as common
from privspec.certify.statistics import claims, privacy
from privspec.certify.statistics.subject import StatisticSubject, read_statistic

CHECKS = (
    ("coverage", claims.coverage),
    ("statistic", claims.statistic),
    ("privacy", privacy.privacy),
    ("loss", claims.loss),
    ("optimality", claims.optimality),
    ("alternatives", common.alternatives),
    ("binding", claims.binding),
    ("assumptions", common.assumptions),
)
"""The claims of such a plan, in the order in which they are checked."""

__all__ = ["CHECKS", "StatisticSubject", "read_statistic"]
