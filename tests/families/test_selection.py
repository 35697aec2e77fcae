"""Selections end to end: never worse than the exponential mechanism, the best table in small cases, runs on data."""

from __future__ import annotations

import csv
from fractions import Fraction
from math import comb, exp

import numpy as np
import pytest
from scipy.stats import chisquare

from privspec.api import Problem
from privspec.core.diagnostics import SpecError
from privspec.execute.family import simulate
from privspec.families.selection.family import (
    BITS,
    Selections,
    at_chance,
    attempts,
    law_of_draw,
    meets,
    steps_at,
)
from privspec.kernel import judge
from privspec.kernel.core.reading import JsonNode
from privspec.kernel.laws.exponential import Target
from privspec.kernel.laws.voting import BY_NAME
from privspec.kernel.selection import Drawn, Listed, tables_of
from privspec.model.voting import Lottery
from privspec.noise.samplers import SimulationRandomness
from tests.plans import mutate

RECORD = "adding or removing one record"


def spec(loss, *, table="table(age in 0..40)^200", output="m", model="", privacy=f"m is 1-DP wrt people, {RECORD}"):
    background = f"background:\n  {model}\n" if model else ""
    head = f"variables:\n  input people in {table}\n  output {output}\n{background}"
    return Problem(f"{head}loss: {loss}\nprivacy: {privacy}\n")


def system_of(problem):
    model = problem.check()
    return Selections().lower(model)


def generated(number):
    """A law of 8 to 41 values, a share, a relation and an epsilon."""
    random = np.random.default_rng(number)
    size = int(random.integers(8, 42))
    weights = random.dirichlet(np.full(size, float(random.choice([0.2, 1.0, 5.0]))))
    listed = ", ".join(f"{weight:.6f}" for weight in weights)
    share = random.choice(["0.5", "0.9", "0.25", "1 / 3"])
    loss = random.choice(["E[ |m - {q}| ]", "E[ (m - {q})^2 ]", "E[ rank_error(m, {q}) ]"])
    relation = random.choice([RECORD, "replacing one record"])
    epsilon = random.choice(["0.1", "0.5", "1", "2"])
    return spec(
        str(loss).format(q=f"quantile(people.age, {share})"),
        table=f"table(age in 0..{size - 1})^{int(random.integers(20, 400))}",
        model=f"people.age ~ categorical([{listed}])",
        privacy=f"m is {epsilon}-DP wrt people, {relation}",
    )


@pytest.mark.parametrize("number", range(20))
def test_a_quantile_is_never_worse_than_by_the_exponential_mechanism(number):
    """At the same exact epsilon, over the same simulated tables, for 20 generated laws."""
    system = system_of(generated(number))
    tried = list(attempts(system))
    exponential = [one for one in tried if isinstance(one.drawn, Drawn) and one.drawn.family == "exponential"]
    best = min(tried, key=lambda one: one.loss)
    assert exponential
    assert best.loss <= min(one.loss for one in exponential)
    for one in tried:
        assert meets(one.drawn, system.lines)
        steeper = at_chance(one.drawn, int((1 << BITS) / one.drawn.base) - 1)
        assert not meets(steeper, system.lines), "the next larger base is too much"


@pytest.mark.parametrize("share", ["median(people.age)", "quantile(people.age, 0.9)", "max(people.age)"])
@pytest.mark.parametrize(("size", "records", "epsilon"), [(3, 4, "1"), (4, 3, "0.5"), (5, 4, "2")])
def test_small_cases_are_the_best_table(share, size, records, epsilon):
    """What the program over all tables of a spec that holds one number of each person finds, by other code."""
    law = f"binomial({size - 1}, 0.4)"
    private = f"m is {epsilon}-DP wrt people, replacing one record"
    mine = spec(
        f"E[ |m - {share}| ]",
        table=f"table(age in 0..{size - 1})^{records}",
        model=f"people.age ~ {law}",
        privacy=private,
    ).solve()
    other = Problem(
        f"parties: person in 1..{records}\nvariables:\n  input age[person] in 0..{size - 1}\n"
        f"  output m in 0..{size - 1}\nbackground: age ~ {law}\n"
        f"loss: E[ |m - {share.replace('people.age', 'age')}| ]\n"
        f"privacy: m is {epsilon}-DP wrt age, replacing one person\n"
    ).solve()
    assert mine.status == other.status == "optimal"
    assert mine.document["mechanism"]["family"] == other.document["mechanism"]["family"] == "table"
    assert mine.loss.value == pytest.approx(other.loss.value, rel=1e-6)


def test_laws_in_doubles_are_the_exact_ones():
    system = system_of(spec("worst[ rank_error(m, median(people.age)) ]", table="table(age in 0..6)"))
    random = np.random.default_rng(3)
    for family in ("exponential", "permute_and_flip"):
        for target in (Target(Fraction(1, 2), 0), Target(Fraction(9, 10), 0), Target(Fraction(1), -2)):
            drawn = Drawn(system.block, family, Fraction(13, 10), target, (), drops=True)
            counts = random.integers(0, 4, 7)
            steps = drawn.scores(counts.tolist())
            assert steps_at(drawn, counts).tolist() == steps
            exact = Lottery(BY_NAME[family], drawn.base).law([Fraction(-one) for one in steps])
            assert law_of_draw(drawn, counts) == pytest.approx([float(p) for p in exact], abs=1e-12)
            # many tables side by side, fewer and more of them than answers
            for many in (2, 40):
                tables = random.integers(0, 40, (many, 7))
                together = law_of_draw(drawn, tables)
                for table, law in zip(tables, together, strict=True):
                    exact = Lottery(BY_NAME[family], drawn.base).law(
                        [Fraction(-one) for one in drawn.scores(table.tolist())]
                    )
                    assert law == pytest.approx([float(p) for p in exact], abs=1e-12)


@pytest.mark.parametrize(
    ("loss", "model", "table"),
    [
        ("worst[ rank_error(m, median(people.age)) ]", "", "table(age in 0..6)"),
        ("E[ |m - max(people.age)| ]", "people.age ~ binomial(6, 0.3)", "table(age in 0..6)^20"),
    ],
)
def test_what_is_drawn_has_the_law_that_is_judged(loss, model, table):
    """5,000 exact draws at one table, against the exact law."""
    plan = spec(loss, model=model, table=table).solve()
    ages = [1, 1, 2, 3, 3, 3, 5]
    draws = simulate(plan.document, 5000, 7, base={"people": {"age": ages}})[:, 0]
    mechanism = plan.document["mechanism"]
    system = system_of(spec(loss, model=model, table=table))
    aim = mechanism["target"]
    drawn = Drawn(
        system.block,
        mechanism["family"],
        Fraction(mechanism["base"]),
        Target(Fraction(aim["share"]), aim["offset"]),
        tuple(mechanism.get("handicap", ())),
        drops=True,
    )
    law = law_of_draw(drawn, np.bincount(ages, minlength=7))
    found = np.bincount(draws.astype(int), minlength=7)
    often = law * 5000 > 5
    observed, expected = [*found[often], found[~often].sum()], [*law[often] * 5000, law[~often].sum() * 5000 + 1e-9]
    assert chisquare(observed, np.array(expected) * sum(observed) / sum(expected)).pvalue > 1e-4


def test_errors_of_exact_draws_agree_with_the_loss_that_is_predicted():
    """100 tables drawn from the law by other code, ten exact draws at each: within five standard errors."""
    problem = spec(
        "E[ |m - quantile(people.age, 0.9, sex = F)| ]",
        table="table(age in 0..20, sex in {F, M})^80",
        model="people.age ~ binomial(20, 0.4)\n  people.sex ~ categorical([0.5, 0.5])",
        privacy=f"m is 0.3-DP wrt people, {RECORD}",
    )
    plan = problem.solve()
    random, errors = np.random.default_rng(11), []
    for seed in range(100):
        ages = random.binomial(20, 0.4, 80)
        sexes = random.choice(["F", "M"], 80)
        data = {"people": {"age": ages.tolist(), "sex": sexes.tolist()}}
        drawn = simulate(plan.document, 10, seed, base=data)[:, 0]
        women = np.sort(ages[sexes == "F"])
        errors.append(np.mean(np.abs(drawn - women[max(-(-9 * len(women) // 10), 1) - 1])))
    apart = np.std(errors) / np.sqrt(len(errors)) + plan.document["loss"]["standard_error"]
    assert abs(np.mean(errors) - plan.loss.value) < 5 * apart


def written(tmp_path, header, rows):
    path = tmp_path / "people.csv"
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([header, *rows])
    return {"people": path}


def test_records_are_read_at_the_nearest_value_and_only_those_that_count(tmp_path):
    """An epsilon so large that the answer is the true one: conditions, rounding, ends and what cannot be read."""
    plan = spec(
        "E[ |m - median(people.pay, sex = F, age >= 18)| ]",
        table="table(pay in [0, 1000], sex in {F, M}, age in 0..120)^100",
        output="m in grid(0, 1000, 100)",
        model="people.pay ~ uniform\n  people.sex ~ uniform\n  people.age ~ uniform",
        privacy=f"m is 30-DP wrt people, {RECORD}",
    ).solve()
    rows = [(349.9, "F", 30)] * 8 + [(350, "F", 18)] * 9 + [(1e9, "F", 40)] * 3 + [(-5, "F", 50)] * 2
    rows += [(900, "M", 30)] * 50 + [(900, "F", 17)] * 50 + [("x", "F", 30)] * 50 + [(900, "", 30)] * 50
    release = plan.run(written(tmp_path, ("pay", "sex", "age"), rows), randomness=SimulationRandomness(1))
    assert release.values["m"].tolist() == 400


def test_one_person_counts_for_no_more_than_is_kept(tmp_path):
    text = "worst[ rank_error(m, mode(people.city)) ]"
    privacy = "m is 30-DP wrt people, adding or removing one person with at most 2 records"
    plan = spec(text, table="table(person in id, city in {a, b, c})", privacy=privacy).solve()
    assert plan.verify().ok
    rows = [("p", "a")] * 500 + [(f"q{i}", "b") for i in range(40)] + [(f"r{i}", "c") for i in range(20)]
    release = plan.run(written(tmp_path, ("person", "city"), rows), randomness=SimulationRandomness(1))
    assert release.values["m"].tolist() == "b"
    assert any("at most 2 records" in rule for rule in release.data_rules)


def test_one_value_for_each_group(tmp_path):
    plan = spec(
        "E[ ||m - median(people.age, by = {sex, edu}, edu != c)||_1 ]",
        table="table(age in 0..40, sex in {F, M}, edu in {a, b, c})^200",
        model="people.age ~ binomial(40, 0.4)\n  people.sex ~ uniform\n  people.edu ~ categorical([1, 2, 3])",
        privacy=f"m is 30-DP wrt people, {RECORD}",
    ).solve()
    rows = [(10, "F", "a")] * 9 + [(20, "F", "b")] * 9 + [(30, "M", "a")] * 9 + [(35, "M", "b")] * 9
    rows += [(1, sex, "c") for sex in "FM"] * 50
    data = written(tmp_path, ("age", "sex", "edu"), rows)
    release = plan.run(data, randomness=SimulationRandomness(1))
    assert release.values["m"].tolist() == [10, 20, 30, 35]
    assert simulate(plan.document, 3, 1, base=data).tolist() == [[10, 20, 30, 35]] * 3
    table = release.to_polars() if hasattr(release, "to_polars") else None
    assert table is None or {"sex", "edu"} <= set(table.columns)


def test_a_larger_unit_means_a_smaller_base():
    """Two records at once take half the logarithm, or less."""
    bases = []
    for most in (1, 2, 4):
        unit = RECORD if most == 1 else f"adding or removing up to {most} records"
        system = system_of(spec("worst[ rank_error(m, mode(people.age)) ]", privacy=f"m is 1-DP wrt people, {unit}"))
        bases.append([float(one.drawn.base) for one in attempts(system)])
    for one, two, four in zip(*bases, strict=True):
        assert one == pytest.approx(exp(1), rel=1e-6)
        assert two == pytest.approx(exp(1 / 2), rel=1e-6)
        assert four == pytest.approx(exp(1 / 4), rel=1e-6)


def test_several_selections_and_counts_share_one_budget():
    plan = Problem(
        "variables:\n  input people in table(age in 0..40, sex in {F, M})^300\n  output q in 0..40\n  output n\n"
        "background:\n  people.age ~ binomial(40, 0.4)\n"
        "loss: E[ |q - median(people.age)| ] + 0.01 * E[ (n - count(people, sex = F))^2 ]\n"
        f"privacy: all outputs are 1-DP wrt people, {RECORD}\n"
    ).solve()
    assert plan.document["mechanism"]["family"] == "composite"
    assert plan.verify().ok
    loss = plan.document["loss"]
    assert 0.3 * loss["value"] < loss["lower_bound"] < loss["value"]
    assert "at any epsilon" in loss["among"]


def forged(document, path, value):
    report = judge(JsonNode(mutate(document, path, value), "plan"))
    assert not report.ok, path
    return " ".join(claim.text for claim in report.claims)


def test_a_median_of_what_people_have_shares_a_budget_with_a_bound_of_every_split():
    """At the split that is chosen the bounds of both parts are no more than what the whole is proved to cost."""
    plan = Problem(
        "variables:\n  input visits in table(person in id, hours in 0..20)\n  output middle\n  output long\n"
        "loss: worst[ rank_error(middle, median(visits.hours)) ] + 0.1 * E[ (long - count(visits, hours >= 10))^2 ]\n"
        "privacy: all outputs are 1-DP wrt visits, adding or removing one person with at most 3 records\n"
    ).solve()
    assert plan.verify().ok
    document = plan.document
    parts = [one["loss"]["lower_bound"] for one in document["mechanism"]["components"].values()]
    loss = document["loss"]
    assert 0.5 * loss["value"] < loss["lower_bound"] <= sum(parts)
    raised = loss | {"lower_bound": loss["value"], "relative_gap": 0.0}
    assert "the bound is not shown by" in forged(document, ("loss",), raised)
    assert "has 1 entries in place of 2" in forged(document, ("claims",), {"split": [[]]})
    assert "wrong" not in forged(document, ("problem", "blocks", 0, "parts", 0, "problem", "data", 0, "kept"), None)


@pytest.mark.slow
def test_tables_in_a_system_have_witnesses_at_other_shares():
    plan = Problem(
        "variables:\n  input people in table(age in 0..2, sex in {F, M})^4\n  output m\n  output n\n"
        "loss: worst[ rank_error(m, median(people.age)) ] + 0.1 * E[ (n - count(people, sex = F))^2 ]\n"
        "privacy: all outputs are 1-DP wrt people, replacing one record\n"
    ).solve()
    assert plan.verify().ok
    document = plan.document
    loss, witnesses = document["loss"], document["claims"]["split"]
    at = next(k for k, own in enumerate(witnesses) if own)
    assert len(witnesses[at]) > 5
    assert loss["lower_bound"] > 0.9 * loss["value"]
    first = ("claims", "split", at, 0)
    pairs = witnesses[at][0]["claims"]["bound"]["pairs"]
    assert "a multiplier below 0" in forged(document, (*first, "claims", "bound", "pairs", 0, 3), -1.0)
    forged(document, (*first, "claims", "bound", "records"), "2")
    forged(document, (*first, "share"), "-1")
    forged(document, ("claims", "split", at), [])
    better = [
        {**one, "claims": {"bound": {**one["claims"]["bound"], "pairs": [[*p[:3], 9.0] for p in pairs]}}}
        for one in witnesses[at]
    ]
    forged(document, ("claims", "split", at), better)


def test_parts_read_the_columns_that_they_are_about():
    """Of one table one part reads ages, the other one the sex; nothing of the size of all cells is built."""
    plan = Problem(
        "variables:\n  input people in table(age in 0..20, sex in {F, M}, pay in 0..5000, town in 0..900)\n"
        "  output m in 0..20\n  output n\n"
        "loss: worst[ rank_error(m, median(people.age)) ] + 0.001 * E[ (n - count(people, sex = F))^2 ]\n"
        f"privacy: all outputs are 1-DP wrt people, {RECORD}\n"
    ).solve()
    assert plan.verify().ok
    report = judge(JsonNode(mutate(plan.document, ("problem", "data", 0, "name"), "others"), "plan"))
    assert not report.ok


@pytest.mark.parametrize(
    ("loss", "more", "code", "words"),
    [
        ("worst[ |m - median(people.age)| ]", {}, "PS0502", "at the worst data"),
        ("worst[ rank_error(m, max(people.age)) ]", {}, "PS0502", "is never off in ranks"),
        ("E[ |m - median(people.age)| ]", {"table": "table(age in 0..9)"}, "PS0401", ""),
        (
            "E[ |m - median(people.age)| ]",
            {"model": "people.age ~ uniform", "table": "table(age in 0..9)"},
            "PS0401",
            "number of records",
        ),
        (
            "worst[ rank_error(m, median(people.age, by = {age})) ]",
            {"table": "table(age in 0..9, sex in {F, M})"},
            "PS0206",
            "every group has one value",
        ),
        (
            "worst[ rank_error(m, median(people.age)) ]",
            {"privacy": "m is 40-DP wrt people"},
            "PS0501",
            "protects nothing",
        ),
        ("worst[ rank_error(m, median(people.age)) ]", {"output": "m in {x, y}"}, "PS0519", ""),
        ("worst[ rank_error(m, mode(people.age)) ]", {"output": "m in 0..5"}, "PS0519", "the same values"),
    ],
)
def test_what_is_not_computed_is_refused_by_a_line(loss, more, code, words):
    with pytest.raises(SpecError) as caught:
        spec(loss, **more).solve()
    (first, *_) = caught.value.diagnostics
    assert words in f"{first.message} {first.help}"
    assert first.code == code


def test_tables_are_not_for_many_records():
    problem = spec(
        "worst[ rank_error(m, median(people.age)) ]",
        table="table(age in 0..2)^30",
        privacy="m is 1-DP wrt people, replacing one record",
    )
    (table, *_) = [one for one in attempts(system_of(problem)) if isinstance(one.drawn, Listed)]
    assert len(tables_of(table.drawn.block)) == comb(32, 2)
    large = spec("worst[ rank_error(m, median(people.age)) ]", privacy="m is 1-DP wrt people, replacing one record")
    assert not [one for one in attempts(system_of(large)) if isinstance(one.drawn, Listed)]
