"""What a spec leaves open, and the models of its alternatives, each built once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from math import prod
from typing import Any, TypeAlias

from privspec.core.diagnostics import SpecError
from privspec.core.records import dataclass, field, replace
from privspec.core.spans import Span
from privspec.language import syntax
from privspec.model.values import Symbol, show

Choice: TypeAlias = "Symbol | tuple[Symbol, ...]"
"""A value that may be chosen: a word, an exact number, or a vector of numbers."""
Values: TypeAlias = Mapping[str, Choice]


@dataclass(frozen=True, slots=True)
class OpenChoice:
    """A name with the values that it may have, in order."""

    name: str
    values: tuple[Choice, ...]
    span: Span


@dataclass(frozen=True, eq=False)
class Design:
    """The choices of a spec; `make` builds the model of an alternative (a `model.graph.Model`)."""

    choices: tuple[OpenChoice, ...]
    loss: syntax.Expr | None
    make: Callable[[Values], Any]
    fixed: Mapping[str, str] = field(default_factory=dict)
    """Choices that were made from outside (`--set`), as they were written."""
    made: dict[tuple[Choice, ...], Any] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    """The specs of all parts that may be chosen, by the names of their files."""

    def __len__(self) -> int:
        return prod(len(choice.values) for choice in self.choices)

    def alternatives(self) -> Iterator[dict[str, Choice]]:
        """Every combination of values, the last choice running fastest."""
        names = [choice.name for choice in self.choices]
        for values in product(*(choice.values for choice in self.choices)):
            yield dict(zip(names, values, strict=True))

    def at(self, values: Values) -> Any:
        """The spec with its choices bound.

        Raises: SpecError with what is wrong of it, saying of which alternative.
        """
        key = tuple(values[choice.name] for choice in self.choices)
        if key not in self.made:
            try:
                model = self.make(values)
                self.texts.update(model.texts)
                self.made[key] = replace(model, design=self, texts=self.texts)
            except SpecError as error:
                note = f"said of the alternative {described(values)}"
                raise SpecError([replace(d, notes=(*d.notes, note)) for d in error.diagnostics]) from error
        return self.made[key]

    def check(self) -> Any:
        """The first alternative, once every value was built at least once.

        Raises: SpecError of the first that does not build.
        """
        first = next(self.alternatives())
        for choice in self.choices:
            for value in choice.values:
                self.at({**first, choice.name: value})
        return self.at(first)

    def of_words(self, words: Mapping[str, str]) -> dict[str, Choice]:
        """Values by how they are written.

        Raises: ValueError if they are not one of its alternatives.
        """
        known = {choice.name: {value_text(value): value for value in choice.values} for choice in self.choices}
        if set(words) != set(known) or any(word not in known[name] for name, word in words.items()):
            raise ValueError("these are no values of what the spec leaves open")
        return {choice.name: known[choice.name][words[choice.name]] for choice in self.choices}


def value_text(value: Choice) -> str:
    """As a spec writes it."""
    return f"[{', '.join(map(show, value))}]" if isinstance(value, tuple) else show(value)


def described(values: Values) -> str:
    """As in "protocol = nobody, k = 3"."""
    return ", ".join(f"{name} = {value_text(value)}" for name, value in values.items())
