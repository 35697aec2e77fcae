"""The least noise that hides one entry of a sequence, given the law of the others: found here, proved by the kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import partial
from itertools import product
from math import log, sqrt
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import InternalError, SpecError
from privspec.core.records import dataclass, replace
from privspec.core.rounding import short_down, short_up
from privspec.families.decision import (
    CONSTANT,
    MEETS,
    STEP,
    Alternative,
    Decided,
    Decision,
    Infeasible,
    accuracy_json,
    decimal_up,
    missed,
    price,
    promised,
    ranked,
)
from privspec.families.family import Settings
from privspec.kernel.chains import (
    CLASSES,
    FINEST,
    Chain,
    errors_of,
    loss_of,
    plain,
    read_proof,
    step_of,
    told_apart,
    told_beyond,
    units_of,
)
from privspec.kernel.core.reading import Grid, JsonNode
from privspec.kernel.core.reading import Refused as Unknown
from privspec.kernel.measures import PURE
from privspec.kernel.strategies.sequences import MOST_RATIOS, affordable, all_laws, work_of_windows
from privspec.kernel.writing import array, write
from privspec.model.graph import Model
from privspec.model.values import show
from privspec.problem.chains import block_of
from privspec.solvers import chains as solver

Array: TypeAlias = NDArray[Any]
SPARE = Fraction(1, 10**9)
"""By so much of itself noise is larger than the solver says, and a refused one smaller."""
NEARLY = 1 + Fraction(1, 1000)
"""Noise so near to one that is refused is not looked for in other ways."""
FINE = Fraction(1, 500)
"""By so much of itself noise may be larger than need be where nothing is optimal anyway."""
TRIES = 12
MOST_SIDES = 6
"""Answers up to which all sides are looked at on which another answer may lie beyond all others."""
DISTANCES = (48, 32, 20, 12, 8, 6, 5, 4)
"""Distances of quilts with laws between them, in the order in which they are tried."""
WORK = 10**8
"""Quilts that are tried, over all entries and pairs of values."""


@dataclass(frozen=True, eq=False, slots=True)
class Sequence:
    """A spec in numbers: `chain` as the kernel reads it, with noise of one step; the laws are of the answers."""

    model: Model
    chain: Chain
    laws: Array | None

    def epsilon(self, number: int) -> Fraction:
        """What a line asks for."""
        found = self.model.requirements[number].measure.pure_epsilon
        assert found is not None
        return found


class Correlated:
    """Takes specs with a line that counts on the law of a sequence."""

    def lower(self, model: Model) -> Sequence:
        """The sequence, its laws, and the laws of the answer where these are few enough.

        Raises: SpecError PS05xx.
        """
        block = block_of(model)
        found = Chain(block=block, unit=step_of(block), scale=Fraction(1))
        return Sequence(model, found, _log_laws(found) if affordable(found) else None)

    def decide(self, model: Model, system: Sequence, settings: Settings) -> Decision | Infeasible:
        """The least noise by the laws of the answer, or else by quilts."""
        started = perf_counter()
        found = _solved(system)
        chain, refused = replace(system.chain, scale=found.scale), found.refused
        for one in chain.block.accuracy:
            reached = errors_of(chain, one.weights)
            if reached > one.bound:
                known = "at least" if refused is not None else "with the least noise found"
                said = f"the privacy asked for makes errors {known} {{}} times as large as the accuracy allows"
                return missed(model, one, reached, found.binding, said)
        return Decided(
            model,
            "discrete Laplace noise",
            _loss(chain, found.scale),
            lambda: _stated(system, found, chain),
            # noise of this kind has no less
            lambda: None if refused is None else loss_of(chain, refused.scale),
            CLASSES[refused is not None],
            units_of(chain),
            others=_alternatives(system, found) if settings.alternatives else (),
            prices=lambda: _prices(system, found),
            solver={"name": "least noise", "seconds": perf_counter() - started},
            program=lambda: "one size of noise is all there is to choose",
        )

    def size(self, system: Sequence) -> int:
        """Entries."""
        return system.chain.length


def _models(chain: Chain) -> range:
    return range(len(chain.models()))


def _logs(chain: Chain, number: int) -> tuple[Array, Array]:
    """A law in logarithms: of the first entry, of a step."""
    _, first, step = chain.models()[number]
    start, move = (
        solver.log_of(np.array(part, dtype=object).astype(np.float64) * float(unit))
        for part, unit in ((first, chain.model.starts.unit), (step, chain.model.steps.unit))
    )
    return start, move


def _log_laws(chain: Chain) -> Array:
    """The laws (models T, S, K + 1) of the answer for every law of the sequence, one after another, in logarithms."""
    rows = [row for laws in all_laws(chain) for row in laws]
    found = np.full((len(rows), chain.size, chain.everything() + 1), -np.inf)
    for t, row in enumerate(rows):
        for s, law in enumerate(row):
            values = [int(value) for value in law.coeffs()]
            whole = log(sum(values)) if values else 0.0
            for k, value in enumerate(values):
                if value:
                    found[t, s, k] = log(value) - whole
    return found


# --- the least noise -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class Proof:
    """How a line that counts on the model is proved, as the kernel takes it: by "laws", "quilts" or "windows"."""

    by: str
    witness: Any = None

    def reached(self, chain: Chain) -> Fraction:
        """The epsilon given the model, as the kernel derives it."""
        return read_proof(self.by, JsonNode(self.witness, "witness"), chain).epsilon(chain)


@dataclass(frozen=True, eq=False, slots=True)
class Refused:
    """A size of noise of this kind that does not meet a line, nor does any smaller one: where it fails.

    `place`: law, entry, two values, and an answer; where `beyond` says on which sides of all answers, there is none.
    """

    scale: Fraction
    place: list[int] | None = None
    beyond: list[bool] | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Solved:
    """Noise of the least size found, the line that asks for it, and a size that is refused where one is known."""

    scale: Fraction
    proof: Proof
    binding: int
    refused: Refused | None


def _solved(system: Sequence, epsilons: dict[int, Fraction] | None = None) -> Solved:
    """Raises: SpecError PS0511 where the answers do not move at all."""
    chain = system.chain
    asked = epsilons or _epsilons(system)
    if not chain.everything():
        raise SpecError.at(
            system.model.source,
            system.model.nodes[system.chain.block.source].span,
            "PS0511",
            "no entry changes the answer, so that it may be published as it is",
        )
    needs = _without_model(system, asked)
    strictest = min(system.chain.block.lines, key=lambda number: asked[number])
    epsilon = asked[strictest]
    if system.laws is not None:
        needs[strictest], refused, proof = _by_laws(system, epsilon)
    else:
        refused = None if system.chain.block.network else _refused_beyond(system, epsilon)
        needs[strictest], proof = _by_parts(system, epsilon, refused)
    binding = max(needs, key=lambda number: needs[number])
    scale = max(needs[binding], FINEST)
    if binding != strictest:
        refused = Refused(needs[binding])
    if system.model.requirements[binding].measure.common is not PURE or scale <= FINEST:
        refused = None
    for _ in range(TRIES):
        if proof.reached(replace(chain, scale=scale)) <= epsilon:
            return Solved(scale, proof, binding, refused)
        scale = short_up(scale * (1 + 10 * SPARE))
    raise InternalError("the noise that was found does not hide an entry")


def _epsilons(system: Sequence) -> dict[int, Fraction]:
    """What each line asks for."""
    return {number: system.epsilon(number) for number in range(len(system.model.requirements))}


def _without_model(system: Sequence, asked: Mapping[int, Fraction]) -> dict[int, Fraction]:
    """The noise that each line asks for which does not count on the model."""
    return {
        number: plain(system.chain, line.neighbours.unit) / asked[number]
        for number, line in enumerate(system.model.requirements)
        if number not in system.chain.block.lines
    }


def _array(quilts: Array) -> dict[str, Any]:
    return array(Grid(quilts.shape, Fraction(1), tuple(quilts.reshape(-1).tolist())))


def _by_laws(system: Sequence, epsilon: Fraction) -> tuple[Fraction, Refused | None, Proof]:
    """The size at which the noise reaches epsilon, and one just below that does not."""
    chain, laws, asked = system.chain, system.laws, float(epsilon)
    assert laws is not None
    found, worst = _least(lambda scale: solver.told(laws, scale), asked, _group(chain, asked))
    if worst is None:
        return FINEST, None, Proof("laws")
    t, a, b, w = worst.place
    place = [t // chain.length, t % chain.length, a, b, w]
    below = _below(found, lambda scale: told_apart(chain, scale, place, epsilon))
    return short_up(found * (1 + SPARE)), None if below is None else Refused(below, place), Proof("laws")


def _group(chain: Chain, epsilon: float) -> float:
    """A size that is enough: that for all entries as one unit."""
    return float(chain.everything()) / epsilon * 1.0001 + float(FINEST)


def _least(told: Callable[[float], Any], epsilon: float, enough: float) -> tuple[Fraction, Any]:
    """The size from which on no more than epsilon is let through, and what is just below; None where all sizes do."""
    low, high = float(FINEST), enough
    worst = told(low)
    if worst.epsilon <= epsilon:
        return FINEST, None
    while high - low > low * 1e-14:
        middle = sqrt(low * high)
        if middle in (low, high):
            break
        now = told(middle)
        if now.epsilon > epsilon:
            low, worst = middle, now
        else:
            high = middle
    return Fraction(high), worst


def _below(found: Fraction, refused: Callable[[Fraction], bool]) -> Fraction | None:
    """A size just below that is refused, as the kernel derives it."""
    below = short_down(found * (1 - SPARE))
    for _ in range(TRIES):
        if refused(below):
            return below
        below = short_down(below * (1 - 10 * SPARE))
    return None


def _refused_beyond(system: Sequence, epsilon: Fraction) -> Refused | None:
    """A size at which answers beyond all others let through more than epsilon; the largest over laws and sides."""
    chain, best = system.chain, None
    counts = np.array(chain.counts, dtype=np.float64)
    sides = list(product((True, False), repeat=counts.shape[1])) if counts.shape[1] <= MOST_SIDES else []
    for number in _models(chain):
        for beyond in sides:
            signs = np.where(beyond, 1.0, -1.0)
            gains, logs = np.tensordot(counts, signs, axes=(1, 0)), _logs(chain, number)
            told = partial(solver.told_beyond, *logs, gains)
            if best is not None and told(float(best[0])).epsilon <= float(epsilon):
                continue
            found, worst = _least(told, float(epsilon), _group(chain, float(epsilon)))
            if worst is not None and (best is None or found > best[0]):
                best = found, [number, *worst.place[:3]], list(beyond)
    if best is None:
        return None
    found, place, sides_of_it = best
    towards = [1 if up else -1 for up in sides_of_it]
    below = _below(found, lambda scale: told_beyond(chain, scale, place, towards, epsilon))
    return None if below is None else Refused(below, place, sides_of_it)


def _by_parts(system: Sequence, epsilon: Fraction, refused: Refused | None) -> tuple[Fraction, Proof]:
    """The size that quilts need, or less where what is between them is small enough to be compared by its laws."""
    chain, found = system.chain, None
    low, high = FINEST if refused is None else refused.scale, chain.everything() / epsilon
    if not system.chain.block.network:
        for distance in DISTANCES:
            if distance < chain.length and work_of_windows(chain, distance) <= MOST_RATIOS:
                proof = Proof("windows", distance)
                scale = _enough(partial(_holds, chain, proof, epsilon), low, high)
                if scale is not None and scale <= low * NEARLY:
                    return scale, proof
                if scale is not None:
                    found, high = (scale, proof), scale
                break
    need, quilts = _by_quilts(system, float(epsilon))
    if found is not None and found[0] <= need:
        return found
    return short_up(need * (1 + SPARE)), Proof("quilts", None if quilts is None else _array(quilts))


def _holds(chain: Chain, proof: Proof, epsilon: Fraction, scale: Fraction) -> bool:
    try:
        return proof.reached(replace(chain, scale=scale)) <= epsilon
    except Unknown:
        return False


def _enough(holds: Callable[[Fraction], bool], low: Fraction, high: Fraction) -> Fraction | None:
    """A size near the least that is proved, from just above a refused one on; None where none below `high` is."""
    near, below = Fraction(2, 10**8), low
    while not holds(scale := short_up(low * (1 + near))):
        near, below = near * 100, scale
        if low * (1 + near) >= high:
            scale = high
            break
    if near > Fraction(1, 10**7):
        while scale > below * (1 + FINE):
            middle = short_up((scale + below) / 2)
            scale, below = (middle, below) if holds(middle) else (scale, middle)
    return scale if scale < high else None


def _by_quilts(system: Sequence, epsilon: float, *, joint: bool = False) -> tuple[Fraction, Array | None]:
    """The size that quilts need, and the quilts for every law; of a network all entries are near."""
    if system.chain.block.network:
        return system.chain.everything() / Fraction(epsilon), None
    chain, size = system.chain, range(system.chain.size)
    reaches = np.array([chain.reach(t) for t in range(chain.length)], dtype=np.float64)
    moved = np.array([[[chain.moved(t, a, b) for b in size] for a in size] for t in range(chain.length)], dtype=float)
    if joint:
        reaches = np.full_like(reaches, reaches.max())
    most = max(8, int(sqrt(WORK / (chain.length * len(size) ** 2 * len(_models(chain))))))
    found = [
        solver.quilts(*_logs(chain, number), reaches, moved, epsilon, most=most, joint=joint)
        for number in _models(chain)
    ]
    return Fraction(max(one.scale for one in found)), np.stack([one.chosen for one in found])


# --- others ----------------------------------------------------------------------------------------------


OFF = "wrong on average, where noise is right"


def _alternatives(system: Sequence, found: Solved) -> tuple[Alternative, ...]:
    """What other ways of sizing the same noise would cost; noise for one entry alone does not count on the model."""
    chain = system.chain
    strictest = min(system.chain.block.lines, key=system.epsilon)
    epsilon = system.epsilon(strictest)
    line = system.model.requirements[strictest].line
    sizes: list[tuple[str, Fraction]] = [("group privacy: all entries as one unit", chain.everything() / epsilon)]
    if system.laws is not None:
        apart = solver.wasserstein(system.laws)
        if apart:
            sizes.append(("Wasserstein mechanism (Song et al. 2017)", apart / epsilon))
    if not system.chain.block.network:
        if found.proof.by != "quilts":
            sizes.append(("Markov quilts, one for each pair of values", _by_quilts(system, float(epsilon))[0]))
        paper = _by_quilts(system, float(epsilon), joint=True)[0]
        sizes.append(("Markov quilt mechanism (Song et al. 2017, MQMExact)", paper))
    # whatever way the line of the model is met, the others ask for their own
    least = max((FINEST, *_without_model(system, _epsilons(system)).values()))
    listed = [Alternative(name, _loss(chain, max(size, least))) for name, size in sizes if size >= FINEST]
    alone = plain(chain, "entry") / epsilon
    if alone >= FINEST:
        reason, admissible = MEETS, alone >= found.scale
        if not admissible and system.laws is not None:
            reached = solver.told(system.laws, float(alone)).epsilon
            reason = f"lets through epsilon {reached:.4g} given the model, where line {line} asks for {show(epsilon)}"
        elif not admissible:
            reason = f"nothing proves line {line} of it"
        name = "noise for one entry alone (differential privacy)"
        listed.append(Alternative(name, _loss(chain, alone), reason, admissible))
    reach = [sum(max(row) - min(row) for row in rows) * chain.unit / 2 for rows in zip(*chain.counts, strict=True)]
    middle = sum((w * far**2 for w, far in zip(chain.block.weights.values(), reach, strict=True)), Fraction(0))
    if middle < loss_of(chain, found.scale) and not system.model.unbiased:
        listed.append(Alternative(CONSTANT, float(middle), OFF, admissible=False))
    return ranked(listed)


def _loss(chain: Chain, scale: Fraction) -> float:
    return float(loss_of(chain, scale))


def _stated(system: Sequence, solved: Solved, chain: Chain) -> dict[str, Any]:
    """The noise as it stands in the plan, with what it guarantees and how that is shown."""
    model, lines, proof, refused = system.model, system.chain.block.lines, solved.proof, None
    if solved.refused is not None:
        where = {"place": solved.refused.place, "beyond": solved.refused.beyond}
        refused = {"line": solved.binding, "scale": str(solved.refused.scale), **where}
    reached, guarantees = proof.reached(chain), []
    for number, line in enumerate(model.requirements):
        least = reached if number in lines else plain(chain, line.neighbours.unit) / solved.scale
        guarantees.append(promised(line, number, least, "quilt" if number in lines else "discrete-laplace"))
    given = [{"line": number, "by": proof.by, "witness": proof.witness} for number in sorted(lines)]
    bare = {kind: decimal_up(plain(chain, kind) / solved.scale) for kind in ("entry", "everything")}
    return {
        "mechanism": write(chain),
        "guarantees": guarantees,
        "accuracy": accuracy_json(
            (one.line, one.text, errors_of(chain, one.weights), one.bound) for one in chain.block.accuracy
        ),
        "claims": {"given": given, "without_model": bare, "bound": refused},
    }


def _prices(system: Sequence, found: Solved) -> Iterator[dict[str, Any]]:
    """What a tenth more epsilon in the line that binds would bring."""
    chain, number = system.chain, found.binding
    if found.proof.by == "windows" and len(chain.offset) > 1:
        return  # a price is a remark, and takes as long as the plan
    asked = _epsilons(system)
    raised = asked | {number: asked[number] * STEP}
    if number in system.chain.block.lines:
        raised |= {i: max(asked[i], raised[number]) for i in system.chain.block.lines}
    after = _loss(chain, _solved(system, raised).scale)
    yield price(system.model.requirements[number], after / _loss(chain, found.scale) - 1)
