"""Runs of which the first into a ledger declares the budget, as somebody would who follows the help."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from privspec.execute import run as executed
from privspec.execute.release import Release


def run(
    plan: Mapping[str, Any], data: Mapping[str, Any], ledger: Path | None = None, *rest: Any, **how: Any
) -> Release:
    """`privspec.execute.run.run`, with `new_ledger` where none is there."""
    new = ledger is not None and not ledger.exists()
    return executed.run(plan, data, ledger, *rest, new_ledger=new, **how)
