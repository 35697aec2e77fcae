"""For the keeper of the data alone: how they fit a spec or plan, and a report on a real profile of votes beside a plan.

Nothing of it is for publication; nothing is debited, nothing written, nothing spent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from privspec.core.diagnostics import DataError, UsageError
from privspec.core.records import replace
from privspec.execute.data import located
from privspec.execute.family import RunContext, mechanism_of
from privspec.execute.keeper import DataOwnerReport, refuse
from privspec.execute.run import by_person
from privspec.execute.sources import AS_USUAL, Folder, TextFiles
from privspec.model.domains import Table
from privspec.registry import family_of

if TYPE_CHECKING:
    from privspec.execute.warehouse import Select
    from privspec.model.graph import Model
    from privspec.plan import Plan

Selects: TypeAlias = "list[tuple[str, Select]]"
"""What a database is asked, by the input that it is asked for."""


def profile_text(plan: Plan, data: Mapping[str, Any]) -> str:
    """The report as Markdown; every figure in it depends on private data.

    Args: data, the ballots by the name of the plan's input: a path, or an object in memory.
    Raises: UsageError PS0721 if the plan draws no winner by lot; DataError for ballots that cannot be read;
        VerificationError PS0910.
    """
    from privspec.execute.family import RunContext
    from privspec.explain.paper import profile_report
    from privspec.explain.reports import to_markdown
    from privspec.explain.voting_rules import RULES
    from privspec.families.voting.execution import VotingMechanism

    plan = plan.verified()
    if plan.stated.mechanism.family not in RULES:
        raise UsageError.of(
            "PS0721",
            "this plan draws no winner by lot: there is nothing to say of a profile of votes",
            help="leave --profile out",
        )
    try:
        mechanism = VotingMechanism.of_plan(plan.document)
        ballots = mechanism.ballots(data, RunContext(plan.model()))
        document = profile_report(plan.stated, ballots.each())
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError.of("PS0711", f"this plan cannot be read: {error}") from error
    return to_markdown(document)


# --- how data fit ---------------------------------------------------------------------------------


def fit_of_plan(
    plan: Plan, data: Mapping[str, Any], texts: TextFiles = AS_USUAL, selects: Selects | None = None
) -> DataOwnerReport:
    """How data fit, read as a run of the plan reads them.

    Args: texts, how text files are written; selects, takes the SQL that a run asks of tables of records, which are then
        not read.
    Raises: DataError where their structure does not fit, as a run does; VerificationError PS0910.
    """
    plan = plan.verified()
    circumstances = _circumstances(plan.model(), texts, selects)
    with _remarked(circumstances.keeper, data):
        found = by_person(plan.document, data, circumstances)
        mechanism_of(plan.document).read(found, circumstances)
    return circumstances.keeper


def fit_of_spec(
    model: Model, data: Mapping[str, Any], texts: TextFiles = AS_USUAL, selects: Selects | None = None
) -> DataOwnerReport:
    """How data fit, read as a run of the spec's plan will read them; nothing is solved.

    Raises: DataError where their structure does not fit, as a run does.
    """
    circumstances = _circumstances(model, texts, selects)
    names = [model.through.get(block.name, block.name) for block in model.blocks]
    tables = [block.base_domain for block in model.blocks if isinstance(block.base_domain, Table)]
    names += dict.fromkeys(own.made.source.table for one in tables for _, own in one.gathered)
    for name in data:
        if name not in names:
            refuse("PS0801", f"the spec has no input {name}", help=f"its inputs are {', '.join(names)}")
    with _remarked(circumstances.keeper, data):
        document = _problem(model) if any(table.gathered for table in tables) else {}
        family_of(model).fits(model, by_person(document, data, circumstances), circumstances)
    return circumstances.keeper


def _problem(model: Model) -> dict[str, Any]:
    from privspec.kernel.writing import write
    from privspec.problem.elaborate import elaborate

    return {"problem": write(elaborate(model))}


@contextmanager
def _remarked(keeper: DataOwnerReport, data: Mapping[str, Any]) -> Iterator[None]:
    """Tells the keeper of columns of several kinds; what is remarked is not lost where data are refused."""
    try:
        yield
        for name, source in data.items():
            found = located(name, source)
            for remark in found.remarks() if isinstance(found, Folder) else ():
                keeper.remark(name, remark)
    except DataError as error:
        first, *others = error.diagnostics
        said = (f"{name}: {text}" for name, texts in keeper.remarks.items() for text in texts)
        raise DataError([replace(first, notes=(*first.notes, *said)), *others]) from None


def _circumstances(model: Model | None, texts: TextFiles, selects: Selects | None) -> RunContext:
    keeper = DataOwnerReport()
    return RunContext(model, texts=replace(texts, told=keeper.remark), keeper=keeper, selects=selects)


def sql_text(selects: Selects, dialect: str | None = None) -> str:
    """The SELECTs that a run asks, as they are sent to DuckDB, or in another dialect: as a text that nothing runs.

    Raises: UsageError PS0819 without sqlglot, PS0721 if it knows no such dialect, or nothing is asked of a database.
    """
    if not selects:
        raise UsageError.of(
            "PS0721",
            "these data are asked of no database",
            help="--sql is for tables of records in DATABASE.duckdb::TABLE or in Parquet",
        )
    if dialect is None:
        return "".join(f"{select.text};\n" for _, select in selects)
    try:
        import sqlglot
    except ImportError:
        raise UsageError.of(
            "PS0819",
            "other dialects of SQL are written by sqlglot, which is not installed",
            help="pip install 'privspec[warehouse]'",
        ) from None
    try:
        found = (sqlglot.transpile(one.on(name), "duckdb", dialect, pretty=True)[0] for name, one in selects)
        return "".join(f"{text};\n" for text in found)
    except (ValueError, sqlglot.errors.SqlglotError) as error:
        raise UsageError.of("PS0721", f"this cannot be written in the dialect {dialect}: {error}") from None


def report_text(keeper: DataOwnerReport, paths: Mapping[str, Path]) -> str:
    """The report as people read it: a line for each column, and what does not fit below it."""
    files = ", ".join(dict.fromkeys(path.name for path in paths.values()))
    lines = [f"{files}, for their keeper only", *(f"  {line}" for line in keeper.report())]
    return "\n".join([*lines, "nothing was read for release, and nothing was spent"]) + "\n"
