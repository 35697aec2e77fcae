"""Answers that are affine in noisy ones, and not right on average: less loss at the worst data (noise/notes/pulled.md).

With z = B u + noise of variances N and data of covariance C, E[T u] + T C B' (B C B' + N)^-1 (z - B E[u]) are the best
estimates that are affine in z. Where the loss is an average over a law of the data, C is that of the law; at the worst
data it is that of the worst mixture of them (solvers/affine). Where one number at a time moves, the answers B are
sought for such estimates too. Of many numbers, or for the largest of several errors, answers become s y + (1 - s) c, a
factor s and a public value c for each: their squared error is at most (1 - s)^2 b^2 + s^2 v, with v the variance and b
the farthest that the answer is from c, which is least at s = b^2 / (b^2 + v). The least of all data-free answers is c.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import scipy
from flint import fmpq_mat

from privspec.core.matrices import DyadicMatrix
from privspec.core.records import dataclass, replace
from privspec.families.decision import CONSTANT, WRONG, mu_up, shares_of
from privspec.families.gaussian.dense import gaussian_budgets
from privspec.families.gaussian.exact import APART, Seen, grid_json, of_spread, witness_of
from privspec.families.gaussian.places import Place
from privspec.families.gaussian.problem import Problem
from privspec.families.gaussian.pure import of_scales
from privspec.families.gaussian.release import (
    FINE_BITS,
    Candidate,
    LinearRelease,
    Mechanism,
    exact,
    exact_gaussian,
    judged,
    length_up,
    output_grid,
)
from privspec.families.gaussian.release import rounded_reconstruction as rounded
from privspec.kernel.core.linear import Linear
from privspec.kernel.core.numbers import fraction, rational
from privspec.kernel.core.reading import Refused
from privspec.kernel.laws.laplace import Laplace
from privspec.kernel.linear import Figures
from privspec.kernel.rows import laid_out
from privspec.kernel.worth.bias import EUCLIDEAN, HeldSet, middle_and_sets, moments
from privspec.solvers.affine import Data, Rule, answered, at_worst, designed, unknown
from privspec.solvers.programs import Array, Boxes, Differences, Streams, Vectors, Watch, box_scaling, largest_norm

WORTHWHILE = 0.99
"""Answers are pulled where their loss is at most so much of that of answers that are right on average."""
LARGEST = 2**20
"""Numbers of the map from the noise to the outputs up to which each output has a factor of its own."""
JOINTLY, DESIGNED = 128, 100
"""Numbers of the inputs up to which the best estimates are sought, and the answers that they are made from."""
TERMS, FEW = 512, 64
"""Errors up to which they are, and up to which each is for itself where the largest counts."""
WEIGHED, REWEIGHED = 32, 8
"""Numbers of the inputs up to which answers are sought for the largest error, and weights of the errors tried."""
TOGETHER = 200
"""Numbers of the inputs up to which bounds rest on data that are at their ends together."""
ALONE = Fraction(1, 2**20)
"""Share of the time that data are drawn apart, beside those of which signs are correlated."""
SCALING_BITS, ROOT_BITS = 40, 20
"""Bits of the numbers that bound biases, and of the vectors whose products are correlations of signs."""
CARRIED, LIGHT = 1e-10, 1e-12
"""Share of the largest below which answers of a design say nothing, and differences have no mass."""
COMPARED = 2**12
"""Numbers of the inputs up to which the middle is told of where it is not allowed."""
Bounds = tuple[dict[str, Any], ...]
BY_LAW = "with what the model of the data says"
PULLED = "pulled towards the middle"
DESIGN = "correlated noise at the curator"
RIGHT = "more loss: averages are what is asked for"


@dataclass(frozen=True, eq=False, slots=True)
class Middle:
    """Of each output (m,) the public value that it is pulled to; of each error term (q,) how far that may be off.

    `loss`: that of these values themselves, at most; `inputs` (n,): the middle of what inputs may hold; `sets`: around.
    """

    values: Array
    far: Array
    loss: float
    inputs: tuple[Fraction, ...]
    sets: list[HeldSet]


def middle_of(problem: Problem) -> Middle | None:
    """The middle of what the inputs allow; None where they have no ends, or nobody knows how many they are."""
    model, system, block = problem.model, problem.system, problem.block
    if block.vectors or system.groups is not None or any(line.neighbours.adding for line in model.requirements):
        return None
    try:
        middle, sets = middle_and_sets(block, set(np.flatnonzero(system.target.any(axis=0)).tolist()))
    except Refused:
        return None
    values = system.target @ np.array(list(map(float, middle)))
    reach = _reach(problem.errors, sets)
    each = reach if problem.sizes else reach**2
    return Middle(values, reach, float(each.max() if system.worst else each.sum()), tuple(middle), sets)


def _reach(errors: Array, sets: list[HeldSet]) -> Array:
    """At most how far weighted error terms (q, n) move from their middle, when the inputs take any values."""
    found = np.zeros(len(errors))
    for one in sets:
        moved = np.stack([sum(errors[:, i] * float(v) for i, v in moves) for moves in one.corners])
        found += np.linalg.norm(moved, axis=0) if one.kind == EUCLIDEAN else np.abs(moved).max(axis=0)
    return found


def pulled_candidates(problem: Problem, found: Sequence[Candidate]) -> Iterator[Candidate]:
    """The answers of candidates, best first, pulled to the middle, the best alone; and the middle itself.

    Under a law of the data the best estimates that are affine. Where averages must be right, the middle, and answers
    pulled to it, are only told of, if they lose less at the worst data.
    """
    model, block, best = problem.model, problem.block, found[0]
    told = block.biased or problem.system.inputs_count <= COMPARED
    middle = middle_of(problem) if told and best.mechanism is not None else None
    if middle is None:
        return
    share = middle.loss / (middle.loss + best.loss) if middle.loss + best.loss else 1.0
    if not block.biased:
        if middle.loss < best.loss and not model.unbiased:
            if not problem.sizes:
                yield Candidate(f"{best.name}, {PULLED}", best.family, share * best.loss, WRONG, False)
            yield Candidate(CONSTANT, "constant", middle.loss, WRONG, False)
        return
    if model.noise_at is None:
        pulled = min(_pulled(problem, found, middle, share), key=lambda one: one.loss, default=None)
        if pulled is not None and pulled.loss <= WORTHWHILE * best.loss:
            yield pulled
    if block.law is None:
        yield Candidate(CONSTANT, "constant", middle.loss, "more loss")


def _pulled(problem: Problem, found: Sequence[Candidate], middle: Middle, share: float) -> Iterator[Candidate]:
    system, law = problem.system, problem.block.law
    few = law is not None or (system.inputs_count <= JOINTLY and len(problem.errors) <= TERMS)
    made = list[Candidate]()
    if few and system.seen_whole and not problem.sizes and system.target.size <= LARGEST:
        made += (_one_by_one if system.worst else _jointly)(problem, found, middle)
        yield from made
    # factors are among all maps; of counts the best of these are not sought at the worst data
    if made and all(len(moves) == 1 for one in middle.sets for moves in one.corners):
        return
    if law is None and found[0].mechanism is not None and share <= WORTHWHILE:
        size, ends = system.inputs_count, np.where(system.target.sum(axis=0) < 0, -1.0, 1.0)[:, None]
        bounds = ({"alone": "1/2", "signs": grid_json(ends, ROOT_BITS)},) if size <= TOGETHER else ()
        mechanism, release = replace(found[0].mechanism, bounds=bounds), found[0].mechanism.release
        for factors in _factors(problem, found[0], release, middle):
            own = shrunk(problem, release, factors, middle.values)
            if own is not None:
                own = replace(own, domination=domination(problem, own, middle.sets))
                yield _candidate(problem, found[0], own, mechanism)


def _watch(problem: Problem) -> Watch:
    """Of half the time that is left: exact figures of what is found take as long."""
    left = problem.settings.deadline
    return Watch(None if left is None else left / 2)


def _candidate(problem: Problem, best: Candidate, release: LinearRelease, mechanism: Mechanism) -> Candidate:
    loss = float(Figures.of(judged(problem, release)).value)
    name = f"{best.name}, {PULLED if problem.block.law is None else BY_LAW}"
    return Candidate(name, best.family, loss, "less loss", mechanism=replace(mechanism, release=release, sites=()))


# --- the best estimates ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class Estimates:
    """The best estimates from the answers of a candidate, a rule for each part of the errors; `value`: their loss."""

    value: float
    answers: Candidate
    mechanism: Mechanism
    rules: tuple[Rule, ...]


def _estimated(
    problem: Problem,
    found: Sequence[Candidate],
    parts: Sequence[tuple[Array, Array]],
    data: Data | Array,
    middle: Middle,
    bounds: Bounds | None,
) -> Candidate:
    """The best candidate with estimates in place of its answers, which are right at the centre of the data.

    Args: parts, error terms (q, n), and the rows (m, n) of the target that are estimated for these; bounds, those that
        are known of all estimates, else data are looked for at which there may be no better ones.
    """
    tried, watch = list[Estimates](), _watch(problem)
    for one in found:
        if one.mechanism is not None and one.admissible:
            release = one.mechanism.release
            strategy = release.strategy.to_float() / np.sqrt(release.row_variances())[:, None]
            rules = tuple(
                answered(errors, strategy, data)
                if isinstance(data, np.ndarray)
                else at_worst(errors, strategy, data, watch=watch)
                for errors, _ in parts
            )
            tried.append(Estimates(max(rule.value for rule in rules), one, one.mechanism, rules))
    best = min(tried, key=lambda one: one.value)
    release = best.mechanism.release
    outputs = np.vstack(
        [_estimates(target, release, rule.covariance) for (_, target), rule in zip(parts, best.rules, strict=True)]
    )
    matrix, centre = rounded(outputs), moments(problem.block)[0] if problem.block.law else middle.inputs
    at = fmpq_mat(len(centre), 1, list(map(rational, centre)))
    # exactly what is asked for, at the centre
    shift = laid_out(problem.block.target) * at - exact(matrix) * (exact(release.strategy) * at)
    made = replace(
        release,
        outputs_matrix=matrix,
        inputs_matrix=None,
        output_grid=output_grid(np.sqrt(outputs**2 @ release.row_variances())),
        shift=tuple(map(fraction, shift.entries())),
    )
    made = replace(made, domination=domination(problem, made, middle.sets))
    if bounds is None:
        bounds = tuple(_signs(best.rules[0].roots, data, problem.system.inputs_count))
    return _candidate(problem, best.answers, made, replace(best.mechanism, bounds=bounds))


def _jointly(problem: Problem, found: Sequence[Candidate], middle: Middle) -> Iterator[Candidate]:
    """From the answers of each candidate, and from answers that are sought for such estimates."""
    size = problem.system.inputs_count
    data = _covariance(problem.block, size) if problem.block.law else _data(middle, size)
    design = _design(problem, data)
    some = [*found, *([] if design is None else _designed(problem, design.rule))][: None if size <= JOINTLY else 1]
    bounds = () if design is None else tuple(_bounds(design, data))
    yield _estimated(problem, some, [(problem.errors, problem.system.target)], data, middle, bounds or None)


def _data(middle: Middle, size: int) -> Data:
    """What inputs may hold around their middle: of counts nothing worse is looked for than one full cell, or none."""
    apart, free, radii, starts = np.zeros((size, size)), list[int](), list[float](), list[int]()
    for one in middle.sets:
        if all(len(moves) == 1 for moves in one.corners):
            starts.append(len(free))
            free += [moves[0][0] for moves in one.corners]
            radii += [float(moves[0][1]) for moves in one.corners]
            continue
        corners = np.zeros((size, len(one.corners)))
        for j, moves in enumerate(one.corners):
            for i, amount in moves:
                corners[i, j] = float(amount)
        apart += corners @ corners.T / (len(one.corners) - 1)
    return Data(apart, np.array(free, dtype=np.intp), np.array(radii), np.array(starts, dtype=np.intp))


def _one_by_one(problem: Problem, found: Sequence[Candidate], middle: Middle) -> Iterator[Candidate]:
    """Of the largest error of several outputs, each by itself: the best estimate of each for its own worst data."""
    system, rows = problem.system, problem.system.error_map
    if problem.block.law is not None or system.groups is not None or len(problem.errors) > FEW:
        return
    if not rows.shape == (len(system.target),) * 2 == (rows.nnz, rows.nnz) or not np.all(rows.diagonal()):
        return
    data = _data(middle, system.inputs_count)
    design, shares = _of_largest(problem, data)
    bounds: Bounds = ()
    if design is not None:
        found = [*found, *_designed(problem, design.rule)]
        given = {"loss_weights": [str(share) for share in shares_of(shares)]}
        bounds = tuple({**one, "of": {**one["of"], **given}} for one in _bounds(design, data))
    parts = [(errors[None], target[None]) for errors, target in zip(problem.errors, system.target, strict=True)]
    yield _estimated(problem, found, parts, data, middle, bounds)


def _of_largest(problem: Problem, data: Data) -> tuple[Design | None, Array]:
    """The best answers for a weighted sum of the errors, of shares under which all are about the same; and these."""
    best, shares = None, np.full(len(problem.errors), 1 / len(problem.errors))
    of_best = shares
    for _ in range(REWEIGHED if problem.system.inputs_count <= WEIGHED else 0):
        weighted = problem.of_squares(np.asarray(problem.system.lowered.errors.weights) * shares)
        design = _design(weighted, data)
        if design is None:
            break
        rule = design.rule
        if best is None or rule.value > best.rule.value:
            best, of_best = design, shares
        noise = (((weighted.errors - rule.off) @ np.linalg.pinv(rule.strategy)) ** 2).sum(axis=1)
        off = np.add.reduceat((rule.off[:, data.free] * data.radii) ** 2, data.starts, axis=1)
        each = (noise + np.sqrt(off).sum(axis=1) ** 2) / shares
        shares = np.maximum(shares * each / each.max(), LIGHT * shares.max())
        shares = shares / shares.sum()
    return best, of_best


def _estimates(target: Array, release: LinearRelease, spread: Array) -> Array:
    """The map (m, k) from noisy answers to the best estimates of target (m, n) for data of a covariance."""
    answers = release.strategy.to_float()
    seen = answers @ spread @ answers.T + np.diag(release.row_variances())
    return np.asarray(target @ np.linalg.lstsq(seen, answers @ spread, rcond=None)[0].T)


def domination(problem: Problem, release: LinearRelease, sets: Sequence[HeldSet]) -> tuple[Fraction, ...] | None:
    """Numbers for the fixed part and each corner by which the kernel bounds squares of biases; None without need."""
    system = problem.system
    if problem.block.law is not None or system.worst or problem.sizes or not sets:
        return None
    image = release.output_map(system.target) @ release.strategy.to_float()
    off = np.asarray(system.error_map @ (image - system.target))
    columns = [sum(off[:, i] * float(v) for i, v in moves) for one in sets for moves in one.corners]
    if min(len(columns), len(off)) >= TERMS:
        return None
    rows = np.array([np.zeros(len(off)), *columns])
    scaling, at = box_scaling(rows @ rows.T), 1
    for one in sets:
        span = slice(at, at + len(one.corners))
        scaling[span] = scaling[span].min()
        at = span.stop
    scaling = np.clip(scaling / scaling[1:].max(), 2.0**-SCALING_BITS, 2.0**SCALING_BITS)
    return tuple(Fraction(value) for value in np.ldexp(np.maximum(np.rint(np.ldexp(scaling, 50)), 1), -50).tolist())


def _covariance(block: Linear, size: int) -> Array:
    """Of the coordinates: those of a table are counts of records, others are independent."""
    found = np.zeros((size, size))
    for held, law in zip(block.held, block.law or (), strict=True):
        at, one = block.places[held.start]
        span = slice(at, at + len(one.numbers))
        if law.chances is None:
            np.fill_diagonal(found[span, span], np.array(one.numbers) * float(law.variance))
        else:
            chances = np.array(list(map(float, law.chances)))
            found[span, span] = (held.records or 0) * (np.diag(chances) - np.outer(chances, chances))
    return found


# --- answers that are sought for such estimates -----------------------------------------------------


Moves = list[tuple[int, float, float]]
"""By coordinate: the view that is strictest there, its budget, and how far one unit moves it and nothing else."""


@dataclass(frozen=True, eq=False, slots=True)
class Design:
    """The best answers for the loss of a problem, by changes of one coordinate each."""

    problem: Problem
    rule: Rule
    moved: Moves


def _moves(problem: Problem, budgets: Sequence[float]) -> Moves | None:
    """Changes of one coordinate each, which are some or all that units make; None where some coordinate has none."""
    found: list[tuple[int, float, float] | None] = [None] * problem.system.inputs_count
    for number, (view, budget) in enumerate(zip(problem.system.views, budgets, strict=True)):
        if view.rows is not None or view.cover != 1 or not budget < np.inf:
            return None
        for i, amount in enumerate(_by_itself(view.differences, len(found)).tolist()):
            old = found[i]
            if amount and (old is None or amount * old[1] > old[2] * budget):
                found[i] = number, budget, amount
    known = [one for one in found if one is not None]
    return known if len(known) == len(found) else None


def _by_itself(differences: Differences, size: int) -> Array:
    """How far each input (n,) moves while no other does."""
    match differences:
        case Vectors(matrix):
            single = matrix[:, np.flatnonzero(np.diff(matrix.indptr) == 1)]
            return np.asarray(abs(single).max(axis=1).toarray()).ravel() if single.shape[1] else np.zeros(size)
        case Boxes(reach=reach):
            return reach
        case Streams(reach=radius):
            return np.full(size, radius)
    return np.zeros(size)


def _design(problem: Problem, data: Data | Array) -> Design | None:
    """The best Gaussian answers, or such as bound all noise of pure epsilon; None where they are not sought."""
    if problem.local or problem.model.trust.shared or problem.system.inputs_count > DESIGNED:
        return None
    budgets = gaussian_budgets(problem)
    if budgets is None:
        epsilons = [epsilon for epsilon in problem.epsilons if epsilon is not None]
        if len(epsilons) < len(problem.epsilons):
            return None
        budgets = problem.unbiased_budgets(map(float, epsilons))
    moved = _moves(problem, budgets)
    if moved is None:
        return None
    moves = np.array([budget / amount for _, budget, amount in moved])
    return Design(problem, designed(problem.errors, moves, np.diag(moves), data, _watch(problem)), moved)


def _designed(problem: Problem, rule: Rule) -> Iterator[Candidate]:
    """The answers of a design, with Gaussian noise, or with Laplace noise of the best scales, as each is allowed."""
    budgets, target = problem.budgets, problem.system.target
    values, vectors = np.linalg.eigh(rule.strategy.T @ rule.strategy)
    kept = values > CARRIED * values[-1]
    strategy = np.sqrt(values[kept])[:, None] * vectors[:, kept].T
    # units may do more than move one coordinate
    known = [
        np.sqrt(largest_norm(strategy, view.differences)) / float(budget)
        for view, budget in zip(problem.system.views, budgets, strict=True)
        if budget is not None
    ]
    strategy = strategy / max([1.0, *known])
    if None not in budgets and problem.family_allowed("gaussian"):
        outputs, rows = target @ np.linalg.pinv(strategy), (len(strategy),) * len(budgets)
        release = exact_gaussian(strategy, outputs, None, rows, problem.system.views, FINE_BITS)
        views = zip(problem.system.views, budgets, rows, strict=True)
        if all(budget is not None and length_up(release, view, count) <= budget for view, budget, count in views):
            mechanism = Mechanism(release, (), None, "the least favourable data", 0, 0.0)
            yield Candidate(DESIGN, "gaussian", np.inf, "", mechanism=mechanism)
    epsilons = [epsilon for epsilon in problem.epsilons if epsilon is not None]
    if len(epsilons) == len(problem.epsilons) and problem.family_allowed("laplace"):
        seen = strategy @ rule.covariance
        outputs = target @ np.linalg.solve(seen @ strategy.T + np.eye(len(seen)), seen).T
        place = Place(Laplace, "on answers chosen for it", strategy, outputs, problem.verdict(Laplace.words, None))
        made = of_scales(problem, place, tuple(epsilons), None)
        if made is not None:
            yield made


def _signs(roots: Array, data: Data | Array, size: int) -> Iterator[dict[str, Any]]:
    """Data that a bound may rest on, beside those that are drawn apart."""
    if isinstance(data, np.ndarray) or not len(data.free):
        return
    found = np.zeros((size, roots.shape[1]))
    found[data.free] = roots
    yield {"alone": str(ALONE), "signs": grid_json(found, ROOT_BITS)}


def _bounds(design: Design, data: Data | Array) -> Iterator[dict[str, Any]]:
    """What bounds the loss of all estimates: data, and how little answers may say of them."""
    problem, rule, moved = design.problem, design.rule, design.moved
    size, moves = problem.system.inputs_count, np.array([budget / amount for _, budget, amount in moved])
    spreads: list[tuple[Array, dict[str, Any]]] = []
    if isinstance(data, np.ndarray):
        spreads.append((data, APART))
    else:
        spreads += [(data.of_signs(rule.roots, float(ALONE)), one) for one in _signs(rule.roots, data, size)]
        spreads.append((data.of_signs(rule.roots, 1.0), APART))
    for covariance, said in spreads:
        inner = _inner(problem, designed(problem.errors, moves, rule.strategy, covariance, _watch(problem)), moved)
        if inner is not None:
            yield {**said, "of": inner}


def _spread(
    functional: Array, _: Sequence[Seen], __: list[scipy.sparse.csc_array], columns: scipy.sparse.csc_array
) -> tuple[str, dict[str, Any], dict[str, Any] | None]:
    return of_spread(functional[:, columns.indices] / columns.data)


def _inner(problem: Problem, rule: Rule, moved: Moves) -> dict[str, Any] | None:
    """The bound of a design in whole numbers: Z = E (C^-1 + X)^-1, Z'Z at most the sum of p d d' for differences d.

    Returns: None where no difference weighs anything: the best estimate is then a constant.
    """
    functional = problem.errors @ unknown(rule)
    gram = rule.strategy.T @ rule.strategy
    masses = np.maximum(np.einsum("ji,jk,ki->i", functional, functional, gram), 0) / np.diagonal(gram)
    views, pure = dict[int, Seen](), gaussian_budgets(problem) is None
    for number, view in enumerate(problem.system.views):
        mine = [i for i, (of, *_) in enumerate(moved) if of == number and masses[i] > LIGHT * masses.max()]
        if not mine:
            continue
        budget = moved[mine[0]][1]
        lengths = np.array([moved[i][2] for i in mine])
        columns = scipy.sparse.csc_array((lengths, (mine, range(len(mine)))), shape=(len(moved), len(mine)))
        visible = np.ones(problem.system.outputs_count, dtype=bool)
        mu = None if pure else mu_up(view.requirement.measure, budget)
        own = Seen(view.index, mu, budget, visible, columns, masses[mine] / lengths**2 * budget**2)
        views[view.index] = own if view.index not in views else views[view.index].joined(own)
    if not views:
        return None
    return {"loss_weights": None, "prices": None, **witness_of(list(views.values()), partial(_spread, functional))}


# --- one factor for each answer ------


def _factors(problem: Problem, best: Candidate, release: LinearRelease, middle: Middle) -> Iterator[Array]:
    """Factors (m,) that may be best: one for all outputs, and one for each that is an error term by itself."""
    size = problem.system.outputs_count
    if problem.sizes:
        yield np.zeros(size)
        return
    yield np.full(size, middle.loss / (middle.loss + best.loss))
    rows = problem.system.error_map
    if rows.shape == (size, size) == (rows.nnz, rows.nnz) and np.all(rows.diagonal()):
        weights = rows.diagonal() ** 2
        squares = middle.far**2
        noise = weights * release.output_variances(problem.system.target)
        with np.errstate(invalid="ignore"):
            yield np.where(noise > 0, squares / (squares + noise), 1.0)


def shrunk(problem: Problem, release: LinearRelease, factors: Array, values: Array) -> LinearRelease | None:
    """The release with each output times its factor, and the public value for the rest; None where it is too large."""
    short = np.ldexp(np.rint(np.ldexp(factors, 40)), -40)
    shift = tuple(Fraction(value) for value in ((1 - short) * values).tolist())
    deviations = np.sqrt(release.output_variances(problem.system.target)) * short
    alike = bool(np.all(short == short[0]))
    outputs: DyadicMatrix | None = release.outputs_matrix
    inputs = None
    if outputs is None and release.inputs_matrix is not None:
        if alike:
            inputs = rounded(release.inputs_matrix.to_float() * short[0])
        elif len(problem.system.target) * release.strategy.shape[0] <= LARGEST:
            outputs = rounded(release.output_map(problem.system.target) * short[:, None])
        else:
            return None
    elif outputs is not None:
        outputs = rounded(outputs.to_float() * short[:, None])
    grid = output_grid(deviations)
    return replace(release, outputs_matrix=outputs, inputs_matrix=inputs, output_grid=grid, shift=shift)
