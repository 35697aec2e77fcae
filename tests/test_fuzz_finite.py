"""Random finite specs: check and lower answer with a system or with diagnostics that have a place, never otherwise.

The default run takes 400 specs; `pytest -m slow tests/test_fuzz_finite.py` several thousand.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from privspec.core.catalogue import entries
from privspec.core.diagnostics import SpecError
from privspec.core.render import render_all
from privspec.core.spans import Source
from privspec.families.family import compiler_of
from privspec.families.tables.system import TableSystem, to_program
from privspec.language.formatter import format_source
from privspec.model.build import load_model
from privspec.model.reports import Failure
from privspec.model.worlds import finite

MATRICES = {"square3.csv": "0,1,2\n1,0,1\n2,1,0\n", "skew.csv": "0,1,9\n2,0,1\n9,1,0\n", "wide.csv": "1,2,3\n4,5,6\n"}
DOMAINS = [
    *("{a, b, c}", "{F, M}", "0..1", "1..3", "1..4", "-2..2", "grid(0, 1, 0.5)", "(1..2)^3", "{a, b}^2"),
    *("grid(0, 1, 1)^2", "ranking of {a, b, c}", "{1, 2, 4}", "{x}", "5..5", "(0..1)^(2, 2)", "(1..9)^2"),
    *("{0, 1}^20", "1..100000", "[0, 1]", "(ranking of {a, b})^2"),
]
LAWS = [
    *("uniform", "uniform(1, 2)", "categorical([1, 2, 1])", "categorical([0.5, 0.5])", "binomial(3, 0.5)"),
    *("categorical([[0.1, 0.2], [0.3, 0.4]])", "bernoulli(0.3)", "geometric(0.5)", "normal(1, 0.5)", "poisson(2)"),
    *("normal([0, 1], 2)", "exponential(1)", "laplace(0, 1)", "empirical([1, 1, 2])", 'empirical(csv("wide.csv"))'),
    *("gamma(1, 2)", "normal(0, 0)", 'categorical(csv("square3.csv"))', "geometric(1.5)", "beta(1, 1)"),
    *("normal(M, 1)", "empirical([[1, 2], [1, 3]])"),
]
DISTANCES = [
    *("euclidean", "manhattan", "chebyshev", "hamming", "discrete", "kendall", "footrule", "|{x} - {x}'|"),
    *("||{x} - {x}'||", "||{x}' - {x}||_1", "||{x} - {x}'||_inf", 'csv("square3.csv")', 'csv("skew.csv")'),
    *('csv("wide.csv")', "T", "2 * T", "[[0, 1], [1, 0]]", "|{x} - y'|", "|{x}|", "{x}", "M", "sum(T)", "c"),
    *("euclidian", 'csv("none.csv")', "|{x} - {x}|^2"),
]
UNITS = [
    *("", "", "", ", replacing everything", ", replacing one record", ", replacing one entry", ", seen by me"),
    *(", replacing up to 2 records", ", adding or removing one record", ", replacing one voter"),
    ", replacing up to 9 entries",
]
NUMBERS = ["0..1", "1..3", "1..4", "-2..2", "grid(0, 1, 0.5)", "{1, 2, 4}", "2..4"]
PLAIN_LAWS = ["uniform", "normal(1, 0.5)", "laplace(1, 2)", "geometric(0.5)", "uniform"]
PLAIN_DISTANCES = ["euclidean", "manhattan", "|{x} - {x}'|", "||{x} - {x}'||", "hamming", "discrete"]


def modest(dice: random.Random) -> str:
    """A spec whose parts mostly fit."""
    inputs = ["x", "y", "sex"][: dice.choice([1, 2, 3])]
    outputs = ["z", "O"][: dice.choice([1, 1, 2])]
    domains = {name: dice.choice(NUMBERS) for name in inputs} | {name: dice.choice(NUMBERS) for name in outputs}
    domains |= {"x": dice.choice(["(0..1)^3", "{a, b, c}"])} if dice.random() < 0.2 else {}
    lines = ["variables:", *(f"  input {name} in {domains[name]}" for name in inputs)]
    lines += [f"  output {name} in {domains[name]}" for name in outputs]
    lines += ["  intermediate s", "background:", "  s = y + 1"] if "y" in inputs else ["background:"]
    lines += [f"  {name} ~ {dice.choice(PLAIN_LAWS)}" for name in inputs]
    target = "y" if "y" in inputs and dice.random() < 0.5 else "x"
    lines.append(
        f"loss: {dice.choice(['E', 'worst'])}[ {dice.choice(['mismatch(z, {})', '(z - {})^2']).format(target)} ]"
    )
    lines[-1] += (
        " + E[ mismatch(O, sex) ]" if "O" in outputs and "sex" in inputs else " + E[ O ]" if "O" in outputs else ""
    )
    what, wrt = several(dice, outputs), several(dice, inputs)
    near = dice.choice(PLAIN_DISTANCES).replace("{x}", wrt)
    measures = [
        "1-DP wrt {}",
        "(1, 0.1)-DP wrt {}, replacing everything",
        "0.5-LDP wrt {}",
        "(1, 0.1)-per-atom-LDP wrt {}",
    ]
    measures += [f"1-metric-DP wrt {{}}, distance {near}"] * 3
    lines += ["privacy:", f"  {what} is {dice.choice(measures).format(wrt)}"]
    others = [
        f"z is independent of x{dice.choice(['', ', up to 0.1'])}",
        f"{what} is 0.3-Lipschitz wrt {wrt}, distance {near}",
    ]
    others += ["z is independent of x given s", "z is independent of x given y = 1"] if "y" in inputs else []
    lines += ["fairness:", f"  {dice.choice(others)}"] if dice.random() < 0.5 else []
    return "\n".join(lines) + "\n"


def spec(dice: random.Random) -> str:
    """A spec with parts that often do not fit."""
    if dice.random() < 0.5:
        return modest(dice)
    inputs = ["x", "y", "sex"][: dice.choice([1, 1, 2, 3])]
    outputs = ["z", "O"][: dice.choice([1, 1, 1, 2])]
    indexed = dice.random() < 0.15
    domains = {name: dice.choice(DOMAINS) for name in (*inputs, *outputs)}
    if dice.random() < 0.6:
        domains |= {name: dice.choice(DOMAINS[:12]) for name in domains}
    if dice.random() < 0.5:
        domains |= dict.fromkeys(outputs, domains[inputs[0]])
    written = {name: f"{name}[voter]" if indexed and name == "x" else name for name in inputs}
    lines = ["parameters:", "  T = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]", "  M = 2"]
    lines += ["parties: voter in 1..2"] if indexed or dice.random() < 0.1 else []
    lines += ["variables:", *(f"  input {written[name]} in {domains[name]}" for name in inputs)]
    lines += ["  constant c in real^(3, 3)"] if dice.random() < 0.1 else []
    lines += ["  choose a in (0, 1]"] if dice.random() < 0.1 else []
    lines += ["  intermediate s"] * (computed := dice.random() < 0.4)
    lines += [f"  output {name} in {domains[name]}" for name in outputs]
    lines.append("background:")
    if computed:
        lines.append(f"  s = {dice.choice(['sum(x)', 'mean(x)', '2 * x', 'x[1]', '|x|', 'x + y', 'max(x, 1)'])}")
    for name in (*inputs, *(["s"] if computed and dice.random() < 0.3 else [])):
        if dice.random() < 0.6:
            subject = f"({name}, {dice.choice(inputs)})" if dice.random() < 0.2 else name
            lines.append(f"  {subject} ~ {dice.choice(LAWS)}")
    if dice.random() < 0.15:
        lines.append(f"  E[z | x] = {dice.choice(['x', 'a * x', '2', 'x + y'])}")
    target = "s" if computed and dice.random() < 0.7 else "x"
    lines.append(f"loss: {loss(dice, target, outputs)}")
    lines.append("privacy:")
    for _ in range(dice.choice([1, 1, 2])):
        lines.append(f"  {requirement(dice, inputs, outputs)}")
    if dice.random() < 0.4:
        lines += ["fairness:", *(f"  {fairness(dice, inputs, outputs, computed)}" for _ in range(dice.choice([1, 2])))]
    return "\n".join(lines) + "\n"


def loss(dice: random.Random, target: str, outputs: list[str]) -> str:
    forms = ["mismatch(z, {t})", "(z - {t})^2", "|z - {t}|", "||z - {t}||", "z", "total_variation(z, {t})", "T[1, z]"]
    terms = [f"{dice.choice(['E', 'E', 'worst'])}[ {dice.choice(forms).format(t=target)} ]"]
    if "O" in outputs:
        terms.append(f"{dice.choice(['2 * ', '', '0 * '])}E[ {dice.choice(forms).format(t=target).replace('z', 'O')} ]")
    return " + ".join(terms)


def several(dice: random.Random, names: list[str]) -> str:
    if len(names) == 1 or dice.random() < 0.5:
        return dice.choice(names)
    return dice.choice([f"({', '.join(dice.sample(names, 2))})", f"({', '.join(names)})"])


def requirement(dice: random.Random, inputs: list[str], outputs: list[str]) -> str:
    what, wrt = several(dice, outputs), several(dice, inputs)
    what, wrt = dice.choice([(what, wrt), (what, wrt), ("all outputs", "all inputs")])
    verb = "are" if what.startswith("all") else "is"
    amount = dice.choice(
        ["1-DP", "0.5-LDP", "(1, 0.01)-DP", "(1, 0.1)-LDP", "(1, 0.1)-per-atom-LDP", "50-DP", "1-zCDP"]
    )
    if dice.random() < 0.5:
        amount = dice.choice(["1-metric-DP", "0.1-metric-DP", "1-metric-DP", "60-metric-DP"])
        return f"{what} {verb} {amount} wrt {wrt}, distance {distance(dice, wrt)}"
    if "LDP" in amount:
        return f"{what} {verb} {amount} wrt {wrt}"
    return f"{what} {verb} {amount} wrt {wrt}{dice.choice(UNITS)}"


def distance(dice: random.Random, wrt: str) -> str:
    return dice.choice(DISTANCES).replace("{x}", wrt if wrt != "all inputs" else "x")


def fairness(dice: random.Random, inputs: list[str], outputs: list[str], computed: bool) -> str:
    names = [*inputs, *(["s"] if computed else [])]
    what, of, given = several(dice, outputs), dice.choice(names), dice.choice([*names, outputs[0]])
    tail = dice.choice(["", "", ", up to 0.1", ", up to 1"])
    value = dice.choice(["", "", " = 1", " = F", " = a", " = [1, 2]", " = T", " = x"])
    return dice.choice(
        [
            f"{what} is independent of {of}{tail}",
            f"{what} is independent of {of} given {given}{value}{tail}",
            f"{of} is independent of {dice.choice(names)} given {outputs[0]}",
            f"{what} is {dice.choice(['1', '0.2', '1e-3'])}-Lipschitz wrt {of}, distance {distance(dice, of)}",
        ]
    )


def judge(error: SpecError) -> None:
    """Every diagnostic has an entry and a place, and can be shown."""
    assert error.diagnostics
    assert {d.code for d in error.diagnostics} <= set(entries())
    assert all(d.labels for d in error.diagnostics)
    assert "Traceback" not in render_all(error.diagnostics)


def outcome(text: str, folder: Path) -> str:
    source = Source("random.priv", text)
    format_source(source)
    try:
        model = load_model(source, base=folder)
    except SpecError as error:
        judge(error)
        return "refused by check"
    if not finite(model):
        return "not finite"
    try:
        system = compiler_of(model).lower(model)
    except SpecError as error:
        judge(error)
        return "refused by solve"
    assert isinstance(system, TableSystem)
    try:
        to_program(system)
    except Failure as failure:
        assert failure.code in entries()
        return "refused by solve"
    return "lowered"


def run_cases(seed: int, count: int, folder: Path) -> Counter[str]:
    for name, text in MATRICES.items():
        (folder / name).write_text(text, "utf-8")
    dice = random.Random(seed)
    outcomes: Counter[str] = Counter()
    for case in range(count):
        text = spec(dice)
        try:
            outcomes[outcome(text, folder)] += 1
        except BaseException:
            print(f"seed {seed}, case {case}:\n{text}")
            raise
    return outcomes


@pytest.mark.parametrize("seed", range(4))
def test_random_specs(seed: int, tmp_path: Path) -> None:
    outcomes = run_cases(seed, 100, tmp_path)
    assert outcomes["refused by check"] > 10
    assert outcomes["lowered"] > 10


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_many_random_specs(seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = run_cases(seed, 300, tmp_path)
    with capsys.disabled():
        print(f"\nseed {seed}: {dict(outcomes)}")
