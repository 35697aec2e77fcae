"""Pages whose commands are pasted, in order, and whose output is compared with what the page prints below each.

A block of output may leave lines out: a line `...` stands for any lines. What is drawn by chance has other numbers each
time: only its form is compared.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from textwrap import wrap

STEP = re.compile(r"```sh\n(?P<command>.*?)```(?:\n\n```text\n(?P<printed>.*?)```)?", re.S)
DRAWN = ("aggregate", "privspec run")
"""Commands whose output is a matter of chance."""
LEFT_OUT = "..."
"""A line of a page that stands for lines of output that it does not show."""


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


@contextmanager
def command_line(home: Path) -> Iterator[dict[str, str]]:
    """The variables of a shell whose `privspec` is answered by one process that has everything loaded."""
    launcher, socket = home / "bin" / "privspec", home / "s"
    launcher.parent.mkdir()
    launcher.write_text(f"#!{sys.executable} -IS\n{LAUNCHER.format(socket=str(socket))}", "utf-8")
    launcher.chmod(0o755)
    path = f"{launcher.parent}{os.pathsep}{os.environ['PATH']}"
    variables = {
        "XDG_STATE_HOME": str(home),
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
        "COLUMNS": "100",
    }
    environment = {**os.environ, "PATH": path, **variables}
    with subprocess.Popen([sys.executable, "-c", SERVER, socket], env=environment, cwd=home) as server:
        try:
            yield environment
        finally:
            server.terminate()


def timeless(found: re.Match[str]) -> str:
    """How the search ended, in lines that do not hang on how long it took."""
    words = re.sub(r"^solved in [0-9.]+ s", "solved in 0.1 s", " ".join(found[0].split()))
    return "\n".join(wrap(words, 98, subsequent_indent="  ")) + "\n\n"


def form(printed: str) -> str:
    """What is the same in every draw: the words, and not the numbers or the lengths of bars and columns."""
    words = re.sub("[█▏▎▍▌▋▊▉]+", "", re.sub(r"\b[0-9a-f]{12,16}\b", "0", printed))
    return re.sub(r" +", " ", re.sub(r"-?[0-9][0-9.,]*(e-?[0-9]+)?", "0", words)).replace(" \n", "\n")


NUMBER = re.compile(r"(?<![\w.,])[-−]?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?(?!\w)")
FEWEST = 2
"""Significant digits of a figure whose last one may be another."""


def reads_alike(now: str, known: str) -> bool:
    """Whether two texts say the same on any machine: but for the last digit of figures, which a solver may have found.

    Other arithmetic ends a search elsewhere within its tolerance, which may fall on two sides of where a figure is
    rounded. Whole numbers of up to six digits, which count something, are the same; and so is all layout where figures
    are, for a figure with a digit less moves what follows.
    """
    if now == known:
        return True
    words = [" ".join(NUMBER.sub("#", text).split()) for text in (now, known)]
    pairs = list(zip(NUMBER.findall(now), NUMBER.findall(known), strict=False))
    return words[0] == words[1] and any(a != b for a, b in pairs) and all(_near(a, b) for a, b in pairs)


def _near(now: str, known: str) -> bool:
    """Whether figures differ by one in the last digit that either of them shows, at most."""
    if now == known:
        return True
    numbers = [Decimal(one.replace(",", "").replace("−", "-")).normalize() for one in (now, known)]
    last = min(int(one.as_tuple().exponent) for one in numbers)
    digits = max(one.adjusted() - last + 1 for one in numbers)
    counts = not any(set(".e") & set(one) for one in (now, known)) and max(map(abs, numbers)) < 10**6
    return not counts and digits >= FEWEST and abs(numbers[0] - numbers[1]) <= Decimal(1).scaleb(last)


def shows(printed: str, page: str) -> bool:
    """Whether what is printed reads as what a page shows: its lines in order, with any where it leaves some out."""
    parts = [part.strip("\n").splitlines() for part in re.split(rf"^{re.escape(LEFT_OUT)}$", page, flags=re.M)]
    if len(parts) == 1:
        return reads_alike(printed, page)
    lines, at = printed.splitlines(), 0
    for number, part in enumerate(parts):
        starts = range(at, len(lines) - len(part) + 1)
        starts = starts if number else starts[:1]
        starts = starts[-1:] if part and number == len(parts) - 1 else starts
        found = next((k for k in starts if reads_alike("\n".join(lines[k : k + len(part)]), "\n".join(part))), None)
        if found is None:
            return False
        at = found + len(part)
    return True


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
        drawn = any(word in command for word in DRAWN)
        if shows(shown, before) or (drawn and shows(form(shown), form(before))):
            shown = before
        block = f"\n\n```text\n{shown}```" if shown else ""
        found += [text[at : step.start()], f"```sh\n{command}```{block}"]
        at = step.end()
    return "".join([*found, text[at:]]), len(found)
