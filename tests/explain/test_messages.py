"""Message files: a closed world, every sentence rendered and short, no number in it, no key that nobody uses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from importlib.resources import files
from pathlib import Path

import pytest

from privspec.explain import facts as of_facts
from privspec.explain.document import Judged, Note, SpecLine, Status
from privspec.explain.messages import (
    _HOLE,
    Message,
    MessageError,
    messages,
    phrase,
    phrases,
    read,
    say,
    sentences,
    shown,
    source,
)
from privspec.explain.quantities import rounded
from privspec.kernel.trust import KINDS

from .test_sentences import sentences as apart
from .test_sentences import words

FOLDER = Path(str(files("privspec.explain"))) / "messages"
NAMES = sorted(path.stem for path in FOLDER.iterdir())
EVERY = [one for name in NAMES for section in messages(name).values() for one in section]
NOTES = Path(__file__).parents[2] / "privspec/noise/notes"
CODE = "\n".join(path.read_text("utf-8") for path in FOLDER.parent.glob("*.py"))
MOST_PUBLIC, MOST = 30, 35
PUBLIC = {"public", "questions"}
"""Files all of whose sentences stand on the public page."""
MADE = "so many"
"""Stands for any value: a number with its unit, two names."""
LABELS = {"drawn", "subject", "reached", "curve", "entry", "note", "accuracy", "measure", "heading", "compared", "ways"}
LABELS |= {"wide", "unbounded"}
SHARED = {"public"} | set(
    re.findall(
        r'(?:self\._(?:phrases|sentences)\("|f"\{self\.page\}\.)(\w+)"', Path(of_facts.__file__).read_text("utf-8")
    )
)
"""The sections that are written for every family alike."""


def section_of(one: Message) -> str:
    return one.key.rpartition(".")[0]


def rendered(text: str) -> set[str]:
    """A text with made values: the first of its choices, and the second."""
    first = _HOLE.sub(lambda hole: MADE if hole[2] is None else hole[2], text)
    return {first, _HOLE.sub(lambda hole: MADE if hole[2] is None else hole[3], text)}


def public(one: Message) -> bool:
    """Whether it stands on the page for the people in the data."""
    name, section, _ = one.key.split(".")
    return name in PUBLIC or section.startswith("public")


def test_there_are_messages() -> None:
    assert len(EVERY) > 100
    assert len({one.key for one in EVERY}) == len(EVERY)


@pytest.mark.parametrize("name", NAMES)
def test_every_sentence_can_be_rendered_and_is_short(name: str) -> None:
    for one in (one for one in EVERY if one.key.startswith(f"{name}.") and one.status is not None):
        for text in rendered(one.text):
            assert text[0].isupper() or text.startswith((MADE, "μ", "`")), one.key
            assert text.endswith((".", "?", "]", MADE)), one.key
            assert not re.search(r"  |\s[.,;:]", text), one.key
            long = [part for part in apart(text) if words(part) > (MOST_PUBLIC if public(one) else MOST)]
            assert not long, one.key


@pytest.mark.parametrize("name", NAMES)
def test_no_message_holds_a_number(name: str) -> None:
    """But those of formulas and of names: l1, e^ε, SHA-256; theorems are quoted with theirs."""
    for one in EVERY:
        if one.key.startswith(f"{name}.") and name != "paper":
            assert not re.search(r"(?<![\w^-])\d", _HOLE.sub("", re.sub(r"`[^`]*`", "", one.text))), one.key


@pytest.mark.parametrize("name", NAMES)
def test_sources_are_known(name: str) -> None:
    for one in EVERY:
        for by in one.by if one.key.startswith(f"{name}.") else ():
            found = SpecLine(1) if _HOLE.fullmatch(by) else source(by)
            assert not isinstance(found, Note) or (NOTES / f"{found.name}.md").is_file(), one.key


def used(one: Message) -> bool:
    """Whether code names it: its key, its section or what it begins with, or its section as one of every family."""
    name, section, key = one.key.split(".")
    if name == "trust":
        return section in KINDS and f'"{key}"' in CODE
    if name == "questions" and one.status is None and f"questions.{section}" not in CODE:
        return (section == "any" or f'"{section}"' in CODE) and f'"{key}"' in CODE
    if name == "questions" and f"questions.{section}" not in CODE:
        kind, _, place = section.rpartition("_")
        return f'"{kind}"' in CODE and f"}}_{place}" in CODE
    if section == "labels":
        return key in LABELS
    of_family = (name == "shared" or f'page = "{name}"' in CODE) and (
        section in SHARED or re.search(rf'_(?:phrases|sentences)\("{section}"', CODE) is not None
    )
    named = rf'"{re.escape(name)}\.{re.escape(section)}(?:\.{re.escape(key)})?"|f"{name}\.{section}\.\{{'
    return of_family or re.search(named, CODE) is not None


def test_no_key_is_dead() -> None:
    assert not [one.key for one in EVERY if not used(one)]


def test_every_key_in_the_code_exists() -> None:
    named = set(re.findall(rf'"((?:{"|".join(NAMES)})\.\w+\.\w+)"', CODE))
    assert not named - {one.key for one in EVERY}


@pytest.mark.parametrize("name", [name for name in NAMES if f'page = "{name}"' in CODE])
def test_every_family_has_all_labels(name: str) -> None:
    kin = re.search(rf'page = "{name}"\n    kin = "(\w+)"', CODE)
    files = (name, kin[1] if kin else name, "shared")
    found = {one.key.rpartition(".")[2] for file in files for one in messages(file)["labels"]}
    assert found == LABELS


def test_what_a_family_gives_is_named() -> None:
    """Names that the code gives a page besides its attributes are those of some message of it."""
    for path in FOLDER.parent.glob("*.py"):
        text = path.read_text("utf-8")
        for part in re.split(r"\n(?=class |@dataclass)", text):
            page = re.search(r'    page = "(\w+)"', part)
            given = re.search(r"    def values\(.*?\n(?=    def |\Z)", part, re.DOTALL)
            if page and given:
                names = frozenset[str]().union(
                    *(one.names for section in messages(page[1]).values() for one in section)
                )
                assert not set(re.findall(r'^            "(\w+)":', given[0], re.MULTILINE)) - names, page[1]


GIVEN = """
[public.a]
proved = "It has {n} {n:record|records} of {names}."
by = ["note sums", "{line}"]
if = "n and not hidden"

[rows]
First = "one of {n}"
Second = { text = "hidden", if = "hidden is yes" }
"""


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    known = read("made", GIVEN)
    monkeypatch.setattr("privspec.explain.messages.messages", lambda name: known)
    return


@pytest.mark.usefixtures("made")
def test_a_message_is_a_sentence_with_its_sources() -> None:
    found = say("made.public.a", n=1200, names=["x", "y"], line=SpecLine(3), hidden="")
    assert found.text == "It has 1,200 records of x and y."
    assert found.status is Status.PROVED
    assert found.because == (Note("sums"), SpecLine(3))
    assert say("made.public.a", n=1, names=("x",), line=(), hidden="").text == "It has 1 record of x."
    assert sentences("made.public", n=0, names=(), line=(), hidden="") == ()
    assert phrases("made.rows", n=2, hidden="yes") == [("First", "one of 2"), ("Second", "hidden")]
    assert phrases("made.rows", n=2, hidden="no") == [("First", "one of 2")]


@pytest.mark.usefixtures("made")
def test_what_is_missing_or_unused_is_refused() -> None:
    for given in ({"names": "x", "line": ()}, {"n": 1, "names": "x", "line": (), "hidden": "", "more": 1}):
        with pytest.raises(MessageError):
            say("made.public.a", **given)
    with pytest.raises(MessageError):
        say("made.public.b")
    with pytest.raises(MessageError):
        say("made.rows.First", n=1)
    assert phrase("made.rows.First", n=1) == "one of 1"


@pytest.mark.parametrize(
    "text",
    [
        'proved = "x"',
        "[a]\nb = 1",
        '[a.b]\nproved = "x"',
        '[a.b]\nby = ["note sums"]',
        '[a.b]\nproved = "x"\nassumed = "x"\nby = ["note sums"]',
        '[a.b]\nproved = "x"\nby = ["note sums"]\ncolour = "red"',
        '[a.b]\ntext = "x"\nby = ["note sums"]',
        '[a.b]\nproved = "x {1}"\nby = ["note sums"]',
        '[a.b]\nproved = "x {n:one}"\nby = ["note sums"]',
        '[a]\nb = "x"\nb = "y"',
        '[a]\nb = "x',
    ],
)
def test_what_no_file_may_say(text: str) -> None:
    with pytest.raises((MessageError, ValueError)):
        read("made", text)


def test_values_are_printed_in_one_way() -> None:
    assert shown(1234567) == "1,234,567"
    assert shown(Fraction(1, 3)) == "1/3"
    assert shown(rounded(2.34567)) == "2.35"
    assert shown(("a", 2, "c")) == "a, 2 and c"
    for value in (True, 0.1, None):
        with pytest.raises(MessageError):
            shown(value)
    assert source("claim law") == Judged("law")
    with pytest.raises(MessageError):
        source("rumour law")
