"""The kernel: judges a plan against its problem, and uses nothing of compiler and solvers.

Alone: `python -m privspec.kernel PLAN`. It imports json, fractions, hashlib, math, sys, base64, dataclasses and
python-flint only.
"""

from privspec.kernel.judge import judge
from privspec.kernel.report import Claim, Report

__all__ = ["Claim", "Report", "judge"]
