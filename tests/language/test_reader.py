from pathlib import Path

import pytest

from privspec.core.diagnostics import SpecError, UsageError
from privspec.core.render import render
from privspec.language.parser import decode_source, read_source


def test_reads(tmp_path: Path) -> None:
    path = tmp_path / "a.priv"
    path.write_bytes("\ufeffloss: ε\r\n".encode())
    source = read_source(path)
    assert source.text == "loss: ε\r\n"
    assert source.name == str(path)


@pytest.mark.parametrize(
    ("name", "code"), [("missing.priv", "PS0701"), ("", "PS0702"), ("a\0b", "PS0702"), ("x" * 300, "PS0702")]
)
def test_refuses(tmp_path: Path, name: str, code: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_source(tmp_path / name)
    assert caught.value.diagnostics[0].code == code


@pytest.mark.parametrize(
    "data", [b"a\nb\xff", "a = é".encode("latin-1"), "loss: x".encode("utf-16"), b"\xef\xbb\xbfx\xe9"]
)
def test_not_utf8(data: bytes) -> None:
    with pytest.raises(SpecError) as caught:
        decode_source("x.priv", data)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "PS0133"
    assert "x.priv:" in render(diagnostic)


def test_place_of_the_byte() -> None:
    with pytest.raises(SpecError) as caught:
        decode_source("x.priv", b"loss: a\nvariables: \xe9\n")
    assert "x.priv:2:12" in render(caught.value.diagnostics[0])
