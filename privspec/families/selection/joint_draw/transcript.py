"""The bulletin board, an append-only list of signed entries, each bound to all before it; and what it shows."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Self

from privspec.core.diagnostics import UsageError, VerificationError
from privspec.core.records import dataclass
from privspec.families.selection.joint_draw.terms import KEY, Terms, digest
from privspec.families.selection.rules import decimal_up, log_up
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
        return self.voters.get(name) or self.mixers.get(name)

    def to_json(self) -> Body:
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


# --- what it shows --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that voids a draw, and who did it: one of `parties`, if the transcript does not say which."""

    parties: tuple[str, ...]
    what: str

    def text(self) -> str:
        return f"{' or '.join(self.parties)} {self.what}"


@dataclass(frozen=True, slots=True)
class Anchors:
    """What a transcript was held against from outside of it: without them one process can make it all up.

    `absent`: voters whose keys were given and who take no part in the draw.
    """

    voters: bool = False
    mixers: bool = False
    session: bool = False
    absent: tuple[str, ...] = ()

    def text(self) -> str:
        if not self.voters:
            keys = "checked against keys that the transcript itself names: whoever made it could have made them up"
        elif self.mixers:
            keys = "checked against the keys given, of all voters and mixers"
        else:
            keys = "checked against the keys given, of all voters; the transcript itself names those of the mixers"
        session = "the session is the one given" if self.session else "the session is the one that the transcript names"
        absent = f"; not in this draw: {', '.join(self.absent)}" if self.absent else ""
        return f"{keys}; {session}{absent}"


@dataclass(frozen=True, slots=True)
class Report:
    """What a transcript shows.

    `winner` is an alternative where the draw is complete and sound, else None; `left_out` are voters whose ballots
    were malformed and stand in no list, `ballots` is the number of those that do. `everybody` is e^epsilon against
    who sees the transcript, `one_voter` against a voter, who also knows whether its own ballot was drawn (None: none).
    """

    winner: str | None
    findings: tuple[Finding, ...]
    left_out: tuple[str, ...]
    ballots: int | None
    position: int | None
    entry: int | None
    everybody: Fraction | None
    one_voter: Fraction | None
    anchors: Anchors = Anchors()

    @property
    def ok(self) -> bool:
        """Whether the draw is complete and sound."""
        return self.winner is not None

    @property
    def named(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(f.parties[0] for f in self.findings if len(f.parties) == 1))

    def protection(self) -> str:
        """What a vote is protected by, in one sentence."""
        return protection(self.everybody, self.one_voter)

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "winner": self.winner,
            "findings": [finding.text() for finding in self.findings],
            "left_out": list(self.left_out),
            "ballots": self.ballots,
            "position": self.position,
            "entry": self.entry,
            "epsilon": _epsilon(self.everybody),
            "epsilon_against_a_voter": _epsilon(self.one_voter),
            "keys_given": {"voters": self.anchors.voters, "mixers": self.anchors.mixers},
            "session_given": self.anchors.session,
            "not_in_this_draw": list(self.anchors.absent),
        }


def commitment(session: str, sender: str, position: int, entry: int, nonce: bytes) -> bytes:
    """To a party's two numbers; the sender's name is in it, so that a copy is of no use to another."""
    numbers = position.to_bytes(8, "big") + entry.to_bytes(8, "big")
    return digest(b"privspec commit", session.encode(), sender.encode(), numbers, nonce)


def list_digest(ballots: list[bytes]) -> bytes:
    """Of the mixed list."""
    return digest(b"privspec list", *ballots)


def protection(everybody: Fraction | None, one_voter: Fraction | None) -> str:
    """What a vote is protected by: e^epsilon against who sees a transcript, and against one voter (None: no bound)."""
    return (
        f"whoever sees the transcript learns of a vote what epsilon {_epsilon(everybody)} allows; a voter, who knows "
        f"whether its own ballot was drawn, {_epsilon(one_voter)}; the last mixer reads the drawn ballot, not its name"
    )


def _epsilon(ratio: Fraction | None) -> str:
    return "infinite" if ratio is None else decimal_up(log_up(ratio))
