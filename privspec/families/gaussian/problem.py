"""A linear system with the budgets of its requirements: what every mechanism of linear answers starts from.

What is released, what is secret, and which differences must be hidden, from the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import chain
from math import inf, pi, sinh, sqrt
from typing import NamedTuple, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from privspec.core.diagnostics import Diagnostic, Label, SpecError
from privspec.core.records import dataclass, field, replace
from privspec.families.decision import Infeasible, unbounded
from privspec.families.family import Settings
from privspec.families.gaussian.differences import of_units, sets_of
from privspec.kernel.changes import COUNTED
from privspec.kernel.core.linear import Difference, Linear
from privspec.kernel.core.problem import Frame
from privspec.kernel.core.reading import Refused
from privspec.kernel.measures import APPROXIMATE, GAUSSIAN, ZERO_CONCENTRATED
from privspec.kernel.moves import units_of
from privspec.kernel.trust import NOBODY
from privspec.language import syntax
from privspec.language.walk import every
from privspec.model.graph import Model
from privspec.model.measures import AskedMeasure, Personalised
from privspec.model.neighbours import Spaced, UnboundedError
from privspec.model.reports import Failure
from privspec.model.requirements import Requirement
from privspec.model.targets import meaning
from privspec.problem.elaborate import elaborate
from privspec.problem.linear import moved_by, spacing_of
from privspec.problem.linear_affine import Layout
from privspec.problem.linear_lowering import (
    Limit,
    Lowered,
    OutputSlice,
    check_priced,
    lowered,
    noisy_site_map,
    raise_failure,
)
from privspec.problem.linear_lowering import site_map as map_of_site
from privspec.solvers import programs
from privspec.solvers.programs import Array, Differences, ExpectedLoss, Site, View, WorstLoss

Points: TypeAlias = tuple[tuple[slice, Fraction, Fraction], ...]
"""Of each input its coordinates, what their values are whole multiples of, and what these are beyond."""


@dataclass(frozen=True, eq=False, slots=True)
class ProtectedView:
    """One set of neighbours of one requirement, lowered.

    `rows`: joint output rows that the requirement names (None = all); `differences`: of the inputs, in data
    units, as doubles; `exact`: what units change that has them among it; `chosen`: of these only units that move some
    of such coordinates; `points`: where all values of the inputs lie; `cover`: how many times larger these differences
    are than ones that neighbours surely have (1 where they are exact, k where k records are covered by k times one);
    `numbers`: where coordinates are sums over a class, the variances of noise on each number that alone would hide
    these differences at mu 1.
    """

    requirement: Requirement
    index: int
    rows: NDArray[np.intp] | None
    differences: Differences
    exact: Difference
    chosen: NDArray[np.bool_] | None = None
    points: Points | None = None
    cover: float = 1.0
    numbers: Array | None = None


@dataclass(frozen=True, eq=False, slots=True)
class AccuracyLimit:
    """An accuracy line in doubles: the squares of error_map (q, m) @ noise sum to at most `bound` on average."""

    stated: Limit
    error_map: scipy.sparse.csr_array
    bound: float

    @property
    def asked(self) -> float | None:
        """The size that one normal error then keeps to with a probability, where that is what the line asks."""
        return None if self.stated.probability is None else float(self.stated.bound)


@dataclass(frozen=True, eq=False, slots=True)
class LinearSystem:
    """What is released (`lowered`), of a `source` at any amounts, with the views that have to be protected.

    error_map (q, m) sparse, rows times the roots of their weights: the loss is the sum of the squared entries of
    error_map @ noise on average, or the largest of them (of the sums of their `groups`, where there are) if `worst`.
    """

    source: Model
    lowered: Lowered
    error_map: scipy.sparse.csr_array
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
    def worst(self) -> bool:
        """Whether only the largest error counts."""
        return self.lowered.worst

    @property
    def candidates(self) -> tuple[str, ...]:
        """Names of the nodes where noise may enter."""
        return self.lowered.candidates

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
            sets = list(_sets(moved_by(model, requirement), layout, target))
        except UnboundedError as error:
            return unbounded(model, requirement, error)
        seen_rows = None if len(rows) == total else rows
        for own, chosen in _by_figure(requirement, layout):
            for whole, part, cover, numbers in sets:
                found = part if chosen is None else of_units(part, chosen)
                views.append(ProtectedView(own, index, seen_rows, found, whole, chosen, points, cover, numbers))
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
    moved: Iterable[Difference], layout: Layout, target: Array
) -> Iterator[tuple[Difference, Differences, float, Array | None]]:
    """What units change with each set of it, its `cover` and what noise on each number would hide it."""
    for difference in moved:
        summed = difference.parts[0].shape not in COUNTED and not layout.plain
        hidden = _hidden_by_numbers(difference, layout) if summed else None
        for one, cover in sets_of(difference, layout, target):
            yield difference, one, cover * float(max(difference.cover or 1, 1)), hidden


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


def check_sizes(model: Model, views: Sequence[ProtectedView], target: Array, error_map: scipy.sparse.csr_array) -> None:
    """Squares and inverses of every number must be doubles."""
    span = model.loss.span if model.loss else model.spec.span
    found = [(span, target), (span, error_map.data)]
    found += [(view.requirement.span, amounts(view.differences)) for view in views]
    for place, values in found:
        sizes = np.abs(values[values != 0])
        if sizes.size and not (sizes.min() >= 1 / LARGEST_NUMBER and sizes.max() <= LARGEST_NUMBER):
            raise SpecError.at(
                model.source,
                place,
                "PS0513",
                f"a number here is beyond {LARGEST_NUMBER:.0e} or below {1 / LARGEST_NUMBER:.0e}",
                help="choose other units for the inputs, the outputs or the loss",
            )


def amounts(differences: Differences) -> Array:
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


def scaled_differences(differences: Differences, factor: float) -> Differences:
    """Every difference times a factor."""
    match differences:
        case programs.Vectors(matrix, count):
            return programs.Vectors(scipy.sparse.csc_array(matrix * factor), count)
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
    if any(isinstance(view.differences, programs.Streams) for view in views):
        alone = (
            len(views) == 1 and views[0].rows is None and views[0].requirement.measure.gaussian_mu_down() is not None
        )
        plain = model.trust.central and model.noise_at is None and not found.worst and not found.limits
        if not alone or not plain:
            raise _too_many_ways(model)
    check_priced(model, found)
    scaled = found.errors.scaled.csr
    check_sizes(model, views, found.target, scaled)
    return LinearSystem(
        source=model,
        lowered=found,
        error_map=scaled,
        views=tuple(views),
        limits=tuple(AccuracyLimit(limit, limit.errors.scaled.csr, float(limit.square)) for limit in found.limits),
    )


def _too_many_ways(model: Model) -> SpecError:
    """The error for units that lie apart in more ways than can be listed, or bounded."""
    line = next(line for line in model.requirements if isinstance(line.neighbours, Spaced))
    text = "units that lie apart in so many ways, with this guarantee and these inputs"
    hint = (
        f"write `exactly` in place of `at least`; or one line of {APPROXIMATE.name}, {GAUSSIAN.name} or "
        f"{ZERO_CONCENTRATED.name}, squared errors"
    )
    return SpecError.at(model.source, line.span, "PS0501", f"solve cannot compute {text}", help=hint)


def site_maps(model: Model, system: LinearSystem, names: Sequence[str]) -> tuple[Site, ...]:
    """How unit noise at each named node reaches the outputs, each node by itself (m, size of the node).

    Raises: SpecError PS0505 if noise at a node reaches no output, PS0506 if it reaches one and costs nothing.
    """
    return tuple(Site(name, noisy_site_map(model, system.lowered, name).of_numbers) for name in names)


def site_map(model: Model, system: LinearSystem, name: str) -> Site:
    """How unit noise at a node reaches the outputs; all zero where it does not."""
    return Site(name, map_of_site(model, system.lowered, name).of_numbers)


SIGMA, VARIANCES = "Sigma", "s"
"""What the covariance, and the variances at sites, are called."""
WEIGHTS = "weights of the loss"
INVERSE, STEPS = "u", "the variance of noise in steps"
"""What one over each scale of Laplace noise is called, and the constraints that its variance takes."""
NORMAL = sqrt(2 / pi)
"""The average size of a standard normal number."""
FORCED = "`noise at` rules it out"
LOCAL = f"`{NOBODY.written}` rules it out"
TAILS = "the tail of its errors is not known to meet an accuracy line"


class Verdict(NamedTuple):
    """Whether the options of a spec allow a mechanism, and which rules it out."""

    admissible: bool = True
    reason: str = ""


@dataclass(eq=False)
class Problem:
    """The system, its model, and the Gaussian budget of each view (None where no Gaussian noise meets it).

    `best_loss` solves a changed spec, to price a way out where there is no mechanism. `given`: solutions that
    were found outside.
    """

    model: Model
    system: LinearSystem
    settings: Settings = field(default_factory=Settings)
    best_loss: Callable[[Model, Settings], float | None] | None = None
    given: Callable[[programs.GaussianProgram], programs.GaussianSolution] | None = None

    @cached_property
    def budgets(self) -> tuple[Fraction | None, ...]:
        """The largest mu that each view allows a Gaussian release, rounded down."""
        return tuple(view.requirement.measure.gaussian_mu_down() for view in self.system.views)

    @cached_property
    def epsilons(self) -> tuple[Fraction | None, ...]:
        """The pure epsilon that implies each view's requirement; of measures that have none only beside pure ones."""
        measures = [view.requirement.measure for view in self.system.views]
        if None in self.budgets:
            return tuple(one.implied_by_pure() for one in measures)
        return tuple(one.pure_epsilon for one in measures)

    def unbiased_budgets(self, epsilons: Iterable[float]) -> tuple[float, ...]:
        """The mu that no unbiased mechanism exceeds which has pure epsilons, or other lines as the views state them."""
        pairs = zip(self.system.views, epsilons, strict=True)
        return tuple(_unbiased(view.requirement.measure, epsilon) * (1 + 1e-12) for view, epsilon in pairs)

    @property
    def frame(self) -> Frame:
        """The problem as the kernel judges it, at any amounts of its lines."""
        return elaborate(self.system.source)

    @property
    def block(self) -> Linear:
        """What is asked of the outputs, as the kernel judges it."""
        (found,) = elaborate(self.system.source).blocks
        assert isinstance(found, Linear)
        return found

    @property
    def local(self) -> bool:
        """Whether what each party sends is seen by all."""
        return self.model.trust.alone

    def senders(self, strategy: Array) -> Array:
        """How many parties send each answer of a strategy (k, n), with noise of their own: (k,); 1 at a curator."""
        if not self.local:
            return np.ones(len(strategy))
        copies, moved = self.system.lowered.layout.copies, strategy != 0
        return np.where(moved.any(axis=1), copies[moved.argmax(axis=1)], 1.0)

    @cached_property
    def through_inputs(self) -> bool:
        """Whether outputs are computed from noisy inputs: there are more of them, and each has one aim."""
        aimed = all(meaning(self.model, output.name) is not None for output in self.system.outputs)
        return self.system.outputs_count > self.system.inputs_count and aimed

    def family_allowed(self, *families: str) -> bool:
        """Whether the spec allows one of these noise families."""
        return not self.model.families or any(f in self.model.families for f in families)

    def family_verdict(self, *families: str) -> Verdict:
        """The same, with what rules them out: also lines with a probability, for noise whose tails are not known."""
        tails = any(limit.probability is not None for limit in self.system.lowered.limits)
        if tails and {"knorm", "staircase"} & set(families):
            return Verdict(False, TAILS)
        if self.family_allowed(*families):
            return Verdict()
        return Verdict(False, f"`noise family {', '.join(self.model.families)}` rules it out")

    def verdict(self, families: tuple[str, ...], sites: set[str] | None, *, curator: bool = True) -> Verdict:
        """Whether the options allow noise of these families at these places, or just anywhere (None)."""
        found, forced = self.family_verdict(*families), self.model.noise_at
        if found.admissible and self.local and curator:
            return Verdict(False, LOCAL)
        if found.admissible and forced is not None and (sites is None or not sites <= set(forced)):
            return Verdict(False, FORCED)
        return found

    @cached_property
    def errors(self) -> Array:
        """Error terms as a function of the inputs (q, n): error_map @ target."""
        rows, target = self.system.error_map, self.system.target
        plain = rows.shape[0] == rows.shape[1] == rows.nnz and np.all(rows.diagonal() == 1.0)
        return target if plain else np.asarray(rows @ target)

    def views(self, budgets: tuple[float, ...]) -> tuple[View, ...]:
        """The views in the solvers' form, each divided by its budget."""
        return tuple(
            View(view.rows, scaled_differences(view.differences, 1.0 / budget), view.requirement.text)
            for view, budget in zip(self.system.views, budgets, strict=True)
        )

    def loss(self, error_map: Array) -> ExpectedLoss | WorstLoss:
        """The loss over given error terms."""
        return WorstLoss(error_map, self.system.groups) if self.system.worst else ExpectedLoss(error_map)

    def total(self, rows: Array) -> float:
        """The loss of expected squares (q,) of the error terms."""
        if self.sizes:
            sizes = NORMAL * np.sqrt(rows)
            return float(sizes.max() if self.system.worst else sizes.sum())
        return float(WorstLoss(rows, self.system.groups).added(rows).max() if self.system.worst else rows.sum())

    def scaled(self, loss: float, factor: float) -> float:
        """A loss when all variances are so many times as large."""
        return loss * (sqrt(factor) if self.sizes else factor)

    @property
    def lopsided(self) -> bool:
        """Whether an error costs more on one side: of answers that are off on average their sizes then say little."""
        averages = () if self.model.loss is None else every(self.model.loss, syntax.Over)
        return any(call.function == "max" for over in averages for call in every(over.body, syntax.Call))

    @property
    def sizes(self) -> bool:
        """Whether sizes of normal errors are added up, and not their squares."""
        return self.system.lowered.errors.sizes

    @property
    def alone(self) -> bool:
        """Whether one error counts, or the largest: the root of squares has the same optimum."""
        return self.system.worst or self.system.error_map.shape[0] == 1

    def of_squares(self, weights: Array) -> Problem:
        """The same with squares of the errors, of these weights (q,), in place of sizes."""
        errors = replace(self.system.lowered.errors, weights=weights, sizes=False)
        lowered = replace(self.system.lowered, errors=errors)
        return replace(self, system=replace(self.system, lowered=lowered, error_map=errors.scaled.csr))

    def loss_of_output_noise(self, root: Array) -> float:
        """The loss when the output noise is root (m, k) times noise of unit variance."""
        rows = np.sum(np.asarray(self.system.error_map @ root) ** 2, axis=1)
        return self.total(rows)

    def loss_of_input_noise(self, variances: Array) -> float:
        """The loss when the inputs carry independent noise of these variances (n,)."""
        rows = self.errors**2 @ variances
        return self.total(rows)

    def proved(self, lower_bound: float) -> float:
        """What a solver's lower bound proves of the requirements as written, with room for the checker's rounding.

        Where a set of differences is larger than what neighbours can have, the dual point is listed at the size
        that they surely have, which divides the bound by the square of the factor.
        """
        cover = max((view.cover for view in self.system.views), default=1.0)
        return lower_bound * (1 - 1e-10) / cover**2


def _unbiased(measure: AskedMeasure, epsilon: float) -> float:
    """By Hammersley, Chapman and Robbins; infinite where no bound is known."""
    if measure.common is None or measure.pure_epsilon is not None:
        return 2 * sinh(epsilon / 2)
    known = measure.common.condition(measure.amounts).largest_unbiased()
    return inf if known is None else float(known) ** 0.5


def cones(view: View, outputs: int) -> Iterator[tuple[int, int]]:
    """Side and number of the positive semidefinite matrices that a view is stated as; none of units apart."""
    seen = len(programs.seen_rows(view, outputs))
    match view.differences:
        case programs.Vectors(matrix):
            yield seen + 1, matrix.shape[1]
        case programs.Pairs(coordinates, _):
            yield seen + 1, len(coordinates) * (len(coordinates) - 1) // 2
        case programs.Balls(blocks, _):
            yield seen + max(len(block) for block in blocks), len(blocks)
        case programs.Boxes():
            for _, edges in view.differences.edges():
                count = edges.shape[1]
                yield (seen + 1, 2 ** (count - 1)) if count <= programs.VERTEX_LIMIT else (seen + count, 1)
