"""From the texts of ballots to the numbers of their alternatives, all texts at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.execute.ballots.form import JOIN, NOT_ONE, Form

if TYPE_CHECKING:
    import polars as pl

    from privspec.execute.ballots.sources import Find

Codes: TypeAlias = NDArray[np.int16]
Marks: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, eq=False, slots=True)
class Parsed:
    """Ballots as numbers of alternatives, best first, NOT_ONE below their last place (n, most).

    valid (n,): which of them are ballots of the form; exact (n,): which are without any rule having to be applied.
    """

    ranked: Codes
    valid: Marks
    exact: Marks


def parse(form: Form, texts: pl.Series, find: Find) -> Parsed:
    """Texts, best first with spaces between; what follows an opening brace is tied and does not count.

    An alternative whose own name has spaces is found as a whole, a longer name before a shorter one.
    """
    if form.spaced:
        texts = texts.str.strip_chars().str.replace_all(r"\s+", " ")
        for name in form.spaced:
            texts = texts.str.replace_all(name, name.replace(" ", JOIN), literal=True)
    tied = texts.str.contains("{", literal=True).fill_null(value=False).to_numpy()
    if tied.any():
        texts = texts.str.split("{").list.first()
    if form.most == 1:
        return _first(texts, tied, find)
    # one place more than can be used shows which ballots are too long
    ranked, named = _ranked(texts, form.most + 1, find)
    long = named > form.most
    # a longer ranking of all alternatives names one of them twice: it is none
    wrong = long if form.most == len(form.alternatives) else np.zeros(len(named), dtype=bool)
    used = np.minimum(named, form.most)
    ranked = ranked[:, : form.most]
    wrong |= (ranked != NOT_ONE).sum(axis=1) < used
    wrong |= _repeats(ranked)
    completed = _complete(form, ranked, used, wrong)
    wrong |= used < form.least
    return Parsed(ranked, ~wrong, ~(wrong | tied | long | completed))


def _first(texts: pl.Series, tied: Marks, find: Find) -> Parsed:
    """The first word of each text."""
    first = texts.str.strip_chars().str.extract(r"^(\S+)")
    codes = _codes(first, find)
    valid = codes != NOT_ONE
    return Parsed(codes[:, None], valid, valid & ~tied)


def _words(texts: pl.Series) -> pl.Series:
    """The words of each text, in lists."""
    plain = texts.fill_null("").str.strip_chars()
    if plain.str.contains(r"\s\s|[^\S ]").any():
        plain = plain.str.replace_all(r"\s+", " ")
    return plain.str.split(" ")


def _ranked(texts: pl.Series, width: int, find: Find) -> tuple[Codes, NDArray[np.intp]]:
    """The numbers of the first `width` words of each text (n, width), and how many words these are (n,)."""
    words = _words(texts).list.head(width)
    lengths = words.list.len().to_numpy().astype(np.intp)
    flat = words.explode()
    codes = _codes(flat, find)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    places = np.arange(len(codes)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    ranked = np.full((len(lengths), width), NOT_ONE, dtype=np.int16)
    ranked[rows, places] = codes
    # splitting an empty text gives one empty word
    empty = (flat == "").to_numpy()
    if empty.any():
        lengths[rows[empty]] = 0
    return ranked, lengths


def _codes(words: pl.Series, find: Find) -> Codes:
    """The number of each word; the different ones are looked up once."""
    import polars as pl

    # words become numbers of their own first: replacing texts takes several times as long
    numbered = words.fill_null("").cast(pl.Categorical)
    different = numbered.unique()
    places = different.to_physical().to_numpy()
    known = np.full(int(places.max(initial=0)) + 1, NOT_ONE, dtype=np.int16)
    known[places] = [find(word) for word in different.cast(pl.String).to_list()]
    codes: Codes = known[numbered.to_physical().to_numpy()]
    return codes


def _repeats(ranked: Codes) -> Marks:
    """Which ballots name an alternative twice."""
    ordered = np.sort(ranked, axis=1)
    twice: Marks = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != NOT_ONE)).any(axis=1)
    return twice


def _complete(form: Form, ranked: Codes, used: NDArray[np.intp], wrong: Marks) -> Marks:
    """Write the last place of rankings that leave out a single alternative (in place); which these are."""
    m = len(form.alternatives)
    if form.least < m or m < 2:
        return np.zeros(len(used), dtype=bool)
    short: Marks = (used == m - 1) & ~wrong
    ranked[short, m - 1] = m * (m - 1) // 2 - ranked[short, : m - 1].sum(axis=1, dtype=np.int64)
    used[short] = m
    return short
