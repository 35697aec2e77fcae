"""Which keys of a table occur, and how many records each has, where nobody has listed them: in numbers.

A key may show by itself that somebody is in the table, so that each is shown with a chance that depends on how many
records it has. noise/notes/unknown-keys.md has the mechanism, the bound and their proofs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import lcm

import numpy as np

from privspec.core.records import dataclass
from privspec.core.spans import Span
from privspec.kernel.core.reading import Grid
from privspec.kernel.keys import FINEST, Accuracy, Added, Cost, KeyBlock, KeyColumn
from privspec.kernel.measures import APPROXIMATE, GAUSSIAN, PURE, ZERO_CONCENTRATED
from privspec.language import syntax
from privspec.language.spelling import spell
from privspec.model.conditions import GROUPS, LEAST
from privspec.model.domains import Between, Domain, IntegerRange, Table, Unknown, unknown_keys
from privspec.model.domains import Grid as Steps
from privspec.model.evaluate import evaluate
from privspec.model.graph import GraphNode, Model, once
from privspec.model.neighbours import ReplacingPerson, ReplacingRecord
from privspec.model.priors import DISTRIBUTIONS, arguments_of, weights_of
from privspec.model.reports import Failure, Unsupported
from privspec.model.requirements import DataModel, Requirement
from privspec.model.targets import environment
from privspec.model.values import show
from privspec.problem.refusals import besides, other_families, reading, without_loss
from privspec.problem.terms import Term, behind, beside_output, measured, public_number, terms

BITS = 60
"""Binary places of the chances of sizes."""
LARGEST_SIZE = 4096
"""Records of a key up to which its size has a chance of its own under a law without end; a geometric law has more."""
LARGEST_GEOMETRIC = 100_000
WORDS = {
    "missed": "the share of the keys that are not shown",
    "absolute": "the mean absolute error of the count of a key, that of a hidden one being 0",
    "squared": "the mean squared error of the count of a key, that of a hidden one being 0",
}
OFF = {"absolute": "absolute error", "squared": "squared error"}
COUNTED = ("count", "histogram", "sum")
FINE = 2**20
"""At least so many steps lie between the ends of a column that is added up and has no steps of its own."""
MEASURES = (PURE, APPROXIMATE, GAUSSIAN, ZERO_CONCENTRATED)


def words(block: KeyBlock) -> tuple[str, ...]:
    """What a key is, what is shown of it, and the loss."""
    names = " and ".join(column.name for column in block.columns if column.grouped)
    only = " and ".join(f"only some values of {c.name}" for c in block.columns if c.kept is not None)
    what = "with a noisy count of its records" if block.counts else "without its count"
    times = f"{show(block.weight)} times " if block.weight != 1 else ""
    over = "by the stated law of the sizes of keys" if block.kind == "expected" else "at the worst size"
    least = f", of those of at least {block.at_least} records" if block.at_least > 1 else ""
    return (
        f"A key of {block.source} is what a record says in {names}{f', {only} counted' if only else ''}. A key "
        f"that no record has is never in {block.output}. One that is shown stands there {what}.",
        f"The loss is {'first ' * bool(block.added)}{times}{WORDS[block.error]}{least}, {over}: `{block.expression}`.",
        *(line for one in block.added for line in _sum_words(block, one)),
        *(f"Line {one.line}: {one.text}." for one in block.accuracy),
    )


def _sum_words(block: KeyBlock, one: Added) -> Iterator[str]:
    """What stands beside the keys, and what its errors cost."""
    ends = f"clipped to {show(one.lower)} to {show(one.upper)}"
    if one.each is not None:
        yield f"{one.each} has the sum of {one.column}, {ends}, of every key that {block.output} shows."
    if one.together is not None:
        what = "how many records" if one.column is None else f"the sum of {one.column}, {ends}, that"
        yield f"{one.together} has {what} all {'other ' * bool(one.rest)}keys have together."
    for cost in one.costs:
        hidden = ", that of a hidden key being 0" if cost.output == one.each else ""
        times = f"{show(cost.weight)} times " if cost.weight != 1 else ""
        yield f"Beside that, the loss has {times}the mean {OFF[cost.error]} of {cost.output}{hidden}."


def reads(model: Model) -> bool:
    """Whether a question is about a column of a table whose values nobody has listed."""
    return any(unknown_keys(node.domain) for node in model.inputs)


@once
@reading(lambda model: _unsupported(model))
def block_of(model: Model) -> KeyBlock:
    """The keys of a spec, and what it costs to hide them.

    Raises: SpecError PS05xx with every construct that cannot be computed, PS0401 for an average without a law of sizes.
    """
    if model.loss is None:
        raise without_loss(model)
    (source,) = model.inputs
    assert isinstance(source.domain, Table)
    output, loss, sums = _parts(model, model.loss)
    law = _law(model, loss.question)
    sizes = None if law is None else _sizes(model, law)
    lines = [(one, _error(model, output, one.target.left)) for one in model.accuracy]
    for found in (loss, *(found for _, found in lines), *sums):
        _check_sizes(model, loss, found, sizes)
    added, steps = _added(source.domain, sums)
    return KeyBlock(
        source=source.name,
        output=output.name,
        columns=tuple(_columns(source.domain, loss.question)),
        counts=loss.error != "missed",
        error=loss.error,
        at_least=loss.at_least(model),
        weight=loss.term.weight,
        expression=spell(model.loss),
        kind=loss.kind,
        sizes=sizes,
        accuracy=tuple(
            Accuracy(
                found.error,
                found.at_least(model),
                found.term.weight,
                found.kind,
                public_number(one.target.right, model),
                one.line,
                one.text,
            )
            for one, found in lines
        ),
        added=added,
        steps=steps,
    )


def _parts(model: Model, expr: syntax.Expr) -> tuple[GraphNode, Error, list[Error]]:
    """The output that has the keys with its error, and the errors of all others.

    Raises: Failure PS0502 for a loss that is no such sum, PS0504 for an output without a term.
    """
    found = list[tuple[GraphNode, Error]]()
    for term in terms(expr, model):
        body = term.body if isinstance(term, Term) and term.weight > 0 else None
        told = ((node, _compared(model, node, body)) for node in model.outputs if body is not None)
        one = next(((node, error) for node, error in told if error is not None), None)
        if one is None or not isinstance(term, Term):
            raise _unknown_error(model, model.outputs[0], expr, "the loss")
        found.append((one[0], Error(term, *one[1])))
    keys = [one for one in found if one[1].added is None]
    sums = [(node, error, error.added) for node, error in found if error.added is not None]
    if len(keys) != 1:
        raise _unknown_error(model, model.outputs[0], expr, "the loss")
    ((output, loss),) = keys
    missing = [node for node in model.outputs if not any(node is other for other, _ in found)]
    if missing:
        message = f"the loss has no term about {missing[0].name}"
        hint = f"add worst[ mean(|{missing[0].name} - sum({model.inputs[0].name}.column, by = {{...}})|) ]"
        raise Failure("PS0504", missing[0].span, message, help=hint)
    if any(node is output or added.shown not in (None, output.name) for node, _, added in sums):
        raise _unknown_error(model, output, expr, "the loss")
    return output, loss, [error for _, error, _ in sums]


def _added(table: Table, sums: Sequence[Error]) -> tuple[tuple[Added, ...], int]:
    """The sums beside keys, one of each column, and how many steps lie between the ends of each."""
    columns = dict(table.attributes)
    of = {error: error.added for error in sums if error.added is not None}
    kinds = list(dict.fromkeys((one.column, one.of == "whole") for one in of.values()))
    names = dict.fromkeys(name for name, _ in kinds)
    ends = {name: _ends(name, columns[name], sums[0].term.span) for name in names if name is not None}
    steps = lcm(*(each for *_, each in ends.values()))
    steps *= max(1, -(-FINE // steps)) if any(isinstance(columns[name], Between) for name in ends) else 1
    if steps > FINEST:
        message = f"{' and '.join(ends)} have no steps in common that are large enough"
        raise Failure("PS0502", sums[0].term.span, message, help="write their ends with fewer digits")
    found = list[Added]()
    for name, whole in kinds:
        errors = {error: one for error, one in of.items() if (one.column, one.of == "whole") == (name, whole)}
        outputs = {one.of: one.output for one in errors.values()}
        if len({one.output for one in errors.values()}) > len(outputs):
            span = next(iter(errors)).term.span
            raise Failure("PS0502", span, "two outputs are the same sum", help="name one of them in the loss")
        costs = tuple(Cost(one.output, error.error, error.term.weight, error.kind) for error, one in errors.items())
        low, high = (Fraction(1), Fraction(1)) if name is None else ends[name][:2]
        found.append(Added(name, low, high, outputs.get("each"), outputs.get("rest"), outputs.get("whole"), costs))
    return tuple(found), steps


def _ends(name: str, domain: Domain, span: Span) -> tuple[Fraction, Fraction, int]:
    """The ends of a column, and a number of steps between them of which its numbers, and 0, are whole ones."""
    match domain:
        case IntegerRange(low=low, high=high):
            step = Fraction(1)
        case Steps(low=low, high=high) if domain.spacing is not None:
            step = domain.step
        case Between(low=low, high=high):
            step = high - low
        case _:
            raise Failure("PS0502", span, f"{name} is no column of numbers", help="as in pay in 0..100000")
    low, high = Fraction(low), Fraction(high)
    steps = (high - low) / step
    return low, high, int(steps * (low * steps / (high - low)).denominator)


def _check_sizes(model: Model, loss: Error, found: Error, sizes: Grid | None) -> None:
    """Raises: Failure PS0502 for a line about other keys, PS0401 for an average without a law, PS0406 over no key."""
    whole = found.added is not None and found.added.of == "whole"
    if _asked(found.question, by=not whole) != _asked(loss.question, by=not whole):
        hint = "ask for them in a spec of their own"
        raise Failure("PS0502", found.term.span, "this is about other keys than the loss", help=hint)
    if found.kind == "worst":
        return
    settings, source = _settings(found.question), model.inputs[0].name
    if sizes is not None and not any(sizes.entries[found.at_least(model) - 1 :]):
        text = f"no key has {found.at_least(model)} records under the law of sizes"
        raise Failure("PS0406", found.term.span, text)
    if sizes is None:
        text = f"this average is over how many records the keys of {source} have, which has no law"
        by = f"{source}, by = {spell(settings[GROUPS])}" if GROUPS in settings else source
        count = f"{'count' if GROUPS in settings else 'histogram'}({by})"
        hint = (
            f"write worst[ ... ], or `intermediate sizes`, and under background `sizes = {count}` and "
            "`sizes ~ geometric(0.01)`"
        )
        raise Failure("PS0401", found.term.span, text, help=hint)


def _settings(question: syntax.Call) -> dict[str, syntax.Expr]:
    """What a question says behind the table, by name."""
    return {one.name: one.value for one in question.arguments if isinstance(one, syntax.Keyword)}


def _columns(table: Table, question: syntax.Call) -> Iterator[KeyColumn]:
    settings = _settings(question)
    groups = _texts(settings[GROUPS]) if GROUPS in settings else list(table.names)
    for name, domain in table.attributes:
        if name not in groups and name not in settings:
            continue
        kept = None
        if name in settings:
            every = list(domain.elements())
            wanted = settings[name]
            assert isinstance(wanted, syntax.SetOf)
            allowed = {getattr(item, "value", None) for item in wanted.items}
            kept = tuple(place for place, value in enumerate(every) if value in allowed)
        yield _column(name, domain, name in groups, kept)


def _texts(items: syntax.Expr) -> list[str]:
    assert isinstance(items, syntax.SetOf)
    return [item.value for item in items.items if isinstance(item, syntax.String)]


def _column(name: str, domain: Domain, grouped: bool, kept: tuple[int, ...] | None) -> KeyColumn:
    if isinstance(domain, Unknown):
        return KeyColumn(name, grouped, (), None, None, kept)
    if isinstance(domain, IntegerRange):
        return KeyColumn(name, grouped, (), domain.low, domain.high, kept)
    return KeyColumn(name, grouped, tuple(show(value) for value in domain.elements()), None, None, kept)


# --- the loss ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sum:
    """What an output has that stands beside keys: the sum of a column, or of records, of these keys in all.

    `of`: of "each" that is shown, of the "rest" beside those of the output `shown`, or the "whole".
    """

    output: str
    column: str | None
    of: str
    shown: str | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Error:
    """An average of an error of the release, and the question about the keys that it compares that with.

    `added`: of sums that stand beside keys.
    """

    term: Term
    error: str
    question: syntax.Call
    added: Sum | None = None

    @property
    def kind(self) -> str:
        return "worst" if self.term.operator == "worst" else "expected"

    def at_least(self, model: Model) -> int:
        """How many records keys have that it is about."""
        least = _settings(self.question).get(LEAST)
        found = Fraction(1) if least is None else evaluate(least, environment(model))
        assert isinstance(found, Fraction)
        return int(found)


def _error(model: Model, output: GraphNode, expr: syntax.Expr) -> Error:
    """Raises: Failure PS0502 for anything else."""
    match list(terms(expr, model)):
        case [Term(weight=weight, body=body) as term] if weight > 0:
            found = _compared(model, output, body)
            if found is not None and found[2] is None:
                return Error(term, *found)
    raise _unknown_error(model, output, expr, "the loss" if expr is model.loss else "the error of a line")


def _unknown_error(model: Model, output: GraphNode, expr: syntax.Expr, what: str) -> Failure:
    message = f"solve takes one error of {output.name} as {what}: of which keys are shown, or of their counts"
    if what == "the loss":
        message += "; and, added to it, errors of sums beside them"
    keys = f"keys({model.inputs[0].name}, by = {{...}})"
    count = keys.replace("keys", "count")
    hint = f"E[ missed({output.name}, {keys}) ], or E[ mean(|{output.name} - {count}|) ], or mean((...)^2)"
    if isinstance(table := model.inputs[0].domain, Table):
        name = next(name for name, domain in table.attributes if isinstance(domain, Unknown))
        hint += f"; or list the keys: {name} in {{a, b, c}}"
    return Failure("PS0502", expr.span, message, help=hint)


def _compared(model: Model, output: GraphNode, body: syntax.Expr) -> tuple[str, syntax.Call, Sum | None] | None:
    """The error of an output, what it is compared with, and of what stands beside keys what it is."""
    match body:
        case syntax.Call(function="missed", arguments=(syntax.Name(id=name), other)) if name == output.name:
            found = _question(model, other, ("keys",))
            return None if found is None else ("missed", found, None)
    size = measured(body)
    error = {("abs", False): "absolute", (None, True): "squared"}.get((size.norm, size.squared))
    if error is None or size.each is not None:
        return None
    for other in beside_output(size.error, output.name):
        found, shown = _question(model, other, (*COUNTED, "others")), None
        if found is not None and found.function == "others":
            first, inner = found.arguments
            shown = first.id if isinstance(first, syntax.Name) else ""
            found = _question(model, inner, COUNTED)
        if found is None:
            continue
        adds = found.function == "sum"
        column = _column_of(found) if adds else None
        if adds and column is None:
            continue
        if size.function == "mean" and shown is None:
            return error, found, Sum(output.name, column, "each") if adds else None
        if size.function is None and shown is not None:
            return error, found, Sum(output.name, column, "rest", shown)
        if size.function is None and GROUPS not in _settings(found) and found.function != "histogram":
            return error, found, Sum(output.name, column, "whole")
    return None


def _column_of(question: syntax.Call) -> str | None:
    """The one column that a sum adds up; None of a product."""
    given = [one for one in question.arguments if isinstance(one, syntax.SetOf)]
    names = _texts(given[0]) if given else []
    return names[0] if len(names) == 1 else None


def _question(model: Model, expr: syntax.Node, functions: Sequence[str]) -> syntax.Call | None:
    """The call that a value is, through names for it."""
    found = behind(model, expr)
    return found if isinstance(found, syntax.Call) and found.function in functions else None


def _asked(question: syntax.Call, *, by: bool = True) -> tuple[str, ...]:
    """What a question says, but for which keys it is about: groups, where they matter, and conditions in one order."""
    left = (LEAST,) if by else (LEAST, GROUPS)
    return tuple(sorted(f"{name} = {spell(one)}" for name, one in _settings(question).items() if name not in left))


def _law(model: Model, question: syntax.Call) -> DataModel | None:
    """The law of the sizes of the keys that a question is about, if one is declared."""
    for law in model.models:
        asked = _question(model, syntax.Name(law.subject, span=law.span), ("count", "histogram"))
        if asked is not None and _asked(asked) == _asked(question):
            return law
    return None


def _sizes(model: Model, law: DataModel) -> Grid:
    """The chances of 1, 2, ... records, rounded to 2^-60 and adding up to exactly one.

    Raises: Failure PS0514 for a law that is not known here, PS0406 for wrong arguments.
    """
    given, rule = arguments_of(law, environment(model)), DISTRIBUTIONS[law.distribution]
    if rule.weights is None or law.joint or not given:
        known = "geometric(p), uniform(lo, hi), categorical(weights), poisson(mean), lognormal(mean, sd)"
        message = f"{law.distribution} has no exact law of how many records a key has"
        raise Failure("PS0514", law.span, message, help=f"use {known}")
    first = given[0]
    if law.distribution == "geometric" and isinstance(first, Fraction) and 0 < first < 1:
        weights = _geometric(first)
    else:
        most = first.size if law.distribution == "categorical" and isinstance(first, np.ndarray) else LARGEST_SIZE
        weights = weights_of(rule, [Fraction(size) for size in range(1, most + 1)], given, law.span)
    total = sum(weights, Fraction(0))
    if total <= 0 or min(weights) < 0:
        raise Failure("PS0406", law.span, f"this law gives {law.subject} no probability from 1 record on")
    chances = [int(weight * 2**BITS / total) for weight in weights]
    while chances and not chances[-1]:
        chances.pop()
    # what rounding left goes to the likeliest size
    chances[chances.index(max(chances))] += 2**BITS - sum(chances)
    return Grid((len(chances),), Fraction(1, 2**BITS), tuple(chances))


def _geometric(p: Fraction) -> list[Fraction]:
    """(1 - p)^(n - 1) for n = 1, 2, ..., rounded down to 2^-100, until it is less than 2^-60 of the whole."""
    weights, stay = [2**100], int((1 - p) * 2**100)
    while weights[-1] >> (100 - BITS) and len(weights) < LARGEST_GEOMETRIC:
        weights.append((weights[-1] * stay) >> 100)
    return [Fraction(weight, 2**100) for weight in weights]


# --- what cannot be computed yet ------------------------------------------------------------------


def _unsupported(model: Model) -> Iterator[Unsupported]:
    """Constructs that are not known here: where, what, and what to write in their place."""
    what = "keys that are unknown"
    source = next(node for node in model.inputs if unknown_keys(node.domain))
    assert isinstance(source.domain, Table)
    alone = "ask for them in a spec of its own; a ledger adds up what several releases spend"
    yield from besides(model, what, alone)
    if not model.trust.central:
        yield model.trust_span, f"{what} under `trust {model.trust.name}`", "one keeper has to see which keys occur"
    for node in model.inputs:
        if node is not source:
            yield node.span, f"{node.name} beside the unknown keys of {source.name}", alone
    if source.domain.records is not None:
        yield source.span, f"{what} of a table of a known size", f"write `input {source.name} in table(...)`"
    for one in model.computed:
        yield one.expr.span, f"{one.name} from {what}", "whoever has the release computes it for free"
    for line in model.requirements[1:]:
        yield line.span, f"a second line about {what}", "keep the stricter of the two"
    for line in model.requirements[:1]:
        yield from _line(line, what)
    if not model.requirements:
        yield model.outputs[0].span, f"{what} without a line of privacy", f"add a line in {APPROXIMATE.name}"
    for target in model.accuracy:
        if target.target.probability is not None or target.target.variable is not None:
            hint = "write worst[ missed(shown, keys(t, by = {...}, at_least = 20)) ] <= 0.01"
            yield target.target.span, f"such a line of accuracy of {what}", hint
    yield from other_families(model, (), f" for {what}", "leave the option out: chances by count are found")
    if model.noise_at is not None:
        yield model.noise_at_spans[0], f"places for noise of {what}", "leave the option out"


def _line(line: Requirement, what: str) -> Iterator[Unsupported]:
    measure, unit = line.measure, line.neighbours
    if measure.common not in MEASURES:
        yield line.span, f"{measure.name} of {what}", f"write {APPROXIMATE.name}"
    if type(unit) not in (ReplacingRecord, ReplacingPerson):
        yield line.span, f"{what}, {unit.describe()},", "write `adding or removing one record`"
