"""What a process can still have of memory, by files as the kernel writes them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from privspec.core import machine
from privspec.core.diagnostics import SolveError
from privspec.core.machine import at_most


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with 8 GB free and no limits."""
    monkeypatch.setattr(machine, "_MACHINE", tmp_path / "meminfo")
    monkeypatch.setattr(machine, "_PROCESS", tmp_path)
    monkeypatch.setattr(machine, "_GROUPS", tmp_path / "groups")
    (tmp_path / "meminfo").write_text("MemTotal: 16000000 kB\nMemAvailable: 7000000 kB\nSwapFree: 1000000 kB\n")
    return tmp_path


def test_what_the_machine_has(kernel: Path) -> None:
    assert machine.free_memory() == 8e6 * 1024
    (kernel / "meminfo").unlink()
    assert machine.free_memory() == float("inf")


@pytest.mark.parametrize(
    ("line", "place", "limit", "used"),
    [
        ("0::/a/b", "a", "memory.max", "memory.current"),
        ("0::/a/b", "a/b", "memory.max", "memory.current"),
        ("4:cpu,memory:/a", "memory/a", "memory.limit_in_bytes", "memory.usage_in_bytes"),
        ("0::/", ".", "memory.max", "memory.current"),
    ],
)
def test_a_control_group_or_one_above_it_limits(kernel: Path, line: str, place: str, limit: str, used: str) -> None:
    group = kernel / "groups" / place
    group.mkdir(parents=True)
    (kernel / "cgroup").write_text(f"9:name=systemd:/\n{line}\n")
    (group / used).write_text("300000000\n")
    (group / limit).write_text("max\n")
    assert machine.free_memory() == 8e6 * 1024
    (group / limit).write_text("1000000000\n")
    (group / "memory.stat").write_text("anon 100\ninactive_file 50000000\n")
    assert machine.free_memory() == 750_000_000


def test_too_much_is_refused() -> None:
    machine.refuse_without_memory(2e9, 2e9, "2 numbers")
    with pytest.raises(SolveError, match=r"PS0705: 2 numbers take some 2\.5 GB, and 1\.2 MB are free"):
        machine.refuse_without_memory(2.5e9, 1.2e6, "2 numbers")


def test_a_time_limit_holds_where_nothing_looks_at_a_clock() -> None:
    """An error that a search would take for a reason to try something else does not end it late."""
    begun = time.perf_counter()
    with pytest.raises(SolveError, match=r"PS0610: no answer within the limits: 0\.05 seconds are over"), at_most(0.05):
        while True:
            try:
                time.sleep(5)
            except Exception:  # noqa: BLE001 - as whoever tries many ways would
                continue
    assert time.perf_counter() - begun < 4
    with at_most(0.05):
        pass
    time.sleep(0.1)
    with at_most(None):
        pass
