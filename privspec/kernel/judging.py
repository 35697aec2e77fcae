"""A plan in, a report out: integrity, the problem's frame, then its block by the rules of its form."""

from __future__ import annotations

import hashlib
from dataclasses import field

from privspec.kernel.core.problem import HOMES, Claim, PlanUnderCheck, rules_of
from privspec.kernel.core.reading import JsonNode, Refused, canonical, frozen, parse, read

DEFECTS = (ArithmeticError, ValueError, TypeError, KeyError, IndexError, RecursionError, MemoryError)


@frozen
class Judged:
    """Claims in the order in which they were judged."""

    claims: tuple[Claim, ...]

    @property
    def ok(self) -> bool:
        """Whether everything was derived again."""
        return bool(self.claims) and all(claim.holds for claim in self.claims)

    @property
    def failed(self) -> tuple[Claim, ...]:
        """The claims that do not hold."""
        return tuple(claim for claim in self.claims if not claim.holds)


@frozen
class Report(Judged):
    """The claims of a plan in the order in which they were judged, and what they are about.

    `problem`: the digest of the problem that the plan was judged against; `elaborator`: the version that wrote it.
    `mechanism`: what is executed, as it was read; None unless the plan holds.
    """

    problem: str = ""
    elaborator: str = ""
    mechanism: object = field(default=None, repr=False)


def judge(plan: str | JsonNode, *, worth: bool = True) -> Report:
    """Judge a plan: its text, or what `parse` made of it. Never raises for a bad plan.

    Args: worth, whether to judge what the plan is worth as well: its loss, accuracy, bounds.
    Returns: a report, `ok` only if every statement was derived again.
    """
    found: list[Claim] = []
    try:
        return _judged(parse(plan) if isinstance(plan, str) else plan, found, worth=worth)
    except Refused as reason:
        found.append(Claim("reading", False, str(reason)))
    except DEFECTS as error:
        found.append(Claim("reading", False, f"the plan cannot be judged ({type(error).__name__}: {str(error)[:80]})"))
    return Report(tuple(found))


def _judged(plan: JsonNode, found: list[Claim], *, worth: bool) -> Report:
    """The report of a plan that could be parsed.

    Raises: Refused.
    """
    case, design = read_case(plan)
    own, case.found = case, found
    case.says("integrity", True, "every key is known and the digest fits")
    form = case.block.form(*HOMES)
    rules = rules_of(form)
    if any(data.asserted for data in case.frame.data) and form not in ("linear", "priced"):
        raise case.problem.wrong("asserts how a function moves, which such a block does not look at")
    if design is not None:
        from privspec.kernel.designs import chosen_case, judge_design

        own, executed = judge_design(case, design) if worth else (chosen_case(case, design), None)
    if design is None or not worth:
        executed = rules.judge(own) if worth else rules.privacy(own)
    if any(data.people is not None for data in own.frame.data):
        _whole_persons(own)
    if own.frame.views or not own.exposures.absent:
        rules.judge_exposures(own, executed)
    if own.frame.computed:
        _computed(own)
    holds = worth and all(claim.holds for claim in found)
    return Report(tuple(found), digest(case.problem.value), case.frame.elaborator, executed if holds else None)


def read_case(plan: JsonNode) -> tuple[PlanUnderCheck, JsonNode | None]:
    """A plan with its frame read and the digest that fits it, and what it says of choices that were open."""
    case = read(PlanUnderCheck, JsonNode(plan.without("design"), plan.place))
    if case.digest != digest(plan.without("digest")):
        raise plan.wrong("does not have the digest that fits it")
    return case, dict(plan.entries()).get("design")


def _whole_persons(case: PlanUnderCheck) -> None:
    """Where records are gathered by person, all that one person has in the tables moves at once (notes/persons.md).

    Raises: Refused where a unit may be less, or moves records of a table in one input and not in another.
    """
    frame = case.frame
    people = {data.name: data for data in frame.data if data.people is not None}
    tables = {data.name: {data.name, *(() if data.people is None else data.people.tables)} for data in frame.data}
    for data in people.values():
        if data.party or data.people is None or bool(data.people.persons) == (data.kept is not None):
            raise case.problem.wrong("does not say whose the records are that are gathered")
    moved = (*(one.units for one in frame.obligations), *(one.units for one in frame.views))
    for unit in (unit for units in moved for unit in units):
        gathered = {table for name in unit.inputs for table in tables[name]}
        beside = [name for name, own in tables.items() if own & gathered and name not in unit.inputs]
        held = [people[name].people for name in unit.inputs if name in people]
        by_row = any(one is not None and one.persons for one in held)
        whole = (unit.kind == "record" and len(unit.inputs) == 1) if by_row else unit.kind == "person"
        if beside or (held and (unit.apart is not None or not (whole or unit.kind == "everything"))):
            raise case.problem.wrong("moves less than all that one person has where records are gathered")
    for data in people.values():
        assert data.people is not None
        listed = " and ".join(data.people.tables)
        made = (
            "one person moves one of its records" if data.people.persons else "one person moves records of that person"
        )
        case.says("persons", True, f"{data.name} is gathered from {listed} person by person: {made}")


def _computed(case: PlanUnderCheck) -> None:
    """Outputs that are computed from released ones have names of their own, and sources that are released."""
    from privspec.kernel.systems import outputs_of

    known = set(outputs_of(case))
    for one in case.frame.computed:
        taken = known | {data.name for data in case.frame.data}
        if one.name in taken or not one.sources or not set(one.sources) <= known:
            raise case.problem.wrong("computes an output from what is not released, or twice")
        case.says(
            "computed", True, f"{one.name} is computed from {', '.join(one.sources)} alone: it tells nothing more"
        )
        known.add(one.name)


def digest(value: object) -> str:
    """SHA-256 of the one text of a JSON value."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()
