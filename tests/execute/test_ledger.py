"""The ledger: composition, refusals, the chain, and two processes at once."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import re
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privspec.core.diagnostics import BudgetError, UsageError, VerificationError
from privspec.core.rounding import sqrt_up
from privspec.execute import ledger
from privspec.execute.budget import (
    EpsilonDeltaLimit,
    EpsilonLimit,
    Limit,
    MixedError,
    MuLimit,
    RhoLimit,
    Spend,
    Unit,
    parse_limit,
)
from privspec.execute.ledger import spends_of_plan
from privspec.execute.run import _run as run
from privspec.kernel.divergences import pure_mu_up
from privspec.kernel.gaussian import delta_bounds, epsilon_up
from privspec.noise.samplers import SimulationRandomness

MakePlan = Callable[..., dict[str, Any]]
ENTRY = Unit(("x",), "replacing one entry")
DATA = {"x": [0.1, 0.2, 0.3, 0.4]}


def plan_with(make_plan: MakePlan, achieved: dict[str, str], **more: Any) -> dict[str, Any]:
    return make_plan(np.eye(4), np.eye(4), achieved=achieved, **more)


def test_a_second_run_is_refused_and_can_be_allowed_knowingly(tmp_path: Path, identity_plan: dict[str, Any]) -> None:
    path = tmp_path / "l.db"
    run(identity_plan, DATA, ledger=path, new_ledger=True)
    with pytest.raises(BudgetError) as caught:
        run(identity_plan, DATA, ledger=path)
    assert caught.value.exit_code == 6
    problem = caught.value.diagnostics[0]
    assert problem.code == "PS1001" and "--raise" in (problem.help or "")
    assert ledger.show(path).debits == 1
    ledger.create(path, ["mu=1 wrt x, replacing one entry"], change=True)
    for _ in range(3):  # 4 * 0.5^2 = 1
        run(identity_plan, DATA, ledger=path)
    with pytest.raises(BudgetError):
        run(identity_plan, DATA, ledger=path)
    assert ledger.verify(path).debits == 4


def test_the_limit_of_init_is_for_the_unit_of_the_first_release(tmp_path: Path, make_plan: MakePlan) -> None:
    path = tmp_path / "l.db"
    ledger.create(path, ["mu=2"])
    ledger.debit(path, plan_with(make_plan, {"mu": "1"}))
    with pytest.raises(BudgetError) as caught:
        ledger.debit(path, plan_with(make_plan, {"mu": "1/10"}, neighbours="replacing everything"))
    assert caught.value.diagnostics[0].code == "PS1003"
    ledger.create(path, ["mu=1 wrt x, replacing everything"], change=True)
    ledger.debit(path, plan_with(make_plan, {"mu": "1/10"}, neighbours="replacing everything"))
    state = ledger.verify(path)
    assert [len(a.spends) for a in state.accounts] == [1, 1]
    assert "replacing everything: spent mu=0.1 of mu=1" in state.describe()


def test_a_limit_is_not_overwritten_without_saying_so(tmp_path: Path) -> None:
    ledger.create(tmp_path / "l.db", ["epsilon=1"])
    with pytest.raises(UsageError, match="PS1007"):
        ledger.create(tmp_path / "l.db", ["epsilon=9"])
    with pytest.raises(UsageError, match="PS1002"):
        ledger.create(tmp_path / "m.db", [])
    with pytest.raises(UsageError, match="PS1004"):
        ledger.show(tmp_path / "none.db")


@pytest.mark.parametrize(
    ("text", "limit", "unit"),
    [
        ("epsilon=2 delta=1e-6", EpsilonDeltaLimit(Fraction(2), Fraction(1, 10**6)), None),
        ("epsilon = 1/3", EpsilonLimit(Fraction(1, 3)), None),
        ("epsilon=1,delta=0", EpsilonLimit(Fraction(1)), None),
        ("rho=0.5 wrt x, replacing one entry", RhoLimit(Fraction(1, 2)), ENTRY),
        (
            "mu=1 wrt y, x, adding or removing one record",
            MuLimit(Fraction(1)),
            Unit(("x", "y"), "adding or removing one record"),
        ),
    ],
)
def test_limits_are_parsed(text: str, limit: Any, unit: Unit | None) -> None:
    assert parse_limit(text) == (limit, unit)


BAD_LIMITS = """2|epsilon|epsilon=x|epsilon=-1|delta=1e-6|mu=1 rho=1|epsilon=1 delta=1|epsilon=1/0|epsilon=nan
mu=1 for x|mu=1 wrt x|epsilon=1 epsilon=2 wrt"""


@pytest.mark.parametrize("text", ["", *re.split(r"[|\n]", BAD_LIMITS)])
def test_bad_limits_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="PS1002"):
        parse_limit(text)


def test_composition_of_gaussian_releases_uses_the_exact_conversion() -> None:
    from privspec.kernel.gaussian import mu_down

    limit = EpsilonDeltaLimit(Fraction(1), Fraction(1, 10**6))
    whole = mu_down(Fraction(1), Fraction(1, 10**6))
    assert limit.allows([Spend(mu=whole)])
    parts = [Spend(mu=whole * Fraction(1, 2))] * 4
    assert limit.allows(parts)
    assert not limit.allows([*parts, Spend(mu=whole / 10)])


def test_rules_for_other_kinds() -> None:
    pure, gaussian, rho = Spend(pure=Fraction(1, 2)), Spend(mu=Fraction(1, 2)), Spend(rho=Fraction(1, 8))
    pair = Spend(pair=(Fraction(1, 2), Fraction(1, 10**7)))
    assert EpsilonLimit(Fraction(1)).allows([pure, pure])
    assert not EpsilonLimit(Fraction(1)).allows([pure, pure, pure])
    assert RhoLimit(Fraction(3, 8)).allows([rho, gaussian, pure])
    assert not RhoLimit(Fraction(3, 8)).allows([rho, gaussian, pure, Spend(pure=Fraction(1, 100))])
    both = EpsilonDeltaLimit(Fraction(1), Fraction(1, 10**6))
    assert both.allows([pure, pair])
    assert not both.allows([pure, pure, pair])
    assert MuLimit(Fraction(1)).allows([gaussian, pure])
    for limit, spends in (
        (EpsilonLimit(Fraction(9)), [pure, gaussian]),
        (both, [gaussian, pair]),
        (both, [gaussian, rho]),
        (both, [rho, pair]),
        (MuLimit(Fraction(9)), [rho]),
    ):
        with pytest.raises(MixedError):
            limit.allows(spends)


def test_after_pure_releases_others_are_converted_at_half_of_the_delta_that_is_left() -> None:
    pure, rho, gaussian = Spend(pure=Fraction(1)), Spend(rho=Fraction(1, 2)), Spend(mu=Fraction(1))
    limit = EpsilonDeltaLimit(Fraction(20), Fraction(1, 10**5))
    for other, one in (
        (rho, 0.5 + 2 * math.sqrt(0.5 * math.log(2e5))),
        (gaussian, float(epsilon_up(gaussian.mu, limit.delta / 2))),
    ):
        reached = limit.reached([pure, other])
        assert limit.allows([pure, other]) and reached["delta"] == limit.delta / 2
        assert float(reached["epsilon"]) == pytest.approx(1 + one, rel=1e-9)
        twice = limit.reached([pure, other, other])
        assert twice["delta"] == limit.delta * 3 / 4 and twice["epsilon"] > 1 + 2 * reached["epsilon"] - 2
        assert not limit.allows([pure, *[other] * 9])
    # nothing is left to convert at
    pair = Spend(pair=(Fraction(1), limit.delta))
    assert limit.allows([pair, pure]) and not limit.allows([pair, rho])


@given(st.fractions(min_value=Fraction(1, 100), max_value=3), st.fractions(min_value=0, max_value=12))
@settings(max_examples=60, deadline=None)
def test_what_zcdp_is_converted_to_holds_of_gaussian_noise(rho: Fraction, epsilon: Fraction) -> None:
    """Gaussian noise of mu = sqrt(2 rho) is rho-zCDP: its exact delta is no more than the one that is charged."""
    limit = EpsilonDeltaLimit(epsilon, Fraction(1, 10**6))
    charged = limit.reached([Spend(rho=rho)])
    assert charged["epsilon"] == epsilon
    assert charged["delta"] >= delta_bounds(epsilon, sqrt_up(2 * rho))[0] - Fraction(1, 10**12)
    pair = limit.reached([Spend(pure=Fraction(0)), Spend(rho=rho)])
    assert pair["delta"] >= delta_bounds(pair["epsilon"], sqrt_up(2 * rho))[0] - Fraction(1, 10**12)


def test_a_release_in_another_measure_is_told_which_limits_count_it(tmp_path: Path, make_plan: MakePlan) -> None:
    path = tmp_path / "l.db"
    ledger.create(path, ["epsilon=20 delta=1e-5"])
    ledger.debit(path, plan_with(make_plan, {"epsilon": "1"}))
    ledger.debit(path, plan_with(make_plan, {"rho": "1/2"}))
    assert ledger.verify(path).debits == 2
    other = tmp_path / "other.db"
    ledger.create(other, ["epsilon=9"])
    ledger.debit(other, plan_with(make_plan, {"epsilon": "1"}))
    with pytest.raises(BudgetError, match="PS1003") as caught:
        ledger.debit(other, plan_with(make_plan, {"rho": "1/2"}))
    help_ = caught.value.diagnostics[0].help or ""
    assert "'epsilon=... delta=... wrt x, replacing one entry' or 'rho=... wrt x, replacing one entry'" in help_
    for limit in ("epsilon=20 delta=1e-5", "rho=2"):
        copy = tmp_path / "copy.db"
        shutil.copy(other, copy)
        ledger.create(copy, [f"{limit} wrt x, replacing one entry"], change=True)
        ledger.debit(copy, plan_with(make_plan, {"rho": "1/2"}))


@given(st.fractions(min_value=Fraction(1, 1000), max_value=60, max_denominator=1000))
@settings(max_examples=40, deadline=None)
def test_mu_of_pure_epsilon_is_rounded_up(epsilon: Fraction) -> None:
    from scipy.stats import norm

    mu = float(pure_mu_up(epsilon))
    assert mu == pytest.approx(-2 * norm.ppf(1 / (1 + np.exp(float(epsilon)))), rel=1e-9)


def test_pure_epsilon_implies_its_mu_for_the_whole_curve() -> None:
    """(epsilon', delta) of mu-GDP is weaker than what epsilon-DP implies, at every epsilon'."""
    from privspec.kernel.gaussian import delta_bounds

    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(5)):
        mu = pure_mu_up(epsilon)
        for share in range(20):
            smaller = epsilon * share / 20
            # worst epsilon-DP pair is randomised response: delta(e) = (e^eps - e^e) / (1 + e^eps)
            needed = (np.exp(float(epsilon)) - np.exp(float(smaller))) / (1 + np.exp(float(epsilon)))
            assert float(delta_bounds(smaller, mu)[1]) >= needed - 1e-12


@given(st.fractions(min_value=0, max_value=10**9))
def test_roots_go_up(square: Fraction) -> None:
    root = sqrt_up(square)
    assert root**2 >= square
    assert float(root) == pytest.approx(float(square) ** 0.5, rel=1e-12)


def test_what_a_plan_costs(make_plan: MakePlan) -> None:
    B, L = np.eye(4), np.eye(4)
    outputs: list[tuple[str, tuple[int, ...]]] = [("A", (2,)), ("B", (2,))]

    def guarantee(names: list[str], mu: str, place: int, neighbours: str = "replacing one entry") -> dict[str, Any]:
        return {
            "outputs": names,
            "wrt": "x",
            "neighbours": neighbours,
            "achieved": {"mu": mu},
            "requirement": place,
        }

    part, whole = guarantee(["A"], "1/10", 0), guarantee(["A", "B"], "1/2", 1)
    assert spends_of_plan(make_plan(B, L, outputs=outputs, guarantees=[part, whole])) == {
        ENTRY: Spend(mu=Fraction(1, 2))
    }
    # a view with all rows covers everything that is computed from them, unless only outputs are rounded
    plan = make_plan(B, np.ones((4, 4)), outputs=outputs, guarantees=[part])
    assert spends_of_plan(plan) == {ENTRY: Spend(mu=Fraction(1, 10))}
    # ... and unless its outputs look at some of the rows only
    for matrix, bad in ((L, {}), (np.ones((4, 4)), {"round_outputs": True})):
        with pytest.raises(UsageError, match="PS1006"):
            spends_of_plan(make_plan(B, matrix, outputs=outputs, guarantees=[part], **bad))
    two = [whole, guarantee(["A", "B"], "3", 1, "replacing everything")]
    assert len(spends_of_plan(make_plan(B, L, outputs=outputs, guarantees=two))) == 2
    with pytest.raises(UsageError, match="PS1008"):
        spends_of_plan(make_plan(B, L, achieved={"words": "many"}))


def test_a_line_on_more_inputs_covers_each_of_them_where_units_are_replaced(make_plan: MakePlan) -> None:
    """All that a person holds may move, and so may a part of it; what comes or goes does so in all inputs at once."""
    outputs: list[tuple[str, tuple[int, ...]]] = [("A", (2,)), ("B", (2,))]
    for neighbours, covered in (("replacing one person", True), ("adding or removing one record", False)):
        lines = [(["A"], "x", "1/10"), (["A", "B"], ["x", "y"], "1/2")]
        guarantees = [
            {"outputs": names, "wrt": wrt, "neighbours": neighbours, "achieved": {"mu": mu}, "requirement": place}
            for place, (names, wrt, mu) in enumerate(lines)
        ]
        plan = make_plan(np.eye(4), np.eye(4), outputs=outputs, guarantees=guarantees)
        joint, alone = Unit(("x", "y"), neighbours), Unit(("x",), neighbours)
        if covered:
            assert spends_of_plan(plan) == dict.fromkeys((joint, alone), Spend(mu=Fraction(1, 2)))
        else:
            with pytest.raises(UsageError, match="PS1006"):
                spends_of_plan(plan)


def test_a_refused_release_leaves_no_trace(tmp_path: Path, make_plan: MakePlan) -> None:
    path = tmp_path / "l.db"
    ledger.create(path, ["mu=1 wrt x, replacing one entry"])
    before = ledger.show(path).head
    with pytest.raises(BudgetError):
        run(plan_with(make_plan, {"mu": "2"}), DATA, ledger=path, output=tmp_path / "o.json")
    assert ledger.show(path).head == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["l.db"]


def test_nothing_is_spent_when_the_output_cannot_be_written(tmp_path: Path, identity_plan: dict[str, Any]) -> None:
    for output in (tmp_path / "no" / "o.json", tmp_path / "o.xlsx"):
        with pytest.raises(UsageError, match=r"PS083|PS0713"):
            run(identity_plan, DATA, ledger=tmp_path / "l.db", output=output)
    assert not (tmp_path / "l.db").exists()


def test_a_simulation_spends_nothing_and_says_so(tmp_path: Path, identity_plan: dict[str, Any]) -> None:
    release = run(
        identity_plan,
        DATA,
        ledger=tmp_path / "l.db",
        output=tmp_path / "o.json",
        randomness=SimulationRandomness(1),
    )
    assert not (tmp_path / "l.db").exists()
    written = json.loads((tmp_path / "o.json").read_text())
    assert written["private"] is False and written["guarantees"] == [] and "simulation" in written["notice"]
    assert release.outputs["O"].shape == (4,)


def tamper(path: Path, statement: str) -> None:
    database = sqlite3.connect(path)
    database.execute("DROP TRIGGER no_update")
    database.execute("DROP TRIGGER no_delete")
    database.execute(statement)
    database.commit()
    database.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET body = replace(body, '1/2', '1/9') WHERE sequence = 3",
        "UPDATE events SET digest = previous WHERE sequence = 3",
        "DELETE FROM events WHERE sequence = 3",
    ],
)
def test_a_changed_ledger_is_noticed(tmp_path: Path, make_plan: MakePlan, statement: str) -> None:
    path = tmp_path / "l.db"
    plan = plan_with(make_plan, {"mu": "1/2"})
    ledger.create(path, ["mu=9 wrt x, replacing one entry"])
    for _ in range(3):
        ledger.debit(path, plan)
    tamper(path, statement)
    for use in (ledger.show, ledger.verify, ledger.export, lambda p: ledger.debit(p, plan)):
        with pytest.raises(VerificationError, match="PS1005"):
            use(path)


def test_entries_cannot_be_changed_by_accident(tmp_path: Path, make_plan: MakePlan) -> None:
    ledger.debit(tmp_path / "l.db", plan_with(make_plan, {"mu": "1/2"}), new=True)
    database = sqlite3.connect(tmp_path / "l.db")
    for statement in ("DELETE FROM events", "UPDATE events SET body = ''"):
        with pytest.raises(sqlite3.IntegrityError):
            database.execute(statement)
    database.close()


def test_a_file_that_is_no_ledger(tmp_path: Path, identity_plan: dict[str, Any]) -> None:
    (tmp_path / "l.db").write_text("not a database, certainly " * 100)
    with pytest.raises(UsageError, match="PS1009"):
        ledger.debit(tmp_path / "l.db", identity_plan)


def test_export_holds_the_whole_chain(tmp_path: Path, identity_plan: dict[str, Any]) -> None:
    ledger.debit(tmp_path / "l.db", identity_plan, new=True)
    exported = ledger.export(tmp_path / "l.db")
    assert [e["body"]["kind"] for e in exported["events"]] == ["create", "limit", "debit"]
    assert exported["events"][-1]["body"]["plan_sha256"] == identity_plan["digest"]


def _race(path: Path, plan: dict[str, Any], new: bool, start: Any, results: Any) -> None:
    start.wait()
    try:
        run(plan, DATA, ledger=path, new_ledger=new)
        results.put("released")
    except BudgetError:
        results.put("refused")


@pytest.mark.parametrize("existing", [True, False])
def test_of_two_processes_only_one_succeeds(tmp_path: Path, identity_plan: dict[str, Any], existing: bool) -> None:
    path = tmp_path / "l.db"
    if existing:
        ledger.create(path, ["mu=0.5"])
    context = multiprocessing.get_context("fork")
    start, results = context.Barrier(4), context.Queue()
    processes = [
        context.Process(target=_race, args=(path, identity_plan, not existing, start, results)) for _ in range(4)
    ]
    for process in processes:
        process.start()
    outcomes = sorted(results.get(timeout=60) for _ in processes)
    for process in processes:
        process.join()
    assert outcomes == ["refused"] * 3 + ["released"]
    assert ledger.verify(path).debits == 1


def test_a_crash_after_the_debit_loses_budget(
    tmp_path: Path, identity_plan: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    import privspec.families.gaussian.runs as module

    def crash(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "draw", crash)
    with pytest.raises(KeyboardInterrupt):
        run(identity_plan, DATA, ledger=tmp_path / "l.db", output=tmp_path / "o.json", new_ledger=True)
    assert ledger.show(tmp_path / "l.db").debits == 1
    assert [p.name for p in tmp_path.iterdir()] == ["l.db"]


def test_a_release_names_its_ledger_and_the_head_of_its_debit(tmp_path: Path, identity_plan: dict[str, Any]) -> None:
    book, out = tmp_path / "l.db", tmp_path / "o.json"
    release = run(identity_plan, DATA, ledger=book, output=out, new_ledger=True)
    state = ledger.show(book)
    assert release.ledger == ledger.Receipt(state.identity, 3, state.head)
    assert json.loads(out.read_text())["ledger"] == {"identity": state.identity, "event": 3, "head": state.head}
    assert release.ledger.mark == f"3:{state.head[:32]}"
    ledger.create(tmp_path / "m.db", ["mu=9"])
    assert re.fullmatch("[0-9a-f]{32}", state.identity)
    assert ledger.show(tmp_path / "m.db").identity != state.identity
    assert (book.stat().st_mode & 0o777) == 0o600


@pytest.mark.parametrize("name", [":memory:", "", "file:x.db", "file:x.db?mode=memory", "a\0b", "folder", "taken.db"])
def test_what_is_no_ledger_on_disk_is_refused_and_not_touched(
    tmp_path: Path, identity_plan: dict[str, Any], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    database = sqlite3.connect(tmp_path / "taken.db")
    database.execute("CREATE TABLE events (sequence INTEGER)")
    database.commit()
    database.close()
    before = (tmp_path / "taken.db").read_bytes()
    for new in (True, False):
        with pytest.raises(UsageError, match="PS1009"):
            ledger.debit(Path(name), identity_plan, new=new)
    with pytest.raises(UsageError, match="PS1009"):
        ledger.create(Path(name), ["mu=1"])
    assert (tmp_path / "taken.db").read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder", "taken.db"]


SUFFIXES = ("json", "csv", "parquet", "npy")


@pytest.fixture
def published(tmp_path: Path, identity_plan: dict[str, Any]) -> tuple[Path, list[Path]]:
    """A ledger, and a release in each format that it paid for."""
    book, files = tmp_path / "l.db", [tmp_path / f"o.{suffix}" for suffix in SUFFIXES]
    ledger.create(book, ["mu=9 wrt x, replacing one entry"])
    for file in files:
        run(identity_plan, DATA, book, file)
    return book, files


def test_releases_are_found_in_their_ledger(published: tuple[Path, list[Path]]) -> None:
    book, files = published
    assert ledger.verify(book, files).debits == 4


def test_a_tail_that_was_cut_off_shows_against_a_release(
    tmp_path: Path, published: tuple[Path, list[Path]], capsys: pytest.CaptureFixture[str]
) -> None:
    from privspec.cli import run_command_line

    book, files = published
    database = sqlite3.connect(book)
    database.execute("DROP TRIGGER no_delete")
    database.execute("DELETE FROM events WHERE sequence > 3")
    database.execute(ledger._SCHEMA[-1])
    database.commit()
    database.close()
    assert ledger.verify(book, files[:1]).debits == 1, "by itself nothing shows"
    for file in files[1:]:
        with pytest.raises(VerificationError, match=r"PS1015.*cut off"):
            ledger.verify(book, [file])
    command = ["ledger", "verify", str(book)]
    assert run_command_line([*command, "--against", str(files[0])]) == 0
    assert "the release is entered in it" in capsys.readouterr().out
    assert run_command_line([*command, "--against", *map(str, files)]) == 7
    assert run_command_line([*command, str(files[0])]) == 2


def test_a_release_of_another_ledger_does_not_fit(tmp_path: Path, make_plan: MakePlan) -> None:
    plan = plan_with(make_plan, {"mu": "1/2"})
    others = []
    for name in ("a", "b"):
        ledger.create(tmp_path / f"{name}.db", ["mu=9"])
        for suffix in SUFFIXES:
            others.append(tmp_path / f"{name}.{suffix}")
            run(plan, {"x": [0.1 if name == "a" else 0.2] * 4}, tmp_path / f"{name}.db", others[-1])
    for file in others[len(SUFFIXES) :]:
        with pytest.raises(VerificationError, match="PS1015"):
            ledger.verify(tmp_path / "a.db", [file])


def test_what_names_no_entry_does_not_fit(
    tmp_path: Path, published: tuple[Path, list[Path]], identity_plan: dict[str, Any]
) -> None:
    book, files = published
    text = files[1].read_text()
    mark = re.search(r"\d+:[0-9a-f]{32}", text)
    assert mark is not None
    (tmp_path / "one.csv").write_text(text.replace(mark[0], "", 1))
    (tmp_path / "create.csv").write_text(text.replace(mark[0], f"1:{ledger.show(book).events[0].digest[:32]}"))
    (tmp_path / "not.json").write_text("[1]")
    (tmp_path / "not.parquet").write_text("[1]")
    (tmp_path / "plain.csv").write_text("a,b,c\n1,2,3\n")
    (tmp_path / "empty.csv").write_text("")
    np.save(tmp_path / "plain.npy", np.zeros(3))
    for suffix in SUFFIXES:
        place = tmp_path / f"seeded.{suffix}"
        run(identity_plan, DATA, output=place, randomness=SimulationRandomness(1))
    for file in sorted({*tmp_path.glob("*.*")} - {book, *files}):
        with pytest.raises(VerificationError, match="PS1015"):
            ledger.verify(book, [file])
    with pytest.raises(UsageError, match="PS0710"):
        ledger.verify(book, [tmp_path / "none.csv"])
    with pytest.raises(UsageError, match="PS0831"):
        ledger.verify(book, [book])


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "debit", "units": [{"unit": ENTRY.to_json(), "spend": {"mu": "-5"}}]},
        {"kind": "debit", "units": [{"unit": ENTRY.to_json(), "spend": {}}]},
        {"kind": "debit", "units": "x"},
        {"kind": "limit", "unit": None, "limit": {"epsilon": "-1"}},
        {"kind": "create", "format": ledger.FORMAT, "identity": "0" * 32},
        {"kind": "refund"},
        {},
    ],
)
def test_an_event_that_no_run_writes_is_refused_though_its_chain_fits(
    tmp_path: Path, identity_plan: dict[str, Any], body: dict[str, Any]
) -> None:
    path = tmp_path / "l.db"
    ledger.create(path, ["mu=1"])
    database = sqlite3.connect(path)
    ledger._append(database, body)
    database.commit()
    database.close()
    for use in (ledger.show, ledger.verify, lambda p: ledger.debit(p, identity_plan)):
        with pytest.raises(VerificationError, match="PS1005"):
            use(path)


def test_a_ledger_of_an_earlier_version_is_refused(tmp_path: Path, identity_plan: dict[str, Any]) -> None:
    from privspec.execute.receipts import transaction

    path = tmp_path / "l.db"
    with transaction(path, ledger.APPLICATION, ledger._SCHEMA) as database:
        ledger._append(database, {"kind": "create", "format": "privspec-ledger/1.0"})
    with pytest.raises(UsageError, match="PS1009"):
        ledger.debit(path, identity_plan)


@pytest.mark.parametrize("mask", [0, 0o777])
def test_ledger_and_journal_are_for_their_owner_whatever_the_umask(
    tmp_path: Path, identity_plan: dict[str, Any], mask: int
) -> None:
    path = tmp_path / "l.db"
    before = os.umask(mask)
    try:
        with ledger._transaction(path) as database:
            ledger._append(database, ledger._creation())
            database.execute("PRAGMA cache_spill = 1")
            modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes == {"l.db": 0o600, "l.db-journal": 0o600}
    path.chmod(0o640)
    ledger.create(path, ["mu=1"], change=True)
    ledger.debit(path, identity_plan)
    assert path.stat().st_mode & 0o777 == 0o640, "told otherwise"


# --- what a ledger says of its releases -----------------------------------------------------------

AMOUNTS = st.fractions(min_value=Fraction(1, 1000), max_value=Fraction(1, 2), max_denominator=1000)
MADE: Mapping[str, Callable[[Fraction], Spend]] = {
    "mu": lambda amount: Spend(mu=amount),
    "rho": lambda amount: Spend(rho=amount),
    "epsilon": lambda amount: Spend(pure=amount),
}
SMALL_DELTA = Fraction(1, 10**6)


@given(st.sampled_from([*MADE]), st.lists(AMOUNTS, max_size=4), st.booleans())
def test_what_is_left_may_be_spent_and_no_more(kind: str, amounts: list[Fraction], by_delta: bool) -> None:
    spends = [MADE[kind](amount) for amount in amounts]
    own: dict[str, Limit] = {
        "mu": MuLimit(Fraction(1)),
        "rho": RhoLimit(Fraction(1)),
        "epsilon": EpsilonLimit(Fraction(1)),
    }
    limit = EpsilonDeltaLimit(Fraction(2), SMALL_DELTA) if by_delta else own[kind]
    left = limit.left(spends)
    if left is None:
        assert not limit.allows([*spends, MADE[kind](Fraction(1, 10**6))])
        return
    ((name, most), *_) = left.amounts.items()
    if name == kind and (spends or not by_delta):
        assert limit.allows([*spends, MADE[kind](most)])
        assert not limit.allows([*spends, MADE[kind](most * Fraction(1001, 1000) + Fraction(1, 10**9))])
    said = Fraction(left.describe(down=True).split()[0].partition("=")[2])
    assert most * (1 - Fraction(1, 10**6)) <= said <= most


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**6))
def test_amounts_are_told_rounded_towards_privacy(amount: Fraction) -> None:
    up, down = (Fraction(EpsilonLimit(amount).describe(down=way).partition("=")[2]) for way in (False, True))
    assert down <= amount <= up
    assert up - down <= amount / 10**6


def test_a_ledger_lists_its_releases_what_each_cost_and_what_is_left(tmp_path: Path, make_plan: MakePlan) -> None:
    path = tmp_path / "l.db"
    ledger.create(path, ["mu=1"])
    assert "release may cost" not in ledger.show(path).describe()
    ledger.debit(path, plan_with(make_plan, {"mu": "3/5"}))
    ledger.debit(path, plan_with(make_plan, {"mu": "1/3"}))
    first, *released, left, _ = ledger.show(path).describe().splitlines()
    assert first == "wrt x, replacing one entry: spent mu=0.6863754 of mu=1 in 2 releases"
    time = r"  on \d{4}-\d\d-\d\d at \d\d:\d\d UTC: "
    for line, cost in zip(released, ("mu=0.6", "mu=0.3333334"), strict=True):
        assert re.fullmatch(rf"{time}\S.* \(plan [0-9a-f]*\) cost {cost}", line)
    assert left == "  one more release may cost up to mu=0.7272474"
    ledger.create(path, ["mu=0.69"], change=True)
    *_, changed, left, _ = ledger.show(path).describe().splitlines()
    assert re.fullmatch(rf"{time}the limit was changed to mu=0.69", changed)
    assert left == "  one more release may cost up to mu=0.07063206"
    ledger.create(path, ["mu=0.69 wrt x, replacing one entry"], change=True)
    before = ledger.show(path)
    with pytest.raises(UsageError, match="PS1018") as caught:  # a limit for the unit itself holds
        ledger.create(path, ["mu=0.5"], change=True)
    assert ledger.show(path) == before
    assert caught.value.diagnostics[0].help is not None
    assert "--limit 'mu=0.5 wrt x, replacing one entry'" in caught.value.diagnostics[0].help
    ledger.create(path, ["mu=0.1 wrt x, replacing one entry"], change=True)
    assert ledger.show(path).describe().splitlines()[-2] == "  nothing is left"


def test_a_ledger_tells_a_name_that_a_terminal_cannot_show_without_its_signs(
    tmp_path: Path, make_plan: MakePlan
) -> None:
    plan = plan_with(make_plan, {"mu": "1"})
    plan["spec"] = {"name": "pay\x1b[2J\nforged"}
    ledger.create(tmp_path / "l.db", ["mu=1"])
    ledger.debit(tmp_path / "l.db", plan)
    assert "UTC: pay[2Jforged (plan" in ledger.show(tmp_path / "l.db").describe()
