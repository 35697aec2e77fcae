"""`privspec lsp` as an editor meets it: a process, JSON-RPC on its standard input and output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from privspec.cli import run_command_line

pytest.importorskip("pygls", reason="the extra `editor`, which `dev` has in it, is not installed")

SPEC = """\
spec shop
\"\"\"Visits 😀 to 🏪, by hour\"\"\"
variables:
  input visits in [0, 1]^24
  output O
loss: E[ ||O - prefix_sums(visits)||^2 ]
privacy: O is 1-zCDP wrt visits, replacing one entry
"""


class Editor:
    """The editor's end of a session."""

    def __init__(self, *encodings: str) -> None:
        command = [sys.executable, "-c", "from privspec.cli import main; main()", "lsp"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ}
        )
        self.asked = 0
        self.told: list[dict[str, Any]] = []
        general = {"positionEncodings": list(encodings)} if encodings else {}
        self.capabilities = self.ask(
            "initialize", {"processId": None, "rootUri": None, "capabilities": {"general": general}}
        )["capabilities"]
        self.tell("initialized", {})

    def send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        out = self.process.stdout
        assert out is not None
        size = 0
        while line := out.readline().strip():
            name, _, value = line.partition(b":")
            size = int(value) if name.lower() == b"content-length" else size
        assert size, "the server ended"
        found: dict[str, Any] = json.loads(out.read(size))
        return found

    def tell(self, method: str, parameters: dict[str, Any]) -> None:
        self.send({"method": method, "params": parameters})

    def ask(self, method: str, parameters: dict[str, Any] | None = None) -> Any:
        self.asked += 1
        self.send({"id": self.asked, "method": method, "params": parameters or {}})
        while True:
            message = self.receive()
            if message.get("id") == self.asked and "method" not in message:
                assert "error" not in message, message
                return message["result"]
            self.told.append(message)

    def open(self, uri: str, text: str) -> list[dict[str, Any]]:
        document = {"uri": uri, "languageId": "priv", "version": 1, "text": text}
        self.tell("textDocument/didOpen", {"textDocument": document})
        return self.problems()

    def change(self, uri: str, text: str) -> list[dict[str, Any]]:
        document = {"uri": uri, "version": 2}
        self.tell("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})
        return self.problems()

    def problems(self) -> list[dict[str, Any]]:
        while True:
            message = self.receive()
            if message.get("method") == "textDocument/publishDiagnostics":
                found: list[dict[str, Any]] = message["params"]["diagnostics"]
                return found

    def at(self, method: str, uri: str, line: int, character: int) -> Any:
        place = {"textDocument": {"uri": uri}, "position": {"line": line, "character": character}}
        return self.ask(f"textDocument/{method}", place)

    def close(self) -> int:
        self.ask("shutdown")
        self.tell("exit", {})
        return self.process.wait(timeout=20)


@pytest.fixture(scope="module")
def editor() -> Iterator[Editor]:
    found = Editor()
    yield found
    assert found.close() == 0


def place(text: str, words: str, encoding: str = "utf-16-le") -> tuple[int, int]:
    """The line and the column of words, in units of two bytes."""
    before = text[: text.index(words)]
    line = before[before.rfind("\n") + 1 :]
    return before.count("\n"), len(line.encode(encoding)) // (2 if "16" in encoding else 1)


def applied(text: str, edits: list[dict[str, Any]]) -> str:
    """A text after edits that an editor makes, positions counted as UTF-16 does."""
    lines = text.split("\n")
    for edit in sorted(edits, key=lambda one: -one["range"]["start"]["line"]):
        (first, a), (last, b) = ((one["line"], one["character"]) for one in edit["range"].values())
        head = lines[first].encode("utf-16-le")[: 2 * a].decode("utf-16-le")
        tail = "\n".join([lines[last].encode("utf-16-le")[2 * b :].decode("utf-16-le"), *lines[last + 1 :]])
        lines = ("\n".join([*lines[:first], head]) + edit["newText"] + tail).split("\n")
    return "\n".join(lines)


def test_it_says_what_it_can(editor: Editor) -> None:
    can = editor.capabilities
    for one in ("hover", "completion", "codeAction", "documentFormatting", "documentSymbol", "definition"):
        assert can[f"{one}Provider"], one
    assert can["positionEncoding"] == "utf-16"
    assert can["textDocumentSync"]["change"] == 1


def test_errors_come_and_go_while_one_types(editor: Editor) -> None:
    uri = "untitled:one"
    assert editor.open(uri, SPEC) == []
    for end in range(0, len(SPEC), 9):
        editor.change(uri, SPEC[:end])
        line, column = SPEC[:end].count("\n"), len(SPEC[:end].rpartition("\n")[2].encode("utf-16-le")) // 2
        editor.at("completion", uri, line, column)
        editor.at("hover", uri, line, column)
    (found,) = editor.change(uri, SPEC.replace("prefix_sums(visits)", "prefix_sums(visit)"))
    assert found["code"] == "PS0201" and found["severity"] == 1 and found["source"] == "privspec"
    assert found["message"] == "nothing is called visit\nhelp: did you mean visits?"
    assert editor.change(uri, SPEC) == []


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_positions_are_in_utf_16_and_lines_may_end_in_crlf(editor: Editor, end: str) -> None:
    uri = f"untitled:two{len(end)}"
    text = SPEC.replace("loss: E[ ||O", 'loss: E[ ("😀😀" != O').replace("\n", end)
    editor.open(uri, text)
    text = SPEC.replace("output O", 'output O "😀🏪"  in 0..5').replace("wrt visits", "wrt visit").replace("\n", end)
    text = text.replace("privacy: O", "privacy: O  ")
    found = editor.change(uri, text)
    (wrong,) = [one for one in found if one["message"].endswith("did you mean visits?")]
    line, column = place(text, "visit,")
    assert wrong["range"] == {
        "start": {"line": line, "character": column},
        "end": {"line": line, "character": column + 5},
    }
    line, column = place(text, "in 0..5")
    said = editor.at("completion", uri, line, column + 2)
    edits = [one["textEdit"]["range"]["start"]["character"] for one in said["items"] if one["label"] == "in"]
    assert edits == [column]
    line, column = place(text, "prefix")
    shown = editor.at("hover", uri, line, column + 3)
    assert shown["range"]["start"] == {"line": line, "character": column}
    assert "running totals" in shown["contents"]["value"]


def test_columns_after_an_emoji(editor: Editor) -> None:
    text = (
        'variables:\n  input x in [0, 1]\n  output O "😀😀" in agse\nloss: E[ (O - x)^2 ]\nprivacy: O is 1-LDP wrt x\n'
    )
    found = editor.open("untitled:emoji", text)
    line, column = place(text, "agse")
    assert column == len('  output O "😀😀" in ') + 2
    assert {"line": line, "character": column} in [one["range"]["start"] for one in found]


def test_other_units_are_taken_where_an_editor_asks() -> None:
    editor = Editor("utf-8")
    assert editor.capabilities["positionEncoding"] == "utf-8"
    text = 'variables:\n  input x in [0, 1]\n  output O "😀" in agse\nloss: E[ (O - x)^2 ]\nprivacy: O is 1-LDP wrt x\n'
    found = editor.open("untitled:units", text)
    column = len('  output O "😀" in '.encode())
    assert {"line": 2, "character": column} in [one["range"]["start"] for one in found]
    assert editor.close() == 0


def test_a_fix_is_an_edit(editor: Editor) -> None:
    uri, text = "untitled:fix", SPEC.replace("wrt visits", "wrt visit")
    (wrong,) = editor.open(uri, text)
    asked = {"textDocument": {"uri": uri}, "range": wrong["range"], "context": {"diagnostics": [wrong]}}
    (action,) = editor.ask("textDocument/codeAction", asked)
    assert action["kind"] == "quickfix" and action["title"] == "write visits"
    assert applied(text, action["edit"]["changes"][uri]) == SPEC
    elsewhere = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
    assert editor.ask("textDocument/codeAction", {**asked, "range": elsewhere}) == []


def test_it_formats_and_leaves_what_is_wrong(editor: Editor) -> None:
    uri = "untitled:format"
    options = {"textDocument": {"uri": uri}, "options": {"tabSize": 2, "insertSpaces": True}}
    editor.open(uri, SPEC)
    text = applied(SPEC, editor.ask("textDocument/formatting", options))
    assert "loss:\n  E[ ||O - prefix_sums(visits)||^2 ]\n" in text
    editor.change(uri, text)
    assert editor.ask("textDocument/formatting", options) == []
    editor.change(uri, text.replace("]", "", 1))
    assert editor.ask("textDocument/formatting", options) is None


def test_names_and_where_they_are_declared(editor: Editor) -> None:
    uri = "untitled:names"
    editor.open(uri, SPEC)
    found = editor.ask("textDocument/documentSymbol", {"textDocument": {"uri": uri}})
    assert [(one["name"], one["detail"]) for one in found] == [("visits", "input"), ("O", "output")]
    line, column = place(SPEC, "visits, replacing")
    where = editor.at("definition", uri, line, column)
    assert where == {"uri": uri, "range": {"start": {"line": 3, "character": 8}, "end": {"line": 3, "character": 14}}}
    assert editor.at("definition", uri, 0, 0) is None


def test_files_beside_a_document_are_read(editor: Editor, tmp_path: Path) -> None:
    path = tmp_path / "a shop.priv"
    text = 'variables:\n  input x in [0, 1]^2\n  constant A = csv("a.csv")\n  output O\n'
    text += "loss: E[ ||O - A @ x||^2 ]\nprivacy: O is 1-DP wrt x, replacing one entry\n"
    path.write_text(text, "utf-8")
    uri = path.as_uri()
    assert editor.open(uri, text)
    tmp_path.joinpath("a.csv").write_text("1,1\n0,1\n", "utf-8")
    editor.tell("textDocument/didSave", {"textDocument": {"uri": uri}})
    assert editor.problems() == []
    editor.tell("textDocument/didClose", {"textDocument": {"uri": uri}})
    assert editor.problems() == []


def test_what_is_wrong_in_another_file_is_shown_where_it_is_named(editor: Editor, tmp_path: Path) -> None:
    part = "variables:\n  input x in [0, 1]^2\n  output O\nloss: E[ ||O - y||^2 ]\nprivacy: O is 1-DP wrt x\n"
    tmp_path.joinpath("part.priv").write_text(part, "utf-8")
    text = 'components:\n  a = spec("part.priv")\nvariables:\n  input x in [0, 1]^2\nloss: a.loss\n'
    text += "privacy: a.O is 1-DP wrt x\n"
    found = editor.open(tmp_path.joinpath("whole.priv").as_uri(), text)
    shown = [one for one in found if one["range"]["start"] == {"line": 1, "character": 11}]
    assert shown, found
    where = [info["location"]["uri"] for one in shown for info in one.get("relatedInformation", ())]
    assert tmp_path.joinpath("part.priv").as_uri() in where


def test_without_pygls_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pygls", None)
    monkeypatch.setitem(sys.modules, "pygls.lsp.server", None)
    monkeypatch.delitem(sys.modules, "privspec.editor.server", raising=False)
    assert run_command_line(["lsp"]) == 2
    told = capsys.readouterr().err
    assert "PS0733" in told and "pip install 'privspec[editor]'" in told
