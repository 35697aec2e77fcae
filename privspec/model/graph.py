"""The typed graph of a spec: variables, relations and requirements, ready for the compiler.

Outputs that are computed from released ones, as in `output average = S / N`, cost nothing. They are set apart before
anything else reads a spec. A line of privacy that names one is about the outputs that it is computed from; whoever sees
all of those is given it as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import cached_property, wraps
from itertools import product
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from privspec.core.diagnostics import Diagnostic, SpecError
from privspec.core.records import dataclass, field, replace
from privspec.core.spans import Source, Span
from privspec.language import syntax
from privspec.language.spelling import spell
from privspec.language.syntax import VariableKind
from privspec.language.walk import names_used, walk, with_children
from privspec.model.domains import Domain, Grid, IntegerRange, Interval, Tables, Type
from privspec.model.evaluate import Environment, evaluate
from privspec.model.neighbours import InputBlock
from privspec.model.reports import Failure, Report
from privspec.model.requirements import (
    AccuracyTarget,
    AssertedSensitivity,
    Chain,
    DataModel,
    Fact,
    IndependenceRequirement,
    MechanismConstraint,
    RecordsLaw,
    Requirement,
    Trust,
)
from privspec.model.scope import Scope
from privspec.model.values import Array, Symbol, Value, as_float, show

if TYPE_CHECKING:
    import networkx  # type: ignore[import-untyped]


class HasSpan(Protocol):
    """What stands at a place of the text."""

    @property
    def span(self) -> Span: ...


Choice: TypeAlias = "Symbol | tuple[Symbol, ...]"
"""A value that may be chosen: a word, an exact number, or a vector of numbers."""
Values: TypeAlias = Mapping[str, Choice]


@dataclass(frozen=True, slots=True)
class OpenChoice:
    """A name with the values that it may have, in order."""

    name: str
    values: tuple[Choice, ...]
    span: Span


@dataclass(frozen=True, eq=False)
class Design:
    """The choices of a spec; `make` builds the model of an alternative (a `model.graph.Model`)."""

    choices: tuple[OpenChoice, ...]
    loss: syntax.Expr | None
    make: Callable[[Values], Any]
    fixed: Mapping[str, str] = field(default_factory=dict)
    """Choices that were made from outside (`--set`), as they were written."""
    made: dict[tuple[Choice, ...], Any] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    """The specs of all parts that may be chosen, by the names of their files."""

    def __len__(self) -> int:
        return prod(len(choice.values) for choice in self.choices)

    def alternatives(self) -> Iterator[dict[str, Choice]]:
        """Every combination of values, the last choice running fastest."""
        names = [choice.name for choice in self.choices]
        for values in product(*(choice.values for choice in self.choices)):
            yield dict(zip(names, values, strict=True))

    def at(self, values: Values) -> Any:
        """The spec with its choices bound.

        Raises: SpecError with what is wrong of it, saying of which alternative.
        """
        key = tuple(values[choice.name] for choice in self.choices)
        if key not in self.made:
            try:
                model = self.make(values)
                self.texts.update(model.texts)
                self.made[key] = replace(model, design=self, texts=self.texts)
            except SpecError as error:
                note = f"said of the alternative {described(values)}"
                raise SpecError([replace(d, notes=(*d.notes, note)) for d in error.diagnostics]) from error
        return self.made[key]

    def check(self) -> Any:
        """The first alternative, once every value was built at least once.

        Raises: SpecError of the first that does not build.
        """
        first = next(self.alternatives())
        for choice in self.choices:
            for value in choice.values:
                self.at({**first, choice.name: value})
        return self.at(first)

    def of_words(self, words: Mapping[str, str]) -> dict[str, Choice]:
        """Values by how they are written.

        Raises: ValueError if they are not one of its alternatives.
        """
        known = {choice.name: {value_text(value): value for value in choice.values} for choice in self.choices}
        if set(words) != set(known) or any(word not in known[name] for name, word in words.items()):
            raise ValueError("these are no values of what the spec leaves open")
        return {choice.name: known[choice.name][words[choice.name]] for choice in self.choices}


@dataclass(frozen=True, eq=False, slots=True)
class Drawn:
    """A public value that is drawn from the data before all else; `models`: the spec at each of its values.

    `epsilon`: what the draw spends; `loss`: what the spec asks for, without the error of what is drawn.
    """

    name: str
    values: tuple[Fraction, ...]
    epsilon: Fraction
    models: tuple[Any, ...]
    loss: syntax.Expr | None
    span: Span

    def at(self, value: float) -> Any:
        """The spec at a value that was drawn; None where it is none of them."""
        return next((model for own, model in zip(self.values, self.models, strict=True) if float(own) == value), None)


def value_text(value: Choice) -> str:
    """As a spec writes it."""
    return f"[{', '.join(map(show, value))}]" if isinstance(value, tuple) else show(value)


def described(values: Values) -> str:
    """As in "protocol = nobody, k = 3"."""
    return ", ".join(f"{name} = {value_text(value)}" for name, value in values.items())


# --- the graph ------------------------------------------------------------------------------------


COUNTS = ("count", "histogram", "marginals")
"""Functions whose noisy values may be zero or less where what they count is not."""
TOTALS = ("total", "sum", "prefix_sums", "suffix_sums", "range_sums")
"""Functions of counts that are counts."""


@dataclass(frozen=True, eq=False, slots=True)
class Computed:
    """An output with the expression that gives it, and the outputs that it is computed from, through others too.

    `domain`: it is moved to the nearest number of it. `label`: its name for readers; `labels`: what each entry is
    about, by column, where it says so.
    """

    name: str
    expr: syntax.Expr
    sources: tuple[str, ...]
    domain: Interval | IntegerRange | Grid | None
    type: Type
    line: int
    label: str | None = None
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    written: syntax.Expr | None = None
    maps: tuple[str, ...] = ()
    """Released outputs of which the expression needs how they add up the cells of a table, as the value `O.cells`."""

    @property
    def text(self) -> str:
        """What is computed, in the words of a spec."""
        word = "moved into" if isinstance(self.domain, Interval) else "rounded to the nearest of"
        within = "" if self.domain is None else f", {word} {self.domain.describe()}"
        return f"{spell(self.written or self.expr)}{within}"

    @property
    def step(self) -> Fraction | None:
        """What it is rounded to a multiple of, from the least value of its domain on; None where it is not."""
        match self.domain:
            case Grid(step=step):
                return step
            case IntegerRange():
                return Fraction(1)
            case _:
                return None

    def value(self, released: Mapping[str, Any], public: Environment, *, moved: bool = True) -> Array:
        """Its value from released ones; not a number where there is none, as for a quotient by zero.

        Args: moved, into its domain.
        """
        arrays = {name: np.asarray(value, dtype=np.float64) for name, value in released.items()}
        known = {name: array if array.ndim else Fraction(float(array)) for name, array in arrays.items()}
        try:
            with np.errstate(all="ignore"):
                found = as_float(evaluate(self.expr, replace(public, values={**public.values, **known})))
        except Failure:
            return np.full(self.type.shape, np.nan)
        if self.domain is not None and moved:
            low, high = self.domain.bounds
            step = self.step
            if step is not None and low is not None:
                found = np.rint((found - float(low)) / float(step)) * float(step) + float(low)
            found = np.clip(found, None if low is None else float(low), None if high is None else float(high))
        return np.asarray(found, dtype=np.float64)


Statements = dict[str, tuple[syntax.Expr, syntax.Domain | None, Span]]


def set_apart(
    spec: syntax.Spec, scope: Scope, report: Report
) -> tuple[syntax.Spec, Statements, dict[str, tuple[str, ...]]]:
    """The spec without outputs that are computed from others, these with what defines them, and their sources."""
    outputs, public = set(scope.of("output")), set(scope.of("parameter", "constant"))
    written: Statements = {
        one.target.name: (one.value, one.domain, one.span)
        for one in spec.variables
        if one.kind is syntax.VariableKind.OUTPUT and one.value is not None
    }
    bare = {one.target.name: one for one in spec.variables if one.kind is syntax.VariableKind.OUTPUT}
    for line in spec.background:
        name = _defined(line)
        if isinstance(line, syntax.Relation) and name in bare and name not in written:
            written[name] = (line.right, bare[name].domain, line.span)
    apart = {
        name: one
        for name, one in written.items()
        if set(names_used(one[0])) & outputs and set(names_used(one[0])) <= outputs | public
    }
    if not apart:
        return spec, {}, {}
    sources = {name: _sources(name, apart, outputs, (), report) for name in apart}
    for place, node in _uses(spec, apart):
        hint = (
            f"weigh {' and '.join(sources[node.id]) or 'what it is computed from'}: whoever has that computes {node.id}"
        )
        report.failure(
            Failure("PS0501", node.span, f"{place} is about {node.id}, which is computed from others", help=hint)
        )
    if any(not found for found in sources.values()):
        return spec, {}, {}
    kept = replace(
        spec,
        variables=tuple(one for one in spec.variables if one.target.name not in apart),
        background=tuple(one for one in spec.background if _defined(one) not in apart),
        privacy=tuple(replace(line, subjects=_named(line.subjects, sources)) for line in spec.privacy),
    )
    return kept, apart, sources


def _sources(
    name: str, apart: Statements, outputs: set[str], above: tuple[str, ...], report: Report
) -> tuple[str, ...]:
    """The released outputs that one is computed from; nothing after telling of one that needs itself."""
    if name in above:
        report.failure(
            Failure("PS0210", apart[name][2], f"{name} is computed from itself", help="leave one of them free")
        )
        return ()
    found: dict[str, None] = {}
    for used in names_used(apart[name][0]):
        if used in apart:
            found |= dict.fromkeys(_sources(used, apart, outputs, (*above, name), report))
        elif used in outputs:
            found[used] = None
    return tuple(found)


def _uses(spec: syntax.Spec, apart: Statements) -> list[tuple[str, syntax.Name]]:
    """Where such outputs stand in lines that would have to predict them."""
    places: list[tuple[str, syntax.Node]] = [] if spec.loss is None else [("the loss", spec.loss)]
    places += [("this line", line) for line in spec.accuracy]
    places += [("this line", line) for line in spec.background if _defined(line) not in apart]
    places += [("this option", option) for option in spec.options]
    found = [(place, node) for place, item in places for node in walk(item)]
    return [(place, node) for place, node in found if isinstance(node, syntax.Name) and node.id in apart]


def _defined(line: syntax.BackgroundStatement) -> str:
    """The variable that a line defines, if it does."""
    match line:
        case syntax.Relation(op="=", left=syntax.Name(id=name)):
            return name
        case _:
            return ""


def _named(subjects: syntax.Names, sources: Mapping[str, tuple[str, ...]]) -> syntax.Names:
    """The outputs that a line is about: those that a computed one comes from in its place."""
    if isinstance(subjects, syntax.AllOf):
        return subjects
    items: dict[str, syntax.Ref] = {}
    for item in subjects.items:
        for name in sources.get(item.name, (item.name,)):
            items.setdefault(
                name, item if name == item.name else syntax.Ref(name, name_span=item.name_span, span=item.span)
            )
    return replace(subjects, items=tuple(items.values()))


def guarded(expr: syntax.Expr, meanings: Mapping[str, syntax.Expr]) -> syntax.Expr:
    """The expression with every quotient by a noisy count as one by the larger of it and 1.

    Args: meanings, what outputs stand for and intermediates are.
    """

    def change(node: syntax.Node) -> syntax.Node:
        match node:
            case syntax.Binary(op="/", left=left, right=right) if _counts(right, meanings):
                one = syntax.Number(Fraction(1), "1", span=right.span)
                below = syntax.Call("max", (right, one), span=right.span)
                return syntax.Binary("/", change(left), below, span=node.span)  # type: ignore[arg-type]
            case _:
                return with_children(node, change)

    return change(expr)  # type: ignore[return-value]


def _counts(expr: syntax.Node, meanings: Mapping[str, syntax.Expr]) -> bool:
    """Whether it is a number of records: a count, an entry or a total of counts, or a sum of two."""
    match expr:
        case syntax.Name(id=name) if name in meanings:
            left = {other: meaning for other, meaning in meanings.items() if other != name}
            return _counts(meanings[name], left)
        case syntax.Call(function=function) if function in COUNTS:
            return True
        case syntax.Call(function=function, arguments=(inner,)) if function in TOTALS:
            return _counts(inner, meanings)
        case syntax.Index(base=base):
            return _counts(base, meanings)
        case syntax.Binary(op="+", left=left_side, right=right_side):
            return _counts(left_side, meanings) and _counts(right_side, meanings)
        case _:
            return False


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One variable. `type` is that of the whole collection when it has an `index` (the index set's name).

    `secret`: an input, or computed from one without passing through an output. `label`: its name for readers.
    """

    name: str
    kind: VariableKind
    type: Type
    span: Span
    domain: Domain | None = None
    definition: syntax.Expr | None = None
    index: str | None = None
    secret: bool = False
    label: str | None = None

    @property
    def bounds(self) -> tuple[Fraction | None, Fraction | None]:
        """Between which ends its numbers lie, None where there is none."""
        return (None, None) if self.domain is None else self.domain.bounds

    @property
    def value_count(self) -> int:
        """How many values it may have, one member's where it has an index; 0 where they are not finitely many."""
        return (self.domain.size if self.domain is not None else None) or 0


@dataclass(frozen=True, slots=True)
class PartySet:
    """People 1..size who each hold data."""

    name: str
    size: int
    span: Span


@dataclass(frozen=True, eq=False, slots=True)
class Component:
    """Another spec that is a part of this one, whose variables are called `name.x` here.

    `file`: the file that it stands in, or its name in the same file. `links`: the input or index set of the whole that
    each of its own is, those `by_name` because nothing else was passed; `domains`: what it declares for them, by the
    name in the whole; `settings`: what its parameters are given. It is run `times` times, and only if the output
    `only_if` is released and is not 0, or as `sign` and `limit` say. `stated`: whom it trusts, where it says so, in its
    file or where it is used.
    """

    name: str
    file: str
    links: Mapping[str, str]
    by_name: tuple[str, ...]
    settings: Mapping[str, syntax.Expr]
    domains: Mapping[str, syntax.Domain]
    span: Span
    times: int = 1
    only_if: str | None = None
    sign: str = "!="
    limit: Fraction = Fraction(0)
    stated: syntax.Trust | None = None

    @property
    def plain(self) -> bool:
        """Whether it is run once, whatever is released."""
        return self.times == 1 and self.only_if is None


def condition_words(part: Any) -> str:
    """When a part that has a condition is drawn, as in "first.O > 20"."""
    zero = part.sign == "!=" and not part.limit
    return f"{part.only_if} is not 0" if zero else f"{part.only_if} {part.sign} {show(part.limit)}"


@dataclass(frozen=True, slots=True)
class Different:
    """Inputs of which nobody is in two, as a line says, or of which somebody may be in several."""

    names: tuple[str, ...]
    span: Span


@dataclass(frozen=True, eq=False)
class Model:
    """A spec whose names, shapes, domains and units make sense; each is itself alone, whatever another may say.

    Variables of its `components` are among its own; `texts` are those of their files, by name.
    """

    source: Source
    spec: syntax.Spec
    name: str
    parameters: Mapping[str, Value]
    values: Mapping[str, Value]
    nodes: Mapping[str, GraphNode]
    edges: tuple[tuple[str, str], ...]
    order: tuple[str, ...]
    blocks: tuple[InputBlock, ...]
    targets: Mapping[str, syntax.Expr]
    loss: syntax.Expr | None
    requirements: tuple[Requirement, ...]
    trust: Trust
    base: Path | None = None
    parties: Mapping[str, PartySet] = field(default_factory=dict)
    components: tuple[Component, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    models: tuple[DataModel, ...] = ()
    records: tuple[RecordsLaw, ...] = ()
    chains: tuple[Chain, ...] = ()
    constraints: tuple[MechanismConstraint, ...] = ()
    facts: tuple[Fact, ...] = ()
    asserted: tuple[AssertedSensitivity, ...] = ()
    through: Mapping[str, str] = field(default_factory=dict)
    """Inputs of which a function alone is read, whose sensitivity is asserted: its name."""
    accuracy: tuple[AccuracyTarget, ...] = ()
    fairness: tuple[IndependenceRequirement | Requirement, ...] = ()
    noise_at: tuple[str, ...] | None = None
    noise_at_spans: tuple[Span, ...] = ()
    families: tuple[str, ...] = ()
    unbiased: bool = False
    family_spans: tuple[Span, ...] = ()
    different: tuple[Different, ...] = ()
    same: tuple[Different, ...] = ()
    files: Mapping[str, Array] = field(default_factory=dict)
    warnings: tuple[Diagnostic, ...] = ()
    computed: tuple[Computed, ...] = ()
    design: Design | None = None
    """What it leaves open, if anything."""
    chosen: Mapping[str, Choice] = field(default_factory=dict)
    """What is chosen of that in this model: nothing, or all."""
    cost: Fraction = Fraction(0)
    """What the chosen values cost, by the terms of the loss that are about nothing else."""
    drawn: Drawn | None = None
    """What is drawn from the data before all else, if anything; this model is the spec at its largest value."""

    @property
    def open(self) -> bool:
        """Whether design choices are still to be made."""
        return self.design is not None and not self.chosen

    @property
    def labels(self) -> dict[str, str]:
        """What the spec calls outputs where people read them, by name; of computed ones too."""
        found = {node.name: node.label for node in self.nodes.values()} | {one.name: one.label for one in self.computed}
        return {name: label for name, label in found.items() if label}

    @property
    def size(self) -> int:
        """Number of coordinates of the base vector."""
        return self.blocks[-1].stop if self.blocks else 0

    def _kind(self, kind: VariableKind) -> tuple[GraphNode, ...]:
        return tuple(node for node in self.nodes.values() if node.kind is kind)

    @property
    def inputs(self) -> tuple[GraphNode, ...]:
        """The secret inputs, in order of declaration."""
        return self._kind(VariableKind.INPUT)

    @property
    def numeric_inputs(self) -> tuple[GraphNode, ...]:
        """Those of numbers, or of cells whose records are counted: what answers that are linear depend on."""
        return tuple(node for node in self.inputs if node.type.numeric or self.block(node.name).layout == "cells")

    @property
    def outputs(self) -> tuple[GraphNode, ...]:
        return self._kind(VariableKind.OUTPUT)

    @property
    def intermediates(self) -> tuple[GraphNode, ...]:
        """What is computed on the way."""
        return self._kind(VariableKind.INTERMEDIATE)

    @property
    def constants(self) -> tuple[GraphNode, ...]:
        return self._kind(VariableKind.CONSTANT)

    @property
    def choices(self) -> tuple[GraphNode, ...]:
        return self._kind(VariableKind.CHOOSE)

    def exposed(self, requirement: Requirement) -> tuple[str, ...]:
        """The outputs whose joint law a line is about: also all of those whose messages, or sums, are seen by all.

        A line of a part is about what the part shows.
        """
        public = {node.name for node in self.outputs if self.trust.of(node.name).public}
        if not public:
            return requirement.outputs
        part = self._part_of(requirement.span)
        also = public if part is None else {name for name in public if name.startswith(f"{part.name}.")}
        return tuple(node.name for node in self.outputs if node.name in also or node.name in requirement.outputs)

    def _part_of(self, span: Span) -> Component | None:
        """The part in whose file a line stands: files and parts are in one order; none in a part by itself."""
        file, _ = self.source.place(span)
        parts = zip(self.source.files[1:], self.components, strict=False)
        return next((part for (_, own), part in parts if own is file), None)

    def block(self, name: str) -> InputBlock:
        """The block of an input.

        Raises: KeyError if there is no such input.
        """
        for block in self.blocks:
            if block.name == name:
                return block
        raise KeyError(name)

    def uses(self, name: str) -> tuple[str, ...]:
        """The names in the definition of a variable."""
        node = self.nodes.get(name)
        return () if node is None or node.definition is None else names_used(node.definition)

    @property
    def loss_span(self) -> Span:
        """Where the loss stands; all of the spec where there is none."""
        return self.spec.span if self.loss is None else self.loss.span

    @property
    def trust_span(self) -> Span:
        """Where it stands who is trusted; where the spec does not say so, what it promises first, or all of it."""
        return self.trust.span or next((line.span for line in self.requirements), self.spec.span)

    def line(self, node: HasSpan) -> int:
        """The number of the line that something begins on."""
        return self.source.position(node.span.start)[0]

    @property
    def expressions(self) -> tuple[syntax.Node, ...]:
        """All that is computed or compared: the loss, lines of accuracy, definitions."""
        definitions = (node.definition for node in self.nodes.values())
        written = (self.loss, *(line.target for line in self.accuracy), *definitions)
        return tuple(one for one in written if one is not None)

    def text(self, node: syntax.Node) -> str:
        """What the spec says in a place; of a part, in the names of the whole."""
        own = self.source.place(node.span)[0] in (self.source, self.source.main)
        return " ".join((self.source.slice(node.span) if own else spell(node)).split())

    @cached_property
    def sources(self) -> Mapping[str, list[str]]:
        """What each value is computed from, or drawn around."""
        found: dict[str, list[str]] = {}
        for start, end in self.edges:
            found.setdefault(end, []).append(start)
        return found

    @cached_property
    def graph(self) -> networkx.DiGraph[str]:
        """Variables as nodes (attribute "node"), `a -> b` where b is computed from, or released for, a."""
        import networkx

        graph: networkx.DiGraph[str] = networkx.DiGraph()
        for name, node in self.nodes.items():
            graph.add_node(name, node=node)
        graph.add_edges_from(self.edges)
        return graph


def once(function: Callable[[Model], T]) -> Callable[[Model], T]:
    """A function of models that is computed once for each of them, as they never change."""
    found: WeakKeyDictionary[Model, T] = WeakKeyDictionary()

    @wraps(function)
    def known(model: Model) -> T:
        if model not in found:
            found[model] = function(model)
        return found[model]

    vars(known)["found"] = found
    return known


def once_at_any_amount(function: Callable[[Model], T]) -> Callable[[Model], T]:
    """The same for what does not depend on the amounts of the lines of privacy, so that models can `inherit` it."""
    known = once(function)
    AT_ANY_AMOUNT.append(known)
    return known


AT_ANY_AMOUNT: list[Callable[[Model], Any]] = []


def inherit(model: Model, other: Model) -> None:
    """Know of a model what is known of another one, which differs in the amounts of lines only."""
    for known in AT_ANY_AMOUNT:
        found = vars(known)["found"]
        if other in found:
            found[model] = found[other]


def give(known: Callable[[Model], T], model: Model, value: T) -> None:
    """What a function that is computed `once` is for a model, where that is known from another one."""
    vars(known)["found"][model] = value


def lay_out(nodes: Mapping[str, GraphNode], source: Source) -> tuple[InputBlock, ...]:
    """Give each input its coordinates, in order of declaration."""
    blocks: list[InputBlock] = []
    start = 0
    for node in nodes.values():
        if node.kind is not VariableKind.INPUT or node.domain is None:
            continue
        element = node.type.element
        cells = isinstance(element, Tables)
        # a table at each party: their cells in turn
        size = element.table.cell_count * prod(node.type.shape) if isinstance(element, Tables) else node.type.size
        blocks.append(
            InputBlock(
                node.name,
                start,
                start + size,
                "cells" if cells else "entries",
                node.domain,
                node.type,
                node.span,
                source,
                node.index,
            )
        )
        start += size
    return tuple(blocks)
