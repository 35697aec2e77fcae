"""From a syntax tree to a model: one pass a question, every error of the file at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np

from privspec.core.diagnostics import Diagnostic, Label, PrivspecError, SpecError
from privspec.core.spans import Source, Span
from privspec.kernel.measures import APPROXIMATE
from privspec.language import syntax
from privspec.language.spelling import spell
from privspec.language.syntax import VariableKind
from privspec.language.walk import every, names_used, ranged, reached, regular, with_children
from privspec.model import graph
from privspec.model.components import Whole, assembled
from privspec.model.conditions import columns_used, compared_with, with_listed_values
from privspec.model.definitions import VARIABLES, Definition, Definitions, collect_definitions
from privspec.model.designs import Terms, bound, cost_of, open_choices, picks, trusting
from privspec.model.domain_rules import as_far_as_readable, read_domain
from privspec.model.domains import (
    NUMBER,
    UNKNOWN,
    Domain,
    FiniteSet,
    Grid,
    IntegerRange,
    Interval,
    Laws,
    Power,
    Symbols,
    Table,
    Tables,
    Type,
)
from privspec.model.evaluate import DOMAIN_CALLS, WORDS, Environment, Reader, beside_words, evaluate, value_type
from privspec.model.library import function_of
from privspec.model.loss_rules import LossReader, read_independence
from privspec.model.neighbours import InputBlock
from privspec.model.observers import warn_about_gaps, warn_about_people, warn_about_whole_tables
from privspec.model.option_rules import read_options
from privspec.model.parameters import fit_constant, given_constants, read_parameters, walked
from privspec.model.priors import laws_that_follow, read_laws, set_laws_apart
from privspec.model.released import with_released
from privspec.model.reports import Failure, Report, listing
from privspec.model.requirement_rules import RequirementReader
from privspec.model.requirements import (
    Chain,
    DataModel,
    Fact,
    IndependenceRequirement,
    MechanismConstraint,
    Requirement,
)
from privspec.model.scope import Scope, collect, entry_of, resolve, warn_of_unused
from privspec.model.shapes import Binding, Bindings, Typer
from privspec.model.targets import environment_of_computed
from privspec.model.values import Value, show

FILE_CALLS = ("csv", "npy")
RUNS = 12
"""Most times that a part is run: so many parts may share a line."""


class Given(TypedDict, total=False):
    """What a spec is given from outside.

    `parameters`: values in place of those written (text is read as an expression); `constants`: values of constants
    that have none in the spec, or others; `base`: the folder that file names are relative to; `files`: contents by key
    ("csv:queries.csv") that are used in place of the disk; `texts`: specs by the names of their files, likewise.
    """

    parameters: Mapping[str, object] | None
    constants: Mapping[str, object] | None
    base: Path | None
    files: Mapping[str, Any] | None
    texts: Mapping[str, str] | None


def load_model(source: Source, **given: Unpack[Given]) -> graph.Model:
    """Parse and check a spec, for its author: what a message proposes to write has been tried.

    Raises: SpecError with the diagnostics of all passes.
    """
    try:
        return build_model(source, **given)
    except SpecError as error:
        from privspec.model.suggestions import vetted

        def again(text: Source) -> tuple[Diagnostic, ...]:
            try:
                return tuple(build_model(text, **given).warnings)
            except PrivspecError as still:
                return still.diagnostics

        error.diagnostics = vetted(source, error.diagnostics, again)
        raise


def build_model(source: Source, **outside: Unpack[Given]) -> graph.Model:
    """Parse and check a spec.

    Raises: SpecError with the diagnostics of all passes.
    """
    from privspec.language.parser import parse

    tree, given = parse(source), outside.get("parameters") or {}
    if blanks := [one for one in every(tree, syntax.Member) if one.domain == syntax.Name(syntax.FILL_IN)]:
        raise SpecError(_to_fill_in(blanks, source))
    if any(variable.drawn for variable in tree.variables):
        from privspec.model.drawn import drawn_model  # few specs draw a value from the data

        return drawn_model(tree, source, given, outside.get("base"), lambda spec: _built(spec, source, outside))
    return _built(tree, source, outside)


def _built(tree: syntax.Spec, source: Source, outside: Given) -> graph.Model:
    """Check a tree whose public values do not depend on the data."""
    given, constants = outside.get("parameters") or {}, outside.get("constants") or {}
    base, files, texts = outside.get("base"), outside.get("files"), outside.get("texts")
    picked = picks(tree)
    whole = assembled(tree, source, base, texts)
    if inside := [variable for variable in whole.spec.variables if variable.drawn]:
        text = f"{inside[0].target.name} of a part is drawn from the data: only the main spec draws a value first"
        raise SpecError.at(whole.source, inside[0].span, "PS0501", text, help="draw it in the main spec")
    # a part that is chosen is known only once it is: then choices are those of the main file alone
    choices = open_choices(tree if picked else whole.spec, source if picked else whole.source, given, base)

    def make(values: graph.Values) -> graph.Model:
        spec, costs = bound(tree if picked else whole.spec, values)
        alone = (
            assembled(spec, source, base, texts)
            if picked
            else replace(whole, spec=spec, components=tuple(trusting(part, values) for part in whole.components))
        )
        if picked and (left := open_choices(alone.spec, alone.source, given, base)):
            raise SpecError(_left_open(left, alone.source))
        absent = {part.name for part in tree.components} - {part.name for part in alone.components}
        own = {name: value for name, value in given.items() if name.partition(".")[0] not in absent}
        return _Builder(alone, base, files, values, costs).run(own, constants)

    if not choices:
        return _Builder(whole, base, files).run(given, constants)
    fixed = {choice.name: str(given[choice.name]).strip() for choice in choices if choice.name in given}
    given = {name: value for name, value in given.items() if name not in fixed}
    design = graph.Design(tuple(_fixed(one, fixed, source) for one in choices), tree.loss, make, fixed)
    first: graph.Model = design.check()
    return replace(first, spec=first.spec if picked else whole.spec, chosen={})


def _to_fill_in(blanks: list[syntax.Member], source: Source) -> Diagnostic:
    """All that a skeleton leaves open, in one message."""
    return Diagnostic(
        "PS0276",
        f"fill in what {listing([one.name for one in blanks])} may be",
        tuple(Label(one.domain.span) for one in blanks),
        help="whole numbers 0..120, other numbers [0, 10000], words {F, M}, days 2025-01-01..2025-12-31, or id where "
        "it says whose a record is: as everybody may know them, not as these data have them",
        source=source,
    )


def _fixed(choice: graph.OpenChoice, fixed: Mapping[str, str], source: Source) -> graph.OpenChoice:
    """A choice for which `--set` gives one of its values is made."""
    if choice.name not in fixed:
        return choice
    found = tuple(value for value in choice.values if graph.value_text(value) == fixed[choice.name])
    if not found:
        message = f"{choice.name} is one of {', '.join(map(graph.value_text, choice.values))}"
        raise SpecError.at(source, choice.span, "PS0251", message, label="chosen here")
    return replace(choice, values=found)


def _left_open(choices: tuple[graph.OpenChoice, ...], source: Source) -> Diagnostic:
    message = "solve cannot choose between parts that leave choices open themselves"
    labels = tuple(Label(choice.span) for choice in choices)
    return Diagnostic("PS0501", message, labels, help="write the value of the part here", source=source)


def build(spec: syntax.Spec, source: Source, **given: Unpack[Given]) -> graph.Model:
    """Check a tree without components and choices."""
    builder = _Builder(Whole(regular(spec), source), given.get("base"), given.get("files"))
    return builder.run(given.get("parameters") or {}, given.get("constants") or {})


class _Builder:
    """The passes over one file, each working on what those before it left."""

    def __init__(
        self,
        whole: Whole,
        base: Path | None,
        files: Mapping[str, Any] | None,
        chosen: graph.Values | None = None,
        costs: Terms = (),
    ) -> None:
        self.whole, self.spec, self.source, self.base = whole, whole.spec, whole.source, base
        self.chosen, self.costs = chosen or {}, costs
        self.report = Report(self.source)
        held = None
        if files is not None:
            words = (f"{WORDS}:",)
            held = {
                key: value if key.startswith(words) else np.asarray(value, np.float64) for key, value in files.items()
            }
        self.read_files: dict[str, Any] = {}
        self.environment = Environment(files=Reader(base, held, self.read_files))
        self.scope = Scope()
        self.definitions = Definitions()
        self.domains: dict[str, Domain] = {}
        self.whole_tables: dict[str, Table] = {}
        self.typer = Typer(self.report, self.environment)

    def run(self, parameters: Mapping[str, object], constants: Mapping[str, object]) -> graph.Model:
        """Every pass in order."""
        report = self.report
        if (
            sum(isinstance(one.domain, syntax.Call) and one.domain.function == "table" for one in self.spec.variables)
            > 1
        ):
            from privspec.model.persons import with_columns_of_others

            self.spec = with_columns_of_others(self.spec)
        if any(self._gathers()):
            from privspec.model.persons import with_persons

            self.spec = with_persons(self.spec, report)
        spec = self.spec
        scope = self.scope = collect(spec, report)
        for say in self.whole.said:
            say(report)
        self._check_sections()
        resolve(spec, scope, report)
        values, parties = read_parameters(scope, self.environment, parameters, report)
        sizes = {name: party.size for name, party in parties.items()}
        self.environment = replace(self.environment, values=values, parties=sizes)
        self._warn_of_words()
        if any(isinstance(line, syntax.Relation) and _of_column(line) for line in spec.background):
            from privspec.model.derived import with_columns

            spec = with_columns(spec, report)
        spec, labels = with_released(spec, self.environment, report)
        spec, apart, sources = graph.set_apart(spec, self._collected(spec), report)
        written, (spec, laws) = spec, set_laws_apart(spec)
        spec, cut = with_listed_values(spec, self.environment, report)
        scope = self._collected(spec)
        definitions = self.definitions = collect_definitions(spec, scope, report)
        self._read_domains()
        self._check_links()
        tables = {n: cut.get(n, domain) for n, domain in self.domains.items() if isinstance(domain, Table)}
        self.domains |= columns_used(spec, tables)
        self.whole_tables = tables
        records = read_laws(laws, self.domains, self.environment, report)
        fixed = self._constants(constants)
        typer = self.typer = self._typer(fixed)
        losses = LossReader(scope, report, typer, definitions, self.domains)
        of_entries = [statement for statement in definitions.models if entry_of(statement, scope) is not None]
        for statement in definitions.models:
            if statement not in of_entries:
                losses.model(statement)
        if any(isinstance(domain, Table) and domain.derived for domain in self.domains.values()):
            follow = report.told(lambda: laws_that_follow(losses.modelled, self.domains, typer.environment))
            losses.modelled.update(follow or {})
        chains = self._chains(of_entries)
        for name in definitions.order:
            if name not in definitions.circular:
                self._type(name, definitions.of.get(name))
        nodes = self._nodes()
        blocks = graph.lay_out(nodes, self.source)
        computed = self._all_computed(apart, sources, labels)
        reader = self._requirement_reader(blocks)
        losses.sequences = frozenset(chains)
        reader.chains, reader.unread = chains, frozenset(entry_of(one, scope) or "" for one in of_entries)
        reader.modelled = frozenset(losses.modelled) | frozenset(chains)
        if not reader.finite:
            chains |= self._drawn_whole(losses.modelled)
        for name in scope.of("intermediate"):
            behind = reached([name], lambda n: definitions.dependencies.get(n, ()))
            reader.behind[name] = tuple(n for n in scope.of("input") if n in behind)
        requirements = tuple(r for r in map(reader.requirement, spec.privacy) if r is not None)
        fairness = self._fairness(spec, reader, nodes)
        limits = [losses.constraint(relation, self._bindings(relation.left)) for relation in definitions.constraints]
        claims = [losses.claim(claim, reader) for claim in definitions.claims]
        if spec.loss is not None:
            losses.loss(spec.loss)
        accuracy = tuple(losses.target(target, losses.target_bindings(target)) for target in spec.accuracy)
        self._check_known(nodes)
        cost = report.told(lambda: cost_of(self.costs, self.environment))
        parts = self.whole.components
        options = read_options(spec, scope, self.environment, self.domains, requirements, report, parts, blocks)
        report.raise_errors()
        components = tuple(self._runs(part, nodes, apart) for part in self.whole.components)
        report.raise_errors()
        needs = definitions.dependencies.items()
        model = graph.Model(
            source=self.source,
            spec=written,
            name=spec.name or Path(self.source.name).stem or "spec",
            parameters={name: value for name, value in values.items() if name not in self.chosen},
            values={**values, **fixed},
            nodes=nodes,
            edges=tuple((one, name) for name, before in needs for one in before if one in nodes and name in nodes),
            order=definitions.order,
            blocks=blocks,
            targets=dict(definitions.targets),
            loss=spec.loss,
            requirements=requirements,
            trust=options.trust,
            base=self.base,
            parties=parties,
            components=components,
            texts=self.whole.texts,
            models=tuple(dict.fromkeys(losses.modelled.values())),
            chains=tuple(chains.values()),
            records=records,
            constraints=tuple(one for one in limits if isinstance(one, MechanismConstraint)),
            facts=tuple(one for one in limits if isinstance(one, Fact)),
            asserted=tuple(one for one in claims if one is not None),
            accuracy=accuracy,
            fairness=fairness,
            noise_at=options.noise_at,
            noise_at_spans=options.noise_at_spans,
            families=options.families,
            unbiased=options.unbiased,
            family_spans=options.family_spans,
            different=options.different,
            same=options.same,
            files=self.read_files,
            chosen=self.chosen,
            cost=cost or Fraction(0),
            computed=computed,
        )
        if model.asserted:
            from privspec.model.definitions import read_through

            model = read_through(model)
        if any(one.maps for one in computed):
            report.told(lambda: environment_of_computed(model))
            report.raise_errors()
        if model.models:
            from privspec.model.worlds import wrong_laws

            for failure in wrong_laws(model):
                report.failure(failure)
            report.raise_errors()
        links = (
            node
            for part in components
            for node in (*part.domains.values(), *part.settings.values(), *filter(None, [part.stated]))
        )
        priced = (*(term for _, term in self.costs), *(one.expr for one in computed))
        warn_of_unused((written, *links, *priced), scope, report, self.chosen)
        if model.requirements or model.fairness:  # without either, `check` says so in a line of its own
            warn_about_gaps(model, report)
            warn_about_people(model, report)
            warn_about_whole_tables(model, report)
        model = replace(model, warnings=report.warnings)
        if not any(node.index for node in model.inputs):
            return model
        from privspec.model.tallies import with_tallies  # few specs are of parties

        return with_tallies(model)

    # -- passes

    def _gathers(self) -> Iterator[bool]:
        """Whether columns are made of all records of a person, line by line."""
        for line in self.spec.background:
            call = isinstance(line, syntax.Relation) and isinstance(line.right, syntax.Call)
            yield call and line.right.function == "persons"  # type: ignore[union-attr]
            yield isinstance(line, syntax.Relation) and _of_other(line)

    def _collected(self, spec: syntax.Spec) -> Scope:
        """What names stand for once the spec was rewritten; what is wrong with them has been told."""
        if spec is not self.spec:
            self.scope = collect(spec, Report(self.source))
        return self.scope

    def _warn_of_words(self) -> None:
        """Words of sets that a parameter is called by as well."""
        for name in (
            one for listed in every(self.spec, syntax.SetOf) for one in beside_words(listed, self.environment)
        ):
            message = f"{name.id} is a word here, as what stands beside it, and not the parameter"
            declared = self.scope.get(name.id)
            hint = f"if the value is meant, write it out; if not, another name for {name.id} tells them apart"
            self.report.warn("PS0204", name.span, message, others=declared.here if declared else (), help=hint)

    def _check_sections(self) -> None:
        scope, spec = self.scope, self.spec
        start = Span(0, len(self.source.text.split("\n", 1)[0]))
        output, data = next(iter(scope.of("output")), "O"), next(iter(scope.of("input")), "x")
        parts = scope.of("component")
        line = f"add a section `privacy:` with a line such as `{output} is (1, 1e-6)-{APPROXIMATE.word} wrt {data}`"
        for there, what, hint in (
            (scope.of("input") or parts, "input", "add `input x in [0, 1]^64` under `variables:`"),
            (scope.of("output") or parts, "output", "add `output O` under `variables:`"),
            (spec.privacy or spec.fairness or _has_routes(spec), "privacy requirement", line),
        ):
            if not there:
                self.report.error("PS0219", start, f"this spec has no {what}", help=hint)

    def _read_domains(self) -> None:
        for name, node in self.definitions.domains.items():
            try:
                self.domains[name] = read_domain(node, self.environment)
            except Failure as failure:
                missing = [n for n in names_used(node) if n not in self.environment.values]
                # a name without a value here has been reported where it stands
                known = failure.code == "PS0220" and any(n in self.scope for n in missing)
                if known or (failure.code == "PS0261" and missing):
                    self.report.hold(failure, self.scope.declarations)
                else:
                    self.report.failure(failure)
                table = as_far_as_readable(node, self.environment)
                if table is not None:
                    self.domains[name] = table

    def _check_links(self) -> None:
        """An input of a part has the domain of the input that it is."""
        written = {one.target.name: one.domain for one in self.whole.spec.variables}
        for part in self.whole.components:
            for name, node in part.domains.items():
                declared, own = self.domains.get(name), self.report.told(partial(read_domain, node, self.environment))
                if isinstance(declared, Table) and (declared.derived or declared.gathered):
                    # what follows from the columns that are declared is no part of the data
                    domain = written[name]
                    declared = None if domain is None else read_domain(domain, self.environment)
                if declared is not None and own is not None and own != declared:
                    message = f"{name} of {part.name} is in {own.describe()}, and here in {declared.describe()}"
                    others = ((self.definitions.domains[name].span, "declared here"),)
                    self.report.error("PS0424", node.span, message, others=others)

    def _runs(
        self, part: graph.Component, nodes: Mapping[str, graph.GraphNode], computed: graph.Statements
    ) -> graph.Component:
        """How often a part is run, and on what condition."""
        times, condition = part.settings.get("times"), part.settings.get("only_if")
        count, output, sign, limit = 1, None, "!=", Fraction(0)
        if times is not None:
            value = self.report.told(lambda: evaluate(times, self.environment))
            if isinstance(value, Fraction) and value.denominator == 1 and 1 <= value <= RUNS:
                count = int(value)
            elif value is not None:
                message = f"a part is run a whole number of times, from 1 to {RUNS}"
                self.report.error("PS0425", times.span, message)
        rule = condition
        if isinstance(condition, syntax.Name) and condition.id in computed:
            expr, within, _ = computed[condition.id]
            rule = expr if within is None or spell(within) in ("0..1", "{0, 1}", "[0, 1]") else condition
        compared = None if rule is None else self.report.told(lambda: compared_with(rule, self.environment))
        if compared is not None and compared[0].id not in computed:
            condition, sign, limit = compared
        if isinstance(condition, syntax.Name):
            node = nodes.get(condition.id)
            if condition.id in computed:
                message = f"{condition.id} is computed from what is released, and compares no single number"
                hint = (
                    "compare one released number with a public one: only_if = (first.O > 20), or at_least(first.O, 20)"
                )
                self.report.error("PS0425", condition.span, message, help=hint)
            elif node is None or node.kind is not VariableKind.OUTPUT or node.type.shape or not node.type.numeric:
                message = "a condition is an output that is one number; a part is run if what is released is not 0"
                self.report.error("PS0425", condition.span, message)
            elif condition.id.startswith(f"{part.name}."):
                self.report.error("PS0425", condition.span, f"{condition.id} is an output of {part.name} itself")
            else:
                output = condition.id
        elif condition is not None:
            hint = "as in only_if = (first.O > 20), or only_if = first.O"
            self.report.error(
                "PS0425", condition.span, "a condition compares one released number with a public one", help=hint
            )
        if (count > 1 or output) and "." in part.name:
            self.report.error(
                "PS0425", part.span, "a part of a part is run once: say times and only_if of the whole part"
            )
        return replace(part, times=count, only_if=output, sign=sign, limit=limit)

    def _constants(self, given: Mapping[str, object]) -> dict[str, Value]:
        """Values of constants, and of the files that any expression names."""
        definitions, domains = self.definitions, self.domains
        values = given_constants(given, self.scope, domains, self.report)
        reported = len(self.report.diagnostics)
        for name in definitions.order:
            declared, definition = self.scope[name], definitions.of.get(name)
            if declared.what != "constant":
                continue
            if definition is None:
                if name not in domains and name not in definitions.domains and name not in values:
                    message = f"the constant {name} has neither a value nor a domain"
                    hint = f'as in constant {name} = csv("file.csv"), or constant {name} in real^32'
                    self.report.error("PS0217", declared.span, message, help=hint)
                continue
            if name in values or name in definitions.circular:
                continue
            expr, hidden = definition.expr, self.scope.of("input", "intermediate", "output", "choose")
            secret = next((hidden[n] for n in names_used(expr) if n in hidden), None)
            if secret is not None:
                message = f"a constant is public, and {secret.name} is {secret.with_article}"
                hint = f"declare {name} as intermediate"
                self.report.error("PS0203", expr.span, message, others=secret.here, help=hint)
                continue
            now = replace(self.environment, values={**self.environment.values, **values})
            try:
                values[name] = fit_constant(name, evaluate(expr, now), domains.get(name), declared.span, expr.span)
            except Failure as failure:
                if failure.code not in ("PS0261", "PS0205") or not (reported or self.report.failed):
                    self.report.failure(failure)
        return values

    # -- types

    def _typer(self, fixed: Mapping[str, Value]) -> Typer:
        typer = Typer(self.report, replace(self.environment, values={**self.environment.values, **fixed}))
        typer.domains = dict(self.domains)
        typer.components = frozenset(self.scope.of("component"))
        for name in typer.components:  # those that could not be read
            typer.attributes[name, "*"] = UNKNOWN
        for name, found in self.scope.of("parameter").items():
            if found.index in self.environment.parties:
                typer.indexed[name] = found.index or ""
            if name not in self.environment.values:
                typer.types[name] = UNKNOWN
        for name, found in self.scope.of(*VARIABLES).items():
            if found.index is not None:
                typer.indexed[name] = found.index
            typer.places[name] = getattr(found.node, "span", found.span)
            domain = None if self.report.marred(found.span) else self.domains.get(name)
            typer.types[name] = UNKNOWN if domain is None else self._of_each(domain.type, found.index)
        return typer

    def _of_each(self, kind: Type, index: str | None) -> Type:
        """The type of a value that each member of an index set has."""
        size = self.environment.parties.get(index or "")
        if index is None or not kind.known:
            return kind
        return UNKNOWN if size is None else kind.with_shape((size, *kind.shape))

    def _bindings(self, left: syntax.Expr) -> Bindings:
        """The index on the left of a statement."""
        match left:
            case syntax.Index(indices=(syntax.Name(id=name),)) if name in self.scope.of("party"):
                return self._party_binding(name)
            case _:
                return {}

    def _party_binding(self, name: str | None) -> Bindings:
        return {} if name is None else {name: Binding(NUMBER, name, 1, self.environment.parties.get(name))}

    def _type(self, name: str, definition: Definition | None) -> None:
        """The type of what is computed, after those of its parts."""
        typer, declared = self.typer, self.scope[name]
        if definition is None:
            target = self.definitions.targets.get(name)
            if target is not None and name not in self.domains:
                typer.types[name] = typer.type_of(target)
                typer.inferred.add(name)
            return
        if declared.what == "constant" and name in typer.environment.values:
            typer.types[name] = value_type(typer.environment.values[name])
            return
        if declared.what == "constant" and self.report.marred(definition.expr.span):
            return
        found = typer.type_of(definition.expr, self._party_binding(definition.index))
        if name in self.domains:
            self._check_declared(name, definition.expr, found, self.domains[name])
            return
        typer.types[name] = self._of_each(found, definition.index)
        if name not in typer.domains:
            self._result_domain(name, definition.expr, definition.index)

    def _result_domain(self, name: str, expr: syntax.Expr, index: str | None) -> None:
        """A library function that says where its result lies gives the variable that domain."""
        if not isinstance(expr, syntax.Call) or expr.function in (*FILE_CALLS, *DOMAIN_CALLS):
            return
        quiet = replace(self.typer, report=Report(self.source)).within(self._party_binding(index))
        try:
            bound = quiet.bound(expr)
        except Failure:
            return
        if bound is not None and bound.domain is not None:
            self.typer.domains[name] = bound.domain

    def _check_declared(self, name: str, expr: syntax.Expr, found: Type, domain: Domain) -> None:
        if not found.known or self.report.marred(expr.span):
            return
        same_kind = type(found.element) is type(domain.type.element) or isinstance(domain.type.element, Laws)
        if found.shape != domain.shape or not same_kind:
            message = f"{name} was declared as {domain.type.describe()}, and this is {found.describe()}"
            self.report.error("PS0218", expr.span, message, others=((self.scope[name].span, domain.describe()),))

    def _all_computed(
        self,
        apart: graph.Statements,
        sources: Mapping[str, tuple[str, ...]],
        labels: Mapping[str, Mapping[str, tuple[str, ...]]],
    ) -> tuple[graph.Computed, ...]:
        """Outputs that are computed from others, each after those that it is computed from."""
        order = walked({name: tuple(n for n in names_used(one[0]) if n in apart) for name, one in apart.items()})[0]
        found = (self._computed(name, apart[name], sources[name], labels.get(name, {})) for name in order)
        return tuple(one for one in found if one is not None)

    def _computed(
        self,
        name: str,
        written: tuple[syntax.Expr, syntax.Domain | None, Span],
        sources: tuple[str, ...],
        labels: Mapping[str, tuple[str, ...]],
    ) -> graph.Computed | None:
        """An output that is computed from others; None after telling what is wrong with it."""
        expr, within, span = written
        domain = None if within is None else self.report.told(lambda: read_domain(ranged(within), self.environment))
        if within is None:
            domain = self._of_a_mean(expr)
        inner = domain.base if isinstance(domain, Power) else domain
        if inner is not None and not isinstance(inner, Interval | IntegerRange | Grid):
            hint = f"as in output {name} in [0, 1] = ..., or in 0..1000 for whole numbers"
            self.report.error(
                "PS0218", span, f"{name} is moved into a range of numbers, and this is another domain", help=hint
            )
            return None
        meanings = {one: definition.expr for one, definition in self.definitions.of.items()}
        expr = graph.guarded(expr, {**meanings, **self.definitions.targets})
        kind = self.typer.type_of(expr)
        if not kind.known or (within is not None and domain is None):
            return None
        if not kind.numeric:
            self.report.error(
                "PS0218", span, f"{name} is computed, and this is {kind.describe()}", help="compute numbers"
            )
            return None
        if isinstance(domain, Power) and domain.shape != kind.shape:
            message = f"{name} was declared as {domain.type.describe()}, and this is {kind.describe()}"
            self.report.error("PS0218", span, message)
            return None
        self.typer.types[name] = kind
        said = expr
        expr, maps = self._with_maps(expr, sources)
        label = next((one.label for one in self.spec.variables if one.target.name == name), None)
        line = self.source.position(span.start)[0]
        return graph.Computed(name, expr, sources, inner, kind, line, label, labels, said, maps)

    def _of_a_mean(self, expr: syntax.Expr) -> Interval | None:
        """The range of a column where an output is its noisy sum over the noisy number of the same records."""
        targets = self.definitions.targets
        match expr:
            case syntax.Binary(op="/", left=syntax.Name(id=above), right=syntax.Name(id=below)):
                pass
            case _:
                return None
        match targets.get(above), targets.get(below):
            case (
                syntax.Counting(
                    function="sum", arguments=(syntax.Name() as table, syntax.SetOf(items=(column,)), *settings)
                ),
                syntax.Call(function="count" | "histogram", arguments=(syntax.Name() as other, *same)),
            ) if table == other and settings == same and isinstance(column, syntax.String):
                declared = self.domains.get(table.id)
                found = dict(declared.attributes).get(column.value) if isinstance(declared, Table) else None
                low, high = (None, None) if found is None else found.bounds
                return None if low is None or high is None else Interval(low, high)
        return None

    def _with_maps(self, expr: syntax.Expr, sources: tuple[str, ...]) -> tuple[syntax.Expr, tuple[str, ...]]:
        """An expression whose calls about released answers have the map of each behind it, in one order for all."""
        maps: dict[str, None] = {}

        def change(node: syntax.Node) -> syntax.Node:
            if not isinstance(node, syntax.Call) or not function_of(node).of_answers:
                return with_children(node, change)
            names = [one.id for one in node.arguments if isinstance(one, syntax.Name) and one.id in sources]
            if len(names) < len(node.arguments) or len(set(names)) < len(names):
                message = f"{node.function} takes outputs that are released, each once"
                raise Failure("PS0206", node.span, message, help=f"as in {node.function}(country, districts)")
            order = sorted(names, key=list(self.scope.of("output")).index)
            maps.update(dict.fromkeys(order))
            values = [syntax.Name(text, span=node.span) for one in order for text in (one, f"{one}.cells")]
            place = syntax.Number(Fraction(order.index(names[0])), span=node.span)
            return replace(node, arguments=(place, *values))

        found = self.report.told(lambda: change(expr))
        return (found if isinstance(found, syntax.Expr) else expr), tuple(maps)

    def _nodes(self) -> dict[str, graph.GraphNode]:
        scope, definitions, typer = self.scope, self.definitions, self.typer
        secret: set[str] = set()
        for name in definitions.order:
            what, needs = scope[name].what, definitions.dependencies.get(name, ())
            if what == "input" or (what == "intermediate" and any(n in secret for n in needs)):
                secret.add(name)
        nodes: dict[str, graph.GraphNode] = {}
        for name, found in scope.of(*VARIABLES).items():
            definition, kind = definitions.of.get(name), typer.types.get(name, UNKNOWN)
            nodes[name] = graph.GraphNode(
                name=name,
                kind=VariableKind(found.what),
                type=kind,
                span=found.span,
                domain=self.domains.get(name) or typer.domains.get(name) or _symbols(kind),
                definition=None if definition is None else definition.expr,
                index=found.index,
                secret=name in secret,
                label=found.node.label if isinstance(found.node, syntax.Variable) else None,
            )
        return nodes

    def _check_known(self, nodes: Mapping[str, graph.GraphNode]) -> None:
        """Every output has a shape; where none follows, and nothing else is wrong, say so."""
        for node in nodes.values():
            told = self.report.failed or self.report.held
            if node.kind is VariableKind.OUTPUT and not node.type.known and not told:
                message = f"the shape of {node.name} does not follow from anything"
                hint = (
                    f"compare it in the loss with what it should be, as in E[ ||{node.name} - y||^2 ], "
                    f"or give it a domain, as in output {node.name} in real^64"
                )
                places = [one.indices for one in every(self.spec, syntax.Index)]
                if any(isinstance(one, syntax.Name) and one.id == node.name for place in places for one in place):
                    words = self._alternatives(nodes)
                    hint = f"say which places {node.name} may name, as in output {node.name} in {words}"
                self.report.error("PS0213", node.span, message, help=hint)

    @staticmethod
    def _alternatives(nodes: Mapping[str, graph.GraphNode]) -> str:
        """The words of the first input that votes among some."""
        for node in nodes.values():
            words = (
                node.domain.items if isinstance(node.domain, FiniteSet) else getattr(node.domain, "alternatives", ())
            )
            if node.kind is VariableKind.INPUT and words:
                return "{" + ", ".join(map(show, words)) + "}"
        return "1..3"

    # -- lines

    def _chains(self, of_entries: list[syntax.Relation]) -> dict[str, Chain]:
        """The laws of sequences."""
        if not of_entries:
            return {}
        from privspec.model.chains import ChainReader

        return ChainReader(self.scope, self.report, self.typer.environment, self.domains).read(of_entries)

    def _drawn_whole(self, modelled: Mapping[str, DataModel]) -> dict[str, Chain]:
        """Of inputs that a line hides which counts on the model, laws of all entries together as those of each."""
        lines = (one for one in self.spec.privacy if any(isinstance(c, syntax.GivenTheModel) for c in one.clauses))
        named = {ref.name for one in lines if isinstance(one.wrt, syntax.Refs) for ref in one.wrt.items}
        found = dict[str, Chain]()
        for name, data in modelled.items():
            if name in named & {*self.domains} and not data.joint:
                from privspec.model.joint_laws import as_sequence

                domain, text = self.domains[name], self.source.slice(data.span)
                chain = self.report.told(lambda d=domain, m=data, t=text: as_sequence(d, m, self.typer.environment, t))  # type: ignore[misc]
                found |= {} if chain is None else {name: chain}
        return found

    def _requirement_reader(self, blocks: tuple[InputBlock, ...]) -> RequirementReader:
        definitions, typer = self.definitions, self.typer
        fine = {claim.wrt.name for claim in definitions.claims}
        for definition in definitions.of.values():
            # a function whose result is bounded whatever it is given bounds its arguments' influence
            if definition.name in typer.domains and definition.name not in definitions.domains:
                fine.update(names_used(definition.expr))
        return RequirementReader(
            self.scope,
            self.report,
            self.environment,
            typer.environment,
            {block.name: block for block in blocks},
            frozenset(fine),
            dict(typer.indexed),
            dict(typer.domains),
        )

    def _fairness(
        self, spec: syntax.Spec, reader: RequirementReader, nodes: Mapping[str, graph.GraphNode]
    ) -> tuple[IndependenceRequirement | Requirement, ...]:
        tables = [node.type.element.table for node in nodes.values() if isinstance(node.type.element, Tables)]
        attributes = {name: domain for table in tables for name, domain in table.attributes}
        found = [
            read_independence(line, reader, attributes, self.whole_tables)
            if isinstance(line, syntax.Independence)
            else reader.requirement(line)
            for line in spec.fairness
        ]
        return tuple(one for one in found if one is not None)


def _of_column(line: syntax.Relation) -> bool:
    """Whether it may define a column of a table."""
    return isinstance(line.left, syntax.Attribute) or isinstance(line.right, syntax.Condition)


def _of_other(line: syntax.Relation) -> bool:
    """Whether it may look a column of one table up in another."""
    sides = line.left, line.right
    bases = {one.base.id for one in sides if isinstance(one, syntax.Attribute) and isinstance(one.base, syntax.Name)}
    return len(bases) == 2


def _has_routes(spec: syntax.Spec) -> bool:
    """Whether a value is computed by a function that offers routes: such a spec may serve as a baseline.

    It can be checked, and `solve` says what loss it would have; there is no plan for it (PS0518).
    """
    relations = (one for one in spec.background if isinstance(one, syntax.Relation))
    return any(function_of(one.right).routes is not None for one in relations)


def _symbols(kind: Type) -> Domain | None:
    """The domain of a word whose set is known."""
    if isinstance(kind.element, Symbols) and kind.element.items is not None and not kind.shape:
        return FiniteSet(kind.element.items)
    return None
