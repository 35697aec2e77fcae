"""Compile privacy requirements into optimal, certified and explained mechanisms.

>>> import privspec
>>> plan = privspec.load("shop_queries.priv").solve(epsilon=0.5)   # doctest: +SKIP
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
