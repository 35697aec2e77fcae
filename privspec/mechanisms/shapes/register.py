"""All shapes of noise on statistics, in the order in which they are compared."""

from __future__ import annotations

from privspec.mechanisms.shapes.duchi import Duchi
from privspec.mechanisms.shapes.gaussian import Gaussian
from privspec.mechanisms.shapes.knorm import CUBE, EUCLIDEAN
from privspec.mechanisms.shapes.laplace import Laplace
from privspec.mechanisms.shapes.privunit import PrivUnit
from privspec.mechanisms.shapes.shape import Shape

SHAPES: tuple[Shape, ...] = (Laplace(), EUCLIDEAN, CUBE, Gaussian(), Duchi(), PrivUnit())
