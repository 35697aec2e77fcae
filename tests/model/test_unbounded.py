"""An input without bounds: `check` warns, `solve` proves infeasibility (exit 4)."""

from __future__ import annotations

import pytest

from privspec.core.spans import Source
from privspec.model.build import load_model

UNBOUNDED = """
variables:
  input x in real^2
  output O
loss: E[ ||O - x||^2 ]
privacy: O is (1, 1e-6)-DP wrt x, replacing one entry
"""
EVERYTHING = """
variables:
  input t in table(a in 1..3)
  output O
loss: E[ ||O - histogram(t)||^2 ]
privacy: O is 1-DP wrt t, replacing everything
"""


@pytest.mark.parametrize(("text", "help_"), [(UNBOUNDED, "bounded domain"), (EVERYTHING, "one record")])
def test_an_unbounded_unit_is_a_warning_with_a_way_out(text: str, help_: str) -> None:
    model = load_model(Source("s.priv", text))
    (warning,) = [w for w in model.warnings if w.code == "PS0312"]
    assert not warning.is_error
    assert help_ in (warning.help or "")
