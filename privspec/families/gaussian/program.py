"""From the graph to a linear system: what is released, what is secret, and which differences must be hidden."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from privspec.core.diagnostics import Diagnostic, Label, SpecError
from privspec.core.records import dataclass, replace
from privspec.core.rounding import as_float
from privspec.core.spans import Span
from privspec.families.decision import Infeasible, unbounded
from privspec.kernel.core.linear import COUNTED, Difference
from privspec.kernel.core.reading import Refused
from privspec.kernel.measures import APPROXIMATE, GAUSSIAN, ZERO_CONCENTRATED
from privspec.kernel.moves import units_of
from privspec.kernel.trust import CURATOR
from privspec.model.graph import Model
from privspec.model.measures import Personalised
from privspec.model.neighbours import Spaced, UnboundedError
from privspec.model.reports import Failure
from privspec.model.requirements import Requirement
from privspec.noise.law import Points
from privspec.problem.linear import cells_alike, moved_by, spacing_of
from privspec.problem.linear_affine import Layout
from privspec.problem.linear_differences import (
    BallDifferences,
    BoxDifferences,
    Differences,
    PairDifferences,
    PersonDifferences,
    StreamDifferences,
    VectorDifferences,
    of_units,
    sets_of,
)
from privspec.problem.linear_interpreter import unsupported
from privspec.problem.linear_lowering import (
    Lowered,
    OpenConstant,
    OutputSlice,
    check_priced,
    lowered,
    noisy_site_map,
    raise_failure,
)
from privspec.problem.linear_lowering import site_map as map_of_site
from privspec.solvers import programs
from privspec.solvers.programs import Array, Site


@dataclass(frozen=True, eq=False, slots=True)
class ProtectedView:
    """One set of neighbours of one requirement, lowered.

    `rows`: joint output rows that the requirement names (None = all); `differences`: of the inputs, in data
    units, as doubles; `exact`: the same as the model states them; `counts`: every input is a table's counts;
    `cover`: how many times larger these differences are than ones that neighbours surely have (1 where they are
    exact, k where k records are covered by k times one); `numbers`: where coordinates are sums over a class, the
    variances of noise on each number that alone would hide these differences at mu 1.
    """

    requirement: Requirement
    index: int
    rows: NDArray[np.intp] | None
    differences: programs.Differences
    exact: Differences
    points: Points | None = None
    cover: float = 1.0
    numbers: Array | None = None


@dataclass(frozen=True, eq=False, slots=True)
class AccuracyLimit:
    """One instance of an accuracy line: the squares of error_map (q, m) @ noise sum to at most `bound` on average.

    `asked`: the size that one normal error then keeps to with a probability, where that is what the line asks.
    """

    error_map: sparse.csr_array
    bound: float
    line: int
    text: str
    span: Span
    asked: float | None = None


@dataclass(frozen=True, eq=False, slots=True)
class LinearSystem:
    """What is released (`lowered`), with the views that have to be protected.

    error_map (q, m) sparse, rows times the roots of their weights: the loss is the sum of the squared entries of
    error_map @ noise on average, or the largest of them (of the sums of their `groups`, where there are) if `worst`.
    """

    lowered: Lowered
    error_map: sparse.csr_array
    views: tuple[ProtectedView, ...]
    limits: tuple[AccuracyLimit, ...] = ()
    groups: NDArray[np.intp] | None = None
    normal: bool = False
    """Whether the error terms say what is asked of normal noise only."""

    @property
    def outputs(self) -> tuple[OutputSlice, ...]:
        """Where each output stands."""
        return self.lowered.outputs

    @property
    def target(self) -> Array:
        """The map (m, n) from the base vector to the outputs."""
        return self.lowered.target

    @property
    def offset(self) -> Array:
        """What is added to the outputs (m,)."""
        return self.lowered.offset

    @property
    def worst(self) -> bool:
        """Whether only the largest error counts."""
        return self.lowered.worst

    @property
    def candidates(self) -> tuple[str, ...]:
        """Names of the nodes where noise may enter."""
        return self.lowered.candidates

    @property
    def constants(self) -> tuple[OpenConstant, ...]:
        """Public values that a run is given."""
        return self.lowered.constants

    @property
    def outputs_count(self) -> int:
        """Rows of the joint output."""
        return int(self.target.shape[0])

    @property
    def inputs_count(self) -> int:
        """Coordinates of the base vector."""
        return int(self.target.shape[1])

    @property
    def seen_whole(self) -> bool:
        """Whether every requirement is about all outputs together."""
        return all(view.rows is None for view in self.views)


SOME = 1024
"""Rows that are looked at together."""
LARGEST_NUMBER = 1e100
"""Size up to which the squares and cubes of a number and of its inverse are doubles."""


def protected_views(
    model: Model, outputs: Sequence[OutputSlice], layout: Layout, target: Array
) -> list[ProtectedView] | Infeasible:
    """One view for each set of differences of each requirement, in order; or why no finite noise protects it."""
    total = outputs[-1].stop if outputs else 0
    views, points = list[ProtectedView](), _points(model, layout)
    for index, requirement in enumerate(model.requirements):
        exposed = model.exposed(requirement)
        seen = [o for o in outputs if o.name in exposed]
        rows = np.concatenate([np.arange(o.start, o.stop, dtype=np.intp) for o in seen])
        try:
            sets = list(_sets(model, requirement, layout, target))
        except UnboundedError as error:
            return unbounded(model, requirement, error)
        seen_rows = None if len(rows) == total else rows
        for own, chosen in _by_figure(requirement, layout):
            parts = [(d if chosen is None else of_units(d, chosen), cover, numbers) for d, cover, numbers in sets]
            views += [
                ProtectedView(own, index, seen_rows, plain_differences(d, layout.width), d, points, cover, numbers)
                for d, cover, numbers in parts
            ]
    return views


def _points(model: Model, layout: Layout) -> Points | None:
    """Where all values of the inputs lie, of sums by class too; None where some, or what they move, lie anywhere."""
    found, adding = list[tuple[slice, Fraction, Fraction]](), any(r.neighbours.adding for r in model.requirements)
    for block in model.blocks:
        at, share = layout.places[block.name]
        step, low = Fraction(1) if block.whole else spacing_of(block), block.domain.bounds[0] or Fraction(0)
        if step is None or (adding and low % step):
            return None
        found.append((slice(at, at + share.width), step, low))
    return tuple(found)


def _by_figure(requirement: Requirement, layout: Layout) -> Iterator[tuple[Requirement, NDArray[np.bool_] | None]]:
    """The line for all, or for the parties of each figure, and the coordinates that are theirs."""
    if not isinstance(requirement.measure, Personalised):
        yield requirement, None
        return
    each = requirement.measure.each
    for measure in dict.fromkeys(each):
        own, chosen = np.array([one == measure for one in each]), np.zeros(layout.width, dtype=bool)
        for name in requirement.wrt:
            at, share = layout.places[name]
            kinds = own if share.partition is None else own[share.partition.first]
            chosen[at : at + share.width] = np.repeat(kinds, share.width // len(kinds))
        yield replace(requirement, measure=measure), chosen


def _sets(
    model: Model, requirement: Requirement, layout: Layout, target: Array
) -> Iterator[tuple[Differences, float, Array | None]]:
    """Sets of differences, each with its `cover` and what noise on each number would hide it.

    Raises: UnboundedError if one unit can change an input without limit.
    """
    alike = tuple(
        np.array(cells) + layout.places[block.name][0] for block in model.blocks for cells in cells_alike(block)
    )
    for difference in moved_by(model, requirement):
        summed = difference.parts[0].shape not in COUNTED and not layout.plain
        hidden = _hidden_by_numbers(difference, layout) if summed else None
        for one, cover in sets_of([difference], layout, target):
            if alike and isinstance(one, VectorDifferences | PairDifferences | PersonDifferences):
                yield replace(one, alike=alike), cover, hidden
            else:
                yield one, cover, hidden


def _hidden_by_numbers(difference: Difference, layout: Layout) -> Array:
    """Variances (width,) of independent noise on each number of the inputs that alone hides what units do, at mu 1."""
    found = np.zeros(layout.width)
    change = units_of(difference, layout.kernel_places)
    # of all that an input holds, a class moves as often as it has copies
    times = layout.copies if sum(copies for _, copies in change.units) == 1 else np.ones(layout.width)
    for unit, _ in change.units:
        reach = dict[int, float]()
        for piece in unit:
            for i, share in chain.from_iterable(piece.edges):
                reach[i] = reach.get(i, 0.0) + float(piece.amount * abs(share))
        entries = sum(float(times[i]) for i in reach) if unit[0].shape == "box" else 1.0
        for i, most in reach.items():
            found[i] = max(found[i], entries * change.count * (most / times[i]) ** 2)
    return found


def moves(view: ProtectedView, target: Array) -> bool:
    """Whether some difference changes what the view sees."""
    seen = target if view.rows is None else target[view.rows]
    match view.differences:
        case programs.Vectors(matrix):
            return any(np.any(seen[i : i + SOME] @ matrix) for i in range(0, len(seen), SOME))
        case programs.Pairs(coordinates, _):
            return bool(np.any(seen[:, coordinates] != seen[:, coordinates[:1]]))
        case programs.Balls(blocks, radius):
            return radius > 0 and any(np.any(seen[:, block]) for block in blocks)
        case programs.Boxes():
            return any(map(np.any, view.differences.moved(seen)))
        case programs.Streams(reach=radius):
            return radius > 0 and bool(np.any(seen))


def check_sizes(model: Model, views: Sequence[ProtectedView], target: Array, error_map: sparse.csr_array) -> None:
    """Squares and inverses of every number must be doubles."""
    span = model.loss.span if model.loss else model.spec.span
    found = [(span, target), (span, error_map.data)]
    found += [(view.requirement.span, amounts(view.differences)) for view in views]
    for place, values in found:
        sizes = np.abs(values[values != 0])
        if sizes.size and not (sizes.min() >= 1 / LARGEST_NUMBER and sizes.max() <= LARGEST_NUMBER):
            raise unsupported(
                model.source,
                place,
                f"a number here is beyond {LARGEST_NUMBER:.0e} or below {1 / LARGEST_NUMBER:.0e}",
                "PS0513",
                "choose other units for the inputs, the outputs or the loss",
            )


def amounts(differences: programs.Differences) -> Array:
    """The sizes of changes of single coordinates."""
    match differences:
        case programs.Vectors(matrix):
            return np.asarray(matrix.data)
        case programs.Pairs(_, scale):
            return np.array([scale])
        case programs.Balls(_, radius):
            return np.array([radius])
        case programs.Boxes():
            return differences.reaches()
        case programs.Streams(reach=radius):
            return np.array([radius])


def nothing_secret(model: Model) -> SpecError:
    """The error for a spec whose outputs no neighbour changes."""
    labels = tuple(Label(r.span, "holds without any noise") for r in model.requirements)
    return SpecError(
        Diagnostic(
            "PS0511",
            "no output changes when one unit of the inputs does, so there is nothing to protect",
            labels,
            help="check the domains of the inputs and what the outputs are compared with",
            source=model.source,
        )
    )


def plain_differences(differences: Differences, n: int) -> programs.Differences:
    """The same set as plain matrices of doubles."""
    match differences:
        case VectorDifferences(indices, amounts, _):
            values = np.array([float(a) for a in amounts])
            kept = values > 0
            count = int(kept.sum())
            return programs.Vectors(
                sparse.csc_array((values[kept], (indices[kept], np.arange(count))), shape=(n, count))
            )
        case PersonDifferences(columns):
            return programs.Vectors(sparse.csc_array(columns.csr))
        case PairDifferences(coordinates, scale, _):
            return programs.Pairs(coordinates, float(scale))
        case BallDifferences(blocks, radius, _):
            return programs.Balls(blocks, float(radius))
        case BoxDifferences(blocks, reach, _, lines):
            return programs.Boxes(blocks, np.array([float(r) for r in reach]), tuple(map(as_float, lines)))
        case StreamDifferences(size, radius, count, apart, exactly, dimension):
            return programs.Streams(size, float(radius), count, apart, exactly, dimension)


def scaled_differences(differences: programs.Differences, factor: float) -> programs.Differences:
    """Every difference times a factor."""
    match differences:
        case programs.Vectors(matrix):
            return programs.Vectors(sparse.csc_array(matrix * factor))
        case programs.Pairs(coordinates, scale):
            return programs.Pairs(coordinates, scale * factor)
        case programs.Balls(blocks, radius):
            return programs.Balls(blocks, radius * factor)
        case programs.Boxes():
            return differences.scaled(factor)
        case programs.Streams(reach=radius):
            return replace(differences, reach=radius * factor)


def lower(model: Model) -> LinearSystem | Infeasible:
    """The linear system of a spec, or why no finite noise can do.

    Raises: SpecError PS05xx with every construct that cannot be computed yet, PS02xx for a value that has none.
    """
    found = lowered(model)
    try:
        views = protected_views(model, found.outputs, found.layout, found.target)
    except Refused as refused:
        raise _too_many_ways(model) from refused
    except Failure as failure:
        raise_failure(model, failure)
    if isinstance(views, Infeasible):
        return views
    if not any(moves(view, found.target) for view in views):
        raise nothing_secret(model)
    if any(isinstance(view.exact, StreamDifferences) for view in views):
        alone = (
            len(views) == 1 and views[0].rows is None and views[0].requirement.measure.gaussian_mu_down() is not None
        )
        plain = model.trust.model is CURATOR and model.noise_at is None and not found.worst and not found.limits
        if not alone or not plain:
            raise _too_many_ways(model)
    check_priced(model, found)
    scaled = found.errors.scaled.csr
    check_sizes(model, views, found.target, scaled)
    return LinearSystem(
        lowered=found,
        error_map=scaled,
        views=tuple(views),
        limits=tuple(
            AccuracyLimit(
                limit.errors.scaled.csr,
                float(limit.square),
                limit.line,
                limit.text,
                limit.span,
                None if limit.probability is None else float(limit.bound),
            )
            for limit in found.limits
        ),
    )


def _too_many_ways(model: Model) -> SpecError:
    """The error for units that lie apart in more ways than can be listed, or bounded."""
    line = next(line for line in model.requirements if isinstance(line.neighbours, Spaced))
    text = "units that lie apart in so many ways, with this guarantee and these inputs"
    hint = (
        f"write `exactly` in place of `at least`; or one line of {APPROXIMATE.name}, {GAUSSIAN.name} or "
        f"{ZERO_CONCENTRATED.name}, squared errors"
    )
    return unsupported(model.source, line.span, f"solve cannot compute {text}", "PS0501", hint)


def site_maps(model: Model, system: LinearSystem, names: Sequence[str]) -> tuple[Site, ...]:
    """How unit noise at each named node reaches the outputs, each node by itself (m, size of the node).

    Raises: SpecError PS0505 if noise at a node reaches no output, PS0506 if it reaches one and costs nothing.
    """
    return tuple(Site(name, noisy_site_map(model, system.lowered, name).of_numbers) for name in names)


def site_map(model: Model, system: LinearSystem, name: str) -> Site:
    """How unit noise at a node reaches the outputs; all zero where it does not."""
    return Site(name, map_of_site(model, system.lowered, name).of_numbers)
