"""Sentences that say how they are known: a status, and what in spec, notes or certificate they rest on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias


class Status(Enum):
    """How a statement is known; the words are those of the plan file."""

    PROVED = "proved"
    TESTED = "tested"
    ASSUMED = "assumed"
    ASSERTED = "asserted by the user"

    @property
    def meaning(self) -> str:
        """One line for the legend."""
        return _MEANINGS[self]


_MEANINGS = {
    Status.PROVED: "follows from the plan by a written proof; `privspec verify` re-checks its figures",
    Status.TESTED: "checked by tests of this software, not by a proof",
    Status.ASSUMED: "taken to be so; nothing in the plan can show it",
    Status.ASSERTED: "written into the spec by its author and used as given",
}


@dataclass(frozen=True, slots=True)
class SpecLine:
    """A line of the spec, numbered from 1."""

    number: int
    text: str = ""

    def __str__(self) -> str:
        return f"spec line {self.number}"

    def to_json(self) -> dict[str, object]:
        """`{"line": 17, "text": "..."}`."""
        return {"line": self.number, "text": self.text}


@dataclass(frozen=True, slots=True)
class Note:
    """A proof note that ships with the package."""

    name: str

    def __str__(self) -> str:
        return f"note {self.name}"

    def to_json(self) -> dict[str, object]:
        """`{"note": "placement"}`."""
        return {"note": self.name}


@dataclass(frozen=True, slots=True)
class CertificateEntry:
    """A claim that `privspec verify` re-checks."""

    entry: str

    def __str__(self) -> str:
        return f"certificate entry {self.entry}"

    def to_json(self) -> dict[str, object]:
        """`{"certificate": "privacy"}`."""
        return {"certificate": self.entry}


Because: TypeAlias = SpecLine | Note | CertificateEntry


@dataclass(frozen=True, slots=True)
class Sentence:
    """One statement with its status and everything it rests on."""

    text: str
    status: Status
    because: tuple[Because, ...]

    def __post_init__(self) -> None:
        if not self.because:
            raise ValueError(f"a sentence must rest on something: {self.text!r}")

    @property
    def basis(self) -> str:
        """The status and the sources, in words."""
        return f"{self.status.value}: {', '.join(str(b) for b in self.because)}"

    def to_json(self) -> dict[str, object]:
        """Text, status and sources."""
        return {
            "text": self.text,
            "status": self.status.value,
            "because": [b.to_json() for b in self.because],
        }


def proved(text: str, *because: Because) -> Sentence:
    """A statement with a proof."""
    return Sentence(text, Status.PROVED, because)


def tested(text: str, *because: Because) -> Sentence:
    """A statement that tests support."""
    return Sentence(text, Status.TESTED, because)


def assumed(text: str, *because: Because) -> Sentence:
    """A statement that nothing in the plan can show."""
    return Sentence(text, Status.ASSUMED, because)


def asserted(text: str, *because: Because) -> Sentence:
    """A statement of the spec's author."""
    return Sentence(text, Status.ASSERTED, because)
