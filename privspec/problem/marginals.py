"""Tables of counts by some columns of one table, in numbers: which columns, what an error costs, who is hidden.

Nothing of the number of cells is built: a table is the columns that it is by; only of columns in order, along which
some table has running totals or all ranges, all cells are. What makes such a block is the form of a spec, not its
words: all that is released are counts of all records by some of the columns, and the loss adds up squared errors, those
of one table with one weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import prod

from privspec.kernel.core.reading import Refused
from privspec.kernel.marginals import MOST_COLUMNS, MOST_PAIRS, Along, Answers, Marginals
from privspec.language import syntax
from privspec.language.spelling import spell
from privspec.model.domains import Between, Cut, Tables
from privspec.model.evaluate import places_in_turn
from privspec.model.graph import Model, once
from privspec.model.library import Tally
from privspec.model.measures import Personalised
from privspec.model.neighbours import ReplacingPerson, ReplacingRecord
from privspec.model.reports import Failure, listing
from privspec.model.requirements import Requirement
from privspec.model.targets import environment, tallies_of
from privspec.problem.linear import columns_of, free
from privspec.problem.terms import Measured, measured, multiples

FROM = 500
"""Cells from which on a table is not laid out: below, noise of other laws is looked at too."""
MOST_CELLS = 2**26
"""Most counts of one table that is asked for."""
MOST_ORDERED = 512
"""Cells of the columns in order together: strategies for more of them are not looked for."""
MOST_ENTRIES = 2**22
"""Of all these strategies together."""
LARGEST = Fraction(10) ** 50
"""Weights and amounts beyond it, or below its inverse, are left to others to refuse."""
LARGEST_EPSILON = 100
MOST_RECORDS = 10**6
"""Of one unit."""
Subset = tuple[int, ...]


class MarginalBlock(Marginals):
    """Counts of the records of a table by some of its columns; the loss is the largest of the `terms`."""

    __slots__ = ()

    @property
    def outputs(self) -> tuple[str, ...]:
        """The outputs that it gives, in order."""
        return tuple(one.name for one in self.released)

    def words(self) -> tuple[str, ...]:
        """The table, what is released, and the loss."""
        cells, names = prod(self.sizes), [column.name for column in self.columns]
        known = f"{self.records} records" if self.records is not None else "any number of records"
        found = [f"{self.source} is a table of {known}, of {cells} cells by {listing(names)}."]
        for one in self.released:
            ways = sorted({len(own) for own in one.tables})
            which = f"{len(one.tables)} tables of its counts by {listing([str(k) for k in ways])} columns"
            if one.along:
                running = sorted({names[i] for table in one.along for i in table.running})
                ranges = sorted({names[i] for table in one.along for i in table.ranges})
                said = (("running totals along", running), ("all ranges of", ranges))
                which = f"{len(one.tables)} tables of its counts, with "
                which += "; ".join(f"{words} {listing(some)}" for words, some in said if some)
            elif len(one.tables) == 1:
                by = listing([names[i] for i in one.tables[0]])
                which = f"its counts by {by}" if by else "the number of its records"
            found.append(f"{one.name} is {which}, {prod(one.shape)} numbers, plus noise that averages to 0.")
        what = f"the largest of {len(self.terms)} sums" if self.worst else "the sum"
        found.append(f"The loss is {what} of expected squared errors: `{self.loss}`.")
        if self.families:
            found.append(f"Noise may be of the family {listing(list(self.families))} only.")
        return tuple(found)


def reads(model: Model) -> bool:
    """Whether a spec is about counts of one large table by some of its columns, and about nothing else."""
    return _found(model) is not None


def block_of(model: Model) -> MarginalBlock:
    """The block of a spec that `reads` takes."""
    found = _found(model)
    assert found is not None
    return found


class OtherFormError(Exception):
    """The spec says something that these forms cannot."""


@once
def _found(model: Model) -> MarginalBlock | None:
    if not plain(model):
        return None
    (block,) = model.blocks
    try:
        reader = Reader(model)
        terms, worst = reader.loss()
        tallies = [reader.known[o.name] for o in model.outputs]
        if not _fits(model, [tally for some in tallies for tally in some], len(terms) > 1 or worst):
            return None
        released = tuple(_answers(o.name, o.type.shape, own) for o, own in zip(model.outputs, tallies, strict=True))
    except (OtherFormError, Failure, KeyError):
        return None
    first, at = dict[str, int](), 0
    for one in released:
        first[one.name], at = at, at + len(one.tables)
    weights = tuple(summed(term, first) for term in terms)
    if len({table for term in weights for table, _ in term}) < at:
        return None
    if not free(block):
        return None
    columns = columns_of(block)
    families, loss = model.families, "" if model.loss is None else spell(model.loss)
    try:
        made = MarginalBlock(block.name, columns, block.records, released, weights, worst, loss, families)
    except Refused:
        return None  # tables that the kernel would not judge in these forms
    return None if made.ordered and len(made.subsets) * made.cells**2 > MOST_ENTRIES else made


def _answers(name: str, shape: tuple[int, ...], tallies: tuple[Tally, ...]) -> Answers:
    ways = enumerate((tuple(sorted(one.running)), tuple(sorted(one.ranges))) for one in tallies)
    along = tuple(Along(place, *own) for place, own in ways if any(own))
    return Answers(name, shape, tuple(one.by for one in tallies), along or None)


def _fits(model: Model, tallies: list[Tally], largest: bool) -> bool:
    """Whether noise for these tables can be looked for; with columns in order, where records come and go.

    Then strategies are Gaussian, for a loss that adds up: not the `largest` of several terms.
    """
    sizes = [domain.size or 0 for _, domain in model.blocks[0].schema or ()]
    ordered = set().union(*(one.running | one.ranges for one in tallies))
    cells = prod(sizes[i] for i in ordered)
    pairs = sum(2 ** len(set(one.by) - ordered) for one in tallies)
    if ordered:
        coming = gaussian(model) and all(line.neighbours.adding for line in model.requirements)
        return coming and not largest and cells <= MOST_ORDERED
    return pairs <= MOST_PAIRS and all(prod(sizes[i] for i in one.by) <= MOST_CELLS for one in tallies)


def summed(term: list[tuple[str, int, Fraction]], first: dict[str, int]) -> tuple[tuple[int, Fraction], ...]:
    """A term with one weight for each table, by its place; `first`: that of the first table of each output."""
    found: dict[int, Fraction] = {}
    for name, place, weight in term:
        found[first[name] + place] = found.get(first[name] + place, Fraction(0)) + weight
    return tuple(sorted(found.items()))


def plain(model: Model) -> bool:
    """Whether one keeper holds one large table, all lines are about its records, and noise may be Gaussian."""
    if not alone(model) or not (gaussian(model) or separate(model)):
        return False
    (source,) = model.inputs
    if not isinstance(source.type.element, Tables) or source.type.shape or source.index:
        return False
    table = source.type.element.table
    if len(table.attributes) > MOST_COLUMNS:
        return False
    if any(isinstance(domain, Between | Cut) for _, domain in table.attributes) or not table.cell_count >= FROM:
        return False
    return all(_hides_all(model, line) for line in model.requirements)


def alone(model: Model) -> bool:
    """Whether one keeper holds one input, and a spec says no more than a loss and lines of privacy."""
    if len(model.inputs) != 1 or model.loss is None or not model.requirements or not model.trust.central:
        return False
    if model.open or model.parties or model.components or model.through or model.noise_at is not None:
        return False
    return not (model.accuracy or model.fairness or model.constraints or model.inputs[0].index)


def _hides_all(model: Model, line: Requirement) -> bool:
    """Whether a line is about all outputs, records of the table, and a measure that Gaussian noise may satisfy."""
    relation = line.neighbours
    about = isinstance(relation, ReplacingRecord)
    if isinstance(relation, ReplacingPerson):
        # how many records a person has may change where they are replaced
        about = relation.per_cell is None and (relation.adding or not relation.by_id)
    about = about and set(model.exposed(line)) == {o.name for o in model.outputs} and relation.group <= MOST_RECORDS
    return about and not isinstance(line.measure, Personalised)


def gaussian(model: Model) -> bool:
    """Whether noise may be Gaussian, and all lines allow a mu that is in proportion."""
    mus = [line.measure.gaussian_mu_down() for line in model.requirements]
    return set(model.families) <= {"gaussian"} and all(mu and 1 / LARGEST <= mu <= LARGEST for mu in mus)


def separate(model: Model) -> bool:
    """Whether noise may be Laplace noise on each count, and all lines follow from an epsilon in proportion."""
    amounts = [line.measure.pure_epsilon for line in model.requirements]
    known = all(epsilon and 1 / LARGEST <= epsilon <= LARGEST_EPSILON for epsilon in amounts)
    return known and (not model.families or bool(set(model.families) & {"laplace", "geometric"}))


Errors = list[tuple[str, int, Fraction]]
"""Squared errors of a table of an output, by its place there, with their weights."""


class Reader:
    """Reads expressions as counts, and losses as weighted squared errors of them.

    Raises: OtherFormError, Failure for what is neither. `known`: what each output that was read stands for.
    """

    def __init__(self, model: Model) -> None:
        self.model, self.environment = model, environment(model)
        self.known: dict[str, tuple[Tally, ...]] = {}
        for node in model.outputs:
            if node.definition is not None:
                self.known[node.name] = self.counts(node.definition)

    def counts(self, expr: syntax.Node | None) -> tuple[Tally, ...]:
        """The tables of counts that an expression gives, one after another."""
        try:
            found = tallies_of(self.model, expr)
        except Failure as failure:
            raise OtherFormError from failure
        if not found:
            raise OtherFormError
        return tuple(tally for _, tally in found)

    # --- losses -------------------------------------------------------------------------------------

    def loss(self) -> tuple[list[Errors], bool]:
        """The terms of the loss, of which the largest counts if there may be several."""
        expr = self.model.loss
        while isinstance(expr, syntax.Over) and expr.given is None:
            expr = expr.body
        match expr:
            case None:
                raise OtherFormError
            case syntax.Call(function="max", arguments=(syntax.Comprehension() as over,)):
                return list(self._entries(over)), True
            case syntax.Call(function="max", arguments=arguments):
                if any(isinstance(one, syntax.NO_EXPRESSION) for one in arguments):
                    raise OtherFormError
                return [list(self._errors(one, Fraction(1))) for one in arguments], True  # type: ignore[arg-type]
            case _:
                return [list(self._errors(expr, Fraction(1)))], False

    def _errors(self, expr: syntax.Expr, weight: Fraction) -> Iterator[tuple[str, int, Fraction]]:
        for share, term in multiples(expr, self.model, weight):
            if not 1 / LARGEST <= share <= LARGEST:
                raise OtherFormError
            match term:
                case syntax.Over(body=body, given=None):
                    yield from self._errors(body, share)
                case _:
                    yield from self._squares(measured(term), share)

    def _squares(self, found: Measured, weight: Fraction) -> Iterator[tuple[str, int, Fraction]]:
        """All squares of an error, added up or averaged; of one number by itself too."""
        name, tables = self._error(found.error)
        size = self._size(tables)
        wanted = None if found.function is not None or (size == 1 and found.norm is None) else "2"
        if not found.squared or found.each is not None or found.norm != wanted:
            raise OtherFormError
        each = weight / size if found.function == "mean" else weight
        yield from ((name, place, each) for place in range(len(tables)))

    def _entries(self, over: syntax.Comprehension) -> Iterator[Errors]:
        """One error after another, all of an output: within a table they are alike."""
        body = over.body
        while isinstance(body, syntax.Over) and body.given is None:
            body = body.body
        found = measured(body)
        match found.error:
            case syntax.Binary(
                op="-",
                left=syntax.Index(base=a, indices=(syntax.Name(id=i),)),
                right=syntax.Index(base=b, indices=(syntax.Name(id=j),)),
            ) if found.squared and found.norm is None and found.function is None:
                name, tables = self._error(syntax.Binary("-", a, b, span=body.span))
            case _:
                raise OtherFormError
        run = places_in_turn(over, self.environment)
        if i != over.variable or j != over.variable or run != range(1, self._size(tables) + 1):
            raise OtherFormError
        for place, own in enumerate(tables):
            yield [(name, place, Fraction(1, self._size((own,))))]

    def _error(self, expr: syntax.Node) -> tuple[str, tuple[Tally, ...]]:
        """The output of an error, and what it stands for there."""
        if not isinstance(expr, syntax.Binary) or expr.op != "-":
            raise OtherFormError
        names = [one.id if isinstance(one, syntax.Name) else "" for one in (expr.left, expr.right)]
        outputs = {node.name for node in self.model.outputs}
        if (names[0] in outputs) == (names[1] in outputs):
            raise OtherFormError
        name, other = (names[0], expr.right) if names[0] in outputs else (names[1], expr.left)
        tables = self.counts(other)
        if self.known.setdefault(name, tables) != tables:
            raise OtherFormError
        return name, tables

    def _size(self, tables: tuple[Tally, ...]) -> int:
        shape = self.model.inputs[0].type.element.table.cell_shape  # type: ignore[union-attr]
        sizes = [{i: shape[i] * (shape[i] + 1) // 2 if i in own.ranges else shape[i] for i in own.by} for own in tables]
        return sum(prod(own.values()) for own in sizes)
