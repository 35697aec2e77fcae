"""Compile privacy requirements into optimal, certified and explained mechanisms.

A spec is read from a file, or is one of the built-in ones; what it is solved to is run, explained, verified:

    >>> import privspec
    >>> plan = privspec.load("prefix_sums").solve(epsilon=0.5)
    >>> plan.status, plan.verify().ok
    ('optimal', True)
    >>> plan.loss.value <= plan.loss.lower_bound * (1 + 1e-6)
    True
    >>> print(plan.explain("public").splitlines()[0])
    # What this release can reveal about you
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from privspec.api import Problem, load
    from privspec.plan import Plan

__version__ = "0.1.0"
__all__ = ["Plan", "Problem", "__version__", "load"]

_PLACES = {"Problem": "privspec.api", "load": "privspec.api", "Plan": "privspec.plan"}


def __getattr__(name: str) -> Any:
    """Load the public names when they are first used, so that `privspec check` starts fast."""
    if name in _PLACES:
        from importlib import import_module

        return getattr(import_module(_PLACES[name]), name)
    raise AttributeError(f"module 'privspec' has no attribute {name!r}")
