"""Bounds that plans state of noise, next to brute force: noise is searched for, witnesses are found and forged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, product
from math import exp
from types import SimpleNamespace
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st
from scipy.optimize import minimize, nnls

from privspec.core.spans import Source
from privspec.kernel.core.linear import Linear, read_linear
from privspec.kernel.core.problem import Frame, read_frame
from privspec.kernel.core.reading import JsonNode, Refused
from privspec.kernel.laws.gaussian import Gaussian
from privspec.kernel.worth.shifts import SCOPE, shown
from privspec.kernel.worth.traces import proved
from privspec.kernel.writing import write
from privspec.model.build import load_model
from privspec.problem import linear_affine
from privspec.problem.elaborate import elaborate
from tests.kernel.test_worth_brute import FEW, MANY, NEAR, F, Matrix, Program, Witness, tried

NAMES, OUTPUTS = ("a", "b", "c"), "oqr"
FINEST = 2**20
CONVEX = ("sum", "worst")
"""Losses of which the best covariance is found by a convex program."""


def _names(some: list[str]) -> str:
    return some[0] if len(some) == 1 else f"({', '.join(some)})"


@dataclass(frozen=True)
class Asked:
    """Numbers of one person each, in [0, width]; outputs that are sums of them; lines of mu-GDP about what is seen.

    `target` (outputs, inputs); `weights` of the errors; `lines`: what is seen, which inputs move, together or not, and
    mu. `people`, each with such numbers, who may draw `alone`; `sums`: the outputs as they are written, else as sums.
    """

    widths: tuple[int, ...]
    target: tuple[tuple[int, ...], ...]
    weights: tuple[int, ...]
    form: str
    lines: tuple[tuple[tuple[int, ...], tuple[int, ...], bool, Fraction], ...]
    priced: tuple[Fraction, Fraction] | None
    people: int = 1
    alone: bool = False
    sums: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return len(self.target)

    @property
    def text(self) -> str:
        used = NAMES[: len(self.widths)]
        inputs = [f"  input {name}[person] in [0, {w}]" for name, w in zip(used, self.widths, strict=True)]
        sums = [" + ".join(f"({k}) * sum({name})" for k, name in zip(row, used, strict=True)) for row in self.target]
        sums = list(self.sums) or sums
        one = "E[ ({} - ({}))^2 ]" if self.form in ("sum", "worst") else "E[ |{} - ({})| ]"
        drawn = OUTPUTS[: self.size]
        errors = [f"{w} * " + one.format(o, own) for w, o, own in zip(self.weights, drawn, sums, strict=True)]
        loss = f"max({', '.join(errors)})" if self.form.startswith("worst") else " + ".join(errors)
        lines = []
        for seen, moved, together, mu in self.lines:
            who, what = _names([OUTPUTS[i] for i in seen]), _names([used[i] for i in moved])
            unit = "person" if together else "entry"
            lines.append(f"  {who} is {float(mu)}-GDP wrt {what}, replacing one {unit}")
        limit = [f"accuracy: E[ (o - ({sums[0]}))^2 ] <= {float(self.priced[1])}"] if self.priced else []
        variables = ["variables:", *inputs, *(f"  output {name}" for name in drawn)]
        words = [f"parties: person in 1..{self.people}", *variables, f"loss: {loss}", *limit]
        trust = ["options:", "  trust nobody"] if self.alone else []
        return "\n".join([*words, "privacy:", *lines, *trust, ""])

    def moves(self, line: int) -> list[Matrix]:
        """The differences that a line is about, up to their sign, as corners of all of them."""
        _, moved, together, _ = self.lines[line]
        units = [np.eye(len(self.widths))[i] * self.widths[i] for i in moved]
        if not together:
            return units
        return [
            sum(s * one for s, one in zip(signs, units, strict=True)) for signs in product((1, -1), repeat=len(units))
        ]

    def needed(self, covariance: Matrix) -> float:
        """By how much noise of a covariance has to be larger to meet all lines."""
        most, target = 0.0, np.array(self.target, float)
        for k, (seen, _, _, mu) in enumerate(self.lines):
            inverse = np.linalg.inv(covariance[np.ix_(seen, seen)])
            for d in self.moves(k):
                v = (target @ d)[list(seen)]
                most = max(most, v @ inverse @ v / float(mu) ** 2)
        return most

    def loss(self, covariance: Matrix) -> float:
        """The loss, and what the accuracy line costs at its price."""
        squares = np.diag(covariance)
        each = [
            w * (s if self.form in ("sum", "worst") else (2 * s / np.pi) ** 0.5)
            for w, s in zip(self.weights, squares, strict=True)
        ]
        paid = float(self.priced[0]) * (squares[0] - float(self.priced[1])) if self.priced else 0.0
        return (max(each) if self.form.startswith("worst") else sum(each)) + paid

    def best(self) -> tuple[float, Matrix]:
        """The least loss of any Gaussian noise that is found, and its covariance."""
        if self.form in CONVEX and self.size > 2:
            return self.convex()

        def scaled(x: Matrix) -> Matrix:
            root = np.array([[exp(min(x[0], 30.0)), 0.0], [x[1], exp(min(x[2], 30.0))]])
            covariance = root @ root.T + 1e-9 * np.eye(2)
            return covariance * self.needed(covariance)

        found = [
            minimize(
                lambda x: self.loss(scaled(x)), start, method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-10}
            )
            for start in ([0.0, 0.3, 0.0], [0.5, -0.7, -0.5])
        ]
        least_ = min(found, key=lambda one: float(one.fun))
        return float(least_.fun), scaled(least_.x)

    def convex(self) -> tuple[float, Matrix]:
        """The same by a program over positive semidefinite matrices."""
        covariance = cp.Variable((self.size, self.size), PSD=True)
        limits, target = [], np.array(self.target, float)
        for k, (seen, _, _, mu) in enumerate(self.lines):
            rows = list(seen)
            for d in self.moves(k):
                v = (target @ d)[rows][:, None]
                part = covariance[rows, :][:, rows]
                limits.append(cp.bmat([[part, v], [v.T, np.array([[float(mu) ** 2]])]]) >> 0)
        each = cp.multiply(np.array(self.weights, float), cp.diag(covariance))
        goal = cp.max(each) if self.form == "worst" else cp.sum(each)
        paid = float(self.priced[0]) * (covariance[0, 0] - float(self.priced[1])) if self.priced else 0.0
        cp.Problem(cp.Minimize(goal + paid), limits).solve(solver=cp.CLARABEL)
        found = covariance.value + 1e-9 * np.eye(self.size)
        found = found * self.needed(found)
        return self.loss(found), found


FORMS = ("sum", "sum", "worst", "sizes", "worst sizes")


@st.composite
def asked_of_noise(draw: st.DrawFn, outputs: int = 2, hidden: bool = True, forms: tuple[str, ...] = FORMS) -> Asked:
    """Args: outputs; hidden, whether some are seen by fewer; forms of losses."""
    size = draw(st.integers(1, 3))
    row = st.lists(st.integers(-2, 2), min_size=size, max_size=size).filter(any).map(tuple)
    widths = tuple(draw(st.lists(st.integers(1, 2), min_size=size, max_size=size)))
    lines = []
    for k in range(draw(st.integers(1, 2))):
        # everything is seen, and may move, by one line: else nothing has to be hidden
        every = tuple(range(outputs))
        some = [one for n in every for one in combinations(every, n + 1)]
        seen = draw(st.sampled_from(some)) if k and hidden else every
        moved = tuple(range(size)) if k == 0 else tuple(sorted(draw(st.sets(st.integers(0, size - 1), min_size=1))))
        lines.append((seen, moved, draw(st.booleans()), draw(st.sampled_from([F(1, 2), F(1), F(2)]))))
    form = draw(st.sampled_from(forms))
    priced = draw(st.sampled_from([None, (F(1, 2), F(3))])) if form in ("sum", "sizes") else None
    weights = tuple(draw(st.lists(st.integers(1, 3), min_size=outputs, max_size=outputs)))
    return Asked(widths, tuple(draw(row) for _ in range(outputs)), weights, form, tuple(lines), priced)


def problem_of(text: str) -> tuple[Frame, Linear]:
    whole = write(elaborate(load_model(Source("spec.priv", text))))
    frame = read_frame(JsonNode(whole, "problem"))
    return frame, read_linear(frame.blocks[0], frame, Linear)


def shown_of_noise(frame: Frame, block: Linear, witness: Witness) -> float:
    """What a witness proves of Gaussian noise, whatever is executed."""
    release: Any = SimpleNamespace(problem=block, noise=Gaussian(F(1)), excess=F(1))
    return float(proved(frame, release, JsonNode(witness, "bound")).at(frame.obligations))


def matrix_json(rows: Matrix) -> dict[str, Any]:
    whole = np.rint(rows * FINEST).astype(np.int64)
    return {"shape": list(whole.shape), "unit": f"1/{FINEST}", "rows": whole.ravel().tolist()}


def witness_of(asked: Asked, covariance: Matrix, shares: list[Fraction]) -> Witness:
    """The dual point of a covariance: for each line, p z z' of the differences that it allows no more of, add up to W.

    Of a worst case errors share their weights, and sizes have those of squares: both by `shares`.
    """
    target, weights, size = np.array(asked.target, float), weights_of(asked, shares), asked.size
    wanted = np.diag(weights)
    if asked.priced:
        wanted[0, 0] += float(asked.priced[0])
    columns, vectors, owner = [], [], []
    for k, (seen, *_) in enumerate(asked.lines):
        rows = list(seen)
        for d in asked.moves(k):
            z = np.zeros(size)
            z[rows] = np.linalg.solve(covariance[np.ix_(rows, rows)], (target @ d)[rows])
            columns.append(d)
            vectors.append(z)
            owner.append(k)
    p, _ = nnls(np.array([np.outer(z, z).ravel() for z in vectors]).T, wanted.ravel())
    kept = [i for i in range(len(p)) if p[i] > 1e-9]
    errors = np.array([np.array(vectors[i]) * p[i] ** 0.5 for i in kept]).T / np.sqrt(np.array(weights))[:, None]
    if asked.priced:  # the terms of the loss, then that of the line at its price
        line = np.array([[vectors[i][0] * p[i] ** 0.5 for i in kept]])
        whole = np.array([weights[0] + float(asked.priced[0]), *weights[1:]])
        plain = np.array([np.array(vectors[i]) * p[i] ** 0.5 for i in kept]).T / whole[:, None]
        errors = np.vstack(
            [plain * np.sqrt(np.array(weights))[:, None], line / whole[0] * float(asked.priced[0]) ** 0.5]
        )
    differences = []
    for k in sorted({owner[i] for i in kept}):
        own = np.array([columns[i] * p[i] ** 0.5 for i in kept if owner[i] == k])
        differences.append({"requirement": k, "mu": None, "columns": matrix_json(own)})
    slack = np.eye(len(errors)) - errors @ errors.T if len(errors) <= len(kept) else None
    root = None
    if slack is not None:
        values, axes = np.linalg.eigh(slack)
        root = matrix_json(axes * np.sqrt(np.maximum(values, 0.0)))
    return {
        "scope": "errors",
        "loss_weights": None if asked.form == "sum" else [str(share) for share in shares],
        "prices": [str(asked.priced[0])] if asked.priced else None,
        "differences": differences,
        "vectors": matrix_json(errors),
        "slack": root,
    }


@pytest.mark.parametrize("examples", [FEW // 2, pytest.param(MANY, marks=pytest.mark.slow)])
def test_no_gaussian_noise_is_below_what_traces_show(examples: int) -> None:
    reached = list[float]()

    def holds(drawn: tuple[Asked, Fraction, float]) -> None:
        asked, share, factor = drawn
        frame, block = problem_of(asked.text)
        best, covariance = asked.best()
        shares = [share, 1 - share]
        witness = witness_of(asked, covariance, shares)
        found = shown_of_noise(frame, block, witness)
        assert found <= best * (1 + NEAR) + NEAR
        if asked.form == "sum":
            reached.append(found / best)
        other = witness | {"slack": None}
        assert shown_of_noise(frame, block, other) <= best * (1 + NEAR) + NEAR
        moved = other | {
            "vectors": witness["vectors"] | {"rows": [int(v * factor) for v in witness["vectors"]["rows"]]}
        }
        assert shown_of_noise(frame, block, moved) <= best * (1 + NEAR) + NEAR

    tried(examples, holds, st.tuples(asked_of_noise(), st.sampled_from([F(1, 4), F(1, 2), F(4, 5)]), st.floats(0.1, 4)))
    assert max(reached) > 0.999


def test_forged_witnesses_of_noise_are_refused() -> None:
    lines = (((0, 1), (0, 1), False, F(1)), ((0,), (0,), False, F(1)))
    asked = Asked((1, 2), ((1, 2), (1, -1)), (1, 3), "sum", lines, None)
    frame, block = problem_of(asked.text)
    _, covariance = asked.best()
    witness = witness_of(asked, covariance, [F(1, 2), F(1, 2)])
    shown_of_noise(frame, block, witness)
    first = witness["differences"][0]
    wide, vectors = first["columns"]["shape"][0], witness["vectors"]
    against = vectors | {"rows": [-v for v in vectors["rows"]]}
    alone = {"requirement": 1, "mu": None, "columns": matrix_json(np.array([[1.0, 0.0]] * wide))}
    off = alone | {"columns": matrix_json(np.array([[0.0, 1.0]] * wide))}
    for forged in (
        {"differences": [first | {"mu": "1/2"}]},  # the line allows more, and says so itself
        {"differences": [first, first]},
        {"differences": [alone]},  # that observer sees one output, and the vectors are about two
        {"differences": [off]},  # nor does the other number move by that line
        {"vectors": against},
        {"scope": "sites"},
        {"loss_weights": ["1", "1"]},
        {"prices": ["1"]},
    ):
        with pytest.raises(Refused):
            shown_of_noise(frame, block, witness | forged)
    normal = asked.text.replace("(o, q) is 1.0-GDP", "(o, q) is (1, 1e-3)-DP")
    frame, block = problem_of(normal)
    only = witness | {"differences": [first | {"columns": matrix_json(np.array([[1.0, 0.0]] * wide))}]}
    found = [
        shown_of_noise(frame, block, only | {"differences": [only["differences"][0] | {"mu": mu}]})
        for mu in ("0.5", "1")
    ]
    assert found[0] > found[1] > 0  # what is stated is at least what the line allows
    for mu in (None, "0.3", "0"):
        with pytest.raises(Refused):
            shown_of_noise(frame, block, only | {"differences": [only["differences"][0] | {"mu": mu}]})


# --- witnesses near the best: they show less, or are refused ---------------------------------------------------------


def at_most(best: float, frame: Frame, block: Linear, witness: Witness) -> float | None:
    """What a witness shows, which is no more than the best; None where it is refused."""
    try:
        found = shown_of_noise(frame, block, witness)
    except Refused:
        return None
    assert found <= best + NEAR * (1 + abs(best))
    return found


def forged(witness: Witness, seed: int, much: float) -> list[Witness]:
    """Witnesses near one: vectors and differences moved, with and without places that were empty, and no slack."""
    dice, found = np.random.default_rng(seed), []

    def moved(matrix: dict[str, Any], everywhere: bool) -> dict[str, Any]:
        rows = np.array(matrix["rows"], float)
        off = much * dice.standard_normal(len(rows))
        off = off * (np.abs(rows).max() if everywhere and len(rows) else rows)
        return matrix | {"rows": np.rint(rows + off).astype(np.int64).tolist()}

    for everywhere in (False, True):
        differences = [one | {"columns": moved(one["columns"], everywhere)} for one in witness["differences"]]
        vectors = moved(witness["vectors"], everywhere)
        found += [witness | {"vectors": vectors}, witness | {"differences": differences}]
        found += [witness | {"vectors": vectors, "differences": differences, "slack": None}]
    smaller = witness["vectors"] | {"rows": [int(v * (1 + much)) for v in witness["vectors"]["rows"]]}
    found.append(witness | {"vectors": smaller})
    if witness["slack"] is not None:
        found.append(witness | {"slack": moved(witness["slack"], True)})
    return found


def tight_and_sound(asked: Asked, best: float, witness: Witness, seed: int, much: float) -> float:
    """What share of the best a witness shows; neither it nor any near it shows more."""
    frame, block = problem_of(asked.text)
    found = at_most(best, frame, block, witness)
    shown = [at_most(best, frame, block, one) for one in forged(witness, seed, much)]
    assert found is not None and any(one is not None for one in shown)
    return found / best


SEEDS = st.integers(0, 2**32 - 1)
MUCH = st.sampled_from([1e-3, 0.05, 0.3, 1.0])
FEWER = pytest.mark.parametrize("examples", [FEW // 2, pytest.param(MANY, marks=pytest.mark.slow)])


def shares_of(draw: st.DrawFn, many: int) -> list[Fraction]:
    """Shares above 0 that add up to one."""
    parts = draw(st.lists(st.integers(1, 4), min_size=many, max_size=many))
    return [F(part, sum(parts)) for part in parts]


Forged = tuple[Asked, list[Fraction], int, float]


@st.composite
def three_outputs(draw: st.DrawFn) -> Forged:
    asked = draw(asked_of_noise(outputs=3, forms=("sum", "sum", "worst")))
    return asked, shares_of(draw, 3), draw(SEEDS), draw(MUCH)


@FEWER
def test_no_noise_in_three_outputs_is_below_what_traces_show(examples: int) -> None:
    """Covariances of three outputs, of which observers may see one or two."""
    reached = list[float]()

    def holds(drawn: Forged) -> None:
        asked, shares, seed, much = drawn
        best, covariance = asked.best()
        share = tight_and_sound(asked, best, witness_of(asked, covariance, shares), seed, much)
        if asked.form == "sum" and asked.priced is None:
            reached.append(share)

    tried(examples, holds, three_outputs())
    assert max(reached) > 0.999


# --- vectors that are written through the target ---------------------------------------------------------------------


def weights_of(asked: Asked, shares: list[Fraction]) -> list[float]:
    """Of the squares that a proof is about: of a worst case errors share their weights, of sizes they have shares."""
    if asked.form == "sum":
        return [float(w) for w in asked.weights]
    each = {"sizes": lambda _: 1.0, "worst": float, "worst sizes": lambda w: w * w * 2 / np.pi}[asked.form]
    return [float(share) * each(w) for share, w in zip(shares, asked.weights, strict=True)]


def through_inputs(asked: Asked, shares: list[Fraction], witness: Witness) -> Witness:
    """The same vectors as images of numbers of the inputs: Z = w E T X, with what X' (E T)' w (E T) X misses of 1."""
    target, weights = np.array(asked.target, float), weights_of(asked, shares)
    if asked.priced:
        target, weights = np.vstack([target, target[:1]]), [*weights, float(asked.priced[0])]
    image = np.sqrt(np.array(weights))[:, None] * target
    given = witness["vectors"]
    vectors = np.linalg.pinv(image) @ (np.array(given["rows"], float).reshape(given["shape"]) / FINEST)
    gram = vectors.T @ image.T @ image @ vectors
    values, axes = np.linalg.eigh(np.eye(len(gram)) - gram)
    slack = matrix_json(axes * np.sqrt(np.maximum(values, 0.0)))
    return witness | {"scope": "inputs", "vectors": matrix_json(vectors), "slack": slack}


@st.composite
def seen_by_all(draw: st.DrawFn) -> Forged:
    outputs = draw(st.integers(2, 3))
    forms = FORMS if outputs == 2 else CONVEX
    asked = draw(asked_of_noise(outputs, hidden=False, forms=forms))
    return asked, shares_of(draw, outputs), draw(SEEDS), draw(MUCH)


@FEWER
def test_no_noise_is_below_what_vectors_through_the_target_show(examples: int) -> None:
    reached = list[float]()

    def holds(drawn: Forged) -> None:
        asked, shares, seed, much = drawn
        best, covariance = asked.best()
        witness = through_inputs(asked, shares, witness_of(asked, covariance, shares))
        share = tight_and_sound(asked, best, witness, seed, much)
        if asked.form == "sum" and asked.priced is None:
            reached.append(share)

    tried(examples, holds, seen_by_all())
    assert max(reached) > 0.999


# --- noise at sites --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Placed:
    """Noise at sites alone, of any variance at each: the outputs are `shown` (outputs, sites) of sums of inputs."""

    asked: Asked
    shown: tuple[tuple[int, ...], ...]
    sums: tuple[tuple[int, ...], ...]

    @property
    def text(self) -> str:
        names = ["s", "t", "u"][: len(self.sums)]
        used = NAMES[: len(self.asked.widths)]
        background = [
            f"  {name} = " + " + ".join(f"({k}) * sum({one})" for k, one in zip(row, used, strict=True))
            for name, row in zip(names, self.sums, strict=True)
        ]
        own = [" + ".join(f"({k}) * {name}" for k, name in zip(row, names, strict=True)) for row in self.shown]
        text = replace(self.asked, sums=tuple(own)).text
        text = text.replace("  output o", "".join(f"  intermediate {name}\n" for name in names) + "  output o", 1)
        text = text.replace("loss:", "\n".join(["background:", *background, "loss:"]), 1)
        return text + f"options:\n  noise at {', '.join(names)}\n"

    def best(self) -> tuple[float, Matrix]:
        """The least loss that a search over the variances finds, and these."""
        shown, asked = np.array(self.shown, float), self.asked

        def scaled(x: Matrix) -> Matrix:
            variances = np.exp(np.clip(x, -8.0, 8.0))  # so far apart that covariances can still be inverted
            return variances * asked.needed(shown @ np.diag(variances) @ shown.T)

        def loss(x: Matrix) -> float:
            return asked.loss(shown @ np.diag(scaled(x)) @ shown.T)

        starts = [np.zeros(len(self.sums)), np.linspace(-1.0, 1.0, len(self.sums))]
        found = [minimize(loss, x, method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-10}) for x in starts]
        least = min(found, key=lambda one: float(one.fun))
        return float(least.fun), scaled(least.x)

    def witness(self, variances: Matrix, shares: list[Fraction]) -> Witness:
        """For each line, p z z' of what it allows no more of, so that noise at every site is worth what it costs."""
        shown, target, asked = np.array(self.shown, float), np.array(self.asked.target, float), self.asked
        covariance, weights = shown @ np.diag(variances) @ shown.T, weights_of(asked, shares)
        costs = np.array(weights) @ shown**2
        columns, vectors, owner = [], [], []
        for k, (seen, *_) in enumerate(asked.lines):
            rows = list(seen)
            for d in asked.moves(k):
                z = np.zeros(asked.size)
                z[rows] = np.linalg.solve(covariance[np.ix_(rows, rows)], (target @ d)[rows])
                columns.append(d)
                vectors.append(z)
                owner.append(k)
        p, _ = nnls(np.array([(shown.T @ z) ** 2 for z in vectors]).T, costs)
        kept = [i for i in range(len(p)) if p[i] > 1e-9]
        differences = []
        for k in sorted({owner[i] for i in kept}):
            own = np.array([columns[i] * p[i] ** 0.5 for i in kept if owner[i] == k])
            differences.append({"requirement": k, "mu": None, "columns": matrix_json(own)})
        return {
            "scope": "sites",
            "loss_weights": None if asked.form == "sum" else [str(share) for share in shares],
            "prices": None,
            "differences": differences,
            "vectors": matrix_json(np.array([np.array(vectors[i]) * p[i] ** 0.5 for i in kept]).T),
            "slack": None,
        }


@st.composite
def placed(draw: st.DrawFn) -> tuple[Placed, list[Fraction], int, float]:
    asked = replace(draw(asked_of_noise(forms=("sum", "sum", "worst"))), priced=None)
    sites = draw(st.integers(2, 3))

    def rows(many: int, wide: int) -> tuple[tuple[int, ...], ...]:
        row = st.lists(st.integers(-2, 2), min_size=wide, max_size=wide).filter(any).map(tuple)
        return tuple(draw(row) for _ in range(many))

    shown, sums = rows(2, sites), rows(sites, len(asked.widths))
    assume(np.linalg.matrix_rank(np.array(shown)) == 2 and all(any(column) for column in zip(*shown, strict=True)))
    target = np.array(shown) @ np.array(sums)
    assume(all(any(row) for row in target.tolist()))
    asked = replace(asked, target=tuple(map(tuple, target.tolist())))
    return Placed(asked, shown, sums), shares_of(draw, 2), draw(SEEDS), draw(MUCH)


@FEWER
def test_no_noise_at_sites_is_below_what_traces_show(examples: int) -> None:
    reached = list[float]()

    def holds(drawn: tuple[Placed, list[Fraction], int, float]) -> None:
        site, shares, seed, much = drawn
        best, variances = site.best()
        frame, block = problem_of(site.text)
        witness = site.witness(variances, shares)
        found = at_most(best, frame, block, witness)
        assert found is not None
        for one in forged(witness, seed, much):
            at_most(best, frame, block, one)
        if site.asked.form == "sum":
            reached.append(found / best)

    tried(examples, holds, placed())
    assert max(reached) > 0.999


# --- noise that each party draws alone -------------------------------------------------------------------------------


@st.composite
def parties(draw: st.DrawFn) -> tuple[Asked, bool, int, float]:
    """Parties with one or two numbers each; whether those who count alike are told as a class."""
    asked = draw(asked_of_noise(hidden=False, forms=("sum",)))
    asked = replace(asked, priced=None, people=draw(st.integers(1, 3)), alone=True)
    return asked, draw(st.booleans()), draw(SEEDS), draw(MUCH)


def as_parties(asked: Asked, witness: Witness, frame: Frame, block: Linear) -> Witness:
    """The witness of one party for all of them, or for the one that stands for its class."""
    names = len(asked.widths)
    people = block.inputs // names
    assert people in (1, asked.people)

    def spread(matrix: dict[str, Any], more: Matrix) -> dict[str, Any]:
        rows = np.array(matrix["rows"], float).reshape(matrix["shape"]) / FINEST
        return matrix_json(np.kron(rows, more))

    each = np.eye(people)
    differences = [one | {"columns": spread(one["columns"], each)} for one in witness["differences"]]
    own = each if witness["scope"] == "messages" else np.ones((1, people))
    vectors = [spread(columns_of(witness, k), own) for k in range(len(differences))]
    rows = [np.array(one["rows"]).reshape(one["shape"]) for one in vectors]
    return witness | {"differences": differences, "vectors": vectors[0] | joined(rows)}


def columns_of(witness: Witness, k: int) -> dict[str, Any]:
    """The vectors that stand for the differences of one line."""
    sizes = [one["columns"]["shape"][0] for one in witness["differences"]]
    first, matrix = sum(sizes[:k]), witness["vectors"]
    rows = np.array(matrix["rows"]).reshape(matrix["shape"])[:, first : first + sizes[k]]
    return matrix | joined([rows])


def joined(parts: list[Matrix]) -> dict[str, Any]:
    whole = np.hstack(parts)
    return {"shape": list(whole.shape), "rows": whole.ravel().tolist()}


def messages_of(asked: Asked) -> tuple[float, Witness]:
    """The least loss of noise on each number of one party, as a search finds it, and its dual point."""
    target = np.array(asked.target, float)
    costs = np.array(asked.weights, float) @ target**2
    used = costs > 0
    moves = [(k, d) for k in range(len(asked.lines)) for d in asked.moves(k)]
    limits = [float(asked.lines[k][-1]) ** 2 for k, _ in moves]

    def scaled(x: Matrix) -> Matrix:
        variances = np.where(used, np.exp(np.clip(x, -20.0, 20.0)), 1e12)
        return variances * max(np.sum(d**2 / variances) / limit for (_, d), limit in zip(moves, limits, strict=True))

    found = minimize(
        lambda x: float((costs * scaled(x))[used].sum()), np.zeros(len(costs)), method="Nelder-Mead",
        options={"xatol": 1e-8, "fatol": 1e-11},
    )  # fmt: skip
    variances = scaled(found.x)
    vectors = [np.where(used, d / variances, 0.0) for _, d in moves]
    p, _ = nnls(np.array([z**2 for z in vectors]).T, costs)
    kept = [i for i in range(len(p)) if p[i] > 1e-9]
    differences = []
    for k in sorted({moves[i][0] for i in kept}):
        own = np.array([moves[i][1] * p[i] ** 0.5 for i in kept if moves[i][0] == k])
        differences.append({"requirement": k, "mu": None, "columns": matrix_json(own)})
    witness = {
        "scope": "messages",
        "loss_weights": None,
        "prices": None,
        "differences": differences,
        "vectors": matrix_json(np.array([vectors[i] * p[i] ** 0.5 for i in kept]).T),
        "slack": None,
    }
    return float((costs * variances)[used].sum()), witness


@pytest.mark.parametrize("scope", ["messages", "parties"])
@FEWER
def test_no_noise_of_parties_is_below_what_traces_show(
    examples: int, scope: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What each sends is hidden by its own noise: in each of its numbers, or of any covariance in the answers."""
    reached = list[float]()

    def holds(drawn: tuple[Asked, bool, int, float]) -> None:
        asked, classes, seed, much = drawn
        monkeypatch.setattr(linear_affine, "FROM", 1 if classes else 512)
        frame, block = problem_of(asked.text)
        if scope == "messages":
            best, witness = messages_of(asked)
        else:
            best, covariance = asked.best()
            witness = witness_of(asked, covariance, shares=[])
            witness |= {"scope": "parties", "slack": None}
        whole, best = as_parties(asked, witness, frame, block), best * asked.people
        found = at_most(best, frame, block, whole)
        assert found is not None
        for one in forged(whole, seed, much):
            at_most(best, frame, block, one)
        reached.append(found / best)

    tried(examples, holds, parties())
    assert max(reached) > 0.999


def test_vectors_of_one_party_are_not_about_what_others_hold() -> None:
    asked = Asked((1,), ((1,), (1,)), (1, 2), "sum", (((0, 1), (0,), False, F(1)),), None, people=2, alone=True)
    frame, block = problem_of(asked.text)
    both = {"requirement": 0, "mu": None, "columns": matrix_json(np.array([[0.5, 0.5]]))}
    witness = {"scope": "parties", "loss_weights": None, "prices": None, "differences": [both], "slack": None}
    with pytest.raises(Refused, match="several of them hold"):
        shown_of_noise(frame, block, witness | {"vectors": matrix_json(np.array([[0.5], [0.5]]))})
    curator = problem_of(replace(asked, alone=False).text)
    own = witness | {"differences": [both | {"columns": matrix_json(np.array([[1.0, 0.0]]))}]}
    for scope, rows in (("parties", 2), ("messages", 2)):
        with pytest.raises(Refused):
            vectors = matrix_json(np.full((rows, 1), 0.5))
            shown_of_noise(*curator, own | {"scope": scope, "vectors": vectors})


# --- shifts, as plans state them -------------------------------------------------------------------------------------

FINE = 4
"""Cells of a density, of which neighbours move a number by so many."""


@dataclass(frozen=True)
class Number:
    """A single number, of which neighbours move some of so many `parts`, or any part (None), and what errors cost.

    `sensitivity`: how far they move it; `alone`: how many parties each add noise alone, 0 where a curator does.
    """

    declared: str
    answer: str
    unit: str
    parts: int | None
    sensitivity: int
    power: int
    epsilon: Fraction
    delta: Fraction | None
    alone: int = 0

    @property
    def text(self) -> str:
        loss = f"E[ (O - {self.answer})^2 ]" if self.power == 2 else f"E[ |O - {self.answer}| ]"
        amount = f"{float(self.epsilon)}" if self.delta is None else f"({float(self.epsilon)}, {float(self.delta)})"
        words = [f"parties: person in 1..{self.alone}"] if self.alone else []
        words += ["variables:", f"  input {self.declared}", "  output O", f"loss: {loss}"]
        words += [
            f"privacy: O is {amount}-DP wrt x, {self.unit}",
            *["options:", "  trust nobody", "  noise at x"] * bool(self.alone),
        ]
        return "\n".join([*words, ""])

    @property
    def cells(self) -> int:
        """What neighbours move the number by, in points or cells of the laws that are tried."""
        return self.parts or FINE

    def cost(self, k: int) -> float:
        """The mean cost of an error in a cell, or at a point, in those of what neighbours move."""
        spread = 0.0 if self.parts else (1 / 12 if self.power == 2 else 0.25 * (k == 0))
        return (abs(k) ** self.power + spread) / self.cells**self.power

    def best(self) -> tuple[float, dict[int, list[float]]]:
        """The least loss of laws that are steps, or points, and fall by e^epsilon in the end; multipliers of shifts.

        Of densities in steps what a move lets through lies between those of the two whole numbers of cells next to it.
        """
        ends, period, program = 3 * self.cells, self.cells, Program()
        grown, delta = exp(float(self.epsilon)), float(self.delta or 0)

        def law(k: int) -> dict[Any, float]:
            """The chance of a cell: beyond the ends it is that of one inside, less for every period."""
            beyond = -(-max(abs(k) - ends, 0) // period)
            return {(abs(k) - beyond * period) * (1 if k >= 0 else -1): grown**-beyond}

        def less(one: dict[Any, float], other: dict[Any, float]) -> dict[Any, float]:
            return {name: one.get(name, 0.0) - grown * other.get(name, 0.0) for name in {**one, **other}}

        tails = {k: 1.0 if abs(k) <= ends - period else 1 / (1 - 1 / grown) for k in range(-ends, ends + 1)}
        program.exactly(tails, 1.0)
        for k in range(-ends, ends + 1):
            far = range(1 if abs(k) <= ends - period else 200)
            program.goal[k] = sum(grown**-n * self.cost(abs(k) + n * period) for n in far)
        rows = dict[tuple[int, int], int]()
        for shift in (sign * one for one in range(1, period + 1) for sign in (1, -1)):
            for k in range(-ends - period, ends + period + 1):
                slack = {("slack", shift, k): -1.0} if delta and abs(k) <= ends else {}
                rows[shift, k] = program.at_most(less(law(k), law(k + shift)) | slack, 0.0)
            if delta:
                program.at_most({("slack", shift, k): 1.0 for k in range(-ends, ends + 1)}, delta)
        value, z = program.solve()
        scale = float(self.cells**self.power)
        found = {
            shift: [scale * (z[rows[shift, k]] + z[rows[-shift, -k]]) for k in range(-ends, ends + 1)]
            for shift in range(1, period + 1)
        }
        return value * self.sensitivity**self.power * max(self.alone, 1), found

    def witness(self, multipliers: dict[int, list[float]]) -> Witness:
        return {
            "scope": SCOPE,
            "requirement": 0,
            "cells": self.cells,
            "shifts": list(multipliers),
            "start": -3 * self.cells,
            "multipliers": matrix_json(np.array(list(multipliers.values()))),
        }


@st.composite
def single_numbers(draw: st.DrawFn) -> Number:
    wide, power, amount = draw(st.integers(1, 3)), draw(st.integers(1, 2)), draw(st.sampled_from([F(1, 2), F(1), F(2)]))
    delta = draw(st.sampled_from([None, F(1, 16), F(1, 4)]))
    adding = draw(st.sampled_from(["adding or removing one record", "replacing one record"]))
    kind = draw(st.sampled_from(["interval", "steps", "count", "alone"]))
    if kind == "count":
        return Number("x in table(age in 0..3)", "count(x, age >= 2)", adding, 1, 1, power, amount, delta)
    if kind == "alone":
        said = f"x[person] in [0, {wide}]", "sum(x)", "replacing one person"
        return Number(*said, None, wide, power, amount, delta, draw(st.integers(1, 3)) if power == 2 else 1)
    domain, parts = (f"[0, {wide}]", None) if kind == "interval" else (f"(0..{wide})", wide)
    return Number(f"x in {domain}^4", "sum(x)", adding, parts, wide, power, amount, delta)


def shown_by_shifts(number: Number, witness: Witness) -> float:
    frame, block = number_problem(number.text)
    return float(shown(frame, block, JsonNode(witness, "bound")).at(frame.obligations))


number_problem = lru_cache(maxsize=4)(problem_of)


@FEWER
def test_no_law_is_below_what_stated_shifts_show(examples: int) -> None:
    """Laws that are good are found by a program; its dual, and multipliers near it, are stated as a plan does."""
    reached = list[float]()

    def holds(drawn: tuple[Number, int, float]) -> None:
        number, seed, much = drawn
        best, multipliers = number.best()
        most = best * (1 + NEAR) + NEAR
        dice, closed = np.random.default_rng(seed), {"scope": SCOPE, "requirement": 0}
        found = shown_by_shifts(number, number.witness(multipliers))
        assert found <= most
        if number.delta is None:
            assert shown_by_shifts(number, closed) <= most
        else:
            with pytest.raises(Refused):
                shown_by_shifts(number, closed)
        reached.append(found / best)
        for factor in (0.3, 1 - much / 2, 1 + much):
            off = dict[int, list[float]]()
            for shift, row in multipliers.items():
                moved = np.array(row) * factor + much * dice.standard_normal(len(row))
                off[shift] = np.maximum(moved, 0.0).tolist()
            assert shown_by_shifts(number, number.witness(off)) <= most
            few = {s: [factor * one for one in z] for s, z in multipliers.items() if s % 2 or s == number.cells}
            assert shown_by_shifts(number, number.witness(few)) <= most

    tried(examples, holds, st.tuples(single_numbers(), SEEDS, MUCH))
    assert max(reached) > 0.9


def test_forged_shifts_are_refused() -> None:
    number = Number("x in (0..2)^4", "sum(x)", "replacing one record", 2, 2, 1, F(2), F(1, 4))
    _, multipliers = number.best()
    witness = number.witness(multipliers)
    assert shown_by_shifts(number, witness) > 0
    rows, width = witness["multipliers"]["rows"], witness["multipliers"]["shape"][1]
    below = witness["multipliers"] | {"rows": [-1, *rows[1:]]}
    for forged_ in (
        {"requirement": 1},
        {"cells": 0},
        {"cells": 1},  # a shift of more than neighbours move the answer by
        {"cells": 4},  # half of a step, by which nobody moves it
        {"shifts": []},
        {"shifts": [1, 1]},
        {"shifts": [2, 1]},
        {"shifts": [0, 1]},
        {"shifts": [1, 2, 3]},
        {"start": 1},
        {"start": None},
        {"multipliers": below},
        {"multipliers": witness["multipliers"] | {"shape": [1, 2 * width]}},
        {"multipliers": witness["multipliers"] | {"rows": rows[1:]}},
    ):
        with pytest.raises(Refused):
            shown_by_shifts(number, witness | forged_)
    held = replace(number, declared="x in (1..3)^4", unit="adding or removing one record")
    with pytest.raises(Refused):  # a record that comes moves the answer by no less than one
        shown_by_shifts(held, witness | {"cells": 3})
