"""The rules of each form of block: one registry, and no form that is not in it."""

from __future__ import annotations

from privspec.kernel.core.case import Rules

FORMS: dict[str, Rules] = {}
