"""Scripts of the examples, called as somebody would: some in this process, which has loaded what they load."""

import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Call = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """`call(script, *arguments)`: what it prints and how it ends; modules beside it are loaded for it alone."""

    def run(script: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        words, before, code = [str(script), *map(str, arguments)], set(sys.modules), 0
        capsys.readouterr()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", words)
            patch.syspath_prepend(str(script.parent))
            try:
                runpy.run_path(str(script), run_name="__main__")
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else int(end.code is not None)
                if isinstance(end.code, str):
                    print(end.code, file=sys.stderr)
            finally:
                for name in set(sys.modules) - before:
                    if str(getattr(sys.modules[name], "__file__", None)).startswith(str(script.parent)):
                        del sys.modules[name]
        return subprocess.CompletedProcess(words, code, *capsys.readouterr())

    return run
