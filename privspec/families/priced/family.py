"""Specs of which an amount of privacy is picked: the family of the spec at any one amount prices it."""

from __future__ import annotations

from privspec.core.diagnostics import SpecError
from privspec.families.family import Decision, Settings
from privspec.families.infeasible import Infeasible
from privspec.model.graph import Model
from privspec.problem.priced import inner_family, parsed


class LeastCost:
    """Hands a spec to the family that can price its amount, and refuses it where none can."""

    def lower(self, model: Model) -> Model:
        """The spec itself.

        Raises: SpecError PS0501 where the family of the spec cannot price amounts, PS0524, PS0504.
        """
        compiler = inner_family(model).compiles()
        if not hasattr(compiler, "priced"):
            node = parsed(model).node
            why = getattr(compiler, "unpriced", "what is lost at each amount has no bound here")
            text = f"solve cannot pick {node.name}: {why}"
            hint = f"give {node.name} a value under `parameters:`; privspec sweep SPEC --over compares many"
            raise SpecError.at(model.source, node.span, "PS0501", text, help=hint)
        return model

    def decide(self, model: Model, _system: Model, settings: Settings) -> Decision | Infeasible:
        """The amount of least cost, with a mechanism that meets every line at it."""
        found: Decision | Infeasible = inner_family(model).compiles().priced(model, settings)
        return found

    def size(self, _system: Model) -> int:
        """Its programs are small beside their number."""
        return 1
