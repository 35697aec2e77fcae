"""A plan of the family "table" as a mechanism that can be run.

Every record of the data picks a row of the table, and there is one draw for each: local reports.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import cached_property, singledispatch
from itertools import permutations, product
from math import prod
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import UsageError
from privspec.core.records import dataclass, replace
from privspec.core.rounding import exp_down, log_up
from privspec.execute import family
from privspec.execute.ballots import Form, holds_ballots, read_ballots, refuse_number
from privspec.execute.budget import Spend, names_of
from privspec.execute.data import located
from privspec.execute.drawing import BATCH, NO_PLACE, Atom, Labels, TableLaw, atom_of, read_places, small
from privspec.execute.keeper import STRICT_RULE, given_for, refuse, refuse_untrue
from privspec.execute.reading import Declared, Fields, batches
from privspec.execute.sources import TextFiles
from privspec.kernel.measures import APPROXIMATE, BY_PERSON, PURE, named
from privspec.kernel.promises import SharedBudget
from privspec.kernel.tables import Executed
from privspec.kernel.trust import KINDS
from privspec.model.domains import Rankings
from privspec.model.neighbours import GIVEN, GivenTheModel, ReplacingEverything
from privspec.model.pointwise import Pointwise
from privspec.model.reports import Failure
from privspec.model.spaces import order_matters
from privspec.model.values import Value
from privspec.model.worlds import Counted, Listed, as_value, key, label, space_of
from privspec.noise.samplers import Randomness, SimulationRandomness
from privspec.registry import block_of

if TYPE_CHECKING:
    from privspec.model.graph import Model
    from privspec.model.neighbours import InputBlock
    from privspec.model.values import Value


@dataclass(frozen=True, eq=False, slots=True)
class Variable:
    """An input as one record holds it: its columns, and the values that each of them can take."""

    fields: Fields
    atoms: tuple[Atom, ...]


class Rows(ABC):
    """From the values of the inputs to the number of a row."""

    @property
    @abstractmethod
    def variables(self) -> tuple[Variable, ...]:
        """The inputs that pick the row."""

    @abstractmethod
    def row(self, codes: tuple[int, ...]) -> int | None:
        """The row of one record, given by the place of each value in its atom, one input after another."""


@dataclass(frozen=True, eq=False)
class LabelledRows(Rows):
    """Rows whose labels are the inputs' own values: all that a plan without its spec can tell."""

    labels: Labels

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """As the labels have them."""
        found, start = [], 0
        for fields in self.labels.fields:
            found.append(Variable(fields, self.labels.atoms[start : start + fields.count]))
            start += fields.count
        return tuple(found)

    def row(self, codes: tuple[int, ...]) -> int | None:
        """The label that says so, None if there is none."""
        return self.labels.places.get(codes)


@dataclass(frozen=True, eq=False)
class ModelRows(Rows):
    """Rows as the spec defines them: of inputs, of counts of an input's records, or of computed values."""

    model: Model
    of: tuple[str, ...]
    labels: tuple[Any, ...]

    @cached_property
    def blocks(self) -> tuple[InputBlock, ...]:
        """The inputs behind the rows."""
        waiting, found = list(self.of), set()
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += [a for a, b in self.model.edges if b == name and self.model.nodes[a].secret]
        return tuple(b for b in self.model.blocks if b.name in found)

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """With the values of their domains; what has no shape is one value per record."""
        return tuple(_variable(block) for block in self.blocks)

    @property
    def texts(self) -> tuple[str, ...]:
        """One text for each row: "3", "3, 4", "F, high"; for counts of an input's values "yes: 2, no: 1"."""
        parts = [label if len(self.of) > 1 else [label] for label in self.labels]
        shown = [[_text(own) for own in column] for column in zip(*parts, strict=True)]
        for at, name in enumerate(self.of):
            node = self.model.nodes[name]
            space = None if node.definition is not None else space_of(self.model, node)
            if isinstance(space, Counted):
                shown[at] = [_count_text(space, part[at]) for part in parts]
        return tuple(", ".join(row) for row in zip(*shown, strict=True))

    @cached_property
    def _places(self) -> dict[Any, int]:
        return {_frozen(text): i for i, text in enumerate(self.labels)}

    def row(self, codes: tuple[int, ...]) -> int | None:
        values: dict[str, Value] = {}
        start = 0
        for block, variable in zip(self.blocks, self.variables, strict=True):
            part = codes[start : start + variable.fields.count]
            start += variable.fields.count
            items = [atom.elements[code] for atom, code in zip(variable.atoms, part, strict=True)]
            values[block.name] = self.value(block, items)
        return self.row_of(values)

    @staticmethod
    def value(block: InputBlock, items: list[Any]) -> Value:
        """The value of an input from its entries, row-major."""
        return as_value(_nested(items, block.type.shape))

    def row_of(self, values: Mapping[str, Value]) -> int | None:
        """The row of values by input name.

        Raises: UsageError PS0820 if the row's own values cannot be computed.
        """
        scene = Pointwise(self.model, {name: [value] for name, value in values.items()})
        try:
            found = [self._forms(name, scene) for name in self.of]
        except Failure as error:
            # the words of the error may hold what was computed from data
            raise UsageError.of(
                "PS0820", f"{', '.join(self.of)} cannot be computed from these data", error.code
            ) from None
        for joint in product(*found):
            place = self._places.get(joint[0] if len(joint) == 1 else tuple(joint))
            if place is not None:
                return place
        return None

    def _forms(self, name: str, scene: Pointwise) -> list[Any]:
        """How a label may write the value of a node: as it is, or, for records in any order, by their counts."""
        node = self.model.nodes[name]
        value = scene.node(name, node.span).value(0, 0)
        plain = [_frozen(label(value))]
        return plain if node.definition is not None else _own_labels(space_of(self.model, node), value) + plain


@singledispatch
def _own_labels(space: object, value: Any) -> list[Any]:  # noqa: ARG001
    """How plans write the value of an input that is held in a space of its own, other than as it is."""
    raise TypeError(type(space).__name__)


@_own_labels.register(Listed)
def _(space: Listed, value: Any) -> list[Any]:  # noqa: ARG001
    return []


@_own_labels.register(Counted)
def _(space: Counted, value: Any) -> list[Any]:
    """Counts, and the member of the class that stands for it."""
    held = Counter(key(item) for item in value)
    counts = [held[key(item)] for item in space.items]
    member = [item for item, count in zip(space.items, counts, strict=True) for _ in range(count)]
    return [tuple(str(count) for count in counts), tuple(_frozen(label(item)) for item in member)]


def _variable(block: InputBlock) -> Variable:
    atom = atom_of(tuple(block.domain.innermost.elements()))
    size = block.type.size if block.type.shape else None
    return Variable(Fields(block.name, size), (atom,) * block.type.size)


def _nested(items: list[Any], shape: tuple[int, ...]) -> Any:
    """Items in tuples of the given shape, row-major."""
    if not shape:
        return items[0]
    step = len(items) // shape[0] if shape[0] else 0
    return tuple(_nested(items[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0]))


def _text(own: Any) -> str:
    return ", ".join(_text(item) for item in own) if isinstance(own, list) else str(own)


def _count_text(space: Counted, own: list[str]) -> str:
    """Counts with the values they are of; a label that is a member of the class stays as it is."""
    if len(own) != len(space.items) or sum(int(count) for count in own if count.isdigit()) != space.records:
        return _text(own)
    items = [_text(label(item)) for item in space.items]
    return ", ".join(f"{item}: {count}" for item, count in zip(items, own, strict=True))


def _frozen(text: Any) -> Any:
    """A label that can be looked up."""
    return tuple(_frozen(item) for item in text) if isinstance(text, list | tuple) else text


Codes = NDArray[np.unsignedinteger[Any]]

RULE = (
    "by itself: a number moves to the nearest value of its domain (halfway, to the larger), a missing or "
    "unreadable number to the value nearest to zero; a word that is missing or not in its set becomes the set's first"
)
REPORT_BYTES = 100
REPORT_RULE = f"each record {RULE}"


@dataclass(frozen=True, eq=False, slots=True)
class Reports(family.Secret):
    """The rows that the records pick (n,)."""

    law: TableLaw
    chosen: Codes
    circumstances: family.RunContext

    @property
    def rules(self) -> tuple[str, ...]:
        """What was done with values outside their domains."""
        return (STRICT_RULE,) if self.circumstances.strict else (REPORT_RULE,)

    def longest(self) -> Mapping[str, NDArray[Any]]:
        values = self.law.columns.values().items()
        return {name: np.broadcast_to(_longest(found), (len(self.chosen), *found.shape[1:])) for name, found in values}

    @property
    def each(self) -> int:
        """A place among the outputs, and the value that stands there."""
        return REPORT_BYTES

    def draw(self, randomness: Randomness) -> family.Drawn:
        """One report for each record, in order."""
        drawn = self.law.draw(self.chosen, randomness, self.circumstances.progress)
        columns = {f.name: f.columns for f in self.law.columns.fields if f.size is not None}
        return family.Drawn(
            {name: values[drawn] for name, values in self.law.columns.values().items()}, None, columns, reports=True
        )


def _longest(values: NDArray[Any]) -> NDArray[Any]:
    """The value that takes most signs to write down."""
    return np.array(max(values.reshape(-1).tolist(), key=lambda one: len(str(one))), dtype=values.dtype)


def read_reports(law: TableLaw, rows: Rows, data: Mapping[str, Any], circumstances: family.RunContext) -> Reports:
    """Reads one record per row; what is held of it is the number of its table row (one or two bytes).

    An input without data of its own takes its columns from the only data there are.
    Raises: DataError (PS0802 to PS0809), whose messages name a record by its number and never show a value.
    """
    encoded = encode(rows, data, circumstances)
    chosen = _choose_rows(rows, list(encoded.values()), len(law.rows))
    if not len(chosen):
        refuse("PS0808", "there are no records", help="one record per row, below a line that names the columns")
    return Reports(law, chosen, circumstances)


def encode(rows: Rows, data: Mapping[str, Any], circumstances: family.RunContext) -> dict[str, Codes]:
    """The place of each value in its domain (n, places), by variable.

    Raises: DataError (PS0802 to PS0809).
    """
    encoded = {}
    for variable in rows.variables:
        name = variable.fields.name
        encoded[name] = _encode(variable, located(name, _source(name, data)), circumstances)
    lengths = {name: len(codes) for name, codes in encoded.items()}
    if len(set(lengths.values())) > 1:
        refuse(
            "PS0808",
            "the inputs have different numbers of records: " + ", ".join(f"{n} {k}" for n, k in lengths.items()),
            help="record i of every input belongs to the same person",
        )
    return encoded


def _source(name: str, data: Mapping[str, Any]) -> Any:
    if name in data:
        return data[name]
    if len(data) == 1:
        return next(iter(data.values()))
    return given_for(name, data)


def _encode(variable: Variable, source: Any, circumstances: family.RunContext) -> Codes:
    """The place of each value in its domain (n, places)."""
    kind = small(max(len(atom.elements) for atom in variable.atoms))
    parts: list[Codes] = []
    done = 0
    progress: family.Progress = circumstances.progress
    name, strict = variable.fields.name, circumstances.strict
    fits_of = [
        atom.fit(circumstances.keeper, name, column)
        for atom, column in zip(variable.atoms, variable.fields.columns, strict=True)
    ]
    for columns in batches(variable.fields, source, circumstances.texts):
        found = [
            atom.codes(column, strict=strict, fit=fit)
            for atom, column, fit in zip(variable.atoms, columns, fits_of, strict=True)
        ]
        fits = np.all([codes != NO_PLACE for codes in found], axis=0)
        if not fits.all():
            _refuse_record(name, done + int(np.argmin(fits)))
        parts.append(np.stack(found, axis=1).astype(kind))
        done += len(fits)
        progress("records read", done, None)
    return np.concatenate(parts) if parts else np.zeros((0, len(variable.atoms)), dtype=kind)


def _choose_rows(rows: Rows, encoded: list[Codes], count: int) -> Codes:
    """The row of each record; each combination of values is looked up once."""
    chosen = np.empty(len(encoded[0]), dtype=small(count))
    known: dict[tuple[int, ...], int | None] = {}
    for start in range(0, len(chosen), BATCH):
        joint = np.concatenate([codes[start : start + BATCH] for codes in encoded], axis=1)
        keys, places = _different(joint)
        for joined in keys:
            if joined not in known:
                known[joined] = rows.row(joined)
        found = [known[key] for key in keys]
        # a table that names fewer rows than there are combinations of values: the first row, whoever else is there
        chosen[start : start + len(joint)] = np.array([row or 0 for row in found])[places]
    return chosen


def _different(joint: Codes) -> tuple[list[tuple[int, ...]], NDArray[np.intp]]:
    """The different rows of whole numbers from 0, and which of them each row is."""
    sizes = [int(size) + 1 for size in joint.max(axis=0)]
    if prod(sizes) > BATCH:
        different, places = np.unique(joint, axis=0, return_inverse=True)
        return [tuple(line) for line in different.tolist()], places.reshape(-1)
    # few that there could be: nothing is sorted
    flat = np.ravel_multi_index(tuple(joint.T), sizes)
    there = np.bincount(flat, minlength=prod(sizes)) > 0
    lines = np.unravel_index(np.flatnonzero(there), sizes)
    return list(zip(*(line.tolist() for line in lines), strict=True)), (np.cumsum(there) - 1)[flat]


def _refuse_record(name: str, place: int) -> NoReturn:
    """Under --strict: which record, never what stands in it."""
    refuse(
        "PS0809",
        f"record {place + 1} of {name} does not fit the declared domain, and --strict was asked for",
        "nothing was drawn and nothing was spent",
        help="without --strict a public rule is applied to every record by itself",
    )


# --- the mechanism --------------------------------------------------------------------------------


CENTRAL_RULE = f"each entry {RULE}"


@dataclass(frozen=True, eq=False, slots=True)
class OneRow(family.Secret):
    """The row that the data pick."""

    law: TableLaw
    row: int
    strict: bool
    applied: tuple[str, ...] = (CENTRAL_RULE,)

    @property
    def rules(self) -> tuple[str, ...]:
        """What was done with values outside their domains."""
        return (STRICT_RULE,) if self.strict else self.applied

    def longest(self) -> Mapping[str, NDArray[Any]]:
        return {
            name: np.broadcast_to(_longest(found), found.shape[1:]) for name, found in self.law.columns.values().items()
        }

    def draw(self, randomness: Randomness) -> family.Drawn:
        drawn = self.law.laws[self.row].draw(randomness)
        return family.Drawn({name: np.asarray(values[drawn]) for name, values in self.law.columns.values().items()})


def read_central(law: TableLaw, rows: ModelRows, data: Mapping[str, Any], circumstances: family.RunContext) -> OneRow:
    """Reads every input in its declared shape.

    Raises: DataError (PS0802 to PS0809); UsageError (PS0820) if the table has no row for what the data amount to.
    """
    values, applied = read_values(rows, data, circumstances)
    row = rows.row_of(values)
    if row is None and rows.model.facts:
        refuse_untrue([one.line for one in rows.model.facts])
    if row is None:
        raise UsageError.of(
            "PS0820",
            f"the plan has no row for a value of {', '.join(rows.of)} that the spec allows",
            help="solve the spec again with this version of privspec",
        )
    return OneRow(law, row, circumstances.strict, applied)


def read_values(
    rows: ModelRows, data: Mapping[str, Any], circumstances: family.RunContext
) -> tuple[dict[str, Value], tuple[str, ...]]:
    """The values of all inputs, and the rules that were applied to them.

    Raises: DataError (PS0801 to PS0809).
    """
    values: dict[str, Value] = {}
    applied: dict[str, None] = {}
    for block in rows.blocks:
        source = given_for(block.name, data)
        form = _ballots(rows, block, source, circumstances.texts)
        if form is None:
            values[block.name] = _read_value(rows, block, located(block.name, source), circumstances)
            applied[CENTRAL_RULE] = None
        else:
            values[block.name] = _read_ballots(rows, block, form, source, circumstances)
            applied |= dict.fromkeys(form.rules(strict=circumstances.strict))
    return values, tuple(applied)


def _ballots(rows: ModelRows, block: InputBlock, source: Any, texts: TextFiles) -> Form | None:
    """The ballots that a source holds, for an input of one value per party whose order nothing looks at."""
    if block.index is None or order_matters(rows.model, block.name):
        return None
    form = Form.of_block(block)
    return form if form is not None and texts.header and holds_ballots(form, source) else None


def _read_ballots(
    rows: ModelRows, block: InputBlock, form: Form, source: Any, circumstances: family.RunContext
) -> Value:
    """The value of an input from its ballots, in any order."""
    strict, texts, keeper = circumstances.strict, circumstances.texts, circumstances.keeper
    found = read_ballots(form, source, strict=strict, texts=texts, keeper=keeper)
    if found.number != block.type.size:
        refuse_number(form, block.type.size, found.number)
    ranked = isinstance(block.type.element, Rankings)
    each = ((ballot if ranked else ballot[0], count) for ballot, count in found.each())
    return rows.value(block, [value for value, count in each for _ in range(count)])


def _read_value(rows: ModelRows, block: InputBlock, source: Any, circumstances: family.RunContext) -> Value:
    """The value of an input, each entry put into its domain by itself."""
    atom = atom_of(tuple(block.domain.innermost.elements()))
    places = read_places(atom, Declared(block.name, block.type.shape, block.index), source, circumstances)
    return rows.value(block, [atom.elements[place] for place in places])


class TableExposure(family.Exposure):
    """All outputs of a table are drawn jointly.

    Local reports cost each person their own budget, all the same amount, so one run is one debit.
    """

    @property
    def outputs(self) -> frozenset[str]:
        return frozenset(str(name) for name in block_of(self.plan)["outputs"])

    @property
    def rounds(self) -> SharedBudget | None:
        if "rounds" not in self.plan["mechanism"]:
            return None
        found: Executed = family.read_plan(self.plan)[1]
        return found.rounds

    def charged(self, guarantee: Mapping[str, Any]) -> Mapping[str, Any]:
        """For a line that counts on the model, what holds of any two rows whatever the model.

        Guarantees given a model do not add up over releases; these do: an epsilon, or the delta at that of the line.
        """
        if not str(guarantee["neighbours"]).endswith(GIVEN):
            return guarantee
        rows = [[Fraction(n, one.total) for n in one.weights] for one in TableLaw.of_plan(self.plan).laws]
        columns = list(zip(*rows, strict=True))
        kept = {key: value for key, value in guarantee.items() if key not in ("delta", "achieved", "epsilon")}
        wrt = [str(one["name"]) for one in self.plan["problem"]["data"]]
        kept |= {"neighbours": ReplacingEverything().describe(), "wrt": wrt}
        if all(min(column) or not max(column) for column in columns):
            epsilon = str(log_up(max(max(column) / min(column) for column in columns if max(column))))
            return kept | {"measure": PURE.name, "epsilon": epsilon, "achieved": {"epsilon": epsilon}}
        epsilon, least = str(guarantee["epsilon"]), exp_down(Fraction(str(guarantee["epsilon"])))
        pairs = permutations(rows, 2)
        delta = str(max(sum(max(a - least * b, Fraction(0)) for a, b in zip(*pair, strict=True)) for pair in pairs))
        amounts = {"epsilon": epsilon, "delta": delta}
        return kept | {"measure": APPROXIMATE.name, **amounts, "achieved": amounts}

    def covers(self, requirement: int, outputs: frozenset[str]) -> bool:
        """Divergences of one order add up with nothing else, and figures of people's own are not everybody's."""
        measures = {g["measure"] for g in self.plan["guarantees"] if g.get("requirement") == requirement}
        alike = (None if one.startswith(BY_PERSON) else named(one) for one in measures)
        return self.outputs <= outputs and all(one is not None and one.summable for one in alike)

    def joint_spend(self, model: Model, requirement: int) -> Spend | None:
        """The least pure epsilon of the joint output over the rows that the requirement compares."""
        from privspec.model.worlds import worlds

        found = model.requirements[requirement]
        if found.measure.of.by_distance or isinstance(found.neighbours, GivenTheModel):
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
    known = map(named, measures)
    of_reports = any(one is not None and one.any_values for one in known)
    if model is None or rows is None:
        return of_reports
    shared = any(model.nodes[block.name].index is not None for block in rows.blocks)
    return not shared and (of_reports or model.trust.alone)


@dataclass(frozen=True, eq=False, slots=True)
class FiniteMechanism(family.FamilyMechanism):
    """A table, and the measures of its guarantees."""

    law: TableLaw
    of: tuple[str, ...]
    labels: tuple[Any, ...]
    inputs: frozenset[str]
    measures: tuple[str, ...]
    alone: bool

    @classmethod
    def of_plan(cls, plan: family.Plan) -> FiniteMechanism:
        guarantees, block = plan.get("guarantees", ()), block_of(plan)
        return cls(
            TableLaw.of_plan(plan),
            tuple(str(name) for name in block["of"]),
            tuple(block["rows"]),
            frozenset(name for g in guarantees for name in names_of(g.get("wrt", ()))),
            tuple(str(g["measure"]) for g in guarantees),
            KINDS[plan["problem"]["trust"]["kind"]].alone,
        )

    @staticmethod
    def fit(model: Model, data: Mapping[str, Any], circumstances: family.RunContext) -> None:

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

    def local_reports(self, model: Model | None) -> family.LocalReports | None:
        """The table, where every record gets a draw of its own."""
        if not self.local(model):
            return None
        return family.LocalReports(self.law, self.law.rows.texts if model is None else self._rows(model).texts)

    def read(self, data: Mapping[str, Any], circumstances: family.RunContext) -> family.Secret:
        """Local reports, one a row; else the inputs as the spec lays them out.

        Without a spec, rows are taken to be labelled by the inputs themselves.
        """
        model = circumstances.model
        known = set(self.of) | self.inputs if model is None else {node.name for node in model.inputs}
        family.refuse_unknown(data, sorted(known))
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

    def of_party(self, party: str, keys: family.Keys | None = None) -> family.Mechanism:
        """One person's report, with their name beside it.

        Raises: UsageError PS0844 where a run is not one report of each person.
        """
        family.refuse_keys(keys)
        if not (self.alone or is_local(None, None, self.measures)) or family.PARTY in self.outputs:
            raise family.no_messages("its answers are drawn once, by one keeper")
        return OwnReport(self, party)

    def _rows(self, model: Model) -> ModelRows:
        return ModelRows(model, self.of, self.labels)

    def simulate(self, asked: family.Simulation) -> NDArray[np.float64]:
        """Exact draws at the row of one record, by default the first row; words by their place in their domain."""
        data = asked.data
        family.refuse_long_simulation(
            asked.repetitions,
            f"{asked.repetitions} exact draws",
            "take fewer, or draw from the plan's probabilities in doubles",
        )
        row = 0
        if data is not None:
            row = int(read_reports(self.law, LabelledRows(self.law.rows), data, family.RunContext()).chosen[0])
        drawn = self.law.draw(np.full(asked.repetitions, row, dtype=np.intp), SimulationRandomness(asked.seed))
        figures = self.law.columns.figures()
        return np.take(figures, drawn, axis=0)


@dataclass(frozen=True, eq=False, slots=True)
class OwnReport(family.Mechanism):
    """The plan for one person."""

    whole: FiniteMechanism
    party: str

    @property
    def outputs(self) -> tuple[str, ...]:
        """Who it is from, and the report."""
        return (family.PARTY, *self.whole.outputs)

    def read(self, data: Mapping[str, Any], circumstances: family.RunContext) -> family.Secret:
        """The person's own values, in one row.

        Raises: DataError PS0811 unless there is exactly one; UsageError PS0844 where reports are not of single persons.
        """
        if not self.whole.local(circumstances.model):
            raise family.no_messages("its answers are drawn once, by one keeper")
        found = self.whole.read(data, circumstances)
        assert isinstance(found, Reports)
        if len(found.chosen) != 1:
            said = f"a person makes one report, the data have {len(found.chosen)} rows"
            refuse("PS0811", said, "nothing was drawn and nothing was spent")
        return _Own(self.party, found)

    def simulate(self, asked: family.Simulation) -> NDArray[np.float64]:
        return self.whole.simulate(asked)


@dataclass(frozen=True, eq=False, slots=True)
class _Own(family.Secret):
    party: str
    report: family.Secret

    @property
    def rules(self) -> tuple[str, ...]:
        return self.report.rules

    def draw(self, randomness: Randomness) -> family.Drawn:
        drawn = self.report.draw(randomness)
        return replace(drawn, outputs={family.PARTY: np.array([self.party], dtype=object), **drawn.outputs})
