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
