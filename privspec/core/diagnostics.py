"""Errors that a caller may catch; each carries what is wrong as diagnostics, and shows them with their excerpts."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Self

from privspec.core.spans import Diagnostic, Label, Source, Span

__all__ = [
    "BudgetError",
    "DataError",
    "Diagnostic",
    "InternalError",
    "Label",
    "PrivspecError",
    "SolveError",
    "SpecError",
    "UsageError",
    "VerificationError",
]


class PrivspecError(Exception):
    """Base of the errors a caller may catch; carries the diagnostics and the exit code of INTERFACE.md."""

    exit_code = 1

    def __init__(self, diagnostics: Iterable[Diagnostic] | Diagnostic) -> None:
        items = (diagnostics,) if isinstance(diagnostics, Diagnostic) else tuple(diagnostics)
        self.diagnostics: tuple[Diagnostic, ...] = items
        super().__init__("; ".join(f"{d.code}: {d.message}" for d in items))

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows in place of a traceback: the lines that the command line prints."""
        from privspec.core.render import render_all  # errors that are caught are not shown

        return render_all(self.diagnostics, colour=True).splitlines()

    def _repr_html_(self) -> str:
        """The same where a notebook shows an error that was caught."""
        from privspec.core.render import render_all

        return f"<pre>{escape(render_all(self.diagnostics))}</pre>"

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


class MisfitError(PrivspecError):
    """The keeper asked that so much of the data fit, or was asked and declined: nothing was spent (exit 8)."""

    exit_code = 8


class InternalError(Exception):
    """Our own bug; never the user's fault."""
