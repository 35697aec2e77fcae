"""Random small finite specs: the plan's table meets every line exactly and is the optimum of a plain program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import comb, inf
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from .tables import Found, Line, Plain, Ratio, close, compiled, every_pair, hamming, numbers, powers, spec

EPSILONS = st.sampled_from([Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(7, 4), Fraction(4)])
DELTAS = st.sampled_from([Fraction(0), Fraction(1, 1000), Fraction(1, 20), Fraction(3, 10)])


def decimal(value: Fraction) -> str:
    """As a spec writes a number with few digits."""
    return str(float(value))


def matrix(draw: st.DrawFn, rows: int, columns: int) -> list[list[int]]:
    line = st.lists(st.integers(-3, 9), min_size=columns, max_size=columns)
    return draw(st.lists(line, min_size=rows, max_size=rows))


def weights(draw: st.DrawFn, count: int) -> list[int]:
    found = draw(st.lists(st.integers(0, 5), min_size=count, max_size=count))
    assume(sum(found))
    return found


@dataclass(frozen=True)
class Drawn:
    """A spec as text (with epsilon as a parameter), and by hand."""

    text: str
    plain: Plain

    def with_more(self, factor: Fraction) -> Found:
        """The plan at `factor` times the epsilon."""
        epsilon = Fraction(self.plain.ratios[0].epsilon) * factor
        return compiled(self.text, epsilon=decimal(epsilon))


def losses(draw: st.DrawFn, at: str, cost: Callable[..., Any], prior: list[Fraction]) -> tuple[str, dict[str, Any]]:
    """A loss in words and by hand: an average, a worst case, or both."""
    kind = draw(st.sampled_from(["average", "worst", "both"]))
    if kind == "average":
        return f"E[ {at} ]", {"cost": cost, "prior": prior}
    if kind == "worst":
        return f"worst[ {at} ]", {"cost": None, "worst": [(1, cost)]}
    weight = draw(st.sampled_from([Fraction(1, 2), Fraction(3)]))
    return f"E[ {at} ] + {decimal(weight)} * worst[ {at} ]", {"cost": cost, "prior": prior, "worst": [(weight, cost)]}


@st.composite
def reports(draw: st.DrawFn) -> Drawn:
    """One person's report of one of a few values."""
    count, width, low = draw(st.integers(1, 5)), draw(st.integers(1, 5)), draw(st.integers(-2, 3))
    table = matrix(draw, count, width)
    masses = weights(draw, count)
    prior = [Fraction(w, sum(masses)) for w in masses]
    rows, columns = numbers(low, low + count - 1), numbers(1, width)
    cost = lambda x, z: Fraction(table[int(x) - low][int(z) - 1])  # noqa: E731
    loss, parts = losses(draw, f"C[x - ({low}) + 1, z]", cost, prior)
    epsilon, delta = draw(EPSILONS), draw(DELTAS)
    kind = draw(st.sampled_from(["pure", "delta", "metric", "two"]))
    ratio = Ratio(every_pair(rows), epsilon)
    away = replace(ratio, distance=lambda a, b: abs(Fraction(a) - Fraction(b)))
    privacy, ratios = {
        "pure": ("z is epsilon-LDP wrt x", [ratio]),
        "delta": (f"z is (epsilon, {decimal(delta)})-LDP wrt x", [replace(ratio, delta=delta)]),
        "metric": ("z is epsilon-metric-DP wrt x, distance manhattan", [away]),
        "two": (
            f"z is epsilon-metric-DP wrt x, distance manhattan; z is (0.25, {decimal(delta)})-LDP wrt x",
            [away, Ratio(every_pair(rows), Fraction(1, 4), delta)],
        ),
    }[kind]
    text = spec(
        f"input x in {low}..{low + count - 1}; output z in 1..{width}",
        f"x ~ categorical({masses})",
        loss,
        privacy,
        parameters=f"epsilon = {decimal(epsilon)}; C = {table}",
    )
    return Drawn(text, Plain(rows, columns, ratios=ratios, **parts))


@pytest.mark.parametrize("examples", [12, pytest.param(40, marks=pytest.mark.slow)])
def test_reports(examples: int) -> None:
    @settings(max_examples=examples)
    @given(reports())
    def holds(drawn: Drawn) -> None:
        found = compiled(drawn.text)
        drawn.plain.check(found)
        more = drawn.with_more(Fraction(3, 2))
        assert more.lower_bound <= found.loss
        assert more.loss <= found.loss + 1e-6 * max(abs(found.loss), 1e-3)

    holds()


@st.composite
def counts(draw: st.DrawFn) -> tuple[Drawn, Plain]:
    """A count of up to four people: over counts, and over all worlds."""
    n, width = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    table = matrix(draw, n + 1, width)
    share = draw(st.sampled_from([Fraction(0), Fraction(1, 5), Fraction(1, 2), Fraction(1)]))
    epsilon, delta = draw(EPSILONS), draw(DELTAS)
    group = draw(st.integers(1, 2))
    rows, columns = [(str(n - k), str(k)) for k in range(n + 1)], numbers(1, width)
    cost = lambda x, z: Fraction(table[int(x[1])][int(z) - 1])  # noqa: E731
    prior = [comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(n + 1)]
    loss, parts = losses(draw, "C[sum(x) + 1, z]", cost, prior)
    text = spec(
        f"input x in {{0, 1}}^{n}; output z in 1..{width}",
        f"x ~ bernoulli({decimal(share)})",
        loss,
        f"z is (epsilon, {decimal(delta)})-DP wrt x, replacing up to {group} records",
        parameters=f"epsilon = {decimal(epsilon)}; C = {table}",
    )
    pairs = close(rows, lambda a, b: abs(int(a[1]) - int(b[1])), group)
    plain = Plain(rows, columns, ratios=[Ratio(pairs, epsilon, delta)], **parts)
    worlds = powers(["0", "1"], n)
    of = lambda w: ("", str(w.count("1")))  # noqa: E731
    listed = Plain(
        worlds,
        columns,
        None if plain.cost is None else lambda w, z: cost(of(w), z),
        [share ** w.count("1") * (1 - share) ** w.count("0") for w in worlds] if plain.cost is not None else (),
        [Ratio(close(worlds, hamming, group), epsilon, delta)],
        worst=[(weight, lambda w, z: cost(of(w), z)) for weight, _ in plain.worst],
    )
    return Drawn(text, plain), listed


@pytest.mark.parametrize("examples", [8, pytest.param(25, marks=pytest.mark.slow)])
def test_counts(examples: int) -> None:
    @settings(max_examples=examples)
    @given(counts())
    def holds(case: tuple[Drawn, Plain]) -> None:
        drawn, listed = case
        found = compiled(drawn.text)
        drawn.plain.check(found)
        assert found.loss == pytest.approx(listed.least(), rel=1e-6, abs=1e-9)
        assert drawn.with_more(Fraction(2)).lower_bound <= found.loss

    holds()


@st.composite
def conditioned(draw: st.DrawFn) -> Drawn:
    """A report whose mean is bounded from both sides at every input, and groups that are treated alike."""
    count, width = draw(st.integers(2, 4)), draw(st.integers(2, 5))
    table = matrix(draw, 2 * count, width)
    masses = weights(draw, count)
    epsilon = draw(st.sampled_from([Fraction(1, 2), Fraction(1), Fraction(2)]))
    low = draw(st.integers(4, 4 * width - 1))
    high = draw(st.integers(low + 1, 4 * width))
    tolerance = draw(st.sampled_from([Fraction(0), Fraction(1, 20), Fraction(1, 4)]))
    rows = [(s, x) for s in ("1", "2") for x in numbers(1, count)]
    columns = numbers(1, width)
    cost = lambda r, z: Fraction(table[(int(r[0]) - 1) * count + int(r[1]) - 1][int(z) - 1])  # noqa: E731
    prior = [Fraction(w, 2 * sum(masses)) for _ in range(2) for w in masses]
    loss, parts = losses(draw, f"C[(s - 1) * {count} + x, z]", cost, prior)
    same_s = [(a, b) for a, b in every_pair(rows) if a[0] == b[0]]
    same_x = [(a, b) for a, b in every_pair(rows) if a[1] == b[1]]
    lines = [Line(lambda r, z, at=at: Fraction(z) * (r == at), Fraction(high, 4)) for at in rows]
    lines += [Line(lambda r, z, at=at: -Fraction(z) * (r == at), -Fraction(low, 4)) for at in rows]

    def parity(some: int) -> Line:
        """Over one set of columns, as bits."""
        inside = lambda z: bool(some >> int(z) - 1 & 1)  # noqa: E731
        share = lambda r: Fraction(masses[int(r[1]) - 1], sum(masses)) * (1 if r[0] == "1" else -1)  # noqa: E731
        return Line(lambda r, z: share(r) * inside(z), tolerance)

    lines += [parity(some) for some in range(1, 2**width - 1)]
    text = spec(
        f"input s in 1..2; input x in 1..{count}; output z in 1..{width}",
        f"s ~ uniform; x ~ categorical({masses}); E[z | (s, x)] <= {high / 4}; E[z | (s, x)] >= {low / 4}",
        loss,
        "z is epsilon-LDP wrt x; z is (0.5, 0.05)-LDP wrt s",
        parameters=f"epsilon = {decimal(epsilon)}; C = {table}",
        fairness="z is independent of s" + (f", up to {decimal(tolerance)}" if tolerance else ""),
    )
    ratios = [Ratio(same_s, epsilon), Ratio(same_x, Fraction(1, 2), Fraction(1, 20))]
    return Drawn(text, Plain(rows, columns, ratios=ratios, lines=lines, **parts))


@pytest.mark.parametrize("examples", [8, pytest.param(25, marks=pytest.mark.slow)])
def test_conditions_and_fairness(examples: int) -> None:
    @settings(max_examples=examples)
    @given(conditioned())
    def holds(drawn: Drawn) -> None:
        assert drawn.plain.least() < inf
        found = compiled(drawn.text)
        drawn.plain.check(found)
        assert drawn.with_more(Fraction(2)).lower_bound <= found.loss

    holds()


@st.composite
def observed(draw: st.DrawFn) -> Drawn:
    """Two outputs drawn together, seen one by one and both at once."""
    count = draw(st.integers(2, 4))
    one, two = matrix(draw, count, 2), matrix(draw, count, 3)
    masses = weights(draw, count)
    epsilon, delta = draw(EPSILONS), draw(DELTAS)
    rows, columns = numbers(1, count), [(a, b) for a in numbers(1, 2) for b in numbers(1, 3)]
    cost = lambda x, c: Fraction(one[int(x) - 1][int(c[0]) - 1] + two[int(x) - 1][int(c[1]) - 1])  # noqa: E731
    prior = [Fraction(w, sum(masses)) for w in masses]
    loss, parts = losses(draw, "A[x, a] + B[x, b]", cost, prior)
    text = spec(
        f"input x in 1..{count}; output a in 1..2; output b in 1..3",
        f"x ~ categorical({masses})",
        loss,
        f"(a, b) is epsilon-DP wrt x, seen by A; a is 0.25-DP wrt x, seen by B; "
        f"b is (0.1, {decimal(delta)})-DP wrt x, seen by C",
        parameters=f"epsilon = {decimal(epsilon)}; A = {one}; B = {two}",
    )
    ratios = [
        Ratio(every_pair(rows), epsilon),
        Ratio(every_pair(rows), Fraction(1, 4), seen=lambda c: c[0]),
        Ratio(every_pair(rows), Fraction(1, 10), delta, seen=lambda c: c[1]),
    ]
    return Drawn(text, Plain(rows, columns, ratios=ratios, **parts))


@pytest.mark.parametrize("examples", [8, pytest.param(25, marks=pytest.mark.slow)])
def test_observers(examples: int) -> None:
    @settings(max_examples=examples)
    @given(observed())
    def holds(drawn: Drawn) -> None:
        found = compiled(drawn.text)
        drawn.plain.check(found)
        assert drawn.with_more(Fraction(2)).lower_bound <= found.loss

    holds()
