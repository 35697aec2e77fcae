"""Options: who is trusted, where noise may enter, and of which family."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache

from privspec.core.records import dataclass
from privspec.core.spans import Span
from privspec.core.suggest import advice
from privspec.kernel.measures import PURE
from privspec.kernel.trust import CURATOR, KINDS, NOBODY, SECURE_SUM, TrustModel
from privspec.language import syntax
from privspec.language.walk import root
from privspec.model.domains import Domain, FiniteSet
from privspec.model.evaluate import Environment, evaluate
from privspec.model.graph import Component, Different
from privspec.model.neighbours import InputBlock
from privspec.model.reports import Failure, Report, listing, nearest
from privspec.model.requirements import ChosenTrust, EachPart, Requirement, Trust, TrustIn
from privspec.model.scope import TRUST_WORDS, Scope


@cache
def families() -> tuple[str, ...]:
    """Families that `noise family` may name; the rules of voting are looked up when they are asked for."""
    from privspec.kernel.laws.law import FAMILIES
    from privspec.kernel.laws.voting import VOTING

    winners = (one.name for one in VOTING)
    return (*FAMILIES, "table", *winners, "sphere")


STATISTICS = ("objective", "records", "signs", "direction", "direction_of_records")
"""What of a function's way noise can enter at besides its result: `noise at objective(beta)`."""

NOT_SITES: Mapping[str, str] = {
    "parameter": "it is public",
    "constant": "it is public",
    "choose": "it is public",
    "party": "it is an index set",
    "component": "its own spec says where its noise goes",
}


@dataclass(frozen=True, slots=True)
class Options:
    """What the options of a file say."""

    trust: Trust
    noise_at: tuple[str, ...] | None = None
    noise_at_spans: tuple[Span, ...] = ()
    families: tuple[str, ...] = ()
    family_spans: tuple[Span, ...] = ()
    different: tuple[Different, ...] = ()
    unbiased: bool = False
    same: tuple[Different, ...] = ()


def read_options(
    spec: syntax.Spec,
    scope: Scope,
    environment: Environment,
    domains: Mapping[str, Domain],
    requirements: tuple[Requirement, ...],
    report: Report,
    parts: tuple[Component, ...] = (),
    blocks: tuple[InputBlock, ...] = (),
) -> Options:
    """The options, each kind at most once, but for who are different people; local requirements: nobody is trusted.

    Args: parts, each of which may say by itself whom it trusts.
    """
    trust: Trust | None = None
    trust_node: syntax.Trust | None = None
    noise: syntax.NoiseAt | None = None
    family: syntax.NoiseFamily | None = None
    for option in spec.options:
        before: syntax.Option | None = None
        match option:
            case syntax.Trust():
                before, trust_node = trust_node, trust_node or option
                if before is None:
                    trust = _trust(option, scope, environment, domains, report)
            case syntax.NoiseAt():
                before, noise = noise, noise or option
            case syntax.NoiseFamily():
                before, family = family, family or option
        if before is not None:
            message = "this option is given twice"
            hint = "write all names in one line, separated by commas"
            report.error("PS0273", option.span, message, others=((before.span, "given here first"),), help=hint)
    own = {"": trust}
    for part in sorted(parts, key=lambda one: one.name.count(".")):
        said = None if part.stated is None else _trust(part.stated, scope, environment, domains, report)
        own[part.name] = said or own[part.name.rpartition(".")[0]]
    owner = {name: of if (of := name.rpartition(".")[0]) in own else "" for name in scope.of("output")}
    lines = {
        part: [r for r in requirements if not parts or any(owner.get(o) == part for o in r.outputs)] for part in own
    }
    known = {block.name: block for block in blocks}
    trusted = {part: _local(own[part], lines[part], known, report) for part in own}
    each = tuple((name, trusted[part]) for name, part in owner.items())
    among = {one for _, one in each} or {trusted[""]}
    trust = min(among, key=lambda one: one.name) if len(among) == 1 else EachPart(each)
    sites, site_spans = _sites(noise, scope, report)
    families, family_spans = _families(family, report)
    apart = tuple(_people(one, known, report) for one in spec.options if isinstance(one, syntax.DifferentPeople))
    same = tuple(_people(one, known, report) for one in spec.options if isinstance(one, syntax.SamePeople))
    for one in same:
        both = next((names for other in apart if len(names := {*one.names} & {*other.names}) > 1), None)
        if both:
            message = f"{listing(sorted(both))} are said to hold different people as well"
            report.error("PS0274", one.span, message, help="leave one of the two lines out")
    unbiased = any(isinstance(one, syntax.Unbiased) for one in spec.options)
    return Options(trust, sites, site_spans, families, family_spans, apart, unbiased, same)


def _people(
    option: syntax.DifferentPeople | syntax.SamePeople, blocks: Mapping[str, InputBlock], report: Report
) -> Different:
    """Inputs that hold no person twice, or may: each says whose its data are, and no two of them by one index set."""
    found = list[InputBlock]()
    for name in option.names:
        own, near = blocks.get(name.id), nearest(name.id, tuple(blocks))
        same = next((one for one in found if own and (own is one or (own.index and own.index == one.index))), None)
        if own is None:
            report.error("PS0274", name.span, f"{name.id} is no input", help=f"did you mean {near}?" if near else None)
        elif own.index is None and not own.ids:
            hint = "a table with a column such as `person in id`, or an input of a party, says whose its data are"
            report.error("PS0274", name.span, f"nothing says whose the data of {name.id} are", help=hint)
        elif same and (same is own or isinstance(option, syntax.DifferentPeople)):
            report.error("PS0274", name.span, f"{name.id} holds the same people as {same.name}")
        else:
            found.append(own)
    if len(option.names) < 2:
        report.error("PS0274", option.span, "people are compared between two inputs or more", help="name both of them")
    return Different(tuple(one.name for one in found), option.span)


def _trust(
    option: syntax.Trust, scope: Scope, environment: Environment, domains: Mapping[str, Domain], report: Report
) -> Trust | None:
    model = option.model
    word = environment.values.get(model.id) if isinstance(model, syntax.Name) else None
    if isinstance(word, str):  # a parameter's
        model = syntax.Name(word, span=model.span)
    match model:
        case syntax.Name(id=name) if name in KINDS:
            return TrustIn(KINDS[name], span=option.span)
        case syntax.Call(function=name) if name in KINDS and KINDS[name].shared:
            return _shared(KINDS[name], model, option, environment, report)
        case syntax.Name(id=name) if (found := scope.get(name)) is not None and found.what == "choose":
            domain = domains.get(name)
            words = domain.items if isinstance(domain, FiniteSet) else ()
            known = tuple(word for word in words if isinstance(word, str) and word in TRUST_WORDS)
            if not known or len(known) != len(words):
                message = f"{name} must be chosen from trust models"
                hint = f"as in choose {name} in {{{NOBODY.name}, {SECURE_SUM.name}}}"
                report.error("PS0270", model.span, message, others=found.here, help=hint)
                return None
            return ChosenTrust(name, known, option.span)
        case _:
            from privspec.language import meanings

            word = model.id if isinstance(model, syntax.Name) else model.function
            hint = advice(word, TRUST_WORDS, meanings.TRUST) or f"these exist: {', '.join(TRUST_WORDS)}"
            report.error("PS0270", model.span, f"there is no trust model {word}", help=hint)
            return None


def _shared(
    means: TrustModel, call: syntax.Call, option: syntax.Trust, environment: Environment, report: Report
) -> Trust | None:
    match call.arguments:
        case ():
            return TrustIn(means, span=option.span)
        case (syntax.Keyword(name="colluding", value=expr),):
            try:
                value = evaluate(expr, environment)
            except Failure as failure:
                report.failure(failure)
                return None
            if isinstance(value, Fraction) and value.denominator == 1 and 0 <= value < 2**48:
                return TrustIn(means, int(value), option.span)
            report.error("PS0270", expr.span, "the number of colluding parties is a whole number from 0 on")
            return None
        case _:
            report.error("PS0270", call.span, f"this is written {means.name}(colluding = 10)")
            return None


def _local(
    trust: Trust | None, requirements: list[Requirement], blocks: Mapping[str, InputBlock], report: Report
) -> Trust:
    """Whom some lines trust: nobody where one of them is local, which is told where others do not say so."""
    local = [requirement for requirement in requirements if requirement.measure.local]
    if not local:
        return trust or TrustIn(CURATOR)
    if isinstance(trust, TrustIn) and trust.span is not None and not trust.alone:
        message = f"a local requirement means that nobody is trusted, and this line trusts {trust.name}"
        hint = f"write `trust {NOBODY.name}`, or {PURE.word} in place of {local[0].measure.of.word}"
        report.error(
            "PS0308", trust.span, message, others=((local[0].span, "protects each party's own report"),), help=hint
        )
    of_parties = (r for r in requirements if any(name in blocks and blocks[name].index for name in r.wrt))
    other = next((one for one in of_parties if not one.measure.local), None)
    if trust is None and other is not None:
        message = f"nobody is trusted with the data of this line either, since another is {local[0].measure.of.word}"
        hint = f"write `trust {NOBODY.name}` if that is meant; else {PURE.word} in place of {local[0].measure.of.word}"
        report.warn("PS0308", other.span, message, others=((local[0].span, "nobody is trusted here"),), help=hint)
    return trust if isinstance(trust, ChosenTrust) else TrustIn(NOBODY, span=trust.span if trust else None)


def _sites(
    noise: syntax.NoiseAt | None, scope: Scope, report: Report
) -> tuple[tuple[str, ...] | None, tuple[Span, ...]]:
    if noise is None:
        return None, ()
    names: list[str] = []
    spans: list[Span] = []
    for expr in noise.sites:
        text = _site(expr, scope, report)
        if text is None:
            continue
        if text in names:
            report.error("PS0271", expr.span, f"{text} is named twice", others=((spans[names.index(text)], ""),))
            continue
        names.append(text)
        spans.append(expr.span)
    return tuple(names), tuple(spans)


def _site(expr: syntax.Expr, scope: Scope, report: Report) -> str | None:
    """A variable's name, or `objective(name)` and its like for noise in a statistic that the variable comes from."""
    inner: syntax.Expr = expr
    form = "{}"
    match expr:
        case syntax.Call(function=statistic, arguments=(syntax.Name() | syntax.Index() as argument,)) if (
            statistic in STATISTICS
        ):
            inner, form = argument, f"{statistic}({{}})"
    found = root(inner)
    if found is None or isinstance(inner, syntax.Attribute):
        report.error("PS0271", expr.span, "noise enters at a variable", help="give the expression a name of its own")
        return None
    declared = scope.get(found.id)
    sites = scope.of("input", "intermediate", "output")
    if declared is None:
        near = nearest(found.id, sites)
        hint = f"did you mean {near}?" if near else f"noise can enter at {listing(sites, 'or')}" if sites else None
        report.error("PS0271", expr.span, f"nothing is called {found.id}", help=hint)
        return None
    if declared.what in NOT_SITES:
        text = f"noise at {found.id} hides nothing: {NOT_SITES[declared.what]}"
        help_ = f"noise can enter at {listing(sites, 'or')}" if sites else None
        report.error("PS0271", expr.span, text, others=((declared.span, declared.with_article),), help=help_)
        return None
    return form.format(found.id)


def _families(family: syntax.NoiseFamily | None, report: Report) -> tuple[tuple[str, ...], tuple[Span, ...]]:
    if family is None:
        return (), ()
    good = []
    for name in family.names:
        if name.id in families():
            good.append(name)
            continue
        from privspec.language import meanings

        hint = advice(name.id, families(), meanings.FAMILIES) or f"these exist: {', '.join(families())}"
        report.error("PS0272", name.span, f"there is no noise family {name.id}", help=hint)
    return tuple(dict.fromkeys(name.id for name in good)), tuple(name.span for name in good)
