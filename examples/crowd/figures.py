"""Figures 1 to 10 of Wang et al. 2019: which candidates on which crowds; those with real data on kidney decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from crowds import Array, Candidate, Source, algorithm, find, found, personal, synthetic
from kidney import HALF, halves
from readings import uncalibrated

EPSILONS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10)
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
CAREFUL = (0.01, 0.1, 0.2, 0.3, 0.4, 0.5)
MODERATE = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
BOUNDS = (0.5, 1, 2, 3, 5)
SIZES = (10, 50, 100)
KIDNEY_SIZES = (33, 66, 132)
BEST = {
    "RLCP: sum of records, K-norm l2": ("rlcp", "records(society)", "knorm", "l2"),
    "VLCP: signs, K-norm l_inf": ("vlcp", "signs(society)", "knorm", "linf"),
    "RLDP: sum of records, K-norm l2": ("rldp", "records(beta)", "knorm", "l2"),
    "VLDP: directions, Duchi": ("vldp", "direction(beta)", "sphere", ""),
}
"""What the compiler puts first at epsilon 1. R, V: records or voters protected; C, D: a keeper or nobody trusted."""

Reading: TypeAlias = Callable[[Candidate], Candidate]
READINGS: Mapping[str, Reading] = {"calibrated": lambda one: one, "as printed": uncalibrated}


@dataclass(frozen=True, eq=False, slots=True)
class Curve:
    """Candidates along an axis, on crowds of one kind; `best` if it is none of the paper's algorithms."""

    label: str
    candidates: Mapping[float, Candidate]
    source: Source
    best: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Panel:
    """Curves over one axis; `relative`: to the accuracy without privacy."""

    title: str
    axis: str
    curves: tuple[Curve, ...]
    relative: bool = False


def figures(decisions: Array | None) -> Iterator[tuple[int, str, Callable[[], list[Panel]]]]:
    """Number, title and panels of each figure; those with real data only where there are some."""
    for k in (1, 2, 3):
        yield k, f"Algorithm {k}, synthetic societies", lambda k=k: _by_size(k)
    yield 4, "Algorithms 1, 2 and 3, and the best found", _compared
    yield 5, "Algorithms 1 and 3, by dimension", _by_dimension
    yield 6, "Algorithm 3, personalised epsilon", _personalised
    yield 7, "Algorithms 1 and 2, by the bound B (epsilon 1)", _by_bound
    if decisions is not None:
        yield 8, "Real decisions (kidney allocation)", lambda: _real(decisions)
        yield 9, "Real decisions (kidney allocation), personalised epsilon", lambda: _real_personalised(decisions)
    yield 10, "Accuracy relative to that without privacy", lambda: _relative(decisions)


def over_epsilon(number: int, label: str, source: Source | None = None, **parameters: Any) -> Curve:
    """One of the paper's algorithms at all epsilons."""
    candidates = {e: algorithm(number, e, **parameters) for e in EPSILONS}
    return Curve(label, candidates, source or synthetic(candidates[1].system))


def best_over_epsilon(label: str, source: Source | None = None, **parameters: Any) -> Curve:
    """One of the best at all epsilons."""
    paradigm, at, family, shape = BEST[label]
    candidates = {e: found(paradigm, at, family, e, shape, **parameters) for e in EPSILONS}
    return Curve(label, candidates, source or synthetic(candidates[1].system), best=True)


def _by_size(number: int) -> list[Panel]:
    voters = tuple(over_epsilon(number, f"N = {size}", N=size) for size in SIZES)
    records = tuple(over_epsilon(number, f"n = {size}", n=size) for size in SIZES)
    return [Panel("n = 50 decisions of a voter", "epsilon", voters), Panel("N = 50 voters", "epsilon", records)]


def _compared() -> list[Panel]:
    paper = tuple(over_epsilon(k, f"Algorithm {k}") for k in (1, 2, 3))
    return [Panel("N = 50, n = 50, d = 10", "epsilon", (*paper, *(best_over_epsilon(label) for label in BEST)))]


def _by_dimension() -> list[Panel]:
    return [
        Panel(f"Algorithm {k}", "epsilon", tuple(over_epsilon(k, f"d = {d}", d=d) for d in (5, 15, 25))) for k in (1, 3)
    ]


def _by_bound() -> list[Panel]:
    curves = []
    for k in (1, 2):
        candidates = {b: algorithm(k, 1, B=str(b)) for b in BOUNDS}
        curves.append(Curve(f"Algorithm {k}", candidates, synthetic(candidates[2].system)))
    return [Panel("N = 50, n = 50, d = 10", "B", tuple(curves))]


def groups(voters: int, share: float, careful: float, moderate: float) -> list[str]:
    """Budgets of conservative, moderate (36 %) and liberal voters as section 5.1 draws them, to the hundredth."""
    random = np.random.default_rng(1)
    first, second = round(share * voters), round(0.36 * voters)
    drawn = [random.uniform(careful, moderate, first), random.uniform(moderate, 1, second)]
    return [f"{max(e, 0.01):.2f}" for e in np.concatenate(drawn)] + ["1"] * (voters - first - second)


def _personal_curves(
    settings: Mapping[float, Sequence[str]], source: Source | None = None, **parameters: Any
) -> tuple[Curve, ...]:
    systems = {x: personal(epsilons, **parameters) for x, epsilons in settings.items()}
    source = source or synthetic(next(iter(systems.values())))

    def curve(label: str, at: str, family: str, one_by_one: bool, equal: bool, best: bool) -> Curve:
        candidates = {
            x: Candidate(system, find(system, at, family, finish_first=one_by_one), 0.0, equal)
            for x, system in systems.items()
        }
        return Curve(label, candidates, source, best)

    return (
        curve("Algorithm 3, all voters alike", "objective(beta)", "laplace", True, True, False),
        curve("Algorithm 3, weighted by noise", "objective(beta)", "laplace", True, False, False),
        curve("sum of records, K-norm l2, weighted", "records(beta)", "knorm", False, False, True),
    )


def _personalised() -> list[Panel]:
    return [
        Panel(
            "budgets 0.01 and 0.2",
            "share of conservative voters",
            _personal_curves({f: groups(50, f, 0.01, 0.2) for f in SHARES}),
        ),
        *_personal_panels(50),
    ]


def _personal_panels(voters: int, source: Source | None = None, **parameters: Any) -> list[Panel]:
    careful = {e: groups(voters, 0.54, e, 0.5) for e in CAREFUL}
    moderate = {e: groups(voters, 0.54, 0.01, e) for e in MODERATE}
    return [
        Panel("moderate from 0.5", "least epsilon, conservative", _personal_curves(careful, source, **parameters)),
        Panel("conservative from 0.01", "least epsilon, moderate", _personal_curves(moderate, source, **parameters)),
    ]


def _kidney(voters: int) -> dict[str, Any]:
    return {"N": voters, "n": HALF, "d": 3}


def _real(decisions: Array) -> list[Panel]:
    sources = {size: halves(decisions, size, 2.0) for size in KIDNEY_SIZES}
    panels = []
    for k in (1, 2, 3):
        curves = [over_epsilon(k, f"N = {size}", sources[size], **_kidney(size)) for size in KIDNEY_SIZES]
        panels.append(Panel(f"Algorithm {k}", "epsilon", tuple(curves)))
    paper = [over_epsilon(k, f"Algorithm {k}", sources[132], **_kidney(132)) for k in (1, 2, 3)]
    best = [best_over_epsilon(label, sources[132], **_kidney(132)) for label in BEST]
    return [*panels, Panel("N = 132", "epsilon", (*paper, *best))]


def _real_personalised(decisions: Array) -> list[Panel]:
    parameters = {name: value for name, value in _kidney(132).items() if name != "N"}
    return _personal_panels(132, halves(decisions, 132, 2.0), **parameters)


def _relative(decisions: Array | None) -> list[Panel]:
    paper = tuple(over_epsilon(k, f"Algorithm {k}", n=100) for k in (1, 2, 3))
    panels = [Panel("N = 50, n = 100, d = 10", "epsilon", paper, relative=True)]
    if decisions is not None:
        source = halves(decisions, 132, 2.0)
        real = tuple(over_epsilon(k, f"Algorithm {k}", source, **_kidney(132)) for k in (1, 2, 3))
        panels.append(Panel("kidney decisions, N = 132, n = 20", "epsilon", real, relative=True))
    return panels
