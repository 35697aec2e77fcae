"""What a family decides: the mechanism that it takes, what that was compared with, and the plan that says so.

Where requirements cannot hold together, a decision is which lines conflict and what the smallest changes would be.
What plans of every family have in common stands here too: their frame, digest, amounts and assumptions, and what
observers learn where no line names all that they see, by the bounds that the kernel derives.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, fields
from decimal import ROUND_CEILING
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from math import inf, nextafter
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import InternalError
from privspec.core.records import dataclass, field, replace
from privspec.core.rounding import graded, in_digits
from privspec.core.spans import Span
from privspec.kernel.core.problem import HOMES, PLAN, PlanUnderCheck, View, rules_of
from privspec.kernel.core.reading import Grid, JsonNode, read
from privspec.kernel.divergences import HockeyStick
from privspec.kernel.gaussian import delta_bounds
from privspec.kernel.worth import OPTIMAL_GAP
from privspec.kernel.writing import array, plan_digest, write
from privspec.language.spelling import spell
from privspec.model.graph import Model
from privspec.model.measures import AskedMeasure, MeasureAt
from privspec.model.neighbours import UnboundedError
from privspec.model.requirements import Requirement
from privspec.model.values import show
from privspec.problem.assumptions import assumptions
from privspec.problem.elaborate import elaborate
from privspec.problem.stored import spec_json
from privspec.registry import block_of

if TYPE_CHECKING:
    from privspec.families.program import Form

MEETS = "meets every line of the spec"
"""What speaks against an alternative that is only no better."""
MISSES = "misses a line of accuracy"
FEW = Fraction(1, 10**6)
"""By so much more than what is reached a line is offered as a way out."""
CONSTANT = "the middle, whatever the data"
"""The least of all answers that look at no data."""
WRONG = "wrong on average, which E[...] does not allow: worst[...] takes it, or better, where it loses less"
SHARE_BITS = 40
"""Weights of a worst case are whole multiples of 2^-40 that sum to one."""
STEP = Fraction(11, 10)
"""By so much what a line allows is raised, to say what the line costs."""


# --- what is compared ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Alternative:
    """A mechanism that the decision was compared with; `reason` says why it was not taken."""

    name: str
    loss: float
    reason: str = MEETS
    admissible: bool = True
    figures: Mapping[str, Any] = field(default_factory=dict)
    """What else is said of its loss."""

    def to_json(self) -> dict[str, Any]:
        """As plans list it."""
        said = {"name": self.name, "loss": self.loss, "admissible": self.admissible, "reason": self.reason}
        return {**said, **self.figures}


class Costly(Protocol):
    """Whatever has a loss."""

    @property
    def loss(self) -> float | Fraction: ...


Some = TypeVar("Some", bound=Costly)


def ranked(alternatives: Iterable[Some]) -> tuple[Some, ...]:
    """The least loss first; losses that differ by round-off stay in their order."""
    return tuple(sorted(alternatives, key=lambda one: graded(one.loss)))


class Decision(Protocol):
    """The best admissible mechanism of a spec, and those it was compared with."""

    @property
    def name(self) -> str:
        """The mechanism in a few words."""

    @property
    def loss(self) -> float:
        """Its loss."""

    @property
    def lower_bound(self) -> float | None:
        """No mechanism of the family has less; None where nothing is proved."""

    @property
    def program(self) -> Callable[[], Form | str]:
        """The convex program whose optimum it is, or why there is none, as a clause."""

    def document(self) -> dict[str, Any]:
        """The plan."""


@dataclass(frozen=True, eq=False)
class Decided:
    """The best admissible mechanism of a spec, and those it was compared with; its plan is written once it is wanted.

    `stated`: the mechanism as it stands in the plan, with its guarantees and what else the plan says of it. Where that
    takes long to work out it also says the `value` of the loss, the `bound` and what that is `among`, exactly, in place
    of what is said here. `bound`: what no mechanism of the class `among` is below, exactly; None where nothing is
    proved. `prices`: what a little more of each amount would bring. `figures`: what else is said of the loss.
    `solver`: how it was found. `witnesses`: claims that prove a bound at this share of a budget alone; others say what
    they prove at any share. `scaled`: the loss of this noise at so many times the budget; None where that is not known.
    `program`: the convex program whose optimum it is, or why there is none, as a clause.
    """

    model: Model
    name: str
    loss: float
    stated: Callable[[], Mapping[str, Any]]
    bound: Callable[[], Fraction | float | None] = lambda: None
    among: str = ""
    units: str = "units of the loss expression"
    kind: str = "expected"
    others: tuple[Alternative, ...] = ()
    prices: Callable[[], Iterable[dict[str, Any]]] = tuple
    solver: Mapping[str, Any] = field(default_factory=dict)
    figures: Mapping[str, Any] = field(default_factory=dict)
    witnesses: Callable[[], Iterable[dict[str, Any]]] = tuple
    scaled: Callable[[Fraction], float | None] = lambda _: None
    program: Callable[[], Form | str] = lambda: "its search is not stated as one"

    @cached_property
    def lower_bound(self) -> float | None:
        """The bound, rounded down, and not above the loss that it is compared with."""
        found = self.bound()
        return None if found is None else min(float_down(Fraction(found)), self.loss)

    def document(self) -> dict[str, Any]:
        """The plan."""
        own = {"value": self.loss, "among": self.among, **self.stated()}
        value, among, remarks = own.pop("value"), own.pop("among"), own.pop("remarks", {})
        bound = own.pop("bound") if "bound" in own else self.lower_bound
        gap = None if bound is None else (Fraction(value) - Fraction(bound)) / (Fraction(abs(value)) or 1)
        expression = own.pop("expression", "" if self.model.loss is None else spell(self.model.loss))
        plan = {
            **rated(value, bound, gap, expression, among, self.units, self.kind, self.figures),
            "alternatives": [one.to_json() for one in self.others],
            "accuracy": [],
            "claims": {},
            "remarks": {**remarks, "binding": list(self.prices()), "solver": dict(self.solver)} | remarks,
        }
        return plan_document(self.model, plan | own)


# --- what lines cost ------------------------------------------------------------------------------


def price(requirement: Requirement, change: float, amount: str = "epsilon") -> dict[str, Any]:
    """The relative change of the loss where a line allows a tenth more of an amount."""
    now = requirement.measure.amounts[amount]
    return {
        "line": requirement.line,
        "text": requirement.text,
        "change": f"{amount} {show(now)} -> {show(now * STEP)}",
        "loss_change": change,
    }


def increased(requirement: Requirement) -> Iterator[tuple[str, Requirement]]:
    """The line with a tenth more of the amount that is priced; none where each party has its own."""
    measure = requirement.measure
    if isinstance(measure, MeasureAt):
        amount = measure.of.main.name
        yield amount, replace(requirement, measure=measure.changed(**{amount: measure.amounts[amount] * STEP}))


def gaussian_prices(requirement: Requirement) -> Iterator[dict[str, Any]]:
    """What more of each amount of a line brings that alone says how much Gaussian noise there is."""
    before = float(requirement.measure.gaussian_mu_down() or 0)
    for amount, more in increased(requirement):
        yield price(requirement, (before / float(more.measure.gaussian_mu_down() or 0)) ** 2 - 1, amount)


# --- conflicts ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ConflictLine:
    """One of the lines that cannot all hold; without any one of them the others can."""

    line: int
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Relaxation:
    """A single change that makes the spec feasible, on `line`, with the loss it would have if that is known.

    `works` is False for what one might try in vain: `change` then says why no amount of it is enough.
    """

    change: str
    line: int | None = None
    loss: float | None = None
    works: bool = True


@dataclass(frozen=True, slots=True)
class Infeasible:
    """Proof that no mechanism meets the spec, as the smallest set of lines, and priced ways out."""

    reason: str
    conflicts: tuple[ConflictLine, ...]
    relaxations: tuple[Relaxation, ...]

    def document(self, model: Model) -> dict[str, Any]:
        """The plan of a spec whose requirements cannot hold together."""
        ways = [
            {"change": way.change, "line": way.line, "loss": way.loss} | ({} if way.works else {"works": False})
            for way in self.relaxations
        ]
        return sealed(
            {
                "format": PLAN,
                "spec": spec_json(model),
                "status": "infeasible",
                "reason": self.reason,
                "conflicts": [{"line": one.line, "text": one.text} for one in self.conflicts],
                "relaxations": ways,
            }
        )


def conflict_line(model: Model, span: Span) -> ConflictLine:
    """The line of the spec that a span begins on, without its comment."""
    line, _ = model.source.position(span.start)
    return ConflictLine(line, model.source.line(line).split("#")[0].strip(), span)


@dataclass(frozen=True, slots=True)
class Unbounded(Infeasible):
    """One unit can move `input` without limit; its one relaxation, to bound it, has no price yet."""

    input: str = ""


def unbounded(model: Model, requirement: Requirement, error: UnboundedError) -> Unbounded:
    """One unit can move an input without limit."""
    line = conflict_line(model, error.block.span)
    return Unbounded(
        f"{error.why}: no finite noise hides it",
        (line, conflict_line(model, requirement.span)),
        (Relaxation(error.suggestion, line.line),),
        error.block.name,
    )


Each = TypeVar("Each")


def needed(items: Iterable[Each], conflicting: Callable[[list[Each]], bool]) -> list[Each]:
    """Of items that conflict, some that still do, of which none can be left out."""
    kept = list(items)
    for one in tuple(kept):
        fewer = [other for other in kept if other is not one]
        if conflicting(fewer):
            kept = fewer
    return kept


class Limit(Protocol):
    """A line of accuracy: its number in the spec, and what it allows."""

    @property
    def line(self) -> int: ...

    @property
    def bound(self) -> Fraction: ...


def missed(
    model: Model,
    limit: Limit,
    reached: Fraction,
    binding: int,
    said: str = "the privacy asked for makes this error {} times as large as allowed",
) -> Infeasible:
    """The least error that the requirement of number `binding` leaves is more than a line of accuracy allows."""
    figure, bound = float(reached), float(limit.bound)
    target = next(line.target for line in model.accuracy if line.line == limit.line)
    lines = (conflict_line(model, target.span), conflict_line(model, model.requirements[binding].span))
    enough = float(decimal_up(reached * (1 + FEW), 6))
    change = Relaxation(f"accept {enough:.6g} in place of {bound:.6g}", limit.line)
    return Infeasible(said.format(f"{figure / max(bound, 1e-300):.4g}"), lines, (change,))


# --- plans --------------------------------------------------------------------------------------


LIBRARIES = {name: name for name in ("privspec", "numpy", "scipy", "cvxpy")} | {"python-flint": "flint"}
"""What computes plans, by the names of the packages."""
LISTED_ONLY = {"votes": "privspec.kernel.voting", "selection": "privspec.kernel.selection"}
"""Where it is said what a loss is the least of where no bound is stated, by the form of a block: few plans lose one."""
WITHDRAWN = "the lower bound that was found did not pass the independent check and is not stated"


def sealed(document: dict[str, Any]) -> dict[str, Any]:
    """With the digest of what it says, and in plain JSON types: in memory as it will be read from a file."""
    plain: dict[str, Any] = json.loads(json.dumps(document, allow_nan=False))
    return plain | {"digest": plan_digest(plain)}


def plan_document(model: Model, parts: Mapping[str, Any]) -> dict[str, Any]:
    """A plan: what a family says of its mechanism, with the spec and the problem that it answers, and versions."""
    problem = parts["problem"] if "problem" in parts else write(elaborate(model))
    solver = parts["remarks"]["solver"]
    remarks = parts["remarks"] | {"solver": {**solver, "notes": solver.get("notes", []), "versions": _versions()}}
    found = {"format": PLAN, "spec": spec_json(model), "problem": problem, **parts, "remarks": remarks}
    return sealed(found | {"assumptions": assumptions(model, found)})


def rated(
    value: float,
    bound: float | None,
    gap: Fraction | None,
    expression: str,
    among: str,
    units: str,
    kind: str,
    figures: Mapping[str, Any],
) -> dict[str, Any]:
    """The status of a plan and its loss: optimal where the gap of the stated doubles, as derived again, is near 0.

    Args: among, the mechanisms that the bound is about; figures, what else is said of the loss.
    """
    loss = {"value": value, "lower_bound": bound, "relative_gap": None if gap is None else float(gap), **figures}
    return {
        "status": "optimal" if gap is not None and gap <= OPTIMAL_GAP else "feasible",
        "loss": loss | {"expression": expression, "units": units, "among": among, "kind": kind},
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
    text = str(in_digits(value, digits, ROUND_CEILING))
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


def guarantee(
    requirement: Requirement, index: int, achieved: Mapping[str, Fraction | str], because: Iterable[str]
) -> dict[str, Any]:
    """What a plan says of a requirement: what is reached of it, and the notes that this rests on."""
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
        "achieved": {key: value if isinstance(value, str) else show(value) for key, value in achieved.items()},
        "because": list(because),
    }


def promised(
    requirement: Requirement, index: int, least: Fraction | None, because: str, most: Fraction | None = None
) -> dict[str, Any]:
    """A guarantee of pure epsilon: the least that was shown, if any, rounded up, and no more than anybody asks for.

    Args: most, what is enough for a line of another measure.
    """
    asked = max(one.amounts["epsilon"] for one in requirement.measure.by_person) if most is None else most
    said = asked if least is None else min(Fraction(decimal_up(least)), asked)
    return guarantee(requirement, index, {"epsilon": said}, (because,))


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
DIGITS = 9
BITS = 56
"""Binary digits of the largest entry of a witness."""
NEARLY_SINGULAR = 1e-10


def exposures_of(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One entry for each view of the problem, with amounts rounded up.

    Raises: Refused if the plan is not one that the kernel can read.
    """
    from privspec.problem.designs import inside  # few plans have views that no line is about

    parts = {one.name: None for one in fields(PlanUnderCheck) if one.init and one.default is MISSING}
    case = read(PlanUnderCheck, JsonNode(parts | {"format": PLAN, "digest": "", **inside(document)}, "plan"))
    if not case.frame.views:
        return []
    rules = rules_of(case.block.form(*HOMES))
    executed = rules.judge(case)
    found = []
    for view in case.frame.views:
        witness = [_witness(executed, view, outputs) for outputs in (view.outputs, *((name,) for name in view.unnamed))]
        bound, bare = rules.exposed(case, executed, view, JsonNode(witness, "witness"))
        amounts = None if bound is None else {key: _up(value) for key, value in bound.items()}
        found.append(view.head() | {"not_protected": bare, "bound": amounts, "witness": witness})
    return found


def _up(value: Fraction) -> str:
    return format(in_digits(value, DIGITS, ROUND_CEILING).normalize(), "f")


def _witness(executed: object, view: View, outputs: tuple[str, ...]) -> dict[str, Any] | None:
    """An inverse of what is seen of a release of rounded outputs; of other mechanisms nothing helps."""
    from privspec.kernel.core.linear import Release
    from privspec.kernel.rows import doubles
    from privspec.kernel.strategies.dense import chosen_rows

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
    return array(Grid(root.shape, Fraction(2) ** -digits, entries)), right


# --- amounts as plans state them --------------------------------------------------------------------


def shares_of(weights: Array | None) -> list[Fraction]:
    """The same weights in whole multiples of 2^-40 that sum to one."""
    if weights is None:
        raise InternalError("a worst case without weights")
    whole = np.floor(np.ldexp(np.maximum(weights, 0.0) / np.maximum(weights, 0.0).sum(), SHARE_BITS)).astype(np.int64)
    whole[np.argmax(whole)] += 2**SHARE_BITS - whole.sum()
    return [Fraction(int(share), 2**SHARE_BITS) for share in whole]


def mu_up(measure: AskedMeasure, budget: float) -> Fraction | None:
    """A mu that no Gaussian release of the measure reaches, next to the largest; None where a closed form says it."""
    condition = None if measure.common is None else measure.common.condition(measure.amounts)
    if not isinstance(condition, HockeyStick):
        return None
    step = 1e-14
    while delta_bounds(condition.epsilon, Fraction(repr(budget * (1 + step))))[0] <= condition.delta:
        step *= 2
    return Fraction(repr(budget * (1 + step)))


def stated_mu(measure: AskedMeasure, budget: float | Fraction | None) -> str | None:
    """The same as a plan states it, for the largest mu that the measure allows; None where none is needed."""
    found = None if budget is None else mu_up(measure, float(budget))
    return None if found is None else str(found)
