"""A closed world: JSON of which every key is known, is read, and has the form that it must have.

Whatever is read is bounded before it is built: depth, digits, exponents, sizes of arrays.
"""

from __future__ import annotations

import base64
import hashlib
import json
import sys
from dataclasses import dataclass, fields
from fractions import Fraction
from math import isfinite, prod

from flint import fmpz_mat

DIGITS = 400
"""Most digits of a whole number, of a numerator or of a denominator."""
DEPTH = 40
"""Most objects and lists within each other."""
ENTRIES = 2**26
"""Most entries of an array."""


class Refused(Exception):  # noqa: N818 - a verdict, not an error
    """A statement does not hold, or cannot be read; the message says which."""


def parse(text: str) -> Item:
    """A JSON document without doubled keys, numbers that are not finite, and figures out of proportion.

    Raises: Refused.
    """
    level = deepest = 0
    inside = False
    for part in text.replace("\\\\", "").replace('\\"', "").split('"'):
        if not inside:
            for sign in part:
                if sign in "[{":
                    level += 1
                    deepest = max(deepest, level)
                elif sign in "]}":
                    level -= 1
        inside = not inside
    if deepest > DEPTH:
        raise Refused("the document nests too deeply")
    before = sys.get_int_max_str_digits()
    try:
        sys.set_int_max_str_digits(640)
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Refused(f"no JSON document of this form: {str(error)[:80]}") from error
    finally:
        sys.set_int_max_str_digits(before)
    return Item(value, "plan")


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is no number")


@dataclass(frozen=True, slots=True)
class Item:
    """A value of a document with its place in it."""

    value: object
    place: str

    def wrong(self, text: str) -> Refused:
        """Why this value is refused."""
        return Refused(f"{self.place} {text}")

    def fields(self, *names: str, optional: tuple[str, ...] = ()) -> list[Item]:
        """The values of an object that has just these keys, in this order; those of `optional` are null where absent.

        Raises: Refused for a key that is missing, and for one that is not known.
        """
        if not isinstance(self.value, dict):
            raise self.wrong("is not an object")
        for key in self.value:
            if key not in names and key not in optional:
                raise self.wrong(f"has a key {str(key)[:40]!r} that is not known")
        for name in names:
            if name not in self.value:
                raise self.wrong(f"does not have {name}")
        return [Item(self.value.get(name), f"{self.place}.{name}") for name in (*names, *optional)]

    def entries(self) -> list[tuple[str, Item]]:
        """The entries of an object whose keys are names of the user's."""
        if not isinstance(self.value, dict):
            raise self.wrong("is not an object")
        return [(str(key), Item(value, f"{self.place}.{str(key)[:40]}")) for key, value in self.value.items()]

    def form(self, *known: str) -> str:
        """The `form` of an object, one of those that are known."""
        if not isinstance(self.value, dict) or self.value.get("form") not in known:
            raise self.wrong("is of a form that is not known")
        return str(self.value["form"])

    @property
    def absent(self) -> bool:
        """Whether it is null."""
        return self.value is None

    def items(self, count: int | None = None) -> list[Item]:
        """The entries of a list, `count` of them where that is given."""
        if not isinstance(self.value, list):
            raise self.wrong("is not a list")
        if count is not None and len(self.value) != count:
            raise self.wrong(f"has {len(self.value)} entries in place of {count}")
        return [Item(value, f"{self.place}[{i}]") for i, value in enumerate(self.value)]

    def text(self) -> str:
        """A text."""
        if not isinstance(self.value, str):
            raise self.wrong("is not a text")
        return self.value

    def texts(self) -> tuple[str, ...]:
        """A list of texts."""
        return tuple(item.text() for item in self.items())

    def one_of(self, *known: str) -> str:
        """A text that is one of those that are known."""
        if self.text() not in known:
            raise self.wrong("is not known")
        return self.text()

    def extents(self, count: int) -> list[int]:
        """The shape that an array says it has, in so many dimensions: to be asked of the array then."""
        shape = self.value.get("shape") if isinstance(self.value, dict) else None
        return [extent.integer(0, ENTRIES) for extent in Item(shape, f"{self.place}.shape").items(count)]

    def flag(self) -> bool:
        """True or false."""
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
        found = _fraction(self) if isinstance(self.value, str) else Fraction(self.integer(None))
        if low is not None and found < low:
            raise self.wrong(f"is less than {low}")
        return found

    def same(self, expected: object) -> None:
        """Nothing but what is expected, of the same types.

        Raises: Refused.
        """
        if not _equal(self.value, expected):
            raise self.wrong("is not what the problem and the mechanism say")

    def array(self, *shape: int) -> tuple[list[int], Fraction]:
        """The entries of an integer array of a known shape, in order, and the value of one step.

        Written as {"shape", "unit", "rows"} (a flat list), or {"shape", "unit", "data", "sha256"} with `data` the
        base64 of little-endian integers of 64 bits.
        """
        packed = isinstance(self.value, dict) and "data" in self.value
        dims, unit, body, *rest = self.fields("shape", "unit", *(("data", "sha256") if packed else ("rows",)))
        size = prod(shape)
        dims.same(list(shape))
        if size > ENTRIES:
            raise self.wrong("is too large")
        step = unit.exact()
        if step <= 0:
            raise unit.wrong("is not positive")
        if not packed:
            return [entry.integer(-(10**DIGITS), 10**DIGITS) for entry in body.items(size)], step
        text = body.text()
        if len(text) != 4 * -(-8 * size // 3):
            raise body.wrong("is not of the length that its shape says")
        try:
            raw = base64.b64decode(text, validate=True)
        except ValueError as error:
            raise body.wrong("is no base64") from error
        if len(raw) != 8 * size or hashlib.sha256(raw).hexdigest() != rest[0].text():
            raise body.wrong("is damaged")
        if base64.b64encode(raw).decode() != text:
            raise body.wrong("is not written in one way")
        if sys.byteorder == "little":
            return memoryview(raw).cast("q").tolist(), step
        return [int.from_bytes(raw[8 * i : 8 * i + 8], "little", signed=True) for i in range(size)], step

    def matrix(self, rows: int, columns: int) -> tuple[fmpz_mat, Fraction]:
        """A matrix of whole numbers of a known shape, and the value of one step."""
        entries, unit = self.array(rows, columns)
        return fmpz_mat(rows, columns, entries), unit


@dataclass(frozen=True, slots=True)
class Grid:
    """Exact numbers in rows: whole numbers times `unit`; an array of one axis is one row."""

    rows: list[list[int]]
    unit: Fraction

    def values(self) -> list[Fraction]:
        """All numbers, row by row."""
        return [entry * self.unit for row in self.rows for entry in row]


def _grid(item: Item) -> Grid:
    dims = item.fields(*(item.value if isinstance(item.value, dict) else ("shape",)))
    place = next((one for one in dims if one.place.endswith(".shape")), item)
    shape = [n.integer(0, ENTRIES) for n in place.items()]
    flat, unit = item.array(*shape)
    step = max(1, shape[-1] if shape else 1)
    return Grid([flat[i : i + step] for i in range(0, len(flat), step)], unit)


PLAIN = {
    "object": lambda item: item.value,
    "str": Item.text,
    "int": Item.integer,
    "bool": Item.flag,
    "Fraction": Item.exact,
    "Grid": _grid,
}


def typed(kind: str, item: Item, forms: dict[str, type]) -> object:
    """A value of a type as an annotation names it: its fields are read by their annotations.

    Raises: Refused.
    """
    if kind.endswith(" | None"):
        return None if item.absent else typed(kind[:-7], item, forms)
    if kind.startswith("list["):
        return [typed(kind[5:-1], one, forms) for one in item.items()]
    if kind not in forms:
        return PLAIN[kind](item)
    own = fields(forms[kind])
    parts = item.fields(*(one.name for one in own))
    return forms[kind](*(typed(str(one.type), part, forms) for one, part in zip(own, parts, strict=True)))


def _equal(a: object, b: object) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_equal(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_equal(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)


def _short(exponent: str) -> bool:
    """Whether a decimal exponent is in proportion."""
    return len(exponent) <= 4 and exponent.lstrip("-+").isdigit() and abs(int(exponent)) <= DIGITS


def _fraction(item: Item) -> Fraction:
    """A fraction or a decimal without an exponent beyond three digits; "2^-45" is a power of two."""
    text = item.value
    if not isinstance(text, str) or not 0 < len(text) <= 2 * DIGITS or not text.isascii():
        raise item.wrong("is not an exact number")
    if text.startswith("2^"):
        exponent = text[2:]
        if not exponent.lstrip("-").isdigit() or len(exponent) > 5 or abs(int(exponent)) > 4096:
            raise item.wrong("is not a power of two")
        return Fraction(2) ** int(exponent)
    head, _, tail = text.lower().partition("e")
    if set(head) - set("0123456789./-+") or (tail and not _short(tail)):
        raise item.wrong("is not an exact number")
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError) as error:
        raise item.wrong("is not an exact number") from error
