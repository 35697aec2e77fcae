"""What the kernel found: one claim a line."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Report:
    """The claims of a plan in the order in which they were judged, and what they are about.

    `problem`: the digest of the problem that the plan was judged against; `elaborator`: the version that wrote it.
    `mechanism`: what is executed, as it was read; None unless the plan holds.
    """

    claims: tuple[Claim, ...]
    problem: str = ""
    elaborator: str = ""
    mechanism: object = field(default=None, repr=False)

    @property
    def ok(self) -> bool:
        """Whether everything was derived again."""
        return bool(self.claims) and all(claim.holds for claim in self.claims)

    @property
    def failed(self) -> tuple[Claim, ...]:
        """The claims that do not hold."""
        return tuple(claim for claim in self.claims if not claim.holds)
