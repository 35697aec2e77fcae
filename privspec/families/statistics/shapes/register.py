"""All shapes of noise on statistics, in the order in which they are compared."""

from __future__ import annotations

from privspec.families.statistics.shapes.duchi import Duchi
from privspec.families.statistics.shapes.gaussian import Gaussian
from privspec.families.statistics.shapes.knorm import CUBE, EUCLIDEAN
from privspec.families.statistics.shapes.laplace import Laplace
from privspec.families.statistics.shapes.privunit import PrivUnit
from privspec.families.statistics.shapes.shape import Shape

SHAPES: tuple[Shape, ...] = (Laplace(), EUCLIDEAN, CUBE, Gaussian(), Duchi(), PrivUnit())
