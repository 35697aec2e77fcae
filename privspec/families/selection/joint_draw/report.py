"""What a transcript shows, and what commitments are made of."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from privspec.families.selection.joint_draw.primitives import digest
from privspec.families.selection.task import decimal_up, log_up


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that voids a draw, and who did it: one of `parties`, if the transcript does not say which."""

    parties: tuple[str, ...]
    what: str

    def text(self) -> str:
        """One sentence."""
        return f"{' or '.join(self.parties)} {self.what}"


@dataclass(frozen=True, slots=True)
class Anchors:
    """What a transcript was held against from outside of it: without them one process can make it all up.

    `absent`: voters whose keys were given and who take no part in the draw.
    """

    voters: bool = False
    mixers: bool = False
    session: bool = False
    absent: tuple[str, ...] = ()

    def text(self) -> str:
        """One sentence or more."""
        if not self.voters:
            keys = "checked against keys that the transcript itself names: whoever made it could have made them up"
        elif self.mixers:
            keys = "checked against the keys given, of all voters and mixers"
        else:
            keys = "checked against the keys given, of all voters; the transcript itself names those of the mixers"
        session = "the session is the one given" if self.session else "the session is the one that the transcript names"
        absent = f"; not in this draw: {', '.join(self.absent)}" if self.absent else ""
        return f"{keys}; {session}{absent}"


@dataclass(frozen=True, slots=True)
class Report:
    """What a transcript shows.

    `winner` is an alternative where the draw is complete and sound, else None; `left_out` are voters whose ballots
    were malformed and stand in no list, `ballots` is the number of those that do. `everybody` is e^epsilon against
    who sees the transcript, `one_voter` against a voter, who also knows whether its own ballot was drawn (None: none).
    """

    winner: str | None
    findings: tuple[Finding, ...]
    left_out: tuple[str, ...]
    ballots: int | None
    position: int | None
    entry: int | None
    everybody: Fraction | None
    one_voter: Fraction | None
    anchors: Anchors = Anchors()

    @property
    def ok(self) -> bool:
        """Whether the draw is complete and sound."""
        return self.winner is not None

    @property
    def named(self) -> tuple[str, ...]:
        """Parties that the transcript convicts, by name."""
        return tuple(dict.fromkeys(f.parties[0] for f in self.findings if len(f.parties) == 1))

    def protection(self) -> str:
        """What a vote is protected by, in one sentence."""
        return protection(self.everybody, self.one_voter)

    def to_json(self) -> dict[str, Any]:
        """For files."""
        return {
            "ok": self.ok,
            "winner": self.winner,
            "findings": [finding.text() for finding in self.findings],
            "left_out": list(self.left_out),
            "ballots": self.ballots,
            "position": self.position,
            "entry": self.entry,
            "epsilon": _epsilon(self.everybody),
            "epsilon_against_a_voter": _epsilon(self.one_voter),
            "keys_given": {"voters": self.anchors.voters, "mixers": self.anchors.mixers},
            "session_given": self.anchors.session,
            "not_in_this_draw": list(self.anchors.absent),
        }


def commitment(session: str, sender: str, position: int, entry: int, nonce: bytes) -> bytes:
    """To a party's two numbers; the sender's name is in it, so that a copy is of no use to another."""
    numbers = position.to_bytes(8, "big") + entry.to_bytes(8, "big")
    return digest(b"privspec commit", session.encode(), sender.encode(), numbers, nonce)


def list_digest(ballots: list[bytes]) -> bytes:
    """Of the mixed list."""
    return digest(b"privspec list", *ballots)


def protection(everybody: Fraction | None, one_voter: Fraction | None) -> str:
    """What a vote is protected by: e^epsilon against who sees a transcript, and against one voter (None: no bound)."""
    return (
        f"whoever sees the transcript learns of a vote what epsilon {_epsilon(everybody)} allows; a voter, who knows "
        f"whether its own ballot was drawn, {_epsilon(one_voter)}; the last mixer reads the drawn ballot, not its name"
    )


def _epsilon(ratio: Fraction | None) -> str:
    return "infinite" if ratio is None else decimal_up(log_up(ratio))
