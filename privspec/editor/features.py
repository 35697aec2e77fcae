"""What an editor shows of a spec: errors and their fixes, what a word means, what may stand at the cursor.

Everything is a function of a text and offsets into it, and none fails on an unfinished text. Nothing is solved.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from privspec.core.diagnostics import Diagnostic, PrivspecError
from privspec.core.records import dataclass
from privspec.core.spans import Source, Span
from privspec.functions import REGISTRY
from privspec.kernel.measures import BY_WORD, PATTERN
from privspec.language import syntax
from privspec.language.automaton import Reached, Token, parse_table, reach
from privspec.language.layout import SECTIONS, Layout, lay_out
from privspec.language.parser import MAX_CHARACTERS, read
from privspec.language.walk import walk
from privspec.manual import functions, page, sensitivity, words
from privspec.model.distances import DISTANCES
from privspec.model.evaluate import DOMAIN_CALLS
from privspec.model.graph import GraphNode, Model
from privspec.model.option_rules import families
from privspec.model.priors import DISTRIBUTIONS
from privspec.model.reports import Report
from privspec.model.scope import TRUST_WORDS, Declaration, Scope, collect
from privspec.model.suggestions import TRIED, Fix, proposed, works
from privspec.model.targets import linear_map
from privspec.pipeline import Request, check

LARGE = 1024
"""Numbers that a spec holds, up to which the sensitivity of a value is worked out while one waits."""
_WORD = re.compile(r"[^\W\d²³¹][^\W²³¹]*")
_WORD_BEFORE = re.compile(r"(?:[^\W\d²³¹][^\W²³¹]*)?\Z")
_MEASURE = re.compile(rf"[-‐‑]({PATTERN})\b")
_MEASURE_BEFORE = re.compile(r"[-‐‑]([A-Za-z-]*)\Z")
_ROLES = {
    "input": "secret input",
    "constant": "public constant",
    "intermediate": "computed on the way",
    "output": "released",
    "choose": "chosen by the solver",
    "parameter": "public parameter",
    "party": "index set",
    "component": "part",
}


@dataclass(frozen=True, eq=False, slots=True)
class Looked:
    """A spec as it stands: the tree of what can be read, its meaning where there is one, and what is wrong with it."""

    source: Source
    base: Path | None
    tree: syntax.Spec
    model: Model | None
    diagnostics: tuple[Diagnostic, ...]


def look(source: Source, base: Path | None = None) -> Looked:
    """Everything that `privspec check` says of a text; files that it names are looked for in the folder `base`."""
    tree, _ = read(source)
    try:
        model = check(Request(source, base=base))
    except PrivspecError as error:
        return Looked(source, base, tree, None, error.diagnostics)
    return Looked(source, base, tree, model, model.warnings)


# --- fixes ----------------------------------------------------------------------------------------


def fixes(looked: Looked, diagnostic: Diagnostic) -> tuple[Fix, ...]:
    """What a message proposes to write, where writing it does away with the message and brings no error."""
    errors = sum(one.is_error for one in looked.diagnostics)
    found = []
    tried: set[str] = set()
    for fix in islice(proposed(looked.source, diagnostic), TRIED):
        text = fix.applied(looked.source.text)
        if text in tried:
            continue
        tried.add(text)
        after = look(Source(looked.source.name, text), looked.base).diagnostics
        fewer = sum(one.is_error for one in after) <= errors - diagnostic.is_error
        if fewer and works(looked.source, (), diagnostic, fix, after):
            found.append(fix)
    return tuple(found)


# --- words ----------------------------------------------------------------------------------------


def word_at(source: Source, offset: int) -> Span | None:
    """The word under the cursor, or just before it; None in comments and between words."""
    if len(source.text) > MAX_CHARACTERS or any(
        one.span.start < offset <= one.span.end for one in lay_out(source.text).comments
    ):
        return None
    start = source.text.rfind("\n", 0, offset) + 1
    end = source.text.find("\n", offset)
    for found in _WORD.finditer(source.text, start, len(source.text) if end < 0 else end):
        if found.start() <= offset <= found.end():
            return Span(found.start(), found.end())
    return None


def _part(tree: syntax.Spec, offset: int) -> syntax.Spec:
    """The spec of a file that a place belongs to: the first one, or one that follows it."""
    return next((one for one in tree.within if one.span.start <= offset <= one.span.end), tree)


def names(looked: Looked, offset: int) -> Scope:
    """What is declared in the spec around a place."""
    return collect(_part(looked.tree, offset), Report(looked.source))


def hover(looked: Looked, offset: int, known: Model | None = None) -> str | None:
    """What the word under the cursor is, as Markdown; `known` is the meaning of an earlier text that had one."""
    found = _hovered(looked, offset, known)
    return None if found is None else found.replace("```priv check", "```priv")


def _hovered(looked: Looked, offset: int, known: Model | None) -> str | None:
    span = word_at(looked.source, offset)
    if span is None:
        return None
    text = looked.source.text
    word, after = looked.source.slice(span), text[span.end : span.end + 1]
    declared = names(looked, offset).get(word)
    if word in functions() and (after == "(" or declared is None):
        return _of_function(word)
    if declared is not None:
        return _of_name(declared, looked.model or known)
    if word in SECTIONS and after == ":":
        return _of_section(word)
    measures = _MEASURE.finditer(text, max(0, span.start - len(PATTERN)), span.end + len(PATTERN))
    measure = next((one[1] for one in measures if one.start(1) <= span.start and span.end <= one.end(1)), word)
    return "\n---\n\n".join(f"**{measure}**\n\n{one.text}\n" for one in words() if measure in one.names) or None


def _of_function(name: str) -> str:
    entry = functions()[name]
    moved = "".join(f"\n{line}\n" for line in sensitivity(name))
    return f"```priv\n{entry.signature}\n```\n{moved}\n{entry.text}\n"


def _of_section(name: str) -> str:
    found = re.search(rf"^## {name}\n\n(.*?)(?=^```|^## )", page("language"), re.M | re.S)
    return f"**{name}**\n\n{found[1].strip()}\n" if found else f"**{name}**\n"


def _of_name(declared: Declaration, model: Model | None) -> str:
    head = f"**{declared.name}**: {_ROLES[declared.what]}\n"
    lines = [] if model is None else list(_known_of(declared.name, model))
    return head + "".join(f"\n- {line}" for line in lines) + ("\n" if lines else "")


def _known_of(name: str, model: Model) -> Iterator[str]:
    """What a checked spec knows of a name: its values, what it is computed from, how far it moves."""
    from privspec.explain.graphs import extent
    from privspec.model.parameters import parameter_words
    from privspec.model.values import show

    if name in model.parameters:
        value = model.parameters[name]
        if shape := getattr(value, "shape", ()):
            yield f"{' x '.join(map(str, shape))} numbers"
        elif isinstance(value, tuple):
            yield f"{{{', '.join(map(show, value))}}}"
        else:
            yield parameter_words(model.spec, name, model.parameters)
    if name in model.parties:
        yield f"1 to {model.parties[name].size:,}"
    for one in model.computed:
        if one.name == name:
            yield f"{one.type.describe()}, computed from {' and '.join(one.sources)}: `{one.text}`"
    node = model.nodes.get(name)
    if node is None:
        return
    yield extent(node) + (f", one for each {node.index}" if node.index else "")
    yield from _origin(node, model)
    if model.size <= LARGE:
        yield from _moved(name, model)


def _moved(name: str, model: Model) -> Iterator[str]:
    """How far one unit of each line moves a value that is linear in the data, or what an output stands for."""
    from privspec.explain.graphs import unit_words
    from privspec.families.gaussian.differences import sensitivity as moved

    matrix = linear_map(model, name)
    if matrix is None:
        return
    lines = {(one.neighbours.describe(), one.wrt): one for one in reversed(model.requirements)}
    for requirement in reversed(lines.values()):
        found = moved(model, requirement, matrix)
        if found is not None and found.l2 > 0:
            exact = "" if found.exact else "at most "
            yield f"sensitivity: {exact}{found.l2:.6g} (Euclidean length), {unit_words(requirement)}"


def _origin(node: GraphNode, model: Model) -> Iterator[str]:
    if node.definition is not None:
        yield f"is `{model.text(node.definition)}`"
    elif node.name in model.targets:
        yield f"stands for `{model.text(model.targets[node.name])}`, with noise"
    if node.label:
        yield f"called “{node.label}” on pages and in files"


class Symbol(NamedTuple):
    """A name with its kind (`input`, `parameter`, ...), the statement that declares it, and the place of the name."""

    name: str
    kind: str
    statement: Span
    span: Span


def symbols(looked: Looked) -> tuple[Symbol, ...]:
    """All names that a file declares, in the order of the text."""
    found = [
        Symbol(one.name, one.what, one.node.span, one.span)
        for part in (looked.tree, *looked.tree.within)
        for one in collect(part, Report(looked.source)).declarations.values()
    ]
    return tuple(sorted(found, key=lambda one: one.span))


def definition(looked: Looked, offset: int) -> Span | None:
    """Where the name under the cursor is declared."""
    span = word_at(looked.source, offset)
    declared = None if span is None else names(looked, offset).get(looked.source.slice(span))
    return None if declared is None else declared.span


# --- completion -----------------------------------------------------------------------------------


class Suggestion(NamedTuple):
    """A word that may stand at the cursor, in place of `span`; `kind` as of `Symbol`, or function, keyword, section."""

    text: str
    kind: str
    span: Span
    detail: str = ""


class _Place(NamedTuple):
    """Where the cursor is: the section, where its statement begins (None at the start of one), and the word begun."""

    layout: Layout
    section: str | None
    statement: int | None
    word: Span


def complete(looked: Looked, offset: int) -> tuple[Suggestion, ...]:
    """What may stand at the cursor by the grammar, and by what is declared."""
    place = _place(looked.source.text, offset)
    if place is None:
        return ()
    found = dict.fromkeys((*_headers(looked.source.text, place), *_in_statement(looked, offset, place)))
    text = looked.source.text
    return tuple(one for one in found if one.text.lower().startswith(text[one.span.start : offset].lower()))


def _place(text: str, offset: int) -> _Place | None:
    """Where the cursor is; None in comments, texts between quotes, and files beyond any use."""
    if len(text) > MAX_CHARACTERS:
        return None
    match = _WORD_BEFORE.search(text, 0, offset)
    word = Span(match.start() if match else offset, offset)
    whole = lay_out(text[: word.start])
    if any(flaw.kind in ("open_string", "open_doc") for flaw in whole.flaws if flaw.span.end >= word.start):
        return None
    if any(one.span.end == word.start for one in whole.comments):
        return None
    layout = whole.within[-1] if whole.within else whole
    section = layout.sections[-1] if layout.sections else None
    if section is None or section.name is None or not section.statements:
        return _Place(layout, None if section is None else section.name, None, word)
    last = section.statements[-1]
    open_bracket = any(flaw.kind == "open_bracket" and flaw.span.start >= last.start for flaw in whole.flaws)
    ended = not open_bracket and "\n" in text[last.end : word.start]
    return _Place(layout, section.name, None if ended else last.start, word)


def _headers(text: str, place: _Place) -> Iterator[Suggestion]:
    line = text[text.rfind("\n", 0, place.word.start) + 1 : place.word.start]
    if place.statement is None and not line.strip():
        present = {section.name for section in place.layout.sections}
        for name in SECTIONS:
            if name not in present:
                yield Suggestion(f"{name}:", "section", place.word)


def _in_statement(looked: Looked, offset: int, place: _Place) -> Iterator[Suggestion]:
    text, section = looked.source.text, place.section
    if section is None or (section == "loss" and place.statement is None and place.layout.sections[-1].statements):
        return
    start = place.word.start if place.statement is None else place.statement
    rule = SECTIONS[section]
    if measure := _MEASURE_BEFORE.search(text, start, offset):
        reached = reach(parse_table(), rule, text, start, measure.start())
        if reached is not None and "MEASURE" in reached.expected:
            begun = Span(measure.start(), offset)
            yield from (Suggestion(f"-{name}", "keyword", begun, _written(name)) for name in BY_WORD)
            return
    reached = reach(parse_table(), rule, text, start, place.word.start)
    if reached is None:
        return
    for terminal in sorted(reached.expected):
        for word in _spelt(terminal):
            yield Suggestion(word, "keyword", place.word, _written(word[1:]) if terminal == "MEASURE" else "")
    if "NAME" in reached.expected:
        yield from _named(looked, offset, section, reached, place.word)


def _written(measure: str) -> str:
    return " or ".join(one.name for one in BY_WORD[measure])


def _spelt(terminal: str) -> tuple[str, ...]:
    """The words of a terminal; nothing for signs, numbers and names."""
    spelt = {
        "KIND": ("input", "output", "intermediate", "constant", "choose"),
        "IN": ("in",),
        "WRT": ("wrt",),
        "OVER": ("E", "worst"),
        "ADVANTAGE": ("advantage",),
        "MEASURE": tuple(f"-{name}" for name in BY_WORD),
    }
    return spelt.get(terminal, (terminal,) if terminal.isalpha() and terminal.islower() else ())


FIXED = {
    "trust": ("option", TRUST_WORDS),
    "family": ("option", families()),
    "~": ("function", tuple(DISTRIBUTIONS)),
    "distance": ("option", DISTANCES),
}
"""Words that may follow a word, and their kind."""


def _named(looked: Looked, offset: int, section: str, reached: Reached, word: Span) -> Iterator[Suggestion]:
    """The names that make sense at a place where the grammar takes a name."""
    seen = reached.seen
    before = seen[-1] if seen else Token("", "", offset, offset)
    fresh = {"parameters", "parties", "components"}
    if before.type == "KIND" or (section in fresh and not seen):
        return  # a name of the author's own
    scope = names(looked, offset)
    if before.value in FIXED and before.type != "NAME":
        kind, known = FIXED[before.value]
        yield from (Suggestion(one, kind, word) for one in known)
        if before.value == "trust":
            yield from (Suggestion(name, "choose", word) for name in scope.of("choose"))
        return
    wanted = _kinds(section, seen, scope)
    if before.value == ".":
        yield from (Suggestion(one, "column", word) for one in _columns(scope, seen[-2].value))
        return
    if wanted == ("unit",):
        units = ("record", "entry", *scope.of("party"))
        yield from (Suggestion(one, "unit", word) for one in units)
        return
    if wanted == ("observer",):
        part = _part(looked.tree, offset)
        told = dict.fromkeys(who.id for node in walk(part) if isinstance(node, syntax.SeenBy) for who in node.observers)
        yield from (Suggestion(one, "observer", word) for one in told)
        return
    for name, found in scope.of(*wanted).items():
        yield Suggestion(name, found.what, word, _ROLES[found.what])
    table = _asked_of(seen)
    if table is not None:
        yield from (Suggestion(one, "column", word, f"column of {table}") for one in _columns(scope, table))
    if before.type == "IN":
        yield from (Suggestion(one, "function", word) for one in ("real", *DOMAIN_CALLS))
    elif reached.callable and section != "options":
        yield from (Suggestion(name, "function", word, REGISTRY[name].signature) for name in REGISTRY)


def _kinds(section: str, seen: tuple[Token, ...], scope: Scope) -> tuple[str, ...]:
    """Which declared names make sense after these tokens."""
    values = [token.value for token in seen]
    last = values[-1] if values else ""
    if section in ("privacy", "fairness", "background") and (last == "one" or values[-3:-1] == ["up", "to"]):
        return ("unit",)
    if last in ("by", "and") and "seen" in values:
        return ("observer",)
    if section in ("privacy", "fairness"):
        if not {"is", "are"} & set(values):
            return ("output",)
        if "wrt" in values or last in ("of", "given"):
            return ("input",)
        return ("parameter", "choose")
    if section == "options":
        return ("input",) if "people" in values else ("input", "intermediate", "output")
    if section in ("parameters", "parties"):
        return ("parameter",)
    if section == "variables" and "=" not in values:
        return ("parameter",)
    return tuple(dict.fromkeys(found.what for found in scope.declarations.values()))


def _asked_of(seen: tuple[Token, ...]) -> str | None:
    """The first argument of the innermost call that is open, where it is a name."""
    depth = 0
    for i in range(len(seen) - 1, 0, -1):
        depth += (seen[i].type == ")") - (seen[i].type == "(")
        if depth < 0:
            first = seen[i + 1] if i + 1 < len(seen) else None
            return first.value if first is not None and first.type == seen[i - 1].type == "NAME" else None
    return None


def _columns(scope: Scope, name: str) -> tuple[str, ...]:
    """The columns of a table that is declared; nothing of others."""
    declared = scope.get(name)
    if declared is None or not isinstance(declared.node, syntax.Variable) or declared.node.domain is None:
        return ()
    calls = (node for node in walk(declared.node.domain) if isinstance(node, syntax.Call) and node.function == "table")
    members = (one for call in calls for one in call.arguments if isinstance(one, syntax.Member))
    return tuple(one.name if _WORD.fullmatch(one.name) else f'"{one.name}"' for one in members)
