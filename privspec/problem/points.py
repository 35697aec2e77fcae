"""Reports of real points under privacy by distance, in numbers: where a point lies, and what an error costs.

What such a line promises holds for every two points of the domain, by how far apart they are (Chatzikokolakis, Andres,
Bordenabe & Palamidessi 2013). noise/notes/real-points.md has the mechanism, the bound and their proofs.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from privspec.core.records import dataclass
from privspec.kernel.measures import BY_DISTANCE, PURE_MEASURES
from privspec.kernel.points import Accuracy, Error, PointBlock
from privspec.language import syntax
from privspec.language.spelling import spell
from privspec.language.walk import names_used
from privspec.model.domains import Ball, Domain, Interval, Real, is_numeric
from privspec.model.graph import GraphNode, Model, once
from privspec.model.measures import Chosen, MeasureAt, Personalised
from privspec.model.reports import Failure, Unsupported
from privspec.model.requirements import Requirement
from privspec.model.values import show
from privspec.model.worlds import finite
from privspec.problem.refusals import PURE_NAMES, besides, other_families, other_unit, reading, too_weak, without_loss
from privspec.problem.terms import Term, measured, public_number, terms

NORM_OF = {"euclidean": "l2", "manhattan": "l1", "chebyshev": "linf"}
"""The norm of a distance between points."""
WORDS = {"l1": "the sum of the absolute errors", "l2": "the length of the error", "linf": "the largest absolute error"}
FAMILIES = {"knorm": ("l1", "l2", "linf"), "laplace": ("l1",)}
"""The norms of the noise that a spec may ask for by the name of its family."""
LARGEST_EPSILON = 250
LARGEST_SIZE = 64
"""Numbers of one point."""
LARGEST_COUNT = 1_000_000
"""Points in one release."""


def error_words(error: Error) -> str:
    """What is averaged."""
    times = f"{show(error.weight)} times " if error.weight != 1 else ""
    return times + ("the square of " * (error.power == 2)) + WORDS[error.norm]


def words(block: PointBlock) -> tuple[str, ...]:
    """The point, its report, and the loss."""
    size = f"a point of {block.size} numbers" if block.size > 1 else "a number"
    whose = f"{block.source} is {size}" if block.party is None else f"{block.source} is {size} for each {block.party}"
    ends = (("at least", block.least), ("at most", block.most))
    moved = " and ".join(f"{words} {show(end)}" for words, end in ends if end is not None)
    moved = f", moved to what is {moved}" if moved else ""
    return (
        f"{whose}, {limits(block)}; {block.output} is a report of it, the point with noise{moved}.",
        f"The loss is the mean of {error_words(block.error)}: `{block.expression}`.",
        *(f"Line {one.line}: {one.text}." for one in block.accuracy),
    )


def limits(block: PointBlock) -> str:
    """Where a point lies, in words."""
    if block.radius is not None:
        sizes = " in the sum of absolute numbers" if block.ball == "l1" else ""
        return f"at most {show(block.radius)} from the origin{sizes}"
    low, high = (None if one is None else show(one) for one in (block.lower, block.upper))
    each = "each " if block.size > 1 else ""
    if low is not None and high is not None:
        return f"{each}between {low} and {high}"
    if low is None and high is None:
        return "anywhere"
    return f"{each}at least {low}" if low is not None else f"{each}at most {high}"


def reads(model: Model) -> bool:
    """Whether a line asks for privacy by the distance of points, in a spec that is no table and has no parts."""
    return any(line.measure.of.by_distance for line in model.requirements) and not finite(model)


@once
@reading(lambda model: _unsupported(model))
def block_of(model: Model) -> PointBlock:
    """The point of a spec, and what an error costs.

    Raises: SpecError PS05xx with every construct that cannot be computed.
    """
    (source,), (output,) = model.inputs, model.outputs
    reader = ErrorReader(model, source, output)
    if model.loss is None:
        raise without_loss(model)
    error, kind = reader.read(model.loss)
    base = model.block(source.name).base_domain
    ball, radius = (f"l{base.norm}", base.radius) if isinstance(base, Ball) else (None, None)
    low, high = base.bounds if radius is None else (None, None)
    least, most = output.bounds
    reach = base.bounds
    if not _holds(least, reach[0], below=True) or not _holds(most, reach[1], below=False):
        message = f"{output.name} cannot be every point of {source.name}"
        raise Failure("PS0501", output.span, message, help=f"write `output {output.name}`, or a wider domain")
    if (low is not None and low == high) or radius == 0:
        message = f"{source.name} has one value only: there is nothing to report"
        raise Failure("PS0501", source.span, message, help="give it a wider domain")
    return PointBlock(
        source=source.name,
        output=output.name,
        party=source.index,
        count=reader.count,
        size=reader.size,
        shape=output.type.shape,
        lower=low,
        upper=high,
        radius=radius,
        ball=ball,
        least=least,
        most=most,
        error=error,
        expression=spell(model.loss),
        kind=kind,
        accuracy=tuple(_accuracy(model, reader)),
    )


def _holds(end: Fraction | None, reach: Fraction | None, *, below: bool) -> bool:
    """Whether an end of the report lies beyond one of the point."""
    return end is None or (reach is not None and (end <= reach if below else end >= reach))


def _accuracy(model: Model, reader: ErrorReader) -> Iterator[Accuracy]:
    for one in model.accuracy:
        asked, often = one.target, one.target.probability
        chance = None if often is None else public_number(often, model)
        if chance is not None and not 0 < chance < 1:
            raise Failure("PS0406", asked.span, "a probability between 0 and 1 is expected here")
        error = reader.read(asked.left)[0] if chance is None else Error(reader.size_of(asked.left), 1, Fraction(1))
        yield Accuracy(error, public_number(asked.right, model), one.line, one.text, chance)


@dataclass(frozen=True, slots=True)
class ErrorReader:
    """Reads errors of the report: norms of its difference from the point."""

    model: Model
    source: GraphNode
    output: GraphNode

    @property
    def count(self) -> int:
        return self.source.type.shape[0] if self.source.index else 1

    @property
    def size(self) -> int:
        return self.source.type.size // self.count

    def read(self, expr: syntax.Expr) -> tuple[Error, str]:
        """A weighted mean error of one point, and whether it is the "expected" or the "worst".

        Raises: Failure PS0502 for anything else.
        """
        found = list(terms(expr, self.model))
        match found:
            case [Term(weight=weight, operator=operator, body=body)] if weight > 0:
                norm, power, times = self._body(body)
                return Error(norm, power, weight * times), "worst" if operator == "worst" else "expected"
        raise self._refuse(expr)

    def size_of(self, expr: syntax.Expr) -> str:
        """The norm of an error that is not averaged.

        Raises: Failure PS0502.
        """
        norm, power, _ = self._body(expr)
        if power != 1 or self.count > 1:
            raise self._refuse(expr)
        return norm

    def _body(self, body: syntax.Expr) -> tuple[str, int, Fraction]:
        """Norm, power and weight."""
        found, weight, running = measured(body), Fraction(1), None
        if found.function is not None:
            party = self.model.parties.get(self.source.index or "")
            if found.each is None or found.each.domain is not None or party is None:
                raise self._refuse(body)
            weight, running = Fraction(self.count if found.function == "sum" else 1), found.each.variable
        together = self.count if running is None else 1
        plain = self.source.type.size == self.count and (running is not None or not self.output.type.shape)
        if self._is_error(found.error, running):
            if found.squared and (found.norm in ("2", "abs") or (found.norm is None and plain)):
                return "l2", 2, weight * together
            if not found.squared and found.norm == "abs":
                return "l2", 1, weight
            # a length of all points together is no mean of theirs
            if not found.squared and found.norm is not None and (found.norm == "1" or together == 1):
                return f"l{found.norm}", 1, weight * together
        raise self._refuse(body)

    def _is_error(self, expr: syntax.Expr, running: str | None) -> bool:
        match expr:
            case syntax.Binary(op="-", left=left, right=right):
                names = {self.named(left, running), self.named(right, running)}
                return names == {self.source.name, self.output.name}
        return False

    def named(self, expr: syntax.Expr, running: str | None) -> str | None:
        """The input or output that an expression is, through values that are just another name for it."""
        match expr:
            case syntax.Index(base=base, indices=(syntax.Name(id=letter),)) if letter == running:
                return self.named(base, None)
            case syntax.Name(id=name) if running is None and name in self.model.nodes:
                node = self.model.nodes[name]
                same = node.kind is syntax.VariableKind.INTERMEDIATE and node.definition is not None
                return self.named(node.definition, self._letter(node)) if same and node.definition else name
        return None

    def _letter(self, node: GraphNode) -> str | None:
        """The letter under which a value of each party is defined."""
        match node.definition:
            case syntax.Index(indices=(syntax.Name(id=letter),)) if node.index is not None:
                return letter
        return None

    def _refuse(self, expr: syntax.Expr) -> Failure:
        error = f"{self.output.name} - {self.source.name}"
        message = f"solve takes the size of one error, {error}, as the loss of a report of a point"
        hint = f"E[ ||{error}|| ], E[ ||{error}||^2 ], or the same with ||.||_1 or ||.||_inf"
        if self.count > 1:
            p = self.source.index
            hint = f"E[ mean(||{self.output.name}[{p}] - {self.source.name}[{p}]|| for {p}) ]"
        return Failure("PS0502", expr.span, message, help=hint)


# --- what cannot be computed yet ------------------------------------------------------------------


def _unsupported(model: Model) -> Iterator[Unsupported]:
    """Constructs that are not known here: where, what, and what to write in their place."""
    lines = [line for line in model.requirements if line.measure.of.by_distance]
    first = lines[0].span
    yield from besides(model, "a report of a real point", None)
    if len(model.inputs) != 1 or len(model.outputs) != 1:
        yield first, f"{METRIC} of more than one input or output", "write a spec for each point, with its report"
        return
    (source,), (output,) = model.inputs, model.outputs
    if not is_numeric(model.block(source.name).base_domain):
        yield source.span, f"{METRIC} with {source.name}, {source.type.describe()}", None
        return
    if source.type.shape != output.type.shape or source.index != output.index or not _about(model, source, output):
        hint = f"release a report of {source.name} itself: whoever has it can compute the rest for free"
        yield output.span, f"{METRIC} of {output.name}, which is no report of {source.name}", hint
        return
    if output.domain is not None and not _box(output.domain):
        hint = f"write `output {output.name}`; whoever has it can round it for free"
        yield output.span, f"a report of a point in {output.domain.describe()}", hint
    size = source.type.size // (source.type.shape[0] if source.index else 1)
    if size > LARGEST_SIZE or source.type.size // size > LARGEST_COUNT:
        limits = f"up to {LARGEST_SIZE} numbers per point, and {LARGEST_COUNT:,} points"
        yield source.span, f"a report of {source.name}, {source.type.describe()}: it takes {limits}", None
    for line in model.requirements:
        yield from _line(line, source)
    for target in model.accuracy:
        if target.target.variable is not None:
            hint = f"write E[ ||{output.name} - {source.name}|| ] <= 4"
            yield target.target.span, "such a line of accuracy of a report of a point", hint
    yield from other_families(model, FAMILIES, f" for {METRIC} of real values")
    if model.noise_at is not None and set(model.noise_at) - {source.name, output.name}:
        yield model.noise_at_spans[0], "such a place for noise", f"write `noise at {output.name}`, or leave it out"


def _line(line: Requirement, source: GraphNode) -> Iterator[Unsupported]:
    """What a line asks for that is not known here."""
    measure = line.measure
    yield from other_unit(line, source, f"{METRIC} of a real point")
    if isinstance(measure, Personalised):
        yield line.span, f"{METRIC} of real values with a figure for each party", "give all parties the strictest one"
    elif isinstance(measure, MeasureAt) and measure.of.by_distance:
        if measure.matrix is not None or measure.metric not in NORM_OF:
            words = "distance euclidean, distance manhattan or distance chebyshev"
            yield line.span, f"the {measure.metric} distance of real points", f"write {words}"
        if measure.of is not BY_DISTANCE:
            yield line.span, f"{METRIC} of real values with a delta", "leave delta out: the noise needs none"
    elif measure.common not in PURE_MEASURES:
        yield line.span, f"{measure.name} beside {METRIC} of real values", f"write {PURE_NAMES}"
    epsilon = None if isinstance(measure, Chosen | Personalised) else measure.amounts.get("epsilon")
    if epsilon is not None and not measure.of.by_distance and epsilon > LARGEST_EPSILON:
        yield too_weak(line, measure, LARGEST_EPSILON)


METRIC = BY_DISTANCE.word


def _about(model: Model, source: GraphNode, output: GraphNode) -> bool:
    """Whether the loss compares the output with nothing but the input, under whatever name."""
    target = model.targets.get(output.name)
    reader = ErrorReader(model, source, output)
    if target is None:
        return True
    named = {name for name in names_used(target) if name in model.nodes}
    return all(reader.named(syntax.Name(name, span=target.span), None) == source.name for name in named)


def _box(domain: Domain) -> bool:
    """Whether numbers lie between two ends, or anywhere."""
    return isinstance(domain.innermost, Interval | Real) and domain.innermost.size is None
