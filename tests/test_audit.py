"""`privspec audit`: mechanisms that keep their promise pass, one that does not is found; bounds are what they say."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb, exp, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from privspec import audit as module
from privspec.audit import SHOWN, at_least, at_most, audit, pairs_of
from privspec.cli import run_command_line
from privspec.core.spans import Source
from privspec.model.build import load_model
from privspec.noise.samplers import Randomness
from privspec.pipeline import Request, solve

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
REPORT = """variables:
  input x in {a, b, c}
  output z in {a, b, c}
loss: worst[ mismatch(z, x) ]
privacy: z is 2-LDP wrt x
"""


@pytest.mark.parametrize(("hits", "trials"), [(0, 5), (1, 5), (3, 5), (5, 5), (7, 30)])
def test_bounds_of_a_probability_are_exact(hits: int, trials: int) -> None:
    """At the upper end so few hits have just that probability, at the lower end so many."""
    alarm = 0.01
    tail = lambda p, ks: sum(comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in ks)  # noqa: E731
    if hits < trials:
        assert tail(at_most(hits, trials, alarm), range(hits + 1)) == pytest.approx(alarm, rel=1e-6)
    if hits:
        assert tail(at_least(hits, trials, alarm), range(hits, trials + 1)) == pytest.approx(alarm, rel=1e-6)
    assert at_least(0, trials, alarm) == 0
    assert at_most(trials, trials, alarm) == 1


def test_what_probabilities_show_of_laws_that_are_known() -> None:
    """Randomised response shows its epsilon and no more, Gaussian noise its mu; other measures stay below theirs."""
    heads = exp(1.5) / (1 + exp(1.5))
    assert SHOWN["epsilon-DP"][1](heads, 1 - heads, {}) == pytest.approx(1.5)
    assert SHOWN["(epsilon, delta)-DP"][1](heads, 1 - heads, {"delta": 0.1}) < 1.5
    for cut in (-1.0, 0.3, 2.0):
        p, q = norm.sf(cut - 0.7), norm.sf(cut)
        assert SHOWN["mu-GDP"][1](p, q, {}) == pytest.approx(0.7)
        assert SHOWN["rho-zCDP"][1](p, q, {}) <= 0.7**2 / 2
        assert SHOWN["(order, epsilon)-RDP"][1](p, q, {"order": 3.0}) <= 3 * 0.7**2 / 2
    order = 1 / (2 - 1) * log(heads**2 / (1 - heads) + (1 - heads) ** 2 / heads)
    assert SHOWN["(order, epsilon)-RDP"][1](heads, 1 - heads, {"order": 2.0}) == pytest.approx(order)


@pytest.mark.parametrize(("spec", "least"), [(COUNT, 0.4), (SUM, 0.05), (REPORT, 1.2)])
def test_what_keeps_its_promise_passes_and_shows_something(spec: str, least: float) -> None:
    plan = solve(Request(Source("a.priv", spec)))
    (found,) = audit(plan, draws=4000, seed=1).findings
    assert not found.broken
    assert found.shown is not None and least < found.shown <= found.promised
    first, again = (audit(plan, draws=400, seed=1).findings[0] for _ in range(2))
    assert again.shown == first.shown or again.draws != first.draws  # where time was short


@dataclass
class Careless:
    """Releases with less noise than those of the plan."""

    secret: Any
    mean: Any

    def draw(self, randomness: Randomness) -> Any:
        drawn = self.secret.draw(randomness)
        near = {name: self.mean + (np.asarray(v) - self.mean) / 3 for name, v in drawn.outputs.items()}
        return type(drawn)(near)


def test_too_little_noise_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    plan = solve(Request(Source("count.priv", COUNT))).write(tmp_path / "count.plan.json")
    real = module.Sampler.secret

    def careless(self: Any, data: Any) -> Any:
        secret = real(self, data)
        draws = [float(np.ravel(next(iter(secret.draw(self.randomness).outputs.values())))[0]) for _ in range(400)]
        return Careless(secret, round(float(np.median(draws))))

    monkeypatch.setattr(module.Sampler, "secret", careless)
    assert run_command_line(["audit", str(plan.path), "--seed", "3", "--draws", "6000"]) == 7
    shown = capsys.readouterr()
    assert "BROKEN" in shown.out
    assert "PS0912" in shown.err
    assert run_command_line(["audit", str(plan.path), "--draws", "3"]) == 2


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
    assert audit(plan, draws=8000, seed=1).ok
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
        low, high = (Fraction(row[0]) for row in differ[0])
        assert abs(high - low) == (6 if "ball" in declared else 2)
