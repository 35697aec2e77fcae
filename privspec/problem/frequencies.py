"""How many people hold each value, where nobody is trusted with it: in numbers.

What each person sends is a channel of its own, from one of k values; what is released is an unbiased estimate of how
many hold each value. noise/notes/local-histograms.md has the mechanism, the bound and their proofs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import prod
from typing import TypeAlias

import numpy as np

from privspec.core.diagnostics import SpecError
from privspec.core.records import dataclass
from privspec.kernel.measures import PURE_MEASURES
from privspec.kernel.promises import Accuracy
from privspec.kernel.reports import MOST_PARTIES, MOST_VALUES, FrequencyBlock, together
from privspec.kernel.trust import NOBODY
from privspec.language import syntax
from privspec.language.spelling import spell
from privspec.language.walk import every
from privspec.model.domains import Domain, Grid, IntegerRange
from privspec.model.evaluate import evaluate, places_in_turn
from privspec.model.graph import GraphNode, Model, once
from privspec.model.reports import Failure, Unsupported, listing
from privspec.model.requirements import Requirement
from privspec.model.tallies import COUNTED
from privspec.model.targets import environment
from privspec.model.values import show
from privspec.problem.linear import column_of
from privspec.problem.refusals import PURE_NAMES, besides, other_families, other_unit, reading, too_weak
from privspec.problem.terms import (
    Term,
    behind,
    beside_output,
    measured,
    multiples,
    public,
    public_number,
    terms,
)

LARGEST_EPSILON = 40
LISTED = 6
"""Values of a group that are named."""
Group: TypeAlias = "tuple[int, ...] | None"
Asked: TypeAlias = "tuple[Fraction, Group]"
PLAIN: Asked = (Fraction(1), None)
"""The histogram itself."""


@dataclass(frozen=True, eq=False, slots=True)
class Counted:
    """What a histogram counts at parties: an input, and of a record of each some `columns`."""

    node: GraphNode
    columns: tuple[tuple[str, Domain], ...]

    @property
    def size(self) -> int:
        """How many values there are."""
        found = prod(domain.size or 0 for _, domain in self.columns)
        return found if self.columns else (self.node.domain.size or 0) if self.node.domain else 0


def words(block: FrequencyBlock) -> tuple[str, ...]:
    """What is held and counted, and the loss."""
    if block.group is not None:
        some = listing([show(block.value(place)) for place in block.group[:LISTED]], "or")
        some += ", .." * (len(block.group) > LISTED)
        counted = f"how many hold {some}"
    else:
        counted = "how many hold each value"
    first, last = show(block.value(0)), show(block.value(block.values - 1))
    times = f"{show(block.scale)} times " if block.scale != 1 else ""
    weight = f"{show(block.weight)} times " if block.weight != 1 else ""
    what = f"{listing([one.name for one in block.columns])} in " if block.columns else ""
    return (
        f"{what}{block.source} of each {block.party} is one of {block.values:,} values, from {first} to {last}; there "
        f"are {block.count:,} of them.",
        f"{block.output} is {times}{counted}, estimated without bias from one report of each, which "
        "depends on that one's value alone.",
        f"The loss is {weight}the expected sum of the squared errors of {block.output}: `{block.expression}`."
        if block.weight
        else f"Errors of {block.output} are limited by lines alone.",
        *(f"Line {one.line}: {one.text}." for one in block.accuracy),
    )


def reads(model: Model) -> bool:
    """Whether a spec asks how many parties hold each value of an input of theirs."""
    found = counted(model)
    if not any(one.columns for one in found):
        return bool(found)
    try:
        block_of(model)
    except SpecError:
        return False  # noise on the counts of records may do
    return True


def counted(model: Model) -> list[Counted]:
    """What histograms of parties count."""
    calls = [call for expr in model.expressions for call in every(expr, syntax.Call)]
    return [found for call in calls if (found := _histogram_of(model, call)) is not None]


def _histogram_of(model: Model, expr: syntax.Node) -> Counted | None:
    """What a histogram counts at parties, if it is one: of their values, or of some columns of a record of each."""
    match expr:
        case syntax.Call(function="histogram", arguments=(syntax.Name(id=name), *rest)) if name in model.nodes:
            node, block = model.nodes[name], model.block(name)
            if counts_parties(node) and not block.tallied and not rest:
                return Counted(node, ())
            columns = {column: domain for column, domain in block.schema or () if column != node.index}
            named = _grouped(rest, tuple(columns))
            pure = all(one.common in PURE_MEASURES for line in model.requirements for one in line.measure.by_person)
            alone = pure and model.trust.alone and bool(node.index) and block.one_record and len(node.type.shape) == 1
            if alone and named and all(columns[one].size for one in named):
                return Counted(node, tuple((one, columns[one]) for one in named))
    return None


def _grouped(rest: Sequence[syntax.Argument], columns: tuple[str, ...]) -> tuple[str, ...] | None:
    """The columns whose values are counted together; None where other conditions say which."""
    match rest:
        case []:
            return columns
        case [syntax.Keyword(name="by", value=syntax.SetOf(items=items))]:
            named = tuple(item.value for item in items if isinstance(item, syntax.String))
            return named if len(named) == len(items) and set(named) <= {*columns} else None
    return None


def counts_parties(node: GraphNode) -> bool:
    """Whether each party holds one of finitely many values, as an input."""
    of_values = isinstance(node.domain, COUNTED) and len(node.type.shape) == 1
    return node.kind is syntax.VariableKind.INPUT and bool(node.index) and of_values


@once
@reading(lambda model: _unsupported(model))
def block_of(model: Model) -> FrequencyBlock:
    """The values of a spec, and what errors of their counts cost.

    Raises: SpecError PS05xx with every construct that cannot be computed.
    """
    if model.loss is None and not model.accuracy:
        hint = (
            "write the error of the counts as the loss; `privspec sweep SPEC --over epsilon=0.5:4` tells it by epsilon"
        )
        raise Failure("PS0504", model.spec.span, "there is no error of counts to minimise", help=hint)
    (source,), (output,) = model.inputs, model.outputs
    reader = ErrorReader(model, source, output)
    loss, counted = reader.read(model.accuracy[0].target.left if model.loss is None else model.loss), reader.counted
    assert source.domain is not None and source.index is not None
    columns = tuple(column_of(*one) for one in counted.columns)
    listed, lower, step = (together(columns), None, None) if columns else _values(source.domain)
    accuracy = []
    for one in model.accuracy:
        found = reader.read(one.target.left)
        if (found.scale, found.group) != (loss.scale, loss.group):
            raise Failure("PS0502", one.target.span, "this compares the output with something else than the loss does")
        accuracy.append(Accuracy(found.weight, public_number(one.target.right, model), one.line, one.text))
    return FrequencyBlock(
        source=source.name,
        output=output.name,
        party=source.index,
        count=source.type.shape[0],
        values=counted.size,
        listed=listed,
        lower=lower,
        step=step,
        group=loss.group,
        scale=loss.scale,
        weight=Fraction(0) if model.loss is None else loss.weight,
        expression="" if model.loss is None else spell(model.loss),
        kind=loss.kind,
        accuracy=tuple(accuracy),
        columns=columns,
    )


def _values(domain: Domain) -> tuple[tuple[str, ...], Fraction | None, Fraction | None]:
    """The values as words, or the first of them and their step."""
    match domain:
        case IntegerRange(low=low):
            return (), Fraction(low), Fraction(1)
        case Grid(low=first, step=step):
            return (), first, step
    return tuple(show(value) for value in domain.elements()), None, None


# --- the loss ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SquaredError:
    """`weight` times the sum of the squared differences of the output and `scale` times the counts.

    `group`: the places of values that are counted together, None where each is by itself.
    """

    weight: Fraction
    scale: Fraction
    group: Group
    kind: str


@dataclass(frozen=True, eq=False, slots=True)
class ErrorReader:
    """Reads errors of the output: sums and means of its squared differences from the histogram."""

    model: Model
    source: GraphNode
    output: GraphNode

    @property
    def counted(self) -> Counted:
        """What is counted: the same in all histograms."""
        return next(iter(counted(self.model)))

    def read(self, expr: syntax.Expr) -> SquaredError:
        """Raises: Failure PS0502 for anything else."""
        match list(terms(expr, self.model)):
            case [Term(weight=weight, operator=operator, body=body)] if weight > 0:
                found = self._body(body)
                if found is not None:
                    times, (scale, group) = found
                    return SquaredError(weight * times, scale, group, "worst" if operator == "worst" else "expected")
        name, of = self.output.name, f"histogram({self.source.name})"
        message = f"solve takes the squared error of all counts, {name} - {of}, as the loss of reports by people"
        hint = f"E[ ||{name} - {of}||^2 ], E[ mean(({name} - {of})^2) ], or of one count E[ ({name} - {of}[3])^2 ]"
        raise Failure("PS0502", expr.span, message, help=hint)

    def _body(self, body: syntax.Expr) -> tuple[Fraction, Asked] | None:
        """Weight, and what the output is compared with."""
        found = measured(body)
        error, every = found.error, Fraction(1, self.output.type.size if found.function == "mean" else 1)
        lengths = ("2",) if self.output.type.shape else ("2", "abs", None)
        if not found.squared or found.norm not in (lengths if found.function is None else (None,)):
            return None
        if found.each is None:
            return self._error(error, every)
        if places_in_turn(found.each, environment(self.model)) != range(1, self.output.type.size + 1):
            return None  # a sum over some of the counts is another loss
        match error:
            case syntax.Binary(
                op="-",
                left=syntax.Index(base=left, indices=(syntax.Name(id=one),)),
                right=syntax.Index(base=right, indices=(syntax.Name(id=other),)),
            ) if one == other == found.each.variable:
                return self._error(syntax.Binary("-", left, right, span=error.span), every)
        return None

    def _error(self, error: syntax.Expr, every: Fraction) -> tuple[Fraction, Asked] | None:
        found = (self.asked(other) for other in beside_output(error, self.output.name))
        asked = next((one for one in found if one is not None), None)
        return None if asked is None else (every, asked)

    def asked(self, expr: syntax.Expr) -> Asked | None:
        """The s > 0 of s times the histogram, or of a sum of some of its counts; through names, None for else."""
        if _histogram_of(self.model, expr) is not None:
            return Fraction(1), None
        if isinstance(expr, syntax.Name):
            meant = behind(self.model, expr)
            return None if meant is expr else self.asked(meant)
        match expr:
            case syntax.Index(base=base, indices=(place,)) if self.asked(base) == PLAIN:
                at = public_number(place, self.model)
                whole = at.denominator == 1 and 1 <= at <= self.counted.size
                return (Fraction(1), (int(at) - 1,)) if whole else None
            case syntax.Binary(op="@", left=left, right=right) if self.asked(right) == PLAIN:
                return self._group(left)
        match list(multiples(expr, self.model)):
            case [(factor, inner)] if inner is not expr and factor > 0 and (found := self.asked(inner)) is not None:
                return found[0] * factor, found[1]
        return None

    def _group(self, weights: syntax.Expr) -> Asked | None:
        """The values that a public vector of 0 and 1 adds up, where it is neither all of them nor none."""
        if not public(weights, self.model):
            return None
        given = np.asarray(evaluate(weights, environment(self.model)))
        if given.ndim != 1 or not np.isin(given.astype(float), (0, 1)).all() or len(set(given.tolist())) < 2:
            return None
        return Fraction(1), tuple(np.flatnonzero(given.astype(float)).tolist())


# --- what cannot be computed yet -----------------------------------------------------------------------


def _unsupported(model: Model) -> Iterator[Unsupported]:
    """Constructs that are not known here: where, what, and what to write in their place."""
    calls = [node for node in model.inputs if node.index]
    source = next((node for node in calls if isinstance(node.domain, COUNTED)), calls[0])
    what = f"a histogram of the {source.name} of each {source.index}"
    if not model.trust.alone:
        domain = "{a, b, c}" if source.domain is None else source.domain.describe()
        table = f"`input people in table({source.name} in {domain})^{source.type.shape[0]}`"
        hint = f"where one keeper sees all, write {table} and histogram(people, by = {{{source.name}}})"
        yield model.trust_span, f"{what} under `trust {model.trust.name}`", f"write `{NOBODY.written}`; {hint}"
        return
    yield from besides(model, what, "release it by a spec of its own")
    if len(model.inputs) != 1 or len(model.outputs) != 1:
        other = next(node for node in (*model.inputs, *model.outputs) if node is not source)
        yield other.span, f"{other.name} beside {what}", "write a spec for each histogram; a ledger adds them up"
        return
    (output,) = model.outputs
    if output.domain is not None:
        hint = f"write `output {output.name}`; whoever has it can move and round it for free"
        yield output.span, f"an estimate of counts in {output.domain.describe()}", hint
    every_one = counted(model)
    if len({(one.node.name, tuple(name for name, _ in one.columns)) for one in every_one}) > 1:
        yield output.span, f"several histograms as the aim of {output.name}", "give each an output of its own"
    size, count = every_one[0].size, source.type.shape[0]
    if not 2 <= size <= MOST_VALUES or count > MOST_PARTIES:
        limits = f"from 2 to {MOST_VALUES:,} values, and up to {MOST_PARTIES:,} of {source.index}"
        yield source.span, f"{what}: it takes {limits}", None
    for law in model.models:
        if source.name in law.subjects:
            hint = "leave it out: the error is the same whatever people hold"
            yield law.span, f"a data model of {source.name} for an unbiased histogram", hint
    for line in model.requirements:
        yield from _line(line, source, what)
    for target in model.accuracy:
        if target.target.variable is not None or target.target.probability is not None:
            hint = f"write E[ ||{output.name} - histogram({source.name})||^2 ] <= 4"
            yield target.target.span, f"such a line of accuracy of {what}", hint
    best = "leave the option out: the best reports of a finite set are found"
    yield from other_families(model, ("table",), f" for {what}", best)
    if model.noise_at is not None and set(model.noise_at) - {source.name}:
        yield model.noise_at_spans[0], "such a place for noise", f"write `noise at {source.name}`, or leave it out"


def _line(line: Requirement, source: GraphNode, what: str) -> Iterator[Unsupported]:
    """What a line asks for that is not known here."""
    measure = line.measure
    yield from other_unit(line, source, what)
    for one in dict.fromkeys(measure.by_person):
        if one.common not in PURE_MEASURES or one.pure_epsilon is None:
            hint = f"write {PURE_NAMES}: reports of a finite set need no delta"
            yield line.span, f"{one.name} of {what}", hint
        elif one.pure_epsilon > LARGEST_EPSILON:
            yield too_weak(line, one, LARGEST_EPSILON)
