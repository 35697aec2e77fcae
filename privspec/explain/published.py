"""The page of a release: its figures with limits, and what the plan's page for the public says of their errors.

Limits are those of the noise alone: the figure less and more what 95 of 100 draws of the noise stay within, drawn in
floating point from a fixed seed. They are about what a figure would be without noise, for one figure at a time. What is
computed from noisy figures has rough ones. Nothing here is read but the release and its plan.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import UsageError
from privspec.execute.family import Mechanism, mechanism_of
from privspec.execute.release import MAJOR, document_of
from privspec.explain.document import Block, Document, Paragraph, Section, Sentence, Table, table
from privspec.explain.facts import Facts
from privspec.explain.messages import phrase, say, sentences
from privspec.explain.public import named_for_readers, public_page

SHARE = 0.95
"""The share of draws that limits leave a figure within."""
ROUGHLY = 1.96
"""The same for normal noise, in standard deviations."""
DRAWS, SEED = 4_000, 20201203
FINE = 0.01
"""The step of a grid, in standard deviations, up to which noise is as good as continuous."""
LEAST = 0.8
"""Of the deviation of the draws, what a release says at least: draws are off by some hundredths."""
SHOWN = 200
"""Figures of an output that the page shows."""
DIGITS = 2
"""Digits of a figure below the size of its limits."""
Array = NDArray[np.float64]


def is_release(path: Path) -> bool:
    """Whether a file begins as releases do."""
    try:
        with path.open("rb") as file:
            return f'"{MAJOR}'.encode() in file.read(200)
    except OSError:
        return False


def read_release(path: Path) -> Mapping[str, Any]:
    """The document of a release.

    Raises: DataError PS0803, UsageError PS0735.
    """
    found = document_of(path)
    if found is None:
        raise no_release(path)
    return found


def no_release(path: Path) -> UsageError:
    """What is told of a file that is not of the form of releases."""
    hint = "a release is what `privspec run PLAN -o FILE.json` writes"
    return UsageError.of("PS0735", f"{path} is no release that can be read", help=hint)


def release_page(facts: Facts, plan: Mapping[str, Any], release: Mapping[str, Any]) -> Document:
    """The figures of a release with their limits, and what the page for the public says of them.

    Raises: KeyError, TypeError, ValueError if the release is not of the form of releases.
    """
    named, called = named_for_readers(facts)
    heading = named.mechanism.label("accuracy")
    said = [section for section in public_page(facts).sections if section.heading == heading]
    figures = [*_figures(mechanism_of(plan), release, called)]
    if notice := release.get("notice"):
        figures.insert(0, Paragraph((say("published.notice.whole", notice=str(notice)),), strong=True))
    return Document(
        title=phrase("published.page.title"),
        subtitle=facts.title,
        reader="public",
        shows_basis=False,
        sections=(Section(phrase("published.page.figures"), tuple(figures)), *said),
        footer=phrase("public.page.footer", digest=facts.digest[:16]),
    )


def _figures(mechanism: Mechanism, release: Mapping[str, Any], called: Mapping[str, str]) -> Iterator[Block]:
    """Of each output a table, and then what its limits are."""
    noise, told, outputs = mechanism.errors(DRAWS, SEED), list[Sentence](), release["outputs"]
    step = _step(str(release["grid"])) if release.get("grid") else 0.0
    limited, rough, reports = list[str](), list[str](), list[str]()
    for name, one in outputs.items():
        words = called.get(name, name)
        if "standard_deviation" not in one:
            reports.append(words)
            continue
        size = len(one["values"])
        half = _half(one["standard_deviation"], noise.get(name), size, step)
        if half is not None:
            (limited if name in noise else rough).append(words)
        yield _table(words, one, half, step if name in noise else 0)
        if size > SHOWN:
            told.append(say("published.more.shown", name=words, shown=SHOWN, size=size))
    share = {"share": round(100 * SHARE), "of": 100}
    told += [*sentences("published.limits", names=limited, **share), *sentences("published.rough", names=rough)]
    told += sentences("published.reports", names=reports)
    if told:
        yield Paragraph(tuple(told))


def _step(grid: str) -> float:
    """The step of a grid, as releases write it: 1/8, or 2^-20."""
    base, _, power = grid.partition("^")
    return float(base) ** float(power) if power else float(Fraction(base))


def _half(deviations: Sequence[float] | None, noise: Array | None, size: int, step: float) -> Array | None:
    """How far limits are from each figure; None where nothing is known of its noise."""
    if deviations is None or any(one is None for one in deviations):
        return None
    sizes = np.array(deviations, dtype=np.float64)
    if len(sizes) != size:
        raise ValueError("a standard deviation for each figure")
    if noise is None:
        return ROUGHLY * sizes
    drawn = np.abs(noise.reshape(len(noise), -1))
    own = np.sqrt((drawn**2).mean(axis=0))
    if (sizes < LEAST * own).any():
        hint = "take the release as `privspec run` wrote it"
        raise UsageError.of("PS0735", "the release says that it has less noise than its plan draws", help=hint)
    if step > FINE * sizes.max():  # noise that falls on few numbers: the least of these that is enough
        return np.quantile(step * np.rint(drawn / step), SHARE, axis=0, method="higher")
    some = own > 0
    ratio = float(np.quantile(drawn[:, some] / own[some], SHARE)) if some.any() else 0.0
    return ratio * sizes


def _table(words: str, one: Mapping[str, Any], half: Array | None, step: float) -> Table:
    """The figures of an output, each with its labels and limits."""
    labels: Mapping[str, Sequence[Any]] = one["labels"]
    limits = [phrase("published.page.from"), phrase("published.page.to")] if half is not None else []
    rows = []
    for place, value in islice(enumerate(one["values"]), SHOWN):
        row = [str(column[place]) for column in labels.values()]
        if half is None:
            row.append(f"{value:,}" if isinstance(value, int | float) else str(value))
        else:
            row += _between(float(value), float(half[place]), step)
        rows.append(row)
    first = len(labels)
    header = [*labels, phrase("published.page.figure"), *limits]
    return table(words.strip("“”"), header, rows, *range(first, first + 1 + len(limits)))


def _between(value: float, half: float, step: float) -> list[str]:
    """A figure and its limits, these rounded outwards."""
    digits = max(0, DIGITS - math.floor(math.log10(half))) if half > 0 else 6
    if step >= 1 and value == round(value):
        digits = 0
    unit = 10.0**digits
    low, high = math.floor((value - half) * unit) / unit, math.ceil((value + half) * unit) / unit
    return [f"{one:,.{digits}f}" for one in (value, low, high)]
