"""Amounts of privacy that are picked: where a cost is least, plans of it, and short decimals on the right side.

The family of a spec at any one amount prices it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_FLOOR
from fractions import Fraction
from functools import cached_property
from math import exp, inf, log, sqrt
from time import perf_counter
from typing import Any, ClassVar

from privspec.core.diagnostics import SolveError, SpecError
from privspec.core.records import dataclass, replace
from privspec.core.rounding import in_digits
from privspec.families.decision import Decided, Decision, Infeasible, Relaxation, conflict_line, decimal_up, float_down
from privspec.families.family import Settings
from privspec.kernel.core.problem import Frame, read_frame
from privspec.kernel.core.reading import JsonNode, read
from privspec.kernel.priced import Priced, least
from privspec.kernel.worth import PriceableRules
from privspec.kernel.writing import write
from privspec.model.graph import GraphNode, Model
from privspec.model.values import show
from privspec.problem.elaborate import elaborate
from privspec.problem.priced import Parsed, factors_of_delta, inner_family, parsed, reference

COARSE = 8
"""Decimal digits of an amount whose cost is added to that of errors: the sum is flat where it is least."""
WIDE, NARROW, FAR = log(4), 1e-5, 24
"""Steps of the logarithm of an amount: when its neighbourhood is looked for, and at the end; the most of them."""
DIGITS = 15
"""Decimal digits of an amount that is rounded down."""
NEARLY_ONE = Fraction(999_999, 1_000_000)
"""The largest delta that is tried."""


def minimum(
    cost: Callable[[Fraction], float], low: Fraction, high: Fraction, start: Fraction, narrow: float = NARROW
) -> Fraction:
    """Where a cost is least between two ends, to some digits: golden sections of the logarithm of a bracket."""

    def short(log_value: float) -> Fraction:
        """An amount in few digits, between the ends."""
        return min(max(Fraction(decimal_up(Fraction(exp(log_value)), COARSE)), low), high)

    here = log(max(start, low))
    steps = {k: cost(short(here + k * WIDE)) for k in (-1, 0, 1)}
    best = min(steps, key=lambda k: steps[k])
    while abs(best) < FAR and (best - 1 not in steps or best + 1 not in steps):
        for k in (best - 1, best + 1):
            steps[k] = cost(short(here + k * WIDE))
        best = min(steps, key=lambda k: steps[k])
    left, right = here + (best - 1) * WIDE, here + (best + 1) * WIDE
    golden = (sqrt(5) - 1) / 2
    inner = [right - golden * (right - left), left + golden * (right - left)]
    values = [cost(short(at)) for at in inner]
    while right - left > narrow:
        if values[0] <= values[1]:
            right, inner[1], values[1] = inner[1], inner[0], values[0]
            inner[0] = right - golden * (right - left)
            values[0] = cost(short(inner[0]))
        else:
            left, inner[0], values[0] = inner[0], inner[1], values[1]
            inner[1] = left + golden * (right - left)
            values[1] = cost(short(inner[1]))
    tried = [short(at) for at in (*inner, left, right)]
    return min((*tried, short(here + best * WIDE)), key=cost)


def down(value: Fraction) -> Fraction:
    """Rounded down to a short decimal."""
    return Fraction(in_digits(value, DIGITS, ROUND_FLOOR))


@dataclass(eq=False)
class Search:
    """A spec whose amount is picked, `found` taken apart; every family has its own, with a program at an amount."""

    model: Model
    settings: Settings
    found: Parsed
    started: float
    farthest: ClassVar[Fraction]
    """The largest amount that is tried where the range has no end."""
    rules: ClassVar[PriceableRules]
    """Those of the kernel by which bounds are judged."""

    @cached_property
    def whole(self) -> Any:
        """The problem, as the plan states it."""
        return write(elaborate(self.model))

    @cached_property
    def asked(self) -> tuple[Frame, Priced]:
        """The problem and its block, as the kernel reads them."""
        frame = read_frame(JsonNode(self.whole, "problem"))
        return frame, read(Priced, frame.blocks[0])

    def proved(self, executed: object, made: dict[str, Any]) -> tuple[Fraction, str]:
        """What a witness proves that nothing costs less than, and the words for the mechanisms that this is about.

        Raises: Refused where it proves nothing.
        """
        derived, words = least(*self.asked, self.rules, executed, JsonNode(made, "claims.bound"))
        return derived, words[0]

    def bound(self, executed: object, made: dict[str, Any], loss: float) -> Bound:
        """The same as it is stated of a mechanism of this loss. Raises: as `proved`."""
        derived, words = self.proved(executed, made)
        return made, min(float_down(derived), loss), words

    def stated(self, said: dict[str, Any], bound: Bound | None, solver: dict[str, Any]) -> dict[str, Any]:
        """A mechanism as it stands in the plan, with the bound and what computed it."""
        seconds = {"seconds": perf_counter() - self.started}
        remarks = said.get("remarks", {"binding": []}) | {"solver": solver | seconds}
        return {**said, "problem": self.whole, **bound_stated(bound), "remarks": remarks}

    @property
    def most(self) -> Fraction:
        """The largest amount that is tried: a delta is below 1."""
        return min((self.farthest, *(NEARLY_ONE / factor for factor in factors_of_delta(self.model))))

    @property
    def end(self) -> Fraction:
        """The end of the range, or the largest amount that is tried."""
        return self.most if self.found.high is None else min(self.found.high, self.most)

    def weighed(self, low: Fraction, errors: Callable[[Fraction], float | None], narrow: float = NARROW) -> Fraction:
        """The amount, from one on, that costs least together with the errors at it (None: there are none known)."""

        def cost(value: Fraction) -> float:
            least = errors(value)
            return inf if least is None else float(self.found.cost(value)) + least

        return minimum(cost, low, self.end, reference(self.model), narrow)

    def check_end(self) -> None:
        """Raises: SolveError PS0612 where the range goes on beyond the largest amount that is tried."""
        if self.found.high is None or self.found.high > self.most:
            raise beyond(self.model, self.found.node, self.most)

    def out_of_range(self, found: Infeasible, value: Fraction, needed: float | None) -> Infeasible:
        """Lines that conflict at the end of the range, and how far it would have to go, where that is known."""
        node, own = self.found.node, conflict_line(self.model, self.found.node.span)
        lines = {one.line for one in self.model.requirements}
        ways = [way for way in found.relaxations if way.line not in lines]
        if needed is not None:
            ways.append(Relaxation(f"let {node.name} go up to {needed:.4g}", own.line))
        kept = () if own.line in {line.line for line in found.conflicts} else (own,)
        reason = f"even at {node.name} = {show(value)} {found.reason}"
        return replace(found, reason=reason, conflicts=(*found.conflicts, *kept), relaxations=tuple(ways))

    def decided(
        self, value: Fraction, name: str, loss: float, kind: str, stated: Callable[[], dict[str, Any]]
    ) -> Decided:
        """The decision for an amount, with a mechanism as it stands in the plan."""

        def at_amount() -> dict[str, Any]:
            found = stated()
            scalars = found["mechanism"].get("scalars", {}) | {self.found.node.name: show(value)}
            return found | {"mechanism": found["mechanism"] | {"scalars": scalars}}

        return Decided(
            self.model,
            name,
            loss,
            at_amount,
            kind=kind,
            program=lambda: "an amount is picked together with the mechanism; give it a value to see the program at it",
        )


Bound = tuple[dict[str, Any], float, str]
"""A witness, what it proves of the cost, and what that is about."""


def cell(upto: Fraction | None = None, proof: int | None = None, mu: Sequence[str | None] = ()) -> dict[str, Any]:
    """A cell of the range of an amount, as bounds have it: up to its end, or all the rest, and by which proof."""
    return {"upto": None if upto is None else show(upto), "proof": proof, "mu": list(mu)}


def bound_stated(bound: Bound | None, **claims: Any) -> dict[str, Any]:
    """What a plan says of a bound, shown by a witness, on what an amount costs; `claims`: what else it claims."""
    witness, low, among = (None, None, "") if bound is None else bound
    return {"bound": low, "among": among, "claims": claims | {"bound": witness}}


def no_price(model: Model, node: GraphNode, beside: str) -> SpecError:
    """PS0501: no amount can be picked together with what else the loss has."""
    said = f"solve cannot compute a price of {node.name} beside {beside}"
    hint = f"limit the errors under `accuracy:` and write `loss: {node.name}`, or compare with privspec sweep"
    return SpecError.at(model.source, node.span, "PS0501", said, help=hint)


def beyond(model: Model, node: GraphNode, farthest: Fraction) -> SolveError:
    """PS0612: no amount up to the largest that is tried is known to do, and the range goes on."""
    said = f"no {node.name} up to {show(farthest)} is known to meet the accuracy lines, and larger ones protect nothing"
    return SolveError.at(model.source, node.span, "PS0612", said, help="allow larger errors")


# --- the family of specs whose amount is picked ---------------------------------------------------


class LeastEpsilon:
    """Hands a spec to the family that can price its amount, and refuses it where none can."""

    def lower(self, model: Model) -> Model:
        """The spec itself.

        Raises: SpecError PS0501 where the family of the spec cannot price amounts, PS0524, PS0504.
        """
        family = inner_family(model)
        if not family.pricing:
            node = parsed(model).node
            why = getattr(family.compiles(), "unpriced", "what is lost at each amount has no bound here")
            text = f"solve cannot pick {node.name}: {why}"
            hint = f"give {node.name} a value under `parameters:`; privspec sweep SPEC --over compares many"
            raise SpecError.at(model.source, node.span, "PS0501", text, help=hint)
        return model

    def decide(self, model: Model, _system: Model, settings: Settings) -> Decision | Infeasible:
        """The amount of least cost, with a mechanism that meets every line at it."""
        found: Decision | Infeasible = inner_family(model).prices(model, settings)
        return found

    def size(self, _system: Model) -> int:
        """Its programs are small beside their number."""
        return 1
