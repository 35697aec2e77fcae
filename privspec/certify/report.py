"""What a verification found: one claim a line, with what was re-derived."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Status: TypeAlias = Literal["ok", "failed", "not checked"]

INTEGRITY = "integrity"
PRIVACY = ("coverage", "privacy")
"""Claims without which a plan is not verified."""
PROMISED = (*PRIVACY, "fairness")
"""What is promised to the people in the data may not stay unchecked."""

OUTSIDE = (
    "that the data are what the owner says",
    "that the machine running it is not compromised",
    "that whoever is trusted in the spec deserves it",
)
"""What no checker can find in a plan."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One thing a plan says, and whether it was re-derived.

    `margin`: how far inside its limit the figure lies, relative to the limit, where that has a meaning.
    """

    name: str
    status: Status
    text: str
    margin: float | None = None

    def __str__(self) -> str:
        margin = "" if self.margin is None else f" (margin {self.margin:.1e})"
        return f"{self.status:<12}{self.name:<13}{self.text}{margin}"


@dataclass(frozen=True, slots=True)
class Report:
    """The claims of a plan in the order in which they were checked."""

    claims: tuple[Claim, ...]

    @property
    def ok(self) -> bool:
        """Whether no claim failed and everything that people are promised was re-derived."""
        if any(claim.status == "failed" for claim in self.claims):
            return False
        proved = {claim.name for claim in self.claims if claim.status == "ok"}
        open_claims = {claim.name for claim in self.claims if claim.status == "not checked"}
        return {INTEGRITY, *PRIVACY} <= proved and not open_claims & set(PROMISED)

    @property
    def failed(self) -> tuple[Claim, ...]:
        """The claims that do not hold."""
        return tuple(claim for claim in self.claims if claim.status == "failed")

    def __str__(self) -> str:
        checked = [claim for claim in self.claims if claim.status != "not checked"]
        rest = [claim for claim in self.claims if claim.status == "not checked"]
        word = "claim" if len(checked) == 1 else "claims"
        lines = [f"{len(checked)} {word} checked; compiler and solver not used"]
        lines.extend(str(claim) for claim in checked)
        lines.extend(f"not checked: {claim.text}" for claim in rest)
        if self.ok:
            lines.append("not checked: " + "; ".join(OUTSIDE))
        else:
            lines.append(f"this plan is NOT verified: {len(self.failed)} failed")
        return "\n".join(lines) + "\n"
