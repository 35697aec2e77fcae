"""What a family decides: the mechanism that it takes, what that was compared with, and the plan that says so.

Where requirements cannot hold together, a decision is which lines conflict and what the smallest changes would be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol, TypeVar

from privspec.core.records import dataclass, field, replace
from privspec.core.rounding import graded
from privspec.core.spans import Span
from privspec.families.document import float_down, plan_document, rated, sealed
from privspec.kernel.core.problem import PLAN
from privspec.model.graph import Model
from privspec.model.measures import MeasureAt
from privspec.model.neighbours import UnboundedError
from privspec.model.requirements import Requirement
from privspec.model.values import show
from privspec.problem.stored import spec_json

MEETS = "meets every line of the spec"
"""What speaks against an alternative that is only no better."""
MISSES = "misses a line of accuracy"
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


def ranked(alternatives: Iterable[Alternative]) -> tuple[Alternative, ...]:
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

    @cached_property
    def lower_bound(self) -> float | None:
        """The bound, rounded down, and not above the loss that it is compared with."""
        found = self.bound()
        return None if found is None else min(float_down(Fraction(found)), self.loss)

    def document(self) -> dict[str, Any]:
        """The plan."""
        own = {"value": self.loss, "among": self.among, **self.stated()}
        value, among = own.pop("value"), own.pop("among")
        bound = own.pop("bound") if "bound" in own else self.lower_bound
        plan = {
            **rated(self.model, value, bound, among, self.units, self.kind, **self.figures),
            "alternatives": [one.to_json() for one in self.others],
            "accuracy": [],
            "claims": {},
        }
        if "remarks" not in own:
            plan["remarks"] = {"binding": list(self.prices()), "solver": dict(self.solver)}
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


Item = TypeVar("Item")


def needed(items: Iterable[Item], conflicting: Callable[[list[Item]], bool]) -> list[Item]:
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
    change = Relaxation(f"accept {figure * (1 + 1e-6):.6g} in place of {bound:.6g}", limit.line)
    return Infeasible(said.format(f"{figure / max(bound, 1e-300):.4g}"), lines, (change,))
