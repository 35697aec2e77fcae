"""A page as data: sentences that say how they are known, in sections with tables, plots and figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from functools import partial
from importlib.resources import files
from typing import ClassVar, TypeAlias

from privspec.core.records import dataclass, replace


class Status(Enum):
    """How a statement is known. Whether one is proved is what the kernel says of the plan, in the run that shows it."""

    PROVED = "proved"
    FOLLOWS = "follows"
    REPORTED = "reported by the compiler, not certified"
    TESTED = "tested"
    ASSUMED = "assumed"
    ASSERTED = "asserted by the user"


@dataclass(frozen=True, slots=True)
class SpecLine:
    """A line of the spec, numbered from 1."""

    number: int
    text: str = ""

    def __str__(self) -> str:
        return f"spec line {self.number}"

    def to_json(self) -> dict[str, object]:
        return {"line": self.number, "text": self.text}


@dataclass(frozen=True, slots=True)
class Note:
    """A proof note that ships with the package."""

    name: str

    def __str__(self) -> str:
        return f"note {self.name}"

    def to_json(self) -> dict[str, object]:
        return {"note": self.name}


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim of the kernel, by its name: "privacy"."""

    claim: str

    def __str__(self) -> str:
        return f"claim {self.claim}"

    def to_json(self) -> dict[str, object]:
        return {"claim": self.claim}


Because: TypeAlias = SpecLine | Note | Judged


@dataclass(frozen=True, slots=True)
class Accuracy:
    """What a sentence says of errors: for each output the least and the largest size of what is measured.

    `besides`: for each of them, and each rule for data that do not fit, which way it moves the output as well.
    """

    measure: str
    sizes: tuple[tuple[str, float, float], ...]
    besides: tuple[tuple[str, str, str], ...] = ()

    def to_json(self) -> dict[str, object]:
        sizes = [{"output": name, "least": least, "most": most} for name, least, most in self.sizes]
        besides = [{"output": name, "done": done, "way": way} for name, done, way in self.besides]
        return {"measure": self.measure, "sizes": sizes, "besides": besides}


@dataclass(frozen=True, slots=True)
class Sentence:
    """One statement with its status and everything it rests on; `accuracy`: what it says of errors, if anything."""

    text: str
    status: Status
    because: tuple[Because, ...]
    accuracy: Accuracy | None = None

    def __post_init__(self) -> None:
        if not self.because:
            raise ValueError(f"a sentence must rest on something: {self.text!r}")

    @property
    def basis(self) -> str:
        """The status and the sources, in words."""
        return f"{self.status.value}: {', '.join(map(str, self.because))}"

    def judged(self, derived: frozenset[str]) -> Sentence:
        """The sentence with the status that it has where the kernel derived claims of these names."""
        if self.status is not Status.PROVED:
            return self
        claims = {b.claim for b in self.because if isinstance(b, Judged)}
        status = Status.PROVED if claims <= derived else Status.REPORTED
        return replace(self, status=status if claims else Status.FOLLOWS)

    def to_json(self) -> dict[str, object]:
        found: dict[str, object] = {
            "text": self.text,
            "status": self.status.value,
            "because": [b.to_json() for b in self.because],
        }
        return found if self.accuracy is None else found | {"accuracy": self.accuracy.to_json()}


def _said(status: Status, text: str, *because: Because) -> Sentence:
    return Sentence(text, status, because)


proved = partial(_said, Status.PROVED)
"""A statement with a proof: by a claim of the kernel if it rests on one, else by the notes and lines named."""
reported = partial(_said, Status.REPORTED)
"""A statement of the compiler that nothing certifies."""
tested = partial(_said, Status.TESTED)
"""A statement that tests support."""
assumed = partial(_said, Status.ASSUMED)
"""A statement that nothing in the plan can show."""
asserted = partial(_said, Status.ASSERTED)
"""A statement of the spec's author."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Sentences that run on; `strong` for the one thing a reader should take away."""

    kind: ClassVar = "paragraph"
    sentences: tuple[Sentence, ...]
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Points:
    """Sentences one below the other."""

    kind: ClassVar = "points"
    sentences: tuple[Sentence, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a caption; the first cell of a row names it. `numeric` columns are aligned to the right."""

    kind: ClassVar = "table"
    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: frozenset[int] = frozenset()
    label: bool = False
    fields: bool = False
    """Whether its cells are to be filled in by hand."""


def table(caption: str, header: str | Iterable[str], rows: Iterable[Iterable[object]], *numeric: int) -> Table:
    """A table of any things with words; a header in one text is divided at " | ".

    Nothing (None) is an empty cell, True and False are "yes" and "no".
    """
    titles = tuple(header.split(" | ")) if isinstance(header, str) else tuple(header)
    return Table(caption, titles, tuple(tuple(map(_cell, row)) for row in rows), frozenset(numeric))


def _cell(thing: object) -> str:
    return ("yes" if thing else "no") if isinstance(thing, bool) else "" if thing is None else str(thing)


@dataclass(frozen=True, slots=True)
class Plot:
    """A drawing with words for those who do not see it, and the table of its numbers.

    `draw` makes the SVG text; it is called only by renderers that show drawings. `caption` is what all readers
    see below it, `alt` what it shows.
    """

    kind: ClassVar = "plot"
    name: str
    draw: Callable[[], str]
    alt: str
    caption: str
    twin: Table


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing without numbers, whose words stand beside it: an SVG file as text, kept apart from the page."""

    kind: ClassVar = "picture"
    draw: Callable[[], str]
    alt: str


@dataclass(frozen=True, slots=True)
class IconRow:
    """`filled` figures of `of`, under a short label."""

    label: str
    filled: int
    of: int


@dataclass(frozen=True, slots=True)
class IconArray:
    """Rows of figures drawn to the same scale."""

    kind: ClassVar = "icons"
    caption: str
    rows: tuple[IconRow, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """Text to be shown as it is: commands, lines of the spec."""

    kind: ClassVar = "listing"
    caption: str
    text: str


@dataclass(frozen=True, slots=True)
class Notes:
    """The proof notes that a page names, in the order in which it does, each in full behind a fold."""

    kind: ClassVar = "notes"
    notes: tuple[str, ...]


def note_text(name: str) -> tuple[str, str]:
    """The title of a note, and what stands below it."""
    text = files("privspec.noise").joinpath(f"notes/{name}.md").read_text("utf-8")
    title, _, rest = text.partition("\n")
    return title.removeprefix("# ").strip(), rest.strip()


Block: TypeAlias = Notes | Paragraph | Points | Table | Plot | Picture | IconArray | Listing


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands under it."""

    heading: str
    blocks: tuple[Block, ...]


def sections(*found: tuple[str, Iterable[Block | None]]) -> Iterator[Section]:
    """Those of the sections that have something to show."""
    for heading, blocks in found:
        if shown := tuple(block for block in blocks if block is not None):
            yield Section(heading, shown)


@dataclass(frozen=True, slots=True)
class Document:
    """A whole page. `shows_basis` is whether every sentence is followed by its status and sources."""

    title: str
    subtitle: str
    reader: str
    shows_basis: bool
    sections: tuple[Section, ...]
    footer: str = ""
    lang: str = "en-GB"

    def with_notes(self) -> Document:
        """The page, and at its end the notes that its sentences rest on; the same page where it names no sources."""
        blocks = (block for section in self.sections for block in section.blocks)
        said = (s for block in blocks if isinstance(block, Paragraph | Points) for s in block.sentences)
        names = tuple(dict.fromkeys(b.name for sentence in said for b in sentence.because if isinstance(b, Note)))
        if not names or not self.shows_basis:
            return self
        return replace(self, sections=(*self.sections, Section("Proof notes", (Notes(names),))))

    def judged(self, derived: frozenset[str]) -> Document:
        """The page with the status that each sentence has where the kernel derived claims of these names."""

        def block(found: Block) -> Block:
            if not isinstance(found, Paragraph | Points):
                return found
            return replace(found, sentences=tuple(s.judged(derived) for s in found.sentences))

        return replace(self, sections=tuple(Section(s.heading, tuple(map(block, s.blocks))) for s in self.sections))
