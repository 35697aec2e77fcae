"""The book: what became of every spec when it was last accepted, stored in the folder `book`, a file a spec.

The texts of all specs have about nine megabytes, most of them sentences of the auditor's and the engineer's pages. The
book holds figures, claims and the public page in full, and of the other two pages a digest of the words of each
section, so that it says which section reads otherwise; `write` and `compare` on two checkouts then say how. Some specs
are stored in full (IN_FULL).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from tests.corpus.comparing import masked, sections
from tests.corpus.texts import written

BOOK = Path(__file__).with_name("book")
VERDICTS = Path(__file__).with_name("verdicts.txt")
DIGESTED = ("page auditor", "page engineer")
IN_FULL = (
    "small/counting_query",
    "small/prefix_sums",
    "small/dp_random_dictatorship",
    "templates/hospital_network",
    "questions/mean_pay_by_district",
    "questions/which_pages_are_read",
)
"""Specs whose pages are stored in full: one of each kind of page."""
TAB = "\t"
HEADING = re.compile(r"^## (.*)$")


def place_of(name: str) -> Path:
    """Where the book has a spec."""
    return BOOK / f"{name}.txt"


def book_text(name: str, text: str) -> str:
    """What the book holds of the text of a spec."""
    if name in IN_FULL:
        return text
    kept = sections(text)
    return written({key: [*_digests(lines)] if key in DIGESTED else lines for key, lines in kept.items()})


def _digests(page: list[str]) -> Iterator[str]:
    """Of each section of a page its heading and the digest of its words; figures are left out."""
    heading, words = "title", list[str]()
    for line in [*page, "## "]:
        if (found := HEADING.match(line)) is None:
            words.append(masked(line))
            continue
        digest = hashlib.sha256(" ".join(words).encode()).hexdigest()[:12]
        yield f"{heading}: words w{digest}"
        heading, words = found[1], []


def verdicts_text(lines: list[str]) -> str:
    """The verdicts on all mutants, shortened: of each plan how many there are, and those that are accepted.

    Args: lines, as `Verdict.line` has them. All that is not listed is refused, so that nothing is lost: the mutants
    follow from the stored plans.
    """
    found: dict[str, list[str]] = {}
    for line in lines:
        found.setdefault(line.partition(TAB)[0], []).append(line)
    text = []
    for plan, own in found.items():
        text.append(f"{plan}: {len(own)} judged")
        text += [f"  {line.partition(TAB)[2]}" for line in own if f"{TAB}refused{TAB}" not in line]
    return "\n".join(text) + "\n"
