"""Tables judged: the lines that they obey, what they cost, and that no table costs less.

The bound is the dual of a linear program, with a tree of boxes where scale and background of estimates are chosen.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field
from fractions import Fraction
from math import ceil, floor, lcm

from privspec.kernel.changes import Rows
from privspec.kernel.core.numbers import BITS, ZERO, exp_up, sqrt_up
from privspec.kernel.core.problem import Bound, Frame, Mechanism, Obligation, PlanUnderCheck, View
from privspec.kernel.core.reading import Grid, JsonNode, Refused, Size, canonical, frozen, read
from privspec.kernel.core.tables import Compared, judge, triples
from privspec.kernel.divergences import Curved, HockeyStick
from privspec.kernel.losses import FiniteLaws
from privspec.kernel.promises import SharedBudget
from privspec.kernel.rules import derive
from privspec.kernel.tables_forms import Amount, ChosenLaw, Contrast, Rounds, Task, Variation
from privspec.kernel.terms import Table
from privspec.kernel.worth import LowerBound, PriceableRules, judge_bounded, judge_lines
from privspec.kernel.worth.duals import ONE, Dual, multiplier

Part = tuple[list[Fraction], Grid | None, tuple[Variation, ...]]
"""Weights of rows, average costs, and total variations."""


DIGITS = 2**31
"""Most binary digits of all numerators together; a denominator has at most 2^17."""


@frozen
class Executed(Mechanism):
    """What `run` draws from: rows of exact probabilities, numbers that were chosen, and the masses of chosen laws."""

    FORM = "table"

    block: Task
    inputs: object
    outputs: object
    probabilities: tuple[tuple[Size, ...], ...]
    scalars: dict[str, Fraction]
    laws: dict[str, dict[str, Size]]
    rounds: SharedBudget | None = None
    table: Table = field(init=False)
    chosen: dict[str, Fraction] = field(init=False)

    def __post_init__(self) -> None:
        task = self.block
        if (canonical(self.inputs), canonical(self.outputs)) != (canonical(task.rows), canonical(task.columns)):
            raise Refused("is not what the problem and the mechanism say: it has other inputs or outputs")
        object.__setattr__(self, "table", task.table(*common_law(self.probabilities, task.shape)))
        stated = {name: set(masses) for name, masses in self.laws.items()}
        if set(self.scalars) != set(task.ends()) or stated != {law.name: set(law.labels) for law in task.laws}:
            raise Refused("does not have just the numbers and laws that the problem leaves open")
        chosen = dict(self.scalars)
        for law in task.laws:
            chosen |= self._masses(law)
        object.__setattr__(self, "chosen", chosen)

    def _masses(self, law: ChosenLaw) -> dict[str, Fraction]:
        """The numbers that the masses of a law are."""
        shares = zip(law.masses, map(self.laws[law.name].__getitem__, law.labels), strict=True)
        return {name: self.whole(law) * share for name, share in shares}

    def whole(self, law: ChosenLaw) -> Fraction:
        """What the masses of a law add up to."""
        return Fraction(1) if law.weight is None else 1 - self.scalars[law.weight]


def common_law(
    table: tuple[tuple[Fraction, ...], ...], size: tuple[int, int]
) -> tuple[tuple[tuple[int, ...], ...], int]:
    """Numerators and common denominator of a law of a known size, whose rows sum to one."""
    whole = 1
    if len(table) != size[0] or any(len(row) != size[1] for row in table):
        raise Refused(f"has probabilities of another size than {size[0]} x {size[1]}")
    for below in {p.denominator for row in table for p in row}:
        whole = lcm(whole, below)
        if whole.bit_length() * size[0] * size[1] > DIGITS or whole.bit_length() > DIGITS >> 14:
            raise Refused("has probabilities that have no common denominator of a reasonable size")
    laws = tuple(tuple(p.numerator * (whole // p.denominator) for p in row) for row in table)
    for number, law in enumerate(laws):
        if sum(law) != whole:
            raise Refused(f"has probabilities of a row, {number}, that does not sum to one")
    return laws, whole


def laws_compared(table: Table, outputs: Collection[str], asked: Compared) -> FiniteLaws:
    """The laws of what is seen of all rows that are compared, whatever their distance is."""
    change = Rows(tuple((a, b) for a, b, _ in triples(asked.pairs, len(asked.squares))), asked.cliques, asked.drawn)
    (laws,) = derive(table, frozenset(outputs), change).loss.factors
    assert isinstance(laws, FiniteLaws)
    return laws


class Tables(PriceableRules):
    """A table drawn exactly: privacy first, then what it costs and the lines that it obeys."""

    mechanisms = (Executed,)
    claims = ("bound",)

    def free(self, executed: Executed) -> bool:
        loss = executed.block.loss
        return loss.bare and not loss.constant and executed.block.estimates is None

    def floor(self, executed: Executed) -> Fraction:
        return least_of_any(executed.block)

    def proofs(self, frame: Frame, executed: Executed, items: JsonNode) -> tuple[Sequence[LowerBound], tuple[str, ...]]:
        words = (among(executed.block),)
        return [TableBound(words, executed.block, one) for one in items.items()], words

    def judge(self, case: PlanUnderCheck) -> Executed:
        executed, value, words = self.measured(case)
        words_of_class = among(executed.block)
        bound = None if case.claims.value == {} else TableBound((words_of_class,), executed.block, case.claims)
        try:
            judge_bounded(case, value, bound, "table", words, words_of_class)
        except Refused as reason:
            case.says("bound", False, str(reason))
        return executed

    def privacy(self, case: PlanUnderCheck) -> Executed:
        executed: Executed = self.read(case.frame, case.mechanism)
        task = executed.block
        case.says("law", True, f"{len(task.rows)} x {len(task.columns)} exact probabilities; each row sums to one")
        if task.choices or task.laws:
            _judge_choices(case, executed)
        guarantees = judge(case, executed.table, task.compared, executed.chosen)
        if task.rounds is not None or executed.rounds is not None:
            judge_rounds(case, task.rounds, executed.rounds, [one.asked.get("epsilon") for one in guarantees])
        for one in guarantees:
            grouped = ["group-privacy"] if any(unit.count > 1 for unit in one.obligation.units) else []
            repeated = ["repeated-votes"] if task.rounds else []
            JsonNode(list(one.because), "because").same(["tables", *grouped, *repeated])
        return executed

    def measured(self, case: PlanUnderCheck) -> tuple[Executed, Fraction, list[str]]:
        """What is executed, its loss, and how that is said; all but the bound is judged."""
        executed = self.privacy(case)
        task, table, chosen, prior = executed.block, executed.table, executed.chosen, executed.block.weights()
        for number, line in enumerate(task.conditions):
            wrong = [r for r, total in enumerate(line.totals(table, chosen)) if total > 0 or (line.equality and total)]
            text = "holds of all averages" if line.joint is not None else "holds at every row"
            if wrong:
                text = "does not hold" + ("" if line.joint is not None else f" at {task.rows[wrong[0]]}")
            case.says("conditions", not wrong, f"line {line.line} {text}: {line.text}", number)
        limits = [(o.line, o.text, o.limit, o.amount.value(table, prior, chosen)) for o in task.accuracy]
        lies = [(v.line, v.text, v.limit, max([ZERO, *v.contrast().gaps(table).values()])) for v in task.manipulation]
        judge_lines(case, limits + lies, ZERO, stated=False)
        _fairness(case, task, table)
        loss, worth = task.loss, task.loss.value(table, prior, chosen) + task.errors(table, chosen)
        averaged = loss.average is not None or loss.variations or loss.prices or task.estimates is not None
        kind = "expected" if averaged or len(loss.worst) != 1 else "worst"
        return executed, worth, [task.expression, "units of the loss expression", kind]

    def reach(
        self, case: PlanUnderCheck, executed: Executed, view: View, outputs: tuple[str, ...], witness: JsonNode
    ) -> Bound:
        """The largest logarithm of a ratio, rounded up; the largest total variation where a law has what another lacks.

        A unit that no line is about may move from any of its rows to any other.
        """
        witness.same(None)
        if view.difference.absent:
            return None
        seen = executed.table.outputs if case.frame.trust.means.public else outputs
        laws = laws_compared(executed.table, seen, read(Compared, view.difference))
        epsilon = laws.epsilon
        return {"epsilon": epsilon or ZERO, "delta": laws.delta_up(ZERO) if epsilon is None else ZERO}


def _judge_choices(case: PlanUnderCheck, executed: Executed) -> None:
    """Numbers that were picked are in their ranges, and masses are those of laws."""
    for choice in executed.block.choices:
        value, low, high = executed.chosen[choice.name], choice.low, choice.high
        holds = low <= value <= high
        holds = holds and not (choice.low_open and value == low) and not (choice.high_open and value == high)
        case.says("choices", holds, f"{choice.name} = {float(value):.9g} is in its range")
    for law in executed.block.laws:
        holds = sum(executed.laws[law.name].values()) == 1 and executed.whole(law) >= 0
        case.says("choices", holds, f"{law.name} is a law")


def judge_rounds(
    case: PlanUnderCheck, rounds: Rounds | None, said: SharedBudget | None, epsilons: list[Fraction | None]
) -> None:
    """So many rounds share a budget, and every line asks for the share of one."""
    if rounds is None or said is None:
        raise case.mechanism.wrong("is not what the problem and the mechanism say: rounds share a budget")
    count, budget = rounds.count, rounds.budget
    text = f"{count} rounds share epsilon = {float(budget):.9g}: each spends {float(budget / count):.9g}"
    holds = said == SharedBudget(count, budget, budget / count, count) and {*epsilons} == {budget / count}
    case.says("rounds", holds, text)


def _fairness(case: PlanUnderCheck, task: Task, table: Table) -> None:
    """The laws of groups are at most so far apart; `achieved` is no less than the largest distance."""
    listed = case.fairness.items(len(task.fairness)) if task.fairness or not case.fairness.absent else []
    for number, (one, item) in enumerate(zip(task.fairness, listed, strict=True)):
        most, asked, holds = one.largest(table, task.weights())
        holds = holds and all(t**2 <= square for t, square in zip(one.tolerances, one.squares, strict=True))
        tolerance, achieved = item.stating({"line": one.line, "text": one.text}, "tolerance", "achieved")
        holds = holds and achieved.exact() >= most and tolerance.exact() == asked
        words = f"line {one.line}: largest total variation {float(most):.6g}, asked for {float(asked):.6g}"
        case.says("fairness", holds, words, number)


def among(task: Task) -> str:
    """What a bound is about."""
    counted = " (its order is not looked at)" if task.counted else ""
    return f"all tables Pr({', '.join(task.outputs)} | {', '.join(task.of)}){counted}"


def entries(item: JsonNode, *extents: int, signed: bool = False) -> list[list[int]]:
    """Places [i, j, ..., z]: whole numbers below the extents, each place once, then a multiplier on the grid.

    Were one split into several, what is paid once for the largest of a pair would be paid for a part of it.
    """
    found, low = dict[tuple[int, ...], int](), -1e300 if signed else 0
    for row in item.value if isinstance(item.value, list) else [None]:
        if not isinstance(row, list) or len(row) != len(extents) + 1:
            raise item.wrong("has an entry of another form")
        *at, z = row
        inside = all(type(i) is int and 0 <= i < extent for i, extent in zip(at, extents, strict=True))
        if not inside or tuple(at) in found:
            raise item.wrong("has two multipliers for one place" if inside else "has an entry for what is not there")
        if type(z) not in (int, float) or not low <= z < 1e300:
            raise item.wrong("has a multiplier that is no number from 0 on")
        found[tuple(at)] = multiplier(z)
    return [[*at, z] for at, z in found.items()]


def contrasts(task: Task, lines: Sequence[Obligation]) -> list[Contrast]:
    """What obligations, bounds on lies and lines of fairness say of pairs of laws: every table that meets them does."""
    table = task.table((), 1)
    found = []
    for compared, one in zip(task.compared, lines, strict=True):
        measure, (epsilon, slack) = one.measure.of, (ZERO, ZERO)
        condition = measure.condition(one.measure.figures({}))
        bends = condition if isinstance(condition, Curved) else None
        if isinstance(condition, HockeyStick):
            epsilon, slack = condition.epsilon, condition.delta / (compared.inputs if measure.each_output else 1)
        exponents = [sqrt_up(square * epsilon**2, 2 * BITS) for square in compared.squares] + [epsilon]
        limits = [(0, Fraction(1)) if bends else (int(exp_up(q) * (1 << BITS)), slack) for q in exponents]
        pairs = {pair: limits[level] for a, b, level in compared.every() for pair in ((a, b), (b, a))}
        mixtures = compared.mixtures(len(task.rows))
        found.append(Contrast(table.view(one.seen), mixtures, pairs, measure.each_output, bends=bends))
    found += [votes.contrast() for votes in task.manipulation]
    for line in task.fairness:
        found.append(line.contrast(table.view(line.outputs), task.weights(), list(map(sqrt_up, line.squares))))
    return found


class Lagrangian(Dual):
    """What multipliers of all that a problem asks of tables add up to."""

    def __init__(self, task: Task, asked: list[Contrast]) -> None:
        super().__init__(len(task.rows), len(task.columns))
        self.task, self.asked, self.prior = task, asked, task.weights()

    def amount(self, amount: Amount, factor: Fraction, tangent: JsonNode) -> None:
        """A factor >= 0 times an affine function that is nowhere above an amount.

        Of a worst case, rows weighed by numbers that sum to one; of a total variation, shares from 0 to 1 of what each
        value is drawn too often.
        """
        self.constant += factor * amount.constant
        for price in amount.prices:
            self.price(price.name, factor * price.weight)
        listed, shares = tangent.fields("worst", "shares")
        parts: list[Part] = [([p * factor for p in self.prior], amount.average, amount.variations)]
        for one, item in zip(amount.worst, listed.items(len(amount.worst)), strict=True):
            found = [Fraction(w.double()) for w in item.items(len(self.reduced))]
            if min(found) < 0 or not any(found) or one.weight < 0:
                raise item.wrong("are no weights")
            whole = factor * one.weight / sum(found)
            parts.append(([w * whole for w in found], one.costs, one.variations))
        for weights, grid, _ in parts:
            if grid is not None:
                for row, (w, own) in enumerate(zip(weights, grid.rows, strict=True)):
                    self.costs(row, own, grid.unit * w)
        sizes = len(parts), max(len(own) for *_, own in parts), len(self.reduced), len(self.reduced[0])
        for k, j, row, value, share in entries(shares, *sizes):
            apart = parts[k][2][j]
            scale = parts[k][0][row] * apart.weight * Fraction(share, ONE)
            if share > ONE or scale < 0:
                raise shares.wrong("has an entry above one")
            self.costs(row, [int(shown == value) for shown in apart.values], scale)
            self.constant -= scale * apart.laws[row].values()[value]

    def add(self, witness: JsonNode, beside: str) -> JsonNode:
        """Multipliers of all that the problem asks of tables; what the witness says `beside` them.

        For multipliers of what is seen of two laws, the slack of their pair is paid for the largest of them.
        """
        terms = beside, "pairs", "conditions", "accuracy"
        other, pairs, conditions, accuracy, supports = witness.fields(*terms, optional=("supports",))
        for item in [] if supports.absent else supports.items():
            number, first, second, level, multiplier, ratios = item.items(6)
            one, a, b = self.asked[number.integer(0, len(self.asked) - 1)], first.integer(), second.integer()
            if one.bends is None or (a, b) not in one.pairs:
                raise item.wrong("is about rows that are not compared, or by a ratio")
            limit, ups, downs = one.bends.support(level, multiplier, ratios, max(one.view) + 1)
            self.constant -= limit
            for column, seen in enumerate(one.view):
                for row, share in one.mixtures[a].items():
                    self.reduced[row][column] += floor(ups[seen] * share * ONE)
                for row, share in one.mixtures[b].items():
                    self.reduced[row][column] -= ceil(downs[seen] * share * ONE)
        most = max((len(one.mixtures) for one in self.asked), default=0)
        members = [[[c for c, v in enumerate(o.view) if v == n] for n in range(max(o.view) + 1)] for o in self.asked]
        found: dict[tuple[int, int, int], dict[int, int]] = {}
        for k, a, b, seen, z in entries(pairs, len(self.asked), most, most, len(self.reduced[0])):
            one = self.asked[k]
            if (a, b) not in one.pairs or seen >= len(members[k]):
                raise pairs.wrong("names rows that are not compared, or a lie that nobody can tell")
            ratio, slack = one.pairs[a, b]
            if slack or one.above:
                found.setdefault((k, a, b), {})[seen] = z
            self.compare(one.mixtures[a], one.mixtures[b], ratio, members[k][seen], z)
        for (k, *pair), paid in found.items():
            one, at = self.asked[k], (pair[0], pair[1])
            if not one.fits(at, paid):
                raise pairs.wrong("uses a set that is none of best alternatives")
            self.constant -= one.pairs[at][1] * Fraction(sum(paid.values()) if one.atoms else max(paid.values()), ONE)
        rows, wide = len(self.reduced), len(self.reduced[0])
        most = max([rows, *(len(line.constant.entries) for line in self.task.conditions)])
        for k, row, z in entries(conditions, len(self.task.conditions), most, signed=True):
            line, share = self.task.conditions[k], Fraction(z, ONE)
            if row >= len(line.constant.entries):
                raise conditions.wrong("has an entry for what is not there")
            if z < 0 and not line.equality:
                raise conditions.wrong("has a negative multiplier of an inequality")
            if line.joint is not None:
                for place in range(rows):
                    start = (row * rows + place) * wide
                    self.costs(place, line.joint.entries[start : start + wide], line.joint.unit * share)
            if line.average is not None:
                self.costs(row, line.average.entries[wide * row : wide * (row + 1)], line.average.unit * share)
            for own in line.scalars:
                self.price(own.name, own.values.entries[row] * own.values.unit * share)
            self.constant += line.constant.entries[row] * line.constant.unit * share
        for item in accuracy.items():
            number, multiplier, tangent = item.fields("line", "multiplier", "tangent")
            limited = self.task.accuracy[number.integer(0, len(self.task.accuracy) - 1)]
            scale = Fraction(multiplier.double())
            if scale < 0:
                raise multiplier.wrong("is negative")
            self.amount(limited.amount, scale, tangent)
            self.constant -= scale * limited.limit
        return other

    def value(self, free: tuple[str, ...] = ()) -> Fraction:
        """The least over all tables, masses of chosen laws, and numbers (but those left out) in their ranges."""
        prices, ends, total = dict(self.prices), self.task.ends(), super().value()
        for law in self.task.laws:
            least = min(prices.pop(name, ZERO) for name in law.masses)
            total += least
            if law.weight is not None:
                prices[law.weight] = prices.get(law.weight, ZERO) - least
        scalars = (min(p * end for end in ends[name]) for name, p in prices.items() if name not in free)
        return sum(scalars, total)


@frozen
class TableBound(LowerBound):
    """What a witness proves of every table that meets lines like those of the problem, and every chosen number."""

    task: Task
    witness: JsonNode

    def at(self, lines: tuple[Obligation, ...]) -> Fraction:
        return lower_bound(self.witness, self.task, contrasts(self.task, lines))


def lower_bound(witness: JsonNode, task: Task, asked: list[Contrast]) -> Fraction:
    """What a witness proves of every table that keeps to these contrasts, and every number that is chosen."""
    shares = [task.ends()[law.weight] for law in task.laws if law.weight is not None]
    if any(not 0 <= low <= high <= 1 for low, high in shares):
        raise Refused("a law has a share of less than nothing")
    if task.estimates is not None:
        return estimates_bound(witness, task, asked)
    return lagrangian(witness, task, asked).value()


def least_of_any(task: Task) -> Fraction:
    """At most the loss of every table, whatever lines it keeps to: every row has an answer of least cost."""
    if task.estimates is not None:
        return task.loss.constant
    found, even = Lagrangian(task, []), [[1.0] * len(task.rows)] * len(task.loss.worst)
    found.amount(task.loss, Fraction(1), JsonNode({"worst": even, "shares": []}, "loss"))
    return found.value()


def lagrangian(witness: JsonNode, task: Task, asked: list[Contrast]) -> Lagrangian:
    """What the multipliers of a witness leave of the loss."""
    found = Lagrangian(task, asked)
    found.amount(task.loss, Fraction(1), found.add(witness, "loss"))
    return found


def estimates_bound(witness: JsonNode, task: Task, asked: list[Contrast]) -> Fraction:
    """The loss of debiased estimates, for every scale alpha and every background law at once.

    With m_k = alpha T_k + s_k the mean of g_k over rows and draws (T_k that of t_k), the loss is
    (sum f cost - sum_k w_k m_k^2) / alpha^2 - sum_k w_k Var(t_k) with cost = Pr(row) sum_k w_k g_k^2: the variance
    within rows is that of everything less that between rows. A cut is a bound on sum f cost that is affine in alpha
    and the means. The numerator, less a share >= 0 of alpha^2, is concave in all of them: in a box it is least at their
    ends. Where the law has one value, or there is none, s_k is 0, and nothing is said of m_k. Without a cut: g takes
    values at least `gap` apart, so Var(g) >= (gap / 2) E|g - m| >= (gap / 2) alpha E|t - T|.
    """
    assert task.estimates is not None
    alpha, weights, prior = task.estimates.alpha, task.estimates.weights, task.weights()
    cuts, tree = witness.fields("cuts", "tree")
    moments, several = task.moments(alpha), task.masses() if len(task.masses()) > 1 else []
    known = all(set(one.h) <= set(several) for one in moments) and len(task.laws) < 2
    if not task.loss.bare:
        raise Refused("the loss has other terms than the errors of estimates")
    if not known or any(law.weight != alpha for law in task.laws) or min(*weights, *task.ends()[alpha]) < 0:
        raise Refused("the background law has a different share from 1 - alpha")
    free = [k for k, weight in enumerate(weights) if weight and several]
    names = (alpha, *(f"mean {k}" for k in free))

    def mean(values: list[Fraction]) -> Fraction:
        return sum((p * v for p, v in zip(prior, values, strict=True)), ZERO)

    spread, least, found, leaves = ZERO, ZERO, list[list[Fraction]](), list[Fraction]()
    for k, (weight, one) in enumerate(zip(weights, moments, strict=True)):
        spread += weight * mean([(v - (mean(one.t) if k in free else 0)) ** 2 for v in one.t])
        gap = min((a - b for a in one.g for b in one.g if a > b), default=ZERO)
        least += weight * gap / 2 * mean([abs(v - mean(one.t)) for v in one.t])
    for item in cuts.items():
        cut = Lagrangian(task, asked)
        for weight, one in zip(weights, moments, strict=True):
            for row, p in enumerate(prior):
                pairs = zip(cut.reduced[row], one.g, strict=True)
                cut.reduced[row] = [old + floor(weight * p * value**2 * ONE) for old, value in pairs]
        means = cut.add(item, "means")
        for k, z in entries(means, len(moments), signed=True):
            if k not in free:
                raise means.wrong("has an entry for what is not there")
            for name, value in ((alpha, mean(moments[k].t)), *moments[k].h.items(), (f"mean {k}", Fraction(-1))):
                cut.price(name, value * Fraction(z, ONE))
        found.append([cut.value(names), *(cut.prices.get(name, ZERO) for name in names)])
    stack = [[task.ends()[alpha], *((min(moments[k].g), max(moments[k].g)) for k in free)]]
    for node in tree.items():
        if not stack:
            raise node.wrong("is more than the boxes need")
        (low, high), *sides = box = stack.pop()
        if isinstance(node.value, dict):
            coordinate, at = node.fields("coordinate", "at")
            k, where = coordinate.integer(0, len(box) - 1), Fraction(at.double())
            if not box[k][0] <= where <= box[k][1]:
                raise at.wrong("splits outside its box")
            halves = (where, box[k][1]), (box[k][0], where)
            stack += [[*box[:k], half, *box[k + 1 :]] for half in halves]
        elif node.integer(-1, len(found) - 1) >= 0:
            constant, slope, *slopes = found[node.integer()]
            for k, own, side in zip(free, slopes, sides, strict=True):
                constant += min(own * end - weights[k] * end * end for end in side)
            quotients = [(constant + slope * end) / end**2 for end in (low, high) if end]
            leaves.append(min(quotients) if quotients and (low or constant >= 0) else ZERO)
        elif high:  # alpha is above zero: there is none in a box that ends there
            leaves.append(least / high)
    if stack or not leaves:
        raise tree.wrong("leaves boxes open, or no table at all")
    return max(ZERO, min(leaves) - spread) + task.loss.constant
