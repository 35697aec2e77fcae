"""The bulletin board, an append-only list of signed entries, each bound to all before it; and what it shows.

Anybody can check it entry by entry, and honest parties do before each step of their own. Where a party says that
another one is wrong, the keys of single layers convict one of the two.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, Self

from privspec.core.diagnostics import UsageError, VerificationError
from privspec.core.records import dataclass
from privspec.families.voting.joint_draw.terms import (
    KEY,
    SEAL,
    Content,
    Opening,
    Terms,
    coalition_ratio,
    digest,
    mixed_length,
    need_pynacl,
    shown,
    signed_by,
)
from privspec.families.voting.rules import decimal_up, log_up
from privspec.kernel.core.reading import canonical

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
    try:
        return canonical(body).encode("ascii")
    except ValueError as error:
        raise unreadable("it has a number that is not finite") from error


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


def protection(everybody: Fraction | None, one_voter: Fraction | None) -> str:
    """What a vote is protected by: e^epsilon against who sees a transcript, and against one voter (None: no bound)."""
    return (
        f"whoever sees the transcript learns of a vote what epsilon {_epsilon(everybody)} allows; a voter, who knows "
        f"whether its own ballot was drawn, {_epsilon(one_voter)}; the last mixer reads the drawn ballot, not its name"
    )


def _epsilon(ratio: Fraction | None) -> str:
    return "infinite" if ratio is None else decimal_up(log_up(ratio))


# --- checks ---------------------------------------------------------------------------------------


_MALFORMED = (KeyError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class _Stage:
    kind: str
    senders: tuple[str, ...]
    number: int = 0


class Checker:
    """The state of a board as anybody can work it out, and what is wrong with it."""

    def __init__(self, head: Head) -> None:
        self.head = head
        self.state = beginning(head)
        self.findings: list[Finding] = []
        self.lists: list[list[bytes]] = []
        self.rejected: list[int] = []
        self.agreed = b""
        self.opened: list[bytes] = []
        self.refused: int | None = None
        self.position: int | None = None
        self.entry: int | None = None
        self.winner: int | None = None
        self._ballots: dict[str, bytes] = {}
        self._commitments: dict[str, bytes] = {}
        self._sums = [0, 0]
        self._posted: set[tuple[str, str]] = set()
        self._waiting: dict[str, None] = {}
        self._mixers = tuple(head.mixers)
        everybody = (*head.voters, *head.mixers)
        self._stages = [
            _Stage("ballot", tuple(head.voters)),
            *(_Stage("mix", (name,), k) for k, name in enumerate(self._mixers)),
            _Stage("commit", everybody),
            _Stage("reveal", everybody),
            *(_Stage("peel", (name,), k) for k, name in enumerate(self._mixers[:-1])),
            _Stage("opening", (self._mixers[-1],), len(self._mixers) - 1),
        ]
        self._take: Mapping[str, Callable[[Entry, int], str | None]] = {
            "ballot": self._ballot,
            "mix": self._mix,
            "commit": self._commit,
            "reveal": self._reveal,
            "peel": self._peel,
            "opening": self._opening,
        }
        self._begin()

    @property
    def stage(self) -> str | None:
        """The kind of entries that is due; None when there is nothing more to come."""
        return self._stages[0].kind if self._stages and not self.findings and self.refused is None else None

    @property
    def due(self) -> tuple[str, tuple[str, ...]] | None:
        """The kind of entries that is due, and from whom."""
        return None if self.stage is None else (self.stage, self._stages[0].senders)

    def take(self, entry: Entry) -> None:
        head, state = self.head, self.state
        self.state = after(state, entry)
        if entry.kind == PROTEST:
            if self.position is not None:
                convicted = protest(head, self.opened, self.refused, entry.body)
                self.findings += [] if convicted is None else [convicted]
            return
        keys = head.keys(entry.sender)
        if keys is None:
            self._find(entry.sender, "is none of the parties")
        elif not signed_by(keys.sign, signable(state, entry.sender, entry.kind, entry.body), entry.signature):
            self._find(entry.sender, f"did not sign the entry of kind {entry.kind} that bears its name")
        elif (entry.sender, entry.kind) in self._posted:
            self._find(entry.sender, f"signed two entries of kind {entry.kind}")
        elif entry.kind == COMPLAINT and self.stage == "commit":
            ballot = self._ballots[entry.sender]
            self.findings.append(complaint(head, entry.sender, ballot, self.lists, entry.body))
        elif entry.kind != self.stage:
            self.close()
            self._find(entry.sender, f"posted an entry of kind {entry.kind} out of turn")
        else:
            self._expected(entry)

    def _expected(self, entry: Entry) -> None:
        stage = self._stages[0]
        if entry.sender not in stage.senders:
            self._find(entry.sender, f"posted an entry of kind {entry.kind} out of turn")
            return
        self._posted.add((entry.sender, entry.kind))
        try:
            wrong = self._take[entry.kind](entry, stage.number)
        except _MALFORMED:
            wrong = f"posted a malformed entry of kind {entry.kind}"
        if wrong is not None:
            self._find(entry.sender, wrong)
        self._waiting.pop(entry.sender, None)
        if not self._waiting and not self.findings and self.refused is None:
            self._stages.pop(0)
            self._begin()

    def close(self) -> None:
        """No more entries come: name those who are missing."""
        if self.refused is not None and not self.findings:
            who = (*self._mixers[: self.refused + 1], f"the voter of ballot {self.position} of the list")
            self.findings.append(Finding(who, "is to blame that the drawn ballot was not opened"))
        elif (kind := self.stage) is not None:
            for name in self._waiting:
                self._find(name, f"did not post its entry of kind {kind}")

    def report(self) -> Report:
        """What there is to say of a board that nothing more comes to."""
        self.close()
        names, terms = list(self._ballots), self.head.terms
        ballots = len(self.lists[-1]) if len(self.lists) == len(self._mixers) else None
        # ballots that were left out are votes that somebody knows
        out = 0 if ballots is None else terms.voters - ballots
        return Report(
            terms.alternatives[self.winner] if self.winner is not None and not self.findings else None,
            tuple(self.findings),
            tuple(names[i] for i in self.rejected),
            ballots,
            self.position,
            self.entry,
            coalition_ratio(terms, out),
            coalition_ratio(terms, out + 1) if out + 1 < terms.voters else None,
        )

    def _begin(self) -> None:
        self._waiting = dict.fromkeys(self._stages[0].senders) if self._stages else {}

    def _find(self, party: str, what: str) -> None:
        self.findings.append(Finding((party,), what))

    # --- what is wrong with an entry, if anything -------------------------------------------------

    def _ballot(self, entry: Entry, _: int) -> str | None:
        terms = self.head.terms
        ballot = from_text(entry.body["ballot"], mixed_length(terms, terms.mixers))
        if ballot in self._ballots.values():
            return "posted a copy of another's ballot"
        self._ballots[entry.sender] = ballot
        return None

    def _mix(self, entry: Entry, number: int) -> str | None:
        terms, before = self.head.terms, self.before(number)
        length = mixed_length(terms, terms.mixers - 1 - number)
        ballots = [from_text(text, length) for text in entry.body["ballots"]]
        rejected = entry.body["rejected"]
        if any(type(i) is not int or not 0 <= i < len(before) for i in rejected) or sorted(set(rejected)) != rejected:
            raise ValueError("not places of a list")
        if any(a >= b for a, b in pairwise(ballots)):
            return "posted a list that is not in order, or holds a ballot twice"
        if len(ballots) + len(rejected) != len(before) or not ballots:
            return f"posted {len(ballots)} ballots and rejected {len(rejected)} of {len(before)}"
        if number == len(self._mixers) - 1:
            if len({ballot[:KEY] for ballot in ballots}) != len(ballots):
                return "posted a list that holds a ballot twice, sealed anew"
            self.agreed = digest(b"privspec list", *ballots)
        self.lists.append(ballots)
        if number == 0:
            self.rejected = rejected
        return None

    def before(self, number: int) -> list[bytes]:
        """The list that a mixer takes up."""
        return self.lists[number - 1] if number else list(self._ballots.values())

    def _commit(self, entry: Entry, _: int) -> str | None:
        if entry.body["list"] != self.agreed.hex():
            return "agreed to a list that is not the last mixer's"
        found = bytes.fromhex(entry.body["commitment"])
        if len(found) != KEY:
            raise ValueError("another length")
        if found in self._commitments.values():
            return "copied another's commitment"
        self._commitments[entry.sender] = found
        return None

    def _reveal(self, entry: Entry, _: int) -> str | None:
        position, place, text = entry.body["position"], entry.body["entry"], entry.body["nonce"]
        bounds = (len(self.lists[-1]), self.head.terms.entries)
        if type(position) is not int or type(place) is not int or not 0 <= position < bounds[0]:
            raise ValueError("not a position")
        if not 0 <= place < bounds[1]:
            raise ValueError("not an entry of the table")
        promised = self._commitments[entry.sender]
        if commitment(self.head.session, entry.sender, position, place, bytes.fromhex(text)) != promised:
            return "revealed other numbers than it had committed to"
        self._sums = [self._sums[0] + position, self._sums[1] + place]
        if len(self._waiting) == 1:
            self.position, self.entry = self._sums[0] % bounds[0], self._sums[1] % bounds[1]
            self.opened = [self.lists[-1][self.position]]
        return None

    def sealed(self, number: int) -> bytes:
        """The drawn ballot as the mixer of that number has to open it."""
        return sealed(self.opened, number)

    def _refusal(self, entry: Entry, number: int) -> bool:
        if entry.body.get("refused") is True:
            self.refused = number
            return True
        return False

    def _peel(self, entry: Entry, number: int) -> str | None:
        if not self._refusal(entry, number):
            self.opened.append(from_text(entry.body["ballot"], len(self.sealed(number)) - SEAL))
        return None

    def _opening(self, entry: Entry, number: int) -> str | None:
        if not self._refusal(entry, number):
            opening = Opening.from_json(entry.body["opening"])
            assert self.entry is not None
            if not opening.fits(self.head.terms, self.opened[0][:KEY], self.entry):
                return "announced a winner that is not in the drawn entry of the drawn ballot"
            self.winner = opening.alternative
        return None


def verify_transcript(transcript: Any) -> Report:
    """What a transcript shows to anybody, without a key of any party.

    Raises: UsageError PS0850; VerificationError PS0855 if it is no transcript.
    """
    need_pynacl()
    if not isinstance(transcript, Mapping) or set(transcript) != {"head", "entries"}:
        raise unreadable("it has no head and entries")
    if not isinstance(transcript["entries"], list):
        raise unreadable("it has no entries")
    checker = Checker(Head.from_json(transcript["head"]))
    for place, body in enumerate(transcript["entries"], 1):
        checker.take(Entry.from_json(body, place))
        if checker.findings:
            break
    return checker.report()


# --- disputes -------------------------------------------------------------------------------------


COMPLAINT = "complaint"
"""A voter does not find its ballot in the last list, and shows the keys of all layers of the mix."""
PROTEST = "protest"
"""Whoever made the drawn ballot shows the key of one layer that was not opened, or wrongly; without a name."""


def complaint(head: Head, voter: str, ballot: bytes, lists: Sequence[Sequence[bytes]], body: Body) -> Finding:
    """Convicts the mixer that left out or replaced the voter's ballot, or the voter."""
    terms = head.terms
    try:
        keys = [bytes.fromhex(key) for key in body["keys"]]
        for number, ((name, mixer), key) in enumerate(zip(head.mixers.items(), keys, strict=True)):
            found = shown(ballot, key, mixer.mix)
            if found is None or len(found) != mixed_length(terms, terms.mixers - 1 - number):
                return Finding((voter,), "complained of a ballot that is malformed")
            if found not in lists[number]:
                return Finding((name,), f"left out or replaced the ballot of {voter}")
            ballot = found
    except (KeyError, TypeError, ValueError):
        return Finding((voter,), "complained of a ballot and does not show it")
    return Finding((voter,), "complained of a ballot that stands in the list")


def protest(head: Head, opened: Sequence[bytes], refused: int | None, body: Body) -> Finding | None:
    """Convicts the mixer that opened that layer wrongly, or said that it does not open; None if it shows nothing.

    Args: opened, the drawn ballot and what mixers say is in it, layer by layer; refused, the mixer that opened none.
    """
    names = list(head.mixers)
    try:
        number, key = body["layer"], bytes.fromhex(body["key"])
        if type(number) is not int or not 0 <= number < min(len(names), len(opened)):
            return None
        found = shown(sealed(opened, number), key, head.mixers[names[number]].open)
    except (KeyError, TypeError, ValueError):
        return None
    if found is None:
        return None
    if number == refused and (number + 1 < len(names) or _well_formed(head, found, opened[0])):
        return Finding((names[number],), "refused to open a ballot that opens")
    if number + 1 < len(opened) and found != opened[number + 1]:
        return Finding((names[number],), "opened a ballot that was not drawn")
    return None


def sealed(opened: Sequence[bytes], number: int) -> bytes:
    """The drawn ballot as the mixer of that number has to open it."""
    return opened[0][KEY:] if number == 0 else opened[number]


def _well_formed(head: Head, found: bytes, ballot: bytes) -> bool:
    content = Content.from_bytes(head.terms, found)
    return content is not None and content.root(head.terms) == ballot[:KEY]
