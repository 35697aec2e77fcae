"""What exact noise takes, beside OpenDP's exact noise and numpy's floating-point noise (which is no release).

    python tests/benchmarks/bench_noise.py [--draws 1000000] [--reports 1000000]

Processor microseconds for one number, on a lattice of 2^-30 standard deviations (Laplace also on whole numbers). The
last lines say how far time goes with the size of the noise: of a batch of 16,384 numbers with its largest one, and of
numbers drawn one by one.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from privspec.core.matrices import ExactVector, integers
from privspec.execute.drawing import RowLaw
from privspec.noise.inverse import laplace_steps, nearest_normal
from privspec.noise.samplers import SystemRandomness
from privspec.noise.vectors import VECTORS

STEP = Fraction(1, 2**30)


def row(what: str, draw: Callable[[], Any], count: int) -> None:
    """One line; the first draw is not timed, since tables are made then."""
    draw()
    begin = time.process_time()
    draw()
    print(f"{what:58} {(time.process_time() - begin) / count * 1e6:9.3f} us")


def vectors(norm: str, size: int, source: SystemRandomness, count: int = 2000) -> Any:
    """So many vectors of K-norm noise at once."""
    return VECTORS[norm](count, size, 1 / STEP, source).nearest(
        ExactVector(integers([0] * count * size), 1), Fraction(1)
    )


def opendp_us(*, gaussian: bool) -> float | None:
    """Microseconds of the peer for a whole number; None where it is not installed."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), (dp.l2_distance if gaussian else dp.l1_distance)(T=int)
    measurement = space >> (dp.m.then_gaussian if gaussian else dp.m.then_laplace)(scale=2.0**30)
    zeros = [0] * 20_000
    measurement(zeros)
    begin = time.process_time()
    measurement(zeros)
    return (time.process_time() - begin) / len(zeros) * 1e6


def opendp(*, gaussian: bool) -> None:
    """A line of it."""
    found = opendp_us(gaussian=gaussian)
    what = "  OpenDP, whole numbers"
    print(f"{what:58}  (opendp is not installed)" if found is None else f"{what:58} {found:9.3f} us")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=10**6)
    parser.add_argument("--reports", type=int, default=10**6)
    asked = parser.parse_args()
    count, source, generator = asked.draws, SystemRandomness(), np.random.default_rng(1)
    zeros = ExactVector(integers([0] * count), 1)
    row("Gaussian, exact, many at once", lambda: nearest_normal(zeros, STEP, source), count)
    one = ExactVector(integers([0]), 1)
    row("Gaussian, exact, one at a time", lambda: [nearest_normal(one, STEP, source) for _ in range(1000)], 1000)
    opendp(gaussian=True)
    row("  numpy, floating point", lambda: generator.standard_normal(count), count)
    row("Laplace, exact, many at once", lambda: laplace_steps([1 / STEP], count, source), count)
    row("Laplace, exact, scale 5/2 of a whole number", lambda: laplace_steps([Fraction(5, 2)], count, source), count)
    opendp(gaussian=False)
    row("  numpy, floating point", lambda: generator.laplace(size=count), count)
    for norm, size in (("l2", 16), ("l2", 256), ("linf", 16)):
        row(f"a vector of {size} numbers, K-norm {norm}", lambda n=norm, d=size: vectors(n, d, source), 2000)
        row("  one at a time", lambda n=norm, d=size: [vectors(n, d, source, 1) for _ in range(200)], 200)
    shares = RowLaw.of([7, 2, 1, 1, 1], 12)
    row("a report of five values", lambda: shares.draws(asked.reports, source), asked.reports)
    batch = ExactVector(integers([0] * 2**14), 1)
    found = []
    for _ in range(200):
        begin = time.perf_counter()
        drawn = nearest_normal(batch, STEP, source)
        found.append((time.perf_counter() - begin, float(np.abs(drawn.astype(float)).max())))
    times, largest = np.array(found).T
    print(f"correlation of a batch's time with its largest number      {np.corrcoef(times, largest)[0, 1]:9.3f}")
    begin = np.array([time.perf_counter() for _ in range(2001)])
    sizes = np.empty(2000)
    for i in range(2000):
        begin[i] = time.perf_counter()
        sizes[i] = abs(float(nearest_normal(one, STEP, source)[0]))
    begin[2000] = time.perf_counter()
    print(f"correlation of one number's time with its size             {np.corrcoef(np.diff(begin), sizes)[0, 1]:9.3f}")


if __name__ == "__main__":
    main()
