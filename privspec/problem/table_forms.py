"""The forms of a table: rows, columns, the rows compared, and what the loss and the lines say of Pr(column | row).

Rows, columns, scalars and lines are numbered from 0. The masses of a chosen law B are scalars named `B:<label>`: of a
law with the weight alpha they are (1 - alpha) Pr(B = label), else Pr(B = label).
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, ClassVar

from privspec.core.records import dataclass
from privspec.model.values import readable
from privspec.problem.form import Numbers


@dataclass(frozen=True, slots=True)
class Variation:
    """`weight` times the total variation, row by row, between what is drawn and a law of the row.

    `values`: the number of the value drawn, by column; `laws`: of each row, the chances of the values.
    """

    weight: Fraction
    values: tuple[int, ...]
    laws: tuple[Numbers, ...]


@dataclass(frozen=True, slots=True)
class Worst:
    """`weight` times the largest, over rows, of the average of `costs` (rows, columns) and of total variations."""

    weight: Fraction
    costs: Numbers
    variations: tuple[Variation, ...]


@dataclass(frozen=True, slots=True)
class Price:
    """`weight` times a chosen number."""

    name: str
    weight: Fraction


@dataclass(frozen=True, slots=True)
class Amount:
    """A sum of averages, worst cases, prices of chosen numbers and a constant.

    The averages are over rows (by their prior) and draws: of `average` (rows, columns), and of total variations.
    """

    average: Numbers | None
    variations: tuple[Variation, ...]
    worst: tuple[Worst, ...]
    prices: tuple[Price, ...]
    constant: Fraction

    @property
    def only_worst(self) -> bool:
        """Whether it is one worst case, and perhaps a constant."""
        return self.average is None and not self.variations and not self.prices and len(self.worst) == 1


@dataclass(frozen=True, slots=True)
class Estimates:
    """A further loss: the average of sum_k weights_k ((g_k - s_k) / alpha - t_k)^2.

    Condition k reads E[g_k | row] - alpha t_k(row) - s_k = 0, where s_k is the sum of its masses (Ramon & Basu 3.3).
    """

    alpha: str
    weights: tuple[Fraction, ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """The rows that an obligation compares, both ways: every two of a clique, and `pairs` (n, 3) as a < b and a level.

    `squares`: by level the square of the distance, exactly; pairs of cliques are at distance one. `inputs`: how many
    values the inputs of the line take (for conditions on single outputs).
    """

    cliques: tuple[tuple[int, ...], ...]
    pairs: Numbers
    squares: tuple[Fraction, ...]
    inputs: int


@dataclass(frozen=True, slots=True)
class Scaled:
    """A scalar times a number by row."""

    name: str
    values: Numbers


@dataclass(frozen=True, slots=True)
class Condition:
    """What is together 0 at every row, or at most 0.

    The average of `average` (rows, columns), the sum of `scalars` (rows,) times what they name, and `constant` (rows,).
    """

    line: int
    text: str
    equality: bool
    average: Numbers | None
    scalars: tuple[Scaled, ...]
    constant: Numbers


@dataclass(frozen=True, slots=True)
class Accuracy:
    """An amount that is at most `limit`."""

    line: int
    text: str
    amount: Amount
    limit: Fraction


@dataclass(frozen=True, slots=True)
class Manipulation:
    """No ballot but the true one raises the probability of any set of best alternatives by more than `limit`.

    `ballots`: for each, the alternatives that it names, best first; one that names as many as a ballot may does not say
    in which order the others come, one that names fewer says that they are alike. `counts` (rows, ballots) how often
    each is cast, `winners` the alternative of each column, of `alternatives` many.
    """

    line: int
    text: str
    limit: Fraction
    alternatives: int
    ballots: tuple[tuple[int, ...], ...]
    counts: Numbers
    winners: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Fairness:
    """Laws of `outputs` in groups of rows (each by the prior of its rows), compared in total variation.

    `pairs` (n, 3): two groups and a level; by level `squares` holds the square of what they may be apart, exactly, and
    `tolerances` that number itself, rounded down where it is irrational.
    """

    line: int
    text: str
    outputs: tuple[str, ...]
    groups: tuple[tuple[int, ...], ...]
    pairs: Numbers
    squares: tuple[Fraction, ...]
    tolerances: tuple[Fraction, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """A number that is chosen between two ends."""

    name: str
    low: Fraction
    high: Fraction
    low_open: bool
    high_open: bool


@dataclass(frozen=True, slots=True)
class ChosenLaw:
    """A law that is chosen, over values by their labels; `weight` the chosen number alpha that it stands beside."""

    name: str
    labels: tuple[str, ...]
    weight: str | None


@dataclass(frozen=True, slots=True)
class Rounds:
    """So many rounds share a budget: each may spend one part of it."""

    count: int
    budget: Fraction


@dataclass(frozen=True, slots=True)
class Table:
    """Outputs that are drawn from a table Pr(column | row).

    `of`: what picks the row; `counted`: inputs that are held as counts of their values; `rows`, `columns`: labels;
    `places`: for each output the number of its value, by column; `prior` (rows,) the law of rows, None without one.
    `compared`: one for each obligation, in order. `expression`: the loss as it is written.
    """

    FORM: ClassVar[str] = "table"

    outputs: tuple[str, ...]
    of: tuple[str, ...]
    counted: tuple[str, ...]
    rows: tuple[Any, ...]
    columns: tuple[Any, ...]
    places: tuple[tuple[int, ...], ...]
    prior: Numbers | None
    compared: tuple[Compared, ...]
    expression: str
    loss: Amount
    estimates: Estimates | None
    conditions: tuple[Condition, ...]
    accuracy: tuple[Accuracy, ...]
    manipulation: tuple[Manipulation, ...]
    fairness: tuple[Fairness, ...]
    choices: tuple[Choice, ...]
    laws: tuple[ChosenLaw, ...]
    rounds: Rounds | None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.rows), len(self.columns)

    def words(self) -> tuple[str, ...]:
        return tuple(_words(self))


def _words(table: Table) -> Iterator[str]:
    rows, columns = table.shape
    drawn, of = " and ".join(table.outputs), " and ".join(table.of)
    yield f"{drawn}: drawn from a table with {rows} rows (values of {of}) and {columns} columns."
    for name in table.counted:
        yield f"Of {name} it counts how often each value stands in it, and not where."
    if table.prior is not None:
        yield f"Losses average over a law of the {rows} rows, which no guarantee rests on."
    for number, one in enumerate(table.compared, 1):
        pairs = sum(len(clique) * (len(clique) - 1) // 2 for clique in one.cliques) + one.pairs.shape[0]
        apart = f", at {len(one.squares)} different distances" if len(one.squares) > 1 else ""
        yield f"Requirement {number} compares {pairs} pairs of rows{apart}."
    yield f"The loss is {_amount_words(table.loss, estimated=table.estimates is not None)}."
    for condition in table.conditions:
        yield f"Line {condition.line} holds at every row: {condition.text}."
    bounds = [(one.line, one.limit, one.text) for one in table.accuracy]
    bounds += [(one.line, one.limit, one.text) for one in table.manipulation]
    for number, limit, text in bounds:
        yield f"Line {number} holds with the limit {readable(limit)}: {text}."
    for fair in table.fairness:
        yield f"Line {fair.line} compares the laws of {len(fair.groups)} groups of rows: {fair.text}."
    for choice in table.choices:
        left, right = "(" if choice.low_open else "[", ")" if choice.high_open else "]"
        yield f"{choice.name} is chosen from {left}{readable(choice.low)}, {readable(choice.high)}{right}."
    for law in table.laws:
        yield f"{law.name} is a law over {', '.join(law.labels)} that is chosen."
    if table.rounds is not None:
        yield f"{table.rounds.count} rounds share a budget of {readable(table.rounds.budget)}."


def _amount_words(amount: Amount, *, estimated: bool) -> str:
    parts = ["the average cost of a draw"] if amount.average is not None else []
    parts += [f"{readable(one.weight)} times an average total variation" for one in amount.variations]
    parts += [f"{readable(worst.weight)} times the average cost in the worst row" for worst in amount.worst]
    parts += [f"{readable(price.weight)} times {price.name}" for price in amount.prices]
    parts += ["the squared errors of estimates that conditions make unbiased"] if estimated else []
    parts += [readable(amount.constant)] if amount.constant or not parts else []
    return " plus ".join(parts)
