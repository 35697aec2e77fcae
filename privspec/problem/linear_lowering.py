"""From the graph to a linear map: what is released, of what, and what an error costs; in doubles.

The forms of `problem.linear` hold the exact numbers that these doubles stand for; the compiler solves with the doubles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import SpecError
from privspec.core.records import dataclass, replace
from privspec.core.spans import Span
from privspec.core.sparse import Array, Matrix, SparseMatrix, beside, sparse_of
from privspec.kernel.core.linear import ExchangeableUnits
from privspec.kernel.worth.traces import variance_of_size_up, variance_up
from privspec.language import syntax
from privspec.language.spelling import spell
from privspec.model.evaluate import evaluate, places
from privspec.model.graph import Model, once_at_any_amount
from privspec.model.reports import Failure
from privspec.model.requirements import AccuracyTarget
from privspec.model.targets import environment
from privspec.model.values import Value
from privspec.problem.linear_affine import (
    INPUTS,
    Affine,
    Layout,
    PerUnit,
    SplitError,
    Squares,
    UnlikeError,
    Worst,
    constant_symbol,
    noise_symbol,
    output_symbol,
    stack,
)
from privspec.problem.linear_interpreter import Cells, Interpreter
from privspec.problem.linear_vectors import scalars_of
from privspec.problem.refusals import refuse_laid_out, refuse_too_large, refuse_unsupported, without_loss
from privspec.problem.terms import public_number

CONSISTENT = 1e-9
"""Relative size below which two ways to say what an output stands for count as the same."""
DENSE_LIMIT = 4_000_000
"""Entries of a loss matrix that is solved densely."""


@dataclass(frozen=True, slots=True)
class OutputSlice:
    """Where an output stands in the joint vector of all outputs."""

    name: str
    start: int
    stop: int
    shape: tuple[int, ...]


@dataclass(frozen=True, eq=False, slots=True)
class OpenConstant:
    """A public constant that is given when the plan is run: `map` (m, size) of its entries is added to the outputs."""

    name: str
    shape: tuple[int, ...]
    map: Array


@dataclass(frozen=True, eq=False, slots=True)
class Errors:
    """Error terms as rows (q, m) over the noise of the outputs, and the weights (q,) of their squares, or `sizes`."""

    rows: SparseMatrix
    weights: Array
    sizes: bool = False

    @property
    def scaled(self) -> SparseMatrix:
        """Rows of which the squares, or the sizes, are what is measured: added up, or the largest."""
        factors = self.weights if self.sizes else np.sqrt(self.weights)
        found: SparseMatrix = SparseMatrix.diagonal(factors) @ self.rows
        return found


@dataclass(frozen=True, eq=False, slots=True)
class Limit:
    """One instance of an accuracy line: the expected sum of these squares is at most `bound`.

    With a `probability` the one error is at most `bound` in size.
    """

    errors: Errors
    bound: Fraction
    line: int
    text: str
    span: Span
    probability: Fraction | None = None

    @property
    def of_squares(self) -> bool:
        """Whether it bounds expected squares, and not a size or a probability."""
        return self.probability is None and not self.errors.sizes

    @property
    def square(self) -> Fraction:
        """What the expected sum of squares of normal noise may be."""
        if self.errors.sizes:
            return variance_of_size_up(self.bound)
        return self.bound if self.probability is None else variance_up(self.bound, self.probability)


@dataclass(frozen=True, eq=False, slots=True)
class Lowered:
    """Unbiased outputs: o = target @ u + offset + maps of `constants` + noise.

    target (m, n), offset (m,); the loss is the expected sum of the squares of `errors`, or the largest of them if
    `worst`. `aimed` (q, m): what outputs are compared with, rows of the loss or, without one, of the accuracy lines.
    `candidates`: names of the nodes where noise may enter. u adds up units that count alike, by `layout`.
    """

    outputs: tuple[OutputSlice, ...]
    target: Array
    offset: Array
    errors: Errors
    aimed: SparseMatrix
    worst: bool
    candidates: tuple[str, ...]
    limits: tuple[Limit, ...]
    constants: tuple[OpenConstant, ...]
    layout: Layout


@once_at_any_amount
def lowered(model: Model) -> Lowered:
    """What a spec releases and what an error costs, in numbers.

    Raises: SpecError PS05xx with every construct that cannot be computed yet, PS02xx for a value that has none.
    """
    try:
        alike = scalars_of(model)
    except Failure as failure:
        raise_failure(model, failure)
    if alike is not None:
        found = lowered(alike.model)
        # a weight is that of the mean of a vector's squares
        errors = replace(found.errors, weights=found.errors.weights * alike.dimension)
        return replace(found, errors=errors, layout=replace(found.layout, dimension=alike.dimension))
    layout = Layout.of(model)
    while True:
        try:
            refuse_too_large(model, layout)
            refuse_laid_out(model, layout)
            return _lowered(model, layout)
        except SplitError as error:
            layout = layout.finer(error.wanted)
        except UnlikeError as error:
            layout = layout.laid_out(error.names)
        except Failure as failure:
            raise_failure(model, failure)


def raise_failure(model: Model, failure: Failure) -> NoReturn:
    """Raises: SpecError, where a value of the spec could not be computed: PS0501 for one that is not public."""
    node = model.nodes.get(model.source.slice(failure.span))
    if failure.code == "PS0262" or (failure.code == "PS0261" and node is not None and node not in model.constants):
        text = f"solve takes a public number here: {failure.message}"
        raise SpecError.at(model.source, failure.span, "PS0501", text, help=failure.help) from failure
    raise failure.of_spec(model.source) from failure


def _lowered(model: Model, layout: Layout) -> Lowered:
    refuse_unsupported(model)
    return lowered_by(model, layout, Interpreter, layout.width)


def lowered_by(model: Model, layout: Layout, reader: type[Interpreter], width: int) -> Lowered:
    """The same with another reader of the inputs, whose base vector has so many numbers.

    Raises: SpecError PS05xx.
    """
    if model.loss is None and not model.accuracy:
        raise without_loss(model)
    outputs = _outputs(model)
    quiet = reader(model, layout)
    rows, weights, worst, sizes = _aims(model, quiet)
    error_map = _output_matrix(rows, outputs)
    free = [o for o in outputs if model.nodes[o.name].definition is None]
    inverse = _Solver(model, error_map, free)
    computed = _computed(model, outputs, reader(model, layout, computed_outputs=True))
    opened = [node for node in model.constants if node.definition is None and node.name not in model.values]
    widths = {constant_symbol(node.name): int(np.prod(node.type.shape, dtype=int)) for node in opened}
    aims, offset = inverse.targets(rows, computed, {INPUTS: width, **widths})
    if computed or not inverse.paired:
        _check_consistent(model, error_map, rows, aims, offset)
    return Lowered(
        outputs=tuple(outputs),
        target=aims[INPUTS],
        offset=offset,
        errors=Errors(error_map, weights, sizes) if model.loss is not None else Errors(error_map[:0], weights[:0]),
        aimed=error_map,
        worst=worst,
        candidates=_sites_of(model),
        limits=tuple(_limits(model, quiet, outputs, aims, offset)),
        constants=tuple(
            OpenConstant(node.name, node.type.shape, aims[constant_symbol(node.name)])
            for node in opened
            if aims[constant_symbol(node.name)].any()
        ),
        layout=layout,
    )


@dataclass(frozen=True, eq=False, slots=True)
class Reached:
    """How unit noise at a node reaches the outputs (m, size of the node); all zero where it does not.

    `alike`: where a node has a value for each of many units, columns stand for the units of a class.
    """

    map: Array
    alike: ExchangeableUnits | None = None

    @property
    def of_numbers(self) -> Array:
        """The same for noise of one size on all numbers of a class, as one number."""
        return self.map if self.alike is None else self.map * np.sqrt(np.array(self.alike.numbers))


def site_map(model: Model, system: Lowered, name: str) -> Reached:
    """How unit noise at a node reaches the outputs."""
    scalars, m = scalars_of(model), len(system.target)
    if scalars is not None:
        return site_map(scalars.model, system, name)
    out = next((o for o in system.outputs if o.name == name), None)
    if out is not None:
        return Reached(np.eye(m)[:, out.start : out.stop])
    noisy = Interpreter(model, system.layout, sites=frozenset((name,)))
    rows, *_ = _aims(model, noisy)
    try:
        value = noisy.node(name, model.nodes[name].span)
    except (SplitError, UnlikeError):
        # nothing that is released is computed from it, or its units would have been told apart
        return Reached(np.zeros((m, 1)))
    inner = value.counts if isinstance(value, Cells) else value.each if isinstance(value, PerUnit) else value
    width = inner.size if isinstance(inner, Affine) else 0
    symbol = noise_symbol(name)
    free = [o for o in system.outputs if model.nodes[o.name].definition is None]
    inverse = _Solver(model, _output_matrix(rows, system.outputs), free)
    effect = inverse.solve(-rows.dense(symbol, width))
    computed = Interpreter(model, system.layout, sites=frozenset((name,)), computed_outputs=True)
    for out, moved in _computed(model, system.outputs, computed):
        effect[out.start : out.stop] = moved.dense(symbol, width)
    alike = value.partition.alike(width // value.partition.number) if isinstance(value, PerUnit) else None
    return Reached(effect, alike)


def noisy_site_map(model: Model, system: Lowered, name: str) -> Reached:
    """The same for a node that the spec names under `noise at`.

    Raises: SpecError PS0505 if noise there reaches no output, PS0506 if it reaches one and costs nothing.
    """
    found = site_map(model, system, name)
    _check_reaches(model, system, name, found.map)
    return found


def _check_reaches(model: Model, system: Lowered, name: str, effect: Array) -> None:
    node = model.nodes[name]
    reached = effect.any(axis=0)
    if model.chosen and not reached.any():
        return  # what was chosen may leave a place out
    if not reached.any():
        text = f"noise at {node.name} never reaches an output: nothing that the loss compares is computed from it"
        hint = f"name a node between the inputs and the outputs under `noise at`, not {node.name}"
        raise SpecError.at(model.source, node.span, "PS0505", text, label="declared here", help=hint)
    costly = np.asarray(system.aimed @ effect).any(axis=0)
    if np.any(reached & ~costly):
        touched = effect[:, np.flatnonzero(reached & ~costly)[0]]
        out = next(o for o in system.outputs if touched[o.start : o.stop].any())
        raise _unpriced(model, out.name, "")


def _sites_of(model: Model) -> tuple[str, ...]:
    """Every place where the compiler may put noise: inputs, computed values, free outputs, in graph order."""
    kinds = (syntax.VariableKind.INPUT, syntax.VariableKind.INTERMEDIATE)
    inner = [name for name in model.order if model.nodes[name].kind in kinds and model.nodes[name].secret]
    inputs = [node.name for node in model.inputs if node.name not in inner]
    return (*inputs, *inner, *(o.name for o in model.outputs if o.definition is None))


def _outputs(model: Model) -> list[OutputSlice]:
    out, start = [], 0
    for node in model.outputs:
        size = int(np.prod(node.type.shape, dtype=int))
        out.append(OutputSlice(node.name, start, start + size, node.type.shape))
        start += size
    return out


def _error_rows(model: Model, loss: Squares | Worst) -> tuple[Affine, Array, bool, bool]:
    """Error terms, one a row, with their weights, whether only the largest counts, and whether their sizes do."""
    if isinstance(loss, Squares):
        if loss.shape not in ((), (1,)):
            raise Failure("PS0502", model.loss_span, "the loss is a vector; add up its entries with sum(...)")
        return loss.rows, loss.weights, False, loss.sizes
    if any(len(member.weights) != 1 for member in loss.members):
        text = "solve takes the largest of single errors, not of sums of them"
        raise Failure("PS0502", model.loss_span, text)
    weights = np.concatenate([s.weights for s in loss.members])
    return stack([s.rows for s in loss.members]), weights, True, loss.members[0].sizes


def _aims(model: Model, interpreter: Interpreter) -> tuple[Affine, Array, bool, bool]:
    """The error terms of the loss or, without one, of all accuracy lines."""
    if model.loss is not None:
        return _error_rows(model, interpreter.loss(model.loss))
    members = [one for _, _, some in _instances(model, interpreter) for one in some]
    return stack([one.rows for one in members]), np.concatenate([one.weights for one in members]), False, False


def _output_matrix(rows: Affine, outputs: Sequence[OutputSlice]) -> SparseMatrix:
    blocks, nothing = [], np.empty(0)
    for out in outputs:
        part: Matrix | None = rows.coefficients.get(output_symbol(out.name))
        empty = SparseMatrix.of((rows.size, out.stop - out.start), *[nothing] * 3)
        blocks.append(empty if part is None else sparse_of(part))
    return beside(blocks)


def _computed(
    model: Model, outputs: Sequence[OutputSlice], interpreter: Interpreter
) -> list[tuple[OutputSlice, Affine]]:
    found = []
    for out in outputs:
        if model.nodes[out.name].definition is not None:
            value = interpreter.node(out.name, model.nodes[out.name].span)
            inner = value.counts if isinstance(value, Cells) else value
            if isinstance(inner, Affine):
                _refuse_chained(model, out, inner)
                found.append((out, inner))
    return found


def _refuse_chained(model: Model, out: OutputSlice, value: Affine) -> None:
    """An output computed from another output is the reader's own arithmetic: not solved yet."""
    other = next((o.name for o in model.outputs if output_symbol(o.name) in value.coefficients), None)
    if other is not None:
        text = f"solve cannot compute {out.name} from the output {other}"
        hint = f"leave {out.name} out: whoever has {other} can compute it, at no cost in privacy"
        raise Failure("PS0501", model.nodes[out.name].span, text, help=hint)


def _unpriced(model: Model, name: str, part: str) -> SpecError:
    text = f"the loss does not mention{part} {name}, so any noise would do for it"
    hint = f"add a term for {name} to the loss, or do not release it"
    if (value := model.nodes[name].definition) is not None:
        error = f"({name} - {spell(value)})^2" if not model.nodes[name].type.shape else f"||{name} - {spell(value)}||^2"
        hint = f"nothing that is computed from the data is released exactly: add E[ {error} ] to the loss"
        if not any(name in line.outputs for line in model.requirements):
            hint += f", and {name} to a line of privacy"
    return SpecError.at(
        model.source, model.nodes[name].span, "PS0506", text, label="released, but its error costs nothing", help=hint
    )


class _Solver:
    """Solves `error_map[:, free outputs] @ y = right` for what the free outputs stand for."""

    def __init__(self, model: Model, error_map: SparseMatrix, free: Sequence[OutputSlice]) -> None:
        self.model, self.map = model, error_map
        self.columns: NDArray[np.intp] = np.concatenate(
            [np.arange(o.start, o.stop, dtype=np.intp) for o in free] or [np.empty(0, dtype=np.intp)]
        )
        self._free = free
        self._check_mentioned()

    def _check_mentioned(self) -> None:
        touched = np.zeros(self.map.shape[1], dtype=bool)
        touched[self.map.indices[self.map.data != 0]] = True
        for out in self._free:
            if not touched[out.start : out.stop].all():
                part = "" if not touched[out.start : out.stop].any() else " some entries of"
                raise _unpriced(self.model, out.name, part)

    @property
    def paired(self) -> bool:
        """Whether each error term is about one output, and each output in one: any values can be aimed at then."""
        alone, m = bool(np.all(np.diff(self.map.indptr) == 1)), self.map.shape[1]
        return alone and len(self.columns) == m and np.array_equal(np.sort(self.map.indices), np.arange(m))

    def targets(
        self, rows: Affine, computed: list[tuple[OutputSlice, Affine]], widths: Mapping[str, int]
    ) -> tuple[dict[str, Array], Array]:
        """What the joint output stands for: a matrix over each symbol, and the offset."""
        m = self.map.shape[1]
        aims, offset = {symbol: np.zeros((m, width)) for symbol, width in widths.items()}, np.zeros(m)
        for out, value in computed:
            offset[out.start : out.stop] = value.offset
            for symbol, width in widths.items():
                aims[symbol][out.start : out.stop] = value.dense(symbol, width)
        for symbol, width in widths.items():
            wanted = rows.dense(symbol, width)
            if computed:
                aims[symbol] = aims[symbol] + self.solve(-(wanted + self.map @ aims[symbol]))
            else:
                aims[symbol] = self.solve(-wanted)
        known_offset = self.map @ offset if computed else 0.0
        solved_offset = self.solve(-(rows.offset + known_offset)[:, None])[:, 0]
        return aims, offset + solved_offset

    def solve(self, right: Array) -> Array:
        """Rows (m, width) of the free outputs; zero elsewhere."""
        out = np.zeros((self.map.shape[1], right.shape[1]))
        if not len(self.columns):
            return out
        block = self.map.columns(self.columns)
        counts = np.diff(block.indptr)
        if np.all(counts <= 1):
            single = np.flatnonzero(counts == 1)
            entry = block.indptr[single]
            first = np.full(len(self.columns), -1)
            first[block.indices[entry][::-1]] = np.arange(len(single))[::-1]
            rows, factors = single[first], block.data[entry][first]
            if self.paired and np.array_equal(block.indices, self.columns) and np.all(factors == 1.0):
                return right
            out[self.columns] = right[rows] / factors[:, None]
            return out
        if block.shape[0] * block.shape[1] > DENSE_LIMIT:
            raise Failure("PS0502", self.model.loss_span, "this loss mixes too many outputs to be solved for them")
        solution, _, rank, _ = np.linalg.lstsq(block.toarray(), right, rcond=None)
        if rank < block.shape[1]:
            text = "the loss leaves some combination of outputs free, so any noise would do for it"
            raise Failure("PS0506", self.model.loss_span, text)
        out[self.columns] = solution
        return out


def _check_consistent(
    model: Model,
    error_map: SparseMatrix,
    rows: Affine,
    aims: Mapping[str, Array],
    offset: Array,
    span: Span | None = None,
) -> None:
    """Every error term must vanish on average: otherwise the loss compares an output with two different things."""
    moved = [(error_map @ aim, rows.dense(symbol, aim.shape[1])) for symbol, aim in aims.items()]
    if any(
        np.abs(reached + wanted).max(initial=0.0) > CONSISTENT * max(1.0, float(np.abs(wanted).max(initial=0.0)))
        for reached, wanted in (*moved, (error_map @ offset, rows.offset))
    ):
        span = span or model.loss_span
        text = (
            "no unbiased output makes every error term zero on average: the loss compares an output with different "
            "things, or with something it is not computed from"
        )
        hint = "compare each output with one value; for a blend, write that value as an intermediate"
        raise SpecError.at(model.source, span, "PS0507", text, label="these terms disagree", help=hint)


# --- accuracy -------------------------------------------------------------------------------------


def _limits(
    model: Model, quiet: Interpreter, outputs: Sequence[OutputSlice], aims: Mapping[str, Array], offset: Array
) -> Iterator[Limit]:
    """Every instance of every accuracy line."""
    for accuracy, local, members in _instances(model, quiet):
        written = accuracy.target
        bound = evaluate(written.right, environment(model, local))
        if not isinstance(bound, Fraction) or bound <= 0:
            raise Failure("PS0508", written.right.span, "an accuracy target is a positive number")
        for member in members:
            error_map = _output_matrix(member.rows, outputs)
            _check_consistent(model, error_map, member.rows, aims, offset, written.span)
            errors = Errors(error_map, member.weights, member.sizes)
            chance = None if written.probability is None else public_number(written.probability, model)
            if chance is not None:
                # none of several errors is larger, but for what may go wrong with each of them
                chance = 1 - (1 - chance) / len(members)
            if chance is not None and len(member.weights) > 1:
                text, hint = (
                    "a probability is of one error at a time",
                    "|O[j] - y[j]| <= 4 for j in 1..32",
                )
                raise Failure("PS0502", written.left.span, text, help=hint)
            if member.sizes and len(member.weights) > 1:
                text = "solve keeps the size of one error at a time below a limit, not a sum of sizes"
                raise Failure("PS0502", written.left.span, text, help="E[ |O[j] - y[j]| ] <= 4 for j in 1..32")
            yield Limit(errors, bound, accuracy.line, accuracy.text, written.span, chance)


def _instances(
    model: Model, interpreter: Interpreter
) -> Iterator[tuple[AccuracyTarget, dict[str, Value], tuple[Squares, ...]]]:
    """Every instance of an accuracy line, with what its variable stands for and the sums that it bounds."""
    for accuracy in model.accuracy:
        for local in target_places(model, accuracy.target):
            left, two = accuracy.target.left, syntax.Number(Fraction(2))
            if isinstance(left, syntax.Norm) and accuracy.target.probability is not None:
                every = interpreter.loss(syntax.Binary("^", replace(left, order="2"), two, span=left.span), local)
                assert isinstance(every, Squares)
                rows = (every.rows.taken(np.array([place]), ()) for place in range(every.rows.size))
                yield accuracy, local, tuple(map(Squares.of, rows))
                continue
            if accuracy.target.probability is not None:
                left = syntax.Binary("^", left, two, span=left.span)
            squares = interpreter.loss(left, local)
            yield accuracy, local, squares.members if isinstance(squares, Worst) else (squares.total(),)


def target_places(model: Model, written: syntax.Target) -> Iterator[dict[str, Value]]:
    """What the variable of an accuracy line runs through; one empty binding without a variable."""
    if written.variable is None:
        yield {}
        return
    over = syntax.Comprehension(written.left, written.variable, written.domain, span=written.span)
    for place in places(over, environment(model)):
        yield {written.variable: place}


def check_priced(model: Model, system: Lowered) -> None:
    """A computed output that the loss leaves out must be a function of what the loss does measure.

    Raises: SpecError PS0506.
    """
    error_map, target = system.aimed, system.target
    touched = np.zeros(error_map.shape[1], dtype=bool)
    touched[error_map.indices[error_map.data != 0]] = True
    left_out = [o for o in system.outputs if not touched[o.start : o.stop].all()]
    if not left_out:
        return
    every = {o.name for o in system.outputs}
    seen_whole = all(set(model.exposed(requirement)) == every for requirement in model.requirements)
    measured = np.linalg.svd(np.asarray(error_map @ target), full_matrices=False)
    basis = measured[2][measured[1] > CONSISTENT * measured[1].max(initial=1.0)]
    for out in left_out:
        rows = target[out.start : out.stop]
        beyond = rows - (rows @ basis.T) @ basis
        if not seen_whole or np.abs(beyond).max(initial=0.0) > CONSISTENT * max(1.0, np.abs(rows).max(initial=0.0)):
            raise _unpriced(model, out.name, "" if not touched[out.start : out.stop].any() else " some entries of")
