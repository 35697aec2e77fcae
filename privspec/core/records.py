"""Dataclasses that are cheap to make: hundreds of them stand at every start, and most are never used in it.

The standard library compiles six methods for each, a third of a millisecond. Here `__init__` is compiled when a class
is first called, and the others are shared. What a class is, its fields, its methods and what they do, is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, asdict, astuple, field, fields, is_dataclass, replace
from operator import attrgetter
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

__all__ = ["MISSING", "asdict", "astuple", "dataclass", "field", "fields", "is_dataclass", "replace"]

if TYPE_CHECKING:
    from dataclasses import dataclass  # for type checkers they are one
else:
    from dataclasses import dataclass as full

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

        def made(cls: type) -> type:
            own = {name for name in _METHODS if name in vars(cls)}
            kept = vars(cls).get("__hash__", ...), "__eq__" in own
            new = full(init=False, repr=False, eq=False, kw_only=kw_only, slots=slots)(cls)
            for name, method in _methods(new, eq=eq, order=order, frozen=frozen, slots=slots).items():
                if name not in own:
                    setattr(new, name, method)
            if eq and (kept[0] is ... or (kept == (None, True))):
                new.__hash__ = _hash_of(new) if frozen else None
            return new

        return made if cls is None else made(cls)


_METHODS = (
    *("__init__", "__repr__", "__eq__", "__lt__", "__le__", "__gt__", "__ge__"),
    *("__setattr__", "__delattr__", "__getstate__", "__setstate__"),
)


def _methods(cls: type, *, eq: bool, order: bool, frozen: bool, slots: bool) -> dict[str, Callable[..., Any]]:
    found: dict[str, Callable[..., Any]] = {"__init__": _first_init(cls, frozen=frozen), "__repr__": _repr}
    if eq:
        found["__eq__"] = _compared(cls, "__eq__")
    if order:
        found.update((name, _compared(cls, name)) for name in ("__lt__", "__le__", "__gt__", "__ge__"))
    if frozen:
        found.update(__setattr__=_refusing(cls, "__setattr__"), __delattr__=_refusing(cls, "__delattr__"))
    if frozen and slots:
        found.update(__getstate__=_getstate, __setstate__=_setstate)
    return found


def _first_init(cls: type, *, frozen: bool) -> Callable[..., None]:
    """An `__init__` that is compiled, and takes this one's place, when it is first called."""

    def init(self: Any, /, *args: Any, **named: Any) -> None:
        compiled = _init(cls, frozen=frozen)
        cls.__init__ = compiled  # type: ignore[misc]
        compiled(self, *args, **named)

    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init


def _init(cls: type, *, frozen: bool) -> Callable[..., None]:
    known: dict[str, Any] = {"_missing": MISSING, "_set": object.__setattr__}
    first, named, body = ["self"], list[str](), list[str]()
    for one in fields(cls):
        name, value = one.name, one.name
        if one.default_factory is not MISSING:
            known[f"_make_{name}"] = one.default_factory
            value = f"_make_{name}() if {name} is _missing else {name}" if one.init else f"_make_{name}()"
        elif one.default is not MISSING:
            known[f"_default_{name}"] = one.default
            value = name if one.init else f"_default_{name}"
        elif not one.init:
            continue
        if frozen and isinstance(slot := getattr(cls, name, None), MemberDescriptorType):
            known[f"_set_{name}"] = slot.__set__  # straight to its place, in three quarters of the time
            body.append(f"_set_{name}(self, {value})")
        else:
            body.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
        if one.init:
            default = "_missing" if one.default_factory is not MISSING else f"_default_{name}"
            given = name if one.default is one.default_factory is MISSING else f"{name}={default}"
            (named if one.kw_only else first).append(given)
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    heads = ", ".join([*first, *(["*", *named] if named else [])])
    exec(f"def __init__({heads}):\n " + "\n ".join(body or ["pass"]), known)
    made: Callable[..., None] = known["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


def _values(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple([getattr(self, name) for name in names])


def _compared(cls: type, name: str) -> Callable[[Any, Any], Any]:
    values = _values([one.name for one in fields(cls) if one.compare])
    how = getattr(tuple, name)

    def compare(self: Any, other: Any) -> Any:
        return how(values(self), values(other)) if other.__class__ is self.__class__ else NotImplemented

    compare.__name__ = name
    return compare


def _hash_of(cls: type) -> Callable[[Any], int]:
    names = [one.name for one in fields(cls) if (one.compare if one.hash is None else one.hash)]
    values = _values(names)

    return lambda self: hash(values(self))


@recursive_repr()
def _repr(self: Any) -> str:
    said = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{self.__class__.__qualname__}({said})"


def _refusing(cls: type, name: str) -> Callable[..., None]:
    names, verb = frozenset(one.name for one in fields(cls)), "delete" if "del" in name else "assign to"

    def refuse(self: Any, name_of_field: str, *value: Any) -> None:
        if type(self) is cls or name_of_field in names:
            raise FrozenInstanceError(f"cannot {verb} field {name_of_field!r}")
        getattr(super(cls, self), name)(name_of_field, *value)

    return refuse


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, one.name) for one in fields(self)]


def _setstate(self: Any, state: list[Any]) -> None:
    for one, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)
