"""Voting rules side by side, and several votes on one budget.

All rules that were compared, in one table: what they cost, how far they are from the votes, and what they keep. Plans
of lotteries have it, and tables of probabilities for voting. Then how many votes fit a budget, what one spends, and
what a voter who takes part in several has spent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from privspec.explain.curves import Curve, odds_fact
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
from privspec.explain.quantities import LOSS_DIGITS, Quantity, Rounding, count, exact, parse_exact, rounded

if TYPE_CHECKING:
    from privspec.explain.curves import OddsFact
    from privspec.explain.facts import Facts


LABELS: Mapping[str, str] = {
    "treats_voters_alike": "Treats all voters alike",
    "ex_post_efficient": "Ex-post efficient",
    "strategy_proof": "Strategy-proof",
}
"""The properties of a rule, in the order of the columns."""
MEANINGS: Mapping[str, str] = {
    "treats_voters_alike": "whose ballot is whose does not matter",
    "ex_post_efficient": "no candidate wins to whom all voters prefer one and the same other candidate",
    "strategy_proof": "no voter gains by casting another ballot than the true one",
}
_UNKNOWN = "not stated"
_COMPARED: Mapping[str, str] = {
    "random_dictator": "random dictatorship without noise",
    "borda_lottery": "Borda's lottery without noise",
    "plurality": "plurality without noise",
}


def described(plan: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is executed, with what the plan remarks of it: figures and properties, which nobody certified."""
    return {**(plan.get("remarks") or {}), **(plan.get("mechanism") or {})}


def compared_with(mechanism: Mapping[str, Any]) -> str:
    """The lottery that distortions are distances from."""
    return _COMPARED.get(str(mechanism.get("compared", "")), "the lottery without noise")


@dataclass(frozen=True, slots=True)
class PropertyFact:
    """Whether a rule has a property; if not, the smallest case where it fails, in words."""

    name: str
    holds: bool
    note: str
    because: str
    counterexample: str

    @property
    def label(self) -> str:
        """As tables head it: "Strategy-proof"."""
        return LABELS.get(self.name, self.name.replace("_", " ").capitalize())

    @property
    def short(self) -> str:
        """In a list: "not strategy-proof"."""
        words = self.label[0].lower() + self.label[1:]
        if self.holds:
            return words
        return "does not treat all voters alike" if self.name == "treats_voters_alike" else f"not {words}"

    @property
    def text(self) -> str:
        """In a sentence, with the reason or the counterexample."""
        meaning = MEANINGS.get(self.name, "")
        head = f"{self.label}{f' ({meaning})' if meaning else ''}: {'yes' if self.holds else 'no'}"
        reason = _shut(self.because)
        failing = f" For example, {_shut(self.counterexample)}." if self.counterexample and not self.holds else ""
        return f"{head}, as {reason}.{failing}" if reason else f"{head}.{failing}"

    def sentence(self) -> Sentence:
        """With its note; a remark of the plan, which the kernel does not judge."""
        return reported(self.text, Note(self.note))


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
    keeps: Mapping[str, bool]
    reason: str

    @property
    def title(self) -> str:
        """Its name, with its part in the plan."""
        if self.chosen:
            return f"{self.name} (this plan)"
        return self.name if self.admissible else f"{self.name} (ruled out)"

    def figures(self) -> tuple[str, ...]:
        """What it costs, and how far it is from the votes."""
        figures = (self.loss, self.epsilon, self.worst, self.mean, self.welfare)
        return (self.title, *(_UNKNOWN if f is None else f.text for f in figures))

    def kept(self) -> tuple[str, ...]:
        """Whether it has each of the properties."""
        yes_no = {True: "yes", False: "no", None: _UNKNOWN}
        return (self.title, *(yes_no[self.keeps.get(name)] for name in LABELS))


@dataclass(frozen=True, slots=True)
class Comparison:
    """The rules by loss, this plan's first, and what this plan's keeps."""

    rows: tuple[RuleRow, ...]
    properties: tuple[PropertyFact, ...]
    failing: tuple[tuple[str, PropertyFact], ...]
    compared: str

    @property
    def considered(self) -> tuple[RuleRow, ...]:
        """Rules that have no loss: nothing in the range of the spec lets them meet its lines."""
        return tuple(row for row in self.rows if row.loss is None and not row.chosen)

    def tables(self) -> tuple[Table, Table]:
        """For engineers and auditors."""
        figures = Table(
            "All rules that were compared; distortion is the total variation distance of the winner's law from that of "
            f"{self.compared}, welfare the expected share of voters who voted for the winner; figures of "
            "rules other than this plan's are "
            "reported by the compiler, not certified",
            ("Rule", "Loss", "ε spent", "Worst distortion", "Mean distortion", "Expected welfare"),
            tuple(row.figures() for row in self.rows if row.chosen or row.loss is not None),
            numeric=frozenset({1, 2, 3, 4, 5}),
        )
        kept = Table(
            "What each rule keeps, as the compiler reports it",
            ("Rule", *LABELS.values()),
            tuple(row.kept() for row in self.rows),
        )
        return figures, kept

    def blocks(self) -> tuple[Block, ...]:
        """The tables, and below them the reasons and counterexamples."""
        said = [item.sentence() for item in self.properties]
        said += [reported(f"{rule}: {_lower(item.text)}", Note(item.note)) for rule, item in self.failing]
        reasons = [
            reported(f"{row.name}: {_shut(row.reason)}.", Note(self.note))
            for row in self.rows
            if row.reason and not row.chosen
        ]
        points = (Points((*said, *reasons)),) if said or reasons else ()
        return (*self.tables(), *points)

    @property
    def note(self) -> str:
        """The note behind the properties."""
        return self.properties[0].note if self.properties else "keeping"


def _shut(text: str) -> str:
    return text.strip().removesuffix(".")


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def properties(items: object) -> tuple[PropertyFact, ...]:
    """The properties that a mechanism lists."""
    found = [item for item in items if isinstance(item, Mapping)] if isinstance(items, Sequence) else []
    return tuple(
        PropertyFact(
            str(item["name"]),
            bool(item["holds"]),
            str(item.get("note") or "keeping"),
            str(item.get("because") or ""),
            str(item.get("counterexample") or ""),
        )
        for item in found
    )


def comparison(plan: Mapping[str, Any], title: str = "") -> Comparison | None:
    """The rules of a plan and of its alternatives that are compared; None where the plan has no such figures.

    Raises: KeyError, ValueError if they are not of the form of such a plan.
    """
    mechanism, loss = described(plan), plan.get("loss") or {}
    own = properties(mechanism.get("properties"))
    others = [a for a in plan.get("alternatives") or () if isinstance(a.get("figures"), Mapping)]
    if not own and not others:
        return None
    figures = mechanism.get("figures") or {}
    spent = [g["achieved"]["epsilon"] for g in plan.get("guarantees") or () if (g.get("achieved") or {}).get("epsilon")]
    epsilon = spent[0] if spent else figures.get("epsilon")
    name = title or str((plan.get("remarks", {}).get("recognised") or {}).get("name") or "table of probabilities")
    first = RuleRow(
        name,
        chosen=True,
        admissible=True,
        loss=_loss(loss.get("value")),
        epsilon=_epsilon(epsilon),
        keeps={p.name: p.holds for p in own},
        reason="",
        **_figures(figures),
    )
    considered = [a for a in plan.get("remarks", {}).get("considered") or () if isinstance(a, Mapping)]
    rows = [_other(item) for item in (*others, *({**a, "figures": a} for a in considered))]
    rows.sort(key=lambda row: (not row.admissible, row.loss is None, row.loss.value if row.loss else 0.0))
    failing = tuple((str(a["name"]), p) for a in others for p in _told(a["figures"].get("properties")))
    return Comparison((first, *rows), own, failing, compared_with(mechanism))


def _told(items: object) -> tuple[PropertyFact, ...]:
    """Failing properties of an alternative, where the plan gives a counterexample."""
    return tuple(p for p in properties(items) if p.counterexample and not p.holds)


def _other(item: Mapping[str, Any]) -> RuleRow:
    figures = item["figures"]
    listed = figures.get("properties") or {}
    keeps = listed if isinstance(listed, Mapping) else {p.name: p.holds for p in properties(listed)}
    return RuleRow(
        str(item["name"]),
        chosen=False,
        admissible=bool(item.get("admissible", False)),
        loss=_loss(item.get("loss"), least=bool(item.get("at_least"))),
        epsilon=_epsilon(figures.get("epsilon")),
        keeps={str(k): bool(v) for k, v in keeps.items() if v is not None},
        reason=str(item.get("reason") or ""),
        **_figures(figures),
    )


def _figures(figures: Mapping[str, Any]) -> dict[str, Quantity | None]:
    known = {"worst": "worst_distortion", "mean": "mean_distortion", "welfare": "expected_welfare"}
    return {key: None if figures.get(name) is None else rounded(float(figures[name]), 4) for key, name in known.items()}


def _loss(value: object, *, least: bool = False) -> Quantity | None:
    """A loss; `least` where the true one may be larger."""
    if value is None:
        return None
    found = rounded(float(parse_exact(value)), LOSS_DIGITS, Rounding.DOWN if least else Rounding.NEAREST)
    return Quantity(found.value, f"at least {found}", found.rounding) if least else found


def _epsilon(value: object) -> Quantity | None:
    """Rounded up; without end where there is no epsilon."""
    if value is None:
        return None
    if isinstance(value, str) and value in ("inf", "infinite", "none"):
        return Quantity(float("inf"), "no ε at all", Rounding.EXACT)
    return rounded(parse_exact(value), 4, Rounding.UP)


NOTE = Note("repeated-votes")
SHOWN = (1, 2, 5)
"""Rounds of one voter that tables show, besides all of them."""
_TRACE = Fraction(1, 10**6)
"""Roundings of an epsilon."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A voter who took part in so many rounds: epsilon in all, and the odds of one who sees all their winners."""

    number: int
    count: Quantity
    epsilon: Quantity
    odds: OddsFact


@dataclass(frozen=True, slots=True)
class Rounds:
    """A budget for several votes: how many, what each spends, how many fit, and in how many one person takes part.

    `whole` is whether the guarantee of the plan is about all of them, else about one; `chosen` whether it hides who
    takes part, so that voters may stay away; `taken` ends with all rounds.
    """

    number: int
    count: Quantity
    each: Quantity
    epsilon: Fraction
    budget: Quantity | None
    fit: Quantity | None
    participation: Quantity | None
    whole: bool
    chosen: bool
    taken: tuple[Taken, ...]

    @property
    def together(self) -> OddsFact:
        """The odds of one who sees all winners."""
        return self.taken[-1].odds


def rounds_fact(item: Mapping[str, Any], reached: Fraction | None, one: Curve, *, chosen: bool) -> Rounds:
    """`mechanism.rounds` of a plan, with the epsilon of its guarantee and the curve of one round."""
    each = item["each"]
    epsilon = parse_exact(each["epsilon"] if isinstance(each, Mapping) else each)
    number = int(item["count"])
    fit, participation = (None if item.get(k) is None else count(int(item[k])) for k in ("fit", "participation"))
    return Rounds(
        number,
        count(number),
        rounded(epsilon, 6),
        epsilon,
        None if item.get("budget") is None else exact(parse_exact(item["budget"])),
        fit,
        participation,
        whole=number > 1 and reached is not None and reached > epsilon * (1 + _TRACE),
        chosen=chosen,
        taken=tuple(
            Taken(k, count(k), rounded(k * epsilon, 6), odds_fact(one.repeated(k)))
            for k in (*(k for k in SHOWN if k < number), number)
        ),
    )


def rounds_words(rounds: Rounds) -> str:
    """The budget in a line."""
    budget = f"; together ε {rounds.budget}" if rounds.budget is not None else ""
    fit = f"; {rounds.fit} of them fit the budget" if rounds.fit is not None else ""
    part = f"; each voter takes part in at most {rounds.participation}" if rounds.participation is not None else ""
    return f"{rounds.count}, each at ε {rounds.each}{budget}{fit}{part}"


def rounds_rows(rounds: Rounds) -> list[tuple[str, str]]:
    """The budget, and what a voter has spent."""
    spent = " · ".join(f"{t.epsilon} in {t.count}" for t in rounds.taken)
    return [("Rounds", rounds_words(rounds)), ("Spent by a voter", f"ε {spent} rounds")]


def public_rounds(rounds: Rounds | None, facts: Facts) -> tuple[Section, ...]:
    """What it means to take part again and again."""
    weakest = facts.weakest
    if rounds is None or weakest is None or rounds.number < 2:
        return ()
    n, chosen = rounds.count, rounds.chosen
    one = "Each vote in which you take part" if chosen else "Each"
    words = [
        proved(
            f"There are {n} votes like this one; the odds above are for "
            f"{'all of them together' if rounds.whole else 'one of them'}. {one} spends "
            f"one of the {n} parts of your budget of privacy.",
            NOTE,
        ),
        *(_by_choice(rounds) if chosen else _by_all(rounds)),
    ]
    first = "Votes in which you take part" if chosen else "Votes held"
    table = Table(
        caption="The odds of somebody who sees the winners of all votes",
        header=(first, "Parts spent", *weakest.question.headers),
        rows=tuple(
            (t.count.text, f"{t.count} of {n}", t.odds.without_words, t.odds.taking_part_words) for t in rounds.taken
        ),
    )
    return (Section("What if you vote again and again?", (Paragraph(tuple(words)), table)),)


def _by_choice(rounds: Rounds) -> list[Sentence]:
    return [
        proved(
            "The others cost you nothing, and you may decide by earlier winners whether to take part.",
            NOTE,
        ),
        assumed(
            f"After {rounds.count} votes the keeper stops, or keeps a list, as secret as the votes, and leaves out "
            f"whoever took part {rounds.count} times. Nobody is told who is left out, nor how many.",
            NOTE,
        ),
    ]


def _by_all(rounds: Rounds) -> list[Sentence]:
    return [proved(f"Everybody takes part in every vote; after {rounds.count} of them the ledger ends it.", NOTE)]


def rounds_table(rounds: Rounds) -> Table:
    """For auditors and engineers: epsilon of a voter, by rounds with them."""
    return Table(
        caption="What a voter who takes part in k rounds has spent",
        header=("k", "ε spent", "Odds of one who sees all winners"),
        rows=tuple((t.count.text, t.epsilon.text, t.odds.pair) for t in rounds.taken),
    )


def rounds_points(rounds: Rounds) -> list[Sentence]:
    """How rounds add up, and who counts them."""
    counted = " With `--participation` rounds are counted for each voter, and the first pays in full."
    limit = f"The ledger's limit is the budget: while it is kept, round {rounds.number + 1} is refused."
    return [
        proved(
            f"Several rounds: {rounds_words(rounds)}. Epsilons add up, also where earlier winners decide "
            f"{'who takes part in' if rounds.chosen else 'how people vote in'} later rounds; the odds of one who sees "
            f"all winners are {rounds.together.pair}.",
            NOTE,
        ),
        proved(f"{limit}{counted if rounds.chosen else ''}", NOTE),
    ]
