"""The whole way, top to bottom: text, tree, graph, system of numbers, options, program, solution, plan, certificate.

Every arrow is a function of its own package; this file only puts them in order. `--dump STAGE` of the command
line prints what one of them returns.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from privspec.core.diagnostics import SolveError, UsageError, VerificationError
from privspec.core.records import dataclass, field
from privspec.core.spans import Source

if TYPE_CHECKING:
    from privspec.families.decision import Decision, Infeasible
    from privspec.families.family import Settings
    from privspec.families.program import Form
    from privspec.model.graph import Model
    from privspec.plan import Plan

STAGES = ("tree", "graph", "problem", "system", "candidates", "program", "plan")
"""What `--dump` can show."""

Watcher = Callable[[str, object], None]
"""Called with the name of each stage and what it gave."""


@dataclass(frozen=True, eq=False, slots=True)
class Request:
    """A spec with the public values given from outside: `--set`, `--constant`, and where its files are."""

    source: Source
    parameters: Mapping[str, Any] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    base: Path | None = None


def check(request: Request) -> Model:
    """Text to typed graph.

    Raises: SpecError with every diagnostic of the file.
    """
    import privspec.functions  # noqa: F401 - specs are read with the functions that it provides
    from privspec.model.build import load_model

    return load_model(request.source, parameters=request.parameters, constants=request.constants, base=request.base)


def solve(request: Request, settings: Settings | None = None, watch: Watcher | None = None) -> Plan:
    """A spec to a verified plan; or, if its requirements cannot hold together, to a plan that says why.

    Raises: SpecError for the spec (PS05xx: what solve cannot compute yet), SolveError when no answer comes within
    the limits or there is too little memory, VerificationError if the independent checker does not confirm the plan.
    `watch` is given "work" too, before long work: what it will take, in words.
    """
    from privspec.core.machine import fitting_threads
    from privspec.families.decision import Infeasible
    from privspec.families.family import Settings, Weighed, compiler_of
    from privspec.plan import Plan
    from privspec.problem.elaborate import elaborate

    tell, begun = watch or _nobody, perf_counter()
    model = check(request)
    tell("tree", model.spec)
    tell("graph", model)
    family = compiler_of(model)
    system = family.lower(model)
    if watch is not None and not isinstance(system, Infeasible):
        tell("problem", elaborate(model))
    tell("system", system)
    if isinstance(system, Infeasible):
        return Plan(system.document(model))
    work = family.work(system) if isinstance(family, Weighed) else None
    if work is not None and (announced := work.announced()) is not None:
        tell("work", announced)
    with fitting_threads(family.size(system)), within_limits():  # of the document too: its prices are solved for
        decision = family.decide(model, system, settings or Settings())
        tell("candidates", decision)
        tell("program", decision)
        if isinstance(decision, Infeasible):
            return Plan(decision.document(model))
        document = decision.document()
    plan = finished(document, model, begun)
    tell("plan", plan)
    return plan


def finished(document: dict[str, Any], model: Model, begun: float | None = None) -> Plan:
    """A decision's plan with what follows from it, once it was verified; `begun`: since when somebody waits for it.

    Raises: VerificationError.
    """
    from privspec.plan import Plan

    found = _with_errors(_with_exposures(document), model)
    return confirm(Plan(found if begun is None else _timed(found, begun)))


def program(model: Model, settings: Settings | None = None) -> Form:
    """The convex program of a spec, as the family that solves it states it.

    Raises: SpecError, SolveError as by `solve`; SolveError PS0614 where the mechanism is no optimum of such a program.
    """
    from privspec.core.machine import fitting_threads
    from privspec.families.decision import Infeasible
    from privspec.families.family import Settings, compiler_of

    family = compiler_of(model)
    system = family.lower(model)
    if isinstance(system, Infeasible):
        raise _no_program(system.reason)
    with fitting_threads(family.size(system)), within_limits():
        return form_of(family.decide(model, system, settings or Settings()))


def form_of(decision: Decision | Infeasible) -> Form:
    """The program of a decision.

    Raises: SolveError PS0614 where it has none.
    """
    from privspec.families.decision import Infeasible

    found = decision.reason if isinstance(decision, Infeasible) else decision.program()
    if isinstance(found, str):
        raise _no_program(found)
    return found


def settle(form: Form, found: Mapping[str, Any], other: Model | None = None) -> Plan:
    """The verified plan of values of a program's variables; at another model, which asks for other amounts.

    Raises: SolveError, also PS0614 where another mechanism is taken at these amounts; VerificationError.
    """
    if other is not None:
        again = program(other)
        if again.unknown != form.unknown:
            raise _no_program("at these amounts the spec takes a mechanism of another kind; load it with them")
        form = again
    with within_limits():
        document = form.settle(found).document()
    return finished(document, form.model)


def _no_program(why: str) -> SolveError:
    return SolveError.of("PS0614", f"there is no convex program to show: {why}")


def _timed(document: dict[str, Any], begun: float) -> dict[str, Any]:
    """The plan with the seconds that somebody waited for it: not those of one solver alone."""
    from privspec.families.decision import sealed

    remarks = document["remarks"]
    solver = remarks["solver"] | {"seconds": perf_counter() - begun}
    return sealed({**document, "remarks": remarks | {"solver": solver}})


def _with_exposures(document: dict[str, Any]) -> dict[str, Any]:
    """The plan with what observers may learn beyond what any one line says, where there is such."""
    if not document["problem"]["views"]:
        return document
    from privspec.families.decision import exposures_of, sealed

    return sealed(document | {"exposures": exposures_of(document)})


def _with_errors(document: dict[str, Any], model: Model) -> dict[str, Any]:
    """The plan with the errors that are predicted of outputs that are computed from others."""
    if not model.computed or model.open:
        return document
    from privspec.execute.family import mechanism_of
    from privspec.execute.predicted import remark
    from privspec.families.decision import sealed
    from privspec.model.reports import Failure

    try:
        found = remark(mechanism_of(document), model)
    except Failure as failure:
        raise failure.of_spec(model.source) from failure
    return sealed(document | {"remarks": document["remarks"] | {"computed": found}}) if found else document


@contextmanager
def within_limits() -> Iterator[None]:
    """What a solver cannot do within its limits, as a diagnostic.

    Raises: SolveError PS0610 when no answer comes within the limits of time and of doubles.
    """
    from numpy.linalg import LinAlgError

    from privspec.kernel.core.reading import Refused
    from privspec.solvers.programs import OutOfTimeError, SolverError

    try:
        yield
    except Refused as reason:
        why = "the independent check does not read exact numbers as long as these"
        advice = "use fewer people or records, or amounts and weights with fewer digits"
        raise _no_answer(why, advice, str(reason)) from reason
    except (LinAlgError, ArithmeticError) as error:
        advice = "scale inputs, weights and targets to similar ranges, or try --solver cvxpy"
        raise _no_answer("the numbers of this spec differ too much in size, or are too large", advice) from error
    except OutOfTimeError as error:
        raise _no_answer(str(error), "allow more time with --time-limit") from error
    except SolverError as error:
        raise _no_answer(str(error), error.advice) from error


def _no_answer(why: str, advice: str, *notes: str) -> SolveError:
    return SolveError.of("PS0610", f"no answer within the limits: {why}", *notes, help=advice)


def _nobody(stage: str, result: object) -> None:
    pass


def confirm(plan: Plan) -> Plan:
    """The plan once it was verified; without its bound where nothing but that fails.

    Raises: VerificationError PS0620 with the claims that failed: a bug of ours, never the user's fault.
    """
    from privspec.families.decision import ABOUT_BETTER_ONES, without_bound
    from privspec.plan import Plan

    report = plan.verify()
    if not report.ok and {claim.name for claim in report.failed} <= ABOUT_BETTER_ONES:
        plan = Plan(without_bound(plan.document), plan.path)
        report = plan.verify()
    if not report.ok:
        raise VerificationError.of(
            "PS0620",
            "the plan that was found did not pass the independent check, so it is not shown",
            *(f"{claim.name}: {claim.text}" for claim in report.failed),
            help="please report this with the spec; no guarantee was given and nothing was released",
        )
    return plan


def spec_source(path: Path) -> tuple[Source, Path]:
    """A spec, and the folder of the files that it names: a file, `-` for standard input, or the name of a template.

    Raises: UsageError if there is none, SpecError if it is not UTF-8.
    """
    from privspec.language.parser import decode_source, read_source

    if str(path) == "-":
        return decode_source("standard input", sys.stdin.buffer.read()), Path()
    if path.exists() or path.suffix or len(path.parts) != 1:
        return read_source(path), path.parent
    from privspec.core.suggest import nearest

    built_in = files("privspec.specs")
    names = [entry.name.removesuffix(".priv") for entry in built_in.iterdir() if entry.name.endswith(".priv")]
    if str(path) not in names:
        near = nearest(str(path), names)
        hint = f"did you mean {near}?" if near else "`privspec templates` lists the built-in specs"
        raise UsageError.of("PS0701", f"there is no file and no built-in spec {path}", help=hint)
    with as_file(built_in) as folder:
        return read_source(folder / f"{path}.priv"), folder
