"""Checks of plans that draw from a table Pr(outputs | secret): all re-derived from the spec, in exact numbers."""

from __future__ import annotations

from privspec.certify import optimality as common
from privspec.certify.finite import bound, claims, keeping, privacy
from privspec.certify.finite.subject import FiniteSubject, read_finite

CHECKS = (
    ("coverage", privacy.coverage),
    ("table", claims.table),
    ("properties", keeping.properties),
    ("figures", keeping.figures),
    ("privacy", privacy.privacy),
    ("rounds", privacy.rounds),
    ("loss", claims.loss),
    ("conditions", claims.conditions),
    ("accuracy", claims.accuracy),
    ("fairness", claims.fairness),
    ("optimality", bound.optimality),
    ("alternatives", common.alternatives),
    ("binding", claims.binding),
    ("assumptions", common.assumptions),
)
"""The claims of such a plan, in the order in which they are checked."""

__all__ = ["CHECKS", "FiniteSubject", "read_finite"]
