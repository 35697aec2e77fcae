"""A vote as its problem says it: ballots, what a winner's law costs at a profile, and its value over all profiles."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from privspec.kernel.core.numbers import ball, end
from privspec.kernel.core.reading import Item, Refused
from privspec.kernel.lemmas.votes_rules import LOTTERIES, RULES, Ballots, Rule, Scores, totals, winner

Value = tuple[Fraction, Fraction]
"""A number between two others."""
Law = list[tuple[Scores, Fraction]]


# --- what the problem asks --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cost:
    """What a winner's law costs at a profile: `form` "distance" or "mismatch" from `other`, or "votes missed".

    `other` is a rule, None for plurality (the first declared among equals).
    """

    form: str
    other: Rule | None = None

    @property
    def shares(self) -> bool:
        """Whether the lottery beside the winner is in proportion to points."""
        return self.other == Rule("dictator", Fraction(0))

    def at(self, law: list[arb], scores: Scores) -> arb:
        """At one profile."""
        if self.form == "votes missed":
            return 1 - sum((p * ball(s / sum(scores)) for p, s in zip(law, scores, strict=True)), arb(0))
        beside = [arb(won) for won in winner(scores)] if self.other is None else self.other.law(scores)
        if self.form == "distance":
            return sum((abs(p - q) for p, q in zip(law, beside, strict=True)), arb(0)) / 2
        return 1 - sum((p * q for p, q in zip(law, beside, strict=True)), arb(0))

    def mixed(self, share: Fraction, ballots: Ballots, voters: int, law: Law | None) -> Fraction | None:
        """Of (1 - w) S / sum S + w / m on average under a law of ballots, or in the worst case; None if not known.

        worst-cases: the distance from the shares is w times theirs from the uniform law, largest where all cast one of
        the longest ballots. Of votes missed it is 1 - (1 - w) sum q^2 - w / m: E[N^2] = T p (1 - p) + T^2 p^2, and the
        sum is least where votes are spread evenly.
        """
        m = ballots.size
        if m == 1:
            return Fraction(0)
        if self.form == "distance":
            first = ballots.points(tuple(range(ballots.places)))
            known = self.shares and law is None
            return share * sum(max(p / ballots.total - Fraction(1, m), Fraction(0)) for p in first) if known else None
        if ballots.borda or not (self.form == "votes missed" or self.shares):
            return None
        each, more = divmod(voters, m)
        squares = Fraction(more * (each + 1) ** 2 + (m - more) * each**2, voters**2)
        if law is not None:
            squares = sum(((p * (1 - p)) / voters + p * p for _, p in law), Fraction(0))
        return 1 - (1 - share) * squares - share / m


@dataclass(frozen=True, slots=True)
class Term:
    """weight * E[...] or weight * worst[...] of a weighted sum of costs and a constant."""

    weight: Fraction
    mean: bool
    parts: tuple[tuple[Fraction, Cost], ...]
    offset: Fraction


@dataclass(frozen=True, slots=True)
class Measured:
    """A sum of terms and a constant."""

    terms: tuple[Term, ...]
    offset: Fraction

    def alone(self, wanted: str) -> tuple[Fraction, Fraction] | None:
        """(w, c) where it is w * worst[cost] + c, w > 0, the cost being "shares" or "plurality"; else None."""
        if len(self.terms) != 1 or self.terms[0].mean or len(self.terms[0].parts) != 1:
            return None
        (term,) = self.terms
        weight, cost = term.parts[0]
        shares = cost.form == "distance" and cost.shares
        plurality = cost.form != "votes missed" and cost.other is None
        if (not shares if wanted == "shares" else not plurality) or term.weight * weight <= 0 or weight <= 0:
            return None
        return term.weight * weight, term.weight * term.offset + self.offset


@dataclass(frozen=True, slots=True)
class Choice:
    """A number in a range that is picked, and that is the whole loss: weight times it, or weight divided by it."""

    name: str
    low: Fraction
    high: Fraction | None
    whole: bool
    weight: Fraction
    inverse: bool

    def loss(self, number: Fraction) -> Fraction:
        """Of a number."""
        return self.weight / number if self.inverse else self.weight * number


@dataclass(frozen=True, slots=True)
class Limit:
    """An accuracy line: `measured`, or without it what a lie brings a voter, is at most `bound`."""

    line: int
    text: str
    measured: Measured | None
    bound: Fraction


@dataclass(frozen=True, slots=True)
class Vote:
    """The block of a vote; `secret`: the number of voters may not become public."""

    source: str
    party: str
    output: str
    voters: int
    secret: bool
    words: tuple[str, ...]
    ballots: Ballots
    law: Law | None
    loss: Measured | Choice
    expression: str
    limits: tuple[Limit, ...]
    rounds: tuple[str, Fraction, int | None] | None
    families: tuple[str, ...]


def read_vote(item: Item) -> Vote:
    """The block.

    Raises: Refused.
    """
    keys = (
        "source", "party", "output", "voters", "secret", "alternatives", "ballots", "longest", "counted", "law", "loss",
        "expression", "limits", "rounds", "families",
    )  # fmt: skip
    _, source, party, output, voters, secret, words, *rest = item.fields("form", *keys)
    kind, longest, counted, law, loss, text, limits, rounds, families = rest
    size, kinds = len(words.texts()), ("first choice", "ranking", "partial ranking")
    if kind.text() not in kinds or counted.text() not in ("first choice", "borda"):
        raise kind.wrong("is not known, or the points are not")
    fewest, most = {"first choice": (1, 1), "ranking": (size, size)}.get(kind.text(), (1, size))
    ballots = Ballots(kind.text(), size, longest.integer(fewest, most), counted.text() == "borda")
    if not size or len(set(words.texts())) != size or (ballots.borda and kind.text() == "first choice"):
        raise words.wrong("are no alternatives that such ballots are about")
    return Vote(
        source.text(), party.text(), output.text(), voters.integer(0, 10**18), secret.flag(), words.texts(), ballots,
        None if law.absent else _law(law, ballots), _loss(loss), text.text(),
        tuple(_limit(one) for one in limits.items()), None if rounds.absent else _rounds(rounds), families.texts(),
    )  # fmt: skip


def _law(item: Item, ballots: Ballots) -> Law:
    line, points, weights = item.fields("line", "points", "weights")
    line.integer()
    kinds = [tuple(p.exact(0) for p in kind.items(ballots.size)) for kind in points.items()]
    chances = [weight.exact(0) for weight in weights.items(len(kinds))]
    if sum(chances) != 1 or any(sum(kind) != ballots.total for kind in kinds) or len(set(kinds)) != len(kinds):
        raise item.wrong("is no law of the points of a ballot")
    return list(zip(kinds, chances, strict=True))


def _loss(item: Item) -> Measured | Choice:
    if item.form("measured", "choice") == "measured":
        return _measured(item)
    _, name, low, high, whole, weight, inverse = item.fields(
        "form", "name", "low", "high", "whole", "weight", "inverse"
    )
    ends = low.exact(0), None if high.absent else high.exact(0)
    return Choice(name.text(), *ends, whole.flag(), weight.exact(), inverse.flag())


def _measured(item: Item) -> Measured:
    item.form("measured")
    _, terms, offset = item.fields("form", "terms", "offset")
    return Measured(tuple(_term(term) for term in terms.items()), offset.exact())


def _term(item: Item) -> Term:
    weight, operator, body = item.fields("weight", "operator", "body")
    parts, offset = body.fields("parts", "offset")
    if operator.text() not in ("E", "worst") or (operator.text() == "worst" and weight.exact() < 0):
        raise operator.wrong("is not known, or rewards a large worst case")
    pairs = [pair.items(2) for pair in parts.items()]
    costs = tuple((share.exact(), _cost(cost)) for share, cost in pairs)
    return Term(weight.exact(), operator.text() == "E", costs, offset.exact())


def _cost(item: Item) -> Cost:
    if item.form("distance", "mismatch", "votes missed") == "votes missed":
        item.fields("form")
        return Cost("votes missed")
    form, other = item.fields("form", "other")
    if other.form("largest", *LOTTERIES) == "largest":
        other.fields("form")
        return Cost(form.text())
    family, key = LOTTERIES[other.form(*LOTTERIES)]
    return Cost(form.text(), Rule(family, other.fields("form", key)[1].exact(RULES[family][1])))


def _limit(item: Item) -> Limit:
    line, text, measured, bound = item.fields("line", "text", "measured", "bound")
    return Limit(line.integer(), text.text(), None if measured.absent else _measured(measured), bound.exact())


def _rounds(item: Item) -> tuple[str, Fraction, int | None]:
    name, budget, count = item.fields("name", "budget", "count")
    return name.text(), budget.exact(0), None if count.absent else count.integer(1)


# --- values over all profiles -----------------------------------------------------------------------------


def value_of(rule: Rule, vote: Vote, measured: Measured) -> Value:
    """A sum of terms for a rule.

    Raises: Refused where it cannot be worked out.
    """
    low = high = measured.offset
    for term in measured.terms:
        ends = [term.weight * end for end in _over(rule, vote, term)]
        low, high = low + min(ends), high + max(ends)
    return low, high


def _over(rule: Rule, vote: Vote, term: Term) -> Value:
    ballots, voters = vote.ballots, vote.voters
    if not voters:
        raise Refused("a loss of no voters")
    law = vote.law if term.mean else None
    if term.mean and law is None:
        raise Refused("an average over votes without a data model")
    found = _closed(rule, vote, term, law)
    if found is not None:
        return found, found
    profiles: list[tuple[Scores, arb]] | None = None
    if not term.mean and len(term.parts) == 1 and term.parts[0][0] >= 0 and not ballots.borda:
        profiles = _worst(rule, term.parts[0][1], voters, ballots.size)
    low: Fraction | None = None
    high, total = Fraction(0), arb(0)
    for scores, mass in totals(ballots, voters, law) if profiles is None else profiles:
        chances = rule.law(scores)
        here = ball(term.offset) + sum((ball(w) * cost.at(chances, scores) for w, cost in term.parts), arb(0))
        total += mass * here
        ends = end(here.lower()), end(here.upper())
        low, high = ends if low is None else (max(low, ends[0]), max(high, ends[1]))
    if term.mean or low is None:
        return end(total.lower()), end(total.upper())
    return low, high


def _closed(rule: Rule, vote: Vote, term: Term, law: Law | None) -> Fraction | None:
    """By formula: mixtures with the uniform law, what plurality's randomised winner misses, even numbers of votes."""
    ballots, voters, m = vote.ballots, vote.voters, vote.ballots.size
    if not term.mean and (len(term.parts) > 1 or any(weight < 0 for weight, _ in term.parts)):
        return None
    share, found = rule.uniform_share(ballots, voters), term.offset
    for weight, cost in term.parts:
        known = None if share is None else cost.mixed(share, ballots, voters, law)
        if rule.family == "randomised_winner" and cost.form != "votes missed" and cost.other is None:
            known = (m - 1) / (rule.number + m - 1)
        even = not term.mean and not ballots.borda and voters % m == 0
        if even and (cost.form == "votes missed" or (cost.form == "mismatch" and cost.shares)):
            known = 1 - Fraction(1, m)  # laws order alternatives as the votes do: Chebyshev's sum inequality
        if known is None:
            return None
        found += weight * known
    return found


def _worst(rule: Rule, cost: Cost, voters: int, m: int) -> list[tuple[Scores, arb]] | None:
    """Profiles of first choices of which one is the worst; None where that is not known.

    worst-cases: beside plurality, for j leaders the least score that j of them, and no j + 1, can have, the rest in one
    hand; for the randomised winner beside shares also the largest such score, and even votes.
    """
    leads, found = cost.form != "votes missed" and cost.other is None, []
    extremes = rule.family == "randomised_winner" and (cost.form == "votes missed" or cost.shares)
    for j in range(1, m + 1):
        least = voters // (j + 1) + 1 if j < m else voters // m
        for most in (least, voters // j) if extremes else (least,):
            rest = voters - j * most
            if most >= 1 and 0 <= rest <= most and (j < m or not rest):
                found.append([most] * j + [rest] * (j < m))
    each, more = divmod(voters, m)
    found += [[each + 1] * more + [each] * (m - more)] if extremes else []
    filled = [(tuple(Fraction(n) for n in (*one, *(0,) * (m - len(one)))), arb(1)) for one in found]
    return filled if leads or extremes else None
