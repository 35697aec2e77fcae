"""Two real votes from PrefLib through the whole pipeline: solve, verify, run, explain, and what privacy moved.

The ballots are public, so that what is computed from them may be shown here. With secret ballots only the winner may.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import privspec
from privspec.execute.ballots import Form, read_ballots
from privspec.families.voting.execution import total_points
from privspec.kernel.laws.voting import DUMMY_VOTES
from privspec.model.voting import Borda, FirstChoice, Lottery, Points

HERE = Path(__file__).resolve().parent
DATA = HERE.parents[2] / "shared" / "data"
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Election:
    """A spec of this folder and the ballots that it is run on."""

    spec: str
    input: str
    file: str


ELECTIONS = (
    Election("dublin_west", "ballot", "preflib_irish_dublin_west_2002.csv.gz"),
    Election("sushi", "ranking", "preflib_sushi_5000x10.csv.gz"),
)
_POINTS: dict[str, Callable[[tuple[str, ...]], Points]] = {"first choice": FirstChoice, "borda": Borda}


def total_variation(one: Sequence[Fraction], other: Sequence[Fraction]) -> Fraction:
    """Half the sum of the differences."""
    return sum((abs(p - q) for p, q in zip(one, other, strict=True)), Fraction(0)) / 2


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came out: the winner, the odds with and without noise, and how far they are apart on these ballots."""

    plan: privspec.Plan
    winner: str
    alternatives: tuple[str, ...]
    firsts: tuple[Fraction, ...]
    plain: tuple[Fraction, ...]
    noisy: tuple[Fraction, ...]
    seconds: float

    @property
    def distance(self) -> float:
        """Total variation of the lottery with noise from that without, on these ballots."""
        return float(total_variation(self.noisy, self.plain))

    @property
    def from_dictatorship(self) -> float:
        """The same from random dictatorship without noise."""
        return float(total_variation(self.noisy, Lottery(DUMMY_VOTES).law(self.firsts)))


def held(election: Election, ballots: Path, out: Path) -> Outcome:
    """Solve, verify, run and explain one election; files go to OUT.

    Raises: SystemExit if a claim of the plan does not hold.
    """
    started = time.perf_counter()
    plan = privspec.load(HERE / f"{election.spec}.priv").solve()
    report = plan.verify()
    if not report.ok:
        raise SystemExit(f"the plan is not verified\n{report}")
    plan.write(out / f"{election.spec}.plan.json")
    for reader in ("public", "auditor", "engineer"):
        (out / f"{election.spec}_{reader}.html").write_text(plan.explain(reader, "html"), encoding="utf-8")
    ledger = out / f"{election.spec}.ledger.db"
    # these ballots are public, and each run of this example begins anew
    ledger.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as registry:
        os.environ["XDG_STATE_HOME"] = registry
        release = plan.run({election.input: ballots}, ledger=ledger, new_ledger=True)
    seconds = time.perf_counter() - started
    mechanism = plan.document["mechanism"]
    (block,) = plan.document["problem"]["blocks"]
    alternatives = tuple(block["ballots"]["alternatives"])
    form = Form.of_block(plan.model().block(election.input))
    assert form is not None
    read = read_ballots(form, ballots)
    points = _POINTS[block["ballots"]["counted"]](alternatives)
    scores = total_points(points, read)
    return Outcome(
        plan,
        str(release.outputs[block["output"]]),
        alternatives,
        total_points(FirstChoice(alternatives), read),
        Lottery(DUMMY_VOTES).law(scores),
        Lottery(DUMMY_VOTES, Fraction(mechanism["dummy_votes"])).law(scores),
        seconds,
    )


def described(election: Election, outcome: Outcome) -> str:
    """As Markdown."""
    mechanism = outcome.plan.document["mechanism"]
    achieved = outcome.plan.document["guarantees"][0]["achieved"]["epsilon"]
    lines = [
        f"### {election.spec}",
        "",
        f"{mechanism['voters']:,} ballots, {float(Fraction(mechanism['dummy_votes'])):.6f} dummy "
        f"{'votes' if mechanism['points'] == 'first choice' else 'points'} for each alternative, "
        f"epsilon {float(Fraction(achieved)):.6f}; drawn this time: {outcome.winner}",
        "",
        "| alternative | first choices | without noise | drawn with |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {row[0]} | {int(row[1]):,} | {float(row[2]):.6f} | {float(row[3]):.6f} |"
        for row in zip(outcome.alternatives, outcome.firsts, outcome.plain, outcome.noisy, strict=True)
    ]
    lines += [
        "",
        f"Distance (total variation) from the same lottery without noise: {outcome.distance:.3g} on these ballots, "
        f"{outcome.plan.loss.value:.3g} at worst; from plain random dictatorship: {outcome.from_dictatorship:.3g}",
    ]
    return "\n".join(lines)


def elections(folder: Path, out: Path, say: Say, wanted: Sequence[Election] = ELECTIONS) -> list[str]:
    """All elections whose ballots are there."""
    found = []
    for election in wanted:
        ballots = folder / election.file
        if not ballots.is_file():
            say(f"{election.spec} is skipped: there is no {ballots}")
            continue
        outcome = held(election, ballots, out)
        say(f"{election.spec}: solved, verified, explained and drawn in {outcome.seconds:.1f} s")
        found.append(described(election, outcome))
    return found
