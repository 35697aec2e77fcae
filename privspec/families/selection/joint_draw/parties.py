"""Voters and mixers who keep to the rules; each holds its own secrets and speaks through the board only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from privspec.families.selection.joint_draw.ballots import Content, mixed_length
from privspec.families.selection.joint_draw.checking import Checker
from privspec.families.selection.joint_draw.disputes import COMPLAINT, PROTEST
from privspec.families.selection.joint_draw.primitives import KEY, Sealed, nonce, seal_in_layers, unseal
from privspec.families.selection.joint_draw.report import commitment
from privspec.families.selection.joint_draw.transcript import Body, Entry, Head, Keys, signable, to_text
from privspec.noise.samplers import SystemRandomness

if TYPE_CHECKING:
    from nacl.public import PrivateKey


class Board:
    """The entries so far and what anybody can tell from them: all parties see the same."""

    def __init__(self, head: Head) -> None:
        self.head = head
        self.entries: list[Entry] = []
        self.seen = Checker(head)

    def post(self, entry: Entry) -> None:
        """Append."""
        self.entries.append(entry)
        self.seen.take(entry)

    def to_json(self) -> Body:
        """The transcript."""
        return {"head": self.head.to_json(), "entries": [entry.to_json() for entry in self.entries]}


class Party:
    """One that signs, commits to its two numbers and reveals them."""

    def __init__(self, name: str) -> None:
        from nacl.signing import SigningKey

        self.name = name
        self._signing = SigningKey.generate()
        self._numbers = (0, 0)
        self._nonce = b""

    @property
    def keys(self) -> Keys:
        """Its public keys."""
        return Keys(bytes(self._signing.verify_key))

    def post(self, board: Board, kind: str, body: Body) -> None:
        """Sign and append."""
        message = signable(board.seen.state, self.name, kind, body)
        board.post(Entry(self.name, kind, body, self._signing.sign(message).signature))

    def act(self, board: Board, kind: str) -> None:
        """Post what is due of that kind."""
        {"commit": self.commit, "reveal": self.reveal}[kind](board)

    def commit(self, board: Board) -> None:
        """To a position of the mixed list and an entry of the drawn table, both uniform."""
        system, ballots = SystemRandomness(), board.seen.lists[-1]
        self._numbers = (system.below(len(ballots)), system.below(board.head.terms.entries))
        self._nonce = nonce()
        self.post(board, "commit", self.promise(board))

    def promise(self, board: Board) -> Body:
        """The body of a commitment to its numbers."""
        found = commitment(board.head.session, self.name, *self._numbers, self._nonce)
        return {"list": board.seen.agreed.hex(), "commitment": found.hex()}

    def reveal(self, board: Board) -> None:
        """What it has committed to."""
        position, entry = self._numbers
        self.post(board, "reveal", {"position": position, "entry": entry, "nonce": self._nonce.hex()})


class Voter(Party):
    """Holds a vote; `insists` on the drawn ballot even where the proof shows its vote (though not its name)."""

    insists = False

    def __init__(self, name: str, vote: int) -> None:
        super().__init__(name)
        self._vote = vote
        self._content: Content | None = None
        self._open_layers: tuple[Sealed, ...] = ()
        self._mix_layers: tuple[Sealed, ...] = ()
        self._ballot = b""

    def act(self, board: Board, kind: str) -> None:
        """Post what is due; before a commitment, look for its own ballot in the list."""
        if kind == "ballot":
            self.cast(board)
        elif kind == "commit" and self._ballot not in board.seen.lists[-1]:
            self.complain(board)
        else:
            super().act(board, kind)

    def cast(self, board: Board) -> None:
        """A ballot in layers: the mixers peel the outer ones of all ballots, the inner ones of the drawn one only."""
        terms, mixers = board.head.terms, board.head.mixers.values()
        content = self.fill(board)
        self._open_layers = seal_in_layers(content.to_bytes(), [keys.open for keys in mixers])
        self._ballot = content.root(terms) + self._open_layers[0].box
        self._mix_layers = seal_in_layers(self._ballot, [keys.mix for keys in mixers])
        self._content = content
        self.post(board, "ballot", {"ballot": to_text(self._mix_layers[0].box)})

    def fill(self, board: Board) -> Content:
        """Its vote with a fresh share and seed."""
        return Content.fresh(board.head.terms, self._vote)

    def complain(self, board: Board) -> None:
        """Show all layers of the mix: what they hold is still sealed, and nothing of this attempt is opened."""
        self.post(board, COMPLAINT, {"keys": [layer.key.hex() for layer in self._mix_layers]})

    def protest(self, board: Board) -> None:
        """If it is its ballot that was drawn and not opened: show, without its name, the first layer opened wrongly.

        The innermost layer shows the vote: it is shown by a voter who `insists`, and otherwise nothing is.
        """
        seen = board.seen
        if not seen.opened or seen.opened[0] != self._ballot or seen.refused is None:
            return
        for number, layer in enumerate(self._open_layers[1:]):
            if number == seen.refused or seen.opened[number + 1] != layer.box:
                self._show(board, number)
                return
        if self.insists:
            self._show(board, len(self._open_layers) - 1)

    def _show(self, board: Board, number: int) -> None:
        body = {"layer": number, "key": self._open_layers[number].key.hex()}
        board.post(Entry("", PROTEST, body, b""))


class Mixer(Party):
    """Peels a layer of all ballots, and later one of the drawn ballot."""

    def __init__(self, name: str) -> None:
        from nacl.public import PrivateKey

        super().__init__(name)
        self._mix: PrivateKey = PrivateKey.generate()
        self._open: PrivateKey = PrivateKey.generate()

    @property
    def keys(self) -> Keys:
        """With those that ballots are sealed to."""
        mix, open_ = bytes(self._mix.public_key), bytes(self._open.public_key)
        return Keys(bytes(self._signing.verify_key), mix, open_)

    def act(self, board: Board, kind: str) -> None:
        """Post what is due."""
        duties = {"mix": self.mix, "peel": self.peel, "opening": self.open}
        if kind in duties:
            duties[kind](board)
        else:
            super().act(board, kind)

    def number(self, board: Board) -> int:
        """Its place among the mixers."""
        return list(board.head.mixers).index(self.name)

    def mix(self, board: Board) -> None:
        """Peel, leave out what is malformed or a copy, and post in the order of bytes, which says nothing of whose."""
        terms, number = board.head.terms, self.number(board)
        length = mixed_length(terms, terms.mixers - 1 - number)
        # two ballots with one commitment are one ballot; before the last mixer a ballot has no part that can be told
        front = KEY if number == terms.mixers - 1 else length
        kept: dict[bytes, bytes] = {}
        rejected: list[int] = []
        for place, sealed in enumerate(board.seen.before(number)):
            ballot = unseal(sealed, self._mix)
            if ballot is None or len(ballot) != length or ballot[:front] in kept:
                rejected.append(place)
            else:
                kept[ballot[:front]] = ballot
        self.pass_on(board, sorted(kept.values()), rejected)

    def pass_on(self, board: Board, ballots: Sequence[bytes], rejected: Sequence[int]) -> None:
        """Post a list."""
        self.post(board, "mix", {"ballots": [to_text(b) for b in ballots], "rejected": list(rejected)})

    def peel(self, board: Board) -> None:
        """The drawn ballot, one layer less; or that it does not open."""
        found = unseal(board.seen.sealed(self.number(board)), self._open)
        self.post(board, "peel", {"refused": True} if found is None else {"ballot": to_text(found)})

    def open(self, board: Board) -> None:
        """The drawn entry of the drawn ballot and nothing else of it; or that it is malformed."""
        seen, terms = board.seen, board.head.terms
        content = Content.from_bytes(terms, unseal(seen.sealed(self.number(board)), self._open))
        if content is None or seen.entry is None or content.root(terms) != seen.opened[0][:KEY]:
            self.post(board, "opening", {"refused": True})
        else:
            self.post(board, "opening", {"opening": content.opening(terms, seen.entry).to_json()})
