"""A closed world: JSON of which every key is known, is read, and has the form that it must have.

Whatever is read is bounded before it is built: depth, digits, exponents, sizes of arrays. All else is `Refused`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import sys
from fractions import Fraction
from math import isfinite, prod
from typing import TypeVar, dataclass_transform

from privspec.kernel.core.records import MISSING, dataclass, field, fields

DIGITS = 400
"""Most digits of a whole number, of a numerator or of a denominator."""
DEPTH = 40
"""Most objects and lists within each other."""
ENTRIES = 2**26
"""Most entries of an array."""

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(kind: type[T]) -> type[T]:
    """A class of values, of which nothing is set twice."""
    return dataclass(frozen=True, slots=True)(kind)


class Refused(Exception):  # noqa: N818 - a verdict, not an error
    """A statement does not hold, or cannot be read; the message says which."""


def parse(text: str) -> JsonNode:
    """A JSON document without doubled keys, numbers that are not finite, and figures out of proportion."""
    before = sys.get_int_max_str_digits()
    try:
        sys.set_int_max_str_digits(640)
        value = json.loads(text, object_pairs_hook=_once, parse_constant=int)  # int("NaN") is a ValueError
    except (ValueError, RecursionError) as error:
        raise Refused(f"no JSON document of this form: {str(error)[:80]}") from error
    finally:
        sys.set_int_max_str_digits(before)
    inside = [value]
    for _ in range(DEPTH):
        lists = [one.values() if isinstance(one, dict) else one for one in inside if isinstance(one, dict | list)]
        inside = [part for some in lists for part in some]
    if any(isinstance(one, dict | list) for one in inside):
        raise Refused("the document nests too deeply")
    return JsonNode(value, "plan")


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def canonical(value: object) -> str:
    """The one text of a JSON value: equal texts are equal values of equal types."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, default=repr)


@frozen
class Grid:
    """Exact numbers in row-major order: whole `entries` times `unit`; an array of one axis is one row."""

    shape: tuple[int, ...]
    unit: Fraction
    entries: tuple[int, ...]

    @property
    def rows(self) -> list[list[int]]:
        step = max((1, *self.shape[-1:]))
        return [list(self.entries[i : i + step]) for i in range(0, len(self.entries), step)]

    def values(self) -> list[Fraction]:
        return list(map({entry: entry * self.unit for entry in set(self.entries)}.__getitem__, self.entries))


@frozen
class JsonNode:
    """A value of a document with its place in it."""

    value: object
    place: str

    def wrong(self, text: str) -> Refused:
        return Refused(f"{self.place} {text}")

    def fields(self, *names: str, optional: tuple[str, ...] = ()) -> list[JsonNode]:
        """The values of an object that has just these keys, in this order; those of `optional` or null."""
        given = dict(self.entries())
        for key, item in given.items():
            if key not in names and (key not in optional or item.absent):
                raise self.wrong(f"has a key {key[:40]!r} that is not known")
        for name in names:
            if name not in given:
                raise self.wrong(f"does not have {name}")
        return [given.get(name, JsonNode(None, f"{self.place}.{name}")) for name in (*names, *optional)]

    def stating(self, known: dict[str, object], *names: str, optional: tuple[str, ...] = ()) -> list[JsonNode]:
        """The values under `names` of an object that has these keys, and says what is known under all others."""
        found = self.fields(*known, *names, optional=optional)
        for item, value in zip(found, known.values(), strict=False):
            item.same(value)
        return found[len(known) :]

    def entries(self) -> list[tuple[str, JsonNode]]:
        """The entries of an object whose keys are names of the user's."""
        if not isinstance(self.value, dict):
            raise self.wrong("is not an object")
        return [(str(key), JsonNode(value, f"{self.place}.{str(key)[:40]}")) for key, value in self.value.items()]

    def without(self, *names: str) -> dict[str, object]:
        """What an object says under all keys but some."""
        return {key: item.value for key, item in self.entries() if key not in names}

    def form(self, *known: str, tag: str = "form") -> str:
        """The `form` of an object, or what stands under another tag: one of those that are known."""
        if not isinstance(self.value, dict) or self.value.get(tag) not in known:
            raise self.wrong(f"is of a {tag} that is not known")
        return str(self.value[tag])

    @property
    def absent(self) -> bool:
        return self.value is None

    def items(self, count: int | None = None) -> list[JsonNode]:
        """The entries of a list, `count` of them where that is given."""
        if not isinstance(self.value, list):
            raise self.wrong("is not a list")
        if count is not None and len(self.value) != count:
            raise self.wrong(f"has {len(self.value)} entries in place of {count}")
        return [JsonNode(value, f"{self.place}[{i}]") for i, value in enumerate(self.value)]

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.wrong("is not a text")
        return self.value

    def one_of(self, *known: str) -> str:
        if self.text() not in known:
            raise self.wrong(f"is not known: it is none of {', '.join(known)}")
        return self.text()

    def flag(self) -> bool:
        if not isinstance(self.value, bool):
            raise self.wrong("is neither true nor false")
        return self.value

    def integer(self, low: int | None = 0, high: int | None = None) -> int:
        """A whole number between two ends."""
        found = self.value
        if not isinstance(found, int) or isinstance(found, bool):
            raise self.wrong("is not a whole number")
        if (low is not None and found < low) or (high is not None and found > high):
            raise self.wrong("is not a whole number in its range")
        return found

    def double(self) -> float:
        """A finite number as JSON writes it."""
        if not isinstance(self.value, int | float) or isinstance(self.value, bool) or not isfinite(self.value):
            raise self.wrong("is not a number")
        return float(self.value)

    def exact(self, low: int | None = None) -> Fraction:
        """An exact number: a whole number, or a text with a fraction or a decimal; never a double."""
        found = self._fraction(self.value) if isinstance(self.value, str) else Fraction(self.integer(None))
        if low is not None and found < low:
            raise self.wrong(f"is less than {low}")
        return found

    def _fraction(self, text: str) -> Fraction:
        """A fraction or a decimal, its exponent in proportion; "2^-45" is a power of two."""
        sign, most = ("^", 4096) if text.startswith("2^") else ("e", DIGITS)
        power = text.lower().partition(sign)[2]
        try:
            if len(text) > 2 * DIGITS or set(text) - set("0123456789./-+eE^") or abs(int(power or 0)) > most:
                raise ValueError(text)
            return Fraction(2) ** int(power) if sign == "^" else Fraction(text)
        except (ValueError, ZeroDivisionError) as error:
            raise self.wrong("is not an exact number") from error

    def same(self, expected: object) -> None:
        """Nothing but what is expected, of the same types."""
        if canonical(self.value) != canonical(expected):
            raise self.wrong("is not what the problem and the mechanism say")

    def extents(self, count: int | None = None) -> list[int]:
        """The shape that an array says it has, in so many dimensions: to be asked of the array then."""
        shape = self.value.get("shape") if isinstance(self.value, dict) else None
        return [extent.integer(0, ENTRIES) for extent in JsonNode(shape, f"{self.place}.shape").items(count)]

    def array(self, *shape: int) -> Grid:
        """An array of a known shape.

        Written as {"shape", "unit", "rows"} (a flat list), or {"shape", "unit", "data", "sha256"} with `data` the
        base64 of little-endian integers of 64 bits.
        """
        packed = isinstance(self.value, dict) and "data" in self.value
        keys = ("data", "sha256") if packed else ("rows",)
        unit, body, *digest = self.stating({"shape": list(shape)}, "unit", *keys)
        size, step = prod(shape), unit.exact()
        if size > ENTRIES or step <= 0:
            raise self.wrong("is too large, or has a unit that is not positive")
        return Grid(shape, step, body._unpacked(size, digest[0].text()) if packed else body._integers(size))

    def _integers(self, size: int) -> Wholes:
        whole, most = self.value, 10**DIGITS
        if isinstance(whole, list) and len(whole) == size and all(type(n) is int and abs(n) <= most for n in whole):
            return tuple(whole)
        return tuple(entry.integer(-most, most) for entry in self.items(size))  # tells which

    def _unpacked(self, size: int, digest: str) -> Wholes:
        text = self.text()
        if len(text) != 4 * -(-8 * size // 3):
            raise self.wrong("is not of the length that its shape says")
        try:
            raw = base64.b64decode(text, validate=True)
        except ValueError as error:
            raise self.wrong("is no base64") from error
        if len(raw) != 8 * size or hashlib.sha256(raw).hexdigest() != digest or base64.b64encode(raw).decode() != text:
            raise self.wrong("is damaged, or not written in one way")
        return struct.unpack(f"<{size}q", raw)


def wholes(item: JsonNode) -> Wholes:
    """An array of whole numbers."""
    found = item.array(*item.extents(1))
    if found.unit != 1:
        raise item.wrong("are not whole numbers")
    return found.entries


Wholes = tuple[int, ...]
Whole = int
Positive = int
Size = Fraction
PLAIN = {
    "JsonNode": lambda item: item,
    "Any": lambda item: item,
    "object": lambda item: item.value,
    "str": JsonNode.text,
    "int": JsonNode.integer,
    "Whole": lambda item: item.integer(None),
    "Positive": lambda item: item.integer(1),
    "bool": JsonNode.flag,
    "Fraction": JsonNode.exact,
    "Size": lambda item: item.exact(0),
    "Grid": lambda item: item.array(*item.extents()),
    "Wholes": wholes,
}
"""How a value of each type is read, by the word that annotates it; whole numbers (`int`) are 0 or more.

`Any` is read later, by rules of its own: a `JsonNode` until then, and an object of its type where it is written.

A module says under READERS how its own words are read: by a function, or by the word under each key of an object, or
of each entry of a list, that is read as a tuple; and under WORDS which words a text may be, by class and field.
"""


def typed(kind: str, item: JsonNode, home: str) -> object:
    """A value of a type as an annotation of the module `home` names it."""
    if kind.endswith(" | None"):
        return None if item.absent else typed(kind[:-7], item, home)
    if kind.startswith("tuple["):
        return tuple(typed(kind[6:-6], one, home) for one in item.items())
    if kind.startswith("dict[str, "):
        return {key: typed(kind[10:-1], one, home) for key, one in item.entries()}
    first, _, forms = kind.partition(" | ")
    if forms and first in PLAIN:  # a number, or an object in its place
        return typed(forms if isinstance(item.value, dict) else first, item, home)
    names = vars(sys.modules[home])
    reader = names.get("READERS", {}).get(kind, PLAIN.get(kind))
    if isinstance(reader, dict):
        return tuple(typed(*pair, home) for pair in zip(reader.values(), item.fields(*reader), strict=True))
    if isinstance(reader, list):
        return tuple(typed(*pair, home) for pair in zip(reader, item.items(len(reader)), strict=True))
    if reader is not None:
        return reader(item)
    known = {getattr(one, "FORM", ""): one for one in (names[name] for name in kind.split(" | "))}
    return read(known[item.form(*known) if len(known) > 1 else min(known)], item)


def read(kind: type[T], item: JsonNode, **given: object) -> T:
    """An object of a dataclass: its fields by their annotations; a default may be left out.

    Its `FORM` stands under "form", or under another `TAG`; fields that are `given` are known, and not read.
    """
    known = {*given, *getattr(kind, "GIVEN", ())}
    own = [one for one in fields(kind) if one.init and one.name not in known]  # type: ignore[arg-type]
    own.sort(key=lambda one: one.default is not MISSING)
    names, form = [one.name for one in own if one.default is MISSING], getattr(kind, "FORM", "")
    tag = [getattr(kind, "TAG", "form")] * bool(form)
    parts = item.fields(*names, *tag, optional=tuple(one.name for one in own if one.name not in names))
    if form:
        parts.pop(len(names)).one_of(form)
    words = vars(sys.modules[kind.__module__]).get("WORDS", {})
    for one, part in zip(own, parts, strict=True):
        if allowed := words.get(f"{kind.__name__}.{one.name}"):
            part.one_of(*allowed)
        left_out = part.absent and one.default is not MISSING and one.type != "JsonNode"
        given[one.name] = one.default if left_out else typed(str(one.type), part, kind.__module__)
    try:
        return kind(**given)
    except Refused as reason:
        raise item.wrong(str(reason)) from reason
