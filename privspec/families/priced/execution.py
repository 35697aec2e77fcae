"""Data are read as the spec at any one amount reads them; plans are executed by the family of their block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from privspec.model.graph import Model
from privspec.problem.priced import inner, inner_family


def fit(model: Model, data: Mapping[str, Any], circumstances: Any) -> None:
    """Tells the keeper how data fit.

    Raises: DataError.
    """
    inner_family(model).fits(inner(model), data, circumstances)
