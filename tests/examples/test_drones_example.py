"""The drones: as many rounds as fit and one that is refused, then more rounds with every drone counted."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

Done = subprocess.CompletedProcess[str]
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "voting" / "drones.py"


def test_rounds_until_the_budget_is_used_up(tmp_path: Path, call: Callable[..., Done]) -> None:
    done = subprocess.run([sys.executable, EXAMPLE, tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    text = done.stdout
    assert "11 rounds fit a budget of 2, each spends 2/11" in text
    assert len(re.findall(r"round \d+ of 11: ", text)) == 11
    assert "this would be round 12 of 11" in text
    # votes are invented from a seed; winners are not
    assert "323 of 400 drones have taken part in 11 rounds; no drone in more than 11" in text
    again = call(EXAMPLE, tmp_path)
    assert again.returncode != 0
    assert "ledger of another journey" in again.stderr
