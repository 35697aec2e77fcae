"""Answers about a sequence whose entries tell of one another, in numbers: its laws, what each entry adds, the loss.

What a line promises `given the model` is a Pufferfish guarantee (Kifer & Machanavajjhala 2014): for every law that is
allowed, every entry and every two values that it may have, the laws of what is released given the one and the other
are within e^epsilon. noise/notes/quilt.md has statement and proofs.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import numpy as np

from privspec.core.sparse import SparseMatrix, kron
from privspec.kernel.chains import Accuracy, ChainBlock, Output
from privspec.kernel.changes import ConditionalLaw
from privspec.kernel.core.reading import Grid
from privspec.kernel.measures import PURE
from privspec.kernel.trust import CURATOR
from privspec.kernel.writing import LISTED, exact_grid
from privspec.language import syntax
from privspec.language.spelling import spell
from privspec.model.graph import Model, once
from privspec.model.neighbours import GivenTheModel, ReplacingEntry, ReplacingEverything, ReplacingRecord
from privspec.model.reports import Failure, Unsupported
from privspec.model.requirements import Chain
from privspec.model.spaces import finite
from privspec.model.targets import call_of
from privspec.model.values import Value, show
from privspec.problem.linear import numbers_of
from privspec.problem.linear_affine import INPUTS, Affine, Layout
from privspec.problem.linear_interpreter import Interpreter, Reading
from privspec.problem.linear_lowering import Errors, lowered_by, raise_failure
from privspec.problem.refusals import other_families, reading

FAMILIES = ("laplace", "geometric")
"""Names under which a spec may ask for the one kind of noise there is: discrete Laplace noise."""
LARGEST_EPSILON = 50
LARGEST_PAIRS = 300_000
"""Pairs of values, over all entries and laws, that are judged one by one."""
LARGEST_TABLE = 2**21
"""Numbers in what the entries add: entries times answers times values."""


def words(block: ChainBlock) -> Iterator[str]:
    """The sequence and its laws, what is released of it, and the loss."""
    size, names = len(block.states), ", ".join(one.name for one in block.released)
    count = block.starts.shape[0] * block.steps.shape[0]
    yield f"{block.source} is a sequence of {block.added.shape[0]:,} entries, each one of {', '.join(block.states)}."
    yield f"Each number of {names} is a sum of what every entry adds to it by its value; noise of one size is added."
    yield f"The loss is `{block.expression}`."
    yield from (f"Line {one.line}: {one.text}." for one in block.accuracy)
    if not block.lines:
        return
    law = "a stated law" if block.network or count == 1 else f"one of {count} stated laws"
    yield (
        f"Lines that say `given the model` count on this: {block.source} is drawn entry by entry, each given "
        f"{'earlier ones' if block.network else 'the one before'}, by {law}. That is assumed, and nothing checks it "
        "against data."
    )
    for place, own in enumerate(block.network, 1):
        every = product(block.states, repeat=len(own.parents))
        for before, law in zip(every, _laws(block.states, own.chances), strict=True):
            known = zip(own.parents, before, strict=True)
            given = ", ".join(f"entry {parent + 1} is {state}" for parent, state in known)
            yield f"Entry {place}{f', if {given}' if given else ''}: {law}."
    yield from (f"The first entry: {law}." for law in _laws(block.states, block.starts))
    for number, law in enumerate(_laws(block.states, block.steps)):
        yield f"After {block.states[number % size]}: {law}."


def _laws(states: tuple[str, ...], chances: Grid) -> Iterator[str]:
    """Each law of a table, in words."""
    for row in chances.rows:
        yield ", ".join(f"{state} {show(entry * chances.unit)}" for state, entry in zip(states, row, strict=True))


def reads(model: Model) -> bool:
    """Whether a line counts on the law of a sequence."""
    return not finite(model) and any(isinstance(line.neighbours, GivenTheModel) for line in model.requirements)


def chain_of(model: Model) -> Chain:
    """The laws of the input that lines are about."""
    line = next(line for line in model.requirements if isinstance(line.neighbours, GivenTheModel))
    return next(chain for chain in model.chains if chain.subject == line.wrt[0])


@once
@reading(lambda model: _unsupported(model))
def block_of(model: Model) -> ChainBlock:
    """What a spec releases of a sequence, and what an error costs.

    Raises: SpecError PS05xx with every construct that cannot be computed.
    """
    chain = chain_of(model)
    node, states = model.nodes[chain.subject], _states(model, chain.subject)
    size = len(states)
    try:
        system = lowered_by(model, Layout.laid(model.blocks), EntryReader, chain.length * size)
    except Failure as failure:
        raise_failure(model, failure)
    sized = any(one.sizes for one in (system.errors, *(limit.errors for limit in system.limits)))
    if system.worst or system.constants or sized:
        raise Failure("PS0501", model.spec.span, "solve takes sums of squared errors of values of a sequence here")
    m = len(system.target)
    listed = (len(chain.steps) * size, len(chain.starts), *(len(one.rows) for one in chain.network))
    if max(listed) * size > LISTED:
        raise Failure("PS0515", node.span, f"laws have up to {LISTED:,} chances")
    pairs = chain.length * size * size * max(len(chain.starts) * len(chain.steps), 1)
    if system.target.size > LARGEST_TABLE or pairs > LARGEST_PAIRS:
        raise Failure("PS0515", node.span, "too many answers, or values, of too long a sequence")
    added = system.target.reshape(m, chain.length, size).transpose(1, 0, 2)
    return ChainBlock(
        source=chain.subject,
        states=tuple(show(state) if isinstance(state, Fraction) else str(state) for state in states),
        starts=exact_grid([p for law in chain.starts for p in law], (len(chain.starts), size)),
        steps=exact_grid([p for law in chain.steps for row in law for p in row], (len(chain.steps), size, size)),
        network=tuple(
            ConditionalLaw(one.parents, exact_grid([p for row in one.rows for p in row], (len(one.rows), size)))
            for one in chain.network
        ),
        released=tuple(Output(one.name, one.start, one.stop, one.shape) for one in system.outputs),
        added=numbers_of(added, (chain.length, m, size)),
        offset=numbers_of(system.offset, (m,)),
        weights=_weights(system.errors, m),
        expression=spell(model.loss) if model.loss is not None else "",
        accuracy=tuple(
            Accuracy(_weights(limit.errors, m), limit.bound, limit.line, limit.text) for limit in system.limits
        ),
        lines=tuple(i for i, line in enumerate(model.requirements) if isinstance(line.neighbours, GivenTheModel)),
    )


def _weights(errors: Errors, size: int) -> Grid:
    """What the squared error of each number counts, where errors are independent."""
    return numbers_of((errors.rows * errors.rows.data).T @ errors.weights, (size,))


def _states(model: Model, name: str) -> list[Value]:
    """The values of an entry, in the order of its domain."""
    return list(model.block(name).base_domain.elements())


class EntryReader(Interpreter):
    """Reads expressions of a sequence, whose base vector says of every entry which of its values it has: T times S."""

    def _input(self, name: str) -> Reading:
        node, states = self.model.nodes[name], _states(self.model, name)
        if not node.type.numeric:
            message = f"{name} has words for entries; solve computes with how many of them are the same"
            raise Failure("PS0501", node.span, message, help=f"use histogram({name})")
        (length,) = node.type.shape
        each = np.array([[float(state) for state in states]])  # type: ignore[arg-type]
        place = kron(SparseMatrix.diagonal(np.ones(length)), each)
        return Affine((length,), np.zeros(length), {INPUTS: place})

    def call(self, expr: syntax.Call) -> Reading:
        match expr.arguments:
            case (syntax.Name(id=name),) if name in {chain.subject for chain in self.model.chains}:
                bound = call_of(self.model, expr)
                if bound.of_values is not None:
                    size = len(bound.of_values)
                    ones = np.ones((1, self.model.nodes[name].type.shape[0]))
                    tally = kron(ones, SparseMatrix.diagonal(np.ones(size)))
                    return Affine((size,), np.zeros(size), {INPUTS: tally})
        return super().call(expr)


def _unsupported(model: Model) -> Iterator[Unsupported]:
    beside = "where a line counts on the model"
    if not model.trust.central:
        yield model.trust_span, f"`trust {model.trust.name}` {beside}", f"`{CURATOR.written}` can be computed"
    chain = chain_of(model)
    for node in model.inputs:
        if node.name != chain.subject:
            yield node.span, f"further inputs {beside} ({node.name})", "release what is about it by another spec"
    for choice in model.choices:
        yield choice.span, f"a value for {choice.name} {beside}", f"give {choice.name} a value under `parameters:`"
    spans = [line.target.span for line in model.accuracy if line.target.probability is not None]
    spans += [line.span for line in model.fairness]
    spans += [line.relation.span for line in model.constraints] + [line.claim.span for line in model.asserted]
    for span in spans:
        yield span, f"this line {beside}", "leave it out, or leave out `given the model`"
    for span in model.noise_at_spans:
        yield span, f"other places for noise {beside}", "leave the line out: noise is added to the answers"
    yield from other_families(model, FAMILIES, f" {beside}")
    for node in model.outputs:
        if node.definition is not None or (node.domain is not None and node.domain.bounds != (None, None)):
            yield node.span, f"an output that is defined, or stays within a domain, {beside}", f"output {node.name}"
    for line in model.requirements:
        unit = (GivenTheModel, ReplacingEntry, ReplacingRecord, ReplacingEverything)
        if not isinstance(line.neighbours, unit) or line.neighbours.adding or line.neighbours.group > 1:
            yield line.span, f"the unit {line.neighbours.describe()} {beside}", "replacing one entry"
        if set(line.outputs) != {node.name for node in model.outputs}:
            yield line.span, f"a line about some outputs only {beside}", f"all outputs are {PURE.name} wrt ..."
        epsilon = line.measure.pure_epsilon
        if epsilon is None or epsilon > LARGEST_EPSILON:
            yield line.span, f"{line.measure.describe()} {beside}", f"{PURE.name}, with an epsilon of up to 50"
