"""From a syntax tree to a model: one pass a question, every error of the file at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from privspec.core.diagnostics import SpecError
from privspec.core.spans import Source
from privspec.language import syntax
from privspec.language.syntax import VariableKind
from privspec.language.walk import names_used
from privspec.model.definitions import VARIABLES, Definitions, PartReader, collect_definitions
from privspec.model.domain_rules import read_domain
from privspec.model.domains import NUMBER, UNKNOWN, Domain, FiniteSet, Laws, Symbols, Tables, Type
from privspec.model.evaluate import DOMAIN_CALLS, Environment, Reader, evaluate
from privspec.model.fairness_rules import read_independence
from privspec.model.graph import ComponentModel, GraphNode, Model, PartySet, lay_out
from privspec.model.library import library
from privspec.model.loss_rules import LossReader
from privspec.model.neighbours import InputBlock
from privspec.model.observers import warn_about_gaps
from privspec.model.option_rules import read_options
from privspec.model.parameters import fit_constant, given_constants, read_parameters
from privspec.model.reports import Failure, Report
from privspec.model.requirement_rules import RequirementReader
from privspec.model.scope import Scope, collect, resolve, warn_of_unused
from privspec.model.shapes import Binding, Bindings, Typer
from privspec.model.values import Value

FILE_CALLS = ("csv", "npy")


def load_model(
    source: Source,
    *,
    parameters: Mapping[str, object] | None = None,
    constants: Mapping[str, object] | None = None,
    base: Path | None = None,
    files: Mapping[str, Any] | None = None,
) -> Model:
    """Parse and check a spec.

    Args: parameters, values in place of those written (text is read as an expression); constants, values of
    constants that have none in the spec, or others; base, the folder that file names are relative to; files,
    contents by key ("csv:queries.csv") that are used in place of the disk.
    Raises: SpecError with the diagnostics of all passes.
    """
    from privspec.language.parser import parse

    return build(parse(source), source, parameters=parameters, constants=constants, base=base, files=files)


def build(
    spec: syntax.Spec,
    source: Source,
    *,
    parameters: Mapping[str, object] | None = None,
    constants: Mapping[str, object] | None = None,
    base: Path | None = None,
    files: Mapping[str, Any] | None = None,
    trust: str | None = None,
    open_files: frozenset[Path] = frozenset(),
) -> Model:
    """Check a tree; see `load_model`."""
    return _Builder(spec, source, base, files, trust, open_files).run(parameters or {}, constants or {})


class _Builder:
    """The state that passes share."""

    def __init__(
        self,
        spec: syntax.Spec,
        source: Source,
        base: Path | None,
        files: Mapping[str, Any] | None,
        trust: str | None,
        open_files: frozenset[Path],
    ) -> None:
        self.spec, self.source, self.base, self.trust, self.open_files = spec, source, base, trust, open_files
        self.report = Report(source)
        held = None if files is None else {key: np.asarray(value, dtype=np.float64) for key, value in files.items()}
        self.read_files: dict[str, Any] = {}
        self.environment = Environment(files=Reader(base, held, self.read_files))

    def run(self, parameters: Mapping[str, object], constants: Mapping[str, object]) -> Model:
        """Every pass in order; each works on what those before it left."""
        report, spec = self.report, self.spec
        scope = collect(spec, report)
        self._check_sections(scope)
        resolve(spec, scope, report)
        values, parties = read_parameters(scope, self.environment, parameters, report)
        self.environment = replace(
            self.environment, values=values, parties={name: party.size for name, party in parties.items()}
        )
        definitions = collect_definitions(spec, scope, report)
        domains = self._domains(scope, definitions)
        parts = PartReader(scope, self.environment, self.base, self.open_files, self._load_component, report)
        components = parts.components(spec)
        fixed = self._constants(scope, definitions, domains, constants)
        typer = self._typer(scope, domains, components, fixed, parties)
        losses = LossReader(scope, report, typer, definitions, domains)
        for statement in definitions.models:
            losses.model(statement)
        self._types(scope, definitions, domains, typer)
        nodes = self._nodes(scope, definitions, domains, typer)
        blocks = lay_out(nodes, self.source)
        reader = self._requirement_reader(scope, blocks, components, definitions, typer)
        requirements = tuple(r for r in map(reader.requirement, spec.privacy) if r is not None)
        fairness = self._fairness(reader, nodes)
        constraints = tuple(
            c for c in (losses.constraint(r, self._bindings(r.left, scope)) for r in definitions.constraints) if c
        )
        asserted = tuple(c for c in (losses.claim(claim, reader) for claim in definitions.claims) if c)
        if spec.loss is not None:
            losses.loss(spec.loss)
        accuracy = tuple(losses.target(target, losses.target_bindings(target)) for target in spec.accuracy)
        self._check_known(nodes)
        options = read_options(spec, scope, self.environment, domains, requirements, report, self.trust)
        report.raise_errors()
        model = Model(
            source=self.source,
            spec=spec,
            name=spec.name or Path(self.source.name).stem or "spec",
            parameters=values,
            values={**values, **fixed},
            nodes=nodes,
            edges=tuple(
                (before, name)
                for name, needs in definitions.dependencies.items()
                for before in needs
                if before in nodes and name in nodes
            ),
            order=definitions.order,
            blocks=blocks,
            targets=dict(definitions.targets),
            loss=spec.loss,
            requirements=requirements,
            trust=options.trust,
            base=self.base,
            parties=parties,
            components=components,
            models=tuple(dict.fromkeys(losses.modelled.values())),
            constraints=constraints,
            asserted=asserted,
            accuracy=accuracy,
            fairness=fairness,
            noise_at=options.noise_at,
            noise_at_spans=options.noise_at_spans,
            families=options.families,
            family_spans=options.family_spans,
            files=self.read_files,
        )
        if model.models:
            from privspec.model.worlds import wrong_laws

            for failure in wrong_laws(model):
                report.failure(failure)
            report.raise_errors()
        warn_of_unused(spec, scope, report)
        if model.requirements or model.fairness:  # without either, `check` says so in a line of its own
            warn_about_gaps(model, report)
        return replace(model, warnings=report.warnings)

    # -- passes

    def _check_sections(self, scope: Scope) -> None:
        from privspec.core.spans import Span

        start = Span(0, min(len(self.source.text.split("\n", 1)[0]), len(self.source.text)))
        components = scope.of("component")
        output, data = next(iter(scope.of("output")), "O"), next(iter(scope.of("input")), "x")
        if not scope.of("input") and not components:
            self.report.error(
                "PS0219", start, "this spec has no input", help="add `input x in [0, 1]^64` under `variables:`"
            )
        if not scope.of("output") and not components:
            self.report.error("PS0219", start, "this spec has no output", help="add `output O` under `variables:`")
        if not self.spec.privacy and not self.spec.fairness and not _has_routes(self.spec):
            hint = f"add a section `privacy:` with a line such as `{output} is (1, 1e-6)-DP wrt {data}`"
            self.report.error("PS0219", start, "this spec has no privacy requirement", help=hint)

    def _domains(self, scope: Scope, definitions: Definitions) -> dict[str, Domain]:
        found: dict[str, Domain] = {}
        for name, node in definitions.domains.items():
            try:
                found[name] = read_domain(node, self.environment)
            except Failure as failure:
                missing = [n for n in names_used(node) if n not in self.environment.values]
                # a name without a value here has been reported where it stands
                known = failure.code in ("PS0261", "PS0220") and any(
                    n in scope or failure.code == "PS0261" for n in missing
                )
                if not known:
                    self.report.failure(failure)
        return found

    def _load_component(self, path: Path, parameters: dict[str, object], trust: str | None) -> Model:
        from privspec.language.parser import parse

        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            from privspec.core.diagnostics import Diagnostic

            raise SpecError(Diagnostic("PS0420", f"{path.name} cannot be read as text")) from error
        source = Source(str(path), text)
        return build(
            parse(source),
            source,
            parameters=parameters,
            base=path.parent,
            trust=trust,
            open_files=self.open_files
            | {path.resolve()}
            | ({Path(self.source.name).resolve()} if self.base else set()),
        )

    def _constants(
        self, scope: Scope, definitions: Definitions, domains: Mapping[str, Domain], given: Mapping[str, object]
    ) -> dict[str, Value]:
        """Values of constants, and of the files that any expression names."""
        values = given_constants(given, scope, domains, self.report)
        reported = len(self.report.diagnostics)
        for name in definitions.order:
            declared = scope[name]
            if declared.what != "constant":
                continue
            definition = definitions.of.get(name)
            if definition is None:
                if name not in domains and name not in definitions.domains and name not in values:
                    message = f"the constant {name} has neither a value nor a domain"
                    hint = f'as in constant {name} = csv("file.csv"), or constant {name} in real^32'
                    self.report.error("PS0217", declared.span, message, help=hint)
                continue
            if name in values or name in definitions.circular:
                continue
            secret = next((n for n in names_used(definition.expr) if self._is_secret(n, scope)), None)
            if secret is not None:
                message = f"a constant is public, and {secret} is {scope[secret].with_article}"
                hint = f"declare {name} as intermediate"
                self.report.error("PS0203", definition.expr.span, message, others=scope[secret].here, help=hint)
                continue
            now = replace(self.environment, values={**self.environment.values, **values})
            try:
                value = evaluate(definition.expr, now)
                values[name] = fit_constant(name, value, domains.get(name), declared.span, definition.expr.span)
            except Failure as failure:
                if failure.code in ("PS0261", "PS0205") and (reported or self.report.failed):
                    continue
                self.report.failure(failure)
        return values

    @staticmethod
    def _is_secret(name: str, scope: Scope) -> bool:
        found = scope.get(name)
        return found is not None and found.what in ("input", "intermediate", "output", "choose")

    def _typer(
        self,
        scope: Scope,
        domains: Mapping[str, Domain],
        components: tuple[ComponentModel, ...],
        fixed: Mapping[str, Value],
        parties: Mapping[str, PartySet],
    ) -> Typer:
        typer = Typer(self.report, replace(self.environment, values={**self.environment.values, **fixed}))
        typer.domains = dict(domains)
        typer.components = frozenset(scope.of("component"))
        for part in components:
            typer.attributes[part.name, "loss"] = NUMBER
            for node in part.model.nodes.values():
                typer.attributes[part.name, node.name] = node.type
        loaded = {part.name for part in components}
        for name in typer.components - loaded:
            typer.attributes[name, "*"] = UNKNOWN
        for name, found in scope.of("parameter").items():
            if found.index is not None and found.index in parties:
                typer.indexed[name] = found.index
            if name not in self.environment.values:
                typer.types[name] = UNKNOWN
        for name, found in scope.of(*VARIABLES).items():
            if found.index is not None:
                typer.indexed[name] = found.index
            typer.places[name] = getattr(found.node, "span", found.span)
            told = self.report.marred(found.span)
            typer.types[name] = UNKNOWN if told else self._declared_type(name, found.index, domains)
        return typer

    def _declared_type(self, name: str, index: str | None, domains: Mapping[str, Domain]) -> Type:
        domain = domains.get(name)
        if domain is None:
            return UNKNOWN
        if index is None:
            return domain.type
        size = self.environment.parties.get(index)
        return UNKNOWN if size is None else domain.type.with_shape((size, *domain.shape))

    def _bindings(self, left: syntax.Expr, scope: Scope) -> Bindings:
        """The index on the left of a statement."""
        match left:
            case syntax.Index(indices=(syntax.Name(id=name),)) if name in scope.of("party"):
                return self._party_binding(name)
            case _:
                return {}

    def _party_binding(self, name: str | None) -> Bindings:
        if name is None:
            return {}
        return {name: Binding(NUMBER, name, 1, self.environment.parties.get(name))}

    def _types(self, scope: Scope, definitions: Definitions, domains: Mapping[str, Domain], typer: Typer) -> None:
        """Types of what is computed, in an order in which parts come first."""
        for name in definitions.order:
            if name in definitions.circular:
                continue
            definition = definitions.of.get(name)
            declared = scope[name]
            if definition is None:
                target = definitions.targets.get(name)
                if target is not None and name not in domains:
                    typer.types[name] = typer.type_of(target)
                    typer.inferred.add(name)
                continue
            if declared.what == "constant" and name in typer.environment.values:
                value = typer.environment.values[name]
                from privspec.model.evaluate import value_type

                typer.types[name] = value_type(value)
                continue
            if declared.what == "constant" and self.report.marred(definition.expr.span):
                continue
            found = typer.type_of(definition.expr, self._party_binding(definition.index))
            if name in domains:
                self._check_declared(name, definition.expr, found, domains[name], scope)
                continue
            size = self.environment.parties.get(definition.index or "")
            if definition.index is not None:
                found = UNKNOWN if size is None or not found.known else found.with_shape((size, *found.shape))
            typer.types[name] = found
            if name not in typer.domains:
                self._result_domain(name, definition.expr, definition.index, typer)

    @staticmethod
    def _result_domain(name: str, expr: syntax.Expr, index: str | None, typer: Typer) -> None:
        """A library function that says where its result lies gives the variable that domain."""
        match expr:
            case syntax.Call(function=function) if function not in (*FILE_CALLS, *DOMAIN_CALLS):
                from privspec.model.evaluate import bind_call

                quiet = replace(typer, report=Report(typer.report.source))
                bound = (
                    {} if index is None else {index: Binding(NUMBER, index, 1, typer.environment.parties.get(index))}
                )
                try:
                    arguments = quiet.arguments(expr, bound)
                    if all(a.type.known for a in arguments.positional):
                        domain = bind_call(expr, arguments).domain
                        if domain is not None:
                            typer.domains[name] = domain
                except Failure:
                    return

    def _check_declared(self, name: str, expr: syntax.Expr, found: Type, domain: Domain, scope: Scope) -> None:
        if not found.known or self.report.marred(expr.span):
            return
        same_kind = type(found.element) is type(domain.type.element) or isinstance(domain.type.element, Laws)
        if found.shape != domain.shape or not same_kind:
            message = f"{name} was declared as {domain.type.describe()}, and this is {found.describe()}"
            self.report.error("PS0218", expr.span, message, others=((scope[name].span, domain.describe()),))

    def _nodes(
        self, scope: Scope, definitions: Definitions, domains: Mapping[str, Domain], typer: Typer
    ) -> dict[str, GraphNode]:
        secret: set[str] = set()
        for name in definitions.order:
            what = scope[name].what
            needs = definitions.dependencies.get(name, ())
            if what == "input" or (what == "intermediate" and any(n in secret for n in needs)):
                secret.add(name)
        nodes: dict[str, GraphNode] = {}
        for name, found in scope.of(*VARIABLES).items():
            definition = definitions.of.get(name)
            kind = typer.types.get(name, UNKNOWN)
            nodes[name] = GraphNode(
                name=name,
                kind=VariableKind(found.what),
                type=kind,
                span=found.span,
                domain=domains.get(name) or typer.domains.get(name) or _symbols(kind),
                definition=None if definition is None else definition.expr,
                index=found.index,
                secret=name in secret,
            )
        return nodes

    def _check_known(self, nodes: Mapping[str, GraphNode]) -> None:
        """Every output has a shape; where none follows, and nothing else is wrong, say so."""
        for node in nodes.values():
            if node.kind is VariableKind.OUTPUT and not node.type.known and not self.report.failed:
                message = f"the shape of {node.name} does not follow from anything"
                hint = (
                    f"compare it in the loss with what it should be, as in E[ ||{node.name} - y||^2 ], "
                    f"or give it a domain, as in output {node.name} in real^64"
                )
                self.report.error("PS0213", node.span, message, help=hint)

    def _requirement_reader(
        self,
        scope: Scope,
        blocks: tuple[InputBlock, ...],
        components: tuple[ComponentModel, ...],
        definitions: Definitions,
        typer: Typer,
    ) -> RequirementReader:
        parts = tuple(f"{part.name}.{node.name}" for part in components for node in part.model.outputs)
        fine = {claim.wrt.name for claim in definitions.claims}
        for definition in definitions.of.values():
            # a function whose result is bounded whatever it is given bounds its arguments' influence
            if definition.name in typer.domains and definition.name not in definitions.domains:
                fine.update(names_used(definition.expr))
        return RequirementReader(
            scope,
            self.report,
            self.environment,
            typer.environment,
            {block.name: block for block in blocks},
            parts,
            frozenset(fine),
            dict(typer.indexed),
            dict(typer.domains),
        )

    def _fairness(self, reader: RequirementReader, nodes: Mapping[str, GraphNode]) -> tuple[Any, ...]:
        attributes = {
            name: domain
            for node in nodes.values()
            if isinstance(node.type.element, Tables)
            for name, domain in node.type.element.table.attributes
        }
        found = []
        for line in self.spec.fairness:
            match line:
                case syntax.Independence():
                    read: Any = read_independence(line, reader, attributes)
                case _:
                    read = reader.requirement(line)
            if read is not None:
                found.append(read)
        return tuple(found)


def _has_routes(spec: syntax.Spec) -> bool:
    """Whether a value is computed by a function that offers routes: such a spec may serve as a baseline.

    It can be checked, and `solve` says what loss it would have; there is no plan for it (PS0518).
    """
    functions = library()
    calls = [s.right for s in spec.background if isinstance(s, syntax.Relation) and isinstance(s.right, syntax.Call)]
    return any(call.function in functions and functions[call.function].routes is not None for call in calls)


def _symbols(kind: Type) -> Domain | None:
    """The domain of a word whose set is known."""
    if isinstance(kind.element, Symbols) and kind.element.items is not None and not kind.shape:
        return FiniteSet(kind.element.items)
    return None
