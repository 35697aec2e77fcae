"""The language server: the features of a spec over the Language Server Protocol, by pygls, on stdin and stdout.

The text of a document is sent whole at each change, so that both sides count lines alike; positions are counted in the
units that the editor asks for (UTF-16, where it does not).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlparse
from urllib.request import url2pathname

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from privspec.core.diagnostics import Diagnostic, SpecError
from privspec.core.spans import Source, Span
from privspec.editor import features
from privspec.editor.features import Looked
from privspec.language.formatter import format_source
from privspec.model.graph import Model

NAME = "privspec"
_END = re.compile(r"\r\n|\n|\r")
_UNITS: dict[str, Callable[[str], int]] = {
    lsp.PositionEncodingKind.Utf8: lambda text: len(text.encode("utf-8", "surrogatepass")),
    lsp.PositionEncodingKind.Utf16: lambda text: len(text.encode("utf-16-le", "surrogatepass")) // 2,
    lsp.PositionEncodingKind.Utf32: len,
}
_SYMBOLS = {
    "parameter": lsp.SymbolKind.Constant,
    "constant": lsp.SymbolKind.Constant,
    "party": lsp.SymbolKind.Enum,
    "component": lsp.SymbolKind.Module,
}
_ITEMS = {
    "function": lsp.CompletionItemKind.Function,
    "keyword": lsp.CompletionItemKind.Keyword,
    "section": lsp.CompletionItemKind.Keyword,
    "column": lsp.CompletionItemKind.Field,
    "option": lsp.CompletionItemKind.EnumMember,
    "parameter": lsp.CompletionItemKind.Constant,
    "component": lsp.CompletionItemKind.Module,
}


class Places:
    """Offsets of a text and positions of the protocol: lines from 0, columns in units of an encoding."""

    def __init__(self, text: str, encoding: str) -> None:
        self.text = text
        self.units = _UNITS[encoding]
        self.starts = [0, *(match.end() for match in _END.finditer(text))]

    def position(self, offset: int) -> lsp.Position:
        """The position of an offset; one beyond the text is its end."""
        offset = min(offset, len(self.text))
        line = bisect_right(self.starts, offset) - 1
        return lsp.Position(line, self.units(self.text[self.starts[line] : offset]))

    def offset(self, position: lsp.Position) -> int:
        """The offset of a position; one beyond a line is its end, one inside a character the place before it."""
        if position.line >= len(self.starts):
            return len(self.text)
        start = self.starts[position.line]
        end = self.starts[position.line + 1] if position.line + 1 < len(self.starts) else len(self.text)
        line = self.text[start:end].rstrip("\r\n")
        taken = 0
        for i, character in enumerate(line):
            taken += self.units(character)
            if taken > position.character:
                return start + i
        return start + len(line)

    def range(self, span: Span) -> lsp.Range:
        """The range of a span."""
        return lsp.Range(self.position(span.start), self.position(span.end))


class Server(LanguageServer):
    """A server with what it last saw of each document, and the last meaning of each that had one."""

    def __init__(self) -> None:
        super().__init__(NAME, f"v{version(NAME)}", text_document_sync_kind=lsp.TextDocumentSyncKind.Full)
        self.looked: dict[str, Looked] = {}
        self.known: dict[str, Model] = {}

    def look(self, uri: str) -> Looked:
        """The document as it stands."""
        text = self.workspace.get_text_document(uri).source
        found = self.looked.get(uri)
        if found is None or found.source.text != text:
            path = _path(uri)
            found = features.look(
                Source(uri if path is None else str(path), text), None if path is None else path.parent
            )
            self.looked[uri] = found
            if found.model is not None:
                self.known[uri] = found.model
        return found

    def places(self, source: Source) -> Places:
        """The positions of a text."""
        return Places(source.text, self.workspace.position_encoding or lsp.PositionEncodingKind.Utf16)

    def forget(self, uri: str) -> None:
        """Nothing more is known of a document."""
        self.looked.pop(uri, None)
        self.known.pop(uri, None)

    def tell(self, uri: str, version: int | None = None) -> None:
        """Sends what is wrong with a document."""
        looked = self.look(uri)
        found = [self.diagnostic(uri, looked, one) for one in looked.diagnostics]
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, found, version))

    def diagnostic(self, uri: str, looked: Looked, diagnostic: Diagnostic) -> lsp.Diagnostic:
        """A message at its first place, the others beside it; one about another file stands where it is named."""
        own, places = looked.source, self.places(looked.source)
        located = diagnostic.located
        elsewhere = located.source is not None and located.source.name not in (own.name, own.main.name)
        shown = [one for one in located.labels if one.primary] or list(located.labels)
        place = shown[0].span if shown and not elsewhere else _named(own, located.source)
        related = [
            lsp.DiagnosticRelatedInformation(self.location(uri, own, located.source, one.span), one.text or "here")
            for one in located.labels
            if elsewhere or one is not shown[0]
        ]
        notes = [f"note: {note}" for note in located.notes]
        advice = [f"help: {located.help}"] if located.help else []
        return lsp.Diagnostic(
            range=places.range(place),
            message="\n".join((located.message, *notes, *advice)),
            severity=lsp.DiagnosticSeverity.Error if located.is_error else lsp.DiagnosticSeverity.Warning,
            code=located.code,
            source=NAME,
            related_information=related or None,
        )

    def location(self, uri: str, own: Source, source: Source | None, span: Span) -> lsp.Location:
        """A place in a document, or in a file that it names."""
        if source is None or source.name in (own.name, own.main.name):
            return lsp.Location(uri, self.places(own).range(span))
        path = Path(source.name)
        where = path.resolve().as_uri() if path.is_file() else uri
        return lsp.Location(where, self.places(source).range(span))


def _path(uri: str) -> Path | None:
    """The file of a document; None for one that was never saved."""
    parsed = urlparse(uri)
    return Path(url2pathname(parsed.path)) if parsed.scheme == "file" else None


def _named(source: Source, other: Source | None) -> Span:
    """Where a text names a file; its first word where it does not."""
    name = "" if other is None else Path(other.name).name
    at = source.text.find(f'"{name}"') if name else -1
    return Span(at, at + len(name) + 2) if at >= 0 else source.span(1)


def server() -> Server:
    """A server with all its features."""
    found = Server()

    @found.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def _opened(ls: Server, asked: lsp.DidOpenTextDocumentParams) -> None:
        ls.tell(asked.text_document.uri, asked.text_document.version)

    @found.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def _changed(ls: Server, asked: lsp.DidChangeTextDocumentParams) -> None:
        ls.tell(asked.text_document.uri, asked.text_document.version)

    @found.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    def _saved(ls: Server, asked: lsp.DidSaveTextDocumentParams) -> None:
        ls.looked.pop(asked.text_document.uri, None)  # files that it names may have changed meanwhile
        ls.tell(asked.text_document.uri)

    @found.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def _closed(ls: Server, asked: lsp.DidCloseTextDocumentParams) -> None:
        ls.forget(asked.text_document.uri)
        ls.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(asked.text_document.uri, []))

    @found.feature(lsp.TEXT_DOCUMENT_HOVER)
    def _hover(ls: Server, asked: lsp.HoverParams) -> lsp.Hover | None:
        looked = ls.look(asked.text_document.uri)
        places = ls.places(looked.source)
        offset = places.offset(asked.position)
        text = features.hover(looked, offset, ls.known.get(asked.text_document.uri))
        span = features.word_at(looked.source, offset)
        if text is None or span is None:
            return None
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text), places.range(span))

    @found.feature(lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=[".", "-", " "]))
    def _complete(ls: Server, asked: lsp.CompletionParams) -> lsp.CompletionList:
        looked = ls.look(asked.text_document.uri)
        places = ls.places(looked.source)
        items = [
            lsp.CompletionItem(
                label=one.text,
                kind=_ITEMS.get(one.kind, lsp.CompletionItemKind.Variable),
                detail=one.detail or None,
                text_edit=lsp.TextEdit(places.range(one.span), one.text),
            )
            for one in features.complete(looked, places.offset(asked.position))
        ]
        return lsp.CompletionList(is_incomplete=False, items=items)

    @found.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions([lsp.CodeActionKind.QuickFix]))
    def _fix(ls: Server, asked: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        uri = asked.text_document.uri
        looked = ls.look(uri)
        places = ls.places(looked.source)
        actions = []
        for diagnostic in looked.diagnostics:
            shown = ls.diagnostic(uri, looked, diagnostic)
            if not _touch(shown.range, asked.range):
                continue
            for fix in features.fixes(looked, diagnostic):
                title = f"write {fix.text.strip()}"
                edit = lsp.WorkspaceEdit({uri: [lsp.TextEdit(places.range(fix.span), fix.text)]})
                actions.append(lsp.CodeAction(title, lsp.CodeActionKind.QuickFix, [shown], edit=edit))
        return actions

    @found.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    def _format(ls: Server, asked: lsp.DocumentFormattingParams) -> list[lsp.TextEdit] | None:
        source = ls.look(asked.text_document.uri).source
        try:
            text = format_source(source)
        except SpecError:
            return None  # what is wrong is told already
        if text == source.text:
            return []
        return [lsp.TextEdit(ls.places(source).range(Span(0, len(source.text))), text)]

    @found.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def _symbols(ls: Server, asked: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        looked = ls.look(asked.text_document.uri)
        places = ls.places(looked.source)
        return [
            lsp.DocumentSymbol(
                one.name,
                _SYMBOLS.get(one.kind, lsp.SymbolKind.Variable),
                places.range(one.statement.to(one.span)),
                places.range(one.span),
                detail=one.kind,
            )
            for one in features.symbols(looked)
        ]

    @found.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def _definition(ls: Server, asked: lsp.DefinitionParams) -> lsp.Location | None:
        looked = ls.look(asked.text_document.uri)
        places = ls.places(looked.source)
        span = features.definition(looked, places.offset(asked.position))
        return None if span is None else lsp.Location(asked.text_document.uri, places.range(span))

    return found


def _touch(one: lsp.Range, other: lsp.Range) -> bool:
    """Whether two ranges have a place in common."""

    def key(position: lsp.Position) -> tuple[int, int]:
        return position.line, position.character

    return key(one.start) <= key(other.end) and key(other.start) <= key(one.end)


def serve() -> None:
    """Answers an editor on standard input and output until it says goodbye."""
    server().start_io()
