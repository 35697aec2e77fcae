"""What changed between two specs, or between two plans: in privacy, in loss, and in what is done.

Requirements are compared where one of them implies the other, by the rules of the kernel; all else that differs is
told without a verdict. A line is stronger if it implies the old one and the old one does not imply it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privspec.core.records import asdict, dataclass
from privspec.explain.quantities import LOSS_DIGITS, rounded
from privspec.kernel.measures import Measure
from privspec.kernel.trust import KINDS
from privspec.language.spelling import spell
from privspec.language.walk import names_used
from privspec.model.graph import described, value_text
from privspec.model.values import show

if TYPE_CHECKING:
    from privspec.model.graph import Model
    from privspec.model.requirements import Requirement, Trust
    from privspec.plan import Plan

STRONGER, WEAKER, BETTER, WORSE, CHANGED = "stronger", "weaker", "better", "worse", "changed"
SAME = 1e-9
"""Relative difference up to which two losses are one."""


@dataclass(frozen=True, slots=True)
class Change:
    """One difference: what it is about, what was and what is (empty where there was or is nothing), and a verdict.

    `verdict`: stronger or weaker for protection, better or worse for loss, changed where neither can be said.
    """

    about: str
    verdict: str
    old: str
    new: str

    @property
    def text(self) -> str:
        """In plain words."""
        if not self.old:
            return f"new: {self.new}"
        return f"gone: {self.old}" if not self.new else f"{self.old} -> {self.new}"


@dataclass(frozen=True, eq=False, slots=True)
class Side:
    """One of the two: a model, and the plan where there is one."""

    model: Model
    plan: Plan | None = None


def differences(old: Side, new: Side) -> tuple[Change, ...]:
    """Everything that differs, privacy first."""
    found = [*_trust(old.model, new.model), *_requirements(old.model, new.model)]
    found += [*_reached(old, new), *_unprotected(old, new)]
    found += [*_listed("fairness", _spelled(old.model.spec.fairness), _spelled(new.model.spec.fairness))]
    found += [*_listed("accuracy", _spelled(old.model.spec.accuracy), _spelled(new.model.spec.accuracy))]
    found += [*_mapped("data", _inputs(old.model), _inputs(new.model))]
    found += [*_mapped("released", _outputs(old.model), _outputs(new.model))]
    found += [*_mapped("parameter", _parameters(old.model), _parameters(new.model)), *_choices(old.model, new.model)]
    found += [*_mapped("left open", _left_open(old.model), _left_open(new.model))]
    found += [*_listed("loss as written", _spelled(_loss_of(old.model)), _spelled(_loss_of(new.model)))]
    found += [*_losses(old, new), *_mechanisms(old, new)]
    return tuple(found)


def privacy_verdict(changes: Sequence[Change]) -> str:
    """Of all changes of protection together: same, stronger, weaker or, where they differ, mixed."""
    said = {change.verdict for change in changes if change.about in PROTECTION}
    if not said:
        return "same"
    return said.pop() if len(said) == 1 and said != {CHANGED} else "mixed"


PROTECTION = ("trust", "privacy", "reached", "not protected")


# --- privacy --------------------------------------------------------------------------------------


def _trust(old: Model, new: Model) -> Iterator[Change]:
    """Of all outputs at once, or of each that both have where parts trust each their own."""
    both = [node.name for node in old.outputs if node.name in {other.name for other in new.outputs}]
    uniform = all(model.trust.of(node.name) == model.trust for model in (old, new) for node in model.outputs)
    found: dict[tuple[Trust, Trust], list[str]] = {}
    for name in [""] if uniform else both:
        pair = (old.trust, new.trust) if uniform else (old.trust.of(name), new.trust.of(name))
        found.setdefault(pair, []).append(name)
    for pair, names in found.items():
        strength = [(list(KINDS).index(one.name) if one.name in KINDS else -1, one.colluding) for one in pair]
        if strength[0] != strength[1]:
            head = "" if uniform else f"{', '.join(names)}: "
            words = [f"{head}trust {one.name}" + f" ({one.colluding} colluding)" * (one.colluding > 0) for one in pair]
            yield Change("trust", STRONGER if strength[1] > strength[0] else WEAKER, *words)


def _requirements(old: Model, new: Model) -> Iterator[Change]:
    """Lines that name the same are compared by their measures; then those that differ in unit or observer."""
    left, right = list(old.requirements), list(new.requirements)
    pairs = [*_paired(left, right, _whole), *_paired(left, right, _about)]
    for one, other in pairs:
        verdict = _verdict(one, other)
        if verdict or one.describe() != other.describe():
            yield Change("privacy", verdict or CHANGED, one.describe(), other.describe())
    for one in left:
        yield Change("privacy", WEAKER, one.describe(), "")
    for other in right:
        yield Change("privacy", STRONGER, "", other.describe())


def _paired(left: list[Requirement], right: list[Requirement], key: Any) -> Iterator[tuple[Requirement, Requirement]]:
    """Pairs of equal keys, each line once; they are taken out of the lists."""
    for one in list(left):
        other = next((line for line in right if key(line) == key(one)), None)
        if other is not None:
            left.remove(one)
            right.remove(other)
            yield one, other


def _about(line: Requirement) -> tuple[object, ...]:
    return set(line.outputs), set(line.wrt)


def _whole(line: Requirement) -> tuple[object, ...]:
    return (*_about(line), line.neighbours.describe(), set(line.observers))


def _verdict(old: Requirement, new: Requirement) -> str:
    """Whether the new line implies the old one, or the other way round; empty where both or where nothing is known."""
    back, forth = (_implies(a, b) for a, b in ((new, old), (old, new)))
    return "" if back == forth else STRONGER if back else WEAKER


def _implies(strong: Requirement, weak: Requirement) -> bool:
    """Whether all that satisfies one line surely satisfies the other."""
    one, other = strong.neighbours, weak.neighbours
    unit = one.describe() == other.describe() or (
        type(one) is type(other)
        and one.unit_name == other.unit_name
        and one.adding == other.adding
        and one.group >= other.group
    )
    watchers = not set(weak.observers) - set(strong.observers) or "anyone" in strong.observers
    if not unit or not watchers or strong.measure.local != weak.measure.local:
        return False
    return implied(weak.measure.common, weak.measure.amounts, strong.measure.common, strong.measure.amounts)


def implied(
    measure: Measure | None, asked: Mapping[str, Fraction], other: Measure | None, given: Mapping[str, Fraction]
) -> bool:
    """Whether a measure with its amounts follows from another one with its."""
    if measure is None or other is None:
        return False
    if measure is other and given.get("order", 0) == asked.get("order", 0):
        return all(given[key] <= asked[key] for key in asked)
    spent = set(given) in ({"mu"}, {"epsilon"}, {"epsilon", "delta"})
    return spent and other.of_laws and measure.proved_by(asked, given)


def _reached(old: Side, new: Side) -> Iterator[Change]:
    """What plans reach of lines that both have."""
    if old.plan is None or new.plan is None:
        return
    known = {(g.text, g.wrt, g.outputs): g for g in old.plan.guarantees}
    for guarantee in new.plan.guarantees:
        before = known.get((guarantee.text, guarantee.wrt, guarantee.outputs))
        if before is None or before.achieved == guarantee.achieved:
            continue
        was, now = ({k: Fraction(str(v)) for k, v in g.achieved.items()} for g in (before, guarantee))
        verdict = CHANGED
        if set(was) == set(now):
            less, more = all(now[k] <= was[k] for k in was), all(now[k] >= was[k] for k in was)
            verdict = STRONGER if less and not more else WEAKER if more and not less else CHANGED
        yield Change("reached", verdict, _amounts(was), f"{_amounts(now)} ({guarantee.text})")


def _amounts(amounts: Mapping[str, Fraction]) -> str:
    return ", ".join(f"{name} {rounded(value)}" for name, value in amounts.items())


def _unprotected(old: Side, new: Side) -> Iterator[Change]:
    if old.plan is None or new.plan is None:
        return
    was, now = (
        {f"{e.input} in {name}, seen by {e.observer}" for e in plan.stated.exposures for name in e.not_protected}
        for plan in (old.plan, new.plan)
    )
    yield from (Change("not protected", STRONGER, words, "") for words in sorted(was - now))
    yield from (Change("not protected", WEAKER, "", words) for words in sorted(now - was))


# --- what is held, released and done ----------------------------------------------------------------


def _inputs(model: Model) -> dict[str, str]:
    held = {node.name: f", held by each {node.index}" if node.index else "" for node in model.inputs}
    return {n.name: f"{'' if n.domain is None else n.domain.describe()}{held[n.name]}" for n in model.inputs}


def _outputs(model: Model) -> dict[str, str]:
    return {node.name: node.type.describe() for node in model.outputs}


def _parameters(model: Model) -> dict[str, str]:
    sizes = {name: f"1..{party.size}" for name, party in model.parties.items()}
    return sizes | {name: " ".join(str(show(value)).split()) for name, value in model.parameters.items()}


def _choices(old: Model, new: Model) -> Iterator[Change]:
    words = [described(model.chosen) for model in (old, new)]
    if words[0] != words[1]:
        yield Change("chosen", CHANGED, *words)


def _loss_of(model: Model) -> list[Any]:
    """The loss with its costs."""
    loss = model.loss if model.design is None else model.design.loss
    return [] if loss is None else [loss]


def _left_open(model: Model) -> dict[str, str]:
    choices = () if model.design is None else model.design.choices
    return {choice.name: f"one of {', '.join(map(value_text, choice.values))}" for choice in choices}


def _spelled(lines: Iterable[Any]) -> list[str]:
    return [spell(line) for line in lines]


def _listed(about: str, old: Sequence[str], new: Sequence[str]) -> Iterator[Change]:
    """Lines that are gone or new; of fairness both have a verdict."""
    verdicts = (WEAKER, STRONGER) if about == "fairness" else (CHANGED, CHANGED)
    yield from (Change(about, verdicts[0], line, "") for line in old if line not in new)
    yield from (Change(about, verdicts[1], "", line) for line in new if line not in old)


def _mapped(about: str, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[Change]:
    for name in dict.fromkeys((*old, *new)):
        was, now = (f"{name}: {side[name]}" if name in side else "" for side in (old, new))
        if was != now:
            yield Change(about, CHANGED, was, now)


def _losses(old: Side, new: Side) -> Iterator[Change]:
    if old.plan is None or new.plan is None:
        return
    if old.plan.status != new.plan.status:
        yield Change("status", CHANGED, old.plan.status, new.plan.status)
    if not (old.plan.feasible and new.plan.feasible):
        return
    was, now = old.plan.loss.value, new.plan.loss.value
    if abs(now - was) > SAME * max(abs(was), abs(now)):
        share = f" ({100 * (now - was) / abs(was):+.3g} %)" if was else ""
        words = str(rounded(was, LOSS_DIGITS)), f"{rounded(now, LOSS_DIGITS)}{share}"
        comparable = _valued(old.model) == _valued(new.model)
        yield Change("loss", (BETTER if now < was else WORSE) if comparable else CHANGED, *words)


def _valued(model: Model) -> tuple[list[str], dict[str, str]]:
    """The loss as it is written, and the values of the parameters in it."""
    loss = _loss_of(model)
    used = {name for expr in loss for name in names_used(expr)}
    return _spelled(loss), {name: value for name, value in _parameters(model).items() if name in used}


def _mechanisms(old: Side, new: Side) -> Iterator[Change]:
    words = [_drawn(side) for side in (old, new)]
    if words[0] != words[1]:
        yield Change("mechanism", CHANGED, *words)


def _drawn(side: Side) -> str:
    """What is drawn, in a line."""
    if side.plan is None or not side.plan.feasible:
        return ""
    from privspec.explain.reading import facts

    found = facts(side.plan.document, side.model)
    return found.mechanism.drawn(found)


# --- files and words --------------------------------------------------------------------------------


def read_side(path: Path) -> Side:
    """A spec, or a plan that was verified.

    Raises: UsageError, SpecError, VerificationError.
    """
    from privspec.pipeline import Request, check, spec_source
    from privspec.plan import Plan

    if path.suffix != ".json":
        source, base = spec_source(path)
        return Side(check(Request(source, base=base)))
    plan = Plan.read(path).verified()
    return Side(plan.model(), plan)


def diff_text(changes: Sequence[Change], old: str, new: str) -> str:
    """One line for each change, under what it is about."""
    if not changes:
        return f"{old} and {new} promise and do the same\n"
    lines, about = [f"privacy, from {old} to {new}: {privacy_verdict(changes)}"], ""
    for change in changes:
        lines += [change.about] if change.about != about else []
        lines.append(f"  {change.verdict:<10}{change.text}")
        about = change.about
    return "\n".join(lines) + "\n"


def diff_json(changes: Sequence[Change]) -> str:
    """The changes as JSON."""
    body = {
        "format": "privspec-diff/1.0",
        "same": not changes,
        "privacy": privacy_verdict(changes),
        "changes": [asdict(change) for change in changes],
    }
    return json.dumps(body, indent=1, ensure_ascii=False) + "\n"
