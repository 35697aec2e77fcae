"""What plans of every family have in common: their frame, digest, amounts and assumptions.

Also what observers learn where no line names all that they see: the bounds that the kernel derives.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from importlib import import_module
from math import inf, nextafter
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core import OPTIMAL_GAP
from privspec.core.diagnostics import InternalError
from privspec.kernel.core.problem import PLAN, Case, View
from privspec.kernel.core.reading import Item, read
from privspec.kernel.forms import HOMES, rules_of
from privspec.language.spelling import spell
from privspec.model.graph import Model
from privspec.model.requirements import Requirement
from privspec.model.values import show
from privspec.problem import form
from privspec.problem.assumptions import assumptions
from privspec.problem.elaborate import elaborate
from privspec.problem.form import Numbers
from privspec.problem.stored import spec_json
from privspec.registry import block_of

LIBRARIES = {name: name for name in ("privspec", "numpy", "scipy", "cvxpy")} | {"python-flint": "flint"}
"""What computes plans, by the names of the packages."""
LISTED_ONLY = {"votes": "privspec.problem.votes", "selection": "privspec.kernel.selection"}
"""Where it is said what a loss is the least of where no bound is stated, by the form of a block: few plans lose one."""
WITHDRAWN = "the lower bound that was found did not pass the independent check and is not stated"


def sealed(document: dict[str, Any]) -> dict[str, Any]:
    """With the digest of what it says, and in plain JSON types: in memory as it will be read from a file."""
    plain: dict[str, Any] = json.loads(json.dumps(document, allow_nan=False))
    return plain | {"digest": form.plan_digest(plain)}


def plan_document(model: Model, parts: Mapping[str, Any]) -> dict[str, Any]:
    """A plan: what a family says of its mechanism, with the spec and the problem that it answers, and versions."""
    problem = parts["problem"] if "problem" in parts else form.document(elaborate(model))
    solver = parts["remarks"]["solver"]
    remarks = parts["remarks"] | {"solver": {**solver, "notes": solver.get("notes", []), "versions": _versions()}}
    found = {"format": PLAN, "spec": spec_json(model), "problem": problem, **parts, "remarks": remarks}
    return sealed(found | {"assumptions": assumptions(model, found)})


def rated(
    model: Model,
    value: float,
    bound: float | None,
    among: str,
    units: str = "units of the loss expression",
    kind: str = "expected",
    **more: Any,
) -> dict[str, Any]:
    """The status of a plan and its loss: optimal where the gap of the stated doubles, as derived again, is near 0.

    Args: among, the mechanisms that the bound is about; more, what else is said of the loss.
    """
    gap = None if bound is None else float((Fraction(value) - Fraction(bound)) / (Fraction(abs(value)) or 1))
    loss = {"value": value, "lower_bound": bound, "relative_gap": gap, **more}
    loss |= {"expression": "" if model.loss is None else spell(model.loss), "units": units}
    return {
        "status": "optimal" if gap is not None and gap <= OPTIMAL_GAP else "feasible",
        "loss": loss | {"among": among, "kind": kind},
    }


ABOUT_BETTER_ONES = frozenset({"bound", "optimality", "gap", "binding", "alternatives"})
"""Claims of a plan that say nothing of its own mechanism."""


def without_bound(document: Mapping[str, Any]) -> dict[str, Any]:
    """The same mechanism, of which a plan says no more that it is the best: feasible, with no bound and no prices."""
    said = document["remarks"]
    solver, claims = said["solver"], document["claims"]
    kept = {"views": claims["views"], "bound": None} if "views" in claims else {}
    loss = document["loss"] | {"lower_bound": None, "relative_gap": None}
    if kept or "split" in claims:
        loss["among"] = ""
    if home := LISTED_ONLY.get(block_of(document)["form"]):
        loss["among"] = import_module(home).LISTED
    found = {
        **document,
        "status": "feasible",
        "loss": loss,
        "assumptions": [a for a in document["assumptions"] if "claim" not in a["because"]],
        "claims": kept,
        "remarks": said | {"binding": [], "solver": solver | {"notes": [*solver.get("notes", ()), WITHDRAWN]}},
    }
    return sealed(found)


def decimal_up(value: Fraction, digits: int = 15) -> str:
    """The least decimal of so many digits that is not below an exact number."""
    context = Context(prec=digits, rounding=ROUND_CEILING)
    quotient = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    # numerator and denominator were themselves taken exactly: Decimal(int) is exact, the quotient rounds up
    text = str(quotient)
    if Fraction(text) < value:
        raise InternalError("a claim was rounded the wrong way")
    return text


def float_up(value: Fraction) -> float:
    """The least double that is not below an exact number."""
    near = float(value)
    return near if Fraction(near) >= value else nextafter(near, inf)


def float_down(value: Fraction) -> float:
    """The largest double that is not above an exact number."""
    return 0.0 - float_up(-value)  # not minus zero


def line_of(model: Model, offset: int) -> int:
    """The line of a place in the source."""
    return model.source.position(offset)[0]


def guarantee_head(requirement: Requirement, index: int) -> dict[str, Any]:
    """What a guarantee repeats of its requirement."""
    return {
        "outputs": list(requirement.outputs),
        "wrt": requirement.wrt[0] if len(requirement.wrt) == 1 else list(requirement.wrt),
        "neighbours": requirement.neighbours.describe(),
        "observer": " and ".join(requirement.observers),
        "measure": requirement.measure.name,
        **{key: show(value) for key, value in requirement.measure.amounts.items()},
        "requirement": index,
        "line": requirement.line,
        "text": requirement.text,
    }


def promised(requirement: Requirement, index: int, least: Fraction | None, because: str) -> dict[str, Any]:
    """A guarantee of pure epsilon: the least that was shown, if any, rounded up, and no more than is asked for."""
    asked = requirement.measure.amounts["epsilon"]
    said = asked if least is None else min(Fraction(decimal_up(least)), asked)
    return guarantee_head(requirement, index) | {"achieved": {"epsilon": show(said)}, "because": [because]}


def accuracy_json(limits: Iterable[tuple[int, str, Fraction, Fraction]]) -> list[dict[str, Any]]:
    """Lines of accuracy: their number and text, the error that is reached, and what they allow."""
    return [
        {"line": line, "text": text, "value": float(value), "bound": float(bound)}
        for line, text, value, bound in limits
    ]


def _versions() -> dict[str, str]:
    """Versions of what computed the plan: of what is loaded."""
    return {name: sys.modules[own].__version__ for name, own in LIBRARIES.items() if own in sys.modules}


# --- exposures ------------------------------------------------------------------------------------


Array: TypeAlias = NDArray[np.float64]
DIGITS = Context(prec=9, rounding=ROUND_CEILING)
BITS = 56
"""Binary digits of the largest entry of a witness."""
NEARLY_SINGULAR = 1e-10


def exposures_of(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One entry for each view of the problem, with amounts rounded up.

    Raises: Refused if the plan is not one that the kernel can read.
    """
    from privspec.problem.designs import inside  # few plans have views that no line is about

    parts = {one.name: None for one in fields(Case) if one.init and one.default is MISSING}
    case = read(Case, Item(parts | {"format": PLAN, "digest": "", **inside(document)}, "plan"))
    assert isinstance(case, Case)
    if not case.frame.views:
        return []
    rules = rules_of(case.block.form(*HOMES))
    executed = rules.judge(case)
    found = []
    for view in case.frame.views:
        witness = [_witness(executed, view, outputs) for outputs in (view.outputs, *((name,) for name in view.unnamed))]
        bound, bare = rules.exposed(case, executed, view, Item(witness, "witness"))
        amounts = None if bound is None else {key: _up(value) for key, value in bound.items()}
        found.append(view.head() | {"not_protected": bare, "bound": amounts, "witness": witness})
    return found


def _up(value: Fraction) -> str:
    return format(DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize(), "f")


def _witness(executed: object, view: View, outputs: tuple[str, ...]) -> dict[str, Any] | None:
    """An inverse of what is seen of a release of rounded outputs; of other mechanisms nothing helps."""
    from privspec.kernel.core.linear import Release
    from privspec.kernel.rows import chosen_rows, doubles

    if not isinstance(executed, Release):
        return None
    seen = executed.problem.rows_of(outputs)
    if view.difference.absent or executed.of_inputs or not executed.round_outputs or len(seen) == executed.problem.size:
        return {"inverse": None, "scaling": None}
    inverse, _ = inverse_root(np.array(doubles(chosen_rows(executed.reconstruction, seen))))
    return {"inverse": inverse, "scaling": None}


def inverse_root(mixed: Array) -> tuple[dict[str, Any] | None, Array]:
    """K of orthonormal rows K L where rows L (s, k) are independent, as a plan states it, and K L; else None, and L.

    Rows are put on one level first by powers of two, which stay exact.
    """
    tops = np.frexp(np.abs(mixed).max(axis=1, initial=0.0))[1]
    shifts = tops.max(initial=0) - tops
    left, sizes, right = np.linalg.svd(np.ldexp(mixed, shifts[:, None]), full_matrices=False)
    if len(sizes) < len(mixed) or sizes.min(initial=1.0) <= NEARLY_SINGULAR * sizes.max(initial=1.0):
        return None, mixed
    root = left.T / sizes[:, None]
    digits = BITS - int(np.frexp(np.abs(root).max())[1])
    whole = np.rint(np.ldexp(root, digits))
    entries = tuple(int(v) << int(shift) for row in whole.tolist() for v, shift in zip(row, shifts, strict=True))
    return Numbers(root.shape, Fraction(2) ** -digits, entries).to_json(), right
