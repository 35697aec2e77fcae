"""Rules that turn votes into a winner (Torra 2019), and what a ballot that is not the true one gains (Gibbard 1977)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from privspec.core.rounding import exp_down
from privspec.kernel.laws.voting import DUMMY_VOTES, EXPONENTIAL, PERMUTE_AND_FLIP, PLURALITY, VotingRule
from privspec.model.domains import Domain, FiniteSet, Rankings, Symbol, Symbols, Type
from privspec.model.library import Arguments, Binder, Bound, Function, FunctionError, by_name, without_value
from privspec.model.values import exact_array
from privspec.model.voting import Borda, Drawn, FirstChoice, Lottery, Points, scores

WEIGHTS = ("weights",)
LARGEST_EPSILON = 30
"""Weights beyond e^15 a vote leave nothing to chance."""


def _votes(arguments: Arguments, name: str, *, rankings: bool, choices: bool) -> tuple[Type, Domain | None]:
    """The type of one winner, and the alternatives if they are known."""
    kind = arguments[0].type
    items: tuple[Symbol, ...] | None
    match kind.element:
        case Rankings(of=ranking) if rankings and len(kind.shape) == 1:
            items = ranking.alternatives
        case Symbols(items=items) if choices and len(kind.shape) == 1:
            pass
        case _:
            wanted = " or ".join(word for word, allowed in (("words", choices), ("rankings", rankings)) if allowed)
            message = f"{name} takes votes, one for each person: {wanted}; this is {kind.describe()}"
            raise FunctionError(message, 0, code="PS0208")
    return Type((), Symbols(items)), None if items is None else FiniteSet(items)


def _drawn(points: Callable[[tuple[Symbol, ...]], Points], lottery: Lottery, *, choices: bool) -> Binder:
    """Bind a winner that is drawn: its law is known, its value is not."""

    def bind(arguments: Arguments, name: str) -> Bound:
        winner, domain = _votes(arguments, name, rankings=True, choices=choices)
        apply, weights = without_value("its result is drawn at random"), _weights(arguments)
        known = Drawn(points(domain.items), lottery, weights) if isinstance(domain, FiniteSet) else None
        return Bound(winner, apply, domain=domain, drawn=known)

    return bind


def _weights(arguments: Arguments) -> tuple[Fraction, ...] | None:
    """How often each vote counts; None where the call does not say."""
    said = arguments.keywords.get("weights")
    if said is None:
        return None
    found = said.value if isinstance(said.value, np.ndarray) else np.zeros(0)
    weights = tuple(Fraction(weight) for weight in found.ravel())
    if found.shape != arguments[0].type.shape or min(weights, default=0) <= 0:
        raise FunctionError("the weights of votes are public positive numbers, one for each voter", "weights")
    return weights


def _selection(rule: VotingRule) -> Binder:
    """Bind a lottery whose weights are powers of e^(epsilon / 2): `epsilon` is its one public number."""

    def bind(arguments: Arguments, name: str) -> Bound:
        epsilon = arguments[1].value
        if not isinstance(epsilon, Fraction) or not 0 < epsilon <= LARGEST_EPSILON:
            raise FunctionError(f"{name} takes a public epsilon above 0 and up to {LARGEST_EPSILON}", 1)
        return _drawn(FirstChoice, Lottery(rule, exp_down(epsilon / 2)), choices=True)(arguments, name)

    return bind


def _plurality(arguments: Arguments, name: str) -> Bound:
    winner, domain = _votes(arguments, name, rankings=True, choices=True)
    alternatives = domain.items if isinstance(domain, FiniteSet) else None

    def apply(votes: Any) -> Any:
        ballots = list(np.asarray(votes, dtype=object)) if alternatives is None else votes
        order = alternatives or tuple(sorted({_first(vote) for vote in ballots}, key=str))
        law = Lottery(PLURALITY).law(scores(FirstChoice(order), [_first(vote) for vote in ballots]))
        return order[law.index(Fraction(1))]

    known = None if alternatives is None else Drawn(FirstChoice(alternatives), Lottery(PLURALITY))
    return Bound(winner, apply, domain=domain, drawn=known)


def _first(vote: Any) -> Symbol:
    first: Symbol = vote[0] if isinstance(vote, tuple) else vote
    return first


def _borda_scores(arguments: Arguments, name: str) -> Bound:
    _, domain = _votes(arguments, name, rankings=True, choices=False)
    order = domain.items if isinstance(domain, FiniteSet) else ()

    def apply(votes: Any) -> Any:
        result = np.empty(len(order), dtype=object)
        result[:] = scores(Borda(order), votes)
        return result

    return Bound(Type((len(order),)), apply)


def _pairwise(arguments: Arguments, name: str) -> Bound:
    _, domain = _votes(arguments, name, rankings=True, choices=False)
    order = domain.items if isinstance(domain, FiniteSet) else ()

    def above(vote: Any, one: Symbol, other: Symbol) -> bool:
        """What a partial ranking leaves out stands below all that it names."""
        return one in vote and (other not in vote or vote.index(one) < vote.index(other))

    def apply(votes: Any) -> Any:
        ballots = [tuple(vote) for vote in votes]
        counts = [Fraction(sum(above(vote, one, other) for vote in ballots)) for one in order for other in order]
        return exact_array(counts, (len(order), len(order)))

    return Bound(Type((len(order), len(order))), apply)


def _manipulation(arguments: Arguments, _: str) -> Bound:
    winner, votes = arguments[0].type, arguments[1].type
    if winner.shape or not isinstance(winner.element, Symbols):
        raise FunctionError(f"manipulation is about a winner, and this is {winner.describe()}", 0, code="PS0208")
    if len(votes.shape) != 1 or not isinstance(votes.element, Symbols | Rankings):
        message = f"manipulation takes votes, one for each person: words or rankings; this is {votes.describe()}"
        raise FunctionError(message, 1, code="PS0208")
    return Bound(Type(), without_value("it compares laws, not values"), data=(0, 1))


FUNCTIONS: Mapping[str, Function] = by_name(
    Function(
        "random_dictator(votes, weights = w)",
        _drawn(FirstChoice, Lottery(DUMMY_VOTES), choices=True),
        keywords=WEIGHTS,
        symmetric=True,
    ),
    Function(
        "borda_lottery(rankings, weights = w)",
        _drawn(Borda, Lottery(DUMMY_VOTES), choices=False),
        keywords=WEIGHTS,
        symmetric=True,
    ),
    Function("exponential(votes, epsilon)", _selection(EXPONENTIAL), arity=(2, 2), symmetric=True),
    Function("permute_and_flip(votes, epsilon)", _selection(PERMUTE_AND_FLIP), arity=(2, 2), symmetric=True),
    Function("plurality(votes)", _plurality, symmetric=True, ties="the one that was declared first"),
    Function("borda_scores(rankings)", _borda_scores, symmetric=True, additive=True),
    Function("pairwise(rankings)", _pairwise, symmetric=True, additive=True),
    Function("manipulation(O, votes)", _manipulation, arity=(2, 2), symmetric=True, of_laws=True),
)
