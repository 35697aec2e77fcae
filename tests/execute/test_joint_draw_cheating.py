"""Parties that cheat in a joint draw: each is detected, and named where the transcript can tell."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from nacl.signing import SigningKey

from privspec.families.voting.joint_draw.parties import Board, Mixer, Outcome, Voter, joint_draw
from privspec.families.voting.joint_draw.terms import KEY, Content, Opening, Terms, mixed_length, nonce, seal, unseal
from privspec.families.voting.joint_draw.transcript import Body, Entry, signable, to_text, verify_transcript

TERMS = Terms(("a", "b", "c"), 4, Fraction(1, 2), mixers=3)
VOTES = ["a", "b", "a", "c"]


def draw(voter: type[Voter] | None = None, mixer: type[Mixer] | None = None, number: int = 2, **more: Any) -> Outcome:
    """One of the voters, or one of the mixers, cheats."""
    voters = {} if voter is None else {f"voter {number}": voter}
    mixers = {} if mixer is None else {f"mixer {number}": mixer}
    outcome = joint_draw(TERMS, VOTES, voters=more.pop("voters", voters), mixers=mixers, **more)
    assert verify_transcript(outcome.transcript) == outcome.report
    return outcome


def blamed(outcome: Outcome) -> list[str]:
    """Who is named, of a draw that is void."""
    assert outcome.winner is None and not outcome.report.ok
    return [finding.text() for finding in outcome.report.findings]


def everybody(cheater: type[Voter]) -> dict[str, type[Voter]]:
    return {f"voter {i}": cheater for i in range(1, 5)}


# --- aborts and equivocation ----------------------------------------------------------------------


class NoCast(Voter):
    def cast(self, board: Board) -> None:
        pass


class NoCommit(Voter):
    def commit(self, board: Board) -> None:
        pass


class NoReveal(Voter):
    def reveal(self, board: Board) -> None:
        pass


class SilentMixer(Mixer):
    def reveal(self, board: Board) -> None:
        pass


class OtherNumbers(Voter):
    def reveal(self, board: Board) -> None:
        self._numbers = ((self._numbers[0] + 1) % 4, self._numbers[1])
        super().reveal(board)


class OtherEntry(Voter):
    def reveal(self, board: Board) -> None:
        self._numbers = (self._numbers[0], (self._numbers[1] + 1) % board.head.terms.entries)
        super().reveal(board)


class OutOfRange(Voter):
    def commit(self, board: Board) -> None:
        self._numbers, self._nonce = (7, 0), nonce()
        self.post(board, "commit", self.promise(board))


class TwoCommitments(Voter):
    def commit(self, board: Board) -> None:
        super().commit(board)
        super().commit(board)


class TwoReveals(Voter):
    def reveal(self, board: Board) -> None:
        super().reveal(board)
        super().reveal(board)


class CopiedCommitment(Voter):
    def promise(self, board: Board) -> Body:
        return next(entry.body for entry in board.entries if entry.kind == "commit")


class CopiedReveal(Voter):
    """Commits to the same digest as another in its own name is caught at once; this one reveals another's numbers."""

    def reveal(self, board: Board) -> None:
        self.post(board, "reveal", next(entry.body for entry in board.entries if entry.kind == "reveal"))


class OtherList(Voter):
    def promise(self, board: Board) -> Body:
        return {**super().promise(board), "list": "00" * KEY}


class NonsenseCommitment(Voter):
    def promise(self, board: Board) -> Body:
        return {**super().promise(board), "commitment": "zz"}


class WrongSignature(Voter):
    def post(self, board: Board, kind: str, body: Body) -> None:
        message = signable(board.seen.state, self.name, kind, body)
        signature = self._signing if kind != "commit" else SigningKey.generate()
        board.post(Entry(self.name, kind, body, signature.sign(message).signature))


class OutOfTurn(Voter):
    def cast(self, board: Board) -> None:
        self.post(board, "reveal", {"position": 0, "entry": 0, "nonce": ""})


@pytest.mark.parametrize(
    ("cheater", "what"),
    [
        (NoCast, "did not post its entry of kind ballot"),
        (NoCommit, "did not post its entry of kind commit"),
        (NoReveal, "did not post its entry of kind reveal"),
        (OtherNumbers, "revealed other numbers than it had committed to"),
        (OtherEntry, "revealed other numbers than it had committed to"),
        (OutOfRange, "posted a malformed entry of kind reveal"),
        (TwoCommitments, "signed two entries of kind commit"),
        (TwoReveals, "signed two entries of kind reveal"),
        (CopiedCommitment, "copied another's commitment"),
        (CopiedReveal, "revealed other numbers than it had committed to"),
        (OtherList, "agreed to a list that is not the last mixer's"),
        (NonsenseCommitment, "posted a malformed entry of kind commit"),
        (WrongSignature, "did not sign the entry of kind commit that bears its name"),
    ],
)
def test_a_voter_that_aborts_or_equivocates_is_named(cheater: type[Voter], what: str) -> None:
    outcome = draw(cheater)
    assert blamed(outcome) == [f"voter 2 {what}"]
    assert outcome.report.named == ("voter 2",)


def test_a_mixer_that_does_not_reveal_is_named() -> None:
    assert blamed(draw(mixer=SilentMixer)) == ["mixer 2 did not post its entry of kind reveal"]


def test_an_entry_out_of_turn_voids_the_draw() -> None:
    assert "voter 2 posted an entry of kind reveal out of turn" in blamed(draw(OutOfTurn))


def test_somebody_who_is_no_party_cannot_take_part() -> None:
    class Brings(Voter):
        def cast(self, board: Board) -> None:
            super().cast(board)
            Voter("voter 9", 0).post(board, "ballot", {})

    assert blamed(draw(Brings)) == ["voter 9 is none of the parties"]


# --- ballots --------------------------------------------------------------------------------------


class ShortBallot(Voter):
    def cast(self, board: Board) -> None:
        self.post(board, "ballot", {"ballot": to_text(b"short")})


class CopiesBallot(Voter):
    def cast(self, board: Board) -> None:
        self.post(board, "ballot", next(entry.body for entry in board.entries if entry.kind == "ballot"))


class Garbage(Voter):
    """A ballot of the right length that does not open; says nothing more about it."""

    def cast(self, board: Board) -> None:
        self.post(board, "ballot", {"ballot": to_text(bytes(mixed_length(TERMS, 3)))})

    def complain(self, board: Board) -> None:
        self.commit(board)


class GarbageWithin(Garbage):
    """The first mixer's layer opens, the second's does not."""

    def cast(self, board: Board) -> None:
        keys = next(iter(board.head.mixers.values()))
        self.post(board, "ballot", {"ballot": to_text(seal(bytes(mixed_length(TERMS, 2)), keys.mix).box)})


def test_malformed_ballots_and_copies_are_named_at_once() -> None:
    assert blamed(draw(ShortBallot)) == ["voter 2 posted a malformed entry of kind ballot"]
    assert blamed(draw(CopiesBallot)) == ["voter 2 posted a copy of another's ballot"]


def test_a_ballot_that_does_not_open_is_left_out_by_name() -> None:
    outcome = draw(Garbage)
    assert outcome.winner is not None and outcome.report.ballots == 3 and outcome.report.left_out == ("voter 2",)


def test_a_ballot_that_does_not_open_for_a_later_mixer_is_left_out_without_a_name() -> None:
    outcome = draw(GarbageWithin)
    assert outcome.winner is not None and outcome.report.ballots == 3 and outcome.report.left_out == ()


def test_voters_who_complain_falsely_are_named() -> None:
    class OfGarbage(Garbage):
        def complain(self, board: Board) -> None:
            self.post(board, "complaint", {"keys": [bytes(KEY).hex()] * 3})

    class OfNothing(Voter):
        def commit(self, board: Board) -> None:
            self.complain(board)

    class WithoutKeys(Voter):
        def commit(self, board: Board) -> None:
            self.post(board, "complaint", {"keys": "none"})

    assert blamed(draw(OfGarbage)) == ["voter 2 complained of a ballot that is malformed"]
    assert blamed(draw(OfNothing)) == ["voter 2 complained of a ballot that stands in the list"]
    assert blamed(draw(WithoutKeys)) == ["voter 2 complained of a ballot and does not show it"]


def test_two_voters_with_one_table_count_once() -> None:
    """A second ballot with the same commitment is a copy, however it is sealed."""
    shared: list[Content] = []

    class Shares(Voter):
        def fill(self, board: Board) -> Content:
            shared.append(super().fill(board))
            return shared[0]

        def complain(self, board: Board) -> None:
            self.commit(board)

    outcome = draw(voters={"voter 1": Shares, "voter 2": Shares})
    assert outcome.winner is not None and outcome.report.ballots == 3


# --- mixers ---------------------------------------------------------------------------------------


def foreign(board: Board, layers: int) -> bytes:
    """A well-formed ballot of the mixer's own, with so many layers of the mix still on it."""
    terms, mixers = board.head.terms, list(board.head.mixers.values())
    content = Content.fresh(terms, 2)
    box = content.to_bytes()
    for keys in reversed(mixers):
        box = seal(box, keys.open).box
    box = content.root(terms) + box
    for keys in reversed(mixers[len(mixers) - layers :] if layers else []):
        box = seal(box, keys.mix).box
    return box


class Drops(Mixer):
    def pass_on(self, board: Board, ballots: Any, rejected: Any) -> None:
        super().pass_on(board, ballots[1:], rejected)


class Rejects(Mixer):
    """Says of a sound ballot that it is malformed."""

    def pass_on(self, board: Board, ballots: Any, rejected: Any) -> None:
        victim = unseal(board.seen.before(self.number(board))[1], self._mix)
        super().pass_on(board, [ballot for ballot in ballots if ballot != victim], [1])


class Replaces(Mixer):
    def pass_on(self, board: Board, ballots: Any, rejected: Any) -> None:
        new = foreign(board, board.head.terms.mixers - 1 - self.number(board))
        super().pass_on(board, sorted([*ballots[1:], new]), rejected)


class Duplicates(Mixer):
    def pass_on(self, board: Board, ballots: Any, rejected: Any) -> None:
        super().pass_on(board, [*ballots[:-1], ballots[0]], rejected)


class DuplicatesSorted(Mixer):
    def pass_on(self, board: Board, ballots: Any, rejected: Any) -> None:
        super().pass_on(board, sorted([*ballots[:-1], ballots[0]]), rejected)


class SealsAnew(Mixer):
    """A second ballot with the commitment of another."""

    def pass_on(self, board: Board, ballots: Any, rejected: Any) -> None:
        copy = ballots[0][:KEY] + bytes(len(ballots[0]) - KEY)
        super().pass_on(board, sorted([*ballots[:-1], copy]), rejected)


class KeepsOrder(Mixer):
    def pass_on(self, board: Board, ballots: Any, rejected: Any) -> None:
        super().pass_on(board, [ballots[1], ballots[0], *ballots[2:]], rejected)


class Nonsense(Mixer):
    def pass_on(self, board: Board, ballots: Any, rejected: Any) -> None:
        self.post(board, "mix", {"ballots": [1, 2, 3, 4], "rejected": []})


class NonsensePlaces(Mixer):
    def pass_on(self, board: Board, ballots: Any, rejected: Any) -> None:
        super().pass_on(board, ballots[:-1], [99])


class NoMix(Mixer):
    def mix(self, board: Board) -> None:
        pass


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("cheater", [Rejects, Replaces])
def test_a_mixer_that_leaves_out_or_replaces_a_ballot_is_named_by_its_voter(cheater: type[Mixer], number: int) -> None:
    (text,) = blamed(draw(mixer=cheater, number=number))
    assert text.startswith(f"mixer {number} left out or replaced the ballot of voter ")


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize(
    ("cheater", "what"),
    [
        (Drops, "posted 3 ballots and rejected 0 of 4"),
        (Duplicates, "posted a list that is not in order, or holds a ballot twice"),
        (DuplicatesSorted, "posted a list that is not in order, or holds a ballot twice"),
        (KeepsOrder, "posted a list that is not in order, or holds a ballot twice"),
        (Nonsense, "posted a malformed entry of kind mix"),
        (NonsensePlaces, "posted a malformed entry of kind mix"),
        (NoMix, "did not post its entry of kind mix"),
    ],
)
def test_a_mixer_whose_list_does_not_add_up_is_named(cheater: type[Mixer], what: str, number: int) -> None:
    assert blamed(draw(mixer=cheater, number=number)) == [f"mixer {number} {what}"]


def test_a_last_mixer_that_copies_a_ballot_is_named() -> None:
    assert blamed(draw(mixer=SealsAnew, number=3)) == ["mixer 3 posted a list that holds a ballot twice, sealed anew"]


# --- opening --------------------------------------------------------------------------------------


class Lies(Mixer):
    """Announces another winner, or another entry of the table."""

    change: Callable[[Content, Board], Opening]

    def open(self, board: Board) -> None:
        content = Content.from_bytes(board.head.terms, unseal(board.seen.sealed(self.number(board)), self._open))
        assert content is not None
        self.post(board, "opening", {"opening": type(self).change(content, board).to_json()})


class OtherWinner(Lies):
    @staticmethod
    def change(content: Content, board: Board) -> Opening:
        assert board.seen.entry is not None
        true = content.opening(board.head.terms, board.seen.entry)
        return Opening((true.alternative + 1) % 3, true.nonce, true.path)


class OtherPlace(Lies):
    @staticmethod
    def change(content: Content, board: Board) -> Opening:
        assert board.seen.entry is not None
        return content.opening(board.head.terms, (board.seen.entry + 1) % board.head.terms.entries)


class OtherBallot(Lies):
    @staticmethod
    def change(content: Content, board: Board) -> Opening:
        return Content.fresh(board.head.terms, 0).opening(board.head.terms, 0)


class Refuses(Mixer):
    def peel(self, board: Board) -> None:
        self.post(board, "peel", {"refused": True})

    def open(self, board: Board) -> None:
        self.post(board, "opening", {"refused": True})


class PeelsAnother(Mixer):
    def peel(self, board: Board) -> None:
        length = len(unseal(board.seen.sealed(self.number(board)), self._open) or b"")
        self.post(board, "peel", {"ballot": to_text(bytes(length))})


class NoPeel(Mixer):
    def peel(self, board: Board) -> None:
        pass


class NoOpening(Mixer):
    def open(self, board: Board) -> None:
        pass


@pytest.mark.parametrize("cheater", [OtherWinner, OtherPlace, OtherBallot])
def test_a_false_winner_is_seen_by_everybody(cheater: type[Mixer]) -> None:
    what = "announced a winner that is not in the drawn entry of the drawn ballot"
    assert blamed(draw(mixer=cheater, number=3)) == [f"mixer 3 {what}"]


@pytest.mark.parametrize("number", [1, 2])
def test_a_mixer_that_does_not_open_its_layer_is_convicted_by_the_drawn_voter(number: int) -> None:
    what = "refused to open a ballot that opens"
    assert blamed(draw(mixer=Refuses, number=number)) == [f"mixer {number} {what}"]
    what = "opened a ballot that was not drawn"
    assert blamed(draw(mixer=PeelsAnother, number=number)) == [f"mixer {number} {what}"]
    assert blamed(draw(mixer=NoPeel, number=number)) == [f"mixer {number} did not post its entry of kind peel"]


def test_the_last_mixer_is_convicted_by_a_voter_who_insists() -> None:
    class Insists(Voter):
        insists = True

    outcome = draw(mixer=Refuses, number=3, voters=everybody(Insists))
    assert blamed(outcome) == ["mixer 3 refused to open a ballot that opens"]
    assert outcome.transcript["entries"][-1]["sender"] == ""
    assert blamed(draw(mixer=NoOpening, number=3)) == ["mixer 3 did not post its entry of kind opening"]


def test_the_last_mixer_and_a_silent_voter_are_both_named() -> None:
    outcome = draw(mixer=Refuses, number=3, attempts=3)
    assert outcome.report.named == () and outcome.void == ()
    (text,) = blamed(outcome)
    assert text.startswith("mixer 1 or mixer 2 or mixer 3 or the voter of ballot ")


def test_a_table_that_leaves_out_the_dummies_is_not_opened() -> None:
    """All places of the table hold the voter's own vote: the commitment is not that of any share."""

    class NoDummies(Content):
        def root(self, terms: Terms) -> bytes:
            return Content(self.vote, 0, self.seed).root(Terms(terms.alternatives, terms.voters, Fraction(0), 2))

    class Biased(Voter):
        insists = True

        def fill(self, board: Board) -> Content:
            return NoDummies.fresh(board.head.terms, self._vote)

    (text,) = blamed(draw(voters=everybody(Biased)))
    assert "the voter of ballot" in text


def test_protests_that_show_nothing_convict_nobody() -> None:
    class Noisy(Voter):
        def protest(self, board: Board) -> None:
            for body in ({}, {"layer": 9, "key": ""}, {"layer": 0, "key": "00" * 32}, {"layer": True, "key": 1}):
                board.post(Entry("", "protest", body, b""))

        def cast(self, board: Board) -> None:
            super().cast(board)
            board.post(Entry("", "protest", {"layer": 0, "key": "00" * 32}, b""))

    assert draw(Noisy).winner is not None
    assert len(blamed(draw(Noisy, Refuses, 3, voters=everybody(Noisy)))) == 1


# --- after an abort -------------------------------------------------------------------------------


@pytest.mark.parametrize("cheater", [NoReveal, OtherNumbers])
def test_after_an_abort_all_is_made_anew_without_its_party(cheater: type[Voter]) -> None:
    outcome = draw(cheater, attempts=2)
    assert outcome.winner is not None and len(outcome.void) == 1
    before, now = outcome.void[0], outcome.transcript
    assert verify_transcript(before).named == ("voter 2",)
    assert list(now["head"]["voters"]) == ["voter 1", "voter 3", "voter 4"] and now["head"]["terms"]["voters"] == 3
    assert before["head"]["session"] != now["head"]["session"]
    keys = [{keys["sign"] for keys in head["head"]["voters"].values()} for head in (before, now)]
    assert not keys[0] & keys[1]


def test_a_mixer_that_cheats_is_replaced_by_nobody() -> None:
    outcome = draw(mixer=Replaces, number=1, attempts=2)
    assert outcome.winner is not None and list(outcome.transcript["head"]["mixers"]) == ["mixer 2", "mixer 3"]


def test_no_more_attempts_than_allowed_and_no_draw_with_a_single_mixer() -> None:
    assert draw(NoReveal).void == ()
    few = Terms(("a", "b"), 3, Fraction(1))
    outcome = joint_draw(few, ["a", "b", "b"], attempts=5, mixers={"mixer 1": NoMix})
    assert outcome.winner is None and outcome.void == ()


def test_an_aborting_voter_cannot_abort_twice() -> None:
    """It looks whether its ballot was drawn, and aborts if not: once, then it is out."""

    class Picky(Voter):
        def reveal(self, board: Board) -> None:
            position = (board.seen._sums[0] + self._numbers[0]) % len(board.seen.lists[-1])
            if board.seen.lists[-1][position] == self._ballot or self.name in list(board.head.voters)[:-1]:
                super().reveal(board)

    for _ in range(20):
        outcome = draw(Picky, number=4, attempts=4)
        assert len(outcome.void) <= 1 and outcome.winner is not None
