"""A plan of the family "table" as a mechanism that can be run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privspec.execute.exact import ExactVector
from privspec.execute.executed import names_of
from privspec.execute.family import Circumstances, Mechanism, Plan, Secret
from privspec.execute.finite.central import OneRow, read_central
from privspec.execute.finite.reports import LocalReports, read_reports
from privspec.execute.finite.rows import LabelledRows, ModelRows
from privspec.execute.finite.table import TableLaw
from privspec.execute.mechanism import Target, refuse_long_simulation
from privspec.execute.problems import refuse
from privspec.execute.randomness import SimulationRandomness

if TYPE_CHECKING:
    from privspec.model.graph import Model


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
class FiniteMechanism(Mechanism):
    """A table, and the measures of its guarantees."""

    law: TableLaw
    of: tuple[str, ...]
    labels: tuple[Any, ...]
    inputs: frozenset[str]
    measures: tuple[str, ...]

    @classmethod
    def of_plan(cls, plan: Plan) -> FiniteMechanism:
        """Raises: KeyError, TypeError, ValueError if the plan has no table that can be drawn from."""
        mechanism, guarantees = plan["mechanism"], plan.get("guarantees", ())
        return cls(
            TableLaw.of_plan(plan),
            tuple(str(name) for name in mechanism["of"]),
            tuple(mechanism["inputs"]),
            frozenset(name for g in guarantees for name in names_of(g.get("wrt", ()))),
            tuple(str(g["measure"]) for g in guarantees),
        )

    @property
    def outputs(self) -> tuple[str, ...]:
        """What it releases."""
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
        for name in data:
            if name not in known:
                refuse("PS0801", f"the plan has no input {name}", help=f"its inputs are {', '.join(sorted(known))}")
        if not data:
            refuse("PS0801", f"no data for the input {self.of[0]}", help=f"give --input {self.of[0]}=FILE")
        if model is not None and not self.local(model):
            return read_central(self.law, self._rows(model), data, circumstances)
        rows = LabelledRows(self.law.rows) if model is None else self._rows(model)
        reports = read_reports(self.law, rows, data, circumstances)
        if self.local(model):
            return reports
        if len(reports.chosen) > 1:
            refuse("PS0805", f"{', '.join(self.of)} is declared with size 1, the data have size {len(reports.chosen)}")
        return OneRow(self.law, int(reports.chosen[0]), circumstances.strict)

    def _rows(self, model: Model) -> ModelRows:
        return ModelRows(model, self.of, self.labels)

    def simulate(
        self,
        repetitions: int,
        seed: int,
        base: ExactVector | Mapping[str, Any] | None,
        target: Target | None,
        *,
        approximate: bool,
    ) -> NDArray[np.float64]:
        """Exact draws at the row of one record, by default the first row; words by their place in their domain."""
        if isinstance(base, ExactVector):
            raise TypeError("a table is simulated at data by input name")
        refuse_long_simulation(
            repetitions, f"{repetitions} exact draws", "take fewer, or draw from the plan's probabilities in doubles"
        )
        secret = None if base is None else read_reports(self.law, LabelledRows(self.law.rows), base, Circumstances())
        row = 0 if secret is None else int(secret.chosen[0])
        drawn = self.law.draw(np.full(repetitions, row, dtype=np.intp), SimulationRandomness(seed))
        figures = self.law.columns.figures()
        return np.take(figures, drawn, axis=0)
