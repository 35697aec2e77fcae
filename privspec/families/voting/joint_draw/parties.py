"""A joint draw from beginning to end: voters and mixers in one process, each with its own keys and secrets.

They keep to the rules, and speak through the board only. A plan of random dictatorship runs so, with its transcript as
a file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import DataError, UsageError, VerificationError
from privspec.core.files import AtomicFile, write_atomically
from privspec.core.records import dataclass, replace
from privspec.execute.ballots import refuse_number
from privspec.execute.family import Drawn, Mechanism, RunContext, Secret, Simulation, mechanism_of, refuse_joint_draw
from privspec.families.voting.execution import VotingMechanism
from privspec.families.voting.joint_draw.terms import (
    KEY,
    Content,
    Sealed,
    Terms,
    coalition_ratio,
    mixed_length,
    need_pynacl,
    nonce,
    seal_in_layers,
    unseal,
)
from privspec.families.voting.joint_draw.transcript import (
    COMPLAINT,
    PROTEST,
    Anchors,
    Body,
    Checker,
    Entry,
    Finding,
    Head,
    Keys,
    Report,
    commitment,
    protection,
    signable,
    to_text,
    unreadable,
    verify_transcript,
)
from privspec.kernel.laws.voting import DUMMY_VOTES
from privspec.model.voting import FirstChoice
from privspec.noise.samplers import Randomness, SystemRandomness

if TYPE_CHECKING:
    from nacl.public import PrivateKey


class Board:
    """The entries so far and what anybody can tell from them: all parties see the same."""

    def __init__(self, head: Head) -> None:
        self.head = head
        self.entries: list[Entry] = []
        self.seen = Checker(head)

    def post(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.seen.take(entry)

    def to_json(self) -> Body:
        return {"head": self.head.to_json(), "entries": [entry.to_json() for entry in self.entries]}


class Party:
    """One that signs, commits to its two numbers and reveals them."""

    def __init__(self, name: str) -> None:
        from nacl.signing import SigningKey

        self.name = name
        self._signing = SigningKey.generate()
        self._numbers = (0, 0)
        self._nonce = b""

    @property
    def keys(self) -> Keys:
        return Keys(bytes(self._signing.verify_key))

    def post(self, board: Board, kind: str, body: Body) -> None:
        message = signable(board.seen.state, self.name, kind, body)
        board.post(Entry(self.name, kind, body, self._signing.sign(message).signature))

    def act(self, board: Board, kind: str) -> None:
        {"commit": self.commit, "reveal": self.reveal}[kind](board)

    def commit(self, board: Board) -> None:
        """To a position of the mixed list and an entry of the drawn table, both uniform."""
        system, ballots = SystemRandomness(), board.seen.lists[-1]
        self._numbers = (system.below(len(ballots)), system.below(board.head.terms.entries))
        self._nonce = nonce()
        self.post(board, "commit", self.promise(board))

    def promise(self, board: Board) -> Body:
        """The body of a commitment to its numbers."""
        found = commitment(board.head.session, self.name, *self._numbers, self._nonce)
        return {"list": board.seen.agreed.hex(), "commitment": found.hex()}

    def reveal(self, board: Board) -> None:
        """What it has committed to."""
        position, entry = self._numbers
        self.post(board, "reveal", {"position": position, "entry": entry, "nonce": self._nonce.hex()})


class Voter(Party):
    """Holds a vote; `insists` on the drawn ballot even where the proof shows its vote (though not its name)."""

    insists = False

    def __init__(self, name: str, vote: int) -> None:
        super().__init__(name)
        self._vote = vote
        self._content: Content | None = None
        self._open_layers: tuple[Sealed, ...] = ()
        self._mix_layers: tuple[Sealed, ...] = ()
        self._ballot = b""

    def act(self, board: Board, kind: str) -> None:
        """Post what is due; before a commitment, look for its own ballot in the list."""
        if kind == "ballot":
            self.cast(board)
        elif kind == "commit" and self._ballot not in board.seen.lists[-1]:
            self.complain(board)
        else:
            super().act(board, kind)

    def cast(self, board: Board) -> None:
        """A ballot in layers: the mixers peel the outer ones of all ballots, the inner ones of the drawn one only."""
        terms, mixers = board.head.terms, board.head.mixers.values()
        content = self.fill(board)
        self._open_layers = seal_in_layers(content.to_bytes(), [keys.open for keys in mixers])
        self._ballot = content.root(terms) + self._open_layers[0].box
        self._mix_layers = seal_in_layers(self._ballot, [keys.mix for keys in mixers])
        self._content = content
        self.post(board, "ballot", {"ballot": to_text(self._mix_layers[0].box)})

    def fill(self, board: Board) -> Content:
        """Its vote with a fresh share and seed."""
        return Content.fresh(board.head.terms, self._vote)

    def complain(self, board: Board) -> None:
        """Show all layers of the mix: what they hold is still sealed, and nothing of this attempt is opened."""
        self.post(board, COMPLAINT, {"keys": [layer.key.hex() for layer in self._mix_layers]})

    def protest(self, board: Board) -> None:
        """If it is its ballot that was drawn and not opened: show, without its name, the first layer opened wrongly.

        The innermost layer shows the vote: it is shown by a voter who `insists`, and otherwise nothing is.
        """
        seen = board.seen
        if not seen.opened or seen.opened[0] != self._ballot or seen.refused is None:
            return
        for number, layer in enumerate(self._open_layers[1:]):
            if number == seen.refused or seen.opened[number + 1] != layer.box:
                self._show(board, number)
                return
        if self.insists:
            self._show(board, len(self._open_layers) - 1)

    def _show(self, board: Board, number: int) -> None:
        body = {"layer": number, "key": self._open_layers[number].key.hex()}
        board.post(Entry("", PROTEST, body, b""))


class Mixer(Party):
    """Peels a layer of all ballots, and later one of the drawn ballot."""

    def __init__(self, name: str) -> None:
        from nacl.public import PrivateKey

        super().__init__(name)
        self._mix: PrivateKey = PrivateKey.generate()
        self._open: PrivateKey = PrivateKey.generate()

    @property
    def keys(self) -> Keys:
        mix, open_ = bytes(self._mix.public_key), bytes(self._open.public_key)
        return Keys(bytes(self._signing.verify_key), mix, open_)

    def act(self, board: Board, kind: str) -> None:
        duties = {"mix": self.mix, "peel": self.peel, "opening": self.open}
        if kind in duties:
            duties[kind](board)
        else:
            super().act(board, kind)

    def number(self, board: Board) -> int:
        return list(board.head.mixers).index(self.name)

    def mix(self, board: Board) -> None:
        """Peel, leave out what is malformed or a copy, and post in the order of bytes, which says nothing of whose."""
        terms, number = board.head.terms, self.number(board)
        length = mixed_length(terms, terms.mixers - 1 - number)
        # two ballots with one commitment are one ballot; before the last mixer a ballot has no part that can be told
        front = KEY if number == terms.mixers - 1 else length
        kept: dict[bytes, bytes] = {}
        rejected: list[int] = []
        for place, sealed in enumerate(board.seen.before(number)):
            ballot = unseal(sealed, self._mix)
            if ballot is None or len(ballot) != length or ballot[:front] in kept:
                rejected.append(place)
            else:
                kept[ballot[:front]] = ballot
        self.pass_on(board, sorted(kept.values()), rejected)

    def pass_on(self, board: Board, ballots: Sequence[bytes], rejected: Sequence[int]) -> None:
        self.post(board, "mix", {"ballots": [to_text(b) for b in ballots], "rejected": list(rejected)})

    def peel(self, board: Board) -> None:
        """The drawn ballot, one layer less; or that it does not open."""
        found = unseal(board.seen.sealed(self.number(board)), self._open)
        self.post(board, "peel", {"refused": True} if found is None else {"ballot": to_text(found)})

    def open(self, board: Board) -> None:
        """The drawn entry of the drawn ballot and nothing else of it; or that it is malformed."""
        seen, terms = board.seen, board.head.terms
        content = Content.from_bytes(terms, unseal(seen.sealed(self.number(board)), self._open))
        if content is None or seen.entry is None or content.root(terms) != seen.opened[0][:KEY]:
            self.post(board, "opening", {"refused": True})
        else:
            self.post(board, "opening", {"opening": content.opening(terms, seen.entry).to_json()})


# --- the draw -------------------------------------------------------------------------------------


VoterType = Callable[[str, int], Voter]
MixerType = Callable[[str], Mixer]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The winner (None: the draw is void), the last transcript, what it shows, and transcripts of void attempts."""

    winner: str | None
    transcript: Body
    report: Report
    void: tuple[Body, ...] = ()


def joint_draw(
    terms: Terms,
    ballots: Sequence[str],
    *,
    attempts: int = 1,
    plan: str | None = None,
    voters: Mapping[str, VoterType] | None = None,
    mixers: Mapping[str, MixerType] | None = None,
) -> Outcome:
    """The winner of a joint draw, from the first choices of all voters ("voter 1", "voter 2", ... in that order).

    Args: attempts, how often to draw: after a void draw everything is made anew without the parties that the
        transcript convicts (each attempt more allows whoever aborts one more look); plan, the
        digest to state in the transcript; voters, mixers, who play by rules of their own, by name (simulations).
    Raises: UsageError PS0850, PS0851; DataError PS0853.
    """
    need_pynacl()
    votes = _votes(terms, ballots)
    people: dict[str, int] = {f"voter {i}": vote for i, vote in enumerate(votes, 1)}
    helpers = [f"mixer {i}" for i in range(1, terms.mixers + 1)]
    void: list[Body] = []
    while True:
        players = [(voters or {}).get(name, Voter)(name, vote) for name, vote in people.items()]
        outcome = _attempt(terms, players, [(mixers or {}).get(name, Mixer)(name) for name in helpers], plan)
        out = set(outcome.report.named)
        people_left = {name: vote for name, vote in people.items() if name not in out}
        helpers_left = [name for name in helpers if name not in out]
        gone = len(people) - len(people_left), len(helpers) - len(helpers_left)
        last = len(void) + 1 >= attempts or len(people_left) < 2 or len(helpers_left) < 2 or gone == (0, 0)
        if outcome.winner is not None or last:
            return Outcome(outcome.winner, outcome.transcript, outcome.report, tuple(void))
        terms, people, helpers = terms.without(*gone), people_left, helpers_left
        void.append(outcome.transcript)


def _attempt(terms: Terms, voters: Sequence[Voter], mixers: Sequence[Mixer], plan: str | None) -> Outcome:
    head = Head(
        nonce().hex(),
        plan,
        terms,
        {voter.name: voter.keys for voter in voters},
        {mixer.name: mixer.keys for mixer in mixers},
    )
    board = Board(head)
    parties: dict[str, Party] = {party.name: party for party in (*voters, *mixers)}
    due = None
    while board.seen.due and board.seen.due != due:
        kind, names = due = board.seen.due
        for name in names:
            # once something is wrong honest parties stop: nothing more is opened
            if board.seen.stage == kind:
                parties[name].act(board, kind)
    for voter in voters:
        voter.protest(board)
    report = board.seen.report()
    return Outcome(report.winner, board.to_json(), report)


def _votes(terms: Terms, ballots: Sequence[str]) -> list[int]:
    if len(ballots) != terms.voters:
        message = f"a joint draw of {terms.voters} voters needs as many ballots, not {len(ballots)}"
        raise DataError.of("PS0853", message)
    numbers = {name: i for i, name in enumerate(terms.alternatives)}
    for place, ballot in enumerate(ballots, 1):
        if ballot not in numbers:
            message = f"ballot {place} is none of the alternatives"
            raise DataError.of("PS0853", message, help=f"one of {', '.join(terms.alternatives)}")
    return [numbers[ballot] for ballot in ballots]


# --- plans ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class JointMechanism(Mechanism):
    """The plan's own mechanism, except that the winner comes from a joint draw."""

    whole: VotingMechanism
    terms: Terms
    digest: str
    transcript: Path

    @classmethod
    def of(cls, mechanism: Mechanism, digest: str, transcript: Path, *, private: bool) -> Self:
        """Args: digest, of the plan; transcript, the file to write; private, whether the run is no simulation.

        Raises: UsageError PS0850, PS0851; PS0852 if the plan is not one of dummy votes and a public number of voters.
        """
        if not isinstance(mechanism, VotingMechanism):
            refuse_joint_draw("its mechanism draws no winner")
        if mechanism.lottery.rule is not DUMMY_VOTES or not isinstance(mechanism.points, FirstChoice):
            refuse_joint_draw("its winner is not drawn in proportion to first choices")
        if mechanism.voters is None:
            refuse_joint_draw("its number of voters is secret, and a transcript shows it")
        if not private:
            raise UsageError.of("PS0851", "a joint draw takes its numbers from the operating system: no seed")
        need_pynacl()
        return cls(
            mechanism,
            Terms(tuple(str(winner) for winner in mechanism.winners), mechanism.voters, mechanism.lottery.number),
            digest,
            transcript,
        )

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.whole.outputs

    def read(self, data: Mapping[str, Any], circumstances: RunContext) -> Secret:
        """The first choices of all voters, in an order that says nothing of the file's.

        Raises: as `VotingMechanism.read`; UsageError PS0713 if the transcript cannot be written.
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
