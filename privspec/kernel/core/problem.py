"""The frame of a problem: held data, who is trusted, what is promised to whom; and a plan whose frame was read.

For each view of the problem (an input, an observer, a unit) the plan states a bound on all that is seen together, or
null where none is known, and the outputs that hide next to nothing of the input and that no line names for it. The
rules of a block say what its law of some outputs lets through, for each difference by itself, the worst of them last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from flint import arb, ctx

from privspec.kernel.changes import PERSON
from privspec.kernel.core.numbers import LARGEST_LOG, ZERO, ball, exp_up
from privspec.kernel.core.reading import JsonNode, Positive, Refused, Size, Wholes, frozen, read, typed
from privspec.kernel.core.records import dataclass
from privspec.kernel.divergences import pure_mu_up
from privspec.kernel.measures import BY_PERSON, FIGURES, Measure, named
from privspec.kernel.trust import Asserted, Trust

if TYPE_CHECKING:
    from privspec.kernel.derived import Derived
    from privspec.kernel.persons import People

FORMAT = "privspec-problem/1.0"


@frozen
class Share:
    """An amount that solving picks: `scale` times a chosen number, or `scale` divided by it where `inverse`."""

    FORM = "chosen"

    number: str
    scale: Size
    inverse: bool

    def at(self, chosen: dict[str, Fraction]) -> Fraction:
        """The amount; refused where the number is not chosen, or is zero and divides."""
        picked = chosen.get(self.number)
        if picked is None or (self.inverse and not picked):
            raise Refused(f"{self.number} is an amount, and it is not chosen")
        return self.scale / picked if self.inverse else self.scale * picked


@frozen
class AskedMeasure:
    """What neighbouring laws have to satisfy: a name and its exact amounts, those of each party where `each`."""

    name: str
    amounts: tuple[Amount, ...]
    distance: str | None
    each: tuple[AskedMeasure, ...]

    def __post_init__(self) -> None:
        known = named(self.name)
        if self.name.startswith(BY_PERSON) != bool(self.each):
            raise Refused("does not say whether it is one by person")
        if known is None or tuple(key for key, _ in self.amounts) != known.figures:
            raise Refused("is not a measure with these amounts")
        if self.distance is not None and not known.by_distance:
            raise Refused("takes no distance")

    @property
    def of(self) -> Measure:
        """The measure, whoever has which amounts of it."""
        found = named(self.name)
        assert found is not None
        return found

    @property
    def common(self) -> Measure | None:
        """The measure, where its amounts are everybody's."""
        return None if self.each else self.of

    def figures(self, chosen: dict[str, Fraction]) -> dict[str, Fraction]:
        return {key: one.at(chosen) if isinstance(one, Share) else one for key, one in self.amounts}


@frozen
class Unit:
    """What one difference changes, jointly in all inputs named: `count` units of a kind at once.

    A "person" is all records that are kept of one; `adding`: they come and go; `apart`: least distance in a stream;
    `graph`: a value becomes one that is next to it there.
    """

    kind: str
    inputs: tuple[str, ...]
    adding: bool
    count: Positive
    party: str | None
    apart: Positive | None
    exactly: bool
    graph: str = ""


@frozen
class ContributionBound:
    """Of the records of each `person` in a table, `most` are kept, `per_cell` of them in one cell; drawn uniformly."""

    person: str
    most: Positive
    per_cell: Positive | None

    def __post_init__(self) -> None:
        if self.per_cell is not None and self.per_cell >= self.most:
            raise Refused("limits records in one cell to as many as are kept, or more")


@frozen
class Data:
    """An input, its domain in words, the rule for what does not fit; `party` the index set that holds it in parts.

    `derived`: its columns that follow from others; `people`: those that are made of all records of a person.
    """

    name: str
    domain: str
    rule: str
    party: str | None
    line: int
    asserted: tuple[Asserted, ...] | None = None
    kept: ContributionBound | None = None
    derived: tuple[Derived, ...] = ()
    people: People | None = None


@frozen
class PublicValue:
    """A public value that the numbers of the problem rest on.

    `provenance`: "the spec", "the file NAME", "asserted: not computed from the data" (given from outside).
    """

    name: str
    shape: tuple[int, ...]
    sha256: str
    provenance: str


@frozen
class Obligation:
    """For every two worlds that differ in one of `units`, the joint law of all that is `seen` satisfies the measure."""

    outputs: tuple[str, ...]
    seen: tuple[str, ...]
    wrt: tuple[str, ...]
    neighbours: str
    units: tuple[Unit, ...]
    observers: tuple[str, ...]
    measure: AskedMeasure
    line: int
    text: str

    def __post_init__(self) -> None:
        if not self.units or {name for unit in self.units for name in unit.inputs} != set(self.wrt):
            raise Refused("does not move just the inputs named")

    def head(self, number: int) -> dict[str, object]:
        """What a guarantee has to repeat of it; amounts apart."""
        whose = {"wrt": self.wrt[0] if len(self.wrt) == 1 else self.wrt, "observer": " and ".join(self.observers)}
        same = {key: getattr(self, key) for key in ("outputs", "neighbours", "line", "text")}
        return {**whose, **same, "measure": self.measure.name, "requirement": number}


@frozen
class View:
    """What an observer sees together, where no line that names the input names all of it; `units` may move.

    `together`: all of them at once, of one person who may be in several inputs, each by a difference of its own.
    """

    input: str
    observer: str
    outputs: tuple[str, ...]
    unnamed: tuple[str, ...]
    lines: tuple[int, ...]
    wrt: tuple[str, ...]
    neighbours: str
    units: tuple[Unit, ...]
    difference: Any
    together: bool | None = None

    def __post_init__(self) -> None:
        if not set(self.unnamed) <= set(self.outputs) or self.input not in self.wrt:
            raise Refused("names outputs that are not seen, or an input that does not move")

    def each(self) -> list[View]:
        """What moves at once, one by one: the same view for every unit by itself."""
        if not self.together:
            return [self]
        moved = zip(self.units, self.difference.items(len(self.units)), strict=True)
        return [
            replace(self, input=unit.inputs[0], wrt=unit.inputs, units=(unit,), difference=own, together=None)
            for unit, own in moved
        ]

    def head(self) -> dict[str, object]:
        """What the plan has to repeat of it."""
        return {key: getattr(self, key) for key in ("input", "wrt", "neighbours", "observer", "outputs")}


@frozen
class Computed:
    """An output that is computed from released ones and public values alone: whoever sees those may know it."""

    name: str
    sources: tuple[str, ...]
    text: str
    line: int


@frozen
class Fact:
    """What is true of all data that exist, as a spec says: no block compares others."""

    line: int
    text: str


@frozen
class Frame:
    """A problem; its blocks are read by the rules of their form."""

    format: str
    elaborator: str
    name: str
    trust: Trust
    data: tuple[Data, ...]
    public: tuple[PublicValue, ...]
    obligations: tuple[Obligation, ...]
    views: tuple[View, ...]
    blocks: tuple[Any, ...]
    computed: tuple[Computed, ...] = ()
    facts: tuple[Fact, ...] = ()

    def __post_init__(self) -> None:
        names = {one.name for one in self.data}
        if len(names) != len(self.data) or not all(set(one.wrt) <= names for one in self.obligations):
            raise Refused("names an input twice, or something that is no input")
        if len(self.blocks) != 1:
            raise Refused(f"has {len(self.blocks)} blocks in place of 1")


def read_frame(item: JsonNode) -> Frame:
    """The frame of a problem."""
    return read(Frame, item)


Amount = tuple[str, Fraction | Share]


def read_derived(item: JsonNode) -> Derived:
    """A column that follows from others: most tables have none."""
    from privspec.kernel.derived import Derived

    return read(Derived, item)


def read_people(item: JsonNode) -> People:
    """Columns made of all records of a person: most tables have none."""
    from privspec.kernel.persons import People

    return read(People, item)


READERS = {"Amount": ["str", "Size | Share"], "Derived": read_derived, "People": read_people}
WORDS = {"Data.rule": ("clip", "drop", "map"), "Frame.format": (FORMAT,)}
WORDS["Unit.kind"] = (
    "entry",
    "record",
    "party",
    "person",
    "everything",
    "entry given the model",
    "value given the model",
)


@frozen
class Guarantee:
    """What the plan says of an obligation: the figures that it reaches."""

    obligation: Obligation
    number: int
    asked: dict[str, Fraction]
    achieved: dict[str, Fraction]
    because: tuple[str, ...]


def read_guarantees(item: JsonNode, frame: Frame, chosen: dict[str, Fraction] | None = None) -> list[Guarantee]:
    """One guarantee for each obligation, in order, with its words, at the numbers that are chosen."""
    found = []
    for number, (one, asked) in enumerate(zip(item.items(len(frame.obligations)), frame.obligations, strict=True)):
        head, amounts = asked.head(number), asked.measure.figures(chosen or {})
        *said, achieved, because = one.stating(head, *amounts, "achieved", "because")
        if [part.exact() for part in said] != list(amounts.values()):
            raise one.wrong("is not what the line asks")
        figures = {key: value.exact(0) for key, value in achieved.entries()}
        if not set(figures) <= FIGURES:
            raise achieved.wrong("has figures that are not known")
        found.append(Guarantee(asked, number, amounts, figures, tuple(item.text() for item in because.items())))
    return found


PLAN = "privspec-plan/3.0"
WORDS |= {"PlanUnderCheck.format": (PLAN,), "PlanUnderCheck.status": ("optimal", "feasible")}
NOTHING = JsonNode(None, "nothing")
SPARED = Fraction(1, 10**7)
"""An output is not protected if the best test that errs equally often either way may err less than this."""
Bound = dict[str, Fraction] | None
"""What is let through, rounded up: {"mu"} or {"epsilon", "delta"}; None where no bound is known."""


@frozen
class Claim:
    """One statement of a plan that was derived again, or that does not hold.

    `name` is its kind (integrity, problem, law, privacy, view, rounding, exposure, loss, bound, accuracy, fairness,
    conditions, ...), `item` the number of the obligation or line that it is about, where it is about one.
    `derived`: whether its figures were derived again; else they were only read, and no page calls them proved.
    """

    name: str
    holds: bool
    text: str
    item: int | None = None
    derived: bool = True

    @property
    def status(self) -> str:
        """In a word."""
        return "failed" if not self.holds else "ok" if self.derived else "tested"

    def __str__(self) -> str:
        return f"{self.status:<8}{self.name:<13}{self.text}"


@dataclass(slots=True)
class PlanUnderCheck:
    """A plan with its frame read; other parts are read by the rules of its block. `found` grows claim by claim."""

    format: str
    spec: JsonNode
    problem: JsonNode
    status: str
    loss: JsonNode
    alternatives: JsonNode
    mechanism: JsonNode
    guarantees: JsonNode
    accuracy: JsonNode
    assumptions: JsonNode
    claims: JsonNode
    remarks: JsonNode
    digest: str
    fairness: JsonNode = NOTHING
    exposures: JsonNode = NOTHING
    frame: Frame = field(init=False)
    found: list[Claim] = field(init=False, default_factory=list)
    part: bool = field(init=False, default=False)
    """Whether it is a part of a system whose lines are judged for all parts at once: of it only these are read."""
    promised: object = field(init=False, default=None)
    """What is executed, as a term, and the lines that it has to keep, once the rules of its block have read them."""
    bounded: object = field(init=False, default=None)
    """What no mechanism is below, once it was shown, as a function of what the lines allow (`worth.LowerBound`)."""

    def __post_init__(self) -> None:
        self.frame = read_frame(self.problem)

    @property
    def block(self) -> JsonNode:
        found: JsonNode = self.frame.blocks[0]
        return found

    def says(self, name: str, holds: bool, text: str, item: int | None = None, *, derived: bool = True) -> None:
        """A claim was judged; `derived`: its figures were derived again, and not only read."""
        self.found.append(Claim(name, holds, text, item, derived))


def hides_nothing(bound: Bound) -> bool:
    """Whether a bound spares next to nobody a true verdict: equal errors Phi(-mu / 2) or (1 - delta) / (1 + e^eps)."""
    if bound is None:
        return True
    with ctx.workprec(256):
        if "mu" in bound:
            error = (ball(bound["mu"]) / arb(8).sqrt()).erfc() / 2
        else:
            error = (1 - ball(min(bound["delta"], Fraction(1)))) / (1 + ball(bound["epsilon"]).exp())
        return not error >= ball(SPARED)


# --- one person in several inputs, or with several records --------------------------------------------------------


Moved = tuple[int, int, int, str, int, Fraction, int | None, Wholes | None]
"""The fields of a part of a difference: of all coordinates from a start to a stop."""


def of_person(held: list[tuple[int, int, ContributionBound, Wholes]], *, adding: bool) -> list[list[Moved]]:
    """What one person changes in tables that keep so many of their records each, as sets of differences with parts.

    One table without a limit for a cell: all records may lie in one cell, come there, or move from there to another.
    Args: held, where each table starts and stops, what is kept, and of which cell each of its coordinates is an end.
    """
    plain = len(held) == 1 and held[0][2].per_cell is None
    shapes = (("cell",) if adding else ("swap", "cell")) if plain else PERSON[:1] if adding else PERSON[1:]
    found = list[list[Moved]]()
    for shape in shapes:
        found.append([])
        for start, stop, own, cells in held:
            size, several = max(stop - start, 1), own.per_cell and len(set(cells)) < len(cells)
            ends = cells if several else None
            found[-1].append((start, stop, size, shape, size, Fraction(own.most), own.per_cell, ends))
    return found


def wrong_person(units: Sequence[Unit], kept: list[ContributionBound | None]) -> str:
    """What is wrong where units change inputs of which some keep records of each person."""
    persons = [unit.count for unit in units if unit.kind == "person"]
    if not persons:
        return "changes single records where which of them are kept depends on others" if any(kept) else ""
    if len(units) > 1 or any(one is None or one.most != persons[0] for one in kept):
        return "is about a person of whom no records are kept, or another number of them"
    return ""


def notes_of(units: Sequence[Unit]) -> tuple[str, ...]:
    """The notes that a guarantee of these units rests on."""
    if any(unit.kind == "person" for unit in units):
        return ("people",)
    return ("group-privacy",) if any(unit.count > 1 for unit in units) else ()


def in_turn(bounds: list[dict[str, Fraction] | None]) -> dict[str, Fraction] | None:
    """What worlds let through that are as many steps apart, each of which lets through no more than its bound.

    None where some step has no bound, or a delta beside a mu.
    """
    known = [one for one in bounds if one is not None]
    gaussian = any("mu" in one for one in known)
    if len(known) < len(bounds) or (gaussian and any(one.get("delta") for one in known)):
        return None
    if gaussian:
        return {"mu": sum((one["mu"] if "mu" in one else pure_mu_up(one["epsilon"]) for one in known), ZERO)}
    epsilon, delta = ZERO, ZERO
    for one in known:
        # P <= e^a (e^b R + d') + d, either way round
        steps = ((epsilon, delta, one["delta"]), (one["epsilon"], one["delta"], delta))
        delta, epsilon = max(_after(*step) for step in steps), epsilon + one["epsilon"]
    return {"epsilon": epsilon, "delta": min(delta, Fraction(1))}


def _after(epsilon: Fraction, delta: Fraction, then: Fraction) -> Fraction:
    """The delta of two steps, at least."""
    if not then:
        return delta
    return Fraction(1) if epsilon > LARGEST_LOG else delta + exp_up(epsilon) * then


class Mechanism:
    """What is executed: a dataclass whose `FORM` is its family; what is `GIVEN` by the problem is not repeated."""

    __slots__ = ()
    TAG, FORM = "family", ""
    GIVEN: tuple[str, ...] = ("block",)


def read_mechanism(block: JsonNode, mechanism: JsonNode, *kinds: type[Any]) -> Any:
    """What a plan executes for a block: one of some mechanisms of a `block` of this kind."""
    known = {kind.FORM: kind for kind in kinds}
    kind = known[mechanism.form(*known, tag=Mechanism.TAG)]
    form = kind.__dataclass_fields__["block"].type
    return read(kind, mechanism, block=typed(form, block, kind.__module__))


class Rules:
    """How plans of one form of block are judged."""

    mechanisms: tuple[type[Any], ...] = ()
    """What may be executed for it."""

    def read(self, frame: Frame, mechanism: JsonNode) -> Any:
        """What is executed: it says nothing that the problem says already."""
        return read_mechanism(frame.blocks[0], mechanism, *self.mechanisms)

    def judge(self, case: PlanUnderCheck) -> object:
        """What is executed, as it was read, once every statement of a plan was judged, into `case.found`."""
        raise NotImplementedError

    def privacy(self, case: PlanUnderCheck) -> object:
        """What is executed, as it was read, once all that a plan promises was judged, whatever it is worth."""
        return self.judge(case)

    def reach(
        self, case: PlanUnderCheck, executed: Any, view: View, outputs: tuple[str, ...], witness: JsonNode
    ) -> Bound:
        """What outputs, or all messages where nobody is trusted, let through of a unit; `witness` helps to bound it."""
        witness.same(None)
        return None

    def together(
        self, case: PlanUnderCheck, executed: Any, view: View, outputs: tuple[str, ...], witness: JsonNode
    ) -> Bound:
        """The same of all units of a view that move at once: at most what one after the other lets through."""
        return in_turn([self.reach(case, executed, one, outputs, witness) for one in view.each()])

    def exposed(self, case: PlanUnderCheck, executed: Any, view: View, witness: JsonNode) -> tuple[Bound, list[str]]:
        """The bound on all that is seen, and the outputs that no line names and that are not protected."""
        whole, *single = witness.items(1 + len(view.unnamed))
        each = zip(view.unnamed, single, strict=True)
        bare = [name for name, own in each if hides_nothing(self.together(case, executed, view, (name,), own))]
        return self.together(case, executed, view, view.outputs, whole), bare

    def judge_exposures(self, case: PlanUnderCheck, executed: Any) -> None:
        """One entry for each view, in order, with a bound at or above the one derived."""
        views = case.frame.views
        for entry, view in zip(case.exposures.items(len(views)), views, strict=True):
            exposed, said, witness = entry.stating(view.head(), "not_protected", "bound", "witness")
            bound, bare = self.exposed(case, executed, view, witness)
            exposed.same(bare)
            holds, text = said.absent == (bound is None), "no bound is known"
            if bound is not None and holds:
                amounts = [item.exact(0) for item in said.fields(*bound)]
                holds = all(amount >= least for amount, least in zip(amounts, bound.values(), strict=True))
                text = ", ".join(f"{key} {float(value):.8g}" for key, value in bound.items())
                stated = ", ".join(f"{float(amount):.8g}" for amount in amounts)
                text += "" if holds else f", more than the plan states ({stated})"
            tail = f"; not protected: {', '.join(bare)}" if bare else ""
            who = f"{view.observer} sees {', '.join(view.outputs)} of {', '.join(view.wrt)}, {view.neighbours}"
            case.says("exposure", holds, f"{who}: {text}{tail}")


# --- the rules of each form of block: no form that is not here; rooms are entered when asked for ----------------------

HOMES = {
    "linear": ("linear", "LinearRules"),
    "statistics": ("statistics", "Statistics"),
    "table": ("tables", "Tables"),
    "votes": ("voting", "VoteRules"),
    "priced": ("priced", "PricedRules"),
    "chain": ("chains", "ChainRules"),
    "points": ("points", "PointRules"),
    "cells": ("reports", "CellRules"),
    "frequencies": ("reports", "FrequencyRules"),
    "means": ("means", "MeanRules"),
    "keys": ("keys", "KeyRules"),
    "selection": ("selection", "SelectionRules"),
    "marginals": ("marginals", "MarginalRules"),
    "stream": ("streams", "StreamRules"),
    "system": ("systems", "SystemRules"),
}
"""By form: a module of the kernel, and the class of the rules in it."""
PARTS = tuple(form for form in HOMES if form != "system")
"""What parts of a system may be."""


def executed(frame: Frame, mechanism: JsonNode) -> Any:
    """What a plan executes for the one block of its problem.

    Raises: Refused.
    """
    return rules_of(frame.blocks[0].form(*HOMES)).read(frame, mechanism)


def rules_of(form: str) -> Rules:
    """The rules of a form."""
    home, name = HOMES[form]
    found: Rules = getattr(__import__(f"privspec.kernel.{home}", fromlist=[name]), name)()
    return found
