"""Who sees the raw data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from privspec.core.spans import Span


class Trust(ABC):
    """A trust model: `name` as written in a spec."""

    __slots__ = ()

    name: ClassVar[str]

    @abstractmethod
    def describe(self) -> str:
        """One sentence: who sees what."""


@dataclass(frozen=True, slots=True)
class Curator(Trust):
    """One keeper sees all data; noise may enter anywhere."""

    span: Span | None = None
    name: ClassVar[str] = "curator"

    def describe(self) -> str:
        """One sentence."""
        return "one keeper sees all raw data; everybody else sees only the outputs"


@dataclass(frozen=True, slots=True)
class Nobody(Trust):
    """Each party's message is public and must itself satisfy the requirement."""

    span: Span | None = None
    name: ClassVar[str] = "nobody"

    def describe(self) -> str:
        """One sentence."""
        return "nobody sees another's raw data; each party adds its own noise before it sends anything"


@dataclass(frozen=True, slots=True)
class SecureSum(Trust):
    """Parties add shares of noise and all see only the sum; `colluding` shares are not counted on."""

    colluding: int = 0
    span: Span | None = None
    name: ClassVar[str] = "secure_sum"

    def describe(self) -> str:
        """One sentence."""
        tail = f", even if {self.colluding} of them collude" if self.colluding else ""
        return f"parties add shares of noise, and everybody sees only the sum{tail}"


@dataclass(frozen=True, slots=True)
class ChosenTrust(Trust):
    """A `choose` variable picks the trust model."""

    variable: str
    among: tuple[str, ...]
    span: Span | None = None
    name: ClassVar[str] = "chosen"

    def describe(self) -> str:
        """One sentence."""
        return f"{self.variable} picks one of {', '.join(self.among)}"
