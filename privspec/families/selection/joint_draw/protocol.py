"""A joint draw from beginning to end: all parties in one process, each with its own keys and secrets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from privspec.core.diagnostics import DataError
from privspec.families.selection.joint_draw.parties import Board, Mixer, Party, Voter
from privspec.families.selection.joint_draw.primitives import need_pynacl, nonce
from privspec.families.selection.joint_draw.report import Report
from privspec.families.selection.joint_draw.terms import Terms
from privspec.families.selection.joint_draw.transcript import Body, Head

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
        transcript convicts (each attempt more allows whoever aborts one more look, `terms.abort_bound`); plan, the
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
