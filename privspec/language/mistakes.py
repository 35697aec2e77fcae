"""What a statement that does not parse was meant to be; slips with words, those with signs in `mistakes_signs.py`.

Every recogniser looks at one kind of slip and returns a diagnostic or None; the first that answers wins.
If none does, the diagnostic lists what could have stood there.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from privspec.core.diagnostics import Diagnostic
from privspec.core.spans import Source, Span
from privspec.core.suggest import nearest
from privspec.kernel.measures import APPROXIMATE, BY_WORD, LOCAL_PURE, PATTERN, PURE, Measure
from privspec.kernel.trust import CURATOR
from privspec.language import mistakes_signs as signs
from privspec.language.automaton import END, KINDS, ParseFailure, is_name
from privspec.language.flaws import CLOSERS, OPERATORS, Failure, plain_list
from privspec.language.meanings import FUNCTIONS, written
from privspec.language.meanings import MEASURES as SENSES

_MEASURE = re.compile(r"[-‐‑−–]?[ \t]*([^\W\d_]+(?:-[^\W\d_]+)*)")
_COMPUTED = re.compile(rf"[^,\n]*?(?=[-‐‑]({PATTERN})\b)")
_PAIR = re.compile(rf",[ \t]*([\w.]+(?:[eE]-[0-9]+)?)[ \t]*[-‐‑]({PATTERN})\b")
_SENTENCES = frozenset({"requirement", "fairness"})
_MODEL = f"write for instance: O is {PURE.name} wrt x, replacing one record"
_OPERAND = frozenset({"NAME", "NUMBER", "STRING", "OVER", "(", "{"})

_WRT_LIKE = re.compile(
    r"((?:with[ \t]+)?respect(?:ing)?(?:[ \t]+to)?|w\.?r\.?t\.?|for|in|on|of|over|regarding|about|concerning|against)"
    r"[ \t]+(\(?[^\W\d_][^\n)]*\)|[^\W\d_]\w*)"
)
_VERB_LIKE = re.compile(
    r"(?:(?:should|must|shall|will|has|have)(?:[ \t]+to)?(?:[ \t]+(?:be|satisfy|have))?"
    r"|be|satisf(?:y|ies)|guarantees?|provides?|achieves?|gives?|ensures?|=|:)[ \t]+"
)
_BARE = re.compile(rf"((?:\([^\n)]*\)|[\w.]+)-(?:{PATTERN}))\b([^\n]*)")
_CHANGE = re.compile(
    r"((?:replac|substitut|chang|add|remov)[a-z]*(?:[ \t]*(?:/|or|and|,)[ \t]*(?:remov|add)[a-z]*)?)[ \t]+"
    r"(?:(?:the|of)[ \t]+)?(?:(one|an?|any|single|each|[0-9]+)[ \t]+)?([^\W\d_]\w*)"
)

_LIKE = {
    "a": "one", "an": "one", "each": "one", "any": "one", "single": "one", "at": "up", "all": "everything",
    "visible": "seen", "known": "seen", "metric": "distance", "prob": "probability",
}  # fmt: skip


_KIND_LIKE = {
    "data": "input", "secret": "input", "private": "input", "dataset": "input", "in": "input",
    "const": "constant", "public": "constant", "fixed": "constant", "var": "intermediate", "let": "intermediate",
    "variable": "intermediate", "computed": "intermediate", "query": "intermediate", "out": "output",
    "release": "output", "result": "output", "free": "choose", "decide": "choose",
}  # fmt: skip


def from_file(case: Failure) -> Diagnostic | None:
    """`input people from "people.csv"`, `output O to "file"`."""
    kind, name = (case.seen[0].value, case.seen[1].value) if len(case.seen) > 1 else ("", "x")
    # a value that is chosen may be drawn from data, so that the word itself is understood
    token = next((one for one in case.seen[2:] if one.value == "from" and kind != "choose"), case.token)
    if case.rule != "variable" or token.value not in {"from", "to", "read", "reads", "at"}:
        return None
    span = Span(token.start, case.span.end)
    file = re.search(r'"([^"\n]*)"', case.source.text[token.start : case.span.end])
    path = file[1] if file else "data.csv"
    if kind == "constant":
        return case.error(
            "PS0131", "a file is read by a function", "a file", f'write constant {name} = csv("{path}")', at=span
        )
    message = "a spec names no files of secret data: it says which values they may take, and run is given the file"
    example = f"{kind} {name} in table(age in 0..120, sex in {{F, M}})"
    advice = f"write for instance {example}; then run with --input {name}={path}"
    if kind == "output":
        message, advice = "a spec does not say where results go", f"write {kind} {name}; then run with -o {path}"
    return case.error("PS0131", message, "a file", advice, at=span)


def partial_rankings(case: Failure) -> Diagnostic | None:
    """`partial_ranking of {a, b, c}`, after `ranking of {a, b, c}`."""
    before = case.last
    if case.rule != "variable" or case.token.value != "of" or before is None or before.value != "partial_ranking":
        return None
    items = re.match(r"of[ \t]*(\{[^}\n]*\}|\w+)", case.source.text[case.token.start :])
    span = Span(before.start, case.token.start + (items.end() if items else 2))
    advice = f"write partial_ranking({items[1] if items else '{a, b, c, d}'}, 2), for at most two places"
    return case.error("PS0131", "orders of some alternatives are written as a call", "of how many?", advice, at=span)


def measure(case: Failure) -> Diagnostic | None:
    """What stands where `-DP` should."""
    if "MEASURE" not in case.expected or case.rule not in _SENTENCES or case.last is None:
        return None
    before, rest = case.last, case.rest
    if before.value in BY_WORD and case.seen[-2].type in {"is", "are"}:
        message = f"how much {before.value}? An amount is missing"
        amount = Measure.written(BY_WORD[before.value][0].figures)
        if amount.isalpha() and not re.search(rf"^[ \t]*{amount}\b", case.source.text, re.MULTILINE):
            amount = "1"
        return case.error("PS0111", message, "only the measure", f"write {amount}-{before.value}", before.span)
    if case.token.type == END:
        advice = f"write for instance {_amount(case)}-{PURE.word}"
        return case.error("PS0111", "the measure is missing", "an amount, but of what?", advice)
    if more := re.match(
        r"(?:at most|up to|less than|about)[ \t]+", case.source.text[case.seen[_verb_at(case)].end :].lstrip()
    ):
        start = case.source.text.index(more[0], case.seen[_verb_at(case)].end)
        span = Span(start, start + len(more[0].rstrip()))
        message = "an amount is a limit already"
        return case.error("PS0111", message, "said by the measure", f"leave {more[0].strip()} out", span)
    if computed := _COMPUTED.match(rest):
        amount = f"{_amount(case)}{'' if rest[0] in '([.' else ' '}{computed[0]}"
        if not _MEASURE.fullmatch(computed[0].strip()) and case.token.type not in {"STRANGE", ","}:
            message = "an amount that is computed stands in brackets"
            span = Span(case.seen[_verb_at(case) + 1].start, case.token.start + computed.end())
            return case.error("PS0111", message, "the amount", f"write ({amount})-{computed[1]}", span)
    if pair := _PAIR.match(rest):
        amount = f"({_amount(case)}, {pair[1]})"
        span = Span(case.seen[_verb_at(case) + 1].start, case.token.start + pair.end())
        return case.error("PS0111", "two amounts stand in brackets", "the amounts", f"write {amount}-{pair[2]}", span)
    match = _MEASURE.match(rest)
    if match is None:
        return None
    return _wrong_measure(case, match, rest)


def _wrong_measure(case: Failure, match: re.Match[str], rest: str) -> Diagnostic | None:
    word = match[1]
    span = Span(case.token.start, case.token.start + match.end())
    amount = _amount(case)
    if amount.lower() in {"differentially", "locally"}:
        declared = re.search(r"^[ \t]*epsilon\b", case.source.text, re.MULTILINE)
        phrase = Span(case.seen[_verb_at(case) + 1].start, span.end)
        message = "how private? An amount and a measure say so"
        measure = (LOCAL_PURE if amount.lower() == "locally" else PURE).word
        advice = f"write {'epsilon' if declared else '1'}-{measure}" if re.search(r"\bwrt\b", rest) else _MODEL
        return case.error("PS0111", message, "not an amount", advice, at=phrase)
    if word.lower().startswith("different"):
        return case.error("PS0111", "the measures have short names", PURE.word, f"write {amount}-{PURE.word}", at=span)
    known = next((m for m in BY_WORD if m.lower() == word.lower()), None)
    if known is None and word.lower() in SENSES:
        known, other = SENSES[word.lower()]
        message = f"there is no measure {word}"
        advice = f"there is {other}-{known}, with figures of its own" if other else f"write {amount}-{known}"
        return case.error("PS0111", message, "not known", advice, at=span)
    # short names of measures differ by a letter, and in what they promise: only long ones can be misspelt
    known = known or nearest(word, [m for m in BY_WORD if len(m) > 5])
    hyphen = rest[0] in "-‐‑−–"
    if known == word:
        message = "a hyphen joins the amount and the measure, without spaces"
        return case.error("PS0111", message, "read as separate words", f"write {amount}-{known}", at=span)
    if known is not None and word != "wrt":
        message = f"there is no measure {word}"
        return case.error("PS0111", message, "not known", f"did you mean {amount}-{known}?", at=span)
    if hyphen or case.token.type == "NAME":
        advice = f"the measures are {', '.join(BY_WORD)}; for instance {amount}-{PURE.word}"
        message = f"there is no measure {word}" if hyphen else "a measure should follow the amount"
        return case.error("PS0111", message, "not a measure", advice, at=span)
    return None


def _verb_at(case: Failure) -> int:
    return max(i for i, token in enumerate(case.seen) if token.type in {"is", "are"})


def _amount(case: Failure) -> str:
    """The amount as written."""
    return case.source.slice(case.seen[_verb_at(case) + 1].span.to(case.seen[-1].span))


def wrt(case: Failure) -> Diagnostic | None:
    """A requirement that names no data."""
    if "WRT" not in case.expected or case.rule not in _SENTENCES:
        return None
    if case.expected & OPERATORS and case.token.type != END:
        return None
    message = "the requirement does not say whose data it protects"
    ends = case.token.type == END
    label = "wrt and a variable should follow" if ends else "wrt was expected here"
    other = _WRT_LIKE.match(case.rest)
    if other is not None:
        span = Span(case.token.start, case.token.start + len(other[1]))
        message = "the data that a requirement protects follow the word wrt"
        return case.error("PS0128", message, "wrt was expected here", f"write wrt {other[2]}", at=span)
    if ends or case.token.type == ",":
        said = case.source.slice(Span(case.span.start, case.token.start)).rstrip() if not ends else ""
        said = said or case.source.slice(case.span)
        after = case.rest if not ends else ""
        advice = f"write {said} wrt {_declared(case, 'input', 'x')}{after}"
        return case.error("PS0128", message, label, advice if len(advice) < 200 else _MODEL)
    return case.error("PS0128", message, label, _MODEL)


def _declared(case: Failure, kind: str, otherwise: str) -> str:
    """The first variable of a kind that the file declares."""
    found = re.search(rf"^[ \t]*{kind}[ \t]+([^\W\d_]\w*)", case.source.text, re.MULTILINE)
    return found[1] if found else otherwise


def objective(case: Failure) -> Diagnostic | None:
    """`minimize E[ ... ]`, `loss = E[ ... ]`."""
    if case.rule != "loss" or len(case.seen) != 1 or case.seen[0].type != "NAME":
        return None
    word, text = case.seen[0].value, case.source.text
    after = case.token.end if case.token.type in {"=", ":"} else case.token.start
    rest = text[after : case.span.end].strip()
    if case.token.type in {"=", ":"} or word.lower() in {
        "minimize",
        "minimise",
        "min",
        "minimum",
        "maximize",
        "maximise",
    }:
        kept = f"-({rest})" if word.lower().startswith("max") else rest
        message = "the loss is one expression, and the solver makes it small"
        return case.error("PS0101", message, "no word before it", f"write {kept}", at=case.seen[0].span)
    return None


def verb(case: Failure) -> Diagnostic | None:
    """A requirement that is no sentence."""
    if "is" not in case.expected or case.rule not in _SENTENCES:
        return None
    if case.token.type in CLOSERS or case.token.type in {",", "STRANGE"}:
        return None
    ends = case.token.type == END
    message = "a requirement is a sentence: outputs is amount-measure wrt inputs"
    label = "is should follow" if ends else "is was expected here"
    if case.token.value == "=" and (moved := case.elsewhere()) is not None:
        return moved
    other = _VERB_LIKE.match(case.rest)
    if other is not None and case.seen:
        span = Span(case.token.start, case.token.start + len(other[0].rstrip()))
        return case.error("PS0127", message, label, f"write `is` in place of `{case.source.slice(span)}`", at=span)
    if (bare := _BARE.match(case.source.slice(case.span))) is not None:
        clauses = bare[2].strip(", \t")
        clauses = clauses if clauses.startswith(("w", "replacing", "adding", "distance", "seen")) else ""
        subject = "" if clauses.startswith("w") else f" wrt {_declared(case, 'input', 'x')}"
        told = f"write {_declared(case, 'output', 'O')} is {bare[1]}{subject}"
        if clauses:
            told += f"{',' if subject else ''} {clauses}"
        return case.error("PS0127", "the requirement does not say which output it is about", label, told)
    return case.elsewhere() or case.error("PS0127", message, label, _MODEL)


def unit(case: Failure) -> Diagnostic | None:
    """`replacing 1 entry`, `replacing entry`, `replacing one`, `adding/removing one entry`, `adding one entry`."""
    before = case.last
    if before is None or case.rule not in (*_SENTENCES, "background"):
        return None
    if case.token.value in {"unit", "neighbours", "neighbors", "neighbouring", "neighboring", "per"}:
        message = "the unit is named after replacing, or after adding or removing"
        return case.error("PS0131", message, "not understood", "write for instance replacing one entry")
    if before.value == "one" and case.token.type == END:
        advice = "write one entry for one number, one record for one row or person, or one of an index set"
        return case.error("PS0102", "one what? The unit is missing", "ends here", advice)
    start = next((t for t in reversed(case.seen[-4:]) if t.value in {"replacing", "adding"}), case.token)
    changed = _CHANGE.match(case.source.text, start.start, case.span.end)
    if changed is None:
        return None
    verb, count, noun = changed.groups()
    written = "replacing" if verb.startswith(("repl", "subst", "chang")) else "adding or removing"
    if noun != "everything":
        written += f" up to {count}" if count is not None and count.isdigit() and int(count) > 1 else " one"
    written += f" {noun}"
    if written == changed[0]:
        return None
    message = "a unit is written replacing one ..., or adding or removing one ..."
    return case.error("PS0131", message, "not understood", f"write {written}", at=Span(start.start, changed.end()))


def comma(case: Failure) -> Diagnostic | None:
    """A clause without the comma before it."""
    words = {"replacing", "adding", "distance", "seen", "up"}
    if "," not in case.expected or case.token.value not in words or case.open_brackets():
        return None
    word = case.token.value
    return case.error("PS0101", f"a comma is missing before {word}", "a part of its own", f"write , {word}")


def missing_kind(case: Failure) -> Diagnostic | None:
    """A variable that does not say what it is."""
    if case.rule != "variable" or case.seen:
        return None
    word = case.token.value
    close = nearest(word, KINDS) if is_name(word) else None
    advice = f"did you mean {close}?" if close else "write for instance: input x in [0, 1]^64"
    if case.token.value in _KIND_LIKE:
        advice = f"write {_KIND_LIKE[case.token.value]}"
        close = close or advice
    message = "a variable starts with its kind: input, constant, intermediate, output or choose"
    error = case.error("PS0126", message, "not a kind", advice)
    return error if close else case.elsewhere() or error


def misspelt(case: Failure) -> Diagnostic | None:
    """A word that is nearly one of those expected."""
    if case.token.type != "NAME" or "NAME" in case.expected:
        return None
    words = sorted(w for w in case.expected if w.isalpha() and w.islower())
    close = nearest(case.token.value, words) or _LIKE.get(case.token.value.lower())
    if close is None or close not in words:
        return None
    message = f"{case.token.value} is not a word of the language here"
    return case.error("PS0131", message, "not known", f"did you mean {close}?")


def law(case: Failure) -> Diagnostic | None:
    """`x is uniform`."""
    if case.rule != "background" or case.token.value != "is" or case.open_brackets():
        return None
    better = case.elsewhere()
    if better is not None:
        return better
    message = "a data model is written with the sign ~"
    return case.error("PS0131", message, "~ was expected here", "write for instance: x ~ uniform")


def several(case: Failure) -> Diagnostic | None:
    """`O and P are`, `wrt x and y`, `wrt (x)`, `wrt f(x)`, `input x, w in`, `(epsilon = 1)-DP`, `epsilon 1`."""
    before, text = case.last, case.source.text
    if before is None:
        return None
    if case.rule in _SENTENCES and case.token.value == "and" and before.type == "NAME":
        joined = re.match(r"and[ \t]+([^\W\d_]\w*)", case.rest)
        if joined is not None:
            span = before.span.to(Span(case.token.start, case.token.start + joined.end()))
            message = "several names stand in brackets"
            return case.error("PS0131", message, "two names", f"write ({before.value}, {joined[1]})", at=span)
    if case.rule in _SENTENCES and case.token.type == ")" and len(case.seen) > 1 and case.seen[-2].type == "(":
        span = case.seen[-2].span.to(case.token.span)
        return case.error("PS0131", "one name stands without brackets", "one name", f"write {before.value}", at=span)
    called = re.match(r"\([^()\n]*\)", case.rest)
    if case.rule in _SENTENCES and called is not None and [token.type for token in case.seen[-2:]] == ["WRT", "NAME"]:
        span = before.span.to(Span(case.token.start, case.token.start + called.end()))
        advice = f"name it first, `intermediate s` and `s = {before.value}{called[0]}`, and write s"
        return case.error("PS0131", "what a line hides has a name", "is computed", advice, at=span)
    if case.rule in _SENTENCES and case.token.type == "=" and case.open_brackets():
        named = re.match(r"\(([^()\n]*)\)", text[case.open_brackets()[-1].start : case.span.end])
        if named is not None:
            start = case.open_brackets()[-1].start
            values = ", ".join(part.partition("=")[2].strip() or part.strip() for part in named[1].split(","))
            message = "amounts stand in their order, without names"
            return case.error("PS0131", message, "named", f"write ({values})", at=Span(start, start + named.end()))
    if case.rule == "variable" and case.token.type == "," and [t.type for t in case.seen] == ["KIND", "NAME"]:
        advice = f"write {case.seen[0].value} before each name, on a line of its own"
        return case.error("PS0131", "a line declares one variable", "a second name", advice)
    if case.rule == "parameter" and case.token.type == "NUMBER" and [t.type for t in case.seen] == ["NAME"]:
        span = before.span.to(case.token.span)
        advice = f"write {before.value} = {case.token.value}"
        return case.error("PS0131", "a value is given with =", "= is missing", advice, at=span)
    return None


def method(case: Failure) -> Diagnostic | None:
    """`x.mean()`, `np.cumsum(x)`."""
    if case.token.type != "(" or len(case.seen) < 3 or case.seen[-2].type != ".":
        return None
    owner, name = case.seen[-3], case.seen[-1]
    inside = re.match(r"\(([^()\n]*)\)", case.rest)
    if owner.type != "NAME" or inside is None:
        return None
    library = owner.value in {"np", "numpy", "math", "pd", "scipy", "stats", "torch", "jnp"}
    arguments = inside[1] if library else ", ".join(part for part in (owner.value, inside[1]) if part)
    span = owner.span.to(Span(case.token.start, case.token.start + inside.end()))
    message = "a function stands by itself, with what it is given in brackets"
    sense = FUNCTIONS.get(name.value, f"write {name.value}({arguments})")
    advice = written(sense, [part.strip() for part in arguments.split(",") if part.strip()])
    return case.error("PS0131", message, "called with a dot", advice, at=span)


_UNQUOTED = re.compile(r"[^\W\d][^,{}()\"'\n]*")


def words_of_a_label(case: Failure) -> Diagnostic | None:
    """`{human resources, sales}`, `table(education-num in 1..16)`: names of several words stand in quotes."""
    opened, before = case.open_brackets(), case.last
    if not opened or before is None:
        return None
    since = case.seen[case.seen.index(opened[-1]) + 1 :]
    last = max((i for i, token in enumerate(since) if token.type == ","), default=-1)
    first = since[last + 1] if last + 1 < len(since) else case.token
    column = case.token.value == "in" and any(token.type == "-" for token in since[last + 1 :])
    label = opened[-1].type == "{" and case.token.type in {"NAME", "in"} and before.type == "NAME"
    if first.type != "NAME" or not (column or label):
        return None
    words = _UNQUOTED.match(case.source.text, first.start, case.token.start if column else case.span.end)
    if words is None:
        return None
    text = words[0].rstrip()
    span = Span(first.start, first.start + len(text))
    return case.error("PS0131", "a name of several words stands in quotes", "one name?", f'write "{text}"', at=span)


def sentence(case: Failure) -> Diagnostic | None:
    """`as little error as possible`: a loss in words, none of which the spec declares."""
    if case.rule != "loss" or case.token.type != "NAME" or case.last is None or case.last.type != "NAME":
        return None
    said = {token.value for token in (*case.seen, case.token) if token.type == "NAME"}
    others = case.source.text[: case.span.start] + case.source.text[case.span.end :]
    if any(re.search(rf"\b{re.escape(word)}\b", others) for word in said):
        return None
    message = "the loss is an expression that says what an error costs"
    return case.error("PS0131", message, "words", f"write for instance {LOSS}", at=case.span)


LOSS = "E[ ||O - y||^2 ]"


def missing_operator(case: Failure) -> Diagnostic | None:
    """Two operands side by side."""
    before = case.last
    if before is None or case.token.type not in _OPERAND or not case.expected >= OPERATORS:
        return None
    if case.token.type == "(" and before.type == "NAME":
        return None
    both = before.span.to(case.token.span)
    left, right = case.source.slice(before.span), case.source.slice(case.token.span)
    simple = {case.token.type, before.type} <= {"NAME", "NUMBER"}
    advice = f"write {left} * {right} for a product" if simple else None
    if case.token.type == before.type == "NAME":
        advice = f"write {left} * {right} for a product, {left} @ {right} for one of matrices"
    if case.rule == "option":
        advice = f"put a comma between {left} and {right}"
    if case.rule == "background" and before.value in {"let", "var", "set", "def", "define"} and len(case.seen) == 1:
        advice = f"leave {before.value} out"
    if case.open_brackets() and "," in case.expected:
        advice = f"put a comma or an operator between {left} and {right}"
    return case.error("PS0131", "something is missing between these two", f"{left} {right}", advice, at=both)


_RECOGNISERS: tuple[Callable[[Failure], Diagnostic | None], ...] = (
    signs.power_of_nothing,
    signs.range_sign,
    signs.single_quotes,
    signs.lost_bar,
    signs.strange_character,
    signs.number_too_long,
    signs.number_form,
    signs.needless_end,
    signs.equals_twice,
    signs.strict_inequality,
    signs.other_sign,
    signs.option_sign,
    signs.colon,
    signs.power_of_range,
    signs.closing_bracket,
    signs.continued,
    missing_kind,
    from_file,
    partial_rankings,
    objective,
    several,
    words_of_a_label,
    sentence,
    method,
    measure,
    wrt,
    verb,
    unit,
    comma,
    misspelt,
    law,
    signs.comparison,
    missing_operator,
)

_FORMS = {
    "parameter": "a line of parameters reads: epsilon = 1.0",
    "party": "a line of parties reads: voter in 1..N",
    "component": 'a line of components reads: average = spec("average.priv", x = x)',
    "variable": "a line of variables reads: input x in [0, 1]^64",
    "background": "a line of background reads: y = A @ x + b",
    "loss": "a loss reads: E[ ||O - y||^2 ]",
    "target": "a line of accuracy reads: E[ (O[j] - y[j])^2 ] <= 4 for j in 1..32",
    "requirement": f"a requirement reads: O is {APPROXIMATE.name} wrt x, replacing one record",
    "fairness": "a line of fairness reads: O is independent of sex given income, up to 0.05",
    "option": f"the options are: {CURATOR.written}, noise at x, noise family gaussian, unbiased, "
    "different people: x, y, same people: x, y",
}


def explain(source: Source, rule: str, span: Span, failure: ParseFailure) -> Diagnostic:
    """The diagnostic of a statement that does not parse."""
    case = Failure(source, rule, span, failure.token, failure.seen, failure.expected)
    for recogniser in _RECOGNISERS:
        diagnostic = recogniser(case)
        if diagnostic is not None:
            return diagnostic
    return case.elsewhere() or _unexpected(case)


def _unexpected(case: Failure) -> Diagnostic:
    wanted = plain_list(case.expected)
    form = _FORMS[case.rule]
    if case.token.type == END:
        return case.error("PS0102", f"the statement ends too early: {wanted} should follow", "ends here", form)
    found = case.source.slice(case.token.span)
    return case.error("PS0101", f"{found} cannot stand here; {wanted} was expected", "not understood", form)
