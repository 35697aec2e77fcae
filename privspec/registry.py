"""The registry of families: which there are, what specs and plans are theirs, and where their parts stand.

A family takes the specs whose problem is said in its form; a plan belongs to the family of the form of its problem. A
new family is one entry here: nothing in the pipeline, in `run`, in the ledger or on the pages knows its name. Parts are
named, not imported, so that only those of the family at hand are loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from privspec.core.records import dataclass, replace
from privspec.language import syntax
from privspec.language.walk import every
from privspec.model.domains import FiniteSet, Tables, unknown_keys
from privspec.model.graph import Model
from privspec.model.library import function_of
from privspec.model.neighbours import GivenTheModel
from privspec.model.worlds import finite


@dataclass(frozen=True, slots=True)
class Family:
    """A family: the `form` of its problems; its `compiler`, `mechanism` and `exposure`, classes below `families`.

    `together`: when two groups of outputs are better solved as one problem: "always", at the "same input", "never".
    `each_share`: whether a lower bound at another share of the budget needs a witness of its own.
    `pricing`: the function that finds the least cost of an amount left open, where the family has one.
    `jointly`: the class of mechanisms that draw together with the voters themselves, where a family has one.
    `reading`: the module that says specs in this form. It has `reads(model)`, whether its forms can say what the spec
    says, and `block_of(model)`, which may raise PS05xx. It may have `difference_of(model, line)`, what one unit of a
    line changes, in the numbers of its block. One without a mechanism also has `inner(model)`: a spec of another family
    that holds the same data. `may`: a first look at a spec, without which its reading is not even loaded.
    """

    form: str
    reading: str
    compiler: str
    may: Callable[[Model], bool]
    mechanism: str = ""
    exposure: str = ""
    together: str = "never"
    jointly: str = ""
    each_share: bool = False
    pricing: str = ""

    @property
    def reads(self) -> Any:
        """The module of its reading."""
        return import_module(f"privspec.problem.{self.reading}")

    def difference(self, model: Any, line: Any) -> Any:
        """What one unit of a line changes, in the numbers of its block; None where it has no limit or is not said."""
        found = getattr(self.reads, "difference_of", None)
        return None if found is None else found(model, line)

    def takes(self, model: Model) -> bool:
        """Whether its forms can say what a spec says."""
        return self.may(model) and bool(self.reads.reads(model))

    def compiles(self) -> Any:
        """What turns a spec of this family into a plan: a `families.family.Family`."""
        return _part(self.compiler)()

    def executes(self) -> Any:
        """The class of its mechanisms: an `execute.family.FamilyMechanism`."""
        return _part(self.mechanism)

    def exposes(self) -> Any:
        """The class that says what a run shows: an `execute.family.Exposure`; None where it needs no own one."""
        return _part(self.exposure) if self.exposure else None

    def fits(self, model: Any, data: Mapping[str, Any], circumstances: Any) -> None:
        """Tells the keeper of the circumstances how data fit a spec, as a run of its plan will read them.

        Raises: DataError.
        """
        if self.mechanism:
            self.executes().fit(model, data, circumstances)
            return
        inner = self.reads.inner(model)
        family_of(inner).fits(inner, data, replace(circumstances, model=inner))

    def prices(self, model: Any, settings: Any) -> Any:
        """The decision at the amount of least cost, or why there is none."""
        return _part(self.pricing)(model, settings)

    def draws_jointly(self) -> Any:
        """The class of its mechanisms that draw by a protocol between the voters; None if it has none."""
        return _part(self.jointly) if self.jointly else None


def _part(name: str) -> Any:
    module, _, part = name.rpartition(".")
    return getattr(import_module(f"privspec.families.{module}"), part)


# --- first looks ----------------------------------------------------------------------------------


def _has_parts(model: Model) -> bool:
    return len(model.outputs) > 1 or bool(model.choices) or any(not part.plain for part in model.components)


def _tallies_parties(model: Model) -> bool:
    calls = (call for expr in model.expressions for call in every(expr, syntax.Call))
    return any(node.index for node in model.inputs) and any(call.function == "histogram" for call in calls)


def _of_parties_alone(model: Model) -> bool:
    return model.trust.alone and len(model.inputs) == 1 and bool(model.inputs[0].index)


def _one_of_each(model: Model) -> bool:
    return len(model.inputs) == len(model.outputs) == 1


def draws_a_winner(model: Model) -> bool:
    """Whether one of finitely many values is drawn from one input, as the winner of a vote is."""
    return _one_of_each(model) and isinstance(model.outputs[0].domain, FiniteSet)


def _knows_a_sequence(model: Model) -> bool:
    return any(isinstance(line.neighbours, GivenTheModel) for line in model.requirements)


def _by_distance(model: Model) -> bool:
    return any(line.measure.of.by_distance for line in model.requirements)


def _of_unknown_keys(model: Model) -> bool:
    return any(unknown_keys(node.domain) for node in model.inputs)


def _reports_a_value(model: Model) -> bool:
    return _one_of_each(model) and model.outputs[0].domain is not None


def _has_routes(model: Model) -> bool:
    calls = (node.definition for node in model.nodes.values() if isinstance(node.definition, syntax.Call))
    return any(function_of(call).routes is not None for call in calls)


def _counts(model: Model) -> bool:
    return any(any(every(expr, syntax.Counting)) for expr in model.expressions)


def _of_one_table(model: Model) -> bool:
    return len(model.inputs) == 1 and isinstance(model.inputs[0].type.element, Tables)


LONG = 2048
"""Units of a row beyond which no matrix of its size is laid out."""


def of_a_long_row(model: Model) -> bool:
    """Whether its one input has more units than are laid out."""
    return _one_of_each(model) and max(model.inputs[0].type.shape[:1], default=0) > LONG


def _named(model: Model) -> bool:
    return bool(model.name)


FAMILIES = (
    Family("design", "designs", "designs.Designs", lambda model: model.open),
    Family("means", "means", "number.means.LocalMeans", _of_parties_alone, "number.mean_execution.MeanMechanism"),
    Family("system", "systems", "systems.family.Systems", _has_parts, "systems.execution.SystemMechanism"),
    Family(
        "votes",
        "voting",
        "voting.family.Voting",
        draws_a_winner,
        "voting.execution.VotingMechanism",
        "voting.execution.VotingExposure",
        jointly="voting.joint_draw.parties.JointMechanism",
    ),
    Family("priced", "priced", "amounts.LeastEpsilon", lambda model: bool(model.choices)),
    Family(
        "chain",
        "chains",
        "number.sequences.Correlated",
        _knows_a_sequence,
        "number.execution.ChainMechanism",
        "number.execution.ChainExposure",
    ),
    Family(
        "table",
        "tables",
        "tables.family.Finite",
        finite,
        "tables.execution.FiniteMechanism",
        "tables.execution.TableExposure",
        "same input",
        each_share=True,
        pricing="tables.priced.priced",
    ),
    Family(
        "frequencies",
        "frequencies",
        "number.reports.Histograms",
        _tallies_parties,
        "number.set_execution.HistogramMechanism",
        pricing="number.priced.priced",
    ),
    Family("cells", "cells", "number.reports.Reports", _reports_a_value, "number.report_execution.CellMechanism"),
    Family("points", "points", "number.reports.Points", _by_distance, "number.report_execution.PointMechanism"),
    Family("keys", "keys", "number.keys.UnknownKeys", _of_unknown_keys, "number.execution.KeyMechanism"),
    Family(
        "statistics",
        "statistics",
        "statistics.family.Statistics",
        _has_routes,
        "statistics.execution.StatisticMechanism",
    ),
    Family(
        "selection",
        "selection",
        "selection.family.Selections",
        _counts,
        "selection.execution.SelectionMechanism",
        each_share=True,
        pricing="selection.priced.priced",
    ),
    Family("marginals", "marginals", "gaussian.residual.TableCounts", _of_one_table, "gaussian.drawing.TableMechanism"),
    Family("stream", "streams", "gaussian.banded.LongRows", of_a_long_row, "gaussian.banded.StreamMechanism"),
    Family(
        "linear",
        "linear",
        "gaussian.family.Linear",
        _named,
        "gaussian.runs.LinearMechanism",
        "gaussian.runs.LinearExposure",
        "always",
        pricing="gaussian.priced.priced",
    ),
)
"""All families, in the order in which their readings are asked; those after the first that takes a spec stay unread."""


def family_of(model: Any) -> Family:
    """The family of a spec (a `model.graph.Model`): the first whose forms can say it; linear takes what is left."""
    return next(family for family in FAMILIES if family.takes(model))


def family_of_plan(plan: Mapping[str, Any]) -> Family:
    """The family of a plan: that of the form of its problem's block.

    Raises: KeyError, ValueError if there is none, or more than one.
    """
    form = block_of(plan)["form"]
    return next(family for family in FAMILIES if family.form == form)


def block_of(plan: Mapping[str, Any]) -> Mapping[str, Any]:
    """The block of a plan's problem; where an amount of privacy is picked, the one whose loss its price joins.

    Raises: KeyError, ValueError if there is none, or more than one.
    """
    (block,) = plan["problem"]["blocks"]
    found: Mapping[str, Any] = block["block"] if block["form"] == "priced" else block
    return found
