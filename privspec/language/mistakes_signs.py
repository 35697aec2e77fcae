"""Slips with signs, numbers and brackets."""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction

from privspec.core.diagnostics import Diagnostic, Label
from privspec.core.spans import Span
from privspec.language.automaton import END, MAX_DIGITS, MAX_EXPONENT, Token, is_name
from privspec.language.flaws import CLOSERS, OPENERS, OPERATORS, Failure
from privspec.language.spelling import number_text
from privspec.language.syntax import Number

_INSTEAD = {
    "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'", "´": "'", "`": "'", "′": "'",
    "–": "-", "—": "-", "×": "*", "∗": "*", "⋅": "*", "∙": "*", "•": "*", "÷": "/", "∕": "/",
    "³": "^3", "¹": "^1", "⁴": "^4", "ⁿ": "^n", "ᵀ": "'", "≈": "~", "∣": "|", "∥": "||", "…": "..",
    "，": ",", "：": ":", "（": "(", "）": ")", "∞": "inf", "√": "sqrt(...)", "∑": "sum(...)",
    "\u00a0": "an ordinary space", "\u2009": "an ordinary space", "\u202f": "an ordinary space",
    "\u3000": "an ordinary space", "&": "a line for each",
}  # fmt: skip
_NEEDLESS = frozenset("?$\\\u200b\ufeff\u2060")

_OTHER_SIGNS = {
    "**": "^", "!=": "mismatch(a, b)", "<>": "mismatch(a, b)", "=<": "<=", "=>": ">=", "<-": "=", "->": "=",
    ":=": "=", "&&": "a line for each",
}  # fmt: skip
_POINT = re.compile(r"\.([0-9]+)")
_SUFFIXES = {"k": 3, "K": 3, "M": 6, "mn": 6, "mio": 6, "million": 6, "bn": 9, "billion": 9, "thousand": 3}
_CURRENCIES = frozenset("$€£¥")
_COMPARISONS = frozenset({"<", "<=", ">", ">=", "!="})
_QUOTED = re.compile(r"[“”„«‘’]([^“”„«»‘’\"\n]*)[“”»‘’\"]")
_GROUPED = re.compile(r"_[0-9_]*[0-9]")
_BASED = re.compile(r"[eExX].*")


def strange_character(case: Failure) -> Diagnostic | None:
    """A character that begins no token."""
    if case.token.type != "STRANGE":
        return None
    char = case.token.value
    before = case.last
    joined = before is not None and before.type == "NUMBER" and before.end == case.token.start
    if char == "%":
        advice = "write 0.5 for 50 %"
        if before is not None and before.type == "NUMBER":
            advice = f"write {number_text(Number(Fraction(before.value) / 100))} for {before.value} %"
        return case.error("PS0115", "there is no sign % here", "a share is a number from 0 to 1", advice)
    if char == "_" and joined and before is not None and (group := _GROUPED.match(case.rest)):
        digits = before.value + group[0].replace("_", "")
        span = Span(before.start, case.token.start + group.end())
        return case.error("PS0115", "a number holds no _", "one number", f"write {digits}", at=span)
    if char == "_":
        text = "a name starts with a letter; in a number no _ may stand"
        return case.error("PS0115", text, "this _ starts nothing", "leave the _ out")
    if char in _CURRENCIES:
        advice = "leave it out; the unit of a number can stand in a comment, after #"
        return case.error("PS0115", "numbers have no units here", "a unit", advice)
    name = unicodedata.name(char, "").lower()
    named = f" ({name})" if name and not char.isascii() else ""
    shown = char if char.isprintable() and not char.isspace() else f"U+{ord(char):04X}"
    message = f"the character {shown}{named} means nothing here"
    instead = _INSTEAD.get(char)
    if unicodedata.category(char) == "Nd":
        instead = str(unicodedata.digit(char))
    advice = "names hold letters, digits and _; # starts a comment"
    if (quoted := _QUOTED.match(case.rest)) is not None and instead == '"':
        span = Span(case.token.start, case.token.start + quoted.end())
        return case.error("PS0115", message, "quotes of a word processor", f'write "{quoted[1]}"', at=span)
    if char in _NEEDLESS:
        advice = "leave it out"
    elif instead is not None:
        advice = f"write {instead}"
    return case.error("PS0115", message, "this character", advice)


def number_too_long(case: Failure) -> Diagnostic | None:
    """A number whose exact value nobody can hold."""
    if case.token.type != "TOO_LONG":
        return None
    limits = f"at most {MAX_DIGITS} digits and an exponent from -{MAX_EXPONENT} to {MAX_EXPONENT}"
    return case.error("PS0121", f"a number has {limits}", "too long", "round it, or read it from a file")


def number_form(case: Failure) -> Diagnostic | None:
    """`.5`, `5.`, `1e`, `0x10`."""
    before = case.last
    point = _POINT.match(case.source.text, case.token.start)
    if case.token.type == "." and point and "NUMBER" in case.expected:
        return case.error("PS0121", "a number starts with a digit", "starts with a point", f"write 0.{point[1]}")
    if len(case.seen) > 1 and before is not None and before.type == "." and case.seen[-2].type == "NUMBER":
        number = case.seen[-2]
        return case.error(
            "PS0121",
            "a digit is missing after the point",
            "ends with a point",
            f"write {number.value}.0, or {number.value}..hi for a range",
            at=number.span.to(before.span),
        )
    joined = before is not None and before.type == "NUMBER" and before.end == case.token.start
    if joined and before is not None and case.token.type == "NAME" and _BASED.fullmatch(case.token.value):
        advice = "numbers look like 12, 0.5 or 1e-6"
        return case.error("PS0121", "this is no number", "cannot be read", advice, at=before.span.to(case.token.span))
    if joined and before is not None and case.token.type == "NAME":
        span = before.span.to(case.token.span)
        power = _SUFFIXES.get(case.token.value)
        if power is not None:
            number = Fraction(before.value) * 10**power
            advice = f"write {number_text(Number(number))}"
            return case.error("PS0121", "a number is written with digits alone", "read as two words", advice, at=span)
        advice = f"write {before.value}, and the unit in a comment after #; or {before.value} * {case.token.value}"
        return case.error("PS0121", "numbers have no units here", "read as two words", advice, at=span)
    return decimal_comma(case)


def decimal_comma(case: Failure) -> Diagnostic | None:
    """`1,0` and `200,000` where no list can stand."""
    before = case.last
    after = case.source.text[case.token.end : case.span.end]
    digits = re.match(r"[0-9]+(,[0-9]{3})*", after)
    if case.token.type != "," or before is None or before.type != "NUMBER" or digits is None:
        return None
    if before.end != case.token.start or not before.value.isdigit():
        return None
    span = Span(before.start, case.token.end + digits.end())
    groups = len(digits[0].split(",")[0]) == 3 and before.value != "0"
    whole = before.value + digits[0].replace(",", "")
    advice = f"write {whole}" if groups else f"write {before.value}.{digits[0]}"
    if groups and "," not in digits[0]:
        advice += f", or {before.value}.{digits[0]} if the comma is that of decimals"
    return case.error("PS0121", "a comma is no part of a number", "one number, or two?", advice, at=span)


def equals_twice(case: Failure) -> Diagnostic | None:
    """`==`."""
    if case.token.type != "==":
        return None
    return case.error("PS0105", "two equals signs stand here", "one is enough", "write =")


def strict_inequality(case: Failure) -> Diagnostic | None:
    """`<` or `>`."""
    sign = case.token.type
    if sign not in {"<", ">"}:
        return None
    if (conditions := _conditions(case, sign)) is not None:
        return conditions
    if case.rule == "background" and any(token.type == "=" for token in case.seen):
        advice = "count the records that are meant, as in count(people, age >= 65)"
        return case.error("PS0106", "a comparison has no value here", f"{sign} compares", advice)
    message = f"{sign} is not used: the limit itself has to be allowed"
    return case.error("PS0106", message, "a strict inequality", f"write {sign}=")


def _conditions(case: Failure, sign: str) -> Diagnostic | None:
    """`count(people, 18 <= age < 65)`: a second comparison in one argument of a call."""
    opened = case.open_brackets()
    if not opened or opened[-1].type != "(" or sign not in _COMPARISONS:
        return None
    inside = case.seen[case.seen.index(opened[-1]) + 1 :]
    since = [token.type for token in inside]
    last = since[len(since) - since[::-1].index(",") :] if "," in since else since
    if not set(last) & _COMPARISONS:
        return None
    advice = "two conditions stand with a comma between them, as in 18 <= age, age < 65"
    middle = case.seen[-1]
    if middle.type == "NAME" and case.seen[-2].type in _COMPARISONS:
        first = inside[len(since) - len(last)]
        right = re.match(r"[^,()\n]*", case.source.text[case.token.end :])
        limit = "" if right is None else right[0].rstrip()
        left = case.source.slice(first.span.to(middle.span))
        advice = f"write {left}, {middle.value} {sign}{limit}"
        whole = Span(first.start, case.token.end + len(limit))
        return case.error("PS0106", "a condition compares two things", "two comparisons", advice, at=whole)
    return case.error("PS0106", "a condition compares two things", "a second comparison", advice)


def comparison(case: Failure) -> Diagnostic | None:
    """`a >= b` under accuracy, `a <= b <= c` anywhere."""
    if case.token.type in {"<=", ">=", "=", "=="} and case.token.type not in case.expected:
        conditions = _conditions(case, case.token.type)
        if conditions is not None:
            return conditions
    if case.token.type not in {"<=", ">=", "="} or case.token.type in case.expected:
        return None
    if any(token.type in {"<=", ">=", "=", "~"} for token in case.seen) and not case.open_brackets():
        advice = "write a <= b and b <= c on lines of their own"
        return case.error("PS0101", "a line compares two things", "a second comparison", advice)
    if case.rule == "target" and case.token.type == ">=":
        return case.error("PS0101", "a target is an upper limit", "<= was expected here", "write b <= a for a >= b")
    return None


def other_sign(case: Failure) -> Diagnostic | None:
    """Signs of other languages."""
    sign = case.token.type
    if sign == ";":
        advice = "write a comma" if case.open_brackets() else "put every statement on a line of its own"
        return case.error("PS0116", "a ; separates nothing here", "not known", advice)
    if sign == "!":
        return case.error("PS0116", "there is no sign !", "not known", "leave it out")
    if sign not in _OTHER_SIGNS:
        return None
    return case.error("PS0116", f"there is no sign {sign}", "not known", f"write {_OTHER_SIGNS[sign]}")


_OPTIONS = {
    "trust": "trust", "noise": "noise family", "family": "noise family", "noise_family": "noise family",
    "noise family": "noise family", "sites": "noise at", "noise_at": "noise at", "noise at": "noise at",
}  # fmt: skip


def option_sign(case: Failure) -> Diagnostic | None:
    """`trust: curator`, `trust = curator`, `noise: laplace`."""
    if case.rule != "option":
        return None
    if case.token.value not in {":", "=", "is"}:
        from privspec.kernel.laws.law import FAMILIES  # few make this mistake

        written = re.findall(r"\w+", case.source.slice(case.span))
        family = next((word for word in written if word in (*FAMILIES, "table")), None)
        message = "a family of noise is named after noise family"
        advice = f"write noise family {family}" if family else None
        return None if advice is None else case.error("PS0131", message, "not understood", advice)
    said = case.source.slice(Span(case.span.start, case.token.start)).strip()
    value = case.source.text[case.token.end : case.span.end].strip()
    if not value:
        return None
    words = _OPTIONS.get(said)
    if words is None:
        return None
    message = "an option is written in words, without a sign"
    return case.error("PS0116", message, "no sign stands here", f"write {words} {value}")


def colon(case: Failure) -> Diagnostic | None:
    """`epsilon: 1.0`."""
    if case.token.type != ":":
        return None
    opened = case.open_brackets()
    if opened and opened[-1].type == "[":
        message = "the ends of a slice have two points between them, and both belong to it"
        return case.error("PS0116", message, "a slice", "write x[1..2] for the first two entries")
    if case.rule in {"requirement", "fairness"}:
        return case.error("PS0116", "a requirement is a sentence without a colon", "not a header", "leave the : out")
    message = "a colon ends the header of a section and stands nowhere else"
    if case.rule in {"variable", "party", "parameter"} and case.seen:
        before = case.source.slice(Span(case.span.start, case.token.start)).strip()
        after = case.source.text[case.token.end : case.span.end].strip()
        if case.rule == "parameter":
            return case.error("PS0116", message, "= was expected here", f"write {before} = {after}"[:200])
        if before and after and len(after) < 200:
            sign = "=" if after.startswith(("csv(", "npy(")) else "in"
            return case.error("PS0116", message, f"{sign} was expected here", f"write {before} {sign} {after}")
    gives = case.rule in {"parameter", "component", "background"}
    advice = "write name = value to give a value" if gives else "write name in domain"
    return case.error("PS0116", message, "not a header", advice)


def closing_bracket(case: Failure) -> Diagnostic | None:
    """A bracket that closes nothing, or the wrong one."""
    sign = case.token.type
    if sign not in CLOSERS:
        return None
    open_ones = case.open_brackets()
    if not open_ones:
        advice = "leave it out, or open one before"
        return case.error("PS0104", f"this {sign} closes nothing", "no bracket is open here", advice)
    wanted = OPENERS[open_ones[-1].type]
    if wanted == sign or sign in case.expected or wanted not in case.expected:
        return None
    labels = (
        Label(case.token.span, f"{wanted} was expected here"),
        Label(open_ones[-1].span, "opened here", primary=False),
    )
    message = f"the bracket {open_ones[-1].value} is closed by {sign}"
    return Diagnostic("PS0104", message, labels, (), f"write {wanted}", "error", case.source)


_RAISED = str.maketrans("⁰⁴⁵⁶⁷⁸⁹", "0456789")


def needless_end(case: Failure) -> Diagnostic | None:
    """A comma, a point or a semicolon after a whole statement."""
    at_end = case.token.type == END and case.last is not None and case.last.type == ","
    sign = case.last if at_end else case.token
    if sign is None or sign.type not in {",", ".", ";"} or case.open_brackets():
        return None
    if not at_end and (case.source.text[sign.end : case.span.end].strip() or END not in case.expected):
        return None
    message = f"a statement ends with its line, without a {sign.value}"
    return case.error("PS0116", message, "nothing follows", f"leave the {sign.value} out", at=sign.span)


def _owner(case: Failure) -> Token | None:
    """The name before an opened bracket, as in `staff['salary']`."""
    if len(case.seen) < 2 or case.seen[-1].type != "[" or case.seen[-2].type != "NAME":
        return None
    return case.seen[-2]


def single_quotes(case: Failure) -> Diagnostic | None:
    """`csv('queries.csv')`."""
    if case.token.type != "'" or "'" in case.expected:
        return None
    quoted = re.match(r"'([^'\"\n]*)'", case.rest)
    if quoted is None:
        return None
    span = Span(case.token.start, case.token.start + quoted.end())
    if (owner := _owner(case)) is not None and case.source.text[span.end : span.end + 1] == "]":
        column = quoted[1] if is_name(quoted[1]) else f'"{quoted[1]}"'
        whole = Span(owner.start, span.end + 1)
        message = "a column is named after its table, with a point"
        return case.error("PS0131", message, "a column", f"write {owner.value}.{column}", at=whole)
    message = "a text stands in double quotes; ' is the transpose"
    return case.error("PS0115", message, "single quotes", f'write "{quoted[1]}"', at=span)


def lost_bar(case: Failure) -> Diagnostic | None:
    """`E[ ||O - y^2 ]`: the norm is never closed."""
    bars = [token for token in case.seen if token.type in {"NORM", "|"}]
    if len(bars) % 2 == 0 or not {"NORM", "|"} & case.expected:
        return None
    if case.token.type not in {*CLOSERS, END}:
        return None
    bar = "||" if bars[-1].type == "NORM" else "|"
    labels = (Label(case.place, f"{bar} was expected before this"), Label(bars[-1].span, "opened here", primary=False))
    message = f"this {bar} is never closed"
    advice = f"write {bar} at the end of what it measures, as in ||O - y||^2"
    return Diagnostic("PS0103", message, labels, (), advice, "error", case.source)


def range_sign(case: Failure) -> Diagnostic | None:
    """`age in 0-120`, `voter in 10`, `vote in [north, east, south]`."""
    before = case.last
    if before is None:
        return None
    if case.rule == "party" and case.token.type == "=" and len(case.seen) == 1:
        size = re.match(r"=[ \t]*([0-9]+|[^\W\d_]\w*)[ \t]*$", case.rest)
        if size is not None:
            message = "an index set is a range of whole numbers from 1"
            return case.error("PS0101", message, "a number", f"write {before.value} in 1..{size[1]}", at=case.span)
    opened = case.open_brackets()
    if case.token.type == ".." and before.type == "NUMBER" and opened:
        to = re.match(r"\.\.[ \t]*([0-9.]+)", case.rest)
        if opened[-1].type == "[" and to is not None:
            message = "an interval has a comma between its ends"
            advice = f"write {before.value}, {to[1]}"
            span = Span(before.start, case.token.start + to.end())
            return case.error("PS0131", message, "a range of whole numbers", advice, at=span)
        if case.seen[-2].type == "=":
            message = "which values there may be is said with in"
            return case.error("PS0131", message, "in was expected here", "write in", at=case.seen[-2].span)
    if case.rule == "parameter" and case.token.type == ".." and case.seen[0].type == "NAME":
        name = case.seen[0].value
        advice = f"write {name} = {before.value}, or let the solver choose under variables: choose {name} in [0, 10]"
        return case.error("PS0101", "a parameter has one value, not a range", "a range", advice)
    if ".." in case.expected and before.type == "NUMBER":
        to = re.match(r"(?:-|–|—|to\b|\.{3}|:)[ \t]*([0-9]+|[^\W\d]\w*)", case.rest)
        if to is not None:
            span = before.span.to(Span(case.token.start, case.token.start + to.end()))
            message = "a range of whole numbers is written with two points"
            return case.error("PS0131", message, "a range", f"write {before.value}..{to[1]}", at=span)
        if case.token.type == END and case.rule == "party":
            message = "an index set is a range of whole numbers from 1"
            return case.error("PS0102", message, "ends here", f"write 1..{before.value}")
    if (comma := decimal_comma(case)) is not None:
        return comma
    if case.token.type == "," and opened and opened[-1].type == "[" and case.rule == "variable":
        place = case.seen.index(opened[-1])
        listed = re.match(r"\[([^\[\]\n]*)\]", case.source.text[opened[-1].start : case.span.end])
        if listed is not None and place and case.seen[place - 1].type == "IN":
            span = Span(opened[-1].start, opened[-1].start + listed.end())
            message = "an interval has two ends; values that are listed stand in braces"
            return case.error("PS0101", message, "more than two", f"write {{{listed[1]}}}", at=span)
    return None


def power_of_nothing(case: Failure) -> Diagnostic | None:
    """`[0, 1]^`, `||O - y||2`, `[0, 1] x 4`, `input x [0, 1]^4`."""
    before, text = case.last, case.source.text
    if before is None:
        return None
    if before.type == "^" and (case.token.type == END or case.token.type in CLOSERS):
        what = "how many numbers? write for instance ^64, or leave ^ out for one" if case.rule == "variable" else None
        advice = what or "write for instance ^2"
        return case.error("PS0102", "an exponent is missing after ^", "raised to what?", advice, at=before.span)
    if case.token.type == "NAME" and (raised := case.token.value.translate(_RAISED)).isdigit() and before.type != ".":
        return case.error("PS0115", "a power is written with ^", "a raised number", f"write ^{raised}")
    types = [token.type for token in case.seen]
    if before.type in {"NORM", "|"} and case.token.type == "NUMBER" and before.end == case.token.start:
        span = before.span.to(case.token.span)
        advice = f"write {before.value}^{case.token.value}"
        return case.error("PS0131", "a power is written with ^", "^ is missing", advice, at=span)
    if case.rule != "variable" or before.type not in {"]", ")", "}"}:
        return None
    if "IN" in types:
        times = re.match(r"(?:[x×*]|times)[ \t]*([0-9]+|[^\W\d]\w*)\b", text[case.token.start : case.span.end])
        if times is None or case.token.value not in {"x", "×", "*", "times"}:
            return None
        base = case.source.slice(case.seen[types.index("IN") + 1].span.to(before.span))
        span = Span(case.token.start, case.token.start + times.end())
        advice = f"write {base}^{times[1]}"
        return case.error("PS0131", "several values of one domain are a power of it", "how many", advice, at=span)
    if types[0] == "KIND" and len(types) > 2 and types[1] == "NAME" and types[2] in {"[", "("}:
        return missing_in(case)
    return None


def missing_in(case: Failure) -> Diagnostic:
    """`input x [0, 1]^4`: the index of a declaration that is a domain."""
    said = case.source.slice(case.seen[0].span.to(case.seen[1].span))
    domain = case.source.text[case.seen[2].start : case.span.end].strip()
    message = "in is missing between the name and its domain"
    return case.error("PS0131", message, "a domain", f"write {said} in {domain}", at=case.seen[2].span)


def power_of_range(case: Failure) -> Diagnostic | None:
    """`1..10^3`."""
    types = [token.type for token in case.seen]
    if case.token.type not in {"^", "²"} or ".." not in types:
        return None
    first = len(types) - 2 - types[::-1].index("..")
    if first > 0 and types[first - 1] == "-":
        first -= 1
    span = case.seen[first].span.to(case.seen[-1].span)
    exponent = re.split(r"[\s,=]", case.rest[:12])[0]
    return case.error(
        "PS0110",
        "this could be a range of ranges or a range up to a power",
        "what is raised to the power?",
        f"write ({case.source.slice(span)}){exponent} for several numbers of the range",
        at=span.to(case.token.span),
    )


def continued(case: Failure) -> Diagnostic | None:
    """A line that begins like the rest of another."""
    if case.seen or case.token.type not in (OPERATORS - {"-"}) | {"=", "~", "<=", ">=", ",", "IN"}:
        return None
    return case.error(
        "PS0132",
        "a statement does not begin like this; is it the rest of the line before?",
        "continues nothing",
        "a statement ends with its line unless a bracket is open: put ( before the part that goes on",
    )
