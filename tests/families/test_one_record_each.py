"""Tables of which every party has one record: a party moves just that."""

from __future__ import annotations

import pytest

from privspec.core.diagnostics import SpecError
from privspec.core.spans import Source
from privspec.pipeline import Request, solve

SPEC = """parties: person in 1..6
variables:
  input people[person] in table(age in {{young, old}}, district in {{north, middle, south}})^{records}
{more}
  output census
loss: E[ ||census - marginals(people, {{age, district}})||^2 ]{loss}
privacy: all outputs are 1-GDP wrt all inputs, replacing one person
"""


def test_one_person_is_one_record() -> None:
    """Six cells, of which a person leaves one for another: squared distance 2, and at best 5 numbers need the noise."""
    plan = solve(Request(Source("census.priv", SPEC.format(records=1, more="", loss=""))))
    assert plan.verify().ok
    assert plan.status == "optimal"
    moved = solve(
        Request(
            Source(
                "census.priv",
                SPEC.format(records=1, more="", loss="")
                .replace("people[person]", "people")
                .replace("parties: person in 1..6\n", "")
                .replace(")^1", ")^6")
                .replace("one person", "one record"),
            )
        )
    )
    assert plan.loss.value == pytest.approx(moved.loss.value, rel=1e-6)


@pytest.mark.parametrize(
    ("records", "more", "loss"),
    [(2, "", ""), (1, "  input pay[person] in [0, 1]\n  output mean_pay", " + E[ (mean_pay - mean(pay))^2 ]")],
)
def test_several_records_or_numbers_beside_them_are_refused(records: int, more: str, loss: str) -> None:
    with pytest.raises(SpecError, match="of a whole table"):
        solve(Request(Source("census.priv", SPEC.format(records=records, more=more, loss=loss))))
