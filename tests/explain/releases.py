"""Made data, of which a tenth does not fit, and simulated releases of them: what pages say of errors is held to these.

Data are made as a spec declares them, then some cells are spoilt: words that nobody listed, blanks, numbers beyond
their limits, people with more records than count. What is true is computed from what the cells said before they were
spoilt (of numbers beyond their limits: from these), by the spec's own sums and by nothing that a run does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from privspec.execute import family
from privspec.execute.keeper import DataOwnerReport
from privspec.explain.auditor import auditor_page
from privspec.explain.document import Accuracy, Paragraph, Points, Sentence
from privspec.explain.facts import Facts, Judgement
from privspec.explain.public import named_for_readers, public_page
from privspec.explain.reading import facts
from privspec.model.domains import (
    Ball,
    Between,
    Cut,
    Domain,
    FiniteSet,
    Interval,
    PartialRankingOf,
    Power,
    RankingOf,
    Real,
    Table,
    Unknown,
    unknown_keys,
)
from privspec.model.graph import Model
from privspec.model.neighbours import InputBlock
from privspec.model.targets import target
from privspec.model.values import show
from privspec.noise.samplers import SimulationRandomness
from privspec.plan import Plan
from privspec.problem.designs import inside
from privspec.problem.fitting import Done

Array = np.ndarray[Any, np.dtype[np.float64]]
RECORDS, PEOPLE, SEED = 400, 80, 20260
TIMES, MANY, FEWEST = 200, 2_000, 10
"""Releases of a plan; those of more numbers are fewer, as each has as many draws."""
SHARE = 0.1
"""Of the cells or records, those that do not fit."""
LARGEST = 200_000
"""Coordinates up to which the truth is computed by the spec's sums."""


@dataclass(frozen=True, eq=False)
class Case:
    """A plan with its model, its facts and what its pages say of errors."""

    plan: Plan

    @cached_property
    def document(self) -> Mapping[str, Any]:
        return inside(self.plan.document)

    @cached_property
    def model(self) -> Model:
        found = self.plan.model()
        assert found is not None
        return found

    @cached_property
    def facts(self) -> Facts:
        return facts(self.plan.document, self.model, Judgement())

    @cached_property
    def mechanism(self) -> family.Mechanism:
        return family.mechanism_of(self.plan.document)

    @cached_property
    def said(self) -> list[Accuracy]:
        """What the public's page and the auditor's say of errors, by the names of the spec."""
        _, called = named_for_readers(self.facts)
        drawn = self.facts.mechanism.released
        # what is moved into its domain later has the name of what it is worked out from
        names = {words: name for name, words in sorted(called.items(), key=lambda pair: pair[0] in drawn)}
        found = []
        for page in (public_page(self.facts), auditor_page(self.facts)):
            for sentence in sentences(page):
                if (said := sentence.accuracy) is not None:
                    sizes = tuple((names.get(name, name), *rest) for name, *rest in said.sizes)
                    besides = tuple((names.get(name, name), *rest) for name, *rest in said.besides)
                    found.append(Accuracy(said.measure, sizes, besides))  # type: ignore[arg-type]
        return found

    @cached_property
    def times(self) -> int:
        """How often it is released."""
        numbers = sum(prod(node.type.shape) for node in self.model.outputs)
        return TIMES if numbers <= MANY else max(MANY * TIMES // numbers // 4, FEWEST)

    @property
    def kept(self) -> Mapping[str, Mapping[str, Any]]:
        return {data["name"]: data["kept"] for data in self.document["problem"]["data"] if data.get("kept")}

    @cached_property
    def ways(self) -> Mapping[tuple[Done, str], str]:
        """By what is done and the output that it moves: which way."""
        return {(rule.done, name): way.value for rule in self.facts.fitting.rules for name, way in rule.moves}


def sentences(page: Any) -> Iterator[Sentence]:
    for section in page.sections:
        for block in section.blocks:
            if isinstance(block, Paragraph | Points):
                yield from block.sentences


# --- made data ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Made:
    """The files of a data set, and what is true of it: the base vector, or the rows where it is too long."""

    files: Mapping[str, Path]
    u: Array | None
    rows: Mapping[str, Any]
    spoilt: bool = False

    def truth(self, case: Case, name: str) -> Array:
        assert self.u is not None
        return np.asarray(target(case.model, name, self.u)).reshape(-1)


def made(case: Case, done: Done | None, folder: Path, seed: int = SEED, records: int = RECORDS) -> Made:
    """Data of which a tenth is treated in one way, as it does not fit; none of it where `done` is None."""
    random = np.random.default_rng(seed)
    files, rows, size = dict[str, Path](), dict[str, Any](), case.model.size
    u = np.zeros(size) if size <= LARGEST else None
    for block in case.model.blocks:
        one = _Input(case, block, done, random, records)
        header, given, true = one.table() if isinstance(one.domain, Table) else one.entries()
        path = folder / f"{block.name}.{'fit' if done is None else done.name}.{seed}.csv"
        path.write_text("".join(",".join(map(_cell, row)) + "\n" for row in (header, *given)), "utf-8")
        files[block.name], rows[block.name] = path, true
        table = isinstance(one.domain, Table)
        if u is not None and (not unknown_keys(one.domain) if table else one.numeric(one.domain)):
            u[block.start : block.stop] = one.placed(true)
        else:
            u = None
    return Made(files, u, rows, done is not None)


def _cell(value: Any) -> str:
    text = repr(float(value)) if isinstance(value, float | np.floating) else str(value)
    return text.removesuffix(".0")


@dataclass
class _Input:
    case: Case
    block: InputBlock
    done: Done | None
    random: np.random.Generator
    records: int

    @cached_property
    def domain(self) -> Domain:
        found = self.block.domain
        while isinstance(found, Power):
            found = found.base
        return found

    @property
    def parties(self) -> int:
        index = self.block.index
        return 1 if index is None else self.case.model.parties[index].size

    # --- values

    def value(self, domain: Domain) -> Any:
        if isinstance(domain, Cut):
            return self.value(domain.whole)
        if isinstance(domain, Unknown):
            return "abcdef"[min(int(self.random.geometric(0.4)) - 1, 5)]
        if isinstance(domain, FiniteSet):
            return show(domain.items[int(self.random.integers(len(domain.items)))])
        if isinstance(domain, Real):
            return float(self.random.normal())
        if isinstance(domain, Interval | Between):
            low, high = (float(end) if end is not None else 0.0 for end in domain.bounds)
            return float(self.random.uniform(low, high))
        if isinstance(domain, RankingOf | PartialRankingOf):
            return " ".join(show(one) for one in self.random.permutation(np.array(domain.alternatives, dtype=object)))
        values = list(domain.elements())
        return show(values[int(self.random.integers(len(values)))])

    def beyond(self, domain: Domain) -> float:
        """A number outside its limits, on either side."""
        low, high = domain.bounds
        width = float(high - low) if low is not None and high is not None else 10.0
        far = round(float(self.random.uniform(0.2, 0.8)) * max(width, 2.0)) or 1.0
        above = high is not None and (low is None or self.random.random() < 0.7)
        return float(high) + far if above and high is not None else float(low or 0) - far

    def numeric(self, domain: Domain) -> bool:
        return not isinstance(domain, Unknown) and domain.bounds != (None, None)

    def spoilt(self, domain: Domain, value: Any) -> tuple[Any, Any]:
        """What the file says in place of a value, and what is true then."""
        if self.done is Done.CLIPPED and self.numeric(domain):
            far = self.beyond(domain)
            return far, far
        if isinstance(domain, Real):  # any number fits
            return value, value
        if self.done is Done.LEFT_OUT:
            return ("" if self.numeric(domain) or isinstance(domain, Unknown) else "no such value"), value
        if self.done is Done.NOT_LISTED and not self.numeric(domain) and not isinstance(domain, Unknown):
            return "no such value", value
        return value, value

    # --- tables

    def table(self) -> tuple[list[str], list[list[Any]], list[list[Any]]]:
        table = self.domain
        assert isinstance(table, Table)
        index = [] if self.block.index is None else [self.block.index]
        kept = self.case.kept.get(self.block.name)
        people = [kept["person"]] if kept else []
        header = [*index, *people, *table.names]
        owners = list(self.owners(kept, table))
        given, true = [], []
        for party, person in owners:
            cells = [self.value(domain) for _, domain in table.attributes]
            said = list(cells)
            if self.random.random() < SHARE and not (kept and self.done is Done.LEFT_OUT):
                places = [i for i, (_, d) in enumerate(table.attributes) if self.spoilt(d, cells[i])[0] != cells[i]]
                if places:
                    at = places[int(self.random.integers(len(places)))]
                    said[at], cells[at] = self.spoilt(table.attributes[at][1], cells[at])
            head = [*([party] if index else []), *([person] if kept else [])]
            given.append([*head, *said])
            true.append([party, *cells])
        return header, given, true

    def owners(self, kept: Mapping[str, Any] | None, table: Table) -> Iterator[tuple[int, str]]:
        """The party and the person of each record; where many are to be left out, some people have too many."""
        if kept is None:
            each = table.records or max(self.records // self.parties, 1)
            yield from ((party + 1, "") for party in range(self.parties) for _ in range(each))
            return
        most = 1 if kept["per_cell"] == 1 else kept["most"]
        for person in range(PEOPLE):
            many = 2 * kept["most"] if self.done is Done.LEFT_OUT and person % 10 == 0 else most
            yield from ((1, f"p{person}") for _ in range(many))

    def placed(self, true: Sequence[Sequence[Any]]) -> Array:
        """The part of the base vector: measured numbers count at both ends of their range, also beyond them."""
        if not isinstance(self.domain, Table):
            return np.array([float(Fraction(str(v)) if isinstance(v, str) else v) for row in true for v in row])
        table, size = self.domain, prod(self.domain.cell_shape)
        found = np.zeros((self.parties, size))
        for party, *cells in true:
            mass = np.ones(1)
            for (_, domain), value in zip(table.attributes, cells, strict=True):
                mass = np.outer(mass, _places(domain, value)).reshape(-1)
            found[int(party) - 1] += mass
        return found.reshape(-1)

    # --- numbers, vectors, words

    def entries(self) -> tuple[list[str], list[list[Any]], list[list[Any]]]:
        shape = self.block.type.shape
        index = self.block.index
        form = self.case.document["problem"]["blocks"][0]["form"]
        one_report = form in ("table", "points") and isinstance(self.block.domain, Power)
        width = shape[-1] if isinstance(self.domain, Ball) or len(shape) > 1 or one_report else 1
        rows = prod(shape) // width if shape else 1
        names = [self.block.name] if width == 1 else [f"{self.block.name}_{j + 1}" for j in range(width)]
        given, true = [], []
        for row in range(rows):
            value = (
                self.vector(width) if isinstance(self.domain, Ball) else [self.value(self.domain) for _ in range(width)]
            )
            said = list(value)
            if self.random.random() < SHARE:
                if isinstance(self.domain, Ball):
                    far = 3.0 if self.done is Done.CLIPPED else 1.0
                    said = value = [far * one for one in value]
                else:
                    pairs = [self.spoilt(self.domain, one) for one in value]
                    said, value = [one for one, _ in pairs], [one for _, one in pairs]
            party = [] if index is None else [row * self.parties // rows + 1]
            given.append([*party, *said])
            true.append(value)
        return [*([] if index is None else [index]), *names], given, true

    def vector(self, width: int) -> list[float]:
        """A vector within the ball, near its edge."""
        assert isinstance(self.domain, Ball)
        found = self.random.standard_normal(width)
        length = np.linalg.norm(found, ord=self.domain.norm)
        return list(found / length * float(self.domain.radius) * self.random.uniform(0.5, 1))


def _places(domain: Domain, value: Any) -> Array:
    if isinstance(domain, Between):
        low, high = float(domain.low), float(domain.high)
        share = (float(value) - low) / (high - low)
        return np.array([1 - share, share])
    found = np.zeros(domain.size or 1)
    if isinstance(domain, Cut):
        number = float(value)
        at = sum(number > float(end) or (number == float(end) and not up_to) for end, up_to in domain.cuts)
        found[at] = 1
        return found
    values = [show(one) for one in domain.elements()]
    if str(value) in values:
        found[values.index(str(value))] = 1
    else:  # beyond all of them: it counts where the nearest does, if the answer does not ask for it
        found[-1 if float(value) > float(Fraction(values[-1])) else 0] = 1
    return found


# --- releases -------------------------------------------------------------------------------------

RULES = {"clip": Done.CLIPPED, "map": Done.NOT_LISTED, "drop": Done.LEFT_OUT}


def treated(case: Case, data: Made) -> set[Done]:
    """What is done with data as they are read, as their keeper is told: pages have no part in it."""
    keeper = DataOwnerReport()
    case.mechanism.read(data.files, family.RunContext(case.model, keeper=keeper, randomness=SimulationRandomness(2)))
    found = {Done.LEFT_OUT for said in keeper.remarks.values() if any("are cut" in one for one in said)}
    rules = {one["name"]: RULES[one["rule"]] for one in case.document["problem"]["data"]}
    for (name, _), fit in keeper.fits.items():
        if fit.below or fit.above or fit.outside:
            found.add(Done.CLIPPED)
        if fit.missing or fit.unreadable or fit.unknown:
            found.add(rules[name])
    return found


@cache
def released(case: Case, data: Made, seed: int = 1, times: int = 0) -> dict[str, Array]:
    """Of each output two releases of each reading of the data (times, 2, numbers): noise apart, all else alike.

    Args: times, by default 200, fewer of releases of very many numbers.
    """
    found = dict[str, list[list[Array]]]()
    again, secret = bool(case.kept), None
    for place in range(times or case.times):
        random = SimulationRandomness(seed * 100_000 + place)
        if secret is None or again:
            circumstances = family.RunContext(model=case.model, randomness=random)
            secret = case.mechanism.read(data.files, circumstances)
        pair = [secret.draw(random).outputs for _ in range(2)]
        for name in pair[0]:
            if np.asarray(pair[0][name]).dtype.kind in "fiu":
                both = [np.asarray(one[name], dtype=float).reshape(-1) for one in pair]
                found.setdefault(name, []).append(both)
    return {name: np.array(drawn) for name, drawn in found.items()}
