"""Slips with words: measures, sentences of requirements, kinds, keywords."""

from __future__ import annotations

import re

from privspec.core.diagnostics import Diagnostic
from privspec.core.spans import Span
from privspec.core.suggest import nearest
from privspec.language.failure import CLOSERS, OPERATORS, Failure
from privspec.language.tables import END
from privspec.language.tokens import KINDS, is_name

_MEASURES = ("DP", "zCDP", "GDP", "LDP", "RDP", "metric-DP", "per-atom-LDP", "Lipschitz")
_MEASURE = re.compile(r"[-‐‑−–]?[ \t]*([^\W\d_]+(?:-[^\W\d_]+)*)")
_COMPUTED = re.compile(r"[^,\n]*?(?=[-‐‑](metric-DP|per-atom-LDP|zCDP|GDP|LDP|RDP|DP|Lipschitz)\b)")
_SENTENCES = frozenset({"requirement", "fairness"})
_MODEL = "write for instance: O is epsilon-DP wrt x, replacing one record"
_OPERAND = frozenset({"NAME", "NUMBER", "STRING", "OVER", "(", "{"})

_LIKE = {
    "replace": "replacing", "replaces": "replacing", "substituting": "replacing", "changing": "replacing",
    "add": "adding", "adds": "adding", "removing": "adding", "remove": "adding",
    "a": "one", "an": "one", "each": "one", "any": "one", "single": "one", "at": "up", "all": "everything",
    "visible": "seen", "known": "seen", "metric": "distance", "prob": "probability",
}  # fmt: skip


def measure(case: Failure) -> Diagnostic | None:
    """What stands where `-DP` should."""
    if "MEASURE" not in case.expected or case.rule not in _SENTENCES or case.last is None:
        return None
    before, rest = case.last, case.rest
    if before.value in _MEASURES and case.seen[-2].type in {"is", "are"}:
        message = f"how much {before.value}? An amount is missing"
        return case.error("PS0111", message, "only the measure", f"write epsilon-{before.value}", before.span)
    if case.token.type == END:
        advice = f"write for instance {_amount(case)}-DP"
        return case.error("PS0111", "the measure is missing", "an amount, but of what?", advice)
    if computed := _COMPUTED.match(rest):
        amount = f"{_amount(case)}{'' if rest[0] in '([.' else ' '}{computed[0]}"
        if not _MEASURE.fullmatch(computed[0].strip()) and case.token.type not in {"STRANGE", ","}:
            message = "an amount that is computed stands in brackets"
            span = Span(case.seen[_verb_at(case) + 1].start, case.token.start + computed.end())
            return case.error("PS0111", message, "the amount", f"write ({amount})-{computed[1]}", span)
    match = _MEASURE.match(rest)
    if match is None:
        return None
    return _wrong_measure(case, match, rest)


def _wrong_measure(case: Failure, match: re.Match[str], rest: str) -> Diagnostic | None:
    word = match[1]
    span = Span(case.token.start, case.token.start + match.end())
    amount = _amount(case)
    if word.lower().startswith("different"):
        return case.error("PS0111", "the measures have short names", "DP", f"write {amount}-DP", at=span)
    known = next((m for m in _MEASURES if m.lower() == word.lower()), None) or nearest(word, _MEASURES)
    hyphen = rest[0] in "-‐‑−–"
    if known == word:
        message = "a hyphen joins the amount and the measure, without spaces"
        return case.error("PS0111", message, "read as separate words", f"write {amount}-{known}", at=span)
    if known is not None and word != "wrt":
        message = f"there is no measure {word}"
        return case.error("PS0111", message, "not known", f"did you mean {amount}-{known}?", at=span)
    if hyphen or case.token.type == "NAME":
        advice = f"the measures are {', '.join(_MEASURES)}; for instance {amount}-DP"
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
    return case.error("PS0128", message, label, _MODEL)


def verb(case: Failure) -> Diagnostic | None:
    """A requirement that is no sentence."""
    if "is" not in case.expected or case.rule not in _SENTENCES:
        return None
    if case.token.type in CLOSERS or case.token.type in {",", "STRANGE"}:
        return None
    ends = case.token.type == END
    message = "a requirement is a sentence: outputs is amount-measure wrt inputs"
    label = "is should follow" if ends else "is was expected here"
    return case.elsewhere() or case.error("PS0127", message, label, _MODEL)


def comma(case: Failure) -> Diagnostic | None:
    """A clause without the comma before it."""
    words = {"replacing", "adding", "distance", "seen", "up"}
    if "," not in case.expected or case.token.value not in words or case.open_brackets():
        return None
    word = case.token.value
    message = f"a comma is missing before {word}"
    return case.error("PS0101", message, "a part of its own", f"write , {word}")


def missing_kind(case: Failure) -> Diagnostic | None:
    """A variable that does not say what it is."""
    if case.rule != "variable" or case.seen:
        return None
    word = case.token.value
    close = nearest(word, KINDS) if is_name(word) else None
    advice = f"did you mean {close}?" if close else "write for instance: input x in [0, 1]^64"
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
    if case.open_brackets() and "," in case.expected:
        advice = f"put a comma or an operator between {left} and {right}"
    return case.error("PS0131", "something is missing between these two", f"{left} {right}", advice, at=both)
