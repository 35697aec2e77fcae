"""What a family of mechanisms says of itself on every page.

A plan has one mechanism; the pages ask its fact object for words, tables and drawings and know no family by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from privspec.explain.document import Block, Section
from privspec.explain.questions import Question, TookPart
from privspec.explain.sentences import CertificateEntry, Note, Sentence

if TYPE_CHECKING:
    from privspec.explain.claims import Claim
    from privspec.explain.curves import Curve
    from privspec.explain.fact_types import AlternativeFact, Facts
    from privspec.model.graph import Model
    from privspec.model.observers import Unit

Rows = list[tuple[str, str]]
"""A label and a text each."""


@dataclass(frozen=True, slots=True)
class MechanismFact(ABC):
    """One mechanism, as its family describes it."""

    family: str

    drawn_label: ClassVar[str]
    """What `drawn` tells, for a table of a dozen lines: "Where the noise goes"."""
    brief_label: ClassVar[str]
    """The same in one word."""
    subject: ClassVar[str]
    """What was executed, at the beginning of a sentence: "The noise as executed"."""
    reached_label: ClassVar[str]
    """The row of the guarantee that says what was reached."""
    exact_curve: ClassVar[str]
    """The legend of an exact trade-off curve."""
    entry: ClassVar[CertificateEntry]
    """What of the certificate is about it."""
    loss_note: ClassVar[Note]
    """The note that proves the bound on the loss."""
    accuracy_heading: ClassVar[str] = "How exact are the published figures?"
    """The heading of the public's section on errors."""
    measure: ClassVar[str]
    """The measure taken against risk, for auditors."""

    # --- facts

    def judged(self, claim: Claim) -> tuple[Claim, Question]:
        """The claim, sharpened by what is known of this mechanism, and what an observer tries to tell under it."""
        return claim, TookPart()

    @abstractmethod
    def released(self) -> frozenset[str]:
        """The outputs."""

    @abstractmethod
    def seen(
        self,
        plan: Mapping[str, Any],
        outputs: frozenset[str],
        claim: Claim,
        unit: Unit | None,
        model: Model | None,
    ) -> Curve | None:
        """The curve of one who sees these outputs, for the unit of a claim; None where no bound is known.

        `claim` names what moves in words; `unit` is the same for programs, None where the model is not known.
        """

    def gaps(self) -> tuple[str, ...]:
        """What these pages cannot say of this mechanism."""
        return ()

    # --- the short table

    @abstractmethod
    def drawn(self, facts: Facts) -> str:
        """What is drawn and where, in one line."""

    def summary_rows(self, _facts: Facts) -> Rows:
        """Further rows below it."""
        return []

    @abstractmethod
    def error(self, facts: Facts) -> tuple[str, str]:
        """A label and the expected error; the text is empty where none is known."""

    @abstractmethod
    def compared(self, item: AlternativeFact, facts: Facts) -> str:
        """How a design that was not chosen compares, with the space before it: " ± 24.1"."""

    def next_commands(self, _facts: Facts) -> tuple[str, ...]:
        """The commands that a plan is good for."""
        return "run", "explain", "verify"

    # --- the public's page

    @abstractmethod
    def public_accuracy(self, facts: Facts) -> tuple[Sentence, ...]:
        """How far the figures are off."""

    def public_sections(self, _facts: Facts) -> tuple[Section, ...]:
        """Further sections, below the odds."""
        return ()

    @abstractmethod
    def exactly(self, facts: Facts) -> str:
        """What is released exactly, without noise."""

    # --- the auditor's page

    @abstractmethod
    def auditor_points(self, facts: Facts) -> tuple[Sentence, ...]:
        """The mechanism as it is executed."""

    @abstractmethod
    def auditor_tables(self, facts: Facts) -> tuple[Block, ...]:
        """Its figures."""

    @abstractmethod
    def data(self, facts: Facts) -> tuple[Sentence, ...]:
        """The secret inputs."""

    # --- the engineer's page

    @abstractmethod
    def engineer_sections(self, facts: Facts) -> tuple[Section, ...]:
        """What is drawn, in figures and drawings."""

    @abstractmethod
    def execution(self, facts: Facts) -> tuple[Block, ...]:
        """What `privspec run` executes."""

    @abstractmethod
    def run_commands(self, facts: Facts, plan: str) -> tuple[str, ...]:
        """The commands that execute a plan, given its file name."""
