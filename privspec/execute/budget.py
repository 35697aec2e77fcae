"""Exact composition of what was spent on one unit of privacy, and limits on it; notes/ledger.md.

Nothing here rounds against privacy: sums are exact fractions, roots go up, delta is an upper bound.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from decimal import ROUND_CEILING, ROUND_FLOOR
from fractions import Fraction
from typing import Any

from privspec.core.diagnostics import BudgetError, UsageError
from privspec.core.records import dataclass
from privspec.core.rounding import exp_up, in_digits, log_up, root, sqrt_down, sqrt_up
from privspec.kernel.divergences import Condition
from privspec.kernel.measures import named

_DISTANCE = re.compile(r"\bdistance\s+(?P<metric>.+?)\s*(?:,\s*(?:seen|replacing|adding)\b.*)?$")
"""The distance in the text of a requirement."""


_OF = re.compile(r" of (\w+(?: and \w+)*)(?= or |$)")
"""The inputs in a relation: `replacing one record of x or one voter of a and b`."""
_PARTY = re.compile(r"\b(one|up to [0-9]+) (?!entry\b|entries\b|records?\b)\w+(?! with at most\b)")
"""One of a party, or several: all that one of them holds, whatever the index is called."""


def _of_any(neighbours: str) -> str:
    return _PARTY.sub(r"\1 unit", neighbours)


def names_of(value: Any) -> tuple[str, ...]:
    """The names in a `wrt` or `outputs` entry, which may be one name or a list."""
    return (value,) if isinstance(value, str) else tuple(str(v) for v in value)


@dataclass(frozen=True, slots=True, order=True)
class Unit:
    """Whose data, and which worlds are compared: amounts for different units are never added up."""

    wrt: tuple[str, ...]
    neighbours: str

    def describe(self) -> str:
        """As in a requirement: "wrt x, replacing one entry"."""
        return f"wrt {', '.join(self.wrt)}, {self.neighbours}"

    def within(self, other: Unit) -> bool:
        """Whether another unit that moves may be this one: what comes or goes does so in all inputs named at once."""
        same = self.neighbours == other.neighbours and self.neighbours.startswith("replacing ")
        return same and set(self.wrt) < set(other.wrt)

    def known_as(self, names: Mapping[str, str], units: Iterable[Unit]) -> Unit:
        """The same unit in the words of a ledger, which has these units: its names of the data, and of one of a party.

        Args: names, what the ledger calls the data of each input.
        """

        def renamed(words: re.Match[str]) -> str:
            return " of " + " and ".join(names.get(word, word) for word in words[1].split(" and "))

        neighbours = _OF.sub(renamed, self.neighbours)
        own = Unit(tuple(sorted({names.get(name, name) for name in self.wrt})), neighbours)
        same = (unit for unit in units if unit.wrt == own.wrt and _of_any(unit.neighbours) == _of_any(neighbours))
        return own if own in units else next(same, own)

    def to_json(self) -> dict[str, Any]:
        return {"wrt": list(self.wrt), "neighbours": self.neighbours}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Unit:
        """What `to_json` wrote."""
        return cls(tuple(sorted(names_of(data["wrt"]))), str(data["neighbours"]))

    @classmethod
    def of_guarantee(cls, guarantee: Mapping[str, Any]) -> Unit:
        """The unit of a plan's guarantee: an amount for each unit of a distance is for a unit of its own."""
        unit = cls.from_json(guarantee)
        known = named(str(guarantee.get("measure")))
        if known is None or not known.by_distance:
            return unit
        stated = _DISTANCE.search(str(guarantee.get("text", "")))
        metric = f" {stated['metric']}" if stated else ""
        return cls(unit.wrt, f"{unit.neighbours}, for each unit of distance{metric}")


@dataclass(frozen=True, slots=True)
class Spend:
    """What one release costs one unit: every statement that holds of it, None where there is none.

    mu: it is mu-GDP; pure: it is epsilon-DP; rho: it is rho-zCDP; pair: it is (epsilon, delta)-DP.
    """

    mu: Fraction | None = None
    pure: Fraction | None = None
    rho: Fraction | None = None
    pair: tuple[Fraction, Fraction] | None = None

    @property
    def stated(self) -> bool:
        """Whether it has an amount, and none below zero."""
        amounts = [a for a in (self.mu, self.pure, self.rho, *(self.pair or ())) if a is not None]
        return bool(amounts) and min(amounts) >= 0

    def as_mu(self) -> Fraction | None:
        """A mu for which it is mu-GDP, rounded up: epsilon-DP is 2 Phi^-1(e^eps / (1 + e^eps))-GDP."""
        if self.mu is not None or self.pure is None:
            return self.mu
        from privspec.kernel.divergences import pure_mu_up

        return pure_mu_up(self.pure)

    def as_rho(self) -> Fraction | None:
        """A rho for which it is rho-zCDP: mu^2/2 for Gaussian noise, epsilon^2/2 for pure epsilon."""
        candidates = [self.rho, _half_square(self.mu), _half_square(self.pure)]
        return min((c for c in candidates if c is not None), default=None)

    def as_pair(self) -> tuple[Fraction, Fraction] | None:
        """An (epsilon, delta) for which it holds."""
        return (self.pure, Fraction(0)) if self.pure is not None else self.pair

    def to_json(self) -> dict[str, Any]:
        names = {"mu": self.mu, "pure_epsilon": self.pure, "rho": self.rho}
        data: dict[str, Any] = {k: str(v) for k, v in names.items() if v is not None}
        return data | ({"epsilon": str(self.pair[0]), "delta": str(self.pair[1])} if self.pair else {})

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Spend:
        """What `to_json` wrote.

        Raises: ValueError.
        """
        pair = (Fraction(data["epsilon"]), Fraction(data["delta"])) if "epsilon" in data else None
        mu, pure, rho = (_optional(data, key) for key in ("mu", "pure_epsilon", "rho"))
        found = cls(mu, pure, rho, pair)
        if not found.stated:
            raise ValueError("what was spent is no amount below zero, nor none at all")
        return found


def together(one: Spend, other: Spend) -> Spend:
    """What a release costs a unit whose data are in two of its inputs, of which each costs so much."""

    def both(a: Fraction | None, b: Fraction | None) -> Fraction | None:
        return None if a is None or b is None else a + b

    rhos = (one.as_rho(), other.as_rho())
    rho = None if rhos[0] is None or rhos[1] is None else rhos[0] + rhos[1] + 2 * sqrt_up(rhos[0] * rhos[1])
    pairs = (one.as_pair(), other.as_pair())
    pair = None
    if pairs[0] is not None and pairs[1] is not None:
        (epsilon, delta), (more, delta_more) = pairs[0], pairs[1]
        # group privacy: the second change, seen after the first
        pair = (epsilon + more, min(delta + exp_up(epsilon) * delta_more, delta_more + exp_up(more) * delta))
    return Spend(both(one.mu, other.mu), both(one.pure, other.pure), rho, pair)


def _half_square(value: Fraction | None) -> Fraction | None:
    return None if value is None else value * value / 2


def _optional(data: Mapping[str, Any], key: str) -> Fraction | None:
    return Fraction(str(data[key])) if data.get(key) is not None else None


def spend_of_guarantee(guarantee: Mapping[str, Any]) -> Spend:
    """What a plan's guarantee says its release costs.

    Raises: UsageError (PS1008) if it states no amount the ledger can add up.
    """
    try:
        achieved = guarantee["achieved"]
        mu, rho, epsilon, delta = (_optional(achieved, k) for k in ("mu", "rho", "epsilon", "delta"))
        pair = None
        if guarantee.get("delta") is not None and guarantee.get("epsilon") is not None:
            pair = (Fraction(str(guarantee["epsilon"])), Fraction(str(guarantee["delta"])))
        if epsilon is not None and delta:
            pair, epsilon = (epsilon, delta), None
        spend = Spend(mu, epsilon, rho, pair)
        known = named(str(guarantee.get("measure")))
        if known is not None and set(achieved) == set(known.figures) and not spend.stated:
            spend = _spend_of(known.condition({name: Fraction(str(value)) for name, value in achieved.items()}))
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        spend = Spend()
    if not spend.stated:
        raise UsageError.of("PS1008", "the ledger cannot account for a guarantee of this plan: it states no amount")
    return spend


def _spend_of(condition: Condition) -> Spend:
    """What satisfies a condition on neighbouring laws costs; nothing is known of Rényi divergences of one order."""
    from privspec.kernel.divergences import HockeyStick, Renyi, TradeOff

    match condition:
        case HockeyStick(epsilon, delta):
            return Spend(pair=(epsilon, delta)) if delta else Spend(pure=epsilon)
        case Renyi(order=None, amount=rho):
            return Spend(rho=rho)
        case TradeOff(mu):
            return Spend(mu)
    return Spend()


class MixedError(Exception):
    """Amounts that this limit has no rule to add up."""


@dataclass(frozen=True, slots=True)
class Limit(ABC):
    """How much may be spent on a unit in all; the fields are the amounts."""

    @property
    def amounts(self) -> dict[str, Fraction]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @abstractmethod
    def reached(self, spends: Sequence[Spend]) -> dict[str, Fraction]:
        """What these amount to together, rounded up, in the limit's own terms.

        Raises: MixedError if there is no rule to add them up.
        """

    def allows(self, spends: Sequence[Spend]) -> bool:
        """Whether all of these together stay within the limit.

        Raises: MixedError if there is no rule to add them up.
        """
        return all(self.reached(spends)[name] <= amount for name, amount in self.amounts.items())

    def left(self, spends: Sequence[Spend]) -> Limit | None:
        """The most that one more release may cost, rounded down, in the amount that adds up; None: nothing is left.

        Raises: MixedError if there is no rule to add up what was spent.
        """
        reached = self.reached(spends)
        rest = {name: amount - reached[name] for name, amount in self.amounts.items()}
        return limit_from_json(rest) if min(rest.values()) >= 0 and any(rest.values()) else None

    def describe(self, *, down: bool = False) -> str:
        """As it is written: "epsilon=2 delta=1e-6"."""
        return _amounts(self.amounts, down=down)

    def spent(self, spends: Sequence[Spend]) -> str:
        """What these amount to, for people to read."""
        return _amounts(self.reached(spends))


def _amounts(amounts: Mapping[str, Fraction], *, down: bool = False) -> str:
    return " ".join(f"{name}={_decimal(amount, down=down)}" for name, amount in amounts.items())


def _sum(values: Sequence[Fraction | None], measure: str) -> Fraction:
    found = [v for v in values if v is not None]
    if len(found) < len(values):
        raise MixedError(f"a release in this ledger has no {measure} that could be added up")
    return sum(found, Fraction(0))


@dataclass(frozen=True, slots=True)
class MuLimit(Limit):
    """mu-GDP: squares add up, also for releases chosen after seeing earlier ones (Smith & Thakurta 2022)."""

    mu: Fraction

    def allows(self, spends: Sequence[Spend]) -> bool:
        return _mu_squared(spends) <= self.mu**2

    def reached(self, spends: Sequence[Spend]) -> dict[str, Fraction]:
        squared = _mu_squared(spends)
        return {"mu": exact if (exact := root(squared)) ** 2 == squared else sqrt_up(squared)}

    def left(self, spends: Sequence[Spend]) -> Limit | None:
        rest = self.mu**2 - _mu_squared(spends)
        return MuLimit(root(rest)) if rest > 0 else None


def _mu_squared(spends: Sequence[Spend]) -> Fraction:
    return _sum([None if (mu := s.as_mu()) is None else mu * mu for s in spends], "mu")


@dataclass(frozen=True, slots=True)
class RhoLimit(Limit):
    """rho-zCDP: amounts add up, also adaptively (Feldman & Zrnic 2021)."""

    rho: Fraction

    def reached(self, spends: Sequence[Spend]) -> dict[str, Fraction]:
        return {"rho": _sum([s.as_rho() for s in spends], "rho")}


@dataclass(frozen=True, slots=True)
class EpsilonLimit(Limit):
    """Pure epsilon: amounts add up, also adaptively."""

    epsilon: Fraction

    def reached(self, spends: Sequence[Spend]) -> dict[str, Fraction]:
        return {"epsilon": _sum([s.pure for s in spends], "pure epsilon")}


@dataclass(frozen=True, slots=True)
class EpsilonDeltaLimit(Limit):
    """(epsilon, delta)-DP of everything together.

    The kind of the first release fixes the rule, before anything has been seen: Gaussian (mu known) means that mu^2
    adds up and is converted exactly; zCDP alone that rho adds up and is converted (Bun & Steinke 2016, 1.3); anything
    else that epsilons and deltas add up (Rogers et al. 2016). There a release that states no delta is converted at
    half of the delta that is left before it.
    """

    epsilon: Fraction
    delta: Fraction

    def reached(self, spends: Sequence[Spend]) -> dict[str, Fraction]:
        """The delta reached at the limit's epsilon, or the two sums."""
        if spends and spends[0].mu is not None:
            from privspec.kernel.gaussian import delta_bounds

            mu = sqrt_up(_mu_squared(spends))
            return {"epsilon": self.epsilon, "delta": delta_bounds(self.epsilon, mu)[1]}
        if self._by_rho(spends):
            rho = _sum([s.as_rho() for s in spends], "rho")
            return {"epsilon": self.epsilon, "delta": _delta_of_rho(rho, self.epsilon)}
        epsilon, delta = Fraction(0), Fraction(0)
        for spend in spends:
            more = spend.as_pair() or _converted(spend, (self.delta - delta) / 2)
            epsilon, delta = epsilon + more[0], delta + more[1]
        return {"epsilon": epsilon, "delta": delta}

    def left(self, spends: Sequence[Spend]) -> Limit | None:
        if spends and spends[0].mu is not None:
            from privspec.kernel.gaussian import mu_down

            return MuLimit(mu_down(self.epsilon, self.delta)).left(spends)
        if self._by_rho(spends):
            # the largest rho for which (epsilon - rho)^2 >= 4 rho log(1 / delta)
            log = log_up(1 / self.delta)
            return RhoLimit(max(sqrt_down(self.epsilon + log) - sqrt_up(log), Fraction(0)) ** 2).left(spends)
        return Limit.left(self, spends)

    def spent(self, spends: Sequence[Spend]) -> str:
        reached = self.reached(spends)
        if spends and (spends[0].mu is not None or self._by_rho(spends)):
            return f"delta={_decimal(reached['delta'], digits=3)} at epsilon={_decimal(self.epsilon)}"
        return _amounts(reached)

    @staticmethod
    def _by_rho(spends: Sequence[Spend]) -> bool:
        return bool(spends) and spends[0].as_pair() is None and spends[0].rho is not None


def _delta_of_rho(rho: Fraction, epsilon: Fraction) -> Fraction:
    """A delta, rounded up, for which what is rho-zCDP is (epsilon, delta)-DP."""
    if rho == 0:
        return Fraction(0)
    return exp_up(-((epsilon - rho) ** 2) / (4 * rho)) if epsilon > rho else Fraction(1)


def _converted(spend: Spend, delta: Fraction) -> tuple[Fraction, Fraction]:
    """The same release in epsilon and delta; more than any limit where no delta is left."""
    if delta <= 0:
        return Fraction(0), Fraction(1)
    if spend.mu is not None:
        from privspec.kernel.gaussian import epsilon_up

        return epsilon_up(spend.mu, delta), delta
    if spend.rho is None:
        raise MixedError("a release in this ledger has no epsilon that could be added up")
    return spend.rho + 2 * sqrt_up(spend.rho * log_up(1 / delta)), delta


def kinds_that_count(spends: Sequence[Spend]) -> list[str]:
    """The limits that have a rule to add these up, as they are written."""
    one, small = Fraction(1), Fraction(1, 10**6)
    found = []
    for limit in (EpsilonLimit(one), EpsilonDeltaLimit(one, small), RhoLimit(one), MuLimit(one)):
        with suppress(MixedError):
            limit.reached(spends)
            found.append(" ".join(f"{name}=..." for name in limit.amounts))
    return found


def _decimal(value: Fraction, *, digits: int = 7, down: bool = False) -> str:
    """An amount for people: exact if short, else rounded up in its last digit, or down if it is what is left."""
    return f"{float(in_digits(value, digits, ROUND_FLOOR if down else ROUND_CEILING)):.{digits}g}"


_LIMITS: Mapping[frozenset[str], Callable[[Mapping[str, Fraction]], Limit]] = {
    frozenset({"mu"}): lambda v: MuLimit(v["mu"]),
    frozenset({"rho"}): lambda v: RhoLimit(v["rho"]),
    frozenset({"epsilon"}): lambda v: EpsilonLimit(v["epsilon"]),
    frozenset({"epsilon", "delta"}): lambda v: (
        EpsilonDeltaLimit(v["epsilon"], v["delta"]) if v["delta"] else EpsilonLimit(v["epsilon"])
    ),
}
_LIMIT_TEXT = re.compile(
    r"\s*(?P<amounts>\w+\s*=\s*[^\s,]+(?:[\s,]+\w+\s*=\s*[^\s,]+)*)"
    r"(?:[\s,]+wrt\s+(?P<wrt>.+?)\s*,\s*(?P<neighbours>(?:replacing|adding or removing)\s.+?))?\s*"
)


def limit_from_json(data: Mapping[str, Any]) -> Limit:
    """A limit from its amounts, exact strings.

    Raises: ValueError.
    """
    values = {k: Fraction(str(v)) for k, v in data.items()}
    if frozenset(values) not in _LIMITS:
        raise ValueError("a limit is epsilon, epsilon and delta, rho, or mu")
    if any(v < 0 for v in values.values()) or values.get("delta", Fraction(0)) >= 1:
        raise ValueError("amounts must not be negative, and delta must be below 1")
    return _LIMITS[frozenset(values)](values)


def parse_limit(text: str) -> tuple[Limit, Unit | None]:
    """A limit as it is typed: 'epsilon=2 delta=1e-6', 'rho=0.1 wrt x, replacing one record'.

    Returns: the limit, and the unit it is for (None: that of the first release).
    Raises: UsageError (PS1002).
    """
    match = _LIMIT_TEXT.fullmatch(text)
    try:
        if match is None:
            raise ValueError("not of that form")
        pairs = [part.split("=", 1) for part in re.findall(r"\w+\s*=\s*[^\s,]+", match["amounts"])]
        limit = limit_from_json({k.strip(): v.strip() for k, v in pairs})
    except (ValueError, ZeroDivisionError) as error:
        raise UsageError.of(
            "PS1002",
            f"not a budget: {text}",
            str(error),
            help="write 'epsilon=2 delta=1e-6', 'epsilon=1', 'rho=0.1' or 'mu=0.5', perhaps followed by "
            "'wrt x, replacing one record'",
        ) from None
    if match["wrt"] is None:
        return limit, None
    names = tuple(sorted(name.strip() for name in match["wrt"].split(",")))
    return limit, Unit(names, " ".join(match["neighbours"].split()))


def own_limit(spend: Spend) -> Limit:
    """The budget that one release of this cost uses up entirely.

    Raises: BudgetError (PS1008) if there is none.
    """
    if spend.mu is not None:
        return MuLimit(spend.mu)
    if spend.pure is not None:
        return EpsilonLimit(spend.pure)
    if spend.rho is not None:
        return RhoLimit(spend.rho)
    if spend.pair is None:
        raise BudgetError.of("PS1008", "a release without an amount cannot be accounted for")
    return EpsilonDeltaLimit(*spend.pair)
