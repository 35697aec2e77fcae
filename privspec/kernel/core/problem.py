"""The frame of a problem: held data, who is trusted, and what is promised to whom."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from privspec.kernel.core.reading import Item, Refused

FORMAT = "privspec-problem/1.0"
TRUSTS = ("curator", "nobody", "secure_sum")
KEYS = ("format", "elaborator", "name", "trust", "data", "public", "obligations", "views", "blocks")
FIGURES = ("epsilon", "delta", "rho", "mu", "order")
MEASURES = {
    "epsilon-DP": ("epsilon",),
    "(epsilon, delta)-DP": ("epsilon", "delta"),
    "epsilon-LDP": ("epsilon",),
    "(epsilon, delta)-LDP": ("epsilon", "delta"),
    "(epsilon, delta)-per-atom-LDP": ("epsilon", "delta"),
    "epsilon-metric-DP": ("epsilon",),
    "rho-zCDP": ("rho",),
    "mu-GDP": ("mu",),
    "(order, epsilon)-RDP": ("order", "epsilon"),
}
"""Measures with their amounts, in order."""


@dataclass(frozen=True, slots=True)
class Share:
    """An amount that solving picks: `scale` times a chosen number, or `scale` divided by it where `inverse`."""

    number: str
    scale: Fraction
    inverse: bool


@dataclass(frozen=True, slots=True)
class Measure:
    """What neighbouring laws have to satisfy."""

    name: str
    amounts: dict[str, Fraction | Share]
    each: tuple[Measure, ...]

    def figures(self, chosen: dict[str, Fraction]) -> dict[str, Fraction]:
        """The amounts at the numbers that are chosen.

        Raises: Refused where a number is not chosen, or is zero and divides.
        """
        found = {}
        for key, amount in self.amounts.items():
            if isinstance(amount, Share):
                picked = chosen.get(amount.number)
                if picked is None or (amount.inverse and not picked):
                    raise Refused(f"{amount.number} is an amount, and it is not chosen")
                amount = amount.scale / picked if amount.inverse else amount.scale * picked
            found[key] = amount
        return found


@dataclass(frozen=True, slots=True)
class Unit:
    """What one difference changes, in all inputs named at once."""

    kind: str
    inputs: tuple[str, ...]
    adding: bool
    count: int
    party: str | None
    apart: int | None
    exactly: bool


@dataclass(frozen=True, slots=True)
class Data:
    """An input; `party` the index set that holds it in parts."""

    name: str
    rule: str
    party: str | None


@dataclass(frozen=True, slots=True)
class Obligation:
    """What is promised of all that is `seen`."""

    outputs: tuple[str, ...]
    seen: tuple[str, ...]
    wrt: tuple[str, ...]
    neighbours: str
    units: tuple[Unit, ...]
    observers: tuple[str, ...]
    measure: Measure
    line: int
    text: str

    def head(self, number: int) -> dict[str, object]:
        """What a guarantee has to repeat of it; amounts apart."""
        return {
            "outputs": list(self.outputs),
            "wrt": self.wrt[0] if len(self.wrt) == 1 else list(self.wrt),
            "neighbours": self.neighbours,
            "observer": " and ".join(self.observers),
            "measure": self.measure.name,
            "requirement": number,
            "line": self.line,
            "text": self.text,
        }


@dataclass(frozen=True, slots=True)
class View:
    """What an observer sees together, where no line that names the input names all of it; `units` may move."""

    input: str
    observer: str
    outputs: tuple[str, ...]
    unnamed: tuple[str, ...]
    wrt: tuple[str, ...]
    neighbours: str
    units: tuple[Unit, ...]
    difference: Item


@dataclass(frozen=True, slots=True)
class Frame:
    """What every problem has."""

    elaborator: str
    trust: str
    colluding: int
    data: tuple[Data, ...]
    obligations: tuple[Obligation, ...]
    views: tuple[View, ...]


def read_frame(item: Item) -> Frame:
    """The frame of a problem.

    Raises: Refused.
    """
    format_, elaborator, name, trust, data, public, obligations, views, _ = item.fields(*KEYS)
    format_.same(FORMAT)
    name.text()
    kind, colluding = trust.fields("kind", "colluding")
    if kind.text() not in TRUSTS:
        raise kind.wrong("is not known")
    for value in public.items():
        label, shape, digest, provenance = value.fields("name", "shape", "sha256", "provenance")
        _ = label.text(), [n.integer() for n in shape.items()], digest.text(), provenance.text()
    held = tuple(_data(one) for one in data.items())
    _distinct(data, [one.name for one in held])
    return Frame(
        elaborator.text(),
        kind.text(),
        colluding.integer(),
        held,
        tuple(_obligation(one, held) for one in obligations.items()),
        tuple(_view(one) for one in views.items()),
    )


def _distinct(item: Item, names: list[str]) -> None:
    if len(set(names)) != len(names):
        raise item.wrong("names something twice")


def _data(item: Item) -> Data:
    name, domain, rule, party, line = item.fields("name", "domain", "rule", "party", "line")
    domain.text()
    line.integer()
    if rule.text() not in ("clip", "drop", "map"):
        raise rule.wrong("is not known")
    return Data(name.text(), rule.text(), None if party.absent else party.text())


def _obligation(item: Item, held: tuple[Data, ...]) -> Obligation:
    outputs, seen, wrt, neighbours, units, observers, measure, line, text = item.fields(
        "outputs", "seen", "wrt", "neighbours", "units", "observers", "measure", "line", "text"
    )
    inputs = wrt.texts()
    if not set(inputs) <= {one.name for one in held}:
        raise wrt.wrong("names something that is no input")
    found = tuple(_unit(one) for one in units.items())
    if not found or {name for unit in found for name in unit.inputs} != set(inputs):
        raise units.wrong("does not move just the inputs named")
    return Obligation(
        outputs.texts(), seen.texts(), inputs, neighbours.text(), found, observers.texts(), _measure(measure),
        line.integer(), text.text(),
    )  # fmt: skip


def _view(item: Item) -> View:
    name, observer, outputs, unnamed, lines, wrt, neighbours, units, difference = item.fields(
        "input", "observer", "outputs", "unnamed", "lines", "wrt", "neighbours", "units", "difference"
    )
    for line in lines.items():
        line.integer()
    if not set(unnamed.texts()) <= set(outputs.texts()) or name.text() not in wrt.texts():
        raise item.wrong("names outputs that are not seen, or an input that does not move")
    return View(
        name.text(), observer.text(), outputs.texts(), unnamed.texts(), wrt.texts(), neighbours.text(),
        tuple(_unit(one) for one in units.items()), difference,
    )  # fmt: skip


def _unit(item: Item) -> Unit:
    kind, inputs, adding, count, party, apart, exactly = item.fields(
        "kind", "inputs", "adding", "count", "party", "apart", "exactly"
    )
    if kind.text() not in ("entry", "record", "party", "everything"):
        raise kind.wrong("is not known")
    return Unit(
        kind.text(), inputs.texts(), adding.flag(), count.integer(1), None if party.absent else party.text(),
        None if apart.absent else apart.integer(1), exactly.flag(),
    )  # fmt: skip


def _measure(item: Item) -> Measure:
    name, amounts, distance, each = item.fields("name", "amounts", "distance", "each")
    if not distance.absent:
        distance.text()
    parts = tuple(_measure(one) for one in each.items())
    plain = name.text().removeprefix("personalised ") if parts else name.text()
    figures = [pair.items(2) for pair in amounts.items()]
    if plain not in MEASURES or [key.text() for key, _ in figures] != list(MEASURES[plain]):
        raise name.wrong("is not a measure with these amounts")
    return Measure(name.text(), {key.text(): _amount(value) for key, value in figures}, parts)


def _amount(item: Item) -> Fraction | Share:
    if not isinstance(item.value, dict):
        return item.exact(0)
    item.form("chosen")
    _, number, scale, inverse = item.fields("form", "number", "scale", "inverse")
    return Share(number.text(), scale.exact(0), inverse.flag())


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What the plan says of an obligation: the figures that it reaches."""

    obligation: Obligation
    number: int
    asked: dict[str, Fraction]
    achieved: dict[str, Fraction]
    because: tuple[str, ...]


def read_guarantees(item: Item, frame: Frame, chosen: dict[str, Fraction] | None = None) -> list[Guarantee]:
    """One guarantee for each obligation, in order, with its words, at the numbers that are chosen.

    Raises: Refused.
    """
    found = []
    for number, (one, asked) in enumerate(zip(item.items(len(frame.obligations)), frame.obligations, strict=True)):
        head, amounts = asked.head(number), asked.measure.figures(chosen or {})
        *said, achieved, because = one.fields(*head, *amounts, "achieved", "because")
        for part, expected in zip(said, [*head.values(), *amounts.values()], strict=True):
            if isinstance(expected, Fraction):
                if part.exact() != expected:
                    raise part.wrong("is not what the line asks")
            else:
                part.same(expected)
        if not isinstance(achieved.value, dict) or set(achieved.value) - set(FIGURES):
            raise achieved.wrong("has figures that are not known")
        figures = {key: value.exact(0) for key, value in zip(
            achieved.value, achieved.fields(*achieved.value), strict=True
        )}  # fmt: skip
        found.append(Guarantee(asked, number, amounts, figures, because.texts()))
    return found
