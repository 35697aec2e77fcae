"""Whether a plan holds: its spec means its problem, and the kernel derives every statement about the mechanism again.

The kernel never sees the spec, and this file never judges a mechanism: it elaborates the spec inside the plan once
more, requires the very problem that the plan holds, and the words that follow from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from privspec.core.diagnostics import PrivspecError
from privspec.core.records import dataclass, replace
from privspec.kernel import Claim, Report, judge
from privspec.kernel.core.problem import PLAN
from privspec.kernel.core.reading import Item, Refused, parse
from privspec.model.graph import Model
from privspec.model.parameters import overrides
from privspec.problem.assumptions import assumptions
from privspec.problem.elaborate import elaborate
from privspec.problem.form import document as problem_document
from privspec.problem.stored import model_inside
from privspec.problem.words import words

OUTSIDE = (
    "that the data are what the owner says",
    "that the machine running it is not compromised",
    "that whoever is trusted in the spec deserves it",
)
"""What no checker can find in a plan."""
DEFECTS = (ArithmeticError, LookupError, RecursionError, TypeError, ValueError, MemoryError)


@dataclass(frozen=True, slots=True)
class Verification:
    """The claims of a plan, what the plan is about in full sentences, and what the kernel and the spec say."""

    claims: tuple[Claim, ...]
    told: tuple[str, ...] = ()
    kernel: Report | None = None
    model: Model | None = None

    @property
    def ok(self) -> bool:
        """Whether every claim was derived again."""
        return bool(self.claims) and all(claim.holds for claim in self.claims)

    @property
    def failed(self) -> tuple[Claim, ...]:
        """The claims that do not hold."""
        return tuple(claim for claim in self.claims if not claim.holds)

    def __str__(self) -> str:
        word = "claim" if len(self.claims) == 1 else "claims"
        lines = [f"what this plan has to keep, by the spec inside ({len(self.told)} sentences):", *self.told, ""]
        lines += [f"{len(self.claims)} {word} checked; compiler and solver not used", *map(str, self.claims)]
        lines.append("not checked: " + "; ".join(OUTSIDE) if self.ok else _verdict(len(self.failed)))
        return "\n".join(lines) + "\n"


def _verdict(failed: int) -> str:
    return f"this plan is NOT verified: {failed} failed"


def verify(text: str) -> Verification:
    """Derive every claim of a plan again. Never raises for a bad plan.

    Args: text, the JSON of the plan.
    """
    claims: list[Claim] = []
    told: list[str] = []
    model = report = None
    try:
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            plan = parse(text)
            model = _spec(plan, claims, told)
            if all(claim.holds for claim in claims):
                report = judge(plan)
                claims.extend(report.claims)
    except (Refused, PrivspecError) as error:
        claims.append(Claim("integrity", False, _sentence(error)))
    except DEFECTS as error:
        said = f"the plan cannot be evaluated ({type(error).__name__}: {str(error)[:120]})"
        claims.append(Claim("integrity", False, said))
    return Verification(tuple(claims), tuple(told), report, model)


def _sentence(error: Exception) -> str:
    return "; ".join(d.message for d in error.diagnostics) if isinstance(error, PrivspecError) else str(error)


def _spec(plan: Item, claims: list[Claim], told: list[str]) -> Model:
    """The spec builds, asks for something, and means the problem that the plan holds.

    Raises: Refused, SpecError.
    """
    parts = dict(plan.entries())
    for key in ("format", "spec", "problem", "mechanism", "guarantees", "claims", "assumptions"):
        if key not in parts:
            raise plan.wrong(f"does not have {key}")
    parts["format"].same(PLAN)
    model = model_inside(parts["spec"])
    if not model.requirements and not model.fairness:
        raise parts["spec"].wrong("asks for no privacy")
    if (left_out := _unread(model)) is not None:
        raise parts["spec"].wrong(left_out)
    claims.append(Claim("spec", True, "the spec inside is the one that was solved, and it builds"))
    problem = elaborate(model)
    told += [f"Parameter as solved: {sentence}." for sentence in overrides(model)]
    told += words(problem)
    if model.design is not None and model.chosen:
        told.append(_whole_design(model).words()[0])
    same = problem_document(problem) == parts["problem"].value and _left_open(model, parts)
    found = "the spec, elaborated again, is the problem of the plan" if same else "the plan is about another problem"
    claims.append(Claim("problem", same, found))
    document = {key: item.value for key, item in parts.items()}
    kept = assumptions(model, document) == parts["assumptions"].value
    found = "what is assumed, and by whose word, is stated" if kept else "the assumptions stated are not those made"
    claims.append(Claim("assumptions", kept, found))
    return model


def _left_open(model: Model, parts: Mapping[str, Item]) -> bool:
    """Whether the plan has all alternatives of the spec, and no others."""
    stated = dict(parts["design"].entries()) if "design" in parts and not parts["design"].absent else {}
    if model.design is None or not model.chosen:
        return not stated and not model.open
    return "problem" in stated and problem_document(_whole_design(model)) == stated["problem"].value


def _whole_design(model: Model) -> Any:
    """The design of a spec in which a choice was made, with all of its alternatives."""
    from privspec.problem.designs import block_of  # most specs leave nothing open

    return block_of(replace(model, chosen={}))


def _unread(model: Model) -> str | None:
    """A line of the spec that asks for something and that its model leaves out; None if there is none."""
    asked = (*model.spec.privacy, *model.spec.fairness, *model.spec.accuracy)
    read = {line.line for line in (*model.requirements, *model.fairness, *model.accuracy)}
    for line in asked:
        number, _ = model.source.position(line.span.start)
        if number not in read:
            return f"asks for something on line {number} that cannot be read without further values"
    return None
