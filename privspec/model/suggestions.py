"""What a message proposes to write is tried before it is shown: no suggestion is better than one that does not work.

A message's help reads "write X", "did you mean X?", "leave X out" or "add X". Each is an edit of the spec at the place
that the message marks. It stays only where the spec, so edited, parses and the edited line has no error any more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple, TypeAlias

from privspec.core.diagnostics import Diagnostic
from privspec.core.records import replace
from privspec.core.spans import Source, Span
from privspec.language.layout import lay_out
from privspec.language.parser import read

TRIED = 40
"""Edits of a text that are read for one message."""
EACH, CHECKED = 8, 24
"""Of those that can be read, how many are checked for one message, and for all of a text."""
WORDS = 2
"""Words and signs of a text up to which it stands for a piece of a statement."""
LONGEST = 50_000
"""Characters of a spec up to which edits are tried."""

_WORD = re.compile(r"[^\W\d²³¹][^\W²³¹]*")
_PROPOSES = re.compile(r"(?:write (?!for instance)|did you mean |leave |use |add `)")
_FORM = re.compile(r"\.\.\.|\blo\b")
"""What stands in a help that shows a form and not what to write."""
_ASKED = re.compile(r"did you mean ([^?]+)\?")
_TOLD = re.compile(r"(?:write|use|add) (.+)", re.S)
_PLACED = re.compile(r"write (.+?) in place of (.+?)(?:[:;,(]|$)")
_LEFT = re.compile(r"leave (?:the |it |them )?(.*?)[ ]?out\b")
_QUOTED = re.compile(r'"[^"\n]*"')
_TOKEN = re.compile(r"\w+|[^\w\s]")
_EXAMPLE = re.compile(r"as in (.+?)(?: or |, for |; |$)")
_ENDS = re.compile(
    r", (?:and|or|as|with|one|which|where|if|for|not)\b|,? or (?=\S)"
    r"| for | in place of | before | after | where | at the | on (?:a|the|lines)\b| \(|; |: |, |\. |$"
)
"""Where what is to be written may end in a help, and a remark on it begin."""


Diagnostics: TypeAlias = tuple[Diagnostic, ...]


class Fix(NamedTuple):
    """A piece of text in place of another."""

    span: Span
    text: str

    def applied(self, text: str) -> str:
        """The text with it."""
        return text[: self.span.start] + self.text + text[self.span.end :]


def proposes(diagnostic: Diagnostic) -> bool:
    """Whether a message says what to write in its place, and not only for instance."""
    advice = diagnostic.help
    return advice is not None and _PROPOSES.match(advice) is not None and _FORM.search(advice) is None


def proposed(source: Source, diagnostic: Diagnostic) -> Iterator[Fix]:
    """The edits that a message may mean, the likeliest first."""
    diagnostic = diagnostic.located
    span = next((one.span for one in diagnostic.labels if one.primary), None)
    if diagnostic.source is None or diagnostic.source.name != source.name or diagnostic.help is None or span is None:
        return
    if placed := _PLACED.match(diagnostic.help):
        line = source.text[: span.end + max(source.text[span.end :].find("\n"), 0)]
        yield from (
            Fix(Span(*found.span()), placed[1].strip("`"))
            for found in re.finditer(re.escape(placed[2].strip("`")), line)
            if found.end() > span.start
        )
    said = set(_WORD.findall(diagnostic.message))
    named = [match for match in _WORD.finditer(source.text, span.start, span.end) if match[0] in said]
    for text in dict.fromkeys(_texts(diagnostic.help)):
        yield Fix(span, text)
        yield from (Fix(Span(*match.span()), text) for match in named)
        yield from (Fix(place, text) for place in _wider(source, span, text))
        yield Fix(Span(span.start, span.start), f"{text} ")
        yield Fix(Span(span.end, span.end), f" {text}")
        if quoted := _QUOTED.search(source.text, span.start, span.end):
            yield Fix(Span(*quoted.span()), f'"{text}"')
    if left := _LEFT.match(diagnostic.help):
        yield Fix(span, "")
        before = source.text[: span.start].rstrip(", \t")
        yield Fix(Span(len(before), span.end), "")
        word = left[1].strip("`")
        at = source.text.find(word, span.start, span.end) if word else -1
        if at >= 0:
            yield Fix(Span(at, at + len(word)), "")
        if word == "option":  # the whole statement
            end = source.text.find("\n", span.end)
            yield Fix(Span(source.text.rfind("\n", 0, span.start) + 1, len(source.text) if end < 0 else end), "")


def _wider(source: Source, span: Span, text: str) -> Iterator[Span]:
    """Pieces of the line around a place which begin or end as a text does, or with the statement."""
    written = _TOKEN.findall(text)
    first, last = written[0], written[-1]
    start = source.text.rfind("\n", 0, span.start) + 1
    end = source.text.find("\n", span.end)
    end = len(source.text) if end < 0 else end
    comment = source.text.find("#", span.end, end)
    end = start + len(source.text[start : end if comment < 0 else comment].rstrip())
    begins = start + len(source.text[start:end]) - len(source.text[start:end].lstrip())
    tokens = list(_TOKEN.finditer(source.text, begins, end))
    starts = [match.start() for match in reversed(tokens) if match.start() < span.end and match[0] == first]
    ends = [match.end() for match in reversed(tokens) if match.end() > span.start and match[0] == last]
    # a longer text may be the whole statement; a word never is
    statement = ((begins,), (end,)) if len(written) > WORDS else ((), ())
    for left in dict.fromkeys((span.start, *starts[:3], *statement[0])):
        for right in dict.fromkeys((span.end, *ends[:3], *statement[1])):
            if (left, right) != (span.start, span.end) and left <= right:
                yield Span(left, right)
    yield Span(end, end)


def _texts(advice: str) -> Iterator[str]:
    """What a help may mean by what it says to write: quoted, or up to one of the words that go on after it."""
    if asked := _ASKED.match(advice):
        yield asked[1].strip("`")
        yield from (word.strip("`") for word in re.split(r" or |, ", asked[1]))
        return
    told = _TOLD.match(advice)
    if told is None:
        return
    if told[1].startswith("`"):
        yield told[1][1:].partition("`")[0]
        return
    if example := _EXAMPLE.search(told[1]):
        yield example[1].strip()
    ends = dict.fromkeys(match.start() for match in _ENDS.finditer(told[1]))
    yield from (told[1][:end].strip() for end in sorted(ends, reverse=True) if told[1][:end].strip())


def works(source: Source, found: Diagnostics, diagnostic: Diagnostic, fix: Fix, after: Diagnostics) -> bool:
    """Whether an edit does away with a message, and no error is left in its line or came elsewhere.

    The same slip once more, further on, is one of its own.
    """
    moved = fix.span.end - fix.span.start - len(fix.text)
    place = max((label.span.end for label in diagnostic.labels if label.primary), default=0)
    again = [one for one in after if (one.code, one.message) == (diagnostic.code, diagnostic.message)]
    starts = [min((label.span.start for label in one.labels if label.primary), default=0) for one in again]
    if any(start + moved < place for start in starts):
        return False
    before = {(one.code, one.message) for one in found}
    text = fix.applied(source.text)
    start = text.rfind("\n", 0, fix.span.start) + 1
    end = text.find("\n", fix.span.start + len(fix.text))
    line = Span(start, len(text) if end < 0 else end)
    return not any(
        label.primary and label.span.start <= line.end and label.span.end >= line.start
        for error in (one.located for one in after if one.is_error and (one.code, one.message) not in before)
        if error.source is not None and error.source.name == source.name and not _old(error, source, fix)
        for label in error.labels
    )


def _old(error: Diagnostic, source: Source, fix: Fix) -> bool:
    """Whether an error is one that the author's own words bring, which a first one only hid.

    Such words stand beside names that the rest of the spec knows, as P in `(O, P)` does where O is declared.
    """
    name = error.message.removeprefix("nothing is called ")
    if name == error.message or name not in _WORD.findall(source.text):
        return False
    here = source.position(fix.span.start)[0]
    lines = enumerate(source.text.splitlines(), 1)
    known = {word for number, line in lines if number != here for word in _WORD.findall(line)}
    return bool(known & set(_WORD.findall(fix.text)) - {name})


def vetted(source: Source, found: Diagnostics, again: Callable[[Source], Diagnostics]) -> Diagnostics:
    """The messages of a text, without those proposals that do not work when they are written.

    Args: again, checks a text whose every statement parses.
    """
    if len(source.text) > LONGEST:
        return found
    shown: list[Diagnostic] = []
    left = CHECKED
    for diagnostic in found:
        if not (diagnostic.is_error and proposes(diagnostic)):
            shown.append(diagnostic)
            continue
        helps, checks = _tried(source, found, diagnostic, again, min(left, EACH))
        left -= checks
        shown.append(diagnostic if helps else replace(diagnostic, help=_instead(source, diagnostic)))
    return tuple(shown)


def _tried(
    source: Source, found: Diagnostics, diagnostic: Diagnostic, again: Callable[[Source], Diagnostics], most: int
) -> tuple[bool, int]:
    """Whether an edit that a message may mean works, and how many texts were checked to find out."""
    checks = 0
    for fix in islice(proposed(source, diagnostic), TRIED):
        text = Source(source.name, fix.applied(source.text))
        _, unreadable = read(text)
        after = tuple(unreadable)
        if not after:
            if checks == most:
                break
            checks += 1
            after = again(text)
        if works(source, found, diagnostic, fix, after):
            return True, checks
    return False, checks


def _instead(source: Source, diagnostic: Diagnostic) -> str | None:
    """Where to read on, in place of a proposal that does not work."""
    located = diagnostic.located
    at = next((label.span.start for label in located.labels if label.primary), None)
    if at is None or located.source is None or located.source.name != source.name:
        return None
    names = [part.name for part in lay_out(source.text).sections if part.header.start <= at and part.name is not None]
    return f"`privspec help {names[-1]}` shows how such a line is written" if names else None
