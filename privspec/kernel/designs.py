"""Designs: plans of specs that left choices open. Each alternative is judged as a plan of its own, for its problem."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import prod
from typing import Any

from privspec.kernel.core.linear import InputLayout, Linear, read_linear
from privspec.kernel.core.numbers import ZERO, digits_down, fraction
from privspec.kernel.core.problem import HOMES, Frame, PlanUnderCheck, read_frame, rules_of
from privspec.kernel.core.reading import Grid, JsonNode, Positive, Refused, Size, canonical, frozen, read
from privspec.kernel.promises import are_chances, plan_within
from privspec.kernel.tables import least_of_any
from privspec.kernel.tables_forms import Task
from privspec.kernel.worth import OPTIMAL_GAP, near


@frozen
class OpenChoice:
    """A name and the values that it may have."""

    name: str
    values: tuple[str, ...]
    line: int


def _sums(problem: JsonNode, name: str) -> tuple[Frame, Linear, InputLayout | None]:
    """A problem of sums, with one of its inputs.

    Raises: Refused for another problem.
    """
    frame = read_frame(problem)
    if frame.blocks[0].form(*HOMES) != Linear.FORM:
        raise Refused("predicts what is lost of answers that are no sums")
    block = read_linear(frame.blocks[0], frame, Linear)
    return frame, block, next((one for one in block.held if one.name == name), None)


@frozen
class Cut:
    """What is cut of the records of `people` in an input: `chances` that one of them has 0, 1, 2, ... records.

    `cells`: the chances of the cells where a record lies, whoever's it is; none where all records count alike.
    """

    input: str
    people: Positive
    chances: Grid
    cells: Grid | None
    lost: Size

    def derived(self, problem: JsonNode) -> Fraction:
        """What is expected to be lost by the cut, exactly: note people.

        Of C records that are cut in all, each lies in a cell by the chances p; an error term of weight w sums up
        weights m of cells, so that its expected square is E[C] (sum p m^2 - (sum p m)^2) + E[C^2] (sum p m)^2. A number
        between two ends lies at these by shares, with means p: its m^2 is at most the one here.
        """
        frame, block, held = _sums(problem, self.input)
        kept = next((one.kept for one in frame.data if one.name == self.input), None)
        if kept is None or held is None or kept.per_cell is not None or block.errors.sizes or block.worst:
            raise Refused("has a loss by what is cut that is not that of squared sums, or cuts in single cells")
        if block.accuracy:
            raise Refused("has accuracy lines, which do not count what is cut")
        chances = _law(self.chances, "records")
        over = [(Fraction(max(n - kept.most, 0)), chance) for n, chance in enumerate(chances)]
        one, square = (sum((size**power * p for size, p in over), ZERO) for power in (1, 2))
        mean, total = self.people * one, ZERO
        squared = self.people * (square - one**2) + mean**2
        rows, at = block.errors.of(block.target).tolist(), block.places[held.start][0]
        cells = None if self.cells is None else _law(self.cells, "cells")
        for weight, row in zip(block.errors.weights, rows, strict=True):
            first, second = _moments([fraction(v) for v in row[at : at + held.stop - held.start]], cells)
            total += weight * (mean * (second - first**2) + squared * first**2)
        return total


def _moments(values: list[Fraction], chances: list[Fraction] | None) -> tuple[Fraction, Fraction]:
    """The mean of what a record counts, and of its square, by the chances of where it lies."""
    weights = chances or [Fraction(1, len(values))] * len(values)
    if len(weights) != len(values) or (chances is None and len(set(values)) > 1):
        raise Refused("does not say where records lie that do not count alike")
    first, second = (sum((p * v**power for p, v in zip(weights, values, strict=True)), ZERO) for power in (1, 2))
    return first, second


def _law(found: Grid, what: str) -> list[Fraction]:
    """Chances that add up to one."""
    values = found.values()
    if not are_chances(values):
        raise Refused(f"has a law of {what} whose chances do not add up to one")
    return values


@frozen
class Clipped:
    """Numbers of an input that are moved into its limits: by `mean` on average, by its `square` in the mean square.

    `column`: of a table; `cells`: the chances of the cells of its other columns, none where all records count alike.
    """

    input: str
    column: str
    mean: Fraction
    square: Size
    cells: Grid | None
    lost: Size

    def derived(self, problem: JsonNode) -> Fraction:
        """What is expected to be lost by moving them, exactly, where records are independent.

        A record moves an error term of weight w by s e, e how far its number is moved: the expected square of the sum
        over n records is n (E[e^2] E[s^2] - (E[e] E[s])^2) + n^2 (E[e] E[s])^2.
        """
        frame, block, held = _sums(problem, self.input)
        if held is None or held.ball or block.errors.sizes or block.worst or block.accuracy or block.vectors:
            raise Refused("has a loss by what is clipped that is not that of squared sums")
        if any(one.kept for one in frame.data) or self.square < self.mean**2:
            raise Refused("has a law of what is clipped that is none, or records that are left out")
        total = ZERO
        for weight, row in zip(block.errors.weights, block.errors.of(block.target).tolist(), strict=True):
            total += weight * self._squared(block, held, list(map(fraction, row)))
        return total

    def _squared(self, block: Linear, held: InputLayout, row: list[Fraction]) -> Fraction:
        """The expected square of how far an error is moved."""
        at, one = block.places[held.start]
        own = row[at : at + len(one.numbers)]
        if not held.cells:
            total = sum((v * n for v, n in zip(own, one.numbers, strict=True)), ZERO)
            apart = sum((v * v * n for v, n in zip(own, one.numbers, strict=True)), ZERO)
            return apart * (self.square - self.mean**2) + (total * self.mean) ** 2
        place = next((i for i, column in enumerate(held.columns) if column.name == self.column), None)
        if place is None or not held.columns[place].shared or held.records is None:
            raise Refused("says nothing of how far numbers of its tables are moved")
        inner = prod(column.size for column in held.columns[place + 1 :])
        low, high = map(Fraction, held.columns[place].values)
        each = [(own[i + inner] - own[i]) / (high - low) for i in range(len(own)) if not i // inner % 2]
        chances = None if self.cells is None else _law(self.cells, "cells")
        first, second = _moments(each, chances)
        count, mean = held.records, first * self.mean
        return count * (second * self.square - mean**2) + (count * mean) ** 2


@frozen
class Alternative:
    """All that is open chosen, the problem that this makes, and what it costs; `refused` where it makes none."""

    values: tuple[str, ...]
    cost: Fraction
    problem: Any
    refused: str
    cut: Cut | None = None
    clipped: Clipped | None = None

    @property
    def paid(self) -> Fraction:
        """The cost, with what is lost by what is cut of people's records, and by what is clipped."""
        return self.cost + sum((one.lost for one in (self.cut, self.clipped) if one), ZERO)


@frozen
class Design:
    """All alternatives, the last choice running fastest."""

    FORM = "design"

    outputs: tuple[str, ...]
    expression: str
    choices: tuple[OpenChoice, ...]
    alternatives: tuple[Alternative, ...]

    def __post_init__(self) -> None:
        listed: list[tuple[str, ...]] = [()]
        for choice in self.choices:
            listed = [(*values, value) for values in listed for value in choice.values]
        if not self.choices or [one.values for one in self.alternatives] != listed or len(set(listed)) != len(listed):
            raise Refused("does not have each alternative once")

    def name(self, one: Alternative) -> str:
        return ", ".join(f"{c.name} = {value}" for c, value in zip(self.choices, one.values, strict=True))


@frozen
class Chosen:
    """What the plan of the alternative that was chosen says of itself."""

    FORM = "chosen"

    status: JsonNode
    loss: JsonNode
    alternatives: JsonNode


@frozen
class NoPlan:
    """Why an alternative has no plan."""

    FORM = "none"

    reason: str
    infeasible: bool
    least: Fraction | None


@frozen
class Figures:
    """The loss of an alternative with its cost, and what no mechanism of it is below; of what class, in words."""

    total: Fraction | None
    least: Fraction | None
    words: tuple[str, str, str] = ("", "", "")


def judge_design(case: PlanUnderCheck, said: JsonNode) -> tuple[PlanUnderCheck, object]:
    """The plan of what is chosen, then those of all other alternatives, then that none of them is better.

    Returns: the plan of what is chosen, to be judged further, and what is executed.
    """
    design, number, outcomes = _read(said)
    executed: object = None
    figures: list[Figures] = []
    own = case
    for i, (one, came) in enumerate(zip(design.alternatives, outcomes, strict=True)):
        form = came.form("chosen", "solved", "none")
        if (form == "chosen") != (i == number) or (one.problem.absent and form != "none"):
            raise came.wrong("is not what came of its alternative")
        if form == "none":
            figures.append(_without_plan(case, design, one, came))
            continue
        alone = case_of(case, design, one, came, chosen=i == number)
        found = rules_of(alone.block.form(*HOMES)).judge(alone)
        if i == number:
            own, executed = alone, found
            case.found += alone.found
            alone.found = case.found
        else:
            case.found += [replace(c, text=f"{design.name(one)}: {c.text}", item=None) for c in alone.found]
        figures.append(_figures(alone, one))
    _compared(case, design, number, figures)
    return own, executed


def chosen_case(case: PlanUnderCheck, said: JsonNode) -> PlanUnderCheck:
    """The plan of what is chosen, about its own problem."""
    design, number, outcomes = _read(said)
    own = case_of(case, design, design.alternatives[number], outcomes[number], chosen=True)
    own.found = case.found
    return own


def _read(said: JsonNode) -> tuple[Design, int, list[JsonNode]]:
    problem, picked, outcomes = said.fields("problem", "chosen", "outcomes")
    design = read(Design, problem)
    for one in design.alternatives:
        for own in (one.cut, one.clipped):
            if own is not None and own.derived(one.problem) != own.lost:
                raise problem.wrong("states another loss by what is cut or clipped than its law gives")
    count = len(design.alternatives)
    return design, picked.integer(0, count - 1), outcomes.items(count)


def _without(mechanism: JsonNode, picked: dict[str, str]) -> JsonNode:
    """The mechanism as if nothing had been open; a composite one states among its choices what was picked."""
    entries = dict(mechanism.entries())
    if "family" not in entries or entries["family"].value != "composite":
        return mechanism
    choices = dict(entries.get("choices", JsonNode({}, f"{mechanism.place}.choices")).entries())
    for name, value in picked.items():
        choices.pop(name, JsonNode(None, f"{mechanism.place}.choices.{name}")).same(value)
    kept = {name: item.value for name, item in choices.items()}
    return JsonNode(mechanism.without("choices") | ({"choices": kept} if kept else {}), mechanism.place)


def case_of(case: PlanUnderCheck, design: Design, one: Alternative, came: JsonNode, *, chosen: bool) -> PlanUnderCheck:
    """The plan of an alternative about its own problem."""
    if chosen:
        said = read(Chosen, came)
        if canonical(case.problem.value) != canonical(one.problem.value):
            raise case.problem.wrong("is not that of the alternative that is chosen")
        mechanism = _without(case.mechanism, dict(zip((c.name for c in design.choices), one.values, strict=True)))
        items = {"loss": said.loss, "alternatives": said.alternatives, "mechanism": mechanism}
        return replace(case, status=said.status.one_of("optimal", "feasible"), **items)  # type: ignore[arg-type]
    return plan_within(one.problem, came.without("form"), came.place)


def floor_of(problem: JsonNode, cost: Fraction) -> Fraction | None:
    """What no mechanism of a problem can be below with its cost, whatever its lines are; None where that is not known.

    Weighted squares are none below 0; of a table, every row has an answer of least cost.
    """
    if problem.absent:
        return None
    frame = read_frame(problem)
    block = frame.blocks[0]
    form = block.form(*HOMES)
    if form == Linear.FORM:
        read_linear(block, frame, Linear)  # refuses weights that are not positive
        return cost
    if form != Task.FORM:
        return None
    task = read(Task, block)
    return least_of_any(task) + cost if task.estimates is None else None


def _without_plan(case: PlanUnderCheck, design: Design, one: Alternative, came: JsonNode) -> Figures:
    """An alternative without a plan is named, with what it cannot be below all the same."""
    found = read(NoPlan, came)
    if one.problem.absent and (found.reason != one.refused or found.infeasible):
        raise came.wrong("is not why its alternative was refused")
    floor = floor_of(one.problem, one.paid)
    if found.least != floor:
        raise came.wrong("does not state what its alternative cannot be below")
    tail = "" if floor is None else f"; its loss and cost are at least {digits_down(floor)}"
    case.says("alternatives", True, f"{design.name(one)} was not computed: {found.reason}{tail}", derived=False)
    return Figures(None, floor)


def _figures(alone: PlanUnderCheck, one: Alternative) -> Figures:
    parts = dict(alone.loss.entries())
    low, value = parts["lower_bound"], Fraction(parts["value"].double())
    least = None if low.absent else Fraction(low.double()) + one.paid
    words = parts["units"].text(), parts["among"].text(), parts["kind"].text()
    return Figures(value + one.paid, least, words)


def gap_of(total: Fraction, low: Fraction, cost: Fraction) -> Fraction:
    """How far a sum lies above its bound, as a share of the smaller of the sum and the loss in it.

    A price that every alternative pays makes no loss better.
    """
    sizes = [abs(size) for size in (total, total - cost) if size]
    return (total - low) / min(sizes, default=Fraction(1))


def _compared(case: PlanUnderCheck, design: Design, number: int, figures: list[Figures]) -> None:
    """What is chosen costs least, and what is said of all alternatives follows from what was derived of each."""
    mine, best = figures[number], figures[number].total
    if best is None:
        raise case.loss.wrong("is that of an alternative without a plan")
    total = float(best)
    known = {"value": total, "expression": design.expression, "units": mine.words[0], "kind": mine.words[2]}
    low, gap, among = case.loss.stating(known, "lower_bound", "relative_gap", "among")
    others = [pair for i, pair in enumerate(zip(design.alternatives, figures, strict=True)) if i != number]
    for stated, (one, figure) in zip(case.alternatives.items(len(others)), others, strict=True):
        loss = None if figure.total is None else float(figure.total)
        said: dict[str, object] = {"name": design.name(one), "loss": loss, "admissible": loss is not None}
        stated.stating(said, "reason")[0].text()
    name = design.name(design.alternatives[number])
    case.says("loss", True, f"{name}: with its cost of {float(design.alternatives[number].paid):.6g}, {total:.6g}")
    better = [one for one in figures if one.total is not None and one.total < best]
    found = "no alternative with a plan costs less" if not better else "another alternative costs less"
    case.says("alternatives", not better, f"{name}: {found}")
    least = [figure.least for figure in figures if figure.least is not None]
    if len(least) < len(figures):
        for item, expected in ((low, None), (gap, None), (among, "")):
            item.same(expected)
        unknown = [
            design.name(one) for one, figure in zip(design.alternatives, figures, strict=True) if figure.least is None
        ]
        holds = case.status == "feasible"
        case.says(
            "bound", holds, f"the best of those that could be computed; no bound is known of {'; '.join(unknown)}"
        )
        return
    among.same(" or ".join(dict.fromkeys(figure.words[1] for figure in figures if figure.total is not None)))
    stated_low = Fraction(low.double())
    apart = gap_of(Fraction(total), stated_low, design.alternatives[number].paid)
    gap.same(float(apart))
    text = f"no mechanism of any of the {len(figures)} alternatives has loss and cost below {digits_down(stated_low)}"
    case.says("bound", stated_low <= min(least) and apart >= 0, text)
    if (case.status == "optimal") != (apart <= OPTIMAL_GAP):
        case.says("bound", False, f"the loss is within {near(apart)} of the bound, and it is called {case.status}")
