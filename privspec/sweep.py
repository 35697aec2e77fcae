"""Privacy against loss over any parameter; one solve serves all values that only scale the budgets."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from privspec.core.diagnostics import PrivspecError, SolveError, SpecError, UsageError, VerificationError
from privspec.core.machine import fitting_threads
from privspec.core.records import asdict, dataclass, replace
from privspec.families.decision import Infeasible
from privspec.families.family import Settings, compiler_of
from privspec.language import syntax
from privspec.pipeline import Request, check, confirm, within_limits
from privspec.plan import Plan

MOST_VALUES = 10_000
LARGEST_EXPONENT = 150


@dataclass(frozen=True, slots=True)
class Row:
    """One value of the parameter: the least loss, its certified lower bound, the mechanism that reaches it.

    `status`: solved; infeasible where the requirements cannot hold together, refused where the value makes no spec that
    can be computed, unsolved where no answer came. `loss` is then None, and `mechanism` says why.
    """

    value: str
    loss: float | None
    lower_bound: float | None
    relative_gap: float | None
    mechanism: str
    status: str = "solved"


def parse_range(text: str) -> tuple[str, tuple[str, ...]]:
    """`epsilon=0.1:10:log:20` or `epsilon=0.1,0.5,1`: the parameter and its values as exact decimals.

    Raises: UsageError PS0722.
    """
    name, _, body = text.partition("=")
    help_ = "write --over epsilon=0.1:10:log:20, --over n=1:9:lin:9 or --over epsilon=0.1,0.5,1"
    problem = UsageError.of("PS0722", f"--over {text} is not a range of values", help=help_)
    if not name.strip() or not body.strip():
        raise problem
    parts = body.split(":")
    listed = tuple(value.strip() for value in body.split(",") if value.strip())
    if len(parts) == 1 and listed:
        return name.strip(), listed
    if len(parts) != 4 or parts[2] not in ("log", "lin"):
        raise problem
    try:
        low, high, count = _end(parts[0]), _end(parts[1]), int(parts[3])
    except (ValueError, ArithmeticError) as error:
        raise problem from error
    if not 1 <= count <= MOST_VALUES or low > high or (parts[2] == "log" and low <= 0):
        raise problem
    return name.strip(), tuple(_values(low, high, parts[2] == "log", count))


def _end(text: str) -> Fraction:
    """An exact number of a size that doubles have.

    Raises: ValueError, ArithmeticError.
    """
    top, _, bottom = text.partition("/")
    for part in (top, bottom or "1"):
        if abs(Decimal(part).adjusted()) > LARGEST_EXPONENT:
            raise ValueError("out of range")
    return Fraction(Decimal(top)) / Fraction(Decimal(bottom or "1"))


def _values(low: Fraction, high: Fraction, log: bool, count: int) -> list[str]:
    if count == 1:
        return [_decimal(float(low))]
    steps = [i / (count - 1) for i in range(count)]
    if log:
        a, b = math.log(low), math.log(high)
        inner = [math.exp(a + (b - a) * t) for t in steps]
    else:
        inner = [float(low) + float(high - low) * t for t in steps]
    inner[0], inner[-1] = float(low), float(high)
    return [_decimal(v) for v in inner]


def _decimal(value: float) -> str:
    return f"{value:.6g}"


def sweep_spec(
    request: Request,
    name: str,
    values: Sequence[str],
    progress: Callable[[int, int], None] | None = None,
    settings: Settings | None = None,
) -> tuple[Row, ...]:
    """Solve a spec for every value of one parameter; a value that fails has a row that says so.

    Raises: SpecError, SolveError, VerificationError of the first value if all of them fail.
    """
    base = settings or Settings()
    shared = replace(base, alternatives=False)
    rows: list[Row] = []
    failures: list[PrivspecError] = []
    for done, value in enumerate(values, start=1):
        at = replace(request, parameters={**request.parameters, name: value})
        # the ends are checked like any plan; between them loss and bound come from the same solve or their own bound
        try:
            rows.append(_row(at, value, shared, checked=done in (1, len(values))))
        except (SpecError, SolveError, VerificationError) as error:
            failures.append(error)
            status = "refused" if isinstance(error, SpecError) else "unsolved"
            why = "; ".join(f"{d.code}: {d.message}" for d in error.diagnostics)
            rows.append(Row(value, None, None, None, why, status))
        if progress is not None:
            progress(done, len(values))
    if failures and len(failures) == len(rows):
        raise failures[0]
    return tuple(rows)


def _row(request: Request, value: str, settings: Settings, *, checked: bool) -> Row:
    model = check(request)
    family = compiler_of(model)
    system = family.lower(model)
    if isinstance(system, Infeasible):
        return Row(value, None, None, None, system.reason, "infeasible")
    with fitting_threads(family.size(system)), within_limits():
        decision = family.decide(model, system, settings)
        if isinstance(decision, Infeasible):
            return Row(value, None, None, None, decision.reason, "infeasible")
        loss, bound = decision.loss, decision.lower_bound
        if checked:
            bound = confirm(Plan(decision.document())).loss.lower_bound
    gap = None if bound is None or not loss else max((loss - bound) / abs(loss), 0.0)
    return Row(value, loss, bound, gap, decision.name)


def table_csv(name: str, rows: Sequence[Row]) -> str:
    """The rows as CSV, the parameter first."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([name, "loss", "lower_bound", "relative_gap", "mechanism", "status"])
    for row in rows:
        cells = [row.value, row.loss, row.lower_bound, row.relative_gap, row.mechanism, row.status]
        writer.writerow(["" if c is None else c for c in cells])
    return out.getvalue()


def table_json(name: str, rows: Sequence[Row]) -> str:
    """The rows as JSON."""
    found: list[dict[str, Any]] = [asdict(row) for row in rows]
    return json.dumps({"format": "privspec-sweep/1.0", "over": name, "rows": found}, indent=1) + "\n"


def frontier_svg(name: str, rows: Sequence[Row]) -> str | None:
    """Loss against the swept parameter with its certified lower bound, as a complete SVG file.

    A loss that is negative everywhere (how many rounds of votes fit, say) is drawn as the amount that is gained.
    None where no value that is a number above 0 has a loss to draw.
    """
    from privspec.explain import drawing

    solved = [row for row in rows if row.loss is not None]
    gained = bool(solved) and all(row.loss < 0 for row in solved if row.loss is not None)
    sign, label, limit = (-1, "minus the loss", "upper") if gained else (1, "loss", "lower")
    points, bounds = list[tuple[float, float]](), list[tuple[float, float]]()
    for row in solved:
        place = _place(row.value)
        for found, value in ((points, row.loss), (bounds, row.lower_bound)):
            if place is not None and place > 0 and value is not None and sign * value > 0:
                found.append((place, sign * value))
    if not points:
        return None
    lines = [drawing.Line(label, sorted(points), dots=True)]
    if bounds:
        words = f"certified {limit} bound"
        lines.append(drawing.Line(words, sorted(bounds), drawing.SECOND, drawing.DASHED))
    return drawing.line_chart(lines, (), name, label, alone=True)


def _place(value: str) -> float | None:
    """Where a value stands on the axis; None for what is no number."""
    try:
        return float(_end(value))
    except (ValueError, ArithmeticError):
        return None


# --- files -----------------------------------------------------------------------------------------------


def sweep_files(
    output: Path | None, plot: Path | None, taken: Iterable[Path], *, as_json: bool = False
) -> tuple[Path | None, Path | None]:
    """Where the table and the plot go: `-o` names one of them, and the other stands beside it.

    Args: taken, the spec and the files that it reads.
    Raises: UsageError PS0721 for other suffixes, and for names that would overwrite these.
    """
    table = output
    if output is not None and output.suffix == ".svg":
        table, plot = output.with_suffix(".json" if as_json else ".csv"), plot or output
    elif output is not None:
        plot = plot or output.with_suffix(".svg")
    help_ = "-o frontier.csv, -o frontier.json or -o frontier.svg write a table and a plot"
    for path, forms in ((table, (".csv", ".json")), (plot, (".svg",))):
        if path is not None and path.suffix not in forms:
            what = "table of a sweep" if path is table else "plot"
            text = f"no {what} is written as {path.suffix or path.name}"
            raise UsageError.of("PS0721", text, help=help_)
        if path is not None and path.resolve() in {other.resolve() for other in taken}:
            text = f"{path} would be overwritten, and this sweep reads it"
            raise UsageError.of("PS0721", text, help="give -o another name")
    return table, plot


def files_of(request: Request) -> tuple[Path, ...]:
    """The files that a spec names.

    Raises: SpecError if it cannot be read.
    """
    from privspec.language.parser import parse
    from privspec.language.walk import walk

    base = request.base or Path()
    found = []
    for node in walk(parse(request.source)):
        match node:
            case syntax.Call(function="csv" | "npy" | "spec", arguments=(syntax.String(value=name), *_)):
                found.append(base / name)
    return tuple(found)
