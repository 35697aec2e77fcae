"""Systems from graph to plan: each part is solved by its family, for the share of every line that its split gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import ceil, isqrt
from time import perf_counter
from typing import Any

from privspec.core.diagnostics import Diagnostic, SolveError, SpecError
from privspec.core.records import dataclass, field, replace
from privspec.core.rounding import graded, least_whole
from privspec.families.decision import Alternative, Decided, Decision, Infeasible, guarantee
from privspec.families.family import Settings
from privspec.families.systems.bracket import judged, proved
from privspec.families.systems.splits import (
    KINDS,
    SAME,
    WORTH,
    Curve,
    Line,
    Lines,
    Split,
    best_split,
    compared,
    keeps,
    larger,
    most_beside,
    rounded_down,
    rounded_up,
)
from privspec.kernel.core.numbers import gaussian_delta_up
from privspec.kernel.gaussian import mu_down
from privspec.kernel.measures import APPROXIMATE, GAUSSIAN, LOCAL_PURE, PURE, ZERO_CONCENTRATED, Measure
from privspec.kernel.systems import CASES, Composed, Judged, composed
from privspec.kernel.writing import write
from privspec.language import syntax
from privspec.model.graph import Drawn, Model, give, inherit
from privspec.model.values import show
from privspec.problem import systems
from privspec.problem.elaborate import Problem, elaborate, obligation_of
from privspec.solvers.programs import SolverError

NOTE = "composition"
TRIED = 4
"""How many larger splits are solved at most."""


@dataclass(frozen=True, eq=False, slots=True)
class Made:
    """The parts as they were solved, with their plans, and what is chosen for lines by number.

    `together`: of lines that parts share, by number, what the kernel finds that they let through.
    """

    model: Model
    parts: tuple[Decision, ...]
    documents: tuple[dict[str, Any], ...]
    chosen: Mapping[int, Fraction]
    together: Mapping[int, Composed] = field(default_factory=dict)

    @property
    def loss(self) -> float:
        """The sum of the losses of the parts; where a value is drawn first, that of the case that costs most."""
        each = [one.loss for one in self.parts]
        return sum(each) if self.model.drawn is None else max(each[1:])

    @property
    def _costly(self) -> Sequence[dict[str, Any]]:
        """The parts whose losses count: the error of a value that is drawn first is one of what follows."""
        return self.documents if self.model.drawn is None else self.documents[1:]

    def cases_bound(self) -> dict[str, Any]:
        """What is proved of the case that costs most, and of what class; nothing where one is without a bound."""
        losses = [one["loss"] for one in self._costly]
        if any(one["lower_bound"] is None for one in losses):
            return {}
        words = " · ".join(dict.fromkeys(one["among"] for one in losses))
        return {"bound": max(one["lower_bound"] for one in losses), "among": f"{CASES} ({words})"}

    def decided(self, proof: Mapping[str, Any], considered: Iterable[tuple[str, float]], seconds: float) -> Decided:
        """As a decision, with what is proved of every split, and what other splits would cost."""
        costly, one_of = self._costly, self.model.drawn is not None
        each = ([one["loss"][key] for one in costly] for key in ("units", "kind"))
        names = [one.name for one in self.parts]
        units, kind = (" + ".join(dict.fromkeys(words) if one_of else words) for words in each)
        return Decided(
            self.model,
            "; ".join(dict.fromkeys(names) if one_of else names),
            self.loss,
            lambda: {**self._stated(), **proof},
            lambda: proof.get("bound"),
            units=units,
            kind=kind,
            others=tuple(Alternative(name, value, "") for name, value in considered),
            solver={"name": "parts", "seconds": seconds},
            program=lambda: (
                "parts share lines by a split that is searched for; each part as a spec of its own may have one"
            ),
        )

    def _stated(self) -> dict[str, Any]:
        """What the plan says of the parts."""
        documents = self.documents
        fairness = [line for one in documents for line in one.get("fairness") or []]
        costs = [Fraction(one["loss"]["value"]) for one in self._costly]
        problem = write(elaborate(self.model))
        names = systems.part_names({"problem": problem})
        components = dict(zip(names, map(_part, documents), strict=True))
        return {
            "problem": problem,
            "value": float(sum(costs) if self.model.drawn is None else max(costs)),
            **({} if self.model.drawn is None else {"expression": systems.expression_of(self.model)}),
            "mechanism": {"family": "composite", **self._chosen(), "components": components},
            "guarantees": [self._guarantee(number) for number in range(len(self.model.requirements))],
            "accuracy": [line for one in documents for line in one["accuracy"]],
            **({"fairness": fairness} if fairness else {}),
        }

    def _chosen(self) -> dict[str, Any]:
        """The numbers that were picked, by name."""
        names = systems.chosen_shares(self.model)
        picked = {names[line]: amount / systems.share_of(self.model, line)[1] for line, amount in self.chosen.items()}
        return {"choices": {name: show(value) for name, value in picked.items()}} if picked else {}

    def asked(self, number: int) -> dict[str, Fraction]:
        """The amounts of a line, at the numbers that were picked."""
        requirement = self.model.requirements[number]
        if number not in self.chosen:
            return dict(requirement.measure.amounts)
        amounts = systems.amounts_at(self.model, number, self.chosen[number])
        return dict(zip(requirement.measure.figures, amounts, strict=True))

    def _guarantee(self, number: int) -> dict[str, Any]:
        reached, because, asked = self.asked(number), [NOTE], {}
        if number in self.chosen:
            asked = {key: show(value) for key, value in reached.items()}
        if (found := self.together.get(number)) is not None:
            if "delta" in reached:
                reached["delta"] = min(reached["delta"], rounded_up(found.delta))
            because = list(found.because(reached))
        return guarantee(self.model.requirements[number], number, reached, because) | asked


def _part(plan: Mapping[str, Any]) -> dict[str, Any]:
    """A part's own plan without what the system says for all, and with what it spends of each line."""
    outer = ("format", "spec", "problem", "assumptions", "digest")
    shares = [one["measure"] for one in plan["problem"]["obligations"]]
    return {"shares": shares, **{key: value for key, value in plan.items() if key not in outer}}


@dataclass(frozen=True, eq=False, slots=True)
class SystemParts:
    """A spec in parts; `shared`: the lines that several parts have, each with the parts' numbers."""

    parts: tuple[systems.Part, ...]
    shared: Mapping[int, tuple[int, ...]]


class Systems:
    """Takes specs whose outputs are of several kinds."""

    def lower(self, model: Model) -> SystemParts:
        """The parts, and the lines that they share.

        Raises: SpecError PS0501.
        """
        parts = systems.parts_of(model)
        systems.refuse_unsupported(model, parts)
        having = {
            number: tuple(i for i, part in enumerate(parts) if number in part.lines)
            for number in range(len(model.requirements))
            if number not in systems.chosen_shares(model)
        }
        runs = {number: sum(parts[i].times for i in some) for number, some in having.items()}
        if len(parts) == 1 and systems.chosen_shares(model):
            return SystemParts(parts, having)  # what it may spend of a line is to be picked
        return SystemParts(parts, {number: some for number, some in having.items() if runs[number] > 1})

    def decide(self, model: Model, system: SystemParts, settings: Settings) -> Decided | Infeasible:
        """Every part at its share of the best split."""
        begun, solved = perf_counter(), _Solver(model, system, settings)
        elaborate(model)  # what a part cannot say is found before any is solved
        if model.drawn is not None:
            return self._cases(solved, model.drawn, begun)
        sharing = tuple(sorted({part for some in system.shared.values() for part in some}))
        shared = Lines(tuple(_line(model, system.parts, number, sharing) for number in system.shared))
        own_lines = (number for number in range(len(model.requirements)) if _caps_share(model, system, number))
        lines = Lines((*shared.each, *(_line(model, system.parts, number, sharing) for number in own_lines)))
        curves = [solved.curves(part) for part in sharing]
        split = best_split(lines, curves) if sharing else Split((), (), 0.0)
        if split is None:
            for number in sharing:  # one that cannot be solved at all says why
                solved.part(number, (PURE, Fraction(1)), replace(settings, alternatives=False))
            raise SpecError(_no_split(model, min(system.shared)))
        once_each = sharing and all(system.parts[part].times == 1 for part in sharing)
        ways = compared(lines, split, curves) if settings.alternatives and once_each else {}
        # a search may miss where losses bend what a plain split meets
        plain = min(ways.values(), key=lambda way: graded(way.loss), default=split)
        taken = plain if plain.loss < (1 - SAME) * split.loss else split
        split = self._capped(solved, sharing, taken)
        found = self._at(solved, sharing, split)
        if isinstance(found, Infeasible):
            return found
        first = found
        if sharing:
            split, found = self._larger(solved, sharing, shared, split, curves, found)
        made, parts = found
        considered = [(name, way.loss) for name, way in ways.items() if way is not taken]
        if found is not first:
            considered.append(("the best shares with pure parts counted as randomised response", first[0].loss))

        def claims_at(k: int, amount: Fraction) -> Mapping[str, Any] | None:
            return solved.witness(sharing[k], split.kinds[k], amount)

        own = [found[kind] for found, kind in zip(curves, split.kinds, strict=True)]
        plan = made.decided({}, considered, 0.0).document()
        proof = proved(plan, parts, shared, split, own, claims_at)
        return made.decided(proof, considered, perf_counter() - begun)

    def _cases(self, solved: _Solver, drawn: Drawn, begun: float) -> Decided | Infeasible:
        """What is drawn first, at what it spends, and every case at all that this leaves: in one kind for all."""
        model, tried, failed = solved.model, list[Made](), list[Exception]()
        for kind in KINDS:
            try:
                shares = [(PURE, drawn.epsilon), *((kind, solved.left(i, kind)) for i in range(1, len(solved.parts)))]
                found = [solved.part(i, spent, solved.settings) for i, spent in enumerate(shares)]
            except (SpecError, SolveError, SolverError) as error:
                failed.append(error)
                continue
            conflicts = [one for one in found if isinstance(one, Infeasible)]
            if conflicts:
                return conflicts[0]
            parts = tuple(one for one in found if not isinstance(one, Infeasible))
            tried.append(Made(model, parts, tuple(one.document() for one in parts), {}))
        if not tried:
            raise failed[0]
        best = min(tried, key=lambda one: one.loss)
        return best.decided(best.cases_bound(), (), perf_counter() - begun)

    def _at(self, solved: _Solver, sharing: tuple[int, ...], split: Split) -> tuple[Made, list[Judged]] | Infeasible:
        """The parts at a split, and as the kernel judges them."""
        model, spent = solved.model, dict(zip(sharing, zip(split.kinds, split.amounts, strict=True), strict=True))
        made, chosen = [], dict[int, Fraction]()
        for i, part in enumerate(solved.parts):
            chosen |= solved.chosen(i, spent.get(i), part.times)
            found = solved.part(i, spent.get(i), solved.settings)
            if isinstance(found, Infeasible):
                return found
            made.append(found)
        _within(model, chosen)
        documents = tuple(one.document() for one in made)
        found_parts = Made(model, tuple(made), documents, chosen)
        case, parts = judged(found_parts.decided({}, (), 0.0).document())
        together = {
            number: composed(line, number, parts, found_parts.asked(number))
            for number, line in enumerate(case.frame.obligations)
            if number in solved.shared or sum(part.times for *_, part in parts if number in part.lines) > 1
        }
        return replace(found_parts, together=together), parts

    def _larger(
        self,
        solved: _Solver,
        sharing: tuple[int, ...],
        lines: Lines,
        split: Split,
        curves: Sequence[Mapping[Measure, Curve]],
        found: tuple[Made, list[Judged]],
    ) -> tuple[Split, tuple[Made, list[Judged]]]:
        """The same with larger shares, where the laws that are executed leave room that is worth it."""
        decision, _ = found
        asked = {number: decision.asked(number) for number in solved.shared}
        fitted = [own[kind].fitted() for own, kind in zip(curves, split.kinds, strict=True)]
        together = {number: decision.together[number] for number in asked}
        more = larger(lines, split, fitted, together, asked)
        for _ in range(TRIED if more is not None else 0):
            assert more is not None
            more = self._capped(solved, sharing, more)
            try:
                other = self._at(solved, sharing, more)
            except (SpecError, SolveError, SolverError):
                break
            if isinstance(other, Infeasible):
                break
            together = {number: other[0].together[number] for number in asked}
            if keeps(together, asked):
                return (more, other) if other[0].loss < (1 - WORTH / 2) * decision.loss else (split, found)
            more = larger(lines, more, fitted, together, asked, along=True)
        return split, found

    def _capped(self, solved: _Solver, sharing: tuple[int, ...], split: Split) -> Split:
        """The shares, but no more than numbers that are chosen allow."""
        shares = zip(sharing, split.kinds, split.amounts, strict=True)
        return replace(split, amounts=tuple(solved.capped(*one) for one in shares))

    def size(self, system: SystemParts) -> int:
        """That of the largest part is found when it is solved."""
        return len(system.parts)


class _Solver:
    """Solves parts at shares, each once."""

    def __init__(self, model: Model, system: SystemParts, settings: Settings) -> None:
        self.model, self.parts, self.shared, self.settings = model, system.parts, system.shared, settings
        self.compilers = [part.family.compiles() for part in system.parts]
        self.problems: dict[int, Problem] = {}
        self.models: dict[tuple[int, Measure | None], Model] = {}
        self.known: dict[tuple[int, Measure, Fraction], Decision | None] = {}

    def part(self, number: int, spent: tuple[Measure, Fraction] | None, settings: Settings) -> Decision | Infeasible:
        """A part at its share of the lines that it has with others.

        Raises: SpecError, SolveError.
        """
        part, lines = self.parts[number], dict[int, syntax.Requirement]()
        whole = part.of or self.model
        written = whole.spec.privacy
        compiler = self.compilers[number]
        if spent is not None:
            kind, amount = spent
            lines = {
                line: systems.share(written[line], kind.word, (amount,)) for line in part.lines if line in self.shared
            }
            chosen = self.chosen(number, spent).items()
            lines |= {
                line: systems.share(written[line], written[line].measure, systems.amounts_at(self.model, line, own))
                for line, own in chosen
            }
        model = systems.restricted(whole, part.outputs, lines)
        self._elaborated(number, spent and spent[0], model)
        system = compiler.lower(model)
        if isinstance(system, Infeasible):
            return system
        found: Decision | Infeasible = compiler.decide(model, system, settings)
        return found

    def left(self, number: int, kind: Measure) -> Fraction:
        """The most that a part may spend of every line beside what is drawn first.

        Raises: SpecError PS0501 where a line allows nothing beside it, or nothing of this kind.
        """
        drawn, amount = self.model.drawn, Fraction(0)
        assert drawn is not None
        for line in self.parts[number].lines:
            asked, first = self.model.requirements[line], line in self.parts[0].lines
            one = Line(asked.measure.of, dict(asked.measure.amounts))
            most = most_beside(one, [(PURE, drawn.epsilon)] if first else [], kind)
            if most is None:
                text = f"{drawn.name} spends {show(drawn.epsilon)}, which leaves nothing of this line for what follows"
                hint = f"let {drawn.name} spend less, as in spends {show(min(drawn.epsilon, Fraction(1)) / 10)}"
                raise SpecError.at(self.model.source, asked.span, "PS0501", text, help=hint)
            amount = min(amount, most) if amount else most
        return amount

    def _own(self, number: int) -> list[int]:
        """The lines of a part whose amounts are chosen."""
        return [line for line in systems.chosen_shares(self.model) if line in self.parts[number].lines]

    def chosen(self, number: int, spent: tuple[Measure, Fraction] | None, times: int = 1) -> dict[int, Fraction]:
        """What the chosen lines of a part ask of so many runs, each of which spends what its shares leave it."""
        if spent is None:
            return {}
        kind, amount = spent
        own = {line: systems.share_of(self.model, line)[0] for line in self._own(number)}
        return {line: self._satisfied(line, measure, kind, amount, times) for line, measure in own.items()}

    def _satisfied(self, line: int, measure: Measure, kind: Measure, amount: Fraction, times: int) -> Fraction:
        """The least amount of a measure that runs satisfy together, rounded up where it is no fraction."""
        if measure is GAUSSIAN:
            root = isqrt(ceil(times * (amount * 10**DIGITS_OF_MU) ** 2))
            return amount if times == 1 else Fraction(root + 1, 10**DIGITS_OF_MU)
        if measure is ZERO_CONCENTRATED:
            return times * amount * amount / 2
        if kind is PURE:
            return times * amount
        _, delta = systems.amounts_at(self.model, line, amount)
        return epsilon_up(times * amount * amount, delta)

    def capped(self, number: int, kind: Measure, amount: Fraction) -> Fraction:
        """A share, but no more than the range of a number that is chosen for it lets the part spend."""
        for line in self._own(number):
            measure, scale = systems.share_of(self.model, line)
            high = systems.share_range(self.model, line).high
            if high is not None:
                most: Fraction | float = high * scale
                if measure is ZERO_CONCENTRATED:
                    most = float(2 * most) ** 0.5
                elif kind is GAUSSIAN and measure is APPROXIMATE:
                    most = mu_down(*systems.amounts_at(self.model, line, high * scale))
                amount = min(amount, _one_run(kind, most, self.parts[number].times))
        return amount

    def _elaborated(self, number: int, kind: Measure | None, model: Model) -> None:
        """The problem of a part is the same at every share, but for what its lines ask."""
        inherit(model, self.models.setdefault((number, kind), model))
        if number in self.problems:
            obligations = tuple(obligation_of(model, requirement) for requirement in model.requirements)
            give(elaborate, model, replace(self.problems[number], obligations=obligations))
        else:
            self.problems[number] = elaborate(model)

    def at(self, number: int, kind: Measure, amount: Fraction) -> Decision | None:
        """A part at a share, solved once; None where it cannot be."""
        if any(kind not in SPENT[systems.share_of(self.model, line)[0]] for line in self._own(number)):
            return None
        amount = self.capped(number, kind, amount)
        key = number, kind, amount
        if key not in self.known:
            try:
                found = self.part(number, (kind, amount), replace(self.settings, alternatives=False, exact=False))
            except (SpecError, SolveError, SolverError):
                found = None
            self.known[key] = None if isinstance(found, Infeasible) else found
        return self.known[key]

    def curves(self, number: int) -> dict[Measure, Curve]:
        """What a part costs against its share, in each kind that its family can spend."""

        def solve(kind: Measure, amount: Fraction) -> float | None:
            found = self.at(number, kind, amount)
            return None if found is None else found.loss

        own, spends = self._own(number), getattr(self.compilers[number], "spends", None)
        every = set(self.parts[number].lines) <= {*self.shared, *own}  # all its lines ask for its share

        def scaled(kind: Measure, known: Fraction, amount: Fraction) -> float | None:
            found = getattr(self.at(number, kind, known), "scaled", None) if every else None
            return found and found(self.capped(number, kind, amount) / self.capped(number, kind, known))

        return {kind: Curve(solve, scaled, kind) for kind in KINDS if spends is None or kind in spends or own}

    def witness(self, number: int, kind: Measure, amount: Fraction) -> Mapping[str, Any] | None:
        """What proves a bound of a part at a share, for families whose bounds do not say what they are there."""
        wanted = kind is PURE and self.parts[number].family.each_share
        found = self.at(number, kind, amount) if wanted else None
        return None if found is None else next(iter(found.witnesses()), None)  # type: ignore[attr-defined]


def _line(model: Model, parts: tuple[systems.Part, ...], number: int, sharing: tuple[int, ...]) -> Line:
    """A line as the parts share it, each as often as it is drawn."""
    measure = model.requirements[number].measure
    copies = [k for k, part in enumerate(sharing) if number in parts[part].lines for _ in range(parts[part].times)]
    return Line(measure.of, dict(measure.amounts), tuple(copies))


def _caps_share(model: Model, system: SystemParts, number: int) -> bool:
    """Whether a line of one part alone bounds what it may spend of those that it shares: about the same neighbours."""
    line, having = model.requirements[number], [part for part in system.parts if number in part.lines]
    if number in system.shared or len(having) != 1 or line.measure.common is None or not line.measure.of.shared:
        return False
    (part,) = having
    seen, theirs = {*model.exposed(line)}, [model.requirements[one] for one in part.lines if one in system.shared]
    same = all((one.neighbours, one.wrt) == (line.neighbours, line.wrt) for one in theirs)
    return bool(theirs) and same and part.times == 1 and seen >= {*part.outputs}


DIGITS_OF_MU = 12
"""Decimals of a chosen mu that several runs satisfy together."""
DIGITS_OF_EPSILON = 7
"""Decimals of a chosen epsilon that Gaussian noise satisfies beside a delta."""
LARGEST_EPSILON = 10**4
"""No share is looked for beyond."""
SPENT = {PURE: (PURE,), LOCAL_PURE: (PURE,), APPROXIMATE: KINDS, ZERO_CONCENTRATED: (GAUSSIAN,), GAUSSIAN: (GAUSSIAN,)}
"""How a part spends whose share is chosen in a measure."""


def _one_run(kind: Measure, amount: Fraction | float, times: int) -> Fraction:
    """At most what one of several runs may spend, where all of them spend an amount by adding up, or by squares."""
    if times == 1 and isinstance(amount, Fraction):
        return amount
    return rounded_down(float(amount) / (times if kind is PURE else times**0.5))


def epsilon_up(mu_squared: Fraction, delta: Fraction) -> Fraction:
    """The least epsilon, of so many decimals, at which Gaussian noise of a mu has no more than a delta."""
    whole = 10**DIGITS_OF_EPSILON

    def enough(digits: int) -> bool:
        return gaussian_delta_up(Fraction(digits, whole), mu_squared) <= delta

    return Fraction(least_whole(enough, -1, LARGEST_EPSILON * whole), whole)


def _within(model: Model, chosen: Mapping[int, Fraction]) -> None:
    """Check that chosen numbers lie in their ranges.

    Raises: SpecError PS0501.
    """
    for number, amount in chosen.items():
        found = systems.share_range(model, number)
        if not found.low <= amount / systems.share_of(model, number)[1]:
            node = model.nodes[found.name]
            message = f"the best split leaves {found.name} less than its range says: solve keeps to upper ends only"
            hint = f"let {found.name} begin at 0"
            raise SpecError.at(model.source, node.span, "PS0501", message, help=hint)


def _no_split(model: Model, number: int) -> Diagnostic:
    line = model.requirements[number]
    return Diagnostic.at(
        model.source,
        line.span,
        "PS0501",
        "solve finds no way for these outputs to share this line",
        help="give each kind of output a line of its own",
    )
