"""What becomes of the specs that were written from the manual alone, against `conform.txt`: class, loss and bound.

They are kept elsewhere, so that nobody writes the compiler to them: the table has their names and figures only.
`python -m tests.test_conform [NAME ...]` writes it anew.
"""

from __future__ import annotations

import math
import re
import sys
from functools import cache
from pathlib import Path

import pytest

from privspec.api import load
from privspec.core.diagnostics import PrivspecError, SolveError
from privspec.core.machine import at_most

TABLE = Path(__file__).with_name("conform.txt")
PLACES = tuple(folder / "shared" / "specs" / "conform" for folder in TABLE.parents[2:4])
"""Beside the repository, or beside the folder of its work trees."""
SECONDS = 120
CLOSE = 1e-4
"""Relative difference up to which figures of searches are the same."""


@cache
def specs() -> dict[str, Path]:
    """The specs by name; none where they are not kept."""
    return {path.stem: path for folder in PLACES for path in sorted(folder.glob("*.priv"))}


@cache
def stored() -> dict[str, tuple[str, ...]]:
    """Class, loss and bound of each spec, as they were last accepted."""
    lines = TABLE.read_text("utf-8").splitlines()
    return {name: tuple(rest) for name, *rest in (line.split("\t") for line in lines if not line.startswith("#"))}


def outcome(path: Path) -> tuple[str, ...]:
    """The class of a spec, then the loss and the bound of its plan where it has one."""
    try:
        with at_most(SECONDS):
            plan = load(path).solve()
    except PrivspecError as error:
        word = "no answer" if isinstance(error, SolveError) else "refused"
        return (f"{word} {next(one.code for one in error.diagnostics if one.severity == 'error')}",)
    if not plan.feasible:
        return ("infeasible",)
    bound = plan.loss.lower_bound
    return plan.status, f"{plan.loss.value:.6g}", "none" if bound is None else f"{bound:.6g}"


WIDE = 20
"""Plans of which the loss is more than twice what is proved, or nothing is: the number may only fall."""


def wide() -> list[str]:
    """Their names, as they were last accepted."""
    found = list[str]()
    for name, (said, *figures) in stored().items():
        if said == "feasible":
            loss, bound = float(figures[0]), math.nan if figures[1] == "none" else float(figures[1])
            found += [] if loss - bound <= max(abs(loss), abs(bound)) / 2 else [name]
    return found


def test_no_more_plans_are_far_from_their_bounds() -> None:
    assert len(wide()) <= WIDE


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in ("A36", "B137") else pytest.mark.slow) for name in wide()]
)
def test_a_page_says_why_a_plan_is_far_from_its_bound(name: str) -> None:
    """The engineer's, in a sentence that says which side is believed to be the weak one."""
    if not specs():
        pytest.skip("the specs of shared/specs/conform are not kept beside this repository")
    with at_most(SECONDS):
        page = load(specs()[name]).solve().explain("engineer")
    (why,) = re.findall(r"Why it is wide.*", page)
    assert re.search("weak side|both are believed", why)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(stored()))
def test_a_spec_is_solved_or_refused_as_before(name: str) -> None:
    if not specs():
        pytest.skip("the specs of shared/specs/conform are not kept beside this repository")
    said, *figures = outcome(specs()[name])
    known, *before = stored()[name]
    assert said == known
    assert [one == "none" for one in figures] == [one == "none" for one in before]
    for figure, one in zip(figures, before, strict=True):
        if one != "none":
            assert float(figure) == pytest.approx(float(one), rel=CLOSE, abs=1e-9)


def test_every_spec_that_is_kept_is_in_the_table() -> None:
    assert not specs() or set(specs()) == set(stored())


if __name__ == "__main__":
    wanted = sys.argv[1:] or sorted(specs())
    found = stored() | {name: outcome(specs()[name]) for name in wanted}
    lines = ("\t".join((name, *row)) for name, row in sorted(found.items()) if name in specs())
    TABLE.write_text("# name, class, loss, bound\n" + "".join(f"{line}\n" for line in lines), "utf-8")
