"""The curves of Torra 2019, figures 1 to 3, as his theorems state them: conditional on the electorates they name.

Each is the epsilon of random dictatorship WITHOUT dummy votes between two electorates of a restricted set; none of them
is differential privacy. Beside figure 1 stands what dummy votes promise for every electorate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import log
from pathlib import Path

from privspec.explain.paper import lemma_one, ratio_at
from privspec.families.voting.papers import EachSupported, LeastShare, largest_percent

ONE = Fraction(1)
EVERYWHERE = 1 + 1 / ONE
"""e^epsilon of one dummy vote for each alternative, whatever the number of voters."""
ALPHA = Fraction(2)
"""Percent of the voters that the least represented alternative has in figure 3."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Values over numbers of voters, with the words of its legend."""

    label: str
    voters: Sequence[int]
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of the paper."""

    number: int
    title: str
    quantity: str
    curves: tuple[Curve, ...]


def figures() -> tuple[Figure, ...]:
    """Figures 1, 2 and 3, over the numbers of voters that the paper shows."""
    supported = EachSupported(adding=True)
    share = LeastShare(ALPHA, adding=True)
    ours = range(3, 151)
    shares = range(50, 501)  # below 50 voters two percent are not one voter
    return (
        Figure(
            1,
            "Theorem 1 (ii): somebody supports every alternative",
            "epsilon",
            (
                Curve("log(2T / (T + 1)), of such electorates only", ours, _logs(supported.ratio(t) for t in ours)),
                Curve("one dummy vote each, Lemma 1 at this T (m = 3)", ours, _logs(lemma_one(3, t) for t in ours)),
                Curve("one dummy vote each, every T: log 2", ours, _logs(EVERYWHERE for _ in ours)),
            ),
        ),
        Figure(
            2,
            "Theorem 1 (iii): the largest share to which it applies",
            "percent of the voters",
            (Curve("100 T / (2T + 1)", ours, [float(largest_percent(t)) for t in ours]),),
        ),
        Figure(
            3,
            f"Theorem 1 (iii): the least represented alternative has {ALPHA} % of the voters",
            "epsilon",
            (Curve("log((alpha T + 100) / (alpha (T + 1)))", shares, _logs(share.ratio(t) for t in shares)),),
        ),
    )


def _logs(ratios: Iterable[Fraction]) -> list[float]:
    return [log(ratio) for ratio in ratios]


def draw(figure: Figure, path: Path) -> None:
    """A figure as PNG."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    canvas, axes = plt.subplots(figsize=(6.4, 4.0), dpi=110, layout="constrained")
    for curve in figure.curves:
        axes.plot(curve.voters, curve.values, label=curve.label)
    axes.set_title(f"Figure {figure.number}. {figure.title}", fontsize=10)
    axes.set_xlabel("voters T")
    axes.set_ylabel(figure.quantity)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    canvas.savefig(path)
    plt.close(canvas)


def landmarks() -> str:
    """The figures that the paper quotes, with their scope."""
    ten = EachSupported(adding=True).ratio(10)
    both = EachSupported(adding=False).ratio(10)
    return "\n".join(
        (
            f"Theorem 1 (ii), T = 10: epsilon {log(ten):.4f}, only where every alternative has a supporter",
            f"Theorem 2, any T: epsilon {log(both):.4f} = log {both}, only between such electorates",
            f"Lemma 1, m = 2, T = 0: says e^epsilon = {lemma_one(2, 0)}, exact {ratio_at(2, 0, ONE)}",
            f"one dummy vote each, every electorate: epsilon {log(EVERYWHERE):.4f}",
        )
    )
