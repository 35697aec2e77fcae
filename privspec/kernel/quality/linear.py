"""What additive noise is worth, from what is executed: averages, losses, covariances, places of noise, bounds."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from flint import fmpz_mat

from privspec.kernel.core import linear as core
from privspec.kernel.core.case import Case, Rules
from privspec.kernel.core.linear import Matrix
from privspec.kernel.core.linear_privacy import judge, let_through
from privspec.kernel.core.problem import Frame, View
from privspec.kernel.core.reading import Item, Refused
from privspec.kernel.quality import linear_bound as bounds
from privspec.kernel.quality.linear_figures import (
    beside,
    columns_of,
    covariance,
    doubles,
    error_rows,
    identity,
    laplace_variance,
    loss_value,
    minus,
    nearest,
    row_squares,
    whole_numbers,
)

BIAS = Fraction(1, 10**6)
"""Share of a standard deviation by which an average may be off."""
ROUNDED = Fraction(1, 10**3)
"""Share of a standard deviation by which rounding to grids may move an output."""
COUNT = 1000
"""For inputs without bounds (counts): the size up to which a bias is judged."""
COVARIANCE_LIMIT = 512
"""Up to so many outputs a plan states their covariance."""
OPTIMAL_GAP = Fraction(1, 10**6)
CLOSE = 10**9
"""Inverse of the share by which noise may differ from that of the places named, and exceed what a line asks for."""
COMBINED = "combinations of the inputs"
MEETING = "Gaussian noise of any covariance that meets the accuracy lines, unbiased"


class Linear(Rules):
    """Answers that are linear in the data, with additive noise."""

    def judge(self, case: Case) -> object:
        """Privacy first, then what the noise is worth."""
        family, sites, executed, shown = case.mechanism.fields(
            "family", "sites", "executed", optional=("output_covariance",)
        )
        views, bound = case.claims.fields("views", "bound")
        release = judge(case, family, executed, views)
        block = release.problem
        found = Figures.of(release)
        averages(case, block, found)
        grids(case, release, found)
        places(case, release, found, sites, shown)
        accuracy(case, block, found)
        loss(case, release, found, bound)
        return release

    def reach(
        self, case: Case, executed: object, view: View, outputs: tuple[str, ...], witness: Item
    ) -> dict[str, Fraction] | None:
        """Mu of Gaussian noise, epsilon of the others."""
        assert isinstance(executed, core.Release)
        return let_through(case, executed, view, outputs, witness)


@dataclass(frozen=True, slots=True)
class Figures:
    """From independent noise of `variances` (k,) to the outputs: `noise` (m, k); `mean` (m, n): what they average.

    `spread`: the variance of each output; `squares`: the expected square of each error term of the loss; `value`: the
    loss; `lines`: what each accuracy line bounds.
    """

    noise: Matrix
    mean: Matrix
    variances: list[Fraction]
    spread: list[Fraction]
    squares: list[Fraction]
    value: Fraction
    lines: list[Fraction]

    @classmethod
    def of(cls, release: core.Release) -> Figures:
        """Exactly, from the matrices that are executed."""
        block = release.problem
        noise = block.target @ release.reconstruction if release.of_inputs else release.reconstruction
        rows = noise.whole.ncols()
        if release.noise.shape == "gaussian":
            variances = [release.noise.scales[0] ** 2] * rows
        elif release.noise.shape == "laplace":
            known = {scale: laplace_variance(scale, release.grid) for scale in set(release.noise.scales)}
            variances = [known[scale] for scale in release.noise.scales]
        elif release.noise.shape == "knorm-l2":
            variances = [(rows + 1) * release.noise.scales[0] ** 2] * rows
        else:
            raise Refused(f"no variance is known of noise of the shape {release.noise.shape}")
        asked = [(block.errors, block.worst), *((errors, False) for errors, *_ in block.accuracy)]
        squares = [row_squares(error_rows(errors.terms, noise), variances) for errors, _ in asked]
        pairs = zip(squares, asked, strict=True)
        value, *lines = (loss_value(own, errors.weights, worst) for own, (errors, worst) in pairs)
        spread = row_squares(noise, variances)
        return cls(noise, noise @ release.strategy, variances, spread, squares[0], value, lines)


def averages(case: Case, block: core.Linear, found: Figures) -> None:
    """What is released averages to what it is for, over all inputs of the box; constants enter as the problem says."""
    middle, half = _box(block)
    ends, unit = whole_numbers([*half, *middle])
    off, n = minus(found.mean, block.target), len(middle)
    rows = [
        [*(v * h for v, h in zip(row, ends[:n], strict=True)), sum(v * c for v, c in zip(row, ends[n:], strict=True))]
        for row in off.rows
    ]
    moved = Matrix(fmpz_mat(rows), off.unit * unit)
    terms = error_rows(block.errors.terms, moved)
    share = max(_largest_share(moved, found.spread), _largest_share(terms, found.squares))
    counts = f" (counts up to {COUNT})" if any(h == COUNT for h in half) else ""
    text = f"averages are what the problem asks for, within {float(share):.1e} standard deviations{counts}"
    case.says("unbiased", share <= BIAS, text)


def _largest_share(moved: Matrix, squares: list[Fraction]) -> Fraction:
    """The largest row of absolute values, as a share of the root of a square, rounded up; in its own units where 0."""
    worst = Fraction(0)
    for row, square in zip(moved.rows, squares, strict=True):
        size = sum(abs(v) for v in row) * moved.unit
        worst = max(worst, size * size / square if square else size * size)
    return Fraction(isqrt(int(worst * 2**120)) + 1, 2**60) if worst else worst


def _box(block: core.Linear) -> tuple[list[Fraction], list[Fraction]]:
    """Centre and half width of every input; counts up to the number of records, or up to `COUNT`."""
    ends: list[tuple[Fraction, Fraction]] = []
    for held in block.held:
        low, high = (-held.ball[0], held.ball[0]) if held.ball else (held.lower, held.upper)
        if held.cells and held.records is not None:
            low, high = Fraction(0), Fraction(held.records)
        if low is None or high is None:
            low, high = Fraction(-COUNT), Fraction(COUNT)
        ends += [(low * copies, high * copies) for copies in block.places[held.start][1].numbers]
    return [(low + high) / 2 for low, high in ends], [(high - low) / 2 for low, high in ends]


def grids(case: Case, release: core.Release, found: Figures) -> None:
    """Rounding of inputs, of noisy answers and of outputs moves no output by more than a share of its deviation.

    Numbers are rounded to the nearest point, vectors of a ball towards its centre; whole numbers of counts not at all.
    """
    block, step = release.problem, list[Fraction]()
    for held, grid in zip(block.held, release.steps, strict=True):
        own = Fraction(0) if held.cells else grid * held.width / (1 if held.ball else 2)
        step += [own * copies for copies in block.places[held.start][1].numbers]
    steps, unit = whole_numbers(step)
    whole = release.strategy.unit.denominator == 1 and release.grid == 1 and not any(step)
    answer = Fraction(0) if whole or release.round_outputs else found.noise.unit * release.grid / 2
    below = found.noise.unit.denominator
    exact = whole and not any(v % below for row in found.noise.rows for v in row)
    exact = exact and release.output_grid == 1 and not any(v.denominator > 1 for v in block.offset)
    shared, unit, worst = Fraction(0) if exact else release.output_grid / 2, unit * block.target.unit, Fraction(0)
    for target, noise, square in zip(block.target.rows, found.noise.rows, found.spread, strict=True):
        moved = shared + answer * sum(map(abs, noise)) if answer else shared
        moved += unit * sum(abs(v) * s for v, s in zip(target, steps, strict=True) if s)
        worst = max(worst, moved * moved / square if square else moved * moved)
    text = f"rounding to grids moves no output by more than {float(worst) ** 0.5:.1e} of its standard deviation"
    case.says("rounding", worst <= ROUNDED**2, text)


# --- covariance and places of noise ------------------------------------------------------------------


def places(case: Case, release: core.Release, found: Figures, sites: Item, shown: Item) -> None:
    """The covariance that is stated is the executed one, and noise enters where the problem lets it."""
    block, listed = release.problem, sites.items()
    small = block.size <= COVARIANCE_LIMIT
    shown.same(doubles(covariance(found.noise, found.variances)) if small else None)
    if not listed or not isinstance(listed[0].value, dict) or sorted(listed[0].value) != ["at", "variance"]:
        sites.same(stated_sites(release, found))
        together = release.noise.shape != "laplace"
        text = "one law of noise for all outputs together" if together else "Laplace noise at the places named"
        case.says("sites", block.sites is None or not together, text)
        return
    pairs = [site.fields("at", "variance") for site in listed]
    names, parts = [at.text() for at, _ in pairs], [place(block, at.text()) for at, _ in pairs]
    if len(set(names)) < len(names) or release.noise.shape != "gaussian":
        raise sites.wrong("are not places of Gaussian noise, each named once")
    stated = [
        Fraction(one.double()) for (_, at), part in zip(pairs, parts, strict=True)
        for one in at.items(part.whole.ncols())
    ]  # fmt: skip
    if min(stated) < 0:
        raise sites.wrong("have a variance below zero")
    same = _same_covariance(covariance(found.noise, found.variances), covariance(beside(parts), stated))
    case.says("sites", same, f"independent noise at {_listed(names)} has the covariance that is executed")


def widths(block: core.Linear) -> dict[str, int]:
    """The places where noise may enter, those named, or else inputs and outputs, and how many numbers each has."""
    if block.sites is not None:
        return {name: map_.whole.ncols() for name, map_ in block.sites}
    inputs = {one.name: one.stop - one.start for one in _laid_out(block)}
    return inputs | {one.name: one.stop - one.start for one in block.released}


def _laid_out(block: core.Linear) -> list[core.Held]:
    """The inputs whose numbers are coordinates by themselves, not added up."""
    return [one for one in block.held if max(block.places[one.start][1].copies) == 1]


def place(block: core.Linear, name: str) -> Matrix:
    """How noise at a place reaches the outputs (m, K).

    Raises: Refused where noise may not enter there.
    """
    for known, map_ in block.sites or ():
        if known == name:
            return map_
    if block.sites is None:
        for one in (one for one in _laid_out(block) if one.name == name):
            at, _ = block.places[one.start]
            return columns_of(block.target, at, at + one.stop - one.start)
        for own in (own for own in block.released if own.name == name):
            return columns_of(identity(block.size), own.start, own.stop)
    raise Refused(f"the problem does not let noise enter at {name[:40]}")


def stated_sites(release: core.Release, found: Figures) -> list[dict[str, object]]:
    """What a plan says of correlated Gaussian noise, of Laplace noise, and of a K-norm vector.

    Raises: Refused for Laplace noise that does not enter at places where the problem lets it.
    """
    block, scales = release.problem, release.noise.scales
    names = [one.name for one in block.released]
    if release.noise.shape == "gaussian":
        spread = nearest(found.spread)
        return [
            {"at": one.name, "covariance": "full", "variance": spread[one.start : one.stop]} for one in block.released
        ]
    if release.noise.shape == "knorm-l2":
        parameters = {"scale": str(scales[0]), "rows": found.noise.whole.ncols()}
        return [{"at": " and ".join(names), "shape": "knorm-l2", "parameters": parameters, "grid": str(release.grid)}]
    known = widths(block)
    inputs = [one.name for one in block.held if one.name in known]
    together = [inputs, names] if block.sites is None else [list(known)]
    for chosen in [*([name] for name in known), *together]:
        fits = sum(known[name] for name in chosen) == found.noise.whole.ncols()
        if fits and _same_matrix(found.noise, beside([place(block, name) for name in chosen])):
            return [{"at": " and ".join(chosen), "scale": nearest(list(scales))}]
    if block.sites is not None:
        raise Refused("the noise does not enter where the problem lets it")
    return [{"at": COMBINED, "scale": nearest(list(scales))}]


def _same_matrix(found: Matrix, wanted: Matrix) -> bool:
    """Whether a matrix is another of its shape but for the rounding of a reconstruction."""
    apart = minus(found, wanted)
    size = max((abs(v) for row in wanted.rows for v in row), default=0) * wanted.unit
    return max((abs(v) for row in apart.rows for v in row), default=0) * apart.unit * 2**50 <= size


def _same_covariance(executed: Matrix, stated: Matrix) -> bool:
    """Whether two covariances differ by less than 1 / `CLOSE` of the deviations of each pair of outputs."""
    apart = minus(stated, executed)
    scale = int(executed.unit / apart.unit)
    deviations = [isqrt(int(executed.whole[i, i]) * scale) for i in range(executed.whole.nrows())]
    return all(
        abs(v) * CLOSE <= a * b + 1
        for a, row in zip(deviations, apart.rows, strict=True)
        for b, v in zip(deviations, row, strict=True)
    )


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


# --- accuracy, loss, bound ---------------------------------------------------------------------------


def accuracy(case: Case, block: core.Linear, found: Figures) -> None:
    """Every accuracy line holds, and its figures are those of the noise that is executed."""
    case.accuracy.same(
        [
            {"line": line, "text": text, "value": value, "bound": nearest([bound])[0]}
            for (_, bound, line, text), value in zip(block.accuracy, nearest(found.lines), strict=True)
        ]
    )
    for number, ((_, bound, line, _), value) in enumerate(zip(block.accuracy, found.lines, strict=True)):
        over = f", met to within {float(value / bound - 1):.0e} of it" if value > bound > 0 else ""
        text = f"line {line}: {float(value):.8g}, asked for at most {float(bound):.8g}{over}"
        case.says("accuracy", value * CLOSE <= bound * (CLOSE + 1), text, number)


def loss(case: Case, release: core.Release, found: Figures, witness: Item) -> None:
    """The loss is the exact one, and no mechanism of those named has less than the bound."""
    value, low, gap, expression, units, among, kind = case.loss.fields(
        "value", "lower_bound", "relative_gap", "expression", "units", "among", "kind"
    )
    block, (exact,) = release.problem, nearest([found.value])
    value.same(exact)
    expression.same(block.loss)
    units.same("squared units of " + " and ".join(one.name for one in block.released))
    kind.same("worst" if block.worst else "expected")
    case.says("loss", True, f"the loss of what is executed is {exact:.10g}")
    if witness.absent or low.absent:
        for item in (witness, low, gap):
            item.same(None)
        among.same("")
        if case.status == "optimal":
            case.says("bound", False, "the plan is said to be optimal without a bound")
        return
    derived, words = proved(case.frame, release, witness)
    if among.text() not in words:
        raise among.wrong("is not what the bound is about")
    stated = Fraction(low.double())
    apart = (Fraction(exact) - stated) / Fraction(abs(exact) or 1.0)
    gap.same(nearest([apart])[0])
    holds = 0 <= stated <= derived and apart >= 0
    case.says("bound", holds, f"the loss of {among.text()} is at least {min(float(stated), float(derived)):.8g}")
    if case.status == "optimal":
        case.says("bound", apart <= OPTIMAL_GAP, f"the loss is within {float(apart):.1e} of the bound")


def proved(frame: Frame, release: core.Release, item: Item) -> tuple[Fraction, tuple[str, ...]]:
    """The bound of a witness, and the words for the mechanisms that it is about.

    Raises: Refused.
    """
    block = release.problem
    scope, weights, prices, *witness = item.fields(
        "scope", "loss_weights", "prices", "unit", "differences", "vectors", "slack"
    )
    terms, chosen = block.errors.terms, list(block.errors.weights)
    if block.worst:
        shares = [share.exact(0) for share in weights.items(len(chosen))]
        if sum(shares) != 1:
            raise weights.wrong("do not sum to one")
        chosen = [share * w for share, w in zip(shares, chosen, strict=True)]
    else:
        weights.same(None)
    paid, pure, gaussian = Fraction(0), release.noise.shape != "gaussian", "independent Gaussian noise "
    priced = [] if prices.absent else list(zip(prices.items(len(block.accuracy)), block.accuracy, strict=True))
    for price, (errors, bound, *_) in priced:
        terms += errors.terms
        chosen += [price.exact(0) * w for w in errors.weights]
        paid += price.exact() * bound
    maps, target, seen = None, block.target, [_seen(block, asked.seen) for asked in frame.obligations]
    if scope.text() == "full":
        words = _pure_words(block) if pure else ("Gaussian noise of any covariance, unbiased", MEETING)[bool(priced) :]
    elif scope.text() == "sites" and block.sites is not None and not pure:
        maps = beside([map_ for _, map_ in block.sites])
        words = (f"{gaussian}at {_listed([name for name, _ in block.sites])}, unbiased",)
    elif scope.text() == "messages" and frame.trust == "nobody" and not pure:
        image = error_rows(terms, target)
        terms = tuple({i: v * image.unit for i, v in enumerate(row) if v} for row in image.rows)
        target = maps = identity(block.inputs)
        words, seen = (f"{gaussian}on each party's own values, unbiased",), [[True] * block.inputs for _ in seen]
    else:
        raise scope.wrong("is not what the problem confines noise to")
    if priced and MEETING not in words:
        raise prices.wrong("are for Gaussian noise of any covariance")
    views = [
        bounds.View(
            visible,
            [bounds.Difference.of(one, block.places) for one in differences],
            asked.measure.name,
            asked.measure.figures({}),
        )
        for asked, visible, differences in zip(frame.obligations, seen, block.differences, strict=True)
    ]
    return bounds.lower_bound(bounds.Aim(target, terms, chosen, paid, maps), views, pure, witness), words


def _seen(block: core.Linear, names: tuple[str, ...]) -> list[bool]:
    return [one.name in names for one in block.released for _ in range(one.start, one.stop)]


def _pure_words(block: core.Linear) -> tuple[str, ...]:
    """What a bound for pure epsilon is about: where all differences start from one world, every unbiased mechanism.

    Single numbers all rise from their lower ends, and records come to, or move between, cells that hold some.
    """
    listed = [difference for some in block.differences for difference in some]
    units = [one for one in listed if isinstance(one, core.Units)]
    single = all(one.count == len(one.parts) == one.parts[0].length == 1 for one in units)
    records = all(one.records is None for one in block.held)
    every = ("all unbiased mechanisms of the same pure epsilon",) if single and records else ()
    return (*every, "additive noise of the same pure epsilon, unbiased")
