"""Where should the noise go? A walk through Ramon & Basu 2020, section 3.2, on 32 questions about 64 secret numbers.

    python examples/compare_noise.py

The first five rows are losses of plans that privspec solved and verified; the classic ways below are what these plans
list among their alternatives. All are for one and the same neighbour relation.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from textwrap import fill

import numpy as np
from numpy.typing import NDArray

import privspec
from privspec.kernel.gaussian import delta_bounds, mu_down

SPEC = """
spec questions
variables:
  input x in [0, 1]^64
  constant A in real^(32, 64)
  constant b in real^32
  intermediate y
  output O
background:
  y = A @ x + b
loss:
  E[ ||O - y||^2 ]
privacy:
  O is (epsilon, delta)-DP wrt x, replacing one entry
parameters:
  epsilon = 1
  delta = 1e-6
options:
  trust curator
"""

OPTIONS: Mapping[str, str] = {
    "noise on x only": "  noise family gaussian\n  noise at x\n",
    "noise on y only": "  noise family gaussian\n  noise at y\n",
    "noise on x and y": "  noise family gaussian\n  noise at x, y\n",
    "Gaussian noise, any correlation": "  noise family gaussian\n",
    "any noise that privspec knows": "",
}
"""Designs by the lines that are added to the spec; the middle one is the program of section 3.2."""
FULL = "Gaussian noise, any correlation"

CLASSICS: Mapping[str, str] = {
    "each x[i] by itself": "noise on each input",
    "each x[i] by itself, paper's sigma": "noise on each input, the paper's calibration",
    "equal noise on each answer": "equal noise on each answer",
    "equal noise on each answer, paper's sigma": "equal noise on each answer, the paper's calibration",
}
"""Rows of the table, and what a plan calls them among its alternatives."""

BUDGETS = (("0.1", "1e-6"), ("1", "1e-6"), ("1", "1e-2"), ("4", "1e-4"), ("8", "1e-2"))
"""(epsilon, delta)."""

Array = NDArray[np.float64]


def questions() -> Array:
    """The public 32 x 64 query matrix: about half of the 64 numbers are added up in each question."""
    return np.random.default_rng(2020).integers(0, 2, (32, 64)).astype(np.float64)


def solve(matrix: Array, options: str, epsilon: str, delta: str) -> privspec.Plan:
    """The verified plan of one design at one budget."""
    problem = privspec.Problem(SPEC + options, constants={"A": matrix, "b": np.zeros(len(matrix))})
    return problem.solve(epsilon=epsilon, delta=delta)


def losses(matrix: Array, budgets: Sequence[tuple[str, str]]) -> dict[str, list[float]]:
    """Expected total squared errors, by design, one for each budget."""
    rows: dict[str, list[float]] = {name: [] for name in (*OPTIONS, *CLASSICS)}
    for epsilon, delta in budgets:
        for name, options in OPTIONS.items():
            plan = solve(matrix, options, epsilon, delta)
            rows[name].append(plan.loss.value)
            if name == FULL:
                found = {other["name"]: float(other["loss"]) for other in plan.document["alternatives"]}
                for row, alternative in CLASSICS.items():
                    rows[row].append(found[alternative])
        print(f"solved and verified at epsilon = {epsilon}, delta = {delta}", file=sys.stderr, flush=True)
    return rows


@dataclass(frozen=True, slots=True)
class Calibration:
    """Noise for one number of sensitivity 1: the paper's sigma, the exact one, and the delta that the paper's gives."""

    paper: float
    exact: float
    delta_of_paper: float

    @property
    def enough(self) -> bool:
        """Whether the paper's sigma keeps the promise."""
        return self.paper >= self.exact


def calibration(epsilon: str, delta: str) -> Calibration:
    """The two ways to turn (epsilon, delta) into noise: sqrt(2 ln(1.25/delta))/epsilon, and Balle & Wang 2018."""
    paper = math.sqrt(2 * math.log(1.25 / float(delta))) / float(epsilon)
    exact = 1 / float(mu_down(Fraction(epsilon), Fraction(delta)))
    _, reached = delta_bounds(Fraction(epsilon), 1 / Fraction(paper))
    return Calibration(paper, exact, float(reached))


def as_printed(matrix: Array, epsilon: str, delta: str) -> tuple[float, float]:
    """E[L_LDP] and L_DP by the formulas as section 3.2 prints them."""
    variance = 2 * math.log(1.25 / float(delta)) / float(epsilon) ** 2
    return float((matrix**2).sum()) * variance, float((np.abs(matrix).sum(axis=1) ** 2).sum()) * variance


def paragraph(text: str) -> None:
    """Print running text below a table."""
    print("\n" + fill(text, 112, initial_indent="   ", subsequent_indent="   ") + "\n")


def main() -> int:
    """Print the walk-through."""
    matrix = questions()
    found = losses(matrix, BUDGETS)
    width = max(map(len, found)) + 2
    print("32 questions about 64 secret numbers: x in [0, 1]^64, y = A x + b")
    print("O is (epsilon, delta)-DP wrt x, replacing one entry\n")
    print("1. Expected total squared error of the 32 answers")
    print("".ljust(width) + "".join(f"{f'({e}, {d})':>13}" for e, d in BUDGETS))
    for name, values in found.items():
        print(name.ljust(width) + "".join(f"{value:>13,.1f}" for value in values))
    paragraph(
        "As the paper expects, noise on both x and y has less loss than noise on either; correlated Gaussian noise has "
        "less still. Without the line `noise family` Laplace noise on x competes, which needs no delta at all: it wins "
        "wherever delta is small. `each x[i] by itself` is local privacy, every noisy x[i] could be published; with "
        "`noise on x only` nothing but the answers is, and 32 answers show less than 64 noisy numbers would."
    )
    print("2. How much noise is that? Deviation for one number that a neighbour moves by at most 1")
    print(
        f"   {'(epsilon, delta)':<18}{'paper':>10}{'exact':>10}{'variances':>11}   delta that the paper's noise gives"
    )
    for epsilon, delta in BUDGETS:
        c = calibration(epsilon, delta)
        verdict = "keeps the promise" if c.enough else f"more than {delta}: a little too little noise"
        print(
            f"   {f'({epsilon}, {delta})':<18}{c.paper:>10.4f}{c.exact:>10.4f}{(c.paper / c.exact) ** 2:>11.3f}"
            f"   {c.delta_of_paper:.3g}, {verdict}"
        )
    paragraph(
        "sqrt(2 ln(1.25/delta))/epsilon is proved for epsilon below 1, where it is safe and asks for more noise than "
        "is needed; beyond, it can be too small. privspec uses the exact condition at every epsilon."
    )
    local, central = as_printed(matrix, "1", "1e-6")
    print("3. The two formulas of section 3.2 at (1, 1e-6), as they are printed")
    print(f"   E[L_LDP] = {local:>9,.0f}   hides one entry of x, in all answers together")
    print(f"   L_DP     = {central:>9,.0f}   hides all of x at once, in each answer by itself")
    paragraph(
        "These protect different things, so their ratio does not say which design is better: the first compares worlds "
        "with one entry replaced; the second sums |A_ji| over all entries, and leaves out that 32 answers about the "
        "same x add up. Under one relation, as in table 1, the paper's expectation holds."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
