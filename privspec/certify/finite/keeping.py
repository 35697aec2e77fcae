"""What a table of first choices keeps of random dictatorship: the properties that a plan states, decided row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

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
