"""`privspec audit`: mechanisms that keep their promise pass, one that does not is found; bounds are what they say."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm

from privspec import audit as module
from privspec.audit import audit, pairs_of, written
from privspec.audit.bounds import SEEN, Promise, at_least
from privspec.audit.guessing import MODULI
from privspec.cli import run_command_line
from privspec.core.spans import Source
from privspec.execute.family import Drawn
from privspec.kernel.measures import APPROXIMATE, GAUSSIAN, LIPSCHITZ, PURE, ZERO_CONCENTRATED, named
from privspec.model.build import load_model
from privspec.noise.gaussian import GaussianNoise
from privspec.noise.laplace import LaplaceNoise
from privspec.noise.samplers import Randomness, SimulationRandomness
from privspec.pipeline import Request, solve
from privspec.plan import Plan

COUNT = """variables:
  input people in table(sex in {F, M})
  output O
loss: E[ (O - count(people, sex = F))^2 ]
privacy: O is 1-DP wrt people, adding or removing one record
"""
SUM = """variables:
  input x in [0, 1]^4
  output O
loss: E[ ||O - prefix_sums(x)||^2 ]
privacy: O is (2, 1e-4)-DP wrt x, replacing one entry
options: noise family gaussian
"""
TOTAL = """variables:
  input x in [0, 1]^4
  output O
loss: E[ |O - sum(x)| ]
privacy: O is 1-DP wrt x, replacing one entry
options: noise family laplace
"""
MEDIAN = """variables:
  input people in table(hours in 0..9)^50
  output O
background: people.hours ~ uniform
loss: E[ |O - median(people.hours)| ]
privacy: O is 1-DP wrt people, adding or removing one record
"""
KEYS = """variables:
  input people in table(town in unknown)
  intermediate N
  output O
background:
  N = count(people, by = {town})
  N ~ lognormal(4, 1)
loss: E[ mean(|O - N|) ]
privacy: O is (1, 1e-3)-DP wrt people, adding or removing one record
"""
PLACE = """variables:
  input place in 1..9
  output report in 1..9
background: place ~ uniform
loss: E[ |report - place| ]
privacy: report is 0.5-metric-DP wrt place, distance |place - place'|
options: trust nobody
"""
REPORT = """variables:
  input x in {a, b, c}
  output z in {a, b, c}
loss: worst[ mismatch(z, x) ]
privacy: z is 2-LDP wrt x
"""


@pytest.mark.parametrize(("hits", "trials"), [(0, 5), (1, 5), (3, 5), (5, 5), (7, 30)])
def test_bounds_of_a_probability_are_exact(hits: int, trials: int) -> None:
    """At the lower end so many hits have just that probability."""
    alarm = 0.01
    p = float(at_least(hits, trials, alarm))
    assert p == (0 if hits == 0 else pytest.approx(p))
    if hits:
        assert binom.sf(hits - 1, trials, p) == pytest.approx(alarm, rel=1e-6)


def test_what_guesses_show_of_laws_that_are_known() -> None:
    """Randomised response shows its epsilon and no more, Gaussian noise its mu; other measures stay below theirs."""
    heads = exp(1.5) / (1 + exp(1.5))

    def tell(name: str, p: float, q: float, **amounts: float) -> float:
        measure = LIPSCHITZ if name == LIPSCHITZ.name else named(name)
        assert measure is not None
        promise = Promise(measure, dict.fromkeys(measure.figures, 1.0) | amounts)
        return float(promise.least(np.asarray(p), np.asarray(q)))

    assert tell("epsilon-DP", heads, 1 - heads) == pytest.approx(1.5)
    assert tell("(epsilon, delta)-DP", heads, 1 - heads, delta=0.1) < 1.5
    assert tell("epsilon-metric-DP", heads, 1 - heads, distance=3.0) == pytest.approx(0.5)
    assert tell(LIPSCHITZ.name, 0.7, 0.4, constant=0.5, distance=2.0) == pytest.approx(0.15)
    for cut in (-1.0, 0.3, 2.0):
        p, q = norm.sf(cut - 0.7), norm.sf(cut)
        assert tell("mu-GDP", p, q) == pytest.approx(0.7)
        assert tell("rho-zCDP", p, q) <= 0.7**2 / 2
        assert tell("(order, epsilon)-RDP", p, q, order=3.0) <= 3 * 0.7**2 / 2
    order = 1 / (2 - 1) * log(heads**2 / (1 - heads) + (1 - heads) ** 2 / heads)
    assert tell("(order, epsilon)-RDP", heads, 1 - heads, order=2.0) == pytest.approx(order)


PROMISES = [
    Promise(PURE, {"epsilon": 0.5}),
    Promise(APPROXIMATE, {"epsilon": 0.3, "delta": 0.05}),
    Promise(GAUSSIAN, {"mu": 0.6}),
    Promise(ZERO_CONCENTRATED, {"rho": 0.2}),
]


@pytest.mark.parametrize("promise", PROMISES, ids=lambda one: one.measure.name)
@pytest.mark.parametrize("share", [0.3, 1.0])
def test_a_promise_that_is_kept_is_accused_as_rarely_as_is_said(promise: Promise, share: float) -> None:
    """At the edge of a promise, over all that so many trials can bring: right guesses, wrong ones, none."""
    trials, alarm = 60, 0.05
    low, high = 0.5, 1.0  # the largest share of right guesses that the promise allows
    for _ in range(60):
        hit = (low + high) / 2
        shown = promise.least(np.asarray(hit * share), np.asarray((1 - hit) * share))
        low, high = (hit, high) if shown <= promise.promised else (low, hit)
    accused = 0.0
    for guesses in range(trials + 1):
        right = np.arange(guesses + 1)
        broken = promise.shown(right, guesses - right, trials, alarm) > promise.promised
        accused += float(binom.pmf(guesses, trials, share) * np.sum(binom.pmf(right, guesses, low)[broken]))
    assert accused <= alarm
    assert accused > alarm / 20  # and not for a bound that says nothing


@pytest.mark.parametrize("promise", PROMISES, ids=lambda one: one.measure.name)
def test_what_a_test_could_have_seen_is_seen_as_often_as_is_said(promise: Promise) -> None:
    guesses, trials, alarm = 1500, 2000, 1e-6
    visible = promise.visible(guesses, trials, alarm)
    assert visible is not None and visible > promise.promised
    right = np.arange(guesses + 1)
    broken = promise.shown(right, guesses - right, trials, alarm) > promise.promised
    share, seen = guesses / trials, []
    for target in (visible, (visible + promise.promised) / 2):
        low, high = 0.5, 1.0
        for _ in range(60):
            hit = (low + high) / 2
            amount = promise.least(np.asarray(hit * share), np.asarray((1 - hit) * share))
            low, high = (hit, high) if amount <= target else (low, hit)
        seen.append(float(np.sum(binom.pmf(right, guesses, low)[broken])))
    assert seen[0] == pytest.approx(SEEN, abs=1e-3)
    assert seen[1] < SEEN
    assert promise.visible(5, trials, alarm) is None, "five guesses show nothing, even if all are right"


SHOW = {"count": (COUNT, 3000, 0.6), "sums": (SUM, 3000, 0.4), "report": (REPORT, 3000, 1.5)}
SHOW |= {"median": (MEDIAN, 10_000, 0.3), "metric": (PLACE, 3000, 0.3), "keys": (KEYS, 2000, 0.3)}


@pytest.mark.parametrize("name", SHOW)
def test_what_keeps_its_promise_passes_and_shows_something(name: str) -> None:
    """Of counts and sums, and of reports, medians, distances and keys that nobody has listed."""
    spec, draws, least = SHOW[name]
    plan = solve(Request(Source("a.priv", spec)))
    found = audit(plan, draws=draws, seed=1).findings
    for one in found:
        assert not one.broken
        assert one.shown is not None and one.visible is not None
        assert one.shown <= one.promised < one.visible
    assert max(one.shown or 0.0 for one in found) > least
    assert audit(plan, draws=400, seed=1).to_json() == audit(plan, draws=400, seed=1).to_json()


# --- mechanisms that break their promise ----------------------------------------------------------


def broken(plan: Plan, draws: int = 4000) -> list[Any]:
    """The findings that accuse a plan; the others of its lines are silent."""
    return [one for one in audit(plan, draws=draws, seed=1).findings if one.broken]


def test_gaussian_noise_of_half_the_size_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its mu: what it shows of epsilon is still less than is promised."""
    plan = solve(Request(Source("a.priv", SUM)))
    real = GaussianNoise.release
    half = lambda self, *given: real(GaussianNoise(self.standard_deviation / 2), *given)  # noqa: E731
    monkeypatch.setattr(GaussianNoise, "release", half)
    (found,) = broken(plan, 1500)
    assert found.amount == "mu" and "Gaussian noise with mu" in found.promise


@dataclass
class Changed:
    """Releases of a data set with something done to them, told how often it was drawn."""

    secret: Any
    change: Callable[[Any, Randomness, int], Any]
    drawn: int = 0

    def draw(self, randomness: Randomness) -> Any:
        self.drawn += 1
        return self.change(self.secret, randomness, self.drawn)

    def deviations(self) -> Any:
        return self.secret.deviations()


REAL = module.Sampler._secret


def changed(monkeypatch: pytest.MonkeyPatch, change: Callable[[Any, Any, Randomness, int], Any]) -> None:
    """Lets every data set be drawn from in another way; `change` is given the data as well."""

    def read(self: Any, data: Any, place: int) -> Any:
        return Changed(REAL(self, data, place), lambda *given: change(data, *given))

    monkeypatch.setattr(module.Sampler, "_secret", read)


def laplace(size: float, grid: float = 2.0**-20) -> Callable[[Any, Any, Randomness, int], Any]:
    """The sum of the data with noise of this scale, rounded to a grid."""
    generator = np.random.default_rng(5)

    def noisy(data: Any, secret: Any, randomness: Randomness, _: int) -> Any:
        value = sum(float(row[0]) for row in data["x"][1]) + generator.laplace(scale=size)
        return Drawn({"O": np.array(np.round(value / grid) * grid)})

    return noisy


def test_laplace_noise_of_nine_tenths_of_its_scale_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole scale passes, and shows nearly all that is promised."""
    plan = solve(Request(Source("a.priv", TOTAL)))
    changed(monkeypatch, laplace(1.0))
    (honest,) = audit(plan, draws=30_000, seed=1).findings
    assert 0.9 < honest.shown < 1 < honest.visible < 1.11
    changed(monkeypatch, laplace(0.9))
    (found,) = broken(plan, 30_000)
    assert 1 < found.shown < 1 / 0.9


def test_noise_in_floating_point_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the right scale, and yet not every number can be reached from both data sets (Mironov 2012)."""
    changed(monkeypatch, laplace(1.0, grid=2.0**-1000))
    (found,) = broken(solve(Request(Source("a.priv", TOTAL))), 4000)
    assert found.trait in ("the place of the last bit", *(f"remainders by {modulus}" for modulus in MODULI))


@pytest.mark.slow
def test_exact_laplace_noise_of_nine_tenths_of_its_scale_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = solve(Request(Source("a.priv", TOTAL)))
    real = LaplaceNoise.release
    less = lambda self, *given: real(LaplaceNoise(tuple(s * 9 / 10 for s in self.scales)), *given)  # noqa: E731
    monkeypatch.setattr(LaplaceNoise, "release", less)
    (found,) = broken(plan, 40_000)
    assert 1 < found.shown < 1 / 0.9


@pytest.mark.parametrize("spec", [COUNT, SUM], ids=["whole numbers", "fine grid"])
def test_the_parity_of_the_true_count_in_the_last_bit_is_found(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, step = solve(Request(Source("a.priv", spec))), 1.0 if spec is COUNT else 2.0**-20
    name = "people" if spec is COUNT else "x"

    def marked(data: Any, secret: Any, randomness: Randomness, _: int) -> Any:
        drawn, parity = secret.draw(randomness), sum(row[0] in ("F", "1") for row in data[name][1]) % 2
        steps = {key: np.round(np.asarray(value, dtype=float) / step) for key, value in drawn.outputs.items()}
        return replace(drawn, outputs={key: (k - np.mod(k, 2) + parity) * step for key, k in steps.items()})

    changed(monkeypatch, marked)
    found = broken(plan, 1000)
    assert found
    assert all(one.shown > 2 * one.promised for one in found)


SHARED = {
    "one seed": lambda drawn: 7,
    "a hundred seeds": lambda drawn: drawn * 7919 % 101,
    "the seed of the release before": lambda drawn: 10_000 + drawn // 2,
}


@pytest.mark.parametrize("shared", SHARED, ids=str)
def test_noise_that_is_used_again_is_found(shared: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each release taken for itself has the law that is promised; together they give their data sets away."""
    plan, counts = solve(Request(Source("a.priv", SUM))), [0]

    def seeded(data: Any, secret: Any, randomness: Randomness, drawn: int) -> Any:
        if randomness.private:
            return secret.draw(randomness)  # while the time is taken
        counts[0] += 1
        return secret.draw(SimulationRandomness(SHARED[shared](counts[0])))

    changed(monkeypatch, seeded)
    assert broken(plan, 1000)


def test_chance_alone_does_not_accuse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Randomised response at the very edge of its promise, accused in a tenth of all tests at most: of 60, no 21."""
    plan, chance = solve(Request(Source("a.priv", REPORT))), 0.1
    monkeypatch.setattr(module, "ALARM", chance)
    accused = [not audit(plan, draws=100, seed=seed).ok for seed in range(60)]
    assert sum(accused) <= binom.isf(1e-6, len(accused), chance)


def test_a_broken_promise_ends_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = solve(Request(Source("count.priv", COUNT))).write(tmp_path / "count.plan.json")

    def bare(data: Any, secret: Any, randomness: Randomness, _: int) -> Any:
        return replace(secret.draw(randomness), outputs={"O": np.array(len(data["people"][1]))})

    command = ["audit", str(plan.path), "--seed", "3", "--draws", "1000"]
    assert run_command_line([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["findings"][0]["broken"] is False
    changed(monkeypatch, bare)
    assert run_command_line(command) == 7
    shown = capsys.readouterr()
    assert "BROKEN" in shown.out
    assert "PS0912" in shown.err
    assert run_command_line(["audit", str(plan.path), "--draws", "3"]) == 2


def test_an_audit_keeps_to_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a number of releases, they are as many as fit; what is drawn slowly is drawn less often."""
    plan, ticks = solve(Request(Source("a.priv", REPORT))), [0.0]

    def slow(data: Any, secret: Any, randomness: Randomness, _: int) -> Any:
        ticks[0] += 1 / 128
        return secret.draw(randomness)

    changed(monkeypatch, slow)
    monkeypatch.setattr(module.time, "process_time", lambda: ticks[0])
    told: list[tuple[int, int]] = []
    (found,) = audit(plan, seconds=16, progress=lambda what, done, total: told.append((done, total))).findings
    assert 500 <= found.draws <= 1024  # 16 s of 128 releases each, of two data sets
    assert ticks[0] <= 20
    assert told and told[-1][0] <= told[-1][1]


def test_labels_with_commas_and_quotes_are_read_as_they_are(tmp_path: Path) -> None:
    """A table of words with commas, of which each is one cell."""
    text = COUNT.replace("{F, M}", '{"F, or so", "M, too"}').replace("sex = F", 'sex = "F, or so"')
    plan = solve(Request(Source("a.priv", text)))
    (found,) = audit(plan, draws=2000, seed=1).findings
    assert found.shown is not None and found.shown > 0.3
    paths = written({"x": (["a", "b"], [["one, two", 'so "called"']])}, tmp_path)
    assert paths["x"].read_text("utf-8") == 'a,b\n"one, two","so ""called"""\n'


UNITS = [
    ("input x in [0, 2]^3", "x", "replacing one entry", 1),
    ("input x in [0, 2]^3", "x", "replacing up to 2 entries", 2),
    ("input x in l2_ball(3, 2)^4", "x", "replacing one record", 1),
    ("input x in [0, 2]^(3, 2)", "x", "replacing one record", 1),
    ("input x in [0, 2]^3", "x", "replacing everything", 3),
    ("input x in table(a in 0..4, b in {u, v})", "x", "adding or removing one record", 1),
]


def test_a_record_of_several_inputs_changes_in_one_of_them() -> None:
    """Changed in both at once it would show more than is promised; a party changes in all that it holds."""
    text = """variables:
  input x in [0, 1]^2
  input y in [0, 1]^2
  output A
  output B
loss: E[ (A - sum(x))^2 ] + E[ (B - sum(y))^2 ]
privacy: (A, B) is 2-GDP wrt (x, y), replacing one record
"""
    plan = solve(Request(Source("a.priv", text)))
    model = plan.model()
    changed = [
        {name for name in "xy" if pair.left[name] != pair.right[name]}
        for pair in pairs_of(model, model.requirements[0])
    ]
    assert {"x"} in changed and {"y"} in changed and {"x", "y"} not in changed
    assert audit(plan, draws=2000, seed=1).ok
    held = text.replace("variables:", "parties: person in 1..2\nvariables:").replace(
        "replacing one record", "replacing one person"
    )
    for name in "xy":
        held = held.replace(f"input {name} in [0, 1]^2", f"input {name}[person] in [0, 1]")
        held = held.replace(f"sum({name})", f"sum({name}[person] for person)")
    model = load_model(Source("a.priv", held))
    for pair in pairs_of(model, model.requirements[0]):
        assert all(pair.left[name] != pair.right[name] for name in "xy")


def test_an_entry_of_several_records_is_one_number() -> None:
    text = """parties: person in 1..2
variables:
  input x[person] in l2_ball(1, 2)^3
  output O
loss: E[ ||O - sum(x[person] for person)||^2 ]
privacy: O is 1-GDP wrt x, replacing one entry
"""
    model = load_model(Source("a.priv", text))
    for pair in pairs_of(model, model.requirements[0]):
        (_, left), (_, right) = pair.left["x"], pair.right["x"]
        assert sum(a != b for rows in zip(left, right, strict=True) for a, b in zip(*rows, strict=True)) == 1


@pytest.mark.parametrize(("declared", "name", "unit", "many"), UNITS)
def test_neighbours_differ_in_what_the_line_says(declared: str, name: str, unit: str, many: int) -> None:
    target = "count(x)" if "table" in declared else "x"
    text = f"variables:\n  {declared}\n  output O\nloss: E[ ||O - {target}||^2 ]\nprivacy: O is 1-GDP wrt x, {unit}\n"
    model = load_model(Source("a.priv", text))
    pairs = list(pairs_of(model, model.requirements[0]))
    assert pairs
    for pair in pairs:
        (header, left), (same, right) = pair.left[name], pair.right[name]
        assert header == same
        if "adding" in unit:
            assert len(right) - len(left) == many
            assert all(row in right for row in left)
            continue
        differ = [(a, b) for a, b in zip(left, right, strict=True) if a != b]
        assert len(differ) == many
        if "entr" in unit:
            assert all(sum(u != v for u, v in zip(a, b, strict=True)) == 1 for a, b in differ)
        low, high = ([Fraction(cell) for cell in row] for row in differ[0])
        assert max(abs(a - b) for a, b in zip(low, high, strict=True)) == (6 if "ball" in declared else 2)
