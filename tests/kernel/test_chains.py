"""Lines that count on a chain, before the kernel: against sums over all sequences, and against forged plans."""

from __future__ import annotations

import copy
import json
import random
from fractions import Fraction
from functools import cache
from itertools import pairwise, product
from math import exp, log, prod
from unittest.mock import patch

import pytest

from privspec.api import Problem
from privspec.core.diagnostics import SpecError
from privspec.kernel import judge
from privspec.kernel.chains import Chain, read_proof, told_beyond
from privspec.kernel.core.problem import read_mechanism
from privspec.kernel.core.reading import Grid, JsonNode, Refused
from privspec.kernel.laws.laplace import laplace_variance
from privspec.kernel.strategies.sequences import MOST_RATIOS, reached_by_laws, reached_by_windows
from privspec.kernel.writing import array
from tests.plans import mutate, solved_text

SPEC = """spec tiny
parameters:
  T = {length}
  {laws}
variables:
  input x in {domain}^T
  intermediate y
  output O
background:
  y = {query}
  x[1] ~ categorical({start})
  x[i] ~ categorical({step}[x[i-1]])
loss: {loss}
privacy:
  {privacy}
"""
LINE = "O is {epsilon}-DP wrt x, replacing one entry, given the model"
STICKY = "start = [0.5, 0.5]\n  step = [[0.8, 0.2], [0.3, 0.7]]"
THREE = "start = [0.2, 0.5, 0.3]\n  step = [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0, 0.5, 0.5]]"
NEVER = "start = [0.6, 0.4]\n  step = [[0, 1], [0.5, 0.5]]"
FROZEN = "start = [0.5, 0.5]\n  step = [[1, 0], [0, 1]]"
TURNS = "start = [0.5, 0.5]\n  step = [[0, 1], [1, 0]]"
CALM = "start = [0.5, 0.5]\n  calm = [[0.8, 0.2], [0.3, 0.7]]\n  busy = [[0.4, 0.6], [0.1, 0.9]]"


def spec(laws=STICKY, length=5, domain="(0..1)", query="sum(x)", epsilon=1, **more):
    said = {"start": "start", "step": "step", "loss": "E[ (O - y)^2 ]", "privacy": LINE.format(epsilon=epsilon)}
    return SPEC.format(laws=laws, length=length, domain=domain, query=query, **(said | more))


def chances_of(block):
    """For every law that a block allows, the chance of a sequence."""
    if not block["network"]:
        for start, step in laws_of(block):
            yield lambda x, start=start, step=step: start[x[0]] * prod(step[a][b] for a, b in pairwise(x))
        return
    size = len(block["states"])

    def drawn(x):
        chance = Fraction(1)
        for value, law in zip(x, block["network"], strict=True):
            row = 0
            for parent in law["parents"]:
                row = row * size + x[parent]
            chance *= law["chances"]["rows"][row * size + value] * Fraction(law["chances"]["unit"])
        return chance

    yield drawn


def laws_of(block):
    """Every law that a block allows: the first entry, and the matrix of a step."""
    size = len(block["states"])

    def rows(item):
        values = [value * Fraction(item["unit"]) for value in item["rows"]]
        return [values[i : i + size] for i in range(0, len(values), size)]

    steps = rows(block["steps"])
    return [(s, steps[i : i + size]) for s in rows(block["starts"]) for i in range(0, len(steps), size)]


def answers(block):
    """Every sequence with its answer, by what entries add."""
    length, width, size = block["added"]["shape"]
    flat = [value * Fraction(block["added"]["unit"]) for value in block["added"]["rows"]]
    for sequence in product(range(size), repeat=length):
        yield (
            sequence,
            tuple(sum(flat[(t * width + j) * size + s] for t, s in enumerate(sequence)) for j in range(width)),
        )


def true_epsilon(block, scale, unit, spread=14):
    """By summing over all sequences: the largest log ratio of the released law given two values of an entry."""
    worst, length, size = 0.0, block["added"]["shape"][0], len(block["states"])
    every = list(answers(block))
    decay = exp(-1 / float(scale))
    corners = [{answer[j] for _, answer in every} for j in range(block["added"]["shape"][1])]
    grids = []
    for values in corners:
        low, high = min(values), max(values)
        count = int((high - low) / unit)
        grids.append([low + unit * k for k in range(-1, min(count, spread) + 2)] + [high, high + unit])
    for drawn in chances_of(block):
        chance = {x: (p, answer) for x, answer in every if (p := drawn(x))}
        for t in range(length):
            given = {}
            for s in range(size):
                law = {}
                for sequence, (p, answer) in chance.items():
                    if sequence[t] == s:
                        law[answer] = law.get(answer, 0) + p
                if law:
                    total = sum(law.values())
                    given[s] = {answer: float(p / total) for answer, p in law.items()}
            for w in product(*grids):
                seen = []
                for law in given.values():
                    steps = (
                        (p, sum(abs(int((x - y) / unit)) for x, y in zip(w, k, strict=True))) for k, p in law.items()
                    )
                    seen.append(sum(p * decay**d for p, d in steps))
                worst = max(worst, log(max(seen) / min(seen)))
    return worst


def executed(plan):
    (block,) = plan["problem"]["blocks"]
    return block, Fraction(plan["mechanism"]["scale"]), Fraction(plan["mechanism"]["unit"])


CASES = {
    "sticky": spec(),
    "strict": spec(epsilon="0.2"),
    "three": spec(THREE, 4, "(0..2)"),
    "words": spec(THREE, 4, "{a, b, c}", "[0, 1, 1] @ histogram(x)"),
    "never": spec(NEVER, 5),
    "frozen": spec(FROZEN, 4),
    "mean": spec(length=4, query="mean(x)"),
    "weighted": spec(length=4, query="x[1] + 2 * x[2] + 0.5 * x[4]"),
    "several": spec(CALM, 4, step="{calm, busy}"),
    "independent": spec("start = [0.3, 0.7]\n  step = [[0.3, 0.7], [0.3, 0.7]]", 4),
}


@pytest.mark.parametrize("case", CASES)
def test_a_plan_keeps_its_line_and_spends_it_all(case):
    plan = solved_text(CASES[case])
    block, scale, unit = executed(plan)
    asked = float(Fraction(plan["guarantees"][0]["epsilon"]))
    reached = true_epsilon(block, scale, unit)
    assert reached <= asked * (1 + 1e-9)
    assert reached >= asked * (1 - 1e-6), "by the exact laws nothing is left over"
    assert plan["status"] == "optimal"
    assert plan["loss"]["relative_gap"] <= 1e-6
    weight = sum(block["weights"]["rows"]) * Fraction(block["weights"]["unit"])
    assert plan["loss"]["value"] == pytest.approx(
        float(weight * unit**2 * laplace_variance(scale, Fraction(1))), rel=1e-12
    )


@pytest.mark.parametrize("case", ["sticky", "three", "never", "several", "weighted"])
@pytest.mark.parametrize("size", ["1/2", "2", "7"])
def test_the_laws_of_the_answer_are_those_of_all_sequences(case, size):
    plan = solved_text(CASES[case])
    (block,) = plan["problem"]["blocks"]
    mechanism = plan["mechanism"] | {"scale": size}
    chain = read_mechanism(JsonNode(block, "block"), JsonNode(mechanism, "mechanism"), Chain)
    assert float(reached_by_laws(chain)) == pytest.approx(true_epsilon(block, chain.scale, chain.unit), rel=1e-9)


NETWORK = """spec household
parameters:
  first = [0.7, 0.3]
  caught = [[0.9, 0.1], [0.4, 0.6]]
  both = [[[0.9, 0.1], [0.5, 0.5]], [[0.3, 0.7], [0, 1]]]
variables:
  input ill in {well, flu}^5
  output O
background:
  ill[1] ~ categorical(first)
  ill[2] ~ categorical(first)
  ill[3] ~ categorical(caught[ill[1]])
  ill[4] ~ categorical(both[ill[1], ill[2]])
  ill[5] ~ categorical(caught[ill[3]])
loss: E[ (O - [0, 1] @ histogram(ill))^2 ]
privacy: O is 1-DP wrt ill, replacing one entry, given the model
"""
NETWORKS = {
    "household": NETWORK,
    "star": NETWORK.replace("  ill[2] ~ categorical(first)\n", "  ill[i] ~ categorical(caught[ill[1]])\n")
    .replace("  ill[3] ~ categorical(caught[ill[1]])\n", "")
    .replace("  ill[5] ~ categorical(caught[ill[3]])\n", ""),
    "two back": NETWORK.replace(
        "  ill[3] ~ categorical(caught[ill[1]])\n", "  ill[i] ~ categorical(caught[ill[i-2]])\n"
    )
    .replace("  ill[4] ~ categorical(both[ill[1], ill[2]])\n", "")
    .replace("  ill[5] ~ categorical(caught[ill[3]])\n", ""),
}


@pytest.mark.parametrize("case", NETWORKS)
def test_networks_are_those_of_all_sequences(case):
    plan = solved_text(NETWORKS[case])
    block, scale, unit = executed(plan)
    assert len(block["network"]) == 5
    assert plan["status"] == "optimal"
    assert true_epsilon(block, scale, unit) == pytest.approx(1, rel=1e-6)
    assert true_epsilon(block, scale, unit) <= 1
    chances = plan["problem"]["blocks"][0]["network"][2]["chances"]
    path = ("problem", "blocks", 0, "network", 2)
    more = {"parents": [0], "chances": chances | {"rows": [99, 1, 1, 99], "unit": "1/100"}}
    refused(mutate(plan, path, more), "epsilon 1.")
    refused(mutate(plan, path, more | {"parents": [3]}), "do not fit")
    refused(mutate(plan, path, more | {"parents": []}), "do not fit")
    steps = {"shape": [1, 2, 2], "unit": "1", "rows": [1, 0, 0, 1]}
    refused(mutate(plan, ("problem", "blocks", 0, "steps"), steps), "do not fit")


def test_several_answers_about_a_network_are_one_unit():
    plan = solved_text(NETWORK.replace("(O - [0, 1] @ histogram(ill))^2", "||O - histogram(ill)||^2"))
    assert Fraction(plan["mechanism"]["scale"]) == pytest.approx(10, rel=1e-6)
    assert plan["claims"]["given"][0] == {"line": 0, "by": "quilts", "witness": None}


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("caught[ill[3]]", "caught[ill[5]]", "PS0440"),
        ("caught[ill[3]]", "caught[ill[6]]", "PS0440"),
        ("both[ill[1], ill[2]]", "both[ill[1], ill[1]]", "PS0440"),
        ("both[ill[1], ill[2]]", "caught[ill[1], ill[2]]", "PS0406"),
        ("  ill[2] ~ categorical(first)\n", "", "PS0440"),
        ("ill[5] ~", "ill[6] ~", "PS0440"),
        ("ill[5] ~", "ill[4] ~", "PS0405"),
        ("}^5", "}^15", "PS0225"),
    ],
)
def test_networks_that_do_not_fit_are_refused(old, new, code):
    assert old in NETWORK
    with pytest.raises(SpecError) as caught:
        Problem(NETWORK.replace(old, new), {}).solve()
    assert code in {found.code for found in caught.value.diagnostics}


HISTOGRAMS = {
    "two": spec(STICKY, 5, "{a, b}", "histogram(x)", loss="E[ ||O - y||^2 ]"),
    "three": spec(THREE, 4, "{a, b, c}", "histogram(x)", loss="E[ ||O - y||^2 ]", epsilon=2),
    "never": spec(NEVER, 5, "{a, b}", "histogram(x)", loss="E[ ||O - y||^2 ]"),
    "several": spec(CALM, 4, "{a, b}", "histogram(x)", step="{calm, busy}", loss="E[ ||O - y||^2 ]", epsilon=3),
    "mixing": spec(
        "start = [0.5, 0.5]\n  step = [[0.55, 0.45], [0.45, 0.55]]", 8, "{a, b}", "histogram(x)",
        loss="E[ ||O - y||^2 ]", epsilon=3,
    ),
}  # fmt: skip


@cache
def by_quilts(text):
    """A plan that quilts alone prove."""
    with patch("privspec.families.number.sequences.work_of_windows", lambda chain, distance: 2 * MOST_RATIOS):
        return Problem(text, {}).solve().to_json()


@pytest.mark.parametrize("by", ["quilts", "windows"])
@pytest.mark.parametrize("case", HISTOGRAMS)
def test_quilts_and_windows_prove_no_less_than_is_true(case, by):
    plan = json.loads(by_quilts(HISTOGRAMS[case])) if by == "quilts" else solved_text(HISTOGRAMS[case])
    block, scale, unit = executed(plan)
    if by == "quilts":
        assert plan["claims"]["given"][0]["by"] == "quilts"
    else:
        assert plan["loss"]["value"] <= json.loads(by_quilts(HISTOGRAMS[case]))["loss"]["value"] * (1 + 1e-9)
    assert plan["loss"]["lower_bound"] <= plan["loss"]["value"]
    stated = float(Fraction(plan["guarantees"][0]["achieved"]["epsilon"]))
    assert true_epsilon(block, scale, unit, spread=3) <= stated * (1 + 1e-9)


def quilt_by_hand(start, step, t, length, back, ahead):
    """Max-influence of a two-sided quilt, from the joint law of three entries (Song et al. 2017, definition 4.1)."""
    size = len(start)
    chance = {}
    for sequence in product(range(size), repeat=length):
        p = start[sequence[0]]
        for a, b in pairwise(sequence):
            p *= step[a][b]
        key = sequence[t], sequence[t - back] if back else None, sequence[t + ahead] if ahead else None
        chance[key] = chance.get(key, Fraction(0)) + p
    own = [sum(p for key, p in chance.items() if key[0] == s) for s in range(size)]
    found = {}
    for a, b in product(range(size), repeat=2):
        if a != b and own[a] and own[b]:
            ratios = []
            for key, p in chance.items():
                if key[0] == a and p:
                    other = chance.get((b, *key[1:]), Fraction(0))
                    ratios.append((p / own[a]) / (other / own[b]) if other else None)
            found[a, b] = None if None in ratios else max(ratios)
    return found


@pytest.mark.parametrize(("back", "ahead"), [(0, 1), (1, 0), (1, 1), (2, 1), (2, 2), (0, 3)])
@pytest.mark.parametrize("laws", [STICKY, NEVER])
def test_influence_is_that_of_the_paper(back, ahead, laws):
    """A single pair of values at entry 3 of 6 with a quilt of its own; every other pair has the empty one."""
    plan = solved_text(spec(laws, 6, "{a, b}", "histogram(x)", loss="E[ ||O - y||^2 ]"))
    (block,) = plan["problem"]["blocks"]
    chain = read_mechanism(
        JsonNode(block, "block"), JsonNode(plan["mechanism"] | {"scale": "1000000"}, "mechanism"), Chain
    )
    ((start, step),) = laws_of(block)
    ratios = quilt_by_hand(start, step, 2, 6, back, ahead)
    for (a, b), ratio in ratios.items():
        chosen = [0] * (6 * 2 * 2 * 2)
        at = ((2 * 2 + a) * 2 + b) * 2
        chosen[at : at + 2] = back, ahead
        item = JsonNode(array(Grid((1, 6, 2, 2, 2), Fraction(1), tuple(chosen))), "quilts")
        if ratio is None:
            with pytest.raises(Exception, match="for certain"):
                read_proof("quilts", item, chain).epsilon(chain)
            continue
        near = 2 * ((2 + ahead if ahead else 6) - (2 - back + 1 if back else 0))
        expected = max(12 / 1e6, log(ratio) + near / 1e6)
        assert float(read_proof("quilts", item, chain).epsilon(chain)) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def random_chain(dice, length, size, query):
    """A plan-like block and mechanism of a random chain, some chances of which are 0."""

    def law():
        weights = [dice.choice([0, 1, 2, 3, 5]) for _ in range(size)]
        return weights if sum(weights) else law()

    rows = "[" + ", ".join(str(law()) for _ in range(size)) + "]"
    text = spec(f"start = {law()}\n  step = {rows}", length, f"(0..{size - 1})", query)
    (block,) = solved_text(text)["problem"]["blocks"]
    return block


@pytest.mark.parametrize("seed", range(6))
def test_windows_and_far_answers_are_on_their_sides_of_the_truth(seed):
    dice = random.Random(seed)
    size, length = dice.choice([(2, 7), (3, 5)])
    block = random_chain(dice, length, size, dice.choice(["sum(x)", "2 * x[1] + sum(x)", "x[2] - x[3] + x[4]"]))
    proved = 0
    for scale in (Fraction(3, 4), Fraction(4)):
        made = {"family": "chain", "unit": "1", "scale": str(scale)}
        chain = read_mechanism(JsonNode(block, "block"), JsonNode(made, "mechanism"), Chain)
        true = true_epsilon(block, scale, Fraction(1))
        assert float(reached_by_laws(chain)) == pytest.approx(true, rel=1e-9, abs=1e-12)
        for distance in (1, 2, 3):
            try:
                reached = float(reached_by_windows(chain, distance))
            except Refused:
                continue
            proved += 1
            assert reached >= true * (1 - 1e-9)
        for t, a, b, up in product(range(length), range(size), range(size), (1, -1)):
            above = Fraction(true * (1 + 1e-6) + 1e-9).limit_denominator(10**9) + Fraction(1, 10**6)
            assert not told_beyond(chain, scale, [0, t, a, b], [up], above)
    assert proved or size == 3


def test_answers_beyond_all_others_are_as_the_means_say():
    block = solved_text(CASES["three"])["problem"]["blocks"][0]
    scale = Fraction(2)
    made = {"family": "chain", "unit": "1", "scale": "2"}
    chain = read_mechanism(JsonNode(block, "block"), JsonNode(made, "mechanism"), Chain)
    (drawn,) = chances_of(block)
    for t, a, b, up in [(0, 2, 0, 1), (2, 0, 1, -1), (3, 1, 0, 1)]:
        means = []
        for s in (a, b):
            law = [(float(drawn(x)), answer[0]) for x, answer in answers(block) if x[t] == s]
            means.append(sum(p * exp(up * k / 2) for p, k in law) / sum(p for p, _ in law))
        epsilon = log(means[0] / means[1])
        below, above = Fraction(epsilon - 1e-9), Fraction(epsilon + 1e-9)
        assert told_beyond(chain, scale, [0, t, a, b], [up], below)
        assert not told_beyond(chain, scale, [0, t, a, b], [up], above)
    assert not told_beyond(chain, scale, [5, 0, 0, 1], [1], Fraction(-1))
    assert not told_beyond(chain, scale, [0, 9, 0, 1], [1], Fraction(-1))
    assert not told_beyond(chain, scale, [0, 0, 0, 1], [1, 1], Fraction(-1))


def test_windows_reach_what_the_exact_laws_do():
    """A long chain: the laws between quilts are as good as those of the whole answer."""
    with patch("privspec.families.number.sequences.affordable", lambda chain: False):
        plan = json.loads(Problem(spec(length=60), {}).solve().to_json())
    exact = solved_text(spec(length=60))
    assert plan["claims"]["given"][0]["by"] == "windows"
    assert plan["status"] == exact["status"] == "optimal"
    assert plan["loss"]["value"] == pytest.approx(exact["loss"]["value"], rel=1e-6)
    path = ("claims", "given", 0, "witness")
    for wrong in (0, 60, 61, None, [12]):
        refused(mutate(plan, path, wrong), "is not a whole number", "shorter than it")
    refused(mutate(plan, path, 1), "epsilon", "for certain")
    scale = Fraction(plan["mechanism"]["scale"])
    refused(mutate(plan, ("mechanism", "scale"), str(scale * Fraction(999, 1000))), "epsilon 1.0")
    refused(mutate(plan, ("claims", "bound", "beyond"), [False]), "breaks line")
    refused(mutate(plan, ("claims", "bound", "beyond"), [True, True]), "entries in place of")
    refused(mutate(plan, ("claims", "bound", "scale"), str(scale * 2)), "breaks line")


def test_histograms_have_a_bracket():
    plan = solved_text(HISTOGRAMS["mixing"])
    assert plan["claims"]["bound"]["beyond"] is not None
    assert 0 < plan["loss"]["lower_bound"] <= plan["loss"]["value"]


def test_what_never_changes_falls_back_to_group_privacy():
    """A frozen chain is one secret: noise for all entries as one unit, by laws and by quilts alike."""
    plan = solved_text(spec(FROZEN, 6))
    assert float(Fraction(plan["mechanism"]["scale"])) == pytest.approx(6, rel=1e-6)
    plan = solved_text(spec(FROZEN, 6, "{a, b}", "histogram(x)", loss="E[ ||O - y||^2 ]"))
    assert float(Fraction(plan["mechanism"]["scale"])) == pytest.approx(12, rel=1e-6)


def test_entries_that_cancel_need_hardly_any_noise():
    """x[2] = 1 - x[1] and so on: the sum of an even number of entries tells nothing, if the model is right."""
    plan = solved_text(spec(TURNS, 6))
    assert plan["mechanism"]["scale"] == "1/64"
    assert plan["status"] == "feasible"
    assert float(plan["claims"]["without_model"]["entry"]) == 64


def test_a_line_without_the_model_holds_as_well():
    both = f"{LINE.format(epsilon=1)}\n  O is 0.1-DP wrt x, replacing one entry"
    plan = solved_text(spec(privacy=both))
    assert Fraction(plan["mechanism"]["scale"]) == 10
    assert plan["claims"]["bound"]["line"] == 1
    assert plan["status"] == "optimal"
    assert Fraction(plan["guarantees"][0]["achieved"]["epsilon"]) < Fraction(1, 2)
    assert Fraction(plan["guarantees"][1]["achieved"]["epsilon"]) == Fraction(1, 10)
    told = [item["text"] for item in plan["assumptions"]]
    assert any("It does not bound what correlations tell" in text for text in told)


def refused(plan, *words):
    report = judge(json.dumps(plan))
    assert not report.ok
    said = " | ".join(claim.text for claim in report.claims if not claim.holds)
    assert any(word in said for word in words), said


def test_forged_plans_are_refused():
    plan = solved_text(CASES["sticky"])
    assert judge(json.dumps(plan)).ok
    scale = Fraction(plan["mechanism"]["scale"])
    refused(mutate(plan, ("mechanism", "scale"), str(scale * Fraction(99, 100))), "epsilon 1.0")
    refused(mutate(plan, ("mechanism", "scale"), "0"), "too small to be drawn")
    refused(mutate(plan, ("mechanism", "unit"), "2"), "is no step of the answers")
    refused(mutate(plan, ("mechanism", "unit"), "1/2"), "epsilon", "noise below")
    refused(mutate(plan, ("guarantees", 0, "achieved", "epsilon"), "1/2"), "the plan states 0.5")
    refused(mutate(plan, ("claims", "without_model", "entry"), "1/10"), "whatever the model")
    refused(mutate(plan, ("claims", "bound", "scale"), str(scale)), "breaks line")
    refused(mutate(plan, ("claims", "bound", "place"), [0, 0, 0, 0, 0]), "breaks line")
    refused(mutate(plan, ("claims", "bound", "place"), [9, 0, 0, 1, 0]), "a law is named")
    refused(mutate(plan, ("claims", "given"), []), "has 0 entries")
    refused(mutate(plan, ("claims", "given", 0, "by"), "trust"), "is not known")
    refused(mutate(plan, ("claims", "given", 0, "line"), 1), "are not about the lines")


def test_lines_of_accuracy_are_met_or_conflict():
    text = spec().replace("privacy:", "accuracy: E[ (O - y)^2 ] <= 30\nprivacy:")
    plan = solved_text(text)
    (line,) = plan["accuracy"]
    assert line["value"] == pytest.approx(plan["loss"]["value"])
    assert judge(json.dumps(plan)).ok
    refused(mutate(plan, ("accuracy", 0, "value"), 1.0), "is not what the problem")
    stricter = mutate(plan, ("problem", "blocks", 0, "accuracy", 0, "bound"), "3")
    refused(stricter, "is not what the problem")
    refused(mutate(stricter, ("accuracy", 0, "bound"), 3.0), "asked for at most 3")
    tight = solved_text(text.replace("<= 30", "<= 3"))
    assert tight["status"] == "infeasible"
    assert len(tight["conflicts"]) == 2
    (way,) = tight["relaxations"]
    assert float(way["change"].split()[1]) == pytest.approx(plan["loss"]["value"], rel=1e-4)


def block_with(plan, key, value):
    return mutate(plan, ("problem", "blocks", 0, key), value)


def test_forged_problems_are_refused_or_are_others():
    plan = solved_text(CASES["sticky"])
    steps = plan["problem"]["blocks"][0]["steps"]
    stickier = steps | {"rows": [9, 1, 1, 9]}
    refused(block_with(plan, "steps", stickier), "epsilon 1.")
    refused(block_with(plan, "steps", steps | {"rows": [9, 2, 3, 7]}), "do not add up to one")
    refused(block_with(plan, "steps", steps | {"rows": [12, -2, 3, 7]}), "do not add up to one")
    refused(block_with(plan, "lines", []), "has 1 entries", "not judged here")
    refused(block_with(plan, "states", ["a", "a"]), "do not fit")
    everyone = mutate(plan, ("problem", "trust", "kind"), "nobody")
    refused(everyone, "other trust")
    unit = ("problem", "obligations", 0, "units", 0, "kind")
    refused(mutate(plan, unit, "entry"), "not judged here")
    # the plan of another model is not that of the spec inside
    other = solved_text(spec("start = [0.5, 0.5]\n  step = [[0.6, 0.4], [0.4, 0.6]]"))
    from privspec.plan import Plan

    grafted = copy.deepcopy(plan)
    grafted["problem"], grafted["mechanism"] = other["problem"], other["mechanism"]
    grafted["guarantees"], grafted["claims"], grafted["loss"] = other["guarantees"], other["claims"], other["loss"]
    report = Plan(mutate(grafted, ("status",), other["status"])).verify()
    assert any(claim.name == "problem" and not claim.holds for claim in report.claims)


def test_forged_quilts_are_refused():
    plan = json.loads(by_quilts(HISTOGRAMS["mixing"]))
    assert judge(json.dumps(plan)).ok
    quilts = plan["claims"]["given"][0]["witness"]
    path = ("claims", "given", 0, "witness")
    assert any(quilts["rows"]), "some pair has a quilt"

    def forged(rows):
        return mutate(plan, path, quilts | {"rows": rows})

    refused(forged([9] * len(quilts["rows"])), "do not separate")
    refused(forged([1] * len(quilts["rows"])), "do not separate")
    refused(forged([-1] * len(quilts["rows"])), "are not distances")
    refused(forged([0] * len(quilts["rows"])), "epsilon")
    refused(forged(quilts["rows"][:-4]), "entries in place of")
    shorter = {"shape": [1, 7, 2, 2, 2], "rows": quilts["rows"][:-8]}
    refused(mutate(plan, path, quilts | shorter), "is not what the problem")
    refused(mutate(plan, path, None), "is not an object", "is not a list")
    refused(mutate(plan, ("claims", "given", 0, "by"), "laws"), "is not what the problem", "not of one number")
    scale = Fraction(plan["mechanism"]["scale"])
    refused(mutate(plan, ("mechanism", "scale"), str(scale * Fraction(99, 100))), "epsilon")


REFUSALS = {
    "no model": ("  x[i] ~ categorical(step[x[i-1]])\n", "", "PS0440"),
    "no first": ("  x[1] ~ categorical(start)\n", "", "PS0440"),
    "another entry": ("x[1] ~", "x[3] ~", "PS0440"),
    "two back": ("[x[i-1]]", "[x[i-2]]", "PS0440"),
    "ahead": ("[x[i-1]]", "[x[i+1]]", "PS0440"),
    "twice": ("  x[1] ~ categorical(start)\n", "  x[1] ~ categorical(start)\n  x[1] ~ uniform\n", "PS0405"),
    "short row": ("[0.3, 0.7]]", "[0.3, 0.3, 0.4]]", ""),
    "negative": ("[0.3, 0.7]]", "[-1, 2]]", "PS0406"),
    "zero": ("[0.3, 0.7]]", "[0, 0]]", "PS0406"),
    "zcdp": ("1-DP", "1-zCDP", "PS0340"),
    "group": ("replacing one entry", "replacing up to 2 entries", "PS0340"),
    "everything": ("replacing one entry", "replacing everything", "PS0340"),
    "no sequence": ("(0..1)^T", "[0, 1]^T", "PS0440"),
    "absolute": ("E[ (O - y)^2 ]", "E[ |O - y| ]", "PS0501"),
    "square": ("sum(x)", "sum(x)^2", "PS0501"),
    "probably": ("privacy:", "accuracy: |O - y| <= 9 with probability 0.9\nprivacy:", "PS0501"),
    "further input": ("variables:", "variables:\n  input z in [0, 1]", "PS0501"),
    "chosen": ("1-DP", "e-DP", ""),
    "no laws": ("  x[1] ~ categorical(start)\n  x[i] ~ categorical(step[x[i-1]])\n", "", "PS0340"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_is_not_known_is_refused_by_a_line(case):
    old, new, code = REFUSALS[case]
    text = spec()
    assert old in text
    with pytest.raises(SpecError) as caught:
        Problem(text.replace(old, new), {}).solve()
    if code:
        assert code in {found.code for found in caught.value.diagnostics}


def test_sequences_that_are_too_large_are_refused_before_they_are_solved():
    rows = ", ".join(str([1] * 40) for _ in range(40))
    text = spec(f"start = {[1] * 40}\n  step = [{rows}]", 300, "(0..39)")
    with pytest.raises(SpecError) as caught:
        Problem(text, {}).solve()
    assert caught.value.diagnostics[0].code == "PS0515"
