"""What is wrong, as data: a stable code, labelled spans, a sentence in the user's terms, and a fix if one is known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from privspec.core.records import dataclass, replace
from privspec.core.spans import Source, Span


@dataclass(frozen=True, slots=True)
class Label:
    """A span with the words to print under its carets; `primary` uses ^, others -."""

    span: Span
    text: str = ""
    primary: bool = True


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One error or warning.

    `code` is stable ("PS0207") and has a long form in the catalogue. `labels` may be empty only for
    errors that have no place in a spec (usage, data files). No field ever holds a value of a secret.
    """

    code: str
    message: str
    labels: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()
    help: str | None = None
    severity: str = "error"
    source: Source | None = None

    @classmethod
    def at(
        cls,
        source: Source | None,
        span: Span,
        code: str,
        message: str,
        *,
        label: str = "",
        help: str | None = None,  # noqa: A002
    ) -> Self:
        """What is wrong at one place of a source."""
        return cls(code, message, (Label(span, label),), help=help, source=source)

    @property
    def is_error(self) -> bool:
        """Whether it stops the work; warnings do not."""
        return self.severity == "error"

    @property
    def located(self) -> Diagnostic:
        """The same in the file that it is about, where the source is made of several: other places become notes."""
        if self.source is None or not self.source.files or not self.labels:
            return self
        file, _ = self.source.place(next((one for one in self.labels if one.primary), self.labels[0]).span)
        labels, notes = [], []
        for label in self.labels:
            where, span = self.source.place(label.span)
            if where is file:
                labels.append(replace(label, span=span))
            else:
                line, column = where.position(span.start)
                notes.append(f"{label.text or 'also'}: {where.name}:{line}:{column}")
        return replace(self, source=file, labels=tuple(labels), notes=(*notes, *self.notes))


class PrivspecError(Exception):
    """Base of the errors a caller may catch; carries the diagnostics and the exit code of INTERFACE.md."""

    exit_code = 1

    def __init__(self, diagnostics: Iterable[Diagnostic] | Diagnostic) -> None:
        items = (diagnostics,) if isinstance(diagnostics, Diagnostic) else tuple(diagnostics)
        self.diagnostics: tuple[Diagnostic, ...] = items
        super().__init__("; ".join(f"{d.code}: {d.message}" for d in items))

    @classmethod
    def of(cls, code: str, message: str, *notes: str, help: str | None = None) -> Self:  # noqa: A002
        """An error of one diagnostic that has no place in a spec."""
        return cls(Diagnostic(code, message, notes=notes, help=help))

    @classmethod
    def at(cls, source: Source | None, span: Span, code: str, message: str, **more: str | None) -> Self:
        """An error of one diagnostic at one place of a source; `more` as for `Diagnostic.at`."""
        return cls(Diagnostic.at(source, span, code, message, **more))  # type: ignore[arg-type]


class UsageError(PrivspecError):
    """A command or call that cannot be understood: a missing file, a bad option (exit 2)."""

    exit_code = 2


class SpecError(PrivspecError):
    """Errors in the user's spec (exit 3)."""

    exit_code = 3


class SolveError(PrivspecError):
    """No answer within the limits given (exit 5)."""

    exit_code = 5


class BudgetError(PrivspecError):
    """The ledger refuses (exit 6)."""

    exit_code = 6


class VerificationError(PrivspecError):
    """A claim of a plan does not hold (exit 7)."""

    exit_code = 7


class DataError(PrivspecError):
    """The data given to `run` do not fit the declared inputs (exit 1); never shows a value."""

    exit_code = 1


class InternalError(Exception):
    """Our own bug; never the user's fault."""
