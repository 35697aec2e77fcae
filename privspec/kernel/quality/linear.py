"""What additive noise is worth, from what is executed: averages, losses, covariances, places of noise, bounds."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

from privspec.kernel.core import linear as core
from privspec.kernel.core.case import Case, Rules
from privspec.kernel.core.linear import Held, Linear, Matrix, Release
from privspec.kernel.core.linear_privacy import judge, let_through
from privspec.kernel.core.problem import View
from privspec.kernel.core.reading import Item
from privspec.kernel.quality.linear_bound import listed, proved
from privspec.kernel.quality.linear_figures import (
    Figures,
    beside,
    covariance,
    doubles,
    error_rows,
    identity,
    minus,
    nearest,
    turned,
)
from privspec.kernel.quality.stated import CLOSE, judge_lines, judge_loss, whole_numbers

BIAS = Fraction(1, 10**6)
"""Share of a standard deviation by which an average may be off."""
ROUNDED = Fraction(1, 10**3)
"""Share of a standard deviation by which rounding to grids may move an output."""
COUNT = 1000
"""For inputs without bounds (counts): the size up to which a bias is judged."""
COVARIANCE_LIMIT = 512
"""Up to so many outputs a plan states their covariance."""
COMBINED = "combinations of the inputs"


class LinearRules(Rules):
    """Answers that are linear in the data, with additive noise: privacy first, then what the noise is worth."""

    def judge(self, case: Case) -> object:
        family, sites, executed, shown = case.mechanism.fields(
            "family", "sites", "executed", optional=("output_covariance",)
        )
        views, bound = case.claims.fields("views", "bound")
        release = judge(case, family, executed, views)
        block, found = release.problem, Figures.of(release)
        averages(case, block, found)
        grids(case, release, found)
        small = block.size <= COVARIANCE_LIMIT
        shown.same(doubles(covariance(found.noise, found.variances)) if small else None)
        places(case, release, found, sites)
        figures = zip(block.accuracy, nearest(found.lines), strict=True)
        case.accuracy.same(
            [
                {"line": line, "text": text, "value": value, "bound": nearest([bound])[0]}
                for (_, bound, line, text), value in figures
            ]
        )
        limits = [(line, limit, value) for (_, limit, line, _), value in zip(block.accuracy, found.lines, strict=True)]
        judge_lines(case, limits, Fraction(1, CLOSE))
        derived, classes = (None, ("",)) if bound.absent else proved(case.frame, release, bound)
        units = "squared units of " + " and ".join(one.name for one in block.released)
        words = [block.loss, units, "worst" if block.worst else "expected"]
        judge_loss(case, found.value, derived, classes, "such mechanism", words)
        return release

    def reach(
        self, case: Case, executed: object, view: View, outputs: tuple[str, ...], witness: Item
    ) -> dict[str, Fraction] | None:
        """Mu of Gaussian noise, epsilon of the others."""
        assert isinstance(executed, core.Release)
        return let_through(case, executed, view, outputs, witness)


def averages(case: Case, block: Linear, found: Figures) -> None:
    """What is released averages to what it is for, over all inputs of the box; constants enter as the problem says."""
    reach = [_reach(held) * copies for held in block.held for copies in block.places[held.start][1].numbers]
    off, (sizes, unit), worst = minus(found.mean, block.target), whole_numbers(reach), Fraction(0)
    for moved, squares in ((off, found.spread), (error_rows(block.errors.terms, off), found.squares)):
        for row, square in zip(moved.rows, squares, strict=True):
            size = sum(abs(v) * most for v, most in zip(row, sizes, strict=True)) * moved.unit * unit
            worst = max(worst, size**2 / (square or 1))
    counts = f" (counts up to {COUNT})" if COUNT in reach else ""
    text = f"averages are what the problem asks for, within {float(worst) ** 0.5:.1e} standard deviations{counts}"
    case.says("unbiased", worst <= BIAS**2, text)


def _reach(held: Held) -> Fraction:
    """The largest size of an input; of counts the number of records, or `COUNT`."""
    if held.ball or (held.cells and held.records is not None):
        return held.ball[0] if held.ball else Fraction(held.records or 0)
    return Fraction(COUNT) if held.lower is None or held.upper is None else max(abs(held.lower), abs(held.upper))


def grids(case: Case, release: Release, found: Figures) -> None:
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
        worst = max(worst, moved**2 / (square or 1))
    text = f"rounding to grids moves no output by more than {float(worst) ** 0.5:.1e} of its standard deviation"
    case.says("rounding", worst <= ROUNDED**2, text)


# --- places of noise ---------------------------------------------------------------------------------


def places(case: Case, release: Release, found: Figures, sites: Item) -> None:
    """Noise enters where the problem lets it, as stated: Laplace noise itself, Gaussian noise in its covariance."""
    stated, key = sites.items(), {"laplace": "scale", "gaussian": "variance"}.get(release.noise.shape)
    if not stated or not isinstance(stated[0].value, dict) or set(stated[0].value) != {"at", key}:
        sites.same(together(release, found))
        case.says("sites", release.problem.sites is None, "one law of noise for all outputs together")
        return
    pairs = [site.fields("at", str(key)) for site in stated]
    figures = [one.double() for _, own in pairs for one in own.items()]
    names = [name for at, _ in pairs for name in at.text().split(" and ")]
    maps = beside([place(release, found, sites, name) for name in names])
    if len(set(names)) < len(names) or len(figures) != maps.whole.ncols() or min(figures) < 0:
        raise sites.wrong("are not places, each named once, with a variance or scale from 0 on for each number")
    if key == "scale":
        holds = figures == nearest(list(release.noise.scales)) and same_map(found.noise, maps)
    else:
        holds = same_covariance(
            covariance(found.noise, found.variances), covariance(maps, list(map(Fraction, figures)))
        )
    case.says(
        "sites", holds, f"independent noise at {listed(names)} is the {release.noise.shape} noise that is executed"
    )


def place(release: Release, found: Figures, item: Item, name: str) -> Matrix:
    """How noise at a place reaches the outputs (m, K).

    Raises: Refused where noise may not enter there.
    """
    block, maps = release.problem, dict(release.problem.sites or ())
    if block.sites is None:
        inputs = [(one.name, *block.places[one.start]) for one in block.held]
        # numbers that are added up have no place of their own
        parts = [(own, block.target, at, one.length) for own, at, one in inputs if max(one.copies) == 1]
        parts += [(one.name, identity(block.size), one.start, one.stop - one.start) for one in block.released]
        maps = {COMBINED: found.noise}
        for own, whole, at, size in (part for part in parts if part[0] == name):
            maps[own] = turned(turned(whole).some(list(range(at, at + size))))
    if name not in maps:
        raise item.wrong(f"are not right: the problem does not let noise enter at {name[:40]}")
    return maps[name]


def together(release: Release, found: Figures) -> list[dict[str, object]]:
    """What a plan says of correlated Gaussian noise, and of a K-norm vector."""
    outputs, scale = release.problem.released, str(release.noise.scales[0])
    if release.noise.shape == "gaussian":
        spread = nearest(found.spread)
        return [{"at": one.name, "covariance": "full", "variance": spread[one.start : one.stop]} for one in outputs]
    parameters, names = {"scale": scale, "rows": found.noise.whole.ncols()}, [one.name for one in outputs]
    return [{"at": " and ".join(names), "shape": "knorm-l2", "parameters": parameters, "grid": str(release.grid)}]


def same_map(found: Matrix, wanted: Matrix) -> bool:
    """Whether a matrix is another one but for the rounding of a reconstruction."""
    if found.whole.ncols() != wanted.whole.ncols():
        return False
    apart, size = minus(found, wanted), max((abs(v) for row in wanted.rows for v in row), default=0) * wanted.unit
    return max((abs(v) for row in apart.rows for v in row), default=0) * apart.unit * 2**50 <= size


def same_covariance(executed: Matrix, stated: Matrix) -> bool:
    """Whether two covariances differ by less than 1 / `CLOSE` of the deviations of each pair of outputs."""
    apart = minus(stated, executed)
    scale = int(executed.unit / apart.unit)
    sizes = [isqrt(int(executed.whole[i, i]) * scale) for i in range(executed.whole.nrows())]
    pairs = zip(sizes, apart.rows, strict=True)
    return all(abs(v) * CLOSE <= a * b + 1 for a, row in pairs for b, v in zip(sizes, row, strict=True))
