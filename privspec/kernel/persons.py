"""Columns that are made of all records of one person: how many there are, sums, the least, whether any is such.

Theorem. A row of a table of persons is a function of the records of that one person, over all tables that it is made
of; who has no record in any of them has no row. So adding, removing or replacing one person, with all of their records
wherever they are, adds, removes or replaces one row. A column that is looked up by an id is a function of the records
of the person whose row it stands in: where a line is about one person, and all they have moves at once, nothing moves
but rows of that person. Both fail where what is moved is less than a person, which `judging` refuses. notes/persons.md.
"""

from __future__ import annotations

from privspec.kernel.core.reading import Refused, frozen
from privspec.kernel.derived import Derived


@frozen
class Source:
    """A table that records are gathered from, and its column that says whose each is."""

    table: str
    id: str


@frozen
class Way:
    """What records come to: the `sentence` that says it; whether it is `of_values`, and of `numbers` alone."""

    sentence: str
    of_values: bool = True
    numbers: bool = False


WAYS = {
    "count": Way("the number of {records}", of_values=False),
    "any": Way("whether there are any of {records}", of_values=False),
    "sum": Way("the sum of {value.name} over {records}", numbers=True),
    "least": Way("the least {value.name} in {records}"),
    "greatest": Way("the greatest {value.name} in {records}"),
    "only": Way("the {value.name} in {records}, missing where there is none or two differ"),
}
"""All ways in which records are gathered; that of the run is `privspec.execute.gathering`."""
WORDS = {"Gathered.way": tuple(WAYS)}


@frozen
class Gathered:
    """A column of what one person's records of a table come to, of those of which all conditions hold.

    `way`: one of `WAYS`, of the `value` of the records that have one. `when`: conditions on a record, each with the
    labels for which it `holds`. Nothing, where no record has a value, or two differ that may not.
    """

    name: str
    source: Source
    way: str
    value: Derived | None
    when: tuple[Derived, ...] = ()
    holds: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        if (self.value is not None) != WAYS[self.way].of_values:
            raise Refused("is gathered from a value that is not said, or not looked at")
        told = [set(one.labels) for one in self.when]
        if len(told) != len(self.holds) or not all(map(set.issuperset, told, self.holds)):
            raise Refused("does not say for each condition when it holds")
        if WAYS[self.way].numbers and (self.value is None or self.value.labels):
            raise Refused("adds up words")

    def words(self) -> str:
        """How it is gathered, in a sentence."""
        records = f"the records of {self.source.table} that a person has"
        asked = [
            one.name if labels == ("yes",) else f"{one.name} {' or '.join(labels)}"
            for one, labels in zip(self.when, self.holds, strict=True)
        ]
        records += f", of those with {' and '.join(asked)}" if asked else ""
        return f"{self.name} is {WAYS[self.way].sentence.format(records=records, value=self.value)}."


@frozen
class People:
    """Columns that are gathered from all records of one person; `persons`: all tables that one record each is made of.

    Without these, columns are looked up by the id of the person whose record it is.
    """

    gathered: tuple[Gathered, ...]
    persons: tuple[Source, ...] = ()

    def __post_init__(self) -> None:
        made = {source.table for source in self.persons}
        if not self.gathered or (made and not {one.source.table for one in self.gathered} <= made):
            raise Refused("is gathered from nothing, or from a table of which no person is made")

    @property
    def tables(self) -> dict[str, str]:
        """All tables that records are gathered from, each with the column that says whose a record is."""
        return {source.table: source.id for source in (*self.persons, *(one.source for one in self.gathered))}

    def words(self, name: str) -> str:
        """What it is made of, in sentences."""
        tables = " and ".join(source.table for source in self.persons)
        whole = f"A record of {name} is made of all records that one person has in {tables}. " if tables else ""
        return whole + " ".join(one.words() for one in self.gathered)
