"""A headless Chromium, driven over its debugging pipe: pages are loaded, measured, typed into and printed."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe")
WAIT = 60.0
"""Seconds that one answer of the browser may take."""


def program() -> str | None:
    """The path of a Chromium; None where there is none."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


def axe_script(folder: Path) -> str | None:
    """axe-core's text: the file that PRIVSPEC_AXE names, else fetched by npm into the folder; None where neither."""
    if named := os.environ.get("PRIVSPEC_AXE"):
        return Path(named).read_text(encoding="utf-8")
    if shutil.which("npm") is None:
        return None
    fetched = subprocess.run(
        ["npm", "pack", "--silent", "axe-core"], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    packed = next(folder.glob("axe-core-*.tgz"), None)
    if fetched.returncode or packed is None:
        return None
    with tarfile.open(packed) as archive:
        member = archive.extractfile("package/axe.min.js")
        return None if member is None else member.read().decode("utf-8")


@dataclass
class Browser:
    """One page of a running Chromium; `heard` are the errors that its console printed since the last `open`."""

    send: Callable[[bytes], None]
    receive: Callable[[], dict[str, Any]]
    session: str = ""
    heard: list[str] = field(default_factory=list)
    _count: int = 0
    _events: list[str] = field(default_factory=list)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The result of one command of the protocol.

        Raises: RuntimeError if the browser refuses it.
        """
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.send(json.dumps(message).encode() + b"\0")
        while (answer := self.receive()).get("id") != self._count:
            self._hear(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        result: dict[str, Any] = answer["result"]
        return result

    def _hear(self, event: dict[str, Any]) -> None:
        method, told = event.get("method", ""), event.get("params", {})
        self._events.append(method)
        if method == "Runtime.exceptionThrown":
            self.heard.append(told["exceptionDetails"]["text"])
        if method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
            self.heard.append(" ".join(str(a.get("value", a.get("description"))) for a in told["args"]))
        if method == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.heard.append(f"{told['entry']['text']} {told['entry'].get('url', '')}")

    def open(self, page: Path, width: int = 1200, *, dark: bool = False) -> None:
        """Load a file at that width in pixels."""
        self.heard.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self._events.clear()
        self.call("Page.navigate", url=page.as_uri())
        while "Page.loadEventFired" not in self._events:
            self._hear(self.receive())

    def run(self, script: str) -> Any:
        """The value of an expression, or of the promise that it gives."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(str(found["exceptionDetails"]))
        return found["result"].get("value")

    def press(self, key: str, code: int, text: str = "") -> None:
        """Press and release a key, which writes this text."""
        for kind in ("keyDown" if text else "rawKeyDown", "keyUp"):
            more = {"text": text} if text and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **more)

    def pdf(self) -> bytes:
        """The page printed on A4."""
        printed = self.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69, printBackground=False)
        return base64.b64decode(printed["data"])

    def picture(self) -> bytes:
        """The whole page as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"])


@contextmanager
def chromium(path: str, profile: Path) -> Iterator[Browser]:
    """A browser with one empty page."""
    down, commands = os.pipe()
    answers, up = os.pipe()

    def wire() -> None:
        os.dup2(down, 103)
        os.dup2(up, 104)
        os.dup2(103, 3)
        os.dup2(104, 4)

    process = subprocess.Popen(
        [path, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
        preexec_fn=wire,
        close_fds=False,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(down)
    os.close(up)
    with os.fdopen(commands, "wb", buffering=0) as out, os.fdopen(answers, "rb") as back:
        waiting = _messages(back)
        browser = Browser(out.write, lambda: next(waiting))
        try:
            target = browser.call("Target.createTarget", url="about:blank")["targetId"]
            session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            browser.session = session
            for domain in ("Page", "Runtime", "Log"):
                browser.call(f"{domain}.enable")
            yield browser
            browser.session = ""
            browser.call("Browser.close")
        finally:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def _messages(pipe: Any) -> Iterator[dict[str, Any]]:
    rest = b""
    while chunk := pipe.read1(1 << 20):
        *whole, rest = (rest + chunk).split(b"\0")
        for message in whole:
            yield json.loads(message)
    raise RuntimeError("the browser is gone")
