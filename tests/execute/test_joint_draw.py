"""A joint draw by parties who keep to the rules: its law, its transcript, and what may be known of it."""

from __future__ import annotations

import copy
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from scipy.stats import chisquare

from privspec.core.diagnostics import DataError, UsageError, VerificationError
from privspec.families.voting.joint_draw import terms as terms_module
from privspec.families.voting.joint_draw.parties import joint_draw
from privspec.families.voting.joint_draw.terms import (
    Content,
    Terms,
    coalition_ratio,
    seal,
    shown,
    unseal,
)
from privspec.families.voting.joint_draw.transcript import verify_transcript
from privspec.noise.samplers import SimulationRandomness

SMALL = Terms(("a", "b", "c"), 4, Fraction(1, 2))
VOTES = ["a", "b", "a", "c"]
KAPPAS = [Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(3), Fraction(5, 7)]


# --- the law --------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [1024, 4, 7])
@pytest.mark.parametrize("kappa", KAPPAS)
def test_all_positions_entries_and_shares_give_exactly_the_law(
    kappa: Fraction, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terms_module, "MOST_ENTRIES", most)
    for alternatives, votes in [("ab", [0, 0, 1]), ("abc", [2, 0, 2, 2]), ("ab", [1, 1])]:
        terms = Terms(tuple(alternatives), len(votes), kappa)
        expected = [
            (votes.count(a) + kappa) / (len(votes) + len(alternatives) * kappa) for a in range(len(alternatives))
        ]
        assert list(law_of_draw(terms, votes)) == list(terms.law(votes)) == expected


@pytest.mark.parametrize("most", [1024, 5])
def test_every_entry_alone_has_the_law_so_nobody_sets_it_by_the_joint_number(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terms_module, "MOST_ENTRIES", most)
    terms = Terms(("a", "b", "c"), 3, Fraction(3, 2))
    for vote, entry in product(range(3), range(terms.entries)):
        found = Counter(terms.winner(vote, share, entry) for share in range(terms.shares))
        law = {
            a: Fraction((terms.voters if a == vote else 0) + terms.dummies, terms.voters + 3 * terms.dummies)
            for a in range(3)
        }
        assert {a: Fraction(found[a], terms.shares) for a in range(3)} == law


@pytest.mark.parametrize("most", [1024, 8])
def test_a_voter_who_picks_its_share_gains_at_most_two_entries_of_its_table(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terms_module, "MOST_ENTRIES", most)
    terms = Terms(("a", "b", "c"), 3, Fraction(5, 4))
    law = {
        a: Fraction((terms.voters if a == 1 else 0) + terms.dummies, terms.voters + 3 * terms.dummies) for a in range(3)
    }
    for share in range(terms.shares):
        found = Counter(terms.table(1, share))
        gain = max(abs(Fraction(found[a], terms.entries) - law[a]) for a in range(3))
        assert gain == 0 if terms.entries == terms.coins else gain <= Fraction(2, terms.entries)


def test_one_uniform_number_is_enough() -> None:
    """Whatever the others' numbers are, the sum is uniform: they neither know it nor set it."""
    for others in product(range(SMALL.voters), repeat=2):
        assert sorted((sum(others) + mine) % SMALL.voters for mine in range(SMALL.voters)) == [0, 1, 2, 3]


def test_draws_of_the_arithmetic_part_follow_the_law() -> None:
    terms, votes, source = Terms(("a", "b", "c"), 60, Fraction(7, 3)), [0] * 40 + [1] * 20, SimulationRandomness(5)
    found = Counter(
        terms.winner(votes[source.below(60)], source.below(terms.shares), source.below(terms.entries))
        for _ in range(6000)
    )
    law = [float(p) * 6000 for p in terms.law(votes)]
    assert chisquare([found[a] for a in range(3)], law).pvalue > 1e-3


def test_joint_draws_follow_the_law() -> None:
    found = Counter(joint_draw(SMALL, VOTES).winner for _ in range(150))
    law = [float(p) * 150 for p in SMALL.law([0, 1, 0, 2])]
    assert chisquare([found[a] for a in "abc"], law).pvalue > 1e-5


def test_terms_of_odd_fractions() -> None:
    kappa = Fraction(2**60 + 1, 2**59 - 1)
    assert Terms(("a", "b"), 20, kappa).entries == 1024
    assert joint_draw(Terms(("a", "b"), 3, kappa), ["a", "b", "b"]).winner in ("a", "b")
    assert joint_draw(Terms(("a", "b"), 3, Fraction(0)), ["b", "b", "b"]).winner == "b"


# --- what voters know -----------------------------------------------------------------------------


def views(terms: Terms, votes: list[int], coalition: int) -> dict[tuple[Any, ...], Fraction]:
    """The exact law of what the first voters see: whose of their ballots was drawn, where, its share, the winner."""
    found: dict[tuple[Any, ...], Fraction] = {}
    weight = Fraction(1, terms.voters * terms.shares * terms.entries)
    for voter, share, entry in product(range(terms.voters), range(terms.shares), range(terms.entries)):
        winner = terms.winner(votes[voter], share, entry)
        view = (voter, share, entry, winner) if voter < coalition else (None, None, entry, winner)
        found[view] = found.get(view, Fraction(0)) + weight
    return found


@pytest.mark.parametrize("kappa", [Fraction(1, 2), Fraction(1), Fraction(2)])
@pytest.mark.parametrize(("voters", "coalition"), [(2, 0), (2, 1), (3, 0), (3, 1), (3, 2), (4, 2), (4, 3)])
def test_what_a_coalition_can_tell_is_exactly_the_ratio_of_the_note(
    kappa: Fraction, voters: int, coalition: int
) -> None:
    terms = Terms(("a", "b"), voters, kappa)
    worst = Fraction(0)
    for votes in product(range(2), repeat=voters):
        one = views(terms, list(votes), coalition)
        for who in range(coalition, voters):
            other = list(votes)
            other[who] = 1 - other[who]
            two = views(terms, other, coalition)
            worst = max(worst, *(one[view] / two[view] for view in one))
    assert worst == coalition_ratio(terms, coalition)


def test_more_dummies_hold_a_coalition_to_the_epsilon_asked_for() -> None:
    more = dummies_against(Fraction(3, 2), 100, 20)
    assert coalition_ratio(Terms(("a", "b"), 100, more), 20) == 1 + 1 / Fraction(3, 2)
    assert coalition_ratio(Terms(("a", "b"), 100, Fraction(0)), 1) is None
    with pytest.raises(ValueError, match="outside"):
        coalition_ratio(SMALL, 4)


@pytest.mark.parametrize("aborts", [0, 1, 2])
def test_an_abort_lets_its_party_pick_the_better_of_two_draws(aborts: int) -> None:
    """All sequences of positions of three voters: one that aborts as long as its own is not drawn and it may."""
    draws = list(product(range(3), repeat=aborts + 1))
    wins = sum(0 in draw for draw in draws)
    assert Fraction(wins, len(draws)) == abort_bound(Fraction(1, 3), aborts) <= (aborts + 1) * Fraction(1, 3)


def test_a_last_mixer_that_may_abort_once_picks_the_better_of_two_winners() -> None:
    law = SMALL.law([0, 1, 0, 2])
    best = sum(law[x] * law[y] for x, y in product(range(3), repeat=2) if 1 in (x, y))
    assert best == abort_bound(law[1], 1) <= 2 * law[1]


# --- transcripts ----------------------------------------------------------------------------------


def test_anybody_can_check_a_transcript() -> None:
    outcome = joint_draw(SMALL, VOTES, mixers=None, plan="0" * 64)
    read = verify_transcript(json.loads(json.dumps(outcome.transcript)))
    assert read == outcome.report and read.ok and read.winner == outcome.winner and not read.findings
    assert read.ballots == 4 and read.left_out == () and read.named == ()
    assert read.to_json()["winner"] == outcome.winner
    kinds = Counter(entry["kind"] for entry in outcome.transcript["entries"])
    assert kinds == {"ballot": 4, "mix": 2, "commit": 6, "reveal": 6, "peel": 1, "opening": 1}


def test_three_mixers() -> None:
    outcome = joint_draw(Terms(("a", "b"), 3, Fraction(1), mixers=3), ["a", "b", "b"])
    assert outcome.report.ok and verify_transcript(outcome.transcript).ok


def test_a_transcript_shows_no_vote_and_no_share() -> None:
    """Every ballot of a list has the length of all others, and only the winner stands in plain words."""
    outcome = joint_draw(SMALL, VOTES)
    for entry in outcome.transcript["entries"]:
        if entry["kind"] == "mix":
            assert len({len(ballot) for ballot in entry["body"]["ballots"]}) == 1
        text = json.dumps(entry["body"])
        assert "alternative" not in text or entry["kind"] == "opening"


def test_tampering_with_any_entry_is_seen() -> None:
    sound = joint_draw(SMALL, VOTES).transcript
    assert verify_transcript(sound).ok
    for place, entry in enumerate(sound["entries"]):
        for change in changes(entry):
            bad = copy.deepcopy(sound)
            bad["entries"][place] = change
            assert not accepted(bad), (place, change)
        without = copy.deepcopy(sound)
        del without["entries"][place]
        assert not accepted(without)
        twice = copy.deepcopy(sound)
        twice["entries"].insert(place, entry)
        assert not accepted(twice)
    for place in range(len(sound["entries"]) - 1):
        swapped = copy.deepcopy(sound)
        swapped["entries"][place : place + 2] = reversed(swapped["entries"][place : place + 2])
        assert not accepted(swapped)


def test_tampering_with_the_head_is_seen() -> None:
    sound = joint_draw(SMALL, VOTES, plan="0" * 64).transcript
    for key in sound["head"]:
        bad = copy.deepcopy(sound)
        bad["head"][key] = "1" * 64
        assert not accepted(bad), key
    for key, value in {"dummy_votes": "2", "alternatives": ["b", "a", "c"], "voters": 3, "mixers": 3}.items():
        bad = copy.deepcopy(sound)
        bad["head"]["terms"][key] = value
        assert not accepted(bad), key
    bad = copy.deepcopy(sound)
    bad["head"]["voters"]["voter 1"]["sign"] = bad["head"]["voters"]["voter 2"]["sign"]
    assert not accepted(bad)


@pytest.mark.parametrize("nonsense", [None, [], {}, {"head": {}, "entries": []}, {"head": 1, "entries": 2}, "text"])
def test_what_is_no_transcript_is_refused(nonsense: Any) -> None:
    with pytest.raises(VerificationError) as caught:
        verify_transcript(nonsense)
    assert caught.value.diagnostics[0].code == "PS0855"


JUNK: list[Any] = [
    None,
    True,
    -1,
    10**30,
    1.5,
    float("nan"),
    "",
    "\ud800",
    "zz",
    [],
    [[]],
    {},
    {"a": 1},
    [1, "x"],
    "1e999999999",
]


def test_nonsense_anywhere_is_refused_or_reported() -> None:
    """What stands at any place of a transcript replaced by junk: never another error, never a sound draw."""
    sound = joint_draw(Terms(("a", "b"), 2, Fraction(1, 2)), ["a", "b"], plan="0" * 64).transcript
    for path in places(sound):
        for junk in JUNK:
            bad = copy.deepcopy(sound)
            spot = bad
            for step in path[:-1]:
                spot = spot[step]
            if spot[path[-1]] != junk:
                spot[path[-1]] = junk
                assert not accepted(bad), (path, junk)


def places(body: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    steps = body.items() if isinstance(body, dict) else enumerate(body) if isinstance(body, list) else ()
    for step, value in steps:
        yield (*path, step)
        yield from places(value, (*path, step))


def changes(entry: dict[str, Any]) -> list[dict[str, Any]]:
    """The entry with one thing changed."""
    found = [
        {**entry, "sender": "voter 9"},
        {**entry, "kind": "mixed"},
        {**entry, "signature": flipped(entry["signature"])},
    ]
    found += [{**entry, "sender": "mixer 2" if entry["sender"] != "mixer 2" else "voter 2"}]
    for key, value in entry["body"].items():
        other: Any = {"changed": True}
        if isinstance(value, int):
            other = value + 1
        elif isinstance(value, str):
            other = flipped(value)
        elif isinstance(value, list):
            other = value[:-1] if value else [0]
        found.append({**entry, "body": {**entry["body"], key: other}})
    return found


def flipped(text: str) -> str:
    return text[:-8] + ("1" if text[-8] != "1" else "2") + text[-7:]


def accepted(transcript: dict[str, Any]) -> bool:
    try:
        return verify_transcript(transcript).ok
    except VerificationError:
        return False


# --- parts ----------------------------------------------------------------------------------------


def test_boxes_are_those_of_libsodium() -> None:
    from nacl.public import PrivateKey, SealedBox

    key = PrivateKey.generate()
    made = seal(b"secret", bytes(key.public_key))
    assert SealedBox(key).decrypt(made.box) == unseal(made.box, key) == b"secret"
    assert shown(made.box, made.key, bytes(key.public_key)) == b"secret"
    assert shown(made.box, os.urandom(32), bytes(key.public_key)) is None
    assert unseal(made.box[:-1] + b"\0", key) is None or made.box[-1] == 0
    assert seal(b"secret", bytes(key.public_key)).box != made.box


def law_of_draw(terms: Terms, votes: Sequence[int]) -> tuple[Fraction, ...]:
    """The law of the winner by enumeration of all positions, entries and shares."""
    counts = [0] * len(terms.alternatives)
    for vote, entry, share in product(votes, range(terms.entries), range(terms.shares)):
        counts[terms.winner(vote, share, entry)] += 1
    return tuple(Fraction(n, sum(counts)) for n in counts)


def dummies_against(dummies: Fraction, voters: int, coalition: int) -> Fraction:
    """The dummy votes that give the epsilon of `dummies` against a coalition of that many voters."""
    return dummies * Fraction(voters, voters - coalition)


def abort_bound(probability: Fraction, aborts: int) -> Fraction:
    """The most that a party can make of an event it wants, which it may see and void `aborts` times."""
    return 1 - (1 - probability) ** (aborts + 1)


@pytest.mark.parametrize("most", [1, 2, 5, 8])
def test_openings_fit_their_entry_only(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terms_module, "MOST_ENTRIES", most)
    content = Content.fresh(SMALL, 1)
    assert Content.from_bytes(SMALL, content.to_bytes()) == content
    root = content.root(SMALL)
    for entry, other in product(range(most), repeat=2):
        opening = content.opening(SMALL, entry)
        assert type(opening).from_json(opening.to_json()) == opening
        assert opening.alternative == SMALL.winner(1, content.share, entry)
        assert opening.fits(SMALL, root, other) is (entry == other)
        lie = type(opening)((opening.alternative + 1) % 3, opening.nonce, opening.path)
        assert not lie.fits(SMALL, root, entry)


def test_contents_that_are_no_ballots() -> None:
    for content in (None, b"", bytes(99), b"\xff" * 100, (3).to_bytes(4, "big") + bytes(96)):
        assert Content.from_bytes(SMALL, content) is None


# --- use ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        (("a", "b"), 1, Fraction(1)),
        (("a", "b"), 3001, Fraction(1)),
        (("a", "b"), 3, Fraction(1), 1),
        (("a", "a"), 3, Fraction(1)),
        ((), 3, Fraction(1)),
        (("a", "b"), 3, Fraction(-1)),
        (("a", "b"), 3, Fraction(1, 2**600)),
    ],
)
def test_terms_that_are_refused(arguments: Any) -> None:
    with pytest.raises(UsageError) as caught:
        Terms(*arguments)
    assert caught.value.diagnostics[0].code == "PS0851"


@pytest.mark.parametrize("ballots", [["a", "b"], ["a", "b", "a", "secret"]])
def test_ballots_that_are_refused_are_not_shown(ballots: list[str]) -> None:
    with pytest.raises(DataError) as caught:
        joint_draw(SMALL, ballots)
    assert caught.value.diagnostics[0].code == "PS0853" and "secret" not in str(caught.value)


def test_without_pynacl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nacl.public", None)
    with pytest.raises(UsageError) as caught:
        joint_draw(SMALL, VOTES)
    assert caught.value.diagnostics[0].code == "PS0850"
