"""What explanations need of the spec itself: its title, trust, inputs and the lines that say so.

Also its loss as a sum of errors that have a name; and what rules do to data that do not fit, in words: next to every
error by chance, what else moves a figure, and how.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from fractions import Fraction
from typing import Any

from privspec.core.diagnostics import SpecError
from privspec.core.records import dataclass, replace
from privspec.core.spans import Source
from privspec.explain.document import Accuracy, Because, Note, Sentence, SpecLine
from privspec.explain.messages import phrase, say
from privspec.explain.quantities import Quantity, exact, rounded
from privspec.kernel.trust import CURATOR, KINDS, NOBODY, PARTS
from privspec.language import syntax
from privspec.language.parser import parse
from privspec.language.spelling import spell
from privspec.language.syntax import VariableKind
from privspec.language.walk import names_used, walk
from privspec.model.components import Whole, assembled
from privspec.model.designs import bound_as_written, picked_as_written
from privspec.model.domains import Ball, Domain, FiniteSet, PartialRankingOf, RankingOf, Table
from privspec.model.graph import Model
from privspec.model.library import library
from privspec.model.reports import listing
from privspec.problem.fitting import Done, Rule, Way, clipped, expected, rules
from privspec.stated import Stated, parse_exact


@dataclass(frozen=True, slots=True)
class Shape:
    """How an error is measured, and how its average reads: in brackets after a figure, in a table, in a sentence.

    `of_words` is whether it asks only if two values are the same, so that they may be words; of squares the root is
    read.
    """

    name: str
    in_brief: str
    in_words: str
    of_words: bool = False
    root: bool = False

    def figure(self, average: float) -> Quantity:
        """The average as a reader has it."""
        return rounded(math.sqrt(max(average, 0.0)) if self.root else average)

    def brief(self, average: float) -> str:
        """The average in a table: "off by 1.3"."""
        return self.in_brief.format(self.figure(average))

    def words(self, average: float) -> str:
        """The average in a sentence: "off by 1.3 on average"."""
        return self.in_words.format(self.figure(average))

    def to_json(self) -> dict[str, object]:
        return {"name": self.name}


_ALIKE = "wrong with probability {}"
WRONG = Shape("probability of a wrong answer", _ALIKE, _ALIKE, of_words=True)
OFF = Shape("mean absolute error", "off by {}", "off by {} on average")
AWAY = Shape("mean distance", "{} away", "{} away on average")
SQUARED = Shape("root mean square", "± {}", "typically off by {}", root=True)


@dataclass(frozen=True, slots=True)
class LossTerm:
    """weight * E[body], or its largest value over the inputs where `worst`; body is the error of `left` to `right`."""

    weight: Fraction
    worst: bool
    shape: Shape
    left: str
    right: str
    body: syntax.Expr

    def to_json(self) -> dict[str, object]:
        names = {"left": self.left, "right": self.right}
        return {"weight": str(self.weight), "worst": self.worst, "shape": self.shape, **names}


@dataclass(frozen=True, eq=False, slots=True)
class Formulas:
    """The definitions of a spec by name, the parameters that are one number, and its model where the caller has it."""

    definitions: Mapping[str, syntax.Expr]
    parameters: Mapping[str, Fraction]
    model: Model | None

    def to_json(self) -> dict[str, object]:
        return {"defined": sorted(self.definitions), "parameters": sorted(self.parameters)}


def formulas(tree: syntax.Spec, parameters: Mapping[str, str], model: Model | None) -> Formulas:
    """The definitions of a spec, with the values of its parameters as a plan states them."""
    found = {v.target.name: v.value for v in tree.variables if v.value is not None}
    for statement in tree.background:
        match statement:
            case syntax.Relation(op="=", left=syntax.Name(id=name), right=right):
                found[name] = right
    numbers = {}
    for name, value in parameters.items():
        with suppress(ValueError):
            numbers[name] = parse_exact(value)
    return Formulas(found, numbers, model)


def loss_terms(loss: syntax.Expr | None, parameters: Mapping[str, Fraction]) -> tuple[LossTerm, ...]:
    """The terms of a loss, weights by `parameters`; empty where one of them is of no known shape."""
    if loss is None:
        return ()
    found = tuple(_terms(loss, Fraction(1), parameters))
    return () if None in found else tuple(t for t in found if t is not None)


def _terms(expr: syntax.Expr, weight: Fraction, parameters: Mapping[str, Fraction]) -> Iterator[LossTerm | None]:
    match expr:
        case syntax.Binary(op="+", left=left, right=right):
            yield from _terms(left, weight, parameters)
            yield from _terms(right, weight, parameters)
        case syntax.Binary(op="*", left=syntax.Number(value=factor), right=inner):
            yield from _terms(inner, weight * factor, parameters)
        case syntax.Binary(op="*", left=syntax.Name(id=name), right=inner) if name in parameters:
            yield from _terms(inner, weight * parameters[name], parameters)
        case syntax.Over(operator=operator, body=body, given=None) if (found := _shape(body)) is not None:
            shape, left, right = found
            yield LossTerm(weight, operator == "worst", shape, spell(left), spell(right), body)
        case _:
            yield None


def _shape(body: syntax.Expr) -> tuple[Shape, Any, Any] | None:
    """What kind of error an expression is, and of what against what."""
    match body:
        case syntax.Call(function="mismatch", arguments=(left, right)):
            return WRONG, left, right
        case syntax.Absolute(operand=syntax.Binary(op="-", left=left, right=right)):
            return OFF, left, right
        case syntax.Norm(operand=syntax.Binary(op="-", left=left, right=right)):
            return AWAY, left, right
        case syntax.Binary(op="^", left=inner, right=syntax.Number(value=power)) if power == 2:
            inner = inner.operand if isinstance(inner, syntax.Norm) and inner.order == "2" else inner
            if isinstance(inner, syntax.Binary) and inner.op == "-":
                return SQUARED, inner.left, inner.right
    return None


# --- the context of a plan ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Context:
    """Facts of the spec that are no numbers of the plan.

    `trusts` are the trust models in force, each with the outputs of the parts that are under it, where parts say so;
    `trust_stated` is whether the spec names its trust model (else it is the language's default);
    `squared_error_of` the output whose plain sum of squared errors is the loss, empty for any other loss;
    `loss_terms` the errors it adds up, empty where one has no name, and `formulas` what they are computed by.
    `ties` says, for each function that is called, what it takes among equals. `distances` are those of metric
    requirements, by line; `input_domains` as written, by name; `choices` the lines that a `choose` variable stands in.
    """

    title: str
    source: tuple[str, ...]
    trust: str
    trusts: Mapping[str, list[str]]
    trust_stated: bool
    trust_because: Because
    input_lines: Mapping[str, SpecLine]
    loss_because: Because
    sites_because: Because
    squared_error_of: str
    loss_terms: tuple[LossTerm, ...]
    formulas: Formulas
    distances: Mapping[int, str]
    input_domains: Mapping[str, str]
    choices: Mapping[str, tuple[SpecLine, ...]]
    ties: Mapping[str, str]
    entry_laws: Mapping[str, tuple[SpecLine, ...]]
    whole_laws: Mapping[str, tuple[SpecLine, ...]]

    def trust_words(self, name: str) -> str:
        """How its trust model reads, of each part where they differ: who "sees_raw" data, a "stolen_server" .."""
        if self.trust != PARTS:
            return phrase(f"trust.{self.trust}.{name}")
        each = ((listing(parts), phrase(f"trust.{kind}.{name}")) for kind, parts in self.trusts.items())
        return " ".join(f"For {parts}: {words[0].lower()}{words[1:]}" for parts, words in each)

    @property
    def alone(self) -> bool:
        """Whether each party draws its own noise."""
        return KINDS.get(self.trust, CURATOR).alone

    @property
    def place(self) -> str:
        """Where it puts the noise, after a comma; empty where parts differ."""
        return "" if self.trust == PARTS else f", {self.trust_words('place')}"

    def line(self, number: int) -> SpecLine:
        """A line of the spec by number, with its text where there is one."""
        return _line(self.source, number)

    def line_of(self, name: str) -> SpecLine:
        """The line that declares an input; the line 0 where there is none."""
        return self.input_lines.get(name) or self.line(0)


def context(plan: Stated, loss: syntax.Expr | None = None, model: Model | None = None) -> Context:
    """The context of a plan, from the syntax tree of the source that the plan carries; `loss` that of a part of it.

    A source that does not parse (a plan that was tampered with) gives a context without lines.
    """
    source = Source(plan.spec.path, plan.spec.source)
    try:
        whole = assembled(picked_as_written(parse(source), plan.spec.choices), source, None, plan.spec.components)
        whole = replace(whole, spec=bound_as_written(whole.spec, plan.spec.choices))
    except SpecError:
        whole = Whole(syntax.Spec(None, None), source)
    tree, source = whole.spec, whole.source
    lines = tuple(source.text.splitlines())

    def at(node: Any) -> SpecLine:
        return _line(lines, source.position(node.span.start)[0])

    def option(kind: type[Any]) -> Any:
        return next((o for o in tree.options if isinstance(o, kind)), None)

    known, trust, sites = formulas(tree, plan.spec.parameters, model), option(syntax.Trust), option(syntax.NoiseAt)
    local = any(g.asked is not None and g.asked.local for g in plan.guarantees)
    because: Because = at(trust) if trust else Note("trust-by-default")
    inputs, chosen = (
        {v.target.name: v for v in tree.variables if v.kind is kind}
        for kind in (VariableKind.INPUT, VariableKind.CHOOSE)
    )
    written = _word(trust) if trust else NOBODY.name if local else CURATOR.name
    kind = written if plan.frame is None else plan.frame.trust.kind
    if kind != written:
        because = next(
            (at(said) for part in whole.components if (said := part.stated) and kind in (PARTS, _word(said))), because
        )
    return Context(
        title=_title(tree.doc) or plan.spec.name or "this plan",
        source=lines,
        trust=kind,
        trusts=_trusts(plan, kind),
        trust_stated=trust is not None or kind != written,
        trust_because=because,
        input_lines={name: at(variable) for name, variable in inputs.items()},
        loss_because=at(tree.loss) if tree.loss is not None else Note("placement"),
        sites_because=at(sites) if sites else because,
        squared_error_of=_squared_error_of(loss or tree.loss),
        loss_terms=loss_terms(loss or tree.loss, known.parameters),
        formulas=known,
        distances={at(r).number: distance for r in tree.privacy if (distance := _distance(r))},
        input_domains={name: spell(v.domain) for name, v in inputs.items() if v.domain is not None},
        choices={
            name: tuple(dict.fromkeys(map(at, (v, *(s for s in tree.background if name in names_used(s))))))
            for name, v in chosen.items()
        },
        ties=_ties(tree),
        entry_laws={name: tuple(map(at, laws)) for name, laws in _entry_laws(tree).items()},
        whole_laws={name: tuple(map(at, laws)) for name, laws in _entry_laws(tree, whole=True).items()},
    )


def _trusts(plan: Stated, kind: str) -> Mapping[str, list[str]]:
    if kind != PARTS:
        return {kind: []}
    from privspec.kernel.core.problem import read_frame
    from privspec.kernel.systems import outputs_in  # few lines trust part by part

    found = dict[str, list[str]]()
    for part in plan.executed.block.parts:
        own = read_frame(part.problem)
        found.setdefault(own.trust.kind, []).extend(outputs_in(own.blocks[0]))
    return found


def _word(trust: syntax.Trust) -> str:
    return trust.model.id if isinstance(trust.model, syntax.Name) else trust.model.function


def _line(lines: tuple[str, ...], number: int) -> SpecLine:
    inside = 1 <= number <= len(lines)
    return SpecLine(number, lines[number - 1].split("#", 1)[0].strip() if inside else "")


def _entry_laws(tree: syntax.Spec, *, whole: bool = False) -> dict[str, list[syntax.Relation]]:
    """The laws of entries, `x[i] ~ ...`, by the name of the variable; with `whole` of all of them together."""
    found: dict[str, list[syntax.Relation]] = {}
    for statement in tree.background:
        match statement:
            case syntax.Relation(op="~", left=syntax.Name(id=name)) if whole:
                found.setdefault(name, []).append(statement)
            case syntax.Relation(op="~", left=syntax.Index(base=syntax.Name(id=name))) if not whole:
                found.setdefault(name, []).append(statement)
    return found


def _ties(tree: syntax.Spec) -> dict[str, str]:
    """What the functions that the spec calls take among equals."""
    known = library()
    called = [node.function for node in walk(tree) if isinstance(node, syntax.Call)]
    return {name: known[name].ties for name in called if name in known and known[name].ties}


def _distance(requirement: syntax.Requirement) -> str:
    """The distance that a requirement names: by its name in the language where it has one, else as it is written."""
    clause = next((c for c in requirement.clauses if isinstance(c, syntax.Distance)), None)
    match None if clause is None else clause.metric:
        case None:
            return ""
        case syntax.Absolute():
            return "manhattan"
        case syntax.Norm(order=order):
            return {"1": "manhattan", "2": "euclidean", "inf": "chebyshev"}[order]
        case other:
            return spell(other)


def _squared_error_of(loss: syntax.Expr | None) -> str:
    """The output O of a loss `E[ ||O - y||^2 ]`."""
    match loss:
        case syntax.Over(
            operator="E",
            body=syntax.Binary(
                op="^",
                left=syntax.Norm(operand=syntax.Binary(op="-", left=syntax.Name(id=name)), order="2"),
                right=syntax.Number(value=power),
            ),
            given=None,
        ) if power == 2:
            return name
    return ""


def _title(doc: str | None) -> str:
    """The first line of the spec's description, without its full stop."""
    words = (doc or "").strip().strip('"').strip()
    return words.splitlines()[0].strip().removesuffix(".") if words else ""


# --- data that do not fit -------------------------------------------------------------------------


MOST_TOLD, MOST_NAMED = 2, 2
"""Sentences on what is done, ranges of numbers in one; outputs that are told apart."""
Effects = Mapping[Done, str]
"""What a rule does to what is published, where that is not a figure that moves one way or the other."""

REPORTED: Effects = {Done.CLIPPED: "is further off", Done.NOT_LISTED: "counts as another value"}
"""Of reports, each of which is about one value."""


@dataclass(frozen=True, slots=True)
class CutFact:
    """How many records the spec's law lets expect to be cut, and by how much that lowers figures of outputs."""

    records: Quantity
    lower: tuple[tuple[str, Quantity, Quantity], ...]
    line: SpecLine

    @property
    def words(self) -> str:
        """For a table."""
        lower = "".join(f"; each figure of {name} too low by {_span(least, most)}" for name, least, most in self.lower)
        return f"{self.records} records{lower} (line {self.line.number})"


@dataclass(frozen=True, slots=True)
class Fitting:
    """The rules with the outputs that they move; in sentences what they do; what a law lets expect to be cut."""

    rules: tuple[Rule, ...] = ()
    told: tuple[Sentence, ...] = ()
    cut: tuple[CutFact, ...] = ()

    def clauses(self, names: Iterable[str], effects: Effects | None = None, most: int = MOST_NAMED) -> list[str]:
        """What moves these outputs besides chance, and how, a clause for each; nothing where nothing does.

        "what is left out makes it too low", "clipping moves it either way"; up to so many outputs are told by name.
        """
        wanted, said = tuple(dict.fromkeys(names)), dict[str, list[str]]()
        for rule in self.rules:
            moved = {name: way for name, way in rule.moves if name in wanted}
            if moved:
                how = (effects or {}).get(rule.done) or _moves(moved, wanted, most)
                said.setdefault(how, []).append(rule.done.value)
        alone = [] if effects else [Done.CLIPPED.value]
        return [
            f"{'clipping' if done == alone else 'what is ' + listing(done, 'or')} {how}" for how, done in said.items()
        ]

    def expectations(self) -> Iterator[Sentence]:
        """What the author's law lets expect to be cut, in a sentence for each table."""
        for one in self.cut:
            several = len(one.lower) > 1
            lower = listing(
                phrase("fitting.lower.by", name=name if several else "", span=_span(*ends)) for name, *ends in one.lower
            )
            said = say("fitting.cut.expected", {"lower": lower}, one)
            sizes = tuple((name, least.value, most.value) for name, least, most in one.lower)
            yield replace(said, accuracy=Accuracy("cut", sizes))


def _moves(moved: Mapping[str, Way], wanted: tuple[str, ...], most: int) -> str:
    """As in "makes it too low"; of several outputs each way with the names that it is about."""
    each = dict[Way, list[str]]()
    for name, way in moved.items():
        each.setdefault(way, []).append(name)
    found = list[str]()
    for way in (one for one in Way if one in each):
        names = each[way]
        them = "it" if len(wanted) == 1 else "them"
        if len(names) < len(wanted):
            them = listing(names) if len(wanted) <= most else "others" if found else "some"
        found.append(f"moves {them} either way" if way is Way.EITHER else f"makes {them} {way.value}")
    return listing(found)


def _span(least: Quantity, most: Quantity) -> str:
    return least.text if least.text == most.text else f"{least} to {most}"


def fitting(problem: Mapping[str, Any], model: Model | None, where: Context) -> Fitting:
    """What a plan's problem says of data that do not fit.

    Raises: Failure for a law of records that cannot be computed.
    """
    found = () if model is None else tuple(expected(problem, model))
    return Fitting(
        rules(problem, model),
        () if model is None else tuple(_told(problem, model, where)),
        tuple(
            CutFact(
                rounded(one.records),
                tuple((name, rounded(least), rounded(most)) for name, least, most in one.lower),
                where.line(one.line),
            )
            for one in found
        ),
    )


def _told(problem: Mapping[str, Any], model: Model, where: Context) -> Iterator[Sentence]:
    """One sentence for each thing that is done; of numbers the limits, where they are few."""
    said, limits = dict[str, Sentence](), dict[str, Sentence]()
    for data in problem["data"]:
        domain, line = model.block(data["name"]).domain.innermost, where.line_of(data["name"])
        for key in _of_records(data, domain):
            said.setdefault(key, say(f"fitting.done.{key}", line=line))
    for name, (column, domain) in clipped(problem, model):
        sentence = _limits(column, domain, where.line_of(name))
        limits.setdefault(sentence.text, sentence)
    if len(limits) > 1 and len(said | limits) > MOST_TOLD:
        (line,) = (one for one in next(iter(limits.values())).because if isinstance(one, SpecLine))
        limits = {"": say("fitting.done.numbers", line=line)}
    yield from (said | limits).values()


def _of_records(data: Mapping[str, Any], domain: Domain) -> Iterator[str]:
    """What is done with those that do not fit, by the keys of its sentences."""
    table, drops = isinstance(domain, Table), data["rule"] == "drop"
    if drops:
        yield "records" if table else "votes"
    elif isinstance(domain, RankingOf | PartialRankingOf):
        yield "ranking"
    elif data["rule"] == "map" and (table or (domain.bounds == (None, None) and domain.size)):
        yield "value"


def _limits(name: str | None, domain: Domain, line: SpecLine) -> Sentence:
    """What becomes of numbers outside a range."""
    column = "" if name is None else f"“{name}”".replace("_", " ")
    if isinstance(domain, Ball):
        return say("fitting.done.length", radius=exact(domain.radius), line=line)
    low, high = domain.bounds
    if isinstance(domain, FiniteSet) and low is not None:
        return say("fitting.done.listed", line=line)
    kind = "above" if low is None else "below" if high is None else "outside"
    return say(f"fitting.done.{kind}", {"column": column, "low": exact(low or 0), "high": exact(high or 0)}, line=line)
