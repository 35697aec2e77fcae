"""The trace inequality next to brute force: noise of every scope is searched for, witnesses are found and forged."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from math import exp
from types import SimpleNamespace
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import strategies as st
from scipy.optimize import minimize, nnls

from privspec.core.spans import Source
from privspec.kernel.core.linear import Linear, read_linear
from privspec.kernel.core.problem import Frame, read_frame
from privspec.kernel.core.reading import JsonNode, Refused
from privspec.kernel.laws.gaussian import Gaussian
from privspec.kernel.worth.traces import proved
from privspec.kernel.writing import write
from privspec.model.build import load_model
from privspec.problem.elaborate import elaborate
from tests.kernel.test_worth_brute import FEW, MANY, NEAR, F, Matrix, Witness, tried

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
    mu. `people`, each with such numbers: where there are several, outputs are sums over them, and each draws alone.
    """

    widths: tuple[int, ...]
    target: tuple[tuple[int, ...], ...]
    weights: tuple[int, ...]
    form: str
    lines: tuple[tuple[tuple[int, ...], tuple[int, ...], bool, Fraction], ...]
    priced: tuple[Fraction, Fraction] | None
    people: int = 1
    alone: bool = False

    @property
    def size(self) -> int:
        return len(self.target)

    @property
    def text(self) -> str:
        used = NAMES[: len(self.widths)]
        inputs = [f"  input {name}[person] in [0, {w}]" for name, w in zip(used, self.widths, strict=True)]
        sums = [" + ".join(f"({k}) * sum({name})" for k, name in zip(row, used, strict=True)) for row in self.target]
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
    return frame, read_linear(frame.blocks[0], frame)


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
    target, weights, size = np.array(asked.target, float), [float(w) for w in asked.weights], asked.size
    if asked.form != "sum":
        weights = [
            float(s) * (1 if asked.form == "sizes" else w if asked.form == "worst" else w * w * 2 / np.pi)
            for s, w in zip(shares, weights, strict=True)
        ]
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
