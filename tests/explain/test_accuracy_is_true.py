"""What pages say of errors is true of 200 simulated releases of made data that are cut and clipped by a tenth.

Each sentence about accuracy carries what it says for machines: a measure, sizes, and which way rules for data that do
not fit move each output. Every measure has its own check here, and one that has none fails. Seeds are fixed; a bound of
six standard errors is passed by chance once in 10^9 numbers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privspec.api import load
from privspec.execute import family
from privspec.execute.predicted import made_up
from privspec.explain.additive import AdditiveNoise
from privspec.explain.document import Accuracy
from privspec.explain.public import public_page
from privspec.explain.system import SystemFact
from privspec.explain.tables import _scene
from privspec.explain.voting_rules import examples
from privspec.manual import list_templates
from privspec.model.priors import law_of
from privspec.model.targets import environment, environment_of_computed, needed
from privspec.model.values import show
from privspec.noise.samplers import SimulationRandomness
from privspec.plan import Plan
from privspec.problem.fitting import Done, Way
from privspec.stated import Stated
from tests.plans import solved_text

from .plans import SPECS
from .releases import TIMES, Array, Case, Made, made, released, treated

FAR = 6.0
"""Standard errors."""
ROUNDED = 0.02
"""By so much of itself a figure of three digits may be off, with what is left of a lattice."""
REPORTS = 400

FOLDER = Path(__file__).parents[1] / "questions"
QUESTIONS = sorted(FOLDER.glob("*.priv"))
EXAMPLES = sorted((Path(__file__).parents[2] / "examples").rglob("*.priv"))
WITHOUT_A_PLAN = {"noothigattu_baseline", "personalised", "san_francisco"}
"""Nothing is promised, or files are needed that are made elsewhere."""
NAMES = *(t.name for t in list_templates()), *map(str, (*QUESTIONS, *EXAMPLES))
EVERY = [one for one in NAMES if Path(one).stem not in WITHOUT_A_PLAN]
FAST = ("visits_at_most_five_each", "total_pay")


# --- sums with noise ------------------------------------------------------------------------------


def far(mean: Array, spread: Array, count: int) -> Array:
    """How many standard errors averages are away from 0; rounding of floats counts as none."""
    size = np.maximum(spread / np.sqrt(count), 1e-9 * (1 + np.abs(mean)))
    return np.asarray(mean / size)


def deviation(case: Case, said: Accuracy, data: Made, folder: Path) -> None:
    """The root mean square of the noise, whatever is done with the data besides."""
    drawn = released(case, data)
    for name, least, most in said.sizes:
        pairs = drawn[name]
        squares = ((pairs[:, 0] - pairs[:, 1]) ** 2 / 2).mean(axis=1)
        error = FAR * squares.std() / np.sqrt(len(squares))
        assert squares.mean() + error >= (least * (1 - ROUNDED)) ** 2, name
        assert squares.mean() - error <= (most * (1 + ROUNDED)) ** 2, name


def mean(case: Case, said: Accuracy, data: Made, folder: Path) -> None:
    """Noise is 0 on average: what fits is released without bias."""
    if data.u is None or data.spoilt:
        return
    drawn = released(case, data)
    for name, *_ in said.sizes:
        errors = drawn[name].mean(axis=1) - data.truth(case, name)
        assert np.all(np.abs(far(errors.mean(axis=0), errors.std(axis=0), len(errors))) <= FAR), name


def simulated(case: Case, said: Accuracy, data: Made, folder: Path) -> None:
    """Errors of what is computed from noisy sums, at the made-up data that are named, by the noise as it is drawn."""
    if data.u is None or data.spoilt:
        return
    public, even = environment_of_computed(case.model), made_up(case.model)
    drawn = released(case, data)
    sources = {name for one in case.model.computed for name in one.sources}
    truth = {
        name: Made({}, even, {}).truth(case, name)
        for name in sorted(sources & drawn.keys())
        if name in case.model.nodes
    }
    shapes = {name: case.model.nodes[name].type.shape for name in truth}
    noise = {name: (drawn[name] - data.truth(case, name)).reshape(2 * case.times, -1) for name in truth}
    found: dict[str, list[Array]] = {name: [] for name, *_ in said.sizes}
    order = [one for one in case.model.computed if set(one.sources) <= set(truth)]

    def worked_out(values: Mapping[str, Array], *, moved: bool) -> dict[str, Array]:
        known = {name: value.reshape(shapes[name]) for name, value in values.items()}
        for one in order:
            known[one.name] = one.value(known, public, moved=moved)
        return known

    aims = worked_out(truth, moved=False)
    for place in range(2 * case.times):
        values = worked_out({name: truth[name] + noise[name][place] for name in truth}, moved=True)
        for name in found:
            found[name].append((values[name] - aims[name]).reshape(-1))
    for name, least, most in said.sizes:
        squares = np.array(found[name]) ** 2
        errors = FAR * squares.std(axis=0) / np.sqrt(len(squares))
        assert np.all(squares.mean(axis=0) + errors >= (least * (1 - 5 * ROUNDED)) ** 2), name
        assert np.all(squares.mean(axis=0) - errors <= (most * (1 + 5 * ROUNDED)) ** 2), name


def cut(case: Case, said: Accuracy, data: Made, folder: Path) -> None:
    """What the law of records a person lets expect to be cut."""
    if data.spoilt:
        return
    (law,), random = case.model.records, np.random.default_rng(7)
    block = case.model.block(law.table)
    laws = {one.subject.partition(".")[2]: one for one in case.model.models if one.subject.startswith(f"{law.table}.")}
    columns = []
    for name, domain in block.domain.attributes:  # type: ignore[attr-defined]
        values = list(domain.elements())
        chances = law_of(laws[name], values, environment(case.model))
        columns.append(([show(one) for one in values], np.array(chances, dtype=float)))
    chances = np.array(law.chances, dtype=float)
    errors: dict[str, list[Array]] = {name: [] for name, *_ in said.sizes}
    for place in range(TIMES):
        counts = random.choice(len(chances), size=law.people, p=chances / chances.sum())
        owners = np.repeat(np.arange(law.people), counts)
        cells = [random.choice(len(values), size=len(owners), p=p / p.sum()) for values, p in columns]
        rows = [
            f"p{one}," + ",".join(columns[j][0][cells[j][i]] for j in range(len(columns)))
            for i, one in enumerate(owners)
        ]
        path = folder / "law.csv"
        header = ",".join([law.person, *(name for name, _ in block.domain.attributes)])  # type: ignore[attr-defined]
        path.write_text("\n".join([header, *rows]) + "\n", "utf-8")
        u = np.zeros(case.model.size)
        flat = np.ravel_multi_index(cells, [len(values) for values, _ in columns])
        np.add.at(u, block.start + flat, 1.0)
        once = released(case, Made({law.table: path}, u, {}), place, 1)
        for name in errors:
            errors[name].append(once[name][0].mean(axis=0) - Made({}, u, {}).truth(case, name))
    for name, least, most in said.sizes:
        found = np.array(errors[name])
        size = FAR * found.std(axis=0) / np.sqrt(len(found))
        assert np.all(-found.mean(axis=0) + size >= least * (1 - ROUNDED))
        assert np.all(-found.mean(axis=0) - size <= most * (1 + ROUNDED))


# --- what rules do besides ------------------------------------------------------------------------


def check_ways(case: Case, data: Made, seen: set[Done], done: Done | None) -> None:
    """Data of which a tenth is treated in some ways move outputs as pages say, and no others.

    Args: done, what the data were made for; words that nobody listed may be left out besides.
    """
    said = {(done, name) for done, name in case.ways if done in seen}
    if data.u is None or not sums(case):
        assert seen <= {done for done, _ in said}, f"no page says what is {seen}"
        return
    drawn, low = released(case, data), []
    for name, pairs in drawn.items():
        if name not in sums(case):
            continue
        errors = pairs.mean(axis=1) - data.truth(case, name)
        away = far(errors.mean(axis=0), errors.std(axis=0), len(errors))
        ways = {case.ways[one] for one in said if one[1] == name}
        if not ways:
            assert np.all(np.abs(away) <= FAR), f"{name} is moved by what is {seen}, and no page says so"
        elif ways == {Way.LOW.value}:
            assert np.all(away <= FAR), name
            total = errors.sum(axis=1)
            low.append(float(far(total.mean(), total.std(), len(errors))))
        elif ways == {Way.HIGH.value}:
            assert np.all(away >= -FAR), name
    if low and seen == {Done.LEFT_OUT} == {done} and set(case.kept):
        assert min(low) < -FAR, "a tenth of all records was cut, and nothing shows it"


# --- reports, draws and votes ---------------------------------------------------------------------


def reports(case: Case, data: Made, name: str, times: int = 20, seed: int = 9) -> list[Any]:
    """Reports of the rows of a data set, so many times."""
    circumstances = family.RunContext(model=case.model, randomness=SimulationRandomness(5))
    secret = case.mechanism.read(data.files, circumstances)
    return [secret.draw(SimulationRandomness(seed * 100_000 + place)).outputs[name] for place in range(times)]


def rows_of(case: Case, name: str, values: list[list[str]], folder: Path) -> Made:
    """A file of such rows for one input."""
    columns = [name] if len(values[0]) == 1 else [f"{name}_{j + 1}" for j in range(len(values[0]))]
    path = folder / f"{name}.rows.csv"
    path.write_text("\n".join([",".join(columns), *(",".join(row) for row in values)]) + "\n", "utf-8")
    return Made({name: path}, None, {})


def within(share: float, count: int, least: float, most: float) -> bool:
    """Whether a share of so many is one that chances between these give."""
    error = FAR * np.sqrt(max(share * (1 - share), 1 / count) / count) + ROUNDED * max(most, 1e-3)
    return least - error <= share <= most + error


KINDS = "probability of a wrong answer|mean absolute error|mean distance|root mean square|probability"
MEASURE = re.compile(rf"({KINDS})(?: of (.+?))?(?: against (.+))?")


def table_of(case: Case, output: str) -> Any:
    """The table that an output is drawn from, that of a part of a system."""
    return next(one.table for one in drawn(case) if output in one.released)


def drawn(case: Case) -> list[Any]:
    """What is drawn: the parts of a system, or all of it."""
    whole = case.facts.mechanism
    return [one.mechanism for one in whole.parts] if isinstance(whole, SystemFact) else [whole]


def numbers(values: Any) -> Array:
    """Values as numbers (n, d)."""
    listed = [[float(Fraction(str(part))) for part in np.atleast_1d(np.asarray(one, dtype=object))] for one in values]
    return np.array(listed)


def size(apart: Array, norm: str) -> Array:
    order = {"l1": 1, "l2": 2, "linf": np.inf}[norm]
    return np.asarray(np.linalg.norm(apart, ord=order, axis=1))


def of_tables(case: Case, said: Accuracy, data: Made, folder: Path) -> None:
    """The chance of the true value, or the error against it, of reports that are drawn from a table."""
    if data.spoilt:
        return
    ((output, least, most),) = said.sizes
    table = table_of(case, output)
    names, labels, prior = list(table.of), table.rows, table.prior
    if case.mechanism.local_reports(case.model) is None:
        of_counts(case, said, folder)
        return
    kind, of, against = MEASURE.fullmatch(said.measure.removesuffix(", at worst")).groups()  # type: ignore[union-attr]
    which = names.index(of if against is None else against if against in names else names[0])
    random = np.random.default_rng(3)
    picked = np.repeat(np.arange(len(labels)), 40)
    if prior is not None and ", at worst" not in said.measure:
        picked = random.choice(len(labels), size=REPORTS, p=prior / prior.sum())
    paths = {}
    for place, name in enumerate(names):
        paths |= rows_of(case, name, [list(labels[row][place]) for row in picked], folder).files
    true = [labels[row][which] for row in picked]
    drawn = reports(case, Made(paths, None, {}), output)
    if against is None:
        hits = np.array([[(str(got),) == want for got, want in zip(one, true, strict=True)] for one in drawn])
        for row in sorted(set(picked.tolist())):
            own = hits[:, picked == row]
            assert within(own.mean(), own.size, least, most)
        return
    squared = kind == "root mean square"
    if of is None:
        errors = np.array([size(numbers(one) - numbers(true), "l2") for one in drawn])
    else:  # what is computed from a report, by the spec's own formulas
        term = next(one for one in case.facts.context.loss_terms if (one.left, one.right) == (of, against))
        scene = _scene(case.model, Stated.of(case.document).executed, table)
        grid = np.sqrt(scene.of(term.body).spread(len(table.rows), len(table.columns)).astype(float))
        columns = {label[table.releases.index(output)][0]: j for j, label in enumerate(table.columns)}
        errors = np.array([[grid[row, columns[str(v)]] for row, v in zip(picked, one, strict=True)] for one in drawn])
    averages = (errors**2 if squared else errors).mean(axis=1)
    found = averages.mean()
    error = FAR * averages.std() / np.sqrt(len(averages))
    low, high = (value**2 if squared else value for value in (least, most))
    if ", at worst" in said.measure:
        each = [errors[:, picked == row] for row in sorted(set(picked.tolist()))]
        found = max(float(one.mean()) for one in each)
        error = FAR * max(float(one.std() / np.sqrt(one.size)) for one in each)
    assert found + error >= low * (1 - 2 * ROUNDED)
    assert found - error <= high * (1 + 2 * ROUNDED)


def of_counts(case: Case, said: Accuracy, folder: Path) -> None:
    """The same where one keeper counts: how many say yes is as the author expects, each number as likely."""
    ((output, least, most),) = said.sizes
    against = str(MEASURE.fullmatch(said.measure.removesuffix(", at worst")).group(3))  # type: ignore[union-attr]
    table, others = table_of(case, output), made(case, None, folder)
    block = next(one for one in case.model.blocks if one.name in needed(case.model, against))
    count, random, prior = block.stop - block.start, np.random.default_rng(4), table.prior
    errors = list[float]()
    for place in range(TIMES):
        ones = place % (count + 1) if prior is None else int(random.choice(count + 1, p=prior / prior.sum()))
        u = np.array([1.0] * ones + [0.0] * (count - ones))
        index = [] if block.index is None else [block.index]
        rows = [",".join([*([str(i + 1)] if index else []), f"{value:g}"]) for i, value in enumerate(u)]
        path = folder / "counts.csv"
        path.write_text("\n".join([",".join([*index, block.name]), *rows]) + "\n", "utf-8")
        whole = np.zeros(case.model.size)
        whole[block.start : block.stop] = u
        truth = float(Made({}, whole, {}).truth(case, against)[0])
        drawn = reports(case, Made({**others.files, block.name: path}, None, {}), output, 5, place)
        errors += [abs(float(Fraction(str(np.asarray(got).reshape(-1)[0]))) - truth) for got in drawn]
    found, error = float(np.mean(errors)), FAR * float(np.std(errors)) / np.sqrt(len(errors))
    assert found - error <= most * (1 + 2 * ROUNDED)
    if ", at worst" not in said.measure:
        assert found + error >= least * (1 - 2 * ROUNDED)


def points(case: Case, said: Accuracy, data: Made, folder: Path) -> None:
    """Distances of reports from true points that fit; what is clipped is further off than where it counts."""
    if data.spoilt:
        return
    ((output, least, most),) = said.sizes
    (block,) = case.model.blocks
    width = block.type.shape[-1] if block.type.shape else 1
    low, high = (float(end) for end in block.domain.bounds)  # type: ignore[arg-type]
    random = np.random.default_rng(6)
    true = random.uniform(low, high, size=(REPORTS, width))
    rows = [[repr(float(part)) for part in row] for row in true]
    drawn = reports(case, rows_of(case, block.name, rows, folder), output)
    if said.measure == "of 95 in 100":
        near = np.array([size(numbers(one) - true, "l2") for one in drawn]) <= most
        assert near.mean() + FAR * np.sqrt(0.05 / near.size) >= 0.95
        return
    norm = said.measure.replace(" at most", "").replace(", at worst", "").split()[-1]
    squared = said.measure.startswith("root mean square")
    errors = np.array([size(numbers(one) - true, norm) for one in drawn]) ** (2 if squared else 1)
    averages, power = errors.mean(axis=1), 2 if squared else 1
    error = FAR * averages.std() / np.sqrt(len(averages))
    assert averages.mean() - error <= (most * (1 + ROUNDED)) ** power
    if "most" not in said.measure and "worst" not in said.measure:
        assert averages.mean() + error >= (least * (1 - ROUNDED)) ** power
    beyond = true + (high - low)
    drawn = reports(case, rows_of(case, block.name, [[repr(float(p)) for p in row] for row in beyond], folder), output)
    counted = np.full_like(beyond, high) if width == 1 else np.clip(beyond, low, high)
    assert (
        np.mean([size(numbers(one) - beyond, norm).mean() - size(numbers(one) - counted, norm).mean() for one in drawn])
        > 0
    )


def wins(case: Case, said: Accuracy, data: Made, folder: Path) -> None:
    """How often a candidate wins in an example."""
    if data.spoilt:
        return
    ((output, chance, _),) = said.sizes
    mechanism: Any = case.facts.mechanism
    name, _, title = said.measure.partition(" wins where ")
    example = next(one for one in examples(mechanism.vote, mechanism.rule) if one.title == title)
    firsts = [int(one.votes.value) for one in example.chances]
    header = "ranking" if mechanism.vote.ranked or mechanism.vote.ballots != "first choice" else "choice"
    rows = []
    for place, count in enumerate(firsts):
        ballot = mechanism.vote.ballot(place)
        listed = ballot if isinstance(ballot, tuple | list) else (ballot,)
        text = " ".join(mechanism.vote.names[i] if isinstance(i, int) else str(i) for i in listed)
        rows.append(f"{text},{count}")
    (block,) = case.model.blocks
    path = folder / "ballots.csv"
    path.write_text("\n".join([f"{header},count", *rows]) + "\n", "utf-8")
    drawn = reports(case, Made({block.name: path}, None, {}), output, TIMES)
    hits = [str(np.asarray(one).reshape(-1)[0]) == name for one in drawn]
    assert within(float(np.mean(hits)), TIMES, chance, chance)


def keys(case: Case, said: Accuracy, data: Made, folder: Path) -> None:
    """Counts of unknown keys, one that is not listed being 0; keys as large as the author expects, or of every size."""
    if data.spoilt:
        return
    ((output, _, most),) = said.sizes
    mechanism: Any = case.facts.mechanism
    block, random, worst = mechanism.block, np.random.default_rng(8), ", at worst" in said.measure
    (held,) = case.model.blocks
    chances = None if block.sizes is None else np.array([float(one) for one in block.sizes.values()])
    sizes = list(range(block.at_least, 2 * len(mechanism.kept), max(len(mechanism.kept) // 10, 1)))
    if not worst and chances is not None:
        sizes = (1 + random.choice(len(chances), size=100, p=chances / chances.sum())).tolist()
    kept = case.kept.get(held.name)
    header = [*([kept["person"]] if kept else []), *held.domain.names]  # type: ignore[attr-defined]
    wanted = {one.name: one.kept for one in block.columns if one.kept is not None}
    numbers = {one.column for one in block.added}
    rows = []
    for place, many in enumerate(sizes):
        for person in range(many):
            cells = [
                "1" if name in numbers else f"key {place}" if name not in wanted else str(wanted_value(block, name))
                for name in header[len(header) - len(held.domain.names) :]
            ]  # type: ignore[attr-defined]
            rows.append([*([f"p{place} {person}"] if kept else []), *cells])
    path = folder / "keys.csv"
    path.write_text("\n".join([",".join(header), *(",".join(row) for row in rows)]) + "\n", "utf-8")
    circumstances = family.RunContext(model=case.model, randomness=SimulationRandomness(5))
    secret = case.mechanism.read({held.name: path}, circumstances)
    errors = []
    for place in range(TIMES):
        drawn = secret.draw(SimulationRandomness(700 + place))
        labels = next(iter(drawn.labels[output].values())) if drawn.labels.get(output) else drawn.outputs[output]
        counts = np.asarray(drawn.outputs[output]).reshape(-1)
        shown = {str(key): count for key, count in zip(np.asarray(labels).reshape(-1), counts, strict=True)}
        missed = said.measure.startswith("key missed")
        errors.append(
            [
                float(f"key {i}" not in shown) if missed else abs(float(shown.get(f"key {i}", 0)) - many)
                for i, many in enumerate(sizes)
            ]
        )
    found = np.array(errors) ** (2 if said.measure.startswith("key squared") else 1)
    power = 2 if said.measure.startswith("key squared") else 1
    if worst:
        error = FAR * found.std(axis=0) / np.sqrt(len(found))
        assert np.all(found.mean(axis=0) - error <= (most * (1 + ROUNDED)) ** power)
        return
    averages = found.mean(axis=0)
    error = FAR * float(averages.std()) / np.sqrt(len(averages))
    assert abs(float(averages.mean()) - most**power) <= error + ROUNDED * most


def beside_keys(case: Case, said: Accuracy, data: Made, folder: Path) -> None:
    """The noise of sums: of ten keys that are always shown, of all others, of which there are none, and of all."""
    if data.spoilt:
        return
    mechanism: Any = case.mechanism
    block, kept = mechanism.executed.block, mechanism.executed.kept()
    columns = list(dict.fromkeys(one.column for one in block.added if one.column is not None))
    content = {(f"key {i}",): (len(kept), *(block.steps for _ in columns)) for i in range(10)}
    secret = mechanism.secret(content, strict=False)
    for name, least, most in said.sizes:
        (one,) = (one for one in block.added if name in one.outputs)
        # of a column every key has so many records at the lower end but one, which is at the upper
        each = len(kept) * one.lower + (one.upper - one.lower)
        wanted = float(each * (10 if name == one.whole else 1)) if name != one.rest else 0.0
        drawn = [np.reshape(secret.draw(SimulationRandomness(seed)).outputs[name], -1) for seed in range(TIMES)]
        assert within_rms(np.concatenate(drawn) - wanted, least, most)


def within_rms(errors: Array, least: float, most: float) -> bool:
    """Whether errors of Laplace noise have a root mean square between two."""
    found = float(np.sqrt(np.mean(errors**2)))
    margin = FAR * found * np.sqrt(5 / errors.size) / 2 + ROUNDED * most
    return least - margin <= found <= most + margin


def wanted_value(block: Any, name: str) -> str:
    """A value of a column that conditions keep."""
    column = next(one for one in block.columns if one.name == name)
    place = column.kept[0] if isinstance(column.kept, tuple | list) else column.kept
    return column.values[place] if column.values else str((column.lower or 0) + place)


def selections(case: Case, said: Accuracy, data: Made, folder: Path) -> None:
    """Values drawn near the true one: in records at worst, else with data that lie as the author expects."""
    if data.spoilt:
        return
    ((output, _, most),) = said.sizes
    block: Any = _selected(case).block
    (held,) = case.model.blocks
    random, found = np.random.default_rng(9), []
    answers = [str(one) for one in block.answers]
    for place in range(20):
        once = sample(case, held, random, folder)
        groups = once.rows[held.name]
        for got in reports(case, once, output, 10, place):
            values = [str(one) for one in np.asarray(got).reshape(-1)]
            assert set(values) <= set(answers) or block.numbers
            if len(values) > len(groups) and not block.score.ordered:
                found.append([missed(values, *groups)])
                continue
            singly = block.singly if block.several else (block,) * len(values)
            rows = groups * len(values) if block.several else groups
            found.append([loss_of(*one) for one in zip(singly, repeat(said), values, rows, strict=False)])
    each = np.array(found)
    total = each.sum(axis=1) if said.measure.startswith(("ranks", "mismatch")) else (each ** _power(said)).mean(axis=1)
    error = FAR * total.std() / np.sqrt(20)
    top = most if said.measure.startswith(("ranks", "mismatch")) else most ** _power(said)
    assert total.mean() - error <= top * (1 + 5 * ROUNDED)


def _selected(case: Case) -> Any:
    found = drawn(case)
    return found[0] if len(found) == 1 else next(one for one in found if hasattr(one, "sought"))


def _power(said: Accuracy) -> int:
    return int(said.measure.removesuffix(", at worst").split()[-1])


def sample(case: Case, held: Any, random: np.random.Generator, folder: Path) -> Made:
    """Records as the author expects, or evenly, and the column that is asked for, group by group."""
    block: Any = _selected(case).block
    domains = dict(held.domain.attributes)
    count = block.records or held.domain.records or 500
    columns: dict[str, list[str]] = {}
    for name, domain in domains.items():
        inner = getattr(domain, "whole", domain)
        values = [str(one) for one in block.answers] if name == block.column and block.numbers else None
        if values is None:
            values = (
                [show(one) for one in inner.elements()]
                if inner.size
                else [str(v) for v in np.linspace(*map(float, inner.bounds), 101)]
            )
        law = next((one for one in case.model.models if one.subject == f"{held.name}.{name}"), None)
        chances = None
        if law is not None and inner.size:
            chances = np.array(law_of(law, list(inner.elements()), environment(case.model)), dtype=float)
            values = [show(one) for one in inner.elements()]
            chances /= chances.sum()
        columns[name] = [values[i] for i in random.choice(len(values), size=count, p=chances)]
    path = folder / "sample.csv"
    rows = zip(*columns.values(), strict=True)
    path.write_text("\n".join([",".join(columns), *(",".join(row) for row in rows)]) + "\n", "utf-8")
    keep = np.ones(count, dtype=bool)
    for one in block.where:
        allowed = {str(one.values[i]) for i in one.kept}
        keep &= np.array([cell in allowed for cell in columns[one.column]])
    asked = np.array(columns[block.column])
    groups = [keep]
    for one in block.by:
        groups = [own & (np.array(columns[one.column]) == str(value)) for own in groups for value in one.values]
    return Made({held.name: path}, None, {held.name: [asked[own] for own in groups]})


def missed(values: list[str], rows: Any) -> float:
    """How many records the most frequent values have more than as many others that were released."""
    counts = dict(zip(*np.unique(rows, return_counts=True), strict=True))
    assert len({*values}) == len(values)
    best = sorted(counts.values(), reverse=True)[: len(values)]
    return float(sum(best) - sum(counts.get(one, 0) for one in values))


def loss_of(block: Any, said: Accuracy, value: str, rows: Any) -> float:
    """How far a value is from what is sought in some records: in records, in units, or whether it is another one."""
    share = _share(block)
    if share is None:
        tally = Counter(rows.tolist())
        counts = {one: tally[str(one)] for one in block.answers}
        best = max(counts.values())
        return float(best - counts[value]) if said.measure.startswith("ranks") else float(counts[value] < best)
    ordered = np.sort(np.array([float(Fraction(one)) for one in rows]))
    number = float(Fraction(value))
    wanted = share * len(ordered)
    if said.measure.startswith("ranks"):
        below, upto = float((ordered < number).sum()), float((ordered <= number).sum())
        return max(below - wanted, wanted - upto, 0.0)
    true = ordered[min(max(int(np.ceil(wanted)) - 1, 0), len(ordered) - 1)]
    return abs(number - float(true))


def _share(block: Any) -> float | None:
    share = getattr(block.score, "share", None)
    return None if share is None else float(share)


def checked_elsewhere(case: Case, said: Accuracy, data: Made, folder: Path) -> None:
    """A loss is the sum of errors that other sentences tell; crowds are drawn anew in tests/families."""


CHECKS: Mapping[str, Callable[[Case, Accuracy, Made, Path], None]] = {
    "deviation": deviation,
    "mean": mean,
    "simulated": simulated,
    "cut": cut,
    "probability ": of_tables,
    "probability of a wrong answer ": of_tables,
    "mean absolute error ": of_tables,
    "mean distance ": of_tables,
    "root mean square ": of_tables,
    "mean l": points,
    "root mean square l": points,
    "of 95 in 100": points,
    "key ": keys,
    "noise beside keys": beside_keys,
    "ranks": selections,
    "distance": selections,
    "mismatch": selections,
    "loss": checked_elsewhere,
    "crowds": checked_elsewhere,
}
"""By the beginning of a measure; a measure that has no check fails."""
WHOLE = {"deviation", "mean", "simulated", "cut", "loss", "crowds"}


def check_of(measure: str) -> Callable[[Case, Accuracy, Made, Path], None]:
    if " wins where " in measure:
        return wins
    return next(
        check
        for start, check in CHECKS.items()
        if measure == start or (start not in WHOLE and measure.startswith(start))
    )


# --- every spec -----------------------------------------------------------------------------------

TOLD = re.compile(
    r"counts? as|are left out|is shortened to|So differences below|They add up to|ticket|drawn by lot|changed at random"
    r"|flips a coin|is listed only if|almost never listed|least half are listed|of 100 choices|any one of your"
    r"|worked out afterwards|odds above count two draws"
    r"|you as one|The published values? (?:is|are)"
)
"""Sentences of that section with figures that are no errors: limits, rules of lotteries, what is drawn."""


def check_pages(case: Case, folder: Path) -> None:
    """Every sentence on errors, on data of which a tenth is left out, clipped or not listed."""
    for said in case.said:
        listed = {(name, done, way) for name, done, way in said.besides}
        effects = case.facts.mechanism.effects
        known = {(name, done.value, effects.get(done, way)) for (done, name), way in case.ways.items()}
        if listed or case.facts.mechanism.by_chance:
            names = {name for name, *_ in said.sizes}
            unsaid = said.measure in ("mean", "cut", "of 95 in 100")
            assert unsaid or {one[:2] for one in known if one[0] in names} == {one[:2] for one in listed}
    for done in (None, *Done):
        data = made(case, done, folder)
        if seen := treated(case, data):
            check_ways(case, data, seen, done)
        if seen or done is None:
            for said in case.said:
                check_of(said.measure)(case, said, data, folder)


def sums(case: Case) -> set[str]:
    """What is released as sums with noise, which the spec's own targets say the truth of."""
    return {name for one in drawn(case) if isinstance(one, AdditiveNoise) for name in one.released}


def check_sentences(case: Case) -> None:
    """No sentence with a figure stands in the section on errors that is not held to releases."""
    page = public_page(case.facts)
    for section in page.sections:
        if section.heading == case.facts.mechanism.label("accuracy"):
            for block in section.blocks:
                for one in block.sentences:  # type: ignore[union-attr]
                    assert one.accuracy or not re.search(r"\d", one.text) or TOLD.search(one.text), one.text


@pytest.mark.parametrize("name", FAST)
def test_sentences_on_errors_are_true(name: str, tmp_path: Path) -> None:
    case = Case(load(str(FOLDER / f"{name}.priv")).solve())
    check_sentences(case)
    check_pages(case, tmp_path)


@pytest.mark.parametrize("name", ["commuting", "clinics"])
def test_sentences_on_errors_of_other_families_are_true(name: str, tmp_path: Path) -> None:
    case = Case(Plan.of(solved_text(SPECS[name])))
    check_sentences(case)
    check_pages(case, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("spec", EVERY)
def test_sentences_on_errors_of_every_spec_are_true(spec: str, tmp_path: Path) -> None:
    case = Case(load(spec).solve())
    check_sentences(case)
    check_pages(case, tmp_path)
