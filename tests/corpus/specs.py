"""The specs of the corpus: whatever the repository holds that can be solved, found where it stands.

A template, example or question that is added joins by itself; so does a form of tests/language_forms.txt, also one that
is refused, whose diagnostics are compared.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from privspec.api import Problem
from tests.plans import SMALL, SPECS, small_text
from tests.test_language_forms import FORMS

TOP = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class CorpusSpec:
    """One spec: its name ("questions/mean_pay"), its text, and the folder that file names in it are relative to."""

    name: str
    text: str
    base: Path

    @property
    def problem(self) -> Problem:
        """The spec under a file name that is the same in every checkout."""
        return Problem(self.text, base=self.base, name=f"{self.name.rpartition('/')[2]}.priv")


def _in_files() -> Iterator[CorpusSpec]:
    templates, examples, questions = SPECS, TOP / "examples", TOP / "tests" / "questions"
    for path in sorted(templates.glob("*.priv")):
        yield CorpusSpec(f"templates/{path.stem}", path.read_text("utf-8"), templates)
        if SMALL.get(path.stem):
            yield CorpusSpec(f"small/{path.stem}", small_text(path.stem), templates)
    for folder, kind in ((examples, "examples"), (questions, "questions")):
        for path in sorted(folder.rglob("*.priv")):
            name = path.relative_to(folder).with_suffix("").as_posix()
            yield CorpusSpec(f"{kind}/{name}", path.read_text("utf-8"), path.parent)


def _in_forms() -> Iterator[CorpusSpec]:
    told: Counter[str] = Counter()
    for name, _, text in FORMS:
        words = re.sub("[^a-z0-9]+", "_", name.lower()).strip("_")
        told[words] += 1
        yield CorpusSpec(f"forms/{words}" + (f"_{told[words]}" if told[words] > 1 else ""), text, SPECS)


@cache
def corpus() -> dict[str, CorpusSpec]:
    """All specs by name."""
    found = [*_in_files(), *_in_forms()]
    known = {one.name: one for one in found}
    assert len(known) == len(found), "two specs have one name"
    return known


def named(only: tuple[str, ...]) -> list[CorpusSpec]:
    """The specs whose names begin with one of those given, or all where none is.

    Raises: LookupError for a beginning that no name has.
    """
    for beginning in only:
        if not any(name.startswith(beginning) for name in corpus()):
            raise LookupError(f"no spec of the corpus begins with {beginning}")
    return [spec for name, spec in corpus().items() if not only or name.startswith(only)]
