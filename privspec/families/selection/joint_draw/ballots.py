"""A ballot: a secret table of winners, committed to entry by entry, of which one entry is opened."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Self

from privspec.families.selection.joint_draw.primitives import KEY, SEAL, nonce
from privspec.families.selection.joint_draw.terms import SHARE_BYTES, Terms
from privspec.noise.samplers import SystemRandomness

_VOTE_BYTES = 4
CONTENT = _VOTE_BYTES + SHARE_BYTES + KEY
"""Bytes of a ballot's content: all ballots are of one length."""


def mixed_length(terms: Terms, layers: int) -> int:
    """Bytes of a ballot that so many mixers have still to peel."""
    return KEY + CONTENT + SEAL * (terms.mixers + layers)


@dataclass(frozen=True, slots=True)
class Opening:
    """One entry of a ballot's table, with the proof that it stands in it."""

    alternative: int
    nonce: bytes
    path: tuple[bytes, ...]

    def to_json(self) -> dict[str, Any]:
        """Bytes in hexadecimal digits."""
        return {
            "alternative": self.alternative,
            "nonce": self.nonce.hex(),
            "path": [step.hex() for step in self.path],
        }

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> Self:
        """Raises: KeyError, TypeError, ValueError."""
        if type(body["alternative"]) is not int:
            raise TypeError("alternative")
        return cls(body["alternative"], bytes.fromhex(body["nonce"]), tuple(bytes.fromhex(x) for x in body["path"]))

    def fits(self, terms: Terms, root: bytes, entry: int) -> bool:
        """Whether the ballot with that root has this alternative in that entry."""
        if not 0 <= self.alternative < len(terms.alternatives) or len(self.nonce) != KEY:
            return False
        if len(self.path) != (terms.entries - 1).bit_length() or any(len(step) != KEY for step in self.path):
            return False
        found = _leaf(self.nonce, self.alternative)
        for step in self.path:
            found = _node(found, step) if entry % 2 == 0 else _node(step, found)
            entry //= 2
        return found == root


@dataclass(frozen=True, slots=True)
class Content:
    """What only the voter and the last mixer ever see of a ballot: the vote, the share, the seed of the nonces."""

    vote: int
    share: int
    seed: bytes

    @classmethod
    def fresh(cls, terms: Terms, vote: int) -> Self:
        """A ballot for an alternative, with the operating system's randomness."""
        return cls(vote, SystemRandomness().below(terms.shares), nonce())

    def to_bytes(self) -> bytes:
        """`CONTENT` bytes."""
        return self.vote.to_bytes(_VOTE_BYTES, "big") + self.share.to_bytes(SHARE_BYTES, "big") + self.seed

    @classmethod
    def from_bytes(cls, terms: Terms, content: bytes | None) -> Self | None:
        """None if it is no ballot under these terms."""
        if content is None or len(content) != CONTENT:
            return None
        vote = int.from_bytes(content[:_VOTE_BYTES], "big")
        share = int.from_bytes(content[_VOTE_BYTES:-KEY], "big")
        if vote >= len(terms.alternatives) or share >= terms.shares:
            return None
        return cls(vote, share, content[-KEY:])

    def root(self, terms: Terms) -> bytes:
        """The commitment to the whole table."""
        return self._levels(terms)[-1][0]

    def opening(self, terms: Terms, entry: int) -> Opening:
        """The opening of one entry."""
        levels = self._levels(terms)
        path = tuple(level[entry >> depth ^ 1] for depth, level in enumerate(levels[:-1]))
        return Opening(terms.winner(self.vote, self.share, entry), self._nonce(entry), path)

    def _nonce(self, entry: int) -> bytes:
        return blake2b(entry.to_bytes(4, "big"), digest_size=KEY, key=self.seed).digest()

    def _levels(self, terms: Terms) -> list[list[bytes]]:
        level = [_leaf(self._nonce(i), winner) for i, winner in enumerate(terms.table(self.vote, self.share))]
        level += [bytes(KEY)] * ((1 << (len(level) - 1).bit_length()) - len(level))
        levels = [level]
        while len(level) > 1:
            level = [_node(level[i], level[i + 1]) for i in range(0, len(level), 2)]
            levels.append(level)
        return levels


def _leaf(nonce: bytes, alternative: int) -> bytes:
    return blake2b(nonce + alternative.to_bytes(4, "big"), digest_size=KEY, person=b"privspec leaf").digest()


def _node(left: bytes, right: bytes) -> bytes:
    return blake2b(left + right, digest_size=KEY, person=b"privspec node").digest()
