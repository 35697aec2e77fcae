"""What all parties agree on before a joint draw, its exact arithmetic, and ballots: sealed tables of winners.

A ballot is a secret table of winners, committed to entry by entry, of which one entry is opened. Sealed boxes,
signatures and commitments are those of PyNaCl (libsodium) and BLAKE2b, nothing of our own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from fractions import Fraction
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Self

from privspec.core.diagnostics import UsageError
from privspec.core.records import dataclass
from privspec.noise.samplers import SystemRandomness

if TYPE_CHECKING:
    from nacl.public import PrivateKey

MOST_VOTERS = 3000
MOST_ENTRIES = 1024
"""Entries in the table of a ballot: with fewer coins than that there is one for each coin."""
SHARE_BYTES = 64
_FRACTION = re.compile(r"\d{1,400}(/\d{1,400})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Terms:
    """Alternatives, the public number of voters, the dummy votes for each alternative, the number of mixers.

    A ballot is a secret table with one winner in each of `entries` places: `winner(vote, share, entry)`. For a share
    uniform in [0, `shares`) every entry has exactly the law of the mixture: the voter's own vote with probability
    T / (T + m kappa), each alternative with kappa / (T + m kappa) beside it.
    Raises: UsageError PS0851.
    """

    alternatives: tuple[str, ...]
    voters: int
    dummies: Fraction
    mixers: int = 2

    def __post_init__(self) -> None:
        if not 2 <= self.voters <= MOST_VOTERS:
            _refuse(f"a joint draw takes 2 to {MOST_VOTERS} voters, not {self.voters}")
        if self.mixers < 2:
            _refuse("a joint draw needs two mixers at least: one alone would see whose ballot is whose")
        if not 1 <= len(self.alternatives) < 2**32 or len(set(self.alternatives)) != len(self.alternatives):
            _refuse("a joint draw needs alternatives, each of them once")
        if self.dummies < 0 or self.shares.bit_length() > 8 * SHARE_BYTES:
            _refuse("the dummy votes are not a fraction of at most a hundred digits, zero or more")

    @property
    def own(self) -> int:
        return self.voters * self.dummies.denominator

    @property
    def coins(self) -> int:
        """M: the coins of a ballot; own / M = T / (T + m kappa)."""
        return self.own + len(self.alternatives) * self.dummies.numerator

    @property
    def entries(self) -> int:
        """Places in the table of a ballot."""
        return min(self.coins, MOST_ENTRIES)

    @property
    def shares(self) -> int:
        """A voter draws its share uniformly below this."""
        return self.coins * min(self.coins, MOST_ENTRIES)

    def winner(self, vote: int, share: int, entry: int) -> int:
        """The winner that a ballot names in a place of its table (numbers of alternatives).

        The coins of the places are evenly spaced: whatever the share, each winner stands in the table as often as its
        probability says, up to one place for each run of coins that lead to it.
        """
        return self.table(vote, share, (entry,))[0]

    def table(self, vote: int, share: int, places: Sequence[int] | None = None) -> list[int]:
        """`winner` for many places, by default for all of them."""
        own, coins, shares, entries, each = self.own, self.coins, self.shares, self.entries, self.dummies.numerator
        places = range(entries) if places is None else places
        found = [(share + place * coins) % shares // entries for place in places]
        return [vote if coin < own else (coin - own) // each for coin in found]

    def law(self, votes: Sequence[int]) -> tuple[Fraction, ...]:
        """(N_a + kappa) / (T + m kappa), in the order of the alternatives."""
        total = self.voters + len(self.alternatives) * self.dummies
        return tuple((votes.count(a) + self.dummies) / total for a in range(len(self.alternatives)))

    def without(self, voters: int, mixers: int) -> Self:
        """The terms for what is left when some parties are shut out."""
        return type(self)(self.alternatives, self.voters - voters, self.dummies, self.mixers - mixers)

    def to_json(self) -> dict[str, Any]:
        """As the head of a transcript holds them."""
        return {
            "alternatives": list(self.alternatives),
            "voters": self.voters,
            "dummy_votes": str(self.dummies),
            "mixers": self.mixers,
        }

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> Self:
        """Raises: KeyError, TypeError, ValueError, UsageError PS0851."""
        names = tuple(body["alternatives"])
        if not all(isinstance(name, str) for name in names) or not _FRACTION.fullmatch(body["dummy_votes"]):
            raise ValueError("not terms")
        for key in ("voters", "mixers"):
            if type(body[key]) is not int:
                raise TypeError(key)
        return cls(names, body["voters"], Fraction(body["dummy_votes"]), body["mixers"])


def coalition_ratio(terms: Terms, coalition: int) -> Fraction | None:
    """e^epsilon against `coalition` voters who tell each other that none of theirs was drawn (None: no bound).

    The largest ratio of probabilities of what they see, when one other voter votes otherwise: 1 + T / ((T - c) kappa).
    """
    if not 0 <= coalition < terms.voters:
        raise ValueError("somebody has to stand outside the coalition")
    if not terms.dummies:
        return None
    return 1 + Fraction(terms.voters, terms.voters - coalition) / terms.dummies


def _refuse(message: str) -> None:
    raise UsageError.of("PS0851", message)


# --- boxes and signatures -------------------------------------------------------------------------


KEY = 32
SEAL = 48
"""Bytes that a sealed box is longer than what is in it."""


def need_pynacl() -> None:
    """Raises: UsageError PS0850 where PyNaCl is not installed."""
    try:
        import nacl.public
        import nacl.signing  # noqa: F401
    except ImportError as error:
        raise UsageError.of(
            "PS0850", "a joint draw needs the library PyNaCl", help="pip install 'privspec[distributed]'"
        ) from error


def digest(purpose: bytes, *parts: bytes) -> bytes:
    """BLAKE2b of the parts with their lengths (32 bytes); another function for each purpose (at most 16 bytes)."""
    state = blake2b(digest_size=KEY, person=purpose)
    for part in parts:
        state.update(len(part).to_bytes(8, "big") + part)
    return state.digest()


def nonce() -> bytes:
    """32 bytes of the operating system."""
    return os.urandom(KEY)


@dataclass(frozen=True, slots=True)
class Sealed:
    """A sealed box, and the key of its sender, which shows anybody what is in it."""

    box: bytes
    key: bytes


def seal(content: bytes, to: bytes) -> Sealed:
    """What libsodium's crypto_box_seal makes, except that the sender keeps the key that opens it for a dispute."""
    from nacl.public import Box, PrivateKey, PublicKey

    once = PrivateKey.generate()
    front = bytes(once.public_key)
    box = Box(once, PublicKey(to)).encrypt(content, _seal_nonce(front, to))
    return Sealed(front + box.ciphertext, bytes(once))


def seal_in_layers(content: bytes, to: Sequence[bytes]) -> tuple[Sealed, ...]:
    """The outermost layer first, for the first key."""
    layers: list[Sealed] = []
    for key in reversed(to):
        layers.insert(0, seal(layers[0].box if layers else content, key))
    return tuple(layers)


def unseal(box: bytes, key: PrivateKey) -> bytes | None:
    """What is in a sealed box, for the one it is meant for; None if it does not open."""
    from nacl.exceptions import CryptoError
    from nacl.public import SealedBox

    try:
        return SealedBox(key).decrypt(box)
    except (CryptoError, ValueError, TypeError):
        return None


def shown(box: bytes, key: bytes, to: bytes) -> bytes | None:
    """What is in a sealed box, for anybody, by the key of its sender; None if that is not its key."""
    from nacl.exceptions import CryptoError
    from nacl.public import Box, PrivateKey, PublicKey

    try:
        once = PrivateKey(key)
        front = bytes(once.public_key)
        if box[:KEY] != front:
            return None
        return Box(once, PublicKey(to)).decrypt(box[KEY:], _seal_nonce(front, to))
    except (CryptoError, ValueError, TypeError):
        return None


def signed_by(key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether it is the Ed25519 signature of the owner of that key."""
    from nacl.exceptions import CryptoError
    from nacl.signing import VerifyKey

    try:
        VerifyKey(key).verify(message, signature)
    except (CryptoError, ValueError, TypeError):
        return False
    return True


def _seal_nonce(front: bytes, to: bytes) -> bytes:
    return blake2b(front + to, digest_size=24).digest()


# --- ballots --------------------------------------------------------------------------------------


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
        return {"alternative": self.alternative, "nonce": self.nonce.hex(), "path": [step.hex() for step in self.path]}

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
        return self._levels(terms)[-1][0]

    def opening(self, terms: Terms, entry: int) -> Opening:
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
