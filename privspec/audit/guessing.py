"""Guessers that learn which of two data sets a release is of, each from one trait of releases.

Size, shape, rare values, the remainders of numbers on their grid (low bits), releases and noise that come again: what
tells the data sets apart is learned on some releases, chosen on others, and counted on fresh ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.audit.bounds import Array, Promise
from privspec.core.records import dataclass, field
from privspec.execute.family import Drawn

Codes: TypeAlias = NDArray[np.int64]
Cells: TypeAlias = NDArray[Any] | Mapping[Any, Any]
MODULI = (2, 3, 4, 5, 7, 8, 10, 16, 64, 100, 256)
BINS = 64
DIRECT = 400
"""Of so many numbers covariances are laid out; of more, equations are solved without them."""
COLUMNS = 256
"""Of so many columns remainders, values and shapes are learned; of more, of some of them."""
CUTS, PAIRED = 250, 30
"""Thresholds that are tried one by one, and in pairs."""


# --- releases as columns --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Releases:
    """Releases in the order they were drawn: `coins` (n,) says of which data set, 1 for the second.

    `numbers` (n, m), nan where there is none; `words` (n, k) by their place in a list, -1 for one that is not there.
    """

    coins: NDArray[np.bool_]
    numbers: Array
    words: Codes

    def __getitem__(self, part: slice) -> Releases:
        """Some of them, in order."""
        return Releases(self.coins[part], self.numbers[part], self.words[part])

    def __len__(self) -> int:
        return len(self.coins)


@dataclass(frozen=True, slots=True)
class Draws:
    """What was drawn: of which data set, and the cells of each output."""

    coins: list[bool] = field(default_factory=list)
    rows: list[list[Cells]] = field(default_factory=list)

    def add(self, coin: bool, drawn: Drawn, outputs: Sequence[str]) -> None:
        """One release of some outputs."""
        self.coins.append(coin)
        self.rows.append([_cells(drawn, name) for name in outputs])

    def hear(self, coin: bool, drawn: Drawn) -> None:
        """One message, of which all is seen; texts of hexadecimal digits are taken bit by bit."""
        self.coins.append(coin)
        self.rows.append([_bits(_cells(drawn, name)) for name in drawn.outputs])


def _bits(cells: Cells) -> Cells:
    texts = list(cells.values()) if isinstance(cells, Mapping) else []
    if len(texts) != 1 or not isinstance(texts[0], str) or not re.fullmatch(r"([0-9a-f]{2}){4,}", texts[0]):
        return cells
    return np.unpackbits(np.frombuffer(bytes.fromhex(texts[0]), dtype=np.uint8)).astype(np.float64)


def _cells(drawn: Drawn, name: str) -> Cells:
    """The numbers of an output one after another; or its cells by place or by key."""
    if name not in drawn.outputs:
        return {}
    values = np.asarray(drawn.outputs[name])
    keys = drawn.labels.get(name)
    if keys:
        each = values.reshape(len(values), -1).tolist() if len(values) else []
        labels = zip(*(np.ravel(column).tolist() for column in keys.values()), strict=True)
        return {
            (*label, place): value for label, row in zip(labels, each, strict=True) for place, value in enumerate(row)
        }
    return values.ravel().astype(np.float64) if values.dtype.kind in "biuf" else _by_place(values)


def _by_place(values: NDArray[Any]) -> dict[Any, Any]:
    return dict(enumerate(values.ravel().tolist()))


@dataclass(frozen=True, slots=True)
class Frame:
    """Columns for what is drawn: of each output how many numbers, or the places of its cells; and all words."""

    outputs: tuple[int | Mapping[Any, int], ...]
    words: Mapping[str, int]

    @classmethod
    def of(cls, draws: Draws) -> Frame:
        """Those that some draws need."""
        outputs: list[int | Mapping[Any, int]] = []
        for cells in zip(*draws.rows, strict=True):
            sizes = [len(cell) for cell in cells if isinstance(cell, np.ndarray)]
            if len(sizes) == len(cells) and len(set(sizes)) == 1:
                outputs.append(sizes[0])
            else:
                every = dict.fromkeys(key for cell in cells for key in _mapped(cell))
                outputs.append({key: place for place, key in enumerate(every)})
        mapped = (cell for row in draws.rows for cell in row if isinstance(cell, Mapping))
        said = dict.fromkeys(value for cell in mapped for value in cell.values() if isinstance(value, str))
        return cls(tuple(outputs), {word: place for place, word in enumerate(said)})

    def releases(self, draws: Draws) -> Releases:
        """Draws in these columns; what has no column, or is another word, is left out."""
        parts = [
            self._laid_out(columns, [row[place] for row in draws.rows]) for place, columns in enumerate(self.outputs)
        ]
        numbers, words = np.hstack([numbers for numbers, _ in parts]), np.hstack([words for _, words in parts])
        return Releases(np.array(draws.coins, dtype=bool), numbers, words)

    def _laid_out(self, columns: int | Mapping[Any, int], cells: list[Cells]) -> tuple[Array, Codes]:
        width = columns if isinstance(columns, int) else len(columns)
        numbers = np.full((len(cells), width), np.nan)
        if isinstance(columns, int):
            for place, cell in enumerate(cells):
                if isinstance(cell, np.ndarray) and len(cell) == width:
                    numbers[place] = cell
            return numbers, np.empty((len(cells), 0), dtype=np.int64)
        words = np.full((len(cells), width), -1, dtype=np.int64)
        for cell, own, said in zip(cells, numbers, words, strict=True):
            for key, value in _mapped(cell).items():
                at = columns.get(key)
                if at is not None and isinstance(value, str):
                    said[at] = self.words.get(value, -1)
                elif at is not None:
                    own[at] = float(value)
        return numbers, words


def _mapped(cell: Cells) -> Mapping[Any, Any]:
    return _by_place(cell) if isinstance(cell, np.ndarray) else cell


# --- traits ---------------------------------------------------------------------------------------


Score: TypeAlias = Callable[[Releases], Array]
"""Larger for what looks like a release of the second data set, smaller for one of the first, 0 if it cannot tell."""


@dataclass(frozen=True, slots=True)
class Trait:
    """Something about releases, in words, and how a score is learned from it; None where it tells nothing."""

    words: str
    learn: Callable[[Releases], Score | None]


def _ratios(codes: NDArray[Any], coins: NDArray[np.bool_]) -> tuple[NDArray[Any], Array, float]:
    """The kinds, how much likelier each is of the second data set, and how far that is beyond chance.

    The last is the likelihood ratio statistic less what chance brings it to, three standard deviations added.
    """
    kinds, place = np.unique(codes, return_inverse=True)
    second = np.bincount(place.reshape(-1), weights=coins, minlength=len(kinds))
    first = np.bincount(place.reshape(-1), minlength=len(kinds)) - second
    share = (coins.sum() + 0.5) / (len(coins) + 1)
    ratios = np.log((second + 0.5) / (first + 0.5) * (1 - share) / share)
    both = first + second
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = [np.where(n > 0, n * np.log(n / (both * p)), 0.0) for n, p in ((second, share), (first, 1 - share))]
    freedom = max(len(kinds) - 1, 0)
    return kinds, ratios, 2 * float(np.sum(terms)) - freedom - 3 * float(np.sqrt(2 * freedom))


def _looked_up(kinds: NDArray[Any], ratios: Array, codes: NDArray[Any]) -> Array:
    place = np.minimum(np.searchsorted(kinds, codes), len(kinds) - 1)
    return np.where(kinds[place] == codes, ratios[place], 0.0)


def _by_key(keys: Callable[[Releases], NDArray[Any]]) -> Callable[[Releases], Score | None]:
    """How often each key was seen of either data set; one that was not seen tells nothing."""

    def learn(taught: Releases) -> Score | None:
        found = keys(taught)
        kinds, ratios, _ = _ratios(found, taught.coins)
        if len(kinds) == len(found):
            return None
        return lambda releases: _looked_up(kinds, ratios, keys(releases))

    return learn


Coder: TypeAlias = Callable[[Releases], NDArray[Any]]
"""The codes (n,) of a column."""


def _by_column(coders: Callable[[Releases], Iterable[Coder]]) -> Callable[[Releases], Score | None]:
    """As if columns were independent: of those that differ beyond chance, log ratios of frequencies add up."""

    def learn(taught: Releases) -> Score | None:
        kept = []
        for coder in coders(taught):
            kinds, ratios, beyond = _ratios(coder(taught), taught.coins)
            if beyond > 0:
                kept.append((coder, kinds, ratios))
        if not kept:
            return None

        def score(releases: Releases) -> Array:
            return np.asarray(sum(_looked_up(kinds, ratios, coder(releases)) for coder, kinds, ratios in kept))

        return score

    return learn


def _columns(taught: Releases) -> Iterator[tuple[int, Array]]:
    width = taught.numbers.shape[1]
    return ((place, taught.numbers[:, place]) for place in range(0, width, -(-width // COLUMNS) or 1))


def _words(place: int, releases: Releases) -> Codes:
    return releases.words[:, place]


def _bins(taught: Releases) -> Iterator[Coder]:
    yield from (partial(_words, place) for place in range(taught.words.shape[1]))
    count = int(np.clip(len(taught) / 200, 8, BINS))
    for place, column in _columns(taught):
        known = column[~np.isnan(column)]
        kinds = np.unique(known)
        ends = kinds if len(kinds) <= BINS else np.unique(np.quantile(known, np.linspace(0, 1, count + 1)[1:-1]))
        yield partial(_binned, place, ends)


def _binned(place: int, ends: Array, releases: Releases) -> Codes:
    return np.searchsorted(ends, releases.numbers[:, place])


def _values(taught: Releases) -> Iterator[Coder]:
    """Numbers as they are, where some came again."""
    for place, column in _columns(taught):
        if BINS < len(np.unique(column)) < len(column):
            yield partial(_as_they_are, place)


def _as_they_are(place: int, releases: Releases) -> Array:
    return np.nan_to_num(releases.numbers[:, place], nan=np.inf)


def _remainders(modulus: int) -> Callable[[Releases], Iterator[Coder]]:
    def coders(taught: Releases) -> Iterator[Coder]:
        units = ((place, _unit(column)) for place, column in _columns(taught))
        return (partial(_on_grid, place, unit, modulus) for place, unit in units if unit is not None)

    return coders


def _last_bits(taught: Releases) -> Iterator[Coder]:
    return (partial(_lowest, place) for place, _ in _columns(taught))


def _lowest(place: int, releases: Releases) -> Codes:
    return _exponents(releases.numbers[:, place])


def _exponents(column: Array) -> Codes:
    """The exponent of the last bit of each number that is not 0; far above all others for 0, and for what is none."""
    mantissas, exponents = np.frexp(np.where(np.isfinite(column), column, 0.0))
    whole = np.ldexp(np.abs(mantissas), 53).astype(np.int64)
    lowest = np.log2(np.maximum(whole & -whole, 1).astype(np.float64)).astype(np.int64) + exponents
    return np.where(whole > 0, lowest - 53, 2**20)


def _unit(column: Array) -> float | None:
    """The largest power of two, or of ten from 1e-9 on, of which all numbers of a column are multiples; None if 0."""
    known = np.abs(column[np.isfinite(column) & (column != 0)])
    if not len(known):
        return None
    unit = float(np.ldexp(1.0, int(_exponents(known).min())))
    if known.max() / unit < 2**40:
        return unit
    for digits in range(1, 10):
        steps = known * 10.0**digits
        if np.all(np.abs(steps - np.round(steps)) <= 1e-9 * np.maximum(steps, 1)):
            return 10.0**-digits
    return unit


def _on_grid(place: int, unit: float, modulus: int, releases: Releases) -> Codes:
    """Remainders of steps of the grid; -1 for what is no number."""
    column = releases.numbers[:, place]
    steps = np.round(np.where(np.isfinite(column), column, 0.0) / unit)
    return np.where(np.isfinite(column), np.mod(steps, modulus), -1).astype(np.int64)


def _rows(releases: Releases) -> Codes:
    """Releases as wholes."""
    both = zip(np.ascontiguousarray(releases.numbers), np.ascontiguousarray(releases.words), strict=True)
    return np.array([hash((numbers.tobytes(), words.tobytes())) for numbers, words in both], dtype=np.int64)


def _steps(first: int) -> Callable[[Releases], Codes]:
    """By how much every second release differs from the one before, of which it is known what it is of.

    Releases of one data set that share their noise do not differ at all; fresh noise never differs by the same again.
    """

    def keys(releases: Releases) -> Codes:
        found = np.arange(len(releases), dtype=np.int64) - 2**62
        later = np.arange(first + 1, len(releases), 2)
        change = releases.numbers[later] - releases.numbers[later - 1]
        said = np.hstack([releases.words[later], releases.words[later - 1], releases.coins[later - 1, None]])
        found[later] = _rows(Releases(releases.coins[later], np.nan_to_num(change, nan=np.inf), said.astype(np.int64)))
        return found

    return keys


def _direction(shift: Array | None) -> Callable[[Releases], Score | None]:
    """Fisher's discriminant, the likelihood ratio of Gaussian noise, by a known difference of means or one learned."""

    def learn(taught: Releases) -> Score | None:
        coins = taught.coins
        if taught.numbers.shape[1] == 0 or not 1 < coins.sum() < len(coins) - 1:
            return None
        numbers = np.where(np.isnan(taught.numbers).all(axis=0), 0.0, taught.numbers)
        middle, width = np.nanmean(numbers, axis=0), np.nanstd(numbers, axis=0)
        width = np.where(width > 0, width, 1.0)

        def standard(releases: Releases) -> Array:
            found: Array = np.nan_to_num((releases.numbers - middle) / width)
            return found

        known = standard(taught)
        means = [known[coins == side].mean(axis=0) for side in (False, True)]
        for side in (False, True):
            known[coins == side] -= means[side]
        towards = _solved(known, means[1] - means[0] if shift is None else np.nan_to_num(shift / width))
        between = float((means[0] + means[1]) @ towards) / 2

        def score(releases: Releases) -> Array:
            found: Array = standard(releases) @ towards - between
            return found

        return score

    return learn


def _solved(centred: Array, wanted: Array) -> Array:
    """The covariance of rows (n, m), a little widened, divides a vector (m,)."""
    count, size = centred.shape
    slight = 1e-9 * float(np.mean(centred * centred)) + 1e-300
    if size <= DIRECT:
        return np.asarray(np.linalg.solve(centred.T @ centred / count + slight * np.eye(size), wanted))
    found, rest = np.zeros(size), wanted.copy()
    step, length = rest.copy(), float(rest @ rest)
    for _ in range(25):  # conjugate gradients
        image = centred.T @ (centred @ step) / count + slight * step
        along = length / max(float(step @ image), 1e-300)
        found, rest = found + along * step, rest - along * image
        before, length = length, float(rest @ rest)
        if length <= 1e-16 * float(wanted @ wanted):
            break
        step = rest + length / before * step
    return found


def traits(shift: Array | None = None, *, coarse: bool = False) -> tuple[Trait, ...]:
    """What is learned of releases; only that which takes no time, if `coarse`.

    Args: shift, by how much numbers are more of the second data set than of the first, where noise is added to them.
    """
    every = [
        Trait("whole releases", _by_key(_rows)),
        Trait("size", _direction(None)),
        Trait("shape", _by_column(_bins)),
    ]
    if shift is not None:
        every.append(Trait("size", _direction(shift)))
    if not coarse:
        every.append(Trait("values that come again", _by_column(_values)))
        every.append(Trait("the place of the last bit", _by_column(_last_bits)))
        every += [Trait(f"remainders by {modulus}", _by_column(_remainders(modulus))) for modulus in MODULI]
        every += [Trait("noise that comes again", _by_key(_steps(first))) for first in (0, 1)]
    return tuple(every)


# --- guessers -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Guesser:
    """Names the second data set from a score of `high` on, the first below `low`; 0, and between the two, neither."""

    words: str
    score: Score
    low: float
    high: float

    def counts(self, releases: Releases) -> tuple[int, int]:
        """How many guesses are right, and how many wrong."""
        return self.counted(self.score(releases), releases.coins)

    def counted(self, scores: Array, coins: NDArray[np.bool_]) -> tuple[int, int]:
        """The same by scores (n,) and coins (n,)."""
        second, first = (scores >= self.high) & (scores != 0), (scores < self.low) & (scores != 0)
        right = int(np.sum(second & coins) + np.sum(first & ~coins))
        return right, int(np.sum(second | first)) - right


def learned(of: Iterable[Trait], taught: Releases) -> list[tuple[str, Score]]:
    """The scores of some traits that tell anything, with the words of these."""
    found = [(trait.words, trait.learn(taught)) for trait in of]
    return [(words, score) for words, score in found if score is not None]


def chosen(scores: Sequence[tuple[str, Score]], fresh: Releases, promise: Promise, alarm: float) -> Guesser:
    """The guesser by one of some scores that shows the most on fresh releases; where none shows anything, the best."""
    # of guessers that show nothing for sure, the one that shows the most with a larger chance of error
    chances = [chance for chance in (alarm, 1e-3, 0.1, 0.5) if chance >= alarm]
    ranked = [([0.0] * len(chances), Guesser("", lambda releases: np.zeros(len(releases)), -np.inf, np.inf))]
    for words, score in scores:
        known = score(fresh)
        for low, high in _thresholds(known, fresh.coins, promise, alarm):
            one = Guesser(words, score, low, high)
            counts = one.counted(known, fresh.coins)
            ranked.append(([float(promise.shown(*counts, len(fresh), chance)) for chance in chances], one))
    return max(ranked, key=lambda one: one[0])[1]


def _thresholds(
    scores: Array, coins: NDArray[np.bool_], promise: Promise, alarm: float
) -> Iterator[tuple[float, float]]:
    """Below which scores to name the first data set, and from which on the second: one of them, both, or always one."""
    trials, told = len(scores), scores != 0
    scores, coins = scores[told], coins[told]
    cuts = np.unique(scores)
    if not len(cuts):
        return
    if len(cuts) > CUTS:
        tails = np.array([0.0005, 0.001, 0.002])
        shares = np.concatenate((np.linspace(0, 1, CUTS), tails, 1 - tails))
        cuts = np.unique(np.quantile(scores, shares, method="nearest"))
    below, below_wrong = (np.searchsorted(np.sort(scores[side]), cuts) for side in (~coins, coins))
    above, above_wrong = coins.sum() - below_wrong, (~coins).sum() - below

    def best(right: Codes, wrong: Codes) -> int:
        for chance in (alarm, 1e-3, 0.1, 0.5):
            shown = promise.shown(right, wrong, trials, chance)
            if shown.max() > 0:
                break
        return int(np.argmax(shown))

    low, high = best(below, below_wrong), best(above, above_wrong)
    yield cuts[low], np.inf
    yield -np.inf, cuts[high]
    if low <= high:
        yield cuts[low], cuts[high]
    always = best(below + above, below_wrong + above_wrong)
    yield cuts[always], cuts[always]
    some = np.unique(np.linspace(0, len(cuts) - 1, PAIRED).astype(np.intp))
    first, second = (some[side] for side in np.triu_indices(len(some)))
    pair = best(below[first] + above[second], below_wrong[first] + above_wrong[second])
    yield cuts[first[pair]], cuts[second[pair]]
