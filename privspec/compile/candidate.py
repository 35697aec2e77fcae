"""What a mechanism offers: its loss, how sure that is the least of its kind, and the release itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from privspec.compile.release import LinearRelease
from privspec.solvers.programs import Array, DualPoint


@dataclass(frozen=True, eq=False, slots=True)
class Dual:
    """The dual point behind a lower bound: the solver's, with the budgets that its differences were divided by."""

    point: DualPoint
    budgets: tuple[float, ...]
    scope: str
    """ "full" when any covariance was allowed, "sites" or "messages" otherwise. """
    guide: Array | None = None
    """A root (m, k) of the output covariance that shows the bound, where the mechanism's own does not."""


@dataclass(frozen=True, eq=False, slots=True)
class Mechanism:
    """A release that can be executed, with what plans say about it."""

    release: LinearRelease
    sites: tuple[dict[str, Any], ...]
    dual: Dual | None
    solver: str
    iterations: int
    seconds: float
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Candidate:
    """One way to meet the spec, or one that people use and that is shown for comparison.

    `lower_bound` holds for every mechanism that `among` names. A candidate without a mechanism is a classic
    that is only compared; one that is not admissible breaks an option (or a requirement) that `reason` names.
    """

    name: str
    family: str
    loss: float
    reason: str
    admissible: bool = True
    lower_bound: float | None = None
    among: str = ""
    mechanism: Mechanism | None = None
