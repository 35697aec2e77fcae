"""What a law of noise is to the rules: how much of a change it lets through."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from privspec.kernel.core.reading import Refused

if TYPE_CHECKING:
    from privspec.kernel.changes import Change, Units
    from privspec.kernel.losses import Loss
    from privspec.kernel.strategies.dense import Dense, Lattice, Scaling


@dataclass(frozen=True, slots=True)
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

    notes: tuple[str, ...] = ()
    """The proofs that it rests on."""

    figure: str = "epsilon"
    """What says how much it lets through."""

    spherical: bool = False
    """Whether its covariance is a deviation squared times the identity, and it is normal: so are its mixtures."""
    joint: bool = False
    """Whether the noise of all answers is drawn at once, as one vector."""

    @property
    def answers(self) -> int | None:
        """How many answers it is for; None for any number."""
        return None

    @property
    def honest(self) -> int | None:
        """Of how many parties the noise is made up that no coalition knows; None where one curator draws it."""
        return None

    def let_through(self, view: NoisyView, change: Units, scaling: list[Scaling] | None) -> Loss:
        """At most what is let through of a change."""
        raise NotImplementedError

    def of_structure(self, strategy: Strategy, change: Change, seen: frozenset[str]) -> Loss:
        """The same of answers with structure, of which some outputs are seen.

        Raises: Refused where nothing is known of such answers, or of such a change of them.
        """
        raise Refused("has noise of a law that is not for answers with structure")


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
