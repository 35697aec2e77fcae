"""What `check` accepts and `solve` cannot compute yet, all of it at once, each under its line.

First what several readings of specs refuse alike, then what the reading of linear answers refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import wraps
from math import prod
from typing import TYPE_CHECKING, NoReturn, TypeVar

from privspec.core.diagnostics import Diagnostic, Label, SpecError
from privspec.core.spans import Span
from privspec.kernel.measures import APPROXIMATE, MEASURES, PURE_MEASURES, TOTAL_VARIATION, ZERO_CONCENTRATED
from privspec.kernel.trust import CURATOR, NOBODY
from privspec.language.spelling import spell
from privspec.language.syntax import Absolute, Norm
from privspec.language.walk import reached
from privspec.model.definitions import compared
from privspec.model.domains import Interval, L2Ball, Real, Tables
from privspec.model.graph import GraphNode, Model
from privspec.model.measures import AskedMeasure, Chosen, Personalised
from privspec.model.neighbours import ReplacingEverything, ReplacingVoter, plural
from privspec.model.reports import NO_AMOUNT, Failure, Unsupported, listing, refuse_all
from privspec.model.requirements import IndependenceRequirement, Requirement, Trust
from privspec.model.scope import TRUST_WORDS
from privspec.model.values import show

if TYPE_CHECKING:
    from privspec.problem.linear_affine import Layout

T = TypeVar("T")
PURE_NAMES = listing([measure.name for measure in PURE_MEASURES], "or")
"""Measures of all pairs that may stand beside a distance."""


def reading(
    unsupported: Callable[[Model], Iterable[Unsupported]] = lambda _: (),
) -> Callable[[Callable[[Model], T]], Callable[[Model], T]]:
    """A reading of specs with all that stands in its way told at once.

    It raises SpecError: with one PS0501 for each place that is unsupported, or with what the reading failed in.
    """

    def of(read: Callable[[Model], T]) -> Callable[[Model], T]:
        @wraps(read)
        def told(model: Model) -> T:
            refuse_all(model.source, unsupported(model))
            try:
                return read(model)
            except Failure as failure:
                raise failure.of_spec(model.source) from failure

        return told

    return of


def besides(model: Model, what: str, hint: str | None) -> Iterator[Unsupported]:
    """Constructs that stand beside no report of one party's own."""
    for choice in model.choices:
        valued = hint or f"give {choice.name} a value under `parameters:`"
        yield choice.span, f"a value for {choice.name} beside {what}", valued
    for constraint in model.constraints:
        yield constraint.relation.span, f"conditions on {what}", hint
    for claim in model.asserted:
        yield claim.claim.span, "with functions that it cannot see into", "release what they give by another spec"
    for fair in model.fairness:
        yield fair.span, f"fairness requirements of {what}", hint
    if not model.trust.drawn_whole:
        yield model.trust_span, f"`trust {model.trust.name}` of {what}", f"each is drawn by itself: {NOBODY.written}"
    yield from without_amounts(model)


def without_amounts(model: Model) -> Iterator[Unsupported]:
    """Lines of privacy whose amounts have no value: what promises something is never left out."""
    read = {requirement.line for requirement in model.requirements}
    for written in model.spec.privacy:
        if model.line(written) not in read:
            yield written.span, "this requirement: its amounts have no value", NO_AMOUNT


def without_loss(model: Model) -> Failure:
    """That a spec says of no error what it costs."""
    return Failure("PS0504", model.spec.span, "there is no loss to minimise", help="add a loss: section")


def other_families(model: Model, known: Collection[str], where: str, instead: str = "") -> Iterator[Unsupported]:
    """Families of noise that are asked for and not known."""
    for name, span in zip(model.families, model.family_spans, strict=True):
        if name not in known:
            yield span, f"the noise family {name}{where}", instead or f"choose one of {', '.join(known)}"


def other_unit(line: Requirement, source: GraphNode, what: str) -> Iterator[Unsupported]:
    """A line about another unit than all that one report is about."""
    unit = line.neighbours
    whole = isinstance(unit, ReplacingVoter) if source.index else isinstance(unit, ReplacingEverything)
    if not whole or unit.group > 1 or unit.adding:
        other = f"replacing one {source.index}" if source.index else "replacing everything"
        yield line.span, f"{what}, {unit.describe()},", f"write `{other}`, or leave the unit out"


def too_weak(line: Requirement, measure: AskedMeasure, largest: int) -> Unsupported:
    """A line that asks for next to nothing."""
    text = f"a requirement as weak as {measure.describe()}: it protects nothing"
    return line.span, text, f"ask for an epsilon of at most {largest}"


# --- linear answers -------------------------------------------------------------------------------

LARGEST_EPSILON = 250
"""Pure epsilon up to which e^epsilon and what it multiplies are doubles."""
LARGEST_MU = 1000
"""Gaussian budgets beyond this leave less noise than the grid of the inputs."""
LAID_OUT = 2**15
"""Numbers of an input that count one by one, at most: what is solved is square in them."""
LARGEST_MAP = 2**27
"""Coefficients of one value as a function of the inputs: a gigabyte of doubles."""


def refuse_unsupported(model: Model) -> None:
    """Check that the compiler knows every construct of the spec.

    Raises: SpecError with one PS0501 for each that it does not.
    """
    refuse_all(model.source, _unsupported(model))


def refuse_too_large(model: Model, layout: Layout) -> None:
    """Check that every value, as a function of the inputs, fits into memory.

    Raises: SpecError PS0512 with one diagnostic for each value that does not.
    """
    secret = f" for {layout.width:,} secret numbers" if layout.width > 1 else ""
    refuse_all(
        model.source,
        (
            Diagnostic.at(
                model.source,
                node.span,
                "PS0512",
                f"{node.name} has {size:,} entries{secret}, which is too much to compute with",
                label=f"more than {LARGEST_MAP:,} coefficients",
                help="use fewer cells, a coarser grid or fewer answers",
            )
            for node in (*model.intermediates, *model.outputs)
            # besides the inputs a value may depend on itself, before it is known what of the inputs is alike
            if (size := prod(node.type.shape)) * (layout.width + 1) > LARGEST_MAP
        ),
    )


def refuse_laid_out(model: Model, layout: Layout) -> None:
    """Check that inputs whose numbers count one by one fit into memory.

    Raises: SpecError PS0512.
    """
    wide = [share for share in layout.shares if share.partition is None and share.width > LAID_OUT]
    wide = [share for share in wide if model.block(share.name).layout == "entries"]
    refuse_all(
        model.source,
        (
            Diagnostic.at(
                model.source,
                model.block(share.name).span,
                "PS0512",
                f"{share.name} has {share.width:,} numbers that count one by one, which is too much to compute with",
                label=f"more than {LAID_OUT:,} numbers",
                help="ask for sums and means of them, or for fewer numbers"
                + (
                    f"; where each party adds its own noise, hide what one of them holds: `replacing one {of}`"
                    if model.trust.alone and (of := model.block(share.name).index)
                    else ""
                ),
            )
            for share in wide
        ),
    )


FINITE = "they are computed where inputs and outputs have finitely many values, as in `output O in 0..10`"


def _unsupported(model: Model) -> Iterator[Unsupported | Diagnostic]:
    for choice in model.choices:
        reason = "nothing can be left to `choose`"
        if model.components:
            reason = "where there are components, what is chosen is how much of a line one of them spends"
        yield (
            choice.span,
            f"a value for {choice.name} here: {reason}",
            f"give {choice.name} a value under `parameters:`; privspec sweep SPEC --over compares many",
        )
    for node in model.outputs:
        other = _output_within(model, node)
        if other is not None:
            yield (
                node.span,
                f"an output that is computed from another output ({node.name} from {other})",
                f"release {other} alone: whoever has it can compute {node.name}, which costs no privacy",
            )
        if node.domain is not None and not isinstance(node.domain.innermost, Real):
            yield (
                node.span,
                f"outputs that stay within a domain ({node.name} in {node.domain.describe()})",
                _grids(model, node)
                or f"write `output {node.name}`: noise is added to it; whoever has it can round or clip it for free",
            )
    for constraint in model.constraints:
        yield constraint.relation.span, "conditions on the mechanism", FINITE
    for claim in model.asserted:
        if claim.subject not in model.through.values():
            hint = f"compare an output with {claim.subject} itself, so that noise is added to it"
            yield claim.claim.span, "with a function that it cannot see into", hint
    for line in model.fairness:
        yield (line.span, *_unfair(model, line))
    for target in model.accuracy:
        asked = target.target
        largest = isinstance(asked.left, Norm) and asked.left.order == "inf"
        if asked.probability is not None and not isinstance(asked.left, Absolute) and not largest:
            hint = "write |O[j] - y[j]| <= 4 with probability 0.95, or of all at once ||O - y||_inf <= 4"
            yield asked.span, "a probability of anything but the size of an error, or of the largest one", hint
    for requirement in model.requirements:
        relation = requirement.neighbours
        if (
            relation.group > 1
            and not relation.by_id
            and relation.unit in ("entry", "record")
            and len(requirement.wrt) > 1
        ):
            yield (
                requirement.span,
                f"with {plural(relation.unit)} of several inputs that change at once",
                f"a group may lie in more than one of {', '.join(requirement.wrt)}: write `replacing everything`, or "
                "hold these inputs as one",
            )
        yield from _measure(requirement, model)
    yield from _whole_tables(model)
    yield from without_amounts(model)
    if model.trust.shared:
        yield from _secure_sum(model, model.trust)
    elif model.trust.name not in TRUST_WORDS:
        yield (
            model.trust_span,
            f"`trust {model.trust.name}`",
            f"`trust {'`, `trust '.join(TRUST_WORDS)}` can be computed",
        )
    if model.families:
        from privspec.kernel.laws.law import FAMILIES  # most specs leave the noise open

        yield from other_families(model, FAMILIES, "")
    needed, counted = compared(model), model.numeric_inputs
    for node in model.inputs:
        if node.name in needed and node not in counted:
            yield node.span, f"with {node.name}, {node.type.describe()}", None


def _unfair(model: Model, line: IndependenceRequirement | Requirement) -> tuple[str, str]:
    """A line of fairness about noisy answers: what cannot be computed, and the line of privacy that says most of it."""
    word = TOTAL_VARIATION.word
    if not isinstance(line, IndependenceRequirement) or line.given is not None:
        return "fairness requirements", FINITE
    if any(line.of == name for block in model.blocks for name, _ in block.schema or ()):
        hint = f"a line of privacy limits what it says of one record: 0.1-{word}, replacing one record"
        return f"what a result says of {line.of}, which differs from record to record", hint
    if line.of not in {node.name for node in model.inputs} or line.tolerance is None:
        return "fairness requirements", FINITE
    said = f"({', '.join(line.subjects)})" if len(line.subjects) > 1 else line.subjects[0]
    asked = f"`{said} is ({spell(line.tolerance)})-{word} wrt {line.of}, replacing everything`"
    return "fairness requirements", f"under privacy, {asked} asks for it of noise that is added"


def _secure_sum(model: Model, trust: Trust) -> Iterator[Diagnostic]:
    """What a secure sum does not do yet: its parties are public, hold all data, and add noise at the sum only."""

    def at(span: Span, message: str, help_: str) -> Diagnostic:
        return Diagnostic.at(model.source, span, "PS0540", message, help=help_)

    span = model.trust_span
    indices, alone = {node.index for node in model.inputs}, len(model.inputs) == 1 and not model.asserted
    for node in model.inputs:
        if node.index is None and not (alone and node.type.shape and not isinstance(node.type.element, Tables)):
            help_ = f"write `{node.name}[party]` for parties declared under `parties:`, or `{CURATOR.written}`"
            yield at(
                node.span, f"under `trust {trust.name}` every input is held by parties, and {node.name} is not", help_
            )
    if (alone and model.inputs[0].type.shape) or None not in indices:
        size = parties_of(model)
        if trust.colluding >= size:
            message = f"if {trust.colluding} of {size} parties collude, nobody is left to add noise"
            yield at(span, message, f"fewer than {size} may collude")
    if model.noise_at is not None:
        message = f"under `trust {trust.name}` noise enters at the sum, in shares of all parties"
        yield at(model.noise_at_spans[0], message, "leave out `noise at`")
    for requirement in model.requirements:
        relation = requirement.neighbours
        tallied = any(model.block(name).tallied for name in requirement.wrt)
        if relation.adding and (tallied or relation.unit not in ("entry", "record")):
            message = f"under `trust {trust.name}` the parties are public: each adds its share of the noise"
            yield at(requirement.span, message, "write `replacing` in place of `adding or removing`")
        held = [model.block(name) for name in requirement.wrt]
        whole = [block.base_domain for block in held if relation.length(block) > 1]
        if requirement.measure.gaussian_mu_down() is None and any(isinstance(one, L2Ball) for one in whole):
            message = "noise of pure epsilon for vectors of an l2 ball has no shares"
            hint = f"ask for {APPROXIMATE.name} or {ZERO_CONCENTRATED.name}, or hold the vectors in a box"
            yield at(requirement.span, message, hint)


def parties_of(model: Model) -> int:
    """How many parties hold the inputs of a secure sum: those of all index sets, or the people of the records."""
    sizes = {node.index: node.type.shape[0] for node in model.inputs}
    return sum(sizes.values())


def _output_within(model: Model, node: GraphNode) -> str | None:
    """An output that the definition of another node refers to, through intermediates too."""
    outputs = {other.name for other in model.outputs} - {node.name}
    found = reached(sorted(model.uses(node.name)), lambda name: sorted(model.uses(name)))
    return next((name for name in found if name in outputs), None)


def _measure(requirement: Requirement, model: Model) -> Iterator[Unsupported]:
    if isinstance(requirement.measure, Personalised):
        if requirement.neighbours.group > 1:
            units = plural(requirement.neighbours.unit_name)
            text = f"with several {units} at once, each with a figure of its own"
            yield requirement.span, text, "ask for one at a time"
        # the weakest figure and the strictest say all that there is to say
        each = requirement.measure.each
        for one in dict.fromkeys((min(each, key=_weakness), max(each, key=_weakness))):
            yield from _measure(replace(requirement, measure=one), model)
        return
    measure = requirement.measure
    budget = measure.gaussian_mu_down()
    if (budget or 0) > LARGEST_MU or (budget is None and (measure.pure_epsilon or 0) > LARGEST_EPSILON):
        text = f"a requirement as weak as {measure.describe()}: it protects nothing"
        hint = f"ask for an epsilon of at most {LARGEST_EPSILON} or a mu of at most {LARGEST_MU}"
        yield requirement.span, text, hint
    # an amount that is left to choose is told where it is declared
    if measure.gaussian_mu_down() is None and measure.pure_epsilon is None and not isinstance(measure, Chosen):
        known = [one.name for one in MEASURES if not one.any_values]
        hint = f"write {listing(known, 'or')}"
        yield requirement.span, f"{measure.name} where noise is added", hint


def _grids(model: Model, node: GraphNode) -> str:
    """What makes a table of a spec whose output is finite: grids in place of intervals; nothing for other inputs."""
    intervals = [one for one in model.inputs if isinstance(one.domain, Interval)]
    if node.domain is None or node.domain.size is None or not intervals:
        return ""
    found = []
    for one in intervals:
        low, high = one.domain.bounds if one.domain is not None else (None, None)
        if low is None or high is None:
            return ""
        found.append(f"`input {one.name} in grid({show(low)}, {show(high)}, {show((high - low) / 10)})`")
    return (
        f"write {' and '.join(found)}, or a finer grid: numbers of the data move to its nearest value, and the table "
        "that is found is the best of all for them"
    )


def _whole_tables(model: Model) -> Iterator[Unsupported]:
    """A line about all that a party holds, where that has a table, or with figures for those whose records change.

    A party that holds one record of one table, and nothing else that the line names, moves that record.
    """
    tables = {node.name for node in model.inputs if node.index and isinstance(node.type.element, Tables)}
    for requirement in model.requirements:
        personal = isinstance(requirement.measure, Personalised)
        if personal and not requirement.neighbours.adding and tables & set(requirement.wrt):
            text = "with records that change in place, each with a figure of its party"
            yield requirement.span, text, "write `adding or removing one record`"
        several = {name for name in tables if not model.block(name).one_record}
        together = several if len(requirement.wrt) == 1 else tables
        if requirement.neighbours.unit not in ("entry", "record") and together & set(requirement.wrt):
            text = f"with `{requirement.neighbours.describe()}` of a whole table"
            hint = "protect its records: `adding or removing one record`, or one person with several"
            yield requirement.span, text, hint


def _weakness(measure: AskedMeasure) -> tuple[Fraction, ...]:
    return tuple(measure.amounts.values())


def refuse_missing(model: Model) -> NoReturn:
    """Say that no mechanism known fits the requirements as the options stand.

    Raises: SpecError PS0501.
    """
    text = "solve knows no mechanism for these requirements"
    hint = f"ask for another measure, such as {APPROXIMATE.name}"
    if model.families or model.noise_at is not None:
        text, hint = f"{text} and options", f"leave `noise family` and `noise at` out, or {hint}"
    for own in model.inputs:
        block = model.block(own.name)
        columns = [one for one in block.schema or () if one[0] != own.index]
        if not (own.index and model.trust.alone and block.one_record):
            continue
        text = f"solve finds noise that each {own.index} adds to counts for few of them only"
        if all(one.size for _, one in columns):
            hint = f"write E[ ||O - histogram({own.name})||^2 ], without an index: the best reports are found"
    spans = model.family_spans or tuple(r.span for r in model.requirements)
    labels = tuple(Label(span) for span in spans)
    raise SpecError(Diagnostic("PS0501", text, labels, help=hint, source=model.source))
