"""Collecting diagnostics across passes, and suggestions of names."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from functools import partialmethod
from pathlib import Path
from typing import TypeAlias, TypeVar

from privspec.core.diagnostics import Diagnostic, Label, SpecError
from privspec.core.records import dataclass, field, replace
from privspec.core.spans import Source, Span
from privspec.core.suggest import nearest as closest

T = TypeVar("T")


class Failure(Exception):  # noqa: N818 - a failed question, reported by the pass that asked it
    """One thing that is wrong, raised where it is found and reported by the pass that asked."""

    def __init__(
        self,
        code: str,
        span: Span,
        message: str,
        *,
        label: str = "",
        others: Iterable[tuple[Span, str]] = (),
        help: str | None = None,  # noqa: A002 - the word of the diagnostic
    ) -> None:
        self.code, self.span, self.message, self.label, self.help = code, span, message, label, help
        self.others = tuple(others)
        super().__init__(message)

    def diagnostic(self, source: Source) -> Diagnostic:
        """What is wrong, as an error of a file."""
        labels = (Label(self.span, self.label), *(Label(place, text, primary=False) for place, text in self.others))
        return Diagnostic(self.code, self.message, labels, help=self.help, source=source)

    def of_spec(self, source: Source) -> SpecError:
        """The error of a file that is wrong in this alone."""
        return SpecError(self.diagnostic(source))


COMPUTED = "`privspec explain-error PS0501` lists what solve computes"
NO_AMOUNT = "give every amount a value, under `parameters:` or in the line itself"
"""What to do about a requirement whose amounts have no value."""


Unsupported: TypeAlias = tuple[Span, str, str | None]
"""Where something stands that `solve` cannot compute, what it is, and what to write instead."""


def refuse_all(source: Source, found: Iterable[Unsupported | Diagnostic]) -> None:
    """Raises: SpecError with all that was found, by place, if anything was; PS0501 unless it says otherwise."""
    told = []
    for one in found:
        if isinstance(one, Diagnostic):
            told.append(one)
        else:
            span, what, instead = one
            text = f"solve cannot compute {what}"
            told.append(Diagnostic.at(source, span, "PS0501", text, help=instead or COMPUTED))
    if told:
        raise SpecError(sorted(told, key=lambda one: one.labels[0].span.start if one.labels else 0))


@dataclass(slots=True)
class Report:
    """The diagnostics of one file so far."""

    source: Source
    diagnostics: list[Diagnostic] = field(default_factory=list)
    known: set[Diagnostic] = field(default_factory=set)
    """What was told: nothing is told twice."""
    held: list[Failure] = field(default_factory=list)
    """What most likely follows from something else that is wrong: told where nothing else is."""

    def error(
        self,
        code: str,
        span: Span,
        message: str,
        *,
        label: str = "",
        others: Iterable[tuple[Span, str]] = (),
        help: str | None = None,  # noqa: A002 - the word of the diagnostic
        notes: tuple[str, ...] = (),
        severity: str = "error",
    ) -> None:
        """Add one; `others` are further places concerned, with a word under each."""
        told = Failure(code, span, message, label=label, others=others, help=help).diagnostic(self.source)
        found = replace(told, notes=notes, severity=severity)
        if found not in self.known:
            self.known.add(found)
            self.diagnostics.append(found)

    warn = partialmethod(error, severity="warning")
    """Add one that does not stop the work."""

    def failure(self, failure: Failure, *, others: Iterable[tuple[Span, str]] = ()) -> None:
        """Add what a question raised, unless an error inside its place is told already: one cause, one error."""
        place, others = failure.span, (*failure.others, *others)
        around = any(place.start >= span.start and place.end <= span.end for span in self._errors())
        if not around and not self.marred(place):
            self.error(failure.code, place, failure.message, label=failure.label, help=failure.help, others=others)

    def told(self, ask: Callable[[], T]) -> T | None:
        """What a question gives; None after adding what it raised."""
        try:
            return ask()
        except Failure as failure:
            self.failure(failure)
            return None

    def hold(self, failure: Failure, declared: Container[str]) -> None:
        """Keep what most likely follows from another error; a declared name that has no value surely does."""
        if self.source.slice(failure.span) not in declared:
            self.held.append(failure)

    def _errors(self) -> Iterator[Span]:
        return (found.labels[0].span for found in self.diagnostics if found.is_error and found.labels)

    def line(self, span: Span) -> tuple[int, str]:
        """The number of a line of the spec, and its text without its comment; that of a part behind its file."""
        file, _ = self.source.place(span)
        where = "" if file is self.source or file.name == self.source.main.name else f"{Path(file.name).name}: "
        return self.source.position(span.start)[0], where + " ".join(self.source.slice(span).split())

    def marred(self, place: Span) -> bool:
        """Whether an error is told inside a place, so that what else is wrong there may follow from it."""
        return any(place.start <= span.start and span.end <= place.end for span in self._errors())

    @property
    def failed(self) -> bool:
        """Whether any error was found."""
        return any(found.is_error for found in self.diagnostics)

    def in_order(self) -> tuple[Diagnostic, ...]:
        """All of them by place in the text."""
        return tuple(sorted(self.diagnostics, key=lambda d: d.labels[0].span if d.labels else Span(0, 0)))

    def raise_errors(self) -> None:
        """Stop if there are errors, or if something was held back.

        Raises: SpecError with every diagnostic found, warnings included.
        """
        if not self.failed:
            for failure in self.held:
                self.failure(failure)
        if self.failed:
            raise SpecError(self.in_order())

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What does not stop the work, by place."""
        return tuple(found for found in self.in_order() if not found.is_error)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known name that a word is a slip of the finger from, if there is one."""
    return closest(word, sorted({name for name in known if name != word}))


def suggestion(word: str, known: Iterable[str]) -> str | None:
    """`did you mean ...?`, or nothing."""
    found = nearest(word, known)
    return None if found is None else f"did you mean {found}?"


def listing(words: Iterable[str], conjunction: str = "and") -> str:
    """`a, b and c`."""
    items = list(words)
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {conjunction} {items[-1]}" if items else ""
