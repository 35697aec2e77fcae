"""Counts for several observers, drawn together or by parts with noise of their own: the figures that are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from privspec.api import load
from privspec.families.systems import family
from privspec.plan import Plan, verify

TOGETHER = """variables:
  input answers in {{0, 1}}^{n}
  intermediate yes
  output first in 0..{n}
  output second in 0..{n}
background:
  yes = sum(answers)
  yes ~ uniform
loss: E[ |first - yes| ] + E[ |second - yes| ]
privacy:
  {lines}
"""
COUNT = """parameters: epsilon = 1
variables:
  input answers in {{0, 1}}^{n}
  intermediate yes
  output O in 0..{n}
background:
  yes = sum(answers)
  yes ~ uniform
loss: E[ |O - yes| ]
privacy: O is epsilon-DP wrt answers, replacing one record
"""
APART = """components:
  first = spec("count.priv", answers = answers, epsilon = e1)
  second = spec("count.priv", answers = answers, epsilon = e2)
variables:
  input answers in {{0, 1}}^{n}
  choose e1 in [0, {most}]
  choose e2 in [0, {most}]
loss: first.loss + second.loss
privacy: (first.O, second.O) is 1-DP wrt answers, replacing one record
"""


def together(folder: Path, n: int, *lines: str) -> Plan:
    path = folder / "together.priv"
    said = [f"{line}, replacing one record, seen by {who}" for line, who in zip(lines, "ABC", strict=False)]
    path.write_text(TOGETHER.format(n=n, lines="\n  ".join(said)), "utf-8")
    return load(path).solve()


def apart(folder: Path, n: int, most: str) -> Plan:
    (folder / "count.priv").write_text(COUNT.format(n=n), "utf-8")
    (folder / "apart.priv").write_text(APART.format(n=n, most=most), "utf-8")
    return load(folder / "apart.priv").solve()


def test_a_coalition_of_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sees a count of 1-DP, and both together no more: one draw for both, in place of half the budget each."""
    monkeypatch.setattr(family, "proved", lambda *_: {})  # what is said of other splits is another matter
    monkeypatch.setattr(family, "compared", lambda *_: {})
    lines = ("first is 1-DP wrt answers", "second is 1-DP wrt answers", "(first, second) is 1-DP wrt answers")
    one = together(tmp_path, 8, *lines)
    assert verify(one.to_json()).ok
    assert one.status == "optimal"
    assert round(one.loss.value, 4) == 1.4027
    parts = apart(tmp_path, 8, "1")
    assert verify(parts.to_json()).ok
    assert parts.loss.value == pytest.approx(2.6243, abs=6e-5)
    picked = [float(one) for one in parts.document["mechanism"]["choices"].values()]
    assert picked == pytest.approx([0.5, 0.5], abs=1e-5)


def geometric(n: int, epsilon: float) -> np.ndarray:
    """Two-sided geometric noise on a count, cut off at both ends."""
    power = np.exp(-epsilon)
    at = power ** np.abs(np.subtract.outer(np.arange(n + 1), np.arange(n + 1))) * (1 - power) / (1 + power)
    at[:, [0, n]] /= 1 - power
    return at


def best_estimate(n: int, *epsilons: float) -> float:
    """The least mean absolute error from independent noisy counts, all counts alike."""
    law = np.full((n + 1, 1), 1 / (n + 1))
    for epsilon in epsilons:
        law = (law[:, :, None] * geometric(n, epsilon)[:, None, :]).reshape(n + 1, -1)
    costs = np.abs(np.subtract.outer(np.arange(n + 1), np.arange(n + 1)))
    return float((costs @ law).min(axis=0).sum())


@pytest.mark.slow
@pytest.mark.parametrize(("press", "all_of_it", "less"), [("0.5", "1", 0.36), ("1", "2", 0.58)])
def test_whoever_sees_both_loses_less_if_they_are_drawn_together(
    tmp_path: Path, press: str, all_of_it: str, less: float
) -> None:
    """A sees the first count, B both. By sequential composition B has the first and another of what A's leaves."""
    lines = f"first is {press}-DP wrt answers", f"(first, second) is {all_of_it}-DP wrt answers"
    one = together(tmp_path, 10, *lines)
    assert verify(one.to_json()).ok
    assert one.status == "optimal"
    given, whole = float(press), float(all_of_it)
    first, second = best_estimate(10, given), best_estimate(10, whole)
    assert one.loss.value == pytest.approx(first + second, rel=1e-6)  # each as good as if it were drawn alone
    assert 1 - second / best_estimate(10, given, whole - given) == pytest.approx(less, abs=0.005)
