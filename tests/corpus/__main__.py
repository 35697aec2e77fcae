"""The commands of the corpus; tests/corpus/__init__.py says how to use them."""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from subprocess import PIPE, Popen

from tests.corpus.comparing import STEPS, compared, compared_times, read_times, write_times

TIMES = "times.tsv"


def write(options: Namespace) -> int:
    """A text for each spec, and a table of times; a spec that is not solved has its diagnostics."""
    from tests.corpus.measured import all_measured, warm_up
    from tests.corpus.specs import named

    folder: Path = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    specs = named(tuple(options.only))
    times = read_times((folder / TIMES).read_text("utf-8")) if (folder / TIMES).exists() else {}
    warm_up()
    for number, one in enumerate(all_measured(specs, options.processes), 1):
        place = folder / f"{one.name}.txt"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(one.text, "utf-8")
        known = asdict(one)
        times[one.name] = {step: known[step] for step in STEPS if known[step] is not None}
        (folder / TIMES).write_text(write_times(times), "utf-8")
        print(f"{number:>4} of {len(specs)}  {one.solve:7.2f} s  {one.name}", file=sys.stderr)
    return 0


def compare(options: Namespace) -> int:
    """What differs, by spec; the times of both."""
    old, new = ({place.relative_to(folder).with_suffix("").as_posix(): place for place in sorted(folder.rglob("*.txt"))}
                for folder in (options.old, options.new))  # fmt: skip
    differing, apart, apart_in = 0, 0.0, ""
    for name in sorted(old.keys() & new.keys()):
        found = compared(old[name].read_text("utf-8"), new[name].read_text("utf-8"))
        if found.lines:
            differing += 1
            print(f"\n{name}", *(f"  {line}" for line in found.lines[: options.lines]), sep="\n")
            if len(found.lines) > options.lines:
                print(f"  and {len(found.lines) - options.lines} lines more")
        if found.apart > apart:
            apart, apart_in = found.apart, f"{name}, {found.apart_in}"
    for what, names in (("old", old.keys() - new.keys()), ("new", new.keys() - old.keys())):
        if names:
            print(f"\nonly in the {what} folder: {', '.join(sorted(names))}")
    both = len(old.keys() & new.keys())
    print(
        f"\n{both} specs in both, {differing} differ; figures that read alike differ by {apart:.2g} at most, relative"
    )
    if apart:
        print(f"  ({apart_in})")
    times = [folder / TIMES for folder in (options.old, options.new)]
    if all(place.exists() for place in times):
        known = [read_times(place.read_text("utf-8")) for place in times]
        print(compared_times(known[0], known[1], each=options.each))
    return int(bool(differing or old.keys() ^ new.keys()))


def serve(options: Namespace) -> int:
    """For each name that is read, the CPU seconds of its steps, as JSON in a line."""
    from tests.corpus.measured import all_measured, warm_up
    from tests.corpus.specs import corpus

    warm_up()
    print(json.dumps(sorted(corpus())), flush=True)
    for name in sys.stdin:
        (one,) = all_measured([corpus()[name.strip()]], 1)
        print(json.dumps({step: getattr(one, step) for step in STEPS}), flush=True)
    return 0


def times(options: Namespace) -> int:
    """Both checkouts in turn, spec by spec, each by its own code; of several rounds the fastest counts."""
    sides = [Checkout(folder) for folder in (options.old, options.new)]
    known_to_both = set(sides[0].names) & set(sides[1].names)
    names = [name for name in sides[1].names if name in known_to_both]
    names = [name for name in names if not options.only or name.startswith(tuple(options.only))]
    fastest: list[dict[str, dict[str, float]]] = [{}, {}]
    print(compared_times({}, {}).splitlines()[0])
    for name in names:
        for place in range(2 * options.rounds):
            side = (place + place // 2) % 2  # old, new, new, old: neither always goes first
            known = fastest[side].setdefault(name, {})
            for step, seconds in sides[side].seconds(name).items():
                known[step] = min(seconds, known.get(step, seconds))
        print(compared_times({name: fastest[0][name]}, {name: fastest[1][name]}).splitlines()[1], flush=True)
    print(compared_times(*fastest, each=False))
    return 0


class Checkout:
    """A process of a checkout's own code that measures what it is told to."""

    def __init__(self, folder: Path) -> None:
        own = folder.resolve() / ".venv" / "bin" / "python"
        variables = {**os.environ, "PYTHONPATH": str(folder.resolve())}
        call = [str(own if own.exists() else sys.executable), "-m", "tests.corpus", "serve"]
        self.process = Popen(call, cwd=folder, env=variables, stdin=PIPE, stdout=PIPE, text=True)

    @cached_property
    def names(self) -> list[str]:
        """The names of its corpus, once it has loaded; to be read first."""
        found: list[str] = json.loads(self._line())
        return found

    def seconds(self, name: str) -> dict[str, float]:
        """The CPU seconds of those steps that the spec comes to."""
        assert self.process.stdin is not None
        print(name, file=self.process.stdin, flush=True)
        return {step: taken for step, taken in json.loads(self._line()).items() if taken is not None}

    def _line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise ChildProcessError(f"the process of a checkout ended with status {self.process.wait()}")
        return line


def main() -> int:
    parser = ArgumentParser(prog="python -m tests.corpus", description="What becomes of every spec, and what differs.")
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("write", help="a text for each spec: figures, claims, pages")
    one.add_argument("folder", type=Path)
    one.add_argument("--only", nargs="+", default=(), help="names, or what they begin with")
    one.add_argument("--processes", type=int, choices=(1, 2), default=2)
    one.set_defaults(do=write)
    one = commands.add_parser("compare", help="what differs between two folders that `write` wrote")
    one.add_argument("old", type=Path)
    one.add_argument("new", type=Path)
    one.add_argument("--lines", type=int, default=12, help="how many lines of each spec that differs")
    one.add_argument("--each", action="store_true", help="the times of each spec as well")
    one.set_defaults(do=compare)
    one = commands.add_parser("times", help="CPU seconds of two checkouts, alternately in one run")
    one.add_argument("old", type=Path)
    one.add_argument("new", type=Path)
    one.add_argument("--only", nargs="+", default=(), help="names, or what they begin with")
    one.add_argument("--rounds", type=int, default=3, help="how often each is measured; the fastest counts")
    one.set_defaults(do=times)
    commands.add_parser("serve", help="used by `times`").set_defaults(do=serve)
    options = parser.parse_args()
    code: int = options.do(options)
    return code


if __name__ == "__main__":
    sys.exit(main())
