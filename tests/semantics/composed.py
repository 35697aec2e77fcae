"""Specs whose parts are drawn freely: any value of any input, asked for with any loss, of anybody, by any measure.

Shapes fit, and units are such as the inputs have; all else is mixed. Many have no answer: what is asked of each is that
it is solved, that its lines are proved to conflict, or that one true line refuses it.
"""

from __future__ import annotations

from random import Random

INPUTS = {
    "number": "input {0} in [0, 1]",
    "vector": "input {0} in [-1, 2]^3",
    "matrix": "input {0} in [0, 1]^(2, 2)",
    "ball": "input {0} in l2_ball(1, 3)",
    "whole": "input {0} in 0..3",
    "word": "input {0} in {{a, b, c}}",
    "party": "input {0}[owner] in [0, 1]",
    "parties": "input {0}[owner] in [0, 2]^2",
    "choice": "input {0}[owner] in {{a, b, c}}",
    "ranking": "input {0}[owner] in ranking of {{a, b, c}}",
    "table": "input {0} in table(age in 0..4, sex in {{f, m}}, pay in [0, 10])",
    "people": "input {0} in table(person in id, day in 1..3, spent in [0, 5])",
}
ONE, MANY, WORD, LOT = "number", "vector", "word", "lottery"
VALUES = {
    "number": {ONE: ["{0}", "2 * {0} - 1", "|{0} - 1|", "{0}^2"]},
    "vector": {
        ONE: ["sum({0})", "mean({0})", "{0}[2]", "max({0})", "{0}[1] - {0}[3]", "sum({0}^2)"],
        MANY: ["{0}", "prefix_sums({0})", "{0}[1..2]", "{0}^2", "2 * {0} + 1", "[{0}[i] - {0}[1] for i in 2..3]"],
    },
    "matrix": {ONE: ["sum({0})", "{0}[1, 2]"], MANY: ["{0} @ [1, -1]", "{0}[1, 1..2]", "{0}[1..2, 1]"]},
    "ball": {ONE: ["sum({0})", "||{0}||", "{0}[1]"], MANY: ["{0}", "3 * {0}"]},
    "whole": {ONE: ["{0}", "{0}^2", "at_least({0}, 2)", "min({0}, 1)", "2 - {0}"]},
    "word": {WORD: ["{0}"]},
    "party": {
        ONE: ["sum({0})", "mean({0})", "mean({0}[p]^2 for p in owner)", "median({0})", "max({0})", "variance({0})"],
        MANY: ["{0}", "prefix_sums({0})"],
    },
    "parties": {
        ONE: ["mean({0}[p][1] for p in owner)", "sum(sum({0}[p]) for p in owner)"],
        MANY: ["sum({0}[p] for p in owner)", "mean({0}[p] for p in owner)"],
    },
    "choice": {ONE: ["histogram({0})[1]"], MANY: ["histogram({0})"], LOT: ["plurality({0})", "random_dictator({0})"]},
    "ranking": {LOT: ["borda_lottery({0})", "random_dictator({0})"]},
    "table": {
        ONE: [
            *("count({0})", "count({0}, age >= 2, sex = f)", "sum({0}.pay)", "sum({0}.age)", "sum({0}.pay, age < 3)"),
            *("median({0}.age)", "mean({0}.pay)", "variance({0}.pay)", "quantile({0}.age, 0.9)", "max({0}.age)"),
        ],
        MANY: ["histogram({0}, by = {{age}})", "sum({0}.pay, by = {{sex}})", "marginals({0}, up_to = 2)"],
    },
    "people": {
        ONE: ["count({0})", "sum({0}.spent)", "sum({0}.spent, day = 2)", "median({0}.day)"],
        MANY: ["histogram({0}, by = {{day}})", "sum({0}.spent, by = {{day}})"],
    },
}
COLUMNS = ["{0}.old = {0}.age >= 3", "{0}.band = cut({0}.age, [2, 4])"]
BY_COLUMN = {
    ONE: ["sum({0}.pay, old = yes)", "count({0}, old = yes)"],
    MANY: ["histogram({0}, by = {{band}})", "histogram({0}, by = {{band, sex}})", "sum({0}.pay, by = {{old}})"],
}
LOSSES = {
    ONE: [
        *["E[ ({0} - {1})^2 ]"] * 4,
        *("E[ |{0} - {1}| ]", "worst[ ({0} - {1})^2 ]", "worst[ |{0} - {1}| ]", "E[ ||{0} - {1}||^2 ]"),
    ],
    MANY: [*["E[ ||{0} - {1}||^2 ]"] * 3, "worst[ ||{0} - {1}||^2 ]", "E[ sum(|{0} - {1}|) ]", "E[ ||{0} - {1}||_1 ]"],
    WORD: ["E[ mismatch({0}, {1}) ]", "worst[ mismatch({0}, {1}) ]"],
    LOT: ["worst[ total_variation({0}, {1}) ]", "E[ mismatch({0}, {1}) ]"],
}
DOMAINS = {
    ONE: ["", "", "", "", " in 0..3", " in grid(0, 1, 0.25)", " in [0, 1]"],
    MANY: ["", "", "", "", "", " in [0, 4]"],
    WORD: [" in {a, b, c}"],
    LOT: ["", " in {a, b, c}"],
}
ACCURACY = {
    ONE: ["E[ ({0} - {1})^2 ] <= 4", "E[ ({0} - {1})^2 ] <= 0.01", "|{0} - {1}| <= 5 with probability 0.9"],
    MANY: ["E[ ||{0} - {1}||^2 ] <= 40", "E[ ({0}[j] - {1}[j])^2 ] <= 30 for j in 1..2"],
    WORD: ["E[ mismatch({0}, {1}) ] <= 0.6"],
    LOT: ["worst[ total_variation({0}, {1}) ] <= 0.5"],
}
MEASURES = ["1-DP", "1-DP", "(1, 1e-5)-DP", "0.5-zCDP", "1-GDP", "(2, 0.5)-RDP", "0.3-tv-DP", "e-DP"]
OWNER, RECORD, ENTRY, PERSON = "owner", "record", "entry", "person"
OF = dict.fromkeys(("party", "parties", "choice", "ranking"), OWNER)
OF |= dict.fromkeys(("table",), RECORD) | dict.fromkeys(("people",), PERSON)
UNITS = {
    OWNER: ["replacing one owner", "replacing up to 2 owners", "adding or removing one owner"],
    RECORD: ["replacing one record", "adding or removing one record", "adding or removing up to 2 records"],
    ENTRY: ["replacing one entry", "replacing up to 2 entries", "replacing everything"],
    PERSON: [
        *("replacing one person with at most 2 records", "adding or removing one person with at most 2 records"),
        "adding or removing one person with at most 3 records, at most 1 in one cell",
    ],
}
TRUSTS = {OWNER: ["curator", "nobody", "secure_sum", "secure_sum(colluding = 1)"]}
FAMILIES = ["laplace", "gaussian", "geometric", "table", "knorm"]


def composed(dice: Random) -> str:
    """A spec of few lines."""

    def sometimes(share: float, line: str) -> list[str]:
        return [line] if dice.random() < share else []

    kinds = {name: dice.choice(list(INPUTS)) for name in ("x", "w")[: 1 + (dice.random() < 0.3)]}
    outputs = ["O", "z"][: 1 + (dice.random() < 0.3)]
    asked, shapes, background, derived = dict[str, str](), dict[str, str](), list[str](), list[str]()
    for output in outputs:
        name = dice.choice(list(kinds))
        values = VALUES[kinds[name]]
        if kinds[name] == "table" and dice.random() < 0.3:
            background, values = [line.format(name) for line in COLUMNS], BY_COLUMN
        shape = shapes[output] = dice.choice(list(values))
        value = dice.choice(values[shape]).format(name)
        other = next((one for one in kinds if one != name and ONE in VALUES[kinds[one]]), None)
        if other and shape == ONE and dice.random() < 0.4:
            value = (
                f"{value} {dice.choice(['+', '+', '-', '*'])} {dice.choice(VALUES[kinds[other]][ONE]).format(other)}"
            )
        if shape in (ONE, MANY):
            value = dice.choice([*[value] * 4, f"2 * ({value})", f"({value}) / 4"])
        asked[output] = value
    if dice.random() < 0.5:
        derived = [f"y{i}" for i in range(len(asked))]
        background += [f"{name} = {value}" for name, value in zip(derived, asked.values(), strict=True)]
        asked = dict(zip(asked, derived, strict=True))
    chosen = dice.random() < 0.08 and not {WORD, LOT} & set(shapes.values())
    lines = ["parameters: e = 1 / 2"] * (not chosen)
    lines += [f"parties: owner in 1..{dice.choice([2, 5])}"] * (OWNER in {OF.get(kind) for kind in kinds.values()})
    lines += ["variables:", *(f"  {INPUTS[kind].format(name)}" for name, kind in kinds.items())]
    lines += [f"  intermediate {name}" for name in derived]
    lines += [f"  output {name}{dice.choice(DOMAINS[shapes[name]])}" for name in outputs]
    lines += sometimes(0.1, f"  output half = {outputs[0]} / 2") if shapes["O"] in (ONE, MANY) else []
    lines += ["  choose e in [0, 10]"] * chosen
    modelled = {
        name: 0.8 if kind in ("number", "whole", "word", "choice", "ranking") else 0.1 for name, kind in kinds.items()
    }
    background += [f"{name} ~ uniform" for name, share in modelled.items() if dice.random() < share]
    lines += ["background:", *(f"  {line}" for line in background)] if background else []
    terms = [dice.choice(LOSSES[shapes[output]]).format(output, value) for output, value in asked.items()]
    lines.append(f"loss: {' + '.join(dice.choice(['', '', '2 * ']) + term for term in terms)}{' + e' * chosen}")
    output, value = dice.choice(list(asked.items()))
    lines += sometimes(0.2, f"accuracy: {dice.choice(ACCURACY[shapes[output]]).format(output, value)}")
    lines += ["privacy:", *(f"  {requirement(dice, kinds, outputs)}" for _ in range(1 + (dice.random() < 0.3)))]
    lines += sometimes(0.05, f"fairness: {outputs[0]} is independent of {next(iter(kinds))}, up to 0.25")
    trusts = TRUSTS.get(OF.get(kinds["x"], ""), ["curator"])
    options = sometimes(0.35, f"  trust {dice.choice(trusts)}")
    options += sometimes(0.1, f"  noise at {dice.choice([*kinds, *outputs, *derived])}")
    options += sometimes(0.1, f"  noise family {dice.choice(FAMILIES)}") + sometimes(0.05, "  unbiased")
    return "\n".join([*lines, *(["options:", *options] if options else [])]) + "\n"


def requirement(dice: Random, kinds: dict[str, str], outputs: list[str]) -> str:
    """A line about some outputs and some inputs."""
    what = dice.choice([*outputs, "all outputs", "all outputs", f"({', '.join(outputs)})" if outputs[1:] else "O"])
    name = dice.choice(list(kinds))
    wrt = dice.choice([name, name, name, "all inputs"])
    unit = OF.get(kinds[name], ENTRY)
    if dice.random() < 0.08:
        return f"{what} is 1-metric-DP wrt {name}, distance {dice.choice(['euclidean', 'manhattan', 'hamming'])}"
    if dice.random() < 0.08:
        return f"{what} is 1-LDP wrt {name}"
    clause = (
        "" if kinds[name] in ("number", "whole", "word") else dice.choice(["", *(f", {one}" for one in UNITS[unit])])
    )
    more = dice.choice([*[""] * 20, ", seen by press", ", seen by press", ", given the model"])
    return f"{what} is {dice.choice(MEASURES)} wrt {wrt}{clause}{more}"
