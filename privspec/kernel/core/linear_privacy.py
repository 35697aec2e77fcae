"""Noisy linear answers as the rules see them: what is executed, what neighbours differ in, and what that proves."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from flint import fmpq_mat

from privspec.kernel.changes import COUNTED, Units
from privspec.kernel.core.linear import (
    Difference,
    ExchangeableUnits,
    InputLayout,
    LinearLayout,
    Matrix,
    Release,
    check_one,
    first_cells,
    owners,
    read_matrix,
    read_release,
)
from privspec.kernel.core.numbers import ZERO, sqrt_up
from privspec.kernel.core.problem import (
    AskedMeasure,
    Bound,
    Frame,
    Guarantee,
    PlanUnderCheck,
    Rules,
    View,
    in_turn,
    notes_of,
    read_guarantees,
)
from privspec.kernel.core.reading import JsonNode, Refused, frozen, read
from privspec.kernel.losses import Loss
from privspec.kernel.moves import judge_asserted, units_by_measure, units_of
from privspec.kernel.promises import Line, Question, Verdict, verdict
from privspec.kernel.rules import Hint, derive, view_of
from privspec.kernel.strategies.dense import Dense, Lattice, Scaling, Shared
from privspec.kernel.terms import Noise, Reports, Shares

Executed = Noise | Reports | Shares


# --- what is executed --------------------------------------------------------------------------------------------


def term_of(release: Release, frame: Frame) -> Executed:
    """The term that is executed, under the trust of its problem."""
    block = release.problem
    rows = release.reconstruction.tolist()
    shown = [None if release.of_inputs else fmpq_mat(rows[one.start : one.stop]) for one in block.released]
    shows = tuple(zip((one.name for one in block.released), shown, strict=True))
    noise = release.noise
    # what is rounded of normal noise is computed from it, wherever answers lie
    lattice = Lattice(release.grid, (), {}) if noise.spherical else lattice_of(release)
    term = Noise(Dense(release.strategy), noise, lattice, shows, mixed=release.round_outputs)
    if frame.trust.means.shared:
        return Shares(release.parties, frame.trust.colluding, term)
    if not frame.trust.means.public:
        return term
    parties = owners(frame, block) if frame.trust.means.alone else [("keeper", 1)] * block.inputs
    return Reports(tuple(name for name, _ in parties), term)


def lattice_of(release: Release) -> Lattice:
    """The lattice of the answers, and the numbers that those of each input are sums of whole multiples of."""
    block, points = release.problem, list[tuple[Fraction, ...]]()
    for held, step in zip(block.held, release.steps, strict=True):
        _, one = block.places[held.start]
        own = {step * held.width} | ({held.lower} if held.lower and not held.ball else set())
        points += [tuple(own)] * len(one.numbers)
    spread = [held for held, step in zip(block.held, release.steps, strict=True) if held.cells and step != 1]
    return Lattice(release.grid, tuple(points), shared_among(block, spread))


def shared_among(block: LinearLayout, tables: list[InputLayout]) -> Shared:
    """The cells of tables of which records stand on a grid of shares."""
    found: Shared = {}
    for held in tables:
        firsts, at = first_cells(held.columns), block.places[held.start][0]
        for i in range(held.stop - held.start):
            found[at + i] = at + i - i % len(firsts) + firsts[i % len(firsts)]
    return found


# --- what neighbours differ in -----------------------------------------------------------------------------------


def change_of(release: Release, difference: Difference) -> Units:
    """What one unit changes in the coordinates of the answers."""
    block = release.problem
    change = units_of(difference, block.places)
    if max(release.senders) > 1:
        check_one(difference.count, [(part.length, block.places[part.start][1]) for part in difference.parts])
    return replace(change, multiples=_multiples(release, difference)) if release.noise.in_cells else change


def _multiples(release: Release, difference: Difference) -> tuple[tuple[Fraction, ...], ...]:
    """What a number in each coordinate moves by sums of whole multiples of: a step of its grid, or all that it may."""
    found = list[tuple[Fraction, ...]]()
    for held, step in zip(release.problem.held, release.steps, strict=True):
        own = [part for part in difference.parts if held.start <= part.start < held.stop]
        moved = {step * held.width} | {p.amount + abs(p.middle or ZERO) for p in own if p.shape not in COUNTED}
        found += [tuple(moved)] * len(release.problem.places[held.start][1].numbers)
    return tuple(found)


@frozen
class Witness:
    """What helps to show what a line says, and is not believed.

    `inverse`: of the covariance of the mixture that is seen, near an inverse root; `scaling`: of each difference for
    each unit that changes the numbers by which its pieces are scaled.
    """

    inverse: Matrix | None
    scaling: tuple[UnitScalings | None, ...] | None

    def hints(self, count: int) -> list[Hint]:
        """What helps with each of so many differences."""
        listed = (None,) * count if self.scaling is None else self.scaling
        return [Hint(self.inverse, one) for one, _ in zip(listed, range(count), strict=True)]


UnitScalings = list[Scaling]
READERS = {
    "Matrix": read_matrix,
    "UnitScalings": lambda item: [None if one.absent else [v.exact(0) for v in one.items()] for one in item.items()],
}


def losses(
    release: Release, frame: Frame, outputs: tuple[str, ...], differences: tuple[Difference, ...], witness: JsonNode
) -> list[Loss]:
    """What whoever sees some outputs learns at most of each difference."""
    term, helped = term_of(release, frame), read(Witness, witness).hints(len(differences))
    pairs = zip(differences, helped, strict=True)
    return [derive(term, frozenset(outputs), change_of(release, one), hint).loss for one, hint in pairs]


# --- what a plan states of it ------------------------------------------------------------------------------------


def questions_of(release: Release, guarantee: Guarantee, witness: Witness) -> list[Question]:
    """What a line asks of each difference."""
    measure = guarantee.obligation.measure
    differences = release.problem.differences[guarantee.number]
    found = list[Question]()
    for difference, hint in zip(differences, witness.hints(len(differences)), strict=True):
        change = change_of(release, difference)
        if measure.each:
            found += _by_measure(guarantee, change, release.problem.places[difference.parts[0].start], hint)
        else:
            found.append(Question(change, guarantee.asked, guarantee.achieved, hint))
    return found


def _by_measure(
    guarantee: Guarantee, change: Units, place: tuple[int, ExchangeableUnits], hint: Hint
) -> list[Question]:
    """Of parties with figures of their own, what those with each of them are asked; the plan states the largest."""
    units = units_by_measure(change, place, list(map(_kind, guarantee.obligation.measure.each)))
    amounts = {_kind(one): one.figures({}) for one in guarantee.obligation.measure.each}
    return [Question(own, amounts[kind], guarantee.achieved, Hint(hint.inverse)) for kind, own in units.items()]


def _kind(measure: AskedMeasure) -> str:
    return f"{measure.name} {measure.amounts}"


def judge_privacy(case: PlanUnderCheck, release: Release) -> Release:
    """Every guarantee, from what is executed; the mechanism as it was read."""
    views, _ = case.claims.fields("views", "bound")
    guarantees, term = read_guarantees(case.guarantees, case.frame), term_of(release, case.frame)
    if any(data.asserted is not None for data in case.frame.data):
        judge_asserted(case, release)
    answers, lines = sum(release.senders), list[Line]()
    for guarantee, item in zip(guarantees, views.items(len(guarantees)), strict=True):
        asked, witness = guarantee.obligation, read(Witness, item)
        _check_stated(case, release, guarantee)
        questions, seen = tuple(questions_of(release, guarantee, witness)), frozenset(asked.seen)
        lines.append(Line(asked.line, seen, asked.measure.of, questions, fits=asked.measure.of.of_laws))
        known = len(term.used(seen)) if isinstance(term, Noise) else answers
        text = case.frame.trust.shown(seen=known, answers=answers, mixed="" if witness.inverse is None else ", mixed")
        case.says("view", True, f"whoever sees {' and '.join(asked.seen)} sees {text}", guarantee.number)
        if not case.part:
            _says(case, guarantee, verdict(term, lines[-1]))
    case.promised = term, lines
    return release


def _says(case: PlanUnderCheck, guarantee: Guarantee, found: Verdict) -> None:
    """Whether a line holds, in words."""
    asked = guarantee.obligation
    words = _by_party(guarantee, found) if asked.measure.each else _of_all(guarantee, found)
    case.says("privacy", found.holds, f"{', '.join(asked.outputs)}, {asked.neighbours}: {words}", guarantee.number)


def _check_stated(case: PlanUnderCheck, release: Release, guarantee: Guarantee) -> None:
    """A guarantee rests on the notes of its noise, and gives its figures; parties with their own have one figure."""
    asked, figures = guarantee.obligation, release.noise.figures
    notes = notes_of(asked.units)
    if guarantee.because != (*release.noise.notes, "post-processing", *notes):
        raise case.guarantees.wrong("rests on notes that do not fit the noise")
    given = figures[:1] if asked.measure.each else figures
    if set(guarantee.achieved) != set(given):
        raise Refused(f"the plan does not give {' and '.join(given)} alone for line {asked.line}")


def _of_all(guarantee: Guarantee, found: Verdict) -> str:
    figures = ", ".join(f"{key} = {float(value):.8g}" for key, value in guarantee.asked.items())
    least = found.largest(tuple(guarantee.achieved))
    reach = " and ".join(f"{key} is {float(value):.8g} at most" for key, value in least.items())
    stated = " and ".join(f"{float(figure):.8g}" for figure in guarantee.achieved.values())
    tail = f"within the {stated} that is stated. This gives"
    tail = tail if found.holds else f"and {stated} is stated. This does not give"
    return f"{reach}, {tail} {guarantee.obligation.measure.name} with {figures}"


def _by_party(guarantee: Guarantee, found: Verdict) -> str:
    """Each party has what its own figure asks; the plan states the largest, which proves one of them."""
    (key,) = guarantee.achieved
    known = [loss.figure(key) for loss in found.losses]
    low, high = (float(end(known)) for end in (min, max))
    over = "which is more than some party's figure allows, or another is stated"
    tail = "which each party's own figure allows" if found.holds else over
    return f"{key} from {low:.8g} to {high:.8g}, {tail}"


# --- what no line is about ---------------------------------------------------------------------------------------


def _of_view(
    case: PlanUnderCheck, release: Release, view: View, outputs: tuple[str, ...], witness: JsonNode
) -> Verdict | None:
    if view.difference.absent:
        witness.same({"inverse": None, "scaling": None})
        return None
    differences = release.problem.moved(view.difference, case.frame, view)
    return Verdict(True, 0, tuple(losses(release, case.frame, outputs, differences, witness)))


class LinearPrivacy(Rules):
    """Answers that are linear in the data, with additive noise, whatever they are worth."""

    def privacy(self, case: PlanUnderCheck) -> Release:
        return judge_privacy(case, read_release(case.frame, case.mechanism, LinearLayout))

    def reach(
        self, case: PlanUnderCheck, executed: Release, view: View, outputs: tuple[str, ...], witness: JsonNode
    ) -> Bound:
        found = _of_view(case, executed, view, outputs, witness)
        return None if found is None else found.largest(executed.noise.exposed)

    def together(
        self, case: PlanUnderCheck, executed: Release, view: View, outputs: tuple[str, ...], witness: JsonNode
    ) -> Bound:
        """Lengths of several units at once add up in answers that several move, and squares in others."""
        found = [(one, _of_view(case, executed, one, outputs, witness)) for one in view.each()]
        alone = [None if own is None else own.largest(executed.noise.exposed) for _, own in found]
        if None in alone or not executed.noise.normal:
            return in_turn(alone)
        term, known = term_of(executed, case.frame), list[tuple[set[int], Fraction]]()
        if isinstance(term, Noise):
            seen = view_of(term, frozenset(outputs), read(Witness, witness).inverse).seen
        else:
            seen = term.term.strategy
        answers = seen.matrix.tolist()
        moved = [(one, max((loss.mu_squared for loss in own.losses), default=ZERO)) for one, own in found if own]
        for one, square in moved:
            places = [executed.problem.places[held.start] for held in executed.problem.held if held.name in one.wrt]
            at = [i for start, alike in places for i in range(start, start + len(alike.numbers))]
            rows = {r for r, row in enumerate(answers) if any(row[i] for i in at)}
            length = sqrt_up(square)
            for others, more in [pair for pair in known if pair[0] & rows]:
                known.remove((others, more))
                rows, length = rows | others, length + more
            known.append((rows, length))
        return {"mu": sqrt_up(sum((length**2 for _, length in known), ZERO), 100)}
