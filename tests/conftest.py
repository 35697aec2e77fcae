"""Shared by all tests: golden files, the profile of Hypothesis, one thread for each process of the run."""

import gc
import itertools
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# even where bytecode is not to be kept: every worker, and every command that a test starts, would compile all again
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

from hypothesis import HealthCheck, settings  # noqa: E402 - a plugin of pytest, which is compiled in its way

from tests.pasting import reads_alike  # noqa: E402 - as above

# before numpy is imported: processes side by side, each with threads of its own for every core, wait for each other
for threads in ("OMP_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ.setdefault(threads, "1")

import privspec.functions  # noqa: E402, F401 - specs are read with the functions that it provides

# to look for garbage among ten thousand tests, and what they import, was a tenth of a run
gc.set_threshold(100_000, 20, 20)

HERE = Path(__file__).resolve().parent
LONG = {"test_cli.py", "test_fuzz.py", "test_help.py", "test_tutorial.py"}
"""Files with the longest tests, which go first."""
WHOLE = pytest.StashKey[bool]()
"""Whether all tests are collected."""
MEMORY, ROOM = Path("/dev/shm"), 4 * 2**30
"""Where files need no disk, and what has to be free there: every release of a test waits for a disk several times."""

# a run repeats: a failure must say something about the change under test, not about luck; "thorough" explores
settings.register_profile(
    "default",
    max_examples=40,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("slow", settings.get_profile("default"), max_examples=100)
settings.register_profile("thorough", settings.get_profile("default"), derandomize=False, max_examples=2000)
settings.load_profile("default")


@pytest.hookimpl(tryfirst=True)  # before the folder of temporary files is taken from the options
def pytest_configure(config: pytest.Config) -> None:
    """Workers that run side by side share the plans of tests/plans, and what each has compiled of the tests.

    Every other worker goes through the folders from behind: they meet in the middle, and compile half of the files.
    """
    if config.option.markexpr == "slow" and not config.getoption("hypothesis_profile", None):
        settings.load_profile("slow")
    number = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    config.stash[WHOLE] = [Path(one).resolve() for one in config.args] == [HERE]
    if int(number) % 2 and config.stash[WHOLE]:
        config.args[:] = [str(one) for one in sorted(HERE.iterdir(), reverse=True) if _has_tests(one)]
    if not hasattr(config, "workerinput"):
        if not config.option.basetemp and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM:
            quick = tempfile.mkdtemp(prefix="privspec-tests-", dir=MEMORY)
            config.option.basetemp = f"{quick}/base"
            config.add_cleanup(lambda: shutil.rmtree(quick, ignore_errors=True))
        folder = tempfile.mkdtemp(prefix="privspec-plans-")
        os.environ["PRIVSPEC_TEST_PLANS"] = folder
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


def _has_tests(place: Path) -> bool:
    return place.match("test_*.py") or (place.is_dir() and any(place.rglob("test_*.py")))


@pytest.hookimpl(tryfirst=True)  # before those that are marked are left out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The same order in all workers, wherever they began; nobody waits in the end for the longest tests of all.

    Cases of tests/slow.txt are slow; so are all properties where the slow tests are asked for, with more examples each.
    """
    text = (HERE / "slow.txt").read_text(encoding="utf-8")
    listed = {line for line in text.splitlines() if not line.startswith("#")}
    for item in items:
        more = config.option.markexpr == "slow" and hasattr(getattr(item, "obj", None), "hypothesis")
        if more or item.nodeid in listed:
            item.add_marker(pytest.mark.slow)
    unknown = listed - {item.nodeid for item in items}
    if unknown and config.stash[WHOLE]:
        raise pytest.UsageError(f"tests/slow.txt names no case: {min(unknown)}")
    items.sort(key=lambda item: (item.path.name not in LONG, item.path))


def pytest_collection_finish() -> None:
    """What stands when the first test begins stays until the end, and is not searched again."""
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--accept", action="store_true", help="write golden files instead of comparing with them")


@pytest.fixture(scope="session")
def states(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for each test, which nobody has made: to make and number thousands takes seconds."""
    base = tmp_path_factory.mktemp("states")
    return (base / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def registry_of_its_own(states: Iterator[Path]) -> Iterator[None]:
    """No test sees what others released, or the registry of whoever runs them."""
    # of its own as well: a test may undo all that its monkeypatch did
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(next(states)))
        patch.delenv("PRIVSPEC_LEDGER", raising=False)
        yield


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[..., None]:
    """`golden(path, text)`: the text equals the file; with --accept the file is written.

    `golden(path, text, solved=True)`: it reads as the file does on any machine.
    """

    def check(path: Path, text: str, solved: bool = False) -> None:
        if request.config.getoption("--accept"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8", newline="")
            return
        if not path.exists():
            pytest.fail(f"no golden file {path}; look at the result and run pytest --accept")
        known = path.read_text("utf-8")
        if not solved or not reads_alike(text, known):
            assert text == known, f"{path} differs; if that is meant, run pytest --accept"

    return check
