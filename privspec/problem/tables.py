"""Specs where every input and every output has finitely many values, as one table in numbers."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial

from privspec.core.diagnostics import SpecError
from privspec.kernel.core.reading import Grid
from privspec.kernel.core.tables import Compared
from privspec.kernel.measures import APPROXIMATE, PURE
from privspec.kernel.tables_forms import Amount, Rounds
from privspec.kernel.trust import CURATOR
from privspec.kernel.writing import exact_grid
from privspec.language.spelling import spell
from privspec.model.graph import Model, once
from privspec.model.measures import Personalised
from privspec.model.neighbours import GivenTheModel
from privspec.model.reports import Failure, Unsupported, refuse_all
from privspec.model.requirements import Requirement
from privspec.model.worlds import Worlds, finite, inputs_compared, worlds
from privspec.problem.refusals import other_families, without_amounts, without_loss
from privspec.problem.table_forms import Table, amount
from privspec.problem.table_lines import (
    Conditions,
    accuracy,
    chosen_in_loss,
    estimates,
    fairness,
    is_manipulation,
    manipulation,
)

LARGEST_EPSILON = 30
"""Ratios beyond e^30 leave nothing for double precision to tell apart."""


def reads(model: Model) -> bool:
    """Whether every input and every output has finitely many values."""
    return finite(model)


def block_of(model: Model, *, priced: bool = True) -> Table:
    """The table of a finite spec; without its loss where it is not `priced`.

    Raises: SpecError PS05xx with a construct that cannot be computed yet, PS04xx for an average without a data model.
    """
    try:
        return _lower_once(model) if priced else _lower(model, priced=False)
    except Failure as failure:
        if failure.code not in ("PS0260", "PS0262"):
            raise failure.of_spec(model.source) from failure
        # names and shapes are right: some of the values have no result, or none has one
        text = f"solve cannot compute this for all data and results: {failure.message}"
        hint = _FINITE if failure.code == "PS0260" else failure.help
        raise SpecError.at(model.source, failure.span, "PS0501", text, help=hint) from failure


_FINITE = "leave out the values for which it has no result, or write what has one, such as 1 / (x + 1)"


@once
def _lower_once(model: Model) -> Table:
    return _lower(model, priced=True)


def _lower(model: Model, *, priced: bool) -> Table:
    refuse_all(model.source, _unsupported(model))
    if model.loss is None and not model.accuracy:
        raise without_loss(model)
    space = worlds(model)
    scene = space.pointwise()
    reader = Conditions(space, scene)
    conditions = tuple(reader.constraint(constraint) for constraint in model.constraints)
    loss, estimated = Amount(None, (), (), (), Fraction(0)), None
    if priced and chosen_in_loss(model):
        estimated, constant = estimates(reader, conditions)
        loss = Amount(None, (), (), (), constant)
    elif priced and model.loss is not None:
        loss = amount(model.loss, scene, space)
    lies = [target for target in model.accuracy if is_manipulation(target.target.left)]
    limits = tuple(accuracy(target, scene, space) for target in model.accuracy if target not in lies)
    choices, laws = reader.choices()
    return Table(
        outputs=space.releases,
        of=space.of,
        counted=space.counted,
        rows=space.labels,
        columns=space.column_labels,
        places=_places(space),
        prior=None if space.prior is None else exact_grid(space.prior, (len(space.rows),)),
        compared=tuple(map(partial(_told_apart, space), model.requirements)),
        expression="" if model.loss is None else spell(model.loss),
        loss=loss,
        estimates=estimated,
        conditions=conditions,
        accuracy=limits,
        manipulation=tuple(manipulation(target, space) for target in lies),
        fairness=tuple(fairness(space, scene)),
        choices=choices,
        laws=laws,
        rounds=_rounds(model),
    )


def _places(space: Worlds) -> tuple[tuple[int, ...], ...]:
    """For each output the number of its value, by column: the last output varies fastest."""
    found = []
    every = len(space.columns)
    for name in space.releases:
        size = space.model.nodes[name].domain.size or 1  # type: ignore[union-attr]
        every //= size
        found.append(tuple(column // every % size for column in range(len(space.columns))))
    return tuple(found)


def difference_of(model: Model, moved: Requirement) -> Compared | None:
    """The rows that one unit tells apart; None where they are too many, or their number would change."""
    try:
        return _compared(worlds(model), moved)
    except Failure:
        return None


def _told_apart(space: Worlds, requirement: Requirement) -> Compared:
    """The rows that a line compares.

    Raises: Failure PS0346 where facts about data leave it none, so that it would protect nothing.
    """
    found = _compared(space, requirement)
    if space.model.facts and len(space.rows) > 1 and not found.cliques and not found.pairs.entries:
        text = f"by the facts that this spec states, no two data sets differ by {requirement.neighbours.describe()}"
        hint = "this line would protect nothing: let more change at once, as in replacing up to 2 entries"
        others = tuple((one.relation.span, "true of both") for one in space.model.facts)
        raise Failure("PS0346", requirement.span, text, help=hint, others=others)
    return found


def _compared(space: Worlds, requirement: Requirement) -> Compared:
    found = space.neighbours(requirement)
    nearest = min((square for square in found.squares if square), default=None)
    epsilon = requirement.measure.amounts.get("epsilon", Fraction(0))
    if nearest is not None and epsilon**2 * nearest > LARGEST_EPSILON**2:
        raise Failure(
            "PS0501",
            requirement.span,
            f"solve cannot compute a requirement as weak as {requirement.measure.describe()}",
            help=STRICTER,
        )
    pairs = Grid((len(found.joined), 3), Fraction(1), tuple(found.joined.ravel().tolist()))
    shares = [share for law in found.laws for share in law]
    laws = exact_grid(shares, (len(found.laws), len(space.rows))) if found.laws else None
    inputs = inputs_compared(space.model, requirement)
    return Compared(found.cliques, pairs, found.squares or (Fraction(1),), inputs, laws)


def _rounds(model: Model) -> Rounds | None:
    """The rounds of a vote that share a budget."""
    if not model.parties:
        return None
    from privspec.problem.voting import shared_rounds  # a vote may be many modules away

    shared = shared_rounds(model)
    return None if shared is None or shared.count is None else Rounds(shared.count, shared.budget)


# --- what tables do not know yet ------------------------------------------------------------------


NO_SHARES = f"shares add up to the noise of a sum: release sums without a finite domain, or write `{CURATOR.written}`"


def _unsupported(model: Model) -> Iterator[Unsupported]:
    """Constructs that tables do not know yet."""
    for claim in model.asserted:
        yield claim.claim.span, UNSEEN, NOISE_ADDED
    if not model.trust.drawn_whole:
        yield (
            model.trust_span,
            f"`trust {model.trust.name}` for values drawn from a table",
            NO_SHARES,
        )
    if model.trust.alone and model.parties:
        party = next(iter(model.parties.values()))
        way_out = "write the spec of one report, without parties: input answer in {yes, no}; a run takes one row each"
        yield party.span, "tables at each party", way_out
    instead = "tables can be computed: noise family table"
    yield from other_families(model, ("table",), " on finite domains", instead)
    if model.noise_at is not None:
        for span in model.noise_at_spans:
            yield span, "places for noise on finite domains", "the table says how outputs are drawn: leave the line out"
    yield from without_amounts(model)
    for requirement in model.requirements:
        given, asked = isinstance(requirement.neighbours, GivenTheModel), requirement.measure.of
        plain = set(asked.figures) <= {"epsilon", "delta"} and not asked.each_output
        plain = plain and not asked.by_distance and not isinstance(requirement.measure, Personalised)
        if given and not plain:
            text = f"{requirement.measure.describe()} {GIVEN}"
            yield requirement.span, text, f"write {PURE.name} or {APPROXIMATE.name}"
        epsilon = requirement.measure.amounts.get("epsilon")
        if epsilon is not None and epsilon > LARGEST_EPSILON and not requirement.measure.of.by_distance:
            yield requirement.span, f"a requirement as weak as {requirement.measure.describe()}", STRICTER


STRICTER = f"it protects nothing: ask for an epsilon of at most {LARGEST_EPSILON}"
GIVEN = "where a line counts on the model"
UNSEEN = "with functions that it cannot see into"
NOISE_ADDED = "what a function gives is used where noise is added to it: leave out the domain of the output"
