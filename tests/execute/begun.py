"""Runs of which the first into a ledger declares the budget, as somebody would who follows the help."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from privspec.execute import run as executed
from privspec.execute.family import RunContext, mechanism_of
from privspec.execute.release import Release
from privspec.model.graph import Model
from privspec.noise.samplers import Randomness, SystemRandomness


def run(
    plan: Mapping[str, Any], data: Mapping[str, Any], ledger: Path | None = None, *rest: Any, **how: Any
) -> Release:
    """`Plan.run` of a plan that need not be verified, with `new_ledger` where none is there."""
    new = ledger is not None and not ledger.exists()
    return executed._run(plan, data, ledger, *rest, new_ledger=new, **how)


def execute_plan(
    plan: Mapping[str, Any],
    data: Mapping[str, Any],
    model: Model | None = None,
    randomness: Randomness | None = None,
    *,
    strict: bool = False,
) -> Release:
    """One release of a plan on data, without budget and files."""
    digest, mechanism = executed.check_digest(plan), mechanism_of(plan)
    secret = mechanism.read(data, RunContext(model, strict))
    release = executed._prepared(executed._undrawn(plan, digest, mechanism.outputs, model), secret, data, strict)
    return executed._drawn(release, secret, randomness or SystemRandomness())
