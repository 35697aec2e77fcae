"""What a rule keeps: tried on all profiles of a few voters, with the parameters of the plan and alternatives merged.

A property that is said to hold is tested there, not proved; one that is said not to hold needs a case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, combinations_with_replacement, permutations
from math import comb

from privspec.certify.lotteries.meaning import Ballots, Scores
from privspec.certify.lotteries.rules import Rule
from privspec.certify.lotteries.subject import LotterySubject
from privspec.certify.measures import Finding
from privspec.certify.promises import claim
from privspec.certify.reading import At, Malformed
from privspec.certify.report import Claim

LARGEST_CASES = ((3, 3), (4, 2))
"""Alternatives and voters that are tried; the second only where the first has no case."""
FEW = 20_000
"""Most profiles that are tried."""
Order = tuple[int, ...]


def properties(subject: LotterySubject) -> Iterator[Claim]:
    """Those that the plan lists, each once, all three."""
    listed = subject.plan["mechanism"]["properties"].items()
    names = [item["name"].text() for item in listed]
    if sorted(names) != sorted(TESTS):
        raise Malformed("the plan does not say of each of three properties whether it holds")
    for item in listed:
        item["because"].text()
        item["note"].text()
        case = item.get("counterexample")
        if case is not None and case.text() and item["holds"].flag():
            yield Claim("properties", "failed", f"{item['name'].text()} is said to hold beside a counterexample")
        yield _one(subject.rule, subject.ballots, item["name"].text(), item["holds"].flag())


def flags(rule: Rule, ballots: Ballots, stated: At) -> Iterator[Claim]:
    """The same of an alternative, from its flags."""
    for key in TESTS:
        yield _one(rule, ballots, key, stated[key].flag())


def _one(rule: Rule, ballots: Ballots, key: str, said: bool) -> Claim:
    words = key.replace("_", " ")
    found = None
    for size, voters in LARGEST_CASES:
        merged = ballots.smaller(min(size, ballots.size))
        if comb(voters + merged.count - 1, voters) * merged.count > FEW:
            continue
        found = found or _case(key, rule, merged, voters)
    if said:
        text = f"{words}: tested on all profiles of up to 3 voters" if found is None else f"{words}: not so, {found}"
        return claim("properties", Finding(found is None, text))
    text = f"not {words}: {found}" if found else f"{words}: said not to hold, and no case was found"
    return claim("properties", Finding(found is not None, text))


@lru_cache(maxsize=256)
def _case(key: str, rule: Rule, ballots: Ballots, voters: int) -> str | None:
    return TESTS[key](rule, ballots, voters)


def _sum(ballots: Ballots, profile: Sequence[Order]) -> Scores:
    total = (Fraction(0),) * ballots.size
    for order in profile:
        total = tuple(a + b for a, b in zip(total, ballots.scores(order), strict=True))
    return total


def _profiles(ballots: Ballots, voters: int) -> Iterator[tuple[Order, ...]]:
    return combinations_with_replacement(tuple(ballots.orders()), voters)


def favoured(rule: Rule, ballots: Ballots, most: int) -> str | None:
    """A profile whose law changes when voters swap ballots.

    The law of a plan is a function of sums of points, so that none can exist; the sums are taken in every order.
    """
    for profile in _profiles(ballots, min(most, 3)):
        if len({rule.law(_sum(ballots, order)) for order in permutations(profile)}) > 1:
            return f"the ballots {profile} in another order"
    return None


def dominated(rule: Rule, ballots: Ballots, most: int) -> str | None:
    """A profile where an alternative wins with some probability although all voters prefer another one.

    Ballots that are single alternatives, or leave some out, prefer those they name to all others.
    """
    for voters in range(1, most + 1):
        for profile in _profiles(ballots, voters):
            law = rule.law(_sum(ballots, profile))
            for a in range(ballots.size):
                for b in range(ballots.size):
                    if a != b and law[a] and all(_prefers(order, b, a) for order in profile):
                        who = "one voter" if voters == 1 else f"{voters} voters, all"
                        wins = f"which wins with probability {float(law[a]):.4g}"
                        return f"{who} with alternative {b + 1} above {a + 1}, {wins}"
    return None


def _prefers(order: Order, one: int, other: int) -> bool:
    places = {a: i for i, a in enumerate(order)}
    last = len(places)
    return places.get(one, last) < places.get(other, last)


def swayed(rule: Rule, ballots: Ballots, most: int) -> str | None:
    """A voter whose untrue ballot makes some of the best alternatives of the own order more likely.

    Without one, the true ballot is best for every utility with that order, whatever the others do.
    """
    every = tuple(ballots.orders())
    for others in (p for n in range(most) for p in _profiles(ballots, n)):
        laws = {ballot: rule.law(_sum(ballots, (*others, ballot))) for ballot in every}
        for truth in permutations(range(ballots.size)):
            honest = laws[_sincere(ballots, truth)]
            best = list(accumulate(honest[a] for a in truth))
            for ballot, law in laws.items():
                if any(x > y for x, y in zip(accumulate(law[a] for a in truth), best, strict=True)):
                    return f"a voter of order {_words(truth)} gains by {_words(ballot)} beside {len(others)} others"
    return None


def _sincere(ballots: Ballots, truth: Order) -> Order:
    """The ballot that tells the most of a true order."""
    if ballots.kind == "ranking":
        return truth
    return truth[:1] if ballots.kind == "first choice" else truth[: ballots.places]


def _words(order: Order) -> str:
    return ">".join(str(a + 1) for a in order)


TESTS: Mapping[str, Callable[[Rule, Ballots, int], str | None]] = {
    "treats_voters_alike": favoured,
    "ex_post_efficient": dominated,
    "strategy_proof": swayed,
}
