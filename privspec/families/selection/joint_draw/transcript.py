"""The bulletin board: an append-only list of signed entries, each bound to all before it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from privspec.core.diagnostics import UsageError, VerificationError
from privspec.families.selection.joint_draw.primitives import KEY, digest
from privspec.families.selection.joint_draw.terms import Terms
from privspec.problem.form import canonical

FORMAT = "privspec-joint-draw/1.0"
Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Keys:
    """Public keys of a party: of its signatures and, for a mixer, those that ballots are sealed to."""

    sign: bytes
    mix: bytes = b""
    open: bytes = b""

    def to_json(self) -> Body:
        """In hexadecimal digits."""
        return {"sign": self.sign.hex(), "mix": self.mix.hex(), "open": self.open.hex()}


@dataclass(frozen=True, slots=True)
class Head:
    """What stands before the first entry, and is part of everything that is signed."""

    session: str
    plan: str | None
    terms: Terms
    voters: Mapping[str, Keys]
    mixers: Mapping[str, Keys]

    def keys(self, name: str) -> Keys | None:
        """Those of a voter or a mixer."""
        return self.voters.get(name) or self.mixers.get(name)

    def to_json(self) -> Body:
        """The head as a transcript has it."""
        return {
            "format": FORMAT,
            "session": self.session,
            "plan_sha256": self.plan,
            "terms": self.terms.to_json(),
            "voters": {name: keys.to_json() for name, keys in self.voters.items()},
            "mixers": {name: keys.to_json() for name, keys in self.mixers.items()},
        }

    @classmethod
    def from_json(cls, body: Any) -> Self:
        """Raises: VerificationError PS0855."""
        try:
            if body["format"] != FORMAT or not isinstance(body["session"], str):
                raise ValueError("another format")
            found = cls(
                body["session"],
                body["plan_sha256"],
                Terms.from_json(body["terms"]),
                {name: _keys(keys, 0) for name, keys in body["voters"].items()},
                {name: _keys(keys, KEY) for name, keys in body["mixers"].items()},
            )
            if len(found.voters) != found.terms.voters or len(found.mixers) != found.terms.mixers:
                raise ValueError("other numbers of parties")
            everybody = [*found.voters.items(), *found.mixers.items()]
            if not all(name.isprintable() for name, _ in everybody):
                raise ValueError("names that cannot be shown")
            if len({name for name, _ in everybody}) + len({keys.sign for _, keys in everybody}) != 2 * len(everybody):
                raise ValueError("two parties with one name or key")
        except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError, UsageError) as error:
            raise unreadable("its head is damaged") from error
        return found


@dataclass(frozen=True, slots=True)
class Entry:
    """What one party posted; the signature is of everything before it as well."""

    sender: str
    kind: str
    body: Body
    signature: bytes

    def to_json(self) -> Body:
        """As a transcript has it."""
        return {"sender": self.sender, "kind": self.kind, "body": self.body, "signature": self.signature.hex()}

    @classmethod
    def from_json(cls, body: Any, place: int) -> Self:
        """Raises: VerificationError PS0855."""
        try:
            if set(body) != {"sender", "kind", "body", "signature"}:
                raise ValueError("not an entry")
            texts = [body["sender"], body["kind"], body["signature"]]
            if not all(isinstance(text, str) and text.isprintable() for text in texts) or not isinstance(
                body["body"], dict
            ):
                raise ValueError("not an entry")
            signature = bytes.fromhex(body["signature"])
            if signature.hex() != body["signature"]:
                raise ValueError("another writing of the same digits")
            return cls(body["sender"], body["kind"], body["body"], signature)
        except (KeyError, TypeError, ValueError) as error:
            raise unreadable(f"entry {place} is damaged") from error


def beginning(head: Head) -> bytes:
    """The state of the board before the first entry."""
    return digest(b"privspec head", _canonical(head.to_json()))


def after(state: bytes, entry: Entry) -> bytes:
    """The state of the board after one more entry."""
    return digest(b"privspec entry", state, _canonical(entry.to_json()))


def signable(state: bytes, sender: str, kind: str, body: Body) -> bytes:
    """What a party signs for an entry on a board in that state."""
    return digest(b"privspec signed", state, _canonical([sender, kind, body]))


def to_text(content: bytes) -> str:
    """Base 64."""
    return base64.b64encode(content).decode("ascii")


def from_text(text: Any, length: int) -> bytes:
    """Raises: ValueError if it is not what `to_text` writes for so many bytes."""
    if not isinstance(text, str):
        raise ValueError("no text")
    found = base64.b64decode(text, validate=True)
    if len(found) != length or to_text(found) != text:
        raise ValueError("another length")
    return found


def unreadable(why: str) -> VerificationError:
    """PS0855."""
    help_ = "a transcript is the .json file that `privspec run --joint-draw` writes"
    return VerificationError.of("PS0855", f"the transcript of a joint draw cannot be read: {why}", help=help_)


def _canonical(body: Any) -> bytes:
    return canonical(body).encode("ascii")


def _keys(body: Body, more: int) -> Keys:
    found = Keys(bytes.fromhex(body["sign"]), bytes.fromhex(body["mix"]), bytes.fromhex(body["open"]))
    if [len(found.sign), len(found.mix), len(found.open)] != [KEY, more, more] or found.to_json() != body:
        raise ValueError("not keys")
    return found
