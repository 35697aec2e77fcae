"""`verify`: every claim of a plan re-derived from the spec inside it, with code of its own.

Nothing here knows the compiler or the solvers, and nothing that a plan lists is believed: each figure is
compared with one computed from the text of the spec and from the exact numbers that `run` executes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from privspec.certify import accuracy, optimality, promises, targets
from privspec.certify.motion import NotUnderstood
from privspec.certify.opened import Opened
from privspec.certify.reading import (
    FORMAT,
    MAJOR,
    At,
    Malformed,
    canonical_digest,
    read_executed,
    read_guarantee,
    read_proof,
)
from privspec.certify.relations import Unbounded
from privspec.certify.report import Claim, Report
from privspec.certify.spec import model_inside
from privspec.certify.subject import Subject
from privspec.core.diagnostics import PrivspecError
from privspec.model.graph import Model
from privspec.model.parameters import overrides
from privspec.model.reports import Failure
from privspec.problem.executed import executed_part

Progress: TypeAlias = Callable[[str], None]

DEFECTS = (
    Malformed,
    Unbounded,
    Failure,
    PrivspecError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    MemoryError,
    np.linalg.LinAlgError,
)
"""What reading or evaluating a broken plan may raise: always a failed claim, never a traceback."""

Check: TypeAlias = Callable[[Any], Iterator[Claim]]


@dataclass(frozen=True, slots=True)
class Family:
    """One kind of mechanism: how its plans are read, and the claims they make, by name."""

    read: Callable[[At, Model], Opened]
    checks: tuple[tuple[str, Check], ...]


def read_linear(plan: At, model: Model) -> Subject:
    """A plan of additive noise.

    Raises: Malformed.
    """
    proof = plan["claims"]
    return Subject(
        plan=plan,
        model=model,
        guarantees=tuple(read_guarantee(item) for item in plan["guarantees"].items()),
        executed=read_executed(At(executed_part(plan.value), "mechanism.executed")),
        proof=None if proof.get("dual") is None or not proof["dual"].items() else read_proof(proof),
    )


LINEAR = Family(
    read_linear,
    (
        ("coverage", promises.coverage),
        ("privacy", promises.privacy),
        ("unbiased", accuracy.unbiased),
        ("loss", accuracy.loss),
        ("accuracy", targets.targets),
        ("noise", accuracy.noise),
        ("optimality", optimality.optimality),
        ("alternatives", optimality.alternatives),
        ("binding", optimality.binding),
        ("assumptions", optimality.assumptions),
    ),
)


def verify(plan: Mapping[str, Any], base: Path | None = None, progress: Progress | None = None) -> Report:
    """Re-derive every claim of a plan.

    Args: plan, as read from JSON; base, the folder of the spec, for specs that are not inside the plan;
    progress, told the name of each claim before it is checked.
    Returns: a report, `ok` only if nothing failed and all of privacy was re-derived. Never raises for a bad
    plan.
    """
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        return _verify(plan, base, progress or _quiet)


def _verify(plan: Mapping[str, Any], base: Path | None, tell: Progress) -> Report:
    tell("integrity")
    try:
        at = At(plan)
        model = model_of(at, base)
        family = LINEAR
        subject = family.read(at, model)
        changed = overrides(model)
    except DEFECTS as error:
        return Report((Claim("integrity", "failed", _sentence(error)),))
    claims = [Claim("integrity", "ok", "format, digest and source fit; the spec inside builds")]
    if changed:
        claims.append(Claim("parameters", "ok", "parameters as solved: " + "; ".join(changed)))
    for name, check in family.checks:
        tell(name)
        try:
            claims.extend(check(subject))
        except NotUnderstood as reason:
            claims.append(_open(name, str(reason), claimed=_claims_a_bound(at)))
        except DEFECTS as error:
            claims.append(Claim(name, "failed", _sentence(error)))
    return Report(tuple(claims))


MAY_STAY_OPEN = ("alternatives", "binding", "figures", "properties", "paper")
"""Claims about what is not run, and that nothing rests on."""
OPEN_WITHOUT_A_BOUND = ("loss", "optimality")
"""Claims that may stay open where a plan says of no mechanism that there is no better one."""


def _open(name: str, reason: str, *, claimed: bool) -> Claim:
    """What is left of a claim that this checker cannot follow: nothing that people rely on may be taken on trust."""
    if name in MAY_STAY_OPEN or (name in OPEN_WITHOUT_A_BOUND and not claimed):
        return Claim(name, "not checked", f"{name}: {reason}")
    return Claim(name, "failed", f"{name} could not be derived again: {reason}")


def _claims_a_bound(at: At) -> bool:
    stated = at["loss"]
    return at["status"].text() == "optimal" or stated.get("lower_bound") is not None


def model_of(at: At, base: Path | None = None) -> Model:
    """Check format and digest, and build the model of the spec.

    Raises: Malformed, SpecError.
    """
    name, _, version = at["format"].text().partition("/")
    if name != FORMAT or version.partition(".")[0] != str(MAJOR):
        raise Malformed(f"the format {at['format'].text()[:40]!r} is not {FORMAT}/{MAJOR}")
    if at["digest"].text() != canonical_digest(at.value):
        raise Malformed("the digest does not fit: the plan was changed after it was written")
    model = model_inside(at["spec"], base)
    if at["status"].text() not in ("optimal", "feasible"):
        raise Malformed("a plan without a mechanism has nothing to verify")
    fair = model.fairness and at["mechanism"]["family"].text() == "table"
    if not model.requirements and not fair:
        raise Malformed("the spec requires no privacy")
    if (left_out := _unread(model)) is not None:
        raise Malformed(left_out)
    return model


def _unread(model: Model) -> str | None:
    """A line of the spec that asks for something and that its model leaves out; None if there is none."""
    asked = (*model.spec.privacy, *model.spec.fairness, *model.spec.accuracy)
    read = {line.line for line in (*model.requirements, *model.fairness, *model.accuracy)}
    for line in asked:
        number, _ = model.source.position(line.span.start)
        if number not in read:
            return f"line {number} of the spec asks for something that cannot be read without further values"
    return None


def _quiet(_name: str) -> None:
    """Progress that nobody watches."""


def _sentence(error: BaseException) -> str:
    match error:
        case Malformed() | Unbounded():
            return str(error)
        case PrivspecError():
            return "; ".join(d.message for d in error.diagnostics)
        case Failure():
            return error.message
    return f"the plan cannot be evaluated ({type(error).__name__}: {str(error)[:120]})"
