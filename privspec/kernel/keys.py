"""Keys that nobody has listed: each is shown if its records reach a threshold of its own, drawn from one law.

A key with n records draws a threshold i from 1, 2, ... and is shown if n >= i; where counts are released, its count is
then n - i + centre. So a key that no record has is never shown. The chance that a key of n records is shown is that of
i <= n: the table of these chances is what is proved best where one record moves one key (Desfontaines, Voss, Gipson &
Mandayam 2022; noise/notes/unknown-keys.md).
"""

from __future__ import annotations

from dataclasses import field
from fractions import Fraction
from itertools import accumulate
from math import ceil, floor

from privspec.kernel.changes import Records
from privspec.kernel.core.numbers import ZERO, exp_up
from privspec.kernel.core.problem import ContributionBound, PlanUnderCheck, Rules, Unit, read_guarantees, wrong_person
from privspec.kernel.core.reading import Grid, JsonNode, Positive, Refused, Size, Whole, frozen
from privspec.kernel.laws.laplace import laplace_size, laplace_variance
from privspec.kernel.laws.threshold import Normal, Threshold
from privspec.kernel.measures import APPROXIMATE
from privspec.kernel.promises import OneOutput, Promise, Question, are_chances, judge_promises
from privspec.kernel.rules import Hint
from privspec.kernel.terms import Beside, Shown
from privspec.kernel.worth import judge_worth

ALL = "all mechanisms that show only keys that occur"
CLASSES = ("", ALL, f"{ALL}, with whole counts")
CLAIMS = ("share", "scale", "middle", "bound")
ERRORS, KINDS = ("missed", "absolute", "squared"), ("expected", "worst")
WORDS = {
    "KeyBlock.error": ERRORS,
    "KeyBlock.kind": KINDS,
    "Accuracy.error": ERRORS,
    "Accuracy.kind": KINDS,
    "Cost.error": ERRORS[1:],
    "Cost.kind": KINDS,
}
POWERS = {"missed": 0, "absolute": 1, "squared": 2}
UNITS = {"missed": "share of the keys", "absolute": "records", "squared": "squared records"}
MOST_STEPS = 200_000
FINEST = 2**40
MOST_UNITS = 8
"""Units by which data are apart between which an error is bounded."""
MOST_ROWS = 2_000_000
"""Multipliers of the rows of all counts beyond some."""
GRAIN = 100
"""Binary places of multipliers."""
MOST_RECORDS = 1000
"""Records of one person."""
FINE = 192
"""Binary places of the best chances."""


@frozen
class KeyColumn:
    """A column that is read: its values in order, or integers between two ends, or neither where they are unknown.

    `grouped`: a part of the key, else it has a condition; `kept`: the places of the values that count, None for all.
    """

    name: str
    grouped: bool
    values: tuple[str, ...]
    lower: Whole | None
    upper: Whole | None
    kept: tuple[int, ...] | None

    def __post_init__(self) -> None:
        listed = (self.lower is not None) + bool(self.values)
        if (self.lower is None) != (self.upper is None) or listed > 1:
            raise Refused("is a column of values of two kinds")
        if not listed and (not self.grouped or self.kept is not None):
            raise Refused("has conditions on values that are unknown")


@frozen
class Accuracy:
    """An error that a line asks to be `bound` at most."""

    error: str
    at_least: Positive
    weight: Size
    kind: str
    bound: Fraction
    line: Whole
    text: str


@frozen
class Cost:
    """What it costs that an output which stands beside the keys is off."""

    output: str
    error: str
    weight: Size
    kind: str
    at_least = 1


@frozen
class Added:
    """Sums that stand beside keys: of a column's numbers, or of ones, how many records there are, where it names none.

    `each`: the output with the sum of every key that is shown; `rest`: the one with that of all other keys together; or
    `whole`: the one with that of all keys.
    """

    column: str | None
    lower: Fraction
    upper: Fraction
    each: str | None
    rest: str | None
    whole: str | None
    costs: tuple[Cost, ...]

    def __post_init__(self) -> None:
        of_ones = self.lower == self.upper == 1 and self.each is None
        if not (of_ones if self.column is None else self.lower < self.upper):
            raise Refused("adds up numbers between no ends, or counts the records of a key twice")
        if bool(self.each or self.rest) == (self.whole is not None) or not {cost.output for cost in self.costs} <= {
            *self.outputs
        }:
            raise Refused("adds up what no output shows, or what one record is in twice, or counts another error")

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(name for name in (self.each, self.rest, self.whole) if name is not None)

    @property
    def together(self) -> str | None:
        """The output with one number, of several keys together."""
        return self.rest or self.whole

    @property
    def farthest(self) -> Fraction:
        """As far as one record more or less moves a sum at most."""
        return max(abs(self.lower), abs(self.upper))


@frozen
class KeyBlock:
    """As the problem states it: what a key is, and what it costs to hide one, or to be off in its count.

    `added`: the sums beside keys; the numbers of a column lie on a lattice, so many `steps` from one end to the other.
    """

    FORM = "keys"

    source: str
    output: str
    columns: tuple[KeyColumn, ...]
    counts: bool
    error: str
    at_least: Positive
    weight: Size
    expression: str
    kind: str
    sizes: Grid | None
    accuracy: tuple[Accuracy, ...]
    added: tuple[Added, ...] = ()
    steps: Positive = 1

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        sums = {(one.column, one.whole is None) for one in self.added}
        if len({*names, *(one.column for one in self.added)}) < len(names) + len({name for name, _ in sums}):
            raise Refused("has a column twice")
        if len(set(names)) < len(names) or not any(column.grouped for column in self.columns):
            raise Refused("has keys of no columns, or a column twice")
        if len(sums) < len(self.added):
            raise Refused("has one sum twice")
        if len(set(self.outputs)) < len(self.outputs) or self.steps > FINEST:
            raise Refused("names an output twice, or has a lattice that is too fine")
        if any((one.lower / self.unit(one)).denominator > 1 for one in self.added):
            raise Refused("adds up numbers that are no whole steps")
        chances = self.sizes.rows[0] if self.sizes is not None and len(self.sizes.rows) == 1 else []
        if self.sizes is not None and not are_chances(chances, 1 / self.sizes.unit):
            raise Refused("has sizes whose chances do not add up to one")
        errors: tuple[KeyBlock | Accuracy, ...] = (self, *self.accuracy)
        for one in errors:
            if self.counts == (one.error == "missed") or (self.counts and one.at_least > 1):
                raise Refused("has an error that is not one of what is released")
        costs: tuple[KeyBlock | Accuracy | Cost, ...] = (*errors, *(cost for sums in self.added for cost in sums.costs))
        for weighed in costs:
            if not weighed.weight:
                raise Refused("has an error that costs nothing")
            if weighed.kind == "expected" and not any(chances[weighed.at_least - 1 :]):
                raise Refused("has no law of sizes, or weighs keys of a size that none has")

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self.output, *(name for one in self.added for name in one.outputs))

    def unit(self, one: Added) -> Fraction:
        """What every number that is added up is a whole multiple of."""
        return Fraction(1) if one.column is None else (one.upper - one.lower) / self.steps

    def averaged(self, what: KeyBlock | Accuracy | Cost, errors: list[Fraction], beyond: Fraction) -> Fraction:
        """The loss, or an error of a line, where a key of n records has errors[n - 1], and any with more `beyond`."""
        errors = errors[what.at_least - 1 :]
        if what.kind == "worst" or self.sizes is None:
            return what.weight * max([*errors, beyond])
        chances = self.sizes.rows[0][what.at_least - 1 :]
        known = sum((c * e for c, e in zip(chances, errors, strict=False)), ZERO)
        return what.weight * (known + sum(chances[len(errors) :]) * beyond) / sum(chances)


@frozen
class Keys(OneOutput):
    """What is executed: chances[i - 1] is that of the threshold i: steps[i - 1] of `total`.

    `scales`: those of the discrete Laplace noise of the sums beside keys, each in units of its lattice.
    """

    FORM = "keys"

    block: KeyBlock
    chances: Grid
    centre: int
    scales: tuple[Fraction, ...] = ()
    total: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", sum(self.steps))
        if len(self.chances.shape) != 1 or not 0 < len(self.steps) <= MOST_STEPS:
            raise Refused("has no thresholds, or too many")
        if not are_chances(self.steps, 1 / self.chances.unit):
            raise Refused("is no law: chances to be shown fall with the count, or do not add up to one")
        if self.centre > (len(self.steps) if self.block.counts else 0):
            raise Refused("moves counts by more than there are thresholds, or where none are released")
        if len(self.scales) != len(self.block.added) or min(self.scales, default=Fraction(1)) <= 0:
            raise Refused("has noise for other sums than the problem, or of no size")

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.block.outputs

    @property
    def steps(self) -> tuple[int, ...]:
        return self.chances.entries

    def kept(self) -> list[Fraction]:
        """The chances that a key of 1, 2, ... records is shown; the last is one."""
        return [Fraction(reached, self.total) for reached in accumulate(self.steps)]

    @property
    def law(self) -> Threshold:
        return Threshold(self.steps, self.block.counts)

    @property
    def term(self) -> Shown:
        beside = tuple(Beside(one.outputs, one.farthest / self.block.unit(one) / scale) for one, scale in self.sums)
        return Shown(self.block.output, self.law, beside)

    def loss(self) -> Fraction:
        return self.error(self.block) + sum(self.costs(), ZERO)

    @property
    def sums(self) -> list[tuple[Added, Fraction]]:
        """What stands beside keys, each with the scale of its noise."""
        return list(zip(self.block.added, self.scales, strict=True))

    def variance(self, one: Added, scale: Fraction) -> Fraction:
        """Of the noise in each of its numbers."""
        return laplace_variance(scale, Fraction(1)) * self.block.unit(one) ** 2

    def costs(self) -> list[Fraction]:
        """What the errors of the sums cost, one by one."""
        return [self._cost(one, scale, cost) for one, scale in self.sums for cost in one.costs]

    def _cost(self, one: Added, scale: Fraction, cost: Cost) -> Fraction:
        """That of noise; and in sums by key those of a key that is hidden, which count as 0."""
        power = POWERS[cost.error]
        noise = self.variance(one, scale) if power == 2 else laplace_size(scale) * self.block.unit(one)
        kept = self.kept() if cost.output == one.each else [Fraction(1)]
        errors = [share * noise + (1 - share) * (n * one.farthest) ** power for n, share in enumerate(kept, 1)]
        return self.block.averaged(cost, errors, noise)

    def error(self, what: KeyBlock | Accuracy) -> Fraction:
        """The error of hidden keys and of counts, by the law of sizes or at the worst size."""
        block, kept = self.block, self.kept()
        if not block.counts:
            return block.averaged(what, [1 - chance for chance in kept], ZERO)
        power = POWERS[what.error]
        noise = accumulate(step * abs(self.centre - i) ** power for i, step in enumerate(self.steps, 1))
        errors = [
            Fraction(off, self.total) + (1 - chance) * n**power
            for n, (off, chance) in enumerate(zip(noise, kept, strict=True), 1)
        ]
        return block.averaged(what, errors, errors[-1])


# --- what one unit moves, and what no mechanism is below ------------------------------------------------


def moved(unit: Unit, kept: ContributionBound | None) -> Records:
    """Of one record each is in one key; nothing says of several in which they are, but where a person keeps few."""
    each = unit.count if kept is None or kept.per_cell is None else kept.per_cell
    return Records(unit.count, unit.adding, each)


def best_kept(epsilon: Fraction, delta: Fraction, most: int) -> list[Fraction]:
    """At least the largest chances with which any (epsilon, delta)-DP mechanism shows a key of 1, 2, ... records.

    It never shows a key that no record has, and one record more or less makes it at most
    min(e^epsilon p + delta, 1 - e^-epsilon (1 - p - delta), 1). At most so many, or until one is reached.
    """
    ratio, found, unit = exp_up(epsilon), [ZERO], Fraction(1, 2**FINE)
    while found[-1] < 1 and len(found) <= most:
        before = found[-1]
        after = min(ratio * before + delta, 1 - (1 - before - delta) / ratio, Fraction(1))
        found.append(min(ceil(after / unit) * unit, Fraction(1)))
    return found[1:]


def least_loss(block: KeyBlock, epsilon: Fraction, delta: Fraction) -> Fraction:
    """At most the error of keys by any mechanism that shows only those that occur: what it hides counts as 0."""
    return _hidden(block, block, 1, _kept(block, epsilon, delta))


def least_cost(block: KeyBlock, change: Records, epsilon: Fraction, delta: Fraction) -> Fraction:
    """At most what sums cost in any such mechanism: of keys that it hides, which count as 0, and of all keys.

    The latter at worst: between data some units apart, one of the two is off by half of what these move.
    """
    costs = [(one, cost) for one in block.added for cost in one.costs]
    by_key = [(one, cost) for one, cost in costs if cost.output == one.each]
    kept = _kept(block, epsilon, delta) if by_key else []
    least = sum((_hidden(block, cost, one.farthest, kept) for one, cost in by_key), ZERO)
    for one, cost in costs:
        if cost.output == one.whole and cost.kind == "worst":
            each = change.count * (one.farthest if change.adding else one.upper - one.lower)
            least += cost.weight * _between(each, POWERS[cost.error], epsilon, delta)
    return least


def _between(each: Fraction, power: int, epsilon: Fraction, delta: Fraction) -> Fraction:
    """At most the worst error of a number that k units move by k times `each`, for the best k.

    Two laws that are (e, d)-close have 2 (1 - d) / (e^e + 1) in common, and there one answer serves both data.
    """
    most, one = ZERO, exp_up(epsilon)
    for k in range(1, MOST_UNITS + 1):
        ratio = exp_up(k * epsilon)
        apart = delta * sum((one**j for j in range(k)), ZERO)
        common = 2 * (1 - apart) / (1 + ratio)
        most = max(most, common * (k * each / 2) ** power)
    return most


def _kept(block: KeyBlock, epsilon: Fraction, delta: Fraction) -> list[Fraction]:
    """The best chances of all counts that matter."""
    most = MOST_STEPS if block.sizes is None else len(block.sizes.rows[0])
    return best_kept(epsilon, delta, max(most, block.at_least))


def _hidden(block: KeyBlock, what: KeyBlock | Cost, each: Fraction | int, kept: list[Fraction]) -> Fraction:
    """What an error of hidden keys costs, each record of which adds so much."""
    power = POWERS[what.error]
    return block.averaged(what, [(1 - chance) * (n * each) ** power for n, chance in enumerate(kept, 1)], ZERO)


Rows = dict[tuple[int, int], int]
"""Multipliers by a number of records n and an outcome, of the row between n and n + 1; 0 is the hidden outcome."""


def _rows(block: KeyBlock, witness: JsonNode) -> tuple[list[int], Rows, Rows]:
    """The chances of 1, 2, ... records in whole numbers, and multipliers in units of 2^-100 of their sum."""
    columns, near, last, *far, weights = witness.fields("columns", "near", "end", "up", "down", "weights")
    if block.kind == "expected" and block.sizes is not None:
        weights.same(None)
        chances = block.sizes.rows[0]
    else:
        chances = [floor(Fraction(one.double()) * 2**60) for one in weights.items()]
    whole, up, down = sum(chances) << GRAIN, Rows(), Rows()
    if min(chances, default=-1) < 0 or not whole:
        raise weights.wrong("are no weights of numbers of records")
    for item in columns.items():
        outcome, first, *sides = item.fields("outcome", "first", "up", "down")
        o, start = outcome.integer(0, MOST_STEPS), first.integer(0, MOST_STEPS)
        for rows, side in zip((up, down), sides, strict=True):
            for n, one in enumerate(side.items(), start):
                if (n, o) in rows:
                    raise item.wrong("is about an outcome that another column is about")
                rows[n, o] = floor(Fraction(one.double()) * whole)
    start, end_ = near.integer(1, len(chances)), last.integer(1, len(chances))
    shares = [[floor(Fraction(one.double()) * 2**GRAIN) for one in side.items()] for side in far]
    reach = len(shares[0]) // 2
    if max(end_ - start, 0) * len(shares[0]) > MOST_ROWS or {len(one) for one in shares} != {2 * reach + 1}:
        raise witness.wrong("has more multipliers than are read, or others upwards than downwards")
    for n in range(start, end_):
        for rows, some in zip((up, down), shares, strict=True):
            for k, share in enumerate(some, -reach):
                if (n, n + k) in rows or n + k < 1:
                    raise witness.wrong("has two multipliers of one row")
                rows[n, n + k] = share * chances[n - 1]
    return chances, up, down


def free_near(count: int, own: set[int], top: int) -> list[int]:
    """The nearest counts from 1 to `top`, below and above a number of records, that have no multipliers there."""
    below = next((o for o in range(count, 0, -1) if o not in own), None)
    above = next((o for o in range(count, top + 1) if o not in own), None)
    return [o for o in (below, above) if o is not None]


def count_bound(block: KeyBlock, epsilon: Fraction, delta: Fraction, witness: JsonNode) -> Fraction:
    """What multipliers prove of every mechanism that shows only keys that occur, with whole counts.

    With chances x of the outcomes of a key of n records, x[n + 1] <= R x[n] + s and x[n] <= R x[n + 1] + t for every
    outcome, R = e^epsilon, the sums of s and of t at most delta each; with no record a key is hidden. For any
    multipliers a row of n records costs at least the least, over all outcomes, of its error with what is left of them.
    """
    chances, up, down = _rows(block, witness)
    if min([*up.values(), *down.values()], default=0) < 0 or any(
        n == 0 < o and value for (n, o), value in down.items()
    ):
        raise witness.wrong("has a multiplier that is negative, or of a count of a key that no record has")
    ratio, power = int(exp_up(epsilon) * 2**128), 2 if block.error == "squared" else 1
    seen, most_up, most_down = dict[int, set[int]](), dict[int, int](), dict[int, int]()
    for rows, most in ((up, most_up), (down, most_down)):
        for (n, o), value in rows.items():
            most[n] = max(most.get(n, 0), value)
            for count in (n, n + 1):
                seen.setdefault(count, set()).add(o)
    total = (down.get((0, 0), 0) << 128) - ratio * up.get((0, 0), 0)
    # what lies below 1 is hidden, and what lies above the largest outcome is that, with no larger error
    top = max([len(chances), *seen, *(o for own in seen.values() for o in own)])
    for n in range(1, top + 1):
        chance, own = (chances[n - 1] if n <= len(chances) else 0) << GRAIN, seen.get(n, set())
        free = (abs(n - o) for o in free_near(n, own, top))
        left = [(chance * d**power) << 128 for d in (*free, *(() if 0 in own else (n,)))]
        for o in own:
            error = chance * (n if o == 0 else abs(n - o)) ** power
            left.append(
                ((error + up.get((n - 1, o), 0) + down.get((n, o), 0)) << 128)
                - ratio * (up.get((n, o), 0) + down.get((n - 1, o), 0))
            )
        total += min(left)
    spent = delta * (sum(most_up.values()) + sum(most_down.values()))
    return block.weight * (Fraction(total, 2**128) - spent) / (sum(chances) << GRAIN)


def lower_bound(block: KeyBlock, change: Records, epsilon: Fraction, delta: Fraction, witness: JsonNode) -> Fraction:
    """What no mechanism that shows only keys that occur is below: where multipliers say more, with whole counts."""
    alone, beside = least_loss(block, epsilon, delta), least_cost(block, change, epsilon, delta)
    if witness.absent:
        return alone + beside
    if not block.counts:
        raise witness.wrong("is about counts, and none are released")
    return max(alone, count_bound(block, epsilon, delta, witness)) + beside


# --- plans ---------------------------------------------------------------------------------------------


class KeyRules(Rules):
    """How plans about unknown keys are judged."""

    mechanisms = (Keys,)

    def privacy(self, case: PlanUnderCheck) -> Keys:
        keys: Keys = self.read(case.frame, case.mechanism)
        found = read_guarantees(case.guarantees, case.frame)
        held = [(data.name, data.party, data.rule) for data in case.frame.data]
        if held != [(keys.block.source, None, "drop")] or not case.frame.trust.means.central:
            raise case.block.wrong("is about other data, or other trust, than the problem")
        if len(found) != 1 or found[0].obligation.measure.common is not APPROXIMATE:
            raise Refused(f"one line of {APPROXIMATE.name} is judged for unknown keys, and no other")
        (one,), asked = found, found[0].obligation
        (unit, *more), outputs = asked.units, {*keys.outputs}
        (data,) = case.frame.data
        if wrong := wrong_person([unit], [data.kept]):
            raise Refused(f"line {asked.line} {wrong}")
        fits = unit.kind in ("record", "person") and unit.party is None and unit.apart is None and not more
        fits = fits and unit.count <= MOST_RECORDS and asked.wrt == (keys.block.source,)
        if not fits or not {*asked.outputs} == {*asked.seen} == outputs:
            raise Refused(f"line {asked.line} is about outputs, inputs or units that are not judged here")
        share, scale, middle, _ = case.claims.fields(optional=CLAIMS)
        if share.absent:
            hint = Hint(epsilon=one.asked["epsilon"], threshold=Normal(scale.exact(), middle.exact()))
        else:
            hint = Hint(epsilon=one.asked["epsilon"], threshold=share.exact(0))
            scale.same(None)
            middle.same(None)
        notes = (*keys.law.notes, "people") if unit.kind == "person" else keys.law.notes
        case.says("view", True, f"one keeper sees {keys.block.source}; a key that no record has is never shown")
        text = f"thresholds 1 to {len(keys.steps)}, their chances exactly one in all"
        case.says("law", True, f"{text}: the chance to be shown grows with the count, from 0 at no record")
        if keys.block.added:
            sums = ", ".join(name for added in keys.block.added for name in added.outputs)
            case.says("sums", True, f"{sums}: given what is shown, a record is in one sum; noise on whole steps")
        question = Question(moved(unit, data.kept), one.asked, one.achieved, hint)
        words = f"delta {{:.8g}} at epsilon {float(one.asked['epsilon']):.8g}"
        judge_promises(case, keys.term, [Promise(one, (question,), notes, words, ("delta", "epsilon"))])
        return keys

    def judge(self, case: PlanUnderCheck) -> Keys:
        keys = self.privacy(case)
        block, asked = keys.block, case.frame.obligations[0].measure.figures({})
        proof = case.claims.fields(optional=CLAIMS)[-1]
        (unit,) = case.frame.obligations[0].units
        change = moved(unit, case.frame.data[0].kept)
        derived = lower_bound(block, change, asked["epsilon"], asked["delta"], proof)
        words = [block.expression, "" if block.added else UNITS[block.error], block.kind]
        lines = ((one.line, one.text, one.bound, keys.error(one)) for one in block.accuracy)
        judge_worth(case, keys.loss(), derived, (CLASSES[1 + (not proof.absent)],), "such mechanism", words, lines)
        return keys
