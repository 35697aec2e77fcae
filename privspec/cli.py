"""The command line: thin, lazy, and in one tone. Exit codes are those of INTERFACE.md."""

from __future__ import annotations

import atexit
import gc
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TextIO, TypeVar

import click
from click.shell_completion import CompletionItem

from privspec.core.diagnostics import Diagnostic, PrivspecError, UsageError
from privspec.core.files import STANDARD
from privspec.core.machine import start_with_one
from privspec.kernel.measures import ZERO_CONCENTRATED

if TYPE_CHECKING:
    from privspec.execute.keeper import DataOwnerReport
    from privspec.execute.release import Release
    from privspec.model.graph import Model
    from privspec.pipeline import Request
    from privspec.plan import Plan
    from privspec.profiles import Selects

INFEASIBLE = 4
FAILED = 7
INTERRUPTED = 130
MOST_FITS = 0.5
"""At a terminal the keeper is asked before a run if less of the data fits than this share."""
READERS = ("public", "auditor", "engineer", "register")
Command = TypeVar("Command", bound=Callable[..., object])
HELP = {"help_option_names": ["-h", "--help"]}
CODES = """\b
Exit codes: 0 done; 1 failure, or differences found; 2 wrong use; 3 an error in the spec;
4 requirements proven infeasible; 5 no answer within the limits; 6 budget exhausted;
7 not verified; 8 less of the data fits than --check-fit asks for; 130 interrupted.

Completion of commands and options: eval "$(_PRIVSPEC_COMPLETE=bash_source privspec)", or zsh_source, fish_source.
"""
PATH = click.Path(path_type=Path)


def _examples(*lines: str) -> str:
    """Commands below a help text, each in a line of its own that can be pasted; the tests run them."""
    return "\n".join(("\b", "Examples:" if len(lines) > 1 else "Example:", *(f"  privspec {line}" for line in lines)))


class Decorator(Protocol):
    """An argument or option that several commands share."""

    def __call__(self, command: Command, /) -> Command:
        """The command with it."""
        ...


def _offered(words: Callable[[], Iterable[str]], *, files: bool = False) -> Any:
    """What a shell offers for an argument or option: some words, and files where it may be one."""

    def complete(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
        found = [CompletionItem(word) for word in words() if word.startswith(begun)]
        return [*([CompletionItem(begun, type="file")] if files else []), *found]

    return complete


def _one_of(*words: str) -> dict[str, Any]:
    """An option that takes one of some words."""
    return {"metavar": "|".join(words), "shell_complete": _offered(lambda: words)}


def _templates() -> list[str]:
    from privspec.manual import list_templates

    return [template.name for template in list_templates()]


def _topics() -> list[str]:
    from privspec.manual import topics

    return topics()


def _stages() -> Sequence[str]:
    from privspec.pipeline import STAGES

    return STAGES


# a file, a template's name, or -
spec_argument = partial(click.argument, type=PATH, shell_complete=_offered(_templates, files=True))
spec_path: Decorator = spec_argument("spec", metavar="SPEC")
plan_path: Decorator = click.argument("plan", type=PATH, metavar="PLAN")
ledger_path: Decorator = click.argument("database", type=PATH, metavar="DB")
set_option: Decorator = click.option(
    "--set", "sets", multiple=True, metavar="NAME=VALUE", help="Set a parameter; may be repeated."
)
constant_option: Decorator = click.option(
    "--constant",
    "constants",
    multiple=True,
    metavar="NAME=FILE",
    help="The value of a constant that the spec leaves open, from a CSV or NPY file; may be repeated.",
)
quiet_option: Decorator = click.option(
    "--quiet", "-q", is_flag=True, help="No progress, warnings or tables; errors only."
)
json_option: Decorator = click.option("--json", "as_json", is_flag=True, help="JSON on standard output.")
mode_option: Decorator = click.option(
    "--mode",
    type=click.Choice(["600", "640", "644"]),
    default="600",
    show_default=True,
    help="Permissions of the release: who may read it.",
)


force_option: Decorator = click.option("--force", is_flag=True, help="Replace a release that was paid for.")


def _to_file(_context: click.Context, _option: click.Parameter, path: Path | None) -> Path | None:
    """`-o -` is standard output, where commands write without -o."""
    return None if path is not None and str(path) == STANDARD else path


output_option: Decorator = click.option(
    "-o", "--output", type=PATH, metavar="FILE", callback=_to_file, help="Where to write; - for standard output."
)
plan_output_option: Decorator = click.option(
    "-o",
    "--output",
    type=PATH,
    metavar="FILE",
    help="Where to write the plan (default: beside the spec); - for standard output.",
)


no_header_option: Decorator = click.option(
    "--no-header", is_flag=True, help="The first line of a text file is data; its columns are in the spec's order."
)
quoted_newlines_option: Decorator = click.option(
    "--quoted-newlines", is_flag=True, help="Quoted cells of a .csv file hold line breaks; else every line is a row."
)
separator_option: Decorator = click.option(
    "--separator", metavar="SIGN", help="What stands between cells, as in ';'; else commas, or tabs in a .tsv file."
)
decimal_option: Decorator = click.option(
    "--decimal", metavar="SIGN", default=".", help="',' where numbers have decimal commas."
)


@click.group(context_settings=HELP, epilog=CODES)
@click.version_option(package_name="privspec", message="%(prog)s %(version)s")
def app() -> None:
    """Compile privacy requirements into optimal, certified and explained mechanisms.

    SPEC is a .priv file, the name of a built-in spec (`privspec templates` lists them), or - for standard input; PLAN
    is a file, or - likewise. `-o -` writes to standard output.
    """


@app.group("ledger")
def ledger_app() -> None:
    """The budget of a data set and what has been spent of it."""


# --- errors ---------------------------------------------------------------------------------------


def main() -> NoReturn:
    """Run the command line and exit."""
    start_with_one()
    gc.set_threshold(300_000, 20, 20)  # what modules make at a start is no garbage: to look for it is a tenth of it
    codes = list[int]()
    atexit.register(_leave, codes)  # before whatever a command registers, and so after it
    codes.append(run_command_line(sys.argv[1:]))
    sys.exit(codes[0])


def _leave(codes: list[int]) -> None:
    """End the process as it is: what is left goes with it, and to take it apart took a quarter of all commands."""
    if codes:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(codes[0])


def run_command_line(arguments: list[str]) -> int:
    """Run one command; returns its exit code."""
    try:
        code = app(args=_with_graph_file(arguments), prog_name="privspec", standalone_mode=False)
        return int(code) if isinstance(code, int) else 0
    except PrivspecError as error:
        _print_diagnostics(error.diagnostics)
        return error.exit_code
    except click.exceptions.Exit as error:
        return int(error.exit_code)
    except click.UsageError as error:
        if isinstance(error, click.exceptions.NoArgsIsHelpError):
            error.show()
            print(file=sys.stderr)
        _print_diagnostics((_usage(error),))
        return 2
    except (KeyboardInterrupt, click.Abort):
        print("interrupted; nothing was left half-written", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        if error.filename is not None:  # of files it is said where they are read and written
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        _print_diagnostics((Diagnostic("PS0713", f"the standard output cannot be written: {error.strerror}"),))
        return UsageError.exit_code
    except RecursionError:
        _print_diagnostics((Diagnostic("PS0704", "the input is nested too deeply"),))
        return 3
    except MemoryError:
        _print_diagnostics((Diagnostic("PS0705", "there is not enough memory for a problem of this size"),))
        return 5


def _with_graph_file(arguments: list[str]) -> list[str]:
    """`check --graph out.svg` is `check --graph-out out.svg`; a bare `--graph` stays."""
    out = list(arguments)
    for i, word in enumerate(out[:-1]):
        if out[0] == "check" and word == "--graph" and out[i + 1].endswith(".svg"):
            out[i] = "--graph-out"
    return out


def _usage(error: click.UsageError) -> Diagnostic:
    name = error.ctx.command_path if error.ctx is not None else "privspec"
    bare = isinstance(error, click.exceptions.NoArgsIsHelpError)
    message = "a command is missing" if bare else error.format_message().rstrip(".")
    if isinstance(error, click.NoSuchOption):
        return _no_such_option(name, error)
    return Diagnostic("PS0700", message, help=f"{name} --help shows how it is used")


def _no_such_option(name: str, error: click.NoSuchOption) -> Diagnostic:
    """An option that a command has not: the one that it is a slip of, or the parameter of a spec that it may mean."""
    from privspec.core.suggest import nearest

    there = [] if error.ctx is None else [option for one in error.ctx.command.params for option in one.opts]
    wrong = error.option_name.lstrip("-")
    near = nearest(wrong, (option.lstrip("-") for option in there if option.startswith("--")))
    advice = f"{name} --help shows how it is used"
    if near is not None:
        advice = f"did you mean --{near}?"
    elif "--set" in there and wrong.isidentifier():
        advice = f"a parameter of the spec is set by --set {wrong}=VALUE"
    return Diagnostic("PS0700", f"there is no option {error.option_name}", help=advice)


def _colour(stream: TextIO) -> bool:
    return stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def _print_diagnostics(diagnostics: tuple[Diagnostic, ...]) -> None:
    from privspec.core.render import render_all

    print(render_all(diagnostics, colour=_colour(sys.stderr)), file=sys.stderr, end="")


def _note(text: str, quiet: bool) -> None:
    if not quiet:
        print(text, file=sys.stderr)


@contextmanager
def _shown_now(quiet: bool, words: Callable[..., str], after: float = 0.0) -> Iterator[Any]:
    """A line on a terminal that is written again and again, from so many seconds on; nothing elsewhere."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    import time

    begun, last = time.monotonic(), [0.0]

    def show(*now: Any) -> None:
        at = time.monotonic()
        if at - begun > after and at - last[0] > 0.2:
            last[0] = at
            print(f"\r\033[K  {words(*now)}", end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        if last[0]:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _gap(iteration: int, value: float, bound: float) -> str:
    gap = (value - bound) / value if value > 0 else 1.0
    return f"step {iteration}: loss {value:.6g}, gap {gap:.1e}"


def _counted(what: str, done: int, total: int | None) -> str:
    return f"{done:,}{'' if total is None else f' of {total:,}'} {what}"


# --- reading what is asked for --------------------------------------------------------------------


EXAMPLES = {
    "--set": "epsilon=0.5",
    "--constant": "b=offsets.csv",
    "--input": "x=data.csv",
    "--profile": "vote=ballots.csv",
}
"""What a value of an option looks like."""


def _pairs(values: Sequence[str], option: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in values:
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise UsageError.of(
                "PS0720", f"{option} {text}: a name, = and a value are expected", help=f"{option} {EXAMPLES[option]}"
            )
        found[name.strip()] = value.strip()
    return found


def _request(spec: Path, sets: Sequence[str], constants: Sequence[str]) -> Request:
    from privspec.pipeline import Request, spec_source

    values = {name: _constant(name, Path(path)) for name, path in _pairs(constants, "--constant").items()}
    source, base = spec_source(spec)
    return Request(source, _pairs(sets, "--set"), values, base)


def _constant(name: str, path: Path) -> Any:
    from privspec.core.spans import NOWHERE
    from privspec.model.evaluate import read_csv, read_npy
    from privspec.model.reports import Failure

    if not path.is_file():
        raise UsageError.of("PS0710", f"the file {path} for {name} does not exist")
    try:
        return read_npy(path, str(path), NOWHERE) if path.suffix == ".npy" else read_csv(path, str(path), NOWHERE)
    except Failure as error:
        raise UsageError.of(error.code, error.message, help=error.help) from error


def _default_plan(spec: Path, name: str) -> Path:
    """Beside the spec; in this folder where that is a template or was piped."""
    return Path(f"{name}.plan.json") if str(spec) == STANDARD else spec.with_name(f"{spec.stem}.plan.json")


def _plan(path: Path) -> Plan:
    from privspec.plan import Plan

    plan = Plan.read(path)
    if not plan.feasible:
        raise UsageError.of("PS0714", f"{path} says that its spec is infeasible: there is no mechanism in it")
    return plan


def _warn(model: Model, quiet: bool) -> None:
    if model.warnings and not quiet:
        _print_diagnostics(model.warnings)


# --- commands -------------------------------------------------------------------------------------


@app.command(epilog=_examples("check prefix_sums", "check mine.priv --graph mine.svg"))
@spec_path
@click.option("--graph", is_flag=True, help="Print the graph in words.")
@click.option("--problem", is_flag=True, help="Print in full sentences what the spec means.")
@click.option("--graph-out", type=PATH, metavar="FILE.svg", help="Draw the graph (also: --graph FILE.svg).")
@set_option
@constant_option
@json_option
@quiet_option
def check(
    spec: Path,
    graph: bool,
    problem: bool,
    graph_out: Path | None,
    sets: Sequence[str],
    constants: Sequence[str],
    as_json: bool,
    quiet: bool,
) -> None:
    """Say whether a spec is understood, and what it takes for granted; nothing is solved."""
    from privspec.pipeline import check as check_spec

    model = check_spec(_request(spec, sets, constants))
    _warn(model, quiet)
    if graph_out is not None:
        from privspec.core.files import write_atomically
        from privspec.explain.graphs import graph_svg

        write_atomically(graph_out, graph_svg(model).encode("utf-8"))
        _note(f"graph drawn in {graph_out}", quiet)
    if as_json:
        print(json.dumps(_check_json(model), indent=1, ensure_ascii=False))
    elif graph:
        from privspec.explain.graphs import describe_graph

        print(describe_graph(model))
    elif problem:
        from privspec.problem.elaborate import elaborate
        from privspec.problem.words import words

        print("\n".join(words(elaborate(model))))
    elif not quiet:
        print(f"{spec}: {model.name} is well formed")
        for requirement in model.requirements:
            print(f"  line {requirement.line}: {requirement.describe()}")
        if not model.requirements and not model.fairness:
            print("  privacy: none is asked for and none is given: whatever is released may reveal the data")
        print(f"  trust: {model.trust.describe()}")
        for name, open_values in _left_open(model).items():
            among = ", ".join(open_values)
            print(f"  left open: {name} is one of {among}; the lines above are those of {open_values[0]}")


def _left_open(model: Model) -> dict[str, list[str]]:
    """What solving will choose among finitely many values."""
    from privspec.model.graph import value_text

    choices = model.design.choices if model.open and model.design is not None else ()
    return {choice.name: [value_text(value) for value in choice.values] for choice in choices}


def _check_json(model: Model) -> dict[str, Any]:
    from privspec.core.render import diagnostic_to_json

    return {
        "name": model.name,
        "inputs": [block.name for block in model.blocks],
        "outputs": [node.name for node in model.outputs],
        "requirements": [{"line": r.line, "text": r.text, "reads": r.describe()} for r in model.requirements],
        "trust": model.trust.name,
        **({"choices": found} if (found := _left_open(model)) else {}),
        "warnings": [diagnostic_to_json(d) for d in model.warnings],
    }


@app.command(epilog=_examples("solve prefix_sums", "solve mine.priv --set epsilon=0.5 -o half.plan.json"))
@spec_path
@set_option
@constant_option
@plan_output_option
@json_option
@click.option(
    "--solver",
    default="default",
    show_default=True,
    **_one_of("default", "cvxpy"),
    help="default: solvers for each kind of problem; cvxpy: the convex program as it is written.",
)
@click.option("--time-limit", type=float, metavar="SECONDS", help="When the command gives up (exit 5).")
@click.option(
    "--dump",
    metavar="STAGE",
    shell_complete=_offered(_stages),
    help="Print a stage: tree, graph, problem, system, candidates, program, plan.",
)
@quiet_option
def solve(
    spec: Path,
    sets: Sequence[str],
    constants: Sequence[str],
    output: Path | None,
    as_json: bool,
    solver: str,
    time_limit: float | None,
    dump: str | None,
    quiet: bool,
) -> int:
    """Find the mechanism that loses least, prove how good it is, and write the plan, once it is verified."""
    from time import perf_counter

    from privspec.core.machine import at_most
    from privspec.families.family import Settings, stops_after
    from privspec.pipeline import STAGES
    from privspec.pipeline import solve as solve_spec

    if solver not in ("default", "cvxpy"):
        raise UsageError.of("PS0721", f"there is no solver {solver}", help="use default or cvxpy")
    if dump is not None and dump not in STAGES:
        raise UsageError.of("PS0721", f"there is no stage {dump}", help=f"use {', '.join(STAGES)}")
    if time_limit is not None and not time_limit > 0:
        raise UsageError.of("PS0721", "--time-limit takes a positive number of seconds")
    until, begun = stops_after(time_limit), perf_counter()
    request = _request(spec, sets, constants)

    def watch(stage: str, result: object) -> None:
        if stage == "graph":
            _warn(result, quiet)  # type: ignore[arg-type]
        if stage == "work":
            _note(f"note: {result}", quiet)
        if stage == dump:
            print(_shown(stage, result))

    with _shown_now(quiet, _gap) as progress, at_most(time_limit):
        plan = solve_spec(request, Settings(solver=solver, until=until, progress=progress), watch)
    if not plan.feasible:
        _print_infeasible(plan, as_json)
        return INFEASIBLE
    printed = output is not None and str(output) == STANDARD
    if not printed:
        plan = plan.write(output or _default_plan(spec, plan.name))
    if as_json or printed:
        print(plan.to_json(), end="")
    elif not quiet and dump is None:
        print(plan.summary(_width(), perf_counter() - begun), end="")
    return 0


def _width() -> int | None:
    import shutil

    return shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else None


def _shown(stage: str, result: object) -> str:
    from pprint import pformat

    if stage == "problem":
        from privspec.kernel.writing import write

        return json.dumps(write(result), indent=1, ensure_ascii=False)
    if stage == "tree":
        from privspec.language.spelling import print_spec

        return print_spec(result)  # type: ignore[arg-type]
    if stage == "graph":
        from privspec.explain.graphs import describe_graph

        return describe_graph(result)  # type: ignore[arg-type]
    if stage == "program":
        from privspec.pipeline import form_of

        return form_of(result).text()  # type: ignore[arg-type]
    if stage == "plan":
        return str(result.to_json())  # type: ignore[attr-defined]
    return pformat(result, width=110)


def _print_infeasible(plan: Plan, as_json: bool) -> None:
    if as_json:
        print(plan.to_json(), end="")
    from privspec.explain.summary import infeasible_text

    print(infeasible_text(plan.document), file=sys.stderr, end="")


@app.command(
    epilog=_examples(
        "explain prefix_sums.plan.json",
        "explain prefix_sums.plan.json --for auditor -o report.html",
        "explain tables.json --plan marginals.plan.json",
    )
)
@plan_path
@click.option("--for", "reader", **_one_of(*READERS), help="Who will read it; public if nothing is said.")
@click.option(
    "--profile",
    "profiles",
    multiple=True,
    metavar="NAME=FILE",
    help="Ballots: a private report on them, for the keeper of the data only. Its figures are no privacy guarantee.",
)
@click.option("--plan", "made_by", type=PATH, metavar="PLAN", help="Of a release: its plan, if that is not beside it.")
@output_option
def explain(plan: Path, reader: str | None, profiles: Sequence[str], made_by: Path | None, output: Path | None) -> None:
    """Explain a plan to the public, to an auditor, or to an engineer (.md, .html or .json, by the suffix of -o).

    Of a release (.json) it shows the figures with limits, and what the page for the public says of their errors.

    `--for register` writes a draft entry of the register of deployments of differential privacy, as JSON.
    """
    if reader is not None and reader not in READERS:
        raise UsageError.of("PS0721", f"there is no reader {reader}", help=f"use {', '.join(READERS)}")
    form = "md" if output is None else output.suffix.lstrip(".").lower()
    if reader == "register" and (profiles or (output is not None and form != "json")):
        raise UsageError.of("PS0721", "an entry of the register is written as .json, from a plan alone")
    if form not in ("md", "html", "json"):
        raise UsageError.of("PS0721", f"no explanation is written as .{form}", help="use .md, .html or .json")
    if _is_release(plan):
        if profiles or reader not in (None, "public"):
            raise UsageError.of(
                "PS0721", "a release is explained to the public alone", help="leave --for and --profile out"
            )
        text = _plan(made_by or _plan_of(plan)).explain_release(plan, form)
    elif made_by is not None:
        raise UsageError.of("PS0721", f"--plan is for releases, and {plan} is none", help="leave --plan out")
    else:
        text = _profile(plan, profiles, reader, form) if profiles else _plan(plan).explain(reader or "public", form)
    if output is None:
        print(text)
    else:
        from privspec.core.files import write_atomically

        write_atomically(output, text.encode("utf-8"))
        _note(f"written to {output}", False)
        if profiles:
            _note("it depends on private data: do not publish it", False)


def _is_release(path: Path) -> bool:
    from privspec.explain.published import is_release

    return str(path) != STANDARD and is_release(path)


def _plan_of(release: Path) -> Path:
    """The plan beside a release that made it, by the digest that both name.

    Raises: UsageError PS0735 if there is none.
    """
    from privspec.explain.published import read_release

    wanted = f'"digest": "{read_release(release).get("plan_sha256")}"'
    for place in sorted(release.absolute().parent.glob("*.plan.json")):
        if wanted in place.read_text("utf-8", errors="replace"):
            return place
    raise UsageError.of(
        "PS0735", f"no plan beside {release} made it", help=f"privspec explain {release} --plan PLAN names it"
    )


def _profile(plan: Path, profiles: Sequence[str], reader: str | None, form: str) -> str:
    """A report on ballots, which nobody but the keeper of the data may see."""
    from privspec.profiles import profile_text

    if reader == "public":
        raise UsageError.of(
            "PS0721",
            "a report on the votes is not for the public: every figure in it depends on private data",
            help="leave --for out; publish the winner and the plan's own pages",
        )
    if form != "md":
        raise UsageError.of(
            "PS0721", f"a report on the votes is not written as .{form}", help="use .md, or leave -o out"
        )
    data = {name: Path(path) for name, path in _pairs(profiles, "--profile").items()}
    return profile_text(_plan(plan), data)


@app.command(epilog=_examples("verify prefix_sums.plan.json", "verify prefix_sums.plan.json --trusted"))
@plan_path
@click.option("--trusted", is_flag=True, help="List the code and the proofs that this plan's privacy rests on.")
@json_option
@quiet_option
def verify(plan: Path, trusted: bool, as_json: bool, quiet: bool) -> int:
    """Derive every claim of a plan again, by code that uses nothing of the compiler and its solvers."""
    from privspec.plan import Plan

    read = Plan.read(plan)
    report = read.verify()
    believed = read.trusted() if trusted and report.ok else None
    if as_json:
        claims = [{"name": c.name, "status": c.status, "text": c.text, "item": c.item} for c in report.claims]
        more = {} if believed is None else {"trusted": believed.document()}
        print(json.dumps({"verified": report.ok, "claims": claims, **more}, indent=1, ensure_ascii=False))
    elif believed is not None:
        print(believed.text(), end="")
    elif not quiet:
        print(report.text(_width(), colour=_colour(sys.stdout)), end="")
    if report.ok:
        return 0
    failed = tuple(f"{c.name}: {c.text}" for c in report.failed)
    _print_diagnostics(
        (
            Diagnostic(
                "PS0910",
                f"{plan} is not verified",
                notes=failed if quiet or as_json else (),
                help="do not run it; solve the spec again, or ask whoever gave it to you",
            ),
        )
    )
    return FAILED


@app.command(epilog=_examples("audit prefix_sums.plan.json --draws 2000"))
@plan_path
@click.option("--draws", type=int, metavar="N", help="Releases of each data set (default: as fit the time, to 40,000).")
@click.option(
    "--seconds", type=float, metavar="S", help="About how many seconds to take (default: 15, without --draws)."
)
@click.option("--seed", type=int, help="With --draws, a test that can be repeated: noise from this seed.")
@json_option
@quiet_option
def audit(plan: Path, draws: int | None, seconds: float | None, seed: int | None, as_json: bool, quiet: bool) -> int:
    """Test from outside what a plan executes: how well its releases tell apart data that differ in one unit."""
    from privspec.audit import LEAST
    from privspec.audit import audit as audit_plan

    if draws is not None and draws < LEAST:
        raise UsageError(Diagnostic("PS0721", f"--draws takes at least {LEAST} releases"))
    if seconds is not None and not 0 < seconds < float("inf"):
        raise UsageError(Diagnostic("PS0721", "--seconds takes a positive number"))
    with _shown_now(quiet, _counted, 1.0) as progress:
        found = audit_plan(_plan(plan), draws=draws, seconds=seconds, seed=seed, progress=progress)
    if as_json:
        print(found.to_json(), end="")
    elif not quiet:
        print(found.text(), end="")
    if found.ok:
        return 0
    broken = tuple(one.text().strip() for one in found.findings if one.broken)
    _print_diagnostics((Diagnostic("PS0912", f"what {plan} releases tells more apart than it promises", notes=broken),))
    return FAILED


@app.command(epilog=_examples("run prefix_sums.plan.json --input x=series.csv --new-ledger -o release.csv"))
@plan_path
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME=FILE",
    help="Data: CSV, Parquet or a folder of it, Arrow, NPY, JSON, an election of PrefLib, or a table of a database, "
    "DB.duckdb::TABLE; may be repeated.",
)
@click.option("--ledger", type=PATH, metavar="DB", help="The data set's ledger (default: beside its first file).")
@click.option("--new-ledger", is_flag=True, help="Declare the budget of these data: exactly what this plan spends.")
@click.option(
    "--other-people",
    metavar="'WHY'",
    help="State, for the ledger to keep, that these are not the people of another one whose data they happen to equal.",
)
@output_option
@mode_option
@force_option
@click.option("--strict", is_flag=True, help="Refuse data that do not fit instead of clipping them.")
@click.option(
    "--check-fit",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="Stop before anything is spent where less than this share of the data fits (exit 8, which tells so).",
)
@no_header_option
@quoted_newlines_option
@separator_option
@decimal_option
@constant_option
@click.option("--seed", type=int, help="Simulate with this seed: NOT private, nothing is debited.")
@click.option("--party", metavar="ID", help="Make one party's message from its own data, for `aggregate`.")
@click.option("--key", type=PATH, metavar="FILE", help="Secure sums: the party's own key, from `privspec keys`.")
@click.option(
    "--roster",
    type=PATH,
    multiple=True,
    metavar="FILE.json",
    help="Secure sums: the public keys of all parties, in one file or several; may be repeated.",
)
@click.option("--joint-draw", type=PATH, metavar="FILE.json", help="Random dictatorship: let all voters draw jointly.")
@click.option(
    "--participation",
    type=PATH,
    metavar="FILE.db",
    help="Rounds that share a budget: count in how many each voter took part. As secret as the votes.",
)
@quiet_option
def run(
    plan: Path,
    inputs: Sequence[str],
    ledger: Path | None,
    new_ledger: bool,
    other_people: str | None,
    output: Path | None,
    mode: str,
    force: bool,
    strict: bool,
    check_fit: float | None,
    no_header: bool,
    quoted_newlines: bool,
    separator: str | None,
    decimal: str,
    constants: Sequence[str],
    seed: int | None,
    party: str | None,
    key: Path | None,
    roster: tuple[Path, ...],
    joint_draw: Path | None,
    participation: Path | None,
    quiet: bool,
) -> None:
    """Execute exactly this plan on data; the ledger of the data is debited first."""
    from privspec.execute.keeper import DataOwnerReport

    found = _plan(plan)
    paths = {name: Path(path) for name, path in _pairs(inputs, "--input").items()}
    keeper, asked = DataOwnerReport(asks=_goes_on), list[bool]()
    here = not quiet and seed is None and sys.stdin.isatty() and sys.stderr.isatty()

    def consent(told: DataOwnerReport) -> None:
        if here and told.fitting < MOST_FITS:
            asked.append(_asked(told, plan, inputs))
            if not asked[0]:
                told.check(MOST_FITS)

    try:
        with _shown_now(quiet, _counted, 1.0) as progress:
            release = found.run(
                paths,
                ledger,
                output or Path(STANDARD),
                new_ledger=new_ledger,
                strict=strict,
                seed=seed,
                progress=progress,
                party=party,
                key=key,
                roster=roster,
                joint_draw=joint_draw,
                participation=participation,
                mode=int(mode, 8),
                force=force,
                header=not no_header,
                quoted_newlines=quoted_newlines,
                separator=separator,
                decimal=decimal,
                keeper=keeper,
                other_people=other_people,
                constants={name: _constant(name, Path(path)) for name, path in _pairs(constants, "--constant").items()},
                check_fit=check_fit,
                consent=consent,
            )
    finally:
        _tell_keeper(keeper, plan, inputs, quiet or bool(asked))
    if not quiet and release.warnings:
        _print_diagnostics(release.warnings)
    _tell_release(release, output, quiet)
    if release.round is not None:
        _note(f"round {release.round}", quiet)
    if participation is not None:
        _note(f"{participation} says who took part: it is as secret as the votes", quiet)
    if joint_draw is not None:
        _note(f"transcript in {joint_draw} · anybody can check it: privspec verify-draw {joint_draw}", quiet)


def _asked(keeper: DataOwnerReport, plan: Path, inputs: Sequence[str]) -> bool:
    """At a terminal, whether to go on where most of the data do not fit."""
    print(file=sys.stderr)
    _tell_keeper(keeper, plan, inputs, quiet=False)
    return _confirmed("Most of this does not fit the spec. Spend the budget on it all the same?")


def _goes_on(said: Diagnostic) -> bool:
    """Whether the keeper goes on: who is not at a terminal is told, and does."""
    _print_diagnostics((said,))
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    return _confirmed("go on, with a budget of their own?")


def _confirmed(question: str) -> bool:
    try:
        return click.confirm(question, err=True)
    except click.Abort:
        print(file=sys.stderr)
        return False


def _tell_keeper(keeper: DataOwnerReport, plan: Path, inputs: Sequence[str], quiet: bool) -> None:
    """How the data fit, in numbers, for who runs the plan: it stands in no release, no ledger and no exit code."""
    lines = keeper.brief()
    if lines and not quiet:
        asked = " ".join(f"--input {text}" for text in inputs)
        print("\n".join(("for the keeper of the data only:", *(f"  {line}" for line in lines))), file=sys.stderr)
        print(f"  more, and nothing is spent: privspec data {plan} {asked}", file=sys.stderr)


def _tell_release(release: Release, output: Path | None, quiet: bool) -> None:
    if output is None:  # it stands on standard output
        return
    from privspec.execute.release import places

    each = places(output, release.observers)
    named = [f"{each[who]} ({', '.join(names)})" for who, names in release.observers.items()] or [str(output)]
    seeded = not release.private and release.ledger is None
    why = "simulation: not private" if seeded else release.notice
    _note(f"released to {', '.join(named)}" + ("" if why is None else f" ({why})"), quiet)


@app.command(
    epilog=_examples(
        "data prefix_sums --input x=series.csv", "data people.priv --input people=warehouse.duckdb::people --sql"
    ),
)
@spec_argument("document", metavar="SPEC|PLAN")
@click.option("--input", "inputs", multiple=True, metavar="NAME=FILE", help="Data, as for `run`; may be repeated.")
@no_header_option
@quoted_newlines_option
@separator_option
@decimal_option
@click.option("--sql", is_flag=True, help="Print what a run asks of a database, on stdout; no rows are read.")
@click.option("--dialect", metavar="NAME", help="The same in the words of another database (spark, postgres, ...).")
@set_option
@constant_option
def data(
    document: Path,
    inputs: Sequence[str],
    no_header: bool,
    quoted_newlines: bool,
    separator: str | None,
    decimal: str,
    sql: bool,
    dialect: str | None,
    sets: Sequence[str],
    constants: Sequence[str],
) -> None:
    """Tell the keeper of data how they fit a spec or plan; nothing is written, nothing is spent."""
    from privspec.execute.sources import text_files
    from privspec.profiles import fit_of_plan, fit_of_spec, report_text, sql_text

    texts = text_files(not no_header, quoted_newlines, separator, decimal)
    selects: Selects | None = [] if sql or dialect is not None else None
    paths = {name: Path(path) for name, path in _pairs(inputs, "--input").items()}
    if document.suffix == ".json":
        keeper = fit_of_plan(_plan(document), paths, texts, selects)
    else:
        from privspec.pipeline import check as check_spec

        model = check_spec(_request(document, sets, constants))
        keeper = fit_of_spec(model, paths, texts, selects)
    if selects is not None:
        print(sql_text(selects, dialect), end="")
        return
    print(report_text(keeper, paths), file=sys.stderr, end="")


@app.command(epilog=_examples("keys --party 3 -o three.key > three.json"))
@click.option(
    "--party",
    required=True,
    metavar="ID",
    help="The party: its number from 1, or clinic:2 where there are several sets.",
)
@click.option("-o", "--output", type=PATH, required=True, metavar="FILE", help="Where the secret key goes.")
def keys(party: str, output: Path) -> None:
    """Make a party's keys for one message of a secure sum; the public one, for the roster, goes to stdout."""
    from privspec.families.gaussian.masks import write_key

    print(json.dumps(write_key(party, output)))
    print(f"the secret key is in {output}: it masks one message, and nobody else may have it", file=sys.stderr)


@app.command("verify-draw", epilog=_examples("verify-draw transcript.json --plan vote.plan.json"))
@click.argument("transcript", type=PATH, metavar="TRANSCRIPT")
@click.option("--plan", type=PATH, metavar="PLAN", help="Also check that it is a draw of this plan.")
@click.option("--keys", type=PATH, metavar="FILE", help="The public keys of the voters, from the voters: JSON by name.")
@click.option("--session", metavar="ID", help="The session that was agreed on.")
@json_option
@quiet_option
def verify_draw(
    transcript: Path, plan: Path | None, keys: Path | None, session: str | None, as_json: bool, quiet: bool
) -> int:
    """Check the transcript of a joint draw: anybody can, without a secret key."""
    from privspec.families.voting.joint_draw.parties import read_transcript, void

    document = None if plan is None else _plan(plan).verified().document
    report = read_transcript(transcript, document, keys, session)
    if as_json:
        print(json.dumps(report.to_json(), indent=1))
    if not report.ok:
        _print_diagnostics(void(report, transcript).diagnostics)
        return FAILED
    if not quiet and not as_json:
        print(f"{transcript}: a sound draw of {report.ballots} ballots; the winner is {report.winner}")
        print(f"  {report.anchors.text()}")
        print(f"  {report.protection()}")
    return 0


@app.command(
    epilog=_examples(
        "aggregate frequency_survey.plan.json reports.csv",
        "aggregate frequency_survey.plan.json reports.csv -o shares.svg",
    )
)
@plan_path
@click.argument("reports", nargs=-1, required=True, type=PATH, metavar="REPORTS...")
@click.option(
    "--estimator",
    default="auto",
    show_default=True,
    **_one_of("auto", "inverse", "clip", "simplex", "ibu"),
    help="auto: the best in a simulation of the declared data model.",
)
@click.option("--level", type=float, default=0.95, show_default=True, help="Level of the intervals.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the simulation and of the bootstrap.")
@output_option
@mode_option
@force_option
@json_option
@quiet_option
def aggregate(
    plan: Path,
    reports: tuple[Path, ...],
    estimator: str,
    level: float,
    seed: int,
    output: Path | None,
    mode: str,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Estimate the shares of the values behind local reports, one report per row (.json, .csv or .svg, by -o).

    Where every party made a message with `run --party`, make the release from these messages.
    """
    from privspec.aggregate import aggregate_json, aggregate_text, check_suffix, write_aggregate
    from privspec.core.files import refuse_overwriting

    found = _plan(plan)
    if found.by_messages:
        made = found.combine(reports, output or Path(STANDARD), mode=int(mode, 8), force=force)
        _tell_release(made, output, quiet)
        return
    if output is not None:
        check_suffix(output)
        refuse_overwriting([output], {f"the reports in {path}": path for path in reports} | {"the plan": plan})
    with _shown_now(quiet, _counted, 1.0) as progress:
        shares = found.aggregate(reports, estimator=estimator, level=level, seed=seed, progress=progress)
    if output is not None:
        write_aggregate(shares, output)
        _note(f"shares written to {output}", quiet)
    if as_json:
        print(aggregate_json(shares), end="")
    elif not quiet:
        print(aggregate_text(shares, found.name), end="")


@app.command(
    epilog=_examples(
        "synthesize marginals.plan.json tables.json --records 1000 -o rows.csv",
        "synthesize marginals.plan.json tables.json --records 200 -o rows.parquet",
    )
)
@plan_path
@click.argument("release", type=PATH, metavar="RELEASE")
@click.option("--records", type=int, required=True, help="How many records to make up.")
@output_option
@mode_option
@quiet_option
def synthesize(plan: Path, release: Path, records: int, output: Path | None, mode: str, quiet: bool) -> None:
    """Make up records that agree with the released tables of counts as nearly as records can (.csv or .parquet, by -o).

    They follow from the release alone, so they cost no privacy. Printed is how well they keep each of its tables.
    """
    from privspec.core.files import refuse_overwriting

    if output is not None:
        refuse_overwriting([output], {"the release": release, "the plan": plan})
    with _shown_now(quiet, _counted, 1.0) as progress:
        made = _plan(plan).synthetic(release, records, progress=progress)
    if output is not None:
        made.write(output, int(mode, 8))
        _note(f"records written to {output}", quiet)
    if not quiet and output != Path(STANDARD):
        print(made.text(), end="")


@app.command(
    epilog=_examples(
        "sweep prefix_sums --over epsilon=0.1:10:log:5", "sweep prefix_sums --over epsilon=0.5,1,2 -o frontier.csv"
    )
)
@spec_path
@click.option("--over", required=True, metavar="NAME=VALUES", help="As in epsilon=0.1:10:log:20 (or lin), or k=2,3,4.")
@set_option
@constant_option
@output_option
@click.option("--plot", type=PATH, metavar="FILE.svg", help="Where to draw the plot.")
@json_option
@quiet_option
def sweep(
    spec: Path,
    over: str,
    sets: Sequence[str],
    constants: Sequence[str],
    output: Path | None,
    plot: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Show what more or less privacy costs: the loss for several values of a parameter, as a table and a plot."""
    from privspec.core.files import write_atomically
    from privspec.sweep import files_of, frontier_svg, parse_range, sweep_files, sweep_spec, table_csv, table_json

    name, values = parse_range(over)
    request = _request(spec, sets, constants)
    read = (spec, *files_of(request), *map(Path, _pairs(constants, "--constant").values()))
    table, drawn = sweep_files(output, plot, read, as_json=as_json)
    rows = sweep_spec(request, name, values, None if quiet else _sweep_progress())
    written = as_json if table is None else table.suffix == ".json"
    text = table_json(name, rows) if written else table_csv(name, rows)
    if table is None:
        print(text, end="")
    else:
        write_atomically(table, text.encode("utf-8"))
        _note(f"table written to {table}", quiet)
    failed = [row for row in rows if row.loss is None]
    if failed:
        verb = "has" if len(failed) == 1 else "have"
        _note(f"{len(failed)} of {len(rows)} values {verb} no loss; the table says why", quiet)
    if drawn is not None:
        picture = frontier_svg(name, rows)
        if picture is None:
            _note(f"nothing is drawn in {drawn}: no value above 0 has a loss", quiet)
            return
        write_atomically(drawn, picture.encode("utf-8"))
        _note(f"frontier drawn in {drawn}", quiet)


def _sweep_progress() -> Any:
    def show(done: int, total: int) -> None:
        if sys.stderr.isatty():
            print(f"\r  {done} of {total} values", end="\n" if done == total else "", file=sys.stderr, flush=True)

    return show


@app.command(epilog=_examples("diff prefix_sums.plan.json half.plan.json"))
@spec_argument("old", metavar="OLD")
@spec_argument("new", metavar="NEW")
@json_option
@quiet_option
def diff(old: Path, new: Path, as_json: bool, quiet: bool) -> int:
    """Say what changed between two specs or two plans, in privacy and in loss; exit 1 if anything did."""
    from privspec.diff import diff_json, diff_text, differences, read_side

    if (old.suffix == ".json") != (new.suffix == ".json"):
        raise UsageError.of("PS0721", "a spec cannot be compared with a plan", help="give two specs, or two plans")
    changes = differences(read_side(old), read_side(new))
    if as_json:
        print(diff_json(changes), end="")
    elif not quiet:
        print(diff_text(changes, str(old), str(new)), end="")
    return 1 if changes else 0


@app.command(epilog=_examples("templates", "templates prefix_sums -o mine.priv"))
@click.argument("name", required=False, shell_complete=_offered(_templates))
@output_option
@json_option
def templates(name: str | None, output: Path | None, as_json: bool) -> None:
    """List the built-in specs, or copy one out (with the files that it reads)."""
    from privspec.manual import copy_template, list_templates, template_text

    if name is None:
        found = list_templates()
        if as_json:
            print(json.dumps([{"name": t.name, "title": t.title} for t in found], indent=1))
            return
        width = max(len(t.name) for t in found)
        for template in found:
            print(f"{template.name:<{width}}  {template.title}")
        return
    if output is None:
        print(template_text(name), end="")
        return
    for path in copy_template(name, output):
        _note(f"written to {path}", False)


@app.command(epilog=_examples("init census.csv", "init census.csv -o -"))
@click.argument("data", type=PATH, metavar="DATA")
@no_header_option
@click.option(
    "-o",
    "--output",
    type=PATH,
    metavar="FILE",
    help="Where to write the spec (default: beside the data); - for standard output.",
)
def init(data: Path, no_header: bool, output: Path | None) -> None:
    """Begin a spec for a file (.csv, .tsv, .parquet): names and kinds of its columns, with places to fill in.

    No value of a cell goes into it, and no bound or word is taken from the data: these are public, and `privspec check`
    names in one message what is to be filled in.
    """
    from privspec.core.files import write_atomically
    from privspec.execute.skeleton import skeleton, table_name

    text = skeleton(data, header=not no_header)
    if output == Path(STANDARD):
        print(text, end="")
        return
    place = output or data.with_name(f"{table_name(data)}.priv")
    if place.exists():
        raise UsageError.of("PS0731", f"{place} is there already", help="choose another name with -o")
    write_atomically(place, text.encode("utf-8"))
    _note(f"written to {place} · next: fill it in · privspec check {place}", False)


@app.command(epilog=_examples("fmt mine.priv --check"))
@spec_path
@click.option("--check", "only_check", is_flag=True, help="Change nothing; exit 1 if the file would change.")
def fmt(spec: Path, only_check: bool) -> int:
    """Write a spec in its canonical form, in place; comments stay."""
    from privspec.core.files import write_atomically
    from privspec.language.formatter import format_source
    from privspec.language.parser import read_source

    source = read_source(spec)
    text = format_source(source)
    if text == source.text:
        return 0
    if only_check:
        _note(f"{spec} is not formatted; run privspec fmt {spec}", False)
        return 1
    write_atomically(spec, text.encode("utf-8"))
    _note(f"{spec} formatted", False)
    return 0


@app.command("explain-error", epilog=_examples("explain-error PS0207"))
@click.argument("code")
def explain_error(code: str) -> None:
    """Explain a message at length, by its code."""
    from privspec.core.catalogue import explain_code

    print(explain_code(code), end="")


@app.command(
    "help",
    epilog=_examples(
        "help tutorial", "help prefix_sums", "help how do I average pay", f"help {ZERO_CONCENTRATED.word}"
    ),
)
@click.argument("topic", nargs=-1, shell_complete=_offered(_topics))
def show_help(topic: tuple[str, ...]) -> None:
    """The manual: `help tutorial`, `help language`, `help functions`, `help words`, or the name of one of these.

    A NAME may be that of a function (prefix_sums), a measure (zCDP), a clause (replacing), an option (trust), a noise
    family, a domain, a law, a section (privacy), or a template. Other words (how do I average pay) are looked for in
    all of the manual.
    """
    from privspec.manual import help_text

    print(help_text(" ".join(topic) or None), end="")


@app.command(epilog=_examples("lsp --grammar > priv.tmLanguage.json"))
@click.option("--grammar", is_flag=True, help="Print the TextMate grammar that colours .priv files, and stop.")
def lsp(grammar: bool) -> None:
    """Serve an editor on standard input and output: errors and fixes, hover, completion, formatting.

    An editor that speaks the Language Server Protocol is told to start `privspec lsp` for files that end in .priv; it
    needs `pip install 'privspec[editor]'`. Editors that read TextMate grammars take their colours from --grammar.
    """
    if grammar:
        from privspec.editor.textmate import shipped

        print(shipped(), end="")
        return
    try:
        from privspec.editor.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        hint = "pip install 'privspec[editor]'"
        raise UsageError.of("PS0733", "the server of an editor needs the library pygls", help=hint) from None
    serve()


# --- the ledger -----------------------------------------------------------------------------------


@ledger_app.command(
    "init",
    epilog=_examples(
        "ledger init people.ledger.db --limit 'epsilon=2 delta=1e-6'",
        "ledger init people.ledger.db --raise --limit 'epsilon=3 delta=1e-6'",
    ),
)
@ledger_path
@click.option("--limit", "limits", multiple=True, metavar="'epsilon=2 delta=1e-6'", help="The budget; may be repeated.")
@click.option("--raise", "change", is_flag=True, help="Change the limit of a ledger that exists, knowingly.")
def ledger_init(database: Path, limits: Sequence[str], change: bool) -> None:
    """Set the budget of a data set."""
    from privspec.execute.ledger import create

    print(create(database, limits, change=change).describe())


@ledger_app.command("show", epilog=_examples("ledger show series.ledger.db"))
@ledger_path
def ledger_show(database: Path) -> None:
    """List the releases: when, of what plan, what each cost, and how much one more may cost."""
    from privspec.execute.ledger import show

    print(show(database).describe())


@ledger_app.command(
    "verify", epilog=_examples("ledger verify series.ledger.db", "ledger verify series.ledger.db --against release.csv")
)
@ledger_path
@click.argument("releases", nargs=-1, type=PATH, metavar="[RELEASE...]")
@click.option("--against", is_flag=True, help="Also find the entry that each of these releases names.")
def ledger_verify(database: Path, releases: tuple[Path, ...], against: bool) -> None:
    """Recompute the chain and every debit, and find the entries that releases name: an end that was cut off shows."""
    from privspec.execute.ledger import verify as verify_ledger

    if against is not bool(releases):
        raise UsageError.of("PS0721", "--against and releases go together", help="--against may.csv june.csv")
    verify_ledger(database, releases)
    print(f"{database}: the chain and every debit are in order")
    if releases:
        some = "the release is" if len(releases) == 1 else f"all {len(releases)} releases are"
        print(f"{some} entered in it")


@ledger_app.command("export", epilog=_examples("ledger export series.ledger.db -o events.json"))
@ledger_path
@output_option
def ledger_export(database: Path, output: Path | None) -> None:
    """Write all events as JSON, with the chain that holds them together."""
    from privspec.core.files import write_atomically
    from privspec.execute.ledger import export

    text = json.dumps(export(database), indent=1) + "\n"
    if output is None:
        print(text, end="")
    else:
        write_atomically(output, text.encode("utf-8"))
