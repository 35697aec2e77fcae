"""A plan of the family "table" as a mechanism that can be run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import UsageError
from privspec.core.records import dataclass, replace
from privspec.core.rounding import log_up
from privspec.execute.ballot_files import Form, holds_ballots
from privspec.execute.ballots import read_ballots, refuse_number
from privspec.execute.budget import Spend, names_of
from privspec.execute.data import located
from privspec.execute.drawing import TableLaw, atom_of, base_of, read_places
from privspec.execute.family import (
    PARTY,
    Circumstances,
    Drawn,
    Exposure,
    FamilyMechanism,
    Keys,
    LocalReports,
    Mechanism,
    Plan,
    Rounds,
    Secret,
    Simulation,
    no_messages,
    refuse_keys,
    refuse_long_simulation,
    refuse_unknown,
)
from privspec.execute.keeper import STRICT_RULE, given_for, refuse
from privspec.execute.reading import Declared
from privspec.families.tables.rows import RULE, LabelledRows, ModelRows, Reports, read_reports
from privspec.model.domains import Rankings
from privspec.model.measures import MetricDP
from privspec.model.spaces import order_matters
from privspec.noise.samplers import Randomness, SimulationRandomness

if TYPE_CHECKING:
    from privspec.model.graph import Model
    from privspec.model.neighbours import InputBlock
    from privspec.model.values import Value


CENTRAL_RULE = f"each entry {RULE}"


@dataclass(frozen=True, eq=False, slots=True)
class OneRow(Secret):
    """The row that the data pick."""

    law: TableLaw
    row: int
    strict: bool
    applied: tuple[str, ...] = (CENTRAL_RULE,)

    @property
    def rules(self) -> tuple[str, ...]:
        """What was done with values outside their domains."""
        return (STRICT_RULE,) if self.strict else self.applied

    def draw(self, randomness: Randomness) -> Drawn:
        drawn = self.law.laws[self.row].draw(randomness)
        return Drawn({name: np.asarray(values[drawn]) for name, values in self.law.columns.values().items()})


def read_central(law: TableLaw, rows: ModelRows, data: Mapping[str, Any], circumstances: Circumstances) -> OneRow:
    """Reads every input in its declared shape.

    Raises: DataError (PS0802 to PS0809); UsageError (PS0820) if the table has no row for what the data amount to.
    """
    values, applied = read_values(rows, data, circumstances)
    row = rows.row_of(values)
    if row is None:
        raise UsageError.of(
            "PS0820",
            f"the plan has no row for a value of {', '.join(rows.of)} that the spec allows",
            help="solve the spec again with this version of privspec",
        )
    return OneRow(law, row, circumstances.strict, applied)


def read_values(
    rows: ModelRows, data: Mapping[str, Any], circumstances: Circumstances
) -> tuple[dict[str, Value], tuple[str, ...]]:
    """The values of all inputs, and the rules that were applied to them.

    Raises: DataError (PS0801 to PS0809).
    """
    values: dict[str, Value] = {}
    applied: dict[str, None] = {}
    for block in rows.blocks:
        source = given_for(block.name, data)
        form = _ballots(rows, block, source, header=circumstances.header)
        if form is None:
            values[block.name] = _read_value(rows, block, located(block.name, source), circumstances)
            applied[CENTRAL_RULE] = None
        else:
            values[block.name] = _read_ballots(rows, block, form, source, circumstances)
            applied |= dict.fromkeys(form.rules(strict=circumstances.strict))
    return values, tuple(applied)


def _ballots(rows: ModelRows, block: InputBlock, source: Any, *, header: bool) -> Form | None:
    """The ballots that a source holds, for an input of one value per party whose order nothing looks at."""
    if block.index is None or order_matters(rows.model, block.name):
        return None
    form = Form.of_block(block)
    return form if form is not None and header and holds_ballots(form, source) else None


def _read_ballots(rows: ModelRows, block: InputBlock, form: Form, source: Any, circumstances: Circumstances) -> Value:
    """The value of an input from its ballots, in any order."""
    strict, header, keeper = circumstances.strict, circumstances.header, circumstances.keeper
    found = read_ballots(form, source, strict=strict, header=header, keeper=keeper)
    if found.number != block.type.size:
        refuse_number(form, block.type.size, found.number)
    ranked = isinstance(block.type.element, Rankings)
    each = ((ballot if ranked else ballot[0], count) for ballot, count in found.each())
    return rows.value(block, [value for value, count in each for _ in range(count)])


def _read_value(rows: ModelRows, block: InputBlock, source: Any, circumstances: Circumstances) -> Value:
    """The value of an input, each entry put into its domain by itself."""
    atom = atom_of(tuple(base_of(block.domain).elements()))
    places = read_places(atom, Declared(block.name, block.type.shape, block.index), source, circumstances)
    return rows.value(block, [atom.elements[place] for place in places])


class TableExposure(Exposure):
    """All outputs of a table are drawn jointly.

    Local reports cost each person their own budget, all the same amount, so one run is one debit.
    """

    @property
    def outputs(self) -> frozenset[str]:
        return frozenset(str(name) for name in self.plan["mechanism"]["releases"])

    @property
    def rounds(self) -> Rounds | None:
        return Rounds.of_plan(self.plan)

    def covers(self, requirement: int, outputs: frozenset[str]) -> bool:
        """Divergences of one order add up with nothing else, and figures of people's own are not everybody's."""
        measures = {g["measure"] for g in self.plan["guarantees"] if g.get("requirement") == requirement}
        own = any("RDP" in one or one.startswith("personalised") for one in measures)
        return self.outputs <= outputs and not own

    def joint_spend(self, model: Model, requirement: int) -> Spend | None:
        """The least pure epsilon of the joint output over the rows that the requirement compares."""
        from privspec.model.worlds import worlds

        found = model.requirements[requirement]
        if isinstance(found.measure, MetricDP):
            return None
        law = TableLaw.of_plan(self.plan)
        ratio = Fraction(1)
        for a, b in worlds(model).neighbours(found).pairs.tolist():
            one, other = law.laws[a], law.laws[b]
            for top, bottom in zip(one.weights, other.weights, strict=True):
                if top and not bottom:
                    return None
                # cross-multiplied: building a fraction for each entry would take the greatest common divisor
                left, right = top * other.total, bottom * one.total
                if left * ratio.denominator > right * ratio.numerator:
                    ratio = Fraction(left, right)
        return Spend(pure=log_up(ratio))


def is_local(model: Model | None, rows: ModelRows | None, measures: Iterable[str]) -> bool:
    """Whether every record of the data is one person's, who makes a report of their own.

    So it is where nobody is trusted, and where a guarantee is about any two values of one report (LDP, metric privacy);
    inputs that are indexed by their parties are data of all of them.
    """
    of_reports = any("-LDP" in measure or "metric-DP" in measure for measure in measures)
    if model is None or rows is None:
        return of_reports
    shared = any(model.nodes[block.name].index is not None for block in rows.blocks)
    return not shared and (of_reports or model.trust.name == "nobody")


@dataclass(frozen=True, eq=False, slots=True)
class FiniteMechanism(FamilyMechanism):
    """A table, and the measures of its guarantees."""

    law: TableLaw
    of: tuple[str, ...]
    labels: tuple[Any, ...]
    inputs: frozenset[str]
    measures: tuple[str, ...]
    alone: bool

    @classmethod
    def of_plan(cls, plan: Plan) -> FiniteMechanism:
        mechanism, guarantees = plan["mechanism"], plan.get("guarantees", ())
        return cls(
            TableLaw.of_plan(plan),
            tuple(str(name) for name in mechanism["of"]),
            tuple(mechanism["inputs"]),
            frozenset(name for g in guarantees for name in names_of(g.get("wrt", ()))),
            tuple(str(g["measure"]) for g in guarantees),
            plan.get("problem", {}).get("trust", {}).get("kind") == "nobody",
        )

    @staticmethod
    def fit(model: Model, data: Mapping[str, Any], circumstances: Circumstances) -> None:
        from privspec.families.tables.rows import ModelRows, encode

        rows = ModelRows(model, tuple(block.name for block in model.blocks), ())
        if is_local(model, rows, [requirement.measure.name for requirement in model.requirements]):
            encode(rows, data, circumstances)
        else:
            read_values(rows, data, circumstances)

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.law.columns.fields)

    def local(self, model: Model | None) -> bool:
        """Whether every record of the data is one person's, who makes a report of their own."""
        return is_local(model, None if model is None else self._rows(model), self.measures)

    def local_reports(self, model: Model | None) -> LocalReports | None:
        """The table, where every record gets a draw of its own."""
        if not self.local(model):
            return None
        return LocalReports(self.law, self.law.rows.texts if model is None else self._rows(model).texts)

    def read(self, data: Mapping[str, Any], circumstances: Circumstances) -> Secret:
        """Local reports, one a row; else the inputs as the spec lays them out.

        Without a spec, rows are taken to be labelled by the inputs themselves.
        """
        model = circumstances.model
        known = set(self.of) | self.inputs if model is None else {node.name for node in model.inputs}
        refuse_unknown(data, sorted(known))
        if not data:
            given_for(self.of[0], data)
        if model is not None and not self.local(model):
            return read_central(self.law, self._rows(model), data, circumstances)
        rows = LabelledRows(self.law.rows) if model is None else self._rows(model)
        reports = read_reports(self.law, rows, data, circumstances)
        if self.local(model):
            return reports
        if len(reports.chosen) > 1:
            refuse("PS0805", f"{', '.join(self.of)} is declared with size 1, the data have size {len(reports.chosen)}")
        return OneRow(self.law, int(reports.chosen[0]), circumstances.strict)

    def of_party(self, party: str, keys: Keys | None = None) -> Mechanism:
        """One person's report, with their name beside it.

        Raises: UsageError PS0844 where a run is not one report of each person.
        """
        refuse_keys(keys)
        if not (self.alone or is_local(None, None, self.measures)) or PARTY in self.outputs:
            raise no_messages("its answers are drawn once, by one keeper")
        return OwnReport(self, party)

    def _rows(self, model: Model) -> ModelRows:
        return ModelRows(model, self.of, self.labels)

    def simulate(self, asked: Simulation) -> NDArray[np.float64]:
        """Exact draws at the row of one record, by default the first row; words by their place in their domain."""
        data = asked.data
        refuse_long_simulation(
            asked.repetitions,
            f"{asked.repetitions} exact draws",
            "take fewer, or draw from the plan's probabilities in doubles",
        )
        row = 0
        if data is not None:
            row = int(read_reports(self.law, LabelledRows(self.law.rows), data, Circumstances()).chosen[0])
        drawn = self.law.draw(np.full(asked.repetitions, row, dtype=np.intp), SimulationRandomness(asked.seed))
        figures = self.law.columns.figures()
        return np.take(figures, drawn, axis=0)


@dataclass(frozen=True, eq=False, slots=True)
class OwnReport(Mechanism):
    """The plan for one person."""

    whole: FiniteMechanism
    party: str

    @property
    def outputs(self) -> tuple[str, ...]:
        """Who it is from, and the report."""
        return (PARTY, *self.whole.outputs)

    def read(self, data: Mapping[str, Any], circumstances: Circumstances) -> Secret:
        """The person's own values, in one row.

        Raises: DataError PS0811 unless there is exactly one; UsageError PS0844 where reports are not of single persons.
        """
        if not self.whole.local(circumstances.model):
            raise no_messages("its answers are drawn once, by one keeper")
        found = self.whole.read(data, circumstances)
        assert isinstance(found, Reports)
        if len(found.chosen) != 1:
            said = f"a person makes one report, the data have {len(found.chosen)} rows"
            refuse("PS0811", said, "nothing was drawn and nothing was spent")
        return _Own(self.party, found)

    def simulate(self, asked: Simulation) -> NDArray[np.float64]:
        return self.whole.simulate(asked)


@dataclass(frozen=True, eq=False, slots=True)
class _Own(Secret):
    party: str
    report: Secret

    @property
    def rules(self) -> tuple[str, ...]:
        return self.report.rules

    def draw(self, randomness: Randomness) -> Drawn:
        drawn = self.report.draw(randomness)
        return replace(drawn, outputs={PARTY: np.array([self.party], dtype=object), **drawn.outputs})
