"""Tables as the compiler finds them, and the same problems written down by hand as plain linear programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import inf, log
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from privspec.core.spans import Source
from privspec.families.decision import Infeasible, exposures_of, sealed
from privspec.families.family import Settings, compiler_of
from privspec.kernel import judge
from privspec.model.build import load_model

Label = Any
Row = Hashable
Column = Hashable


def ratio_below(epsilon: Fraction) -> Fraction:
    """A number below e^epsilon, by less than 1e-40 of it: decimal arithmetic, nothing of the compiler's."""
    digits = Context(prec=60)
    power = digits.exp(digits.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator)))
    return Fraction(power) * (1 - Fraction(1, 10**45))


# --- what the compiler finds ----------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """The plan document of a finite spec."""

    document: dict[str, Any]

    @property
    def mechanism(self) -> dict[str, Any]:
        return self.document["mechanism"]  # type: ignore[no-any-return]

    @property
    def block(self) -> dict[str, Any]:
        (found,) = self.document["problem"]["blocks"]
        return found  # type: ignore[no-any-return]

    @property
    def rows(self) -> list[Row]:
        return [hashable(label) for label in self.mechanism["inputs"]]

    @property
    def columns(self) -> list[Column]:
        return [hashable(label) for label in self.mechanism["outputs"]]

    @cached_property
    def table(self) -> list[list[Fraction]]:
        """Exact probabilities, in the order of the plan."""
        return [[Fraction(p) for p in row] for row in self.mechanism["probabilities"]]

    def chance(self, row: Row, column: Column) -> Fraction:
        return self.table[self.rows.index(row)][self.columns.index(column)]

    @property
    def floats(self) -> np.ndarray:
        return np.array([[float(p) for p in row] for row in self.table])

    @property
    def prior(self) -> list[Fraction] | None:
        listed = self.block["prior"]
        return None if listed is None else [n * Fraction(listed["unit"]) for n in listed["rows"]]

    @property
    def loss(self) -> float:
        return self.document["loss"]["value"]  # type: ignore[no-any-return]

    @property
    def lower_bound(self) -> float:
        return self.document["loss"]["lower_bound"]  # type: ignore[no-any-return]

    @property
    def scalars(self) -> dict[str, Fraction]:
        return {name: Fraction(value) for name, value in self.mechanism["scalars"].items()}

    def achieved(self, number: int = 0) -> dict[str, Fraction]:
        return {name: Fraction(v) for name, v in self.document["guarantees"][number]["achieved"].items()}


def hashable(label: Label) -> Hashable:
    return tuple(hashable(part) for part in label) if isinstance(label, list) else label


def decided(text: str, **parameters: Any) -> Any:
    """What the finite family says of a spec: a decision, or why there is none."""
    model = load_model(Source("test.priv", text), parameters=parameters)
    family = compiler_of(model)
    assert type(family).__name__ == "Finite"
    return family.decide(model, family.lower(model), Settings())


def compiled(text: str, **parameters: Any) -> Found:
    """The plan of a finite spec, as it is written and read back, with all that holds for every plan checked."""
    decision = decided(text, **parameters)
    assert not isinstance(decision, Infeasible), decision
    found = Found(json.loads(json.dumps(decision.document())))
    told = {key: value for key, value in found.document.items() if key != "digest"}
    told["exposures"] = exposures_of(found.document)
    report = judge(json.dumps(sealed(told)))
    assert report.ok, [f"{claim.name}: {claim.text}" for claim in report.failed]
    for row in found.table:
        assert sum(row) == 1
        assert min(row) >= 0
    # a gap that is relative to the loss says nothing where the loss is zero but for rounding
    assert found.document["status"] == "optimal" or abs(found.loss) < 1e-9
    assert found.lower_bound <= found.loss
    assert found.loss - found.lower_bound <= 1e-6 * max(abs(found.loss), 1e-3)
    if found.prior is not None:
        assert sum(found.prior) == 1
    return found


def spec(variables: str, background: str, loss: str, privacy: str, **sections: str) -> str:
    """A spec from its sections; `;` separates lines."""
    written = {"variables": variables, "background": background, "loss": loss, "privacy": privacy} | sections
    order = ("parameters", "parties", *written)
    return "\n".join(
        f"{name}:\n" + "\n".join(f"  {line.strip()}" for line in written[name].split(";"))
        for name in dict.fromkeys(order)
        if written.get(name)
    )


# --- the same by hand -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Ratio:
    """Pr(S | a) <= e^(epsilon d(a, b)) Pr(S | b) + delta for each pair, over what is seen of the columns."""

    pairs: Sequence[tuple[Row, Row]]
    epsilon: Fraction
    delta: Fraction = Fraction(0)
    seen: Callable[[Column], Hashable] = lambda column: column
    distance: Callable[[Row, Row], Any] = lambda a, b: 1

    def factor(self, pair: tuple[Row, Row]) -> Fraction:
        """e^(epsilon d) of a pair, rounded down."""
        return ratio_below(self.epsilon * Fraction(self.distance(*pair)))

    def groups(self, columns: Sequence[Column]) -> list[list[int]]:
        """Columns that look alike."""
        kinds = list(dict.fromkeys(self.seen(c) for c in columns))
        return [[i for i, c in enumerate(columns) if self.seen(c) == kind] for kind in kinds]


@dataclass(frozen=True)
class Line:
    """sum coefficient(row, column) f = bound, or <= bound."""

    coefficient: Callable[[Row, Column], Any]
    bound: Any
    equality: bool = False


@dataclass(frozen=True)
class Plain:
    """A problem by hand: rows, columns, costs, and what must hold; each row's law sums to one.

    `prior`: probabilities of the rows for `cost`; `worst`: weighted costs of which the largest average counts.
    """

    rows: Sequence[Row]
    columns: Sequence[Column]
    cost: Callable[[Row, Column], Any] | None
    prior: Sequence[Fraction] = ()
    ratios: Sequence[Ratio] = ()
    lines: Sequence[Line] = ()
    worst: Sequence[tuple[Any, Callable[[Row, Column], Any]]] = ()
    offset: Fraction = field(default=Fraction(0))

    def least(self) -> float:
        """The optimal loss by dense linear programming; infinite where nothing meets the lines."""
        n, m = len(self.rows), len(self.columns)
        slacks = [(r, pair) for r, ratio in enumerate(self.ratios) if ratio.delta for pair in ratio.pairs]
        groups = [ratio.groups(self.columns) for ratio in self.ratios]
        start, width = {}, n * m
        for r, pair in slacks:
            start[r, pair] = width
            width += len(groups[r])
        top = width
        width += len(self.worst)
        at = {row: i for i, row in enumerate(self.rows)}
        above, below, equal, values = [], [], [], []
        for i in range(n):
            line = np.zeros(width)
            line[i * m : (i + 1) * m] = 1
            equal.append(line)
            values.append(1.0)
        for r, ratio in enumerate(self.ratios):
            for pair in ratio.pairs:
                a, b = (at[row] for row in pair)
                factor = float(ratio.factor(pair))
                for g, group in enumerate(groups[r]):
                    line = np.zeros(width)
                    line[[a * m + c for c in group]] = 1
                    line[[b * m + c for c in group]] -= factor
                    if ratio.delta:
                        line[start[r, pair] + g] = -1
                    above.append(line)
                    below.append(0.0)
                if ratio.delta:
                    line = np.zeros(width)
                    line[start[r, pair] : start[r, pair] + len(groups[r])] = 1
                    above.append(line)
                    below.append(float(ratio.delta))
        for written in self.lines:
            line = np.zeros(width)
            line[: n * m] = [float(written.coefficient(x, z)) for x in self.rows for z in self.columns]
            (equal if written.equality else above).append(line)
            (values if written.equality else below).append(float(written.bound))
        objective = np.zeros(width)
        if self.cost is not None:
            pairs = zip(self.rows, self.prior, strict=True)
            objective[: n * m] = [float(p * self.cost(x, z)) for x, p in pairs for z in self.columns]
        for k, (weight, cost) in enumerate(self.worst):
            objective[top + k] = float(weight)
            for i, x in enumerate(self.rows):
                line = np.zeros(width)
                line[i * m : (i + 1) * m] = [float(cost(x, z)) for z in self.columns]
                line[top + k] = -1
                above.append(line)
                below.append(0.0)
        bounds = [(0, None)] * top + [(None, None)] * len(self.worst)
        found = linprog(objective, above or None, below or None, equal, values, bounds, method="highs")
        return float(found.fun + float(self.offset)) if found.status == 0 else inf

    def loss_of(self, found: Found) -> Fraction:
        """The loss of a table, by direct evaluation."""
        law = {x: dict(zip(found.columns, row, strict=True)) for x, row in zip(found.rows, found.table, strict=True)}
        total = Fraction(self.offset)
        if self.cost is not None:
            for x, p in zip(self.rows, self.prior, strict=True):
                total += p * sum((law[x][z] * self.cost(x, z) for z in self.columns), Fraction(0))
        for weight, cost in self.worst:
            total += weight * max(sum((law[x][z] * cost(x, z) for z in self.columns), Fraction(0)) for x in self.rows)
        return total

    def check(self, found: Found) -> None:
        """The table meets every line exactly, its loss is what the plan says, and no table has less."""
        assert set(found.rows) == set(self.rows)
        assert len(found.rows) == len(self.rows)
        assert found.columns == list(self.columns)
        for number, ratio in enumerate(self.ratios):
            assert worst_excess(found, ratio) <= ratio.delta
            claimed = found.achieved(number)
            if not ratio.pairs:
                assert claimed["epsilon"] == 0
            elif ratio.delta:
                assert claimed["epsilon"] == ratio.epsilon
                assert worst_excess(found, ratio) <= claimed["delta"] <= ratio.delta
            else:
                rates = [largest_log_ratio(found, ratio, p) / float(ratio.distance(*p)) for p in ratio.pairs]
                assert claimed["epsilon"] <= ratio.epsilon
                assert max(rates, default=0.0) == pytest.approx(float(claimed["epsilon"]), rel=1e-9, abs=1e-12)
        for line in self.lines:
            total = sum(
                (found.chance(x, z) * line.coefficient(x, z) for x in self.rows for z in self.columns), Fraction(0)
            )
            assert total == line.bound if line.equality else total <= line.bound
        exact = self.loss_of(found)
        assert found.loss == float(exact)
        best = self.least()
        scale = max(abs(best), 1e-3)
        assert abs(found.loss - best) <= 1e-6 * scale, (found.loss, best)
        assert found.lower_bound <= best + 1e-9 * scale


def masses(found: Found, ratio: Ratio, row: Row) -> list[Fraction]:
    line = found.table[found.rows.index(row)]
    return [sum((line[c] for c in group), Fraction(0)) for group in ratio.groups(found.columns)]


def worst_excess(found: Found, ratio: Ratio) -> Fraction:
    """The largest sum over what is seen of (Pr(. | a) - e^epsilon Pr(. | b))_+, rounded up."""
    worst = Fraction(0)
    for pair in ratio.pairs:
        factor = ratio.factor(pair)
        each = zip(*(masses(found, ratio, row) for row in pair), strict=True)
        worst = max(worst, sum((max(Fraction(0), p - factor * q) for p, q in each), Fraction(0)))
    return worst


def largest_log_ratio(found: Found, ratio: Ratio, pair: tuple[Row, Row]) -> float:
    pairs = list(zip(*(masses(found, ratio, row) for row in pair), strict=True))
    assert ratio.delta or all(q > 0 or p == 0 for p, q in pairs)
    return max((log(p / q) for p, q in pairs if p and q), default=0.0)


def every_pair(rows: Sequence[Row]) -> list[tuple[Row, Row]]:
    return [(a, b) for a in rows for b in rows if a != b]


def close(rows: Sequence[Any], apart: Callable[[Any, Any], Any], within: Any = 1) -> list[tuple[Any, Any]]:
    """Ordered pairs at most so far apart."""
    return [(a, b) for a in rows for b in rows if a != b and apart(a, b) <= within]


def hamming(a: Sequence[Any], b: Sequence[Any]) -> int:
    return sum(x != y for x, y in zip(a, b, strict=True))


def numbers(low: int, high: int) -> list[str]:
    return [str(k) for k in range(low, high + 1)]


def powers(items: Sequence[str], n: int) -> list[tuple[str, ...]]:
    return list(product(items, repeat=n))
