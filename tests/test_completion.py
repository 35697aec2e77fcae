"""Completion in a shell, as `privspec --help` says that it is switched on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from privspec.cli import CODES

ASK = """
eval "$({switched})"
COMP_WORDS=({words}); COMP_CWORD={at}
_privspec_completion privspec
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("privspec so", ["solve"]),
        ("privspec solve --ti", ["--time-limit"]),
        ("privspec ledger in", ["init"]),
        ("privspec explain a.plan.json --for a", ["auditor"]),
        ("privspec solve pre", ["prefix_sums", "press_and_auditors"]),
        ("privspec templates geo", ["geo_indistinguishability"]),
        ("privspec help prefix", ["prefix_sums", "prefix_matrix"]),
    ],
)
def test_bash_completes_commands_options_and_what_they_take(words: str, offered: list[str], tmp_path: Path) -> None:
    launcher = tmp_path / "privspec"
    launcher.write_text(f"#!{sys.executable}\nfrom privspec.cli import main\nmain()\n", "utf-8")
    launcher.chmod(0o755)
    found = re.search(r'eval "\$\((_PRIVSPEC_COMPLETE=bash_source privspec)\)"', CODES)
    assert found is not None
    script = ASK.format(switched=found[1], words=words, at=len(words.split()) - 1)
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", script], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == offered
