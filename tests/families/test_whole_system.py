"""The whole system of the language page (Ramon & Basu 3.4): parts that share data and a budget, a priced design."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from privspec.cli import run_command_line
from privspec.plan import Plan, verify

PART = """spec {name}
parameters:
  epsilon = 1.0
variables:
  input x in [0, 1]^{size}
  output O
loss: E[ (O - {of}(x))^2 ]
privacy: O is (epsilon, 1e-7)-DP wrt x, replacing one record
"""
WHOLE = """components:
  average = spec("average.priv", x = x, epsilon = e1, trust = protocol)
  counts  = spec("counts.priv", x = x, epsilon = e2, trust = protocol)
variables:
  input x in [0, 1]^1000
  choose e1 in [0, inf)
  choose e2 in [0, inf)
  choose protocol in {nobody, secure_sum}
loss: average.loss + 4 * counts.loss + 0.001 * cost(protocol, nobody = 0, secure_sum = 25)
privacy: (average.O, counts.O) is (1, 1e-6)-DP wrt x, replacing one record
"""
"""As the page has it, but for a comment."""


def written(folder: Path, size: int, secure_sum: str = "25", factor: str = "0.001") -> Path:
    for name, of in (("average", "mean"), ("counts", "sum")):
        (folder / f"{name}.priv").write_text(PART.format(name=name, size=size, of=of), "utf-8")
    text = WHOLE.replace("^1000", f"^{size}").replace("= 25", f"= {secure_sum}").replace("0.001 *", f"{factor} *")
    (folder / "whole.priv").write_text(text, "utf-8")
    return folder / "whole.priv"


def solved(folder: Path, size: int, secure_sum: str = "25", factor: str = "0.001") -> Plan:
    written(folder, size, secure_sum, factor)
    assert run_command_line(["solve", str(folder / "whole.priv"), "-q", "-o", str(folder / "p.json")]) == 0
    return Plan(json.loads((folder / "p.json").read_text("utf-8")))


def through(folder: Path, plan: Plan, size: int, first: float = 0.5) -> dict[str, str]:
    """The pages, after `verify` and `run` from the command line."""
    assert run_command_line(["verify", str(folder / "p.json"), "-q"]) == 0
    (folder / "x.csv").write_text(f"x\n{first}\n" + "0.5\n" * (size - 1), "utf-8")
    said = ["run", str(folder / "p.json"), "--input", f"x={folder}/x.csv", "--new-ledger", "-o", f"{folder}/r.json"]
    assert run_command_line([*said, "-q"]) == 0
    outputs = json.loads((folder / "r.json").read_text("utf-8"))["outputs"]
    assert list(outputs) == ["average.O", "counts.O"]
    return {reader: plan.explain(reader) for reader in ("public", "auditor", "engineer")}


@pytest.mark.slow
def test_the_choice_flips_where_enumeration_says(tmp_path: Path) -> None:
    """Both protocols are solved; the price at which the dearer error is as good is the difference of their losses."""
    size = 6
    losses = {}
    for word in ("nobody", "secure_sum"):
        (tmp_path / word).mkdir()
        path = written(tmp_path / word, size)
        out = str(tmp_path / word / "p.json")
        assert run_command_line(["solve", str(path), "--set", f"protocol={word}", "-q", "-o", out]) == 0
        losses[word] = json.loads(Path(out).read_text("utf-8"))["loss"]["value"]
    price = losses["nobody"] - losses["secure_sum"]
    assert price > 0
    for share, expected in (("0.99", "secure_sum"), ("1.01", "nobody")):
        folder = tmp_path / share
        folder.mkdir()
        plan = solved(folder, size, str(Fraction(share) * Fraction(price).limit_denominator(10**9)), "1")
        assert plan.document["mechanism"]["choices"]["protocol"] == expected
        pages = through(folder, plan, size, float(share) / 2)
        assert "protocol" in pages["engineer"]
        trusted = {
            "secure_sum": "only sums become known",
            "nobody": "Nobody but you, if your own device draws",
        }
        assert trusted[expected] in pages["public"]


@pytest.mark.slow
def test_the_page_as_it_stands(tmp_path: Path) -> None:
    """1,000 people: the secure sum is chosen, and its parts spend one budget."""
    plan = solved(tmp_path, 1000)
    assert plan.document["mechanism"]["choices"]["protocol"] == "secure_sum"
    shares = {name: Fraction(plan.document["mechanism"]["choices"][name]) for name in ("e1", "e2")}
    # variances are 2 / (1000 e1)^2 and 4 * 2 / e2^2: shares are as cube roots of what they cost
    assert float(shares["e2"] / shares["e1"]) == pytest.approx((4 * 1000**2) ** (1 / 3), rel=1e-3)
    assert sum(shares.values()) == pytest.approx(1, abs=1e-4)
    through(tmp_path, plan, 1000)
    assert verify(plan.to_json()).ok
