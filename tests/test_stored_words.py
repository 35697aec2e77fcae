"""Words as values of parameters: a plan holds them so that they are read back as the same words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from privspec.api import Problem
from privspec.core.diagnostics import SpecError
from privspec.kernel.core.reading import JsonNode, Refused
from privspec.problem.stored import model_inside

SPEC = """spec survey

parameters:
  epsilon = 1
  names = NAMES

variables:
  input x in names
  output z in names

background:
  x ~ uniform

loss:
  E[ mismatch(z, x) ]

privacy:
  z is epsilon-LDP wrt x
"""


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ('{"New York", "1", "x,y"}', ("New York", "1", "x,y")),
        ("{red, blue}", ("red", "blue")),
        ('{"epsilon", "names"}', ("epsilon", "names")),  # as names these would be values
        ('{"ε", "in", "E"}', ("ε", "in", "E")),
        ('{"a(b", "c)", "#", "-1", "1/2"}', ("a(b", "c)", "#", "-1", "1/2")),
        ('{"csv(1)", "}"}', ("csv(1)", "}")),
    ],
)
def test_words_come_back(names: str, words: tuple[str, ...]) -> None:
    plan = Problem(SPEC.replace("NAMES", names)).solve()
    assert plan.verify().ok
    assert plan.model().parameters["names"] == words
    assert model_inside(JsonNode(plan.document["spec"], "spec")).parameters["names"] == words
    assert plan.document["mechanism"]["inputs"] == list(words)


def test_words_from_python() -> None:
    problem = Problem(SPEC.replace("NAMES", "{a, b}"))
    plan = problem.solve(names={"x y", "2"})
    assert plan.model().parameters["names"] == ("2", "x y")
    for word in ('a"b', "a\nb", "a\u202eb"):
        with pytest.raises(SpecError) as error:
            problem.check(names={word, "b"})
        assert error.value.diagnostics[0].code == "PS0251"


@pytest.mark.parametrize("text", ['csv("f")', '{1} # "\ncsv("f") # "', '"a" + csv("f")', 'sum("(" (1))'])
def test_nothing_is_called(text: str) -> None:
    document = json.loads(json.dumps(Problem(SPEC.replace("NAMES", "{a, b}")).solve().document))
    document["spec"]["parameters"]["names"] = text
    with pytest.raises(Refused, match="is not a value"):
        model_inside(JsonNode(document["spec"], "spec"))


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"shape": [2]},
        {"shape": [3], "values": [1, 2]},
        {"shape": [2], "values": ["a", "b"]},
        {"shape": [2], "values": [1.0, 2.0], "sha256": "0" * 64},
        {"shape": [2], "packed": "?"},
        {"shape": "?", "values": [1]},
        None,
    ],
)
def test_stored_arrays_that_cannot_be_read(entry: Any) -> None:
    document = json.loads(json.dumps(Problem(SPEC.replace("NAMES", "{a, b}")).solve().document))
    document["spec"]["constants"] = {"b": entry}
    with pytest.raises(Refused, match="constants"):
        model_inside(JsonNode(document["spec"], "spec"))
