"""The kernel: judges a plan against its problem, and uses nothing of compiler and solvers.

Alone: `python -m privspec.kernel PLAN`. It imports json, fractions, hashlib, math, sys, base64, dataclasses and
python-flint only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from privspec.kernel.core.problem import Claim
    from privspec.kernel.judging import Report, judge

__all__ = ["Claim", "Report", "judge"]


def __getattr__(name: str) -> object:
    """Load what judges plans when it is first asked for: whoever needs a type of the kernel need not."""
    if name not in __all__:
        raise AttributeError(f"module 'privspec.kernel' has no attribute {name!r}")
    from privspec.kernel import judging

    return getattr(judging, name)
