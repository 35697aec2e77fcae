"""The library functions of the language, one file per field. May import `core`, `language`, `model`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from privspec.model.library import Function, provide

HOMES: dict[str, str] = {
    **dict.fromkeys(
        ("prefix_sums", "suffix_sums", "range_sums", "decayed_sums", "total", "differences", "diagonal"), "numeric"
    ),
    **dict.fromkeys(("identity", "ones", "zeros", "prefix_matrix", "range_matrix"), "numeric"),
    **dict.fromkeys(("sum", "histogram", "marginals", "count"), "numeric"),
    **dict.fromkeys(("keys", "missed", "others"), "numeric"),
    **dict.fromkeys(("mismatch", "at_least", "total_variation", "angle", "disagreement", "cost"), "numeric"),
    **dict.fromkeys(("sqrt", "exp", "log", "abs", "floor", "ceil", "sign"), "numeric"),
    **dict.fromkeys(
        ("mean", "variance", "covariance", "correlation", "regression", "least_squares", "consistent"), "moments"
    ),
    **dict.fromkeys(
        ("cut", "lookup", "week", "month", "quarter", "year", "weekday", "day", "hour", "persons", "any"), "columns"
    ),
    **dict.fromkeys(("random_dictator", "borda_lottery", "exponential", "permute_and_flip"), "voting"),
    **dict.fromkeys(("plurality", "borda_scores", "pairwise", "manipulation"), "voting"),
    **dict.fromkeys(("median", "quantile", "quantiles", "max", "min"), "selection"),
    **dict.fromkeys(("argmax", "top", "mode", "rank_error", "bound_error"), "selection"),
    **dict.fromkeys(("probit_mle", "logit_mle"), "probit"),
}
"""Which module a function lives in, so that a spec loads only the fields it uses."""


class _Registry(Mapping[str, Function]):
    """Functions by name; a module is imported when one of its functions is asked for."""

    def __getitem__(self, name: str) -> Function:
        found: Function = import_module(f"privspec.functions.{HOMES[name]}").FUNCTIONS[name]
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(HOMES)

    def __len__(self) -> int:
        return len(HOMES)

    def __contains__(self, name: object) -> bool:
        return name in HOMES


REGISTRY: Mapping[str, Function] = _Registry()
"""Every library function by name."""
provide(REGISTRY)
