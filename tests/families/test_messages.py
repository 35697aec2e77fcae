"""Messages of single parties: noisy answers of their own, and masked parts of secure sums, added up to a release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privspec.api import Problem
from privspec.cli import run_command_line
from privspec.core.diagnostics import DataError, UsageError, VerificationError
from privspec.execute.ledger import create
from privspec.execute.ledger import verify as verify_ledger
from privspec.families.gaussian.masks import Pair, Roster, added, read_key, stream, write_key
from privspec.families.gaussian.runs import LinearMechanism, Parts
from privspec.noise.samplers import SimulationRandomness
from privspec.plan import Plan


def spec(trust: str, *, domain: str = "[0, 1]^2", people: int = 3, privacy: str = "40-GDP") -> str:
    return f"""parties: owner in 1..{people}
variables:
  input x[owner] in {domain}
  output O
loss: E[ ||O - sum(owner * x[owner] for owner)||^2 ]
privacy: O is {privacy} wrt x, replacing one owner
options: trust {trust}
"""


TABLES = """parties: clinic in 1..3
variables:
  input visits[clinic] in table(age in {young, old})
  intermediate counts
  output O
background: counts = histogram(visits)
loss: E[ ||O - counts||^2 ]
privacy: O is 40-GDP wrt visits, adding or removing one record
options: trust TRUST
"""


# --- masks ----------------------------------------------------------------------------------------


def test_the_vector_of_rfc_7748() -> None:
    """Section 5.2: a scalar times a point."""
    scalar = "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4"
    point = "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c"
    found = "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552"
    assert Pair.of(bytes.fromhex(scalar)).shared(bytes.fromhex(point)).hex() == found


def pairs(count: int) -> tuple[list[Pair], Roster]:
    found = [Pair.of(bytes([number + 1]) * 32) for number in range(count)]
    return found, Roster("plan", tuple(pair.public for pair in found))


def test_masks_cancel_in_the_sum_and_nowhere_else() -> None:
    own, roster = pairs(5)
    values = [[7 - 3 * i, -(2**90) * i, 2**100] for i in range(5)]
    sent = [roster.masked(pair, row, 128) for pair, row in zip(own, values, strict=True)]
    assert added(sent, 128) == [sum(column) for column in zip(*values, strict=True)]
    assert added(sent[:4], 128) != [sum(column) for column in zip(*values[:4], strict=True)]
    assert all(0 <= entry < 2**128 for row in sent for entry in row)


def test_vectors_of_masks() -> None:
    """Fixed once: what other programs have to make of the same keys."""
    assert stream(bytes(32), 2, 64) == VECTORS["stream"]
    own, roster = pairs(3)
    assert own[0].public.hex() == VECTORS["public"]
    assert own[0].shared(own[1].public) == own[1].shared(own[0].public)
    assert own[0].shared(own[1].public).hex() == VECTORS["shared"]
    assert [roster.masked(pair, [0], 64)[0] for pair in own] == VECTORS["masks"]
    assert sum(VECTORS["masks"]) % 2**64 == 0


VECTORS: dict[str, Any] = {
    "stream": [13552649822515328880, 13383531691911842886],
    "public": "a4e09292b651c278b9772c569f5fa9bb13d906b46ab68c9df9dc2b4409f8a209",
    "shared": "2ed76ab549b1e73c031eb49c9448f0798aea81b698279a0c3dc3e49fbfc4b953",
    "masks": [383056173306826816, 14748152355853795370, 3315535544548929430],
}


def test_masks_look_uniform() -> None:
    """Every bit of 4,000 words is set as often as not: false alarms below 1e-6 for all 64 together."""
    words = stream(b"k" * 32, 4000, 64)
    counts = [sum(word >> bit & 1 for word in words) for bit in range(64)]
    assert max(abs(count - 2000) for count in counts) < 6 * 4000**0.5 / 2
    assert stream(b"k" * 32, 3, 64) == words[:3]
    assert stream(b"l" * 32, 3, 64) != words[:3]


def test_another_plan_has_other_masks() -> None:
    own, roster = pairs(3)
    other = Roster("another plan", roster.keys)
    assert roster.digest != other.digest
    assert roster.masked(own[0], [0], 64) != other.masked(own[0], [0], 64)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ([{"1": "11" * 32}], "1 of 2 parties, those of 2 are missing"),
        ([{"1": "11" * 32, "2": "22" * 32, "3": "33" * 32}], "more than the 2"),
        ([{"1": "11" * 32, "2": "11" * 32}], "same key"),
        ([{"1": "11" * 32}, {"1": "22" * 32}], "two keys of party 1"),
        ([{"1": "11"}], "not of 32 bytes"),
        ([[]], "cannot be read|can be read"),
    ],
)
def test_rosters_that_are_none(files: list[Any], words: str, tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.json" for number in range(len(files))]
    for path, content in zip(paths, files, strict=True):
        path.write_text(json.dumps(content), "utf-8")
    with pytest.raises(UsageError, match=words) as caught:
        Roster.read("plan", ("1", "2"), paths)
    assert caught.value.diagnostics[0].code == "PS0857"


def test_a_key_of_small_order_is_refused() -> None:
    with pytest.raises(UsageError, match="no key of X25519"):
        Pair.generate().shared(bytes(32))


# --- messages -------------------------------------------------------------------------------------


def made(plan: Plan, data: list[Any], name: str, folder: Path, *, masked: bool) -> list[Path]:
    """Every party's message, from its own data, with its own ledger."""
    count = len(data)
    for number in range(1, count + 1) if masked else ():
        (folder / f"{number}.json").write_text(json.dumps(write_key(str(number), folder / f"{number}.key")), "utf-8")
    found = []
    for number, own in enumerate(data, 1):
        more: dict[str, Any] = {}
        if masked:
            more = {"key": folder / f"{number}.key", "roster": [folder / f"{i}.json" for i in range(1, count + 1)]}
        found.append(folder / f"m{number}.json")
        ledger = folder / f"{number}.db"
        plan.run({name: own}, ledger, found[-1], new_ledger=True, party=str(number), **more)
    return found


@pytest.mark.parametrize(
    ("trust", "privacy"),
    [("secure_sum", "40-GDP"), ("secure_sum(colluding = 1)", "200-DP"), ("nobody", "40-GDP"), ("nobody", "120-DP")],
)
def test_messages_add_up(trust: str, privacy: str, tmp_path: Path) -> None:
    plan = Problem(spec(trust, privacy=privacy)).solve()
    data = [np.array([[0.25, 0.5]]), np.array([[0.0, 1.0]]), np.array([[0.5, 0.5]])]
    sent = made(plan, data, "x", tmp_path, masked="secure" in trust)
    release = plan.combine(sent, tmp_path / "sum.csv")
    assert release.private
    loss = plan.document["loss"]["value"]
    assert (np.asarray(release.deviations["O"]) ** 2).sum() == pytest.approx(loss, rel=1e-3)
    # every row names what each party paid, and each finds its own entry in its ledger
    for number in range(1, 4):
        verify_ledger(tmp_path / f"{number}.db", [tmp_path / "sum.csv"])
    create(tmp_path / "other.db", ["mu=1"])
    with pytest.raises(VerificationError, match="PS1015"):
        verify_ledger(tmp_path / "other.db", [tmp_path / "sum.csv"])
    np.testing.assert_allclose(release.outputs["O"], [0.25 + 1.5, 0.5 + 2 + 1.5], atol=1.0)
    # what a single message says, apart from its masks, is its party's alone
    first = json.loads(sent[0].read_text("utf-8"))["outputs"]["message"]["values"]
    assert len(first) == 2
    if "secure" in trust:
        with pytest.raises(DataError, match="1 of 3 messages are missing: of owner 2") as caught:
            plan.combine([sent[0], sent[2]])
        assert caught.value.diagnostics[0].code == "PS0811"
    with pytest.raises(DataError, match="sent one already"):
        plan.combine([sent[0], *sent])


def test_tables_at_parties_make_messages(tmp_path: Path) -> None:
    for more, trust in enumerate(("secure_sum", "nobody")):
        folder = tmp_path / trust
        folder.mkdir()
        plan = Problem(TABLES.replace("TRUST", trust)).solve()
        data = [folder / f"{number}.csv" for number in range(3)]
        for number, path in enumerate(data):
            path.write_text("age\n" + "young\n" * number + "old\n" * (2 + more), "utf-8")
        release = plan.combine(made(plan, data, "visits", folder, masked=trust != "nobody"))
        np.testing.assert_allclose(release.outputs["O"], [3, 6 + 3 * more], atol=1)


def test_thousands_of_parties_have_room(tmp_path: Path) -> None:
    """Columns that are added up: each of 600 parties finds its own place; sums fit into their words."""
    plan = Problem(spec("secure_sum", people=600, domain="[0, 1]").replace("owner * x", "x")).solve()
    whole = LinearMechanism.of_plan(plan.document)
    parts = Parts(whole.executed, whole.trust)
    assert parts.parties == 600
    assert parts.coordinates(599).tolist() == [0]
    assert parts.bits in (64, 128)


def changed(path: Path, *keys: str, value: object) -> Path:
    document = json.loads(path.read_text("utf-8"))
    inner = document
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    other = path.with_suffix(".changed.json")
    other.write_text(json.dumps(document), "utf-8")
    return other


def test_messages_that_do_not_fit(tmp_path: Path) -> None:
    plan = Problem(spec("secure_sum")).solve()
    data = [np.array([[0.25, 0.5]])] * 3
    sent = made(plan, data, "x", tmp_path, masked=True)
    for keys, value, code in (
        (("plan_sha256",), "0" * 64, "PS0843"),
        (("outputs", "roster", "values"), ["0" * 64], "PS0843"),
        (("outputs", "message", "values"), ["1"], "PS0842"),
        (("outputs", "message", "values"), ["-1", "2"], "PS0842"),
        (("outputs", "owner", "values"), ["9"], "PS0842"),
    ):
        with pytest.raises(DataError) as caught:
            plan.combine([changed(sent[0], *keys, value=value), *sent[1:]])
        assert caught.value.diagnostics[0].code == code
    # a key masks one message
    with pytest.raises(UsageError, match="masked a message already"):
        read_key("1", tmp_path / "1.key")
    rosters = [tmp_path / f"{i}.json" for i in range(1, 4)]
    for party, key, words in (
        ("1", "1.key", "already"),
        ("2", "1.key", "no key of party 2"),
        ("9", "1.key", "no owner 9"),
    ):
        with pytest.raises(UsageError, match=words):
            plan.run(
                {"x": data[0]}, tmp_path / "n.db", party=party, key=tmp_path / key, roster=rosters, new_ledger=True
            )
    with pytest.raises(UsageError, match="--key FILE and --roster"):
        plan.run({"x": data[0]}, tmp_path / "n.db", party="1", new_ledger=True)
    with pytest.raises(UsageError, match="go together"):
        plan.run({"x": data[0]}, tmp_path / "n.db", party="1", key=tmp_path / "1.key", new_ledger=True)
    curator = Problem(spec("curator")).solve()
    with pytest.raises(UsageError, match="one keeper"):
        curator.run({"x": data[0]}, tmp_path / "n.db", party="1", new_ledger=True)


def test_a_message_is_of_one_party_alone() -> None:
    """Under one seed the message of a party does not change with what the others hold: it never reads it."""
    plan = Problem(spec("nobody")).solve()
    whole = LinearMechanism.of_plan(plan.document)
    own = whole.of_party("2")
    first, again = (own.read({"x": np.array([[0.5, 0.25]])}, _circumstances()) for _ in range(2))
    drawn = [secret.draw(SimulationRandomness(3)).outputs["message"].tolist() for secret in (first, again)]
    assert drawn[0] == drawn[1]
    parts = Parts(whole.executed, whole.trust)
    rows = [parts.rows(number).tolist() for number in range(3)]
    assert sorted(row for own in rows for row in own) == list(range(whole.executed.strategy.shape[0]))


def _circumstances() -> Any:
    from privspec.execute.family import RunContext

    return RunContext()


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Keys, messages, the sum: what two parties and whoever adds up type."""
    monkeypatch.chdir(tmp_path)
    Problem(spec("secure_sum", domain="[0, 1]", people=2)).solve().write("p.json")
    for number in ("1", "2"):
        assert run_command_line(["keys", "--party", number, "-o", f"{number}.key"]) == 0
        public = json.loads(capsys.readouterr().out)
        assert list(public) == [number]
        Path(f"{number}.pub").write_text(json.dumps(public), "utf-8")
        assert Path(f"{number}.key").stat().st_mode & 0o077 == 0
    rosters = ["--roster", "1.pub", "--roster", "2.pub"]
    for number in ("1", "2"):
        Path(f"{number}.csv").write_text(f"owner,x\n{number},0.5\n", "utf-8")
        said = ["run", "p.json", "--party", number, "--input", f"x={number}.csv", "--key", f"{number}.key", *rosters]
        assert run_command_line([*said, "--new-ledger", "-o", f"m{number}.json"]) == 0
    assert run_command_line(["aggregate", "p.json", "m1.json", "-o", "o.json"]) == 1
    assert "1 of 2 messages are missing" in capsys.readouterr().err
    assert run_command_line(["aggregate", "p.json", "m1.json", "m2.json", "-o", "o.json"]) == 0
    (value,) = np.ravel(json.loads(Path("o.json").read_text("utf-8"))["outputs"]["O"]["values"])
    assert value == pytest.approx(1.5, abs=0.5)
    assert run_command_line(["keys", "--party", "1", "-o", "1.key"]) == 2


def test_numbers_out_of_proportion(tmp_path: Path) -> None:
    plan = Problem(spec("nobody")).solve()
    sent = made(plan, [np.array([[0.25, 0.5]])] * 3, "x", tmp_path, masked=False)
    for number in ("1" + "0" * 400, "-" + "9" * 4000, "1" * 5000, "0.5"):
        with pytest.raises(DataError, match="message 1 is not one of this plan"):
            plan.combine([changed(sent[0], "outputs", "message", "values", value=[number, "0"]), *sent[1:]])


# --- several sets of parties, and parts of systems ------------------------------------------------

SETS = """parties:
  voter in 1..3
  clinic in 1..2
variables:
  input x[voter] in [0, 1]
  input beds[clinic] in [0, 2]
  input visits[clinic] in table(age in {young, old})
  intermediate counts
  output A
  output C
background: counts = histogram(visits)
loss: E[ (A - sum(x) - 10 * sum(beds))^2 ] + E[ ||C - counts||^2 ]
privacy:
  (A, C) is 60-GDP wrt x, replacing one voter
  (A, C) is 60-GDP wrt beds, replacing one clinic
  (A, C) is 60-GDP wrt visits, adding or removing one record
options: trust TRUST
"""


def called(plan: Plan, data: dict[str, dict[str, Any]], folder: Path, *, masked: bool) -> list[Path]:
    """The messages of parties with such names, each from its own data and with its own ledger."""
    files = {name: folder / name.replace(":", "_") for name in data}
    for name, path in files.items() if masked else ():
        path.with_suffix(".pub").write_text(json.dumps(write_key(name, path.with_suffix(".key"))), "utf-8")
    roster = [path.with_suffix(".pub") for path in files.values()]
    for name, path in files.items():
        more: dict[str, Any] = {"key": path.with_suffix(".key"), "roster": roster} if masked else {}
        plan.run(data[name], path.with_suffix(".db"), path.with_suffix(".json"), new_ledger=True, party=name, **more)
    return [path.with_suffix(".json") for path in files.values()]


@pytest.mark.slow
@pytest.mark.parametrize("trust", ["secure_sum(colluding = 3)", "nobody"])
def test_parties_of_several_sets(trust: str, tmp_path: Path) -> None:
    """Each sends what its own data add to the answers; a voter has no part in what clinics hold."""
    plan = Problem(SETS.replace("TRUST", trust)).solve()
    assert plan.by_messages
    (tmp_path / "one.csv").write_text("age\nyoung\nold\nold\n", "utf-8")
    (tmp_path / "two.csv").write_text("age\nyoung\n", "utf-8")
    data: dict[str, dict[str, Any]] = {f"voter:{i}": {"x": np.array([i / 4])} for i in (1, 2, 3)}
    data |= {
        f"clinic:{i}": {"beds": np.array([i]), "visits": tmp_path / f"{w}.csv"} for i, w in ((1, "one"), (2, "two"))
    }
    sent = called(plan, data, tmp_path, masked="secure" in trust)
    release = plan.combine(sent)
    np.testing.assert_allclose(release.outputs["A"], 1.5 + 30, atol=3)
    np.testing.assert_allclose(release.outputs["C"], [2, 2], atol=2)
    with pytest.raises(DataError, match="1 of 5 messages are missing: of party clinic:1"):
        plan.combine([*sent[:3], sent[4]])
    with pytest.raises(DataError, match="message 4 is not one of this plan"):
        plan.combine([*sent[:3], changed(sent[3], "outputs", "party", "values", value=["3"]), sent[4]])
    for party in ("3", "voter:4", "nurse:1"):
        with pytest.raises(UsageError, match=f"no party {party}"):
            plan.run({"x": np.array([1])}, tmp_path / "n.db", party=party, new_ledger=True)


def test_records_without_an_index_set_are_each_a_persons(tmp_path: Path) -> None:
    text = """variables:
  input x in [0, 1]^4
  output O
loss: E[ (O - sum(x))^2 ]
privacy: O is 60-GDP wrt x, replacing one record
options: trust TRUST
"""
    for most, trust in ((8, "secure_sum(colluding = 1)"), (4, "nobody")):
        plan = Problem(text.replace("TRUST", trust)).solve()
        folder = tmp_path / trust[:6]
        folder.mkdir()
        data = {str(i): {"x": np.array([i / most])} for i in (1, 2, 3, 4)}
        sent = called(plan, data, folder, masked=trust != "nobody")
        np.testing.assert_allclose(plan.combine(sent).outputs["O"], 10 / most, atol=0.6)


PART = """parameters: epsilon = 20
parties: owner in 1..3
variables:
  input x[owner] in [0, 1]
  output O
loss: E[ (O - sum(x))^2 ]
privacy: O is epsilon-DP wrt x, replacing one owner
"""
REPORT = """parties: clinic in 1..2
variables:
  input choice[clinic] in {north, south}
  intermediate winner
  output O
background: winner = random_dictator(choice)
loss: worst[ total_variation(O, winner) ]
privacy: O is 20-DP wrt choice, replacing one clinic
"""
SYSTEM = """parties:
  owner in 1..3
  clinic in 1..2
components:
  a = spec("part.priv", x = x, trust = nobody)
  b = spec("part.priv", x = y, trust = secure_sum(colluding = 1))
  v = spec("report.priv", trust = nobody)
variables:
  input x[owner] in [0, 1]
  input y[owner] in [0, 1]
loss: a.loss + b.loss + v.loss
privacy:
  all outputs are 40-DP wrt (x, y), replacing one owner
  all outputs are 20-DP wrt choice, replacing one clinic
"""


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    from privspec.api import load

    folder = tmp_path_factory.mktemp("system")
    for name, text in {"part.priv": PART, "report.priv": REPORT, "system.priv": SYSTEM}.items():
        (folder / name).write_text(text, "utf-8")
    return load(folder / "system.priv").solve()


def test_one_message_says_what_a_party_says_in_all_parts(system: Plan, tmp_path: Path) -> None:
    """Noise of its own, a masked share, a report of a vote: one message of each party, one key for all of it."""
    assert system.by_messages
    data: dict[str, dict[str, Any]] = {
        f"owner:{i}": {"x": np.array([i / 4]), "y": np.array([1 - i / 4])} for i in (1, 2, 3)
    }
    data |= {f"clinic:{i}": {"choice": ["north"]} for i in (1, 2)}
    files = {name: tmp_path / name.replace(":", "_") for name in data}
    for name, path in files.items():
        if "owner" in name:
            path.with_suffix(".pub").write_text(json.dumps(write_key(name, path.with_suffix(".key"))), "utf-8")
    roster = [path.with_suffix(".pub") for name, path in files.items() if "owner" in name]
    for name, path in files.items():
        more: dict[str, Any] = {"key": path.with_suffix(".key"), "roster": roster} if "owner" in name else {}
        system.run(data[name], path.with_suffix(".db"), path.with_suffix(".json"), new_ledger=True, party=name, **more)
    sent = [path.with_suffix(".json") for path in files.values()]
    said = {name: json.loads(path.with_suffix(".json").read_text("utf-8"))["outputs"] for name, path in files.items()}
    assert [*said["owner:1"]] == ["party", "message 1", "message 2", "roster 2"]
    assert [*said["clinic:2"]] == ["party", "message 3"]
    release = system.combine(sent)
    assert release.private
    np.testing.assert_allclose(release.outputs["a.O"], 1.5, atol=1)
    np.testing.assert_allclose(release.outputs["b.O"], 1.5, atol=1)
    assert str(np.ravel(release.values["v.O"])[0]) == "north"
    with pytest.raises(DataError, match="missing: of owner 2"):
        system.combine([sent[0], *sent[2:]])
    with pytest.raises(DataError, match="sent one already"):
        system.combine([*sent, sent[1]])
    with pytest.raises(DataError, match="made under another plan"):
        system.combine([changed(sent[0], "plan_sha256", value="0" * 64), *sent[1:]])
    with pytest.raises(DataError, match="does not say what this party says"):
        system.combine([changed(sent[0], "outputs", "party", "values", value=["clinic:1"]), *sent[1:]])
    # what was said in one part is nothing in another: its masks are those of its part
    swapped = json.loads(sent[0].read_text("utf-8"))
    swapped["outputs"]["roster 2"]["values"] = ["0" * 64]
    with pytest.raises(DataError, match="different rosters"):
        system.combine([swapped, *sent[1:]])
    with pytest.raises(UsageError, match="masked a message already"):
        system.run(
            data["owner:1"],
            tmp_path / "owner_1.db",
            party="owner:1",
            key=tmp_path / "owner_1.key",
            roster=roster,
        )


def test_a_key_masks_each_part_of_a_message_once(tmp_path: Path) -> None:
    from privspec.execute.family import Keys
    from privspec.families.gaussian.masks import take

    write_key("1", tmp_path / "1.key")
    keys = Keys(tmp_path / "1.key", ())
    assert take("1", keys, "one").public == take("1", keys, "other").public
    with pytest.raises(UsageError, match="masked this part of a message already"):
        take("1", keys, "one")
    with pytest.raises(UsageError, match="masked a message already"):
        take("1", Keys(tmp_path / "1.key", ()), "one")


def test_a_copy_of_a_key_masks_nothing_more(tmp_path: Path) -> None:
    """Whichever of the two is used first, and before anything is read or spent for the other."""
    from privspec.execute.family import Keys
    from privspec.families.gaussian.masks import take

    write_key("1", tmp_path / "1.key")
    (tmp_path / "copy.key").write_bytes((tmp_path / "1.key").read_bytes())
    kept = (tmp_path / "1.key").read_bytes()
    take("1", Keys(tmp_path / "copy.key", ()), "one")
    for again in (tmp_path / "1.key", tmp_path / "copy.key"):
        with pytest.raises(UsageError, match="masked a message already"):
            read_key("1", again)
        with pytest.raises(UsageError, match="masked a message already"):
            take("1", Keys(again, ()), "one")
    (tmp_path / "copy.key").write_bytes(kept)
    with pytest.raises(UsageError, match="from another copy"):
        read_key("1", tmp_path / "copy.key")


def test_parts_that_a_keeper_makes_have_no_messages(system: Plan, tmp_path: Path) -> None:
    from privspec.api import load

    for name, text in {"part.priv": PART, "report.priv": REPORT, "system.priv": SYSTEM}.items():
        (tmp_path / name).write_text(
            text.replace('spec("report.priv", trust = nobody)', 'spec("report.priv")'), "utf-8"
        )
    kept = load(tmp_path / "system.priv").solve()
    assert not kept.by_messages
    with pytest.raises(UsageError, match="a keeper makes some of its parts"):
        kept.run({"choice": ["north"]}, tmp_path / "n.db", party="clinic:1", new_ledger=True)
    with pytest.raises(UsageError, match="no owner 7"):
        system.run({"x": [0.5], "y": [0.5]}, tmp_path / "n.db", party="owner:7", new_ledger=True)
