"""Which parameters were given from outside the text of a spec."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, ()),
        ({"epsilon": "1"}, ("epsilon = 1 (the spec's text says epsilon = 0.5)",)),
        ({"half": "1"}, ("half = 1 (the spec's text says half = epsilon / 2)",)),
        ({"v": "[1, 3]"}, ("v = [1, 3] (the spec's text says v = [1, 2])",)),
        ({"s": "{a, c}"}, ("s = {a, c} (the spec's text says s = {a, b})",)),
        ({"e": "[1, 2, 3]"}, ("e = [1, 2, 3] (the spec's text says e = 1)",)),
    ],
)
def test_which_parameters_were_given(given: dict[str, str], said: tuple[str, ...]) -> None:
    """One that follows from another is none; an indexed one is compared for all its people."""
    from privspec.core.spans import Source
    from privspec.model.build import load_model
    from privspec.model.parameters import overrides

    text = """parameters:
  epsilon = 0.5
  half = epsilon / 2
  v = [1, 2]
  s = {a, b}
  e[voter] = 1
parties: voter in 1..3
variables:
  input x[voter] in [0, 1]
  output O in real
privacy: O is epsilon-DP wrt x, replacing one voter
"""
    assert overrides(load_model(Source("s", text), parameters=given)) == said
