"""The rules of each form of block: one registry, and no form that is not in it; rooms are entered when asked for."""

from __future__ import annotations

from privspec.kernel.core.problem import Rules

HOMES = {
    "linear": ("linear", "LinearRules"),
    "statistics": ("statistics", "Statistics"),
    "table": ("tables", "Tables"),
    "votes": ("voting", "VoteRules"),
    "priced": ("priced", "PricedRules"),
    "chain": ("chains", "ChainRules"),
    "points": ("points", "PointRules"),
    "cells": ("reports", "CellRules"),
    "frequencies": ("reports", "FrequencyRules"),
    "keys": ("keys", "KeyRules"),
    "selection": ("selection", "SelectionRules"),
    "marginals": ("marginals", "MarginalRules"),
    "stream": ("streams", "StreamRules"),
    "system": ("systems", "SystemRules"),
}
"""By form: a module of the kernel, and the class of the rules in it."""
PARTS = tuple(form for form in HOMES if form != "system")
"""What parts of a system may be."""


def rules_of(form: str) -> Rules:
    """The rules of a form."""
    home, name = HOMES[form]
    found = getattr(__import__(f"privspec.kernel.{home}", fromlist=[name]), name)()
    assert isinstance(found, Rules)
    return found
