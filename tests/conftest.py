"""Shared by all tests: golden files, the profile of Hypothesis, one thread for each process of the run."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# before numpy is imported: processes side by side, each with threads of its own for every core, wait for each other
os.environ.setdefault("OMP_NUM_THREADS", "1")

# a run repeats: a failure must say something about the change under test, not about luck; "thorough" explores
settings.register_profile(
    "default", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("thorough", settings.get_profile("default"), derandomize=False, max_examples=2000)
settings.load_profile("default")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--accept", action="store_true", help="write golden files instead of comparing with them")


@pytest.fixture(autouse=True)
def registry_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test sees what others released, or the registry of whoever runs them."""
    # of its own as well: a test may undo all that its monkeypatch did
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        patch.delenv("PRIVSPEC_LEDGER", raising=False)
        yield


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """`golden(path, text)`: the text equals the file; with --accept the file is written."""

    def check(path: Path, text: str) -> None:
        if request.config.getoption("--accept"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8", newline="")
            return
        if not path.exists():
            pytest.fail(f"no golden file {path}; look at the result and run pytest --accept")
        assert text == path.read_text("utf-8"), f"{path} differs; if that is meant, run pytest --accept"

    return check
