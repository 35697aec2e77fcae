"""A plan in words: wordings that several pages share, and the short table that `privspec solve` prints."""

from __future__ import annotations

import math
import re
import shutil
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from privspec.core.records import replace
from privspec.core.rounding import LISTED, graded
from privspec.explain.designs import summary_rows
from privspec.explain.document import Because, Block, Note, Points, SpecLine, Status
from privspec.explain.facts import AccuracyFact, Facts, Judgement, Rows, same_loss
from privspec.explain.messages import phrase, sentences, tabled
from privspec.explain.quantities import DOWN, LOSS_DIGITS, UP, count, rounded
from privspec.explain.reading import facts
from privspec.model.reports import listing
from privspec.model.values import readable
from privspec.stated import Line, Stated, parse_exact

if TYPE_CHECKING:
    from privspec.explain.facts import AlternativeFact, BindingFact, ClaimFact, ExposureFact
    from privspec.model.graph import Model


MOST_COMPARED = 4
"""Alternatives that the summary names; the engineer's page has all."""

_GREEK = {"epsilon": "ε", "delta": "δ", "mu": "μ", "rho": "ρ", "alpha": "α"}
_STATED = _GREEK | {"epsilon for each unit": "ε per unit of distance"}


def status_words(facts: Facts) -> str:
    """How the plan was found and how good it is: "solved in 0.3 s · optimal, gap 1e-6 (certified)".

    Where it is not proved optimal, how many designs it is the best of, and the bound if any.
    """
    head = f"solved in {facts.solver.seconds} s · " if facts.solver.seconds is not None else ""
    if facts.design is not None:
        verdict = facts.design.verdict
        return f"{head}{verdict if verdict.startswith(facts.design.status) else f'{facts.design.status}: {verdict}'}"
    if facts.status == "feasible":
        designs = 1 + sum(1 for item in facts.alternatives if item.admissible)
        best = f"best of {count(designs)} designs compared" if designs > 1 else "only design that could be computed"
        return f"{head}feasible: the {best}; {_bound_words(facts)}"
    gap = facts.loss.gap if facts.loss else None
    tail = f", gap {gap}{' (certified)' if facts.bound_certified else ''}" if gap is not None else ""
    among = facts.loss.among if facts.loss else ""
    return f"{head}{facts.status}{f' among {among}' if 'noise of any law' in among else ''}{tail}"


def _bound_words(facts: Facts) -> str:
    loss = facts.loss
    if loss is None or loss.lower_bound is None or loss.lower_bound.value <= 0 or loss.value.value <= 0:
        return "it is not proved that no other has less loss"
    share = loss.lower_bound.value / loss.value.value
    others = _none_of(loss.among)
    others += "," * (", " in others and not others.endswith(")"))
    if 1 - share <= CLOSE:
        return f"{others} is better by more than {rounded(100 * (1 - share), 2, UP)} %"
    squared = loss.error is not None or loss.squared
    least = rounded(math.sqrt(share) if squared else share, 2, DOWN)
    return f"{others} can have less than {least} of this {'error' if squared else 'loss'}"


CLOSE = 0.01
"""Share of its loss up to which a mechanism is said to be that near to the best."""


def _none_of(among: str) -> str:
    """The class that a bound is about, denied: "no unbiased mechanism of the same pure epsilon"."""
    for start, none in _NONE.items():
        if among.startswith(start):
            return none + among.removeprefix(start)
    return f"no {among}" if among else "no other design"


_NONE = {
    "all unbiased mechanisms": "no unbiased mechanism",
    "all mechanisms that see ": "no mechanism that sees ",
    "all mechanisms that show ": "no mechanism that shows ",
    "all mechanisms": "no mechanism",
    "every ": "no ",
    "all ": "none of all ",
}


def alternatives_words(facts: Facts) -> str:
    """The designs that were not chosen, each with its error (or how many times the loss)."""
    items = sorted(facts.alternatives, key=lambda a: (not a.admissible, graded(a.loss.value, LISTED)))
    more = len(items) - MOST_COMPARED
    shown = items[:MOST_COMPARED] if more > 1 else items
    words = (f"{a.name}{_compared(a, facts)}{'' if a.admissible else ' (not admissible)'}" for a in shown)
    return " · ".join((*words, *((f"{more} more",) if more > 1 else ())))


def _compared(item: AlternativeFact, facts: Facts) -> str:
    return ": the same loss" if same_loss(item, facts) else facts.mechanism.compared(item, facts)


def claim_words(fact: ClaimFact) -> str:
    """A guarantee, what the mechanism reaches of it, and a warning where the condition asked for is unsound.

    What is reached is left out where it says no more than the statement.
    """
    claim, achieved = fact.claim, fact.claim.achieved_parameter
    stated = {_STATED.get(name, name): quantity.text for name, quantity in claim.parameters}
    reached = "" if achieved is None or stated == {achieved[0]: achieved[1].text} else claim.reached
    if reached and achieved is not None and achieved[1].text == "0":
        reached = "holds without any noise"
    parts = claim.sentence, reached, "" if claim.remark is None else claim.remark.short
    return " · ".join(part for part in parts if part)


def bare_outputs(item: ExposureFact) -> tuple[str, ...]:
    """What is called not protected: single outputs; where no bound is known at all, everything that is seen."""
    return item.unprotected or (item.fact.claim.outputs if item.fact.shown is None else ())


def exposure_words(item: ExposureFact) -> str:
    """What no line bounds, and the bound that there is: "x, replacing one entry: anyone sees O and P; μ ≤ 5"."""
    claim = item.fact.claim
    verb = "sees" if claim.observer == "anyone" else "see"
    bound = item.words or "no bound could be computed"
    return f"{', '.join(claim.wrt)}, {claim.neighbours}: {claim.observer} {verb} {listing(claim.outputs)}; {bound}"


def binding_words(item: BindingFact) -> str:
    """What relaxing a line would give: "the requirement on line 14: ε 1 → 1.1 lowers the error by 8 %"."""
    changed = change_words(item.change)
    return phrase(f"summary.words.{'error' if item.error_change else 'loss'}", {"changed": changed}, item)


def change_words(change: str) -> str:
    """A change of a parameter with its letter and an arrow, long fractions as decimals: "ε 1 → 1.1"."""
    named = re.sub(r"\b(epsilon|delta|mu|rho|alpha)\b", lambda m: _GREEK[m[1]], short_amounts(change))
    return named.replace("->", "→")


def short_amounts(text: str) -> str:
    """A text with long fractions as decimals."""
    return re.sub(r"\d+/\d+", lambda m: readable(parse_exact(m[0])), text)


def accuracy_tables(facts: Facts) -> tuple[Block, ...]:
    """One table of all accuracy lines; none where the spec has no such line."""
    return (tabled("summary.accuracy_lines", facts.accuracy),) if facts.accuracy else ()


def fairness_blocks(facts: Facts) -> tuple[Block, ...]:
    """Each fairness line with what it allows, what was reached, and the margin between them; none without such."""
    if not facts.fairness:
        return ()
    missed = phrase("summary.fairness_lines.missed")
    rows = (
        (fact.line.number, fact.line.text, fact.tolerance, fact.achieved, fact.margin if fact.met else missed)
        for fact in facts.fairness
    )
    found = tuple(sentence for fact in facts.fairness for sentence in sentences("summary.fairness", fact))
    return tabled("summary.fairness_lines", rows), Points(found)


def accuracy_words(facts: Facts) -> str:
    """The accuracy line with least room left: "2.2 expected, at most 2.2 asked for (line 14, tightest of 6)"."""
    if not facts.accuracy:
        return ""
    tightest = max(facts.accuracy, key=lambda a: a.used.value)
    instances = sum(int(a.instances.value) for a in facts.accuracy)
    many = f", the tightest of {instances:,}" if instances > 1 else ""
    return f"{_met(tightest)} (line {tightest.line.number}{many})"


def _met(fact: AccuracyFact) -> str:
    """What is expected of a line, or not passed; of lies, what a ballot that is not the true one can bring."""
    if " with probability " in fact.line.text:
        return phrase("summary.met.off", fact)
    if not fact.line.text.lstrip().startswith("manipulation("):
        return phrase("summary.met.chance", fact)
    return phrase("summary.met.lie" if fact.expected.value else "summary.met.no_lie", fact)


NARROW = 64
_WIDEST = 120
_TIE = "\u00a0"


def _summary(
    plan: Mapping[str, Any],
    *,
    width: int | None = None,
    path: str | None = None,
    model: Model | None = None,
    judgement: Judgement | None = None,
    waited: float | None = None,
) -> str:
    """The plan in brief: where the noise goes, the error, the guarantee, what binds and what is assumed.

    Args: width in characters (the terminal's if None); path the plan was written to, named in the last line; the plan's
        model where the caller has it, for bounds that need it; what the kernel derived again in this run; seconds that
        the reader waited, its check among them, if they are known.
    Raises: ValueError, KeyError if the plan is not of the form `privspec-plan/3.0`.
    """
    columns = width if width is not None else shutil.get_terminal_size((100, 24)).columns
    columns = max(30, min(columns, _WIDEST))
    found = facts(plan, model, judgement)
    if waited is not None:
        found = replace(found, solver=replace(found.solver, seconds=rounded(waited, 2)))
    parts = [
        _wrap(f"{found.name} · {found.title}" if found.title != found.name else found.name, columns),
        _wrap(status_words(found), columns),
        "",
        *_rows(_noise_rows(found), columns),
        "",
        *_rows(_claim_rows(found), columns),
        "",
        _wrap(_next(path, found), columns),
    ]
    return "\n".join(parts) + "\n"


def brief_rows(found: Facts) -> Rows:
    """A label and a text each: where the noise goes, the error, the guarantee, what binds and what is assumed."""
    return [*_noise_rows(found), *_claim_rows(found)]


def _noise_rows(found: Facts) -> Rows:
    rows = [] if found.design is None else summary_rows(found.design)
    rows += [(found.mechanism.label("drawn"), found.mechanism.drawn(found)), *found.mechanism.summary_rows(found)]
    label, text = found.error
    if text:
        rows.append((label, text))
        rows += [("Ties", f"{name} takes, among equals, {taken}") for name, taken in found.context.ties.items()]
    rows += (
        [("Computed from it", computed)] if (computed := " · ".join(f"{n} = {t}" for n, t in found.computed)) else []
    )
    computed = found.besides(name for name, *_ in found.computed_errors)
    rows += [("Predicted error", f"{words}{computed}")] if (words := computed_errors(found)) else []
    rows += [("Expected to be cut", one.words) for one in found.fitting.cut]
    more = ("Accuracy met", accuracy_words(found)), ("Compared, same guarantee", alternatives_words(found))
    return [*rows, *(row for row in more if row[1])]


def computed_errors(found: Facts) -> str:
    """How far off outputs are that are computed from others: "average ± 25 (simulated for ...)"."""
    said = dict[str, list[str]]()
    for name, least, most, at in found.computed_errors:
        size = f"{most}" if least.text == most.text else f"{least} to {most}"
        said.setdefault(at, []).append(f"{name} ± {size}")
    return " · ".join(f"{listing(words)} by chance alone (simulated for {at})" for at, words in said.items())


def _claim_rows(found: Facts) -> Rows:
    bare = dict.fromkeys(
        phrase("summary.words.bare", item, item.fact, names=bare_outputs(item))
        for item in found.exposures
        if bare_outputs(item)
    )
    none = "none: no line asks for privacy, and the outputs may reveal the inputs"
    rows = [("As solved", "; ".join(found.overridden))] if found.overridden else []
    rows += [("Not protected", words) for words in bare]
    rows += [("No line covers", exposure_words(item)) for item in found.exposures]
    rows += [("Guarantee", words) for words in (list(map(claim_words, found.claims)) or [none])]
    rows += [("Fairness", phrase("summary.words.fairness", item)) for item in found.fairness]
    rows += [("What binds", binding_words(item)) for item in found.binding]
    rows += [
        ("Assumed", f"{s.text.removesuffix('.')}{_where(s.because)}")
        for s in found.assumptions
        if s.status in (Status.ASSUMED, Status.ASSERTED) and any(map(_in_spec, s.because))
    ]
    return rows


def _in_spec(because: Because) -> bool:
    """Whether an assumption is the author's to make: a line, or the default that stands for a missing one."""
    return isinstance(because, SpecLine) or because == Note("trust-by-default")


def _where(because: tuple[Because, ...]) -> str:
    lines = [b for b in because if isinstance(b, SpecLine) and b.number > 0]
    if not lines:
        return " (the default)" if Note("trust-by-default") in because else ""
    first = lines[0]
    short = f"{first.text}, " if 0 < len(first.text) <= 30 else ""
    return f" ({short}line {first.number})"


def _rows(rows: Rows, columns: int) -> list[str]:
    indent = max((len(label) for label, _ in rows), default=0) + 3
    lines, previous = [], ""
    for label, text in rows:
        shown, previous = label if label != previous else "", label
        if columns < NARROW:
            lines += [*([shown] if shown else []), _wrap(text, columns, "  ", "  ")]
        else:
            lines.append(_wrap(text, columns, shown.ljust(indent), " " * indent))
    return lines


def _wrap(text: str, columns: int, first: str = "", rest: str = "  ") -> str:
    if len(first) + len(text) <= columns:
        return first + text
    # numbers stay with their signs and units
    tied = re.sub(r"(?<=[±≤→]) | (?=[→≤%])", _TIE, text)
    how: Any = {"break_on_hyphens": False, "break_long_words": False}
    return textwrap.fill(tied, columns, initial_indent=first, subsequent_indent=rest, **how).replace(_TIE, " ")


def _next(path: str | None, found: Facts) -> str:
    commands = f"next: {' · '.join(f'privspec {name}' for name in found.mechanism.next_commands(found))}"
    return f"plan written to {path} · {commands}" if path else commands


def infeasible_text(document: Mapping[str, Any]) -> str:
    """Which lines conflict, why, and which single changes work, each with its price where it is known."""
    plan = Stated.of(document)
    works = [r for r in plan.relaxations if r.works]
    in_vain = [r for r in plan.relaxations if not r.works and r.line]
    known = [r for r in plan.relaxations if not r.works and not r.line]
    lines = ["infeasible[PS0601]: these lines cannot all hold"]
    lines += [f"  {c.line:>4} | {c.text}" for c in plan.conflicts]
    lines.append(f"Why: {plan.reason}.")
    no = "No single change that is known would make it feasible."
    lines.append("Smallest single changes that work:" if works else no)
    lines += [f"  {_relaxation(r)}" for r in (*works, *in_vain)]
    lines += ["What is true nevertheless:", *(f"  {_relaxation(r)}" for r in known)] if known else []
    return "\n".join(lines) + "\n"


def _relaxation(item: Line) -> str:
    price = f": loss {rounded(item.loss, LOSS_DIGITS)}" if item.loss is not None else ""
    return f"{item.change}{price}{f'  (line {item.line})' if item.line else ''}"
