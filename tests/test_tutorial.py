"""The tutorial that ships: each of its commands, pasted in order, does what the page says that it printed.

`pytest tests/test_tutorial.py --accept` writes what is printed now into the page. What is drawn by chance has other
numbers each time: only its form is compared, and it is written anew where that has changed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import wrap

from privspec.manual import TUTORIAL, page

STEP = re.compile(r"```sh\n(?P<command>.*?)```(?:\n\n```text\n(?P<printed>.*?)```)?", re.S)
DRAWN = ("aggregate", "privspec run")
"""Commands whose output is a matter of chance."""


SERVER = """
import os, signal, socket, sys
from privspec import load
from privspec.cli import main
os.chdir(os.path.dirname(sys.argv[1]))
plan = load("counting_query").solve(n=4)
[plan.explain(reader, "html") for reader in ("public", "auditor", "engineer")]
with socket.socket(socket.AF_UNIX) as place:
    place.bind("s.new")
    place.listen(64)
    os.rename("s.new", "s")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        call, _ = place.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            said, files, *_ = socket.recv_fds(call, 2**20, 3)
            here, *words = said.decode().split(chr(0))
            os.chdir(here)
            for number, file in enumerate(files):
                os.dup2(file, number)
            sys.argv, code = ["privspec", *words], 0
            try:
                main()
            except SystemExit as end:
                code = end.code or 0
            sys.stdout.flush()
            sys.stderr.flush()
            call.send(bytes([code]))
            os._exit(0)
        call.close()
"""
"""The command line with all that it loads: each command is a process of its own, which nothing is loaded for again."""
LAUNCHER = """
import os, socket, sys, time
while not os.path.exists("{socket}"):
    time.sleep(0.05)
with socket.socket(socket.AF_UNIX) as call:
    call.connect("{socket}")
    socket.send_fds(call, [chr(0).join([os.getcwd(), *sys.argv[1:]]).encode()], [0, 1, 2])
    sys.exit((call.recv(1) or b"1")[0])
"""
"""What `privspec` is on the path: it hands its words and files to the server."""


def timeless(found: re.Match[str]) -> str:
    """How the search ended, in lines that do not hang on how long it took."""
    words = re.sub(r"^solved in [0-9.]+ s", "solved in 0.1 s", " ".join(found[0].split()))
    return "\n".join(wrap(words, 98, subsequent_indent="  ")) + "\n\n"


def form(printed: str) -> str:
    """What is the same in every draw: the words, and not the numbers or the lengths of bars and columns."""
    words = re.sub("[█▏▎▍▌▋▊▉]+", "", re.sub(r"\b[0-9a-f]{16}\b", "0", printed))
    return re.sub(r" +", " ", re.sub(r"-?[0-9][0-9.,]*(e-?[0-9]+)?", "0", words)).replace(" \n", "\n")


def test_every_command_works_as_printed(tmp_path: Path, request: object) -> None:
    text = page(*TUTORIAL)
    launcher, socket = tmp_path / "bin" / "privspec", tmp_path / "s"
    launcher.parent.mkdir()
    launcher.write_text(f"#!{sys.executable} -IS\n{LAUNCHER.format(socket=str(socket))}", "utf-8")
    launcher.chmod(0o755)
    folder = tmp_path / "work"
    folder.mkdir()
    path = f"{launcher.parent}{os.pathsep}{os.environ['PATH']}"
    home = {
        "XDG_STATE_HOME": str(tmp_path),
        "HOME": str(tmp_path),
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
        "COLUMNS": "100",
    }
    environment = {**os.environ, "PATH": path, **home}
    with subprocess.Popen([sys.executable, "-c", SERVER, socket], env=environment, cwd=tmp_path) as server:
        try:
            now, steps = pasted(text, folder, environment)
        finally:
            server.terminate()
    if request.config.getoption("--accept"):  # type: ignore[attr-defined]
        Path(__file__).parents[1].joinpath("privspec", *TUTORIAL[0].split("."), TUTORIAL[1]).write_text(now, "utf-8")
        return
    assert now.splitlines() == text.splitlines()
    assert steps >= 20


def pasted(text: str, folder: Path, environment: dict[str, str]) -> tuple[str, int]:
    """The page with what its commands print now, and how many there are of text and steps."""
    found, at = [], 0
    for step in STEP.finditer(text):
        command = step["command"]
        done = subprocess.run(
            ["bash", "-e", "-c", f"exec 2>&1\n{command}"],
            cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stdout}"
        shown = re.sub(r"^solved in [0-9.]+ s.*?\n\n", timeless, done.stdout, flags=re.M | re.S)
        before = step["printed"] or ""
        if any(word in command for word in DRAWN) and form(shown) == form(before):
            shown = before
        block = f"\n\n```text\n{shown}```" if shown else ""
        found += [text[at : step.start()], f"```sh\n{command}```{block}"]
        at = step.end()
    return "".join([*found, text[at:]]), len(found)
