"""What a transcript shows, and what commitments are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from privspec.execute.joint_draw.primitives import digest


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that voids a draw, and who did it: one of `parties`, if the transcript does not say which."""

    parties: tuple[str, ...]
    what: str

    def text(self) -> str:
        """One sentence."""
        return f"{' or '.join(self.parties)} {self.what}"


@dataclass(frozen=True, slots=True)
class Report:
    """What a transcript shows.

    `winner` is an alternative where the draw is complete and sound, else None; `left_out` are voters whose ballots
    were malformed and stand in no list, `ballots` is the number of those that do.
    """

    winner: str | None
    findings: tuple[Finding, ...]
    left_out: tuple[str, ...]
    ballots: int | None
    position: int | None
    entry: int | None

    @property
    def ok(self) -> bool:
        """Whether the draw is complete and sound."""
        return self.winner is not None

    @property
    def named(self) -> tuple[str, ...]:
        """Parties that the transcript convicts, by name."""
        return tuple(dict.fromkeys(f.parties[0] for f in self.findings if len(f.parties) == 1))

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
        }


def commitment(session: str, sender: str, position: int, entry: int, nonce: bytes) -> bytes:
    """To a party's two numbers; the sender's name is in it, so that a copy is of no use to another."""
    numbers = position.to_bytes(8, "big") + entry.to_bytes(8, "big")
    return digest(b"privspec commit", session.encode(), sender.encode(), numbers, nonce)


def list_digest(ballots: list[bytes]) -> bytes:
    """Of the mixed list."""
    return digest(b"privspec list", *ballots)
