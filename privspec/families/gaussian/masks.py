"""Masks of a secure sum: each pair of parties shares one, which the one adds and the other subtracts.

The shared secret of a pair is X25519 of their keys (PyNaCl); a mask is BLAKE2b of it in counter mode, modulo a power of
two. A key is for one message: two messages under the same masks would show how they differ.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, NoReturn

from privspec.core.diagnostics import UsageError
from privspec.core.files import PRIVATE, write_atomically
from privspec.core.records import dataclass
from privspec.execute.family import Keys
from privspec.execute.registry import registry_path

KEY = 32
"""Bytes of a key."""
FORMAT = "privspec-key/1.0"
WORD = 64
"""Masks are whole words of so many bits."""


@dataclass(frozen=True, slots=True)
class Pair:
    """The keys of one party: for one message, of which the secret one is known to nobody else."""

    secret: bytes
    public: bytes

    @classmethod
    def generate(cls) -> Pair:
        """Raises: UsageError PS0850 without PyNaCl."""
        return cls.of(os.urandom(KEY))

    @classmethod
    def of(cls, secret: bytes) -> Pair:
        """Raises: UsageError PS0850 without PyNaCl."""
        return cls(secret, _nacl().crypto_scalarmult_base(secret))

    def shared(self, other: bytes) -> bytes:
        """What only the two of them know.

        Raises: UsageError PS0857 for a key that is none.
        """
        try:
            found: bytes = _nacl().crypto_scalarmult(self.secret, other)
        except (RuntimeError, ValueError, TypeError):
            _refuse("a public key of the roster is no key of X25519")
        return found


def _nacl() -> Any:
    try:
        from nacl import bindings
    except ImportError as error:
        raise UsageError.of(
            "PS0850", "a secure sum needs the library PyNaCl", help="pip install 'privspec[distributed]'"
        ) from error
    return bindings


def _refuse(message: str, help_: str | None = None) -> NoReturn:
    raise UsageError.of("PS0857", message, help=help_ or "`privspec keys --party ID -o FILE` makes the keys of a party")


# --- masks ----------------------------------------------------------------------------------------


def stream(key: bytes, size: int, bits: int) -> list[int]:
    """So many numbers below 2^bits from a key: BLAKE2b of a counter, 64 bytes at a time."""
    width = bits // 8
    blocks = (
        blake2b(count.to_bytes(8, "little"), key=key, person=b"privspec mask").digest()
        for count in range(-(-size * width // 64))
    )
    raw = b"".join(blocks)
    return [int.from_bytes(raw[i * width : (i + 1) * width], "little") for i in range(size)]


@dataclass(frozen=True, slots=True)
class Roster:
    """The public keys of all parties, in order, for one message of each under one plan."""

    plan: str
    keys: tuple[bytes, ...]

    @classmethod
    def read(cls, plan: str, names: Sequence[str], files: Sequence[Path], called: str = "") -> Roster:
        """One from JSON files of public keys in hexadecimal digits by party.

        Args: called, what stands before the names of these parties where the files hold keys of others as well.

        Raises: UsageError PS0857 for files that are none, for keys that are missing, or that stand twice.
        """
        found: dict[str, bytes] = {}
        for path in files:
            for name, text in _object(path).items():
                key = _bytes(text, path)
                if found.setdefault(name, key) != key:
                    _refuse(f"the roster has two keys of party {name}")
        found = {name.removeprefix(called): key for name, key in found.items() if name.startswith(called)}
        parties = len(names)
        missing = [name for name in names if name not in found]
        if missing or len(found) > parties:
            some = ", ".join(missing[:5]) + (", .." if len(missing) > 5 else "")
            _refuse(
                f"the roster has the keys of {parties - len(missing)} of {parties} parties, those of {some} are missing"
                if missing
                else f"the roster has keys of more than the {parties} parties of this plan"
            )
        if len(set(found.values())) < parties:
            _refuse("two parties of the roster have the same key")
        return cls(plan, tuple(found[name] for name in names))

    @property
    def digest(self) -> str:
        """Of the plan and all keys: messages with another one do not add up."""
        state = blake2b(self.plan.encode(), digest_size=KEY, person=b"privspec roster")
        for key in self.keys:
            state.update(key)
        return state.hexdigest()

    def place(self, pair: Pair) -> int:
        """The number of the party with these keys, from 0.

        Raises: UsageError PS0857 if it has none.
        """
        if pair.public not in self.keys:
            _refuse("the public key of this party is not in the roster")
        return self.keys.index(pair.public)

    def masked(self, pair: Pair, values: Iterable[int], bits: int) -> list[int]:
        """What a party sends in place of values, modulo 2^bits: sums over all parties are those of the values."""
        place, found = self.place(pair), list(values)
        for number, other in enumerate(self.keys):
            if number == place:
                continue
            context = bytes.fromhex(self.digest) + min(place, number).to_bytes(8, "little")
            context += max(place, number).to_bytes(8, "little")
            key = blake2b(context, key=pair.shared(other), digest_size=KEY, person=b"privspec pair").digest()
            sign = 1 if place < number else -1
            found = [value + sign * mask for value, mask in zip(found, stream(key, len(found), bits), strict=True)]
        return [value % 2**bits for value in found]


def added(messages: Sequence[Sequence[int]], bits: int) -> list[int]:
    """The sums of what all parties sent, as numbers of either sign."""
    sums = (sum(column) % 2**bits for column in zip(*messages, strict=True))
    return [total - 2**bits if total >= 2 ** (bits - 1) else total for total in sums]


# --- files ----------------------------------------------------------------------------------------


def write_key(party: str, path: Path) -> Mapping[str, str]:
    """A new key of a party in a file that only its owner reads; what goes into the roster.

    Raises: UsageError PS0857 if the file is there already, PS0850.
    """
    if path.exists():
        _refuse(f"there is a file {path} already", "a key is for one message: take another name")
    pair = Pair.generate()
    document = {"format": FORMAT, "party": party, "secret": pair.secret.hex(), "public": pair.public.hex()}
    write_atomically(path, (json.dumps(document, indent=1) + "\n").encode(), PRIVATE)
    return {party: pair.public.hex()}


def read_key(party: str, path: Path) -> Pair:
    """The keys of a party.

    Raises: UsageError PS0857 if the file is none, of another party, or its key was used.
    """
    document = _object(path)
    if document.get("format") != FORMAT or document.get("party") != party:
        _refuse(f"{path} is no key of party {party}")
    if not document.get("secret"):
        _refuse(
            f"the key in {path} has masked a message already", "a key is for one message: make another, and a roster"
        )
    pair = Pair.of(_bytes(document["secret"], path))
    if pair.public.hex() != document.get("public"):
        _refuse(f"{path} is damaged")
    if _record(pair).exists():
        _refuse_copy(path)
    return pair


def _record(pair: Pair) -> Path:
    """What stands beside the user's registry once a key has masked a message: a copy of its file is known by that.

    A copy that another user has, or another machine, cannot be.
    """
    return (
        registry_path().parent
        / "used-keys"
        / blake2b(pair.public, digest_size=KEY, person=b"privspec used").hexdigest()
    )


def _refuse_copy(path: Path) -> NoReturn:
    _refuse(
        f"the key in {path} has masked a message already, from another copy of this file",
        "a key is for one message: two under the same masks show how they differ; make another, and a roster",
    )


def use_up(path: Path, pair: Pair) -> None:
    """Forget the secret key in a file, and in all its copies here: it masks one message, which is about to be made."""
    record = _record(pair)
    try:
        record.parent.mkdir(parents=True, exist_ok=True)
        with record.open("xb") as file:
            os.fsync(file.fileno())
    except FileExistsError:
        _refuse_copy(path)
    except OSError as error:
        _refuse(
            f"{record} cannot be written: {error.strerror}",
            "that the key is used up is kept there: let it be written to",
        )
    document = {**_object(path), "secret": ""}
    write_atomically(path, (json.dumps(document, indent=1) + "\n").encode(), PRIVATE)


def take(party: str, keys: Keys, part: str) -> Pair:
    """The keys of a party for a part of its one message: used up on disk at the first, and never given twice.

    Raises: UsageError PS0857.
    """
    if part in keys.taken:
        _refuse(f"the key in {keys.key} has masked this part of a message already")
    pair: Pair = keys.taken[next(iter(keys.taken))] if keys.taken else read_key(keys.called + party, keys.key)
    if not keys.taken:
        use_up(keys.key, pair)
    keys.taken[part] = pair
    return pair


def _object(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        _refuse(f"{path} has no keys that can be read")
    return found


def _bytes(text: object, path: Path) -> bytes:
    try:
        key = bytes.fromhex(str(text))
    except ValueError:
        key = b""
    if len(key) != KEY:
        _refuse(f"{path} has a key that is not of {KEY} bytes")
    return key
