"""Voting rules side by side, and several votes on one budget.

All rules that were compared, in one table: what they cost, how far they are from the votes, and what they keep. Plans
of lotteries have it, and tables of probabilities for voting. Then how many votes fit a budget, what one spends, and
what a voter who takes part in several has spent.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from privspec import stated
from privspec.core.records import dataclass
from privspec.explain.curves import Curve, Odds, odds
from privspec.explain.document import (
    Block,
    Note,
    Paragraph,
    Points,
    Section,
    Sentence,
    Table,
    assumed,
    proved,
    reported,
)
from privspec.explain.document import table as make_table
from privspec.explain.quantities import DOWN, LOSS_DIGITS, NEAREST, UP, Quantity, count, exact, known, rounded
from privspec.stated import Alternative, Property, RuleFigures, Stated

LABELS: Mapping[str, str] = {
    "treats_voters_alike": "Treats all voters alike",
    "ex_post_efficient": "Ex-post efficient",
    "strategy_proof": "Strategy-proof",
}
"""The properties of a rule, in the order of the columns."""
MEANINGS: Mapping[str, str] = {
    "treats_voters_alike": "whose ballot is whose does not matter",
    "ex_post_efficient": "a candidate never wins if all voters prefer one and the same other candidate",
    "strategy_proof": "no voter gains by casting a ballot that is not the true one",
}
_UNKNOWN = "not stated"
COMPARED: Mapping[str, str] = {
    "": "the lottery without noise",
    "random_dictator": "random dictatorship without noise",
    "borda_lottery": "Borda's lottery without noise",
    "plurality": "plurality without noise",
}
"""The lottery that distortions are distances from, by its name in a plan."""


def property_in_short(item: Property) -> str:
    """In a list: "not strategy-proof"."""
    label = LABELS[item.name]
    words = label[0].lower() + label[1:]
    if item.holds:
        return words
    return "does not treat all voters alike" if item.name == "treats_voters_alike" else f"not {words}"


def _property(item: Property) -> Sentence:
    """In a sentence, with the reason and the counterexample; a remark of the plan, which the kernel does not judge."""
    head = f"{LABELS[item.name]} ({MEANINGS[item.name]}): {'yes' if item.holds else 'no'}."
    reason, case = _shut(item.because), _shut(item.counterexample)
    failing = f" For example, {case}." if case and not item.holds else ""
    return reported(f"{head}{f' {reason[0].upper()}{reason[1:]}.' if reason else ''}{failing}", Note(item.note))


@dataclass(frozen=True, slots=True)
class RuleRow:
    """One rule; what a plan does not state is None, and for a property missing; without a loss it was considered."""

    name: str
    chosen: bool
    admissible: bool
    loss: Quantity | None
    epsilon: Quantity | None
    worst: Quantity | None
    mean: Quantity | None
    welfare: Quantity | None
    keeps: Mapping[str, bool | None]
    reason: str

    @property
    def title(self) -> str:
        """Its name, with its part in the plan."""
        return f"{self.name}{' (this plan)' if self.chosen else '' if self.admissible else ' (ruled out)'}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The rules by loss, this plan's first, and what this plan's keeps."""

    rows: tuple[RuleRow, ...]
    properties: tuple[Property, ...]
    compared: str

    @property
    def considered(self) -> tuple[RuleRow, ...]:
        """Rules that have no loss: nothing in the range of the spec lets them meet its lines."""
        return tuple(row for row in self.rows if row.loss is None and not row.chosen)

    def blocks(self) -> tuple[Block, ...]:
        """The tables for engineers and auditors, and below them the reasons and counterexamples."""
        figures = make_table(
            "All rules that were compared. Distortion is the total variation distance of the winner's law from that of "
            f"{self.compared}. Welfare is the expected share of voters who voted for the winner. Figures of "
            "rules other than this plan's are reported by the compiler, not certified",
            "Rule | Loss | ε spent | Worst distortion | Mean distortion | Expected welfare",
            (
                (row.title, *(f or _UNKNOWN for f in (row.loss, row.epsilon, row.worst, row.mean, row.welfare)))
                for row in self.rows
                if row.chosen or row.loss is not None
            ),
            *range(1, 6),
        )
        kept = make_table(
            "What each rule keeps, as the compiler reports it",
            ("Rule", *LABELS.values()),
            ((row.title, *(_UNKNOWN if (k := row.keeps.get(n)) is None else k for n in LABELS)) for row in self.rows),
        )
        note = Note(self.properties[0].note if self.properties else "keeping")
        reasons = [reported(f"{r.name}: {_shut(r.reason)}.", note) for r in self.rows if r.reason and not r.chosen]
        said = (*map(_property, self.properties), *reasons)
        return (figures, kept, *((Points(said),) if said else ()))


def _shut(text: str) -> str:
    return text.strip().removesuffix(".")


def comparison(plan: Stated, title: str = "") -> Comparison | None:
    """The rules of a plan and of its alternatives that are compared; None where the plan has no such figures."""
    remarks = plan.remarks
    others = [item for item in plan.alternatives if item.figures is not None]
    if not remarks.properties and not others:
        return None
    spent = [g.achieved["epsilon"] for g in plan.guarantees if g.achieved.get("epsilon")]
    recognised = remarks.recognised.name if remarks.recognised is not None else "table of probabilities"
    own = Alternative(
        title or recognised, None if plan.loss is None else plan.loss.value, admissible=True, figures=remarks.figures
    )
    keeps = {p.name: p.holds for p in remarks.properties}
    first = _row(own, chosen=True, epsilon=stated.parse_exact(spent[0]) if spent else None, keeps=keeps)
    rows = [_row(item) for item in (*others, *remarks.considered)]
    rows.sort(key=lambda row: (not row.admissible, row.loss is None, row.loss.value if row.loss else 0.0))
    return Comparison((first, *rows), remarks.properties, COMPARED.get(remarks.compared, COMPARED[""]))


def _row(
    item: Alternative,
    *,
    chosen: bool = False,
    epsilon: Fraction | None = None,
    keeps: Mapping[str, bool | None] | None = None,
) -> RuleRow:
    """A loss that is the least it could be is rounded down; epsilon up."""
    figures = item.figures or RuleFigures()
    loss = known(item.loss, LOSS_DIGITS, DOWN if item.at_least else NEAREST)
    if loss is not None and item.at_least:
        loss = Quantity(loss.value, f"at least {loss}", loss.rounding)
    return RuleRow(
        item.name,
        chosen,
        item.admissible,
        loss,
        known(figures.epsilon if epsilon is None else epsilon, 4, UP),
        known(figures.worst_distortion, 4),
        known(figures.mean_distortion, 4),
        known(figures.expected_welfare, 4),
        figures.properties or item.properties if keeps is None else keeps,
        item.reason,
    )


NOTE = Note("repeated-votes")
SHOWN = (1, 2, 5)
"""Rounds of one voter that tables show, besides all of them."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A voter who took part in so many rounds: epsilon in all, and the odds of one who sees all their winners."""

    number: int
    count: Quantity
    epsilon: Quantity
    odds: Odds


@dataclass(frozen=True, slots=True)
class Rounds:
    """A budget for several votes: how many, what each spends, and how many fit.

    `chosen` is whether the guarantee hides who takes part, so that voters may stay away; `taken` ends with all rounds.
    """

    number: int
    count: Quantity
    each: Quantity
    budget: Quantity | None
    fit: Quantity | None
    chosen: bool
    taken: tuple[Taken, ...]

    @property
    def words(self) -> str:
        """The budget in a line."""
        budget = f"; together ε {self.budget}" if self.budget is not None else ""
        fit = f"; {self.fit} of them fit the budget" if self.fit is not None else ""
        return f"{self.count}, each at ε {self.each}{budget}{fit}"

    def table(self) -> Table:
        """For auditors and engineers: epsilon of a voter, by rounds with them."""
        caption = "What a voter who takes part in k rounds has spent"
        rows = ((t.count, t.epsilon, t.odds.pair) for t in self.taken)
        return make_table(caption, "k | ε spent | Odds of one who sees all winners", rows)

    def points(self) -> tuple[Sentence, ...]:
        """How rounds add up, and who counts them."""
        counted = " With `--participation` rounds are counted for each voter, and the first pays in full."
        limit = f"The ledger's limit is the budget: while it is kept, round {self.number + 1} is refused."
        return (
            proved(
                f"Several rounds: {self.words}. Epsilons add up, also where earlier winners decide "
                f"{'who takes part in' if self.chosen else 'how people vote in'} later rounds; the odds of one who "
                f"sees all winners are {self.taken[-1].odds.pair}.",
                NOTE,
            ),
            proved(f"{limit}{counted if self.chosen else ''}", NOTE),
        )


def rounds_fact(item: stated.Rounds, one: Curve, *, chosen: bool) -> Rounds:
    """The rounds of a plan, with the curve of one of them."""
    epsilon, number = item.each, item.count
    return Rounds(
        number,
        count(number),
        rounded(epsilon, 6),
        None if item.budget is None else exact(item.budget),
        None if item.fit is None else count(item.fit),
        chosen=chosen,
        taken=tuple(
            Taken(k, count(k), rounded(k * epsilon, 6), odds(one.repeated(k)))
            for k in (*(k for k in SHOWN if k < number), number)
        ),
    )


def rounds_rows(rounds: Rounds) -> list[tuple[str, str]]:
    """The budget, and what a voter has spent."""
    spent = " · ".join(f"{t.epsilon} in {t.count}" for t in rounds.taken)
    return [("Rounds", rounds.words), ("Spent by a voter", f"ε {spent} rounds")]


def public_rounds(rounds: Rounds) -> tuple[Section, ...]:
    """What it means to take part again and again."""
    if rounds.number < 2:
        return ()
    n, chosen, odds = rounds.count, rounds.chosen, rounds.taken[-1].odds
    one = "Each vote in which you take part" if chosen else "Each"
    words = [
        f"There are {n} votes like this one; the odds above are for one of them. {one} spends one of the {n} parts of "
        f"your budget of privacy: after all of them, {odds.without_words} would be wrongly accused.",
        "The others cost you nothing." if chosen else f"After {n} votes the ledger ends it.",
    ]
    stops = (
        f"After {n} votes the keeper stops, or leaves out whoever took part {n} times, by a list that is as secret as "
        "the votes."
    )
    said = (*(proved(text, NOTE) for text in words), *((assumed(stops, NOTE),) if chosen else ()))
    return (Section("What if you vote again and again?", (Paragraph(said),)),)
