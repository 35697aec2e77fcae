"""Estimates of weights, which take a test longer than all that is said of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from privspec.functions.probit import Result


@contextmanager
def each_estimate_once() -> Iterator[None]:
    """Directions, signs and whole steps are of the same weights: of the same records in the same ball one estimate."""
    known: dict[Any, np.ndarray[Any, Any]] = {}
    estimated = Result.weights

    def weights(route: Result, records: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        key = route.within, records.shape, records.tobytes()
        if key not in known:
            known[key] = estimated(route, records)
            known[key].flags.writeable = False
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Result, "weights", weights)
        yield
