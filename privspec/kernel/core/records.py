"""Dataclasses that are cheap to make: hundreds of them stand at every start, and most are never used in it.

The standard library compiles six methods for each, half a millisecond. Here `__init__` of a frozen class is compiled
when the class is first called, and the other methods are shared. What a class is, its fields, its methods and what they
do, is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, asdict, astuple, field, fields, is_dataclass, replace
from dataclasses import dataclass as compiled
from functools import partial
from operator import attrgetter
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

__all__ = ["MISSING", "asdict", "astuple", "dataclass", "field", "fields", "is_dataclass", "replace"]

if TYPE_CHECKING:
    from dataclasses import dataclass  # for type checkers they are one
else:

    def dataclass(
        cls: type | None = None,
        *,
        eq: bool = True,
        order: bool = False,
        frozen: bool = False,
        kw_only: bool = False,
        slots: bool = False,
    ) -> Any:
        """A class with the methods of `dataclasses.dataclass`, which takes the same words."""
        if cls is None:
            return partial(dataclass, eq=eq, order=order, frozen=frozen, kw_only=kw_only, slots=slots)
        if not frozen:
            return compiled(cls, eq=eq, order=order, kw_only=kw_only, slots=slots)
        own = {name for name, value in vars(cls).items() if value is not None}  # a class with its own == has no hash
        new = compiled(cls, init=False, repr=False, eq=order, order=order, kw_only=kw_only, slots=slots)
        for name, method in _methods(new, eq=eq).items():
            if name not in own:
                setattr(new, name, method)
        return new


def _methods(cls: type, *, eq: bool) -> dict[str, Callable[..., Any]]:
    compared = _values([one.name for one in fields(cls) if one.compare])

    def equal(self: Any, other: Any) -> Any:
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    def hashed(self: Any) -> int:
        return hash(compared(self))

    found: dict[str, Callable[..., Any]] = {
        "__init__": _first_init(cls),
        "__repr__": _repr,
        "__setattr__": _refuse,
        "__delattr__": _refuse,
    }
    if eq:
        found.update(__eq__=equal, __hash__=hashed)
    if "__slots__" in vars(cls):
        found["__setstate__"] = _setstate
    return found


def _values(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple([getattr(self, name) for name in names])


def _first_init(cls: type) -> Callable[..., None]:
    """An `__init__` that is compiled, and takes this one's place, when it is first called."""

    def init(self: Any, /, *args: Any, **named: Any) -> None:
        cls.__init__ = _init(cls)  # type: ignore[misc]
        cls.__init__(self, *args, **named)  # type: ignore[misc]

    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init


def _init(cls: type) -> Callable[..., None]:
    known: dict[str, Any] = {"_missing": MISSING, "_set": object.__setattr__}
    first, named, body = ["self"], ["*"], list[str]()
    for one in fields(cls):
        name, given, value = one.name, one.name, one.name
        if one.default is not MISSING:
            known[f"_default_{name}"] = one.default
            given = f"{name}=_default_{name}"
        elif one.default_factory is not MISSING:
            known[f"_make_{name}"] = one.default_factory
            given, value = f"{name}=_missing", f"_make_{name}() if {name} is _missing else {name}"
        if one.init:
            (named if one.kw_only else first).append(given)
        elif given == name:
            continue  # it is set later
        else:
            body.append(given)
        if isinstance(slot := getattr(cls, name, None), MemberDescriptorType):
            known[f"_set_{name}"] = slot.__set__  # straight to its place, in three quarters of the time
            body.append(f"_set_{name}(self, {value})")
        else:
            body.append(f"_set(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    heads = ", ".join(first + (named if len(named) > 1 else []))
    exec(f"def __init__({heads}):\n " + "\n ".join(body or ["pass"]), known)
    made: Callable[..., None] = known["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


def _repr(self: Any) -> str:
    said = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{self.__class__.__qualname__}({said})"


def _refuse(_: Any, name: str, *value: Any) -> None:
    raise FrozenInstanceError(f"cannot {'assign to' if value else 'delete'} field {name!r}")


def _setstate(self: Any, state: tuple[Any, dict[str, Any]]) -> None:
    for name, value in state[1].items():
        object.__setattr__(self, name, value)
