"""The command line: thin, lazy, and in one tone. Exit codes are those of INTERFACE.md."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from privspec.core.diagnostics import Diagnostic, PrivspecError, UsageError

if TYPE_CHECKING:
    from privspec.model.graph import Model
    from privspec.pipeline import Request
    from privspec.plan import Plan

INFEASIBLE = 4
FAILED = 7
INTERRUPTED = 130
USAGE_ERRORS: Any = typer.BadParameter.__mro__[1]
"""What the command-line library raises for a call it cannot read (its public name differs between versions)."""
READERS = ("public", "auditor", "engineer")

app = typer.Typer(
    name="privspec",
    help="Compile privacy requirements into optimal, certified and explained mechanisms.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
ledger_app = typer.Typer(
    help="The budget of a data set and what has been spent of it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(ledger_app, name="ledger")

SpecPath = Annotated[Path, typer.Argument(metavar="SPEC", help="A .priv file.", show_default=False)]
PlanPath = Annotated[
    Path, typer.Argument(metavar="PLAN", help="A plan that `privspec solve` wrote.", show_default=False)
]
Sets = Annotated[list[str], typer.Option("--set", metavar="NAME=VALUE", help="Set a parameter; may be repeated.")]
Constants = Annotated[
    list[str],
    typer.Option("--constant", metavar="NAME=FILE", help="A public value without one in the spec (CSV or NPY)."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, warnings or tables; errors only.")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON on standard output.")]
Output = Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="Where to write.")]


# --- errors ---------------------------------------------------------------------------------------


def main() -> NoReturn:
    """Run the command line and exit."""
    sys.exit(run_command_line(sys.argv[1:]))


def run_command_line(arguments: list[str]) -> int:
    """Run one command; returns its exit code."""
    try:
        code = app(args=_with_graph_file(arguments), prog_name="privspec", standalone_mode=False)
        return int(code) if isinstance(code, int) else 0
    except PrivspecError as error:
        _print_diagnostics(error.diagnostics)
        return error.exit_code
    except typer.Exit as error:
        return int(error.exit_code)
    except USAGE_ERRORS as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()
            print(file=sys.stderr)
        _print_diagnostics((_usage(error),))
        return 2
    except (KeyboardInterrupt, typer.Abort):
        print("interrupted; nothing was left half-written", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
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


def _usage(error: Any) -> Diagnostic:
    context = getattr(error, "ctx", None)
    name = context.command_path if context is not None else "privspec"
    bare = type(error).__name__ == "NoArgsIsHelpError"
    message = "a command is missing" if bare else error.format_message().rstrip(".")
    return Diagnostic("PS0700", message, help=f"{name} --help shows how it is used")


def _colour() -> bool:
    return sys.stderr.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def _print_diagnostics(diagnostics: tuple[Diagnostic, ...]) -> None:
    from privspec.core.render import render_all

    print(render_all(diagnostics, colour=_colour()), file=sys.stderr, end="")


def _note(text: str, quiet: bool) -> None:
    if not quiet:
        print(text, file=sys.stderr)


@contextmanager
def _progress(quiet: bool) -> Iterator[Any]:
    """A line that shows the current gap on a terminal; nothing elsewhere."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    import time

    last = [0.0]

    def show(iteration: int, value: float, bound: float) -> None:
        if time.monotonic() - last[0] > 0.2:
            last[0] = time.monotonic()
            gap = (value - bound) / value if value > 0 else 1.0
            print(
                f"\r  step {iteration}: loss {value:.6g}, gap {gap:.1e}   ",
                end="",
                file=sys.stderr,
                flush=True,
            )

    try:
        yield show
    finally:
        if last[0]:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


# --- reading what is asked for --------------------------------------------------------------------


EXAMPLES = {"--set": "epsilon=0.5", "--constant": "b=offsets.csv", "--input": "x=data.csv"}
"""What a value of an option looks like."""


def _pairs(values: list[str], option: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in values:
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise UsageError(
                Diagnostic(
                    "PS0720",
                    f"{option} {text}: a name, = and a value are wanted",
                    help=f"{option} {EXAMPLES[option]}",
                )
            )
        found[name.strip()] = value.strip()
    return found


def _request(spec: Path, sets: list[str], constants: list[str]) -> Request:
    from privspec.language.reader import read_source
    from privspec.pipeline import Request

    values = {name: _constant(name, Path(path)) for name, path in _pairs(constants, "--constant").items()}
    return Request(read_source(spec), _pairs(sets, "--set"), values, spec.parent)


def _constant(name: str, path: Path) -> Any:
    from privspec.core.spans import NOWHERE
    from privspec.model.files import read_csv, read_npy
    from privspec.model.reports import Failure

    if not path.is_file():
        raise UsageError(Diagnostic("PS0710", f"the file {path} for {name} does not exist"))
    try:
        return read_npy(path, str(path), NOWHERE) if path.suffix == ".npy" else read_csv(path, str(path), NOWHERE)
    except Failure as error:
        raise UsageError(Diagnostic(error.code, error.message, help=error.help)) from error


def _default_plan(spec: Path) -> Path:
    return spec.with_name(f"{spec.stem}.plan.json")


def _plan(path: Path) -> Plan:
    from privspec.plan import Plan

    plan = Plan.read(path)
    if not plan.feasible:
        raise UsageError(Diagnostic("PS0714", f"{path} says that its spec is infeasible: there is no mechanism in it"))
    return plan


def _warn(model: Model, quiet: bool) -> None:
    if model.warnings and not quiet:
        _print_diagnostics(model.warnings)


# --- commands -------------------------------------------------------------------------------------


@app.command(epilog="Example: privspec check specs/prefix_sums.priv --graph prefix.svg")
def check(
    spec: SpecPath,
    graph: Annotated[bool, typer.Option("--graph", help="Print the graph in words.")] = False,
    graph_out: Annotated[
        Path | None,
        typer.Option("--graph-out", metavar="FILE.svg", help="Draw the graph (also: --graph FILE.svg)."),
    ] = None,
    sets: Sets = [],  # noqa: B006 - typer reads the default and never changes it
    constants: Constants = [],  # noqa: B006
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Parse, resolve and type-check a spec; nothing is solved."""
    from privspec.pipeline import check as check_spec

    model = check_spec(_request(spec, sets, constants))
    _warn(model, quiet)
    if graph_out is not None:
        from privspec.core.files import write_atomically
        from privspec.explain.graph_svg import graph_svg

        write_atomically(graph_out, graph_svg(model).encode("utf-8"))
        _note(f"graph drawn in {graph_out}", quiet)
    if as_json:
        print(json.dumps(_check_json(model), indent=1, ensure_ascii=False))
    elif graph:
        from privspec.explain.graph_words import describe_graph

        print(describe_graph(model))
    elif not quiet:
        print(f"{spec}: {model.name} is well formed")
        for requirement in model.requirements:
            print(f"  line {requirement.line}: {requirement.describe()}")
        print(f"  trust: {model.trust.describe()}")


def _check_json(model: Model) -> dict[str, Any]:
    from privspec.core.render import diagnostic_to_json

    return {
        "name": model.name,
        "inputs": [block.name for block in model.blocks],
        "outputs": [node.name for node in model.outputs],
        "requirements": [{"line": r.line, "text": r.text, "reads": r.describe()} for r in model.requirements],
        "trust": model.trust.name,
        "warnings": [diagnostic_to_json(d) for d in model.warnings],
    }


@app.command(epilog="Example: privspec solve specs/prefix_sums.priv --set epsilon=0.5 -o half.plan.json")
def solve(
    spec: SpecPath,
    sets: Sets = [],  # noqa: B006
    constants: Constants = [],  # noqa: B006
    output: Output = None,
    as_json: AsJson = False,
    solver: Annotated[
        str, typer.Option(help="default: special solvers; cvxpy: the plain program.", metavar="default|cvxpy")
    ] = "default",
    time_limit: Annotated[float | None, typer.Option(help="Seconds until the solver gives up (exit 5).")] = None,
    dump: Annotated[
        str | None,
        typer.Option(metavar="STAGE", help="Print a stage: tree, graph, system, candidates, plan."),
    ] = None,
    quiet: Quiet = False,
) -> int:
    """Compile a spec, solve it to proven optimality, and write the verified plan."""
    from privspec.compile.problem import Settings
    from privspec.pipeline import STAGES
    from privspec.pipeline import solve as solve_spec

    if solver not in ("default", "cvxpy"):
        raise UsageError(Diagnostic("PS0721", f"there is no solver {solver}", help="use default or cvxpy"))
    if dump is not None and dump not in STAGES:
        raise UsageError(Diagnostic("PS0721", f"there is no stage {dump}", help=f"use {', '.join(STAGES)}"))
    if time_limit is not None and not time_limit > 0:
        raise UsageError(Diagnostic("PS0721", "--time-limit takes a positive number of seconds"))
    request = _request(spec, sets, constants)

    def watch(stage: str, result: object) -> None:
        if stage == "graph":
            _warn(result, quiet)  # type: ignore[arg-type]
        if stage == dump:
            print(_shown(stage, result))

    with _progress(quiet) as progress:
        plan = solve_spec(request, Settings(solver=solver, deadline=time_limit, progress=progress), watch)
    if not plan.feasible:
        _print_infeasible(plan, as_json)
        return INFEASIBLE
    plan = plan.write(output or _default_plan(spec))
    if as_json:
        print(plan.to_json(), end="")
    elif not quiet and dump is None:
        print(plan.summary(_width()), end="")
    return 0


def _width() -> int | None:
    import shutil

    return shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else None


def _shown(stage: str, result: object) -> str:
    from pprint import pformat

    if stage == "tree":
        from privspec.language.printer import print_spec

        return print_spec(result)  # type: ignore[arg-type]
    if stage == "graph":
        from privspec.explain.graph_words import describe_graph

        return describe_graph(result)  # type: ignore[arg-type]
    if stage == "plan":
        return str(result.to_json())  # type: ignore[attr-defined]
    return pformat(result, width=110)


def _print_infeasible(plan: Plan, as_json: bool) -> None:
    if as_json:
        print(plan.to_json(), end="")
    from privspec.explain.infeasible import infeasible_text

    print(infeasible_text(plan.document), file=sys.stderr, end="")


@app.command(epilog="Example: privspec explain prefix_sums.plan.json --for auditor -o report.html")
def explain(
    plan: PlanPath,
    reader: Annotated[
        str, typer.Option("--for", metavar="public|auditor|engineer", help="Who will read it.")
    ] = "public",
    output: Output = None,
) -> None:
    """Explain a plan: to the public, to an auditor, or to an engineer (.md, .html or .json by suffix of -o)."""
    if reader not in READERS:
        raise UsageError(Diagnostic("PS0721", f"there is no reader {reader}", help=f"use {', '.join(READERS)}"))
    form = "md" if output is None else output.suffix.lstrip(".").lower()
    if form not in ("md", "html", "json"):
        raise UsageError(Diagnostic("PS0721", f"no explanation is written as .{form}", help="use .md, .html or .json"))
    text = _plan(plan).explain(reader, form)
    if output is None:
        print(text)
    else:
        from privspec.core.files import write_atomically

        write_atomically(output, text.encode("utf-8"))
        _note(f"written to {output}", False)


@app.command(epilog="Example: privspec verify prefix_sums.plan.json")
def verify(plan: PlanPath, as_json: AsJson = False, quiet: Quiet = False) -> int:
    """Re-check every claim of a plan with code that shares nothing with the compiler."""
    from privspec.plan import Plan

    report = Plan.read(plan).verify()
    if as_json:
        claims = [{"name": c.name, "status": c.status, "text": c.text, "margin": c.margin} for c in report.claims]
        print(json.dumps({"verified": report.ok, "claims": claims}, indent=1, ensure_ascii=False))
    elif not quiet:
        print(str(report), end="")
    if report.ok:
        return 0
    failed = tuple(f"{c.name}: {c.text}" for c in report.claims if c.status == "failed")
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


@app.command(epilog="Example: privspec run shops.plan.json --input x=shops.csv -o release.json")
def run(
    plan: PlanPath,
    inputs: Annotated[
        list[str], typer.Option("--input", metavar="NAME=FILE", help="Data: CSV, Parquet, NPY or JSON.")
    ] = [],  # noqa: B006
    ledger: Annotated[
        Path | None, typer.Option(metavar="DB", help="The data set's ledger (default: beside the plan).")
    ] = None,
    output: Output = None,
    strict: Annotated[bool, typer.Option(help="Refuse data that do not fit instead of clipping them.")] = False,
    seed: Annotated[int | None, typer.Option(help="Simulate with this seed: NOT private, nothing is debited.")] = None,
    quiet: Quiet = False,
) -> None:
    """Execute exactly that plan on data; the budget ledger is debited first."""
    from privspec.execute.randomness import SimulationRandomness

    found = _plan(plan)
    paths = {name: Path(path) for name, path in _pairs(inputs, "--input").items()}
    randomness = None if seed is None else SimulationRandomness(seed)
    found_claims = found.verify()
    if not found_claims.ok:
        raise _unverified(plan)
    release = found.run(paths, ledger, output, strict=strict, randomness=randomness)
    if not quiet and release.warnings:
        _print_diagnostics(release.warnings)
    if output is None:
        print(json.dumps(release.to_json(), indent=1))
    else:
        _note(f"released to {output}" + ("" if release.private else " (simulation: not private)"), quiet)


def _unverified(plan: Path) -> PrivspecError:
    from privspec.core.diagnostics import VerificationError

    return VerificationError(
        Diagnostic(
            "PS0910",
            f"{plan} is not verified, so it is not run",
            help=f"`privspec verify {plan}` shows which claim fails",
        )
    )


@app.command(epilog="Example: privspec sweep specs/prefix_sums.priv --over epsilon=0.1:10:log:20 -o frontier.csv")
def sweep(
    spec: SpecPath,
    over: Annotated[str, typer.Option(metavar="NAME=LO:HI:log|lin:COUNT", help="The parameter and its values.")],
    sets: Sets = [],  # noqa: B006
    constants: Constants = [],  # noqa: B006
    output: Output = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE.svg", help="Where to draw the frontier.")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Privacy against loss, over any parameter: a table (CSV or JSON) and a plot."""
    from privspec.sweep import parse_range, sweep_spec, table_csv, table_json

    name, values = parse_range(over)
    rows = sweep_spec(_request(spec, sets, constants), name, values, None if quiet else _sweep_progress())
    as_table = as_json or (output is not None and output.suffix == ".json")
    text = table_json(name, rows) if as_table else table_csv(name, rows)
    if output is None:
        print(text, end="")
    else:
        from privspec.core.files import write_atomically

        write_atomically(output, text.encode("utf-8"))
        _note(f"table written to {output}", quiet)
        plot = plot or output.with_suffix(".svg")
    if plot is not None:
        from privspec.core.files import write_atomically
        from privspec.sweep import frontier_svg

        write_atomically(plot, frontier_svg(name, rows).encode("utf-8"))
        _note(f"frontier drawn in {plot}", quiet)


def _sweep_progress() -> Any:
    def show(done: int, total: int) -> None:
        if sys.stderr.isatty():
            print(
                f"\r  {done} of {total} values",
                end="\n" if done == total else "",
                file=sys.stderr,
                flush=True,
            )

    return show


@app.command(epilog="Example: privspec templates prefix_sums -o mine.priv")
def templates(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", show_default=False)] = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """List the built-in specs, or copy one out (with the files that it reads)."""
    from privspec.templates import copy_template, list_templates, template_text

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


@app.command(epilog="Example: privspec fmt mine.priv --check")
def fmt(
    spec: SpecPath,
    only_check: Annotated[
        bool, typer.Option("--check", help="Change nothing; exit 1 if the file would change.")
    ] = False,
) -> int:
    """Canonical formatting, in place; comments stay."""
    from privspec.core.files import write_atomically
    from privspec.language.formatter import format_source
    from privspec.language.reader import read_source

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


@app.command("explain-error", epilog="Example: privspec explain-error PS0207")
def explain_error(code: Annotated[str, typer.Argument(metavar="CODE", show_default=False)]) -> None:
    """The long form of a diagnostic."""
    from privspec.core.catalogue import explain_code

    print(explain_code(code), end="")


# --- the ledger -----------------------------------------------------------------------------------

LedgerPath = Annotated[Path, typer.Argument(metavar="DB", help="A ledger file.", show_default=False)]


@ledger_app.command("init", epilog="Example: privspec ledger init survey.db --limit 'epsilon=2 delta=1e-6'")
def ledger_init(
    database: LedgerPath,
    limits: Annotated[
        list[str],
        typer.Option("--limit", metavar="'epsilon=2 delta=1e-6'", help="The budget; may be repeated."),
    ],
    change: Annotated[
        bool, typer.Option("--raise", help="Change the limit of a ledger that exists, knowingly.")
    ] = False,
) -> None:
    """Set the budget of a data set."""
    from privspec.execute.ledger import create

    print(create(database, limits, change=change).describe())


@ledger_app.command("show")
def ledger_show(database: LedgerPath) -> None:
    """What was spent and what is left."""
    from privspec.execute.ledger import show

    print(show(database).describe())


@ledger_app.command("verify")
def ledger_verify(database: LedgerPath) -> None:
    """Recompute the chain and every debit."""
    from privspec.execute.ledger import verify as verify_ledger

    verify_ledger(database)
    print(f"{database}: the chain and every debit are in order")


@ledger_app.command("export")
def ledger_export(database: LedgerPath, output: Output = None) -> None:
    """All events as JSON, the chain included."""
    from privspec.core.files import write_atomically
    from privspec.execute.ledger import export

    text = json.dumps(export(database), indent=1) + "\n"
    if output is None:
        print(text, end="")
    else:
        write_atomically(output, text.encode("utf-8"))
