"""One spec solved, verified, explained and run, each in a process of its own, with the CPU seconds of each step.

The process is forked from one that has everything loaded and nothing solved but a warm-up: no measurement finds what
another one has kept.
"""

from __future__ import annotations

import gc
import json
import os
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

# before numpy is imported: processes side by side, each with threads of its own for every core, wait for each other
for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ.setdefault(threads, "1")

from privspec.audit import pairs_of, written  # noqa: E402 - as above
from privspec.audit.neighbours import NotMadeUpError  # noqa: E402
from privspec.core.diagnostics import PrivspecError  # noqa: E402
from privspec.plan import Plan, verify  # noqa: E402
from tests.corpus.specs import CorpusSpec, corpus  # noqa: E402
from tests.corpus.texts import READERS, text_of_plan, text_of_refusal  # noqa: E402

WARM_UP = "small/counting_query"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Measured:
    """What became of a spec: its text, and CPU seconds of solve, verify and run; None where a step has no place."""

    name: str
    text: str
    solve: float
    verify: float | None = None
    run: float | None = None


def measured(spec: CorpusSpec) -> Measured:
    """Solve, verify, explain and run one spec in this process; a refusal is recorded, never raised."""
    gc.collect()
    try:
        plan, solve = _timed(spec.problem.solve)
    except PrivspecError as error:
        return Measured(spec.name, text_of_refusal(error, spec.base), time.process_time())
    if not plan.feasible:
        pages = {reader: plan.explain(reader) for reader in READERS}
        return Measured(spec.name, text_of_plan(plan, plan.verify(), pages), solve)
    text = plan.to_json()
    verification, verify_seconds = _timed(lambda: verify(text))
    pages = {reader: plan.explain(reader) for reader in READERS}
    ran, run = _run(plan)
    return Measured(spec.name, text_of_plan(plan, verification, pages) + f"== run\n{ran}\n", solve, verify_seconds, run)


def _timed(step: Callable[[], T]) -> tuple[T, float]:
    begun = time.process_time()
    done = step()
    return done, time.process_time() - begun


def _run(plan: Plan) -> tuple[str, float | None]:
    """How a run on made-up data ends, and its CPU seconds where there are such data."""
    model = plan.model()
    if not model.requirements:
        return "no line of privacy", None
    with TemporaryDirectory() as folder, redirect_stderr(StringIO()), redirect_stdout(StringIO()):
        try:
            data = next(pairs_of(model, model.requirements[0], plain=True)).right
        except (NotMadeUpError, StopIteration) as why:
            return f"no data are made up: {why}", None
        files = written(data, Path(folder))
        try:
            release, seconds = _timed(lambda: plan.run(files, seed=1))
        except PrivspecError as error:
            return "refused: " + "; ".join(one.code for one in error.diagnostics), None
    return f"releases {', '.join(sorted(release.values))}", seconds


# --- in processes of their own --------------------------------------------------------------------


def warm_up() -> None:
    """Load what solving, pages and runs load, in this process."""
    from privspec.execute import run  # noqa: F401

    plan = corpus()[WARM_UP].problem.solve()
    for reader in READERS:
        plan.explain(reader)


def all_measured(specs: Sequence[CorpusSpec], processes: int) -> Iterator[Measured]:
    """What becomes of each spec, in the order in which they end."""
    by_name = {spec.name: spec for spec in specs}
    warm_up()
    for name, found in forked(lambda name: asdict(measured(by_name[name])), list(by_name), processes):
        words = "== broken\nthe process that solved it broke off\n"
        yield Measured(name, words, 0.0) if found is None else Measured(**found)


def forked(work: Callable[[str], Any], names: Sequence[str], processes: int) -> Iterator[tuple[str, Any]]:
    """What some work gives for each name, as JSON has it, in a fork of this process each; None where it breaks off."""
    waiting, running = list(reversed(names)), dict[int, str]()
    with TemporaryDirectory() as folder:
        while waiting or running:
            while waiting and len(running) < processes:
                name = waiting.pop()
                running[_started(work, name, Path(folder))] = name
            child, status = os.wait()
            place = Path(folder, str(child))
            yield running.pop(child), None if status else json.loads(place.read_text("utf-8"))


def _started(work: Callable[[str], Any], name: str, folder: Path) -> int:
    """The id of a fork that does the work and leaves what comes of it in a file of that name."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            found = json.dumps(work(name))
            Path(folder, str(os.getpid())).write_text(found, "utf-8")
            code = 0
        finally:
            if code:
                traceback.print_exc()
            os._exit(code)
    return child
