"""What a statement that does not parse was meant to be.

Every recogniser looks at one kind of slip and returns a diagnostic or None; the first that answers wins.
If none does, the diagnostic lists what could have stood there.
"""

from __future__ import annotations

from collections.abc import Callable

from privspec.core.diagnostics import Diagnostic
from privspec.core.spans import Source, Span
from privspec.language import mistakes_signs as signs
from privspec.language import mistakes_words as words
from privspec.language.automaton import ParseFailure
from privspec.language.failure import Failure
from privspec.language.tables import END
from privspec.language.words import plain_list

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
    words.missing_kind,
    words.from_file,
    words.objective,
    words.several,
    words.method,
    words.measure,
    words.wrt,
    words.verb,
    words.unit,
    words.comma,
    words.misspelt,
    words.law,
    signs.comparison,
    words.missing_operator,
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
