"""Modules under the names that they had, until every branch has followed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {
    "privspec.language.tables": "privspec.language.automaton",
    "privspec.language.tokens": "privspec.language.automaton",
    "privspec.language.failure": "privspec.language.flaws",
    "privspec.language.words": "privspec.language.flaws",
    "privspec.language.mistakes_words": "privspec.language.mistakes",
    "privspec.language.reader": "privspec.language.parser",
    "privspec.language.sentences": "privspec.language.spelling",
    "privspec.language.printer": "privspec.language.spelling",
    "privspec.language.visit": "privspec.language.walk",
    "privspec.model.walk": "privspec.language.walk",
    "privspec.core.lookalikes": "privspec.core.suggest",
    "privspec.core.powers": "privspec.core.rounding",
    "privspec.functions.arguments": "privspec.functions.linear",
    "privspec.functions.elementary": "privspec.functions.linear",
    "privspec.functions.comparison": "privspec.functions.statistics",
    "privspec.functions.truth": "privspec.functions.voting",
    "privspec.functions.preference": "privspec.functions.probit",
    "privspec.model.distance_matrices": "privspec.model.distances",
    "privspec.model.measure_rules": "privspec.model.measures",
    "privspec.model.distance_rules": "privspec.model.clauses",
    "privspec.model.unit_rules": "privspec.model.clauses",
    "privspec.model.caution_rules": "privspec.model.requirement_rules",
    "privspec.model.fairness_rules": "privspec.model.requirement_rules",
    "privspec.model.routes": "privspec.model.library",
    "privspec.model.files": "privspec.model.evaluate",
    "privspec.model.labels": "privspec.model.targets",
    "privspec.model.sensitivity": "privspec.model.targets",
    "privspec.model.components": "privspec.model.definitions",
    "privspec.model.trust": "privspec.model.requirements",
    "privspec.model.weights": "privspec.model.priors",
    "privspec.model.generators": "privspec.model.priors",
    "privspec.model.world_laws": "privspec.model.worlds",
    "privspec.model.looks": "privspec.model.spaces",
    "privspec.model.chances": "privspec.model.pointwise",
    "privspec.model.gap_rules": "privspec.model.observers",
    "privspec.model.types": "privspec.model.domains",
    "privspec.execute.lotteries.mechanism": "privspec.execute.lotteries.mechanism",
    "privspec.execute.statistics.mechanism": "privspec.execute.statistics.mechanism",
}


class _Moved(MetaPathFinder, Loader):
    """Finds a module under its old name."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname in MOVED else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        found = import_module(MOVED[spec.name])
        copy = ModuleType(spec.name)
        copy.__dict__.update({name: value for name, value in vars(found).items() if not name.startswith("__")})
        return copy

    def exec_module(self, module: ModuleType) -> None:
        pass


def install() -> None:
    """Let old names be imported."""
    sys.meta_path.append(_Moved())
