"""Rules that turn votes into a winner (Torra 2019)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from privspec.model.domains import Domain, FiniteSet
from privspec.model.library import Arguments, Bound, Function, FunctionError, NotComputableError
from privspec.model.types import Rankings, Symbol, Symbols, Type


def _votes(arguments: Arguments, name: str, *, rankings: bool, choices: bool) -> tuple[Type, Domain | None]:
    """The type of one winner, and the alternatives if they are known."""
    kind = arguments[0].type
    wanted = "votes, one for each person: " + " or ".join(
        word for word, allowed in (("words", choices), ("rankings", rankings)) if allowed
    )
    if len(kind.shape) != 1:
        raise FunctionError(f"{name} takes {wanted}; this is {kind.describe()}", 0, code="PS0208")
    items: tuple[Symbol, ...] | None
    match kind.element:
        case Rankings(of=ranking) if rankings:
            items = ranking.alternatives
        case Symbols(items=items) if choices:
            pass
        case _:
            raise FunctionError(f"{name} takes {wanted}; this is {kind.describe()}", 0, code="PS0208")
    winner = Type((), Symbols(items))
    return winner, None if items is None else FiniteSet(items)


def _bind_random_dictator(arguments: Arguments) -> Bound:
    winner, domain = _votes(arguments, "random_dictator", rankings=True, choices=True)

    def apply(*_: Any) -> Any:
        raise NotComputableError("its result is drawn at random")

    return Bound(winner, apply, domain=domain)


def _bind_borda_lottery(arguments: Arguments) -> Bound:
    winner, domain = _votes(arguments, "borda_lottery", rankings=True, choices=False)

    def apply(*_: Any) -> Any:
        raise NotComputableError("its result is drawn at random")

    return Bound(winner, apply, domain=domain)


def _bind_plurality(arguments: Arguments) -> Bound:
    winner, domain = _votes(arguments, "plurality", rankings=True, choices=True)
    order = domain.items if isinstance(domain, FiniteSet) else ()

    def apply(votes: Any) -> Any:
        tops = [vote[0] if isinstance(vote, tuple) else vote for vote in np.asarray(votes, dtype=object)]
        counts = Counter(tops)
        return max(order or sorted(counts, key=str), key=lambda item: counts[item])

    return Bound(winner, apply, domain=domain)


def _bind_borda_scores(arguments: Arguments) -> Bound:
    _, domain = _votes(arguments, "borda_scores", rankings=True, choices=False)
    order = domain.items if isinstance(domain, FiniteSet) else ()

    def apply(votes: Any) -> Any:
        scores = dict.fromkeys(order, 0)
        for vote in votes:
            for place, item in enumerate(vote):
                scores[item] += len(order) - 1 - place
        result = np.empty(len(order), dtype=object)
        result[:] = [Fraction(scores[item]) for item in order]
        return result

    return Bound(Type((len(order),)), apply)


FUNCTIONS: Mapping[str, Function] = {
    f.name: f
    for f in (
        Function(
            "random_dictator",
            "random_dictator(votes)",
            "The first choice of one voter who is drawn at random, each with the same probability.",
            _bind_random_dictator,
            symmetric=True,
        ),
        Function(
            "borda_lottery",
            "borda_lottery(rankings)",
            "An alternative drawn with a probability proportional to its Borda score.",
            _bind_borda_lottery,
            symmetric=True,
        ),
        Function(
            "plurality",
            "plurality(votes)",
            "The alternative that most voters put first; among equals the one that was declared first.",
            _bind_plurality,
            symmetric=True,
        ),
        Function(
            "borda_scores",
            "borda_scores(rankings)",
            "For each alternative, in the order declared, how often it is ranked above another one.",
            _bind_borda_scores,
            symmetric=True,
        ),
    )
}
