"""What a law of noise is: how a plan states it, how much of a change it lets through, and how far errors go under it.

A law is one file here, and its name and words below, which are a closed world; whoever else needs to know one asks it.
Specs are read by the words alone; laws are loaded, with what they compute with, when one is asked for.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING

from privspec.kernel.core.reading import JsonNode, Refused, frozen

if TYPE_CHECKING:
    from privspec.kernel.changes import Change, Units
    from privspec.kernel.losses import Loss
    from privspec.kernel.strategies.dense import Dense, Lattice, Scaling


WORDS_OF = {
    "gaussian": ("gaussian",),
    "laplace": ("laplace", "geometric"),
    "staircase": ("staircase",),
    "knorm": ("knorm",),
}
"""The laws of noise, by file: the noise families of a spec that allow them. Each file lists its laws under LAWS."""
FAMILIES = tuple(word for words in WORDS_OF.values() for word in words)
"""The noise families that a spec may ask for."""


@frozen
class NoisyView:
    """What is seen of noisy linear answers: the answers `rows` of a `strategy`, or mixtures of them.

    `seen`: how these move, and `slack`: the covariance of a mixture is at least 1 / slack, in squared deviations of the
    noise. `lattice`: what answers are rounded to.
    """

    strategy: Dense
    rows: tuple[int, ...]
    seen: Dense
    lattice: Lattice
    slack: Fraction = Fraction(1)

    def rounding(self) -> list[Fraction]:
        """The step by which each answer may be rounded, 0 where it is always a point of the lattice."""
        return self.lattice.rounding(self.strategy, list(self.rows))


class Law:
    """A law of noise on linear answers."""

    family: str = ""
    """What a plan calls a mechanism of such noise."""
    TAG = "shape"
    FORM: str = ""
    """What it calls the noise."""
    GIVEN: tuple[str, ...] = ()
    """The fields that the problem says."""
    words: tuple[str, ...] = ()
    """The noise families of a spec that allow it."""
    in_steps: tuple[str, ...] = ()
    """Those of them that ask for noise in steps of a lattice that all answers are points of."""
    title: str = ""
    """What it is called."""
    notes: tuple[str, ...] = ()
    """The proofs that it rests on."""

    figures: tuple[str, ...] = ("epsilon",)
    """What says how much it lets through; the last is the least for what is accounted at the others."""
    exposed: tuple[str, ...] = ("epsilon", "delta")
    """The same of what no line is about."""

    in_shares: bool = False
    """Whether the parties of a secure sum draw it together."""
    normal: bool = False
    """Whether it lets through as much as normal noise does."""
    spherical: bool = False
    """Whether it is normal, and its covariance a deviation squared times the identity: so are its mixtures."""
    joint: bool = False
    """Whether the noise of all answers is drawn at once, as one vector, or is for one answer."""
    honest: int | None = None
    """Of how many parties the noise is made up that no coalition knows; None where one curator draws it."""
    in_cells: bool = False
    """Whether it lets through less where answers move by several steps of the lattice at once."""
    entry: str = ""
    """As what a plan states independent noise where it enters: "variance", "scale", or not at all."""

    def divided(self, honest: int, grid: Fraction) -> Law | None:
        """Shares of so many parties whose sum on a lattice is as wide; None where the law has none."""
        return None

    def times(self, factor: Fraction) -> Law:
        """The law of so many times its noise.

        Raises: Refused where the law has none that is so wide.
        """
        if factor != 1:
            raise Refused("has noise that comes in no other size")
        return self

    @property
    def accounted(self) -> dict[str, Fraction]:
        """The figures at which it is accounted: all but the last."""
        return {}

    def sizes(self, grid: Fraction) -> tuple[Fraction, ...]:
        """How wide it is, as a plan states it: for all answers, or for each; `grid`: the lattice it is drawn on."""
        raise NotImplementedError

    def variances(self, answers: int, grid: Fraction) -> list[Fraction]:
        """That of the noise on each answer: exact, or to 128 bits; of shares, of all that no coalition knows."""
        raise NotImplementedError

    def mean_sizes(self, answers: int, grid: Fraction) -> list[Fraction]:
        """The expected size of the noise on each answer, exact or to 128 bits.

        Raises: Refused where it is not known.
        """
        raise Refused("has noise whose size on average is not known")

    @property
    def answers(self) -> int | None:
        """How many answers it is for; None for any number."""
        return None

    def let_through(self, view: NoisyView, change: Units, scaling: list[Scaling] | None) -> Loss:
        """At most what is let through of a change."""
        raise NotImplementedError

    def of_structure(self, strategy: Strategy, change: Change, seen: frozenset[str]) -> Loss:
        """The same of answers with structure, of which some outputs are seen.

        Raises: Refused where nothing is known of such answers, or of such a change of them.
        """
        raise Refused("has noise of a law that is not for answers with structure")


@frozen
class OfOneScale(Law):
    """Noise that is as wide on every answer."""

    scale: Fraction

    def __post_init__(self) -> None:
        if self.scale <= 0:
            raise Refused("has noise of no size")

    def times(self, factor: Fraction) -> Law:
        return replace(self, scale=self.scale * factor)

    def sizes(self, grid: Fraction) -> tuple[Fraction, ...]:
        return (self.scale,)


class Strategy:
    """Linear answers with structure, whose matrix is never written out: how far a change moves those of some outputs.

    Raises: Refused where nothing is known of such a change.
    """

    def quadratic_sensitivity(self, change: Change, seen: frozenset[str]) -> Fraction:
        """At least the squared Euclidean length, in the units of the answers."""
        raise Refused("has answers whose squares nothing is known of")

    def absolute_sensitivity(self, change: Change, seen: frozenset[str]) -> Fraction:
        """At least the sum of all moves."""
        raise Refused("has answers whose moves do not add up in a way that is known")


class Choice:
    """A law of one member of a list."""

    notes: tuple[str, ...] = ()
    """The proofs that it rests on."""

    def let_through(self, change: Change) -> Loss:
        """At most what is let through of a change.

        Raises: Refused where nothing is known of such a change.
        """
        raise NotImplementedError


# --- the laws of noise ---------------------------------------------------------------------------------------------


@cache
def by_shape() -> dict[str, type[Law]]:
    """Every law by what a plan calls its noise."""
    homes = [__import__(f"privspec.kernel.laws.{file}", fromlist=["LAWS"]) for file in WORDS_OF]
    return {law.FORM: law for home in homes for law in home.LAWS}


def laws(*, shared: bool = False) -> tuple[type[Law], ...]:
    """The laws of noise that a curator draws, or each party; or of noise in shares."""
    return tuple(law for law in by_shape().values() if law.in_shares == shared)


def law_of(family: JsonNode, *, shared: bool) -> type[Law]:
    """What a plan calls a mechanism of such noise."""
    known = {law.family: law for law in laws(shared=shared)}
    return known[family.one_of(*known)]
