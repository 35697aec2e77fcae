"""Our dataclasses behave as those of the standard library, whatever was asked for."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from itertools import product
from typing import Any

import pytest

from privspec.core import records

ASKED = [
    dict(zip(("frozen", "slots", "eq", "kw_only"), given, strict=True)) for given in product((False, True), repeat=4)
]
CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((1, "b"), {}),
    ((1, "b", 3), {}),
    ((1, "c"), {}),
    ((), {"a": 1, "b": "b", "c": 4}),
    ((), {"a": 1, "b": "b", "tail": 5}),
    ((1,), {}),
    ((1, "b", 3, 4), {}),
    ((), {"a": 1, "b": "b", "none": 5}),
]


def both(**asked: bool) -> list[type]:
    """The same class by either maker, with defaults, a factory, a field for keywords and one that is not compared."""
    found = []
    for maker in (dataclasses.dataclass, records.dataclass):

        class Base:
            """Has a field that is computed."""

            __slots__ = ()

            def __post_init__(self) -> None:
                if not asked["frozen"]:
                    self.a = self.a * 2  # type: ignore[has-type]

        namespace = {
            "__annotations__": {
                "a": "int",
                "b": "str",
                "c": "int",
                "d": "list[int]",
                "tail": "int",
                "own": "list[int]",
            },
            "__module__": __name__,
            "__doc__": "One.",
            "c": 7,
            "d": dataclasses.field(default_factory=list, compare=False),
            "tail": dataclasses.field(default=9, kw_only=True, repr=False),
            "own": dataclasses.field(default_factory=list, init=False, compare=False),
        }
        found.append(maker(**asked)(type("One", (Base,), namespace)))
    return found


def tried(action: Any) -> Any:
    """What comes out, or the kind of error."""
    try:
        return action()
    except (TypeError, AttributeError) as error:
        return type(error)


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_they_are_made_compared_and_shown_alike(asked: dict[str, bool]) -> None:
    theirs, ours = both(**asked)
    made = [[tried(lambda kind=kind, a=a, k=k: kind(*a, **k)) for a, k in CALLS] for kind in (theirs, ours)]
    for one, other in zip(*made, strict=True):
        assert isinstance(one, type) == isinstance(other, type)
        if isinstance(one, type):
            assert one is other
            continue
        assert repr(one) == repr(other)
        assert dataclasses.asdict(one) == dataclasses.asdict(other)
        assert tried(lambda one=one: hash(one) % 1 if asked["eq"] else 0) == tried(
            lambda other=other: hash(other) % 1 if asked["eq"] else 0
        )
        for change in ("a", "none"):
            told = [
                [tried(lambda x=x, c=change: setattr(x, c, 5)), tried(lambda x=x, c=change: delattr(x, c))]
                for x in (copy.copy(one), copy.copy(other))
            ]
            # what is no field of a frozen class with slots is refused for a wrong reason by the standard library
            assert told[0] == told[1] or (asked["frozen"] and asked["slots"] and change == "none" and all(told[1]))
    whole = [[one for one in each if not isinstance(one, type)] for each in made]
    for each in whole[1:]:
        fresh = [copy.copy(one) for one in each]
        assert [one == other for one, other in product(whole[0], repeat=2)] == [
            one == other for one, other in product(each, repeat=2)
        ]
        assert all((one == other) == asked["eq"] for one, other in zip(each, fresh, strict=True))
    assert [one.name for one in dataclasses.fields(theirs)] == [one.name for one in dataclasses.fields(ours)]
    assert theirs.__match_args__ == ours.__match_args__
    assert hasattr(theirs, "__slots__") == hasattr(ours, "__slots__")


@records.dataclass(frozen=True, slots=True, order=True)
class Place:
    """A place."""

    row: int
    column: int = 0


@records.dataclass(frozen=True, slots=True)
class Named(Place):
    """A place with a name."""

    name: str = ""


def test_they_are_ordered_copied_stored_and_derived_from() -> None:
    assert Place(1, 2) < Place(2) <= Place(2) and Place(3) > Place(2, 9) >= Place(2, 9)
    assert Place(1) != Named(1) and Named(1, 2, "n").name == "n"
    assert len({Place(1), Place(1), Named(1)}) == 2
    for one in (Place(1, 2), Named(1, name="x")):
        assert pickle.loads(pickle.dumps(one)) == one == copy.deepcopy(one)
        assert records.replace(one, row=5).row == 5
    with pytest.raises(dataclasses.FrozenInstanceError, match="assign to field 'row'"):
        Place(1).row = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError, match="delete field 'row'"):
        del Place(1).row


def test_what_a_class_says_itself_stands() -> None:
    @records.dataclass(frozen=True, order=True)
    class Own:
        """Compares by its length."""

        text: str

        def __init__(self, text: str) -> None:
            object.__setattr__(self, "text", text + "!")

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own) and len(self.text) == len(other.text)

        def __hash__(self) -> int:
            return len(self.text)

        def __repr__(self) -> str:
            return "own"

    assert Own("ab") == Own("cd") and hash(Own("ab")) == 3 and repr(Own("a")) == "own" and Own("a").text == "a!"
