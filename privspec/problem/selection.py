"""A value of a column that is selected by ranks or counts, in numbers: its range, its records, and what an error costs.

What is sought is the value at a share of the records in order (a quantile, an extreme), or the most frequent one. A
family reads how one record can change the scores of all answers, and knows no function by name (noise/notes/scores.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING

from privspec.core.records import dataclass
from privspec.kernel.core.reading import Grid
from privspec.kernel.measures import APPROXIMATE, GAUSSIAN, PURE, RENYI, TOTAL_VARIATION, ZERO_CONCENTRATED
from privspec.kernel.promises import Accuracy
from privspec.kernel.selection import Cost, Counts, Law, Leaders, Quantiles, Ranks, Selected, Where
from privspec.kernel.trust import CURATOR
from privspec.language import syntax
from privspec.language.spelling import spell
from privspec.language.walk import every
from privspec.model.conditions import GROUPS
from privspec.model.domains import Between, Domain, Interval, Power, Table, is_numeric
from privspec.model.evaluate import Environment, evaluate
from privspec.model.graph import GraphNode, Model, once_at_any_amount
from privspec.model.library import Argument, Arguments
from privspec.model.neighbours import ReplacingEverything, ReplacingPerson, ReplacingRecord
from privspec.model.priors import law_of
from privspec.model.reports import Failure, Unsupported, listing
from privspec.model.requirements import AccuracyTarget, DataModel
from privspec.model.targets import environment
from privspec.model.values import show
from privspec.problem.refusals import besides, other_families, reading, too_weak, without_loss
from privspec.problem.terms import Term, behind, beside_output, measured, public_number, terms

if TYPE_CHECKING:
    from privspec.functions.selection import Sought

FUNCTIONS = ("median", "quantile", "quantiles", "min", "max", "argmax", "top", "mode")
"""Functions of a column whose value is one of those of secret records."""
FAMILIES = ("exponential", "permute_and_flip", "table")
LARGEST_EPSILON = 30
MOST_ANSWERS = 4096
LAW_BITS = 64
"""Binary places of the chances of a law."""
LARGEST_SIZE = 10**9
MOST_GROUPS = 1000


def words(block: Selected) -> tuple[str, ...]:
    """The column, what is sought, and the loss."""
    many = f"{block.records:,}" if block.records is not None else "any number of"
    ends = f"{block.answers[0]} to {block.answers[-1]}" if block.numbers else ", ".join(block.answers[:8])
    found = [
        f"{block.source} is a table of {many} records; {block.output} is one of {len(block.answers)} values of "
        f"{block.column} ({ends})."
    ]
    if block.numbers:
        near = "the nearest of these values, the higher of two as near"
        near = "the least of these values that it does not exceed, or the largest" if block.bounds else near
        found.append(f"Each {block.column} is read at {near}.")
    for one in block.where:
        kept = ", ".join(one.values[i] for i in one.kept[:8]) + (", ..." if len(one.kept) > 8 else "")
        found.append(f"Only records count whose {one.column} is one of: {kept}.")
    if block.by:
        columns = " and ".join(one.column for one in block.by)
        found.append(f"There is one for each of {block.groups} groups by {columns}, of the records of that group.")
    found.append(f"Sought is {sought_words(block.score)}.")
    if block.cost.weight:
        found.append(f"The loss is {cost_words(block)}: `{block.expression}`.")
    found += [f"Line {one.line}: {one.text}." for one in block.accuracy]
    if block.law is not None:
        found.append(
            f"Averages take {block.law.size:,} independent records of the stated law; no guarantee rests on that."
        )
    if block.families:
        found.append(f"Only mechanisms of the families {', '.join(block.families)} are allowed.")
    return tuple(found)


def sought_words(score: Ranks | Counts | Quantiles | Leaders) -> str:
    """What is sought, without the name of a function."""
    if isinstance(score, Quantiles):
        return "; ".join(map(sought_words, score.each))
    if isinstance(score, Leaders):
        return f"the {score.values} values that the most records have"
    if isinstance(score, Counts):
        return "the value that the most records have"
    if score.share in (0, 1):
        return f"the {'largest' if score.share else 'least'} value"
    return f"the value that has {show(score.share)} of the records at or below it"


def cost_words(block: Selected) -> str:
    """As in "the mean distance from it"."""
    cost = block.cost
    said = {
        "ranks": "number of records between the value drawn and the one sought"
        if block.score.ordered
        else "number of records that the most frequent value has more than the one drawn",
        "distance": f"{'squared ' * (cost.power == 2)}distance of the value drawn from the one sought",
        "mismatch": "chance that the value drawn is not the one sought",
    }[cost.form]
    times = "" if cost.weight == 1 else f"{show(cost.weight)} times "
    if isinstance(block.score, Leaders):
        said = f"number of records that the {block.score.values} most frequent values have more than those drawn"
    added = ", added up over the values" if isinstance(block.score, Quantiles) else ""
    added = ", added up over the groups" if block.by else added
    return f"{times}the {'largest mean' if cost.worst else 'mean'} {said}{added}"


# --- which specs are selections -------------------------------------------------------------------


def reads(model: Model) -> bool:
    """Whether a value of secret records of a table is asked for by its rank, or as the most frequent one."""
    return next(_asked(model), None) is not None


def _asked(model: Model) -> Iterator[syntax.Counting]:
    """Calls that ask for one, in the loss, lines and definitions."""
    calls = (call for expr in model.expressions for call in every(expr, syntax.Counting))
    return (call for call in calls if call.function in FUNCTIONS)


@once_at_any_amount
@reading(lambda model: _unsupported(model))
def block_of(model: Model) -> Selected:
    """A spec that `reads` takes, in numbers.

    Raises: SpecError PS05xx with every construct that cannot be computed, PS0401 for an average without a data model.
    """
    return _Reader(model).block()


@dataclass(slots=True)
class _Reader:
    """Reads a spec of one table and one output."""

    model: Model

    @property
    def source(self) -> GraphNode:
        return self.model.inputs[0]

    @property
    def output(self) -> GraphNode:
        return self.model.outputs[0]

    @property
    def table(self) -> Table:
        domain = self.source.domain
        assert isinstance(domain, Table)
        return domain

    def block(self) -> Selected:
        """Everything."""
        model = self.model
        if model.loss is None and not model.accuracy:
            raise without_loss(model)
        expression = model.accuracy[0].target.left if model.loss is None else model.loss
        form, power, weight, worst, call = self._cost(expression)
        column = str(call.arguments[1].items[0].value)  # type: ignore[union-attr]
        aim = self._sought(call)
        numbers, answers = self._answers(column, aim)
        by = self._groups(call)
        where = tuple(one for one in self._conditions(call) if one.column not in {group.column for group in by})
        adding = any(line.neighbours.adding for line in model.requirements)
        span = expression.span
        score: Counts | Ranks | Leaders | Quantiles = Counts() if aim.share is None else Ranks(aim.share)
        if aim.several is not None:
            score = Quantiles(aim.shares) if aim.shares else Leaders(aim.several)
            if worst or form == "mismatch" or (form != "ranks" and not aim.shares):
                name = self.output.name
                asked = f"||{name} - {call.text}||_1" if aim.shares else f"rank_error({name}, {call.text})"
                text = f"solve takes the mean error of {call.text} alone, added up over its values"
                raise Failure("PS0502", span, text, help=f"give a law of {column} and write E[ {asked} ]")
        if model.accuracy and not worst:
            text = "a line of accuracy of a selected value is about the worst data"
            hint = f"worst[ rank_error({self.output.name}, {call.text}) ] <= 3, with a loss of that kind or none"
            raise Failure("PS0502", model.accuracy[0].target.span, text, help=hint)
        if worst and form != "ranks":
            text = f"solve takes worst[ ... ] of ranks alone here: at the worst data no {self.output.name} is near"
            hint = f"write worst[ rank_error({self.output.name}, {call.text}) ], or give a law of {column} and write E"
            raise Failure("PS0502", span, text, help=hint)
        bounds = any(call.function == "bound_error" for call in every(expression, syntax.Call))
        if bounds and (not worst or numbers is None):
            hint = f"write worst[ bound_error({self.output.name}, quantile({self.source.name}.{column}, 0.95)) ]"
            raise Failure("PS0502", span, "solve takes bound_error of numbers alone, at the worst data", help=hint)
        if worst and aim.share in (0, 1):
            end = answers[-1] if aim.share else answers[0]
            text = f"{end} is never off in ranks: no record lies beyond it, whatever the data are"
            hint = f"give a law of {column} and write E[ |{self.output.name} - {call.text}| ]"
            raise Failure("PS0502", span, text, help=hint)
        return Selected(
            source=self.source.name,
            output=self.output.name,
            column=column,
            answers=answers,
            numbers=numbers,
            where=where,
            by=by,
            score=score,
            records=None if adding or where or by else self.table.records,
            law=None if worst else self._law(column, answers, numbers, where, by),
            cost=Cost(form, power, Fraction(0) if model.loss is None else weight, worst),
            expression="" if model.loss is None else spell(model.loss),
            families=tuple(model.families),
            accuracy=tuple(self._line(one, (form, worst, call.text)) for one in model.accuracy),
            bounds=bounds,
        )

    def _line(self, one: AccuracyTarget, about: tuple[str, bool, str]) -> Accuracy:
        """A line of accuracy, which is about what the loss is about, at the worst data."""
        form, _, weight, worst, call = self._cost(one.target.left)
        if not worst or (form, worst, call.text) != about:
            text = "a line of accuracy of a selected value is about the loss itself, at the worst data"
            hint = f"worst[ rank_error({self.output.name}, {call.text}) ] <= 3"
            raise Failure("PS0502", one.target.span, text, help=hint)
        return Accuracy(weight, public_number(one.target.right, self.model), one.line, one.text)

    # -- what is asked

    def _cost(self, loss: syntax.Expr) -> tuple[str, int, Fraction, bool, syntax.Counting]:
        match list(terms(loss, self.model)):
            case [Term(weight=weight, operator=operator, body=body)] if weight > 0:
                found = self._body(body)
                if found is not None:
                    form, power, call = found
                    return form, power, weight, operator == "worst", call
        name, call = self.output.name, next(_asked(self.model))
        hint = f"E[ |{name} - {call.text}| ], or worst[ rank_error({name}, {call.text}) ]"
        if self._sought(call).share is None:
            hint = f"worst[ rank_error({name}, {call.text}) ], or E[ mismatch({name}, {call.text}) ]"
        raise Failure("PS0502", loss.span, "solve takes one error of the value that is selected as the loss", help=hint)

    def _body(self, body: syntax.Expr) -> tuple[str, int, syntax.Counting] | None:
        found = measured(body)
        form, power = "distance", 2 if found.squared else 1
        match body:
            case syntax.Call(function="rank_error" | "bound_error" | "mismatch" as name):
                form = name if name == "mismatch" else "ranks"
            case _ if found.function is not None or not (found.squared or found.norm in ("abs", "1")):
                return None
        for other in beside_output(found.error, self.output.name):
            call = behind(self.model, other)
            if isinstance(call, syntax.Counting) and call.function in FUNCTIONS:
                return form, power, call
        return None

    def _sought(self, call: syntax.Counting) -> Sought:
        from privspec.functions.selection import sought  # most specs ask for nothing of the kind

        public = environment(self.model)
        table = Argument(self.source.type, None, self.table, call.span)
        others = [one for one in call.arguments[1:] if not isinstance(one, syntax.NO_EXPRESSION)]
        given = (Argument(self.source.type, evaluate(one, public), None, call.span) for one in others)
        return sought(call.function, Arguments((table, *given)))

    def _answers(self, column: str, aim: Sought) -> tuple[tuple[Fraction, ...] | None, tuple[str, ...]]:
        own, wanted = dict(self.table.attributes)[column], self.output.domain
        wanted = wanted.base if isinstance(wanted, Power) else wanted
        domain: Domain = own if wanted is None or isinstance(wanted, Interval) else wanted
        if isinstance(domain, Between | Interval) or domain.size is None:
            low, high = own.bounds
            ends = f"{show(low or Fraction(0))}, {show(high or Fraction(1))}"
            hint = f"declare it, as in `output {self.output.name} in grid({ends}, {show(_step(low, high))})`"
            text = f"the values that {self.output.name} may have are not known: {column} is any number between two ends"
            raise Failure("PS0501", self.output.span, text, help=hint)
        if domain.size > MOST_ANSWERS or domain.size < 2:
            text = f"{self.output.name} is one of {domain.size:,} values, and solve takes 2 to {MOST_ANSWERS:,}"
            raise Failure("PS0515", self.output.span, text, help="use a coarser grid")
        if is_numeric(own) != is_numeric(domain) or domain.shape:
            text = f"{self.output.name} and {column} do not have the same values"
            raise Failure("PS0519", self.output.span, text, help=f"leave out the domain of {self.output.name}")
        values = list(domain.elements())
        if aim.share is None:
            if set(values) != set(own.elements()):
                text = f"{self.output.name} and {column} do not have the same values"
                raise Failure("PS0519", self.output.span, text, help=f"leave out the domain of {self.output.name}")
            return None, tuple(map(show, own.elements()))
        numbers = tuple(sorted(Fraction(value) for value in values))
        return numbers, tuple(map(show, numbers))

    def _conditions(self, call: syntax.Counting) -> Iterator[Where]:
        public = environment(self.model)
        for one in call.arguments:
            if not isinstance(one, syntax.Keyword):
                continue
            if one.name == GROUPS:
                continue
            domain = dict(self.table.attributes)[one.name]
            elements = list(domain.elements())
            kept = evaluate(one.value, public)
            assert isinstance(kept, tuple)
            places = tuple(i for i, element in enumerate(elements) if element in kept)
            yield Where(one.name, tuple(map(show, elements)), places)

    def _groups(self, call: syntax.Counting) -> tuple[Where, ...]:
        """The columns of groups in the order of the table, with the values that conditions leave of them."""
        public = environment(self.model)
        asked = [one.value for one in call.arguments if isinstance(one, syntax.Keyword) and one.name == GROUPS]
        names = [str(name) for value in asked for name in evaluate(value, public)]  # type: ignore[union-attr]
        kept = {one.column: one for one in self._conditions(call)}
        found = []
        for name, domain in self.table.attributes:
            if name in names:
                values = tuple(map(show, domain.elements()))
                found.append(kept.get(name) or Where(name, values, tuple(range(len(values)))))
        if prod(len(one.kept) for one in found) > MOST_GROUPS:
            raise Failure("PS0515", call.span, f"solve takes up to {MOST_GROUPS:,} groups", help="use fewer groups")
        return tuple(found)

    # -- the law of a record

    def _law(
        self,
        column: str,
        answers: tuple[str, ...],
        numbers: tuple[Fraction, ...] | None,
        where: tuple[Where, ...],
        by: tuple[Where, ...],
    ) -> Law:
        """What one record has in the column and the conditions, each by its own law.

        Raises: Failure PS0401 where one has none, or nobody says how many records there are.
        """
        assert self.model.loss is not None
        own, size = dict(self.table.attributes)[column], self.table.records
        if any(
            isinstance(line.neighbours, ReplacingPerson) and line.neighbours.by_id for line in self.model.requirements
        ):
            text = "this average needs a law of how many records each person has, of which some are not kept"
            raise Failure("PS0501", self.model.loss.span, text, help="write worst[ rank_error(...) ], which needs none")
        name = f"{self.source.name}.{column}"
        if size is None or not 0 < size <= LARGEST_SIZE:
            text = f"this average needs a number of records of {self.source.name}"
            raise Failure("PS0401", self.model.loss.span, text, help=f"write `{self.source.name} in table(...)^1000`")
        public, counted = environment(self.model), Fraction(1)
        for one in where:
            domain = dict(self.table.attributes)[one.column]
            law = law_of(self._of(f"{self.source.name}.{one.column}"), tuple(domain.elements()), public)
            counted *= sum((law[place] for place in one.kept), Fraction(0)) if one.column != column else 1
        groups = [Fraction(1)]
        for one in by:
            domain = dict(self.table.attributes)[one.column]
            law = law_of(self._of(f"{self.source.name}.{one.column}"), tuple(domain.elements()), public)
            groups = [chance * law[place] for chance in groups for place in one.kept]
        counted *= sum(groups, Fraction(0))
        inside = next((one for one in where if one.column == column), None)
        chances = self._chances(self._of(name), own, answers, numbers, inside, public)
        total = sum(chances, Fraction(0))
        if not total or not counted:
            raise Failure("PS0406", self.model.loss.span, "under this law no record ever counts")
        scale = 1 << LAW_BITS
        counted = Fraction(round(counted * total * scale), scale)
        shares = [round(one / total * scale) for one in chances]
        shares[shares.index(max(shares))] += scale - sum(shares)
        whole = sum(groups, Fraction(0))
        parts = tuple(Fraction(round(one / whole * scale), scale) for one in groups)
        return Law(size, counted, Grid((len(shares),), Fraction(1, scale), tuple(shares)), parts)

    def _chances(
        self,
        data: DataModel,
        own: Domain,
        answers: tuple[str, ...],
        numbers: tuple[Fraction, ...] | None,
        inside: Where | None,
        public: Environment,
    ) -> list[Fraction]:
        """The chance of each answer, of a record that counts or does not: those that do not count have none."""
        if isinstance(own, Between):
            assert numbers is not None
            return list(law_of(data, numbers, public))
        elements = list(own.elements())
        law = law_of(data, tuple(elements), public)
        found = [Fraction(0)] * len(answers)
        for place, (element, chance) in enumerate(zip(elements, law, strict=True)):
            if inside is None or place in inside.kept:
                found[place if numbers is None else nearest(numbers, Fraction(element))] += chance
        return found

    def _of(self, name: str) -> DataModel:
        found = next((one for one in self.model.models if one.subject == name), None)
        if found is None:
            assert self.model.loss is not None
            text = f"this average is over values of {name} without a law"
            hint = f"add one under `background:`, such as {name} ~ uniform"
            raise Failure("PS0401", self.model.loss.span, text, help=hint)
        return found


def _step(low: Fraction | None, high: Fraction | None) -> Fraction:
    """A hundredth of a range."""
    return Fraction(1) if low is None or high is None else (high - low) / 100


def nearest(numbers: tuple[Fraction, ...], value: Fraction) -> int:
    """The place of the nearest of some ascending numbers, the higher of two that are as near."""
    from bisect import bisect_right

    above = bisect_right(numbers, value)
    if above == 0:
        return 0
    if above == len(numbers):
        return above - 1
    return above if 2 * value >= numbers[above - 1] + numbers[above] else above - 1


# --- what cannot be computed yet ------------------------------------------------------------------

LINES = (PURE, APPROXIMATE, ZERO_CONCENTRATED, GAUSSIAN, RENYI, TOTAL_VARIATION)
NAMES = listing([one.name for one in LINES], "or")


def _unsupported(model: Model) -> Iterator[Unsupported]:
    """Constructs that are not known here: where, what, and what to write in their place."""
    call = next(_asked(model))
    what = f"{call.text} beside other questions"
    if model.trust.shared:
        text = (
            f"{call.text} under `trust {model.trust.name}`: parties add numbers in shares, and a value that is selected"
        )
        hint = "release histogram(t, by = {column}), of which whoever has it takes the median; or write "
        yield call.span, f"{text} is no sum", f"{hint}`{CURATOR.written}`"
        return
    if len(model.inputs) != 1 or not isinstance(model.inputs[0].domain, Table) or model.inputs[0].index is not None:
        yield call.span, f"{call.text} of more than one table", "write a spec of one table"
        return
    if len(model.outputs) != 1:
        yield call.span, what, "write a loss that is a sum of one error for each output"
        return
    (output,) = model.outputs
    if output.definition is not None:
        yield output.span, f"{output.name}, which is computed from secret records", "leave the output free"
        return
    yield from besides(model, f"a selected value of {model.inputs[0].name}", None)
    if not model.requirements:
        hint = f"add {output.name} is 1-{PURE.word} wrt {model.inputs[0].name}, replacing one record"
        yield output.span, "a selection without a line of privacy", hint
    if model.trust.drawn_whole and not model.trust.central:
        what = f"a selected value under `trust {model.trust.name}`"
        hint = f"one keeper has to hold it: `{CURATOR.written}`"
        yield model.trust_span, what, hint
    for line in model.requirements:
        measure, unit = line.measure, line.neighbours
        if measure.common not in LINES:
            yield line.span, f"{measure.name} of a selected value", f"write {NAMES}"
        elif (measure.pure_epsilon or 0) > LARGEST_EPSILON:
            yield too_weak(line, measure, LARGEST_EPSILON)
        if not isinstance(unit, ReplacingRecord | ReplacingEverything):
            yield line.span, f"{unit.describe()} of a selected value", "write `adding or removing one record`"
    for target in model.accuracy:
        if target.target.variable is not None or target.target.probability is not None:
            hint = "leave it out: the error is in the loss"
            yield target.target.span, "such a line of accuracy of a selected value", hint
    yield from other_families(model, FAMILIES, " of a selected value")
    if model.noise_at is not None:
        yield model.noise_at_spans[0], "places for noise of a selected value", "leave the line out"
