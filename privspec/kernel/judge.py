"""A plan's text in, a report out: integrity, the problem's frame, then each block by the rules of its form."""

from __future__ import annotations

import hashlib
import json

from privspec.kernel.core.case import Case
from privspec.kernel.core.exposure import judge_exposures
from privspec.kernel.core.problem import KEYS, read_frame
from privspec.kernel.core.reading import Item, Refused, parse
from privspec.kernel.forms import FORMS
from privspec.kernel.report import Claim, Report

PLAN = "privspec-plan/2.0"
PLAN_KEYS = (
    *("format", "spec", "problem", "status", "loss", "alternatives", "mechanism", "guarantees", "accuracy"),
    *("assumptions", "claims", "remarks", "digest"),
)
OPTIONAL_KEYS = ("fairness", "exposures")
DEFECTS = (ArithmeticError, ValueError, TypeError, KeyError, IndexError, RecursionError, MemoryError)


def judge(text: str) -> Report:
    """Judge a plan. Never raises for a bad plan.

    Returns: a report, `ok` only if every statement was derived again.
    """
    found: list[Claim] = []
    try:
        return _judged(parse(text), found)
    except Refused as reason:
        found.append(Claim("reading", False, str(reason)))
    except DEFECTS as error:
        found.append(Claim("reading", False, f"the plan cannot be judged ({type(error).__name__}: {str(error)[:80]})"))
    return Report(tuple(found))


def _judged(plan: Item, found: list[Claim]) -> Report:
    """The report of a plan that could be parsed.

    Raises: Refused.
    """
    fields = plan.fields(*PLAN_KEYS, optional=OPTIONAL_KEYS)
    form, _, problem, status, loss, _, mechanism, guarantees, accuracy, _, witnesses, _, digest, fairness, exposures = (
        fields
    )
    form.same(PLAN)
    body = dict(zip(PLAN_KEYS + OPTIONAL_KEYS, fields, strict=True))
    given = {key: item.value for key, item in body.items() if key != "digest"}
    digest.same(_digest({key: value for key, value in given.items() if key in PLAN_KEYS or value is not None}))
    if status.text() not in ("optimal", "feasible"):
        raise status.wrong("is not known")
    frame = read_frame(problem)
    found.append(Claim("integrity", True, "every key is known and the digest fits"))
    *_, blocks = problem.fields(*KEYS)
    (block,) = blocks.items(1)
    case = Case(
        frame, block, mechanism, guarantees, loss, accuracy, fairness, witnesses, status=status.text(), found=found
    )
    rules = FORMS[block.form(*FORMS)]
    executed = rules.judge(case)
    judge_exposures(case, rules, executed, exposures)
    holds = all(claim.holds for claim in found)
    return Report(tuple(found), _digest(problem.value), frame.elaborator, executed if holds else None)


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
