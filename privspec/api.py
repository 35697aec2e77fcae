"""The Python face: `load` a spec from a file, or build a `Problem` from text; both `solve` to a frozen `Plan`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privspec.core.records import dataclass, field
from privspec.core.spans import Source
from privspec.language.syntax import Spec
from privspec.pipeline import Request
from privspec.pipeline import check as check_request
from privspec.pipeline import solve as solve_request
from privspec.plan import Plan

if TYPE_CHECKING:
    from privspec.model.graph import Model


@dataclass(frozen=True, eq=False)
class Problem:
    """A spec from Python, without a file.

    Args: spec, the text of a spec or a syntax tree built by hand; parameters and constants, values in place of
    (or besides) those written in it; base, the folder that file names in it are relative to.

        >>> problem = Problem('''
        ... variables:
        ...   input x in [0, 1]^3
        ...   output O
        ... loss: E[ ||O - x||^2 ]
        ... privacy: O is 1-GDP wrt x, replacing one entry
        ... ''')
        >>> round(problem.solve().loss.value, 6)
        3.0
    """

    spec: str | Spec
    parameters: Mapping[str, Any] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    base: Path | None = None
    name: str = "<python>"

    @property
    def source(self) -> Source:
        """The text that is compiled."""
        if isinstance(self.spec, Spec):
            from privspec.language.spelling import print_spec

            return Source(self.name, print_spec(self.spec))
        return Source(self.name, self.spec)

    def __repr__(self) -> str:
        lines = self.source.text.count("\n") + 1
        return f"<Problem {self.name}: a spec of {lines:,} lines>"

    def _repr_html_(self) -> str:
        """The spec as a notebook shows it."""
        return f"<p>{escape(repr(self)[1:-1])}</p><pre>{escape(self.source.text)}</pre>"

    def _request(self, parameters: Mapping[str, Any], constants: Mapping[str, Any] | None) -> Request:
        values = {key: _text(value) for key, value in {**self.parameters, **parameters}.items()}
        return Request(self.source, values, {**self.constants, **(constants or {})}, self.base)

    def check(self, **parameters: Any) -> Model:
        """The typed graph.

            >>> model = load("counting_query").check(n=3)
            >>> [node.name for node in model.outputs], model.trust.name
            (['O'], 'curator')

        Raises: SpecError with every diagnostic.
        """
        return check_request(self._request(parameters, None))

    def solve(
        self,
        *,
        solver: str = "default",
        time_limit: float | None = None,
        constants: Mapping[str, Any] | None = None,
        progress: Callable[[int, float, float], None] | None = None,
        **parameters: Any,
    ) -> Plan:
        """The verified plan, or one of status "infeasible" that says which lines conflict.

            >>> load("k_randomised_response").solve(epsilon=2).guarantees[0].epsilon
            '2'

        Args: parameters of the spec by name (`epsilon=0.5`); solver "default" or "cvxpy"; time_limit in seconds.
        Raises: SpecError, SolveError, VerificationError.
        """
        from privspec.families.family import Settings

        settings = Settings(solver=solver, deadline=time_limit, progress=progress)
        return solve_request(self._request(parameters, constants), settings)


def load(path: str | Path, **parameters: Any) -> Problem:
    """Read a spec file, or the built-in spec of that name; its errors are told by `check` and `solve`.

        >>> load("histogram", epsilon=2)
        <Problem ...histogram.priv: a spec of 23 lines>

    Raises: UsageError if there is no such file.
    """
    from privspec.manual import spec_source

    source, base = spec_source(Path(path))
    return Problem(source.text, parameters, base=base, name=source.name)


def _text(value: Any) -> Any:
    """Floats by their shortest decimal: `epsilon=0.1` means one tenth, as in a spec."""
    return repr(value) if isinstance(value, float) else value
