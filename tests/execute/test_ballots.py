"""Ballots: files, objects in memory, PrefLib's formats, the rules every ballot is read by, and the command line."""

from __future__ import annotations

import contextlib
import gzip
import json
from collections import Counter
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from privspec.cli import run_command_line
from privspec.core.diagnostics import DataError, PrivspecError
from privspec.core.spans import Source
from privspec.execute.ballots import Form, read_ballots
from privspec.execute.keeper import DataOwnerReport
from privspec.execute.sources import TextFiles
from privspec.families.tables.execution import CENTRAL_RULE
from privspec.model.build import load_model
from privspec.model.domains import PartialRankingOf, RankingOf
from privspec.model.voting import Borda, FirstChoice, scores
from tests.execute.begun import execute_plan

from .tables import make_table_plan
from .voting import ABC

DATA = Path("/work/shared/data")
FIRST = Form("vote", "voter", ABC)
RANKING = Form("vote", "voter", ABC, 3, 3)
PARTIAL = Form("vote", "voter", ABC, 1, 3)
TWO = Form("vote", "voter", ABC, 1, 2)


def held(form: Form, source: Any, **more: Any) -> dict[tuple[Any, ...], int]:
    found: Counter[tuple[Any, ...]] = Counter()
    for ballot, count in read_ballots(form, source, **more).each():
        found[ballot] += count
    return dict(found)


def code_of(form: Form, source: Any, **more: Any) -> str:
    with pytest.raises(DataError) as caught:
        read_ballots(form, source, **more)
    (diagnostic,) = caught.value.diagnostics
    return f"{diagnostic.code}: {diagnostic.message}"


def none_of(form: Form, ballot: Any) -> bool:
    """Whether a ballot is none: it counts as the first of all, or is left out, and the keeper is told."""
    keeper = DataOwnerReport()
    counts = held(form, ["north", ballot] if form.least == 1 else ["north south", ballot], keeper=keeper)
    rest = held(replace(form, drops=True), ["north", ballot] if form.least == 1 else ["north south", ballot])
    fit = keeper.fit(form.name)
    return sum(counts.values()) == 2 and sum(rest.values()) == 1 and fit.misfits == 1 and fit.rows == 2


# --- where they stand -----------------------------------------------------------------------------

CHOICES = ["north", "west", "north", "south"]
COUNTED = {("north",): 2, ("west",): 1, ("south",): 1}


def written(folder: Path, suffix: str, table: dict[str, list[Any]]) -> Path:
    path, frame = folder / f"votes{suffix}", pl.DataFrame(table)
    match suffix:
        case ".csv":
            frame.write_csv(path)
        case ".tsv":
            frame.write_csv(path, separator="\t")
        case ".csv.gz":
            path.write_bytes(gzip.compress(frame.write_csv().encode()))
        case ".parquet":
            frame.write_parquet(path)
        case ".json":
            path.write_text(json.dumps(table))
    return path


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".tsv", ".parquet", ".json"])
@pytest.mark.parametrize("title", ["choice", "ranking", "vote"])
def test_first_choices_in_files(tmp_path: Path, suffix: str, title: str) -> None:
    assert held(FIRST, written(tmp_path, suffix, {title: CHOICES})) == COUNTED
    counted = {title: ["north", "west", "south", "west"], "count": [2, 1, 1, 0]}
    assert held(FIRST, written(tmp_path, suffix, counted)) == COUNTED
    voters = {"voter": ["ann", "bob", "cy", "di"], title: CHOICES}
    assert held(FIRST, written(tmp_path, suffix, voters)) == COUNTED
    assert held(FIRST, written(tmp_path, suffix, voters), only="bob") == {("west",): 1}


@pytest.mark.parametrize(
    "source",
    [
        CHOICES,
        tuple(CHOICES),
        np.array(CHOICES),
        np.array(CHOICES, dtype=object),
        np.array([1, 3, 1, 2]),
        [1, 3, 1, 2],
        pl.Series("vote", CHOICES),
        pl.DataFrame({"choice": CHOICES}),
        pl.DataFrame({"choice": CHOICES}).lazy(),
        pl.DataFrame({"choice": CHOICES}).to_arrow(),
        {"choice": CHOICES},
        {"vote": CHOICES},
        {"choice": ["north", "south", "west"], "count": [2.0, 1, 1]},
        [{"choice": "north"}, {"vote": "north"}, {"choice": "west", "ranking": "south"}, {"ranking": "south"}],
        [["north", "west"], ["west"], "north south", ("south",)],
        {"ranking": [["north", "west"], ["west"], ["north"], ["south"]]},
    ],
)
def test_first_choices_in_memory(source: Any) -> None:
    assert held(FIRST, source) == COUNTED


ORDERS = [("west", "north", "south"), ("north", "south", "west"), ("west", "north", "south")]
RANKED = {ORDERS[0]: 2, ORDERS[1]: 1}
PLACES = [[3, 1, 2], [1, 2, 3], [3, 1, 2]]


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".tsv", ".parquet", ".json"])
def test_rankings_in_files(tmp_path: Path, suffix: str) -> None:
    texts = [" ".join(order) for order in ORDERS]
    assert held(RANKING, written(tmp_path, suffix, {"ranking": texts})) == RANKED
    assert held(RANKING, written(tmp_path, suffix, {"vote": texts, "count": [1, 1, 1]})) == RANKED
    assert held(PARTIAL, written(tmp_path, suffix, {"ranking": texts})) == RANKED
    # a vote for one alternative counts the first place
    assert held(FIRST, written(tmp_path, suffix, {"ranking": texts})) == {("west",): 2, ("north",): 1}


@pytest.mark.parametrize(
    "source",
    [ORDERS, np.array(PLACES), np.array(ORDERS), PLACES, {"ranking": ORDERS}, pl.DataFrame({"ranking": PLACES})],
)
def test_rankings_in_memory(source: Any) -> None:
    assert held(RANKING, source) == RANKED


def test_an_array_in_a_file(tmp_path: Path) -> None:
    np.save(tmp_path / "votes.npy", np.array(PLACES))
    assert held(RANKING, tmp_path / "votes.npy") == RANKED


def test_no_ballots_at_all(tmp_path: Path) -> None:
    for source in ([], {"choice": []}, written(tmp_path, ".csv", {"choice": []})):
        assert read_ballots(FIRST, source).number == 0
        assert held(RANKING, source) == {}


def test_columns_are_found_by_name_only(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("north\nsouth\n")
    assert code_of(FIRST, path).startswith("PS0804")
    assert "north" not in code_of(FIRST, path)
    path.write_text("voter,count\n1,2\n")
    assert code_of(FIRST, path).startswith("PS0804")
    assert code_of(FIRST, tmp_path / "none.csv").startswith("PS0802")
    assert code_of(FIRST, 7).startswith("PS0803")
    (tmp_path / "votes.json").write_text("{")
    assert code_of(FIRST, tmp_path / "votes.json").startswith("PS0803")


# --- alternatives ---------------------------------------------------------------------------------


def test_words_may_be_written_as_numbers() -> None:
    assert held(PARTIAL, ["2 3", "south west", "2", "3.0 1"]) == {
        ("south", "west"): 2,
        ("south",): 1,
        ("west", "north"): 1,
    }
    assert none_of(PARTIAL, "4")
    assert none_of(PARTIAL, "0")


def test_alternatives_that_are_numbers_are_themselves() -> None:
    from fractions import Fraction

    tens = tuple(Fraction(x) for x in (10, 20, "1/2"))
    form = Form("vote", None, tens)
    assert held(form, [10, 20.0, "0.5", "1/2"]) == {(tens[0],): 1, (tens[1],): 1, (tens[2],): 2}
    # the first alternative is 10, not 1; numbers do not move to the nearest alternative
    for other in (1, 11, "nan", "inf", "", "1/0", "1e999999999", "9" * 5000, "²"):
        keeper = DataOwnerReport()
        assert held(form, [other], keeper=keeper) == {(tens[0],): 1}
        assert keeper.fit("vote").misfits == 1


def test_names_of_several_words() -> None:
    names = ("red oak", "oak", "silver  lime")
    first, ranking = Form("vote", None, names), Form("vote", None, names, 3, 3)
    table = {"choice": ["red oak", " red  oak ", "oak", "red", "silver lime", "3"]}
    assert held(replace(first, drops=True), table) == {("red oak",): 2, ("oak",): 1, ("silver  lime",): 2}
    assert held(ranking, ["oak red oak silver lime", "red oak oak"]) == {
        ("oak", "red oak", "silver  lime"): 1,
        ("red oak", "oak", "silver  lime"): 1,
    }


# --- the rules ------------------------------------------------------------------------------------


def test_spaces_do_not_matter() -> None:
    assert held(RANKING, [" west  north\tsouth ", "west north south"]) == {ORDERS[0]: 2}
    assert held(FIRST, ["  west", "west "]) == {("west",): 2}


def test_ballots_count_as_far_as_their_first_tie() -> None:
    assert held(PARTIAL, ["west {north south}", "west{north} south"]) == {("west",): 2}
    assert held(FIRST, ["west {north south}"]) == {("west",): 1}
    # two places are as good as three
    assert held(RANKING, ["west north {south}"]) == {ORDERS[0]: 1}
    for form in (FIRST, PARTIAL, RANKING):
        assert none_of(form, "{west north} south")


def test_the_last_place_of_a_ranking_is_known() -> None:
    assert held(RANKING, ["west north", "west north south"]) == {ORDERS[0]: 2}
    assert none_of(RANKING, "west")


def test_places_beyond_the_declared_ones_do_not_count() -> None:
    assert held(TWO, ["west north south", "west north", "west"]) == {("west", "north"): 2, ("west",): 1}


WRONG = ["", "nord", "west west", "north nord", "north south west north", "2 2", "north,south", None]


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_no_ballot_counts_as_the_first_of_all(wrong: str | None) -> None:
    assert none_of(PARTIAL, wrong)
    assert held(PARTIAL, {"ranking": ["west", "north", wrong], "count": [5, 0, 1]}) == {("west",): 5, ("north",): 1}
    assert held(RANKING, ["west north south", wrong]) == {ORDERS[0]: 1, ABC: 1}


@pytest.mark.parametrize("wrong", WRONG)
def test_where_the_number_is_secret_it_is_left_out(wrong: str | None) -> None:
    form = Form("vote", "voter", ABC, 1, 3, drops=True)
    assert held(form, ["west", wrong, "north"]) == {("west",): 1, ("north",): 1}
    assert code_of(form, ["west", wrong, "north"], strict=True).startswith("PS0809: row 2 of vote")
    keeper = DataOwnerReport()
    assert held(form, [wrong, wrong], keeper=keeper) == {}
    assert "no row is a ranking of 1 to 3 alternatives" in keeper.brief()[-1]
    assert held(form, {"choice": [wrong], "count": [0]}) == {}


def test_first_choices_look_at_the_first_place_only() -> None:
    assert held(FIRST, ["west nord", "west west"]) == {("west",): 2}
    for wrong in ("", "nord", None, "{west}"):
        assert none_of(FIRST, wrong)


def test_strict_refuses_what_a_rule_would_change() -> None:
    fine = ["west north south", "north west south"]
    assert sum(held(RANKING, fine, strict=True).values()) == 2
    assert held(FIRST, fine, strict=True) == {("west",): 1, ("north",): 1}
    for form, changed in ((RANKING, "west north"), (PARTIAL, "west {north}"), (TWO, fine[0]), (FIRST, "west {north}")):
        first = "west north" if form is TWO else fine[0]
        assert code_of(form, [first, changed], strict=True).startswith("PS0809: row 2")


def test_rules_say_what_happened() -> None:
    assert "of a ranking the first place counts" in FIRST.rules(strict=False)[0]
    assert FIRST.rules(strict=False)[0].endswith("one that is not one of the alternatives counts as north")
    assert "left out" in Form("vote", "voter", ABC, drops=True).rules(strict=False)[0]
    assert "first 2 places" in TWO.rules(strict=False)[0]
    assert "a single alternative has it last" in RANKING.rules(strict=False)[0]
    assert "strict" in RANKING.rules(strict=True)[0]


@pytest.mark.parametrize("count", [-1, 0.5, "many", None, float("inf"), 2.0**54])
def test_counts_are_whole_numbers(tmp_path: Path, count: Any) -> None:
    keeper = DataOwnerReport()
    assert held(FIRST, {"choice": ["north", "west"], "count": [1, count]}, keeper=keeper) == {("north",): 1}
    assert keeper.brief() == ["vote: 1 of 2 counts are no whole numbers from 0, and count as 0"]
    path = tmp_path / "votes.csv"
    path.write_text(f"choice,count\nnorth, 3\nwest,{'' if count is None else count}\n")
    assert held(FIRST, path) == {("north",): 3}


def test_nobody_has_two_ballots() -> None:
    table = {"voter": [1, 2, 1, None], "choice": ["north", "west", "south", "west"]}
    keeper = DataOwnerReport()
    assert held(FIRST, table, keeper=keeper) == {("north",): 1, ("west",): 1}
    assert keeper.brief() == ["vote: 1 of 3 rows are further ballots of a voter, and are left out"]
    assert held(FIRST, {"voter": [1, 2, None], "choice": ["north", "west", "west"]}) == {("north",): 1, ("west",): 1}
    assert held(FIRST, {"voter": [1, 2], "choice": ["north"] * 2, "count": [1, 2]}) == {("north",): 2}
    assert held(FIRST, {"voter": [1, 2], "choice": ["north"] * 2, "count": [1, 0]}) == {("north",): 1}


@pytest.mark.parametrize(
    ("odd", "counted"),
    [
        ({"choice": "west", "count": 1}, 1),
        ({"choice": "west", "count": 1_000}, 1),
        ({"choice": "west", "voter": "me"}, 1),
        ({"choice": "west", "voter": None}, 0),
        ({"vote": "west"}, 1),
        ({"ranking": "west north"}, 1),
        ({"who": "west"}, 0),
        ("west", 1),
        (["west", "north"], 1),
        (None, 0),
        (7, 0),
        ({}, 0),
    ],
)
def test_no_object_decides_how_the_others_are_read(tmp_path: Path, odd: Any, counted: int) -> None:
    """Names are looked up object by object, and none of them stands for several ballots."""
    form, path = replace(FIRST, drops=True), tmp_path / "votes.json"
    expected = {("north",): 2_999} | ({("west",): 1} if counted else {})
    for place in (0, 1_500, 2_999):
        items: list[Any] = [{"choice": "north"}] * 2_999
        items.insert(place, odd)
        for held_under in (items, {"vote": items}):
            path.write_text(json.dumps(held_under))
            assert held(form, path) == expected
            assert held(form, held_under) == expected


def test_objects_may_say_whose_they_are() -> None:
    items = [{"voter": "7", "choice": "north"}, {"voter": 7.0, "choice": "west"}, {"choice": "west"}, "south"]
    keeper = DataOwnerReport()
    assert held(FIRST, items, keeper=keeper) == {("north",): 1, ("west",): 1, ("south",): 1}
    assert held(FIRST, items, only="7") == {("north",): 1}
    assert held(FIRST, [{"choice": "west", "count": 3}], keeper=keeper) == {("west",): 1}
    assert "1 of 1 objects say a count, and each stands for one ballot" in keeper.brief()[-1]


def test_a_first_line_that_is_data_decides_nothing(tmp_path: Path) -> None:
    """Without a header a file has the one column of ballots, whatever its first line holds."""
    path = tmp_path / "votes.csv"
    for first in ("north", "north,5", "north,south,5"):
        path.write_text(f"{first}\n" + "west\n" * 9)
        keeper = DataOwnerReport()
        assert held(FIRST, path, texts=TextFiles(header=False, told=keeper.remark)) == {("north",): 1, ("west",): 9}
        assert (len(keeper.brief()) == 1) == (first != "north")


ballots = st.lists(st.lists(st.sampled_from(ABC), min_size=1, max_size=4), max_size=8)


@given(ballots, st.sampled_from([FIRST, RANKING, PARTIAL, TWO]))
def test_against_the_definition(votes: list[list[str]], form: Form) -> None:
    expected: Counter[tuple[str, ...]] = Counter()
    for vote in votes:
        used = vote[: form.most] if form.most < 3 else vote
        if form is RANKING and len(used) == 2 and used[0] != used[1]:
            used = [*used, *(set(ABC) - set(used))]
        if len(set(used)) == len(used) >= form.least:
            expected[tuple(used)] += 1
    dropping = Form(form.name, form.party, form.alternatives, form.least, form.most, drops=True)
    assert held(dropping, votes) == dict(expected)


PIECES = [*ABC, *'1234 ,{}:#"|', "\n", "\r\n", "\t", "²", "\x00", "-1", "0.5", "1e400", "choice", "count", "ranking"]
HEADS = [
    "",
    "choice\n",
    "ranking,count\n",
    "voter,vote\n",
    "".join(f"# ALTERNATIVE NAME {i}: {i}\n" for i in (1, 2, 3)),
]
anything = st.tuples(st.sampled_from(HEADS), st.lists(st.sampled_from(PIECES), max_size=30).map("".join)).map("".join)


@given(anything, st.sampled_from([".csv", ".tsv", ".soi", ".json", ".parquet"]), st.sampled_from([FIRST, RANKING, TWO]))
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_file_is_read_or_refused(tmp_path: Path, text: str, suffix: str, form: Form) -> None:
    path = tmp_path / f"votes{suffix}"
    path.write_text(text)
    with contextlib.suppress(PrivspecError):
        assert read_ballots(form, path).number >= 0


def test_columns_of_odd_kinds() -> None:
    days = pl.Series([date(2026, 1, 1)])
    assert held(FIRST, {"choice": ["north"], "count": [{"a": 1}]}) == {}
    for table in ({"choice": days}, {"choice": ["north"], "count": days}, {"choice": ["north"], "voter": days}):
        assert code_of(FIRST, pl.DataFrame(table)).startswith("PS0803")
    assert none_of(FIRST, {"a": 1})


def test_forms_of_domains() -> None:
    text = """spec v
parameters:
  A = {north, south, west}
parties: voter in 1..2
variables:
  input a[voter] in A
  input b[voter] in ranking of A
  input c[voter] in partial_ranking(A, 2)
  input d[voter] in 1..3
  input e[voter] in [0, 1]
  input f[voter] in A^2
  output O
loss: E[ |O - mean(e[voter] for voter)|^2 ]
privacy: O is 1-DP wrt e, replacing one voter
"""
    blocks = {block.name: Form.of_block(block) for block in load_model(Source("v.priv", text)).blocks}
    known = {name: (form.least, form.most) for name, form in blocks.items() if form is not None}
    assert known == {"a": (1, 1), "b": (3, 3), "c": (1, 2), "d": (1, 1)}


# --- PrefLib --------------------------------------------------------------------------------------

NOW = """# FILE NAME: 00000-00000001.soi
# TITLE: An election
# DATA TYPE: soi
# NUMBER ALTERNATIVES: 3
# NUMBER VOTERS: 7
# NUMBER UNIQUE ORDERS: 3
# ALTERNATIVE NAME 1: {0}
# ALTERNATIVE NAME 2: {1}
# ALTERNATIVE NAME 3: {2}
4: 1,2,3
2: 3,1
1: 2,{{1,3}}
"""
BEFORE = """3
1,{0}
2,{1}
3,{2}
7,7,3
4,1,2,3
2,3,1
1,2,{{1,3}}
"""


@pytest.mark.parametrize("text", [NOW, BEFORE])
@pytest.mark.parametrize("suffix", [".soi", ".toi", ".soc", ".toc", ".soi.gz"])
def test_files_of_preflib(tmp_path: Path, text: str, suffix: str) -> None:
    path = tmp_path / f"election{suffix}"

    def write(*names: str) -> None:
        content = text.format(*names).encode()
        path.write_bytes(gzip.compress(content) if suffix.endswith(".gz") else content)

    write("Ann Smith", "Bob", "Cy")
    assert held(FIRST, path) == {("north",): 4, ("west",): 2, ("south",): 1}
    assert held(PARTIAL, path) == {ABC: 4, ("west", "north"): 2, ("south",): 1}
    assert held(RANKING, path) == {ABC: 5, ("west", "north", "south"): 2}
    assert code_of(PARTIAL, path, strict=True).startswith("PS0809: row 3")
    # names of the spec's are found wherever they stand
    write("West", "north", "SOUTH")
    assert held(FIRST, path) == {("west",): 4, ("south",): 2, ("north",): 1}
    write("West", "north", "Bob")
    assert code_of(FIRST, path).startswith("PS0818")


def test_names_with_spaces(tmp_path: Path) -> None:
    form = Form("vote", "voter", ("tuna_roll", "sea_eel"))
    (tmp_path / "sushi.soc").write_text("# ALTERNATIVE NAME 1: sea eel\n# ALTERNATIVE NAME 2: Tuna roll\n3: 1,2\n")
    assert held(form, tmp_path / "sushi.soc") == {("sea_eel",): 3}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense\n",
        "# TITLE: no names\n3: 1,2\n",
        "5\n1,a\n",
        "2\nx,y\n1,a\n1,1,1\n",
        "2\n1,a\n2,b\n1,1,1\n",
        "9" * 5000 + "\n1,a\n",
    ],
)
def test_what_is_no_file_of_preflib(tmp_path: Path, text: str) -> None:
    (tmp_path / "election.soi").write_text(text)
    assert code_of(FIRST, tmp_path / "election.soi").startswith("PS0818")


def test_numbers_that_a_file_does_not_name(tmp_path: Path) -> None:
    names = "# ALTERNATIVE NAME 1: a\n# ALTERNATIVE NAME 2: b\n# ALTERNATIVE NAME 4: c\n"
    (tmp_path / "election.soi").write_text(names + "1: 4\n1: 3\n")
    assert held(FIRST, tmp_path / "election.soi") == {("west",): 1, ("north",): 1}
    (tmp_path / "election.soi").write_text(names + "1: 4\nx: 1\n")
    assert held(FIRST, tmp_path / "election.soi") == {("west",): 1}


# --- real elections -------------------------------------------------------------------------------


def real(name: str) -> Path:
    path = DATA / name
    if not path.is_file():
        pytest.skip(f"{path} is not here")
    return path


def test_dublin_west() -> None:
    path = real("preflib_irish_dublin_west_2002.csv.gz")
    alternatives = tuple(f"candidate_{i}" for i in range(1, 10))
    found = read_ballots(Form("vote", "voter", alternatives, 1, 9), path)
    assert found.number == 29_988
    assert len(found.counts) == 10_230
    assert int(found.counts[(found.ranked >= 0).all(axis=1)].sum()) == 4810
    first = read_ballots(Form("vote", "voter", alternatives), path)
    for place in range(9):
        ours = int(first.counts[first.ranked[:, 0] == place].sum())
        assert ours == int(found.counts[found.ranked[:, 0] == place].sum()) > 0


def test_sushi() -> None:
    form = Form("vote", "voter", tuple("abcdefghij"), 10, 10)
    found = read_ballots(form, real("preflib_sushi_5000x10.csv.gz"), strict=True)
    assert found.number == 5000
    assert len(found.counts) == 4926


# --- tables of voters -----------------------------------------------------------------------------

DISTORTION = "total_variation(O, random_dictator(vote))"
TABLE = """spec few
parameters: A = {north, east}
parties: voter in 1..3
variables:
  input vote[voter] in DOMAIN
  output O in A
loss: worst[ mismatch(O, plurality(vote)) ]
privacy: O is 1-DP wrt vote, replacing one voter
"""


def table(kinds: int) -> dict[str, Any]:
    """One row for each way to split three voters; the first or last of them always has one winner."""
    from fractions import Fraction
    from itertools import combinations_with_replacement

    splits = list(combinations_with_replacement(range(kinds), 3))
    rows = [[str(chosen.count(i)) for i in range(kinds)] for chosen in splits]
    certain = [[Fraction(chosen == splits[-1]), Fraction(chosen != splits[-1])] for chosen in splits]
    return make_table_plan(
        certain, of=("vote",), releases=("O",), inputs=rows, outputs=["north", "east"], measure="epsilon-DP"
    )


@pytest.mark.parametrize(
    ("domain", "kinds", "ballot"),
    [
        ("A", 2, "east"),
        ("ranking of A", 2, "east north"),
        ("partial_ranking(A)", 4, "east north"),
        ("partial_ranking(A, 1)", 2, "east"),
    ],
)
def test_files_of_ballots_for_tables(tmp_path: Path, domain: str, kinds: int, ballot: str) -> None:
    model = load_model(Source("few.priv", TABLE.replace("DOMAIN", domain)))
    title = "choice" if domain == "A" else "ranking"
    counts = written(tmp_path, ".csv", {title: [ballot, "1 2"], "count": [3, 0]})
    preflib = tmp_path / "few.soc"
    preflib.write_text("# ALTERNATIVE NAME 1: north\n# ALTERNATIVE NAME 2: east\n3: 2,1\n")
    for source in (counts, preflib):
        found = execute_plan(table(kinds), {"vote": source}, model)
        assert found.outputs["O"].tolist() == "north"
        assert "first tie" in found.data_rules[0]
        assert CENTRAL_RULE not in found.data_rules
    others = written(tmp_path, ".csv", {title: [ballot, "1 2" if kinds == 4 else "1"], "count": [2, 1]})
    assert execute_plan(table(kinds), {"vote": others}, model).outputs["O"].tolist() == "east"
    for count in (2, 4):
        few = written(tmp_path, ".csv", {title: [ballot], "count": [count]})
        with pytest.raises(DataError, match="PS0811"):
            execute_plan(table(kinds), {"vote": few}, model)


def test_partial_rankings_of_different_lengths_in_a_table() -> None:
    model = load_model(Source("few.priv", TABLE.replace("DOMAIN", "partial_ranking(A)")))
    votes = pl.DataFrame({"ranking": ["east north", "north", "east"]})
    assert execute_plan(table(4), {"vote": votes}, model).outputs["O"] == "east"


def test_ballots_of_a_few_voters_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = TABLE.replace("DOMAIN", "partial_ranking(A)").replace("mismatch(O, plurality(vote))", DISTORTION)
    (tmp_path / "few.priv").write_text(text)
    assert run_command_line(["solve", str(tmp_path / "few.priv"), "--quiet"]) == 0
    (tmp_path / "few.toc").write_text("2\n1,North\n2,East\n3,3,2\n2,2,1\n1,1,{2}\n")
    (tmp_path / "tied.toc").write_text("2\n1,North\n2,East\n3,3,2\n2,2,1\n1,{1,2}\n")
    head = ["run", str(tmp_path / "few.plan.json"), "--seed", "1", "--input"]
    assert run_command_line([*head, f"vote={tmp_path / 'tied.toc'}"]) == 0
    assert "vote: 1 of 3 not one of the declared values; each counts as north" in capsys.readouterr().err
    assert run_command_line([*head, f"vote={tmp_path / 'few.toc'}"]) == 0
    assert json.loads(capsys.readouterr().out)["outputs"]["O"]["values"][0] in ("north", "east")


# --- points ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("domain", [RankingOf(ABC), PartialRankingOf(ABC, 3), PartialRankingOf(ABC, 2)])
@pytest.mark.parametrize("points", [FirstChoice(ABC), Borda(ABC)])
def test_points_are_those_of_the_model(domain: Any, points: Any) -> None:
    from privspec.families.voting.execution import total_points

    rng = np.random.default_rng(5)
    each = list(domain.elements())
    form = Form("vote", "voter", ABC, 3 if isinstance(domain, RankingOf) else 1, getattr(domain, "places", 3))
    for _ in range(20):
        chosen = [each[i] for i in rng.integers(0, len(each), rng.integers(0, 9))]
        assert total_points(points, read_ballots(form, chosen)) == scores(points, chosen)
