"""Systems: specs whose outputs no one family takes, as parts that each have one, under the lines that they share.

A part is a problem of its own: the spec without the other outputs and what only they need. Lines of privacy stay,
about the outputs and inputs of the part; what each part may spend of a line is for the compiler to find, and for the
kernel to compose (noise/notes/composition.md). The loss of a system is the sum of the losses of its parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from math import prod
from typing import Any, TypeVar

from privspec.core.diagnostics import Diagnostic, SpecError
from privspec.core.records import dataclass, replace
from privspec.kernel.core.reading import JsonNode
from privspec.kernel.measures import APPROXIMATE, MEASURES, Measure
from privspec.kernel.systems import DRAWN, ChosenShare, PartOfSystem, System, component_names
from privspec.language import syntax
from privspec.language.spelling import spell
from privspec.language.walk import every, names_used
from privspec.model.build import build
from privspec.model.domains import Interval
from privspec.model.graph import Component, GraphNode, Model, condition_words, once
from privspec.model.measures import Chosen, MeasureAt
from privspec.model.neighbours import GivenTheModel
from privspec.model.observers import looks
from privspec.model.reports import Failure, Unsupported, listing, refuse_all
from privspec.model.requirements import EachPart, Trust
from privspec.model.tallies import with_tallies
from privspec.model.targets import needed
from privspec.model.values import show
from privspec.model.worlds import finite, worlds
from privspec.problem.frequencies import counted as counts
from privspec.problem.selection import reads as selects
from privspec.problem.statistics import routed_call
from privspec.problem.terms import public_number
from privspec.problem.words import block_words, output_names, trust_words
from privspec.registry import FAMILIES, Family

T = TypeVar("T")
SHARED = ", ".join(measure.name for measure in MEASURES if measure.shared)
"""Measures of a line that parts can share, and in which the share of a part may be chosen."""


def words(system: System) -> Iterator[str]:
    """Its parts, that their noise is independent, how often each is drawn and when, and what it says."""
    named = [(output_names(block), block, part) for part in system.parts for block in part.problem.blocks]
    if system.values:
        yield from _case_words(named)
        return
    many = f"{len(named)} parts" if len(named) > 1 else "one part"
    yield f"The outputs are released in {many} with independent noise: {' | '.join(names for names, _, _ in named)}."
    for one in system.choices:
        yield f"{one.name} is chosen from {one.low} {'on' if one.high is None else f'to {one.high}'}."
    if len({part.problem.trust for part in system.parts}) > 1:
        yield from (f"{names}: {trust_words(part.problem.trust)}" for names, _, part in named)
    for names, _, part in named:
        if part.times > 1:
            yield (
                f"{names}: drawn {part.times} times, with independent noise; every line holds of all of them together."
            )
        if part.only_if is not None:
            yield f"{names}: drawn only if {condition_words(part)}; all lines hold as if it always were."
    for names, block, _ in named:
        yield from (f"{names}: {said}" if len(named) > 1 else said for said in block_words(block))


def _case_words(named: list[tuple[str, Any, PartOfSystem]]) -> Iterator[str]:
    """What is drawn first, and what follows it; what is said of all cases alike is said once."""
    (first, block, _), *cases = named
    values, after = listing([show(part.limit) for *_, part in cases], "or"), cases[0][0]
    yield f"First {first} is drawn, which is {values}; then {after}, in the one case that it says. No other is drawn."
    yield f"Every line about the data that {first} is drawn from is about {first} and {after} together."
    yield from (f"{first}: {said}" for said in block_words(block))
    each = [tuple(block_words(own)) for _, own, _ in cases]
    alike = [said for said in each[0] if all(said in others for others in each)]
    yield from (f"{after}: {said}" for said in alike)
    for own, (_, _, part) in zip(each, cases, strict=True):
        yield from (f"{after} where {condition_words(part)}: {said}" for said in own if said not in alike)


@dataclass(frozen=True, eq=False, slots=True)
class Part:
    """The spec of some outputs alone, which are those of the spec `of`; the others as in `PartOfSystem`."""

    outputs: tuple[str, ...]
    model: Model
    lines: tuple[int, ...]
    family: Family
    times: int = 1
    only_if: str | None = None
    sign: str = "!="
    limit: Fraction = Fraction(0)
    of: Model | None = None


def reads(model: Model) -> bool:
    """Whether outputs belong to several families, or to several problems of a family that takes one at a time."""
    found = parts_of(model)
    runs_alone = any(part.times > 1 for part in found) or bool(found and (mixed(model) or chosen_shares(model)))
    return len(found) > 1 or runs_alone


def mixed(model: Model) -> bool:
    """Whether parts trust each their own."""
    return isinstance(model.trust, EachPart)


def block_of(model: Model) -> System:
    """The system of a spec.

    Raises: SpecError PS05xx for what systems cannot say, or a part cannot.
    """
    from privspec.problem.elaborate import elaborate

    found = parts_of(model)
    refuse_unsupported(model, found)
    return System(
        tuple(node.name for node in model.outputs),
        expression_of(model),
        tuple(share_range(model, number) for number in chosen_shares(model)),
        tuple(
            PartOfSystem(
                _asked(elaborate(part.model), part, model), part.lines, part.times, part.only_if, part.sign, part.limit
            )
            for part in found
        ),
    )


def expression_of(model: Model) -> str:
    """What is asked for, as it is written: where a value is drawn first, without its own error."""
    loss = model.loss if model.drawn is None else model.drawn.loss
    return "" if loss is None else spell(loss)


def _asked(problem: Any, part: Part, model: Model) -> Any:
    """The problem of a part, with lines whose amounts are chosen as the system has them."""
    from privspec.problem.elaborate import measure_of

    lines = zip(problem.obligations, part.lines, strict=True)
    obligations = (replace(one, measure=measure_of(model.requirements[number].measure, model)) for one, number in lines)
    return replace(problem, obligations=tuple(obligations))


def share_range(model: Model, number: int) -> ChosenShare:
    """The number that is chosen for a line."""
    node = model.nodes[chosen_shares(model)[number]]
    low, high = node.bounds
    return ChosenShare(node.name, max(low or Fraction(0), Fraction(0)), high)


@once
def chosen_shares(model: Model) -> Mapping[int, str]:
    """Lines that ask for a number that solving picks, of a part that shares another line; by the line's number.

    A part that is drawn several times shares one with itself. None where a choice is of another kind: where it stands
    in the loss, it is not found by splitting a line.
    """
    places = (model.spec.loss, *model.spec.accuracy, *model.spec.fairness, *model.spec.background)
    elsewhere = {name for place in places if place is not None for name in _used(place)}
    found: dict[int, str] = {}
    fixed = [set(line.outputs) for line in model.requirements if not isinstance(line.measure, Chosen)]
    for number, line in enumerate(model.requirements):
        if isinstance(line.measure, Chosen):
            names = {name for amount in line.measure.amounts_as_written for name in names_used(amount)}
            picked = [node.name for node in model.choices if node.name in names]
            own = set(line.outputs)
            shared = any(own <= some for some in fixed)
            if len(picked) != 1 or picked[0] in elsewhere or not shared:
                return {}
            found[number] = picked[0]
    return found if sorted(found.values()) == sorted(node.name for node in model.choices) else {}


def share_of(model: Model, number: int) -> tuple[Measure, Fraction]:
    """The measure of a line whose amount is chosen, and of how many times the chosen number it is.

    Raises: SpecError PS0524 if it is no multiple.
    """
    from privspec.problem.elaborate import chosen_amount

    measure = model.requirements[number].measure
    assert isinstance(measure, Chosen)
    found = chosen_amount(measure.amounts_as_written[0], model)
    assert not isinstance(found, Fraction)
    return measure.of, Fraction(0) if found.inverse else found.scale


def amounts_at(model: Model, number: int, amount: Fraction) -> tuple[Fraction, ...]:
    """All amounts of a line whose first one is chosen; the second, where it has one, is as written.

    Raises: Failure, SpecError if the second one has no value.
    """
    measure = model.requirements[number].measure
    assert isinstance(measure, Chosen)
    return (amount, *(public_number(one, model) for one in measure.amounts_as_written[1:]))


def part_names(plan: Mapping[str, Any]) -> list[str]:
    """Under which names the plan of a system has its parts, in the order of its problem."""
    parts = plan["problem"]["blocks"][0]["parts"]
    cases = [f"{part['only_if']} = {part.get('limit', 0)}" for part in parts if part.get("sign") == DRAWN]
    return component_names([JsonNode(part["problem"], "problem") for part in parts], cases)


@once
def parts_of(model: Model) -> tuple[Part, ...]:
    """The parts of a spec: where a value is drawn first, that one and all that may follow; else those of its outputs.

    Raises: SpecError PS0501 where what follows a draw is several parts.
    """
    drawn, found = model.drawn, _parts_at_once(model)
    if drawn is None:
        return found
    parts = [part for part in found if drawn.name in part.outputs]
    for value, own in zip(drawn.values, drawn.models, strict=True):
        after = [part for part in _parts_at_once(own) if drawn.name not in part.outputs]
        if len(after) != 1 or parts[0].outputs != (drawn.name,):
            text = f"solve draws {drawn.name} before one kind of output, and not before several, or beside others"
            hint = "release the others by a spec of their own, on the same ledger"
            raise SpecError(Diagnostic.at(model.source, drawn.span, "PS0501", text, help=hint))
        parts.append(replace(after[0], only_if=drawn.name, sign=DRAWN, limit=value, of=own))
    return tuple(parts)


def _parts_at_once(model: Model) -> tuple[Part, ...]:
    """The parts of a spec in the order of its outputs; none where it is one problem of a family, with nothing to pick.

    Outputs stay together that share a term of the loss, a line of accuracy or fairness, a condition, or noise: linear
    outputs do, and finite ones of the same input that a line joins, but not those whose share of a line is to be seen.
    """
    runs = [part for part in model.components if not part.plain]
    one = bool(chosen_shares(model))
    if (len(model.outputs) < 2 and not (runs or one)) or model.loss is None:
        return ()
    shared = one or runs or _own_views(model) or mixed(model) or _without_gaussian(model)
    if not (shared or _of_several_kinds(model) or _drawn_apart(model)):
        return ()
    groups = _groups(model)
    if len(groups) < 2 and not (runs or one) and not mixed(model):
        return ()
    found = [_part(model, group) for group in groups]
    alone = {name for number in chosen_shares(model) for name in model.requirements[number].outputs}
    alone |= {name for part in runs for name in _outputs_of(model, part)}
    alone |= {name for some in _own_views(model) for name in some}
    open_ones = [(i, one) for i, one in enumerate(found) if not alone & set(one.outputs)]
    bare = _without_gaussian(model)

    def together(one: Part, other: Part) -> bool:
        return bare.isdisjoint(one.outputs) == bare.isdisjoint(other.outputs) and _one_problem(one, other)

    pairs = [{i, j} for i, one in open_ones for j, other in open_ones if j < i and together(one, other)]
    merged = _joined([{i} for i in range(len(found))] + pairs)
    if len(merged) < 2 and not (runs or one) and not mixed(model):
        return ()
    parts = (
        found[min(some)] if len(some) == 1 else _part(model, {name for i in some for name in found[i].outputs})
        for some in sorted(merged, key=min)
    )
    drawn = {name: part for part in runs for name in _outputs_of(model, part)}
    return tuple(
        replace(part, times=run.times, only_if=run.only_if, sign=run.sign, limit=run.limit)
        if (run := drawn.get(part.outputs[0]))
        else part
        for part in parts
    )


def _own_views(model: Model) -> list[set[str]]:
    """What lines of parts are about where every message or sum of the whole is seen: only what the part shows."""
    seen = [set(model.exposed(line)) for line in model.requirements]
    return [some & shown for shown in _public(model) for some in seen if some & shown and not shown <= some]


def _without_gaussian(model: Model) -> set[str]:
    """Outputs that Gaussian noise cannot hide for some line, where it is to hide the others; else none.

    That is so where a line of the others has no epsilon: noise of pure epsilon alone would keep it, and lose more.
    """
    lines = [line for line in model.requirements if isinstance(line.measure, MeasureAt)]
    bare = {name for line in lines if line.measure.gaussian_mu_down() is None for name in model.exposed(line)}
    others = {node.name for node in model.outputs} - bare
    theirs = [line.measure for line in lines if others & {*line.outputs}]
    shared = len(lines) == len(model.requirements) and all(one.of.shared for one in theirs)
    curved = any(one.pure_epsilon is None for one in theirs)
    return bare if shared and curved and not finite(model) else set()


def _public(model: Model) -> list[set[str]]:
    """The outputs of each trust under which all see every message or sum."""
    found = dict[Trust, set[str]]()
    for node in model.outputs:
        found.setdefault(model.trust.of(node.name), set()).add(node.name)
    return [names for trust, names in found.items() if trust.public]


def _outputs_of(model: Model, component: Component) -> set[str]:
    return {node.name for node in model.outputs if node.name.startswith(f"{component.name}.")}


def _of_several_kinds(model: Model) -> bool:
    """Whether more than one family is needed, by a look at outputs and functions; parts are built only then."""
    drawn = [node.domain is not None and node.domain.size is not None for node in model.outputs]
    counted = counts(model)
    return not finite(model) and (any(drawn) or routed_call(model) is not None or selects(model) or bool(counted))


def _drawn_apart(model: Model) -> bool:
    """Whether some finite outputs are drawn apart from others: no line and no term has both, or both are too large.

    The best laws of each then meet all that is asked of both together. A table of both is larger, and whoever sees both
    may learn far more from it than the lines add up to. An output that no line names is drawn with the others.
    """
    if not finite(model) or any(look.unnamed for look in looks(model)):
        return False
    seen = [set(model.exposed(line)) for line in model.requirements]
    return len(_joined([*_groups(model), *seen])) > 1 or _too_large(model, model.outputs)


LARGEST_TABLE = 20_000
"""Probabilities of a table of several outputs up to which they are drawn together."""


def _too_large(model: Model, outputs: Iterable[GraphNode]) -> bool:
    """Whether a table of some outputs has too many probabilities to be searched for."""
    answers = prod(node.domain.size or 1 for node in outputs if node.domain is not None)
    try:
        return len(worlds(model).rows) * answers > LARGEST_TABLE
    except Failure:
        return True


def _one_problem(one: Part, other: Part) -> bool:
    """Whether a family takes both parts better together than apart."""
    if one.family != other.family or one.model.trust != other.model.trust:
        return False
    if one.family.together == "always":
        return True
    inputs = {node.name for node in one.model.inputs} & {node.name for node in other.model.inputs}
    if one.family.together != "same input" or not inputs or not {*one.lines} & {*other.lines}:
        return False
    return not _too_large(one.model, (*one.model.outputs, *other.model.outputs))


def restricted(model: Model, outputs: tuple[str, ...], shares: Mapping[int, syntax.Requirement] | None = None) -> Model:
    """The model of some outputs alone; `shares`: lines of privacy, by number, in place of the system's own."""
    return _part(model, set(outputs), shares or {}).model


def _part(model: Model, outputs: set[str], shares: Mapping[int, syntax.Requirement] | None = None) -> Part:
    kept = _needs(model, outputs)
    spec, lines = model.spec, []
    privacy = []
    for number, (line, written) in enumerate(zip(model.requirements, spec.privacy, strict=True)):
        if set(model.exposed(line)) & outputs and set(line.wrt) & kept:
            lines.append(number)
            asked = (shares or {}).get(number, written)
            if asked is written and number in chosen_shares(model):
                asked = share(written, written.measure, amounts_at(model, number, Fraction(1)))  # blocks depend on none
            named = _some(written.subjects, outputs)
            if isinstance(named, syntax.Refs) and not named.items:  # its messages are seen all the same
                named = replace(named, items=tuple(syntax.Ref(name, span=named.span) for name in sorted(outputs)))
            privacy.append(replace(asked, subjects=named, wrt=_some(written.wrt, kept)))
    kept |= {name for line in privacy for name in names_used(line.amount)}  # a choice that no share of a line is
    sub = replace(
        spec,
        variables=tuple(v for v in spec.variables if v.target.name in kept),
        background=tuple(s for s in spec.background if _about(s, model) <= kept),
        loss=_sum([term for term in _terms(model.loss) if _outputs(model, term) & outputs]),
        accuracy=tuple(line for line in spec.accuracy if _outputs(model, line) & outputs),
        fairness=tuple(line for line in spec.fairness if _outputs(model, line) & outputs),
        privacy=tuple(privacy),
        options=tuple(o for o in (_option(option, model, kept) for option in spec.options) if o is not None),
    )
    trust = model.trust.of(min(outputs))
    given = [n.name for n in model.constants if n.definition is None and n.name in kept]
    constants = {name: model.values[name] for name in given if name in model.values}
    if not privacy and not sub.fairness:
        raise SpecError(_no_line(model, min(outputs)))
    values = {name: f'"{value}"' if isinstance(value, str) else value for name, value in model.parameters.items()}
    found = build(sub, model.source, parameters=values, constants=constants, base=model.base, files=model.files)
    once_each = tuple(replace(one, times=1, only_if=None) for one in model.components)
    found = with_tallies(replace(found, name=model.name, components=once_each, trust=trust))
    return Part(
        tuple(n.name for n in found.outputs),
        found,
        tuple(lines),
        next(family for family in FAMILIES if family.form != System.FORM and family.takes(found)),
    )


def _no_line(model: Model, output: str) -> Diagnostic:
    text = f"solve cannot compute a system with an output that no line is about ({output})"
    hint = "name it in a line of privacy, or release it by a spec of its own"
    return Diagnostic.at(model.source, model.nodes[output].span, "PS0501", text, help=hint)


def _groups(model: Model) -> list[set[str]]:
    """Outputs that stay together whatever their families, in the order of the first of each."""
    conditions = [line.relation for line in model.constraints]
    shared = [*_terms(model.loss), *model.spec.accuracy, *model.spec.fairness, *conditions]
    order = [node.name for node in model.outputs]
    sets = [_outputs(model, item) for item in shared]
    sets += [_needs(model, {name}, through_loss=False) & set(order) for name in order]
    sets += [set(model.requirements[number].outputs) for number in chosen_shares(model)]
    sets += [_outputs_of(model, part) for part in model.components if not part.plain]
    sets += _own_views(model)
    return sorted(_joined(sets), key=lambda some: min(map(order.index, some)))


def _joined(sets: Iterable[set[T]]) -> list[set[T]]:
    """The unions of sets that touch one another."""
    found: list[set[T]] = []
    for some in filter(None, sets):
        touching = [one for one in found if one & some]
        found = [one for one in found if not one & some] + [some.union(*touching)]
    return found


def _needs(model: Model, outputs: set[str], *, through_loss: bool = True) -> set[str]:
    """All variables that some outputs are about: computed from, compared with, or named with in a line of theirs."""
    names = set(outputs)
    if through_loss:
        lines = [*_terms(model.loss), *model.spec.accuracy, *model.spec.fairness, *model.spec.background]
        for item in lines:
            used = _used(item)
            if _outputs(model, item) & outputs:
                names |= used & set(model.nodes)
    return {before for name in names if name in model.nodes for before in needed(model, name)} | names


def _outputs(model: Model, item: syntax.Node) -> set[str]:
    """The outputs that a line is about, through intermediates too."""
    names = _used(item) & set(model.nodes)
    every = {before for name in names for before in needed(model, name)}
    return {node.name for node in model.outputs if node.name in every}


def _about(statement: syntax.BackgroundStatement, model: Model) -> set[str]:
    """The variables that a line of the background is about: on its left, except where a condition names more."""
    left = statement.subject if isinstance(statement, syntax.SensitivityClaim) else statement.left
    conditions = isinstance(statement, syntax.Relation) and statement.op not in ("=", "~")
    return _used(statement if conditions else left) & set(model.nodes)


def _used(item: syntax.Node) -> set[str]:
    """Every name that a line uses, as a value or as what it is about."""
    return {*names_used(item), *(node.name for node in every(item, syntax.Ref))}


def _terms(expr: syntax.Expr | None) -> Iterator[syntax.Expr]:
    """The terms of a sum; a factor stands before each term of a sum in brackets."""
    match expr:
        case None:
            return
        case syntax.Binary(op="+", left=left, right=right):
            yield from _terms(left)
            yield from _terms(right)
        case syntax.Binary(op="*", left=left, right=syntax.Binary(op="+") as right):
            yield from (replace(expr, left=left, right=term) for term in _terms(right))
        case _:
            yield expr


def _sum(terms: list[syntax.Expr]) -> syntax.Expr | None:
    found: syntax.Expr | None = None
    for term in terms:
        found = term if found is None else syntax.Binary("+", found, term, span=term.span)
    return found


def _some(names: syntax.Names, kept: set[str]) -> syntax.Names:
    if isinstance(names, syntax.AllOf):
        return names
    return replace(names, items=tuple(item for item in names.items if item.name in kept))


def _option(option: syntax.Option, model: Model, kept: set[str]) -> syntax.Option | None:
    if isinstance(option, syntax.DifferentPeople | syntax.SamePeople):
        names = tuple(name for name in option.names if name.id in kept)
        return replace(option, names=names) if len(names) > 1 else None
    if not isinstance(option, syntax.NoiseAt):
        return None if mixed(model) and isinstance(option, syntax.Trust) else option
    sites = tuple(site for site in option.sites if _used(site) & set(model.nodes) <= kept)
    return replace(option, sites=sites) if sites else None


def refuse_unsupported(model: Model, parts: tuple[Part, ...]) -> None:
    """Check that a system can be computed.

    Raises: SpecError with one PS0501 for each line that cannot.
    """
    refuse_all(model.source, _unsupported(model, parts))


def _unsupported(model: Model, parts: tuple[Part, ...]) -> Iterator[Unsupported | Diagnostic]:
    for component in (one for one in model.components if one.only_if is not None):
        for line in model.requirements:
            if isinstance(line.measure, Chosen) and set(line.outputs) & _outputs_of(model, component):
                what = f"a chosen share of {component.name}, which runs on a condition: its line is about that as well"
                yield line.span, what, "write the amount as a number"
                return
    for part in parts:
        trusted = {name: model.trust.of(name) for name in part.outputs}
        if len(set(trusted.values())) > 1:
            words = " and ".join(f"{name} (`trust {one.name}`)" for name, one in trusted.items())
            hint = "give each a term of the loss, and lines of accuracy, of its own"
            yield model.nodes[part.outputs[0]].span, f"together what is under several trusts, {words},", hint
            return
    for line in model.requirements:
        seen = set(model.exposed(line))
        for part in parts:
            if part.model.trust.public and seen & set(part.outputs) and not seen >= set(part.outputs):
                yield (
                    line.span,
                    "a line about only some of what is seen together",
                    f"name {listing(part.outputs)} in it",
                )
    for span in model.family_spans:
        yield span, "noise families of outputs of several kinds", "leave the line out: each part takes the best"
    shares = chosen_shares(model)
    for choice in model.choices:
        if choice.name not in shares.values():
            hint = f"give {choice.name} a value under `parameters:`; privspec sweep SPEC --over compares many"
            yield choice.span, f"a value for {choice.name} in a spec whose outputs are of several kinds", hint
    for number, name in shares.items():
        line, domain, hint = model.requirements[number], model.nodes[name].domain, f"as in choose {name} in [0, inf)"
        if not isinstance(domain, Interval) or (domain.low_open and domain.low) or (domain.high_open and domain.high):
            yield model.nodes[name].span, f"the share of a line from {domain and domain.describe()}", hint
        kind, scale = share_of(model, number)
        if list(shares.values()).count(name) > 1 or scale <= 0:
            own = f"write {name}, or a multiple such as 2 * {name}, in one line"
            yield line.span, f"a share {name} that stands in several lines, or not as itself or a multiple", own
        written = model.requirements[number].measure
        if isinstance(written, Chosen) and any(name in names_used(one) for one in written.amounts_as_written[1:]):
            hint = f"write ({name}, 1e-6)-{APPROXIMATE.word}"
            yield line.span, f"a share in which {name} is not the first amount alone", hint
        if not kind.shared:
            yield line.span, f"a share in {kind.name}", f"choose one of {SHARED}"
    for term in _terms(model.loss):
        if not _outputs(model, term):
            yield term.span, "a loss with a term that is about no output", "leave the term out"
    covered = {name for part in parts for name in part.outputs}
    yield from _runs(model, parts)
    for number, line in enumerate(model.requirements):
        sharing = [part for part in parts if number in part.lines]
        if sum(part.times for part in sharing) > 1 and not (
            line.measure.name == line.measure.of.name and line.measure.of.shared
        ):
            yield line.span, f"{line.measure.name} shared by outputs of several kinds", f"choose one of {SHARED}"
        if sum(part.times for part in sharing) > 1 and isinstance(line.neighbours, GivenTheModel):
            hint = "what several outputs tell given the model is no sum: give each a line, or protect everything"
            yield line.span, "a line given the model that several outputs or runs share", hint
        for part in sharing:
            inside = part.model.requirements[part.lines.index(number)]
            if inside.neighbours.describe() != line.neighbours.describe():
                yield (
                    line.span,
                    "a unit that differs between the outputs of this line",
                    "name it: replacing one person",
                )
    assert covered == {node.name for node in model.outputs}


def _runs(model: Model, parts: tuple[Part, ...]) -> Iterator[Unsupported | Diagnostic]:
    """What is wrong with parts that are drawn several times, or on a condition."""
    for component in (one for one in model.components if not one.plain):
        outputs, condition = _outputs_of(model, component), component.only_if
        if not outputs or not any(set(part.outputs) == outputs for part in parts):
            said = f"{component.name} apart: other outputs share a term or a line of accuracy with it"
            yield component.span, said, f"give the outputs of {component.name} terms and lines of their own"
        for fair in (one for one in model.spec.fairness if _outputs(model, one) & outputs):
            what = f"fairness of {component.name}, which runs several times or on a condition"
            yield fair.span, what, f"leave the line out, or run {component.name} once"
        for after in (one for one in model.computed if set(one.sources) & outputs):
            what = f"{after.name} from a part that runs several times or on a condition"
            yield component.span, what, "leave it out: whoever has the release computes it for free"
        if condition is None:
            continue
        first = next((part for part in parts if condition in part.outputs), None)
        if first is None or first.times > 1 or first.only_if is not None:
            what = f"a condition that is itself drawn several times or on a condition ({condition})"
            yield component.span, what, "take an output that is always drawn, once"
            continue
        shown = {node.name for node in first.model.inputs}
        for line in model.requirements:
            if set(line.outputs) & outputs and set(line.wrt) & shown and condition not in line.outputs:
                message = f"whether {component.name} runs shows what {condition} is, so a line about it must name both"
                hint = f"add {condition} to the outputs of this line"
                yield Diagnostic.at(model.source, line.span, "PS0425", message, help=hint)


def share(line: syntax.Requirement, measure: str, amounts: tuple[Fraction, ...]) -> syntax.Requirement:
    """A line of privacy with another measure, by its word, and exact amounts."""
    figures = tuple(syntax.Number(value, span=line.amount.span) for value in amounts)
    return replace(line, amount=replace(line.amount, items=figures), measure=measure)
