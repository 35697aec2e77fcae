"""Tables Pr(column | row): the law that is executed, what an observer sees of it, and what that tells.

Probabilities are whole numbers over one denominator.
"""

from __future__ import annotations

from fractions import Fraction

from privspec.kernel.changes import Rows
from privspec.kernel.core.numbers import BITS, sqrt_down
from privspec.kernel.core.problem import Guarantee, PlanUnderCheck, read_guarantees
from privspec.kernel.core.reading import Grid, Refused, frozen
from privspec.kernel.promises import Line, Question, verdict
from privspec.kernel.rules import PAIRS
from privspec.kernel.terms import Table


@frozen
class Compared:
    """The rows that an obligation compares: cliques at distance one, and pairs (a, b, level) by squared distance.

    With `laws` (laws, rows) these are compared: what a model says of rows, given what is hidden.
    """

    cliques: tuple[tuple[int, ...], ...]
    pairs: Grid
    squares: tuple[Fraction, ...]
    inputs: int
    laws: Grid | None = None

    def every(self) -> list[tuple[int, int, int]]:
        """Each pair, those of cliques with level -1."""
        if sum(len(rows) ** 2 for rows in self.cliques) > PAIRS:
            raise Refused("the problem compares too many rows")
        inside = [(a, b, -1) for rows in self.cliques for i, a in enumerate(rows) for b in rows[:i]]
        return triples(self.pairs, len(self.squares)) + inside

    @property
    def changes(self) -> list[tuple[Fraction, Rows]]:
        """The rows that are compared, by the squares of their distances."""
        levels: dict[int, list[tuple[int, int]]] = {}
        for a, b, level in triples(self.pairs, len(self.squares)):
            levels.setdefault(level, []).append((a, b))
        found = [(self.squares[level], Rows(tuple(pairs), (), self.drawn)) for level, pairs in levels.items()]
        if self.cliques or not found:
            found.append((Fraction(1), Rows((), self.cliques, self.drawn)))
        return found

    @property
    def drawn(self) -> tuple[tuple[int, ...], ...]:
        """The laws of rows in whole numbers; none where rows are compared."""
        return () if self.laws is None else tuple(map(tuple, self.laws.rows))

    def mixtures(self, rows: int) -> list[dict[int, Fraction]]:
        """Of what is compared, by number, the shares of rows."""
        if self.laws is None:
            return [{row: Fraction(1)} for row in range(rows)]
        return [{r: Fraction(n, sum(law)) for r, n in enumerate(law) if n} for law in self.laws.rows]


def triples(grid: Grid, levels: int) -> list[tuple[int, int, int]]:
    """Pairs with a level, in any order of the two."""
    found = [(a, b, level) for a, b, level in grid.rows]
    if grid.unit != 1 or any(min(pair) < 0 or pair[0] == pair[1] or pair[2] >= levels for pair in found):
        raise Refused("the problem compares what are no pairs")
    return found


def table_of(laws: Grid, output: str) -> Table:
    """Laws of one output (rows, columns), of which each column shows another value."""
    whole = 1 / laws.unit
    if whole.denominator > 1:
        raise Refused("has parts of chances that add up to one in no row: it is no law")
    return Table(tuple(map(tuple, laws.rows)), int(whole), ((output, tuple(range(laws.shape[1]))),))


def judge(
    case: PlanUnderCheck, table: Table, compared: tuple[Compared, ...], chosen: dict[str, Fraction]
) -> list[Guarantee]:
    """Judge every guarantee: what its observer sees, and what the rows that it compares tell of each other."""
    frame, guarantees = case.frame, read_guarantees(case.guarantees, case.frame, chosen)
    local, lines = frame.trust.means.alone, list[Line]()
    if frame.trust.means.shared or (local and any(one.party for one in frame.data)):
        raise Refused("a table is drawn by one keeper, or is one party's report")
    for guarantee, asked in zip(guarantees, compared, strict=True):
        line, seen = guarantee.obligation, frozenset(guarantee.obligation.seen)
        fits = set(line.outputs) <= seen <= table.outputs and (seen == table.outputs or not local)
        case.says("view", fits, f"line {line.line} is about whoever sees {', '.join(line.seen)}", guarantee.number)
        questions = questions_of(guarantee, asked) if _within(guarantee, asked) else ()
        lines.append(Line(line.line, seen, line.measure.of, questions, fits))
        if not case.part:
            _says(case, table, guarantee, lines[-1])
    case.promised = table, lines
    return guarantees


def _says(case: PlanUnderCheck, table: Table, guarantee: Guarantee, line: Line) -> None:
    """Whether a line holds, in words."""
    asked, holds = guarantee.obligation, verdict(table, line).holds
    figures = ", ".join(f"{key} = {float(value):.9g}" for key, value in guarantee.achieved.items())
    text = f"{'' if holds else 'not true: '}line {asked.line}, {asked.neighbours}: {asked.measure.name} with {figures}"
    text = text if line.questions else f"line {asked.line}: figures that are not within {asked.measure.name}"
    case.says("privacy", holds, text, guarantee.number)


def questions_of(guarantee: Guarantee, compared: Compared) -> tuple[Question, ...]:
    """One change for each distance: an epsilon is meant for a unit of distance, so it is as much larger there.

    Levels are people's own epsilons where each has one.
    """
    limits, reached, found = guarantee.asked, guarantee.achieved, list[Question]()
    for square, change in compared.changes:
        asked, stated, single = dict(limits), dict(reached), None
        if "epsilon" in reached and "order" not in reached:
            for amounts in (asked, stated):
                amounts["epsilon"] = sqrt_down(square * amounts["epsilon"] ** 2, 2 * BITS)
        if guarantee.obligation.measure.of.each_output:
            single = asked["epsilon"], limits["delta"] / compared.inputs
            asked["delta"] = Fraction(1)
        found.append(Question(change, asked, stated, single=single))
    return tuple(found)


def _within(guarantee: Guarantee, asked: Compared) -> bool:
    """Whether a plan's figures are those of the measure and at most what is asked; levels are people's own epsilons."""
    measure, limits, reached = guarantee.obligation.measure, guarantee.asked, guarantee.achieved
    own = {(one.figures({})["epsilon"] / limits["epsilon"]) ** 2 for one in measure.each if len(limits) == 1}
    fits = set(limits) - {"delta"} <= set(reached) <= set(limits) and (not measure.each or set(asked.squares) <= own)
    free = {"delta"} if measure.of.each_output else set[str]()
    fits = fits and limits.get("order") == reached.get("order")
    return fits and all(reached[k] <= limits[k] for k in {*reached} - free)
