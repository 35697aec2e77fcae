"""Sealed boxes, signatures and commitments: PyNaCl (libsodium) and BLAKE2b, nothing of our own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

from privspec.core.diagnostics import UsageError

if TYPE_CHECKING:
    from nacl.public import PrivateKey

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
