"""What is said of data: to everybody, no value that was read; to their keeper alone, how they fit their spec.

Diagnostics hold only what the spec declares and, for inputs of a declared size, how many rows or columns there are.
What is counted for the keeper while data are read is never part of a release, and nothing that is released, debited,
returned or refused depends on it.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from math import isfinite
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import DataError, Diagnostic, MisfitError
from privspec.core.records import dataclass, field
from privspec.model.reports import listing

CLIP_RULE = (
    "numbers outside the domain move to its nearest point, records outside a ball onto it; what is "
    "missing or cannot be read becomes the point nearest to zero"
)
DROP_RULE = "records with a value that is missing or not in its attribute's domain are left out of the counts"
FIRST_RULE = "a table's value that is missing or not in its attribute's domain becomes that domain's first value"
STRICT_RULE = "data that do not fit the declared domains are refused (strict)"
STRICT_WARNING = Diagnostic(
    "PS0810",
    "--strict refuses data that do not fit their domain, and a refusal reveals that such a record exists",
    help="use it only where the keeper of the data alone sees whether the run was refused",
    severity="warning",
)


def refuse(code: str, message: str, *notes: str, help: str | None = None) -> NoReturn:  # noqa: A002
    """Raise a DataError; any error being handled is hidden, because its text may quote the data."""
    raise DataError.of(code, message, *notes, help=help) from None


def refuse_strictly(name: str) -> NoReturn:
    """What --strict says when something does not fit: not what, not where, not how often."""
    refuse(
        "PS0809",
        f"the data for {name} do not all fit the declared domain, and --strict was asked for",
        "this refusal itself reveals something about the data",
        help="without --strict a public rule is applied to every record by itself",
    )


def refuse_unreadable(name: str, what: str) -> NoReturn:
    """A file or object that is not of the form its name or type says."""
    refuse("PS0803", f"the data for {name} cannot be read as {what}")


SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
"""What files have between columns in place of commas."""


def written(separator: str) -> str:
    """A separator as it is typed."""
    return "$'\\t'" if separator == "\t" else f"'{separator}'"


def slip_of_header(wanted: Sequence[str], names: Sequence[str]) -> str | None:
    """What to do about a header that lacks some of these columns and nearly names them: it is quoted nowhere."""
    lacking = [name for name in wanted if name not in names]
    there = {_folded(name) for name in names}
    if lacking and all(_folded(name) in there for name in lacking):
        named = ", ".join(lacking)
        return f"the first line names {named} in other letters: write {named}, capitals and signs as in the spec"
    for sign, called in SEPARATORS.items():
        cells = {_folded(cell.strip(' "')) for name in names if sign in name for cell in name.split(sign)}
        if all(_folded(name) in cells for name in wanted):
            return f"the first line has {called} between its columns: say --separator {written(sign)}"
    return None


def given_for(name: str, data: Mapping[str, Any]) -> Any:
    """The data of one input.

    Raises: DataError PS0801 if there are none.
    """
    if name not in data:
        refuse("PS0801", f"no data for the input {name}", help=f"give --input {name}=FILE")
    return data[name]


# --- for the keeper -------------------------------------------------------------------------------

MOST_WORDS = 1_000
"""Different unknown words that are told apart."""
SHOWN = 5
"""Unknown words that a report names, the most frequent first."""
LONGEST = 40
"""Signs of an unknown word that a report shows."""
THOUSAND = 1_000
MOST = 0.9
"""The share of values that makes a report ask about their unit."""
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:[ ,.'_\u00a0\u202f’]\d{3})+(?:[.,]\d+)?")
_COMMA = re.compile(r"[+-]?\d+,\d+")
_BETWEEN = re.compile(r"\s*[>,;|/=]+\s*|\s+")
_WITH_UNIT = re.compile(r"[+-]?[\d.,]+\s*[^\W\d_]{1,12}\.?")


@dataclass(eq=False, slots=True)
class Fit:
    """How one column of one input fits.

    fate: what becomes of a cell that does not fit, in words; words: the words that it may hold, if it holds words;
    what: how to say what it may hold; lower, upper: the ends of a range of numbers, None where there is none.
    """

    fate: str = ""
    words: tuple[str, ...] = ()
    lower: float | None = None
    upper: float | None = None
    what: str = ""
    rows: int = 0
    missing: int = 0
    unreadable: int = 0
    unknown: int = 0
    below: int = 0
    above: int = 0
    outside: int = 0
    small: int = 0
    nonzero: int = 0
    found: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def misfits(self) -> int:
        """How many cells a rule was applied to."""
        return self.missing + self.unreadable + self.unknown + self.below + self.above + self.outside

    def cell(self, cell: Any, times: int = 1) -> None:
        """A cell that is no number and no known word, as it was read."""
        if is_missing(cell):
            self.missing += times
        elif self.words:
            self.unknown += times
            text = str(cell)[: 4 * LONGEST].strip()
            if text in self.found or len(self.found) < MOST_WORDS:
                self.found[text] += times
        else:
            self.unreadable += times
            self.reasons[why_no_number(cell)] += times

    def numbers(self, values: NDArray[np.float64], times: int = 1) -> None:
        """Numbers (n,) as they were read, so many times each; those that are none were told by `cell`."""
        if self.lower is not None:
            self.below += times * int((values < self.lower).sum())
        if self.upper is not None:
            self.above += times * int((values > self.upper).sum())
        if self.upper is not None and self.upper >= THOUSAND:
            nonzero = (values != 0) & ~np.isnan(values)
            self.nonzero += times * int(nonzero.sum())
            self.small += times * int((nonzero & (np.abs(values) <= self.upper / THOUSAND)).sum())

    def tally(self, below: int, above: int, nonzero: int, small: int) -> None:
        """Numbers that were counted where they are: the last two where the range is one of thousands."""
        self.below, self.above = self.below + below, self.above + above
        if self.upper is not None and self.upper >= THOUSAND:
            self.nonzero, self.small = self.nonzero + nonzero, self.small + small

    def counts(self) -> Iterator[str]:
        """What does not fit, in numbers alone; nothing where all does."""
        for count, what in (
            (self.unknown, "not one of the declared values"),
            (self.unreadable, "not readable as a number"),
            (self.missing, "missing"),
            (self.below, f"below {_plain(self.lower)}"),
            (self.above, f"above {_plain(self.upper)}"),
            (self.outside, f"{self._beyond}: moved to the nearest"),
        ):
            if count:
                yield f"{count:,} of {self.rows:,} {what}"
        yield from self._units()

    def details(self) -> Iterator[str]:
        """What does not fit, with the words that are none and what may be meant: one line each."""
        shown = _most_frequent(self.found)[:SHOWN]
        for text, count in shown:
            yield f"{count:,} of {self.rows:,} say {_shown(text)}: not {self._what}{self._meant(text)}"
        rest = self.unknown - sum(count for _, count in shown)
        if rest:
            yield f"{rest:,} of {self.rows:,} say other words: not {self._what}"
        for reason, count in _most_frequent(self.reasons):
            yield f"{count:,} of {self.rows:,} are not readable as numbers: {reason}"
        if self.missing:
            yield f"{self.missing:,} of {self.rows:,} are missing"
        for count, where in ((self.below, f"below {_plain(self.lower)}"), (self.above, f"above {_plain(self.upper)}")):
            if count:
                yield f"{_share(count, self.rows)} {where}: moved to it"
        if self.outside:
            yield f"{_share(self.outside, self.rows)} {self._beyond}: moved to the nearest"
        yield from self._units()

    @property
    def then(self) -> str:
        """What becomes of cells that do not fit, where there are some that are moved nowhere."""
        return f"; {self.fate}" if self.fate and (self.unreadable or self.missing or self.unknown) else ""

    @property
    def _beyond(self) -> str:
        return self.what or "not one of the declared values as it stands"

    @property
    def _what(self) -> str:
        return self.what or f"one of {_few(self.words)}"

    def _units(self) -> Iterator[str]:
        if self.upper is not None and self.nonzero and self.small >= MOST * self.nonzero:
            yield (
                f"{_share(self.small, self.nonzero)} of those that are not 0 within {_plain(self.upper / THOUSAND)} "
                f"where {_plain(self.upper)} is allowed: is this in thousands?"
            )
        elif self.upper is not None and self.rows and self.above >= self.rows / 2:
            yield f"most are above {_plain(self.upper)}: is the spec in another unit, such as thousands?"

    def _meant(self, text: str) -> str:
        known = {_folded(word): word for word in self.words}
        # a ballot is written best first, with spaces between
        parts = [part for part in _BETWEEN.split(text) if part]
        spaced = " ".join(known.get(_folded(part), part) for part in parts)
        if len(parts) > 1 and (_folded(spaced) in known or all(_folded(part) in known for part in parts)):
            return f" (write `{known.get(_folded(spaced), spaced)}`)"
        close = get_close_matches(_folded(text), list(known), 1, 0.7)
        found = known.get(_folded(text)) or (known[close[0]] if close else None)
        return "" if found is None else f" (did you mean {found}?)"


def warn(said: Diagnostic) -> bool:
    """To go on, with a warning."""
    warnings.warn("; ".join((said.message, *said.notes, *(said.help or "").split("\n\n"))), stacklevel=3)
    return True


@dataclass(eq=False, slots=True)
class DataOwnerReport:
    """What is said to the keeper of the data: by input, and by column of an input that has several.

    `asks`: whether they want to go on, before anything is debited, where something is to be thought about.
    """

    fits: dict[tuple[str, str], Fit] = field(default_factory=dict)
    remarks: dict[str, list[str]] = field(default_factory=dict)
    counted: dict[str, float] = field(default_factory=dict)
    """Of the records of an input, the share that is not left out, for the reason that leaves out most."""
    asks: Callable[[Diagnostic], bool] = warn

    def fit(
        self,
        name: str,
        column: str | None = None,
        *,
        fate: str = "",
        words: Sequence[str] = (),
        lower: float | None = None,
        upper: float | None = None,
        what: str = "",
    ) -> Fit:
        """Where to count how a column fits; the same one each time it is asked for."""
        key = (name, column or name)
        if key not in self.fits:
            low, high = (end if end is not None and isfinite(end) else None for end in (lower, upper))
            self.fits[key] = Fit(fate, tuple(words), low, high, what)
        return self.fits[key]

    def left_out(self, name: str, lost: int, total: int, why: str) -> None:
        """So many records of an input, as they fit nothing."""
        if lost:
            self.counted[name] = min(self.counted.get(name, 1.0), (total - lost) / total)
            self.remark(name, f"{lost:,} of {total:,} records {why} and are left out")

    @property
    def fitting(self) -> float:
        """The share of the cells that fit in the column that fits least, or of the records that count, if it is less.

        1 where nothing was read.
        """
        cells = (max(fit.rows - fit.misfits, 0) / fit.rows for fit in self.fits.values() if fit.rows)
        return min((*cells, *self.counted.values()), default=1.0)

    def check(self, share: float) -> None:
        """Raises: MisfitError PS0813 if less than such a share of the data fits: who asks is told so, and no more."""
        if self.fitting < share:
            raise MisfitError.of(
                "PS0813",
                "less of the data fits the spec than was asked for",
                "nothing was drawn, and nothing was spent",
                "whoever sees this refusal learns something about the data",
                help="see how they fit: privspec data PLAN --input NAME=FILE",
            )

    def remark(self, name: str, text: str) -> None:
        known = self.remarks.setdefault(name, [])
        if text not in known:
            known.append(text)

    def brief(self) -> list[str]:
        """What a run says: how many cells do not fit, no cell; nothing where all fit."""
        lines = []
        for (name, column), fit in self.fits.items():
            found = ", ".join(fit.counts())
            if found:
                lines.append(f"{_title(name, column)}: {found}{fit.then}")
        lines += [f"{name}: {text}" for name, texts in self.remarks.items() for text in texts]
        return lines

    def report(self) -> list[str]:
        """What `privspec data` says: a line or more for each column."""
        lines = []
        for name in dict.fromkeys([*(n for n, _ in self.fits), *self.remarks]):
            lines += [f"{name}: {text}" for text in self.remarks.get(name, ())]
            for (owner, column), fit in self.fits.items():
                if owner != name:
                    continue
                verb = "does" if fit.misfits == 1 else "do"
                said = f"{fit.misfits:,} {verb} not fit{fit.then}" if fit.misfits else "all fit"
                lines.append(f"{_title(name, column)}: {fit.rows:,} values, {said}")
                lines += [f"  {line}" for line in fit.details()]
        return lines


def _most_frequent(counts: Counter[str]) -> list[tuple[str, int]]:
    """The most frequent first; in the order of their texts where they are as frequent, whichever was read first."""
    return sorted(counts.items(), key=lambda one: (-one[1], one[0]))


def is_missing(cell: Any) -> bool:
    """Whether a cell is blank."""
    return cell is None or (isinstance(cell, str) and not cell.strip()) or (isinstance(cell, float) and cell != cell)


def why_no_number(cell: Any) -> str:
    """Why a cell is no number, without a sign of the cell itself."""
    if not isinstance(cell, str):
        return "something else than a number stands there"
    text = cell.strip()
    if any(unicodedata.category(sign) == "Sc" for sign in text):
        return "a currency sign stands there: write the number alone"
    if text.endswith("%"):
        return "a per cent sign stands there: write the number alone"
    if _COMMA.fullmatch(text) and not _GROUPED.fullmatch(text):
        return "a comma stands where a point is expected: --decimal ',' reads it as one"
    if _GROUPED.fullmatch(text):
        return "signs stand between the thousands: write digits and a point alone"
    if _WITH_UNIT.fullmatch(text):
        return "a unit stands after the number: write the number alone"
    if text.startswith('"') or text.endswith('"'):
        return "a quote stands there that nothing closes"
    return "words stand where numbers are expected"


def _folded(text: str) -> str:
    return re.sub(r"[\s_-]+", " ", unicodedata.normalize("NFKC", text).casefold()).strip()


def _title(name: str, column: str) -> str:
    return name if name == column else f"{name}, {column}"


def _shown(text: str) -> str:
    """A word on one line, without signs that a terminal would obey."""
    plain = "".join(sign if sign.isprintable() else "·" for sign in text)
    return f'"{plain[:LONGEST]}{"..." if len(plain) > LONGEST else ""}"'


def _few(words: Sequence[str]) -> str:
    return ", ".join(words) if len(words) <= 6 else f"{', '.join(words[:5])}, ..., {words[-1]}"


def _plain(value: float | None) -> str:
    if value is None:
        return "0"
    return f"{value:,.0f}" if value == int(value) and abs(value) < 1e15 else f"{value:g}"


def _share(count: int, rows: int) -> str:
    percent = 100 * count / max(rows, 1)
    return f"{percent:.0f} %" if percent >= 1 else f"{count:,} of {rows:,}"


def refuse_untrue(lines: Sequence[int]) -> NoReturn:
    """Data of which the facts on these lines of a spec are not true: nothing is promised of them."""
    told = listing([f"line {line}" for line in lines], "or")
    refuse(
        "PS0821",
        f"the data are not as {told} says of all data",
        "nothing was drawn and nothing was spent; that a run is refused tells that it is not true",
        help="correct the spec, or the data",
    )
