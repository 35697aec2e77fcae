"""A run of a plan of random dictatorship as a joint draw, with its transcript as a file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import UsageError, VerificationError
from privspec.core.files import AtomicFile, write_atomically
from privspec.core.records import dataclass, replace
from privspec.execute.ballots import refuse_number
from privspec.execute.family import Circumstances, Drawn, Mechanism, Secret, Simulation, mechanism_of, refuse_joint_draw
from privspec.families.selection.execution import LotteryMechanism
from privspec.families.selection.joint_draw.checking import verify_transcript
from privspec.families.selection.joint_draw.parties import joint_draw
from privspec.families.selection.joint_draw.terms import KEY, Terms, coalition_ratio, need_pynacl
from privspec.families.selection.joint_draw.transcript import Anchors, Finding, Head, Report, protection, unreadable
from privspec.model.lotteries import FirstChoice, Proportional
from privspec.noise.samplers import Randomness, SystemRandomness


@dataclass(frozen=True, eq=False, slots=True)
class JointMechanism(Mechanism):
    """The plan's own mechanism, except that the winner comes from a joint draw."""

    whole: LotteryMechanism
    terms: Terms
    digest: str
    transcript: Path

    @classmethod
    def of(cls, mechanism: Mechanism, digest: str, transcript: Path, *, private: bool) -> Self:
        """Args: digest, of the plan; transcript, the file to write; private, whether the run is no simulation.

        Raises: UsageError PS0850, PS0851; PS0852 if the plan is not one of dummy votes and a public number of voters.
        """
        if not isinstance(mechanism, LotteryMechanism):
            refuse_joint_draw("its mechanism draws no winner")
        lottery = mechanism.lottery
        if not isinstance(lottery, Proportional) or not isinstance(mechanism.points, FirstChoice):
            refuse_joint_draw("its winner is not drawn in proportion to first choices")
        if mechanism.voters is None:
            refuse_joint_draw("its number of voters is secret, and a transcript shows it")
        if not private:
            raise UsageError.of("PS0851", "a joint draw takes its numbers from the operating system: no seed")
        need_pynacl()
        return cls(mechanism, terms_of(mechanism, mechanism.voters, lottery), digest, transcript)

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.whole.outputs

    def read(self, data: Mapping[str, Any], circumstances: Circumstances) -> Secret:
        """The first choices of all voters, in an order that says nothing of the file's.

        Raises: as `LotteryMechanism.read`; UsageError PS0713 if the transcript cannot be written.
        """
        found = self.whole.ballots(data, circumstances)
        if found.number != self.terms.voters:
            refuse_number(found.form, self.terms.voters, found.number)
        with AtomicFile(self.transcript):
            pass
        votes = np.repeat(found.ranked[:, 0], found.counts).tolist()
        joint = f"drawn jointly: {protection(coalition_ratio(self.terms, 0), coalition_ratio(self.terms, 1))}"
        return _Assembly(self, tuple(shuffled(votes)), (*found.form.rules(strict=circumstances.strict), joint))

    def simulate(self, asked: Simulation) -> NDArray[np.float64]:
        """The law is that of an ordinary run."""
        return self.whole.simulate(asked)


@dataclass(frozen=True, eq=False, slots=True)
class _Assembly(Secret):
    mechanism: JointMechanism
    votes: tuple[int, ...]
    rules: tuple[str, ...]

    def draw(self, randomness: Randomness) -> Drawn:
        """Enact all parties, and write the transcript.

        Raises: VerificationError PS0854.
        """
        whole, terms = self.mechanism.whole, self.mechanism.terms
        names = [terms.alternatives[vote] for vote in self.votes]
        outcome = joint_draw(terms, names, plan=self.mechanism.digest)
        write_atomically(self.mechanism.transcript, (json.dumps(outcome.transcript) + "\n").encode())
        if outcome.winner is None:
            raise void(outcome.report, self.mechanism.transcript)
        return Drawn({whole.output: np.asarray(whole.winners[terms.alternatives.index(outcome.winner)])})


def terms_of(mechanism: LotteryMechanism, voters: int, lottery: Proportional) -> Terms:
    """The terms of a plan's joint draw.

    Raises: UsageError PS0851.
    """
    return Terms(tuple(str(winner) for winner in mechanism.winners), voters, lottery.dummies)


def read_transcript(
    path: Path, plan: Mapping[str, Any] | None = None, keys: Path | None = None, session: str | None = None
) -> Report:
    """What the transcript in a file shows, and whether it is a draw of that plan, of those voters, in that session.

    Args: keys, a JSON file with the public signature key of every voter, and of the mixers where they are known, by
    name. A transcript names keys of its own, which prove nothing of who has cast a ballot.
    Raises: UsageError PS0850, PS0852, PS0856; VerificationError PS0855.
    """
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise unreadable("it is no JSON file") from error
    report = _anchored(verify_transcript(body), Head.from_json(body["head"]), read_keys(keys), session)
    if plan is None:
        return report
    wanted = JointMechanism.of(mechanism_of(plan), str(plan.get("digest")), path, private=True)
    head = Head.from_json(body["head"])
    # whoever was shut out after a void attempt is missing
    same = replace(wanted.terms, voters=head.terms.voters, mixers=head.terms.mixers) == head.terms
    if same and head.plan == wanted.digest and head.terms.voters <= wanted.terms.voters:
        return report
    return _refused(report, ("the draw",), "is not one of this plan")


def _refused(report: Report, parties: tuple[str, ...], what: str) -> Report:
    return replace(report, winner=None, findings=(*report.findings, Finding(parties, what)))


def _anchored(report: Report, head: Head, keys: Mapping[str, str] | None, session: str | None) -> Report:
    """Held against keys and session from outside."""
    if session is not None and session != head.session:
        report = _refused(report, ("the draw",), "is of another session")
    if keys is None:
        return replace(report, anchors=Anchors(session=session is not None))
    for name, own in head.voters.items():
        if keys.get(name) != own.sign.hex():
            report = _refused(
                report, (name,), "has a different key from the one given" if name in keys else "has no key"
            )
    known = [name for name in head.mixers if name in keys]
    for name in known:
        if keys[name] != head.mixers[name].sign.hex():
            report = _refused(report, (name,), "has a different key from the one given")
    absent = tuple(name for name in keys if head.keys(name) is None)
    anchors = Anchors(True, len(known) == len(head.mixers), session is not None, absent)
    return replace(report, anchors=anchors)


def read_keys(path: Path | None) -> Mapping[str, str] | None:
    """Public signature keys by name, in hexadecimal digits, as they stand in the head of a transcript.

    Raises: UsageError PS0856.
    """
    if path is None:
        return None
    try:
        body = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_once)
        if isinstance(body, dict) and set(body) <= {"voters", "mixers"} and "voters" in body:
            body = _once([item for part in body.values() for item in part.items()])
        found = {str(name): str(key["sign"] if isinstance(key, dict) else key).lower() for name, key in body.items()}
        if not found or any(len(bytes.fromhex(key)) != KEY for key in found.values()):
            raise ValueError("no key")
        if len(set(found.values())) != len(found):
            raise ValueError("two parties with one key")
    except (OSError, ValueError, KeyError, AttributeError, RecursionError) as error:
        raise UsageError.of(
            "PS0856",
            f"{path} is no file of keys",
            help='write {"voter 1": "64 hexadecimal digits", ...}: the key that each voter signs with, '
            "from the voters themselves",
        ) from error
    return found


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """An object that names nobody twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("one name twice")
    return found


def void(report: Report, path: Path) -> VerificationError:
    """PS0854, with who is to blame."""
    notes = tuple(finding.text() for finding in report.findings)
    help_ = f"{path} proves it"
    return VerificationError.of("PS0854", "the joint draw is void: nothing was released", *notes, help=help_)


def shuffled(votes: Sequence[int]) -> list[int]:
    """In an order drawn by the operating system: ballots are read in groups, and voters are numbered in public."""
    found, source = list(votes), SystemRandomness()
    for i in range(len(found) - 1, 0, -1):
        j = source.below(i + 1)
        found[i], found[j] = found[j], found[i]
    return found
