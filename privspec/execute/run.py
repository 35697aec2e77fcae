"""Runs a plan on data: check, read, pay, draw, write, in this order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privspec.core.diagnostics import Diagnostic, UsageError, VerificationError
from privspec.execute.family import Circumstances, Progress, Secret, exposure_of, mechanism_of, silent
from privspec.execute.ledger import Receipt, debit, look
from privspec.execute.mechanism import Target
from privspec.execute.participation import Participation
from privspec.execute.participation import participation as participation_file
from privspec.execute.problems import STRICT_WARNING, refuse
from privspec.execute.randomness import Randomness, SystemRandomness
from privspec.execute.release import Release, ReleaseFile, kind_of, write_release
from privspec.execute.rounds import adds

if TYPE_CHECKING:
    from privspec.model.graph import Model


def plan_digest(plan: Mapping[str, Any]) -> str:
    """SHA-256 of the plan's canonical JSON without its `digest`."""
    body = {key: value for key, value in plan.items() if key != "digest"}
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def check_digest(plan: Mapping[str, Any]) -> str:
    """The plan's digest, recomputed.

    Raises: VerificationError (PS0823) if it is another than the plan says.
    """
    digest = plan_digest(plan)
    if plan.get("digest") != digest:
        raise VerificationError(
            Diagnostic(
                "PS0823",
                "the plan was changed after it was written: its digest does not fit",
                help="solve the spec again, or take an unchanged copy of the plan",
            )
        )
    return digest


def execute_plan(
    plan: Mapping[str, Any],
    data: Mapping[str, Any],
    model: Model | None = None,
    randomness: Randomness | None = None,
    *,
    target: Target | None = None,
    strict: bool = False,
) -> Release:
    """One release of a plan on data, without budget and files: use `run` unless the budget is kept elsewhere.

    Raises: UsageError, DataError, VerificationError.
    """
    digest = check_digest(plan)
    mechanism = mechanism_of(plan)
    secret = mechanism.read(data, Circumstances(model, target, strict))
    return _release(plan, digest, secret, data, randomness or SystemRandomness(), strict)


def run(
    plan: Mapping[str, Any],
    inputs: Mapping[str, Any],
    ledger: Path | None = None,
    output: Path | None = None,
    strict: bool = False,
    model: Model | None = None,
    randomness: Randomness | None = None,
    *,
    target: Target | None = None,
    progress: Progress = silent,
    party: str | None = None,
    joint_draw: Path | None = None,
    participation: Path | None = None,
) -> Release:
    """One release of a plan on data, paid for in the data set's ledger before any noise is drawn.

    Args: inputs, paths or objects in memory by input name; ledger, by default in the working directory;
        output, written atomically by its suffix; model, the spec as loaded (by default from the plan's own
        source); randomness, by default the operating system's: a `SimulationRandomness` gives a result marked
        as not private, and debits nothing; progress, told how many records are done; party, the one whose message
        is made from its own data (the ledger is its own, too); participation, the file that counts in how many rounds
        each voter took part, where rounds share a budget.
    Raises: BudgetError (exit 6), DataError, UsageError, VerificationError.
    """
    source = randomness or SystemRandomness()
    digest = check_digest(plan)
    mechanism = mechanism_of(plan) if party is None else mechanism_of(plan).of_party(party)
    if joint_draw is not None:
        from privspec.execute.joint_draw.plans import JointMechanism

        mechanism = JointMechanism.of(mechanism, digest, joint_draw, private=source.private)
    path = ledger or Path(f"{plan.get('spec', {}).get('name', 'privspec')}.ledger.db")
    with ExitStack() as stack:
        counted = None
        if participation is not None:
            whole = party is None and joint_draw is None
            counted = stack.enter_context(_counted(plan, digest, participation, whole=whole))
        roll = None if counted is None else counted.admit
        secret = mechanism.read(inputs, Circumstances(model, target, strict, progress, roll))
        file = None
        if output is not None:
            file = stack.enter_context(ReleaseFile(output, len(mechanism.outputs), mechanism.words))
        receipt = None
        if source.private:
            receipt = debit(path, plan, model, counted, new=look(path) is None)
        now = None if receipt is None else round_words(plan, receipt, counted)
        release = replace(_release(plan, digest, secret, inputs, source, strict), round=now, ledger=receipt)
        if file is not None:
            file.commit(release)
    return release


def _counted(plan: Mapping[str, Any], digest: str, path: Path, *, whole: bool) -> AbstractContextManager[Participation]:
    """A round in a participation file.

    Raises: UsageError PS0848 if the plan has none whose participants could be counted; PS0849.
    """
    rounds = exposure_of(plan).rounds
    one = f"adding or removing one {plan['mechanism'].get('party')}"
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
        raise UsageError(
            Diagnostic(
                "PS0848",
                f"participation cannot be counted under this plan: {why}",
                help="it takes `O is (budget / rounds)-DP wrt vote, adding or removing one voter`, and one keeper",
            )
        )
    return participation_file(path, digest, rounds)


def round_words(plan: Mapping[str, Any], receipt: Receipt, counted: Participation | None) -> str | None:
    """Which round was paid for last: "3 of 20"; None where a plan is for one release."""
    rounds = exposure_of(plan).rounds
    if rounds is None:
        return None
    if counted is not None:
        return f"{counted.held + 1}, of which one voter takes part in at most {rounds.fit}"
    return f"{receipt.held} of {rounds.count}"


def _release(
    plan: Mapping[str, Any],
    digest: str,
    secret: Secret,
    data: Mapping[str, Any],
    randomness: Randomness,
    strict: bool,
) -> Release:
    drawn = secret.draw(randomness)
    return Release(
        digest,
        drawn.outputs,
        tuple(plan["guarantees"]) if randomness.private else (),
        drawn.grid,
        randomness.private and bool(plan["guarantees"]),
        secret.rules,
        (STRICT_WARNING,) if strict else (),
        kind_of(next(iter(data.values()), None)),
        drawn.columns,
    )


def combine(plan: Mapping[str, Any], messages: Sequence[Any], output: Path | None = None) -> Release:
    """The release of a plan from the messages of all its parties: nothing is drawn, and nothing debited once more.

    Args: messages, what `run` with a `party` gave, or the files it wrote; output, written atomically by its suffix.
    Raises: UsageError PS0844, DataError (PS0811, PS0842, PS0843), VerificationError.
    """
    digest = check_digest(plan)
    mechanism = mechanism_of(plan)
    opened = [_opened(message, place) for place, message in enumerate(messages, 1)]
    drawn = mechanism.combine(digest, opened)
    # one message whose noise came from a seed, and its party is not protected
    private = all(message.get("private") is True for message in opened)
    release = Release(digest, drawn.outputs, tuple(plan["guarantees"]) if private else (), drawn.grid, private)
    if output is not None:
        write_release(release, output)
    return release


def _opened(message: Any, place: int) -> Mapping[str, Any]:
    if isinstance(message, Release):
        return message.to_json()
    if isinstance(message, str | Path):
        try:
            message = json.loads(Path(message).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            message = None
    if not isinstance(message, Mapping):
        refuse("PS0842", f"message {place} cannot be read", help="messages are what `run --party` writes, as .json")
    return message
