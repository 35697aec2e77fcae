"""Tables judged: the lines that they obey, what they cost, and that no table costs less."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from privspec.kernel.core.case import Case, Rules
from privspec.kernel.core.numbers import nearest_double
from privspec.kernel.core.problem import View
from privspec.kernel.core.reading import Item, Refused, read
from privspec.kernel.core.tables import Compared, Table, let_through, privacy, read_law
from privspec.kernel.quality.tables_bound import lower_bound
from privspec.kernel.quality.tables_forms import NONE, Rounds, Task

OPTIMAL_GAP = Fraction(1, 10**6)
MECHANISM = (
    *("family", "of", "counted", "releases", "inputs", "outputs", "prior", "probabilities", "scalars", "laws"),
    "rounds",
)


@dataclass(frozen=True, slots=True)
class Executed:
    """What `run` draws from, as the kernel read it."""

    table: Table
    scalars: dict[str, Fraction]
    laws: dict[str, dict[str, Fraction]]


# --- judging --------------------------------------------------------------------------------------


class Tables(Rules):
    """A table drawn exactly: privacy first, then what it costs and the lines that it obeys."""

    def judge(self, case: Case) -> Executed:
        """Judge every statement."""
        task = read(Task, case.block)
        assert isinstance(task, Task)
        said = dict(zip(MECHANISM, case.mechanism.fields(*MECHANISM[:-1], optional=MECHANISM[-1:]), strict=True))
        for key, known in (("family", "table"), ("of", task.of), ("counted", task.counted), ("inputs", task.rows),
                           ("releases", task.outputs), ("outputs", task.columns),
                           ("prior", [str(p) for p in task.weights()] or None)):  # fmt: skip
            said[key].same(known)
        numerators, whole = read_law(said["probabilities"], (len(task.rows), len(task.columns)))
        table = Table(task.outputs, task.rows, task.columns, task.places, numerators, whole)
        case.says("law", True, f"{len(task.rows)} x {len(task.columns)} exact probabilities; each row sums to one")
        chosen = _chosen(case, task, said)
        guarantees = privacy(case, table, task.compared, chosen)
        _rounds(case, task.rounds, said["rounds"], [one.asked.get("epsilon") for one in guarantees])
        for one in guarantees:
            grouped = ["group-privacy"] if any(unit.count > 1 for unit in one.obligation.units) else []
            Item(list(one.because), "because").same(["tables", *grouped, *(["repeated-votes"] if task.rounds else [])])
        exact = task.loss.value(table, task.weights(), chosen) + task.errors(table, chosen)
        _lines(case, task, table, chosen)
        _fairness(case, task, table)
        witness = case.claims
        views = [table.view(list(one.obligation.seen)) for one in guarantees]
        asked = list(zip(task.compared, guarantees, views, strict=True))
        try:
            derived = None if witness.value == {} else lower_bound(witness, task, asked)
            _loss(case, task, exact, derived)
        except Refused as reason:
            case.says("bound", False, str(reason))
        laws = {law.name: {label: chosen[f"{law.name}:{label}"] for label in law.labels} for law in task.laws}
        return Executed(table, {one.name: chosen[one.name] for one in task.choices}, laws)

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


def _chosen(case: Case, task: Task, said: dict[str, Item]) -> dict[str, Fraction]:
    """The numbers that the plan chose, and the masses of its laws by name.

    Raises: Refused for one that is missing, or that is no law.
    """
    found = {}
    for one, item in zip(task.choices, said["scalars"].fields(*(one.name for one in task.choices)), strict=True):
        found[one.name] = item.exact()
        case.says("choices", one.holds(item.exact()), f"{one.name} = {float(item.exact()):.9g} is in its range")
    for law, item in zip(task.laws, said["laws"].fields(*(law.name for law in task.laws)), strict=True):
        shares = [share.exact(0) for share in item.fields(*law.labels)]
        whole = Fraction(1) if law.weight is None else 1 - found[law.weight]
        case.says("choices", sum(shares) == 1 and whole >= 0, f"{law.name} is a law")
        found |= {name: whole * share for name, share in zip(law.masses(), shares, strict=True)}
    return found


def _rounds(case: Case, rounds: Rounds | None, said: Item, epsilons: list[Fraction | None]) -> None:
    if rounds is None or said.absent:
        said.same(rounds)
        return
    count, budget, each, fit = said.fields("count", "budget", "each", "fit")
    holds = count.integer() == fit.integer() == rounds.count and budget.exact() == rounds.budget
    holds = holds and each.exact() * rounds.count == rounds.budget and {*epsilons} == {each.exact()}
    text = f"{rounds.count} rounds share epsilon = {float(rounds.budget):.9g}: each spends {float(each.exact()):.9g}"
    case.says("rounds", holds, text)


def _lines(case: Case, task: Task, table: Table, chosen: dict[str, Fraction]) -> None:
    for number, one in enumerate(task.conditions):
        wrong = [r for r, total in enumerate(one.totals(table, chosen)) if total > 0 or (one.equality and total)]
        text = f"line {one.line} {f'does not hold at {table.rows[wrong[0]]}' if wrong else 'holds at every row'}"
        case.says("conditions", not wrong, f"{text}: {one.text}", number)
    found = [(one.line, one.limit, one.amount.value(table, task.weights(), chosen)) for one in task.accuracy]
    found += [(one.line, one.limit, one.gained(table)) for one in task.manipulation]
    for number, (line, limit, value) in enumerate(found):
        text = f"line {line}: {float(value):.9g}, asked for at most {float(limit):.9g}"
        case.says("accuracy", value <= limit, text, number)
    case.accuracy.same([])


def _fairness(case: Case, task: Task, table: Table) -> None:
    listed = case.fairness.items(len(task.fairness)) if task.fairness or not case.fairness.absent else []
    for number, (one, item) in enumerate(zip(task.fairness, listed, strict=True)):
        gaps = one.gaps(table, task.weights())
        most, level = max(gaps, key=lambda gap: gap[0], default=(NONE, 0))
        holds = all(gap**2 <= one.squares[at] for gap, at in gaps) and all(
            t**2 <= square for t, square in zip(one.tolerances, one.squares, strict=True)
        )
        line, text, tolerance, achieved = item.fields("line", "text", "tolerance", "achieved")
        line.same(one.line)
        text.same(one.text)
        holds = holds and achieved.exact() >= most and tolerance.exact() == [*one.tolerances, NONE][level]
        words = f"line {one.line}: largest total variation {float(most):.6g}, asked for {float(tolerance.exact()):.6g}"
        case.says("fairness", holds, words, number)


def _loss(case: Case, task: Task, exact: Fraction, derived: Fraction | None) -> None:
    """The loss is the exact one, and no table has less than the bound."""
    value, low, gap, expression, units, among, kind = case.loss.fields(
        "value", "lower_bound", "relative_gap", "expression", "units", "among", "kind"
    )
    rounded = nearest_double(exact)
    one_worst = task.loss.average is None and len(task.loss.worst) == 1
    only = one_worst and not task.loss.variations and not task.loss.prices and task.estimates is None
    counted = " (its order is not looked at)" if task.counted else ""
    expression.same(task.expression)
    units.same("units of the loss expression")
    kind.same("worst" if only else "expected")
    among.same(f"all tables Pr({', '.join(task.outputs)} | {', '.join(task.of)}){counted}")
    same = value.double() == rounded
    text = f"the loss of what is executed is {rounded:.10g}"
    case.says("loss", same, text if same else f"{text}, and not {value.double():.10g}")
    if derived is None:
        low.same(None)
        gap.same(None)
        case.says("bound", case.status != "optimal", "no lower bound is stated")
        return
    stated = Fraction(low.double())
    apart = (Fraction(rounded) - stated) / (Fraction(abs(rounded)) or 1)
    gap.same(nearest_double(apart))
    text = f"no table has a loss below {min(float(stated), float(derived)):.8g}"
    case.says("bound", stated <= derived and apart >= 0, text)
    if case.status == "optimal":
        case.says("bound", apart <= OPTIMAL_GAP, f"the loss is within {float(apart):.1e} of the bound")
