"""What voters could gain by a ballot that is not the true one (Gibbard 1977; Brandt 2017, section 4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from privspec.model.library import Arguments, Bound, Function, FunctionError, NotComputableError
from privspec.model.types import Rankings, Symbols, Type


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


FUNCTIONS: Mapping[str, Function] = {
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
