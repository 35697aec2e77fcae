"""What a statement that does not parse was meant to be.

Every recogniser looks at one kind of slip and returns a diagnostic or None; the first that answers wins, and
the last one always does: it lists what could have stood there.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

from privspec.core.diagnostics import Diagnostic, Label
from privspec.core.spans import Source, Span
from privspec.core.suggest import nearest
from privspec.language import tables
from privspec.language.automaton import ParseFailure, run
from privspec.language.build import ACTIONS
from privspec.language.layout import SECTIONS
from privspec.language.tables import END
from privspec.language.tokens import KINDS, MAX_DIGITS, MAX_EXPONENT, Token, is_name
from privspec.language.words import plain_list

_MEASURES = ("DP", "zCDP", "GDP", "LDP", "RDP", "metric-DP", "Lipschitz")
_OPERAND = frozenset({"NAME", "NUMBER", "STRING", "OVER", "(", "{"})
_OPERATORS = frozenset({"+", "-", "*", "/", "@", "^"})
_CLOSERS = {")": "(", "]": "[", "}": "{"}

_INSTEAD = {
    "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'", "´": "'", "`": "'", "′": "'",
    "–": "-", "—": "-", "×": "*", "∗": "*", "⋅": "*", "∙": "*", "•": "*", "÷": "/", "∕": "/",
    "³": "^3", "¹": "^1", "⁴": "^4", "ⁿ": "^n", "ᵀ": "'", "≈": "~", "∣": "|", "∥": "||", "…": "..",
    "，": ",", "：": ":", "（": "(", "）": ")", "；": "one line each",
    "∞": "inf", "√": "sqrt(...)", "∑": "sum(...)", "Σ": "sum(...)",
    "\u00a0": "an ordinary space", "\u2009": "an ordinary space", "\u202f": "an ordinary space",
    "\u3000": "an ordinary space", "\u200b": "nothing", "\ufeff": "nothing", "\u2060": "nothing",
    "?": "nothing", "$": "nothing", "\\": "nothing", "&": "and, or a line for each",
}  # fmt: skip

_OTHER_SIGNS = {
    "**": "^", "!=": "mismatch(a, b)", "<>": "mismatch(a, b)", "=<": "<=", "=>": ">=", "<-": "=", "->": "=",
    ":=": "=", "&&": "a line for each",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Failure:
    """A statement with the token at which it stops making sense."""

    source: Source
    rule: str
    span: Span
    token: Token
    seen: tuple[Token, ...]
    expected: frozenset[str]

    @property
    def place(self) -> Span:
        """What to point at: the token, or the last one when the statement just ends."""
        if self.token.type != END:
            return self.token.span
        return self.seen[-1].span if self.seen else self.span

    @property
    def section(self) -> str:
        """The section in whose words the statement should be."""
        return next(name for name, rule in SECTIONS.items() if rule == self.rule)

    @property
    def rest(self) -> str:
        """The text from the token on."""
        return self.source.text[self.token.start : self.span.end]

    def types(self) -> list[str]:
        """The types of the tokens before."""
        return [token.type for token in self.seen]

    def error(
        self, code: str, message: str, label: str, advice: str | None = None, at: Span | None = None
    ) -> Diagnostic:
        """A diagnostic that points at the place."""
        return Diagnostic(code, message, (Label(at or self.place, label),), (), advice, "error", self.source)


def explain(source: Source, rule: str, span: Span, failure: ParseFailure) -> Diagnostic:
    """The diagnostic of a statement that does not parse."""
    case = Failure(source, rule, span, failure.token, failure.seen, failure.expected)
    for recogniser in _RECOGNISERS:
        diagnostic = recogniser(case)
        if diagnostic is not None:
            return diagnostic
    return _unexpected(case)


# --- single signs ------------------------------------------------------------------------------


def _strange_character(case: Failure) -> Diagnostic | None:
    if case.token.type != "STRANGE":
        return None
    char = case.token.value
    if char == "%":
        return case.error(
            "PS0115", "there is no sign % here", "a share is a number from 0 to 1", "write 0.5 for 50 %"
        )
    if char == "_":
        text = "a name starts with a letter; in a number no _ may stand"
        return case.error("PS0115", text, "this _ starts nothing", "leave the _ out")
    name = unicodedata.name(char, "").lower()
    named = f" ({name})" if name and not char.isascii() else ""
    shown = char if char.isprintable() and not char.isspace() else f"U+{ord(char):04X}"
    instead = _INSTEAD.get(char)
    message = f"the character {shown}{named} means nothing here"
    if unicodedata.category(char) == "Nd":
        instead = str(unicodedata.digit(char))
    if instead == "nothing":
        return case.error("PS0115", message, "this character", "leave it out")
    if instead is not None:
        return case.error("PS0115", message, "this character", f"write {instead}")
    return case.error(
        "PS0115", message, "this character", "names hold letters, digits and _; # starts a comment"
    )


def _number_too_long(case: Failure) -> Diagnostic | None:
    if case.token.type != "TOO_LONG":
        return None
    limits = f"at most {MAX_DIGITS} digits and an exponent from -{MAX_EXPONENT} to {MAX_EXPONENT}"
    return case.error("PS0121", f"a number has {limits}", "too long", "round it, or read it from a file")


def _number_form(case: Failure) -> Diagnostic | None:
    text, start = case.source.text, case.token.start
    if (
        case.token.type == "."
        and (digits := re.compile(r"\.([0-9]+)").match(text, start))
        and "NUMBER" in case.expected
    ):
        return case.error(
            "PS0121", "a number starts with a digit", "starts with a point", f"write 0.{digits[1]}"
        )
    before = case.seen[-1] if case.seen else None
    if before is None or before.type != "NUMBER" or before.end != start:
        if len(case.seen) > 1 and case.seen[-1].type == "." and case.seen[-2].type == "NUMBER":
            number = case.seen[-2]
            return case.error(
                "PS0121",
                "a digit is missing after the point",
                "ends with a point",
                f"write {number.value}.0, or {number.value}..hi for a range",
                at=number.span.to(case.seen[-1].span),
            )
        return None
    if case.token.type == "NAME" and re.fullmatch(r"[eExX].*", case.token.value):
        span = before.span.to(case.token.span)
        return case.error(
            "PS0121", "this is no number", "cannot be read", "numbers look like 12, 0.5 or 1e-6", at=span
        )
    return None


def _equals_twice(case: Failure) -> Diagnostic | None:
    if case.token.type != "==":
        return None
    return case.error(
        "PS0105", "two equals signs stand here", "one is enough", "write =, which states that both are equal"
    )


def _strict_inequality(case: Failure) -> Diagnostic | None:
    if case.token.type not in {"<", ">"}:
        return None
    sign = case.token.type
    return case.error(
        "PS0106",
        f"{sign} is not used: a requirement that is met in the limit cannot leave the limit out",
        "a strict inequality",
        f"write {sign}=",
    )


def _other_sign(case: Failure) -> Diagnostic | None:
    sign = case.token.type
    if sign == "*" and case.seen and case.seen[-1].type == "*" and case.seen[-1].end == case.token.start:
        sign = "**"
    if sign not in _OTHER_SIGNS:
        return None
    return case.error("PS0116", f"there is no sign {sign}", "not known", f"write {_OTHER_SIGNS[sign]}")


def _colon(case: Failure) -> Diagnostic | None:
    if case.token.type == ";":
        return case.error(
            "PS0116", "a ; separates nothing here", "not known", "put every statement on a line of its own"
        )
    if case.token.type == "!":
        return case.error("PS0116", "there is no sign !", "not known")
    if case.token.type != ":":
        return None
    use = (
        "name = value gives a value"
        if case.rule in {"parameter", "component"}
        else "name in domain says what it may be"
    )
    return case.error(
        "PS0116", "a colon ends the header of a section and stands nowhere else", "not a header", use
    )


# --- brackets ----------------------------------------------------------------------------------


def _closing_bracket(case: Failure) -> Diagnostic | None:
    if case.token.type not in _CLOSERS:
        return None
    open_ones: list[Token] = []
    for token in case.seen:
        if token.type in "([{":
            open_ones.append(token)
        elif token.type in _CLOSERS and open_ones:
            open_ones.pop()
    sign = case.token.value
    if not open_ones:
        return case.error(
            "PS0104",
            f"this {sign} closes nothing",
            "no bracket is open here",
            "leave it out, or open one before",
        )
    wanted = {"(": ")", "[": "]", "{": "}"}[open_ones[-1].type]
    if wanted == sign or sign in case.expected or wanted not in case.expected:
        return None
    labels = (
        Label(case.token.span, f"{wanted} was expected here"),
        Label(open_ones[-1].span, "opened here", primary=False),
    )
    message = f"the bracket {open_ones[-1].value} is closed by {sign}"
    return Diagnostic("PS0104", message, labels, (), f"write {wanted}", "error", case.source)


# --- domains -----------------------------------------------------------------------------------


def _power_of_range(case: Failure) -> Diagnostic | None:
    if case.token.type not in {"^", "²"} or ".." not in case.types():
        return None
    dots = len(case.seen) - 1 - case.types()[::-1].index("..")
    first = dots - 1
    if first > 0 and case.seen[first - 1].type == "-":
        first -= 1
    span = case.seen[first].span.to(case.seen[-1].span)
    text = case.source.slice(span)
    end = case.source.text[case.token.start : case.token.start + 12].split(" ")[0].split("\n")[0]
    return case.error(
        "PS0110",
        "this could be a range of ranges or a range up to a power",
        "what is raised to the power?",
        f"write ({text}){end} for several numbers of the range",
        at=span.to(case.token.span),
    )


# --- requirements ------------------------------------------------------------------------------


def _measure(case: Failure) -> Diagnostic | None:
    if "MEASURE" not in case.expected or case.rule not in {"requirement", "fairness"}:
        return None
    if case.token.type == "WRT" and case.seen[-1].value in _MEASURES:
        word = case.seen[-1].value
        return case.error(
            "PS0111",
            f"how much {word}? An amount is missing",
            "only the name of the measure",
            f"write epsilon-{word}",
            case.seen[-1].span,
        )
    rest = case.rest
    match = re.match(r"[-‐‑−–]?[ \t]*([^\W\d_]+(?:-[^\W\d_]+)*)", rest)
    if match is None:
        if case.token.type == END:
            return case.error(
                "PS0111", "the measure is missing", "an amount, but of what?", "write for instance epsilon-DP"
            )
        return None
    word = match[1]
    span = Span(case.token.start, case.token.start + match.end())
    amount = _amount_text(case)
    if word.lower().startswith("different"):
        return case.error(
            "PS0111", "the measures have short names", "write DP", f"write {amount}-DP", at=span
        )
    known = next((m for m in _MEASURES if m.lower() == word.lower()), None) or nearest(word, _MEASURES)
    if known is not None:
        joined = rest[0] not in " \t" and match[0] == f"-{word}"
        message = (
            f"there is no measure {word}"
            if joined and word not in _MEASURES
            else "a hyphen joins the amount and the measure, without spaces"
        )
        return case.error("PS0111", message, "read as separate words", f"write {amount}-{known}", at=span)
    if rest[0] in "-‐‑−–" or not case.expected & _OPERATORS:
        return case.error(
            "PS0111",
            f"there is no measure {word}",
            "not known",
            f"the measures are {', '.join(_MEASURES)}",
            at=span,
        )
    return None


def _amount_text(case: Failure) -> str:
    verbs = [i for i, token in enumerate(case.seen) if token.type in {"is", "are"}]
    if not verbs or verbs[-1] + 1 >= len(case.seen):
        return "epsilon"
    return case.source.slice(case.seen[verbs[-1] + 1].span.to(case.seen[-1].span))


def _wrt(case: Failure) -> Diagnostic | None:
    if "WRT" not in case.expected or case.rule not in {"requirement", "fairness"}:
        return None
    if case.expected & _OPERATORS and case.token.type != END:
        return None
    return case.error(
        "PS0128",
        "the requirement does not say whose data it protects",
        "wrt and a variable should follow" if case.token.type == END else "wrt was expected here",
        "write for instance: O is epsilon-DP wrt x, replacing one record",
    )


def _verb(case: Failure) -> Diagnostic | None:
    if "is" not in case.expected or case.rule not in {"requirement", "fairness"}:
        return None
    if case.token.type in _CLOSERS or case.token.type in {",", "STRANGE"}:
        return None
    better = _elsewhere(case)
    if better is not None:
        return better
    return case.error(
        "PS0127",
        "a requirement is a sentence: outputs is amount-measure wrt inputs",
        "is was expected here" if case.token.type != END else "is should follow",
        "write for instance: O is epsilon-DP wrt x, replacing one record",
    )


# --- words -------------------------------------------------------------------------------------


def _missing_kind(case: Failure) -> Diagnostic | None:
    if case.rule != "variable" or case.seen:
        return None
    better = _elsewhere(case)
    if better is not None:
        return better
    word = case.token.value
    close = nearest(word, KINDS) if is_name(word) else None
    help_text = f"did you mean {close}?" if close else "write for instance: input x in [0, 1]^64"
    return case.error(
        "PS0126",
        "a variable starts with its kind: input, constant, intermediate, output or choose",
        "not a kind",
        help_text,
    )


def _misspelt_keyword(case: Failure) -> Diagnostic | None:
    if case.token.type != "NAME" or "NAME" in case.expected:
        return None
    words = sorted(w for w in case.expected if w.isalpha() and w.islower())
    close = nearest(case.token.value, words) or _LIKE.get(case.token.value.lower())
    if close is None or close not in words:
        return None
    return case.error(
        "PS0131",
        f"{case.token.value} is not a word of the language here",
        "not known",
        f"did you mean {close}?",
    )


_LIKE = {
    "replace": "replacing", "replaces": "replacing", "substituting": "replacing", "changing": "replacing",
    "add": "adding", "adds": "adding", "removing": "adding", "remove": "adding", "adding/removing": "adding",
    "a": "one", "an": "one", "each": "one", "any": "one", "single": "one", "at": "up", "all": "everything",
    "visible": "seen", "known": "seen", "metric": "distance",
}  # fmt: skip


def _elsewhere(case: Failure) -> Diagnostic | None:
    """The line would be right in another section."""
    if len(case.source.text) > 0 and case.span.end - case.span.start > 2000:
        return None
    for section, rule in SECTIONS.items():
        if rule in {case.rule, "loss", "fairness"}:
            continue
        try:
            run(tables.load(), rule, case.source.text, case.span.start, case.span.end, ACTIONS)
        except ParseFailure:
            continue
        return case.error(
            "PS0125",
            f"this is no line of the section {case.section}",
            f"reads like a line of {section}",
            f"move it under {section}:",
            at=case.span,
        )
    return None


def _continued(case: Failure) -> Diagnostic | None:
    if case.seen or case.token.type not in (_OPERATORS - {"-"}) | {"=", "~", "<=", ">=", ",", "IN"}:
        return None
    return case.error(
        "PS0132",
        "a statement does not begin like this; is it the rest of the line before?",
        "continues nothing",
        "a statement ends with its line unless a bracket is open: write ( before the part that goes on",
    )


def _missing_operator(case: Failure) -> Diagnostic | None:
    if case.token.type not in _OPERAND or not case.expected >= _OPERATORS or not case.seen:
        return None
    before = case.seen[-1]
    if case.token.type == "(" and before.type == "NAME":
        return None
    both = before.span.to(case.token.span)
    left, right = case.source.slice(before.span), case.source.slice(case.token.span)
    help_text = (
        f"write {left} * {right} for a product"
        if case.token.type in {"NAME", "NUMBER"} and before.type in {"NAME", "NUMBER"}
        else None
    )
    return case.error(
        "PS0131", "something is missing between these two", f"{left} {right}", help_text, at=both
    )


def _ends_early(case: Failure) -> Diagnostic | None:
    if case.token.type != END:
        return None
    better = _elsewhere(case)
    if better is not None:
        return better
    wanted = plain_list(case.expected)
    return case.error(
        "PS0102", f"the statement ends too early: {wanted} should follow", "ends here", _FORMS.get(case.rule)
    )


def _unexpected(case: Failure) -> Diagnostic:
    better = _elsewhere(case)
    if better is not None:
        return better
    wanted = plain_list(case.expected)
    found = case.source.slice(case.token.span) or "the end of the line"
    return case.error(
        "PS0101", f"{found} cannot stand here; {wanted} was expected", "not understood", _FORMS.get(case.rule)
    )


_FORMS = {
    "parameter": "a line of parameters reads: epsilon = 1.0",
    "party": "a line of parties reads: voter in 1..N",
    "component": 'a line of components reads: average = spec("average.priv", x = x)',
    "variable": "a line of variables reads: input x in [0, 1]^64",
    "background": "a line of background reads: y = A @ x + b",
    "loss": "a loss reads: E[ ||O - y||^2 ]",
    "target": "a line of accuracy reads: E[ (O[j] - y[j])^2 ] <= 4 for j in 1..32",
    "requirement": "a requirement reads: O is (epsilon, delta)-DP wrt x, replacing one record",
    "fairness": "a line of fairness reads: O is independent of sex given income, up to 0.05",
    "option": "the options are: trust curator, noise at x, noise family gaussian",
}

_RECOGNISERS: tuple[Callable[[Failure], Diagnostic | None], ...] = (
    _strange_character,
    _number_too_long,
    _number_form,
    _equals_twice,
    _strict_inequality,
    _other_sign,
    _colon,
    _power_of_range,
    _closing_bracket,
    _continued,
    _missing_kind,
    _measure,
    _wrt,
    _verb,
    _misspelt_keyword,
    _missing_operator,
    _ends_early,
)
