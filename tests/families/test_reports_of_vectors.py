"""Pure local privacy of real vectors: a report of one party is drawn as a whole, and its K-norm noise with it."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from privspec.core.diagnostics import SpecError
from privspec.kernel import judge
from tests.plans import mutate, solved_text

SPEC = """variables:
  input x in {domain}
  output z
loss: E[ ||z - x||^2 ]
privacy: z is {measure}
"""


def text(domain: str, measure: str = "1-LDP wrt x") -> str:
    return SPEC.format(domain=domain, measure=measure)


@pytest.mark.parametrize(
    ("domain", "shape", "loss"),
    [
        ("l2_ball(1, 3)", "knorm-l2", 48.0),
        ("l2_ball(0.5, 5)", "knorm-l2", 30.0),
        ("[0, 1]^8", "knorm-blocks", 8 * 9 * 10 / 3),
    ],
)
def test_vectors_get_the_noise_of_a_ball(domain: str, shape: str, loss: float) -> None:
    """The radius is Gamma(d, Delta / epsilon), so that the square is d (d + 1) Delta^2 / epsilon^2 on average.

    Of a cube it is the square of the largest number, and each other is uniform up to it: (1 + (d - 1) / 3) times that.
    """
    plan = solved_text(text(domain))
    report = judge(json.dumps(plan))
    assert report.ok, report.failed
    assert plan["mechanism"]["sites"][0]["shape"] == shape
    assert plan["loss"]["value"] == pytest.approx(loss, rel=1e-6)
    assert plan["loss"]["lower_bound"] < loss


def test_what_is_one_partys_is_said_by_the_line() -> None:
    """Where each entry is a party of its own, noise that all share is drawn by nobody."""
    apart = solved_text(text("[0, 1]^4", "1-DP wrt x, replacing one entry").rstrip() + "\noptions: trust nobody\n")
    assert apart["mechanism"]["sites"][0]["at"] == "x"
    together = solved_text(text("[0, 1]^4"))
    forged = mutate(together, ("problem", "obligations", 0, "measure", "name"), "epsilon-DP")
    assert "is not a mechanism for this trust" in str(judge(json.dumps(forged)).failed)


def test_less_noise_than_the_ball_asks_for_is_refused() -> None:
    plan = solved_text(text("l2_ball(1, 3)"))
    scale = Fraction(plan["mechanism"]["executed"]["noise"]["scale"])
    forged = mutate(plan, ("mechanism", "executed", "noise", "scale"), str(scale * Fraction(9, 10)))
    assert not judge(json.dumps(forged)).ok


@pytest.mark.parametrize("outputs", ["{0, 0.5, 1}", "grid(0, 1, 0.1)"])
def test_finite_outputs_of_real_inputs(outputs: str) -> None:
    """Pure lines solve; another is refused with the grid that solves: the advice, taken as it stands, is optimal."""
    spec = (
        text("[0, 1]").replace("output z", f"output z in {outputs}").replace("loss:", "background: x ~ uniform\nloss:")
    )
    spec = spec.replace("||z - x||^2", "(z - x)^2")
    assert solved_text(spec)["status"] == "optimal"
    with pytest.raises(SpecError) as caught:
        solved_text(spec.replace("1-LDP", "(1, 0.01)-LDP"))
    (found,) = caught.value.diagnostics
    assert (found.code, found.help is not None) == ("PS0501", True)
    advice = str(found.help).split("`")[1]
    assert advice == "input x in grid(0, 1, 0.1)"
    plan = solved_text(spec.replace("1-LDP", "(1, 0.01)-LDP").replace("input x in [0, 1]", advice))
    assert plan["status"] == "optimal"
