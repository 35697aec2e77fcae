"""Arrays inside plans are read whole or refused: no cut stream, no damaged one, nothing larger than its shape."""

from __future__ import annotations

import base64
import tracemalloc
import zlib
from typing import Any

import numpy as np
import pytest

from privspec.core.matrices import pack, read_array, unpack

RAW = np.random.default_rng(3).integers(-(2**40), 2**40, 5000).astype("<i8").tobytes()


def test_packed_bytes_come_back() -> None:
    assert unpack(pack(RAW), len(RAW)) == RAW
    assert unpack(pack(b""), 0) == b""


def test_every_cut_of_the_stream_is_refused() -> None:
    stream = zlib.compress(RAW, 6)
    for cut in (*range(1, 12), len(stream) // 2, len(stream)):
        with pytest.raises(ValueError, match=r"cut off|no packed|damaged"):
            unpack(base64.b64encode(stream[:-cut]).decode(), len(RAW))


@pytest.mark.parametrize("at", [0, 1, 100, -1, -4])
def test_a_changed_byte_is_refused(at: int) -> None:
    stream = bytearray(zlib.compress(RAW, 6))
    stream[at] ^= 1
    with pytest.raises(ValueError, match="packed"):
        unpack(base64.b64encode(bytes(stream)).decode(), len(RAW))


def test_what_follows_the_stream_is_refused() -> None:
    stream = zlib.compress(RAW, 6)
    for tail in (b"\0", stream):
        with pytest.raises(ValueError, match="packed"):
            unpack(base64.b64encode(stream + tail).decode(), len(RAW))


@pytest.mark.parametrize("junk", [None, 3, b"eJw=", "?", "eJw=\n", ["eJw="], ""])
def test_junk_is_refused(junk: Any) -> None:
    with pytest.raises(ValueError, match=r".+"):
        unpack(junk, 8)


def test_a_bomb_is_refused_in_little_memory() -> None:
    bomb = pack(bytes(2**28))
    tracemalloc.start()
    for size in (800, 2**19):
        with pytest.raises(ValueError, match="packed"):
            unpack(bomb, size)
    assert tracemalloc.get_traced_memory()[1] < 2**22
    tracemalloc.stop()


@pytest.mark.parametrize(
    "data",
    [
        None,
        {"shape": [2]},
        {"shape": [2], "values": [1, 2], "packed": pack(np.ones(2).tobytes())},
        {"shape": [2], "values": ["1", "2"]},
        {"shape": [2], "values": [True, False]},
        {"shape": [2], "values": [1, 10**400]},
        {"shape": [3], "values": [1, 2]},
        {"shape": [2**40], "packed": pack(np.ones(2).tobytes())},
        {"shape": [3], "packed": pack(np.ones(2).tobytes())},
    ],
)
def test_arrays_of_another_form_are_refused(data: Any) -> None:
    assert read_array({"shape": [2], "packed": pack(np.ones(2).tobytes())}).tolist() == [1.0, 1.0]
    assert read_array({"shape": [2], "values": [1, 2]}).tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match=r".+"):
        read_array(data)
