"""What explanations need of the spec itself: its title, trust, inputs and the lines that say so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from privspec.core.diagnostics import SpecError
from privspec.core.spans import Source, Span
from privspec.explain.document import Because, Note, SpecLine
from privspec.explain.loss_terms import Formulas, LossTerm, formulas, loss_terms
from privspec.language import syntax
from privspec.language.syntax import VariableKind


@dataclass(frozen=True, slots=True)
class TrustWords:
    """How a trust model reads for the public and for auditors."""

    sees_raw: str
    stolen_server: str
    place: str
    auditor: str


_CURATOR = TrustWords(
    sees_raw="The keeper of the data, who makes the release. The guarantee is about what is published only.",
    stolen_server="Yes. The keeper holds the raw data, and what is stored there is not protected.",
    place="at the curator",
    auditor="One curator holds all raw data, adds the noise and publishes; all others see outputs only.",
)
_NOBODY = TrustWords(
    sees_raw="Nobody but you, if your report is drawn on your own device: noise is added before it leaves you.",
    stolen_server="No more than the messages that were sent, which the guarantee already covers.",
    place="at each party",
    auditor="No party is trusted: all see every message, so each must satisfy the requirement itself.",
)
_SECURE_SUM = TrustWords(
    sees_raw="Nobody. The parties add up their answers in such a way that only the sum becomes known.",
    stolen_server="Not one server alone. Parties that pool what they hold could learn more than the sum.",
    place="in shares at the parties",
    auditor="The parties add shares of the noise in a secure sum; everyone sees the sum and nothing else.",
)
_TRUST = {"curator": _CURATOR, "nobody": _NOBODY, "secure_sum": _SECURE_SUM}


@dataclass(frozen=True, slots=True)
class Context:
    """Facts of the spec that are no numbers of the plan.

    `trust_stated` is whether the spec names its trust model (else it is the language's default);
    `squared_error_of` the output whose plain sum of squared errors is the loss, empty for any other loss;
    `loss_terms` the errors it adds up, empty where one has no name, and `formulas` what they are computed by.
    `ties` says, for each function that is called, what it takes among equals. `distances` are those of metric
    requirements, by line; `input_domains` as written, by name; `choices` the lines that a `choose` variable stands in.
    """

    title: str
    source: tuple[str, ...]
    trust: str
    trust_stated: bool
    trust_because: Because
    input_lines: Mapping[str, SpecLine]
    output_lines: Mapping[str, SpecLine]
    loss_because: Because
    sites_because: Because
    squared_error_of: str = ""
    loss_terms: tuple[LossTerm, ...] = ()
    formulas: Formulas = field(default_factory=lambda: Formulas({}, {}))
    distances: Mapping[int, str] = field(default_factory=dict)
    input_domains: Mapping[str, str] = field(default_factory=dict)
    choices: Mapping[str, tuple[SpecLine, ...]] = field(default_factory=dict)
    ties: Mapping[str, str] = field(default_factory=dict)

    @property
    def trust_words(self) -> TrustWords | None:
        """The words for the trust model; None where it is not known here."""
        return _TRUST.get(self.trust)

    def line(self, number: int) -> SpecLine:
        """A line of the spec by number, with its text where there is one."""
        return _numbered(self.source, number)


def context(plan: Mapping[str, Any]) -> Context:
    """The context of a plan, from the syntax tree of the source that the plan carries.

    A source that does not parse (a plan that was tampered with) gives a context without lines.
    """
    spec = plan.get("spec") or {}
    source = Source(str(spec.get("path") or ""), str(spec.get("source") or ""))
    lines = tuple(source.text.splitlines())
    tree = _tree(source)

    def at(span: Span) -> SpecLine:
        return _numbered(lines, source.position(span.start)[0])

    known = formulas(tree, spec.get("parameters") or {})
    trust = _option(tree.options, syntax.Trust)
    sites = _option(tree.options, syntax.NoiseAt)
    local = any(str(g.get("measure", "")).endswith("LDP") for g in plan.get("guarantees") or ())
    trust_because: Because = at(trust.span) if trust else Note("trust-by-default")
    return Context(
        title=_title(tree.doc) or str(spec.get("name") or "this plan"),
        source=lines,
        trust=_word(trust.model) if trust else ("nobody" if local else "curator"),
        trust_stated=trust is not None,
        trust_because=trust_because,
        input_lines={v.target.name: at(v.span) for v in _variables(tree, VariableKind.INPUT)},
        output_lines={v.target.name: at(v.span) for v in _variables(tree, VariableKind.OUTPUT)},
        loss_because=at(tree.loss.span) if tree.loss is not None else Note("placement"),
        sites_because=at(sites.span) if sites else trust_because,
        squared_error_of=_squared_error_of(tree.loss),
        loss_terms=loss_terms(tree.loss, known.parameters),
        formulas=known,
        distances={at(r.span).number: d for r in tree.privacy if (d := _distance(r))},
        input_domains=_domains(tree),
        choices={
            v.target.name: tuple(dict.fromkeys(at(span) for span in (v.span, *_naming(tree, v.target.name))))
            for v in _variables(tree, VariableKind.CHOOSE)
        },
        ties=_ties(tree),
    )


def _ties(tree: syntax.Spec) -> dict[str, str]:
    """What the functions that the spec calls take among equals."""
    from privspec.language.walk import walk
    from privspec.model.library import library

    known = library()
    called = [node.function for node in walk(tree) if isinstance(node, syntax.Call)]
    return {name: known[name].ties for name in called if name in known and known[name].ties}


def _distance(requirement: syntax.Requirement) -> str:
    """The distance that a requirement names: by its name in the language where it has one, else as it is written."""
    from privspec.language.spelling import spell

    clause = next((c for c in requirement.clauses if isinstance(c, syntax.Distance)), None)
    match None if clause is None else clause.metric:
        case None:
            return ""
        case syntax.Absolute():
            return "manhattan"
        case syntax.Norm(order=order):
            return _NORMS[order]
        case other:
            return spell(other)


_NORMS = {"1": "manhattan", "2": "euclidean", "inf": "chebyshev"}


def _domains(tree: syntax.Spec) -> dict[str, str]:
    from privspec.language.spelling import spell

    inputs = _variables(tree, VariableKind.INPUT)
    return {v.target.name: spell(v.domain) for v in inputs if v.domain is not None}


def _naming(tree: syntax.Spec, name: str) -> Iterator[Span]:
    """Where background lines name a variable."""
    from privspec.language.walk import names_used

    for statement in tree.background:
        if name in names_used(statement):
            yield statement.span


def _tree(source: Source) -> syntax.Spec:
    from privspec.language.parser import parse

    try:
        return parse(source)
    except SpecError:
        return syntax.Spec(None, None)


def _option(options: Iterable[object], kind: type[Any]) -> Any:
    return next((o for o in options if isinstance(o, kind)), None)


def _word(model: syntax.Name | syntax.Call) -> str:
    return model.function if isinstance(model, syntax.Call) else model.id


def _variables(tree: syntax.Spec, kind: VariableKind) -> list[syntax.Variable]:
    return [v for v in tree.variables if v.kind is kind]


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


def _numbered(lines: tuple[str, ...], number: int) -> SpecLine:
    inside = 1 <= number <= len(lines)
    return SpecLine(number, lines[number - 1].split("#", 1)[0].strip() if inside else "")


def _title(doc: str | None) -> str:
    """The first line of the spec's description, without its full stop."""
    words = (doc or "").strip().strip('"').strip()
    return words.splitlines()[0].strip().removesuffix(".") if words else ""
