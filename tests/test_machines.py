"""No word that a user reads depends on the machine: the same texts under the kernels of several processors.

OpenBLAS, which numpy and scipy bring, takes the kernel of a processor that OPENBLAS_CORETYPE names, where this one can
run it; numpy's own loops leave out the instructions that NPY_DISABLE_CPU_FEATURES lists.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from numpy._core._multiarray_umath import __cpu_dispatch__

from tests.pasting import reads_alike
from tests.plans import SMALL

TOP = Path(__file__).parents[1]
NEEDED = {"Haswell": "avx2", "SkylakeX": "avx512f", "Zen": "avx2", "Sandybridge": "avx"}
"""Kernels, and what a processor needs for each."""
FEW = ("prefix_sums", "hospital_network", "two_observers", "linear_queries")
"""Templates whose plans come from long searches."""
COMPUTED = """\
variables:
  input visits in table(ward in {north, south, east}, nights in [0, 14])
  output stays
  output nights
  output average
background:
  average = nights / max(stays, 1)
loss: E[ ||stays - histogram(visits, by = {ward})||^2 ] + 0.01 * E[ ||nights - sum(visits.nights, by = {ward})||^2 ]
privacy: all outputs are (1, 1e-6)-DP wrt visits, adding or removing one record
"""
SOLVED = """
import sys
from privspec.api import Problem
from tests.plans import SPECS, small_text
texts = [small_text(name) for name in sys.argv[1].split()] + sys.argv[2:]
for text in texts:
    plan = Problem(text, {}, base=SPECS).solve()
    print(plan.summary(), plan.explain("auditor"), plan.explain("public"), sep=chr(0), end=chr(0))
"""


def able(kernel: str) -> bool:
    """Whether this processor runs the kernel."""
    about = Path("/proc/cpuinfo")
    return about.exists() and NEEDED[kernel] in about.read_text("utf-8").split()


def machine(kernel: str, threads: int = 1) -> dict[str, str]:
    """The variables of a process on such a machine: that of Sandybridge has no wide instructions for numpy either."""
    narrow = {"NPY_DISABLE_CPU_FEATURES": " ".join(one for one in __cpu_dispatch__ if one.startswith(("AVX", "FMA")))}
    known = {"OPENBLAS_CORETYPE": kernel, "OPENBLAS_NUM_THREADS": str(threads), "PYTHONPATH": str(TOP)}
    return {**os.environ, **known, **(narrow if kernel == "Sandybridge" else {})}


def started(variables: dict[str, str], *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, *words], cwd=TOP, env=variables, stdout=subprocess.PIPE, text=True)


def texts_of(running: subprocess.Popen[str]) -> list[str]:
    """What is read, but for the seconds that it took, and for where lines end, which hangs on how long those are."""
    said, _ = running.communicate(timeout=1200)
    assert running.returncode == 0
    found = re.sub(r"(solved in|Seconds \|) [0-9.e-]+", r"\1", said)
    return [" ".join(text.split()) for text in re.sub(r"\b[0-9a-f]{12,64}\b", "digest", found).split(chr(0))]


def compare(kernels: list[tuple[str, int]], names: tuple[str, ...], *specs: str) -> None:
    running = [started(machine(*one), "-c", SOLVED, " ".join(names), *specs) for one in kernels]
    first, *others = map(texts_of, running)
    assert len(first) > 3 * len(names)
    for (kernel, threads), texts in zip(kernels[1:], others, strict=True):
        for now, known in zip(texts, first, strict=True):
            assert reads_alike(now, known), f"{kernel}, {threads} threads\n{now}\n{known}"


@pytest.mark.skipif(not able("Haswell"), reason="a processor that runs other kernels")
def test_a_few_plans_read_alike_on_two_machines() -> None:
    compare([("Haswell", 1), ("Sandybridge", 1)], FEW, COMPUTED)


@pytest.mark.slow
@pytest.mark.skipif(not able("Haswell"), reason="a processor that runs other kernels")
def test_the_plans_of_all_templates_read_alike_on_all_machines() -> None:
    able_to = [kernel for kernel in NEEDED if able(kernel)]
    for name in SMALL:
        compare([(kernel, threads) for kernel in able_to for threads in (1, 2)], (name,))


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kernel", NEEDED)
def test_pages_and_goldens_hold_on_all_machines(kernel: str, threads: int) -> None:
    if not able(kernel):
        pytest.skip("a processor that runs other kernels")
    files = ("tests/test_tutorial.py", "tests/test_readme.py", "tests/explain/test_pages.py", "tests/test_pipeline.py")
    done = started(machine(kernel, threads), "-m", "pytest", "-q", "-n", "0", *files)
    said, _ = done.communicate(timeout=3600)
    assert done.returncode == 0, said[-4000:]
