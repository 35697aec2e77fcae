"""Runs a plan on data: check, read, pay, draw, write, in this order.

What is here believes the plan: `_run` and `_combine` are for `Plan.run` and `Plan.combine`, which verify it first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from privspec.core.diagnostics import BudgetError, UsageError, VerificationError
from privspec.core.files import PRIVATE, refuse_overwriting
from privspec.core.machine import free_memory, refuse_without_memory
from privspec.execute import family
from privspec.execute.budget import names_of
from privspec.execute.keeper import STRICT_WARNING, DataOwnerReport, refuse
from privspec.execute.ledger import Receipt, debit, look, names_in, place_of, stated
from privspec.execute.receipts import Participation, adds, entry_of
from privspec.execute.receipts import participation as participation_file
from privspec.execute.registry import registration
from privspec.execute.release import LONGEST, MAJOR, Release, ReleaseFiles, kind_of, observers_of, places, write_release
from privspec.execute.sources import AS_USUAL, TextFiles, outputs_of, place_on_disk
from privspec.kernel.measures import PURE
from privspec.kernel.writing import plan_digest
from privspec.model.targets import environment_of_computed, labels_of
from privspec.noise.samplers import Randomness, SystemRandomness
from privspec.problem.fitting import rules
from privspec.registry import block_of

if TYPE_CHECKING:
    from privspec.model.graph import Model


NOTHING_SPENT = "nothing was drawn and nothing was spent"


def check_digest(plan: Mapping[str, Any]) -> str:
    """The plan's digest, recomputed.

    Raises: VerificationError (PS0823) if it is another than the plan says.
    """
    digest = plan_digest(plan)
    if plan.get("digest") != digest:
        raise VerificationError.of(
            "PS0823",
            "the plan was changed after it was written: its digest does not fit",
            help="solve the spec again, or take an unchanged copy of the plan",
        )
    return digest


def _run(
    plan: Mapping[str, Any],
    inputs: Mapping[str, Any],
    ledger: Path | str | None = None,
    output: Path | None = None,
    strict: bool = False,
    model: Model | None = None,
    randomness: Randomness | None = None,
    *,
    new_ledger: bool = False,
    progress: family.Progress = family.silent,
    party: str | None = None,
    keys: family.Keys | None = None,
    joint_draw: Path | None = None,
    participation: Path | None = None,
    mode: int = PRIVATE,
    force: bool = False,
    texts: TextFiles = AS_USUAL,
    keeper: DataOwnerReport | None = None,
    constants: Mapping[str, Any] | None = None,
    consent: Callable[[DataOwnerReport], None] | None = None,
    other_people: str | None = None,
) -> Release:
    """One release of a plan on data, paid for in the data set's ledger before any noise is drawn.

    Args: inputs, paths or objects in memory by input name; ledger, by default that of `place_of`; new_ledger, whether
        the budget is declared now, as exactly what this plan spends; output, written by its suffix, one file an
        observer where there are several; model, the spec as loaded, for labels and for outputs computed from
        estimates; randomness, by default the operating system's: a `SimulationRandomness` gives a result marked as not
        private, and debits nothing; progress, told how many records are done; party, the one whose message is made
        from its own data (the ledger is its own, too); keys, what masks it in a secure
        sum; participation, the file that counts in how many rounds each
        voter took part, where rounds share a budget; mode, the permissions of the release's files; force, whether a
        release that was paid for may be replaced; texts, how text files are written; keeper, told how the data fit,
        for their keeper alone;
        constants, the public values that the plan leaves open; consent, given how the data fit before anything is
        spent, may end the run by an error of its own; other_people, why these are other people's data than those of
        other ledgers, as the keeper states on record.
    Raises: BudgetError (exit 6), DataError, UsageError, VerificationError; what `consent` raises.
    """
    source = randomness or SystemRandomness()
    digest = check_digest(plan)
    refuse_unknown_constants(plan, constants or {})
    if other_people is not None:
        other_people = stated(other_people)
    mechanism = family.mechanism_of(plan) if party is None else family.mechanism_of(plan).of_party(party, keys)
    if joint_draw is not None:
        mechanism = family.joint_draw_of(plan, mechanism, digest, joint_draw, private=source.private)
    with ExitStack() as stack:
        counted = None
        if participation is not None:
            whole = party is None and joint_draw is None
            counted = stack.enter_context(_counted(plan, digest, participation, whole=whole))
        roll = None if counted is None else counted.admit
        public = constants or {}
        keeper = keeper or DataOwnerReport()
        texts = replace(texts, told=keeper.remark)
        circumstances = family.RunContext(model, strict, progress, roll, texts, keeper, public, source)
        free = free_memory()  # before data are read: what is refused does not depend on them
        secret = mechanism.read(by_person(plan, inputs, circumstances), circumstances)
        if consent is not None:
            consent(keeper)
        path = place_of(inputs, ledger) if source.private else None
        release = _prepared(_undrawn(plan, digest, mechanism.outputs, model, strict=strict), secret, inputs, strict)
        if party is None:
            release = replace(release, observers=observers_of(plan["guarantees"], mechanism.outputs))
        written = [] if output is None else [output, *places(output, release.observers).values()]
        files = {name: place_on_disk(s) for name, s in inputs.items() if isinstance(s, str | Path)}
        data = {f"the data for {name}": place for name, place in files.items()}
        kept = {**data, "the ledger": path, "the participation file": participation}
        refuse_overwriting([*written, *([] if joint_draw is None else [joint_draw])], kept)
        reckoned, written_to = _as_long(release, secret, model), None
        numbers = sum(values.size for values in reckoned.values.values())
        refuse_without_memory(numbers * secret.each, free, f"{numbers:,} numbers", NOTHING_SPENT)
        if output is not None:
            written_to = stack.enter_context(ReleaseFiles(output, release.observers, mode, force=force))
            written_to.reserve(reckoned)
        receipt = None
        if path is not None:
            # on disk in this order, before noise is drawn: who was counted, the debit, what the registry knows of it
            with registration(inputs, party, texts) as known:
                state = look(path)
                known.check(path, state, others=other_people is not None)
                close = known.near() if other_people is None else None
                if close is not None and not keeper.asks(close):
                    raise BudgetError((replace(close, severity="error"),))
                names = names_in(state, list(inputs), known.names, known.same)
                receipt = debit(path, plan, model, counted, new=new_ledger, names=names, others=other_people)
                known.record(path, receipt, names)
        now = None if receipt is None else round_words(plan, receipt, counted)
        release = replace(_drawn(release, secret, source), round=now, ledger=receipt)
        if party is None and model is not None:
            release = with_computed(release, model, mechanism)
        if written_to is not None:
            written_to.commit(release)
    return release


def by_person(
    plan: Mapping[str, Any], inputs: Mapping[str, Any], circumstances: family.RunContext
) -> Mapping[str, Any]:
    """The data of a run, with what is made of all records of a person where a plan is about that.

    Raises: DataError PS0801 to PS0804.
    """
    if not any("people" in one for one in plan.get("problem", {}).get("data", ())):
        return inputs
    from privspec.execute.persons import of_plan  # most plans are of records as they stand

    return of_plan(plan, inputs, circumstances)


def refuse_unknown_constants(plan: Mapping[str, Any], constants: Mapping[str, Any]) -> None:
    """Raises: UsageError PS0824 if the plan leaves no constant of one of these names open."""
    opened = [item["name"] for item in block_of(plan).get("constants", ())] if "problem" in plan else []
    unknown = [name for name in constants if name not in opened]
    if unknown:
        listed = ", ".join(f"--constant {name}=FILE" for name in opened)
        raise UsageError.of(
            "PS0824",
            f"this plan leaves no constant {' or '.join(unknown)} open",
            help=f"it takes {listed}" if listed else "constants are part of the plan: solve again to change one",
        )


def _counted(plan: Mapping[str, Any], digest: str, path: Path, *, whole: bool) -> AbstractContextManager[Participation]:
    """A round in a participation file.

    Raises: UsageError PS0848 if the plan has none whose participants could be counted; PS0849.
    """
    rounds = family.exposure_of(plan).rounds
    one = f"adding or removing one {plan['problem']['data'][0]['party']}"
    why = None
    if rounds is None:
        why = "no rounds share a budget"
    elif not whole:
        why = "the votes are not in one hand"
    elif not adds(plan):
        why = "all voters take part in every round"
    elif any(guarantee["neighbours"] != one for guarantee in plan["guarantees"]):
        # several voters can take part in more rounds than one of them
        why = "a guarantee is about several voters together"
    if rounds is None or why is not None:
        raise UsageError.of(
            "PS0848",
            f"participation cannot be counted under this plan: {why}",
            help=f"it takes `O is (budget / rounds)-{PURE.word} wrt vote, adding or removing one voter`, "
            "and one keeper",
        )
    return participation_file(path, digest, rounds)


def round_words(plan: Mapping[str, Any], receipt: Receipt, counted: Participation | None) -> str | None:
    """Which round was paid for last: "3 of 20"; None where a plan is for one release."""
    rounds = family.exposure_of(plan).rounds
    if rounds is None:
        return None
    if counted is not None:
        return f"{counted.held + 1}, of which one voter takes part in at most {rounds.fit}"
    return f"{receipt.held} of {rounds.count}"


def _undrawn(
    plan: Mapping[str, Any], digest: str, outputs: Sequence[str], model: Model | None, *, strict: bool = False
) -> Release:
    """A release before anything is drawn: under which plan, and what each of its numbers will be about."""
    moved = rules(plan["problem"], model, strict=strict) if "problem" in plan else ()
    bias = {one.done.name.lower(): {name: way.value for name, way in one.moves} for one in moved}
    if pulled := _pulled(plan):
        bias["pulled"] = pulled
    nodes = {} if model is None else model.nodes
    labels = {name: labels_of(model, name, nodes[name].type.shape) for name in outputs if name in nodes}
    bare = _unprotected(plan, outputs)
    names = {} if model is None else model.labels
    guarantees = tuple(plan["guarantees"])
    return Release(digest, {}, guarantees, None, True, labels=labels, unprotected=bare, called=names, bias=bias)


def _pulled(plan: Mapping[str, Any]) -> dict[str, str]:
    """By how much the averages of outputs that are pulled towards public values are off at most."""
    stated = plan["mechanism"].get("pulled")
    if not stated:
        return {}
    found = dict[str, str]()
    for one in plan["problem"]["blocks"][0]["released"]:
        most = max(stated["largest_bias"][one["start"] : one["stop"]])
        found[one["name"]] = f"by up to {most * (1 + 1e-5):.6g}"  # rounding to six digits takes less than that off
    return found


def _unprotected(plan: Mapping[str, Any], outputs: Sequence[str]) -> tuple[str, ...]:
    """The outputs that the plan calls not protected, for some input; where it knows no bound, all without a line."""
    bare: set[str] = set()
    for item in plan.get("exposures", ()):
        lines = [g for g in plan["guarantees"] if item["input"] in names_of(g["wrt"])]
        named = {name for g in lines for name in names_of(g["outputs"])}
        bare.update(item["not_protected"] or (set(item["outputs"]) - named if item["bound"] is None else ()))
    return tuple(name for name in outputs if name in bare)


def _prepared(release: Release, secret: family.Secret, data: Mapping[str, Any], strict: bool) -> Release:
    """The same with what is known once data were read: all that can fail but the draw comes before the debit."""
    return replace(
        release,
        data_rules=secret.rules,
        warnings=(STRICT_WARNING,) if strict else (),
        kind=kind_of(data.values()),
        deviations=secret.deviations(),
    )


def _as_long(release: Release, secret: family.Secret, model: Model | None) -> Release:
    """In place of the release that will be drawn, one that takes as much room or more."""
    shapes = {} if model is None else {name: model.nodes[name].type.shape for name in release.labels}
    shapes |= {} if model is None else {one.name: one.type.shape for one in model.computed}
    values = {name: np.broadcast_to(LONGEST, shape) for name, shape in shapes.items()} | dict(secret.longest())
    return replace(release, values=values, ledger=Receipt("0" * 32, 10**15, "0" * 64))


def _drawn(release: Release, secret: family.Secret, randomness: Randomness) -> Release:
    """The release with what was drawn; of a simulation, without guarantees."""
    drawn = secret.draw(randomness)
    return replace(
        release,
        values=drawn.outputs,
        guarantees=release.guarantees if randomness.private else (),
        grid=drawn.grid,
        private=randomness.private and bool(release.guarantees),
        columns=drawn.columns,
        reports=drawn.reports,
        skipped=drawn.skipped,
        labels={**release.labels, **drawn.labels},
        deviations={**release.deviations, **drawn.deviations},
    )


def with_computed(release: Release, model: Model, mechanism: family.Mechanism) -> Release:
    """A release with the outputs that are computed from what it gives: for those who are given all of their sources."""
    if not model.computed:
        return release
    if model.drawn is not None:
        model = model.drawn.at(float(release.values[model.drawn.name].item()))
    from privspec.execute.predicted import deviations

    values, labels, bare, observers = dict(release.values), dict(release.labels), [], dict(release.observers)
    public = environment_of_computed(model)
    apart = {**release.deviations, **deviations(mechanism, model, release.values)}
    for one in model.computed:
        if not set(one.sources) <= set(values):
            continue  # a part that was not run
        values[one.name] = one.value(values, public)
        alike = [labels[name] for name in one.sources if name in labels and values[name].shape == one.type.shape]
        own = {name: np.array(words, dtype=object) for name, words in one.labels.items()}
        labels.update((one.name, found) for found in ([own] if own else alike[:1]))
        bare += [one.name] if set(one.sources) & set(release.unprotected) else []
        observers = {
            who: (*names, one.name) if set(one.sources) <= set(names) else names for who, names in observers.items()
        }
    unprotected = (*release.unprotected, *bare)
    return replace(
        release, values=values, labels=labels, observers=observers, unprotected=unprotected, deviations=apart
    )


def _combine(
    plan: Mapping[str, Any],
    messages: Sequence[Any],
    output: Path | None = None,
    model: Model | None = None,
    mode: int = PRIVATE,
    *,
    force: bool = False,
) -> Release:
    """The release of a plan from the messages of all its parties: nothing is drawn, and nothing debited once more.

    Args: messages, what `run` with a `party` gave, or the files it wrote; output, model, mode and force as for `run`.
    Raises: UsageError PS0844, DataError (PS0811, PS0842, PS0843), VerificationError.
    """
    digest = check_digest(plan)
    mechanism = family.mechanism_of(plan)
    observers = observers_of(plan["guarantees"], mechanism.outputs)
    if output is not None:
        named = {f"message {place}": message for place, message in enumerate(messages, 1)}
        refuse_overwriting([output, *places(output, observers).values()], named)
    opened = [_opened(message, place) for place, message in enumerate(messages, 1)]
    drawn = mechanism.combine(digest, opened)
    # one message whose noise came from a seed, and its party is not protected
    private = all(message.get("private") is True for message in opened)
    bare = _undrawn(plan, digest, mechanism.outputs, model)
    with suppress(KeyError, TypeError, ValueError):  # what is no receipt names nothing
        entries = [entry_of(message["ledger"]) for message in opened]
        bare = replace(bare, ledgers=tuple(Receipt(one.identity or "", one.event, one.head) for one in entries))
    release = replace(
        bare,
        values=drawn.outputs,
        guarantees=bare.guarantees if private else (),
        grid=drawn.grid,
        private=private,
        observers=observers,
        labels={**bare.labels, **drawn.labels},
        deviations=drawn.deviations,
    )
    if model is not None:
        release = with_computed(release, model, mechanism)
    if output is not None:
        write_release(release, output, mode, force=force)
    return release


def _opened(message: Any, place: int) -> Mapping[str, Any]:
    """A message with its values by output; an empty one if it is of another format."""
    if isinstance(message, Release):
        message = message.to_json()
    if isinstance(message, str | Path):
        try:
            message = json.loads(Path(message).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            message = None
    if not isinstance(message, Mapping):
        refuse("PS0842", f"message {place} cannot be read", help="messages are what `run --party` writes, as .json")
    values = outputs_of(message)
    return {**message, "outputs": values} if values is not None and str(message.get("format")).startswith(MAJOR) else {}
