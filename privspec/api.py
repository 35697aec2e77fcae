"""The Python face: `load` a spec from a file, or build a `Problem` from text; both `solve` to a frozen `Plan`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from privspec.core.diagnostics import UsageError
from privspec.core.records import dataclass, field
from privspec.core.spans import Source
from privspec.language.syntax import Spec
from privspec.pipeline import Request, settle
from privspec.pipeline import check as check_request
from privspec.pipeline import program as program_of
from privspec.pipeline import solve as solve_request
from privspec.plan import Plan

if TYPE_CHECKING:
    from privspec.families.program import Form, Stated
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

        Args: parameters of the spec by name (`epsilon=0.5`); solver "default" or "cvxpy"; time_limit in seconds,
        after which solvers stop.
        Raises: SpecError, SolveError, VerificationError.
        """
        from privspec.families.family import Settings, stops_after

        settings = Settings(solver=solver, until=stops_after(time_limit), progress=progress)
        return solve_request(self._request(parameters, constants), settings)

    def program(self, *, constants: Mapping[str, Any] | None = None, **parameters: Any) -> Program:
        """The convex program that the spec stands for, to look at, change and solve with any solver.

            >>> program = load("k_randomised_response").program()
            >>> round(float(program.problem.solve()), 4), program.plan().status
            (0.5246, 'optimal')

        Raises: as `solve`; SolveError PS0614 where the mechanism is the optimum of no such program.
        """

        def at(changed: Mapping[str, Any]) -> Model:
            return check_request(self._request({**parameters, **changed}, constants))

        return Program(program_of(at({})), at)


@dataclass(frozen=True, eq=False)
class Program:
    """The convex program that a spec stands for; `print` shows it in words and formulas.

        >>> shown = load("linear_queries").program()
        >>> sorted(shown.variables), list(shown.parameters)
        (['s'], ['line 21: O is (epsilon, delta)-DP wrt x, replacing one entry: mu^2', 'weights of the loss'])

    `problem`: a `cvxpy.Problem`; its constraints carry the lines of the spec as labels. `expressions` are affine in
    the variables, so that they may stand in constraints of one's own.
    """

    form: Form
    _at: Callable[[Mapping[str, Any]], Model]
    _changed: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def _stated(self) -> Stated:
        return self.form.state()

    @property
    def problem(self) -> Any:
        """The `cvxpy.Problem`."""
        return self._stated.problem

    @property
    def variables(self) -> Mapping[str, Any]:
        """Its variables by name."""
        return self._stated.variables

    @property
    def parameters(self) -> Mapping[str, Any]:
        """What the spec says in numbers, as `cvxpy.Parameter`s by name: change a `value` and solve again."""
        return self._stated.parameters

    @property
    def constraints(self) -> Mapping[str, list[Any]]:
        """Its constraints, by the line of the spec that they stand for."""
        return self._stated.constraints

    @property
    def expressions(self) -> Mapping[str, Any]:
        """What follows from the variables, by name."""
        return self._stated.expressions

    def __str__(self) -> str:
        return self.form.text()

    def set(self, **parameters: Any) -> None:
        """Give parameters of the spec other values: those of the program follow, and nothing is compiled.

        Raises: UsageError PS0723 where they change more than the amounts of its lines.
        """
        changed = {**self._changed, **parameters}
        model = self._at(changed)
        if not self.form.same(model):
            names = " and ".join(parameters)
            raise UsageError.of(
                "PS0723", f"{names} changes more of this program than its amounts", help="load the spec with that value"
            )
        for name, value in self.form.amounts(model).items():
            self.parameters[name].value = value
        self._changed.update(parameters)

    def plan(self, solution: Mapping[str, Any] | None = None) -> Plan:
        """The verified plan of what a solver found: repaired until it meets every line exactly.

        Args: solution, values of the variables by name; by default those that the variables have now.
        The bound is that of the spec as it was before any change to the problem: where constraints were added the plan
        is rarely optimal, and says so.
        Raises: UsageError PS0724 where a variable has no value of its shape; SolveError, VerificationError.
        """
        found = {}
        for name, variable in self.variables.items():
            value = variable.value if solution is None else solution.get(name)
            if value is None or np.shape(value) != variable.shape or not np.all(np.isfinite(value)):
                text = f"{name} needs finite numbers of shape {variable.shape}"
                raise UsageError.of("PS0724", text, help="solve `problem` first, or give them to `plan`")
            found[name] = np.asarray(value, dtype=float)
        return settle(self.form, found, self._at(self._changed) if self._changed else None)


def load(path: str | Path, **parameters: Any) -> Problem:
    """Read a spec file, or the built-in spec of that name; its errors are told by `check` and `solve`.

        >>> load("histogram", epsilon=2)
        <Problem ...histogram.priv: a spec of 23 lines>

    Raises: UsageError if there is no such file.
    """
    from privspec.pipeline import spec_source

    source, base = spec_source(Path(path))
    return Problem(source.text, parameters, base=base, name=source.name)


def _text(value: Any) -> Any:
    """Floats by their shortest decimal: `epsilon=0.1` means one tenth, as in a spec."""
    return repr(value) if isinstance(value, float) else value
