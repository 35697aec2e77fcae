"""How many records each person has, as a public law: `count(visits, by = {person}) ~ empirical(csv("visits.csv"))`.

It serves what a choice of k in `one person with at most k records` costs, and nothing else: guarantees hold for all
data. The people are as many as the party of that name (`parties: person in 1..1000`), or as the list of an empirical
law; the numbers of their records are independent draws from the law.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np

from privspec.language import syntax
from privspec.language.spelling import spell
from privspec.model.domains import Domain, Table
from privspec.model.evaluate import Environment, evaluate
from privspec.model.priors import law_of
from privspec.model.reports import Failure, Report
from privspec.model.requirements import DataModel, RecordsLaw

MOST = 255
"""Records that a person may have under a law that does not say how many at most."""
LISTED = 2**16
"""Records that a person may have under any law."""


def set_laws_apart(spec: syntax.Spec) -> tuple[syntax.Spec, tuple[syntax.Relation, ...]]:
    """The spec without its laws of records per person, and these."""
    relations = (one for one in spec.background if isinstance(one, syntax.Relation) and one.op == "~")
    found = tuple(one for one in relations if _of_records(one))
    return replace(spec, background=tuple(one for one in spec.background if one not in found)), found


def _of_records(statement: syntax.Relation) -> tuple[str, str] | None:
    """The table and the column of `count(visits, by = {person}) ~ ...`; None for any other statement."""
    match statement.left:
        case syntax.Call(function="count", arguments=(syntax.Name(id=table), syntax.Keyword(name="by", value=by))):
            match by:
                case syntax.SetOf(items=(syntax.Name(id=column),)) | syntax.SetOf(items=(syntax.String(value=column),)):
                    return table, column
    return None


def read_laws(
    statements: Sequence[syntax.Relation], domains: Mapping[str, Domain], environment: Environment, report: Report
) -> tuple[RecordsLaw, ...]:
    """The laws as they are stated; what is wrong with one is told."""
    named = [(one, of) for one in statements if (of := _of_records(one))]
    found = [report.told(partial(_read, one, *of, domains, environment, report)) for one, of in named]
    return tuple(one for one in found if one is not None)


def _read(
    statement: syntax.Relation,
    name: str,
    person: str,
    domains: Mapping[str, Domain],
    environment: Environment,
    report: Report,
) -> RecordsLaw:
    table, law = domains.get(name), statement.right
    if not isinstance(table, Table) or person not in table.ids:
        text, hint = f"{name} has no column {person} that says whose a record is", f"table({person} in id, ...)"
        if isinstance(table, Table) and person in table.names:
            said = f"{spell(statement.left)}"
            hint = f"a law of other counts has a name: `intermediate sizes`, `sizes = {said}`, `sizes ~ ...`"
            raise Failure("PS0531", statement.left.span, text, help=hint)
        raise Failure("PS0531", statement.left.span, text, help=f"declare the column: {hint}")
    if not isinstance(law, syntax.Call):
        hint = f"as in {spell(statement.left)} ~ poisson(4), or ~ empirical(numbers)"
        raise Failure("PS0531", law.span, "a law of records a person is expected here", help=hint)
    plain = [one for one in law.arguments if not isinstance(one, syntax.NO_EXPRESSION)]
    first, last, listed = 0, MOST, list[Fraction]()
    if law.function in ("categorical", "empirical") and plain:
        listed = [Fraction(one) for one in np.asarray(evaluate(plain[0], environment)).ravel().tolist()]
    if law.function == "categorical":
        first, last = 1, len(listed)
    elif listed:
        if max(listed) > LISTED or any(one < 0 or one.denominator > 1 for one in listed):
            raise Failure("PS0531", law.span, f"numbers of records are whole, from 0 to {LISTED:,}")
        last = int(max(listed))
    data = DataModel(name, law.function, law.arguments, law.span, report.line(statement.span)[0])
    chances = law_of(data, [Fraction(value) for value in range(first, last + 1)], environment)
    people = environment.parties.get(person, len(listed) if law.function == "empirical" else None)
    if people is None:
        hint = f"say for how many people the error is predicted: parties: {person} in 1..1000"
        raise Failure("PS0531", statement.span, "nothing says how many people there are", help=hint)
    return RecordsLaw(name, person, people, (Fraction(0),) * first + chances, statement.span)
