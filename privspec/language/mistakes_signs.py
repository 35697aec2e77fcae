"""Slips with signs, numbers and brackets."""

from __future__ import annotations

import re
import unicodedata

from privspec.core.diagnostics import Diagnostic, Label
from privspec.language.failure import CLOSERS, OPENERS, OPERATORS, Failure
from privspec.language.tokens import MAX_DIGITS, MAX_EXPONENT

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
_BASED = re.compile(r"[eExX].*")


def strange_character(case: Failure) -> Diagnostic | None:
    """A character that begins no token."""
    if case.token.type != "STRANGE":
        return None
    char = case.token.value
    if char == "%":
        advice = "write 0.5 for 50 %"
        return case.error("PS0115", "there is no sign % here", "a share is a number from 0 to 1", advice)
    if char == "_":
        text = "a name starts with a letter; in a number no _ may stand"
        return case.error("PS0115", text, "this _ starts nothing", "leave the _ out")
    name = unicodedata.name(char, "").lower()
    named = f" ({name})" if name and not char.isascii() else ""
    shown = char if char.isprintable() and not char.isspace() else f"U+{ord(char):04X}"
    message = f"the character {shown}{named} means nothing here"
    instead = _INSTEAD.get(char)
    if unicodedata.category(char) == "Nd":
        instead = str(unicodedata.digit(char))
    advice = "names hold letters, digits and _; # starts a comment"
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
    advice = "round it, or read it from a file"
    return case.error("PS0121", f"a number has {limits}", "too long", advice)


def number_form(case: Failure) -> Diagnostic | None:
    """`.5`, `5.`, `1e`, `0x10`."""
    before = case.last
    point = _POINT.match(case.source.text, case.token.start)
    if case.token.type == "." and point and "NUMBER" in case.expected:
        advice = f"write 0.{point[1]}"
        return case.error("PS0121", "a number starts with a digit", "starts with a point", advice)
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
        span = before.span.to(case.token.span)
        return case.error("PS0121", "this is no number", "cannot be read", advice, at=span)
    return None


def equals_twice(case: Failure) -> Diagnostic | None:
    """`==`."""
    if case.token.type != "==":
        return None
    advice = "write =, which states that both are equal"
    return case.error("PS0105", "two equals signs stand here", "one is enough", advice)


def strict_inequality(case: Failure) -> Diagnostic | None:
    """`<` or `>`."""
    sign = case.token.type
    if sign not in {"<", ">"}:
        return None
    message = f"{sign} is not used: what is met in the limit cannot leave the limit out"
    return case.error("PS0106", message, "a strict inequality", f"write {sign}=")


def comparison(case: Failure) -> Diagnostic | None:
    """`a >= b` under accuracy, `a <= b <= c` anywhere."""
    if case.token.type not in {"<=", ">=", "="} or case.token.type in case.expected:
        return None
    if any(token.type in {"<=", ">=", "=", "~"} for token in case.seen) and not case.open_brackets():
        advice = "write a <= b and b <= c on lines of their own"
        return case.error("PS0101", "a line compares two things", "a second comparison", advice)
    if case.rule == "target" and case.token.type == ">=":
        advice = "write b <= a for a >= b"
        return case.error("PS0101", "a target is an upper limit", "<= was expected here", advice)
    return None


def other_sign(case: Failure) -> Diagnostic | None:
    """Signs of other languages."""
    sign = case.token.type
    if sign == ";":
        advice = "put every statement on a line of its own"
        return case.error("PS0116", "a ; separates nothing here", "not known", advice)
    if sign == "!":
        return case.error("PS0116", "there is no sign !", "not known", "leave it out")
    if sign not in _OTHER_SIGNS:
        return None
    return case.error("PS0116", f"there is no sign {sign}", "not known", f"write {_OTHER_SIGNS[sign]}")


def colon(case: Failure) -> Diagnostic | None:
    """`epsilon: 1.0`."""
    if case.token.type != ":":
        return None
    gives = case.rule in {"parameter", "component", "background"}
    advice = "write name = value to give a value" if gives else "write name in domain"
    message = "a colon ends the header of a section and stands nowhere else"
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
