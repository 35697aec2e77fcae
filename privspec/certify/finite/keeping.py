"""What a table of first choices does to the winner and what it keeps: the figures and properties that a plan states."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from privspec.certify.finite.subject import FiniteSubject
from privspec.certify.reading import Malformed
from privspec.certify.report import Claim
from privspec.model.domains import FiniteSet


@dataclass(frozen=True, eq=False, slots=True)
class Votes:
    """Numerators of the winner's law by how many voters name each alternative, both in the order of the ballots."""

    laws: Mapping[tuple[int, ...], Sequence[int]]


def read_votes(subject: FiniteSubject) -> Votes:
    """The table as one of first choices.

    Raises: Malformed if its rows are no counts of votes, or its columns are no alternatives.
    """
    facets = subject.rows.worlds.facets
    names = tuple(facet.part.name for facet in facets)
    if len(facets) != 1 or subject.rows.of != names or len(subject.outputs) != 1:
        raise Malformed("properties of votes, and the rows of the table are no counts of them")
    (facet,), (output,) = facets, subject.outputs
    domain = subject.model.nodes[facet.part.name].domain
    single = isinstance(domain, FiniteSet) and len(facet.part.extents) == 1
    if facet.counted is None or facet.part.index is None or not single:
        raise Malformed("properties of votes, and the rows of the table are no counts of them")
    if sorted(map(str, output.items)) != sorted(map(str, facet.part.items)) or output.extents:
        raise Malformed("properties of votes, and the winner is no alternative")
    places = [output.items.index(item) for item in facet.part.items]
    rows = zip(facet.counted.counts, subject.table.numerators, strict=True)
    return Votes({counts: [int(row[place]) for place in places] for counts, row in rows})


def _alike(votes: Votes) -> bool:
    """Rows are counts, so that nothing but how often each alternative is named can matter."""
    return bool(votes.laws)


def _efficient(votes: Votes) -> bool:
    """Nobody has to prefer an alternative that no voter puts first: it must not win."""
    pairs = (pair for counts, law in votes.laws.items() for pair in zip(counts, law, strict=True))
    return all(count or not chance for count, chance in pairs)


def _truthful(votes: Votes) -> bool:
    """A voter may rank any alternative but its first choice last: no lie may make one of these less likely.

    For then the set of all others becomes more likely; and if every alternative but the first choice becomes at least
    as likely, no set that holds the first choice gains.
    """
    for counts, law in votes.laws.items():
        for a, count in enumerate(counts):
            for b in range(len(counts)) if count else ():
                lied = list(counts)
                lied[a] -= 1
                lied[b] += 1
                after = votes.laws[tuple(lied)]
                if any(after[c] < law[c] for c in range(len(counts)) if c != a):
                    return False
    return True


PROPERTIES: Mapping[str, Callable[[Votes], bool]] = {
    "treats_voters_alike": _alike,
    "ex_post_efficient": _efficient,
    "strategy_proof": _truthful,
}
"""By the names that plans use."""


def properties(subject: FiniteSubject) -> Iterator[Claim]:
    """Every property that the plan states holds, or fails, as it says."""
    listed = subject.plan["mechanism"].get("properties")
    if listed is None:
        return
    votes = read_votes(subject)
    names = [item["name"].text() for item in listed.items()]
    if sorted(names) != sorted(PROPERTIES):
        yield Claim("properties", "failed", "the plan does not state each property of a rule of voting once")
        return
    for item, name in zip(listed.items(), names, strict=True):
        said, case = item["holds"].flag(), item.get("counterexample")
        words = name.replace("_", " ")
        if said != PROPERTIES[name](votes):
            yield Claim("properties", "failed", f"{words}: the table says otherwise")
        elif (case is None) != said:
            yield Claim("properties", "failed", f"{words}: a counterexample belongs to a property that fails")
        else:
            yield Claim("properties", "ok", f"{words}: {'holds' if said else 'fails'}, decided row by row")
    if not all(item["holds"].flag() for item in listed.items()):
        yield Claim("properties", "not checked", "the words of the counterexamples")


# --- distortion and welfare -----------------------------------------------------------------------


def _shares(counts: Sequence[int]) -> tuple[Fraction, ...]:
    """Random dictatorship: the winner in proportion to the votes."""
    return tuple(Fraction(n, sum(counts)) for n in counts)


def _most(counts: Sequence[int]) -> tuple[Fraction, ...]:
    """Plurality: the first alternative with the most votes."""
    first = list(counts).index(max(counts))
    return tuple(Fraction(a == first) for a in range(len(counts)))


COMPARED: Mapping[str, Callable[[Sequence[int]], tuple[Fraction, ...]]] = {
    "random_dictator": _shares,
    "plurality": _most,
}
"""Lotteries without noise, by the names that plans use."""
CLOSE = 1e-9
"""Of figures for display, relative."""


def figures(subject: FiniteSubject) -> Iterator[Claim]:
    """Distortion from the lottery named and welfare, from the table itself."""
    listed = subject.plan["mechanism"].get("figures")
    if listed is None:
        return
    votes, name = read_votes(subject), subject.plan["mechanism"]["compared"].text()
    if name not in COMPARED:
        raise Malformed(f"distortion from {name!r}, which is no lottery without noise")
    derived = _figures(votes, COMPARED[name], subject.prior)
    for key, value in derived.items():
        item = listed.get(key)
        said = None if item is None or item.value is None else item.double()
        words = key.replace("_", " ")
        if (said is None) != (value is None):
            yield Claim("figures", "failed", f"{words}: the plan gives it where it has none, or not where it has one")
        elif said is not None and value is not None:
            text = f"{words}: re-derived {float(value):.10g}, the plan says {said:.10g}"
            yield Claim("figures", "ok" if abs(said - value) <= CLOSE * max(float(value), CLOSE) else "failed", text)


def _figures(
    votes: Votes, compared: Callable[[Sequence[int]], tuple[Fraction, ...]], prior: Sequence[Fraction] | None
) -> dict[str, Fraction | None]:
    apart, welfare = [], []
    for counts, law in votes.laws.items():
        whole = sum(law)
        chances = [Fraction(n, whole) for n in law]
        apart.append(sum((abs(p - q) for p, q in zip(chances, compared(counts), strict=True)), Fraction(0)) / 2)
        welfare.append(sum((p * n for p, n in zip(chances, counts, strict=True)), Fraction(0)) / sum(counts))
    averages = None if prior is None else [_average(prior, values) for values in (apart, welfare)]
    return {
        "worst_distortion": max(apart),
        "mean_distortion": None if averages is None else averages[0],
        "expected_welfare": None if averages is None else averages[1],
    }


def _average(prior: Sequence[Fraction], values: Sequence[Fraction]) -> Fraction:
    return sum((p * v for p, v in zip(prior, values, strict=True)), Fraction(0))
