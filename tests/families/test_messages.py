"""Messages of single parties: noisy answers of their own, and masked parts of secure sums, added up to a release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privspec.api import Problem
from privspec.cli import run_command_line
from privspec.core.diagnostics import DataError, UsageError
from privspec.families.linear.execution import LinearMechanism
from privspec.families.linear.masks import Pair, Roster, added, read_key, stream, write_key
from privspec.families.linear.messages import Parts
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
        Roster.read("plan", 2, paths)
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
    release = plan.combine(sent)
    assert release.private
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
    parts = Parts(LinearMechanism.of_plan(plan.document).executed, "secure_sum")
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
    parts = Parts(whole.executed, "nobody")
    rows = [parts.rows(number).tolist() for number in range(3)]
    assert sorted(row for own in rows for row in own) == list(range(whole.executed.strategy.shape[0]))


def _circumstances() -> Any:
    from privspec.execute.family import Circumstances

    return Circumstances()


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
