"""Plans about sequences whose entries tell of one another: noisy sums, of which the entries may be drawn by a model."""

from __future__ import annotations

from dataclasses import field
from fractions import Fraction
from math import gcd

from flint import arb, ctx

from privspec.kernel.changes import ConditionalLaw, Entries, GivenModel, SequenceModel
from privspec.kernel.core.numbers import ball
from privspec.kernel.core.problem import Bound, Mechanism, PlanUnderCheck, Rules, View, read_guarantees
from privspec.kernel.core.reading import Grid, JsonNode, Refused, Size, frozen
from privspec.kernel.laws.laplace import WholeLaplace, laplace_variance
from privspec.kernel.measures import PURE
from privspec.kernel.promises import Promise, Question, judge_promises
from privspec.kernel.rules import Hint, derive
from privspec.kernel.strategies.sequences import (
    PRECISION,
    ByLaws,
    ByQuilts,
    ByWindows,
    Drawn,
    Proof,
    Sums,
    affordable,
    laws_of,
    noisy,
    sums_ahead,
    sums_behind,
)
from privspec.kernel.terms import Structured
from privspec.kernel.worth import judge_worth

NOISE = ("discrete-laplace",)
"""The note that the noise rests on."""
CONDITIONAL, PLAIN = "entry given the model", ("entry", "record", "everything")
CLASSES = ("", "discrete Laplace noise of one size, on the grid of the answers")
FINEST = Fraction(1, 64)
"""Least size of the noise, in steps of the answers."""


@frozen
class Output:
    """Where an output stands among the released numbers."""

    name: str
    start: int
    stop: int
    shape: tuple[int, ...]


@frozen
class Accuracy:
    """The sum over the numbers of weights (m,) times the squared error is at most `bound` on average."""

    weights: Grid
    bound: Size
    line: int
    text: str


@frozen
class ChainBlock:
    """As the problem states it: laws of the first entry and of a step, and what every entry adds to every number.

    Where entries are drawn each in its own way, `network` has the law of each, and there are no laws of a step.
    """

    FORM = "chain"

    source: str
    states: tuple[str, ...]
    starts: Grid
    steps: Grid
    network: tuple[ConditionalLaw, ...]
    released: tuple[Output, ...]
    added: Grid
    offset: Grid
    weights: Grid
    expression: str
    accuracy: tuple[Accuracy, ...]
    lines: tuple[int, ...]
    model: SequenceModel = field(init=False)

    def __post_init__(self) -> None:
        size, width = len(self.states), len(self.offset.values())
        laws = (self.starts, self.steps, *(one.chances for one in self.network))
        rows = [row for grid in (*laws, self.added) for row in grid.rows]
        if not size or len(set(self.states)) != size or any(len(row) != size for row in rows):
            raise Refused("has rows that do not fit its values")
        model = SequenceModel(self.starts, self.steps, self.network)
        object.__setattr__(self, "model", model)
        if self.network and len(self.network) * width != len(self.added.rows):
            raise Refused("has a network whose laws do not fit its entries, or one that is too large to be listed")
        ends = [0, *(one.stop for one in self.released)]
        if [one.start for one in self.released] != ends[:-1] or ends[-1] != width or not width:
            raise Refused("has outputs that do not share out its numbers")
        if not self.added.rows or len(self.added.rows) % width or len(self.weights.values()) != width:
            raise Refused("has entries that do not add to every number")

        if any(len(one.weights.values()) != width for one in self.accuracy):
            raise Refused("has a line of accuracy that is not about its numbers")


@frozen
class Chain(Drawn, Mechanism):
    """What is executed: `offset` + `unit` times (whole numbers, summed over the entries, + noise of a size)."""

    FORM = "chain"

    counts: tuple[tuple[tuple[int, ...], ...], ...] = field(init=False)
    model: SequenceModel = field(init=False)
    block: ChainBlock
    unit: Fraction
    offset: tuple[Fraction, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Refused where the answers of the block are no multiples of the step."""
        block = self.block
        if self.unit <= 0 or self.scale < FINEST:
            raise Refused("has noise of no size, or one that is too small to be drawn")
        lowest, width = [min(row) for row in block.added.rows], len(block.offset.values())
        parts = block.added.unit / self.unit
        up, down = parts.as_integer_ratio()
        moved = [[(value - low) * up for value in row] for row, low in zip(block.added.rows, lowest, strict=True)]
        if any(value % down for row in moved for value in row):
            raise Refused("has a unit that is no step of the answers: they lie between multiples of it")
        rows = [tuple(value // down for value in row) for row in moved]
        base = [sum(lowest[j::width]) * block.added.unit + offset for j, offset in enumerate(block.offset.values())]
        counts = tuple(tuple(rows[i : i + width]) for i in range(0, len(rows), width))
        for name, value in (("counts", counts), ("model", block.model), ("offset", tuple(base))):
            object.__setattr__(self, name, value)
        Drawn.__post_init__(self)

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.block.released)

    @property
    def term(self) -> Structured:
        return Structured(Sums(self.counts), WholeLaplace(self.scale), frozenset(self.outputs))


def step_of(block: ChainBlock) -> Fraction:
    """The coarsest grid on which all answers lie, but for their offsets."""
    whole = gcd(*(value - min(row) for row in block.added.rows for value in row))
    return whole * block.added.unit if whole else Fraction(1)


def units_of(chain: Chain) -> str:
    """The units of the loss."""
    return f"squared units of {' and '.join(chain.outputs)}"


def errors_of(chain: Chain, weights: Grid, scale: Fraction | None = None) -> Fraction:
    """The mean of a weighted sum of squared errors, with noise of another size where one is given."""
    return sum(weights.values()) * laplace_variance((scale or chain.scale) * chain.unit, chain.unit)


def loss_of(chain: Chain, scale: Fraction) -> Fraction:
    """The expected loss with noise of a size."""
    return errors_of(chain, chain.block.weights, scale)


def told_apart(chain: Chain, scale: Fraction, place: list[int], epsilon: Fraction) -> bool:
    """Whether noise of a size lets through more than epsilon, at a law, an entry, two values and an answer."""
    number, t, a, b, w = place
    if t >= chain.length or max(a, b) >= chain.size or w > chain.everything():
        return False
    with ctx.workprec(PRECISION):
        decay, laws = (-1 / ball(scale)).exp(), laws_of(chain, number)[t]
        if not laws[a].length() or not laws[b].length():
            return False
        one, other = (noisy(law, chain.everything(), decay)[w] for law in (laws[a], laws[b]))
        return bool(one > ball(epsilon).exp() * other)


def told_beyond(chain: Chain, scale: Fraction, place: list[int], signs: list[int], epsilon: Fraction) -> bool:
    """Whether answers beyond all others, up or down in each number by `signs`, let through more than epsilon.

    There the chances given a value are in proportion to the mean of e^(signs . answer / scale): one sum a value.
    """
    number, t, a, b = place
    models, size = chain.models(), range(chain.size)
    if number >= len(models) or t >= chain.length or max(a, b) >= len(size) or len(signs) != len(chain.offset):
        return False
    _, first, step = models[number]
    gains = [[sum(sign * row[s] for sign, row in zip(signs, rows, strict=True)) for s in size] for rows in chain.counts]
    with ctx.workprec(PRECISION):
        powers = {gain: (ball(Fraction(gain)) / ball(scale)).exp() for row in gains for gain in row}
        start, *later = ([powers[gain] for gain in row] for row in gains)
        bare = sums_ahead([arb(chance) for chance in first], step, [[1] * len(size)] * t)[-1]
        ahead = sums_ahead([start[s] * first[s] for s in size], step, later[:t])[-1]
        behind = sums_behind(step, later[t:])[0]
        if bare[a].is_zero() or bare[b].is_zero():
            return False
        return bool(ahead[a] * behind[a] * bare[b] > ball(epsilon).exp() * ahead[b] * behind[b] * bare[a])


# --- plans -----------------------------------------------------------------------------------------------


class ChainRules(Rules):
    """How plans about sequences are judged."""

    mechanisms = (Chain,)

    def privacy(self, case: PlanUnderCheck) -> Chain:
        chain: Chain = self.read(case.frame, case.mechanism)
        proofs = dict[int, Proof]()
        block = chain.block
        held = [(data.name, data.party) for data in case.frame.data]
        if held != [(block.source, None)] or case.frame.trust.means.public:
            raise case.block.wrong("is about other data, or other trust, than the problem")
        case.says("view", True, f"only the noisy answers are seen, under {case.frame.trust.means.written}")
        case.says("rounding", True, f"the answers lie on the grid {chain.unit}, like the noise: nothing is rounded")
        given, _, _ = case.claims.fields("given", "without_model", "bound")
        for entry in given.items(len(block.lines)):
            number, by, witness = entry.fields("line", "by", "witness")
            proofs[number.integer()] = read_proof(by.one_of("laws", "quilts", "windows"), witness, chain)
        if sorted(proofs) != sorted(block.lines):
            raise given.wrong("are not about the lines that count on the model")
        promises = list[Promise]()
        for one in read_guarantees(case.guarantees, case.frame):
            asked, proof = one.obligation, proofs.get(one.number)
            (unit, *more), kinds = asked.units, PLAIN if proof is None else (CONDITIONAL,)
            about = sorted(asked.outputs) == sorted(asked.seen) == sorted(chain.outputs)
            fits = not more and unit.kind in kinds and (unit.count, unit.adding, unit.apart) == (1, False, None)
            measure = asked.measure
            if not about or asked.wrt != (block.source,) or not fits or measure.each or not measure.of.of_laws:
                raise Refused(
                    f"line {asked.line} is about outputs, inputs, units or a measure that are not judged here"
                )
            change = Entries(unit.kind == "everything") if proof is None else GivenModel(chain.model)
            question = Question(change, one.asked, one.achieved, Hint(sequence=proof))
            notes, words = (NOISE, "from how far the answers move") if proof is None else (("quilt",), proof.words)
            promises.append(Promise(one, (question,), notes, f"epsilon {{:.8g}} {words}"))
        judge_promises(case, chain.term, promises)
        return chain

    def judge(self, case: PlanUnderCheck) -> Chain:
        chain = self.privacy(case)
        without, bound = case.claims.fields("given", "without_model", "bound")[1:]
        self._without(case, chain, without)
        self._loss(case, chain, bound)
        return chain

    def _without(self, case: PlanUnderCheck, chain: Chain, stated: JsonNode) -> None:
        """What holds whatever the data are, if the model is wrong."""
        entry, everything = stated.fields("entry", "everything")
        for item, kind, words in ((entry, "entry", "one entry"), (everything, "everything", "all entries")):
            least = plain(chain, kind) / chain.scale
            text = f"whatever the model: epsilon {float(least):.8g} if {words} may change"
            case.says("no model", item.exact(0) >= least, text)

    def _loss(self, case: PlanUnderCheck, chain: Chain, bound: JsonNode) -> None:
        derived = None
        if not bound.absent:
            line, scale, place, beyond = bound.fields("line", "scale", "place", "beyond")
            obligations = case.frame.obligations
            number = line.integer(0, len(obligations) - 1)
            asked = obligations[number]
            smaller, epsilon = scale.exact(0), asked.measure.figures({})["epsilon"]
            if asked.measure.common is not PURE or not smaller or chain.unit != step_of(chain.block):
                raise bound.wrong("is about a line that noise may meet in other ways")
            if number in chain.block.lines and not beyond.absent:
                signs = [1 if up.flag() else -1 for up in beyond.items(len(chain.offset))]
                above = told_beyond(chain, smaller, [item.integer() for item in place.items(4)], signs, epsilon)
            elif number in chain.block.lines:
                at = [item.integer() for item in place.items(5)]
                above = affordable(chain) and told_apart(chain, smaller, at, epsilon)
            else:
                place.same(None)
                beyond.same(None)
                kind = asked.units[0].kind
                exact = kind != "everything" or len(chain.offset) == 1
                above = exact and smaller * epsilon <= plain(chain, kind)
            text = f"noise below a size of {float(smaller):.8g} steps breaks line {asked.line}"
            case.says("bound", above, text)
            derived = loss_of(chain, smaller)
        words = [chain.block.expression, units_of(chain), "expected"]
        lines = ((one.line, one.text, one.bound, errors_of(chain, one.weights)) for one in chain.block.accuracy)
        among = CLASSES[derived is not None :]
        judge_worth(case, loss_of(chain, chain.scale), derived, among, "noise of this kind", words, lines)

    def reach(
        self, case: PlanUnderCheck, executed: Chain, view: View, outputs: tuple[str, ...], witness: JsonNode
    ) -> Bound:
        witness.same(None)
        (unit,) = view.units
        if unit.kind not in PLAIN or unit.adding or unit.count > 1 or not set(outputs) <= set(executed.outputs):
            return None
        loss = derive(executed.term, frozenset(outputs), Entries(unit.kind == "everything")).loss
        return {name: loss.figure(name) for name in ("epsilon", "delta")}


def plain(chain: Chain, kind: str) -> Fraction:
    """How far all numbers move, in steps, if one entry changes, or all of them do."""
    return chain.absolute_sensitivity(Entries(kind == "everything"), frozenset(chain.outputs))


def read_proof(by: str, witness: JsonNode, chain: Drawn) -> Proof:
    """How a plan shows what is let through given the model."""
    if by == "windows":
        return ByWindows(witness.integer(1))
    if by == "laws" or chain.model.network:
        witness.same(None)
        return ByLaws() if by == "laws" else ByQuilts()
    size = chain.size
    listed = witness.array(len(chain.models()), chain.length, size, size, 2)
    if listed.unit != 1:
        raise witness.wrong("are not distances")
    return ByQuilts(listed.entries)
