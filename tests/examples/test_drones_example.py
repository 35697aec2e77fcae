"""The drones: as many rounds as fit and one that is refused, then more rounds with every drone counted."""

import re
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "voting" / "drones.py"


def drones(out: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, EXAMPLE, out], capture_output=True, text=True, check=False)


def test_rounds_until_the_budget_is_used_up(tmp_path: Path) -> None:
    done = drones(tmp_path)
    assert done.returncode == 0, done.stderr
    text = done.stdout
    assert "11 rounds fit a budget of 2, each spends 2/11" in text
    assert len(re.findall(r"round \d+ of 11: ", text)) == 11
    assert "this would be round 12 of 11" in text
    # votes are invented from a seed; winners are not
    assert "323 of 400 drones have taken part in 11 rounds; no drone in more than 11" in text
    again = drones(tmp_path)
    assert again.returncode != 0
    assert "ledger of another journey" in again.stderr
