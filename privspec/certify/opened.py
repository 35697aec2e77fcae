"""What every plan has, whatever its mechanism: the document, the model of its spec, and its guarantees."""

from __future__ import annotations

from dataclasses import dataclass

from privspec.certify.reading import At, Guarantee
from privspec.model.graph import Model
from privspec.model.requirements import Requirement


@dataclass(frozen=True, eq=False)
class Opened:
    """A plan that could be read."""

    plan: At
    model: Model
    guarantees: tuple[Guarantee, ...]

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        """Those of the spec."""
        return self.model.requirements
