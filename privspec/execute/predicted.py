"""How far off outputs are that are computed from noisy ones: simulated, since noise does not pass through quotients.

A plan says it at made-up data: so many records as the spec declares, 1,000 where it declares none, that lie as the
declared law has them, or evenly. A release says it around the noisy values themselves, which are public. Noise is drawn
in floating point from a fixed seed: these are predictions, and nothing that is promised rests on them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass
from privspec.language import syntax
from privspec.model.domain_rules import read_domain
from privspec.model.domains import Between, Cut, Table
from privspec.model.evaluate import Environment, evaluate, floats
from privspec.model.priors import law_of
from privspec.model.reports import Failure
from privspec.model.targets import environment, environment_of_computed, needed, target

if TYPE_CHECKING:
    from privspec.execute.family import Mechanism
    from privspec.model.graph import Computed, Model

Array = NDArray[np.float64]
RECORDS = 1000
"""Records of a table whose number is not declared, for the prediction alone."""
DRAWS, DRAWS_OF_RELEASE = 1000, 200
"""Draws of the noise, for a plan and for a release."""
SEED = 20201203
WORK, FEWEST = 4_000_000, 40
"""Entries of maps that are gone through for a prediction, and the least draws."""
LARGEST = 2**22
"""Coordinates of the data up to which errors are predicted."""
NEARBY = 0.02
"""Share of a value within which it lies anywhere, where what is computed is rounded."""
LISTED = 256
"""Entries of an output whose errors are told one by one."""


@dataclass(frozen=True, eq=False, slots=True)
class Predicted:
    """The root mean square error of each entry of a computed output, its bias included, over `draws` of the noise."""

    name: str
    errors: Array
    draws: int

    @property
    def whole(self) -> float:
        """The root of the mean over all entries."""
        return float(np.sqrt(np.mean(self.errors**2)))


def predicted(
    mechanism: Mechanism, model: Model, truth: Mapping[str, Array], draws: int = DRAWS, seed: int = SEED
) -> tuple[Predicted, ...]:
    """The errors of all outputs that are computed from noisy ones.

    Args: truth, what outputs are around which noise is drawn. Outputs whose noise depends on the data are left out.
    """
    wanted = {name for one in model.computed for name in one.sources if name in truth}
    noise = mechanism.errors(draws, seed) if wanted else {}
    known = {name: np.asarray(truth[name], dtype=np.float64) for name in wanted & set(noise)}
    ours = [one for one in model.computed if set(one.sources) <= set(known)]
    public = environment_of_computed(model)
    aims = _computed(ours, known, public, moved=False)
    draws = min(draws, _fewer(ours, public))
    squares, counts = ({one.name: np.zeros(one.type.shape) for one in ours} for _ in range(2))
    step, places = max((float(one.step or 0) for one in ours), default=0.0), np.random.default_rng(seed)
    for i in range(draws if ours else 0):
        if step:
            true = {name: value + _beside(value, step, places) for name, value in known.items()}
            aims = _computed(ours, true, public, moved=False)
        else:
            true = known
        drawn = _computed(ours, {name: value + noise[name][i] for name, value in true.items()}, public)
        for name, value in drawn.items():
            finite = np.isfinite(value - aims[name])
            squares[name] += np.where(finite, value - aims[name], 0) ** 2
            counts[name] += finite
    told = [one.name for one in ours if np.all(counts[one.name])]
    return tuple(Predicted(name, np.sqrt(squares[name] / counts[name]), int(counts[name].min())) for name in told)


def _beside(value: Array, step: float, random: np.random.Generator) -> Array:
    """A little that data may have more: at round numbers alone nothing would be lost by rounding."""
    more = np.maximum(step, NEARBY * np.abs(value)) * random.random(value.shape)
    return np.floor(more) if np.array_equal(value, np.rint(value)) else more


def _fewer(outputs: Sequence[Computed], public: Environment) -> int:
    """How often what is computed is worked out, where that takes long."""
    sizes = [np.asarray(public.values[f"{name}.cells"]).size for one in outputs for name in one.maps]
    return max(FEWEST, int(WORK / max(1, sum(sizes))))


def _computed(
    outputs: Sequence[Computed], known: Mapping[str, Array], public: Environment, *, moved: bool = True
) -> dict[str, Array]:
    """Computed outputs, in an order in which each can be."""
    found: dict[str, Array] = {}
    for one in outputs:
        found[one.name] = one.value({**known, **found}, public, moved=moved)
    return found


def predicted_of_model(mechanism: Mechanism, model: Model) -> tuple[Predicted, ...]:
    """The same at made-up data that lie as a spec says.

    Raises: Failure for a declared law that cannot be computed.
    """
    if not model.computed or model.size > LARGEST:
        return ()
    u = made_up(model)
    try:
        truth = {name: target(model, name, u) for one in model.computed for name in one.sources if name in model.nodes}
    except Failure:  # a constant is given at `run`, or a value has no number
        return ()
    return predicted(mechanism, model, truth)


def made_up(model: Model) -> Array:
    """Data without noise or chance: the average data set under the declared law, or an even one.

    Raises: Failure for a law that cannot be computed.
    """
    u = np.zeros(model.size)
    for block in model.blocks:
        table = block.base_domain
        if isinstance(table, Table):
            shares = cell_shares(model, block.name, table)
            tables = (block.stop - block.start) // table.cell_count
            u[block.start : block.stop] = np.tile(shares * ((block.records or RECORDS) / tables), tables)
        else:
            low, high = block.domain.bounds
            u[block.start : block.stop] = (
                (float(low) + float(high)) / 2 if low is not None and high is not None else 0.0
            )
    return u


def cell_shares(model: Model, name: str, table: Table) -> Array:
    """The share of the records in each cell of a table: what the law says that is declared for them, else even ones.

    Args: table, with the columns that are read. Weights are given for all columns of the declaration that have values
    to count, the last one running fastest; numbers that are measured lie evenly between their ends.
    Raises: Failure PS0406 for a law of something else than its cells, PS0514 for one that is neither uniform nor
    categorical.
    """
    law = next((one for one in model.models if one.subjects == (name,)), None)
    if law is None:
        return _of_columns(model, name, table)
    if law.distribution == "uniform":
        return np.full(table.cell_count, 1 / table.cell_count)
    if law.distribution != "categorical":
        message = f"{law.distribution} is no law of the records of a table"
        raise Failure("PS0514", law.span, message, help="use categorical(weights) of its cells, or uniform")
    values = environment(model)
    written = next(one.domain for one in model.spec.variables if one.target.name == name)
    whole = table if written is None else read_domain(written, values)
    assert isinstance(whole, Table)
    given = law.arguments[0]
    if isinstance(given, syntax.NO_EXPRESSION):
        raise Failure("PS0406", law.span, "a plain value is expected here")
    weights = np.asarray(floats(evaluate(given, values), law.span)).ravel()
    shape = tuple(1 if isinstance(d, Between) else d.size or 1 for _, d in whole.attributes)
    if len(weights) != prod(shape) or weights.min() < 0 or not weights.sum() > 0:
        message = f"{len(weights)} weights for {prod(shape):,} cells of {name}"
        raise Failure("PS0406", law.span, message, help="one for each cell, none below 0: the last column runs fastest")
    array = weights.reshape(shape) / weights.sum()
    unread = tuple(i for i, column in enumerate(whole.names) if column not in table.names)
    kept: Array = array.sum(axis=unread)
    for axis, (_, domain) in enumerate(table.attributes):
        if isinstance(domain, Between):
            kept = np.repeat(kept, domain.size or 1, axis=axis) / (domain.size or 1)
    return kept.ravel()


def _of_columns(model: Model, name: str, table: Table) -> Array:
    """The same where columns have laws of their own, `people.age ~ ...`, and are independent."""
    shares = np.ones(1)
    for column, domain in table.attributes:
        law = next((one for one in model.models if one.subjects == (f"{name}.{column}",)), None)
        size = domain.size or 1
        even = law is None or isinstance(domain, Between)
        spread = domain.shares() if isinstance(domain, Cut) else [Fraction(1, size)] * size
        own = spread if even or law is None else law_of(law, list(domain.elements()), environment(model))
        shares = np.outer(shares, np.array(own, dtype=np.float64)).ravel()
    return shares


def data_words(model: Model) -> str:
    """At which data errors are predicted, as in "1,000 records spread evenly"."""
    said = []
    used = {name for one in model.computed for source in one.sources for name in needed(model, source)}
    for block in (one for one in model.blocks if one.name in used):
        if isinstance(block.base_domain, Table):
            known = {block.name, *(f"{block.name}.{column}" for column in block.base_domain.names)}
            modelled = any(known & {*one.subjects} for one in model.models)
            how = "as the model says" if modelled else "evenly"
            number = f"{'' if block.records else 'a made-up '}{block.records or RECORDS:,} records"
            said.append(f"{number} spread {how}")
        else:
            said.append(f"{block.name} in the middle of its range")
    return " and ".join(dict.fromkeys(said))


def remark(mechanism: Mechanism, model: Model) -> list[dict[str, Any]]:
    """What a plan says of it."""
    return [
        {
            "name": one.name,
            "error": float(f"{one.whole:.6g}"),
            "errors": [float(f"{v:.6g}") for v in one.errors.ravel()] if one.errors.size <= LISTED else [],
            "draws": one.draws,
            "at": data_words(model),
        }
        for one in predicted_of_model(mechanism, model)
    ]


def deviations(mechanism: Mechanism, model: Model, released: Mapping[str, NDArray[Any]]) -> dict[str, Array]:
    """The root mean square distance of computed outputs from what they are, were the noisy values the true ones."""
    numbers = {
        name: np.asarray(values, dtype=np.float64)
        for name, values in released.items()
        if np.asarray(values).dtype.kind in "fiu"
    }
    found = predicted(mechanism, model, numbers, DRAWS_OF_RELEASE)
    return {
        one.name: np.array([float(f"{v:.2g}") for v in one.errors.ravel()]).reshape(one.errors.shape) for one in found
    }
