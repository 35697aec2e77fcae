"""All rules that were compared, in one table: what they cost, how far they are from the votes, and what they keep.

Plans of lotteries have it, and tables of probabilities for voting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from privspec.explain.document import Block, Points, Table
from privspec.explain.quantities import LOSS_DIGITS, Quantity, Rounding, parse_exact, rounded
from privspec.explain.sentences import Note, Sentence, Status, proved

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
        """With its note."""
        return proved(self.text, Note(self.note))


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
            f"{self.compared}, welfare the expected share of voters who voted for the winner",
            ("Rule", "Loss", "ε spent", "Worst distortion", "Mean distortion", "Expected welfare"),
            tuple(row.figures() for row in self.rows if row.chosen or row.loss is not None),
            numeric=frozenset({1, 2, 3, 4, 5}),
        )
        kept = Table("What each rule keeps", ("Rule", *LABELS.values()), tuple(row.kept() for row in self.rows))
        return figures, kept

    def blocks(self) -> tuple[Block, ...]:
        """The tables, and below them the reasons and counterexamples."""
        said = [item.sentence() for item in self.properties]
        said += [proved(f"{rule}: {_lower(item.text)}", Note(item.note)) for rule, item in self.failing]
        reasons = [
            Sentence(f"{row.name}: {_shut(row.reason)}.", Status.TESTED, (Note(self.note),))
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
    mechanism, loss = plan.get("mechanism") or {}, plan.get("loss") or {}
    own = properties(mechanism.get("properties"))
    others = [a for a in plan.get("alternatives") or () if isinstance(a.get("figures"), Mapping)]
    if not own and not others:
        return None
    figures = mechanism.get("figures") or {}
    spent = [g["achieved"]["epsilon"] for g in plan.get("guarantees") or () if (g.get("achieved") or {}).get("epsilon")]
    epsilon = spent[0] if spent else figures.get("epsilon")
    name = title or str((mechanism.get("recognised") or {}).get("name") or "table of probabilities")
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
    considered = [a for a in plan.get("considered") or () if isinstance(a, Mapping)]
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
