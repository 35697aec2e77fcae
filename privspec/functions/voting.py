"""Rules that turn votes into a winner (Torra 2019), and what a ballot that is not the true one gains (Gibbard 1977)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from privspec.core.rounding import exp_down
from privspec.model.domains import Domain, FiniteSet, Rankings, Symbol, Symbols, Type
from privspec.model.library import Arguments, Bound, Function, FunctionError, NotComputableError
from privspec.model.lotteries import (
    Borda,
    Drawn,
    Exponential,
    FirstChoice,
    Largest,
    Lottery,
    PermuteAndFlip,
    Points,
    Proportional,
    scores,
)

LARGEST_EPSILON = 30
"""Weights beyond e^15 a vote leave nothing to chance."""


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


def _drawn(
    name: str, points: Callable[[tuple[Symbol, ...]], Points], lottery: Lottery, arguments: Arguments, *, choices: bool
) -> Bound:
    """A winner that is drawn: its law is known, its value is not."""
    winner, domain = _votes(arguments, name, rankings=True, choices=choices)

    def apply(*_: Any) -> Any:
        raise NotComputableError("its result is drawn at random")

    alternatives = domain.items if isinstance(domain, FiniteSet) else None
    known = None if alternatives is None else Drawn(points(alternatives), lottery)
    return Bound(winner, apply, domain=domain, drawn=known)


def _bind_random_dictator(arguments: Arguments) -> Bound:
    return _drawn("random_dictator", FirstChoice, Proportional(), arguments, choices=True)


def _bind_borda_lottery(arguments: Arguments) -> Bound:
    return _drawn("borda_lottery", Borda, Proportional(), arguments, choices=False)


def _bind_selection(name: str, lottery: Callable[[Fraction], Lottery]) -> Callable[[Arguments], Bound]:
    """A lottery whose weights are powers of e^(epsilon / 2): `epsilon` is its one public number."""

    def bind(arguments: Arguments) -> Bound:
        epsilon = arguments[1].value
        if not isinstance(epsilon, Fraction) or not 0 < epsilon <= LARGEST_EPSILON:
            raise FunctionError(f"{name} takes a public epsilon above 0 and up to {LARGEST_EPSILON}", 1)
        return _drawn(name, FirstChoice, lottery(exp_down(epsilon / 2)), arguments, choices=True)

    return bind


def _bind_plurality(arguments: Arguments) -> Bound:
    winner, domain = _votes(arguments, "plurality", rankings=True, choices=True)
    alternatives = domain.items if isinstance(domain, FiniteSet) else None

    def apply(votes: Any) -> Any:
        ballots = list(np.asarray(votes, dtype=object)) if alternatives is None else votes
        order = alternatives or tuple(sorted({_first(vote) for vote in ballots}, key=str))
        law = Largest().law(scores(FirstChoice(order), [_first(vote) for vote in ballots]))
        return order[law.index(Fraction(1))]

    known = None if alternatives is None else Drawn(FirstChoice(alternatives), Largest())
    return Bound(winner, apply, domain=domain, drawn=known)


def _first(vote: Any) -> Symbol:
    first: Symbol = vote[0] if isinstance(vote, tuple) else vote
    return first


def _bind_borda_scores(arguments: Arguments) -> Bound:
    _, domain = _votes(arguments, "borda_scores", rankings=True, choices=False)
    order = domain.items if isinstance(domain, FiniteSet) else ()

    def apply(votes: Any) -> Any:
        result = np.empty(len(order), dtype=object)
        result[:] = scores(Borda(order), votes)
        return result

    return Bound(Type((len(order),)), apply)


RULES: Mapping[str, Function] = {
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
            "exponential",
            "exponential(votes, epsilon)",
            "An alternative drawn with a probability proportional to e^(epsilon / 2) to the power of its first "
            "choices, the base rounded down to 64 binary digits.",
            _bind_selection("exponential", Exponential),
            arity=(2, 2),
            symmetric=True,
        ),
        Function(
            "permute_and_flip",
            "permute_and_flip(votes, epsilon)",
            "Alternatives are visited in random order; each is taken with probability e^(-epsilon / 2) to the power "
            "of the first choices that it has fewer than the leader. Never worse than exponential.",
            _bind_selection("permute_and_flip", PermuteAndFlip),
            arity=(2, 2),
            symmetric=True,
        ),
        Function(
            "plurality",
            "plurality(votes)",
            "The alternative that most voters put first; among equals the one that was declared first.",
            _bind_plurality,
            symmetric=True,
            ties="the one that was declared first",
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


def _bind_manipulation(arguments: Arguments) -> Bound:
    winner, votes = arguments[0].type, arguments[1].type
    if winner.shape or not isinstance(winner.element, Symbols):
        raise FunctionError(f"manipulation is about a winner, and this is {winner.describe()}", 0, code="PS0208")
    if len(votes.shape) != 1 or not isinstance(votes.element, Symbols | Rankings):
        message = f"manipulation takes votes, one for each person: words or rankings; this is {votes.describe()}"
        raise FunctionError(message, 1, code="PS0208")

    def apply(*_: Any) -> Any:
        raise NotComputableError("it compares laws, not values")

    return Bound(Type(), apply, data=(0, 1))


MANIPULATION: Mapping[str, Function] = {
    "manipulation": Function(
        "manipulation",
        "manipulation(O, votes)",
        "The most that one voter can add to the probability that one of its k best alternatives wins, for any k, by a "
        "ballot that is not the true one, whatever the others vote; 0 means strategy-proof. A ballot that may not name "
        "more says nothing of the order of the others, so that every order of them counts; one that might says that "
        "they are equally good.",
        _bind_manipulation,
        arity=(2, 2),
        symmetric=True,
        of_laws=True,
    )
}

FUNCTIONS: Mapping[str, Function] = {**RULES, **MANIPULATION}
