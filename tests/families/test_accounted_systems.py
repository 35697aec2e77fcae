"""Fifty systems that were solved, beside an accountant of its own: privacy losses on a grid, rounded up and down."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from privspec.core.spans import Source
from privspec.families.family import Settings
from privspec.families.systems import family
from privspec.kernel.core.reading import JsonNode, read
from privspec.kernel.laws.staircase import Stepped
from privspec.pipeline import Request, solve
from privspec.stated import parse_exact
from tests.plans import Document, components, matrix_of

STEPS = "stepped"
"""What noise in steps is called in plans."""
STEP, SPAN = 1e-4, 12.0
"""The grid of privacy losses, and the largest one on it."""
SIZE = round(SPAN / STEP)
Losses = tuple[NDArray[np.float64], float]
"""Chances of the losses k STEP from -SPAN to SPAN, and of an infinite one."""


def spec_of(random: np.random.Generator) -> str:
    """Two to four people, a mean, and one to three finite outputs; amounts, weights and ends of ranges by chance."""
    people, high = int(random.integers(2, 5)), int(random.integers(1, 4))
    kinds = [kind for kind in ("works", "vote", "rating") if random.random() < 0.7] or ["works"]
    weights = np.exp(random.uniform(-4, 3, 4))
    epsilon, delta = round(float(random.uniform(0.3, 2.5)), 2), 10.0 ** -int(random.integers(2, 8))
    parts = {
        "works": (
            "input works[person] in {0, 1}\n  intermediate working\n  output count in 0..N",
            "working = sum(works)\n  working ~ uniform",
            f"{weights[1]:.4f} * E[ |count - working| ]",
        ),
        "vote": (
            "input vote[person] in {north, south}\n  intermediate drawn\n  output seat in {north, south}",
            "drawn = random_dictator(vote)",
            f"{weights[2]:.4f} * worst[ total_variation(seat, drawn) ]",
        ),
        "rating": (
            "input rating in {poor, fair, good}\n  output shown in {poor, fair, good}",
            "",
            f"{weights[3]:.4f} * worst[ mismatch(shown, rating) ]",
        ),
    }
    if random.random() < 0.5:  # so many numbers that Gaussian noise is better than Laplace noise
        kinds = [kind for kind in kinds if kind != "rating"] or ["works"]
        weights[0] *= 1e-3
        high, pay = 48, "input hours[person] in [0, 1]^48\n  output total"
        mean = "E[ ||total - sum(hours)||^2 ]"
    else:
        pay, mean = f"input pay[person] in [0, {high}]\n  output mean_pay", "E[ (mean_pay - mean(pay))^2 ]"
    texts = [parts[kind] for kind in kinds]
    lines = "\n  ".join(filter(None, (text for _, text, _ in texts)))
    unit = "everything" if "rating" in kinds else "one person"
    return "\n".join(
        [
            "spec drawn\nparties: person in 1..N",
            f"parameters: N = {people}",
            f"variables:\n  {pay}",
            *(f"  {text}" for text, _, _ in texts),
            f"background:\n  {lines}" if lines else "",
            f"loss: {weights[0]:.6f} * {mean} + " + " + ".join(text for _, _, text in texts),
            f"privacy: all outputs are ({epsilon}, {delta})-DP wrt all inputs, replacing {unit}",
        ]
    )


# --- the accountant -----------------------------------------------------------------------------------------------


def on_grid(atoms: dict[float, float], *, up: bool) -> Losses:
    """Losses with their chances, each rounded to the grid."""
    found = np.zeros(2 * SIZE + 1)
    for loss, chance in atoms.items():
        place = math.ceil(loss / STEP - 1e-9) if up else math.floor(loss / STEP + 1e-9)
        found[place + SIZE] += chance
    return found, 0.0


def by_law(at: Any, *, up: bool) -> Losses:
    """Of a distribution function: what lies between two losses of the grid goes to the upper or to the lower one."""
    edges = np.arange(-SIZE, SIZE + 1) * STEP
    below = at(edges)
    found, between = np.zeros(2 * SIZE + 1), np.diff(below)
    found[1:] += between if up else 0.0
    found[:-1] += 0.0 if up else between
    found[0] += below[0]
    found[-1] += 0.0 if up else 1 - below[-1]
    return found, float(1 - below[-1]) if up else 0.0


def together(one: Losses, other: Losses) -> Losses:
    """Losses of independent releases add up; what leaves the grid above is infinite, what leaves it below its end."""
    size = 1 << (4 * SIZE + 2).bit_length()
    spread = np.fft.irfft(np.fft.rfft(one[0], size) * np.fft.rfft(other[0], size), size)[: 4 * SIZE + 1]
    spread = np.maximum(spread, 0.0)
    found = spread[SIZE : 3 * SIZE + 1].copy()
    found[0] += spread[:SIZE].sum()
    return found, 1 - (1 - one[1]) * (1 - other[1]) + float(spread[3 * SIZE + 1 :].sum())


def delta_of(losses: Losses, epsilon: float) -> float:
    at = np.arange(-SIZE, SIZE + 1) * STEP
    return losses[1] + float(losses[0] @ np.maximum(0.0, -np.expm1(epsilon - at)))


# --- what a plan executes, read from the plan alone ---------------------------------------------------------------


def worlds(part: Document, block: Document) -> Iterator[list[dict[float, float] | Any]]:
    """For each ordered pair of neighbours what they let through: atoms of losses, or a distribution function."""
    if block["form"] == "table":
        rows = [[Fraction(p) for p in row] for row in part["mechanism"]["probabilities"]]
        (compared,) = block["compared"]
        flat = compared["pairs"]["rows"]
        pairs = [tuple(flat[i : i + 2]) for i in range(0, len(flat), 3)]
        pairs += [(a, b) for some in compared["cliques"] for i, a in enumerate(some) for b in some[:i]]
        for i, j in pairs:
            for a, b in ((i, j), (j, i)):
                atoms: dict[float, float] = {}
                for p, q in zip(rows[a], rows[b], strict=True):
                    loss = math.log(p) - math.log(q) if p else 0.0
                    atoms[loss] = atoms.get(loss, 0.0) + float(p)
                yield [atoms]
        return
    executed = part["mechanism"]["executed"]
    strategy, noise = executed["strategy"], executed["noise"]
    if noise["shape"] == "gaussian":
        matrix = matrix_of(strategy)
        people = block["held"][0]["shape"][0]
        moved = matrix[:, : matrix.shape[1] // people]  # of the first person, as of all others
        assert np.allclose(moved.T @ moved, np.diag(np.diag(moved.T @ moved)), atol=1e-9)
        mu = float(np.linalg.norm(moved) / float(parse_exact(noise["scale"])))
        yield [lambda at: norm.cdf(at, mu * mu / 2, mu)]
        return
    width = Fraction(block["held"][0]["upper"]) - Fraction(block["held"][0]["lower"])
    entries = [abs(entry) * Fraction(strategy["unit"]) * width for entry in strategy["rows"]]
    everything = part["whole"]
    move = sum(entries) if everything else max(entries)
    if noise["shape"] == STEPS:
        yield [steps_let_through(noise["laws"][0], move / parse_exact(executed["grid"]))]
        return
    (scale,) = noise["scales"]
    q = float(move / parse_exact(scale))
    # loss l in (-q, q) has density e^((l - q) / 2) / 4, its ends e^-q / 2 and 1 / 2
    inside = lambda at: np.exp((np.clip(at, -q, q) - q) / 2) / 2  # noqa: E731
    yield [lambda at: np.where(at < -q, 0.0, np.where(at >= q, 1.0, inside(at)))]


def steps_let_through(law: Document, moved: Fraction) -> dict[float, float]:
    """Losses where answers are so many steps of the lattice apart: cells by cells, for a step into them each."""
    one = read(Stepped, JsonNode(law, "law"))
    assert isinstance(one, Stepped) and not one.point
    cells, rest = divmod(math.floor(moved), one.width)
    last, found = len(one.weights) + 40 * one.period, dict[float, float]()
    weights = {k: one.weight(k) for k in range(last + cells + 2)}
    total, logs = one.total, {k: math.log(weight) for k, weight in weights.items()}
    for shift, part in ((cells, 1 - rest / one.width), (cells + 1, rest / one.width)):
        for k in range(-last - shift, last + 1):
            loss = logs[abs(k)] - logs[abs(k + shift)]
            found[loss] = found.get(loss, 0.0) + part * float(weights[abs(k)] / total)
    return found


def read_plan(plan: Document) -> list[list[Any]]:
    """What each part of a plan of one line lets through, for each ordered pair of neighbours."""
    blocks = [one["problem"]["blocks"][0] for one in plan["problem"]["blocks"][0]["parts"]]
    (unit,) = plan["problem"]["obligations"][0]["units"]
    parts = [one | {"whole": unit["kind"] == "everything"} for one in components(plan)]
    return [[one for (one,) in worlds(part, block)] for part, block in zip(parts, blocks, strict=True)]


def accounted(plan: Document, parts: list[list[Any]], *, up: bool) -> float:
    """Delta of a plan at the epsilon that it asks for: the largest over all pairs of worlds."""
    ways = []
    for part in parts:
        found = [on_grid(one, up=up) if isinstance(one, dict) else by_law(one, up=up) for one in part]
        kept = {
            tuple(np.flatnonzero(losses).tolist()) + tuple(losses[losses > 0].round(12)): (losses, rest)
            for losses, rest in found
        }
        ways.append(list(kept.values()))
    epsilon, worst = float(Fraction(plan["guarantees"][0]["epsilon"])), 0.0
    for first, *others in product(*ways):
        losses = first
        for other in others:
            losses = together(losses, other)
        worst = max(worst, delta_of(losses, epsilon))
    return worst


@pytest.mark.parametrize("seed", [*range(5), *(pytest.param(k, marks=pytest.mark.slow) for k in range(5, 50))])
def test_the_delta_that_a_plan_reports_is_between_the_ends_of_an_accountant(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never below the optimistic end; not above the other one wherever the composition is named exact."""
    monkeypatch.setattr(family, "proved", lambda *_: {})  # what is said of other splits is another matter
    text = spec_of(np.random.default_rng(seed))
    plan = solve(Request(Source("drawn.priv", text)), Settings(alternatives=False)).document
    (guarantee,) = plan["guarantees"]
    if any(one["mechanism"]["family"] == "mixed" for one in plan["mechanism"]["components"].values()):
        assert guarantee["because"] == ["composition"]  # vectors of K-norm noise have no law that is counted
        return
    # noise in steps counts as randomised response, which lets through at least as much
    noises = [one["mechanism"].get("executed", {}).get("noise", {}) for one in components(plan)]
    exact = all(one.get("shape") != STEPS for one in noises)
    assert guarantee["because"] == ["composition-exact" if exact else "composition"], text
    reported = float(Fraction(guarantee["achieved"]["delta"]))
    parts = read_plan(plan)
    assert accounted(plan, parts, up=False) - 1e-12 <= reported, text
    assert not exact or reported <= accounted(plan, parts, up=True) + 1e-12, text
