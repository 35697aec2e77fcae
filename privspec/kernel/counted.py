"""Parts of systems by the laws that they execute, as `losses` composes them."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from flint import fmpq, fmpq_mat

from privspec.kernel.changes import Piece
from privspec.kernel.core.linear import Release
from privspec.kernel.core.numbers import ZERO, sqrt_down
from privspec.kernel.core.problem import PlanUnderCheck
from privspec.kernel.core.reading import Refused
from privspec.kernel.laws.laplace import Laplace
from privspec.kernel.losses import ROWS, FiniteLaws, Pair, PrivacyLoss, response
from privspec.kernel.moves import units_of
from privspec.kernel.promises import promised
from privspec.kernel.rows import laid_out
from privspec.kernel.rules import derive
from privspec.kernel.strategies.dense import image
from privspec.kernel.tables import Executed as Drawn
from privspec.kernel.voting import Executed as Voted


def counted(case: PlanUnderCheck, executed: object, number: int, figures: dict[str, Fraction]) -> PrivacyLoss:
    """How a part counts in its line of that number, of which it spends mu, rho, or epsilon and maybe a delta."""
    rules = LAWS.get(str(dict(case.block.entries())["form"].value))
    found = None if rules is None or "delta" in figures else rules(case, executed, number, figures)
    if found is not None:
        return found
    if "mu" in figures:
        return PrivacyLoss(own=False, mu_squared=(figures["mu"] ** 2, ZERO))
    if "rho" in figures:
        return PrivacyLoss(own=False)  # of no known law; parts of a rho are only ever added up
    return response(figures["epsilon"], figures.get("delta", ZERO))


# --- what is executed --------------------------------------------------------------------------------------------


def _of_noise(case: PlanUnderCheck, executed: Release, number: int, figures: dict[str, Fraction]) -> PrivacyLoss | None:
    """Gaussian noise, and Laplace noise on one answer, where the noisy answers can be told from what is seen."""
    block, noise, rows = executed.problem, executed.noise, executed.strategy.nrows()
    shows = executed.reconstruction
    if rows > ROWS or not (noise.spherical or (isinstance(noise, Laplace) and rows == 1)):
        return None
    if executed.of_inputs:
        shows = laid_out(block.target * shows)
    seen, listed = block.rows_of(case.frame.obligations[number].seen), shows.tolist()
    if case.frame.trust.means.public or fmpq_mat([listed[row] for row in seen]).rank() < rows:
        return None
    columns = executed.strategy.transpose().tolist()
    try:
        units = [unit for one in block.surely(number) for unit, _ in units_of(one, block.places).grouped().units]
    except Refused:
        return None
    size = noise.sizes(executed.grid)[0]
    square = max((_moved(columns, unit) for unit in units), default=ZERO) / size**2
    if "epsilon" not in figures:
        most = figures["mu"] ** 2 if "mu" in figures else 2 * figures["rho"]
        return PrivacyLoss(own=True, mu_squared=(most, square)) if noise.normal else None
    if noise.normal:
        return None
    step = executed.grid / size  # by one such an answer between points of the lattice may move less
    return PrivacyLoss(own=True, laplace=(figures["epsilon"], max(ZERO, sqrt_down(square) - step)), step=step)


def _moved(columns: list[list[fmpq]], unit: tuple[Piece, ...]) -> Fraction:
    """A squared length that a unit surely moves answers by: its pieces one by one, each the way that leads farthest."""
    at = [fmpq(0)] * len(columns[0])
    for piece in unit:
        most = Fraction(piece.most or piece.amount)
        ways = [image(columns, edge, most) for edge in piece.edges]
        if piece.shape == "swap":
            pairs = ((one, other) for i, one in enumerate(ways) for other in ways[:i])
            ways = [[a - b for a, b in zip(*pair, strict=True)] for pair in pairs]
        if piece.shape not in ("cell", "kept"):
            ways += [[-v for v in way] for way in ways]
        ends = ([a + b for a, b in zip(at, way, strict=True)] for way in ways)
        at = max(ends, key=lambda end: sum(v * v for v in end), default=at)
    square = sum((v * v for v in at), fmpq(0))
    return Fraction(int(square.p), int(square.q))


def _of_laws(case: PlanUnderCheck, executed: Drawn | Voted, number: int, _: dict[str, Fraction]) -> PrivacyLoss | None:
    """The laws of every two data that a line compares, of what its observers see, where few are looked at."""
    term, lines = promised(case)
    line, pairs = lines[number], list[Pair]()
    for one in line.questions if executed.rounds is None else ():
        laws = [own for own in derive(term, line.seen, one.change).loss.factors if isinstance(own, FiniteLaws)]
        counted = laws[0].composed() if laws else None
        if counted is None:
            return None
        pairs += counted.pairs
    return PrivacyLoss(own=True, pairs=tuple(pairs)) if pairs else None


LAWS: dict[str, Callable[..., PrivacyLoss | None]] = {"linear": _of_noise, "table": _of_laws, "votes": _of_laws}
"""By the form of a part's block; of all other parts only what they spend is known."""
