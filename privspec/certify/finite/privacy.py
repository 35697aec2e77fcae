"""Coverage and privacy of a table: every requirement from its exact probabilities."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatchmethod
from math import prod

import numpy as np

from privspec.certify.finite.distances import Apart
from privspec.certify.finite.ratios import Comparison, Indices, LogRatio
from privspec.certify.finite.relations import Neighbours
from privspec.certify.finite.subject import FiniteSubject, label_text
from privspec.certify.measures import Finding, pure_proves
from privspec.certify.motion import NotUnderstood
from privspec.certify.promises import claim, mismatches, with_figures
from privspec.certify.reading import Guarantee, Malformed
from privspec.certify.relations import exposed
from privspec.certify.report import Claim
from privspec.certify.rounds import told
from privspec.model.measures import LDP, RDP, ZCDP, EpsilonDelta, Measure, MetricDP, PerAtomLDP, Personalised, PureDP
from privspec.model.requirements import Curator, Nobody, Requirement

Broken = tuple[int, int, int]
"""Rows a, b and a number of what is seen: Pr(seen | a) is too much beside Pr(seen | b)."""


# --- coverage ------------------------------------------------------------------------------------------


def coverage(subject: FiniteSubject) -> Iterator[Claim]:
    """Outputs, trust and guarantees of the plan are those of the spec, one for one."""
    wrong = [*_frame(subject)]
    listed = [g.requirement for g in subject.guarantees]
    if sorted(listed) != list(range(len(subject.requirements))):
        wrong.append("the guarantees of the plan are not the requirements of the spec, one for one")
    else:
        wrong.extend(w for g in subject.guarantees for w in mismatches(g, subject.requirements[g.requirement]))
    for text in wrong:
        yield Claim("coverage", "failed", text)
    if not wrong:
        count = len(listed)
        what = "requirement of the spec has its" if count == 1 else "requirements of the spec have their"
        yield Claim("coverage", "ok", f"{count} {what} guarantee, with the same figures")


def _frame(subject: FiniteSubject) -> Iterator[str]:
    model = subject.model
    if subject.table.releases != tuple(node.name for node in model.outputs):
        yield "the plan releases other outputs than the spec names"
    if any(node.definition is not None for node in model.outputs):
        yield "an output that is computed from others is not drawn from a table"
    if model.components:
        yield "a system of components is not drawn from one table"
    if model.families and "table" not in model.families:
        yield "the spec does not allow tables"
    if model.noise_at is not None and not set(model.noise_at) >= set(subject.table.releases):
        yield "the spec does not allow noise at the outputs"
    if isinstance(model.trust, Nobody):
        if any(model.nodes[name].index is not None for name in subject.table.of if name in model.nodes):
            yield "with trust nobody, every party draws a report of its own; this table sees the data of all"
    elif not isinstance(model.trust, Curator):
        yield f"trust {model.trust.name} is not covered by this checker"


# --- privacy -------------------------------------------------------------------------------------------


class Limit(ABC):
    """What a measure asks of the laws of neighbouring rows."""

    @abstractmethod
    def broken(self, seen: Comparison) -> Broken | None:
        """A pair of laws that breaks it."""

    @abstractmethod
    def text(self) -> str:
        """What was shown, for all pairs."""

    @abstractmethod
    def ratios_up(self, a: Indices, b: Indices) -> Sequence[int] | None:
        """For bounds: the ratio of each pair of rows over 2^BITS, rounded up; None if one of them is not compared.

        Raises: NotUnderstood.
        """

    def spent(self, heaviest: int, total: int) -> Fraction:
        """For bounds: what slacks cost at multipliers; `heaviest` sums the largest of each pair, `total` all."""
        return Fraction(0)


@dataclass(frozen=True, eq=False, slots=True)
class Ratios(Limit):
    """Every probability at most e^epsilon times that of a neighbour."""

    neighbours: Neighbours
    epsilons: Mapping[int | None, Fraction]

    def broken(self, seen: Comparison) -> Broken | None:
        """Through the largest and least entries of each set of mutual neighbours."""
        for unit, sets in self.neighbours.sets.items():
            ratio = LogRatio.of(self.epsilons[unit] if unit in self.epsilons else self.epsilons[None])
            for groups in sets:
                found = seen.broken_cliques(groups, ratio)
                if found is not None:
                    return found
        return None

    def text(self) -> str:
        """In words."""
        low, high = min(self.epsilons.values()), max(self.epsilons.values())
        figure = f"{float(high):.12g}" if low == high else f"{float(low):.6g} to {float(high):.6g}"
        return f"every ratio of neighbours is at most e^ε for ε = {figure}"

    def ratios_up(self, a: Indices, b: Indices) -> Sequence[int] | None:
        """One for all."""
        return [self.ratio.up] * len(a) if self.neighbours.holds(a, b) else None

    @property
    def ratio(self) -> LogRatio:
        """The one ratio.

        Raises: NotUnderstood if there are several.
        """
        if len(set(self.epsilons.values())) != 1:
            raise NotUnderstood("multipliers of a requirement with several epsilons")
        return LogRatio.of(next(iter(self.epsilons.values())))


@dataclass(frozen=True, eq=False, slots=True)
class Distances(Limit):
    """Every probability at most e^(epsilon distance) times that of another row."""

    apart: Apart
    epsilon: Fraction

    def broken(self, seen: Comparison) -> Broken | None:
        """Pair by pair: in doubles, exactly where these do not tell."""
        ratios = self.apart.ratios(self.epsilon)
        low = np.array([ratio.low for ratio in ratios])
        for a in range(self.apart.rows):
            others, kinds = self.apart.partners(a)
            found = seen.broken_row(a, others, kinds, ratios, low)
            if found is not None:
                return found
        return None

    def text(self) -> str:
        """In words."""
        return f"every ratio is at most e^(ε · distance) for ε = {float(self.epsilon):.12g}"

    def ratios_up(self, a: Indices, b: Indices) -> Sequence[int] | None:
        """By the distance of each pair."""
        kinds = self.apart.kinds_of(a, b)
        if kinds is None:
            return None
        ratios = self.apart.ratios(self.epsilon)
        up = {kind: ratios[kind].up for kind in set(kinds.tolist())}
        return [up[kind] for kind in kinds.tolist()]


@dataclass(frozen=True, eq=False, slots=True)
class Excess(Limit):
    """What a law has beyond e^epsilon times that of a neighbour sums to at most delta: exact for sets of outputs."""

    neighbours: Neighbours
    epsilon: Fraction
    delta: Fraction

    def broken(self, seen: Comparison) -> Broken | None:
        """Pair by pair: in doubles, exactly where these do not tell."""
        ratio = LogRatio.of(self.epsilon)
        limit = float(self.delta)
        for a in range(self.neighbours.rows):
            others = self.neighbours.partners(a)
            if not len(others):
                continue
            rough, error = seen.rough_excess(a, others, ratio.low)
            for k in np.flatnonzero(rough > limit * (1 - 2.0**-50) - error):
                if seen.excess(a, int(others[k]), ratio) > self.delta:
                    return a, int(others[k]), -1
        return None

    def text(self) -> str:
        """In words."""
        return (
            f"beyond e^ε for ε = {float(self.epsilon):.12g} no neighbour has more than δ = {float(self.delta):.6g}, "
            "over all sets of outputs"
        )

    def ratios_up(self, a: Indices, b: Indices) -> Sequence[int] | None:
        """One for all."""
        return [LogRatio.of(self.epsilon).up] * len(a) if self.neighbours.holds(a, b) else None

    def spent(self, heaviest: int, total: int) -> Fraction:
        """Delta for each pair."""
        return self.delta * heaviest


@dataclass(frozen=True, eq=False, slots=True)
class Single(Limit):
    """No single output has more than `slack` beyond e^epsilon times its probability at a neighbour."""

    neighbours: Neighbours
    epsilon: Fraction
    allowed: Fraction

    def broken(self, seen: Comparison) -> Broken | None:
        """Through the largest and least entries of each set of mutual neighbours."""
        ratio = LogRatio.of(self.epsilon)
        for groups in self.neighbours.cliques:
            found = seen.broken_cliques(groups, ratio, self.allowed)
            if found is not None:
                return found
        return None

    def text(self) -> str:
        """In words."""
        figures = f"ε = {float(self.epsilon):.12g} no neighbour has more than {float(self.allowed):.6g}"
        return f"beyond e^ε for {figures} at any single output"

    def ratios_up(self, a: Indices, b: Indices) -> Sequence[int] | None:
        """One for all."""
        return [LogRatio.of(self.epsilon).up] * len(a) if self.neighbours.holds(a, b) else None

    def spent(self, heaviest: int, total: int) -> Fraction:
        """The slack for each output."""
        return self.allowed * total


@dataclass(frozen=True, eq=False, slots=True)
class Asked:
    """Reads measures over the neighbours that a requirement compares."""

    subject: FiniteSubject
    requirement: Requirement

    @property
    def _neighbours(self) -> Neighbours:
        return self.subject.neighbours(self.requirement)

    @singledispatchmethod
    def limit(self, measure: Measure) -> Limit:
        """What the measure asks, with its figures.

        Raises: NotUnderstood.
        """
        raise NotUnderstood(f"tables that satisfy {measure.describe()}")

    @limit.register
    def _(self, measure: PureDP) -> Limit:
        return Ratios(self._neighbours, {None: measure.epsilon})

    @limit.register(EpsilonDelta)
    @limit.register(LDP)
    def _(self, measure: EpsilonDelta | LDP) -> Limit:
        if measure.delta:
            return Excess(self._neighbours, measure.epsilon, measure.delta)
        return Ratios(self._neighbours, {None: measure.epsilon})

    @limit.register
    def _(self, measure: PerAtomLDP) -> Limit:
        domains = [self.subject.model.nodes[name].domain for name in self.requirement.wrt]
        sizes = [0 if domain is None else domain.size or 0 for domain in domains]
        if not all(sizes):
            raise NotUnderstood("a condition on single outputs for infinitely many inputs")
        return Single(self._neighbours, measure.epsilon, measure.delta / prod(sizes))

    @limit.register
    def _(self, measure: MetricDP) -> Limit:
        return Distances(self.subject.apart(self.requirement), measure.epsilon)

    @limit.register
    def _(self, measure: Personalised) -> Limit:
        found = self._neighbours
        if any(not isinstance(one, PureDP) for one in measure.each) or None in found.sets:
            raise NotUnderstood(f"tables that satisfy {measure.describe()}")
        return Ratios(found, {i: one.amounts["epsilon"] for i, one in enumerate(measure.each)})


def asked_by(subject: FiniteSubject, requirement: Requirement) -> Limit:
    """What a requirement asks.

    Raises: NotUnderstood, Unbounded.
    """
    return Asked(subject, requirement).limit(requirement.measure)


def privacy(subject: FiniteSubject) -> Iterator[Claim]:
    """Each guarantee from the exact table: what the requirement asks, and what the plan says is achieved."""
    _whole(subject)
    if not subject.requirements and not subject.guarantees:
        yield Claim("privacy", "ok", "no line of the spec asks for privacy, and the plan promises none")
    for guarantee in subject.guarantees:
        if not 0 <= guarantee.requirement < len(subject.requirements):
            raise Malformed(f"{guarantee.place}: there is no requirement {guarantee.requirement}")
        yield from _guarantee(subject, guarantee, subject.requirements[guarantee.requirement])


def _whole(subject: FiniteSubject) -> None:
    """Privacy is about a table that draws: rows and columns of the spec, and rows that sum to one."""
    _ = subject.rows, subject.columns
    sums = subject.table.numerators.sum(axis=1)
    if np.any(sums != subject.table.denominator):
        raise Malformed("the probabilities of a row do not sum to one")


def _guarantee(subject: FiniteSubject, guarantee: Guarantee, requirement: Requirement) -> Iterator[Claim]:
    seen = subject.seen(exposed(subject.model, requirement))
    measure, achieved = requirement.measure, dict(guarantee.achieved)
    if isinstance(measure, ZCDP | RDP):
        yield from _through_pure(subject, guarantee, requirement, seen)
        return
    yield _claim(subject, "privacy", requirement, asked_by(subject, requirement), seen)
    amounts = measure.amounts
    if not {"epsilon"} <= set(achieved) <= set(amounts) | {"delta"} or any(v < 0 for v in achieved.values()):
        raise Malformed(f"{guarantee.place}.achieved does not give what the measure is about")
    if isinstance(measure, Personalised):
        everybody = Ratios(subject.neighbours(requirement), {None: achieved["epsilon"]})
        yield _claim(subject, "figure", requirement, everybody, seen)
        return
    # a delta that is not stated is zero
    figures = {**dict.fromkeys(amounts, Fraction(0)), **achieved}
    reached = with_figures(measure, figures)
    if isinstance(measure, PerAtomLDP):
        # the line bounds single outputs; what the plan has to tell is the delta of sets of them, whatever it is
        reached = LDP(figures["epsilon"], figures["delta"])
        if figures["delta"] > measure.delta:
            text = f"line {requirement.line} bounds single outputs; over sets of them the true δ is larger than its own"
            yield Claim("figure", "ok", text)
    elif any(figures[key] > amounts.get(key, 0) for key in figures):
        text = f"{guarantee.place}: more is spent than line {requirement.line} allows"
        yield Claim("figure", "failed", text)
    yield _claim(subject, "figure", requirement, Asked(subject, requirement).limit(reached), seen)


def _through_pure(
    subject: FiniteSubject, guarantee: Guarantee, requirement: Requirement, seen: Comparison
) -> Iterator[Claim]:
    """A measure that a pure epsilon implies."""
    if set(guarantee.achieved) != {"epsilon"} or guarantee.achieved["epsilon"] < 0:
        raise Malformed(f"{guarantee.place}.achieved does not give epsilon")
    epsilon = guarantee.achieved["epsilon"]
    asked = Ratios(subject.neighbours(requirement), {None: epsilon})
    yield _claim(subject, "privacy", requirement, asked, seen)
    yield claim("privacy", pure_proves(requirement.measure, epsilon))


def _claim(subject: FiniteSubject, name: str, requirement: Requirement, asked: Limit, seen: Comparison) -> Claim:
    head = f"{', '.join(requirement.outputs)}, {requirement.neighbours.describe()}: "
    broken = asked.broken(seen)
    if broken is None:
        return claim(name, Finding(True, head + asked.text()))
    a, b, _ = broken
    rows = subject.table.inputs
    text = f"{head}not true that {asked.text()}: {label_text(rows[a])} beside {label_text(rows[b])}"
    return Claim(name, "failed", text)


def rounds(subject: FiniteSubject) -> Iterator[Claim]:
    """What a plan says of rounds that share a budget."""
    return told(subject.plan, subject.model, subject.table.scalars)
