"""Specs of every kind that are small enough to list all their worlds."""

from __future__ import annotations

from random import Random

DOMAINS = {
    "numbers": ["0..1", "1..3", "-1..1", "grid(0, 1, 0.5)", "{1, 2, 4}"],
    "words": ["{a, b}", "{a, b, c}"],
    "power": ["(0..1)^2", "(1..3)^2", "{a, b}^2", "(0..1)^3"],
    "party": ["0..1", "{a, b}", "1..3", "{a, b, c}"],
}
TWO = ("{a, b}", "0..1", "(0..1)^2", "(0..1)^3", "{a, b}^2")
PARTS = ["{0}[voter]", "z{0}[voter]"]
"""What a voter holds of the input {0}, and what is computed from it."""
FORMS = [
    "{0}[1..2]",
    "[2 * {0}[i] + i for i in 1..2]",
    "[sum({0}[j] for j in i..i + 1) for i in 1..1]",
    "d{0}[2..2] + {0}[1]",
    "[m{0}[2, 1], m{0}[3, 2]]",
]
"""Entries of a vector {0}, taken and made in every way."""
DISTANCES = ["euclidean", "manhattan", "chebyshev", "hamming"]


def finite(dice: Random) -> str:
    """A spec whose mechanisms are tables."""
    kinds = {name: dice.choice(["numbers", "numbers", "words", "power"]) for name in ["x", "y"][: dice.randint(1, 2)]}
    if dice.random() < 0.3:
        kinds = {name: dice.choice(["party", "party", kind]) for name, kind in kinds.items()}
    domains = {name: dice.choice(DOMAINS[kind]) for name, kind in kinds.items()}
    written = {name: f"{name}[voter]" if kinds[name] == "party" else name for name in kinds}
    outputs = ["z", "O"][: dice.randint(1, 2)]
    numeric = [n for n in kinds if "a" not in domains[n].replace("grid", "")]
    target = " + ".join(n if kinds[n] == "numbers" else f"sum({n})" for n in numeric)
    lines = ["parameters: U = [[1, 2], [0, 4], [3, 5]]"]
    lines += [f"parties: voter in 1..{dice.randint(2, 3)}"] * ("party" in kinds.values())
    lines += ["variables:", *(f"  input {written[n]} in {domains[n]}" for n in kinds)]
    lines += ["  intermediate s"] * bool(target)
    lines += [f"  output {name} in {dice.choice(['0..2', '{0, 1}'])}" for name in outputs] + ["background:"]
    lines += [f"  s = {dice.choice(['', '2 * ', '1 - '])}({target})"] * bool(target)
    for name in kinds:
        law = f"categorical({[1, 3, 2][: 2 if domains[name] in TWO else 3]})"
        lines.append(f"  {name} ~ {dice.choice(['uniform', 'uniform', law])}")
    if dice.random() < 0.3:
        facts = [f"sum({n}) {dice.choice(['=', '<=', '>='])} 2" for n in numeric if kinds[n] in ("power", "party")]
        facts += [f"histogram({n})[j] >= 1 for j in 1..2" for n in kinds if kinds[n] == "party"]
        facts += [f"histogram({n})[1] <= 1" for n in kinds if kinds[n] == "power" and "^2" in domains[n]]
        facts += ["x <= y", "x + y >= 1"] * ([kinds[n] for n in numeric] == ["numbers"] * 2)
        lines += [f"  {dice.choice(facts)}"] if facts else []
    alike = [n for n in numeric if kinds[n] == "numbers"]
    costs = ["({0} - s)^2", "|{0} - s|", "2 * {0}"] if target else ["{0}^2"]
    costs += [f"mismatch({{0}}, {n})" for n in alike] * 2
    costs += [f"U[{n}, 2] * {{0}}" for n in kinds if domains[n] == "{a, b, c}" and kinds[n] == "words"] * 3
    costs += [f"U[{n}[1], 1] * {{0}}" for n in kinds if domains[n] == "{a, b, c}" and kinds[n] == "party"] * 3
    halves = "sum(at_least({0}, 1) * max({0}, 2) - min({0}, [1, 0, 0]))"
    costs += [f"{halves.format(n)} * {{0}}" for n in kinds if domains[n] == "(0..1)^3"] * 3
    costs += [f"mismatch({n}[1], {n}[2]) * {{0}}" for n in kinds if kinds[n] in ("power", "party")]
    terms = [f"{dice.choice(['E', 'worst'])}[ {dice.choice(costs).format(o)} ]" for o in outputs]
    terms += [f"{dice.choice([1, 3, 0.5])} * E[ (z - s)^2 ]"] * bool(target)
    if target and dice.random() < 0.2:
        lines.append(f"  E[z | {next(iter(kinds))}] {dice.choice(['=', '<='])} {dice.choice(['s', '1', '2 - s'])}")
    lines += [f"loss: {' + '.join(terms)}"]
    lines += [f"accuracy: {dice.choice(terms)} <= 0.5"] * (dice.random() < 0.2)
    over = {name: domains[name].partition("^")[0].strip("()") for name in kinds}
    lines += ["privacy:", *(f"  {requirement(dice, kinds, outputs, over)}" for _ in range(dice.randint(1, 2)))]
    lines += ["fairness:", f"  {fairness(dice, kinds, outputs)}"] * (dice.random() < 0.5)
    return "\n".join(lines) + "\n"


def modelled(dice: Random) -> str:
    """A spec whose lines count on a law of all its data."""
    sizes = {"x": dice.choice([("{a, b}", 2), ("0..2", 3)]), "y": dice.choice([("0..1", 2), ("{u, v, w}", 3)])}
    (one, n), (other, m) = sizes.values()

    def weights() -> list[int]:
        return [dice.choice([0, 1, 2, 3]) for _ in range(m - 1)] + [1]

    laws = [
        f"(x, y) ~ categorical({[weights() for _ in range(n)]})",
        f"x ~ categorical({[1, 3, 2][:n]})\n  y ~ categorical(t[x])",
        "y ~ uniform\n  x ~ categorical(back[y])",
        f"x ~ uniform\n  y ~ categorical({[1, 3, 2][:m]})",
    ]
    lines = [f"parameters:\n  t = {[weights() for _ in range(n)]}", f"  back = {[[1, 2, 1][:n] for _ in range(m)]}"]
    if dice.random() < 0.4:
        law = dice.choice(["uniform", "proportional(1 + 2 * q[1] * q[2])", "proportional((q[1] + 1) / (q[2] + 2))"])
        lines += ["variables:", "  input q in (0..1)^3", "  intermediate s", "  output z in 0..2", "background:"]
        lines += [f"  q ~ {law}", f"  s = {dice.choice(['sum(q)', 'q[1] + q[2]', 'at_least(sum(q), 2)'])}"]
        wrt = ["q", "q, replacing one entry", "q, replacing everything", "s"]
        target = dice.choice(["s", "q[1]"])
    else:
        lines += ["variables:", f"  input x in {one}", f"  input y in {other}", "  output z in 0..2"]
        lines += ["background:", f"  {dice.choice(laws)}"]
        first, second = (domain.strip("{").partition("," if "{" in domain else "..")[0] for domain, _ in sizes.values())
        given = ["E[z | x, y] = E[z | x]", "2 * E[z | y, x] >= E[z^2 | y] - 1", "E[z^2 | x, y] <= E[z | x] + E[z | y]"]
        given += [f"E[z | x = {first}] <= E[z | y = {second}] + 1", f"E[z | x, y = {second}] <= 2 - E[z | x]"]
        lines += [f"  {dice.choice(given)}"] * (dice.random() < 0.5)
        wrt, target = ["x", "y", "(x, y)"], "1"
        target = next((name for name, (domain, _) in sizes.items() if ".." in domain), "1")
    every = [f"  z is 1-DP wrt {dice.choice(wrt)}, given the model" for _ in range(dice.randint(1, 2))]
    return "\n".join([*lines, f"loss: E[ (z - {target})^2 ]", "privacy:", *every]) + "\n"


def names(dice: Random, known: list[str]) -> str:
    return f"({', '.join(known)})" if len(known) > 1 and dice.random() < 0.5 else dice.choice(known)


def requirement(dice: Random, kinds: dict[str, str], outputs: list[str], graphs_of: dict[str, str]) -> str:
    what, wrt = names(dice, outputs), names(dice, list(kinds))
    parties = {kinds[n] for n in kinds if n in wrt} == {"party"}
    if dice.random() < 0.3:
        measure = dice.choice([*["0.5-LDP wrt {0}"] * (not parties), "1-metric-DP wrt {0}, distance {1}"])
        return f"{what} is {measure.format(wrt, dice.choice(DISTANCES))}"
    units = ["one entry", "one record", "up to 2 entries", "up to 2 records", "everything"]
    units += ["one voter", "up to 2 voters"] * 3 * parties
    graphs = {"0..1": "[[0, 1]]", "1..3": "[[1, 3], [2, 3]]", "{a, b}": "[{a, b}]", "{a, b, c}": "[{a, b}, {b, c}]"}
    if wrt in graphs_of and graphs_of[wrt] in graphs:
        one = {"numbers": wrt, "words": wrt, "party": "one voter"}.get(kinds[wrt], "one entry")
        units += [f"{one} by a neighbour in {graphs[graphs_of[wrt]]}"] * 3
    unit = dice.choice(["", *(f", replacing {unit}" for unit in units)])
    return f"{what} is {dice.choice(['1-DP', '(1, 0.1)-DP'])} wrt {wrt}{unit}{dice.choice(['', '', ', seen by press'])}"


def fairness(dice: Random, kinds: dict[str, str], outputs: list[str]) -> str:
    what, of = names(dice, outputs), dice.choice(list(kinds))
    if dice.random() < 0.3:
        return f"{what} is 0.25-Lipschitz wrt {of}, distance {dice.choice(DISTANCES)}"
    given = dice.choice(["", *(f" given {name}" for name in kinds if name != of)])
    return f"{what} is independent of {of}{given}{dice.choice(['', ', up to 0.25', ', up to 0.5'])}"


COLUMNS = (
    "{0}.c = {0}.a >= 2",
    "{0}.d = cut({0}.a, [2, 3])",
    "{0}.e = 2 * {0}.a - 1",
    "{0}.f = lookup({0}.b, late = {{v}}, soon = {{u}})",
)
"""Columns that follow from others."""


def linear(dice: Random) -> str:
    """A spec whose mechanisms are linear answers and noise."""
    inputs, kinds, values = [], {}, []
    for name in dice.choice([["x"], ["x", "w"]]):
        kind = kinds[name] = dice.choice(
            ["box", "box", "matrix", "l1", "l2", "table", "follows", "party", "people", "words"]
        )
        low, high = dice.choice([("0", "1"), ("-1", "2"), ("1", "3"), ("-0.5", "0.5")])
        domains = {"box": f"[{low}, {high}]^{dice.randint(2, 3)}", "matrix": f"[{low}, {high}]^(2, 2)"}
        domains |= {
            "l1": f"l1_ball({high}, 2)",
            "l2": f"l2_ball({high}, 2)",
            "party": f"[{low}, {high}]",
            "people": f"[{low}, {high}]^2",
        }
        domains |= {"words": "{u, v, z}", "table": f"table(a in 1..2, b in {{u, v}}){dice.choice(['', '^2'])}"}
        domains |= {"follows": f"table(a in 1..3, b in {{u, v}}){dice.choice(['', '^2'])}"}
        inputs.append(f"  input {name}{'[voter]' * (kind in ('party', 'people', 'words'))} in {domains[kind]}")
        plain = ["{0}", "prefix_sums({0})", "sum({0})", "2 * {0} + 1", "mean({0})"]
        sums = {"table": ["histogram({0})", "marginals({0}, {{b}})", "2 * histogram({0})"]}
        sums["follows"] = ["histogram({0}, by = {{" + by + "}})" for by in ("c", "c, b", "d", "a, c", "e", "f", "a, f")]
        sums["follows"] += ["sum({0}.e)", "2 * sum({0}.e)"]
        sums |= {"matrix": ["sum({0})", "{0} @ B"]}
        sums["words"] = ["histogram({0})", "2 * histogram({0})", "histogram({0})[2]", "[1, 0, 2] @ histogram({0})"]
        sums["people"] = [f"{rule}({part} for voter)" for rule in ("sum", "mean") for part in PARTS]
        sums["party"] = [*sums["people"], "sum({0})", "{0}", "prefix_sums({0})"]
        sums["matrix"] += ["{0}[1..2, 2]", "[{0}[1, j] - {0}[2, j] for j in 1..2]", "{0}[2, 1..2]"]
        plain += ["[{0}[2], -{0}[1]]"] + FORMS * (kind == "box")
        values.append(dice.choice(sums.get(kind, plain)).format(name))
    places, held = range(len(values)), {"party", "people", "words"} & set(kinds.values())
    parts = [name for name in kinds if any(f"z{name}[" in value for value in values)]
    lines = ["parameters: B = [1, -2]", *["parties: voter in 1..2"] * bool(held), "variables:"]
    lines += inputs + [f"  intermediate z{name}[voter]" for name in parts]
    made = [name for name in kinds if any(f"{one}{name}[2" in value for one in "dm" for value in values)]
    lines += [f"  intermediate {one}{name}" for name in made for one in "dm"]
    lines += [f"  intermediate y{i}" for i in places] + [f"  output O{i}" for i in places]
    tables = [name for name, kind in kinds.items() if kind == "follows"]
    lines += ["background:", *(f"  {one.format(name)}" for name in tables for one in COLUMNS)]
    lines += [*(f"  z{name}[voter] = 2 * {name}[voter] + voter" for name in parts)]
    for name in made:
        lines += [f"  d{name}[i] = {name}[i] - {name}[i - 1] for i in 2..2"]
        lines += [f"  m{name}[i, j] = {name}[j] * (i - 1) for i in 2..3, j in 1..2"]
    lines += [*(f"  y{i} = {value}" for i, value in enumerate(values))]
    lines += [f"loss: {' + '.join(f'{dice.choice([1, 3, 0.5])} * E[ ||O{i} - y{i}||^2 ]' for i in places)}", "privacy:"]
    for _ in range(dice.randint(1, 2)):
        what, wrt = names(dice, [f"O{i}" for i in places]), names(dice, list(kinds))
        units = [
            f"replacing {u}" for u in ("one record", "up to 2 records", "everything", "one entry", "up to 2 entries")
        ]
        units += ["adding or removing one record"] * ("people" not in held)
        units += ["replacing one voter", "replacing up to 2 voters", "adding or removing one voter"]
        unit = dice.choice(["", *(f", {unit}" for unit in units)])
        lines.append(f"  {what} is {dice.choice(['1-GDP', '1-DP'])} wrt {wrt}{unit}")
    sites = [f"y{i}" for i in places] + [f"z{name}" for name in parts]
    lines += [f"options: noise at {dice.choice(sites)}"] * (dice.random() < 0.5)
    return "\n".join(lines) + "\n"


def votes(dice: Random) -> str:
    """A vote that is no table: voters come and go."""
    domain = dice.choice(["ranking of {a, b, c}", "ranking of {a, b}", "{a, b}", "{a, b, c}"])
    rule = dice.choice(["random_dictator", *["borda_lottery"] * domain.startswith("ranking")])
    law = dice.choice(["uniform", f"categorical({[1, 3, 2, 1, 1, 5][: {16: 2, 5: 2, 19: 6, 8: 3}[len(domain) - 1]]})"])
    return f"""parties: voter in 1..2
variables:
  input vote[voter] in {domain}
  intermediate winner
  output O
background:
  winner = {rule}(vote)
  vote ~ {law}
loss: {dice.choice([1, 2])} * {dice.choice(["worst", "E"])}[ {dice.choice(["total_variation", "mismatch"])}(O, winner) ]
privacy:
  O is 1-DP wrt vote, adding or removing {dice.choice(["one voter", "up to 2 voters"])}
"""
