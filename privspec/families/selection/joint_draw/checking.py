"""Checks a transcript entry by entry: anybody can do it, and honest parties do before each step of their own.

Where a party says that another one is wrong, the keys of single layers convict one of the two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from privspec.core.records import dataclass
from privspec.families.selection.joint_draw.terms import (
    KEY,
    SEAL,
    Content,
    Opening,
    coalition_ratio,
    mixed_length,
    need_pynacl,
    shown,
    signed_by,
)
from privspec.families.selection.joint_draw.transcript import (
    Body,
    Entry,
    Finding,
    Head,
    Report,
    after,
    beginning,
    commitment,
    from_text,
    list_digest,
    signable,
    unreadable,
)

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
            self.agreed = list_digest(ballots)
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
