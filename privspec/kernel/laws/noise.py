"""The laws of noise: a closed world. A law is added by its file, and by its name here."""

from __future__ import annotations

from privspec.kernel.core.reading import JsonNode
from privspec.kernel.laws.gaussian import Gaussian, GaussianShares
from privspec.kernel.laws.knorm import KNorm
from privspec.kernel.laws.laplace import Laplace, LaplaceShares
from privspec.kernel.laws.law import Law
from privspec.kernel.laws.staircase import Staircase

LAWS: tuple[type[Law], ...] = (Gaussian, Laplace, Staircase, KNorm)
"""Of noise that a curator draws, or each party."""
IN_SHARES = (GaussianShares, LaplaceShares)
"""Of the sum of what the parties of a secure sum draw."""

BY_SHAPE = {law.shape: law for law in LAWS + IN_SHARES}
FAMILIES = tuple(word for law in LAWS for word in law.words)
"""The noise families that a spec may ask for."""


def law_of(family: JsonNode, *, shared: bool) -> type[Law]:
    """What a plan calls a mechanism of such noise."""
    known = {law.family: law for law in (IN_SHARES if shared else LAWS)}
    return known[family.one_of(*known)]
