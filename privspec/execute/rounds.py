"""Rounds of a plan that share a budget: what each spends, and what a ledger knows of them (notes/repeated-votes.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from privspec.core.diagnostics import UsageError, VerificationError
from privspec.execute.family import exposure_of


class Event(Protocol):
    """An entry of a ledger, as far as rounds and releases look at it."""

    @property
    def body(self) -> Mapping[str, Any]: ...

    @property
    def digest(self) -> str: ...


# --- in a ledger ----------------------------------------------------------------------------------


def held(events: Sequence[Event], plan: Mapping[str, Any]) -> int:
    """How many rounds of a plan were paid for."""
    return sum(e.body["kind"] in ("debit", "round") and e.body["plan_sha256"] == plan.get("digest") for e in events)


def adds(plan: Mapping[str, Any]) -> bool:
    """Whether every guarantee hides who takes part."""
    return all(str(guarantee["neighbours"]).startswith("adding or removing") for guarantee in plan["guarantees"])


def refusal_notes(events: Sequence[Event], plan: Mapping[str, Any] | None) -> tuple[str, ...]:
    """What a refusal adds: which round it would be, or that a plan was run before."""
    if plan is None or (before := held(events, plan) - 1) < 0:
        return ()
    rounds = exposure_of(plan).rounds
    if rounds is None:
        return ("running one plan again would average its noise away",) if before else ()
    all_held = f"all {rounds.count} rounds of this plan were held: " if before >= rounds.count else ""
    notes = [f"{all_held}this would be round {before + 1} of {rounds.count}"]
    last = events[-1].body
    if "participation" in last:
        notes = [
            "a participation file pays the whole budget with its first round, and something was spent before: by "
            "rounds without such a file, or with another one"
        ]
    elif any("participation" in e.body for e in events):
        notes = ["rounds of this ledger are counted for each voter: give --participation with the file of the others"]
    elif adds(plan):
        one = plan["mechanism"].get("party") or "voter"
        notes.append(
            f"with --participation FILE.db from the first round on, a budget lasts longer: each {one} may take part in "
            f"{rounds.fit} rounds, whichever these are"
        )
    return tuple(notes)


def counted_rounds(events: Sequence[Event]) -> list[str]:
    """One line for each participation file."""
    found = [e.body["participation"] for e in events if "participation" in e.body]
    last = {str(item["file"]): item for item in found}
    return [
        f"participation file {name[:8]}: {item['round']} round{'' if item['round'] == 1 else 's'} for one budget, one "
        f"voter takes part in at most {item['fit']}"
        for name, item in last.items()
    ]


def check_round(events: Sequence[Event]) -> None:
    """A round that is not debited follows one of the same participation file, whose first paid for all.

    Raises: VerificationError PS1005.
    """
    *before, last = events
    own = last.body["participation"]
    same = [e for e in before if _round_of(e, own["file"]) and e.body["plan_sha256"] == last.body["plan_sha256"]]
    if not same or same[0].body["kind"] != "debit" or _round_of(same[-1], own["file"]) >= own["round"]:
        raise VerificationError.of("PS1005", f"event {len(events)} of the ledger is a round that nothing was paid for")


def paid_for(events: Sequence[Event], number: str, held_before: int, path: Path) -> bool:
    """Whether an earlier round paid for all that the participation file with this number allows.

    Raises: UsageError PS0849 if the file holds fewer rounds than the ledger.
    """
    known = [_round_of(event, number) for event in events]
    if max(known, default=0) > held_before:
        raise UsageError.of(
            "PS0849",
            "the participation file has fewer rounds than its ledger: it is an older copy",
            "nothing was drawn and nothing was spent",
            help=f"use the file that the last round wrote; {path} says how many there were",
        )
    return any(known)


def _round_of(event: Event, number: str) -> int:
    """Which round of a participation file an event is for, 0 for none."""
    found = event.body.get("participation") or {}
    return int(found["round"]) if found.get("file") == number else 0
