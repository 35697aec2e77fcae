"""Lines that a table must obey, in numbers: conditions `E[g(z) | x] = e`, accuracy, bounds on lies, fairness.

The right side of a condition may use `choose` numbers and averages E[g(B)] of a law that is chosen. (1 - alpha) E[g(B)]
is linear in the masses (1 - alpha) Pr(B = b), which together are 1 - alpha (Ramon & Basu 2020, section 3.3).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import NoReturn

import numpy as np

from privspec.core.records import dataclass, field
from privspec.core.rounding import root
from privspec.core.spans import Span
from privspec.kernel.core.reading import Grid
from privspec.kernel.measures import LIPSCHITZ
from privspec.kernel.tables_forms import (
    Choice,
    ChosenLaw,
    Condition,
    Estimates,
    Fairness,
    Limit,
    Moment,
    Scaled,
)
from privspec.kernel.tables_forms import Votes as Manipulation
from privspec.kernel.writing import exact_grid
from privspec.language import syntax
from privspec.language.syntax import VariableKind
from privspec.language.walk import every, names_used, reached
from privspec.model.domains import FiniteSet, Law, PartialRankingOf, RankingOf
from privspec.model.evaluate import evaluate
from privspec.model.graph import Model
from privspec.model.measures import MeasureAt
from privspec.model.pointwise import Pointwise
from privspec.model.reports import Failure, listing
from privspec.model.requirements import AccuracyTarget, IndependenceRequirement, MechanismConstraint, Requirement
from privspec.model.spaces import Counted
from privspec.model.values import Symbol, show
from privspec.model.worlds import Worlds, key
from privspec.problem.table_forms import Costs, amount, costs, numbers, spread
from privspec.problem.terms import Chosen, Term, multiples, public, public_number, terms

# --- conditions -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Affine:
    """At each row: sum table f + sum scalars[name] w_name + constant; scalars and constant are (rows,) of fractions."""

    constant: Costs
    scalars: Mapping[str, Costs] = field(default_factory=dict)
    table: Costs | None = None

    @property
    def certain(self) -> bool:
        """Whether nothing unknown stands in it."""
        return self.table is None and not self.scalars

    def plus(self, other: Affine, sign: int = 1) -> Affine:
        """The sum, or the difference for sign -1."""
        scalars = dict(self.scalars)
        for name, values in other.scalars.items():
            scalars[name] = scalars[name] + sign * values if name in scalars else sign * values
        table = self.table
        if other.table is not None:
            table = sign * other.table if table is None else table + sign * other.table
        return Affine(self.constant + sign * other.constant, scalars, table)

    def times(self, factor: Costs) -> Affine:
        """Each row times a certain number."""
        scalars = {name: values * factor for name, values in self.scalars.items()}
        return Affine(self.constant * factor, scalars, None if self.table is None else self.table * factor[:, None])


@dataclass(frozen=True, eq=False)
class Conditions:
    """Lowers the lines of one spec; `weights[B]` is the alpha of a law met as (1 - alpha) * E[g(B)], None without."""

    worlds: Worlds
    scene: Pointwise
    weights: dict[str, str | None] = field(default_factory=dict)

    def constraint(self, constraint: MechanismConstraint) -> Condition:
        """A line of the background.

        Raises: Failure PS0502 if it is not linear in the table and in what is chosen.
        """
        relation = constraint.relation
        if any(isinstance(one.given, syntax.TupleOf) for one in every(relation, syntax.Over)):
            return Averages(self.worlds, self.scene, relation).condition(constraint)
        found = self.affine(relation.left).plus(self.affine(relation.right), -1)
        if relation.op in (">=", "≥"):
            found = found.times(-self._ones())
        if found.table is not None and found.scalars and len(set(found.constant.tolist())) == 1:
            # each row of the table sums to one: a known mean of the background is a shift of what is drawn
            found = Affine(found.constant * 0, found.scalars, found.table + found.constant[:, None])
        scalars = tuple(Scaled(name, numbers(v)) for name, v in sorted(found.scalars.items()) if np.any(v))
        table = None if found.table is None else numbers(found.table)
        return Condition(
            constraint.line, constraint.text, relation.op == "=", table, scalars, numbers(np.asarray(found.constant))
        )

    def choices(self) -> tuple[tuple[Choice, ...], tuple[ChosenLaw, ...]]:
        """The `choose` numbers, and the laws that were met.

        Raises: Failure PS0501 for a number without two ends.
        """
        found: list[Choice] = []
        laws: list[ChosenLaw] = []
        for node in self.worlds.model.choices:
            if isinstance(node.domain, Law):
                if node.name in self.weights:
                    labels = tuple(show(value) for value in node.domain.over.elements())
                    laws.append(ChosenLaw(node.name, labels, self.weights[node.name]))
                continue
            low, high = node.domain.bounds if node.domain is not None else (None, None)
            if node.domain is None or low is None or high is None:
                raise Failure("PS0501", node.span, f"solve needs two ends for {node.name}", help="as in [0, 1]")
            left, right = (getattr(node.domain, end, False) for end in ("low_open", "high_open"))
            found.append(Choice(node.name, low, high, left, right))
        return tuple(found), tuple(laws)

    # -- expressions

    def affine(self, expr: syntax.Expr) -> Affine:
        """An expression that is linear in the table and in what is chosen.

        Raises: Failure PS0502 if it is not.
        """
        if not self._unknown(expr):
            return Affine(self._certain(expr))
        match expr:
            case syntax.Name(id=name) if self._chosen_number(name):
                ones = self._ones()
                return Affine(ones * 0, {name: ones})
            case syntax.Name(id=name) if self.worlds.model.nodes[name].definition is not None:
                return self.affine(self.worlds.model.nodes[name].definition)  # type: ignore[arg-type]
            case syntax.Over(operator="E"):
                return self._average(expr)
            case syntax.Binary(op="+" | "-"):
                return self.affine(expr.left).plus(self.affine(expr.right), 1 if expr.op == "+" else -1)
            case syntax.Negate():
                return self.affine(expr.operand).times(self._ones() * Fraction(-1))
            case syntax.Binary(op="*"):
                return self._product(expr)
            case syntax.Binary(op="/") if not self._unknown(expr.right):
                share = syntax.Binary("/", syntax.Number(Fraction(1)), expr.right, span=expr.span)
                return self.affine(expr.left).times(self._certain(share))
        raise self._nonlinear(expr)

    def _product(self, expr: syntax.Binary) -> Affine:
        for factor, other in ((expr.left, expr.right), (expr.right, expr.left)):
            if not self._unknown(factor):
                return self.affine(other).times(self._certain(factor))
        for factor, other in ((expr.left, expr.right), (expr.right, expr.left)):
            law = self._law_average(other)
            if law is not None:
                alpha = self._one_less(factor)
                if alpha is None:
                    break
                return self._masses(law, other, alpha)  # type: ignore[arg-type]
        raise self._nonlinear(expr)

    def _one_less(self, expr: syntax.Expr) -> str | None:
        """The name alpha of `1 - alpha`."""
        found = self.affine(expr)
        if found.table is not None or len(found.scalars) != 1 or any(c != 1 for c in found.constant):
            return None
        ((name, values),) = found.scalars.items()
        return name if all(v == -1 for v in values) and ":" not in name else None

    def _law_average(self, expr: syntax.Expr) -> str | None:
        """The law B of E[g(B)]."""
        if not isinstance(expr, syntax.Over) or expr.given is not None:
            return None
        nodes = self.worlds.model.nodes
        laws = [n for n in names_used(expr.body) if n in nodes and isinstance(nodes[n].domain, Law)]
        return laws[0] if len(laws) == 1 else None

    def _masses(self, law: str, expr: syntax.Over, alpha: str | None) -> Affine:
        if self.weights.setdefault(law, alpha) != alpha:
            raise Failure("PS0502", expr.span, f"{law} is used both with and without the factor 1 - alpha")
        domain = self.worlds.model.nodes[law].domain
        assert isinstance(domain, Law)
        scalars = {}
        for value in domain.over.elements():
            grid = self.scene.bind(law, value).of(expr.body)
            scalars[mass_name(law, value)] = spread(grid, self.worlds)[:, 0]
        return Affine(self._ones() * 0, scalars)

    def _average(self, expr: syntax.Over) -> Affine:
        law = self._law_average(expr)
        if law is not None:
            return self._masses(law, expr, None)
        if expr.given is None and set(names_used(expr.body)) & set(self.worlds.of):
            raise Failure("PS0501", expr.span, "solve takes conditions for each input: E[ ... | x ]")
        return Affine(self._ones() * 0, {}, costs(expr.body, self.scene, self.worlds))

    def _certain(self, expr: syntax.Expr) -> Costs:
        return spread(self.scene.of(expr), self.worlds)[:, 0]

    def _ones(self) -> Costs:
        ones = np.empty(len(self.worlds.rows), dtype=object)
        ones[:] = Fraction(1)
        return ones

    def _chosen_number(self, name: str) -> bool:
        node = self.worlds.model.nodes.get(name)
        return node is not None and node.kind is VariableKind.CHOOSE and not isinstance(node.domain, Law)

    def _unknown(self, expr: syntax.Node) -> bool:
        """Whether an output or a choice stands in it, or in what it is computed from."""
        nodes, kinds = self.worlds.model.nodes, (VariableKind.OUTPUT, VariableKind.CHOOSE)
        names = reached(names_used(expr), self.worlds.model.uses)
        return any(name in nodes and nodes[name].kind in kinds for name in names)

    def _nonlinear(self, expr: syntax.Expr) -> Failure:
        message = "this line is not linear in the table and in what is chosen"
        return Failure("PS0502", expr.span, message, help="as in E[z | x] = alpha * x + (1 - alpha) * E[B]")


@dataclass(frozen=True, eq=False)
class Averages:
    """A line about averages given several values, `E[d | a, b = v]`: over all else, by the law of the data.

    It holds for all values of the names that averages are given without one.
    """

    worlds: Worlds
    scene: Pointwise
    relation: syntax.Relation

    @property
    def of_all_data(self) -> bool:
        """Whether no average is over several data: then the line is about all of them, however likely they are."""
        return all(
            {one.id for one in _known(over)[0]} >= {*self.worlds.of} for over in every(self.relation, syntax.Over)
        )

    def condition(self, constraint: MechanismConstraint) -> Condition:
        """The line as sums over the table, one for each joint value of what it is given.

        Raises: Failure PS0502 where it is not linear in averages, PS0401 where they are over data without a law.
        """
        rows, sums, constants = range(len(self.worlds.rows)), list[Costs](), list[Fraction]()
        overs = list(every(self.relation, syntax.Over))
        named = {one.id: one.span for over in overs for one in _known(over)[0]}
        values = {name: [_value(self.scene, name, r, span) for r in rows] for name, span in named.items()}
        for joint in dict.fromkeys(zip(*values.values(), strict=True) if values else [()]):
            known = dict(zip(values, joint, strict=True))
            alike = [r for r in rows if all(values[name][r] == value for name, value in known.items())]
            left, right = (self._sum(side, values, known, alike) for side in (self.relation.left, self.relation.right))
            if left is None or right is None:
                continue  # a joint value that nobody has
            sign = -1 if self.relation.op == ">=" else 1
            sums.append(sign * (left[0] - right[0]))
            constants.append(sign * (left[1] - right[1]))
        if not sums:
            raise Failure("PS0323", self.relation.span, "nobody has the values that this line is given")
        shape = len(sums), sums[0].size
        grid = exact_grid([entry for one in sums for entry in one.ravel().tolist()], shape)
        whole = exact_grid(constants, (len(constants),))
        return Condition(constraint.line, constraint.text, self.relation.op == "=", None, (), whole, grid)

    def _sum(
        self, expr: syntax.Expr, values: Mapping[str, list[object]], known: Mapping[str, object], alike: list[int]
    ) -> tuple[Costs, Fraction] | None:
        """Weights of the table, and a constant; None where nobody has such values."""
        none: Costs = np.full((len(self.worlds.rows), len(self.worlds.columns)), Fraction(0), dtype=object)
        match expr:
            case syntax.Over(operator="E"):
                shares, cost = self._shares(expr, values, known), costs(expr.body, self.scene, self.worlds)
                return None if shares is None else (cost * shares[:, None], Fraction(0))
            case syntax.Binary(op="+" | "-"):
                one, other = (self._sum(side, values, known, alike) for side in (expr.left, expr.right))
                if one is None or other is None:
                    return None
                sign = 1 if expr.op == "+" else -1
                return one[0] + sign * other[0], one[1] + sign * other[1]
            case syntax.Negate():
                found = self._sum(expr.operand, values, known, alike)
                return None if found is None else (-found[0], -found[1])
            case syntax.Binary(op="*" | "/"):
                first, second = expr.left, expr.right
                if any(every(second, syntax.Over)):
                    first, second = second, first
                found = self._sum(first, values, known, alike)
                if any(every(second, syntax.Over)) or found is None or (expr.op == "/" and first is expr.right):
                    return None if found is None else self._other(expr)
                factor = self._certain(second, alike)
                factor = 1 / factor if expr.op == "/" and factor else factor
                return found[0] * factor, found[1] * factor
        if any(every(expr, syntax.Over)):
            return self._other(expr)
        return none, self._certain(expr, alike)

    def _other(self, expr: syntax.Expr) -> NoReturn:
        text = "solve takes sums and public multiples of averages that are given several values"
        hint = "as in E[d | a, b] = E[d | a], or E[d | score = 0] <= E[d | score = 5]"
        raise Failure("PS0502", expr.span, text, help=hint)

    def _certain(self, expr: syntax.Expr, alike: list[int]) -> Fraction:
        """A number that is the same for all who agree in what averages are given."""
        grid = self.scene.of(expr)
        found = {grid.value(r, 0) for r in alike}
        if len(found) > 1 or grid.shape or grid.data.shape[1] > 1:
            raise Failure("PS0502", expr.span, "this differs among those who agree in what the averages are given")
        (value,) = found
        if not isinstance(value, Fraction):
            raise Failure("PS0208", expr.span, "a number is expected here")
        return value

    def _shares(
        self, over: syntax.Over, values: Mapping[str, list[object]], known: Mapping[str, object]
    ) -> Costs | None:
        """The law of the rows given what an average is given; None where nobody has it."""
        names, fixed = _known(over)
        rows = range(len(self.worlds.rows))
        held = [r for r in rows if all(values[name.id][r] == known[name.id] for name in names)]
        for name, value in fixed:
            wanted = {key(one) for one in evaluate(value, self.scene.known)}  # type: ignore[union-attr]
            held = [r for r in held if _value(self.scene, name.id, r, name.span) in wanted]
        prior = self.worlds.prior
        if prior is None and len(held) > 1:
            hint = "add a law of all data, such as (a, b) ~ categorical([[0.3, 0.2], [0.1, 0.4]])"
            raise Failure("PS0401", over.span, "this average is over data without a model", help=hint)
        weights = {r: Fraction(1) if prior is None or self.of_all_data else prior[r] for r in held}
        whole = sum(weights.values(), Fraction(0))
        if not whole:
            return None
        found: Costs = np.array([weights.get(r, Fraction(0)) / whole for r in rows], dtype=object)
        return found


def _known(over: syntax.Over) -> tuple[list[syntax.Name], list[tuple[syntax.Name, syntax.Expr]]]:
    """What an average is given: names, and names with a value.

    Raises: Failure PS0502 for anything but names.
    """
    given = over.given
    items = given.items if isinstance(given, syntax.TupleOf) else () if given is None else (given,)
    names, fixed = list[syntax.Name](), list[tuple[syntax.Name, syntax.Expr]]()
    for item in items:
        match item:
            case syntax.Name():
                names.append(item)
            case syntax.Known(name=name, value=value):
                fixed.append((name, value))
            case _:
                text = "an average is given names, and values that they have"
                raise Failure("PS0502", item.span, text, help="as in E[d | a, b = 1]")
    return names, fixed


def mass_name(law: str, value: Symbol) -> str:
    """The scalar that holds the mass of a value of a law."""
    return f"{law}:{show(value)}"


PLAIN = "write E[ ... ] <= 4 or worst[ ... ] <= 4, without `for` and `with probability`"
"""The accuracy lines that tables take."""


def accuracy(target: AccuracyTarget, scene: Pointwise, worlds: Worlds) -> Limit:
    """E[e] <= c, or worst[e] <= c.

    Raises: Failure PS0501 for other forms and for more than one worst case.
    """
    written = target.target
    if written.variable is not None or written.probability is not None:
        raise Failure("PS0501", written.span, "solve cannot compute this accuracy line for tables", help=PLAIN)
    limit = public_number(written.right, worlds.model)
    return Limit(target.line, target.text, amount(written.left, scene, worlds, worst_cases=1), limit)


# --- debiased estimates ---------------------------------------------------------------------------

_ALPHAS = (Fraction(3, 7), Fraction(5, 11), Fraction(13, 17))
"""Trial values: rational functions that agree at so many scattered points are taken to be equal."""


def chosen_in_loss(model: Model) -> tuple[str, ...]:
    """The `choose` variables that some average or worst case of the loss depends on."""
    if model.loss is None:
        return ()
    overs = every(model.loss, syntax.Over)
    found = reached((name for node in overs for name in names_used(node)), model.uses)
    return tuple(node.name for node in model.choices if node.name in found)


def estimates(conditions: Conditions, lines: Sequence[Condition]) -> tuple[Estimates, Fraction]:
    """The estimates of a spec whose loss depends on what is chosen, and what is added to their errors.

    With conditions E[g_k(z) | x] = alpha t_k(x) + s_k, where alpha and the background moments s_k are chosen, the
    value (g_k(z) - s_k) / alpha is an unbiased estimate of t_k(x).
    Raises: Failure PS0502 if the loss is no sum of weighted squared errors of such estimates.
    """
    worlds, model = conditions.worlds, conditions.worlds.model
    assert model.loss is not None
    if worlds.prior is None:
        text = "this average is over data without a model"
        hint = f"add a model: {worlds.of[0]} ~ uniform"
        if all(one.operator == "worst" for one in every(model.loss, syntax.Over)):
            text = "a loss that depends on what is chosen is averaged over a model of the data"
            hint = f"write E[ ... ] in place of worst, and under background {worlds.of[0]} ~ uniform"
        raise Failure("PS0401", model.loss.span, text, help=hint)
    given = [c for c in model.choices if not isinstance(c.domain, Law)]
    laws = [c for c in model.choices if isinstance(c.domain, Law)]
    if len(given) != 1 or len(laws) > 1 or not model.constraints:
        raise _other_form(model.loss.span)
    alpha = given[0]
    low, high = alpha.domain.bounds if alpha.domain is not None else (None, None)
    if low is None or high is None or low < 0 or high > 1:
        raise Failure("PS0502", alpha.span, f"solve takes {alpha.name} between 0 and 1", help=f"{alpha.name} in (0, 1]")
    law = laws[0].name if laws else None
    moments = []
    for line, constraint in zip(lines, model.constraints, strict=True):
        found = line.moment(alpha.name)
        if found is None:
            name = alpha.name
            message = (
                f"where the loss depends on {name}, conditions read "
                f"E[g(z) | x] = {name} * t(x) + (1 - {name}) * E[h(B)], or a number in place of E[h(B)]"
            )
            raise Failure("PS0502", constraint.relation.span, message)
        moments.append(found)
    weights = [Fraction(0)] * len(moments)
    for weight, error in _squares(worlds):
        k = _matching(error, moments, worlds, alpha.name, law)
        if k is None:
            raise _other_form(error.span)
        weights[k] += weight
    constant = sum((term for term in terms(model.loss, model) if isinstance(term, Fraction)), Fraction(0))
    return Estimates(alpha.name, tuple(weights)), constant


def _other_form(span: Span) -> Failure:
    message = (
        "this loss depends on what is chosen, and is no squared error of an estimate that conditions make unbiased"
    )
    hint = "E[z | x] = alpha * x + (1 - alpha) * E[B] goes with estimate = (z - (1 - alpha) * E[B]) / alpha"
    return Failure("PS0502", span, message, help=hint)


def _squares(worlds: Worlds) -> Iterator[tuple[Fraction, syntax.Expr]]:
    """The loss as weights and errors that are squared."""
    assert worlds.model.loss is not None
    for term in terms(worlds.model.loss, worlds.model):
        match term:
            case Term(operator="E"):
                for weight, error in multiples(term.body, worlds.model, term.weight):
                    match error:
                        case syntax.Binary(op="^", left=inner, right=power) if (
                            weight > 0 and public(power, worlds.model) and public_number(power, worlds.model) == 2
                        ):
                            yield weight, inner
                        case _:
                            raise _other_form(error.span)
            case Chosen() | Term():
                raise _other_form(worlds.model.loss.span)


def _matching(error: syntax.Expr, moments: list[Moment], worlds: Worlds, alpha: str, law: str | None) -> int | None:
    """The moment whose debiased estimate this is the error of, up to its sign."""
    left = set(range(len(moments)))
    for trial, value in enumerate(_ALPHAS):
        masses = _trial_masses(worlds, law, trial)
        grid = worlds.pointwise({alpha: value}, {law: masses} if law is not None else {}).of(error)
        found = grid.spread(len(worlds.rows), len(worlds.columns))
        if found.ndim != 2:
            return None
        for k in tuple(left):
            shift = sum((1 - value) * p * moments[k].h.get(mass_name(law or "", v), 0) for v, p in masses.items())
            g, t = (np.array(part, dtype=object) for part in (moments[k].g, moments[k].t))
            expected = (g[None, :] - shift) / value - t[:, None]
            if not (np.all(found == expected) or np.all(found == -expected)):
                left.discard(k)
    return min(left, default=None)


def _trial_masses(worlds: Worlds, law: str | None, trial: int) -> dict[Symbol, Fraction]:
    """A law in general position."""
    domain = worlds.model.nodes[law].domain if law is not None else None
    if not isinstance(domain, Law):
        return {}
    weights = {value: Fraction(pow(3 + trial, i + 1, 101)) for i, value in enumerate(domain.over.elements())}
    total = sum(weights.values(), Fraction(0))
    return {value: weight / total for value, weight in weights.items()}


# --- fairness -------------------------------------------------------------------------------------


def fairness(worlds: Worlds, scene: Pointwise) -> Iterator[Fairness]:
    """The laws that each fairness line compares.

    Raises: Failure PS0501 for predictive parity, PS0401 where the law of the other inputs within a group is not known.
    """
    for line in worlds.model.fairness:
        if isinstance(line, IndependenceRequirement):
            yield _independent(line, worlds, scene)
        else:
            yield _lipschitz(line, worlds)


def _independent(line: IndependenceRequirement, worlds: Worlds, scene: Pointwise) -> Fairness:
    _refuse_conditions_on_outputs(line, worlds)
    tolerance = Fraction(0) if line.tolerance is None else public_number(line.tolerance, worlds.model)
    groups: list[tuple[int, ...]] = []
    pairs: list[int] = []
    for rows in _strata(line, worlds, scene):
        found = _split_rows(rows, [_value(scene, line.of, r, line.span) for r in rows])
        laws = [tuple(group) for group in found if _populated(group, worlds, line)]
        first = len(groups)
        groups += laws
        for i, j in combinations(range(first, len(groups)), 2):
            pairs += (i, j, 0)
    return Fairness(line.line, line.text, line.subjects, tuple(groups), _whole(pairs), (tolerance**2,), (tolerance,))


def _whole(triples: Sequence[int]) -> Grid:
    return Grid((len(triples) // 3, 3), Fraction(1), tuple(triples))


_GROUPS = "write `O is independent of group`, where O is drawn and `group` is known of people"


def _refuse_conditions_on_outputs(line: IndependenceRequirement, worlds: Worlds) -> None:
    """Lines that are not linear in the table.

    Raises: Failure PS0501.
    """
    nodes = worlds.model.nodes
    drawn = {name for name, node in nodes.items() if node.kind is VariableKind.OUTPUT}
    subjects, of = ", ".join(line.subjects), line.of
    if drawn & {line.given, *line.further}:
        message = (
            f"solve cannot compute predictive parity: what is true of those who get one {line.given} is a quotient of "
            "probabilities, which is not linear in the table"
        )
        hint = f"equalised odds can be computed: {line.given} is independent of {of} given {subjects}"
        raise Failure("PS0501", line.span, message, help=hint)
    if of in drawn and not drawn & set(line.subjects):
        message = f"solve takes the law of an output in groups of people, not of people in groups of {of}"
        hint = f"independence goes both ways: {of} is independent of {subjects}"
        raise Failure("PS0501", line.span, message, help=hint)
    if of in drawn or not set(line.subjects) <= drawn:
        raise Failure(
            "PS0501", line.span, "solve takes fairness of outputs between groups of people only", help=_GROUPS
        )
    people = next((name for name in line.people if name in nodes and nodes[name].index is not None), None)
    if people is not None:
        message = f"solve cannot compare the people of {nodes[people].index}, each with one row of {people}"
        raise Failure("PS0501", line.span, message, help="write the spec of one person")


def _strata(line: IndependenceRequirement, worlds: Worlds, scene: Pointwise) -> Iterator[Sequence[int]]:
    """Rows by the value of what is given.

    Raises: Failure PS0323 if it never has the value asked for.
    """
    every = range(len(worlds.rows))
    if line.given is None:
        yield every
        return
    if line.further:
        names = line.given, *line.further
        yield from _split_rows(every, [tuple(_value(scene, name, r, line.span) for name in names) for r in every])
        return
    values = [_value(scene, line.given, r, line.span) for r in every]
    if line.equals is None:
        yield from _split_rows(every, values)
        return
    wanted = key(line.equals)
    chosen = [r for r in every if values[r] == wanted]
    if not chosen:
        raise Failure("PS0323", line.span, f"{line.given} never takes this value")
    yield chosen


def _value(scene: Pointwise, name: str, row: int, span: Span) -> object:
    return key(scene.node(name, span).value(row, 0))


def _split_rows(rows: Sequence[int], values: Sequence[object]) -> Iterator[list[int]]:
    for value in dict.fromkeys(values):
        yield [r for r, v in zip(rows, values, strict=True) if v == value]


def _populated(rows: Sequence[int], worlds: Worlds, line: IndependenceRequirement) -> bool:
    """Whether the data model says that somebody belongs to a group.

    Raises: Failure PS0401 if its people differ, and there is no data model.
    """
    if len(rows) == 1:
        return True
    if worlds.prior is None:
        others = [name for name in worlds.of if name not in line.people] or [line.of]
        law = f"({line.of}, {others[0]}) ~ categorical([[0.3, 0.2], [0.1, 0.4]])"
        given = f"{', '.join(line.subjects)} is independent of {line.of} given {others[0]}"
        message = f"people with one value of {line.of} differ in {listing(others)}, for which there is no data model"
        hint = f"add a law such as {law}, or compare people who agree: {given}"
        raise Failure("PS0401", line.span, message, help=hint)
    return any(worlds.prior[r] for r in rows)


def _lipschitz(line: Requirement, worlds: Worlds) -> Fairness:
    measure = line.measure
    if not isinstance(measure, MeasureAt) or not measure.of.fairness:
        message = f"solve cannot compute {measure.name} as fairness"
        raise Failure("PS0501", line.span, message, help=f"write 1-{LIPSCHITZ.word}")
    (constant,) = measure.values
    found = worlds.neighbours(line)
    squares = tuple(constant**2 * square for square in found.squares)
    groups = tuple((row,) for row in range(len(worlds.rows)))
    pairs = _whole(found.joined.ravel().tolist())
    tolerances = tuple(constant * root(square) for square in found.squares)
    return Fairness(line.line, line.text, line.outputs, groups, pairs, squares, tolerances)


# --- what a lie can bring a voter -----------------------------------------------------------------

FUNCTION = "manipulation"


def is_manipulation(expr: syntax.Node) -> bool:
    """Whether it is what a lie can bring."""
    return isinstance(expr, syntax.Call) and expr.function == FUNCTION


def manipulation(target: AccuracyTarget, worlds: Worlds) -> Manipulation:
    """A bound on what a lie can bring a voter, `manipulation(O, vote) <= c`.

    Raises: Failure PS0501 for tables of anything but votes.
    """
    written = target.target.left
    assert isinstance(written, syntax.Call)
    winner, votes = written.arguments
    found = None
    if isinstance(votes, syntax.Name) and winner == syntax.Name(worlds.releases[0]):
        found = _electorate(worlds, votes.id)
    if found is None:
        message = "solve bounds manipulation for tables whose rows are counts of ballots only"
        hint = "as in manipulation(O, vote) with the output O in the alternatives of vote[voter]"
        raise Failure("PS0501", written.span, message, help=hint)
    space, alternatives, ballots, winners = found
    counts = Grid((space.size, len(ballots)), Fraction(1), tuple(n for row in space.counts for n in row))
    limit = public_number(target.target.right, worlds.model)
    return Manipulation(target.line, target.text, limit, alternatives, ballots, counts, winners)


def _electorate(worlds: Worlds, votes: str) -> tuple[Counted, int, tuple[tuple[int, ...], ...], tuple[int, ...]] | None:
    """The votes of a table whose rows are counts of one input's ballots; None for other tables."""
    if worlds.computed or len(worlds.spaces) != 1 or len(worlds.releases) != 1:
        return None
    (space,) = worlds.spaces
    domain = space.node.domain
    if not isinstance(space, Counted) or space.node.index is None or space.node.name != votes:
        return None
    match domain:
        case FiniteSet(items=items):
            alternatives, orders = items, [(item,) for item in items]
        case RankingOf(alternatives=alternatives) | PartialRankingOf(alternatives=alternatives):
            orders = [tuple(key(item)) for item in space.items]
        case _:
            return None
    number = {alternative: a for a, alternative in enumerate(alternatives)}
    drawn = [key(column[0]) for column in worlds.columns]
    if not all(isinstance(value, str | Fraction) and value in number for value in drawn):
        return None
    ballots = tuple(tuple(number[a] for a in order) for order in orders)
    return space, len(alternatives), ballots, tuple(number[value] for value in drawn)
