"""Private voting: figures 1 to 3 of Torra 2019, the welfare of all rules, and two real elections.

    python examples/voting/run_voting.py OUT [--data FOLDER]

Figures, plans and pages go to the folder OUT. Elections whose ballots are not in FOLDER are skipped with a message.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from curves import draw, figures, landmarks
from elections import DATA, elections
from welfare import table


def say(text: str) -> None:
    """Tell what is happening."""
    print(text, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder for figures, plans and pages")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the ballots")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    for figure in figures():
        draw(figure, options.out / f"figure_{figure.number}.png")
        say(f"figure {figure.number} is drawn")
    print(landmarks(), end="\n\n")
    say("expected welfare: the best table of all beside the rules")
    print(table(), end="\n\n", flush=True)
    for text in elections(options.data, options.out, say):
        print(text, end="\n\n")


if __name__ == "__main__":
    main()
