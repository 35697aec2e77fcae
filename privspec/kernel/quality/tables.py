"""Tables judged: the lines that they obey, what they cost, and that no table costs less."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from privspec.kernel.core.case import Case, Rules
from privspec.kernel.core.problem import View
from privspec.kernel.core.reading import Item, Refused, read
from privspec.kernel.core.tables import Compared, Table, let_through, privacy, read_law
from privspec.kernel.quality.stated import judge_lines, judge_loss
from privspec.kernel.quality.tables_bound import contrasts, lower_bound
from privspec.kernel.quality.tables_forms import NONE, Rounds, Task

SAID = ("family", "of", "counted", "releases", "inputs", "outputs", "prior", "probabilities", "scalars", "laws")


@dataclass(frozen=True, slots=True)
class Executed:
    """What `run` draws from, as the kernel read it."""

    table: Table
    scalars: dict[str, Fraction]
    laws: dict[str, dict[str, Fraction]]


class Tables(Rules):
    """A table drawn exactly: privacy first, then what it costs and the lines that it obeys."""

    def judge(self, case: Case) -> Executed:
        task = read(Task, case.block)
        assert isinstance(task, Task)
        *same, law, scalars, laws, rounds = case.mechanism.fields(*SAID, optional=("rounds",))
        prior = [str(p) for p in task.weights()] or None
        known = ["table", task.of, task.counted, task.outputs, task.rows, task.columns, prior]
        for item, value in zip(same, known, strict=True):
            item.same(value)
        numerators, whole = read_law(law, (len(task.rows), len(task.columns)))
        table = Table(task.outputs, task.rows, task.columns, task.places, numerators, whole)
        case.says("law", True, f"{len(task.rows)} x {len(task.columns)} exact probabilities; each row sums to one")
        chosen = _chosen(case, task, scalars, laws)
        guarantees = privacy(case, table, task.compared, chosen)
        _rounds(case, task.rounds, rounds, [one.asked.get("epsilon") for one in guarantees])
        for one in guarantees:
            grouped = ["group-privacy"] if any(unit.count > 1 for unit in one.obligation.units) else []
            Item(list(one.because), "because").same(["tables", *grouped, *(["repeated-votes"] if task.rounds else [])])
        for number, line in enumerate(task.conditions):
            wrong = [r for r, total in enumerate(line.totals(table, chosen)) if total > 0 or (line.equality and total)]
            text = f"does not hold at {table.rows[wrong[0]]}" if wrong else "holds at every row"
            case.says("conditions", not wrong, f"line {line.line} {text}: {line.text}", number)
        limits = [(line, most, one.value(table, task.weights(), chosen)) for line, _, one, most in task.accuracy]
        lies = [(one.line, one.limit, max([NONE, *one.contrast().gaps(table).values()])) for one in task.manipulation]
        judge_lines(case, limits + lies, NONE)
        case.accuracy.same([])
        _fairness(case, task, table)
        try:
            empty = case.claims.value == {}
            derived = None if empty else lower_bound(case.claims, task, contrasts(task, table, guarantees))
            _loss(case, task, task.loss.value(table, task.weights(), chosen) + task.errors(table, chosen), derived)
        except Refused as reason:
            case.says("bound", False, str(reason))
        drawn = {name: {label: chosen[f"{name}:{label}"] for label in labels} for name, labels, _ in task.laws}
        return Executed(table, {name: chosen[name] for name, *_ in task.choices}, drawn)

    def reach(
        self, case: Case, executed: object, view: View, outputs: tuple[str, ...], witness: Item
    ) -> dict[str, Fraction] | None:
        """What the columns that look alike to an observer tell of the rows that a unit compares."""
        assert isinstance(executed, Executed)
        witness.same(None)
        if view.difference.absent:
            return None
        asked, table = read(Compared, view.difference), executed.table
        assert isinstance(asked, Compared)
        seen = table.outputs if case.frame.trust == "nobody" else list(outputs)
        return let_through(table.seen(table.view(seen)), table.denominator, asked)


def _chosen(case: Case, task: Task, scalars: Item, laws: Item) -> dict[str, Fraction]:
    """The numbers that the plan chose, and the masses of its laws by name.

    Raises: Refused for one that is missing, or that is no law.
    """
    found = {}
    for (name, low, high, over, under, values), item in zip(
        task.choices, scalars.fields(*(name for name, *_ in task.choices)), strict=True
    ):
        found[name] = value = item.exact()
        inside = low <= value <= high and not (over and value == low) and not (under and value == high)
        holds = inside and (values is None or value in values)
        case.says("choices", holds, f"{name} = {float(value):.9g} is in its range")
    for (name, labels, weight), item in zip(task.laws, laws.fields(*(name for name, *_ in task.laws)), strict=True):
        shares = [share.exact(0) for share in item.fields(*labels)]
        whole = Fraction(1) if weight is None else 1 - found[weight]
        case.says("choices", sum(shares) == 1 and whole >= 0, f"{name} is a law")
        found |= {f"{name}:{label}": whole * share for label, share in zip(labels, shares, strict=True)}
    return found


def _rounds(case: Case, rounds: Rounds | None, said: Item, epsilons: list[Fraction | None]) -> None:
    if rounds is None or said.absent:
        said.same(rounds)
        return
    figures, (count, budget) = [one.exact() for one in said.fields("count", "budget", "each", "fit")], rounds
    text = f"{count} rounds share epsilon = {float(budget):.9g}: each spends {float(budget / count):.9g}"
    holds = figures == [count, budget, budget / count, count] and {*epsilons} == {budget / count}
    case.says("rounds", holds, text)


def _fairness(case: Case, task: Task, table: Table) -> None:
    """The laws of groups are at most so far apart; `achieved` is no less than the largest distance."""
    listed = case.fairness.items(len(task.fairness)) if task.fairness or not case.fairness.absent else []
    for number, (one, item) in enumerate(zip(task.fairness, listed, strict=True)):
        most, asked, holds = one.largest(table, task.weights())
        holds = holds and all(t**2 <= square for t, square in zip(one.tolerances, one.squares, strict=True))
        line, text, tolerance, achieved = item.fields("line", "text", "tolerance", "achieved")
        line.same(one.line)
        text.same(one.text)
        holds = holds and achieved.exact() >= most and tolerance.exact() == asked
        words = f"line {one.line}: largest total variation {float(most):.6g}, asked for {float(asked):.6g}"
        case.says("fairness", holds, words, number)


def _loss(case: Case, task: Task, exact: Fraction, derived: Fraction | None) -> None:
    loss = task.loss
    averaged = loss.average is not None or loss.variations or loss.prices or task.estimates is not None
    counted = " (its order is not looked at)" if task.counted else ""
    among = f"all tables Pr({', '.join(task.outputs)} | {', '.join(task.of)}){counted}"
    kind = "expected" if averaged or len(loss.worst) != 1 else "worst"
    judge_loss(case, exact, derived, (among,), "table", [task.expression, "units of the loss expression", kind])
