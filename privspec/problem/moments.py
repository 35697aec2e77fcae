"""Means and variances of the data by their models, where every input has one: losses that are averages over them."""

from __future__ import annotations

from fractions import Fraction

from flint import ctx

from privspec.kernel.core.linear import InputLaw
from privspec.model.domains import Ball
from privspec.model.graph import Model
from privspec.model.neighbours import InputBlock
from privspec.model.priors import law_of
from privspec.model.reports import Failure
from privspec.model.requirements import DataModel
from privspec.model.targets import environment

PRECISION, BITS, MOST = 256, 96, 2**12
"""Binary digits of tails, and of the moments that are stated; values of a number that are listed at most."""


def laws_of(model: Model) -> tuple[InputLaw, ...] | None:
    """Of each input what its model says of its numbers, as they are clipped; None where one has no model of its own."""
    known = {one.subject: one for one in model.models if not one.joint}
    if model.chains or any(one.joint for one in model.models):
        return None
    try:
        found = [_law(model, block, known.get(block.name)) for block in model.blocks]
    except Failure:
        return None
    return None if None in found else tuple(one for one in found if one is not None)


def _law(model: Model, block: InputBlock, law: DataModel | None) -> InputLaw | None:
    if block.schema is not None:
        from privspec.problem.elaborate import cell_chances

        chances = cell_chances(model, block)
        if chances is None or block.records is None:
            return None
        return InputLaw(Fraction(0), Fraction(0), tuple(chances.values()))
    low, high = block.domain.bounds
    if law is None or isinstance(block.base_domain, Ball) or low is None or high is None:
        return None
    if block.base_domain.spacing is None:
        return _of_real(model, law, low, high)
    if (block.base_domain.size or MOST + 1) > MOST:
        return None
    values = [Fraction(value) for value in block.base_domain.elements()]
    pairs = list(zip(law_of(law, values, environment(model)), values, strict=True))
    mean = sum((chance * value for chance, value in pairs), Fraction(0))
    return InputLaw(mean, sum((chance * (value - mean) ** 2 for chance, value in pairs), Fraction(0)))


def _of_real(model: Model, law: DataModel, low: Fraction, high: Fraction) -> InputLaw:
    """A number that is clipped to its limits; rounded."""
    from privspec.problem.cells import real_law

    known, far = real_law(model, law, low, high), Fraction(10) ** 12
    with ctx.workprec(PRECISION):
        below = known.between(min(low, Fraction(0)) - far, low)[0]
        mass, first, second = known.between(low, high)
    above = max(1 - below - mass, Fraction(0))
    mean = first + low * below + high * above
    square = second + low**2 * below + high**2 * above
    mean, variance = (Fraction(round(value * 2**BITS), 2**BITS) for value in (mean, square - mean**2))
    return InputLaw(mean, max(variance, Fraction(0)))
