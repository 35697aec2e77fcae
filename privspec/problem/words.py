"""A problem in full sentences, for `check --problem`, `verify` and the auditor's page."""

from __future__ import annotations

from collections.abc import Iterator

from privspec.model.domains import Domain
from privspec.problem.types import Obligation, Problem


def words(problem: Problem) -> Iterator[str]:
    """Everything that the problem says, one sentence a line."""
    for data in problem.data:
        held = f"each {data.party} holds a part of it" if data.party else "held whole"
        yield f"Input {data.name}: {data.domain}, {held}."
    for value in problem.public:
        yield f"Public value {value.name}: {'x'.join(map(str, value.shape)) or 'one number'}, from {value.provenance}."
    for obligation in problem.obligations:
        yield obligation_words(obligation)
    for block in problem.blocks:
        yield from block.words()


def obligation_words(obligation: Obligation) -> str:
    """What is promised to whom, as in "one voter changes: all of x and y of that voter"."""
    amounts = ", ".join(f"{name} = {value}" for name, value in obligation.measure.amounts)
    inputs = " and ".join(obligation.wrt)
    seen, who = " and ".join(obligation.seen), " and ".join(obligation.observers)
    return (
        f"Line {obligation.line}: whoever sees {seen} ({who}) learns of {inputs}, {obligation.neighbours}"
        f"{' (all of them at once)' if len(obligation.wrt) > 1 else ''}, at most what "
        f"{obligation.measure.name} allows with {amounts}."
    )


def domain_words(domain: Domain) -> str:
    """A domain as the language writes it."""
    return domain.describe()
