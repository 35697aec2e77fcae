"""The commands of the corpus; tests/corpus/__init__.py says how to use them."""

from __future__ import annotations

import json
import os
import sys
import time
from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from subprocess import PIPE, Popen

from tests.corpus.comparing import STEPS, compared, compared_times, read_times, write_times

TIMES, VERDICTS = "times.tsv", "verdicts.tsv"


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
    verdicts = [folder / VERDICTS for folder in (options.old, options.new)]
    if all(place.exists() for place in verdicts):
        differing += compare_verdicts(*verdicts, options.lines)
    return int(bool(differing or old.keys() ^ new.keys()))


def mutants(options: Namespace) -> int:
    """The verdicts of a kernel on all mutants and, where they were collected, all forgeries."""
    from tests.corpus.forgeries import collected
    from tests.corpus.measured import forked
    from tests.corpus.mutants import Verdict, judge_named, said_by, stored_plans, verdicts

    options.folder.mkdir(parents=True, exist_ok=True)
    judge, plans = judge_named(options.judge), stored_plans()
    wanted = [name for name in plans if not options.only or name.startswith(tuple(options.only))]
    begun, found = time.process_time(), dict[str, list[str]]()
    judged = forked(lambda name: [one.line() for one in verdicts(judge, name, plans[name])], wanted, options.processes)
    for number, (name, lines) in enumerate(judged, 1):
        found[name] = lines or [Verdict(name, "", "as it is", "broke off").line()]
        print(f"{number:>4} of {len(wanted)}  {name}", file=sys.stderr)
    for one in collected(options.forgeries) if options.forgeries else ():
        said = said_by(judge, one.text)
        true = None if said != "accepted" else not one.refused
        found.setdefault("forgeries", []).append(Verdict("forgeries", "", one.name, said, true).line())
    lines = [line for name in sorted(found) for line in found[name]]
    (options.folder / VERDICTS).write_text("\n".join(lines) + "\n", "utf-8")
    known = [Verdict.read(line) for line in lines]
    untrue = [one for one in known if one.accepted and not one.true]
    children = os.times()
    seconds = time.process_time() - begun + children.children_user + children.children_system
    print(f"{len(known)} plans judged in {seconds:.0f} s of CPU: {sum(one.accepted for one in known)} accepted,")
    print(f"{len(untrue)} of them not known to be true", *(one.line() for one in untrue[: options.lines]), sep="\n")
    return int(bool(untrue))


def compare_verdicts(old: Path, new: Path, most: int) -> int:
    """How many plans one kernel accepted and the other did not, of those that both judged; they are listed."""
    from tests.corpus.mutants import Verdict

    both = [
        {(one.plan, one.where, one.done): one for one in map(Verdict.read, place.read_text("utf-8").splitlines())}
        for place in (old, new)
    ]
    known = [key for key in both[0] if key in both[1]]
    more = [key for key in known if both[1][key].accepted and not both[0][key].accepted]
    fewer = [key for key in known if both[0][key].accepted and not both[1][key].accepted]
    print(
        f"\n{len(known)} verdicts in both, {len(both[0]) - len(known)} only old, {len(both[1]) - len(known)} only new"
    )
    for words, keys, side in (("the new kernel alone accepts", more, 1), ("the old kernel alone accepts", fewer, 0)):
        print(f"{words} {len(keys)}, {sum(not both[side][key].true for key in keys)} of them not known to be true")
        for key in keys[:most]:
            print("  " + "\t".join((*key, f"old: {both[0][key].said}", f"new: {both[1][key].said}")))
    return len(more) + len(fewer)


def forgeries(options: Namespace) -> int:
    """What the tests of the kernel judge, for `mutants --forgeries`."""
    from tests.corpus.forgeries import collect, collected

    options.folder.mkdir(parents=True, exist_ok=True)
    place = options.folder / "forgeries.jsonl"
    code = collect(place.resolve(), *(["-m", "slow or not slow"] if options.slow else []))
    found = list(collected(place))
    print(f"{len(found)} plans in {place}, {sum(one.refused for one in found)} of them to be refused")
    return code


def plans(options: Namespace) -> int:
    """Solves the corpus and stores the plans whose mutants are judged; they change with the format of plans alone."""
    from tests.corpus.measured import forked, warm_up
    from tests.corpus.mutants import plan_of, store_plans
    from tests.corpus.specs import corpus

    warm_up()
    found = {name: plan for name, plan in forked(plan_of, list(corpus()), 2) if plan}
    store_plans(found)
    print(f"{len(found)} plans, {sum(map(len, found.values()))} characters")
    return 0


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
    one = commands.add_parser("mutants", help="what a kernel says of plans with one thing changed")
    one.add_argument("folder", type=Path)
    one.add_argument("--judge", default="privspec.kernel:judge", metavar="MODULE:FUNCTION")
    one.add_argument("--forgeries", type=Path, metavar="FILE", help="what `forgeries` collected, to be judged as well")
    one.add_argument("--only", nargs="+", default=(), help="names, or what they begin with")
    one.add_argument("--processes", type=int, choices=(1, 2), default=2)
    one.add_argument("--lines", type=int, default=40, help="how many are shown that are not known to be true")
    one.set_defaults(do=mutants)
    one = commands.add_parser("forgeries", help="collect what the tests of the kernel judge")
    one.add_argument("folder", type=Path)
    one.add_argument("--slow", action="store_true", help="with the slow tests")
    one.set_defaults(do=forgeries)
    commands.add_parser("plans", help="store the plans whose mutants are judged").set_defaults(do=plans)
    commands.add_parser("serve", help="used by `times`").set_defaults(do=serve)
    options = parser.parse_args()
    code: int = options.do(options)
    return code


if __name__ == "__main__":
    sys.exit(main())
