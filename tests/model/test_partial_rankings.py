"""Votes that name some of the alternatives, in specs."""

from math import comb

import pytest
from model_specs import errors, helps

from privspec.core.spans import Source
from privspec.language.formatter import format_source
from privspec.model.build import load_model
from privspec.model.domains import PartialRankingOf
from privspec.model.worlds import worlds

ELECTION = """spec election
parameters:
  A = {north, south, west}
  places = 2
parties:
  voter in 1..4
variables:
  input vote[voter] in partial_ranking(A, places)
  output O in A
loss:
  worst[ mismatch(O, plurality(vote)) ]
privacy:
  O is 1-DP wrt vote, replacing one voter
"""


def test_a_vote_is_a_ranking_of_some_alternatives():
    (block,) = load_model(Source("e.priv", ELECTION)).blocks
    assert block.domain == PartialRankingOf(("north", "south", "west"), 2)
    assert block.type.shape == (4,)
    assert block.index == "voter"


def test_votes_of_different_lengths_are_counted():
    found = worlds(load_model(Source("e.priv", ELECTION)))
    # 9 ballots, 4 voters in any order
    assert len(found.rows) == comb(9 + 3, 4)
    lengths = {tuple(sorted(len(vote) for vote in votes)) for (votes,) in found.rows}
    assert lengths == {(1,) * a + (2,) * (4 - a) for a in range(5)}
    assert found.labels[0] == ["4", *["0"] * 8]


def test_formatting_keeps_it():
    loose = ELECTION.replace("(A, places)", "( A,places )")
    assert format_source(Source("e.priv", loose)) == format_source(Source("e.priv", ELECTION))


@pytest.mark.parametrize("lottery", ["random_dictator(vote)", "borda_lottery(vote)", "plurality(vote)"])
def test_rules_of_voting_take_it(lottery):
    text = ELECTION.replace("mismatch(O, plurality(vote))", f"total_variation(O, {lottery})")
    assert errors(text) == {}


@pytest.mark.parametrize("name", ["kendall", "footrule", "hamming", "discrete"])
def test_named_distances_need_rankings_of_one_length(name):
    text = ELECTION.replace("1-DP wrt vote, replacing one voter", f"1-metric-DP wrt vote, distance {name}")
    assert "PS0309" in errors(text)
    assert helps(text)["PS0309"] == "give a matrix of distances"
