"""Rounds of votes on one budget: drones of the paper's introduction guide a vehicle from landmark to landmark.

    python examples/voting/drones.py [OUT]

Who is in range changes from round to round, and so do the votes, which are invented. First every round is paid for by
all drones alike, until the ledger refuses; then a second journey counts in how many rounds each drone took part.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import privspec
from privspec.core.diagnostics import BudgetError

HERE = Path(__file__).parent
LANDMARKS = ("gate", "bridge", "tower")
COHORT = 400
"""Drones that there are; about half of them are in range at a time."""
JOURNEY = 25
"""Rounds of the second journey."""


def rounds(seed: int) -> Iterator[dict[str, list[str]]]:
    """A table for each round: which drones are in range, and what they vote for."""
    source = Random(seed)
    while True:
        wanted = [1 + 3 * source.random() for _ in LANDMARKS]
        present = [f"drone {i}" for i in range(COHORT) if source.random() < 0.5]
        yield {"drone": present, "choice": source.choices(LANDMARKS, wanted, k=len(present))}


def told(votes: dict[str, list[str]]) -> str:
    """The votes: they are invented, so that they can be printed."""
    counts = Counter(votes["choice"])
    return ", ".join(f"{counts[name]} {name}" for name in LANDMARKS)


def all_alike(plan: privspec.Plan, folder: Path) -> None:
    """Every round costs every drone its share, whether it is there or not."""
    book = folder / "alike.ledger.db"
    for votes in rounds(1):
        try:
            release = plan.run({"vote": votes}, book, new_ledger=not book.exists())
        except BudgetError as refusal:
            (why,) = refusal.diagnostics
            print(f"  refused: {why.message}", *why.notes, sep="\n    ")
            return
        print(f"  round {release.round}: {told(votes)} -> {release['O']}")


def each_counted(plan: privspec.Plan, folder: Path) -> None:
    """Each drone pays for the rounds in which it takes part, and is left out of others once its budget is spent."""
    every = rounds(2)
    taken: Counter[str] = Counter()
    fit = plan.document["mechanism"]["rounds"]["fit"]
    for number in range(1, JOURNEY + 1):
        votes = next(every)
        book, roll = folder / "counted.ledger.db", folder / "drones.db"
        release = plan.run({"vote": votes}, book, new_ledger=number == 1, participation=roll)
        counted = [name for name in votes["drone"] if taken[name] < fit]
        taken.update(counted)
        if number % 4 == 1:
            print(f"  round {number}: {len(votes['drone'])} in range, {len(counted)} counted -> {release['O']}")
    spent = sum(count == fit for count in taken.values())
    print(f"  {spent} of {COHORT} drones have taken part in {fit} rounds; no drone in more than {max(taken.values())}")


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, nargs="?", help="folder for the plan, ledgers and counts")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.out or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.glob("*.db")):
            # a ledger is never begun anew by itself
            sys.exit(f"{folder} holds the ledger of another journey: take another folder")
        # the drones are invented: nobody's own registry of data sets learns of them
        os.environ["XDG_STATE_HOME"] = str(folder.resolve())
        plan = privspec.load(HERE / "drones.priv").solve()
        assert plan.verify().ok
        plan.write(folder / "drones.plan.json")
        shared = plan.document["mechanism"]["rounds"]
        print(f"{shared['count']} rounds fit a budget of {shared['budget']}, each spends {shared['each']}")
        print("all drones pay for every round:")
        all_alike(plan, folder)
        print("each drone pays for its own rounds:")
        each_counted(plan, folder)


if __name__ == "__main__":
    main()
