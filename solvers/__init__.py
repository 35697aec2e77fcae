"""Special solvers over plain matrices. They know nothing of the language."""

import importlib
import sys

import numpy as np

UNASKED = frozenset(("f2py", "testing", "ctypeslib"))
"""Parts of numpy that it loads when they are named; the first time that any of scipy loads, it names all there is."""


def _load_scipy() -> None:
    """Load what all of scipy rests on, without these parts, which nothing here uses: an eighth of `privspec solve`."""
    if "scipy" in sys.modules:
        return
    listed, told = np.__all__, np.__dir__
    names = [name for name in told() if name not in UNASKED]
    try:
        vars(np).update(__all__=[name for name in listed if name not in UNASKED], __dir__=lambda: names)
        importlib.import_module("scipy.sparse")
    finally:
        vars(np).update(__all__=listed, __dir__=told)


_load_scipy()
