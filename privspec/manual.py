"""The manual that ships: `privspec help language`, `privspec help functions`, `privspec help prefix_sums`.

Its pages are `language/reference.md`, `language/words.md` and `functions/reference.md`: every example in them is a spec
that the tests solve or check, and how far one unit moves a linear function is worked out from the function, not written
down. `language/capabilities.md` shows what is printed for each kind of question, `language/limits.md` says what a plan
promises and where that ends, `language/program.md` shows the program behind a spec, and `language/terms.md` leads from
the field's terms to the pages that serve. The built-in specs are listed, shown, and copied out with the files that they
read.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache, partial
from importlib.resources import files
from importlib.resources.abc import Traversable
from math import log
from operator import itemgetter
from pathlib import Path
from textwrap import fill, shorten

import numpy as np

from privspec.core.diagnostics import UsageError
from privspec.core.files import write_atomically
from privspec.core.records import dataclass
from privspec.core.suggest import nearest
from privspec.functions import REGISTRY
from privspec.kernel.measures import ZERO_CONCENTRATED
from privspec.language.layout import SECTIONS
from privspec.model.domains import NUMBER, FiniteSet, Table, Tables, Type
from privspec.model.library import Argument, Arguments, FunctionError

_ENTRY = re.compile(r"^## (?P<head>[^\n]*)\n\n(?P<text>.*?)(?=^#|\Z)", re.M | re.S)
_EXAMPLE = re.compile(r"^```priv(?P<only> check)?\n(?P<spec>.*?)^```$", re.M | re.S)
TUTORIAL = ("language", "tutorial.md")
WORDS = ("language", "words.md")
CAPABILITIES = ("language", "capabilities.md")
LIMITS = ("language", "limits.md")
PROGRAM = ("language", "program.md")
TERMS = ("language", "terms.md")
_WHOLE = {"capabilities": CAPABILITIES, "limits": LIMITS, "program": PROGRAM}
_SEE = re.compile(r"^See: (?P<pages>.*)$", re.M)
SHOWN = 8
"""Entries of the vector that a function is tried on."""


@dataclass(frozen=True, slots=True)
class Example:
    """A spec in the manual; `solves`: it can be solved, and not only checked."""

    text: str
    solves: bool


def examples(page: str) -> tuple[Example, ...]:
    """The examples of a page, in order."""
    return tuple(Example(found["spec"], found["only"] is None) for found in _EXAMPLE.finditer(page))


@dataclass(frozen=True, slots=True)
class Entry:
    """A function, or words of the language, as the manual has it: how it is written, and its page."""

    signature: str
    text: str

    @property
    def name(self) -> str:
        return self.signature.partition("(")[0]

    @property
    def names(self) -> tuple[str, ...]:
        """The words that it is about, where it is no function."""
        return tuple(self.signature.split(", "))

    @property
    def first(self) -> str:
        """Its first sentence."""
        return re.split(r"(?<=[^.][.;])\s", self.text.replace("\n", " "), maxsplit=1)[0].rstrip(".;")


def page(package: str, name: str = "reference.md") -> str:
    """The page of a part of the language: "language" or "functions"; or the tutorial."""
    return files(f"privspec.{package}").joinpath(name).read_text(encoding="utf-8")


@cache
def functions() -> dict[str, Entry]:
    """The entries of all functions, by name, in the order of the page."""
    return {entry.name: entry for entry in _entries(page("functions"))}


@cache
def words() -> tuple[Entry, ...]:
    """The entries of measures, clauses, options, families, domains, laws: several may be about one word."""
    return tuple(_entries(page(*WORDS)))


@cache
def terms() -> tuple[Entry, ...]:
    """The entries of the field's terms: each leads to pages that serve, or says that there is nothing of the kind."""
    return tuple(_entries(page(*TERMS)))


def see(entry: Entry) -> tuple[str, ...]:
    """The pages that the entry of a term leads to."""
    found = _SEE.search(entry.text)
    return tuple(found["pages"].split(", ")) if found else ()


def _entries(text: str) -> Iterator[Entry]:
    return (Entry(match["head"], match["text"].strip()) for match in _ENTRY.finditer(text))


def help_text(topic: str | None) -> str:
    """What `privspec help TOPIC` prints: a page, a function, a word, a section, a template, or where to look.

    Raises: UsageError PS0732 if there is nothing of that name.
    """
    if topic is None:
        return _overview()
    if topic in PAGES:
        return PAGES[topic]()
    found = [_function(functions()[topic])] if topic in functions() else []
    found += [_word(entry) for entry in words() if topic in entry.names]
    if topic in SECTIONS:
        found.append(section(topic))
    if found:
        return "\n".join(found)
    templates = [template.name for template in list_templates()]
    if topic.removesuffix(".priv") in templates:
        return template_text(topic)
    there = topics()
    alike = [name for name in there if _folded(name) == _folded(topic)]
    if alike:
        return help_text(alike[0])
    by_name = {_singular(name): entry for entry in terms() for name in entry.names}
    if _singular(topic) in by_name:
        return _term(by_name[_singular(topic)])
    near = nearest(topic, (*there, *(name for entry in terms() for name in entry.names)))
    slip = near is not None and topic.lower() not in vocabulary() and " " not in topic
    if not slip and (places := search(topic)):
        listed = "".join(f"  privspec help {place.topic}\n      {place.shown(topic)}\n" for place in places)
        return f"What the manual says of {topic}:\n\n{listed}"
    hint = (
        f"did you mean {near}?" if near else "`privspec help` lists the pages, `privspec help terms` the field's terms"
    )
    raise UsageError.of("PS0732", f"the manual has no page {topic}", help=hint)


def topics() -> list[str]:
    """What `privspec help` has a page for, beside the field's terms."""
    named = (name for entry in words() for name in entry.names)
    return list(dict.fromkeys([*PAGES, *functions(), *SECTIONS, *named, *(one.name for one in list_templates())]))


def _folded(term: str) -> str:
    """A term without capitals, hyphens and accents: as people write it in a search box."""
    plain = unicodedata.normalize("NFKD", term).encode("ascii", "ignore").decode("ascii")
    return re.sub(r"[-_\s]+", " ", plain.lower()).strip()


def _singular(term: str) -> str:
    return _folded(term).removesuffix("s")


def _overview() -> str:
    return (
        "privspec help tutorial      seventeen questions, from the data to the page that people read\n"
        "privspec help capabilities  what can be asked for, a spec and what is printed for each\n"
        "privspec help limits        what a plan promises, and where that ends\n"
        "privspec help program       the convex program that a spec stands for: to read, change and solve\n"
        "privspec help language      the language, section by section, with examples\n"
        "privspec help functions     every function in a line\n"
        "privspec help words         measures, clauses, options, noise families, domains and laws, each in a line\n"
        "privspec help terms         the field's terms (clipping, group by, Pufferfish), and the pages they lead to\n"
        f"privspec help NAME          any of these whole (prefix_sums, {ZERO_CONCENTRATED.word}), "
        "a section (privacy), or a template\n"
        "privspec help how do I ..   where the manual says something of these words, or of others that mean the same\n"
        "privspec templates          the built-in specs\n"
        "privspec explain-error CODE the long form of a diagnostic\n"
        "privspec COMMAND --help     a command\n"
    )


def _with_output(place: tuple[str, str]) -> str:
    """A page of commands and what they print, set in from the margin."""
    return re.sub(r"^```\w+\n(.*?)^```$", lambda found: _indented(found[1]), page(*place), flags=re.M | re.S)


def _terms() -> str:
    """Every term in a line, with the pages that it leads to."""
    entries = (
        fill(f"{entry.signature}: {', '.join(see(entry))}", 98, initial_indent="  ", subsequent_indent="      ")
        for entry in terms()
    )
    listed = "\n".join(entries)
    head = "Terms of the field, and the pages that they lead to"
    return f"{head}\n\n{listed}\n\nprivspec help TERM shows one of them whole.\n"


def _term(entry: Entry) -> str:
    """What is said of a term, and the commands that show the pages it leads to."""
    text = _SEE.sub("", entry.text).strip()
    leads = "".join(f"  privspec help {name}\n" for name in see(entry))
    return f"{entry.signature}\n\n{text}\n\n{leads}"


def _language() -> str:
    return re.sub(r"^```.*\n", "", _EXAMPLE.sub(lambda found: _indented(found["spec"]), page("language")), flags=re.M)


def _functions() -> str:
    return _listed(page("functions"))


def _words() -> str:
    return _listed(page(*WORDS))


def _listed(text: str) -> str:
    """The entries of a page, each in a line."""
    entries, lines = _entries(text), []
    for line in text.splitlines():
        if line.startswith("# "):
            lines += ["", line[2:], ""]
        elif line.startswith("## "):
            entry = next(entries)
            lines.append(fill(f"{entry.signature}: {entry.first}", 98, initial_indent="  ", subsequent_indent="      "))
    return "\n".join(lines[1:]) + "\n\nprivspec help NAME shows one of them whole, with an example that runs.\n"


def _function(entry: Entry) -> str:
    parts = [_plain(entry), *sensitivity(entry.name), *_shown(entry)]
    if entry.name in (template.name for template in list_templates()):
        parts.append(f"There is a template of this name too: privspec templates {entry.name}")
    return "\n\n".join(parts) + "\n"


def _word(entry: Entry) -> str:
    return "\n\n".join((_plain(entry), *_shown(entry))) + "\n"


def _plain(entry: Entry) -> str:
    text = _EXAMPLE.sub("", f"{entry.text}\n").strip()
    return f"{entry.signature}\n\n{text}"


def _shown(entry: Entry) -> Iterator[str]:
    return (f"Example:\n\n{_indented(example.text).rstrip()}" for example in examples(f"{entry.text}\n"))


def section(name: str) -> str:
    """What the reference says of a section of a spec."""
    found = re.search(rf"^## {name}\n.*?(?=^## )", _language(), re.M | re.S)
    return found[0][3:].strip() + "\n" if found else ""


def _indented(spec: str) -> str:
    return "".join(f"    {line}\n" if line else "\n" for line in spec.splitlines())


PAGES: dict[str, Callable[[], str]] = {
    "tutorial": partial(_with_output, TUTORIAL),
    "capabilities": partial(_with_output, CAPABILITIES),
    "limits": partial(page, *LIMITS),
    "program": partial(page, *PROGRAM),
    "language": _language,
    "functions": _functions,
    "words": _words,
    "terms": _terms,
}
"""The pages that are printed whole."""


def sensitivity(name: str) -> Iterator[str]:
    """How far a linear function moves when one entry moves by one, or one record comes or goes; nothing of others."""
    function = REGISTRY.get(name)
    if function is None or not function.linear:
        return
    people = Table((("age", FiniteSet(("young", "old"))), ("sex", FiniteSet(("F", "M")))))
    table, vector = Argument(Type((), Tables(people))), Argument(Type((SHOWN,)))
    level = Argument(NUMBER, Fraction(1))
    for argument, moved, more in (
        (vector, f"one of {SHOWN} entries moves by 1", ()),
        (table, "one record comes or goes", ()),
        (table, "one record comes or goes (all 1-way tables of two attributes)", (level,)),
    ):
        try:
            bound = function.bind(Arguments((argument, *more)))
        except FunctionError:
            continue
        columns = np.asarray(bound.apply(np.eye(people.cell_count if argument is table else SHOWN)), dtype=np.float64)
        flat = np.abs(columns.reshape(-1, columns.shape[-1]))
        l1, l2 = float(flat.sum(axis=0).max()), float(np.sqrt((flat**2).sum(axis=0)).max())
        yield f"Sensitivity: when {moved}, the result moves by at most {l1:.4g} (l1) and {l2:.4g} (l2)."
        return


# --- search ---------------------------------------------------------------------------------------

UNASKED = frozenset(
    re.findall(
        r"\w+",
        "a about all an and any are as at be by can do does for from get give has have how i if in is it its kind make "
        "many me much must my need no not nothing of on one only or our out should so some than that the their them "
        "there these they this to use used was want we what when where which who whose why will with without you your",
    )
)
"""Words that say nothing of what is looked for."""
MOST_PLACES = 6
IN_TITLE, LED_TO, AN_EXAMPLE = 3, 2, 0.5
"""How much more a word counts that stands in a title, or whose meaning leads to a page; and less in an example."""
OFTEN = 400
"""Words of a text in which a word counts half as much as in a title of its own."""


@dataclass(frozen=True, slots=True)
class Place:
    """A part of the manual: the page that shows it, its title and its text."""

    topic: str
    title: str
    text: str
    example: bool = False

    def shown(self, topic: str) -> str:
        """Its title, and the first line that has most of the words."""
        wanted = set(stems(topic))
        lines = [
            line.strip() for line in self.text.splitlines() if line.strip() and not line.startswith(("```", "See: "))
        ]
        best = max(lines, key=lambda line: len(wanted & set(stems(line))), default="")
        return shorten(f"{self.title}: {best}", 160, placeholder=" ..")


def stems(text: str) -> list[str]:
    """The words of a text without their endings and without those that say nothing."""
    return [re.sub(r"(?<=...)(ies|ing|ed|es|s|e|y)$", "", word) for word in _plain_words(text) if word not in UNASKED]


def _plain_words(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii").lower()
    return re.findall(r"[a-z0-9_]+", plain)


@cache
def vocabulary() -> frozenset[str]:
    """Every word of the manual."""
    return frozenset(word for part in parts() for word in _plain_words(f"{part.title} {part.text}"))


@cache
def parts() -> tuple[Place, ...]:
    """All that is searched: entries, the parts of pages, templates."""
    found = [Place(name, entry.signature, entry.text) for name, entry in functions().items()]
    found += [Place(entry.names[0], entry.signature, entry.text) for entry in (*words(), *terms())]
    for topic, (folder, file) in {"language": ("language", "reference.md"), "tutorial": TUTORIAL, **_WHOLE}.items():
        for part in re.split(r"^## ", page(folder, file), flags=re.M)[1:]:
            title, _, text = part.partition("\n")
            found.append(Place(title if title in SECTIONS else topic, title, text))
    found += [Place(one.name, one.title or one.name, template_text(one.name), example=True) for one in list_templates()]
    return tuple(found)


@cache
def _indexed() -> tuple[tuple[Place, frozenset[str], Counter[str]], ...]:
    """Every part with the words of its title and those of its text."""
    return tuple((one, frozenset(stems(f"{one.topic} {one.title}")), Counter(stems(one.text))) for one in parts())


@cache
def _meanings() -> tuple[tuple[Entry, tuple[frozenset[str], ...]], ...]:
    """The field's terms, each with the words of its names."""
    return tuple((entry, tuple(frozenset(stems(name)) for name in entry.names)) for entry in terms())


def search(query: str) -> list[Place]:
    """The parts of the manual that are about much of a query, or that a term of the field in it leads to, best first.

    Words count by how few parts have them, as in BM25 (Robertson & Zaragoza 2009).
    """
    asked, every = set(stems(query)), _indexed()
    held = {word: sum(word in named or word in text for _, named, text in every) for word in asked}
    weights = {word: log(1 + len(every) / count) for word, count in held.items() if count}
    led = defaultdict[str, float](float)
    for entry, names in _meanings():
        means = [sum(weights.get(word, 0) for word in name) for name in names if name <= asked]
        if means:
            led[entry.names[0]] += 2 * LED_TO * max(means)
            for topic in see(entry):
                led[topic] += LED_TO * max(means)
    there = [[word for word in weights if word in named or word in text] for _, named, text in every]
    most = max(sum(map(weights.__getitem__, own)) for own in there)
    found = dict[str, tuple[float, Place]]()
    for own, (part, named, text) in zip(there, every, strict=True):
        called = set[str]() < {*stems(part.topic)} <= asked
        if 2 * sum(map(weights.__getitem__, own)) <= most and not led[part.topic] and not called:
            continue
        length = 1 + text.total() / OFTEN
        score = led[part.topic]
        for word in own:
            score += weights[word] * (IN_TITLE * (word in named) + text[word] / (text[word] + length))
        score *= AN_EXAMPLE if part.example else 1
        found[part.topic] = max(found.get(part.topic, (0, part)), (score, part), key=itemgetter(0))
    ranked = sorted(found.values(), key=itemgetter(0), reverse=True)
    return [part for _, part in ranked[:MOST_PLACES]]


# --- templates ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Template:
    """A built-in spec; `title` is the first line of its description."""

    name: str
    title: str


def list_templates() -> tuple[Template, ...]:
    """All built-in specs, by name."""
    found = [
        Template(entry.name.removesuffix(".priv"), _title(entry.read_text(encoding="utf-8")))
        for entry in files("privspec.specs").iterdir()
        if entry.name.endswith(".priv")
    ]
    return tuple(sorted(found, key=lambda t: t.name))


def _title(text: str) -> str:
    start = text.find('"""')
    return text[start + 3 : text.find('"""', start + 3)].strip().split("\n")[0] if start >= 0 else ""


def template_text(name: str) -> str:
    """The text of a built-in spec.

    Raises: UsageError PS0730 if there is none of that name.
    """
    wanted = name.removesuffix(".priv")
    names = [t.name for t in list_templates()]
    if wanted not in names:
        near = nearest(wanted, names)
        hint = f"did you mean {near}?" if near else f"there are {', '.join(names)}"
        raise UsageError.of("PS0730", f"there is no template {name}", help=hint)
    return files("privspec.specs").joinpath(f"{wanted}.priv").read_text(encoding="utf-8")


def _read_by(text: str, beside: list[Traversable]) -> list[Traversable]:
    """The files that a spec names, and those that its parts name."""
    found = [entry for entry in beside if f'"{entry.name}"' in text]
    for entry in [one for one in found if one.name.endswith(".priv")]:
        more = _read_by(entry.read_text(encoding="utf-8"), beside)
        found += [one for one in more if one.name not in {known.name for known in found}]
    return found


def copy_template(name: str, target: Path) -> tuple[Path, ...]:
    """Write a built-in spec to `target` and the files that it reads beside it; the paths written.

    Raises: UsageError PS0730, PS0731 if a file is there already.
    """
    text = template_text(name)
    path = target / f"{name.removesuffix('.priv')}.priv" if target.is_dir() else target
    beside = [entry for entry in files("privspec.specs").iterdir() if entry.name.endswith((".csv", ".priv"))]
    extra = _read_by(text, beside)
    written = (path, *(path.with_name(entry.name) for entry in extra))
    for place in written:
        if place.exists():
            raise UsageError.of("PS0731", f"{place} is there already", help="choose another name with -o")
    write_atomically(path, text.encode("utf-8"))
    for entry, place in zip(extra, written[1:], strict=True):
        write_atomically(place, entry.read_bytes())
    return written
