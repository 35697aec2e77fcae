"""The family of selections: mechanisms calibrated at what one record does to the scores, the best by its loss.

Where all tables of counts are few, also the best laws of all: a linear program, then exact chances.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from math import ceil, lcm, log, sqrt
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
import scipy
from numpy.typing import NDArray

from privspec.core.diagnostics import SolveError
from privspec.core.records import dataclass, replace
from privspec.core.rounding import exp_down, least_whole
from privspec.families.decision import (
    FEW,
    STEP,
    Alternative,
    Decided,
    Decision,
    Infeasible,
    Relaxation,
    accuracy_json,
    conflict_line,
    decimal_up,
    float_down,
    guarantee,
    price,
)
from privspec.families.family import Settings
from privspec.families.selection.made_up import NODES, SEED, profiles, simulated
from privspec.families.selection.noised import at_ranks, noised
from privspec.kernel.core.problem import Data, Obligation
from privspec.kernel.core.reading import Grid, JsonNode, Refused
from privspec.kernel.laws.exponential import Target, steps_of
from privspec.kernel.measures import PURE, PURE_MEASURES
from privspec.kernel.promises import Accuracy
from privspec.kernel.selection import (
    CLASSES,
    LISTED,
    NOTE,
    AtRanks,
    Drawn,
    Executed,
    Jointly,
    Leaders,
    Listed,
    Peeled,
    Quantiles,
    Ranks,
    Selected,
    beside,
    epsilon_of_unit,
    keeps,
    least,
    read_witness,
    tables_of,
    units_of,
    worst_ranks,
)
from privspec.kernel.worth.averages import Sought
from privspec.kernel.writing import write
from privspec.model.graph import Model
from privspec.problem.elaborate import data_of, obligation_of
from privspec.problem.refusals import without_loss
from privspec.problem.selection import block_of

PLACES = 60
"""Binary places of the chances."""
MIXED = (0.0, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8)
"""Shares of the uniform law that are mixed in until every ratio holds exactly."""
LARGEST = 4000
"""Ratios that one program compares, times 10: answers times pairs of tables."""


def listed(block: Selected, lines: tuple[Obligation, ...], *, drops: bool) -> tuple[Listed, dict[str, Any]] | None:
    """The best laws under lines of pure epsilon about one record replaced, and multipliers that bound all others.

    None where tables are too many, or lines are others.
    """
    units = [line.units[0] for line in lines]
    pure = all(line.measure.common is PURE for line in lines)
    if not pure or any(unit.adding or unit.kind != "record" or unit.count > 1 for unit in units):
        return None
    if block.accuracy or (block.families and "table" not in block.families):
        return None
    try:
        tables = tables_of(block)
        weights = None if block.cost.worst else [float(one) for one in block.weights()]
    except Refused:
        return None
    at = {table: i for i, table in enumerate(tables)}
    pairs = np.array([(i, at[other]) for i, table in enumerate(tables) for other in beside(table)])
    if len(pairs) * block.size > 10 * LARGEST:
        return None
    from privspec.solvers.listed import listed_laws

    epsilon = min(line.measure.figures({})["epsilon"] for line in lines)
    costs = np.array([[float(cost) for cost in block.costs(table)] for table in tables])
    given = None if weights is None else np.array(weights)
    found = listed_laws(costs, given, pairs, float(exp_down(epsilon)) * (1 - 1e-13))
    for share in MIXED:
        laws = exact(found.laws * (1 - share) + share / block.size)
        made = Listed(block, laws, drops)
        if all(keeps(made, one) for one in lines):
            places = np.argwhere(found.multipliers > 0)
            rows = [[*map(int, pairs[m]), int(r), float(found.multipliers[m, r])] for m, r in places]
            own = None if weights is not None else [float(one) for one in found.weights]
            return made, {"pairs": rows, "weights": own}
    return None


def exact(laws: NDArray[np.float64]) -> Grid:
    """The laws in whole numbers of the sum 2^PLACES: what rounding leaves goes to the likeliest answer."""
    found = list[int]()
    for law in laws.tolist():
        whole = [int(Fraction(chance) * (1 << PLACES)) for chance in law]
        whole[whole.index(max(whole))] += (1 << PLACES) - sum(whole)
        found += whole
    return Grid(laws.shape, Fraction(1, 1 << PLACES), tuple(found))


# --- the family -----------------------------------------------------------------------------------


Array = NDArray[np.float64]
ByChance = Drawn | Jointly | Peeled | AtRanks
D = TypeVar("D", bound=Drawn | Jointly | Peeled | AtRanks)
Bounded = tuple[dict[str, Any], float]
"""A witness, and what it proves of every mechanism, rounded down."""
BITS = 40
"""Binary places of the chance that belongs to one step of a score."""
ORDERED = 32
"""Draws of several quantiles at a table that say what their order brings."""
TOGETHER = 1 << 17
"""Doubles of tables whose laws are worked out at once."""
OFFSETS = (4, 8, 16, 32)
"""Quarters of 1 / epsilon records by which a mechanism may aim beside an extreme, towards the middle."""
WEIGHTS = (1.0, 2.0, 4.0)
"""Powers of the chances that answers have of being an extreme, by which a mechanism may hold them back."""
FARTHEST = 8.0
"""No chance of an extreme counts as less than e^-8 of the largest, whatever the law says."""
CELLS, CHANCES = 48, 2**19
"""Records beside a threshold that a bound looks at, and chances that it adds up at most."""
FINE_RECORDS, FAR_RECORDS = 0.45, 3.2
"""Deviations of the number of records between those at which chances are worked out, and up to the last of them."""
NEGLIGIBLE = 2e-3
"""Thresholds are left out that are near what is sought by so much less often than the first."""
BY_CHANCE, ABOVE = 5.0, 1e-5
"""Standard errors by which a mean over simulated tables may be below what is proved; how much above it is put then."""
SOME = 5
"""One table in so many says which noise on ranks is worked out at all of them."""
NAMES = {"exponential": "exponential mechanism", "permute_and_flip": "permute-and-flip"}


@dataclass(frozen=True, eq=False, slots=True)
class System:
    """A spec in numbers, as the kernel reads it."""

    model: Model
    block: Selected
    lines: tuple[Obligation, ...]
    data: Data


@dataclass(frozen=True, eq=False, slots=True)
class Tried:
    """A mechanism with its loss; `error`: the standard error of a simulated one; `witness`: what bounds all others."""

    drawn: Executed
    loss: float
    error: float | None
    witness: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        """In a few words."""
        if isinstance(self.drawn, Listed):
            return f"a table of {len(self.drawn.term.rows)} laws"
        if isinstance(self.drawn, Jointly):
            return "one draw of all quantiles"
        if isinstance(self.drawn, AtRanks):
            own = f", answers of at least {self.drawn.filled} records"
            return f"one noise on all ranks{own}" if self.drawn.block.several else f"noise on the rank{own}"
        if isinstance(self.drawn, Peeled):
            return f"peeling by {NAMES[self.drawn.draw]}"
        target, score = self.drawn.target, self.drawn.block.score
        aside = "" if target is None or not isinstance(score, Ranks) or not target.offset else _aside(target.offset)
        return f"{NAMES[self.drawn.family]}{aside}{', weighed by the law' if self.drawn.handicap else ''}"


def _aside(offset: int) -> str:
    many = "1 record" if abs(offset) == 1 else f"{abs(offset)} records"
    return f", aiming {many} {'above' if offset > 0 else 'below'}"


class Selections:
    """Takes specs that ask for one value of a column of a table, by rank or as the most frequent one."""

    def lower(self, model: Model) -> System:
        """The scores of a spec.

        Raises: SpecError PS05xx, PS0401.
        """
        block = block_of(model)
        if not block.cost.weight:
            raise without_loss(model).of_spec(model.source)
        return system_of(model, block)

    def decide(self, model: Model, system: System, settings: Settings) -> Decision | Infeasible:
        """The best mechanism of those that meet every line."""
        started = perf_counter()
        tried = sorted(attempts(system), key=lambda one: (one.loss, one.name))
        if not tried:
            return _none(system)
        best, block = tried[0], system.block
        if missed := [one for one in block.accuracy if one.weight * best.loss > one.bound * block.cost.weight]:
            raise _not_met(model, missed[0], best.loss * float(missed[0].weight / block.cost.weight))
        witness = best.witness
        if not isinstance(best.drawn, Listed):
            witness = _far(system) if block.cost.worst else _thresholds(block)
        bound = None if witness is None else _proved(system, witness)
        averaged = not block.cost.worst and not isinstance(best.drawn, Listed)
        return Decided(
            model,
            best.name,
            _at_least(best, bound) if averaged else best.loss,
            lambda: stated(system, best.drawn) | {"claims": {} if bound is None else {"bound": bound[0]}},
            lambda: None if bound is None else bound[1],
            LISTED if bound is None else CLASSES[1],
            units_of(block),
            "worst" if block.cost.worst else "expected",
            tuple(Alternative(one.name, one.loss) for one in tried[1:]),
            lambda: _prices(system, best),
            {"name": "calibration at the exact ratio", "seconds": perf_counter() - started},
            {"standard_error": best.error, "profiles": profiles(block)} if averaged else {},
            lambda: () if bound is None or not isinstance(best.drawn, Listed) else ({"bound": bound[0]},),
            program=lambda: "chances follow from scores by a rule, at the largest ratio that the lines allow",
        )

    def size(self, system: System) -> int:
        """Numbers of one simulated table."""
        return system.block.size


def _at_least(best: Tried, bound: Bounded | None) -> float:
    """A mean over simulated tables; above what is proved, where chance may well have put it below.

    Farther below one of the two is wrong, and the check refuses the plan. No such mean is called optimal.
    """
    proved = 0.0 if bound is None else bound[1] * (1 + ABOVE)
    return proved if best.loss < proved <= best.loss + BY_CHANCE * (best.error or 0.0) else best.loss


def system_of(model: Model, block: Selected) -> System:
    """A spec of a block, in numbers."""
    lines = tuple(obligation_of(model, line) for line in model.requirements)
    return System(model, block, lines, data_of(model, model.inputs[0]))


def _not_met(model: Model, line: Accuracy, reached: float) -> SolveError:
    """PS0612: the best mechanism that is known misses a line, and none is proved not to exist."""
    span = next(one.target.span for one in model.accuracy if one.line == line.line)
    text = f"the best mechanism that solve knows is off by {reached:.4g} here, and none is proved to be better or worse"
    enough = float(decimal_up(Fraction(reached) * (1 + FEW), 6))
    return SolveError.at(
        model.source, span, "PS0612", text, help=f"accept {enough:.6g} in place of {float(line.bound):.6g}"
    )


# --- calibration ----------------------------------------------------------------------------------


def calibrated(drawn: D, lines: Iterable[Obligation]) -> D:
    """The mechanism with the largest base whose chances of one step have `BITS` places, and that meets every line."""
    known = list(lines)
    return at_chance(drawn, least_whole(lambda chance: meets(at_chance(drawn, chance), known), 0, 1 << BITS))


def at_chance(drawn: D, numerator: int) -> D:
    """The mechanism at a chance of one step, in whole parts of 2^BITS."""
    return replace(drawn, base=Fraction(1 << BITS, numerator))


def meets(drawn: ByChance, lines: Iterable[Obligation]) -> bool:
    """Whether it meets every line, as the kernel derives it."""
    for line in lines:
        try:
            if not keeps(drawn, line):
                return False
        except (ArithmeticError, ValueError):
            return False
    return True


def mechanisms(system: System) -> Iterator[Drawn]:
    """Every mechanism that is compared, not yet calibrated."""
    block = system.block
    families = [name for name in NAMES if not block.families or name in block.families]
    for target in targets(system):
        for family in families:
            yield Drawn(block, family, Fraction(1), target, (), system.data.rule == "drop", system.data.kept)


def of_several(system: System) -> Iterator[Jointly | Peeled]:
    """The same where several values are asked for: scores of quantiles count so that one record moves all as far."""
    block, given = system.block, (system.data.rule == "drop", system.data.kept)
    if isinstance(block.score, Quantiles):
        adding = any(unit.adding for line in system.lines for unit in line.units)
        reaches = [steps_of(block.records, Target(one, 0), adding).reach for one in block.score.shares]
        if not block.families or "exponential" in block.families:
            yield Jointly(block, Fraction(1), tuple(lcm(*reaches) // one for one in reaches), *given)
        return
    for name in NAMES:
        if not block.families or name in block.families:
            yield Peeled(block, Fraction(1), name, *given)


def targets(system: System) -> Iterator[Target | None]:
    """What scores may be about: what is sought, and for averages of an extreme some ranks nearer to the middle."""
    score = system.block.score
    if not isinstance(score, Ranks):
        yield None
        return
    yield Target(score.share, 0)
    if system.block.cost.worst or score.share not in (0, 1):
        return
    amounts = [line.measure.figures({}) for line in system.lines]
    least = min(float(one.get("epsilon", one.get("mu", one.get("rho", 1)))) for one in amounts)
    sign = 1 if score.share == 0 else -1
    for offset in sorted({max(1, round(one / max(least, 1e-6) / 4)) for one in OFFSETS}):
        if system.block.law is not None and offset * 2 < system.block.law.size:
            yield Target(score.share, sign * offset)


def attempts(system: System) -> Iterator[Tried]:
    """Every mechanism at the largest base that the lines allow, with its loss."""
    kept, drops = system.data.kept, system.data.rule == "drop"
    ranked = [calibrated(one, system.lines) for one in at_ranks(system.block, system.lines, drops=drops, kept=kept)]
    ranked = _promising(system.block, [one for one in ranked if one.base > 1])
    if system.block.several:
        yield from valued(system, [*(calibrated(one, system.lines) for one in of_several(system)), *ranked])
        return
    found = [calibrated(one, system.lines) for one in mechanisms(system)]
    score = system.block.score
    if isinstance(score, Ranks) and score.share in (0, 1) and system.block.law is not None:
        some = [plain for plain in found if plain.family == found[-1].family]
        found += [one for plain in some[:3] for one in expecting(system, plain)]
    tables = listed(system.block, system.lines, drops=system.data.rule == "drop")
    if tables is not None:
        yield Tried(tables[0], float(tables[0].loss()), None, tables[1])
    yield from valued(system, found if tables else [*found, *ranked], exactly=tables is not None)


def _promising(block: Selected, found: list[AtRanks]) -> list[AtRanks]:
    """The one of them that costs least at some of the tables, if there is any."""
    if not found:
        return []
    made = simulated(block)
    tables, often = made.tables[::SOME], made.often[::SOME]
    each = [all_costs(part, tables) for part in block.singly]
    return [min(found, key=lambda one: float(noised(one, tables, each) @ often))]


def expecting(system: System, plain: Drawn) -> Iterator[Drawn]:
    """Beyond an extreme all answers stand alike: the mechanism with those behind that the law makes less likely."""
    made = simulated(system.block)
    best = np.array([_sought(system.block, counts) for counts in made.tables])
    often = np.repeat(made.often, system.block.groups)
    chances = (np.bincount(best, often, system.block.size) + 1 / system.block.size) / (often.sum() + 1)
    smooth = np.convolve(np.pad(chances, 2, mode="edge"), (0.1, 0.2, 0.4, 0.2, 0.1), mode="valid")
    for weight in WEIGHTS:
        shifted = calibrated(replace(plain, handicap=(1,) * system.block.size), system.lines)
        if shifted.base > 1:
            away = weight * np.minimum(np.log(smooth.max() / smooth), FARTHEST) / _log(shifted.base)
            yield replace(shifted, handicap=tuple(int(one) for one in np.rint(away)))


# --- losses ---------------------------------------------------------------------------------------


def valued(system: System, found: Sequence[ByChance], *, exactly: bool = False) -> Iterator[Tried]:
    """The loss of each mechanism: derived at the worst, simulated on average over the same tables for all.

    Args: exactly, where all tables are listed: over these, in doubles.
    """
    block = system.block
    if exactly:
        tables = [np.array(table) for table in tables_of(block)]
        weights = None if block.cost.worst else [float(one) for one in block.weights()]
        prices = all_costs(block, tables)
        for one in found:
            assert isinstance(one, Drawn)
            costs = expected(one, tables, prices)
            mean = float(costs.max()) if weights is None else float(np.dot(weights, costs))
            yield Tried(one, float(block.cost.weight) * mean, 0.0)
        return
    if block.cost.worst:
        for one in found:
            assert isinstance(one, Drawn)
            unit = 1 if one.target is None else one.target.share.denominator
            if one.base > 1:
                value = block.cost.weight * block.groups * worst_ranks(one.family, one.base, block.size, unit)
                yield Tried(one, float(value), None)
        return
    made = simulated(block)
    each = [] if isinstance(block.score, Leaders) else [all_costs(part, made.tables) for part in block.singly]
    for one in found:
        if isinstance(one, Drawn):
            costs = expected(one, made.tables, each[0]).reshape(-1, block.groups).sum(axis=1)
        elif isinstance(one, AtRanks):
            costs = noised(one, made.tables, each)
        else:
            costs = together(one, made.tables) if isinstance(one, Jointly) else peeled(one, made.tables)
        costs = costs * made.often
        spread = float(np.std(costs, ddof=1)) / sqrt(len(costs))
        weight = float(block.cost.weight)
        yield Tried(one, weight * float(np.mean(costs)), weight * spread)


def expected(drawn: Drawn, tables: Sequence[NDArray[np.int64]], prices: Sequence[Array]) -> Array:
    """What a mechanism costs on average at each of some tables (t,)."""
    some = max(1, TOGETHER // (drawn.block.size * NODES))
    parts = (slice(start, start + some) for start in range(0, len(tables), some))
    costs = [(law_of_draw(drawn, np.array(tables[part])) * np.array(prices[part])).sum(axis=1) for part in parts]
    return np.concatenate(costs)


def together(drawn: Jointly, tables: Sequence[NDArray[np.int64]]) -> Array:
    """What quantiles drawn together cost on average at each of some tables (t,), once they are put in order.

    Given the level up to which scores go, each is uniform among the answers with such a score. What the order brings is
    simulated: nothing where no two cross.
    """
    random, found, parts = np.random.default_rng(SEED), np.zeros(len(tables)), drawn.block.singly
    prices = [all_costs(part, tables) for part in parts]
    for number, counts in enumerate(tables):
        aims = zip(drawn.targets, drawn.weights, strict=True)
        steps = [weight * steps_of_target(target, counts) for target, weight in aims]
        orders = [np.argsort(one, kind="stable") for one in steps]
        ranked = [one[order] for one, order in zip(steps, orders, strict=True)]
        levels = np.unique(np.concatenate(ranked))
        levels = levels[levels >= max(one[0] for one in ranked)]
        within = np.array([np.searchsorted(one, levels, side="right") for one in ranked])
        chances = np.exp(-float(_log(drawn.base)) * (levels - levels[0]))
        many = np.exp(np.log(within).sum(axis=0) - np.log(within[:, -1]).sum())
        shares = (chances - np.append(chances[1:], 0.0)) * many
        shares /= shares.sum()
        costs = [prices[j][number] for j in range(len(parts))]
        each = list(zip(costs, orders, within, strict=True))
        mean = sum(float(shares @ (np.cumsum(cost[order])[upto - 1] / upto)) for cost, order, upto in each)
        at = random.choice(len(levels), size=ORDERED, p=shares)
        places = np.array([order[(random.random(ORDERED) * upto[at]).astype(int)] for _, order, upto in each])
        ordered = np.sort(places, axis=0)
        saved = sum(float((cost[a] - cost[b]).mean()) for cost, a, b in zip(costs, places, ordered, strict=True))
        found[number] = mean - saved
    return found


def peeled(drawn: Peeled, tables: Sequence[NDArray[np.int64]]) -> Array:
    """How many records values drawn one after another have less than the most frequent, at each of some tables (t,).

    Each draw counts by its mean, given those before it, which are simulated.
    """
    random, counts = np.random.default_rng(SEED), np.array(tables, dtype=np.float64)
    many, rows = drawn.block.score.values, np.arange(len(tables))
    found: Array = np.sort(counts, axis=1)[:, -many:].sum(axis=1)
    left = counts.copy()
    for _ in range(many):
        steps = left.max(axis=1, keepdims=True) - left
        law = LAWS[drawn.draw](np.exp(-float(_log(drawn.base)) * steps))
        found -= (law * np.where(law > 0, counts, 0.0)).sum(axis=1)
        below = np.cumsum(law, axis=1) < random.random((len(tables), 1))
        left[rows, np.minimum(below.sum(axis=1), counts.shape[1] - 1)] = -np.inf
    return found


def all_costs(block: Selected, tables: Iterable[NDArray[np.int64]]) -> list[Array]:
    """What each answer costs at each of some tables, without the weight (k,)."""
    numbers = np.array([float(one) for one in block.numbers or ()])
    return [_costs(block, counts, numbers) for counts in tables]


def _costs(block: Selected, counts: NDArray[np.int64], numbers: Array) -> Array:
    if isinstance(block.score, Ranks):
        best, at_most = _sought(block, counts), np.cumsum(counts)
        aim = float(block.score.share) * int(counts.sum())
        ranks = np.maximum(np.maximum(at_most - counts - aim, aim - at_most), 0.0)
    else:
        best, ranks = _sought(block, counts), (counts.max() - counts).astype(np.float64)
    if block.cost.form == "ranks":
        return np.asarray(ranks)
    if block.cost.form == "mismatch":
        return np.asarray(np.arange(block.size) != best, dtype=np.float64)
    away: Array = np.abs(numbers - numbers[best]) ** block.cost.power
    return away


def _sought(block: Selected, counts: NDArray[np.int64]) -> int:
    """The place of the value that is asked for: the least that this share is at most, the first of equals."""
    if not isinstance(block.score, Ranks):
        return int(np.argmax(counts))
    share, size = block.score.share, int(counts.sum())
    rank = max(-(-share.numerator * size // share.denominator), 1)
    return int(np.searchsorted(np.cumsum(counts), rank)) if size else 0


def steps_at(drawn: Drawn, counts: NDArray[np.int64]) -> Array:
    """The scores of tables (.., k) in steps, as `Drawn.scores`."""
    target = drawn.target
    if target is None:
        return np.asarray(counts.max(axis=-1, keepdims=True) - counts, dtype=np.float64)
    found = steps_of_target(target, counts)
    return found + np.asarray(drawn.handicap, dtype=np.float64) if drawn.handicap else found


def steps_of_target(target: Target, counts: NDArray[np.int64]) -> Array:
    """The scores of tables (.., k) by ranks, in steps, as `behind`."""
    unit, below = target.share.denominator, np.cumsum(counts, axis=-1) - counts
    sizes, place = np.unique(counts.sum(axis=-1, keepdims=True), return_inverse=True)
    aims = np.array([float(target.aim(int(size)) * unit) for size in sizes])
    aim = aims[place.reshape((*counts.shape[:-1], 1))]
    found: Array = np.maximum(np.maximum(below * unit - aim, aim - (below + counts) * unit), 0.0)
    return found


def law_of_draw(drawn: Drawn, counts: NDArray[np.int64]) -> Array:
    """The chances of the answers at tables in doubles (.., k)."""
    steps = steps_at(drawn, counts)
    return LAWS[drawn.family](np.exp(-float(_log(drawn.base)) * (steps - steps.min(axis=-1, keepdims=True))))


def _log(base: Fraction) -> float:
    return log(base.numerator) - log(base.denominator)


@lru_cache(maxsize=64)
def _nodes(count: int) -> tuple[Array, Array]:
    """Nodes and weights of Gauss and Legendre on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return (nodes + 1) / 2, weights / 2


def _exponential(chances: Array) -> Array:
    return np.asarray(chances / chances.sum(axis=-1, keepdims=True))


def _permute_and_flip(chances: Array) -> Array:
    """y_a times the integral over s in [0, 1] of the product over b != a of (1 - s y_b), by Gauss and Legendre."""
    places, weights = _nodes(min(chances.shape[-1] // 2 + 1, NODES))
    left = np.log1p(-places[:, None] * chances[..., None, :])
    product = np.exp(left.sum(axis=-1, keepdims=True) - left)
    found = chances * (weights @ product)
    return np.asarray(found / found.sum(axis=-1, keepdims=True))


LAWS: dict[str, Callable[[Array], Array]] = {"exponential": _exponential, "permute_and_flip": _permute_and_flip}


def _none(system: System) -> Infeasible:
    lines = [conflict_line(system.model, line.span) for line in system.model.requirements]
    families = ", ".join(system.block.families) or "any family"
    reason = f"no mechanism of {families} meets these lines: a table needs a public number of records, and few of them"
    return Infeasible(reason, tuple(lines), (Relaxation("drop the option", None, None),))


def _far(system: System) -> dict[str, Any]:
    """How many records apart the data stand that prove most of every mechanism."""
    halves = [Fraction(k, 2) for k in range(1, 41)] if system.block.records is not None else []
    grid = [*halves, *(Fraction(round(1.2**k)) for k in range(1, 60))]

    def proves(far: Fraction) -> float:
        found = _proved(system, {"records": str(far)})
        return 0.0 if found is None else found[1]

    return {"records": str(max(grid, key=proves))}


def _thresholds(block: Selected) -> dict[str, Any] | None:
    """Of a mean by the law, where the value sought is at a share of the records."""
    try:
        if block.several:
            return {"each": [thresholds(one.sought()) for one in block.singly]}
        return thresholds(block.sought())
    except Refused:
        return None


def _proved(system: System, witness: dict[str, Any]) -> Bounded | None:
    """What a witness proves, if that is anything."""
    try:
        found = read_witness(system.block, JsonNode(witness, "bound"))
        value = least(system.block, system.lines, system.data.kept, found)
    except Refused:
        return None
    return (witness, float_down(value)) if value > 0 else None


def thresholds(sought: Sought) -> dict[str, Any]:
    """Thresholds that are most often near the share that is sought, each at its numbers of records."""
    steps, size = sought.share.denominator, sought.size
    beyond = np.cumsum([float(one) for one in sought.chances])[:-1]
    gaps = np.ones(len(beyond)) if sought.gaps is None else np.array([float(one) for one in sought.gaps])
    wanted, records = list[tuple[float, int, int]](), dict[int, list[int]]()
    for number, chance in enumerate(map(float, sought.groups)):
        mean, deviation = size * chance, sqrt(size * chance * max(0.0, 1 - chance))
        step = max(1, round(deviation * FINE_RECORDS / steps)) * steps
        reach = min(ceil(FAR_RECORDS * deviation / step), max(0, (round(mean) - 1) // step))
        middle, most = max(1, min(round(mean), size)), (size - max(1, min(round(mean), size))) // step
        records[number] = [middle + k * step for k in range(-reach, min(reach, most) + 1)]
        n, at_most = middle, max(ceil(float(sought.share) * middle), 1) - 1
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = at_most * np.log(beyond) + (n - at_most) * np.log1p(-beyond)
        logs += (
            scipy.special.gammaln(n + 1) - scipy.special.gammaln(at_most + 1) - scipy.special.gammaln(n - at_most + 1)
        )
        near = gaps * np.exp(np.nan_to_num(logs, nan=-np.inf))
        best = np.argsort(-near)[: None if sought.added else 1]
        wanted += [(float(near[t]), number, int(t)) for t in best if near[t] > 0]
    found, spent = dict[int, list[int]](), 0
    least_near = NEGLIGIBLE * max((near for near, *_ in wanted), default=0.0)
    for near, number, place in sorted(wanted, reverse=True):
        spent += len(records[number]) * CELLS * steps
        if near < least_near or spent > CHANCES:
            break
        found.setdefault(number, []).append(place)
    each = [{"group": i, "thresholds": sorted(found[i]), "records": records[i]} for i in sorted(found)]
    return {"cells": CELLS, "groups": each}


# --- the plan -------------------------------------------------------------------------------------


def stated(system: System, drawn: Executed) -> dict[str, Any]:
    """The mechanism as it stands in the plan, with what it guarantees."""
    guarantees = [_promised(system.model, drawn, line, number) for number, line in enumerate(system.lines)]
    reached = [(one, one.weight * drawn.off) for one in system.block.accuracy if isinstance(drawn, Drawn)]
    lines = accuracy_json((one.line, one.text, value, one.bound) for one, value in reached)
    return {"mechanism": write(drawn), "guarantees": guarantees, "accuracy": lines}


def _prices(system: System, best: Tried) -> Iterator[dict[str, Any]]:
    """What a tenth more epsilon in each line that binds would bring."""
    block, drawn, lines = system.block, best.drawn, system.lines
    for number, (line, asked) in enumerate(zip(lines, system.model.requirements, strict=True)):
        if "epsilon" not in asked.measure.amounts or not best.loss or isinstance(drawn, Listed):
            continue
        figures = line.measure.figures({})
        amounts = tuple((figures | {"epsilon": figures["epsilon"] * STEP}).items())
        eased = replace(line, measure=replace(line.measure, amounts=amounts))
        others = [eased if i == number else one for i, one in enumerate(lines)]
        (after,) = valued(system, [calibrated(replace(drawn, block=block), others)])
        if after.loss < best.loss * (1 - 1e-6):
            yield price(asked, after.loss / best.loss - 1)


def _promised(model: Model, drawn: Executed, line: Obligation, index: int) -> dict[str, Any]:
    """The pure epsilon of what is drawn, rounded up, from which the line follows."""
    epsilon = epsilon_of_unit(drawn, line.units[0])
    asked = line.measure.figures({})
    said = Fraction(decimal_up(epsilon)) if epsilon else Fraction(0)
    if line.measure.of in PURE_MEASURES:
        said = min(said, asked["epsilon"])
    return guarantee(model.requirements[index], index, {"epsilon": said}, (NOTE,))
