"""Dataclasses that are cheap to make: the kernel's, for every room."""

from privspec.kernel.core.records import MISSING, asdict, astuple, dataclass, field, fields, is_dataclass, replace

__all__ = ["MISSING", "asdict", "astuple", "dataclass", "field", "fields", "is_dataclass", "replace"]
