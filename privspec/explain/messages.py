"""The sentences of the pages: they stand in message files, which an editor can read; code chooses keys and figures.

A file of the folder messages/ is a page in TOML. A sentence has a key, its status, what it rests on, and where it is
not always said a condition:

    [public.listed]
    proved = "A {key} is listed only if enough records have it."
    by = ["note unknown-keys", "{context.loss_because}"]
    if = "block.counts and not averaged"

`besides = true` adds to a sentence on errors what moves figures besides chance. `each = "inputs"` says it once for each
thing of a list, which the texts call `each`. A key with a text alone is a phrase: a label, or a row of a table that is
named by its key or by `label`. A name in braces is a value of the mechanism or of the plan's facts, or is given by the
code; `{averaged:on average|at worst}` is the first text where the value is one or is true, else the second. A
condition asks whether values are true, or whether `norm is l2`. No file holds a number: all are formatted here.

A closed world: what is not known here is refused when a file is read, and what a text names must be given, no more.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from importlib.resources import files
from typing import Any, TypeAlias

from privspec.core.records import dataclass
from privspec.explain.document import (
    Because,
    Block,
    Judged,
    Note,
    Plot,
    Section,
    Sentence,
    SpecLine,
    Status,
    Table,
    sections,
    table,
)
from privspec.explain.quantities import Quantity, count, exact
from privspec.model.reports import listing

STATUSES = {status.name.lower(): status for status in Status}
PHRASE = "text"
_FIELDS = {PHRASE, "by", "if", "besides", "each", "label", *STATUSES}
Things: TypeAlias = tuple[object, ...]
"""What names are found in, the first of these that has one."""
_HOLE = re.compile(r"\{([a-z_][\w.]*)(?::([^{}|]*)\|([^{}|]*))?\}")
_SOURCES: Mapping[str, type[Note] | type[Judged]] = {"note": Note, "claim": Judged}


class MessageError(Exception):
    """A message file, or what is given to a message of it, is not as it must be: an error of this software."""


@dataclass(frozen=True, slots=True)
class Message:
    """A sentence or, without a status, a phrase; `by` are its sources and `only_if` its condition, as written.

    `each` names a list for each thing of which it is said, `label` what a row is called that its key cannot name.
    """

    key: str
    text: str
    status: Status | None = None
    by: tuple[str, ...] = ()
    only_if: str = ""
    besides: bool = False
    each: str = ""
    label: str = ""

    @property
    def names(self) -> frozenset[str]:
        """The values that its text, its sources and its condition name, without what is taken of them."""
        written = [hole[1] for part in (self.text, self.label, *self.by) for hole in _HOLE.finditer(part)]
        asked = [one.removeprefix("not ").partition(" is ")[0] for one in self.only_if.split(" and ") if one]
        found = frozenset(path.partition(".")[0] for path in (*written, *asked))
        return (found - {"each"}) | {self.each.partition(".")[0]} if self.each else found


def read(name: str, text: str) -> dict[str, tuple[Message, ...]]:
    """The messages of a file by section, in order.

    Raises: MessageError for what is not known here.
    """
    found = {}
    for section, entries in tomllib.loads(text).items():
        if not isinstance(entries, dict):
            raise MessageError(f"{name}: {section} stands in no section")
        found[section] = tuple(_message(f"{name}.{section}.{key}", entry) for key, entry in entries.items())
    return found


def _message(key: str, entry: Any) -> Message:
    if isinstance(entry, str):
        entry = {PHRASE: entry}
    if not isinstance(entry, dict):
        raise MessageError(f"{key} is no text")
    kinds = [kind for kind in (PHRASE, *STATUSES) if kind in entry]
    if len(kinds) != 1 or entry.keys() - _FIELDS:
        raise MessageError(f"{key} has {sorted(entry)}: one status, and besides it no more than by, if and besides")
    (kind,) = kinds
    sources = tuple(entry.get("by", ()))
    if (kind == PHRASE) == bool(sources):
        raise MessageError(f"{key}: a sentence rests on something, and a phrase on nothing")
    more = entry.get("if", ""), entry.get("besides", False), entry.get("each", ""), entry.get("label", "")
    found = Message(key, entry[kind], STATUSES.get(kind), sources, *more)
    if {"{", "}"} & set(_HOLE.sub("", "".join((found.text, found.label, *sources)))):
        raise MessageError(f"{key}: braces without a name")
    return found


@lru_cache(maxsize=64)
def messages(name: str) -> dict[str, tuple[Message, ...]]:
    """The messages of a file of the package, by section."""
    return read(name, files("privspec.explain").joinpath(f"messages/{name}.toml").read_text("utf-8"))


def source(text: str) -> Because:
    """A source as files name it: "note sums", "claim loss"."""
    kind, _, name = text.partition(" ")
    if kind not in _SOURCES:
        raise MessageError(f"{text!r} is no source")
    return _SOURCES[kind](name)


def shown(value: object) -> str:
    """Any value as it is printed, exactly or as it was rounded by whoever knows in which direction."""
    match value:
        case bool() | float() | None:
            raise MessageError(f"{value!r} is not to be printed")
        case int():
            return count(value).text
        case Fraction():
            return exact(value).text
        case tuple() | list():
            return listing(map(shown, value))
    return str(value)


def _single(value: object) -> bool:
    """Whether a value is one, or is true."""
    match value:
        case bool() | str() | None:
            return bool(value)
        case int() | Fraction():
            return value == 1
        case Quantity():
            return value.text == "1"
        case tuple() | list() | frozenset():
            return len(value) == 1
    return True


def _value(path: str, of: Things) -> Any:
    """The value of a name: of the first of these things that has it."""
    first, *parts = path.split(".")
    for thing in of:
        found = thing.get(first, _value) if isinstance(thing, Mapping) else getattr(thing, first, _value)
        if found is not _value:
            for part in parts:
                found = getattr(found, part)
            return found
    raise MessageError(f"nothing is called {path}")


def _holds(condition: str, of: Things) -> bool:
    for one in condition.split(" and ") if condition else ():
        path, asked, word = one.removeprefix("not ").partition(" is ")
        value = _value(path, of)
        if (str(value) == word if asked else bool(value)) == one.startswith("not "):
            return False
    return True


def _text(text: str, of: Things) -> str:
    def filled(hole: re.Match[str]) -> str:
        value = _value(hole[1], of)
        return shown(value) if hole[2] is None else hole[2] if _single(value) else hole[3]

    return _HOLE.sub(filled, text)


def _because(sources: tuple[str, ...], of: Things) -> Iterator[Because]:
    for one in sources:
        hole = _HOLE.fullmatch(one)
        found = source(one) if hole is None else _value(hole[1], of)
        if isinstance(found, Note | Judged | SpecLine):
            yield found
        else:
            yield from found


def _sentence(message: Message, of: Things) -> Sentence:
    if message.status is None:
        raise MessageError(f"{message.key} has no status")
    return Sentence(_text(message.text, of), message.status, tuple(_because(message.by, of)))


def _checked(found: tuple[Message, ...], given: Mapping[str, object]) -> None:
    """What is given is named."""
    if unknown := given.keys() - frozenset[str]().union(*(one.names for one in found)):
        raise MessageError(f"{found[0].key} has no use for {sorted(unknown)}")


def section(key: str) -> tuple[Message, ...]:
    """The messages of a section: "keys.public"."""
    name, _, rest = key.partition(".")
    return messages(name).get(rest, ())


def message(key: str) -> Message:
    """One message: "keys.public.listed"."""
    if not known(key):
        raise MessageError(f"there is no message {key}")
    return next(one for one in section(key.rpartition(".")[0]) if one.key == key)


def known(key: str) -> bool:
    """Whether there is such a message."""
    return any(one.key == key for one in section(key.rpartition(".")[0]))


def said(key: str, *of: object, **given: object) -> Iterator[tuple[Message, Sentence]]:
    """The sentences of a section whose conditions hold, each with its message.

    Args: of, things whose attributes are values; given, further values, every one of which is named in the section.
    """
    for one, things in _chosen(key, of, given):
        yield one, _sentence(one, things)


def _chosen(key: str, of: Things, given: Mapping[str, object]) -> Iterator[tuple[Message, Things]]:
    """The messages of a section whose conditions hold, with what their names are found in."""
    found = section(key)
    _checked(found, given)
    for one in found:
        things: Things = (given, *of)
        every = [({"each": each}, *things) for each in _value(one.each, things)] if one.each else [things]
        yield from ((one, things) for things in every if _holds(one.only_if, things))


def sentences(key: str, *of: object, **given: object) -> tuple[Sentence, ...]:
    """The same without the messages."""
    return tuple(sentence for _, sentence in said(key, *of, **given))


def say(key: str, *of: object, **given: object) -> Sentence:
    """One sentence."""
    found = message(key)
    _checked((found,), given)
    return _sentence(found, (given, *of))


def phrase(key: str, *of: object, **given: object) -> str:
    """One phrase, or the text of a sentence."""
    found = message(key)
    _checked((found,), given)
    return _text(found.text, (given, *of))


def phrases(key: str, *of: object, **given: object) -> list[tuple[str, str]]:
    """The phrases of a section whose conditions hold, each with its own key."""
    return [
        (_text(one.label, things) or one.key.removeprefix(f"{key}."), _text(one.text, things))
        for one, things in _chosen(key, of, given)
    ]


def tabled(key: str, rows: Iterable[Any], more: Iterable[str] = (), **given: object) -> Table:
    """A table whose caption and columns are phrases of a section: "caption", and "columns" divided by bars.

    A column of figures is marked "#". Where the section has a "row", rows are things, and it names the values that
    their cells are; "none" is what the first cell says where there are none. Further columns are `more`.
    """
    titles = [*phrase(f"{key}.columns", given).split(" | "), *more]
    if known(f"{key}.row"):
        paths = message(f"{key}.row").text.split(" | ")
        rows = [[_value(path, (thing,)) for path in paths] for thing in rows]
        if not rows and known(f"{key}.none"):
            rows = [(phrase(f"{key}.none"), *[None] * (len(titles) - 1))]
    numeric = (place for place, title in enumerate(titles) if title.startswith("#"))
    return table(phrase(f"{key}.caption", given), [title.removeprefix("#") for title in titles], rows, *numeric)


def plotted(
    key: str,
    draw: Callable[[], str],
    rows: Iterable[Any],
    name: str = "",
    more: Iterable[str] = (),
    **given: object,
) -> Plot:
    """A picture with the words of a section: "alt", what stands "below", and those of the table of its numbers.

    Args: name, if it is not that of the section; more columns.
    """
    twin = tabled(key, rows, more, **given)
    return Plot(name or key.rpartition(".")[2], draw, phrase(f"{key}.alt", given), phrase(f"{key}.below", given), twin)


def titled(key: str, **blocks: Iterable[Block | None]) -> Iterator[Section]:
    """Sections that have something to show, under headings that are phrases of a section, by their names."""
    return sections(*((phrase(f"{key}.{name}"), shown) for name, shown in blocks.items()))
