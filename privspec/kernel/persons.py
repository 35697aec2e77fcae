"""Columns that are made of all records of one person: how many there are, sums, the least, whether any is such.

Theorem. A row of a table of persons is a function of the records of that one person, over all tables that it is made
of; who has no record in any of them has no row. So adding, removing or replacing one person, with all of their records
wherever they are, adds, removes or replaces one row. A column that is looked up by an id is a function of the records
of the person whose row it stands in: where a line is about one person, and all they have moves at once, nothing moves
but rows of that person. Both fail where what is moved is less than a person, which `judging` refuses. notes/persons.md.
"""

from __future__ import annotations

from privspec.kernel.core.reading import JsonNode, Refused, frozen, read
from privspec.kernel.derived import Derived

Words = tuple[str, ...]


@frozen
class Source:
    """A table that records are gathered from, and its column that says whose each is."""

    table: str
    id: str


@frozen
class Gathered:
    """A column of what one person's records of a table come to, of those of which all conditions hold.

    `way`: how many there are ("count"); whether there are any ("any": yes or no); the sum, the least, the greatest of
    the `value` of those that have one; that value itself where all agree ("only"). `when`: conditions on a record,
    each with the labels for which it `holds`. Nothing, where no record has a value, or two differ ("only").
    """

    name: str
    source: Source
    way: str
    value: Derived | None
    when: tuple[Derived, ...] = ()
    holds: tuple[Words, ...] = ()

    def __post_init__(self) -> None:
        if (self.value is None) != (self.way in ("count", "any")):
            raise Refused("is gathered from a value that is not said, or not looked at")
        told = [set(one.labels) for one in self.when]
        if len(told) != len(self.holds) or not all(map(set.issuperset, told, self.holds)):
            raise Refused("does not say for each condition when it holds")
        if self.way == "sum" and (self.value is None or self.value.labels):
            raise Refused("adds up words")

    def words(self) -> str:
        """How it is gathered, in a sentence."""
        value = "" if self.value is None else self.value.name
        records = f"the records of {self.source.table} that a person has"
        asked = [
            one.name if labels == ("yes",) else f"{one.name} {' or '.join(labels)}"
            for one, labels in zip(self.when, self.holds, strict=True)
        ]
        records += f", of those with {' and '.join(asked)}" if asked else ""
        what = {
            "count": f"the number of {records}",
            "any": f"whether there are any of {records}",
            "sum": f"the sum of {value} over {records}",
            "least": f"the least {value} in {records}",
            "greatest": f"the greatest {value} in {records}",
            "only": f"the {value} in {records}, missing where there is none or two differ",
        }[self.way]
        return f"{self.name} is {what}."


WORDS = {"Gathered.way": ("count", "any", "sum", "least", "greatest", "only")}


def read_derived(item: JsonNode) -> Derived:
    """A column that follows from others of the same record."""
    return read(Derived, item)


def read_words(item: JsonNode) -> Words:
    """Some labels."""
    return tuple(one.text() for one in item.items())


READERS = {"Derived": read_derived, "Words": read_words}


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
